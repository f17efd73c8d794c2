//! Regions and memory pools: allocation, access rights, locking, pointer queries, synchronous copy and fill.

use core::ffi::c_void;

use super::support::{Outcome, agent, api, array, each, ensure, pool, put};
use super::types::{
    HandleCallback, LinkInfo, POINTER_TYPE_HSA, POINTER_TYPE_LOCKED, POINTER_TYPE_UNKNOWN,
    PointerInfo, Status, link_type, status,
};
use crate::gpu::agents::{self, Pool};
use crate::gpu::check;
use crate::gpu::machine::machine;
use crate::gpu::memory::{AllocError, FreeCallback, GRANULE, Use};

/// `hsa_region_segment_t`: global and group.
const SEGMENT_GLOBAL: u32 = 0;
const SEGMENT_GROUP: u32 = 3;

fn region(handle: u64) -> Result<&'static Pool, Status> {
    agents::pool(handle).ok_or(status::ERROR_INVALID_REGION)
}

/// Pools that an agent owns, in the order in which the runtime lists them.
fn pools_of(agent: usize) -> impl Iterator<Item = &'static Pool> {
    agents::pools()
        .iter()
        .filter(move |pool| pool.agent == agent)
}

fn alloc_status(error: AllocError) -> Status {
    match error {
        AllocError::Invalid => status::ERROR_INVALID_ALLOCATION,
        AllocError::Exhausted => status::ERROR_OUT_OF_RESOURCES,
    }
}

/// Writes an attribute that regions and pools share, under the same number.
unsafe fn shared_info(pool: &'static Pool, attribute: u32, value: *mut c_void) -> Outcome {
    let can = pool.allocatable();
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match attribute {
            0 => put(value, if can { SEGMENT_GLOBAL } else { SEGMENT_GROUP }),
            1 => put(value, pool.global_flags()),
            2 => put(value, pool.bytes),
            5 => put(value, can),
            6 | 7 => put(value, if can { GRANULE } else { 0 }),
            _ => Err(status::ERROR_INVALID_ARGUMENT),
        }
    }
}

/// Calls back for every region of an agent; a GPU lists the regions of system memory as well.
pub(crate) unsafe extern "C" fn hsa_agent_iterate_regions(
    handle: u64,
    callback: HandleCallback,
    data: *mut c_void,
) -> Status {
    api(|| {
        let agent = agent(handle)?;
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let system = pools_of(0).filter(|_| agent.is_gpu());
        each(pools_of(agent.index).chain(system), |pool| {
            // SAFETY: the program's callback takes its own data.
            unsafe { callback(pool.handle(), data) }
        })
    })
}

/// Writes the value of an `hsa_region_info_t` or `hsa_amd_region_info_t`.
pub(crate) unsafe extern "C" fn hsa_region_get_info(
    handle: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        let region = region(handle)?;
        ensure(!value.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer has room for the attribute's type.
        unsafe {
            match attribute {
                4 => put(
                    value,
                    if region.allocatable() {
                        region.bytes
                    } else {
                        0
                    },
                ),
                8 => put(value, 0u32),
                0xA000 => put(value, region.is_system()),
                0xA001 => put(value, 0u64),
                0xA002 => put(value, agents::agents()[region.agent].memory_width),
                0xA003 => put(value, agents::agents()[region.agent].memory_clock_mhz),
                _ => shared_info(region, attribute, value),
            }
        }
    })
}

/// Calls back for every pool of an agent.
pub(crate) unsafe extern "C" fn hsa_amd_agent_iterate_memory_pools(
    handle: u64,
    callback: HandleCallback,
    data: *mut c_void,
) -> Status {
    api(|| {
        let agent = agent(handle)?;
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's callback takes its own data.
        each(pools_of(agent.index), |pool| unsafe {
            callback(pool.handle(), data)
        })
    })
}

/// Writes the value of an `hsa_amd_memory_pool_info_t`.
pub(crate) unsafe extern "C" fn hsa_amd_memory_pool_get_info(
    handle: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        let pool = pool(handle)?;
        ensure(!value.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer has room for the attribute's type.
        unsafe {
            match attribute {
                15 => put(value, pool.is_system()),
                16 => put(value, if pool.allocatable() { pool.bytes } else { 0 }),
                17 => {
                    ensure(pool.allocatable(), status::ERROR_INVALID_ARGUMENT)?;
                    put(value, u32::from(!pool.is_system()))
                }
                18 => {
                    let device = if pool.allocatable() { 2 << 20 } else { 0 };
                    put(value, if pool.is_system() { GRANULE } else { device })
                }
                _ => shared_info(pool, attribute, value),
            }
        }
    })
}

/// Writes how an agent can access a pool, and over which links.
pub(crate) unsafe extern "C" fn hsa_amd_agent_memory_pool_get_info(
    handle: u64,
    memory_pool: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        let agent = agent(handle)?;
        let pool = pool(memory_pool)?;
        ensure(!value.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let own = pool.agent == agent.index;
        let reachable = own || pool.allocatable();
        // SAFETY: the program's pointer has room for the attribute's type.
        unsafe {
            match attribute {
                0 => put(
                    value,
                    match (own, reachable) {
                        (true, _) => 1u32,
                        (_, true) => 2,
                        _ => 0,
                    },
                ),
                1 => put(value, u32::from(!own && reachable)),
                2 if own || !reachable => Ok(()),
                2 => {
                    let link = agent.link_to(&agents::agents()[pool.agent]);
                    let link = link.ok_or(status::ERROR_INVALID_ARGUMENT)?;
                    let info = LinkInfo {
                        atomic_support_32bit: true,
                        atomic_support_64bit: true,
                        coherent_support: true,
                        link_type: if link.xgmi {
                            link_type::XGMI
                        } else {
                            link_type::PCIE
                        },
                        numa_distance: link.weight,
                        ..LinkInfo::default()
                    };
                    put(value, info)
                }
                _ => Err(status::ERROR_INVALID_ARGUMENT),
            }
        }
    })
}

/// Allocates memory of a region, accessible to all agents.
pub(crate) unsafe extern "C" fn hsa_memory_allocate(
    handle: u64,
    size: usize,
    ptr: *mut *mut c_void,
) -> Status {
    api(|| {
        ensure(size != 0 && !ptr.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let region = region(handle)?;
        let everyone = if region.is_system() { u64::MAX } else { 0 };
        let block = machine()
            .memory
            .allocate(region, size, Use::Program, everyone)
            .map_err(alloc_status)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(ptr, block.base) }
    })
}

/// Frees memory of a region or pool.
pub(crate) unsafe extern "C" fn hsa_memory_free(ptr: *mut c_void) -> Status {
    api(|| {
        let freed = ptr.is_null() || machine().memory.free(ptr as usize, Use::Program);
        ensure(freed, status::ERROR_INVALID_ALLOCATION)
    })
}

/// Allocates memory of a pool, accessible to the pool's agent only until others are allowed.
pub(crate) unsafe extern "C" fn hsa_amd_memory_pool_allocate(
    memory_pool: u64,
    size: usize,
    _flags: u32,
    ptr: *mut *mut c_void,
) -> Status {
    api(|| {
        ensure(size != 0 && !ptr.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let pool = pool(memory_pool)?;
        let block = machine()
            .memory
            .allocate(pool, size, Use::Program, 0)
            .map_err(alloc_status)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(ptr, block.base) }
    })
}

/// Frees memory that `hsa_amd_memory_pool_allocate` gave.
pub(crate) unsafe extern "C" fn hsa_amd_memory_pool_free(ptr: *mut c_void) -> Status {
    // SAFETY: the same promise.
    unsafe { hsa_memory_free(ptr) }
}

/// Allows access to an allocation for the given agents and its owner only.
pub(crate) unsafe extern "C" fn hsa_amd_agents_allow_access(
    num_agents: u32,
    agents: *const u64,
    flags: *const u32,
    ptr: *const c_void,
) -> Status {
    api(|| {
        let valid = num_agents != 0 && !agents.is_null() && flags.is_null() && !ptr.is_null();
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's array has the length that it passes.
        let mask = unsafe { agent_mask(agents, num_agents as usize) }?;
        let memory = &machine().memory;
        let block = memory.find(ptr as usize).ok_or(status::ERROR)?;
        memory.set_access(&block, mask);
        Ok(())
    })
}

unsafe fn agent_mask(handles: *const u64, count: usize) -> Result<u64, Status> {
    // SAFETY: the caller's promise.
    let handles = unsafe { array(handles, count) };
    handles
        .iter()
        .try_fold(0, |mask, &handle| Ok(mask | agent(handle)?.bit()))
}

/// Writes that memory cannot move between pools, as the simulator has no migration.
pub(crate) unsafe extern "C" fn hsa_amd_memory_pool_can_migrate(
    src_memory_pool: u64,
    dst_memory_pool: u64,
    result: *mut bool,
) -> Status {
    api(|| {
        pool(src_memory_pool)?;
        pool(dst_memory_pool)?;
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(result, false) }
    })
}

/// Accepts memory of the program without an effect: agents access such memory through locks only.
pub(crate) unsafe extern "C" fn hsa_memory_register(ptr: *mut c_void, size: usize) -> Status {
    api(|| {
        let valid = size == 0 || !ptr.is_null();
        ensure(valid, status::ERROR_INVALID_ARGUMENT)
    })
}

/// Undoes [`hsa_memory_register`].
pub(crate) unsafe extern "C" fn hsa_memory_deregister(_ptr: *mut c_void, _size: usize) -> Status {
    api(|| Ok(()))
}

/// Moves an allocation to another agent; access rights do not change.
pub(crate) unsafe extern "C" fn hsa_memory_assign_agent(
    ptr: *mut c_void,
    handle: u64,
    access: u32,
) -> Status {
    api(|| {
        let valid = !ptr.is_null() && (1..=3).contains(&access);
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        agent(handle).map(drop)
    })
}

/// Copies between any two addresses the host reaches.
pub(crate) unsafe extern "C" fn hsa_memory_copy(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
) -> Status {
    api(|| {
        if size == 0 {
            return Ok(());
        }
        ensure(
            !dst.is_null() && !src.is_null(),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        // SAFETY: the program vouches for both ranges; `copy` allows overlap.
        unsafe { std::ptr::copy(src.cast::<u8>(), dst.cast::<u8>(), size) };
        Ok(())
    })
}

/// Fills memory with a 32-bit value, `count` times.
pub(crate) unsafe extern "C" fn hsa_amd_memory_fill(
    ptr: *mut c_void,
    value: u32,
    count: usize,
) -> Status {
    api(|| {
        if count == 0 {
            return Ok(());
        }
        let aligned = !ptr.is_null() && (ptr as usize).is_multiple_of(4);
        ensure(aligned, status::ERROR_INVALID_ARGUMENT)?;
        let bytes = count.checked_mul(4).ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let known = machine().memory.check(ptr as usize, bytes, 0).is_ok();
        ensure(known, status::ERROR_INVALID_ALLOCATION)?;
        // SAFETY: the range was just found to be allocated, and it is aligned.
        unsafe { std::slice::from_raw_parts_mut(ptr.cast::<u32>(), count) }.fill(value);
        if let Some(session) = check::session() {
            session.wrote_range(ptr as u64, bytes as u64);
        }
        Ok(())
    })
}

unsafe fn lock(
    host_ptr: *mut c_void,
    size: usize,
    agents: *const u64,
    num_agent: i32,
    agent_ptr: *mut *mut c_void,
) -> Outcome {
    let valid = size != 0 && !host_ptr.is_null() && !agent_ptr.is_null();
    ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
    let listed = num_agent != 0 && !agents.is_null();
    let unlisted = num_agent == 0 && agents.is_null();
    ensure(listed || unlisted, status::ERROR_INVALID_ARGUMENT)?;
    let mask = if unlisted {
        u64::MAX
    } else {
        // SAFETY: the program's array has the length that it passes.
        unsafe { agent_mask(agents, num_agent.max(0) as usize) }?
    };
    machine()
        .memory
        .lock_range(host_ptr as usize, size, mask)
        .ok_or(status::ERROR_OUT_OF_RESOURCES)?;
    // SAFETY: the program's pointer is writable.
    unsafe { put(agent_ptr, host_ptr) }
}

/// Makes memory of the program accessible to agents, at the same address.
pub(crate) unsafe extern "C" fn hsa_amd_memory_lock(
    host_ptr: *mut c_void,
    size: usize,
    agents: *const u64,
    num_agent: i32,
    agent_ptr: *mut *mut c_void,
) -> Status {
    // SAFETY: the same promises.
    api(|| unsafe { lock(host_ptr, size, agents, num_agent, agent_ptr) })
}

/// Makes memory of the program accessible to agents as if it came from a system pool.
pub(crate) unsafe extern "C" fn hsa_amd_memory_lock_to_pool(
    host_ptr: *mut c_void,
    size: usize,
    agents: *const u64,
    num_agent: i32,
    memory_pool: u64,
    _flags: u32,
    agent_ptr: *mut *mut c_void,
) -> Status {
    api(|| {
        ensure(
            pool(memory_pool)?.is_system(),
            status::ERROR_INVALID_MEMORY_POOL,
        )?;
        // SAFETY: the same promises.
        unsafe { lock(host_ptr, size, agents, num_agent, agent_ptr) }
    })
}

/// Undoes a lock of host memory.
pub(crate) unsafe extern "C" fn hsa_amd_memory_unlock(host_ptr: *mut c_void) -> Status {
    api(|| {
        machine().memory.unlock_range(host_ptr as usize);
        Ok(())
    })
}

/// Writes the properties of an address.
pub(crate) unsafe extern "C" fn hsa_amd_pointer_info(
    ptr: *const c_void,
    info: *mut PointerInfo,
    alloc: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    num_agents_accessible: *mut u32,
    accessible: *mut *mut u64,
) -> Status {
    api(|| {
        ensure(
            !ptr.is_null() && !info.is_null(),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        // The list of agents is allocated by the program's function, so that both pointers or neither must be there.
        let lists = (num_agents_accessible.is_null(), accessible.is_null());
        let wanted = match (alloc, lists) {
            (None, (true, true)) => None,
            (Some(alloc), (false, false)) => Some(alloc),
            _ => return Err(status::ERROR_INVALID_ARGUMENT),
        };
        // An address that the runtime does not know is no error: programs ask in order to find out.
        let block = machine().memory.find(ptr as usize);
        let mut answer = PointerInfo {
            size: size_of::<PointerInfo>() as u32,
            kind: POINTER_TYPE_UNKNOWN,
            agent_base_address: 0,
            host_base_address: 0,
            size_in_bytes: 0,
            user_data: 0,
            agent_owner: 0,
            global_flags: 0,
        };
        if let Some(block) = &block {
            let locked = block.purpose == Use::Locked;
            answer.kind = if locked {
                POINTER_TYPE_LOCKED
            } else {
                POINTER_TYPE_HSA
            };
            // Device and host address are the same, because device memory is memory of this process.
            answer.agent_base_address = block.base as u64;
            answer.host_base_address = block.base as u64;
            answer.size_in_bytes = block.size;
            answer.user_data = block.user_data();
            answer.agent_owner = agents::agents()[block.pool.agent].handle();
            answer.global_flags = block.pool.global_flags();
        }
        // SAFETY: `size` is the part of the struct that the program has; bytes are copied, not fields.
        // Older programs have a shorter struct; newer fields must not be written behind it.
        unsafe {
            let known = (*info).size.min(answer.size);
            ensure(known != 0, status::ERROR_INVALID_ARGUMENT)?;
            answer.size = known;
            let bytes = std::ptr::from_ref(&answer).cast::<u8>();
            info.cast::<u8>().copy_from(bytes, known as usize);
        }
        let Some(alloc) = wanted else {
            return Ok(());
        };
        let mask = block.map_or(0, |block| block.access());
        let list: Vec<u64> = agents::agents()
            .iter()
            .filter(|agent| mask & agent.bit() != 0)
            .map(|agent| agent.handle())
            .collect();
        // SAFETY: the program's pointers are writable and its allocator answers null or enough memory.
        unsafe {
            put(num_agents_accessible, list.len() as u32)?;
            // Allocators may return null for 0 bytes, which would look like a failure.
            let place = alloc(list.len().max(1) * size_of::<u64>()).cast::<u64>();
            ensure(!place.is_null(), status::ERROR_OUT_OF_RESOURCES)?;
            place.copy_from_nonoverlapping(list.as_ptr(), list.len());
            put(accessible, place)
        }
    })
}

/// Attaches a value to an allocation.
pub(crate) unsafe extern "C" fn hsa_amd_pointer_info_set_userdata(
    ptr: *const c_void,
    userdata: *mut c_void,
) -> Status {
    api(|| {
        ensure(!ptr.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let block = machine().memory.find(ptr as usize);
        let block = block.filter(|block| block.base == ptr as usize);
        let block = block.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        block.set_user_data(userdata as u64);
        Ok(())
    })
}

/// Registers a function that is called when an allocation is freed.
pub(crate) unsafe extern "C" fn hsa_amd_register_deallocation_callback(
    ptr: *mut c_void,
    callback: Option<FreeCallback>,
    user_data: *mut c_void,
) -> Status {
    api(|| {
        ensure(!ptr.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let block = machine().memory.find(ptr as usize);
        let block = block.ok_or(status::ERROR_INVALID_ALLOCATION)?;
        block.on_free(callback, user_data as usize);
        Ok(())
    })
}

/// Removes a function that was registered for the release of memory.
pub(crate) unsafe extern "C" fn hsa_amd_deregister_deallocation_callback(
    ptr: *mut c_void,
    callback: Option<FreeCallback>,
) -> Status {
    api(|| {
        ensure(!ptr.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let block = machine().memory.find(ptr as usize);
        let known = block.is_some_and(|block| block.forget_on_free(callback));
        ensure(known, status::ERROR_INVALID_ARGUMENT)
    })
}

/// Writes the coherency of an agent: always coherent.
pub(crate) unsafe extern "C" fn hsa_amd_coherency_get_type(handle: u64, kind: *mut u32) -> Status {
    api(|| {
        ensure(agent(handle)?.is_gpu(), status::ERROR_INVALID_AGENT)?;
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(kind, 0u32) }
    })
}

/// Accepts a coherency without an effect: memory stays coherent, which every type allows.
pub(crate) unsafe extern "C" fn hsa_amd_coherency_set_type(handle: u64, kind: u32) -> Status {
    api(|| {
        ensure(kind <= 1, status::ERROR_INVALID_ARGUMENT)?;
        ensure(agent(handle)?.is_gpu(), status::ERROR_INVALID_AGENT)
    })
}

/// Registers a callback for memory faults.
pub(crate) unsafe extern "C" fn hsa_amd_register_system_event_handler(
    callback: Option<crate::gpu::machine::SystemEventHandler>,
    data: *mut c_void,
) -> Status {
    api(|| {
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        machine()
            .system_handlers
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push((callback, data as usize));
        Ok(())
    })
}
