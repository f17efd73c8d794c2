//! Devices of the HIP runtime: agent, memory pools, hardware queues, streams and limits of each GPU.

pub(crate) mod api;
pub(crate) mod context_api;
pub(crate) mod props;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::hip::copy::blit::Blit;
use crate::hip::device::props::{Figures, Properties};
use crate::hip::error::{HipResult, code};
use crate::hip::hsa;
use crate::hip::memory::pool::MemPool;
use crate::hip::runtime::{HostPools, lock};
use crate::hip::stream::Stream;
use crate::hip::stream::queue::Queues;
use crate::hsa::types::{GLOBAL_FLAG_COARSE_GRAINED, GLOBAL_FLAG_FINE_GRAINED};

/// A HIP device: its agent, memory pools, streams and default memory pool.
pub(crate) struct Device {
    pub(crate) ordinal: usize,
    pub(crate) agent: u64,
    /// The agent of the host, for copies.
    pub(crate) cpu: u64,
    /// Size of the device memory in bytes.
    pub(crate) vram: u64,
    /// Device memory whose content is visible to the host and to peers while kernels run.
    pub(crate) vram_fine: u64,
    /// Host memory for kernel arguments.
    pub(crate) kernarg_pool: u64,
    /// Host memory for staging.
    pub(crate) staging_pool: u64,
    /// Bytes of device memory.
    pub(crate) total: usize,
    /// Bytes of device memory given to programs.
    pub(crate) used: AtomicUsize,
    pub(crate) properties: Box<Properties>,
    pub(crate) figures: Figures,
    pub(crate) queues: Queues,
    pub(crate) streams: Mutex<Vec<Weak<Stream>>>,
    legacy: OnceLock<Arc<Stream>>,
    making_legacy: Mutex<()>,
    blit: OnceLock<Blit>,
    loading_blit: Mutex<()>,
    /// Flags of the device, as `hipSetDeviceFlags` has set them.
    pub(crate) flags: AtomicU32,
    /// Values of `hipDeviceSetLimit`, indexed by [`limit`]: stack, printf buffer, heap.
    pub(crate) limits: [AtomicUsize; 3],
    /// Bit n: access to the memory of device n is enabled.
    pub(crate) peers: AtomicU32,
    /// Copy engines to and from the device, as masks.
    pub(crate) engines: (u32, u32),
    /// Whether the primary context is held by the program.
    pub(crate) retained: AtomicBool,
    /// The pool that `hipMallocAsync` allocates from by default.
    pub(crate) default_pool: OnceLock<Arc<MemPool>>,
    /// The pool that the program set in place of the default one for `hipMallocAsync`.
    pub(crate) chosen_pool: Mutex<Option<Arc<MemPool>>>,
    /// Memory that graphs on the device hold.
    pub(crate) graph_memory: crate::hip::graph::memory::Usage,
    /// Address of the heap of `malloc` in kernels, 0 before it is needed.
    pub(crate) heap: Mutex<u64>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("ordinal", &self.ordinal)
            .finish_non_exhaustive()
    }
}

/// Indices of [`Device::limits`], which are values of `hipLimit_t`.
pub(crate) mod limit {
    /// Stack of a work-item whose kernel makes indirect calls.
    pub(crate) const STACK: usize = 0;
    /// Buffer of `printf` in kernels that are compiled for one.
    pub(crate) const PRINTF: usize = 1;
}

/// Limits a device starts with, in bytes.
const LIMITS: [usize; 3] = [1024, 1 << 20, 8 << 20];

impl Device {
    pub(crate) fn new(ordinal: usize, agent: u64, cpu: u64, host: HostPools) -> HipResult<Self> {
        const POOL_SEGMENT: u32 = 0;
        const POOL_GLOBAL_FLAGS: u32 = 1;
        const POOL_SIZE: u32 = 2;
        let (mut vram, mut vram_fine, mut total) = (0, 0, 0);
        for pool in hsa::pools(agent)? {
            if hsa::pool_info::<u32>(pool, POOL_SEGMENT)? != 0 {
                continue;
            }
            let flags: u32 = hsa::pool_info(pool, POOL_GLOBAL_FLAGS)?;
            if flags & GLOBAL_FLAG_COARSE_GRAINED != 0 && vram == 0 {
                vram = pool;
                total = hsa::pool_info::<usize>(pool, POOL_SIZE)?;
            } else if flags & GLOBAL_FLAG_FINE_GRAINED != 0 && vram_fine == 0 {
                vram_fine = pool;
            }
        }
        if vram == 0 {
            return Err(code::NO_DEVICE);
        }
        let figures = Figures::read(agent)?;
        Ok(Self {
            ordinal,
            agent,
            cpu,
            vram,
            vram_fine: if vram_fine == 0 { vram } else { vram_fine },
            kernarg_pool: host.kernarg,
            staging_pool: host.fine,
            total,
            used: AtomicUsize::new(0),
            properties: Box::new(Properties::from_figures(&figures, total)),
            figures,
            queues: Queues::default(),
            streams: Mutex::default(),
            legacy: OnceLock::new(),
            making_legacy: Mutex::default(),
            blit: OnceLock::new(),
            loading_blit: Mutex::default(),
            flags: AtomicU32::new(0),
            limits: LIMITS.map(AtomicUsize::new),
            peers: AtomicU32::new(0),
            engines: (hsa::copy_engines(agent, cpu), hsa::copy_engines(cpu, agent)),
            retained: AtomicBool::new(false),
            default_pool: OnceLock::new(),
            chosen_pool: Mutex::default(),
            graph_memory: crate::hip::graph::memory::Usage::default(),
            heap: Mutex::default(),
        })
    }

    /// The null stream, made when it is first used.
    pub(crate) fn legacy_stream(&'static self) -> HipResult<Arc<Stream>> {
        if let Some(stream) = self.legacy.get() {
            return Ok(Arc::clone(stream));
        }
        let _making = lock(&self.making_legacy);
        if let Some(stream) = self.legacy.get() {
            return Ok(Arc::clone(stream));
        }
        let stream = Stream::new(self, 0, 0, true)?;
        Ok(Arc::clone(self.legacy.get_or_init(|| stream)))
    }

    pub(crate) fn legacy_stream_if_any(&self) -> Option<&Arc<Stream>> {
        self.legacy.get()
    }

    /// The streams that exist now.
    pub(crate) fn live_streams(&self) -> Vec<Arc<Stream>> {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.iter().filter_map(Weak::upgrade).collect()
    }

    /// Waits for everything enqueued on the device so far.
    pub(crate) fn synchronize(&self) -> HipResult {
        for stream in self.live_streams() {
            stream.synchronize()?;
        }
        self.trim_pools();
        Ok(())
    }

    /// Frees memory that exceeds the limits of the memory pools.
    pub(crate) fn trim_pools(&self) {
        if let Some(pool) = self.default_pool.get() {
            pool.trim_to_threshold();
        }
        if let Some(pool) = lock(&self.chosen_pool).as_ref() {
            pool.trim_to_threshold();
        }
    }

    pub(crate) fn blit_loaded(&self) -> bool {
        self.blit.get().is_some()
    }

    /// The runtime's own kernels, loaded with the first stream.
    pub(crate) fn blit(&'static self) -> HipResult<&'static Blit> {
        if let Some(blit) = self.blit.get() {
            return Ok(blit);
        }
        let _loading = lock(&self.loading_blit);
        if let Some(blit) = self.blit.get() {
            return Ok(blit);
        }
        let blit = Blit::load(self)?;
        Ok(self.blit.get_or_init(|| blit))
    }
}
