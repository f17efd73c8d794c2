//! Streams of GFX9: CDNA and older.

mod decode;
mod token;
mod wave;

pub(crate) use decode::{decode, tokens};
pub use token::{Gfx9Token, Misc, Place};
