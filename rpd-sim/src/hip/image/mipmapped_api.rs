//! The functions of the API for mipmapped arrays, which the runtime does not have on Linux. They check their arguments
//! as the real functions do, and then fail.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::hip::error::{HipResult, api, argument, code};
use crate::hip::image::array::Elements;
use crate::hip::image::texture_reference_api::{bind, bound, check_array_flags};
use crate::hip::image::types::{
    AnyResource, Array3dDescriptor, ChannelFormatDesc, ResourceDesc, TextureReference, ViewDesc,
    resource_type,
};
use crate::hip::types::Extent;

/// Prints once per process that the runtime lacks mipmapped arrays; returns the error code for that.
#[cold]
pub(crate) fn not_supported() -> u32 {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        eprintln!("rpd-sim: mipmapped arrays are not supported, as by ROCm 7.2 on Linux");
    }
    code::NOT_SUPPORTED
}

pub(crate) unsafe extern "C" fn hipMallocMipmappedArray(
    out: *mut *mut c_void,
    channels: *const ChannelFormatDesc,
    _size: Extent,
    _levels: u32,
    _flags: u32,
) -> u32 {
    api(|| {
        if out.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's pointer, checked for null.
        Elements::from_channels(&unsafe { argument(channels)? })?;
        Err(not_supported())
    })
}

pub(crate) unsafe extern "C" fn hipMipmappedArrayCreate(
    _out: *mut *mut c_void,
    _descriptor: *mut Array3dDescriptor,
    _levels: u32,
) -> u32 {
    api(|| Err(not_supported()))
}

pub(crate) unsafe extern "C" fn hipFreeMipmappedArray(_array: *mut c_void) -> u32 {
    api(|| Err(code::INVALID_VALUE))
}

pub(crate) unsafe extern "C" fn hipMipmappedArrayDestroy(_array: *mut c_void) -> u32 {
    api(|| Err(code::INVALID_VALUE))
}

/// Fails, after a check of the arguments, because there is no mipmapped array that could have levels.
fn level(out: *mut *mut c_void) -> HipResult {
    Err(if out.is_null() {
        code::INVALID_VALUE
    } else {
        code::INVALID_HANDLE
    })
}

pub(crate) unsafe extern "C" fn hipGetMipmappedArrayLevel(
    out: *mut *mut c_void,
    _array: *const c_void,
    _number: u32,
) -> u32 {
    api(|| level(out))
}

pub(crate) unsafe extern "C" fn hipMipmappedArrayGetLevel(
    out: *mut *mut c_void,
    _array: *mut c_void,
    _number: u32,
) -> u32 {
    api(|| level(out))
}

/// Unbinds what is bound to a reference and tries to bind an array.
///
/// # Safety
/// As for [`bind`].
unsafe fn bind_array(reference: *mut TextureReference, array: *const c_void) -> HipResult {
    if array.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let resource = ResourceDesc {
        kind: resource_type::MIPMAPPED_ARRAY,
        any: AnyResource {
            array: array.cast_mut(),
        },
    };
    // SAFETY: by contract.
    unsafe { bind(reference, resource, Some(ViewDesc::default())) }
}

pub(crate) unsafe extern "C" fn hipBindTextureToMipmappedArray(
    reference: *const TextureReference,
    array: *const c_void,
    channels: *const ChannelFormatDesc,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null. The reference is a variable although it is declared constant.
    api(|| unsafe {
        argument(channels)?;
        bind_array(reference.cast_mut(), array)
    })
}

pub(crate) unsafe extern "C" fn hipTexRefSetMipmappedArray(
    reference: *mut TextureReference,
    array: *mut c_void,
    flags: u32,
) -> u32 {
    api(|| {
        check_array_flags(flags)?;
        // SAFETY: the caller's pointers, checked for null.
        unsafe { bind_array(reference, array) }
    })
}

pub(crate) unsafe extern "C" fn hipTexRefGetMipMappedArray(
    out: *mut *mut c_void,
    reference: *const TextureReference,
) -> u32 {
    api(|| {
        if out.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's pointer, checked for null.
        unsafe { bound(reference)? };
        // What is bound is something else.
        Err(code::INVALID_VALUE)
    })
}
