//! The calls of the HIP API that the library makes. Like those of the real library they go through the dispatch table,
//! so that tools trace them.

use core::ffi::{CStr, c_void};
use std::ptr;

use super::error::{Failure, Outcome, result};
use crate::api::call;

/// A `hipStream_t`, `hipModule_t`, `hipFunction_t` or `hipEvent_t` as a number, which can be passed to other threads.
pub(super) type Handle = usize;

fn check_status(name: &str, status: u32) -> Outcome {
    if status == 0 {
        return Ok(());
    }
    let text = format!("{name} returned {status}");
    Err(Failure::new(result::UNHANDLED_HIP_ERROR, text))
}

pub(super) fn device_count() -> Outcome<i32> {
    let mut count = 0i32;
    // SAFETY: the place is writable.
    let status = unsafe { call::hipGetDeviceCount(ptr::from_mut(&mut count).cast()) };
    check_status("hipGetDeviceCount", status).map(|()| count)
}

pub(super) fn device() -> Outcome<i32> {
    let mut device = 0i32;
    // SAFETY: the place is writable.
    let status = unsafe { call::hipGetDevice(ptr::from_mut(&mut device).cast()) };
    check_status("hipGetDevice", status).map(|()| device)
}

/// Runs `body` with a device as the thread's current one.
pub(super) fn on_device<T>(wanted: i32, body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let before = device()?;
    let set = |device| {
        // SAFETY: it takes any number.
        check_status("hipSetDevice", unsafe { call::hipSetDevice(device) })
    };
    if before == wanted {
        return body();
    }
    set(wanted)?;
    let answer = body();
    set(before).and(answer)
}

/// Makes host memory accessible to all GPUs.
///
/// # Safety
/// The memory is mapped until it is unregistered.
pub(super) unsafe fn register(base: *mut c_void, bytes: usize) -> Outcome {
    const PORTABLE_AND_MAPPED: u32 = 3;
    // SAFETY: by contract.
    let status = unsafe { call::hipHostRegister(base, bytes, PORTABLE_AND_MAPPED) };
    check_status("hipHostRegister", status)
}

/// Undoes [`register`].
pub(super) fn unregister(base: *mut c_void) -> Outcome {
    // SAFETY: it checks the address.
    check_status("hipHostUnregister", unsafe {
        call::hipHostUnregister(base)
    })
}

/// Allocates memory of the current device.
pub(super) fn malloc(bytes: usize) -> Outcome<*mut c_void> {
    let mut memory = ptr::null_mut::<c_void>();
    // SAFETY: the place is writable.
    let status = unsafe { call::hipMalloc(ptr::from_mut(&mut memory).cast(), bytes) };
    check_status("hipMalloc", status).map(|()| memory)
}

/// Frees memory of a device.
pub(super) fn free(memory: *mut c_void) -> Outcome {
    // SAFETY: it checks the address.
    check_status("hipFree", unsafe { call::hipFree(memory) })
}

/// A kernel of a bundle of code objects, loaded for the current device.
pub(super) fn load(image: &'static [u8], kernel: &CStr) -> Outcome<Handle> {
    let mut module = ptr::null_mut::<c_void>();
    let mut function = ptr::null_mut::<c_void>();
    // SAFETY: the places are writable, the image is a bundle that is never freed.
    unsafe {
        let image = image.as_ptr().cast_mut().cast();
        let status = call::hipModuleLoadData(ptr::from_mut(&mut module).cast(), image);
        check_status("hipModuleLoadData", status)?;
        let name = kernel.as_ptr().cast_mut().cast();
        let status = call::hipModuleGetFunction(ptr::from_mut(&mut function).cast(), module, name);
        check_status("hipModuleGetFunction", status)?;
    }
    Ok(function as Handle)
}

/// Launches one workgroup of a kernel.
///
/// # Safety
/// `arguments` is what the kernel takes.
pub(super) unsafe fn launch<A>(
    function: Handle,
    threads: u32,
    arguments: &A,
    stream: Handle,
) -> Outcome {
    let mut size = size_of::<A>();
    // HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END.
    let mut extra: [*mut c_void; 5] = [
        ptr::without_provenance_mut(1),
        ptr::from_ref(arguments).cast_mut().cast(),
        ptr::without_provenance_mut(2),
        ptr::from_mut(&mut size).cast(),
        ptr::without_provenance_mut(3),
    ];
    // SAFETY: by contract; the list is as the function takes it.
    let status = unsafe {
        call::hipModuleLaunchKernel(
            function as *mut c_void,
            1,
            1,
            1,
            threads,
            1,
            1,
            0,
            stream as *mut c_void,
            ptr::null_mut(),
            extra.as_mut_ptr().cast(),
        )
    };
    check_status("hipModuleLaunchKernel", status)
}

/// Makes later work of the stream `after` wait for the work that the stream `before` has now.
pub(super) fn order(after: Handle, before: Handle) -> Outcome {
    const DISABLE_TIMING: u32 = 2;
    let mut event = ptr::null_mut::<c_void>();
    // SAFETY: the place is writable; the event is one just made, and other handles are checked.
    unsafe {
        let place = ptr::from_mut(&mut event).cast();
        let status = call::hipEventCreateWithFlags(place, DISABLE_TIMING);
        check_status("hipEventCreateWithFlags", status)?;
        let ordered = check_status(
            "hipEventRecord",
            call::hipEventRecord(event, before as *mut c_void),
        )
        .and_then(|()| {
            let status = call::hipStreamWaitEvent(after as *mut c_void, event, 0);
            check_status("hipStreamWaitEvent", status)
        });
        check_status("hipEventDestroy", call::hipEventDestroy(event)).and(ordered)
    }
}

/// Whether a stream's operations are recorded into a graph.
pub(super) fn is_capturing(stream: Handle) -> Outcome<bool> {
    let mut status = 0u32;
    // SAFETY: the place is writable.
    let called = unsafe {
        call::hipStreamIsCapturing(stream as *mut c_void, ptr::from_mut(&mut status).cast())
    };
    check_status("hipStreamIsCapturing", called).map(|()| status != 0)
}

/// Waits for all work of the current device.
pub(super) fn synchronize_device() -> Outcome {
    // SAFETY: it takes nothing.
    check_status("hipDeviceSynchronize", unsafe {
        call::hipDeviceSynchronize()
    })
}

/// Waits for all work of a stream.
pub(super) fn synchronize(stream: Handle) -> Outcome {
    // SAFETY: it checks the handle.
    check_status("hipStreamSynchronize", unsafe {
        call::hipStreamSynchronize(stream as *mut c_void)
    })
}
