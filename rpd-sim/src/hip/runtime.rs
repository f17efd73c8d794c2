//! State of the HIP runtime in this process: made at the first call that needs a device, and again in a forked child.

use core::ffi::c_void;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError, RwLock};

use super::error::{HipResult, code};
use super::hsa;
use super::types::Handle;
use crate::hip::device::Device;
use crate::hip::graph::Graphs;
use crate::hip::image::texture::Images;
use crate::hip::launch::hostcall::Hostcalls;
use crate::hip::launch::multi_device_api::GridCounters;
use crate::hip::memory::Allocation;
use crate::hip::memory::pool::MemPool;
use crate::hip::memory::virtual_api::Mappings;
use crate::hip::module::Functions;
use crate::hip::stream::Stream;
use crate::hip::stream::callback::Worker;
use crate::hip::stream::event::Event;
use crate::hsa::types::{
    DEVICE_TYPE_CPU, DEVICE_TYPE_GPU, GLOBAL_FLAG_COARSE_GRAINED, GLOBAL_FLAG_FINE_GRAINED,
    GLOBAL_FLAG_KERNARG,
};

/// Memory pools of the CPU agent, as handles of HSA.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HostPools {
    /// Coherent with running kernels; where `hipHostMalloc` allocates.
    pub(crate) fine: u64,
    /// Coherent at kernel boundaries.
    pub(crate) coarse: u64,
    /// Pools for kernel arguments.
    pub(crate) kernarg: u64,
}

/// Everything that lives as long as the process (or until it forks).
pub(crate) struct Runtime {
    /// The agent of the host.
    pub(crate) cpu: u64,
    /// Memory pools of the host.
    pub(crate) host: HostPools,
    /// The GPUs, by ordinal.
    pub(crate) devices: Vec<Device>,
    /// Ticks of the system clock in a second.
    pub(crate) clock_hz: u64,
    /// Memory that programs have allocated or registered, by address.
    pub(crate) allocations: RwLock<BTreeMap<usize, Allocation>>,
    /// Streams that programs made and have not destroyed, by handle.
    pub(crate) streams: RwLock<HashMap<usize, Arc<Stream>>>,
    /// Events that were created and not destroyed, by handle.
    pub(crate) events: RwLock<HashMap<usize, Arc<Event>>>,
    /// Memory pools that programs made, by handle.
    pub(crate) pools: RwLock<HashMap<usize, Arc<MemPool>>>,
    /// Modules and kernels that have been loaded.
    pub(crate) functions: Functions,
    /// Graphs of the program, with their nodes and executable forms.
    pub(crate) graphs: Graphs,
    /// Thread that runs the host functions of streams.
    pub(crate) worker: OnceLock<Worker>,
    /// Physical memory at reserved addresses.
    pub(crate) mappings: Mappings,
    /// Buffers in which kernels request services of the host.
    pub(crate) hostcalls: Hostcalls,
    /// Arrays, texture objects and surface objects.
    pub(crate) images: Images,
    /// Counters on which launches on several devices wait for each other.
    pub(crate) grid_counters: GridCounters,
}

static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());
/// Held while the runtime is made.
static CREATING: Mutex<()> = Mutex::new(());

thread_local! {
    /// The device this thread has chosen.
    static DEVICE: Cell<usize> = const { Cell::new(0) };
    /// Locks that a forking thread holds during the fork.
    static FORKING: RefCell<Option<ForkLocks>> = const { RefCell::new(None) };
}

struct ForkLocks {
    _making: MutexGuard<'static, ()>,
    _registry: std::sync::RwLockWriteGuard<'static, crate::hip::module::fatbin::Registry>,
}

/// The runtime, made now if this is the first call that needs it.
#[inline]
pub(crate) fn get() -> HipResult<&'static Runtime> {
    // SAFETY: the pointer is null or a leaked box.
    match unsafe { RUNTIME.load(Ordering::Acquire).as_ref() } {
        Some(runtime) => Ok(runtime),
        None => make(),
    }
}

/// The runtime, or `None` if no call has needed it so far.
pub(crate) fn existing() -> Option<&'static Runtime> {
    // SAFETY: the pointer is null or a leaked box.
    unsafe { RUNTIME.load(Ordering::Acquire).as_ref() }
}

/// The device this thread has chosen.
#[inline]
pub(crate) fn current() -> HipResult<&'static Device> {
    let runtime = get()?;
    runtime.devices.get(DEVICE.get()).ok_or(code::NO_DEVICE)
}

/// Ordinal of the device this thread has chosen.
#[inline]
pub(crate) fn current_ordinal() -> usize {
    DEVICE.get()
}

pub(crate) fn set_current(ordinal: usize) {
    DEVICE.set(ordinal);
}

/// A device by the number programs pass.
pub(crate) fn device(ordinal: i32) -> HipResult<&'static Device> {
    let runtime = get()?;
    usize::try_from(ordinal)
        .ok()
        .and_then(|ordinal| runtime.devices.get(ordinal))
        .ok_or(code::INVALID_DEVICE)
}

#[cold]
fn make() -> HipResult<&'static Runtime> {
    watch_forks();
    let _making = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = existing() {
        return Ok(runtime);
    }
    let runtime: &'static mut Runtime = Box::leak(Box::new(Runtime::new()?));
    let shared: &'static Runtime = runtime;
    RUNTIME.store(ptr::from_ref(shared).cast_mut(), Ordering::Release);
    Ok(shared)
}

impl Runtime {
    fn new() -> HipResult<Self> {
        const AGENT_DEVICE: u32 = 17;
        hsa::init()?;
        let (mut cpus, mut gpus) = (Vec::new(), Vec::new());
        for agent in hsa::agents()? {
            match hsa::agent_info::<u32>(agent, AGENT_DEVICE)? {
                DEVICE_TYPE_CPU => cpus.push(agent),
                DEVICE_TYPE_GPU => gpus.push(agent),
                _ => {}
            }
        }
        let cpu = *cpus.first().ok_or(code::NO_DEVICE)?;
        let gpus = visible(&gpus)?;
        let host = host_pools(cpu)?;
        let devices = gpus
            .iter()
            .enumerate()
            .map(|(ordinal, &agent)| Device::new(ordinal, agent, cpu, host))
            .collect::<HipResult<Vec<_>>>()?;
        Ok(Self {
            cpu,
            host,
            devices,
            clock_hz: hsa::system_frequency()?.max(1),
            allocations: RwLock::default(),
            streams: RwLock::default(),
            events: RwLock::default(),
            pools: RwLock::default(),
            functions: Functions::default(),
            graphs: Graphs::default(),
            worker: OnceLock::new(),
            mappings: Mappings::default(),
            hostcalls: Hostcalls::default(),
            images: Images::default(),
            grid_counters: GridCounters::default(),
        })
    }

    /// Agents of all devices.
    pub(crate) fn gpu_agents(&self) -> Vec<u64> {
        self.devices.iter().map(|device| device.agent).collect()
    }

    /// The event of a handle; `INVALID_HANDLE` when there is none.
    pub(crate) fn event(&self, handle: Handle) -> HipResult<Arc<Event>> {
        read(&self.events)
            .get(&(handle as usize))
            .cloned()
            .ok_or(code::INVALID_HANDLE)
    }
}

/// The devices that the program may use, in the order of `HIP_VISIBLE_DEVICES` or `CUDA_VISIBLE_DEVICES`.
fn visible(gpus: &[u64]) -> HipResult<Vec<u64>> {
    const UUID: u32 = 0xA011;
    const NAMES: [&str; 2] = ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];
    let ids = gpus
        .iter()
        .map(|&gpu| hsa::agent_text(gpu, UUID))
        .collect::<HipResult<Vec<_>>>()?;
    Ok(match crate::hsa::visible::from_environment(&NAMES, &ids) {
        Some(places) => places.into_iter().map(|place| gpus[place]).collect(),
        None => gpus.to_vec(),
    })
}

fn host_pools(cpu: u64) -> HipResult<HostPools> {
    const POOL_SEGMENT: u32 = 0;
    const POOL_GLOBAL_FLAGS: u32 = 1;
    const SEGMENT_GLOBAL: u32 = 0;
    let mut host = HostPools::default();
    for pool in hsa::pools(cpu)? {
        if hsa::pool_info::<u32>(pool, POOL_SEGMENT)? != SEGMENT_GLOBAL {
            continue;
        }
        let flags: u32 = hsa::pool_info(pool, POOL_GLOBAL_FLAGS)?;
        if flags & GLOBAL_FLAG_KERNARG != 0 {
            host.kernarg = pool;
        }
        if flags & GLOBAL_FLAG_FINE_GRAINED != 0
            && (host.fine == 0 || flags & GLOBAL_FLAG_KERNARG == 0)
        {
            host.fine = pool;
        }
        if flags & GLOBAL_FLAG_COARSE_GRAINED != 0 {
            host.coarse = pool;
        }
    }
    if host.fine == 0 {
        return Err(code::NO_DEVICE);
    }
    if host.kernarg == 0 {
        host.kernarg = host.fine;
    }
    if host.coarse == 0 {
        host.coarse = host.fine;
    }
    Ok(host)
}

/// Reads a table, also after a panic of a thread that held the lock.
pub(crate) fn read<T>(table: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    table.read().unwrap_or_else(PoisonError::into_inner)
}

/// Changes a table, also after a panic of a thread that held the lock.
pub(crate) fn write<T>(table: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    table.write().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex, also after a panic of a thread that held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Arranges for a forked child to start with a fresh runtime. Registered binaries stay known.
pub(crate) fn watch_forks() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        // SAFETY: the handlers take no arguments and touch only what is below. A failure (no memory)
        // leaves children without a fresh start, which is what they have without this call.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    });
}

unsafe extern "C" fn before_fork() {
    // A thread that forks while it makes the runtime cannot take the lock again.
    if let Ok(making) = CREATING.try_lock() {
        let locks = ForkLocks {
            _making: making,
            _registry: crate::hip::module::fatbin::lock_for_fork(),
        };
        FORKING.with_borrow_mut(|slot| *slot = Some(locks));
    }
}

unsafe extern "C" fn after_fork() {
    FORKING.with_borrow_mut(|slot| slot.take());
}

unsafe extern "C" fn in_child() {
    FORKING.with_borrow_mut(|slot| slot.take());
    // The parent's threads and queues do not exist here: their entries are dropped, and the next call makes new ones.
    RUNTIME.store(ptr::null_mut(), Ordering::Release);
}

/// An address that is passed between threads without being used as a pointer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opaque(pub(crate) *mut c_void);
// SAFETY: it is handed through, never dereferenced by us.
unsafe impl Send for Opaque {}
// SAFETY: as above.
unsafe impl Sync for Opaque {}
