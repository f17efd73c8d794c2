//! Loops over lanes for vector operations, by number and type of the operands.

use super::exec::Exec;
use super::inst::Inst;
use super::lanes::each_lane;
use super::operand::{ModifierKind, buffers, halves};

/// Operation on one 32-bit integer in each lane.
#[inline(always)]
pub(super) fn int1(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32) -> u32) {
    let mut out = [0; 64];
    {
        let [mut ba] = buffers();
        let a = x.src(i, 0, ModifierKind::Int, &mut ba);
        for l in 0..64 {
            out[l] = f(a[l]);
        }
    }
    x.write(i, &out);
}

#[inline(always)]
pub(super) fn int2(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32) -> u32) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb] = buffers();
        let a = x.src(i, 0, ModifierKind::Int, &mut ba);
        let b = x.src(i, 1, ModifierKind::Int, &mut bb);
        for l in 0..64 {
            out[l] = f(a[l], b[l]);
        }
    }
    x.write(i, &out);
}

#[inline(always)]
pub(super) fn int3(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32, u32) -> u32) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb, mut bc] = buffers();
        let a = x.src(i, 0, ModifierKind::Int, &mut ba);
        let b = x.src(i, 1, ModifierKind::Int, &mut bb);
        let c = x.src(i, 2, ModifierKind::Int, &mut bc);
        for l in 0..64 {
            out[l] = f(a[l], b[l], c[l]);
        }
    }
    x.write(i, &out);
}

/// Operation on two 16-bit integers, in the low or the selected halves.
#[inline(always)]
pub(super) fn short2(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u16, u16) -> u16) {
    short3(x, i, |a, b, _| f(a, b));
}

#[inline(always)]
pub(super) fn short3(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u16, u16, u16) -> u16) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb, mut bc] = buffers();
        let a = x.src(i, 0, ModifierKind::I16, &mut ba);
        let b = x.src(i, 1, ModifierKind::I16, &mut bb);
        let c = x.src(i, 2, ModifierKind::I16, &mut bc);
        for l in 0..64 {
            out[l] = u32::from(f(a[l] as u16, b[l] as u16, c[l] as u16));
        }
    }
    x.write16(i, &mut out);
}

/// Operation on one single-precision number in each lane.
#[inline(always)]
pub(super) fn float1(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f32) -> f32) {
    let mut out = [0; 64];
    {
        let [mut ba] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        for l in 0..64 {
            out[l] = f(f32::from_bits(a[l])).to_bits();
        }
    }
    x.write_f32(i, &mut out);
}

#[inline(always)]
pub(super) fn float2(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f32, f32) -> f32) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        let b = x.src(i, 1, ModifierKind::F32, &mut bb);
        for l in 0..64 {
            out[l] = f(f32::from_bits(a[l]), f32::from_bits(b[l])).to_bits();
        }
    }
    x.write_f32(i, &mut out);
}

#[inline(always)]
pub(super) fn float3(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f32, f32, f32) -> f32) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb, mut bc] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        let b = x.src(i, 1, ModifierKind::F32, &mut bb);
        let c = x.src(i, 2, ModifierKind::F32, &mut bc);
        for l in 0..64 {
            out[l] = f(
                f32::from_bits(a[l]),
                f32::from_bits(b[l]),
                f32::from_bits(c[l]),
            )
            .to_bits();
        }
    }
    x.write_f32(i, &mut out);
}

/// Single-precision operation that is slow on the host and is therefore computed only for lanes that are written.
#[inline(always)]
pub(super) fn float1_slow(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f32) -> f32) {
    let mut out = [0; 64];
    {
        let [mut ba] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        each_lane(x.exec(), |l| out[l] = f(f32::from_bits(a[l])).to_bits());
    }
    x.write_f32(i, &mut out);
}

/// Single-precision fused multiply-add.
#[inline(always)]
pub(super) fn fma32(x: &mut Exec<'_>, i: &Inst) {
    float3(x, i, f32::mul_add);
}

/// Operation on one half-precision number in each lane. `f` gets the operand widened, and its result is rounded once.
#[inline(always)]
pub(super) fn half1(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f64) -> f64) {
    half3(x, i, |a, _, _| f(a));
}

#[inline(always)]
pub(super) fn half2(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f64, f64) -> f64) {
    half3(x, i, |a, b, _| f(a, b));
}

#[inline(always)]
pub(super) fn half3(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f64, f64, f64) -> f64) {
    use super::float::{f16_to_f32, f64_to_f16};
    let mut out = [0; 64];
    {
        let [mut ba, mut bb, mut bc] = buffers();
        let a = x.src(i, 0, ModifierKind::F16, &mut ba);
        let b = x.src(i, 1, ModifierKind::F16, &mut bb);
        let c = x.src(i, 2, ModifierKind::F16, &mut bc);
        let wide = |v: u32| f64::from(f16_to_f32(v as u16));
        for l in 0..64 {
            out[l] = u32::from(f64_to_f16(f(wide(a[l]), wide(b[l]), wide(c[l]))));
        }
    }
    x.write_f16(i, &mut out);
}

/// Operation on one double-precision number in each lane.
#[inline(always)]
pub(super) fn double1(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f64) -> f64) {
    let mut out = {
        let mut ba = buffers();
        let a = x.src_pair(i, 0, true, &mut ba);
        halves(|l| f(a.number(l)).to_bits())
    };
    x.write_f64(i, &mut out);
}

#[inline(always)]
pub(super) fn double2(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f64, f64) -> f64) {
    let mut out = {
        let (mut ba, mut bb) = (buffers(), buffers());
        let a = x.src_pair(i, 0, true, &mut ba);
        let b = x.src_pair(i, 1, true, &mut bb);
        halves(|l| f(a.number(l), b.number(l)).to_bits())
    };
    x.write_f64(i, &mut out);
}

#[inline(always)]
pub(super) fn double3(x: &mut Exec<'_>, i: &Inst, f: impl Fn(f64, f64, f64) -> f64) {
    let mut out = {
        let (mut ba, mut bb, mut bc) = (buffers(), buffers(), buffers());
        let a = x.src_pair(i, 0, true, &mut ba);
        let b = x.src_pair(i, 1, true, &mut bb);
        let c = x.src_pair(i, 2, true, &mut bc);
        halves(|l| f(a.number(l), b.number(l), c.number(l)).to_bits())
    };
    x.write_f64(i, &mut out);
}
