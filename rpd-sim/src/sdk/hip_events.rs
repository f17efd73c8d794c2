//! HIP events on the device: the kind HIP_EVENT, from SDK 1.4 on.
//!
//! A call that records an event, or that makes a stream wait for one, puts a barrier into a queue. Callbacks come before and after
//! the call, and one with the barrier's times when it is complete, from a thread that waits for barriers one after the other.

use core::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};
use std::sync::{Arc, Mutex, mpsc};
use std::{collections::HashMap, time::Duration, time::Instant};

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_hip_event_record_t as Record,
    rocprofiler_buffer_tracing_kind_t as BufferKind, rocprofiler_callback_phase_t as Phase,
    rocprofiler_callback_tracing_hip_event_data_t as Payload,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_external_correlation_id_request_kind_t as RequestKind,
    rocprofiler_hip_event_operation_t as Operation, rocprofiler_queue_id_t as QueueId,
    rocprofiler_user_data_t as UserData,
};

use super::context_records::{ContextRecords, masks, report, see};
use super::correlation::Use;
use super::{agents, context, device, names, state, thread};
use crate::api::table::{Slot, next};
use crate::gpu::observe::QueueInfo;
use crate::hip::error::HipResult;
use crate::hip::stream::event::Recorded;
use crate::hip::stream::signal::Signal;
use crate::hip::stream::{self, Stream};
use crate::hip::{hsa, runtime};

const KIND: CallbackKind = CallbackKind::HIP_EVENT;

/// The wrapped functions, with the functions that the wrappers call.
static WRAPPED: [(&str, Wrapper, AtomicPtr<c_void>); 6] = [
    entry("hipEventRecord", event_record as *const ()),
    entry("hipEventRecord_spt", event_record_spt as *const ()),
    entry(
        "hipEventRecordWithFlags",
        event_record_with_flags as *const (),
    ),
    entry("hipStreamWaitEvent", stream_wait_event as *const ()),
    entry("hipStreamWaitEvent_spt", stream_wait_event_spt as *const ()),
    entry("hipEventDestroy", event_destroy as *const ()),
];

/// Address of a wrapper.
struct Wrapper(*const ());

// SAFETY: the address of a function.
unsafe impl Sync for Wrapper {}

const fn entry(
    name: &'static str,
    wrapper: *const (),
) -> (&'static str, Wrapper, AtomicPtr<c_void>) {
    (name, Wrapper(wrapper), AtomicPtr::new(ptr::null_mut()))
}

/// Queue of the latest record of each event, by the event's handle.
static SOURCES: Mutex<Option<HashMap<u64, u64>>> = Mutex::new(None);
/// Barriers that are under way, to the thread that waits for them; `None` before the first.
static UNDER_WAY: Mutex<Option<mpsc::Sender<Barrier>>> = Mutex::new(None);
/// Number of barriers whose end has not been reported.
static OUTSTANDING: AtomicU64 = AtomicU64::new(0);

/// Puts the wrappers in front of the runtime, and behind tracing wrappers, when a context has the kind.
pub(crate) fn install(slots: &[Slot]) {
    if !context::any(KIND, BufferKind::HIP_EVENT) {
        return;
    }
    let Some(operations) = names::buffer_operations(BufferKind::HIP_RUNTIME_API) else {
        return;
    };
    for (name, wrapper, below) in &WRAPPED {
        let place = (operations.names.iter()).position(|known| known.to_bytes() == name.as_bytes());
        if let Some(place) = place
            && let Some(slot) = slots.get(place)
        {
            super::register::replace(slot, wrapper.0, below);
            next::HIP_RUNTIME_API[place].store(slot.load(Ordering::Acquire), Ordering::Release);
        }
    }
}

/// Waits for barriers under way, for a limited time.
pub(crate) fn drain() {
    let limit = Instant::now() + Duration::from_secs(5);
    while OUTSTANDING.load(Ordering::Acquire) != 0 && Instant::now() < limit {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Forgets the parent's barriers and the thread that waits for them, in a forked child.
pub(crate) fn forget() {
    OUTSTANDING.store(0, Ordering::Release);
    // A thread of the parent may have held it, which the child lacks.
    if let Ok(mut under_way) = UNDER_WAY.try_lock() {
        *under_way = None;
    }
}

macro_rules! next {
    ($n:literal, ($($t:ty),*), ($($a:expr),*)) => {{
        let slot = WRAPPED[$n].2.load(Ordering::Relaxed);
        // SAFETY: it was in that slot and so is of this type; the arguments are the caller's.
        unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($t),*) -> u32>(slot)($($a),*)
        }
    }};
}

/// A barrier whose events are reported.
struct Barrier {
    id: Use,
    thread: u64,
    /// Masks of the contexts with callbacks and with records.
    masks: (u64, u64),
    seen: Vec<ContextRecords>,
    operation: Operation,
    payload: Payload,
    /// Handle of the agent in the runtime.
    agent: u64,
    signal: Option<Arc<Signal>>,
}

// SAFETY: pointers in it are numbers of tools, which are only handed back to them.
unsafe impl Send for Barrier {}

/// Handle of a stream's queue for tools.
fn queue_of(stream: &Stream) -> u64 {
    let QueueId { handle } = device::queue_id(&QueueInfo {
        handle: stream.queue.address(),
        agent: stream.device.agent,
    });
    handle
}

impl Barrier {
    /// The barrier of a call that begins; `None` if no context wants it.
    fn new(operation: Operation, event: u64, stream: &Stream) -> Option<Barrier> {
        let masks = masks(KIND, operation.0, BufferKind::HIP_EVENT, operation.0);
        if masks.0 | masks.1 == 0 {
            return None;
        }
        let (id, thread) = (Use::current(), thread::current());
        let request = RequestKind::HIP_EVENT;
        let seen = see(masks.0 | masks.1, request, operation.0, thread, id.internal);
        let queue = queue_of(stream);
        Some(Barrier {
            id,
            thread,
            masks,
            seen,
            operation,
            payload: Payload {
                size: size_of::<Payload>() as u64,
                agent_id: agents::of_handle(stream.device.agent),
                queue_id: QueueId { handle: queue },
                source_queue_id: QueueId { handle: queue },
                hip_event_handle: event,
                ..Payload::default()
            },
            agent: stream.device.agent,
            signal: None,
        })
    }

    fn report(&mut self, phase: Phase) {
        let at = ptr::from_mut(&mut self.payload).cast();
        let what = (KIND, self.operation.0, phase);
        let id = (self.id.internal, self.id.ancestor);
        report(self.masks.0, &mut self.seen, id, self.thread, what, at);
    }

    /// Hands the barrier over to the thread that waits for its end.
    fn submit(self) {
        OUTSTANDING.fetch_add(1, Ordering::AcqRel);
        let mut under_way = UNDER_WAY.lock().unwrap_or_else(|e| e.into_inner());
        let sender = under_way.get_or_insert_with(|| {
            let (sender, barriers) = mpsc::channel::<Barrier>();
            let wait = move || {
                for barrier in barriers {
                    barrier.wait();
                }
            };
            let made = std::thread::Builder::new()
                .name("rpd-sim-events".to_owned())
                .spawn(wait);
            if let Err(error) = made {
                eprintln!("rpd-sim: HIP events are not reported: {error}");
            }
            sender
        });
        if sender.send(self).is_err() {
            OUTSTANDING.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Waits for the end and reports it.
    fn wait(mut self) {
        let time = self.signal.as_ref().and_then(|signal| {
            signal.wait();
            hsa::dispatch_time(self.agent, signal.handle()).ok()
        });
        if let Some(time) = time
            && state::finalized() != 1
        {
            self.payload.start_timestamp = time.start;
            // A barrier takes time, however short.
            self.payload.end_timestamp = time.end.max(time.start + 1);
            self.report(Phase::NONE);
            self.emit();
        }
        OUTSTANDING.fetch_sub(1, Ordering::AcqRel);
    }

    fn emit(&self) {
        let kind = BufferKind::HIP_EVENT;
        for seen in self
            .seen
            .iter()
            .filter(|seen| self.masks.1 & (1 << seen.index) != 0)
        {
            let Some(buffer) = context::get(seen.index).buffers[kind.0 as usize].get() else {
                continue;
            };
            let mut record = Record {
                size: size_of::<Record>() as u64,
                kind,
                operation: self.operation,
                thread_id: self.thread,
                start_timestamp: self.payload.start_timestamp,
                end_timestamp: self.payload.end_timestamp,
                agent_id: self.payload.agent_id,
                queue_id: self.payload.queue_id,
                hip_event_handle: self.payload.hip_event_handle,
                source_queue_id: self.payload.source_queue_id,
                ..Record::default()
            };
            record.correlation_id.internal = self.id.internal;
            record.correlation_id.external = UserData::from(seen.external);
            buffer.emit(kind.0, &record);
        }
    }
}

/// Signal of the latest record of an event that was recorded on a stream of this process.
fn mark_of(event: u64) -> Option<Arc<Signal>> {
    let event = runtime::get().ok()?.event(event as *mut c_void).ok()?;
    match event.recorded() {
        Some(Recorded::Mark { signal, .. }) => Some(signal),
        None | Some(Recorded::Captured(_) | Recorded::Shared(_)) => None,
    }
}

/// Records an event on a stream with `call`, between its events.
fn recorded(event: u64, stream: HipResult<Arc<Stream>>, call: impl FnOnce() -> u32) -> u32 {
    let stream = stream.ok().filter(|stream| !stream.is_capturing());
    let barrier = stream
        .as_ref()
        .and_then(|stream| Barrier::new(Operation::RECORD, event, stream));
    let Some(mut barrier) = barrier else {
        return call();
    };
    barrier.report(Phase::ENTER);
    let status = call();
    barrier.report(Phase::EXIT);
    barrier.signal = (status == 0).then(|| mark_of(event)).flatten();
    if barrier.signal.is_some() {
        let queue = barrier.payload.queue_id.handle;
        let mut sources = SOURCES.lock().unwrap_or_else(|e| e.into_inner());
        sources.get_or_insert_default().insert(event, queue);
        drop(sources);
        barrier.submit();
    }
    status
}

/// Makes a stream wait for an event with `call`, between its events, if there is anything to wait for.
fn waited(event: u64, stream: HipResult<Arc<Stream>>, call: impl FnOnce() -> u32) -> u32 {
    let source = {
        let sources = SOURCES.lock().unwrap_or_else(|e| e.into_inner());
        sources
            .as_ref()
            .and_then(|sources| sources.get(&event).copied())
    };
    let is_pending = || mark_of(event).is_some_and(|signal| !signal.is_done());
    let waiting = stream.ok().zip(source).filter(|(stream, source)| {
        !stream.is_capturing() && queue_of(stream) != *source && is_pending()
    });
    let barrier = waiting.as_ref().and_then(|(stream, source)| {
        let mut barrier = Barrier::new(Operation::WAIT, event, stream)?;
        barrier.payload.source_queue_id = QueueId { handle: *source };
        Some(barrier)
    });
    let (Some(mut barrier), Some((stream, _))) = (barrier, waiting) else {
        return call();
    };
    barrier.report(Phase::ENTER);
    let status = call();
    if status == 0 {
        // The runtime waits with the next packet of the stream: here that is a barrier of its own.
        barrier.signal = stream.step().and_then(|mut step| step.mark()).ok();
    }
    barrier.report(Phase::EXIT);
    if barrier.signal.is_some() {
        barrier.submit();
    }
    status
}

unsafe extern "C" fn event_record(event: u64, stream: u64) -> u32 {
    recorded(event, stream::resolve(stream as *mut c_void), || {
        next!(0, (u64, u64), (event, stream))
    })
}

unsafe extern "C" fn event_record_spt(event: u64, stream: u64) -> u32 {
    recorded(event, stream::resolve_spt(stream as *mut c_void), || {
        next!(1, (u64, u64), (event, stream))
    })
}

unsafe extern "C" fn event_record_with_flags(event: u64, stream: u64, flags: u32) -> u32 {
    recorded(event, stream::resolve(stream as *mut c_void), || {
        next!(2, (u64, u64, u32), (event, stream, flags))
    })
}

unsafe extern "C" fn stream_wait_event(stream: u64, event: u64, flags: u32) -> u32 {
    waited(event, stream::resolve(stream as *mut c_void), || {
        next!(3, (u64, u64, u32), (stream, event, flags))
    })
}

unsafe extern "C" fn stream_wait_event_spt(stream: u64, event: u64, flags: u32) -> u32 {
    waited(event, stream::resolve_spt(stream as *mut c_void), || {
        next!(4, (u64, u64, u32), (stream, event, flags))
    })
}

unsafe extern "C" fn event_destroy(event: u64) -> u32 {
    let status = next!(5, (u64), (event));
    if status == 0 {
        let mut sources = SOURCES.lock().unwrap_or_else(|e| e.into_inner());
        sources.as_mut().and_then(|sources| sources.remove(&event));
    }
    status
}
