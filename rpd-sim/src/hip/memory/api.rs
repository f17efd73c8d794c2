//! The functions that allocate, register and free memory.

use core::ffi::c_void;
use std::sync::atomic::Ordering;

use crate::hip::error::{HipError, HipResult, api, code, put};
use crate::hip::graph::capture_rules;
use crate::hip::hsa;
use crate::hip::memory::{AllocationKind, find, free, malloc_device, malloc_host, note};
use crate::hip::runtime::{self, read};
use crate::hip::types::{Extent, PitchedPtr};

/// Writes the address of an allocation; null if the allocation failed.
///
/// # Safety
/// As for [`put`].
unsafe fn put_address(out: *mut *mut c_void, made: impl FnOnce() -> HipResult<usize>) -> HipResult {
    if out.is_null() {
        return Err(code::INVALID_VALUE);
    }
    match made() {
        // SAFETY: the caller's pointer, not null.
        Ok(address) => unsafe { put(out, address as *mut c_void) },
        Err(error) => {
            // SAFETY: the caller's pointer, not null.
            unsafe { put(out, std::ptr::null_mut())? };
            Err(error)
        }
    }
}

pub(crate) unsafe extern "C" fn hipMalloc(out: *mut *mut c_void, size: usize) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe {
        capture_rules::unsafe_call()?;
        put_address(out, || malloc_device(size, false))
    })
}

pub(crate) unsafe extern "C" fn hipExtMallocWithFlags(
    out: *mut *mut c_void,
    size: usize,
    flags: u32,
) -> u32 {
    const FINE_GRAINED: u32 = 1;
    const SIGNAL: u32 = 2;
    const UNCACHED: u32 = 3;
    api(|| {
        let fine = match flags {
            0 | 4 => false,
            FINE_GRAINED | UNCACHED => true,
            SIGNAL if size == 8 => true,
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put_address(out, || malloc_device(size, fine)) }
    })
}

pub(crate) unsafe extern "C" fn hipMallocManaged(
    out: *mut *mut c_void,
    size: usize,
    flags: u32,
) -> u32 {
    api(|| {
        capture_rules::unsafe_call()?;
        if size == 0 || !matches!(flags, 0..=2) {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's pointer, checked for null.
        unsafe {
            put_address(out, || {
                malloc_host(size, AllocationKind::Managed, flags.max(1))
            })
        }
    })
}

/// All flags that host allocations may have.
const HOST_FLAGS: u32 = 0xE000_0007;

fn host_flags(flags: u32) -> HipResult {
    const COHERENCE: u32 = 0xC000_0000;
    capture_rules::unsafe_call()?;
    if flags & !HOST_FLAGS != 0 || flags & COHERENCE == COHERENCE {
        return Err(code::INVALID_VALUE);
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn hipHostMalloc(
    out: *mut *mut c_void,
    size: usize,
    flags: u32,
) -> u32 {
    api(|| {
        host_flags(flags)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put_address(out, || malloc_host(size, AllocationKind::Host, flags)) }
    })
}

pub(crate) unsafe extern "C" fn hipHostAlloc(
    out: *mut *mut c_void,
    size: usize,
    flags: u32,
) -> u32 {
    // SAFETY: the arguments are the caller's.
    unsafe { hipHostMalloc(out, size, flags) }
}

pub(crate) unsafe extern "C" fn hipExtHostAlloc(
    out: *mut *mut c_void,
    size: usize,
    flags: u32,
) -> u32 {
    // SAFETY: the arguments are the caller's.
    unsafe { hipHostMalloc(out, size, flags) }
}

pub(crate) unsafe extern "C" fn hipMallocHost(out: *mut *mut c_void, size: usize) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put_address(out, || malloc_host(size, AllocationKind::Host, 0)) })
}

pub(crate) unsafe extern "C" fn hipMemAllocHost(out: *mut *mut c_void, size: usize) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put_address(out, || malloc_host(size, AllocationKind::Host, 0)) })
}

pub(crate) unsafe extern "C" fn hipFree(pointer: *mut c_void) -> u32 {
    api(|| {
        capture_rules::unsafe_call()?;
        free(pointer, |kind| {
            !matches!(
                kind,
                AllocationKind::Registered | AllocationKind::Host | AllocationKind::Array
            )
        })
    })
}

pub(crate) unsafe extern "C" fn hipHostFree(pointer: *mut c_void) -> u32 {
    api(|| {
        capture_rules::unsafe_call()?;
        free(pointer, |kind| kind == AllocationKind::Host)
    })
}

pub(crate) unsafe extern "C" fn hipFreeHost(pointer: *mut c_void) -> u32 {
    api(|| {
        capture_rules::unsafe_call()?;
        free(pointer, |kind| kind == AllocationKind::Host)
    })
}

pub(crate) unsafe extern "C" fn hipHostRegister(
    pointer: *mut c_void,
    size: usize,
    flags: u32,
) -> u32 {
    const KNOWN: u32 = 0xf;
    api(|| {
        capture_rules::unsafe_call()?;
        let runtime = runtime::get()?;
        if pointer.is_null() || size == 0 || flags & !KNOWN != 0 {
            return Err(code::INVALID_VALUE);
        }
        let base = pointer as usize;
        let known = find(base)?.is_some() || find(base + size - 1)?.is_some();
        if known
            || read(&runtime.allocations)
                .range(base..base + size)
                .next()
                .is_some()
        {
            return Err(code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let agent_address = hsa::lock(base, size, &runtime.gpu_agents())?;
        note(
            base,
            size,
            AllocationKind::Registered,
            runtime::current()?.ordinal,
            flags,
            agent_address,
        )
    })
}

pub(crate) unsafe extern "C" fn hipHostUnregister(pointer: *mut c_void) -> u32 {
    api(|| {
        if pointer.is_null() {
            return Err(code::INVALID_VALUE);
        }
        free(pointer, |kind| kind == AllocationKind::Registered).map_err(|error: HipError| {
            match error {
                code::INVALID_VALUE => code::HOST_MEMORY_NOT_REGISTERED,
                other => other,
            }
        })
    })
}

pub(crate) unsafe extern "C" fn hipHostGetDevicePointer(
    out: *mut *mut c_void,
    pointer: *mut c_void,
    _flags: u32,
) -> u32 {
    api(|| {
        let place = find(pointer as usize)?.filter(|place| !place.is_device());
        // SAFETY: the caller's pointer, checked for null.
        unsafe {
            put(
                out,
                place.ok_or(code::INVALID_VALUE)?.address as *mut c_void,
            )
        }
    })
}

pub(crate) unsafe extern "C" fn hipHostGetFlags(flags: *mut u32, pointer: *mut c_void) -> u32 {
    api(|| {
        let place = find(pointer as usize)?.filter(|place| !place.is_device());
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(flags, place.ok_or(code::INVALID_VALUE)?.allocation.flags) }
    })
}

/// Alignment of rows of pitched memory in bytes.
const PITCH_ALIGN: usize = 256;

fn malloc_pitched(width: usize, rows: usize) -> HipResult<(usize, usize)> {
    let pitch = width
        .checked_next_multiple_of(PITCH_ALIGN)
        .ok_or(code::INVALID_VALUE)?;
    let size = pitch.checked_mul(rows).ok_or(code::OUT_OF_MEMORY)?;
    Ok((malloc_device(size, false)?, pitch))
}

pub(crate) unsafe extern "C" fn hipMallocPitch(
    out: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> u32 {
    api(|| {
        if out.is_null() || pitch.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let (base, bytes) = malloc_pitched(width, height)?;
        // SAFETY: the caller's pointers, not null.
        unsafe {
            put(out, base as *mut c_void)?;
            put(pitch, bytes)
        }
    })
}

pub(crate) unsafe extern "C" fn hipMemAllocPitch(
    out: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: u32,
) -> u32 {
    if !matches!(element, 4 | 8 | 16) {
        return api(|| Err(code::INVALID_VALUE));
    }
    // SAFETY: the caller's pointers.
    unsafe { hipMallocPitch(out, pitch, width, height) }
}

pub(crate) unsafe extern "C" fn hipMalloc3D(out: *mut PitchedPtr, extent: Extent) -> u32 {
    api(|| {
        if out.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let rows = extent
            .height
            .checked_mul(extent.depth)
            .ok_or(code::INVALID_VALUE)?;
        let (base, pitch) = malloc_pitched(extent.width, rows)?;
        let made = PitchedPtr {
            ptr: base as *mut c_void,
            pitch,
            xsize: extent.width,
            ysize: extent.height,
        };
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, made) }
    })
}

pub(crate) unsafe extern "C" fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> u32 {
    api(|| {
        let device = runtime::current()?;
        if free.is_null() && total.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let left = device
            .total
            .saturating_sub(device.used.load(Ordering::Relaxed));
        for (out, value) in [(free, left), (total, device.total)] {
            if !out.is_null() {
                // SAFETY: the caller's pointer, not null.
                unsafe { put(out, value)? };
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipMemPtrGetInfo(pointer: *mut c_void, size: *mut usize) -> u32 {
    api(|| {
        let place = find(pointer as usize)?.ok_or(code::INVALID_VALUE)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(size, place.allocation.size) }
    })
}

pub(crate) unsafe extern "C" fn hipMemGetAddressRange(
    base: *mut *mut c_void,
    size: *mut usize,
    pointer: *mut c_void,
) -> u32 {
    api(|| {
        let place = find(pointer as usize)?.ok_or(code::NOT_FOUND)?;
        if !base.is_null() {
            // SAFETY: the caller's pointer, not null.
            unsafe { put(base, place.base as *mut c_void)? };
        }
        if !size.is_null() {
            // SAFETY: the caller's pointer, not null.
            unsafe { put(size, place.allocation.size)? };
        }
        Ok(())
    })
}
