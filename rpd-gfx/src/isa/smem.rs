//! SMEM: scalar loads, and reads of clocks.

use super::Class;
use super::exec::Exec;
use super::inst::{Format, Handler, Inst, SCALAR_OFFSET};
use super::memory::read;

/// Flag: the instruction has an immediate offset in addition to the scalar one.
const IMMEDIATE: u8 = super::inst::OFFEN;

/// Number of core clock cycles in a cycle of the constant clock.
const CORE_CLOCKS: u64 = 17;

/// Decodes an SMEM instruction.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let [w, v, _] = words;
    let opcode = w >> 18 & 0xff;
    let Some(run) = handler(opcode) else {
        return Inst::unknown(Format::Smem, opcode);
    };
    let mut i = Inst::new(run, Format::Smem, Class::Smem, opcode, 2);
    i.src[0] = ((w & 0x3f) << 1) as u16;
    i.dst = (w >> 6 & 0x7f) as u16;
    let (immediate, scalar) = (w >> 17 & 1 != 0, w >> 14 & 1 != 0);
    if immediate {
        i.literal = ((v << 11) as i32 >> 11) as u32;
        i.flags |= IMMEDIATE;
        if scalar {
            i.src[2] = (v >> 25) as u16;
            i.flags |= SCALAR_OFFSET;
        }
    } else {
        i.src[2] = (if scalar { v >> 25 } else { v & 0x7f }) as u16;
        i.flags |= SCALAR_OFFSET;
    }
    i
}

fn handler(opcode: u32) -> Option<Handler> {
    let handler: Handler = match opcode {
        0x00 => |x, i| load(x, i, 1),
        0x01 => |x, i| load(x, i, 2),
        0x02 => |x, i| load(x, i, 4),
        0x03 => |x, i| load(x, i, 8),
        0x04 => |x, i| load(x, i, 16),
        0x08 => |x, i| buffer_load(x, i, 1),
        0x09 => |x, i| buffer_load(x, i, 2),
        0x0a => |x, i| buffer_load(x, i, 4),
        0x0b => |x, i| buffer_load(x, i, 8),
        0x0c => |x, i| buffer_load(x, i, 16),
        // Cache invalidations and write-backs have no effect.
        0x20..=0x23 | 0x28 | 0x29 => |_, _| {},
        0x24 => |x, i| {
            // The core clock runs at 1.7 GHz.
            let now = x.own_clock().unwrap_or_else(|| {
                let now = x.mem.memory().realtime();
                now.wrapping_mul(CORE_CLOCKS)
            });
            x.set_pair(i.dst, now);
        },
        0x25 => |x, i| {
            let own = x.own_clock().map(|now| now / CORE_CLOCKS);
            let now = own.unwrap_or_else(|| x.mem.memory().realtime());
            x.set_pair(i.dst, now);
        },
        _ => return None,
    };
    Some(handler)
}

fn offset(x: &Exec<'_>, i: &Inst) -> u64 {
    let scalar = if i.has(SCALAR_OFFSET) {
        u64::from(x.s32(i.src[2], 0))
    } else {
        0
    };
    scalar.wrapping_add(i.offset() as u64)
}

fn load(x: &mut Exec<'_>, i: &Inst, dwords: u16) {
    let address = (x.pair(i.src[0]) & !3).wrapping_add(offset(x, i) & !3);
    fetch(x, i, address, dwords);
}

fn buffer_load(x: &mut Exec<'_>, i: &Inst, dwords: u16) {
    let base = x.pair(i.src[0]) & 0xffff_ffff_ffff;
    let stride = u64::from(x.s32(i.src[0] + 1, 0) >> 16 & 0x3fff);
    let records = u64::from(x.s32(i.src[0] + 2, 0));
    let size = if stride == 0 {
        records
    } else {
        records * stride
    };
    let offset = offset(x, i) & !3;
    for n in 0..dwords {
        let at = offset.wrapping_add(4 * u64::from(n));
        if at.checked_add(4).is_none_or(|end| end > size) {
            x.set(i.dst + n, 0);
            continue;
        }
        let mut one = *i;
        one.dst += n;
        fetch(x, &one, (base & !3).wrapping_add(at), 1);
    }
}

fn fetch(x: &mut Exec<'_>, i: &Inst, address: u64, dwords: u16) {
    let bytes = 4 * u64::from(dwords);
    if !x.mem.allows(address, bytes, false) {
        return x.scalar_fault(i, address, bytes as u32);
    }
    if let Some(trace) = &mut x.trace {
        trace.scalar(address, bytes);
    }
    let mut values = [0; 16];
    let values = &mut values[..usize::from(dwords)];
    // SAFETY: the access was allowed.
    unsafe { read(address, values) };
    for (n, value) in values.iter().enumerate() {
        x.set(i.dst + n as u16, *value);
    }
}
