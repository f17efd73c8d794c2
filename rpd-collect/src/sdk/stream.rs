//! HIP streams, and the external ids that tie device work to them and to regions.
//!
//! The provider requests an id on the thread that submits the work and hands it back with the record. Region and stream are
//! packed into its 64 bits, so nothing is allocated.

use std::ffi::{c_int, c_void};

use rocprofiler_sdk_sys::{
    rocprofiler_callback_tracing_hip_stream_data_t, rocprofiler_context_id_t,
    rocprofiler_external_correlation_id_request_kind_t, rocprofiler_thread_id_t,
    rocprofiler_tracing_operation_t, rocprofiler_user_data_t,
};

use super::setup::Setup;
use super::trace::{Phase, Record, Tracer};
use super::{names, payload};
use crate::recording::guard::Service;
use crate::recording::meta;
use crate::recording::thread::{self, Thread};

static STREAMS: Service = Service::new("HIP streams");
static REQUESTS: Service = Service::new("external ids");

/// Region and stream of an external id.
pub(super) fn unpack(external: u64) -> (u32, u32) {
    ((external >> 32) as u32, external as u32)
}

fn pack(region: u32, stream: u32) -> u64 {
    u64::from(region) << 32 | u64::from(stream)
}

pub(super) fn configure(setup: &Setup<'_>) {
    if setup.options.streams
        && let Some(kind) = setup.callback_kind("HIP_STREAM")
    {
        let set = kind.operation("HIP_STREAM_SET");
        setup.trace_always("HIP streams", kind, &[], Streams { set });
    }
    if setup.options.streams || setup.options.kernel_rename {
        configure_requests(setup);
    }
}

fn configure_requests(setup: &Setup<'_>) {
    let kinds = names::request_kinds(
        setup.functions,
        &["KERNEL_DISPATCH", "MEMORY_COPY", "MEMORY_ALLOCATION"],
    );
    let service = setup
        .functions
        .rocprofiler_configure_external_correlation_id_request_service;
    let (Some(service), false) = (service, kinds.is_empty()) else {
        meta::note("this provider does not report which stream device work belongs to");
        return;
    };
    for context in std::iter::once(setup.client).chain(setup.counting) {
        // SAFETY: the array lives through the call, which copies it.
        let status = unsafe {
            service(
                context,
                kinds.as_ptr(),
                kinds.len(),
                Some(on_request),
                std::ptr::null_mut(),
            )
        };
        if !setup.succeeded(status, "which stream device work belongs to") {
            return;
        }
    }
}

struct Streams {
    /// Number of the operation that sets the stream on which a thread works.
    set: Option<i32>,
}

impl Tracer for Streams {
    const SERVICE: &'static Service = &STREAMS;

    fn take(&self, record: &Record, _slot: &mut u64) {
        if self.set != Some(record.operation) {
            return;
        }
        type Payload = rocprofiler_callback_tracing_hip_stream_data_t;
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe { payload::sized::<Payload>(record.payload) };
        let Some(payload) = payload else { return };
        match record.phase {
            Phase::ENTER => {
                thread::with(|thread| thread.push_stream(payload.stream_id.handle as u32));
            }
            Phase::EXIT => {
                thread::with(Thread::pop_stream);
            }
            _ => {}
        }
    }
}

unsafe extern "C" fn on_request(
    _thread: rocprofiler_thread_id_t,
    _context: rocprofiler_context_id_t,
    _kind: rocprofiler_external_correlation_id_request_kind_t,
    _operation: rocprofiler_tracing_operation_t,
    _internal: u64,
    external: *mut rocprofiler_user_data_t,
    _data: *mut c_void,
) -> c_int {
    let value = REQUESTS
        .on_event(|| {
            thread::with(|thread| {
                let (region, stream) = thread.region_and_stream();
                pack(region, stream)
            })
        })
        .flatten()
        .unwrap_or(0);
    if !external.is_null() {
        // SAFETY: the slot that the provider wants filled.
        unsafe { (*external).value = value };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_lossless() {
        for (region, stream) in [(0, 0), (1, u32::MAX), (u32::MAX, 1), (7, 0)] {
            assert_eq!(unpack(pack(region, stream)), (region, stream));
        }
    }
}
