//! Captures by the name, the switches and the variables of HIPTracer, and its own databases.

use rpd_tests::run::Rpd;
use rpd_tests::{outputs::Database, workloads};

use crate::capture::captures::replayed;

/// Checks capture-68.
#[test]
fn capture_info_recognises_hiptracer_databases() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tracer-default.db");
    let made = rusqlite::Connection::open(&path).expect("a database");
    made.execute_batch(
        "CREATE TABLE Events (Id INTEGER PRIMARY KEY); CREATE TABLE EventMalloc (Id INTEGER PRIMARY KEY);
         CREATE TABLE EventLaunch (Id INTEGER PRIMARY KEY); INSERT INTO Events VALUES (1);",
    )
    .expect("tables");
    let info = Rpd::plain(["capture", "info"])
        .option([&path])
        .run()
        .success();
    assert!(
        info.stdout.contains("a database of HIPTracer"),
        "{}",
        info.stdout
    );
    assert!(info.stdout.contains("Events: 1 rows"), "{}", info.stdout);
}

#[test]
fn hiptracer_writes_a_capture_to_the_named_database() {
    let program = workloads::path("capture");
    let run = Rpd::bare("hiptracer", ["-t", "capture", "-o", "mine.db"])
        .option([&program])
        .option(["add"])
        .run()
        .success();
    let database = run.directory.path().join("mine.db");
    assert_eq!(
        Database::open(&database).number("SELECT count(*) FROM EventLaunch"),
        2
    );
    let _ = replayed(&database, &[]).success();
}

#[test]
fn hiptracer_with_s_stores_no_data_to_replay() {
    let program = workloads::path("capture");
    let light = Rpd::bare("hiptracer", ["-s"])
        .option([&program])
        .option(["add"])
        .run()
        .success();
    let refused = replayed(&light.directory.path().join("tracer-default.db"), &[]).expect_code(2);
    assert!(refused.stderr.contains("--data none"), "{}", refused.stderr);
}

#[test]
fn hiptracer_refuses_unknown_switches() {
    for word in ["--nosuch", "-sXYZ", "-x"] {
        let refused = Rpd::bare("hiptracer", [word, "true"]).run().expect_code(2);
        assert_eq!(
            refused.stderr,
            format!("rpd: hiptracer: unrecognized arguments: {word} (see hiptracer -h)\n")
        );
    }
}

#[test]
fn hiptracer_memory_tracing_switches_record_accesses() {
    let program = workloads::path("capture");
    for option in [
        ["-t", "memtrace"],
        ["-t", "./libmemtrace.so"],
        ["-m", "binint"],
    ] {
        let traced = Rpd::bare("hiptracer", option)
            .option(["-o", "traced.db"])
            .option([&program])
            .option(["add"])
            .run()
            .success();
        let capture = traced.directory.path().join("traced.db.capture");
        let shown = Rpd::plain(["capture", "show"]).option([&capture]).run();
        assert!(
            shown.success().stdout.contains("add_kernel: "),
            "{option:?}"
        );
    }
}

#[test]
fn the_variable_of_hiptracer_names_the_capture() {
    let variable = Rpd::plain(["capture", "--backend", "sim"])
        .env("HIPTRACER_EVENTDB", "other.db")
        .workload("capture", ["add"])
        .success();
    assert!(
        variable
            .directory
            .path()
            .join("other.db.capture/capture.json")
            .exists()
    );
}
