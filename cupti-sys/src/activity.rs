//! Records of activities: the part of each that all versions from 11.8 on have.

use std::ffi::c_char;

/// Kinds of records.
pub mod kind {
    use std::ffi::c_int;

    /// Copies between host and device, and on a device: [`super::Memcpy`].
    pub const MEMCPY: c_int = 1;
    /// Memory that is filled: [`super::Memset`].
    pub const MEMSET: c_int = 2;
    /// Kernels, one after the other: [`super::Kernel`].
    pub const KERNEL: c_int = 3;
    /// Devices: [`super::Device`].
    pub const DEVICE: c_int = 8;
    /// Contexts: [`super::Context`].
    pub const CONTEXT: c_int = 9;
    /// Kernels, which run as without records: [`super::Kernel`].
    pub const CONCURRENT_KERNEL: c_int = 10;
    /// Time that CUPTI itself takes: [`super::Overhead`].
    pub const OVERHEAD: c_int = 17;
    /// Copies between devices: [`super::MemcpyPeer`].
    pub const MEMCPY2: c_int = 22;
    /// Waits: [`super::Synchronization`].
    pub const SYNCHRONIZATION: c_int = 38;
    /// Memory that is allocated or freed: [`super::Memory`].
    pub const MEMORY2: c_int = 49;
    /// Launches of graphs, in the place of records of their nodes: [`super::GraphTrace`].
    pub const GRAPH_TRACE: c_int = 51;
}

/// Values of [`Memcpy::copy_kind`].
pub mod copy_kind {
    /// Host to device.
    pub const HOST_TO_DEVICE: u8 = 1;
    /// Device to host.
    pub const DEVICE_TO_HOST: u8 = 2;
    /// Host to an array of a device.
    pub const HOST_TO_ARRAY: u8 = 3;
    /// Array of a device to host.
    pub const ARRAY_TO_HOST: u8 = 4;
    /// Host to host.
    pub const HOST_TO_HOST: u8 = 9;
}

/// Kinds of memory.
pub mod memory_kind {
    /// Memory of the host that the driver does not know.
    pub const PAGEABLE: u32 = 1;
    /// Memory of the host that is pinned.
    pub const PINNED: u32 = 2;
    /// Memory of variables of a module.
    pub const DEVICE_STATIC: u32 = 6;
    /// Managed memory of variables of a module.
    pub const MANAGED_STATIC: u32 = 7;
}

/// A kernel that was executed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// [`kind`].
    pub kind: u32,
    reserved_0: [u8; 2],
    /// Registers of a thread.
    pub registers: u16,
    reserved_1: [u8; 8],
    /// Begin on the device.
    pub start: u64,
    /// End on the device; 0 while it is not complete.
    pub end: u64,
    reserved_2: [u8; 8],
    /// Number of the device.
    pub device: u32,
    /// Number of the context.
    pub context: u32,
    /// Number of the stream.
    pub stream: u32,
    /// Blocks of the grid: x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block: x, y, z.
    pub block: [u32; 3],
    /// Static shared memory of a block, in bytes.
    pub static_shared: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: u32,
    /// Local memory of a thread, in bytes.
    pub local: u32,
    reserved_3: [u8; 4],
    /// Id of the call that launched it.
    pub correlation: u32,
    reserved_4: [u8; 8],
    /// Mangled name.
    pub name: *const c_char,
    reserved_5: [u8; 32],
    /// Id of the node of a graph that it is; 0 for none.
    pub graph_node: u64,
    reserved_6: [u8; 4],
    /// Number of the graph.
    pub graph: u32,
    reserved_7: [u8; 16],
    /// Blocks of a cluster: x, y, z; 0 without clusters.
    pub cluster: [u32; 3],
    reserved_8: [u8; 12],
}

crate::offsets!(Kernel {
    kind = 0,
    registers = 6,
    start = 16,
    end = 24,
    device = 40,
    context = 44,
    stream = 48,
    grid = 52,
    block = 64,
    static_shared = 76,
    dynamic_shared = 80,
    local = 84,
    correlation = 92,
    name = 104,
    graph_node = 144,
    graph = 156,
    cluster = 176,
} size 200);

/// A copy between host and device, or on a device.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Memcpy {
    /// [`kind`].
    pub kind: u32,
    /// Direction: [`copy_kind`].
    pub copy_kind: u8,
    /// Kind of memory that was read: [`memory_kind`].
    pub source_kind: u8,
    /// Kind of memory that was written: [`memory_kind`].
    pub destination_kind: u8,
    /// 1 for an asynchronous copy.
    pub flags: u8,
    /// Number of bytes.
    pub bytes: u64,
    /// Begin on the device.
    pub start: u64,
    /// End on the device; 0 while it is not complete.
    pub end: u64,
    /// Number of the device.
    pub device: u32,
    /// Number of the context.
    pub context: u32,
    /// Number of the stream.
    pub stream: u32,
    /// Id of the call that made it.
    pub correlation: u32,
    reserved_0: [u8; 16],
    /// Id of the node of a graph that it is; 0 for none.
    pub graph_node: u64,
    /// Number of the graph; 0 for none.
    pub graph: u32,
    reserved_1: [u8; 12],
}

crate::offsets!(Memcpy {
    kind = 0,
    copy_kind = 4,
    source_kind = 5,
    destination_kind = 6,
    flags = 7,
    bytes = 8,
    start = 16,
    end = 24,
    device = 32,
    context = 36,
    stream = 40,
    correlation = 44,
    graph_node = 64,
    graph = 72,
} size 88);

/// A copy between devices.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MemcpyPeer {
    /// [`kind`].
    pub kind: u32,
    reserved_0: [u8; 4],
    /// Number of bytes.
    pub bytes: u64,
    /// Begin on the device.
    pub start: u64,
    /// End on the device; 0 while it is not complete.
    pub end: u64,
    /// Number of the device that copied.
    pub device: u32,
    /// Number of its context.
    pub context: u32,
    /// Number of the stream.
    pub stream: u32,
    /// Number of the device that was read.
    pub source_device: u32,
    reserved_1: [u8; 4],
    /// Number of the device that was written.
    pub destination_device: u32,
    reserved_2: [u8; 4],
    /// Id of the call that made it.
    pub correlation: u32,
    reserved_3: [u8; 8],
    /// Id of the node of a graph that it is; 0 for none.
    pub graph_node: u64,
    /// Number of the graph; 0 for none.
    pub graph: u32,
    reserved_4: [u8; 12],
}

crate::offsets!(MemcpyPeer {
    kind = 0,
    bytes = 8,
    start = 16,
    end = 24,
    device = 32,
    context = 36,
    stream = 40,
    source_device = 44,
    destination_device = 52,
    correlation = 60,
    graph_node = 72,
    graph = 80,
} size 96);

/// Memory that was filled.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Memset {
    /// [`kind`].
    pub kind: u32,
    /// The value.
    pub value: u32,
    /// Number of bytes.
    pub bytes: u64,
    /// Begin on the device.
    pub start: u64,
    /// End on the device; 0 while it is not complete.
    pub end: u64,
    /// Number of the device.
    pub device: u32,
    /// Number of the context.
    pub context: u32,
    /// Number of the stream.
    pub stream: u32,
    /// Id of the call that made it.
    pub correlation: u32,
    reserved_0: [u8; 2],
    /// Kind of the memory: [`memory_kind`].
    pub memory_kind: u16,
    reserved_1: [u8; 12],
    /// Id of the node of a graph that it is; 0 for none.
    pub graph_node: u64,
    /// Number of the graph; 0 for none.
    pub graph: u32,
    reserved_2: [u8; 12],
}

crate::offsets!(Memset {
    kind = 0,
    value = 4,
    bytes = 8,
    start = 16,
    end = 24,
    device = 32,
    context = 36,
    stream = 40,
    correlation = 44,
    memory_kind = 50,
    graph_node = 64,
    graph = 72,
} size 88);

/// Memory that was allocated or freed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// [`kind`].
    pub kind: u32,
    /// 1 allocated, 2 freed.
    pub operation: u32,
    /// Kind of the memory: [`memory_kind`].
    pub memory_kind: u32,
    /// Id of the call.
    pub correlation: u32,
    /// First address.
    pub address: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// When.
    pub timestamp: u64,
    reserved_0: [u8; 12],
    /// Number of the device.
    pub device: u32,
    /// Number of the context.
    pub context: u32,
    /// Number of the stream; `u32::MAX` for none.
    pub stream: u32,
    reserved_1: [u8; 8],
    /// 1 for memory that a stream allocates or frees in its order.
    pub is_async: u32,
    reserved_2: [u8; 44],
}

crate::offsets!(Memory {
    kind = 0,
    operation = 4,
    memory_kind = 8,
    correlation = 12,
    address = 16,
    bytes = 24,
    timestamp = 32,
    device = 52,
    context = 56,
    stream = 60,
    is_async = 72,
} size 120);

/// A wait, of the host or of a stream.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Synchronization {
    /// [`kind`].
    pub kind: u32,
    /// What waits for what: 1 the host for an event, 2 a stream for an event, 3 the host for a stream, 4 the host for a
    /// context.
    pub wait: u32,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Id of the call.
    pub correlation: u32,
    /// Number of the context.
    pub context: u32,
    /// Number of the stream; `u32::MAX` for none.
    pub stream: u32,
    /// Number of the event; `u32::MAX` for none.
    pub event: u32,
}

crate::offsets!(Synchronization {
    kind = 0,
    wait = 4,
    start = 8,
    end = 16,
    correlation = 24,
    context = 28,
    stream = 32,
    event = 36,
} size 40);

/// Time that CUPTI itself took.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Overhead {
    /// [`kind`].
    pub kind: u32,
    /// What it did: 1 compiled, 0x10000 delivered buffers, 0x20000 instrumented code, 0x30000 made resources, 0x40000 loaded modules, 0x50000 loaded functions, 0x60000 waited for a full command buffer, 0x70000 requested buffers.
    pub overhead: u32,
    reserved_0: [u8; 16],
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
}

crate::offsets!(Overhead {
    kind = 0,
    overhead = 4,
    start = 24,
    end = 32,
} size 40);

/// A launch of a graph, from the begin of its first node to the end of its last.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct GraphTrace {
    /// [`kind`].
    pub kind: u32,
    /// Id of the call that launched it.
    pub correlation: u32,
    /// Begin on the device.
    pub start: u64,
    /// End on the device; 0 while it is not complete.
    pub end: u64,
    /// Number of the device.
    pub device: u32,
    /// Number of the graph.
    pub graph: u32,
    /// Number of the context.
    pub context: u32,
    /// Number of the stream.
    pub stream: u32,
    reserved_0: [u8; 8],
}

crate::offsets!(GraphTrace {
    kind = 0,
    correlation = 4,
    start = 8,
    end = 16,
    device = 24,
    graph = 28,
    context = 32,
    stream = 36,
} size 48);

/// A device.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Device {
    /// [`kind`].
    pub kind: u32,
    reserved_0: [u8; 4],
    /// Bandwidth of the memory, in kB/s.
    pub memory_bandwidth: u64,
    /// Size of the memory, in bytes.
    pub memory_size: u64,
    reserved_1: [u8; 4],
    /// Size of the L2 cache, in bytes.
    pub l2_size: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// Highest clock of the multiprocessors, in kHz.
    pub clock: u32,
    /// Number of copy engines.
    pub copy_engines: u32,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    reserved_2: [u8; 4],
    /// Most warps on a multiprocessor.
    pub max_warps: u32,
    reserved_3: [u8; 4],
    /// Shared memory of a multiprocessor, in bytes.
    pub max_shared_memory: u32,
    reserved_4: [u8; 12],
    /// Most threads of a block.
    pub max_block_threads: u32,
    /// Most threads of a block: x, y, z.
    pub max_block: [u32; 3],
    /// Most blocks of a grid: x, y, z.
    pub max_grid: [u32; 3],
    /// Compute capability: major, minor.
    pub capability: [u32; 2],
    /// Number of the device.
    pub id: u32,
    reserved_5: [u8; 4],
    /// The device's UUID.
    pub uuid: [u8; 16],
    /// Name of the device.
    pub name: *const c_char,
    reserved_6: [u8; 1],
    /// 1 for a device that is partitioned (MIG).
    pub is_mig: u8,
    reserved_7: [u8; 30],
}

crate::offsets!(Device {
    kind = 0,
    memory_bandwidth = 8,
    memory_size = 16,
    l2_size = 28,
    warp_size = 32,
    clock = 36,
    copy_engines = 40,
    multiprocessors = 44,
    max_warps = 52,
    max_shared_memory = 60,
    max_block_threads = 76,
    max_block = 80,
    max_grid = 92,
    capability = 104,
    id = 112,
    uuid = 120,
    name = 136,
    is_mig = 145,
} size 176);

/// A context.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// [`kind`].
    pub kind: u32,
    /// Number of the context.
    pub context: u32,
    /// Number of its device.
    pub device: u32,
    reserved_0: [u8; 2],
    /// Number of its null stream.
    pub null_stream: u16,
}

crate::offsets!(Context {
    kind = 0,
    context = 4,
    device = 8,
    null_stream = 14,
} size 16);
