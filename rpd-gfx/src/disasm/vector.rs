//! Text of vector arithmetic: short encodings with SDWA and DPP, long encodings (VOP3), and packed ones (VOP3P).

use super::Printer;
use super::operand::{part, registers};
use super::table::{Encoding, Field, Generation, Modifiers, Operand, Type};

/// Number of the first bit of the second dword.
const SECOND: u32 = 32;

impl Printer {
    /// Prints VOP1, VOP2 and VOPC.
    pub(super) fn short_vector(&mut self) -> Option<()> {
        let code = self.bits(0, 9);
        // Code 249 stands for a second dword with SDWA controls.
        if code == 249 {
            return self.sub_dword();
        }
        if self.is_from_other_lanes(code)? {
            return self.data_parallel(code);
        }
        self.push(self.row.mnemonic);
        for operand in self.row.operands {
            let text = match operand.field {
                Field::Src0 => self.source(self.bits(0, 9), operand)?.text,
                Field::Literal => {
                    self.length = 2;
                    format!("{:#x}", self.words[1])
                }
                _ => self.short_operand(operand)?,
            };
            self.operand(&text);
        }
        Some(())
    }

    /// Text of an operand of a short encoding other than the first source.
    fn short_operand(&self, operand: &Operand) -> Option<String> {
        let class = if operand.kind == Type::Accumulation {
            "a"
        } else {
            "v"
        };
        Some(match operand.field {
            Field::Vdst if operand.kind == Type::Scalar => {
                self.scalar_register(self.bits(17, 7), operand.width)?
            }
            Field::Vdst if operand.kind == Type::Part => part(self.bits(17, 8)),
            Field::Vdst => registers(class, self.bits(17, 8), operand.width),
            Field::Vsrc1 => registers("v", self.bits(9, 8), operand.width),
            Field::Fixed(text) => text.to_owned(),
            _ => return None,
        })
    }

    /// Prints SDWA: sources and result are parts of registers.
    fn sub_dword(&mut self) -> Option<()> {
        let row = self.row;
        // Not every instruction has an SDWA form.
        if !row.has(Modifiers::SDWA) {
            return None;
        }
        self.length = 2;
        self.push(self.row.name());
        self.push("_sdwa");
        for operand in row.operands {
            let text = match operand.field {
                Field::Src0 => self.sub_dword_source(0, operand)?,
                Field::Vsrc1 => self.sub_dword_source(1, operand)?,
                // A comparison may write any scalar pair in place of VCC.
                Field::Fixed("vcc")
                    if row.encoding == Encoding::Vopc && self.bits(SECOND + 15, 1) != 0 =>
                {
                    self.scalar_register(self.bits(SECOND + 8, 7), 2)?
                }
                _ => self.short_operand(operand)?,
            };
            self.operand(&text);
        }
        if row.encoding != Encoding::Vopc {
            if row.has(Modifiers::SDWA_CLAMP) {
                self.flag(SECOND + 13, " clamp");
            }
            if row.has(Modifiers::SDWA_OMOD) {
                self.output_modifier(SECOND + 14);
            }
        }
        let part = |value: u32| {
            [
                "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD",
            ]
            .get(value as usize)
        };
        if row.has(Modifiers::SDWA_DST) {
            let unused = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"]
                .get(self.bits(SECOND + 11, 2) as usize)?;
            let text = format!(
                " dst_sel:{} dst_unused:{unused}",
                part(self.bits(SECOND + 8, 3))?
            );
            self.push(&text);
        }
        for (modifier, low, name) in [
            (Modifiers::SDWA_SRC0, 16, "src0_sel"),
            (Modifiers::SDWA_SRC1, 24, "src1_sel"),
        ] {
            if row.has(modifier) {
                let text = format!(" {name}:{}", part(self.bits(SECOND + low, 3))?);
                self.push(&text);
            }
        }
        Some(())
    }

    fn sub_dword_source(&mut self, number: u32, operand: &Operand) -> Option<String> {
        let base = SECOND + 16 + 8 * number;
        let code = if number == 0 {
            self.bits(SECOND, 8)
        } else {
            self.bits(9, 8)
        };
        let scalar = self.bits(base + 7, 1) != 0;
        // Scalar sources of SDWA cannot be another control dword or a literal.
        if scalar && matches!(code, 249 | 250 | 255) {
            return None;
        }
        let source = self.source(if scalar { code } else { 256 + code }, operand)?;
        let (negative, absolute) = (self.bits(base + 4, 1) != 0, self.bits(base + 5, 1) != 0);
        let (neg, sext) = [
            (Modifiers::SDWA_NEG0, Modifiers::SEXT0),
            (Modifiers::SDWA_NEG1, Modifiers::SEXT1),
        ][number as usize];
        let extended = self.row.has(sext) && self.bits(base + 3, 1) != 0;
        let text = if extended {
            format!("sext({})", source.text)
        } else {
            source.text
        };
        Some(if self.row.has(neg) {
            signed(&text, source.constant, negative, absolute)
        } else {
            text
        })
    }

    /// Prints DPP: the first source comes from other lanes.
    fn data_parallel(&mut self, code: u32) -> Option<()> {
        let row = self.row;
        let signs = code == 250;
        self.push(self.row.name());
        // LLVM prints no suffix for comparisons.
        if row.encoding != Encoding::Vopc {
            self.push("_dpp");
        }
        for operand in row.operands {
            let (text, number) = match operand.field {
                Field::Src0 if operand.kind == Type::Part => (part(self.bits(SECOND, 8)), 0),
                Field::Src0 => (registers("v", self.bits(SECOND, 8), operand.width), 0),
                Field::Vsrc1 => (registers("v", self.bits(9, 8), operand.width), 1),
                _ => {
                    let text = self.short_operand(operand)?;
                    self.operand(&text);
                    continue;
                }
            };
            let negative = signs && self.bits(SECOND + 20 + 2 * number, 1) != 0;
            let absolute = signs && self.bits(SECOND + 21 + 2 * number, 1) != 0;
            if number == 1 && row.has(Modifiers::DPP_SEXT1) && negative {
                self.operand(&format!("sext({text})"));
                continue;
            }
            let has = row.has([Modifiers::DPP_NEG0, Modifiers::DPP_NEG1][number as usize]);
            self.operand(&if has {
                signed(&text, false, negative, absolute)
            } else {
                text
            });
        }
        self.lanes(code)
    }

    /// Prints which lanes the first source comes from (DPP), as the dword after the instruction says.
    fn lanes(&mut self, code: u32) -> Option<()> {
        let at = 32 * self.row.dwords();
        self.length = self.row.dwords() + 1;
        if code != 250 {
            self.eight_lanes(code == 234);
            return Some(());
        }
        let gfx11 = self.generation == Generation::Gfx11;
        let control = self.bits(at + 8, 9);
        let lanes = match control {
            0..=0xff => {
                let lane = |n: u32| control >> (2 * n) & 3;
                format!(
                    "quad_perm:[{},{},{},{}]",
                    lane(0),
                    lane(1),
                    lane(2),
                    lane(3)
                )
            }
            0x101..=0x10f => format!("row_shl:{}", control & 15),
            0x111..=0x11f => format!("row_shr:{}", control & 15),
            0x121..=0x12f => format!("row_ror:{}", control & 15),
            0x140 => "row_mirror".to_owned(),
            0x141 => "row_half_mirror".to_owned(),
            0x150..=0x15f if gfx11 => format!("row_share:{}", control & 15),
            0x160..=0x16f if gfx11 => format!("row_xmask:{}", control & 15),
            _ if gfx11 => return None,
            0x130 => "wave_shl:1".to_owned(),
            0x134 => "wave_rol:1".to_owned(),
            0x138 => "wave_shr:1".to_owned(),
            0x13c => "wave_ror:1".to_owned(),
            0x142 => "row_bcast:15".to_owned(),
            0x143 => "row_bcast:31".to_owned(),
            0x150..=0x15f => format!("row_newbcast:{}", control & 15),
            _ => return None,
        };
        let (rows, banks) = (self.bits(at + 28, 4), self.bits(at + 24, 4));
        self.push(&format!(" {lanes} row_mask:{rows:#x} bank_mask:{banks:#x}"));
        self.flag(at + 19, " bound_ctrl:1");
        if gfx11 {
            self.flag(at + 18, " fi:1");
        }
        Some(())
    }

    /// Prints the output modifier, a field of two bits.
    fn output_modifier(&mut self, low: u32) {
        let text = ["", " mul:2", " mul:4", " div:2"][self.bits(low, 2) as usize];
        self.push(text);
    }

    /// Nine-bit code of a source of a long or packed encoding.
    fn long_code(&self, number: u32) -> u32 {
        self.bits(SECOND + 9 * number, 9)
    }

    /// Prints VOP3.
    pub(super) fn long_vector(&mut self) -> Option<()> {
        let row = self.row;
        let lanes = self.long_mnemonic()?;
        let mut sources = 0;
        for operand in row.operands {
            let text = match operand.field {
                // LLVM decodes a scalar destination as if it were a source.
                Field::Vdst if operand.kind == Type::Scalar => {
                    self.source(self.bits(0, 8), operand)?.text
                }
                Field::Vdst if operand.kind == Type::Part => {
                    part(self.bits(0, 7) | self.bits(14, 1) << 7)
                }
                Field::Vdst => registers("v", self.bits(0, 8), operand.width),
                Field::Sdst => self.scalar_register(self.bits(8, 7), operand.width)?,
                Field::Src0 => self.long_source(0, operand)?,
                Field::Src1 => self.long_source(1, operand)?,
                Field::Src2 => self.long_source(2, operand)?,
                Field::Fixed(text) => text.to_owned(),
                _ => return None,
            };
            sources += u32::from(matches!(
                operand.field,
                Field::Src0 | Field::Src1 | Field::Src2
            ));
            self.operand(&text);
        }
        let selects = [
            Modifiers::SEL0,
            Modifiers::SEL1,
            Modifiers::SEL2,
            Modifiers::SEL3,
        ];
        if selects.iter().any(|select| row.has(*select)) {
            let sources = match (row.has(Modifiers::SEL2), row.has(Modifiers::SEL3)) {
                (true, _) => 3,
                // For permutations, the field does not select lanes.
                (false, false) => sources.min(2),
                (false, true) => sources,
            };
            let mut bits: Vec<_> = (0..sources)
                .map(|n| self.bits(11 + n, 1) & u32::from(row.has(selects[n as usize])))
                .collect();
            if row.has(Modifiers::SEL3) {
                bits.push(self.bits(14, 1));
            }
            self.list("op_sel", &bits, 0);
        }
        if row.has(Modifiers::CLAMP) {
            self.flag(15, " clamp");
        }
        if row.has(Modifiers::OMOD) {
            self.output_modifier(SECOND + 27);
        }
        if lanes {
            self.lanes(self.long_code(0))?;
        }
        Some(())
    }

    /// Prints the mnemonic of a long or packed encoding. True if the first source comes from other lanes.
    fn long_mnemonic(&mut self) -> Option<bool> {
        let lanes = self.is_from_other_lanes(self.long_code(0))?;
        if lanes {
            self.push(self.row.name());
            self.push("_e64_dpp");
        } else {
            self.push(self.row.mnemonic);
        }
        Some(lanes)
    }

    /// Text of a source of a long encoding, with its modifiers for sign and absolute value.
    fn long_source(&mut self, number: u32, operand: &Operand) -> Option<String> {
        let code = self.long_code(number);
        let source = self.vector_source(number, code, operand)?;
        let (abs, neg) = [
            (Modifiers::ABS0, Modifiers::NEG0),
            (Modifiers::ABS1, Modifiers::NEG1),
            (Modifiers::ABS2, Modifiers::NEG2),
        ][number as usize];
        let absolute = self.row.has(abs) && self.bits(8 + number, 1) != 0;
        let sign = self.bits(SECOND + 29 + number, 1) != 0;
        let negative = self.row.has(neg) && sign;
        let sext = [
            Modifiers::LONG_SEXT0,
            Modifiers::LONG_SEXT1,
            Modifiers::LONG_SEXT2,
        ][number as usize];
        // The same bit is a sign for floating-point sources, and an extension for integers.
        if self.row.has(sext) && sign {
            return Some(format!("sext({})", source.text));
        }
        Some(signed(&source.text, source.constant, negative, absolute))
    }

    /// The source of a long or packed encoding. GFX9 allows no literals there.
    fn vector_source(
        &mut self,
        number: u32,
        code: u32,
        operand: &Operand,
    ) -> Option<super::operand::Source> {
        // The source with other lanes has its register in the dword behind the instruction.
        if number == 0 && self.is_from_other_lanes(code)? {
            let register = self.bits(32 * self.row.dwords(), 8);
            return self.source(256 + register, operand);
        }
        if matches!(code, 249 | 250) || code == 255 && self.generation != Generation::Gfx11 {
            return None;
        }
        self.source(code, operand)
    }

    /// Prints VOP3P.
    pub(super) fn packed_vector(&mut self) -> Option<()> {
        let row = self.row;
        let lanes = self.long_mnemonic()?;
        // Matrix instructions have their own modifiers in the bits of the others'.
        let matrix =
            row.has(Modifiers::BLGP) || row.has(Modifiers::NEG) || row.has(Modifiers::CBSZ);
        let (mut sources, mut number) = (0, 0);
        for operand in row.operands {
            let mut operand = *operand;
            let accumulates = match operand.field {
                Field::Src0 => self.bits(SECOND + 27, 1),
                Field::Src1 => self.bits(SECOND + 28, 1),
                _ => self.bits(15, 1),
            };
            // The indices of sparse matrices are always in architected vector registers.
            let indices = operand.field == Field::Src2 && row.mnemonic.starts_with("v_smfmac");
            if matrix && accumulates != 0 && !indices {
                operand.kind = Type::Accumulation;
            }
            let text = match operand.field {
                Field::Vdst => {
                    let class = if operand.kind == Type::Accumulation {
                        "a"
                    } else {
                        "v"
                    };
                    registers(class, self.bits(0, 8), operand.width)
                }
                Field::Src0 | Field::Src1 | Field::Src2 => {
                    let at = number;
                    number += 1;
                    sources += 1;
                    if row.has(Modifiers::MIX) {
                        self.long_source(at, &operand)?
                    } else {
                        // Operands that can only be accumulation registers.
                        let always = operand.kind == Type::Accumulation && !matrix;
                        let code = self.long_code(at);
                        let code = if always { code | 256 } else { code };
                        self.vector_source(at, code, &operand)?.text
                    }
                }
                _ => return None,
            };
            self.operand(&text);
        }
        // Instructions have two or three sources, and print as many bits.
        let list = |this: &Self, bits: [u32; 3]| {
            (0..sources)
                .map(|n| this.bits(bits[n], 1))
                .collect::<Vec<_>>()
        };
        if row.has(Modifiers::OP_SEL) {
            let bits = list(self, [11, 12, 13]);
            self.list("op_sel", &bits, 0);
        }
        if row.has(Modifiers::OP_SEL_HI) {
            let bits = list(self, [SECOND + 27, SECOND + 28, 14]);
            // The default of these bits is 0 for mixed operations and 1 for all others.
            self.list("op_sel_hi", &bits, u32::from(!row.has(Modifiers::MIX)));
        }
        if row.has(Modifiers::NEG_LO) {
            let bits = list(self, [SECOND + 29, SECOND + 30, SECOND + 31]);
            self.list("neg_lo", &bits, 0);
        }
        if row.has(Modifiers::NEG_HI) {
            let bits = list(self, [8, 9, 10]);
            self.list("neg_hi", &bits, 0);
        }
        for (modifier, name, low, count) in [
            (Modifiers::CBSZ, "cbsz", 8, 3),
            (Modifiers::ABID, "abid", 11, 4),
            (Modifiers::BLGP, "blgp", SECOND + 29, 3),
        ] {
            let value = self.bits(low, count);
            if row.has(modifier) && value != 0 {
                self.push(&format!(" {name}:{value}"));
            }
        }
        if row.has(Modifiers::NEG) {
            let bits = list(self, [SECOND + 29, SECOND + 30, SECOND + 31]);
            self.list("neg", &bits, 0);
        }
        if row.has(Modifiers::CLAMP) {
            self.flag(15, " clamp");
        }
        if lanes {
            self.lanes(self.long_code(0))?;
        }
        Some(())
    }

    /// Prints a list of bits, unless all have the default value.
    pub(super) fn list(&mut self, name: &str, bits: &[u32], default: u32) {
        if bits.iter().any(|bit| *bit != default) {
            let bits: Vec<_> = bits.iter().map(u32::to_string).collect();
            self.push(&format!(" {name}:[{}]", bits.join(",")));
        }
    }
}

/// Adds the modifiers for sign and absolute value to a source. The sign of a constant is separated from the modifier.
pub(super) fn signed(text: &str, constant: bool, negative: bool, absolute: bool) -> String {
    match (negative, absolute) {
        (false, false) => text.to_owned(),
        (false, true) => format!("|{text}|"),
        (true, true) => format!("-|{text}|"),
        (true, false) if constant => format!("neg({text})"),
        (true, false) => format!("-{text}"),
    }
}
