//! Instructions of gfx942 that gfx90a lacks, or has in another form: 8-bit floating-point numbers, larger and sparse
//! matrix operations, atomics on packed BF16 numbers, loads to LDS, and scratch addresses with a vector and a scalar
//! register.
//!
//! Instructions of gfx90a that the table of gfx942 does not have are unknown.

mod convert;
mod memory;

use super::inst::{Format, GFX942, Handler, Inst};
use super::{Class, InstructionSet, ds, flat, mfma, sparse_mfma, vop, vop2, vop3, vop3p};

/// Decodes an instruction of gfx942.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let w = words[0];
    let plain = super::decode::decode(words);
    let (format, opcode) = (plain.format, u32::from(plain.opcode));
    let known = crate::disasm::find("gfx942", format.name(), plain.opcode);
    if known.is_none_or(|row| !row.executed) {
        return Inst::unknown(format, opcode);
    }
    let mut inst = match (format, opcode) {
        (Format::Vop1, 0x38 | 0x54..=0x57) => {
            // Decoded like v_mov_b32.
            like(
                vop::decode(with(words, 9, 8, 0x01)),
                opcode,
                convert::vop1(opcode),
            )
        }
        (Format::Vop2, 0x17 | 0x18) => like(plain, opcode, vop2::handler(0x3b)),
        (Format::Vop3, 0x178 | 0x194..=0x197) => like(
            vop3::decode(with(words, 16, 10, 0x141)),
            opcode,
            convert::vop1(opcode - 0x140),
        ),
        (Format::Vop3, 0x208 | 0x2a2..=0x2a5) => {
            // Decoded like v_bfi_b32.
            like(
                vop3::decode(with(words, 16, 10, 0x1ca)),
                opcode,
                convert::vop3(opcode),
            )
        }
        (Format::Vop3p, 0x3e..=0x57 | 0x5c..=0x7f) => matrix(words, opcode),
        (Format::Ds, 0x17 | 0x18 | 0xb7 | 0xb8) => like(
            ds::decode(with(words, 17, 8, 0x00)),
            opcode,
            memory::lds(opcode),
        ),
        (Format::Flat | Format::Global | Format::Scratch, _) => {
            flat::decode(words, InstructionSet::Gfx942)
        }
        (Format::Mubuf, 0x28 | 0x29) => plain,
        _ => plain,
    };
    inst.flags |= GFX942;
    debug_assert_eq!(inst.format, format, "{w:#x}");
    inst
}

/// Replaces `bits` bits of the first dword, from bit `low` on.
fn with(words: [u32; 3], low: u32, bits: u32, value: u32) -> [u32; 3] {
    let mask = ((1 << bits) - 1) << low;
    [words[0] & !mask | value << low, words[1], words[2]]
}

/// An instruction with the operands of `like` and another operation.
fn like(mut like: Inst, opcode: u32, run: Option<Handler>) -> Inst {
    match run {
        Some(run) => {
            like.run = run;
            like.opcode = opcode as u16;
            like
        }
        None => Inst::unknown(like.format, opcode),
    }
}

/// Decodes a matrix instruction.
fn matrix(words: [u32; 3], opcode: u32) -> Inst {
    let run =
        mfma::handler(opcode, InstructionSet::Gfx942).or_else(|| sparse_mfma::handler(opcode));
    let Some(run) = run else {
        return Inst::unknown(Format::Vop3p, opcode);
    };
    let mut inst = vop3p::matrix_operands(words, opcode, run, Class::Mfma);
    inst.flags |= GFX942;
    if sparse_mfma::handler(opcode).is_some() {
        // The third source of sparse operations holds indices, in VGPRs.
        inst.src[2] = (words[1] >> 18 & 0x1ff) as u16;
    } else if !mfma::is_valid(&inst) {
        return Inst::unknown(Format::Vop3p, opcode);
    }
    inst
}
