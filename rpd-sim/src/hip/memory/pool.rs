//! Stream-ordered memory: pools that keep freed memory for later allocations.

use core::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::hip::device::Device;
use crate::hip::error::{HipResult, api, code, put};
use crate::hip::graph::memory::Block;
use crate::hip::graph::{self, Op};
use crate::hip::memory::{self, AllocationKind};
use crate::hip::runtime::{self, lock, read, write};
use crate::hip::stream::signal::Signal;
use crate::hip::stream::{self, Stream};
use crate::hip::types::{Handle, MemAccessDesc, MemLocation, MemPoolProps};

/// Memory that was freed and is kept.
#[derive(Debug)]
struct Free {
    base: usize,
    size: usize,
    /// Step of a stream after which the memory may be used again; `None` when it may be used at once.
    after: Option<Arc<Signal>>,
}

/// A pool of device memory.
#[derive(Debug)]
pub(crate) struct MemPool {
    device: &'static Device,
    free: Mutex<Vec<Free>>,
    /// Sizes in bytes of the allocations in use, by address.
    used: Mutex<std::collections::HashMap<usize, usize>>,
    /// Bytes of free memory that the pool keeps at synchronisation points.
    threshold: AtomicU64,
    /// The three reuse policies, in the order of their attributes.
    policies: [AtomicUsize; 3],
    reserved: AtomicU64,
    reserved_high: AtomicU64,
    in_use: AtomicU64,
    in_use_high: AtomicU64,
}

/// Allocations from a pool are whole pages.
const PAGE: usize = 4096;

impl MemPool {
    pub(crate) fn new(device: &'static Device) -> Arc<Self> {
        Arc::new(Self {
            device,
            free: Mutex::default(),
            used: Mutex::default(),
            threshold: AtomicU64::new(0),
            policies: [const { AtomicUsize::new(1) }; 3],
            reserved: AtomicU64::new(0),
            reserved_high: AtomicU64::new(0),
            in_use: AtomicU64::new(0),
            in_use_high: AtomicU64::new(0),
        })
    }

    /// Allocates memory that steps after the stream's last one may use.
    fn allocate(&self, size: usize, stream: &Stream) -> HipResult<usize> {
        let room = size
            .checked_next_multiple_of(PAGE)
            .ok_or(code::OUT_OF_MEMORY)?;
        let kept = {
            let mut free = lock(&self.free);
            // Twice the size at most: larger blocks would be lost for the allocations that need them.
            let fits = |f: &Free| f.size >= room && f.size <= room.saturating_mul(2);
            let best = (0..free.len())
                .filter(|&n| fits(&free[n]))
                .min_by_key(|&n| free[n].size);
            best.map(|n| free.swap_remove(n))
        };
        let (base, whole) = match kept {
            Some(block) => {
                // The block may still be used by work before its free: the stream waits for that, not the program.
                if let Some(signal) = block.after {
                    stream.follow(signal);
                }
                (block.base, block.size)
            }
            None => {
                let base = match memory::take_device(self.device, size, false) {
                    Err(code::OUT_OF_MEMORY) => {
                        // Memory that the pool keeps for later is given back before the allocation fails.
                        self.trim(0);
                        memory::take_device(self.device, size, false)?
                    }
                    other => other?,
                };
                let all = self.reserved.fetch_add(size as u64, Ordering::Relaxed) + size as u64;
                self.reserved_high.fetch_max(all, Ordering::Relaxed);
                (base, size)
            }
        };
        lock(&self.used).insert(base, whole);
        let now = self.in_use.fetch_add(whole as u64, Ordering::Relaxed) + whole as u64;
        self.in_use_high.fetch_max(now, Ordering::Relaxed);
        memory::note(
            base,
            size,
            AllocationKind::Pooled,
            self.device.ordinal,
            0,
            base,
        )?;
        Ok(base)
    }

    fn owns(&self, base: usize) -> bool {
        lock(&self.used).contains_key(&base)
    }

    fn give_back(&self, base: usize, after: Option<Arc<Signal>>) -> HipResult {
        self.trim_to_threshold();
        let size = lock(&self.used).remove(&base).ok_or(code::INVALID_VALUE)?;
        self.in_use.fetch_sub(size as u64, Ordering::Relaxed);
        lock(&self.free).push(Free { base, size, after });
        Ok(())
    }

    /// Returns unused memory to the device until `keep` bytes are left.
    fn trim(&self, keep: u64) {
        let mut free = lock(&self.free);
        let mut n = 0;
        while n < free.len() && self.reserved.load(Ordering::Relaxed) > keep {
            if free[n]
                .after
                .as_ref()
                .is_some_and(|signal| !signal.is_done())
            // Work that uses the block has not ended.
            {
                n += 1;
                continue;
            }
            let block = free.swap_remove(n);
            self.reserved
                .fetch_sub(block.size as u64, Ordering::Relaxed);
            // Memory that HSA does not find has been freed already.
            let _ = memory::give_device(self.device, block.base, block.size);
        }
    }

    pub(crate) fn trim_to_threshold(&self) {
        self.trim(self.threshold.load(Ordering::Relaxed));
    }

    fn attribute(&self, attribute: u32) -> HipResult<&AtomicU64> {
        Ok(match attribute {
            4 => &self.threshold,
            5 => &self.reserved,
            6 => &self.reserved_high,
            7 => &self.in_use,
            8 => &self.in_use_high,
            _ => return Err(code::INVALID_VALUE),
        })
    }
}

fn default_pool(device: &'static Device) -> &'static Arc<MemPool> {
    device.default_pool.get_or_init(|| MemPool::new(device))
}

fn current_pool(device: &'static Device) -> Arc<MemPool> {
    let chosen = lock(&device.chosen_pool).clone();
    chosen.unwrap_or_else(|| Arc::clone(default_pool(device)))
}

fn handle_of(pool: &Arc<MemPool>) -> Handle {
    Arc::as_ptr(pool).cast_mut().cast()
}

fn resolve(handle: Handle) -> HipResult<Arc<MemPool>> {
    // The default pools have handles too, although no program created them.
    let runtime = runtime::get()?;
    if let Some(pool) = read(&runtime.pools).get(&(handle as usize)) {
        return Ok(Arc::clone(pool));
    }
    let defaults = runtime
        .devices
        .iter()
        .filter_map(|device| device.default_pool.get());
    defaults
        .into_iter()
        .find(|pool| handle_of(pool) == handle)
        .cloned()
        .ok_or(code::INVALID_VALUE)
}

/// The pools of a device from which memory at `base` may come.
fn owner(device: &'static Device, base: usize) -> HipResult<Arc<MemPool>> {
    let runtime = runtime::get()?;
    if let Some(pool) = device.default_pool.get().filter(|pool| pool.owns(base)) {
        return Ok(Arc::clone(pool));
    }
    read(&runtime.pools)
        .values()
        .find(|pool| pool.owns(base))
        .cloned()
        .ok_or(code::INVALID_VALUE)
}

/// Returns memory to its pool; it may be used again once `after` has fallen.
pub(crate) fn give_back(
    device: &'static Device,
    base: usize,
    after: Option<Arc<Signal>>,
) -> HipResult {
    owner(device, base)?.give_back(base, after)
}

/// # Safety
/// `out` is null or valid.
unsafe fn allocate(
    out: *mut *mut c_void,
    size: usize,
    pool: Option<Handle>,
    stream: Handle,
) -> HipResult {
    if out.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let stream = stream::resolve(stream)?;
    // A captured allocation has its address at once, so that later operations of the capture can use it.
    if stream.is_capturing() {
        let block = Block::new(stream.device, size)?;
        let address = block.address;
        graph::submit(&stream, Op::Allocate(block))?;
        // SAFETY: the caller's pointer, not null.
        return unsafe { put(out, address as *mut c_void) };
    }
    let pool = match pool {
        Some(handle) => resolve(handle)?,
        None => current_pool(stream.device),
    };
    // Null, not an error: as `hipMalloc` does.
    let base = if size == 0 {
        0
    } else {
        pool.allocate(size, &stream)?
    };
    // SAFETY: the caller's pointer, not null.
    unsafe { put(out, base as *mut c_void) }
}

pub(crate) unsafe extern "C" fn hipMallocAsync(
    out: *mut *mut c_void,
    size: usize,
    stream: Handle,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { allocate(out, size, None, stream) })
}

pub(crate) unsafe extern "C" fn hipMallocFromPoolAsync(
    out: *mut *mut c_void,
    size: usize,
    pool: Handle,
    stream: Handle,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { allocate(out, size, Some(pool), stream) })
}

pub(crate) unsafe extern "C" fn hipFreeAsync(pointer: *mut c_void, stream: Handle) -> u32 {
    api(|| {
        let stream = stream::resolve(stream)?;
        if pointer.is_null() {
            return Ok(());
        }
        let base = pointer as usize;
        let place = memory::find(base)?.filter(|place| place.base == base);
        match place.ok_or(code::INVALID_VALUE)?.allocation.kind {
            // Memory of a graph belongs to its next launch.
            AllocationKind::Graph => graph::submit(&stream, Op::Release(base)),
            _ if stream.is_capturing() => Err(code::STREAM_CAPTURE_UNSUPPORTED),
            AllocationKind::Pooled => {
                // The position of the free in the stream decides when the memory can be used again.
                let after = stream.last()?;
                memory::forget(base, |kind| kind == AllocationKind::Pooled)
                    .ok_or(code::INVALID_VALUE)?;
                give_back(stream.device, base, after)
            }
            AllocationKind::Device => {
                // Memory of `hipMalloc` has no pool to which it could return later.
                stream.synchronize()?;
                let gone = memory::forget(base, |kind| kind == AllocationKind::Device);
                let gone = gone.ok_or(code::INVALID_VALUE)?;
                memory::give_device(&runtime::get()?.devices[gone.device], base, gone.size)
            }
            _ => Err(code::INVALID_VALUE),
        }
    })
}

fn pool_device(location: MemLocation) -> HipResult<&'static Device> {
    const LOCATION_DEVICE: u32 = 1;
    if location.kind != LOCATION_DEVICE {
        return Err(code::INVALID_VALUE);
    }
    runtime::device(location.id).map_err(|_| code::INVALID_VALUE)
}

pub(crate) unsafe extern "C" fn hipMemPoolCreate(
    out: *mut Handle,
    props: *const MemPoolProps,
) -> u32 {
    const PINNED: u32 = 1;
    api(|| {
        if out.is_null() || props.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's struct, not null.
        let props = unsafe { props.read_unaligned() };
        if props.alloc_type != PINNED {
            return Err(code::INVALID_VALUE);
        }
        let pool = MemPool::new(pool_device(props.location)?);
        let handle = handle_of(&pool);
        write(&runtime::get()?.pools).insert(handle as usize, pool);
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, handle) }
    })
}

pub(crate) unsafe extern "C" fn hipMemPoolDestroy(pool: Handle) -> u32 {
    api(|| {
        let gone = write(&runtime::get()?.pools).remove(&(pool as usize));
        let gone = gone.ok_or(code::INVALID_VALUE)?;
        gone.device.synchronize()?;
        gone.trim(0);
        let mut chosen = lock(&gone.device.chosen_pool);
        if chosen.as_ref().is_some_and(|pool| Arc::ptr_eq(pool, &gone)) {
            *chosen = None;
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipMemPoolTrimTo(pool: Handle, keep: usize) -> u32 {
    api(|| {
        resolve(pool)?.trim(keep as u64);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipMemPoolGetAttribute(
    pool: Handle,
    attribute: u32,
    value: *mut c_void,
) -> u32 {
    api(|| {
        let pool = resolve(pool)?;
        // SAFETY: the caller's buffer, checked for null; the first three are ints, the others u64.
        unsafe {
            match attribute {
                1..=3 => {
                    let policy = &pool.policies[attribute as usize - 1];
                    put(value.cast(), policy.load(Ordering::Relaxed) as c_int)
                }
                _ => put(
                    value.cast(),
                    pool.attribute(attribute)?.load(Ordering::Relaxed),
                ),
            }
        }
    })
}

pub(crate) unsafe extern "C" fn hipMemPoolSetAttribute(
    pool: Handle,
    attribute: u32,
    value: *mut c_void,
) -> u32 {
    api(|| {
        let pool = resolve(pool)?;
        if value.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's value, not null; types as in the getter.
        unsafe {
            match attribute {
                1..=3 => {
                    let on = value.cast::<c_int>().read_unaligned() != 0;
                    pool.policies[attribute as usize - 1].store(usize::from(on), Ordering::Relaxed);
                }
                4 => {
                    let bytes = value.cast::<u64>().read_unaligned();
                    pool.threshold.store(bytes, Ordering::Relaxed);
                }
                // The high marks can only be reset.
                6 | 8 => {
                    if value.cast::<u64>().read_unaligned() != 0 {
                        return Err(code::INVALID_VALUE);
                    }
                    let now = pool.attribute(attribute - 1)?.load(Ordering::Relaxed);
                    pool.attribute(attribute)?.store(now, Ordering::Relaxed);
                }
                _ => return Err(code::INVALID_VALUE),
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipMemPoolSetAccess(
    pool: Handle,
    list: *const MemAccessDesc,
    count: usize,
) -> u32 {
    api(|| {
        resolve(pool)?;
        for n in 0..count {
            if list.is_null() {
                return Err(code::INVALID_VALUE);
            }
            // SAFETY: the caller's list of `count` entries.
            pool_device(unsafe { list.add(n).read_unaligned() }.location)?;
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipMemPoolGetAccess(
    flags: *mut u32,
    pool: Handle,
    location: *mut MemLocation,
) -> u32 {
    const READ_WRITE: u32 = 3;
    api(|| {
        let pool = resolve(pool)?;
        if location.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's struct, not null.
        let device = pool_device(unsafe { location.read_unaligned() })?;
        let own = device.ordinal == pool.device.ordinal;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(flags, if own { READ_WRITE } else { 0 }) }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceGetDefaultMemPool(
    out: *mut Handle,
    ordinal: c_int,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(out, handle_of(default_pool(runtime::device(ordinal)?))) })
}

pub(crate) unsafe extern "C" fn hipDeviceGetMemPool(out: *mut Handle, ordinal: c_int) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(out, handle_of(&current_pool(runtime::device(ordinal)?))) })
}

pub(crate) unsafe extern "C" fn hipDeviceSetMemPool(ordinal: c_int, pool: Handle) -> u32 {
    api(|| {
        let device = runtime::device(ordinal)?;
        let pool = resolve(pool)?;
        if pool.device.ordinal != device.ordinal {
            return Err(code::INVALID_DEVICE);
        }
        *lock(&device.chosen_pool) = Some(pool);
        Ok(())
    })
}
