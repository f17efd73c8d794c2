//! HIP events on the device, which SDK 1.4 and later report: barriers that record an event, or wait for one.

use rocprofiler_sdk_sys::rocprofiler_callback_tracing_hip_event_data_t;
use rpd_spool::format::{HipEvent, event_operation};
use rpd_spool::record::RecordKind;

use super::payload::sized;
use super::setup::Setup;
use super::stream::unpack;
use super::trace::{Phase, Record, Tracer};
use crate::recording::device_work;
use crate::recording::guard::Service;

/// Name of the kind.
const KIND: &str = "HIP_EVENT";
/// The first version of the SDK with the kind.
const SINCE: &str = "1.4 (ROCm 10.1)";

static SERVICE: Service = Service::new("HIP events");

pub(super) fn configure(setup: &Setup<'_>) {
    if setup.options.traces.hip_event
        && let Some(kind) = setup.newer_callback_kind(KIND, SINCE)
    {
        let events = Events {
            record: kind.operation("HIP_EVENT_RECORD"),
            wait: kind.operation("HIP_EVENT_WAIT"),
        };
        setup.trace(setup.client, kind, &[], events);
    }
}

/// Numbers of the provider's operations on events.
struct Events {
    record: Option<i32>,
    wait: Option<i32>,
}

impl Tracer for Events {
    const SERVICE: &'static Service = &SERVICE;

    fn record(&self, record: &Record, _slot: &mut u64) {
        // The others come before the times are known.
        if record.phase != Phase::NONE {
            return;
        }
        let operation = Some(record.operation);
        let operation = if operation == self.record {
            event_operation::RECORD
        } else if operation == self.wait {
            event_operation::WAIT
        } else {
            return;
        };
        type Payload = rocprofiler_callback_tracing_hip_event_data_t;
        // SAFETY: the payload of this kind, within its callback.
        let Some(payload) = (unsafe { sized::<Payload>(record.payload) }) else {
            return;
        };
        let (_, stream) = unpack(record.correlation_id.external.as_u64());
        device_work::hip_event(HipEvent {
            header: RecordKind::HipEvent.head(0).with_aux(operation),
            thread: record.thread_id,
            correlation: record.correlation_id.internal,
            start: payload.start_timestamp,
            end: payload.end_timestamp,
            agent: payload.agent_id.handle,
            queue: payload.queue_id.handle,
            event: payload.hip_event_handle,
            source_queue: payload.source_queue_id.handle,
            stream,
            reserved: 0,
        });
    }
}
