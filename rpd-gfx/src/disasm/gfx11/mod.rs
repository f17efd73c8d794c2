//! Encodings that GFX11 has and GFX9 lacks, or has in another form: dual instructions, interpolation, exports, and
//! other fields of memory instructions and scalar immediates.

mod memory;
mod scalar;
mod vector;

pub(super) use memory::NULL;
pub(super) use scalar::{
    HARDWARE_REGISTERS, delay, dependency_counts, message, version, wait_counts,
};

use super::table::Encoding;

/// Encoding and opcode in a first dword whose encoding differs from GFX9. The opcode of a dual instruction is that of
/// its first operation.
pub(super) fn encoding(w: u32) -> Option<(Encoding, u16)> {
    let bits = |low: u32, count: u32| (w >> low & ((1 << count) - 1)) as u16;
    Some(match w >> 26 {
        0b110010 => (Encoding::Vopdx, bits(22, 4)),
        0b110011 => match bits(24, 2) {
            0 => (Encoding::Vop3p, bits(16, 7)),
            1 => (Encoding::Vinterp, bits(16, 7)),
            2 => (Encoding::Ldsdir, bits(20, 2)),
            _ => return None,
        },
        0b110101 => (Encoding::Vop3, bits(16, 10)),
        0b110110 => (Encoding::Ds, bits(18, 8)),
        0b110111 => {
            let encoding = match bits(16, 2) {
                0 => Encoding::Flat,
                1 => Encoding::Scratch,
                2 => Encoding::Global,
                _ => return None,
            };
            (encoding, bits(18, 7))
        }
        0b111000 => (Encoding::Mubuf, bits(18, 8)),
        0b111010 => (Encoding::Mtbuf, bits(15, 4)),
        0b111100 => (Encoding::Mimg, bits(18, 8)),
        0b111101 => (Encoding::Smem, bits(18, 8)),
        0b111110 => (Encoding::Exp, 0),
        _ => return None,
    })
}
