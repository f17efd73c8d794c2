//! Actions of modules around a fork of the target.
//!
//! A module that has a lock, a thread or state which a child must not keep describes it in a [`ForkHook`] and registers
//! that before it uses them. The fork handlers of [`super::process`] run the hooks.

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use rpd_spool::writer::ForkLock;

/// Actions of one module around a fork.
pub(crate) struct ForkHook {
    lock: Option<&'static ForkLock>,
    in_child: Option<fn()>,
    when_child_records: Option<fn()>,
    /// The thread that forks has taken `lock`.
    held: AtomicBool,
    registered: AtomicBool,
    /// The hook that was registered before this one.
    next: AtomicPtr<ForkHook>,
}

/// The hook that was registered last.
static LAST: AtomicPtr<ForkHook> = AtomicPtr::new(std::ptr::null_mut());

impl ForkHook {
    /// A hook that does nothing yet.
    pub(crate) const fn new() -> ForkHook {
        ForkHook {
            lock: None,
            in_child: None,
            when_child_records: None,
            held: AtomicBool::new(false),
            registered: AtomicBool::new(false),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// `lock` is held over the fork and open in the child. While it is held elsewhere, no other lock is taken: the order in
    /// which a fork takes the locks of hooks is not defined.
    pub(crate) const fn lock(self, lock: &'static ForkLock) -> ForkHook {
        ForkHook {
            lock: Some(lock),
            ..self
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

    /// Has this hook run at every fork from now on. Repeats have no effect.
    pub(crate) fn register(&'static self) {
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

/// Before the fork: takes the locks.
pub(super) fn hold_locks() {
    for hook in hooks() {
        // A lock that this very thread holds stays as it is: a signal handler forks.
        let guard = hook.lock.and_then(ForkLock::lock);
        hook.held.store(guard.is_some(), Ordering::Relaxed);
        std::mem::forget(guard);
    }
}

/// In the parent: opens the locks that [`hold_locks`] took.
pub(super) fn release_locks() {
    for hook in hooks() {
        if hook.held.swap(false, Ordering::Relaxed)
            && let Some(lock) = hook.lock
        {
            lock.reset();
        }
    }
}

/// In the child: opens all locks, and has every module forget what belongs to the parent.
pub(super) fn forget_parent() {
    for hook in hooks() {
        hook.held.store(false, Ordering::Relaxed);
        if let Some(lock) = hook.lock {
            lock.reset();
        }
    }
    for act in hooks().filter_map(|hook| hook.in_child) {
        act();
    }
}

/// In a child that has made its directory.
pub(super) fn child_records() {
    for act in hooks().filter_map(|hook| hook.when_child_records) {
        act();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    static LOCK: ForkLock = ForkLock::new();
    static CALLS: AtomicU32 = AtomicU32::new(0);
    static HOOK: ForkHook = ForkHook::new()
        .lock(&LOCK)
        .in_child(|| {
            assert!(LOCK.lock().is_some());
            CALLS.fetch_add(1, Ordering::Relaxed);
        })
        .when_child_records(|| {
            CALLS.fetch_add(10, Ordering::Relaxed);
        });

    #[test]
    fn a_registered_hook_runs_once_at_each_step() {
        HOOK.register();
        HOOK.register();
        hold_locks();
        assert!(LOCK.lock().is_none(), "this thread holds it");
        release_locks();
        assert!(LOCK.lock().is_some());
        assert_eq!(CALLS.load(Ordering::Relaxed), 0);
        hold_locks();
        forget_parent();
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        child_records();
        assert_eq!(CALLS.load(Ordering::Relaxed), 11);
        // A lock that the forking thread held before the fork stays held.
        let guard = LOCK.lock();
        hold_locks();
        release_locks();
        assert!(LOCK.lock().is_none(), "still held");
        drop(guard);
    }
}
