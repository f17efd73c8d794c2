//! Thread traces: how agents are traced, which dispatches, and the streams of shader engines.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Trace configuration of an agent. Tail: names of the counters in the trace, joined by blanks.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ThreadTracing {
    /// Record head.
    pub header: RecordHeader,
    /// Agent handle.
    pub agent: u64,
    /// Bytes that each traced shader engine can write.
    pub capacity: u64,
    /// Bytes in the tail.
    pub len: u32,
    /// 1: traces are of the whole agent for a time, and their numbers count them from 1. 0: each is of one dispatch, whose
    /// number it has.
    pub whole_agent: u32,
}

/// A dispatch is traced.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TracedDispatch {
    /// Record head.
    pub header: RecordHeader,
    /// Agent handle.
    pub agent: u64,
    /// Dispatch id.
    pub dispatch: u64,
    /// Id of its kernel.
    pub kernel: u64,
}

/// Bits of [`TracePart::flags`].
pub mod trace_flag {
    /// The stream's last part.
    pub const END: u32 = 1;
    /// A buffer was full, so the trace ends early or has gaps.
    pub const FULL: u32 = 2;
}

/// A part of the stream of a shader engine. Tail: the bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TracePart {
    /// Record head.
    pub header: RecordHeader,
    /// Agent handle.
    pub agent: u64,
    /// Number of the trace: see [`ThreadTracing::whole_agent`].
    pub trace: u64,
    /// Number of the chunk that the provider delivered; they may arrive in any order.
    pub chunk: u64,
    /// Offset of the part in the chunk.
    pub offset: u64,
    /// Bytes of the chunk.
    pub size: u64,
    /// Shader engine.
    pub engine: u32,
    /// [`trace_flag`]s; of the chunk, in its last part.
    pub flags: u32,
    /// Bytes in the tail.
    pub len: u32,
    /// Not used; 0.
    pub reserved: u32,
}
