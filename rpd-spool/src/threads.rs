//! Threads of ours in the target: with a descriptor table of their own, and without signals.
//!
//! A program may close every descriptor it finds, or have no free one left under its limit. A thread with a descriptor table
//! of its own is affected by neither.

use std::io;

/// Gives the calling thread an empty descriptor table of its own, without standard streams: the limit may be so low that
/// their numbers are needed. The tables of other threads are not changed.
///
/// # Errors
/// The kernel is older than 5.9, or refuses.
pub fn separate_descriptors() -> io::Result<()> {
    // SAFETY: the call copies the table for this thread and closes the copies only.
    let status = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            0,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_UNSHARE,
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs `work` in a thread with a descriptor table of its own, and waits for it. `None` where there can be no such thread.
pub(super) fn with_own_descriptors<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new();
        let thread = without_signals(|| {
            thread.spawn_scoped(scope, || separate_descriptors().ok().map(|()| work()))
        });
        thread.ok()?.join().ok()?
    })
}

/// Runs `spawn` with all signals blocked: threads that it starts inherit that, so that signals are handled by the target's
/// own threads.
pub fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are plain memory that these calls fill; only this thread's mask is changed, and it is restored.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned
    }
}
