//! MIMG: image instructions. gfx90a can load, store and sample images, and change them atomically.

use super::atomics::atomic;
use super::exec::Exec;
use super::float::f16_to_f32;
use super::image::{Image, Sampler, Texel};
use super::inst::{AGPR, Format, GLC, Handler, Inst, STREAMING, VGPR};
use super::lanes::Lanes64;
use super::texels::{self, Registers};
use super::{Class, Operation};

/// Bits of the literal above the channel mask: array of layers (DA), and 16-bit addresses and data.
const DA: u32 = 1 << 4;
const A16: u32 = 1 << 5;
const D16: u32 = 1 << 6;
const UNORM: u32 = 1 << 7;

/// Decodes a MIMG instruction.
pub(super) fn decode([w, v, _]: [u32; 3]) -> Inst {
    let opcode = w >> 18 & 0x7f | w << 7 & 0x80;
    let found: Option<(Class, Handler)> = match opcode {
        0x00 | 0x01 => Some((Class::VmemRead, load)),
        0x08 | 0x09 => Some((Class::VmemWrite, store)),
        0x0e => Some((Class::VmemRead, size)),
        0x10..=0x1c => Some((Class::VmemWrite, change)),
        0x20 => Some((Class::VmemRead, sample)),
        _ => None,
    };
    let Some((class, run)) = found else {
        return Inst::unknown(Format::Mimg, opcode);
    };
    let mut i = Inst::new(run, Format::Mimg, class, opcode, 2);
    let data = if w >> 16 & 1 != 0 { AGPR } else { VGPR };
    i.src[0] = (v & 0xff) as u16 + VGPR;
    i.src[1] = (v >> 8 & 0xff) as u16 + data;
    i.dst = i.src[1];
    i.src[2] = ((v >> 21 & 0x1f) << 2) as u16;
    i.sdst = ((v >> 16 & 0x1f) << 2) as u16;
    if w >> 13 & 1 != 0 {
        i.flags |= GLC;
    }
    if w >> 25 & 1 != 0 {
        i.flags |= STREAMING;
    }
    i.literal = w >> 8 & 15;
    for (is_set, bit) in [
        (w >> 14, DA),
        (w >> 15, A16),
        (v >> 31, D16),
        (w >> 12, UNORM),
    ] {
        if is_set & 1 != 0 {
            i.literal |= bit;
        }
    }
    i
}

fn registers(i: &Inst) -> Registers {
    Registers {
        channels: i.literal & 15,
        halves: i.literal & D16 != 0,
        upper: false,
    }
}

/// Operation and number of data registers of an image instruction.
pub(super) fn transfer(i: &Inst) -> Option<(Operation, u32)> {
    let operation = match (i.format, i.opcode) {
        (Format::Mimg, 0x08 | 0x09) => Operation::Store,
        (Format::Mimg, 0x10..=0x1c) => Operation::Atomic(i.has(GLC)),
        (Format::Mimg, _) => Operation::Load,
        _ => return None,
    };
    Some((operation, registers(i).count()))
}

/// The image that an instruction accesses, with all levels; `None` after a fault.
fn leveled(x: &mut Exec<'_>, i: &Inst) -> Option<Image> {
    let image = Image::decode(std::array::from_fn(|n| x.s32(i.sdst + n as u16, 0)));
    image.map_err(|what| x.descriptor_fault(i, what)).ok()
}

/// The first level of the image that an instruction accesses; `None` after a fault.
fn image(x: &mut Exec<'_>, i: &Inst) -> Option<Image> {
    leveled(x, i)?.level(0)
}

/// Positions of the address operands: x, y, z or layer, and then the level of detail.
fn places(i: &Inst, image: &Image) -> [Option<usize>; 4] {
    let dimensions = image.geometry.dimensions();
    let mut places = [None; 4];
    let mut next = 0..4;
    places[..dimensions].fill_with(|| next.next());
    if i.literal & DA != 0 && image.geometry.is_layered() {
        places[2] = next.next();
    }
    places[3] = next.next();
    places
}

/// Address operand number `n` of a lane, which has 16 or 32 bits.
fn number(x: &Exec<'_>, i: &Inst, lane: usize, n: usize) -> u32 {
    if i.literal & A16 != 0 {
        x.vgpr(i.src[0] + n as u16 / 2)[lane] >> (16 * (n & 1)) & 0xffff
    } else {
        x.vgpr(i.src[0] + n as u16)[lane]
    }
}

/// Whether an instruction has a level of detail after its coordinates.
fn has_level(i: &Inst) -> bool {
    matches!(i.opcode, 0x01 | 0x09)
}

/// The addresses of texels with integer coordinates, and the lanes whose texel is in the image.
fn addresses(x: &Exec<'_>, i: &Inst, image: &Image) -> (Lanes64, u64) {
    let places = places(i, image);
    let first = image.level(0);
    let (mut addresses, mut inside) = ([0; 64], 0);
    for (l, address) in addresses.iter_mut().enumerate() {
        if x.exec() >> l & 1 == 0 {
            continue;
        }
        let integer = |n: Option<usize>| n.map_or(0, |n| number(x, i, l, n));
        let [at_x, at_y, at_z, level] = places.map(integer);
        let level = if has_level(i) {
            image.level(level)
        } else {
            first
        };
        let texel = [at_x, at_y, at_z].map(|at| i64::from(at as i32));
        if let Some(found) = level.and_then(|level| level.address(texel)) {
            *address = found;
            inside |= 1 << l;
        }
    }
    (addresses, inside)
}

fn load(x: &mut Exec<'_>, i: &Inst) {
    let Some(image) = leveled(x, i) else { return };
    let (addresses, inside) = addresses(x, i, &image);
    if let Some(texels) = texels::fetch(x, i, image.format, &addresses, inside) {
        write(x, i, &image, &texels);
    }
}

/// Writes texels to the registers of the active lanes.
fn write(x: &mut Exec<'_>, i: &Inst, image: &Image, texels: &[Texel; 64]) {
    for (l, texel) in texels.iter().enumerate() {
        if x.exec() >> l & 1 != 0 {
            registers(i).write(x, i, image.format, l, image.select(*texel));
        }
    }
}

fn store(x: &mut Exec<'_>, i: &Inst) {
    let Some(image) = leveled(x, i) else { return };
    let (addresses, inside) = addresses(x, i, &image);
    texels::store(x, i, image.format, &addresses, inside, |x, l| {
        image.deselect(registers(i).read(x, i, image.format, l))
    });
}

fn size(x: &mut Exec<'_>, i: &Inst) {
    let Some(image) = leveled(x, i) else { return };
    for l in 0..64 {
        if x.exec() >> l & 1 != 0 {
            let level = image.level(number(x, i, l, 0));
            let [width, height, depth] = level.map_or([0; 3], |level| level.size);
            let channels = [width, height, depth, image.level_count()];
            registers(i).write(x, i, image.format, l, channels);
        }
    }
}

fn change(x: &mut Exec<'_>, i: &Inst) {
    let Some(image) = image(x, i) else { return };
    let (addresses, inside) = addresses(x, i, &image);
    let operation = i.opcode - 0x10;
    // Compare-and-swap has two values.
    let values = if operation == 1 { 2 } else { 1 };
    let is_wide = registers(i).count() > values;
    if i.has(GLC) {
        let outside = x.exec() & !inside;
        for l in (0..64).filter(|l| outside >> l & 1 != 0) {
            for n in 0..=u16::from(is_wide) {
                x.vgpr_mut(i.dst + n)[l] = 0;
            }
        }
    }
    if is_wide {
        atomic::<true>(x, i, &addresses, inside, operation);
    } else {
        atomic::<false>(x, i, &addresses, inside, operation);
    }
}

/// Greatest number of texels of a sample: two in each dimension.
const TAPS: usize = 8;

/// Texels of a lane's sample, with their weights.
#[derive(Debug, Clone, Copy)]
struct Parts {
    parts: [(Texel, u32); TAPS],
    count: usize,
}

fn sample(x: &mut Exec<'_>, i: &Inst) {
    let Some(leveled) = leveled(x, i) else { return };
    let Some(image) = leveled.level(0) else {
        return;
    };
    let words = [0, 1, 2, 3].map(|n| x.s32(i.src[2] + n, 0));
    let decoded = Sampler::one_level(words, &leveled).and_then(|()| Sampler::decode(words));
    let sampler = match decoded {
        Ok(sampler) => Sampler {
            normalized: sampler.normalized && i.literal & UNORM == 0,
            ..sampler
        },
        Err(what) => return x.descriptor_fault(i, what),
    };
    let border = sampler.border(&image);
    let mut samples = [Parts {
        parts: [([0; 4], 0); TAPS],
        count: 0,
    }; 64];
    // The texels number n of all lanes are loaded together.
    let mut rounds = [([0; 64], 0_u64); TAPS];
    let places = places(i, &image);
    for (l, sample) in samples.iter_mut().enumerate() {
        if x.exec() >> l & 1 == 0 {
            continue;
        }
        let coordinate = |n: Option<usize>| {
            n.map_or(0.0, |n| match number(x, i, l, n) {
                half if i.literal & A16 != 0 => f16_to_f32(half as u16),
                bits => f32::from_bits(bits),
            })
        };
        let [at_x, at_y, at_z, _] = places.map(coordinate);
        for (n, (texel, share)) in sampler.taps(&image, [at_x, at_y, at_z]).enumerate() {
            sample.parts[n] = (border, share);
            sample.count = n + 1;
            if let Some(address) = texel.and_then(|texel| image.address(texel)) {
                rounds[n].0[l] = address;
                rounds[n].1 |= 1 << l;
            }
        }
    }
    for (n, (addresses, mask)) in rounds.iter().enumerate() {
        let Some(texels) = texels::fetch(x, i, image.format, addresses, *mask) else {
            return;
        };
        for l in (0..64).filter(|l| mask >> l & 1 != 0) {
            samples[l].parts[n].0 = texels[l];
        }
    }
    let texels = samples.map(|sample| match &sample.parts[..sample.count] {
        [] => [0; 4],
        parts => Sampler::blend(parts),
    });
    write(x, i, &image, &texels);
}
