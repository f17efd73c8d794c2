//! Kernels that ran.

use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_category_t, rocprofiler_buffer_id_t,
    rocprofiler_buffer_tracing_kernel_dispatch_record_t, rocprofiler_context_id_t,
    rocprofiler_record_header_t,
};
use rpd_core::spool::format::{Dispatch, tag};
use zerocopy::IntoBytes;

use crate::guard::Service;
use crate::process::{fork_time, header};
use crate::register::Setup;
use crate::stream::unpack;

static SERVICE: Service = Service::new("kernel dispatches");

pub(crate) fn configure(setup: &Setup<'_>) {
    setup.trace_buffer("KERNEL_DISPATCH", Some(on_records));
}

unsafe extern "C" fn on_records(
    _context: rocprofiler_context_id_t,
    _buffer: rocprofiler_buffer_id_t,
    headers: *mut *mut rocprofiler_record_header_t,
    count: usize,
    _data: *mut c_void,
    dropped: u64,
) {
    // SAFETY: the provider's arguments, handed on as they came.
    unsafe {
        crate::buffers::deliver(&SERVICE, headers, count, dropped, |thread, head| {
            if head.category != rocprofiler_buffer_category_t::TRACING.0 {
                return;
            }
            // SAFETY: only this kind is routed to this buffer, so this is the type of its records.
            let record = crate::read::sized::<rocprofiler_buffer_tracing_kernel_dispatch_record_t>(
                head.payload,
            );
            if let Some(record) = record {
                write(thread, &record);
            }
        });
    }
}

fn write(
    thread: &mut crate::thread::Thread,
    record: &rocprofiler_buffer_tracing_kernel_dispatch_record_t,
) {
    if record.end_timestamp < fork_time() {
        return;
    }
    let info = &record.dispatch_info;
    let (region, stream) = unpack(record.correlation_id.external.as_u64());
    let len = size_of::<Dispatch>();
    let dispatch = Dispatch {
        header: header(tag::DISPATCH, len),
        thread: record.thread_id,
        correlation: record.correlation_id.internal,
        start: record.start_timestamp,
        end: record.end_timestamp,
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
    };
    thread
        .deliveries()
        .append(len, |bytes| bytes.copy_from_slice(dispatch.as_bytes()));
}
