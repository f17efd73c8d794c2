//! Formats of texels, and their conversion from and to register values.

use super::Unsupported;
use crate::isa::float::{f16_to_f32, f64_to_f16};

/// Register values of four channels: bits of floating-point numbers, or integers.
pub type Texel = [u32; 4];

/// Number format of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Unsigned integers that represent 0 to 1.
    Unorm,
    /// Signed integers that represent -1 to 1.
    Snorm,
    /// Unsigned integers that are converted to floating-point numbers.
    Uscaled,
    /// Signed integers that are converted to floating-point numbers.
    Sscaled,
    /// Unsigned integers.
    Uint,
    /// Signed integers.
    Sint,
    /// Floating-point numbers of 16 or 32 bits.
    Float,
    /// 8-bit `Unorm` with the first three channels encoded as sRGB; cannot be written.
    Srgb,
}

const NUMBERS: [(u32, Number); 8] = [
    (0, Number::Unorm),
    (1, Number::Snorm),
    (2, Number::Uscaled),
    (3, Number::Sscaled),
    (4, Number::Uint),
    (5, Number::Sint),
    (7, Number::Float),
    (9, Number::Srgb),
];

/// The data formats: their number, and the width of each channel in bits, from the lowest bits on.
const LAYOUTS: [(u32, [u8; 4]); 13] = [
    (1, [8, 0, 0, 0]),
    (2, [16, 0, 0, 0]),
    (3, [8, 8, 0, 0]),
    (4, [32, 0, 0, 0]),
    (5, [16, 16, 0, 0]),
    (9, [10, 10, 10, 2]),
    (10, [8, 8, 8, 8]),
    (11, [32, 32, 0, 0]),
    (12, [16, 16, 16, 16]),
    (13, [32, 32, 32, 0]),
    (14, [32, 32, 32, 32]),
    (16, [5, 6, 5, 0]),
    (17, [5, 5, 5, 1]),
];

/// Format of a texel. The channels are consecutive, the first in the lowest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TexelFormat {
    /// Width of each channel in bits; 0 for channels that the format does not have.
    bits: [u8; 4],
    number: Number,
}

impl TexelFormat {
    /// The format with `channels` channels of `bits` bits; `None` if devices do not have it.
    pub fn new(bits: u32, channels: u32, number: Number) -> Option<Self> {
        if channels > 4 {
            return None;
        }
        let bits = u8::try_from(bits).ok()?;
        Self::from_bits(
            std::array::from_fn(|n| if n < channels as usize { bits } else { 0 }),
            number,
        )
    }

    /// The format with channels of these widths, the first in the lowest bits and 0 for channels that it does not
    /// have; `None` if devices do not have it.
    pub fn from_bits(bits: [u8; 4], number: Number) -> Option<Self> {
        let number_fits = match (bits, number) {
            ([10, 10, 10, 2], _) => matches!(number, Number::Unorm | Number::Uint),
            ([5, ..], _) => number == Number::Unorm,
            ([first, ..], Number::Unorm | Number::Snorm | Number::Uscaled | Number::Sscaled) => {
                first < 32
            }
            (_, Number::Uint | Number::Sint) => true,
            ([first, ..], Number::Float) => first > 8,
            ([first, ..], Number::Srgb) => first == 8,
        };
        let layout_exists = LAYOUTS.iter().any(|row| row.1 == bits);
        (number_fits && layout_exists).then_some(Self { bits, number })
    }

    /// Decodes the fields of a descriptor for data format and number format.
    pub(super) fn decode(data: u32, number: u32) -> Result<Self, Unsupported> {
        let layout = LAYOUTS.iter().find(|row| row.0 == data);
        let meaning = NUMBERS.iter().find(|row| row.0 == number);
        layout
            .zip(meaning)
            .and_then(|(layout, meaning)| Self::from_bits(layout.1, meaning.1))
            .ok_or(Unsupported::Format { data, number })
    }

    /// Encodes the fields of a descriptor for data format and number format.
    pub(super) fn encode(self) -> (u32, u32) {
        let data = LAYOUTS.iter().find(|row| row.1 == self.bits);
        let number = NUMBERS.iter().find(|row| row.1 == self.number);
        (data.map_or(0, |row| row.0), number.map_or(0, |row| row.0))
    }

    /// Size of a texel in bytes, by the field for the data format; `None` for an unknown format.
    pub(super) fn bytes_of(data: u32) -> Option<u32> {
        let layout = LAYOUTS.iter().find(|row| row.0 == data)?;
        Some(layout.1.iter().map(|bits| u32::from(*bits)).sum::<u32>() / 8)
    }

    /// Size of a texel in bytes.
    pub fn bytes(self) -> u32 {
        self.bits.iter().map(|bits| u32::from(*bits)).sum::<u32>() / 8
    }

    /// Number of channels.
    pub fn channels(self) -> u32 {
        self.bits.iter().filter(|bits| **bits != 0).count() as u32
    }

    /// Converts a 32-bit register value to 16 bits, for instructions with 16-bit data.
    pub(in crate::isa) fn narrow(self, channel: u32) -> u16 {
        if self.is_integer() {
            channel as u16
        } else {
            f64_to_f16(f64::from(f32::from_bits(channel)))
        }
    }

    /// Converts a 16-bit register value to 32 bits.
    pub(in crate::isa) fn widen(self, half: u16) -> u32 {
        match self.number {
            Number::Uint => half.into(),
            Number::Sint => half as i16 as u32,
            _ => f16_to_f32(half).to_bits(),
        }
    }

    /// Whether registers hold integers.
    pub fn is_integer(self) -> bool {
        matches!(self.number, Number::Uint | Number::Sint)
    }

    /// The register value that represents 1.
    pub fn one(self) -> u32 {
        if self.is_integer() { 1 } else { 1f32.to_bits() }
    }

    /// The channels of the format: width in bits, index of the dword that contains it, and lowest bit there.
    fn places(self) -> impl Iterator<Item = (u32, usize, u32)> {
        let mut next = 0;
        self.bits
            .into_iter()
            .take_while(|bits| *bits != 0)
            .map(move |bits| {
                let (bits, first) = (u32::from(bits), next);
                next += bits;
                (bits, (first / 32) as usize, first % 32)
            })
    }

    /// Converts a texel in memory to register values. Channels that the format does not have are 0.
    pub fn unpack(self, raw: [u32; 4]) -> Texel {
        let mut texel = [0; 4];
        for ((n, (bits, word, shift)), channel) in self.places().enumerate().zip(&mut texel) {
            let value = raw[word] >> shift;
            *channel = self.read(value & greatest(bits), bits, n);
        }
        texel
    }

    /// Converts register values to a texel in memory.
    pub fn pack(self, texel: Texel) -> [u32; 4] {
        let mut raw = [0; 4];
        for ((bits, word, shift), channel) in self.places().zip(texel) {
            raw[word] |= (self.write(channel, bits) & greatest(bits)) << shift;
        }
        raw
    }

    fn read(self, value: u32, bits: u32, channel: usize) -> u32 {
        let unused = 32 - bits;
        let signed = ((value << unused) as i32) >> unused;
        let (unsigned_max, signed_max) = greatest_floats(bits);
        let float = match self.number {
            Number::Uint => return value,
            Number::Sint => return signed as u32,
            Number::Float if bits == 32 => return value,
            Number::Float => f16_to_f32(value as u16),
            Number::Srgb if channel < 3 => linear(value as f32 / unsigned_max),
            Number::Unorm | Number::Srgb => value as f32 / unsigned_max,
            Number::Snorm => (signed as f32 / signed_max).max(-1.0),
            Number::Uscaled => value as f32,
            Number::Sscaled => signed as f32,
        };
        float.to_bits()
    }

    fn write(self, channel: u32, bits: u32) -> u32 {
        let float = f32::from_bits(channel);
        let (unsigned_max, signed_max) = greatest_floats(bits);
        match self.number {
            // Values that are too large saturate.
            Number::Uint => channel.min(greatest(bits)),
            Number::Sint => {
                let greatest = i32::MAX >> (32 - bits);
                (channel as i32).clamp(-greatest - 1, greatest) as u32
            }
            Number::Float if bits == 32 => channel,
            Number::Float => f64_to_f16(f64::from(float)).into(),
            Number::Unorm | Number::Srgb => {
                (float.clamp(0.0, 1.0) * unsigned_max).round_ties_even() as u32
            }
            Number::Snorm => (float.clamp(-1.0, 1.0) * signed_max).round_ties_even() as i32 as u32,
            Number::Uscaled => float.clamp(0.0, unsigned_max) as u32,
            Number::Sscaled => float.clamp(-signed_max - 1.0, signed_max) as i32 as u32,
        }
    }
}

/// The greatest unsigned integer with this number of bits.
fn greatest(bits: u32) -> u32 {
    u32::MAX >> (32 - bits)
}

/// The greatest unsigned and signed integers with this number of bits, as floating-point numbers.
fn greatest_floats(bits: u32) -> (f32, f32) {
    let unsigned = greatest(bits) as f32;
    (unsigned, (unsigned - 1.0) / 2.0)
}

/// The linear intensity of an sRGB value.
fn linear(value: f32) -> f32 {
    if value <= 0.04045 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    }
}
