//! Remarks of the ledger about thread traces.

use rpd_core::options::Options;
use rpd_core::session::Session;

use crate::wording::count;

/// Warnings about traces that are shown: many traces may have the same.
const PROBLEMS: usize = 8;

/// Remarks about thread traces, one per line: the traces with the values that were in effect, and what is wrong or
/// missing.
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
    let has_kernels = !session.kernel_symbols.is_empty() && !session.process.forked;
    if is_idle && !traces.tracing.is_empty() && has_kernels {
        let is_whole = traces.tracing.iter().any(|tracing| tracing.whole_agent);
        let why = if is_whole && wanted.consecutive == 0 {
            "recording was never on (--selected-regions, --collection-period, or a program that pauses it)"
        } else {
            "no kernel that ran is selected by --kernel-include-regex, --kernel-exclude-regex, \
                 --kernel-iteration-range and what the program pauses"
        };
        remarks.push(format!("nothing was traced: {why}"));
    }
    let problems = traces.problems.iter().take(PROBLEMS);
    remarks.extend(problems.map(|problem| format!("WARNING: {problem}")));
    let more = traces.problems.len().saturating_sub(PROBLEMS);
    if more > 0 {
        remarks.push(format!(
            "WARNING: {} about thread traces (rpd att decode lists all)",
            count(more, "more warning")
        ));
    }
    // Remarks about samples have these problems already.
    if !session.has_samples() {
        remarks.extend(session.code.problems.iter().cloned());
    }
    remarks
}
