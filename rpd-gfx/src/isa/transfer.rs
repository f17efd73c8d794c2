//! Transfers between registers and memory, for buffer, global, flat and scratch instructions.

use super::atomics::atomic;
use super::exec::{Exec, Wave, register};
use super::host::for_each_level;
use super::inst::{Handler, Inst};
use super::lanes::Lanes64;
use super::lanes::each_lane;
use super::memory::{read, read_small, read32, write, write_small};
use super::{Access, Class, Operation};

/// Whether the addresses of consecutive lanes are `step` bytes apart.
#[inline(always)]
fn consecutive(addresses: &Lanes64, step: u64) -> bool {
    let first = addresses[0];
    let mut different = 0;
    for (l, a) in addresses.iter().enumerate() {
        different |= a ^ first.wrapping_add(l as u64 * step);
    }
    different == 0
}

/// Reports to the probe, if there is one, the accesses that the lanes of `mask` are about to make.
#[inline(always)]
pub(super) fn watch(
    x: &mut Exec<'_>,
    operation: Operation,
    bytes: usize,
    addresses: &Lanes64,
    mask: u64,
) {
    if let Some(trace) = &mut x.trace {
        trace.memory(operation, bytes as u32, mask, addresses, x.mem.own());
    }
}

/// Checks the accesses of the lanes of `mask` and calls `transfer` with each lane and its address. If a quick test
/// cannot allow all of them together, lanes are checked one after the other, so that the lanes before a fault are
/// transferred.
///
/// Returns whether all lanes were transferred. If not, the wave has the fault.
#[inline(always)]
fn each_allowed(
    x: &mut Exec<'_>,
    i: &Inst,
    addresses: &Lanes64,
    mask: u64,
    bytes: u64,
    access: Access,
    mut transfer: impl FnMut(&mut Wave, usize, u64),
) -> bool {
    let write = access == Access::Write;
    if x.mem.allows_all(addresses, mask, bytes, write) {
        let wave = &mut *x.w;
        each_lane(mask, |l| transfer(wave, l, addresses[l]));
        return true;
    }
    for l in 0..64 {
        if mask >> l & 1 == 0 {
            continue;
        }
        let address = addresses[l];
        if !x.mem.allows(address, bytes, write) {
            x.memory_fault(i, addresses, mask, bytes as u32, access);
            return false;
        }
        transfer(&mut x.w, l, address);
    }
    true
}

/// Loads `N` dwords for each lane of `mask`.
#[inline(always)]
pub(super) fn load<const N: usize>(x: &mut Exec<'_>, i: &Inst, addresses: &Lanes64, mask: u64) {
    watch(x, Operation::Load, 4 * N, addresses, mask);
    let bytes = 4 * N as u64;
    if N == 1
        && mask == u64::MAX
        && consecutive(addresses, 4)
        && x.mem.allows(addresses[0], 256, false)
    {
        // SAFETY: 256 bytes were allowed, which is the size of a register.
        unsafe { read(addresses[0], x.vgpr_mut(i.dst)) };
    } else {
        let registers: [usize; N] = std::array::from_fn(|n| register(i.dst + n as u16));
        let done = each_allowed(x, i, addresses, mask, bytes, Access::Read, |w, l, at| {
            let mut values = [0; N];
            // SAFETY: the access was allowed.
            unsafe { read(at, &mut values) };
            for n in 0..N {
                w.v[registers[n]][l] = values[n];
            }
        });
        if !done {
            return;
        }
    }
    count_loaded(x, bytes, mask);
}

/// Stores `N` dwords of each lane of `mask`.
#[inline(always)]
pub(super) fn store<const N: usize>(x: &mut Exec<'_>, i: &Inst, addresses: &Lanes64, mask: u64) {
    watch(x, Operation::Store, 4 * N, addresses, mask);
    let bytes = 4 * N as u64;
    if N == 1
        && mask == u64::MAX
        && consecutive(addresses, 4)
        && x.mem.allows(addresses[0], 256, true)
    {
        // SAFETY: 256 bytes were allowed, which is the size of a register.
        unsafe { write(addresses[0], x.vgpr(i.src[1])) };
    } else {
        let registers: [usize; N] = std::array::from_fn(|n| register(i.src[1] + n as u16));
        let done = each_allowed(x, i, addresses, mask, bytes, Access::Write, |w, l, at| {
            let values: [u32; N] = std::array::from_fn(|n| w.v[registers[n]][l]);
            // SAFETY: the access was allowed.
            unsafe { write(at, &values) };
        });
        if !done {
            return;
        }
    }
    count_stored(x, bytes, mask);
}

/// Counts loaded bytes, unless they are in the workgroup's own memory.
#[inline(always)]
fn count_loaded(x: &mut Exec<'_>, bytes: u64, mask: u64) {
    if !x.mem.last_was_own() {
        x.stats.bytes_loaded += bytes * u64::from(mask.count_ones());
    }
}

/// Counts stored bytes, unless they are in the workgroup's own memory.
#[inline(always)]
fn count_stored(x: &mut Exec<'_>, bytes: u64, mask: u64) {
    if !x.mem.last_was_own() {
        x.stores_unordered = true;
        x.stats.bytes_stored += bytes * u64::from(mask.count_ones());
    }
}

/// Effect of a load of less than a dword on the rest of the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// The value is zero-extended.
    Zero,
    /// The value is sign-extended.
    Sign,
    /// The value is zero-extended to 16 bits in the low half; the high half is kept.
    LowZero,
    /// The value is sign-extended to 16 bits in the low half; the high half is kept.
    LowSign,
    /// The value is zero-extended to 16 bits in the high half; the low half is kept.
    HighZero,
    /// The value is sign-extended to 16 bits in the high half; the low half is kept.
    HighSign,
}

impl Fill {
    /// The new value of the register after a load of `bytes` bytes.
    #[inline(always)]
    pub(super) fn apply(self, old: u32, value: u32, bytes: usize) -> u32 {
        let signed = if bytes == 1 {
            value as i8 as u32
        } else {
            value as i16 as u32
        };
        match self {
            Self::Zero => value,
            Self::Sign => signed,
            Self::LowZero => old & 0xffff_0000 | value,
            Self::LowSign => old & 0xffff_0000 | signed & 0xffff,
            Self::HighZero => old & 0xffff | value << 16,
            Self::HighSign => old & 0xffff | signed << 16,
        }
    }
}

/// Loads one or two bytes for each lane of `mask`.
#[inline(always)]
fn load_small<const BYTES: usize>(
    x: &mut Exec<'_>,
    i: &Inst,
    addresses: &Lanes64,
    mask: u64,
    fill: Fill,
) {
    watch(x, Operation::Load, BYTES, addresses, mask);
    let (bytes, to) = (BYTES as u64, register(i.dst));
    let done = each_allowed(x, i, addresses, mask, bytes, Access::Read, |w, l, at| {
        // SAFETY: the access was allowed.
        let value = unsafe { read_small::<BYTES>(at) };
        let register = &mut w.v[to];
        register[l] = fill.apply(register[l], value, BYTES);
    });
    if done {
        count_loaded(x, bytes, mask);
    }
}

/// Stores one or two bytes of each lane of `mask`, taken from bit `shift` of the register on.
#[inline(always)]
fn store_small<const BYTES: usize>(
    x: &mut Exec<'_>,
    i: &Inst,
    addresses: &Lanes64,
    mask: u64,
    shift: u32,
) {
    watch(x, Operation::Store, BYTES, addresses, mask);
    let (bytes, from) = (BYTES as u64, register(i.src[1]));
    let done = each_allowed(x, i, addresses, mask, bytes, Access::Write, |w, l, at| {
        // SAFETY: the access was allowed.
        unsafe { write_small::<BYTES>(at, w.v[from][l] >> shift) };
    });
    if done {
        count_stored(x, bytes, mask);
    }
}

/// The operation of a load to LDS. gfx90a encodes such loads as a bit of other loads; gfx942 has separate opcodes for
/// those without a buffer descriptor.
pub(super) fn to_lds<A: Addressing>(opcode: u32) -> Option<(Class, Handler)> {
    let load: Handler = |x, i| {
        let (addresses, mask) = A::addresses(x, i, 0);
        load_to_lds(x, i, &addresses, mask);
    };
    matches!(opcode, 0x10..=0x14 | 0x26..=0x2a).then_some((Class::VmemRead, load))
}

/// Loads a dword for each lane to consecutive dwords of LDS, from the address in M0 on.
fn load_to_lds(x: &mut Exec<'_>, i: &Inst, addresses: &Lanes64, mask: u64) {
    let (bytes, signed) = match i.opcode {
        0x10 | 0x26 => (1, false),
        0x11 | 0x27 => (1, true),
        0x12 | 0x28 => (2, false),
        0x13 | 0x29 => (2, true),
        _ => (4, false),
    };
    watch(x, Operation::Load, bytes, addresses, mask);
    let first = (x.m0() & 0xffff).wrapping_add(i.literal);
    for l in 0..64 {
        if mask >> l & 1 == 0 {
            continue;
        }
        let address = addresses[l];
        if !x.mem.allows(address, bytes as u64, false) {
            return x.memory_fault(i, addresses, mask, bytes as u32, Access::Read);
        }
        // SAFETY: the access was allowed.
        let value = unsafe {
            match bytes {
                4 => read32(address),
                2 => read_small::<2>(address),
                _ => read_small::<1>(address),
            }
        };
        let value = match bytes {
            1 if signed => value as i8 as u32,
            2 if signed => value as i16 as u32,
            _ => value,
        };
        let at = first.wrapping_add(4 * l as u32) as usize;
        // Bytes beyond the LDS of the workgroup are not written.
        if let Some(to) = x.lds.get_mut(at..at.saturating_add(4)) {
            to.copy_from_slice(&value.to_le_bytes());
        }
    }
    count_loaded(x, bytes as u64, mask);
}

/// Way in which an instruction computes the addresses of its lanes.
pub(super) trait Addressing {
    /// Host address of byte number `byte` of each lane's transfer, and the lanes that take part. In swizzled memory
    /// the address is valid up to the end of the dword.
    fn addresses(x: &mut Exec<'_>, i: &Inst, byte: u64) -> (Lanes64, u64);

    /// Whether the dwords of a lane are consecutive, as they are everywhere but in swizzled memory.
    fn contiguous(x: &Exec<'_>, i: &Inst) -> bool;
}

/// Lanes whose transfer crosses the end of a dword of swizzled memory. Their bytes are transferred separately.
struct Crossing {
    lanes: u64,
    /// For each byte, the addresses of the lanes.
    bytes: Vec<Lanes64>,
}

impl Crossing {
    /// Splits a transfer of `bytes` bytes: the addresses and the lanes that do not cross, and the crossing lanes, if
    /// any.
    #[inline(always)]
    fn split<A: Addressing>(
        x: &mut Exec<'_>,
        i: &Inst,
        bytes: usize,
    ) -> (Lanes64, u64, Option<Self>) {
        let (addresses, mask) = A::addresses(x, i, 0);
        let misaligned = match bytes {
            1 => false,
            2 => addresses.iter().fold(false, |any, at| any | (at & 3 == 3)),
            _ => addresses.iter().fold(0, |any, at| any | at) & 3 != 0,
        };
        if misaligned
            && !A::contiguous(x, i)
            && let Some(found) = Self::find::<A>(x, i, &addresses, mask, bytes)
        {
            return (addresses, mask & !found.lanes, Some(found));
        }
        (addresses, mask, None)
    }

    #[cold]
    #[inline(never)]
    fn find<A: Addressing>(
        x: &mut Exec<'_>,
        i: &Inst,
        addresses: &Lanes64,
        mask: u64,
        bytes: usize,
    ) -> Option<Self> {
        let crosses = |at: u64| (at & 3) + bytes.min(4) as u64 > 4;
        let found = addresses.iter().enumerate();
        let lanes = found.fold(0, |lanes, (l, at)| lanes | u64::from(crosses(*at)) << l) & mask;
        (lanes != 0).then(|| Self {
            lanes,
            // All addresses are computed first, because a load may overwrite its address register.
            bytes: (0..bytes as u64)
                .map(|byte| A::addresses(x, i, byte).0)
                .collect(),
        })
    }

    /// Loads the bytes. Calls `put` with lane, number of the dword and value.
    #[cold]
    #[inline(never)]
    fn load(&self, x: &mut Exec<'_>, i: &Inst, put: impl Fn(&mut Wave, usize, usize, u32)) {
        let mut values = [[0; 64]; 4];
        for (n, addresses) in self.bytes.iter().enumerate() {
            watch(x, Operation::Load, 1, addresses, self.lanes);
            let dword = &mut values[n / 4];
            let done = each_allowed(x, i, addresses, self.lanes, 1, Access::Read, |_, l, at| {
                // SAFETY: the access was allowed.
                dword[l] |= unsafe { read_small::<1>(at) } << (8 * (n % 4));
            });
            if !done {
                return;
            }
        }
        for (n, dword) in values.iter().enumerate().take(self.bytes.len().div_ceil(4)) {
            each_lane(self.lanes, |l| put(&mut x.w, l, n, dword[l]));
        }
    }

    /// Stores the bytes of the values that `value` returns for lane and number of the dword.
    #[cold]
    #[inline(never)]
    fn store(&self, x: &mut Exec<'_>, i: &Inst, value: impl Fn(&Wave, usize, usize) -> u32) {
        for (n, addresses) in self.bytes.iter().enumerate() {
            watch(x, Operation::Store, 1, addresses, self.lanes);
            let done = each_allowed(x, i, addresses, self.lanes, 1, Access::Write, |w, l, at| {
                // SAFETY: the access was allowed.
                unsafe { write_small::<1>(at, value(w, l, n / 4) >> (8 * (n % 4))) };
            });
            if !done {
                return;
            }
        }
    }
}

/// Executes a transfer of `N` dwords; in swizzled memory, dword by dword. Returns the crossing lanes, which are left
/// out.
#[inline(always)]
fn whole<A: Addressing, const N: usize>(
    x: &mut Exec<'_>,
    i: &Inst,
    all: impl Fn(&mut Exec<'_>, &Inst, &Lanes64, u64),
    one: impl Fn(&mut Exec<'_>, &Inst, &Lanes64, u64),
) -> Option<Crossing> {
    let (first, others, crossing) = Crossing::split::<A>(x, i, 4 * N);
    if N == 1 || A::contiguous(x, i) {
        all(x, i, &first, others);
        return crossing;
    }
    // All addresses are computed first, because a load may overwrite its address register.
    let parts: [(Lanes64, u64); N] = std::array::from_fn(|n| match n {
        0 => (first, others),
        n => A::addresses(x, i, 4 * n as u64),
    });
    let mut i = *i;
    for (addresses, mask) in &parts {
        one(x, &i, addresses, *mask & others);
        i.dst += 1;
        i.src[1] += 1;
    }
    crossing
}

#[inline(always)]
fn loads<A: Addressing, const N: usize>(x: &mut Exec<'_>, i: &Inst) {
    if let Some(crossing) = whole::<A, N>(x, i, load::<N>, load::<1>) {
        crossing.load(x, i, |w, l, n, value| {
            w.v[register(i.dst + n as u16)][l] = value;
        });
    }
}

#[inline(always)]
fn stores<A: Addressing, const N: usize>(x: &mut Exec<'_>, i: &Inst) {
    if let Some(crossing) = whole::<A, N>(x, i, store::<N>, store::<1>) {
        crossing.store(x, i, |w, l, n| w.v[register(i.src[1] + n as u16)][l]);
    }
}

/// Loads one or two bytes for each lane.
#[inline(always)]
fn small_loads<A: Addressing, const BYTES: usize>(x: &mut Exec<'_>, i: &Inst) {
    let fill = fill_of(i.opcode);
    let (addresses, others, crossing) = Crossing::split::<A>(x, i, BYTES);
    load_small::<BYTES>(x, i, &addresses, others, fill);
    if let Some(crossing) = crossing {
        crossing.load(x, i, |w, l, _, value| {
            let register = &mut w.v[register(i.dst)];
            register[l] = fill.apply(register[l], value, BYTES);
        });
    }
}

/// Stores one or two bytes of each lane, taken from bit `shift` of the register on.
#[inline(always)]
fn small_stores<A: Addressing, const BYTES: usize>(x: &mut Exec<'_>, i: &Inst, shift: u32) {
    let (addresses, others, crossing) = Crossing::split::<A>(x, i, BYTES);
    store_small::<BYTES>(x, i, &addresses, others, shift);
    if let Some(crossing) = crossing {
        crossing.store(x, i, |w, l, _| w.v[register(i.src[1])][l] >> shift);
    }
}

for_each_level! {
    /// Class and operation of the opcodes that MUBUF and FLAT have in common.
    pub(super) fn handler<A: Addressing>(opcode: u32) -> Option<(Class, Handler)> {
        let (class, handler): (Class, Handler) = match opcode {
            0x10 | 0x11 | 0x20..=0x23 => (Class::VmemRead, small_loads::<A, 1>),
            0x12 | 0x13 | 0x24 | 0x25 => (Class::VmemRead, small_loads::<A, 2>),
            0x14 => (Class::VmemRead, loads::<A, 1>),
            0x15 => (Class::VmemRead, loads::<A, 2>),
            0x16 => (Class::VmemRead, loads::<A, 3>),
            0x17 => (Class::VmemRead, loads::<A, 4>),
            0x18 | 0x19 => (Class::VmemWrite, |x, i| {
                small_stores::<A, 1>(x, i, if i.opcode == 0x19 { 16 } else { 0 });
            }),
            0x1a | 0x1b => (Class::VmemWrite, |x, i| {
                small_stores::<A, 2>(x, i, if i.opcode == 0x1b { 16 } else { 0 });
            }),
            0x1c => (Class::VmemWrite, stores::<A, 1>),
            0x1d => (Class::VmemWrite, stores::<A, 2>),
            0x1e => (Class::VmemWrite, stores::<A, 3>),
            0x1f => (Class::VmemWrite, stores::<A, 4>),
            0x40..=0x4e | 0x52 => (Class::VmemWrite, |x, i| {
                let (addresses, mask) = A::addresses(x, i, 0);
                atomic::<false>(x, i, &addresses, mask, i.opcode - 0x40);
            }),
            0x4f..=0x51 => (Class::VmemWrite, |x, i| {
                let (addresses, mask) = A::addresses(x, i, 0);
                atomic::<true>(x, i, &addresses, mask, i.opcode - 0x4f + 0x10);
            }),
            0x60..=0x6c => (Class::VmemWrite, |x, i| {
                let (addresses, mask) = A::addresses(x, i, 0);
                atomic::<true>(x, i, &addresses, mask, i.opcode - 0x60);
            }),
            _ => return None,
        };
        Some((class, handler))
    }
}

fn fill_of(opcode: u16) -> Fill {
    match opcode {
        0x10 | 0x12 => Fill::Zero,
        0x11 | 0x13 => Fill::Sign,
        0x20 | 0x24 => Fill::LowZero,
        0x21 | 0x25 => Fill::HighZero,
        0x22 => Fill::LowSign,
        _ => Fill::HighSign,
    }
}
