//! A child that was forked by a process that counts comes to its end.
//!
//! SDK 1.0 has a thread that hands counters over, and its exit handler waits for that thread to stop. A fork leaves the
//! thread behind, so that a child that calls `exit` would wait for ever. Here a thread of ours sees to it that such a
//! child ends after all, with the status it wanted to end with. Nothing is lost: what was counted is in the spool already.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rpd_spool::writer::now;

use crate::recording::guard::Service;
use crate::recording::process::fork_time;
use crate::sdk::entry::functions;

/// How often the provider is asked how far its end has come, and how often in a row it may be in the middle of it.
const INTERVAL: Duration = Duration::from_millis(20);
const PATIENCE: u32 = 25;

static SERVICE: Service = Service::new("ends of forked children");
/// When counting began; 0 before.
static COUNTING: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn on_exit(
        handler: Option<unsafe extern "C" fn(c_int, *mut c_void)>,
        data: *mut c_void,
    ) -> c_int;
}

/// Whether this is such a child. It is not to end the provider by itself either.
pub(crate) fn is_here() -> bool {
    let since = COUNTING.load(Ordering::Relaxed);
    since != 0 && since < fork_time()
}

/// To be called when counting begins: handlers run in reverse order, so this one before that of the provider, which is
/// already there.
pub(crate) fn prepare() {
    let first = COUNTING.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err() {
        return;
    }
    // SAFETY: the handler is a function of this library, which is never unloaded once the target uses it.
    unsafe { on_exit(Some(on_end), std::ptr::null_mut()) };
}

unsafe extern "C" fn on_end(status: c_int, _data: *mut c_void) {
    if is_here() {
        // Where no thread can be had, nothing can be done.
        let _ = crate::recording::switch::spawn("rpd-end", move || {
            SERVICE.run(|| watch(status));
        });
    }
}

/// Ends the process if its exit handlers never come to an end.
fn watch(status: c_int) {
    let Some(query) = functions().and_then(|functions| functions.rocprofiler_is_finalized) else {
        return;
    };
    let mut waited = 0;
    while waited < PATIENCE {
        std::thread::sleep(INTERVAL);
        let mut state = 0;
        // SAFETY: the pointer is valid for the call.
        unsafe { query(&mut state) };
        match state {
            // Not yet: the program's own handlers take the time they need.
            0 => waited = 0,
            // Below zero: in the middle of it.
            ..0 => waited += 1,
            _ => return,
        }
    }
    // SAFETY: what the program has written and the C library keeps would be lost otherwise, since the handlers that are
    // still to come do not run; then the process ends as it wanted to.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(status);
    }
}
