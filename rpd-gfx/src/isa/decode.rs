//! Decodes instruction words of gfx90a: determines the encoding and calls its decoder.

use super::inst::{Format, Inst};
use super::{InstructionSet, ds, flat, mimg, mubuf, smem, sop, typed_buffer, vop, vop3, vop3p};

/// Decodes an instruction of gfx90a.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let w = words[0];
    if w >> 31 == 0 {
        return vop::decode(words);
    }
    match w >> 26 {
        0b100000..=0b101111 => sop::decode(words),
        0b110000 => smem::decode(words),
        0b110100 if w >> 23 == 0b1_1010_0111 => vop3p::decode(words),
        0b110100 => vop3::decode(words),
        0b110110 => ds::decode(words),
        0b110111 => flat::decode(words, InstructionSet::Gfx90a),
        0b111000 => mubuf::decode(words),
        0b111010 => typed_buffer::decode(words),
        0b111100 => mimg::decode(words),
        _ => Inst::unknown(Format::Unknown, w >> 26),
    }
}
