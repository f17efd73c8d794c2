//! Calls and ranges.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Flags of [`ApiCall`].
pub mod api_flag {
    /// The tail starts with the bytes of the argument struct, then per captured text (in argument order) a `u32` byte
    /// count (`u32::MAX` for a null pointer) and the bytes.
    pub const ARGUMENTS: u32 = 1;
    /// The tail is the provider's own argument texts: per argument `u32` count and bytes of type (as the provider
    /// gave it), name, value. For operations whose argument struct is not in rpd's table.
    pub const ARGUMENT_TEXTS: u32 = 2;
    /// The tail is a marker's message: `u32` byte count (`u32::MAX` for a null pointer) and the bytes.
    pub const MESSAGE: u32 = 4;
    /// The marker's message was a null pointer.
    pub const NULL_MESSAGE: u32 = 8;
    /// Some text was longer than the collector keeps; what is there is its beginning.
    pub const TRUNCATED: u32 = 16;
    /// The tail starts with a [`super::super::StackRef`]; what the other flags describe follows it.
    pub const STACK: u32 = 32;
}

/// A call, written when it begins; `end` is stored when it returns. 56 bytes without tail.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ApiCall {
    /// Record head. aux: the provider's callback kind.
    pub header: RecordHeader,
    /// The provider's operation number.
    pub operation: u32,
    /// [`api_flag`]s.
    pub flags: u32,
    /// Begin, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End; 0 while the call has not returned. At byte 24.
    pub end: u64,
    /// Internal correlation id.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call, 0 if none.
    pub ancestor: u64,
    /// First 8 bytes of the return value union, stored with `end`. At byte 48.
    pub retval: u64,
}

/// A process range was started. Tail: message, as [`api_flag::MESSAGE`] says.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RangeBegin {
    /// Record head. aux: the provider's callback kind.
    pub header: RecordHeader,
    /// The provider's operation number.
    pub operation: u32,
    /// [`api_flag`]s.
    pub flags: u32,
    /// Time, in ns of `CLOCK_BOOTTIME`.
    pub start: u64,
    /// Internal correlation id; [`RangeEnd`] has the same.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call, 0 if none.
    pub ancestor: u64,
}

/// A process range was stopped.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RangeEnd {
    /// Record head.
    pub header: RecordHeader,
    /// Internal correlation id of its [`RangeBegin`].
    pub correlation: u64,
    /// Time, in ns of `CLOCK_BOOTTIME`.
    pub end: u64,
}

const _: () = {
    assert!(size_of::<ApiCall>() == 56);
    assert!(std::mem::offset_of!(ApiCall, end) == 24);
    assert!(std::mem::offset_of!(ApiCall, retval) == 48);
};
