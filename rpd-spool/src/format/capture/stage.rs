//! Control block that the target and the front end share while host data pass through the staging file.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// Values of [`StageControl::ended`]: why a capture ended before the program did.
pub mod ended {
    /// The capture has not ended.
    pub const NOT: u32 = 0;
    /// Data or records could not be written, because no space is left on the disk.
    pub const NO_SPACE: u32 = 1;
    /// The front end did not read any data for a long time.
    pub const NO_READER: u32 = 2;
    /// The capture reached the limit that the user gave.
    pub const LIMIT: u32 = 3;
}

/// Reasons why an allocation of host-visible memory is compared as a whole, although the user asked for tracking of
/// written pages. Indices into [`StageControl::compared`].
pub mod compared {
    /// The kernel does not support asynchronous write protection by userfaultfd.
    pub const OLD_KERNEL: usize = 0;
    /// The process has no permission to use userfaultfd.
    pub const FORBIDDEN: usize = 1;
    /// Others can write the memory without the write protection: it is shared, or a mapped file.
    pub const SHARED: usize = 2;
    /// The kernel does not write-protect memory of this kind.
    pub const REFUSED: usize = 3;
    /// The program has mapped other memory in the place of the allocation.
    pub const REPLACED: usize = 4;
    /// Nearly all its pages are written every time and few of them change, so tracking does not help.
    pub const TOUCHED: usize = 5;
    /// Number of reasons.
    pub const REASONS: usize = 6;
}

/// Content of [`super::CONTROL_FILE`], which the target and the front end map.
#[derive(Debug)]
#[repr(C)]
pub struct StageControl {
    /// Bytes of the staging file that the target has reserved for data.
    pub reserved: AtomicU64,
    /// Bytes of the staging file that the front end has read. Only the front end writes this field.
    pub consumed: AtomicU64,
    /// Bytes of the staging file that were reserved and stay empty, because the data could not be written.
    pub abandoned: AtomicU64,
    /// Time that calls waited for the front end, added up, in nanoseconds.
    pub stalled: AtomicU64,
    /// Number of calls that waited for room in the staging file.
    pub stalls: AtomicU64,
    /// Size of all captured host data in bytes, including those in records.
    pub data: AtomicU64,
    /// Number of calls that were captured.
    pub calls: AtomicU64,
    /// Reason why the capture ended before the program: one of the values of [`ended`].
    pub ended: AtomicU32,
    /// Not used: 0.
    pub unused: AtomicU32,
    /// Number of functions in the runtime's dispatch table that this version of rpd does not know.
    pub unknown_functions: AtomicU64,
    /// Number of allocations of host-visible memory whose written pages were to be tracked.
    pub followed: AtomicU64,
    /// Number of allocations that are compared although they were to be tracked, by reason ([`compared`]).
    pub compared: [AtomicU64; compared::REASONS],
}
