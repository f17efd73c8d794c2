//! Advice, prefetching and attributes of managed memory.

use core::ffi::{c_int, c_void};

use crate::hip::error::{HipResult, api, code, put};
use crate::hip::memory::{AllocationKind, MemoryPlace, find};
use crate::hip::runtime;
use crate::hip::types::Handle;

fn known_range(pointer: *const c_void, count: usize) -> HipResult<MemoryPlace> {
    let place = find(pointer as usize)?.ok_or(code::INVALID_VALUE)?;
    if count == 0 || !place.holds(pointer as usize, count) {
        return Err(code::INVALID_VALUE);
    }
    Ok(place)
}

fn device_or_host(ordinal: c_int) -> HipResult {
    const CPU: c_int = -1;
    if ordinal == CPU {
        Ok(())
    } else {
        runtime::device(ordinal).map(|_| ())
    }
}

/// Checks advice or prefetching, which change nothing: memory never moves on this device.
pub(crate) fn advise(
    pointer: *const c_void,
    count: usize,
    advice: u32,
    ordinal: c_int,
) -> HipResult {
    if !matches!(advice, 1..=6 | 100 | 101) {
        return Err(code::INVALID_VALUE);
    }
    device_or_host(ordinal)?;
    known_range(pointer, count).map(|_| ())
}

pub(crate) unsafe extern "C" fn hipMemAdvise(
    pointer: *const c_void,
    count: usize,
    advice: u32,
    ordinal: c_int,
) -> u32 {
    api(|| advise(pointer, count, advice, ordinal))
}

pub(crate) fn prefetch(
    pointer: *const c_void,
    count: usize,
    ordinal: c_int,
    stream: Handle,
) -> HipResult {
    device_or_host(ordinal)?;
    crate::hip::stream::resolve(stream)?;
    known_range(pointer, count).map(|_| ())
}

pub(crate) unsafe extern "C" fn hipMemPrefetchAsync(
    pointer: *const c_void,
    count: usize,
    ordinal: c_int,
    stream: Handle,
) -> u32 {
    api(|| prefetch(pointer, count, ordinal, stream))
}

/// Writes an attribute of a range, once for each number that `size` bytes have room for.
///
/// # Safety
/// `data` is null or has `size` bytes.
unsafe fn range_attribute(
    data: *mut c_void,
    size: usize,
    attribute: u32,
    (pointer, count): (*const c_void, usize),
) -> HipResult {
    const INVALID_DEVICE_ID: c_int = -2;
    known_range(pointer, count)?;
    let value = match attribute {
        1 | 100 => 0,
        2..=4 => INVALID_DEVICE_ID,
        _ => return Err(code::INVALID_VALUE),
    };
    if size < 4 || !size.is_multiple_of(4) {
        return Err(code::INVALID_VALUE);
    }
    for n in 0..size / 4 {
        // SAFETY: by contract, checked for null.
        unsafe { put(data.cast::<c_int>().wrapping_add(n), value)? };
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn hipMemRangeGetAttribute(
    data: *mut c_void,
    size: usize,
    attribute: u32,
    pointer: *const c_void,
    count: usize,
) -> u32 {
    // SAFETY: the caller's buffer.
    api(|| unsafe { range_attribute(data, size, attribute, (pointer, count)) })
}

pub(crate) unsafe extern "C" fn hipMemRangeGetAttributes(
    data: *mut *mut c_void,
    sizes: *mut usize,
    attributes: *mut u32,
    number: usize,
    pointer: *const c_void,
    count: usize,
) -> u32 {
    api(|| {
        if data.is_null() || sizes.is_null() || attributes.is_null() || number == 0 {
            return Err(code::INVALID_VALUE);
        }
        (0..number).try_for_each(|n| {
            // SAFETY: the caller's arrays have `number` entries.
            unsafe {
                let (data, size) = (data.add(n).read(), sizes.add(n).read());
                range_attribute(data, size, attributes.add(n).read(), (pointer, count))
            }
        })
    })
}

pub(crate) unsafe extern "C" fn hipStreamAttachMemAsync(
    stream: Handle,
    pointer: *mut c_void,
    length: usize,
    flags: u32,
) -> u32 {
    api(|| {
        crate::hip::stream::resolve(stream)?;
        let place = find(pointer as usize)?.ok_or(code::INVALID_VALUE)?;
        let whole = length == 0 || length == place.allocation.size;
        if !whole || !matches!(flags, 1 | 2 | 4) || place.allocation.kind != AllocationKind::Managed
        {
            return Err(code::INVALID_VALUE);
        }
        Ok(())
    })
}
