//! Images and formatted buffers as GFX9 devices describe them: the descriptors that runtimes write and instructions
//! read, the formats of texels, and which texels a sample consists of.

mod descriptor;
mod sample;
mod texel;

pub use descriptor::{BufferView, Geometry, Image, Levels, Selection};
pub use sample::{AddressMode, Border, Sampler, Tap};
pub use texel::{Number, Texel, TexelFormat};

/// A descriptor that describes something the simulator does not have.
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
    /// A resource type that is not an image of one to three dimensions or array of them.
    #[error("resource type {0}")]
    Type(u32),
    /// Texels in tiles.
    #[error("swizzle mode {0}")]
    Tiling(u32),
    /// Levels of detail that the image in memory does not have.
    #[error("{0} mipmap levels")]
    Levels(u32),
    /// Another field whose meaning the simulator does not have.
    #[error("{name} {value}")]
    Field {
        /// What the field is.
        name: &'static str,
        /// Its value.
        value: u32,
    },
    /// An addressing mode of a sampler.
    #[error("addressing mode {0}")]
    AddressMode(u32),
    /// A border colour in a register.
    #[error("border colour in a register")]
    BorderColour,
    /// A selection of a channel.
    #[error("channel selection {0}")]
    Selection(u32),
}

/// Refuses a field that is not 0.
fn zero(name: &'static str, value: u32) -> Result<(), Unsupported> {
    match value {
        0 => Ok(()),
        value => Err(Unsupported::Field { name, value }),
    }
}

/// `count` bits of a descriptor's dword from bit `low` on.
fn field(word: u32, low: u32, count: u32) -> u32 {
    word >> low & ((1 << count) - 1)
}
