//! Hooks for the layer above the device.
//!
//! One [`Observer`] per process, set once, is called for what queues, processors, copy engines and the loader
//! really did. Without one, or for tokens of zero, the device does no work for observation.

use std::sync::OnceLock;

use super::aql::KernelDispatchPacket;
use super::replay::Candidate;
use super::svm::Cause;
use rpd_gfx::device::Device;
use rpd_gfx::perf;

/// A number by which an observer recognises an operation at its end; zero: not observed.
pub(crate) type Token = u64;

/// A hardware queue, described for an observer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueInfo {
    /// Address of the `hsa_queue_t`, the runtime's handle.
    pub(crate) handle: u64,
    /// HSA handle of the agent that consumes the packets.
    pub(crate) agent: u64,
}

/// A kernel dispatch packet about to become visible to the packet processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DispatchInfo<'a> {
    /// The queue it was written to.
    pub(crate) queue: QueueInfo,
    /// Index of the packet since the queue was made.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by tests of order"))]
    pub(crate) packet_id: u64,
    /// Content of the AQL packet.
    pub(crate) packet: &'a KernelDispatchPacket,
}

/// Direction of a copy, from the types of its two agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    /// Both ends belong to the CPU agent.
    HostToHost,
    /// From CPU memory to a GPU.
    HostToDevice,
    /// From a GPU to CPU memory.
    DeviceToHost,
    /// Both ends belong to GPUs.
    DeviceToDevice,
}

/// An asynchronous copy as submitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyInfo {
    /// HSA handle of the agent that owns the destination.
    pub(crate) dst_agent: u64,
    /// HSA handle of the agent that owns the source.
    pub(crate) src_agent: u64,
    /// Destination address (of the first byte written, for rectangles).
    pub(crate) dst: u64,
    /// Source address (of the first byte read, for rectangles).
    pub(crate) src: u64,
    /// Bytes moved; x·y·z for rectangles.
    pub(crate) bytes: u64,
    /// Direction from the agents' types.
    pub(crate) direction: CopyDirection,
}

/// Begin and end of an operation, in nanoseconds of the host's `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    /// Tick of the GPU's clock at the begin.
    pub(crate) start: u64,
    /// Tick of the GPU's clock at the end, never before `start`.
    pub(crate) end: u64,
}

/// Recording of a dispatch: times, counters, samples, trace.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Times at which each wave issued its instructions; empty if no instruction was to be recorded.
    pub(crate) timelines: Vec<perf::Timeline>,
    /// Model of the GPU that executed it.
    pub(crate) device: &'static Device,
    /// Address that offsets of instructions are relative to.
    pub(crate) base: u64,
    /// Address of the kernel's first instruction.
    pub(crate) entry: u64,
    /// Workgroups in each dimension.
    pub(crate) groups: [u32; 3],
    /// Number of the hardware queue that the packet came through.
    pub(crate) hardware_queue: u32,
    /// Content of the AQL packet.
    pub(crate) packet: KernelDispatchPacket,
    /// Address of the AQL packet in the queue.
    pub(crate) packet_address: u64,
    /// The kernel's resource registers.
    pub(crate) resources: [u32; 3],
}

/// Event of a queue's scratch memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScratchEvent {
    /// Memory was given to the queue.
    Alloc,
    /// The queue released its memory.
    Free,
}

/// One scratch event; reported once when it begins and once when it has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScratchInfo {
    /// Queue whose scratch memory changes.
    pub(crate) queue: QueueInfo,
    /// Begin or end of an allocation, release or reclaim.
    pub(crate) event: ScratchEvent,
    /// Packet that needed the memory.
    pub(crate) dispatch_packet_id: u64,
    /// Bytes, set for [`ScratchEvent::Alloc`].
    pub(crate) bytes: u64,
    /// Number of wave slots for which the memory suffices.
    pub(crate) slots: u64,
    /// `HSA_AMD_EVENT_SCRATCH_ALLOC_FLAG_*`: 1 use once, 2 alternate.
    pub(crate) flags: u32,
}

/// Storage of a code object's image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeObjectStorage {
    /// The image is in a file that the URI names.
    File,
    /// The image is in the process's memory.
    Memory,
}

/// A kernel of a loaded code object, with the sizes in its descriptor.
#[derive(Debug, Clone)]
pub(crate) struct KernelInfo {
    /// Symbol name, ending in `.kd`.
    pub(crate) name: String,
    /// Device address of the kernel descriptor, the packet's kernel object.
    pub(crate) kernel_object: u64,
    /// Bytes of the kernarg segment.
    pub(crate) kernarg_size: u32,
    /// Alignment of the kernarg segment in bytes.
    pub(crate) kernarg_align: u32,
    /// LDS of each workgroup in bytes that the kernel has without dynamic memory.
    pub(crate) group_size: u32,
    /// Scratch memory of each work-item in bytes.
    pub(crate) private_size: u32,
    /// Scalar registers of each wave, as allocated.
    pub(crate) sgpr_count: u32,
    /// Architected vector registers of each work-item, as allocated.
    pub(crate) arch_vgpr_count: u32,
    /// Accumulation registers of each work-item, as allocated.
    pub(crate) accum_vgpr_count: u32,
    /// Offset of the first instruction from the descriptor in bytes.
    pub(crate) entry_offset: i64,
}

/// A code object, as it is after its executable was frozen.
#[derive(Debug, Clone)]
pub(crate) struct CodeObjectInfo {
    /// HSA handle of the loaded code object, the key for its unloading.
    pub(crate) handle: u64,
    /// HSA handle of the agent it was loaded for.
    pub(crate) agent: u64,
    /// `file://...#offset=..&size=..` or `memory://pid#offset=0x..&size=..`.
    pub(crate) uri: String,
    /// Whether the image is in a file or in memory.
    pub(crate) storage: CodeObjectStorage,
    /// Host address of the image; zero for files.
    pub(crate) memory_base: u64,
    /// Size of the image in bytes; zero for files.
    pub(crate) memory_size: u64,
    /// Descriptor of the file, -1 for memory.
    pub(crate) file: i32,
    /// Lowest address of the loaded code object in device memory.
    pub(crate) load_base: u64,
    /// Bytes in device memory.
    pub(crate) load_size: u64,
    /// Difference between device addresses and the object's own.
    pub(crate) load_delta: i64,
    /// Kernels of the code object in symbol table order.
    pub(crate) kernels: Vec<KernelInfo>,
}

/// A move of pages of managed memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Migration {
    /// Addresses of the pages.
    pub(crate) range: std::ops::Range<u64>,
    /// Begin, ns of the host's `CLOCK_BOOTTIME`.
    pub(crate) start: u64,
    /// End, ns of the host's `CLOCK_BOOTTIME`.
    pub(crate) end: u64,
    /// HSA handle of the agent whose memory the pages leave.
    pub(crate) from: u64,
    /// HSA handle of the agent whose memory they go to.
    pub(crate) to: u64,
    /// HSA handle of the agent that the range was prefetched to last; 0 for none.
    pub(crate) prefetch: u64,
    /// HSA handle of the agent that the program prefers; 0 for none.
    pub(crate) preferred: u64,
    /// What moves them.
    pub(crate) cause: Cause,
}

/// An event of the kernel driver. Times are ns of the host's `CLOCK_BOOTTIME`, agents are HSA handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DriverEvent {
    /// Pages were moved.
    Migrated(Migration),
    /// A kernel touched a page that its GPU had not mapped.
    Faulted {
        /// The GPU.
        agent: u64,
        /// Address of the page.
        address: u64,
        /// Begin of the fault.
        start: u64,
        /// Time at which the page was mapped.
        end: u64,
        /// Whether the access was a store.
        write: bool,
        /// Whether the page was moved, and not only mapped.
        migrated: bool,
    },
    /// Pages were unmapped from a GPU.
    Unmapped {
        /// The GPU.
        agent: u64,
        /// Addresses of the pages.
        range: std::ops::Range<u64>,
        /// Time of the event.
        time: u64,
        /// Whether they move, and are not freed.
        migrates: bool,
    },
    /// The queues of a GPU executed nothing for a while.
    Evicted {
        /// The GPU.
        agent: u64,
        /// Time of the eviction.
        start: u64,
        /// Time of the restoration.
        end: u64,
    },
}

/// An observer of the device. By default every method does nothing.
///
/// Methods are called without any lock of the device or the runtime held that another API call needs, so
/// they may call back into tools. They must not block on the device.
#[allow(unused_variables)]
pub(crate) trait Observer: Send + Sync {
    /// A queue exists; on the thread that made it, inside `hsa_queue_create`.
    fn queue_created(&self, queue: &QueueInfo) {}
    /// A queue is about to be destroyed; all its observed dispatches have been reported as completed.
    fn queue_destroyed(&self, queue: &QueueInfo) {}
    /// A packet is about to become visible to the processor; on the thread that rings the doorbell.
    fn dispatch_enqueued(&self, dispatch: &DispatchInfo<'_>) -> Token {
        0
    }
    /// Whether dispatches may be given to [`Observer::replay`].
    fn replays(&self) -> bool {
        false
    }
    /// May run a dispatch, any number of times, in place of the processor; on the thread that rings the doorbell, which has
    /// rung for nothing else. Returns begin and end of the last run in device ticks; `None` leaves the dispatch to the processor,
    /// and [`Observer::dispatch_enqueued`] follows.
    fn replay(&self, dispatch: &DispatchInfo<'_>, candidate: &Candidate<'_>) -> Option<(u64, u64)> {
        None
    }
    /// Whether kernels of a queue's GPU run one after the other, counted or not; on the processor's thread before
    /// each dispatch.
    fn serialises(&self, queue: &QueueInfo) -> bool {
        false
    }
    /// Whether a dispatch shall be counted; on the processor's thread before it runs. It will run alone.
    fn counts(&self, token: Token) -> bool {
        false
    }
    /// Counts of a counted dispatch; on the signal handler thread, before `dispatch_completed`.
    fn dispatch_counted(&self, token: Token, counts: &perf::Counts, time: Interval) {}
    /// Selection for recording a dispatch; `None` for no recording, an empty selection if only its time matters. On the
    /// processor's thread before it runs. It runs alone if whole engines are selected.
    fn records(&self, token: Token) -> Option<perf::Selection> {
        None
    }
    /// Recording of a dispatch; on the signal handler thread, before `dispatch_completed`.
    fn dispatch_recorded(&self, token: Token, recording: &Recording, time: Interval) {}
    /// A dispatch ended; on the signal handler thread, before its completion signal is decremented.
    fn dispatch_completed(&self, token: Token, time: Interval) {}
    /// A copy was submitted to an engine; on the API thread.
    fn copy_submitted(&self, copy: &CopyInfo) -> Token {
        0
    }
    /// A copy ended; on the signal handler thread, before its completion signal is decremented.
    fn copy_completed(&self, token: Token, time: Interval) {}
    /// Scratch memory is given to or taken from a queue; begin on the processor's thread.
    fn scratch_begin(&self, scratch: &ScratchInfo) -> Token {
        0
    }
    /// The change of scratch memory that [`Observer::scratch_begin`] announced has happened.
    fn scratch_end(&self, token: Token, scratch: &ScratchInfo) {}
    /// The kernel driver did something; on the thread that caused it, after it was done.
    fn driver_event(&self, event: &DriverEvent) {}
    /// An executable was frozen; on the application thread, once for each code object in it.
    fn code_object_loaded(&self, object: &CodeObjectInfo) {}
    /// A code object is about to be unloaded; its memory is still readable.
    fn code_object_unloaded(&self, object: &CodeObjectInfo) {}
}

static OBSERVER: OnceLock<&'static dyn Observer> = OnceLock::new();

/// Lists the code objects in frozen executables.
static CODE: OnceLock<fn() -> Vec<CodeObjectInfo>> = OnceLock::new();

/// Sets the function that lists the code objects in frozen executables; only the first call counts.
pub(crate) fn list_code_with(list: fn() -> Vec<CodeObjectInfo>) {
    let _ = CODE.set(list);
}

/// The code objects that have been loaded so far.
pub(crate) fn loaded_code() -> Vec<CodeObjectInfo> {
    CODE.get().map_or_else(Vec::new, |list| list())
}

/// Installs the process's observer. Returns `false` when one is installed already.
pub(crate) fn set(observer: &'static dyn Observer) -> bool {
    OBSERVER.set(observer).is_ok()
}

/// The process's observer, if there is one.
#[inline]
pub(crate) fn get() -> Option<&'static dyn Observer> {
    OBSERVER.get().copied()
}
