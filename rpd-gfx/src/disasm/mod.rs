//! Disassembly: text of instructions as LLVM's tools print it, with length and category.
//!
//! The tables `data/<processor>-instructions.csv` drive it. A row has the encoding and opcode of an instruction, its
//! mnemonic in LLVM, and its *form*: which fields are its operands, how many dwords these have, and which modifiers
//! exist. `data/list-instructions.py` makes the tables by asking LLVM's disassembler. The tests compare the texts of
//! random instructions with those of LLVM.
//!
//! For processors without a table, LLVM's library disassembles, where it is installed. [`Instruction::from_text`]
//! completes the output of another disassembler.

mod category;
mod gfx11;
mod llvm;
mod memory;
mod operand;
mod scalar;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod vector;

pub use category::{Category, Flow};
pub(crate) use table::find;
#[cfg(test)]
pub(crate) use table::rows;

use std::sync::Arc;

use llvm::Llvm;
use table::{Encoding, Generation, Processor, Row};

/// A disassembled instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Text as LLVM prints it, with single blanks: `v_add_f32_e32 v4, v2, v6`. Dwords that are not an instruction are
    /// `.long 0x...`.
    pub text: String,
    /// Length in bytes; 0 only at the end of the code.
    pub bytes: u32,
    /// Unit that executes the instruction.
    pub category: Category,
    /// Where execution continues after the instruction.
    pub flow: Flow,
}

impl Instruction {
    /// The instruction at `pc` for which another disassembler returned this text and length.
    pub fn from_text(text: &str, bytes: u32, pc: u64) -> Self {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            category: Category::from_text(&text),
            flow: Flow::from_text(&text, pc, bytes),
            text,
            bytes,
        }
    }

    /// The dword at the start of `code`, or the bytes of an incomplete one, which is not an instruction.
    fn unknown(code: &[u8]) -> Self {
        let (text, bytes) = match code.first_chunk() {
            Some(dword) => (format!(".long {:#010x}", u32::from_le_bytes(*dword)), 4),
            None => (
                code.iter()
                    .map(|byte| format!(".byte {byte:#04x}"))
                    .collect::<Vec<_>>()
                    .join("; "),
                code.len() as u32,
            ),
        };
        Self {
            text,
            bytes,
            category: Category::Unknown,
            flow: Flow::Next,
        }
    }
}

/// Disassembles code for one processor.
#[derive(Debug, Clone)]
pub struct Disassembler(Source);

/// Source of the texts: a table or LLVM's library.
#[derive(Clone)]
enum Source {
    Table(&'static Processor),
    Llvm(Arc<Llvm>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Table(processor) => f.debug_tuple("Table").field(&processor.name).finish(),
            Self::Llvm(_) => f.write_str("Llvm"),
        }
    }
}

impl Disassembler {
    /// A disassembler for a processor, named as in the target of a code object: `gfx90a`, or with features
    /// (`gfx90a:sramecc+:xnack-`). `None` for processors that have no table (see [`Disassembler::processors`]) and
    /// that no installed LLVM library supports.
    pub fn new(processor: &str) -> Option<Self> {
        let name = processor
            .rsplit_once("--")
            .map_or(processor, |(_, name)| name);
        let name = name.split(':').next()?;
        let table = |name| table::PROCESSORS.iter().find(|found| found.name == name);
        let table = table(name).or_else(|| match name {
            // These processors have the instructions of gfx1100.
            "gfx1101" | "gfx1102" | "gfx1103" => table("gfx1100"),
            _ => None,
        });
        Some(Self(match table {
            Some(processor) => Source::Table(processor),
            None => Source::Llvm(Arc::new(Llvm::new(name)?)),
        }))
    }

    /// First major version of LLVM whose library supports a processor that has no table; `None` when no version is
    /// known to support it.
    pub fn llvm_since(processor: &str) -> Option<u32> {
        llvm::since(processor)
    }

    /// The processors that have a table.
    pub fn processors() -> impl Iterator<Item = &'static str> {
        table::PROCESSORS.iter().map(|processor| processor.name)
    }

    /// Disassembles the instruction at the start of `code`. Branch targets are computed relative to its address `pc`.
    pub fn instruction(&self, code: &[u8], pc: u64) -> Instruction {
        let known = match &self.0 {
            Source::Table(processor) => text(processor, code).map(|(text, dwords)| Instruction {
                category: Category::from_text(&text),
                flow: Flow::from_text(&text, pc, 4 * dwords),
                text,
                bytes: 4 * dwords,
            }),
            Source::Llvm(llvm) => llvm.instruction(code, pc),
        };
        known.unwrap_or_else(|| Instruction::unknown(code))
    }

    /// Disassembles all of `code`, whose first byte is at address `pc`. Returns addresses and instructions.
    pub fn instructions<'c>(
        &self,
        code: &'c [u8],
        pc: u64,
    ) -> impl Iterator<Item = (u64, Instruction)> + use<'c> {
        let (this, mut at) = (self.clone(), 0);
        std::iter::from_fn(move || {
            let rest = code.get(at..).filter(|rest| !rest.is_empty())?;
            let pc = pc.wrapping_add(at as u64);
            let instruction = this.instruction(rest, pc);
            at += instruction.bytes as usize;
            Some((pc, instruction))
        })
    }
}

/// Text and number of dwords of the instruction at the start of `code`; `None` when it is invalid or cut off.
fn text(processor: &'static Processor, code: &[u8]) -> Option<(String, u32)> {
    let mut words = [0; 4];
    let available = code.chunks_exact(4).take(words.len());
    let mut have = 0;
    for (word, bytes) in words.iter_mut().zip(available) {
        *word = u32::from_le_bytes(bytes.try_into().ok()?);
        have += 1;
    }
    if have == 0 {
        return None;
    }
    let generation = processor.generation();
    let (encoding, opcode) = encoding(generation, words)?;
    let row = processor.row(encoding, opcode)?;
    let mut printer = Printer {
        processor,
        generation,
        row,
        words,
        length: row.dwords(),
        out: String::new(),
    };
    printer.print()?;
    (printer.length <= have).then_some((printer.out, printer.length))
}

/// Encoding and opcode of the instruction in `words`; `None` when the encoding is unknown.
fn encoding(generation: Generation, words: [u32; 4]) -> Option<(Encoding, u16)> {
    let w = words[0];
    let bits = |low: u32, count: u32| (w >> low & ((1 << count) - 1)) as u16;
    Some(match w >> 26 {
        0b011111 if w >> 25 & 1 == 0 => (Encoding::Vopc, bits(17, 8)),
        0b011111 => (Encoding::Vop1, bits(9, 8)),
        0b000000..0b100000 => (Encoding::Vop2, bits(25, 6)),
        0b100000..=0b101111 => match w >> 23 & 0x7f {
            0b1111101 => (Encoding::Sop1, bits(8, 8)),
            0b1111110 => (Encoding::Sopc, bits(16, 7)),
            0b1111111 => (Encoding::Sopp, bits(16, 7)),
            _ if w >> 28 == 0b1011 => (Encoding::Sopk, bits(23, 5)),
            _ => (Encoding::Sop2, bits(23, 7)),
        },
        _ if generation == Generation::Gfx11 => return gfx11::encoding(w),
        0b110000 => (Encoding::Smem, bits(18, 8)),
        0b110100 if w >> 23 & 7 == 7 => (Encoding::Vop3p, bits(16, 7)),
        0b110100 => (Encoding::Vop3, bits(16, 10)),
        0b110110 => (Encoding::Ds, bits(17, 8)),
        0b110111 => {
            let encoding = match bits(14, 2) {
                0 => Encoding::Flat,
                1 => Encoding::Scratch,
                2 => Encoding::Global,
                _ => return None,
            };
            (encoding, bits(18, 7))
        }
        0b111000 => (Encoding::Mubuf, bits(18, 7)),
        0b111010 => (Encoding::Mtbuf, bits(15, 4)),
        0b111100 => (Encoding::Mimg, bits(18, 7) | bits(0, 1) << 7),
        _ => return None,
    })
}

/// Builds the text of one instruction.
struct Printer {
    processor: &'static Processor,
    generation: Generation,
    row: &'static Row,
    /// The dwords of the instruction and those after it; 0 after the end of the code.
    words: [u32; 4],
    /// Number of dwords of the instruction. Reading a literal adds one.
    length: u32,
    out: String,
}

impl Printer {
    /// Builds the text; `None` if an operand is invalid.
    fn print(&mut self) -> Option<()> {
        let gfx11 = self.generation == Generation::Gfx11;
        match self.row.encoding {
            Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc | Encoding::Sopp => {
                self.scalar()
            }
            Encoding::Smem if gfx11 => self.scalar_memory_gfx11(),
            Encoding::Smem => self.scalar_memory(),
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc => self.short_vector(),
            Encoding::Vop3 => self.long_vector(),
            Encoding::Vop3p => self.packed_vector(),
            Encoding::Ds => self.lds(),
            Encoding::Flat | Encoding::Scratch | Encoding::Global => self.flat(),
            Encoding::Mubuf | Encoding::Mtbuf => self.buffer(),
            Encoding::Mimg if gfx11 => self.image_gfx11(),
            Encoding::Mimg => self.image(),
            Encoding::Vopdx | Encoding::Vopdy => self.pair(),
            Encoding::Vinterp => self.interpolation(),
            Encoding::Ldsdir => self.direct_lds(),
            Encoding::Exp => self.export(),
        }
    }

    /// Value of a field: `low` is the number of its lowest bit, counted from the first dword, `count` its width.
    fn bits(&self, low: u32, count: u32) -> u32 {
        self.words[low as usize / 32] >> (low % 32) & (u32::MAX >> (32 - count))
    }

    /// Appends text as it is.
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Appends an operand, after a blank if it is the first and after a comma otherwise.
    fn operand(&mut self, text: &str) {
        let separator = if self.out.contains(' ') { ", " } else { " " };
        self.push(separator);
        self.push(text);
    }

    /// Appends a modifier if bit `bit` is set.
    fn flag(&mut self, bit: u32, text: &str) {
        if self.bits(bit, 1) != 0 {
            self.push(text);
        }
    }
}
