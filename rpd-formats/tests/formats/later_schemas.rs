//! Databases of later schemas: what they have beyond the first is read, or counted and named.

use std::path::Path;

use rpd_core::agent::{Agent, AgentType};
use rpd_core::ids::AgentHandle;
use rpd_core::options::{Format, Options, RocpdSchema};
use rpd_core::session::{LoadOptions, Session, Table};
use rpd_core::spool::format::GraphNode;
use rpd_formats::rocpd::read::Database;

use crate::support::write::write;
use crate::tables::{add_row, session_with, target};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/trace_results.db");
/// What follows the names of its tables.
const SUFFIX: &str = "_00000057_e5b7_75b7_b481_79f7795676a5";

/// The session of the golden database after changes to it. `%` stands for the suffix of its tables.
fn session(changes: &[&str]) -> Session {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x_results.db");
    std::fs::write(&path, std::fs::read(GOLDEN).expect("readable")).expect("written");
    let connection = rusqlite::Connection::open(&path).expect("a database");
    for change in changes {
        let sql = change.replace('%', SUFFIX);
        connection.execute_batch(&sql).expect(&sql);
    }
    drop(connection);
    read(&path)
}

fn read(path: &Path) -> Session {
    let database = Database::open(path).expect("a database");
    let recording = &database.recordings()[0];
    let read = database.session(recording, LoadOptions::default());
    read.expect("a session").0
}

/// Notes about what is left out.
fn notes(changes: &[&str]) -> Vec<String> {
    session(changes).ledger.notes
}

#[test]
fn database_of_the_first_schema_has_nothing_to_leave_out() {
    assert_eq!(notes(&[]), Vec::<String>::new());
}

/// sdk-newer-68 and sdk-newer-69
#[test]
fn runs_of_replayed_dispatches_are_read() {
    let all = session(&[]).dispatches.len();
    let add = "ALTER TABLE rocpd_kernel_dispatch% ADD COLUMN replay_pass INTEGER";
    let pipe = "ALTER TABLE rocpd_kernel_dispatch% ADD COLUMN pipe_id INTEGER DEFAULT -1";
    for changes in [&[add][..], &[pipe, add]] {
        let without = session(changes);
        assert_eq!(without.ledger.notes, Vec::<String>::new());
        assert!(without.dispatches.replay.is_empty());
        assert_eq!(without.dispatches.len(), all);
    }
    let fill = "UPDATE rocpd_kernel_dispatch% SET replay_pass = id - id / 3 * 3";
    let with = session(&[add, fill]);
    assert_eq!(with.ledger.notes, Vec::<String>::new());
    assert_eq!(with.dispatches.len(), all);
    let passes: Vec<_> = (0..all)
        .filter_map(|index| with.dispatches.replay_pass(index))
        .collect();
    assert_eq!(passes.len(), all);
    assert!(passes.iter().all(|pass| *pass < 3) && passes.contains(&0));
}

#[test]
fn each_column_of_a_later_schema_is_counted_where_it_has_values() {
    let dispatches = session(&[]).dispatches.len();
    let column = "pipe_id";
    let add = format!("ALTER TABLE rocpd_kernel_dispatch% ADD COLUMN {column} INTEGER DEFAULT -1");
    assert_eq!(notes(&[&add]), Vec::<String>::new(), "{column}");
    let fill = format!("UPDATE rocpd_kernel_dispatch% SET {column} = 1");
    let notes = notes(&[&add, &fill]);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with(&format!("{dispatches} ")), "{notes:?}");
    assert!(
        notes[0].ends_with(&format!("rocpd_kernel_dispatch.{column}")),
        "{notes:?}"
    );
}

/// `sdk-newer-72`
#[test]
fn samples_of_a_development_branch_are_counted_and_named() {
    let notes = notes(&[
        "CREATE TABLE rocpd_gpu_pc_sample% (id INTEGER PRIMARY KEY, pc INTEGER)",
        "INSERT INTO rocpd_gpu_pc_sample% (pc) VALUES (1), (2)",
        "CREATE TABLE rocpd_blob_event% (id INTEGER PRIMARY KEY, blob BLOB)",
        "INSERT INTO rocpd_blob_event% (blob) VALUES (x'00')",
    ]);
    assert_eq!(
        notes,
        [
            "1 records in binary form are left out: this rpd does not read rocpd_blob_event",
            "2 PC samples are left out: this rpd does not read rocpd_gpu_pc_sample",
        ]
    );
}

/// `sdk-newer-70`
#[test]
fn column_and_table_of_an_unknown_schema_are_named_once() {
    let notes = notes(&[
        "ALTER TABLE rocpd_region% ADD COLUMN colour TEXT DEFAULT 'red'",
        "CREATE TABLE rocpd_new_thing% (id INTEGER PRIMARY KEY, x TEXT)",
        "INSERT INTO rocpd_new_thing% (x) VALUES ('a'), ('b')",
        "CREATE TABLE rocpd_empty% (id INTEGER PRIMARY KEY)",
    ]);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert_eq!(
        notes[0],
        "2 rows are left out: this rpd does not read rocpd_new_thing"
    );
    assert!(notes[1].ends_with("rocpd_region.colour"), "{notes:?}");
}

#[test]
fn launches_of_graphs_without_their_view_are_named_for_what_they_are() {
    let notes = notes(&[
        "CREATE TABLE rocpd_graph_launch% (id INTEGER PRIMARY KEY, graph_exec_id INTEGER)",
        "INSERT INTO rocpd_graph_launch% (graph_exec_id) VALUES (1), (1), (2)",
    ]);
    assert_eq!(
        notes,
        ["3 launches of graphs are left out: this rpd does not read rocpd_graph_launch"]
    );
}

/// What the schema 3.0.2 adds.
const GRAPHS: [&str; 8] = [
    "UPDATE rocpd_metadata% SET value = '3.0.2' WHERE tag = 'schema_version'",
    "ALTER TABLE rocpd_kernel_dispatch% ADD COLUMN graph_exec_id INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE rocpd_kernel_dispatch% ADD COLUMN graph_node_id INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE rocpd_memory_copy% ADD COLUMN graph_exec_id INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE rocpd_memory_copy% ADD COLUMN graph_node_id INTEGER NOT NULL DEFAULT 0",
    "DROP VIEW rocpd_kernel_dispatch; CREATE VIEW rocpd_kernel_dispatch AS SELECT * FROM rocpd_kernel_dispatch%; \
     DROP VIEW rocpd_memory_copy; CREATE VIEW rocpd_memory_copy AS SELECT * FROM rocpd_memory_copy%",
    "CREATE TABLE rocpd_graph_launch% (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, \
     agent_id INTEGER, queue_id INTEGER, start BIGINT, \"end\" BIGINT, graph_exec_id INTEGER, kernel_dispatch_count INTEGER, \
     event_id INTEGER, extdata JSONB)",
    "CREATE VIEW rocpd_graph_launch AS SELECT * FROM rocpd_graph_launch%",
];

/// Launch 1 of the graph 7, and its node in the first dispatch.
const ONE_LAUNCH: [&str; 2] = [
    "INSERT INTO rocpd_graph_launch% SELECT 1, guid, nid, pid, tid, agent_id, NULL, start - 20, start - 10, 7, 1, event_id, '{}' \
     FROM rocpd_kernel_dispatch% ORDER BY id LIMIT 1",
    "UPDATE rocpd_kernel_dispatch% SET graph_exec_id = 7, graph_node_id = 3 \
     WHERE id = (SELECT min(id) FROM rocpd_kernel_dispatch%)",
];

/// `sdk-newer-24`
#[test]
fn graphs_of_another_writer_are_read_and_converted() {
    let changes: Vec<&str> = GRAPHS.into_iter().chain(ONE_LAUNCH).collect();
    let session = session(&changes);
    assert_eq!(session.ledger.notes, Vec::<String>::new());
    assert_eq!(session.graph_launches.len(), 1);
    let launch = session.graph_launches.row(0);
    assert_eq!((launch.exec, launch.dispatches), (7, 1));
    let of_graph = (0..session.dispatches.len()).map(|index| session.dispatches.graph_of(index));
    assert_eq!(
        of_graph
            .filter(|node| (node.exec, node.node) == (7, 3))
            .count(),
        1
    );
    let header = |name: &str| {
        let files = csv(&session);
        let text = files.iter().find(|(file, _)| file.ends_with(name));
        let text = text.map(|(_, text)| text.lines().next().unwrap_or_default().to_owned());
        text.unwrap_or_else(|| {
            panic!(
                "{name} among {:?}",
                files.iter().map(|file| &file.0).collect::<Vec<_>>()
            )
        })
    };
    let kernels = header("kernel_trace.csv");
    let graphs = "\"Stream_Id\",\"Graph_Exec_Id\",\"Graph_Node_Id\",\"Thread_Id\"";
    assert!(kernels.contains(graphs), "{kernels}");
    let launches = header("graph_launch_trace.csv");
    assert_eq!(launches.split(',').count(), 11, "{launches}");
    assert!(
        launches.starts_with("\"Guid\",\"Kind\",\"Agent_Id\",\"Queue_Id\""),
        "{launches}"
    );
}

/// The files that the converter of the original makes.
fn csv(session: &Session) -> Vec<(String, String)> {
    let directory = tempfile::tempdir().expect("a directory");
    let target = rpd_core::naming::Target {
        directory: directory.path().to_owned(),
        prefix: "p".to_owned(),
    };
    let sessions = std::slice::from_ref(session);
    let options = rpd_core::options::Options::default();
    let files = rpd_formats::csv::write_combined(sessions, &options, &target).expect("written");
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("text");
        (path.to_string_lossy().into_owned(), text)
    };
    files.iter().map(read).collect()
}

/// `sdk-newer-25`
#[test]
fn files_of_the_first_schema_have_no_columns_of_graphs() {
    let session = session(&[]);
    for (name, text) in csv(&session) {
        assert!(!text.contains("Graph_"), "{name}");
        assert!(
            !name.contains("graph_launch") && !name.contains("hip_event"),
            "{name}"
        );
    }
}

/// `sdk-newer-34`
#[test]
fn events_of_another_writer_are_read_and_converted() {
    let session = session(&[
        "UPDATE rocpd_metadata% SET value = '3.0.4' WHERE tag = 'schema_version'",
        "CREATE TABLE rocpd_hip_event% (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, \
         \"end\" BIGINT, name_id INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER, hip_event_handle INTEGER, \
         source_queue_id INTEGER, event_id INTEGER, extdata JSONB)",
        "CREATE VIEW rocpd_hip_event AS SELECT * FROM rocpd_hip_event%",
        "INSERT INTO rocpd_string% (string) VALUES ('HIP_EVENT_RECORD'), ('HIP_EVENT_WAIT')",
        "INSERT INTO rocpd_hip_event% SELECT 1, guid, nid, pid, tid, start, \"end\", \
         (SELECT id FROM rocpd_string% WHERE string = 'HIP_EVENT_RECORD'), agent_id, queue_id, stream_id, 4096, queue_id, \
         event_id, '{}' FROM rocpd_kernel_dispatch% LIMIT 1",
        "INSERT INTO rocpd_hip_event% SELECT 2, guid, nid, pid, tid, start, \"end\", \
         (SELECT id FROM rocpd_string% WHERE string = 'HIP_EVENT_WAIT'), agent_id, queue_id, stream_id, 4096, queue_id, \
         event_id, '{}' FROM rocpd_kernel_dispatch% LIMIT 1",
    ]);
    assert_eq!(session.ledger.notes, Vec::<String>::new());
    let mut operations: Vec<u16> = session.hip_events.operation.iter().copied().collect();
    operations.sort_unstable();
    assert_eq!(operations, [1, 2]);
    let files = csv(&session);
    let (_, text) = files
        .iter()
        .find(|(name, _)| name.ends_with("hip_event_trace.csv"))
        .expect("a file of events");
    assert_eq!(
        text.lines().next().unwrap_or_default().split(',').count(),
        13
    );
    assert_eq!(text.lines().count(), 3);
}

/// Samples of counters lie among the samples of marks, with the event of the dispatch in which they were taken.
#[test]
fn sampled_counters_are_no_records_of_dispatches() {
    let calls = session(&[]).calls.len();
    let changed = session(&[
        "ALTER TABLE rocpd_pmc_event% ADD COLUMN sample_id INTEGER",
        "DROP VIEW rocpd_pmc_event",
        "CREATE VIEW rocpd_pmc_event AS SELECT * FROM rocpd_pmc_event%",
        "INSERT INTO rocpd_track% (nid, pid, tid) SELECT nid, pid, tid FROM rocpd_track% LIMIT 1",
        "INSERT INTO rocpd_sample% (track_id, timestamp, event_id) \
         SELECT (SELECT max(id) FROM rocpd_track%), start, event_id FROM rocpd_kernel_dispatch% LIMIT 1",
        "INSERT INTO rocpd_info_pmc% (nid, pid, name, symbol) \
         SELECT nid, pid, 'SQ_WAVES', 'SQ_WAVES' FROM rocpd_kernel_dispatch% LIMIT 1",
        "INSERT INTO rocpd_pmc_event% (event_id, pmc_id, value, sample_id) \
         SELECT k.event_id, (SELECT max(id) FROM rocpd_info_pmc%), 1e9, (SELECT max(id) FROM rocpd_sample%) \
         FROM rocpd_kernel_dispatch% k LIMIT 1",
    ]);
    assert_eq!(changed.calls.len(), calls);
    assert_eq!(changed.ledger.notes.len(), 1, "{:?}", changed.ledger.notes);
    let note = &changed.ledger.notes[0];
    assert!(
        note.starts_with("1 values of counters that were sampled"),
        "{note}"
    );
    assert!(
        changed.counted.values.is_empty(),
        "a sampled value was counted"
    );
}

/// `sdk-newer-74`
#[test]
fn network_adapter_keeps_its_type() {
    let session = session(&[
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, '(''CPU'', ''GPU'')', '(''CPU'', ''GPU'', ''NIC'')') \
         WHERE name = 'rocpd_info_agent%'",
        "PRAGMA writable_schema = RESET",
        "INSERT INTO rocpd_info_agent% (nid, pid, type, absolute_index, name) \
         SELECT nid, pid, 'NIC', 9, 'mlx5_0' FROM rocpd_info_agent% LIMIT 1",
    ]);
    let agent = session.agents.iter().find(|agent| agent.name == "mlx5_0");
    assert_eq!(agent.expect("the adapter").agent_type.label(), "NIC");
}

/// Events of the driver as the original's tool writes them: regions with texts, and counters of their kinds.
const DRIVER: [&str; 5] = [
    "INSERT OR IGNORE INTO rocpd_string% (string) VALUES ('KFD_PAGE_MIGRATE'), ('KFD_EVENT_DROPPED_EVENTS'), \
     ('KFD_PAGE_MIGRATE_PREFETCH')",
    "INSERT INTO rocpd_info_pmc% (id, nid, pid, name, symbol, component, value_type, block) \
     SELECT 8070450532247928837, nid, pid, 'KFD_PAGE_MIGRATE', 'KFD_PAGE_MIGRATE', 'rocm', 'ABS', 'KFD' \
     FROM rocpd_kernel_dispatch% LIMIT 1",
    "INSERT INTO rocpd_event% (id, category_id, stack_id, parent_stack_id, correlation_id, extdata) VALUES \
     (90001, (SELECT id FROM rocpd_string% WHERE string = 'KFD_PAGE_MIGRATE'), 0, 0, 0, '{\"kfd\":{\"start_address\":\"4096\",\"end_address\":\"12288\",\"src_agent_id\":\"1\",\"dst_agent_id\":\"0\",\"prefetch_agent_id\":\"-1\",\"preferred_agent_id\":\"-1\",\"error_code\":\"-12\",\"colour\":\"red\"}}'), \
     (90002, (SELECT id FROM rocpd_string% WHERE string = 'KFD_EVENT_DROPPED_EVENTS'), 0, 0, 0, '{\"kfd\":{\"count\":\"5\"}}')",
    "INSERT INTO rocpd_region% (id, nid, pid, tid, start, \"end\", name_id, event_id) \
     SELECT 90001, nid, pid, tid, start, start + 7, \
     (SELECT id FROM rocpd_string% WHERE string = 'KFD_PAGE_MIGRATE_PREFETCH'), 90001 FROM rocpd_kernel_dispatch% LIMIT 1; \
     INSERT INTO rocpd_region% (id, nid, pid, tid, start, \"end\", name_id, event_id) \
     SELECT 90002, nid, pid, tid, start, start, \
     (SELECT id FROM rocpd_string% WHERE string = 'KFD_EVENT_DROPPED_EVENTS'), 90002 FROM rocpd_kernel_dispatch% LIMIT 1",
    "INSERT INTO rocpd_pmc_event% (event_id, pmc_id, value) VALUES (90001, 8070450532247928837, 8192)",
];

/// `sdk-newer-41`
#[test]
fn driver_events_of_another_writer_are_read_and_converted() {
    let without = session(&[]);
    let session = session(&DRIVER);
    assert_eq!(
        session.ledger.notes,
        ["1 values are left out: this rpd does not read rocpd_event.extdata.kfd.colour"]
    );
    assert_eq!(session.calls.len(), without.calls.len());
    assert_eq!(session.counters.len(), without.counters.len());
    assert_eq!(session.kfd_events.len(), 2);
    let places: Vec<usize> = session.kfd_events.indices().collect();
    let moved = places
        .iter()
        .map(|&index| session.kfd_events.row(index))
        .find(|event| event.count == 0)
        .expect("a migration");
    assert_eq!(
        session.operation_name(moved.operation),
        "KFD_PAGE_MIGRATE_PREFETCH"
    );
    assert_eq!(
        (moved.address, moved.end_address, moved.error),
        (4096, 12288, -12)
    );
    let node = |handle| {
        let agents = session.agents.iter();
        let mut found = agents.filter(|agent| agent.handle == handle);
        found.next().map(|agent| agent.node_id)
    };
    assert_eq!(
        (node(moved.agent), node(moved.dst_agent)),
        (Some(1), Some(0))
    );
    assert_eq!((moved.preferred_agent.0, moved.prefetch_agent.0), (0, 0));
    let files = csv(&session);
    let (_, text) = files
        .iter()
        .find(|(name, _)| name.ends_with("kfd_trace.csv"))
        .expect("a file of events");
    assert_eq!(text.lines().count(), 3, "{text}");
}

/// A database of a session with a launch, nodes, an event and an adapter, in a schema.
fn written(schema: Option<RocpdSchema>, directory: &Path) -> (Session, String, Vec<String>) {
    let session = session_with(|session| {
        for table in [
            Table::Dispatches,
            Table::GraphLaunches,
            Table::HipEvents,
            Table::KfdEvents,
        ] {
            add_row(session, table, 200);
        }
        session.dispatches.set_graph(GraphNode { exec: 3, node: 1 });
        session.agents.push(Agent {
            handle: AgentHandle(77),
            agent_type: AgentType::Nic,
            node_id: 7,
            name: "mlx5_0".to_owned(),
            ..Agent::default()
        });
    });
    let options = Options {
        rocpd_schema: schema,
        ..Options::default()
    };
    let lines = rpd_formats::rocpd::without_place(&session, &options);
    write(Format::Rocpd, &session, None, &options, &target(directory)).expect("written");
    let path = directory.join("p_results.db");
    let connection = rusqlite::Connection::open(&path).expect("a database");
    let version = "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'";
    let version = connection.query_row(version, [], |row| row.get(0));
    (read(&path), version.expect("a version"), lines)
}

#[test]
fn database_has_the_schema_that_is_asked_for() {
    let cases = [
        (None, "3.0.4", (1, 1, true), vec![]),
        (Some(RocpdSchema::Events), "3.0.4", (1, 1, true), vec![]),
        (
            Some(RocpdSchema::Sampled),
            "3.0.3",
            (1, 0, true),
            vec!["1 HIP events"],
        ),
        (
            Some(RocpdSchema::Graphs),
            "3.0.2",
            (1, 0, true),
            vec!["1 HIP events"],
        ),
        (
            Some(RocpdSchema::Adapters),
            "3.0.1",
            (0, 0, true),
            vec![
                "1 launches of graphs",
                "1 graphs of dispatches and copies",
                "1 HIP events",
            ],
        ),
        (
            Some(RocpdSchema::First),
            "3",
            (0, 0, false),
            vec![
                "1 types of network adapters",
                "1 launches of graphs",
                "1 graphs of dispatches and copies",
                "1 HIP events",
            ],
        ),
    ];
    for (schema, version, (launches, events, has_adapter), lines) in cases {
        let directory = tempfile::tempdir().expect("a directory");
        let (read, found, said) = written(schema, directory.path());
        assert_eq!(found, version);
        assert_eq!(
            (read.graph_launches.len(), read.hip_events.len()),
            (launches, events),
            "{version}"
        );
        assert_eq!(
            read.dispatches.graph_of(0).exec,
            if launches > 0 { 3 } else { 0 }
        );
        assert_eq!(read.kfd_events.len(), 1, "{version}");
        assert_eq!(read.kfd_events.address[0], 4096, "{version}");
        let is_adapter = |agent: &Agent| agent.agent_type == AgentType::Nic;
        assert_eq!(read.agents.iter().any(is_adapter), has_adapter, "{version}");
        assert_eq!(said.len(), lines.len(), "{said:?}");
        for (said, line) in said.iter().zip(lines) {
            assert!(said.starts_with(line), "{said}");
        }
    }
}
