//! Matrix operations of VOP3P (`v_mfma_*`): D = A B + C for blocks of matrices that are distributed over the lanes of
//! a wave.
//!
//! All lanes take part, whatever EXEC is. Sums are rounded after each product, in the order of the products. On
//! gfx90a, half-precision and BF16 instructions flush denormals of A, B, C and D. The hardware may round sums at
//! other points.

use super::InstructionSet;
use super::exec::Exec;
use super::fault::unknown_instruction;
use super::float::{f16_to_f32, fma32};
use super::fp8::{F8, decode as decode_f8};
use super::inst::{GFX942, Handler, Inst, VGPR};
use super::kind::{Matrix, MatrixElement};
use super::lanes::Lanes;

/// Shape of an operation: A is `rows` x `depth`, B is `depth` x `rows`, and there are `blocks` of each.
#[derive(Debug, Clone, Copy)]
struct Shape {
    rows: usize,
    depth: usize,
    /// Number of elements of A, and of B, in each lane, which are consecutive in depth.
    per_lane: usize,
    element: MatrixElement,
}

impl Shape {
    /// The shape of an instruction's operation.
    fn from_inst(i: &Inst) -> Option<Self> {
        let newer = i.has(GFX942);
        Self::from_opcode(
            i.opcode,
            if newer {
                InstructionSet::Gfx942
            } else {
                InstructionSet::Gfx90a
            },
        )
    }

    fn from_opcode(opcode: u16, set: InstructionSet) -> Option<Self> {
        match set {
            InstructionSet::Gfx90a => Self::from_gfx90a(opcode),
            InstructionSet::Gfx942 => Self::from_gfx942(opcode),
        }
    }

    fn from_gfx942(opcode: u16) -> Option<Self> {
        use MatrixElement::{Bf16, F8, F32, I8};
        let (rows, depth, per_lane, element) = match opcode {
            // XF32: single precision with a shortened mantissa.
            0x3e => (16, 8, 2, F32),
            0x3f => (32, 4, 2, F32),
            0x40..=0x52 | 0x6e | 0x6f => return Self::from_gfx90a(opcode),
            0x56 => (32, 16, 8, I8),
            0x57 => (16, 32, 8, I8),
            0x5d => (32, 4, 4, Bf16),
            0x5e => (16, 4, 4, Bf16),
            0x5f => (4, 4, 4, Bf16),
            0x60 => (32, 8, 4, Bf16),
            0x61 => (16, 16, 4, Bf16),
            0x70..=0x73 => (16, 32, 8, F8),
            0x74..=0x77 => (32, 16, 8, F8),
            _ => return None,
        };
        Some(Self {
            rows,
            depth,
            per_lane,
            element,
        })
    }

    fn from_gfx90a(opcode: u16) -> Option<Self> {
        use MatrixElement::{Bf16, F16, F32, F64, I8};
        let (rows, depth, per_lane, element) = match opcode {
            0x40 => (32, 1, 1, F32),
            0x41 => (16, 1, 1, F32),
            0x42 => (4, 1, 1, F32),
            0x44 => (32, 2, 1, F32),
            0x45 => (16, 4, 1, F32),
            0x48 => (32, 4, 4, F16),
            0x49 => (16, 4, 4, F16),
            0x4a => (4, 4, 4, F16),
            0x4c => (32, 8, 4, F16),
            0x4d => (16, 16, 4, F16),
            0x50 => (32, 4, 4, I8),
            0x51 => (16, 4, 4, I8),
            0x52 => (4, 4, 4, I8),
            0x54 => (32, 8, 4, I8),
            0x55 => (16, 16, 4, I8),
            0x63 => (32, 4, 4, Bf16),
            0x64 => (16, 4, 4, Bf16),
            0x65 => (4, 4, 4, Bf16),
            0x66 => (32, 8, 4, Bf16),
            0x67 => (16, 16, 4, Bf16),
            0x68 => (32, 2, 2, Bf16),
            0x69 => (16, 2, 2, Bf16),
            0x6b => (4, 2, 2, Bf16),
            0x6c => (32, 4, 2, Bf16),
            0x6d => (16, 8, 2, Bf16),
            0x6e => (16, 4, 1, F64),
            0x6f => (4, 4, 1, F64),
            _ => return None,
        };
        Some(Self {
            rows,
            depth,
            per_lane,
            element,
        })
    }

    fn blocks(&self) -> usize {
        64 * self.per_lane / (self.rows * self.depth)
    }

    /// The lane that has element `index` (row of A, column of B) at a depth.
    fn lane(&self, block: usize, index: usize, depth: usize) -> usize {
        index + self.rows * (block + self.blocks() * (depth / self.per_lane))
    }

    /// Number of results in a lane. Each takes one register, in double precision two.
    fn results(&self) -> usize {
        self.blocks() * self.rows * self.rows / 64
    }

    /// Block, row and column of a result of a lane.
    fn result(&self, result: usize, lane: usize) -> (usize, usize, usize) {
        let double = self.element == MatrixElement::F64;
        match self.rows {
            32 => {
                let row = 8 * (result % 16 / 4) + 4 * (lane / 32) + result % 4;
                (result / 16, row, lane % 32)
            }
            16 if double => (0, 4 * result + lane / 16, lane % 16),
            16 => (result / 4, 4 * (lane / 16) + result % 4, lane % 16),
            _ if double => (lane / 4 % 4, lane / 16, lane % 4),
            _ => (lane / 4, result, lane % 4),
        }
    }
}

/// The operation with this opcode.
pub(super) fn handler(opcode: u32, set: InstructionSet) -> Option<Handler> {
    let shape = Shape::from_opcode(opcode as u16, set)?;
    let newer = match set {
        InstructionSet::Gfx90a => false,
        InstructionSet::Gfx942 => true,
    };
    Some(match shape.element {
        MatrixElement::F8 => match opcode & 3 {
            0 => |x, i| single(x, i, eight::<true>, eight::<true>, fma32),
            1 => |x, i| single(x, i, eight::<true>, eight::<false>, fma32),
            2 => |x, i| single(x, i, eight::<false>, eight::<true>, fma32),
            _ => |x, i| single(x, i, eight::<false>, eight::<false>, fma32),
        },
        // Mantissa bits beyond ten are dropped.
        MatrixElement::F32 if shape.per_lane == 2 => |x, i| single(x, i, short, short, fma32),
        MatrixElement::F16 if newer => |x, i| single(x, i, any_half, any_half, fma32),
        MatrixElement::Bf16 if newer => |x, i| single(x, i, any_bf16, any_bf16, fma32),
        MatrixElement::F64 => double,
        MatrixElement::I8 => |x, i| {
            single(x, i, bytes, bytes, |a, b, c, out| {
                for l in 0..64 {
                    out[l] = a[l].wrapping_mul(b[l]).wrapping_add(c[l]);
                }
            })
        },
        MatrixElement::F32 => |x, i| single(x, i, |words, _| words[0], |words, _| words[0], fma32),
        MatrixElement::F16 => |x, i| single(x, i, half, half, fma32),
        MatrixElement::Bf16 => |x, i| single(x, i, bf16, bf16, fma32),
    })
}

/// Whether the instruction has only modifiers that its operation allows.
pub(super) fn is_valid(i: &Inst) -> bool {
    Shape::from_inst(i).is_none_or(|shape| {
        let (size, from) = (u32::from(i.op_sel), u32::from(i.op_sel_hi));
        if shape.element == MatrixElement::F64 {
            size == 0 && from == 0 && i.neg == 0
        } else {
            1 << size <= shape.blocks() && from < 1 << size
        }
    })
}

/// Properties of an operation that hardware counters depend on.
pub(super) fn kind(i: &Inst) -> Option<Matrix> {
    let Some(shape) = Shape::from_inst(i) else {
        return super::sparse_mfma::kind(i.opcode).filter(|_| i.has(GFX942));
    };
    let operations = 2 * shape.blocks() * shape.rows * shape.rows * shape.depth;
    let cycles = match (shape.rows, shape.element) {
        // gfx942 executes one large product of small elements in half of gfx90a's time.
        (32, _) if i.has(GFX942) && shape.is_fast() => 32,
        (16, _) if i.has(GFX942) && shape.is_fast() => 16,
        (32, _) => 64,
        (16, _) => 32,
        (_, MatrixElement::F64) => 16,
        _ => 8,
    };
    Some(Matrix {
        element: shape.element,
        operations: operations as u32,
        cycles,
    })
}

impl Shape {
    /// Whether gfx942 executes the operation at full rate.
    fn is_fast(&self) -> bool {
        let single = self.element == MatrixElement::F32 && self.per_lane == 1;
        self.blocks() == 1 && !single && self.element != MatrixElement::F64
    }
}

/// Element `n` as an 8-bit floating-point number: BF8 if `BF8`, otherwise FP8.
fn eight<const BF8: bool>(words: [u32; 2], n: usize) -> u32 {
    let code = (words[n / 4] >> (8 * (n % 4))) as u8;
    decode_f8(if BF8 { F8::Bf8 } else { F8::Fp8 }, code).to_bits()
}

/// Element `n` as a single-precision number with only ten bits of the mantissa.
fn short(words: [u32; 2], n: usize) -> u32 {
    words[n] & !0x1fff
}

/// Element `n` as a half-precision number, which may be denormal.
fn any_half(words: [u32; 2], n: usize) -> u32 {
    f16_to_f32(bits16(words, n)).to_bits()
}

/// Element `n` as a BF16 number, which may be denormal.
fn any_bf16(words: [u32; 2], n: usize) -> u32 {
    u32::from(bits16(words, n)) << 16
}

fn bits16(words: [u32; 2], n: usize) -> u16 {
    (words[n / 2] >> (16 * (n % 2))) as u16
}

/// Element `n` as a half-precision number, denormals flushed to 0.
fn half(words: [u32; 2], n: usize) -> u32 {
    let bits = bits16(words, n);
    let sign = u32::from(bits >> 15) << 31;
    if bits & 0x7c00 == 0 {
        sign
    } else {
        f16_to_f32(bits).to_bits()
    }
}

/// Element `n` as a BF16 number, denormals flushed to 0.
fn bf16(words: [u32; 2], n: usize) -> u32 {
    flushed(u32::from(bits16(words, n)) << 16)
}

fn bytes(words: [u32; 2], n: usize) -> u32 {
    (words[n / 4] >> (8 * (n % 4))) as i8 as u32
}

/// The bits of a number, denormals flushed to 0.
fn flushed(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 {
        bits & 1 << 31
    } else {
        bits
    }
}

/// The block whose A is used for `block`, from the fields `cbsz` and `abid`.
fn broadcast(i: &Inst, block: usize) -> usize {
    (block >> i.op_sel << i.op_sel) + usize::from(i.op_sel_hi)
}

/// The lane whose B is used for `lane`, from the field `blgp`.
fn lane_group(i: &Inst, lane: usize) -> usize {
    match i.neg {
        0 => lane,
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % 64,
        group => lane % 16 + 16 * (usize::from(group) - 4),
    }
}

/// Register `n` of a source, or its constant.
fn source(x: &Exec<'_>, code: u16, n: u16) -> Lanes {
    if code >= VGPR {
        *x.vgpr(code + n)
    } else {
        [x.s32(code, 0); 64]
    }
}

/// Executes an operation with 32-bit results. `left` and `right` extract elements of A and B from a lane's registers.
fn single(
    x: &mut Exec<'_>,
    i: &Inst,
    left: fn([u32; 2], usize) -> u32,
    right: fn([u32; 2], usize) -> u32,
    add: fn(&Lanes, &Lanes, &Lanes, &mut Lanes),
) {
    let Some(shape) = Shape::from_inst(i) else {
        return unknown_instruction(x, i);
    };
    let flushes =
        matches!(shape.element, MatrixElement::F16 | MatrixElement::Bf16) && !i.has(GFX942);
    // By position in the lane: the elements of all lanes.
    let elements = |code: u16, element: fn([u32; 2], usize) -> u32| {
        let words = [0, 1].map(|n| source(x, code, n));
        let mut out = [[0; 64]; 8];
        for (n, out) in out[..shape.per_lane].iter_mut().enumerate() {
            *out = std::array::from_fn(|l| element([words[0][l], words[1][l]], n));
        }
        out
    };
    let (a, b) = (elements(i.src[0], left), elements(i.src[1], right));
    let flush = |lanes: &mut Lanes| {
        if flushes {
            lanes.iter_mut().for_each(|v| *v = flushed(*v));
        }
    };
    let mut out = [[0; 64]; 32];
    for (result, out) in out[..shape.results()].iter_mut().enumerate() {
        *out = source(x, i.src[2], result as u16);
        flush(out);
        let places: [_; 64] = std::array::from_fn(|l| shape.result(result, l));
        for depth in 0..shape.depth {
            let n = depth % shape.per_lane;
            let left =
                places.map(|(block, row, _)| a[n][shape.lane(broadcast(i, block), row, depth)]);
            let right = places
                .map(|(block, _, column)| b[n][lane_group(i, shape.lane(block, column, depth))]);
            let sum = *out;
            add(&left, &right, &sum, out);
        }
        flush(out);
    }
    for (n, out) in out[..shape.results()].iter().enumerate() {
        *x.vgpr_mut(i.dst + n as u16) = *out;
    }
    x.stats.valu_lanes += 64;
}

/// Executes an operation in double precision.
fn double(x: &mut Exec<'_>, i: &Inst) {
    let Some(shape) = Shape::from_inst(i) else {
        return unknown_instruction(x, i);
    };
    let wide = |code: u16, n: u16| -> [f64; 64] {
        if code < VGPR {
            return [f64::from_bits(x.s64(code, 0)); 64];
        }
        let (low, high) = (x.vgpr(code + n), x.vgpr(code + n + 1));
        std::array::from_fn(|l| f64::from_bits(u64::from(low[l]) | u64::from(high[l]) << 32))
    };
    let (a, b) = (wide(i.src[0], 0), wide(i.src[1], 0));
    let mut out = [[0.0; 64]; 4];
    for (result, out) in out[..shape.results()].iter_mut().enumerate() {
        *out = wide(i.src[2], 2 * result as u16);
        for (l, sum) in out.iter_mut().enumerate() {
            let (block, row, column) = shape.result(result, l);
            for depth in 0..shape.depth {
                let left = a[shape.lane(block, row, depth)];
                *sum = left.mul_add(b[shape.lane(block, column, depth)], *sum);
            }
        }
    }
    for (n, out) in out[..shape.results()].iter().enumerate() {
        let dst = i.dst + 2 * n as u16;
        *x.vgpr_mut(dst) = out.map(|v| v.to_bits() as u32);
        *x.vgpr_mut(dst + 1) = out.map(|v| (v.to_bits() >> 32) as u32);
    }
    x.stats.valu_lanes += 64;
}
