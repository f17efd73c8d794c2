//! Tests of `rpd merge`.

use std::path::{Path, PathBuf};

use rpd_tests::outputs::Database;

use super::{GOLDEN, bad, database, directory, good, sorted_rows};

/// A second recording: the golden one under another id.
fn other(directory: &Path) -> PathBuf {
    let mut bytes = std::fs::read(database()).expect("readable");
    // A text of the same length in the place of another, in names of tables, in columns and in the SQL of views.
    for (from, to) in [("e5b7-75b7", "e5b7-75b8"), ("e5b7_75b7", "e5b7_75b8")] {
        let places: Vec<usize> = (0..=bytes.len() - from.len())
            .filter(|at| bytes[*at..].starts_with(from.as_bytes()))
            .collect();
        assert!(!places.is_empty(), "{from}");
        for at in places {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    }
    let path = directory.join("other_results.db");
    std::fs::write(&path, bytes).expect("written");
    let check = Database::open(&path).rows("PRAGMA integrity_check");
    assert_eq!(check, [["ok"]]);
    path
}

#[test]
fn merge_joins_recordings_of_different_databases() {
    let out = directory();
    let other = other(out.path());
    let other = other.to_string_lossy();
    let line = bad(
        out.path(),
        &["merge", "-o", "m.db", &database(), &database()],
        1,
    );
    assert!(
        line.contains("00000057-e5b7-75b7-b481-79f7795676a5"),
        "{line}"
    );
    assert!(!out.path().join("m.db").exists());

    good(out.path(), &["merge", "-o", "m", &database(), &other]);
    let count = |database: &[&str]| {
        let mut arguments = vec!["query"];
        arguments.extend(database);
        arguments.extend([
            "SELECT (SELECT count(*) FROM regions) r, (SELECT count(*) FROM kernels) k, \
            (SELECT count(*) FROM memory_allocations) m, (SELECT count(*) FROM events_args) a",
            "-f",
            "csv",
        ]);
        good(out.path(), &arguments)
    };
    let merged = count(&["m.db"]);
    assert_eq!(merged, count(&[&database(), &other]));
    assert_ne!(merged, count(&[&database()]));
    // Two processes come out of it, each as it went in.
    good(out.path(), &["convert", "m.db", "-f", "csv"]);
    for prefix in ["m", "m_4333"] {
        assert_eq!(
            sorted_rows(&out.path().join(format!("{prefix}_hsa_api_trace.csv"))),
            sorted_rows(&Path::new(GOLDEN).join("trace_hsa_api_trace.csv"))
        );
    }
    // A lost view comes back.
    let broken = out.path().join("broken.db");
    std::fs::copy(database(), &broken).expect("copied");
    Database::change(&broken, "DROP VIEW rocpd_event");
    let line = bad(out.path(), &["summary", "broken.db"], 1);
    assert!(
        line.contains("rocpd_event") && line.contains("rpd merge"),
        "{line}"
    );
    good(out.path(), &["merge", "-o", "mended", "broken.db"]);
    assert_eq!(count(&["mended.db"]), count(&[&database()]));
}
