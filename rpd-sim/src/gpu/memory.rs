//! Memory that the device may access: allocations of the pools, locked host ranges, and access rights.
//!
//! Device memory is ordinary memory of the process, so an address means the same on both sides.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::agents::{self, Pool, PoolKind};
use super::check;
use rpd_gfx::check::Place;

/// Smallest unit of allocation of the pools, in bytes.
pub(crate) const GRANULE: usize = 4096;

/// Largest allocation in bytes of device memory that the real runtime takes from a block shared with other allocations.
const MOST_SHARED: usize = 2 << 20;
/// Bytes behind an allocation of up to [`MOST_SHARED`] bytes that kernels can access: on the real device other
/// allocations are there, and programs that read a little too far do not fault.
const BEHIND: usize = 64 << 10;
/// Bytes before an allocation of more than [`MOST_SHARED`] bytes that nothing is mapped at, so that whether an access
/// there faults does not depend on other mappings of the process.
const BEFORE: usize = 64 << 10;

/// Purpose of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// The program's request by HIP or HSA.
    Program,
    /// Code and variables of a loaded code object.
    CodeObject,
    /// Memory of the runtime itself: queues, signals, scratch.
    Internal,
    /// Physical memory behind a reserved address range.
    Virtual,
    /// Memory that another process has allocated and shared.
    Attached,
    /// Host memory of the program made accessible.
    Locked,
}

/// Called when an allocation is freed: address and the caller's data.
pub(crate) type FreeCallback = unsafe extern "C" fn(*mut core::ffi::c_void, *mut core::ffi::c_void);

/// A range of memory that the device can access.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// Address of the first byte.
    pub(crate) base: usize,
    /// Size in bytes that was requested.
    pub(crate) size: usize,
    /// Bytes mapped and accounted for.
    pub(crate) mapped: usize,
    /// Bytes mapped behind the allocation that kernels can access although they are part of no allocation.
    behind: usize,
    /// Bytes before the allocation that are reserved without being used.
    before: usize,
    /// Purpose for which the memory was allocated.
    pub(crate) purpose: Use,
    /// Pool from which the memory came; locked memory counts as coarse system memory.
    pub(crate) pool: &'static Pool,
    access: AtomicU64,
    user_data: AtomicU64,
    callbacks: Mutex<Vec<(FreeCallback, usize)>>,
}

impl Allocation {
    /// Address after the last byte of the allocation.
    pub(crate) fn end(&self) -> usize {
        self.base + self.size
    }

    /// The address after the last page: a device can access whole pages.
    fn mapped_end(&self) -> usize {
        self.end().max(self.base + self.mapped)
    }

    /// The address after the last byte that kernels can access.
    fn accessible_end(&self) -> usize {
        self.mapped_end() + self.behind
    }

    /// Mask of the agents that may access the allocation.
    pub(crate) fn access(&self) -> u64 {
        self.access.load(Ordering::Relaxed)
    }

    /// Value that the program attached to the allocation; 0 if it attached none.
    pub(crate) fn user_data(&self) -> u64 {
        self.user_data.load(Ordering::Relaxed)
    }

    /// Attaches a value of the program to the allocation.
    pub(crate) fn set_user_data(&self, value: u64) {
        self.user_data.store(value, Ordering::Relaxed);
    }

    /// Registers a function to be called when the allocation is freed.
    pub(crate) fn on_free(&self, callback: FreeCallback, data: usize) {
        lock(&self.callbacks).push((callback, data));
    }

    /// Removes a registered function; returns whether there was one.
    pub(crate) fn forget_on_free(&self, callback: FreeCallback) -> bool {
        let mut callbacks = lock(&self.callbacks);
        let before = callbacks.len();
        callbacks.retain(|(known, _)| !std::ptr::fn_addr_eq(*known, callback));
        callbacks.len() != before
    }
}

/// Reason for which the device may not access an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessError {
    /// No memory of the device at this address.
    NotPresent,
    /// The agent was never given access.
    NotAllowed,
}

/// Reason for which an allocation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocError {
    /// Nothing can be allocated from this pool, or the size is zero.
    Invalid,
    /// The memory is used up.
    Exhausted,
}

/// A memory range and the mask of agents that may access it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    /// Address of the first byte.
    pub(crate) base: usize,
    /// Address after the last byte.
    pub(crate) end: usize,
    /// Whether the memory is coherent while kernels run.
    pub(crate) fine_grained: bool,
}

struct Lock {
    allocation: Arc<Allocation>,
    count: usize,
}

#[derive(Default)]
struct Maps {
    allocations: BTreeMap<usize, Arc<Allocation>>,
    locks: BTreeMap<usize, Vec<Lock>>,
    /// Parts of freed allocations of the program whose addresses have not been used again, by first address.
    freed: BTreeMap<usize, Freed>,
}

/// Part of a freed allocation.
#[derive(Clone, Copy)]
struct Freed {
    /// Address after the part.
    end: usize,
    /// Address of the allocation.
    base: usize,
    /// Bytes of the allocation.
    size: usize,
}

/// Most parts of freed allocations that are remembered.
const MOST_FREED: usize = 1 << 16;
/// Distance in bytes up to which an address outside of all allocations is attributed to the nearest one.
const NEAR: usize = check::GUARD;

impl Maps {
    /// Records a freed allocation.
    fn note_freed(&mut self, allocation: &Allocation) {
        // The list is bounded; an access to memory that was freed long ago is then reported as outside.
        if self.freed.len() >= MOST_FREED {
            self.freed.pop_first();
        }
        let (base, size) = (allocation.base, allocation.size);
        let end = base + size;
        self.freed.insert(base, Freed { end, base, size });
    }

    /// Removes the addresses of a new allocation from the parts of freed ones.
    fn reuse(&mut self, base: usize, size: usize) {
        let end = base + size;
        while let Some((&start, &part)) = self.freed.range(..end).next_back()
            && part.end > base
        {
            self.freed.remove(&start);
            // A new allocation may cover a part in the middle of a freed one.
            if start < base {
                self.freed.insert(start, Freed { end: base, ..part });
            }
            if part.end > end {
                self.freed.insert(end, part);
            }
        }
    }
}

/// Registry of all memory that the devices may access, with accounting by agent.
#[derive(Default)]
pub(crate) struct Memory {
    maps: RwLock<Maps>,
    changes: AtomicU64,
    used: [AtomicU64; agents::MAX_GPUS + 1],
}

impl Memory {
    /// Bytes allocated from the memory of an agent.
    pub(crate) fn used(&self, agent: usize) -> u64 {
        self.used[agent].load(Ordering::Relaxed)
    }

    /// Bytes left of the memory of an agent.
    pub(crate) fn available(&self, agent: usize) -> u64 {
        agents::agents()[agent]
            .memory_bytes
            .saturating_sub(self.used(agent))
    }

    /// Allocates from a pool, accessible to the pool's agent and those in `access`. Contents are zero.
    pub(crate) fn allocate(
        &self,
        pool: &'static Pool,
        size: usize,
        purpose: Use,
        access: u64,
    ) -> Result<Arc<Allocation>, AllocError> {
        if size == 0 || !pool.allocatable() {
            return Err(AllocError::Invalid);
        }
        let mapped = size
            .checked_next_multiple_of(GRANULE)
            .ok_or(AllocError::Exhausted)?;
        self.account(pool, mapped)?;
        // The real runtime takes small allocations from larger blocks: kernels that read a little beyond them do not
        // fault.
        let shared =
            pool.kind == PoolKind::DeviceCoarse && purpose == Use::Program && size <= MOST_SHARED;
        let (before, behind) = match check::session() {
            // The checker has guard pages of its own, see `map_guarded`.
            None if shared => (0, BEHIND),
            None => (BEFORE, 0),
            Some(_) => (0, 0),
        };
        let Some(base) = map(before + mapped + behind) else {
            self.unaccount(pool, mapped);
            return Err(AllocError::Exhausted);
        };
        let base = base + before;
        let owner = 1 << pool.agent;
        // The host reaches all memory of this device through its bus.
        let host = 1;
        let sizes = [size, mapped, before, behind];
        Ok(self.insert(pool, base, sizes, purpose, access | owner | host))
    }

    /// Registers memory mapped elsewhere as an allocation of `pool` without accounting for it.
    pub(crate) fn adopt(
        &self,
        pool: &'static Pool,
        base: usize,
        size: usize,
        purpose: Use,
        access: u64,
    ) -> Arc<Allocation> {
        self.insert(pool, base, [size, 0, 0, 0], purpose, access)
    }

    /// Accounts for `bytes` of a pool's memory.
    pub(crate) fn account(&self, pool: &'static Pool, bytes: usize) -> Result<(), AllocError> {
        let used = &self.used[pool.agent];
        let limit = pool.bytes;
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes as u64).filter(|&sum| sum <= limit)
        })
        .map(drop)
        .map_err(|_| AllocError::Exhausted)
    }

    /// Releases accounted bytes.
    pub(crate) fn unaccount(&self, pool: &'static Pool, bytes: usize) {
        self.used[pool.agent].fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    fn insert(
        &self,
        pool: &'static Pool,
        base: usize,
        [size, mapped, before, behind]: [usize; 4],
        purpose: Use,
        access: u64,
    ) -> Arc<Allocation> {
        let allocation = Arc::new(Allocation {
            base,
            size,
            mapped,
            before,
            behind,
            purpose,
            pool,
            access: AtomicU64::new(access),
            user_data: AtomicU64::new(0),
            callbacks: Mutex::default(),
        });
        let mut maps = self.write();
        // The address is valid again: accesses to it are no longer those to freed memory.
        maps.reuse(base, size);
        maps.allocations.insert(base, Arc::clone(&allocation));
        drop(maps);
        allocation
    }

    /// Frees the allocation that starts at `base`, if `purpose` allows it. Returns whether it did.
    pub(crate) fn free(&self, base: usize, purpose: Use) -> bool {
        let allocation = {
            let mut maps = self.write();
            // Each part of the runtime frees its own memory only: a program must not free a queue by its address.
            match maps.allocations.get(&base) {
                Some(found) if found.purpose == purpose => {
                    let found = maps.allocations.remove(&base);
                    if let Some(found) = found.as_ref().filter(|_| purpose == Use::Program) {
                        maps.note_freed(found);
                    }
                    found
                }
                _ => None,
            }
        };
        let Some(allocation) = allocation else {
            return false;
        };
        // After the removal, and without the lock: a callback may allocate memory at the same address.
        for (callback, data) in lock(&allocation.callbacks).drain(..) {
            // SAFETY: the program registered this function for this very call.
            unsafe { callback(base as *mut _, data as *mut _) };
        }
        // Adopted memory belongs to its owner.
        if allocation.mapped != 0 {
            self.unaccount(allocation.pool, allocation.mapped);
            match check::session().filter(|_| purpose == Use::Program) {
                // The addresses are not used again, so that an access after the free is found.
                // SAFETY: the range was mapped by `map` and is no longer registered.
                Some(_) => unsafe {
                    libc::madvise(base as *mut _, allocation.mapped, libc::MADV_DONTNEED);
                    libc::mprotect(base as *mut _, allocation.mapped, libc::PROT_NONE);
                },
                // SAFETY: the range was mapped by `map`, is no longer registered, and is unmapped only here.
                None => unsafe {
                    let bytes = allocation.before + allocation.mapped + allocation.behind;
                    libc::munmap((base - allocation.before) as *mut _, bytes);
                },
            }
        }
        true
    }

    /// Makes a range of the program's memory accessible to the agents in `access`.
    pub(crate) fn lock_range(
        &self,
        base: usize,
        size: usize,
        access: u64,
    ) -> Option<Arc<Allocation>> {
        let pool = agents::pool_of(0, PoolKind::SystemCoarse)?;
        let mut maps = self.write();
        let locks = maps.locks.entry(base).or_default();
        // Ranges may be locked several times; each lock needs an unlock.
        if let Some(lock) = locks.iter_mut().find(|lock| lock.allocation.size == size) {
            lock.count += 1;
            lock.allocation.access.fetch_or(access, Ordering::Relaxed);
            return Some(Arc::clone(&lock.allocation));
        }
        let allocation = Arc::new(Allocation {
            base,
            size,
            mapped: 0,
            before: 0,
            behind: 0,
            purpose: Use::Locked,
            pool,
            // The host always has access to its own memory.
            access: AtomicU64::new(access | 1),
            user_data: AtomicU64::new(0),
            callbacks: Mutex::default(),
        });
        locks.push(Lock {
            allocation: Arc::clone(&allocation),
            count: 1,
        });
        Some(allocation)
    }

    /// Undoes one lock of a range that starts at `base`. Returns whether there was one.
    pub(crate) fn unlock_range(&self, base: usize) -> bool {
        let mut maps = self.write();
        let Some(locks) = maps.locks.get_mut(&base) else {
            return false;
        };
        // Locks of different sizes may begin at one address; an unlock has no size, so that it is for the last one.
        if let Some(last) = locks.last_mut() {
            last.count -= 1;
            if last.count == 0 {
                locks.pop();
            }
        }
        if locks.is_empty() {
            maps.locks.remove(&base);
        }
        drop(maps);
        true
    }

    /// Describes the memory at an address.
    pub(crate) fn place(&self, address: u64) -> Place {
        let address = address as usize;
        if let Some(block) = self.find(address) {
            return Place::Inside {
                base: block.base as u64,
                // Reads of the pad after the last byte are found by the size.
                size: block.size as u64,
                tracked: block.purpose == Use::Program && block.pool.kind == PoolKind::DeviceCoarse,
            };
        }
        // Not memory of the device at present: say what was there, or what is near.
        let maps = self.maps.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, part)) = maps.freed.range(..=address).next_back()
            && address < part.end
        {
            return Place::Freed {
                base: part.base as u64,
                size: part.size as u64,
            };
        }
        // Findings in the runtime's own memory do not help the program's author.
        let shown = |found: &&Arc<Allocation>| found.purpose != Use::Internal;
        let before = maps
            .allocations
            .range(..=address)
            .rev()
            .map(|(_, found)| found);
        let behind = maps.allocations.range(address..).map(|(_, found)| found);
        let near = |found: &Arc<Allocation>| {
            let distance = if address < found.base {
                found.base - address
            } else {
                address.saturating_sub(found.end())
            };
            (distance <= NEAR).then_some((distance, found.base as u64, found.size as u64))
        };
        let nearest = [before.clone().find(shown), behind.clone().find(shown)]
            .into_iter()
            .flatten()
            .filter_map(near)
            .min();
        Place::Outside {
            nearest: nearest.map(|(_, base, size)| (base, size)),
        }
    }

    /// All allocations.
    pub(crate) fn all(&self) -> Vec<Arc<Allocation>> {
        let maps = self.maps.read().unwrap_or_else(PoisonError::into_inner);
        maps.allocations.values().map(Arc::clone).collect()
    }

    /// Allocation that contains an address.
    pub(crate) fn find(&self, address: usize) -> Option<Arc<Allocation>> {
        self.find_before(address, Allocation::mapped_end)
    }

    /// Last allocation that begins at or before an address, if the address is before the end that `end` gives for it.
    fn find_before(
        &self,
        address: usize,
        end: impl Fn(&Allocation) -> usize,
    ) -> Option<Arc<Allocation>> {
        let maps = self.maps.read().unwrap_or_else(PoisonError::into_inner);
        // Allocations of pools come first: locked ranges are rarer, and may overlap each other.
        if let Some((_, found)) = maps.allocations.range(..=address).next_back()
            && address < end(found)
        {
            return Some(Arc::clone(found));
        }
        maps.locks
            .range(..=address)
            .rev()
            .flat_map(|(_, locks)| locks)
            .find(|lock| address < lock.allocation.end())
            .map(|lock| Arc::clone(&lock.allocation))
    }

    /// Range around an address that kernels on the agents of `mask` may access, including mapped memory after an allocation.
    pub(crate) fn accessible(&self, address: usize, mask: u64) -> Option<Range> {
        let allocation = self.find_before(address, Allocation::accessible_end)?;
        (allocation.access() & mask == mask).then(|| Range {
            base: allocation.base,
            end: allocation.accessible_end(),
            fine_grained: allocation.pool.is_fine_grained(),
        })
    }

    /// Whether the agents of `mask` may access `len` bytes at `address`; the whole range if so.
    pub(crate) fn check(
        &self,
        address: usize,
        len: usize,
        mask: u64,
    ) -> Result<Range, AccessError> {
        // Ranges are whole pages, as on the hardware, whose page tables know no bytes.
        let allocation = self.find(address).ok_or(AccessError::NotPresent)?;
        let end = allocation.mapped_end();
        match address.checked_add(len) {
            Some(last) if last <= end => {}
            _ => return Err(AccessError::NotPresent),
        }
        if allocation.access() & mask != mask {
            return Err(AccessError::NotAllowed);
        }
        Ok(Range {
            base: allocation.base,
            end,
            fine_grained: allocation.pool.is_fine_grained(),
        })
    }

    /// Replaces the mask of agents that may access an allocation; its owner and the host always may.
    pub(crate) fn set_access(&self, allocation: &Allocation, mask: u64) {
        self.set_access_exactly(allocation, mask | 1 << allocation.pool.agent | 1);
    }

    /// Replaces the mask of agents that may access a range.
    pub(crate) fn set_access_exactly(&self, allocation: &Allocation, mask: u64) {
        allocation.access.store(mask, Ordering::Release);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// A number that changes whenever what [`Memory::check`] answers may have changed. Reading it takes no lock.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Makes kernels ask again which memory they may access, each from its next workgroup on.
    pub(crate) fn invalidate(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Maps> {
        let maps = self.maps.write().unwrap_or_else(PoisonError::into_inner);
        // Before the change: a reader of the new number looks up again, and waits for this lock.
        self.changes.fetch_add(1, Ordering::Release);
        maps
    }
}

/// Maps fresh zeroed memory that takes no space until it is touched.
pub(crate) fn map(bytes: usize) -> Option<usize> {
    if check::session().is_some() {
        return map_guarded(bytes);
    }
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that exists.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (address != libc::MAP_FAILED).then_some(address as usize)
}

/// Maps fresh zeroed memory, with addresses before and after it at which nothing is mapped.
fn map_guarded(bytes: usize) -> Option<usize> {
    let whole = bytes.checked_add(2 * check::GUARD)?;
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that exists; its middle is made accessible.
    // Inaccessible first: only the middle is opened, and the guards stay without access.
    unsafe {
        let address = libc::mmap(
            std::ptr::null_mut(),
            whole,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        if address == libc::MAP_FAILED {
            return None;
        }
        let base = address.byte_add(check::GUARD);
        let done = libc::mprotect(base, bytes, libc::PROT_READ | libc::PROT_WRITE) == 0;
        done.then_some(base as usize)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
