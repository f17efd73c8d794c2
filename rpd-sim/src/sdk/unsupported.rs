//! Services this provider does not have. They are exported, because tools link to them by name, and return
//! with the status for it.

use core::{
    ffi::{c_char, c_void},
    ptr,
};

use rocprofiler_sdk_sys::{
    rocprofiler_agent_id_t as AgentId, rocprofiler_buffer_id_t as BufferId,
    rocprofiler_context_id_t as ContextId, rocprofiler_counter_config_id_t as ConfigId,
    rocprofiler_status_t as Status, rocprofiler_thread_trace_decoder_callback_t,
    rocprofiler_thread_trace_decoder_id_t as DecoderId, rocprofiler_thread_trace_decoder_info_t,
    rocprofiler_thread_trace_dispatch_callback_t, rocprofiler_thread_trace_parameter_t,
    rocprofiler_thread_trace_shader_data_callback_t, rocprofiler_user_data_t as UserData,
};

/// Exported functions that return one status.
macro_rules! answers {
    ($status:ident: $(fn $name:ident($($t:ty),* $(,)?);)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`: answers `", stringify!($status), "`.")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($(_: $t),*) -> Status {
                Status::$status
            }
        )*
    };
}

answers! { ERROR_NOT_AVAILABLE:
    fn rocprofiler_thread_trace_decoder_create(*mut DecoderId, *const c_char);
}

answers! { ERROR_NOT_IMPLEMENTED:
    fn rocprofiler_configure_spm_service(ContextId, BufferId, ConfigId, u64);
    fn rocprofiler_configure_dispatch_thread_trace_service(
        ContextId,
        AgentId,
        *mut rocprofiler_thread_trace_parameter_t,
        usize,
        rocprofiler_thread_trace_dispatch_callback_t,
        rocprofiler_thread_trace_shader_data_callback_t,
        *mut c_void,
    );
    fn rocprofiler_configure_device_thread_trace_service(
        ContextId,
        AgentId,
        *mut rocprofiler_thread_trace_parameter_t,
        usize,
        rocprofiler_thread_trace_shader_data_callback_t,
        UserData,
    );
}

answers! { ERROR_INVALID_ARGUMENT:
    fn rocprofiler_thread_trace_decoder_codeobj_load(DecoderId, u64, u64, u64, *const c_void, u64);
    fn rocprofiler_thread_trace_decoder_codeobj_unload(DecoderId, u64);
    fn rocprofiler_trace_decode(
        DecoderId,
        rocprofiler_thread_trace_decoder_callback_t,
        *mut c_void,
        u64,
        *mut c_void,
    );
}

/// `rocprofiler_thread_trace_decoder_destroy`: no decoder was ever made.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_thread_trace_decoder_destroy(_handle: DecoderId) {}

/// `rocprofiler_thread_trace_decoder_info_string`: no decoder, no text.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_thread_trace_decoder_info_string(
    _handle: DecoderId,
    _info: rocprofiler_thread_trace_decoder_info_t,
) -> *const c_char {
    ptr::null()
}
