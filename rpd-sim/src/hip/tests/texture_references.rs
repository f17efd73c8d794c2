//! Texture references: kernels read what is bound to them through the variable of their module.

use std::ffi::c_int;

use super::*;
use crate::api::types::ChannelFormatDesc;
use crate::hip::image::array_api::*;
use crate::hip::image::texture_reference_api::*;
use crate::hip::image::types::*;

static IMAGES: &[u8] =
    include_bytes!("../../../../tests/workloads/kernels/prebuilt/images-gfx90a.co");

const FORMAT_FLOAT: u32 = 0x20;
const FORMAT_UINT8: u32 = 0x01;
const W: usize = 64;
const H: usize = 3;

/// Loads the module of the tests; returns it with its texture reference.
fn module() -> (Handle, *mut TextureReference) {
    let (mut module, mut reference) = (null_mut(), null_mut());
    ok!(hipModuleLoadData(&mut module, IMAGES.as_ptr().cast()));
    ok!(hipModuleGetTexRef(
        &mut reference,
        module,
        c"reference".as_ptr()
    ));
    (module, reference)
}

/// Result of a kernel that reads through the texture reference at coordinates.
fn read(module: Handle, name: &CStr, coordinates: &[[f32; 4]]) -> Vec<[f32; 4]> {
    let mut function = null_mut();
    ok!(hipModuleGetFunction(&mut function, module, name.as_ptr()));
    let bytes = size_of_val(coordinates);
    let (mut at, mut out) = (device_memory(bytes), device_memory(bytes));
    ok!(hipMemcpyHtoD(at, coordinates.as_ptr().cast(), bytes));
    let mut n = coordinates.len() as u32;
    let mut args = [arg(&mut out), arg(&mut at), arg(&mut n)];
    launch(function, n.div_ceil(64), 64, 0, null_mut(), &mut args);
    let mut found = vec![[0f32; 4]; coordinates.len()];
    ok!(hipMemcpyDtoH(found.as_mut_ptr().cast(), out, bytes));
    ok!(hipFree(at));
    ok!(hipFree(out));
    found
}

fn firsts(found: &[[f32; 4]]) -> Vec<f32> {
    found.iter().map(|texel| texel[0]).collect()
}

/// Coordinates by which the kernel that fetches single texels names texel `n`.
fn index(n: u32) -> [f32; 4] {
    [f32::from_bits(n), 0.0, 0.0, 0.0]
}

#[test]
fn kernels_read_memory_bound_to_a_texture_reference() {
    let (module, reference) = module();
    let texels: Vec<f32> = (0..W * H).map(|n| n as f32 * 0.5).collect();
    let memory = device_memory(W * H * 4);
    ok!(hipMemcpyHtoD(memory, texels.as_ptr().cast(), W * H * 4));
    let mut offset = 7;
    ok!(hipTexRefSetAddress(
        &mut offset,
        reference,
        memory,
        W * H * 4
    ));
    assert_eq!(offset, 0);
    let found = read(
        module,
        c"fetch_reference",
        &[index(0), index(5), index(190)],
    );
    assert_eq!(firsts(&found), [0.0, 2.5, 95.0]);
    let mut address = null_mut();
    ok!(hipTexRefGetAddress(&mut address, reference));
    assert_eq!(address, memory);
    let mut array = null_mut();
    fails!(hipTexRefGetArray(&mut array, reference), INVALID_VALUE);

    // The same memory as rows, in place of what was bound before.
    let descriptor = ArrayDescriptor {
        width: W,
        height: H,
        format: FORMAT_FLOAT,
        channels: 1,
    };
    ok!(hipTexRefSetAddressMode(reference, 0, address_mode::CLAMP));
    ok!(hipTexRefSetAddress2D(reference, &descriptor, memory, W * 4));
    let places = [
        [0.5, 0.5, 0.0, 0.0],
        [3.5, 1.5, 0.0, 0.0],
        [900.0, 2.5, 0.0, 0.0],
    ];
    let found = read(module, c"sample_reference_2d", &places);
    assert_eq!(firsts(&found), [0.0, 33.5, 95.5]);

    // An array, whose format becomes the reference's.
    let bytes: Vec<u8> = (0..W * H).map(|n| n as u8).collect();
    const UNSIGNED: u32 = 1;
    let channels = ChannelFormatDesc {
        x: 8,
        f: UNSIGNED,
        ..ChannelFormatDesc::default()
    };
    ok!(hipMallocArray(&mut array, &channels, W, H, 0));
    let kind = kind::HOST_TO_DEVICE;
    let source = bytes.as_ptr().cast();
    ok!(crate::hip::image::array_copy_api::hipMemcpy2DToArray(
        array, 0, 0, source, W, W, H, kind
    ));
    ok!(hipTexRefSetArray(reference, array, 1));
    let (mut format, mut count): (u32, c_int) = (0, 0);
    ok!(hipTexRefGetFormat(&mut format, &mut count, reference));
    assert_eq!((format, count), (FORMAT_UINT8, 1));
    // References of modules read integers as fractions.
    let found = read(module, c"sample_reference_2d", &places);
    assert_eq!(firsts(&found), [0.0, 67.0 / 255.0, 191.0 / 255.0]);
    let mut bound = null_mut();
    ok!(hipTexRefGetArray(&mut bound, reference));
    assert_eq!(bound, array);

    ok!(hipUnbindTexture(reference));
    fails!(hipTexRefGetArray(&mut bound, reference), INVALID_VALUE);
    ok!(hipFreeArray(array));
    ok!(hipFree(memory));
    ok!(hipModuleUnload(module));
}

#[test]
fn texture_references_return_the_settings() {
    let (module, reference) = module();
    let mut again = null_mut();
    ok!(hipModuleGetTexRef(
        &mut again,
        module,
        c"reference".as_ptr()
    ));
    assert_eq!(again, reference);
    let mut flags = 99;
    ok!(hipTexRefGetFlags(&mut flags, reference));
    assert_eq!(flags, 0);
    ok!(hipTexRefSetFlags(reference, 3));
    ok!(hipTexRefGetFlags(&mut flags, reference));
    assert_eq!(flags, 3);
    ok!(hipTexRefSetFilterMode(reference, 1));
    let mut mode = 0;
    ok!(hipTexRefGetFilterMode(&mut mode, reference));
    assert_eq!(mode, 1);
    ok!(hipTexRefSetAddressMode(reference, 2, address_mode::BORDER));
    ok!(hipTexRefGetAddressMode(&mut mode, reference, 2));
    assert_eq!(mode, address_mode::BORDER);
    ok!(hipTexRefSetMipmapLevelClamp(reference, 1.0, 2.5));
    let (mut least, mut most) = (0.0, 0.0);
    ok!(hipTexRefGetMipmapLevelClamp(
        &mut least, &mut most, reference
    ));
    assert_eq!((least, most), (1.0, 2.5));
    fails!(hipTexRefSetAddressMode(reference, 3, 0), INVALID_VALUE);
    fails!(hipTexRefSetFilterMode(null_mut(), 0), INVALID_VALUE);
    fails!(hipTexRefSetArray(reference, null(), 1), INVALID_VALUE);
    fails!(
        hipModuleGetTexRef(&mut again, module, c"sample_2d".as_ptr()),
        NOT_FOUND
    );
    // The start of a texture is at a multiple of 256 bytes.
    let memory = device_memory(1024);
    let inside = memory.wrapping_byte_add(16);
    let mut offset = 0;
    fails!(
        hipTexRefSetAddress(&mut offset, reference, inside, 64),
        INVALID_VALUE
    );
    ok!(hipFree(memory));
    ok!(hipModuleUnload(module));
}
