//! Threads of the collector.

use rpd_spool::threads::without_signals;

/// Starts a thread that takes no signals: those are for the target's threads. False when the target cannot have another
/// thread. A forked child does not have it; a process that exits ends it.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name(name.to_owned());
    without_signals(|| thread.spawn(work)).is_ok()
}
