//! Use of the crates by programs other than `rpd`: the examples, and what such programs compile.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

#[expect(dead_code, reason = "`main` is not called here")]
#[path = "../../examples/own-events.rs"]
mod own_events;
#[expect(dead_code, reason = "`main` is not called here")]
#[path = "../../examples/slowest-kernels.rs"]
mod slowest_kernels;

#[test]
fn own_events_are_kernels_of_a_database_for_sqlite() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = own_events::write(directory.path()).expect("written");
    assert_eq!(path, directory.path().join("own_results.db"));
    let connection = Connection::open(path).expect("a database");
    let rows = |sql: &str| -> Vec<(String, i64)> {
        let mut statement = connection.prepare(sql).expect("SQL");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.expect("rows")
            .collect::<Result<_, _>>()
            .expect("a row")
    };
    let expected = [
        ("reduce(float*, int)", 8_000),
        ("scale", 300),
        ("reduce(float*, int)", 7_000),
    ];
    let expected = expected.map(|(name, duration)| (name.to_owned(), duration));
    assert_eq!(rows("SELECT name, duration FROM kernels"), expected);
    let launches = expected.iter().zip([200, 100, 150]);
    let launches: Vec<_> = launches
        .map(|((name, _), duration)| (format!("hipLaunchKernel {name}"), duration))
        .collect();
    let joined = "SELECT r.name || ' ' || k.name, r.duration
        FROM kernels k JOIN regions r ON r.stack_id = k.stack_id ORDER BY k.start";
    assert_eq!(rows(joined), launches);
}

#[test]
fn slowest_kernels_are_listed_by_total_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = own_events::write(directory.path()).expect("written");
    let listed = |count| {
        let mut out = Vec::new();
        slowest_kernels::print(&path, count, &mut out).expect("printed");
        let text = String::from_utf8(out).expect("text");
        let lines = text.lines().map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.join(" ")
        });
        lines.collect::<Vec<_>>()
    };
    let lines = [
        "total calls mean longest kernel",
        "15000 2 7500 8000 reduce(float*, int)",
        "300 1 300 300 scale",
    ];
    assert_eq!(listed(10), lines);
    assert_eq!(listed(1), lines[..2]);
    let missing = directory.path().join("missing_results.db");
    let error = slowest_kernels::print(&missing, 1, &mut Vec::new()).expect_err("no database");
    assert!(error.to_string().contains("missing_results.db"), "{error}");
}

#[test]
fn slowest_kernels_of_an_original_database_are_those_of_its_view() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/trace_results.db");
    let mut out = Vec::new();
    slowest_kernels::print(&path, usize::MAX, &mut out).expect("printed");
    let text = String::from_utf8(out).expect("text");
    let uri = format!("file:{}?immutable=1", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags).expect("a database");
    let sql =
        "SELECT printf('%14d %8d %12d %12d  %s', sum(duration), count(*), sum(duration) / count(*),
        max(duration), name) FROM kernels GROUP BY name ORDER BY sum(duration) DESC, name";
    let mut statement = connection.prepare(sql).expect("SQL");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    let rows: Vec<String> = rows.collect::<Result<_, _>>().expect("a row");
    assert_eq!(rows.len(), 4);
    let listed: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(listed, rows);
}
