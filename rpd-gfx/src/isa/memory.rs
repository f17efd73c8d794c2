//! Accesses to global memory, and the check that they are allowed.
//!
//! The memory model: an aligned access of up to 16 bytes is a single access of the host, so no other wave or host
//! thread observes a part of it. The host (x86-64) does not reorder loads with loads or stores with stores, and its
//! caches are coherent. Every access therefore has the properties that the model ties to cache bits of an instruction
//! (glc, slc, scc) or to invalidations. The host may execute a load before an earlier store to another address. Code
//! that must prevent this waits for the store (`s_waitcnt vmcnt`) or writes the caches back (`buffer_wbl2`): these
//! are fences of the host, see [`order_stores`](super::exec::Exec::order_stores).

use super::lanes::Lanes64;
use super::{Extent, Memory};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Checks accesses. Caches the ranges that were found to be accessible.
pub(super) struct Cache<'d> {
    memory: &'d dyn Memory,
    /// Accessible ranges. The first ones are the workgroup's own memory: scratch, and LDS as flat addresses access it.
    extents: [Extent; 8],
    recent: usize,
    next: usize,
    /// Value of [`Memory::changes`] when the ranges of global memory were requested.
    changes: u64,
}

/// Number of extents of the workgroup's own memory.
const OWN: usize = 2;

const NOWHERE: Extent = Extent {
    start: 1,
    end: 0,
    writable: false,
    fine_grained: false,
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

    /// Replaces the scratch and LDS of the workgroup. If the workgroup is `fresh`, drops the other cached ranges when
    /// these may have changed.
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

    /// Whether `bytes` bytes at `address` may be accessed.
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
        let Some(extent) = self.memory.extent(address, write) else {
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

    /// Whether each lane of `mask` may access `bytes` bytes at its address. A quick test: false unless all these
    /// bytes are in the same extent.
    #[inline(always)]
    pub(super) fn allows_all(
        &mut self,
        addresses: &Lanes64,
        mask: u64,
        bytes: u64,
        write: bool,
    ) -> bool {
        let one = addresses[mask.trailing_zeros() as usize & 63];
        let (mut low, mut high) = (one, one);
        for (l, address) in addresses.iter().enumerate() {
            let address = if mask >> l & 1 != 0 { *address } else { one };
            low = low.min(address);
            high = high.max(address);
        }
        let Some(bytes) = bytes.checked_add(high - low) else {
            return false;
        };
        inside(&self.extents[self.recent & 7], low, bytes, write)
            || !self.ends_within(low, bytes) && self.search(low, bytes, write)
    }

    /// Whether a cached extent contains `address` and ends before `address + bytes`, so that the access is certainly
    /// not allowed.
    #[inline(never)]
    fn ends_within(&self, address: u64, bytes: u64) -> bool {
        (self.extents.iter())
            .any(|e| address >= e.start && address < e.end && bytes > e.end - address)
    }

    /// Scratch and LDS of the workgroup.
    pub(super) fn own(&self) -> &[Extent] {
        &self.extents[..OWN]
    }

    /// Whether the last allowed access was to fine-grained memory.
    pub(super) fn last_was_fine_grained(&self) -> bool {
        self.extents[self.recent & 7].fine_grained
    }

    /// Whether the last allowed access was to the workgroup's own memory, which the counts leave out.
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
        // SAFETY: mapped and aligned. The load is atomic because other waves may write the dword.
        unsafe { AtomicU32::from_ptr(address as *mut u32) }.load(Ordering::Relaxed)
    } else {
        // SAFETY: mapped. On the device, unaligned accesses are not single-copy atomic either.
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

/// Reads 16 aligned bytes in one access. (Processors with AVX guarantee this; older ones may read halves.)
///
/// # Safety
/// The bytes at `address` are mapped, and `address` is a multiple of 16.
#[inline(always)]
unsafe fn read128(address: u64) -> [u32; 4] {
    #[cfg(target_arch = "x86_64")]
    {
        let value: std::arch::x86_64::__m128i;
        // SAFETY: mapped and aligned. The compiler may split a vector access, but not this instruction.
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

/// Writes 16 aligned bytes in one access: see [`read128`].
///
/// # Safety
/// The bytes at `address` are mapped and writable, and `address` is a multiple of 16.
#[inline(always)]
unsafe fn write128(address: u64, value: [u32; 4]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: mapped, writable and aligned; all values of 16 bytes are valid vectors.
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

/// Reads 8 aligned bytes in one access.
///
/// # Safety
/// The bytes at `address` are mapped, and `address` is a multiple of 8.
#[inline(always)]
unsafe fn read64(address: u64) -> u64 {
    // SAFETY: mapped and aligned.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }.load(Ordering::Relaxed)
}

/// Writes 8 aligned bytes in one access.
///
/// # Safety
/// The bytes at `address` are mapped and writable, and `address` is a multiple of 8.
#[inline(always)]
unsafe fn write64(address: u64, value: u64) {
    // SAFETY: mapped, writable and aligned.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(value, Ordering::Relaxed);
}

/// Reads dwords that [`Cache::allows`] allowed, with the longest accesses that the alignment allows.
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

/// Writes dwords that [`Cache::allows`] allowed, with the longest accesses that the alignment allows.
///
/// # Safety
/// The bytes at `address` are mapped and writable.
#[inline(always)]
pub(super) unsafe fn write(address: u64, from: &[u32]) {
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

/// Reads one or two bytes that [`Cache::allows`] allowed.
///
/// # Safety
/// The `BYTES` bytes at `address` are mapped.
#[inline(always)]
pub(super) unsafe fn read_small<const BYTES: usize>(address: u64) -> u32 {
    // SAFETY: mapped; the alignment is tested.
    u32::from(unsafe {
        if BYTES == 1 {
            u16::from(AtomicU8::from_ptr(address as *mut u8).load(Ordering::Relaxed))
        } else if address & 1 == 0 {
            AtomicU16::from_ptr(address as *mut u16).load(Ordering::Relaxed)
        } else {
            (address as *const u16).read_unaligned()
        }
    })
}

/// Writes one or two bytes that [`Cache::allows`] allowed.
///
/// # Safety
/// The `BYTES` bytes at `address` are mapped and writable.
#[inline(always)]
pub(super) unsafe fn write_small<const BYTES: usize>(address: u64, value: u32) {
    // SAFETY: mapped and writable; the alignment is tested.
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

/// Reads a texel or an element of a formatted buffer: 1 or 2 bytes, or dwords.
///
/// # Safety
/// The bytes at `address` are mapped.
pub(super) unsafe fn read_element(address: u64, bytes: usize) -> [u32; 4] {
    let mut raw = [0; 4];
    // SAFETY: by contract.
    unsafe {
        match bytes {
            1 => raw[0] = read_small::<1>(address),
            2 => raw[0] = read_small::<2>(address),
            _ => read(address, &mut raw[..bytes / 4]),
        }
    }
    raw
}

/// Writes a texel or an element of a formatted buffer.
///
/// # Safety
/// The bytes at `address` are mapped and writable.
pub(super) unsafe fn write_element(address: u64, bytes: usize, raw: [u32; 4]) {
    // SAFETY: by contract.
    unsafe {
        match bytes {
            1 => write_small::<1>(address, raw[0]),
            2 => write_small::<2>(address, raw[0]),
            _ => write(address, &raw[..bytes / 4]),
        }
    }
}

/// Converts an offset in the scratch memory of a lane to the swizzled offset: the dwords of the lanes are
/// consecutive. The offset may be negative, in two's complement; the access is checked later.
#[inline(always)]
pub(super) fn swizzle(offset: u64, lane: u64) -> u64 {
    (offset & !3)
        .wrapping_mul(64)
        .wrapping_add(lane * 4 + (offset & 3))
}
