//! Images and samplers.

mod other_drivers;

use rpd_gfx::isa::image::{AddressMode, Sampler};

use super::*;
use crate::hsa::image::{ImageDataInfo, ImageDescriptor, ImageFormat, SamplerDescriptor, geometry};
use crate::hsa::image_calls::*;

static IMAGES: &[u8] =
    include_bytes!("../../../../tests/workloads/kernels/prebuilt/images-gfx90a.co");

const FLOAT: u32 = 15;
const UNORM8: u32 = 2;
const UNORM_555: u32 = 5;
const UNORM_565: u32 = 6;
const UNORM_101010: u32 = 7;
const R: u32 = 1;
const RGB: u32 = 6;
const RGBA: u32 = 8;
const BGRA: u32 = 9;
const SRGBA: u32 = 14;
const INTENSITY: u32 = 16;
const READ_WRITE: u32 = 3;
const LINEAR: u32 = 1;

fn described(
    geometry: u32,
    sizes: [usize; 4],
    channel_type: u32,
    channel_order: u32,
) -> ImageDescriptor {
    let [width, height, depth, layers] = sizes;
    ImageDescriptor {
        geometry,
        width,
        height,
        depth,
        layers,
        format: ImageFormat {
            channel_type,
            channel_order,
        },
    }
}

fn info(image: &ImageDescriptor) -> Result<ImageDataInfo, Status> {
    let mut info = ImageDataInfo::default();
    // SAFETY: all pointers are valid.
    match unsafe { hsa_ext_image_data_get_info(gpu(), image, READ_WRITE, &mut info) } {
        status::SUCCESS => Ok(info),
        error => Err(error),
    }
}

/// Makes an image with memory of its own; returns its handle.
fn image(descriptor: &ImageDescriptor) -> u64 {
    let bytes = info(descriptor).expect("the image is supported").size;
    let memory = allocate(1, PoolKind::DeviceCoarse, bytes);
    let mut image = 0;
    // SAFETY: all pointers are valid; the memory is as large as the image.
    unsafe {
        memory.write_bytes(0x5a, bytes);
        ok(hsa_ext_image_create(
            gpu(),
            descriptor,
            memory,
            READ_WRITE,
            &mut image,
        ));
    }
    image
}

fn at([x, y, z]: [u32; 3], [width, height, depth]: [u32; 3]) -> ImageRegion {
    ImageRegion {
        offset: Dim3 { x, y, z },
        range: Dim3 {
            x: width,
            y: height,
            z: depth,
        },
    }
}

fn import<T: Copy>(image: u64, texels: &[T], pitches: [usize; 2], region: &ImageRegion) {
    let source = allocate(0, PoolKind::SystemFine, size_of_val(texels));
    let [row, slice] = pitches;
    // SAFETY: all pointers are valid.
    unsafe {
        source.cast::<T>().copy_from(texels.as_ptr(), texels.len());
        ok(hsa_ext_image_import(
            gpu(),
            source,
            row,
            slice,
            image,
            region,
        ));
        ok(hsa_memory_free(source));
    }
}

fn export<T: Copy>(image: u64, count: usize, pitches: [usize; 2], region: &ImageRegion) -> Vec<T> {
    let bytes = count * size_of::<T>();
    let target = allocate(0, PoolKind::SystemFine, bytes);
    let [row, slice] = pitches;
    // SAFETY: all pointers are valid.
    unsafe {
        target.write_bytes(0, bytes);
        ok(hsa_ext_image_export(
            gpu(),
            image,
            target,
            row,
            slice,
            region,
        ));
        let found = std::slice::from_raw_parts(target.cast::<T>(), count).to_vec();
        ok(hsa_memory_free(target));
        found
    }
}

/// Initial texel at a work-item's place in the output, for kernels that store to an image instead.
fn before(item: usize) -> [f32; 4] {
    [item as f32, 1.0, 2.0, 3.0]
}

/// Result of a kernel of `images.hip` for an image and a sampler at coordinates.
fn run(kernel: &CStr, image: u64, sampler: Option<u64>, coordinates: &[[f32; 4]]) -> Vec<[f32; 4]> {
    let module = Module::load_from(IMAGES);
    let bytes = size_of_val(coordinates);
    let block = allocate(0, PoolKind::SystemFine, 8192);
    let (object, places, out) = (block as usize, block as usize + 256, block as usize + 4096);
    let arguments = [
        object as u64,
        out as u64,
        places as u64,
        coordinates.len() as u64,
    ];
    let done = new_signal(1);
    let queue = new_queue(None, std::ptr::null_mut());
    // SAFETY: objects have as many words; the block has room for all of it.
    unsafe {
        (object as *mut u32).copy_from(image as *const u32, 12);
        if let Some(sampler) = sampler {
            (object as *mut u32)
                .add(12)
                .copy_from(sampler as *const u32, 4);
        }
        for item in 0..coordinates.len() {
            (out as *mut [f32; 4]).add(item).write(before(item));
        }
        (places as *mut [f32; 4]).copy_from(coordinates.as_ptr(), coordinates.len());
        let kernarg = kernarg(0);
        kernarg.cast::<u64>().copy_from(arguments.as_ptr(), 4);
        let groups = coordinates.len().div_ceil(64) as u32;
        let packet = dispatch(module.kernel(kernel), groups, kernarg, done);
        submit(queue, &packet, packet_type::KERNEL_DISPATCH);
        wait(done);
        ok(hsa_queue_destroy(queue));
        assert!(bytes <= 3840);
        std::slice::from_raw_parts(out as *const [f32; 4], coordinates.len()).to_vec()
    }
}

fn sampler(descriptor: &SamplerDescriptor) -> u64 {
    let mut sampler = 0;
    // SAFETY: all pointers are valid.
    ok(unsafe { hsa_ext_sampler_create_v2(gpu(), descriptor, &mut sampler) });
    sampler
}

#[test]
fn hsa_agents_report_their_image_formats() {
    init();
    let capability = |agent, geometry, channel_type, channel_order| {
        let format = ImageFormat {
            channel_type,
            channel_order,
        };
        let mut mask = u32::MAX;
        // SAFETY: all pointers are valid.
        ok(unsafe { hsa_ext_image_get_capability(agent, geometry, &format, &mut mask) });
        mask
    };
    assert_eq!(capability(gpu(), geometry::D2, FLOAT, RGBA), 7);
    assert_eq!(capability(gpu(), geometry::D2, UNORM8, SRGBA), 1);
    assert_eq!(capability(gpu(), geometry::BUFFER, UNORM8, SRGBA), 0);
    assert_eq!(capability(gpu(), geometry::D2, FLOAT, BGRA), 0);
    assert_eq!(capability(gpu(), geometry::D2_DEPTH, FLOAT, 18), 3);
    assert_eq!(capability(gpu(), geometry::D2_DEPTH, FLOAT, R), 0);
    // Packed texels, of 565 not in buffers, and the agent of the host.
    assert_eq!(capability(gpu(), geometry::D2, UNORM_565, RGB), 7);
    assert_eq!(capability(gpu(), geometry::D2, UNORM_565, RGBA), 0);
    assert_eq!(capability(gpu(), geometry::D2, UNORM8, RGB), 0);
    assert_eq!(capability(gpu(), geometry::BUFFER, UNORM_565, RGB), 0);
    assert_eq!(capability(gpu(), geometry::BUFFER, UNORM_101010, RGB), 7);
    assert_eq!(capability(cpu(), geometry::D2, FLOAT, RGBA), 0);
    let mut sizes = [0u32; 3];
    let mut supported = false;
    let mut functions = [0usize; 14];
    // SAFETY: all pointers are valid.
    unsafe {
        ok(hsa_agent_get_info(gpu(), 0x3007, sizes.as_mut_ptr().cast()));
        ok(hsa_system_extension_supported(1, 1, 0, &mut supported));
        let table = functions.as_mut_ptr().cast();
        ok(hsa_system_get_major_extension_table(
            1,
            1,
            size_of_val(&functions),
            table,
        ));
        let mut mask = [0u8; 128];
        ok(hsa_agent_get_info(gpu(), 20, mask.as_mut_ptr().cast()));
        assert_eq!(mask[0], 2);
    }
    assert_eq!(sizes, [16384, 16384, 8192]);
    assert!(supported && functions.iter().all(|function| *function != 0));
}

#[test]
fn unsupported_image_descriptions_are_refused() {
    init();
    let image = |sizes| described(geometry::D2, sizes, FLOAT, R);
    assert_eq!(
        info(&image([16385, 1, 0, 0])),
        Err(status::EXT_IMAGE_SIZE_UNSUPPORTED)
    );
    assert_eq!(
        info(&image([16, 0, 0, 0])),
        Err(status::EXT_IMAGE_SIZE_UNSUPPORTED)
    );
    assert_eq!(
        info(&image([16, 16, 2, 0])),
        Err(status::EXT_IMAGE_SIZE_UNSUPPORTED)
    );
    assert_eq!(
        info(&described(geometry::D2, [16, 16, 0, 0], FLOAT, BGRA)),
        Err(status::EXT_IMAGE_FORMAT_UNSUPPORTED)
    );
    assert_eq!(
        info(&image([11, 6, 0, 0])),
        Ok(ImageDataInfo {
            size: 6 * 256,
            alignment: 256
        })
    );
    let with_rows = |row, slice| {
        let mut info = ImageDataInfo::default();
        let image = image([11, 6, 0, 0]);
        // SAFETY: all pointers are valid.
        let status = unsafe {
            hsa_ext_image_data_get_info_with_layout(
                gpu(),
                &image,
                READ_WRITE,
                LINEAR,
                row,
                slice,
                &mut info,
            )
        };
        (status, info.size)
    };
    assert_eq!(with_rows(512, 0), (status::SUCCESS, 6 * 512));
    assert_eq!(with_rows(512, 6 * 512), (status::SUCCESS, 6 * 512));
    for (row, slice) in [(0, 0), (44, 0), (300, 0), (512, 512)] {
        let refused = (status::EXT_IMAGE_PITCH_UNSUPPORTED, 0);
        assert_eq!(with_rows(row, slice), refused, "{row} {slice}");
    }
    let (mut handle, memory) = (0, allocate(1, PoolKind::DeviceCoarse, 4096));
    let sampler = SamplerDescriptor {
        coordinate_mode: 0,
        filter_mode: 0,
        address_modes: [5, 0, 0],
    };
    // SAFETY: all pointers are valid; handles that do not exist are refused.
    unsafe {
        let image = image([11, 6, 0, 0]);
        let unaligned = memory.byte_add(64);
        let status = hsa_ext_image_create(gpu(), &image, unaligned, READ_WRITE, &mut handle);
        assert_eq!(status, status::ERROR_INVALID_ARGUMENT);
        let status = hsa_ext_image_create(cpu(), &image, memory, READ_WRITE, &mut handle);
        assert_eq!(status, status::EXT_IMAGE_FORMAT_UNSUPPORTED);
        assert_eq!(
            hsa_ext_image_destroy(gpu(), 77),
            status::ERROR_INVALID_ARGUMENT
        );
        assert_eq!(
            hsa_ext_sampler_destroy(gpu(), 77),
            status::ERROR_INVALID_ARGUMENT
        );
        let status = hsa_ext_sampler_create_v2(gpu(), &sampler, &mut handle);
        assert_eq!(status, status::EXT_SAMPLER_DESCRIPTOR_UNSUPPORTED);
        // A region that is not within the image, and memory that the device cannot access.
        ok(hsa_ext_image_create(
            gpu(),
            &image,
            memory,
            READ_WRITE,
            &mut handle,
        ));
        let (outside, inside) = (at([1, 0, 0], [11, 6, 1]), at([0, 0, 0], [11, 6, 1]));
        let status = hsa_ext_image_import(gpu(), memory, 0, 0, handle, &outside);
        assert_eq!(status, status::ERROR_INVALID_ARGUMENT);
        let mut own = [0f32; 66];
        let own = own.as_mut_ptr().cast();
        let status = hsa_ext_image_export(gpu(), handle, own, 0, 0, &inside);
        assert_eq!(status, status::ERROR_MEMORY_FAULT);
        ok(hsa_ext_image_destroy(gpu(), handle));
        assert_eq!(
            hsa_ext_image_destroy(gpu(), handle),
            status::ERROR_INVALID_ARGUMENT
        );
    }
}

#[test]
fn images_are_imported_copied_and_exported() {
    init();
    // Layers of one dimension are counted in y, others in z.
    for (geometry, sizes, range) in [
        (geometry::D1, [11, 0, 0, 0], [11, 1, 1]),
        (geometry::BUFFER, [11, 0, 0, 0], [11, 1, 1]),
        (geometry::D2, [11, 6, 0, 0], [11, 6, 1]),
        (geometry::D3, [11, 6, 3, 0], [11, 6, 3]),
        (geometry::D1_LAYERED, [11, 0, 0, 3], [11, 3, 1]),
        (geometry::D2_LAYERED, [11, 6, 0, 3], [11, 6, 3]),
    ] {
        let descriptor = described(geometry, sizes, FLOAT, R);
        let (first, second) = (image(&descriptor), image(&descriptor));
        let count = range.iter().product::<u32>() as usize;
        let source: Vec<f32> = (0..count).map(|n| n as f32 - 7.5).collect();
        let whole = at([0; 3], range);
        import(first, &source, [0, 0], &whole);
        let start = Dim3 { x: 0, y: 0, z: 0 };
        // SAFETY: all pointers are valid.
        unsafe {
            ok(hsa_ext_image_copy(
                gpu(),
                first,
                &start,
                second,
                &start,
                &whole.range,
            ));
        }
        assert_eq!(
            export::<f32>(second, count, [0, 0], &whole),
            source,
            "{geometry}"
        );
        // One texel of the last row, into rows with a gap.
        let [width, height, depth] = range;
        let last = at([width - 2, height - 1, depth - 1], [2, 1, 1]);
        assert_eq!(
            export::<f32>(second, 2, [64, 64], &last),
            source[count - 2..]
        );
    }
}

#[test]
fn kernels_read_images_through_samplers() {
    init();
    let image = image(&described(geometry::D2, [2, 2, 0, 0], UNORM8, BGRA));
    // Blue, green, red, alpha in memory.
    let texels = [
        [0u8, 0, 255, 255],
        [0, 255, 0, 255],
        [255, 0, 0, 255],
        [51, 51, 51, 0],
    ];
    import(image, &texels, [0, 0], &at([0; 3], [2, 2, 1]));
    let nearest = sampler(&SamplerDescriptor {
        coordinate_mode: 0,
        filter_mode: 0,
        address_modes: [2, 1, 1],
    });
    let places = [[0.5, 0.5], [1.5, 0.5], [0.5, 1.5], [1.5, 9.0], [-3.0, 0.5]];
    let places = places.map(|[x, y]| [x, y, 0.0, 0.0]);
    assert_eq!(
        run(c"sample_2d.kd", image, Some(nearest), &places),
        [
            [1.0, 0.0, 0.0, 1.0],
            [0.0, 1.0, 0.0, 1.0],
            [0.0, 0.0, 1.0, 1.0],
            [0.2, 0.2, 0.2, 0.0],
            // The border in x.
            [0.0; 4],
        ]
    );
    let linear = sampler(&SamplerDescriptor {
        coordinate_mode: 1,
        filter_mode: 1,
        address_modes: [1, 1, 1],
    });
    let middle = run(
        c"sample_2d.kd",
        image,
        Some(linear),
        &[[0.5, 0.25, 0.0, 0.0]],
    );
    assert_eq!(middle, [[0.5, 0.5, 0.0, 1.0]]);
    // SAFETY: both are samplers; the words of one are what it was made of.
    unsafe {
        let mut words = [0u32; 4];
        words.as_mut_ptr().copy_from(linear as *const u32, 4);
        let decoded = Sampler::decode(words).expect("a sampler");
        assert!(decoded.normalized && decoded.linear);
        assert_eq!(decoded.address, [AddressMode::Clamp; 3]);
        ok(hsa_ext_sampler_destroy(gpu(), linear));
        ok(hsa_ext_sampler_destroy(gpu(), nearest));
    }
}

#[test]
fn kernels_write_images_that_are_read_back() {
    init();
    let stored = image(&described(geometry::D2, [4, 1, 0, 0], FLOAT, RGBA));
    // Coordinates are integers here.
    let places: Vec<[f32; 4]> = (0..4).map(|n| [f32::from_bits(n), 0.0, 0.0, 0.0]).collect();
    run(c"store_2d.kd", stored, None, &places);
    let expected: Vec<[f32; 4]> = (0..4).map(before).collect();
    let whole = at([0; 3], [4, 1, 1]);
    assert_eq!(export::<[f32; 4]>(stored, 4, [0, 0], &whole), expected);
    assert_eq!(run(c"load_2d.kd", stored, None, &places), expected);
    // All registers of an intensity are its one channel.
    let grey = image(&described(geometry::D2, [4, 1, 0, 0], FLOAT, INTENSITY));
    import(grey, &[1.0f32, 2.0, 3.0, 4.0], [0, 0], &whole);
    let loaded = run(c"load_2d.kd", grey, None, &places);
    assert_eq!(loaded, [[1.0; 4], [2.0; 4], [3.0; 4], [4.0; 4]]);
    // Elements of a buffer.
    let buffer = image(&described(geometry::BUFFER, [4, 0, 0, 0], UNORM8, RGBA));
    import(buffer, &[0xff00_00ffu32, 0, 0, 0x33], [0, 0], &whole);
    let loaded = run(c"fetch.kd", buffer, None, &places);
    assert_eq!(loaded[0], [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(loaded[3], [0.2, 0.0, 0.0, 0.0]);
}

/// Red is in the highest bits, as OpenCL has it.
#[test]
fn packed_texels_of_hsa_images_are_read_and_written() {
    init();
    let places: Vec<[f32; 4]> = (0..4).map(|n| [f32::from_bits(n), 0.0, 0.0, 0.0]).collect();
    let whole = at([0; 3], [4, 1, 1]);
    let colours = [
        [1.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 1.0],
        [0.0, 0.0, 1.0, 1.0],
        [1.0, 1.0, 0.0, 1.0],
    ];
    let packed = |kind| described(geometry::D2, [4, 1, 0, 0], kind, RGB);
    let check = |image: u64| {
        assert_eq!(run(c"load_2d.kd", image, None, &places), colours);
        let green = [0.0, 1.0, 0.0, 0.25f32].map(f32::to_bits);
        let part = at([3, 0, 0], [1, 1, 1]);
        // SAFETY: all pointers are valid.
        ok(unsafe { hsa_ext_image_clear(gpu(), image, green.as_ptr().cast(), &part) });
    };
    for (kind, [red, green, blue]) in [
        (UNORM_555, [31 << 10, 31 << 5, 31]),
        (UNORM_565, [31 << 11, 63 << 5, 31u16]),
    ] {
        let image = image(&packed(kind));
        import(image, &[red, green, blue, red | green], [0, 0], &whole);
        check(image);
        let found = export::<u16>(image, 4, [0, 0], &whole);
        assert_eq!(found, [red, green, blue, green]);
    }
    let [red, green, blue] = [1023 << 20, 1023 << 10, 1023u32];
    let image = image(&packed(UNORM_101010));
    import(image, &[red, green, blue, red | green], [0, 0], &whole);
    check(image);
    // What a kernel stores: (0, 1, 2, 3) and so on.
    assert_eq!(
        export::<u32>(image, 4, [0, 0], &whole),
        [red, green, blue, green]
    );
    run(c"store_2d.kd", image, None, &places);
    assert_eq!(
        export::<u32>(image, 4, [0, 0], &whole),
        [
            green | blue,
            red | green | blue,
            red | green | blue,
            red | green | blue
        ]
    );
}

#[test]
fn image_fills_convert_colours() {
    init();
    let plain = image(&described(geometry::D2, [4, 3, 0, 0], UNORM8, RGBA));
    let srgb = image(&described(geometry::D2, [4, 3, 0, 0], UNORM8, SRGBA));
    let whole = at([0; 3], [4, 3, 1]);
    let start = Dim3 { x: 0, y: 0, z: 0 };
    let colour = |channels: [f32; 4]| channels.map(f32::to_bits);
    // SAFETY: all pointers are valid.
    unsafe {
        let black = colour([0.0; 4]);
        ok(hsa_ext_image_clear(
            gpu(),
            plain,
            black.as_ptr().cast(),
            &whole,
        ));
        let grey = colour([0.5, 0.25, 1.0, 0.5]);
        let part = at([1, 1, 0], [2, 1, 1]);
        ok(hsa_ext_image_clear(
            gpu(),
            plain,
            grey.as_ptr().cast(),
            &part,
        ));
        ok(hsa_ext_image_copy(
            gpu(),
            plain,
            &start,
            srgb,
            &start,
            &whole.range,
        ));
    }
    let texels = export::<[u8; 4]>(plain, 12, [0, 0], &whole);
    for (n, texel) in texels.into_iter().enumerate() {
        let filled = n == 5 || n == 6;
        assert_eq!(
            texel,
            if filled { [128, 64, 255, 128] } else { [0; 4] },
            "{n}"
        );
    }
    // 128/255 is 188 in sRGB, 64/255 is 137; alpha is not encoded.
    let texels = export::<[u8; 4]>(srgb, 12, [0, 0], &whole);
    assert_eq!(texels[5], [188, 137, 255, 128]);
    let back = image(&described(geometry::D2, [4, 3, 0, 0], UNORM8, RGBA));
    // SAFETY: all pointers are valid.
    unsafe {
        ok(hsa_ext_image_copy(
            gpu(),
            srgb,
            &start,
            back,
            &start,
            &whole.range,
        ))
    };
    assert_eq!(
        export::<[u8; 4]>(back, 12, [0, 0], &whole)[5],
        [128, 64, 255, 128]
    );
    let other = image(&described(geometry::D2, [4, 3, 0, 0], UNORM8, BGRA));
    // SAFETY: all pointers are valid.
    let status = unsafe { hsa_ext_image_copy(gpu(), plain, &start, other, &start, &whole.range) };
    assert_eq!(status, status::ERROR_INVALID_ARGUMENT);
}
