//! Transfers texels, and elements of formatted buffers, between memory and the registers of lanes.

use super::exec::Exec;
use super::image::{Texel, TexelFormat};
use super::inst::Inst;
use super::lanes::Lanes64;
use super::memory::{read_element, write_element};
use super::transfer::watch;
use super::{Access, Operation};

/// Loads the texels of the lanes of `mask`; 0 for other lanes. `None` after a fault.
pub(super) fn fetch(
    x: &mut Exec<'_>,
    i: &Inst,
    format: TexelFormat,
    addresses: &Lanes64,
    mask: u64,
) -> Option<[Texel; 64]> {
    let bytes = format.bytes();
    let mut texels = [[0; 4]; 64];
    if mask == 0 {
        return Some(texels);
    }
    watch(x, Operation::Load, bytes as usize, addresses, mask);
    for (l, texel) in texels.iter_mut().enumerate() {
        if mask >> l & 1 == 0 {
            continue;
        }
        if !x.mem.allows(addresses[l], bytes.into(), false) {
            x.memory_fault(i, addresses, mask, bytes, Access::Read);
            return None;
        }
        // SAFETY: the access was allowed.
        *texel = format.unpack(unsafe { read_element(addresses[l], bytes as usize) });
    }
    x.stats.bytes_loaded += u64::from(bytes) * u64::from(mask.count_ones());
    Some(texels)
}

/// Stores the texels that `texel` returns for the lanes of `mask`.
pub(super) fn store(
    x: &mut Exec<'_>,
    i: &Inst,
    format: TexelFormat,
    addresses: &Lanes64,
    mask: u64,
    texel: impl Fn(&Exec<'_>, usize) -> Texel,
) {
    let bytes = format.bytes();
    if mask == 0 {
        return;
    }
    watch(x, Operation::Store, bytes as usize, addresses, mask);
    for l in 0..64 {
        if mask >> l & 1 == 0 {
            continue;
        }
        if !x.mem.allows(addresses[l], bytes.into(), true) {
            return x.memory_fault(i, addresses, mask, bytes, Access::Write);
        }
        let raw = format.pack(texel(x, l));
        // SAFETY: the access was allowed.
        unsafe { write_element(addresses[l], bytes as usize, raw) };
    }
    x.stores_unordered = true;
    x.stats.bytes_stored += u64::from(bytes) * u64::from(mask.count_ones());
}

/// Distribution of the channels of a texel over registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registers {
    /// The channels that have a register, one bit for each.
    pub(super) channels: u32,
    /// Whether a register has two channels of 16 bits.
    pub(super) halves: bool,
    /// Whether the only channel is in the upper half of its register.
    pub(super) upper: bool,
}

impl Registers {
    /// Number of registers.
    pub(super) fn count(self) -> u32 {
        let channels = self.channels.count_ones();
        if self.halves {
            channels.div_ceil(2)
        } else {
            channels
        }
    }

    /// For each channel that has a register: number of the channel, number of the register, and the channel's lowest
    /// bit in it.
    fn places(self) -> impl Iterator<Item = (usize, u16, u32)> {
        (0..4)
            .filter(move |n| self.channels >> n & 1 != 0)
            .zip(u16::from(self.upper)..)
            .map(move |(channel, n)| {
                if self.halves {
                    (channel, n / 2, 16 * u32::from(n & 1))
                } else {
                    (channel, n, 0)
                }
            })
    }

    /// Writes the channels of a lane to the destination registers.
    pub(super) fn write(
        self,
        x: &mut Exec<'_>,
        i: &Inst,
        format: TexelFormat,
        lane: usize,
        channels: Texel,
    ) {
        for (channel, register, shift) in self.places() {
            let value = channels[channel];
            let to = &mut x.vgpr_mut(i.dst + register)[lane];
            *to = if self.halves {
                *to & !(0xffff << shift) | u32::from(format.narrow(value)) << shift
            } else {
                value
            };
        }
    }

    /// Reads the channels of a lane from the data registers; 0 for channels that have none.
    pub(super) fn read(self, x: &Exec<'_>, i: &Inst, format: TexelFormat, lane: usize) -> Texel {
        let mut channels = [0; 4];
        for (channel, register, shift) in self.places() {
            let value = x.vgpr(i.src[1] + register)[lane];
            channels[channel] = if self.halves {
                format.widen((value >> shift) as u16)
            } else {
                value
            };
        }
        channels
    }
}
