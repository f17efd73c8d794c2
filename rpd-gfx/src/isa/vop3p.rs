//! VOP3P: packed operations, dot products, and accumulation registers.

use super::exec::Exec;
use super::float::{add_odd, f16_to_f32, f64_to_f16, fma16, max64, min64};
use super::host::for_each_level;
use super::inst::{AGPR, CLAMP, Format, Handler, Inst, LITERAL, VGPR};
use super::lanes::{Lanes, Lanes64};
use super::operand::{ModifierKind, blend, buffers};
use super::{Class, InstructionSet};

/// Decodes a VOP3P instruction.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let [w, v, _] = words;
    let opcode = w >> 16 & 0x7f;
    let Some(run) = handler(opcode) else {
        return Inst::unknown(Format::Vop3p, opcode);
    };
    // From here on the encoding has matrix fields in place of modifiers for halves.
    if opcode >= 0x40 {
        let moves = matches!(opcode, 0x58 | 0x59);
        let class = if moves { Class::Valu } else { Class::Mfma };
        let i = matrix_operands(words, opcode, run, class);
        // A field that the operation does not have would be ignored silently.
        if !super::mfma::is_valid(&i) {
            return Inst::unknown(Format::Vop3p, opcode);
        }
        return i;
    }
    let class = Class::Valu;
    let mut i = Inst::new(run, Format::Vop3p, class, opcode, 2);
    i.dst = (w & 0xff) as u16 + VGPR;
    for n in 0..3 {
        i.src[n] = (v >> (9 * n) & 0x1ff) as u16;
    }
    i.op_sel = (w >> 11 & 7) as u8;
    i.op_sel_hi = (v >> 27 & 3 | w >> 12 & 4) as u8;
    i.abs = (w >> 8 & 7) as u8;
    i.neg = (v >> 29) as u8;
    if w >> 15 & 1 != 0 {
        i.flags |= CLAMP;
    }
    i
}

/// Decodes the operands of a matrix instruction, or of a move from or to accumulation registers.
pub(super) fn matrix_operands(words: [u32; 3], opcode: u32, run: Handler, class: Class) -> Inst {
    let [w, v, _] = words;
    let mut i = Inst::new(run, Format::Vop3p, class, opcode, 2);
    i.dst = (w & 0xff) as u16 + VGPR;
    for n in 0..3 {
        i.src[n] = (v >> (9 * n) & 0x1ff) as u16;
    }
    // Two bits of the encoding select accumulation registers for A and B, one bit for C and D together.
    for n in 0..2 {
        if v >> (27 + n) & 1 != 0 && i.src[n] >= VGPR && class == Class::Mfma {
            i.src[n] += AGPR - VGPR;
        }
    }
    // `v_accvgpr_write` has no bit for its destination, which is always an accumulation register; `v_accvgpr_read` none
    // for its source.
    if opcode == 0x59 || opcode != 0x58 && w >> 15 & 1 != 0 {
        i.dst += AGPR - VGPR;
        if i.src[2] >= VGPR {
            i.src[2] += AGPR - VGPR;
        }
    }
    if opcode == 0x58 && i.src[0] < AGPR {
        i.src[0] += AGPR - VGPR;
    }
    // cbsz, abid and blgp.
    i.op_sel = (w >> 8 & 7) as u8;
    i.op_sel_hi = (w >> 11 & 15) as u8;
    i.neg = (v >> 29) as u8;
    i
}

for_each_level! {
    fn handler(opcode: u32) -> Option<Handler> {
        let handler: Handler = match opcode {
            // One handler for signed and unsigned, told apart by the opcode at run time: both are rare.
            0x00 | 0x09 => |x, i| {
                short(x, i, |a, b, c| {
                    let wide = |v: u16| {
                        if i.opcode == 0 {
                            i64::from(v as i16)
                        } else {
                            i64::from(v)
                        }
                    };
                    clamp16(i, wide(a) * wide(b) + wide(c), i.opcode == 0)
                })
            },
            0x01 => |x, i| short(x, i, |a, b, _| a.wrapping_mul(b)),
            0x02 => |x, i| {
                short(x, i, |a, b, _| {
                    clamp16(i, i64::from(a as i16) + i64::from(b as i16), true)
                })
            },
            0x03 => |x, i| {
                short(x, i, |a, b, _| {
                    clamp16(i, i64::from(a as i16) - i64::from(b as i16), true)
                })
            },
            0x04 => |x, i| short(x, i, |a, b, _| b << (a & 15)),
            0x05 => |x, i| short(x, i, |a, b, _| b >> (a & 15)),
            0x06 => |x, i| short(x, i, |a, b, _| (b as i16 >> (a & 15)) as u16),
            0x07 => |x, i| short(x, i, |a, b, _| (a as i16).max(b as i16) as u16),
            0x08 => |x, i| short(x, i, |a, b, _| (a as i16).min(b as i16) as u16),
            0x0a => |x, i| {
                short(x, i, |a, b, _| {
                    clamp16(i, i64::from(a) + i64::from(b), false)
                })
            },
            0x0b => |x, i| {
                short(x, i, |a, b, _| {
                    clamp16(i, i64::from(a) - i64::from(b), false)
                })
            },
            0x0c => |x, i| short(x, i, |a, b, _| a.max(b)),
            0x0d => |x, i| short(x, i, |a, b, _| a.min(b)),
            0x0e => |x, i| half(x, i, fma16),
            0x0f => |x, i| half(x, i, |a, b, _| a + b),
            0x10 => |x, i| half(x, i, |a, b, _| a * b),
            0x11 => |x, i| half(x, i, |a, b, _| min64(a, b)),
            0x12 => |x, i| half(x, i, |a, b, _| max64(a, b)),
            // Mixed precision: each source is single or half.
            0x20 => |x, i| {
                let mut out = mixed(x, i).map(|v| (v as f32).to_bits());
                clamp_f32(i, &mut out);
                x.write(i, &out);
            },
            0x21 => |x, i| mixed_half(x, i, 0),
            0x22 => |x, i| mixed_half(x, i, 16),
            0x23 => |x, i| dot2_f32_f16_packed(x, i),
            0x26 => |x, i| int_dot::<16, true>(x, i),
            0x27 => |x, i| int_dot::<16, false>(x, i),
            0x28 => |x, i| int_dot::<8, true>(x, i),
            0x29 => |x, i| int_dot::<8, false>(x, i),
            0x2a => |x, i| int_dot::<4, true>(x, i),
            0x2b => |x, i| int_dot::<4, false>(x, i),
            // Two single-precision operations in register pairs.
            0x30 => |x, i| packed_fma32(x, i),
            0x31 => |x, i| single(x, i, |a, b| a * b),
            0x32 => |x, i| single(x, i, |a, b| a + b),
            0x33 => |x, i| packed_mov(x, i),
            0x58 | 0x59 => |x, i| {
                let [mut buf] = buffers();
                let out = *x.src(i, 0, ModifierKind::Int, &mut buf);
                x.write(i, &out);
            },
            0x40..=0x6f => return super::mfma::handler(opcode, InstructionSet::Gfx90a),
            _ => return None,
        };
        Some(handler)
    }
}

/// A packed source: register or constant in all lanes, before halves are selected.
#[inline(always)]
fn packed(x: &Exec<'_>, i: &Inst, n: usize, float: bool) -> Lanes {
    let code = i.src[n];
    if code >= VGPR {
        *x.vgpr(code)
    } else if float && (240..=248).contains(&code) {
        // For packed half-precision operations, inline constants are half-precision numbers.
        let single = f32::from_bits(x.s32(code, 0));
        [u32::from(f64_to_f16(f64::from(single))); 64]
    } else {
        [x.s32(code, 0); 64]
    }
}

/// Number of bits by which to shift source `n` right, so that the half for the low or high result is in the low bits.
fn half_of(i: &Inst, n: usize, high: bool) -> u32 {
    let select = if high { i.op_sel_hi } else { i.op_sel };
    16 * u32::from(select >> n & 1)
}

#[inline(always)]
fn short(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u16, u16, u16) -> u16) {
    let s = [0, 1, 2].map(|n| packed(x, i, n, false));
    let mut out = [0; 64];
    for high in [false, true] {
        let shift = [0, 1, 2].map(|n| half_of(i, n, high));
        for l in 0..64 {
            let v = |n: usize| (s[n][l] >> shift[n]) as u16;
            out[l] |= u32::from(f(v(0), v(1), v(2))) << (16 * u32::from(high));
        }
    }
    x.write(i, &out);
}

#[inline(always)]
fn clamp16(i: &Inst, value: i64, signed: bool) -> u16 {
    if !i.has(CLAMP) {
        value as u16
    } else if signed {
        value.clamp(-32768, 32767) as u16
    } else {
        value.clamp(0, 65535) as u16
    }
}

#[inline(always)]
fn half(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f64, f64, f64) -> f64) {
    let s = [0, 1, 2].map(|n| packed(x, i, n, true));
    let mut out = [0; 64];
    for high in [false, true] {
        let shift = [0, 1, 2].map(|n| half_of(i, n, high));
        let negate = if high { i.abs } else { i.neg };
        for l in 0..64 {
            let v = |n: usize| {
                let bits = (s[n][l] >> shift[n]) as u16 ^ u16::from(negate >> n & 1) << 15;
                f64::from(f16_to_f32(bits))
            };
            let mut value = f(v(0), v(1), v(2));
            if i.has(CLAMP) {
                value = clamp01(value);
            }
            out[l] |= u32::from(f64_to_f16(value)) << (16 * u32::from(high));
        }
    }
    x.write(i, &out);
}

#[inline(always)]
fn clamp01(v: f64) -> f64 {
    if v > 0.0 { v.min(1.0) } else { 0.0 }
}

#[inline(always)]
fn clamp_f32(i: &Inst, lanes: &mut Lanes) {
    if i.has(CLAMP) {
        for v in lanes {
            *v = (clamp01(f64::from(f32::from_bits(*v))) as f32).to_bits();
        }
    }
}

/// Source of `v_fma_mix`: single precision, or half precision where the bit of `op_sel_hi` is set.
#[inline(always)]
fn mixed(x: &Exec<'_>, i: &Inst) -> [f64; 64] {
    let source = |n: usize, l: usize, s: &Lanes| {
        let mut v = if i.op_sel_hi >> n & 1 != 0 {
            f16_to_f32((s[l] >> (16 * u32::from(i.op_sel >> n & 1))) as u16)
        } else {
            f32::from_bits(s[l])
        };
        if i.abs >> n & 1 != 0 {
            v = v.abs();
        }
        f64::from(if i.neg >> n & 1 != 0 { -v } else { v })
    };
    let s = [0, 1, 2].map(|n| packed(x, i, n, i.op_sel_hi >> n & 1 != 0));
    std::array::from_fn(|l| {
        let [a, b, c] = [0, 1, 2].map(|n| source(n, l, &s[n]));
        add_odd(a * b, c)
    })
}

#[inline(always)]
fn mixed_half(x: &mut Exec<'_>, i: &Inst, shift: u32) {
    let values = mixed(x, i);
    let old = *x.vgpr(i.dst);
    let out = std::array::from_fn(|l| {
        let v = if i.has(CLAMP) {
            clamp01(values[l])
        } else {
            values[l]
        };
        old[l] & !(0xffff << shift) | u32::from(f64_to_f16(v)) << shift
    });
    x.write(i, &out);
}

#[inline(always)]
fn dot2_f32(a: u32, b: u32, c: f32) -> f32 {
    let half = |v: u32| f64::from(f16_to_f32(v as u16));
    let products = half(a) * half(b) + half(a >> 16) * half(b >> 16);
    (products + f64::from(c)) as f32
}

#[inline(always)]
fn dot2_f32_f16_packed(x: &mut Exec<'_>, i: &Inst) {
    let s = [0, 1, 2].map(|n| packed(x, i, n, n < 2));
    let pick = |n: usize, l: usize| {
        let sign = u32::from(i.neg >> n & 1) << 15 | u32::from(i.abs >> n & 1) << 31;
        let v = s[n][l];
        (v >> half_of(i, n, false) & 0xffff | (v >> half_of(i, n, true) & 0xffff) << 16) ^ sign
    };
    let mut out = std::array::from_fn(|l| {
        dot2_f32(pick(0, l), pick(1, l), f32::from_bits(s[2][l])).to_bits()
    });
    clamp_f32(i, &mut out);
    x.write(i, &out);
}

/// `v_dot2c_f32_f16`, which adds to its destination.
#[inline(always)]
pub(super) fn dot2_f32_f16(x: &mut Exec<'_>, i: &Inst) {
    super::lanewise::int3(x, i, |a, b, c| dot2_f32(a, b, f32::from_bits(c)).to_bits());
}

/// Sum of the products of fields of `BITS` bits, plus `c`.
#[inline(always)]
pub(super) fn dot<const BITS: u32, const SIGNED: bool>(a: u32, b: u32, c: u32, clamp: bool) -> u32 {
    let field = |v: u32, n: u32| {
        let top = v << (32 - BITS - n);
        if SIGNED {
            i64::from(top as i32 >> (32 - BITS))
        } else {
            i64::from(top >> (32 - BITS))
        }
    };
    let mut sum = if SIGNED {
        i64::from(c as i32)
    } else {
        i64::from(c)
    };
    for n in (0..32).step_by(BITS as usize) {
        sum += field(a, n) * field(b, n);
    }
    match (clamp, SIGNED) {
        (false, _) => sum as u32,
        (true, true) => sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32,
        (true, false) => sum.clamp(0, i64::from(u32::MAX)) as u32,
    }
}

#[inline(always)]
fn int_dot<const BITS: u32, const SIGNED: bool>(x: &mut Exec<'_>, i: &Inst) {
    let s = [0, 1, 2].map(|n| packed(x, i, n, false));
    let clamp = i.has(CLAMP);
    let out = std::array::from_fn(|l| dot::<BITS, SIGNED>(s[0][l], s[1][l], s[2][l], clamp));
    x.write(i, &out);
}

/// `v_pk_fmac_f16`: a packed multiply-add, which adds to its destination.
#[inline(always)]
pub(super) fn packed_fmac(x: &mut Exec<'_>, i: &Inst) {
    let mut i = *i;
    i.op_sel = 0;
    i.op_sel_hi = 7;
    half(x, &i, fma16);
}

/// The dword of a 64-bit source that is used for the low or high result.
#[inline(always)]
fn dword(x: &Exec<'_>, i: &Inst, n: usize, high: bool) -> Lanes {
    let code = i.src[n];
    let select = if high { i.op_sel_hi } else { i.op_sel } >> n & 1;
    if code >= VGPR {
        *x.vgpr(code + u16::from(select))
    } else if code < 128 {
        [x.s32(code + u16::from(select), 0); 64]
    } else {
        debug_assert_ne!(code, LITERAL, "VOP3P has no literals");
        [x.s32(code, 0); 64]
    }
}

#[inline(always)]
fn single_source(x: &Exec<'_>, i: &Inst, n: usize, high: bool) -> Lanes {
    let mut lanes = dword(x, i, n, high);
    if if high { i.abs } else { i.neg } >> n & 1 != 0 {
        lanes.iter_mut().for_each(|v| *v ^= 1 << 31);
    }
    lanes
}

#[inline(always)]
fn write_pair(x: &mut Exec<'_>, i: &Inst, mut out: [Lanes; 2]) {
    x.count_lanes();
    let mask = x.exec();
    for lanes in &mut out {
        clamp_f32(i, lanes);
    }
    blend(x.vgpr_mut(i.dst), &out[0], mask);
    blend(x.vgpr_mut(i.dst + 1), &out[1], mask);
}

#[inline(always)]
fn single(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f32, f32) -> f32) {
    let out = [false, true].map(|high| {
        let a = single_source(x, i, 0, high);
        let b = single_source(x, i, 1, high);
        std::array::from_fn(|l| f(f32::from_bits(a[l]), f32::from_bits(b[l])).to_bits())
    });
    write_pair(x, i, out);
}

#[inline(always)]
fn packed_fma32(x: &mut Exec<'_>, i: &Inst) {
    let out = [false, true].map(|high| {
        let [a, b, c] = [0, 1, 2].map(|n| single_source(x, i, n, high));
        std::array::from_fn(|l| {
            let number = |lanes: &Lanes| f32::from_bits(lanes[l]);
            number(&a).mul_add(number(&b), number(&c)).to_bits()
        })
    });
    write_pair(x, i, out);
}

#[inline(always)]
fn packed_mov(x: &mut Exec<'_>, i: &Inst) {
    // The low result uses the first source, the high result the second; op_sel selects their dwords.
    let pick = |n: usize| {
        let code =
            i.src[n] + u16::from(i.op_sel >> n & 1 != 0 && (i.src[n] >= VGPR || i.src[n] < 128));
        if code >= VGPR {
            *x.vgpr(code)
        } else {
            [x.s32(code, 0); 64]
        }
    };
    let out: Lanes64 = {
        let (low, high) = (pick(0), pick(1));
        std::array::from_fn(|l| u64::from(low[l]) | u64::from(high[l]) << 32)
    };
    x.write64(i, &out);
}
