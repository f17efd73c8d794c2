//! What cannot be recorded is said in one line, and the program is unharmed.

use rpd_tests::run::{Outcome, Rpd};

use super::{links, rpd, table};

/// A run with a variable of the stand-in; the program ends as it does without rpd.
fn run_with(name: &str, value: &str) -> Outcome {
    let outcome = rpd(&["--cuda-trace", "--kernel-trace", "-f", "csv"])
        .env(name, value)
        .workload("cuda", ["runtime"])
        .success();
    assert!(
        outcome.stdout.contains("runtime: 54, refused with 21"),
        "{}",
        outcome.stdout
    );
    outcome
}

/// The lines of the report that are about CUDA.
fn lines(outcome: &Outcome) -> Vec<&str> {
    outcome
        .stderr
        .lines()
        .filter(|line| line.contains("CUDA"))
        .collect()
}

#[test]
fn refused_subscription_is_one_line_that_names_the_other_tool() {
    for (status, expected) in [
        ("39", "it calls itself another tool"),
        ("15", "CUPTI_ERROR_NOT_INITIALIZED (15)"),
        ("999", "CUPTI_ERROR_UNKNOWN (999)"),
    ] {
        let outcome = run_with("RPD_CUDA_SIM_SUBSCRIBE", status);
        let found = lines(&outcome);
        assert_eq!(found.len(), 1, "{}", outcome.stderr);
        assert!(
            found[0].contains("CUDA is not recorded") && found[0].contains(expected),
            "{found:?}"
        );
    }
}

#[test]
fn kind_that_cannot_be_enabled_is_named_with_what_to_do() {
    for (status, expected) in [
        ("21", "kernels are not recorded"),
        ("35", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("43", "partitioned (MIG)"),
    ] {
        let outcome = run_with("RPD_CUDA_SIM_ENABLE", status);
        assert!(
            lines(&outcome).iter().any(|line| line.contains(expected)),
            "{}",
            outcome.stderr
        );
        // Calls do not depend on it.
        assert!(table(&outcome, "cuda_api_trace").rows.len() > 10);
    }
}

#[test]
fn silence_after_an_accepted_subscription_is_noticed() {
    let outcome = run_with("RPD_CUDA_SIM_SILENT", "all");
    assert!(
        lines(&outcome).iter().any(|line| line.contains("nsys")),
        "{}",
        outcome.stderr
    );
    let outcome = run_with("RPD_CUDA_SIM_SILENT", "records");
    let expected = "4 launches of kernels were recorded, and CUPTI has delivered no kernel";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
}

#[test]
fn dropped_records_and_a_fatal_error_of_cupti_are_reported() {
    let outcome = run_with("RPD_CUDA_SIM_DROPPED", "3");
    let expected = "3 records of device work are missing";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    let outcome = run_with("RPD_CUDA_SIM_FATAL", "1");
    assert!(
        outcome.stderr.contains("the recording ends there"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn process_without_cupti_runs_and_the_line_says_where_it_was_searched() {
    let directory = links("rpd-cuda-sim-alone", &["libcuda.so.1"]);
    let outcome = rpd(&["--cuda-trace", "-f", "csv"])
        .env("LD_LIBRARY_PATH", &directory)
        .env("CUDA_HOME", "/nowhere")
        .workload("cuda", ["runtime"])
        .success();
    if outcome.stderr.contains("provider cuda")
        && !table(&outcome, "cuda_api_trace").rows.is_empty()
    {
        rpd_tests::run::skipped("a CUDA program without CUPTI", "a CUPTI is installed");
        return;
    }
    let expected = "neither libcupti.so.13 nor .12 nor .11.8 was found";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
}

#[test]
fn cupti_of_version_12_alone_is_found() {
    let directory = links("rpd-cuda-sim-12", &["libcuda.so.1", "libcupti.so.12"]);
    let outcome = rpd(&["--cuda-trace", "-f", "csv"])
        .env("LD_LIBRARY_PATH", &directory)
        .workload("cuda", ["runtime"])
        .success();
    assert!(
        table(&outcome, "cuda_api_trace").rows.len() > 10,
        "{}",
        outcome.stderr
    );
}

#[test]
fn injection_of_another_tool_is_refused_by_its_name() {
    let outcome = Rpd::plain(["-d", "out", "--backend", "cuda", "--cuda-trace"])
        .env("CUDA_INJECTION64_PATH", "/opt/other/libtool.so")
        .target(["true"]);
    assert_ne!(outcome.code(), 0);
    assert!(
        outcome.stderr.contains("CUDA_INJECTION64_PATH"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("/opt/other/libtool.so"),
        "{}",
        outcome.stderr
    );
}
