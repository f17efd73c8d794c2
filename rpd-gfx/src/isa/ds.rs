//! DS: accesses to LDS, and exchanges between lanes.

use super::atomics::{atomic32, atomic64};
use super::exec::{Exec, register};
use super::host::for_each_level;
use super::inst::{AGPR, Format, Handler, Inst, VGPR};
use super::lanes::Lanes;
use super::lanes::each_lane;
use super::transfer::Fill;
use super::{Class, Operation};

/// Decodes a DS instruction.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let [w, v, _] = words;
    let opcode = w >> 17 & 0xff;
    // The only instructions of the global data share are those of global wave sync.
    let global = w >> 16 & 1 != 0;
    let found = if global {
        super::gws::handler(opcode)
    } else {
        handler(opcode)
    };
    let Some(run) = found else {
        return Inst::unknown(Format::Ds, opcode);
    };
    let mut i = Inst::new(run, Format::Ds, Class::Lds, opcode, 2);
    let data = if w >> 25 & 1 != 0 { AGPR } else { VGPR };
    i.src[0] = (v & 0xff) as u16 + VGPR;
    i.src[1] = (v >> 8 & 0xff) as u16 + data;
    i.src[2] = (v >> 16 & 0xff) as u16 + data;
    i.dst = (v >> 24) as u16 + data;
    i.literal = w & 0xffff;
    i
}

/// Bytes at an LDS address. Reads beyond the LDS of the workgroup yield 0.
#[inline(always)]
fn read<const N: usize>(lds: &[u8], at: u32) -> [u8; N] {
    let at = at as usize;
    match lds.get(at..at.wrapping_add(N)) {
        Some(bytes) => bytes.try_into().unwrap_or([0; N]),
        None => [0; N],
    }
}

/// Stores bytes at an LDS address. Writes beyond the LDS of the workgroup are dropped.
#[inline(always)]
fn write(lds: &mut [u8], at: u32, bytes: &[u8]) {
    let at = at as usize;
    if let Some(to) = lds.get_mut(at..at.wrapping_add(bytes.len())) {
        to.copy_from_slice(bytes);
    }
}

/// Reports to the probe, if there is one, the addresses that the active lanes access: `addresses` plus `offset`.
#[inline(always)]
fn watch(x: &mut Exec<'_>, operation: Operation, bytes: usize, addresses: &Lanes, offset: u32) {
    let mask = x.exec();
    if let Some(trace) = &mut x.trace {
        trace.lds(operation, bytes as u32, mask, |l| {
            addresses[l].wrapping_add(offset)
        });
    }
}

/// Loads `N` dwords from each lane's address plus `offset` into the registers from `dst` on.
#[inline(always)]
fn load<const N: usize>(x: &mut Exec<'_>, addresses: &Lanes, offset: u32, dst: u16) {
    watch(x, Operation::Load, 4 * N, addresses, offset);
    let mask = x.exec();
    let registers: [usize; N] = std::array::from_fn(|n| register(dst + n as u16));
    let (lds, v) = (&x.lds[..], &mut *x.w.v);
    each_lane(mask, |l| {
        let at = addresses[l].wrapping_add(offset);
        let inside = lds.get(at as usize..at as usize + 4 * N);
        for n in 0..N {
            v[registers[n]][l] = match inside {
                Some(bytes) => u32::from_le_bytes(read(bytes, 4 * n as u32)),
                None => u32::from_le_bytes(read(lds, at.wrapping_add(4 * n as u32))),
            };
        }
    });
    x.stats.lds_bytes += 4 * N as u64 * u64::from(mask.count_ones());
}

#[inline(always)]
fn store<const N: usize>(x: &mut Exec<'_>, addresses: &Lanes, offset: u32, src: u16) {
    watch(x, Operation::Store, 4 * N, addresses, offset);
    let mask = x.exec();
    let registers: [usize; N] = std::array::from_fn(|n| register(src + n as u16));
    let (lds, v) = (&mut x.lds[..], &*x.w.v);
    each_lane(mask, |l| {
        let at = addresses[l].wrapping_add(offset);
        for n in 0..N {
            let value = v[registers[n]][l].to_le_bytes();
            write(lds, at.wrapping_add(4 * n as u32), &value);
        }
    });
    x.stats.lds_bytes += 4 * N as u64 * u64::from(mask.count_ones());
}

#[inline(always)]
fn loads<const N: usize>(x: &mut Exec<'_>, i: &Inst) {
    let addresses = *x.vgpr(i.src[0]);
    load::<N>(x, &addresses, i.literal, i.dst);
}

#[inline(always)]
fn stores<const N: usize>(x: &mut Exec<'_>, i: &Inst) {
    let addresses = *x.vgpr(i.src[0]);
    store::<N>(x, &addresses, i.literal, i.src[1]);
}

/// Two loads at offsets counted in units of `unit` bytes.
#[inline(always)]
fn load2<const N: usize>(x: &mut Exec<'_>, i: &Inst, unit: u32) {
    let addresses = *x.vgpr(i.src[0]);
    load::<N>(x, &addresses, (i.literal & 0xff) * unit, i.dst);
    load::<N>(x, &addresses, (i.literal >> 8) * unit, i.dst + N as u16);
}

#[inline(always)]
fn store2<const N: usize>(x: &mut Exec<'_>, i: &Inst, unit: u32) {
    let addresses = *x.vgpr(i.src[0]);
    store::<N>(x, &addresses, (i.literal & 0xff) * unit, i.src[1]);
    store::<N>(x, &addresses, (i.literal >> 8) * unit, i.src[2]);
}

/// `ds_wrxchg2`: two exchanges of memory and register, at offsets counted in units of the size of the data.
#[inline(always)]
fn exchange2<const N: usize>(x: &mut Exec<'_>, i: &Inst, unit: u32) {
    let addresses = *x.vgpr(i.src[0]);
    let data = [0, 1, 2, 3].map(|n| *x.vgpr(i.src[1 + (n / N).min(1)] + (n % N) as u16));
    for half in 0..2 {
        let offset = (i.literal >> (8 * half) & 0xff) * unit;
        watch(x, Operation::Atomic(true), 4 * N, &addresses, offset);
    }
    let mask = x.exec();
    each_lane(mask, |l| {
        for half in 0..2 {
            let offset = (i.literal >> (8 * half) & 0xff) * unit;
            let at = addresses[l].wrapping_add(offset);
            for n in 0..N {
                let at = at.wrapping_add(4 * n as u32);
                let old = u32::from_le_bytes(read(&x.lds, at));
                let register = half as usize * N + n;
                write(&mut x.lds, at, &data[register][l].to_le_bytes());
                x.vgpr_mut(i.dst + register as u16)[l] = old;
            }
        }
    });
    x.stats.lds_bytes += 16 * N as u64 * u64::from(mask.count_ones());
}

#[inline(always)]
fn load_small<const BYTES: usize>(x: &mut Exec<'_>, i: &Inst, fill: Fill) {
    let addresses = *x.vgpr(i.src[0]);
    watch(x, Operation::Load, BYTES, &addresses, i.literal);
    let mask = x.exec();
    let (lds, to) = (&x.lds[..], &mut x.w.v[register(i.dst)]);
    each_lane(mask, |l| {
        let at = addresses[l].wrapping_add(i.literal);
        let value = if BYTES == 1 {
            u32::from(read::<1>(lds, at)[0])
        } else {
            u32::from(u16::from_le_bytes(read(lds, at)))
        };
        to[l] = fill.apply(to[l], value, BYTES);
    });
    x.stats.lds_bytes += BYTES as u64 * u64::from(mask.count_ones());
}

#[inline(always)]
fn store_small<const BYTES: usize>(x: &mut Exec<'_>, i: &Inst, shift: u32) {
    let addresses = *x.vgpr(i.src[0]);
    watch(x, Operation::Store, BYTES, &addresses, i.literal);
    let mask = x.exec();
    let (lds, values) = (&mut x.lds[..], &x.w.v[register(i.src[1])]);
    each_lane(mask, |l| {
        let value = (values[l] >> shift).to_le_bytes();
        let at = addresses[l].wrapping_add(i.literal);
        write(lds, at, &value[..BYTES]);
    });
    x.stats.lds_bytes += BYTES as u64 * u64::from(mask.count_ones());
}

/// A 32-bit read-modify-write for each active lane, in order. `RETURNS`: the old value is written to a register.
#[inline(always)]
pub(super) fn modify32(
    x: &mut Exec<'_>,
    i: &Inst,
    returns: bool,
    f: impl Fn(u32, u32, u32) -> u32,
) {
    let addresses = *x.vgpr(i.src[0]);
    let (a, b) = (*x.vgpr(i.src[1]), *x.vgpr(i.src[2]));
    watch(x, Operation::Atomic(returns), 4, &addresses, i.literal);
    let mask = x.exec();
    each_lane(mask, |l| {
        let at = addresses[l].wrapping_add(i.literal);
        let old = u32::from_le_bytes(read(&x.lds, at));
        write(&mut x.lds, at, &f(old, a[l], b[l]).to_le_bytes());
        if returns {
            x.vgpr_mut(i.dst)[l] = old;
        }
    });
    x.stats.lds_bytes += 8 * u64::from(mask.count_ones());
}

#[inline(always)]
fn modify64(x: &mut Exec<'_>, i: &Inst, returns: bool, f: impl Fn(u64, u64, u64) -> u64) {
    let addresses = *x.vgpr(i.src[0]);
    let wide = |code: u16| -> super::lanes::Lanes64 {
        let (low, high) = (x.vgpr(code), x.vgpr(code + 1));
        std::array::from_fn(|l| u64::from(low[l]) | u64::from(high[l]) << 32)
    };
    let (a, b) = (wide(i.src[1]), wide(i.src[2]));
    watch(x, Operation::Atomic(returns), 8, &addresses, i.literal);
    let mask = x.exec();
    each_lane(mask, |l| {
        let at = addresses[l].wrapping_add(i.literal);
        let old = u64::from_le_bytes(read(&x.lds, at));
        write(&mut x.lds, at, &f(old, a[l], b[l]).to_le_bytes());
        if returns {
            x.vgpr_mut(i.dst)[l] = old as u32;
            x.vgpr_mut(i.dst + 1)[l] = (old >> 32) as u32;
        }
    });
    x.stats.lds_bytes += 16 * u64::from(mask.count_ones());
}

/// New 32-bit value by the low five bits of a DS opcode.
fn update32(op: u16, old: u32, a: u32, b: u32) -> u32 {
    let float = |f: fn(f32, f32) -> f32| f(f32::from_bits(old), f32::from_bits(a)).to_bits();
    match op {
        // The operations in the order of the buffer and flat atomics.
        0x00 => atomic32(0x2, old, a, 0),
        0x01 => atomic32(0x3, old, a, 0),
        0x02 => a.wrapping_sub(old),
        0x03 => atomic32(0xb, old, a, 0),
        0x04 => atomic32(0xc, old, a, 0),
        0x05 => atomic32(0x4, old, a, 0),
        0x06 => atomic32(0x6, old, a, 0),
        0x07 => old.min(a),
        0x08 => old.max(a),
        0x09 => old & a,
        0x0a => old | a,
        0x0b => old ^ a,
        0x0c => old & !a | b,
        0x0d => a,
        // Here the value to compare with is the first operand.
        0x10 => atomic32(0x1, old, b, a),
        0x11 => {
            if f32::from_bits(old) == f32::from_bits(a) {
                b
            } else {
                old
            }
        }
        0x12 => float(super::float::min32),
        0x13 => float(super::float::max32),
        0x14 => {
            if old >= a {
                old - a
            } else {
                old.wrapping_add(b)
            }
        }
        _ => float(|p, q| p + q),
    }
}

fn update64(op: u16, old: u64, a: u64, b: u64) -> u64 {
    let float = |f: fn(f64, f64) -> f64| f(f64::from_bits(old), f64::from_bits(a)).to_bits();
    match op {
        0x00 => atomic64(0x2, old, a, 0),
        0x01 => atomic64(0x3, old, a, 0),
        0x02 => a.wrapping_sub(old),
        0x03 => atomic64(0xb, old, a, 0),
        0x04 => atomic64(0xc, old, a, 0),
        0x05 => atomic64(0x4, old, a, 0),
        0x06 => atomic64(0x6, old, a, 0),
        0x07 => old.min(a),
        0x08 => old.max(a),
        0x09 => old & a,
        0x0a => old | a,
        0x0b => old ^ a,
        0x0c => old & !a | b,
        0x0d => a,
        0x10 => atomic64(0x1, old, b, a),
        0x11 => {
            if f64::from_bits(old) == f64::from_bits(a) {
                b
            } else {
                old
            }
        }
        0x12 => float(super::float::min64),
        0x13 => float(super::float::max64),
        _ => float(|p, q| p + q),
    }
}

for_each_level! {
    fn handler(opcode: u32) -> Option<Handler> {
        let handler: Handler = match opcode {
            // Opcodes come in blocks of 32: 32-bit operations without and with a returned value, then the same with 64
            // bits. The low bits are the operation.
            0x00..=0x0c | 0x10..=0x13 | 0x15 => {
                |x, i| modify32(x, i, false, |old, a, b| update32(i.opcode, old, a, b))
            }
            0x20..=0x2d | 0x30..=0x35 => {
                |x, i| modify32(x, i, true, |old, a, b| update32(i.opcode - 0x20, old, a, b))
            }
            0x40..=0x4c | 0x50..=0x53 | 0x5c => |x, i| {
                modify64(x, i, false, |old, a, b| {
                    update64(i.opcode - 0x40, old, a, b)
                })
            },
            0x60..=0x6d | 0x70..=0x73 | 0x7c => {
                |x, i| modify64(x, i, true, |old, a, b| update64(i.opcode - 0x60, old, a, b))
            }
            // Loads and stores; the forms with two addresses count offsets in elements, or in 64 elements (`st64`).
            0x0d => |x, i| stores::<1>(x, i),
            0x0e => |x, i| store2::<1>(x, i, 4),
            0x0f => |x, i| store2::<1>(x, i, 256),
            // `ds_nop`.
            0x14 => |_, _| {},
            0x1e => |x, i| store_small::<1>(x, i, 0),
            0x1f => |x, i| store_small::<2>(x, i, 0),
            0x2e => |x, i| exchange2::<1>(x, i, 4),
            0x2f => |x, i| exchange2::<1>(x, i, 256),
            0x36 => |x, i| loads::<1>(x, i),
            0x37 => |x, i| load2::<1>(x, i, 4),
            0x38 => |x, i| load2::<1>(x, i, 256),
            0x39 => |x, i| load_small::<1>(x, i, Fill::Sign),
            0x3a => |x, i| load_small::<1>(x, i, Fill::Zero),
            0x3b => |x, i| load_small::<2>(x, i, Fill::Sign),
            0x3c => |x, i| load_small::<2>(x, i, Fill::Zero),
            0x3d => |x, i| swizzle(x, i),
            0x3e => |x, i| permute(x, i),
            0x3f => |x, i| bpermute(x, i),
            0x4d => |x, i| stores::<2>(x, i),
            0x4e => |x, i| store2::<2>(x, i, 8),
            0x4f => |x, i| store2::<2>(x, i, 512),
            // Forms that access one half of a register (`d16`, `d16_hi`).
            0x54 => |x, i| store_small::<1>(x, i, 16),
            0x55 => |x, i| store_small::<2>(x, i, 16),
            0x56 => |x, i| load_small::<1>(x, i, Fill::LowZero),
            0x57 => |x, i| load_small::<1>(x, i, Fill::HighZero),
            0x58 => |x, i| load_small::<1>(x, i, Fill::LowSign),
            0x59 => |x, i| load_small::<1>(x, i, Fill::HighSign),
            0x5a => |x, i| load_small::<2>(x, i, Fill::LowZero),
            0x5b => |x, i| load_small::<2>(x, i, Fill::HighZero),
            // Addresses from M0 and the lane's number, without an address register (`addtid`).
            0xb6 => |x, i| {
                let addresses = std::array::from_fn(|l| (x.m0() & 0xffff) + 4 * l as u32);
                load::<1>(x, &addresses, i.literal, i.dst);
            },
            0x1d => |x, i| {
                let addresses = std::array::from_fn(|l| (x.m0() & 0xffff) + 4 * l as u32);
                store::<1>(x, &addresses, i.literal, i.src[1]);
            },
            // `ds_consume` and `ds_append`.
            0xbd => |x, i| count(x, i, u32::wrapping_sub),
            0xbe => |x, i| count(x, i, u32::wrapping_add),
            0x6e => |x, i| exchange2::<2>(x, i, 8),
            0x6f => |x, i| exchange2::<2>(x, i, 512),
            0x76 => |x, i| loads::<2>(x, i),
            0x77 => |x, i| load2::<2>(x, i, 8),
            0x78 => |x, i| load2::<2>(x, i, 512),
            // Three and four dwords.
            0xde => |x, i| stores::<3>(x, i),
            0xdf => |x, i| stores::<4>(x, i),
            0xfe => |x, i| loads::<3>(x, i),
            0xff => |x, i| loads::<4>(x, i),
            _ => return None,
        };
        Some(handler)
    }
}

/// `ds_append` and `ds_consume`: adds or subtracts the number of active lanes to or from a dword. All lanes get the
/// old value.
fn count(x: &mut Exec<'_>, i: &Inst, f: fn(u32, u32) -> u32) {
    let at = (x.m0() & 0xffff) + i.literal;
    let mask = x.exec();
    if let Some(trace) = &mut x.trace {
        // One access for all lanes.
        let first = mask & mask.wrapping_neg();
        trace.lds(Operation::Atomic(true), 4, first, |_| at);
    }
    let old = u32::from_le_bytes(read(&x.lds, at));
    write(&mut x.lds, at, &f(old, mask.count_ones()).to_le_bytes());
    super::operand::blend(x.vgpr_mut(i.dst), &[old; 64], mask);
    x.stats.lds_bytes += 8;
}

/// Reads the data of the lane that `from` returns, for each lane. Inactive lanes yield 0.
#[inline(always)]
fn gather(x: &mut Exec<'_>, i: &Inst, data: u16, from: impl Fn(usize) -> usize) {
    let data = *x.vgpr(data);
    let mask = x.exec();
    let out: Lanes = std::array::from_fn(|l| {
        let source = from(l) & 63;
        if mask >> source & 1 != 0 {
            data[source]
        } else {
            0
        }
    });
    super::operand::blend(x.vgpr_mut(i.dst), &out, mask);
}

#[inline(always)]
fn bpermute(x: &mut Exec<'_>, i: &Inst) {
    let addresses = *x.vgpr(i.src[0]);
    gather(x, i, i.src[1], |l| {
        (addresses[l].wrapping_add(i.literal) >> 2) as usize
    });
}

#[inline(always)]
fn permute(x: &mut Exec<'_>, i: &Inst) {
    let (addresses, data) = (*x.vgpr(i.src[0]), *x.vgpr(i.src[1]));
    let mask = x.exec();
    let mut out = [0; 64];
    each_lane(mask, |l| {
        out[(addresses[l].wrapping_add(i.literal) >> 2) as usize & 63] = data[l];
    });
    super::operand::blend(x.vgpr_mut(i.dst), &out, mask);
}

#[inline(always)]
fn swizzle(x: &mut Exec<'_>, i: &Inst) {
    let pattern = i.literal as usize;
    gather(x, i, i.src[0], |l| {
        if pattern >= 0xe000 {
            // Butterfly permutation of 32 lanes: reverses the bits of the lane number, except those in the mask.
            let mask = pattern & 31;
            let at = l & 31;
            l & !31 | (at as u32).reverse_bits() as usize >> 27 & !mask & 31 | at & mask
        } else if pattern >= 0xc000 {
            let (by, mask) = (pattern >> 5 & 31, pattern & 31);
            let at = l & 31;
            let moved = if pattern >> 10 & 1 != 0 {
                at + 32 - by
            } else {
                at + by
            };
            l & !31 | at & mask | moved & 31 & !mask
        } else if pattern & 0x8000 != 0 {
            l & !3 | pattern >> (2 * (l & 3)) & 3
        } else {
            let at = (l & 31 & pattern | pattern >> 5 & 31) ^ pattern >> 10 & 31;
            l & !31 | at
        }
    });
}
