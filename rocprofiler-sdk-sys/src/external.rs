//! External correlation ids, which tools attach to calls.

use core::ffi::{c_int, c_void};

use crate::ids::{
    rocprofiler_context_id_t, rocprofiler_thread_id_t, rocprofiler_tracing_operation_t,
    rocprofiler_user_data_t,
};
use crate::kinds::rocprofiler_external_correlation_id_request_kind_t;

/// Supplies an external correlation id; 0 when it set the value.
pub type rocprofiler_external_correlation_id_request_cb_t = Option<
    unsafe extern "C" fn(
        thread: rocprofiler_thread_id_t,
        context: rocprofiler_context_id_t,
        kind: rocprofiler_external_correlation_id_request_kind_t,
        operation: rocprofiler_tracing_operation_t,
        internal_correlation_id: u64,
        external_correlation_id: *mut rocprofiler_user_data_t,
        data: *mut c_void,
    ) -> c_int,
>;
