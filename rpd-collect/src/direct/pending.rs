//! Dispatches and copies that were submitted and are not recorded yet.
//!
//! A queue has one thread at a time that submits, because the runtime holds the queue's lock, and one thread that polls.
//! Work goes from the first to the second in a linked list, and the list's nodes come back on a stack, each with the signal
//! that it owns: nothing is locked, and memory is only allocated while more work is under way than ever before.

use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

use rpd_spool::format::{Copy, Dispatch};
use rpd_spool::writer::now;

use super::{borrowed, clock, hsa};
use crate::recording::{device_work, thread};

/// A piece of work, as it is recorded when it is complete.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    /// A dispatch, and the runtime's handle of its agent.
    Dispatch(u64, Dispatch),
    /// An asynchronous copy.
    Copy(Copy),
}

/// The signals of submitted work.
#[derive(Debug)]
pub(super) struct Signals {
    /// The signal that the work is submitted with.
    pub(super) work: u64,
    /// The completion signal of the program, if the collector submitted the work with another signal. The collector
    /// then changes it as the work would have done. 0 otherwise.
    pub(super) program: u64,
    /// Argument of [`Pending::withdraw`] and [`Pending::completed`].
    pub(super) node: *const Node,
}

/// A piece of work under way.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Node {
    next: AtomicPtr<Node>,
    /// The signal that this node owns.
    own: u64,
    /// The signal that shows when the work is complete: [`Node::own`], or one of the program's.
    watched: Cell<u64>,
    state: AtomicU8,
    /// Whether the program's signal is changed by a callback that has not run yet: 1, else 0.
    awaited: AtomicU8,
    /// A time not later than its submission, by our clock.
    submitted: Cell<u64>,
    /// The recording that the work belongs to ([`thread::recording`]).
    recording: Cell<u32>,
    work: UnsafeCell<Work>,
}

/// Times are not known yet.
const RUNNING: u8 = 0;
/// Times are in the record.
const COMPLETE: u8 = 1;
/// Times will never be known.
const LOST: u8 = 2;
/// The record is written; the node is released after those before it.
const DONE: u8 = 3;

impl Node {
    /// Stores that the work is not followed any more. Only with the lock of its entry held.
    pub(super) fn end(&self, complete: bool) {
        let state = if complete { COMPLETE } else { LOST };
        self.state.store(state, Ordering::Release);
    }

    /// Whether [`Node::end`] was called.
    pub(super) fn has_ended(&self) -> bool {
        self.state.load(Ordering::Acquire) != RUNNING
    }

    /// Reads start and end from a completed signal; false when they are not there.
    pub(super) fn read_times(&self, signal: u64) -> bool {
        // SAFETY: of the threads that share the node, this one alone deals with it now: the one that polls, or one that
        // holds the lock of its entry.
        let work = unsafe { &mut *self.work.get() };
        let times = match work {
            Work::Dispatch(agent, _) => hsa::dispatch_time(*agent, signal),
            Work::Copy(_) => hsa::copy_time(signal),
        };
        let Some((start, end)) = times else {
            return false;
        };
        let (start, end) = clock::bounded(clock::times(start, end), self.submitted.get(), now());
        match work {
            Work::Dispatch(_, record) => (record.start, record.end) = (start, end),
            Work::Copy(record) => (record.start, record.end) = (start, end),
        }
        true
    }

    /// Whether the work is complete or lost.
    fn is_over(&self) -> bool {
        if self.awaited.load(Ordering::Acquire) != 0 {
            return false;
        }
        let watched = self.watched.get();
        if watched != self.own {
            return borrowed::poll(watched, self);
        }
        if self.has_ended() {
            return true;
        }
        if hsa::signal_load(watched) >= 1 {
            return false;
        }
        let complete = self.read_times(watched);
        self.end(complete);
        true
    }

    /// Writes the record of complete work.
    fn record(&self) {
        // It was under way when that recording ended.
        if self.recording.get() != thread::recording() {
            return;
        }
        // SAFETY: only this thread uses a node that is settled.
        match unsafe { &*self.work.get() } {
            Work::Dispatch(_, record) => device_work::dispatch_complete(*record),
            Work::Copy(record) => device_work::copy_complete(*record),
        }
    }
}

/// The work of a queue. What each of the two threads changes is in cache lines of its own: a launch that waits for a line
/// that the other thread has just changed costs twice as much.
#[derive(Debug)]
pub(super) struct Pending {
    submitter: Submitter,
    poller: Poller,
    /// Nodes that come back.
    returned: AtomicPtr<Node>,
}

/// State that the submitting thread changes.
#[derive(Debug)]
#[repr(align(128))]
struct Submitter {
    /// The node that was submitted last.
    last: Cell<*mut Node>,
    /// Nodes that can be used.
    free: Cell<*mut Node>,
    /// Pieces of work submitted.
    submitted: AtomicU64,
}

/// State that the polling thread changes.
#[derive(Debug)]
#[repr(align(128))]
struct Poller {
    /// The node before the first that is under way.
    first: Cell<*mut Node>,
    /// Pieces of work that are over.
    over: AtomicU64,
}

// SAFETY: cells are used by one thread at a time, see the module's description.
unsafe impl Sync for Pending {}
// SAFETY: as above.
unsafe impl Send for Pending {}

/// Number of nodes that are looked at beyond those that have not ended: work on a queue may overtake other work.
const LOOK_AHEAD: usize = 256;

/// Pieces of work recorded in one look at a queue: others may have ended work, too.
const AT_ONCE: usize = 1024;

fn new_node() -> *mut Node {
    Box::into_raw(Box::new(Node {
        next: AtomicPtr::new(ptr::null_mut()),
        own: hsa::signal_create().unwrap_or(0),
        watched: Cell::new(0),
        state: AtomicU8::new(RUNNING),
        awaited: AtomicU8::new(0),
        submitted: Cell::new(0),
        recording: Cell::new(0),
        work: UnsafeCell::new(Work::Copy(zerocopy::FromZeros::new_zeroed())),
    }))
}

/// Makes the processor fetch the node that the next piece of work will use: the thread that polls was the last to
/// change it.
#[inline]
fn prefetch(node: *const Node) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for line in 0..size_of::<Node>() / align_of::<Node>() {
        let address = node.wrapping_byte_add(line * align_of::<Node>());
        // SAFETY: every processor of this architecture has the instruction, which reads nothing and takes any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
}

impl Pending {
    pub(super) fn new() -> Pending {
        let node = new_node();
        Pending {
            submitter: Submitter {
                last: Cell::new(node),
                free: Cell::new(ptr::null_mut()),
                submitted: AtomicU64::new(0),
            },
            poller: Poller {
                first: Cell::new(node),
                over: AtomicU64::new(0),
            },
            returned: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Prepares for work that is about to be submitted with the program's `signal`, if that is not 0. `None` when the
    /// work cannot be followed. `time` is not later than its submission, by the collector's clock.
    ///
    /// Only for the thread that submits.
    #[inline]
    pub(super) fn submit(&self, signal: u64, work: Work, time: u64) -> Option<Signals> {
        self.submit_with(signal, work, time, false)
    }

    /// Prepares for work that keeps the program's `signal`, if that is not 0. What else is given and returned is that of
    /// [`Pending::submit`].
    #[inline]
    pub(super) fn submit_unchanged(&self, signal: u64, work: Work, time: u64) -> Option<Signals> {
        self.submit_with(signal, work, time, true)
    }

    #[inline]
    fn submit_with(&self, signal: u64, work: Work, time: u64, keeps: bool) -> Option<Signals> {
        let Submitter {
            last,
            free,
            submitted,
        } = &self.submitter;
        let mut node = free.get();
        if node.is_null() {
            node = self.returned.swap(ptr::null_mut(), Ordering::Acquire);
        }
        if node.is_null() {
            node = new_node();
        }
        // SAFETY: a node that is free or new is reached by this thread alone.
        let fields = unsafe { &*node };
        free.set(fields.next.load(Ordering::Relaxed));
        if fields.own == 0 {
            fields.next.store(free.get(), Ordering::Relaxed);
            free.set(node);
            return None;
        }
        fields.next.store(ptr::null_mut(), Ordering::Relaxed);
        fields.state.store(RUNNING, Ordering::Relaxed);
        fields.awaited.store(0, Ordering::Relaxed);
        fields.submitted.set(time);
        fields.recording.set(thread::recording());
        // SAFETY: as above.
        unsafe { fields.work.get().write(work) };
        fields.watched.set(fields.own);
        let chosen = match signal {
            0 => fields.own,
            theirs => {
                // Before it is borrowed: from then on other threads may end the node.
                fields.watched.set(theirs);
                if borrowed::borrow(theirs, fields) {
                    theirs
                } else if keeps {
                    fields.next.store(free.get(), Ordering::Relaxed);
                    free.set(node);
                    return None;
                } else {
                    fields.watched.set(fields.own);
                    fields.own
                }
            }
        };
        // Not one atomic step, which would wait for the stores above: no other thread adds to it.
        submitted.store(submitted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // SAFETY: the last node stays where it is until it has a successor.
        unsafe { (*last.get()).next.store(node, Ordering::Release) };
        last.set(node);
        prefetch(free.get());
        Some(Signals {
            work: chosen,
            program: if chosen == signal { 0 } else { signal },
            node,
        })
    }

    /// Makes the work count as over only when [`Pending::completed`] was called, too. To be called before the work is
    /// given to the device.
    pub(super) fn await_callback(signals: &Signals) {
        // SAFETY: the node is not released before it is over.
        unsafe { &*signals.node }
            .awaited
            .store(1, Ordering::Release);
    }

    /// Stores that the callback of [`Pending::await_callback`] has run.
    pub(super) fn completed(node: *const Node) {
        // SAFETY: as above.
        unsafe { &*node }.awaited.store(0, Ordering::Release);
    }

    /// Stops following work that the runtime did not take.
    pub(super) fn withdraw(signals: &Signals) {
        // SAFETY: as above.
        let node = unsafe { &*signals.node };
        node.awaited.store(0, Ordering::Release);
        if signals.program == 0 && signals.work != node.own {
            borrowed::before_destroy(signals.work);
        }
        node.end(false);
    }

    /// Whether all work is over.
    pub(super) fn is_empty(&self) -> bool {
        self.poller.over.load(Ordering::Acquire) == self.submitter.submitted.load(Ordering::Acquire)
    }

    /// Records work that is complete, up to [`AT_ONCE`] pieces. Returns the number of pieces that were over.
    ///
    /// Only for the thread that polls.
    pub(super) fn poll(&self) -> usize {
        let mut over = 0;
        let mut running = 0;
        let mut before = self.poller.first.get();
        while running < LOOK_AHEAD && over < AT_ONCE {
            // SAFETY: nodes from the first one on are not released.
            let node = unsafe { (*before).next.load(Ordering::Acquire) };
            // SAFETY: null or such a node.
            let Some(fields) = (unsafe { node.as_ref() }) else {
                break;
            };
            if fields.state.load(Ordering::Relaxed) != DONE {
                if fields.is_over() {
                    if fields.state.load(Ordering::Acquire) == COMPLETE {
                        fields.record();
                    }
                    fields.state.store(DONE, Ordering::Relaxed);
                    over += 1;
                } else {
                    running += 1;
                }
            }
            if running == 0 {
                self.release(before);
                self.poller.first.set(node);
            }
            before = node;
        }
        self.poller.over.fetch_add(over as u64, Ordering::Release);
        over
    }

    /// Gives back the node before the first.
    fn release(&self, node: *mut Node) {
        // SAFETY: the node is not in the list any more.
        let fields = unsafe { &*node };
        if fields.own != 0 && hsa::signal_load(fields.own) != 1 {
            hsa::signal_reset(fields.own);
        }
        let mut top = self.returned.load(Ordering::Relaxed);
        loop {
            fields.next.store(top, Ordering::Relaxed);
            match self.returned.compare_exchange_weak(
                top,
                node,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(other) => top = other,
            }
        }
    }

    /// Forgets all work, in a forked child: it is the parent's. Nodes and signals are left alone.
    pub(super) fn forget(&self) {
        self.poller.first.set(self.submitter.last.get());
        let submitted = self.submitter.submitted.load(Ordering::Relaxed);
        self.poller.over.store(submitted, Ordering::Relaxed);
    }
}
