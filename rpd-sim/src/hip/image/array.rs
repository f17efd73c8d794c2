//! Arrays: device memory in the form that images have, and the elements it consists of.

use core::ffi::c_void;
use std::sync::Arc;

use rpd_gfx::isa::image::{Geometry, Image, TexelFormat};

use crate::hip::device::Device;
use crate::hip::error::{HipResult, code};
use crate::hip::hsa::CopyBox;
use crate::hip::image::types::{Array3dDescriptor, ChannelFormatDesc, array_flag};
use crate::hip::memory::{self, AllocationKind};
use crate::hip::runtime::{self, read, write};
use crate::hsa::image::ImageFormat;
use crate::hsa::image_objects::ROW_ALIGNMENT;

/// Values of `hipChannelFormatKind`: signed integer, unsigned integer, float.
const SIGNED: u32 = 0;
const UNSIGNED: u32 = 1;
const FLOAT: u32 = 2;

/// `hipArray_Format` with the bits of a channel and its kind, in the order of `hipResourceViewFormat`.
const FORMATS: [(u32, u32, u32); 8] = [
    (0x01, 8, UNSIGNED),
    (0x08, 8, SIGNED),
    (0x02, 16, UNSIGNED),
    (0x09, 16, SIGNED),
    (0x03, 32, UNSIGNED),
    (0x0a, 32, SIGNED),
    (0x10, 16, FLOAT),
    (0x20, 32, FLOAT),
];

/// The elements of an array or of memory that is read as a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elements {
    /// `hipArray_Format`.
    pub(crate) format: u32,
    pub(crate) channels: u32,
    bits: u32,
    kind: u32,
}

impl Elements {
    /// Elements of one, two or four channels of a `hipArray_Format`.
    pub(crate) fn new(format: u32, channels: u32) -> HipResult<Self> {
        let row = FORMATS.iter().find(|row| row.0 == format);
        match row {
            Some(&(_, bits, kind)) if matches!(channels, 1 | 2 | 4) => Ok(Self {
                format,
                channels,
                bits,
                kind,
            }),
            _ => Err(code::INVALID_VALUE),
        }
    }

    /// Elements with the channels of a description, whose bits are equal; a channel without bits must be behind those
    /// with bits.
    pub(crate) fn from_channels(desc: &ChannelFormatDesc) -> HipResult<Self> {
        let bits = [desc.x, desc.y, desc.z, desc.w];
        let channels = bits.iter().take_while(|bits| **bits != 0).count();
        let equal = bits[..channels].iter().all(|bits| *bits == desc.x);
        let ends = bits[channels..].iter().all(|bits| *bits == 0);
        let row = FORMATS
            .iter()
            .find(|row| (row.1 as i32, row.2) == (desc.x, desc.f));
        match row {
            Some(row) if equal && ends => Self::new(row.0, channels as u32),
            _ => Err(code::INVALID_VALUE),
        }
    }

    /// Elements by a `hipResourceViewFormat` without compression.
    pub(crate) fn from_view(format: u32) -> HipResult<Self> {
        let at = format.checked_sub(1).ok_or(code::INVALID_VALUE)?;
        let row = FORMATS.get(at as usize / 3).ok_or(code::INVALID_VALUE)?;
        Self::new(row.0, 1 << (at % 3))
    }

    /// The `hipResourceViewFormat` of elements, the reverse of [`Self::from_view`].
    pub(crate) fn view_format(self) -> u32 {
        let at = FORMATS.iter().take_while(|row| row.0 != self.format);
        1 + 3 * at.count() as u32 + self.channels.trailing_zeros()
    }

    /// The bits of each channel.
    pub(crate) fn to_channels(self) -> ChannelFormatDesc {
        let bits = |n| {
            if n < self.channels {
                self.bits as i32
            } else {
                0
            }
        };
        ChannelFormatDesc {
            x: bits(0),
            y: bits(1),
            z: bits(2),
            w: bits(3),
            f: self.kind,
        }
    }

    pub(crate) fn bytes(self) -> usize {
        (self.bits / 8 * self.channels) as usize
    }

    /// The format of an image of such elements. `fractions`: integers of less than 32 bits are read as fractions.
    pub(crate) fn image_format(self, fractions: bool, srgb: bool) -> ImageFormat {
        let size = self.bits.trailing_zeros() - 3;
        let fractions = fractions && self.bits < 32;
        let channel_type = match self.kind {
            FLOAT => 13 + size,
            UNSIGNED if fractions => 2 + size,
            UNSIGNED => 11 + size,
            _ if fractions => size,
            _ => 8 + size,
        };
        let channel_order = match self.channels {
            1 => 1,
            2 => 3,
            _ if srgb && self.kind != FLOAT => 14,
            _ => 8,
        };
        ImageFormat {
            channel_type,
            channel_order,
        }
    }
}

/// The texels of images of a format.
pub(crate) fn texels(format: ImageFormat) -> HipResult<TexelFormat> {
    let texels = format.texels().ok_or(code::INVALID_VALUE)?;
    Ok(texels.format)
}

/// An array; its address is its handle.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) descriptor: Array3dDescriptor,
    pub(crate) elements: Elements,
    /// Ordinal of the device whose memory the array is in.
    pub(crate) device: usize,
    base: usize,
    /// Bytes from one row to the next.
    pitch: usize,
}

/// The greatest number of texels in x and y, and of layers or slices.
const MAX_SIZE: usize = 16384;
const MAX_DEPTH: usize = 8192;

impl Array {
    /// Allocates an array on the current device, and makes it known by its handle.
    pub(crate) fn make(descriptor: Array3dDescriptor) -> HipResult<*mut c_void> {
        const KNOWN: u32 = array_flag::LAYERED | array_flag::SURFACE | array_flag::GATHER;
        let device = runtime::current()?;
        let elements = Elements::new(descriptor.format, descriptor.channels)?;
        let Array3dDescriptor {
            width,
            height,
            depth,
            flags,
            ..
        } = descriptor;
        let gather = flags & array_flag::GATHER != 0;
        let flat = height != 0 && depth == 0;
        if flags & !KNOWN != 0 || gather && !flat || geometry(&descriptor).is_none() {
            return Err(code::INVALID_VALUE);
        }
        device_has_images(device)?;
        if width > MAX_SIZE || height > MAX_SIZE || depth > MAX_DEPTH {
            return Err(code::INVALID_VALUE);
        }
        let pitch = (width * elements.bytes()).next_multiple_of(ROW_ALIGNMENT);
        let bytes = pitch * height.max(1) * depth.max(1);
        let base = memory::take_device(device, bytes, false)?;
        memory::note(
            base,
            bytes,
            AllocationKind::Array,
            device.ordinal,
            flags,
            base,
        )?;
        let array = Arc::new(Self {
            descriptor,
            elements,
            device: device.ordinal,
            base,
            pitch,
        });
        let handle = Arc::as_ptr(&array) as usize;
        write(&runtime::get()?.images.arrays).insert(handle, array);
        Ok(handle as *mut c_void)
    }

    /// The array of a handle; `INVALID_HANDLE` when there is none.
    pub(crate) fn find(handle: *const c_void) -> HipResult<Arc<Self>> {
        read(&runtime::get()?.images.arrays)
            .get(&(handle as usize))
            .cloned()
            .ok_or(code::INVALID_HANDLE)
    }

    /// Frees an array when nothing uses it any more.
    pub(crate) fn destroy(handle: *const c_void) -> HipResult {
        if handle.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let array = write(&runtime::get()?.images.arrays).remove(&(handle as usize));
        let array = array.ok_or(code::CONTEXT_IS_DESTROYED)?;
        memory::free(array.base as *mut c_void, |kind| {
            kind == AllocationKind::Array
        })
    }

    /// The array as an image of this format.
    pub(crate) fn image(&self, format: ImageFormat) -> HipResult<Image> {
        let size = [
            self.descriptor.width,
            self.descriptor.height,
            self.descriptor.depth,
        ];
        Ok(Image::new(
            self.base as u64,
            texels(format)?,
            geometry(&self.descriptor).ok_or(code::INVALID_VALUE)?,
            size.map(|texels| texels.max(1) as u32),
            (self.pitch / self.elements.bytes()) as u32,
        ))
    }

    /// A box of the array for a copy: width in bytes, rows and slices, from a position (byte of a row, row, slice) on.
    pub(crate) fn part(
        &self,
        [x, y, z]: [usize; 3],
        [width, height, depth]: [usize; 3],
    ) -> HipResult<CopyBox> {
        let rows = self.descriptor.height.max(1);
        let inside = |at: usize, length: usize, size: usize| {
            at.checked_add(length).is_some_and(|end| end <= size)
        };
        let row = self.descriptor.width * self.elements.bytes();
        if !(inside(x, width, row)
            && inside(y, height, rows)
            && inside(z, depth, self.descriptor.depth.max(1)))
        {
            return Err(code::INVALID_VALUE);
        }
        let slice = self.pitch * rows;
        Ok(CopyBox {
            address: self.base + x + y * self.pitch + z * slice,
            pitch: self.pitch,
            slice,
        })
    }
}

/// Geometry of an array; `None` if its sizes are not those of any array.
fn geometry(descriptor: &Array3dDescriptor) -> Option<Geometry> {
    let layered = descriptor.flags & array_flag::LAYERED != 0;
    let sizes = [descriptor.width, descriptor.height, descriptor.depth];
    Some(match (layered, sizes.map(|size| size != 0)) {
        (false, [true, false, false]) => Geometry::D1,
        (false, [true, true, false]) => Geometry::D2,
        (false, [true, true, true]) => Geometry::D3,
        (true, [true, false, true]) => Geometry::D1Layered,
        (true, [true, true, true]) => Geometry::D2Layered,
        _ => return None,
    })
}

/// Refuses devices without images.
pub(crate) fn device_has_images(device: &Device) -> HipResult {
    if device.figures.images {
        return Ok(());
    }
    let target = &device.figures.target;
    eprintln!("rpd-sim: {target} has no images: arrays, textures and surfaces are not supported");
    Err(code::NOT_SUPPORTED)
}
