//! Contexts: one for each device, its handle is the device's address.

use core::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::hip::error::{HipResult, api, code, put};
use crate::hip::graph::capture_rules;
use crate::hip::runtime;
use crate::hip::types::Handle;

fn context_of(ordinal: usize) -> HipResult<Handle> {
    let devices = &runtime::get()?.devices;
    let device = devices.get(ordinal).ok_or(code::INVALID_DEVICE)?;
    Ok(std::ptr::from_ref(device).cast_mut().cast())
}

fn device_of(context: Handle) -> HipResult<usize> {
    let devices = &runtime::get()?.devices;
    let same = |device: &&crate::hip::device::Device| {
        std::ptr::eq(std::ptr::from_ref(*device), context.cast())
    };
    devices
        .iter()
        .find(same)
        .map(|device| device.ordinal)
        .ok_or(code::INVALID_CONTEXT)
}

thread_local! {
    /// Devices under the current one, most recent last.
    static CONTEXTS: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

pub(crate) unsafe extern "C" fn hipCtxCreate(
    context: *mut Handle,
    _flags: u32,
    ordinal: c_int,
) -> u32 {
    api(|| {
        let device = runtime::device(ordinal)?.ordinal;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(context, context_of(device)?)? };
        CONTEXTS.with_borrow_mut(|stack| stack.push(runtime::current_ordinal()));
        runtime::set_current(device);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipCtxDestroy(context: Handle) -> u32 {
    api(|| {
        let device = device_of(context)?;
        if device == runtime::current_ordinal()
            && let Some(below) = CONTEXTS.with_borrow_mut(Vec::pop)
        {
            runtime::set_current(below);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipCtxGetCurrent(context: *mut Handle) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(context, context_of(runtime::current_ordinal())?) })
}

pub(crate) unsafe extern "C" fn hipCtxSetCurrent(context: Handle) -> u32 {
    api(|| {
        if !context.is_null() {
            runtime::set_current(device_of(context)?);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipCtxPushCurrent(context: Handle) -> u32 {
    api(|| {
        let device = device_of(context)?;
        CONTEXTS.with_borrow_mut(|stack| stack.push(runtime::current_ordinal()));
        runtime::set_current(device);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipCtxPopCurrent(context: *mut Handle) -> u32 {
    api(|| {
        let below = CONTEXTS
            .with_borrow_mut(Vec::pop)
            .ok_or(code::INVALID_CONTEXT)?;
        if !context.is_null() {
            // SAFETY: the caller's pointer, not null.
            unsafe { put(context, context_of(runtime::current_ordinal())?)? };
        }
        runtime::set_current(below);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipCtxGetDevice(device: *mut c_int) -> u32 {
    api(|| {
        runtime::get()?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(device, runtime::current_ordinal() as c_int) }
    })
}

pub(crate) unsafe extern "C" fn hipCtxGetApiVersion(context: Handle, version: *mut u32) -> u32 {
    api(|| {
        if !context.is_null() {
            device_of(context)?;
        }
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(version, 4) }
    })
}

pub(crate) unsafe extern "C" fn hipCtxGetFlags(flags: *mut u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(flags, runtime::current()?.flags.load(Ordering::Relaxed)) })
}

pub(crate) unsafe extern "C" fn hipDevicePrimaryCtxRetain(
    context: *mut Handle,
    ordinal: c_int,
) -> u32 {
    api(|| {
        let device = runtime::device(ordinal)?;
        device.retained.store(true, Ordering::Relaxed);
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(context, context_of(device.ordinal)?) }
    })
}

pub(crate) unsafe extern "C" fn hipDevicePrimaryCtxRelease(ordinal: c_int) -> u32 {
    api(|| {
        runtime::device(ordinal)?
            .retained
            .store(false, Ordering::Relaxed);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipDevicePrimaryCtxReset(ordinal: c_int) -> u32 {
    api(|| crate::hip::memory::reset(runtime::device(ordinal)?))
}

pub(crate) unsafe extern "C" fn hipDevicePrimaryCtxSetFlags(ordinal: c_int, _flags: u32) -> u32 {
    // The context is always active, so its flags cannot change any more.
    api(|| runtime::device(ordinal).and(Err(code::CONTEXT_ALREADY_IN_USE)))
}

pub(crate) unsafe extern "C" fn hipDevicePrimaryCtxGetState(
    ordinal: c_int,
    flags: *mut u32,
    active: *mut c_int,
) -> u32 {
    api(|| {
        let device = runtime::device(ordinal)?;
        if !flags.is_null() {
            // SAFETY: the caller's pointer, not null.
            unsafe { put(flags, device.flags.load(Ordering::Relaxed))? };
        }
        if !active.is_null() {
            // SAFETY: the caller's pointer, not null.
            unsafe {
                put(
                    active,
                    c_int::from(device.ordinal == runtime::current_ordinal()),
                )?
            };
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipCtxSynchronize() -> u32 {
    api(|| {
        capture_rules::device_wait()?;
        runtime::current()?.synchronize()
    })
}
