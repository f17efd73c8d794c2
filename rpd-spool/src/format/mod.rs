//! Layout of the spool files. Little endian, every record a multiple of 8 bytes.
//!
//! A segment is one file of fixed size: [`SegmentHeader`], then records up to `committed`. A record starts
//! with [`RecordHeader`]; its fixed part is the struct that the table of kinds ([`crate::record`]) names; a variable tail
//! may follow. Readers count records with tags that are not in the table.

mod calls;
pub mod capture;
mod counters;
mod device;
mod facts;
mod process;
pub mod record;
mod sampling;
mod stacks;
mod thread_trace;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use calls::{ApiCall, RangeBegin, RangeEnd, api_flag};
pub use capture::{CaptureCall, CaptureCode, CaptureMarker};
pub use counters::{CountedDispatch, CountedValue, Counter, CounterInstance, Selected};
pub use device::{Allocation, Copy, DeviceTotal, Dispatch, Scratch, total_of};
pub use facts::{
    AgentRecord, CodeObject, HostFunction, KernelSymbol, Name, NamedResource, Region, space,
};
pub use process::{PROVIDER_DIRECT, Process, RuntimeInit, TimedText, Totals};
pub use record::tag;
pub use sampling::{CodeBytes, CodeContent, PcSample, PcSampling, sample_flag};
pub use stacks::{
    StackCode, StackLocation, StackModule, StackNode, StackObject, StackRef, StackSource,
    location_kind, stack_flag,
};
pub use thread_trace::{ThreadTracing, TracePart, TracedDispatch, trace_flag};

/// First bytes of every segment.
pub const MAGIC: [u8; 8] = *b"RPDSPOOL";

/// Version of this layout. A reader refuses other versions.
pub const VERSION: u32 = 1;

/// Kinds of stream, in [`SegmentHeader::stream_kind`].
pub mod stream {
    /// Process, names, agents, code objects and other rare facts: one per process, file `meta`.
    pub const META: u16 = 1;
    /// Calls and markers of one thread, and records of finished work that the provider delivered on it, which name
    /// the thread that submitted the work. File `t<tid>`.
    pub const THREAD: u16 = 2;
    /// Device work of the process, of which only the latest segments are kept ([`super::segment_flag::BOUNDED`]). File
    /// `recent`.
    pub const RECENT: u16 = 3;
}

/// Bits of [`SegmentHeader::flags`].
pub mod segment_flag {
    /// The stream has a bound: its oldest segments are removed when newer ones are made.
    pub const BOUNDED: u16 = 1;
}

/// Head of a segment file, 64 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SegmentHeader {
    /// Always [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// One of [`stream`].
    pub stream_kind: u16,
    /// [`segment_flag`].
    pub flags: u16,
    /// Process that writes.
    pub pid: u32,
    /// Thread the stream belongs to; 0 when none.
    pub tid: u32,
    /// Number of this segment in its stream, from 0.
    pub segment: u32,
    /// Number of the stream in its process.
    pub stream_id: u32,
    /// Bytes of records that are complete. Stored with release ordering after the bytes. At byte 32.
    pub committed: u64,
    /// Records of this stream that could not be stored from this segment on. At byte 40.
    pub dropped: u64,
    /// Time at which the segment was made, `CLOCK_BOOTTIME` ns.
    pub created: u64,
    /// Size of the file in bytes, this header included.
    pub capacity: u64,
}

/// Head of a record, 8 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RecordHeader {
    /// Bytes of the whole record, this header and padding included.
    pub len: u32,
    /// One of [`tag`].
    pub tag: u16,
    /// Depends on the tag; zero where not stated.
    pub aux: u16,
}

const _: () = {
    assert!(size_of::<SegmentHeader>() == 64);
    assert!(std::mem::offset_of!(SegmentHeader, committed) == 32);
    assert!(size_of::<RecordHeader>() == 8);
};
