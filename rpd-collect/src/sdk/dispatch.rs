//! Kernel dispatches.

use rocprofiler_sdk_sys::{
    rocprofiler_callback_tracing_kernel_dispatch_data_t, rocprofiler_context_id_t,
    rocprofiler_kernel_dispatch_info_t, rocprofiler_user_data_t,
};
use rpd_spool::format::{Dispatch, GraphNode};
use rpd_spool::record::RecordKind;

use super::setup::{Setup, note_missing};
use super::stream::unpack;
use super::trace::{Phase, Record, Tracer};
use super::{graphs, payload};
use crate::recording::guard::Service;
use crate::recording::{device_work, replays};

pub(super) const KIND: &str = "KERNEL_DISPATCH";
/// Operation of a packet that is being submitted, on the thread that submits it.
const ENQUEUE: &str = "KERNEL_DISPATCH_ENQUEUE";
/// Operation of a complete dispatch, the only one that has times.
pub(super) const COMPLETE: &str = "KERNEL_DISPATCH_COMPLETE";

/// Slot of the first run of a dispatch that is replayed. No graph has so high a number.
const FIRST_RUN: u64 = u64::MAX;
/// Slot of a later run.
const LATER_RUN: u64 = u64::MAX - 1;

static SERVICE: Service = Service::new("kernel dispatches");

pub(super) fn configure(setup: &Setup<'_>) {
    let Some(kind) = setup.callback_kind(KIND) else {
        return;
    };
    let Some(complete) = kind.operation(COMPLETE) else {
        note_missing(COMPLETE);
        return;
    };
    let operations: Vec<i32> = kind
        .operation(ENQUEUE)
        .into_iter()
        .chain([complete])
        .collect();
    let dispatches = Dispatches {
        complete,
        follows_graphs: graphs::are_followed(setup),
    };
    setup.trace(setup.client, kind, &operations, dispatches);
}

/// The context that counts the dispatches submitted while the program has paused recording; it is started by the pause.
/// None where dispatches are not recorded, where counting covers all of them, and with the original's semantics: the
/// provider's numbers of dispatches omit those that no context traces.
pub(super) fn configure_paused(setup: &Setup<'_>) -> Option<rocprofiler_context_id_t> {
    let options = setup.options;
    if !options.traces.kernel || setup.counting.is_some() || options.original_semantics {
        return None;
    }
    let kind = setup.names.callback(KIND)?;
    let operation = kind.operation(ENQUEUE)?;
    let context = setup.context("how many dispatches a pause leaves out")?;
    setup
        .trace(context, kind, &[operation], PausedDispatches)
        .then_some(context)
}

struct PausedDispatches;

impl Tracer for PausedDispatches {
    const SERVICE: &'static Service = &SERVICE;

    fn record(&self, record: &Record, _slot: &mut u64) {
        if record.phase == Phase::ENTER && replays::pass().unwrap_or(0) == 0 {
            device_work::dispatch_paused();
        }
    }
}

struct Dispatches {
    /// Number of the operation [`COMPLETE`].
    complete: i32,
    /// Whether the graphs of dispatches are wanted.
    follows_graphs: bool,
}

impl Tracer for Dispatches {
    const SERVICE: &'static Service = &SERVICE;

    /// The slot holds graph and node of the dispatch.
    fn record(&self, record: &Record, slot: &mut u64) {
        if record.operation != self.complete {
            if record.phase == Phase::ENTER {
                // What the program submits once is recorded once, with the times of the first run.
                let pass = replays::pass();
                if pass.is_some_and(|pass| pass > 0) {
                    *slot = LATER_RUN;
                    return;
                }
                device_work::dispatch_submitted();
                if pass.is_some() {
                    *slot = FIRST_RUN;
                    return;
                }
                let node = if self.follows_graphs {
                    crate::recording::graphs::dispatch(0)
                } else {
                    GraphNode::default()
                };
                *slot = graphs::pack(node);
            }
            return;
        }
        type Payload = rocprofiler_callback_tracing_kernel_dispatch_data_t;
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe { payload::sized::<Payload>(record.payload) };
        let Some(payload) = payload else { return };
        if *slot == LATER_RUN {
            return;
        }
        let is_first_run = *slot == FIRST_RUN;
        let graph = if self.follows_graphs && !is_first_run {
            graphs::unpack(*slot)
        } else {
            GraphNode::default()
        };
        let dispatch = record_of(
            record.thread_id,
            (
                record.correlation_id.internal,
                record.correlation_id.external,
            ),
            (payload.start_timestamp, payload.end_timestamp),
            &payload.dispatch_info,
        );
        device_work::dispatch_complete(Dispatch {
            header: dispatch.header.with_aux(is_first_run.into()),
            graph,
            ..dispatch
        });
    }
}

/// A dispatch as in the spool. `correlation` is the internal and the external id, `times` are start and end.
pub(super) fn record_of(
    thread: u64,
    correlation: (u64, rocprofiler_user_data_t),
    times: (u64, u64),
    info: &rocprofiler_kernel_dispatch_info_t,
) -> Dispatch {
    let (region, stream) = unpack(correlation.1.as_u64());
    Dispatch {
        header: RecordKind::Dispatch.head(0),
        thread,
        correlation: correlation.0,
        start: times.0,
        end: times.1,
        agent: info.agent_id.handle,
        queue: info.queue_id.handle,
        kernel: info.kernel_id,
        dispatch: info.dispatch_id,
        stream,
        region,
        private_size: info.private_segment_size,
        group_size: info.group_segment_size,
        workgroup: [
            info.workgroup_size.x,
            info.workgroup_size.y,
            info.workgroup_size.z,
        ],
        grid: [info.grid_size.x, info.grid_size.y, info.grid_size.z],
        graph: GraphNode::default(),
    }
}
