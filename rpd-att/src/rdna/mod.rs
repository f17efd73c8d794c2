//! Streams of GFX10, GFX11 and GFX12.

mod decode;
mod ops;
mod token;
mod wave;

pub(crate) use decode::decode;
pub use token::RdnaKind;
pub(crate) use token::Tokens;
