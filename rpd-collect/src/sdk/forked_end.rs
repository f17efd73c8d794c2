//! The end of a child that was forked by a process that counts, samples or makes thread traces.
//!
//! The exit handler of SDK 1.0 waits for a thread that delivers counters, and destroys the queues of thread traces. A forked
//! child has neither the thread nor the memory of the queues, so a child that calls `exit` would wait forever or fault. It
//! leaves that handler: it goes on with the exit handlers that are still to come, and ends with the status that it exits
//! with. Nothing is lost: what was counted is in the spool already.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

use rpd_spool::writer::now;

use super::provider::functions;
use crate::lifecycle::signals::{Action, action_with, replace_action};
use crate::recording::background::{InChild, spawn};
use crate::recording::guard::Service;
use crate::recording::process::fork_time;

/// Interval between queries of the state of finalisation.
const INTERVAL: Duration = Duration::from_millis(20);
/// Number of queries in a row that may find finalisation unfinished.
const MOST_UNFINISHED: u32 = 25;
/// Time that the further exit handlers may take: one of those that are left of the provider may be stuck.
const REST: Duration = Duration::from_secs(10);

/// Signals of faults in the provider's exit handler. The first also takes the thread out of it when it is stuck.
const FAULTS: [c_int; 3] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT];

static SERVICE: Service = Service::new("ends of forked children");
/// Time at which counting began; 0 before.
static COUNTING: AtomicU64 = AtomicU64::new(0);
/// Id of the thread that exits.
static THREAD: AtomicI32 = AtomicI32::new(0);
/// Exit status of the process.
static STATUS: AtomicI32 = AtomicI32::new(0);
/// Whether the provider's exit handler was left.
static LEFT: AtomicBool = AtomicBool::new(false);
/// For each of [`FAULTS`]: the action that the program has set.
static BEFORE: [AtomicPtr<Action>; FAULTS.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; FAULTS.len()];

unsafe extern "C" {
    fn on_exit(
        handler: Option<unsafe extern "C" fn(c_int, *mut c_void)>,
        data: *mut c_void,
    ) -> c_int;
}

/// Whether this process is a child forked after the parent began to count, sample or trace, which must not finalise the
/// provider. Its parent's threads, queues and traces are not its own.
pub(super) fn applies() -> bool {
    let since = COUNTING.load(Ordering::Relaxed);
    since != 0 && since < fork_time()
}

/// Registers the exit handler. To be called when counting, sampling or tracing begins: handlers run in reverse order,
/// so this one before that of the provider, which is already there.
pub(super) fn prepare() {
    let first = COUNTING.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err() {
        return;
    }
    // SAFETY: the handler is a function of this library, which is never unloaded once the target uses it.
    unsafe { on_exit(Some(on_end), std::ptr::null_mut()) };
}

unsafe extern "C" fn on_end(status: c_int, _data: *mut c_void) {
    if !applies() {
        return;
    }
    // SAFETY: takes no arguments.
    THREAD.store(unsafe { libc::gettid() }, Ordering::Relaxed);
    STATUS.store(status, Ordering::Relaxed);
    for (number, before) in FAULTS.into_iter().zip(&BEFORE) {
        if let Some(action) = replace_action(number, &action_with(leave, 0)) {
            before.store(Box::into_raw(Box::new(action)), Ordering::Release);
        }
    }
    // Without a thread nothing can be done about a handler that is stuck.
    let _ = spawn("rpd-end", InChild::Nothing("the process is ending"), || {
        SERVICE.run(watch);
    });
}

/// State of the provider's finalisation: 0 before, negative meanwhile, positive after it. `None` when the provider does not
/// tell it.
fn finalisation() -> Option<c_int> {
    let query = functions()?.rocprofiler_is_finalized?;
    let mut state = 0;
    // SAFETY: the pointer is valid for the call.
    unsafe { query(&mut state) };
    Some(state)
}

/// Takes the thread that exits out of the provider's exit handler. Other faults get the program's own action.
unsafe extern "C" fn leave(number: c_int, _info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: takes no arguments.
    let thread = unsafe { libc::gettid() };
    if thread == THREAD.load(Ordering::Relaxed)
        && finalisation().is_some_and(|state| state < 0)
        && !LEFT.swap(true, Ordering::Relaxed)
    {
        // SAFETY: the C library takes a handler from its list before it calls it, so this goes on with those that are
        // still to come. The fault is in the provider's handler, or the thread waits there: no lock of the C library is held.
        unsafe { libc::exit(STATUS.load(Ordering::Relaxed)) };
    }
    let before = FAULTS.iter().position(|fault| *fault == number);
    let before = before.map(|place| BEFORE[place].load(Ordering::Acquire));
    // SAFETY: null, or a box that is never freed.
    if let Some(action) = before.and_then(|before| unsafe { before.as_ref() }) {
        // The instruction that faulted is executed again.
        replace_action(number, action);
    }
}

/// Makes the exiting thread leave the provider's exit handler if that does not come to an end, and ends the process if
/// the other handlers do not either.
fn watch() {
    let mut unfinished = 0;
    while unfinished < MOST_UNFINISHED && !LEFT.load(Ordering::Relaxed) {
        std::thread::sleep(INTERVAL);
        match finalisation() {
            // Not begun: exit handlers of the program still run.
            Some(0) => unfinished = 0,
            // Begun and not finished.
            Some(..0) => unfinished += 1,
            _ => return,
        }
    }
    if !LEFT.load(Ordering::Relaxed) {
        // SAFETY: takes no pointers.
        unsafe {
            let (process, thread) = (libc::getpid(), THREAD.load(Ordering::Relaxed));
            libc::syscall(libc::SYS_tgkill, process, thread, FAULTS[0]);
        }
    }
    std::thread::sleep(REST);
    // SAFETY: what the program has written and the C library keeps would be lost otherwise.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(STATUS.load(Ordering::Relaxed));
    }
}
