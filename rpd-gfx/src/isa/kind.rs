//! Kinds of instructions, as finely as hardware counters distinguish them.

use super::Class;
use super::inst::{Format, GLC, Inst, STREAMING};

/// Kind of an instruction, with the properties that counters and timing depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Vector arithmetic.
    Valu(Valu),
    /// Matrix arithmetic.
    Matrix(Matrix),
    /// Scalar arithmetic.
    Salu,
    /// Scalar memory, with the number of dwords that are loaded; 0 for other instructions.
    Smem(u32),
    /// Vector memory.
    Vmem(Vmem),
    /// LDS, and exchanges between lanes.
    Lds,
    /// Global wave sync.
    Gds,
    /// A branch, taken or not taken.
    Branch,
    /// `s_sendmsg`.
    Message,
    /// `s_endpgm`.
    End,
    /// `s_barrier`.
    Barrier,
    /// `s_waitcnt`: number of vector memory operations, and number of LDS and scalar operations, that may be
    /// outstanding.
    Wait(u32, u32),
    /// `s_sleep`, with its duration in units of 64 cycles.
    Sleep(u32),
    /// An invalidation of the first-level cache.
    Invalidate,
    /// A write-back of the second-level cache.
    WriteBack,
    /// No-ops, priorities, modes and other cache controls.
    Other,
}

/// Kind of a vector arithmetic instruction. Packed operations have the kind of their elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Valu {
    /// Half-precision addition and subtraction.
    AddF16,
    /// Half-precision multiplication.
    MulF16,
    /// Half-precision multiply-add.
    FmaF16,
    /// Half-precision transcendental function: reciprocal, square root, exponential and others.
    TransF16,
    /// Single-precision addition and subtraction.
    AddF32,
    /// Single-precision multiplication.
    MulF32,
    /// Single-precision multiply-add.
    FmaF32,
    /// Single-precision transcendental function: reciprocal, square root, sine and others.
    TransF32,
    /// Double-precision addition and subtraction.
    AddF64,
    /// Double-precision multiplication.
    MulF64,
    /// Double-precision multiply-add.
    FmaF64,
    /// Double-precision reciprocal and square root.
    TransF64,
    /// 32-bit integer and bitwise operation or comparison.
    Int32,
    /// 64-bit integer operation.
    Int64,
    /// Conversion between number formats.
    Convert,
    /// Any other vector arithmetic: moves, selections, 16-bit integers, floating-point comparisons, minima.
    Other,
}

impl Valu {
    /// Number of kinds.
    pub const COUNT: usize = Self::Other as usize + 1;

    /// Whether the instruction is executed at a quarter of the rate of others.
    pub fn is_transcendental(self) -> bool {
        matches!(self, Self::TransF16 | Self::TransF32 | Self::TransF64)
    }
}

/// The element type of a matrix instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum MatrixElement {
    /// 8-bit integers.
    I8,
    /// Half precision.
    F16,
    /// BF16.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// 8-bit floating point.
    F8,
}

impl MatrixElement {
    /// Number of element types.
    pub const COUNT: usize = Self::F8 as usize + 1;
}

/// A matrix instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrix {
    /// Type of the elements of A and B.
    pub element: MatrixElement,
    /// Number of multiplications and additions.
    pub operations: u32,
    /// Number of cycles in which the matrix unit is busy.
    pub cycles: u32,
}

/// The kind of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Load.
    Load,
    /// Store.
    Store,
    /// Read-modify-write, with whether the old value is returned.
    Atomic(bool),
}

/// A vector memory instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vmem {
    /// Whether it has the encoding FLAT: flat, global or scratch.
    pub flat: bool,
    /// Load, store or atomic.
    pub operation: Operation,
    /// Number of data registers of each lane.
    pub dwords: u32,
    /// Whether a load bypasses the first-level cache.
    pub coherent: bool,
    /// Whether the data will not be used again soon.
    pub streaming: bool,
}

/// The kind of an instruction.
pub(super) fn kind(i: &Inst) -> Kind {
    match i.class {
        Class::Valu => Kind::Valu(valu(i)),
        Class::Mfma => super::mfma::kind(i).map_or(Kind::Other, Kind::Matrix),
        Class::Salu => Kind::Salu,
        Class::Smem => Kind::Smem(match i.opcode {
            0x00..=0x04 => 1 << i.opcode,
            0x08..=0x0c => 1 << (i.opcode - 8),
            _ => 0,
        }),
        Class::VmemRead | Class::VmemWrite | Class::Flat => Kind::Vmem(vmem(i)),
        Class::Lds if matches!(i.opcode, 0x98..=0x9d) => Kind::Gds,
        Class::Lds => Kind::Lds,
        Class::Branch => Kind::Branch,
        Class::SendMessage => Kind::Message,
        Class::Other if i.format == Format::Sopp => match i.opcode {
            0x01 | 0x1b | 0x1e => Kind::End,
            0x0a => Kind::Barrier,
            0x0c => {
                let counts = i.literal;
                Kind::Wait(counts & 15 | counts >> 10 & 0x30, counts >> 8 & 15)
            }
            0x0e => Kind::Sleep(i.literal & 0x7f),
            0x17..=0x1a => Kind::Branch,
            _ => Kind::Other,
        },
        // `buffer_wbinvl1`, `buffer_wbinvl1_vol`; `buffer_invl2`, which is `buffer_inv` on gfx942.
        Class::Other if i.format == Format::Mubuf && matches!(i.opcode, 0x29 | 0x3e | 0x3f) => {
            Kind::Invalidate
        }
        // `buffer_wbl2`.
        Class::Other if i.format == Format::Mubuf && i.opcode == 0x28 => Kind::WriteBack,
        Class::Other => Kind::Other,
    }
}

fn vmem(i: &Inst) -> Vmem {
    let returns = i.flags & GLC != 0;
    let elements = super::typed_buffer::transfer(i).or_else(|| super::mimg::transfer(i));
    if let Some((operation, dwords)) = elements {
        return Vmem {
            flat: false,
            operation,
            dwords,
            coherent: operation == Operation::Load && returns,
            streaming: i.has(STREAMING),
        };
    }
    let (operation, dwords) = match i.opcode {
        0x10..=0x13 | 0x20..=0x2a => (Operation::Load, 1),
        0x14..=0x17 => (Operation::Load, u32::from(i.opcode) - 0x13),
        0x18..=0x1b => (Operation::Store, 1),
        0x1c..=0x1f => (Operation::Store, u32::from(i.opcode) - 0x1b),
        // Compare-and-swap has two data registers.
        0x41 => (Operation::Atomic(returns), 2),
        0x40..=0x4e | 0x52 => (Operation::Atomic(returns), 1),
        0x61 => (Operation::Atomic(returns), 4),
        _ => (Operation::Atomic(returns), 2),
    };
    Vmem {
        flat: i.format != Format::Mubuf,
        operation,
        dwords,
        coherent: operation == Operation::Load && returns,
        streaming: i.has(STREAMING),
    }
}

fn valu(i: &Inst) -> Valu {
    match (i.format, i.opcode) {
        (Format::Vop1, op) => vop1(op),
        (Format::Vop2, op) => vop2(op),
        (Format::Vopc, op) => vopc(op),
        (Format::Vop3p, op) => vop3p(op),
        // The first opcodes of VOP3 are the long forms of VOPC.
        (_, op @ 0..=0xff) => vopc(op),
        (_, op @ 0x100..=0x13f) => vop2(op - 0x100),
        (_, op @ 0x140..=0x1bf) => vop1(op - 0x140),
        (_, op) => vop3(op),
    }
}

fn vop1(opcode: u16) -> Valu {
    match opcode {
        0x03..=0x08 | 0x0a..=0x16 | 0x39..=0x3c | 0x4d..=0x4f | 0x54..=0x57 => Valu::Convert,
        0x20..=0x24 | 0x27 | 0x29 | 0x2a | 0x4b | 0x4c => Valu::TransF32,
        0x25 | 0x26 | 0x28 => Valu::TransF64,
        0x2b..=0x2f => Valu::Int32,
        0x3d..=0x41 | 0x49 | 0x4a => Valu::TransF16,
        _ => Valu::Other,
    }
}

fn vop2(opcode: u16) -> Valu {
    match opcode {
        0x01..=0x03 => Valu::AddF32,
        0x04 => Valu::FmaF64,
        0x05 => Valu::MulF32,
        0x06..=0x09 | 0x0c..=0x15 | 0x19..=0x1e | 0x34..=0x36 | 0x38..=0x3a | 0x3d => Valu::Int32,
        0x16..=0x18 | 0x3b => Valu::FmaF32,
        0x1f..=0x21 => Valu::AddF16,
        0x22 => Valu::MulF16,
        0x23..=0x25 | 0x3c => Valu::FmaF16,
        _ => Valu::Other,
    }
}

fn vopc(opcode: u16) -> Valu {
    match opcode {
        0xc0..=0xdf => Valu::Int32,
        0xe0..=0xff => Valu::Int64,
        _ => Valu::Other,
    }
}

fn vop3(opcode: u16) -> Valu {
    match opcode {
        0x1c0 | 0x1c1 | 0x1cb | 0x1e2 => Valu::FmaF32,
        0x1cc | 0x1e3 => Valu::FmaF64,
        0x1c2 | 0x1c3 | 0x1c8..=0x1ca | 0x1cd..=0x1cf => Valu::Int32,
        0x1d1 | 0x1d2 | 0x1d4 | 0x1d5 | 0x1d7..=0x1dc => Valu::Int32,
        0x1e4 | 0x1ed | 0x1f1..=0x1f3 | 0x1fd..=0x202 => Valu::Int32,
        0x285..=0x287 | 0x28b..=0x28d | 0x293 | 0x29c | 0x29d => Valu::Int32,
        0x1e5 | 0x1e6 | 0x1e8 | 0x1e9 | 0x208 | 0x28f..=0x291 => Valu::Int64,
        0x1ea | 0x1ee | 0x203 | 0x206 => Valu::FmaF16,
        0x1dd | 0x294..=0x298 | 0x2a2..=0x2a5 => Valu::Convert,
        0x280 => Valu::AddF64,
        0x281 => Valu::MulF64,
        0x2a1 => Valu::MulF32,
        _ => Valu::Other,
    }
}

fn vop3p(opcode: u16) -> Valu {
    match opcode {
        0x0e => Valu::FmaF16,
        0x0f => Valu::AddF16,
        0x10 => Valu::MulF16,
        0x20..=0x22 | 0x30 => Valu::FmaF32,
        0x26..=0x2b => Valu::Int32,
        0x31 => Valu::MulF32,
        0x32 => Valu::AddF32,
        _ => Valu::Other,
    }
}
