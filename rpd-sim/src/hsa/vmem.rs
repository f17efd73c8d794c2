//! Virtual memory: reserved address ranges and the physical memory mapped into them.

use core::ffi::c_void;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::IntoRawFd;

use super::shared::memory_file;
use super::state::{lock, state};
use super::support::{agent, api, array, ensure, pool, put};
use super::types::{MemoryAccessDesc, Status, status};
use crate::gpu::agents::{self, Pool};
use crate::gpu::machine::machine;
use crate::gpu::memory::{GRANULE, Use};

/// Physical memory: a file in memory, so that several address ranges can map it.
#[derive(Debug)]
pub(super) struct Physical {
    pool: &'static Pool,
    size: usize,
    file: i32,
    kind: u32,
    references: usize,
    released: bool,
    /// Whether the bytes count as used memory of the pool; another process accounts for memory that it has passed on.
    accounted: bool,
}

impl Physical {
    /// Memory of another process, behind a descriptor that the new value owns.
    pub(super) fn imported(pool: &'static Pool, size: usize, file: i32) -> Self {
        Self {
            pool,
            size,
            file,
            kind: 0,
            references: 0,
            released: false,
            accounted: false,
        }
    }
}

#[derive(Debug)]
struct Mapping {
    size: usize,
    handle: u64,
    /// Rights of each agent, values of `hsa_access_permission_t`.
    permissions: [u32; agents::MAX_GPUS + 1],
}

/// Reserved address ranges, handles of physical memory, and mappings.
#[derive(Debug, Default)]
pub(crate) struct Vmem {
    reserved: BTreeMap<usize, usize>,
    handles: HashMap<u64, Physical>,
    mappings: BTreeMap<usize, Mapping>,
}

impl Vmem {
    pub(super) fn insert(&mut self, handle: u64, physical: Physical) {
        self.handles.insert(handle, physical);
    }

    /// Descriptor of physical memory; the handle keeps owning it.
    pub(super) fn file(&self, handle: u64) -> Option<i32> {
        self.handles.get(&handle).map(|physical| physical.file)
    }

    fn release_if_unused(&mut self, handle: u64) {
        let unused = self
            .handles
            .get(&handle)
            .is_some_and(|physical| physical.released && physical.references == 0);
        if unused && let Some(physical) = self.handles.remove(&handle) {
            if physical.accounted {
                machine().memory.unaccount(physical.pool, physical.size);
            }
            // SAFETY: the descriptor is this entry's own.
            unsafe { libc::close(physical.file) };
        }
    }
}

fn reserve_bytes(
    at: usize,
    size: usize,
    fixed: bool,
    protection: i32,
    file: i32,
    offset: usize,
) -> Option<usize> {
    let mut flags = if file < 0 {
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE
    } else {
        libc::MAP_SHARED
    };
    if fixed {
        flags |= libc::MAP_FIXED;
    }
    // SAFETY: fixed mappings are only requested inside ranges this module reserved.
    let address = unsafe {
        libc::mmap(
            at as *mut _,
            size,
            protection,
            flags,
            file,
            offset as libc::off_t,
        )
    };
    (address != libc::MAP_FAILED).then_some(address as usize)
}

/// Reserves a range of addresses without memory.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_address_reserve(
    va: *mut *mut c_void,
    size: usize,
    address: u64,
    flags: u64,
) -> Status {
    // SAFETY: the same promises.
    unsafe { hsa_amd_vmem_address_reserve_align(va, size, address, 0, flags) }
}

/// Reserves a range of addresses without memory, at a multiple of an alignment.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_address_reserve_align(
    va: *mut *mut c_void,
    size: usize,
    address: u64,
    alignment: u64,
    _flags: u64,
) -> Status {
    api(|| {
        ensure(!va.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let alignment = (alignment as usize).max(GRANULE);
        let valid = size != 0 && size.is_multiple_of(GRANULE) && alignment.is_power_of_two();
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        let wide = size.checked_add(alignment - GRANULE);
        let wide = wide.ok_or(status::ERROR_OUT_OF_RESOURCES)?;
        let base = reserve_bytes(address as usize, wide, false, libc::PROT_NONE, -1, 0);
        let base = base.ok_or(status::ERROR_OUT_OF_RESOURCES)?;
        let aligned = base.next_multiple_of(alignment);
        for (start, end) in [(base, aligned), (aligned + size, base + wide)] {
            if start < end {
                // SAFETY: these are the parts of the fresh mapping that are not needed.
                unsafe { libc::munmap(start as *mut _, end - start) };
            }
        }
        lock(&state().vmem).reserved.insert(aligned, size);
        // SAFETY: the program's pointer is writable.
        unsafe { put(va, aligned) }
    })
}

/// Frees reserved addresses, at which nothing may be mapped.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_address_free(va: *mut c_void, size: usize) -> Status {
    api(|| {
        let mut vmem = lock(&state().vmem);
        let base = va as usize;
        let found = vmem.reserved.get(&base) == Some(&size);
        ensure(found, status::ERROR_INVALID_ALLOCATION)?;
        let mapped = vmem.mappings.range(base..base + size).next().is_some();
        ensure(!mapped, status::ERROR_RESOURCE_FREE)?;
        vmem.reserved.remove(&base);
        // SAFETY: the range is a reservation of this module without mappings in it.
        unsafe { libc::munmap(va, size) };
        Ok(())
    })
}

/// Allocates physical memory.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_handle_create(
    memory_pool: u64,
    size: usize,
    kind: u32,
    _flags: u64,
    memory_handle: *mut u64,
) -> Status {
    api(|| {
        let pool = pool(memory_pool)?;
        ensure(!memory_handle.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        ensure(kind <= 1, status::ERROR_INVALID_ARGUMENT)?;
        ensure(pool.allocatable(), status::ERROR_INVALID_ARGUMENT)?;
        ensure(
            size != 0 && size.is_multiple_of(GRANULE),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        let memory = &machine().memory;
        memory
            .account(pool, size)
            .map_err(|_| status::ERROR_OUT_OF_RESOURCES)?;
        let Some(file) = memory_file(size) else {
            memory.unaccount(pool, size);
            return Err(status::ERROR_OUT_OF_RESOURCES);
        };
        let handle = state().handle();
        let physical = Physical {
            pool,
            size,
            file: file.into_raw_fd(),
            kind,
            references: 0,
            released: false,
            accounted: true,
        };
        lock(&state().vmem).insert(handle, physical);
        // SAFETY: the program's pointer is writable.
        unsafe { put(memory_handle, handle) }
    })
}

/// Releases physical memory, which is freed when it is not mapped any more.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_handle_release(memory_handle: u64) -> Status {
    api(|| {
        let mut vmem = lock(&state().vmem);
        let physical = vmem.handles.get_mut(&memory_handle);
        let physical = physical.filter(|physical| !physical.released);
        physical.ok_or(status::ERROR_INVALID_ALLOCATION)?.released = true;
        vmem.release_if_unused(memory_handle);
        Ok(())
    })
}

/// Maps physical memory at reserved addresses, without access rights yet.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_map(
    va: *mut c_void,
    size: usize,
    in_offset: usize,
    memory_handle: u64,
    _flags: u64,
) -> Status {
    api(|| {
        let mut vmem = lock(&state().vmem);
        let base = va as usize;
        let end = base
            .checked_add(size)
            .ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let room = vmem.reserved.range(..=base).next_back();
        let inside = room.is_some_and(|(start, bytes)| end <= start + bytes);
        ensure(inside && size != 0, status::ERROR_INVALID_ARGUMENT)?;
        let free = vmem
            .mappings
            .range(..end)
            .next_back()
            .is_none_or(|(start, mapping)| start + mapping.size <= base);
        ensure(free, status::ERROR_INVALID_ARGUMENT)?;
        let physical = vmem.handles.get_mut(&memory_handle);
        let physical = physical.ok_or(status::ERROR_INVALID_ALLOCATION)?;
        let fits = in_offset.is_multiple_of(GRANULE)
            && in_offset
                .checked_add(size)
                .is_some_and(|end| end <= physical.size);
        ensure(fits, status::ERROR_INVALID_ARGUMENT)?;
        reserve_bytes(base, size, true, libc::PROT_NONE, physical.file, in_offset)
            .ok_or(status::ERROR_OUT_OF_RESOURCES)?;
        physical.references += 1;
        let pool = physical.pool;
        let mapping = Mapping {
            size,
            handle: memory_handle,
            permissions: [0; agents::MAX_GPUS + 1],
        };
        vmem.mappings.insert(base, mapping);
        machine().memory.adopt(pool, base, size, Use::Virtual, 0);
        Ok(())
    })
}

/// Undoes a mapping.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_unmap(va: *mut c_void, size: usize) -> Status {
    api(|| {
        let mut vmem = lock(&state().vmem);
        let base = va as usize;
        let known = vmem.mappings.get(&base).is_some_and(|m| m.size == size);
        ensure(known, status::ERROR_INVALID_ALLOCATION)?;
        let mapping = vmem.mappings.remove(&base).ok_or(status::ERROR)?;
        machine().memory.free(base, Use::Virtual);
        reserve_bytes(base, size, true, libc::PROT_NONE, -1, 0)
            .ok_or(status::ERROR_OUT_OF_RESOURCES)?;
        if let Some(physical) = vmem.handles.get_mut(&mapping.handle) {
            physical.references -= 1;
        }
        vmem.release_if_unused(mapping.handle);
        Ok(())
    })
}

/// Sets the access rights of a mapping.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_set_access(
    va: *mut c_void,
    size: usize,
    desc: *const MemoryAccessDesc,
    desc_cnt: usize,
) -> Status {
    api(|| {
        ensure(
            !desc.is_null() && desc_cnt != 0,
            status::ERROR_INVALID_ARGUMENT,
        )?;
        let mut vmem = lock(&state().vmem);
        let base = va as usize;
        let known = vmem.mappings.get(&base).is_some_and(|m| m.size == size);
        ensure(known, status::ERROR_INVALID_ALLOCATION)?;
        let mapping = vmem.mappings.get_mut(&base).ok_or(status::ERROR)?;
        // SAFETY: the program's array has the length that it passes.
        for desc in unsafe { array(desc, desc_cnt) } {
            ensure(desc.permissions <= 3, status::ERROR_INVALID_ARGUMENT)?;
            mapping.permissions[agent(desc.agent)?.index] = desc.permissions;
        }
        let any = mapping.permissions.iter().fold(0, |all, one| all | one);
        let mut protection = libc::PROT_NONE;
        if any & 1 != 0 {
            protection |= libc::PROT_READ;
        }
        if any & 2 != 0 {
            protection |= libc::PROT_READ | libc::PROT_WRITE;
        }
        // SAFETY: the range is a mapping of this module.
        let done = unsafe { libc::mprotect(va, size, protection) } == 0;
        ensure(done, status::ERROR)?;
        let mask = mapping
            .permissions
            .iter()
            .enumerate()
            .filter(|(_, permission)| **permission != 0)
            .fold(0, |mask, (index, _)| mask | 1 << index);
        let memory = &machine().memory;
        if let Some(block) = memory.find(base) {
            memory.set_access_exactly(&block, mask);
        }
        Ok(())
    })
}

/// Writes the access rights of an agent to a mapping.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_get_access(
    va: *mut c_void,
    perms: *mut u32,
    agent_handle: u64,
) -> Status {
    api(|| {
        let agent = agent(agent_handle)?;
        ensure(!perms.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let vmem = lock(&state().vmem);
        let address = va as usize;
        let mapping = vmem.mappings.range(..=address).next_back();
        let mapping = mapping.filter(|(start, mapping)| address < *start + mapping.size);
        let (_, mapping) = mapping.ok_or(status::ERROR_INVALID_ALLOCATION)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(perms, mapping.permissions[agent.index]) }
    })
}

/// Writes the handle of the physical memory that is mapped at an address.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_retain_alloc_handle(
    memory_handle: *mut u64,
    addr: *mut c_void,
) -> Status {
    api(|| {
        ensure(
            !memory_handle.is_null() && !addr.is_null(),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        let vmem = lock(&state().vmem);
        let address = addr as usize;
        let mapping = vmem.mappings.range(..=address).next_back();
        let mapping = mapping.filter(|(start, mapping)| address < *start + mapping.size);
        let (_, mapping) = mapping.ok_or(status::ERROR_INVALID_ALLOCATION)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(memory_handle, mapping.handle) }
    })
}

/// Writes the parameters with which physical memory was allocated.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_get_alloc_properties_from_handle(
    alloc_handle: u64,
    memory_pool: *mut u64,
    kind: *mut u32,
) -> Status {
    api(|| {
        let valid = !memory_pool.is_null() && !kind.is_null();
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        let vmem = lock(&state().vmem);
        let physical = vmem.handles.get(&alloc_handle);
        let physical = physical.ok_or(status::ERROR_INVALID_ALLOCATION)?;
        // SAFETY: the program's pointers are writable.
        unsafe {
            put(memory_pool, physical.pool.handle())?;
            put(kind, physical.kind)
        }
    })
}
