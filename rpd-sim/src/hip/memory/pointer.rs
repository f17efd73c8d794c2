//! Queries of properties of addresses.

use core::ffi::{c_int, c_void};

use crate::hip::error::{HipResult, api, code, put};
use crate::hip::memory::{self, AllocationKind, MemoryPlace};
use crate::hip::types::{PointerAttributes, memory_type};

fn type_of(place: &MemoryPlace) -> u32 {
    match place.allocation.kind {
        AllocationKind::Device
        | AllocationKind::Pooled
        | AllocationKind::Graph
        | AllocationKind::Mapped
        | AllocationKind::Attached => memory_type::DEVICE,
        AllocationKind::Array => memory_type::ARRAY,
        AllocationKind::Host | AllocationKind::Registered => memory_type::HOST,
        AllocationKind::Managed => memory_type::MANAGED,
    }
}

pub(crate) unsafe extern "C" fn hipPointerGetAttributes(
    out: *mut PointerAttributes,
    pointer: *const c_void,
) -> u32 {
    api(|| {
        if out.is_null() || pointer.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let attributes = match memory::find(pointer as usize)? {
            Some(place) => PointerAttributes {
                kind: type_of(&place),
                device: place.allocation.device as c_int,
                device_pointer: place.address as *mut c_void,
                host_pointer: if place.is_device() {
                    std::ptr::null_mut()
                } else {
                    pointer.cast_mut()
                },
                is_managed: c_int::from(place.allocation.kind == AllocationKind::Managed),
                allocation_flags: place.allocation.flags,
            },
            None => PointerAttributes {
                kind: memory_type::UNREGISTERED,
                device: -2,
                device_pointer: std::ptr::null_mut(),
                host_pointer: std::ptr::null_mut(),
                is_managed: 0,
                allocation_flags: 0,
            },
        };
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, attributes) }
    })
}

/// # Safety
/// `data` has room for the attribute's type.
unsafe fn attribute(data: *mut c_void, attribute: u32, pointer: *mut c_void) -> HipResult {
    let place = memory::find(pointer as usize)?;
    const MAPPED: u32 = 13;
    if attribute == MAPPED {
        // SAFETY: by contract.
        return unsafe { put(data.cast(), place.is_some()) };
    }
    let place = place.ok_or(code::INVALID_VALUE)?;
    let allocation = &place.allocation;
    // SAFETY: by contract; the values have the attributes' types.
    unsafe {
        match attribute {
            2 => put(data.cast(), type_of(&place)),
            3 => put(data.cast(), place.address),
            4 if !place.is_device() => put(data.cast(), pointer),
            4 => {
                put(data.cast::<usize>(), 0)?;
                Err(code::INVALID_VALUE)
            }
            6 => put(data.cast(), 1u32),
            7 => put(data.cast(), allocation.id),
            8 => put(data.cast(), allocation.kind == AllocationKind::Managed),
            9 => put(data.cast(), allocation.device as c_int),
            10 | 15 => put(data.cast(), false),
            11 => put(data.cast(), place.base),
            12 => put(data.cast(), allocation.size),
            14 => put(data.cast(), 0u32),
            16 => put(data.cast(), 3u32),
            17 => put(data.cast::<usize>(), 0),
            1 | 5 => Err(code::NOT_SUPPORTED),
            _ => Err(code::INVALID_VALUE),
        }
    }
}

pub(crate) unsafe extern "C" fn hipPointerGetAttribute(
    data: *mut c_void,
    which: u32,
    pointer: *mut c_void,
) -> u32 {
    // SAFETY: the caller's buffer, checked for null.
    api(|| unsafe { attribute(data, which, pointer) })
}

pub(crate) unsafe extern "C" fn hipPointerSetAttribute(
    value: *const c_void,
    which: u32,
    pointer: *mut c_void,
) -> u32 {
    const SYNC_MEMOPS: u32 = 6;
    api(|| {
        memory::find(pointer as usize)?.ok_or(code::INVALID_DEVICE_POINTER)?;
        // Memory operations are synchronous wherever the caller could observe the difference.
        if value.is_null() || which != SYNC_MEMOPS {
            Err(code::INVALID_VALUE)
        } else {
            Ok(())
        }
    })
}

pub(crate) unsafe extern "C" fn hipDrvPointerGetAttributes(
    count: u32,
    attributes: *mut u32,
    data: *mut *mut c_void,
    pointer: *mut c_void,
) -> u32 {
    api(|| {
        if attributes.is_null() || data.is_null() {
            return Err(code::INVALID_VALUE);
        }
        for n in 0..count as usize {
            // SAFETY: the caller's lists of `count` entries. An attribute without a value leaves its
            // place as it is.
            let _ = unsafe { attribute(data.add(n).read(), attributes.add(n).read(), pointer) };
        }
        Ok(())
    })
}
