//! Which dispatches are counted; traces stay whole.

use rpd_tests::run::{Outcome, Rpd};

use super::{Row, dispatches, pmc, rows, values};

/// `rpd --pmc SQ_WAVES --kernel-trace -f csv <options> -- vector-ops 1 <iterations>`
fn selected(options: &[&str], iterations: &str) -> Outcome {
    let always = ["--pmc", "SQ_WAVES", "--kernel-trace", "-f", "csv"];
    Rpd::new(always.iter().chain(options))
        .workload("vector-ops", ["1", iterations])
        .success()
}

fn kernels(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.kernel.as_str()).collect()
}

/// Checks command-line-278 and command-line-279.
#[test]
fn kernel_filters_choose_counted_kernels_and_leave_traces_whole() {
    let filters = [
        "--kernel-include-regex",
        ".*_kernel",
        "--kernel-exclude-regex",
        "multiply",
    ];
    let outcome = selected(&[&filters[..], &["-T"]].concat(), "1");
    let rows = rows(&outcome);
    assert_eq!(
        kernels(&rows),
        ["addition_kernel", "subtract_kernel", "divide_kernel"]
    );
    assert_eq!(values(&rows, "SQ_WAVES"), [1024.0; 3]);
    let trace = outcome.csv("kernel_trace");
    assert_eq!(
        trace.column("Kernel_Name"),
        [
            "addition_kernel",
            "subtract_kernel",
            "multiply_kernel",
            "divide_kernel"
        ],
        "command-line-279: a filter does not touch the trace"
    );
}

#[test]
fn kernel_filters_match_names_as_shown() {
    let count = |options: &[&str]| rows(&selected(options, "1")).len();
    // Arguments are part of the full name alone; `.kd` and the mangling of the registered one.
    assert_eq!(count(&["--kernel-include-regex", "float const"]), 4);
    assert_eq!(count(&["--kernel-exclude-regex", "<float>"]), 3);
    assert_eq!(
        count(&["-M", "--kernel-include-regex", r"^_Z13divide.*\.kd$"]),
        1
    );
    assert_eq!(
        count(&["-T", "--kernel-include-regex", "^(addition|divide)_kernel$"]),
        2
    );
    assert_eq!(count(&["-T", "--kernel-exclude-regex", "float"]), 4);
}

#[test]
fn a_filter_that_selects_no_kernel_writes_no_counter_file() {
    let outcome = selected(&["--kernel-include-regex", "no such kernel"], "1");
    assert!(outcome.files_ending("counter_collection.csv").is_empty());
    assert_eq!(outcome.csv("kernel_trace").rows.len(), 4);
}

#[test]
fn iteration_ranges_count_launches_of_each_kernel() {
    for (case, range, iterations) in [
        (
            "command-line-273",
            "[1, 3, 5, [8-12]]",
            &[1, 3, 5, 8, 9, 10, 11, 12][..],
        ),
        (
            "command-line-274",
            "[11-14], [4-5]",
            &[4, 5, 11, 12, 13, 14],
        ),
        ("command-line-275", "[[3-6], 1, 13]", &[1, 3, 4, 5, 6, 13]),
        ("command-line-276", "[5-3]", &[]),
    ] {
        let outcome = selected(&["--kernel-iteration-range", range], "14");
        let expected: Vec<u64> = iterations
            .iter()
            .flat_map(|iteration| (iteration - 1) * 4 + 1..=iteration * 4)
            .collect();
        if expected.is_empty() {
            assert!(outcome.files_ending("counter_collection.csv").is_empty());
        } else {
            assert_eq!(dispatches(&rows(&outcome))["SQ_WAVES"], expected, "{case}");
        }
        assert_eq!(outcome.csv("kernel_trace").rows.len(), 56, "{case}");
    }
}

#[test]
fn iteration_ranges_number_only_selected_kernels() {
    let options = [
        "--kernel-iteration-range",
        "[2]",
        "[3-4]",
        "--kernel-exclude-regex",
        "add|sub",
    ];
    let outcome = selected(&options, "5");
    assert_eq!(
        dispatches(&rows(&outcome))["SQ_WAVES"],
        [7, 8, 11, 12, 15, 16]
    );
}

#[test]
fn a_device_qualifier_counts_on_that_gpu_alone() {
    let outcome = pmc(["SQ_WAVES:device=1", "GRBM_COUNT"])
        .env("RPD_SIM_GPUS", "2")
        .workload("devices", [""; 0])
        .success();
    let rows = rows(&outcome);
    let agents = |counter: &str| -> Vec<&str> {
        rows.iter()
            .filter(|row| row.counter == counter)
            .map(|row| row.agent.as_str())
            .collect()
    };
    assert_eq!(agents("GRBM_COUNT"), ["Agent 1", "Agent 2", "Agent 2"]);
    assert_eq!(agents("SQ_WAVES"), ["Agent 2", "Agent 2"]);
    assert_eq!(values(&rows, "SQ_WAVES"), [1.0, 2.0]);
}

/// Checks command-line-104.
#[test]
fn a_counter_of_a_missing_gpu_is_accepted_and_counts_nothing() {
    let outcome = pmc(["SQ_WAVES", "SQ_CYCLES:device=16384"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let rows = rows(&outcome);
    assert_eq!(values(&rows, "SQ_WAVES").len(), 4);
    assert_eq!(rows.len(), 4, "the other is counted nowhere");
}

#[test]
fn counter_groups_take_turns_among_selected_dispatches() {
    let job = "jobs:
  - pmc_groups: [[SQ_WAVES], [GRBM_COUNT]]
    kernel_include_regex: addition|divide
    output_format: [csv]
";
    let outcome = super::with_input("x.yaml", job, [])
        .workload("vector-ops", ["1", "3"])
        .success();
    let rows = rows(&outcome);
    let counted = dispatches(&rows);
    assert_eq!(counted["SQ_WAVES"], [1, 5, 9]);
    assert_eq!(counted["GRBM_COUNT"], [4, 8, 12]);
}
