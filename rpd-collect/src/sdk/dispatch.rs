//! Kernels that ran.
//!
//! Written at once, on the thread on which the provider learns that a kernel is complete: a target that ends suddenly
//! loses only what its runtime has not handed over. How many were submitted is counted, so that the user is told of those.

use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    rocprofiler_callback_phase_t, rocprofiler_callback_tracing_kernel_dispatch_data_t,
    rocprofiler_callback_tracing_record_t, rocprofiler_context_id_t,
    rocprofiler_kernel_dispatch_info_t, rocprofiler_user_data_t,
};
use rpd_spool::format::{Dispatch, RecordHeader, tag};

use crate::recording::guard::Service;
use crate::recording::process::{self, fork_time, header};
use crate::sdk::entry::Setup;
use crate::sdk::stream::unpack;

const KIND: &str = "KERNEL_DISPATCH";
/// A packet is being submitted, on the thread that does it.
const ENQUEUE: &str = "KERNEL_DISPATCH_ENQUEUE";
/// The one operation that has times.
const COMPLETE: &str = "KERNEL_DISPATCH_COMPLETE";

static SERVICE: Service = Service::new("kernel dispatches");

pub(crate) fn configure(setup: &Setup<'_>) {
    let Some(kind) = setup.callback_kind(KIND) else {
        return;
    };
    let Some(operation) = kind.operation(COMPLETE) else {
        crate::sdk::entry::note_missing(COMPLETE);
        return;
    };
    let operations: Vec<i32> = kind
        .operation(ENQUEUE)
        .into_iter()
        .chain([operation])
        .collect();
    let complete = std::ptr::without_provenance_mut(operation as usize);
    setup.trace_callbacks(setup.client, kind, &operations, Some(on_dispatch), complete);
}

/// The context that counts the dispatches submitted while the program has paused recording; whoever pauses starts it. None
/// where nobody records dispatches, where those that are counted tell, and with the original's semantics: the provider's
/// numbers of dispatches do not count what nobody listens to.
pub(crate) fn configure_paused(setup: &Setup<'_>) -> Option<rocprofiler_context_id_t> {
    let options = setup.options;
    if !options.traces.kernel || setup.counting.is_some() || options.original_semantics {
        return None;
    }
    let kind = setup.names.callback(KIND)?;
    let operation = kind.operation(ENQUEUE)?;
    let context = setup.context("how many dispatches a pause leaves out")?;
    let data = std::ptr::null_mut();
    setup
        .trace_callbacks(context, kind, &[operation], Some(on_paused), data)
        .then_some(context)
}

unsafe extern "C" fn on_paused(
    record: rocprofiler_callback_tracing_record_t,
    _user_data: *mut rocprofiler_user_data_t,
    _data: *mut c_void,
) {
    if record.phase == rocprofiler_callback_phase_t::ENTER {
        SERVICE.told(paused);
    }
}

/// A dispatch is submitted and not recorded, because the program has paused recording.
pub(crate) fn paused() {
    if let Some(process) = process::current() {
        process.totals.dispatches_paused.add_one();
    }
}

unsafe extern "C" fn on_dispatch(
    record: rocprofiler_callback_tracing_record_t,
    _user_data: *mut rocprofiler_user_data_t,
    complete: *mut c_void,
) {
    SERVICE.told(|| {
        if record.operation != complete.addr() as i32 {
            if record.phase == rocprofiler_callback_phase_t::ENTER
                && let Some(process) = process::current()
            {
                process.totals.dispatches.begin();
            }
            return;
        }
        type Payload = rocprofiler_callback_tracing_kernel_dispatch_data_t;
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe { crate::recording::text::sized::<Payload>(record.payload) };
        let Some(payload) = payload else { return };
        // What ran before the fork is the parent's.
        if payload.start_timestamp < fork_time() {
            return;
        }
        crate::recording::thread::write(&record_of(
            header(tag::DISPATCH, size_of::<Dispatch>()),
            record.thread_id,
            (
                record.correlation_id.internal,
                record.correlation_id.external,
            ),
            (payload.start_timestamp, payload.end_timestamp),
            &payload.dispatch_info,
        ));
        if let Some(process) = process::existing() {
            process.totals.dispatches.end();
        }
    });
}

/// A dispatch as the spool has it. `correlation` is the internal and the external id, `times` are begin and end.
pub(crate) fn record_of(
    header: RecordHeader,
    thread: u64,
    correlation: (u64, rocprofiler_user_data_t),
    times: (u64, u64),
    info: &rocprofiler_kernel_dispatch_info_t,
) -> Dispatch {
    let (region, stream) = unpack(correlation.1.as_u64());
    Dispatch {
        header,
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
    }
}
