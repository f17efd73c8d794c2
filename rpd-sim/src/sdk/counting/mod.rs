//! Counting services.
//!
//! `hardware` and `catalogue` say what can be counted, `info` answers queries about it, `config` combines counters
//! and computes their values, `dispatch` counts single dispatches, `device` a whole agent, `consumer` is the thread
//! that delivers results.

pub(crate) mod catalogue;
pub(crate) mod config;
pub(crate) mod consumer;
pub(crate) mod device;
pub(crate) mod dispatch;
pub(crate) mod hardware;
pub(crate) mod info;

use core::sync::atomic::{AtomicU64, Ordering};

use rocprofiler_sdk_sys::rocprofiler_status_t as Status;

use super::context::{self, Context};

/// Contexts that count dispatches, active or not.
static DISPATCH: AtomicU64 = AtomicU64::new(0);
/// Contexts that count whole agents, active or not.
static DEVICE: AtomicU64 = AtomicU64::new(0);

/// Whether any context has a counting service.
pub(crate) fn configured() -> bool {
    (DISPATCH.load(Ordering::Relaxed) | DEVICE.load(Ordering::Relaxed)) != 0
}

/// Whether a context has a counting service.
pub(crate) fn is_configured(context: &Context) -> bool {
    let all = DISPATCH.load(Ordering::Acquire) | DEVICE.load(Ordering::Acquire);
    all & (1 << context.index) != 0
}

/// Active contexts that count dispatches: one at most.
#[inline]
pub(crate) fn of_dispatches() -> u64 {
    match DISPATCH.load(Ordering::Relaxed) {
        0 => 0,
        all => all & context::active(),
    }
}

/// Active contexts that count whole agents.
#[inline]
pub(crate) fn of_devices() -> u64 {
    match DEVICE.load(Ordering::Relaxed) {
        0 => 0,
        all => all & context::active(),
    }
}

/// Whether a context may become active beside those that are.
pub(crate) fn may_start(context: &Context) -> bool {
    let all = DISPATCH.load(Ordering::Relaxed);
    let bit = 1 << context.index;
    all & bit == 0 || all & context::active() & !bit == 0
}

/// A context became active.
pub(crate) fn started(context: &'static Context) -> Status {
    if DEVICE.load(Ordering::Relaxed) & (1 << context.index) != 0 {
        return device::start(context);
    }
    Status::SUCCESS
}

/// A context was stopped: results that are available are delivered before this returns.
pub(crate) fn stopped(context: &Context) {
    let bit = 1 << context.index;
    if DEVICE.load(Ordering::Relaxed) & bit != 0 {
        device::stop(context);
    }
    if DISPATCH.load(Ordering::Relaxed) & bit != 0 {
        consumer::drain();
    }
}
