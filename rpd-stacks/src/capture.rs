//! The entry, and the per-thread state.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::facts::{LocationKind, Sink};
use crate::flags;
use crate::interner::NoNumber;
use crate::merge::Places;
use crate::native::counts::Counts;
use crate::native::frames::Frame;
use crate::native::registers::Start;
use crate::native::walk::Walker;
use crate::native::{Native, SharedWalk};
use crate::options::{FrameClass, Mode, Options};
use crate::path::Path;
use crate::python::{Interpreter, Located, Outcome, PlacingRule, Python, ThreadPython};
use crate::tree::Tree;

/// A captured stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Captured {
    /// Node of the innermost frame, 0 if there is no stack.
    pub stack: u32,
    /// Properties of the stack: bits of [`flags`].
    pub flags: u32,
}

/// Tables and options that all captures of a process share.
pub struct Stacks {
    options: Options,
    native: Native,
    python: Python,
    tree: Tree,
    /// Counts the forks that led to this process, from 1.
    session: AtomicU32,
    usable: bool,
}

/// State of one thread between captures. Not to be shared, nor to be used by a signal handler that
/// interrupted a capture of the same thread.
pub struct ThreadStacks {
    session: u32,
    walker: Walker,
    python: ThreadPython,
    places: Places,
    path: Path,
    /// Whether the path starts with a truncation marker.
    marked: bool,
    /// Result of the last capture of a merged stack.
    merged: Merged,
    usable: bool,
}

/// A merged stack, and the facts from which it follows beside the native and the Python frames.
#[derive(Clone, Copy, Default)]
struct Merged {
    captured: Captured,
    walked: u32,
    rule: PlacingRule,
    /// Number of native frames.
    native: usize,
}

impl Stacks {
    /// Reserves the tables: about 150 MiB of addresses, of which only what is used becomes memory.
    pub fn new(options: Options) -> Stacks {
        let (native, python, tree) = (Native::reserve(), Python::reserve(), Tree::reserve());
        let usable = native.usable() && python.usable() && tree.usable();
        Stacks {
            options,
            native,
            python,
            tree,
            session: AtomicU32::new(1),
            usable,
        }
    }

    /// Sets the classes of frames by which frames that reports do not show are left out of [`Options::depth`].
    /// `class_of` gives the class of the frames of a module by its path; it must not allocate.
    pub fn with_classes(mut self, class_of: fn(&[u8]) -> FrameClass) -> Stacks {
        self.native.modules.class_of = class_of;
        self
    }

    /// The node of the innermost entry of a path, and the flags that finding it gives.
    #[inline]
    fn finish(&self, path: &mut Path, sink: &mut dyn Sink) -> Result<(u32, u32), NoNumber> {
        let class_of = |location| {
            let (kind, owner) = self.tree.place(location);
            let is = |one: LocationKind| kind == one as u8;
            if is(LocationKind::Native) || is(LocationKind::Guessed) {
                self.native.modules.class(owner)
            } else if is(LocationKind::Python) {
                FrameClass::Python
            } else if is(LocationKind::Api) {
                FrameClass::Runtime
            } else {
                FrameClass::Other
            }
        };
        path.finish(&self.tree, self.options.depth as usize, class_of, sink)
    }

    /// The options it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The stack of the calling thread, from the function that calls this one outwards. Never waits for another thread.
    #[inline(always)]
    pub fn capture(&self, thread: &mut ThreadStacks, sink: &mut dyn Sink) -> Captured {
        self.capture_from(Start::from_caller(), thread, sink)
    }

    fn capture_from(
        &self,
        start: Start,
        thread: &mut ThreadStacks,
        sink: &mut dyn Sink,
    ) -> Captured {
        let session = self.session.load(Ordering::Relaxed);
        // After a fork ids start again: all that the thread knows is of the parent.
        if thread.session != session {
            thread.session = session;
            thread.walker.clear();
            thread.path.clear();
            thread.python.clear();
            thread.merged = Merged::default();
        }
        // Memory may have been refused when the process started; a stack that is absent is better than a program that
        // ends.
        if !self.usable || !thread.usable {
            thread.walker.counts.lost += 1;
            return Captured {
                stack: 0,
                flags: flags::LOST,
            };
        }
        let captured = match self.options.mode {
            Mode::Native => self.native(start, session, thread, sink),
            Mode::Merged | Mode::Python => self.python(start, session, thread, sink),
        };
        captured.unwrap_or_else(|_| {
            // The path is half filled, and the next capture must not take it for the last stack.
            thread.path.clear();
            thread.merged = Merged::default();
            thread.walker.counts.lost += 1;
            Captured {
                stack: 0,
                flags: flags::LOST,
            }
        })
    }

    fn native(
        &self,
        start: Start,
        session: u32,
        thread: &mut ThreadStacks,
        sink: &mut dyn Sink,
    ) -> Result<Captured, NoNumber> {
        let shared = SharedWalk {
            native: &self.native,
            tree: &self.tree,
            session,
            observer: None,
        };
        let walked = thread.walker.walk(&shared, start, sink);
        // A frame without a location would be a stack with a hole.
        if let Some(reason) = walked.lost {
            thread.path.clear();
            return Err(reason);
        }
        let path = &mut thread.path;
        let marker = usize::from(walked.flags & flags::TRUNCATED != 0);
        // A marker shifts all entries by one, so that kept entries are only the same if both stacks have one.
        let keep = if (marker == 1) == thread.marked {
            walked.unchanged + marker
        } else {
            0
        };
        thread.marked = marker == 1;
        let kept = path.begin(keep);
        if kept < marker {
            path.push(self.tree.location(LocationKind::Truncated, 0, 0, sink)?);
        }
        let further_in = &thread.walker.frames()[kept.saturating_sub(marker)..];
        path.extend(further_in.iter().map(|frame| frame.location));
        let (stack, more) = self.finish(path, sink)?;
        Ok(Captured {
            stack,
            flags: walked.flags | more,
        })
    }

    /// Stacks with Python frames. The native stack is walked even if only Python frames are requested: that is how the
    /// interpreter is found, however and whenever it was loaded.
    fn python(
        &self,
        start: Start,
        session: u32,
        thread: &mut ThreadStacks,
        sink: &mut dyn Sink,
    ) -> Result<Captured, NoNumber> {
        let shared = SharedWalk {
            native: &self.native,
            tree: &self.tree,
            session,
            observer: Some(&self.python),
        };
        let walked = thread.walker.walk(&shared, start, sink);
        if let Some(reason) = walked.lost {
            thread.path.clear();
            return Err(reason);
        }
        let mut found = walked.flags;
        let ThreadStacks {
            walker,
            python,
            places,
            path,
            merged,
            ..
        } = thread;
        // The native walk goes first: it meets the interpreter, which is then looked at.
        let stack = addresses(walker.frames(), walked.flags);
        let is_loaded = |module| self.native.modules.is_live(module);
        match python.read(&self.python, stack, is_loaded) {
            Outcome::Unreadable => found |= flags::PYTHON_UNREADABLE,
            Outcome::None | Outcome::Frames => {}
        }
        let located = python.locate(&self.python, &self.tree, sink)?;
        if located == Located::Unreadable {
            found |= flags::PYTHON_UNREADABLE;
        }
        let placing = self.python.placing();
        let native = walker.frames();
        let unchanged = walked.unchanged;
        // The same frames placed by the same rule are the same stack.
        let is_as_before = located == Located::Unchanged
            && (merged.walked, merged.rule) == (walked.flags, placing.rule)
            && merged.captured.stack != 0;
        if is_as_before && unchanged == native.len() && unchanged == merged.native {
            return Ok(merged.captured);
        }
        // The common case: the program is in the same Python frames, and only its native frames further in differ.
        let is_extended = is_as_before
            && self.options.mode == Mode::Merged
            && places.stay(native, unchanged, placing);
        if is_extended {
            path.begin_without(merged.native - unchanged);
            path.extend(native[unchanged..].iter().map(|frame| frame.location));
        } else if self.options.mode == Mode::Python {
            // Flags of the native walk say nothing of a stack without native frames.
            found &= flags::PYTHON_UNREADABLE;
            if python.frames().is_empty() {
                path.clear();
                *merged = Merged::default();
                return Ok(Captured {
                    stack: 0,
                    flags: found,
                });
            }
            path.begin(0);
            path.extend(python.locations(0..python.frames().len()));
        } else {
            // Everything is placed anew: Python frames that differ may stand anywhere among the native ones.
            path.begin(0);
            if walked.flags & flags::TRUNCATED != 0 {
                path.push(self.tree.location(LocationKind::Truncated, 0, 0, sink)?);
            }
            found |= places.merge(native, python, placing, path, &self.tree, sink)?;
        }
        let (stack, more) = self.finish(path, sink)?;
        *merged = Merged {
            captured: Captured {
                stack,
                flags: found | more,
            },
            walked: walked.flags,
            rule: placing.rule,
            native: native.len(),
        };
        Ok(merged.captured)
    }

    /// State of the process's Python interpreter.
    pub fn interpreter(&self) -> Interpreter {
        self.python.interpreter()
    }

    /// Starts over in the child of a fork: ids start again, and facts are reported again to the child's sinks when
    /// stacks refer to them. To be called before the child's first capture.
    pub fn forked(&self) {
        self.tree.clear();
        self.python.clear();
        self.native.rules.clear_locations();
        self.native.registry.clear();
        self.session.fetch_add(1, Ordering::Relaxed);
    }

    /// Modules, locations and nodes seen so far.
    pub fn sizes(&self) -> (u32, u32, u32) {
        let (locations, nodes) = self.tree.sizes();
        (self.native.modules.len(), locations, nodes)
    }
}

/// Addresses of a native stack that was walked. How far a truncated one reaches is not known.
fn addresses(native: &[Frame], flags: u32) -> Range<usize> {
    let [outermost, .., innermost] = native else {
        return 0..usize::MAX;
    };
    let end = if flags & flags::TRUNCATED != 0 {
        u64::MAX
    } else {
        outermost.sp
    };
    innermost.sp as usize..end as usize
}

impl ThreadStacks {
    /// Reserves the buffers of a thread: about 14 MiB of addresses, of which only what is used becomes memory.
    pub fn new() -> ThreadStacks {
        let (walker, path) = (Walker::reserve(), Path::reserve());
        let (python, places) = (ThreadPython::reserve(), Places::reserve());
        let usable = walker.usable() && path.usable() && python.usable() && places.usable();
        ThreadStacks {
            session: 0,
            walker,
            python,
            places,
            path,
            marked: false,
            merged: Merged::default(),
            usable,
        }
    }

    /// Counts of the thread's captures and walks.
    pub fn counts(&self) -> Counts {
        self.walker.counts
    }
}

impl Default for ThreadStacks {
    fn default() -> Self {
        Self::new()
    }
}
