//! Answers about recordings of workloads: sums, forms and statuses of the commands.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rpd_tests::install;
use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd, command};
use serde_json::Value;

const TRACES: [&str; 5] = [
    "--hip-trace",
    "--kernel-trace",
    "--memory-copy-trace",
    "--marker-trace",
    "--memory-allocation-trace",
];

/// A recording of a workload, and its database.
fn recorded<A: AsRef<OsStr>>(
    traces: impl IntoIterator<Item = &'static str>,
    workload: &str,
    arguments: impl IntoIterator<Item = A>,
) -> (Outcome, PathBuf) {
    let outcome = Rpd::new(traces)
        .option(["-o", "x"])
        .workload(workload, arguments)
        .success();
    let database = outcome.file("x_results.db");
    (outcome, database)
}

fn rpd<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> Outcome {
    command(&install::rpd(), words)
}

fn run(name: &str, database: &Path, options: &[&str]) -> Outcome {
    let words = [name.as_ref(), database.as_os_str()];
    rpd(words.into_iter().chain(options.iter().map(OsStr::new)))
}

fn json(name: &str, database: &Path, options: &[&str]) -> Value {
    let options = [&["-f", "json", "--limit", "0"], options].concat();
    let outcome = run(name, database, &options).success();
    serde_json::from_str(&outcome.stdout).expect("an object")
}

fn rows<'a>(answer: &'a Value, section: &str) -> &'a Vec<Value> {
    let found = if answer["section"] == section {
        &answer["rows"]
    } else {
        &answer["sections"][section]["rows"]
    };
    found.as_array().expect("rows")
}

fn number(row: &Value, column: &str) -> i64 {
    row[column]
        .as_i64()
        .unwrap_or_else(|| panic!("{column} of {row}"))
}

fn sum(row: &Value, columns: &[&str]) -> i64 {
    columns.iter().map(|column| number(row, column)).sum()
}

const CAUSES: [&str; 7] = [
    "copy_ns",
    "host_ns",
    "launch_ns",
    "turnaround_ns",
    "graph_ns",
    "wait_ns",
    "unrecorded_ns",
];

#[test]
fn gaps_and_breakdown_of_a_workload_add_up_to_the_nanosecond() {
    let (_outcome, database) = recorded(TRACES, "vector-ops", ["2", "20"]);
    let gaps = json("gaps", &database, &["--min", "0"]);
    let summary = &rows(&gaps, "summary")[0];
    assert_eq!(sum(summary, &CAUSES), number(summary, "gap_ns"));
    assert_eq!(
        sum(summary, &["busy_ns", "gap_ns"]),
        number(summary, "window_ns")
    );
    let listed = rows(&gaps, "gaps");
    for gap in listed {
        assert_eq!(sum(gap, &CAUSES), number(gap, "gap_ns"), "{gap}");
        let doing = ["sync", "alloc", "load", "launch", "api", "program"];
        let doing: i64 = doing
            .iter()
            .map(|doing| number(gap, &format!("host_{doing}_ns")))
            .sum();
        assert_eq!(doing, number(gap, "host_ns"));
        assert_eq!(number(gap, "unrecorded_ns"), 0, "{gap}");
    }
    let all: i64 = listed.iter().map(|gap| number(gap, "gap_ns")).sum();
    assert_eq!(all, number(summary, "gap_ns"));

    let breakdown = json("breakdown", &database, &[]);
    let row = &rows(&breakdown, "breakdown")[0];
    let parts = [
        "compute_ns",
        "exposed_comm_ns",
        "exposed_copy_ns",
        "exposed_fill_ns",
        "idle_ns",
    ];
    assert_eq!(sum(row, &parts), number(row, "window_ns"));
    let durations = "SELECT (SELECT sum(end - start) FROM rocpd_kernel_dispatch) + (SELECT sum(end - start) FROM rocpd_memory_copy)";
    assert_eq!(
        number(row, "sum_ns"),
        Database::open(&database).number(durations)
    );

    // answers-78 and answers-6 of the simulated device.
    assert_eq!(gaps, json("gaps", &database, &["--min", "0"]));
    let codes: Vec<&str> = gaps["warnings"]
        .as_array()
        .expect("warnings")
        .iter()
        .filter_map(|warning| warning["code"].as_str())
        .collect();
    assert!(codes.contains(&"simulated"), "{codes:?}");
    let table = run("gaps", &database, &[]).success();
    assert!(table.stdout.contains("simulated"), "{}", table.stdout);
}

// answers-21
#[test]
fn launch_call_is_that_of_hip_when_hsa_is_traced_as_well() {
    let (_outcome, database) = recorded(
        TRACES.into_iter().chain(["--hsa-trace"]),
        "launch-loop",
        ["200"],
    );
    let stats = json("stats", &database, &["--report", "kern_exec_sum"]);
    let names: BTreeSet<&str> = rows(&stats, "kern_exec_sum")
        .iter()
        .filter_map(|row| row["api"].as_str())
        .collect();
    assert!(
        names.iter().all(|name| name.starts_with("hip")),
        "{names:?}"
    );
    let (_outcome, database) = recorded(["--hsa-trace", "--kernel-trace"], "launch-loop", ["200"]);
    let stats = json("stats", &database, &["--report", "kern_exec_sum"]);
    let names: BTreeSet<&str> = rows(&stats, "kern_exec_sum")
        .iter()
        .filter_map(|row| row["api"].as_str())
        .collect();
    assert!(
        names.iter().any(|name| name.starts_with("hsa_")),
        "{names:?}"
    );
}

#[test]
fn recording_without_calls_names_what_records_them() {
    let (_outcome, database) = recorded(["--kernel-trace"], "launch-loop", ["100"]);
    let gaps = json("gaps", &database, &[]);
    let summary = &rows(&gaps, "summary")[0];
    assert_eq!(number(summary, "unrecorded_ns"), number(summary, "gap_ns"));
    let strict = run("gaps", &database, &["--strict"]);
    assert_eq!(strict.code(), 7, "{}", strict.stderr);
    let table = run("gaps", &database, &[]).success();
    let words: Vec<&str> = table.stdout.split_whitespace().collect();
    assert!(words.contains(&"--hip-trace"), "{}", table.stdout);
    // answers-19
    let gate = run("gaps", &database, &["--fail-above", "gap_share=0.0"]);
    assert_eq!(gate.code(), 3, "{}", gate.stderr);
    let wrong = run(
        "gaps",
        &database,
        &["--fail-above", "gap_shore=0.2", "-f", "json"],
    );
    assert_eq!(wrong.code(), 2);
    assert!(wrong.stderr.contains("gap_share"), "{}", wrong.stderr);
}

#[test]
fn regions_have_the_markers_of_a_workload_with_time_of_both_sides() {
    let (_outcome, database) = recorded(TRACES, "vector-ops", ["2", "12"]);
    let regions = json("regions", &database, &[]);
    let all = rows(&regions, "regions");
    let named = |path: &str| {
        all.iter().find(|row| {
            row["path"]
                .as_str()
                .is_some_and(|text| text.ends_with(path))
        })
    };
    let iteration = named("iteration")
        .or_else(|| named("iteration #"))
        .expect("a region");
    assert_eq!(number(iteration, "instances"), 24);
    assert_eq!(number(iteration, "kernels"), 96);
    assert!(number(iteration, "gpu_ns") > 0);
    assert!(number(iteration, "gpu_ns") <= number(iteration, "gpu_sum_ns"));
    assert!(number(iteration, "gpu_ns") <= number(iteration, "projected_ns"));
    let iterations = json(
        "regions",
        &database,
        &["--iterations", "--iteration", "^iteration"],
    );
    assert_eq!(rows(&iterations, "iterations").len(), 24);
    assert_eq!(rows(&iterations, "pace")[0]["found"], "markers");
}

#[test]
fn sums_of_reports_are_those_of_the_database() {
    let (_outcome, database) = recorded(TRACES, "vector-ops", ["2", "10"]);
    let stats = json("stats", &database, &[]);
    let kernels: i64 = rows(&stats, "kern_sum")
        .iter()
        .map(|row| number(row, "total_ns"))
        .sum();
    let open = Database::open(&database);
    assert_eq!(
        kernels,
        open.number("SELECT sum(end - start) FROM rocpd_kernel_dispatch")
    );
    let copies: i64 = rows(&stats, "copy_size_sum")
        .iter()
        .map(|row| number(row, "total_bytes"))
        .sum();
    assert_eq!(
        copies,
        open.number("SELECT sum(size) FROM rocpd_memory_copy")
    );
    let csv = run("stats", &database, &["cuda_gpu_kern_sum", "-f", "csv"]).success();
    let head = csv.stdout.lines().next().expect("a line");
    assert!(
        head.starts_with("Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"),
        "{head}"
    );
}

// answers-77, answers-79, answers-80, answers-83 and answers-84
#[test]
fn answers_have_every_form() {
    let (_outcome, database) = recorded(TRACES, "vector-ops", ["2", "10"]);
    for name in ["gaps", "breakdown", "regions", "stats", "advise"] {
        let schema = rpd(["schema", name].map(OsStr::new)).success();
        let schema: Value = serde_json::from_str(&schema.stdout).expect("an object");
        let answer = json(name, &database, &[]);
        assert_eq!(answer["schema"], "rpd.answer/1");
        let described = schema["properties"]["sections"]["properties"]
            .as_object()
            .expect("sections");
        let main = answer["section"].as_str().expect("a name");
        let others = answer["sections"]
            .as_object()
            .expect("sections")
            .keys()
            .map(String::as_str);
        for section in others.chain([main]) {
            let row = &described[section]["properties"]["rows"]["items"];
            let columns: BTreeSet<&String> = row["properties"]
                .as_object()
                .expect("columns")
                .keys()
                .collect();
            let mut keys = BTreeSet::new();
            for found in rows(&answer, section) {
                let found = found.as_object().expect("a row");
                assert_eq!(
                    found.keys().collect::<BTreeSet<_>>(),
                    columns,
                    "{name} {section}"
                );
                assert!(
                    keys.insert(found["key"].as_str().expect("a key").to_owned()),
                    "{name} {section}: {found:?}"
                );
            }
        }
        let table = run(name, &database, &[]).success();
        for line in table.stdout.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        let markdown = run(name, &database, &["-f", "markdown"]).success();
        assert!(markdown.stdout.contains("\n|---|"), "{}", markdown.stdout);
        let csv = run(name, &database, &["-f", "csv", "--limit", "0"]).success();
        assert!(csv.stdout.lines().count() >= 1, "{name}");
        let lines = run(name, &database, &["-f", "ndjson", "--limit", "2"]).success();
        let last: Value =
            serde_json::from_str(lines.stdout.lines().last().expect("a line")).expect("an object");
        assert_eq!(
            last["end"]["rows"].as_u64(),
            Some(lines.stdout.lines().count() as u64 - 2)
        );
        let error = run(name, &database.with_file_name("none.db"), &["-f", "json"]);
        let object: Value = serde_json::from_str(&error.stdout).expect("an object");
        assert_eq!(error.code(), 1);
        assert!(
            object["error"]["text"]
                .as_str()
                .is_some_and(|text| text.contains("none.db")),
            "{object}"
        );
    }
}

#[test]
fn recording_without_operations_has_status_7() {
    let (_outcome, database) = recorded(["--hip-trace"], "api-loop", ["20"]);
    for name in ["gaps", "breakdown", "advise"] {
        let outcome = run(name, &database, &[]);
        assert_eq!(
            outcome.code(),
            7,
            "{name}: {}{}",
            outcome.stdout,
            outcome.stderr
        );
        assert!(
            outcome.stdout.contains("--kernel-trace"),
            "{}",
            outcome.stdout
        );
    }
}

#[test]
fn advice_names_what_it_could_not_judge() {
    let (_outcome, database) = recorded(["--kernel-trace"], "launch-loop", ["100"]);
    let advice = json("advise", &database, &[]);
    let not_judged = rows(&advice, "not_judged");
    let of = |rule: &str| not_judged.iter().find(|row| row["rule"] == rule);
    assert_eq!(
        of("gpu-starved").expect("not judged")["record"],
        "--hip-trace"
    );
    assert!(of("wait-memory").is_some());
    let counts = &rows(&advice, "judged")[0];
    assert_eq!(number(counts, "not_judged"), not_judged.len() as i64);
    let list = rpd(["advise", "--rules", "-f", "csv", "--limit", "0"].map(OsStr::new)).success();
    assert_eq!(list.stdout.lines().count(), 58);
}
