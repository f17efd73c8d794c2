//! Captures, and replays of kernels, which look at calls as captures do: the runtimes' dispatch tables from the provider.

use std::ffi::c_void;

use rocprofiler_sdk_sys::rocprofiler_intercept_table_t as Table;

use super::counters;
use super::setup::Setup;
use crate::captured;
use crate::recording::guard::Service;
use crate::recording::{capture, meta};
use crate::tables;

static SERVICE: Service = Service::new("tables of captures");

/// Requests the runtimes' tables from the provider.
pub(super) fn configure(setup: &Setup<'_>) {
    let captures = setup.options.capture.calls;
    if !captures && !counters::replays() {
        return;
    }
    let Some(register) = setup.functions.rocprofiler_at_intercept_table_registration else {
        if captures {
            meta::note(
                "nothing is captured: this provider does not hand over the runtimes' tables",
            );
        }
        return;
    };
    if captures && !captured::start(setup.options) {
        return;
    }
    if !captures {
        capture::watch();
    }
    let wanted = Table::HIP_RUNTIME_TABLE.0 | Table::HIP_COMPILER_TABLE.0;
    // SAFETY: the callback stays callable, and needs no data.
    let status = unsafe { register(Some(on_table), wanted as i32, std::ptr::null_mut()) };
    setup.succeeded(status, "a capture");
}

unsafe extern "C" fn on_table(
    table: Table,
    _version: u64,
    instance: u64,
    first: *mut *mut c_void,
    count: u64,
    _data: *mut c_void,
) {
    SERVICE.on_event(|| {
        // A second instance is another copy of the library, and the statics here hold the functions of one.
        if instance != 0 || first.is_null() || count == 0 {
            return;
        }
        // SAFETY: there is at least one table; it lives as long as the process and begins with its size in bytes.
        let slots = unsafe { tables::flat(*first) };
        match table {
            Table::HIP_RUNTIME_TABLE => captured::wrap_runtime(slots),
            Table::HIP_COMPILER_TABLE => captured::wrap_compiler(slots),
            _ => {}
        }
    });
}
