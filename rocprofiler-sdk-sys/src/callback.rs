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
    rocprofiler_correlation_id_t, rocprofiler_queue_id_t, rocprofiler_stream_id_t,
    rocprofiler_thread_id_t, rocprofiler_timestamp_t, rocprofiler_tracing_operation_t,
    rocprofiler_user_data_t,
};
use crate::kinds::rocprofiler_callback_tracing_kind_t;
use crate::macros::{c_enum, c_struct};
use crate::operations::{hsa_amd_tool_event_kind_t, rocprofiler_scratch_alloc_flag_t};

c_enum! {
    /// Phase of an operation at a callback. Calls enter and exit, code objects load and unload.
    rocprofiler_callback_phase_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_CALLBACK_PHASE_NONE",
        /// Before the work.
        ENTER = 1 => c"ROCPROFILER_CALLBACK_PHASE_ENTER",
        /// Something was loaded or registered.
        LOAD = 1 => c"ROCPROFILER_CALLBACK_PHASE_LOAD",
        /// After the work.
        EXIT = 2 => c"ROCPROFILER_CALLBACK_PHASE_EXIT",
        /// Something is about to go away.
        UNLOAD = 2 => c"ROCPROFILER_CALLBACK_PHASE_UNLOAD",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_CALLBACK_PHASE_LAST",
    }
}

c_struct! {
    /// The event that a tracing callback receives; passed by value.
    struct rocprofiler_callback_tracing_record_t {
        /// The context this is for.
        pub context_id: rocprofiler_context_id_t,
        /// Kernel id of the thread.
        pub thread_id: rocprofiler_thread_id_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Kind of the record.
        pub kind: rocprofiler_callback_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_tracing_operation_t,
        /// Enter or exit, load or unload.
        pub phase: rocprofiler_callback_phase_t,
        /// Data of the kind, valid during the callback.
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

/// Visits a kind; non-zero stops.
pub type rocprofiler_callback_tracing_kind_cb_t = Option<
    unsafe extern "C" fn(kind: rocprofiler_callback_tracing_kind_t, data: *mut c_void) -> c_int,
>;

/// Visits an operation of a kind; non-zero stops.
pub type rocprofiler_callback_tracing_kind_operation_cb_t = Option<
    unsafe extern "C" fn(
        kind: rocprofiler_callback_tracing_kind_t,
        operation: rocprofiler_tracing_operation_t,
        data: *mut c_void,
    ) -> c_int,
>;

/// Visits an argument of a callback record; strings last for the call only, non-zero stops.
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
    /// Payload of the HIP kinds.
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
    /// Payload of the HSA kinds.
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
    /// Payload of the marker kinds.
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
    /// Payload of the RCCL kinds.
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
    /// Payload of the rocDecode kinds.
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
    /// Payload of the rocJPEG kinds.
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
    /// Payload of the OMPT kind.
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
    /// Payload of the memory copy kind.
    struct rocprofiler_callback_tracing_memory_copy_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Agent copied to.
        pub dst_agent_id: rocprofiler_agent_id_t,
        /// Agent copied from.
        pub src_agent_id: rocprofiler_agent_id_t,
        /// Number of bytes.
        pub bytes: u64,
        /// Address copied to.
        pub dst_address: rocprofiler_address_t,
        /// Address copied from.
        pub src_address: rocprofiler_address_t,
    }
}

c_struct! {
    /// Payload of the memory allocation kind.
    struct rocprofiler_callback_tracing_memory_allocation_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// The agent.
        pub agent_id: rocprofiler_agent_id_t,
        /// The address.
        pub address: rocprofiler_address_t,
        /// Bytes allocated; 0 when freeing.
        pub allocation_size: u64,
    }
}

c_struct! {
    /// Payload of the scratch memory kind.
    struct rocprofiler_callback_tracing_scratch_memory_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// The agent.
        pub agent_id: rocprofiler_agent_id_t,
        /// The queue.
        pub queue_id: rocprofiler_queue_id_t,
        /// Properties.
        pub flags: rocprofiler_scratch_alloc_flag_t,
        /// Which member of `args` is live.
        pub args_kind: hsa_amd_tool_event_kind_t,
        /// Details, see `args_kind`.
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
    /// Payload of the HIP stream kind.
    struct rocprofiler_callback_tracing_hip_stream_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// The stream.
        pub stream_id: rocprofiler_stream_id_t,
        /// The `hipStream_t` behind it.
        pub stream_value: rocprofiler_address_t,
    }
}
c_struct! {
    /// Arguments of the events that have none.
    struct rocprofiler_scratch_memory_no_args {
        /// C++ gives empty structs a size of one byte.
        pub empty: c_char,
    }
}

c_struct! {
    /// Begin of a scratch allocation.
    struct rocprofiler_scratch_memory_alloc_start_t {
        /// The dispatch that needs the memory.
        pub dispatch_id: u64,
    }
}

c_struct! {
    /// End of a scratch allocation.
    struct rocprofiler_scratch_memory_alloc_end_t {
        /// The dispatch that needs the memory.
        pub dispatch_id: u64,
        /// Bytes allocated.
        pub size: usize,
        /// Wave slots that the memory serves.
        pub num_slots: usize,
    }
}

c_struct! {
    /// Details of a scratch event.
    union rocprofiler_scratch_memory_args_t {
        /// Begin of an allocation.
        pub alloc_start: rocprofiler_scratch_memory_alloc_start_t,
        /// End of an allocation.
        pub alloc_end: rocprofiler_scratch_memory_alloc_end_t,
        /// Begin of a release.
        pub free_start: rocprofiler_scratch_memory_no_args,
        /// End of a release.
        pub free_end: rocprofiler_scratch_memory_no_args,
        /// Begin of an asynchronous reclaim.
        pub async_reclaim_start: rocprofiler_scratch_memory_no_args,
        /// End of an asynchronous reclaim.
        pub async_reclaim_end: rocprofiler_scratch_memory_no_args,
    }
}
