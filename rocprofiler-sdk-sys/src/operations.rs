//! Operations of the kinds that are not API calls. The ids of API calls are the slot numbers of the dispatch tables.

use crate::macros::c_enum;

c_enum! {
    /// Operations of `CODE_OBJECT` callbacks.
    rocprofiler_code_object_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_CODE_OBJECT_NONE",
        /// A code object is loaded or unloaded.
        LOAD = 1 => c"ROCPROFILER_CODE_OBJECT_LOAD",
        /// A kernel of a code object becomes known.
        DEVICE_KERNEL_SYMBOL_REGISTER = 2 => c"ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER",
        /// The host function of a kernel becomes known.
        HOST_KERNEL_SYMBOL_REGISTER = 3 => c"ROCPROFILER_CODE_OBJECT_HOST_KERNEL_SYMBOL_REGISTER",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_CODE_OBJECT_LAST",
    }
}

c_enum! {
    /// Operations of `HIP_STREAM` callbacks.
    rocprofiler_hip_stream_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_HIP_STREAM_NONE",
        /// A program created a stream; phase NONE.
        CREATE = 1 => c"ROCPROFILER_HIP_STREAM_CREATE",
        /// `hipStreamDestroy` was called; phase NONE.
        DESTROY = 2 => c"ROCPROFILER_HIP_STREAM_DESTROY",
        /// The calling thread works on a stream (enter to exit).
        SET = 3 => c"ROCPROFILER_HIP_STREAM_SET",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_HIP_STREAM_LAST",
    }
}

c_enum! {
    /// Operations of `HIP_GRAPH` callbacks; records have operation 0.
    rocprofiler_hip_graph_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_HIP_GRAPH_OPERATION_NONE",
        /// An executable graph was made; phase NONE.
        EXEC_CREATE = 1 => c"ROCPROFILER_HIP_GRAPH_OPERATION_EXEC_CREATE",
        /// An executable graph was destroyed; phase NONE.
        EXEC_DESTROY = 2 => c"ROCPROFILER_HIP_GRAPH_OPERATION_EXEC_DESTROY",
        /// The calling thread launches an executable graph (enter to exit).
        EXEC_LAUNCH = 3 => c"ROCPROFILER_HIP_GRAPH_OPERATION_EXEC_LAUNCH",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_HIP_GRAPH_OPERATION_LAST",
    }
}

c_enum! {
    /// Operations of `HIP_EVENT` callbacks and records.
    rocprofiler_hip_event_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_HIP_EVENT_NONE",
        /// The device records an event.
        RECORD = 1 => c"ROCPROFILER_HIP_EVENT_RECORD",
        /// The device waits for an event.
        WAIT = 2 => c"ROCPROFILER_HIP_EVENT_WAIT",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_HIP_EVENT_LAST",
    }
}

c_enum! {
    /// Operations of `KERNEL_REPLAY` callbacks.
    rocprofiler_kernel_replay_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_KERNEL_REPLAY_NONE",
        /// A dispatch may be run several times (enter to exit); on entry the tool decides.
        CONFIG = 1 => c"ROCPROFILER_KERNEL_REPLAY_CONFIG",
        /// One of the runs of a dispatch (enter to exit), inside of `CONFIG`.
        PASS = 2 => c"ROCPROFILER_KERNEL_REPLAY_PASS",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_KERNEL_REPLAY_LAST",
    }
}

c_enum! {
    /// Operations of `MEMORY_COPY` records: the direction, by the types of the agents.
    rocprofiler_memory_copy_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_MEMORY_COPY_NONE",
        /// Between CPU agents.
        HOST_TO_HOST = 1 => c"ROCPROFILER_MEMORY_COPY_HOST_TO_HOST",
        /// From a CPU to a GPU.
        HOST_TO_DEVICE = 2 => c"ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE",
        /// From a GPU to a CPU.
        DEVICE_TO_HOST = 3 => c"ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST",
        /// Within a GPU or between GPUs.
        DEVICE_TO_DEVICE = 4 => c"ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE",
        /// End marker of this version of the list.
        LAST = 5 => c"ROCPROFILER_MEMORY_COPY_LAST",
    }
}

c_enum! {
    /// Operations of `MEMORY_ALLOCATION` records and callbacks.
    rocprofiler_memory_allocation_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_MEMORY_ALLOCATION_NONE",
        /// Memory of a pool is allocated.
        ALLOCATE = 1 => c"ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE",
        /// A virtual memory handle is created.
        VMEM_ALLOCATE = 2 => c"ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE",
        /// Memory of a pool is released.
        FREE = 3 => c"ROCPROFILER_MEMORY_ALLOCATION_FREE",
        /// A virtual memory handle is released.
        VMEM_FREE = 4 => c"ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE",
        /// End marker of this version of the list.
        LAST = 5 => c"ROCPROFILER_MEMORY_ALLOCATION_LAST",
    }
}

c_enum! {
    /// Operations of `KERNEL_DISPATCH` callbacks; records have COMPLETE only.
    rocprofiler_kernel_dispatch_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_KERNEL_DISPATCH_NONE",
        /// The packet is written to the queue.
        ENQUEUE = 1 => c"ROCPROFILER_KERNEL_DISPATCH_ENQUEUE",
        /// The kernel has finished; timestamps are known.
        COMPLETE = 2 => c"ROCPROFILER_KERNEL_DISPATCH_COMPLETE",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_KERNEL_DISPATCH_LAST",
    }
}

c_enum! {
    /// Operations of `SCRATCH_MEMORY` records and callbacks.
    rocprofiler_scratch_memory_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_SCRATCH_MEMORY_NONE",
        /// The runtime provides scratch for a dispatch.
        ALLOC = 1 => c"ROCPROFILER_SCRATCH_MEMORY_ALLOC",
        /// Scratch of a queue is released.
        FREE = 2 => c"ROCPROFILER_SCRATCH_MEMORY_FREE",
        /// Scratch is taken back while the queue runs.
        ASYNC_RECLAIM = 3 => c"ROCPROFILER_SCRATCH_MEMORY_ASYNC_RECLAIM",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_SCRATCH_MEMORY_LAST",
    }
}

c_enum! {
    /// Properties of a scratch allocation (a bit mask).
    rocprofiler_scratch_alloc_flag_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_SCRATCH_ALLOC_FLAG_NONE",
        /// The memory is released after the dispatch.
        USE_ONCE = 1 => c"ROCPROFILER_SCRATCH_ALLOC_FLAG_USE_ONCE",
        /// The memory is from the alternative scratch area.
        ALT = 2 => c"ROCPROFILER_SCRATCH_ALLOC_FLAG_ALT",
    }
}

c_enum! {
    /// Operations of `RUNTIME_INITIALIZATION`: the runtime that registered its dispatch tables.
    rocprofiler_runtime_initialization_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_RUNTIME_INITIALIZATION_NONE",
        /// The HSA runtime, `libhsa-runtime64.so`.
        HSA = 1 => c"ROCPROFILER_RUNTIME_INITIALIZATION_HSA",
        /// The HIP runtime, `libamdhip64.so`.
        HIP = 2 => c"ROCPROFILER_RUNTIME_INITIALIZATION_HIP",
        /// The ROCTx library, `librocprofiler-sdk-roctx.so`.
        MARKER = 3 => c"ROCPROFILER_RUNTIME_INITIALIZATION_MARKER",
        /// `librccl.so`.
        RCCL = 4 => c"ROCPROFILER_RUNTIME_INITIALIZATION_RCCL",
        /// `librocdecode.so`.
        ROCDECODE = 5 => c"ROCPROFILER_RUNTIME_INITIALIZATION_ROCDECODE",
        /// `librocjpeg.so`.
        ROCJPEG = 6 => c"ROCPROFILER_RUNTIME_INITIALIZATION_ROCJPEG",
        /// End marker of this version of the list.
        LAST = 7 => c"ROCPROFILER_RUNTIME_INITIALIZATION_LAST",
    }
}

c_enum! {
    /// Scratch events as the HSA runtime numbers them. The number determines the valid member of the scratch arguments.
    hsa_amd_tool_event_kind_t: u32 {
        /// Lower bound; no event has this number.
        MIN = 0 => c"HSA_AMD_TOOL_EVENT_MIN",
        /// The runtime begins to look for scratch memory for a dispatch.
        SCRATCH_ALLOC_START = 1 => c"HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_START",
        /// The scratch memory for a dispatch was found, or could not be.
        SCRATCH_ALLOC_END = 2 => c"HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_END",
        /// The runtime begins to release the scratch memory of a queue.
        SCRATCH_FREE_START = 3 => c"HSA_AMD_TOOL_EVENT_SCRATCH_FREE_START",
        /// The scratch memory of a queue was released.
        SCRATCH_FREE_END = 4 => c"HSA_AMD_TOOL_EVENT_SCRATCH_FREE_END",
        /// The runtime begins to take scratch memory back from a queue that is alive.
        SCRATCH_ASYNC_RECLAIM_START = 5 => c"HSA_AMD_TOOL_EVENT_SCRATCH_ASYNC_RECLAIM_START",
        /// The scratch memory was taken back.
        SCRATCH_ASYNC_RECLAIM_END = 6 => c"HSA_AMD_TOOL_EVENT_SCRATCH_ASYNC_RECLAIM_END",
        /// One more than the highest event.
        MAX = 7 => c"HSA_AMD_TOOL_EVENT_MAX",
    }
}

c_enum! {
    /// Libraries that call the SDK or are traced by it, one bit each.
    rocprofiler_runtime_library_t: u32 {
        /// The SDK itself.
        LIBRARY = 1 => c"ROCPROFILER_LIBRARY",
        /// The HSA runtime, `libhsa-runtime64.so`.
        HSA_LIBRARY = 2 => c"ROCPROFILER_HSA_LIBRARY",
        /// The HIP runtime, `libamdhip64.so`.
        HIP_LIBRARY = 4 => c"ROCPROFILER_HIP_LIBRARY",
        /// The ROCTx library, `librocprofiler-sdk-roctx.so`.
        MARKER_LIBRARY = 8 => c"ROCPROFILER_MARKER_LIBRARY",
        /// `librccl.so`.
        RCCL_LIBRARY = 16 => c"ROCPROFILER_RCCL_LIBRARY",
        /// `librocdecode.so`.
        ROCDECODE_LIBRARY = 32 => c"ROCPROFILER_ROCDECODE_LIBRARY",
        /// `librocjpeg.so`.
        ROCJPEG_LIBRARY = 64 => c"ROCPROFILER_ROCJPEG_LIBRARY",
        /// The highest bit of this version.
        LIBRARY_LAST = 64 => c"ROCPROFILER_LIBRARY_LAST",
    }
}
