//! The functions that `librpd_register.so` calls.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::recording::guard::Service;
use crate::recording::{meta, process};
use crate::{cuda, direct, sdk};

static SERVICE: Service = Service::new("registration");

/// Ends recording: the target's `main` has returned.
#[unsafe(no_mangle)]
pub extern "C" fn rpd_collect_end() {
    SERVICE.run(|| {
        let others = sdk::entry::is_configured() || direct::entry::is_configured();
        cuda::entry::end(!others);
        direct::entry::end();
        sdk::entry::end();
    });
}

/// Records work that is complete: the process ends without exit handlers.
#[unsafe(no_mangle)]
pub extern "C" fn rpd_collect_flush() {
    SERVICE.run(|| {
        cuda::entry::flush();
        direct::entry::flush();
    });
}

/// Notes why nothing is recorded, unless a provider records. The front end prints notes at the end of the run.
///
/// # Safety
///
/// `text` is NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_collect_note(text: *const c_char) {
    SERVICE.run(|| {
        // SAFETY: by the contract of this function.
        let text = unsafe { CStr::from_ptr(text) };
        let records = [
            sdk::entry::is_configured(),
            direct::entry::is_configured(),
            cuda::entry::is_configured(),
        ];
        if !records.contains(&true) {
            meta::note(&text.to_string_lossy());
        }
    });
}

/// Notes a program that runs without rpd, in a process that is recorded so far. `own`: it takes the place of this process's
/// image; otherwise a child becomes it.
///
/// # Safety
///
/// `program` and `why` are NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_collect_ran_without(
    program: *const c_char,
    why: *const c_char,
    own: c_int,
) {
    SERVICE.run(|| {
        // SAFETY: by the contract of this function.
        let [program, why] = [program, why].map(|text| unsafe { CStr::from_ptr(text) });
        let what = format!(
            "{} without rpd: {}",
            program.to_string_lossy(),
            why.to_string_lossy()
        );
        match own {
            0 => process::note_of_child(&format!("a process that it started ran {what}")),
            _ => meta::note(&format!("from then on this process ran {what}")),
        }
    });
}

/// Called once, at the first table: 1 when this and all further tables are for [`rpd_collect_set_api_table`] and no SDK is to
/// be loaded, 0 when they are for an SDK. `other_tool` is 1 when the process may have its own tool that needs the SDK.
///
/// # Safety
///
/// As for [`rpd_collect_set_api_table`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_collect_takes(
    name: *const c_char,
    version: u64,
    tables: *mut *mut c_void,
    count: u64,
    other_tool: c_int,
) -> c_int {
    SERVICE
        // SAFETY: by the contract of this function.
        .run(|| unsafe { direct::entry::takes(name, version, tables, count, other_tool != 0) })
        .unwrap_or(false)
        .into()
}

/// Takes the dispatch tables of a runtime; 0.
///
/// # Safety
///
/// `name` is NUL-terminated, `tables` has `count` tables of the shape that belongs to the name and version, which live until
/// the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_collect_set_api_table(
    name: *const c_char,
    version: u64,
    instance: u64,
    tables: *mut *mut c_void,
    count: u64,
) -> c_int {
    // SAFETY: by the contract of this function.
    SERVICE.run(|| unsafe { direct::entry::set_api_table(name, version, instance, tables, count) });
    0
}
