//! The functions of the API for texture and surface objects.

use core::ffi::c_void;

use crate::hip::error::{HipResult, api, argument, code, put};
use crate::hip::image::array::Elements;
use crate::hip::image::texture;
use crate::hip::image::types::{
    AnyDrvResource, AnyResource, DrvLinearResource, DrvPitchedResource, DrvResourceDesc,
    DrvTextureDesc, DrvViewDesc, LinearResource, PitchedResource, ResourceDesc, TextureDesc,
    ViewDesc, resource_type, texture_flag,
};

/// Makes an object and writes its address.
///
/// # Safety
/// As for [`put`].
unsafe fn make(out: *mut *mut c_void, make: impl FnOnce() -> HipResult<*mut c_void>) -> HipResult {
    if out.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: the caller's pointer, not null.
    unsafe { put(out, make()?) }
}

pub(crate) unsafe extern "C" fn hipCreateTextureObject(
    out: *mut *mut c_void,
    resource: *const ResourceDesc,
    description: *const TextureDesc,
    view: *const ViewDesc,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe {
        make(out, || {
            let view = (!view.is_null()).then(|| argument(view)).transpose()?;
            texture::make(&argument(resource)?, &argument(description)?, view.as_ref())
        })
    })
}

pub(crate) unsafe extern "C" fn hipDestroyTextureObject(object: *mut c_void) -> u32 {
    api(|| texture::destroy(object))
}

pub(crate) unsafe extern "C" fn hipGetTextureObjectResourceDesc(
    out: *mut ResourceDesc,
    object: *mut c_void,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(out, texture::find(object)?.resource) })
}

/// The description and view of a texture object.
fn described(object: *const c_void) -> HipResult<(TextureDesc, ViewDesc)> {
    texture::find(object)?.texture.ok_or(code::INVALID_VALUE)
}

pub(crate) unsafe extern "C" fn hipGetTextureObjectTextureDesc(
    out: *mut TextureDesc,
    object: *mut c_void,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(out, described(object)?.0) })
}

pub(crate) unsafe extern "C" fn hipGetTextureObjectResourceViewDesc(
    out: *mut ViewDesc,
    object: *mut c_void,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(out, described(object)?.1) })
}

pub(crate) unsafe extern "C" fn hipCreateSurfaceObject(
    out: *mut *mut c_void,
    resource: *const ResourceDesc,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { make(out, || texture::make_surface(&argument(resource)?)) })
}

pub(crate) unsafe extern "C" fn hipDestroySurfaceObject(object: *mut c_void) -> u32 {
    api(|| texture::destroy(object))
}

/// Converts a resource of the driver's style to the form of the runtime's functions.
fn from_driver(resource: &DrvResourceDesc) -> HipResult<ResourceDesc> {
    let channels = |format, count| Elements::new(format, count).map(Elements::to_channels);
    // SAFETY: each member by the type of the resource; all types have handles at the same place.
    let any = unsafe {
        match resource.kind {
            resource_type::LINEAR => {
                let linear = resource.any.linear;
                let channels = channels(linear.format, linear.channels)?;
                AnyResource {
                    linear: LinearResource {
                        pointer: linear.pointer,
                        channels,
                        bytes: linear.bytes,
                    },
                }
            }
            resource_type::PITCH_2D => {
                let pitched = resource.any.pitched;
                let channels = channels(pitched.format, pitched.channels)?;
                AnyResource {
                    pitched: PitchedResource {
                        pointer: pitched.pointer,
                        channels,
                        width: pitched.width,
                        height: pitched.height,
                        pitch: pitched.pitch,
                    },
                }
            }
            _ => AnyResource {
                array: resource.any.array,
            },
        }
    };
    Ok(ResourceDesc {
        kind: resource.kind,
        any,
    })
}

/// Converts a resource to the form of the driver's style, the reverse of [`from_driver`].
fn to_driver(resource: &ResourceDesc) -> HipResult<DrvResourceDesc> {
    let mut any = AnyDrvResource { reserved: [0; 32] };
    // SAFETY: each member by the type of the resource; all types have handles at the same place.
    unsafe {
        match resource.kind {
            resource_type::LINEAR => {
                let linear = resource.any.linear;
                let elements = Elements::from_channels(&linear.channels)?;
                any.linear = DrvLinearResource {
                    pointer: linear.pointer,
                    format: elements.format,
                    channels: elements.channels,
                    bytes: linear.bytes,
                };
            }
            resource_type::PITCH_2D => {
                let pitched = resource.any.pitched;
                let elements = Elements::from_channels(&pitched.channels)?;
                any.pitched = DrvPitchedResource {
                    pointer: pitched.pointer,
                    format: elements.format,
                    channels: elements.channels,
                    width: pitched.width,
                    height: pitched.height,
                    pitch: pitched.pitch,
                };
            }
            _ => any.array = resource.any.array,
        }
    }
    Ok(DrvResourceDesc {
        kind: resource.kind,
        any,
        flags: 0,
    })
}

pub(crate) unsafe extern "C" fn hipTexObjectCreate(
    out: *mut *mut c_void,
    resource: *const DrvResourceDesc,
    description: *const DrvTextureDesc,
    view: *const DrvViewDesc,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe {
        make(out, || {
            let given = argument(description)?;
            let is_set = |flag| i32::from(given.flags & flag != 0);
            let description = TextureDesc {
                address: given.address,
                filter: given.filter,
                read: u32::from(given.flags & texture_flag::AS_INTEGER == 0),
                srgb: is_set(texture_flag::SRGB),
                border: given.border,
                normalized: is_set(texture_flag::NORMALIZED),
                anisotropy: given.anisotropy,
                level_filter: given.level_filter,
                level_bias: given.level_bias,
                level_min: given.level_min,
                level_max: given.level_max,
            };
            let view = (!view.is_null()).then(|| argument(view)).transpose()?;
            let resource = from_driver(&argument(resource)?)?;
            texture::make(&resource, &description, view.map(|view| view.view).as_ref())
        })
    })
}

pub(crate) unsafe extern "C" fn hipTexObjectDestroy(object: *mut c_void) -> u32 {
    api(|| texture::destroy(object))
}

pub(crate) unsafe extern "C" fn hipTexObjectGetResourceDesc(
    out: *mut DrvResourceDesc,
    object: *mut c_void,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(out, to_driver(&texture::find(object)?.resource)?) })
}

pub(crate) unsafe extern "C" fn hipTexObjectGetTextureDesc(
    out: *mut DrvTextureDesc,
    object: *mut c_void,
) -> u32 {
    api(|| {
        let of = described(object)?.0;
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        let flags = flag(of.read == 0, texture_flag::AS_INTEGER)
            | flag(of.normalized != 0, texture_flag::NORMALIZED)
            | flag(of.srgb != 0, texture_flag::SRGB);
        let description = DrvTextureDesc {
            address: of.address,
            filter: of.filter,
            flags,
            anisotropy: of.anisotropy,
            level_filter: of.level_filter,
            level_bias: of.level_bias,
            level_min: of.level_min,
            level_max: of.level_max,
            border: of.border,
            reserved: [0; 12],
        };
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, description) }
    })
}

pub(crate) unsafe extern "C" fn hipTexObjectGetResourceViewDesc(
    out: *mut DrvViewDesc,
    object: *mut c_void,
) -> u32 {
    api(|| {
        let view = DrvViewDesc {
            view: described(object)?.1,
            reserved: [0; 16],
        };
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, view) }
    })
}
