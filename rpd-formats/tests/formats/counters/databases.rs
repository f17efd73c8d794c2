//! Counters that are written to a database and read again.

use rpd_core::ids::AgentHandle;
use rpd_core::options::{Format, Options};
use rpd_core::session::{CounterValue, Session, ValueRange};
use rpd_formats::rocpd;
use rusqlite::Connection;

use super::{counted, database, golden, json, rows, session, sessions, target, text};
use crate::support::write::{destination, write};

#[test]
fn counters_survive_in_a_database() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = counted();
    let second = session(&database(&first, directory.path()));
    assert_eq!(second.counters, first.counters);
    assert_eq!(second.counted.values, first.counted.values);
    assert_eq!(second.counted.ranges, first.counted.ranges);
    assert!(second.dispatches.is_empty(), "they were not traced");
    let documents = [&first, &second].map(|session| {
        let json = json(session, directory.path());
        ["counters", "callback_records", "buffer_records"].map(|key| json[key].clone())
    });
    assert_eq!(documents[0], documents[1]);
}

#[test]
fn database_stores_traced_and_counted_dispatches_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = session(&golden("counters-plus-trace/trace_results.db"));
    assert_eq!((first.dispatches.len(), first.counted.len()), (4, 4));
    let path = database(&first, directory.path());
    let second = session(&path);
    assert_eq!((second.dispatches.len(), second.counted.len()), (4, 4));
    assert_eq!(second.counted.values, first.counted.values);
    let connection = Connection::open(path).expect("a database");
    let rows: i64 = connection
        .query_row("SELECT count(*) FROM rocpd_kernel_dispatch", [], |row| {
            row.get(0)
        })
        .expect("a count");
    assert_eq!(rows, 4);
}

#[test]
fn database_of_counters_has_the_rows_and_views_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let golden = golden("counters/trace_results.db");
    let copy = directory.path().join("golden.db");
    std::fs::copy(&golden, &copy).expect("a copy");
    let ours = database(&counted(), directory.path());
    for view in [
        "counters_collection",
        "pmc_events",
        "pmc_info",
        "rocpd_pmc_event",
    ] {
        let sql = format!("SELECT * FROM {view} ORDER BY id");
        let (ours, golden) = (rows(&ours, &sql), rows(&copy, &sql));
        assert_eq!(ours.len(), golden.len(), "{view}");
        for (ours, golden) in ours.iter().zip(&golden) {
            assert_eq!(ours, golden, "{view}");
        }
    }
    let dispatches =
        "SELECT id, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start, \"end\",
        event_id, grid_size_x, workgroup_size_x FROM rocpd_kernel_dispatch ORDER BY id";
    assert_eq!(rows(&ours, dispatches), rows(&copy, dispatches));
    let described =
        "SELECT id, agent_id, target_arch, event_code, instance_id, name, symbol, description,
        long_description, component, units, value_type, block, expression, is_constant, is_derived,
        json_extract(extdata, '$.id.handle') FROM rocpd_info_pmc ORDER BY id";
    assert_eq!(rows(&ours, described), rows(&copy, described));
    let wrong = rows(&ours, "PRAGMA foreign_key_check");
    assert!(wrong.is_empty(), "{wrong:?}");
    let texts =
        "SELECT count(*) FROM rocpd_string WHERE string IN ('SQ_WAVES', 'DIMENSION_SHADER_ENGINE')";
    assert_eq!(rows(&ours, texts), [[2.into()]]);
}

/// A dispatch of which some instances are missing, one that has no value at all, a counter of an agent that no one
/// described, and values that are not numbers.
fn odd() -> Session {
    let mut session = counted();
    let waves = 2;
    assert_eq!(session.counters[waves as usize].name, "SQ_WAVES");
    session.counters[3].agent = AgentHandle(12345);
    let first = session.counted.values.len() as u64;
    session.counted.values.extend([
        CounterValue {
            counter: waves,
            instance: 1,
            value: f64::MAX,
        },
        CounterValue {
            counter: waves,
            instance: 2,
            value: 0.1,
        },
        CounterValue {
            counter: waves,
            instance: 7,
            value: -0.0,
        },
    ]);
    session.counted.ranges[0] = ValueRange { first, count: 3 };
    session.counted.ranges[1] = ValueRange::default();
    session
}

#[test]
fn odd_counter_values_survive_in_a_database() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = odd();
    let second = session(&database(&first, directory.path()));
    assert_eq!(second.counters, first.counters);
    for index in 0..first.counted.len() {
        let (ours, theirs) = (
            first.counted.values_of(index),
            second.counted.values_of(index),
        );
        assert_eq!(ours, theirs, "{index}");
    }
    let files = write(
        Format::Csv,
        &second,
        None,
        &Options::default(),
        &target(directory.path()),
    )
    .expect("written");
    // One row less for each counter that a dispatch has no value of.
    assert_eq!(text(&files[0]).lines().count(), 1 + 8 * 4 - 3 - 4);

    let mut nowhere = counted();
    let kept: Vec<u32> = Vec::new();
    nowhere.counted.reorder(&kept);
    let files = write(
        Format::Csv,
        &nowhere,
        None,
        &Options::default(),
        &target(directory.path()),
    );
    assert!(files.expect("nothing to do").is_empty());
}

#[test]
fn database_has_rows_of_dispatches_counted_but_not_traced() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = session(&golden("counters-plus-trace/trace_results.db"));
    first.dispatches.reorder(&[0, 1, 3]);
    let second = session(&database(&first, directory.path()));
    assert_eq!((second.dispatches.len(), second.counted.len()), (4, 4));
    for index in 0..first.counted.len() {
        assert_eq!(
            second.counted.values_of(index),
            first.counted.values_of(index),
            "{index}"
        );
    }
}

#[test]
fn merged_database_keeps_the_counters_of_each_input() {
    let directory = tempfile::tempdir().expect("a directory");
    let both = [
        golden("counters/trace_results.db"),
        golden("counters-plus-trace/trace_results.db"),
        database(&odd_process(), directory.path()),
    ];
    let merged = directory.path().join("merged.db");
    rocpd::merge(&both, destination(&merged)).expect("merged");
    let found = sessions(&merged);
    let counted: Vec<_> = found
        .iter()
        .map(|session| (session.counters.len(), session.counted.values.len()))
        .collect();
    assert_eq!(counted, [(4, 88), (4, 88), (1, 32)]);
    assert_eq!(
        rows(&merged, "SELECT count(*) FROM counters_collection"),
        [[(2 * 32 + 4).into()]]
    );
}

/// A session of another process than the golden one.
fn odd_process() -> Session {
    let mut session = counted();
    let origin = session.origin.as_mut().expect("an origin");
    origin.guid = "00000057-efda-7fda-8e25-0a4f3eedb860".to_owned();
    session
}

/// Later versions add columns for places, samples that are not counts, and events of the driver.
#[test]
fn reader_uses_counter_columns_of_later_schemas() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("later.db");
    std::fs::copy(golden("counters/trace_results.db"), &path).expect("a copy");
    let connection = Connection::open(&path).expect("a database");
    let table = "rocpd_pmc_event_00000057_efda_7fda_8e25_0a4f3eedb869";
    let info = table.replace("pmc_event", "info_pmc");
    connection
        .execute_batch(&format!(
            "ALTER TABLE {table} ADD COLUMN sample_id INTEGER;
             ALTER TABLE {table} ADD COLUMN xcc INTEGER;
             ALTER TABLE {table} ADD COLUMN shader_engine INTEGER;
             ALTER TABLE {table} ADD COLUMN instance INTEGER;
             DROP VIEW rocpd_pmc_event;
             CREATE VIEW rocpd_pmc_event AS SELECT * FROM {table};
             UPDATE {table} SET instance = 0, shader_engine = (id - 3) % 11 WHERE pmc_id = 3207;
             INSERT INTO {table} (event_id, pmc_id, value, sample_id) VALUES (1, 3207, 1e9, 5);
             INSERT INTO {info} (id, nid, pid, name, symbol, component)
                SELECT 9999, nid, pid, 'KFD', 'KFD', 'kfd' FROM {info} LIMIT 1;
             INSERT INTO {table} (event_id, pmc_id, value) VALUES (NULL, 9999, 1);"
        ))
        .expect("changed");
    drop(connection);
    let later = session(&path);
    let names: Vec<&str> = later
        .counters
        .iter()
        .map(|counter| &*counter.name)
        .collect();
    assert_eq!(
        names,
        ["FETCH_SIZE", "GRBM_COUNT", "SQ_WAVES", "TCC_HIT_sum"]
    );
    let waves = &later.counters[2];
    let dimensions: Vec<_> = waves
        .dimensions
        .iter()
        .map(|of| (of.id, of.size, &*of.name))
        .collect();
    assert_eq!(
        dimensions,
        [
            (3, 8, "DIMENSION_SHADER_ENGINE"),
            (7, 1, "DIMENSION_INSTANCE")
        ]
    );
    let positions: Vec<_> = waves
        .instances
        .iter()
        .map(|of| of.positions.clone())
        .collect();
    let expected: Vec<_> = (0..8).map(|engine| vec![(3, engine), (7, 0)]).collect();
    assert_eq!(positions, expected);
    let sums: Vec<f64> = later.counted.sums(0).map(|(_, sum)| sum).collect();
    assert_eq!(sums, [1164.25, 1590.0, 12428.0, 39176.0]);
}
