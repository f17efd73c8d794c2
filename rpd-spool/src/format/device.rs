//! Work of the device: dispatches, copies, allocations, scratch memory.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// A kernel ran.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Dispatch {
    /// Record head.
    pub header: RecordHeader,
    /// Thread that submitted it.
    pub thread: u64,
    /// Internal correlation id of the call that submitted it.
    pub correlation: u64,
    /// Begin on the device, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End on the device.
    pub end: u64,
    /// Agent handle.
    pub agent: u64,
    /// Queue handle.
    pub queue: u64,
    /// Kernel id.
    pub kernel: u64,
    /// Dispatch id.
    pub dispatch: u64,
    /// HIP stream id; 0 when none is known.
    pub stream: u32,
    /// [`super::Region::id`]; 0 when none.
    pub region: u32,
    /// Scratch bytes of the packet.
    pub private_size: u32,
    /// LDS bytes of the packet.
    pub group_size: u32,
    /// Work items per workgroup: x, y, z.
    pub workgroup: [u32; 3],
    /// Work items of the grid: x, y, z.
    pub grid: [u32; 3],
}

/// An asynchronous copy ran.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Copy {
    /// Record head.
    pub header: RecordHeader,
    /// Thread that submitted it.
    pub thread: u64,
    /// Internal correlation id of the call that submitted it.
    pub correlation: u64,
    /// Begin, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End time, in ns of `CLOCK_BOOTTIME`.
    pub end: u64,
    /// Agent written to.
    pub dst_agent: u64,
    /// Agent read from.
    pub src_agent: u64,
    /// Number of bytes that were copied.
    pub bytes: u64,
    /// Address written to; 0 when the provider does not report it.
    pub dst_address: u64,
    /// Address read from; 0 when the provider does not report it.
    pub src_address: u64,
    /// The provider's operation number in its MEMORY_COPY callback kind.
    pub operation: u32,
    /// HIP stream id.
    pub stream: u32,
    /// [`super::Region::id`]; 0 when none.
    pub region: u32,
    /// Not used; 0.
    pub reserved: u32,
}

/// Memory was allocated or freed. Tail: nothing, or a [`super::StackRef`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Allocation {
    /// Record head.
    pub header: RecordHeader,
    /// Id of the thread that made the call.
    pub thread: u64,
    /// Internal correlation id of the call that did it.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call.
    pub ancestor: u64,
    /// Begin, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End time, in ns of `CLOCK_BOOTTIME`.
    pub end: u64,
    /// Agent handle; 0 for frees.
    pub agent: u64,
    /// Address (or memory handle).
    pub address: u64,
    /// Bytes; 0 for frees.
    pub bytes: u64,
    /// The provider's operation number in its MEMORY_ALLOCATION callback kind.
    pub operation: u32,
    /// HIP stream id.
    pub stream: u32,
}

/// Scratch memory changed.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Scratch {
    /// Record head.
    pub header: RecordHeader,
    /// Id of the thread that reported it.
    pub thread: u64,
    /// Internal correlation id.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call.
    pub ancestor: u64,
    /// Begin, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End time, in ns of `CLOCK_BOOTTIME`.
    pub end: u64,
    /// Agent handle.
    pub agent: u64,
    /// Queue handle.
    pub queue: u64,
    /// Bytes; 0 for frees.
    pub bytes: u64,
    /// The provider's operation number in its SCRATCH_MEMORY callback kind.
    pub operation: u32,
    /// Provider flags: 1 use-once, 2 alternate.
    pub flags: u32,
}

/// Sums of device work of one sort: the dispatches of a kernel, or the copies in a direction. The collector adds to it
/// in place, so that it is complete however the process ends.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DeviceTotal {
    /// Record head. aux: one of [`total_of`].
    pub header: RecordHeader,
    /// Kernel id, or the provider's operation number in its MEMORY_COPY callback kind. [`total_of::OTHERS`] stands for all
    /// that have no record of their own.
    pub subject: u64,
    /// Pieces of work.
    pub count: u64,
    /// Sum of their durations in ns.
    pub total: u64,
    /// Shortest duration in ns.
    pub min: u64,
    /// Longest duration in ns.
    pub max: u64,
    /// Sum of the squared distances of durations from their mean, in ns^2.
    pub spread: f64,
    /// Bytes that were copied; 0 for dispatches.
    pub bytes: u64,
    /// Start of the first, `CLOCK_BOOTTIME` ns.
    pub first: u64,
    /// Latest end, `CLOCK_BOOTTIME` ns.
    pub last: u64,
    /// Number of durations in each bucket ([`crate::durations`]).
    pub durations: [u64; crate::durations::TOTAL_BUCKETS],
}

/// Subjects of a [`DeviceTotal`].
pub mod total_of {
    /// Dispatches of a kernel.
    pub const DISPATCHES: u16 = 1;
    /// Copies in a direction.
    pub const COPIES: u16 = 2;
    /// In [`super::DeviceTotal::subject`]: all that have no record of their own.
    pub const OTHERS: u64 = u64::MAX;
}
