//! Entry points of the API by name, and control of profilers.

use core::ffi::{CStr, c_char, c_int, c_void};

use super::error::{HipResult, api, code, put};
use crate::api::types::ChannelFormatDesc;

/// A `hipDriverProcAddressQueryResult`: the function was found.
const FOUND: u32 = 0;
const NOT_FOUND: u32 = 1;

/// # Safety
/// `symbol` is null or a C string, the outputs are null or valid.
pub(super) unsafe fn look_up(
    symbol: *const c_char,
    out: *mut *mut c_void,
    status: *mut u32,
) -> HipResult {
    if symbol.is_null() || out.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: by contract.
    let name = unsafe { CStr::from_ptr(symbol) }.to_bytes();
    // Names without a version mean the current layout.
    let current: &CStr = match name {
        b"hipGetDeviceProperties" => c"hipGetDevicePropertiesR0600",
        b"hipChooseDevice" => c"hipChooseDeviceR0600",
        // SAFETY: by contract.
        _ => unsafe { CStr::from_ptr(symbol) },
    };
    let address = if name.starts_with(b"hip") || name.starts_with(b"__hip") {
        // SAFETY: the text is a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, current.as_ptr()) }
    } else {
        std::ptr::null_mut()
    };
    // SAFETY: by contract.
    unsafe {
        put(out, address)?;
        if !status.is_null() {
            put(status, if address.is_null() { NOT_FOUND } else { FOUND })?;
        }
    }
    if address.is_null() {
        Err(code::INVALID_VALUE)
    } else {
        Ok(())
    }
}

pub(crate) unsafe extern "C" fn hipGetProcAddress(
    symbol: *const c_char,
    out: *mut *mut c_void,
    _version: c_int,
    _flags: u64,
    status: *mut u32,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { look_up(symbol, out, status) })
}

/// Does nothing: tools decide what is recorded, and the real runtime does not offer this function either.
pub(crate) unsafe extern "C" fn hipProfilerStart() -> u32 {
    api(|| Err(code::NOT_SUPPORTED))
}

pub(crate) unsafe extern "C" fn hipProfilerStop() -> u32 {
    api(|| Err(code::NOT_SUPPORTED))
}

pub(crate) unsafe extern "C" fn hipCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    f: u32,
) -> ChannelFormatDesc {
    ChannelFormatDesc { x, y, z, w, f }
}
