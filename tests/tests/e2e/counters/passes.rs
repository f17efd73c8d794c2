//! Several passes: plan, directories, the table over all of them, failing passes, sets that `rpd` splits itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};

use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

use super::{VECTOR_OPS, counters_in};

/// `rpd <options> -f csv -o x -- vector-ops 1 1`
fn run(options: &[&str]) -> Outcome {
    Rpd::new(options.iter().chain(&["-f", "csv", "-o", "x"])).workload("vector-ops", ["1", "1"])
}

#[test]
fn every_pass_reads_standard_input_from_the_same_place() {
    let mut input = tempfile::tempfile().expect("a file");
    input
        .write_all(b"one\ntwo\nthree\n")
        .and_then(|()| input.seek(SeekFrom::Start(4)).map(drop))
        .expect("written");
    let outcome = Rpd::new(["--pmc", "SQ_WAVES", "--pmc", "GRBM_COUNT"])
        .input(input)
        .target(["cat"])
        .success();
    assert_eq!(outcome.stdout, "two\nthree\n".repeat(2));
}

/// A prefix that leaves the pass directory is the same path in all passes.
#[test]
fn passes_with_a_shared_prefix_do_not_overwrite_files() {
    let outcome = Rpd::new([
        "--pmc",
        "SQ_WAVES",
        "--pmc",
        "FETCH_SIZE",
        "-f",
        "csv",
        "-o",
        "../x",
    ])
    .workload("vector-ops", ["1", "1"])
    .success();
    assert_eq!(
        outcome.files(),
        [
            "x_2_agent_info.csv",
            "x_2_counter_collection.csv",
            "x_agent_info.csv",
            "x_counter_collection.csv",
            "x_passes.csv",
        ]
    );
    let counters = |suffix: &str| counters_in(&outcome.out().join(suffix));
    assert_eq!(counters("x_counter_collection.csv"), ["SQ_WAVES"]);
    assert_eq!(counters("x_2_counter_collection.csv"), ["FETCH_SIZE"]);
}

/// `rpd ... 2>&1 | head`: the words are lost, the passes are not.
#[test]
fn passes_run_when_nobody_reads_their_messages() {
    let directory = tempfile::tempdir().expect("a directory");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = std::process::Command::new(rpd_tests::install::rpd())
        .args(["--backend", "sim", "--pmc", "SQ_WAVES", "--pmc"])
        .args(["FETCH_SIZE", "-f", "csv", "-o", "x", "-d"])
        .arg(directory.path())
        .arg("--")
        .arg(rpd_tests::workloads::path("vector-ops"))
        .args(["1", "1"])
        .stdout(std::process::Stdio::null())
        .stderr(writer)
        .status()
        .expect("rpd starts");
    assert!(status.success(), "{status}");
    let table = Table::read(&directory.path().join("x_passes.csv"));
    assert_eq!(table.count("Counter_Name", "SQ_WAVES"), 4);
    assert_eq!(table.count("Counter_Name", "FETCH_SIZE"), 4);
}

/// The pass directories of a run, each with the counters in it.
fn passes(outcome: &Outcome) -> BTreeMap<String, Vec<String>> {
    let files = outcome.files_ending("_counter_collection.csv");
    let directory = |path: &std::path::Path| {
        let directory = path.parent().expect("a file is in a directory");
        directory
            .strip_prefix(outcome.out())
            .expect("below the output directory")
            .to_str()
            .expect("text")
            .to_owned()
    };
    files
        .iter()
        .map(|path| (directory(path), counters_in(path)))
        .collect()
}

#[test]
fn passes_are_announced_and_have_their_own_directories() {
    let outcome = run(&["--pmc", "SQ_WAVES", "--pmc", "FETCH_SIZE", "WRITE_SIZE"]).success();
    assert_eq!(outcome.stdout, "ok\nok\n", "the target ran twice");
    let lines = ["pass 1/2: SQ_WAVES", "pass 2/2: FETCH_SIZE WRITE_SIZE"];
    let at = lines.map(|line| {
        let found = outcome.stderr.find(line);
        found.unwrap_or_else(|| panic!("no `{line}` in\n{}", outcome.stderr))
    });
    assert!(at[0] < at[1], "{}", outcome.stderr);
    let first_report = outcome.stderr.find("vector-ops[").expect("the ledger");
    assert!(
        at[1] < first_report,
        "the plan comes before anything runs\n{}",
        outcome.stderr
    );
    assert_eq!(
        passes(&outcome),
        BTreeMap::from([
            ("pass_1".to_owned(), vec!["SQ_WAVES".to_owned()]),
            (
                "pass_2".to_owned(),
                vec!["FETCH_SIZE".to_owned(), "WRITE_SIZE".to_owned()]
            ),
        ])
    );
    assert_eq!(
        outcome.files(),
        [
            "pass_1/x_agent_info.csv",
            "pass_1/x_counter_collection.csv",
            "pass_2/x_agent_info.csv",
            "pass_2/x_counter_collection.csv",
            "x_passes.csv",
        ]
    );
}

/// Kernel, index, counter, value and pass of each row of a table over all passes.
fn over_all(outcome: &Outcome) -> Vec<[String; 5]> {
    let table = Table::read(&outcome.file("passes.csv"));
    assert_eq!(
        table.columns[..5],
        [
            "Kernel_Name",
            "Dispatch_Index",
            "Counter_Name",
            "Counter_Value",
            "Pass"
        ]
    );
    table
        .rows
        .iter()
        .map(|row| std::array::from_fn(|column| row[column].clone()))
        .collect()
}

#[test]
fn passes_are_joined_in_one_table() {
    let outcome = Rpd::new([
        "--pmc",
        "SQ_WAVES",
        "--pmc",
        "SQ_INSTS_VMEM_RD",
        "-f",
        "csv",
    ])
    .workload("vector-ops", ["1", "2"])
    .success();
    assert!(
        outcome.files().contains(&"passes.csv".to_owned()),
        "without a prefix of its own: {:?}",
        outcome.files()
    );
    let mut expected = BTreeSet::new();
    for (counter, value, pass) in [
        ("SQ_WAVES", "1024.000000", "1"),
        ("SQ_INSTS_VMEM_RD", "2048.000000", "2"),
    ] {
        for kernel in VECTOR_OPS {
            for index in ["1", "2"] {
                expected.insert([kernel, index, counter, value, pass].map(str::to_owned));
            }
        }
    }
    let found = over_all(&outcome);
    assert_eq!(found.len(), expected.len(), "each once");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn a_failing_pass_is_the_last_unless_told_to_continue() {
    let script = "echo run >>runs; exit 3";
    let failing = |options: &[&str]| {
        let always = ["--pmc", "SQ_WAVES", "--pmc", "GRBM_COUNT"];
        Rpd::new(always.iter().chain(options))
            .target(["/bin/sh", "-c", script])
            .expect_code(1)
    };
    let runs = |outcome: &Outcome| {
        let runs = fs::read_to_string(outcome.directory.path().join("runs"));
        runs.expect("the target ran").lines().count()
    };
    let outcome = failing(&[]);
    assert_eq!(runs(&outcome), 1);
    assert!(
        outcome.stderr.contains("status 3"),
        "the target's own status is named\n{}",
        outcome.stderr
    );
    let outcome = failing(&["--continue-on-error"]);
    assert_eq!(runs(&outcome), 2);
    assert!(outcome.stderr.contains("status 3"), "{}", outcome.stderr);
}

#[test]
fn counters_of_passes_before_a_failing_one_are_kept() {
    let program = rpd_tests::workloads::path("vector-ops");
    let script = format!(
        "'{}' 1 1; if [ -e again ]; then exit 5; fi; touch again",
        program.display()
    );
    let options = [
        "--pmc",
        "SQ_WAVES",
        "--pmc",
        "GRBM_COUNT",
        "--pmc",
        "TCC_HIT",
    ];
    let outcome = Rpd::new(options.iter().chain(&["-f", "csv", "-o", "x"]))
        .target(["/bin/sh", "-c", &script])
        .expect_code(1);
    assert!(outcome.stderr.contains("status 5"), "{}", outcome.stderr);
    let found: Vec<_> = passes(&outcome).into_values().flatten().collect();
    assert_eq!(found, ["SQ_WAVES", "GRBM_COUNT"], "{:?}", outcome.files());
    let counters: BTreeSet<String> = over_all(&outcome)
        .into_iter()
        .map(|[_, _, counter, ..]| counter)
        .collect();
    assert!(counters.contains("SQ_WAVES"), "{counters:?}");
}

/// Twelve counters of a block that counts eight at a time.
const TWELVE: [&str; 12] = [
    "SQ_WAVES",
    "SQ_INSTS_VALU",
    "SQ_INSTS_SALU",
    "SQ_INSTS_SMEM",
    "SQ_INSTS_LDS",
    "SQ_INSTS_VMEM_RD",
    "SQ_INSTS_VMEM_WR",
    "SQ_INSTS_BRANCH",
    "SQ_ITEMS",
    "SQ_WAVES_EQ_64",
    "SQ_WAVES_LT_64",
    "SQ_BUSY_CYCLES",
];

#[test]
fn automatic_passes_are_as_few_as_possible() {
    let names = format!("auto:{}", TWELVE.join(","));
    let outcome = run(&["--pmc", &names]).success();
    let passes = passes(&outcome);
    assert_eq!(
        passes.keys().map(String::as_str).collect::<Vec<_>>(),
        ["pass_1", "pass_2"],
        "{}",
        outcome.stderr
    );
    let mut covered: Vec<String> = passes.into_values().flatten().collect();
    covered.sort();
    let mut wanted = TWELVE.map(str::to_owned).to_vec();
    wanted.sort();
    assert_eq!(covered, wanted, "every name once");

    let outcome = run(&["--pmc", "auto:SQ_WAVES,GRBM_COUNT,TCC_HIT"]).success();
    let counters = super::rows(&outcome);
    assert_eq!(
        counters.len(),
        3 * 4,
        "one pass is enough: {:?}",
        outcome.files()
    );
}

#[test]
fn a_ratio_over_two_passes_is_marked() {
    // Nine counters of a block that counts eight: the device cannot evaluate it in one pass.
    let parts = &TWELVE[..9];
    let sum: Vec<String> = parts
        .iter()
        .map(|name| format!("reduce({name},sum)"))
        .collect();
    let definitions = format!(
        "rocprofiler-sdk:
  counters-schema-version: 1
  counters:
    - name: PARTS_PER_WAVE
      description: Sum of nine counters for each wave
      definitions:
        - architectures: [gfx90a]
          expression: ({})/reduce(SQ_WAVES,sum)
",
        sum.join("+")
    );
    let options = [
        "--pmc",
        "auto:PARTS_PER_WAVE",
        "-E",
        "mine.yaml",
        "-f",
        "csv",
        "-o",
        "x",
    ];
    let rpd = Rpd::new(options);
    fs::write(rpd.directory().join("mine.yaml"), definitions).expect("a file");
    let outcome = rpd.workload("vector-ops", ["1", "1"]).success();
    let rows = over_all(&outcome);
    for kernel in VECTOR_OPS {
        let value = |counter: &str| -> (f64, &str) {
            let row = rows
                .iter()
                .find(|row| row[0] == kernel && row[2] == counter);
            let row = row.unwrap_or_else(|| panic!("no {counter} of {kernel} in {rows:?}"));
            (row[3].parse().expect("a value"), row[4].as_str())
        };
        let (ratio, passes) = value("PARTS_PER_WAVE");
        assert_eq!(passes, "1+2", "it comes from both");
        let sum: f64 = parts.iter().map(|name| value(name).0).sum();
        let expected = sum / 1024.0;
        assert!(
            (ratio - expected).abs() < 1e-4,
            "{kernel}: {ratio} instead of {expected}"
        );
    }
}
