//! The ROCTx marker library: behaviour of its functions when no tool traces them.

#![allow(non_snake_case)]

use core::{
    cell::Cell,
    ffi::{c_char, c_void},
    sync::atomic::{AtomicU64, Ordering},
};

/// Version of the library `libroctx64.so.4`, whose place this library takes.
const VERSION: (u32, u32) = (4, 1);

/// `roctx_version_major` of the library before the SDK's, which tools cannot trace.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn roctx_version_major() -> u32 {
    VERSION.0
}

/// `roctx_version_minor`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn roctx_version_minor() -> u32 {
    VERSION.1
}

thread_local! {
    static LEVEL: Cell<i32> = const { Cell::new(0) };
}

/// Id of the next process range, from 1.
static NEXT_RANGE: AtomicU64 = AtomicU64::new(1);

pub(crate) unsafe extern "C" fn roctxMarkA(_message: *const c_char) {}

/// Opens a range of the thread; returns its level, 0 for the outermost.
pub(crate) unsafe extern "C" fn roctxRangePushA(_message: *const c_char) -> i32 {
    LEVEL.with(|level| level.replace(level.get() + 1))
}

/// Closes the innermost range of the thread; returns its level, -1 when none was open.
pub(crate) unsafe extern "C" fn roctxRangePop() -> i32 {
    LEVEL.with(|level| match level.get() {
        0 => -1,
        n => {
            level.set(n - 1);
            n - 1
        }
    })
}

pub(crate) unsafe extern "C" fn roctxRangeStartA(_message: *const c_char) -> u64 {
    NEXT_RANGE.fetch_add(1, Ordering::Relaxed)
}

pub(crate) unsafe extern "C" fn roctxRangeStop(_id: u64) {}

/// Writes the kernel's id of the calling thread.
pub(crate) unsafe extern "C" fn roctxGetThreadId(tid: *mut u64) -> i32 {
    if tid.is_null() {
        return -1;
    }
    // SAFETY: the caller hands a writable place, not null as just seen.
    unsafe { tid.write(crate::gpu::thread::current()) };
    0
}

pub(crate) unsafe extern "C" fn roctxProfilerPause(_tid: u64) -> i32 {
    0
}

pub(crate) unsafe extern "C" fn roctxProfilerResume(_tid: u64) -> i32 {
    0
}

pub(crate) unsafe extern "C" fn roctxNameOsThread(_name: *const c_char) -> i32 {
    0
}

pub(crate) unsafe extern "C" fn roctxNameHsaAgent(
    _name: *const c_char,
    _agent: *const c_void,
) -> i32 {
    0
}

pub(crate) unsafe extern "C" fn roctxNameHipDevice(_name: *const c_char, _device_id: i32) -> i32 {
    0
}

pub(crate) unsafe extern "C" fn roctxNameHipStream(
    _name: *const c_char,
    _stream: *const c_void,
) -> i32 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roctx_levels_count_from_zero_and_end_at_minus_one() {
        let text = c"x".as_ptr();
        // SAFETY: the functions take any text.
        let levels = unsafe {
            [
                roctxRangePushA(text),
                roctxRangePushA(text),
                roctxRangePop(),
                roctxRangePop(),
                roctxRangePop(),
            ]
        };
        assert_eq!(levels, [0, 1, 1, 0, -1]);
    }
}
