//! Images that other drivers made, from their descriptions.

use super::*;

/// Description of an image by another driver: version, device, and the words of the descriptor.
fn layout(words: [u32; 8]) -> [u32; 10] {
    let mut device = 0u32;
    // SAFETY: the output is valid.
    ok(unsafe { hsa_agent_get_info(gpu(), 0xA000, (&raw mut device).cast()) });
    let mut all = [1, 0x1002 << 16 | device, 0, 0, 0, 0, 0, 0, 0, 0];
    all[2..].copy_from_slice(&words);
    all
}

/// Makes an image of memory that another driver describes.
fn adopt(
    descriptor: &ImageDescriptor,
    layout: *const u32,
    memory: *const c_void,
) -> Result<u64, Status> {
    let mut image = 0;
    // SAFETY: all pointers are valid.
    let status =
        unsafe { hsa_amd_image_create(gpu(), descriptor, layout, memory, READ_WRITE, &mut image) };
    (status == status::SUCCESS).then_some(image).ok_or(status)
}

/// A descriptor of integers of 32 bits: 13 by 7 texels in 5 layers, 64 texels from row to row, and no address.
const FOREIGN: [u32; 8] = [
    0,
    4 << 20 | 4 << 26,
    12 | 6 << 14,
    // X, 0, 0, 1 and a 2D array, whose channels have other places.
    5 | 6 << 3 | 7 << 6 | 4 << 9 | 13 << 28,
    4 | 63 << 13,
    0,
    0,
    0x20,
];

#[test]
fn images_of_other_drivers_are_read_and_written() {
    init();
    let descriptor = described(geometry::D2_LAYERED, [13, 7, 0, 5], FLOAT, R);
    let bytes = 64 * 1024;
    let memory = allocate(1, PoolKind::DeviceCoarse, bytes);
    let address = memory as u64;
    let image = adopt(&descriptor, layout(FOREIGN).as_ptr(), memory).expect("an image");
    // SAFETY: a handle is the address of twelve words.
    let words = unsafe { *(image as *const [u32; 11]) };
    assert_eq!(
        words,
        [
            (address >> 8) as u32,
            (address >> 40) as u32 | 4 << 20 | 7 << 26,
            FOREIGN[2],
            // X, 0, 0, 1.
            4 | 1 << 9 | 13 << 28,
            FOREIGN[4],
            // The metadata is 8 KiB from the image's start.
            ((address + 0x2000) >> 40 << 17) as u32,
            0,
            ((address + 0x2000) >> 8) as u32,
            FLOAT,
            R,
            13,
        ]
    );
    let whole = at([0; 3], [13, 7, 5]);
    let texels: Vec<f32> = (0..13 * 7 * 5).map(|n| n as f32).collect();
    import(image, &texels, [0, 0], &whole);
    let places: Vec<[f32; 4]> = (0..100u32)
        .map(|n| [n % 13, n / 13 % 7, n / 91, 0].map(f32::from_bits))
        .collect();
    let stored = run(c"store_2d_layered.kd", image, None, &places);
    // 256 bytes from row to row, 7 rows from layer to layer.
    for (n, value) in stored.iter().enumerate() {
        let byte = n % 13 * 4 + n / 13 * 256;
        // SAFETY: within the memory, which the host may read in the simulator.
        let found = unsafe { memory.byte_add(byte).cast::<f32>().read() };
        assert_eq!(found, value[0], "{n}");
    }
    let back = export::<f32>(image, texels.len(), [0, 0], &whole);
    assert_eq!(back[..100], stored.iter().map(|v| v[0]).collect::<Vec<_>>());
    assert_eq!(back[100..], texels[100..]);
    // The second of four levels, which begins after seven rows, of fourteen in a layer.
    let mut leveled = FOREIGN;
    leveled[3] |= 1 << 12 | 1 << 16;
    leveled[4] = 4 | 13 << 13;
    leveled[5] = 3 << 28;
    let level = adopt(&descriptor, layout(leveled).as_ptr(), memory).expect("an image");
    let part = at([0; 3], [6, 3, 5]);
    let values: Vec<f32> = (0..90).map(|n| -(n as f32)).collect();
    import(level, &values, [0, 0], &part);
    assert_eq!(export::<f32>(level, 90, [0, 0], &part), values);
    // SAFETY: as above.
    let found = unsafe { memory.byte_add(256 * (14 + 7 + 2) + 4).cast::<f32>().read() };
    assert_eq!(found, -(18.0 + 12.0 + 1.0));
    for image in [image, level] {
        // SAFETY: an image.
        ok(unsafe { hsa_ext_image_destroy(gpu(), image) });
    }
}

#[test]
fn buffers_of_other_drivers_are_read() {
    init();
    let descriptor = described(geometry::BUFFER, [100, 0, 0, 0], UNORM8, RGBA);
    let memory = allocate(1, PoolKind::DeviceCoarse, 4096);
    let words = [7, 9 << 16, 3, 0, 0, 0, 0, 0];
    let image = adopt(&descriptor, layout(words).as_ptr(), memory).expect("an image");
    import(
        image,
        &[0xff00_00ffu32, 0, 0x33],
        [0, 0],
        &at([0; 3], [3, 1, 1]),
    );
    let places: Vec<[f32; 4]> = (0..4).map(|n| [f32::from_bits(n), 0.0, 0.0, 0.0]).collect();
    let loaded = run(c"fetch.kd", image, None, &places);
    assert_eq!(
        loaded,
        [
            [1.0, 0.0, 0.0, 1.0],
            [0.0; 4],
            [0.2, 0.0, 0.0, 0.0],
            [0.0; 4]
        ]
    );
    let swizzled = [7, 9 << 16 | 1 << 31, 3, 0, 0, 0, 0, 0];
    assert_eq!(
        adopt(&descriptor, layout(swizzled).as_ptr(), memory),
        Err(status::EXT_IMAGE_FORMAT_UNSUPPORTED)
    );
}

#[test]
fn descriptions_of_other_drivers_are_checked() {
    init();
    let descriptor = described(geometry::D2_LAYERED, [13, 7, 0, 5], FLOAT, R);
    let memory = allocate(1, PoolKind::DeviceCoarse, 64 * 1024).cast_const();
    let valid = layout(FOREIGN);
    let changed = |word: usize, value: u32| {
        let mut changed = valid;
        changed[word] = value;
        adopt(&descriptor, changed.as_ptr(), memory)
    };
    let unsupported = Err(status::EXT_IMAGE_FORMAT_UNSUPPORTED);
    assert_eq!(changed(0, 2), unsupported);
    assert_eq!(changed(1, 0x1002 << 16), unsupported);
    // Texels of 16 bits, and of 24.
    assert_eq!(changed(3, 2 << 20), unsupported);
    assert_eq!(changed(3, 4 << 20), unsupported);
    // Tiles, and compression.
    assert_eq!(changed(5, valid[5] | 9 << 20), unsupported);
    assert_eq!(changed(8, 1 << 21), unsupported);
    let inside = memory.wrapping_byte_add(128);
    assert_eq!(
        adopt(&descriptor, valid.as_ptr(), inside),
        Err(status::ERROR_INVALID_ALLOCATION)
    );
    let invalid = Err(status::ERROR_INVALID_ARGUMENT);
    assert_eq!(adopt(&descriptor, std::ptr::null(), memory), invalid);
    assert_eq!(
        adopt(&descriptor, valid.as_ptr(), std::ptr::null()),
        invalid
    );
    let other = described(geometry::D2_LAYERED, [13, 7, 0, 5], FLOAT, BGRA);
    assert_eq!(adopt(&other, valid.as_ptr(), memory), unsupported);
    let mut image = 0;
    // SAFETY: all pointers are valid.
    let on_host = unsafe {
        let device = [1, 0x1002 << 16];
        hsa_amd_image_create(
            cpu(),
            &descriptor,
            device.as_ptr(),
            memory,
            READ_WRITE,
            &mut image,
        )
    };
    assert_ne!(on_host, status::SUCCESS);
}
