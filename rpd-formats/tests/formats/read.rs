//! A session read from a database that the original wrote must come out as the files that the original wrote, and one
//! read from our own as the session that was written.

use crate::support::write as written;

use crate::support;

use std::path::{Path, PathBuf};

use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{LoadOptions, Session};
use rpd_formats::rocpd;
use rpd_formats::rocpd::read::{Database, Problem};
use written::{destination, write, write_one};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");

fn golden() -> PathBuf {
    Path::new(TESTDATA).join("trace_results.db")
}

fn read(path: &Path, args: bool) -> Session {
    let database = Database::open(path).expect("a database");
    assert_eq!(database.recordings().len(), 1);
    let (session, settings) = database
        .session(
            &database.recordings()[0],
            LoadOptions {
                args,
                ..LoadOptions::default()
            },
        )
        .expect("a session");
    assert_eq!(settings, Default::default());
    session
}

fn target(directory: &Path) -> Target {
    Target {
        directory: directory.to_owned(),
        prefix: "trace".to_owned(),
    }
}

fn sorted_lines(path: &Path) -> Vec<String> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1..].sort_unstable();
    lines
}

/// Rows are compared byte for byte; their order is ours, by time. No other difference is allowed.
#[test]
fn csv_of_a_read_database_has_the_rows_of_the_golden_csv() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = read(&golden(), false);
    let target = target(directory.path());
    let files = write(Format::Csv, &session, None, &Options::default(), &target).expect("written");
    assert_eq!(files.len(), 7);
    for file in files {
        let golden = Path::new(TESTDATA).join(file.file_name().expect("a name"));
        assert_eq!(
            sorted_lines(&file),
            sorted_lines(&golden),
            "{}",
            file.display()
        );
    }
}

#[test]
fn reader_finds_the_records_of_the_slow_reader_of_the_tests() {
    let connection = rusqlite::Connection::open(golden()).expect("the golden database");
    let mut slow = support::session(&connection);
    slow.sort();
    let fast = read(&golden(), true);
    assert_eq!(fast.agents, slow.agents);
    assert_eq!(fast.code_objects, slow.code_objects);
    assert_eq!(fast.kernel_symbols, slow.kernel_symbols);
    assert_eq!(fast.len(), slow.len());
    let calls = |session: &Session| -> Vec<String> {
        let calls = &session.calls;
        let text = |id| session.strings.get(id);
        (0..calls.len())
            .map(|index| {
                let args = calls.args[index];
                let raw = &calls.arena[args.offset as usize..][..args.len as usize];
                format!(
                    "{:?} {} {} {:?} {} {} {raw:?}",
                    session.call(index).kind,
                    session.operation_name(calls.operation[index]),
                    text(session.call_label(index)),
                    (calls.start[index], calls.end[index], calls.thread[index]),
                    calls.correlation[index],
                    calls.ancestor[index],
                )
            })
            .collect()
    };
    assert_eq!(calls(&fast), calls(&slow));
    assert!(fast.calls.args.iter().any(|args| args.len > 0));
}

#[test]
fn written_database_is_read_as_the_same_recording() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = read(&golden(), true);
    let path = write_one(
        Format::Rocpd,
        &first,
        None,
        &Options::default(),
        &target(directory.path()),
    )
    .expect("written")
    .expect("a file");
    let second = read(&path, true);
    assert_eq!(second.origin, first.origin);
    assert_eq!(second.agents, first.agents);
    assert_eq!(second.kernel_symbols, first.kernel_symbols);
    assert_eq!(second.process.command, first.process.command);
    let describe = |session: &Session| {
        let mut lines = Vec::new();
        for index in 0..session.calls.len() {
            let args = session.calls.args[index];
            let raw = &session.calls.arena[args.offset as usize..][..args.len as usize];
            lines.push(format!(
                "{} {:?} {raw:?}",
                session.strings.get(session.call_label(index)),
                session.calls.start[index]
            ));
        }
        let copies = &session.copies;
        lines.push(format!("{:?} {:?}", copies.start, copies.dst_agent));
        let dispatches = &session.dispatches;
        lines.push(format!(
            "{:?} {:?}",
            dispatches.grid, dispatches.correlation
        ));
        let allocations = &session.allocations;
        lines.push(format!("{:?} {:?}", allocations.bytes, allocations.address));
        lines
    };
    assert_eq!(describe(&second), describe(&first));
}

/// `sdk-newer-71`, and databases without a version or with two
#[test]
fn reader_tells_errors_of_bad_databases_apart() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x.db");
    let problem = |path: &Path| match Database::open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => {
            let line = error.to_string();
            assert!(line.starts_with(&path.display().to_string()), "{line}");
            assert!(!line.contains('\n'), "{line}");
            error.problem
        }
    };
    assert!(matches!(problem(&path), Problem::Io(_)));
    assert!(matches!(problem(directory.path()), Problem::Directory));
    std::fs::write(&path, "").expect("written");
    assert!(matches!(problem(&path), Problem::NotSqlite));
    std::fs::write(&path, "Guid,Kind\n").expect("written");
    assert!(matches!(problem(&path), Problem::NotSqlite));
    let whole = std::fs::read(golden()).expect("the golden database");
    for length in [50, 4096, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).expect("written");
        assert!(
            matches!(problem(&path), Problem::Truncated { .. }),
            "{length}"
        );
    }
    let change = |sql: &str| {
        std::fs::write(&path, &whole).expect("written");
        let connection = rusqlite::Connection::open(&path).expect("a database");
        connection.execute_batch(sql).expect(sql);
    };
    change("DROP VIEW rocpd_event");
    assert!(matches!(
        problem(&path),
        Problem::MissingView("rocpd_event")
    ));
    let metadata = "rocpd_metadata_00000057_e5b7_75b7_b481_79f7795676a5";
    change(&format!(
        "UPDATE {metadata} SET value = '4.1' WHERE tag = 'schema_version'"
    ));
    assert!(matches!(problem(&path), Problem::Schema(version) if version == "4.1"));
    change(&format!(
        "UPDATE {metadata} SET value = '3.0.5' WHERE tag = 'schema_version'"
    ));
    assert!(Database::open(&path).is_ok());
    change(&format!(
        "DELETE FROM {metadata} WHERE tag = 'schema_version'"
    ));
    assert!(matches!(problem(&path), Problem::NoSchema));
    change(&format!(
        "INSERT INTO {metadata} (tag, value) VALUES ('schema_version', '3.0.4')"
    ));
    assert!(matches!(problem(&path), Problem::SeveralSchemas(both) if both == "3 and 3.0.4"));
    std::fs::remove_file(&path).expect("removed");
    let other = rusqlite::Connection::open(&path).expect("a database");
    other.execute_batch("CREATE TABLE t (a)").expect("a table");
    drop(other);
    assert!(matches!(problem(&path), Problem::NotRocpd));
    std::fs::write(&path, &whole).expect("written");
    let holder = rusqlite::Connection::open(&path).expect("a database");
    holder.execute_batch("BEGIN EXCLUSIVE").expect("a lock");
    assert!(matches!(problem(&path), Problem::Locked));
}

/// Whatever single page is overwritten, there is an error or a session, never a crash.
#[test]
fn reader_survives_damaged_databases() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x.db");
    let whole = std::fs::read(golden()).expect("the golden database");
    for page in 0..whole.len() / 4096 {
        if page % 3 != 0 {
            continue;
        }
        let mut bytes = whole.clone();
        let from = page * 4096 + if page == 0 { 100 } else { 0 };
        for (index, byte) in bytes[from..(page + 1) * 4096].iter_mut().enumerate() {
            *byte = byte.wrapping_mul(31).wrapping_add(index as u8);
        }
        std::fs::write(&path, &bytes).expect("written");
        if let Ok(database) = Database::open(&path) {
            for recording in database.recordings() {
                let _ = database.session(
                    recording,
                    LoadOptions {
                        args: true,
                        ..LoadOptions::default()
                    },
                );
            }
        }
    }
}

/// A program that has the database open in WAL mode keeps what it wrote beside it.
#[test]
fn reader_reads_rows_in_the_write_ahead_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x_results.db");
    std::fs::write(&path, std::fs::read(golden()).expect("readable")).expect("written");
    let writer = rusqlite::Connection::open(&path).expect("a database");
    let mode: String = writer
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .expect("a mode");
    assert_eq!(mode, "wal");
    let changed = writer.execute(
        "UPDATE rocpd_info_node_00000057_e5b7_75b7_b481_79f7795676a5 SET hostname = 'changed'",
        [],
    );
    assert_eq!(changed, Ok(1));
    let session = read(&path, false);
    assert_eq!(session.origin.expect("an origin").hostname, "changed");
    let merged = directory.path().join("merged.db");
    rocpd::merge(std::slice::from_ref(&path), destination(&merged)).expect("merged");
    let session = read(&merged, false);
    assert_eq!(session.origin.expect("an origin").hostname, "changed");
    drop(writer);
    // A log that cannot be used: what is wrong is the input.
    let wal = directory.path().join("x_results.db-wal");
    std::fs::create_dir(&wal).expect("a directory");
    let error =
        rocpd::merge(std::slice::from_ref(&path), destination(&merged)).expect_err("no log");
    assert!(
        error.to_string().starts_with(&path.display().to_string())
            && error.to_string().contains("x_results.db-wal"),
        "{error}"
    );
}

/// A program that was killed while it changed the database leaves a journal, which has to be carried out.
#[test]
fn error_names_an_unfinished_change_of_the_database() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x_results.db");
    std::fs::write(&path, std::fs::read(golden()).expect("readable")).expect("written");
    let writer = rusqlite::Connection::open(&path).expect("a database");
    writer
        .execute_batch(
            "PRAGMA cache_size = 1; BEGIN;
            UPDATE rocpd_string_00000057_e5b7_75b7_b481_79f7795676a5 SET string = string || 'x'",
        )
        .expect("changed");
    let name = |ending: &str| path.with_file_name(format!("y_results.db{ending}"));
    for ending in ["", "-journal"] {
        let from = path.with_file_name(format!("x_results.db{ending}"));
        std::fs::copy(from, name(ending)).expect("copied");
    }
    let error = Database::open(&name("")).expect_err("a journal");
    assert!(
        matches!(&error.problem, Problem::Unfinished(journal) if *journal == name("-journal")),
        "{error}"
    );
}
