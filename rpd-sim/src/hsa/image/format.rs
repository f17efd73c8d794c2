//! Formats of images.

use rpd_gfx::isa::image::{Number, Selection, TexelFormat};

use super::geometry;

/// `hsa_ext_image_format_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageFormat {
    /// Type of the channels, a `hsa_ext_image_channel_type_t`.
    pub(crate) channel_type: u32,
    /// Order of the channels, a `hsa_ext_image_channel_order_t`.
    pub(crate) channel_order: u32,
}

/// Channel orders that code outside of this module names.
pub(in crate::hsa) mod order {
    pub(in crate::hsa) const RGBA: u32 = 8;
    pub(in crate::hsa) const SRGBA: u32 = 14;
    pub(in crate::hsa) const DEPTH: u32 = 18;
}

/// Bits and number format by channel type.
const TYPES: [(u32, u32, Number); 12] = [
    (0, 8, Number::Snorm),
    (1, 16, Number::Snorm),
    (2, 8, Number::Unorm),
    (3, 16, Number::Unorm),
    (8, 8, Number::Sint),
    (9, 16, Number::Sint),
    (10, 32, Number::Sint),
    (11, 8, Number::Uint),
    (12, 16, Number::Uint),
    (13, 32, Number::Uint),
    (14, 16, Number::Float),
    (15, 32, Number::Float),
];

/// Bits of each channel, from the lowest on, by channel type, for types whose channels differ in size.
const PACKED: [(u32, [u8; 4]); 3] = [
    (channel_type::SHORT_555, [5, 5, 5, 1]),
    (channel_type::SHORT_565, [5, 6, 5, 0]),
    // INT_101010.
    (7, [10, 10, 10, 2]),
];

/// Channel types that code outside of this module names.
mod channel_type {
    pub(super) const SHORT_555: u32 = 5;
    pub(super) const SHORT_565: u32 = 6;
}

const ZERO: Selection = Selection::Zero;
const ONE: Selection = Selection::One;
const X: Selection = Selection::Channel(0);
const Y: Selection = Selection::Channel(1);
const Z: Selection = Selection::Channel(2);
const W: Selection = Selection::Channel(3);

/// Set of channel types that images of a channel order have.
#[derive(Debug, Clone, Copy)]
enum Types {
    All,
    /// Fractions and integers of 8 bits.
    Bytes,
    /// Fractions and floats.
    Intensities,
    /// Fractions of 8 bits, which are read only.
    Srgb,
    /// Fractions of 16 bits and floats of 32, which no kernel both reads and writes.
    Depth,
    /// Fractions of channels that differ in size.
    Packed,
}

impl Types {
    /// The texels of `channels` channels of a channel type.
    fn texels(self, channels: u32, channel_type: u32) -> Option<TexelFormat> {
        if let Self::Packed = self {
            let &(_, bits) = PACKED.iter().find(|row| row.0 == channel_type)?;
            return TexelFormat::from_bits(bits, Number::Unorm);
        }
        let &(_, bits, number) = TYPES.iter().find(|row| row.0 == channel_type)?;
        let number = match self {
            _ if !self.has(bits, number) => return None,
            Self::Srgb => Number::Srgb,
            _ => number,
        };
        TexelFormat::new(bits, channels, number)
    }

    fn has(self, bits: u32, number: Number) -> bool {
        match self {
            Self::All | Self::Packed => true,
            Self::Bytes => bits == 8,
            Self::Intensities => !matches!(number, Number::Sint | Number::Uint),
            Self::Srgb => (bits, number) == (8, Number::Unorm),
            Self::Depth => matches!((bits, number), (16, Number::Unorm) | (32, Number::Float)),
        }
    }

    fn capability(self) -> u32 {
        match self {
            Self::Srgb => capability::READ_ONLY,
            Self::Depth => capability::READ_ONLY | capability::WRITE_ONLY,
            _ => capability::READ_ONLY | capability::WRITE_ONLY | capability::READ_WRITE,
        }
    }
}

/// A channel order: its number, the channels in memory, the channel of each register, and the types that it permits.
type Order = (u32, u32, [Selection; 4], Types);

const ORDERS: [Order; 12] = [
    // A, R, RG, RA.
    (0, 1, [ZERO, ZERO, ZERO, X], Types::All),
    (1, 1, [X, ZERO, ZERO, ONE], Types::All),
    (3, 2, [X, Y, ZERO, ONE], Types::All),
    (5, 2, [X, ZERO, ZERO, Y], Types::All),
    // RGB: blue is the lowest.
    (6, 3, [Z, Y, X, ONE], Types::Packed),
    (order::RGBA, 4, [X, Y, Z, W], Types::All),
    // BGRA and ARGB.
    (9, 4, [Z, Y, X, W], Types::Bytes),
    (10, 4, [Y, Z, W, X], Types::Bytes),
    (order::SRGBA, 4, [X, Y, Z, W], Types::Srgb),
    // Intensity and luminance.
    (16, 1, [X, X, X, X], Types::Intensities),
    (17, 1, [X, X, X, ONE], Types::Intensities),
    (order::DEPTH, 1, [X, ZERO, ZERO, ZERO], Types::Depth),
];

/// `hsa_ext_image_capability_t`.
mod capability {
    pub(super) const READ_ONLY: u32 = 1;
    pub(super) const WRITE_ONLY: u32 = 2;
    pub(super) const READ_WRITE: u32 = 4;
}

/// Texels of a format that devices have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Texels {
    /// Channels and their types in memory.
    pub(crate) format: TexelFormat,
    /// The channel of each register.
    pub(crate) selections: [Selection; 4],
    /// Operations that kernels have for images of the format, bits of `hsa_ext_image_capability_t`.
    pub(in crate::hsa) capability: u32,
}

impl ImageFormat {
    /// Texels of the format; `None` for formats that devices lack, or have for images of depth only.
    pub(crate) fn texels(self) -> Option<Texels> {
        let order = ORDERS.iter().find(|row| row.0 == self.channel_order);
        let &(_, channels, selections, types) = order?;
        Some(Texels {
            format: types.texels(channels, self.channel_type)?,
            selections,
            capability: types.capability(),
        })
    }

    /// Texels of the format in images of a geometry; `None` if devices lack them.
    pub(in crate::hsa) fn texels_of(self, geometry: u32) -> Option<Texels> {
        let exists = match geometry {
            geometry::BUFFER => {
                let of_images =
                    [channel_type::SHORT_555, channel_type::SHORT_565].contains(&self.channel_type);
                self.channel_order != order::SRGBA && !of_images
            }
            geometry::D2_DEPTH | geometry::D2_LAYERED_DEPTH => self.channel_order == order::DEPTH,
            _ => true,
        };
        self.texels().filter(|_| exists)
    }
}
