//! FLAT, GLOBAL and SCRATCH memory instructions.

use super::exec::{Exec, PRIVATE_APERTURE, SHARED_APERTURE};
use super::inst::{AGPR, FLAT_SCRATCH, Format, GLC, Inst, OFFEN, SCALAR_OFFSET, STREAMING, VGPR};
use super::lanes::Lanes64;
use super::memory::swizzle;
use super::transfer::{Addressing, handler, to_lds};
use super::{Class, InstructionSet};

/// Decodes a FLAT instruction of any segment.
pub(super) fn decode(words: [u32; 3], set: InstructionSet) -> Inst {
    let [w, v, _] = words;
    let opcode = w >> 18 & 0x7f;
    let newer = match set {
        InstructionSet::Gfx90a => false,
        InstructionSet::Gfx942 => true,
    };
    // In the newer instruction set this bit belongs to the address mode.
    let lds = !newer && w >> 13 & 1 != 0;
    let (format, found) = match w >> 14 & 3 {
        // 32-bit floating-point additions access global memory only. Scratch instructions have no atomics.
        0 if lds => (Format::Flat, None),
        0 => (
            Format::Flat,
            handler::<Flat>(opcode).filter(|_| newer || !matches!(opcode, 0x4d | 0x4e)),
        ),
        1 if newer => (
            Format::Scratch,
            to_lds::<ScratchSum>(opcode)
                .filter(|_| opcode >= 0x26)
                .or_else(|| handler::<ScratchSum>(opcode).filter(|_| opcode < 0x40)),
        ),
        1 if lds => (Format::Scratch, to_lds::<Scratch>(opcode)),
        2 if lds => (Format::Global, to_lds::<Global>(opcode)),
        1 => (
            Format::Scratch,
            handler::<Scratch>(opcode).filter(|_| opcode < 0x40),
        ),
        2 if newer => (
            Format::Global,
            to_lds::<Global>(opcode)
                .filter(|_| opcode >= 0x26)
                .or_else(|| handler::<Global>(opcode)),
        ),
        2 => (Format::Global, handler::<Global>(opcode)),
        _ => (Format::Flat, None),
    };
    // Opcodes that only the newer instruction set has.
    let there = newer || !matches!(opcode, 0x26..=0x2a | 0x52);
    let Some((class, run)) = found.filter(|_| there) else {
        return Inst::unknown(format, opcode);
    };
    let class = if format == Format::Flat {
        Class::Flat
    } else {
        class
    };
    let mut i = Inst::new(run, format, class, opcode, 2);
    // One bit selects accumulation registers for both data and destination.
    let data = if v >> 23 & 1 != 0 { AGPR } else { VGPR };
    i.src[0] = (v & 0xff) as u16 + VGPR;
    i.src[1] = (v >> 8 & 0xff) as u16 + data;
    i.dst = (v >> 24) as u16 + data;
    let scalar = (v >> 16 & 0x7f) as u16;
    // 0x7f is the number that stands for no scalar register; flat instructions have no field for one.
    if format != Format::Flat && scalar != 0x7f {
        i.src[2] = scalar;
        i.flags |= SCALAR_OFFSET;
    }
    // Loads with this bit bypass the first-level cache. In the newer set another bit does the same, for all waves of
    // the device.
    let is_load = matches!(opcode, 0x10..=0x17 | 0x20..=0x2a);
    if w >> 16 & 1 != 0 || newer && is_load && w >> 25 & 1 != 0 {
        i.flags |= GLC;
    }
    if w >> 17 & 1 != 0 {
        i.flags |= STREAMING;
    }
    if newer && w >> 13 & 1 != 0 {
        i.flags |= OFFEN;
    }
    // The flat segment has no negative offsets.
    i.literal = if format == Format::Flat {
        w & 0xfff
    } else {
        ((w << 19) as i32 >> 19) as u32
    };
    i
}

/// Addresses in pairs of VGPRs plus the offset.
#[inline(always)]
fn vector_addresses(x: &Exec<'_>, i: &Inst) -> Lanes64 {
    let (low, high) = (x.vgpr(i.src[0]), x.vgpr(i.src[0] + 1));
    let offset = i.offset() as u64;
    std::array::from_fn(|l| (u64::from(low[l]) | u64::from(high[l]) << 32).wrapping_add(offset))
}

/// Addressing of `global_*`: a pair of vector registers, or a scalar base and an offset in a vector register.
struct Global;

impl Addressing for Global {
    #[inline(always)]
    fn addresses(x: &mut Exec<'_>, i: &Inst, byte: u64) -> (Lanes64, u64) {
        debug_assert_eq!(byte, 0, "global memory is contiguous");
        let addresses = if i.has(SCALAR_OFFSET) {
            let base = x.pair(i.src[2]).wrapping_add(i.offset() as u64);
            let offsets = x.vgpr(i.src[0]);
            std::array::from_fn(|l| base.wrapping_add(u64::from(offsets[l])))
        } else {
            vector_addresses(x, i)
        };
        (addresses, x.exec())
    }

    #[inline(always)]
    fn contiguous(_: &Exec<'_>, _: &Inst) -> bool {
        true
    }
}

/// Addressing of `flat_*`: the address selects LDS, scratch or global memory.
struct Flat;

impl Addressing for Flat {
    #[inline(always)]
    fn addresses(x: &mut Exec<'_>, i: &Inst, byte: u64) -> (Lanes64, u64) {
        let mut addresses = vector_addresses(x, i);
        let high = x.vgpr(i.src[0] + 1);
        let special = high
            .iter()
            .any(|h| *h == PRIVATE_APERTURE || *h == SHARED_APERTURE);
        if special {
            let scratch = x.pair(FLAT_SCRATCH);
            let (lds, lds_bytes) = (x.lds.as_ptr() as u64, x.lds.len() as u64);
            for (l, a) in addresses.iter_mut().enumerate() {
                let offset = a.wrapping_add(byte) & 0xffff_ffff;
                *a = match (*a >> 32) as u32 {
                    PRIVATE_APERTURE => scratch.wrapping_add(swizzle(offset, l as u64)),
                    // The host memory behind LDS may be memory that the kernel can access. The address beyond LDS is
                    // therefore not translated, so that it is not allowed.
                    SHARED_APERTURE if offset < lds_bytes => lds + offset,
                    _ => a.wrapping_add(byte),
                };
            }
        } else if byte != 0 {
            addresses.iter_mut().for_each(|a| *a = a.wrapping_add(byte));
        }
        (addresses, x.exec())
    }

    #[inline(always)]
    fn contiguous(x: &Exec<'_>, i: &Inst) -> bool {
        !x.vgpr(i.src[0] + 1).contains(&PRIVATE_APERTURE)
    }
}

/// Addressing of `scratch_*` in gfx942: the address is in a vector register, a scalar register, both or neither.
struct ScratchSum;

impl Addressing for ScratchSum {
    #[inline(always)]
    fn addresses(x: &mut Exec<'_>, i: &Inst, byte: u64) -> (Lanes64, u64) {
        let base = x.pair(FLAT_SCRATCH);
        let mut constant = (i.offset() as u64).wrapping_add(byte);
        if i.has(SCALAR_OFFSET) {
            constant = constant.wrapping_add(u64::from(x.s32(i.src[2], 0)));
        }
        let offsets = if i.has(OFFEN) {
            *x.vgpr(i.src[0])
        } else {
            [0; 64]
        };
        let addresses = std::array::from_fn(|l| {
            let offset = u64::from(offsets[l]).wrapping_add(constant);
            base.wrapping_add(swizzle(offset, l as u64))
        });
        (addresses, x.exec())
    }

    fn contiguous(_: &Exec<'_>, _: &Inst) -> bool {
        false
    }
}

/// Addressing of `scratch_*` in gfx90a: the address is in a vector register or in a scalar one.
struct Scratch;

impl Addressing for Scratch {
    #[inline(always)]
    fn addresses(x: &mut Exec<'_>, i: &Inst, byte: u64) -> (Lanes64, u64) {
        let base = x.pair(FLAT_SCRATCH);
        let constant = (i.offset() as u64).wrapping_add(byte);
        let addresses = if i.has(SCALAR_OFFSET) {
            let offset = u64::from(x.s32(i.src[2], 0)).wrapping_add(constant);
            std::array::from_fn(|l| base.wrapping_add(swizzle(offset, l as u64)))
        } else {
            let offsets = x.vgpr(i.src[0]);
            std::array::from_fn(|l| {
                let offset = u64::from(offsets[l]).wrapping_add(constant);
                base.wrapping_add(swizzle(offset, l as u64))
            })
        };
        (addresses, x.exec())
    }

    fn contiguous(_: &Exec<'_>, _: &Inst) -> bool {
        false
    }
}
