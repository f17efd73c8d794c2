//! Structs of the HIP API about arrays, textures and surfaces, as programs pass them.

use core::ffi::{c_int, c_void};

pub(crate) use crate::api::types::ChannelFormatDesc;

/// `HIP_ARRAY_DESCRIPTOR`: size and format of an array of up to two dimensions.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrayDescriptor {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) format: u32,
    pub(crate) channels: u32,
}

/// `HIP_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array3dDescriptor {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) format: u32,
    pub(crate) channels: u32,
    pub(crate) flags: u32,
}

/// Flags with which arrays are created (`hipArray*`).
pub(crate) mod array_flag {
    pub(crate) const LAYERED: u32 = 1;
    pub(crate) const SURFACE: u32 = 2;
    pub(crate) const GATHER: u32 = 8;
}

/// `hipResourceType`: kind of memory that a texture or surface object reads.
pub(crate) mod resource_type {
    pub(crate) const ARRAY: u32 = 0;
    pub(crate) const MIPMAPPED_ARRAY: u32 = 1;
    pub(crate) const LINEAR: u32 = 2;
    pub(crate) const PITCH_2D: u32 = 3;
}

/// The member of [`AnyResource`] for linear memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinearResource {
    pub(crate) pointer: *mut c_void,
    pub(crate) channels: ChannelFormatDesc,
    pub(crate) bytes: usize,
}

/// The member of [`AnyResource`] for pitched memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PitchedResource {
    pub(crate) pointer: *mut c_void,
    pub(crate) channels: ChannelFormatDesc,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Bytes from one row to the next.
    pub(crate) pitch: usize,
}

/// The resource by type in [`ResourceDesc`].
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union AnyResource {
    /// `hipArray_t` or `hipMipmappedArray_t`, by the type of the resource.
    pub(crate) array: *mut c_void,
    pub(crate) linear: LinearResource,
    pub(crate) pitched: PitchedResource,
}

/// `hipResourceDesc`: the memory of a texture or surface object.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ResourceDesc {
    /// Kind of the resource, a `hipResourceType`.
    pub(crate) kind: u32,
    pub(crate) any: AnyResource,
}

/// The member of [`AnyDrvResource`] for linear memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrvLinearResource {
    pub(crate) pointer: *mut c_void,
    pub(crate) format: u32,
    pub(crate) channels: u32,
    pub(crate) bytes: usize,
}

/// The member of [`AnyDrvResource`] for pitched memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrvPitchedResource {
    pub(crate) pointer: *mut c_void,
    pub(crate) format: u32,
    pub(crate) channels: u32,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Bytes from one row to the next.
    pub(crate) pitch: usize,
}

/// The resource by type in [`DrvResourceDesc`].
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union AnyDrvResource {
    /// `hipArray_t` or `hipMipmappedArray_t`, by the type of the resource.
    pub(crate) array: *mut c_void,
    pub(crate) linear: DrvLinearResource,
    pub(crate) pitched: DrvPitchedResource,
    pub(crate) reserved: [c_int; 32],
}

/// `HIP_RESOURCE_DESC`: the memory of a texture object, for the functions of the driver's style.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DrvResourceDesc {
    /// Valid member of the union, a `HIPresourcetype`.
    pub(crate) kind: u32,
    pub(crate) any: AnyDrvResource,
    pub(crate) flags: u32,
}

/// `hipResourceViewDesc`: the part and format in which a texture object sees its memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ViewDesc {
    /// Format of elements, a `hipResourceViewFormat`.
    pub(crate) format: u32,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) first_level: u32,
    pub(crate) last_level: u32,
    pub(crate) first_layer: u32,
    pub(crate) last_layer: u32,
}

/// `HIP_RESOURCE_VIEW_DESC`: part and format in which a texture object sees its memory, for the functions of the
/// driver's style.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DrvViewDesc {
    pub(crate) view: ViewDesc,
    pub(crate) reserved: [u32; 16],
}

/// `hipTextureDesc`: addressing, filter and read mode of a texture object.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextureDesc {
    pub(crate) address: [u32; 3],
    pub(crate) filter: u32,
    /// Read mode. 0: elements as they are, 1: integers as fractions.
    pub(crate) read: u32,
    pub(crate) srgb: c_int,
    pub(crate) border: [f32; 4],
    pub(crate) normalized: c_int,
    pub(crate) anisotropy: u32,
    pub(crate) level_filter: u32,
    pub(crate) level_bias: f32,
    pub(crate) level_min: f32,
    pub(crate) level_max: f32,
}

/// `textureReference`: a texture as a variable of the program, bound to memory at run time.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextureReference {
    pub(crate) normalized: c_int,
    /// Read mode. 0: elements as they are, 1: integers as fractions.
    pub(crate) read: u32,
    pub(crate) filter: u32,
    pub(crate) address: [u32; 3],
    pub(crate) channels: ChannelFormatDesc,
    pub(crate) srgb: c_int,
    pub(crate) anisotropy: u32,
    pub(crate) level_filter: u32,
    pub(crate) level_bias: f32,
    pub(crate) level_min: f32,
    pub(crate) level_max: f32,
    /// Address of the texture object that is bound to the reference, or 0.
    pub(crate) object: usize,
    pub(crate) channel_count: c_int,
    /// Format of elements, a `hipArray_Format`.
    pub(crate) format: u32,
}

/// `HIP_TEXTURE_DESC`: addressing and filter for the functions of the driver's style.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DrvTextureDesc {
    pub(crate) address: [u32; 3],
    pub(crate) filter: u32,
    /// Sum of values of [`texture_flag`].
    pub(crate) flags: u32,
    pub(crate) anisotropy: u32,
    pub(crate) level_filter: u32,
    pub(crate) level_bias: f32,
    pub(crate) level_min: f32,
    pub(crate) level_max: f32,
    pub(crate) border: [f32; 4],
    pub(crate) reserved: [c_int; 12],
}

/// Flags of textures of the driver functions.
pub(crate) mod texture_flag {
    pub(crate) const AS_INTEGER: u32 = 1;
    pub(crate) const NORMALIZED: u32 = 2;
    pub(crate) const SRGB: u32 = 0x10;
}

/// `hipTextureAddressMode`: value that coordinates outside of the texture read.
pub(crate) mod address_mode {
    pub(crate) const WRAP: u32 = 0;
    pub(crate) const CLAMP: u32 = 1;
    pub(crate) const MIRROR: u32 = 2;
    pub(crate) const BORDER: u32 = 3;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    #[test]
    fn image_types_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<ArrayDescriptor>(), 24);
        assert_eq!(size_of::<Array3dDescriptor>(), 40);
        assert_eq!(size_of::<ResourceDesc>(), 64);
        assert_eq!(size_of::<DrvResourceDesc>(), 144);
        assert_eq!(size_of::<ViewDesc>(), 48);
        assert_eq!(size_of::<DrvViewDesc>(), 112);
        assert_eq!(size_of::<TextureDesc>(), 64);
        assert_eq!(size_of::<DrvTextureDesc>(), 104);
        assert_eq!(size_of::<TextureReference>(), 88);
        assert_eq!(std::mem::offset_of!(TextureReference, object), 72);
    }
}
