//! Text of dual instructions, interpolation, exports, and sources from other lanes.

use crate::disasm::Printer;
use crate::disasm::operand::registers;
use crate::disasm::table::{Encoding, Field, Generation, Modifiers};
use crate::disasm::vector::signed;

/// Number of the first bit of the second dword.
const SECOND: u32 = 32;

impl Printer {
    /// Prints VOPD: two operations in one instruction.
    pub(in crate::disasm) fn pair(&mut self) -> Option<()> {
        self.half_of_pair()?;
        let first = std::mem::take(&mut self.out);
        self.row = (self.processor).row(Encoding::Vopdy, self.bits(17, 5) as u16)?;
        self.half_of_pair()?;
        self.out = format!("{first} :: {}", self.out);
        Some(())
    }

    /// Prints one operation of VOPD, as its row in the table describes.
    fn half_of_pair(&mut self) -> Option<()> {
        self.push(self.row.mnemonic);
        let first = self.row.encoding == Encoding::Vopdx;
        let base = if first { 0 } else { SECOND };
        let vdst = if first {
            self.bits(SECOND + 24, 8)
        } else {
            // The results of the two operations are in registers of different parity.
            self.bits(SECOND + 17, 7) << 1 | !self.bits(SECOND + 24, 1) & 1
        };
        for operand in self.row.operands {
            let text = match operand.field {
                Field::Vdst => registers("v", vdst, operand.width),
                Field::Src0 => self.source(self.bits(base, 9), operand)?.text,
                Field::Vsrc1 => registers("v", self.bits(base + 9, 8), operand.width),
                Field::Literal => {
                    self.length = 3;
                    format!("{:#x}", self.words[2])
                }
                _ => return None,
            };
            self.operand(&text);
        }
        Some(())
    }

    /// Prints VINTERP.
    pub(in crate::disasm) fn interpolation(&mut self) -> Option<()> {
        self.push(self.row.mnemonic);
        for operand in self.row.operands {
            let number = match operand.field {
                Field::Vdst => {
                    self.operand(&registers("v", self.bits(0, 8), operand.width));
                    continue;
                }
                Field::Src0 => 0,
                Field::Src1 => 1,
                Field::Src2 => 2,
                _ => return None,
            };
            let text = registers("v", self.bits(SECOND + 9 * number, 8), operand.width);
            let negative = self.bits(SECOND + 29 + number, 1) != 0;
            self.operand(&signed(&text, false, negative, false));
        }
        self.flag(15, " clamp");
        let bits: Vec<_> = (11..15).map(|bit| self.bits(bit, 1)).collect();
        self.list("op_sel", &bits, 0);
        let wait = self.bits(8, 3);
        self.push(&format!(" wait_exp:{wait}"));
        Some(())
    }

    /// Prints LDSDIR.
    pub(in crate::disasm) fn direct_lds(&mut self) -> Option<()> {
        self.push(self.row.mnemonic);
        for operand in self.row.operands {
            let text = match operand.field {
                Field::Vdst => registers("v", self.bits(0, 8), operand.width),
                Field::Attr => {
                    let channel = ["x", "y", "z", "w"][self.bits(8, 2) as usize];
                    format!("attr{}.{channel}", self.bits(10, 6))
                }
                _ => return None,
            };
            self.operand(&text);
        }
        let wait = self.bits(16, 4);
        self.push(&format!(" wait_vdst:{wait}"));
        Some(())
    }

    /// Prints EXP.
    pub(in crate::disasm) fn export(&mut self) -> Option<()> {
        self.push(self.row.mnemonic);
        let target = match self.bits(4, 6) {
            n @ 0..=7 => format!("mrt{n}"),
            8 => "mrtz".to_owned(),
            n @ 12..=16 => format!("pos{}", n - 12),
            20 => "prim".to_owned(),
            n @ 21..=22 => format!("dual_src_blend{}", n - 21),
            n => format!("invalid_target_{n}"),
        };
        self.push(&format!(" {target}"));
        for number in 0..4 {
            let register = match self.bits(number, 1) {
                0 => "off".to_owned(),
                _ => registers("v", self.bits(SECOND + 8 * number, 8), 1),
            };
            let separator = if number == 0 { " " } else { ", " };
            self.push(&format!("{separator}{register}"));
        }
        self.flag(11, " done");
        self.flag(13, " row_en");
        Some(())
    }

    /// Whether the first source comes from other lanes (DPP), which the dword after the instruction then describes;
    /// `None` if the instruction does not allow that.
    pub(in crate::disasm) fn is_from_other_lanes(&self, code: u32) -> Option<bool> {
        let modifier = match code {
            250 => Modifiers::DPP,
            233 | 234 if self.generation == Generation::Gfx11 => Modifiers::DPP8,
            _ => return Some(false),
        };
        self.row.has(modifier).then_some(true)
    }

    /// Prints which of eight lanes the first source comes from (DPP8).
    pub(in crate::disasm) fn eight_lanes(&mut self, fetch_inactive: bool) {
        let control = self.words[self.row.dwords() as usize];
        let lanes: Vec<_> = (0..8)
            .map(|lane| (control >> (8 + 3 * lane) & 7).to_string())
            .collect();
        self.push(&format!(" dpp8:[{}]", lanes.join(",")));
        if fetch_inactive {
            self.push(" fi:1");
        }
    }
}
