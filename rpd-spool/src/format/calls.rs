//! Records of calls and ranges.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Bits of [`CallRecord::flags`] and [`RangeBegin::flags`]: what the
/// tail holds.
pub mod call_flag {
    /// The tail begins with the bytes of the argument struct. For each captured text, in the order of arguments, a
    /// `u32` length (`u32::MAX` for a null pointer) and the bytes follow.
    pub const ARGUMENTS: u32 = 1;
    /// The tail holds the argument texts of the provider: for each argument its type (as the provider writes it),
    /// name and value, each as a `u32` length and the bytes. For operations whose argument struct is not in rpd's
    /// table.
    pub const ARGUMENT_TEXTS: u32 = 2;
    /// The tail begins with the message of a marker: a `u32` length (`u32::MAX` for a null pointer) and the bytes. With
    /// [`ARGUMENT_TEXTS`] what else is known of the marker follows.
    pub const MESSAGE: u32 = 4;
    /// The message of the marker was a null pointer.
    pub const NULL_MESSAGE: u32 = 8;
    /// A text was longer than the collector keeps. Its beginning is there.
    pub const TRUNCATED: u32 = 16;
    /// The tail begins with a [`super::super::StackRef`]. What the other flags describe follows it.
    pub const STACK: u32 = 32;
    /// With [`ARGUMENTS`]: behind the argument struct is room for what the call stores through its output arguments:
    /// a `u32` with a bit for each value that is there, the first in bit 0, then all values in the order of arguments,
    /// without padding. The texts follow. Written when the call has returned and has succeeded.
    pub const RESULTS: u32 = 64;
}

/// A call of a traced function. Written when the call begins; `end` and `retval` are stored when it returns. 56 bytes
/// without tail.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CallRecord {
    /// Head of the record. `aux`: number of the callback kind.
    pub header: RecordHeader,
    /// Number of the operation within the kind.
    pub operation: u32,
    /// Content of the tail: bits of [`call_flag`].
    pub flags: u32,
    /// Time at which the call began.
    pub start: u64,
    /// Time at which the call returned; 0 while it has not. At byte 24.
    pub end: u64,
    /// Correlation id of the call (`rocprofiler_correlation_id_t::internal`).
    pub correlation: u64,
    /// Correlation id of the enclosing traced call; 0 when there is none.
    pub ancestor: u64,
    /// First 8 bytes of the union of return values, stored with `end`. At byte 48.
    pub retval: u64,
}

/// A process range was started, by any thread. Tail: the message, as for [`call_flag::MESSAGE`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RangeBegin {
    /// Head of the record. `aux`: number of the callback kind.
    pub header: RecordHeader,
    /// Number of the operation within the kind.
    pub operation: u32,
    /// Content of the tail: bits of [`call_flag`].
    pub flags: u32,
    /// Time at which the range was started.
    pub start: u64,
    /// Correlation id of the range, by which its [`RangeEnd`] is found.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call; 0 when there is none.
    pub ancestor: u64,
}

/// A process range was stopped, possibly by another thread than started it.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RangeEnd {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Correlation id of the range, as in its [`RangeBegin`].
    pub correlation: u64,
    /// Time at which the range was stopped.
    pub end: u64,
}

const _: () = {
    assert!(size_of::<CallRecord>() == 56);
    assert!(std::mem::offset_of!(CallRecord, end) == 24);
    assert!(std::mem::offset_of!(CallRecord, retval) == 48);
};
