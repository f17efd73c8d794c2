//! Positions of the bit fields, counted from the start of their struct.

use std::mem::size_of;

use rocprofiler_sdk_sys::*;

/// Sets exactly the bits of a field, or all but those, through the bytes, and asks the accessor.
macro_rules! bits {
    ($( $ty:ident { $( $get:ident $first:literal $width:literal, )* } )*) => {
        $( $(
            let mut bytes = [0u8; size_of::<$ty>()];
            for bit in $first..$first + $width {
                bytes[bit / 8] |= 1 << (bit % 8);
            }
            // SAFETY: these structs have only integers and raw pointers, which any bytes are valid for.
            let only = unsafe { std::mem::transmute::<[u8; size_of::<$ty>()], $ty>(bytes) };
            let others = bytes.map(|byte| !byte);
            // SAFETY: as above.
            let others = unsafe { std::mem::transmute::<[u8; size_of::<$ty>()], $ty>(others) };
            let name = concat!(stringify!($ty), ".", stringify!($get));
            assert_eq!(u64::from(only.$get()), (1u64 << $width) - 1, "{name}");
            assert_eq!(u64::from(others.$get()), 0, "{name}");
        )* )*
    };
}

#[test]
fn accessors_read_the_bits_of_their_field() {
    bits! {
        rocprofiler_agent_runtime_visiblity_t {
            hsa 0 1, hip 1 1, rccl 2 1, rocdecode 3 1,
        }
        HSA_CAPABILITY {
            hot_pluggable 0 1, hsammu_present 1 1, shared_with_graphics 2 1, queue_size_power_of_two 3 1,
            queue_size32bit 4 1, queue_idle_event 5 1, va_limit 6 1, watch_points_supported 7 1,
            watch_points_total_bits 8 4, doorbell_type 12 2, aql_queue_double_map 14 1,
            debug_trap_supported 15 1, wave_launch_trap_override_supported 16 1,
            wave_launch_mode_supported 17 1, precise_memory_operations_supported 18 1,
            deprecated_sram_edc_support 19 1, mem_edc_support 20 1, ras_event_notify 21 1, asic_revision 22 4,
            sram_edc_support 26 1, svmapi_supported 27 1, coherent_host_access 28 1,
            debug_supported_firmware 29 1, precise_alu_operations_supported 30 1,
            per_queue_reset_supported 31 1,
        }
        HSA_ENGINE_ID {
            u_code 0 10, major 10 6, minor 16 8, stepping 24 8,
        }
        HSA_ENGINE_VERSION {
            u_code_sdma 0 10, u_code_res 10 10,
        }
        HsaCacheType {
            data 0 1, instruction 1 1, cpu 2 1, hsacu 3 1,
        }
        HSA_MEMORYPROPERTY {
            hot_pluggable 0 1, non_volatile 1 1,
        }
        HSA_LINKPROPERTY {
            overrides 0 1, non_coherent 1 1, no_atomics32bit 2 1, no_atomics64bit 3 1,
            no_peer_to_peer_dma 4 1,
        }
        rocprofiler_counter_info_v0_t {
            is_constant 320 1, is_derived 321 1,
        }
        rocprofiler_counter_info_v1_t {
            is_constant 384 1, is_derived 385 1,
        }
        rocprofiler_pc_sampling_hw_id_v0_t {
            chiplet 0 6, wave_id 6 7, simd_id 13 2, pipe_id 15 4, cu_or_wgp_id 19 4, shader_array_id 23 1,
            shader_engine_id 24 5, workgroup_id 29 7, vm_id 36 6, queue_id 42 4, microengine_id 46 2,
        }
        rocprofiler_pc_sampling_record_stochastic_v0_t {
            wave_issued 80 1, inst_type 81 5,
        }
        rocprofiler_pc_sampling_record_stochastic_header_t {
            has_memory_counter 0 1,
        }
        rocprofiler_pc_sampling_snapshot_v0_t {
            reason_not_issued 0 4, arb_state_issue_valu 5 1, arb_state_issue_matrix 6 1,
            arb_state_issue_lds 7 1, arb_state_issue_lds_direct 8 1, arb_state_issue_scalar 9 1,
            arb_state_issue_vmem_tex 10 1, arb_state_issue_flat 11 1, arb_state_issue_exp 12 1,
            arb_state_issue_misc 13 1, arb_state_issue_brmsg 14 1, arb_state_issue_reserved 15 1,
            arb_state_stall_valu 16 1, arb_state_stall_matrix 17 1, arb_state_stall_lds 18 1,
            arb_state_stall_lds_direct 19 1, arb_state_stall_scalar 20 1, arb_state_stall_vmem_tex 21 1,
            arb_state_stall_flat 22 1, arb_state_stall_exp 23 1, arb_state_stall_misc 24 1,
            arb_state_stall_brmsg 25 1, arb_state_state_reserved 26 1, dual_issue_valu 27 1,
        }
        rocprofiler_pc_sampling_memory_counters_t {
            load_cnt 0 6, store_cnt 6 6, bvh_cnt 12 3, sample_cnt 15 6, ds_cnt 21 6, km_cnt 27 5,
        }
        rocprofiler_thread_trace_decoder_occupancy_t {
            start 224 1,
        }
        rocprofiler_thread_trace_decoder_inst_t {
            category 0 8, stall 8 24,
        }
    }
}

#[test]
fn setters_touch_their_field_only() {
    let id = rocprofiler_pc_sampling_hw_id_v0_t { bits: u64::MAX }.with_cu_or_wgp_id(5);
    assert_eq!(id.cu_or_wgp_id(), 5);
    assert_eq!(id.bits, !(0b1010 << 19));
    let cut = rocprofiler_pc_sampling_hw_id_v0_t::default().with_simd_id(7);
    assert_eq!((cut.simd_id(), cut.bits), (3, 3 << 13));
}
