//! HIP streams, and the external ids that tie device work to them and to regions.
//!
//! Streams have numbers of [`streams`], not the provider's: those are one for each handle, and the handle of per-thread
//! default streams is the same in all threads. Streams that programs create have the same numbers in both.
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
use crate::recording::thread::{self, Thread};
use crate::recording::{meta, streams};

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
        let operations = Streams {
            create: kind.operation("HIP_STREAM_CREATE"),
            destroy: kind.operation("HIP_STREAM_DESTROY"),
            set: kind.operation("HIP_STREAM_SET"),
        };
        setup.trace_always(PURPOSE, kind, &[], operations);
        trace_own(setup);
    }
    if setup.options.streams || setup.options.kernel_rename {
        configure_requests(setup);
    }
}

fn configure_requests(setup: &Setup<'_>) {
    let kinds = names::request_kinds(
        setup.functions,
        &[
            "KERNEL_DISPATCH",
            "MEMORY_COPY",
            "MEMORY_ALLOCATION",
            "HIP_EVENT",
        ],
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

/// Subject of notes about failures.
const PURPOSE: &str = "HIP streams";

/// Follows the calls whose null stream is the thread's own.
fn trace_own(setup: &Setup<'_>) {
    let Some(kind) = setup.names.callback("HIP_RUNTIME_API") else {
        return;
    };
    let own = kind
        .operations
        .iter()
        .filter(|(_, name)| name.ends_with("_spt"));
    let own: Vec<i32> = own.map(|(number, _)| *number).collect();
    // Without numbers it would be all calls.
    if !own.is_empty() {
        setup.trace_always(PURPOSE, kind, &own, OwnStreams);
    }
}

/// Calls whose null stream is the thread's own. The provider may report their stream before or after they begin.
struct OwnStreams;

impl Tracer for OwnStreams {
    const SERVICE: &'static Service = &STREAMS;

    fn record(&self, record: &Record, slot: &mut u64) {
        match record.phase {
            Phase::ENTER => {
                streams::enter_own();
                let own = streams::number_of_thread();
                let pushed = thread::with(|thread| {
                    let is_null = thread.region_and_stream().1 == 0;
                    if is_null {
                        thread.push_stream(own);
                    }
                    is_null
                });
                *slot = pushed.unwrap_or(false).into();
            }
            Phase::EXIT => {
                streams::leave_own();
                if *slot != 0 {
                    thread::with(Thread::pop_stream);
                }
            }
            _ => {}
        }
    }
}

/// Numbers of the provider's operations on streams.
struct Streams {
    /// Operation by which a stream was made.
    create: Option<i32>,
    /// Operation by which a stream was destroyed.
    destroy: Option<i32>,
    /// Operation of a call that works on a stream.
    set: Option<i32>,
}

impl Tracer for Streams {
    const SERVICE: &'static Service = &STREAMS;

    fn record(&self, record: &Record, _slot: &mut u64) {
        type Payload = rocprofiler_callback_tracing_hip_stream_data_t;
        let operation = Some(record.operation);
        let handle = || {
            // SAFETY: the payload of this kind, within its callback.
            let payload = unsafe { payload::sized::<Payload>(record.payload) };
            payload.map(|payload| payload.stream_value.as_u64())
        };
        match record.phase {
            Phase::ENTER if operation == self.set => {
                let number = handle().map_or(0, streams::number);
                thread::with(|thread| thread.push_stream(number));
            }
            Phase::EXIT if operation == self.set => {
                thread::with(Thread::pop_stream);
            }
            // Numbers are given in the order in which streams are made.
            Phase::NONE if operation == self.create => {
                handle().map(streams::number);
            }
            Phase::NONE if operation == self.destroy => {
                if let Some(stream) = handle() {
                    streams::destroyed(stream);
                }
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
    fn external_id_keeps_region_and_stream() {
        for (region, stream) in [(0, 0), (1, u32::MAX), (u32::MAX, 1), (7, 0)] {
            assert_eq!(unpack(pack(region, stream)), (region, stream));
        }
    }
}
