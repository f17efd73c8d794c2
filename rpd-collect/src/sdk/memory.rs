//! Copies, allocations and scratch memory.

use rocprofiler_sdk_sys::{
    hsa_amd_tool_event_kind_t, rocprofiler_callback_tracing_memory_allocation_data_t,
    rocprofiler_callback_tracing_memory_copy_data_t,
    rocprofiler_callback_tracing_scratch_memory_data_t,
};
use rpd_spool::format::{Allocation, Copy, GraphNode, Scratch};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::graphs;
use super::payload::sized;
use super::setup::Setup;
use super::stream::unpack;
use super::trace::{Phase, Record, Tracer};
use crate::recording::device_work;
use crate::recording::guard::Service;
use crate::recording::kinds::KindNames;
use crate::recording::stacks::Selection;

static COPIES: Service = Service::new("memory copies");
static ALLOCATIONS: Service = Service::new("memory allocations");
static SCRATCH: Service = Service::new("scratch memory");

pub(super) fn configure(setup: &Setup<'_>) {
    let traces = setup.options.traces;
    let follows_graphs = graphs::are_followed(setup);
    configure_kind(setup, traces.memory_copy, "MEMORY_COPY", |_| Copies {
        follows_graphs,
    });
    configure_kind(
        setup,
        traces.memory_allocation,
        "MEMORY_ALLOCATION",
        |kind| Allocations {
            stacks: Selection::from_options(&setup.options.stacks, &kind.operations),
        },
    );
    configure_kind(setup, traces.scratch_memory, "SCRATCH_MEMORY", |_| {
        ScratchMemory
    });
}

fn configure_kind<T: Tracer>(
    setup: &Setup<'_>,
    wanted: bool,
    kind: &str,
    tracer: impl FnOnce(&KindNames) -> T,
) {
    if wanted && let Some(kind) = setup.callback_kind(kind) {
        // All operations: SDK 1.0 compares a filter of allocations with numbers of HSA functions.
        setup.trace(setup.client, kind, &[], tracer(kind));
    }
}

/// Stores the start of an event in its slot; at its end, start and end by our own clock.
fn own_times(phase: Phase, slot: &mut u64) -> Option<(u64, u64)> {
    let time = now();
    match phase {
        Phase::ENTER => {
            *slot = time;
            None
        }
        Phase::EXIT => Some((if *slot == 0 { time } else { *slot }, time)),
        _ => None,
    }
}

struct Copies {
    /// Whether the graphs of copies are wanted.
    follows_graphs: bool,
}

impl Tracer for Copies {
    const SERVICE: &'static Service = &COPIES;

    /// The slot holds graph and node of the copy.
    fn record(&self, record: &Record, slot: &mut u64) {
        match record.phase {
            // The times are the device's and not known yet.
            Phase::ENTER => {
                device_work::copy_submitted();
                *slot = graphs::pack(if self.follows_graphs {
                    crate::recording::graphs::copy()
                } else {
                    GraphNode::default()
                });
            }
            Phase::EXIT if self.follows_graphs => complete(record, graphs::unpack(*slot)),
            Phase::EXIT => complete(record, GraphNode::default()),
            _ => {}
        }
    }
}

fn complete(record: &Record, graph: GraphNode) {
    // SAFETY: the payload of this kind, within its callback.
    let payload =
        unsafe { sized::<rocprofiler_callback_tracing_memory_copy_data_t>(record.payload) };
    let Some(payload) = payload else { return };
    let (region, stream) = unpack(record.correlation_id.external.as_u64());
    device_work::copy_complete(Copy {
        header: RecordKind::Copy.head(0),
        thread: record.thread_id,
        correlation: record.correlation_id.internal,
        start: payload.start_timestamp,
        end: payload.end_timestamp,
        dst_agent: payload.dst_agent_id.handle,
        src_agent: payload.src_agent_id.handle,
        bytes: payload.bytes,
        dst_address: payload.dst_address.as_u64(),
        src_address: payload.src_address.as_u64(),
        operation: record.operation.cast_unsigned(),
        stream,
        region,
        reserved: 0,
        graph,
    });
}

struct Allocations {
    /// Operations whose stacks are recorded.
    stacks: Option<Selection>,
}

impl Tracer for Allocations {
    const SERVICE: &'static Service = &ALLOCATIONS;

    fn record(&self, record: &Record, slot: &mut u64) {
        let Some((start, end)) = own_times(record.phase, slot) else {
            return;
        };
        type Payload = rocprofiler_callback_tracing_memory_allocation_data_t;
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe { sized::<Payload>(record.payload) };
        let Some(payload) = payload else { return };
        // The provider's times are closer to the call than ours.
        let (start, end) = match payload.end_timestamp {
            0 => (start, end),
            providers => (payload.start_timestamp, providers),
        };
        let (_, stream) = unpack(record.correlation_id.external.as_u64());
        let stacks = self.stacks.as_ref();
        let has_stack = stacks.is_some_and(|selection| selection.takes(record.operation));
        let allocation = Allocation {
            header: RecordKind::Allocation.head(0),
            thread: record.thread_id,
            correlation: record.correlation_id.internal,
            ancestor: record.correlation_id.ancestor,
            start,
            end,
            agent: payload.agent_id.handle,
            address: payload.address.as_u64(),
            bytes: payload.allocation_size,
            operation: record.operation.cast_unsigned(),
            stream,
        };
        device_work::allocation(allocation, has_stack);
    }
}

struct ScratchMemory;

impl Tracer for ScratchMemory {
    const SERVICE: &'static Service = &SCRATCH;

    fn record(&self, record: &Record, slot: &mut u64) {
        // The payload has no times.
        let Some((start, end)) = own_times(record.phase, slot) else {
            return;
        };
        type Payload = rocprofiler_callback_tracing_scratch_memory_data_t;
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe { sized::<Payload>(record.payload) };
        let Some(payload) = payload else { return };
        let bytes = match payload.args_kind {
            // SAFETY: the kind says that this member is valid.
            hsa_amd_tool_event_kind_t::SCRATCH_ALLOC_END => unsafe { payload.args.alloc_end.size },
            _ => 0,
        };
        device_work::scratch(Scratch {
            header: RecordKind::Scratch.head(0),
            thread: record.thread_id,
            correlation: record.correlation_id.internal,
            ancestor: record.correlation_id.ancestor,
            start,
            end,
            agent: payload.agent_id.handle,
            queue: payload.queue_id.handle,
            bytes: bytes as u64,
            operation: record.operation.cast_unsigned(),
            flags: payload.flags.0,
        });
    }
}
