//! Images and formatted buffers of GFX9 devices: descriptors, which runtimes write and instructions read, formats of
//! texels, and sampling.

mod descriptor;
mod sample;
mod texel;

pub use descriptor::{BufferView, Geometry, Image, Levels, Selection};
pub use sample::{AddressMode, Border, Sampler, Tap};
pub use texel::{Number, Texel, TexelFormat};

/// A feature in a descriptor that the simulator does not support.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// A combination of data and number format.
    #[error("data format {data} with number format {number}")]
    Format {
        /// The field of the data format.
        data: u32,
        /// The field of the number format.
        number: u32,
    },
    /// A resource type other than an image of one to three dimensions or an array of images.
    #[error("resource type {0}")]
    Type(u32),
    /// A tiling mode: texels that are not in rows.
    #[error("swizzle mode {0}")]
    Tiling(u32),
    /// A number of levels of detail that the image does not have in memory.
    #[error("{0} mipmap levels")]
    Levels(u32),
    /// Another field with a value that is not supported.
    #[error("{name} {value}")]
    Field {
        /// Name of the field.
        name: &'static str,
        /// Value of the field.
        value: u32,
    },
    /// Address mode of a sampler.
    #[error("addressing mode {0}")]
    AddressMode(u32),
    /// A border colour that is in a register.
    #[error("border colour in a register")]
    BorderColour,
    /// Selection of a channel.
    #[error("channel selection {0}")]
    Selection(u32),
}

/// Fails if a field is not 0.
fn zero(name: &'static str, value: u32) -> Result<(), Unsupported> {
    match value {
        0 => Ok(()),
        value => Err(Unsupported::Field { name, value }),
    }
}

/// Field of a descriptor's dword: `count` bits from bit `low` on.
fn field(word: u32, low: u32, count: u32) -> u32 {
    word >> low & ((1 << count) - 1)
}
