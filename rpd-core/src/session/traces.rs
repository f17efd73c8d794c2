//! Thread traces: the streams of shader engines as they were recorded, and what was found in them when the run was over.

use std::sync::Arc;

use super::samples::Issue;
use crate::column::Column;
use crate::ids::{AgentHandle, CodeObjectId, DispatchId, KernelId};

/// Trace configuration of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracing {
    /// Handle of the agent.
    pub agent: AgentHandle,
    /// Bytes that each traced shader engine could write.
    pub capacity: u64,
    /// Counters in the trace, in the order of their values, with the SIMDs they are counted on: see
    /// [`TracedCounter::label`](rpd_spool::options::TracedCounter::label).
    pub counters: Vec<String>,
    /// Traces are of the whole agent for a time and are numbered from 1; otherwise each is of one dispatch and has its
    /// number.
    pub whole_agent: bool,
}

/// A dispatch that was chosen to be traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChosenDispatch {
    /// The agent that it ran on.
    pub agent: AgentHandle,
    /// Number of the dispatch.
    pub dispatch: DispatchId,
    /// The dispatched kernel.
    pub kernel: KernelId,
}

/// The stream of a shader engine, as the GPU wrote it.
#[derive(Debug, Clone)]
pub struct TraceStream {
    /// Handle of the agent.
    pub agent: AgentHandle,
    /// Number of the trace: see [`Tracing::whole_agent`].
    pub trace: u64,
    /// The shader engine.
    pub engine: u32,
    /// The provider reported a full buffer, or the stream is as long as the buffer.
    pub full: bool,
    /// Bytes between those that are there, or at the end, are missing: the program ended while they were delivered.
    pub incomplete: bool,
    /// Bytes as the hardware wrote them.
    pub bytes: Arc<Column<u8>>,
}

/// Decoding results of the stream of a shader engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSummary {
    /// Handle of the agent.
    pub agent: AgentHandle,
    /// Number of the trace.
    pub trace: u64,
    /// The kernel that was traced; 0 for traces of whole agents.
    pub kernel: KernelId,
    /// The shader engine.
    pub engine: u32,
    /// Bytes of the stream.
    pub bytes: u64,
    /// Bytes that it could have had; 0 when that is not known.
    pub capacity: u64,
    /// The buffer was full.
    pub full: bool,
    /// Waves that began on any compute unit.
    pub started: u64,
    /// Waves of the traced compute unit.
    pub waves: u64,
    /// Their instructions.
    pub instructions: u64,
    /// Of those, the ones that could not be matched with code.
    pub unmatched: u64,
    /// Number of times that the GPU dropped tokens.
    pub lost: u64,
    /// Waves of the traced compute unit without an end in the trace.
    pub incomplete_waves: u64,
}

/// A wave of the traced compute unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedWave {
    /// Index into [`ThreadTraces::summaries`].
    pub stream: u32,
    /// Compute unit; for RDNA the shader array (bit 7) and WGP.
    pub cu: u8,
    /// SIMD that the wave ran on.
    pub simd: u8,
    /// Slot in the SIMD.
    pub slot: u8,
    /// Begin in cycles of the trace.
    pub begin: i64,
    /// End, in cycles of the trace.
    pub end: i64,
    /// Instructions that it executed.
    pub instructions: u64,
    /// Cycles of their durations, those before issue included.
    pub latency: u64,
    /// Cycles before they were issued.
    pub stall: u64,
    /// Whether its end is in the trace.
    pub complete: bool,
}

/// Occupancy of a shader engine in a part of its trace's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccupiedTime {
    /// Index into [`ThreadTraces::summaries`].
    pub stream: u32,
    /// Begin of this part in cycles of the trace.
    pub begin: i64,
    /// End, in cycles of the trace.
    pub end: i64,
    /// Cycles in it of all waves on all compute units, added up.
    pub wave_cycles: u64,
}

/// Occupancy of a compute unit of a traced shader engine, whether its instructions were traced or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccupiedUnit {
    /// Index into [`ThreadTraces::summaries`].
    pub stream: u32,
    /// Compute unit; for RDNA the shader array (bit 7) and WGP.
    pub cu: u8,
    /// Waves that began on it.
    pub waves: u64,
    /// Cycles that these waves ran, added up.
    pub wave_cycles: u64,
}

/// Costs of an instruction, over all waves of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedLine {
    /// The kernel of the trace; 0 for traces of whole agents.
    pub kernel: KernelId,
    /// Agent of the trace.
    pub agent: AgentHandle,
    /// Number of the trace.
    pub trace: u64,
    /// Code object.
    pub object: CodeObjectId,
    /// Offset from the load address of the code object.
    pub offset: u64,
    /// Number of executions by waves.
    pub hits: u64,
    /// Durations of its executions added up, in cycles.
    pub latency: u64,
    /// Cycles between the instructions before it and its start.
    pub idle: u64,
    /// Cycles before it was issued, by reason, ascending; part of `latency`.
    pub stalls: Vec<(Issue, u64)>,
}

impl TracedLine {
    /// Cycles before it was issued.
    pub fn stall(&self) -> u64 {
        self.stalls.iter().map(|(_, cycles)| cycles).sum()
    }
}

/// The thread traces of a recording.
#[derive(Debug, Default)]
pub struct ThreadTraces {
    /// Trace configurations of agents.
    pub tracing: Vec<Tracing>,
    /// Dispatches that were chosen.
    pub chosen: Vec<ChosenDispatch>,
    /// Streams, by agent, number and engine.
    pub streams: Vec<TraceStream>,
    /// Names of the files that the streams were saved as.
    pub stream_files: Vec<String>,
    /// Names of the files that the code objects of their agents were saved as.
    pub code_files: Vec<String>,
    /// Decoding results of the streams, in the same order; empty before they are decoded.
    pub summaries: Vec<TraceSummary>,
    /// Waves, by stream.
    pub waves: Vec<TracedWave>,
    /// Waves on shader engines over time, by stream and begin; parts without waves are left out.
    pub occupied_times: Vec<OccupiedTime>,
    /// Compute units with waves, by stream and number.
    pub occupied_units: Vec<OccupiedUnit>,
    /// Instructions.
    pub lines: Vec<TracedLine>,
    /// Problems of the traces, for the user: one sentence each.
    pub problems: Vec<String>,
}

impl ThreadTraces {
    /// Whether nothing was traced.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.summaries.is_empty()
    }

    /// Agents and numbers of the traces that were decoded.
    pub fn numbers(&self) -> Vec<(AgentHandle, u64)> {
        let all = self
            .summaries
            .iter()
            .map(|found| (found.agent, found.trace));
        let mut numbers: Vec<_> = all.collect();
        numbers.dedup();
        numbers
    }

    /// The kernel of a trace; 0 when it is not known.
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
