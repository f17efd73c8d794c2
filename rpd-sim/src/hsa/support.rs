//! Helpers of the API functions: the state check, and writing results through `void*`.

use core::ffi::c_void;
use std::sync::atomic::Ordering;

use super::types::{Status, status};
use crate::gpu::agents::{self, Agent, Pool};
use crate::gpu::machine::machine;

/// Result of an API function's body.
pub(super) type Outcome = Result<(), Status>;

/// Runs the body of an API function; fails with `ERROR_NOT_INITIALIZED` before the runtime is initialised.
pub(super) fn api(body: impl FnOnce() -> Outcome) -> Status {
    if machine().runtime_users.load(Ordering::Acquire) == 0 {
        return status::ERROR_NOT_INITIALIZED;
    }
    match body() {
        Ok(()) => status::SUCCESS,
        Err(status) => status,
    }
}

/// Fails with `error` unless `condition` holds.
pub(super) fn ensure(condition: bool, error: Status) -> Outcome {
    if condition { Ok(()) } else { Err(error) }
}

/// Writes a result through a pointer; fails with `ERROR_INVALID_ARGUMENT` for null.
///
/// # Safety
/// A pointer that is not null must be writable.
pub(super) unsafe fn put<T, U>(place: *mut T, value: U) -> Outcome {
    let place: *mut U = place.cast();
    ensure(!place.is_null(), status::ERROR_INVALID_ARGUMENT)?;
    // SAFETY: promised by the caller; C places for attributes need not be aligned for `U`.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Writes a text into an array of `bytes` characters, ended and filled up with zeros.
///
/// # Safety
/// As for [`put`], for `bytes` bytes.
pub(super) unsafe fn put_text(place: *mut c_void, text: &str, bytes: usize) -> Outcome {
    ensure(!place.is_null(), status::ERROR_INVALID_ARGUMENT)?;
    let place: *mut u8 = place.cast();
    let length = text.len().min(bytes.saturating_sub(1));
    // SAFETY: promised by the caller; the text cannot overlap the program's array.
    unsafe {
        place.write_bytes(0, bytes);
        place.copy_from_nonoverlapping(text.as_ptr(), length);
    }
    Ok(())
}

/// The agent of a handle; `ERROR_INVALID_AGENT` when there is none.
pub(super) fn agent(handle: u64) -> Result<&'static Agent, Status> {
    agents::agent(handle).ok_or(status::ERROR_INVALID_AGENT)
}

/// The pool of a handle, for functions of the pool API; `ERROR_INVALID_MEMORY_POOL` when there is none.
pub(super) fn pool(handle: u64) -> Result<&'static Pool, Status> {
    agents::pool(handle).ok_or(status::ERROR_INVALID_MEMORY_POOL)
}

/// A C array as a slice; empty for null.
///
/// # Safety
/// A pointer that is not null must be readable for `count` values that are not moved or changed during `'a`.
pub(super) unsafe fn array<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// Text behind a C string; `None` when null or not UTF-8.
///
/// # Safety
/// A pointer that is not null must point to a string ended by a zero.
pub(super) unsafe fn text<'a>(string: *const core::ffi::c_char) -> Option<&'a str> {
    if string.is_null() {
        return None;
    }
    // SAFETY: promised by the caller.
    unsafe { std::ffi::CStr::from_ptr(string) }.to_str().ok()
}

/// Calls back for each item until the callback returns something other than success, which becomes the result.
pub(super) fn each<T>(
    items: impl IntoIterator<Item = T>,
    mut call: impl FnMut(T) -> Status,
) -> Outcome {
    for item in items {
        match call(item) {
            status::SUCCESS => {}
            other => return Err(other),
        }
    }
    Ok(())
}
