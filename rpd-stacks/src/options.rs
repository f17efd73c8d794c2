//! Options of captures.

/// Frames of which a stack consists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Native frames alone.
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
    /// [`LocationKind::Gap`](crate::LocationKind::Gap) between them. Frames that reports do not show do not count
    /// ([`FrameClass`]). The walk itself is not bounded by it. 0 keeps all.
    pub depth: u32,
}

/// Class of a frame, by which reports show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameClass {
    /// Any other frame, which is shown.
    Other = 0,
    /// A frame of Python, which is shown.
    Python = 1,
    /// The innermost frames of a runtime are shown as one frame, the call.
    Runtime = 2,
    /// Frames of the profiler are not shown; the innermost are part of the call.
    Profiler = 3,
    /// Frames of the interpreter are not shown in a stack with frames of Python.
    Interpreter = 4,
}

impl FrameClass {
    /// The class with this number.
    pub(crate) fn from_number(number: u8) -> FrameClass {
        use FrameClass::{Interpreter, Other, Profiler, Python, Runtime};
        [Python, Runtime, Profiler, Interpreter]
            .into_iter()
            .find(|class| *class as u8 == number)
            .unwrap_or(Other)
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::Merged,
            depth: 512,
        }
    }
}
