//! Finds errors of kernels while they execute: data races in LDS and global memory, reads of memory that was never
//! written, accesses outside of allocations, misaligned atomics, and barriers that some lanes of a wave skip.
//!
//! A [`Checker`] observes one dispatch. Two accesses of different waves race if they touch the same byte, at least
//! one writes, they are not both atomic, and neither happens before the other. Barriers of the workgroup or of the
//! grid order accesses, and so do atomics: if a wave's atomic on an address is followed by another wave's atomic
//! there, what the first wave had performed before (`s_waitcnt` after its accesses, as a release does) happens before
//! what the second wave does after it invalidated its first-level cache (as an acquire does), or with accesses that
//! bypass that cache. Within a workgroup neither wait nor invalidation is needed. Loads that bypass the first-level
//! cache count as atomic, because loops that wait for a flag use them. The lanes of a wave execute together and do
//! not race with each other.

mod clocks;
mod place;
mod shadow;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use crate::isa::{Kind, Operation, Probe, Space, Step, Transfer, Workgroup, lanes};
use clocks::Clocks;
pub use place::Place;
use shadow::{Access, Global, Lds};

/// Knowledge about global memory, over all dispatches.
pub trait Heap {
    /// Location of an address relative to allocations.
    fn place(&self, address: u64) -> Place;
    /// Whether all of `bytes` bytes at an address have been written.
    fn is_written(&self, address: u64, bytes: u32) -> bool;
    /// Notes that `bytes` bytes at an address are written.
    fn wrote(&self, address: u64, bytes: u32);
}

/// Kinds of errors that the checker finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// Two accesses to global memory are not ordered, and one writes.
    GlobalRace,
    /// Two accesses to LDS are not ordered, and one writes.
    LdsRace,
    /// Global memory is read that was never written.
    UninitialisedRead,
    /// LDS is read that no wave of the workgroup has written.
    UninitialisedLds,
    /// An access reaches beyond the LDS of the workgroup.
    LdsOutOfBounds,
    /// An access is outside of all allocations.
    OutOfBounds,
    /// An access is to memory that was freed.
    UseAfterFree,
    /// The address of an atomic is not a multiple of its size.
    MisalignedAtomic,
    /// A wave executes a barrier that some of its lanes have skipped.
    BarrierDivergence,
}

impl FindingKind {
    /// The kind in words, for reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::GlobalRace => "data race in global memory",
            Self::LdsRace => "data race in LDS",
            Self::UninitialisedRead => "read of uninitialised global memory",
            Self::UninitialisedLds => "read of uninitialised LDS",
            Self::LdsOutOfBounds => "access outside of LDS",
            Self::OutOfBounds => "access outside of allocations",
            Self::UseAfterFree => "access to freed memory",
            Self::MisalignedAtomic => "misaligned atomic",
            Self::BarrierDivergence => "barrier in divergent code",
        }
    }
}

/// The other access of a race; for a skipped barrier, the instruction at which the lanes were active that skipped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    /// Number of the workgroup in the dispatch.
    pub group: u64,
    /// Number of the wave in its workgroup.
    pub wave: u32,
    /// Offset of the instruction in the code object, in bytes.
    pub offset: u64,
    /// Whether the instruction writes.
    pub writes: bool,
}

/// An error of a kernel, with details of its first occurrence.
#[derive(Debug, Clone, Copy)]
pub struct Finding {
    /// Kind of error.
    pub kind: FindingKind,
    /// Number of the workgroup in the dispatch.
    pub group: u64,
    /// Number of the wave in its workgroup.
    pub wave: u32,
    /// Lanes of the wave that are concerned, one bit for each; 0 for a scalar load.
    pub lanes: u64,
    /// Offset of the instruction in the code object, in bytes.
    pub offset: u64,
    /// Address of the first lane that is concerned; for LDS, offset in the LDS of the workgroup.
    pub address: u64,
    /// Size of the access of each lane, in bytes.
    pub bytes: u32,
    /// Whether the instruction writes.
    pub writes: bool,
    /// The other instruction, for races and skipped barriers.
    pub other: Option<Other>,
    /// Location of the address, for global memory; `None` for LDS.
    pub place: Option<Place>,
    /// Number of occurrences in the dispatch.
    pub times: u64,
}

/// A wave in execution.
struct Wave {
    /// Number of the wave in the dispatch's clocks.
    id: u32,
    /// The last barrier of the wave: its offset, and the lanes that were active. `None` once other lanes were active
    /// after it.
    barrier: Option<(u64, u64)>,
    /// Whether the wave's last instruction waited for other workgroups.
    waited: bool,
}

/// A workgroup in execution.
struct Group {
    waves: Vec<Wave>,
    lds: Lds,
}

/// Checks one dispatch.
pub struct Checker<'h> {
    heap: &'h dyn Heap,
    wave_size: u32,
    groups: HashMap<u64, Group>,
    /// Workgroup and wave, by the wave's number in `clocks`.
    names: Vec<(u64, u32)>,
    clocks: Clocks,
    global: Global,
    findings: Vec<Finding>,
    known: HashMap<(FindingKind, u64, Option<u64>), usize>,
    /// Cached result of the last lookup: the allocation's address and size, and whether its written bytes are
    /// tracked.
    last: Option<(u64, u64, bool)>,
    /// Unordered plain stores to addresses that a wave has read past its cache, by address and number of that wave.
    /// They are races, unless the wave reads the address again, as a wave does that waits for the store.
    looks: BTreeMap<(u64, u32), Finding>,
    /// Size of the LDS of a workgroup in bytes.
    lds_bytes: u64,
}

/// Greatest number of entries of [`Checker::looks`]. Further ones are reported at once.
const MOST_LOOKS: usize = 1 << 16;

/// Greatest number of different findings of a dispatch. Further ones are dropped.
const MOST: usize = 1000;

impl<'h> Checker<'h> {
    /// A checker for a dispatch with waves of `wave_size` lanes and `lds_bytes` of LDS for each workgroup.
    pub fn new(heap: &'h dyn Heap, wave_size: u32, lds_bytes: u32) -> Self {
        Self {
            heap,
            wave_size: wave_size.max(1),
            groups: HashMap::new(),
            names: Vec::new(),
            clocks: Clocks::default(),
            global: Global::default(),
            findings: Vec::new(),
            known: HashMap::new(),
            last: None,
            looks: BTreeMap::new(),
            lds_bytes: lds_bytes.into(),
        }
    }

    /// Findings, in the order of their first occurrence.
    pub fn findings(mut self) -> Vec<Finding> {
        for race in std::mem::take(&mut self.looks).into_values() {
            self.report(race);
        }
        self.findings
    }

    fn report(&mut self, finding: Finding) {
        // A mistake in a loop or in every wave is one finding with many occurrences.
        let key = (
            finding.kind,
            finding.offset,
            finding.other.map(|o| o.offset),
        );
        if let Some(&n) = self.known.get(&key) {
            let known = &mut self.findings[n];
            known.times += 1;
            if (known.group, known.wave) == (finding.group, finding.wave) {
                known.lanes |= finding.lanes;
            }
        } else if self.findings.len() < MOST {
            self.known.insert(key, self.findings.len());
            self.findings.push(finding);
        }
    }

    fn other_access(&self, access: &Access, writes: bool) -> Other {
        let (group, wave) = self.names[access.stamp.wave as usize];
        Other {
            group,
            wave,
            offset: access.offset.into(),
            writes,
        }
    }

    /// Whether it is known which bytes have been written in the allocation that contains all bytes of a lane's access.
    /// The error is the access's place when no allocation does.
    fn place(&mut self, address: u64, bytes: u32) -> Result<bool, Place> {
        let inside = |base: u64, size: u64| {
            address >= base && address.wrapping_add(bytes.into()) <= base.saturating_add(size)
        };
        // Nearly all accesses of an instruction are to one allocation, and a lookup takes a lock.
        if let Some((base, size, tracked)) = self.last
            && inside(base, size)
        {
            return Ok(tracked);
        }
        match self.heap.place(address) {
            Place::Inside {
                base,
                size,
                tracked,
            } if inside(base, size) => {
                self.last = Some((base, size, tracked));
                Ok(tracked)
            }
            Place::Inside { base, size, .. } => Err(Place::Outside {
                nearest: Some((base, size)),
            }),
            other => Err(other),
        }
    }

    fn global_access(&mut self, step: &Step<'_>, transfer: &Transfer, id: u32) {
        // Loads past the cache count as atomic, because loops that wait for a flag use them.
        let seen = AccessKind::from_operation(transfer.operation, step.kind);
        let AccessKind {
            reads,
            writes,
            atomic,
        } = seen;
        let finding = |kind, lane: usize| finding(kind, step, transfer, lane, writes);
        let places = if atomic {
            distinct(transfer)
        } else {
            Vec::new()
        };
        // What other waves published at these addresses happens before this access, whatever it does.
        for &address in &places {
            self.clocks.acquire(id, address);
        }
        for lane in lanes(transfer.lanes) {
            let (address, bytes) = (transfer.addresses[lane], transfer.bytes);
            let tracked = match self.place(address, bytes) {
                Ok(tracked) => tracked,
                Err(place) => {
                    let kind = match place {
                        Place::Freed { .. } => FindingKind::UseAfterFree,
                        _ => FindingKind::OutOfBounds,
                    };
                    self.report(Finding {
                        place: Some(place),
                        ..finding(kind, lane)
                    });
                    continue;
                }
            };
            // Misaligned atomics fault on the hardware; plain accesses may be unaligned.
            if atomic && writes && !address.is_multiple_of(bytes.max(1).into()) {
                self.report(finding(FindingKind::MisalignedAtomic, lane));
            }
            if reads && tracked && !self.heap.is_written(address, bytes) {
                let place = Some(self.heap.place(address));
                self.report(Finding {
                    place,
                    ..finding(FindingKind::UninitialisedRead, lane)
                });
                // Each byte is reported once. Values that are computed from it are not followed.
                self.heap.wrote(address, bytes);
            }
            let access = Access {
                stamp: self.clocks.stamp(id),
                offset: step.offset as u32,
            };
            let clocks = &self.clocks;
            let how = (reads, writes, atomic);
            let conflict = self.global.access(address, bytes, access, how, |before| {
                clocks.ordered(before, id, atomic)
            });
            // The wave has looked again, as one does that waits: what it saw before was no race.
            if atomic && !writes {
                self.looks.remove(&(address, id));
            }
            if let Some(before) = conflict {
                let race = || Finding {
                    other: Some(self.other_access(&before.access, before.writes)),
                    place: Some(self.heap.place(address)),
                    ..finding(FindingKind::GlobalRace, lane)
                };
                if atomic && !writes {
                    // The reader waited for a plain store to a flag: it continues after the store.
                    self.clocks.follow(id, before.access.stamp);
                // The store may be the one that the reader waits for: the race is reported only if the reader does not
                // look again.
                } else if before.atomic && !before.writes && self.looks.len() < MOST_LOOKS {
                    let reader = (address, before.access.stamp.wave);
                    let race = race();
                    self.looks.entry(reader).or_insert(race);
                } else {
                    let race = race();
                    self.report(race);
                }
            }
            if writes {
                // After the check, so that an instruction that loads and stores does not hide its own uninitialised
                // read.
                self.heap.wrote(address, bytes);
            }
        }
        // All lanes have accessed the memory by now: an instruction publishes as a whole.
        if atomic && writes {
            for &address in &places {
                self.clocks.release(id, address);
            }
            self.clocks.advance(id);
        }
    }

    fn lds_access(&mut self, step: &Step<'_>, transfer: &Transfer, id: u32) {
        /// Number of bits above which an LDS address has the number of its workgroup, when it stands among global
        /// addresses in the clocks.
        const GROUP_SHIFT: u32 = 20;
        let AccessKind {
            reads,
            writes,
            atomic,
        } = AccessKind::from_operation(transfer.operation, step.kind);
        let finding = |kind, lane: usize| finding(kind, step, transfer, lane, writes);
        let places = if atomic {
            distinct(transfer)
        } else {
            Vec::new()
        };
        // Complemented, so that no global address can be the same.
        let sync = |address: u64| !(step.group << GROUP_SHIFT | address);
        for &address in &places {
            self.clocks.acquire(id, sync(address));
        }
        // Reported later, because the workgroup is borrowed while its accesses are stored.
        let mut found: Vec<Finding> = Vec::new();
        for lane in lanes(transfer.lanes) {
            let (address, bytes) = (transfer.addresses[lane], transfer.bytes);
            if address + u64::from(bytes) > self.lds_bytes {
                found.push(finding(FindingKind::LdsOutOfBounds, lane));
                continue;
            }
            let access = Access {
                stamp: self.clocks.stamp(id),
                offset: step.offset as u32,
            };
            let clocks = &self.clocks;
            let Some(group) = self.groups.get_mut(&step.group) else {
                return;
            };
            if reads && !group.lds.is_written(address, bytes) {
                found.push(finding(FindingKind::UninitialisedLds, lane));
                // Each byte is reported once.
                group.lds.wrote(address, bytes);
            }
            let how = (reads, writes, atomic);
            let conflict = group.lds.access(address, bytes, access, how, |before| {
                clocks.ordered(before, id, atomic)
            });
            if writes {
                group.lds.wrote(address, bytes);
            }
            if let Some(before) = conflict {
                found.push(Finding {
                    other: Some(self.other_access(&before.access, before.writes)),
                    ..finding(FindingKind::LdsRace, lane)
                });
            }
        }
        for finding in found {
            self.report(finding);
        }
        if atomic {
            for &address in &places {
                self.clocks.release(id, sync(address));
            }
            self.clocks.advance(id);
        }
    }

    /// Notes that a wave arrives at a barrier of the grid, or continues after it.
    fn grid_barrier(&mut self, id: u32, arrives: bool) {
        /// Address that stands for all barriers of the grid in the clocks. No atomic can have it.
        const ADDRESS: u64 = u64::MAX;
        if arrives {
            // A wave at a barrier of the grid has waited for its accesses, as the device libraries do before it.
            self.clocks.wait(id, 0);
            self.clocks.release(id, ADDRESS);
            self.clocks.advance(id);
        } else {
            self.clocks.acquire(id, ADDRESS);
            self.clocks.invalidate(id);
        }
    }
}

/// The addresses of an access, each of them once.
fn distinct(transfer: &Transfer) -> Vec<u64> {
    let mut addresses: Vec<u64> = lanes(transfer.lanes)
        .map(|lane| transfer.addresses[lane])
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Properties of an access that decide whether it races.
struct AccessKind {
    reads: bool,
    writes: bool,
    /// Whether the access can order other accesses.
    atomic: bool,
}

impl AccessKind {
    fn from_operation(operation: Operation, kind: Kind) -> Self {
        let coherent = matches!(kind, Kind::Vmem(vmem) if vmem.coherent);
        match operation {
            Operation::Load => Self {
                reads: true,
                writes: false,
                atomic: coherent,
            },
            Operation::Store => Self {
                reads: false,
                writes: true,
                atomic: false,
            },
            Operation::Atomic(_) => Self {
                reads: true,
                writes: true,
                atomic: true,
            },
        }
    }
}

fn finding(
    kind: FindingKind,
    step: &Step<'_>,
    transfer: &Transfer,
    lane: usize,
    writes: bool,
) -> Finding {
    Finding {
        kind,
        group: step.group,
        wave: step.wave as u32,
        lanes: if step.scalar.is_empty() { 1 << lane } else { 0 },
        offset: step.offset,
        address: transfer.addresses[lane],
        bytes: transfer.bytes,
        writes,
        other: None,
        place: None,
        times: 1,
    }
}

impl Probe for Checker<'_> {
    fn started(&mut self, group: &Workgroup) {
        let waves = (0..group.items.div_ceil(self.wave_size)).map(|wave| {
            self.names.push((group.id, wave));
            Wave {
                id: self.clocks.add(group.id),
                barrier: None,
                waited: false,
            }
        });
        let group_state = Group {
            waves: waves.collect(),
            lds: Lds::default(),
        };
        self.groups.insert(group.id, group_state);
    }

    fn executed(&mut self, step: &Step<'_>) {
        let Some(wave) = self
            .groups
            .get_mut(&step.group)
            .and_then(|group| group.waves.get_mut(step.wave))
        else {
            return;
        };
        let id = wave.id;
        // The release of a barrier of the grid shows only when the wave goes on.
        let waited = std::mem::replace(&mut wave.waited, step.kind == Kind::Gds);
        // Lanes that were inactive at the barrier run now: they have skipped it.
        if let Some((offset, lanes)) = wave.barrier
            && step.exec & !lanes != 0
        {
            wave.barrier = None;
            let missing = step.exec & !lanes;
            self.report(Finding {
                kind: FindingKind::BarrierDivergence,
                group: step.group,
                wave: step.wave as u32,
                lanes,
                offset,
                address: 0,
                bytes: 0,
                writes: false,
                other: Some(Other {
                    group: step.group,
                    wave: step.wave as u32,
                    offset: step.offset,
                    writes: false,
                }),
                place: None,
                times: u64::from(missing != 0),
            });
        }
        if step.kind == Kind::Barrier
            && let Some(group) = self.groups.get_mut(&step.group)
        {
            group.waves[step.wave].barrier = Some((step.offset, step.exec));
        }
        if waited {
            self.grid_barrier(id, false);
        }
        match step.kind {
            Kind::Vmem(_) => self.clocks.issue(id),
            Kind::Wait(left, _) => self.clocks.wait(id, left as usize),
            Kind::Invalidate => self.clocks.invalidate(id),
            Kind::Gds => self.grid_barrier(id, true),
            _ => {}
        }
        // Scalar loads bypass the vector caches, but read the same memory.
        for &(address, bytes) in step.scalar {
            let transfer = Transfer {
                space: Space::Global,
                operation: Operation::Load,
                bytes: bytes as u32,
                lanes: 1,
                addresses: [address; 64],
            };
            self.global_access(step, &transfer, id);
        }
        for transfer in step.transfers {
            match transfer.space {
                Space::Global => self.global_access(step, transfer, id),
                Space::Lds => self.lds_access(step, transfer, id),
                // A lane's scratch memory is not shared.
                Space::Scratch => {}
            }
        }
    }

    fn released(&mut self, group: u64) {
        if let Some(group) = self.groups.get(&group) {
            let waves: Vec<u32> = group.waves.iter().map(|wave| wave.id).collect();
            self.clocks.synchronise(&waves);
        }
    }

    fn ended(&mut self, group: u64) {
        self.groups.remove(&group);
    }
}
