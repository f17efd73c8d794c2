//! Global memory as waves reach it: checked accesses, and the transfers that buffer, global, flat and
//! scratch instructions share.
//!
//! The memory model: an aligned access of up to 16 bytes is one access of the host, so that no other wave or host
//! thread sees a part of it. The host (x86-64) keeps loads in order, and stores in order; caches are coherent. So
//! what the model leaves to the cache bits of an instruction (glc, slc, scc) and to invalidations is true of every
//! access. What the host may do is to execute a load before an earlier store to another place. Code that forbids it
//! waits for the store (`s_waitcnt vmcnt`) or writes the caches back (`buffer_wbl2`): these are fences of the host,
//! see [`Exec::order_stores`].

use super::atomics::atomic;
use super::exec::{Exec, Lanes64};
use super::inst::{Handler, Inst};
use super::{Access, Class, Extent, Memory, Operation};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Checks accesses, remembering the ranges that were allowed.
pub(super) struct Cache<'d> {
    memory: &'d dyn Memory,
    /// The workgroup's own memory comes first: scratch, and LDS as flat addresses reach it.
    extents: [Extent; 8],
    recent: usize,
    next: usize,
    /// The value of [`Memory::changes`] before these extents were read.
    changes: u64,
}

/// Extents of the workgroup's own memory.
const OWN: usize = 2;

const NOWHERE: Extent = Extent {
    start: 1,
    end: 0,
    writable: false,
};

impl<'d> Cache<'d> {
    pub(super) fn new(memory: &'d dyn Memory) -> Self {
        Self {
            memory,
            extents: [NOWHERE; 8],
            recent: 0,
            next: OWN,
            changes: memory.changes(),
        }
    }

    /// The memory of the device.
    pub(super) fn memory(&self) -> &'d dyn Memory {
        self.memory
    }

    /// Allows the scratch and LDS of the workgroup whose turn it is, in place of the one before. If the workgroup is
    /// `fresh`, forgets what else was allowed when that may have changed.
    pub(super) fn reset(&mut self, own: &[Extent; OWN], fresh: bool) {
        if fresh {
            let changes = self.memory.changes();
            if changes != self.changes {
                self.changes = changes;
                self.extents = [NOWHERE; 8];
                self.next = OWN;
            }
        }
        self.extents[..OWN].copy_from_slice(own);
    }

    /// Whether `bytes` at `address` may be accessed.
    #[inline(always)]
    pub(super) fn allows(&mut self, address: u64, bytes: u64, write: bool) -> bool {
        let e = &self.extents[self.recent & 7];
        if inside(e, address, bytes, write) {
            return true;
        }
        self.search(address, bytes, write)
    }

    #[inline(never)]
    fn search(&mut self, address: u64, bytes: u64, write: bool) -> bool {
        if let Some(at) = self
            .extents
            .iter()
            .position(|e| inside(e, address, bytes, write))
        {
            self.recent = at;
            return true;
        }
        let Some(extent) = self.memory.extent(address) else {
            return false;
        };
        if !inside(&extent, address, bytes, write) {
            return false;
        }
        self.extents[self.next] = extent;
        self.recent = self.next;
        self.next += 1;
        if self.next == self.extents.len() {
            self.next = OWN;
        }
        true
    }

    /// The workgroup's scratch and LDS.
    pub(super) fn own(&self) -> &[Extent] {
        &self.extents[..OWN]
    }

    /// Whether the last allowed access was to the workgroup's own memory, which the counters leave out.
    pub(super) fn last_was_own(&self) -> bool {
        self.recent < OWN
    }
}

#[inline(always)]
fn inside(e: &Extent, address: u64, bytes: u64, write: bool) -> bool {
    address >= e.start && address <= e.end && bytes <= e.end - address && (e.writable || !write)
}

/// Reads a dword that [`Cache::allows`] allowed.
///
/// # Safety
/// The four bytes at `address` are mapped.
#[inline(always)]
pub(super) unsafe fn read32(address: u64) -> u32 {
    if address & 3 == 0 {
        // SAFETY: mapped and aligned. Other waves may write it, hence the atomic load.
        unsafe { AtomicU32::from_ptr(address as *mut u32) }.load(Ordering::Relaxed)
    } else {
        // SAFETY: mapped. Unaligned accesses are not single-copy atomic on the device either.
        unsafe { (address as *const u32).read_unaligned() }
    }
}

/// Writes a dword that [`Cache::allows`] allowed.
///
/// # Safety
/// The four bytes at `address` are mapped and writable.
#[inline(always)]
pub(super) unsafe fn write32(address: u64, value: u32) {
    if address & 3 == 0 {
        // SAFETY: mapped and aligned; see `read32`.
        unsafe { AtomicU32::from_ptr(address as *mut u32) }.store(value, Ordering::Relaxed);
    } else {
        // SAFETY: mapped.
        unsafe { (address as *mut u32).write_unaligned(value) };
    }
}

/// Reads 16 aligned bytes at once. (A processor with AVX reads them as one; an older one may read halves.)
///
/// # Safety
/// The bytes at `address` are mapped, and `address` is a multiple of 16.
#[inline(always)]
unsafe fn read128(address: u64) -> [u32; 4] {
    #[cfg(target_arch = "x86_64")]
    {
        let value: std::arch::x86_64::__m128i;
        // SAFETY: mapped and aligned. The compiler may split a vector access of its own, but not this instruction.
        unsafe {
            std::arch::asm!(
                "movdqa {value}, xmmword ptr [{address}]",
                address = in(reg) address,
                value = out(xmm_reg) value,
                options(nostack, preserves_flags, readonly),
            );
            std::mem::transmute(value)
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: mapped and aligned.
        let [low, high] = unsafe { [read64(address), read64(address + 8)] };
        [
            low as u32,
            (low >> 32) as u32,
            high as u32,
            (high >> 32) as u32,
        ]
    }
}

/// Writes 16 aligned bytes at once, see [`read128`].
///
/// # Safety
/// The bytes at `address` are mapped and writable, and `address` is a multiple of 16.
#[inline(always)]
unsafe fn write128(address: u64, value: [u32; 4]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: mapped, writable and aligned; any 16 bytes are a vector.
    unsafe {
        let value: std::arch::x86_64::__m128i = std::mem::transmute(value);
        std::arch::asm!(
            "movdqa xmmword ptr [{address}], {value}",
            address = in(reg) address,
            value = in(xmm_reg) value,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let wide = |n: usize| u64::from(value[n]) | u64::from(value[n + 1]) << 32;
        // SAFETY: mapped, writable and aligned.
        unsafe {
            write64(address, wide(0));
            write64(address + 8, wide(2));
        }
    }
}

/// Reads 8 aligned bytes at once.
///
/// # Safety
/// The bytes at `address` are mapped, and `address` is a multiple of 8.
#[inline(always)]
unsafe fn read64(address: u64) -> u64 {
    // SAFETY: mapped and aligned.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }.load(Ordering::Relaxed)
}

/// Writes 8 aligned bytes at once.
///
/// # Safety
/// The bytes at `address` are mapped and writable, and `address` is a multiple of 8.
#[inline(always)]
unsafe fn write64(address: u64, value: u64) {
    // SAFETY: mapped, writable and aligned.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(value, Ordering::Relaxed);
}

/// Reads dwords that [`Cache::allows`] allowed, as many at once as the alignment lets.
///
/// # Safety
/// The bytes at `address` are mapped.
#[inline(always)]
pub(super) unsafe fn read(address: u64, to: &mut [u32]) {
    let mut n = 0;
    while n < to.len() {
        let (at, left) = (address + 4 * n as u64, to.len() - n);
        // SAFETY: mapped; the alignment is tested.
        unsafe {
            if left >= 4 && at & 15 == 0 {
                to[n..n + 4].copy_from_slice(&read128(at));
                n += 4;
            } else if left >= 2 && at & 7 == 0 {
                let value = read64(at);
                to[n] = value as u32;
                to[n + 1] = (value >> 32) as u32;
                n += 2;
            } else {
                to[n] = read32(at);
                n += 1;
            }
        }
    }
}

/// Writes dwords that [`Cache::allows`] allowed, as many at once as the alignment lets.
///
/// # Safety
/// The bytes at `address` are mapped and writable.
#[inline(always)]
unsafe fn write(address: u64, from: &[u32]) {
    let mut n = 0;
    while n < from.len() {
        let (at, rest) = (address + 4 * n as u64, &from[n..]);
        // SAFETY: mapped and writable; the alignment is tested.
        unsafe {
            if at & 15 == 0
                && let Some(four) = rest.first_chunk::<4>()
            {
                write128(at, *four);
                n += 4;
            } else if at & 7 == 0
                && let [low, high, ..] = *rest
            {
                write64(at, u64::from(low) | u64::from(high) << 32);
                n += 2;
            } else {
                write32(at, rest[0]);
                n += 1;
            }
        }
    }
}

/// Whether the lanes' addresses follow each other `step` bytes apart.
#[inline(always)]
fn consecutive(addresses: &Lanes64, step: u64) -> bool {
    let first = addresses[0];
    let mut different = 0;
    for (l, a) in addresses.iter().enumerate() {
        different |= a ^ first.wrapping_add(l as u64 * step);
    }
    different == 0
}

/// Reports to the dispatch's probe, if any, what the lanes of `mask` are about to access.
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
        // SAFETY: 256 bytes were allowed, and a register has 256.
        unsafe { read(addresses[0], x.vgpr_mut(i.dst)) };
    } else {
        for l in 0..64 {
            if mask >> l & 1 == 0 {
                continue;
            }
            let address = addresses[l];
            if !x.mem.allows(address, bytes, false) {
                return x.memory_fault(i, addresses, mask, bytes as u32, Access::Read);
            }
            let mut values = [0; N];
            // SAFETY: just allowed.
            unsafe { read(address, &mut values) };
            for (n, value) in values.into_iter().enumerate() {
                x.vgpr_mut(i.dst + n as u16)[l] = value;
            }
        }
    }
    if !x.mem.last_was_own() {
        x.stats.bytes_loaded += bytes * u64::from(mask.count_ones());
    }
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
        // SAFETY: 256 bytes were allowed, and a register has 256.
        unsafe { write(addresses[0], x.vgpr(i.src[1])) };
    } else {
        for l in 0..64 {
            if mask >> l & 1 == 0 {
                continue;
            }
            let address = addresses[l];
            if !x.mem.allows(address, bytes, true) {
                return x.memory_fault(i, addresses, mask, bytes as u32, Access::Write);
            }
            let values: [u32; N] = std::array::from_fn(|n| x.vgpr(i.src[1] + n as u16)[l]);
            // SAFETY: just allowed.
            unsafe { write(address, &values) };
        }
    }
    if !x.mem.last_was_own() {
        x.stores_unordered = true;
        x.stats.bytes_stored += bytes * u64::from(mask.count_ones());
    }
}

/// How a load of less than a dword fills the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// Zero-extended.
    Zero,
    /// Sign-extended.
    Sign,
    /// Zero-extended to 16 bits, into the low half.
    LowZero,
    /// Sign-extended to 16 bits, into the low half.
    LowSign,
    /// Zero-extended to 16 bits, into the high half.
    HighZero,
    /// Sign-extended to 16 bits, into the high half.
    HighSign,
}

impl Fill {
    /// The register's new value from `bytes` bytes loaded.
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
pub(super) fn load_small<const BYTES: usize>(
    x: &mut Exec<'_>,
    i: &Inst,
    addresses: &Lanes64,
    mask: u64,
    fill: Fill,
) {
    watch(x, Operation::Load, BYTES, addresses, mask);
    for l in 0..64 {
        if mask >> l & 1 == 0 {
            continue;
        }
        let address = addresses[l];
        if !x.mem.allows(address, BYTES as u64, false) {
            return x.memory_fault(i, addresses, mask, BYTES as u32, Access::Read);
        }
        // SAFETY: just allowed.
        let value = u32::from(unsafe {
            if BYTES == 1 {
                u16::from(AtomicU8::from_ptr(address as *mut u8).load(Ordering::Relaxed))
            } else if address & 1 == 0 {
                AtomicU16::from_ptr(address as *mut u16).load(Ordering::Relaxed)
            } else {
                (address as *const u16).read_unaligned()
            }
        });
        let register = x.vgpr_mut(i.dst);
        register[l] = fill.apply(register[l], value, BYTES);
    }
    if !x.mem.last_was_own() {
        x.stats.bytes_loaded += BYTES as u64 * u64::from(mask.count_ones());
    }
}

/// Stores one or two bytes of each lane of `mask`, from bit `shift` of the register on.
pub(super) fn store_small<const BYTES: usize>(
    x: &mut Exec<'_>,
    i: &Inst,
    addresses: &Lanes64,
    mask: u64,
    shift: u32,
) {
    watch(x, Operation::Store, BYTES, addresses, mask);
    for l in 0..64 {
        if mask >> l & 1 == 0 {
            continue;
        }
        let address = addresses[l];
        if !x.mem.allows(address, BYTES as u64, true) {
            return x.memory_fault(i, addresses, mask, BYTES as u32, Access::Write);
        }
        let value = x.vgpr(i.src[1])[l] >> shift;
        // SAFETY: just allowed.
        unsafe {
            if BYTES == 1 {
                AtomicU8::from_ptr(address as *mut u8).store(value as u8, Ordering::Relaxed);
            } else if address & 1 == 0 {
                AtomicU16::from_ptr(address as *mut u16).store(value as u16, Ordering::Relaxed);
            } else {
                (address as *mut u16).write_unaligned(value as u16);
            }
        }
    }
    if !x.mem.last_was_own() {
        x.stores_unordered = true;
        x.stats.bytes_stored += BYTES as u64 * u64::from(mask.count_ones());
    }
}

/// The operation of a load to LDS: gfx90a has a bit for it in the encodings of other loads, gfx942 opcodes of their own for
/// what has no buffer descriptor.
pub(super) fn to_lds<A: Addressing>(opcode: u32) -> Option<(Class, Handler)> {
    let load: Handler = |x, i| {
        let (addresses, mask) = A::addresses(x, i, 0);
        load_to_lds(x, i, &addresses, mask);
    };
    matches!(opcode, 0x10..=0x14 | 0x26..=0x2a).then_some((Class::VmemRead, load))
}

/// Loads to LDS, a dword for each lane behind the address in M0.
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
        // SAFETY: just allowed.
        let value = unsafe {
            match bytes {
                4 => read32(address),
                2 => u32::from((address as *const u16).read_unaligned()),
                _ => u32::from(AtomicU8::from_ptr(address as *mut u8).load(Ordering::Relaxed)),
            }
        };
        let value = match bytes {
            1 if signed => value as i8 as u32,
            2 if signed => value as i16 as u32,
            _ => value,
        };
        let at = first.wrapping_add(4 * l as u32) as usize;
        // What is outside of LDS is not written.
        if let Some(to) = x.lds.get_mut(at..at.saturating_add(4)) {
            to.copy_from_slice(&value.to_le_bytes());
        }
    }
    if !x.mem.last_was_own() {
        x.stats.bytes_loaded += bytes as u64 * u64::from(mask.count_ones());
    }
}

/// How the addresses of an instruction's lanes are computed.
pub(super) trait Addressing {
    /// Host addresses of the `dword`-th dword of each lane's transfer, and the lanes that take part.
    fn addresses(x: &mut Exec<'_>, i: &Inst, dword: u64) -> (Lanes64, u64);

    /// Whether the dwords of a lane follow each other (not so in swizzled memory).
    fn contiguous(x: &Exec<'_>, i: &Inst) -> bool;
}

/// Runs a transfer of `N` dwords at once, or dword by dword where memory is swizzled.
#[inline(always)]
fn whole<A: Addressing, const N: usize>(
    x: &mut Exec<'_>,
    i: &Inst,
    all: impl Fn(&mut Exec<'_>, &Inst, &Lanes64, u64),
    one: impl Fn(&mut Exec<'_>, &Inst, &Lanes64, u64),
) {
    if N == 1 || A::contiguous(x, i) {
        let (addresses, mask) = A::addresses(x, i, 0);
        all(x, i, &addresses, mask);
        return;
    }
    // A load may overwrite its own address register, so all addresses come first.
    let parts: [(Lanes64, u64); N] = std::array::from_fn(|n| A::addresses(x, i, n as u64));
    let mut i = *i;
    for (addresses, mask) in &parts {
        one(x, &i, addresses, *mask);
        i.dst += 1;
        i.src[1] += 1;
    }
}

#[inline(always)]
fn loads<A: Addressing, const N: usize>(x: &mut Exec<'_>, i: &Inst) {
    whole::<A, N>(x, i, load::<N>, load::<1>);
}

#[inline(always)]
fn stores<A: Addressing, const N: usize>(x: &mut Exec<'_>, i: &Inst) {
    whole::<A, N>(x, i, store::<N>, store::<1>);
}

/// Class and operation of the opcodes that MUBUF and FLAT share.
pub(super) fn handler<A: Addressing>(opcode: u32) -> Option<(Class, Handler)> {
    let (class, handler): (Class, Handler) = match opcode {
        0x10 | 0x11 | 0x20..=0x23 => (Class::VmemRead, |x, i| {
            let (addresses, mask) = A::addresses(x, i, 0);
            load_small::<1>(x, i, &addresses, mask, fill_of(i.opcode));
        }),
        0x12 | 0x13 | 0x24 | 0x25 => (Class::VmemRead, |x, i| {
            let (addresses, mask) = A::addresses(x, i, 0);
            load_small::<2>(x, i, &addresses, mask, fill_of(i.opcode));
        }),
        0x14 => (Class::VmemRead, loads::<A, 1>),
        0x15 => (Class::VmemRead, loads::<A, 2>),
        0x16 => (Class::VmemRead, loads::<A, 3>),
        0x17 => (Class::VmemRead, loads::<A, 4>),
        0x18 | 0x19 => (Class::VmemWrite, |x, i| {
            let (addresses, mask) = A::addresses(x, i, 0);
            store_small::<1>(
                x,
                i,
                &addresses,
                mask,
                if i.opcode == 0x19 { 16 } else { 0 },
            );
        }),
        0x1a | 0x1b => (Class::VmemWrite, |x, i| {
            let (addresses, mask) = A::addresses(x, i, 0);
            store_small::<2>(
                x,
                i,
                &addresses,
                mask,
                if i.opcode == 0x1b { 16 } else { 0 },
            );
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

/// Puts a lane's scratch offset where the swizzle of scratch memory has it: dwords of the lanes side by side. The offset
/// may be negative, as two's complement; whether the kernel may access the address is checked where it is used.
#[inline(always)]
pub(super) fn swizzle(offset: u64, lane: u64) -> u64 {
    (offset & !3)
        .wrapping_mul(64)
        .wrapping_add(lane * 4 + (offset & 3))
}
