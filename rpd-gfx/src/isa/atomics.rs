//! Atomic read-modify-write operations on memory.

use super::Access;
use super::exec::Exec;
use super::float::{f16_to_f32, f64_to_f16, max64, min64};
use super::inst::{GLC, Inst};
use super::kind::Operation;
use super::lanes::Lanes64;
use super::transfer::watch;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Declares the integer operations of one width: the new value, by the low bits of the opcode (0x40 for buffer and
/// flat); `None` for opcodes of other operations.
macro_rules! integers {
    ($name:ident, $unsigned:ty, $signed:ty) => {
        #[inline(always)]
        fn $name(
            op: u16,
            old: $unsigned,
            data: $unsigned,
            compare: $unsigned,
        ) -> Option<$unsigned> {
            Some(match op {
                0x0 => data,
                0x1 if old == compare => data,
                0x1 => old,
                0x2 => old.wrapping_add(data),
                0x3 => old.wrapping_sub(data),
                0x4 => (old as $signed).min(data as $signed) as $unsigned,
                0x5 => old.min(data),
                0x6 => (old as $signed).max(data as $signed) as $unsigned,
                0x7 => old.max(data),
                0x8 => old & data,
                0x9 => old | data,
                0xa => old ^ data,
                // An increment wraps to 0 at the operand; a decrement wraps to it.
                0xb if old >= data => 0,
                0xb => old + 1,
                0xc if old == 0 || old > data => data,
                0xc => old - 1,
                _ => return None,
            })
        }
    };
}

integers!(integer32, u32, i32);
integers!(integer64, u64, i64);

/// The new value of a 32-bit atomic operation, by the low bits of the opcode (0x40 for buffer and flat).
#[inline(always)]
pub(super) fn atomic32(op: u16, old: u32, data: u32, compare: u32) -> u32 {
    integer32(op, old, data, compare).unwrap_or_else(|| match op {
        0xd => (f32::from_bits(old) + f32::from_bits(data)).to_bits(),
        0x12 => add_bf16_pairs(old, data),
        _ => add_halves(old, data),
    })
}

/// Adds two pairs of half-precision numbers.
pub(super) fn add_halves(a: u32, b: u32) -> u32 {
    let add = |a: u32, b: u32| {
        let sum = f16_to_f32(a as u16) + f16_to_f32(b as u16);
        u32::from(f64_to_f16(f64::from(sum)))
    };
    add(a, b) | add(a >> 16, b >> 16) << 16
}

/// Adds two pairs of BF16 numbers.
pub(super) fn add_bf16_pairs(a: u32, b: u32) -> u32 {
    let add = |a: u32, b: u32| {
        let sum = f64::from(f32::from_bits(a << 16)) + f64::from(f32::from_bits(b << 16));
        bf16(sum)
    };
    add(a, b) | add(a >> 16, b >> 16) << 16
}

/// Rounds a number to BF16 once.
fn bf16(value: f64) -> u32 {
    let single = value as f32;
    if single.is_nan() {
        return 0x7fc0;
    }
    // The first rounding is to odd, so that it does not create or hide a tie for the second.
    let inexact = f64::from(single) != value;
    let toward_zero = if inexact && f64::from(single.abs()) > value.abs() {
        single.to_bits() - 1
    } else {
        single.to_bits()
    };
    let bits = toward_zero | u32::from(inexact);
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}

/// The new value of a 64-bit atomic operation, by the low bits of the opcode. Floating-point operations begin at
/// 0x10.
#[inline(always)]
pub(super) fn atomic64(op: u16, old: u64, data: u64, compare: u64) -> u64 {
    let float = |f: fn(f64, f64) -> f64| f(f64::from_bits(old), f64::from_bits(data)).to_bits();
    integer64(op, old, data, compare).unwrap_or_else(|| match op {
        0x10 => float(|a, b| a + b),
        0x11 => float(min64),
        _ => float(max64),
    })
}

/// Executes an atomic operation for each lane of `mask`, in order. `WIDE`: with 64 bits instead of 32.
pub(super) fn atomic<const WIDE: bool>(
    x: &mut Exec<'_>,
    i: &Inst,
    addresses: &Lanes64,
    mask: u64,
    op: u16,
) {
    // The loop over lanes is compiled for each operation. A loop that selects the operation would compute the
    // floating-point sums for integers as well, and those are mostly denormal sums, which take a hundred cycles.
    macro_rules! loops {
        ($($code:literal)*) => {
            match op {
                $($code => each::<WIDE, $code>(x, i, addresses, mask),)*
                _ => each::<WIDE, 0x12>(x, i, addresses, mask),
            }
        };
    }
    loops!(0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9 0xa 0xb 0xc 0xd 0xe 0x10 0x11);
}

/// Executes the operation OP for each lane.
fn each<const WIDE: bool, const OP: u16>(
    x: &mut Exec<'_>,
    i: &Inst,
    addresses: &Lanes64,
    mask: u64,
) {
    let bytes = if WIDE { 8 } else { 4 };
    watch(
        x,
        Operation::Atomic(i.has(GLC)),
        bytes as usize,
        addresses,
        mask,
    );
    let returns = i.has(GLC);
    // Floating-point atomics begin with 0xd. On devices that cannot execute them in fine-grained memory they have no
    // effect.
    let dropped_when_fine = OP >= 0xd && !x.d.device.code.fine_grained_float_atomics;
    for l in 0..64 {
        if mask >> l & 1 == 0 {
            continue;
        }
        let address = addresses[l];
        // A misaligned atomic faults on the hardware, and could not be one access of the host.
        if !x.mem.allows(address, bytes, true) || !address.is_multiple_of(bytes) {
            return x.memory_fault(i, addresses, mask, bytes as u32, Access::Atomic);
        }
        let dropped = dropped_when_fine && x.mem.last_was_fine_grained();
        let dword = |n: u16| x.vgpr(i.src[1] + n)[l];
        let old = if dropped {
            0
        } else if WIDE {
            let data = u64::from(dword(0)) | u64::from(dword(1)) << 32;
            // Only compare-and-swap has a second operand, behind the first.
            let compare = if OP == 1 {
                u64::from(dword(2)) | u64::from(dword(3)) << 32
            } else {
                0
            };
            // SAFETY: the access was allowed, and the address is aligned.
            let cell = unsafe { AtomicU64::from_ptr(address as *mut u64) };
            cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| {
                Some(atomic64(OP, old, data, compare))
            })
            .unwrap_or_else(|old| old)
        } else {
            let data = dword(0);
            let compare = if OP == 1 { dword(1) } else { 0 };
            // SAFETY: the access was allowed, and the address is aligned.
            let cell = unsafe { AtomicU32::from_ptr(address as *mut u32) };
            let old = cell
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| {
                    Some(atomic32(OP, old, data, compare))
                })
                .unwrap_or_else(|old| old);
            u64::from(old)
        };
        // Written lane by lane: two lanes may change the same address, and each gets the value that it found.
        if returns {
            x.vgpr_mut(i.dst)[l] = old as u32;
            if WIDE {
                x.vgpr_mut(i.dst + 1)[l] = (old >> 32) as u32;
            }
        }
    }
    // Scratch and LDS of the workgroup are not part of the counts of memory.
    if !x.mem.last_was_own() {
        x.stats.atomics += u64::from(mask.count_ones());
    }
}
