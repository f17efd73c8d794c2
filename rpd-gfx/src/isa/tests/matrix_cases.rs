//! The matrix instructions: shapes, types of elements, and which element each lane has, as in the manual.

use super::*;

/// An instruction: name, rows of A, depth, blocks, elements of A in a lane, width of an element in bits, type of the
/// elements.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) rows: usize,
    pub(super) depth: usize,
    pub(super) blocks: usize,
    pub(super) per_lane: usize,
    pub(super) kind: Kind,
    pub(super) set: InstructionSet,
}

/// Type of the elements.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Single,
    Half,
    Bf16,
    Byte,
    Double,
    /// Single precision, of which only ten bits of the mantissa are used.
    Xf32,
    /// 8-bit floats, BF8 or else FP8, of A and B.
    Eight(bool, bool),
}

const fn case(name: &'static str, [rows, depth, blocks, per_lane]: [usize; 4], kind: Kind) -> Case {
    Case {
        name,
        rows,
        depth,
        blocks,
        per_lane,
        kind,
        set: InstructionSet::Gfx90a,
    }
}

const fn newer(name: &'static str, shape: [usize; 4], kind: Kind) -> Case {
    Case {
        set: InstructionSet::Gfx942,
        ..case(name, shape, kind)
    }
}

pub(super) static CASES: [Case; 59] = [
    case("v_mfma_f32_32x32x1f32", [32, 1, 2, 1], Kind::Single),
    case("v_mfma_f32_16x16x1f32", [16, 1, 4, 1], Kind::Single),
    case("v_mfma_f32_4x4x1f32", [4, 1, 16, 1], Kind::Single),
    case("v_mfma_f32_32x32x2f32", [32, 2, 1, 1], Kind::Single),
    case("v_mfma_f32_16x16x4f32", [16, 4, 1, 1], Kind::Single),
    case("v_mfma_f32_32x32x4f16", [32, 4, 2, 4], Kind::Half),
    case("v_mfma_f32_16x16x4f16", [16, 4, 4, 4], Kind::Half),
    case("v_mfma_f32_4x4x4f16", [4, 4, 16, 4], Kind::Half),
    case("v_mfma_f32_32x32x8f16", [32, 8, 1, 4], Kind::Half),
    case("v_mfma_f32_16x16x16f16", [16, 16, 1, 4], Kind::Half),
    case("v_mfma_i32_32x32x4i8", [32, 4, 2, 4], Kind::Byte),
    case("v_mfma_i32_16x16x4i8", [16, 4, 4, 4], Kind::Byte),
    case("v_mfma_i32_4x4x4i8", [4, 4, 16, 4], Kind::Byte),
    case("v_mfma_i32_32x32x8i8", [32, 8, 1, 4], Kind::Byte),
    case("v_mfma_i32_16x16x16i8", [16, 16, 1, 4], Kind::Byte),
    case("v_mfma_f32_32x32x4bf16_1k", [32, 4, 2, 4], Kind::Bf16),
    case("v_mfma_f32_16x16x4bf16_1k", [16, 4, 4, 4], Kind::Bf16),
    case("v_mfma_f32_4x4x4bf16_1k", [4, 4, 16, 4], Kind::Bf16),
    case("v_mfma_f32_32x32x8bf16_1k", [32, 8, 1, 4], Kind::Bf16),
    case("v_mfma_f32_16x16x16bf16_1k", [16, 16, 1, 4], Kind::Bf16),
    case("v_mfma_f32_32x32x2bf16", [32, 2, 2, 2], Kind::Bf16),
    case("v_mfma_f32_16x16x2bf16", [16, 2, 4, 2], Kind::Bf16),
    case("v_mfma_f32_4x4x2bf16", [4, 2, 16, 2], Kind::Bf16),
    case("v_mfma_f32_32x32x4bf16", [32, 4, 1, 2], Kind::Bf16),
    case("v_mfma_f32_16x16x8bf16", [16, 8, 1, 2], Kind::Bf16),
    case("v_mfma_f64_16x16x4f64", [16, 4, 1, 1], Kind::Double),
    case("v_mfma_f64_4x4x4f64", [4, 4, 4, 1], Kind::Double),
    newer("v_mfma_f32_16x16x8_xf32", [16, 8, 1, 2], Kind::Xf32),
    newer("v_mfma_f32_32x32x4_xf32", [32, 4, 1, 2], Kind::Xf32),
    newer("v_mfma_f32_32x32x1_2b_f32", [32, 1, 2, 1], Kind::Single),
    newer("v_mfma_f32_16x16x1_4b_f32", [16, 1, 4, 1], Kind::Single),
    newer("v_mfma_f32_4x4x1_16b_f32", [4, 1, 16, 1], Kind::Single),
    newer("v_mfma_f32_32x32x2_f32", [32, 2, 1, 1], Kind::Single),
    newer("v_mfma_f32_16x16x4_f32", [16, 4, 1, 1], Kind::Single),
    newer("v_mfma_f32_32x32x4_2b_f16", [32, 4, 2, 4], Kind::Half),
    newer("v_mfma_f32_16x16x4_4b_f16", [16, 4, 4, 4], Kind::Half),
    newer("v_mfma_f32_4x4x4_16b_f16", [4, 4, 16, 4], Kind::Half),
    newer("v_mfma_f32_32x32x8_f16", [32, 8, 1, 4], Kind::Half),
    newer("v_mfma_f32_16x16x16_f16", [16, 16, 1, 4], Kind::Half),
    newer("v_mfma_i32_32x32x4_2b_i8", [32, 4, 2, 4], Kind::Byte),
    newer("v_mfma_i32_16x16x4_4b_i8", [16, 4, 4, 4], Kind::Byte),
    newer("v_mfma_i32_4x4x4_16b_i8", [4, 4, 16, 4], Kind::Byte),
    newer("v_mfma_i32_32x32x16_i8", [32, 16, 1, 8], Kind::Byte),
    newer("v_mfma_i32_16x16x32_i8", [16, 32, 1, 8], Kind::Byte),
    newer("v_mfma_f32_32x32x4_2b_bf16", [32, 4, 2, 4], Kind::Bf16),
    newer("v_mfma_f32_16x16x4_4b_bf16", [16, 4, 4, 4], Kind::Bf16),
    newer("v_mfma_f32_4x4x4_16b_bf16", [4, 4, 16, 4], Kind::Bf16),
    newer("v_mfma_f32_32x32x8_bf16", [32, 8, 1, 4], Kind::Bf16),
    newer("v_mfma_f32_16x16x16_bf16", [16, 16, 1, 4], Kind::Bf16),
    newer("v_mfma_f64_16x16x4_f64", [16, 4, 1, 1], Kind::Double),
    newer("v_mfma_f64_4x4x4_4b_f64", [4, 4, 4, 1], Kind::Double),
    newer(
        "v_mfma_f32_16x16x32_bf8_bf8",
        [16, 32, 1, 8],
        Kind::Eight(true, true),
    ),
    newer(
        "v_mfma_f32_16x16x32_bf8_fp8",
        [16, 32, 1, 8],
        Kind::Eight(true, false),
    ),
    newer(
        "v_mfma_f32_16x16x32_fp8_bf8",
        [16, 32, 1, 8],
        Kind::Eight(false, true),
    ),
    newer(
        "v_mfma_f32_16x16x32_fp8_fp8",
        [16, 32, 1, 8],
        Kind::Eight(false, false),
    ),
    newer(
        "v_mfma_f32_32x32x16_bf8_bf8",
        [32, 16, 1, 8],
        Kind::Eight(true, true),
    ),
    newer(
        "v_mfma_f32_32x32x16_bf8_fp8",
        [32, 16, 1, 8],
        Kind::Eight(true, false),
    ),
    newer(
        "v_mfma_f32_32x32x16_fp8_bf8",
        [32, 16, 1, 8],
        Kind::Eight(false, true),
    ),
    newer(
        "v_mfma_f32_32x32x16_fp8_fp8",
        [32, 16, 1, 8],
        Kind::Eight(false, false),
    ),
];

impl Case {
    /// Number of registers of a result.
    pub(super) fn width(&self) -> usize {
        if self.kind == Kind::Double { 2 } else { 1 }
    }

    /// Block, row (or column of B) and depth of element number `n` of a lane.
    pub(super) fn element(&self, lane: usize, n: usize) -> (usize, usize, usize) {
        let rest = lane / self.rows;
        if self.depth == self.per_lane {
            (rest, lane % self.rows, n)
        } else {
            (
                rest % self.blocks,
                lane % self.rows,
                rest / self.blocks * self.per_lane + n,
            )
        }
    }

    /// Block, row and column of result number `n` of a lane.
    pub(super) fn result(&self, lane: usize, n: usize) -> (usize, usize, usize) {
        let column = lane % self.rows;
        match (self.kind, self.rows) {
            (Kind::Double, 16) => (0, 4 * n + lane / 16, column),
            (Kind::Double, _) => (lane / 4 % 4, lane / 16, column),
            (_, 32) => (n / 16, 8 * (n / 4 % 4) + 4 * (lane / 32) + n % 4, column),
            (_, 16) => (n / 4, 4 * (lane / 16) + n % 4, column),
            _ => (lane / 4, n, column),
        }
    }

    pub(super) fn results(&self) -> usize {
        self.blocks * self.rows * self.rows / 64
    }

    /// Whether denormals count as zero.
    pub(super) fn flushes(&self) -> bool {
        self.set == InstructionSet::Gfx90a
    }

    /// Value of element number `n` in two registers of A (or of B).
    pub(super) fn number(&self, words: [u32; 2], n: usize, of_a: bool) -> f64 {
        let bits = u64::from(words[0]) | u64::from(words[1]) << 32;
        match self.kind {
            Kind::Single => f64::from(f32::from_bits(words[0])),
            Kind::Xf32 => f64::from(f32::from_bits(words[n] >> 13 << 13)),
            Kind::Eight(a, b) => eight_bits((bits >> (8 * n)) as u8, if of_a { a } else { b }),
            Kind::Double => f64::from_bits(bits),
            Kind::Byte => f64::from((bits >> (8 * n)) as i8),
            Kind::Bf16 => {
                let bits = (bits >> (16 * n)) as u16;
                if bits & 0x7f80 == 0 && self.flushes() {
                    0.0
                } else {
                    f64::from(f32::from_bits(u32::from(bits) << 16))
                }
            }
            Kind::Half => {
                let bits = (bits >> (16 * n)) as u16;
                let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
                let size = match exponent {
                    0 if self.flushes() => 0.0,
                    0 => fraction * 2f64.powi(-24),
                    _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
                };
                if bits >> 15 != 0 { -size } else { size }
            }
        }
    }

    /// A register with small numbers, whose sums are exact, and some denormals, which are flushed.
    pub(super) fn random_word(&self, random: &mut Random) -> u32 {
        let small = |random: &mut Random| (random.next() % 64) as i32 - 32;
        match self.kind {
            Kind::Byte => random.next() as u32,
            Kind::Single => (small(random) as f32 / 4.0).to_bits(),
            // XF32 operands ignore the low 13 bits.
            Kind::Xf32 => (small(random) as f32).to_bits() | random.next() as u32 & 0x1fff,
            // Numbers from 1/8 to 8 of either sign, and none below.
            Kind::Eight(a, b) => {
                let mut byte = |bf8: bool| {
                    let (least, most) = if bf8 {
                        (13 << 2, 19 << 2)
                    } else {
                        (5 << 3, 11 << 3)
                    };
                    (least + random.next() as u32 % (most - least))
                        | (random.next() as u32 & 1) << 7
                };
                // A and B get the same codes, those that both formats have.
                let mut each = || {
                    if a && b {
                        byte(true)
                    } else {
                        byte(false) & 0x9f | 0x20
                    }
                };
                each() | each() << 8 | each() << 16 | each() << 24
            }
            // The upper halves of doubles; lower halves are cleared by the caller.
            Kind::Double => (f64::from(small(random)).to_bits() >> 32) as u32,
            Kind::Bf16 => {
                let mut half = || match random.next() % 9 {
                    0 if self.flushes() => 0x0001 + (random.next() as u32 & 0x3f),
                    _ => ((small(random) as f32).to_bits()) >> 16,
                };
                half() | half() << 16
            }
            Kind::Half => {
                let mut half = || match random.next() % 9 {
                    0 if self.flushes() => 0x8001 + (random.next() as u32 & 0x1ff),
                    // Powers of two from 1/4 to 8, with either sign.
                    _ => (13 + random.next() as u32 % 6) << 10 | (random.next() as u32 & 1) << 15,
                };
                half() | half() << 16
            }
        }
    }
}

/// A number of 8 bits without negative zero: four bits of exponent and three of mantissa, or five and two.
pub(super) fn eight_bits(code: u8, bf8: bool) -> f64 {
    let (bits, bias) = if bf8 { (2, 16) } else { (3, 8) };
    let (exponent, fraction) = (
        i32::from(code & 0x7f) >> bits,
        f64::from(code & ((1 << bits) - 1)),
    );
    let size = match exponent {
        _ if code == 0x80 => f64::NAN,
        0 => fraction * 2f64.powi(1 - bias - bits),
        _ => (fraction + 2f64.powi(bits)) * 2f64.powi(exponent - bias - bits),
    };
    if code & 0x80 != 0 { -size } else { size }
}
