//! Tools that patch dispatch tables themselves, at registration.

use core::ffi::{c_int, c_void};
use std::sync::RwLock;

use rocprofiler_sdk_sys::{
    rocprofiler_intercept_library_cb_t as InterceptFn,
    rocprofiler_intercept_table_t as InterceptTable, rocprofiler_status_t as Status,
};

use super::{context::Callback, state};

#[derive(Clone, Copy)]
struct Interest {
    tables: u32,
    callback: Callback<<InterceptFn as IntoIterator>::Item>,
}

static INTERESTS: RwLock<Vec<Interest>> = RwLock::new(Vec::new());

/// Passes the tables of a runtime to the tools that requested them; they may replace functions.
pub(crate) fn offer(
    table: InterceptTable,
    version: u64,
    instance: u64,
    tables: &mut [*mut c_void],
) {
    // No lock is held while tools run.
    let interests = INTERESTS.read().unwrap_or_else(|e| e.into_inner()).clone();
    for interest in interests.iter().filter(|i| i.tables & table.0 != 0) {
        // SAFETY: the tool gave the function for this; the tables live as long as the process.
        unsafe {
            (interest.callback.function)(
                table,
                version,
                instance,
                tables.as_mut_ptr(),
                tables.len() as u64,
                interest.callback.data,
            );
        }
    }
}

/// `rocprofiler_at_intercept_table_registration`.
///
/// # Safety
/// The callback stays callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_at_intercept_table_registration(
    callback: InterceptFn,
    libs: c_int,
    data: *mut c_void,
) -> Status {
    if state::initialized() > 0 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let Some(function) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    // No table named means all of them.
    let tables = if libs == 0 { u32::MAX } else { libs as u32 };
    let interest = Interest {
        tables,
        callback: Callback { function, data },
    };
    INTERESTS
        .write()
        .unwrap_or_else(|e| e.into_inner())
        .push(interest);
    Status::SUCCESS
}
