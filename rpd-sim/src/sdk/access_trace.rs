//! Recording of the memory accesses of kernels: a function beside those of the SDK, which tools find by its name.

use core::ffi::{CStr, c_char};
use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use rocprofiler_sdk_sys::rocprofiler_status_t as Status;
use rpd_gfx::access::{KernelChoice, Level};

use crate::gpu::accesses;

/// Records the accesses of all dispatches that begin from now on, see `rpd_gfx::access`.
///
/// # Safety
/// `directory` and `kernels` are null or texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_trace_accesses(
    directory: *const c_char,
    level: u32,
    kernels: *const c_char,
    limit: u64,
) -> Status {
    if directory.is_null() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: the caller vouches for its texts.
    let directory = unsafe { CStr::from_ptr(directory) };
    let kernels = if kernels.is_null() {
        c""
    } else {
        // SAFETY: as above.
        unsafe { CStr::from_ptr(kernels) }
    };
    let lines = kernels.to_string_lossy();
    let kernels: Option<Vec<KernelChoice>> = lines
        .lines()
        .filter(|line| !line.is_empty())
        .map(KernelChoice::parse)
        .collect();
    let Some((level, kernels)) = Level::from_number(level).zip(kernels) else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    match accesses::start(
        Path::new(OsStr::from_bytes(directory.to_bytes())),
        level,
        kernels,
        limit,
    ) {
        Ok(true) => Status::SUCCESS,
        Ok(false) => Status::ERROR_CONFIGURATION_LOCKED,
        Err(error) => {
            eprintln!("rpd-sim: memory accesses cannot be recorded: {error}");
            Status::ERROR
        }
    }
}
