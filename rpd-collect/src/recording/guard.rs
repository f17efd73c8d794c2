//! Nothing unwinds into foreign code: a service that panics is counted and switched off.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// The provider has ended us.
static OVER: AtomicBool = AtomicBool::new(false);

/// From now on nobody listens to the provider.
pub(crate) fn over() {
    OVER.store(true, Ordering::Relaxed);
}

/// Whether the provider has ended us.
pub(crate) fn is_over() -> bool {
    OVER.load(Ordering::Relaxed)
}

/// Something the collector does on request of foreign code.
pub(crate) struct Service {
    name: &'static str,
    off: AtomicBool,
}

impl Service {
    pub(crate) const fn new(name: &'static str) -> Service {
        Service {
            name,
            off: AtomicBool::new(false),
        }
    }

    /// Runs `work`, unless this service failed before. `None` when it panics, for ever after.
    #[inline]
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        if self.off.load(Ordering::Relaxed) {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.failed();
                // A payload whose destructor panics must not get out either.
                std::mem::forget(payload);
                None
            }
        }
    }

    /// As [`Service::run`], for what the provider tells us: nothing after it has ended us. SDK 1.0 frees its contexts
    /// then, and a thread of the target that is still inside a call may come by with what is left of one, in place of
    /// our own data.
    #[inline]
    pub(crate) fn told<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        if OVER.load(Ordering::Relaxed) {
            return None;
        }
        self.run(work)
    }

    #[cold]
    fn failed(&self) {
        if !self.off.swap(true, Ordering::Relaxed) {
            let name = self.name;
            let _ = catch_unwind(AssertUnwindSafe(|| {
                crate::recording::meta::note(&format!(
                    "the collector's service `{name}` failed and was switched off; its records end there"
                ));
            }));
        }
    }
}

/// Keeps Rust's message about a panic off the target's stderr.
pub(crate) fn silence_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_switches_the_service_off_and_goes_no_further() {
        let service = Service::new("test");
        assert_eq!(service.run(|| 1), Some(1));
        assert_eq!(service.run(|| -> i32 { panic!("on purpose") }), None);
        assert_eq!(service.run(|| 2), None);
    }
}
