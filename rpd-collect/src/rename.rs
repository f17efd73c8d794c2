//! Push ranges that rename kernels: each distinct message is a region with a number.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    rocprofiler_callback_phase_t, rocprofiler_callback_tracing_record_t, rocprofiler_user_data_t,
};
use rpd_spool::format::{Region, tag};
use rpd_spool::writer::ForkLock;

use crate::guard::Service;
use crate::process::header;
use crate::register::Setup;

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
    // Marks have no extent and ranges across threads have no thread: neither names a kernel.
    let Some(range) = kind.operation("roctxThreadRangeA") else {
        return;
    };
    // The original listens to marks too, and who listens makes correlation ids: so the ids are the same.
    let operations: Vec<i32> = kind
        .operation("roctxMarkA")
        .into_iter()
        .chain([range])
        .collect();
    // A context of its own: regions count also while recording is paused.
    let Some(context) = setup.context("kernel renaming") else {
        return;
    };
    let data = std::ptr::without_provenance_mut(range as usize);
    if setup.trace_callbacks(context, kind, &operations, Some(on_range), data) {
        setup.start(context, "kernel renaming");
    }
}

unsafe extern "C" fn on_range(
    record: rocprofiler_callback_tracing_record_t,
    _user_data: *mut rocprofiler_user_data_t,
    range: *mut c_void,
) {
    if record.operation != range.addr() as i32 {
        return;
    }
    SERVICE.told(|| match record.phase {
        rocprofiler_callback_phase_t::ENTER => {
            // SAFETY: thread ranges take a message.
            let (message, _) = unsafe { crate::marker::message(&record) };
            let message = message.unwrap_or_default();
            let correlation = record.correlation_id.internal;
            crate::thread::with(|thread| {
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
        rocprofiler_callback_phase_t::EXIT => {
            crate::thread::with(|thread| thread.regions.pop());
        }
        _ => {}
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
        crate::meta::write(tag::REGION, 0, &region, message);
    }
    number
}
