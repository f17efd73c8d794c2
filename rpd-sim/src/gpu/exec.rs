//! Execution of dispatches on the interpreter, and the registry of kernels.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use super::accesses;
use super::agents::{self, Agent, PoolKind};
use super::aql::KernelDispatchPacket;
use super::check;
use super::clock;
use super::fault::Fault;
use super::machine::machine;
use super::memory::Use;
use super::observe::{self, Recording, ScratchEvent, ScratchInfo};
use super::queue::Queue;
use super::svm;
use rpd_gfx::check::Checker;
use rpd_gfx::codeobj::{Image, KernelDescriptor};
use rpd_gfx::isa::{self, Control, Dispatch, Extent, Program, WaveSync};
use rpd_gfx::perf::{
    CountingRecorder, Counts, Model, Owner, PageMemory, Recorder, Selection, Timeline,
};

/// Flat addresses of LDS begin here.
pub(crate) const SHARED_APERTURE: u64 = 0x0001_0000_0000_0000;
/// Flat addresses of scratch begin here.
pub(crate) const PRIVATE_APERTURE: u64 = 0x0002_0000_0000_0000;
/// Number of work-items for each thread: a dispatch with fewer is not worth a second thread.
const WORK_ITEMS_A_THREAD: u64 = 4096;

/// A kernel that can be dispatched.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Symbol name without `.kd`, for messages.
    pub(crate) name: String,
    /// The code object's instructions.
    pub(crate) program: Arc<Program>,
    /// The descriptor at its kernel object's address.
    pub(crate) descriptor: KernelDescriptor,
    /// Keeps the instructions mapped while a dispatch may still run them.
    pub(crate) image: Arc<Image>,
    /// The code object as it was loaded, for source lines.
    pub(crate) file: Arc<Vec<u8>>,
}

impl Kernel {
    /// Address in the code object's file of an address of its code.
    pub(crate) fn address_in_file(&self, address: u64) -> u64 {
        address.wrapping_sub(self.image.delta())
    }
}

/// Registry of kernels by the address of their descriptor, which is the kernel object of packets.
#[derive(Default)]
pub(crate) struct KernelTable(RwLock<HashMap<u64, Arc<Kernel>>>);

impl KernelTable {
    /// Makes a kernel known under the address of its descriptor.
    pub(crate) fn insert(&self, kernel_object: u64, kernel: Kernel) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(kernel_object, Arc::new(kernel));
    }

    /// Forgets the kernel of a descriptor's address.
    pub(crate) fn remove(&self, kernel_object: u64) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.remove(&kernel_object);
    }

    /// The kernel of the descriptor at this address.
    pub(crate) fn get(&self, kernel_object: u64) -> Option<Arc<Kernel>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.get(&kernel_object).cloned()
    }
}

/// The machine's memory with the rights of one agent.
struct View {
    mask: u64,
    queue: &'static Queue,
}

impl isa::Memory for View {
    fn extent(&self, address: u64, write: bool) -> Option<Extent> {
        let range = machine().memory.accessible(address as usize, self.mask)?;
        let (start, end) = (range.base as u64, range.end as u64);
        // Of managed memory the other pages may be elsewhere.
        let mapped = svm::touch(self.queue.agent(), address, write).unwrap_or(start..end);
        Some(Extent {
            start: mapped.start.max(start),
            end: mapped.end.min(end),
            writable: true,
            fine_grained: range.fine_grained,
        })
    }

    fn changes(&self) -> u64 {
        machine().memory.changes()
    }

    fn realtime(&self) -> u64 {
        clock::ticks()
    }

    fn wave_sync(&self) -> &WaveSync {
        &self.queue.wave_sync
    }
}

/// Observations requested of a running dispatch.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Whether hardware counters are collected for the dispatch.
    pub(crate) counted: bool,
    /// The instructions whose executions are recorded, if any.
    pub(crate) records: Option<Selection>,
    /// Number of the hardware queue that the packet came through.
    pub(crate) hardware_queue: u32,
}

/// Observations of a dispatch.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// Counts of the dispatch, if it was counted.
    pub(crate) counts: Option<Box<Counts>>,
    /// Recording of what its waves executed, if it is sampled or traced.
    pub(crate) recording: Option<Box<Recording>>,
}

/// End of a dispatch without a fault.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The dispatch ran to its end.
    Done {
        /// Counts and samples of the dispatch.
        results: Results,
        /// Computing time of the dispatch, see [`isa::Executed::time`].
        time: Duration,
    },
    /// The program stopped the queue before the dispatch had ended.
    GivenUp,
}

/// Executes a dispatch packet to its end.
pub(crate) fn run(
    queue: &'static Queue,
    index: u64,
    packet: &KernelDispatchPacket,
    watch: Watch,
) -> Result<Outcome, Fault> {
    // The object may be that of a code object that was unloaded after the packet was written.
    let kernel = machine().kernels.get(packet.kernel_object).ok_or_else(|| {
        Fault::kernel_object(&format!(
            "packet {index}: no loaded kernel has the kernel object {:#x}",
            packet.kernel_object
        ))
    })?;
    let name = &kernel.name;
    let agent = queue.agent();
    // A field beyond the number of dimensions may have any value: programs need not set it.
    let dimensions = packet.setup & 3;
    if dimensions == 0 {
        return Err(Fault::dimensions(
            name,
            "the packet's setup names no dimension",
        ));
    }
    let used = |dimension: u16| dimension < dimensions;
    let grid = [
        packet.grid_size_x,
        if used(1) { packet.grid_size_y } else { 1 },
        if used(2) { packet.grid_size_z } else { 1 },
    ];
    let workgroup = [
        packet.workgroup_size_x,
        if used(1) { packet.workgroup_size_y } else { 1 },
        if used(2) { packet.workgroup_size_z } else { 1 },
    ];
    let workgroup_items: u64 = workgroup.iter().map(|&n| u64::from(n)).product();
    if grid.contains(&0) || workgroup_items == 0 {
        let what = format!("grid {grid:?} or workgroup {workgroup:?} has an empty dimension");
        return Err(Fault::dimensions(name, &what));
    }
    // The interpreter relies on these limits, and the real packet processor stops the queue on each of them.
    if workgroup_items > u64::from(agent.workgroup_max_size) {
        let what = format!(
            "a workgroup of {workgroup_items} work-items exceeds {}",
            agent.workgroup_max_size
        );
        return Err(Fault::dimensions(name, &what));
    }
    let lds = agent.lds_kib * 1024;
    if packet.group_segment_size > lds {
        let what = format!("{} bytes of LDS exceed {lds}", packet.group_segment_size);
        return Err(Fault::group_memory(name, &what));
    }
    // Scratch belongs to the queue and grows only; most dispatches find that there is enough.
    provide_scratch(queue, index, name, packet.private_segment_size)?;
    let items = grid
        .iter()
        .fold(1u64, |n, &size| n.saturating_mul(u64::from(size)));
    let device = agent.device.unwrap_or_else(agents::device);
    let dispatch = Dispatch {
        device,
        kernel: name,
        program: &kernel.program,
        kernel_object: packet.kernel_object,
        descriptor: kernel.descriptor,
        grid,
        workgroup,
        group_segment_size: packet.group_segment_size,
        private_segment_size: packet.private_segment_size,
        kernarg: packet.kernarg_address,
        packet: queue.packet_address(index) as u64,
        queue: queue.address(),
        dispatch_id: index,
    };
    let view = View {
        mask: agent.bit(),
        queue,
    };
    let stop = queue.stop_flag();
    let control = Control {
        threads: (items / WORK_ITEMS_A_THREAD).clamp(1, threads()) as usize,
        stop,
        seed: seed(),
    };
    // The models need the owner of each page, because caches treat host memory and that of peers differently.
    let memory = |address: u64| memory_of(agent, address);
    let mut model = watch.counted.then(|| Model::new(&dispatch, &memory));
    let selection = watch.records.as_ref().filter(|s| !s.is_empty());
    // Counting and a seed need one order of execution, which several threads would not have.
    let workers = if watch.counted || control.seed.is_some() {
        1
    } else {
        control.threads
    };
    let mut recorders =
        selection.map(|selection| Recorder::for_threads(&dispatch, selection, workers));
    // The interpreter takes one probe: services that a tool configured come before the checker, and the checker comes
    // before a recording of accesses.
    let result = match (&mut model, &mut recorders) {
        (None, None) if let Some(session) = check::session() => {
            let lds = packet
                .group_segment_size
                .max(kernel.descriptor.group_segment_size);
            let mut checker = Checker::new(session, device.code.wave_size, lds);
            let result = isa::watch_dispatch(&dispatch, &view, &control, &mut checker);
            session.report(&kernel, &checker.findings());
            result
        }
        (Some(model), None) => isa::watch_dispatch(&dispatch, &view, &control, model),
        (Some(model), Some(recorders)) => {
            let mut both = CountingRecorder::new(model, &mut recorders[0]);
            isa::watch_dispatch(&dispatch, &view, &control, &mut both)
        }
        (None, Some(recorders)) => isa::follow_dispatch(&dispatch, &view, &control, recorders),
        (None, None) if let Some(recording) = accesses::begin(&kernel, &dispatch) => {
            let mut recorders = recording.recorders(workers);
            let result = isa::follow_dispatch(&dispatch, &view, &control, &mut recorders);
            recording.finish(recorders, result.is_err());
            result
        }
        (None, None) => isa::run_dispatch(&dispatch, &view, &control),
    };
    match result {
        Ok(executed) => {
            let record = recorders.map(Recorder::merge);
            // A recording is made even when no instruction was selected: the duration is needed for samples of the
            // kernel's later dispatches.
            let recording = watch.records.as_ref().map(|_| {
                let timelines = record.map(|r| Timeline::all(&r, device, &kernel.program));
                Box::new(Recording {
                    timelines: timelines.unwrap_or_default(),
                    device,
                    base: kernel.program.base(),
                    entry: dispatch.entry(),
                    // The last workgroup of a dimension may be smaller, and counts as one.
                    groups: std::array::from_fn(|n| grid[n].div_ceil(workgroup[n].into())),
                    hardware_queue: watch.hardware_queue,
                    packet: *packet,
                    packet_address: dispatch.packet,
                    resources: [
                        kernel.descriptor.rsrc1,
                        kernel.descriptor.rsrc2,
                        kernel.descriptor.rsrc3,
                    ],
                })
            });
            // Samples shall be the same for the same seed, so their time is that of the clock which kernels read then.
            let own_clock = control.seed.filter(|_| recording.is_some());
            let time = match own_clock {
                Some(_) => executed.stats.own_time(device),
                None => executed.time,
            };
            Ok(Outcome::Done {
                results: Results {
                    counts: model.map(|model| Box::new(model.finish())),
                    recording,
                },
                time,
            })
        }
        Err(isa::Fault::Stopped { .. }) => Ok(Outcome::GivenUp),
        Err(fault) => Err(Fault::from_kernel(&kernel, agent.bit(), &fault)),
    }
}

fn threads() -> u64 {
    static THREADS: OnceLock<u64> = OnceLock::new();
    *THREADS
        .get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get().min(16) as u64))
}

/// Value of `RPD_SIM_SEED`, which determines the order in which waves and workgroups execute.
pub(crate) fn seed() -> Option<u64> {
    static SEED: OnceLock<Option<u64>> = OnceLock::new();
    *SEED.get_or_init(|| {
        let text = std::env::var_os("RPD_SIM_SEED")?;
        let seed = text.to_str().and_then(|text| text.parse().ok());
        if seed.is_none() {
            eprintln!(
                "rpd-sim: RPD_SIM_SEED={} is not a number from 0 to {}; kernels run unseeded",
                text.display(),
                u64::MAX
            );
        }
        seed
    })
}

/// Memory behind an address, as caches of an agent treat it. Memory outside of all allocations counts as host memory.
fn memory_of(agent: &Agent, address: u64) -> PageMemory {
    let Some(allocation) = machine().memory.find(address as usize) else {
        return PageMemory {
            owner: Owner::Host,
            fine_grained: false,
        };
    };
    let pool = allocation.pool;
    PageMemory {
        owner: if pool.agent == agent.index {
            Owner::Device
        } else if pool.is_system() {
            Owner::Host
        } else {
            Owner::Peer
        },
        fine_grained: pool.is_fine_grained(),
    }
}

/// Gives the queue scratch memory for every wave slot, as the runtime does when a dispatch first needs it.
fn provide_scratch(
    queue: &'static Queue,
    index: u64,
    kernel: &str,
    per_lane: u32,
) -> Result<(), Fault> {
    let had = queue.scratch_per_lane.load(Ordering::Relaxed);
    if per_lane <= had {
        return Ok(());
    }
    let agent = queue.agent();
    let machine = machine();
    let slots = u64::from(agent.scratch_slots_per_cu) * u64::from(agent.cus);
    // The hardware allocates in units of 1 KiB a wave.
    let per_wave = (u64::from(per_lane) * u64::from(agent.wave_size)).next_multiple_of(1024);
    let bytes = per_wave * slots;
    let report = |event, bytes, slots| ScratchInfo {
        queue: queue.info(),
        event,
        dispatch_packet_id: index,
        bytes,
        slots,
        flags: 0,
    };
    let observer = observe::get();
    let observed = |info: ScratchInfo, act: &mut dyn FnMut()| {
        let token = observer.map_or(0, |observer| observer.scratch_begin(&info));
        act();
        if let Some(observer) = observer {
            observer.scratch_end(token, &info);
        }
    };
    let location = &queue.amd.scratch_backing_memory_location;
    if had != 0 {
        // The old block goes first: both together may not fit into the device's memory.
        let old = location.load(Ordering::Relaxed) as usize;
        observed(report(ScratchEvent::Free, 0, 0), &mut || {
            machine.memory.free(old, Use::Internal);
        });
    }
    let pool = agents::pool_of(agent.index, PoolKind::DeviceCoarse);
    // The observer is told of an allocation that fails as well, as the runtime does.
    let mut block = None;
    observed(report(ScratchEvent::Alloc, bytes, slots), &mut || {
        block = pool.and_then(|pool| {
            machine
                .memory
                .allocate(pool, bytes as usize, Use::Internal, agent.bit())
                .ok()
        });
    });
    let Some(block) = block else {
        // The old block is gone, so that a later dispatch must not believe that the queue still has it.
        queue.scratch_per_lane.store(0, Ordering::Relaxed);
        let what = format!("{bytes} bytes of scratch exceed the memory left");
        return Err(Fault::scratch(kernel, &what));
    };
    location.store(block.base as u64, Ordering::Relaxed);
    queue
        .amd
        .scratch_backing_memory_byte_size
        .store(bytes, Ordering::Relaxed);
    queue.scratch_per_lane.store(per_lane, Ordering::Relaxed);
    Ok(())
}
