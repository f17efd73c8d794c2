//! Work of the device as records of services: dispatches and copies; events of scratch memory are in `scratch`.

use core::{
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};
use std::{
    collections::HashMap,
    sync::RwLock,
    time::{Duration, Instant},
};

use rocprofiler_sdk_sys::{
    rocprofiler_address_t as Address, rocprofiler_async_correlation_id_t as AsyncCorrelationId,
    rocprofiler_buffer_tracing_kernel_dispatch_record_t as DispatchRecord,
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_buffer_tracing_memory_copy_record_t as CopyRecord,
    rocprofiler_callback_phase_t as Phase,
    rocprofiler_callback_tracing_kernel_dispatch_data_t as DispatchPayload,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_memory_copy_data_t as CopyPayload, rocprofiler_dim3_t as Dim3,
    rocprofiler_external_correlation_id_request_kind_t as RequestKind,
    rocprofiler_kernel_dispatch_info_t as Info,
    rocprofiler_kernel_dispatch_operation_t as DispatchOperation,
    rocprofiler_memory_copy_operation_t as CopyOperation, rocprofiler_queue_id_t as QueueId,
    rocprofiler_user_data_t as UserData,
};

use super::context_records::{ContextRecords, masks, report, see};
use super::{
    agents, clock, codeobj, context, correlation::Use, counting, graphs, kfd, pc_sampling, replay,
    scratch, state, thread, thread_trace,
};
use crate::gpu::observe::{
    self, CodeObjectInfo, CopyDirection, CopyInfo, DispatchInfo, Interval, Observer, QueueInfo,
    ScratchInfo, Token,
};
use crate::gpu::replay::Candidate;
use rpd_gfx::perf;

/// Size in bytes of the part of the dispatch info that has a meaning.
const INFO_BYTES: u64 = core::mem::offset_of!(Info, reserved_padding) as u64;

/// Number of pieces of work that were started and have not been reported as done.
static OUTSTANDING: AtomicU64 = AtomicU64::new(0);
/// Id of the next dispatch, from 1.
static NEXT_DISPATCH: AtomicU64 = AtomicU64::new(1);
/// Queue ids, from 1, by queue handle.
static QUEUES: RwLock<Option<HashMap<u64, u64>>> = RwLock::new(None);
static NEXT_QUEUE: AtomicU64 = AtomicU64::new(1);

/// The observer of the device.
pub(super) struct Provider;

/// The observer as a value.
pub(super) static PROVIDER: Provider = Provider;

/// Sets the device's observer if a context traces or counts device work.
pub(crate) fn install() {
    let wanted = [
        (CallbackKind::KERNEL_DISPATCH, BufferKind::KERNEL_DISPATCH),
        (CallbackKind::MEMORY_COPY, BufferKind::MEMORY_COPY),
        (CallbackKind::SCRATCH_MEMORY, BufferKind::SCRATCH_MEMORY),
        (CallbackKind::CODE_OBJECT, BufferKind::NONE),
        (CallbackKind::HIP_GRAPH, BufferKind::HIP_GRAPH),
        (CallbackKind::HIP_EVENT, BufferKind::HIP_EVENT),
    ];
    // Without an observer the device does no work for tools, which most programs never have.
    if counting::configured()
        || pc_sampling::configured()
        || thread_trace::configured()
        || replay::configured()
        || kfd::KINDS
            .into_iter()
            .any(|kind| context::any(CallbackKind::NONE, kind))
        || wanted
            .into_iter()
            .any(|(callback, record)| context::any(callback, record))
    {
        // What a program loaded before a tool was attached comes first, so that its kernels are known to the first dispatch
        // that is observed; then what was loaded meanwhile.
        report_loaded();
        observe::set(&PROVIDER);
        report_loaded();
    }
}

fn report_loaded() {
    for object in observe::loaded_code() {
        codeobj::loaded(&object);
    }
}

/// Waits for work under way, for a limited time: a kernel that never ends must not keep a process.
pub(crate) fn drain() {
    let limit = Instant::now() + Duration::from_secs(5);
    while OUTSTANDING.load(Ordering::Acquire) != 0 && Instant::now() < limit {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Drops the parent's outstanding work, which never ends here, in a forked child.
pub(crate) fn forget() {
    OUTSTANDING.store(0, Ordering::Release);
}

/// A piece of work under way.
struct Work {
    id: Use,
    thread: u64,
    /// Mask of the contexts that get callbacks at the end of the work.
    callbacks: u64,
    /// Mask of the contexts that get a record.
    records: u64,
    seen: Vec<ContextRecords>,
    payload: Payload,
    /// Counting of the dispatch, if a context counts it.
    counted: Option<CountedDispatch>,
    /// Index of the agent of a dispatch.
    agent: usize,
    /// Mask of the context that samples the dispatch; 0 for none.
    sampled: u64,
    /// Thread trace of the dispatch, if a context requested one.
    traced: Option<thread_trace::ChosenTrace>,
}

/// A dispatch whose counters are collected.
struct CountedDispatch {
    /// Index of the agent that runs it.
    agent: usize,
    /// Counters that a context has chosen, and the context's external id.
    chosen: Option<(counting::dispatch::ChosenCounters, u64)>,
}

/// Contents of the records about the work, besides ids and times.
enum Payload {
    Dispatch(DispatchPayload),
    Copy(CopyOperation, CopyPayload),
}

impl Work {
    fn start(self) -> Token {
        OUTSTANDING.fetch_add(1, Ordering::AcqRel);
        Box::into_raw(Box::new(self)) as Token
    }

    /// The work of a token, which `start` returned; a token can be used once.
    fn end(token: Token) -> Option<Box<Self>> {
        if token == 0 {
            return None;
        }
        // SAFETY: the device hands each token back once.
        let work = unsafe { Box::from_raw(token as *mut Self) };
        // Tools that have finalised get no more records, but the memory of the work is freed.
        (state::finalized() != 1).then_some(work)
    }
}

pub(super) fn queue_id(queue: &QueueInfo) -> QueueId {
    // Nearly all queues are known: readers do not keep each other waiting.
    let known = QUEUES.read().unwrap_or_else(|e| e.into_inner());
    if let Some(&handle) = known.as_ref().and_then(|q| q.get(&queue.handle)) {
        return QueueId { handle };
    }
    drop(known);
    let mut queues = QUEUES.write().unwrap_or_else(|e| e.into_inner());
    let handle = *queues
        .get_or_insert_default()
        .entry(queue.handle)
        .or_insert_with(|| NEXT_QUEUE.fetch_add(1, Ordering::Relaxed));
    QueueId { handle }
}

fn next_dispatch() -> u64 {
    NEXT_DISPATCH.fetch_add(1, Ordering::Relaxed)
}

/// The description of a dispatch for tools.
fn describe(dispatch: &DispatchInfo<'_>, dispatch_id: u64) -> Info {
    let packet = dispatch.packet;
    Info {
        size: INFO_BYTES,
        agent_id: agents::of_handle(dispatch.queue.agent),
        queue_id: queue_id(&dispatch.queue),
        kernel_id: codeobj::kernel_id(packet.kernel_object),
        dispatch_id,
        private_segment_size: packet.private_segment_size,
        group_segment_size: packet.group_segment_size,
        workgroup_size: Dim3 {
            x: packet.workgroup_size_x.into(),
            y: packet.workgroup_size_y.into(),
            z: packet.workgroup_size_z.into(),
        },
        grid_size: Dim3 {
            x: packet.grid_size_x,
            y: packet.grid_size_y,
            z: packet.grid_size_z,
        },
        ..Info::default()
    }
}

impl Observer for Provider {
    fn queue_created(&self, queue: &QueueInfo) {
        queue_id(queue);
    }

    fn queue_destroyed(&self, queue: &QueueInfo) {
        let mut queues = QUEUES.write().unwrap_or_else(|e| e.into_inner());
        queues.as_mut().and_then(|q| q.remove(&queue.handle));
    }

    fn dispatch_enqueued(&self, dispatch: &DispatchInfo<'_>) -> Token {
        graphs::count_dispatch();
        let (ck, bk) = (CallbackKind::KERNEL_DISPATCH, BufferKind::KERNEL_DISPATCH);
        let (enqueue, complete) = (DispatchOperation::ENQUEUE.0, DispatchOperation::COMPLETE.0);
        // Enqueueing has callbacks only; completion has callbacks and records.
        // A tool may leave contexts out of a pass.
        let running = !replay::stopped();
        let begin = masks(ck, enqueue, bk, enqueue).0 & running;
        let (callbacks, records) = masks(ck, complete, bk, complete);
        let (callbacks, records) = (callbacks & running, records & running);
        // The services have no kind and operation, so that their contexts are found on their own.
        let (single, whole, sampled, traced) = if state::finalized() == 0 {
            let counting = (counting::of_dispatches(), counting::of_devices());
            let (sampled, traced) = (pc_sampling::of_dispatches(), thread_trace::of_dispatches());
            (counting.0 & running, counting.1, sampled, traced & running)
        } else {
            (0, 0, 0, 0)
        };
        let reserved = replay::take_reserved();
        // Token 0: the device does not report this dispatch again.
        if begin | callbacks | records | single | whole | sampled | traced == 0 {
            return 0;
        }
        // Ids are given only to dispatches that a context traces.
        let dispatch_id = reserved.unwrap_or_else(next_dispatch);
        let id = Use::current();
        let tid = thread::current();
        let mut payload = DispatchPayload {
            size: size_of::<DispatchPayload>() as u64,
            dispatch_info: describe(dispatch, dispatch_id),
            ..DispatchPayload::default()
        };
        let request = RequestKind::KERNEL_DISPATCH;
        // Contexts that only count whole agents need no ids: their values are not per dispatch.
        let mut seen = see(
            begin | callbacks | records | single | sampled | traced,
            request,
            enqueue,
            tid,
            id.internal,
        );
        let info = payload.dispatch_info;
        let mut report_phase = |phase, seen: &mut [ContextRecords]| {
            let at = ptr::from_mut(&mut payload).cast();
            let what = (ck, enqueue, phase);
            report(begin, seen, (id.internal, id.ancestor), tid, what, at);
        };
        report_phase(Phase::ENTER, &mut seen);
        // Whole agents are counted even if the context with dispatch counting chooses nothing for this one.
        let counted = crate::gpu::agents::agent(dispatch.queue.agent)
            .filter(|_| single | whole != 0)
            .map(|agent| CountedDispatch {
                agent: agent.index,
                chosen: seen
                    // At most one context counts dispatches, see `may_start`.
                    .iter()
                    .find(|seen| single & (1 << seen.index) != 0)
                    .and_then(|seen| {
                        let correlation = AsyncCorrelationId {
                            internal: id.internal,
                            external: UserData::from(seen.external),
                        };
                        let (context, agent) = (seen.index, agent.index);
                        let chosen = counting::dispatch::choose(context, agent, correlation, info)?;
                        Some((chosen, seen.external))
                    }),
            });
        let agent = crate::gpu::agents::agent(dispatch.queue.agent).map_or(0, |agent| agent.index);
        let external = |context| {
            let seen = seen.iter().find(|seen| seen.index == context);
            seen.map_or(0, |seen| seen.external)
        };
        let traced = (traced != 0)
            .then(|| thread_trace::choose(agent, id.internal, &info, external))
            .flatten();
        report_phase(Phase::EXIT, &mut seen);
        let payload = Payload::Dispatch(payload);
        Work {
            id,
            thread: tid,
            callbacks,
            records,
            seen,
            payload,
            counted,
            agent,
            sampled,
            traced,
        }
        .start()
    }

    fn replays(&self) -> bool {
        replay::configured()
    }

    fn replay(&self, dispatch: &DispatchInfo<'_>, candidate: &Candidate<'_>) -> Option<(u64, u64)> {
        replay::attempt(dispatch, candidate, |dispatch| {
            describe(dispatch, next_dispatch())
        })
    }

    fn serialises(&self, queue: &QueueInfo) -> bool {
        let agent = || crate::gpu::agents::agent(queue.agent);
        // Contexts that count make kernels run one after the other even while nothing is chosen, as in the SDK.
        counting::of_dispatches() != 0
            || thread_trace::configured()
                && agent().is_some_and(|agent| thread_trace::serialises(agent.index))
    }

    fn counts(&self, token: Token) -> bool {
        // SAFETY: tokens are what `start` gave out, and this one has not been handed back.
        let counted = unsafe { (token as *const Work).as_ref() }.and_then(|w| w.counted.as_ref());
        counted.is_some_and(|c| c.chosen.is_some() || counting::device::wants(c.agent))
    }

    fn dispatch_counted(&self, token: Token, counts: &perf::Counts, time: Interval) {
        // SAFETY: as above; it is handed back after this.
        let Some(work) = (unsafe { (token as *const Work).as_ref() }) else {
            return;
        };
        let (Some(counted), Payload::Dispatch(payload)) = (&work.counted, &work.payload) else {
            return;
        };
        if state::finalized() == 1 {
            return;
        }
        counting::device::add(counted.agent, counts);
        if let Some((chosen, external)) = &counted.chosen {
            let correlation = AsyncCorrelationId {
                internal: work.id.internal,
                external: UserData::from(*external),
            };
            chosen.finish(correlation, payload.dispatch_info, counts, time);
        }
    }

    fn records(&self, token: Token) -> Option<perf::Selection> {
        // SAFETY: as above; it is handed back after this.
        let work = unsafe { (token as *const Work).as_ref() }?;
        let Payload::Dispatch(payload) = &work.payload else {
            return None;
        };
        let sampled = if work.sampled == 0 {
            None
        } else {
            pc_sampling::selection(work.agent, payload.dispatch_info.kernel_id)
        };
        // A trace selects engines, samples a number of instructions: one recording serves both.
        match &work.traced {
            None => sampled,
            Some(traced) => Some(perf::Selection {
                samples: sampled.and_then(|sampled| sampled.samples),
                ..traced.selection()
            }),
        }
    }

    fn dispatch_recorded(&self, token: Token, recording: &observe::Recording, time: Interval) {
        // SAFETY: as above; it is handed back after this.
        let Some(work) = (unsafe { (token as *const Work).as_ref() }) else {
            return;
        };
        let Payload::Dispatch(payload) = &work.payload else {
            return;
        };
        if state::finalized() == 1 {
            return;
        }
        if let Some(traced) = &work.traced {
            traced.finish(recording);
        }
        let info = &payload.dispatch_info;
        for seen in work
            .seen
            .iter()
            .filter(|s| work.sampled & (1 << s.index) != 0)
        {
            let dispatch = pc_sampling::SampledDispatch {
                agent: work.agent,
                id: info.dispatch_id,
                kernel: info.kernel_id,
                correlation: AsyncCorrelationId {
                    internal: work.id.internal,
                    external: UserData::from(seen.external),
                },
            };
            pc_sampling::finish(&dispatch, recording, time);
        }
    }

    fn dispatch_completed(&self, token: Token, time: Interval) {
        complete(token, time);
    }

    fn copy_submitted(&self, copy: &CopyInfo) -> Token {
        let (ck, bk) = (CallbackKind::MEMORY_COPY, BufferKind::MEMORY_COPY);
        let operation = match copy.direction {
            CopyDirection::HostToHost => CopyOperation::HOST_TO_HOST,
            CopyDirection::HostToDevice => CopyOperation::HOST_TO_DEVICE,
            CopyDirection::DeviceToHost => CopyOperation::DEVICE_TO_HOST,
            CopyDirection::DeviceToDevice => CopyOperation::DEVICE_TO_DEVICE,
        };
        let (callbacks, records) = masks(ck, operation.0, bk, operation.0);
        if callbacks | records == 0 {
            return 0;
        }
        let id = Use::current();
        let tid = thread::current();
        let mut payload = CopyPayload {
            size: size_of::<CopyPayload>() as u64,
            dst_agent_id: agents::of_handle(copy.dst_agent),
            src_agent_id: agents::of_handle(copy.src_agent),
            bytes: copy.bytes,
            dst_address: Address::from(copy.dst),
            src_address: Address::from(copy.src),
            ..CopyPayload::default()
        };
        let request = RequestKind::MEMORY_COPY;
        let mut seen = see(callbacks | records, request, operation.0, tid, id.internal);
        let at = ptr::from_mut(&mut payload).cast();
        let what = (ck, operation.0, Phase::ENTER);
        report(
            callbacks,
            &mut seen,
            (id.internal, id.ancestor),
            tid,
            what,
            at,
        );
        let payload = Payload::Copy(operation, payload);
        Work {
            id,
            thread: tid,
            callbacks,
            records,
            seen,
            payload,
            counted: None,
            agent: 0,
            sampled: 0,
            traced: None,
        }
        .start()
    }

    fn copy_completed(&self, token: Token, time: Interval) {
        complete(token, time);
    }

    fn scratch_begin(&self, info: &ScratchInfo) -> Token {
        let (operation, ..) = scratch::operation(info.event);
        let (ck, bk) = (CallbackKind::SCRATCH_MEMORY, BufferKind::SCRATCH_MEMORY);
        let (callbacks, records) = masks(ck, operation.0, bk, operation.0);
        if callbacks | records == 0 {
            return 0;
        }
        // Ids are requested only where callbacks are active.
        let request = RequestKind::SCRATCH_MEMORY;
        let mut work = Box::new(scratch::ScratchWork {
            callbacks,
            records,
            seen: see(callbacks, request, operation.0, thread::current(), 0),
            start: 0,
        });
        // Two times: the callback's own time is not part of the change.
        scratch::report(&mut work, info, Phase::ENTER);
        work.start = clock::now();
        Box::into_raw(work) as Token
    }

    fn scratch_end(&self, token: Token, info: &ScratchInfo) {
        if token == 0 {
            return;
        }
        // SAFETY: the device hands each token back once.
        let mut work = unsafe { Box::from_raw(token as *mut scratch::ScratchWork) };
        scratch::ended(&mut work, info);
    }

    fn driver_event(&self, event: &observe::DriverEvent) {
        kfd::report(event);
    }

    fn code_object_loaded(&self, object: &CodeObjectInfo) {
        codeobj::loaded(object);
    }

    fn code_object_unloaded(&self, object: &CodeObjectInfo) {
        codeobj::unloaded(object.handle);
    }
}

/// Reports the end of a dispatch or a copy; called on the device's signal handler thread.
fn complete(token: Token, time: Interval) {
    /// Counts the work as done when it is dropped, also in a panic.
    struct DoneOnDrop(bool);
    impl Drop for DoneOnDrop {
        fn drop(&mut self) {
            if self.0 {
                OUTSTANDING.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }
    // A tool that panics must not keep the process from draining at its end.
    let _done = DoneOnDrop(token != 0);
    let Some(mut work) = Work::end(token) else {
        return;
    };
    let id = (work.id.internal, work.id.ancestor);
    let (mask, tid) = (work.callbacks, work.thread);
    let record_of = |seen: &ContextRecords| AsyncCorrelationId {
        internal: id.0,
        external: UserData::from(seen.external),
    };
    match &mut work.payload {
        Payload::Dispatch(payload) => {
            payload.start_timestamp = time.start;
            payload.end_timestamp = time.end;
            let at = ptr::from_mut(payload).cast();
            let operation = DispatchOperation::COMPLETE;
            let what = (CallbackKind::KERNEL_DISPATCH, operation.0, Phase::NONE);
            report(mask, &mut work.seen, id, tid, what, at);
            let kind = BufferKind::KERNEL_DISPATCH;
            for seen in work
                .seen
                .iter()
                .filter(|s| work.records & (1 << s.index) != 0)
            {
                if let Some(buffer) = context::get(seen.index).buffers[kind.0 as usize].get() {
                    buffer.emit(
                        kind.0,
                        &DispatchRecord {
                            size: size_of::<DispatchRecord>() as u64,
                            kind,
                            operation,
                            correlation_id: record_of(seen),
                            thread_id: tid,
                            start_timestamp: time.start,
                            end_timestamp: time.end,
                            dispatch_info: payload.dispatch_info,
                        },
                    );
                }
            }
        }
        Payload::Copy(operation, payload) => {
            payload.start_timestamp = time.start;
            payload.end_timestamp = time.end;
            let at = ptr::from_mut(payload).cast();
            let what = (CallbackKind::MEMORY_COPY, operation.0, Phase::EXIT);
            report(mask, &mut work.seen, id, tid, what, at);
            let kind = BufferKind::MEMORY_COPY;
            for seen in work
                .seen
                .iter()
                .filter(|s| work.records & (1 << s.index) != 0)
            {
                if let Some(buffer) = context::get(seen.index).buffers[kind.0 as usize].get() {
                    buffer.emit(
                        kind.0,
                        &CopyRecord {
                            size: size_of::<CopyRecord>() as u64,
                            kind,
                            operation: *operation,
                            correlation_id: record_of(seen),
                            thread_id: tid,
                            start_timestamp: time.start,
                            end_timestamp: time.end,
                            dst_agent_id: payload.dst_agent_id,
                            src_agent_id: payload.src_agent_id,
                            bytes: payload.bytes,
                            dst_address: payload.dst_address,
                            src_address: payload.src_address,
                        },
                    );
                }
            }
        }
    }
}
