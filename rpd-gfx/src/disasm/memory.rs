//! Text of vector memory and LDS instructions.

use super::Printer;
use super::gfx11;
use super::operand::{descriptor, registers};
use super::table::{Encoding, Field, Generation, Modifiers, Operand, Type};

/// Names of the buffer data formats, by number.
const DATA_FORMATS: [&str; 16] = [
    "INVALID",
    "8",
    "16",
    "8_8",
    "32",
    "16_16",
    "10_11_11",
    "11_11_10",
    "10_10_10_2",
    "2_10_10_10",
    "8_8_8_8",
    "32_32",
    "16_16_16_16",
    "32_32_32",
    "32_32_32_32",
    "RESERVED_15",
];
const NUMBER_FORMATS: [&str; 8] = [
    "UNORM",
    "SNORM",
    "USCALED",
    "SSCALED",
    "UINT",
    "SINT",
    "RESERVED_6",
    "FLOAT",
];

/// Number of the first bit of the second dword.
const SECOND: u32 = 32;

impl Printer {
    /// Text of data registers. Bit `accumulation` says whether they are accumulation registers.
    fn data(&self, low: u32, operand: &Operand, accumulation: u32) -> String {
        let class = if self.generation != Generation::Gfx11 && self.bits(accumulation, 1) != 0 {
            "a"
        } else {
            "v"
        };
        registers(class, self.bits(low, 8), operand.width)
    }

    /// Prints DS.
    pub(super) fn lds(&mut self) -> Option<()> {
        self.push(self.row.mnemonic);
        for operand in self.row.operands {
            let text = match operand.field {
                Field::Vdst => self.data(SECOND + 24, operand, 25),
                // The global data share has no addresses. The field holds data there.
                Field::Addr if self.row.has(Modifiers::GDS) => self.data(SECOND, operand, 25),
                Field::Addr => registers("v", self.bits(SECOND, 8), operand.width),
                Field::Data0 => self.data(SECOND + 8, operand, 25),
                Field::Data1 => self.data(SECOND + 16, operand, 25),
                _ => return None,
            };
            self.operand(&text);
        }
        // Eight bits each for two accesses, 16 bits for one.
        let (low, high) = (self.bits(0, 8), self.bits(8, 8));
        let offset = low | high << 8;
        if self.row.has(Modifiers::OFFSET2) {
            for (name, value) in [("offset0", low), ("offset1", high)] {
                if value != 0 {
                    self.push(&format!(" {name}:{value}"));
                }
            }
        } else if offset != 0 && self.row.has(Modifiers::SWIZZLE) {
            self.push(&format!(" offset:{}", swizzle(offset)));
        } else if offset != 0 && self.row.has(Modifiers::OFFSET) {
            self.push(&format!(" offset:{offset}"));
        }
        if self.row.has(Modifiers::GDS) {
            self.push(" gds");
        }
        Some(())
    }

    /// Prints FLAT, GLOBAL and SCRATCH.
    pub(super) fn flat(&mut self) -> Option<()> {
        let row = self.row;
        self.push(row.mnemonic);
        let scalar = self.bits(SECOND + 16, 7);
        let gfx11 = self.generation == Generation::Gfx11;
        // The register number that stands for no scalar address; and the bit of an atomic that returns, which is the
        // load's cache bit.
        let (none, returns) = if gfx11 { (gfx11::NULL, 14) } else { (0x7f, 16) };
        let has_scalar = row.encoding != Encoding::Flat && scalar != none;
        let scratch = row.encoding == Encoding::Scratch;
        // GFX9 has either a vector or a scalar address for scratch, later generations both: a bit says whether the
        // vector one is there.
        let (to_lds, has_vector) = match self.generation {
            Generation::Gfx9 => (self.bits(13, 1) != 0, !(scratch && has_scalar)),
            Generation::Gfx940 => (false, !scratch || self.bits(13, 1) != 0),
            Generation::Gfx11 => (false, !scratch || self.bits(SECOND + 23, 1) != 0),
        };
        for operand in row.operands {
            let text = match operand.field {
                // Loads to LDS have no destination register; the address in LDS is in M0.
                Field::Vdst if to_lds => continue,
                Field::Vdst => self.data(SECOND + 24, operand, SECOND + 23),
                Field::Rtn if self.bits(returns, 1) != 0 => {
                    self.data(SECOND + 24, operand, SECOND + 23)
                }
                Field::Rtn => continue,
                Field::Data => self.data(SECOND + 8, operand, SECOND + 23),
                Field::Addr if !has_vector => "off".to_owned(),
                Field::Addr => {
                    // With a scalar base the vector register is a 32-bit offset, otherwise a 64-bit address.
                    let width = if has_scalar { 1 } else { operand.width };
                    registers("v", self.bits(SECOND, 8), width)
                }
                Field::Saddr if !has_scalar => "off".to_owned(),
                Field::Saddr => self.scalar_register(
                    scalar,
                    if row.encoding == Encoding::Scratch {
                        1
                    } else {
                        2
                    },
                )?,
                _ => return None,
            };
            self.operand(&text);
        }
        // Flat offsets are unsigned, because the address decides the memory before the offset is added.
        let offset = match row.encoding {
            Encoding::Flat => self.bits(0, 13) as i32,
            _ => ((self.bits(0, 13) << 19) as i32) >> 19,
        };
        if offset != 0 {
            self.push(&format!(" offset:{offset}"));
        }
        if gfx11 {
            self.cache_bits(14, 15, 13);
        } else {
            self.cache_bits(16, 17, 25);
        }
        if to_lds {
            self.push(" lds");
        }
        Some(())
    }

    /// Prints the cache policy bits of an access.
    pub(super) fn cache_bits(&mut self, glc: u32, slc: u32, third: u32) {
        let names = match self.generation {
            Generation::Gfx9 => [" glc", " slc", " scc"],
            Generation::Gfx940 => [" sc0", " nt", " sc1"],
            Generation::Gfx11 => [" glc", " slc", " dlc"],
        };
        self.flag(glc, names[0]);
        self.flag(slc, names[1]);
        self.flag(third, names[2]);
    }

    /// Prints MUBUF and MTBUF.
    pub(super) fn buffer(&mut self) -> Option<()> {
        let row = self.row;
        self.push(row.mnemonic);
        // Cache controls of this encoding have no operands.
        if row.operands.is_empty() {
            if self.generation == Generation::Gfx940 && matches!(row.opcode, 0x28 | 0x29) {
                self.flag(14, " sc0");
                self.flag(15, " sc1");
            }
            return Some(());
        }
        let typed = row.encoding == Encoding::Mtbuf;
        let gfx11 = self.generation == Generation::Gfx11;
        // Typed buffers have their format where others have this bit.
        let to_lds = !typed && !gfx11 && self.bits(16, 1) != 0;
        let (offen, idxen, tfe) = if gfx11 {
            (SECOND + 22, SECOND + 23, Some(SECOND + 21))
        } else {
            (12, 13, None)
        };
        // The address register holds the index, the offset, or both in this order.
        let (by_offset, by_index) = (self.bits(offen, 1), self.bits(idxen, 1));
        // With `tfe` the load writes a status word behind the data.
        let status = tfe.map_or(0, |bit| self.bits(bit, 1) as u8);
        for operand in row.operands {
            let text = match operand.field {
                Field::Vdata if to_lds => continue,
                Field::Vdata if status != 0 => {
                    registers("v", self.bits(SECOND + 8, 8), operand.width + status)
                }
                Field::Vdata => self.data(SECOND + 8, operand, SECOND + 23),
                Field::Vaddr if by_offset + by_index == 0 => "off".to_owned(),
                Field::Vaddr => registers("v", self.bits(SECOND, 8), (by_offset + by_index) as u8),
                Field::Srsrc => {
                    descriptor(self.generation, self.bits(SECOND + 16, 5), operand.width)?
                }
                Field::Soffset => {
                    let kind = Operand {
                        field: Field::Soffset,
                        width: 1,
                        kind: Type::Word,
                    };
                    let code = self.bits(SECOND + 24, 8);
                    // Codes of scalar sources that this field cannot have: SDWA, DPP and literals.
                    if matches!(code, 233 | 234 | 249 | 250 | 254 | 255) {
                        return None;
                    }
                    self.source(code, &kind)?.text
                }
                _ => return None,
            };
            self.operand(&text);
        }
        if typed && gfx11 {
            self.buffer_format_gfx11();
        } else if typed {
            // Only names other than the defaults are printed, as LLVM does.
            let (data, number) = (self.bits(19, 4) as usize, self.bits(23, 3) as usize);
            let data = (data != 1).then(|| format!("BUF_DATA_FORMAT_{}", DATA_FORMATS[data]));
            let number =
                (number != 0).then(|| format!("BUF_NUM_FORMAT_{}", NUMBER_FORMATS[number]));
            let names: Vec<_> = data.into_iter().chain(number).collect();
            if !names.is_empty() {
                self.push(&format!(" format:[{}]", names.join(",")));
            }
        }
        self.flag(idxen, " idxen");
        self.flag(offen, " offen");
        match self.bits(0, 12) {
            0 => {}
            offset => self.push(&format!(" offset:{offset}")),
        }
        // The three policy bits are in other places in each encoding.
        if gfx11 {
            self.cache_bits(14, 12, 13);
        } else if typed {
            self.cache_bits(14, SECOND + 22, SECOND + 21);
        } else {
            self.cache_bits(14, 17, 15);
        }
        if to_lds {
            self.push(" lds");
        }
        if let Some(bit) = tfe {
            self.flag(bit, " tfe");
        }
        Some(())
    }

    /// Number of data registers of an image instruction with this many channels. `least` is the number in the table's
    /// sample.
    fn image_data(&self, channels: u8, least: u8) -> u8 {
        if self.row.mnemonic.contains("atomic") {
            // Atomics on 32-bit and on 64-bit elements.
            if channels == 2 * least {
                channels
            } else {
                least
            }
        } else if self.bits(SECOND + 31, 1) != 0 {
            channels.div_ceil(2).max(least)
        } else {
            channels.max(least)
        }
    }

    /// Prints MIMG.
    pub(super) fn image(&mut self) -> Option<()> {
        self.push(self.row.mnemonic);
        let mask = self.bits(8, 4);
        for operand in self.row.operands {
            let text = match operand.field {
                Field::Vdata => {
                    let class = if self.bits(16, 1) != 0 { "a" } else { "v" };
                    let width = self.image_data(mask.count_ones() as u8, operand.width);
                    registers(class, self.bits(SECOND + 8, 8), width)
                }
                Field::Vaddr => registers("v", self.bits(SECOND, 8), operand.width),
                Field::Srsrc => {
                    descriptor(self.generation, self.bits(SECOND + 16, 5), operand.width)?
                }
                Field::Ssamp => {
                    descriptor(self.generation, self.bits(SECOND + 21, 5), operand.width)?
                }
                _ => return None,
            };
            self.operand(&text);
        }
        if mask != 0 {
            self.push(&format!(" dmask:{mask:#x}"));
        }
        for (bit, name) in [
            (12, " unorm"),
            (13, " glc"),
            (25, " slc"),
            (7, " scc"),
            (15, " a16"),
            (17, " lwe"),
            (14, " da"),
            (SECOND + 31, " d16"),
        ] {
            self.flag(bit, name);
        }
        Some(())
    }
}

/// Text of the pattern of `ds_swizzle_b32`.
fn swizzle(value: u32) -> String {
    if value & 0xff00 == 0x8000 {
        let lane = |n: u32| value >> (2 * n) & 3;
        return format!(
            "swizzle(QUAD_PERM,{},{},{},{})",
            lane(0),
            lane(1),
            lane(2),
            lane(3)
        );
    }
    if value & 0x8000 != 0 {
        return value.to_string();
    }
    let (and, or, xor) = (value & 31, value >> 5 & 31, value >> 10 & 31);
    if and == 31 && or == 0 && xor.is_power_of_two() {
        return format!("swizzle(SWAP,{xor})");
    }
    if and == 31 && or == 0 && xor != 0 && (xor + 1).is_power_of_two() {
        return format!("swizzle(REVERSE,{})", xor + 1);
    }
    let group = 32 - and;
    if group > 1 && group.is_power_of_two() && or < group && xor == 0 {
        return format!("swizzle(BROADCAST,{group},{or})");
    }
    let (zeros, ones) = (or ^ xor, (and | or) ^ xor);
    let letter = |bit: u32| match (zeros >> bit & 1, ones >> bit & 1) {
        (0, 0) => '0',
        (1, 1) => '1',
        (0, _) => 'p',
        _ => 'i',
    };
    let pattern: String = (0..5).rev().map(letter).collect();
    format!("swizzle(BITMASK_PERM,\"{pattern}\")")
}
