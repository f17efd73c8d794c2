//! Remarks of the ledger about thread traces.

use rpd_core::options::Options;
use rpd_core::session::Session;

use crate::wording::count;

/// One remark per line: what was traced, with the values that were in effect, and what is wrong or missing.
pub(super) fn remarks(session: &Session, options: &Options) -> Vec<String> {
    let Some(wanted) = &options.collector.thread_trace else {
        return Vec::new();
    };
    let traces = &session.thread_traces;
    let mut remarks = Vec::new();
    if !traces.tracing.is_empty() {
        let sum = |field: fn(&rpd_core::session::traces::TraceSummary) -> u64| -> usize {
            traces.summaries.iter().map(field).sum::<u64>() as usize
        };
        remarks.push(format!(
            "thread traces of compute unit {}, SIMDs {:#x}, shader engines {:#x}, with a buffer of {} bytes, {} for each engine: {}, {}",
            wanted.target_cu,
            wanted.simds,
            wanted.engines,
            wanted.buffer,
            wanted.bytes_per_engine(),
            count(sum(|trace| trace.waves), "wave"),
            count(sum(|trace| trace.instructions), "instruction"),
        ));
    }
    let is_idle = traces.streams.is_empty() && traces.chosen.is_empty();
    if is_idle && !traces.tracing.is_empty() && !session.kernel_symbols.is_empty() {
        remarks.push(
            "nothing was traced: no kernel that ran is selected by --kernel-include-regex, --kernel-exclude-regex, \
             --kernel-iteration-range and what the program pauses"
                .to_owned(),
        );
    }
    let problems = traces.problems.iter();
    remarks.extend(problems.map(|problem| format!("WARNING: {problem}")));
    if session.samples.is_empty() {
        remarks.extend(session.code.problems.iter().cloned());
    }
    remarks
}
