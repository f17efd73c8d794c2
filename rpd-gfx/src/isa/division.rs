//! The instructions of a division: `v_div_scale`, `v_div_fmas` and `v_div_fixup`. Most divisions are not special cases
//! and need none of them; whether one does is determined for all lanes together.

use super::exec::Exec;
use super::float::{add_odd, frexp64, ldexp64};
use super::inst::Inst;
use super::lanes::Lanes;
use super::lanewise::{double3, fma32};
use super::operand::{ModifierKind, buffers, halves, pack_bits};

/// Whether a condition holds for all active lanes.
#[inline(always)]
fn all_lanes(x: &Exec<'_>, f: impl Fn(usize) -> bool) -> bool {
    let inactive = !x.exec();
    (0..64).fold(true, |all, l| all & (f(l) | (inactive >> l & 1 != 0)))
}

/// `v_div_scale_f32` for all lanes.
#[inline(always)]
pub(super) fn scale32(x: &mut Exec<'_>, i: &Inst) {
    let mut out = [0; 64];
    let mut bits = [0; 64];
    {
        let [mut ba, mut bb, mut bc] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        let b = x.src(i, 1, ModifierKind::F32, &mut bb);
        let c = x.src(i, 2, ModifierKind::F32, &mut bc);
        let number = |lanes: &Lanes, l: usize| f32::from_bits(lanes[l]);
        if all_lanes(x, |l| is_unscaled32(number(b, l), number(c, l))) {
            out = *a;
        } else {
            for l in 0..64 {
                let (value, scaled) = div_scale32(number(a, l), number(b, l), number(c, l));
                out[l] = value.to_bits();
                bits[l] = u8::from(scaled);
            }
        }
    }
    x.write(i, &out);
    x.write_lane_mask(i, pack_bits(&bits));
}

/// `v_div_scale_f64` for all lanes.
#[inline(always)]
pub(super) fn scale64(x: &mut Exec<'_>, i: &Inst) {
    let mut bits = [0; 64];
    let out = {
        let (mut ba, mut bb, mut bc) = (buffers(), buffers(), buffers());
        let a = x.src_pair(i, 0, true, &mut ba);
        let b = x.src_pair(i, 1, true, &mut bb);
        let c = x.src_pair(i, 2, true, &mut bc);
        if all_lanes(x, |l| is_unscaled64(b.number(l), c.number(l))) {
            halves(|l| a.lane(l))
        } else {
            let values: [(f64, bool); 64] =
                std::array::from_fn(|l| div_scale64(a.number(l), b.number(l), c.number(l)));
            bits = values.map(|(_, scaled)| u8::from(scaled));
            halves(|l| values[l].0.to_bits())
        }
    };
    x.write_halves(i, &out);
    x.write_lane_mask(i, pack_bits(&bits));
}

/// `v_div_fmas_f32` for all lanes.
#[inline(always)]
pub(super) fn fmas32(x: &mut Exec<'_>, i: &Inst) {
    let scaled = x.vcc() & x.exec();
    if scaled == 0 {
        return fma32(x, i);
    }
    let mut out = [0; 64];
    {
        let [mut ba, mut bb, mut bc] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        let b = x.src(i, 1, ModifierKind::F32, &mut bb);
        let c = x.src(i, 2, ModifierKind::F32, &mut bc);
        for l in 0..64 {
            let (a, b, c) = (
                f32::from_bits(a[l]),
                f32::from_bits(b[l]),
                f32::from_bits(c[l]),
            );
            out[l] = div_fmas32(a, b, c, scaled >> l & 1 != 0).to_bits();
        }
    }
    x.write_f32(i, &mut out);
}

/// `v_div_fmas_f64` for all lanes.
#[inline(always)]
pub(super) fn fmas64(x: &mut Exec<'_>, i: &Inst) {
    let scaled = x.vcc() & x.exec();
    if scaled == 0 {
        return double3(x, i, f64::mul_add);
    }
    let mut out = {
        let (mut ba, mut bb, mut bc) = (buffers(), buffers(), buffers());
        let a = x.src_pair(i, 0, true, &mut ba);
        let b = x.src_pair(i, 1, true, &mut bb);
        let c = x.src_pair(i, 2, true, &mut bc);
        halves(|l| {
            let scaled = scaled >> l & 1 != 0;
            div_fmas64(a.number(l), b.number(l), c.number(l), scaled).to_bits()
        })
    };
    x.write_f64(i, &mut out);
}

/// Whether a number is so far from overflow and underflow that a quotient of two such numbers is not a special case.
#[inline(always)]
fn is_ordinary(x: f64) -> bool {
    (1e-18..1e18).contains(&x.abs())
}

/// `v_div_fixup_f32` for all lanes.
#[inline(always)]
pub(super) fn fixup32(x: &mut Exec<'_>, i: &Inst) {
    let mut out = [0; 64];
    {
        let [mut ba, mut bb, mut bc] = buffers();
        let a = x.src(i, 0, ModifierKind::F32, &mut ba);
        let b = x.src(i, 1, ModifierKind::F32, &mut bb);
        let c = x.src(i, 2, ModifierKind::F32, &mut bc);
        let number = |lanes: &Lanes, l: usize| f32::from_bits(lanes[l]);
        let ordinary = |lanes: &Lanes, l: usize| is_ordinary(f64::from(number(lanes, l)));
        if all_lanes(x, |l| ordinary(b, l) & ordinary(c, l)) {
            for (l, out) in out.iter_mut().enumerate() {
                *out = with_sign32(number(a, l), number(b, l), number(c, l)).to_bits();
            }
        } else {
            for (l, out) in out.iter_mut().enumerate() {
                let (q, d, n) = (number(a, l), number(b, l), number(c, l));
                let special = special_quotient(f64::from(d), f64::from(n), 150, 129);
                *out = special
                    .map_or_else(|| with_sign32(q, d, n), |v| v as f32)
                    .to_bits();
            }
        }
    }
    x.write_f32(i, &mut out);
}

/// `v_div_fixup_f64` for all lanes.
#[inline(always)]
pub(super) fn fixup64(x: &mut Exec<'_>, i: &Inst) {
    let mut out = {
        let (mut ba, mut bb, mut bc) = (buffers(), buffers(), buffers());
        let a = x.src_pair(i, 0, true, &mut ba);
        let b = x.src_pair(i, 1, true, &mut bb);
        let c = x.src_pair(i, 2, true, &mut bc);
        if all_lanes(x, |l| is_ordinary(b.number(l)) & is_ordinary(c.number(l))) {
            halves(|l| with_sign64(a.number(l), b.number(l), c.number(l)).to_bits())
        } else {
            halves(|l| fixup(a.number(l), b.number(l), c.number(l), 1075, 1025).to_bits())
        }
    };
    x.write_f64(i, &mut out);
}

/// `v_div_fixup` for one lane: see [`special_quotient`].
pub(super) fn fixup(q: f64, d: f64, n: f64, under: i32, over: i32) -> f64 {
    special_quotient(d, n, under, over).unwrap_or_else(|| with_sign64(q, d, n))
}

/// The magnitude of `q` with the sign of `n / d`.
#[inline(always)]
fn with_sign32(q: f32, d: f32, n: f32) -> f32 {
    q.abs()
        .copysign(if d.is_sign_negative() == n.is_sign_negative() {
            1.0
        } else {
            -1.0
        })
}

/// The magnitude of `q` with the sign of `n / d`, in double precision.
#[inline(always)]
fn with_sign64(q: f64, d: f64, n: f64) -> f64 {
    q.abs()
        .copysign(if d.is_sign_negative() == n.is_sign_negative() {
            1.0
        } else {
            -1.0
        })
}

/// Biased exponents as the division instructions compare them.
struct Exponents {
    numerator: i32,
    denominator: i32,
}

#[inline(always)]
fn exponent32(x: f32) -> i32 {
    (x.to_bits() >> 23 & 0xff) as i32
}

#[inline(always)]
fn exponent64(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32
}

/// Whether a division needs no scaling because all intermediate results are normal, as in most divisions.
#[inline(always)]
fn is_unscaled32(denominator: f32, numerator: f32) -> bool {
    let (n, d) = (exponent32(numerator), exponent32(denominator));
    (1..=250).contains(&d) & (24..=254).contains(&n) & (-120..96).contains(&(n - d))
}

/// Whether a division of double precision needs no scaling because all intermediate results are normal, as in most
/// divisions.
#[inline(always)]
fn is_unscaled64(denominator: f64, numerator: f64) -> bool {
    let (n, d) = (exponent64(numerator), exponent64(denominator));
    (1..=2040).contains(&d) & (54..=2046).contains(&n) & (-1000..768).contains(&(n - d))
}

/// `v_div_scale_f32`: the source scaled so that no intermediate result overflows or loses bits, and whether the
/// quotient has to be scaled back.
fn div_scale32(s0: f32, denominator: f32, numerator: f32) -> (f32, bool) {
    if is_unscaled32(denominator, numerator) {
        return (s0, false);
    }
    let (n, d) = (exponent32(numerator), exponent32(denominator));
    let (value, scaled) = div_scale(
        f64::from(s0),
        s0.to_bits() == denominator.to_bits(),
        s0.to_bits() == numerator.to_bits(),
        numerator == 0.0 || denominator == 0.0,
        &Exponents {
            numerator: n,
            denominator: d,
        },
        denominator != 0.0 && denominator.to_bits() >> 23 & 0xff == 0,
        denormal32(1.0 / f64::from(denominator)),
        denormal32(f64::from(numerator) / f64::from(denominator)),
        &Limits {
            apart: 96,
            tiny: 23,
            scale: 64,
        },
    );
    (value as f32, scaled)
}

/// `v_div_scale_f64`: the source scaled so that no intermediate result overflows or loses bits, and whether the
/// quotient has to be scaled back.
fn div_scale64(s0: f64, denominator: f64, numerator: f64) -> (f64, bool) {
    if is_unscaled64(denominator, numerator) {
        return (s0, false);
    }
    let (n, d) = (exponent64(numerator), exponent64(denominator));
    let denormal = |x: f64| x.is_subnormal();
    let quotient = numerator / denominator;
    div_scale(
        s0,
        s0.to_bits() == denominator.to_bits(),
        s0.to_bits() == numerator.to_bits(),
        numerator == 0.0 || denominator == 0.0,
        &Exponents {
            numerator: n,
            denominator: d,
        },
        denormal(denominator),
        denormal(1.0 / denominator),
        denormal(quotient) || quotient == 0.0 && numerator != 0.0,
        &Limits {
            apart: 768,
            tiny: 53,
            scale: 128,
        },
    )
}

fn denormal32(x: f64) -> bool {
    x != 0.0 && x.abs() < f64::from(f32::MIN_POSITIVE)
}

struct Limits {
    /// Exponent difference from which on the quotient may overflow.
    apart: i32,
    /// Greatest exponent of a numerator with which bits may be lost.
    tiny: i32,
    /// Power of two to scale by.
    scale: i32,
}

#[expect(
    clippy::too_many_arguments,
    reason = "the conditions of both precisions, worked out by the callers"
)]
fn div_scale(
    s0: f64,
    is_denominator: bool,
    is_numerator: bool,
    zero: bool,
    exponents: &Exponents,
    denominator_denormal: bool,
    reciprocal_denormal: bool,
    quotient_denormal: bool,
    limits: &Limits,
) -> (f64, bool) {
    let scale = |n| ldexp64(s0, n);
    if zero {
        (f64::NAN, false)
    } else if exponents.numerator - exponents.denominator >= limits.apart {
        (
            if is_denominator {
                scale(limits.scale)
            } else {
                s0
            },
            true,
        )
    } else if denominator_denormal {
        (scale(limits.scale), false)
    } else if reciprocal_denormal && quotient_denormal {
        // Scaling down the denominator makes both normal. The quotient is scaled back by the same factor.
        (
            if is_denominator {
                scale(-limits.scale)
            } else {
                s0
            },
            true,
        )
    } else if reciprocal_denormal {
        (scale(-limits.scale), false)
    } else if quotient_denormal {
        (
            if is_numerator {
                scale(limits.scale)
            } else {
                s0
            },
            true,
        )
    } else if exponents.numerator <= limits.tiny {
        (scale(limits.scale), false)
    } else {
        (s0, false)
    }
}

/// `v_div_fmas_f32`: the last step of the division. Scales the quotient back if `v_div_scale_f32` scaled.
#[inline(always)]
fn div_fmas32(a: f32, b: f32, c: f32, scaled: bool) -> f32 {
    if !scaled {
        return a.mul_add(b, c);
    }
    let n = if c.abs() >= 1.0 { 64 } else { -64 };
    ldexp64(add_odd(f64::from(a) * f64::from(b), f64::from(c)), n) as f32
}

/// `v_div_fmas_f64`: the last step of the division. Scales the quotient back if `v_div_scale_f64` scaled.
#[inline(always)]
fn div_fmas64(a: f64, b: f64, c: f64, scaled: bool) -> f64 {
    let y = a.mul_add(b, c);
    if !scaled {
        return y;
    }
    ldexp64(y, if c.abs() >= 1.0 { 128 } else { -128 })
}

/// The quotient in special cases; `None` where only its sign changes.
///
/// `under` and `over` are the differences of exponents from which on the quotient is certainly 0 or infinite.
fn special_quotient(denominator: f64, numerator: f64, under: i32, over: i32) -> Option<f64> {
    let apart = || frexp64(numerator).1 - frexp64(denominator).1;
    if is_ordinary(denominator) && is_ordinary(numerator) {
        return None;
    }
    let negative = denominator.is_sign_negative() != numerator.is_sign_negative();
    let signed = |x: f64| Some(if negative { -x } else { x });
    if numerator.is_nan() {
        Some(numerator)
    } else if denominator.is_nan() {
        Some(denominator)
    } else if denominator == 0.0 && numerator == 0.0
        || denominator.is_infinite() && numerator.is_infinite()
    {
        Some(-f64::NAN.abs())
    } else if denominator == 0.0 || numerator.is_infinite() {
        signed(f64::INFINITY)
    } else if denominator.is_infinite() || numerator == 0.0 || apart() < -under {
        signed(0.0)
    } else if apart() >= over {
        signed(f64::INFINITY)
    } else {
        None
    }
}
