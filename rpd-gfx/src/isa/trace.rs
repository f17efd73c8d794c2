//! Watching a dispatch instruction by instruction.
//!
//! A watched dispatch runs on one thread, so that the order of a [`Probe`]'s events is the same every time.
//! In a dispatch that is not watched the instruction loop has no trace of this, and memory instructions have
//! one test each.

use super::kind::Operation;
use super::lanes::Lanes64;
use super::{Extent, Kind};

/// A memory that vector instructions reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Allocated device memory.
    Global,
    /// The workgroup's scratch; addresses count from its first wave's.
    Scratch,
    /// The workgroup's LDS; addresses are offsets.
    Lds,
}

/// The accesses of one instruction's lanes to one memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The address space.
    pub space: Space,
    /// Load, store or atomic.
    pub operation: Operation,
    /// Bytes of each lane.
    pub bytes: u32,
    /// Lanes that take part.
    pub lanes: u64,
    /// Address of each lane.
    pub addresses: Lanes64,
}

/// An instruction that a wave executed.
#[derive(Debug)]
pub struct Step<'a> {
    /// Index of the workgroup.
    pub group: u64,
    /// The wave's number in it.
    pub wave: usize,
    /// Address of the instruction, counted from the first of its code object.
    pub offset: u64,
    /// Bytes of the instruction.
    pub length: u64,
    /// The kind of the instruction.
    pub kind: Kind,
    /// Lanes that were active when it began.
    pub lanes: u32,
    /// The mask of these lanes.
    pub exec: u64,
    /// Offset of the next instruction, in the units of `offset`.
    pub next: u64,
    /// Memory accesses of the instruction, if it is a vector or LDS instruction.
    pub transfers: &'a [Transfer],
    /// Ranges that a scalar load read: address and bytes.
    pub scalar: &'a [(u64, u64)],
}

/// A workgroup as it starts.
#[derive(Debug, Clone, Copy)]
pub struct Workgroup {
    /// Number in the dispatch, x first.
    pub id: u64,
    /// Work-items.
    pub items: u32,
}

/// A receiver of events while a dispatch executes.
pub trait Probe {
    /// Whether a workgroup that is about to start is followed; there are no events of one that is not.
    fn follows(&mut self, _group: &Workgroup) -> bool {
        true
    }
    /// Whether the next instructions of a wave, which has executed this many, are reported, and how many it executes
    /// before the next call of this function.
    fn window(&mut self, _group: u64, _wave: usize, _executed: u64) -> (bool, u64) {
        (true, u64::MAX)
    }
    /// A workgroup starts.
    fn started(&mut self, group: &Workgroup);
    /// A wave executed an instruction.
    fn executed(&mut self, step: &Step<'_>);
    /// A wave reached a barrier: the barrier's offset, counted as that of steps is, and the wave's lanes.
    fn waits(&mut self, _group: u64, _wave: usize, _offset: u64, _exec: u64) {}
    /// All waves of a workgroup that have not ended reached a barrier and go on.
    fn released(&mut self, group: u64);
    /// A wave of a workgroup ended, having executed this many instructions.
    fn retired(&mut self, _group: u64, _wave: usize, _executed: u64) {}
    /// A workgroup ended.
    fn ended(&mut self, group: u64);
}

/// A watched dispatch's state between instructions.
pub(super) struct Trace<'d> {
    /// The receiver of the events.
    pub(super) probe: &'d mut dyn Probe,
    /// The workgroup whose turn it is.
    pub(super) group: u64,
    /// The wave whose turn it is.
    pub(super) wave: usize,
    exec: u64,
    offset: u64,
    transfers: Vec<Transfer>,
    scalar: Vec<(u64, u64)>,
}

impl<'d> Trace<'d> {
    /// Creates the state before the first instruction.
    pub(super) fn new(probe: &'d mut dyn Probe) -> Self {
        Self {
            probe,
            group: 0,
            wave: 0,
            exec: 0,
            offset: 0,
            transfers: Vec::new(),
            scalar: Vec::new(),
        }
    }

    /// Reports the start of an instruction.
    pub(super) fn begin(&mut self, offset: u64, exec: u64) {
        self.offset = offset;
        self.exec = exec;
        self.transfers.clear();
        self.scalar.clear();
    }

    /// Reports the end of an instruction, after which the wave continues at `next`.
    pub(super) fn end(&mut self, kind: Kind, length: u64, next: u64) {
        self.probe.executed(&Step {
            group: self.group,
            wave: self.wave,
            offset: self.offset,
            length,
            kind,
            lanes: self.exec.count_ones(),
            exec: self.exec,
            next,
            transfers: &self.transfers,
            scalar: &self.scalar,
        });
    }

    /// Adds a read of memory through the scalar cache.
    pub(super) fn scalar(&mut self, address: u64, bytes: u64) {
        self.scalar.push((address, bytes));
    }

    /// Adds accesses of the lanes to LDS.
    pub(super) fn lds(
        &mut self,
        operation: Operation,
        bytes: u32,
        lanes: u64,
        address: impl Fn(usize) -> u32,
    ) {
        self.transfers.push(Transfer {
            space: Space::Lds,
            operation,
            bytes,
            lanes,
            addresses: std::array::from_fn(|l| u64::from(address(l))),
        });
    }

    /// Adds accesses of the lanes to host addresses; `own` is the workgroup's scratch and LDS.
    #[cold]
    pub(super) fn memory(
        &mut self,
        operation: Operation,
        bytes: u32,
        lanes: u64,
        addresses: &Lanes64,
        own: &[Extent],
    ) {
        let mut rest = lanes;
        for (extent, space) in own.iter().zip([Space::Scratch, Space::Lds]) {
            let here = inside(extent, addresses, rest);
            if here != 0 {
                rest &= !here;
                self.transfers.push(Transfer {
                    space,
                    operation,
                    bytes,
                    lanes: here,
                    addresses: addresses.map(|a| a.wrapping_sub(extent.start)),
                });
            }
        }
        if rest != 0 {
            self.transfers.push(Transfer {
                space: Space::Global,
                operation,
                bytes,
                lanes: rest,
                addresses: *addresses,
            });
        }
    }
}

/// The subset of `lanes` whose addresses are in an extent.
fn inside(extent: &Extent, addresses: &Lanes64, lanes: u64) -> u64 {
    // Most instructions access neither scratch nor LDS: without a test of each lane.
    let lowest = addresses.iter().fold(u64::MAX, |low, &a| low.min(a));
    let highest = addresses.iter().fold(0, |high, &a| high.max(a));
    if highest < extent.start || lowest >= extent.end {
        return 0;
    }
    (0..64)
        .filter(|l| lanes >> l & 1 != 0)
        .filter(|&l| (extent.start..extent.end).contains(&addresses[l]))
        .fold(0, |mask, l| mask | 1 << l)
}
