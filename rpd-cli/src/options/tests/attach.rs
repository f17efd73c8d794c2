//! A running process to attach to.

use std::time::Duration;

use super::{Got, plan_with, run_with};

fn failure(line: &str) -> String {
    match run_with(line, &[]) {
        Got::Failure(failure) => failure.message,
        _ => panic!("{line}: no failure"),
    }
}

#[test]
fn attach_takes_the_process_by_each_of_its_names() {
    for option in ["--attach 12", "--pid=12", "-p 12", "-p12"] {
        let attach = plan_with(&format!("{option} -s"), &[]).attach;
        let attach = attach.expect("a process");
        assert_eq!(
            (attach.pid, attach.duration, attach.children),
            (12, None, true)
        );
        assert!(attach.scratch_is_included && attach.needs_sdk.is_none());
    }
    let line = "--pid 12 -s --attach-duration-msec 500 --attach-children off --attach-sync-output";
    let attach = plan_with(line, &[]).attach.expect("a process");
    assert_eq!(attach.duration, Some(Duration::from_millis(500)));
    assert!(!attach.children);
    assert_eq!(plan_with("-s -- a", &[]).attach, None);
}

#[test]
fn attach_names_options_that_need_the_sdk() {
    for (line, name) in [
        ("--pid 12 --pmc SQ_WAVES", "--pmc"),
        ("--pid 12 --scratch-memory-trace", "--scratch-memory-trace"),
    ] {
        let attach = plan_with(line, &[]).attach.expect("a process");
        assert_eq!(
            attach.needs_sdk.map(|needed| needed.0).as_deref(),
            Some(name)
        );
    }
}

#[test]
fn attach_refuses_what_only_a_program_that_starts_can_have() {
    assert!(failure("--pid 12 -s -- ./app").contains("a program cannot be started as well"));
    assert!(failure("--pid 12 --kernel-trace --kokkos-trace").starts_with("--kokkos-trace: "));
    assert!(failure("--pid 12 -s --preload a.so").starts_with("--preload: "));
    assert!(
        failure("--pid 12 --pmc SQ_WAVES --pmc GRBM_COUNT")
            .contains("is not compatible with attach mode")
    );
    for option in [
        "--attach-duration-msec 5",
        "--attach-children",
        "--attach-sync-output",
    ] {
        let message = failure(&format!("-s {option} -- ./app"));
        assert!(
            message.contains("needs a process to attach to"),
            "{message}"
        );
    }
    assert!(failure("--pid 0 -s").contains("--pid"));
}
