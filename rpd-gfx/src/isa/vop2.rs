//! VOP2: vector operations of two sources.

use super::exec::Exec;
use super::float::{fma16, max32, max64, min32, min64};
use super::host::for_each_level;
use super::inst::{CLAMP, Format, Handler, Inst, LITERAL};
use super::lanewise::{double3, float2, float3, fma32, half2, half3, int2, int3, short2};
use super::operand::{ModifierKind, buffers};
use super::vop3p;

for_each_level! {
    /// The operation with this opcode.
    pub(super) fn handler(opcode: u32) -> Option<Handler> {
        let handler: Handler = match opcode {
            // `v_cndmask`: a mask selects the lanes of the second source. Its sources may be negated like numbers.
            0x00 => |x, i| {
                let mask = x.carry_in(i);
                let kind = if i.neg | i.abs != 0 {
                    ModifierKind::F32
                } else {
                    ModifierKind::Int
                };
                let mut out;
                {
                    let [mut ba, mut bb] = buffers();
                    out = *x.src(i, 0, kind, &mut ba);
                    let b = x.src(i, 1, kind, &mut bb);
                    super::operand::blend(&mut out, b, mask);
                }
                x.write(i, &out);
            },
            0x01 => |x, i| float2(x, i, |a, b| a + b),
            0x02 => |x, i| float2(x, i, |a, b| a - b),
            // `*rev` operations have their sources in the other order, because only the first one can be a constant.
            0x03 => |x, i| float2(x, i, |a, b| b - a),
            // `v_fmac_f64` adds to its destination, which the decoder has made the third source.
            0x04 => |x, i| double3(x, i, f64::mul_add),
            0x05 => |x, i| float2(x, i, |a, b| a * b),
            // 24-bit multiplications: only the low 24 bits of the sources count.
            0x06 => |x, i| int2(x, i, |a, b| signed24(a).wrapping_mul(signed24(b)) as u32),
            0x07 => |x, i| {
                int2(x, i, |a, b| {
                    ((i64::from(signed24(a)) * i64::from(signed24(b))) >> 32) as u32
                })
            },
            0x08 => |x, i| int2(x, i, |a, b| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)),
            0x09 => |x, i| {
                int2(x, i, |a, b| {
                    ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 32) as u32
                })
            },
            0x0a => |x, i| float2(x, i, min32),
            0x0b => |x, i| float2(x, i, max32),
            0x0c => |x, i| int2(x, i, |a, b| (a as i32).min(b as i32) as u32),
            0x0d => |x, i| int2(x, i, |a, b| (a as i32).max(b as i32) as u32),
            0x0e => |x, i| int2(x, i, u32::min),
            0x0f => |x, i| int2(x, i, u32::max),
            // Shifts use as many bits of the distance as the width has.
            0x10 => |x, i| int2(x, i, |a, b| b >> (a & 31)),
            0x11 => |x, i| int2(x, i, |a, b| (b as i32 >> (a & 31)) as u32),
            0x12 => |x, i| int2(x, i, |a, b| b << (a & 31)),
            0x13 => |x, i| int2(x, i, |a, b| a & b),
            0x14 => |x, i| int2(x, i, |a, b| a | b),
            0x15 => |x, i| int2(x, i, |a, b| a ^ b),
            // `v_mac`, `v_madmk` and `v_madak`: not fused, so that the product is rounded.
            0x16..=0x18 => |x, i| float3(x, i, |a, b, c| a * b + c),
            0x19 => |x, i| carry(x, i, |a, b, _| a.overflowing_add(b)),
            0x1a => |x, i| carry(x, i, |a, b, _| a.overflowing_sub(b)),
            0x1b => |x, i| carry(x, i, |a, b, _| b.overflowing_sub(a)),
            // With carry in.
            0x1c => |x, i| carry(x, i, |a, b, c| a.carrying_add(b, c)),
            0x1d => |x, i| carry(x, i, |a, b, c| a.borrowing_sub(b, c)),
            0x1e => |x, i| carry(x, i, |a, b, c| b.borrowing_sub(a, c)),
            0x1f => |x, i| half2(x, i, |a, b| a + b),
            0x20 => |x, i| half2(x, i, |a, b| a - b),
            0x21 => |x, i| half2(x, i, |a, b| b - a),
            0x22 => |x, i| half2(x, i, |a, b| a * b),
            // `v_mac`, `v_madmk`, `v_madak` of half precision: computed exactly and rounded once.
            0x23..=0x25 => |x, i| half3(x, i, fma16),
            // Integers saturate if `clamp` is set.
            0x26 => |x, i| saturating16(x, i, u16::wrapping_add, u16::saturating_add),
            0x27 => |x, i| saturating16(x, i, u16::wrapping_sub, u16::saturating_sub),
            0x28 => |x, i| saturating16(x, i, |a, b| b.wrapping_sub(a), |a, b| b.saturating_sub(a)),
            0x29 => |x, i| short2(x, i, u16::wrapping_mul),
            0x2a => |x, i| short2(x, i, |a, b| b << (a & 15)),
            0x2b => |x, i| short2(x, i, |a, b| b >> (a & 15)),
            0x2c => |x, i| short2(x, i, |a, b| (b as i16 >> (a & 15)) as u16),
            0x2d => |x, i| half2(x, i, max64),
            0x2e => |x, i| half2(x, i, min64),
            0x2f => |x, i| short2(x, i, u16::max),
            0x30 => |x, i| short2(x, i, |a, b| (a as i16).max(b as i16) as u16),
            0x31 => |x, i| short2(x, i, u16::min),
            0x32 => |x, i| short2(x, i, |a, b| (a as i16).min(b as i16) as u16),
            0x33 => |x, i| ldexp16(x, i),
            0x34 => |x, i| saturating32(x, i, u32::wrapping_add, u32::saturating_add),
            0x35 => |x, i| saturating32(x, i, u32::wrapping_sub, u32::saturating_sub),
            0x36 => |x, i| saturating32(x, i, |a, b| b.wrapping_sub(a), |a, b| b.saturating_sub(a)),
            // Dot products that add to their destination.
            0x37 => |x, i| vop3p::dot2_f32_f16(x, i),
            0x38 => |x, i| int3(x, i, |a, b, c| vop3p::dot::<16, true>(a, b, c, false)),
            0x39 => |x, i| int3(x, i, |a, b, c| vop3p::dot::<8, true>(a, b, c, false)),
            0x3a => |x, i| int3(x, i, |a, b, c| vop3p::dot::<4, true>(a, b, c, false)),
            0x3b => |x, i| fma32(x, i),
            0x3c => |x, i| vop3p::packed_fmac(x, i),
            0x3d => |x, i| int2(x, i, |a, b| !(a ^ b)),
            _ => return None,
        };
        Some(handler)
    }
}

/// Whether an instruction is always followed by a literal (`v_madmk`, `v_madak`).
pub(super) fn takes_literal(opcode: u32) -> bool {
    matches!(opcode, 0x17 | 0x18 | 0x24 | 0x25)
}

/// Moves the literal of `v_madmk` and `v_madak` to the operand for which it stands.
pub(super) fn place_literal(i: &mut Inst) {
    if matches!(i.opcode, 0x17 | 0x24) {
        i.src[2] = i.src[1];
        i.src[1] = LITERAL;
    } else {
        i.src[2] = LITERAL;
    }
}

/// The low 24 bits of a number, sign-extended.
pub(super) fn signed24(a: u32) -> i32 {
    (a << 8) as i32 >> 8
}

/// Executes additions and subtractions with carry.
#[inline(always)]
fn carry(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32, bool) -> (u32, bool)) {
    let carry_in = x.carry_in(i);
    let mut out = [0; 64];
    let mut bits = [0; 64];
    {
        let [mut ba, mut bb] = buffers();
        let a = x.src(i, 0, ModifierKind::Int, &mut ba);
        let b = x.src(i, 1, ModifierKind::Int, &mut bb);
        for l in 0..64 {
            let (sum, carry) = f(a[l], b[l], carry_in >> l & 1 != 0);
            out[l] = sum;
            bits[l] = u8::from(carry);
        }
    }
    if i.has(CLAMP) {
        // Saturation: the greatest number for additions, 0 for subtractions.
        let top = if matches!(i.opcode & 0xff, 0x19 | 0x1c) {
            u32::MAX
        } else {
            0
        };
        for l in 0..64 {
            if bits[l] != 0 {
                out[l] = top;
            }
        }
    }
    let carry_out = super::operand::pack_bits(&bits);
    x.write(i, &out);
    x.write_lane_mask(i, carry_out);
}

#[inline(always)]
fn saturating32(
    x: &mut Exec<'_>,
    i: &Inst,
    wrap: impl Fn(u32, u32) -> u32,
    clamp: impl Fn(u32, u32) -> u32,
) {
    if i.has(CLAMP) {
        int2(x, i, clamp);
    } else {
        int2(x, i, wrap);
    }
}

#[inline(always)]
fn saturating16(
    x: &mut Exec<'_>,
    i: &Inst,
    wrap: impl Fn(u16, u16) -> u16,
    clamp: impl Fn(u16, u16) -> u16,
) {
    if i.has(CLAMP) {
        short2(x, i, clamp);
    } else {
        short2(x, i, wrap);
    }
}

#[inline(always)]
fn ldexp16(x: &mut Exec<'_>, i: &Inst) {
    use super::float::{f16_to_f32, f64_to_f16, ldexp64};
    let mut out = [0; 64];
    {
        let [mut ba, mut bb] = buffers();
        let a = x.src(i, 0, ModifierKind::F16, &mut ba);
        let b = x.src(i, 1, ModifierKind::I16, &mut bb);
        for l in 0..64 {
            let value = ldexp64(
                f64::from(f16_to_f32(a[l] as u16)),
                i32::from(b[l] as u16 as i16),
            );
            out[l] = u32::from(f64_to_f16(value));
        }
    }
    x.write_f16(i, &mut out);
}

/// Whether the VOP3 form of this operation has a scalar destination (VOP3B).
pub(super) fn has_scalar_result(opcode: u32) -> bool {
    (0x19..=0x1e).contains(&opcode)
}

/// In the VOP3 form of an operation that adds to its destination, sets the implied third source.
pub(super) fn place_accumulator(i: &mut Inst) {
    if i.format == Format::Vop3 && matches!(i.opcode & 0xff, 0x04 | 0x16 | 0x23 | 0x37..=0x3c) {
        i.src[2] = i.dst;
    }
}
