//! Texture and surface objects: the descriptors that kernels read, in host memory that devices can access.

use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use rpd_gfx::isa::image::{AddressMode, Border, BufferView, Geometry, Image, Sampler};

use super::mipmapped_api;
use crate::hip::error::{HipResult, code};
use crate::hip::hsa;
use crate::hip::image::array::{Array, Elements, device_has_images, texels};
use crate::hip::image::texture_reference_api::ModuleReference;
use crate::hip::image::types::{
    LinearResource, PitchedResource, ResourceDesc, TextureDesc, ViewDesc, address_mode, array_flag,
    resource_type,
};
use crate::hip::memory;
use crate::hip::runtime::{self, read, write};
use crate::hsa::image_objects::{ImageWords, ROW_ALIGNMENT};

/// Arrays, and the objects that read them.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// Arrays that were created and not freed, by handle.
    pub(crate) arrays: RwLock<HashMap<usize, Arc<Array>>>,
    /// Texture and surface objects, by address.
    objects: RwLock<HashMap<usize, TextureObject>>,
    /// Texture references of modules, by address.
    pub(crate) references: RwLock<HashMap<usize, ModuleReference>>,
}

impl Images {
    /// Removes the objects of a device.
    pub(crate) fn reset(&self, device: usize) {
        write(&self.arrays).retain(|_, array| array.device != device);
        let gone: Vec<_> = write(&self.objects)
            .extract_if(|_, object| object.device == device)
            .collect();
        for (address, _) in gone {
            // Memory that HSA does not find has been freed already.
            let _ = hsa::free(address);
        }
    }
}

/// A texture or surface object.
#[derive(Clone, Copy)]
pub(crate) struct TextureObject {
    device: usize,
    pub(crate) resource: ResourceDesc,
    /// Descriptions of a texture object; `None` for a surface object.
    pub(crate) texture: Option<(TextureDesc, ViewDesc)>,
}

impl std::fmt::Debug for TextureObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextureObject")
            .field("resource", &self.resource.kind)
            .field("texture", &self.texture)
            .finish_non_exhaustive()
    }
}

/// Words of an object in memory, as instructions read them.
#[repr(C)]
struct ObjectWords {
    image: ImageWords,
    sampler: [u32; 8],
}

impl ObjectWords {
    fn new(image: ImageWords) -> Self {
        let sampler = [0; 8];
        Self { image, sampler }
    }

    /// Puts the words where devices read them, and makes the object known by the words' address.
    fn make(self, object: TextureObject) -> HipResult<*mut c_void> {
        let runtime = runtime::get()?;
        let base = hsa::allocate(runtime.host.fine, size_of::<Self>())?;
        hsa::allow_access(&runtime.gpu_agents(), base)?;
        // SAFETY: memory of this size was just allocated, on the host, at whole pages.
        unsafe { (base as *mut Self).write(self) };
        write(&runtime.images.objects).insert(base, object);
        Ok(base as *mut c_void)
    }
}

/// The texture object at an address.
pub(crate) fn find(texture: *const c_void) -> HipResult<TextureObject> {
    device_has_images(runtime::current()?)?;
    read(&runtime::get()?.images.objects)
        .get(&(texture as usize))
        .copied()
        .ok_or(code::INVALID_VALUE)
}

/// Destroys an object when no kernel uses it any more. Null is ignored.
pub(crate) fn destroy(object: *const c_void) -> HipResult {
    if object.is_null() {
        return Ok(());
    }
    let runtime = runtime::get()?;
    device_has_images(runtime::current()?)?;
    let found = write(&runtime.images.objects).remove(&(object as usize));
    let device = &runtime.devices[found.ok_or(code::INVALID_VALUE)?.device];
    for stream in device.live_streams() {
        stream.synchronize()?;
    }
    hsa::free(object as usize)
}

/// Makes a surface object that reads and writes an array.
pub(crate) fn make_surface(resource: &ResourceDesc) -> HipResult<*mut c_void> {
    let device = runtime::current()?;
    device_has_images(device)?;
    if resource.kind != resource_type::ARRAY {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: the type of the resource is array.
    let array = Array::find(unsafe { resource.any.array }).map_err(|_| code::INVALID_VALUE)?;
    let flags = array.descriptor.flags;
    if flags != 0 && flags & array_flag::SURFACE == 0 {
        return Err(code::INVALID_VALUE);
    }
    let format = array.elements.image_format(false, false);
    let words = ImageWords::from_image(&array.image(format)?, format);
    ObjectWords::new(words).make(TextureObject {
        device: device.ordinal,
        resource: *resource,
        texture: None,
    })
}

/// Makes a texture object of a resource.
pub(crate) fn make(
    resource: &ResourceDesc,
    texture: &TextureDesc,
    view: Option<&ViewDesc>,
) -> HipResult<*mut c_void> {
    let device = runtime::current()?;
    device_has_images(device)?;
    let can_be_viewed = matches!(
        resource.kind,
        resource_type::ARRAY | resource_type::MIPMAPPED_ARRAY
    );
    if view.is_some() && !can_be_viewed {
        return Err(code::INVALID_VALUE);
    }
    // The runtime has neither on any device.
    if texture.anisotropy != 0 || texture.level_bias != 0.0 {
        return Err(code::NOT_SUPPORTED);
    }
    let fractions = texture.read == 1;
    let srgb = texture.srgb == 1;
    // SAFETY: each member by the type of the resource.
    let image = unsafe {
        match resource.kind {
            resource_type::ARRAY => of_array(resource.any.array, texture, view)?,
            resource_type::LINEAR => of_linear(&resource.any.linear, fractions, srgb)?,
            resource_type::PITCH_2D => of_pitched(&resource.any.pitched, fractions, srgb)?,
            resource_type::MIPMAPPED_ARRAY => return Err(mipmapped_api::not_supported()),
            _ => return Err(code::INVALID_VALUE),
        }
    };
    let sampler = sampler(texture, resource.kind)?.encode();
    let mut words = ObjectWords::new(image);
    words.sampler[..4].copy_from_slice(&sampler);
    words.make(TextureObject {
        device: device.ordinal,
        resource: *resource,
        texture: Some((*texture, view.copied().unwrap_or_default())),
    })
}

fn of_array(
    handle: *const c_void,
    texture: &TextureDesc,
    view: Option<&ViewDesc>,
) -> HipResult<ImageWords> {
    let array = Array::find(handle).map_err(|_| code::INVALID_VALUE)?;
    if array.descriptor.depth > 0 && texture.filter == 1 {
        // As in the runtime for this device, whose sampler does not interpolate in depth.
        return Err(code::NOT_SUPPORTED);
    }
    let (fractions, srgb) = (texture.read == 1, texture.srgb == 1);
    let elements = match view {
        Some(view) => Elements::from_view(view.format)?,
        None => array.elements,
    };
    if elements.bytes() != array.elements.bytes() {
        return Err(code::INVALID_VALUE);
    }
    let format = elements.image_format(fractions, srgb);
    Ok(ImageWords::from_image(&array.image(format)?, format))
}

/// The address that a device has for a program's memory of this size.
fn device_address(pointer: *const c_void, bytes: usize) -> HipResult<u64> {
    let address = pointer as usize;
    if address == 0 || !address.is_multiple_of(ROW_ALIGNMENT) {
        return Err(code::INVALID_VALUE);
    }
    let place = memory::find(address)?.ok_or(code::INVALID_VALUE)?;
    if !place.holds(address, bytes) {
        return Err(code::INVALID_VALUE);
    }
    Ok(place.address as u64)
}

fn of_linear(linear: &LinearResource, fractions: bool, srgb: bool) -> HipResult<ImageWords> {
    let elements = Elements::from_channels(&linear.channels)?;
    let base = device_address(linear.pointer, linear.bytes)?;
    let count = linear.bytes / elements.bytes();
    let count = u32::try_from(count).map_err(|_| code::INVALID_VALUE)?;
    let format = elements.image_format(fractions, srgb);
    let view = BufferView::new(texels(format)?);
    Ok(ImageWords::from_buffer(&view, base, count, format))
}

fn of_pitched(pitched: &PitchedResource, fractions: bool, srgb: bool) -> HipResult<ImageWords> {
    const MAX: usize = 16384;
    let elements = Elements::from_channels(&pitched.channels)?;
    let (width, height) = (pitched.width, pitched.height);
    let sizes_fit = (1..MAX).contains(&width) && (1..MAX).contains(&height);
    let row_texels = pitched.pitch / elements.bytes();
    let pitch_fits =
        pitched.pitch.is_multiple_of(ROW_ALIGNMENT) && (width..=1 << 16).contains(&row_texels);
    if !sizes_fit || !pitch_fits {
        return Err(code::INVALID_VALUE);
    }
    let row = width * elements.bytes();
    let base = device_address(pitched.pointer, pitched.pitch * (height - 1) + row)?;
    let format = elements.image_format(fractions, srgb);
    let size = [width as u32, height as u32, 1];
    let image = Image::new(base, texels(format)?, Geometry::D2, size, row_texels as u32);
    Ok(ImageWords::from_image(&image, format))
}

/// The sampler of a texture. All dimensions have the address mode of the first, and the border is black, as with the
/// real runtime.
fn sampler(texture: &TextureDesc, resource: u32) -> HipResult<Sampler> {
    let normalized = texture.normalized != 0;
    let address = match texture.address[0] {
        _ if resource == resource_type::LINEAR => AddressMode::Clamp,
        address_mode::WRAP | address_mode::MIRROR if !normalized => AddressMode::Clamp,
        address_mode::WRAP => AddressMode::Wrap,
        address_mode::CLAMP => AddressMode::Clamp,
        address_mode::MIRROR => AddressMode::Mirror,
        address_mode::BORDER => AddressMode::Border,
        _ => return Err(code::INVALID_VALUE),
    };
    if texture.filter > 1 {
        return Err(code::INVALID_VALUE);
    }
    Ok(Sampler {
        address: [address; 3],
        normalized,
        linear: texture.filter == 1 && resource != resource_type::LINEAR,
        linear_z: false,
        border: Border::TransparentBlack,
    })
}
