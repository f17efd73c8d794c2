//! Processes that fork, and processes that end in other ways than by returning.

use std::time::Duration;

use super::{rpd, table};

const TRACES: [&str; 4] = ["--cuda-trace", "--kernel-trace", "-f", "csv"];

#[test]
fn child_of_a_cuda_process_ends_although_cupti_never_returns_there() {
    let outcome = rpd(&TRACES)
        .limit(Duration::from_secs(60))
        .workload("cuda", ["launches=10", "child", "launches=5"])
        .success();
    assert!(
        outcome.stdout.contains("child: status 3"),
        "{}",
        outcome.stdout
    );
    let files = outcome.files_ending("kernel_trace.csv");
    let rows: usize = files
        .iter()
        .map(|path| rpd_tests::outputs::Table::read(path).rows.len())
        .sum();
    assert_eq!(rows, 15);
}

#[test]
fn fork_before_cuda_gives_two_recorded_processes() {
    let outcome = rpd(&TRACES)
        .option(["-o", "p-%pid%"])
        .workload("cuda", ["fork-first"])
        .success();
    let files = outcome.files_ending("kernel_trace.csv");
    assert_eq!(files.len(), 2, "{:?}", outcome.files());
    for file in files {
        assert_eq!(rpd_tests::outputs::Table::read(&file).rows.len(), 10);
    }
}

#[test]
fn ends_without_exit_handlers_lose_no_complete_kernel() {
    let outcome = rpd(&TRACES)
        .workload("cuda", ["launches=50", "_exit"])
        .expect_code(5);
    assert_eq!(
        table(&outcome, "kernel_trace").rows.len(),
        50,
        "{}",
        outcome.stderr
    );
    let outcome = rpd(&TRACES)
        .workload("cuda", ["launches=50", "abort"])
        .expect_code(134);
    assert_eq!(
        table(&outcome, "kernel_trace").rows.len(),
        50,
        "{}",
        outcome.stderr
    );
}

#[test]
fn killed_program_has_all_calls_and_the_kernels_of_before_the_last_flush() {
    let outcome = rpd(&TRACES)
        .workload("cuda", ["launches=50", "kill-later"])
        .expect_code(137);
    assert_eq!(
        table(&outcome, "kernel_trace").rows.len(),
        50,
        "{}",
        outcome.stderr
    );
    let calls = table(&outcome, "cuda_api_trace");
    assert_eq!(calls.count("Function", "cudaLaunchKernel"), 50);
}
