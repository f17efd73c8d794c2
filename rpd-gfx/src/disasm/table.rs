//! The tables of instructions, made by the build script from `data/*-instructions.csv`.

/// Declares the bits for the words of forms that name modifiers.
macro_rules! modifiers {
    ($($name:ident)*) => {
        #[allow(clippy::upper_case_acronyms, non_camel_case_types)]
        enum Bit { $($name),* }
        impl Modifiers {
            $(pub(super) const $name: Self = Self(1 << Bit::$name as u64);)*
        }
    };
}

/// Modifiers of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modifiers(u64);

modifiers! {
    // Long encodings: of each source, and of the result.
    ABS0 ABS1 ABS2 NEG0 NEG1 NEG2 SEL0 SEL1 SEL2 SEL3 LONG_SEXT0 LONG_SEXT1 LONG_SEXT2 CLAMP OMOD
    // Packed encodings.
    OP_SEL OP_SEL_HI NEG_LO NEG_HI MIX CBSZ ABID BLGP NEG
    // Flags of 32-bit encodings with a control dword (SDWA, DPP).
    SDWA SDWA_CLAMP SDWA_OMOD SEXT0 SEXT1 SDWA_NEG0 SDWA_NEG1 SDWA_SRC0 SDWA_SRC1 SDWA_DST DPP DPP_NEG0 DPP_NEG1 DPP_SEXT1
    // LDS.
    OFFSET OFFSET2 SWIZZLE GDS
    // GFX11: eight lanes, and what addresses of images consist of.
    DPP8 COORDINATES LEVEL GRADIENTS HALF_GRADIENTS
}

impl Modifiers {
    /// No flag.
    pub(super) const NONE: Self = Self(0);

    /// The union of two sets of flags.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Encodings of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Encoding {
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    Vop3p,
    Ds,
    Flat,
    Scratch,
    Global,
    Mubuf,
    Mtbuf,
    Mimg,
    /// The first operation of a pair.
    Vopdx,
    /// The second operation of a pair.
    Vopdy,
    Vinterp,
    Ldsdir,
    Exp,
}

impl Encoding {
    const ALL: [Self; 23] = [
        Self::Sop1,
        Self::Sop2,
        Self::Sopk,
        Self::Sopc,
        Self::Sopp,
        Self::Smem,
        Self::Vop1,
        Self::Vop2,
        Self::Vopc,
        Self::Vop3,
        Self::Vop3p,
        Self::Ds,
        Self::Flat,
        Self::Scratch,
        Self::Global,
        Self::Mubuf,
        Self::Mtbuf,
        Self::Mimg,
        Self::Vopdx,
        Self::Vopdy,
        Self::Vinterp,
        Self::Ldsdir,
        Self::Exp,
    ];

    /// Name as the ISA manual writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sop1 => "SOP1",
            Self::Sop2 => "SOP2",
            Self::Sopk => "SOPK",
            Self::Sopc => "SOPC",
            Self::Sopp => "SOPP",
            Self::Smem => "SMEM",
            Self::Vop1 => "VOP1",
            Self::Vop2 => "VOP2",
            Self::Vopc => "VOPC",
            Self::Vop3 => "VOP3",
            Self::Vop3p => "VOP3P",
            Self::Ds => "DS",
            Self::Flat => "FLAT",
            Self::Scratch => "SCRATCH",
            Self::Global => "GLOBAL",
            Self::Mubuf => "MUBUF",
            Self::Mtbuf => "MTBUF",
            Self::Mimg => "MIMG",
            Self::Vopdx => "VOPDX",
            Self::Vopdy => "VOPDY",
            Self::Vinterp => "VINTERP",
            Self::Ldsdir => "LDSDIR",
            Self::Exp => "EXP",
        }
    }
}

/// The field that an operand is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Sdst,
    Src0,
    Src1,
    Src2,
    Vsrc1,
    Vdst,
    Literal,
    Imm16,
    /// An immediate that is always printed in hexadecimal.
    Hex16,
    Version,
    Label,
    Hwreg,
    GprIdx,
    Waitcnt,
    Depctr,
    Delay,
    Sendmsg,
    Rtnmsg,
    Sdata,
    Sbase,
    Soffset,
    Probe,
    Addr,
    Data,
    Data0,
    Data1,
    /// The result of an atomic that returns one.
    Rtn,
    Saddr,
    Vdata,
    Vaddr,
    Srsrc,
    Ssamp,
    /// An attribute of vertices, with its channel.
    Attr,
    /// A register that no field names.
    Fixed(&'static str),
}

/// Type of an operand: format of its constants, or its kind of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// 32 bits.
    Word,
    /// 64 bits, of an integer.
    Long,
    /// 64 bits, of a double.
    Double,
    /// A half.
    Half,
    /// Two halves.
    Halves,
    /// Two BF16 numbers.
    Brains,
    /// An integer of 16 bits.
    Short,
    /// Registers only.
    Register,
    /// Scalar registers, in a field for vector registers.
    Scalar,
    /// Accumulation registers.
    Accumulation,
    /// One half of a vector register.
    Part,
}

/// An operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(super) field: Field,
    /// Registers.
    pub(super) width: u8,
    pub(super) kind: Type,
}

/// An instruction of a processor.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) encoding: Encoding,
    pub(crate) opcode: u16,
    /// Its name, with the suffix of its encoding (`_e32`).
    pub(crate) mnemonic: &'static str,
    /// Whether the interpreter executes it.
    pub(crate) executed: bool,
    /// Words of an instruction with this opcode.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) sample: &'static [u32],
    /// The text of the sample.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) text: &'static str,
    pub(super) operands: &'static [Operand],
    pub(super) modifiers: Modifiers,
}

impl Row {
    /// Its name without the suffix of its encoding.
    pub(crate) fn name(&self) -> &'static str {
        let name = self.mnemonic;
        name.strip_suffix("_e32")
            .or_else(|| name.strip_suffix("_e64"))
            .unwrap_or(name)
    }

    /// Dwords of the instruction without literal.
    pub(super) fn dwords(&self) -> u32 {
        match self.encoding {
            Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc | Encoding::Sopp => 1,
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc | Encoding::Ldsdir => 1,
            _ => 2,
        }
    }

    /// Whether the instruction has a modifier.
    pub(super) fn has(&self, modifier: Modifiers) -> bool {
        self.modifiers.has(modifier)
    }

    /// The operand that `field` encodes; `None` when the instruction has no such field.
    pub(super) fn operand(&self, field: Field) -> Option<&'static Operand> {
        self.operands.iter().find(|operand| operand.field == field)
    }
}

/// A processor and its instructions, in the order of encodings and opcodes.
#[derive(Debug)]
pub(crate) struct Processor {
    pub(super) name: &'static str,
    pub(super) rows: &'static [Row],
}

/// Generations of instruction sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Up to gfx90a.
    Gfx9,
    /// gfx940 to gfx942: other names of cache controls, scratch addresses of a vector and a scalar.
    Gfx940,
    /// RDNA 3: encodings of its own, waves of 32 lanes.
    Gfx11,
}

impl Processor {
    pub(super) fn generation(&self) -> Generation {
        if self.name.starts_with("gfx11") {
            Generation::Gfx11
        } else if self.name.starts_with("gfx94") {
            Generation::Gfx940
        } else {
            Generation::Gfx9
        }
    }

    /// The instruction of an opcode.
    pub(super) fn row(&self, encoding: Encoding, opcode: u16) -> Option<&'static Row> {
        let at = self
            .rows
            .binary_search_by_key(&(encoding, opcode), |row| (row.encoding, row.opcode));
        at.ok().map(|at| &self.rows[at])
    }
}

/// The instruction of an opcode of an encoding, whose name is that of the ISA manual.
pub(crate) fn find(processor: &str, encoding: &str, opcode: u16) -> Option<&'static Row> {
    let processor = PROCESSORS.iter().find(|found| found.name == processor)?;
    let encoding = Encoding::ALL
        .into_iter()
        .find(|known| known.name() == encoding)?;
    processor.row(encoding, opcode)
}

/// All instructions of a processor.
#[cfg(test)]
pub(crate) fn rows(processor: &str) -> Option<&'static [Row]> {
    PROCESSORS
        .iter()
        .find(|found| found.name == processor)
        .map(|found| found.rows)
}

/// Shorter forms for the generated tables.
const fn row(
    encoding: Encoding,
    opcode: u16,
    mnemonic: &'static str,
    executed: bool,
    (sample, text): (&'static [u32], &'static str),
    operands: &'static [Operand],
    modifiers: Modifiers,
) -> Row {
    Row {
        encoding,
        opcode,
        mnemonic,
        executed,
        sample,
        text,
        operands,
        modifiers,
    }
}

const fn op(field: Field, width: u8, kind: Type) -> Operand {
    Operand { field, width, kind }
}

/// The processors that have a table.
pub(super) static PROCESSORS: &[Processor] = include!(concat!(env!("OUT_DIR"), "/processors.rs"));
