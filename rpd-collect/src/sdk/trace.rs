//! The callback tracing service: records of the SDK are delivered to a [`Tracer`].

use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    rocprofiler_callback_phase_t, rocprofiler_callback_tracing_kind_t,
    rocprofiler_callback_tracing_record_t, rocprofiler_context_id_t, rocprofiler_user_data_t,
};

use super::setup::Setup;
use crate::recording::call::Call;
use crate::recording::guard::Service;
use crate::recording::kinds::KindNames;
use crate::recording::stacks::Selection;

pub(super) type Record = rocprofiler_callback_tracing_record_t;
pub(super) type Phase = rocprofiler_callback_phase_t;

/// A service that takes the records of a kind.
pub(super) trait Tracer: Sync + 'static {
    /// The service that ends when the tracer panics.
    const SERVICE: &'static Service;

    /// Takes a record, on the thread that makes or completes the call or work in it. `slot` is the same for all phases
    /// of one call; its content at the first is not defined.
    fn record(&self, record: &Record, slot: &mut u64);
}

unsafe extern "C" fn on_record<T: Tracer>(
    record: Record,
    user_data: *mut rocprofiler_user_data_t,
    tracer: *mut c_void,
) {
    T::SERVICE.on_event(|| {
        // SAFETY: `Setup::trace` leaked the tracer.
        let tracer = unsafe { &*tracer.cast::<T>() };
        let mut unused = 0;
        // SAFETY: null, or the eight bytes that belong to this call and context.
        let slot = match unsafe { user_data.as_mut() } {
            // SAFETY: all bits are a valid number.
            Some(data) => unsafe { &mut data.value },
            None => &mut unused,
        };
        tracer.record(&record, slot);
    });
}

/// The call that a record of its start describes. `stacks`: the operations of its kind whose stacks are recorded.
#[inline]
pub(super) fn call_of(kind: u16, record: &Record, stacks: Option<&Selection>) -> Call {
    Call {
        kind,
        operation: record.operation.cast_unsigned(),
        correlation: record.correlation_id.internal,
        ancestor: record.correlation_id.ancestor,
        has_stack: stacks.is_some_and(|selection| selection.takes(record.operation)),
    }
}

impl Setup<'_> {
    /// Makes `tracer` take the records of `operations` (none: all) of a kind while `context` is started. Notes the
    /// failure.
    pub(super) fn trace<T: Tracer>(
        &self,
        context: rocprofiler_context_id_t,
        kind: &KindNames,
        operations: &[i32],
        tracer: T,
    ) -> bool {
        let (pointer, count) = match operations {
            [] => (std::ptr::null(), 0),
            some => (some.as_ptr(), some.len()),
        };
        let tracer = std::ptr::from_mut(Box::leak(Box::new(tracer)));
        // SAFETY: the context is the provider's, the array lives through the call, and the tracer forever.
        let status = unsafe {
            (self
                .functions
                .rocprofiler_configure_callback_tracing_service)(
                context,
                rocprofiler_callback_tracing_kind_t(kind.number),
                pointer,
                count,
                Some(on_record::<T>),
                tracer.cast(),
            )
        };
        self.succeeded(status, &kind.name)
    }

    /// Makes `tracer` take the records of all operations of a kind, on its own context that is started at once and
    /// never stopped.
    pub(super) fn trace_always<T: Tracer>(
        &self,
        purpose: &str,
        kind: &KindNames,
        operations: &[i32],
        tracer: T,
    ) -> bool {
        let Some(context) = self.context(purpose) else {
            return false;
        };
        self.trace(context, kind, operations, tracer) && self.start(context, purpose)
    }
}
