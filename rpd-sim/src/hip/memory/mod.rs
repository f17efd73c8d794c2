//! Memory that programs allocate or register, and queries about addresses.

pub(crate) mod api;
pub(crate) mod managed_api;
pub(crate) mod physical;
pub(crate) mod pointer;
pub(crate) mod pool;
pub(crate) mod shared_api;
pub(crate) mod virtual_api;

use core::ffi::c_void;
use std::sync::atomic::Ordering;

use crate::gpu::svm;
use crate::hip::device::Device;
use crate::hip::error::{HipResult, code};
use crate::hip::hsa;
use crate::hip::runtime::{self, Runtime, read, write};

/// Origin of memory, which decides how it is freed and what pointer queries say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocationKind {
    /// Device memory of `hipMalloc`.
    Device,
    /// Device memory of a pool, from `hipMallocAsync`.
    Pooled,
    /// Device memory of an allocation node of a graph.
    Graph,
    /// Physical memory at reserved addresses.
    Mapped,
    /// Device memory of another process.
    Attached,
    /// Device memory of an array, whose address programs do not get.
    Array,
    /// Host memory that the runtime allocated.
    Host,
    /// Host memory of the program that was pinned.
    Registered,
    /// Managed memory of `hipMallocManaged`.
    Managed,
}

/// An allocation that the runtime has recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocation {
    pub(crate) size: usize,
    pub(crate) kind: AllocationKind,
    /// Ordinal of the device of the memory; for host memory the current device at the time of allocation.
    pub(crate) device: usize,
    /// Flags with which the memory was allocated or registered.
    pub(crate) flags: u32,
    /// Address the devices use.
    pub(crate) agent_address: usize,
    /// Serial number, for `HIP_POINTER_ATTRIBUTE_BUFFER_ID`.
    pub(crate) id: u64,
}

/// Location of an address in an allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryPlace {
    /// First address of the allocation.
    pub(crate) base: usize,
    pub(crate) allocation: Allocation,
    /// Address that devices have for the same byte.
    pub(crate) address: usize,
}

impl MemoryPlace {
    pub(crate) fn is_device(&self) -> bool {
        matches!(
            self.allocation.kind,
            AllocationKind::Device
                | AllocationKind::Pooled
                | AllocationKind::Graph
                | AllocationKind::Mapped
                | AllocationKind::Attached
                | AllocationKind::Array
        )
    }

    /// Whether `size` bytes from the address on are inside the allocation.
    pub(crate) fn holds(&self, address: usize, size: usize) -> bool {
        size <= self.base + self.allocation.size - address
    }
}

/// The allocation that contains an address; `None` for memory that the runtime does not know.
pub(crate) fn find(address: usize) -> HipResult<Option<MemoryPlace>> {
    let table = read(&runtime::get()?.allocations);
    Ok(table
        .range(..=address)
        .next_back()
        .and_then(|(&base, allocation)| {
            (address < base + allocation.size).then(|| MemoryPlace {
                base,
                allocation: *allocation,
                address: address - base + allocation.agent_address,
            })
        }))
}

/// Whether memory that HSA has allocated at an address is neither of a pool nor at reserved addresses.
pub(crate) fn is_of_hip_malloc(base: usize) -> bool {
    let Some(runtime) = runtime::existing() else {
        return true;
    };
    let table = read(&runtime.allocations);
    let kind = table.get(&base).map(|allocation| allocation.kind);
    !matches!(
        kind,
        Some(AllocationKind::Pooled | AllocationKind::Graph | AllocationKind::Mapped)
    )
}

fn next_id() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Adds memory to the table of allocations.
pub(crate) fn note(
    base: usize,
    size: usize,
    kind: AllocationKind,
    device: usize,
    flags: u32,
    agent_address: usize,
) -> HipResult {
    let allocation = Allocation {
        size,
        kind,
        device,
        flags,
        agent_address,
        id: next_id(),
    };
    write(&runtime::get()?.allocations).insert(base, allocation);
    Ok(())
}

/// Removes memory that starts at `base` from the table. Fails unless its kind is one that `wanted` accepts.
pub(crate) fn forget(base: usize, wanted: impl Fn(AllocationKind) -> bool) -> Option<Allocation> {
    let mut table = write(&runtime::get().ok()?.allocations);
    table
        .get(&base)
        .filter(|allocation| wanted(allocation.kind))?;
    table.remove(&base)
}

/// Other agents that may access a device's memory.
fn sharers(runtime: &Runtime, device: &Device) -> Vec<u64> {
    // The device itself and all that have enabled access to it.
    let enabled = |peer: &&Device| {
        peer.ordinal == device.ordinal
            || peer.peers.load(Ordering::Acquire) & (1 << device.ordinal) != 0
    };
    runtime
        .devices
        .iter()
        .filter(enabled)
        .map(|peer| peer.agent)
        .collect()
}

/// Gives the peers with enabled access the existing allocations of `device`.
pub(crate) fn share(device: &Device) -> HipResult {
    let runtime = runtime::get()?;
    let agents = sharers(runtime, device);
    let bases: Vec<usize> = read(&runtime.allocations)
        .iter()
        .filter(|(_, a)| {
            a.device == device.ordinal
                && matches!(
                    a.kind,
                    AllocationKind::Device
                        | AllocationKind::Pooled
                        | AllocationKind::Graph
                        | AllocationKind::Array
                )
        })
        .map(|(&base, _)| base)
        .collect();
    bases
        .into_iter()
        .try_for_each(|base| hsa::allow_access(&agents, base))
}

/// Allocates device memory from HSA, without entering it into the table.
pub(crate) fn take_device(device: &Device, size: usize, fine: bool) -> HipResult<usize> {
    let pool = if fine { device.vram_fine } else { device.vram };
    if size > device.total {
        return Err(code::OUT_OF_MEMORY);
    }
    let base = hsa::allocate(pool, size)?;
    let agents = sharers(runtime::get()?, device);
    // The owner has access already, so that the call is only made for peers.
    if agents.len() > 1 {
        hsa::allow_access(&agents, base)?;
    }
    device.used.fetch_add(size, Ordering::Relaxed);
    Ok(base)
}

/// Frees device memory in HSA.
pub(crate) fn give_device(device: &Device, base: usize, size: usize) -> HipResult {
    device.used.fetch_sub(size, Ordering::Relaxed);
    hsa::free(base)
}

pub(crate) fn malloc_device(size: usize, fine: bool) -> HipResult<usize> {
    let device = runtime::current()?;
    if size == 0 {
        return Ok(0);
    }
    let base = take_device(device, size, fine)?;
    note(base, size, AllocationKind::Device, device.ordinal, 0, base)?;
    Ok(base)
}

pub(crate) fn malloc_host(size: usize, kind: AllocationKind, flags: u32) -> HipResult<usize> {
    let runtime = runtime::get()?;
    let device = runtime::current()?;
    if size == 0 {
        return Ok(0);
    }
    // Coherent memory, because programs read it while kernels run.
    let base = hsa::allocate(runtime.host.fine, size)?;
    hsa::allow_access(&runtime.gpu_agents(), base)?;
    note(base, size, kind, device.ordinal, flags, base)?;
    if kind == AllocationKind::Managed {
        svm::register(base, size);
    }
    Ok(base)
}

/// Frees memory of a kind that `wanted` accepts, when nothing uses it any more.
pub(crate) fn free(pointer: *mut c_void, wanted: impl Fn(AllocationKind) -> bool) -> HipResult {
    let runtime = runtime::get()?;
    if pointer.is_null() {
        return Ok(());
    }
    let base = pointer as usize;
    // Checked before the wait: an invalid free must not wait for the device.
    let (device, kind) = match read(&runtime.allocations).get(&base) {
        Some(allocation) if wanted(allocation.kind) => {
            (&runtime.devices[allocation.device], allocation.kind)
        }
        _ => return Err(code::INVALID_VALUE),
    };
    // Whatever may still use the memory has to end first.
    for stream in device.live_streams() {
        stream.synchronize()?;
    }
    let forget = || forget(base, &wanted).ok_or(code::INVALID_VALUE);
    match kind {
        // The graph keeps it for its next launch.
        AllocationKind::Graph => runtime.graphs.blocks.end_use(base),
        AllocationKind::Pooled => {
            forget()?;
            crate::hip::memory::pool::give_back(device, base, None)
        }
        AllocationKind::Device | AllocationKind::Array => give_device(device, base, forget()?.size),
        AllocationKind::Host | AllocationKind::Managed => {
            if forget()?.kind == AllocationKind::Managed {
                svm::forget(base);
            }
            // The host waits here anyway, which is when pools give memory back that exceeds their thresholds.
            device.trim_pools();
            hsa::free(base)
        }
        AllocationKind::Registered => {
            forget()?;
            hsa::unlock(base)
        }
        // These have functions of their own.
        AllocationKind::Mapped | AllocationKind::Attached => Err(code::INVALID_VALUE),
    }
}

/// Frees everything that programs made on a device, for `hipDeviceReset`.
pub(crate) fn reset(device: &'static Device) -> HipResult {
    device.synchronize()?;
    let runtime = runtime::get()?;
    let of_device =
        // Registered memory is the program's own and stays registered.
        |a: &Allocation| a.device == device.ordinal && a.kind != AllocationKind::Registered;
    let bases: Vec<usize> = read(&runtime.allocations)
        .iter()
        .filter(|(_, allocation)| of_device(allocation))
        .map(|(&base, _)| base)
        .collect();
    for base in bases {
        free(base as *mut c_void, |_| true)?;
    }
    runtime.images.reset(device.ordinal);
    write(&runtime.streams).retain(|_, stream| stream.device.ordinal != device.ordinal);
    device.trim_pools();
    Ok(())
}
