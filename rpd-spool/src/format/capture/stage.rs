//! Memory that the target and the front end share while data are staged.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// Why a capture ended before the program, in [`StageControl::ended`].
pub mod ended {
    /// The capture did not end before the program.
    pub const NOT: u32 = 0;
    /// Data or records could not be written: no space.
    pub const NO_SPACE: u32 = 1;
    /// The front end took no data for a long time.
    pub const NO_READER: u32 = 2;
    /// The limit that the user gave was reached.
    pub const LIMIT: u32 = 3;
}

/// Why host-visible memory is compared as a whole although written pages were requested: indices into
/// [`StageControl::compared`].
pub mod compared {
    /// The kernel has no asynchronous write protection.
    pub const OLD_KERNEL: usize = 0;
    /// The process may not use it.
    pub const FORBIDDEN: usize = 1;
    /// Others may write it by another way: shared memory, or a file.
    pub const SHARED: usize = 2;
    /// The kernel does not protect memory of this kind.
    pub const REFUSED: usize = 3;
    /// The program has put other memory in its place.
    pub const REPLACED: usize = 4;
    /// All its pages are always touched and few change.
    pub const TOUCHED: usize = 5;
    /// Number of reasons.
    pub const REASONS: usize = 6;
}

/// Shared by the target and the front end, in [`super::CONTROL_FILE`].
#[derive(Debug)]
#[repr(C)]
pub struct StageControl {
    /// Bytes of the staging file that were given out.
    pub reserved: AtomicU64,
    /// Bytes of them that the front end has taken; only the front end writes this one.
    pub consumed: AtomicU64,
    /// Bytes of them that were given up, because what was to lie there could not be written.
    pub abandoned: AtomicU64,
    /// Nanoseconds that calls waited for the front end, added up.
    pub stalled: AtomicU64,
    /// Number of calls that waited for room.
    pub stalls: AtomicU64,
    /// Bytes of all data, those in records included.
    pub data: AtomicU64,
    /// Number of calls that were captured.
    pub calls: AtomicU64,
    /// One of [`ended`].
    pub ended: AtomicU32,
    /// Not used; 0.
    pub unused: AtomicU32,
    /// Functions of the runtime's table after those that are known here.
    pub unknown_functions: AtomicU64,
    /// Pieces of host-visible memory whose written pages were requested.
    pub followed: AtomicU64,
    /// Pieces of them that were compared instead, by reason ([`compared`]).
    pub compared: [AtomicU64; compared::REASONS],
}
