//! The end of a child that was forked by a process that counts, samples or traces.
//!
//! SDK 1.0 has a thread that delivers counters, and its exit handler waits for that thread to stop. A forked child does not
//! have the thread, so a child that calls `exit` would wait forever. A thread of ours ends such a child, with the status
//! that it exits with. Nothing is lost: what was counted is in the spool already.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rpd_spool::writer::now;

use super::provider::functions;
use crate::recording::background::{InChild, spawn};
use crate::recording::guard::Service;
use crate::recording::process::fork_time;

/// Interval between queries of the state of finalisation.
const INTERVAL: Duration = Duration::from_millis(20);
/// Number of queries in a row that may find finalisation unfinished.
const MOST_UNFINISHED: u32 = 25;

static SERVICE: Service = Service::new("ends of forked children");
/// Time at which counting began; 0 before.
static COUNTING: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn on_exit(
        handler: Option<unsafe extern "C" fn(c_int, *mut c_void)>,
        data: *mut c_void,
    ) -> c_int;
}

/// Whether this process is such a child, which must not finalise the provider either.
pub(super) fn applies() -> bool {
    let since = COUNTING.load(Ordering::Relaxed);
    since != 0 && since < fork_time()
}

/// To be called when counting begins: handlers run in reverse order, so this one before that of the provider, which is
/// already there.
pub(super) fn prepare() {
    let first = COUNTING.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err() {
        return;
    }
    // SAFETY: the handler is a function of this library, which is never unloaded once the target uses it.
    unsafe { on_exit(Some(on_end), std::ptr::null_mut()) };
}

unsafe extern "C" fn on_end(status: c_int, _data: *mut c_void) {
    if applies() {
        // Without a thread nothing can be done.
        let _ = spawn(
            "rpd-end",
            InChild::Nothing("the process is ending"),
            move || {
                SERVICE.run(|| watch(status));
            },
        );
    }
}

/// Ends the process if its exit handlers never come to an end.
fn watch(status: c_int) {
    let Some(query) = functions().and_then(|functions| functions.rocprofiler_is_finalized) else {
        return;
    };
    let mut unfinished = 0;
    while unfinished < MOST_UNFINISHED {
        std::thread::sleep(INTERVAL);
        let mut state = 0;
        // SAFETY: the pointer is valid for the call.
        unsafe { query(&mut state) };
        match state {
            // Not begun: exit handlers of the program still run.
            0 => unfinished = 0,
            // Begun and not finished.
            ..0 => unfinished += 1,
            _ => return,
        }
    }
    // SAFETY: what the program has written and the C library keeps would be lost otherwise, since the handlers that are
    // still to come do not run; then the process ends with its own status.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(status);
    }
}
