//! The stream functions of the API.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::hip::error::{HipResult, api, code, put};
use crate::hip::graph::capture_rules;
use crate::hip::graph::{self, Op};
use crate::hip::runtime::{self, Opaque, write};
use crate::hip::stream::callback::HostCall;
use crate::hip::stream::{self, Stream};
use crate::hip::types::{
    Handle, HostFn, STREAM_LEGACY, STREAM_NON_BLOCKING, STREAM_PER_THREAD, StreamCallback,
};

fn create(out: *mut Handle, flags: u32, priority: c_int) -> HipResult {
    if out.is_null() || flags & !STREAM_NON_BLOCKING != 0 {
        return Err(code::INVALID_VALUE);
    }
    let device = runtime::current()?;
    let stream = Stream::new(device, flags, priority.clamp(-1, 1), false)?;
    let handle = Arc::as_ptr(&stream).cast_mut().cast::<c_void>();
    write(&runtime::get()?.streams).insert(handle as usize, stream);
    // SAFETY: the caller's pointer, not null.
    unsafe { put(out, handle) }
}

pub(crate) unsafe extern "C" fn hipStreamCreate(out: *mut Handle) -> u32 {
    api(|| create(out, 0, 0))
}

pub(crate) unsafe extern "C" fn hipStreamCreateWithFlags(out: *mut Handle, flags: u32) -> u32 {
    api(|| create(out, flags, 0))
}

pub(crate) unsafe extern "C" fn hipStreamCreateWithPriority(
    out: *mut Handle,
    flags: u32,
    priority: c_int,
) -> u32 {
    api(|| create(out, flags, priority))
}

pub(crate) unsafe extern "C" fn hipExtStreamCreateWithCUMask(
    out: *mut Handle,
    words: u32,
    mask: *const u32,
) -> u32 {
    api(|| {
        if words == 0 || mask.is_null() {
            return Err(code::INVALID_VALUE);
        }
        create(out, 0, 0)
    })
}

pub(crate) unsafe extern "C" fn hipExtStreamGetCUMask(
    stream: Handle,
    words: u32,
    mask: *mut u32,
) -> u32 {
    api(|| {
        let stream = stream::resolve(stream)?;
        let units = stream.device.figures.compute_units;
        if mask.is_null() || words < units.div_ceil(32) {
            return Err(code::INVALID_VALUE);
        }
        for word in 0..words {
            let bits = units.saturating_sub(32 * word).min(32);
            let value = if bits == 32 {
                u32::MAX
            } else {
                (1 << bits) - 1
            };
            // SAFETY: the caller's list of `words` entries.
            unsafe { put(mask.add(word as usize), value)? };
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipStreamDestroy(handle: Handle) -> u32 {
    api(|| {
        if matches!(handle as usize, 0 | STREAM_LEGACY | STREAM_PER_THREAD) {
            return Err(code::INVALID_HANDLE);
        }
        let stream = stream::resolve(handle)?;
        if stream.is_capturing() {
            stream.set_capture(None);
        }
        stream.synchronize()?;
        write(&runtime::get()?.streams)
            .remove(&(handle as usize))
            .ok_or(code::CONTEXT_IS_DESTROYED)?;
        Ok(())
    })
}

/// Checks that the host may wait for a stream now, which captures forbid. For the null stream captures of other streams
/// do not count.
fn ready(stream: &Stream) -> HipResult {
    if !stream.legacy {
        capture_rules::unsafe_call()?;
    }
    let slot = stream.capture();
    let Some(capture) = slot.as_ref() else {
        return Ok(());
    };
    capture.invalidate();
    Err(code::STREAM_CAPTURE_UNSUPPORTED)
}

fn query(stream: &Stream) -> HipResult {
    ready(stream)?;
    if stream.is_idle()? {
        Ok(())
    } else {
        Err(code::NOT_READY)
    }
}

/// Waits for a stream. The null stream has ended when all streams have that synchronise with it.
fn synchronize(stream: &Stream) -> HipResult {
    ready(stream)?;
    if stream.legacy {
        for other in stream.device.live_streams() {
            if other.is_blocking() && !other.legacy {
                other.synchronize()?;
            }
        }
    }
    stream.synchronize()?;
    stream.device.trim_pools();
    Ok(())
}

pub(crate) unsafe extern "C" fn hipStreamQuery(stream: Handle) -> u32 {
    api(|| query(&*stream::resolve(stream)?))
}

pub(crate) unsafe extern "C" fn hipStreamQuery_spt(stream: Handle) -> u32 {
    api(|| query(&*stream::resolve_spt(stream)?))
}

pub(crate) unsafe extern "C" fn hipStreamSynchronize(stream: Handle) -> u32 {
    api(|| synchronize(&*stream::resolve(stream)?))
}

pub(crate) unsafe extern "C" fn hipStreamSynchronize_spt(stream: Handle) -> u32 {
    api(|| synchronize(&*stream::resolve_spt(stream)?))
}

fn wait_event(stream: &Stream, event: Handle, flags: u32) -> HipResult {
    const EXTERNAL: u32 = 1;
    if flags & !EXTERNAL != 0 {
        return Err(code::INVALID_VALUE);
    }
    let event = runtime::get()?.event(event)?;
    graph::wait(stream, &event)
}

pub(crate) unsafe extern "C" fn hipStreamWaitEvent(
    stream: Handle,
    event: Handle,
    flags: u32,
) -> u32 {
    api(|| wait_event(&*stream::resolve(stream)?, event, flags))
}

pub(crate) unsafe extern "C" fn hipStreamWaitEvent_spt(
    stream: Handle,
    event: Handle,
    flags: u32,
) -> u32 {
    api(|| wait_event(&*stream::resolve_spt(stream)?, event, flags))
}

pub(crate) unsafe extern "C" fn hipStreamGetFlags(stream: Handle, flags: *mut u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(flags, stream::resolve(stream)?.flags) })
}

pub(crate) unsafe extern "C" fn hipStreamGetFlags_spt(stream: Handle, flags: *mut u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(flags, stream::resolve_spt(stream)?.flags) })
}

pub(crate) unsafe extern "C" fn hipStreamGetPriority(stream: Handle, priority: *mut c_int) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(priority, stream::resolve(stream)?.priority) })
}

pub(crate) unsafe extern "C" fn hipStreamGetPriority_spt(
    stream: Handle,
    priority: *mut c_int,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(priority, stream::resolve_spt(stream)?.priority) })
}

pub(crate) unsafe extern "C" fn hipStreamGetDevice(stream: Handle, device: *mut c_int) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(device, stream::resolve(stream)?.device.ordinal as c_int) })
}

pub(crate) unsafe extern "C" fn hipGetStreamDeviceId(stream: Handle) -> c_int {
    stream::resolve(stream).map_or(-1, |stream| stream.device.ordinal as c_int)
}

fn host_function(stream: &Stream, function: HostFn, data: *mut c_void) -> HipResult {
    if function.is_none() {
        return Err(code::INVALID_VALUE);
    }
    graph::submit(stream, Op::Host(HostCall::Function(function, Opaque(data))))
}

pub(crate) unsafe extern "C" fn hipLaunchHostFunc(
    stream: Handle,
    function: HostFn,
    data: *mut c_void,
) -> u32 {
    api(|| host_function(&*stream::resolve(stream)?, function, data))
}

pub(crate) unsafe extern "C" fn hipLaunchHostFunc_spt(
    stream: Handle,
    function: HostFn,
    data: *mut c_void,
) -> u32 {
    api(|| host_function(&*stream::resolve_spt(stream)?, function, data))
}

fn add_callback(
    stream: &Stream,
    handle: Handle,
    callback: StreamCallback,
    data: *mut c_void,
    flags: u32,
) -> HipResult {
    if flags != 0 || callback.is_none() {
        return Err(code::INVALID_VALUE);
    }
    let call = HostCall::Callback(callback, Opaque(handle), Opaque(data));
    graph::submit(stream, Op::Host(call))
}

pub(crate) unsafe extern "C" fn hipStreamAddCallback(
    stream: Handle,
    callback: StreamCallback,
    data: *mut c_void,
    flags: u32,
) -> u32 {
    api(|| add_callback(&*stream::resolve(stream)?, stream, callback, data, flags))
}

pub(crate) unsafe extern "C" fn hipStreamAddCallback_spt(
    stream: Handle,
    callback: StreamCallback,
    data: *mut c_void,
    flags: u32,
) -> u32 {
    api(|| {
        add_callback(
            &*stream::resolve_spt(stream)?,
            stream,
            callback,
            data,
            flags,
        )
    })
}
