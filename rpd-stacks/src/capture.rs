//! The entry, and the per-thread state.

use crate::facts::Sink;
use crate::options::Options;

/// Bits of [`Captured::flags`]. The upper 16 bits are the recorder's own.
pub mod flags {
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
    /// There is no stack because a table was full or the sink could not store a fact.
    pub const LOST: u32 = 16;
    /// The thread runs Python, but its Python frames could not be read.
    pub const PYTHON_UNREADABLE: u32 = 32;
}

/// A captured stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Captured {
    /// Node of the innermost frame, 0 if there is no stack.
    pub stack: u32,
    /// Bits of [`flags`].
    pub flags: u32,
}

/// Everything that the captures of a process share.
pub struct Stacks {
    options: Options,
}

/// What captures of one thread keep from one to the next. Not to be shared, nor to be used by a signal handler that
/// interrupted a capture of the same thread.
pub struct ThreadStacks {
    _session: u32,
}

impl Stacks {
    /// Reserves the tables.
    pub fn new(options: Options) -> Stacks {
        Stacks { options }
    }

    /// The options it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The stack of the calling thread, from the function that calls this one outwards. Never waits for another thread.
    #[inline(always)]
    pub fn capture(&self, thread: &mut ThreadStacks, sink: &mut dyn Sink) -> Captured {
        let _ = (thread, sink);
        Captured::default()
    }

    /// To be called in the child of a fork, before its first capture: ids start again, and everything is told again to
    /// the child's sinks as it is met again.
    pub fn forked(&self) {}
}

impl ThreadStacks {
    /// Reserves the buffers of a thread.
    pub fn new() -> ThreadStacks {
        ThreadStacks { _session: 0 }
    }
}

impl Default for ThreadStacks {
    fn default() -> Self {
        Self::new()
    }
}
