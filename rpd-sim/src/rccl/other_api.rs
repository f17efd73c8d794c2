//! The functions of the API that need no communicator.

use core::ffi::{c_char, c_void};

use super::error::{self, Failure, api, put};
use super::hip;

/// Version of NCCL whose interface the library has: 2.22.3.
const VERSION: i32 = 22_203;

pub(crate) unsafe extern "C" fn ncclGetVersion(version: *mut i32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api("ncclGetVersion", || unsafe {
        put("version", version, VERSION)
    })
}

pub(crate) unsafe extern "C" fn ncclGetErrorString(code: u32) -> *const c_char {
    error::text_of(code).as_ptr()
}

pub(crate) unsafe extern "C" fn ncclGetLastError(_comm: usize) -> *const c_char {
    error::last()
}

pub(crate) unsafe extern "C" fn ncclMemAlloc(place: *mut *mut c_void, size: usize) -> u32 {
    api("ncclMemAlloc", || {
        if place.is_null() {
            return Err(Failure::argument("ptr is null"));
        }
        let memory = hip::malloc(size)?;
        // SAFETY: the caller's pointer, not null.
        unsafe { put("ptr", place, memory) }
    })
}

pub(crate) unsafe extern "C" fn ncclMemFree(memory: *mut c_void) -> u32 {
    api("ncclMemFree", || hip::free(memory))
}
