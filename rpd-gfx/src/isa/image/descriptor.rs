//! Encodes and decodes the descriptors of images (eight dwords) and of formatted buffers (four dwords).

use super::{Texel, TexelFormat, Unsupported, field, zero};

/// Source of a register channel: a channel of the texel, or a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Zero.
    Zero,
    /// One.
    One,
    /// A channel of the texel, 0 to 3.
    Channel(u8),
}

/// The default selections for a format: missing colour channels read 0, a missing fourth channel reads 1.
fn selections(format: TexelFormat) -> [Selection; 4] {
    std::array::from_fn(|n| match n {
        n if (n as u32) < format.channels() => Selection::Channel(n as u8),
        3 => Selection::One,
        _ => Selection::Zero,
    })
}

fn decode_selections(word: u32) -> Result<[Selection; 4], Unsupported> {
    let mut all = [Selection::Zero; 4];
    for (n, selection) in (0..).zip(&mut all) {
        *selection = match field(word, 3 * n, 3) {
            0 => Selection::Zero,
            1 => Selection::One,
            code @ 4..=7 => Selection::Channel(code as u8 - 4),
            code => return Err(Unsupported::Selection(code)),
        };
    }
    Ok(all)
}

fn encode_selections(selections: [Selection; 4]) -> u32 {
    let code = |selection| match selection {
        Selection::Zero => 0,
        Selection::One => 1,
        Selection::Channel(n) => 4 + u32::from(n),
    };
    (0..)
        .zip(selections)
        .fold(0, |word, (n, selection)| word | code(selection) << (3 * n))
}

/// Converts a texel to register values.
fn select(selections: [Selection; 4], one: u32, texel: Texel) -> Texel {
    selections.map(|selection| match selection {
        Selection::Zero => 0,
        Selection::One => one,
        Selection::Channel(n) => texel[usize::from(n)],
    })
}

/// Converts register values to a texel. If several registers have the same channel, the first counts.
fn deselect(selections: [Selection; 4], registers: Texel) -> Texel {
    let mut texel = [0; 4];
    for (selection, value) in selections.into_iter().zip(registers).rev() {
        if let Selection::Channel(n) = selection {
            texel[usize::from(n)] = value;
        }
    }
    texel
}

/// Dimensionality of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Geometry {
    /// One dimension.
    D1,
    /// Two dimensions.
    D2,
    /// Three dimensions.
    D3,
    /// An array of one-dimensional images.
    D1Layered,
    /// An array of two-dimensional images, or the faces of cubes.
    D2Layered,
}

const GEOMETRIES: [(u32, Geometry); 6] = [
    (8, Geometry::D1),
    (9, Geometry::D2),
    (10, Geometry::D3),
    (12, Geometry::D1Layered),
    (13, Geometry::D2Layered),
    // Cubes are only decoded; their faces are layers.
    (11, Geometry::D2Layered),
];

impl Geometry {
    /// Number of coordinates of a texel, without the layer.
    pub fn dimensions(self) -> usize {
        match self {
            Self::D1 | Self::D1Layered => 1,
            Self::D2 | Self::D2Layered => 2,
            Self::D3 => 3,
        }
    }

    /// Whether a layer follows the coordinates.
    pub fn is_layered(self) -> bool {
        matches!(self, Self::D1Layered | Self::D2Layered)
    }
}

/// Levels of detail that an image has in memory, and the range of them that instructions can address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// Number of the level in memory that instructions address as level 0.
    pub first: u32,
    /// Number of the last level in memory that instructions can address.
    pub last: u32,
    /// Number of the last level in memory.
    pub greatest: u32,
}

impl Levels {
    const ONE: Self = Self {
        first: 0,
        last: 0,
        greatest: 0,
    };
}

/// An image in memory. Rows are `pitch` texels apart; slices or layers follow each other without gaps. Levels of
/// detail lie one after the other within each slice or layer, all with the same pitch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// Address of the first texel, a multiple of 256 bytes.
    pub base: u64,
    /// Format of the texels.
    pub format: TexelFormat,
    /// Dimensionality.
    pub geometry: Geometry,
    /// Width and height in texels, and number of slices or layers, of the first level in memory; 1 for dimensions
    /// that the image does not have.
    pub size: [u32; 3],
    /// Distance of two rows in texels.
    pub pitch: u32,
    levels: Levels,
    /// Distance of two slices or layers in rows.
    slice_rows: u32,
    selections: [Selection; 4],
}

/// Number of rows that the levels before `level` take in a slice. `height` is that of the first level.
fn rows_before(level: u32, height: u32) -> u32 {
    let halved = |height: &u32| Some(height.div_ceil(2));
    std::iter::successors(Some(height), halved)
        .take(level as usize)
        .sum()
}

/// Distance of two rows in texels, for an image with several levels, whose descriptor has no field for it: rows begin
/// at multiples of 256 bytes.
fn pitch_of_levels(width: u32, format: TexelFormat) -> u32 {
    width.next_multiple_of(256 / format.bytes())
}

impl Image {
    /// An image with one level and default selections.
    pub fn new(
        base: u64,
        format: TexelFormat,
        geometry: Geometry,
        size: [u32; 3],
        pitch: u32,
    ) -> Self {
        Self {
            base,
            format,
            geometry,
            size,
            pitch,
            levels: Levels::ONE,
            slice_rows: size[1],
            selections: selections(format),
        }
    }

    /// The image with other selections of channels.
    pub fn with_selections(self, selections: [Selection; 4]) -> Self {
        Self { selections, ..self }
    }

    /// The image with levels of detail. With more than one level in memory, rows begin at multiples of 256 bytes.
    pub fn with_levels(self, levels: Levels) -> Self {
        let [width, height, _] = self.size;
        let (pitch, slice_rows) = match levels.greatest {
            0 => (self.pitch, height),
            greatest => (
                pitch_of_levels(width, self.format),
                rows_before(greatest + 1, height),
            ),
        };
        Self {
            levels,
            pitch,
            slice_rows,
            ..self
        }
    }

    /// Number of levels that instructions can address.
    pub fn level_count(&self) -> u32 {
        self.levels.last - self.levels.first + 1
    }

    /// One of the levels that instructions can address, as an image with one level; `None` beyond the last.
    pub fn level(&self, number: u32) -> Option<Self> {
        if number >= self.level_count() {
            return None;
        }
        let level = self.levels.first + number;
        let rows = rows_before(level, self.size[1]);
        let row_bytes = u64::from(self.pitch) * u64::from(self.format.bytes());
        let dimensions = self.geometry.dimensions();
        let mut size = self.size;
        for texels in &mut size[..dimensions] {
            *texels = (*texels >> level).max(1);
        }
        Some(Self {
            base: self.base + u64::from(rows) * row_bytes,
            size,
            levels: Levels::ONE,
            ..*self
        })
    }

    /// Encodes the descriptor.
    pub fn encode(&self) -> [u32; 8] {
        let (data, number) = self.format.encode();
        let geometry = GEOMETRIES.iter().find(|row| row.1 == self.geometry);
        let geometry = geometry.map_or(0, |row| row.0);
        let [width, height, depth] = self.size.map(|texels| texels.saturating_sub(1));
        // With several levels, the field holds the height of the slice.
        let pitch = match self.levels.greatest {
            0 => self.pitch,
            _ => self.slice_rows,
        };
        [
            (self.base >> 8) as u32,
            (self.base >> 40) as u32 & 0xff | data << 20 | number << 26,
            width & 0x3fff | (height & 0x3fff) << 14,
            encode_selections(self.selections)
                | self.levels.first << 12
                | self.levels.last << 16
                | geometry << 28,
            depth & 0x1fff | (pitch.saturating_sub(1) & 0xffff) << 13,
            self.levels.greatest << 28,
            0,
            0,
        ]
    }

    /// Decodes a descriptor.
    ///
    /// # Errors
    /// When a field has a value that is not supported; the first such field.
    pub fn decode(words: [u32; 8]) -> Result<Self, Unsupported> {
        let kind = field(words[3], 28, 4);
        let geometry = GEOMETRIES.iter().find(|row| row.0 == kind);
        let geometry = geometry.ok_or(Unsupported::Type(kind))?.1;
        match field(words[3], 20, 5) {
            0 => {}
            mode => return Err(Unsupported::Tiling(mode)),
        }
        zero("least level of detail", field(words[1], 8, 12))?;
        zero("first layer", field(words[5], 0, 13))?;
        zero("pitch of layers", field(words[5], 13, 4))?;
        zero("compression", field(words[6], 21, 1))?;
        let levels = Levels {
            first: field(words[3], 12, 4),
            last: field(words[3], 16, 4),
            greatest: field(words[5], 28, 4),
        };
        if levels.first > levels.last || levels.last > levels.greatest {
            return Err(Unsupported::Levels(levels.last + 1));
        }
        let mut size = [
            field(words[2], 0, 14) + 1,
            field(words[2], 14, 14) + 1,
            field(words[4], 0, 13) + 1,
        ];
        if geometry.dimensions() == 1 {
            size[1] = 1;
        }
        let base = u64::from(words[0]) << 8 | u64::from(field(words[1], 0, 8)) << 40;
        let format = TexelFormat::decode(field(words[1], 20, 6), field(words[1], 26, 4))?;
        let pitch = field(words[4], 13, 16) + 1;
        let image = Self::new(base, format, geometry, size, pitch)
            .with_selections(decode_selections(words[3])?)
            .with_levels(levels);
        if levels.greatest != 0 && !format.bytes().is_power_of_two() {
            return Err(Unsupported::Levels(levels.greatest + 1));
        }
        if levels.greatest != 0 && image.slice_rows != pitch {
            return Err(Unsupported::Field {
                name: "height of all levels",
                value: pitch,
            });
        }
        Ok(image)
    }

    /// Changes the descriptor of another driver: the image at `base` gets this format and these selections.
    ///
    /// # Errors
    /// When the texels of the descriptor's format have another size.
    pub fn adopt(
        mut words: [u32; 8],
        base: u64,
        format: TexelFormat,
        selections: [Selection; 4],
        line: Option<Geometry>,
    ) -> Result<[u32; 8], Unsupported> {
        let given = (field(words[1], 20, 6), field(words[1], 26, 4));
        // A 32-bit fraction is a 24-bit depth value, which the runtime treats as three bytes.
        let as_large = TexelFormat::bytes_of(given.0) == Some(format.bytes()) && given != (4, 0);
        if !as_large {
            let (data, number) = given;
            return Err(Unsupported::Format { data, number });
        }
        let (data, number) = format.encode();
        // The descriptor holds the address of metadata relative to the image.
        let metadata = u64::from(words[7]) << 8 | u64::from(field(words[5], 17, 8)) << 40;
        let metadata = base.wrapping_add(metadata);
        words[0] = (base >> 8) as u32;
        put(&mut words[1], 0, 8, (base >> 40) as u32);
        put(&mut words[1], 20, 6, data);
        put(&mut words[1], 26, 4, number);
        put(&mut words[3], 0, 12, encode_selections(selections));
        if let Some(row) = GEOMETRIES.iter().find(|row| Some(row.1) == line) {
            put(&mut words[3], 28, 4, row.0);
        }
        put(&mut words[5], 17, 8, (metadata >> 40) as u32);
        words[7] = (metadata >> 8) as u32;
        Ok(words)
    }

    /// Distance of two slices or layers in rows.
    pub fn slice_rows(&self) -> u32 {
        self.slice_rows
    }

    /// Address of a texel of the first level in memory, by x, y, and z or layer; `None` outside of the image.
    pub fn address(&self, [x, y, z]: [i64; 3]) -> Option<u64> {
        let inside = |at: i64, n: usize| (0..i64::from(self.size[n])).contains(&at);
        if !(inside(x, 0) && inside(y, 1) && inside(z, 2)) {
            return None;
        }
        let row = z * i64::from(self.slice_rows) + y;
        let texel = row * i64::from(self.pitch) + x;
        let bytes = i64::from(self.format.bytes());
        Some(self.base.wrapping_add_signed(texel * bytes))
    }

    /// Converts a texel to register values.
    pub fn select(&self, texel: Texel) -> Texel {
        select(self.selections, self.format.one(), texel)
    }

    /// Converts register values to a texel.
    pub fn deselect(&self, registers: Texel) -> Texel {
        deselect(self.selections, registers)
    }
}

/// Replaces `count` bits of a dword, from bit `low` on.
fn put(word: &mut u32, low: u32, count: u32, value: u32) {
    let mask = ((1 << count) - 1) << low;
    *word = *word & !mask | value << low & mask;
}

/// Format and channel selections of a formatted buffer, as its descriptor has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferView {
    /// Format of the elements.
    pub format: TexelFormat,
    selections: [Selection; 4],
}

impl BufferView {
    /// A format with default selections.
    pub fn new(format: TexelFormat) -> Self {
        Self {
            format,
            selections: selections(format),
        }
    }

    /// The view with other selections of channels.
    pub fn with_selections(self, selections: [Selection; 4]) -> Self {
        Self { selections, ..self }
    }

    /// Encodes the descriptor of a buffer of `count` elements at `base`.
    pub fn encode(&self, base: u64, count: u32) -> [u32; 4] {
        let (data, number) = self.format.encode();
        [
            base as u32,
            (base >> 32) as u32 & 0xffff | self.format.bytes() << 16,
            count,
            encode_selections(self.selections) | number << 12 | data << 15,
        ]
    }

    /// Changes the descriptor of another driver: the buffer at `base` gets this format and these selections.
    ///
    /// # Errors
    /// When the descriptor's elements are not contiguous; the field that says so.
    pub fn adopt(&self, mut words: [u32; 4], base: u64) -> Result<[u32; 4], Unsupported> {
        zero("swizzle of records", field(words[1], 30, 2))?;
        zero("index by lane", field(words[3], 23, 1))?;
        let [low, high, _, last] = self.encode(base, 0);
        words[0] = low;
        words[1] = high;
        put(&mut words[3], 0, 19, last);
        Ok(words)
    }

    /// Decodes the fourth dword of a descriptor.
    ///
    /// # Errors
    /// When a field has a value that is not supported; the first such field.
    pub fn decode(word: u32) -> Result<Self, Unsupported> {
        Self::typed(word, field(word, 15, 4), field(word, 12, 3))
    }

    /// Decodes the fourth dword of a descriptor, with the format from the instruction (`tbuffer_*`) instead of the
    /// descriptor's.
    ///
    /// # Errors
    /// As of [`Self::decode`].
    pub fn typed(word: u32, data: u32, number: u32) -> Result<Self, Unsupported> {
        Ok(Self {
            format: TexelFormat::decode(data, number)?,
            selections: decode_selections(word)?,
        })
    }

    /// Converts an element to register values.
    pub fn select(&self, texel: Texel) -> Texel {
        select(self.selections, self.format.one(), texel)
    }

    /// Converts register values to an element.
    pub fn deselect(&self, registers: Texel) -> Texel {
        deselect(self.selections, registers)
    }
}
