//! Layout of the spool files. Little endian, every record a multiple of 8 bytes.
//!
//! A segment is one file of fixed size: [`SegmentHeader`], then records up to `committed`. A record begins with
//! [`RecordHeader`], which is part of the struct that the table of kinds ([`crate::record`]) names for its tag. A
//! tail of variable length may follow the struct. Readers skip and count records whose tag is not in the table.
//!
//! Unless a field says otherwise, times are nanoseconds of `CLOCK_BOOTTIME`, sizes, offsets and lengths are in bytes, and
//! ids, handles and numbers of kinds and operations are those of the provider. Records of names
//! ([`tag::KIND_NAME`], [`tag::OPERATION_NAME`]) say what the numbers of kinds and operations mean.

mod calls;
pub mod capture;
mod counters;
mod device;
mod facts;
mod process;
pub mod record;
mod removed;
mod sampling;
mod stacks;
mod thread_trace;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use calls::{CallRecord, RangeBegin, RangeEnd, call_flag};
pub use capture::{CaptureCall, CaptureCode, CaptureMarker};
pub use counters::{CountedDispatch, CountedValue, Counter, CounterInstance, Selected};
pub use device::{
    Allocation, CapturedNode, Copy, DeviceTotal, Dispatch, GraphLaunch, GraphNode, HipEvent,
    KfdEvent, Scratch, event_operation, kfd_kind, total_of,
};
pub use facts::{
    AgentRecord, CodeObject, HostFunction, KernelSymbol, Name, NamedResource, Region, space,
};
pub use process::{PROVIDER_CUDA, PROVIDER_DIRECT, Process, ProcessTotals, RuntimeInit, TimedText};
pub use record::tag;
pub use removed::RemovedTotal;
pub use sampling::{
    CodeBytes, CodeContent, FIRST_WARP_REASON, PcCount, PcSample, PcSampling, WARP_ISSUED,
    WARP_REASONS, sample_flag,
};
pub use stacks::{
    StackCode, StackLocation, StackModule, StackNode, StackObject, StackRef, StackSource,
    location_kind, stack_flag,
};
pub use thread_trace::{ThreadTracing, TracePart, TracedDispatch, trace_flag};

/// First bytes of every segment.
pub const MAGIC: [u8; 8] = *b"RPDSPOOL";

/// Version of this layout. Readers refuse files of other versions.
pub const VERSION: u32 = 2;

/// Bytes of a record with this fixed part and tail.
#[inline]
pub const fn record_len(fixed: usize, tail: usize) -> usize {
    (fixed + tail).next_multiple_of(8)
}

/// Values of [`SegmentHeader::stream_kind`].
pub mod stream {
    /// Facts that occur rarely: process, names, agents, code objects. One stream in each process, file `meta`.
    pub const META: u16 = 1;
    /// Calls and markers of one thread, and device work whose completion the provider reported on it; such records
    /// hold the id of the thread that submitted the work. File `t<tid>`.
    pub const THREAD: u16 = 2;
    /// Device work of all threads in a recording that keeps only the latest segments
    /// ([`super::segment_flag::BOUNDED`]). File `recent`.
    pub const RECENT: u16 = 3;
    /// What the records of one thread refer to, in a recording whose [`THREAD`] streams lose segments
    /// ([`super::segment_flag::BOUNDED`]). File `f<tid>`.
    pub const FACTS: u16 = 4;
}

/// Bits of [`SegmentHeader::flags`].
pub mod segment_flag {
    /// Segments of the stream are removed while others are written: to keep a bound, or because their records were taken.
    pub const BOUNDED: u16 = 1;
    /// Nothing more is appended to the segment. Calls in it may still end. Stored with release ordering after the last
    /// record, where [`BOUNDED`] is set.
    pub const CLOSED: u16 = 2;
}

/// Bit of [`SegmentHeader::taken`]: the writer is removing the segment, and counts the records behind the other bits. Where its
/// process has ended meanwhile, nothing has counted them.
pub const REMOVING: u32 = 1 << 31;

/// In [`SegmentHeader::taken`]: the writer has counted the records that no reader took, and removes the file.
pub const REMOVED: u32 = u32::MAX;

/// Head of a segment file, 64 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SegmentHeader {
    /// [`MAGIC`]: readers refuse a file that begins otherwise.
    pub magic: [u8; 8],
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Kind of the stream: one of the values of [`stream`].
    pub stream_kind: u16,
    /// Properties of the stream: bits of [`segment_flag`].
    pub flags: u16,
    /// Id of the process that writes the file.
    pub pid: u32,
    /// Id of the thread that the stream belongs to; 0 when it belongs to none.
    pub tid: u32,
    /// Number of this segment in its stream, from 0.
    pub segment: u32,
    /// Number of the stream in its process, which identifies its segments.
    pub stream_id: u32,
    /// Bytes of complete records after this header. Stored with release ordering after the records. At byte 32.
    pub committed: u64,
    /// Number of records that could not be stored in this stream since this segment was made. At byte 40.
    pub dropped: u64,
    /// Time at which the segment was made.
    pub created: u64,
    /// Size of the file, this header included.
    pub capacity: u32,
    /// Bytes of records that a reader has written out elsewhere, from the first on; other readers leave them out. The reader
    /// and the writer that removes the segment ([`REMOVING`]) change it with atomic operations, so that each record is either
    /// taken or counted as removed. At byte 60.
    pub taken: u32,
}

/// Head of a record, 8 bytes. [`crate::record::RecordKind::head`] makes one.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
#[non_exhaustive]
pub struct RecordHeader {
    /// Length of the record: this head, the struct, the tail, and the padding to a multiple of 8.
    pub len: u32,
    /// Kind of the record: one of [`tag`].
    pub tag: u16,
    /// Meaning depends on the kind of the record; 0 where the struct states none.
    pub aux: u16,
}

impl RecordHeader {
    /// This head with another [`RecordHeader::aux`].
    #[inline]
    pub const fn with_aux(self, aux: u16) -> RecordHeader {
        RecordHeader { aux, ..self }
    }
}

const _: () = {
    assert!(size_of::<SegmentHeader>() == 64);
    assert!(std::mem::offset_of!(SegmentHeader, committed) == 32);
    assert!(std::mem::offset_of!(SegmentHeader, taken) == 60);
    assert!(size_of::<RecordHeader>() == 8);
};
