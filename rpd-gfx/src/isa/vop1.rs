//! VOP1: vector operations of one source.

use super::exec::Exec;
use super::float::{f16_to_f32, f64_to_f16, fract64, frexp64};
use super::host::for_each_level;
use super::inst::{Handler, Inst};
use super::lanes::Lanes;
use super::lanewise::{double1, float1, float1_slow, half1, int1};
use super::operand::{ModifierKind, buffers, halves};

const TURN: f64 = std::f64::consts::TAU;

for_each_level! {
    /// The operation with this opcode.
    pub(super) fn handler(opcode: u32) -> Option<Handler> {
        let handler: Handler = match opcode {
            0x00 => |_, _| {},
            0x01 => |x, i| mov(x, i),
            // `v_readfirstlane`: without active lanes, lane 0.
            0x02 => |x, i| {
                let lane = x.first_lane();
                let value = if i.src[0] >= 256 {
                    x.vgpr(i.src[0])[lane]
                } else {
                    x.s32(i.src[0], i.literal)
                };
                x.set(i.dst, value);
            },
            // Casts saturate and turn NaN into 0, as the conversions of the hardware do.
            0x03 => |x, i| from64(x, i, |a| a as i32 as u32),
            0x04 => |x, i| to64(x, i, ModifierKind::Int, |a| f64::from(a as i32)),
            0x05 => |x, i| int_to_float(x, i, |a| a as i32 as f32),
            0x06 => |x, i| int_to_float(x, i, |a| a as f32),
            0x07 => |x, i| float_to_int(x, i, |a| a as u32),
            0x08 => |x, i| float_to_int(x, i, |a| a as i32 as u32),
            // Rounded to nearest by way of double precision, which is exact.
            0x0a => |x, i| {
                let mut out = [0; 64];
                {
                    let [mut buf] = buffers();
                    let a = x.src(i, 0, ModifierKind::F32, &mut buf);
                    for l in 0..64 {
                        out[l] = u32::from(f64_to_f16(f64::from(f32::from_bits(a[l]))));
                    }
                }
                x.write_f16(i, &mut out);
            },
            0x0b => |x, i| {
                let mut out = [0; 64];
                {
                    let [mut buf] = buffers();
                    let a = x.src(i, 0, ModifierKind::F16, &mut buf);
                    for l in 0..64 {
                        out[l] = f16_to_f32(a[l] as u16).to_bits();
                    }
                }
                x.write_f32(i, &mut out);
            },
            // Rounds half up, in double precision, because adding 0.5 to a large odd number would round.
            0x0c => |x, i| float_to_int(x, i, |a| (f64::from(a) + 0.5).floor() as i32 as u32),
            0x0d => |x, i| float_to_int(x, i, |a| a.floor() as i32 as u32),
            // A signed number of four bits, in units of a sixteenth.
            0x0e => |x, i| int_to_float(x, i, |a| ((a << 28) as i32 >> 28) as f32 / 16.0),
            0x0f => |x, i| {
                from64(x, i, |a| (a as f32).to_bits());
            },
            0x10 => |x, i| to64(x, i, ModifierKind::F32, |a| f64::from(f32::from_bits(a))),
            0x11 => |x, i| int_to_float(x, i, |a| (a & 0xff) as f32),
            0x12 => |x, i| int_to_float(x, i, |a| (a >> 8 & 0xff) as f32),
            0x13 => |x, i| int_to_float(x, i, |a| (a >> 16 & 0xff) as f32),
            0x14 => |x, i| int_to_float(x, i, |a| (a >> 24) as f32),
            0x15 => |x, i| from64(x, i, |a| a as u32),
            0x16 => |x, i| to64(x, i, ModifierKind::Int, f64::from),
            0x17 => |x, i| double1(x, i, f64::trunc),
            0x18 => |x, i| double1(x, i, f64::ceil),
            0x19 => |x, i| double1(x, i, f64::round_ties_even),
            0x1a => |x, i| double1(x, i, f64::floor),
            // The largest number below 1: the subtraction may round to 1.
            0x1b => |x, i| float1(x, i, |a| (a - a.floor()).min(f32::from_bits(0x3f7f_ffff))),
            0x1c => |x, i| float1(x, i, f32::trunc),
            0x1d => |x, i| float1(x, i, f32::ceil),
            0x1e => |x, i| float1(x, i, f32::round_ties_even),
            0x1f => |x, i| float1(x, i, f32::floor),
            // Computed in double precision, so that the result is rounded correctly in nearly all cases.
            0x20 | 0x4b => |x, i| float1_slow(x, i, |a| f64::from(a).exp2() as f32),
            0x21 | 0x4c => |x, i| float1_slow(x, i, |a| f64::from(a).log2() as f32),
            0x22 | 0x23 => |x, i| float1(x, i, |a| 1.0 / a),
            0x24 => |x, i| float1(x, i, |a| (1.0 / f64::from(a).sqrt()) as f32),
            0x25 => |x, i| double1(x, i, |a| 1.0 / a),
            0x26 => |x, i| double1(x, i, |a| 1.0 / a.sqrt()),
            0x27 => |x, i| float1(x, i, f32::sqrt),
            0x28 => |x, i| double1(x, i, f64::sqrt),
            // Angles are in turns.
            0x29 => |x, i| float1_slow(x, i, |a| (fract64(f64::from(a)) * TURN).sin() as f32),
            0x2a => |x, i| float1_slow(x, i, |a| (fract64(f64::from(a)) * TURN).cos() as f32),
            0x2b => |x, i| int1(x, i, |a| !a),
            0x2c => |x, i| int1(x, i, u32::reverse_bits),
            // -1 for no bit.
            0x2d => |x, i| int1(x, i, |a| if a == 0 { u32::MAX } else { a.leading_zeros() }),
            0x2e => |x, i| int1(x, i, |a| if a == 0 { u32::MAX } else { a.trailing_zeros() }),
            0x2f => |x, i| int1(x, i, sign_change),
            0x30 => |x, i| from64(x, i, |a| frexp64(a).1 as u32),
            0x31 => |x, i| double1(x, i, |a| frexp64(a).0),
            0x32 => |x, i| double1(x, i, fract64),
            0x33 => |x, i| float_to_int(x, i, |a| frexp64(f64::from(a)).1 as u32),
            0x34 => |x, i| float1(x, i, |a| frexp64(f64::from(a)).0 as f32),
            // `v_clrexcp`: exceptions are not recorded.
            0x35 => |_, _| {},
            0x39 => |x, i| short_to_half(x, i, f64::from),
            0x3a => |x, i| short_to_half(x, i, |a| f64::from(a as i16)),
            0x3b => |x, i| half_to_short(x, i, |a| a as u16),
            0x3c => |x, i| half_to_short(x, i, |a| a as i16 as u16),
            0x3d => |x, i| half1(x, i, |a| 1.0 / a),
            0x3e => |x, i| half1(x, i, f64::sqrt),
            0x3f => |x, i| half1(x, i, |a| 1.0 / a.sqrt()),
            0x40 => |x, i| half1(x, i, f64::log2),
            0x41 => |x, i| half1(x, i, f64::exp2),
            0x42 => |x, i| half1(x, i, |a| frexp64(a).0),
            0x43 => |x, i| half_to_short(x, i, |a| frexp64(a).1 as u16),
            0x44 => |x, i| half1(x, i, f64::floor),
            0x45 => |x, i| half1(x, i, f64::ceil),
            0x46 => |x, i| half1(x, i, f64::trunc),
            0x47 => |x, i| half1(x, i, f64::round_ties_even),
            0x48 => |x, i| half1(x, i, |a| (a - a.floor()).min(1.0 - 1.0 / 2048.0)),
            0x49 => |x, i| half1(x, i, |a| (fract64(a) * TURN).sin()),
            0x4a => |x, i| half1(x, i, |a| (fract64(a) * TURN).cos()),
            // Normalised integers.
            0x4d => |x, i| {
                half_to_short(x, i, |a| {
                    (a.clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16
                })
            },
            0x4e => |x, i| {
                half_to_short(x, i, |a| {
                    (a.clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16
                })
            },
            0x4f => |x, i| {
                int1(x, i, |a| {
                    let byte = |v: u32| u32::from((v as u16 as i16).clamp(0, 255) as u8);
                    byte(a) | byte(a >> 16) << 8
                })
            },
            // `v_swap`: both registers are written.
            0x51 => |x, i| {
                let (a, b) = (*x.vgpr(i.src[0]), *x.vgpr(i.dst));
                x.write(i, &a);
                let mask = x.exec();
                super::operand::blend(x.vgpr_mut(i.src[0]), &b, mask);
            },
            0x52 => |x, i| mov(x, i),
            _ => return None,
        };
        Some(handler)
    }
}

#[inline(always)]
fn mov(x: &mut Exec<'_>, i: &Inst) {
    // The only integer operation of VOP1 whose source may be negated, in the DPP and SDWA forms.
    let kind = if i.neg | i.abs != 0 {
        ModifierKind::F32
    } else {
        ModifierKind::Int
    };
    let [mut buf] = buffers();
    let out = *x.src(i, 0, kind, &mut buf);
    x.write(i, &out);
}

/// Number of leading bits that equal the sign; -1 when all do.
fn sign_change(a: u32) -> u32 {
    let folded = a ^ ((a as i32) >> 31) as u32;
    if folded == 0 {
        u32::MAX
    } else {
        folded.leading_zeros()
    }
}

#[inline(always)]
fn int_to_float(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32) -> f32) {
    let mut out = [0; 64];
    {
        let [mut buf] = buffers();
        let a = x.src(i, 0, ModifierKind::Int, &mut buf);
        for l in 0..64 {
            out[l] = f(a[l]).to_bits();
        }
    }
    x.write_f32(i, &mut out);
}

#[inline(always)]
fn float_to_int(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f32) -> u32) {
    let mut out = [0; 64];
    {
        let [mut buf] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut buf);
        for l in 0..64 {
            out[l] = f(f32::from_bits(a[l]));
        }
    }
    x.write(i, &out);
}

/// Converts 64-bit numbers to 32-bit results.
#[inline(always)]
fn narrowed(x: &Exec<'_>, i: &Inst, f: impl Fn(f64) -> u32) -> Lanes {
    let mut buf = buffers();
    let a = x.src_pair(i, 0, true, &mut buf);
    let mut out = [0; 64];
    for (l, out) in out.iter_mut().enumerate() {
        *out = f(a.number(l));
    }
    out
}

#[inline(always)]
fn from64(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f64) -> u32) {
    let out = narrowed(x, i, f);
    x.write(i, &out);
}

#[inline(always)]
fn to64(x: &mut Exec<'_>, i: &Inst, kind: ModifierKind, f: impl Fn(u32) -> f64) {
    let mut out = {
        let [mut buf] = buffers();
        let a = x.src(i, 0, kind, &mut buf);
        halves(|l| f(a[l]).to_bits())
    };
    x.write_f64(i, &mut out);
}

#[inline(always)]
fn short_to_half(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u16) -> f64) {
    let mut out = [0; 64];
    {
        let [mut buf] = buffers();
        let a = x.src(i, 0, ModifierKind::I16, &mut buf);
        for l in 0..64 {
            out[l] = u32::from(f64_to_f16(f(a[l] as u16)));
        }
    }
    x.write_f16(i, &mut out);
}

#[inline(always)]
fn half_to_short(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f64) -> u16) {
    let mut out = [0; 64];
    {
        let [mut buf] = buffers();
        let a = x.src(i, 0, ModifierKind::F16, &mut buf);
        for l in 0..64 {
            out[l] = u32::from(f(f64::from(f16_to_f32(a[l] as u16))));
        }
    }
    x.write16(i, &mut out);
}
