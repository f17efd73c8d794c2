//! Sizes, offsets and field widths of the C structs, as the SDK 1.0 headers have them on x86-64 Linux.

use std::mem::{MaybeUninit, offset_of, size_of};

use rocprofiler_sdk_sys::by_value::*;
use rocprofiler_sdk_sys::*;

fn width<T>(_: *const T) -> usize {
    size_of::<T>()
}

/// `type size { field offset width, ... }`
macro_rules! layout {
    ($( $ty:ident $size:literal { $( $($field:ident).+ $offset:literal $width:literal, )* } )*) => {
        $(
            assert_eq!(size_of::<$ty>(), $size, "size of {}", stringify!($ty));
            $(
                assert_eq!(
                    offset_of!($ty, $($field).+), $offset,
                    "offset of {}.{}", stringify!($ty), stringify!($($field).+),
                );
                let value = MaybeUninit::<$ty>::zeroed();
                // SAFETY: the address of a field is taken, nothing is read.
                let field = unsafe { &raw const (*value.as_ptr()).$($field).+ };
                assert_eq!(width(field), $width, "width of {}.{}", stringify!($ty), stringify!($($field).+));
            )*
        )*
    };
}

#[test]
fn structs_of_registration_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_tool_configure_result_t 32 {
            size 0 8, initialize 8 8, finalize 16 8, tool_data 24 8,
        }
        rocprofiler_client_id_t 24 {
            size 0 8, name 8 8, handle 16 4,
        }
    }
}

#[test]
fn small_structs_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_user_data_t 8 {
            value 0 8, ptr 0 8,
        }
        rocprofiler_address_t 8 {
            handle 0 8, value 0 8, ptr 0 8,
        }
        rocprofiler_dim3_t 12 {
            x 0 4, y 4 4, z 8 4,
        }
        rocprofiler_uuid_t 16 {
            bytes 0 16,
        }
        rocprofiler_version_triplet_t 12 {
            major 0 4, minor 4 4, patch 8 4,
        }
        rocprofiler_correlation_id_t 24 {
            internal 0 8, external 8 8, ancestor 16 8,
        }
        rocprofiler_async_correlation_id_t 16 {
            internal 0 8, external 8 8,
        }
    }
}

#[test]
fn record_headers_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_record_header_t 16 {
            category 0 4, kind 4 4, payload 8 8,
        }
        rocprofiler_callback_tracing_record_t 64 {
            context_id 0 8, thread_id 8 8, correlation_id 16 24, kind 40 4, operation 44 4, phase 48 4,
            payload 56 8,
        }
    }
}

#[test]
fn structs_of_agents_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_agent_v0_t 312 {
            size 0 8, id 8 8, r#type 16 4, cpu_cores_count 20 4, simd_count 24 4, mem_banks_count 28 4,
            caches_count 32 4, io_links_count 36 4, cpu_core_id_base 40 4, simd_id_base 44 4,
            max_waves_per_simd 48 4, lds_size_in_kb 52 4, gds_size_in_kb 56 4, num_gws 60 4,
            wave_front_size 64 4, num_xcc 68 4, cu_count 72 4, array_count 76 4, num_shader_banks 80 4,
            simd_arrays_per_engine 84 4, cu_per_simd_array 88 4, simd_per_cu 92 4, max_slots_scratch_cu 96 4,
            gfx_target_version 100 4, vendor_id 104 2, device_id 106 2, location_id 108 4, domain 112 4,
            drm_render_minor 116 4, num_sdma_engines 120 4, num_sdma_xgmi_engines 124 4,
            num_sdma_queues_per_engine 128 4, num_cp_queues 132 4, max_engine_clk_ccompute 136 4,
            max_engine_clk_fcompute 140 4, sdma_fw_version 144 4, fw_version 148 4, capability 152 4,
            cu_per_engine 156 4, max_waves_per_cu 160 4, family_id 164 4, workgroup_max_size 168 4,
            grid_max_size 172 4, local_mem_size 176 8, hive_id 184 8, gpu_id 192 8, workgroup_max_dim 200 12,
            grid_max_dim 212 12, mem_banks 224 8, caches 232 8, io_links 240 8, name 248 8, vendor_name 256 8,
            product_name 264 8, model_name 272 8, node_id 280 4, logical_node_id 284 4,
            logical_node_type_id 288 4, runtime_visibility 292 4, uuid 296 16,
        }
        rocprofiler_agent_cache_t 40 {
            processor_id_low 0 8, size 8 8, level 16 4, cache_line_size 20 4, cache_lines_per_tag 24 4,
            association 28 4, latency 32 4, r#type 36 4,
        }
        rocprofiler_agent_mem_bank_t 24 {
            heap_type 0 4, flags 4 4, width 8 4, mem_clk_max 12 4, size_in_bytes 16 8,
        }
        rocprofiler_agent_io_link_t 48 {
            r#type 0 4, version_major 4 4, version_minor 8 4, node_from 12 4, node_to 16 4, weight 20 4,
            min_latency 24 4, max_latency 28 4, min_bandwidth 32 4, max_bandwidth 36 4,
            recommended_transfer_size 40 4, flags 44 4,
        }
        rocprofiler_agent_runtime_visiblity_t 4 {}
        HSA_CAPABILITY 4 {
            bits 0 4,
        }
        HSA_ENGINE_ID 4 {
            bits 0 4,
        }
        HSA_ENGINE_VERSION 4 {
            bits 0 4,
        }
        HsaCacheType 4 {
            bits 0 4,
        }
        HSA_MEMORYPROPERTY 4 {
            bits 0 4,
        }
        HSA_LINKPROPERTY 4 {
            bits 0 4,
        }
    }
}

#[test]
fn buffer_records_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_buffer_tracing_hip_api_record_t 64 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, start_timestamp 40 8,
            end_timestamp 48 8, thread_id 56 8,
        }
        rocprofiler_buffer_tracing_hsa_api_record_t 64 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, start_timestamp 40 8,
            end_timestamp 48 8, thread_id 56 8,
        }
        rocprofiler_buffer_tracing_marker_api_record_t 64 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, start_timestamp 40 8,
            end_timestamp 48 8, thread_id 56 8,
        }
        rocprofiler_buffer_tracing_rccl_api_record_t 64 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, start_timestamp 40 8,
            end_timestamp 48 8, thread_id 56 8,
        }
        rocprofiler_buffer_tracing_rocdecode_api_record_t 64 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, start_timestamp 40 8,
            end_timestamp 48 8, thread_id 56 8,
        }
        rocprofiler_buffer_tracing_rocjpeg_api_record_t 64 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, start_timestamp 40 8,
            end_timestamp 48 8, thread_id 56 8,
        }
        rocprofiler_buffer_tracing_hip_api_ext_record_t 176 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, start_timestamp 40 8,
            end_timestamp 48 8, thread_id 56 8, args 64 88, retval 152 24,
        }
        rocprofiler_buffer_tracing_rocdecode_api_ext_record_t 112 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, start_timestamp 40 8,
            end_timestamp 48 8, thread_id 56 8, args 64 40, retval 104 8,
        }
        rocprofiler_kernel_dispatch_info_t 128 {
            size 0 8, agent_id 8 8, queue_id 16 8, kernel_id 24 8, dispatch_id 32 8,
            private_segment_size 40 4, group_segment_size 44 4, workgroup_size 48 12, grid_size 60 12,
            reserved_padding 72 56,
        }
        rocprofiler_buffer_tracing_kernel_dispatch_record_t 184 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 16, thread_id 32 8, start_timestamp 40 8,
            end_timestamp 48 8, dispatch_info 56 128,
        }
        rocprofiler_buffer_tracing_memory_copy_record_t 96 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 16, thread_id 32 8, start_timestamp 40 8,
            end_timestamp 48 8, dst_agent_id 56 8, src_agent_id 64 8, bytes 72 8, dst_address 80 8,
            src_address 88 8,
        }
        rocprofiler_buffer_tracing_memory_allocation_record_t 88 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, thread_id 40 8, start_timestamp 48 8,
            end_timestamp 56 8, agent_id 64 8, address 72 8, allocation_size 80 8,
        }
        rocprofiler_buffer_tracing_scratch_memory_record_t 96 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, agent_id 40 8, queue_id 48 8,
            thread_id 56 8, start_timestamp 64 8, end_timestamp 72 8, flags 80 4, allocation_size 88 8,
        }
        rocprofiler_buffer_tracing_runtime_initialization_record_t 72 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, thread_id 40 8, timestamp 48 8,
            version 56 8, instance 64 8,
        }
        rocprofiler_buffer_tracing_correlation_id_retirement_record_t 32 {
            size 0 8, kind 8 4, timestamp 16 8, internal_correlation_id 24 8,
        }
        rocprofiler_buffer_tracing_ompt_record_t 104 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, start_timestamp 40 8,
            end_timestamp 48 8, thread_id 56 8, details.target 64 32, details.target_data_op 64 40,
            details.target_kernel 64 16, details.reserved 64 40,
        }
        rocprofiler_buffer_tracing_ompt_target_t 32 {
            kind 0 4, device_num 4 4, task_id 8 8, target_id 16 8, codeptr_ra 24 8,
        }
        rocprofiler_buffer_tracing_ompt_target_data_op_t 40 {
            host_op_id 0 8, optype 8 4, src_device_num 12 4, dst_device_num 16 4, reserved 20 4, bytes 24 8,
            codeptr_ra 32 8,
        }
        rocprofiler_buffer_tracing_ompt_target_kernel_t 16 {
            host_op_id 0 8, device_num 8 4, requested_num_teams 12 4,
        }
        rocprofiler_buffer_tracing_kfd_event_page_migrate_record_t 88 {
            size 0 8, kind 8 4, operation 12 4, timestamp 16 8, pid 24 4, start_address 32 8,
            end_address 40 8, src_agent 48 8, dst_agent 56 8, prefetch_agent 64 8, preferred_agent 72 8,
            error_code 80 4,
        }
        rocprofiler_buffer_tracing_kfd_event_page_fault_record_t 48 {
            size 0 8, kind 8 4, operation 12 4, timestamp 16 8, pid 24 4, agent_id 32 8, address 40 8,
        }
        rocprofiler_buffer_tracing_kfd_event_queue_record_t 40 {
            size 0 8, kind 8 4, operation 12 4, timestamp 16 8, pid 24 4, agent_id 32 8,
        }
        rocprofiler_buffer_tracing_kfd_event_unmap_from_gpu_record_t 56 {
            size 0 8, kind 8 4, operation 12 4, timestamp 16 8, pid 24 4, agent_id 32 8, start_address 40 8,
            end_address 48 8,
        }
        rocprofiler_buffer_tracing_kfd_event_dropped_events_record_t 32 {
            size 0 8, kind 8 4, operation 12 4, timestamp 16 8, pid 24 4, count 28 4,
        }
        rocprofiler_buffer_tracing_kfd_page_migrate_record_t 96 {
            size 0 8, kind 8 4, operation 12 4, start_timestamp 16 8, end_timestamp 24 8, pid 32 4,
            start_address 40 8, end_address 48 8, src_agent 56 8, dst_agent 64 8, prefetch_agent 72 8,
            preferred_agent 80 8, error_code 88 4,
        }
        rocprofiler_buffer_tracing_kfd_page_fault_record_t 56 {
            size 0 8, kind 8 4, operation 12 4, start_timestamp 16 8, end_timestamp 24 8, pid 32 4,
            agent_id 40 8, address 48 8,
        }
        rocprofiler_buffer_tracing_kfd_queue_record_t 48 {
            size 0 8, kind 8 4, operation 12 4, start_timestamp 16 8, end_timestamp 24 8, pid 32 4,
            agent_id 40 8,
        }
    }
}

#[test]
fn callback_payloads_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_callback_tracing_hip_api_data_t 120 {
            size 0 8, args 8 88, retval 96 24,
        }
        rocprofiler_callback_tracing_hsa_api_data_t 208 {
            size 0 8, args 8 192, retval 200 8,
        }
        rocprofiler_callback_tracing_marker_api_data_t 32 {
            size 0 8, args 8 16, retval 24 8,
        }
        rocprofiler_callback_tracing_rccl_api_data_t 168 {
            size 0 8, args 8 152, retval 160 8,
        }
        rocprofiler_callback_tracing_rocdecode_api_data_t 56 {
            size 0 8, args 8 40, retval 48 8,
        }
        rocprofiler_callback_tracing_rocjpeg_api_data_t 64 {
            size 0 8, args 8 48, retval 56 8,
        }
        rocprofiler_callback_tracing_ompt_data_t 136 {
            size 0 8, args 8 128,
        }
        rocprofiler_callback_tracing_kernel_dispatch_data_t 152 {
            size 0 8, start_timestamp 8 8, end_timestamp 16 8, dispatch_info 24 128,
        }
        rocprofiler_callback_tracing_memory_copy_data_t 64 {
            size 0 8, start_timestamp 8 8, end_timestamp 16 8, dst_agent_id 24 8, src_agent_id 32 8,
            bytes 40 8, dst_address 48 8, src_address 56 8,
        }
        rocprofiler_callback_tracing_memory_allocation_data_t 48 {
            size 0 8, start_timestamp 8 8, end_timestamp 16 8, agent_id 24 8, address 32 8,
            allocation_size 40 8,
        }
        rocprofiler_callback_tracing_scratch_memory_data_t 56 {
            size 0 8, agent_id 8 8, queue_id 16 8, flags 24 4, args_kind 28 4, args 32 24,
        }
        rocprofiler_scratch_memory_args_t 24 {
            alloc_start 0 8, alloc_start.dispatch_id 0 8, alloc_end 0 24, alloc_end.dispatch_id 0 8,
            alloc_end.size 8 8, alloc_end.num_slots 16 8, free_start 0 1, free_start.empty 0 1, free_end 0 1,
            free_end.empty 0 1, async_reclaim_start 0 1, async_reclaim_start.empty 0 1, async_reclaim_end 0 1,
            async_reclaim_end.empty 0 1,
        }
        rocprofiler_callback_tracing_runtime_initialization_data_t 24 {
            size 0 8, version 8 8, instance 16 8,
        }
        rocprofiler_callback_tracing_hip_stream_data_t 24 {
            size 0 8, stream_id 8 8, stream_value 16 8,
        }
        rocprofiler_callback_tracing_hip_graph_data_t 24 {
            size 0 8, graph_exec_id 8 8, graph_exec_value 16 8,
        }
        rocprofiler_callback_tracing_hip_event_data_t 56 {
            size 0 8, start_timestamp 8 8, end_timestamp 16 8, agent_id 24 8, queue_id 32 8,
            hip_event_handle 40 8, source_queue_id 48 8,
        }
        rocprofiler_callback_tracing_kernel_replay_data_t 184 {
            size 0 8, dispatch_info 8 128, current_pass 136 8, total_passes 144 8, replay_pass_count 152 8,
            replay_continue 160 8, replay_start_context 168 8, replay_stop_context 176 8,
        }
        rocprofiler_buffer_tracing_hip_graph_record_t 96 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 24, thread_id 40 8, start_timestamp 48 8,
            end_timestamp 56 8, agent_id 64 8, queue_id 72 8, graph_exec_id 80 8, kernel_dispatch_count 88 8,
        }
        rocprofiler_buffer_tracing_hip_graph_async_record_t 88 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 16, thread_id 32 8, start_timestamp 40 8,
            end_timestamp 48 8, agent_id 56 8, queue_id 64 8, graph_exec_id 72 8, kernel_dispatch_count 80 8,
        }
        rocprofiler_buffer_tracing_hip_event_record_t 88 {
            size 0 8, kind 8 4, operation 12 4, correlation_id 16 16, thread_id 32 8, start_timestamp 40 8,
            end_timestamp 48 8, agent_id 56 8, queue_id 64 8, hip_event_handle 72 8, source_queue_id 80 8,
        }
        rocprofiler_callback_tracing_code_object_load_data_t 88 {
            size 0 8, code_object_id 8 8, agent_id 16 8, agent_id 16 8, hsa_agent 24 8, uri 32 8,
            load_base 40 8, load_size 48 8, load_delta 56 8, storage_type 64 4,
            storage.file.storage_file 72 4, storage.memory.memory_base 72 8, storage.memory.memory_size 80 8,
        }
        rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t 88 {
            size 0 8, kernel_id 8 8, code_object_id 16 8, kernel_name 24 8, kernel_object 32 8,
            kernarg_segment_size 40 4, kernarg_segment_alignment 44 4, group_segment_size 48 4,
            private_segment_size 52 4, sgpr_count 56 4, arch_vgpr_count 60 4, accum_vgpr_count 64 4,
            kernel_code_entry_byte_offset 72 8, kernel_address 80 8,
        }
        rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t 120 {
            size 0 8, host_function_id 8 8, kernel_id 16 8, code_object_id 24 8, host_function 32 8,
            modules 40 8, device_function 48 8, thread_limit 56 4, thread_ids 60 12, block_ids 72 12,
            block_dims 84 12, grid_dims 96 12, workgroup_size 112 8,
        }
    }
}

#[test]
fn return_values_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_hip_api_retval_t 24 {
            uint64_t_retval 0 8, int_retval 0 4, const_charp_retval 0 8, hipError_t_retval 0 4,
            hipChannelFormatDesc_retval 0 20, voidpp_retval 0 8,
        }
        rocprofiler_hsa_api_retval_t 8 {
            uint64_t_retval 0 8, uint32_t_retval 0 4, hsa_signal_value_t_retval 0 8, hsa_status_t_retval 0 4,
        }
        rocprofiler_marker_api_retval_t 8 {
            int32_t_retval 0 4, int64_t_retval 0 8, roctx_range_id_t_retval 0 8,
        }
        rocprofiler_rccl_api_retval_t 8 {
            ncclResult_t_retval 0 4, const_charp_retval 0 8,
        }
        rocprofiler_rocdecode_api_retval_t 8 {
            uint64_t_retval 0 8, rocDecStatus_retval 0 4, const_charp_retval 0 8,
        }
        rocprofiler_rocjpeg_api_retval_t 8 {
            rocJpegStatus_retval 0 4, const_charp_retval 0 8,
        }
    }
}

#[test]
fn structs_of_counters_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_dispatch_counting_service_data_t 168 {
            size 0 8, correlation_id 8 16, start_timestamp 24 8, end_timestamp 32 8, dispatch_info 40 128,
        }
        rocprofiler_dispatch_counting_service_record_t 176 {
            size 0 8, num_records 8 8, correlation_id 16 16, start_timestamp 32 8, end_timestamp 40 8,
            dispatch_info 48 128,
        }
        rocprofiler_counter_record_t 40 {
            id 0 8, counter_value 8 8, dispatch_id 16 8, user_data 24 8, agent_id 32 8,
        }
        rocprofiler_counter_info_v0_t 48 {
            id 0 8, name 8 8, description 16 8, block 24 8, expression 32 8,
        }
        rocprofiler_counter_info_v1_t 88 {
            size 0 8, id 8 8, name 16 8, description 24 8, block 32 8, expression 40 8, dimensions_count 56 8,
            dimensions 64 8, dimensions_instances_count 72 8, dimensions_instances 80 8,
        }
        rocprofiler_counter_record_dimension_info_t 24 {
            name 0 8, instance_size 8 8, id 16 8,
        }
        rocprofiler_counter_record_dimension_instance_info_t 40 {
            size 0 8, instance_id 8 8, counter_id 16 8, dimensions_count 24 8, dimensions 32 8,
        }
        rocprofiler_counter_dimension_info_t 24 {
            size 0 8, dimension_name 8 8, index 16 8,
        }
    }
}

#[test]
fn structs_of_pc_sampling_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_pc_sampling_configuration_t 40 {
            size 0 8, method 8 4, unit 12 4, min_interval 16 8, max_interval 24 8, flags 32 8,
        }
        rocprofiler_pc_t 16 {
            code_object_id 0 8, code_object_offset 8 8,
        }
        rocprofiler_pc_sampling_hw_id_v0_t 8 {}
        rocprofiler_pc_sampling_record_host_trap_v0_t 88 {
            size 0 8, hw_id 8 8, pc 16 16, exec_mask 32 8, timestamp 40 8, dispatch_id 48 8,
            correlation_id 56 16, workgroup_id 72 12, wave_in_group 84 1, reserved0 85 3,
        }
        rocprofiler_pc_sampling_record_stochastic_v0_t 104 {
            size 0 8, flags 8 1, wave_in_group 9 1, hw_id 16 8, pc 24 16, exec_mask 40 8, workgroup_id 48 12,
            wave_count 60 4, timestamp 64 8, dispatch_id 72 8, correlation_id 80 16, snapshot 96 4,
            memory_counters 100 4,
        }
        rocprofiler_pc_sampling_record_stochastic_header_t 1 {}
        rocprofiler_pc_sampling_snapshot_v0_t 4 {}
        rocprofiler_pc_sampling_memory_counters_t 4 {}
        rocprofiler_pc_sampling_record_invalid_t 8 {
            size 0 8,
        }
    }
}

#[test]
fn structs_of_thread_trace_have_the_layout_of_the_headers() {
    layout! {
        rocprofiler_thread_trace_clocks_t 16 {
            gpu 0 8, system 8 8,
        }
        rocprofiler_thread_trace_shader_data_t 96 {
            size 0 8, data 8 8, data_size 16 8, shader_engine_id 24 8, chunk 32 8, offset 40 8,
            agent_id 48 8, flags 56 4, start 64 16, end 80 16,
        }
        rocprofiler_thread_trace_parameter_t 24 {
            r#type 0 4, data.value 8 8, data.counter.counter_id 8 8, data.counter.simd_mask 16 8,
        }
        rocprofiler_thread_trace_decoder_pc_t 16 {
            addr 0 8, marker_id 8 8,
        }
        rocprofiler_thread_trace_decoder_perfevent_t 24 {
            time 0 8, events0 8 2, events1 10 2, events2 12 2, events3 14 2, CU 16 1, bank 17 1,
        }
        rocprofiler_thread_trace_decoder_occupancy_t 32 {
            pc 0 16, time 16 8, reserved 24 1, cu 25 1, simd 26 1, slot 27 1,
        }
        rocprofiler_thread_trace_decoder_wave_state_t 8 {
            r#type 0 4, duration 4 4,
        }
        rocprofiler_thread_trace_decoder_inst_t 32 {
            duration 4 4, time 8 8, pc 16 16,
        }
        rocprofiler_thread_trace_decoder_wave_t 64 {
            cu 0 1, simd 1 1, wave_id 2 1, contexts 3 1, _rsvd1 4 4, _rsvd2 8 4, _rsvd3 12 4, begin_time 16 8,
            end_time 24 8, timeline_size 32 8, instructions_size 40 8, timeline_array 48 8,
            instructions_array 56 8,
        }
    }
}

#[test]
fn roctx_tables_have_the_layout_of_the_headers() {
    layout! {
        roctxCoreApiTable_t 56 {
            size 0 8, roctxMarkA_fn 8 8, roctxRangePushA_fn 16 8, roctxRangePop_fn 24 8,
            roctxRangeStartA_fn 32 8, roctxRangeStop_fn 40 8, roctxGetThreadId_fn 48 8,
        }
        roctxControlApiTable_t 24 {
            size 0 8, roctxProfilerPause_fn 8 8, roctxProfilerResume_fn 16 8,
        }
        roctxNameApiTable_t 40 {
            size 0 8, roctxNameOsThread_fn 8 8, roctxNameHsaAgent_fn 16 8, roctxNameHipDevice_fn 24 8,
            roctxNameHipStream_fn 32 8,
        }
    }
}

#[test]
fn handles_numbers_and_argument_blocks_have_the_size_of_the_headers() {
    layout! {
        rocprofiler_hip_api_args_t 88 {}
        rocprofiler_hsa_api_args_t 192 {}
        rocprofiler_marker_api_args_t 16 {}
        rocprofiler_rccl_api_args_t 152 {}
        rocprofiler_rocdecode_api_args_t 40 {}
        rocprofiler_rocjpeg_api_args_t 48 {}
        rocprofiler_ompt_args_t 128 {}
        rocprofiler_context_id_t 8 {
            handle 0 8,
        }
        rocprofiler_buffer_id_t 8 {
            handle 0 8,
        }
        rocprofiler_agent_id_t 8 {
            handle 0 8,
        }
        rocprofiler_queue_id_t 8 {
            handle 0 8,
        }
        rocprofiler_stream_id_t 8 {
            handle 0 8,
        }
        rocprofiler_counter_id_t 8 {
            handle 0 8,
        }
        rocprofiler_counter_config_id_t 8 {
            handle 0 8,
        }
        rocprofiler_callback_thread_t 8 {
            handle 0 8,
        }
        rocprofiler_thread_trace_decoder_id_t 8 {
            handle 0 8,
        }
        rocprofiler_register_registration_info_t 32 {
            size 0 8, common_name 8 8, lib_version 16 4, api_table_length 24 8,
        }
        HsaApiTable 64 {
            version 0 16, core_ 16 8, amd_ext_ 24 8, finalizer_ext_ 32 8, image_ext_ 40 8, tools_ 48 8,
            pc_sampling_ext_ 56 8,
        }
        rocprofiler_timestamp_t 8 {}
        rocprofiler_thread_id_t 8 {}
        rocprofiler_kernel_id_t 8 {}
        rocprofiler_dispatch_id_t 8 {}
        rocprofiler_counter_instance_id_t 8 {}
        rocprofiler_counter_dimension_id_t 8 {}
        roctx_range_id_t 8 {}
        roctx_thread_id_t 8 {}
        rocprofiler_tracing_operation_t 4 {}
    }
}

#[test]
fn the_hash_of_a_record_header_joins_category_and_kind() {
    let header = rocprofiler_record_header_t {
        category: 2,
        kind: 3,
        payload: std::ptr::null_mut(),
    };
    let bytes = header.hash().to_ne_bytes();
    assert_eq!(bytes[..4], 2u32.to_ne_bytes());
    assert_eq!(bytes[4..], 3u32.to_ne_bytes());
}

#[test]
fn argument_blocks_are_aligned_like_their_members() {
    assert_eq!(align_of::<rocprofiler_hip_api_args_t>(), 8);
    assert_eq!(align_of::<rocprofiler_hsa_api_args_t>(), 8);
    assert_eq!(align_of::<rocprofiler_ompt_args_t>(), 8);
}

#[test]
fn structs_passed_by_value_have_the_layout_of_the_headers() {
    layout! {
        dim3 12 { x 0 4, y 4 4, z 8 4, }
        hipExtent 24 { width 0 8, height 8 8, depth 16 8, }
        hipPitchedPtr 32 { ptr 0 8, pitch 8 8, xsize 16 8, ysize 24 8, }
        hipChannelFormatDesc 20 { x 0 4, y 4 4, z 8 4, w 12 4, f 16 4, }
        hipIpcMemHandle_t 64 { reserved 0 64, }
        hsa_ext_control_directives_t 144 { words 0 144, }
        ncclUniqueId 128 { internal 0 128, }
    }
}
