//! Thread ids as records have them.

use core::cell::Cell;

thread_local! {
    static ID: Cell<u64> = const { Cell::new(0) };
}

/// Kernel's id of the calling thread, queried once per thread. In a forked child the forking thread keeps the parent's
/// id, as with the SDK.
#[inline]
pub(crate) fn current() -> u64 {
    ID.with(|id| match id.get() {
        0 => {
            // SAFETY: the call has no preconditions.
            let tid = unsafe { libc::gettid() } as u64;
            id.set(tid);
            tid
        }
        tid => tid,
    })
}
