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
        /// A stream is created.
        CREATE = 1 => c"ROCPROFILER_HIP_STREAM_CREATE",
        /// A stream is destroyed.
        DESTROY = 2 => c"ROCPROFILER_HIP_STREAM_DESTROY",
        /// The calling thread works on a stream (enter to exit).
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
    /// Operations of the memory allocation kind.
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
        /// Released after the dispatch.
        USE_ONCE = 1 => c"ROCPROFILER_SCRATCH_ALLOC_FLAG_USE_ONCE",
        /// From the alternative scratch area.
        ALT = 2 => c"ROCPROFILER_SCRATCH_ALLOC_FLAG_ALT",
    }
}

c_enum! {
    /// Which runtime came up.
    rocprofiler_runtime_initialization_operation_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_RUNTIME_INITIALIZATION_NONE",
        /// HSA.
        HSA = 1 => c"ROCPROFILER_RUNTIME_INITIALIZATION_HSA",
        /// HIP.
        HIP = 2 => c"ROCPROFILER_RUNTIME_INITIALIZATION_HIP",
        /// Marker.
        MARKER = 3 => c"ROCPROFILER_RUNTIME_INITIALIZATION_MARKER",
        /// RCCL.
        RCCL = 4 => c"ROCPROFILER_RUNTIME_INITIALIZATION_RCCL",
        /// rocDecode.
        ROCDECODE = 5 => c"ROCPROFILER_RUNTIME_INITIALIZATION_ROCDECODE",
        /// rocJPEG.
        ROCJPEG = 6 => c"ROCPROFILER_RUNTIME_INITIALIZATION_ROCJPEG",
        /// End marker of this version of the list.
        LAST = 7 => c"ROCPROFILER_RUNTIME_INITIALIZATION_LAST",
    }
}

c_enum! {
    /// Scratch events as the HSA runtime numbers them; the number decides which member of the scratch arguments is valid.
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
        /// The SDK itself.
        LIBRARY = 1 => c"ROCPROFILER_LIBRARY",
        /// HSA library.
        HSA_LIBRARY = 2 => c"ROCPROFILER_HSA_LIBRARY",
        /// HIP library.
        HIP_LIBRARY = 4 => c"ROCPROFILER_HIP_LIBRARY",
        /// Marker library.
        MARKER_LIBRARY = 8 => c"ROCPROFILER_MARKER_LIBRARY",
        /// RCCL library.
        RCCL_LIBRARY = 16 => c"ROCPROFILER_RCCL_LIBRARY",
        /// rocDecode library.
        ROCDECODE_LIBRARY = 32 => c"ROCPROFILER_ROCDECODE_LIBRARY",
        /// rocJPEG library.
        ROCJPEG_LIBRARY = 64 => c"ROCPROFILER_ROCJPEG_LIBRARY",
        /// The highest bit of this version.
        LIBRARY_LAST = 64 => c"ROCPROFILER_LIBRARY_LAST",
    }
}
