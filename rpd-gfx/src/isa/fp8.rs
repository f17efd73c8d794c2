//! 8-bit floating-point numbers (FNUZ formats): there is no negative zero, and its code is the only NaN.

/// An 8-bit floating-point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum F8 {
    /// FP8: four exponent bits, three mantissa bits.
    Fp8,
    /// BF8: five exponent bits, two mantissa bits.
    Bf8,
}

/// The code of NaN.
pub(super) const NAN: u8 = 0x80;

impl F8 {
    fn mantissa(self) -> i32 {
        match self {
            Self::Fp8 => 3,
            Self::Bf8 => 2,
        }
    }

    fn bias(self) -> i32 {
        match self {
            Self::Fp8 => 8,
            Self::Bf8 => 16,
        }
    }
}

/// The number with this code.
pub(super) fn decode(format: F8, code: u8) -> f32 {
    if code == NAN {
        return f32::NAN;
    }
    let mantissa = f32::from(code & ((1 << format.mantissa()) - 1));
    let exponent = i32::from(code & 0x7f) >> format.mantissa();
    let scale = |exponent: i32| f32::from_bits(((exponent + 127) as u32) << 23);
    let size = if exponent == 0 {
        mantissa * scale(1 - format.bias() - format.mantissa())
    } else {
        let one = f32::from(1u8 << format.mantissa());
        (one + mantissa) * scale(exponent - format.bias() - format.mantissa())
    };
    if code & 0x80 != 0 { -size } else { size }
}

/// Rounds a number to the format and returns its code.
///
/// Without `random`, rounds to nearest, ties to even. With it, a number between two codes is rounded up if its
/// distance from the lower one plus the random bits, both as fractions of a unit, reach 1. A number that is too large
/// becomes NaN, or the largest number if `saturate`.
pub(super) fn encode(format: F8, value: f32, random: Option<u32>, saturate: bool) -> u8 {
    if !value.is_finite() {
        return NAN;
    }
    let size = f64::from(value.abs());
    let mantissa = format.mantissa();
    let least = 1 - format.bias();
    let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(least);
    // The value in units of the last place; exact in double precision.
    let units = size * f64::from_bits(((1023 - (exponent - mantissa)) as u64) << 52);
    let whole = match random {
        None => units.round_ties_even() as u32,
        Some(random) => {
            let dropped = 23 - mantissa as u32;
            let fraction = f64::from(random >> (32 - dropped)) / f64::from(1u32 << dropped);
            (units + fraction).floor() as u32
        }
    };
    // A carry out of the mantissa adds 1 to the exponent.
    let code = whole + (((exponent - least) as u32) << mantissa);
    match code {
        0 => 0,
        0x80.. if saturate => 0x7f | (value.to_bits() >> 24) as u8 & 0x80,
        0x80.. => NAN,
        _ => code as u8 | (value.to_bits() >> 24) as u8 & 0x80,
    }
}
