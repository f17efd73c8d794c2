//! Damaged or dishonest rocpd databases: each is read and written in every format, or refused.
//!
//! The first byte chooses the output format and, by its highest bit, what the rest is: the database file itself, or
//! changes to single values of a good one (nine bytes each), which reach what a damaged file rarely does.

use std::cell::RefCell;
use std::path::Path;
use std::sync::OnceLock;

use rusqlite::Connection;

use super::{assert_one_line, cells};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "rocpd",
    run,
    seeds,
    longest: 512 << 10,
    mutations: 60,
};

/// Bit of the input's first byte: the rest is a database file.
const WHOLE: u8 = 0x80;
/// Pattern (SQL LIKE) of the names of the tables whose values are changed.
const TABLES: &str = "rocpd%";

/// A small database made from one of the tests: a few rows of each table.
fn shrunk(original: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("seed.db");
    std::fs::write(&path, original).expect("written");
    let connection = Connection::open(&path).expect("opened");
    for table in cells::tables(&connection, TABLES) {
        let keep = if table.contains("_string_") || table.contains("_info_") {
            continue;
        } else {
            4
        };
        let sql = format!(
            "DELETE FROM \"{table}\" WHERE rowid NOT IN (SELECT rowid FROM \"{table}\" ORDER BY rowid DESC LIMIT {keep}) \
             AND rowid NOT IN (SELECT rowid FROM \"{table}\" ORDER BY rowid LIMIT {keep})"
        );
        if !table.contains("_metadata") && !table.contains("_event_") {
            connection.execute(&sql, []).expect("rows removed");
        }
    }
    connection
        .execute_batch("PRAGMA journal_mode=DELETE; PRAGMA page_size=1024; VACUUM;")
        .expect("made smaller");
    drop(connection);
    std::fs::read(&path).expect("read")
}

fn good() -> &'static [Vec<u8>; 2] {
    static GOOD: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    GOOD.get_or_init(|| {
        [
            shrunk(include_bytes!(
                "../../../rpd-formats/testdata/trace_results.db"
            )),
            shrunk(include_bytes!(
                "../../../rpd-formats/testdata/counters/trace_results.db"
            )),
        ]
    })
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for format in 0..rpd_cli::untrusted::OUTPUT_FORMATS as u8 {
        // No change at all, in both databases; then some of each kind.
        seeds.push(vec![format]);
        seeds.push(vec![format | 0x40]);
        let changes = (0..8u8).flat_map(|n| [n * 29 + format, n, n * 3, n, 0xff, n, 0, 0, 0x80]);
        seeds.push([format].into_iter().chain(changes).collect());
    }
    for database in good() {
        seeds.push([&[WHOLE], database.as_slice()].concat());
    }
    seeds
}

thread_local! {
    static DIRECTORY: RefCell<tempfile::TempDir> =
        RefCell::new(tempfile::tempdir().expect("a temporary directory"));
}

fn make(path: &Path, kind: u8, rest: &[u8]) {
    if kind & WHOLE != 0 {
        std::fs::write(path, rest).expect("written");
        return;
    }
    std::fs::write(path, &good()[usize::from(kind >> 6 & 1)]).expect("written");
    let connection = Connection::open(path).expect("opened");
    cells::change_all(&connection, TABLES, rest);
}

fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    DIRECTORY.with_borrow(|directory| {
        let path = directory.path().join("input.db");
        let outputs = directory.path().join("outputs");
        make(&path, kind, rest);
        let _ = std::fs::remove_dir_all(&outputs);
        std::fs::create_dir(&outputs).expect("a directory");
        if let Err(message) =
            rpd_cli::untrusted::database(&path, usize::from(kind & 0x3f), &outputs)
        {
            assert_one_line(&message);
        }
    });
}
