//! The records that contexts get of a piece of device work, and their external correlation ids for it.

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_kind_t as BufferKind, rocprofiler_callback_phase_t as Phase,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_record_t as CallbackRecord,
    rocprofiler_correlation_id_t as CorrelationId,
    rocprofiler_external_correlation_id_request_kind_t as RequestKind,
    rocprofiler_user_data_t as UserData,
};

use super::{context, external, state};

/// Records of one context about a piece of device work.
pub(super) struct ContextRecords {
    pub(super) index: usize,
    pub(super) external: u64,
    user: UserData,
}

/// Masks of the contexts that take part in a piece of work, by service.
pub(super) fn masks(
    callback: CallbackKind,
    callback_op: u32,
    record: BufferKind,
    record_op: u32,
) -> (u64, u64) {
    let active = if state::finalized() == 0 {
        context::active()
    } else {
        0
    };
    (
        active & context::want_callbacks(callback.0 as usize, callback_op as usize),
        active & context::want_records(record.0 as usize, record_op as usize),
    )
}

pub(super) fn see(
    mask: u64,
    request: RequestKind,
    operation: u32,
    thread: u64,
    internal: u64,
) -> Vec<ContextRecords> {
    context::bits(mask)
        .map(|index| ContextRecords {
            index,
            external: external::request(
                context::get(index),
                request.0,
                operation as i32,
                thread,
                internal,
            ),
            user: UserData::from(0),
        })
        .collect()
}

/// Calls the callbacks of the contexts in a mask.
pub(super) fn report(
    mask: u64,
    seen: &mut [ContextRecords],
    id: (u64, u64),
    thread: u64,
    what: (CallbackKind, u32, Phase),
    payload: *mut core::ffi::c_void,
) {
    for seen in seen.iter_mut().filter(|s| mask & (1 << s.index) != 0) {
        let record = CallbackRecord {
            thread_id: thread,
            correlation_id: CorrelationId {
                internal: id.0,
                external: UserData::from(seen.external),
                ancestor: id.1,
            },
            kind: what.0,
            operation: what.1 as i32,
            phase: what.2,
            payload,
            ..CallbackRecord::default()
        };
        context::get(seen.index).call(record, &mut seen.user);
    }
}
