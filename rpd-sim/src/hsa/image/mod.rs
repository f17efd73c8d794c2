//! Descriptions of images and samplers by programs, and the formats of texels.

pub(super) mod format;

pub(crate) use format::ImageFormat;

/// `hsa_ext_image_geometry_t`.
pub(crate) mod geometry {
    pub(crate) const D1: u32 = 0;
    pub(crate) const D2: u32 = 1;
    pub(crate) const D3: u32 = 2;
    pub(crate) const D1_LAYERED: u32 = 3;
    pub(crate) const D2_LAYERED: u32 = 4;
    pub(crate) const BUFFER: u32 = 5;
    pub(crate) const D2_DEPTH: u32 = 6;
    pub(crate) const D2_LAYERED_DEPTH: u32 = 7;
}

/// `hsa_ext_image_descriptor_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageDescriptor {
    pub(crate) geometry: u32,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) layers: usize,
    pub(crate) format: ImageFormat,
}

/// `hsa_ext_image_data_info_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ImageDataInfo {
    /// Size in bytes of the memory that the image needs.
    pub(crate) size: usize,
    /// Alignment in bytes of the memory that the image needs.
    pub(crate) alignment: usize,
}

/// `hsa_ext_sampler_descriptor_v2_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplerDescriptor {
    /// Range of coordinates. 0: numbers of texels, 1: from 0 to 1.
    pub(crate) coordinate_mode: u32,
    /// Filter. 0: the nearest texel, 1: interpolation.
    pub(crate) filter_mode: u32,
    /// Address modes of x, y and z, values of `hsa_ext_sampler_addressing_mode_t`.
    pub(crate) address_modes: [u32; 3],
}
