//! PC sampling.

use core::ffi::c_void;

use crate::ids::{rocprofiler_async_correlation_id_t, rocprofiler_dim3_t};
use crate::macros::{bit_fields, c_enum, c_struct};
use crate::status::rocprofiler_status_t;

c_enum! {
    /// Method by which the sampled waves are chosen.
    rocprofiler_pc_sampling_method_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_PC_SAMPLING_METHOD_NONE",
        /// Performance monitoring hardware samples waves and reports why they did not issue.
        STOCHASTIC = 1 => c"ROCPROFILER_PC_SAMPLING_METHOD_STOCHASTIC",
        /// A thread of the driver interrupts the waves at intervals.
        HOST_TRAP = 2 => c"ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_PC_SAMPLING_METHOD_LAST",
    }
}

c_enum! {
    /// Unit of the sampling interval.
    rocprofiler_pc_sampling_unit_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_PC_SAMPLING_UNIT_NONE",
        /// Number of issued instructions.
        INSTRUCTIONS = 1 => c"ROCPROFILER_PC_SAMPLING_UNIT_INSTRUCTIONS",
        /// Cycles of the shader clock.
        CYCLES = 2 => c"ROCPROFILER_PC_SAMPLING_UNIT_CYCLES",
        /// Microseconds, as the kernel driver counts them.
        TIME = 3 => c"ROCPROFILER_PC_SAMPLING_UNIT_TIME",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_PC_SAMPLING_UNIT_LAST",
    }
}

c_enum! {
    /// Type of a record in a buffer of PC samples.
    rocprofiler_pc_sampling_record_kind_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_PC_SAMPLING_RECORD_NONE",
        /// A `rocprofiler_pc_sampling_record_invalid_t`: a sample that could not be assigned.
        INVALID_SAMPLE = 1 => c"ROCPROFILER_PC_SAMPLING_RECORD_INVALID_SAMPLE",
        /// A `rocprofiler_pc_sampling_record_host_trap_v0_t`.
        HOST_TRAP_V0_SAMPLE = 2 => c"ROCPROFILER_PC_SAMPLING_RECORD_HOST_TRAP_V0_SAMPLE",
        /// A `rocprofiler_pc_sampling_record_stochastic_v0_t`.
        STOCHASTIC_V0_SAMPLE = 3 => c"ROCPROFILER_PC_SAMPLING_RECORD_STOCHASTIC_V0_SAMPLE",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_PC_SAMPLING_RECORD_LAST",
    }
}

c_enum! {
    /// Restrictions of a sampling configuration.
    rocprofiler_pc_sampling_configuration_flags_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_NONE",
        /// The interval must be a power of two.
        INTERVAL_POW2 = 1 => c"ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_INTERVAL_POW2",
        /// End marker of this version of the list.
        LAST = 2 => c"ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_LAST",
    }
}

c_enum! {
    /// Class of the instruction that the sampled wave issued.
    rocprofiler_pc_sampling_instruction_type_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NONE",
        /// Vector arithmetic.
        VALU = 1 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU",
        /// Matrix multiplication (MFMA, WMMA).
        MATRIX = 2 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_MATRIX",
        /// Scalar arithmetic or scalar memory.
        SCALAR = 3 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_SCALAR",
        /// Vector memory and textures.
        TEX = 4 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_TEX",
        /// Access to the local data share.
        LDS = 5 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LDS",
        /// Read of the local data share straight into an operand.
        LDS_DIRECT = 6 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LDS_DIRECT",
        /// Memory through flat addresses.
        FLAT = 7 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_FLAT",
        /// Export of results of graphics.
        EXPORT = 8 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_EXPORT",
        /// `s_sendmsg`.
        MESSAGE = 9 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_MESSAGE",
        /// Barrier of a workgroup.
        BARRIER = 10 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_BARRIER",
        /// Conditional branch that fell through.
        BRANCH_NOT_TAKEN = 11 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_BRANCH_NOT_TAKEN",
        /// Conditional branch that was taken.
        BRANCH_TAKEN = 12 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_BRANCH_TAKEN",
        /// Unconditional jump, such as `s_setpc`.
        JUMP = 13 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_JUMP",
        /// An instruction of none of these classes.
        OTHER = 14 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_OTHER",
        /// The wave issued nothing.
        NO_INST = 15 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NO_INST",
        /// Two vector operations issued together.
        DUAL_VALU = 16 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_DUAL_VALU",
        /// End marker of this version of the list.
        LAST = 17 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LAST",
    }
}

c_enum! {
    /// Reason for which the sampled wave did not issue an instruction.
    rocprofiler_pc_sampling_instruction_not_issued_reason_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_NONE",
        /// The next instruction was not fetched yet.
        NO_INSTRUCTION_AVAILABLE = 1 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_NO_INSTRUCTION_AVAILABLE",
        /// The instruction needs the result of an earlier arithmetic instruction.
        ALU_DEPENDENCY = 2 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ALU_DEPENDENCY",
        /// `s_waitcnt`: memory accesses are outstanding.
        WAITCNT = 3 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT",
        /// The next instruction is handled inside the sequencer, such as a nop.
        INTERNAL_INSTRUCTION = 4 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_INTERNAL_INSTRUCTION",
        /// Other waves have not reached the barrier.
        BARRIER_WAIT = 5 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_BARRIER_WAIT",
        /// The arbiter chose another wave.
        ARBITER_NOT_WIN = 6 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ARBITER_NOT_WIN",
        /// The arbiter chose the wave, but the execution unit was busy.
        ARBITER_WIN_EX_STALL = 7 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ARBITER_WIN_EX_STALL",
        /// A wait of none of the other kinds.
        OTHER_WAIT = 8 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_OTHER_WAIT",
        /// The wave sleeps (`s_sleep`).
        SLEEP_WAIT = 9 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_SLEEP_WAIT",
        /// End marker of this version of the list.
        LAST = 10 => c"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_LAST",
    }
}

c_struct! {
    /// A configuration in which an agent can be sampled.
    struct rocprofiler_pc_sampling_configuration_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Method by which waves are chosen.
        pub method: rocprofiler_pc_sampling_method_t,
        /// Unit of `min_interval` and `max_interval`.
        pub unit: rocprofiler_pc_sampling_unit_t,
        /// Smallest interval between samples, in `unit`.
        pub min_interval: usize,
        /// Largest interval between samples, in `unit`.
        pub max_interval: usize,
        /// Bits of [`rocprofiler_pc_sampling_configuration_flags_t`].
        pub flags: u64,
    }
}

c_struct! {
    /// A program counter relative to its code object.
    struct rocprofiler_pc_t {
        /// Code object that the instruction is in; 0 when the offset is an absolute address.
        pub code_object_id: u64,
        /// Address of the instruction minus the lowest loaded address of the code object.
        pub code_object_offset: u64,
    }
}

c_struct! {
    /// Location of a wave: shader engine, compute unit, SIMD and slot.
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_pc_sampling_hw_id_v0_t {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u64,
    }
}

bit_fields! {
    rocprofiler_pc_sampling_hw_id_v0_t.bits: u64 {
        /// Number of the XCC on the package, 0 for a GPU of one die (bits 0 to 5).
        chiplet with_chiplet 0 6
        /// Number of the wave slot in the SIMD (bits 6 to 12).
        wave_id with_wave_id 6 7
        /// Number of the SIMD in the compute unit (bits 13 to 14).
        simd_id with_simd_id 13 2
        /// Pipe of the micro engine that dispatched the wave (bits 15 to 18).
        pipe_id with_pipe_id 15 4
        /// Number of the compute unit, or of the WGP from GFX10 on, in its shader array (bits 19 to 22).
        cu_or_wgp_id with_cu_or_wgp_id 19 4
        /// Number of the shader array in the shader engine (bit 23).
        shader_array_id with_shader_array_id 23 1
        /// Number of the shader engine (bits 24 to 28).
        shader_engine_id with_shader_engine_id 24 5
        /// Slot of the workgroup on the compute unit, not its position in the grid (bits 29 to 35).
        workgroup_id with_workgroup_id 29 7
        /// Address space (VMID) of the process (bits 36 to 41).
        vm_id with_vm_id 36 6
        /// Hardware queue of the pipe (bits 42 to 45).
        queue_id with_queue_id 42 4
        /// Micro engine of the command processor (bits 46 to 47).
        microengine_id with_microengine_id 46 2
    }
}

c_struct! {
    /// Flags of a stochastic sample, which say which of its fields are valid.
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_pc_sampling_record_stochastic_header_t {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u8,
    }
}

bit_fields! {
    rocprofiler_pc_sampling_record_stochastic_header_t.bits: u8 {
        /// 1 when `memory_counters` is valid (bit 0).
        has_memory_counter with_has_memory_counter 0 1
    }
}

c_struct! {
    /// State of the issue logic at a stochastic sample.
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_pc_sampling_snapshot_v0_t {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u32,
    }
}

bit_fields! {
    rocprofiler_pc_sampling_snapshot_v0_t.bits: u32 {
        /// A [`rocprofiler_pc_sampling_instruction_not_issued_reason_t`], for a wave that did not issue (bits 0 to 3).
        reason_not_issued with_reason_not_issued 0 4
        /// 1 when the arbiter issued vector arithmetic in this cycle, of any wave (bit 5).
        arb_state_issue_valu with_arb_state_issue_valu 5 1
        /// 1 when the arbiter issued a matrix instruction in this cycle, of any wave (bit 6).
        arb_state_issue_matrix with_arb_state_issue_matrix 6 1
        /// 1 when the arbiter issued an access to LDS in this cycle, of any wave (bit 7).
        arb_state_issue_lds with_arb_state_issue_lds 7 1
        /// 1 when the arbiter issued a direct read of LDS in this cycle, of any wave (bit 8).
        arb_state_issue_lds_direct with_arb_state_issue_lds_direct 8 1
        /// 1 when the arbiter issued scalar arithmetic or scalar memory in this cycle, of any wave (bit 9).
        arb_state_issue_scalar with_arb_state_issue_scalar 9 1
        /// 1 when the arbiter issued vector memory or a texture in this cycle, of any wave (bit 10).
        arb_state_issue_vmem_tex with_arb_state_issue_vmem_tex 10 1
        /// 1 when the arbiter issued memory through flat addresses in this cycle, of any wave (bit 11).
        arb_state_issue_flat with_arb_state_issue_flat 11 1
        /// 1 when the arbiter issued an export in this cycle, of any wave (bit 12).
        arb_state_issue_exp with_arb_state_issue_exp 12 1
        /// 1 when the arbiter issued an instruction of no other class in this cycle, of any wave (bit 13).
        arb_state_issue_misc with_arb_state_issue_misc 13 1
        /// 1 when the arbiter issued a branch or message in this cycle, of any wave (bit 14).
        arb_state_issue_brmsg with_arb_state_issue_brmsg 14 1
        /// Not used (bit 15).
        arb_state_issue_reserved with_arb_state_issue_reserved 15 1
        /// 1 when vector arithmetic was chosen and stalled in this cycle, of any wave (bit 16).
        arb_state_stall_valu with_arb_state_stall_valu 16 1
        /// 1 when a matrix instruction was chosen and stalled in this cycle, of any wave (bit 17).
        arb_state_stall_matrix with_arb_state_stall_matrix 17 1
        /// 1 when an access to LDS was chosen and stalled in this cycle, of any wave (bit 18).
        arb_state_stall_lds with_arb_state_stall_lds 18 1
        /// 1 when a direct read of LDS was chosen and stalled in this cycle, of any wave (bit 19).
        arb_state_stall_lds_direct with_arb_state_stall_lds_direct 19 1
        /// 1 when scalar arithmetic or scalar memory was chosen and stalled in this cycle, of any wave (bit 20).
        arb_state_stall_scalar with_arb_state_stall_scalar 20 1
        /// 1 when vector memory or a texture was chosen and stalled in this cycle, of any wave (bit 21).
        arb_state_stall_vmem_tex with_arb_state_stall_vmem_tex 21 1
        /// 1 when memory through flat addresses was chosen and stalled in this cycle, of any wave (bit 22).
        arb_state_stall_flat with_arb_state_stall_flat 22 1
        /// 1 when an export was chosen and stalled in this cycle, of any wave (bit 23).
        arb_state_stall_exp with_arb_state_stall_exp 23 1
        /// 1 when an instruction of no other class was chosen and stalled in this cycle, of any wave (bit 24).
        arb_state_stall_misc with_arb_state_stall_misc 24 1
        /// 1 when a branch or message was chosen and stalled in this cycle, of any wave (bit 25).
        arb_state_stall_brmsg with_arb_state_stall_brmsg 25 1
        /// Not used (bit 26).
        arb_state_state_reserved with_arb_state_state_reserved 26 1
        /// 1 when two vector instructions were issued together (bit 27).
        dual_issue_valu with_dual_issue_valu 27 1
    }
}

c_struct! {
    /// Outstanding memory operations of the sampled wave.
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_pc_sampling_memory_counters_t {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u32,
    }
}

bit_fields! {
    rocprofiler_pc_sampling_memory_counters_t.bits: u32 {
        /// Loads that are outstanding (bits 0 to 5).
        load_cnt with_load_cnt 0 6
        /// Stores that are outstanding (bits 6 to 11).
        store_cnt with_store_cnt 6 6
        /// Ray intersections that are outstanding (bits 12 to 14).
        bvh_cnt with_bvh_cnt 12 3
        /// Texture samples that are outstanding (bits 15 to 20).
        sample_cnt with_sample_cnt 15 6
        /// Accesses to LDS that are outstanding (bits 21 to 26).
        ds_cnt with_ds_cnt 21 6
        /// Scalar loads and messages that are outstanding (bits 27 to 31).
        km_cnt with_km_cnt 27 5
    }
}

c_struct! {
    /// A sample of the method HOST_TRAP.
    struct rocprofiler_pc_sampling_record_host_trap_v0_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Location of the wave in the hardware.
        pub hw_id: rocprofiler_pc_sampling_hw_id_v0_t,
        /// Next instruction of the wave.
        pub pc: rocprofiler_pc_t,
        /// Lanes that were enabled, one bit each, lane 0 in bit 0.
        pub exec_mask: u64,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: u64,
        /// Dispatch that the wave belongs to.
        pub dispatch_id: u64,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_async_correlation_id_t,
        /// Position of the wave's workgroup in the grid.
        pub workgroup_id: rocprofiler_dim3_t,
        /// Number of the wave in its workgroup, from 0.
        pub wave_in_group: u8,
        /// Padding.
        pub reserved0: [u8; 3],
    }
}

c_struct! {
    /// A sample of the method STOCHASTIC.
    struct rocprofiler_pc_sampling_record_stochastic_v0_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Flags that say which fields of the sample are valid.
        pub flags: rocprofiler_pc_sampling_record_stochastic_header_t,
        /// Number of the wave in its workgroup, from 0.
        pub wave_in_group: u8,
        /// Whether the wave issued, and the class of the instruction.
        pub issue: u8,
        /// Location of the wave in the hardware.
        pub hw_id: rocprofiler_pc_sampling_hw_id_v0_t,
        /// Next instruction of the wave.
        pub pc: rocprofiler_pc_t,
        /// Lanes that were enabled, one bit each, lane 0 in bit 0.
        pub exec_mask: u64,
        /// Position of the wave's workgroup in the grid.
        pub workgroup_id: rocprofiler_dim3_t,
        /// Waves active on the compute unit.
        pub wave_count: u32,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: u64,
        /// Dispatch that the wave belongs to.
        pub dispatch_id: u64,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_async_correlation_id_t,
        /// State of the issue logic at the sample.
        pub snapshot: rocprofiler_pc_sampling_snapshot_v0_t,
        /// Outstanding memory operations; valid when the flag is set.
        pub memory_counters: rocprofiler_pc_sampling_memory_counters_t,
    }
}

bit_fields! {
    rocprofiler_pc_sampling_record_stochastic_v0_t.issue: u8 {
        /// 1 when the wave issued an instruction.
        wave_issued with_wave_issued 0 1
        /// A [`rocprofiler_pc_sampling_instruction_type_t`] value.
        inst_type with_inst_type 1 5
    }
}

c_struct! {
    /// A sample without usable data, which counts as lost.
    struct rocprofiler_pc_sampling_record_invalid_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
    }
}

/// Receives the ways an agent can be sampled; the array lasts for the call only.
pub type rocprofiler_available_pc_sampling_configurations_cb_t = Option<
    unsafe extern "C" fn(
        configurations: *const rocprofiler_pc_sampling_configuration_t,
        count: usize,
        data: *mut c_void,
    ) -> rocprofiler_status_t,
>;
