//! Operations of the kinds that are not API calls. The ids of API calls are the slot numbers of the dispatch tables.

use crate::macros::c_enum;

c_enum! {
    /// Operations of the code object kind.
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
    /// Operations of the HIP stream kind.
    rocprofiler_hip_stream_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_HIP_STREAM_NONE",
        /// `ROCPROFILER_HIP_STREAM_CREATE`.
        CREATE = 1 => c"ROCPROFILER_HIP_STREAM_CREATE",
        /// `ROCPROFILER_HIP_STREAM_DESTROY`.
        DESTROY = 2 => c"ROCPROFILER_HIP_STREAM_DESTROY",
        /// `ROCPROFILER_HIP_STREAM_SET`.
        SET = 3 => c"ROCPROFILER_HIP_STREAM_SET",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_HIP_STREAM_LAST",
    }
}

c_enum! {
    /// Direction of a memory copy.
    rocprofiler_memory_copy_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_MEMORY_COPY_NONE",
        /// `ROCPROFILER_MEMORY_COPY_HOST_TO_HOST`.
        HOST_TO_HOST = 1 => c"ROCPROFILER_MEMORY_COPY_HOST_TO_HOST",
        /// `ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE`.
        HOST_TO_DEVICE = 2 => c"ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE",
        /// `ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST`.
        DEVICE_TO_HOST = 3 => c"ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST",
        /// `ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE`.
        DEVICE_TO_DEVICE = 4 => c"ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE",
        /// End marker of this version of the list.
        LAST = 5 => c"ROCPROFILER_MEMORY_COPY_LAST",
    }
}

c_enum! {
    /// Operations of the memory allocation kind.
    rocprofiler_memory_allocation_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_MEMORY_ALLOCATION_NONE",
        /// `ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE`.
        ALLOCATE = 1 => c"ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE",
        /// `ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE`.
        VMEM_ALLOCATE = 2 => c"ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE",
        /// `ROCPROFILER_MEMORY_ALLOCATION_FREE`.
        FREE = 3 => c"ROCPROFILER_MEMORY_ALLOCATION_FREE",
        /// `ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE`.
        VMEM_FREE = 4 => c"ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE",
        /// End marker of this version of the list.
        LAST = 5 => c"ROCPROFILER_MEMORY_ALLOCATION_LAST",
    }
}

c_enum! {
    /// Operations of the kernel dispatch kind.
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
    /// Operations of the scratch memory kind.
    rocprofiler_scratch_memory_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_SCRATCH_MEMORY_NONE",
        /// `ROCPROFILER_SCRATCH_MEMORY_ALLOC`.
        ALLOC = 1 => c"ROCPROFILER_SCRATCH_MEMORY_ALLOC",
        /// `ROCPROFILER_SCRATCH_MEMORY_FREE`.
        FREE = 2 => c"ROCPROFILER_SCRATCH_MEMORY_FREE",
        /// `ROCPROFILER_SCRATCH_MEMORY_ASYNC_RECLAIM`.
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
        /// `ROCPROFILER_SCRATCH_ALLOC_FLAG_USE_ONCE`.
        USE_ONCE = 1 => c"ROCPROFILER_SCRATCH_ALLOC_FLAG_USE_ONCE",
        /// `ROCPROFILER_SCRATCH_ALLOC_FLAG_ALT`.
        ALT = 2 => c"ROCPROFILER_SCRATCH_ALLOC_FLAG_ALT",
    }
}

c_enum! {
    /// Which runtime came up.
    rocprofiler_runtime_initialization_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_RUNTIME_INITIALIZATION_NONE",
        /// `ROCPROFILER_RUNTIME_INITIALIZATION_HSA`.
        HSA = 1 => c"ROCPROFILER_RUNTIME_INITIALIZATION_HSA",
        /// `ROCPROFILER_RUNTIME_INITIALIZATION_HIP`.
        HIP = 2 => c"ROCPROFILER_RUNTIME_INITIALIZATION_HIP",
        /// `ROCPROFILER_RUNTIME_INITIALIZATION_MARKER`.
        MARKER = 3 => c"ROCPROFILER_RUNTIME_INITIALIZATION_MARKER",
        /// `ROCPROFILER_RUNTIME_INITIALIZATION_RCCL`.
        RCCL = 4 => c"ROCPROFILER_RUNTIME_INITIALIZATION_RCCL",
        /// `ROCPROFILER_RUNTIME_INITIALIZATION_ROCDECODE`.
        ROCDECODE = 5 => c"ROCPROFILER_RUNTIME_INITIALIZATION_ROCDECODE",
        /// `ROCPROFILER_RUNTIME_INITIALIZATION_ROCJPEG`.
        ROCJPEG = 6 => c"ROCPROFILER_RUNTIME_INITIALIZATION_ROCJPEG",
        /// End marker of this version of the list.
        LAST = 7 => c"ROCPROFILER_RUNTIME_INITIALIZATION_LAST",
    }
}

c_enum! {
    /// Scratch events as the HSA runtime numbers them; says which member of the scratch arguments is live.
    hsa_amd_tool_event_kind_t: u32 {
        /// `HSA_AMD_TOOL_EVENT_MIN`.
        MIN = 0 => c"HSA_AMD_TOOL_EVENT_MIN",
        /// `HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_START`.
        SCRATCH_ALLOC_START = 1 => c"HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_START",
        /// `HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_END`.
        SCRATCH_ALLOC_END = 2 => c"HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_END",
        /// `HSA_AMD_TOOL_EVENT_SCRATCH_FREE_START`.
        SCRATCH_FREE_START = 3 => c"HSA_AMD_TOOL_EVENT_SCRATCH_FREE_START",
        /// `HSA_AMD_TOOL_EVENT_SCRATCH_FREE_END`.
        SCRATCH_FREE_END = 4 => c"HSA_AMD_TOOL_EVENT_SCRATCH_FREE_END",
        /// `HSA_AMD_TOOL_EVENT_SCRATCH_ASYNC_RECLAIM_START`.
        SCRATCH_ASYNC_RECLAIM_START = 5 => c"HSA_AMD_TOOL_EVENT_SCRATCH_ASYNC_RECLAIM_START",
        /// `HSA_AMD_TOOL_EVENT_SCRATCH_ASYNC_RECLAIM_END`.
        SCRATCH_ASYNC_RECLAIM_END = 6 => c"HSA_AMD_TOOL_EVENT_SCRATCH_ASYNC_RECLAIM_END",
        /// `HSA_AMD_TOOL_EVENT_MAX`.
        MAX = 7 => c"HSA_AMD_TOOL_EVENT_MAX",
    }
}

c_enum! {
    /// Runtime libraries (a bit mask).
    rocprofiler_runtime_library_t: u32 {
        /// `ROCPROFILER_LIBRARY`.
        LIBRARY = 1 => c"ROCPROFILER_LIBRARY",
        /// `ROCPROFILER_HSA_LIBRARY`.
        HSA_LIBRARY = 2 => c"ROCPROFILER_HSA_LIBRARY",
        /// `ROCPROFILER_HIP_LIBRARY`.
        HIP_LIBRARY = 4 => c"ROCPROFILER_HIP_LIBRARY",
        /// `ROCPROFILER_MARKER_LIBRARY`.
        MARKER_LIBRARY = 8 => c"ROCPROFILER_MARKER_LIBRARY",
        /// `ROCPROFILER_RCCL_LIBRARY`.
        RCCL_LIBRARY = 16 => c"ROCPROFILER_RCCL_LIBRARY",
        /// `ROCPROFILER_ROCDECODE_LIBRARY`.
        ROCDECODE_LIBRARY = 32 => c"ROCPROFILER_ROCDECODE_LIBRARY",
        /// `ROCPROFILER_ROCJPEG_LIBRARY`.
        ROCJPEG_LIBRARY = 64 => c"ROCPROFILER_ROCJPEG_LIBRARY",
        /// The highest bit of this version.
        LIBRARY_LAST = 64 => c"ROCPROFILER_LIBRARY_LAST",
    }
}
