//! Text of memory instructions.

use crate::disasm::Printer;
use crate::disasm::operand::descriptor;
use crate::disasm::operand::registers;
use crate::disasm::table::{Field, Generation, Modifiers, Operand};
use crate::disasm::text::small_or_hexadecimal;

/// Number of the first bit of the second dword.
const SECOND: u32 = 32;
/// Number of the scalar register that always reads 0.
pub(in crate::disasm) const NULL: u32 = 124;

/// Names of the buffer formats, by number.
const FORMATS: [&str; 64] = [
    "INVALID",
    "8_UNORM",
    "8_SNORM",
    "8_USCALED",
    "8_SSCALED",
    "8_UINT",
    "8_SINT",
    "16_UNORM",
    "16_SNORM",
    "16_USCALED",
    "16_SSCALED",
    "16_UINT",
    "16_SINT",
    "16_FLOAT",
    "8_8_UNORM",
    "8_8_SNORM",
    "8_8_USCALED",
    "8_8_SSCALED",
    "8_8_UINT",
    "8_8_SINT",
    "32_UINT",
    "32_SINT",
    "32_FLOAT",
    "16_16_UNORM",
    "16_16_SNORM",
    "16_16_USCALED",
    "16_16_SSCALED",
    "16_16_UINT",
    "16_16_SINT",
    "16_16_FLOAT",
    "10_11_11_FLOAT",
    "11_11_10_FLOAT",
    "10_10_10_2_UNORM",
    "10_10_10_2_SNORM",
    "10_10_10_2_UINT",
    "10_10_10_2_SINT",
    "2_10_10_10_UNORM",
    "2_10_10_10_SNORM",
    "2_10_10_10_USCALED",
    "2_10_10_10_SSCALED",
    "2_10_10_10_UINT",
    "2_10_10_10_SINT",
    "8_8_8_8_UNORM",
    "8_8_8_8_SNORM",
    "8_8_8_8_USCALED",
    "8_8_8_8_SSCALED",
    "8_8_8_8_UINT",
    "8_8_8_8_SINT",
    "32_32_UINT",
    "32_32_SINT",
    "32_32_FLOAT",
    "16_16_16_16_UNORM",
    "16_16_16_16_SNORM",
    "16_16_16_16_USCALED",
    "16_16_16_16_SSCALED",
    "16_16_16_16_UINT",
    "16_16_16_16_SINT",
    "16_16_16_16_FLOAT",
    "32_32_32_UINT",
    "32_32_32_SINT",
    "32_32_32_FLOAT",
    "32_32_32_32_UINT",
    "32_32_32_32_SINT",
    "32_32_32_32_FLOAT",
];

/// Image dimensions by number: name, number of coordinates, number of gradients.
const IMAGES: [(&str, u32, u32); 8] = [
    ("1D", 1, 2),
    ("2D", 2, 4),
    ("3D", 3, 6),
    ("CUBE", 3, 4),
    ("1D_ARRAY", 2, 2),
    ("2D_ARRAY", 3, 4),
    ("2D_MSAA", 3, 4),
    ("2D_MSAA_ARRAY", 4, 4),
];

impl Printer {
    /// Prints SMEM.
    pub(in crate::disasm) fn scalar_memory_gfx11(&mut self) -> Option<()> {
        self.push(self.row.mnemonic);
        for operand in self.row.operands {
            let text = match operand.field {
                Field::Sdata => self.scalar_register(self.bits(6, 7), operand.width)?,
                Field::Sbase => self.scalar_register(self.bits(0, 6) << 1, operand.width)?,
                Field::Probe => small_or_hexadecimal(self.bits(6, 7)),
                Field::Soffset => {
                    let value = ((self.bits(SECOND, 21) << 11) as i32) >> 11;
                    let sign = if value < 0 { "-" } else { "" };
                    let number = format!("{sign}{:#x}", value.unsigned_abs());
                    match (self.bits(SECOND + 25, 7), value) {
                        (register, 0) => self.scalar_register(register, 1)?,
                        (NULL, _) => number,
                        (register, _) => {
                            format!("{} offset:{number}", self.scalar_register(register, 1)?)
                        }
                    }
                }
                _ => return None,
            };
            self.operand(&text);
        }
        if self.row.operand(Field::Sdata).is_some() {
            self.flag(14, " glc");
            self.flag(13, " dlc");
        }
        Some(())
    }

    /// Prints the buffer format.
    pub(in crate::disasm) fn buffer_format_gfx11(&mut self) {
        let format = self.bits(19, 7);
        match FORMATS.get(format as usize) {
            // The default format is not printed.
            Some(_) if format == 1 => {}
            Some(name) => self.push(&format!(" format:[BUF_FMT_{name}]")),
            None => self.push(&format!(" format:{format}")),
        }
    }

    /// Prints MIMG.
    pub(in crate::disasm) fn image_gfx11(&mut self) -> Option<()> {
        let row = self.row;
        self.push(row.mnemonic);
        let (kind, coordinates, gradients) = IMAGES[self.bits(2, 3) as usize];
        let mask = self.bits(8, 4);
        let rays = row.mnemonic.starts_with("image_bvh");
        for operand in row.operands {
            let text = match operand.field {
                Field::Vdata if rays => registers("v", self.bits(SECOND + 8, 8), operand.width),
                Field::Vdata => registers("v", self.bits(SECOND + 8, 8), self.texel(operand)),
                Field::Vaddr if rays => self.ray_address()?,
                Field::Vaddr => self.image_address(operand, coordinates, gradients)?,
                Field::Srsrc => {
                    descriptor(Generation::Gfx11, self.bits(SECOND + 16, 5), operand.width)?
                }
                Field::Ssamp => {
                    descriptor(Generation::Gfx11, self.bits(SECOND + 26, 5), operand.width)?
                }
                _ => return None,
            };
            self.operand(&text);
        }
        if rays {
            self.flag(16, " a16");
            return Some(());
        }
        if mask != 0 {
            self.push(&format!(" dmask:{mask:#x}"));
        }
        self.push(&format!(" dim:SQ_RSRC_IMG_{kind}"));
        self.flag(7, " unorm");
        self.cache_bits(14, 12, 13);
        self.flag(15, " r128");
        self.flag(16, " a16");
        self.flag(SECOND + 21, " tfe");
        self.flag(SECOND + 22, " lwe");
        self.flag(17, " d16");
        Some(())
    }

    /// Number of data registers of an image instruction.
    fn texel(&self, operand: &Operand) -> u8 {
        let status = self.bits(SECOND + 21, 1) as u8;
        // Gather instructions read one component of four texels.
        let components = match operand.width {
            4 => 4,
            _ => self.bits(8, 4).count_ones().max(1) as u8,
        };
        let components = if self.bits(17, 1) != 0 {
            components.div_ceil(2)
        } else {
            components
        };
        // Compare-and-swap has two values for each component.
        let pairs = self.row.mnemonic == "image_atomic_cmpswap";
        components * if pairs { 2 } else { 1 } + status
    }

    /// Text of the address registers of an image instruction: consecutive, or listed.
    fn image_address(
        &mut self,
        operand: &Operand,
        coordinates: u32,
        gradients: u32,
    ) -> Option<String> {
        let has = |modifier| u32::from(self.row.has(modifier));
        let short = self.bits(16, 1) != 0;
        let numbers = has(Modifiers::COORDINATES) * coordinates + has(Modifiers::LEVEL);
        let mut width = u32::from(operand.width);
        width += if short { numbers.div_ceil(2) } else { numbers };
        width += match (has(Modifiers::GRADIENTS), has(Modifiers::HALF_GRADIENTS)) {
            (0, _) => 0,
            (_, 0) => gradients,
            // 16-bit gradients: each direction begins with a new register.
            _ => (gradients / 2).next_multiple_of(2),
        };
        if self.bits(0, 1) == 0 {
            return Some(registers("v", self.bits(SECOND, 8), tuple(width)?));
        }
        self.length = 3;
        let mut parts = vec![registers("v", self.bits(SECOND, 8), 1)];
        let more = width.saturating_sub(1).min(4);
        for number in 0..more {
            // When there are more address registers than fields, the last field is the first of several consecutive
            // registers.
            let rest = if number == 3 { width - 4 } else { 1 };
            let first = self.bits(2 * SECOND + 8 * number, 8);
            parts.push(registers("v", first, tuple(rest)?));
        }
        Some(format!("[{}]", parts.join(", ")))
    }

    /// Text of the address registers of a ray intersection: node, extent, origin, direction and inverse direction.
    fn ray_address(&mut self) -> Option<String> {
        let node = if self.row.mnemonic.contains("64") {
            2
        } else {
            1
        };
        let widths: &[u8] = match self.bits(16, 1) {
            0 => &[node, 1, 3, 3, 3],
            _ => &[node, 1, 3, 3],
        };
        let first = self.bits(SECOND, 8);
        if self.bits(0, 1) == 0 {
            return Some(registers("v", first, widths.iter().sum()));
        }
        self.length = 3;
        let parts: Vec<_> = (widths.iter().zip(0..))
            .map(|(width, number)| match number {
                0 => registers("v", first, *width),
                _ => registers("v", self.bits(2 * SECOND + 8 * (number - 1), 8), *width),
            })
            .collect();
        Some(format!("[{}]", parts.join(", ")))
    }
}

/// Size of the smallest register tuple with room for this many registers; `None` if there is none. No sizes are between
/// 12 and 16.
fn tuple(registers: u32) -> Option<u8> {
    match registers {
        1..=12 => Some(registers as u8),
        13..=16 => Some(16),
        _ => None,
    }
}
