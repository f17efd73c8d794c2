//! Memory and events that two processes share, on the simulator. The workload checks the order of what they do, and contents.

use std::ffi::OsStr;

use rpd_tests::run::{Rpd, simulated_with};

fn simulated(mode: &str) -> String {
    let none: [(&str, &OsStr); 0] = [];
    let outcome = simulated_with(none, "ipc", [mode]).success();
    assert_eq!(outcome.stderr, "");
    outcome.stdout
}

#[test]
fn streams_wait_for_ipc_events_of_another_process() {
    assert_eq!(simulated("events"), "ok\n");
}

/// More records than the memory of an event has places for.
#[test]
fn ipc_events_can_be_recorded_many_times() {
    assert_eq!(simulated("many"), "ok\n");
}

#[test]
fn ipc_event_misuse_is_reported_by_status() {
    let said = simulated("errors");
    let expected = [
        "with times: hipErrorInvalidValue",
        "handle of an event of one process: hipErrorInvalidValue",
        "no place for the handle: hipErrorInvalidValue",
        "no event: hipErrorInvalidHandle",
        "opened in the same process: hipErrorInvalidContext",
        "no place for the event: hipErrorInvalidValue",
        "elapsed time: hipErrorInvalidHandle",
        "no handle: hipErrorInvalidValue",
        "handle of an opened event: hipErrorInvalidValue",
        "destroyed by its owner: hipErrorInvalidValue",
        "ok",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

/// Each process has its file.
#[test]
fn both_processes_of_ipc_events_are_traced() {
    let outcome = Rpd::new(["--hip-runtime-trace", "-f", "csv"])
        .workload("ipc", ["events"])
        .success();
    assert_eq!(outcome.stdout, "ok\n");
    let files = outcome.files_ending("hip_api_trace.csv");
    let calls = |name: &str| {
        let has = |file: &&std::path::PathBuf| {
            let text = std::fs::read_to_string(file).expect("a file");
            text.contains(name)
        };
        files.iter().filter(has).count()
    };
    assert_eq!(files.len(), 2);
    assert_eq!(calls("\"hipIpcGetEventHandle\""), 1);
    assert_eq!(calls("\"hipIpcOpenEventHandle\""), 1);
    assert_eq!(calls("\"hipStreamWaitEvent\""), 2);
}
