//! Recordings of the memory accesses of kernels, which an optional function of the provider makes.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rocprofiler_sdk_sys::rocprofiler_status_t as Status;
use rpd_spool::access_trace::{AccessTrace, DIRECTORY, KERNELS_FILE};

use super::setup::Setup;
use crate::recording::{meta, process};

/// Makes the provider record memory accesses, if that was requested.
pub(super) fn configure(setup: &Setup<'_>) {
    let capture = &setup.options.capture;
    if capture.accesses == AccessTrace::Off {
        return;
    }
    let Some(record) = setup.functions.rpd_trace_accesses else {
        meta::note(
            "no memory accesses are recorded: this provider does not follow instructions of kernels",
        );
        return;
    };
    let Some(process) = process::current() else {
        return;
    };
    let directory = process.directory.path();
    // Without the file all kernels are recorded, which an empty text means to the provider.
    let kernels = directory
        .parent()
        .and_then(|run| std::fs::read(run.join(KERNELS_FILE)).ok())
        .unwrap_or_default();
    let texts = text(&directory.join(DIRECTORY)).zip(CString::new(kernels).ok());
    let Some((directory, kernels)) = texts else {
        meta::note("no memory accesses are recorded: a name has a zero byte");
        return;
    };
    let limit = capture.max_bytes.unwrap_or(u64::MAX);
    // SAFETY: the function is the provider's, the texts live through the call.
    let status = unsafe {
        record(
            directory.as_ptr(),
            capture.accesses.number(),
            kernels.as_ptr(),
            limit,
        )
    };
    if status != Status::SUCCESS {
        meta::note("no memory accesses are recorded: the provider cannot write the files for them");
    }
}

fn text(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}
