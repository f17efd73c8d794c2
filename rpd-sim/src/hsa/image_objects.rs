//! Image and sampler objects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rpd_gfx::isa::image::{AddressMode, Border, BufferView, Geometry, Image, Sampler, Unsupported};

use super::image::format::Texels;
use super::image::{ImageDataInfo, ImageDescriptor, ImageFormat, SamplerDescriptor, geometry};
use crate::gpu::agents::{self, Agent, PoolKind};
use crate::gpu::copy::Plane;
use crate::gpu::machine::machine;
use crate::gpu::memory::Use;
use crate::hsa::state::{lock, state};
use crate::hsa::support::{Outcome, ensure};
use crate::hsa::types::{Dim3, Status, status};

/// Alignment of the rows of images and of their first byte, in bytes.
pub(crate) const ROW_ALIGNMENT: usize = 256;

/// Greatest width, height, depth and number of layers by geometry.
const MAX_SIZES: [[u32; 4]; 8] = [
    [16384, 1, 1, 1],
    [16384, 16384, 1, 1],
    [16384, 16384, 8192, 1],
    [16384, 1, 1, 8192],
    [16384, 16384, 1, 8192],
    [u32::MAX, 1, 1, 1],
    [16384, 16384, 1, 1],
    [16384, 16384, 1, 8192],
];

/// Greatest sizes of images of a geometry on an agent; 0 for geometries that it lacks.
pub(in crate::hsa) fn max_sizes(agent: &Agent, geometry: u32) -> [u32; 4] {
    if has_images(agent) {
        MAX_SIZES[geometry as usize]
    } else {
        [0; 4]
    }
}

/// Whether kernels on an agent can read images.
pub(crate) fn has_images(agent: &Agent) -> bool {
    agent.is_gpu() && agents::device().code.images
}

/// Content of an image object: the descriptor of the image or buffer, the format as programs give it, and the width.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageWords([u32; 12]);

impl ImageWords {
    /// The words of an image at an address, as instructions read them.
    pub(crate) fn from_image(image: &Image, format: ImageFormat) -> Self {
        Self::new(&image.encode(), format, image.size[0])
    }

    /// The words of an image over a buffer of `count` elements at address `base`.
    pub(crate) fn from_buffer(
        view: &BufferView,
        base: u64,
        count: u32,
        format: ImageFormat,
    ) -> Self {
        Self::new(&view.encode(base, count), format, count)
    }

    fn new(descriptor: &[u32], format: ImageFormat, width: u32) -> Self {
        let mut words = [0; 12];
        words[..descriptor.len()].copy_from_slice(descriptor);
        words[8..11].copy_from_slice(&[format.channel_type, format.channel_order, width]);
        Self(words)
    }
}

/// Layout of an image in memory.
#[derive(Debug, Clone, Copy)]
pub(in crate::hsa) struct Layout {
    texels: Texels,
    /// Width, height, and depth or layers, at least 1 each.
    size: [usize; 3],
    /// Bytes from one row to the next.
    pitch: usize,
    /// Bytes from one slice or layer to the next.
    slice: usize,
}

impl Layout {
    /// The layout of an image on an agent. `pitches`: bytes from row to row and from slice to slice that the program
    /// requests, 0 for those of rows without a gap; without them the runtime chooses.
    pub(in crate::hsa) fn of(
        agent: &Agent,
        image: &ImageDescriptor,
        pitches: Option<[usize; 2]>,
    ) -> Result<Self, Status> {
        let texels = has_images(agent)
            .then(|| image.format.texels_of(image.geometry))
            .flatten()
            .ok_or(status::EXT_IMAGE_FORMAT_UNSUPPORTED)?;
        let given = [image.width, image.height, image.depth, image.layers];
        let most = max_sizes(agent, image.geometry).map(|size| size as usize);
        let sizes_fit = given.iter().zip(most).all(|(size, most)| *size <= most);
        // What a geometry has it has at least one of; a number of layers of 0 is 1.
        let exists = |n: usize| most[n] == 1 || given[n] != 0;
        let sizes_exist = exists(0) && exists(1) && exists(2);
        ensure(sizes_fit && sizes_exist, status::EXT_IMAGE_SIZE_UNSUPPORTED)?;
        let [width, height, depth, layers] = given.map(|size| size.max(1));
        let row = width * texels.format.bytes() as usize;
        let least = match image.geometry {
            geometry::BUFFER => row,
            _ => row.next_multiple_of(ROW_ALIGNMENT),
        };
        let pitch = match pitches {
            Some([wanted, slice]) if image.geometry != geometry::BUFFER => {
                let pitch = if wanted == 0 { row } else { wanted };
                let texels_fit = pitch.is_multiple_of(texels.format.bytes() as usize);
                let row_fits = pitch >= least && pitch.is_multiple_of(ROW_ALIGNMENT) && texels_fit;
                let slice_fits = slice == 0 || Some(slice) == pitch.checked_mul(height);
                let pitch_fits = pitch <= ROW_ALIGNMENT << 16;
                ensure(
                    row_fits && slice_fits && pitch_fits,
                    status::EXT_IMAGE_PITCH_UNSUPPORTED,
                )?;
                pitch
            }
            _ => least,
        };
        Ok(Self {
            texels,
            size: [width, height, depth.max(layers)],
            pitch,
            slice: pitch * height,
        })
    }

    /// Size and alignment of the memory that the image needs.
    pub(in crate::hsa) fn info(&self) -> ImageDataInfo {
        ImageDataInfo {
            size: self.slice * self.size[2],
            alignment: ROW_ALIGNMENT,
        }
    }
}

/// An image; the address of its words is its handle.
#[derive(Debug)]
pub(in crate::hsa) struct ImageObject {
    pub(in crate::hsa) agent: &'static Agent,
    pub(in crate::hsa) format: ImageFormat,
    pub(in crate::hsa) texels: Texels,
    geometry: u32,
    base: usize,
    layout: Layout,
}

impl ImageObject {
    /// Size of a texel in bytes.
    pub(in crate::hsa) fn texel_bytes(&self) -> usize {
        self.texels.format.bytes() as usize
    }

    /// Whether each row is a slice: regions have layers of one dimension in y.
    pub(in crate::hsa) fn has_layers_in_y(&self) -> bool {
        self.geometry == geometry::D1_LAYERED
    }

    /// The part of a region that begins at a texel.
    pub(in crate::hsa) fn part(&self, at: Dim3, range: Dim3) -> Result<Plane, Status> {
        let [width, height, depth] = self.layout.size;
        let size = if self.has_layers_in_y() {
            [width, depth, height]
        } else {
            [width, height, depth]
        };
        let inside = [(at.x, range.x), (at.y, range.y), (at.z, range.z)]
            .into_iter()
            .zip(size)
            .all(|((at, count), size)| count != 0 && at as usize + count as usize <= size);
        ensure(inside, status::ERROR_INVALID_ARGUMENT)?;
        let (pitch, slice) = if self.has_layers_in_y() {
            (self.layout.slice, self.layout.slice * depth)
        } else {
            (self.layout.pitch, self.layout.slice)
        };
        let [x, y, z] = [at.x, at.y, at.z].map(|texels| texels as usize);
        Ok(Plane {
            first: self.base + x * self.texel_bytes() + y * pitch + z * slice,
            pitch,
            slice,
        })
    }

    fn words(&self) -> ImageWords {
        let Texels {
            format, selections, ..
        } = self.texels;
        let [width, height, depth] = self.layout.size.map(|size| size as u32);
        let base = self.base as u64;
        let geometry = match self.geometry {
            geometry::BUFFER => {
                let view = BufferView::new(format).with_selections(selections);
                return ImageWords::from_buffer(&view, base, width, self.format);
            }
            geometry::D1 => Geometry::D1,
            geometry::D3 => Geometry::D3,
            geometry::D1_LAYERED => Geometry::D1Layered,
            geometry::D2 | geometry::D2_DEPTH => Geometry::D2,
            _ => Geometry::D2Layered,
        };
        let pitch = (self.layout.pitch / self.texel_bytes()) as u32;
        let image = Image::new(base, format, geometry, [width, height, depth], pitch);
        ImageWords::from_image(&image.with_selections(selections), self.format)
    }
}

/// Images and samplers that were created and not destroyed, by handle.
#[derive(Debug, Default)]
pub(crate) struct Images {
    images: Mutex<HashMap<u64, Arc<ImageObject>>>,
    samplers: Mutex<HashMap<u64, &'static Agent>>,
}

/// Puts words where devices read them; returns their address.
fn publish<T>(words: T) -> Result<u64, Status> {
    let pool = agents::pool_of(0, PoolKind::SystemKernarg).ok_or(status::ERROR_OUT_OF_RESOURCES)?;
    let memory = &machine().memory;
    let block = memory.allocate(pool, size_of::<T>(), Use::Internal, u64::MAX);
    let block = block.map_err(|_| status::ERROR_OUT_OF_RESOURCES)?;
    // SAFETY: memory of this size was just allocated, on the host, at whole pages.
    unsafe { (block.base as *mut T).write(words) };
    Ok(block.base as u64)
}

fn retract(handle: u64) -> Outcome {
    let freed = machine().memory.free(handle as usize, Use::Internal);
    ensure(freed, status::ERROR_INVALID_ARGUMENT)
}

/// Makes an image of memory at `base`; returns its handle.
pub(in crate::hsa) fn create_image(
    agent: &'static Agent,
    image: &ImageDescriptor,
    base: usize,
    pitches: Option<[usize; 2]>,
) -> Result<u64, Status> {
    let layout = Layout::of(agent, image, pitches)?;
    ensure(
        base.is_multiple_of(layout.info().alignment),
        status::ERROR_INVALID_ARGUMENT,
    )?;
    let object = ImageObject {
        agent,
        format: image.format,
        texels: layout.texels,
        geometry: image.geometry,
        base,
        layout,
    };
    let words = object.words();
    enter(object, words)
}

/// Makes the handle of an image known; returns it. Kernels read the image's words at the handle.
fn enter(object: ImageObject, words: ImageWords) -> Result<u64, Status> {
    let handle = publish(words)?;
    lock(&state().images.images).insert(handle, Arc::new(object));
    Ok(handle)
}

/// Makes an image at `base` that another driver describes; returns its handle. The program's description counts for the
/// format, and the driver's descriptor for everything else.
pub(in crate::hsa) fn adopt_image(
    agent: &'static Agent,
    image: &ImageDescriptor,
    base: usize,
    words: [u32; 8],
) -> Result<u64, Status> {
    let texels = has_images(agent)
        .then(|| image.format.texels_of(image.geometry))
        .flatten()
        .ok_or(status::EXT_IMAGE_FORMAT_UNSUPPORTED)?;
    let refused = |what: Unsupported| {
        eprintln!("rpd-sim: hsa_amd_image_create: descriptors with {what} are not supported");
        status::EXT_IMAGE_FORMAT_UNSUPPORTED
    };
    let Texels {
        format, selections, ..
    } = texels;
    let address = base as u64;
    let (words, size, pitch, slice, base) = if image.geometry == geometry::BUFFER {
        let [first, second, count, fourth, ..] = words;
        let view = BufferView::new(format).with_selections(selections);
        let buffer = view.adopt([first, second, count, fourth], address);
        let mut words = [0; 8];
        words[..4].copy_from_slice(&buffer.map_err(refused)?);
        let row = count as usize * format.bytes() as usize;
        (words, [count as usize, 1, 1], row, row, base)
    } else {
        let line = match image.geometry {
            geometry::D1 => Some(Geometry::D1),
            geometry::D1_LAYERED => Some(Geometry::D1Layered),
            _ => None,
        };
        let words = Image::adopt(words, address, format, selections, line);
        let words = words.map_err(refused)?;
        let seen = Image::decode(words).map_err(refused)?;
        // The first level that kernels can address is copied.
        let seen = seen.level(0).ok_or(status::EXT_IMAGE_FORMAT_UNSUPPORTED)?;
        let pitch = seen.pitch as usize * format.bytes() as usize;
        let slice = pitch * seen.slice_rows() as usize;
        let size = seen.size.map(|texels| texels as usize);
        (words, size, pitch, slice, seen.base as usize)
    };
    let object = ImageObject {
        agent,
        format: image.format,
        texels,
        geometry: image.geometry,
        base,
        layout: Layout {
            texels,
            size,
            pitch,
            slice,
        },
    };
    enter(
        object,
        ImageWords::new(&words, image.format, image.width as u32),
    )
}

/// The image of a handle; `ERROR_INVALID_ARGUMENT` when there is none.
pub(in crate::hsa) fn find_image(handle: u64) -> Result<Arc<ImageObject>, Status> {
    let images = lock(&state().images.images);
    let found = images.get(&handle).cloned();
    found.ok_or(status::ERROR_INVALID_ARGUMENT)
}

/// Removes an image; its memory stays the program's.
pub(in crate::hsa) fn destroy_image(handle: u64) -> Outcome {
    let removed = lock(&state().images.images).remove(&handle);
    ensure(removed.is_some(), status::ERROR_INVALID_ARGUMENT)?;
    retract(handle)
}

/// Makes a sampler; returns its handle.
pub(in crate::hsa) fn create_sampler(
    agent: &'static Agent,
    sampler: &SamplerDescriptor,
) -> Result<u64, Status> {
    ensure(agent.is_gpu(), status::ERROR_INVALID_AGENT)?;
    let words = has_images(agent)
        .then(|| encode_sampler(sampler))
        .flatten()
        .ok_or(status::EXT_SAMPLER_DESCRIPTOR_UNSUPPORTED)?;
    // Objects have eight words, as in those of HIP.
    let [first, second, third, fourth] = words;
    let handle = publish([first, second, third, fourth, 0, 0, 0, 0])?;
    lock(&state().images.samplers).insert(handle, agent);
    Ok(handle)
}

/// Makes the handle of a sampler invalid.
pub(in crate::hsa) fn destroy_sampler(handle: u64) -> Outcome {
    let removed = lock(&state().images.samplers).remove(&handle);
    ensure(removed.is_some(), status::ERROR_INVALID_ARGUMENT)?;
    retract(handle)
}

fn encode_sampler(sampler: &SamplerDescriptor) -> Option<[u32; 4]> {
    let mut address = [AddressMode::Wrap; 3];
    for (mode, given) in address.iter_mut().zip(sampler.address_modes) {
        *mode = match given {
            // Undefined, and repeat.
            0 | 3 => AddressMode::Wrap,
            1 => AddressMode::Clamp,
            2 => AddressMode::Border,
            4 => AddressMode::Mirror,
            _ => return None,
        };
    }
    let valid = sampler.coordinate_mode <= 1 && sampler.filter_mode <= 1;
    let sampler = Sampler {
        address,
        normalized: sampler.coordinate_mode == 1,
        linear: sampler.filter_mode == 1,
        linear_z: false,
        border: Border::TransparentBlack,
    };
    valid.then(|| sampler.encode())
}
