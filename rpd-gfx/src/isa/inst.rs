//! Decoded instructions.

use super::Class;
use super::exec::Exec;
use super::fault::unknown_instruction;

/// A function that executes an instruction.
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
    /// Name in the ISA manuals.
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

/// Flag: the result is clamped, floating-point numbers to 0..1, integers to their range.
pub(super) const CLAMP: u8 = 1;
/// Flag of memory instructions, whose results are never clamped: the data will not be used again soon.
pub(super) const STREAMING: u8 = CLAMP;
/// Flag: `literal` is an SDWA control word.
pub(super) const SDWA: u8 = 2;
/// Flag: `literal` is a DPP control word.
pub(super) const DPP: u8 = 4;
/// Flag: the atomic returns the old value.
pub(super) const GLC: u8 = 8;
/// Flag: the instruction (SMEM, buffer or flat) has a scalar offset or address in `src[2]`.
pub(super) const SCALAR_OFFSET: u8 = 16;
/// Flag: the buffer instruction adds an offset in a VGPR.
pub(super) const OFFEN: u8 = 32;
/// Flag: the buffer instruction adds an index in a VGPR.
pub(super) const IDXEN: u8 = 64;
/// Flag: the instruction is one of gfx942; on gfx90a the encoding is another instruction.
pub(super) const GFX942: u8 = 128;

/// Operand code of the first VGPR. Codes of scalar registers and constants are lower.
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

/// A decoded instruction. Operand codes are those of the encoding: scalar registers and constants below 256, then
/// VGPRs, then AGPRs.
#[derive(Clone, Copy)]
pub(super) struct Inst {
    /// The function that executes the instruction.
    pub(super) run: Handler,
    /// Sources. Memory instructions: address, data, scalar base or offset.
    pub(super) src: [u16; 3],
    /// The destination operand.
    pub(super) dst: u16,
    /// Scalar destination, for carries and comparisons.
    pub(super) sdst: u16,
    /// Number of the operation in the encoding.
    pub(super) opcode: u16,
    /// Literal constant, SDWA or DPP control word, immediate, or offset.
    pub(super) literal: u32,
    /// Class in which the instruction is counted.
    pub(super) class: Class,
    /// The instruction's encoding.
    pub(super) format: Format,
    /// Length in dwords.
    pub(super) words: u8,
    /// Sources that are negated, one bit for each. VOP3P: negated for the low half.
    pub(super) neg: u8,
    /// Sources of which the absolute value is taken, one bit for each. VOP3P: negated for the high half.
    pub(super) abs: u8,
    /// Sources of which the high half is used, one bit for each; bit 3: the high half of the destination is written.
    pub(super) op_sel: u8,
    /// Sources of which the high half is used for the high half of the result, in VOP3P; one bit for each.
    pub(super) op_sel_hi: u8,
    /// Output modifier: 0 none, 1 times 2, 2 times 4, 3 divided by 2.
    pub(super) omod: u8,
    /// Sum of flags, from [`CLAMP`] to [`GFX942`].
    pub(super) flags: u8,
    /// Whether the instruction has any modifier, so that instructions without need a single test.
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

    /// An instruction that the decoder does not know.
    pub(super) fn unknown(format: Format, opcode: u32) -> Self {
        Self::new(unknown_instruction, format, Class::Other, opcode, 1)
    }

    /// Mnemonic of the instruction if the processor has it and the interpreter does not execute it.
    pub(super) fn refused(&self, processor: &str) -> Option<&'static str> {
        let row = crate::disasm::find(processor, self.format.name(), self.opcode)?;
        (!row.executed).then(|| row.name())
    }

    /// Whether a flag is set.
    #[inline(always)]
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The offset or immediate as a signed number.
    #[inline(always)]
    pub(super) fn offset(&self) -> i64 {
        i64::from(self.literal as i32)
    }
}
