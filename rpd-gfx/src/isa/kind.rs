//! Kinds of instructions, as finely as hardware counters distinguish them.

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
