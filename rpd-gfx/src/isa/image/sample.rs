//! Samplers: the texels of an image from which a sample is computed, and their weights.

use super::{Image, Texel, TexelFormat, Unsupported, field, zero};

/// The texel that a coordinate outside of an image refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressMode {
    /// The image is repeated.
    Wrap,
    /// The image is repeated, every other time mirrored.
    Mirror,
    /// The nearest texel at the edge.
    Clamp,
    /// The image mirrored at 0; beyond that, the nearest texel at the edge.
    MirrorOnce,
    /// The border colour.
    Border,
    /// The image mirrored at 0; beyond that, the border colour.
    MirrorOnceBorder,
}

const ADDRESS_MODES: [(u32, AddressMode); 6] = [
    (0, AddressMode::Wrap),
    (1, AddressMode::Mirror),
    (2, AddressMode::Clamp),
    (3, AddressMode::MirrorOnce),
    (6, AddressMode::Border),
    (7, AddressMode::MirrorOnceBorder),
];

impl AddressMode {
    /// Index of the texel that `at` refers to, in a dimension of `size` texels; `None` for the border.
    fn texel(self, at: i64, size: i64) -> Option<i64> {
        let mirrored = if at < 0 { -1 - at } else { at };
        Some(match self {
            Self::Wrap => at.rem_euclid(size),
            Self::Mirror => {
                let at = at.rem_euclid(2 * size);
                at.min(2 * size - 1 - at)
            }
            Self::Clamp => at.clamp(0, size - 1),
            Self::MirrorOnce => mirrored.min(size - 1),
            Self::Border => return (0..size).contains(&at).then_some(at),
            Self::MirrorOnceBorder => return (mirrored < size).then_some(mirrored),
        })
    }
}

/// Colour of the border.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Border {
    /// All channels 0.
    TransparentBlack,
    /// The fourth channel 1, the others 0.
    OpaqueBlack,
    /// All channels 1.
    OpaqueWhite,
}

impl Border {
    fn texel(self, format: TexelFormat) -> Texel {
        let one = format.one();
        match self {
            Self::TransparentBlack => [0; 4],
            Self::OpaqueBlack => [0, 0, 0, one],
            Self::OpaqueWhite => [one; 4],
        }
    }
}

/// A sampler: address modes, filters and coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// Address mode of each dimension.
    pub address: [AddressMode; 3],
    /// Whether coordinates from 0 to 1 cover the image. Otherwise they are in texels.
    pub normalized: bool,
    /// Whether samples are interpolated between texels in x and y.
    pub linear: bool,
    /// Whether samples are interpolated between texels in z.
    pub linear_z: bool,
    /// Colour of texels outside of the image, for address modes that use it.
    pub border: Border,
}

/// Number of bits of the fraction of a coordinate.
const FRACTION: u32 = 8;

/// A texel of a sample (`None` for the border), and its weight in units of 1/256.
pub type Tap = (Option<[i64; 3]>, u32);

impl Sampler {
    /// Encodes the descriptor.
    pub fn encode(&self) -> [u32; 4] {
        let mode = |mode: AddressMode| {
            let row = ADDRESS_MODES.iter().find(|row| row.1 == mode);
            row.map_or(0, |row| row.0)
        };
        let [x, y, z] = self.address.map(mode);
        let filter = u32::from(self.linear);
        let z_filter = if self.linear_z { 2 } else { 0 };
        let border = match self.border {
            Border::TransparentBlack => 0,
            Border::OpaqueBlack => 1,
            Border::OpaqueWhite => 2,
        };
        [
            x | y << 3 | z << 6 | u32::from(!self.normalized) << 15,
            0xfff << 12,
            filter << 20 | filter << 22 | z_filter << 24,
            border << 30,
        ]
    }

    /// Decodes a descriptor.
    ///
    /// # Errors
    /// When a field has a value that is not supported; the first such field.
    pub fn decode(words: [u32; 4]) -> Result<Self, Unsupported> {
        let mode = |low: u32| {
            let code = field(words[0], low, 3);
            let row = ADDRESS_MODES.iter().find(|row| row.0 == code);
            row.map(|row| row.1).ok_or(Unsupported::AddressMode(code))
        };
        zero("removal of sRGB's encoding", field(words[0], 20, 1))?;
        zero("truncation of coordinates", field(words[0], 27, 1))?;
        zero("filter mode", field(words[0], 29, 2))?;
        let (magnified, reduced) = (field(words[2], 20, 2), field(words[2], 22, 2));
        if magnified > 1 {
            // Anisotropic filtering with a ratio of one does not differ from other filtering.
            zero("anisotropy", field(words[0], 9, 3))?;
        }
        if magnified != reduced {
            // The filter depends on the coordinates of neighbouring lanes.
            return Err(Unsupported::Field {
                name: "filter for reduced images",
                value: reduced,
            });
        }
        Ok(Self {
            address: [mode(0)?, mode(3)?, mode(6)?],
            normalized: field(words[0], 15, 1) == 0,
            linear: magnified & 1 != 0,
            linear_z: field(words[2], 24, 2) == 2,
            border: match field(words[3], 30, 2) {
                0 => Border::TransparentBlack,
                1 => Border::OpaqueBlack,
                2 => Border::OpaqueWhite,
                _ => return Err(Unsupported::BorderColour),
            },
        })
    }

    /// Checks that a sampler, given by its descriptor, samples only the first level of an image.
    ///
    /// # Errors
    /// The filter between levels that it has instead.
    pub fn one_level(words: [u32; 4], image: &Image) -> Result<(), Unsupported> {
        // The level of a sample depends on the coordinates of neighbouring lanes.
        match image.level_count() {
            1 => Ok(()),
            _ => zero("filter between mipmap levels", field(words[2], 26, 2)),
        }
    }

    /// The texels of a sample at x, y, and z or layer. The weights add up to 256 for each interpolated dimension.
    /// Integers are not interpolated.
    pub fn taps(&self, image: &Image, at: [f32; 3]) -> impl Iterator<Item = Tap> + use<> {
        let dimensions = image.geometry.dimensions();
        let mut pairs = [[(Some(0), 1), (None, 0)]; 3];
        for (n, pair) in pairs.iter_mut().enumerate() {
            let size = i64::from(image.size[n]);
            if n < dimensions {
                let linear = if n == 2 { self.linear_z } else { self.linear };
                *pair = self.pair(n, at[n], size, linear && !image.format.is_integer());
            } else if n == 2 && image.geometry.is_layered() {
                let layer = at[2].round_ties_even() as i64;
                pair[0].0 = Some(layer.clamp(0, size - 1));
            }
        }
        (0..8).filter_map(move |corner: usize| {
            let [x, y, z] = [0, 1, 2].map(|n| pairs[n][corner >> n & 1]);
            let share = x.1 * y.1 * z.1;
            let texel = x.0.zip(y.0).zip(z.0).map(|((x, y), z)| [x, y, z]);
            (share != 0).then_some((texel, share))
        })
    }

    /// The texels in one dimension with their weights: 1 for a single texel, 256 in total for two.
    fn pair(&self, n: usize, at: f32, size: i64, linear: bool) -> [(Option<i64>, u32); 2] {
        let scale = if self.normalized { size as f32 } else { 1.0 };
        // The centres of texels are at half-integral coordinates. NaN counts as 0.
        let place = (at * scale * (1 << FRACTION) as f32).round_ties_even() as i64;
        let texel = |at| self.address[n].texel(at, size);
        if !linear {
            return [(texel(place >> FRACTION), 1), (None, 0)];
        }
        let place = place.saturating_sub(1 << (FRACTION - 1));
        let (first, part) = (place >> FRACTION, (place & 0xff) as u32);
        [
            (texel(first), (1 << FRACTION) - part),
            (texel(first + 1), part),
        ]
    }

    /// The border colour in the format of an image.
    pub fn border(&self, image: &Image) -> Texel {
        self.border.texel(image.format)
    }

    /// The weighted mean of texels.
    pub fn blend(parts: &[(Texel, u32)]) -> Texel {
        if let [(texel, _)] = parts {
            return *texel;
        }
        let all: u32 = parts.iter().map(|part| part.1).sum();
        std::array::from_fn(|n| {
            let sum: f64 = parts
                .iter()
                .map(|(texel, share)| f64::from(f32::from_bits(texel[n])) * f64::from(*share))
                .sum();
            ((sum / f64::from(all)) as f32).to_bits()
        })
    }
}
