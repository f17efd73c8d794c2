//! The runtime's one signal handler thread: it delivers completions to the observer, errors to the program,
//! and runs the callbacks that wait for signals.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use super::agents::Agent;
use super::clock;
use super::fault::Fault;
use super::machine::{HANDLER_THREAD, machine, start_thread};
use super::observe::{self, Interval, Recording, Token};
use super::queue::Queue;
use super::signal::{Condition, Signal};
use rpd_gfx::perf::Counts;

/// Interval at which the conditions of waiting callbacks are checked: a kernel may change a signal's memory without
/// waking anyone.
const RECHECK: Duration = Duration::from_millis(2);

/// Callback of a signal: value and data; returns whether it is to be called again.
pub(crate) type SignalCallback = unsafe extern "C" fn(i64, *mut core::ffi::c_void) -> bool;
/// A function to be called once on the handler's thread.
pub(crate) type PlainCallback = unsafe extern "C" fn(*mut core::ffi::c_void);

/// A task for the handler's thread; tasks run in order.
pub(crate) enum Work {
    /// A packet is done; its signal is still to be decremented.
    Retire {
        /// Queue that the packet was in.
        queue: &'static Queue,
        /// Completion signal of the dispatch.
        signal: Option<Signal>,
        /// The observer's token, or zero.
        token: Token,
        /// Counts of the dispatch, if it was counted.
        counts: Option<Box<Counts>>,
        /// Recording of the dispatch; `None` when none was requested.
        recording: Option<Box<Recording>>,
        /// Begin and end in device ticks.
        ticks: (u64, u64),
    },
    /// A copy is done; its signal is still to be decremented.
    Copied {
        /// Completion signal of the copy.
        signal: Option<Signal>,
        /// The observer's token.
        token: Token,
        /// Begin and end in device ticks.
        ticks: (u64, u64),
    },
    /// The device stopped on an error.
    Fault {
        /// Queue that the packet was in.
        queue: Option<&'static Queue>,
        /// GPU on which the fault occurred.
        agent: &'static Agent,
        /// Kind and address of the fault.
        fault: Fault,
    },
    /// A function of the program is to be called once.
    Call {
        /// The function to call.
        callback: PlainCallback,
        /// Argument of the function.
        data: usize,
    },
}

struct Waiting {
    signal: Signal,
    serial: u64,
    condition: Condition,
    reference: i64,
    callback: SignalCallback,
    data: usize,
}

/// The thread's work.
#[derive(Default)]
pub(crate) struct Handler {
    work: Mutex<VecDeque<Work>>,
    waiting: Mutex<Vec<Waiting>>,
    started: OnceStart,
    tid: AtomicU32,
}

struct OnceStart(Once);

impl Default for OnceStart {
    fn default() -> Self {
        Self(Once::new())
    }
}

impl Handler {
    /// Puts a task at the end of the handler's queue.
    pub(crate) fn submit(&self, work: Work) {
        lock(&self.work).push_back(work);
        self.wake();
    }

    /// Calls `callback` once the signal meets the condition, again as long as it returns `true`.
    pub(crate) fn when(
        &self,
        signal: Signal,
        condition: Condition,
        reference: i64,
        callback: SignalCallback,
        data: usize,
    ) {
        lock(&self.waiting).push(Waiting {
            signal,
            serial: signal.serial(),
            condition,
            reference,
            callback,
            data,
        });
        // Watched before the thread looks at the list, so that no change is missed.
        signal.watch(HANDLER_THREAD);
        self.wake();
    }

    /// Whether the caller runs on the handler's thread.
    pub(crate) fn is_current_thread(&self) -> bool {
        // SAFETY: gettid takes nothing and cannot fail.
        self.tid.load(Ordering::Relaxed) == unsafe { libc::gettid() as u32 }
    }

    fn wake(&self) {
        // A program without signal callbacks has no such thread.
        self.started.0.call_once(|| {
            start_thread("rpd-sim signals", || machine().handler.run());
        });
        machine().events[HANDLER_THREAD].notify();
    }

    fn run(&self) {
        // SAFETY: as above.
        let tid = unsafe { libc::gettid() as u32 };
        self.tid.store(tid, Ordering::Relaxed);
        let event = &machine().events[HANDLER_THREAD];
        loop {
            // Read before the search for work, so that work that is submitted meanwhile ends the wait at once.
            let seen = event.count();
            let mut busy = false;
            // One at a time: callbacks may submit more.
            while let Some(work) = { lock(&self.work).pop_front() } {
                perform(work);
                busy = true;
            }
            let (called, waiting) = self.run_callbacks();
            if !(busy || called) {
                event.wait(seen, waiting.then_some(RECHECK));
            }
        }
    }

    /// Runs the callbacks whose condition holds; whether there were any, and whether others still wait.
    fn run_callbacks(&self) -> (bool, bool) {
        // Taken out, because a callback may register another one, or destroy signals.
        let mut waiting = std::mem::take(&mut *lock(&self.waiting));
        if waiting.is_empty() {
            return (false, false);
        }
        let mut called = false;
        waiting.retain(|item| {
            // The memory of a destroyed signal may be another signal by now.
            if item.signal.serial() != item.serial {
                // The signal was destroyed.
                return false;
            }
            let value = item.signal.load();
            if !item.condition.holds(value, item.reference) {
                return true;
            }
            called = true;
            // SAFETY: the program registered this function with this data for this call.
            let again = unsafe { (item.callback)(value, item.data as *mut _) };
            if !again && item.signal.serial() == item.serial {
                item.signal.unwatch(HANDLER_THREAD);
            }
            again
        });
        // The remaining watches may share a signal with the one that was just removed.
        waiting
            .iter()
            .for_each(|item| item.signal.watch(HANDLER_THREAD));
        // Those that callbacks have registered meanwhile.
        let mut added = lock(&self.waiting);
        let late = std::mem::take(&mut *added);
        late.iter()
            .for_each(|item| item.signal.watch(HANDLER_THREAD));
        waiting.extend(late);
        *added = waiting;
        (called, !added.is_empty())
    }
}

fn perform(work: Work) {
    match work {
        Work::Retire {
            queue,
            signal,
            token,
            counts,
            recording,
            ticks,
        } => {
            if token != 0
                && let Some(observer) = observe::get()
            {
                if let Some(counts) = counts {
                    observer.dispatch_counted(token, &counts, interval(ticks));
                }
                if let Some(recording) = recording {
                    observer.dispatch_recorded(token, &recording, interval(ticks));
                }
                // Before the signal falls: tools hear of a completion no later than the program.
                observer.dispatch_completed(token, interval(ticks));
            }
            if let Some(signal) = signal {
                signal.decrement();
            }
            // From now on packets of this queue may signal without this thread.
            queue.deferred.fetch_sub(1, Ordering::AcqRel);
        }
        Work::Copied {
            signal,
            token,
            ticks,
        } => {
            if let Some(observer) = observe::get() {
                observer.copy_completed(token, interval(ticks));
            }
            if let Some(signal) = signal {
                signal.decrement();
            }
        }
        Work::Fault {
            queue,
            agent,
            fault,
        } => {
            fault.report(queue, agent);
            if let Some(queue) = queue {
                queue.deferred.fetch_sub(1, Ordering::AcqRel);
            }
        }
        // SAFETY: the program handed this function over with this data for this call.
        Work::Call { callback, data } => unsafe { callback(data as *mut _) },
    }
}

fn interval((start, end): (u64, u64)) -> Interval {
    Interval {
        start: clock::ticks_to_ns(start),
        end: clock::ticks_to_ns(end),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
