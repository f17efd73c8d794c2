//! The search for errors of kernels, which an optional function of the provider starts.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rocprofiler_sdk_sys::rocprofiler_status_t as Status;
use rpd_spool::kernel_check::UNCHECKED;

use super::setup::Setup;
use crate::recording::process;

/// Makes the provider check kernels for errors, if that was requested. Findings go into the run's directory. If the
/// provider cannot do it, the directory gets a file with the reason.
pub(super) fn configure(setup: &Setup<'_>) {
    if !setup.options.check_kernels {
        return;
    }
    let Some(run) = process::current().and_then(|process| process.directory.path().parent()) else {
        return;
    };
    if let Err(reason) = start(setup, run) {
        let name = format!("{UNCHECKED}{}", std::process::id());
        // Without the file the front end has no reason to report. The target goes on.
        let _ = std::fs::write(run.join(name), reason);
    }
}

fn start(setup: &Setup<'_>, run: &Path) -> Result<(), &'static str> {
    let check = setup
        .functions
        .rpd_check_kernels
        .ok_or("its SDK has no function rpd_check_kernels, which only the simulated GPU has")?;
    let directory = CString::new(run.as_os_str().as_bytes());
    let directory =
        directory.map_err(|_| "the name of the directory for findings has a zero byte")?;
    // SAFETY: the function is the provider's, the text lives through the call.
    match unsafe { check(directory.as_ptr()) } {
        Status::SUCCESS => Ok(()),
        _ => Err("another tool in the process checks its kernels already"),
    }
}
