//! Parquet files as DuckDB reads them.

use crate::support::write as written;

use crate::support;

use std::path::Path;
use std::process::Command;

use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::Session;
use rpd_tests::skips::skipped;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use written::{lacks_library, write};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_parquet.py");

fn target(directory: &Path) -> Target {
    Target {
        directory: directory.to_owned(),
        prefix: "trace".to_owned(),
    }
}

fn golden_database() -> Connection {
    let path = format!("file:{TESTDATA}/trace_results.db?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(path, flags).expect("the golden database")
}

/// Rows of a query on the golden database as JSON arrays.
fn rows(database: &Connection, sql: &str) -> Value {
    use rusqlite::types::ValueRef;
    let mut statement = database.prepare(sql).expect(sql);
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let cells = (0..columns).map(|column| {
            Ok(match row.get_ref(column)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => json!(number),
                ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
                other => panic!("{other:?}"),
            })
        });
        cells.collect::<rusqlite::Result<Vec<_>>>().map(Value::from)
    });
    let rows: rusqlite::Result<Vec<Value>> = rows.expect(sql).collect();
    Value::from(rows.expect(sql))
}

#[test]
fn duckdb_reads_the_rows_of_the_original_from_our_parquet() {
    if lacks_library(Format::Parquet) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let database = golden_database();
    let session = support::session(&database);
    let files = write(
        Format::Parquet,
        &session,
        None,
        &Options::default(),
        &target(directory.path()),
    )
    .expect("written");
    let names: Vec<_> = files
        .iter()
        .map(|file| file.file_name().expect("a name").to_string_lossy())
        .collect();
    assert_eq!(
        names,
        [
            "trace_regions.parquet",
            "trace_kernels.parquet",
            "trace_memory_copies.parquet",
            "trace_memory_allocations.parquet",
            "trace_processes.parquet",
            "trace_agents.parquet",
            "trace_code_objects.parquet",
            "trace_kernel_symbols.parquet",
        ]
    );
    for file in &files {
        let bytes = std::fs::read(file).expect("a file");
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }

    let has_duckdb = Command::new("python3")
        .args(["-c", "import duckdb"])
        .output();
    if !has_duckdb.is_ok_and(|output| output.status.success()) {
        return skipped("Parquet in the eyes of DuckDB", "no python3 with duckdb");
    }
    let output = Command::new("python3")
        .arg(SCRIPT)
        .arg(directory.path())
        .output()
        .expect("python3");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let ours: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let views = [
        (
            "regions",
            "SELECT category, CASE category WHEN 'MARKER_CORE_RANGE_API' THEN coalesce(mark, name) ELSE name END,
                nullif(extdata ->> '$.message', ''), tid, start, \"end\", duration, stack_id, parent_stack_id
            FROM (SELECT NULL AS mark, * FROM regions UNION ALL SELECT 'roctxMarkA', * FROM sample_regions)
            ORDER BY start, \"end\", stack_id",
        ),
        (
            "kernels",
            "SELECT k.name, a.name, agent_log_index, agent_type, queue_id, grid_x, workgroup_x, vgpr_count, k.start,
                k.\"end\", stack_id FROM kernels k JOIN rocpd_info_agent a ON a.absolute_index = k.agent_abs_index
            ORDER BY dispatch_id",
        ),
        (
            "copies",
            "SELECT name, size, dst_agent_type, src_agent_type, start, \"end\" FROM memory_copies ORDER BY start",
        ),
        (
            "allocations",
            "SELECT type, level, agent_name, address, size, start FROM memory_allocations ORDER BY start, stack_id",
        ),
        (
            "symbols",
            "SELECT count(*), count(DISTINCT display_name) FROM kernel_symbols",
        ),
        ("codes", "SELECT count(*) FROM code_objects"),
    ];
    for (name, sql) in views {
        assert_eq!(ours[name], rows(&database, sql), "{name}");
    }
    assert_eq!(ours["types"], json!([["BIGINT"], ["VARCHAR"]]));
    assert_eq!(
        ours["agents"],
        json!([["AMD EPYC", "CPU", 0, true], ["gfx90a", "GPU", 1, true]])
    );
    assert_eq!(ours["joined"].as_array().map(Vec::len), Some(4));
    assert_eq!(ours["processes"][0][0], json!(session.process.pid.0));
}

#[test]
fn parquet_of_a_session_without_records_is_not_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = Session::default();
    let files = write(
        Format::Parquet,
        &session,
        None,
        &Options::default(),
        &target(directory.path()),
    );
    assert!(files.expect("nothing to write").is_empty());
    assert_eq!(
        std::fs::read_dir(directory.path())
            .expect("a directory")
            .count(),
        0
    );
}
