//! Floating-point arithmetic that differs from the host's operations.

use super::lanes::Lanes;

/// Converts half to single precision, exactly.
#[inline(always)]
pub(super) fn f16_to_f32(h: u16) -> f32 {
    let magnitude = u32::from(h & 0x7fff) << 13;
    let sign = u32::from(h & 0x8000) << 16;
    let bits = if h & 0x7c00 == 0x7c00 {
        magnitude | 0x7f80_0000
    } else {
        // Multiplying by 2^112 corrects the bias of the exponent, and normalises denormals.
        (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits()
    };
    f32::from_bits(bits | sign)
}

/// Converts double to half precision, to nearest even.
pub(super) fn f64_to_f16(x: f64) -> u16 {
    convert_f16(x, true)
}

/// Converts double to half precision, toward zero.
pub(super) fn f64_to_f16_rtz(x: f64) -> u16 {
    convert_f16(x, false)
}

fn convert_f16(x: f64, nearest: bool) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    let fraction = bits & ((1 << 52) - 1);
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    if exponent == 1024 {
        let nan = if fraction != 0 {
            0x200 | (fraction >> 42) as u16
        } else {
            0
        };
        return sign | 0x7c00 | nan;
    }
    if exponent > 15 {
        return sign | if nearest { 0x7c00 } else { 0x7bff };
    }
    if exponent < -25 {
        return sign;
    }
    let shift = 42 + (-14 - exponent).max(0);
    let mantissa = fraction | 1 << 52;
    let mut quotient = mantissa >> shift;
    if nearest {
        let rest = mantissa & ((1 << shift) - 1);
        let half = 1 << (shift - 1);
        if rest > half || rest == half && quotient & 1 != 0 {
            quotient += 1;
        }
    }
    // A carry out of the mantissa increments the exponent, up to infinity.
    let base = if exponent < -14 {
        0
    } else {
        (exponent + 14) as u64
    } << 10;
    sign | (base + quotient) as u16
}

/// The sum rounded to odd, so that a second rounding to a shorter format yields the correctly rounded result.
pub(super) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    if error == 0.0 || sum.to_bits() & 1 != 0 {
        return sum;
    }
    // Moves by one unit towards the exact value, to the odd neighbour.
    let bits = sum.to_bits();
    f64::from_bits(if (error > 0.0) == (sum > 0.0) {
        bits + 1
    } else {
        bits - 1
    })
}

/// Half-precision fused multiply-add on widened operands. Rounding the result to half precision yields the correct
/// result.
pub(super) fn fma16(a: f64, b: f64, c: f64) -> f64 {
    add_odd(a * b, c)
}

/// Single-precision fused multiply-add in every lane.
pub(super) fn fma32(a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions that the function is compiled for.
        unsafe { fma32_avx(a, b, c, out) };
        return;
    }
    fma32_plain(a, b, c, out);
}

#[inline(always)]
fn fma32_plain(a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes) {
    for l in 0..64 {
        let (a, b, c) = (
            f32::from_bits(a[l]),
            f32::from_bits(b[l]),
            f32::from_bits(c[l]),
        );
        out[l] = a.mul_add(b, c).to_bits();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn fma32_avx(a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes) {
    fma32_plain(a, b, c, out);
}

/// `v_max_f32`: if one operand is NaN, the other one; +0 is greater than -0.
#[inline(always)]
pub(super) fn max32(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a > b {
        a
    } else if b > a {
        b
    } else {
        f32::from_bits(a.to_bits() & b.to_bits())
    }
}

/// `v_min_f32`: if one operand is NaN, the other one; -0 is less than +0.
#[inline(always)]
pub(super) fn min32(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b {
        a
    } else if b < a {
        b
    } else {
        f32::from_bits(a.to_bits() | b.to_bits())
    }
}

/// `v_max_f64`, also used for half precision: if one operand is NaN, the other one; +0 is greater than -0.
#[inline(always)]
pub(super) fn max64(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a > b {
        a
    } else if b > a {
        b
    } else {
        f64::from_bits(a.to_bits() & b.to_bits())
    }
}

/// `v_min_f64`, also used for half precision: if one operand is NaN, the other one; -0 is less than +0.
#[inline(always)]
pub(super) fn min64(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b {
        a
    } else if b < a {
        b
    } else {
        f64::from_bits(a.to_bits() | b.to_bits())
    }
}

/// The median of three numbers; if one is NaN, the smaller of the others.
pub(super) fn med64(a: f64, b: f64, c: f64) -> f64 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min64(min64(a, b), c);
    }
    max64(min64(a, b), min64(max64(a, b), c))
}

/// `x * 2^n`, rounded once.
pub(super) fn ldexp64(x: f64, n: i32) -> f64 {
    let pow = |e: i32| f64::from_bits(((e + 1023) as u64) << 52);
    let mut n = n.clamp(-2200, 2200);
    let mut y = x;
    while n > 1023 {
        y *= pow(1023);
        n -= 1023;
    }
    if n < -1022 {
        // Scales down in steps of which only the last may yield a denormal number, so that it alone rounds.
        let mut left = n;
        while left < -969 {
            if y.abs() < pow(-53) && y != 0.0 || y == 0.0 {
                break;
            }
            y *= pow(-969);
            left += 969;
        }
        return scale_down(y, left);
    }
    y * pow(n)
}

/// `y * 2^n` for negative `n`. Computed from the bits where the result is denormal.
fn scale_down(y: f64, n: i32) -> f64 {
    if y == 0.0 || !y.is_finite() {
        return y;
    }
    let (mantissa, exponent) = frexp64(y);
    let e = exponent + n;
    if e > -1022 {
        return f64::from_bits(mantissa.to_bits() & !(0x7ff << 52) | ((e - 1 + 1023) as u64) << 52);
    }
    // The mantissa has 53 significant bits, the lowest with weight 2^(e-53). The lowest bit of the result has weight
    // 2^-1074.
    let bits = mantissa.abs().to_bits() & ((1 << 52) - 1) | 1 << 52;
    let shift = -1074 - (e - 53);
    let magnitude = if shift > 54 {
        0
    } else {
        let quotient = bits >> shift;
        let rest = bits & ((1 << shift) - 1);
        let half = 1u64 << (shift - 1);
        quotient + u64::from(rest > half || rest == half && quotient & 1 != 0)
    };
    f64::from_bits(magnitude | y.to_bits() & 1 << 63)
}

/// Mantissa in 0.5..1, and exponent. Zeros, infinities and NaN yield themselves and 0.
pub(super) fn frexp64(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let mut bits = x.to_bits();
    let mut adjust = 0;
    if bits >> 52 & 0x7ff == 0 {
        bits = (x * f64::from_bits((64 + 1023) << 52)).to_bits();
        adjust = -64;
    }
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022 + adjust;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent)
}

/// `x - floor(x)`, below 1.
pub(super) fn fract64(x: f64) -> f64 {
    (x - x.floor()).min(f64::from_bits(0x3fef_ffff_ffff_ffff))
}

/// `v_cmp_class`: whether a value is of one of the ten classes of the mask.
pub(super) fn class(bits: u64, fraction_bits: u32, exponent_bits: u32, mask: u32) -> bool {
    let fraction = bits & ((1 << fraction_bits) - 1);
    let all = (1u64 << exponent_bits) - 1;
    let exponent = bits >> fraction_bits & all;
    let negative = bits >> (fraction_bits + exponent_bits) & 1 != 0;
    let class = if exponent == all && fraction != 0 {
        u32::from(fraction >> (fraction_bits - 1) != 0)
    } else {
        let kind = match (exponent, fraction) {
            (e, _) if e == all => 0,
            (0, 0) => 3,
            (0, _) => 2,
            _ => 1,
        };
        if negative { 2 + kind } else { 9 - kind }
    };
    mask >> class & 1 != 0
}

/// The face of the cube to which a direction points, the two coordinates on the face, and twice the length along the
/// main axis.
pub(super) fn cube(x: f32, y: f32, z: f32) -> (f32, f32, f32, f32) {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        if z < 0.0 {
            (5.0, -x, -y, 2.0 * z)
        } else {
            (4.0, x, -y, 2.0 * z)
        }
    } else if y.abs() >= x.abs() {
        if y < 0.0 {
            (3.0, x, -z, 2.0 * y)
        } else {
            (2.0, x, z, 2.0 * y)
        }
    } else if x < 0.0 {
        (1.0, z, -y, 2.0 * x)
    } else {
        (0.0, -z, -y, 2.0 * x)
    }
}

/// Bits of 2/pi after the binary point, as many as the hardware uses. A segment that begins in the last 64 of them is
/// 0.
const TWO_OVER_PI: [u32; 37] = [
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
    0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
    0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
    0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046,
];

/// 53 bits of 2/pi for the argument reduction of `value`, from segment number `segment` on; scaled up for large
/// values.
pub(super) fn two_over_pi(value: f64, segment: u32) -> f64 {
    if value.is_nan() {
        return value + value;
    }
    let exponent = (value.to_bits() >> 52 & 0x7ff) as u32;
    let shift = 53 * (segment & 31) + exponent.saturating_sub(1077);
    let at = (shift / 32) as usize;
    let Some(&[a, b, c]) = TWO_OVER_PI.get(at..).and_then(|rest| rest.first_chunk()) else {
        return 0.0;
    };
    let bits = u128::from(a) << 96 | u128::from(b) << 64 | u128::from(c) << 32;
    let top = (bits << (shift % 32) >> 75) as u64;
    let scale = -53 - shift as i32 + if exponent >= 1968 { 128 } else { 0 };
    ldexp64(top as f64, scale)
}
