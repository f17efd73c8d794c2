//! Buffers and the records that buffer tracing puts into them.

use core::ffi::{c_char, c_int, c_void};

use crate::args::{
    rocprofiler_hip_api_args_t, rocprofiler_hip_api_retval_t, rocprofiler_rocdecode_api_args_t,
    rocprofiler_rocdecode_api_retval_t,
};
use crate::ids::{
    rocprofiler_address_t, rocprofiler_agent_id_t, rocprofiler_async_correlation_id_t,
    rocprofiler_buffer_id_t, rocprofiler_context_id_t, rocprofiler_correlation_id_t,
    rocprofiler_dim3_t, rocprofiler_dispatch_id_t, rocprofiler_graph_exec_id_t,
    rocprofiler_kernel_id_t, rocprofiler_queue_id_t, rocprofiler_thread_id_t,
    rocprofiler_timestamp_t, rocprofiler_tracing_operation_t,
};
use crate::kinds::rocprofiler_buffer_tracing_kind_t;
use crate::macros::{c_enum, c_struct};
use crate::operations::{
    rocprofiler_hip_event_operation_t, rocprofiler_kernel_dispatch_operation_t,
    rocprofiler_memory_allocation_operation_t, rocprofiler_memory_copy_operation_t,
    rocprofiler_runtime_initialization_operation_t, rocprofiler_scratch_alloc_flag_t,
    rocprofiler_scratch_memory_operation_t,
};

c_struct! {
    /// Header of a record in a buffer. `category` and `kind` are one 64-bit `hash` in C, `category` being the low half.
    struct rocprofiler_record_header_t {
        /// Service that the record comes from, a [`rocprofiler_buffer_category_t`] value.
        pub category: u32,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: u32,
        /// The record, valid during the callback that receives it; `category` and `kind` determine its type.
        pub payload: *mut c_void,
    }
}

impl rocprofiler_record_header_t {
    /// `kind` in the high half and `category` in the low one, the `hash` of C.
    pub const fn hash(&self) -> u64 {
        ((self.kind as u64) << 32) | self.category as u64
    }
}

c_enum! {
    /// Service that a buffered record comes from.
    rocprofiler_buffer_category_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_BUFFER_CATEGORY_NONE",
        /// `kind` is a [`rocprofiler_buffer_tracing_kind_t`].
        TRACING = 1 => c"ROCPROFILER_BUFFER_CATEGORY_TRACING",
        /// `kind` is a `rocprofiler_pc_sampling_record_kind_t`.
        PC_SAMPLING = 2 => c"ROCPROFILER_BUFFER_CATEGORY_PC_SAMPLING",
        /// `kind` is a `rocprofiler_counter_record_kind_t`.
        COUNTERS = 3 => c"ROCPROFILER_BUFFER_CATEGORY_COUNTERS",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_BUFFER_CATEGORY_LAST",
    }
}

c_enum! {
    /// Policy for a full buffer: drop and count, or block the writer.
    rocprofiler_buffer_policy_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_BUFFER_POLICY_NONE",
        /// A full buffer drops records and counts them.
        DISCARD = 1 => c"ROCPROFILER_BUFFER_POLICY_DISCARD",
        /// A full buffer makes the writer wait for a flush.
        LOSSLESS = 2 => c"ROCPROFILER_BUFFER_POLICY_LOSSLESS",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_BUFFER_POLICY_LAST",
    }
}

/// Receives the records of a buffer on its callback thread: array of header pointers, their count, user data, and the
/// records dropped since the last call.
pub type rocprofiler_buffer_tracing_cb_t = Option<
    unsafe extern "C" fn(
        context: rocprofiler_context_id_t,
        buffer: rocprofiler_buffer_id_t,
        headers: *mut *mut rocprofiler_record_header_t,
        count: usize,
        data: *mut c_void,
        dropped: u64,
    ),
>;

/// Receives one kind of buffer tracing; a result other than 0 ends the iteration.
pub type rocprofiler_buffer_tracing_kind_cb_t = Option<
    unsafe extern "C" fn(kind: rocprofiler_buffer_tracing_kind_t, data: *mut c_void) -> c_int,
>;

/// Receives one operation of a kind; a result other than 0 ends the iteration.
pub type rocprofiler_buffer_tracing_kind_operation_cb_t = Option<
    unsafe extern "C" fn(
        kind: rocprofiler_buffer_tracing_kind_t,
        operation: rocprofiler_tracing_operation_t,
        data: *mut c_void,
    ) -> c_int,
>;

/// Receives one argument of an extended record. Strings last for the call only; a result other than 0 ends the
/// iteration.
pub type rocprofiler_buffer_tracing_operation_args_cb_t = Option<
    unsafe extern "C" fn(
        kind: rocprofiler_buffer_tracing_kind_t,
        operation: rocprofiler_tracing_operation_t,
        arg_number: u32,
        arg_value: *const c_void,
        indirection: i32,
        arg_type: *const c_char,
        arg_name: *const c_char,
        arg_text: *const c_char,
        data: *mut c_void,
    ) -> c_int,
>;

c_struct! {
    /// Begin and end of a call of the HIP runtime or of the functions for HIP's compiler, without arguments.
    struct rocprofiler_buffer_tracing_hip_api_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
    }
}

c_struct! {
    /// Begin and end of a call of the HSA runtime, without arguments.
    struct rocprofiler_buffer_tracing_hsa_api_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
    }
}

c_struct! {
    /// A marker call, or a closed range.
    struct rocprofiler_buffer_tracing_marker_api_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
    }
}

c_struct! {
    /// Begin and end of a call of RCCL, without arguments.
    struct rocprofiler_buffer_tracing_rccl_api_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
    }
}

c_struct! {
    /// A rocDecode call.
    struct rocprofiler_buffer_tracing_rocdecode_api_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
    }
}

c_struct! {
    /// A rocJPEG call.
    struct rocprofiler_buffer_tracing_rocjpeg_api_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
    }
}

c_struct! {
    /// A HIP call with its arguments and result.
    struct rocprofiler_buffer_tracing_hip_api_ext_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
        /// Arguments of the call.
        pub args: rocprofiler_hip_api_args_t,
        /// Result of the call; meaningful on exit only.
        pub retval: rocprofiler_hip_api_retval_t,
    }
}

c_struct! {
    /// A rocDecode call with its arguments and result.
    struct rocprofiler_buffer_tracing_rocdecode_api_ext_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
        /// Arguments of the call.
        pub args: rocprofiler_rocdecode_api_args_t,
        /// Result of the call; meaningful on exit only.
        pub retval: rocprofiler_rocdecode_api_retval_t,
    }
}

c_struct! {
    /// Description of a dispatch: kernel, agent, queue, sizes. `size` is 72, without the padding.
    struct rocprofiler_kernel_dispatch_info_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// GPU that ran the kernel.
        pub agent_id: rocprofiler_agent_id_t,
        /// HSA queue that the packet was written to.
        pub queue_id: rocprofiler_queue_id_t,
        /// Kernel symbol, as the code object callback announced it; 0 when unknown.
        pub kernel_id: rocprofiler_kernel_id_t,
        /// Number of the dispatch in the process, from 1.
        pub dispatch_id: rocprofiler_dispatch_id_t,
        /// Scratch bytes per work item.
        pub private_segment_size: u32,
        /// LDS bytes per workgroup.
        pub group_segment_size: u32,
        /// Work items per workgroup.
        pub workgroup_size: rocprofiler_dim3_t,
        /// Work items in all (not workgroups).
        pub grid_size: rocprofiler_dim3_t,
        /// Room for later fields.
        pub reserved_padding: [u8; 56],
    }
}

c_struct! {
    /// A kernel that has run; written when it completes, so records are not in the order of their starts.
    struct rocprofiler_buffer_tracing_kernel_dispatch_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_kernel_dispatch_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_async_correlation_id_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Kernel, agent, queue and sizes of the dispatch.
        pub dispatch_info: rocprofiler_kernel_dispatch_info_t,
    }
}

c_struct! {
    /// A copy made by `hsa_amd_memory_async_copy*`; written when it completes.
    struct rocprofiler_buffer_tracing_memory_copy_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_memory_copy_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_async_correlation_id_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Agent whose memory the copy wrote.
        pub dst_agent_id: rocprofiler_agent_id_t,
        /// Agent whose memory the copy read.
        pub src_agent_id: rocprofiler_agent_id_t,
        /// Bytes copied; x·y·z for a rectangle.
        pub bytes: u64,
        /// First address written.
        pub dst_address: rocprofiler_address_t,
        /// First address read.
        pub src_address: rocprofiler_address_t,
    }
}

c_struct! {
    /// An allocation, or a release, of device memory.
    struct rocprofiler_buffer_tracing_memory_allocation_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_memory_allocation_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Agent that the memory belongs to; 0 when freeing.
        pub agent_id: rocprofiler_agent_id_t,
        /// Start of the memory, which pairs a release with its allocation.
        pub address: rocprofiler_address_t,
        /// Bytes allocated; 0 when freeing.
        pub allocation_size: u64,
    }
}

c_struct! {
    /// A change of the scratch memory of a queue.
    struct rocprofiler_buffer_tracing_scratch_memory_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_scratch_memory_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// GPU whose scratch memory changed.
        pub agent_id: rocprofiler_agent_id_t,
        /// HSA queue that uses the scratch memory.
        pub queue_id: rocprofiler_queue_id_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Whether the memory is released after one dispatch, and whether it is of the alternative area.
        pub flags: rocprofiler_scratch_alloc_flag_t,
        /// Bytes allocated; 0 when freeing.
        pub allocation_size: u64,
    }
}

c_struct! {
    /// A runtime registered its dispatch tables; `operation` names the runtime.
    struct rocprofiler_buffer_tracing_runtime_initialization_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Function or event of the kind; its numbers are those of the kind's operation enum.
        pub operation: rocprofiler_runtime_initialization_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// `gettid()` of the thread that made the call, or the call that caused the work.
        pub thread_id: rocprofiler_thread_id_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Version, `10000*major + 100*minor + patch`.
        pub version: u64,
        /// Number of this registration of the runtime's tables, from 0.
        pub instance: u64,
    }
}

c_struct! {
    /// No further record will have this correlation id.
    struct rocprofiler_buffer_tracing_correlation_id_retirement_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// The id that is no longer in use.
        pub internal_correlation_id: u64,
    }
}

c_struct! {
    /// A launch of a HIP graph that succeeded; times are those of the call, on the host.
    struct rocprofiler_buffer_tracing_hip_graph_record_t {
        /// Meaningful bytes of this struct: 96. Releases with a correlation id of 16 bytes have
        /// [`rocprofiler_buffer_tracing_hip_graph_async_record_t`], and 88.
        pub size: u64,
        /// `HIP_GRAPH`.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Always 0.
        pub operation: rocprofiler_tracing_operation_t,
        /// Correlation id of the call that launched the graph; 0 when it is not traced.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Thread that launched the graph.
        pub thread_id: rocprofiler_thread_id_t,
        /// Begin of the call.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End of the call.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Agent of the stream.
        pub agent_id: rocprofiler_agent_id_t,
        /// Always 0.
        pub queue_id: rocprofiler_queue_id_t,
        /// Number of the executable graph.
        pub graph_exec_id: rocprofiler_graph_exec_id_t,
        /// Kernels that the call submitted.
        pub kernel_dispatch_count: u64,
    }
}

c_struct! {
    /// A launch of a HIP graph that succeeded, in SDKs whose records of launches have a correlation id of 16 bytes; later ones have
    /// [`rocprofiler_buffer_tracing_hip_graph_record_t`].
    struct rocprofiler_buffer_tracing_hip_graph_async_record_t {
        /// Meaningful bytes of this struct: 88.
        pub size: u64,
        /// `HIP_GRAPH`.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Always 0.
        pub operation: rocprofiler_tracing_operation_t,
        /// Correlation id of the call that launched the graph; 0 when it is not traced.
        pub correlation_id: rocprofiler_async_correlation_id_t,
        /// Thread that launched the graph.
        pub thread_id: rocprofiler_thread_id_t,
        /// Begin of the call.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End of the call.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Agent of the stream.
        pub agent_id: rocprofiler_agent_id_t,
        /// Always 0.
        pub queue_id: rocprofiler_queue_id_t,
        /// Number of the executable graph.
        pub graph_exec_id: rocprofiler_graph_exec_id_t,
        /// Kernels that the call submitted.
        pub kernel_dispatch_count: u64,
    }
}

c_struct! {
    /// Work of the device for a HIP event.
    struct rocprofiler_buffer_tracing_hip_event_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// `HIP_EVENT`.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// RECORD or WAIT.
        pub operation: rocprofiler_hip_event_operation_t,
        /// Correlation id of the call.
        pub correlation_id: rocprofiler_async_correlation_id_t,
        /// Thread that made the call.
        pub thread_id: rocprofiler_thread_id_t,
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
