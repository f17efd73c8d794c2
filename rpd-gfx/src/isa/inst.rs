//! The decoded form of an instruction.

use super::Class;
use super::exec::Exec;
use super::fault::unknown_instruction;

/// The type of functions that execute an instruction.
pub(super) type Handler = fn(&mut Exec<'_>, &Inst);

/// The instruction encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vop3,
    Vopc,
    Vop3p,
    Ds,
    Flat,
    Global,
    Scratch,
    Mubuf,
    Mtbuf,
    Mimg,
    Unknown,
}

impl Format {
    /// Name as the ISA manual writes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sop1 => "SOP1",
            Self::Sop2 => "SOP2",
            Self::Sopk => "SOPK",
            Self::Sopc => "SOPC",
            Self::Sopp => "SOPP",
            Self::Smem => "SMEM",
            Self::Vop1 => "VOP1",
            Self::Vop2 => "VOP2",
            Self::Vop3 => "VOP3",
            Self::Vopc => "VOPC",
            Self::Vop3p => "VOP3P",
            Self::Ds => "DS",
            Self::Flat => "FLAT",
            Self::Global => "GLOBAL",
            Self::Scratch => "SCRATCH",
            Self::Mubuf => "MUBUF",
            Self::Mtbuf => "MTBUF",
            Self::Mimg => "MIMG",
            Self::Unknown => "unknown encoding",
        }
    }
}

/// The result is clamped: floats to 0..1, integers to their range.
pub(super) const CLAMP: u8 = 1;
/// `literal` is an SDWA control word.
pub(super) const SDWA: u8 = 2;
/// `literal` is a DPP control word.
pub(super) const DPP: u8 = 4;
/// Atomics return the value before.
pub(super) const GLC: u8 = 8;
/// An SMEM, buffer or flat instruction has a scalar offset or address in `src[2]`.
pub(super) const SCALAR_OFFSET: u8 = 16;
/// A buffer instruction adds a VGPR offset.
pub(super) const OFFEN: u8 = 32;
/// A buffer instruction adds a VGPR index.
pub(super) const IDXEN: u8 = 64;
/// An instruction of gfx942, where gfx90a has another of the same encoding.
pub(super) const GFX942: u8 = 128;

/// Operand code of the first VGPR; scalar codes lie below.
pub(super) const VGPR: u16 = 256;
/// Operand code of the first accumulation VGPR.
pub(super) const AGPR: u16 = 512;
/// Operand code of a literal constant.
pub(super) const LITERAL: u16 = 255;
/// Operand code of the first register of the flat scratch base.
pub(super) const FLAT_SCRATCH: u16 = 102;
/// Operand code of VCC.
pub(super) const VCC: u16 = 106;
/// Operand code of M0.
pub(super) const M0: u16 = 124;
/// Operand code of EXEC.
pub(super) const EXEC: u16 = 126;

/// One instruction. Operand codes are the encoding's: scalar registers and constants below 256, then
/// VGPRs, then AGPRs.
#[derive(Clone, Copy)]
pub(super) struct Inst {
    /// The function that executes the instruction.
    pub(super) run: Handler,
    /// Sources. Memory instructions: address, data, scalar base or offset.
    pub(super) src: [u16; 3],
    /// The destination operand.
    pub(super) dst: u16,
    /// Scalar destination of carries and comparisons.
    pub(super) sdst: u16,
    /// Operation within the format.
    pub(super) opcode: u16,
    /// Literal constant, SDWA or DPP control word, immediate, or offset.
    pub(super) literal: u32,
    /// The kind under which the instruction is counted.
    pub(super) class: Class,
    /// The instruction's encoding.
    pub(super) format: Format,
    /// Length in dwords.
    pub(super) words: u8,
    /// Sources to negate, by bit; VOP3P: for the low half.
    pub(super) neg: u8,
    /// Sources to take the absolute value of, by bit; VOP3P: to negate for the high half.
    pub(super) abs: u8,
    /// Sources whose high half is used, by bit; bit 3: the destination.
    pub(super) op_sel: u8,
    /// VOP3P: the same for the high half of the result.
    pub(super) op_sel_hi: u8,
    /// Output modifier: 1 doubles, 2 quadruples, 3 halves.
    pub(super) omod: u8,
    /// `CLAMP` and so on.
    pub(super) flags: u8,
    /// Whether any source or output modifier is there, so that plain instructions need one test.
    pub(super) modified: bool,
}

impl Inst {
    /// An instruction without operands.
    pub(super) fn new(run: Handler, format: Format, class: Class, opcode: u32, words: u8) -> Self {
        Self {
            run,
            src: [0; 3],
            dst: 0,
            sdst: VCC,
            opcode: opcode as u16,
            literal: 0,
            class,
            format,
            words,
            neg: 0,
            abs: 0,
            op_sel: 0,
            op_sel_hi: 0,
            omod: 0,
            flags: 0,
            modified: false,
        }
    }

    /// The instruction for an encoding that is not known.
    pub(super) fn unknown(format: Format, opcode: u32) -> Self {
        Self::new(unknown_instruction, format, Class::Other, opcode, 1)
    }

    /// The name of an instruction of the processor that the interpreter does not execute.
    pub(super) fn refused(&self, processor: &str) -> Option<&'static str> {
        let row = crate::disasm::find(processor, self.format.name(), self.opcode)?;
        (!row.executed).then(|| row.name())
    }

    /// Whether a flag is set.
    #[inline(always)]
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Offset or immediate as a signed number.
    #[inline(always)]
    pub(super) fn offset(&self) -> i64 {
        i64::from(self.literal as i32)
    }
}
