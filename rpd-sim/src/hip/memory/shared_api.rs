//! The functions of the API that share device memory and events with other processes.

use core::ffi::c_void;

use crate::api::types::IpcHandle;
use crate::hip::error::{HipResult, api, code, put};
use crate::hip::memory::physical::{self, SharedHandle};
use crate::hip::memory::{self, AllocationKind};
use crate::hip::runtime;
use crate::hip::stream::event;
use crate::hip::stream::shared_event::SharedEvent;
use crate::hip::types::{Handle, event_flag};

/// Content of a `hipIpcMemHandle_t`: the memory, and the offset of the address in it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Memory {
    shared: SharedHandle,
    size: u64,
    offset: u64,
    device: u64,
    unused: u64,
}

const _: () = assert!(size_of::<Memory>() == size_of::<IpcHandle>());

pub(crate) unsafe extern "C" fn hipIpcGetMemHandle(
    out: *mut IpcHandle,
    pointer: *mut c_void,
) -> u32 {
    api(|| {
        if out.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let address = pointer as usize;
        let place = memory::find(address)?.ok_or(code::INVALID_VALUE)?;
        if place.allocation.kind != AllocationKind::Device {
            return Err(code::INVALID_VALUE);
        }
        let runtime = runtime::get()?;
        // Nothing may write to the memory while it becomes shared.
        for device in &runtime.devices {
            device.synchronize()?;
        }
        let handle = Memory {
            shared: physical::share(place.base, place.allocation.size)?,
            size: place.allocation.size as u64,
            offset: (address - place.base) as u64,
            device: place.allocation.device as u64,
            unused: 0,
        };
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out.cast(), handle) }
    })
}

pub(crate) unsafe extern "C" fn hipIpcOpenMemHandle(
    out: *mut *mut c_void,
    handle: IpcHandle,
    flags: u32,
) -> u32 {
    const LAZY_PEER_ACCESS: u32 = 1;
    api(|| {
        if out.is_null() || flags != LAZY_PEER_ACCESS {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: equal size, and any bytes are numbers.
        let handle: Memory = unsafe { std::mem::transmute_copy(&handle) };
        let runtime = runtime::get()?;
        let device = usize::try_from(handle.device).ok();
        let device = device
            .and_then(|n| runtime.devices.get(n))
            .ok_or(code::INVALID_VALUE)?;
        let size = handle.size as usize;
        if handle.offset >= handle.size {
            return Err(code::INVALID_VALUE);
        }
        let base = physical::attach(&handle.shared, size, &runtime.gpu_agents())?;
        memory::note(
            base,
            size,
            AllocationKind::Attached,
            device.ordinal,
            0,
            base,
        )?;
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, (base + handle.offset as usize) as *mut c_void) }
    })
}

pub(crate) unsafe extern "C" fn hipIpcCloseMemHandle(pointer: *mut c_void) -> u32 {
    api(|| close(pointer as usize))
}

fn close(address: usize) -> HipResult {
    let place = memory::find(address)?.ok_or(code::INVALID_VALUE)?;
    let runtime = runtime::get()?;
    for device in &runtime.devices {
        device.synchronize()?;
    }
    memory::forget(place.base, |kind| kind == AllocationKind::Attached)
        .ok_or(code::INVALID_VALUE)?;
    physical::detach(place.base)
}

pub(crate) unsafe extern "C" fn hipIpcGetEventHandle(out: *mut IpcHandle, event: Handle) -> u32 {
    api(|| {
        if out.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let event = runtime::get()?.event(event)?;
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out.cast(), event.shared()?.handle()?) }
    })
}

pub(crate) unsafe extern "C" fn hipIpcOpenEventHandle(out: *mut Handle, handle: IpcHandle) -> u32 {
    api(|| {
        if out.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: equal size, and any bytes are numbers.
        let handle = unsafe { std::mem::transmute_copy(&handle) };
        let shared = SharedEvent::open(&handle)?;
        let flags = event_flag::INTERPROCESS | event_flag::DISABLE_TIMING;
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, event::add(flags, Some(shared))?) }
    })
}
