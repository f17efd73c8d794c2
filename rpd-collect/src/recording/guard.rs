//! Panics do not unwind into foreign code: a service that panics is switched off, and a note reports it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lets events of the provider be taken again: another recording of a process that is attached to begins.
pub(crate) fn set_begun() {
    FINALIZED.store(false, Ordering::Relaxed);
}

/// Whether the provider has finalised the collector.
static FINALIZED: AtomicBool = AtomicBool::new(false);
/// Function that reports the failure of a service.
static REPORT: OnceLock<fn(&str)> = OnceLock::new();

/// Makes events of the provider be ignored from then on.
pub(crate) fn set_finalized() {
    FINALIZED.store(true, Ordering::Relaxed);
}

/// Whether the provider has finalised the collector.
pub(crate) fn is_finalized() -> bool {
    FINALIZED.load(Ordering::Relaxed)
}

/// Sets the function that reports failures of services. Only the first call counts.
pub(crate) fn report_to(report: fn(&str)) {
    let _ = REPORT.set(report);
}

/// A part of the collector that foreign code calls.
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

    /// Runs `work`. `None` when it panics, and at every call after that.
    #[inline]
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        if self.off.load(Ordering::Relaxed) {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.failed();
                // The destructor of a payload may panic as well.
                std::mem::forget(payload);
                None
            }
        }
    }

    /// As [`Service::run`], for an event of the provider; `None` once the provider has finalised the collector. SDK 1.0
    /// frees its contexts then, and a thread of the target that is still inside a call may deliver an event with invalid
    /// data of ours.
    #[inline]
    pub(crate) fn on_event<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        if FINALIZED.load(Ordering::Relaxed) {
            return None;
        }
        self.run(work)
    }

    #[cold]
    fn failed(&self) {
        if !self.off.swap(true, Ordering::Relaxed) {
            let name = self.name;
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if let Some(report) = REPORT.get() {
                    report(&format!(
                        "the collector's service `{name}` failed and was switched off; its records end there"
                    ));
                }
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
    fn service_is_switched_off_by_its_panic() {
        let service = Service::new("test");
        assert_eq!(service.run(|| 1), Some(1));
        assert_eq!(service.run(|| -> i32 { panic!("on purpose") }), None);
        assert_eq!(service.run(|| 2), None);
    }
}
