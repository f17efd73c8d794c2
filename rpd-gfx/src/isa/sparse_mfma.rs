//! Sparse matrix operations (`v_smfmac_*`): D += A B. Of every four elements in a row of A only two are stored; their
//! positions are in a register.

use super::exec::Exec;
use super::fault::unknown_instruction;
use super::float::f16_to_f32;
use super::fp8::{F8, decode};
use super::inst::{Handler, Inst};
use super::lanes::Lanes;
use super::{Matrix, MatrixElement};

/// Type of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Half,
    Bf16,
    Byte,
    Eight(F8),
}

/// Shape of an operation: A is `rows` x `depth` with half of the elements stored, B is `depth` x `rows`.
#[derive(Debug, Clone, Copy)]
struct Shape {
    rows: usize,
    depth: usize,
    left: Element,
    right: Element,
}

fn shape(opcode: u16) -> Option<Shape> {
    use Element::{Bf16, Byte, Eight, Half};
    use F8::{Bf8, Fp8};
    let (rows, depth, left, right) = match opcode {
        0x62 => (16, 32, Half, Half),
        0x64 => (32, 16, Half, Half),
        0x66 => (16, 32, Bf16, Bf16),
        0x68 => (32, 16, Bf16, Bf16),
        0x6a => (16, 64, Byte, Byte),
        0x6c => (32, 32, Byte, Byte),
        0x78 => (16, 64, Eight(Bf8), Eight(Bf8)),
        0x79 => (16, 64, Eight(Bf8), Eight(Fp8)),
        0x7a => (16, 64, Eight(Fp8), Eight(Bf8)),
        0x7b => (16, 64, Eight(Fp8), Eight(Fp8)),
        0x7c => (32, 32, Eight(Bf8), Eight(Bf8)),
        0x7d => (32, 32, Eight(Bf8), Eight(Fp8)),
        0x7e => (32, 32, Eight(Fp8), Eight(Bf8)),
        0x7f => (32, 32, Eight(Fp8), Eight(Fp8)),
        _ => return None,
    };
    Some(Shape {
        rows,
        depth,
        left,
        right,
    })
}

/// The operation with this opcode.
pub(super) fn handler(opcode: u32) -> Option<Handler> {
    shape(opcode as u16).map(|_| multiply as Handler)
}

/// Properties of an operation that hardware counters depend on.
pub(super) fn kind(opcode: u16) -> Option<Matrix> {
    let shape = shape(opcode)?;
    let element = match shape.left {
        Element::Half => MatrixElement::F16,
        Element::Bf16 => MatrixElement::Bf16,
        Element::Byte => MatrixElement::I8,
        Element::Eight(_) => MatrixElement::F8,
    };
    Some(Matrix {
        element,
        operations: (2 * shape.rows * shape.rows * shape.depth) as u32,
        cycles: if shape.rows == 32 { 32 } else { 16 },
    })
}

/// Element `n` in the registers of a lane.
fn number(element: Element, registers: &[Lanes], lane: usize, n: usize) -> f32 {
    let half = |n: usize| (registers[n / 2][lane] >> (16 * (n % 2))) as u16;
    let byte = |n: usize| (registers[n / 4][lane] >> (8 * (n % 4))) as u8;
    match element {
        Element::Half => f16_to_f32(half(n)),
        Element::Bf16 => f32::from_bits(u32::from(half(n)) << 16),
        Element::Byte => f32::from(byte(n) as i8),
        Element::Eight(format) => decode(format, byte(n)),
    }
}

fn multiply(x: &mut Exec<'_>, i: &Inst) {
    let Some(shape) = shape(i.opcode) else {
        return unknown_instruction(x, i);
    };
    let rows = shape.rows;
    let left: [Lanes; 2] = std::array::from_fn(|n| *x.vgpr(i.src[0] + n as u16));
    let right: [Lanes; 4] = std::array::from_fn(|n| *x.vgpr(i.src[1] + n as u16));
    let places = *x.vgpr(i.src[2]);
    // Number of elements of A in a lane. There are twice as many of B.
    let per_lane = shape.depth / 2 * rows / 64;
    // The register has positions for several operations. cbsz and abid select the set.
    let set = if i.op_sel != 0 {
        0
    } else {
        usize::from(i.op_sel_hi)
    };
    let shift = (2 * per_lane * set) % 32;
    let results = rows * rows / 64;
    let mut out = vec![[0; 64]; results];
    for (result, out) in out.iter_mut().enumerate() {
        let old = *x.vgpr(i.dst + result as u16);
        for lane in 0..64 {
            let (row, column) = match rows {
                32 => (8 * (result / 4) + 4 * (lane / 32) + result % 4, lane % 32),
                _ => (4 * (lane / 16) + result, lane % 16),
            };
            let (mut sum, mut whole) = (f32::from_bits(old[lane]), old[lane] as i32);
            for present in 0..shape.depth / 2 {
                let (from, n) = (row + rows * (present / per_lane), present % per_lane);
                let place = places[from] >> shift >> (2 * n) & 3;
                // Depth of the element, and its position in B.
                let depth = present / 2 * 4 + place as usize;
                let (to, m) = (
                    column + rows * (depth / (2 * per_lane)),
                    depth % (2 * per_lane),
                );
                let a = number(shape.left, &left, from, n);
                let b = number(shape.right, &right, to, m);
                if shape.left == Element::Byte {
                    whole = whole.wrapping_add(a as i32 * b as i32);
                } else {
                    sum = a.mul_add(b, sum);
                }
            }
            out[lane] = if shape.left == Element::Byte {
                whole as u32
            } else {
                sum.to_bits()
            };
        }
    }
    for (n, out) in out.iter().enumerate() {
        *x.vgpr_mut(i.dst + n as u16) = *out;
    }
    x.stats.valu_lanes += 64;
}
