//! Bits of [`Captured::flags`](crate::Captured::flags). The upper 16 bits belong to the recorder of the stacks.

/// The walk ended before the outermost frame; the root of the stack is a
/// [`LocationKind::Truncated`](crate::LocationKind::Truncated).
pub const TRUNCATED: u32 = 1;
/// The thread ran on a stack that is not its own (signal stack, coroutine).
pub const FOREIGN_STACK: u32 = 2;
/// Frames were left out because of [`Options::depth`](crate::Options::depth).
pub const GAP: u32 = 4;
/// Python frames could not be placed among the native frames; they stand further out than a
/// [`LocationKind::Unplaced`](crate::LocationKind::Unplaced).
pub const UNPLACED_PYTHON: u32 = 8;
/// The stack is missing because a table was full or the sink could not store a fact.
pub const LOST: u32 = 16;
/// Frames were reached by following the frame pointer through code without unwind information; some may be missing.
pub const FRAME_POINTERS: u32 = 64;
/// The thread runs Python, but its Python frames could not be read.
pub const PYTHON_UNREADABLE: u32 = 32;
