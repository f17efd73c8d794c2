//! Parquet tables of thread traces.

use rpd_core::session::code::{Code, CodeLine, Instruction};
use rpd_core::session::traces::{ThreadTraces, TraceSummary, TracedLine};

use super::samples::known;
use super::table::Rows;
use super::{Context, Table};
use crate::columns::{StoredColumns as _, columns};

pub(super) const TABLES: [Table; 2] = [
    (
        "thread_trace_instructions",
        |session| session.thread_traces.lines.len(),
        |context, rows| Instructions::new(context).append_to(rows),
    ),
    (
        "thread_trace_waves",
        |session| session.thread_traces.waves.len(),
        |context, rows| Waves::new(context).append_to(rows),
    ),
];

/// Sums by instruction.
struct Instructions<'c> {
    context: &'c Context<'c>,
    lines: &'c [TracedLine],
    code: &'c Code,
}

impl<'c> Instructions<'c> {
    fn new(context: &'c Context<'c>) -> Instructions<'c> {
        Instructions {
            context,
            lines: &context.session.thread_traces.lines,
            code: &context.session.code,
        }
    }

    fn instruction(&self, row: usize) -> Option<&Instruction> {
        let found = self
            .code
            .find(self.lines[row].object, self.lines[row].offset);
        found.map(|index| &self.code.instructions[index])
    }

    /// The innermost source line of the instruction.
    fn line(&self, row: usize) -> Option<CodeLine> {
        let lines = self.code.lines_of(self.instruction(row)?);
        lines.first().copied()
    }

    /// Reasons of stalls with their cycles, `reason=cycles`, with blanks between them.
    fn stall_reasons(&self, row: usize) -> String {
        let reasons = self.lines[row].stalls.iter();
        let texts =
            reasons.filter_map(|(issue, cycles)| Some(format!("{}={cycles}", issue.stall()?)));
        texts.collect::<Vec<_>>().join(" ")
    }
}

columns!(Instructions<'_> => Rows<'r> by column, |traced, row|
    "guid": texts(Some(traced.context.guid_text)),
    "trace": integers(traced.lines[row].trace),
    "kernel_id": integers(traced.lines[row].kernel.0),
    "code_object_id": integers(traced.lines[row].object.0),
    "code_object_offset": integers(traced.lines[row].offset),
    "instruction": texts(known(traced.instruction(row)?.text)),
    "file": texts(known(traced.line(row)?.file)),
    "line": optional_integers(traced.line(row).map(|line| line.line.into())),
    "hits": integers(traced.lines[row].hits),
    "latency": integers(traced.lines[row].latency),
    "stall": integers(traced.lines[row].stall()),
    "idle": integers(traced.lines[row].idle),
    "stall_reasons": own_texts(traced.stall_reasons(row)),
);

/// Waves.
struct Waves<'c> {
    context: &'c Context<'c>,
    traces: &'c ThreadTraces,
}

impl<'c> Waves<'c> {
    fn new(context: &'c Context<'c>) -> Waves<'c> {
        Waves {
            context,
            traces: &context.session.thread_traces,
        }
    }

    fn stream(&self, row: usize) -> Option<&TraceSummary> {
        self.traces
            .summaries
            .get(self.traces.waves[row].stream as usize)
    }
}

columns!(Waves<'_> => Rows<'r> by column, |waves, row|
    "guid": texts(Some(waves.context.guid_text)),
    "trace": integers(waves.stream(row).map_or(0, |stream| stream.trace)),
    "shader_engine": integers(waves.stream(row).map_or(0, |stream| stream.engine.into())),
    "cu": integers(waves.traces.waves[row].cu.into()),
    "simd": integers(waves.traces.waves[row].simd.into()),
    "slot": integers(waves.traces.waves[row].slot.into()),
    "start": optional_integers(Some(waves.traces.waves[row].begin)),
    "end": optional_integers(Some(waves.traces.waves[row].end)),
    "instructions": integers(waves.traces.waves[row].instructions),
    "latency": integers(waves.traces.waves[row].latency),
    "stall": integers(waves.traces.waves[row].stall),
    "is_complete": integers(waves.traces.waves[row].complete.into()),
);
