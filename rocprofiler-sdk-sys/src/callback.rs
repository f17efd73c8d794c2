//! Callback tracing: the record and the payload of each kind (code objects have their own module).

use core::ffi::{c_char, c_int, c_void};

use crate::args::{
    rocprofiler_hip_api_args_t, rocprofiler_hip_api_retval_t, rocprofiler_hsa_api_args_t,
    rocprofiler_hsa_api_retval_t, rocprofiler_marker_api_args_t, rocprofiler_marker_api_retval_t,
    rocprofiler_ompt_args_t, rocprofiler_rccl_api_args_t, rocprofiler_rccl_api_retval_t,
    rocprofiler_rocdecode_api_args_t, rocprofiler_rocdecode_api_retval_t,
    rocprofiler_rocjpeg_api_args_t, rocprofiler_rocjpeg_api_retval_t,
};
use crate::buffer::rocprofiler_kernel_dispatch_info_t;
use crate::ids::{
    rocprofiler_address_t, rocprofiler_agent_id_t, rocprofiler_context_id_t,
    rocprofiler_correlation_id_t, rocprofiler_graph_exec_id_t, rocprofiler_queue_id_t,
    rocprofiler_stream_id_t, rocprofiler_thread_id_t, rocprofiler_timestamp_t,
    rocprofiler_tracing_operation_t, rocprofiler_user_data_t,
};
use crate::kinds::rocprofiler_callback_tracing_kind_t;
use crate::macros::{c_enum, c_struct};
use crate::operations::{hsa_amd_tool_event_kind_t, rocprofiler_scratch_alloc_flag_t};
use crate::status::rocprofiler_status_t;

c_enum! {
    /// Phase of an operation at a callback. Calls enter and exit, code objects load and unload.
    rocprofiler_callback_phase_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_CALLBACK_PHASE_NONE",
        /// Before the traced function runs.
        ENTER = 1 => c"ROCPROFILER_CALLBACK_PHASE_ENTER",
        /// A code object was loaded, or a symbol of it registered.
        LOAD = 1 => c"ROCPROFILER_CALLBACK_PHASE_LOAD",
        /// After the traced function returned.
        EXIT = 2 => c"ROCPROFILER_CALLBACK_PHASE_EXIT",
        /// A code object, or a symbol of it, is about to be removed.
        UNLOAD = 2 => c"ROCPROFILER_CALLBACK_PHASE_UNLOAD",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_CALLBACK_PHASE_LAST",
    }
}

c_struct! {
    /// The event that a tracing callback receives; passed by value.
    struct rocprofiler_callback_tracing_record_t {
        /// Context for which the callback was configured.
        pub context_id: rocprofiler_context_id_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// A `ROCPROFILER_CALLBACK_TRACING_*` value, which determines the type of `payload`.
        pub kind: rocprofiler_callback_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_tracing_operation_t,
        /// Enter or exit, load or unload.
        pub phase: rocprofiler_callback_phase_t,
        /// The `rocprofiler_callback_tracing_*_data_t` of the kind, valid during the callback.
        pub payload: *mut c_void,
    }
}

/// Called for an operation on the thread that does it. The user data slot is shared by enter and exit of the same
/// operation and context.
pub type rocprofiler_callback_tracing_cb_t = Option<
    unsafe extern "C" fn(
        record: rocprofiler_callback_tracing_record_t,
        user_data: *mut rocprofiler_user_data_t,
        data: *mut c_void,
    ),
>;

/// Receives one kind of callback tracing; a result other than 0 ends the iteration.
pub type rocprofiler_callback_tracing_kind_cb_t = Option<
    unsafe extern "C" fn(kind: rocprofiler_callback_tracing_kind_t, data: *mut c_void) -> c_int,
>;

/// Receives one operation of a kind; a result other than 0 ends the iteration.
pub type rocprofiler_callback_tracing_kind_operation_cb_t = Option<
    unsafe extern "C" fn(
        kind: rocprofiler_callback_tracing_kind_t,
        operation: rocprofiler_tracing_operation_t,
        data: *mut c_void,
    ) -> c_int,
>;

/// Receives one argument of a callback record. Strings last for the call only; a result other than 0 ends the
/// iteration.
pub type rocprofiler_callback_tracing_operation_args_cb_t = Option<
    unsafe extern "C" fn(
        kind: rocprofiler_callback_tracing_kind_t,
        operation: rocprofiler_tracing_operation_t,
        arg_number: u32,
        arg_value: *const c_void,
        indirection: i32,
        arg_type: *const c_char,
        arg_name: *const c_char,
        arg_text: *const c_char,
        dereferenced: i32,
        data: *mut c_void,
    ) -> c_int,
>;

c_struct! {
    /// Payload of `HIP_RUNTIME_API` and `HIP_COMPILER_API`.
    struct rocprofiler_callback_tracing_hip_api_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Arguments of the call.
        pub args: rocprofiler_hip_api_args_t,
        /// Result of the call; meaningful on exit only.
        pub retval: rocprofiler_hip_api_retval_t,
    }
}

c_struct! {
    /// Payload of `HSA_CORE_API` and the kinds of HSA's extensions.
    struct rocprofiler_callback_tracing_hsa_api_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Arguments of the call.
        pub args: rocprofiler_hsa_api_args_t,
        /// Result of the call; meaningful on exit only.
        pub retval: rocprofiler_hsa_api_retval_t,
    }
}

c_struct! {
    /// Payload of the `MARKER_*` kinds.
    struct rocprofiler_callback_tracing_marker_api_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Arguments of the call.
        pub args: rocprofiler_marker_api_args_t,
        /// Result of the call; meaningful on exit only.
        pub retval: rocprofiler_marker_api_retval_t,
    }
}

c_struct! {
    /// Payload of `RCCL_API`.
    struct rocprofiler_callback_tracing_rccl_api_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Arguments of the call.
        pub args: rocprofiler_rccl_api_args_t,
        /// Result of the call; meaningful on exit only.
        pub retval: rocprofiler_rccl_api_retval_t,
    }
}

c_struct! {
    /// Payload of `ROCDECODE_API`.
    struct rocprofiler_callback_tracing_rocdecode_api_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Arguments of the call.
        pub args: rocprofiler_rocdecode_api_args_t,
        /// Result of the call; meaningful on exit only.
        pub retval: rocprofiler_rocdecode_api_retval_t,
    }
}

c_struct! {
    /// Payload of `ROCJPEG_API`.
    struct rocprofiler_callback_tracing_rocjpeg_api_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Arguments of the call.
        pub args: rocprofiler_rocjpeg_api_args_t,
        /// Result of the call; meaningful on exit only.
        pub retval: rocprofiler_rocjpeg_api_retval_t,
    }
}

c_struct! {
    /// Payload of `OMPT`.
    struct rocprofiler_callback_tracing_ompt_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Arguments of the OMPT callback.
        pub args: rocprofiler_ompt_args_t,
    }
}

c_struct! {
    /// Payload of the kernel dispatch kind. Timestamps are set in the completion callback only.
    struct rocprofiler_callback_tracing_kernel_dispatch_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Kernel, agent, queue and sizes of the dispatch.
        pub dispatch_info: rocprofiler_kernel_dispatch_info_t,
    }
}

c_struct! {
    /// Payload of `MEMORY_COPY`. Timestamps are set on exit only.
    struct rocprofiler_callback_tracing_memory_copy_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Agent whose memory the copy writes.
        pub dst_agent_id: rocprofiler_agent_id_t,
        /// Agent whose memory the copy reads.
        pub src_agent_id: rocprofiler_agent_id_t,
        /// Bytes to copy; x·y·z for a rectangle.
        pub bytes: u64,
        /// First address written.
        pub dst_address: rocprofiler_address_t,
        /// First address read.
        pub src_address: rocprofiler_address_t,
    }
}

c_struct! {
    /// Payload of `MEMORY_ALLOCATION`. Timestamps are set on exit only.
    struct rocprofiler_callback_tracing_memory_allocation_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Agent that the memory belongs to; 0 when freeing.
        pub agent_id: rocprofiler_agent_id_t,
        /// Start of the memory; known on exit of an allocation.
        pub address: rocprofiler_address_t,
        /// Bytes allocated; 0 when freeing.
        pub allocation_size: u64,
    }
}

c_struct! {
    /// Payload of `SCRATCH_MEMORY`.
    struct rocprofiler_callback_tracing_scratch_memory_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// GPU whose scratch memory changes.
        pub agent_id: rocprofiler_agent_id_t,
        /// HSA queue that uses the scratch memory.
        pub queue_id: rocprofiler_queue_id_t,
        /// Whether the memory is released after one dispatch, and whether it is of the alternative area.
        pub flags: rocprofiler_scratch_alloc_flag_t,
        /// Event of the HSA runtime, which determines the valid member of `args`.
        pub args_kind: hsa_amd_tool_event_kind_t,
        /// Arguments of the event that `args_kind` names.
        pub args: rocprofiler_scratch_memory_args_t,
    }
}

c_struct! {
    /// Payload of the runtime initialisation kind.
    struct rocprofiler_callback_tracing_runtime_initialization_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Version, `10000*major + 100*minor + patch`.
        pub version: u64,
        /// Number of this registration of the runtime's tables, from 0.
        pub instance: u64,
    }
}

c_struct! {
    /// Payload of `HIP_STREAM`: a stream is created or destroyed, or the calling thread works on it.
    struct rocprofiler_callback_tracing_hip_stream_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Number of the stream in the process; 0 for the null stream.
        pub stream_id: rocprofiler_stream_id_t,
        /// The `hipStream_t` of the program.
        pub stream_value: rocprofiler_address_t,
    }
}

c_struct! {
    /// Payload of `HIP_GRAPH`: an executable graph is made, destroyed or launched.
    struct rocprofiler_callback_tracing_hip_graph_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Number of the executable graph.
        pub graph_exec_id: rocprofiler_graph_exec_id_t,
        /// The `hipGraphExec_t` of the program.
        pub graph_exec_value: rocprofiler_address_t,
    }
}

c_struct! {
    /// Payload of `HIP_EVENT`: the device records an event or waits for one. Times are 0 before that is complete.
    struct rocprofiler_callback_tracing_hip_event_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Begin on the device.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End on the device.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Agent of the queue.
        pub agent_id: rocprofiler_agent_id_t,
        /// Queue of the work.
        pub queue_id: rocprofiler_queue_id_t,
        /// The `hipEvent_t` of the program.
        pub hip_event_handle: u64,
        /// Queue that the event was recorded on.
        pub source_queue_id: rocprofiler_queue_id_t,
    }
}

/// Number of times that a dispatch is to run: 1 for once, 0 for as long as [`rocprofiler_kernel_replay_continue_t`] says.
pub type rocprofiler_kernel_replay_pass_count_t = Option<
    unsafe extern "C" fn(
        dispatch_info: rocprofiler_kernel_dispatch_info_t,
        user_data: rocprofiler_user_data_t,
    ) -> u64,
>;

/// Whether another pass follows the pass `current` of `total`; 0 ends. Cannot lengthen a fixed number of passes.
pub type rocprofiler_kernel_replay_continue_t = Option<
    unsafe extern "C" fn(
        dispatch_info: rocprofiler_kernel_dispatch_info_t,
        current: u64,
        total: u64,
        user_data: rocprofiler_user_data_t,
    ) -> c_int,
>;

/// Starts or stops a context for the passes of a dispatch from this one on; to be called on entry of a pass only.
pub type rocprofiler_kernel_replay_context_t =
    Option<unsafe extern "C" fn(context_id: rocprofiler_context_id_t) -> rocprofiler_status_t>;

c_struct! {
    /// Payload of `KERNEL_REPLAY`. Function pointers are null where the operation and phase do not use them.
    struct rocprofiler_callback_tracing_kernel_replay_data_t {
        /// Size of this struct in bytes; all of it has a meaning.
        pub size: u64,
        /// The dispatch; its id is that of all passes.
        pub dispatch_info: rocprofiler_kernel_dispatch_info_t,
        /// Number of the pass, from 0.
        pub current_pass: u64,
        /// Number of passes; 0 for an endless loop, and in `CONFIG`.
        pub total_passes: u64,
        /// Set by the tool on entry of `CONFIG`; null leaves the dispatch as it is.
        pub replay_pass_count: rocprofiler_kernel_replay_pass_count_t,
        /// Set by the tool on entry of `CONFIG`, for all passes, and on exit of `PASS`, for that pass.
        pub replay_continue: rocprofiler_kernel_replay_continue_t,
        /// Undoes `replay_stop_context`; only on entry of `PASS`.
        pub replay_start_context: rocprofiler_kernel_replay_context_t,
        /// Leaves a context out of this and the following passes; only on entry of `PASS`.
        pub replay_stop_context: rocprofiler_kernel_replay_context_t,
    }
}

c_struct! {
    /// Arguments of the events that have none.
    struct rocprofiler_scratch_memory_no_args {
        /// Padding: C++ gives empty structs a size of one byte.
        pub empty: c_char,
    }
}

c_struct! {
    /// `HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_START`: the runtime looks for scratch memory.
    struct rocprofiler_scratch_memory_alloc_start_t {
        /// Queue index of the dispatch packet that needs the memory.
        pub dispatch_id: u64,
    }
}

c_struct! {
    /// `HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_END`: scratch memory was found, or not.
    struct rocprofiler_scratch_memory_alloc_end_t {
        /// Queue index of the dispatch packet that needs the memory.
        pub dispatch_id: u64,
        /// Bytes allocated; 0 when the allocation failed.
        pub size: usize,
        /// Number of waves that the memory suffices for.
        pub num_slots: usize,
    }
}

c_struct! {
    /// Arguments of a scratch event, by `args_kind`.
    union rocprofiler_scratch_memory_args_t {
        /// Arguments for `SCRATCH_ALLOC_START`.
        pub alloc_start: rocprofiler_scratch_memory_alloc_start_t,
        /// Arguments for `SCRATCH_ALLOC_END`.
        pub alloc_end: rocprofiler_scratch_memory_alloc_end_t,
        /// Arguments for `SCRATCH_FREE_START`.
        pub free_start: rocprofiler_scratch_memory_no_args,
        /// Arguments for `SCRATCH_FREE_END`.
        pub free_end: rocprofiler_scratch_memory_no_args,
        /// Arguments for `SCRATCH_ASYNC_RECLAIM_START`.
        pub async_reclaim_start: rocprofiler_scratch_memory_no_args,
        /// Arguments for `SCRATCH_ASYNC_RECLAIM_END`.
        pub async_reclaim_end: rocprofiler_scratch_memory_no_args,
    }
}
