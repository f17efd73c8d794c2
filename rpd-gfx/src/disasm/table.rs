//! The instruction tables, which the build script makes of `data/*-instructions.csv`.

/// Declares a bit for each word that names a modifier in a form.
macro_rules! modifiers {
    ($($name:ident)*) => {
        #[allow(clippy::upper_case_acronyms, non_camel_case_types)]
        enum Bit { $($name),* }
        impl Modifiers {
            $(pub(super) const $name: Self = Self(1 << Bit::$name as u64);)*
        }
    };
}

/// The modifiers that an instruction allows, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modifiers(u64);

modifiers! {
    // Long encodings: modifiers of each source and of the result.
    ABS0 ABS1 ABS2 NEG0 NEG1 NEG2 SEL0 SEL1 SEL2 SEL3 LONG_SEXT0 LONG_SEXT1 LONG_SEXT2 CLAMP OMOD
    // Packed encodings.
    OP_SEL OP_SEL_HI NEG_LO NEG_HI MIX CBSZ ABID BLGP NEG
    // Control dwords (SDWA, DPP) of 32-bit encodings.
    SDWA SDWA_CLAMP SDWA_OMOD SEXT0 SEXT1 SDWA_NEG0 SDWA_NEG1 SDWA_SRC0 SDWA_SRC1 SDWA_DST DPP DPP_NEG0 DPP_NEG1 DPP_SEXT1
    // LDS.
    OFFSET OFFSET2 SWIZZLE GDS
    // GFX11: DPP8, and the parts of image addresses.
    DPP8 COORDINATES LEVEL GRADIENTS HALF_GRADIENTS
}

impl Modifiers {
    /// No modifier.
    pub(super) const NONE: Self = Self(0);

    /// The union of two sets of modifiers.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `self` contains all of `other`.
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Instruction encodings. The names are those of the ISA manuals.
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
    /// The first operation of a dual instruction.
    Vopdx,
    /// The second operation of a dual instruction.
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

    /// Name in the ISA manuals.
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

/// The field of an encoding that holds an operand.
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
    /// A 16-bit immediate that is always printed in hexadecimal.
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
    /// The register for the result of an atomic, when it returns one.
    Rtn,
    Saddr,
    Vdata,
    Vaddr,
    Srsrc,
    Ssamp,
    /// An attribute of a vertex, with its channel.
    Attr,
    /// A register that is not encoded, because the instruction always uses it.
    Fixed(&'static str),
}

/// Type of an operand: determines the text of constants, or the kind of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// 32 bits.
    Word,
    /// 64-bit integer.
    Long,
    /// 64-bit floating-point number.
    Double,
    /// 16-bit floating-point number.
    Half,
    /// Two 16-bit floating-point numbers.
    Halves,
    /// Two bfloat16 numbers.
    Bf16Pair,
    /// 16-bit integer.
    Short,
    /// Any registers, but no constants.
    Register,
    /// Scalar registers, encoded in a field for vector registers.
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
    /// Number of registers.
    pub(super) width: u8,
    pub(super) kind: Type,
}

/// An instruction of a processor: a row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) encoding: Encoding,
    pub(crate) opcode: u16,
    /// Mnemonic, with the suffix of the encoding (`_e32`).
    pub(crate) mnemonic: &'static str,
    /// Whether the interpreter can execute it.
    pub(crate) executed: bool,
    /// Dwords of an instruction with this opcode, for tests.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) sample: &'static [u32],
    /// Text of the sample as LLVM prints it.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) text: &'static str,
    pub(super) operands: &'static [Operand],
    pub(super) modifiers: Modifiers,
}

impl Row {
    /// Mnemonic without the suffix of the encoding.
    pub(crate) fn name(&self) -> &'static str {
        let name = self.mnemonic;
        name.strip_suffix("_e32")
            .or_else(|| name.strip_suffix("_e64"))
            .unwrap_or(name)
    }

    /// Number of dwords without a literal.
    pub(super) fn dwords(&self) -> u32 {
        match self.encoding {
            Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc | Encoding::Sopp => 1,
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc | Encoding::Ldsdir => 1,
            _ => 2,
        }
    }

    /// Whether the instruction allows a modifier.
    pub(super) fn has(&self, modifier: Modifiers) -> bool {
        self.modifiers.has(modifier)
    }

    /// The operand that `field` encodes; `None` when the instruction has no such field.
    pub(super) fn operand(&self, field: Field) -> Option<&'static Operand> {
        self.operands.iter().find(|operand| operand.field == field)
    }
}

/// A processor and its instructions, ordered by encoding and opcode.
#[derive(Debug)]
pub(crate) struct Processor {
    pub(super) name: &'static str,
    pub(super) rows: &'static [Row],
}

/// Generations of instruction encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// GFX9 up to gfx90a.
    Gfx9,
    /// gfx940 to gfx942: other names for cache policies, and scratch addresses with a vector and a scalar register.
    Gfx940,
    /// RDNA 3: own encodings, waves of 32 lanes.
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

    /// The instruction with this encoding and opcode.
    pub(super) fn row(&self, encoding: Encoding, opcode: u16) -> Option<&'static Row> {
        let at = self
            .rows
            .binary_search_by_key(&(encoding, opcode), |row| (row.encoding, row.opcode));
        at.ok().map(|at| &self.rows[at])
    }
}

/// The instruction of a processor with this opcode. `encoding` is the name in the ISA manuals.
pub(crate) fn find(processor: &str, encoding: &str, opcode: u16) -> Option<&'static Row> {
    let processor = PROCESSORS.iter().find(|found| found.name == processor)?;
    let encoding = Encoding::ALL
        .into_iter()
        .find(|known| known.name() == encoding)?;
    processor.row(encoding, opcode)
}

/// All instructions of a processor; `None` if it has no table.
#[cfg(test)]
pub(crate) fn rows(processor: &str) -> Option<&'static [Row]> {
    PROCESSORS
        .iter()
        .find(|found| found.name == processor)
        .map(|found| found.rows)
}

/// Constructor with few arguments, for the generated tables.
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

/// All processors that have a table.
pub(super) static PROCESSORS: &[Processor] = include!(concat!(env!("OUT_DIR"), "/processors.rs"));
