//! `--selected-regions`: recording between ROCTx resume and pause. In `regions` phase n is a launch with n waves.

use rpd_tests::run::{Outcome, Rpd};

use super::{rows, values};

fn regions(options: &[&str]) -> Outcome {
    let always = [
        "--pmc",
        "SQ_WAVES",
        "--kernel-trace",
        "--hip-trace",
        "-f",
        "csv",
    ];
    Rpd::new(always.iter().chain(options))
        .workload("regions", [""; 0])
        .success()
}

/// The phases of which there are counters; there are traces of the same.
fn phases(options: &[&str]) -> Vec<u64> {
    let outcome = regions(options);
    let traced: Vec<u64> = outcome
        .csv("kernel_trace")
        .numbers("Grid_Size_X")
        .into_iter()
        .map(|size| size / 64)
        .collect();
    let waves = values(&rows(&outcome), "SQ_WAVES");
    let counted: Vec<u64> = waves.into_iter().map(|waves| waves as u64).collect();
    assert_eq!(counted, traced, "{options:?}");
    let launches = outcome
        .csv("hip_api_trace")
        .count("Function", "hipLaunchKernel");
    assert_eq!(launches, traced.len(), "{options:?}");
    counted
}

#[test]
fn the_first_pause_ends_a_counted_region() {
    assert_eq!(phases(&["--selected-regions"]), [2, 4, 5]);
}

#[test]
fn counted_regions_nest_with_reference_counts() {
    let options = ["--selected-regions", "--selected-regions-ref-count"];
    assert_eq!(phases(&options), [2, 4, 5, 6]);
}

#[test]
fn pauses_stop_counting_where_markers_are_traced() {
    assert_eq!(phases(&["--marker-trace"]), [1, 2, 4, 5]);
}

#[test]
fn a_job_can_select_counted_regions() {
    let job = "jobs:\n  - pmc: [SQ_WAVES]\n    selected_regions: true\n    output_format: [csv]\n";
    let outcome = super::with_input("x.yaml", job, [])
        .workload("regions", [""; 0])
        .success();
    assert_eq!(values(&rows(&outcome), "SQ_WAVES"), [2.0, 4.0, 5.0]);
}
