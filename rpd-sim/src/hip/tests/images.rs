//! Arrays, textures and surfaces: from arguments of calls to what kernels read.

use super::*;
use crate::api::types::{ChannelFormatDesc, Extent, PitchedPtr};
use crate::hip::image::array_api::*;
use crate::hip::image::array_copy_api::*;
use crate::hip::image::texture_api::*;
use crate::hip::image::types::*;
use crate::hip::types::{DrvMemcpy3D, Memcpy3D, Pos, memory_type};

static IMAGES: &[u8] =
    include_bytes!("../../../../tests/workloads/kernels/prebuilt/images-gfx90a.co");

const FLOAT: ChannelFormatDesc = channels([32, 0, 0, 0], 2);
const W: usize = 11;
const H: usize = 6;
const D: usize = 3;

const fn channels([x, y, z, w]: [i32; 4], f: u32) -> ChannelFormatDesc {
    ChannelFormatDesc { x, y, z, w, f }
}

fn extent(width: usize, height: usize, depth: usize) -> Extent {
    Extent {
        width,
        height,
        depth,
    }
}

/// Result of a kernel of `images.hip` that reads an object at coordinates.
fn run(name: &CStr, object: *mut c_void, coordinates: &[[f32; 4]]) -> Vec<[f32; 4]> {
    let (mut module, mut function) = (null_mut(), null_mut());
    ok!(hipModuleLoadData(&mut module, IMAGES.as_ptr().cast()));
    ok!(hipModuleGetFunction(&mut function, module, name.as_ptr()));
    let bytes = coordinates.len() * 16;
    let (mut at, mut out) = (device_memory(bytes), device_memory(bytes));
    ok!(hipMemcpyHtoD(
        at,
        coordinates.as_ptr().cast::<c_void>().cast_mut(),
        bytes
    ));
    ok!(hipMemset(out, 0x5a, bytes));
    let (mut object, mut n) = (object, coordinates.len() as u32);
    let mut args = [arg(&mut object), arg(&mut out), arg(&mut at), arg(&mut n)];
    launch(function, n.div_ceil(64), 64, 0, null_mut(), &mut args);
    let mut found = vec![[0f32; 4]; coordinates.len()];
    ok!(hipMemcpyDtoH(found.as_mut_ptr().cast(), out, bytes));
    ok!(hipFree(at));
    ok!(hipFree(out));
    ok!(hipModuleUnload(module));
    found
}

/// Coordinates of the centres of all texels, slice by slice.
fn centres(width: usize, height: usize, depth: usize) -> Vec<[f32; 4]> {
    let texel = |n: usize| {
        let [x, y, z] = [n % width, n / width % height, n / width / height];
        [x as f32 + 0.5, y as f32 + 0.5, z as f32 + 0.5, 0.0]
    };
    (0..width * height * depth).map(texel).collect()
}

fn array_resource(array: *mut c_void) -> ResourceDesc {
    ResourceDesc {
        kind: resource_type::ARRAY,
        any: AnyResource { array },
    }
}

fn texture(resource: &ResourceDesc, description: &TextureDesc) -> *mut c_void {
    let mut object = null_mut();
    ok!(hipCreateTextureObject(
        &mut object,
        resource,
        description,
        null()
    ));
    object
}

fn clamped() -> TextureDesc {
    TextureDesc {
        address: [address_mode::CLAMP; 3],
        ..TextureDesc::default()
    }
}

#[test]
fn hip_arrays_are_copied_in_every_direction() {
    let (mut first, mut second) = (null_mut(), null_mut());
    ok!(hipMallocArray(&mut first, &FLOAT, W, H, 0));
    ok!(hipMallocArray(&mut second, &FLOAT, W, H, 0));
    let source: Vec<f32> = (0..W * H).map(|n| n as f32 - 7.5).collect();
    ok!(hipMemcpy2DToArray(
        first,
        0,
        0,
        source.as_ptr().cast(),
        W * 4,
        W * 4,
        H,
        kind::HOST_TO_DEVICE
    ));
    ok!(hipMemcpy2DArrayToArray(
        second,
        0,
        0,
        first,
        0,
        0,
        W * 4,
        H,
        kind::DEVICE_TO_DEVICE
    ));
    let mut back = vec![0f32; W * H];
    ok!(hipMemcpyFromArray(
        back.as_mut_ptr().cast(),
        second,
        0,
        0,
        W * H * 4,
        kind::DEVICE_TO_HOST
    ));
    assert_eq!(back, source);
    // A part, through device memory.
    let device = device_memory(64);
    ok!(hipMemcpy2DFromArray(
        device,
        16,
        first,
        8,
        2,
        16,
        3,
        kind::DEVICE_TO_DEVICE
    ));
    let part = download(device, 12);
    for (n, found) in part.into_iter().enumerate() {
        assert_eq!(f32::from_bits(found), source[(2 + n / 4) * W + 2 + n % 4]);
    }
    ok!(hipMemcpyHtoA(first, 4, [99f32].as_ptr().cast(), 4));
    ok!(hipMemcpyAtoH(back.as_mut_ptr().cast(), first, 0, 12));
    assert_eq!(back[..3], [source[0], 99.0, source[2]]);
    fails!(
        hipMemcpy2DToArray(
            first,
            4,
            0,
            source.as_ptr().cast(),
            W * 4,
            W * 4,
            H,
            kind::HOST_TO_DEVICE
        ),
        INVALID_VALUE
    );
    fails!(
        hipMemcpy2DToArray(
            first,
            0,
            0,
            source.as_ptr().cast(),
            4,
            W * 4,
            H,
            kind::HOST_TO_DEVICE
        ),
        INVALID_PITCH_VALUE
    );
    fails!(
        hipMemcpy2DToArray(
            device,
            0,
            0,
            source.as_ptr().cast(),
            W * 4,
            W * 4,
            H,
            kind::HOST_TO_DEVICE
        ),
        INVALID_HANDLE
    );
    ok!(hipFree(device));
    ok!(hipFreeArray(first));
    ok!(hipArrayDestroy(second));
    fails!(hipFreeArray(first), CONTEXT_IS_DESTROYED);
}

#[test]
fn hip_arrays_report_their_properties() {
    let mut array = null_mut();
    let shorts = channels([16, 16, 0, 0], 0);
    ok!(hipMalloc3DArray(
        &mut array,
        &shorts,
        extent(W, H, D),
        array_flag::LAYERED
    ));
    let (mut found, mut size, mut flags) = (FLOAT, extent(0, 0, 0), 0);
    ok!(hipArrayGetInfo(&mut found, &mut size, &mut flags, array));
    assert_eq!(found, shorts);
    assert_eq!((size.width, size.height, size.depth, flags), (W, H, D, 1));
    ok!(hipGetChannelDesc(&mut found, array));
    assert_eq!(found, shorts);
    // SAFETY: plain numbers.
    let mut described: Array3dDescriptor = unsafe { std::mem::zeroed() };
    ok!(hipArray3DGetDescriptor(&mut described, array));
    assert_eq!((described.format, described.channels), (0x09, 2));
    ok!(hipFreeArray(array));
    for (given, size, flags) in [
        (channels([8, 8, 8, 0], 1), extent(W, H, 0), 0),
        (channels([8, 16, 0, 0], 1), extent(W, H, 0), 0),
        (channels([24, 0, 0, 0], 1), extent(W, H, 0), 0),
        (FLOAT, extent(0, H, 0), 0),
        (FLOAT, extent(W, 0, D), 0),
        (FLOAT, extent(W, H, D), array_flag::GATHER),
        (FLOAT, extent(16385, H, 0), 0),
        // Cubes.
        (FLOAT, extent(W, W, 6), 4),
    ] {
        fails!(
            hipMalloc3DArray(&mut array, &given, size, flags),
            INVALID_VALUE
        );
    }
    fails!(hipGetChannelDesc(&mut found, null()), INVALID_HANDLE);
}

/// A 3D copy into an array, of which each slice is read back by the driver's function and all of it by a texture.
#[test]
fn arrays_with_three_dimensions_or_layers_are_sampled() {
    let source: Vec<f32> = (0..W * H * D).map(|n| n as f32 * 0.5).collect();
    for (flags, kernel) in [
        (0, c"sample_3d"),
        (array_flag::LAYERED, c"sample_2d_layered"),
    ] {
        let mut array = null_mut();
        ok!(hipMalloc3DArray(&mut array, &FLOAT, extent(W, H, D), flags));
        let host = PitchedPtr {
            ptr: source.as_ptr().cast::<c_void>().cast_mut(),
            pitch: W * 4,
            xsize: W * 4,
            ysize: H,
        };
        let nowhere = PitchedPtr {
            ptr: null_mut(),
            pitch: 0,
            xsize: 0,
            ysize: 0,
        };
        let whole = Memcpy3D {
            src_array: null_mut(),
            src_pos: Pos::default(),
            src_ptr: host,
            dst_array: array,
            dst_pos: Pos::default(),
            dst_ptr: nowhere,
            extent: extent(W, H, D),
            kind: kind::HOST_TO_DEVICE,
        };
        ok!(hipMemcpy3D(&whole));
        let object = texture(&array_resource(array), &clamped());
        let mut at = centres(W, H, D);
        if flags != 0 {
            at.iter_mut().for_each(|at| at[2] -= 0.5);
        }
        let found = run(kernel, object, &at);
        assert!(
            found
                .iter()
                .zip(&source)
                .all(|(found, value)| *found == [*value, 0.0, 0.0, 1.0])
        );
        let mut slice = vec![0f32; W * H];
        // SAFETY: plain numbers and null pointers.
        let mut copy: DrvMemcpy3D = unsafe { std::mem::zeroed() };
        (copy.src_type, copy.src_array, copy.src_z) = (memory_type::ARRAY, array, 1);
        (copy.dst_type, copy.dst_host) = (memory_type::HOST, slice.as_mut_ptr().cast());
        (copy.width, copy.height, copy.depth) = (W * 4, H, 1);
        ok!(hipDrvMemcpy3D(&copy));
        assert_eq!(slice, source[W * H..2 * W * H]);
        let linear = TextureDesc {
            filter: 1,
            ..clamped()
        };
        let mut refused = null_mut();
        let resource = array_resource(array);
        fails!(
            hipCreateTextureObject(&mut refused, &resource, &linear, null()),
            NOT_SUPPORTED
        );
        ok!(hipDestroyTextureObject(object));
        fails!(hipDestroyTextureObject(object), INVALID_VALUE);
        ok!(hipFreeArray(array));
    }
}

#[test]
fn textures_sample_linear_memory_in_place() {
    let source: Vec<u8> = (0..256 * H).map(|n| (n * 7) as u8).collect();
    let memory = device_memory(256 * H);
    ok!(hipMemcpy(
        memory,
        source.as_ptr().cast(),
        256 * H,
        kind::HOST_TO_DEVICE
    ));
    let bytes = channels([8, 8, 8, 8], 1);
    let pitched = |width, pitch, pointer| ResourceDesc {
        kind: resource_type::PITCH_2D,
        any: AnyResource {
            pitched: PitchedResource {
                pointer,
                channels: bytes,
                width,
                height: H,
                pitch,
            },
        },
    };
    let fractions = TextureDesc {
        read: 1,
        ..clamped()
    };
    let object = texture(&pitched(W, 256, memory), &fractions);
    for (n, found) in run(c"sample_2d", object, &centres(W, H, 1))
        .iter()
        .enumerate()
    {
        let texel = &source[n / W * 256 + n % W * 4..][..4];
        assert!(
            found
                .iter()
                .zip(texel)
                .all(|(found, byte)| *found == f32::from(*byte) / 255.0)
        );
    }
    // What was made is described, by both interfaces.
    // SAFETY: plain numbers and null pointers.
    let (mut resource, mut driver): (ResourceDesc, DrvResourceDesc) = unsafe { std::mem::zeroed() };
    ok!(hipGetTextureObjectResourceDesc(&mut resource, object));
    ok!(hipTexObjectGetResourceDesc(&mut driver, object));
    // SAFETY: both are of pitched memory.
    let (runtime, driver) = unsafe { (resource.any.pitched, driver.any.pitched) };
    assert_eq!((runtime.width, driver.width, driver.pitch), (W, W, 256));
    assert_eq!((driver.format, driver.channels), (1, 4));
    let (mut given, mut flags) = (TextureDesc::default(), DrvTextureDesc::default());
    ok!(hipGetTextureObjectTextureDesc(&mut given, object));
    ok!(hipTexObjectGetTextureDesc(&mut flags, object));
    assert_eq!((given.read, given.address[0], flags.flags), (1, 1, 0));
    ok!(hipDestroyTextureObject(object));

    let linear = |bytes, channels| ResourceDesc {
        kind: resource_type::LINEAR,
        any: AnyResource {
            linear: LinearResource {
                pointer: memory,
                channels,
                bytes,
            },
        },
    };
    let object = texture(
        &linear(100, channels([16, 0, 0, 0], 0)),
        &TextureDesc::default(),
    );
    let at: Vec<_> = (0..60).map(|n| [n, 0, 0, 0].map(f32::from_bits)).collect();
    for (n, found) in run(c"fetch", object, &at).iter().enumerate() {
        let value = i32::from(i16::from_le_bytes([source[2 * n], source[2 * n + 1]]));
        let value = if n < 50 { value } else { 0 };
        assert_eq!(found[0].to_bits() as i32, value, "{n}");
    }
    ok!(hipTexObjectDestroy(object));

    let mut object = null_mut();
    let inside = (memory as usize + 16) as *mut c_void;
    for resource in [
        pitched(W, 240, memory),
        pitched(W, 256, inside),
        pitched(W, 256, null_mut()),
        pitched(65, 256, memory),
        linear(256 * H + 4096, bytes),
        linear(64, channels([8, 8, 8, 0], 1)),
    ] {
        fails!(
            hipCreateTextureObject(&mut object, &resource, &clamped(), null()),
            INVALID_VALUE
        );
    }
    ok!(hipFree(memory));
}

#[test]
fn surfaces_are_written_and_read_through_textures() {
    let mut array = null_mut();
    ok!(hipMallocArray(
        &mut array,
        &channels([16, 16, 16, 16], 2),
        W,
        H,
        array_flag::SURFACE
    ));
    let mut surface = null_mut();
    ok!(hipCreateSurfaceObject(&mut surface, &array_resource(array)));
    let places: Vec<_> = (0..W * H)
        .map(|n| [n % W, n / W, 0, 0].map(|at| f32::from_bits(at as u32)))
        .collect();
    // All have the numbers that memory is filled with before: 0x5a5a5a5a is about 1.5e16, too much for a half.
    run(c"store_2d", surface, &places);
    let infinite = [f32::INFINITY; 4];
    assert!(
        run(c"load_2d", surface, &places)
            .iter()
            .all(|found| *found == infinite)
    );
    ok!(hipDestroySurfaceObject(surface));
    // The same memory as unsigned numbers, by a view.
    let view = ViewDesc {
        format: 9,
        width: W,
        height: H,
        ..ViewDesc::default()
    };
    let mut object = null_mut();
    ok!(hipCreateTextureObject(
        &mut object,
        &array_resource(array),
        &clamped(),
        &view
    ));
    let found = run(c"sample_2d", object, &centres(W, H, 1));
    assert!(
        found
            .iter()
            .all(|found| *found == [f32::from_bits(0x7c00); 4])
    );
    let mut described = ViewDesc::default();
    ok!(hipGetTextureObjectResourceViewDesc(&mut described, object));
    assert_eq!((described.format, described.width), (9, W));
    ok!(hipDestroyTextureObject(object));
    let other_size = ViewDesc { format: 8, ..view };
    fails!(
        hipCreateTextureObject(&mut object, &array_resource(array), &clamped(), &other_size),
        INVALID_VALUE
    );
    ok!(hipFreeArray(array));
    fails!(
        hipCreateSurfaceObject(&mut surface, &array_resource(array)),
        INVALID_VALUE
    );
}
