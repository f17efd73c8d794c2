//! The thread that attachers stop, and have call functions.
//!
//! It sleeps and does nothing else, so it holds no lock when it is stopped.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

/// Name of the listener, by which attachers find it.
const NAME: &str = "rocp-bg-attach";
/// Bytes of the listener's stack: the SDK and the tool are initialised there.
const STACK: usize = 8 << 20;

/// Process that has the thread; 0 before. A forked child does not have it.
static PROCESS: AtomicI32 = AtomicI32::new(0);

fn this_process() -> c_int {
    // SAFETY: the call takes nothing.
    unsafe { libc::getpid() }
}

/// Whether this process has the thread.
pub(crate) fn is_there() -> bool {
    PROCESS.load(Ordering::Acquire) == this_process()
}

/// Starts the thread, once in a process. False when there can be none.
pub(crate) fn start() -> bool {
    let known = PROCESS.load(Ordering::Acquire);
    let this = this_process();
    let taken = || PROCESS.compare_exchange(known, this, Ordering::AcqRel, Ordering::Acquire);
    if known == this || taken().is_err() {
        return true;
    }
    let started = without_signals(|| {
        std::thread::Builder::new()
            .name(NAME.to_owned())
            .stack_size(STACK)
            .spawn(|| {
                loop {
                    std::thread::park();
                }
            })
            .is_ok()
    });
    if !started {
        PROCESS.store(0, Ordering::Release);
    }
    started
}

/// Runs `act` with all signals blocked, so that a thread it starts takes none: those are for the program's threads.
fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are written before they are read, and live through the calls.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = act();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}
