//! Configuration of the two tracing services.

use core::ffi::c_void;

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_id_t as BufferId, rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_callback_tracing_cb_t as TraceFn,
    rocprofiler_callback_tracing_kind_t as CallbackKind, rocprofiler_context_id_t as ContextId,
    rocprofiler_status_t as Status,
};

use super::{
    buffer,
    context::{self, Callback, MAX_OPERATIONS},
    names, replay, state, version,
};

/// Indices of the selected operations; all operations of the kind for a null list or a length of 0.
fn operations(
    domain: Option<&names::Operations>,
    list: *const i32,
    count: usize,
) -> Result<Vec<usize>, Status> {
    let Some(domain) = domain else {
        // Kinds without operations are one operation.
        return Ok(vec![0]);
    };
    if list.is_null() || count == 0 {
        return Ok((0..domain.names.len())
            .filter(|&op| op < MAX_OPERATIONS)
            .collect());
    }
    // SAFETY: not null, and that long by the ABI's contract.
    let given = unsafe { core::slice::from_raw_parts(list, count) };
    given
        .iter()
        .map(|&op| match usize::try_from(op) {
            Ok(op) if op < domain.names.len() && op < MAX_OPERATIONS => Ok(op),
            _ => Err(Status::ERROR_OPERATION_NOT_FOUND),
        })
        .collect()
}

/// `rocprofiler_configure_callback_tracing_service`.
///
/// # Safety
/// `operations` is null or holds `operations_count` ids; the callback stays callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_callback_tracing_service(
    context_id: ContextId,
    kind: CallbackKind,
    operations: *const i32,
    operations_count: usize,
    callback: TraceFn,
    callback_args: *mut c_void,
) -> Status {
    if state::initialized() != -1 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let Some(context) = context::find(context_id) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    if kind.0 == 0 || kind.0 >= version::current().callback_kinds() {
        return Status::ERROR_KIND_NOT_FOUND;
    }
    let Some(function) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if context.callbacks[kind.0 as usize].get().is_some() {
        return Status::ERROR_SERVICE_ALREADY_CONFIGURED;
    }
    let domain = names::callback_operations(kind);
    match self::operations(domain, operations, operations_count) {
        Err(status) => status,
        // One context of the process has it.
        Ok(_) if kind == CallbackKind::KERNEL_REPLAY && !replay::claim(context) => {
            Status::ERROR_SERVICE_ALREADY_CONFIGURED
        }
        Ok(list)
            if context.add_callback(
                kind,
                &list,
                Callback {
                    function,
                    data: callback_args,
                },
            ) =>
        {
            Status::SUCCESS
        }
        Ok(_) => Status::ERROR_SERVICE_ALREADY_CONFIGURED,
    }
}

/// `rocprofiler_configure_buffer_tracing_service`.
///
/// # Safety
/// `operations` is null or holds `operations_count` ids.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_buffer_tracing_service(
    context_id: ContextId,
    kind: BufferKind,
    operations: *const i32,
    operations_count: usize,
    buffer_id: BufferId,
) -> Status {
    if state::initialized() != -1 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let Some(context) = context::find(context_id) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    let Some(buffer) = buffer::find(buffer_id) else {
        return Status::ERROR_BUFFER_NOT_FOUND;
    };
    if kind.0 == 0 || kind.0 >= version::current().buffer_kinds() {
        return Status::ERROR_KIND_NOT_FOUND;
    }
    if context.buffers[kind.0 as usize].get().is_some() {
        return Status::ERROR_SERVICE_ALREADY_CONFIGURED;
    }
    let domain = names::buffer_operations(kind);
    match self::operations(domain, operations, operations_count) {
        Err(status) => status,
        Ok(list) if context.add_buffer(kind, &list, buffer) => Status::SUCCESS,
        Ok(_) => Status::ERROR_SERVICE_ALREADY_CONFIGURED,
    }
}
