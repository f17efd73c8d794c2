//! Programs with one known fault each, recorded and judged: the rule about the fault is the first finding, and a twin without it has
//! none that is serious.

use std::path::PathBuf;

use rpd_tests::install;
use rpd_tests::run::{Outcome, Rpd, command};
use serde_json::Value;

const TRACES: [&str; 4] = [
    "--hip-trace",
    "--kernel-trace",
    "--memory-copy-trace",
    "--memory-allocation-trace",
];

/// Counters of the rules about kernels.
const COUNTERS: &str = "GRBM_GUI_ACTIVE,SQ_BUSY_CU_CYCLES,SQ_WAVE_CYCLES,SQ_WAIT_ANY,SQ_ACTIVE_INST_VALU,SQ_VALU_MFMA_BUSY_CYCLES,\
                        SQ_THREAD_CYCLES_VALU,SQ_LDS_IDX_ACTIVE,SQ_LDS_BANK_CONFLICT,SQ_INSTS_VMEM,TCP_TOTAL_CACHE_ACCESSES_sum,\
                        TCC_REQ_sum,TCP_TCC_READ_REQ_sum,TCP_TCC_WRITE_REQ_sum,TCP_TCC_ATOMIC_WITH_RET_REQ_sum,\
                        TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum,MeanOccupancyPerCU";

/// Runs the workload `slow` with a fault, or its clean twin, on a number of simulated GPUs.
fn record(options: Rpd, fault: &str, clean: bool, gpus: u32) -> Outcome {
    let arguments = [fault].into_iter().chain(clean.then_some("clean"));
    let options = options.option(["-o", "x"]);
    let options = options.env("RPD_SIM_GPUS", gpus.to_string());
    options.workload("slow", arguments).success()
}

fn advise(inputs: &[PathBuf]) -> Value {
    let words = ["advise", "-f", "json", "--limit", "0"];
    let words = words.map(PathBuf::from).into_iter();
    let words = words.chain(inputs.iter().cloned());
    let outcome = command(&install::rpd(), words).success();
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

/// Whether the first finding is this rule's, with its figures as evidence; else what was found.
fn diagnosed(fault: &str, rule: &str, answer: &Value) -> Result<(), String> {
    let all = rows(answer, "findings");
    let Some(first) = all.first().filter(|first| first["rule"] == rule) else {
        let all: Vec<_> = all
            .iter()
            .map(|row| (&row["severity"], &row["rule"], &row["finding"]))
            .collect();
        return Err(format!("{fault}: {rule} is not the first of {all:?}"));
    };
    let key = first["key"].as_str().expect("a key");
    assert!(key.starts_with(&format!("rule|{rule}|")), "{key}");
    let evidence = rows(answer, "evidence");
    let is_ours = |row: &&Value| {
        let known = row["key"].as_str().expect("a key");
        row["rule"] == rule && known.starts_with(key)
    };
    assert!(
        evidence.iter().any(|row| is_ours(&row)),
        "{fault}: {evidence:?}"
    );
    Ok(())
}

/// Whether no finding is serious; else those that are.
fn is_clean(fault: &str, answer: &Value) -> Result<(), String> {
    let serious = rows(answer, "findings").iter().filter(|row| {
        let severity = row["severity"].as_str().expect("a word");
        ["high", "medium"].contains(&severity)
    });
    let serious: Vec<_> = serious.map(|row| (&row["rule"], &row["finding"])).collect();
    if serious.is_empty() {
        return Ok(());
    }
    Err(format!("{fault}, clean: {serious:?}"))
}

/// Judges new recordings until one is as it should be. The times of an interpreter are those of a machine that does other work as
/// well, and a rule about times judges that work, too; a rule that is wrong is wrong every time.
fn judge(mut attempt: impl FnMut() -> Result<(), String>) {
    const ATTEMPTS: usize = 6;
    let failed: Vec<String> = (0..ATTEMPTS).map_while(|_| attempt().err()).collect();
    assert!(failed.len() < ATTEMPTS, "{failed:#?}");
}

/// Judges a fault and its clean twin by what a run without counters says.
fn judge_traced(fault: &str, rule: &str, gpus: u32) {
    let answer = |clean: bool| {
        let outcome = record(Rpd::new(TRACES), fault, clean, gpus);
        advise(&[outcome.file("x_results.db")])
    };
    judge(|| diagnosed(fault, rule, &answer(false)));
    judge(|| is_clean(fault, &answer(true)));
}

/// Judges a fault and its clean twin by a run without counters and by passes with them.
fn judge_counted(fault: &str, rule: &str) {
    let answer = |clean: bool| {
        let traced = record(Rpd::new(TRACES), fault, clean, 1);
        let auto = format!("auto:{COUNTERS}");
        let options = Rpd::new(["--pmc", auto.as_str(), "--kernel-trace"]);
        let counted = record(options, fault, clean, 1);
        let answer = advise(&[traced.file("x_results.db"), counted.out()]);
        assert!(
            answer["provenance"]["passes"].as_u64() > Some(0),
            "{answer}"
        );
        answer
    };
    judge(|| diagnosed(fault, rule, &answer(false)));
    judge(|| is_clean(fault, &answer(true)));
}

macro_rules! traced {
    ($($test:ident: $gpus:literal { $($fault:literal $rule:literal,)* })*) => {$(
        // answers-47 and answers-48
        #[test]
        fn $test() {
            for (fault, rule) in [$(($fault, $rule)),*] {
                judge_traced(fault, rule, $gpus);
            }
        }
    )*};
}

traced! {
    faults_of_the_host_are_found: 1 {
        "late-host" "gpu-starved",
        "wait-in-loop" "sync-in-loop",
        "allocate" "alloc-in-loop",
        "free" "free-waits",
        "load" "late-load",
        "host-function" "host-func",
        "poll" "polling",
    }
    faults_of_copies_are_found: 1 {
        "sync-copy" "sync-copy",
        "pageable" "pageable-async",
        "sync-fill" "sync-memset",
        "exposed-copy" "copy-exposed",
        "small-copy" "small-copies",
        "round-trip" "round-trip",
    }
    faults_of_streams_are_found: 1 {
        "serial-streams" "streams-serial",
        "null-stream" "null-stream",
        "shared-queue" "queue-shared",
    }
    faults_of_launches_are_found: 1 {
        "tiny" "tiny-kernels",
        "sequence" "graph-candidate",
        "rebuilt-graph" "graph-rebuilt",
    }
    faults_of_geometry_and_resources_are_found: 1 {
        "small-grid" "grid-small",
        "last-round" "tail",
        "odd-groups" "group-size",
        "local-memory" "occupancy-lds",
        "registers" "occupancy-vgpr",
        "scratch" "spills",
    }
    faults_of_two_gpus_are_found: 2 {
        "idle-device" "idle-gpu",
        "unequal-devices" "imbalance",
    }
    rank_that_others_wait_for_is_found: 4 {
        "late-rank" "straggler",
    }
}

// answers-47 and answers-48
#[test]
fn faults_of_accesses_are_found_by_counters() {
    judge_counted("strided", "uncoalesced");
    judge_counted("banks", "lds-conflicts");
    judge_counted("latency", "latency-bound");
}

// answers-47 and answers-48
#[test]
fn faults_of_lanes_are_found_by_counters() {
    judge_counted("divergent", "divergence");
    judge_counted("atomics", "atomics");
    judge_counted("local-memory", "occupancy-lds");
}

/// The options that the answer names for a rule that was not judged.
fn missing(answer: &Value, rule: &str) -> Option<String> {
    let mut all = rows(answer, "not_judged").iter();
    let row = all.find(|row| row["rule"] == rule)?;
    Some(row["record"].as_str().expect("options").to_owned())
}

// answers-49
#[test]
fn counters_that_the_answer_names_let_it_judge() {
    let traced = record(Rpd::new(TRACES), "banks", false, 1);
    let database: PathBuf = traced.file("x_results.db");
    let answer = advise(std::slice::from_ref(&database));
    let options = missing(&answer, "lds-conflicts").expect("not judged");
    let options: Vec<&str> = options.split(' ').collect();
    let counted = record(Rpd::new(options), "banks", false, 1);
    let answer = advise(&[database, counted.out()]);
    assert_eq!(missing(&answer, "lds-conflicts"), None);
}

// answers-47
#[test]
fn samples_tell_that_waves_wait_at_a_barrier() {
    let sampled = |clean: bool| {
        let traced = record(
            Rpd::new(TRACES).env("RPD_SIM_GPU", "gfx942"),
            "uneven",
            clean,
            1,
        );
        let options = [
            "--pc-sampling-beta-enabled",
            "--pc-sampling-method",
            "stochastic",
            "--pc-sampling-unit",
            "cycles",
            "--pc-sampling-interval",
            "65536",
            "--kernel-trace",
        ];
        let sampled = record(
            Rpd::new(options).env("RPD_SIM_GPU", "gfx942"),
            "uneven",
            clean,
            1,
        );
        advise(&[traced.file("x_results.db"), sampled.file("x_results.db")])
    };
    let mut answer = Value::Null;
    judge(|| {
        answer = sampled(false);
        diagnosed("uneven", "wait-barrier", &answer)
    });
    let lines = rows(&answer, "evidence")
        .iter()
        .filter_map(|row| row["record"].as_str());
    let lines: Vec<&str> = lines
        .filter(|key| key.starts_with("line|uneven|"))
        .collect();
    assert!(
        lines.iter().any(|key| key.contains("slow.hip:")),
        "{lines:?}"
    );
    judge(|| is_clean("uneven", &sampled(true)));
}
