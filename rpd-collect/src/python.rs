//! Functions for the Python package `rpd`, which calls them through ctypes in the loaded library.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use crate::recording::guard::Service;
use crate::recording::text::text;
use crate::recording::{python_files, stacks};

static SERVICE: Service = Service::new("the Python package");

/// Waits until [`rpd_python_file`] has a file to return, at most `milliseconds` or, if that is negative, without end. Returns
/// 1 if there is one, 0 if the time was over, and -1 if no stacks with Python frames are taken.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rpd_python_wait(milliseconds: c_int) -> c_int {
    let wait = || {
        if stacks::has_python() {
            let time = u64::try_from(milliseconds).ok().map(Duration::from_millis);
            python_files::wait_for_next(time).into()
        } else {
            -1
        }
    };
    SERVICE.run(wait).unwrap_or(-1)
}

/// The next Python file that a stack had code of: writes at most `size` bytes of its name to `buffer` and returns their
/// number, 0 if there is none.
///
/// # Safety
///
/// `size` bytes may be written at `buffer`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rpd_python_file(buffer: *mut c_char, size: usize) -> usize {
    let next = || {
        if buffer.is_null() {
            return None;
        }
        // SAFETY: as this function demands; they are initialised first.
        let buffer = unsafe {
            std::ptr::write_bytes(buffer, 0, size);
            std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size)
        };
        python_files::next(buffer)
    };
    SERVICE.run(next).flatten().unwrap_or(0)
}

/// Records the sources of the lines `first` to `last` of the generated file `file`: `frames_len` bytes at `frames`, as
/// [`rpd_spool::format::StackSource`] has them. Returns 1 if that was stored, else 0.
///
/// # Safety
///
/// `file` is null or points to a NUL-terminated string, `frames` points to `frames_len` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rpd_python_source(
    file: *const c_char,
    first: u32,
    last: u32,
    frames: *const u8,
    frames_len: usize,
) -> c_int {
    let write = || {
        if frames.is_null() || !stacks::has_python() {
            return false;
        }
        // SAFETY: as this function demands.
        let (file, frames) =
            unsafe { (text(file), std::slice::from_raw_parts(frames, frames_len)) };
        python_files::source(file, first, last, frames)
    };
    SERVICE.run(write).unwrap_or(false).into()
}
