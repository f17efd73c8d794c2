//! Copies, allocations and scratch memory.

use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_category_t, rocprofiler_buffer_id_t,
    rocprofiler_buffer_tracing_memory_allocation_record_t,
    rocprofiler_buffer_tracing_memory_copy_record_t,
    rocprofiler_buffer_tracing_scratch_memory_record_t, rocprofiler_context_id_t,
    rocprofiler_record_header_t,
};
use rpd_core::spool::format::{Allocation, Copy, Scratch, tag};
use zerocopy::{Immutable, IntoBytes};

use crate::guard::Service;
use crate::process::{fork_time, header};
use crate::register::Setup;
use crate::stream::unpack;
use crate::thread::Thread;

static COPIES: Service = Service::new("memory copies");
static ALLOCATIONS: Service = Service::new("memory allocations");
static SCRATCH: Service = Service::new("scratch memory");

pub(crate) fn configure(setup: &Setup<'_>) {
    let traces = setup.options.traces;
    if traces.memory_copy {
        setup.trace_buffer("MEMORY_COPY", Some(on_copies));
    }
    if traces.memory_allocation {
        setup.trace_buffer("MEMORY_ALLOCATION", Some(on_allocations));
    }
    if traces.scratch_memory {
        setup.trace_buffer("SCRATCH_MEMORY", Some(on_scratch));
    }
}

fn append<T: IntoBytes + Immutable>(thread: &mut Thread, record: &T) {
    thread.deliveries().append(size_of::<T>(), |bytes| {
        bytes.copy_from_slice(record.as_bytes())
    });
}

unsafe extern "C" fn on_copies(
    _context: rocprofiler_context_id_t,
    _buffer: rocprofiler_buffer_id_t,
    headers: *mut *mut rocprofiler_record_header_t,
    count: usize,
    _data: *mut c_void,
    dropped: u64,
) {
    // SAFETY: the provider's arguments, handed on as they came.
    unsafe {
        crate::buffers::deliver(&COPIES, headers, count, dropped, |thread, head| {
            if head.category != rocprofiler_buffer_category_t::TRACING.0 {
                return;
            }
            // SAFETY: only this kind is routed to this buffer, so this is the type of its records.
            let record =
                crate::read::sized::<rocprofiler_buffer_tracing_memory_copy_record_t>(head.payload);
            if let Some(record) = record
                && record.end_timestamp >= fork_time()
            {
                let (region, stream) = unpack(record.correlation_id.external.as_u64());
                let copy = Copy {
                    header: header(tag::COPY, size_of::<Copy>()),
                    thread: record.thread_id,
                    correlation: record.correlation_id.internal,
                    start: record.start_timestamp,
                    end: record.end_timestamp,
                    dst_agent: record.dst_agent_id.handle,
                    src_agent: record.src_agent_id.handle,
                    bytes: record.bytes,
                    dst_address: record.dst_address.as_u64(),
                    src_address: record.src_address.as_u64(),
                    operation: record.operation.0,
                    stream,
                    region,
                    reserved: 0,
                };
                append(thread, &copy);
            }
        });
    }
}

unsafe extern "C" fn on_allocations(
    _context: rocprofiler_context_id_t,
    _buffer: rocprofiler_buffer_id_t,
    headers: *mut *mut rocprofiler_record_header_t,
    count: usize,
    _data: *mut c_void,
    dropped: u64,
) {
    // SAFETY: the provider's arguments, handed on as they came.
    unsafe {
        crate::buffers::deliver(&ALLOCATIONS, headers, count, dropped, |thread, head| {
            if head.category != rocprofiler_buffer_category_t::TRACING.0 {
                return;
            }
            // SAFETY: only this kind is routed to this buffer, so this is the type of its records.
            let record = crate::read::sized::<rocprofiler_buffer_tracing_memory_allocation_record_t>(
                head.payload,
            );
            if let Some(record) = record
                && record.end_timestamp >= fork_time()
            {
                let (_, stream) = unpack(record.correlation_id.external.as_u64());
                let allocation = Allocation {
                    header: header(tag::ALLOCATION, size_of::<Allocation>()),
                    thread: record.thread_id,
                    correlation: record.correlation_id.internal,
                    ancestor: record.correlation_id.ancestor,
                    start: record.start_timestamp,
                    end: record.end_timestamp,
                    agent: record.agent_id.handle,
                    address: record.address.as_u64(),
                    bytes: record.allocation_size,
                    operation: record.operation.0,
                    stream,
                };
                append(thread, &allocation);
            }
        });
    }
}

unsafe extern "C" fn on_scratch(
    _context: rocprofiler_context_id_t,
    _buffer: rocprofiler_buffer_id_t,
    headers: *mut *mut rocprofiler_record_header_t,
    count: usize,
    _data: *mut c_void,
    dropped: u64,
) {
    // SAFETY: the provider's arguments, handed on as they came.
    unsafe {
        crate::buffers::deliver(&SCRATCH, headers, count, dropped, |thread, head| {
            if head.category != rocprofiler_buffer_category_t::TRACING.0 {
                return;
            }
            // SAFETY: only this kind is routed to this buffer, so this is the type of its records.
            let record = crate::read::sized::<rocprofiler_buffer_tracing_scratch_memory_record_t>(
                head.payload,
            );
            if let Some(record) = record
                && record.end_timestamp >= fork_time()
            {
                let scratch = Scratch {
                    header: header(tag::SCRATCH, size_of::<Scratch>()),
                    thread: record.thread_id,
                    correlation: record.correlation_id.internal,
                    ancestor: record.correlation_id.ancestor,
                    start: record.start_timestamp,
                    end: record.end_timestamp,
                    agent: record.agent_id.handle,
                    queue: record.queue_id.handle,
                    bytes: record.allocation_size,
                    operation: record.operation.0,
                    flags: record.flags.0,
                };
                append(thread, &scratch);
            }
        });
    }
}
