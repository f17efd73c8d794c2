//! Texels whose channels differ in size: 555, 565 and 101010.

use super::*;
use crate::isa::image::Selection;

/// A format as OpenCL defines it: widths of red, green and blue, from the highest bits to the lowest.
struct Packed {
    /// Widths of the channels from the lowest on, as devices define formats.
    bits: [u8; 4],
    /// Lowest bit and width of red, green and blue.
    colours: [(u32, u32); 3],
}

const FORMATS: [Packed; 3] = [
    Packed {
        bits: [5, 5, 5, 1],
        colours: [(10, 5), (5, 5), (0, 5)],
    },
    Packed {
        bits: [5, 6, 5, 0],
        colours: [(11, 5), (5, 6), (0, 5)],
    },
    Packed {
        bits: [10, 10, 10, 2],
        colours: [(20, 10), (10, 10), (0, 10)],
    },
];

/// Selections for registers with red, green, blue and 1, where blue is the lowest channel.
const RGB: [Selection; 4] = [
    Selection::Channel(2),
    Selection::Channel(1),
    Selection::Channel(0),
    Selection::One,
];

impl Packed {
    fn image(&self, texels: &mut Texels) -> Image {
        let format = TexelFormat::from_bits(self.bits, Number::Unorm).unwrap();
        let size = [WIDTH as u32, HEIGHT as u32, 1];
        Image::new(texels.base(), format, Geometry::D2, size, PITCH as u32 * 4).with_selections(RGB)
    }

    fn bytes(&self) -> usize {
        if self.bits[0] == 10 { 4 } else { 2 }
    }

    /// The bytes of a texel as a number.
    fn raw(&self, texels: &Texels, [x, y]: [usize; 2]) -> u32 {
        let start = (y * PITCH * 4 + x) * self.bytes();
        let bytes = texels.bytes(start).take(self.bytes());
        bytes
            .enumerate()
            .fold(0, |raw, (n, byte)| raw | u32::from(byte) << (8 * n))
    }

    fn colours(&self, raw: u32) -> [f64; 4] {
        let [r, g, b] = self.colours.map(|(first, bits)| {
            let greatest = (1u32 << bits) - 1;
            f64::from(raw >> first & greatest) / f64::from(greatest)
        });
        [r, g, b, 1.0]
    }
}

fn places() -> Vec<Four> {
    (0..N as u32)
        .map(|n| [n % WIDTH as u32, n / WIDTH as u32, 0, 0].map(f32::from_bits))
        .collect()
}

fn close(found: Four, expected: [f64; 4], what: &str) {
    for (found, expected) in found.into_iter().zip(expected) {
        assert!(
            (f64::from(found) - expected).abs() <= 1e-7,
            "{what}: {found} {expected}"
        );
    }
}

#[test]
fn packed_texels_are_loaded_and_sampled() {
    for packed in &FORMATS {
        let mut texels = Texels::random(31);
        let image = packed.image(&mut texels);
        assert_eq!(image.format.bytes() as usize, packed.bytes());
        assert_eq!(Image::decode(image.encode()), Ok(image));
        let mut out = vec![[7f32; 4]; N];
        run(
            "load_2d",
            &Object::new(&image.encode(), [0; 4]),
            &mut places(),
            &mut out,
            2,
        );
        for (n, found) in out.iter().enumerate() {
            let (x, y) = (n % WIDTH, n / WIDTH);
            let expected = if y < HEIGHT {
                packed.colours(packed.raw(&texels, [x, y]))
            } else {
                [0.0, 0.0, 0.0, 1.0]
            };
            close(*found, expected, &format!("{:?} at {x} {y}", packed.bits));
        }
        let sampler = Sampler {
            address: [AddressMode::Clamp; 3],
            normalized: false,
            linear: true,
            linear_z: false,
            border: Border::TransparentBlack,
        };
        // A quarter of the way from one texel to the next in both directions.
        let at = |n: usize| [n % (WIDTH - 1), n / (WIDTH - 1) % (HEIGHT - 1)];
        let mut coordinates: Vec<Four> = (0..N)
            .map(|n| {
                let [x, y] = at(n).map(|at| at as f32 + 0.75);
                [x, y, 0.0, 0.0]
            })
            .collect();
        run(
            "sample_2d",
            &Object::new(&image.encode(), sampler.encode()),
            &mut coordinates,
            &mut out,
            1,
        );
        for (n, found) in out.iter().enumerate() {
            let [x, y] = at(n);
            let colours = |x, y| packed.colours(packed.raw(&texels, [x, y]));
            let expected = std::array::from_fn(|n| {
                (colours(x, y)[n] * 9.0
                    + (colours(x + 1, y)[n] + colours(x, y + 1)[n]) * 3.0
                    + colours(x + 1, y + 1)[n])
                    / 16.0
            });
            close(*found, expected, &format!("{:?} sampled", packed.bits));
        }
    }
}

#[test]
fn packed_texels_are_stored() {
    let mut random = Random(33);
    for packed in &FORMATS {
        let mut texels = Texels::random(32);
        let before = Texels(texels.0);
        let image = packed.image(&mut texels);
        // From -0.25 to 1.25.
        let mut out: Vec<Four> = (0..N)
            .map(|_| {
                let mut next = || (random.next() % 1536) as f32 / 1024.0 - 0.25;
                [next(), next(), next(), next()]
            })
            .collect();
        let given = out.clone();
        run(
            "store_2d",
            &Object::new(&image.encode(), [0; 4]),
            &mut places(),
            &mut out,
            2,
        );
        for y in 0..HEIGHT {
            for x in 0..PITCH * 4 {
                let found = packed.raw(&texels, [x, y]);
                if x >= WIDTH {
                    assert_eq!(found, packed.raw(&before, [x, y]), "the gap");
                    continue;
                }
                for ((first, bits), colour) in packed.colours.into_iter().zip(given[y * WIDTH + x])
                {
                    let greatest = f64::from((1u32 << bits) - 1);
                    let exact = f64::from(colour).clamp(0.0, 1.0) * greatest;
                    let found = f64::from(found >> first & ((1 << bits) - 1));
                    assert!(
                        (found - exact).abs() <= 0.5 + 1e-4,
                        "{:?}: {colour} is {found}",
                        packed.bits
                    );
                }
                // No register reads the remaining bits.
                let last = packed.bits[..3].iter().sum::<u8>();
                let all = packed.bytes() as u8 * 8;
                assert!(last == all || found >> last == 0);
            }
        }
    }
}

#[test]
fn packed_integers_and_buffers_of_ten_bits_are_loaded() {
    let mut texels = Texels::random(34);
    let format = TexelFormat::from_bits([10, 10, 10, 2], Number::Uint).unwrap();
    let view = BufferView::new(format);
    let mut coordinates = places();
    for (n, place) in coordinates.iter_mut().enumerate() {
        place[0] = f32::from_bits(n as u32);
    }
    let mut out = vec![[7f32; 4]; N];
    run(
        "fetch",
        &Object::new(&view.encode(texels.base(), 300), [0; 4]),
        &mut coordinates,
        &mut out,
        1,
    );
    for (n, found) in out.iter().enumerate() {
        let word = if n < 300 { texels.0[n] } else { 0 };
        let channels = [
            word & 1023,
            word >> 10 & 1023,
            word >> 20 & 1023,
            word >> 30,
        ];
        assert_eq!(found.map(f32::to_bits), channels, "{n}");
    }
    // Numbers that are too large saturate.
    out[0] = [1024, 5, u32::MAX, 7].map(f32::from_bits);
    let mut copy = Texels::random(35);
    let object = Object::new(&view.encode(copy.base(), 300), [0; 4]);
    run("store_formatted", &object, &mut coordinates, &mut out, 1);
    assert_eq!(copy.0[0], 1023 | 5 << 10 | 1023 << 20 | 3 << 30);
    assert_eq!(copy.0[1..300], texels.0[1..300]);
}

#[test]
fn packed_formats_exist_for_few_number_types() {
    for (bits, number, exists) in [
        ([5, 6, 5, 0], Number::Unorm, true),
        ([5, 6, 5, 0], Number::Uint, false),
        ([5, 5, 5, 1], Number::Srgb, false),
        ([10, 10, 10, 2], Number::Uint, true),
        ([10, 10, 10, 2], Number::Snorm, false),
        ([10, 10, 10, 2], Number::Float, false),
        ([5, 6, 6, 0], Number::Unorm, false),
    ] {
        let found = TexelFormat::from_bits(bits, number);
        assert_eq!(found.is_some(), exists, "{bits:?} {number:?}");
    }
}
