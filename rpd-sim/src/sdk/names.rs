//! Names of kinds and operations.

use core::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
};
use std::sync::LazyLock;

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_kind_cb_t as BufferKindFn,
    rocprofiler_buffer_tracing_kind_operation_cb_t as BufferOperationFn,
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_callback_tracing_kind_cb_t as CallbackKindFn,
    rocprofiler_callback_tracing_kind_operation_cb_t as CallbackOperationFn,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_intercept_table_t as InterceptTable, rocprofiler_status_t as Status,
};

use super::status::store;
use super::version;

/// Operation names as the tables of facts have them.
mod generated {
    use core::ffi::CStr;

    include!(concat!(env!("OUT_DIR"), "/operations.rs"));
}

/// Names of the operations of a kind, at their numbers.
pub(crate) struct Operations {
    pub(crate) names: &'static [&'static CStr],
}

/// An enumerator without the prefix of its type.
pub(crate) fn suffix(name: &'static CStr, prefix: &str) -> &'static CStr {
    let bytes = name.to_bytes_with_nul();
    let rest = bytes.strip_prefix(prefix.as_bytes()).unwrap_or(bytes);
    CStr::from_bytes_with_nul(rest).unwrap_or(name)
}

const BUFFER: &str = "ROCPROFILER_BUFFER_TRACING_";
const CALLBACK: &str = "ROCPROFILER_CALLBACK_TRACING_";

fn by_name(name: &CStr) -> Option<Operations> {
    let name = name.to_str().ok()?;
    // Extended kinds share the operations of the plain ones.
    let plain = name.strip_suffix("_EXT").unwrap_or(name);
    let find = |n: &str| generated::ALL.iter().find(|(domain, ..)| *domain == n);
    find(name)
        .or_else(|| find(plain))
        .map(|(_, _, names)| Operations { names })
}

static BUFFER_OPERATIONS: LazyLock<Vec<Option<Operations>>> = LazyLock::new(|| {
    (0..BufferKind::LAST.0)
        .map(|k| by_name(suffix(BufferKind(k).c_name()?, BUFFER)))
        .collect()
});

static CALLBACK_OPERATIONS: LazyLock<Vec<Option<Operations>>> = LazyLock::new(|| {
    (0..CallbackKind::LAST.0)
        .map(|k| by_name(suffix(CallbackKind(k).c_name()?, CALLBACK)))
        .collect()
});

/// Names of the operations of a buffer kind; `None` for kinds without operations.
pub(crate) fn buffer_operations(kind: BufferKind) -> Option<&'static Operations> {
    BUFFER_OPERATIONS.get(kind.0 as usize)?.as_ref()
}

/// Names of the operations of a callback kind; `None` for kinds without operations.
pub(crate) fn callback_operations(kind: CallbackKind) -> Option<&'static Operations> {
    CALLBACK_OPERATIONS.get(kind.0 as usize)?.as_ref()
}

/// Writes a name, or returns the status for an unknown kind.
pub(crate) fn answer(
    found: Option<&'static CStr>,
    name: *mut *const c_char,
    name_len: *mut u64,
) -> Status {
    match found {
        Some(text) => {
            store(name, text.as_ptr());
            store(name_len, text.count_bytes() as u64);
            Status::SUCCESS
        }
        None => {
            store(name, ptr::null());
            store(name_len, 0);
            Status::ERROR_KIND_NOT_FOUND
        }
    }
}

fn operation(
    operations: Option<&'static Operations>,
    operation: i32,
    name: *mut *const c_char,
    name_len: *mut u64,
) -> Status {
    let Some(operations) = operations else {
        return Status::ERROR_NOT_IMPLEMENTED;
    };
    match usize::try_from(operation)
        .ok()
        .and_then(|op| operations.names.get(op))
    {
        Some(text) => answer(Some(text), name, name_len),
        None => Status::ERROR_OPERATION_NOT_FOUND,
    }
}

/// `rocprofiler_query_buffer_tracing_kind_name`.
///
/// # Safety
/// Pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_buffer_tracing_kind_name(
    kind: BufferKind,
    name: *mut *const c_char,
    name_len: *mut u64,
) -> Status {
    let known = (kind.0 < version::current().buffer_kinds())
        .then(|| kind.c_name())
        .flatten();
    answer(known.map(|n| suffix(n, BUFFER)), name, name_len)
}

/// `rocprofiler_query_callback_tracing_kind_name`.
///
/// # Safety
/// Pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_callback_tracing_kind_name(
    kind: CallbackKind,
    name: *mut *const c_char,
    name_len: *mut u64,
) -> Status {
    let known = (kind.0 < version::current().callback_kinds())
        .then(|| kind.c_name())
        .flatten();
    answer(known.map(|n| suffix(n, CALLBACK)), name, name_len)
}

/// `rocprofiler_query_buffer_tracing_kind_operation_name`.
///
/// # Safety
/// Pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_buffer_tracing_kind_operation_name(
    kind: BufferKind,
    operation: i32,
    name: *mut *const c_char,
    name_len: *mut u64,
) -> Status {
    match kind {
        BufferKind::NONE => Status::ERROR_INVALID_ARGUMENT,
        _ if kind.0 >= version::current().buffer_kinds() => Status::ERROR_KIND_NOT_FOUND,
        _ => self::operation(buffer_operations(kind), operation, name, name_len),
    }
}

/// `rocprofiler_query_callback_tracing_kind_operation_name`.
///
/// # Safety
/// Pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_callback_tracing_kind_operation_name(
    kind: CallbackKind,
    operation: i32,
    name: *mut *const c_char,
    name_len: *mut u64,
) -> Status {
    match kind {
        CallbackKind::NONE => Status::ERROR_INVALID_ARGUMENT,
        _ if kind.0 >= version::current().callback_kinds() => Status::ERROR_KIND_NOT_FOUND,
        _ => self::operation(callback_operations(kind), operation, name, name_len),
    }
}

/// `rocprofiler_iterate_buffer_tracing_kinds`.
///
/// # Safety
/// The callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_buffer_tracing_kinds(
    callback: BufferKindFn,
    data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    // SAFETY: the caller gave the function for this.
    let call = |k| unsafe { callback(BufferKind(k), data) };
    let _ = (0..version::current().buffer_kinds()).try_for_each(|k| stop(call(k)));
    Status::SUCCESS
}

/// `rocprofiler_iterate_callback_tracing_kinds`.
///
/// # Safety
/// The callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_callback_tracing_kinds(
    callback: CallbackKindFn,
    data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    // SAFETY: the caller gave the function for this.
    let call = |k| unsafe { callback(CallbackKind(k), data) };
    let _ = (0..version::current().callback_kinds()).try_for_each(|k| stop(call(k)));
    Status::SUCCESS
}

fn stop(result: c_int) -> Result<(), ()> {
    if result == 0 { Ok(()) } else { Err(()) }
}

/// `rocprofiler_iterate_buffer_tracing_kind_operations`.
///
/// # Safety
/// The callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_buffer_tracing_kind_operations(
    kind: BufferKind,
    callback: BufferOperationFn,
    data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if kind.0 == 0 || kind.0 >= version::current().buffer_kinds() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    let Some(operations) = buffer_operations(kind) else {
        return Status::ERROR_NOT_IMPLEMENTED;
    };
    // SAFETY: the caller gave the function for this.
    let call = |op| unsafe { callback(kind, op, data) };
    let _ = (0..operations.names.len() as i32).try_for_each(|op| stop(call(op)));
    Status::SUCCESS
}

/// `rocprofiler_iterate_callback_tracing_kind_operations`.
///
/// # Safety
/// The callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_callback_tracing_kind_operations(
    kind: CallbackKind,
    callback: CallbackOperationFn,
    data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if kind.0 == 0 || kind.0 >= version::current().callback_kinds() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    let Some(operations) = callback_operations(kind) else {
        return Status::ERROR_NOT_IMPLEMENTED;
    };
    // SAFETY: the caller gave the function for this.
    let call = |op| unsafe { callback(kind, op, data) };
    let _ = (0..operations.names.len() as i32).try_for_each(|op| stop(call(op)));
    Status::SUCCESS
}

/// `rocprofiler_query_intercept_table_name`.
///
/// # Safety
/// Pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_intercept_table_name(
    kind: InterceptTable,
    name: *mut *const c_char,
    name_len: *mut u64,
) -> Status {
    let text = match kind {
        InterceptTable::HSA_TABLE => c"HSA",
        InterceptTable::HIP_RUNTIME_TABLE => c"HIP (runtime)",
        InterceptTable::HIP_COMPILER_TABLE => c"HIP (compiler)",
        InterceptTable::MARKER_CORE_TABLE => c"MARKER (ROCTx)",
        InterceptTable::MARKER_CONTROL_TABLE => c"MARKER (ROCTx Control)",
        InterceptTable::MARKER_NAME_TABLE => c"MARKER (ROCTx Name)",
        InterceptTable::RCCL_TABLE => c"RCCL",
        InterceptTable::ROCDECODE_TABLE => c"rocDecode",
        InterceptTable::ROCJPEG_TABLE => c"rocJPEG",
        _ => return answer(None, name, name_len),
    };
    answer(Some(text), name, name_len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::table::count as table;

    #[test]
    fn tracing_kinds_have_the_operations_of_the_tables() {
        let count = |k| buffer_operations(k).map(|o| o.names.len());
        let hip = Some(table::HIP_RUNTIME_API);
        assert_eq!(count(BufferKind::HIP_RUNTIME_API), hip);
        assert_eq!(count(BufferKind::HIP_RUNTIME_API_EXT), hip);
        assert_eq!(count(BufferKind::HSA_CORE_API), Some(table::HSA_CORE_API));
        assert_eq!(count(BufferKind::MARKER_CORE_RANGE_API), Some(4));
        assert_eq!(count(BufferKind::CORRELATION_ID_RETIREMENT), None);
        assert_eq!(count(BufferKind::NONE), None);
        let code = callback_operations(CallbackKind::CODE_OBJECT).map(|o| o.names[1]);
        assert_eq!(code, Some(c"CODE_OBJECT_LOAD"));
    }

    /// sdk-newer-4 and sdk-newer-5
    #[test]
    fn newer_kinds_have_their_operations() {
        let names = |kind| {
            let operations = callback_operations(kind).expect("operations").names;
            let texts = operations.iter().map(|name| name.to_string_lossy());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(
            names(CallbackKind::HIP_GRAPH),
            [
                "HIP_GRAPH_OPERATION_NONE",
                "HIP_GRAPH_OPERATION_EXEC_CREATE",
                "HIP_GRAPH_OPERATION_EXEC_DESTROY",
                "HIP_GRAPH_OPERATION_EXEC_LAUNCH",
            ]
        );
        assert_eq!(
            names(CallbackKind::HIP_EVENT),
            ["HIP_EVENT_NONE", "HIP_EVENT_RECORD", "HIP_EVENT_WAIT"]
        );
        assert_eq!(
            names(CallbackKind::KERNEL_REPLAY),
            [
                "KERNEL_REPLAY_NONE",
                "KERNEL_REPLAY_CONFIG",
                "KERNEL_REPLAY_PASS"
            ]
        );
    }

    #[test]
    fn name_queries_answer_as_the_reference_says() {
        let (mut name, mut length) = (ptr::null(), 0u64);
        // SAFETY: the places are writable.
        unsafe {
            let status =
                rocprofiler_query_buffer_tracing_kind_name(BufferKind(11), &mut name, &mut length);
            assert_eq!(status, Status::SUCCESS);
            assert_eq!(CStr::from_ptr(name), c"KERNEL_DISPATCH");
            assert_eq!(length, 15);
            let query = rocprofiler_query_buffer_tracing_kind_operation_name;
            assert_eq!(
                query(BufferKind(13), 0, &mut name, &mut length),
                Status::ERROR_NOT_IMPLEMENTED
            );
            assert_eq!(
                query(BufferKind(0), 0, &mut name, &mut length),
                Status::ERROR_INVALID_ARGUMENT
            );
            assert_eq!(
                query(
                    BufferKind(5),
                    table::HIP_RUNTIME_API as i32,
                    &mut name,
                    &mut length
                ),
                Status::ERROR_OPERATION_NOT_FOUND
            );
            assert_eq!(
                query(BufferKind(99), 0, &mut name, &mut length),
                Status::ERROR_KIND_NOT_FOUND
            );
            assert_eq!(
                query(BufferKind(5), 0, &mut name, &mut length),
                Status::SUCCESS
            );
            assert_eq!(CStr::from_ptr(name), c"hipApiName");
        }
    }
}
