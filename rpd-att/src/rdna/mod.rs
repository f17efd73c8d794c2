//! Streams of GFX10, GFX11 and GFX12.

mod batch;
mod decode;
mod ops;
mod token;
mod wave;

pub(crate) use batch::Batch;
pub(crate) use decode::decode;
pub use token::RdnaKind;
pub(crate) use token::Tokens;
