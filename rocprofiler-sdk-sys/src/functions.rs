//! The functions of the SDK: their types, and a table of them filled at run time.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::agent::{rocprofiler_agent_version_t, rocprofiler_query_available_agents_cb_t};
use crate::buffer::{
    rocprofiler_buffer_policy_t, rocprofiler_buffer_tracing_cb_t,
    rocprofiler_buffer_tracing_kind_cb_t, rocprofiler_buffer_tracing_kind_operation_cb_t,
    rocprofiler_buffer_tracing_operation_args_cb_t, rocprofiler_record_header_t,
};
use crate::callback::{
    rocprofiler_callback_tracing_cb_t, rocprofiler_callback_tracing_kind_cb_t,
    rocprofiler_callback_tracing_kind_operation_cb_t,
    rocprofiler_callback_tracing_operation_args_cb_t, rocprofiler_callback_tracing_record_t,
};
use crate::counters::{
    rocprofiler_available_counters_cb_t, rocprofiler_available_dimensions_cb_t,
    rocprofiler_counter_flag_t, rocprofiler_counter_info_version_id_t,
    rocprofiler_counter_record_t, rocprofiler_device_counting_service_cb_t,
    rocprofiler_dispatch_counting_record_cb_t, rocprofiler_dispatch_counting_service_cb_t,
};
use crate::external::rocprofiler_external_correlation_id_request_cb_t;
use crate::ids::{
    rocprofiler_agent_id_t, rocprofiler_buffer_id_t, rocprofiler_callback_thread_t,
    rocprofiler_context_id_t, rocprofiler_counter_config_id_t, rocprofiler_counter_dimension_id_t,
    rocprofiler_counter_id_t, rocprofiler_counter_instance_id_t, rocprofiler_thread_id_t,
    rocprofiler_thread_trace_decoder_id_t, rocprofiler_timestamp_t,
    rocprofiler_tracing_operation_t, rocprofiler_user_data_t, rocprofiler_version_triplet_t,
};
use crate::intercept::{rocprofiler_intercept_library_cb_t, rocprofiler_intercept_table_t};
use crate::kinds::{
    rocprofiler_buffer_tracing_kind_t, rocprofiler_callback_tracing_kind_t,
    rocprofiler_external_correlation_id_request_kind_t,
};
use crate::lifecycle::{rocprofiler_configure_func_t, rocprofiler_internal_thread_library_cb_t};
use crate::pc_sampling::{
    rocprofiler_available_pc_sampling_configurations_cb_t,
    rocprofiler_pc_sampling_instruction_not_issued_reason_t,
    rocprofiler_pc_sampling_instruction_type_t, rocprofiler_pc_sampling_method_t,
    rocprofiler_pc_sampling_unit_t,
};
use crate::status::rocprofiler_status_t;
use crate::thread_trace::{
    rocprofiler_thread_trace_decoder_callback_t, rocprofiler_thread_trace_decoder_info_t,
    rocprofiler_thread_trace_dispatch_callback_t, rocprofiler_thread_trace_parameter_t,
    rocprofiler_thread_trace_shader_data_callback_t,
};

macro_rules! functions {
    (
        required { $( $(#[$rmeta:meta])* $rname:ident $rtype:ident = $rsym:literal: fn($($rargs:tt)*) $(-> $rret:ty)?; )* }
        optional { $( $(#[$ometa:meta])* $oname:ident $otype:ident = $osym:literal: fn($($oargs:tt)*) $(-> $oret:ty)?; )* }
    ) => {
        $(
            #[doc = concat!("Type of `", stringify!($rname), "`.")]
            pub type $rtype = unsafe extern "C" fn($($rargs)*) $(-> $rret)?;
        )*
        $(
            #[doc = concat!("Type of `", stringify!($oname), "`.")]
            pub type $otype = unsafe extern "C" fn($($oargs)*) $(-> $oret)?;
        )*

        /// The functions of a loaded SDK. What tracing cannot do without is required, the rest is optional.
        ///
        /// All functions are thread safe unless the text says otherwise, and report success as
        /// [`rocprofiler_status_t::SUCCESS`]. Pointers passed in must be valid for the call.
        #[derive(Clone, Copy, Debug)]
        pub struct Functions {
            $( $(#[$rmeta])* pub $rname: $rtype, )*
            $( $(#[$ometa])* pub $oname: Option<$otype>, )*
        }

        impl Functions {
            /// Names of the functions that [`Functions::load`] insists on.
            pub const REQUIRED: &'static [&'static CStr] = &[ $( $rsym, )* ];
            /// Names of the functions that may be absent.
            pub const OPTIONAL: &'static [&'static CStr] = &[ $( $osym, )* ];

            /// Fills the table by asking `lookup` for every name; null means absent.
            ///
            /// # Errors
            ///
            /// The first required function that is absent.
            ///
            /// # Safety
            ///
            /// A pointer that `lookup` returns must be the function of that name of rocprofiler-sdk 1.x (or of a
            /// library with the same ABI), and must stay callable for as long as the table is used.
            pub unsafe fn load(
                mut lookup: impl FnMut(&CStr) -> *mut c_void,
            ) -> Result<Self, MissingSymbol> {
                Ok(Self {
                    $(
                        $rname: {
                            let address = lookup($rsym);
                            if address.is_null() {
                                return Err(MissingSymbol($rsym));
                            }
                            // SAFETY: not null, and by the contract of this function it is the function
                            // of that name, whose type this is.
                            unsafe { core::mem::transmute::<*mut c_void, $rtype>(address) }
                        },
                    )*
                    $(
                        $oname: {
                            let address = lookup($osym);
                            // SAFETY: a null pointer becomes `None`; any other is, by the contract of
                            // this function, the function of that name, whose type this is.
                            unsafe { core::mem::transmute::<*mut c_void, Option<$otype>>(address) }
                        },
                    )*
                })
            }
        }
    };
}

/// A function that the loaded library does not have although it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSymbol(pub &'static CStr);

impl core::fmt::Display for MissingSymbol {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "the library has no function `{}`",
            self.0.to_str().unwrap_or("?")
        )
    }
}

impl core::error::Error for MissingSymbol {}

functions! {
    required {
        /// Run-time library version as three numbers; each pointer may be null.
        rocprofiler_get_version rocprofiler_get_version_fn = c"rocprofiler_get_version": fn(major: *mut u32, minor: *mut u32, patch: *mut u32) -> rocprofiler_status_t;
        /// Enumerator name of a status, null when unknown.
        rocprofiler_get_status_name rocprofiler_get_status_name_fn = c"rocprofiler_get_status_name": fn(status: rocprofiler_status_t) -> *const c_char;
        /// Human text of a status, null when unknown.
        rocprofiler_get_status_string rocprofiler_get_status_string_fn = c"rocprofiler_get_status_string": fn(status: rocprofiler_status_t) -> *const c_char;
        /// Current time on the clock used in all records (boot-time clock, ns).
        rocprofiler_get_timestamp rocprofiler_get_timestamp_fn = c"rocprofiler_get_timestamp": fn(ts: *mut rocprofiler_timestamp_t) -> rocprofiler_status_t;
        /// 0 not yet, -1 in progress, 1 done.
        rocprofiler_is_initialized rocprofiler_is_initialized_fn = c"rocprofiler_is_initialized": fn(status: *mut c_int) -> rocprofiler_status_t;
        /// Creates a context. The out value must hold handle 0 on entry.
        rocprofiler_create_context rocprofiler_create_context_fn = c"rocprofiler_create_context": fn(context_id: *mut rocprofiler_context_id_t) -> rocprofiler_status_t;
        /// Activates. Already active: success without effect.
        rocprofiler_start_context rocprofiler_start_context_fn = c"rocprofiler_start_context": fn(context_id: rocprofiler_context_id_t) -> rocprofiler_status_t;
        /// Deactivates. Work in flight that captured the context at its start may still be delivered.
        rocprofiler_stop_context rocprofiler_stop_context_fn = c"rocprofiler_stop_context": fn(context_id: rocprofiler_context_id_t) -> rocprofiler_status_t;
        /// Creates a buffer of `size` bytes. `watermark` is a byte count at which a flush is started (0: flush on every record). `policy`: LOSSLESS keeps two storage areas and makes the writer wait for a forced flush; DISCARD drops and counts. Out handle must name no existing buffer.
        rocprofiler_create_buffer rocprofiler_create_buffer_fn = c"rocprofiler_create_buffer": fn(context: rocprofiler_context_id_t, size: usize, watermark: usize, policy: rocprofiler_buffer_policy_t, callback: rocprofiler_buffer_tracing_cb_t, callback_data: *mut c_void, buffer_id: *mut rocprofiler_buffer_id_t) -> rocprofiler_status_t;
        /// Runs the callback for what is stored and returns after it finished; PC samples are fetched from the driver first.
        rocprofiler_flush_buffer rocprofiler_flush_buffer_fn = c"rocprofiler_flush_buffer": fn(buffer_id: rocprofiler_buffer_id_t) -> rocprofiler_status_t;
        /// Routes records of one kind into a buffer. `operations` null with count 0 means all; only one configuration per kind and context.
        rocprofiler_configure_buffer_tracing_service rocprofiler_configure_buffer_tracing_service_fn = c"rocprofiler_configure_buffer_tracing_service": fn(context_id: rocprofiler_context_id_t, kind: rocprofiler_buffer_tracing_kind_t, operations: *const rocprofiler_tracing_operation_t, operations_count: usize, buffer_id: rocprofiler_buffer_id_t) -> rocprofiler_status_t;
        /// Name of a kind = enumerator without the prefix `ROCPROFILER_BUFFER_TRACING_`; length may be null.
        rocprofiler_query_buffer_tracing_kind_name rocprofiler_query_buffer_tracing_kind_name_fn = c"rocprofiler_query_buffer_tracing_kind_name": fn(kind: rocprofiler_buffer_tracing_kind_t, name: *mut *const c_char, name_len: *mut u64) -> rocprofiler_status_t;
        /// Name of an operation, as the operation tables list them.
        rocprofiler_query_buffer_tracing_kind_operation_name rocprofiler_query_buffer_tracing_kind_operation_name_fn = c"rocprofiler_query_buffer_tracing_kind_operation_name": fn(kind: rocprofiler_buffer_tracing_kind_t, operation: rocprofiler_tracing_operation_t, name: *mut *const c_char, name_len: *mut u64) -> rocprofiler_status_t;
        /// Calls back for every kind, beginning with NONE (0). A non-zero callback result stops; the function still reports success.
        rocprofiler_iterate_buffer_tracing_kinds rocprofiler_iterate_buffer_tracing_kinds_fn = c"rocprofiler_iterate_buffer_tracing_kinds": fn(callback: rocprofiler_buffer_tracing_kind_cb_t, data: *mut c_void) -> rocprofiler_status_t;
        /// Calls back for every operation id of a kind (kinds whose NONE is 0 include it).
        rocprofiler_iterate_buffer_tracing_kind_operations rocprofiler_iterate_buffer_tracing_kind_operations_fn = c"rocprofiler_iterate_buffer_tracing_kind_operations": fn(kind: rocprofiler_buffer_tracing_kind_t, callback: rocprofiler_buffer_tracing_kind_operation_cb_t, data: *mut c_void) -> rocprofiler_status_t;
        /// Calls `callback` on enter/exit (or load/unload, or once) for one kind; rules as for the buffer variant.
        rocprofiler_configure_callback_tracing_service rocprofiler_configure_callback_tracing_service_fn = c"rocprofiler_configure_callback_tracing_service": fn(context_id: rocprofiler_context_id_t, kind: rocprofiler_callback_tracing_kind_t, operations: *const rocprofiler_tracing_operation_t, operations_count: usize, callback: rocprofiler_callback_tracing_cb_t, callback_args: *mut c_void) -> rocprofiler_status_t;
        /// Name of a kind = enumerator without prefix.
        rocprofiler_query_callback_tracing_kind_name rocprofiler_query_callback_tracing_kind_name_fn = c"rocprofiler_query_callback_tracing_kind_name": fn(kind: rocprofiler_callback_tracing_kind_t, name: *mut *const c_char, name_len: *mut u64) -> rocprofiler_status_t;
        /// Name of an operation.
        rocprofiler_query_callback_tracing_kind_operation_name rocprofiler_query_callback_tracing_kind_operation_name_fn = c"rocprofiler_query_callback_tracing_kind_operation_name": fn(kind: rocprofiler_callback_tracing_kind_t, operation: rocprofiler_tracing_operation_t, name: *mut *const c_char, name_len: *mut u64) -> rocprofiler_status_t;
        /// As for buffers.
        rocprofiler_iterate_callback_tracing_kinds rocprofiler_iterate_callback_tracing_kinds_fn = c"rocprofiler_iterate_callback_tracing_kinds": fn(callback: rocprofiler_callback_tracing_kind_cb_t, data: *mut c_void) -> rocprofiler_status_t;
        /// As for buffers.
        rocprofiler_iterate_callback_tracing_kind_operations rocprofiler_iterate_callback_tracing_kind_operations_fn = c"rocprofiler_iterate_callback_tracing_kind_operations": fn(kind: rocprofiler_callback_tracing_kind_t, callback: rocprofiler_callback_tracing_kind_operation_cb_t, data: *mut c_void) -> rocprofiler_status_t;
        /// One callback with an array of pointers to agent structs. `version` must be 1 (`ROCPROFILER_AGENT_INFO_VERSION_0`), `agent_size` the size the caller compiled.
        rocprofiler_query_available_agents rocprofiler_query_available_agents_fn = c"rocprofiler_query_available_agents": fn(version: rocprofiler_agent_version_t, callback: rocprofiler_query_available_agents_cb_t, agent_size: usize, user_data: *mut c_void) -> rocprofiler_status_t;
    }
    optional {
        /// Same in one struct. Not in 0.6.
        rocprofiler_get_version_triplet rocprofiler_get_version_triplet_fn = c"rocprofiler_get_version_triplet": fn(info: *mut rocprofiler_version_triplet_t) -> rocprofiler_status_t;
        /// Kernel thread id as used in records.
        rocprofiler_get_thread_id rocprofiler_get_thread_id_fn = c"rocprofiler_get_thread_id": fn(tid: *mut rocprofiler_thread_id_t) -> rocprofiler_status_t;
        /// 0 not yet, -1 in progress, 1 done.
        rocprofiler_is_finalized rocprofiler_is_finalized_fn = c"rocprofiler_is_finalized": fn(status: *mut c_int) -> rocprofiler_status_t;
        /// Initialise now with the given entry point.
        rocprofiler_force_configure rocprofiler_force_configure_fn = c"rocprofiler_force_configure": fn(configure_func: rocprofiler_configure_func_t) -> rocprofiler_status_t;
        /// Writes 1 or 0.
        rocprofiler_context_is_active rocprofiler_context_is_active_fn = c"rocprofiler_context_is_active": fn(context_id: rocprofiler_context_id_t, status: *mut c_int) -> rocprofiler_status_t;
        /// Writes 1 when the context is fully configured. (The header text states the opposite polarity; code writes 1 for valid.).
        rocprofiler_context_is_valid rocprofiler_context_is_valid_fn = c"rocprofiler_context_is_valid": fn(context_id: rocprofiler_context_id_t, status: *mut c_int) -> rocprofiler_status_t;
        /// Frees a buffer.
        rocprofiler_destroy_buffer rocprofiler_destroy_buffer_fn = c"rocprofiler_destroy_buffer": fn(buffer_id: rocprofiler_buffer_id_t) -> rocprofiler_status_t;
        /// Creates another callback thread; handle is 1 or more.
        rocprofiler_create_callback_thread rocprofiler_create_callback_thread_fn = c"rocprofiler_create_callback_thread": fn(cb_thread_id: *mut rocprofiler_callback_thread_t) -> rocprofiler_status_t;
        /// Binds a buffer to a callback thread.
        rocprofiler_assign_callback_thread rocprofiler_assign_callback_thread_fn = c"rocprofiler_assign_callback_thread": fn(buffer_id: rocprofiler_buffer_id_t, cb_thread_id: rocprofiler_callback_thread_t) -> rocprofiler_status_t;
        /// Registers notifications before and after the SDK creates a thread. `libs` is a bit mask of runtime libraries, 0 means all.
        rocprofiler_at_internal_thread_create rocprofiler_at_internal_thread_create_fn = c"rocprofiler_at_internal_thread_create": fn(precreate: rocprofiler_internal_thread_library_cb_t, postcreate: rocprofiler_internal_thread_library_cb_t, libs: c_int, data: *mut c_void) -> rocprofiler_status_t;
        /// Formats the arguments of an extended record, one callback per argument. Header passed by value. Works for HIP_RUNTIME_API_EXT, HIP_COMPILER_API_EXT, ROCDECODE_API_EXT.
        rocprofiler_iterate_buffer_tracing_record_args rocprofiler_iterate_buffer_tracing_record_args_fn = c"rocprofiler_iterate_buffer_tracing_record_args": fn(record: rocprofiler_record_header_t, callback: rocprofiler_buffer_tracing_operation_args_cb_t, user_data: *mut c_void) -> rocprofiler_status_t;
        /// Formats arguments of a callback record; `max_dereference_count` limits how far pointers are followed. Works for the HSA, MARKER, HIP, OMPT, rocDecode kinds. For MARKER_CORE_RANGE it consults the MARKER_CORE table, so ids 1 to 3 are read with the wrong argument names: take the payload instead.
        rocprofiler_iterate_callback_tracing_kind_operation_args rocprofiler_iterate_callback_tracing_kind_operation_args_fn = c"rocprofiler_iterate_callback_tracing_kind_operation_args": fn(record: rocprofiler_callback_tracing_record_t, callback: rocprofiler_callback_tracing_operation_args_cb_t, max_dereference_count: i32, user_data: *mut c_void) -> rocprofiler_status_t;
        /// One callback with all counter ids of an agent.
        rocprofiler_iterate_agent_supported_counters rocprofiler_iterate_agent_supported_counters_fn = c"rocprofiler_iterate_agent_supported_counters": fn(agent_id: rocprofiler_agent_id_t, cb: rocprofiler_available_counters_cb_t, user_data: *mut c_void) -> rocprofiler_status_t;
        /// Fills a version 0 or version 1 struct chosen by `version`.
        rocprofiler_query_counter_info rocprofiler_query_counter_info_fn = c"rocprofiler_query_counter_info": fn(counter_id: rocprofiler_counter_id_t, version: rocprofiler_counter_info_version_id_t, info: *mut c_void) -> rocprofiler_status_t;
        /// One callback with the dimension array (name, extent, id).
        rocprofiler_iterate_counter_dimensions rocprofiler_iterate_counter_dimensions_fn = c"rocprofiler_iterate_counter_dimensions": fn(id: rocprofiler_counter_id_t, info_cb: rocprofiler_available_dimensions_cb_t, user_data: *mut c_void) -> rocprofiler_status_t;
        /// Number of values the counter yields per sample on an agent.
        rocprofiler_query_counter_instance_count rocprofiler_query_counter_instance_count_fn = c"rocprofiler_query_counter_instance_count": fn(agent_id: rocprofiler_agent_id_t, counter_id: rocprofiler_counter_id_t, instance_count: *mut usize) -> rocprofiler_status_t;
        /// Counter id out of an instance id.
        rocprofiler_query_record_counter_id rocprofiler_query_record_counter_id_fn = c"rocprofiler_query_record_counter_id": fn(id: rocprofiler_counter_instance_id_t, counter_id: *mut rocprofiler_counter_id_t) -> rocprofiler_status_t;
        /// Position along one dimension out of an instance id.
        rocprofiler_query_record_dimension_position rocprofiler_query_record_dimension_position_fn = c"rocprofiler_query_record_dimension_position": fn(id: rocprofiler_counter_instance_id_t, dim: rocprofiler_counter_dimension_id_t, pos: *mut usize) -> rocprofiler_status_t;
        /// Bundles counters for one agent. If `config_id` holds a non-zero handle its counters are merged into the new bundle.
        rocprofiler_create_counter_config rocprofiler_create_counter_config_fn = c"rocprofiler_create_counter_config": fn(agent_id: rocprofiler_agent_id_t, counters_list: *mut rocprofiler_counter_id_t, counters_count: usize, config_id: *mut rocprofiler_counter_config_id_t) -> rocprofiler_status_t;
        /// Frees a bundle; unknown handles are ignored.
        rocprofiler_destroy_counter_config rocprofiler_destroy_counter_config_fn = c"rocprofiler_destroy_counter_config": fn(config_id: rocprofiler_counter_config_id_t) -> rocprofiler_status_t;
        /// Supplies counter definitions as YAML text. Flag APPEND_DEFINITION adds to the built-in ones instead of replacing.
        rocprofiler_load_counter_definition rocprofiler_load_counter_definition_fn = c"rocprofiler_load_counter_definition": fn(yaml: *const c_char, size: usize, flags: rocprofiler_counter_flag_t) -> rocprofiler_status_t;
        /// Adds a derived counter from an expression.
        rocprofiler_create_counter rocprofiler_create_counter_fn = c"rocprofiler_create_counter": fn(name: *const c_char, name_len: usize, expr: *const c_char, expr_len: usize, description: *const c_char, description_len: usize, agent: rocprofiler_agent_id_t, counter_id: *mut rocprofiler_counter_id_t) -> rocprofiler_status_t;
        /// Per kernel dispatch: `dispatch_callback` picks a config, `record_callback` receives values.
        rocprofiler_configure_callback_dispatch_counting_service rocprofiler_configure_callback_dispatch_counting_service_fn = c"rocprofiler_configure_callback_dispatch_counting_service": fn(context_id: rocprofiler_context_id_t, dispatch_callback: rocprofiler_dispatch_counting_service_cb_t, dispatch_callback_args: *mut c_void, record_callback: rocprofiler_dispatch_counting_record_cb_t, record_callback_args: *mut c_void) -> rocprofiler_status_t;
        /// Same selection; values go to a buffer: one header record (kind 1) followed by value records (kind 2).
        rocprofiler_configure_buffer_dispatch_counting_service rocprofiler_configure_buffer_dispatch_counting_service_fn = c"rocprofiler_configure_buffer_dispatch_counting_service": fn(context_id: rocprofiler_context_id_t, buffer_id: rocprofiler_buffer_id_t, callback: rocprofiler_dispatch_counting_service_cb_t, callback_data_args: *mut c_void) -> rocprofiler_status_t;
        /// Whole-agent counting, sampled by hand. `cb` is invoked when the context starts and must set a config through the function it is given (its errors: 10, 30, 16, 36).
        rocprofiler_configure_device_counting_service rocprofiler_configure_device_counting_service_fn = c"rocprofiler_configure_device_counting_service": fn(context_id: rocprofiler_context_id_t, buffer_id: rocprofiler_buffer_id_t, agent_id: rocprofiler_agent_id_t, cb: rocprofiler_device_counting_service_cb_t, user_data: *mut c_void) -> rocprofiler_status_t;
        /// Takes one sample of a started device counting context. With `output_records` synchronous copy-out, in/out count; otherwise into the buffer.
        rocprofiler_sample_device_counting_service rocprofiler_sample_device_counting_service_fn = c"rocprofiler_sample_device_counting_service": fn(context_id: rocprofiler_context_id_t, user_data: rocprofiler_user_data_t, flags: rocprofiler_counter_flag_t, output_records: *mut rocprofiler_counter_record_t, rec_count: *mut usize) -> rocprofiler_status_t;
        /// Streaming performance monitor.
        rocprofiler_configure_spm_service rocprofiler_configure_spm_service_fn = c"rocprofiler_configure_spm_service": fn(context_id: rocprofiler_context_id_t, buffer_id: rocprofiler_buffer_id_t, counter_config: rocprofiler_counter_config_id_t, interval: u64) -> rocprofiler_status_t;
        /// Pushes a user value on the stack of (context, thread). Threads without a push of their own inherit the top of the main thread.
        rocprofiler_push_external_correlation_id rocprofiler_push_external_correlation_id_fn = c"rocprofiler_push_external_correlation_id": fn(context: rocprofiler_context_id_t, tid: rocprofiler_thread_id_t, external_correlation_id: rocprofiler_user_data_t) -> rocprofiler_status_t;
        /// Pops it; out value optional.
        rocprofiler_pop_external_correlation_id rocprofiler_pop_external_correlation_id_fn = c"rocprofiler_pop_external_correlation_id": fn(context: rocprofiler_context_id_t, tid: rocprofiler_thread_id_t, external_correlation_id: *mut rocprofiler_user_data_t) -> rocprofiler_status_t;
        /// Asks a callback for the value instead, per kind. `kinds` null means all.
        rocprofiler_configure_external_correlation_id_request_service rocprofiler_configure_external_correlation_id_request_service_fn = c"rocprofiler_configure_external_correlation_id_request_service": fn(context_id: rocprofiler_context_id_t, kinds: *const rocprofiler_external_correlation_id_request_kind_t, kinds_count: usize, callback: rocprofiler_external_correlation_id_request_cb_t, callback_args: *mut c_void) -> rocprofiler_status_t;
        /// Name of a request kind = enumerator without prefix.
        rocprofiler_query_external_correlation_id_request_kind_name rocprofiler_query_external_correlation_id_request_kind_name_fn = c"rocprofiler_query_external_correlation_id_request_kind_name": fn(kind: rocprofiler_external_correlation_id_request_kind_t, name: *mut *const c_char, name_len: *mut u64) -> rocprofiler_status_t;
        /// Callback whenever a table of the chosen kinds (bit mask) is registered.
        rocprofiler_at_intercept_table_registration rocprofiler_at_intercept_table_registration_fn = c"rocprofiler_at_intercept_table_registration": fn(callback: rocprofiler_intercept_library_cb_t, libs: c_int, data: *mut c_void) -> rocprofiler_status_t;
        /// Display name, section 4.7.
        rocprofiler_query_intercept_table_name rocprofiler_query_intercept_table_name_fn = c"rocprofiler_query_intercept_table_name": fn(kind: rocprofiler_intercept_table_t, name: *mut *const c_char, name_len: *mut u64) -> rocprofiler_status_t;
        /// One callback with the available configurations of an agent.
        rocprofiler_query_pc_sampling_agent_configurations rocprofiler_query_pc_sampling_agent_configurations_fn = c"rocprofiler_query_pc_sampling_agent_configurations": fn(agent_id: rocprofiler_agent_id_t, cb: rocprofiler_available_pc_sampling_configurations_cb_t, user_data: *mut c_void) -> rocprofiler_status_t;
        /// Samples one agent into a buffer.
        rocprofiler_configure_pc_sampling_service rocprofiler_configure_pc_sampling_service_fn = c"rocprofiler_configure_pc_sampling_service": fn(context_id: rocprofiler_context_id_t, agent_id: rocprofiler_agent_id_t, method: rocprofiler_pc_sampling_method_t, unit: rocprofiler_pc_sampling_unit_t, interval: u64, buffer_id: rocprofiler_buffer_id_t, flags: c_int) -> rocprofiler_status_t;
        /// Enumerator name.
        rocprofiler_get_pc_sampling_instruction_type_name rocprofiler_get_pc_sampling_instruction_type_name_fn = c"rocprofiler_get_pc_sampling_instruction_type_name": fn(instruction_type: rocprofiler_pc_sampling_instruction_type_t) -> *const c_char;
        /// Enumerator name.
        rocprofiler_get_pc_sampling_instruction_not_issued_reason_name rocprofiler_get_pc_sampling_instruction_not_issued_reason_name_fn = c"rocprofiler_get_pc_sampling_instruction_not_issued_reason_name": fn(not_issued_reason: rocprofiler_pc_sampling_instruction_not_issued_reason_t) -> *const c_char;
        /// Traces chosen dispatches on an agent. Dispatch callback returns the control flags (0 skip, 3 trace this one).
        rocprofiler_configure_dispatch_thread_trace_service rocprofiler_configure_dispatch_thread_trace_service_fn = c"rocprofiler_configure_dispatch_thread_trace_service": fn(context_id: rocprofiler_context_id_t, agent_id: rocprofiler_agent_id_t, parameters: *mut rocprofiler_thread_trace_parameter_t, num_parameters: usize, dispatch_callback: rocprofiler_thread_trace_dispatch_callback_t, shader_callback: rocprofiler_thread_trace_shader_data_callback_t, callback_userdata: *mut c_void) -> rocprofiler_status_t;
        /// Traces everything between context start and stop.
        rocprofiler_configure_device_thread_trace_service rocprofiler_configure_device_thread_trace_service_fn = c"rocprofiler_configure_device_thread_trace_service": fn(context_id: rocprofiler_context_id_t, agent_id: rocprofiler_agent_id_t, parameters: *mut rocprofiler_thread_trace_parameter_t, num_parameters: usize, shader_callback: rocprofiler_thread_trace_shader_data_callback_t, callback_userdata: rocprofiler_user_data_t) -> rocprofiler_status_t;
        /// Opens the external decoder library from a folder.
        rocprofiler_thread_trace_decoder_create rocprofiler_thread_trace_decoder_create_fn = c"rocprofiler_thread_trace_decoder_create": fn(handle: *mut rocprofiler_thread_trace_decoder_id_t, path: *const c_char) -> rocprofiler_status_t;
        /// Closes it.
        rocprofiler_thread_trace_decoder_destroy rocprofiler_thread_trace_decoder_destroy_fn = c"rocprofiler_thread_trace_decoder_destroy": fn(handle: rocprofiler_thread_trace_decoder_id_t);
        /// Registers a code object image for disassembly; `load_id` becomes `marker_id` of program counters.
        rocprofiler_thread_trace_decoder_codeobj_load rocprofiler_thread_trace_decoder_codeobj_load_fn = c"rocprofiler_thread_trace_decoder_codeobj_load": fn(handle: rocprofiler_thread_trace_decoder_id_t, load_id: u64, load_addr: u64, load_size: u64, data: *const c_void, size: u64) -> rocprofiler_status_t;
        /// Removes it.
        rocprofiler_thread_trace_decoder_codeobj_unload rocprofiler_thread_trace_decoder_codeobj_unload_fn = c"rocprofiler_thread_trace_decoder_codeobj_unload": fn(handle: rocprofiler_thread_trace_decoder_id_t, load_id: u64) -> rocprofiler_status_t;
        /// Decodes one shader-engine blob, calling back per batch of records.
        rocprofiler_trace_decode rocprofiler_trace_decode_fn = c"rocprofiler_trace_decode": fn(handle: rocprofiler_thread_trace_decoder_id_t, callback: rocprofiler_thread_trace_decoder_callback_t, data: *mut c_void, size: u64, userdata: *mut c_void) -> rocprofiler_status_t;
        /// Text for an INFO record.
        rocprofiler_thread_trace_decoder_info_string rocprofiler_thread_trace_decoder_info_string_fn = c"rocprofiler_thread_trace_decoder_info_string": fn(handle: rocprofiler_thread_trace_decoder_id_t, info: rocprofiler_thread_trace_decoder_info_t) -> *const c_char;
        /// What `ompt_start_tool` forwards to; initialises the SDK.
        rocprofiler_ompt_start_tool rocprofiler_ompt_start_tool_fn = c"rocprofiler_ompt_start_tool": fn(omp_version: c_uint, runtime_version: *const c_char) -> *mut c_void;
        /// 0 / 1.
        rocprofiler_ompt_is_initialized rocprofiler_ompt_is_initialized_fn = c"rocprofiler_ompt_is_initialized": fn(status: *mut c_int) -> rocprofiler_status_t;
        /// 0 / 1.
        rocprofiler_ompt_is_finalized rocprofiler_ompt_is_finalized_fn = c"rocprofiler_ompt_is_finalized": fn(status: *mut c_int) -> rocprofiler_status_t;
    }
}
