//! Start and end of a traced API call.
//!
//! No locks and no allocations: which contexts trace the call is read from a few atomics, and all state
//! of the call lives on its stack.

use core::{mem::MaybeUninit, ptr};

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_hip_api_ext_record_t as ExtendedRecord,
    rocprofiler_buffer_tracing_hip_api_record_t as Record,
    rocprofiler_buffer_tracing_kind_t as BufferKind, rocprofiler_callback_phase_t as Phase,
    rocprofiler_callback_tracing_hip_api_data_t as HipPayload,
    rocprofiler_callback_tracing_hsa_api_data_t as HsaPayload,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_marker_api_data_t as MarkerPayload,
    rocprofiler_callback_tracing_rccl_api_data_t as RcclPayload,
    rocprofiler_callback_tracing_record_t as CallbackRecord,
    rocprofiler_correlation_id_t as CorrelationId,
    rocprofiler_external_correlation_id_request_kind_t as RequestKind,
    rocprofiler_user_data_t as UserData,
};

use super::{clock, context, correlation::Scope, external, state, thread};

/// Size of the largest payload in 64-bit words.
const PAYLOAD_WORDS: usize = {
    let (hsa, rccl) = (size_of::<HsaPayload>(), size_of::<RcclPayload>());
    (if hsa > rccl { hsa } else { rccl }) / 8
};

/// A traced table of functions, by its kinds in the services.
pub(crate) struct Domain {
    callback: CallbackKind,
    buffer: BufferKind,
    /// Buffer kind of records with arguments; `NONE` where there is none.
    extended: BufferKind,
    request: RequestKind,
    /// Size in bytes of the callback payload.
    size: usize,
    /// Position of the result in the payload, in 64-bit words.
    retval: usize,
}

macro_rules! domain {
    ($name:ident, $payload:ident, $extended:ident) => {
        pub(crate) static $name: Domain = Domain {
            callback: CallbackKind::$name,
            buffer: BufferKind::$name,
            extended: BufferKind::$extended,
            request: RequestKind::$name,
            size: size_of::<$payload>(),
            retval: core::mem::offset_of!($payload, retval) / 8,
        };
    };
}

domain!(HIP_RUNTIME_API, HipPayload, HIP_RUNTIME_API_EXT);
domain!(HIP_COMPILER_API, HipPayload, HIP_COMPILER_API_EXT);
domain!(HSA_CORE_API, HsaPayload, NONE);
domain!(HSA_AMD_EXT_API, HsaPayload, NONE);
domain!(HSA_IMAGE_EXT_API, HsaPayload, NONE);
domain!(HSA_FINALIZE_EXT_API, HsaPayload, NONE);
domain!(MARKER_CORE_API, MarkerPayload, NONE);
domain!(MARKER_CONTROL_API, MarkerPayload, NONE);
domain!(MARKER_NAME_API, MarkerPayload, NONE);
domain!(RCCL_API, RcclPayload, NONE);
domain!(MARKER_CORE_RANGE_API, MarkerPayload, NONE);

impl Domain {
    /// Whether any context, active or not, configured an operation.
    pub(crate) fn wanted(&self, operation: usize) -> bool {
        context::want_callbacks(self.callback.0 as usize, operation)
            | context::want_records(self.buffer.0 as usize, operation)
            | context::want_records(self.extended.0 as usize, operation)
            != 0
    }
}

/// Masks of the contexts that trace a call, determined when it begins.
#[derive(Clone, Copy)]
pub(crate) struct Selected {
    callbacks: u64,
    records: u64,
    extended: u64,
}

impl Selected {
    /// Whether no context traces the call.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.callbacks | self.records | self.extended == 0
    }

    #[inline(always)]
    fn all(&self) -> u64 {
        self.callbacks | self.records | self.extended
    }
}

/// The contexts that trace a call which begins now.
#[inline(always)]
pub(crate) fn select(domain: &Domain, operation: usize) -> Selected {
    let active = if state::finalized() == 0 {
        context::active()
    } else {
        0
    };
    if active == 0 {
        return Selected {
            callbacks: 0,
            records: 0,
            extended: 0,
        };
    }
    Selected {
        callbacks: active & context::want_callbacks(domain.callback.0 as usize, operation),
        records: active & context::want_records(domain.buffer.0 as usize, operation),
        // No context can configure kind NONE.
        extended: active & context::want_records(domain.extended.0 as usize, operation),
    }
}

/// A traced call, from its start to its end.
pub(crate) struct Call {
    payload: [MaybeUninit<u64>; PAYLOAD_WORDS],
    domain: &'static Domain,
    operation: i32,
    selected: Selected,
    scope: Scope,
    thread: u64,
    start: u64,
    /// User data by context; only that of selected contexts is ever touched.
    user: [MaybeUninit<UserData>; context::MAX],
    external: [MaybeUninit<u64>; context::MAX],
}

impl Call {
    /// Memory for a call, on the stack of its wrapper.
    #[inline(always)]
    pub(crate) const fn place() -> MaybeUninit<Self> {
        MaybeUninit::uninit()
    }

    /// Fills a call in place, because most of its memory stays unwritten. The arguments have the layout of the call's
    /// member of the argument union.
    #[inline(always)]
    pub(crate) fn begin<'a, A>(
        place: &'a mut MaybeUninit<Self>,
        domain: &'static Domain,
        operation: usize,
        selected: Selected,
        args: A,
    ) -> &'a mut Self {
        const { assert!(size_of::<A>() <= 192 && align_of::<A>() <= 8) };
        let call = place.as_mut_ptr();
        // SAFETY: every field is written here, or is an array of `MaybeUninit` that may stay as it is; the
        // argument union starts at the second word of the payload and has room for any call's arguments.
        unsafe {
            let payload = (&raw mut (*call).payload).cast::<u64>();
            payload.write_bytes(0, domain.size / 8);
            payload.write(domain.size as u64);
            payload.add(1).cast::<A>().write(args);
            (&raw mut (*call).domain).write(domain);
            (&raw mut (*call).operation).write(operation as i32);
            (&raw mut (*call).selected).write(selected);
            (&raw mut (*call).scope).write(Scope::unused());
            (&raw mut (*call).thread).write(thread::current());
            (&raw mut (*call).start).write(0);
            place.assume_init_mut()
        }
    }

    fn record(&mut self, phase: Phase, index: usize) -> CallbackRecord {
        CallbackRecord {
            thread_id: self.thread,
            correlation_id: self.correlation(index),
            kind: self.domain.callback,
            operation: self.operation,
            phase,
            payload: self.payload.as_mut_ptr().cast(),
            ..CallbackRecord::default()
        }
    }

    fn correlation(&self, index: usize) -> CorrelationId {
        CorrelationId {
            internal: self.scope.internal,
            // SAFETY: written at the beginning for every context selected.
            external: UserData::from(unsafe { self.external[index].assume_init() }),
            ancestor: self.scope.ancestor,
        }
    }

    /// Reports the start of the call, before the real function runs. The call must not move from here to `exit`.
    pub(crate) fn enter(&mut self) {
        self.scope.enter();
        let (request, all) = (self.domain.request.0, self.selected.all());
        for index in context::bits(all) {
            let value = external::request(
                context::get(index),
                request,
                self.operation,
                self.thread,
                self.scope.internal,
            );
            self.external[index].write(value);
        }
        for index in context::bits(self.selected.callbacks) {
            self.user[index].write(UserData::from(0));
            let record = self.record(Phase::ENTER, index);
            context::get(index).call(record, self.user[index].as_mut_ptr());
        }
        // Callbacks may have pushed ids; contexts with a request callback keep the id that it returned.
        for index in
            context::bits(external::any_pushed(all) & !context::want_requests(request as usize))
        {
            self.external[index].write(external::pushed(context::get(index), self.thread));
        }
        if self.selected.records | self.selected.extended != 0 {
            self.start = clock::now();
        }
    }

    /// Reports the end of the call, after the real function has run; `result` goes into the union of results.
    #[inline(always)]
    pub(crate) fn exit<R: Copy>(&mut self, result: R) {
        const { assert!(size_of::<R>() <= 24 && align_of::<R>() <= 8) };
        if size_of::<R>() != 0 {
            // SAFETY: the union of results is the end of the payload and has room for the domain's types.
            unsafe {
                self.payload
                    .as_mut_ptr()
                    .add(self.domain.retval)
                    .cast::<R>()
                    .write_unaligned(result);
            }
        }
        self.finish();
    }

    /// Takes a call off the thread's stack before it has ended: later calls of the thread are not inside of it.
    pub(crate) fn detach(&mut self) {
        self.scope.leave();
    }

    /// Puts a detached call on the stack of the calling thread, where it ends.
    pub(crate) fn adopt(&mut self) {
        self.thread = thread::current();
    }

    fn finish(&mut self) {
        let recorded = self.selected.records | self.selected.extended;
        let end = if recorded != 0 { clock::now() } else { 0 };
        for index in context::bits(self.selected.callbacks) {
            let record = self.record(Phase::EXIT, index);
            context::get(index).call(record, self.user[index].as_mut_ptr());
        }
        self.scope.leave();
        if recorded != 0 {
            self.emit(end);
        }
        self.scope.release();
    }

    fn emit(&self, end: u64) {
        let plain = |kind: BufferKind, size: usize, index: usize| Record {
            size: size as u64,
            kind,
            operation: self.operation,
            correlation_id: self.correlation(index),
            start_timestamp: self.start,
            end_timestamp: end,
            thread_id: self.thread,
        };
        let kind = self.domain.buffer;
        for index in context::bits(self.selected.records) {
            if let Some(buffer) = context::get(index).buffers[kind.0 as usize].get() {
                buffer.emit(kind.0, &plain(kind, size_of::<Record>(), index));
            }
        }
        let kind = self.domain.extended;
        for index in context::bits(self.selected.extended) {
            if let Some(buffer) = context::get(index).buffers[kind.0 as usize].get() {
                let mut record = ExtendedRecord::default();
                // SAFETY: the extended record begins with the plain one, and arguments and result follow
                // in it as they do in the payload; every word of the payload was written.
                unsafe {
                    let to = ptr::from_mut(&mut record);
                    to.cast::<Record>()
                        .write(plain(kind, size_of::<ExtendedRecord>(), index));
                    ptr::copy_nonoverlapping(
                        self.payload.as_ptr().add(1).cast::<u64>(),
                        to.cast::<u64>()
                            .add(core::mem::offset_of!(ExtendedRecord, args) / 8),
                        self.domain.size / 8 - 1,
                    );
                }
                buffer.emit(kind.0, &record);
            }
        }
    }
}
