//! Programs that read the tables of a database by their names, not the views: viewers select from them, and the merging command of
//! the original makes its views over them by the order of their columns.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rpd_core::ids::ProcessId;
use rpd_core::naming::Target;
use rpd_core::options::{Format, Layout, Options};
use rpd_core::session::{LoadOptions, Session};
use rpd_core::spool::stacks::StackMode;
use rpd_formats::rocpd::read::Database;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use crate::facts::add_stacks;
use crate::support::write::write_one;

const GOLDEN: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/trace_results.db"),
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/testdata/counters-plus-trace/trace_results.db"
    ),
];

fn open(path: &Path) -> Connection {
    let path = format!("file:{}?immutable=1", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(path, flags).expect("a database")
}

/// The recording in a database.
fn session(path: &str) -> Session {
    let database = Database::open(Path::new(path)).expect("a database");
    let load = LoadOptions {
        args: true,
        rows: None,
    };
    let (session, _) = database
        .session(&database.recordings()[0], load)
        .expect("a session");
    session
}

/// A session with the records of a golden database as those of process `pid`, with a guid of its own.
fn another(path: &str, pid: u32) -> Session {
    let mut session = session(path);
    session.origin = None;
    session.process.pid = ProcessId(pid);
    session
}

fn database(directory: &Path, name: &str, session: &Session, options: &Options) -> PathBuf {
    let target = Target {
        directory: directory.to_owned(),
        prefix: name.to_owned(),
    };
    let file = write_one(Format::Rocpd, session, None, options, &target);
    file.expect("written").expect("a file")
}

fn of_layout(layout: Layout) -> Options {
    Options {
        layout,
        ..Options::default()
    }
}

/// All rows that a query returns.
fn rows(connection: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = connection
        .prepare(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let count = statement.column_count();
    let found = statement.query_map([], |row| (0..count).map(|index| row.get(index)).collect());
    let found = found.expect(sql);
    found.map(|row| row.expect(sql)).collect()
}

fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let text = |row: Vec<Value>| match row.into_iter().next() {
        Some(Value::Text(text)) => text,
        other => panic!("{sql}: {other:?}"),
    };
    rows(connection, sql).into_iter().map(text).collect()
}

fn names(connection: &Connection, kind: &str) -> Vec<String> {
    let sql = format!("SELECT name FROM sqlite_master WHERE type = '{kind}' ORDER BY name");
    let names = texts(connection, &sql).into_iter();
    names.filter(|name| !name.starts_with("sqlite_")).collect()
}

/// Suffix of the names of a recording's tables.
fn suffix(connection: &Connection) -> String {
    let sql = "SELECT value FROM rocpd_metadata WHERE tag = 'uuid'";
    texts(connection, sql).remove(0)
}

/// Names and types of the columns of each table of schema 3, by its name without the suffix.
fn columns(connection: &Connection) -> BTreeMap<String, Vec<Vec<Value>>> {
    let suffix = suffix(connection);
    let tables = names(connection, "table").into_iter();
    let of_schema = tables.filter_map(|table| {
        let base = table.strip_suffix(&suffix)?;
        let columns = format!("SELECT name, type FROM pragma_table_info('{table}')");
        Some((base.to_owned(), rows(connection, &columns)))
    });
    of_schema.collect()
}

#[test]
fn database_tables_have_the_columns_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let golden = columns(&open(Path::new(GOLDEN[0])));
    assert_eq!(golden.len(), 20);
    for layout in [Layout::Rpd, Layout::Original] {
        let session = session(GOLDEN[0]);
        let path = database(directory.path(), "trace", &session, &of_layout(layout));
        let ours = columns(&open(&path));
        for (table, golden) in &golden {
            let (mut ours, mut golden) = (ours[table].clone(), golden.clone());
            if layout == Layout::Rpd {
                for columns in [&mut ours, &mut golden] {
                    columns.sort_by_key(|column| format!("{column:?}"));
                }
            }
            assert_eq!(ours, golden, "{table}, {layout:?}");
        }
    }
}

/// Statements of the kinds that viewers send: `%` is the suffix of tables.
const STATEMENTS: [&str; 17] = [
    "SELECT hostname, machine_id, guid FROM rocpd_info_node%",
    "SELECT id, guid, nid, pid, type, absolute_index, logical_index, type_index, uuid, name, extdata FROM rocpd_info_agent%",
    "SELECT id, guid, nid, pid, name FROM rocpd_info_queue% UNION ALL SELECT id, guid, nid, pid, name FROM rocpd_info_stream%",
    "SELECT id, guid, nid, pid, tid FROM rocpd_info_thread%",
    "SELECT id, guid, nid, pid, agent_id, coalesce(event_code, 0), coalesce(instance_id, 0), name, units, value_type
        FROM rocpd_info_pmc%",
    "SELECT r.nid, r.pid, r.tid, count(*), min(r.start), max(r.\"end\") FROM rocpd_region% r
        LEFT JOIN rocpd_sample% s ON s.event_id = r.event_id WHERE s.id IS NULL GROUP BY 1, 2, 3",
    "SELECT nid, agent_id, queue_id, pid, count(*), sum(\"end\" - start) FROM rocpd_kernel_dispatch% GROUP BY 1, 2, 3, 4",
    "SELECT nid, pid, stream_id, count(*) FROM rocpd_kernel_dispatch% GROUP BY 1, 2, 3",
    "SELECT nid, dst_agent_id, queue_id, pid, count(*), sum(size) FROM rocpd_memory_copy% GROUP BY 1, 2, 3, 4",
    "SELECT nid, agent_id, queue_id, pid, type, level, count(*), sum(size) FROM rocpd_memory_allocate% GROUP BY 1, 2, 3, 4, 5, 6",
    "SELECT r.start, r.\"end\", n.string, c.string, e.stack_id, e.call_stack, e.line_info, e.extdata, r.extdata
        FROM rocpd_region% r JOIN rocpd_event% e ON e.id = r.event_id JOIN rocpd_string% n ON n.id = r.name_id
        JOIN rocpd_string% c ON c.id = e.category_id",
    "SELECT k.start, y.display_name, c.string, k.grid_size_x, e.stack_id, k.extdata FROM rocpd_kernel_dispatch% k
        JOIN rocpd_info_kernel_symbol% y ON y.id = k.kernel_id JOIN rocpd_event% e ON e.id = k.event_id
        JOIN rocpd_string% c ON c.id = e.category_id",
    "SELECT c.start, n.string, c.size, c.dst_address, c.queue_id, c.extdata FROM rocpd_memory_copy% c
        JOIN rocpd_string% n ON n.id = c.name_id",
    "SELECT e.stack_id, a.position, a.type, a.name, a.value, a.extdata, a.guid FROM rocpd_arg% a
        JOIN rocpd_event% e ON e.id = a.event_id",
    "SELECT s.timestamp, t.nid, t.pid, t.tid, s.guid, s.extdata FROM rocpd_sample% s JOIN rocpd_track% t ON t.id = s.track_id",
    "SELECT k.nid, k.agent_id, p.pmc_id, k.pid, p.value, p.extdata FROM rocpd_pmc_event% p
        JOIN rocpd_kernel_dispatch% k ON k.event_id = p.event_id",
    "SELECT DISTINCT guid FROM rocpd_region% UNION SELECT guid FROM rocpd_event% UNION SELECT guid FROM rocpd_string%",
];

#[test]
fn statements_find_in_our_tables_the_rows_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    for golden in GOLDEN {
        let session = session(golden);
        let golden = open(Path::new(golden));
        for layout in [Layout::Rpd, Layout::Original] {
            let path = database(directory.path(), "trace", &session, &of_layout(layout));
            let ours = open(&path);
            for statement in STATEMENTS {
                let found = |connection: &Connection| {
                    let sql = statement.replace('%', &suffix(connection));
                    let mut rows = rows(connection, &sql);
                    // Rows of a table may stand in another order.
                    rows.sort_by_key(|row| format!("{row:?}"));
                    rows
                };
                assert_eq!(found(&ours), found(&golden), "{statement}, {layout:?}");
            }
        }
    }
}

/// Merges databases as the original's command does: tables are copied, views named rocpd_* become the union of all
/// tables whose names begin with theirs, the others are those of the first database that has them.
fn merge_as_the_original(inputs: &[&Path], output: &Path) -> Connection {
    let merged = Connection::open(output).expect("a new database");
    let without_keys = merged.execute_batch("PRAGMA foreign_keys = OFF");
    without_keys.expect("a setting");
    let (mut unions, mut others) = (BTreeSet::new(), Vec::new());
    for input in inputs {
        let attach = format!("ATTACH DATABASE '{}' AS input", input.display());
        merged.execute_batch(&attach).expect("attached");
        let made = |kind: &str| -> Vec<(String, String)> {
            let sql = format!(
                "SELECT name, sql FROM input.sqlite_master WHERE type = '{kind}' AND name NOT LIKE 'sqlite_%' AND sql IS NOT NULL
                    ORDER BY name"
            );
            let mut statement = merged.prepare(&sql).expect("a statement");
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            rows.expect("rows").map(|row| row.expect("a row")).collect()
        };
        for (table, sql) in made("table") {
            let copy =
                format!("{sql}; INSERT INTO main.\"{table}\" SELECT * FROM input.\"{table}\"");
            merged.execute_batch(&copy).expect(&table);
        }
        for (index, sql) in made("index") {
            merged.execute_batch(&sql).expect(&index);
        }
        for (view, sql) in made("view") {
            if view.starts_with("rocpd_") {
                _ = unions.insert(view)
            } else if !others.iter().any(|(known, _)| *known == view) {
                others.push((view, sql))
            }
        }
        merged
            .execute_batch("DETACH DATABASE input")
            .expect("detached");
    }
    let tables = names(&merged, "table");
    for view in unions {
        let prefix = format!("{view}_");
        let tables = tables.iter().filter(|table| table.starts_with(&prefix));
        let selects: Vec<String> = tables
            .map(|table| format!("SELECT * FROM \"{table}\""))
            .collect();
        let sql = format!("CREATE VIEW {view} AS {}", selects.join(" UNION ALL "));
        merged
            .execute_batch(&sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for (view, sql) in others {
        merged.execute_batch(&sql).expect(&view);
    }
    merged
}

/// Queries that people make of a database, by recording.
const QUESTIONS: [&str; 6] = [
    "SELECT guid, name, category, start, \"end\", tid, pid, stack_id FROM regions",
    "SELECT guid, name, start, \"end\", grid_x, queue, stream, agent_abs_index FROM kernels",
    "SELECT guid, name, start, \"end\", size, src_agent_abs_index, dst_agent_abs_index FROM memory_copies",
    "SELECT guid, type, level, address, size, agent_abs_index FROM memory_allocations",
    "SELECT guid, id, type, name, value FROM region_args",
    "SELECT guid, counter_name, sum(value), count(*) FROM counters_collection GROUP BY 1, 2",
];

/// Merges databases as the original does, and checks that every view can be read and that the answers are those of the
/// inputs.
fn check_merge(inputs: &[&Path]) {
    let directory = tempfile::tempdir().expect("a directory");
    let merged = merge_as_the_original(inputs, &directory.path().join("merged.db"));
    for view in names(&merged, "view") {
        rows(&merged, &format!("SELECT * FROM \"{view}\" LIMIT 3"));
    }
    // The original's view of allocations joins the threads of all recordings.
    let is_of_original = !rows(
        &merged,
        "SELECT 1 FROM sqlite_master WHERE name = 'memory_allocations' AND sql LIKE '%AND P.guid = M.guid%AND P.guid = M.guid%'",
    )
    .is_empty();
    let questions = QUESTIONS
        .into_iter()
        .filter(|question| !(is_of_original && question.ends_with("memory_allocations")));
    for question in questions {
        let sorted = |mut rows: Vec<Vec<Value>>| {
            rows.sort_by_key(|row| format!("{row:?}"));
            rows
        };
        let apart = inputs.iter().flat_map(|input| rows(&open(input), question));
        let (apart, together) = (sorted(apart.collect()), sorted(rows(&merged, question)));
        assert_eq!(together, apart, "{question}");
    }
}

#[test]
fn merge_of_the_original_merges_two_of_our_databases() {
    let directory = tempfile::tempdir().expect("a directory");
    for layout in [Layout::Rpd, Layout::Original] {
        let options = of_layout(layout);
        let [one, other] = [7, 8].map(|pid| {
            let session = another(GOLDEN[0], pid);
            database(directory.path(), &pid.to_string(), &session, &options)
        });
        check_merge(&[&one, &other]);
    }
}

#[test]
fn merge_of_the_original_merges_its_database_with_ours_in_its_layout() {
    let directory = tempfile::tempdir().expect("a directory");
    for golden in GOLDEN {
        let session = another(golden, 7);
        let path = database(
            directory.path(),
            "7",
            &session,
            &of_layout(Layout::Original),
        );
        check_merge(&[&path, Path::new(golden)]);
        check_merge(&[Path::new(golden), &path]);
    }
}

#[test]
fn merge_of_the_original_accepts_databases_with_call_stacks() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut stacked = another(GOLDEN[0], 7);
    add_stacks(&mut stacked, true);
    let options = of_layout(Layout::Original);
    let stacked = database(directory.path(), "7", &stacked, &options);
    let plain = database(directory.path(), "8", &another(GOLDEN[0], 8), &options);
    check_merge(&[&stacked, &plain]);
    check_merge(&[&plain, &stacked, Path::new(GOLDEN[0])]);
}

#[test]
fn sql_of_stacks_finds_no_rows_in_databases_without_stacks() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = Options::default();
    options.collector.stacks.mode = StackMode::Native;
    let path = database(directory.path(), "7", &another(GOLDEN[0], 7), &options);
    let connection = open(&path);
    let frames =
        "SELECT s.string, f.depth FROM rocpd_stackframe f JOIN rocpd_api a ON a.id = f.api_ptr_id
        JOIN rocpd_string s ON s.id = f.name_id";
    assert_eq!(rows(&connection, frames), Vec::<Vec<Value>>::new());
    assert_eq!(
        rows(&connection, "SELECT * FROM stack_top"),
        Vec::<Vec<Value>>::new()
    );
    assert_ne!(
        rows(&connection, "SELECT * FROM rocpd_api"),
        Vec::<Vec<Value>>::new()
    );
}
