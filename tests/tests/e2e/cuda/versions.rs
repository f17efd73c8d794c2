//! Records of each version of CUPTI.

use super::{counts, rpd, table};

#[test]
fn records_of_every_version_of_cupti_are_read() {
    for version in [
        "11.8", "12.0", "12.3", "12.4", "12.6", "12.8", "13.0", "13.1", "13.2", "13.3", "13.5",
    ] {
        let outcome = rpd(&[
            "--cuda-trace",
            "--kernel-trace",
            "--memory-copy-trace",
            "--memory-allocation-trace",
            "-f",
            "csv",
        ])
        .env("RPD_CUDA_SIM_CUPTI", version)
        .workload("cuda", ["runtime"])
        .success();
        let kernels = table(&outcome, "kernel_trace");
        assert_eq!(kernels.rows.len(), 4, "{version}: {}", outcome.stderr);
        assert_eq!(
            table(&outcome, "memory_copy_trace").rows.len(),
            3,
            "{version}"
        );
        let allocations = table(&outcome, "memory_allocation_trace");
        assert_eq!(allocations.rows.len(), 4, "{version}");
        for (start, end) in
            (kernels.numbers("Start_Timestamp").into_iter()).zip(kernels.numbers("End_Timestamp"))
        {
            assert!(start < end, "{version}: {start} to {end}");
        }
    }
}

#[test]
fn work_is_on_the_clock_of_calls_also_where_cupti_keeps_its_own() {
    for clock in ["", "own"] {
        let outcome = rpd(&["--cuda-trace", "--kernel-trace", "-f", "csv"])
            .env("RPD_CUDA_SIM_CLOCK", clock)
            .workload("cuda", ["runtime"])
            .success();
        let (calls, kernels) = (
            table(&outcome, "cuda_api_trace"),
            table(&outcome, "kernel_trace"),
        );
        let first = calls
            .numbers("Start_Timestamp")
            .into_iter()
            .min()
            .expect("calls");
        let last = calls
            .numbers("End_Timestamp")
            .into_iter()
            .max()
            .expect("calls");
        for start in kernels.numbers("Start_Timestamp") {
            // One reading of both clocks is off by less than a millisecond, also on a busy machine.
            assert!(
                start + 1_000_000 > first && start < last + 1_000_000,
                "{clock}: {start}"
            );
        }
    }
}

#[test]
fn kernels_have_their_calls_where_the_ids_of_cupti_wrap() {
    let outcome = rpd(&["--cuda-trace", "--kernel-trace", "-f", "csv"])
        .env("RPD_CUDA_SIM_FIRST_ID", (u32::MAX - 60).to_string())
        .workload("cuda", ["launches=200"])
        .success();
    let kernels = table(&outcome, "kernel_trace");
    let ids = counts(&kernels, "Correlation_Id");
    assert_eq!((kernels.rows.len(), ids.len()), (200, 200));
    assert!(!ids.contains_key("0"));
}

#[test]
fn many_kernels_of_several_threads_are_complete() {
    let outcome = rpd(&["--cuda-trace", "--kernel-trace", "-f", "csv"])
        .workload("cuda", ["launches=30000", "threads"])
        .success();
    let kernels = table(&outcome, "kernel_trace");
    assert_eq!(kernels.rows.len(), 30_400);
    assert_eq!(counts(&kernels, "Thread_Id").len(), 5);
}
