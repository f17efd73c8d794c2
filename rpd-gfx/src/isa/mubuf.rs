//! MUBUF: memory accesses through buffer descriptors, which compilers use for scratch memory.

use super::Class;
use super::exec::Exec;
use super::inst::{AGPR, Format, GLC, IDXEN, Inst, OFFEN, STREAMING, VGPR};
use super::lanes::Lanes64;
use super::lanes::each_lane;
use super::transfer::{Addressing, handler, to_lds};
use super::typed_buffer;

/// Decodes a MUBUF instruction.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let w = words[0];
    let opcode = w >> 18 & 0x7f;
    // Caches of the host are coherent: invalidations do nothing, and a write-back orders stores.
    if matches!(opcode, 0x28 | 0x29 | 0x3e | 0x3f) {
        return Inst::new(
            |x, _| x.order_stores(),
            Format::Mubuf,
            Class::Other,
            opcode,
            2,
        );
    }
    let found = if w >> 16 & 1 != 0 {
        to_lds::<Buffer>(opcode).filter(|_| opcode < 0x20)
    } else {
        typed_buffer::handler(opcode).or_else(|| handler::<Buffer>(opcode))
    };
    let Some((class, run)) = found.filter(|_| opcode != 0x52) else {
        return Inst::unknown(Format::Mubuf, opcode);
    };
    let mut i = Inst::new(run, Format::Mubuf, class, opcode, 2);
    set_operands(&mut i, words);
    if words[0] >> 17 & 1 != 0 {
        i.flags |= STREAMING;
    }
    i
}

/// Decodes the operands that MUBUF and MTBUF have in the same fields.
pub(super) fn set_operands(i: &mut Inst, [w, v, _]: [u32; 3]) {
    let data = if v >> 23 & 1 != 0 { AGPR } else { VGPR };
    i.src[0] = (v & 0xff) as u16 + VGPR;
    i.src[1] = (v >> 8 & 0xff) as u16 + data;
    // Loads and atomics that return the old value write the data register.
    i.dst = i.src[1];
    i.src[2] = (v >> 24) as u16;
    i.sdst = ((v >> 16 & 0x1f) << 2) as u16;
    for (bit, flag) in [(14, GLC), (13, IDXEN), (12, OFFEN)] {
        if w >> bit & 1 != 0 {
            i.flags |= flag;
        }
    }
    i.literal = w & OFFSET;
}

/// Bits of the literal with the constant offset. MTBUF instructions have their format in the bits above.
const OFFSET: u32 = 0xfff;

/// Computes addresses with a buffer descriptor.
pub(super) struct Buffer;

/// Number of bytes that an instruction transfers for a lane, for the range check.
fn bytes(x: &Exec<'_>, i: &Inst) -> u64 {
    if let Some(Ok(view)) = typed_buffer::view(x, i) {
        return view.format.bytes().into();
    }
    match i.opcode {
        0x10 | 0x11 | 0x18 | 0x19 | 0x20..=0x23 => 1,
        0x12 | 0x13 | 0x1a | 0x1b | 0x24 | 0x25 => 2,
        0x15 | 0x1d | 0x4f..=0x51 | 0x60..=0x6c => 8,
        0x16 | 0x1e => 12,
        0x17 | 0x1f => 16,
        _ => 4,
    }
}

impl Addressing for Buffer {
    #[inline(always)]
    fn addresses(x: &mut Exec<'_>, i: &Inst, byte: u64) -> (Lanes64, u64) {
        let descriptor = [0, 1, 2, 3].map(|n| x.s32(i.sdst + n, 0));
        let base = u64::from(descriptor[0]) | u64::from(descriptor[1] & 0xffff) << 32;
        let stride = u64::from(descriptor[1] >> 16 & 0x3fff);
        let swizzled = descriptor[1] >> 31 != 0;
        let records = u64::from(descriptor[2]);
        let by_lane = descriptor[3] >> 23 & 1 != 0;
        // Index stride: a power of two.
        let index_bits = 3 + (descriptor[3] >> 21 & 3);
        let element_bits = 1 + (descriptor[3] >> 19 & 3);

        let scalar = u64::from(x.s32(i.src[2], 0));
        let start = base.wrapping_add(scalar);
        let bytes = bytes(x, i);
        let constant = (i.literal & OFFSET) + byte as u32;
        let zeros = [0; 64];
        let (indices, offsets) = match (i.has(IDXEN), i.has(OFFEN)) {
            (false, false) => (&zeros, &zeros),
            (false, true) => (&zeros, x.vgpr(i.src[0])),
            (true, false) => (x.vgpr(i.src[0]), &zeros),
            (true, true) => (x.vgpr(i.src[0]), x.vgpr(i.src[0] + 1)),
        };
        // The sum wraps at 32 bits, because an offset in a register may be negative.
        let offset = |l: usize| u64::from(offsets[l].wrapping_add(constant));
        let record = |l: usize| u64::from(indices[l]) + if by_lane { l as u64 } else { 0 };
        let mask = x.exec();
        if swizzled {
            let addresses = std::array::from_fn(|l| {
                let (record, offset) = (record(l), offset(l));
                let row = record >> index_bits;
                let column = record & ((1 << index_bits) - 1);
                let within = offset & ((1 << element_bits) - 1);
                let place = ((row * stride + (offset - within)) << index_bits)
                    + (column << element_bits)
                    + within;
                start.wrapping_add(place)
            });
            return (addresses, mask);
        }
        // Out of range: loads yield 0, stores are dropped.
        let by_bytes = stride == 0 || !i.has(IDXEN);
        let mut outside = 0;
        let addresses = std::array::from_fn(|l| {
            let beyond = if by_bytes {
                offset(l) + scalar + bytes > records
            } else {
                u64::from(indices[l]) >= records
            };
            outside |= u64::from(beyond) << l;
            start.wrapping_add(stride * record(l) + offset(l))
        });
        each_lane(outside & mask, |l| zero_loaded(x, i, l));
        (addresses, mask & !outside)
    }

    fn contiguous(x: &Exec<'_>, i: &Inst) -> bool {
        x.s32(i.sdst + 1, 0) >> 31 == 0
    }
}

/// Sets the registers of a lane whose load is out of range to 0.
fn zero_loaded(x: &mut Exec<'_>, i: &Inst, lane: usize) {
    let loads = matches!(i.opcode, 0x10..=0x17) || i.opcode >= 0x40 && i.has(GLC);
    if loads {
        for n in 0..bytes(x, i).div_ceil(4) as u16 {
            x.vgpr_mut(i.dst + n)[lane] = 0;
        }
    }
}
