//! Calls that go through a wrapper: correlation ids, ancestors, the call's record, the HIP stream that it concerns.
//!
//! No lock and no allocation: ids come from blocks that a thread takes from a global counter, the calls that a thread is in
//! are linked on its own stack.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use rpd_spool::writer::{OpenRecord, now};

use super::streams::{self, Stream};
use crate::recording::arguments::{self, Layout};
use crate::recording::call::{self, Call};
use crate::recording::guard::Service;
use crate::recording::stacks::Selection;
use crate::recording::thread::{self, Thread};

static SERVICE: Service = Service::new("API calls");

/// Whether calls are recorded now; paused otherwise.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether traces are on.
#[inline]
pub(super) fn are_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Switches traces on or off.
pub(super) fn switch(on: bool) {
    ON.store(on, Ordering::SeqCst);
}

/// Ids that a thread takes at a time.
const BLOCK: u64 = 64;
static NEXT_BLOCK: AtomicU64 = AtomicU64::new(1);

/// A call, or a range, that its thread is in. It must not move from [`Frame::enter`] until it is left.
#[derive(Debug)]
pub(super) struct Frame {
    /// Its correlation id; 0 before it is entered.
    pub(super) correlation: u64,
    /// The id of the frame around it; 0 for none.
    pub(super) ancestor: u64,
    outer: *const Frame,
    record: OpenRecord,
    /// A HIP stream was entered with it.
    has_stream: bool,
}

/// Calls that a thread is in.
struct State {
    innermost: Cell<*const Frame>,
    /// Ids of this thread's block that are left.
    next: Cell<u64>,
    end: Cell<u64>,
}

thread_local! {
    // Without destructor: it can be used at any time of a thread's life.
    static STATE: State = const {
        State {
            innermost: Cell::new(ptr::null()),
            next: Cell::new(0),
            end: Cell::new(0),
        }
    };
}

impl State {
    #[inline]
    fn id(&self) -> u64 {
        let id = self.next.get();
        if id == self.end.get() {
            return self.block();
        }
        self.next.set(id + 1);
        id
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
pub(super) fn of_work() -> (u64, u64) {
    STATE.with(|state| {
        // SAFETY: a frame is alive as long as it is linked.
        match unsafe { state.innermost.get().as_ref() } {
            Some(frame) => (frame.correlation, frame.ancestor),
            None => (state.id(), 0),
        }
    })
}

impl Frame {
    /// A frame that no thread is in.
    #[inline(always)]
    pub(super) const fn unused() -> Frame {
        Frame {
            correlation: 0,
            ancestor: 0,
            outer: ptr::null(),
            record: OpenRecord(0),
            has_stream: false,
        }
    }

    /// The calling thread enters it, with a new id.
    #[inline]
    pub(super) fn enter(&mut self) {
        STATE.with(|state| {
            self.outer = state.innermost.get();
            // SAFETY: a frame is alive as long as it is linked.
            self.ancestor = unsafe { self.outer.as_ref() }.map_or(0, |outer| outer.correlation);
            self.correlation = state.id();
            state.innermost.set(self);
        });
    }

    /// The calling thread leaves it, and with it the frames that were entered since and are still open. Nothing if it
    /// has been left with another frame, or was entered by another thread.
    #[inline]
    pub(super) fn leave(&self) {
        STATE.with(|state| {
            let mut innermost = state.innermost.get();
            if ptr::eq(innermost, self) {
                state.innermost.set(self.outer);
                return;
            }
            // SAFETY: a frame is alive as long as it is linked.
            while let Some(frame) = unsafe { innermost.as_ref() } {
                if ptr::eq(frame, self) {
                    state.innermost.set(self.outer);
                    return;
                }
                innermost = frame.outer;
            }
        });
    }

    /// A call of it in the words of records.
    pub(super) fn call(&self, kind: u16, operation: usize, has_stack: bool) -> Call {
        Call {
            kind,
            operation: operation as u32,
            correlation: self.correlation,
            ancestor: self.ancestor,
            has_stack,
        }
    }
}

/// Actions at the calls of an operation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Operation {
    /// They are recorded.
    pub(super) recorded: bool,
    /// With their arguments.
    pub(super) arguments: Option<Layout>,
    /// Effect on a HIP stream, where streams are followed.
    pub(super) stream: Option<Stream>,
}

impl Operation {
    /// Whether anything is done.
    pub(super) fn is_wrapped(&self) -> bool {
        self.recorded || self.stream.is_some()
    }
}

/// The calls of a table.
#[derive(Debug)]
pub(super) struct Api {
    /// Number of the kind in records.
    pub(super) kind: u16,
    /// By slot.
    pub(super) operations: Box<[Operation]>,
    /// Operations whose stacks are recorded.
    pub(super) stacks: Option<Selection>,
}

/// Actions of a table's wrappers; null before they are configured.
#[derive(Debug)]
pub(super) struct ApiSlot(AtomicPtr<Api>);

impl ApiSlot {
    pub(super) const fn new() -> ApiSlot {
        ApiSlot(AtomicPtr::new(ptr::null_mut()))
    }

    /// Sets what to do, forever.
    pub(super) fn set(&self, api: Api) {
        self.0.store(Box::leak(Box::new(api)), Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn get(&self) -> Option<&'static Api> {
        // SAFETY: null or a leaked box.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }
}

/// A call begins; the wrapper's `frame` is unused and stays where it is until [`exit`] or [`Unwinding`].
///
/// # Safety
///
/// `arguments` is the argument struct of operation `slot`, as the caller passed it.
pub(super) unsafe fn enter(frame: &mut Frame, api: &ApiSlot, slot: usize, arguments: *const u8) {
    SERVICE.on_event(|| {
        let Some(api) = api.get() else { return };
        let Some(operation) = api.operations.get(slot) else {
            return;
        };
        if let Some(Stream::Set(offset)) = operation.stream {
            // SAFETY: a stream handle is at this offset of the operation's arguments.
            let stream = unsafe { arguments.add(offset.into()).cast::<u64>().read() };
            frame.has_stream = true;
            let id = streams::id(stream);
            thread::with(|thread| thread.push_stream(id));
        }
        if !operation.recorded || !are_on() {
            return;
        }
        frame.enter();
        let stacks = api.stacks.as_ref();
        let has_stack = stacks.is_some_and(|selection| selection.takes(slot as i32));
        let call = frame.call(api.kind, slot, has_stack);
        frame.record = match &operation.arguments {
            None => call.begin(0, 0, |_| {}),
            // SAFETY: by this function's contract; the layout is that of the operation.
            Some(layout) => unsafe {
                let size = usize::from(layout.size);
                let bytes = std::slice::from_raw_parts(arguments, size);
                arguments::begin(&call, layout, bytes)
            },
        };
    });
}

/// The call of `frame` returned `word`, the first eight bytes of its result.
///
/// # Safety
///
/// As for [`enter`], of the same call.
#[inline]
pub(super) unsafe fn exit(
    frame: &Frame,
    api: &ApiSlot,
    slot: usize,
    arguments: *const u8,
    word: u64,
) {
    if frame.correlation != 0 {
        let returned = now();
        SERVICE.run(|| call::end(frame.record, word, returned));
        frame.leave();
    }
    if frame.has_stream {
        SERVICE.run(|| thread::with(Thread::pop_stream));
        return;
    }
    let operation = api.get().and_then(|api| api.operations.get(slot));
    if let Some(stream) = operation.and_then(|operation| operation.stream) {
        // SAFETY: by this function's contract.
        SERVICE.on_event(|| unsafe { streams::after_call(stream, arguments, word) });
    }
}

/// Leaves the frame of a call that does not return, because an exception of the program passes through its wrapper.
pub(super) struct Unwinding(pub(super) *const Frame);

impl Drop for Unwinding {
    fn drop(&mut self) {
        // SAFETY: the wrapper's frame, which outlives this guard.
        let frame = unsafe { &*self.0 };
        if frame.correlation != 0 {
            frame.leave();
        }
        if frame.has_stream {
            SERVICE.run(|| thread::with(Thread::pop_stream));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_are_the_enclosing_frames() {
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
    fn ids_of_threads_differ() {
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
