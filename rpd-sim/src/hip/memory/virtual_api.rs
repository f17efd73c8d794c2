//! The functions of the API that reserve addresses, allocate physical memory and map one to the other.

use core::ffi::{c_int, c_void};
use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::hip::device::Device;
use crate::hip::error::{HipResult, api, code, put};
use crate::hip::memory::physical;
use crate::hip::memory::{self, AllocationKind};
use crate::hip::runtime::{self, lock};
use crate::hip::types::{Handle, MemAccessDesc, MemLocation};

/// `hipMemAllocationProp`: type, location and export of physical memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllocationProperties {
    kind: u32,
    handle_kind: u32,
    location: MemLocation,
    win32: *mut c_void,
    flags: [u8; 4],
}

const _: () = assert!(size_of::<AllocationProperties>() == 32);

/// `hipMemAllocationTypePinned`.
const PINNED: u32 = 1;
/// `hipMemLocationTypeDevice`.
const DEVICE: u32 = 1;
/// `hipMemHandleTypePosixFileDescriptor`.
const DESCRIPTOR: u32 = 1;
/// Granularity of physical memory and its mappings in bytes.
const PAGE: usize = 4096;

/// A part of reserved addresses at which memory is mapped.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    size: usize,
    device: usize,
}

/// Ranges of reserved addresses that have memory, by their first address.
#[derive(Debug, Default)]
pub(crate) struct Mappings(Mutex<BTreeMap<usize, Mapping>>);

impl Mappings {
    /// The mappings that make up a range; fails if they leave gaps in it.
    fn covering(&self, base: usize, size: usize) -> HipResult<Vec<(usize, Mapping)>> {
        let end = base.checked_add(size).ok_or(code::INVALID_VALUE)?;
        let table = lock(&self.0);
        let parts: Vec<_> = table
            .range(base..end)
            .map(|(&at, &mapping)| (at, mapping))
            .collect();
        let mut next = base;
        for (at, mapping) in &parts {
            if *at != next {
                return Err(code::INVALID_VALUE);
            }
            next += mapping.size;
        }
        if next == end && size != 0 {
            Ok(parts)
        } else {
            Err(code::INVALID_VALUE)
        }
    }
}

fn device_of(properties: &AllocationProperties) -> HipResult<&'static Device> {
    if properties.kind != PINNED || properties.location.kind != DEVICE {
        return Err(code::INVALID_VALUE);
    }
    runtime::device(properties.location.id)
}

/// # Safety
/// `properties` is null or valid.
unsafe fn read(properties: *const AllocationProperties) -> HipResult<AllocationProperties> {
    // SAFETY: by contract.
    unsafe { properties.as_ref() }
        .copied()
        .ok_or(code::INVALID_VALUE)
}

pub(crate) unsafe extern "C" fn hipMemGetAllocationGranularity(
    out: *mut usize,
    properties: *const AllocationProperties,
    option: u32,
) -> u32 {
    const RECOMMENDED: u32 = 1;
    api(|| {
        // SAFETY: the caller's struct, checked for null.
        device_of(&unsafe { read(properties)? })?;
        let bytes = match option {
            0 => PAGE,
            RECOMMENDED => 2 << 20,
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, bytes) }
    })
}

pub(crate) unsafe extern "C" fn hipMemAddressReserve(
    out: *mut *mut c_void,
    size: usize,
    alignment: usize,
    wanted: *mut c_void,
    flags: u64,
) -> u32 {
    api(|| {
        if out.is_null() || size == 0 || !size.is_multiple_of(PAGE) || flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        let base = physical::reserve(size, wanted as usize, alignment)?;
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, base as *mut c_void) }
    })
}

pub(crate) unsafe extern "C" fn hipMemAddressFree(base: *mut c_void, size: usize) -> u32 {
    api(|| physical::unreserve(base as usize, size))
}

pub(crate) unsafe extern "C" fn hipMemCreate(
    out: *mut Handle,
    size: usize,
    properties: *const AllocationProperties,
    flags: u64,
) -> u32 {
    api(|| {
        if out.is_null() || size == 0 || !size.is_multiple_of(PAGE) || flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's struct, checked for null.
        let device = device_of(&unsafe { read(properties)? })?;
        let handle = physical::create(device.vram, size)?;
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, handle as Handle) }
    })
}

pub(crate) unsafe extern "C" fn hipMemRelease(handle: Handle) -> u32 {
    api(|| physical::release(handle as u64))
}

/// The device whose memory a handle stands for.
fn owner(handle: u64) -> HipResult<&'static Device> {
    let pool = physical::pool(handle)?;
    runtime::get()?
        .devices
        .iter()
        .find(|device| device.vram == pool || device.vram_fine == pool)
        .ok_or(code::INVALID_VALUE)
}

pub(crate) unsafe extern "C" fn hipMemMap(
    at: *mut c_void,
    size: usize,
    offset: usize,
    handle: Handle,
    flags: u64,
) -> u32 {
    api(|| {
        if at.is_null() || handle.is_null() || offset != 0 || flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        let device = owner(handle as u64)?;
        let base = at as usize;
        physical::map(base, size, handle as u64)?;
        let mapping = Mapping {
            size,
            device: device.ordinal,
        };
        lock(&runtime::get()?.mappings.0).insert(base, mapping);
        memory::note(base, size, AllocationKind::Mapped, device.ordinal, 0, base)
    })
}

pub(crate) unsafe extern "C" fn hipMemUnmap(at: *mut c_void, size: usize) -> u32 {
    api(|| {
        let runtime = runtime::get()?;
        let parts = runtime.mappings.covering(at as usize, size)?;
        for (_, mapping) in &parts {
            runtime.devices[mapping.device].synchronize()?;
        }
        for (base, mapping) in parts {
            physical::unmap(base, mapping.size)?;
            lock(&runtime.mappings.0).remove(&base);
            memory::forget(base, |kind| kind == AllocationKind::Mapped);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipMemSetAccess(
    at: *mut c_void,
    size: usize,
    list: *const MemAccessDesc,
    count: usize,
) -> u32 {
    api(|| {
        if list.is_null() || count == 0 {
            return Err(code::INVALID_VALUE);
        }
        let runtime = runtime::get()?;
        let parts = runtime.mappings.covering(at as usize, size)?;
        for n in 0..count {
            // SAFETY: the caller's list has `count` entries.
            let access = unsafe { list.add(n).read_unaligned() };
            if access.location.kind != DEVICE || !matches!(access.flags, 0 | 1 | 3) {
                return Err(code::INVALID_VALUE);
            }
            let agent = runtime::device(access.location.id)?.agent;
            for (base, mapping) in &parts {
                physical::access(*base, mapping.size, agent, access.flags)?;
            }
        }
        // The host reaches what any device may use.
        for (base, mapping) in &parts {
            physical::access(*base, mapping.size, runtime.cpu, 3)?;
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipMemGetAccess(
    flags: *mut u64,
    location: *const MemLocation,
    at: *mut c_void,
) -> u32 {
    api(|| {
        // SAFETY: the caller's struct, checked for null.
        let location = unsafe { location.as_ref() }.ok_or(code::INVALID_VALUE)?;
        if location.kind != DEVICE {
            return Err(code::INVALID_VALUE);
        }
        let agent = runtime::device(location.id)?.agent;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(flags, u64::from(physical::access_of(at as usize, agent)?)) }
    })
}

pub(crate) unsafe extern "C" fn hipMemRetainAllocationHandle(
    out: *mut Handle,
    at: *mut c_void,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(out, physical::at(at as usize)? as Handle) })
}

pub(crate) unsafe extern "C" fn hipMemGetAllocationPropertiesFromHandle(
    out: *mut AllocationProperties,
    handle: Handle,
) -> u32 {
    api(|| {
        let properties = AllocationProperties {
            kind: PINNED,
            handle_kind: DESCRIPTOR,
            location: MemLocation {
                kind: DEVICE,
                id: owner(handle as u64)?.ordinal as c_int,
            },
            win32: std::ptr::null_mut(),
            flags: [0; 4],
        };
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, properties) }
    })
}

pub(crate) unsafe extern "C" fn hipMemExportToShareableHandle(
    out: *mut c_void,
    handle: Handle,
    kind: u32,
    flags: u64,
) -> u32 {
    api(|| {
        if out.is_null() || kind != DESCRIPTOR || flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's pointer to a descriptor, not null.
        unsafe { put(out.cast::<c_int>(), physical::export(handle as u64)?) }
    })
}

pub(crate) unsafe extern "C" fn hipMemImportFromShareableHandle(
    out: *mut Handle,
    descriptor: *mut c_void,
    kind: u32,
) -> u32 {
    api(|| {
        if out.is_null() || kind != DESCRIPTOR {
            return Err(code::INVALID_VALUE);
        }
        // The descriptor is passed as if it were a pointer.
        let handle = physical::import(descriptor as usize as c_int)?;
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, handle as Handle) }
    })
}
