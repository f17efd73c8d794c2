//! Levels of detail of images.

use super::*;
use crate::isa::image::Levels;

/// Size of the largest image of these tests in dwords.
const WORDS: usize = 17920 / 4;

/// Memory whose dwords are different floating-point numbers.
#[repr(align(256))]
struct Memory([u32; WORDS]);

impl Memory {
    fn new() -> Box<Self> {
        let values = std::array::from_fn(|n| (n as f32).to_bits());
        Box::new(Self(values))
    }

    fn base(&mut self) -> u64 {
        self.0.as_mut_ptr() as u64
    }
}

/// An image whose levels are where AMD's address library places them.
struct Placed {
    geometry: Geometry,
    size: [usize; 3],
    /// Distances in bytes of two rows, and of two slices or layers.
    pitches: [usize; 2],
    /// First byte of each level.
    levels: &'static [usize],
}

const D2: Placed = Placed {
    geometry: Geometry::D2Layered,
    size: [13, 7, 5],
    pitches: [256, 3584],
    levels: &[0, 1792, 2816, 3328],
};
const D3: Placed = Placed {
    geometry: Geometry::D3,
    ..D2
};
const D1: Placed = Placed {
    geometry: Geometry::D1Layered,
    size: [100, 1, 3],
    pitches: [512, 3584],
    levels: &[0, 512, 1024, 1536, 2048, 2560, 3072],
};

impl Placed {
    fn image(&self, base: u64, first: u32, last: u32) -> Image {
        let format = TexelFormat::new(32, 1, Number::Float).unwrap();
        let size = self.size.map(|texels| texels as u32);
        Image::new(base, format, self.geometry, size, 1).with_levels(Levels {
            first,
            last,
            greatest: self.levels.len() as u32 - 1,
        })
    }

    /// Index of the dword of a texel in a level.
    fn word(&self, [x, y, z]: [i64; 3], level: usize) -> Option<usize> {
        let first = self.levels.get(level)?;
        let [width, height, depth] = self.size_of(level).map(|texels| texels as i64);
        let inside = (0..width).contains(&x) && (0..height).contains(&y) && (0..depth).contains(&z);
        let [row, slice] = self.pitches;
        let at = || first + x as usize * 4 + y as usize * row + z as usize * slice;
        inside.then(|| at() / 4)
    }

    fn size_of(&self, level: usize) -> [usize; 3] {
        let half = |n: usize| (self.size[n] >> level).max(1);
        match self.geometry {
            Geometry::D3 => [half(0), half(1), half(2)],
            Geometry::D2Layered => [half(0), half(1), self.size[2]],
            _ => [half(0), 1, self.size[2]],
        }
    }
}

/// Coordinates of a texel and its level, as kernels take them.
fn at(x: i64, y: i64, z: i64, level: i64) -> Four {
    [x, y, z, level].map(|at| f32::from_bits(at as u32))
}

/// Coordinates in and around a level of an image that kernels address as `level`.
fn around(random: &mut Random, size: [usize; 3], level: i64) -> [i64; 4] {
    let mut pick = |size: usize| (random.next() % (size as u64 + 3)) as i64 - 1;
    [pick(size[0]), pick(size[1]), pick(size[2]), level]
}

/// Offset of the last texel of each level of an image, as AMD's address library computes it.
#[test]
fn mip_levels_have_the_offsets_of_the_hardware() {
    let cases: [(Geometry, u32, [u32; 3], &[u64]); 6] = [
        (
            Geometry::D2,
            32,
            [16, 8, 1],
            &[2032, 2928, 3376, 3600, 3840],
        ),
        (
            Geometry::D2Layered,
            8,
            [13, 7, 5],
            &[15920, 16660, 17160, 17664],
        ),
        (
            Geometry::D2Layered,
            1,
            [300, 5, 2],
            &[
                10539, 11413, 12362, 13348, 13841, 14344, 14851, 15361, 15872,
            ],
        ),
        (
            Geometry::D3,
            32,
            [16, 8, 4],
            &[14320, 7024, 3376, 3600, 3840],
        ),
        (Geometry::D3, 8, [13, 7, 5], &[15920, 5908, 2824, 3328]),
        (
            Geometry::D1Layered,
            8,
            [100, 1, 3],
            &[7564, 7876, 8288, 8748, 9236, 9736, 10240],
        ),
    ];
    for (geometry, kind, size, expected) in cases {
        let (bits, channels) = match kind {
            32 => (32, 4),
            8 => (32, 1),
            _ => (8, 1),
        };
        let format = TexelFormat::new(bits, channels, Number::Uint).unwrap();
        let greatest = expected.len() as u32 - 1;
        let image = Image::new(1 << 16, format, geometry, size, 1).with_levels(Levels {
            first: 0,
            last: greatest,
            greatest,
        });
        assert_eq!(Image::decode(image.encode()), Ok(image));
        for (level, address) in (0..).zip(expected) {
            let level = image.level(level).unwrap();
            let last = level.size.map(|texels| i64::from(texels) - 1);
            assert_eq!(
                level.address(last),
                Some((1 << 16) + address),
                "{geometry:?} {level:?}"
            );
        }
        assert_eq!(image.level(greatest + 1), None);
    }
}

#[test]
fn texels_of_mip_levels_are_loaded() {
    let mut memory = Memory::new();
    let mut random = Random(21);
    for (kernel, placed, dimensions) in [
        ("load_level_2d", D2, 2),
        ("load_level_3d", D3, 3),
        ("load_level_1d_layered", D1, 3),
    ] {
        let greatest = placed.levels.len() as u32 - 1;
        for (first, last) in [(0, greatest), (1, 2), (2, 2)] {
            let object = Object::new(&placed.image(memory.base(), first, last).encode(), [0; 4]);
            let places: Vec<[i64; 4]> = (0..N as i64)
                .map(|n| {
                    let seen = n % i64::from(last - first + 3) - 1;
                    let level = (i64::from(first) + seen).clamp(0, 6) as usize;
                    let [x, y, z, seen] = around(&mut random, placed.size_of(level), seen);
                    match kernel {
                        "load_level_1d_layered" => [x, 0, z.clamp(0, 2), seen],
                        _ if dimensions == 2 => [x, y, 0, seen],
                        _ => [x, y, z, seen],
                    }
                })
                .collect();
            let mut coordinates: Vec<Four> = places
                .iter()
                .map(|&[x, y, z, level]| at(x, y, z, level))
                .collect();
            for threads in [1, 8] {
                let mut out = vec![[7f32; 4]; N];
                run(kernel, &object, &mut coordinates, &mut out, threads);
                for (&[x, y, z, seen], found) in places.iter().zip(&out) {
                    let word = u32::try_from(seen)
                        .ok()
                        .filter(|seen| first + seen <= last)
                        .and_then(|seen| placed.word([x, y, z], (first + seen) as usize));
                    let value = word.map_or(0.0, |word| word as f32);
                    assert_eq!(
                        *found,
                        [value, 0.0, 0.0, 1.0],
                        "{kernel} {first} to {last} at {x} {y} {z} of {seen}"
                    );
                }
            }
        }
    }
}

#[test]
fn texels_of_mip_levels_are_stored() {
    let mut memory = Memory::new();
    let mut expected = memory.0;
    let object = Object::new(&D2.image(memory.base(), 1, 2).encode(), [0; 4]);
    let mut coordinates = Vec::new();
    for seen in -1..3i64 {
        for z in 0..6 {
            for y in 0..4 {
                coordinates.extend((0..3).map(|x| at(x * 2, y, z, seen)));
            }
        }
    }
    coordinates.resize(N, at(0, 0, 0, 99));
    let mut out: Vec<Four> = (0..N).map(|n| [-1.0 - n as f32; 4]).collect();
    let mut stored = 0;
    for (place, value) in coordinates.iter().zip(&out) {
        let [x, y, z, seen] = place.map(|at| i64::from(at.to_bits() as i32));
        let seen = (0..2).contains(&seen).then(|| seen as usize + 1);
        if let Some(word) = seen.and_then(|level| D2.word([x, y, z], level)) {
            expected[word] = value[0].to_bits();
            stored += 1;
        }
    }
    assert_eq!(stored, 3 * 3 * 5 + 2 * 5);
    run(
        "store_level_2d_layered",
        &object,
        &mut coordinates,
        &mut out,
        2,
    );
    assert!(memory.0 == expected);
}

#[test]
fn size_queries_return_the_size_of_the_mip_level() {
    let mut memory = Memory::new();
    let object = Object::new(&D3.image(memory.base(), 1, 3).encode(), [0; 4]);
    let mut coordinates = vec![at(0, 0, 0, 99); N];
    for (level, place) in coordinates[..6].iter_mut().enumerate() {
        *place = at(0, 0, 0, level as i64 - 1);
    }
    let mut out = vec![[0f32; 4]; N];
    run("size_level_3d", &object, &mut coordinates, &mut out, 1);
    let sizes: Vec<_> = out[..6]
        .iter()
        .map(|found| found.map(f32::to_bits))
        .collect();
    assert_eq!(
        sizes,
        [
            [0, 0, 0, 3],
            [6, 3, 2, 3],
            [3, 1, 1, 3],
            [1, 1, 1, 3],
            [0, 0, 0, 3],
            [0, 0, 0, 3],
        ]
    );
}

/// Without filtering between levels, samples are of the first level that instructions can address.
#[test]
fn sampling_reads_the_first_mip_level() {
    let mut memory = Memory::new();
    let image = D2.image(memory.base(), 1, 2);
    let sampler = Sampler {
        address: [AddressMode::Clamp; 3],
        normalized: true,
        linear: false,
        linear_z: false,
        border: Border::TransparentBlack,
    };
    let mut words = sampler.encode();
    let [width, height, _] = D2.size_of(1);
    let mut coordinates: Vec<Four> = (0..N)
        .map(|n| {
            let [x, y, z] = [n % width, n / width % height, n / width / height];
            let centre = |texel: usize, size: usize| (texel as f32 + 0.5) / size as f32;
            [centre(x, width), centre(y, height), z as f32, 0.0]
        })
        .collect();
    let mut out = vec![[7f32; 4]; N];
    let object = Object::new(&image.encode(), words);
    run("sample_2d_layered", &object, &mut coordinates, &mut out, 1);
    for (n, found) in out.iter().enumerate() {
        let [x, y, z] = [n % width, n / width % height, (n / width / height).min(4)];
        let word = D2.word([x, y, z].map(|at| at as i64), 1).unwrap();
        assert_eq!(found[0], word as f32, "{n}");
    }
    // Selects the nearest level.
    words[2] |= 1 << 26;
    let refused = Sampler::one_level(words, &image);
    let what = Unsupported::Field {
        name: "filter between mipmap levels",
        value: 1,
    };
    assert_eq!(refused, Err(what.clone()));
    let one = image.level(0).unwrap();
    assert_eq!(Sampler::one_level(words, &one), Ok(()));
    let fault = fault("sample_2d", &Object::new(&image.encode(), words));
    assert!(
        fault
            .to_string()
            .starts_with("descriptor with filter between mipmap levels 1"),
        "{fault}"
    );
}
