//! Registration of tools with the SDK, and the functions with which the SDK initialises and finalises them.

use core::ffi::{c_char, c_int, c_void};

use crate::ids::rocprofiler_context_id_t;
use crate::macros::c_struct;
use crate::operations::rocprofiler_runtime_library_t;

/// Highest SDK version these declarations describe, as `rocprofiler_configure` receives it
/// (`10000*major + 100*minor + patch`).
pub const ROCPROFILER_VERSION: u32 = 10_000;

c_struct! {
    /// Result of `rocprofiler_configure`; the SDK copies it.
    struct rocprofiler_tool_configure_result_t {
        /// Size of this struct in bytes; the SDK insists on it.
        pub size: usize,
        /// Function that is called once after all tools were configured.
        pub initialize: rocprofiler_tool_initialize_t,
        /// Function that is called once at the end.
        pub finalize: rocprofiler_tool_finalize_t,
        /// Pointer that both functions get.
        pub tool_data: *mut c_void,
    }
}

c_struct! {
    /// The SDK's description of a tool.
    struct rocprofiler_client_id_t {
        /// Size of this struct in bytes, set by the SDK.
        pub size: usize,
        /// Name of the tool, written by the tool; must stay valid.
        pub name: *const c_char,
        /// Number of the tool, set by the SDK. Unlike other handles only 32 bits wide.
        pub handle: u32,
    }
}

c_struct! {
    /// Result of `rocprofiler_configure_attach`, by which a tool is told when something attaches to its process and
    /// detaches from it.
    struct rocprofiler_tool_configure_attach_result_t {
        /// Size of this struct in bytes.
        pub size: usize,
        /// Function that is called when the tool is to record.
        pub tool_attach: rocprofiler_tool_attach_t,
        /// Function that is called when it is to stop.
        pub tool_detach: rocprofiler_tool_detach_t,
        /// Pointer that both functions get.
        pub tool_data: *mut c_void,
    }
}

/// Has a tool record: a function by which it detaches itself (null in these versions), its contexts, their number, its data.
pub type rocprofiler_tool_attach_t = Option<
    unsafe extern "C" fn(
        detach: *const c_void,
        contexts: *const rocprofiler_context_id_t,
        count: u64,
        tool_data: *mut c_void,
    ),
>;

/// Has a tool stop; its contexts are stopped before and after.
pub type rocprofiler_tool_detach_t = Option<unsafe extern "C" fn(tool_data: *mut c_void)>;

/// Second entry point of a tool (`rocprofiler_configure_attach`), called right after the first and with its arguments. A null
/// result says that the tool is not to be told.
pub type rocprofiler_configure_attach_func_t = Option<
    unsafe extern "C" fn(
        version: u32,
        runtime_version: *const c_char,
        priority: u32,
        client_id: *mut rocprofiler_client_id_t,
    ) -> *mut rocprofiler_tool_configure_attach_result_t,
>;

/// Entry point of a tool (`rocprofiler_configure`): SDK version, its text, position of the tool in the list,
/// and the tool's id. A null result declines.
pub type rocprofiler_configure_func_t = Option<
    unsafe extern "C" fn(
        version: u32,
        runtime_version: *const c_char,
        priority: u32,
        client_id: *mut rocprofiler_client_id_t,
    ) -> *mut rocprofiler_tool_configure_result_t,
>;

/// Function a tool may call later to have itself finalised early.
pub type rocprofiler_client_finalize_t =
    Option<unsafe extern "C" fn(client_id: rocprofiler_client_id_t)>;

/// Begins a tool: this is where contexts are created and services configured. SDK 1.0 ignores the result.
pub type rocprofiler_tool_initialize_t = Option<
    unsafe extern "C" fn(finalize: rocprofiler_client_finalize_t, tool_data: *mut c_void) -> c_int,
>;

/// Ends a tool; runs once, on the finalising thread.
pub type rocprofiler_tool_finalize_t = Option<unsafe extern "C" fn(tool_data: *mut c_void)>;

/// Called before and after the SDK creates a thread, on the creating thread.
pub type rocprofiler_internal_thread_library_cb_t =
    Option<unsafe extern "C" fn(library: rocprofiler_runtime_library_t, data: *mut c_void)>;
