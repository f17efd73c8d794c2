//! The functions of the API for images and samplers.

pub(super) mod table;
mod transfer;

use core::ffi::c_void;

use self::transfer::{Direction, LinearTexels};
use crate::gpu::agents::Agent;
use crate::hsa::image::{ImageDataInfo, ImageDescriptor, ImageFormat, SamplerDescriptor, geometry};
use crate::hsa::image_objects::{self, Layout, ROW_ALIGNMENT, find_image};
use crate::hsa::support::{Outcome, agent, api, ensure, put};
use crate::hsa::types::{Dim3, Status, status};

/// `hsa_ext_image_data_layout_t`: rows in memory as the program lays them out.
const LAYOUT_LINEAR: u32 = 1;

/// `hsa_ext_image_region_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageRegion {
    pub(crate) offset: Dim3,
    pub(crate) range: Dim3,
}

/// `hsa_ext_sampler_descriptor_t`: a sampler with one addressing mode for all dimensions.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneModeSamplerDescriptor {
    pub(crate) coordinate_mode: u32,
    pub(crate) filter_mode: u32,
    pub(crate) address_mode: u32,
}

/// A copy of what a pointer of the program points to.
///
/// # Safety
/// A pointer that is not null must be readable.
unsafe fn argument<T: Copy>(pointer: *const T) -> Result<T, Status> {
    // SAFETY: promised by the caller.
    unsafe { pointer.as_ref() }
        .copied()
        .ok_or(status::ERROR_INVALID_ARGUMENT)
}

fn capability(agent: &Agent, geometry: u32, format: ImageFormat) -> Result<u32, Status> {
    ensure(
        geometry <= geometry::D2_LAYERED_DEPTH,
        status::ERROR_INVALID_ARGUMENT,
    )?;
    let texels = format.texels_of(geometry);
    let texels = texels.filter(|_| image_objects::has_images(agent));
    Ok(texels.map_or(0, |texels| texels.capability))
}

/// Writes what kernels of an agent can do with images of a geometry and format; 0 for images that the agent lacks.
pub(crate) unsafe extern "C" fn hsa_ext_image_get_capability(
    handle: u64,
    geometry: u32,
    format: *const ImageFormat,
    mask: *mut u32,
) -> Status {
    // SAFETY: the program's pointers are null, readable or writable.
    api(|| unsafe {
        put(
            mask,
            capability(agent(handle)?, geometry, argument(format)?)?,
        )
    })
}

/// Writes what kernels of an agent can do with images in rows of a geometry and format; 0 for images that the agent
/// lacks.
pub(crate) unsafe extern "C" fn hsa_ext_image_get_capability_with_layout(
    handle: u64,
    geometry: u32,
    format: *const ImageFormat,
    layout: u32,
    mask: *mut u32,
) -> Status {
    // SAFETY: the program's pointers are null, readable or writable.
    api(|| unsafe {
        let agent = agent(handle)?;
        ensure(layout == LAYOUT_LINEAR, status::ERROR_INVALID_ARGUMENT)?;
        put(mask, capability(agent, geometry, argument(format)?)?)
    })
}

/// An image as the program describes it, checked as far as that does not depend on the agent.
///
/// # Safety
/// As for [`argument`].
unsafe fn described(
    image: *const ImageDescriptor,
    permission: u32,
) -> Result<ImageDescriptor, Status> {
    // SAFETY: promised by the caller.
    let image = unsafe { argument(image) }?;
    let valid = image.geometry <= geometry::D2_LAYERED_DEPTH && (1..=3).contains(&permission);
    ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
    Ok(image)
}

/// Writes size and alignment of the memory for an image.
pub(crate) unsafe extern "C" fn hsa_ext_image_data_get_info(
    handle: u64,
    image: *const ImageDescriptor,
    permission: u32,
    info: *mut ImageDataInfo,
) -> Status {
    // SAFETY: the program's pointers are null, readable or writable.
    api(|| unsafe {
        let agent = agent(handle)?;
        let layout = Layout::of(agent, &described(image, permission)?, None)?;
        put(info, layout.info())
    })
}

/// Writes size and alignment of the memory for an image whose rows and slices are laid out as the program requests.
pub(crate) unsafe extern "C" fn hsa_ext_image_data_get_info_with_layout(
    handle: u64,
    image: *const ImageDescriptor,
    permission: u32,
    layout: u32,
    row_pitch: usize,
    slice_pitch: usize,
    info: *mut ImageDataInfo,
) -> Status {
    // SAFETY: the program's pointers are null, readable or writable.
    api(|| unsafe {
        let agent = agent(handle)?;
        let image = described(image, permission)?;
        ensure(layout == LAYOUT_LINEAR, status::ERROR_INVALID_ARGUMENT)?;
        let layout = Layout::of(agent, &image, Some([row_pitch, slice_pitch]))?;
        put(info, layout.info())
    })
}

/// Makes an image of memory and writes its handle.
///
/// # Safety
/// As for [`argument`] and [`put`].
unsafe fn create(
    handle: u64,
    image: *const ImageDescriptor,
    data: *const c_void,
    permission: u32,
    pitches: Option<[usize; 2]>,
    out: *mut u64,
) -> Outcome {
    let agent = agent(handle)?;
    // SAFETY: promised by the caller.
    let image = unsafe { described(image, permission) }?;
    let valid = !data.is_null() && !out.is_null();
    ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
    let made = image_objects::create_image(agent, &image, data as usize, pitches)?;
    // SAFETY: promised by the caller.
    unsafe { put(out, made) }
}

/// Makes an image of memory in the layout that the runtime chooses.
pub(crate) unsafe extern "C" fn hsa_ext_image_create(
    handle: u64,
    image: *const ImageDescriptor,
    data: *const c_void,
    permission: u32,
    out: *mut u64,
) -> Status {
    // SAFETY: the program's pointers are null, readable or writable.
    api(|| unsafe { create(handle, image, data, permission, None, out) })
}

/// Makes an image of memory with rows and slices as the program has them.
pub(crate) unsafe extern "C" fn hsa_ext_image_create_with_layout(
    handle: u64,
    image: *const ImageDescriptor,
    data: *const c_void,
    permission: u32,
    layout: u32,
    row_pitch: usize,
    slice_pitch: usize,
    out: *mut u64,
) -> Status {
    let pitches = Some([row_pitch, slice_pitch]);
    // SAFETY: the program's pointers are null, readable or writable.
    api(|| unsafe {
        ensure(layout == LAYOUT_LINEAR, status::ERROR_INVALID_ARGUMENT)?;
        create(handle, image, data, permission, pitches, out)
    })
}

/// Makes an image of memory that another driver describes: by version, device, and the eight dwords of the device's
/// descriptor.
pub(crate) unsafe extern "C" fn hsa_amd_image_create(
    handle: u64,
    image: *const ImageDescriptor,
    layout: *const u32,
    data: *const c_void,
    _permission: u32,
    out: *mut u64,
) -> Status {
    const VERSION: u32 = 1;
    const VENDOR: u32 = 0x1002;
    api(|| {
        let agent = agent(handle)?;
        // SAFETY: the program's pointers are null or readable.
        let (image, [version, device]) =
            unsafe { (argument(image)?, argument(layout.cast::<[u32; 2]>())?) };
        let valid = !data.is_null() && !out.is_null();
        let known = image.geometry <= geometry::D2_LAYERED_DEPTH;
        ensure(valid && known, status::ERROR_INVALID_ARGUMENT)?;
        let aligned = (data as usize).is_multiple_of(ROW_ALIGNMENT);
        ensure(aligned, status::ERROR_INVALID_ALLOCATION)?;
        let own = version == VERSION && device == VENDOR << 16 | agent.device_id;
        ensure(own, status::EXT_IMAGE_FORMAT_UNSUPPORTED)?;
        // SAFETY: a layout of this version and device has these words, and the output is not null.
        unsafe {
            let words = layout.add(2).cast::<[u32; 8]>().read_unaligned();
            let made = image_objects::adopt_image(agent, &image, data as usize, words)?;
            put(out, made)
        }
    })
}

/// Makes the handle of an image invalid; its memory belongs to the program.
pub(crate) unsafe extern "C" fn hsa_ext_image_destroy(handle: u64, image: u64) -> Status {
    api(|| {
        agent(handle)?;
        image_objects::destroy_image(image)
    })
}

/// Copies a region of an image into another.
pub(crate) unsafe extern "C" fn hsa_ext_image_copy(
    handle: u64,
    src: u64,
    src_offset: *const Dim3,
    dst: u64,
    dst_offset: *const Dim3,
    range: *const Dim3,
) -> Status {
    // SAFETY: the program's pointers are null or readable.
    api(|| unsafe {
        agent(handle)?;
        let (src, dst) = (find_image(src)?, find_image(dst)?);
        let (src_at, dst_at) = (argument(src_offset)?, argument(dst_offset)?);
        transfer::copy(&src, src_at, &dst, dst_at, argument(range)?)
    })
}

/// Copies memory into a region of an image.
pub(crate) unsafe extern "C" fn hsa_ext_image_import(
    handle: u64,
    src: *const c_void,
    row_pitch: usize,
    slice_pitch: usize,
    image: u64,
    region: *const ImageRegion,
) -> Status {
    let memory = LinearTexels {
        address: src as usize,
        pitches: [row_pitch, slice_pitch],
    };
    // SAFETY: as the callee requires.
    unsafe { exchange(Direction::Import, handle, image, memory, region) }
}

/// Copies a region of an image into memory.
pub(crate) unsafe extern "C" fn hsa_ext_image_export(
    handle: u64,
    image: u64,
    dst: *mut c_void,
    row_pitch: usize,
    slice_pitch: usize,
    region: *const ImageRegion,
) -> Status {
    let memory = LinearTexels {
        address: dst as usize,
        pitches: [row_pitch, slice_pitch],
    };
    // SAFETY: as the callee requires.
    unsafe { exchange(Direction::Export, handle, image, memory, region) }
}

/// # Safety
/// `region` is null or readable.
unsafe fn exchange(
    direction: Direction,
    handle: u64,
    image: u64,
    memory: LinearTexels,
    region: *const ImageRegion,
) -> Status {
    // SAFETY: the caller promises what is needed.
    api(|| unsafe {
        agent(handle)?;
        ensure(memory.address != 0, status::ERROR_INVALID_ARGUMENT)?;
        let (image, region) = (find_image(image)?, argument(region)?);
        transfer::exchange(direction, &image, &memory, region.offset, region.range)
    })
}

/// Fills a region of an image with one texel: four channels, floats or integers by the image's format.
pub(crate) unsafe extern "C" fn hsa_ext_image_clear(
    handle: u64,
    image: u64,
    data: *const c_void,
    region: *const ImageRegion,
) -> Status {
    // SAFETY: the program's pointers are null or readable.
    api(|| unsafe {
        agent(handle)?;
        let (image, region) = (find_image(image)?, argument(region)?);
        let registers = argument(data.cast::<[u32; 4]>())?;
        transfer::clear(&image, registers, region.offset, region.range)
    })
}

/// Makes a sampler and writes its handle.
///
/// # Safety
/// As for [`put`].
unsafe fn create_sampler(handle: u64, sampler: &SamplerDescriptor, out: *mut u64) -> Outcome {
    let agent = agent(handle)?;
    ensure(!out.is_null(), status::ERROR_INVALID_ARGUMENT)?;
    // SAFETY: promised by the caller.
    unsafe { put(out, image_objects::create_sampler(agent, sampler)?) }
}

/// Makes a sampler with one addressing mode.
pub(crate) unsafe extern "C" fn hsa_ext_sampler_create(
    handle: u64,
    sampler: *const OneModeSamplerDescriptor,
    out: *mut u64,
) -> Status {
    // SAFETY: the program's pointers are null, readable or writable.
    api(|| unsafe {
        let given = argument(sampler)?;
        let sampler = SamplerDescriptor {
            coordinate_mode: given.coordinate_mode,
            filter_mode: given.filter_mode,
            address_modes: [given.address_mode; 3],
        };
        create_sampler(handle, &sampler, out)
    })
}

/// Makes a sampler with an addressing mode for each dimension.
pub(crate) unsafe extern "C" fn hsa_ext_sampler_create_v2(
    handle: u64,
    sampler: *const SamplerDescriptor,
    out: *mut u64,
) -> Status {
    // SAFETY: the program's pointers are null, readable or writable.
    api(|| unsafe { create_sampler(handle, &argument(sampler)?, out) })
}

/// Makes the handle of a sampler invalid.
pub(crate) unsafe extern "C" fn hsa_ext_sampler_destroy(handle: u64, sampler: u64) -> Status {
    api(|| {
        agent(handle)?;
        image_objects::destroy_sampler(sampler)
    })
}

/// Writes an attribute of an agent that concerns images: greatest sizes or numbers of handles, as 32-bit numbers, 0
/// without images.
///
/// # Safety
/// As for [`put`], for the attribute's size.
pub(in crate::hsa) unsafe fn agent_info(
    agent: &Agent,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    let sizes = |geometry| image_objects::max_sizes(agent, geometry);
    let count = |most: u32| {
        if image_objects::has_images(agent) {
            most
        } else {
            0
        }
    };
    // SAFETY: promised by the caller.
    unsafe {
        match attribute {
            0x3000 => put(value, sizes(geometry::D1)[0]),
            0x3001 => put(value, sizes(geometry::D1_LAYERED)[0]),
            0x3002 => put(value, sizes(geometry::BUFFER)[0]),
            0x3003..=0x3006 => {
                let by_attribute = [
                    geometry::D2,
                    geometry::D2_LAYERED,
                    geometry::D2_DEPTH,
                    geometry::D2_LAYERED_DEPTH,
                ];
                let [width, height, ..] = sizes(by_attribute[attribute as usize - 0x3003]);
                put(value, [width, height])
            }
            0x3007 => {
                let [width, height, depth, _] = sizes(geometry::D3);
                put(value, [width, height, depth])
            }
            0x3008 => put(value, sizes(geometry::D2_LAYERED)[3]),
            0x3009 => put(value, count(128)),
            0x300A => put(value, count(64)),
            0x300B => put(value, count(16)),
            _ => Err(status::ERROR_INVALID_ARGUMENT),
        }
    }
}
