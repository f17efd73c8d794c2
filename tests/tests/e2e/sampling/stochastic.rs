//! Stochastic PC samples on a simulated gfx942: what the original's validators check of each sample. Which instruction is on top
//! and why it waits is tested in `known_kernels.rs`.

use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};
use serde_json::Value;

const STOCHASTIC: [&str; 9] = [
    "--sim-gpu",
    "gfx942",
    "--pc-sampling-beta-enabled",
    "--pc-sampling-method",
    "stochastic",
    "--pc-sampling-unit",
    "cycles",
    "--pc-sampling-interval",
    "1024",
];

fn sampled(more: &[&str], workload: &[&str]) -> Outcome {
    Rpd::new(STOCHASTIC)
        .option(more)
        .workload("inside", workload)
        .success()
}

/// By mnemonic, most special first: types of an issued sample, its pipe, and reasons of one that was not issued besides a missing
/// instruction. No type: never issued.
const RULES: [(&str, &[&str], &str, &[&str]); 15] = [
    (
        "v_mfma",
        &["MATRIX"],
        "matrix",
        &["ARBITER_NOT_WIN", "ARBITER_WIN_EX_STALL"],
    ),
    (
        "v_",
        &["VALU"],
        "valu",
        &["ARBITER_NOT_WIN", "ARBITER_WIN_EX_STALL"],
    ),
    (
        "global_",
        &["FLAT"],
        "flat",
        &["ARBITER_NOT_WIN", "ARBITER_WIN_EX_STALL", "ALU_DEPENDENCY"],
    ),
    (
        "flat_",
        &["FLAT"],
        "flat",
        &["ARBITER_NOT_WIN", "ARBITER_WIN_EX_STALL", "ALU_DEPENDENCY"],
    ),
    (
        "ds_",
        &["LDS"],
        "lds",
        &["ARBITER_NOT_WIN", "ARBITER_WIN_EX_STALL", "ALU_DEPENDENCY"],
    ),
    (
        "s_cbranch",
        &["BRANCH_TAKEN", "BRANCH_NOT_TAKEN"],
        "misc",
        &["ARBITER_NOT_WIN", "ARBITER_WIN_EX_STALL", "ALU_DEPENDENCY"],
    ),
    ("s_branch", &["BRANCH_TAKEN"], "misc", &["ARBITER_NOT_WIN"]),
    (
        "s_barrier",
        &["BARRIER"],
        "misc",
        &["ARBITER_NOT_WIN", "BARRIER_WAIT"],
    ),
    ("s_waitcnt", &[], "", &["WAITCNT"]),
    ("s_nop", &[], "", &["INTERNAL_INSTRUCTION"]),
    ("s_sleep", &[], "", &["INTERNAL_INSTRUCTION"]),
    ("s_endpgm", &[], "", &[]),
    (
        "s_setpc",
        &["JUMP"],
        "misc",
        &["ARBITER_NOT_WIN", "ARBITER_WIN_EX_STALL", "ALU_DEPENDENCY"],
    ),
    (
        "s_swappc",
        &["JUMP"],
        "misc",
        &["ARBITER_NOT_WIN", "ARBITER_WIN_EX_STALL", "ALU_DEPENDENCY"],
    ),
    (
        "s_",
        &["SCALAR"],
        "scalar",
        &["ARBITER_NOT_WIN", "ARBITER_WIN_EX_STALL", "ALU_DEPENDENCY"],
    ),
];

/// Checks sampling-24.
#[test]
fn stochastic_samples_fit_their_instructions() {
    let outcome = sampled(&["-f", "csv", "json"], &["all", "5"]);
    let text = std::fs::read_to_string(outcome.file("results.json")).expect("readable");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let tool = &json["rocprofiler-sdk-tool"][0];
    let array = |value: &'_ Value| value.as_array().cloned().expect("an array");
    let samples = array(&tool["buffer_records"]["pc_sample_stochastic"]);
    let texts = array(&tool["strings"]["pc_sample_instructions"]);
    assert!(samples.len() > 500, "{} samples", samples.len());
    let (mut issued, mut stalled) = (0, 0);
    for sample in &samples {
        let record = &sample["record"];
        let snapshot = &record["snapshot"];
        let bit = |state: &str, pipe: &str| snapshot[format!("arb_state_{state}_{pipe}")] == 1;
        for pipe in [
            "valu", "matrix", "scalar", "vmem_tex", "lds", "flat", "misc",
        ] {
            assert!(
                bit("issue", pipe) || !bit("stall", pipe),
                "{pipe}: {sample}"
            );
        }
        for pipe in ["lds_direct", "brmsg"] {
            assert!(!bit("issue", pipe) && !bit("stall", pipe), "{sample}");
        }
        assert!(!bit("stall", "exp"), "{sample}");
        assert!(record["wave_cnt"].as_u64() <= Some(32), "{sample}");
        assert!(record["hw_id"]["simd_id"].as_u64() < Some(4), "{sample}");
        let Some(index) = sample["inst_index"].as_u64() else {
            continue;
        };
        let instruction = texts[index as usize].as_str().expect("text");
        let rule = RULES
            .iter()
            .find(|(start, ..)| instruction.starts_with(start));
        let Some((_, types, pipe, reasons)) = rule else {
            panic!("no rule for {instruction}");
        };
        let name = |value: &Value, prefix: &str| {
            let text = value.as_str().expect("text");
            let rest = text.strip_prefix(prefix);
            rest.unwrap_or_else(|| panic!("{text}")).to_owned()
        };
        if record["wave_issued"] == 1 {
            issued += 1;
            let kind = name(
                &record["inst_type"],
                "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_",
            );
            assert!(types.contains(&&*kind), "{instruction}: {sample}");
            assert!(
                bit("issue", pipe) && !bit("stall", pipe),
                "{instruction}: {sample}"
            );
            continue;
        }
        stalled += 1;
        let reason = name(
            &snapshot["stall_reason"],
            "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_",
        );
        assert!(
            reason == "NO_INSTRUCTION_AVAILABLE" || reasons.contains(&&*reason),
            "{instruction}: {sample}"
        );
        if reason == "ARBITER_NOT_WIN" {
            // A wave that did not win the arbiter waits for another one that has the pipe.
            assert!(bit("issue", pipe), "{instruction}: {sample}");
        }
        if reason == "ARBITER_WIN_EX_STALL" {
            assert!(
                bit("issue", pipe) && bit("stall", pipe),
                "{instruction}: {sample}"
            );
        }
    }
    assert!(issued > 0 && stalled > issued, "{issued} and {stalled}");
    let table = Table::read(&outcome.file("pc_sampling_stochastic.csv"));
    assert_eq!(
        table.columns[6..],
        [
            "Wave_Issued_Instruction",
            "Instruction_Type",
            "Stall_Reason",
            "Wave_Count"
        ]
    );
    assert_eq!(table.rows.len(), samples.len());
    for row in &table.rows {
        let waves: u32 = row[9].parse().expect("a number");
        assert!((1..=32).contains(&waves), "{row:?}");
    }
}

/// Checks sampling-15.
#[test]
fn a_program_without_kernels_has_no_file_of_samples() {
    let outcome = Rpd::new(STOCHASTIC)
        .option(["-f", "csv"])
        .workload("api-loop", ["10"])
        .success();
    assert!(
        outcome
            .files_ending("pc_sampling_stochastic.csv")
            .is_empty()
    );
}
