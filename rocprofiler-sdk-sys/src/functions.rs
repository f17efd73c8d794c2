//! The functions of the SDK: their types, and a table of them filled at run time.

use core::ffi::{c_char, c_int, c_uint, c_void};

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
use crate::function_table::functions;
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

functions! {
    required {
        /// Run-time library version as three numbers; each pointer may be null.
        fn rocprofiler_get_version as rocprofiler_get_version_fn(
            major: *mut u32,
            minor: *mut u32,
            patch: *mut u32,
        ) -> rocprofiler_status_t;
        /// Enumerator name of a status, null when unknown.
        fn rocprofiler_get_status_name as rocprofiler_get_status_name_fn(
            status: rocprofiler_status_t,
        ) -> *const c_char;
        /// Human text of a status, null when unknown.
        fn rocprofiler_get_status_string as rocprofiler_get_status_string_fn(
            status: rocprofiler_status_t,
        ) -> *const c_char;
        /// Current time on the clock used in all records (boot-time clock, ns).
        fn rocprofiler_get_timestamp as rocprofiler_get_timestamp_fn(
            ts: *mut rocprofiler_timestamp_t,
        ) -> rocprofiler_status_t;
        /// Writes 0 before initialisation, -1 during, 1 after.
        fn rocprofiler_is_initialized as rocprofiler_is_initialized_fn(
            status: *mut c_int,
        ) -> rocprofiler_status_t;
        /// Creates a context. The out value must hold handle 0 on entry.
        ///
        /// Errors: `CONTEXT_ID_NOT_ZERO` non-zero handle on entry, `CONFIGURATION_LOCKED`, `CONTEXT_ERROR`,
        /// `CONTEXT_INVALID`.
        fn rocprofiler_create_context as rocprofiler_create_context_fn(
            context_id: *mut rocprofiler_context_id_t,
        ) -> rocprofiler_status_t;
        /// Activates a context; only work begun afterwards is recorded. Nothing happens when it is active already.
        ///
        /// Errors: `CONTEXT_NOT_FOUND`, `CONTEXT_INVALID` context incomplete, `CONTEXT_NOT_STARTED` lost a race for
        /// a slot, `CONFIGURATION_LOCKED` after finalise began, `CONTEXT_CONFLICT` another active context has
        /// dispatch counting (or PC sampling clash), `HSA_NOT_LOADED` device counting before HSA is up (context is
        /// left active and starts by itself once HSA registers), plus service errors.
        fn rocprofiler_start_context as rocprofiler_start_context_fn(
            context_id: rocprofiler_context_id_t,
        ) -> rocprofiler_status_t;
        /// Deactivates a context. Work that was in flight may still be delivered; buffers are not flushed.
        ///
        /// Errors: `CONTEXT_NOT_FOUND` when not active or unknown.
        fn rocprofiler_stop_context as rocprofiler_stop_context_fn(
            context_id: rocprofiler_context_id_t,
        ) -> rocprofiler_status_t;
        /// Creates a buffer of `size` bytes. `watermark` is a byte count at which a flush is started (0: flush on
        /// every record). `policy`: LOSSLESS keeps two storage areas and makes the writer wait for a forced flush;
        /// DISCARD drops and counts. Out handle must name no existing buffer.
        ///
        /// Errors: `CONFIGURATION_LOCKED`, `SERVICE_ALREADY_CONFIGURED` out handle already in use,
        /// `BUFFER_NOT_FOUND`.
        fn rocprofiler_create_buffer as rocprofiler_create_buffer_fn(
            context: rocprofiler_context_id_t,
            size: usize,
            watermark: usize,
            policy: rocprofiler_buffer_policy_t,
            callback: rocprofiler_buffer_tracing_cb_t,
            callback_data: *mut c_void,
            buffer_id: *mut rocprofiler_buffer_id_t,
        ) -> rocprofiler_status_t;
        /// Runs the buffer callback for what is stored and returns when it has finished. Not from the callback
        /// thread of that buffer.
        ///
        /// Errors: `BUFFER_NOT_FOUND`, `BUFFER_BUSY`, `FINALIZED` after finalisation.
        fn rocprofiler_flush_buffer as rocprofiler_flush_buffer_fn(
            buffer_id: rocprofiler_buffer_id_t,
        ) -> rocprofiler_status_t;
        /// Routes records of one kind into a buffer. `operations` null with count 0 means all; one configuration
        /// per kind and context; the array is copied.
        ///
        /// Errors: `CONFIGURATION_LOCKED`, `CONTEXT_NOT_FOUND`, `BUFFER_NOT_FOUND` (buffer 0 or unknown),
        /// `KIND_NOT_FOUND` (kind 0), `OPERATION_NOT_FOUND` (operation unknown, 512 or above),
        /// `SERVICE_ALREADY_CONFIGURED` kind configured before in this context, `NOT_IMPLEMENTED`,
        /// `INCOMPATIBLE_KERNEL` (KFD kinds on an old kernel driver).
        fn rocprofiler_configure_buffer_tracing_service as rocprofiler_configure_buffer_tracing_service_fn(
            context_id: rocprofiler_context_id_t,
            kind: rocprofiler_buffer_tracing_kind_t,
            operations: *const rocprofiler_tracing_operation_t,
            operations_count: usize,
            buffer_id: rocprofiler_buffer_id_t,
        ) -> rocprofiler_status_t;
        /// Name of a kind: the enumerator without `ROCPROFILER_BUFFER_TRACING_`; the length may be null.
        ///
        /// Errors: `KIND_NOT_FOUND`.
        fn rocprofiler_query_buffer_tracing_kind_name as rocprofiler_query_buffer_tracing_kind_name_fn(
            kind: rocprofiler_buffer_tracing_kind_t,
            name: *mut *const c_char,
            name_len: *mut u64,
        ) -> rocprofiler_status_t;
        /// Name of an operation of a kind, static text.
        ///
        /// Errors: `KIND_NOT_FOUND`, `OPERATION_NOT_FOUND`, `NOT_IMPLEMENTED` (CORRELATION_ID_RETIREMENT),
        /// `INVALID_ARGUMENT` (NONE).
        fn rocprofiler_query_buffer_tracing_kind_operation_name as rocprofiler_query_buffer_tracing_kind_operation_name_fn(
            kind: rocprofiler_buffer_tracing_kind_t,
            operation: rocprofiler_tracing_operation_t,
            name: *mut *const c_char,
            name_len: *mut u64,
        ) -> rocprofiler_status_t;
        /// Visits every kind, beginning with NONE, until the callback returns non-zero.
        fn rocprofiler_iterate_buffer_tracing_kinds as rocprofiler_iterate_buffer_tracing_kinds_fn(
            callback: rocprofiler_buffer_tracing_kind_cb_t,
            data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Visits every operation of a kind; where NONE is 0 it is among them.
        ///
        /// Errors: `INVALID_ARGUMENT` (NONE, LAST), `NOT_IMPLEMENTED` (CORRELATION_ID_RETIREMENT).
        fn rocprofiler_iterate_buffer_tracing_kind_operations as rocprofiler_iterate_buffer_tracing_kind_operations_fn(
            kind: rocprofiler_buffer_tracing_kind_t,
            callback: rocprofiler_buffer_tracing_kind_operation_cb_t,
            data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Has `callback` called for one kind. `operations` null with count 0 means all; one configuration per kind
        /// and context; the array is copied.
        ///
        /// Errors: `CONFIGURATION_LOCKED`, `CONTEXT_NOT_FOUND`, `KIND_NOT_FOUND`, `OPERATION_NOT_FOUND`,
        /// `SERVICE_ALREADY_CONFIGURED`, `NOT_IMPLEMENTED`.
        fn rocprofiler_configure_callback_tracing_service as rocprofiler_configure_callback_tracing_service_fn(
            context_id: rocprofiler_context_id_t,
            kind: rocprofiler_callback_tracing_kind_t,
            operations: *const rocprofiler_tracing_operation_t,
            operations_count: usize,
            callback: rocprofiler_callback_tracing_cb_t,
            callback_args: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Name of a kind: the enumerator without `ROCPROFILER_CALLBACK_TRACING_`; the length may be null.
        ///
        /// Errors: `KIND_NOT_FOUND`.
        fn rocprofiler_query_callback_tracing_kind_name as rocprofiler_query_callback_tracing_kind_name_fn(
            kind: rocprofiler_callback_tracing_kind_t,
            name: *mut *const c_char,
            name_len: *mut u64,
        ) -> rocprofiler_status_t;
        /// Name of an operation of a kind, static text.
        ///
        /// Errors: `KIND_NOT_FOUND`, `OPERATION_NOT_FOUND`, `INVALID_ARGUMENT`.
        fn rocprofiler_query_callback_tracing_kind_operation_name as rocprofiler_query_callback_tracing_kind_operation_name_fn(
            kind: rocprofiler_callback_tracing_kind_t,
            operation: rocprofiler_tracing_operation_t,
            name: *mut *const c_char,
            name_len: *mut u64,
        ) -> rocprofiler_status_t;
        /// Visits every kind, beginning with NONE, until the callback returns non-zero.
        fn rocprofiler_iterate_callback_tracing_kinds as rocprofiler_iterate_callback_tracing_kinds_fn(
            callback: rocprofiler_callback_tracing_kind_cb_t,
            data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Visits every operation of a kind; where NONE is 0 it is among them.
        ///
        /// Errors: `INVALID_ARGUMENT`.
        fn rocprofiler_iterate_callback_tracing_kind_operations as rocprofiler_iterate_callback_tracing_kind_operations_fn(
            kind: rocprofiler_callback_tracing_kind_t,
            callback: rocprofiler_callback_tracing_kind_operation_cb_t,
            data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Calls back once with all agents. `version` selects the struct, `agent_size` is its size as the caller
        /// knows it. The structs stay valid until finalisation.
        ///
        /// Errors: `INCOMPATIBLE_ABI` caller size larger than the library's, `INVALID_ARGUMENT` other version, else
        /// the callback's result.
        fn rocprofiler_query_available_agents as rocprofiler_query_available_agents_fn(
            version: rocprofiler_agent_version_t,
            callback: rocprofiler_query_available_agents_cb_t,
            agent_size: usize,
            user_data: *mut c_void,
        ) -> rocprofiler_status_t;
    }
    optional {
        /// Records what kernels access from now on into a directory, which is made: `level` 1 is instructions that access
        /// memory, 2 all; `kernels` has `NAME` or `NAME#N` in each line, all kernels if it is empty; the recording ends
        /// after `limit` bytes. Only rpd's simulated GPU has it.
        ///
        /// Errors: `INVALID_ARGUMENT`, `CONFIGURATION_LOCKED` when it records already, `ERROR` when the directory cannot be
        /// made.
        fn rpd_trace_accesses as rpd_trace_accesses_fn(
            directory: *const c_char,
            level: u32,
            kernels: *const c_char,
            limit: u64,
        ) -> rocprofiler_status_t;
        /// Watches kernels from now on and writes the errors that are found into a directory, which exists. Only rpd's simulated
        /// GPU has it.
        ///
        /// Errors: `INVALID_ARGUMENT`, `CONFIGURATION_LOCKED` when kernels are watched already.
        fn rpd_check_kernels as rpd_check_kernels_fn(directory: *const c_char) -> rocprofiler_status_t;
        /// Run-time library version in one struct.
        fn rocprofiler_get_version_triplet as rocprofiler_get_version_triplet_fn(
            info: *mut rocprofiler_version_triplet_t,
        ) -> rocprofiler_status_t;
        /// Kernel thread id as used in records.
        fn rocprofiler_get_thread_id as rocprofiler_get_thread_id_fn(
            tid: *mut rocprofiler_thread_id_t,
        ) -> rocprofiler_status_t;
        /// Writes 0 before finalisation, -1 during, 1 after.
        fn rocprofiler_is_finalized as rocprofiler_is_finalized_fn(status: *mut c_int) -> rocprofiler_status_t;
        /// Initialise now with the given entry point.
        ///
        /// Errors: `CONFIGURATION_LOCKED`.
        fn rocprofiler_force_configure as rocprofiler_force_configure_fn(
            configure_func: rocprofiler_configure_func_t,
        ) -> rocprofiler_status_t;
        /// Writes 1 when the context is active, else 0.
        ///
        /// Errors: `CONTEXT_NOT_FOUND`.
        fn rocprofiler_context_is_active as rocprofiler_context_is_active_fn(
            context_id: rocprofiler_context_id_t,
            status: *mut c_int,
        ) -> rocprofiler_status_t;
        /// Writes 1 when the context is fully configured, else 0.
        ///
        /// Errors: `CONTEXT_NOT_FOUND`.
        fn rocprofiler_context_is_valid as rocprofiler_context_is_valid_fn(
            context_id: rocprofiler_context_id_t,
            status: *mut c_int,
        ) -> rocprofiler_status_t;
        /// Frees a buffer.
        ///
        /// Errors: `BUFFER_NOT_FOUND`, `BUFFER_BUSY` while a flush runs.
        fn rocprofiler_destroy_buffer as rocprofiler_destroy_buffer_fn(
            buffer_id: rocprofiler_buffer_id_t,
        ) -> rocprofiler_status_t;
        /// Creates another callback thread; handle is 1 or more.
        ///
        /// Errors: `CONFIGURATION_LOCKED`, `ERROR`.
        fn rocprofiler_create_callback_thread as rocprofiler_create_callback_thread_fn(
            cb_thread_id: *mut rocprofiler_callback_thread_t,
        ) -> rocprofiler_status_t;
        /// Binds a buffer to a callback thread.
        ///
        /// Errors: `CONFIGURATION_LOCKED`, `THREAD_NOT_FOUND`, `BUFFER_NOT_FOUND`.
        fn rocprofiler_assign_callback_thread as rocprofiler_assign_callback_thread_fn(
            buffer_id: rocprofiler_buffer_id_t,
            cb_thread_id: rocprofiler_callback_thread_t,
        ) -> rocprofiler_status_t;
        /// Registers notifications before and after the SDK creates a thread. `libs` is a bit mask of runtime
        /// libraries, 0 means all.
        fn rocprofiler_at_internal_thread_create as rocprofiler_at_internal_thread_create_fn(
            precreate: rocprofiler_internal_thread_library_cb_t,
            postcreate: rocprofiler_internal_thread_library_cb_t,
            libs: c_int,
            data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Formats the arguments of an extended record, one callback per argument. Header passed by value. Works
        /// for HIP_RUNTIME_API_EXT, HIP_COMPILER_API_EXT, ROCDECODE_API_EXT.
        ///
        /// Errors: `INVALID_ARGUMENT`, `NOT_IMPLEMENTED` for other kinds.
        fn rocprofiler_iterate_buffer_tracing_record_args as rocprofiler_iterate_buffer_tracing_record_args_fn(
            record: rocprofiler_record_header_t,
            callback: rocprofiler_buffer_tracing_operation_args_cb_t,
            user_data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Formats the arguments of a callback record, inside its callback. Pointers are followed
        /// `max_dereference_count` deep. SDK 1.0 misreads the MARKER_CORE_RANGE arguments; take the payload there.
        ///
        /// Errors: `INVALID_ARGUMENT`, `NOT_IMPLEMENTED`.
        fn rocprofiler_iterate_callback_tracing_kind_operation_args as rocprofiler_iterate_callback_tracing_kind_operation_args_fn(
            record: rocprofiler_callback_tracing_record_t,
            callback: rocprofiler_callback_tracing_operation_args_cb_t,
            max_dereference_count: i32,
            user_data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// One callback with all counter ids of an agent.
        ///
        /// Errors: `AGENT_NOT_FOUND`, `AGENT_ARCH_NOT_SUPPORTED`, else callback result.
        fn rocprofiler_iterate_agent_supported_counters as rocprofiler_iterate_agent_supported_counters_fn(
            agent_id: rocprofiler_agent_id_t,
            cb: rocprofiler_available_counters_cb_t,
            user_data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Fills the description struct that `version` selects. Its strings and arrays last for the process.
        ///
        /// Errors: `COUNTER_NOT_FOUND`, `INCOMPATIBLE_ABI` unknown version, `DIM_NOT_FOUND`.
        fn rocprofiler_query_counter_info as rocprofiler_query_counter_info_fn(
            counter_id: rocprofiler_counter_id_t,
            version: rocprofiler_counter_info_version_id_t,
            info: *mut c_void,
        ) -> rocprofiler_status_t;
        /// One callback with the dimension array (name, extent, id).
        ///
        /// Errors: `COUNTER_NOT_FOUND`, `DIM_NOT_FOUND`, else callback result.
        fn rocprofiler_iterate_counter_dimensions as rocprofiler_iterate_counter_dimensions_fn(
            id: rocprofiler_counter_id_t,
            info_cb: rocprofiler_available_dimensions_cb_t,
            user_data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Number of values the counter yields per sample on an agent.
        ///
        /// Errors: `COUNTER_NOT_FOUND`.
        fn rocprofiler_query_counter_instance_count as rocprofiler_query_counter_instance_count_fn(
            agent_id: rocprofiler_agent_id_t,
            counter_id: rocprofiler_counter_id_t,
            instance_count: *mut usize,
        ) -> rocprofiler_status_t;
        /// Counter id out of an instance id.
        fn rocprofiler_query_record_counter_id as rocprofiler_query_record_counter_id_fn(
            id: rocprofiler_counter_instance_id_t,
            counter_id: *mut rocprofiler_counter_id_t,
        ) -> rocprofiler_status_t;
        /// Position along one dimension out of an instance id.
        fn rocprofiler_query_record_dimension_position as rocprofiler_query_record_dimension_position_fn(
            id: rocprofiler_counter_instance_id_t,
            dim: rocprofiler_counter_dimension_id_t,
            pos: *mut usize,
        ) -> rocprofiler_status_t;
        /// Bundles counters for one agent. If `config_id` holds a non-zero handle its counters are merged into the
        /// new bundle.
        ///
        /// Errors: `AGENT_NOT_FOUND`, `COUNTER_NOT_FOUND`, `METRIC_NOT_VALID_FOR_AGENT` not available on that
        /// agent, `PROFILE_COUNTER_NOT_FOUND`, `AST_GENERATION_FAILED`, `AST_NOT_FOUND`, `EXCEEDS_HW_LIMIT` too
        /// many hardware slots.
        fn rocprofiler_create_counter_config as rocprofiler_create_counter_config_fn(
            agent_id: rocprofiler_agent_id_t,
            counters_list: *mut rocprofiler_counter_id_t,
            counters_count: usize,
            config_id: *mut rocprofiler_counter_config_id_t,
        ) -> rocprofiler_status_t;
        /// Frees a bundle; unknown handles are ignored.
        fn rocprofiler_destroy_counter_config as rocprofiler_destroy_counter_config_fn(
            config_id: rocprofiler_counter_config_id_t,
        ) -> rocprofiler_status_t;
        /// Supplies counter definitions as YAML text. Flag APPEND_DEFINITION adds to the built-in ones instead of
        /// replacing.
        ///
        /// Errors: `INVALID_ARGUMENT` null text with non-zero size, `ERROR` definitions were already used.
        fn rocprofiler_load_counter_definition as rocprofiler_load_counter_definition_fn(
            yaml: *const c_char,
            size: usize,
            flags: rocprofiler_counter_flag_t,
        ) -> rocprofiler_status_t;
        /// Adds a derived counter. SDK 1.0 fails to export it.
        ///
        /// Errors: `AGENT_NOT_FOUND`, `INVALID_ARGUMENT`, `ERROR`.
        fn rocprofiler_create_counter as rocprofiler_create_counter_fn(
            name: *const c_char,
            name_len: usize,
            expr: *const c_char,
            expr_len: usize,
            description: *const c_char,
            description_len: usize,
            agent: rocprofiler_agent_id_t,
            counter_id: *mut rocprofiler_counter_id_t,
        ) -> rocprofiler_status_t;
        /// Counts per kernel dispatch: `dispatch_callback` picks a config, `record_callback` receives the values.
        ///
        /// Errors: `CONTEXT_NOT_FOUND`, `CONTEXT_INVALID`, `CONTEXT_CONFLICT` with PC sampling in the same context,
        /// `SERVICE_ALREADY_CONFIGURED`, `AGENT_DISPATCH_CONFLICT` with device counting.
        fn rocprofiler_configure_callback_dispatch_counting_service as rocprofiler_configure_callback_dispatch_counting_service_fn(
            context_id: rocprofiler_context_id_t,
            dispatch_callback: rocprofiler_dispatch_counting_service_cb_t,
            dispatch_callback_args: *mut c_void,
            record_callback: rocprofiler_dispatch_counting_record_cb_t,
            record_callback_args: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Counts per kernel dispatch as the callback variant does, into a buffer: a header record, then value
        /// records.
        ///
        /// Errors: those of `rocprofiler_configure_callback_dispatch_counting_service`, `BUFFER_NOT_FOUND`.
        fn rocprofiler_configure_buffer_dispatch_counting_service as rocprofiler_configure_buffer_dispatch_counting_service_fn(
            context_id: rocprofiler_context_id_t,
            buffer_id: rocprofiler_buffer_id_t,
            callback: rocprofiler_dispatch_counting_service_cb_t,
            callback_data_args: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Counts on a whole agent, sampled by hand. `cb` runs when the context starts and sets a config through
        /// the function it is given.
        ///
        /// Errors: `CONTEXT_NOT_FOUND`, `BUFFER_NOT_FOUND`, `AGENT_NOT_FOUND`, `SERVICE_ALREADY_CONFIGURED`,
        /// `AGENT_DISPATCH_CONFLICT`.
        fn rocprofiler_configure_device_counting_service as rocprofiler_configure_device_counting_service_fn(
            context_id: rocprofiler_context_id_t,
            buffer_id: rocprofiler_buffer_id_t,
            agent_id: rocprofiler_agent_id_t,
            cb: rocprofiler_device_counting_service_cb_t,
            user_data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Takes a sample. With `output_records` it is copied there and `rec_count` is in/out; otherwise it goes
        /// into the buffer.
        ///
        /// Errors: `CONTEXT_NOT_FOUND` (handle 0), `CONTEXT_NOT_STARTED` not active, `INVALID_ARGUMENT` null count
        /// or ASYNC together with output, `OUT_OF_RESOURCES` array too small (needed count written),
        /// `HSA_NOT_LOADED`, `CONTEXT_ERROR` busy, `FINALIZED`.
        fn rocprofiler_sample_device_counting_service as rocprofiler_sample_device_counting_service_fn(
            context_id: rocprofiler_context_id_t,
            user_data: rocprofiler_user_data_t,
            flags: rocprofiler_counter_flag_t,
            output_records: *mut rocprofiler_counter_record_t,
            rec_count: *mut usize,
        ) -> rocprofiler_status_t;
        /// Streaming performance monitor; SDK 1.0 declares it without an implementation.
        ///
        /// Errors: not implemented in 1.0.
        fn rocprofiler_configure_spm_service as rocprofiler_configure_spm_service_fn(
            context_id: rocprofiler_context_id_t,
            buffer_id: rocprofiler_buffer_id_t,
            counter_config: rocprofiler_counter_config_id_t,
            interval: u64,
        ) -> rocprofiler_status_t;
        /// Pushes a user value on the stack of (context, thread). Threads without a push of their own inherit the
        /// top of the main thread.
        ///
        /// Errors: `CONTEXT_NOT_FOUND`, `INVALID_ARGUMENT` thread id smaller than the process id.
        fn rocprofiler_push_external_correlation_id as rocprofiler_push_external_correlation_id_fn(
            context: rocprofiler_context_id_t,
            tid: rocprofiler_thread_id_t,
            external_correlation_id: rocprofiler_user_data_t,
        ) -> rocprofiler_status_t;
        /// Pops the value of a thread; the out pointer may be null.
        ///
        /// Errors: `CONTEXT_NOT_FOUND`, `INVALID_ARGUMENT`.
        fn rocprofiler_pop_external_correlation_id as rocprofiler_pop_external_correlation_id_fn(
            context: rocprofiler_context_id_t,
            tid: rocprofiler_thread_id_t,
            external_correlation_id: *mut rocprofiler_user_data_t,
        ) -> rocprofiler_status_t;
        /// Sets a callback that gives external ids, per kind of work. `kinds` null with count 0 means all.
        ///
        /// Errors: `CONTEXT_NOT_FOUND`, `INVALID_ARGUMENT`, `SERVICE_ALREADY_CONFIGURED`, `KIND_NOT_FOUND`.
        fn rocprofiler_configure_external_correlation_id_request_service as rocprofiler_configure_external_correlation_id_request_service_fn(
            context_id: rocprofiler_context_id_t,
            kinds: *const rocprofiler_external_correlation_id_request_kind_t,
            kinds_count: usize,
            callback: rocprofiler_external_correlation_id_request_cb_t,
            callback_args: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Name of a request kind: the enumerator without `ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_`.
        ///
        /// Errors: `KIND_NOT_FOUND`.
        fn rocprofiler_query_external_correlation_id_request_kind_name as rocprofiler_query_external_correlation_id_request_kind_name_fn(
            kind: rocprofiler_external_correlation_id_request_kind_t,
            name: *mut *const c_char,
            name_len: *mut u64,
        ) -> rocprofiler_status_t;
        /// Has `callback` called whenever a table of the chosen kinds is registered; an empty mask means all.
        ///
        /// Errors: `CONFIGURATION_LOCKED` once initialised.
        fn rocprofiler_at_intercept_table_registration as rocprofiler_at_intercept_table_registration_fn(
            callback: rocprofiler_intercept_library_cb_t,
            libs: c_int,
            data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Name of a table for people.
        ///
        /// Errors: `KIND_NOT_FOUND`.
        fn rocprofiler_query_intercept_table_name as rocprofiler_query_intercept_table_name_fn(
            kind: rocprofiler_intercept_table_t,
            name: *mut *const c_char,
            name_len: *mut u64,
        ) -> rocprofiler_status_t;
        /// One callback with the available configurations of an agent.
        ///
        /// Errors: `AGENT_NOT_FOUND`, `NOT_IMPLEMENTED` without the beta switch, `NOT_AVAILABLE` built without
        /// support, driver statuses such as 28.
        fn rocprofiler_query_pc_sampling_agent_configurations as rocprofiler_query_pc_sampling_agent_configurations_fn(
            agent_id: rocprofiler_agent_id_t,
            cb: rocprofiler_available_pc_sampling_configurations_cb_t,
            user_data: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Samples one agent into a buffer.
        ///
        /// Errors: `CONFIGURATION_LOCKED`, `CONTEXT_NOT_FOUND`, `BUFFER_NOT_FOUND`, `AGENT_NOT_FOUND`,
        /// `NOT_IMPLEMENTED`, `NOT_AVAILABLE`, `INCOMPATIBLE_KERNEL`, `ERROR`, `CONTEXT_CONFLICT` with counters,
        /// `SERVICE_ALREADY_CONFIGURED` already on that agent.
        fn rocprofiler_configure_pc_sampling_service as rocprofiler_configure_pc_sampling_service_fn(
            context_id: rocprofiler_context_id_t,
            agent_id: rocprofiler_agent_id_t,
            method: rocprofiler_pc_sampling_method_t,
            unit: rocprofiler_pc_sampling_unit_t,
            interval: u64,
            buffer_id: rocprofiler_buffer_id_t,
            flags: c_int,
        ) -> rocprofiler_status_t;
        /// C name of an instruction type, null when unknown.
        ///
        /// Errors: null if unknown.
        fn rocprofiler_get_pc_sampling_instruction_type_name as rocprofiler_get_pc_sampling_instruction_type_name_fn(
            instruction_type: rocprofiler_pc_sampling_instruction_type_t,
        ) -> *const c_char;
        /// C name of a reason, null when unknown.
        ///
        /// Errors: null if unknown.
        fn rocprofiler_get_pc_sampling_instruction_not_issued_reason_name as rocprofiler_get_pc_sampling_instruction_not_issued_reason_name_fn(
            not_issued_reason: rocprofiler_pc_sampling_instruction_not_issued_reason_t,
        ) -> *const c_char;
        /// Traces chosen dispatches on an agent. Dispatch callback returns the control flags (0 skip, 3 trace this
        /// one).
        ///
        /// Errors: `CONFIGURATION_LOCKED`, `CONTEXT_NOT_FOUND`, `CONTEXT_INVALID` together with the device variant
        /// in one context, `INVALID_ARGUMENT` bad parameter.
        fn rocprofiler_configure_dispatch_thread_trace_service as rocprofiler_configure_dispatch_thread_trace_service_fn(
            context_id: rocprofiler_context_id_t,
            agent_id: rocprofiler_agent_id_t,
            parameters: *mut rocprofiler_thread_trace_parameter_t,
            num_parameters: usize,
            dispatch_callback: rocprofiler_thread_trace_dispatch_callback_t,
            shader_callback: rocprofiler_thread_trace_shader_data_callback_t,
            callback_userdata: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Traces everything between context start and stop.
        ///
        /// Errors: `CONFIGURATION_LOCKED`, `CONTEXT_NOT_FOUND`, `CONTEXT_INVALID`, `INVALID_ARGUMENT` (also for
        /// SERIALIZE_ALL).
        fn rocprofiler_configure_device_thread_trace_service as rocprofiler_configure_device_thread_trace_service_fn(
            context_id: rocprofiler_context_id_t,
            agent_id: rocprofiler_agent_id_t,
            parameters: *mut rocprofiler_thread_trace_parameter_t,
            num_parameters: usize,
            shader_callback: rocprofiler_thread_trace_shader_data_callback_t,
            callback_userdata: rocprofiler_user_data_t,
        ) -> rocprofiler_status_t;
        /// Opens the external decoder library from a directory.
        ///
        /// Errors: `NOT_AVAILABLE` library missing, `INCOMPATIBLE_ABI` symbol missing.
        fn rocprofiler_thread_trace_decoder_create as rocprofiler_thread_trace_decoder_create_fn(
            handle: *mut rocprofiler_thread_trace_decoder_id_t,
            path: *const c_char,
        ) -> rocprofiler_status_t;
        /// Closes a decoder and frees the code objects that it was given; its id is invalid afterwards.
        fn rocprofiler_thread_trace_decoder_destroy as rocprofiler_thread_trace_decoder_destroy_fn(
            handle: rocprofiler_thread_trace_decoder_id_t,
        );
        /// Registers a code object image for disassembly; `load_id` becomes `marker_id` of program counters.
        ///
        /// Errors: `INVALID_ARGUMENT`, `ERROR`.
        fn rocprofiler_thread_trace_decoder_codeobj_load as rocprofiler_thread_trace_decoder_codeobj_load_fn(
            handle: rocprofiler_thread_trace_decoder_id_t,
            load_id: u64,
            load_addr: u64,
            load_size: u64,
            data: *const c_void,
            size: u64,
        ) -> rocprofiler_status_t;
        /// Removes a code object image.
        ///
        /// Errors: `INVALID_ARGUMENT`, `ERROR`.
        fn rocprofiler_thread_trace_decoder_codeobj_unload as rocprofiler_thread_trace_decoder_codeobj_unload_fn(
            handle: rocprofiler_thread_trace_decoder_id_t,
            load_id: u64,
        ) -> rocprofiler_status_t;
        /// Decodes the trace of one shader engine, calling back for each batch of records.
        ///
        /// Errors: `INVALID_ARGUMENT`, `ERROR`, `AGENT_ARCH_NOT_SUPPORTED`.
        fn rocprofiler_trace_decode as rocprofiler_trace_decode_fn(
            handle: rocprofiler_thread_trace_decoder_id_t,
            callback: rocprofiler_thread_trace_decoder_callback_t,
            data: *mut c_void,
            size: u64,
            userdata: *mut c_void,
        ) -> rocprofiler_status_t;
        /// Text for an INFO record.
        fn rocprofiler_thread_trace_decoder_info_string as rocprofiler_thread_trace_decoder_info_string_fn(
            handle: rocprofiler_thread_trace_decoder_id_t,
            info: rocprofiler_thread_trace_decoder_info_t,
        ) -> *const c_char;
        /// Target of `ompt_start_tool`; initialises the SDK.
        fn rocprofiler_ompt_start_tool as rocprofiler_ompt_start_tool_fn(
            omp_version: c_uint,
            runtime_version: *const c_char,
        ) -> *mut c_void;
        /// Writes 1 when the OMPT side is initialised, else 0.
        fn rocprofiler_ompt_is_initialized as rocprofiler_ompt_is_initialized_fn(
            status: *mut c_int,
        ) -> rocprofiler_status_t;
        /// Writes 1 when the OMPT side is finalised, else 0.
        fn rocprofiler_ompt_is_finalized as rocprofiler_ompt_is_finalized_fn(
            status: *mut c_int,
        ) -> rocprofiler_status_t;
    }
}
