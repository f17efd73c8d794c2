//! Rules about counters and PC samples.

use super::{fired, judged};
use crate::answer::Value;
use crate::examples::Example;
use crate::records::{Counted, Memory, Resources, Sampled};

/// A kernel that runs all the time and fills its GPU, with the means of some counters.
fn with_counters(counters: &[(&str, f64)]) -> Memory {
    let mut example = Example::new();
    example.memory().facts.kernels.push(Resources {
        vgprs: 16,
        sgprs: 16,
        ..Resources::default()
    });
    for number in 0..20_u64 {
        let begin = number * 100;
        let call = begin.saturating_sub(200);
        let op = example.launched(
            "hipLaunchKernel",
            (call, call + 5),
            "K",
            begin + 10,
            begin + 109,
        );
        op.kernel = 0;
        example.last_fills_gpu();
    }
    example.memory().facts.recorded.counters = true;
    let name = example.name("K");
    let op = *example.memory().ops.last().expect("an operation");
    for (counter, value) in counters {
        let counter = example.name(counter);
        example.memory().counted.push(Counted {
            name,
            gpu: 0,
            process: 0,
            dispatch: 1,
            length: op.length(),
            grid: op.grid,
            group: op.group,
            counter,
            sum: *value,
            greatest: *value,
        });
    }
    example.done()
}

#[test]
fn conflicts_of_banks_are_found_where_local_memory_is_busy() {
    let memory = |conflicts: f64, busy: f64| {
        with_counters(&[
            ("GRBM_GUI_ACTIVE", 10_000.0),
            ("SQ_LDS_IDX_ACTIVE", 104.0 * 10_000.0 * busy),
            ("SQ_LDS_BANK_CONFLICT", 104.0 * 10_000.0 * busy * conflicts),
        ])
    };
    assert_eq!(fired(&memory(0.9, 0.5)), ["lds-conflicts"]);
    assert_eq!(fired(&memory(0.4, 0.5)), Vec::<String>::new());
    assert_eq!(fired(&memory(0.9, 0.05)), Vec::<String>::new());
}

#[test]
fn accesses_to_many_cache_lines_are_found() {
    let memory = |lines: f64| {
        with_counters(&[
            ("TCP_TOTAL_CACHE_ACCESSES_sum", lines * 1_000.0),
            ("SQ_INSTS_VMEM", 1_000.0),
            ("SQ_WAIT_ANY", 800.0),
            ("SQ_WAVE_CYCLES", 1_000.0),
        ])
    };
    assert_eq!(fired(&memory(60.0)), ["uncoalesced"]);
    assert_eq!(fired(&memory(16.0)), Vec::<String>::new());
}

#[test]
fn counters_that_are_missing_leave_rules_not_judged() {
    let answer = judged(&with_counters(&[("SQ_INSTS_VMEM", 1_000.0)]));
    let section = answer.section("not_judged").expect("a section");
    let is_it = |row: &usize| section.get(*row, "rule") == Some(&"uncoalesced".into());
    let row = (0..section.rows.len()).find(is_it).expect("not judged");
    let option = "--pmc auto:SQ_INSTS_VMEM,SQ_WAIT_ANY,SQ_WAVE_CYCLES,TCP_TOTAL_CACHE_ACCESSES_sum";
    assert_eq!(section.get(row, "record"), Some(&option.into()));
}

#[test]
fn samples_tell_what_waves_wait_for_and_where() {
    let memory = |reasons: &[(&'static str, u64)], samples: u64| {
        let mut memory = with_counters(&[]);
        memory.facts.recorded.samples = true;
        for (place, share) in [("a.hip:7", 6), ("a.hip:9", 4)] {
            memory.sampled.push(Sampled {
                kernel: "K".to_owned(),
                place: place.to_owned(),
                samples: samples * share / 10,
                of_kernel: samples,
                reasons: reasons
                    .iter()
                    .map(|(why, part)| (*why, samples * part * share / 1_000))
                    .collect(),
                ..Sampled::default()
            });
        }
        memory
    };
    let barrier = memory(&[("BARRIER_WAIT", 60), ("WAITCNT", 20)], 1_000);
    assert_eq!(fired(&barrier), ["wait-barrier"]);
    let waits = memory(&[("WAITCNT", 80)], 1_000);
    assert_eq!(fired(&waits), ["wait-memory"]);
    // Too few of them, and samples that do not tell why.
    assert_eq!(
        fired(&memory(&[("WAITCNT", 80)], 100)),
        Vec::<String>::new()
    );
    let answer = judged(&memory(&[], 1_000));
    let evidence = answer.section("evidence").expect("evidence");
    let rows = 0..evidence.rows.len();
    let keys: Vec<&str> = rows
        .filter_map(|row| evidence.get(row, "record").and_then(Value::text))
        .collect();
    assert_eq!(keys, ["line|K|a.hip:7", "line|K|a.hip:9"]);
}
