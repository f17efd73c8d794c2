//! The array functions of the API.

use core::ffi::c_void;

use crate::hip::error::{HipResult, api, argument, code, put};
use crate::hip::image::array::{Array, Elements};
use crate::hip::image::types::{Array3dDescriptor, ArrayDescriptor, ChannelFormatDesc};
use crate::hip::types::Extent;

/// Makes an array and writes its handle.
///
/// # Safety
/// As for [`put`].
unsafe fn make(
    out: *mut *mut c_void,
    descriptor: impl FnOnce() -> HipResult<Array3dDescriptor>,
) -> HipResult {
    if out.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: the caller's pointer, not null.
    unsafe { put(out, Array::make(descriptor()?)?) }
}

fn of_channels(
    channels: &ChannelFormatDesc,
    [width, height, depth]: [usize; 3],
    flags: u32,
) -> HipResult<Array3dDescriptor> {
    let elements = Elements::from_channels(channels)?;
    Ok(Array3dDescriptor {
        width,
        height,
        depth,
        format: elements.format,
        channels: elements.channels,
        flags,
    })
}

pub(crate) unsafe extern "C" fn hipMallocArray(
    array: *mut *mut c_void,
    channels: *const ChannelFormatDesc,
    width: usize,
    height: usize,
    flags: u32,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe {
        make(array, || {
            of_channels(&argument(channels)?, [width, height, 0], flags)
        })
    })
}

pub(crate) unsafe extern "C" fn hipMalloc3DArray(
    array: *mut *mut c_void,
    channels: *const ChannelFormatDesc,
    extent: Extent,
    flags: u32,
) -> u32 {
    let size = [extent.width, extent.height, extent.depth];
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { make(array, || of_channels(&argument(channels)?, size, flags)) })
}

pub(crate) unsafe extern "C" fn hipArrayCreate(
    array: *mut *mut c_void,
    descriptor: *const ArrayDescriptor,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe {
        make(array, || {
            let given = argument(descriptor)?;
            Ok(Array3dDescriptor {
                width: given.width,
                height: given.height,
                depth: 0,
                format: given.format,
                channels: given.channels,
                flags: 0,
            })
        })
    })
}

pub(crate) unsafe extern "C" fn hipArray3DCreate(
    array: *mut *mut c_void,
    descriptor: *const Array3dDescriptor,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { make(array, || argument(descriptor)) })
}

pub(crate) unsafe extern "C" fn hipFreeArray(array: *mut c_void) -> u32 {
    api(|| Array::destroy(array))
}

pub(crate) unsafe extern "C" fn hipArrayDestroy(array: *mut c_void) -> u32 {
    api(|| Array::destroy(array))
}

pub(crate) unsafe extern "C" fn hipArrayGetDescriptor(
    out: *mut ArrayDescriptor,
    array: *mut c_void,
) -> u32 {
    api(|| {
        let array = Array::find(array)?;
        let descriptor = ArrayDescriptor {
            width: array.descriptor.width,
            height: array.descriptor.height,
            format: array.descriptor.format,
            channels: array.descriptor.channels,
        };
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, descriptor) }
    })
}

pub(crate) unsafe extern "C" fn hipArray3DGetDescriptor(
    out: *mut Array3dDescriptor,
    array: *mut c_void,
) -> u32 {
    api(|| {
        let array = Array::find(array)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, array.descriptor) }
    })
}

pub(crate) unsafe extern "C" fn hipArrayGetInfo(
    channels: *mut ChannelFormatDesc,
    extent: *mut Extent,
    flags: *mut u32,
    array: *mut c_void,
) -> u32 {
    api(|| {
        let array = Array::find(array)?;
        let size = Extent {
            width: array.descriptor.width,
            height: array.descriptor.height,
            depth: array.descriptor.depth,
        };
        // SAFETY: the caller's pointers, not null where they are written to.
        unsafe {
            if !channels.is_null() {
                put(channels, array.elements.to_channels())?;
            }
            if !extent.is_null() {
                put(extent, size)?;
            }
            if !flags.is_null() {
                put(flags, array.descriptor.flags)?;
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipGetChannelDesc(
    out: *mut ChannelFormatDesc,
    array: *const c_void,
) -> u32 {
    api(|| {
        if out.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, Array::find(array)?.elements.to_channels()) }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceGetTexture1DLinearMaxWidth(
    out: *mut usize,
    channels: *const ChannelFormatDesc,
    device: i32,
) -> u32 {
    api(|| {
        // SAFETY: the caller's pointer, checked for null.
        let channels = unsafe { argument(channels)? };
        let bytes = (channels.x + channels.y + channels.z + channels.w) / 8;
        let most = crate::hip::runtime::device(device)?
            .properties
            .max_texture_1d_linear;
        let width = most.checked_div(bytes).ok_or(code::INVALID_VALUE)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, width as usize) }
    })
}
