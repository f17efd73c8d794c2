//! Values that are set when a recording is configured.

use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that is set when a recording is configured, and again for each further recording of a process that is attached
/// to. Whoever reads it keeps what was set then: replaced values are never freed, because any thread may still use one.
#[derive(Debug)]
pub(crate) struct Setting<T: 'static>(AtomicPtr<T>);

impl<T: Send + Sync> Setting<T> {
    pub(crate) const fn new() -> Setting<T> {
        Setting(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Sets the value, for this recording.
    pub(crate) fn set(&self, value: T) -> &'static T {
        let value = Box::leak(Box::new(value));
        self.0.store(value, Ordering::Release);
        value
    }

    /// The value; `None` before it is set.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: null or a leaked box.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }
}
