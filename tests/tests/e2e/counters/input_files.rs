//! Input files against what the original made of the same ones.

use std::collections::BTreeSet;
use std::fs;

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::Outcome;

use super::{anonymous, json_of, layout, with_input};

/// Files and rows that the original wrote: `file NAME` opens a file, `columns` gives a table's first line, and every
/// line after that the columns of a row whose values are not matter of time or address.
const TXT: &str = include_str!("../../../golden/counters-input-txt.txt");
const YAML: &str = include_str!("../../../golden/counters-input-yaml.txt");
const MULTIPLEX: &str = include_str!("../../../golden/counters-multiplex.txt");

/// Columns whose values are those of the process, of addresses, of the clock, or of the counting itself.
const OWN: [&str; 6] = [
    "Process_Id",
    "Thread_Id",
    "Kernel_Id",
    "Counter_Value",
    "Start_Timestamp",
    "End_Timestamp",
];

/// A table in the form of the constants above.
fn described(table: &Table) -> String {
    let mut text = format!("columns {}\n", table.columns.join(","));
    if !table.columns.contains(&"Counter_Name".to_owned()) {
        return text;
    }
    for row in &table.rows {
        let kept = table.columns.iter().zip(row);
        let kept = kept.filter(|(column, _)| !OWN.contains(&column.as_str()));
        let kept: Vec<&str> = kept.map(|(_, value)| value.as_str()).collect();
        text.push_str(&kept.join("|"));
        text.push('\n');
    }
    text
}

/// Everything below the output directory in the form of the constants above.
fn reproduced(outcome: &Outcome) -> String {
    let mut files: Vec<(String, String)> = outcome
        .files()
        .into_iter()
        .map(|file| (anonymous(&file), file))
        .filter(|(name, _)| !name.ends_with("passes.csv"))
        .collect();
    files.sort();
    let mut text = String::new();
    for (name, file) in files {
        text.push_str(&format!("file {name}\n"));
        if name.ends_with(".csv") {
            text.push_str(&described(&Table::read(&outcome.out().join(file))));
        }
    }
    text
}

#[test]
fn a_text_file_with_two_lines_runs_two_passes() {
    let input = "pmc: SQ_WAVES GRBM_COUNT\n# a comment\npmc: GRBM_GUI_ACTIVE\n";
    let outcome = with_input("input.txt", input, ["-f", "csv"])
        .workload("vector-ops", ["1", "1"])
        .success();
    assert_eq!(outcome.stdout, "ok\nok\n");
    assert_eq!(reproduced(&outcome), TXT);
    // No other lines are read.
    assert!(
        outcome.stderr.contains("input.txt"),
        "command-line-171, deprecated:\n{}",
        outcome.stderr
    );
}

const JOBS: &str = r#"jobs:
  - pmc: ["SQ_WAVES", "GRBM_COUNT"]
  - pmc: ["FETCH_SIZE"]
    kernel_include_regex: ".*_kernel"
    kernel_exclude_regex: "multiply"
    kernel_iteration_range: "[1-2],[3-4]"
    output_file: "out"
    output_format: ["csv", "json"]
    truncate_kernels: true
"#;

#[test]
fn a_yaml_file_with_two_jobs_runs_two_passes() {
    let outcome = with_input("input.yaml", JOBS, [])
        .workload("vector-ops", ["1", "4"])
        .success();
    assert_eq!(outcome.stdout, "ok\nok\n");
    assert_eq!(reproduced(&outcome), YAML);

    let database = Database::open(&outcome.file("_results.db"));
    let counted = "SELECT counter_name, count(*), count(DISTINCT dispatch_id) FROM counters_collection \
                   GROUP BY counter_name ORDER BY counter_name";
    assert_eq!(
        database.rows(counted),
        [["GRBM_COUNT", "16", "16"], ["SQ_WAVES", "16", "16"]]
    );
    let json = json_of(&outcome.out().join("pass_2/out_results.json"));
    let dispatches = json["callback_records"]["counter_collection"]
        .as_array()
        .expect("counted dispatches");
    assert_eq!(dispatches.len(), 12);
    let ids: BTreeSet<u64> = dispatches
        .iter()
        .filter_map(|dispatch| dispatch["dispatch_data"]["dispatch_info"]["dispatch_id"].as_u64())
        .collect();
    assert!(
        (1..=16).filter(|id| id % 4 != 3).eq(ids),
        "all but the multiplications"
    );
}

#[test]
fn counter_groups_take_turns_by_dispatch() {
    let input = r#"{"jobs": [{"pmc_groups": [["SQ_WAVES", "GRBM_COUNT"], ["GRBM_GUI_ACTIVE"]],
                              "pmc_group_interval": 4}]}"#;
    let outcome = with_input("mux.json", input, ["-f", "csv", "-o", "trace"])
        .workload("vector-ops", ["1", "3"])
        .success();
    assert_eq!(outcome.stdout, "ok\n");
    assert_eq!(reproduced(&outcome), MULTIPLEX);
    // command-line-284: with an interval of 1 neighbours differ.
    let input = r#"{"jobs": [{"pmc_groups": [["SQ_WAVES", "GRBM_COUNT"], ["GRBM_GUI_ACTIVE"]]}]}"#;
    let outcome = with_input("mux.json", input, ["-f", "csv"])
        .workload("vector-ops", ["1", "2"])
        .success();
    let rows = super::rows(&outcome);
    let counted = super::dispatches(&rows);
    assert_eq!(counted["SQ_WAVES"], [1, 3, 5, 7]);
    assert_eq!(counted["GRBM_COUNT"], [1, 3, 5, 7]);
    assert_eq!(counted["GRBM_GUI_ACTIVE"], [2, 4, 6, 8]);
}

#[test]
fn counter_groups_follow_dispatch_numbers_across_threads() {
    let input = r#"{"jobs": [{"pmc_groups": [["SQ_WAVES"], ["GRBM_GUI_ACTIVE"]], "pmc_group_interval": 4}]}"#;
    let outcome = with_input("mux.json", input, ["-f", "csv"])
        .workload("many-threads", ["16", "4"])
        .success();
    let rows = super::rows(&outcome);
    // Rows are in the order of time.
    let mut counted = super::dispatches(&rows);
    counted.values_mut().for_each(|numbers| numbers.sort());
    let (first, second) = (1..=64).partition::<Vec<u64>, _>(|number| (number - 1) / 4 % 2 == 0);
    assert_eq!(counted["SQ_WAVES"], first);
    assert_eq!(counted["GRBM_GUI_ACTIVE"], second);
}

#[test]
fn unknown_job_keys_are_reported_and_ignored() {
    let input = "jobs:\n  - pmc: [SQ_WAVES]\n    bogus_key: 1\n    output-format: csv\n";
    let outcome = with_input("job.yaml", input, [])
        .workload("vector-ops", ["1", "1"])
        .success();
    let place = outcome
        .stderr
        .lines()
        .find(|line| line.contains("bogus_key"));
    let place = place.unwrap_or_else(|| panic!("no warning\n{}", outcome.stderr));
    assert!(place.contains("job.yaml:3:5"), "{place}");
    assert_eq!(super::rows(&outcome).len(), 4, "{:?}", outcome.files());
}

#[test]
fn a_job_in_json_equals_the_job_in_yaml() {
    let yaml =
        "jobs:\n  - pmc: [SQ_WAVES]\n    kernel_include_regex: divide\n    output_format: [csv]\n";
    let json = r#"{"jobs": [{"pmc": ["SQ_WAVES"], "kernel_include_regex": "divide", "output_format": ["csv"]}]}"#;
    let run = |name: &str, text: &str| {
        let outcome = with_input(name, text, [])
            .workload("vector-ops", ["1", "1"])
            .success();
        (
            layout(&outcome),
            super::values(&super::rows(&outcome), "SQ_WAVES"),
        )
    };
    let from_yaml = run("job.yaml", yaml);
    assert_eq!(from_yaml, run("job.json", json));
    assert_eq!(from_yaml.1, [1024.0]);
}

#[test]
fn input_files_are_not_changed_by_a_run() {
    let outcome = with_input("job.yaml", JOBS, ["--truncate-kernels"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let left = fs::read_to_string(outcome.directory.path().join("job.yaml"));
    assert_eq!(left.expect("the input file"), JOBS);
}
