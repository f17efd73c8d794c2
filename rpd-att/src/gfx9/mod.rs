//! Streams of GFX9: CDNA and older.

mod decode;
mod token;
mod wave;

pub(crate) use decode::decode;
pub use token::{Gfx9Token, LENGTHS, Misc, token_length};
