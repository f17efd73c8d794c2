//! A session rebuilt from a database that the original wrote must come out as the files the original wrote.

use crate::support::write as written;

use crate::support;

use std::collections::BTreeMap;
use std::path::Path;

use rpd_core::domain::{Domain, Kind};
use rpd_core::naming::Target;
use rpd_core::options::{AgentIndex, Format, Options};
use rpd_core::session::{ExtendedStrings, LoadOptions, Session, Table};
use rpd_core::stats::{SessionStats, StatRow, StatTable};
use rpd_core::storage::column::Storage;
use rpd_core::text::args::layout;
use rpd_formats::rocpd::read::Database;
use rusqlite::{Connection, OpenFlags, types::Value};
use written::{write, write_one};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");

fn golden_database() -> Connection {
    // Immutable: the reader must not try to make side files beside it.
    let path = format!("file:{TESTDATA}/trace_results.db?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(path, flags).expect("the golden database")
}

fn target(directory: &Path) -> Target {
    Target {
        directory: directory.to_owned(),
        prefix: "trace".to_owned(),
    }
}

fn sorted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].sort_unstable();
    lines
}

fn assert_same_rows(directory: &Path, name: &str) {
    let read = |directory: &Path| {
        std::fs::read_to_string(directory.join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let (ours, golden) = (read(directory), read(Path::new(TESTDATA)));
    assert!(ours.ends_with('\n'), "{name}");
    assert_eq!(sorted_lines(&ours), sorted_lines(&golden), "{name}");
}

#[test]
fn csv_files_have_the_rows_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = support::session(&golden_database());
    let files = write(
        Format::Csv,
        &session,
        None,
        &Options::default(),
        &target(directory.path()),
    )
    .expect("written");
    assert_eq!(files.len(), 7);
    for name in [
        "agent_info",
        "hip_api_trace",
        "hsa_api_trace",
        "kernel_trace",
        "marker_api_trace",
        "memory_allocation_trace",
        "memory_copy_trace",
    ] {
        assert_same_rows(directory.path(), &format!("trace_{name}.csv"));
    }
    let left_over = std::fs::read_dir(directory.path())
        .expect("a directory")
        .count();
    assert_eq!(left_over, files.len());
}

/// Reads a statistics file back, so that writing it again shows every number format.
fn read_statistics(name: &str, domain: Domain, names: &mut ExtendedStrings<'_>) -> Vec<StatRow> {
    let text = std::fs::read_to_string(format!("{TESTDATA}/trace_{name}.csv")).expect(name);
    text.lines()
        .skip(1)
        .map(|line| {
            let (name, numbers) = line[1..].split_once("\",").expect("a name");
            let numbers: Vec<&str> = numbers.split(',').collect();
            let integer = |index: usize| numbers[index].parse::<u64>().expect("a number");
            let float = |index: usize| numbers[index].parse::<f64>().expect("a number");
            StatRow {
                name: names.intern(name),
                domain,
                calls: integer(0),
                total: integer(1),
                average: float(2),
                percentage: float(3),
                min: integer(4),
                max: integer(5),
                std_dev: float(6),
            }
        })
        .collect()
}

#[test]
fn statistics_files_have_the_number_formats_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = support::session(&golden_database());
    let tables = [
        ("hip_api_stats", Domain::HipApi),
        ("marker_api_stats", Domain::MarkerApi),
        ("kernel_stats", Domain::KernelDispatch),
        ("memory_copy_stats", Domain::MemoryCopy),
    ];
    let mut names = ExtendedStrings::default();
    let stats = SessionStats {
        domains: tables
            .iter()
            .map(|&(name, domain)| {
                let rows = read_statistics(name, domain, &mut names).into();
                let title = domain.label().to_owned();
                (domain, StatTable { title, rows })
            })
            .collect(),
        overall: read_statistics("domain_stats", Domain::HipApi, &mut names),
        names: names.into(),
        left_out: 0,
    };
    write(
        Format::Csv,
        &session,
        Some(&stats),
        &Options {
            stats: true,
            ..Options::default()
        },
        &target(directory.path()),
    )
    .expect("written");
    for name in tables
        .map(|(name, _)| name)
        .into_iter()
        .chain(["domain_stats"])
    {
        assert_same_rows(directory.path(), &format!("trace_{name}.csv"));
    }
}

#[test]
fn csv_numbers_agents_as_requested() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = support::session(&golden_database());
    let options = Options {
        agent_index: AgentIndex::TypeRelative,
        group_by_queue: true,
        ..Options::default()
    };
    write(
        Format::Csv,
        &session,
        None,
        &options,
        &target(directory.path()),
    )
    .expect("written");
    let copies = std::fs::read_to_string(directory.path().join("trace_memory_copy_trace.csv"))
        .expect("copies");
    let row = copies.lines().nth(1).expect("a row");
    assert!(
        row.starts_with("\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",0,\"CPU 0\",\"GPU 0\","),
        "{row}"
    );
}

#[test]
fn minimum_size_keeps_small_outputs_from_being_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = support::session(&golden_database());
    let target = target(directory.path());
    let mut options = Options {
        minimum_output_bytes: 1 << 40,
        ..Options::default()
    };
    assert!(
        write(Format::Csv, &session, None, &options, &target)
            .expect("nothing to do")
            .is_empty()
    );
    assert_eq!(
        write_one(Format::Rocpd, &session, None, &options, &target).expect("nothing to do"),
        None
    );
    // Enough in all, and in the HSA calls, but in no other domain.
    options.minimum_output_bytes = 50_000;
    let files = write(Format::Csv, &session, None, &options, &target).expect("written");
    let names: Vec<_> = files.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["trace_hsa_api_trace.csv", "trace_agent_info.csv"]);
    assert_eq!(
        rpd_formats::csv::left_out(&session, &options),
        [
            "hip_api_trace",
            "marker_api_trace",
            "kernel_trace",
            "memory_copy_trace",
            "memory_allocation_trace"
        ]
    );
    let all = rpd_formats::csv::left_out(&session, &Options::default());
    assert_eq!(all, Vec::<String>::new());
    let empty = Session::default();
    let options = Options::default();
    assert!(
        write(Format::Csv, &empty, None, &options, &target)
            .expect("nothing to do")
            .is_empty()
    );
    assert_eq!(
        write_one(Format::Rocpd, &empty, None, &options, &target).expect("nothing to do"),
        None
    );
}

#[test]
fn database_has_argument_types_and_names_of_the_original() {
    let golden = golden_database();
    let mut statement = golden
        .prepare(
            "SELECT DISTINCT r.category, r.name, a.position, a.type, a.name FROM regions r
                JOIN rocpd_arg a ON a.event_id = r.event_id",
        )
        .expect("arguments");
    let mut rows = statement.query([]).expect("arguments");
    let mut seen = 0;
    while let Some(row) = rows.next().expect("arguments") {
        let text = |index| -> String { row.get(index).expect("a text") };
        let position: u32 = row.get(2).expect("a number");
        let kind = Kind::from_name(&text(0)).expect("a kind");
        let layout = layout(kind, &text(1)).expect("a layout");
        let argument = &layout.arguments[position as usize];
        assert_eq!(
            (argument.resolved, argument.name),
            (&*text(3), &*text(4)),
            "{}",
            text(1)
        );
        seen += 1;
    }
    assert!(seen > 40, "{seen}");
}

type Rows = BTreeMap<String, usize>;

/// The rows of a view as texts with how often each occurs; columns that name the recording left out.
fn rows(connection: &Connection, view: &str, without: &[&str]) -> Rows {
    let mut statement = connection
        .prepare(&format!("SELECT * FROM \"{view}\""))
        .unwrap_or_else(|error| panic!("{view}: {error}"));
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = statement.query([]).expect(view);
    let mut rows = Rows::new();
    while let Some(row) = found
        .next()
        .unwrap_or_else(|error| panic!("{view}: {error}"))
    {
        let mut text = String::new();
        for (index, name) in columns.iter().enumerate() {
            if !without.contains(&name.as_str()) {
                let value: Value = row.get(index).expect("a value");
                text += &format!("{name}={value:?} ");
            }
        }
        *rows.entry(text).or_default() += 1;
    }
    rows
}

#[test]
fn database_views_have_the_rows_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let golden = golden_database();
    let session = support::session(&golden);
    let path = write_one(
        Format::Rocpd,
        &session,
        None,
        &Options::default(),
        &target(directory.path()),
    )
    .expect("written")
    .expect("a file");
    assert_eq!(path, directory.path().join("trace_results.db"));
    assert_eq!(
        std::fs::read_dir(directory.path())
            .expect("a directory")
            .count(),
        1
    );
    let ours = Connection::open(path).expect("our database");

    // Ids of strings, events and tracks are arbitrary, and the node is another one here.
    let arbitrary = [
        "guid",
        "nid",
        "machine_id",
        "hostname",
        "system_release",
        "system_version",
        "event_id",
        "system_name",
    ];
    let mut views = golden
        .prepare("SELECT name FROM sqlite_master WHERE type = 'view'")
        .expect("views");
    let views: Vec<String> = views
        .query_map([], |row| row.get(0))
        .expect("views")
        .collect::<Result<_, _>>()
        .expect("views");
    assert_eq!(views.len(), 41);
    for view in &views {
        // Tables are compared through the views that join them; strings and settings differ.
        let count = |connection: &Connection| -> i64 {
            connection
                .query_row(&format!("SELECT count(*) FROM \"{view}\""), [], |row| {
                    row.get(0)
                })
                .unwrap_or_else(|error| panic!("{view}: {error}"))
        };
        let columns = |connection: &Connection| -> Vec<String> {
            let statement = connection
                .prepare(&format!("SELECT * FROM \"{view}\""))
                .expect(view);
            statement.column_names().map(str::to_owned).collect()
        };
        assert_eq!(columns(&ours), columns(&golden), "{view}");
        if view != "rocpd_string" {
            assert_eq!(count(&ours), count(&golden), "{view}");
        }
        if view.starts_with("rocpd_") {
            continue;
        }
        let mut without = arbitrary.to_vec();
        if view == "memory_allocations" {
            // Numbered in another order.
            without.push("id");
        }
        if view == "events_args" || view == "region_args" {
            continue;
        }
        let (ours, golden) = (rows(&ours, view, &without), rows(&golden, view, &without));
        for (row, times) in &golden {
            assert_eq!(
                ours.get(row),
                Some(times),
                "{view}: {row}\nours: {:?}",
                ours.keys().next()
            );
        }
    }
    let descriptions = |connection: &Connection| -> Vec<String> {
        let mut statement = connection
            .prepare("SELECT extdata FROM rocpd_info_agent UNION ALL SELECT extdata FROM rocpd_info_code_object
                UNION ALL SELECT extdata FROM rocpd_info_kernel_symbol")
            .expect("descriptions");
        let rows = statement
            .query_map([], |row| row.get(0))
            .expect("descriptions");
        rows.collect::<Result<_, _>>().expect("descriptions")
    };
    assert_eq!(descriptions(&ours), descriptions(&golden));
    let check: String = ours
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("a check");
    assert_eq!(check, "ok");
    let mut broken = ours.prepare("PRAGMA foreign_key_check").expect("a check");
    assert!(!broken.exists([]).expect("a check"));
}

/// The original's commands attach a database, list its tables by their suffix, put temporary views over the `rocpd_*`
/// views of the same names, and over those their own data views.
#[test]
fn queries_of_the_original_find_its_rows_in_our_database() {
    let directory = tempfile::tempdir().expect("a directory");
    let golden = golden_database();
    let path = write_one(
        Format::Rocpd,
        &support::session(&golden),
        None,
        &Options::default(),
        &target(directory.path()),
    )
    .expect("written")
    .expect("a file");
    let reader = Connection::open_in_memory().expect("a connection");
    reader
        .execute(
            "ATTACH DATABASE ?1 AS db0",
            [path.to_str().expect("a path")],
        )
        .expect("attached");
    let list = |connection: &Connection, sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).expect(sql);
        let rows = statement.query_map([], |row| row.get(0)).expect(sql);
        rows.collect::<Result<_, _>>().expect(sql)
    };
    let suffix = list(
        &reader,
        "SELECT value FROM db0.rocpd_metadata WHERE tag = 'uuid'",
    )
    .remove(0);
    let tables = list(
        &reader,
        "SELECT name FROM db0.sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_%'",
    );
    assert_eq!(tables.len(), 20);
    for table in tables {
        let base = table.strip_suffix(&suffix).expect("the suffix");
        let sql = format!("CREATE TEMPORARY VIEW {base} AS SELECT * FROM db0.{base}");
        reader.execute_batch(&sql).expect(base);
    }
    let views = list(
        &golden,
        "SELECT name || '|' || sql FROM sqlite_master WHERE type = 'view' AND name NOT LIKE 'rocpd_%'",
    );
    assert_eq!(views.len(), 21);
    for view in &views {
        let (_, sql) = view.split_once('|').expect("a name");
        let sql = sql.replacen("CREATE VIEW", "CREATE TEMPORARY VIEW", 1);
        reader.execute_batch(&sql).expect(view);
    }
    for view in &views {
        let (name, _) = view.split_once('|').expect("a name");
        let count = |connection: &Connection| {
            list(
                connection,
                &format!("SELECT CAST(count(*) AS TEXT) FROM \"{name}\""),
            )
        };
        assert_eq!(count(&reader), count(&golden), "{name}");
    }
}

/// The files of all formats, by name. They are written to `directory`, whose name is in them, and removed.
fn all_files(session: &Session, directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let (options, target) = (Options::default(), target(directory));
    let stats = SessionStats::default();
    for &format in Format::ALL {
        if written::lacks_library(format) {
            continue;
        }
        let written = write(format, session, Some(&stats), &options, &target);
        assert!(written.is_ok(), "{}: {written:?}", format.word());
    }
    let mut files = BTreeMap::new();
    for directory in [directory, &directory.join("trace_results")] {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            // An archive has an id of its own in its anchor.
            if entry.path().is_file() && entry.path().extension() != Some("otf2".as_ref()) {
                let bytes = std::fs::read(entry.path()).expect("readable");
                files.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
            }
        }
    }
    std::fs::remove_dir_all(directory).expect("removed");
    files
}

#[test]
fn writers_write_tables_in_files_like_tables_in_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("out");
    let files = all_files(&support::session(&golden_database()), &out);
    assert!(files.len() > 12);
    for rows in [1, 7] {
        let storage = Storage::new(directory.path()).with_rows(rows);
        let mut session = support::session(&golden_database());
        for table in Table::ALL {
            let columns = session.columns_mut(*table);
            columns.spill(&storage).expect("written");
            columns.seal(&storage).expect("mapped");
        }
        session.storage = Some(storage);
        assert!(session.calls.start.is_mapped());
        let others = all_files(&session, &out);
        assert!(files.keys().eq(others.keys()));
        for (name, bytes) in &files {
            assert!(others[name] == *bytes, "{name} differs");
        }
    }
}

/// The sessions are read from databases with few rows in memory and with all of them, in the order of the recordings.
#[test]
fn reader_reads_through_files_like_in_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("out");
    for name in [
        "trace_results.db",
        "counters/trace_results.db",
        "counters-plus-trace/trace_results.db",
    ] {
        // Temporary files go beside the database.
        let path = directory.path().join("database.db");
        std::fs::copy(Path::new(TESTDATA).join(name), &path).expect("copied");
        let database = Database::open(&path).expect("a database");
        let session = |rows| {
            let load = LoadOptions { args: true, rows };
            let read = database.session(&database.recordings()[0], load);
            read.expect("a session").0
        };
        let in_memory = session(None);
        assert!(!in_memory.calls.start.is_mapped());
        let files = all_files(&in_memory, &out);
        assert!(files.len() > 6, "{name}: {:?}", files.keys());
        for rows in [1, 7, 64] {
            let through_files = session(Some(rows));
            assert_eq!(
                through_files.dispatches.start.is_mapped(),
                in_memory.dispatches.len() >= rows,
            );
            let others = all_files(&through_files, &out);
            assert!(files.keys().eq(others.keys()), "{name}");
            for (file, bytes) in &files {
                assert!(
                    others[file] == *bytes,
                    "{file} of {name} differs with {rows} rows"
                );
            }
        }
        let left = std::fs::read_dir(directory.path()).expect("listed").count();
        assert_eq!(left, 1, "only the database is there");
    }
}
