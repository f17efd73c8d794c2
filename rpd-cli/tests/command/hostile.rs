//! Databases that were made to do harm, on every command that reads databases: nothing but the result is written, every
//! command ends, with an error of one line.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rpd_tests::outputs::Database;

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../rpd-formats/testdata/trace_results.db"
);
/// Suffix of the tables of the golden database.
const SUFFIX: &str = "_00000057_e5b7_75b7_b481_79f7795676a5";
/// A name that leaves the quotes it is put into.
const NAME: &str = "a\" FROM x; ATTACH DATABASE 'evil.db' AS y; CREATE TABLE y.t (a); --";

fn rpd(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rpd"))
        .args(arguments)
        .current_dir(directory)
        .env_remove("ROCPD_OUTPUT_NAME")
        .env_remove("ROCPD_OUTPUT_PATH")
        .output()
        .expect("rpd runs")
}

/// Every command that reads databases, on `x.db`.
fn commands() -> Vec<Vec<&'static str>> {
    vec![
        vec!["summary", "x.db"],
        vec!["summary", "x.db", "--start", "0%"],
        vec!["convert", "x.db", "-f", "csv", "json", "rocpd", "-d", "out"],
        vec!["query", "x.db", "SELECT count(*) FROM regions"],
        vec!["merge", "x.db", "-o", "merged"],
        vec!["diff", "x.db", "x.db"],
    ]
}

/// A directory with a changed copy of the golden database, `x.db`.
fn changed(sql: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x.db");
    std::fs::copy(GOLDEN, &path).expect("copied");
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&path, mode).expect("writable");
    Database::change(&path, sql);
    directory
}

/// Asserts that a command failed with one line that names the database and holds `words`.
#[track_caller]
fn refused(arguments: &[&str], output: &Output, words: &str) {
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
    assert!(
        line.starts_with("rpd: ") && line.contains("x.db") && line.contains(words),
        "{arguments:?}: {line}"
    );
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[test]
fn database_names_are_never_run_as_sql() {
    let name = quoted(NAME);
    let directory = changed(&format!(
        "DROP VIEW rocpd_region; CREATE VIEW rocpd_region AS SELECT *, 1 AS {name} FROM rocpd_region{SUFFIX};
        CREATE TABLE {table} ({name} INTEGER); INSERT INTO {table} VALUES (1);
        CREATE VIEW {view} AS SELECT * FROM {table}; CREATE INDEX {index} ON {table} ({name});",
        table = quoted(&format!("rocpd_t{NAME}")),
        view = quoted(&format!("rocpd_v{NAME}")),
        index = quoted(&format!("i{NAME}")),
    ));
    for command in commands() {
        let output = rpd(directory.path(), &command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {stderr}");
    }
    assert!(!directory.path().join("evil.db").exists());
    let select = format!("SELECT {name} FROM rocpd_region LIMIT 1");
    let output = rpd(
        directory.path(),
        &["query", "merged.db", &select, "-f", "csv"],
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().last(), Some("1"), "{text}");
}

#[test]
fn database_guid_is_never_run_as_sql() {
    let guid = "x'); ATTACH DATABASE 'evil.db' AS y; CREATE TABLE y.t (a); --";
    let directory = changed(&format!(
        "UPDATE rocpd_info_process{SUFFIX} SET guid = '{}'",
        guid.replace('\'', "''")
    ));
    let output = rpd(
        directory.path(),
        &["convert", "x.db", "-f", "rocpd", "-o", "new"],
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(!directory.path().join("evil.db").exists());
    let sql = "SELECT guid FROM rocpd_region LIMIT 1";
    let output = rpd(
        directory.path(),
        &["query", "new_results.db", sql, "-f", "csv"],
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().last(), Some(guid), "{text}");
}

/// SQLite reads the first statement of what its schema table holds, and keeps the rest.
#[test]
fn database_with_several_statements_in_a_schema_is_refused() {
    for name in [format!("rocpd_string{SUFFIX}"), "rocpd_string".to_owned()] {
        let directory = changed(&format!(
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = sql ||
            '; ATTACH DATABASE ''evil.db'' AS y; CREATE TABLE y.t (a)' WHERE name = '{name}'"
        ));
        let arguments = ["merge", "x.db", "-o", "merged"];
        refused(&arguments, &rpd(directory.path(), &arguments), "");
        for command in commands() {
            rpd(directory.path(), &command);
        }
        assert!(!directory.path().join("evil.db").exists(), "{name}");
        assert!(!directory.path().join("merged.db").exists(), "{name}");
    }
}

#[test]
fn database_views_that_never_end_are_refused() {
    let endless = "WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c)";
    for (view, select) in [
        (
            "rocpd_region",
            "SELECT r.* FROM rocpd_region{SUFFIX} r, c".to_owned(),
        ),
        (
            "rocpd_metadata",
            "SELECT m.* FROM rocpd_metadata{SUFFIX} m, c".to_owned(),
        ),
    ] {
        let select = select.replace("{SUFFIX}", SUFFIX);
        let directory = changed(&format!(
            "DROP VIEW {view}; CREATE VIEW {view} AS {endless} {select}"
        ));
        for command in commands() {
            // merge copies tables, and makes the view without looking into it.
            if command[0] != "merge" {
                let begun = Instant::now();
                let output = rpd(directory.path(), &command);
                refused(&command, &output, "recursion");
                assert!(begun.elapsed() < Duration::from_secs(20), "{command:?}");
            }
        }
    }
}

#[test]
fn database_views_with_long_functions_are_refused() {
    let directory = changed(&format!(
        "DROP VIEW rocpd_string; CREATE VIEW rocpd_string AS
        SELECT id, guid, hex(zeroblob(1000000000)) AS string FROM rocpd_string{SUFFIX}"
    ));
    for command in [&["summary", "x.db"][..], &["query", "x.db", "SELECT 1"]] {
        refused(command, &rpd(directory.path(), command), "the function hex");
    }
}

#[test]
fn database_with_huge_values_is_refused() {
    let directory = changed(&format!(
        "UPDATE rocpd_string{SUFFIX} SET string = zeroblob(70 << 20) WHERE id = 3"
    ));
    for command in [
        &["summary", "x.db"][..],
        &["diff", "x.db", "x.db"],
        &["convert", "x.db", "-f", "csv"],
        &["merge", "x.db", "-o", "merged"],
        &["query", "x.db", "SELECT string FROM rocpd_string"],
    ] {
        let output = rpd(directory.path(), command);
        match command[0] {
            "query" => {
                let line = String::from_utf8_lossy(&output.stderr);
                assert!(line.contains("too big"), "{line}");
            }
            _ => refused(command, &output, "more than 64 MiB"),
        }
    }
}

#[test]
fn database_with_virtual_tables_is_refused() {
    let directory = changed("CREATE VIRTUAL TABLE rocpd_v USING fts5(a)");
    for command in commands() {
        refused(
            &command,
            &rpd(directory.path(), &command),
            "the virtual table rocpd_v",
        );
    }
}

#[test]
fn database_that_is_a_pipe_or_device_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let made = Command::new("mkfifo")
        .arg(directory.path().join("x.db"))
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    for command in commands() {
        let output = rpd(directory.path(), &command);
        refused(&command, &output, "is not a regular file");
    }
    let output = rpd(directory.path(), &["summary", "/dev/zero"]);
    assert_eq!(output.status.code(), Some(1));
    // SQLite would wait for a named pipe in the place of a journal, too.
    let directory = changed("SELECT 1");
    let made = Command::new("mkfifo")
        .arg(directory.path().join("x.db-journal"))
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    for command in commands() {
        refused(&command, &rpd(directory.path(), &command), "x.db-journal");
    }
}

/// Nothing appears beside it, so a directory that cannot be written is not an obstacle.
#[test]
fn database_in_wal_mode_is_read_without_files_beside_it() {
    let directory = changed("PRAGMA journal_mode = WAL");
    let before = std::fs::read(directory.path().join("x.db")).expect("readable");
    assert_eq!(before[18..20], [2, 2]);
    for command in commands() {
        let output = rpd(directory.path(), &command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {stderr}");
    }
    assert_eq!(
        std::fs::read(directory.path().join("x.db")).expect("readable"),
        before
    );
    for ending in ["-wal", "-shm"] {
        assert!(!directory.path().join(format!("x.db{ending}")).exists());
    }
}

#[test]
fn query_refuses_sql_that_writes() {
    let directory = changed("SELECT 1");
    let before = std::fs::read(directory.path().join("x.db")).expect("readable");
    for (sql, words) in [
        ("ATTACH DATABASE 'evil.db' AS y", "ATTACH"),
        ("VACUUM INTO 'evil.db'", "VACUUM"),
        ("SELECT load_extension('evil')", "load_extension"),
        ("DELETE FROM db0.rocpd_metadata", "because it is a view"),
        ("PRAGMA db0.journal_mode = DELETE", "PRAGMA journal_mode"),
        ("PRAGMA hard_heap_limit = 1", "PRAGMA hard_heap_limit"),
    ] {
        let output = rpd(directory.path(), &["query", "x.db", sql]);
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{sql}: {line}");
        assert!(line.contains(words), "{sql}: {line}");
    }
    assert!(!directory.path().join("evil.db").exists());
    assert_eq!(
        std::fs::read(directory.path().join("x.db")).expect("readable"),
        before
    );
    let endless =
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";
    let output = rpd(
        directory.path(),
        &["query", "--time-limit", "1", "x.db", endless],
    );
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(line.contains("more than 1 s of processor time"), "{line}");
    // Temporary views and tables stay in memory.
    std::fs::write(
        directory.path().join("views.sql"),
        "CREATE TEMP VIEW v AS SELECT name FROM kernels; CREATE TEMP TABLE t AS SELECT count(*) AS n FROM v;
        CREATE TABLE u (a); INSERT INTO u SELECT n FROM t;",
    )
    .expect("written");
    let output = rpd(
        directory.path(),
        &[
            "query",
            "--script",
            "views.sql",
            "x.db",
            "SELECT n > 0 AND a = n AS yes FROM t, u",
            "-f",
            "csv",
        ],
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "yes\n1\n");
}

/// Damage of any kind ends in a result or in a line.
#[test]
fn commands_on_mutated_databases_never_crash() {
    let whole = std::fs::read(GOLDEN).expect("the golden database");
    let directory = tempfile::tempdir().expect("a directory");
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for round in 0..25 {
        let mut bytes = whole.clone();
        for _ in 0..=random(60) {
            // Headers of pages and cells lie at the front of pages.
            let page = random(bytes.len() / 4096) * 4096;
            let at = match random(2) {
                0 => page + random(64),
                _ => page + random(4096),
            };
            // What makes it a database is left alone, so that there is something to find out.
            if at >= 100 {
                bytes[at] = random(256) as u8;
            }
        }
        std::fs::write(directory.path().join("x.db"), &bytes).expect("written");
        for command in commands() {
            let output = rpd(directory.path(), &command);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(
                matches!(output.status.code(), Some(0 | 1)) && !stderr.contains("internal error"),
                "round {round}, {command:?}: {:?}: {stderr}",
                output.status
            );
        }
    }
}
