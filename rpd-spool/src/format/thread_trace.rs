//! Records of thread traces: how agents are traced, which dispatches, and the data of shader engines.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Settings with which an agent is traced. Tail: labels of the counters in the trace, separated by blanks.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ThreadTracing {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Handle of the traced agent.
    pub agent: u64,
    /// Size of the buffer of each traced shader engine.
    pub capacity: u64,
    /// Length of the tail.
    pub len: u32,
    /// 1: a trace is of everything that the agent executes in a period of time, and traces are numbered from 1. 0: a
    /// trace is of one dispatch, and has the id of the dispatch as its number.
    pub whole_agent: u32,
}

/// A dispatch was selected for tracing when it was submitted.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TracedDispatch {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Handle of the agent that runs it.
    pub agent: u64,
    /// Id of the dispatch, which is the number of the trace.
    pub dispatch: u64,
    /// Id of its kernel.
    pub kernel: u64,
}

/// Bits of [`TracePart::flags`].
pub mod trace_flag {
    /// The part is the last one of the stream.
    pub const END: u32 = 1;
    /// A buffer was full, so data are missing at the end or in between.
    pub const FULL: u32 = 2;
}

/// A part of the trace data of a shader engine. Tail: the bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TracePart {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Handle of the agent.
    pub agent: u64,
    /// Number of the trace: see [`ThreadTracing::whole_agent`].
    pub trace: u64,
    /// Number of the chunk, in the order in which the shader engine wrote them. The provider may deliver chunks in
    /// any order.
    pub chunk: u64,
    /// Offset of the part in the chunk.
    pub offset: u64,
    /// Size of the whole chunk.
    pub size: u64,
    /// Number of the shader engine in the agent, from 0.
    pub engine: u32,
    /// Properties of the chunk: bits of [`trace_flag`]. [`trace_flag::END`] is set in the last part of a chunk only.
    pub flags: u32,
    /// Length of the part in the tail.
    pub len: u32,
    /// Not used: 0.
    pub reserved: u32,
}
