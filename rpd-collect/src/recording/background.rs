//! Threads of the collector.

/// Starts a thread that takes no signals: those are for the target's threads. False when the target cannot have another
/// thread. A forked child does not have it; a process that exits ends it.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name(name.to_owned());
    // SAFETY: the sets are plain memory that these calls fill; only this thread's mask is changed, and it is restored.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        // A thread inherits its mask.
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = thread.spawn(work);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned.is_ok()
    }
}
