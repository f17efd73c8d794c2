//! VOP3: vector operations of three sources, and the long forms of VOP1, VOP2 and VOPC.

use super::division::{fixup, fixup32, fixup64, fmas32, fmas64, scale32, scale64};
use super::exec::Exec;
use super::float::{
    cube, f16_to_f32, f64_to_f16_rtz, fma16, ldexp64, max32, max64, med64, min32, min64,
    two_over_pi,
};
use super::host::for_each_level;
use super::inst::{CLAMP, Format, Handler, Inst, VGPR};
use super::lanewise::{double2, double3, float2, float3, fma32, half3, int2, int3, short2, short3};
use super::operand::{ModifierKind, buffers, halves, pack_bits};
use super::{Class, vop1, vop2, vopc};

/// Decodes a VOP3 instruction.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let [w, v, _] = words;
    let opcode = w >> 16 & 0x3ff;
    let handler = match opcode {
        // Operations without a long form: those with a literal, packed ones, reading the first lane, swaps and moves
        // of AGPRs.
        0x117 | 0x118 | 0x124 | 0x125 | 0x13c | 0x142 | 0x191 | 0x192 => None,
        0..=0xff => vopc::handler(opcode),
        0x100..=0x13f => vop2::handler(opcode - 0x100),
        0x140..=0x1bf => vop1::handler(opcode - 0x140),
        _ => handler(opcode),
    };
    let Some(run) = handler else {
        return Inst::unknown(Format::Vop3, opcode);
    };
    let mut i = Inst::new(run, Format::Vop3, Class::Valu, opcode, 2);
    for n in 0..3 {
        i.src[n] = (v >> (9 * n) & 0x1ff) as u16;
    }
    i.neg = (v >> 29) as u8;
    i.omod = (v >> 27 & 3) as u8;
    if w >> 15 & 1 != 0 {
        i.flags |= CLAMP;
    }
    // These have a scalar destination in the bits of the modifiers for sign and half.
    let scalar_result = matches!(opcode, 0x1e0 | 0x1e1 | 0x1e8 | 0x1e9)
        || (0x100..0x140).contains(&opcode) && vop2::has_scalar_result(opcode - 0x100);
    if opcode < 0x100 {
        i.sdst = (w & 0xff) as u16;
        i.abs = (w >> 8 & 7) as u8;
        i.op_sel = (w >> 11 & 15) as u8;
    } else if scalar_result {
        i.sdst = (w >> 8 & 0x7f) as u16;
    } else {
        i.abs = (w >> 8 & 7) as u8;
        i.op_sel = (w >> 11 & 15) as u8;
    }
    // v_readlane writes an SGPR.
    i.dst = (w & 0xff) as u16 + if opcode == 0x289 { 0 } else { VGPR };
    if (0x100..0x140).contains(&opcode) {
        vop2::place_accumulator(&mut i);
    }
    // One test instead of five, for the many instructions without modifiers.
    i.modified = i.neg | i.abs | i.op_sel | i.omod | (i.flags & CLAMP) != 0;
    i
}

for_each_level! {
    fn handler(opcode: u32) -> Option<Handler> {
        let handler: Handler = match opcode {
            // `v_mad_legacy`: 0 times anything is 0, even infinity or NaN.
            0x1c0 => |x, i| {
                float3(
                    x,
                    i,
                    |a, b, c| if a == 0.0 || b == 0.0 { c } else { a * b + c },
                )
            },
            0x1c1 => |x, i| float3(x, i, |a, b, c| a * b + c),
            0x1c2 => |x, i| {
                int3(x, i, |a, b, c| {
                    (vop2::signed24(a).wrapping_mul(vop2::signed24(b)) as u32).wrapping_add(c)
                })
            },
            0x1c3 => |x, i| {
                int3(x, i, |a, b, c| {
                    (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c)
                })
            },
            0x1c4 => |x, i| float3(x, i, |a, b, c| cube(a, b, c).0),
            0x1c5 => |x, i| float3(x, i, |a, b, c| cube(a, b, c).1),
            0x1c6 => |x, i| float3(x, i, |a, b, c| cube(a, b, c).2),
            0x1c7 => |x, i| float3(x, i, |a, b, c| cube(a, b, c).3),
            // Bit fields: a width of 0 yields 0.
            0x1c8 => |x, i| {
                int3(x, i, |a, b, c| {
                    let (shift, width) = (b & 31, c & 31);
                    a >> shift & ((1 << width) - 1)
                })
            },
            0x1c9 => |x, i| int3(x, i, bfe_i32),
            0x1ca => |x, i| int3(x, i, |a, b, c| a & b | !a & c),
            0x1cb => |x, i| fma32(x, i),
            0x1cc => |x, i| double3(x, i, f64::mul_add),
            0x1cd => |x, i| {
                int3(x, i, |a, b, c| {
                    let lane = |n: u32| ((a >> n & 0xff) + (b >> n & 0xff) + (c >> n & 1)) >> 1 << n;
                    lane(0) | lane(8) | lane(16) | lane(24)
                })
            },
            // `v_alignbit` and `v_alignbyte`: a window of the two registers.
            0x1ce => |x, i| int3(x, i, |a, b, c| (pair(a, b) >> (c & 31)) as u32),
            0x1cf => |x, i| int3(x, i, |a, b, c| (pair(a, b) >> (8 * (c & 3))) as u32),
            0x1d0 => |x, i| float3(x, i, |a, b, c| min32(min32(a, b), c)),
            0x1d1 => |x, i| {
                int3(x, i, |a, b, c| {
                    (a as i32).min(b as i32).min(c as i32) as u32
                })
            },
            0x1d2 => |x, i| int3(x, i, |a, b, c| a.min(b).min(c)),
            0x1d3 => |x, i| float3(x, i, |a, b, c| max32(max32(a, b), c)),
            0x1d4 => |x, i| {
                int3(x, i, |a, b, c| {
                    (a as i32).max(b as i32).max(c as i32) as u32
                })
            },
            0x1d5 => |x, i| int3(x, i, |a, b, c| a.max(b).max(c)),
            0x1d6 => |x, i| {
                float3(x, i, |a, b, c| {
                    med64(f64::from(a), f64::from(b), f64::from(c)) as f32
                })
            },
            // The median of integers is exact; that of numbers has rules for NaN.
            0x1d7 => |x, i| int3(x, i, |a, b, c| median(a as i32, b as i32, c as i32) as u32),
            0x1d8 => |x, i| int3(x, i, median),
            // Sums of absolute differences.
            0x1d9 => |x, i| int3(x, i, sad_u8),
            0x1da => |x, i| int3(x, i, |a, b, c| (sad_u8(a, b, 0) << 16).wrapping_add(c)),
            0x1db => |x, i| {
                int3(x, i, |a, b, c| {
                    (a & 0xffff)
                        .abs_diff(b & 0xffff)
                        .wrapping_add((a >> 16).abs_diff(b >> 16))
                        .wrapping_add(c)
                })
            },
            0x1dc => |x, i| int3(x, i, |a, b, c| a.abs_diff(b).wrapping_add(c)),
            0x1dd => |x, i| cvt_pk_u8(x, i),
            // Steps of a division, see `division`.
            0x1de => |x, i| fixup32(x, i),
            0x1df => |x, i| fixup64(x, i),
            0x1e0 => |x, i| scale32(x, i),
            0x1e1 => |x, i| scale64(x, i),
            0x1e2 => |x, i| fmas32(x, i),
            0x1e3 => |x, i| fmas64(x, i),
            0x1e4 => |x, i| int3(x, i, msad_u8),
            0x1e5 => |x, i| wide_sad(x, i, sad_u8),
            0x1e6 => |x, i| wide_sad(x, i, msad_u8),
            0x1e7 => |x, i| mqsad_u32(x, i),
            0x1e8 => |x, i| {
                mad64(x, i, |a, b, c| {
                    (u64::from(a) * u64::from(b)).overflowing_add(c)
                })
            },
            0x1e9 => |x, i| {
                mad64(x, i, |a, b, c| {
                    (i64::from(a as i32) * i64::from(b as i32))
                        .overflowing_add(c as i64)
                        .into_parts()
                })
            },
            // Old and new opcodes of the same operation.
            0x1ea | 0x203 | 0x1ee | 0x206 => |x, i| half3(x, i, fma16),
            0x1eb | 0x204 => |x, i| short3(x, i, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
            0x1ec | 0x205 => |x, i| short3(x, i, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
            0x1ed => |x, i| int3(x, i, perm),
            0x1ef | 0x207 => |x, i| {
                half3(x, i, |q, d, n| {
                    fixup(q, d, n, 1 << 20, 1 << 20)
                })
            },
            0x1f0 => |x, i| {
                // The other bytes of the destination are kept.
                let mut i = *i;
                i.src[2] = i.dst;
                cvt_pk_u8(x, &i);
            },
            0x1f1 => |x, i| mad_wide16(x, i, |a, b| u32::from(a) * u32::from(b)),
            0x1f2 => |x, i| {
                mad_wide16(x, i, |a, b| {
                    (i32::from(a as i16) * i32::from(b as i16)) as u32
                })
            },
            0x1f3 => |x, i| int3(x, i, |a, b, c| (a ^ b).wrapping_add(c)),
            0x1f4 => |x, i| half3(x, i, |a, b, c| min64(min64(a, b), c)),
            0x1f5 => |x, i| {
                short3(x, i, |a, b, c| {
                    (a as i16).min(b as i16).min(c as i16) as u16
                })
            },
            0x1f6 => |x, i| short3(x, i, |a, b, c| a.min(b).min(c)),
            0x1f7 => |x, i| half3(x, i, |a, b, c| max64(max64(a, b), c)),
            0x1f8 => |x, i| {
                short3(x, i, |a, b, c| {
                    (a as i16).max(b as i16).max(c as i16) as u16
                })
            },
            0x1f9 => |x, i| short3(x, i, |a, b, c| a.max(b).max(c)),
            0x1fa => |x, i| half3(x, i, med64),
            0x1fb => |x, i| short3(x, i, |a, b, c| median(a as i16, b as i16, c as i16) as u16),
            0x1fc => |x, i| short3(x, i, median),
            0x1fd => |x, i| int3(x, i, |a, b, c| (a << (b & 31)).wrapping_add(c)),
            0x1fe => |x, i| int3(x, i, |a, b, c| a.wrapping_add(b) << (c & 31)),
            0x1ff => |x, i| int3(x, i, |a, b, c| a.wrapping_add(b).wrapping_add(c)),
            0x200 => |x, i| int3(x, i, |a, b, c| a << (b & 31) | c),
            0x201 => |x, i| int3(x, i, |a, b, c| a & b | c),
            0x202 => |x, i| int3(x, i, |a, b, c| a | b | c),
            0x280 => |x, i| double2(x, i, |a, b| a + b),
            0x281 => |x, i| double2(x, i, |a, b| a * b),
            0x282 => |x, i| double2(x, i, min64),
            0x283 => |x, i| double2(x, i, max64),
            0x284 => |x, i| ldexp_f64(x, i),
            0x285 => |x, i| int2(x, i, u32::wrapping_mul),
            0x286 => |x, i| int2(x, i, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
            0x287 => |x, i| {
                int2(x, i, |a, b| {
                    ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
                })
            },
            0x288 => |x, i| ldexp_f32(x, i),
            // `v_readlane` and `v_writelane` work on lanes whether these are active or not.
            0x289 => |x, i| {
                let lane = (x.s32(i.src[1], 0) & 63) as usize;
                let value = if i.src[0] >= VGPR {
                    x.vgpr(i.src[0])[lane]
                } else {
                    x.s32(i.src[0], 0)
                };
                x.set(i.dst, value);
            },
            0x28a => |x, i| {
                let value = x.s32(i.src[0], 0);
                let lane = (x.s32(i.src[1], 0) & 63) as usize;
                x.vgpr_mut(i.dst)[lane] = value;
            },
            0x28b => |x, i| int2(x, i, |a, b| a.count_ones().wrapping_add(b)),
            // Counts of lanes below the own one, for the lower and the upper half of a wave.
            0x28c => |x, i| mbcnt(x, i, 0),
            0x28d => |x, i| mbcnt(x, i, 32),
            // The distance comes first, unlike in the scalar shifts.
            0x28f => |x, i| shift64(x, i, |a, n| a << n),
            0x290 => |x, i| shift64(x, i, |a, n| a >> n),
            0x291 => |x, i| shift64(x, i, |a, n| (a as i64 >> n) as u64),
            0x292 => |x, i| trig_preop(x, i),
            0x293 => |x, i| int2(x, i, |a, b| ((1 << (a & 31)) - 1) << (b & 31)),
            // Two numbers converted into one register.
            0x294 => |x, i| {
                pack_f32(x, i, |a| {
                    (norm(a, -1.0) * 32767.0).round_ties_even() as i16 as u16
                })
            },
            0x295 => |x, i| pack_f32(x, i, |a| (norm(a, 0.0) * 65535.0).round_ties_even() as u16),
            0x296 => |x, i| pack_f32(x, i, |a| f64_to_f16_rtz(f64::from(a))),
            0x297 => |x, i| int2(x, i, |a, b| a.min(0xffff) | b.min(0xffff) << 16),
            0x298 => |x, i| {
                int2(x, i, |a, b| {
                    let clamp = |v: u32| u32::from((v as i32).clamp(-32768, 32767) as i16 as u16);
                    clamp(a) | clamp(b) << 16
                })
            },
            0x299 => |x, i| {
                pack_f16(x, i, |a| {
                    (norm(a, -1.0) * 32767.0).round_ties_even() as i16 as u16
                })
            },
            0x29a => |x, i| pack_f16(x, i, |a| (norm(a, 0.0) * 65535.0).round_ties_even() as u16),
            0x29c => |x, i| {
                if i.has(CLAMP) {
                    int2(x, i, |a, b| (a as i32).saturating_add(b as i32) as u32);
                } else {
                    int2(x, i, u32::wrapping_add);
                }
            },
            0x29d => |x, i| {
                if i.has(CLAMP) {
                    int2(x, i, |a, b| (a as i32).saturating_sub(b as i32) as u32);
                } else {
                    int2(x, i, u32::wrapping_sub);
                }
            },
            0x29e => |x, i| {
                if i.has(CLAMP) {
                    short2(x, i, |a, b| (a as i16).saturating_add(b as i16) as u16);
                } else {
                    short2(x, i, u16::wrapping_add);
                }
            },
            0x29f => |x, i| {
                if i.has(CLAMP) {
                    short2(x, i, |a, b| (a as i16).saturating_sub(b as i16) as u16);
                } else {
                    short2(x, i, u16::wrapping_sub);
                }
            },
            0x2a0 => |x, i| pack_b32_f16(x, i),
            // `v_mul_legacy`: 0 times anything is 0.
            0x2a1 => |x, i| float2(x, i, |a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }),
            _ => return None,
        };
        Some(handler)
    }
}

/// Converts the result of an `overflowing_*` function to bits and carry.
trait IntoParts {
    fn into_parts(self) -> (u64, bool);
}

impl IntoParts for (i64, bool) {
    fn into_parts(self) -> (u64, bool) {
        (self.0 as u64, self.1)
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn bfe_i32(a: u32, b: u32, c: u32) -> u32 {
    let (shift, width) = (b & 31, c & 31);
    if width == 0 {
        return 0;
    }
    let value = a as i32 >> shift;
    if shift + width >= 32 {
        value as u32
    } else {
        (value << (32 - width) >> (32 - width)) as u32
    }
}

fn median<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.min(b).max(a.max(b).min(c))
}

fn sad_u8(a: u32, b: u32, c: u32) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.fold(c, |sum, (a, b)| sum.wrapping_add(u32::from(a.abs_diff(b))))
}

/// Sum of absolute differences of bytes, without the bytes where the reference is 0.
fn msad_u8(a: u32, b: u32, c: u32) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs
        .filter(|(_, b)| *b != 0)
        .fold(c, |sum, (a, b)| sum.wrapping_add(u32::from(a.abs_diff(b))))
}

/// Executes four sums of absolute differences over a sliding window, each in 16 bits.
#[inline(always)]
fn wide_sad(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32, u32) -> u32) {
    let (mut a, mut c) = ([0; 64], [0; 64]);
    x.src64(i, 0, false, &mut a);
    x.src64(i, 2, false, &mut c);
    let [mut buf] = buffers();
    let b = *x.src(i, 1, ModifierKind::Int, &mut buf);
    let mut out = [0; 64];
    for l in 0..64 {
        for n in 0..4 {
            let sum = f(
                (a[l] >> (8 * n)) as u32,
                b[l],
                (c[l] >> (16 * n)) as u32 & 0xffff,
            );
            out[l] |= u64::from(sum.min(0xffff)) << (16 * n);
        }
    }
    x.write64(i, &out);
}

/// Selects each byte of the result: one of the eight bytes of `a` and `b`, sign bits, or a constant.
fn perm(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = pair(a, b);
    let mut out = 0;
    for n in 0..4 {
        let byte = match selector >> (8 * n) & 0xff {
            s @ 0..=7 => (bytes >> (8 * s) & 0xff) as u32,
            s @ 8..=11 => ((bytes >> (16 * (s - 8) + 15) & 1) * 0xff) as u32,
            12 => 0,
            _ => 0xff,
        };
        out |= byte << (8 * n);
    }
    out
}

#[inline(always)]
fn mad64(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32, u64) -> (u64, bool)) {
    let mut bits = [0; 64];
    let (mut low, mut high) = ([0; 64], [0; 64]);
    {
        let [mut ba, mut bb] = buffers();
        let mut bc = buffers();
        let c = x.src_pair(i, 2, false, &mut bc);
        let a = x.src(i, 0, ModifierKind::Int, &mut ba);
        let b = x.src(i, 1, ModifierKind::Int, &mut bb);
        for l in 0..64 {
            let (sum, carry) = f(a[l], b[l], c.lane(l));
            (low[l], high[l]) = (sum as u32, (sum >> 32) as u32);
            bits[l] = u8::from(carry);
        }
    }
    x.write_halves(i, &[low, high]);
    x.write_lane_mask(i, pack_bits(&bits));
}

#[inline(always)]
fn mad_wide16(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u16, u16) -> u32) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb, mut bc] = buffers();
        let a = x.src(i, 0, ModifierKind::I16, &mut ba);
        let b = x.src(i, 1, ModifierKind::I16, &mut bb);
        let c = x.src(i, 2, ModifierKind::Int, &mut bc);
        for l in 0..64 {
            out[l] = f(a[l] as u16, b[l] as u16).wrapping_add(c[l]);
        }
    }
    x.write(i, &out);
}

/// Counts the bits of `a` below the lane's own, in the half of the wave that begins at lane `first`.
#[inline(always)]
fn mbcnt(x: &mut Exec<'_>, i: &Inst, first: u32) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb] = buffers();
        let a = x.src(i, 0, ModifierKind::Int, &mut ba);
        let b = x.src(i, 1, ModifierKind::Int, &mut bb);
        for l in 0..64u32 {
            let below = ((1u64 << l) - 1) >> first;
            let at = l as usize;
            out[at] = (a[at] & below as u32).count_ones().wrapping_add(b[at]);
        }
    }
    x.write(i, &out);
}

#[inline(always)]
fn shift64(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u64, u32) -> u64) {
    let out = {
        let ([mut ba], mut bb) = (buffers(), buffers());
        let a = x.src(i, 0, ModifierKind::Int, &mut ba);
        let b = x.src_pair(i, 1, false, &mut bb);
        halves(|l| f(b.lane(l), a[l] & 63))
    };
    x.write_halves(i, &out);
}

#[inline(always)]
fn ldexp_f64(x: &mut Exec<'_>, i: &Inst) {
    let mut out = {
        let (mut ba, [mut bb]) = (buffers(), buffers());
        let a = x.src_pair(i, 0, true, &mut ba);
        let n = x.src(i, 1, ModifierKind::Int, &mut bb);
        halves(|l| ldexp64(a.number(l), n[l] as i32).to_bits())
    };
    x.write_f64(i, &mut out);
}

#[inline(always)]
fn ldexp_f32(x: &mut Exec<'_>, i: &Inst) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        let n = x.src(i, 1, ModifierKind::Int, &mut bb);
        for l in 0..64 {
            // Enough to overflow or underflow from any value, and exact in double precision.
            let n = (n[l] as i32).clamp(-500, 500);
            out[l] = (ldexp64(f64::from(f32::from_bits(a[l])), n) as f32).to_bits();
        }
    }
    x.write_f32(i, &mut out);
}

fn norm(a: f32, least: f32) -> f32 {
    if a.is_nan() { 0.0 } else { a.clamp(least, 1.0) }
}

#[inline(always)]
fn pack_f32(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f32) -> u16) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        let b = x.src(i, 1, ModifierKind::F32, &mut bb);
        for l in 0..64 {
            out[l] = u32::from(f(f32::from_bits(a[l]))) | u32::from(f(f32::from_bits(b[l]))) << 16;
        }
    }
    x.write(i, &out);
}

#[inline(always)]
fn pack_f16(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f32) -> u16) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb] = buffers();
        let a = x.src(i, 0, ModifierKind::F16, &mut ba);
        let b = x.src(i, 1, ModifierKind::F16, &mut bb);
        let pick = |v: u32| u32::from(f(f16_to_f32(v as u16)));
        for l in 0..64 {
            out[l] = pick(a[l]) | pick(b[l]) << 16;
        }
    }
    x.write(i, &out);
}

/// `v_mqsad_u32_u8`: four sums of absolute differences over a sliding window, each in 32 bits.
#[inline(always)]
fn mqsad_u32(x: &mut Exec<'_>, i: &Inst) {
    let mut a = [0; 64];
    x.src64(i, 0, false, &mut a);
    let [mut buf] = buffers();
    let b = *x.src(i, 1, ModifierKind::Int, &mut buf);
    let out: [[u32; 64]; 4] = std::array::from_fn(|n| {
        let sum = if i.src[2] >= VGPR {
            *x.vgpr(i.src[2] + n as u16)
        } else {
            [x.s32(i.src[2], i.literal); 64]
        };
        std::array::from_fn(|l| msad_u8((a[l] >> (8 * n)) as u32, b[l], sum[l]))
    });
    let mask = x.exec();
    for (n, out) in out.iter().enumerate() {
        super::operand::blend(x.vgpr_mut(i.dst + n as u16), out, mask);
    }
    x.count_lanes();
}

#[inline(always)]
fn trig_preop(x: &mut Exec<'_>, i: &Inst) {
    let mut out = {
        let (mut ba, [mut bb]) = (buffers(), buffers());
        let a = x.src_pair(i, 0, true, &mut ba);
        let n = x.src(i, 1, ModifierKind::Int, &mut bb);
        halves(|l| two_over_pi(a.number(l), n[l]).to_bits())
    };
    x.write_f64(i, &mut out);
}

#[inline(always)]
fn cvt_pk_u8(x: &mut Exec<'_>, i: &Inst) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb, mut bc] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        let b = x.src(i, 1, ModifierKind::Int, &mut bb);
        let c = x.src(i, 2, ModifierKind::Int, &mut bc);
        for l in 0..64 {
            let shift = 8 * (b[l] & 3);
            let byte = u32::from(f32::from_bits(a[l]).round_ties_even() as u8);
            out[l] = c[l] & !(0xff << shift) | byte << shift;
        }
    }
    x.write(i, &out);
}

#[inline(always)]
fn pack_b32_f16(x: &mut Exec<'_>, i: &Inst) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb] = buffers();
        let a = x.src(i, 0, ModifierKind::F16, &mut ba);
        let b = x.src(i, 1, ModifierKind::F16, &mut bb);
        for l in 0..64 {
            out[l] = a[l] & 0xffff | b[l] << 16;
        }
    }
    x.write(i, &out);
}
