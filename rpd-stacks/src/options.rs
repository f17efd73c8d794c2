//! Options of captures.

/// Which frames a stack consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Native frames only.
    Native,
    /// Python frames only; a thread that runs no Python has no stack.
    Python,
    /// Native frames, with the Python frames in the places of the interpreter's frames that ran them.
    Merged,
}

/// Options of all captures of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Frames that stacks have.
    pub mode: Mode,
    /// Number of frames of a stack that are kept: the innermost three quarters and the outermost quarter, with one
    /// [`LocationKind::Gap`](crate::LocationKind::Gap) between them. The walk itself is not bounded by it. 0 keeps all.
    pub depth: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::Merged,
            depth: 512,
        }
    }
}
