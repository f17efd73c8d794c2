//! The calls that a thread is in, and correlation ids, for providers that number calls themselves.
//!
//! No lock and no allocation: ids come from blocks that a thread takes from a global counter, the calls that a thread is in
//! are linked on its own stack.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rpd_spool::writer::OpenRecord;
use zerocopy::FromZeros;

use super::call::Call;
use super::thread;

/// Number of correlation ids that a thread reserves at a time.
const BLOCK: u64 = 64;
static NEXT_BLOCK: AtomicU64 = AtomicU64::new(1);

/// A call, or a range, that its thread is in. It must not move from [`Frame::enter`] until it is left.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Correlation id of the call; 0 before the frame is entered.
    pub(crate) correlation: u64,
    /// Correlation id of the frame around the call; 0 for none.
    pub(crate) ancestor: u64,
    outer: *const Frame,
    /// Record of the call, if it was stored.
    pub(crate) record: OpenRecord,
    /// Action on a HIP stream when the frame is left.
    pub(crate) stream: StreamAction,
}

/// Action on a HIP stream at the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamAction {
    /// The stream of the thread does not change.
    Nothing,
    /// The thread is not in a call on the stream any more.
    Pop,
    /// The stream may have been made or destroyed.
    LookUp,
}

/// Calls that a thread is in.
#[derive(FromZeros)]
pub(super) struct Frames {
    innermost: Cell<*const Frame>,
    /// Ids of this thread's block that are left.
    next: Cell<u64>,
    end: Cell<u64>,
}

impl Frames {
    #[inline]
    fn id(&self) -> u64 {
        let id = self.next.get();
        if id == self.end.get() {
            return self.block();
        }
        self.next.set(id + 1);
        id
    }

    /// Whether the thread is in any call.
    pub(super) fn any(&self) -> bool {
        !self.innermost.get().is_null()
    }

    #[cold]
    fn block(&self) -> u64 {
        let first = NEXT_BLOCK.fetch_add(BLOCK, Ordering::Relaxed);
        self.next.set(first + 1);
        self.end.set(first + BLOCK);
        first
    }
}

/// The correlation id and ancestor of work that the calling thread starts now: those of the call that it is in, or a new id.
#[inline]
pub(crate) fn of_work() -> (u64, u64) {
    let frames = thread::frames();
    // SAFETY: a frame is alive as long as it is linked.
    match unsafe { frames.innermost.get().as_ref() } {
        Some(frame) => (frame.correlation, frame.ancestor),
        None => (frames.id(), 0),
    }
}

/// Correlation id of the call that the calling thread is in; 0 for none.
#[inline]
pub(crate) fn correlation() -> u64 {
    // SAFETY: a frame is alive as long as it is linked.
    let innermost = unsafe { thread::frames().innermost.get().as_ref() };
    innermost.map_or(0, |frame| frame.correlation)
}

impl Frame {
    /// A frame that no thread is in.
    #[inline(always)]
    pub(crate) const fn unused() -> Frame {
        Frame {
            correlation: 0,
            ancestor: 0,
            outer: ptr::null(),
            record: OpenRecord(0),
            stream: StreamAction::Nothing,
        }
    }

    /// The calling thread enters it, with a new id. The ids are returned as values, so that they need not be read back from the
    /// frame, which waits for its stores.
    #[inline]
    pub(crate) fn enter(&mut self) -> EnteredFrame {
        let frames = thread::frames();
        let outer = frames.innermost.get();
        // SAFETY: a frame is alive as long as it is linked.
        let ancestor = unsafe { outer.as_ref() }.map_or(0, |outer| outer.correlation);
        let correlation = frames.id();
        self.outer = outer;
        self.ancestor = ancestor;
        self.correlation = correlation;
        frames.innermost.set(self);
        EnteredFrame {
            correlation,
            ancestor,
        }
    }

    /// The calling thread leaves it, and with it the frames that were entered since and are still open. Nothing if it
    /// has been left with another frame, or was entered by another thread.
    #[inline]
    pub(crate) fn leave(&self) {
        let innermost = &thread::frames().innermost;
        if ptr::eq(innermost.get(), self) {
            innermost.set(self.outer);
        } else {
            self.leave_with_others(innermost);
        }
    }

    #[cold]
    fn leave_with_others(&self, innermost: &Cell<*const Frame>) {
        let mut next = innermost.get();
        // SAFETY: a frame is alive as long as it is linked.
        while let Some(frame) = unsafe { next.as_ref() } {
            if ptr::eq(frame, self) {
                innermost.set(self.outer);
                return;
            }
            next = frame.outer;
        }
    }
}

/// A frame that was entered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnteredFrame {
    correlation: u64,
    ancestor: u64,
}

impl EnteredFrame {
    /// A call of it in the words of records.
    #[inline]
    pub(crate) fn call(self, kind: u16, operation: usize, has_stack: bool) -> Call {
        Call {
            kind,
            operation: operation as u32,
            correlation: self.correlation,
            ancestor: self.ancestor,
            has_stack,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_has_the_enclosing_frame_as_ancestor() {
        let mut outer = Frame::unused();
        outer.enter();
        let mut inner = Frame::unused();
        inner.enter();
        assert_eq!((outer.ancestor, inner.ancestor), (0, outer.correlation));
        assert_eq!(of_work(), (inner.correlation, outer.correlation));
        inner.leave();
        assert_eq!(of_work(), (outer.correlation, 0));
        // A range that is left open in a call ends with it.
        let mut range = Box::new(Frame::unused());
        range.enter();
        outer.leave();
        range.leave();
        let (first, second) = (of_work(), of_work());
        assert_eq!((first.1, second.1), (0, 0));
        assert_ne!(first.0, second.0);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test")]
    fn correlation_ids_of_threads_differ() {
        let ids = || (0..3 * BLOCK).map(|_| of_work().0).collect::<Vec<u64>>();
        let other = std::thread::spawn(ids);
        let mut all = ids();
        all.extend(other.join().expect("the thread returns"));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(all[0] > 0);
    }
}
