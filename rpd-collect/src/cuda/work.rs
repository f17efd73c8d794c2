//! Records of device work, as the recording has them.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use cupti_sys::activity::{
    self, GraphTrace, Kernel, Memcpy, MemcpyPeer, Memory, Memset, Overhead, Synchronization,
    copy_kind, kind, memory_kind,
};
use rpd_spool::format::{Allocation, Copy, Dispatch, GraphNode, HipEvent, event_operation};
use rpd_spool::record::RecordKind;

use super::graphs::place as node;
use super::origins::{self, Known, Origin};
use super::shared::MEMORY_SET;
use super::{buffers, callbacks, devices, kernels};
use crate::recording::text::text;
use crate::recording::{device_work, process, switch};

/// Numbers of the SDK's operations.
const HOST_TO_HOST: u32 = 1;
const HOST_TO_DEVICE: u32 = 2;
const DEVICE_TO_HOST: u32 = 3;
const DEVICE_TO_DEVICE: u32 = 4;
const ALLOCATE: u32 = 1;
const FREE: u32 = 3;
/// Value of [`Memory::operation`] for memory that is freed.
const RELEASED: u32 = 2;

/// Sums about what CUPTI delivers.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Kernels, in graphs or not.
    pub(super) kernels: AtomicU64,
    /// Work that was not complete when its buffer was delivered.
    pub(super) incomplete: AtomicU64,
    /// Records of a kind that was not requested.
    pub(super) unknown: AtomicU64,
    /// Time that CUPTI itself took, in ns.
    pub(super) overhead: AtomicU64,
    /// Work whose call is not known.
    pub(super) lost_calls: AtomicU64,
}

/// The counts of this process.
pub(super) static COUNTS: Counts = Counts {
    kernels: AtomicU64::new(0),
    incomplete: AtomicU64::new(0),
    unknown: AtomicU64::new(0),
    overhead: AtomicU64::new(0),
    lost_calls: AtomicU64::new(0),
};
static NEXT_DISPATCH: AtomicU64 = AtomicU64::new(1);

fn count(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}

/// Takes a record of CUPTI's.
///
/// # Safety
///
/// `record` is a record in a buffer that CUPTI has delivered.
pub(super) unsafe fn take(record: *const u8) {
    /// # Safety
    ///
    /// The record has at least the fields of `T`.
    unsafe fn as_ref<'a, T>(record: *const u8) -> &'a T {
        // SAFETY: as this function demands; records are aligned to 8 bytes.
        unsafe { &*record.cast::<T>() }
    }
    // SAFETY: every record begins with its kind, and has at least the fields that its kind had in 11.8.
    unsafe {
        match record.cast::<c_int>().read() {
            kind::CONCURRENT_KERNEL | kind::KERNEL => kernel(as_ref::<Kernel>(record)),
            kind::MEMCPY => copy(as_ref::<Memcpy>(record)),
            kind::MEMCPY2 => peer_copy(as_ref::<MemcpyPeer>(record)),
            kind::MEMSET => fill(as_ref::<Memset>(record)),
            kind::MEMORY2 => memory(as_ref::<Memory>(record)),
            kind::SYNCHRONIZATION => wait(as_ref::<Synchronization>(record)),
            kind::GRAPH_TRACE => graph(as_ref::<GraphTrace>(record)),
            kind::DEVICE => devices::describe(as_ref::<activity::Device>(record)),
            kind::OVERHEAD => {
                let overhead = as_ref::<Overhead>(record);
                let time = overhead.end.saturating_sub(overhead.start);
                count(&COUNTS.overhead, time);
            }
            // What they say is in the records of work.
            kind::CONTEXT => {}
            _ => count(&COUNTS.unknown, 1),
        }
    }
}

/// The call that submitted work; `None` when the work is not to be recorded.
fn origin(id: u32, (start, end): (u64, u64)) -> Option<Origin> {
    if start == 0 || end == 0 {
        count(&COUNTS.incomplete, 1);
        return None;
    }
    match origins::ring()?.get(id) {
        Known::Call(origin) => Some(origin),
        Known::Paused => None,
        Known::Nothing if !callbacks::are_observed() => switch::is_on().then(Origin::default),
        Known::Nothing => {
            count(&COUNTS.lost_calls, 1);
            Some(Origin::default())
        }
    }
}

/// The stream for records; 0 where streams are not followed.
fn stream(id: u32) -> u32 {
    match process::existing() {
        Some(process) if process.options.streams && id != u32::MAX => id,
        _ => 0,
    }
}

/// A stream of a context is a queue: work of one runs in order.
fn queue(context: u32, stream: u32) -> u64 {
    u64::from(context) << 32 | u64::from(stream)
}

fn dispatch(origin: &Origin, kernel: u64, device: u32, context: u32, stream_id: u32) -> Dispatch {
    Dispatch {
        header: RecordKind::Dispatch.head(0),
        thread: origin.thread.into(),
        correlation: origin.correlation,
        start: 0,
        end: 0,
        agent: devices::handle(device),
        queue: queue(context, stream_id),
        kernel,
        dispatch: NEXT_DISPATCH.fetch_add(1, Ordering::Relaxed),
        stream: stream(stream_id),
        region: origin.region,
        private_size: 0,
        group_size: 0,
        workgroup: [0; 3],
        grid: [0; 3],
        graph: GraphNode::default(),
    }
}

fn kernel(record: &Kernel) {
    count(&COUNTS.kernels, 1);
    let Some(origin) = origin(record.correlation, (record.start, record.end)) else {
        return;
    };
    // SAFETY: text of CUPTI's, which lives as long as the module.
    let name = unsafe { text(record.name) };
    let number = kernels::number(record, name);
    // Work items of the grid, as on other devices. Beyond 32 bits it is the largest number.
    let grid = std::array::from_fn(|axis| record.grid[axis].saturating_mul(record.block[axis]));
    // Nodes of graphs have no call of their own that counts them.
    if record.graph_node != 0 {
        device_work::dispatch_submitted();
    }
    device_work::dispatch_complete(Dispatch {
        start: buffers::time(record.start),
        end: buffers::time(record.end),
        private_size: record.local,
        group_size: record.static_shared + record.dynamic_shared,
        workgroup: record.block,
        grid,
        graph: node(record.graph, record.graph_node),
        ..dispatch(
            &origin,
            number,
            record.device,
            record.context,
            record.stream,
        )
    });
}

/// A launch of a graph is shown as one kernel, whose name says so.
fn graph(record: &GraphTrace) {
    count(&COUNTS.kernels, 1);
    let Some(origin) = origin(record.correlation, (record.start, record.end)) else {
        return;
    };
    let name = format!("(graph {})", record.graph);
    // SAFETY: zeros are a value of the record; its name is not read.
    let mut symbol: Kernel = unsafe { std::mem::zeroed() };
    symbol.device = record.device;
    // Names of graphs have no address of CUPTI's: one that no text has tells them apart.
    symbol.name = std::ptr::without_provenance(record.graph as usize);
    let number = kernels::number(&symbol, name.as_bytes());
    device_work::dispatch_submitted();
    device_work::dispatch_complete(Dispatch {
        start: buffers::time(record.start),
        end: buffers::time(record.end),
        graph: node(record.graph, 0),
        ..dispatch(
            &origin,
            number,
            record.device,
            record.context,
            record.stream,
        )
    });
}

/// A copy that is complete.
struct Moved {
    operation: u32,
    bytes: u64,
    times: (u64, u64),
    source: u64,
    destination: u64,
    stream: u32,
    correlation: u32,
    graph: GraphNode,
}

fn moved(moved: &Moved) {
    let Some(origin) = origin(moved.correlation, moved.times) else {
        return;
    };
    device_work::copy_submitted();
    device_work::copy_complete(Copy {
        header: RecordKind::Copy.head(0),
        thread: origin.thread.into(),
        correlation: origin.correlation,
        start: buffers::time(moved.times.0),
        end: buffers::time(moved.times.1),
        dst_agent: moved.destination,
        src_agent: moved.source,
        bytes: moved.bytes,
        dst_address: 0,
        src_address: 0,
        operation: moved.operation,
        stream: stream(moved.stream),
        region: origin.region,
        reserved: 0,
        graph: moved.graph,
    });
}

fn copy(record: &Memcpy) {
    let is_host = |kind: u8| matches!(u32::from(kind), memory_kind::PAGEABLE | memory_kind::PINNED);
    let operation = match record.copy_kind {
        copy_kind::HOST_TO_DEVICE | copy_kind::HOST_TO_ARRAY => HOST_TO_DEVICE,
        copy_kind::DEVICE_TO_HOST | copy_kind::ARRAY_TO_HOST => DEVICE_TO_HOST,
        copy_kind::HOST_TO_HOST => HOST_TO_HOST,
        // On a device. A kind that is not known is told by the memory.
        _ => match (
            is_host(record.source_kind),
            is_host(record.destination_kind),
        ) {
            (true, true) => HOST_TO_HOST,
            (true, false) => HOST_TO_DEVICE,
            (false, true) => DEVICE_TO_HOST,
            (false, false) => DEVICE_TO_DEVICE,
        },
    };
    let device = devices::handle(record.device);
    let (source, destination) = match operation {
        HOST_TO_HOST => (devices::host(), devices::host()),
        HOST_TO_DEVICE => (devices::host(), device),
        DEVICE_TO_HOST => (device, devices::host()),
        _ => (device, device),
    };
    moved(&Moved {
        operation,
        bytes: record.bytes,
        times: (record.start, record.end),
        source,
        destination,
        stream: record.stream,
        correlation: record.correlation,
        graph: node(record.graph, record.graph_node),
    });
}

fn peer_copy(record: &MemcpyPeer) {
    moved(&Moved {
        operation: DEVICE_TO_DEVICE,
        bytes: record.bytes,
        times: (record.start, record.end),
        source: devices::handle(record.source_device),
        destination: devices::handle(record.destination_device),
        stream: record.stream,
        correlation: record.correlation,
        graph: node(record.graph, record.graph_node),
    });
}

fn fill(record: &Memset) {
    let agent = match u32::from(record.memory_kind) {
        memory_kind::PAGEABLE | memory_kind::PINNED => devices::host(),
        _ => devices::handle(record.device),
    };
    moved(&Moved {
        operation: MEMORY_SET,
        bytes: record.bytes,
        times: (record.start, record.end),
        source: agent,
        destination: agent,
        stream: record.stream,
        correlation: record.correlation,
        graph: node(record.graph, record.graph_node),
    });
}

/// A wait, as waits for HIP events are recorded. Numbers of contexts and streams make a queue, as for work.
fn wait(record: &Synchronization) {
    let operation = match record.wait {
        1 => event_operation::HOST_WAITS_FOR_EVENT,
        2 => event_operation::WAIT,
        3 => event_operation::HOST_WAITS_FOR_STREAM,
        4 => event_operation::HOST_WAITS_FOR_CONTEXT,
        _ => {
            count(&COUNTS.unknown, 1);
            return;
        }
    };
    // One of a call that was not observed, such as before recording began, has no thread.
    let Some(Known::Call(origin)) = origins::ring().map(|ring| ring.get(record.correlation)) else {
        return;
    };
    let or_none = |number: u32| if number == u32::MAX { 0 } else { number };
    device_work::hip_event(HipEvent {
        header: RecordKind::HipEvent.head(0).with_aux(operation),
        thread: origin.thread.into(),
        correlation: origin.correlation,
        start: buffers::time(record.start),
        end: buffers::time(record.end),
        // The record does not say which device it is.
        agent: 0,
        queue: queue(record.context, or_none(record.stream)),
        event: or_none(record.event).into(),
        source_queue: 0,
        stream: stream(record.stream),
        reserved: 0,
    });
}

fn memory(record: &Memory) {
    // Variables of modules: no call of the program's allocates them.
    if matches!(
        record.memory_kind,
        memory_kind::DEVICE_STATIC | memory_kind::MANAGED_STATIC
    ) {
        return;
    }
    let Some(origin) = origin(record.correlation, (record.timestamp, record.timestamp)) else {
        return;
    };
    let frees = record.operation == RELEASED;
    let agent = match record.memory_kind {
        _ if frees => 0,
        memory_kind::PAGEABLE | memory_kind::PINNED => devices::host(),
        _ => devices::handle(record.device),
    };
    let allocation = Allocation {
        header: RecordKind::Allocation.head(0),
        thread: origin.thread.into(),
        correlation: origin.correlation,
        ancestor: 0,
        start: buffers::time(record.timestamp),
        end: buffers::time(record.timestamp),
        agent,
        address: record.address,
        bytes: if frees { 0 } else { record.bytes },
        operation: if frees { FREE } else { ALLOCATE },
        stream: stream(record.stream),
    };
    // The stack is that of the call: this is a thread of CUPTI's.
    device_work::allocation(allocation, false);
}
