//! Handling of forks of the target: the child has none of the SDK's threads.

use std::sync::{Mutex, Once};

use super::{buffer, counting, device, hip_events, state, worker};

/// Locks held over a fork.
static HELD: Mutex<Option<HeldLocks>> = Mutex::new(None);
struct HeldLocks(#[allow(dead_code)] Box<dyn core::any::Any>);
// SAFETY: made and dropped on the forking thread only.
unsafe impl Send for HeldLocks {}

/// Installs the handlers, once per process.
pub(super) fn install() {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        // SAFETY: the handlers are functions of this library, which is never unloaded while threads run.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    });
}

extern "C" fn before_fork() {
    let held = HeldLocks(Box::new(buffer::lock_all()));
    *HELD.lock().unwrap_or_else(|e| e.into_inner()) = Some(held);
}

extern "C" fn after_fork() {
    *HELD.lock().unwrap_or_else(|e| e.into_inner()) = None;
}

/// Makes new threads and queues in the child; buffers stay.
extern "C" fn in_child() {
    after_fork();
    device::forget();
    hip_events::forget();
    counting::consumer::forget();
    if state::finalized() != 1 {
        worker::restart();
    }
}
