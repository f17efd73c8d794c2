//! Thread trace: configuration, raw data and decoded records.

use core::ffi::c_void;

use crate::ids::{
    rocprofiler_agent_id_t, rocprofiler_async_correlation_id_t, rocprofiler_counter_id_t,
    rocprofiler_dispatch_id_t, rocprofiler_kernel_id_t, rocprofiler_queue_id_t,
    rocprofiler_user_data_t,
};
use crate::macros::{bit_fields, c_enum, c_struct};

c_enum! {
    /// Setting that a thread trace parameter carries.
    rocprofiler_thread_trace_parameter_type_t: u32 {
        /// Compute unit (WGP) whose instructions are traced.
        TARGET_CU = 0 => c"ROCPROFILER_THREAD_TRACE_PARAMETER_TARGET_CU",
        /// Shader engines to trace, one bit each.
        SHADER_ENGINE_MASK = 1 => c"ROCPROFILER_THREAD_TRACE_PARAMETER_SHADER_ENGINE_MASK",
        /// Bytes of the trace buffer.
        BUFFER_SIZE = 2 => c"ROCPROFILER_THREAD_TRACE_PARAMETER_BUFFER_SIZE",
        /// SIMDs to trace: a mask, or a number on newer hardware.
        SIMD_SELECT = 3 => c"ROCPROFILER_THREAD_TRACE_PARAMETER_SIMD_SELECT",
        /// Period of counter samples.
        PERFCOUNTERS_CTRL = 4 => c"ROCPROFILER_THREAD_TRACE_PARAMETER_PERFCOUNTERS_CTRL",
        /// A counter to sample.
        PERFCOUNTER = 5 => c"ROCPROFILER_THREAD_TRACE_PARAMETER_PERFCOUNTER",
        /// Whether dispatches that are not traced are serialised too.
        SERIALIZE_ALL = 6 => c"ROCPROFILER_THREAD_TRACE_PARAMETER_SERIALIZE_ALL",
        /// End marker of this version of the list.
        LAST = 7 => c"ROCPROFILER_THREAD_TRACE_PARAMETER_LAST",
    }
}

impl rocprofiler_thread_trace_parameter_type_t {
    /// Key from SDK 1.1 on, where 7 is not an end marker: mask of the compute units whose counters are left out.
    pub const LATER_PERFCOUNTER_EXCLUDE_MASK: Self = Self(7);
    /// Setting from SDK 1.1 on: waves are traced without their instructions.
    pub const LATER_NO_DETAIL: Self = Self(8);
    /// Setting from SDK 1.3 on: 0 or 1 for one buffer, 3 and more for an asynchronous copy of a single engine.
    pub const LATER_NUM_BUFFERS: Self = Self(9);
}

c_enum! {
    /// Answer of a dispatch callback: trace this dispatch or not.
    rocprofiler_thread_trace_control_flags_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_THREAD_TRACE_CONTROL_NONE",
        /// Trace this dispatch.
        START_AND_STOP = 3 => c"ROCPROFILER_THREAD_TRACE_CONTROL_START_AND_STOP",
    }
}

c_enum! {
    /// Type of the records that a decoder callback receives.
    rocprofiler_thread_trace_decoder_record_type_t: u32 {
        /// The hardware generation, as a number in the pointer.
        GFXIP = 0 => c"ROCPROFILER_THREAD_TRACE_DECODER_RECORD_GFXIP",
        /// Records of `rocprofiler_thread_trace_decoder_occupancy_t`.
        OCCUPANCY = 1 => c"ROCPROFILER_THREAD_TRACE_DECODER_RECORD_OCCUPANCY",
        /// Records of `rocprofiler_thread_trace_decoder_perfevent_t`.
        PERFEVENT = 2 => c"ROCPROFILER_THREAD_TRACE_DECODER_RECORD_PERFEVENT",
        /// Records of `rocprofiler_thread_trace_decoder_wave_t`.
        WAVE = 3 => c"ROCPROFILER_THREAD_TRACE_DECODER_RECORD_WAVE",
        /// Records of `rocprofiler_thread_trace_decoder_info_t`.
        INFO = 4 => c"ROCPROFILER_THREAD_TRACE_DECODER_RECORD_INFO",
        /// Records for the developers of the decoder.
        DEBUG = 5 => c"ROCPROFILER_THREAD_TRACE_DECODER_RECORD_DEBUG",
        /// End marker of this version of the list.
        LAST = 6 => c"ROCPROFILER_THREAD_TRACE_DECODER_RECORD_LAST",
    }
}

c_enum! {
    /// Notes of the decoder about the quality of the data.
    rocprofiler_thread_trace_decoder_info_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_THREAD_TRACE_DECODER_INFO_NONE",
        /// Data was lost while tracing.
        DATA_LOST = 1 => c"ROCPROFILER_THREAD_TRACE_DECODER_INFO_DATA_LOST",
        /// Some instructions could not be matched with code.
        STITCH_INCOMPLETE = 2 => c"ROCPROFILER_THREAD_TRACE_DECODER_INFO_STITCH_INCOMPLETE",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_THREAD_TRACE_DECODER_INFO_LAST",
    }
}

c_enum! {
    /// State of a wave during a span of time.
    rocprofiler_thread_trace_decoder_wstate_type_t: u32 {
        /// The slot holds no wave.
        EMPTY = 0 => c"ROCPROFILER_THREAD_TRACE_DECODER_WSTATE_EMPTY",
        /// The wave has nothing to issue.
        IDLE = 1 => c"ROCPROFILER_THREAD_TRACE_DECODER_WSTATE_IDLE",
        /// An instruction executes.
        EXEC = 2 => c"ROCPROFILER_THREAD_TRACE_DECODER_WSTATE_EXEC",
        /// The wave waits for a counter or a barrier.
        WAIT = 3 => c"ROCPROFILER_THREAD_TRACE_DECODER_WSTATE_WAIT",
        /// An instruction is ready and cannot issue.
        STALL = 4 => c"ROCPROFILER_THREAD_TRACE_DECODER_WSTATE_STALL",
        /// End marker of this version of the list.
        LAST = 5 => c"ROCPROFILER_THREAD_TRACE_DECODER_WSTATE_LAST",
    }
}

c_enum! {
    /// Class of a traced instruction.
    rocprofiler_thread_trace_decoder_inst_category_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_NONE",
        /// Scalar memory.
        SMEM = 1 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_SMEM",
        /// Scalar arithmetic.
        SALU = 2 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_SALU",
        /// Vector memory.
        VMEM = 3 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_VMEM",
        /// Memory through flat addresses.
        FLAT = 4 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_FLAT",
        /// Access to the local data share.
        LDS = 5 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_LDS",
        /// Vector arithmetic.
        VALU = 6 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_VALU",
        /// Branch taken.
        JUMP = 7 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_JUMP",
        /// Branch not taken.
        NEXT = 8 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_NEXT",
        /// Handled inside the sequencer, such as a wait or a nop.
        IMMED = 9 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_IMMED",
        /// The wave's state is saved or restored.
        CONTEXT = 10 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_CONTEXT",
        /// `s_sendmsg`.
        MESSAGE = 11 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_MESSAGE",
        /// Ray intersection.
        BVH = 12 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_BVH",
        /// End marker of this version of the list.
        LAST = 13 => c"ROCPROFILER_THREAD_TRACE_DECODER_INST_LAST",
    }
}

c_struct! {
    /// A counter whose values are put into the trace.
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_thread_trace_counter_t {
        /// Counter of the block SQ of the traced agent.
        pub counter_id: rocprofiler_counter_id_t,
        /// SIMDs to count on, one bit each; the low four bits count.
        pub simd_mask: u64,
    }
}

c_struct! {
    /// Value of a thread trace parameter; an anonymous union in C.
    union rocprofiler_thread_trace_parameter_value_t {
        /// Value of all other settings.
        pub value: u64,
        /// Value of the setting PERFCOUNTER.
        pub counter: rocprofiler_thread_trace_counter_t,
    }
}

c_struct! {
    /// One setting of the thread trace service, as a key and its value.
    struct rocprofiler_thread_trace_parameter_t {
        /// Key; it determines the valid member of `data`.
        pub r#type: rocprofiler_thread_trace_parameter_type_t,
        /// Value of the setting.
        pub data: rocprofiler_thread_trace_parameter_value_t,
    }
}

c_struct! {
    /// A program counter in a decoded trace.
    struct rocprofiler_thread_trace_decoder_pc_t {
        /// Absolute address, or virtual address inside the ELF of the code object.
        pub addr: usize,
        /// Id of the code object, 0 when `addr` is absolute.
        pub marker_id: usize,
    }
}

c_struct! {
    /// Counter values at a point in time.
    struct rocprofiler_thread_trace_decoder_perfevent_t {
        /// Cycle of the shader clock.
        pub time: i64,
        /// Value of the bank's first counter.
        pub events0: u16,
        /// Value of the bank's second counter.
        pub events1: u16,
        /// Value of the bank's third counter.
        pub events2: u16,
        /// Value of the bank's fourth counter.
        pub events3: u16,
        /// Number of the compute unit in its shader array.
        pub CU: u8,
        /// Group of four counters that the values are from.
        pub bank: u8,
    }
}

c_struct! {
    /// A wave began or ended.
    struct rocprofiler_thread_trace_decoder_occupancy_t {
        /// First instruction of the wave.
        pub pc: rocprofiler_thread_trace_decoder_pc_t,
        /// Cycle of the shader clock.
        pub time: u64,
        /// Not used.
        pub reserved: u8,
        /// Number of the compute unit in its shader array.
        pub cu: u8,
        /// Number of the SIMD in the compute unit, from 0.
        pub simd: u8,
        /// Number of the wave slot in the SIMD, from 0.
        pub slot: u8,
        /// Bit 0: 1 for a start, 0 for an end.
        pub start_bits: u32,
    }
}

bit_fields! {
    rocprofiler_thread_trace_decoder_occupancy_t.start_bits: u32 {
        /// 1 when the wave began, 0 when it ended.
        start with_start 0 1
    }
}

c_struct! {
    /// A stretch of time in one state.
    struct rocprofiler_thread_trace_decoder_wave_state_t {
        /// A [`rocprofiler_thread_trace_decoder_wstate_type_t`] value.
        pub r#type: i32,
        /// Length in cycles of the shader clock.
        pub duration: i32,
    }
}

c_struct! {
    /// An executed instruction.
    struct rocprofiler_thread_trace_decoder_inst_t {
        /// Category in the low 8 bits, stall cycles in the others.
        pub category_stall: u32,
        /// Length in cycles of the shader clock.
        pub duration: i32,
        /// Cycle of the shader clock.
        pub time: i64,
        /// Location of the instruction.
        pub pc: rocprofiler_thread_trace_decoder_pc_t,
    }
}

bit_fields! {
    rocprofiler_thread_trace_decoder_inst_t.category_stall: u32 {
        /// A [`rocprofiler_thread_trace_decoder_inst_category_t`] value.
        category with_category 0 8
        /// Cycles the instruction waited, part of its duration.
        stall with_stall 8 24
    }
}

c_struct! {
    /// A wave with its states and instructions.
    struct rocprofiler_thread_trace_decoder_wave_t {
        /// Number of the compute unit in its shader array.
        pub cu: u8,
        /// Number of the SIMD in the compute unit, from 0.
        pub simd: u8,
        /// Number of the wave slot in the SIMD, from 0.
        pub wave_id: u8,
        /// Number of times that the wave's state was saved.
        pub contexts: u8,
        /// Not used.
        pub _rsvd1: u32,
        /// Not used.
        pub _rsvd2: u32,
        /// Not used.
        pub _rsvd3: u32,
        /// Cycle of the shader clock at which the wave began.
        pub begin_time: i64,
        /// Cycle of the shader clock at which the wave ended.
        pub end_time: i64,
        /// Number of entries of `timeline_array`.
        pub timeline_size: usize,
        /// Number of entries of `instructions_array`.
        pub instructions_size: usize,
        /// States of the wave, in the order of time.
        pub timeline_array: *mut rocprofiler_thread_trace_decoder_wave_state_t,
        /// Instructions of the wave, in the order of time.
        pub instructions_array: *mut rocprofiler_thread_trace_decoder_inst_t,
    }
}

/// Decides whether a dispatch is traced, on the enqueuing thread.
pub type rocprofiler_thread_trace_dispatch_callback_t = Option<
    unsafe extern "C" fn(
        agent: rocprofiler_agent_id_t,
        queue: rocprofiler_queue_id_t,
        correlation_id: rocprofiler_async_correlation_id_t,
        kernel: rocprofiler_kernel_id_t,
        dispatch: rocprofiler_dispatch_id_t,
        data: *mut c_void,
        user_data: *mut rocprofiler_user_data_t,
    ) -> rocprofiler_thread_trace_control_flags_t,
>;

/// Receives the raw trace of one shader engine; the data lasts for the call only. From SDK 1.3 on the parameters come
/// in one struct, which is another ABI.
pub type rocprofiler_thread_trace_shader_data_callback_t = Option<
    unsafe extern "C" fn(
        agent: rocprofiler_agent_id_t,
        shader_engine: i64,
        bytes: *mut c_void,
        size: usize,
        user_data: rocprofiler_user_data_t,
    ),
>;

c_struct! {
    /// The two clocks of an agent at one time.
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_thread_trace_clocks_t {
        /// The agent's counter.
        pub gpu: u64,
        /// Nanoseconds of the host's clock.
        pub system: u64,
    }
}

c_struct! {
    /// A part of the raw trace of a shader engine, as the callback has it from SDK 1.3 on.
    struct rocprofiler_thread_trace_shader_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// First byte of the part; valid during the callback.
        pub data: *mut c_void,
        /// Number of bytes of the part.
        pub data_size: u64,
        /// Number of the shader engine, from 0.
        pub shader_engine_id: i64,
        /// Number of the part in the trace of the engine, from 0.
        pub chunk: u64,
        /// Offset of the part in the trace of the engine, in bytes.
        pub offset: u64,
        /// GPU that was traced.
        pub agent_id: rocprofiler_agent_id_t,
        /// A sum of [`Self::END`], [`Self::GPU_BUFFER_FULL`] and [`Self::CPU_BUFFER_FULL`].
        pub flags: i32,
        /// Clocks when the part began.
        pub start: rocprofiler_thread_trace_clocks_t,
        /// Clocks when the part ended.
        pub end: rocprofiler_thread_trace_clocks_t,
    }
}

impl rocprofiler_thread_trace_shader_data_t {
    /// Flag of the last part of an engine.
    pub const END: i32 = 1;
    /// Flag: data were lost because the buffer on the device was full.
    pub const GPU_BUFFER_FULL: i32 = 2;
    /// Flag: data were lost because the buffer on the host was full.
    pub const CPU_BUFFER_FULL: i32 = 4;
}

/// [`rocprofiler_thread_trace_shader_data_callback_t`] from SDK 1.3 on: parts may arrive in any order and at the same
/// time.
pub type rocprofiler_thread_trace_shader_data_later_callback_t = Option<
    unsafe extern "C" fn(
        part: rocprofiler_thread_trace_shader_data_t,
        user_data: rocprofiler_user_data_t,
    ),
>;

/// Receives decoded records of one type; the array lasts for the call only.
pub type rocprofiler_thread_trace_decoder_callback_t = Option<
    unsafe extern "C" fn(
        kind: rocprofiler_thread_trace_decoder_record_type_t,
        records: *mut c_void,
        count: u64,
        data: *mut c_void,
    ),
>;
