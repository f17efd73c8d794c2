//! Push ranges that rename kernels: each distinct message is a region with a number.
//!
//! With the original's semantics marks are pushed as well and stay until a pop takes them, which it does whatever is on
//! top; a range or mark without a message is not pushed.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    rocprofiler_callback_phase_t, rocprofiler_callback_tracing_record_t, rocprofiler_user_data_t,
};
use rpd_spool::format::{Region, tag};
use rpd_spool::writer::ForkLock;

use crate::recording::guard::Service;
use crate::recording::process::header;
use crate::sdk::entry::Setup;

static SERVICE: Service = Service::new("kernel renaming");

/// Numbers of the messages that a thread has met.
pub(crate) type RegionCache = HashMap<Box<[u8]>, u32>;

/// Numbers of all messages.
struct Regions(UnsafeCell<Option<RegionCache>>);

// SAFETY: the content is only touched with `LOCK` held.
unsafe impl Sync for Regions {}

static REGIONS: Regions = Regions(UnsafeCell::new(None));
/// Guards [`REGIONS`]; taken over a fork.
pub(crate) static LOCK: ForkLock = ForkLock::new();

pub(crate) fn configure(setup: &Setup<'_>) {
    let Some(kind) = setup.callback_kind("MARKER_CORE_RANGE_API") else {
        return;
    };
    // Marks have no extent and ranges across threads have no thread: neither names a kernel by the manual.
    let Some(range) = kind.operation("roctxThreadRangeA") else {
        return;
    };
    let mark = kind.operation("roctxMarkA");
    // The original listens to marks too, and who listens makes correlation ids: so the ids are the same.
    let operations: Vec<i32> = mark.into_iter().chain([range]).collect();
    // A context of its own: regions count also while recording is paused.
    let Some(context) = setup.context("kernel renaming") else {
        return;
    };
    let original = setup.options.original_semantics;
    let what = Renaming {
        range,
        mark: mark.filter(|_| original),
        without_message: !original,
    };
    let data = std::ptr::from_mut(Box::leak(Box::new(what))).cast();
    if setup.trace_callbacks(context, kind, &operations, Some(on_range), data) {
        setup.start(context, "kernel renaming");
    }
}

/// What renames kernels.
struct Renaming {
    /// Operation of the ranges of a thread.
    range: i32,
    /// Operation of marks, where they count.
    mark: Option<i32>,
    /// Whether ranges without a message count.
    without_message: bool,
}

unsafe extern "C" fn on_range(
    record: rocprofiler_callback_tracing_record_t,
    _user_data: *mut rocprofiler_user_data_t,
    data: *mut c_void,
) {
    use rocprofiler_callback_phase_t as Phase;
    SERVICE.told(|| {
        // SAFETY: `data` is what `configure` leaked.
        let what = unsafe { &*data.cast::<Renaming>() };
        let is_range = record.operation == what.range;
        let is_mark = Some(record.operation) == what.mark;
        if is_range && record.phase == Phase::ENTER || is_mark && record.phase == Phase::EXIT {
            push(&record, what.without_message);
        } else if is_range && record.phase == Phase::EXIT {
            crate::recording::thread::with(|thread| thread.regions.pop());
        }
    });
}

fn push(record: &rocprofiler_callback_tracing_record_t, without_message: bool) {
    // SAFETY: thread ranges and marks take a message.
    let (message, _) = unsafe { crate::sdk::marker::message(record) };
    if message.is_none() && !without_message {
        return;
    }
    let message = message.unwrap_or_default();
    let correlation = record.correlation_id.internal;
    crate::recording::thread::with(|thread| {
        let region = match thread.region_cache.get(message) {
            Some(known) => *known,
            None => {
                let number = number(message, correlation);
                thread.region_cache.insert(message.into(), number);
                number
            }
        };
        thread.regions.push(region);
    });
}

/// The number of a message, given when it is new.
fn number(message: &[u8], correlation: u64) -> u32 {
    let (number, new) = {
        let Some(_guard) = LOCK.lock() else {
            return 0;
        };
        // SAFETY: the lock is held.
        let known = unsafe { &mut *REGIONS.0.get() }.get_or_insert_default();
        let next = known.len() as u32 + 1;
        match known.get(message) {
            Some(number) => (*number, false),
            None => {
                known.insert(message.into(), next);
                (next, true)
            }
        }
    };
    if new {
        let region = Region {
            header: header(0, 0),
            id: number,
            text_len: message.len() as u32,
            correlation,
        };
        crate::recording::meta::write(tag::REGION, 0, &region, message);
    }
    number
}
