//! Threads of the collector.

use rpd_spool::threads::without_signals;

use super::fork::ForkHook;

/// Action of a forked child about a thread of its parent, which the child does not have.
pub(crate) enum InChild {
    /// The action of the hook, which is registered before the thread starts.
    Hook(&'static ForkHook),
    /// No action, because nothing in a child waits for the thread or starts another; the text says why.
    Nothing(&'static str),
}

/// Starts a thread that takes no signals: those are for the target's threads. False when the target cannot have another
/// thread. A process that exits ends it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that starts threads"
)]
pub(crate) fn spawn(name: &str, in_child: InChild, work: impl FnOnce() + Send + 'static) -> bool {
    match in_child {
        InChild::Hook(hook) => hook.register(),
        InChild::Nothing(_why) => {}
    }
    let thread = std::thread::Builder::new().name(name.to_owned());
    without_signals(|| thread.spawn(work)).is_ok()
}
