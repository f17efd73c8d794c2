//! Kinds of records of the three tracing services.

use crate::macros::c_enum;

c_enum! {
    /// Subject of a buffer tracing record, which determines the type of the record.
    rocprofiler_buffer_tracing_kind_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_BUFFER_TRACING_NONE",
        /// Calls of the HSA standard's functions (`hsa_*`).
        HSA_CORE_API = 1 => c"ROCPROFILER_BUFFER_TRACING_HSA_CORE_API",
        /// Calls of HSA's AMD extension (`hsa_amd_*`).
        HSA_AMD_EXT_API = 2 => c"ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API",
        /// Calls of HSA's image extension (`hsa_ext_image_*`).
        HSA_IMAGE_EXT_API = 3 => c"ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API",
        /// Calls of HSA's finalizer extension (`hsa_ext_program_*`).
        HSA_FINALIZE_EXT_API = 4 => c"ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API",
        /// Calls of HIP functions that programs make.
        HIP_RUNTIME_API = 5 => c"ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API",
        /// Calls of HIP functions that the compiler inserts (`__hip*`).
        HIP_COMPILER_API = 6 => c"ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API",
        /// ROCTx calls one by one.
        MARKER_CORE_API = 7 => c"ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API",
        /// ROCTx pause and resume.
        MARKER_CONTROL_API = 8 => c"ROCPROFILER_BUFFER_TRACING_MARKER_CONTROL_API",
        /// ROCTx naming calls.
        MARKER_NAME_API = 9 => c"ROCPROFILER_BUFFER_TRACING_MARKER_NAME_API",
        /// Asynchronous copies by the HSA runtime.
        MEMORY_COPY = 10 => c"ROCPROFILER_BUFFER_TRACING_MEMORY_COPY",
        /// Kernels that queues were given to run.
        KERNEL_DISPATCH = 11 => c"ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH",
        /// Allocation, release and reclaim of the scratch memory of queues.
        SCRATCH_MEMORY = 12 => c"ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY",
        /// Correlation ids that no further record will carry.
        CORRELATION_ID_RETIREMENT = 13 => c"ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT",
        /// Calls of RCCL (`nccl*`).
        RCCL_API = 14 => c"ROCPROFILER_BUFFER_TRACING_RCCL_API",
        /// OpenMP events.
        OMPT = 15 => c"ROCPROFILER_BUFFER_TRACING_OMPT",
        /// Allocation and release of device memory.
        MEMORY_ALLOCATION = 16 => c"ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION",
        /// Registration of the dispatch tables of a runtime.
        RUNTIME_INITIALIZATION = 17 => c"ROCPROFILER_BUFFER_TRACING_RUNTIME_INITIALIZATION",
        /// rocDecode calls.
        ROCDECODE_API = 18 => c"ROCPROFILER_BUFFER_TRACING_ROCDECODE_API",
        /// rocJPEG calls.
        ROCJPEG_API = 19 => c"ROCPROFILER_BUFFER_TRACING_ROCJPEG_API",
        /// HIP streams; no buffer record of this kind is delivered.
        HIP_STREAM = 20 => c"ROCPROFILER_BUFFER_TRACING_HIP_STREAM",
        /// HIP runtime calls with arguments.
        HIP_RUNTIME_API_EXT = 21 => c"ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT",
        /// HIP compiler calls with arguments.
        HIP_COMPILER_API_EXT = 22 => c"ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT",
        /// rocDecode calls with arguments.
        ROCDECODE_API_EXT = 23 => c"ROCPROFILER_BUFFER_TRACING_ROCDECODE_API_EXT",
        /// Begin or end of a page migration, as the driver reports it.
        KFD_EVENT_PAGE_MIGRATE = 24 => c"ROCPROFILER_BUFFER_TRACING_KFD_EVENT_PAGE_MIGRATE",
        /// Begin or end of a GPU's page fault, as the driver reports it.
        KFD_EVENT_PAGE_FAULT = 25 => c"ROCPROFILER_BUFFER_TRACING_KFD_EVENT_PAGE_FAULT",
        /// Eviction or restoration of queues, as the driver reports it.
        KFD_EVENT_QUEUE = 26 => c"ROCPROFILER_BUFFER_TRACING_KFD_EVENT_QUEUE",
        /// Removal of a range from the page tables of a GPU.
        KFD_EVENT_UNMAP_FROM_GPU = 27 => c"ROCPROFILER_BUFFER_TRACING_KFD_EVENT_UNMAP_FROM_GPU",
        /// Number of events that the driver lost.
        KFD_EVENT_DROPPED_EVENTS = 28 => c"ROCPROFILER_BUFFER_TRACING_KFD_EVENT_DROPPED_EVENTS",
        /// Page migrations from begin to end.
        KFD_PAGE_MIGRATE = 29 => c"ROCPROFILER_BUFFER_TRACING_KFD_PAGE_MIGRATE",
        /// Page faults of GPUs from begin to end.
        KFD_PAGE_FAULT = 30 => c"ROCPROFILER_BUFFER_TRACING_KFD_PAGE_FAULT",
        /// Evictions of queues up to the restoration.
        KFD_QUEUE = 31 => c"ROCPROFILER_BUFFER_TRACING_KFD_QUEUE",
        /// ROCTx ranges, start and end joined.
        MARKER_CORE_RANGE_API = 32 => c"ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API",
        /// Launches of HIP graphs; SDK 1.3.
        HIP_GRAPH = 33 => c"ROCPROFILER_BUFFER_TRACING_HIP_GRAPH",
        /// rocSHMEM calls; SDK 1.3.
        ROCSHMEM_API = 34 => c"ROCPROFILER_BUFFER_TRACING_ROCSHMEM_API",
        /// rocSHMEM calls with arguments; SDK 1.3.
        ROCSHMEM_API_EXT = 35 => c"ROCPROFILER_BUFFER_TRACING_ROCSHMEM_API_EXT",
        /// hipFile calls; SDK 1.3.5.
        HIPFILE_API = 36 => c"ROCPROFILER_BUFFER_TRACING_HIPFILE_API",
        /// hipFile calls with arguments; SDK 1.3.5.
        HIPFILE_API_EXT = 37 => c"ROCPROFILER_BUFFER_TRACING_HIPFILE_API_EXT",
        /// HIP events on the device; SDK 1.4.1.
        HIP_EVENT = 38 => c"ROCPROFILER_BUFFER_TRACING_HIP_EVENT",
        /// End marker of this version of the list.
        LAST = 39 => c"ROCPROFILER_BUFFER_TRACING_LAST",
    }
}

c_enum! {
    /// Subject of a callback, which determines the type of the payload.
    rocprofiler_callback_tracing_kind_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_CALLBACK_TRACING_NONE",
        /// Calls of the HSA standard's functions (`hsa_*`).
        HSA_CORE_API = 1 => c"ROCPROFILER_CALLBACK_TRACING_HSA_CORE_API",
        /// Calls of HSA's AMD extension (`hsa_amd_*`).
        HSA_AMD_EXT_API = 2 => c"ROCPROFILER_CALLBACK_TRACING_HSA_AMD_EXT_API",
        /// Calls of HSA's image extension (`hsa_ext_image_*`).
        HSA_IMAGE_EXT_API = 3 => c"ROCPROFILER_CALLBACK_TRACING_HSA_IMAGE_EXT_API",
        /// Calls of HSA's finalizer extension (`hsa_ext_program_*`).
        HSA_FINALIZE_EXT_API = 4 => c"ROCPROFILER_CALLBACK_TRACING_HSA_FINALIZE_EXT_API",
        /// Calls of HIP functions that programs make.
        HIP_RUNTIME_API = 5 => c"ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API",
        /// Calls of HIP functions that the compiler inserts (`__hip*`).
        HIP_COMPILER_API = 6 => c"ROCPROFILER_CALLBACK_TRACING_HIP_COMPILER_API",
        /// ROCTx calls one by one.
        MARKER_CORE_API = 7 => c"ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API",
        /// ROCTx pause and resume.
        MARKER_CONTROL_API = 8 => c"ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API",
        /// ROCTx naming calls.
        MARKER_NAME_API = 9 => c"ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API",
        /// Load and unload of code objects, and their kernel symbols.
        CODE_OBJECT = 10 => c"ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT",
        /// Allocation, release and reclaim of the scratch memory of queues.
        SCRATCH_MEMORY = 11 => c"ROCPROFILER_CALLBACK_TRACING_SCRATCH_MEMORY",
        /// Kernels that queues were given to run.
        KERNEL_DISPATCH = 12 => c"ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH",
        /// Asynchronous copies by the HSA runtime.
        MEMORY_COPY = 13 => c"ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY",
        /// Calls of RCCL (`nccl*`).
        RCCL_API = 14 => c"ROCPROFILER_CALLBACK_TRACING_RCCL_API",
        /// OpenMP events.
        OMPT = 15 => c"ROCPROFILER_CALLBACK_TRACING_OMPT",
        /// Allocation and release of device memory.
        MEMORY_ALLOCATION = 16 => c"ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION",
        /// Registration of the dispatch tables of a runtime.
        RUNTIME_INITIALIZATION = 17 => c"ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION",
        /// rocDecode calls.
        ROCDECODE_API = 18 => c"ROCPROFILER_CALLBACK_TRACING_ROCDECODE_API",
        /// rocJPEG calls.
        ROCJPEG_API = 19 => c"ROCPROFILER_CALLBACK_TRACING_ROCJPEG_API",
        /// Creation and destruction of HIP streams, and calls that work on one.
        HIP_STREAM = 20 => c"ROCPROFILER_CALLBACK_TRACING_HIP_STREAM",
        /// ROCTx ranges, start and end joined.
        MARKER_CORE_RANGE_API = 21 => c"ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API",
        /// Executable HIP graphs and their launches; SDK 1.3.
        HIP_GRAPH = 22 => c"ROCPROFILER_CALLBACK_TRACING_HIP_GRAPH",
        /// rocSHMEM calls; SDK 1.3.
        ROCSHMEM_API = 23 => c"ROCPROFILER_CALLBACK_TRACING_ROCSHMEM_API",
        /// hipFile calls; SDK 1.3.5.
        HIPFILE_API = 24 => c"ROCPROFILER_CALLBACK_TRACING_HIPFILE_API",
        /// HIP events on the device; SDK 1.4.1.
        HIP_EVENT = 25 => c"ROCPROFILER_CALLBACK_TRACING_HIP_EVENT",
        /// Dispatches that are run several times; SDK 1.4.1.
        KERNEL_REPLAY = 26 => c"ROCPROFILER_CALLBACK_TRACING_KERNEL_REPLAY",
        /// End marker of this version of the list.
        LAST = 27 => c"ROCPROFILER_CALLBACK_TRACING_LAST",
    }
}

c_enum! {
    /// Kinds of work for which a tool's callback gives an external correlation id.
    rocprofiler_external_correlation_id_request_kind_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_NONE",
        /// Calls of the HSA standard's functions (`hsa_*`).
        HSA_CORE_API = 1 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_CORE_API",
        /// Calls of HSA's AMD extension (`hsa_amd_*`).
        HSA_AMD_EXT_API = 2 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_AMD_EXT_API",
        /// Calls of HSA's image extension (`hsa_ext_image_*`).
        HSA_IMAGE_EXT_API = 3 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_IMAGE_EXT_API",
        /// Calls of HSA's finalizer extension (`hsa_ext_program_*`).
        HSA_FINALIZE_EXT_API = 4 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_FINALIZE_EXT_API",
        /// Calls of HIP functions that programs make.
        HIP_RUNTIME_API = 5 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_RUNTIME_API",
        /// Calls of HIP functions that the compiler inserts (`__hip*`).
        HIP_COMPILER_API = 6 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_COMPILER_API",
        /// ROCTx calls one by one.
        MARKER_CORE_API = 7 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CORE_API",
        /// ROCTx pause and resume.
        MARKER_CONTROL_API = 8 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CONTROL_API",
        /// ROCTx naming calls.
        MARKER_NAME_API = 9 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_NAME_API",
        /// Asynchronous copies by the HSA runtime.
        MEMORY_COPY = 10 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY",
        /// Kernels that queues were given to run.
        KERNEL_DISPATCH = 11 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH",
        /// Allocation, release and reclaim of the scratch memory of queues.
        SCRATCH_MEMORY = 12 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_SCRATCH_MEMORY",
        /// Calls of RCCL (`nccl*`).
        RCCL_API = 13 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_RCCL_API",
        /// OpenMP events.
        OMPT = 14 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_OMPT",
        /// Allocation and release of device memory.
        MEMORY_ALLOCATION = 15 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_ALLOCATION",
        /// rocDecode calls.
        ROCDECODE_API = 16 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_ROCDECODE_API",
        /// rocJPEG calls.
        ROCJPEG_API = 17 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_ROCJPEG_API",
        /// ROCTx ranges, start and end joined.
        MARKER_CORE_RANGE_API = 18 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CORE_RANGE_API",
        /// HIP events on the device; SDK 1.4.1.
        HIP_EVENT = 19 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_EVENT",
        /// End marker of this version of the list.
        LAST = 20 => c"ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_LAST",
    }
}
