//! Descriptors of images, buffers and samplers.

use super::*;

/// The fields of descriptors are where the hardware has them.
#[test]
fn image_descriptors_have_the_layout_of_the_hardware() {
    let format = TexelFormat::new(8, 4, Number::Unorm).unwrap();
    let image = Image::new(
        0x7f12_3456_7800,
        format,
        Geometry::D2Layered,
        [640, 480, 7],
        704,
    );
    let words = image.encode();
    assert_eq!(
        words,
        [
            0x1234_5678,
            // Address, format 8_8_8_8 (10), UNORM (0).
            0x7f | 10 << 20,
            639 | 479 << 14,
            // X, Y, Z, W (4 to 7), linear, 2D array (13).
            4 | 5 << 3 | 6 << 6 | 7 << 9 | 13 << 28,
            6 | 703 << 13,
            0,
            0,
            0,
        ]
    );
    assert_eq!(Image::decode(words), Ok(image));
    let view = BufferView::new(TexelFormat::new(16, 2, Number::Float).unwrap());
    // Stride 4; X, Y, 0, 1; FLOAT (7), format 16_16 (5).
    let selections = 4 | 5 << 3 | 1 << 9;
    assert_eq!(
        view.encode(0x7f12_3456_7800, 99),
        [
            0x3456_7800,
            0x7f12 | 4 << 16,
            99,
            selections | 7 << 12 | 5 << 15
        ]
    );
    let sampler = Sampler {
        address: [AddressMode::Mirror, AddressMode::Clamp, AddressMode::Border],
        normalized: false,
        linear: true,
        linear_z: false,
        border: Border::OpaqueWhite,
    };
    // MIRROR 1, CLAMP_LAST_TEXEL 2, CLAMP_BORDER 6; unnormalised; bilinear; opaque white.
    let words = [
        1 | 2 << 3 | 6 << 6 | 1 << 15,
        0xfff << 12,
        1 << 20 | 1 << 22,
        2 << 30,
    ];
    assert_eq!(sampler.encode(), words);
    assert_eq!(Sampler::decode(words), Ok(sampler));
}

/// Unsupported features end the dispatch with an error that names them.
#[test]
fn unsupported_image_descriptors_are_named_in_the_fault() {
    let mut texels = Texels::random(1);
    let format = TexelFormat::new(32, 4, Number::Float).unwrap();
    let words = Image::new(texels.base(), format, Geometry::D2, [4, 4, 1], 4).encode();
    let changed = |word: usize, clear: u32, set: u32| {
        let mut words = words;
        words[word] = words[word] & !clear | set;
        words
    };
    for (words, what) in [
        (changed(3, 31 << 20, 9 << 20), Unsupported::Tiling(9)),
        (changed(3, 15 << 16, 2 << 16), Unsupported::Levels(3)),
        (changed(3, 15 << 28, 14 << 28), Unsupported::Type(14)),
        (
            changed(1, 63 << 20, 6 << 20),
            Unsupported::Format { data: 6, number: 7 },
        ),
        // 5_6_5 of floats.
        (
            changed(1, 63 << 20, 16 << 20),
            Unsupported::Format {
                data: 16,
                number: 7,
            },
        ),
        (changed(3, 15 << 12, 1 << 12), Unsupported::Levels(1)),
        (
            changed(5, 0, 3 << 28),
            unsupported("height of all levels", 4),
        ),
        (
            changed(1, 0, 256 << 8),
            unsupported("least level of detail", 256),
        ),
        (changed(5, 0, 1), unsupported("first layer", 1)),
        (changed(5, 0, 2 << 13), unsupported("pitch of layers", 2)),
        (changed(6, 0, 1 << 21), unsupported("compression", 1)),
    ] {
        assert_eq!(Image::decode(words), Err(what.clone()));
        let fault = fault("load_2d", &Object::new(&words, [0; 4]));
        assert!(
            matches!(&fault, Fault::Descriptor { what: found, .. } if *found == what),
            "{fault}"
        );
        assert!(
            fault
                .to_string()
                .starts_with(&format!("descriptor with {what}")),
            "{fault}"
        );
    }
}

fn unsupported(name: &'static str, value: u32) -> Unsupported {
    Unsupported::Field { name, value }
}

#[test]
fn unsupported_samplers_are_named_in_the_fault() {
    let words = Sampler {
        address: [AddressMode::Clamp; 3],
        normalized: true,
        linear: true,
        linear_z: false,
        border: Border::TransparentBlack,
    }
    .encode();
    let mut anisotropic = words;
    anisotropic[2] |= 2 << 20 | 2 << 22;
    // Anisotropic filtering with a ratio of one is supported.
    assert_eq!(Sampler::decode(anisotropic), Sampler::decode(words));
    for (words, word, bits, what) in [
        (anisotropic, 0, 3 << 9, unsupported("anisotropy", 3)),
        (words, 0, 4, Unsupported::AddressMode(4)),
        (
            words,
            2,
            1 << 22,
            unsupported("filter for reduced images", 0),
        ),
        (
            words,
            0,
            1 << 20,
            unsupported("removal of sRGB's encoding", 1),
        ),
        (
            words,
            0,
            1 << 27,
            unsupported("truncation of coordinates", 1),
        ),
        (words, 0, 2 << 29, unsupported("filter mode", 2)),
        (words, 3, 3 << 30, Unsupported::BorderColour),
    ] {
        let mut changed = words;
        changed[word] ^= bits;
        if what == Unsupported::AddressMode(4) {
            // Bilinear between the border and the edge.
            changed[word] = changed[word] & !7 | 4;
        }
        assert_eq!(Sampler::decode(changed), Err(what));
    }
}
