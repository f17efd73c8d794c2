//! Replay of kernels: all groups of counters in one run.

use std::collections::BTreeMap;

use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

use super::{Row, rows, rows_of};

const REPLAY: [&str; 3] = ["--replay-mode", "kernel", "--kernel-replay-beta-enabled"];
/// Three groups, of which two have one counter in common.
const GROUPS: [[&str; 3]; 3] = [
    ["--pmc", "SQ_WAVES", "SQ_INSTS_VALU"],
    ["--pmc", "SQ_INSTS_SALU", "SQ_INSTS_SMEM"],
    ["--pmc", "SQ_WAVES", "SQ_INSTS_VMEM_WR"],
];

/// rpd with all groups, on a provider of SDK 1.4 unless the test sets another, and the options.
fn counting(options: &[&str]) -> Rpd {
    Rpd::new(options)
        .option(GROUPS.concat())
        .env("RPD_SIM_SEED", "5")
}

fn replayed(options: &[&str], workload: &str, arguments: &[&str]) -> Outcome {
    counting(&REPLAY)
        .option(options)
        .env("RPD_SIM_SDK", "1.4")
        .workload(workload, arguments)
        .success()
}

/// Lines that say that a kernel runs once.
fn exceptions(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stderr.lines();
    lines.filter(|line| line.contains("runs once")).collect()
}

/// The values of each kernel and counter, smallest first: threads launch in any order.
fn values(rows: &[Row]) -> BTreeMap<(String, String), Vec<u64>> {
    let mut values: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for row in rows {
        let key = (row.kernel.clone(), row.counter.clone());
        values.entry(key).or_default().push(row.value as u64);
    }
    values.values_mut().for_each(|list| list.sort_unstable());
    values
}

/// Programs whose kernels write memory that is put back.
const WORKLOADS: [(&str, &[&str]); 11] = [
    ("inside", &[]),
    ("transpose", &["2"]),
    ("launch-loop", &["70"]),
    ("many-threads", &["3", "3"]),
    ("module-load", &[]),
    ("regions", &[]),
    ("streams", &[]),
    ("open-ranges", &[]),
    ("replay", &["device"]),
    ("devices", &[]),
    ("capture-limits", &["counting"]),
];

#[test]
fn replay_counts_what_separate_passes_count() {
    for (workload, arguments) in WORKLOADS {
        let once = replayed(&["-f", "csv"], workload, arguments);
        assert!(
            !once.files().iter().any(|file| file.contains("pass_")),
            "{workload}"
        );
        let passes = counting(&["-f", "csv"])
            .env("RPD_SIM_SDK", "1.0")
            .workload(workload, arguments)
            .success();
        let found = values(&rows(&once));
        let mut expected: Vec<Row> = Vec::new();
        for file in passes.files_ending("counter_collection.csv") {
            expected.extend(rows_of(&Table::read(&file)));
        }
        let expected = values(&expected);
        let of_program = |list: &BTreeMap<(String, String), Vec<u64>>| {
            let mut list = list.clone();
            // Kernels of the runtime write memory of which HIP was not told.
            list.retain(|(kernel, _), _| !kernel.starts_with("__amd_rocclr"));
            list
        };
        assert_eq!(
            of_program(&found),
            of_program(&expected),
            "{workload}: {}",
            once.stderr
        );
        assert!(
            exceptions(&once)
                .iter()
                .all(|line| line.contains("__amd_rocclr")),
            "{workload}: {}",
            once.stderr
        );
    }
}

/// sdk-newer-54, sdk-newer-55 and command-line-139
#[test]
fn program_whose_kernels_change_their_input_has_its_results() {
    let outcome = replayed(&["-f", "json", "csv"], "replay", &["device"]);
    assert_eq!(outcome.stdout, "device is right\n");
    assert_eq!(exceptions(&outcome), [""; 0], "{}", outcome.stderr);
    let text = std::fs::read_to_string(outcome.file(".json")).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let records = &json["rocprofiler-sdk-tool"][0]["callback_records"]["counter_collection"];
    let records = records.as_array().expect("records");
    let mut passes: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for record in records {
        let dispatch = &record["dispatch_data"]["dispatch_info"]["dispatch_id"];
        let dispatch = dispatch.as_u64().expect("a number");
        let pass = record["replay_pass"].as_u64();
        passes
            .entry(dispatch)
            .or_default()
            .push(pass.expect("a pass"));
    }
    // Two launches that add in place, and three that count in a variable.
    assert_eq!(passes.len(), 5);
    assert!(
        passes.values().all(|passes| *passes == [0, 1, 2]),
        "{passes:?}"
    );
    // The files of a run have no further column.
    let header = outcome.csv("counter_collection").columns;
    assert!(
        !header.iter().any(|name| name == "Replay_Pass"),
        "{header:?}"
    );
}

/// sdk-newer-56 and sdk-newer-58
#[test]
fn kernel_that_may_write_what_is_not_put_back_runs_once_and_a_line_says_so() {
    for (mode, reason) in [
        ("managed", "managed memory"),
        ("pinned", "pinned memory of the host"),
        ("registered", "registered memory of the host"),
        ("fine", "fine-grained memory of the device"),
        ("pooled", "memory of a pool (hipMallocAsync)"),
        (
            "behind",
            "memory of the device points to memory of the host",
        ),
        ("graph", "it is part of a graph"),
    ] {
        let outcome = replayed(&["-f", "csv"], "replay", &[mode]);
        assert_eq!(outcome.stdout, format!("{mode} is right\n"));
        let said = exceptions(&outcome);
        let of_kernel: Vec<_> = said
            .iter()
            .filter(|line| line.contains("kernel increment_kernel"))
            .collect();
        assert_eq!(of_kernel.len(), 1, "{mode}: {}", outcome.stderr);
        assert!(of_kernel[0].contains(reason), "{mode}: {said:?}");
        // The first group is counted.
        let found = values(&rows(&outcome));
        let counters: Vec<_> = found
            .iter()
            .filter(|((kernel, _), _)| kernel == "increment_kernel")
            .map(|((_, counter), values)| (counter.as_str(), values.len()))
            .collect();
        assert_eq!(counters, [("SQ_INSTS_VALU", 2), ("SQ_WAVES", 2)], "{mode}");
    }
}

#[test]
fn kernel_that_calls_the_host_runs_once_and_prints_once() {
    let plain = Rpd::new(["--kernel-trace", "-f", "csv"])
        .workload("device-calls", ["print"])
        .success();
    let outcome = replayed(&["-f", "csv"], "device-calls", &["print"]);
    // Workgroups print in any order.
    let lines = |outcome: &Outcome| {
        let mut lines: Vec<_> = outcome.stdout.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&outcome), lines(&plain));
    assert!(
        exceptions(&outcome)
            .iter()
            .any(|line| line.contains("it calls the host")),
        "{}",
        outcome.stderr
    );
}

/// sdk-newer-57 and command-line-140
#[test]
fn single_group_is_not_replayed() {
    let outcome = Rpd::new(REPLAY)
        .option(["--pmc", "SQ_WAVES", "SQ_INSTS_VALU", "-f", "json"])
        .env("RPD_SIM_SDK", "1.4")
        .workload("replay", ["managed"])
        .success();
    assert_eq!(exceptions(&outcome), [""; 0], "{}", outcome.stderr);
    let text = std::fs::read_to_string(outcome.file(".json")).expect("a file");
    assert!(!text.contains("replay_pass"));
}

/// sdk-newer-67
#[test]
fn counter_of_several_groups_is_never_added_up() {
    let options = ["--kernel-trace", "-f", "rocpd"];
    let outcome = replayed(&options, "replay", &["device"]);
    let database = outcome.database();
    let of_waves = "SELECT dispatch_id, group_concat(replay_pass, ' '), count(DISTINCT value), max(value)
        FROM (SELECT * FROM counters_collection WHERE counter_name = 'SQ_WAVES' ORDER BY replay_pass) GROUP BY 1 ORDER BY 1";
    let found = database.rows(of_waves);
    assert_eq!(found.len(), 5, "{found:?}");
    for row in &found {
        assert_eq!(row[1..3], ["0 2", "1"], "{found:?}");
    }
    let waves: f64 = found[0][3].parse().expect("a number");
    assert_eq!(waves, 4.0, "256 work items in waves of 64");
    let one_row_a_run = "SELECT count(*), count(DISTINCT dispatch_id), count(DISTINCT event_id), sum(replay_pass IS NULL)
        FROM rocpd_kernel_dispatch";
    assert_eq!(database.rows(one_row_a_run), [["15", "5", "15", "0"]]);
    let version = "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'";
    assert_eq!(database.rows(version), [["3.0.5"]]);
    // A dispatch is one call.
    let calls = "SELECT name, total_calls FROM top_kernels ORDER BY name";
    assert_eq!(
        database.rows(calls),
        [["counting_kernel", "3"], ["increment_kernel", "2"]]
    );
    check_conversions(&outcome);
}

/// Files and tables made of the database of a run with replays.
fn check_conversions(outcome: &Outcome) {
    let database = outcome.file("results.db");
    let convert = |format: &str| {
        Rpd::plain(["convert", "-d", "out", "-f", format, "-i"])
            .option([&database])
            .run()
            .success()
    };
    let csv = convert("csv");
    let table = csv.csv("counter_collection");
    assert_eq!(table.columns[1..3], ["Dispatch_Id", "Replay_Pass"]);
    assert_eq!(table.rows.len(), 5 * 6);
    assert_eq!(csv.csv("kernel_trace").rows.len(), 5);
    let again = convert("rocpd").database();
    let passes = "SELECT replay_pass, count(*) FROM rocpd_kernel_dispatch GROUP BY 1 ORDER BY 1";
    assert_eq!(again.rows(passes), [["0", "5"], ["1", "5"], ["2", "5"]]);
    let summary = Rpd::plain(["summary", "-i"])
        .option([&database])
        .run()
        .success();
    let mut lines = summary.stdout.lines();
    let kernel = lines.find(|line| line.contains("counting_kernel"));
    let kernel = kernel.unwrap_or_else(|| panic!("{}", summary.stdout));
    let cells: Vec<&str> = kernel.split_whitespace().collect();
    assert_eq!(cells[..2], ["counting_kernel", "3"], "{kernel}");
}

/// A dispatch that is traced beside is a row, with the times of its first run.
#[test]
fn traced_dispatch_is_recorded_once() {
    let outcome = replayed(&["--kernel-trace", "-f", "csv"], "replay", &["device"]);
    assert_eq!(outcome.csv("kernel_trace").rows.len(), 5);
    assert_eq!(outcome.csv("counter_collection").rows.len(), 5 * 6);
    assert!(!outcome.stderr.contains("WARNING"), "{}", outcome.stderr);
}

#[test]
fn provider_without_replay_is_refused_by_kernel_and_runs_passes_by_auto() {
    for sdk in ["1.0", "1.3"] {
        let outcome = counting(&REPLAY)
            .env("RPD_SIM_SDK", sdk)
            .workload("regions", [""; 0]);
        assert_eq!(outcome.code(), 1);
        let line = "cannot replay kernels; ROCprofiler-SDK 1.4 (ROCm 10.1) and later can";
        assert!(outcome.stderr.contains(line), "{}", outcome.stderr);
        assert_eq!(outcome.files(), [""; 0]);
    }
    let files = |sdk: &str, mode: &str| {
        let outcome = counting(&["--replay-mode", mode, "-f", "csv"])
            .env("RPD_SIM_SDK", sdk)
            .workload("regions", [""; 0])
            .success();
        outcome.files_ending("counter_collection.csv").len()
    };
    assert_eq!(files("1.3", "auto"), 3);
    assert_eq!(files("1.4", "auto"), 1);
    assert_eq!(files("1.4", "application"), 3);
}

#[test]
fn groups_of_auto_are_counted_in_one_run_where_kernels_can_be_replayed() {
    let run = |sdk: &str| {
        Rpd::new(["--replay-mode", "auto", "-f", "csv", "--pmc"])
            .option(["auto:SQ_WAVES,SQ_INSTS_VALU,SQ_INSTS_SALU,SQ_INSTS_SMEM,SQ_INSTS_LDS,SQ_INSTS_GDS,SQ_INSTS_FLAT,SQ_INSTS_VMEM_WR,SQ_INSTS_VMEM_RD,SQ_INSTS_BRANCH,SQ_INSTS_SENDMSG"])
            .env("RPD_SIM_SDK", sdk)
            .workload("regions", [""; 0])
            .success()
    };
    let (once, passes) = (run("1.4"), run("1.3"));
    assert_eq!(once.files_ending("counter_collection.csv").len(), 1);
    assert!(passes.files_ending("counter_collection.csv").len() > 1);
    let names = |rows: &[Row]| {
        let mut names: Vec<_> = rows.iter().map(|row| row.counter.clone()).collect();
        names.sort();
        names.dedup();
        names
    };
    assert_eq!(names(&rows(&once)).len(), 11);
}

#[test]
fn selection_of_iterations_counts_dispatches_and_not_their_runs() {
    let options = ["--kernel-iteration-range", "2", "-f", "csv"];
    let outcome = replayed(&options, "replay", &["device"]);
    let found = values(&rows(&outcome));
    assert!(!found.is_empty());
    for ((kernel, counter), values) in &found {
        let expected = if counter == "SQ_WAVES" { 2 } else { 1 };
        assert_eq!(values.len(), expected, "{kernel} {counter}");
    }
}
