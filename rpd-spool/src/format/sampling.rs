//! Records of PC samples, and of the bytes of code objects that PC samples and thread traces refer to.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Settings with which an agent is sampled (`rocprofiler_pc_sampling_configuration_t`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PcSampling {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Handle of the sampled agent.
    pub agent: u64,
    /// Method (`rocprofiler_pc_sampling_method_t`): 1 stochastic, 2 host trap.
    pub method: u32,
    /// Unit of the interval (`rocprofiler_pc_sampling_unit_t`): 1 instructions, 2 cycles, 3 microseconds.
    pub unit: u32,
    /// Distance between two samples, in `unit`.
    pub interval: u64,
}

/// Bits of [`PcSample::flags`].
pub mod sample_flag {
    /// The sample is stochastic. `class`, `waves` and `snapshot` are valid for these only.
    pub const STOCHASTIC: u8 = 1;
    /// The wave issued an instruction.
    pub const ISSUED: u8 = 2;
    /// The field [`super::PcSample::memory`] is valid.
    pub const MEMORY: u8 = 4;
}

/// The program counter of a wave at one moment (`rocprofiler_pc_sampling_record_host_trap_v0_t` or
/// `rocprofiler_pc_sampling_record_stochastic_v0_t`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PcSample {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Time of the sample.
    pub time: u64,
    /// Id of the code object; 0 when the provider found none for the address.
    pub code_object: u64,
    /// Offset from the load address of the code object; an address when there is no code object.
    pub offset: u64,
    /// Lanes that were enabled: one bit for each, lane 0 in bit 0.
    pub exec: u64,
    /// Id of the dispatch; 0 when the provider does not report it.
    pub dispatch: u64,
    /// Correlation id of the call that submitted the dispatch.
    pub correlation: u64,
    /// Hardware unit on which the wave ran, packed by the provider (`rocprofiler_pc_sampling_hw_id_v0_t`), with the die
    /// in the lowest bits.
    pub hardware: u64,
    /// Position of the workgroup in the grid: x, y, z.
    pub workgroup: [u32; 3],
    /// Region that renames the kernel: [`super::Region::id`]; 0 when there is none.
    pub region: u32,
    /// Number of the wave in its workgroup, from 0.
    pub wave: u8,
    /// Method of the sample and valid fields: bits of [`sample_flag`].
    pub flags: u8,
    /// Class of the instruction (`rocprofiler_pc_sampling_instruction_type_t`).
    pub class: u8,
    /// Not used: 0.
    pub reserved: u8,
    /// Number of waves that were active on the compute unit.
    pub waves: u32,
    /// State of the issue logic, packed as `rocprofiler_pc_sampling_snapshot_v0_t`.
    pub snapshot: u32,
    /// Outstanding memory operations, packed as `rocprofiler_pc_sampling_memory_counters_t`.
    pub memory: u32,
}

/// Samples at an instruction in the same state, added up by the provider: nothing is known of each of them, neither its
/// time nor its wave nor its dispatch. Several records of a place are to be added up.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PcCount {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the code object.
    pub code_object: u64,
    /// Offset in the code object. Of a CUDA module: the number of the function's symbol in the upper half, and the offset
    /// from the begin of the function in the lower half.
    pub offset: u64,
    /// Id of the function's symbol: [`super::KernelSymbol::id`].
    pub function: u64,
    /// Number of samples.
    pub samples: u64,
    /// [`WARP_ISSUED`], or the number of the reason why the warp did not issue an instruction: [`FIRST_WARP_REASON`] for
    /// the first of [`WARP_REASONS`].
    pub issue: u32,
    /// Not used: 0.
    pub reserved: u32,
}

/// [`PcCount::issue`] of samples in which the warp issued an instruction.
pub const WARP_ISSUED: u32 = 255;

/// [`PcCount::issue`] of the first of [`WARP_REASONS`]: numbers below are those of reasons of the SDK.
pub const FIRST_WARP_REASON: u32 = 16;

/// Reasons why a warp of an NVIDIA GPU did not issue an instruction: CUPTI's names after `stalled_`, in capitals.
/// The last one stands for reasons that this table lacks. Numbers are stored: new reasons go to the end.
pub const WARP_REASONS: [&str; 20] = [
    "BARRIER",
    "BRANCH_RESOLVING",
    "DISPATCH_STALL",
    "DRAIN",
    "GMMA",
    "IMC_MISS",
    "LG_THROTTLE",
    "LONG_SCOREBOARD",
    "MATH_PIPE_THROTTLE",
    "MEMBAR",
    "MIO_THROTTLE",
    "MISC",
    "NO_INSTRUCTIONS",
    "NOT_SELECTED",
    "SHORT_SCOREBOARD",
    "SLEEPING",
    "TEX_THROTTLE",
    "WAIT",
    "WARPGROUP_ARRIVE",
    "ANOTHER_REASON",
];

/// A part of the ELF image of a code object. Tail: the bytes. The parts of an image are consecutive records of the
/// meta stream.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CodeBytes {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Hash of the whole image, which identifies it. Code objects with equal bytes share an image, which is stored
    /// once.
    pub content: [u64; 2],
    /// Size of the whole image.
    pub size: u64,
    /// Offset of this part in the image.
    pub offset: u64,
    /// Length of the part in the tail.
    pub len: u32,
    /// Not used: 0.
    pub reserved: u32,
}

/// States which image a loaded code object has.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CodeContent {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the code object: [`super::CodeObject::id`].
    pub code_object: u64,
    /// Hash of the image: [`CodeBytes::content`].
    pub content: [u64; 2],
}

const _: () = {
    assert!(size_of::<PcSample>() == 96);
    assert!(size_of::<PcCount>() == 48);
};
