//! The event that a runtime was initialised.

use core::ptr;

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_buffer_tracing_runtime_initialization_record_t as Record,
    rocprofiler_callback_phase_t as Phase, rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_record_t as CallbackRecord,
    rocprofiler_callback_tracing_runtime_initialization_data_t as Payload,
    rocprofiler_runtime_initialization_operation_t as Operation,
    rocprofiler_user_data_t as UserData,
};

use super::{clock, context, thread};

/// Reports that a runtime has handed its tables over.
pub(crate) fn initialized(operation: Operation, version: u64, instance: u64) {
    let kind = CallbackKind::RUNTIME_INITIALIZATION;
    let op = operation.0 as usize;
    let active = context::active();
    for index in context::bits(context::want_callbacks(kind.0 as usize, op) & active) {
        let mut payload = Payload {
            size: size_of::<Payload>() as u64,
            version,
            instance,
        };
        let mut user = UserData::from(0);
        let record = CallbackRecord {
            thread_id: thread::current(),
            kind,
            operation: operation.0 as i32,
            phase: Phase::NONE,
            payload: ptr::from_mut(&mut payload).cast(),
            ..CallbackRecord::default()
        };
        context::get(index).call(record, &mut user);
    }
    let kind = BufferKind::RUNTIME_INITIALIZATION;
    for index in context::bits(context::want_records(kind.0 as usize, op) & active) {
        if let Some(buffer) = context::get(index).buffers[kind.0 as usize].get() {
            let record = Record {
                size: size_of::<Record>() as u64,
                kind,
                operation,
                thread_id: thread::current(),
                timestamp: clock::now(),
                version,
                instance,
                ..Record::default()
            };
            buffer.emit(kind.0, &record);
        }
    }
}
