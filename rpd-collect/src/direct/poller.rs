//! The thread that reads the times of completed work.
//!
//! While anything is under way it looks every [`INTERVAL`]; otherwise it sleeps, and a thread that submits wakes it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::dispatch::Queue;
use super::{copies, dispatch};
use crate::recording::background::{InChild, spawn};
use crate::recording::fork::ForkHook;
use crate::recording::futex;
use crate::recording::guard::{self, Service};
use crate::recording::meta;

/// Interval between polls for completed work.
const INTERVAL: Duration = Duration::from_millis(1);
/// Number of looks without anything under way before the thread sleeps.
const IDLE_LOOKS: u32 = 50;
/// Pieces of work over in one look at a queue, from which on there is another look at once.
const MORE: usize = 64;
/// Longest sleep, for the case that a wake-up comes while it falls asleep.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Longest wait for the end of the thread.
const LONGEST_END: Duration = Duration::from_secs(2);

static SERVICE: Service = Service::new("times of device work");
static RUNNING: AtomicBool = AtomicBool::new(false);
/// Word that is 1 while the thread sleeps.
static ASLEEP: AtomicU32 = AtomicU32::new(0);

/// Hook whose lock is held while work is looked at. A forked child has neither the thread nor its parent's work.
pub(super) static FORK: ForkHook = ForkHook::new().in_child(|| {
    dispatch::forget();
    copies::forget();
    super::borrowed::forget();
    RUNNING.store(false, Ordering::Release);
});

/// Starts the thread, unless it runs.
pub(super) fn start() {
    if !RUNNING.swap(true, Ordering::AcqRel)
        && !spawn("rpd-times", InChild::Hook(&FORK), || {
            SERVICE.run(run);
        })
    {
        RUNNING.store(false, Ordering::Release);
        meta::note(
            "device work is recorded only where the program waits for it: the target cannot have another thread",
        );
    }
}

fn run() {
    let mut idle = 0;
    while !guard::is_finalized() {
        pass();
        idle = if is_idle() { idle + 1 } else { 0 };
        if idle < IDLE_LOOKS {
            std::thread::sleep(INTERVAL);
        } else {
            sleep();
            idle = 0;
        }
    }
    RUNNING.store(false, Ordering::Release);
}

/// Waits until the thread has ended, after recording has: at most [`LONGEST_END`].
pub(super) fn join() {
    let start = Instant::now();
    while RUNNING.load(Ordering::Acquire) && start.elapsed() < LONGEST_END {
        wake_up();
        std::thread::sleep(INTERVAL);
    }
}

fn is_idle() -> bool {
    !dispatch::queues().any(Queue::has_work) && copies::is_idle()
}

fn sleep() {
    ASLEEP.store(1, Ordering::SeqCst);
    if is_idle() {
        futex::wait(&ASLEEP, 1, Some(LONGEST_SLEEP));
    }
    ASLEEP.store(0, Ordering::Relaxed);
}

/// Wakes the polling thread: work was submitted.
#[inline]
pub(super) fn wake() {
    if ASLEEP.load(Ordering::Relaxed) != 0 {
        wake_up();
    }
}

#[cold]
fn wake_up() {
    if ASLEEP.swap(0, Ordering::Relaxed) != 0 {
        futex::wake(&ASLEEP);
    }
}

/// Records all work that is complete now.
pub(super) fn pass() {
    let Some(_guard) = FORK.lock() else {
        return;
    };
    loop {
        // One look at each in turn: a queue whose work never stops ending must not keep the others waiting.
        let queues = dispatch::queues().filter(|queue| queue.has_work());
        let most = queues.map(|queue| queue.pending.poll()).max();
        let most = most.unwrap_or(0).max(copies::poll());
        // More may have ended than one look covers.
        if most < MORE {
            break;
        }
    }
}

/// Waits until all work is complete, at most `limit`.
pub(super) fn drain(limit: Duration) {
    let start = Instant::now();
    loop {
        pass();
        if is_idle() || start.elapsed() >= limit {
            return;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Keeps work from being looked at until [`resume`].
pub(super) fn suspend() {
    if let Some(guard) = FORK.lock() {
        std::mem::forget(guard);
    }
}

/// Lets work be looked at again after [`suspend`].
pub(super) fn resume() {
    FORK.unlock();
}

/// The runtime is gone, and with it the signals of all work. While nothing looks at work.
pub(super) fn forget_work() {
    dispatch::forget();
    copies::forget();
    super::borrowed::forget();
}
