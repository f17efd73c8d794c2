//! Image instructions, with the kernels of `tests/workloads/kernels/images.hip`, compared with a model of textures:
//! texels are given by formulas, samples are computed in double precision.

mod descriptors;
mod levels;
mod packed;

use super::*;
use crate::isa::image::{
    AddressMode, Border, BufferView, Geometry, Image, Number, Sampler, TexelFormat, Unsupported,
};

static IMAGES: &[u8] =
    include_bytes!("../../../../tests/workloads/kernels/prebuilt/images-gfx90a.co");

/// Work-items of a test.
const N: usize = 320;
const WIDTH: usize = 16;
const HEIGHT: usize = 8;
const DEPTH: usize = 5;
/// Distance of two rows in texels.
const PITCH: usize = 24;

type Four = [f32; 4];

/// A texture object as kernels read it: the descriptor of the image, twelve dwords, then the sampler.
#[repr(align(32))]
struct Object([u32; 16]);

impl Object {
    fn new(image: &[u32], sampler: [u32; 4]) -> Self {
        let mut words = [0; 16];
        words[..image.len()].copy_from_slice(image);
        words[12..].copy_from_slice(&sampler);
        Self(words)
    }
}

/// Memory of an image, with the alignment that descriptors require.
#[repr(align(256))]
struct Texels([u32; PITCH * HEIGHT * DEPTH * 4]);

impl Texels {
    fn random(seed: u64) -> Box<Self> {
        let mut random = Random(seed);
        let mut texels = Box::new(Self([0; PITCH * HEIGHT * DEPTH * 4]));
        texels.0.fill_with(|| random.next() as u32);
        texels
    }

    fn base(&mut self) -> u64 {
        self.0.as_mut_ptr() as u64
    }

    /// Texels whose elements are multiples of 1/8.
    fn from_floats() -> Box<Self> {
        let mut texels = Self::random(11);
        for value in &mut texels.0 {
            *value = ((*value as i32 >> 16) as f32 / 8.0).to_bits();
        }
        texels
    }

    /// Bytes of the memory from offset `at` on.
    fn bytes(&self, at: usize) -> impl Iterator<Item = u8> {
        let words = &self.0[at / 4..];
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .skip(at % 4)
    }

    /// The four floats of a texel, in rows of `PITCH` texels.
    fn floats(&self, [x, y, z]: [usize; 3], height: usize) -> [f64; 4] {
        let at = ((z * height + y) * PITCH + x) * 4;
        std::array::from_fn(|n| f64::from(f32::from_bits(self.0[at + n])))
    }
}

/// Runs a kernel that accesses the image of `object` at `coordinates`, with results in `out`.
fn run(name: &str, object: &Object, coordinates: &mut [Four], out: &mut [Four], threads: usize) {
    let mut module = Module::load(IMAGES);
    module.threads = threads;
    let address = (object.0.as_ptr() as u64).to_le_bytes();
    let count = (out.len() as u32).to_le_bytes();
    let args: [&[u8]; 4] = [&address, &pointer(out), &pointer(coordinates), &count];
    module
        .run(name, [N as u32, 1, 1], [64, 1, 1], 0, &args)
        .unwrap();
}

/// The fault of a kernel with an object that it cannot use.
fn fault(name: &str, object: &Object) -> Fault {
    let module = Module::load(IMAGES);
    let (mut out, mut coordinates) = (vec![[0f32; 4]; N], vec![[0f32; 4]; N]);
    let address = (object.0.as_ptr() as u64).to_le_bytes();
    let count = (N as u32).to_le_bytes();
    let args: [&[u8]; 4] = [
        &address,
        &pointer(&mut out),
        &pointer(&mut coordinates),
        &count,
    ];
    module
        .run(name, [64, 1, 1], [64, 1, 1], 0, &args)
        .unwrap_err()
}

/// The texel that a position outside of the image refers to; `None` for the border.
fn place(at: i64, size: usize, mode: AddressMode) -> Option<usize> {
    let size = size as i64;
    let found = match mode {
        AddressMode::Wrap => at - size * at.div_euclid(size),
        AddressMode::Clamp => at.max(0).min(size - 1),
        AddressMode::Border if at < 0 || at >= size => return None,
        AddressMode::Border => at,
        AddressMode::Mirror => {
            // Even copies of the image are unchanged, odd ones are mirrored.
            let (copy, within) = (at.div_euclid(size), at.rem_euclid(size));
            if copy % 2 == 0 {
                within
            } else {
                size - 1 - within
            }
        }
        AddressMode::MirrorOnce => at.max(-1 - at).min(size - 1),
        AddressMode::MirrorOnceBorder if at.max(-1 - at) >= size => return None,
        AddressMode::MirrorOnceBorder => at.max(-1 - at),
    };
    Some(found as usize)
}

/// The texels of one dimension for a coordinate in texels, with their weights.
fn weights(at: f64, linear: bool) -> Vec<(i64, f64)> {
    if !linear {
        return vec![(at.floor() as i64, 1.0)];
    }
    let first = (at - 0.5).floor();
    let part = at - 0.5 - first;
    vec![(first as i64, 1.0 - part), (first as i64 + 1, part)]
}

struct Case {
    kernel: &'static str,
    geometry: Geometry,
    size: [usize; 3],
}

const CASES: [Case; 5] = [
    Case {
        kernel: "sample_1d",
        geometry: Geometry::D1,
        size: [WIDTH, 1, 1],
    },
    Case {
        kernel: "sample_2d",
        geometry: Geometry::D2,
        size: [WIDTH, HEIGHT, 1],
    },
    Case {
        kernel: "sample_3d",
        geometry: Geometry::D3,
        size: [WIDTH, HEIGHT, 4],
    },
    Case {
        kernel: "sample_1d_layered",
        geometry: Geometry::D1Layered,
        size: [WIDTH, 1, DEPTH],
    },
    Case {
        kernel: "sample_2d_layered",
        geometry: Geometry::D2Layered,
        size: [WIDTH, HEIGHT, DEPTH],
    },
];

/// Every geometry with every addressing mode, both filters and both kinds of coordinates.
#[test]
fn image_samples_agree_with_the_model() {
    let mut texels = Texels::from_floats();
    let format = TexelFormat::new(32, 4, Number::Float).unwrap();
    let modes = [
        AddressMode::Wrap,
        AddressMode::Mirror,
        AddressMode::Clamp,
        AddressMode::MirrorOnce,
        AddressMode::Border,
        AddressMode::MirrorOnceBorder,
    ];
    let mut random = Random(5);
    for case in &CASES {
        let size = case.size.map(|texels| texels as u32);
        let image = Image::new(texels.base(), format, case.geometry, size, PITCH as u32);
        for (n, mode) in modes.into_iter().enumerate() {
            for (linear, normalized) in [(false, false), (false, true), (true, false), (true, true)]
            {
                let sampler = Sampler {
                    address: [mode; 3],
                    normalized,
                    linear,
                    linear_z: linear && case.geometry == Geometry::D3,
                    border: [Border::OpaqueBlack, Border::OpaqueWhite][n % 2],
                };
                let border = [[0.0, 0.0, 0.0, 1.0], [1.0; 4]][n % 2];
                // Coordinates in texels that are exact in 256ths, also as fractions of the image.
                let mut coordinates = vec![[0f32; 4]; N];
                let mut expected = vec![[0f64; 4]; N];
                for (at, expected) in coordinates.iter_mut().zip(&mut expected) {
                    let texel: [f64; 3] = std::array::from_fn(|n| {
                        let limit = 256 * 3 * case.size[n] as u64;
                        (random.next() % limit) as f64 / 256.0 - case.size[n] as f64
                    });
                    let layered =
                        matches!(case.geometry, Geometry::D1Layered | Geometry::D2Layered);
                    for n in 0..3 {
                        let scale = if normalized && !(n == 2 && layered) {
                            case.size[n] as f64
                        } else {
                            1.0
                        };
                        at[n] = (texel[n] / scale) as f32;
                    }
                    let dimension = |n: usize| match (n, case.geometry) {
                        (1, Geometry::D1 | Geometry::D1Layered)
                        | (2, Geometry::D1 | Geometry::D2) => {
                            vec![(Some(0), 1.0)]
                        }
                        (2, Geometry::D1Layered | Geometry::D2Layered) => {
                            let layer = texel[2].round_ties_even().clamp(0.0, DEPTH as f64 - 1.0);
                            vec![(Some(layer as usize), 1.0)]
                        }
                        _ => weights(texel[n], linear)
                            .into_iter()
                            .map(|(at, weight)| (place(at, case.size[n], mode), weight))
                            .collect(),
                    };
                    for (z, z_weight) in dimension(2) {
                        for (y, y_weight) in dimension(1) {
                            for (x, x_weight) in dimension(0) {
                                let texel = match (x, y, z) {
                                    (Some(x), Some(y), Some(z)) => {
                                        texels.floats([x, y, z], case.size[1])
                                    }
                                    _ => border,
                                };
                                for (sum, channel) in expected.iter_mut().zip(texel) {
                                    *sum += channel * x_weight * y_weight * z_weight;
                                }
                            }
                        }
                    }
                }
                let object = Object::new(&image.encode(), sampler.encode());
                for threads in [1, 2, 8] {
                    let mut out = vec![[7f32; 4]; N];
                    run(case.kernel, &object, &mut coordinates, &mut out, threads);
                    for i in 0..N {
                        let wanted = expected[i].map(|channel| channel as f32);
                        assert_eq!(
                            out[i], wanted,
                            "{} {sampler:?} at {:?}",
                            case.kernel, coordinates[i]
                        );
                    }
                }
            }
        }
    }
}

/// Coordinates are rounded to a 256th of a texel before the texel is selected. Compilers rely on that when they round
/// coordinates down themselves.
#[test]
fn image_coordinates_are_rounded_to_fractions_of_a_texel() {
    let mut texels = Texels::from_floats();
    let format = TexelFormat::new(32, 4, Number::Float).unwrap();
    let image = Image::new(
        texels.base(),
        format,
        Geometry::D1,
        [13, 1, 1],
        PITCH as u32,
    );
    let sampler = Sampler {
        address: [AddressMode::Clamp; 3],
        normalized: true,
        linear: false,
        linear_z: false,
        border: Border::TransparentBlack,
    };
    let object = Object::new(&image.encode(), sampler.encode());
    let mut out = vec![[0f32; 4]; 13];
    let thirteenth = 1f32 / 13.0;
    let mut coordinates: Vec<Four> = (0..13)
        .map(|n| [n as f32 * thirteenth, 0.0, 0.0, 0.0])
        .collect();
    run("sample_1d", &object, &mut coordinates, &mut out, 1);
    for (x, found) in out.iter().enumerate() {
        assert_eq!(found.map(f64::from), texels.floats([x, 0, 0], 1), "{x}");
    }
}

/// Number that a channel of a format stands for, from its bits and their number.
type Meaning = fn(i64, u32) -> f64;
const FORMATS: [(Number, &[u32], Meaning); 7] = [
    (Number::Unorm, &[8, 16], |v, bits| {
        unsigned(v, bits) / (2f64.powi(bits as i32) - 1.0)
    }),
    (Number::Snorm, &[8, 16], |v, bits| {
        (v as f64 / (2f64.powi(bits as i32 - 1) - 1.0)).max(-1.0)
    }),
    (Number::Uscaled, &[8, 16], unsigned),
    (Number::Sscaled, &[8, 16], |v, _| v as f64),
    (Number::Uint, &[8, 16, 32], unsigned),
    (Number::Sint, &[8, 16, 32], |v, _| v as f64),
    (Number::Float, &[32], |v, _| {
        f64::from(f32::from_bits(v as u32))
    }),
];

fn unsigned(value: i64, bits: u32) -> f64 {
    (value & ((1 << bits) - 1)) as f64
}

/// The number that a register holds in a number format.
fn register_number(number: Number, register: f32) -> f64 {
    match number {
        Number::Uint => f64::from(register.to_bits()),
        Number::Sint => f64::from(register.to_bits() as i32),
        _ => f64::from(register),
    }
}

#[test]
fn texels_of_all_formats_are_loaded_and_stored() {
    for (number, sizes, meaning) in FORMATS {
        for (bits, channels) in sizes.iter().flat_map(|bits| [1, 2, 4].map(|n| (*bits, n))) {
            let what = format!("{number:?} {bits} bits {channels} channels");
            let format = TexelFormat::new(bits, channels, number).unwrap();
            let (mut from, mut to) = (Texels::random(3), Texels::random(4));
            if number == Number::Float {
                from = Texels::from_floats();
            }
            let size = [WIDTH as u32, HEIGHT as u32, 1];
            let object = |texels: &mut Texels| {
                let image = Image::new(texels.base(), format, Geometry::D2, size, PITCH as u32);
                Object::new(&image.encode(), [0; 4])
            };
            // Beyond the image in both directions.
            let mut coordinates: Vec<Four> = (0..N as i32)
                .map(|n| [n % 20 - 2, n / 20 - 3, 0, 0].map(|at| f32::from_bits(at as u32)))
                .collect();
            let mut out = vec![[7f32; 4]; N];
            run("load_2d", &object(&mut from), &mut coordinates, &mut out, 1);
            let bytes = (bits / 8) as usize;
            let before = to.0;
            for (at, texel) in coordinates.iter().zip(&out) {
                let [x, y, ..] = at.map(|at| at.to_bits() as i32);
                let inside = (0..WIDTH as i32).contains(&x) && (0..HEIGHT as i32).contains(&y);
                for (n, found) in texel.iter().enumerate() {
                    let start =
                        ((y * PITCH as i32 + x) * channels as i32 + n as i32) as i64 * bytes as i64;
                    let expected = if n >= channels as usize {
                        f64::from(n == 3)
                    } else if !inside {
                        0.0
                    } else {
                        let raw = from.bytes(start as usize).take(bytes);
                        let raw = raw
                            .enumerate()
                            .fold(0, |raw, (n, byte)| raw | i64::from(byte) << (8 * n));
                        let unused = 64 - bits;
                        meaning(raw << unused >> unused, bits)
                    };
                    let found = register_number(number, *found);
                    assert!(
                        (found - expected).abs() <= 1e-7 * expected.abs(),
                        "{what}: {found} {expected}"
                    );
                }
            }
            run("store_2d", &object(&mut to), &mut coordinates, &mut out, 1);
            let texel = bytes * channels as usize;
            for row in 0..HEIGHT {
                let start = row * PITCH * texel;
                let pick = |texels: &Texels, from: usize, count: usize| -> Vec<u8> {
                    texels.bytes(start + from).take(count).collect()
                };
                let stored = pick(&to, 0, WIDTH * texel);
                let given = pick(&from, 0, WIDTH * texel);
                let same = number != Number::Snorm || !given.contains(&0x80);
                assert!(!same || stored == given, "{what}, row {row}");
                // The bytes between the rows are unchanged.
                let gap = (PITCH - WIDTH) * texel;
                let untouched = Texels(before);
                assert_eq!(
                    pick(&to, WIDTH * texel, gap),
                    pick(&untouched, WIDTH * texel, gap),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn image_loads_convert_to_half_precision() {
    let mut texels = Texels::from_floats();
    let format = TexelFormat::new(32, 4, Number::Float).unwrap();
    let size = [WIDTH as u32, HEIGHT as u32, 1];
    let image = Image::new(texels.base(), format, Geometry::D2, size, PITCH as u32);
    let object = Object::new(&image.encode(), [0; 4]);
    let count = WIDTH * HEIGHT;
    let mut coordinates: Vec<Four> = (0..count as u32)
        .map(|n| [n % WIDTH as u32, n / WIDTH as u32, 0, 0].map(f32::from_bits))
        .collect();
    // Exact in half precision.
    let mut out: Vec<Four> = (0..count)
        .map(|n| [n as f32, -0.5, 1024.0, 0.25 * n as f32])
        .collect();
    let given = out.clone();
    run("store_2d_half", &object, &mut coordinates, &mut out, 1);
    for (n, given) in given.iter().enumerate() {
        let found = texels.floats([n % WIDTH, n / WIDTH, 0], HEIGHT);
        assert_eq!(found, given.map(f64::from), "{n}");
    }
    let mut back = vec![[0f32; 4]; count];
    run("load_2d_half", &object, &mut coordinates, &mut back, 1);
    assert_eq!(back, given);
}

#[test]
fn images_with_layers_are_stored_loaded_as_slices_and_measured() {
    let mut texels = Texels::from_floats();
    let format = TexelFormat::new(32, 4, Number::Float).unwrap();
    let size = [WIDTH as u32, HEIGHT as u32, DEPTH as u32];
    let layered = Image::new(
        texels.base(),
        format,
        Geometry::D2Layered,
        size,
        PITCH as u32,
    );
    let solid = Image::new(texels.base(), format, Geometry::D3, size, PITCH as u32);
    let at = |n: usize| [n % WIDTH, n / WIDTH % HEIGHT, n / 64 % DEPTH];
    let mut coordinates: Vec<Four> = (0..N)
        .map(|n| {
            let [x, y, z] = at(n).map(|at| f32::from_bits(at as u32));
            [x, y, z, 0.0]
        })
        .collect();
    let mut out: Vec<Four> = (0..N).map(|n| [n as f32; 4]).collect();
    let stored = Object::new(&layered.encode(), [0; 4]);
    run("store_2d_layered", &stored, &mut coordinates, &mut out, 8);
    let mut back = vec![[0f32; 4]; N];
    run(
        "load_3d",
        &Object::new(&solid.encode(), [0; 4]),
        &mut coordinates,
        &mut back,
        2,
    );
    assert_eq!(back, out);
    run("size_2d_layered", &stored, &mut coordinates, &mut back, 1);
    let sizes = [WIDTH, HEIGHT, DEPTH, 1].map(|size| f32::from_bits(size as u32));
    assert!(back.iter().all(|found| *found == sizes));
}

/// All work-items add to the same texel, except one, which adds outside of the image.
#[test]
fn image_atomics_add_to_a_texel_and_drop_those_outside() {
    let mut texels = Texels::from_floats();
    let size = [WIDTH as u32, HEIGHT as u32, DEPTH as u32];
    let format = TexelFormat::new(32, 1, Number::Uint).unwrap();
    let image = Image::new(texels.base(), format, Geometry::D2, size, PITCH as u32);
    texels.0[3 * PITCH + 2] = 1000;
    let mut coordinates = vec![[2u32, 3, 0, 0].map(f32::from_bits); N];
    coordinates[7] = [2u32, 99, 0, 0].map(f32::from_bits);
    let mut out = vec![[5u32, 0, 0, 0].map(f32::from_bits); N];
    run(
        "atomic_add_2d",
        &Object::new(&image.encode(), [0; 4]),
        &mut coordinates,
        &mut out,
        8,
    );
    assert_eq!(texels.0[3 * PITCH + 2], 1000 + 5 * (N as u32 - 1));
    let mut before: Vec<u32> = out.iter().map(|found| found[0].to_bits()).collect();
    assert_eq!(before.remove(7), 0);
    before.sort_unstable();
    assert!(
        before
            .iter()
            .enumerate()
            .all(|(n, found)| *found == 1000 + 5 * n as u32)
    );
}

#[test]
fn buffer_elements_are_converted_by_their_format() {
    let mut texels = Texels::random(8);
    let mut coordinates: Vec<Four> = (0..N as i32)
        .map(|n| [n - 3, 0, 0, 0].map(|at| f32::from_bits(at as u32)))
        .collect();
    let view = BufferView::new(TexelFormat::new(8, 4, Number::Unorm).unwrap());
    let object = Object::new(&view.encode(texels.base(), 200), [0; 4]);
    let mut out = vec![[7f32; 4]; N];
    run("fetch", &object, &mut coordinates, &mut out, 1);
    let mut shorts = vec![[7f32; 4]; N];
    run("fetch_as_shorts", &object, &mut coordinates, &mut shorts, 1);
    for n in 0..N {
        let inside = (3..203).contains(&n);
        let word = if inside { texels.0[n - 3] } else { 0 };
        assert_eq!(
            out[n],
            word.to_le_bytes().map(|byte| f32::from(byte) / 255.0),
            "{n}"
        );
        let [x, y] = [word as i16, (word >> 16) as i16].map(|v| (f32::from(v) / 32767.0).max(-1.0));
        // The selections of the descriptor are those of four channels.
        assert_eq!(shorts[n], [x, y, 0.0, 0.0], "{n}");
    }
    let mut copy = Texels::random(9);
    let (before, base) = (copy.0, copy.base());
    let object = Object::new(&view.encode(base, 200), [0; 4]);
    run("store_formatted", &object, &mut coordinates, &mut out, 1);
    assert_eq!(copy.0[..200], texels.0[..200]);
    assert_eq!(copy.0[200..], before[200..]);
}
