//! Advice, prefetching and attributes of managed memory.

use core::ffi::{c_int, c_void};

use crate::gpu::{agents, svm};
use crate::hip::device::Device;
use crate::hip::error::{HipResult, api, code, put};
use crate::hip::memory::{AllocationKind, MemoryPlace, find};
use crate::hip::runtime::{self, Opaque};
use crate::hip::stream::callback::HostCall;
use crate::hip::types::Handle;

/// `hipMemAdviseSetPreferredLocation`.
const SET_PREFERRED_LOCATION: u32 = 3;
/// `hipMemAdviseUnsetPreferredLocation`.
const UNSET_PREFERRED_LOCATION: u32 = 4;

fn known_range(pointer: *const c_void, count: usize) -> HipResult<MemoryPlace> {
    let place = find(pointer as usize)?.ok_or(code::INVALID_VALUE)?;
    if count == 0 || !place.holds(pointer as usize, count) {
        return Err(code::INVALID_VALUE);
    }
    Ok(place)
}

/// `hipCpuDeviceId`.
const CPU: c_int = -1;
/// `hipInvalidDeviceId`.
const INVALID_DEVICE_ID: c_int = -2;

/// Index of the agent of a device; 0 for the host.
fn device_or_host(ordinal: c_int) -> HipResult<usize> {
    if ordinal == CPU {
        return Ok(0);
    }
    let device = runtime::device(ordinal)?;
    let agent = agents::agent(device.agent).ok_or(code::INVALID_DEVICE)?;
    Ok(agent.index)
}

/// The device, or the host, of an agent.
fn ordinal_of(agent: Option<usize>) -> HipResult<c_int> {
    match agent {
        None => Ok(INVALID_DEVICE_ID),
        Some(0) => Ok(CPU),
        Some(index) => {
            let devices = &runtime::get()?.devices;
            let is_it = |device: &&'static Device| {
                agents::agent(device.agent).is_some_and(|agent| agent.index == index)
            };
            let found = devices.iter().find(is_it);
            Ok(found.map_or(INVALID_DEVICE_ID, |device| device.ordinal as c_int))
        }
    }
}

/// Checks advice, of which the preferred place has an effect.
pub(crate) fn advise(
    pointer: *const c_void,
    count: usize,
    advice: u32,
    ordinal: c_int,
) -> HipResult {
    if !matches!(advice, 1..=6 | 100 | 101) {
        return Err(code::INVALID_VALUE);
    }
    let agent = device_or_host(ordinal)?;
    known_range(pointer, count)?;
    match advice {
        SET_PREFERRED_LOCATION => svm::prefer(pointer as usize, Some(agent)),
        UNSET_PREFERRED_LOCATION => svm::prefer(pointer as usize, None),
        _ => {}
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn hipMemAdvise(
    pointer: *const c_void,
    count: usize,
    advice: u32,
    ordinal: c_int,
) -> u32 {
    api(|| advise(pointer, count, advice, ordinal))
}

/// Pages that move once the stream gets there.
struct Move {
    address: usize,
    count: usize,
    agent: usize,
}

unsafe extern "C" fn move_pages(data: *mut c_void) {
    // SAFETY: `prefetch` passed a box for exactly one call.
    let Move {
        address,
        count,
        agent,
    } = *unsafe { Box::from_raw(data.cast::<Move>()) };
    svm::prefetch(address, count, agent);
}

/// Moves managed memory to a device or the host, in the order of the stream; other memory stays where it is.
pub(crate) fn prefetch(
    pointer: *const c_void,
    count: usize,
    ordinal: c_int,
    stream: Handle,
) -> HipResult {
    let agent = device_or_host(ordinal)?;
    let stream = crate::hip::stream::resolve(stream)?;
    let place = known_range(pointer, count)?;
    // A graph has no nodes that move pages.
    if place.allocation.kind != AllocationKind::Managed || stream.is_capturing() {
        return Ok(());
    }
    let data = Box::into_raw(Box::new(Move {
        address: pointer as usize,
        count,
        agent,
    }));
    let call = HostCall::Function(Some(move_pages), Opaque(data.cast()));
    stream.host_call(call).inspect_err(|_| {
        // SAFETY: the call was refused, so the box is still ours.
        drop(unsafe { Box::from_raw(data) });
    })
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
    known_range(pointer, count)?;
    let value = match attribute {
        1 | 100 => 0,
        2 => ordinal_of(svm::preferred(pointer as usize))?,
        3 => INVALID_DEVICE_ID,
        4 => ordinal_of(svm::prefetched(pointer as usize))?,
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
