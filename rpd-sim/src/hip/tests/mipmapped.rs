//! Mipmapped arrays: the results of the runtime on Linux.

use super::*;
use crate::api::types::{ChannelFormatDesc, Extent};
use crate::hip::image::mipmapped_api::*;
use crate::hip::image::texture_api::*;
use crate::hip::image::texture_reference_api::*;
use crate::hip::image::types::*;

static IMAGES: &[u8] =
    include_bytes!("../../../../tests/workloads/kernels/prebuilt/images-gfx90a.co");

const FLOAT: ChannelFormatDesc = ChannelFormatDesc {
    x: 32,
    y: 0,
    z: 0,
    w: 0,
    f: 2,
};
const SIZE: Extent = Extent {
    width: 16,
    height: 16,
    depth: 0,
};

#[test]
fn mipmapped_arrays_are_not_supported() {
    let mut array = null_mut();
    let mut descriptor = Array3dDescriptor {
        width: 16,
        height: 16,
        depth: 0,
        format: 0x20,
        channels: 1,
        flags: 0,
    };
    fails!(
        hipMallocMipmappedArray(&mut array, &FLOAT, SIZE, 5, 0),
        NOT_SUPPORTED
    );
    fails!(
        hipMipmappedArrayCreate(&mut array, &mut descriptor, 5),
        NOT_SUPPORTED
    );
    assert!(array.is_null());
    // What is wrong anyway is that first.
    let odd = ChannelFormatDesc { x: 7, ..FLOAT };
    fails!(
        hipMallocMipmappedArray(&mut array, &odd, SIZE, 5, 0),
        INVALID_VALUE
    );
    fails!(
        hipMallocMipmappedArray(null_mut(), &FLOAT, SIZE, 5, 0),
        INVALID_VALUE
    );
    fails!(
        hipMallocMipmappedArray(&mut array, null(), SIZE, 5, 0),
        INVALID_VALUE
    );
    fails!(hipFreeMipmappedArray(null_mut()), INVALID_VALUE);
    fails!(hipMipmappedArrayDestroy(null_mut()), INVALID_VALUE);
    fails!(
        hipGetMipmappedArrayLevel(null_mut(), null(), 0),
        INVALID_VALUE
    );
    fails!(
        hipMipmappedArrayGetLevel(&mut array, null_mut(), 0),
        INVALID_HANDLE
    );
}

#[test]
fn textures_report_no_mipmapped_array() {
    let mut some = 0u32;
    let array = (&raw mut some).cast();
    let resource = ResourceDesc {
        kind: resource_type::MIPMAPPED_ARRAY,
        any: AnyResource { array },
    };
    let mut object = null_mut();
    let (texture, view) = (TextureDesc::default(), ViewDesc::default());
    fails!(
        hipCreateTextureObject(&mut object, &resource, &texture, &view),
        NOT_SUPPORTED
    );
    let (mut module, mut reference) = (null_mut(), null_mut());
    ok!(hipModuleLoadData(&mut module, IMAGES.as_ptr().cast()));
    ok!(hipModuleGetTexRef(
        &mut reference,
        module,
        c"reference".as_ptr()
    ));
    // The reference has no texture any more.
    let memory = device_memory(1024);
    let mut offset = 0;
    ok!(hipTexRefSetAddress(&mut offset, reference, memory, 1024));
    let mut found = null_mut();
    fails!(
        hipTexRefGetMipMappedArray(&mut found, reference),
        INVALID_VALUE
    );
    fails!(
        hipTexRefSetMipmappedArray(reference, array, 0),
        INVALID_VALUE
    );
    fails!(
        hipTexRefSetMipmappedArray(reference, null_mut(), 1),
        INVALID_VALUE
    );
    ok!(hipTexRefGetAddress(&mut found, reference));
    fails!(
        hipTexRefSetMipmappedArray(reference, array, 1),
        NOT_SUPPORTED
    );
    fails!(hipTexRefGetAddress(&mut found, reference), INVALID_VALUE);
    fails!(
        hipBindTextureToMipmappedArray(reference, null(), &FLOAT),
        INVALID_VALUE
    );
    fails!(
        hipBindTextureToMipmappedArray(reference, array, null()),
        INVALID_VALUE
    );
    fails!(
        hipBindTextureToMipmappedArray(reference, array, &FLOAT),
        NOT_SUPPORTED
    );
    ok!(hipFree(memory));
    ok!(hipModuleUnload(module));
}
