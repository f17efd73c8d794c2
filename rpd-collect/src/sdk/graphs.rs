//! Executable HIP graphs and their launches, which SDK 1.3 and later report.
//!
//! Callbacks at the begin and the end of a launch say which graph dispatches and copies belong to. Of the launch itself they say
//! neither whether it succeeded nor the agent: those are in a record of the buffer service. The buffer is small, so that a
//! program that is killed loses a few dozen launches at most.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_id_t, rocprofiler_buffer_tracing_hip_graph_async_record_t as ShortRecord,
    rocprofiler_buffer_tracing_hip_graph_record_t as LongRecord,
    rocprofiler_callback_tracing_hip_graph_data_t, rocprofiler_context_id_t,
    rocprofiler_record_header_t,
};
use rpd_spool::format::{GraphLaunch, GraphNode};
use rpd_spool::record::RecordKind;

use super::buffers::{self, Buffer};
use super::payload::sized;
use super::setup::Setup;
use super::trace::{Phase, Record, Tracer};
use super::{forked_end, payload};
use crate::recording::graphs;
use crate::recording::guard::Service;

/// Name of the kind in both services.
const KIND: &str = "HIP_GRAPH";
/// The first version of the SDK with the kind.
const SINCE: &str = "1.3 (ROCm 7.13)";
/// Subject of notes about failures.
const PURPOSE: &str = "launches of graphs";
/// Bytes of the buffer.
const BUFFER: usize = 16 << 10;
/// Bytes in the buffer at which they are delivered.
const WATERMARK: usize = 4 << 10;

static SERVICE: Service = Service::new("graphs");
static LAUNCHES: Service = Service::new("launches of graphs");

/// The buffer of launches.
static HELD: OnceLock<Buffer> = OnceLock::new();
/// Whether a graph was launched.
static LAUNCHED: AtomicBool = AtomicBool::new(false);

/// A node as the content of a slot.
pub(super) fn pack(node: GraphNode) -> u64 {
    u64::from(node.exec) << 32 | u64::from(node.node)
}

/// The node of the content of a slot.
pub(super) fn unpack(slot: u64) -> GraphNode {
    GraphNode {
        exec: (slot >> 32) as u32,
        node: slot as u32,
    }
}

/// Whether graphs of dispatches and copies are requested, and the provider says what they are.
pub(super) fn are_followed(setup: &Setup<'_>) -> bool {
    setup.options.traces.hip_graph && setup.names.callback(KIND).is_some()
}

pub(super) fn configure(setup: &Setup<'_>) {
    if !setup.options.traces.hip_graph {
        return;
    }
    let Some(kind) = setup.newer_callback_kind(KIND, SINCE) else {
        return;
    };
    let launch = kind.operation("HIP_GRAPH_OPERATION_EXEC_LAUNCH");
    let Some(launch) = launch else {
        super::setup::note_missing("HIP_GRAPH_OPERATION_EXEC_LAUNCH");
        return;
    };
    // Also while recording is paused: what a launch submits after a resume belongs to it.
    setup.trace_always(PURPOSE, kind, &[launch], Executables);
    configure_buffer(setup);
}

/// Has the provider put launches into a buffer while the client context is started.
fn configure_buffer(setup: &Setup<'_>) {
    let Some(kind) = setup.names.buffer(KIND) else {
        return;
    };
    let buffer = Buffer::new(setup, PURPOSE, BUFFER, WATERMARK, Some(on_launches));
    if let Some(buffer) = buffer
        && setup.succeeded(buffer.receive(setup, kind), PURPOSE)
    {
        HELD.get_or_init(|| buffer);
    }
}

/// Whether the provider may hold launches that it has not delivered.
pub(super) fn holds_launches() -> bool {
    LAUNCHED.load(Ordering::Relaxed) && !forked_end::applies()
}

/// Makes the provider deliver the launches that it holds.
pub(super) fn deliver() {
    if holds_launches()
        && let Some(launches) = HELD.get()
    {
        launches.flush();
    }
}

/// Launches, at their begin and end.
struct Executables;

impl Tracer for Executables {
    const SERVICE: &'static Service = &SERVICE;

    fn record(&self, record: &Record, slot: &mut u64) {
        type Payload = rocprofiler_callback_tracing_hip_graph_data_t;
        match record.phase {
            Phase::ENTER => {
                if !LAUNCHED.swap(true, Ordering::Relaxed) && HELD.get().is_some() {
                    // The buffer has a thread of the provider's, which a forked child lacks.
                    forked_end::prepare();
                }
                // SAFETY: the payload of this kind, within its callback.
                let payload = unsafe { payload::sized::<Payload>(record.payload) };
                let exec = payload.map_or(0, |payload| number(payload.graph_exec_id.handle));
                *slot = graphs::enter(exec).into();
            }
            Phase::EXIT if *slot != 0 => {
                graphs::leave();
            }
            _ => {}
        }
    }
}

/// The provider counts executable graphs from 1; a number that does not fit is none.
fn number(exec: u64) -> u32 {
    u32::try_from(exec).unwrap_or(0)
}

unsafe extern "C" fn on_launches(
    _context: rocprofiler_context_id_t,
    _buffer: rocprofiler_buffer_id_t,
    headers: *mut *mut rocprofiler_record_header_t,
    count: usize,
    _data: *mut c_void,
    _dropped: u64,
) {
    LAUNCHES.on_event(|| {
        // SAFETY: the provider's array during this call, with records that begin with their size.
        for record in unsafe { buffers::traced(headers, count) } {
            // SAFETY: as above.
            if let Some(launch) = unsafe { launch(record) } {
                graphs::launched(&launch);
            }
        }
    });
}

/// A launch, from either of the two layouts that releases of the SDK have.
///
/// # Safety
///
/// `record` is null or a record of the provider's that begins with its size.
unsafe fn launch(record: *const c_void) -> Option<GraphLaunch> {
    if record.is_null() {
        return None;
    }
    // SAFETY: every record begins with its size.
    let size = unsafe { record.cast::<u64>().read_unaligned() } as usize;
    macro_rules! read {
        ($layout:ty) => {{
            // SAFETY: by this function's contract; the size says which layout it is.
            let from = unsafe { sized::<$layout>(record) }?;
            GraphLaunch {
                header: RecordKind::GraphLaunch.head(0),
                thread: from.thread_id,
                correlation: from.correlation_id.internal,
                start: from.start_timestamp,
                end: from.end_timestamp,
                agent: from.agent_id.handle,
                dispatches: from.kernel_dispatch_count,
                exec: number(from.graph_exec_id.handle),
                reserved: 0,
            }
        }};
    }
    if size >= size_of::<LongRecord>() {
        Some(read!(LongRecord))
    } else if size >= size_of::<ShortRecord>() {
        Some(read!(ShortRecord))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    /// `sdk-newer-7`
    #[test]
    fn launch_is_read_from_both_layouts() {
        let mut long = LongRecord {
            size: 96,
            thread_id: 7,
            start_timestamp: 10,
            end_timestamp: 20,
            kernel_dispatch_count: 3,
            ..LongRecord::default()
        };
        long.correlation_id.internal = 5;
        long.agent_id.handle = 9;
        long.graph_exec_id.handle = 2;
        let mut short = ShortRecord {
            size: 88,
            thread_id: 7,
            start_timestamp: 10,
            end_timestamp: 20,
            kernel_dispatch_count: 3,
            ..ShortRecord::default()
        };
        short.correlation_id.internal = 5;
        short.agent_id.handle = 9;
        short.graph_exec_id.handle = 2;
        // SAFETY: records that begin with their size.
        let (long, short) = unsafe {
            (
                launch((&raw const long).cast()),
                launch((&raw const short).cast()),
            )
        };
        let (long, short) = (long.expect("a launch"), short.expect("a launch"));
        assert_eq!(long.as_bytes(), short.as_bytes());
        assert_eq!(
            (long.exec, long.dispatches, long.agent, long.correlation),
            (2, 3, 9, 5)
        );
        let cut: [u64; 2] = [16, 0];
        // SAFETY: as above.
        assert!(unsafe { launch(cut.as_ptr().cast()) }.is_none());
    }

    #[test]
    fn slot_keeps_graph_and_node() {
        for (exec, node) in [(0, 0), (1, 0), (u32::MAX, 7)] {
            let node = GraphNode { exec, node };
            assert_eq!(unpack(pack(node)), node);
        }
    }
}
