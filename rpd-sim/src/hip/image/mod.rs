//! Arrays, textures and surfaces.

pub(crate) mod array;
pub(crate) mod array_api;
pub(crate) mod array_copy_api;
pub(crate) mod mipmapped_api;
pub(crate) mod texture;
pub(crate) mod texture_api;
pub(crate) mod texture_reference_api;
pub(crate) mod types;
