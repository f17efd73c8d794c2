//! `rpd merge`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{GOLDEN, bad, database, directory, good, sorted_rows, text};

/// Another recording: the golden one under another id.
fn other(directory: &Path) -> PathBuf {
    let dump = Command::new("sqlite3")
        .args([&database(), ".dump"])
        .output()
        .expect("sqlite3");
    let dump = text(&dump.stdout)
        .replace("e5b7-75b7", "e5b7-75b8")
        .replace("e5b7_75b7", "e5b7_75b8");
    let path = directory.join("other_results.db");
    let mut child = Command::new("sqlite3")
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("sqlite3");
    std::io::Write::write_all(&mut child.stdin.take().expect("its input"), dump.as_bytes())
        .expect("written");
    assert!(child.wait().expect("sqlite3").success());
    path
}

#[test]
fn merging() {
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
    let done = Command::new("sqlite3")
        .arg(&broken)
        .arg("DROP VIEW rocpd_event")
        .status()
        .expect("sqlite3");
    assert!(done.success());
    let line = bad(out.path(), &["summary", "broken.db"], 1);
    assert!(
        line.contains("rocpd_event") && line.contains("rpd merge"),
        "{line}"
    );
    good(out.path(), &["merge", "-o", "mended", "broken.db"]);
    assert_eq!(count(&["mended.db"]), count(&[&database()]));
}
