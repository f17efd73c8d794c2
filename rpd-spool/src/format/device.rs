//! Records of device work: dispatches, copies, allocations, scratch memory.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// A dispatch of a kernel that is complete (`rocprofiler_callback_tracing_kernel_dispatch_data_t`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Dispatch {
    /// Head of the record. `aux`: of a dispatch that the provider ran several times on the same input, the number of the run,
    /// from 1; otherwise 0.
    pub header: RecordHeader,
    /// Id of the thread that submitted the dispatch.
    pub thread: u64,
    /// Correlation id of the call that submitted the dispatch.
    pub correlation: u64,
    /// Begin of the dispatch on the device.
    pub start: u64,
    /// End of the dispatch on the device.
    pub end: u64,
    /// Handle of the agent that ran the dispatch.
    pub agent: u64,
    /// Handle of the queue that the dispatch was submitted to.
    pub queue: u64,
    /// Id of the kernel: [`KernelSymbol::id`](super::KernelSymbol::id).
    pub kernel: u64,
    /// Id of the dispatch.
    pub dispatch: u64,
    /// Id of the HIP stream; 0 for the null stream and when none is known.
    pub stream: u32,
    /// Region that renames the kernel: [`super::Region::id`]; 0 when there is none.
    pub region: u32,
    /// Scratch memory of a work item, from the dispatch packet.
    pub private_size: u32,
    /// LDS of a workgroup, static and dynamic, from the dispatch packet.
    pub group_size: u32,
    /// Work items of a workgroup: x, y, z.
    pub workgroup: [u32; 3],
    /// Work items of the grid: x, y, z.
    pub grid: [u32; 3],
    /// The graph launch that the dispatch is a part of.
    pub graph: GraphNode,
}

/// Place of a dispatch or copy in the launch of a graph. All fields are 0 outside of graphs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct GraphNode {
    /// Number of the executable graph in its process, from 1; 0 outside of graphs.
    pub exec: u32,
    /// Number of the dispatch or copy in the launch, from 0; of CUDA, number of the node in the graph.
    pub node: u32,
}

/// The call that added a node to a graph: the one that was captured, for a graph that was made by capturing. Written for
/// the graph that the call made and for each graph that is made of that, once for each node.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CapturedNode {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Graph and node, as dispatches and copies have them.
    pub graph: GraphNode,
    /// Correlation id of the call.
    pub correlation: u64,
}

/// A launch of a graph, written when the call has returned successfully.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct GraphLaunch {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the thread that launched the graph.
    pub thread: u64,
    /// Correlation id of the call that launched the graph; 0 when it is not traced.
    pub correlation: u64,
    /// Time at which the call began, on the host.
    pub start: u64,
    /// Time at which the call returned, on the host.
    pub end: u64,
    /// Handle of the agent that the graph runs on; 0 when it is not known.
    pub agent: u64,
    /// Number of kernels that the call submitted.
    pub dispatches: u64,
    /// Number of the executable graph: [`GraphNode::exec`].
    pub exec: u32,
    /// Not used: 0.
    pub reserved: u32,
}

/// Work of the device for a HIP event: the barrier that records it, or that waits for it; or a wait of CUDA, of which begin
/// and end are those of the wait.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct HipEvent {
    /// Head of the record. `aux`: one of [`event_operation`].
    pub header: RecordHeader,
    /// Id of the thread that made the call.
    pub thread: u64,
    /// Correlation id of the call that recorded the event or waits for it.
    pub correlation: u64,
    /// Begin of the barrier on the device.
    pub start: u64,
    /// End of the barrier on the device.
    pub end: u64,
    /// Handle of the agent of the queue.
    pub agent: u64,
    /// Handle of the queue that the barrier was submitted to.
    pub queue: u64,
    /// The program's handle of the event.
    pub event: u64,
    /// Handle of the queue that the event was recorded on.
    pub source_queue: u64,
    /// Id of the HIP stream of the barrier; 0 for the null stream and when none is known.
    pub stream: u32,
    /// Not used: 0.
    pub reserved: u32,
}

/// An event of the kernel driver (`rocprofiler_buffer_tracing_kfd_*_record_t`). Fields that its kind lacks are 0.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct KfdEvent {
    /// Head of the record. `aux`: one of [`kfd_kind`].
    pub header: RecordHeader,
    /// Begin of what is paired, or time of a single point.
    pub start: u64,
    /// End of what is paired, or time of a single point.
    pub end: u64,
    /// Process that the driver reports the event for.
    pub pid: u32,
    /// The provider's number of the operation.
    pub operation: u32,
    /// Handle of the agent; of a migration that whose memory the pages leave. 0 for none.
    pub agent: u64,
    /// Handle of the agent whose memory pages go to; 0 for none.
    pub dst_agent: u64,
    /// Handle of the agent that pages are prefetched to; 0 for none.
    pub prefetch_agent: u64,
    /// Handle of the agent that is the preferred place of the pages; 0 for none.
    pub preferred_agent: u64,
    /// First address of the range, or the address of the access that faulted.
    pub address: u64,
    /// Address after the last byte of the range.
    pub end_address: u64,
    /// Error of the driver as `errno`, negative; 0 for success.
    pub error: i32,
    /// Number of events that the driver dropped.
    pub count: u32,
}

/// Meaning of a [`KfdEvent`]'s `aux`.
pub mod kfd_kind {
    /// Begin or end of a page migration: `KFD_EVENT_PAGE_MIGRATE`.
    pub const EVENT_PAGE_MIGRATE: u16 = 0;
    /// Begin or end of a page fault: `KFD_EVENT_PAGE_FAULT`.
    pub const EVENT_PAGE_FAULT: u16 = 1;
    /// Queues were evicted or restored: `KFD_EVENT_QUEUE`.
    pub const EVENT_QUEUE: u16 = 2;
    /// A range was unmapped from a GPU: `KFD_EVENT_UNMAP_FROM_GPU`.
    pub const EVENT_UNMAP_FROM_GPU: u16 = 3;
    /// The driver dropped events: `KFD_EVENT_DROPPED_EVENTS`.
    pub const EVENT_DROPPED_EVENTS: u16 = 4;
    /// A page migration: `KFD_PAGE_MIGRATE`.
    pub const PAGE_MIGRATE: u16 = 5;
    /// A page fault: `KFD_PAGE_FAULT`.
    pub const PAGE_FAULT: u16 = 6;
    /// Queues were evicted until they were restored: `KFD_QUEUE`.
    pub const QUEUE: u16 = 7;
}

/// Meaning of a [`HipEvent`]'s `aux`.
pub mod event_operation {
    /// The event is recorded on a stream.
    pub const RECORD: u16 = 1;
    /// A stream waits for the event.
    pub const WAIT: u16 = 2;
    /// The host waits for the event (CUDA).
    pub const HOST_WAITS_FOR_EVENT: u16 = 3;
    /// The host waits for a stream (CUDA).
    pub const HOST_WAITS_FOR_STREAM: u16 = 4;
    /// The host waits for a context (CUDA).
    pub const HOST_WAITS_FOR_CONTEXT: u16 = 5;
}

/// An asynchronous copy that is complete (`rocprofiler_callback_tracing_memory_copy_data_t`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Copy {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the thread that submitted the copy.
    pub thread: u64,
    /// Correlation id of the call that submitted the copy.
    pub correlation: u64,
    /// Begin of the copy on the device.
    pub start: u64,
    /// End of the copy on the device.
    pub end: u64,
    /// Handle of the agent whose memory was written.
    pub dst_agent: u64,
    /// Handle of the agent whose memory was read.
    pub src_agent: u64,
    /// Number of bytes that were copied.
    pub bytes: u64,
    /// First address written; 0 when the provider does not report it.
    pub dst_address: u64,
    /// First address read; 0 when the provider does not report it.
    pub src_address: u64,
    /// Number of the operation in the callback kind MEMORY_COPY: the direction.
    pub operation: u32,
    /// Id of the HIP stream; 0 for the null stream and when none is known.
    pub stream: u32,
    /// Region around the submitting call: [`super::Region::id`]; 0 when there is none.
    pub region: u32,
    /// Not used: 0.
    pub reserved: u32,
    /// The graph launch that the copy is a part of.
    pub graph: GraphNode,
}

/// Memory was allocated or freed (`rocprofiler_callback_tracing_memory_allocation_data_t`). Tail: empty, or a
/// [`super::StackRef`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Allocation {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the thread that made the call.
    pub thread: u64,
    /// Correlation id of the call that allocated or freed.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call; 0 when there is none.
    pub ancestor: u64,
    /// Begin of the operation: the provider's time, or the collector's where the provider has none.
    pub start: u64,
    /// End of the operation: the provider's time, or the collector's where the provider has none.
    pub end: u64,
    /// Handle of the agent that the memory belongs to; 0 for frees.
    pub agent: u64,
    /// First address of the memory, or the handle of physical memory.
    pub address: u64,
    /// Number of bytes that were allocated; 0 for frees.
    pub bytes: u64,
    /// Number of the operation in the callback kind MEMORY_ALLOCATION.
    pub operation: u32,
    /// Id of the HIP stream; 0 for the null stream and when none is known.
    pub stream: u32,
}

/// The scratch memory of a queue changed (`rocprofiler_callback_tracing_scratch_memory_data_t`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Scratch {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the thread on which the provider reported the change.
    pub thread: u64,
    /// Correlation id that the provider gave the operation.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call; 0 when there is none.
    pub ancestor: u64,
    /// Begin of the operation: time at which the provider called the collector.
    pub start: u64,
    /// End of the operation: time of the provider's second call.
    pub end: u64,
    /// Handle of the agent whose scratch memory changed.
    pub agent: u64,
    /// Handle of the queue that uses the memory.
    pub queue: u64,
    /// Number of bytes that were allocated; 0 for other operations.
    pub bytes: u64,
    /// Number of the operation in the callback kind SCRATCH_MEMORY.
    pub operation: u32,
    /// Flags of the provider (`rocprofiler_scratch_alloc_flag_t`): 1 released after one dispatch, 2 of the
    /// alternative area.
    pub flags: u32,
}

/// Sums over the dispatches of a kernel, or over the copies of a direction. The collector adds to the record in
/// place, so that it is complete however the process ends.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DeviceTotal {
    /// Head of the record. `aux`: [`total_of::DISPATCHES`] or [`total_of::COPIES`].
    pub header: RecordHeader,
    /// For dispatches the id of the kernel, for copies the number of the operation in the callback kind MEMORY_COPY.
    /// [`total_of::OTHERS`] for all that have no record of their own.
    pub subject: u64,
    /// Number of dispatches or copies; 0 in a record that was just made.
    pub count: u64,
    /// Sum of the durations in ns.
    pub total: u64,
    /// Shortest duration in ns.
    pub min: u64,
    /// Longest duration in ns.
    pub max: u64,
    /// Sum of the squared differences between the durations and their mean, in ns².
    pub spread: f64,
    /// Number of bytes that were copied; 0 for dispatches.
    pub bytes: u64,
    /// Start of the first dispatch or copy.
    pub first: u64,
    /// End of the last dispatch or copy.
    pub last: u64,
    /// Number of durations in each bucket, by the bucket's number ([`crate::durations`]).
    pub durations: [u64; crate::durations::TOTAL_BUCKETS],
}

/// Meaning of a [`DeviceTotal`]'s `aux` and `subject`.
pub mod total_of {
    /// In `aux`: the dispatches of a kernel.
    pub const DISPATCHES: u16 = 1;
    /// In `aux`: the copies of a direction.
    pub const COPIES: u16 = 2;
    /// In [`super::DeviceTotal::subject`]: all kernels or directions without a record of their own.
    pub const OTHERS: u64 = u64::MAX;
}
