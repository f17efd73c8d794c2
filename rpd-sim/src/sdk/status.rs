//! Version, status texts, time and thread ids.

use core::{
    ffi::{CStr, c_char},
    ptr,
};

use rocprofiler_sdk_sys::{rocprofiler_status_t as Status, rocprofiler_version_triplet_t};

use super::{clock, thread, version};

/// Writes a value through a pointer unless that is null.
pub(crate) fn store<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, and callers of the ABI hand places that can be written.
        unsafe { to.write(value) };
    }
}

/// `rocprofiler_get_version`.
///
/// # Safety
/// Pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_version(
    major: *mut u32,
    minor: *mut u32,
    patch: *mut u32,
) -> Status {
    let version = version::current().number();
    store(major, version / 10_000);
    store(minor, version / 100 % 100);
    store(patch, version % 100);
    Status::SUCCESS
}

/// `rocprofiler_get_version_triplet`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_version_triplet(
    info: *mut rocprofiler_version_triplet_t,
) -> Status {
    store(
        info,
        rocprofiler_version_triplet_t::from_number(u64::from(version::current().number())),
    );
    Status::SUCCESS
}

/// `rocprofiler_get_status_name`: the name of the enumerator, null when it is unknown.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_status_name(status: Status) -> *const c_char {
    match status.c_name() {
        Some(name) if status.0 < Status::LAST.0 => name.as_ptr(),
        _ => ptr::null(),
    }
}

/// Text of each status, at its number.
static TEXTS: [&CStr; 41] = [
    c"Success",
    c"General error",
    c"No such context, or it is not active",
    c"No such buffer",
    c"No such kind",
    c"No such operation",
    c"No such callback thread",
    c"No such agent",
    c"No such counter",
    c"The context is in a state that does not allow this",
    c"The context lacks what this needs",
    c"The context is not running",
    c"Another running context or service excludes this",
    c"The context handle was not zero on entry",
    c"The buffer is in use",
    c"The service is configured already",
    c"It is too late to configure",
    c"Not implemented",
    c"The size of a struct or the interface of a library does not match",
    c"Bad argument",
    c"The counter does not exist on this agent",
    c"The library has finalised",
    c"HSA is not initialised yet",
    c"No dimension data",
    c"A counter of the configuration was not found",
    c"The counter expression could not be built",
    c"The counter expression was not found",
    c"A hardware event has no coordinate",
    c"The kernel driver is too old",
    c"An array is too small or a resource is exhausted",
    c"No such configuration",
    c"Device and dispatch counting exclude each other",
    c"The agent has no context",
    c"The sampling rate is too high",
    c"No queue for profiling",
    c"The configuration has no hardware counters",
    c"The configuration belongs to another agent",
    c"The feature is not available",
    c"More counters than hardware slots",
    c"The architecture is not supported",
    c"Permission denied",
];

/// `rocprofiler_get_status_string`: a text for people, null when unknown.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_status_string(status: Status) -> *const c_char {
    TEXTS
        .get(status.0 as usize)
        .map_or(ptr::null(), |text| text.as_ptr())
}

/// `rocprofiler_get_timestamp`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_timestamp(ts: *mut u64) -> Status {
    store(ts, clock::now());
    Status::SUCCESS
}

/// `rocprofiler_get_thread_id`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_thread_id(tid: *mut u64) -> Status {
    store(tid, thread::current());
    Status::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sdk_status_has_a_name_and_a_text_and_other_numbers_have_none() {
        for code in 0..41 {
            assert!(!rocprofiler_get_status_name(Status(code)).is_null());
            assert!(!rocprofiler_get_status_string(Status(code)).is_null());
        }
        assert!(rocprofiler_get_status_name(Status(41)).is_null());
        assert!(rocprofiler_get_status_string(Status(99)).is_null());
    }
}
