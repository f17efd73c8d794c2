//! Counting services.
//!
//! `hardware` and `catalogue` list what can be counted, `info` answers queries about it, `config` combines counters
//! and computes their values, `dispatch` counts single dispatches, `device` a whole agent, `consumer` is the thread
//! that delivers results.

pub(crate) mod catalogue;
pub(crate) mod config;
pub(crate) mod consumer;
pub(crate) mod device;
pub(crate) mod dispatch;
pub(crate) mod hardware;
pub(crate) mod info;

use rocprofiler_sdk_sys::rocprofiler_status_t as Status;

use super::context::{Context, DEVICE_COUNTING, DISPATCH_COUNTING};

/// Whether any context has a counting service.
pub(crate) fn configured() -> bool {
    !DISPATCH_COUNTING.is_empty() || !DEVICE_COUNTING.is_empty()
}

/// Whether a context has a counting service.
pub(crate) fn is_configured(context: &Context) -> bool {
    DISPATCH_COUNTING.has(context) || DEVICE_COUNTING.has(context)
}

/// Mask of the active contexts that count dispatches, one at most.
#[inline]
pub(crate) fn of_dispatches() -> u64 {
    DISPATCH_COUNTING.active()
}

/// Mask of the active contexts that count whole agents.
#[inline]
pub(crate) fn of_devices() -> u64 {
    DEVICE_COUNTING.active()
}

/// Whether a context may become active beside the active ones.
pub(crate) fn may_start(context: &Context) -> bool {
    !DISPATCH_COUNTING.has(context) || DISPATCH_COUNTING.active() & !(1 << context.index) == 0
}

/// Begins the counting services of a context that became active.
pub(crate) fn started(context: &'static Context) -> Status {
    if DEVICE_COUNTING.has(context) {
        return device::start(context);
    }
    Status::SUCCESS
}

/// Ends the counting services of a context that was stopped: available results are delivered before this returns.
pub(crate) fn stopped(context: &Context) {
    if DEVICE_COUNTING.has(context) {
        device::stop(context);
    }
    if DISPATCH_COUNTING.has(context) {
        consumer::drain();
    }
}
