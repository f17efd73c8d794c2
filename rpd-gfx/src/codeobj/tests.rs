#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

use super::*;

use crate::device::Device;

const OBJECT: &[u8] = include_bytes!("../../testdata/kernels-O3.co");
const PLAIN: &[u8] = include_bytes!("../../testdata/small-plain.hipfb");
const COMPRESSED: &[u8] = include_bytes!("../../testdata/small-compressed.hipfb");

/// The target of the device that most tests are for.
fn gfx90a() -> Target {
    Device::find("gfx90a").unwrap().target()
}

#[test]
fn targets_are_parsed_and_matched_with_devices() {
    let device = gfx90a();
    for (text, runs) in [
        ("gfx90a", true),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", true),
        ("gfx90a:sramecc+:xnack-", true),
        ("gfx90a:xnack+", false),
        ("gfx90a:sramecc-", false),
        ("gfx906", false),
    ] {
        assert_eq!(
            Target::parse(text).unwrap().runs_on(&device),
            runs,
            "{text}"
        );
    }
    assert_eq!(device.to_string(), "gfx90a:sramecc+:xnack-");
    assert!(Target::parse("gfx90a:xnack").is_err() && Target::parse("gfx90a:other+").is_err());
}

/// Checks capture-22.
#[test]
fn pick_finds_code_in_plain_and_compressed_bundles() {
    let device = gfx90a();
    for bundle in [PLAIN, COMPRESSED] {
        let code = bundle::pick(bundle, &device).unwrap();
        let object = CodeObject::parse(&code).unwrap();
        assert_eq!(object.target().to_string(), "gfx90a:xnack-");
        assert_eq!((object.version(), object.metadata_version()), (4, (1, 1)));
        assert_eq!(object.kernels().len(), 1);
        assert!(
            object
                .variables()
                .any(|v| v.name == "variable" && v.size == 4)
        );
    }
}

#[test]
fn pick_names_the_targets_of_a_bundle_without_code_for_the_device() {
    let mut other = gfx90a();
    other.processor = "gfx1100".into();
    for bundle in [PLAIN, COMPRESSED] {
        let error = bundle::pick(bundle, &other).unwrap_err().to_string();
        assert!(
            error.contains("gfx1100") && error.contains("gfx906"),
            "{error}"
        );
    }
}

#[test]
fn pick_finds_code_in_a_second_bundle() {
    let mut other = gfx90a();
    other.processor = "gfx906".into();
    for bundle in [PLAIN, COMPRESSED] {
        let mut two = bundle.to_vec();
        two.resize(two.len().next_multiple_of(4096), 0);
        two.extend_from_slice(PLAIN);
        assert!(bundle::pick(&two, &other).is_ok());
    }
}

#[test]
fn from_pointer_finds_the_end_of_bundles_and_code_objects() {
    for bundle in [PLAIN, COMPRESSED] {
        // SAFETY: the bundle is whole and static.
        let extent = unsafe { bundle::from_pointer(bundle.as_ptr()) }.unwrap();
        assert!(extent.len() <= bundle.len() && bundle::pick(extent, &gfx90a()).is_ok());
    }
    // SAFETY: as above.
    let extent = unsafe { bundle::from_pointer(OBJECT.as_ptr()) }.unwrap();
    assert_eq!(extent.len(), OBJECT.len());
}

#[test]
fn from_wrapper_finds_the_bundle_and_refuses_another_magic() {
    let mut words = [0u64; 3];
    words[0] = 0x4849_5046 | 1 << 32;
    words[1] = PLAIN.as_ptr() as u64;
    // SAFETY: the wrapper is 24 bytes and its bundle static.
    let bundle = unsafe { bundle::from_wrapper(words.as_ptr().cast()) }.unwrap();
    assert!(PLAIN.starts_with(&bundle[..64]));
    words[0] ^= 1;
    // SAFETY: as above.
    let error = unsafe { bundle::from_wrapper(words.as_ptr().cast()) }.unwrap_err();
    assert!(error.to_string().contains("fat binary wrapper"), "{error}");
}

/// Versions 1 and 3 of the compressed header, and zlib, around the same contents.
#[test]
fn other_compressed_forms_of_bundles_are_read() {
    use std::io::Write;
    let frame = &COMPRESSED[24..];
    let size = PLAIN.len() as u64;
    let mut one = b"CCOB\x01\0\x01\0".to_vec();
    one.extend((size as u32).to_le_bytes());
    one.extend([0; 8]);
    one.extend(frame);
    let mut three = b"CCOB\x03\0\x01\0".to_vec();
    three.extend((32 + frame.len() as u64).to_le_bytes());
    three.extend(size.to_le_bytes());
    three.extend([0; 8]);
    three.extend(frame);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(PLAIN).unwrap();
    let zlib = zlib.finish().unwrap();
    let mut two = b"CCOB\x02\0\0\0".to_vec();
    two.extend((24 + zlib.len() as u32).to_le_bytes());
    two.extend((size as u32).to_le_bytes());
    two.extend([0; 8]);
    two.extend(zlib);
    for data in [one, two, three] {
        assert!(bundle::pick(&data, &gfx90a()).is_ok());
        // SAFETY: the bundle is whole and outlives the slice.
        let extent = unsafe { bundle::from_pointer(data.as_ptr()) }.unwrap();
        assert_eq!(extent.len(), data.len());
    }
}

/// A compressed bundle is decompressed only as far as the device's code object needs.
#[test]
fn compressed_bundles_are_read_only_up_to_the_code_object() {
    use std::io::Write;
    let bundle = |contents: &[u8]| {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(contents).unwrap();
        let zlib = zlib.finish().unwrap();
        let mut bundle = b"CCOB\x02\0\0\0".to_vec();
        bundle.extend((24 + zlib.len() as u32).to_le_bytes());
        bundle.extend((PLAIN.len() as u32).to_le_bytes());
        bundle.extend([0; 8]);
        bundle.extend(zlib);
        bundle
    };
    let device = gfx90a();
    let whole = bundle::pick(PLAIN, &device).unwrap();
    let start = PLAIN.windows(whole.len()).position(|part| part == &*whole);
    let start = start.unwrap();
    let end = start + whole.len();
    let cut = bundle(&PLAIN[..end]);
    assert_eq!(bundle::pick(&cut, &device).unwrap(), whole);
    let error = bundle::pick(&bundle(&PLAIN[..end - 1]), &device).unwrap_err();
    let text = format!("{end} bytes are needed, {} are there", end - 1);
    assert!(error.to_string().contains(&text), "{error}");

    // The table shows that there is none.
    let other = Target::parse("gfx1100").unwrap();
    let table = bundle(&PLAIN[..512]);
    let error = bundle::pick(&table, &other).unwrap_err();
    assert!(matches!(error, Error::NoMatch { .. }), "{error}");

    // The sizes in a table are checked against the size in the header.
    let mut far = PLAIN.to_vec();
    far[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
    far[40..48].copy_from_slice(&1u64.to_le_bytes());
    let error = bundle::pick(&bundle(&far), &device).unwrap_err();
    assert!(matches!(error, Error::Truncated { .. }), "{error}");
}

/// Code that was linked without optimisation has the notes of its object files, one after the other.
#[test]
fn code_objects_have_the_kernels_of_all_notes() {
    let word = |at: usize| u64::from_le_bytes(OBJECT[at..at + 8].try_into().unwrap()) as usize;
    let (headers, count) = (word(32), usize::from(OBJECT[56]));
    let header = (0..count).map(|n| headers + 56 * n);
    let header = header.into_iter().find(|&at| OBJECT[at] == 4).unwrap();
    let (offset, size) = (word(header + 8), word(header + 32));
    let note = OBJECT[offset..offset + size].to_vec();
    let mut other = note.clone();
    for at in 0..other.len() - 5 {
        if &other[at..at + 5] == b"calls" {
            other[at..at + 5].copy_from_slice(b"CALLS");
        }
    }
    let mut object = OBJECT.to_vec();
    object.resize(object.len().next_multiple_of(8), 0);
    let start = object.len() as u64;
    object.extend([&note[..], &other[..]].concat());
    object[header + 8..header + 16].copy_from_slice(&start.to_le_bytes());
    object[header + 32..header + 40].copy_from_slice(&(2 * size as u64).to_le_bytes());

    let whole = CodeObject::parse(OBJECT).unwrap();
    let merged = CodeObject::parse(&object).unwrap();
    assert!(merged.kernel("calls").is_some() && merged.kernel("CALLS").is_some());
    // The other kernels are in both notes, and once in the result.
    assert_eq!(merged.kernels().len(), whole.kernels().len() + 1);
}

#[test]
fn kernels_of_code_objects_have_their_arguments() {
    let object = CodeObject::parse(OBJECT).unwrap();
    assert_eq!((object.version(), object.metadata_version()), (5, (1, 2)));
    let kernel = object.kernel("calls").unwrap();
    assert_eq!(kernel.symbol, "calls.kd");
    let args: Vec<_> = kernel
        .explicit_args()
        .map(|a| (a.offset, a.size, a.kind.clone()))
        .collect();
    assert_eq!(
        args,
        [(0, 8, ArgKind::GlobalBuffer), (8, 40, ArgKind::ByValue)]
    );
    assert!(
        kernel
            .hidden_args()
            .any(|a| a.kind == ArgKind::HiddenGroupSizeX && a.offset == 48 + 12)
    );
    assert_eq!(kernel.kernarg_bytes(), 48 + 256);
}

#[test]
fn loaded_code_objects_have_descriptors_variables_and_relocations() {
    let object = CodeObject::parse(OBJECT).unwrap();
    let image = Image::load(&object, |_| None).unwrap();
    for kernel in object.kernels() {
        let (address, descriptor) = image.descriptor(&object, &kernel.symbol).unwrap();
        let entry = address.wrapping_add_signed(descriptor.entry_offset);
        assert!(
            image
                .code()
                .iter()
                .any(|(start, size)| (*start..start + size).contains(&entry))
        );
        assert_eq!(descriptor.kernarg_size, kernel.kernarg_segment_size);
        assert_eq!(
            descriptor.group_segment_size,
            kernel.group_segment_fixed_size
        );
    }
    let counter = image.address_of(&object, "counter").unwrap();
    // SAFETY: the variable lies in the image.
    assert_eq!(unsafe { (counter as *const u32).read() }, 100);
    // The table of functions was relocated.
    let table = image.address_of(&object, "table").unwrap();
    // SAFETY: as above.
    let first = unsafe { (table as *const u64).read() };
    assert!((image.base()..image.base() + image.size()).contains(&first));
}

/// Checks capture-19.
#[test]
fn a_segment_that_ends_before_its_last_argument_is_extended() {
    let object = CodeObject::parse(OBJECT).unwrap();
    let mut kernel = object.kernel("calls").unwrap().clone();
    let end = kernel.args.iter().map(|arg| arg.offset + arg.size).max();
    kernel.kernarg_segment_size = 8;
    assert_eq!(Some(kernel.kernarg_bytes()), end);
}

/// For any change of the data, parsing returns a result and does not panic.
#[test]
fn parsing_hostile_code_objects_never_panics() {
    let small = bundle::pick(PLAIN, &gfx90a()).unwrap().into_owned();
    let mut state = 1u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let attempt = |data: &[u8]| {
        if let Ok(code) = bundle::pick(data, &gfx90a())
            && let Ok(object) = CodeObject::parse(&code)
            // A changed size may be valid and very large. Memory of that size is mapped, but not accessed.
            && let Ok(image) = Image::load(&object, |_| Some(0))
        {
            for kernel in object.kernels() {
                let _ = image.descriptor(&object, &kernel.symbol);
                let _ = kernel.kernarg_bytes();
            }
        }
    };
    for seed in [small.as_slice(), PLAIN, COMPRESSED] {
        for cut in (0..seed.len()).step_by(1 + seed.len() / 97) {
            attempt(&seed[..cut]);
        }
        for _ in 0..1500 {
            let mut data = seed.to_vec();
            for _ in 0..1 + random() % 4 {
                // Changes in headers have the most effect.
                let range = if random() % 2 == 0 {
                    512.min(data.len())
                } else {
                    data.len()
                };
                let at = random() as usize % range;
                data[at] = match random() % 4 {
                    0 => 0xff,
                    1 => 0,
                    2 => data[at] ^ 1 << (random() & 7),
                    _ => random() as u8,
                };
            }
            attempt(&data);
        }
    }
}
