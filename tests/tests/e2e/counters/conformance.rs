//! Passes and their directories, in whole runs. Where versions of the original differ, the newest syntax counts, and where
//! that is broken, its manual.

use std::fs;

use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

use super::{counters_in, layout, with_input};

const A: &str = "SQ_WAVES";
const B: &str = "GRBM_COUNT";

/// The directories of the run with counters, and what was counted in each.
fn directories(outcome: &Outcome) -> Vec<(String, Vec<String>)> {
    outcome
        .files_ending("x_counter_collection.csv")
        .iter()
        .map(|path| {
            let directory = path.parent().expect("a file is in a directory");
            let directory = directory
                .strip_prefix(outcome.out())
                .expect("below the output directory");
            let name = directory.to_str().expect("text").to_owned();
            (name, counters_in(path))
        })
        .collect()
}

fn expect<const N: usize>(case: &str, outcome: &Outcome, expected: [(&str, &[&str]); N]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(directory, counters)| {
            let counters = counters.iter().map(|name| (*name).to_owned()).collect();
            ((*directory).to_owned(), counters)
        })
        .collect::<Vec<(String, Vec<String>)>>();
    assert_eq!(directories(outcome), expected, "{case}: {}", outcome.stderr);
    assert_eq!(
        outcome.stdout,
        "ok\n".repeat(expected.len()),
        "{case}: a run for each"
    );
}

/// `rpd <options> -f csv -o x -- vector-ops 1 1`
fn plain(options: &[&str]) -> Outcome {
    Rpd::new(options.iter().chain(&["-f", "csv", "-o", "x"]))
        .workload("vector-ops", ["1", "1"])
        .success()
}

/// `rpd <options> -i <name> -f csv -o x -- vector-ops 1 1`, with an input file of this name and content.
fn file(name: &str, contents: &str, options: &[&str]) -> Outcome {
    let options = options.iter().chain(&["-f", "csv", "-o", "x"]).copied();
    with_input(name, contents, options)
        .workload("vector-ops", ["1", "1"])
        .success()
}

/// Checks command-line-199.
#[test]
fn one_pmc_group_has_no_pass_directory() {
    expect("command-line-199", &plain(&["--pmc", A]), [("", &[A])]);
}

/// Checks command-line-200.
#[test]
fn two_pmc_groups_have_two_pass_directories() {
    let outcome = plain(&["--pmc", A, "--pmc", B]);
    expect(
        "command-line-200",
        &outcome,
        [("pass_1", &[A]), ("pass_2", &[B])],
    );
}

/// Checks command-line-201.
#[test]
fn a_json_job_that_counts_has_a_pass_directory() {
    let outcome = file("x.json", r#"{"jobs": [{"pmc": ["SQ_WAVES"]}]}"#, &[]);
    expect("command-line-201", &outcome, [("pass_1", &[A])]);
}

/// Checks command-line-202.
#[test]
fn a_text_line_of_counters_has_a_pmc_directory() {
    let outcome = file("x.txt", "pmc: SQ_WAVES\n", &[]);
    expect("command-line-202", &outcome, [("pmc_1", &[A])]);
}

/// Checks command-line-203.
#[test]
fn pass_directories_lie_below_a_directory_with_a_placeholder() {
    let backend = std::env::var("RPD_TEST_BACKEND").unwrap_or_else(|_| "sim".into());
    let rpd = Rpd::plain([
        "-d",
        "out/%argt%-cc",
        "--backend",
        &backend,
        "-i",
        "x.txt",
        "-f",
        "csv",
        "-o",
        "x",
    ]);
    fs::write(
        rpd.directory().join("x.txt"),
        "pmc: SQ_WAVES\npmc: GRBM_COUNT\n",
    )
    .expect("a file");
    let outcome = rpd.workload("vector-ops", ["1", "1"]).success();
    expect(
        "command-line-203",
        &outcome,
        [
            ("vector-ops1_1-cc/pmc_1", &[A]),
            ("vector-ops1_1-cc/pmc_2", &[B]),
        ],
    );
}

/// Checks command-line-204.
#[test]
fn two_jobs_that_count_have_two_pass_directories() {
    let yaml = "jobs:\n  - pmc: [SQ_WAVES]\n  - pmc: [GRBM_COUNT]\n";
    let json = r#"{"jobs": [{"pmc": ["SQ_WAVES"]}, {"pmc": ["GRBM_COUNT"]}]}"#;
    for (name, contents) in [("x.yaml", yaml), ("x.yml", yaml), ("x.json", json)] {
        let outcome = file(name, contents, &[]);
        expect(
            "command-line-204",
            &outcome,
            [("pass_1", &[A]), ("pass_2", &[B])],
        );
    }
}

const JOB: &str = r#"{"jobs": [{"pmc": ["SQ_WAVES"]}]}"#;

/// Checks command-line-205.
#[test]
fn a_job_and_a_pmc_group_with_the_same_counters_are_two_passes() {
    let outcome = file("x.json", JOB, &["--pmc", A]);
    expect(
        "command-line-205",
        &outcome,
        [("pass_1", &[A]), ("pass_2", &[A])],
    );
}

/// Checks command-line-206.
#[test]
fn a_pmc_group_runs_before_a_job_with_other_counters() {
    let outcome = file("x.json", JOB, &["--pmc", B]);
    expect(
        "command-line-206",
        &outcome,
        [("pass_1", &[B]), ("pass_2", &[A])],
    );
}

/// Checks command-line-207 and command-line-D6.
#[test]
fn pmc_groups_and_text_lines_are_numbered_through() {
    // The original's third and fourth directory are pmc_3 and pmc_4, against its manual.
    let outcome = file(
        "x.txt",
        "pmc: FETCH_SIZE SQ_WAVES\npmc: GRBM_COUNT\n",
        &["--pmc", "TCC_HIT", "--pmc", "TCC_MISS"],
    );
    expect(
        "command-line-207",
        &outcome,
        [
            ("pass_1", &["TCC_HIT"]),
            ("pass_2", &["TCC_MISS"]),
            ("pass_3", &["FETCH_SIZE", "SQ_WAVES"]),
            ("pass_4", &["GRBM_COUNT"]),
        ],
    );
}

/// Checks command-line-208.
#[test]
fn a_job_without_counters_and_a_pmc_group_are_one_pass() {
    let outcome = file(
        "x.json",
        r#"{"jobs": [{"hip_trace": true}]}"#,
        &["--pmc", A],
    );
    expect("command-line-208", &outcome, [("pass_1", &[A])]);
    assert!(
        layout(&outcome).contains(&"pass_1/x_hip_api_trace.csv".to_owned()),
        "the job's trace is of the same run: {:?}",
        outcome.files()
    );
}

/// Checks command-line-209.
#[test]
fn a_pmc_group_inherits_the_filter_of_the_first_job() {
    let job = r#"{"jobs": [{"pmc": ["SQ_WAVES"], "kernel_include_regex": "divide"}]}"#;
    let outcome = file("x.json", job, &["--pmc", B]);
    expect(
        "command-line-209",
        &outcome,
        [("pass_1", &[B]), ("pass_2", &[A])],
    );
    for path in outcome.files_ending("x_counter_collection.csv") {
        let table = Table::read(&path);
        let kernels = table.column("Kernel_Name");
        assert_eq!(kernels.len(), 1, "{}: {kernels:?}", path.display());
        assert!(kernels[0].starts_with("divide"), "{kernels:?}");
    }
}

/// Checks command-line-210 and command-line-D5.
#[test]
fn jobs_without_counters_are_passes() {
    // The newer original runs nothing and prints nothing; its manual and its older one run both.
    let jobs = r#"{"jobs": [{"hip_trace": true}, {"kernel_trace": true}]}"#;
    let outcome = file("x.json", jobs, &[]);
    assert_eq!(outcome.stdout, "ok\nok\n");
    assert_eq!(
        layout(&outcome),
        [
            "pass_1/x_agent_info.csv",
            "pass_1/x_hip_api_trace.csv",
            "pass_2/x_agent_info.csv",
            "pass_2/x_kernel_trace.csv",
        ]
    );
}

/// Checks command-line-211.
#[test]
fn a_job_without_counters_runs_before_one_with_counters() {
    // No job is dropped (command-line-D5).
    let jobs = r#"{"jobs": [{"kernel_trace": true}, {"pmc": ["SQ_WAVES"]}]}"#;
    let outcome = file("x.json", jobs, &[]);
    assert_eq!(outcome.stdout, "ok\nok\n");
    let files = layout(&outcome);
    assert!(
        files.contains(&"pass_1/x_kernel_trace.csv".to_owned()),
        "{files:?}"
    );
    assert_eq!(
        directories(&outcome),
        [("pass_2".to_owned(), vec![A.to_owned()])]
    );
}

/// Checks command-line-217 and command-line-D15.
#[test]
fn a_failing_pass_ends_the_run_with_status_1() {
    let outcome = Rpd::new(["--pmc", A, "--pmc", B])
        .target(["/bin/sh", "-c", "echo run >>runs; exit 3"])
        .expect_code(1);
    assert!(outcome.stderr.contains("status 3"), "{}", outcome.stderr);
    let runs = fs::read_to_string(outcome.directory.path().join("runs")).expect("a run");
    assert_eq!(runs, "run\n");
}

/// Checks command-line-219.
#[test]
fn four_jobs_keep_their_own_filters() {
    let jobs = "jobs:
  - pmc: [SQ_WAVES]
    kernel_include_regex: .*_kernel
    kernel_exclude_regex: multiply
  - pmc: [GRBM_COUNT]
    kernel_include_regex: divide
  - pmc: [SQ_WAVES]
    kernel_iteration_range: '[2]'
  - pmc: [GRBM_COUNT]
    kernel_exclude_regex: .*
";
    let outcome = with_input("x.yaml", jobs, ["-f", "csv", "-o", "x", "-T"])
        .workload("vector-ops", ["1", "2"])
        .success();
    assert_eq!(outcome.stdout, "ok\n".repeat(4));
    let kernels: Vec<(String, Vec<String>)> = outcome
        .files_ending("x_counter_collection.csv")
        .iter()
        .map(|path| {
            let table = Table::read(path);
            let kernels = table.column("Kernel_Name").into_iter().map(str::to_owned);
            let pass = path.parent().and_then(|directory| directory.file_name());
            let pass = pass.and_then(|name| name.to_str()).expect("a directory");
            (pass.to_owned(), kernels.collect())
        })
        .collect();
    let named = |pass: &str, names: &str| {
        let names = names.split(' ').map(|name| format!("{name}_kernel"));
        (pass.to_owned(), names.collect::<Vec<_>>())
    };
    assert_eq!(
        kernels,
        [
            named(
                "pass_1",
                "addition subtract divide addition subtract divide"
            ),
            named("pass_2", "divide divide"),
            named("pass_3", "addition subtract multiply divide"),
        ],
        "nothing is left for the fourth: {:?}",
        outcome.files()
    );
}
