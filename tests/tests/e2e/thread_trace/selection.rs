//! Which dispatches are traced, and on what.

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd};

use crate::thread_trace::runs::traced;

/// The numbers of the dispatches that have a trace.
fn numbers(outcome: &Outcome) -> Vec<u64> {
    let mut numbers: Vec<u64> = (outcome.files_ending(".att").iter())
        .filter_map(|path| path.file_stem()?.to_str()?.rsplit_once('_')?.1.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Checks thread-trace-17 to thread-trace-19.
#[test]
fn iteration_ranges_and_filters_choose_traced_dispatches() {
    // 64 launches of one kernel.
    let launches = ["lane_mask", "2"];
    assert_eq!(numbers(&traced(&[], &launches)), [1]);
    let range = traced(&["--kernel-iteration-range", "[1,2,[5-8]]"], &launches);
    assert_eq!(numbers(&range), [1, 2, 5, 6, 7, 8]);
    let none = traced(&["--kernel-exclude-regex", "lane"], &launches);
    assert!(numbers(&none).is_empty());
    assert!(
        none.stderr
            .contains("nothing was traced: no kernel that ran is selected"),
        "{}",
        none.stderr
    );
}

/// Checks thread-trace-9.
#[test]
fn thread_traces_come_from_the_shader_engines_of_the_mask() {
    let outcome = traced(
        &[
            "--att-shader-engine-mask",
            "0x11",
            "--att-buffer-size",
            "0x6000000",
        ],
        &["dependent_chain", "2", "16"],
    );
    let mut engines: Vec<String> = (outcome.files_ending(".att").iter())
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?;
            Some(name.rsplit('_').nth(1)?.to_owned())
        })
        .collect();
    engines.sort();
    assert_eq!(engines, ["0", "4"]);
    assert!(
        outcome.stderr.contains(
            "thread traces of compute unit 0, SIMDs 0xf, shader engines 0x11, with a buffer of 100663296 bytes, 50204672 for each engine: "
        ),
        "{}",
        outcome.stderr
    );
}

/// Checks thread-trace-58: with one kernel after the other, a trace ends this many kernels after the selected one.
#[test]
fn a_consecutive_trace_ends_after_the_last_selected_kernel() {
    let outcome = traced(
        &[
            "--att-consecutive-kernels",
            "3",
            "--kernel-iteration-range",
            "2",
        ],
        &["lane_mask", "2"],
    );
    assert_eq!(numbers(&outcome), [1], "{}", outcome.stderr);
    let database = Database::open(&outcome.file("results.db"));
    let waves = database.number("SELECT sum(started) FROM thread_traces");
    assert!(waves > 0);
    let all = traced(
        &[
            "--att-consecutive-kernels",
            "1000",
            "--kernel-iteration-range",
            "2",
        ],
        &["lane_mask", "2"],
    );
    let database = Database::open(&all.file("results.db"));
    assert!(database.number("SELECT sum(started) FROM thread_traces") > waves);
}

/// Traces of what a program resumes and pauses, one for each.
#[test]
fn each_selected_region_has_a_thread_trace() {
    let outcome = Rpd::new(["--att", "--selected-regions"]).workload("regions", &[] as &[&str]);
    assert!(
        !outcome.files_ending(".att").is_empty(),
        "{}",
        outcome.stderr
    );
    let database = Database::open(&outcome.file("results.db"));
    let first = database.number("SELECT min(trace) FROM thread_traces");
    assert_eq!(first, 1);
}

/// A warning that applies to many traces is printed once.
#[test]
fn warnings_about_many_thread_traces_are_joined() {
    let outcome = Rpd::new(["--att", "--att-target-cu", "12"])
        .option(["--kernel-iteration-range", "1-64"])
        .workload("inside", ["lane_mask", "1"])
        .success();
    assert_eq!(numbers(&outcome).len(), 64);
    let warnings: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("WARNING"))
        .collect();
    assert_eq!(warnings.len(), 9, "{warnings:#?}");
    assert!(
        warnings[8].ends_with("56 more warnings about thread traces (rpd att decode lists all)"),
        "{warnings:#?}"
    );
}
