//! Services that this provider lacks. Their functions are exported, because tools link to them by name, and return the
//! status for that.

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_id_t as BufferId, rocprofiler_context_id_t as ContextId,
    rocprofiler_counter_config_id_t as ConfigId, rocprofiler_status_t as Status,
};

/// Defines exported functions that return one status.
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

answers! { ERROR_NOT_IMPLEMENTED:
    fn rocprofiler_configure_spm_service(ContextId, BufferId, ConfigId, u64);
}
