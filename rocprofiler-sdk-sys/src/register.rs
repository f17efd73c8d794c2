//! The registration library between the runtimes and the SDK, and the entry point it calls.

use core::ffi::{c_char, c_int, c_void};

use crate::ids::rocprofiler_version_triplet_t;
use crate::macros::{c_enum, c_handle, c_struct};

c_enum! {
    /// Result of a function of the registration library. From 8 on the values differ between its versions.
    rocprofiler_register_error_code_t: u32 {
        /// The table went to the SDK.
        SUCCESS = 0 => c"ROCP_REG_SUCCESS",
        /// No tool takes the table.
        NO_TOOLS = 1 => c"ROCP_REG_NO_TOOLS",
        /// Nested or concurrent registration.
        DEADLOCK = 2 => c"ROCP_REG_DEADLOCK",
        /// No tables were given.
        BAD_API_TABLE_LENGTH = 3 => c"ROCP_REG_BAD_API_TABLE_LENGTH",
        /// Unknown runtime name.
        UNSUPPORTED_API = 4 => c"ROCP_REG_UNSUPPORTED_API",
        /// The import function is not at the address that the runtime gave.
        INVALID_API_ADDRESS = 5 => c"ROCP_REG_INVALID_API_ADDRESS",
        /// The SDK refused.
        ROCPROFILER_ERROR = 6 => c"ROCP_REG_ROCPROFILER_ERROR",
        /// More than eight registrations of one runtime.
        EXCESS_API_INSTANCES = 7 => c"ROCP_REG_EXCESS_API_INSTANCES",
    }
}

c_handle! {
    /// A registration: eight times the index of the runtime plus the instance.
    rocprofiler_register_library_indentifier_t
}

c_struct! {
    /// One registration, as the iteration reports it.
    struct rocprofiler_register_registration_info_t {
        /// Size of this struct in bytes.
        pub size: usize,
        /// Name under which the runtime registered, such as `hip` or `hsa`.
        pub common_name: *const c_char,
        /// Version of the runtime, `10000*major + 100*minor + patch`.
        pub lib_version: u32,
        /// Number of dispatch tables that the runtime handed over.
        pub api_table_length: u64,
    }
}

/// Function that every runtime exports for its registration; returns its version.
pub type rocprofiler_register_import_func_t = Option<unsafe extern "C" fn() -> u32>;

/// Receives one registration; a result other than 0 ends the iteration.
pub type rocprofiler_register_registration_info_cb_t = Option<
    unsafe extern "C" fn(
        info: *mut rocprofiler_register_registration_info_t,
        data: *mut c_void,
    ) -> c_int,
>;

/// Type of `rocprofiler_register_library_api_table`, by which a runtime hands over its tables.
pub type rocprofiler_register_library_api_table_fn =
    unsafe extern "C" fn(
        common_name: *const c_char,
        import_func: rocprofiler_register_import_func_t,
        lib_version: u32,
        api_tables: *mut *mut c_void,
        api_table_length: u64,
        register_id: *mut rocprofiler_register_library_indentifier_t,
    ) -> rocprofiler_register_error_code_t;

/// Type of `rocprofiler_register_error_string`, which returns static text.
pub type rocprofiler_register_error_string_fn =
    unsafe extern "C" fn(code: rocprofiler_register_error_code_t) -> *const c_char;

/// Type of `rocprofiler_register_iterate_registration_info`, which calls back for every registration made so far.
pub type rocprofiler_register_iterate_registration_info_fn =
    unsafe extern "C" fn(
        callback: rocprofiler_register_registration_info_cb_t,
        data: *mut c_void,
    ) -> rocprofiler_register_error_code_t;

/// Type of `rocprofiler_register_invoke_nonpropagated_registrations` and
/// `rocprofiler_register_invoke_all_registrations`.
pub type rocprofiler_register_invoke_registrations_fn =
    unsafe extern "C" fn() -> rocprofiler_register_error_code_t;

/// Type of `rocprofiler_set_api_table`, the entry of the SDK that the registration library calls. The result is 0, or 19
/// for an unknown name.
pub type rocprofiler_set_api_table_fn = unsafe extern "C" fn(
    name: *const c_char,
    lib_version: u64,
    lib_instance: u64,
    tables: *mut *mut c_void,
    num_tables: u64,
) -> c_int;

impl rocprofiler_version_triplet_t {
    /// The version that a single number stands for (`10000*major + 100*minor + patch`).
    pub const fn from_number(version: u64) -> Self {
        Self {
            major: (version / 10_000) as u32,
            minor: (version / 100 % 100) as u32,
            patch: (version % 100) as u32,
        }
    }

    /// `10000*major + 100*minor + patch`.
    pub const fn to_number(self) -> u64 {
        self.major as u64 * 10_000 + self.minor as u64 * 100 + self.patch as u64
    }
}
