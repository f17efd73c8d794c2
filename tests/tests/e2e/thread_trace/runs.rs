//! Thread traces of real programs on the simulated GPU, and what is made of them.

use std::collections::BTreeMap;
use std::path::Path;

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::{Outcome, Rpd};
use serde_json::Value;

/// The kernels have few workgroups, and the first of each shader engine runs on its first compute unit.
const TRACED: [&str; 3] = ["--att", "--att-target-cu", "0"];

pub(crate) fn traced(more: &[&str], workload: &[&str]) -> Outcome {
    Rpd::new(TRACED)
        .option(more)
        .workload("inside", workload)
        .success()
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("readable");
    serde_json::from_str(&text).expect("JSON")
}

/// Wave files of a directory for the viewer.
fn waves(directory: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").path());
    let is_wave = |path: &std::path::PathBuf| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        name.starts_with("se") && name.contains("_wv")
    };
    names.filter(is_wave).map(|path| json(&path)).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn integer(value: &Value) -> i64 {
    value.as_i64().expect("an integer")
}

/// What `rpd hot` and `rpd annotate` print of a trace.
#[test]
fn hot_and_annotate_show_cycles_of_thread_traces() {
    let outcome = traced(&[], &["barrier_imbalance", "10"]);
    let database = outcome.file("results.db");
    let database = database.to_str().expect("text");
    let text = Rpd::plain(["hot", database]).run().success();
    assert!(
        text.stdout.contains(" cycles (thread traces)"),
        "{}",
        text.stdout
    );
    assert!(text.stdout.contains("inside.hip:"), "{}", text.stdout);
    assert!(!text.stdout.contains("lanes"), "{}", text.stdout);
    let annotated = Rpd::plain(["annotate", database, "barrier"])
        .run()
        .success();
    let head = annotated.stdout.lines().next().unwrap_or_default();
    assert!(
        head.starts_with("barrier_imbalance") && head.ends_with(" cycles"),
        "{head}"
    );
}

/// Waves whose lanes disagree about a branch execute both of its sides.
#[test]
fn thread_traces_have_both_sides_of_a_divergent_branch() {
    let outcome = traced(&[], &["divergent_branch", "3"]);
    let database = Database::open(&outcome.file("results.db"));
    let hits = |instruction: &str| {
        database.number(&format!(
            "SELECT coalesce(sum(hits), 0) FROM thread_trace_instructions WHERE instruction LIKE '{instruction}%'"
        ))
    };
    let (roots, reciprocals) = (hits("v_sqrt_f32"), hits("v_rcp_f32"));
    assert!(
        roots > 0 && roots == reciprocals,
        "{roots} and {reciprocals}"
    );
}

/// One trace of everything that runs, which the sums of its compute units cover.
#[test]
fn a_thread_trace_without_interception_has_all_kernels() {
    let outcome = traced(
        &["--att-no-intercept", "--att-shader-engine-mask", "0xff"],
        &["matrix_chain", "5"],
    );
    let database = Database::open(&outcome.file("results.db"));
    let number = |query: &str| database.number(query);
    assert_eq!(number("SELECT count(DISTINCT trace) FROM thread_traces"), 1);
    assert_eq!(number("SELECT max(trace) FROM thread_traces"), 1);
    assert!(
        number("SELECT count(*) FROM thread_trace_instructions WHERE instruction LIKE 'v_mfma%'")
            > 0
    );
    let started = number("SELECT sum(started) FROM thread_traces");
    assert!(started > 0);
    assert_eq!(number("SELECT sum(waves) FROM thread_trace_units"), started);
    // Time by compute unit and over time is the same time.
    assert_eq!(
        number("SELECT sum(wave_cycles) FROM rpd_trace_unit"),
        number("SELECT sum(wave_cycles) FROM rpd_trace_occupancy")
    );
    // The traced compute unit's waves are among those of all.
    assert_eq!(
        number("SELECT sum(wave_cycles) FROM thread_trace_units WHERE cu = 0"),
        number("SELECT sum(duration) FROM thread_trace_waves")
    );
    assert_eq!(
        number("SELECT count(*) FROM thread_trace_occupancy WHERE waves <= 0 OR start >= \"end\""),
        0
    );
}

/// Checks thread-trace-37, thread-trace-42 to thread-trace-44 and thread-trace-49 to thread-trace-52: sums in the files
/// agree with one another and with the database.
#[test]
fn thread_trace_sums_agree_in_files_and_database() {
    let outcome = traced(
        &["-f", "csv", "json", "rocpd", "--kernel-trace"],
        &["matrix_chain", "5"],
    );
    let directory = outcome.files_ending("filenames.json");
    let directory = directory[0].parent().expect("a directory");
    let stats = Table::read(&outcome.file("_dispatch_1.csv"));
    assert_eq!(
        stats.columns,
        [
            "CodeObj",
            "Vaddr",
            "Instruction",
            "Hitcount",
            "Latency",
            "Stall",
            "Idle",
            "Source"
        ]
    );
    let lines: Vec<&Vec<String>> = stats
        .rows
        .iter()
        .filter(|row| !row[2].starts_with(';'))
        .collect();
    let sum = |column: usize| -> i64 {
        lines
            .iter()
            .map(|row| row[column].parse::<i64>().expect("a number"))
            .sum()
    };
    let places: Vec<(u64, u64)> = (lines.iter())
        .map(|row| {
            (
                row[0].parse().expect("a number"),
                row[1].parse().expect("a number"),
            )
        })
        .collect();
    assert!(places.is_sorted());
    assert!(
        lines.iter().any(|row| row[3] == "0"),
        "lines that were never executed are there"
    );
    assert!(lines.iter().any(|row| row[7].contains("inside.hip:")));
    let waves = waves(directory);
    assert!(!waves.is_empty());
    let mut latency = 0;
    for wave in &waves {
        let wave = &wave["wave"];
        let (begin, end) = (integer(&wave["begin"]), integer(&wave["end"]));
        let states: i64 = list(&wave["timeline"])
            .iter()
            .map(|span| integer(&span[1]))
            .sum();
        assert_eq!(states, end - begin, "thread-trace-44");
        let mut last = begin;
        for instruction in list(&wave["instructions"]) {
            let (time, duration) = (integer(&instruction[0]), integer(&instruction[3]));
            assert!(
                time >= last,
                "thread-trace-44: instructions overlap: {instruction}"
            );
            last = time + duration;
            if integer(&instruction[4]) != 0 {
                latency += duration;
            }
        }
        for key in ["instructions", "timeline", "waitcnt"] {
            assert!(wave[key].is_array(), "thread-trace-52: {key}");
        }
    }
    assert_eq!(sum(4), latency, "thread-trace-43");
    let stalls = lines.iter().all(|row| {
        row[5].parse::<u64>().expect("a number") <= row[4].parse::<u64>().expect("a number")
    });
    assert!(stalls, "thread-trace-43");
    for state in 0..5 {
        let path = directory.join(format!("wstates{state}.json"));
        if path.exists() {
            let curve = json(&path);
            let counts: Vec<i64> = list(&curve["state"]).iter().map(integer).collect();
            assert!(counts.iter().all(|count| *count >= 0), "thread-trace-49");
            assert_eq!(counts.last(), Some(&0), "thread-trace-49");
        }
    }
    let occupancy = json(&directory.join("occupancy.json"));
    let mut running: BTreeMap<(i64, i64, i64), i64> = BTreeMap::new();
    for row in list(&occupancy["0"]) {
        let slot = (integer(&row[1]), integer(&row[2]), integer(&row[3]));
        *running.entry(slot).or_default() += if integer(&row[4]) == 1 { 1 } else { -1 };
    }
    assert!(
        !running.is_empty() && running.values().all(|waves| *waves == 0),
        "thread-trace-50"
    );
    let database = Database::open(&outcome.file("results.db"));
    let number = |query: &str| database.number(query);
    assert_eq!(
        number("SELECT sum(latency) FROM thread_trace_instructions"),
        latency
    );
    assert_eq!(
        number("SELECT sum(stall) FROM thread_trace_instructions"),
        sum(5)
    );
    assert_eq!(
        number("SELECT sum(latency) FROM thread_trace_waves"),
        latency
    );
    assert_eq!(
        number("SELECT count(*) FROM thread_trace_waves"),
        waves.len() as i64
    );
    assert_eq!(
        number("SELECT sum(hits) FROM thread_trace_instructions"),
        sum(3)
    );
    assert_eq!(
        number("SELECT sum(latency) FROM thread_trace_lines"),
        latency
    );
    assert_eq!(
        database.rows("SELECT DISTINCT kernel FROM thread_traces"),
        [["matrix_chain"]]
    );
}

/// Checks thread-trace-53 and thread-trace-54: decoding the raw files again gives the same tables, and code objects are
/// saved as they were loaded.
#[test]
fn att_decode_reproduces_the_files_of_a_run() {
    let outcome = traced(&["-f", "csv"], &["dependent_chain", "4"]);
    let stats = outcome.files_ending("_dispatch_1.csv");
    let first = std::fs::read_to_string(&stats[0]).expect("readable");
    let name = stats[0].file_name().expect("a name");
    let traces = outcome.files_ending("_1.att");
    let directory = vec![outcome.out()];
    // A directory, and traces alone, which have their code objects beside them.
    for (paths, again) in [(&directory, "again"), (&traces, "of_files")] {
        let again = outcome.directory.path().join(again);
        let mut arguments: Vec<&str> = vec!["att", "decode"];
        arguments.extend(paths.iter().map(|path| path.to_str().expect("text")));
        arguments.extend(["-f", "csv", "-d", again.to_str().expect("text")]);
        let decoded = Rpd::plain(arguments).run();
        assert!(decoded.status.success(), "{}", decoded.stderr);
        let second = std::fs::read_to_string(again.join(name)).expect("readable");
        assert_eq!(first, second, "{paths:?}");
    }
    let objects = outcome.files_ending(".out");
    assert!(!objects.is_empty());
    for object in objects {
        let name = object
            .file_name()
            .and_then(|name| name.to_str())
            .expect("text");
        assert!(name.contains("_gfx90a_code_object_id_"), "{name}");
        assert!(
            std::fs::read(&object)
                .expect("readable")
                .starts_with(b"\x7fELF")
        );
    }
}

/// Checks thread-trace-48.
#[test]
fn a_traced_compute_unit_without_waves_has_occupancy_and_a_warning() {
    let outcome = Rpd::new(["--att", "--att-target-cu", "12", "-f", "json", "rocpd"])
        .workload("inside", ["dependent_chain", "2", "1"])
        .success();
    assert!(
        outcome
            .stderr
            .contains("no wave ran on the traced compute unit"),
        "{}",
        outcome.stderr
    );
    let directory = outcome.files_ending("filenames.json");
    let directory = directory[0].parent().expect("a directory");
    assert!(waves(directory).is_empty());
    assert!(!list(&json(&directory.join("occupancy.json"))["0"]).is_empty());
    assert_eq!(
        json(&directory.join("code.json"))["code"],
        Value::Array(Vec::new())
    );
    let database = outcome.file("results.db");
    let hot = Rpd::plain(["hot", database.to_str().expect("text")]).run();
    assert_eq!(
        hot.stderr,
        format!(
            "rpd: hot: {} holds 1 thread trace with occupancy of 1 wave, on the traced compute unit none; record with \
             another --att-target-cu, more of --att-shader-engine-mask, or a larger grid\n",
            database.display()
        )
    );
}

/// Checks thread-trace-56.
#[test]
fn a_full_trace_buffer_is_reported_and_the_rest_is_decoded() {
    let outcome = Rpd::new(TRACED)
        .option(["--att-buffer-size", "0x100000"])
        .workload("inside", ["independent_chains", "800", "208"])
        .expect_code(1);
    let database = Database::open(&outcome.file("results.db"));
    let number = |column| database.number(&format!("SELECT {column} FROM thread_traces"));
    let said = format!(
        "the buffer of shader engine 0 was full in trace 1: {} of {} bytes are used and the rest of the trace is lost; a larger \
         --att-buffer-size, ",
        number("bytes"),
        number("capacity")
    );
    assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    assert_eq!(database.number("SELECT is_full FROM thread_traces"), 1);
    assert!(database.number("SELECT count(*) FROM thread_trace_waves") > 0);
}

/// Checks thread-trace-12, thread-trace-16 and thread-trace-61.
#[test]
fn thread_traces_contain_requested_counters() {
    let outcome = Rpd::new(TRACED)
        .option(["-f", "json", "--att-gpu-index", "0,99"])
        .option([
            "--att-perfcounters",
            "sq_insts_valu sq_waves:0x3",
            "--att-perfcounter-ctrl",
            "1",
        ])
        .workload("inside", ["independent_chains", "60", "16"])
        .success();
    assert!(
        outcome.stderr.contains("Invalid GPU Device Index: 99"),
        "{}",
        outcome.stderr
    );
    let directory = outcome.files_ending("filenames.json");
    let names = json(&directory[0]);
    assert_eq!(
        names["counter_names"],
        Value::from(vec!["SQ_INSTS_VALU", "SQ_WAVES:3"])
    );
    let directory = directory[0].parent().expect("a directory");
    let values = json(&directory.join("se0_perfcounter.json"));
    let counted: i64 = list(&values["data"])
        .iter()
        .map(|row| integer(&row[1]))
        .sum();
    assert!(counted > 0, "{values}");
    let refused = Rpd::new(TRACED)
        .option([
            "--att-perfcounters",
            "SQ_WAVE",
            "--att-perfcounter-ctrl",
            "1",
        ])
        .workload("inside", ["dependent_chain", "1"]);
    assert_eq!(refused.code(), 1);
    assert!(
        refused
            .stderr
            .contains("has no counter SQ_WAVE; similar names: SQ_WAVES"),
        "{}",
        refused.stderr
    );
}

/// Traces that were complete when the program was killed are kept.
#[test]
fn an_aborted_program_keeps_its_thread_traces() {
    let outcome = Rpd::new(TRACED)
        .option(["--kernel-iteration-range", "[1-1000]"])
        .workload("abort-midway", ["20"]);
    assert!(
        !outcome.files_ending(".att").is_empty(),
        "{}",
        outcome.stderr
    );
    let decoded = Rpd::plain(["att", "decode", outcome.out().to_str().expect("text")]).run();
    assert!(decoded.status.success(), "{}", decoded.stderr);
}

#[test]
fn diff_compares_thread_traces_by_line() {
    let run = |rounds: &str| {
        traced(
            &["--kernel-include-regex", "two_phases"],
            &["two_phases", rounds],
        )
    };
    let (old, new) = (run("2"), run("20"));
    let (old, new) = (old.file("results.db"), new.file("results.db"));
    let paths = [old.to_str().expect("text"), new.to_str().expect("text")];
    let diff = Rpd::plain(["hot", paths[1], "--diff", paths[0]])
        .run()
        .success();
    assert!(diff.stdout.contains(" cycles before, "), "{}", diff.stdout);
    assert!(diff.stdout.contains("inside.hip:"), "{}", diff.stdout);
    let annotated = Rpd::plain(["annotate", paths[1], "--diff", paths[0]])
        .run()
        .success();
    assert!(annotated.stdout.contains(" % -> "), "{}", annotated.stdout);
    let refused = Rpd::plain(["hot", paths[1], "--from", "samples"]).run();
    assert_eq!(refused.code(), 1);
    assert!(
        refused.stderr.contains("holds no PC samples; record with"),
        "{}",
        refused.stderr
    );
    let converted = Rpd::plain(["convert", paths[1], "-f", "rocpd", "-d", "again"])
        .run()
        .success();
    let again = converted.directory.path().join("again");
    let copies = std::fs::read_dir(again).expect("a directory");
    let copy = copies.flatten().next().expect("a database").path();
    let shown = |path: &str| {
        Rpd::plain(["hot", path, "-f", "csv"])
            .run()
            .success()
            .stdout
    };
    assert_eq!(shown(paths[1]), shown(copy.to_str().expect("text")));
}

/// Checks thread-trace-55.
#[test]
fn two_gpus_have_separate_thread_traces() {
    let outcome = Rpd::new(TRACED)
        .env("RPD_SIM_GPUS", "2")
        .workload("devices", &[] as &[&str])
        .success();
    let database = Database::open(&outcome.file("results.db"));
    assert_eq!(
        database.rows("SELECT trace, kernel FROM thread_traces ORDER BY trace"),
        [["1", "empty_kernel"], ["2", "empty_kernel"]]
    );
    let query = "SELECT count(DISTINCT agent_id) FROM thread_traces";
    assert_eq!(database.number(query), 2);
    let objects = "SELECT count(DISTINCT code_object_id) FROM thread_trace_instructions";
    assert_eq!(database.number(objects), 2);
}

/// Reads of local memory with conflicts take LDS so long that the next ones wait for it.
#[test]
fn traced_bank_conflicts_keep_lds_busy() {
    let outcome = traced(&[], &["bank_conflicts", "40"]);
    let database = Database::open(&outcome.file("results.db"));
    let rows = database.rows(
        "SELECT stall_reasons, stall * 2 > latency FROM thread_trace_instructions WHERE instruction LIKE 'ds_read%' \
         ORDER BY latency DESC LIMIT 1",
    );
    let reasons = rows[0][0]
        .split([',', ' '])
        .filter_map(|one| one.split_once('='));
    let longest = reasons.max_by_key(|(_, cycles)| cycles.parse::<u64>().expect("cycles"));
    let name = longest.map(|(name, _)| name);
    assert_eq!(name, Some("ARBITER_WIN_EX_STALL"), "{rows:?}");
    assert_eq!(rows[0][1], "1", "{rows:?}");
}
