//! Shadow memory: the last accesses to each unit of four bytes.

use std::collections::HashMap;

use super::clocks::WaveMoment;

/// An access in the past.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Access {
    /// Wave of the access, and its time on the wave's clock.
    pub(super) stamp: WaveMoment,
    /// Offset of the instruction in the code object, in bytes.
    pub(super) offset: u32,
}

/// An earlier access with which the current one races.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conflict {
    /// The earlier access.
    pub(super) access: Access,
    /// Whether the earlier access writes.
    pub(super) writes: bool,
    /// Whether the earlier access is an atomic, or a load that bypasses the first-level cache.
    pub(super) atomic: bool,
}

/// An access to a unit, with the bytes of the unit that it touched.
#[derive(Debug, Clone, Copy, Default)]
struct UnitAccess {
    access: Access,
    bytes: u8,
    atomic: bool,
}

impl UnitAccess {
    fn touches(&self, bytes: u8) -> bool {
        self.bytes & bytes != 0
    }
}

/// Accesses to a unit: the last write, and the last reads of two waves.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    write: UnitAccess,
    reads: [UnitAccess; 2],
}

impl Cell {
    /// Stores an access. Returns the earlier access that it races with.
    fn access(
        &mut self,
        bytes: u8,
        access: Access,
        (reads, writes, atomic): (bool, bool, bool),
        ordered: &impl Fn(WaveMoment) -> bool,
    ) -> Option<Conflict> {
        let free = |part: &UnitAccess| {
            !part.touches(bytes) || (atomic && part.atomic) || ordered(part.access.stamp)
        };
        let mut conflict = None;
        let with = |part: &UnitAccess, writes| Conflict {
            access: part.access,
            writes,
            atomic: part.atomic,
        };
        if !free(&self.write) {
            conflict = Some(with(&self.write, true));
        } else if writes {
            let read = self.reads.iter().find(|part| !free(part));
            conflict = read.map(|part| with(part, false));
        }
        let part = UnitAccess {
            access,
            bytes,
            atomic,
        };
        if writes {
            self.write = part;
            self.reads = Default::default();
        } else if reads {
            let same = |known: &&mut UnitAccess| {
                known.access.stamp.time == 0 || known.access.stamp.wave == access.stamp.wave
            };
            match self.reads.iter_mut().find(same) {
                Some(known) if known.access.stamp.wave == access.stamp.wave => {
                    let bytes = known.bytes | bytes;
                    *known = UnitAccess { bytes, ..part };
                }
                Some(known) => *known = part,
                None => self.reads[1] = part,
            }
        }
        conflict
    }
}

/// Splits an access into units: index of the unit and mask of its bytes.
fn units(address: u64, bytes: u32) -> impl Iterator<Item = (u64, u8)> {
    let end = address.saturating_add(bytes.into());
    (address / 4..end.div_ceil(4)).map(move |unit| {
        let first = address.saturating_sub(unit * 4).min(4);
        let last = (end - unit * 4).min(4);
        (unit, ((1u8 << last) - 1) & !((1u8 << first) - 1))
    })
}

/// Number of units of a page of shadow memory.
const PAGE: u64 = 1024;

/// The accesses of a dispatch to global memory.
#[derive(Debug, Default)]
pub(super) struct Global {
    pages: HashMap<u64, Box<[Cell]>>,
}

impl Global {
    /// Stores an access. Returns the earlier access that it races with.
    pub(super) fn access(
        &mut self,
        address: u64,
        bytes: u32,
        access: Access,
        how: (bool, bool, bool),
        ordered: impl Fn(WaveMoment) -> bool,
    ) -> Option<Conflict> {
        let mut conflict = None;
        for (unit, mask) in units(address, bytes) {
            let page = self
                .pages
                .entry(unit / PAGE)
                .or_insert_with(|| vec![Cell::default(); PAGE as usize].into());
            let found = page[(unit % PAGE) as usize].access(mask, access, how, &ordered);
            conflict = conflict.or(found);
        }
        conflict
    }
}

/// Accesses of a workgroup to its LDS, and the bytes that it has written.
#[derive(Debug, Default)]
pub(super) struct Lds {
    cells: Vec<Cell>,
    written: Vec<u8>,
}

impl Lds {
    fn reach(&mut self, units: usize) {
        if self.cells.len() < units {
            self.cells.resize(units, Cell::default());
            self.written.resize(units, 0);
        }
    }

    /// Whether all of `bytes` bytes at an offset have been written.
    pub(super) fn is_written(&self, address: u64, bytes: u32) -> bool {
        units(address, bytes).all(|(unit, mask)| {
            self.written
                .get(unit as usize)
                .is_some_and(|written| written & mask == mask)
        })
    }

    /// Notes that `bytes` bytes at an offset are written.
    pub(super) fn wrote(&mut self, address: u64, bytes: u32) {
        for (unit, mask) in units(address, bytes) {
            self.reach(unit as usize + 1);
            self.written[unit as usize] |= mask;
        }
    }

    /// Stores an access. Returns the earlier access that it races with.
    pub(super) fn access(
        &mut self,
        address: u64,
        bytes: u32,
        access: Access,
        how: (bool, bool, bool),
        ordered: impl Fn(WaveMoment) -> bool,
    ) -> Option<Conflict> {
        let mut conflict = None;
        for (unit, mask) in units(address, bytes) {
            self.reach(unit as usize + 1);
            let found = self.cells[unit as usize].access(mask, access, how, &ordered);
            conflict = conflict.or(found);
        }
        conflict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shadow_units_split_accesses_at_four_bytes() {
        assert_eq!(units(4, 4).collect::<Vec<_>>(), [(1, 15)]);
        assert_eq!(units(6, 1).collect::<Vec<_>>(), [(1, 4)]);
        assert_eq!(units(6, 4).collect::<Vec<_>>(), [(1, 12), (2, 3)]);
        assert_eq!(units(0, 16).count(), 4);
    }
}
