//! Events of the kernel driver: page migrations, page faults, evictions of queues. Providers that have the kinds refuse them where
//! the driver does not report events.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_id_t,
    rocprofiler_buffer_tracing_kfd_event_dropped_events_record_t as DroppedEvents,
    rocprofiler_buffer_tracing_kfd_event_queue_record_t as QueueEvent,
    rocprofiler_buffer_tracing_kfd_event_unmap_from_gpu_record_t as UnmapEvent,
    rocprofiler_buffer_tracing_kfd_page_fault_record_t as PageFault,
    rocprofiler_buffer_tracing_kfd_page_migrate_record_t as PageMigrate,
    rocprofiler_buffer_tracing_kfd_queue_record_t as QueuePair, rocprofiler_context_id_t,
    rocprofiler_record_header_t, rocprofiler_status_t,
};
use rpd_spool::format::{KfdEvent, kfd_kind};
use rpd_spool::options::Traces;
use rpd_spool::record::RecordKind;

use super::buffers::{self, Buffer};
use super::forked_end;
use super::payload::sized;
use super::provider::describe;
use super::setup::{Setup, note_newer};
use crate::recording::guard::Service;
use crate::recording::process::fork_time;
use crate::recording::{device_work, meta};

/// Subject of notes about failures.
const PURPOSE: &str = "events of the kernel driver";
/// A kind that the first SDK lacks: aggregates of SDKs before it have no events of the driver.
const NEWER: &str = "HIP_GRAPH";
/// Bytes of the buffer.
const BUFFER: usize = 64 << 10;
/// Bytes in the buffer at which they are delivered.
const WATERMARK: usize = 4 << 10;

/// A kind that is recorded. Of what the driver reports in pairs these are the joined ones, and queue events are both, as those of
/// the original are.
struct Kind {
    name: &'static str,
    /// One of [`kfd_kind`].
    number: u16,
    is_wanted: fn(&Traces) -> bool,
}

const KINDS: [Kind; 6] = [
    Kind {
        name: "KFD_PAGE_MIGRATE",
        number: kfd_kind::PAGE_MIGRATE,
        is_wanted: |traces| traces.kfd_page_migration,
    },
    Kind {
        name: "KFD_PAGE_FAULT",
        number: kfd_kind::PAGE_FAULT,
        is_wanted: |traces| traces.kfd_page_mapping,
    },
    Kind {
        name: "KFD_EVENT_UNMAP_FROM_GPU",
        number: kfd_kind::EVENT_UNMAP_FROM_GPU,
        is_wanted: |traces| traces.kfd_page_mapping,
    },
    Kind {
        name: "KFD_QUEUE",
        number: kfd_kind::QUEUE,
        is_wanted: |traces| traces.kfd_queue,
    },
    Kind {
        name: "KFD_EVENT_QUEUE",
        number: kfd_kind::EVENT_QUEUE,
        is_wanted: |traces| traces.kfd_queue,
    },
    Kind {
        name: "KFD_EVENT_DROPPED_EVENTS",
        number: kfd_kind::EVENT_DROPPED_EVENTS,
        is_wanted: |traces| traces.kfd_dropped_events,
    },
];

static SERVICE: Service = Service::new("events of the kernel driver");

/// The buffer of events, and the provider's numbers of [`KINDS`]; `None` of those that are not recorded.
struct Held {
    buffer: Buffer,
    /// Whether the events were requested by their own options, and not by an aggregate.
    by_name: bool,
    numbers: [Option<u32>; KINDS.len()],
}

static HELD: OnceLock<Held> = OnceLock::new();
/// Whether an event was delivered.
static DELIVERED: AtomicBool = AtomicBool::new(false);

pub(super) fn configure(setup: &Setup<'_>) {
    let wanted = |kind: &&Kind| (kind.is_wanted)(&setup.options.traces);
    if !KINDS.iter().any(|kind| wanted(&kind)) {
        return;
    }
    // By their own options they are requested of every provider.
    let by_name = setup.options.newer_sdk;
    if !by_name && setup.names.callback(NEWER).is_none() {
        return;
    }
    let kinds = KINDS.each_ref();
    let known = kinds.map(|kind| setup.names.buffer(kind.name).filter(|_| wanted(&kind)));
    let missing = KINDS.iter().zip(&known);
    let missing: Vec<&str> = missing
        .filter(|(kind, known)| wanted(kind) && known.is_none())
        .map(|(kind, _)| kind.name)
        .collect();
    if !missing.is_empty() && by_name {
        note_newer(&missing.join(", "), "1.0 (ROCm 7.0)");
    }
    if known.iter().all(Option::is_none) {
        return;
    }
    let Some(buffer) = Buffer::new(setup, PURPOSE, BUFFER, WATERMARK, Some(on_events)) else {
        return;
    };
    let mut refused = None;
    let numbers = known.map(|kind| {
        let kind = kind?;
        let status = buffer.receive(setup, kind);
        if status == rocprofiler_status_t::SUCCESS {
            return Some(kind.number);
        }
        refused = Some(status);
        None
    });
    // Aggregates include the events, which many drivers do not report.
    if let Some(status) = refused.filter(|_| by_name) {
        let text = describe(setup.functions, status);
        meta::note(&format!(
            "{PURPOSE} is not recorded: the provider reports: {text}"
        ));
    }
    HELD.get_or_init(|| Held {
        buffer,
        by_name,
        numbers,
    });
}

/// The buffer and its kinds; `None` in a forked child, which has not the thread that delivers events.
fn held() -> Option<&'static Held> {
    HELD.get().filter(|_| fork_time() == 0)
}

/// Whether a program that ends suddenly is to wait for events that the provider may hold. Most programs that record the driver's
/// events as part of an aggregate have none.
pub(super) fn holds_events() -> bool {
    held().is_some_and(|held| held.by_name || DELIVERED.load(Ordering::Relaxed))
}

/// Makes the provider deliver the events that it holds.
pub(super) fn deliver() {
    if let Some(held) = held() {
        held.buffer.flush();
    }
}

unsafe extern "C" fn on_events(
    _context: rocprofiler_context_id_t,
    _buffer: rocprofiler_buffer_id_t,
    headers: *mut *mut rocprofiler_record_header_t,
    count: usize,
    _data: *mut c_void,
    _dropped: u64,
) {
    SERVICE.on_event(|| {
        let Some(held) = HELD.get() else { return };
        if !DELIVERED.swap(true, Ordering::Relaxed) {
            // A forked child lacks the thread that this is.
            forked_end::prepare();
        }
        // SAFETY: the provider's array during this call.
        for record in unsafe { buffers::traced(headers, count) } {
            // SAFETY: a record of the kinds that were configured, which begins with its size.
            if let Some(event) = unsafe { event(held, record) } {
                device_work::kfd_event(&event);
            }
        }
    });
}

/// An event of one of [`KINDS`]; `None` for a record of another kind.
///
/// # Safety
///
/// `record` is a record of the provider's that begins with its size and its kind.
unsafe fn event(held: &Held, record: *const c_void) -> Option<KfdEvent> {
    // SAFETY: records of all kinds begin alike.
    let kind = unsafe { sized::<[u64; 2]>(record) }?[1] as u32;
    let place = held
        .numbers
        .iter()
        .position(|&number| number == Some(kind))?;
    let number = KINDS[place].number;
    macro_rules! read {
        ($layout:ty) => {
            // SAFETY: by this function's contract; the kind says which layout it is.
            unsafe { sized::<$layout>(record) }?
        };
    }
    let none = KfdEvent {
        header: RecordKind::KfdEvent.head(0).with_aux(number),
        start: 0,
        end: 0,
        pid: 0,
        operation: 0,
        agent: 0,
        dst_agent: 0,
        prefetch_agent: 0,
        preferred_agent: 0,
        address: 0,
        end_address: 0,
        error: 0,
        count: 0,
    };
    Some(match number {
        kfd_kind::PAGE_MIGRATE => {
            let from = read!(PageMigrate);
            KfdEvent {
                start: from.start_timestamp,
                end: from.end_timestamp,
                pid: from.pid,
                operation: from.operation.0.cast_unsigned(),
                agent: from.src_agent.handle,
                dst_agent: from.dst_agent.handle,
                prefetch_agent: from.prefetch_agent.handle,
                preferred_agent: from.preferred_agent.handle,
                address: from.start_address.as_u64(),
                end_address: from.end_address.as_u64(),
                error: from.error_code,
                ..none
            }
        }
        kfd_kind::PAGE_FAULT => {
            let from = read!(PageFault);
            KfdEvent {
                start: from.start_timestamp,
                end: from.end_timestamp,
                pid: from.pid,
                operation: from.operation.0.cast_unsigned(),
                agent: from.agent_id.handle,
                address: from.address.as_u64(),
                ..none
            }
        }
        kfd_kind::EVENT_UNMAP_FROM_GPU => {
            let from = read!(UnmapEvent);
            KfdEvent {
                start: from.timestamp,
                end: from.timestamp,
                pid: from.pid,
                operation: from.operation.0.cast_unsigned(),
                agent: from.agent_id.handle,
                address: from.start_address.as_u64(),
                end_address: from.end_address.as_u64(),
                ..none
            }
        }
        kfd_kind::QUEUE => {
            let from = read!(QueuePair);
            KfdEvent {
                start: from.start_timestamp,
                end: from.end_timestamp,
                pid: from.pid,
                operation: from.operation.0.cast_unsigned(),
                agent: from.agent_id.handle,
                ..none
            }
        }
        kfd_kind::EVENT_QUEUE => {
            let from = read!(QueueEvent);
            KfdEvent {
                start: from.timestamp,
                end: from.timestamp,
                pid: from.pid,
                operation: from.operation.0.cast_unsigned(),
                agent: from.agent_id.handle,
                ..none
            }
        }
        kfd_kind::EVENT_DROPPED_EVENTS => {
            let from = read!(DroppedEvents);
            KfdEvent {
                start: from.timestamp,
                end: from.timestamp,
                pid: from.pid,
                operation: from.operation.0.cast_unsigned(),
                count: from.count,
                ..none
            }
        }
        // Kinds that are not recorded, since others have their events.
        _ => return None,
    })
}
