//! Values and C names of the enumerators.

use std::ffi::CStr;

use rocprofiler_sdk_sys::*;

fn c_name(bytes: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(bytes.as_bytes()).expect("one zero byte at the end")
}

/// `type "common prefix of the C names" { constant value, ... }`, complete and in order.
macro_rules! values {
    ($( $ty:ident $prefix:literal { $( $name:ident $value:literal, )* } )*) => {
        $(
            let all = [ $( ($ty::$name, $value as i64, c_name(concat!($prefix, stringify!($name), "\0"))), )* ];
            assert_eq!(size_of::<$ty>(), 4);
            assert_eq!($ty::ALL.len(), all.len(), "{}", stringify!($ty));
            for ((constant, value, name), (listed, c_name)) in all.into_iter().zip($ty::ALL) {
                assert_eq!(i64::from(constant.0), value, "{name:?}");
                assert_eq!((constant, name), (*listed, *c_name));
            }
        )*
    };
}

#[test]
fn enums_of_tracing_have_the_values_of_the_headers() {
    values! {
        rocprofiler_code_object_operation_t "ROCPROFILER_CODE_OBJECT_" {
            NONE 0, LOAD 1, DEVICE_KERNEL_SYMBOL_REGISTER 2, HOST_KERNEL_SYMBOL_REGISTER 3, LAST 4,
        }
        rocprofiler_hip_graph_operation_t "ROCPROFILER_HIP_GRAPH_OPERATION_" {
            NONE 0, EXEC_CREATE 1, EXEC_DESTROY 2, EXEC_LAUNCH 3, LAST 4,
        }
        rocprofiler_hip_event_operation_t "ROCPROFILER_HIP_EVENT_" {
            NONE 0, RECORD 1, WAIT 2, LAST 3,
        }
        rocprofiler_kernel_replay_operation_t "ROCPROFILER_KERNEL_REPLAY_" {
            NONE 0, CONFIG 1, PASS 2, LAST 3,
        }
        rocprofiler_hip_stream_operation_t "ROCPROFILER_HIP_STREAM_" {
            NONE 0, CREATE 1, DESTROY 2, SET 3, LAST 4,
        }
        rocprofiler_memory_copy_operation_t "ROCPROFILER_MEMORY_COPY_" {
            NONE 0, HOST_TO_HOST 1, HOST_TO_DEVICE 2, DEVICE_TO_HOST 3, DEVICE_TO_DEVICE 4, LAST 5,
        }
        rocprofiler_memory_allocation_operation_t "ROCPROFILER_MEMORY_ALLOCATION_" {
            NONE 0, ALLOCATE 1, VMEM_ALLOCATE 2, FREE 3, VMEM_FREE 4, LAST 5,
        }
        rocprofiler_kernel_dispatch_operation_t "ROCPROFILER_KERNEL_DISPATCH_" {
            NONE 0, ENQUEUE 1, COMPLETE 2, LAST 3,
        }
        rocprofiler_scratch_memory_operation_t "ROCPROFILER_SCRATCH_MEMORY_" {
            NONE 0, ALLOC 1, FREE 2, ASYNC_RECLAIM 3, LAST 4,
        }
        rocprofiler_runtime_initialization_operation_t "ROCPROFILER_RUNTIME_INITIALIZATION_" {
            NONE 0, HSA 1, HIP 2, MARKER 3, RCCL 4, ROCDECODE 5, ROCJPEG 6, LAST 7,
        }
        rocprofiler_marker_core_api_id_t "ROCPROFILER_MARKER_CORE_API_ID_" {
            NONE -1, roctxMarkA 0, roctxRangePushA 1, roctxRangePop 2, roctxRangeStartA 3, roctxRangeStop 4,
            roctxGetThreadId 5, LAST 6,
        }
        rocprofiler_marker_control_api_id_t "ROCPROFILER_MARKER_CONTROL_API_ID_" {
            NONE -1, roctxProfilerPause 0, roctxProfilerResume 1, LAST 2,
        }
        rocprofiler_marker_name_api_id_t "ROCPROFILER_MARKER_NAME_API_ID_" {
            NONE -1, roctxNameOsThread 0, roctxNameHsaAgent 1, roctxNameHipDevice 2, roctxNameHipStream 3,
            LAST 4,
        }
        rocprofiler_marker_core_range_api_id_t "ROCPROFILER_MARKER_CORE_RANGE_API_ID_" {
            NONE -1, roctxMarkA 0, roctxThreadRangeA 1, roctxProcessRangeA 2, roctxGetThreadId 3, LAST 4,
        }
        rocprofiler_marker_table_id_t "ROCPROFILER_MARKER_TABLE_ID_" {
            NONE -1, RoctxCore 0, RoctxControl 1, RoctxName 2, RoctxCoreRange 3, LAST 4,
        }
        rocprofiler_ompt_operation_t "ROCPROFILER_OMPT_ID_" {
            NONE -1, thread_begin 0, thread_end 1, parallel_begin 2, parallel_end 3, task_create 4,
            task_schedule 5, implicit_task 6, device_initialize 7, device_finalize 8, device_load 9,
            sync_region_wait 10, mutex_released 11, dependences 12, task_dependence 13, work 14, masked 15,
            sync_region 16, lock_init 17, lock_destroy 18, mutex_acquire 19, mutex_acquired 20, nest_lock 21,
            flush 22, cancel 23, reduction 24, dispatch 25, target_emi 26, target_data_op_emi 27,
            target_submit_emi 28, error 29, callback_functions 30, LAST 31,
        }
        rocprofiler_buffer_tracing_kind_t "ROCPROFILER_BUFFER_TRACING_" {
            NONE 0, HSA_CORE_API 1, HSA_AMD_EXT_API 2, HSA_IMAGE_EXT_API 3, HSA_FINALIZE_EXT_API 4,
            HIP_RUNTIME_API 5, HIP_COMPILER_API 6, MARKER_CORE_API 7, MARKER_CONTROL_API 8, MARKER_NAME_API 9,
            MEMORY_COPY 10, KERNEL_DISPATCH 11, SCRATCH_MEMORY 12, CORRELATION_ID_RETIREMENT 13, RCCL_API 14,
            OMPT 15, MEMORY_ALLOCATION 16, RUNTIME_INITIALIZATION 17, ROCDECODE_API 18, ROCJPEG_API 19,
            HIP_STREAM 20, HIP_RUNTIME_API_EXT 21, HIP_COMPILER_API_EXT 22, ROCDECODE_API_EXT 23,
            KFD_EVENT_PAGE_MIGRATE 24, KFD_EVENT_PAGE_FAULT 25, KFD_EVENT_QUEUE 26,
            KFD_EVENT_UNMAP_FROM_GPU 27, KFD_EVENT_DROPPED_EVENTS 28, KFD_PAGE_MIGRATE 29, KFD_PAGE_FAULT 30,
            KFD_QUEUE 31, MARKER_CORE_RANGE_API 32, HIP_GRAPH 33, ROCSHMEM_API 34, ROCSHMEM_API_EXT 35,
            HIPFILE_API 36, HIPFILE_API_EXT 37, HIP_EVENT 38, LAST 39,
        }
        rocprofiler_callback_tracing_kind_t "ROCPROFILER_CALLBACK_TRACING_" {
            NONE 0, HSA_CORE_API 1, HSA_AMD_EXT_API 2, HSA_IMAGE_EXT_API 3, HSA_FINALIZE_EXT_API 4,
            HIP_RUNTIME_API 5, HIP_COMPILER_API 6, MARKER_CORE_API 7, MARKER_CONTROL_API 8, MARKER_NAME_API 9,
            CODE_OBJECT 10, SCRATCH_MEMORY 11, KERNEL_DISPATCH 12, MEMORY_COPY 13, RCCL_API 14, OMPT 15,
            MEMORY_ALLOCATION 16, RUNTIME_INITIALIZATION 17, ROCDECODE_API 18, ROCJPEG_API 19, HIP_STREAM 20,
            MARKER_CORE_RANGE_API 21, HIP_GRAPH 22, ROCSHMEM_API 23, HIPFILE_API 24, HIP_EVENT 25,
            KERNEL_REPLAY 26, LAST 27,
        }
    }
}

#[test]
fn enums_of_counters_sampling_and_thread_trace_have_the_values_of_the_headers() {
    values! {
        rocprofiler_counter_record_kind_t "ROCPROFILER_COUNTER_RECORD_" {
            NONE 0, PROFILE_COUNTING_DISPATCH_HEADER 1, VALUE 2, LAST 3,
        }
        rocprofiler_counter_flag_t "ROCPROFILER_COUNTER_FLAG_" {
            NONE 0, ASYNC 1, APPEND_DEFINITION 2, LAST 3,
        }
        rocprofiler_counter_info_version_id_t "ROCPROFILER_COUNTER_INFO_" {
            VERSION_NONE 0, VERSION_0 1, VERSION_1 2, VERSION_LAST 3,
        }
        rocprofiler_pc_sampling_method_t "ROCPROFILER_PC_SAMPLING_METHOD_" {
            NONE 0, STOCHASTIC 1, HOST_TRAP 2, LAST 3,
        }
        rocprofiler_pc_sampling_unit_t "ROCPROFILER_PC_SAMPLING_UNIT_" {
            NONE 0, INSTRUCTIONS 1, CYCLES 2, TIME 3, LAST 4,
        }
        rocprofiler_pc_sampling_record_kind_t "ROCPROFILER_PC_SAMPLING_RECORD_" {
            NONE 0, INVALID_SAMPLE 1, HOST_TRAP_V0_SAMPLE 2, STOCHASTIC_V0_SAMPLE 3, LAST 4,
        }
        rocprofiler_pc_sampling_configuration_flags_t "ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_" {
            NONE 0, INTERVAL_POW2 1, LAST 2,
        }
        rocprofiler_pc_sampling_instruction_type_t "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_" {
            NONE 0, VALU 1, MATRIX 2, SCALAR 3, TEX 4, LDS 5, LDS_DIRECT 6, FLAT 7, EXPORT 8, MESSAGE 9,
            BARRIER 10, BRANCH_NOT_TAKEN 11, BRANCH_TAKEN 12, JUMP 13, OTHER 14, NO_INST 15, DUAL_VALU 16,
            LAST 17,
        }
        rocprofiler_pc_sampling_instruction_not_issued_reason_t "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_" {
            NONE 0, NO_INSTRUCTION_AVAILABLE 1, ALU_DEPENDENCY 2, WAITCNT 3, INTERNAL_INSTRUCTION 4,
            BARRIER_WAIT 5, ARBITER_NOT_WIN 6, ARBITER_WIN_EX_STALL 7, OTHER_WAIT 8, SLEEP_WAIT 9, LAST 10,
        }
        rocprofiler_thread_trace_parameter_type_t "ROCPROFILER_THREAD_TRACE_PARAMETER_" {
            TARGET_CU 0, SHADER_ENGINE_MASK 1, BUFFER_SIZE 2, SIMD_SELECT 3, PERFCOUNTERS_CTRL 4,
            PERFCOUNTER 5, SERIALIZE_ALL 6, LAST 7,
        }
        rocprofiler_thread_trace_control_flags_t "ROCPROFILER_THREAD_TRACE_CONTROL_" {
            NONE 0, START_AND_STOP 3,
        }
        rocprofiler_thread_trace_decoder_record_type_t "ROCPROFILER_THREAD_TRACE_DECODER_RECORD_" {
            GFXIP 0, OCCUPANCY 1, PERFEVENT 2, WAVE 3, INFO 4, DEBUG 5, LAST 6,
        }
        rocprofiler_thread_trace_decoder_info_t "ROCPROFILER_THREAD_TRACE_DECODER_INFO_" {
            NONE 0, DATA_LOST 1, STITCH_INCOMPLETE 2, LAST 3,
        }
        rocprofiler_thread_trace_decoder_wstate_type_t "ROCPROFILER_THREAD_TRACE_DECODER_WSTATE_" {
            EMPTY 0, IDLE 1, EXEC 2, WAIT 3, STALL 4, LAST 5,
        }
        rocprofiler_thread_trace_decoder_inst_category_t "ROCPROFILER_THREAD_TRACE_DECODER_INST_" {
            NONE 0, SMEM 1, SALU 2, VMEM 3, FLAT 4, LDS 5, VALU 6, JUMP 7, NEXT 8, IMMED 9, CONTEXT 10,
            MESSAGE 11, BVH 12, LAST 13,
        }
    }
}

#[test]
fn enums_of_the_kernel_driver_have_the_values_of_the_headers() {
    values! {
        rocprofiler_kfd_event_page_migrate_operation_t "ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_" {
            NONE -1, PREFETCH 0, PAGEFAULT_GPU 1, PAGEFAULT_CPU 2, TTM_EVICTION 3, END 4, LAST 5,
        }
        rocprofiler_kfd_event_page_fault_operation_t "ROCPROFILER_KFD_EVENT_PAGE_FAULT_" {
            NONE -1, START 0, START_READ_FAULT 1, START_WRITE_FAULT 2, END_PAGE_MIGRATED 3,
            END_PAGE_UPDATED 4, LAST 5,
        }
        rocprofiler_kfd_event_queue_operation_t "ROCPROFILER_KFD_EVENT_QUEUE_" {
            NONE -1, EVICT_SVM 0, EVICT_USERPTR 1, EVICT_TTM 2, EVICT_SUSPEND 3, EVICT_CRIU_CHECKPOINT 4,
            EVICT_CRIU_RESTORE 5, RESTORE_RESCHEDULED 6, RESTORE 7, LAST 8,
        }
        rocprofiler_kfd_event_unmap_from_gpu_operation_t "ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_" {
            NONE -1, MMU_NOTIFY 0, MMU_NOTIFY_MIGRATE 1, UNMAP_FROM_CPU 2, LAST 3,
        }
        rocprofiler_kfd_event_dropped_events_operation_t "ROCPROFILER_KFD_EVENT_" {
            DROPPED_EVENTS_NONE -1, DROPPED_EVENTS 0, DROPPED_EVENTS_LAST 1,
        }
        rocprofiler_kfd_page_migrate_operation_t "ROCPROFILER_KFD_PAGE_MIGRATE_" {
            NONE -1, PREFETCH 0, PAGEFAULT_GPU 1, PAGEFAULT_CPU 2, TTM_EVICTION 3, LAST 4,
        }
        rocprofiler_kfd_page_fault_operation_t "ROCPROFILER_KFD_PAGE_FAULT_" {
            NONE -1, READ_FAULT_MIGRATED 0, READ_FAULT_UPDATED 1, WRITE_FAULT_MIGRATED 2,
            WRITE_FAULT_UPDATED 3, LAST 4,
        }
        rocprofiler_kfd_queue_operation_t "ROCPROFILER_KFD_QUEUE_" {
            NONE -1, EVICT_SVM 0, EVICT_USERPTR 1, EVICT_TTM 2, EVICT_SUSPEND 3, EVICT_CRIU_CHECKPOINT 4,
            EVICT_CRIU_RESTORE 5, LAST 6,
        }
    }
}

#[test]
fn enums_of_statuses_and_agents_have_the_values_of_the_headers() {
    values! {
        rocprofiler_status_t "ROCPROFILER_STATUS_" {
            SUCCESS 0, ERROR 1, ERROR_CONTEXT_NOT_FOUND 2, ERROR_BUFFER_NOT_FOUND 3, ERROR_KIND_NOT_FOUND 4,
            ERROR_OPERATION_NOT_FOUND 5, ERROR_THREAD_NOT_FOUND 6, ERROR_AGENT_NOT_FOUND 7,
            ERROR_COUNTER_NOT_FOUND 8, ERROR_CONTEXT_ERROR 9, ERROR_CONTEXT_INVALID 10,
            ERROR_CONTEXT_NOT_STARTED 11, ERROR_CONTEXT_CONFLICT 12, ERROR_CONTEXT_ID_NOT_ZERO 13,
            ERROR_BUFFER_BUSY 14, ERROR_SERVICE_ALREADY_CONFIGURED 15, ERROR_CONFIGURATION_LOCKED 16,
            ERROR_NOT_IMPLEMENTED 17, ERROR_INCOMPATIBLE_ABI 18, ERROR_INVALID_ARGUMENT 19,
            ERROR_METRIC_NOT_VALID_FOR_AGENT 20, ERROR_FINALIZED 21, ERROR_HSA_NOT_LOADED 22,
            ERROR_DIM_NOT_FOUND 23, ERROR_PROFILE_COUNTER_NOT_FOUND 24, ERROR_AST_GENERATION_FAILED 25,
            ERROR_AST_NOT_FOUND 26, ERROR_AQL_NO_EVENT_COORD 27, ERROR_INCOMPATIBLE_KERNEL 28,
            ERROR_OUT_OF_RESOURCES 29, ERROR_PROFILE_NOT_FOUND 30, ERROR_AGENT_DISPATCH_CONFLICT 31,
            INTERNAL_NO_AGENT_CONTEXT 32, ERROR_SAMPLE_RATE_EXCEEDED 33, ERROR_NO_PROFILE_QUEUE 34,
            ERROR_NO_HARDWARE_COUNTERS 35, ERROR_AGENT_MISMATCH 36, ERROR_NOT_AVAILABLE 37,
            ERROR_EXCEEDS_HW_LIMIT 38, ERROR_AGENT_ARCH_NOT_SUPPORTED 39, ERROR_PERMISSION_DENIED 40, LAST 41,
        }
        rocprofiler_callback_phase_t "ROCPROFILER_CALLBACK_PHASE_" {
            NONE 0, ENTER 1, LOAD 1, EXIT 2, UNLOAD 2, LAST 3,
        }
        rocprofiler_buffer_category_t "ROCPROFILER_BUFFER_CATEGORY_" {
            NONE 0, TRACING 1, PC_SAMPLING 2, COUNTERS 3, LAST 4,
        }
        rocprofiler_buffer_policy_t "ROCPROFILER_BUFFER_POLICY_" {
            NONE 0, DISCARD 1, LOSSLESS 2, LAST 3,
        }
        rocprofiler_agent_version_t "ROCPROFILER_AGENT_INFO_" {
            VERSION_NONE 0, VERSION_0 1, VERSION_LAST 2,
        }
        rocprofiler_agent_type_t "ROCPROFILER_AGENT_TYPE_" {
            NONE 0, CPU 1, GPU 2, LAST 3,
        }
        rocprofiler_code_object_storage_type_t "ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_" {
            NONE 0, FILE 1, MEMORY 2, LAST 3,
        }
        rocprofiler_scratch_alloc_flag_t "ROCPROFILER_SCRATCH_ALLOC_FLAG_" {
            NONE 0, USE_ONCE 1, ALT 2,
        }
        hsa_amd_tool_event_kind_t "HSA_AMD_TOOL_EVENT_" {
            MIN 0, SCRATCH_ALLOC_START 1, SCRATCH_ALLOC_END 2, SCRATCH_FREE_START 3, SCRATCH_FREE_END 4,
            SCRATCH_ASYNC_RECLAIM_START 5, SCRATCH_ASYNC_RECLAIM_END 6, MAX 7,
        }
        rocprofiler_runtime_library_t "ROCPROFILER_" {
            LIBRARY 1, HSA_LIBRARY 2, HIP_LIBRARY 4, MARKER_LIBRARY 8, RCCL_LIBRARY 16, ROCDECODE_LIBRARY 32,
            ROCJPEG_LIBRARY 64, LIBRARY_LAST 64,
        }
        rocprofiler_intercept_table_t "ROCPROFILER_" {
            HSA_TABLE 1, HIP_RUNTIME_TABLE 2, HIP_COMPILER_TABLE 4, MARKER_CORE_TABLE 8,
            MARKER_CONTROL_TABLE 16, MARKER_NAME_TABLE 32, RCCL_TABLE 64, ROCDECODE_TABLE 128,
            ROCJPEG_TABLE 256, TABLE_LAST 256,
        }
        rocprofiler_hsa_table_id_t "ROCPROFILER_HSA_TABLE_ID_" {
            NONE -1, Core 0, AmdExt 1, ImageExt 2, FinalizeExt 3, AmdTool 4, PcSamplingExt 5, LAST 6,
        }
        rocprofiler_hip_table_id_t "ROCPROFILER_HIP_TABLE_ID_" {
            NONE -1, Compiler 0, Runtime 1, LAST 2,
        }
        rocprofiler_rccl_table_id_t "ROCPROFILER_RCCL_" {
            TABLE_ID_NONE -1, TABLE_ID 0, TABLE_ID_LAST 1,
        }
        rocprofiler_rocdecode_table_id_t "ROCPROFILER_ROCDECODE_TABLE_ID_" {
            NONE -1, CORE 0, LAST 1,
        }
        rocprofiler_rocjpeg_table_id_t "ROCPROFILER_ROCJPEG_TABLE_ID_" {
            NONE -1, CORE 0, LAST 1,
        }
        HSA_HEAPTYPE "HSA_HEAPTYPE_" {
            SYSTEM 0, FRAME_BUFFER_PUBLIC 1, FRAME_BUFFER_PRIVATE 2, GPU_GDS 3, GPU_LDS 4, GPU_SCRATCH 5,
            DEVICE_SVM 6, MMIO_REMAP 7, NUMHEAPTYPES 8, SIZE 4294967295,
        }
        rocprofiler_external_correlation_id_request_kind_t "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_" {
            NONE 0, HSA_CORE_API 1, HSA_AMD_EXT_API 2, HSA_IMAGE_EXT_API 3, HSA_FINALIZE_EXT_API 4,
            HIP_RUNTIME_API 5, HIP_COMPILER_API 6, MARKER_CORE_API 7, MARKER_CONTROL_API 8, MARKER_NAME_API 9,
            MEMORY_COPY 10, KERNEL_DISPATCH 11, SCRATCH_MEMORY 12, RCCL_API 13, OMPT 14, MEMORY_ALLOCATION 15,
            ROCDECODE_API 16, ROCJPEG_API 17, MARKER_CORE_RANGE_API 18, HIP_EVENT 19, LAST 20,
        }
    }
}

#[test]
fn enums_of_links_have_the_values_of_the_headers() {
    // The C names do not share one prefix.
    let all = [
        (HSA_IOLINKTYPE::UNDEFINED, 0u32, c"HSA_IOLINKTYPE_UNDEFINED"),
        (
            HSA_IOLINKTYPE::HYPERTRANSPORT,
            1u32,
            c"HSA_IOLINKTYPE_HYPERTRANSPORT",
        ),
        (
            HSA_IOLINKTYPE::PCIEXPRESS,
            2u32,
            c"HSA_IOLINKTYPE_PCIEXPRESS",
        ),
        (HSA_IOLINKTYPE::AMBA, 3u32, c"HSA_IOLINKTYPE_AMBA"),
        (HSA_IOLINKTYPE::MIPI, 4u32, c"HSA_IOLINKTYPE_MIPI"),
        (HSA_IOLINKTYPE::QPI_1_1, 5u32, c"HSA_IOLINK_TYPE_QPI_1_1"),
        (
            HSA_IOLINKTYPE::RESERVED1,
            6u32,
            c"HSA_IOLINK_TYPE_RESERVED1",
        ),
        (
            HSA_IOLINKTYPE::RESERVED2,
            7u32,
            c"HSA_IOLINK_TYPE_RESERVED2",
        ),
        (HSA_IOLINKTYPE::RAPID_IO, 8u32, c"HSA_IOLINK_TYPE_RAPID_IO"),
        (
            HSA_IOLINKTYPE::INFINIBAND,
            9u32,
            c"HSA_IOLINK_TYPE_INFINIBAND",
        ),
        (
            HSA_IOLINKTYPE::RESERVED3,
            10u32,
            c"HSA_IOLINK_TYPE_RESERVED3",
        ),
        (HSA_IOLINKTYPE::XGMI, 11u32, c"HSA_IOLINK_TYPE_XGMI"),
        (HSA_IOLINKTYPE::XGOP, 12u32, c"HSA_IOLINK_TYPE_XGOP"),
        (HSA_IOLINKTYPE::GZ, 13u32, c"HSA_IOLINK_TYPE_GZ"),
        (
            HSA_IOLINKTYPE::ETHERNET_RDMA,
            14u32,
            c"HSA_IOLINK_TYPE_ETHERNET_RDMA",
        ),
        (
            HSA_IOLINKTYPE::RDMA_OTHER,
            15u32,
            c"HSA_IOLINK_TYPE_RDMA_OTHER",
        ),
        (HSA_IOLINKTYPE::OTHER, 16u32, c"HSA_IOLINK_TYPE_OTHER"),
        (
            HSA_IOLINKTYPE::NUMIOLINKTYPES,
            17u32,
            c"HSA_IOLINKTYPE_NUMIOLINKTYPES",
        ),
        (HSA_IOLINKTYPE::SIZE, 4294967295u32, c"HSA_IOLINKTYPE_SIZE"),
    ];
    assert_eq!(HSA_IOLINKTYPE::ALL.len(), all.len());
    for ((constant, value, name), listed) in all.into_iter().zip(HSA_IOLINKTYPE::ALL) {
        assert_eq!(constant.0, value, "{name:?}");
        assert_eq!((constant, name), *listed);
    }
}

#[test]
fn unknown_values_are_kept_and_aliases_are_shown_by_the_first_name() {
    assert_eq!(rocprofiler_status_t(4711).c_name(), None);
    assert_eq!(
        format!("{:?}", rocprofiler_status_t(4711)),
        "rocprofiler_status_t(4711)"
    );
    assert_eq!(
        rocprofiler_callback_phase_t::LOAD.c_name(),
        Some(c"ROCPROFILER_CALLBACK_PHASE_ENTER")
    );
}
