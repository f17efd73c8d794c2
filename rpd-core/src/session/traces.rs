//! Thread traces: the streams of shader engines as they were recorded, and what decoding them after the run yielded.

use std::sync::Arc;

use super::samples::Issue;
use crate::ids::{AgentHandle, CodeObjectId, DispatchId, KernelId};
use crate::storage::column::Column;

/// Settings with which an agent was traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracing {
    /// The traced agent.
    pub agent: AgentHandle,
    /// Size of the buffer of each traced shader engine, in bytes.
    pub capacity: u64,
    /// Labels of the counters in the trace, in the order of their values: see
    /// [`TracedCounter::label`](rpd_spool::options::TracedCounter::label).
    pub counters: Vec<String>,
    /// Whether a trace is of everything that the agent executed in a period of time, and not of one dispatch. Traces of
    /// periods are numbered from 1; a trace of a dispatch has the number of the dispatch.
    pub whole_agent: bool,
}

/// A dispatch that was selected for tracing when it was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChosenDispatch {
    /// Agent that it ran on.
    pub agent: AgentHandle,
    /// Number of the dispatch, which is the number of its trace.
    pub dispatch: DispatchId,
    /// Kernel of the dispatch.
    pub kernel: KernelId,
}

/// The trace data of one shader engine, undecoded.
#[derive(Debug, Clone)]
pub struct TraceStream {
    /// Agent of the shader engine.
    pub agent: AgentHandle,
    /// Number of the trace: see [`Tracing::whole_agent`].
    pub trace: u64,
    /// Number of the shader engine in the agent, from 0.
    pub engine: u32,
    /// Whether the buffer was full, so that later data are missing: the provider reported it, or the data are as long
    /// as the buffer.
    pub full: bool,
    /// Whether parts of the data are missing, because the program ended while the provider delivered them.
    pub incomplete: bool,
    /// Tokens in the encoding of the agent's architecture.
    pub bytes: Arc<Column<u8>>,
}

/// Results of decoding the data of a shader engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSummary {
    /// Agent of the shader engine.
    pub agent: AgentHandle,
    /// Number of the trace: see [`Tracing::whole_agent`].
    pub trace: u64,
    /// Kernel of the traced dispatch; 0 for traces of whole agents.
    pub kernel: KernelId,
    /// Number of the shader engine in the agent, from 0.
    pub engine: u32,
    /// Size of the data in bytes.
    pub bytes: u64,
    /// Size of the buffer in bytes; 0 when it is not known.
    pub capacity: u64,
    /// Whether the buffer was full, so that later data are missing.
    pub full: bool,
    /// Number of waves that began on any compute unit of the shader engine.
    pub started: u64,
    /// Number of waves of the traced compute unit, the one whose instructions are in the trace.
    pub waves: u64,
    /// Number of instructions that the waves of the traced compute unit executed.
    pub instructions: u64,
    /// Number of the executed instructions that could not be matched with the code of the kernel.
    pub unmatched: u64,
    /// Number of times that the GPU dropped tokens because it could not write them fast enough.
    pub lost: u64,
    /// Number of waves of the traced compute unit whose end is not in the trace.
    pub incomplete_waves: u64,
}

/// A wave of the traced compute unit, with sums over its instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedWave {
    /// Index into [`ThreadTraces::summaries`] of the shader engine's trace.
    pub stream: u32,
    /// Compute unit; for RDNA, the WGP, with the shader array in bit 7.
    pub cu: u8,
    /// SIMD that the wave ran on.
    pub simd: u8,
    /// Wave slot of the SIMD.
    pub slot: u8,
    /// Time at which the wave began, in cycles of the trace's clock.
    pub begin: i64,
    /// Time at which it ended, in cycles of the trace's clock.
    pub end: i64,
    /// Number of instructions that it executed.
    pub instructions: u64,
    /// Durations of these instructions added up, in cycles; the time before issue is included.
    pub latency: u64,
    /// Cycles in which these instructions waited to be issued.
    pub stall: u64,
    /// Whether its end is in the trace.
    pub complete: bool,
}

/// Waves on a shader engine in a part of its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccupiedTime {
    /// Index into [`ThreadTraces::summaries`] of the shader engine's trace.
    pub stream: u32,
    /// Begin of the part, in cycles of the trace's clock.
    pub begin: i64,
    /// End of the part, in cycles of the trace's clock.
    pub end: i64,
    /// Cycles that waves were present in this part, added up over all waves on all compute units.
    pub wave_cycles: u64,
}

/// Waves on a compute unit of a traced shader engine. Waves are traced on all compute units, instructions on one
/// only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccupiedUnit {
    /// Index into [`ThreadTraces::summaries`] of the shader engine's trace.
    pub stream: u32,
    /// Compute unit; for RDNA, the WGP, with the shader array in bit 7.
    pub cu: u8,
    /// Number of waves that began on it.
    pub waves: u64,
    /// Cycles that these waves were present, added up.
    pub wave_cycles: u64,
}

/// Cost of an instruction, over all waves of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedLine {
    /// Kernel of the traced dispatch; 0 for traces of whole agents.
    pub kernel: KernelId,
    /// Traced agent.
    pub agent: AgentHandle,
    /// Number of the trace: see [`Tracing::whole_agent`].
    pub trace: u64,
    /// Code object that has the instruction.
    pub object: CodeObjectId,
    /// Offset of the instruction from the load address of the code object, in bytes.
    pub offset: u64,
    /// Number of times that waves executed the instruction.
    pub hits: u64,
    /// Durations of its executions added up, in cycles; the time before issue is included.
    pub latency: u64,
    /// Cycles between the end of the instruction before it and its begin, added up.
    pub idle: u64,
    /// Cycles in which it waited to be issued, by reason, ordered by reason; part of `latency`.
    pub stalls: Vec<(Issue, u64)>,
}

impl TracedLine {
    /// Cycles in which it waited to be issued, over all reasons.
    pub fn stall(&self) -> u64 {
        self.stalls.iter().map(|(_, cycles)| cycles).sum()
    }
}

/// The thread traces of a recording, before and after decoding.
#[derive(Debug, Default)]
pub struct ThreadTraces {
    /// Settings of thread tracing, one entry for each traced agent.
    pub tracing: Vec<Tracing>,
    /// Dispatches that were selected for tracing.
    pub chosen: Vec<ChosenDispatch>,
    /// Undecoded data, ordered by agent, number of the trace and shader engine.
    pub streams: Vec<TraceStream>,
    /// Names of the files in the output directory that the undecoded data were saved as.
    pub stream_files: Vec<String>,
    /// Names of the files in the output directory that the code objects of the traced agents were saved as.
    pub code_files: Vec<String>,
    /// Results of decoding each element of `streams`, in the same order; empty before decoding.
    pub summaries: Vec<TraceSummary>,
    /// Waves of the traced compute units, ordered by stream.
    pub waves: Vec<TracedWave>,
    /// Waves on shader engines over time, ordered by stream and begin. Parts without waves have no entry.
    pub occupied_times: Vec<OccupiedTime>,
    /// Compute units on which waves began, ordered by stream and number.
    pub occupied_units: Vec<OccupiedUnit>,
    /// Costs of the executed instructions.
    pub lines: Vec<TracedLine>,
    /// Messages for the user about defects of the traces, one sentence each.
    pub problems: Vec<String>,
}

impl ThreadTraces {
    /// Whether there are neither undecoded nor decoded traces.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.summaries.is_empty()
    }

    /// Agent and number of each decoded trace.
    pub fn numbers(&self) -> Vec<(AgentHandle, u64)> {
        let all = self
            .summaries
            .iter()
            .map(|found| (found.agent, found.trace));
        let mut numbers: Vec<_> = all.collect();
        numbers.dedup();
        numbers
    }

    /// Kernel of a trace; 0 for traces of whole agents, and when it is not known.
    pub fn kernel(&self, agent: AgentHandle, trace: u64) -> KernelId {
        let is_whole = |tracing: &Tracing| tracing.agent == agent && tracing.whole_agent;
        if self.tracing.iter().any(is_whole) {
            return KernelId(0);
        }
        let chosen = self
            .chosen
            .iter()
            .find(|chosen| chosen.agent == agent && chosen.dispatch.0 == trace);
        chosen.map_or(KernelId(0), |chosen| chosen.kernel)
    }
}
