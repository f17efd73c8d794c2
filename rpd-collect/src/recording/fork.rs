//! Actions of modules around a fork of the target.
//!
//! A module that has a lock, a thread or state which a child must not keep describes it in a [`ForkHook`]. The lock is a part
//! of the hook, and [`super::background::spawn`] takes the hook of a thread: with either the hook is registered. A hook
//! for state alone is registered by its module before the state is used. The fork handlers of [`super::process`] run the
//! hooks. Lints of this crate refuse other locks and other ways to start a thread (`clippy.toml`), and a test has the list of all
//! statics (`fork/statics.rs`).

#![expect(clippy::disallowed_types, reason = "the locks of hooks")]

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use rpd_spool::writer::{ForkGuard, ForkLock};

/// Actions of one module around a fork.
pub(crate) struct ForkHook {
    lock: ForkLock,
    in_child: Option<fn()>,
    when_child_records: Option<fn()>,
    /// The thread that forks took `lock` for the fork.
    held: AtomicBool,
    registered: AtomicBool,
    /// The hook that was registered before.
    next: AtomicPtr<ForkHook>,
}

/// The hook that was registered last.
static LAST: AtomicPtr<ForkHook> = AtomicPtr::new(std::ptr::null_mut());

impl ForkHook {
    /// A hook that does nothing yet.
    pub(crate) const fn new() -> ForkHook {
        ForkHook {
            lock: ForkLock::new(),
            in_child: None,
            when_child_records: None,
            held: AtomicBool::new(false),
            registered: AtomicBool::new(false),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Called in every forked child, once all locks are open. The fork may have happened in a signal handler: only what
    /// is safe there is allowed.
    pub(crate) const fn in_child(self, act: fn()) -> ForkHook {
        ForkHook {
            in_child: Some(act),
            ..self
        }
    }

    /// Called in a forked child when it has made its own directory, that is at its first record.
    pub(crate) const fn when_child_records(self, act: fn()) -> ForkHook {
        ForkHook {
            when_child_records: Some(act),
            ..self
        }
    }

    /// Takes the hook's lock, which is held over every fork and open in the child. `None` when this thread holds it already:
    /// a signal handler interrupted the holder. While it is held, only locks of hooks that were registered earlier are
    /// taken: a fork takes the locks of hooks in the reverse order of their registration.
    #[inline]
    pub(crate) fn lock(&'static self) -> Option<ForkGuard<'static>> {
        self.register();
        self.lock.lock()
    }

    /// Opens the lock, whose guard was forgotten.
    pub(crate) fn unlock(&self) {
        self.lock.reset();
    }

    /// Makes this hook run at every fork from then on. Repeats have no effect.
    #[inline]
    pub(crate) fn register(&'static self) {
        if !self.registered.load(Ordering::Acquire) {
            self.add();
        }
    }

    #[cold]
    fn add(&'static self) {
        if self.registered.swap(true, Ordering::AcqRel) {
            return;
        }
        let this = std::ptr::from_ref(self).cast_mut();
        let mut last = LAST.load(Ordering::Acquire);
        loop {
            self.next.store(last, Ordering::Relaxed);
            match LAST.compare_exchange_weak(last, this, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return,
                Err(other) => last = other,
            }
        }
    }
}

/// All registered hooks.
fn hooks() -> impl Iterator<Item = &'static ForkHook> {
    let mut next = LAST.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: null, or a static hook.
        let hook: &'static ForkHook = unsafe { next.as_ref() }?;
        next = hook.next.load(Ordering::Relaxed);
        Some(hook)
    })
}

/// Takes the locks before a fork, that of the hook registered last first.
pub(super) fn hold_locks() {
    for hook in hooks() {
        // A lock that this very thread holds stays as it is: a signal handler forks.
        let guard = hook.lock.lock();
        hook.held.store(guard.is_some(), Ordering::Relaxed);
        std::mem::forget(guard);
    }
}

/// Opens the locks that [`hold_locks`] took, in the parent.
pub(super) fn release_locks() {
    for hook in hooks() {
        if hook.held.swap(false, Ordering::Relaxed) {
            hook.lock.reset();
        }
    }
}

/// Opens all locks in the child, and runs the hooks that drop state of the parent.
pub(super) fn forget_parent() {
    for hook in hooks() {
        hook.held.store(false, Ordering::Relaxed);
        hook.lock.reset();
    }
    for act in hooks().filter_map(|hook| hook.in_child) {
        act();
    }
}

/// Runs the hooks of a child that has made its directory.
pub(super) fn child_records() {
    for act in hooks().filter_map(|hook| hook.when_child_records) {
        act();
    }
}

#[cfg(test)]
mod statics;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    static CALLS: AtomicU32 = AtomicU32::new(0);
    static HOOK: ForkHook = ForkHook::new()
        .in_child(|| {
            assert!(HOOK.lock().is_some());
            CALLS.fetch_add(1, Ordering::Relaxed);
        })
        .when_child_records(|| {
            CALLS.fetch_add(10, Ordering::Relaxed);
        });

    #[test]
    fn fork_hook_registered_twice_runs_once_at_each_step() {
        HOOK.register();
        HOOK.register();
        hold_locks();
        assert!(HOOK.lock().is_none(), "this thread holds it");
        release_locks();
        assert!(HOOK.lock().is_some());
        assert_eq!(CALLS.load(Ordering::Relaxed), 0);
        hold_locks();
        forget_parent();
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        child_records();
        assert_eq!(CALLS.load(Ordering::Relaxed), 11);
        // A lock that the forking thread held before the fork stays held.
        let guard = HOOK.lock();
        hold_locks();
        release_locks();
        assert!(HOOK.lock().is_none(), "still held");
        drop(guard);
        the_lock_registered_last_is_taken_first();
    }

    /// A thread that holds the later lock takes the earlier one while another thread forks.
    fn the_lock_registered_last_is_taken_first() {
        static EARLIER: ForkHook = ForkHook::new();
        static LATER: ForkHook = ForkHook::new();
        EARLIER.register();
        let later = LATER.lock();
        std::thread::scope(|scope| {
            let forks = scope.spawn(|| {
                hold_locks();
                release_locks();
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(EARLIER.lock().is_some());
            drop(later);
            assert!(forks.join().is_ok());
        });
    }
}
