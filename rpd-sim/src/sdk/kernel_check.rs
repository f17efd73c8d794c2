//! Search for errors of kernels: a function beside those of the SDK, which tools find by its name.

use core::ffi::{CStr, c_char};
use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use rocprofiler_sdk_sys::rocprofiler_status_t as Status;

use crate::gpu::check;

/// Watches all dispatches that begin from now on, and memory that is allocated from now on, see [`check`].
///
/// # Safety
/// `directory` is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_check_kernels(directory: *const c_char) -> Status {
    if directory.is_null() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: the caller vouches for its text.
    let directory = unsafe { CStr::from_ptr(directory) };
    if check::start(OsStr::from_bytes(directory.to_bytes()).into()) {
        Status::SUCCESS
    } else {
        Status::ERROR_CONFIGURATION_LOCKED
    }
}
