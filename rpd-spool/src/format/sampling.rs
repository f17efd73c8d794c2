//! PC samples, and the bytes of code objects that they (and thread traces) refer to.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Sampling configuration of an agent.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PcSampling {
    /// Record head.
    pub header: RecordHeader,
    /// Agent handle.
    pub agent: u64,
    /// 1 stochastic, 2 host trap, as the provider numbers methods.
    pub method: u32,
    /// 1 instructions, 2 cycles, 3 time in microseconds, as the provider numbers units.
    pub unit: u32,
    /// Between two samples, in `unit`.
    pub interval: u64,
}

/// Bits of [`PcSample::flags`].
pub mod sample_flag {
    /// A stochastic sample; the fields of the issue logic are meaningful for these only.
    pub const STOCHASTIC: u8 = 1;
    /// The wave issued an instruction.
    pub const ISSUED: u8 = 2;
    /// [`super::PcSample::memory`] is meaningful.
    pub const MEMORY: u8 = 4;
}

/// A program counter of a wave at one moment.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PcSample {
    /// Record head.
    pub header: RecordHeader,
    /// Time, in ns of `CLOCK_BOOTTIME`.
    pub time: u64,
    /// [`super::CodeObject::id`]; 0 when the provider found none for the address.
    pub code_object: u64,
    /// Offset from the load address of the code object; an address when there is none.
    pub offset: u64,
    /// Lanes that were enabled.
    pub exec: u64,
    /// Dispatch id; 0 when the provider does not report it.
    pub dispatch: u64,
    /// Internal correlation id of the call that submitted the dispatch.
    pub correlation: u64,
    /// Location of the wave, as the provider packs it.
    pub hardware: u64,
    /// Position of the workgroup in the grid.
    pub workgroup: [u32; 3],
    /// [`super::Region::id`]; 0 when none.
    pub region: u32,
    /// Number of the wave in its workgroup.
    pub wave: u8,
    /// [`sample_flag`]s.
    pub flags: u8,
    /// Class of the instruction, as the provider numbers them.
    pub class: u8,
    /// Not used; 0.
    pub reserved: u8,
    /// Waves that were active on the compute unit.
    pub waves: u32,
    /// State of the issue logic, as the provider packs it.
    pub snapshot: u32,
    /// Outstanding memory operations, as the provider packs them.
    pub memory: u32,
}

/// A part of the bytes of a code object. Tail: the bytes. The parts of one follow one another.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CodeBytes {
    /// Record head.
    pub header: RecordHeader,
    /// Names the content: code objects with the same bytes have the same, and the bytes are there once.
    pub content: [u64; 2],
    /// Size of the whole code object in bytes.
    pub size: u64,
    /// Offset of this part in the code object, in bytes.
    pub offset: u64,
    /// Bytes in the tail.
    pub len: u32,
    /// Not used; 0.
    pub reserved: u32,
}

/// A code object that is loaded has these bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CodeContent {
    /// Record head.
    pub header: RecordHeader,
    /// [`super::CodeObject::id`].
    pub code_object: u64,
    /// [`CodeBytes::content`].
    pub content: [u64; 2],
}

const _: () = {
    assert!(size_of::<PcSample>() == 96);
};
