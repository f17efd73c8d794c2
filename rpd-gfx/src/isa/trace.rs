//! Observation of the execution of a dispatch, instruction by instruction.
//!
//! A dispatch that a single [`Probe`] observes runs on one thread, so that events have the same order in every run.
//! Without a probe, the loop over instructions contains no test for one, and memory instructions contain a single
//! test.

use super::kind::Operation;
use super::lanes::Lanes64;
use super::{Extent, Kind};

/// Memory that vector instructions access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Global memory.
    Global,
    /// Scratch memory of the workgroup. Addresses are offsets from the first wave's.
    Scratch,
    /// LDS of the workgroup. Addresses are offsets.
    Lds,
}

/// Accesses of the lanes of an instruction to one memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Memory that is accessed.
    pub space: Space,
    /// Load, store or atomic.
    pub operation: Operation,
    /// Number of bytes that each lane accesses.
    pub bytes: u32,
    /// Lanes that access the memory, one bit for each.
    pub lanes: u64,
    /// Address for each lane; 0 for other lanes.
    pub addresses: Lanes64,
}

/// An instruction that a wave executed.
#[derive(Debug)]
pub struct Step<'a> {
    /// Number of the workgroup in the dispatch.
    pub group: u64,
    /// Number of the wave in the workgroup.
    pub wave: usize,
    /// Offset of the instruction from the first one of the code object, in bytes.
    pub offset: u64,
    /// Length of the instruction in bytes.
    pub length: u64,
    /// The kind of the instruction.
    pub kind: Kind,
    /// Number of lanes that were active when the instruction began.
    pub lanes: u32,
    /// Mask of the lanes that were active when the instruction began.
    pub exec: u64,
    /// Offset of the next instruction that the wave executes, in bytes.
    pub next: u64,
    /// Memory accesses of a vector memory or LDS instruction.
    pub transfers: &'a [Transfer],
    /// Address and length of each range that a scalar load read.
    pub scalar: &'a [(u64, u64)],
}

/// A workgroup at its start.
#[derive(Debug, Clone, Copy)]
pub struct Workgroup {
    /// Number in the dispatch; x varies fastest.
    pub id: u64,
    /// Number of work-items.
    pub items: u32,
}

/// Receives the events of the execution of a dispatch.
pub trait Probe {
    /// Returns whether to observe a workgroup that is about to start. Workgroups that are not observed have no events.
    fn follows(&mut self, _group: &Workgroup) -> bool {
        true
    }
    /// Called for a wave that has executed this many instructions. Returns whether its next instructions are
    /// reported, and after how many to call again.
    fn window(&mut self, _group: u64, _wave: usize, _executed: u64) -> (bool, u64) {
        (true, u64::MAX)
    }
    /// Called when a workgroup starts.
    fn started(&mut self, group: &Workgroup);
    /// Called when a wave has executed an instruction.
    fn executed(&mut self, step: &Step<'_>);
    /// Called when a wave reaches a barrier. `offset` is that of the barrier, `exec` the active lanes.
    fn waits(&mut self, _group: u64, _wave: usize, _offset: u64, _exec: u64) {}
    /// Called when all waves of a workgroup that have not ended have reached the barrier, and continue.
    fn released(&mut self, group: u64);
    /// Called when a wave of a workgroup has ended, after this many instructions.
    fn retired(&mut self, _group: u64, _wave: usize, _executed: u64) {}
    /// Called when a workgroup has ended.
    fn ended(&mut self, group: u64);
}

/// State of the observation of a dispatch.
pub(super) struct Trace<'d> {
    /// The probe that receives the events.
    pub(super) probe: &'d mut dyn Probe,
    /// Number of the workgroup that is executing.
    pub(super) group: u64,
    /// Number of the wave that is executing.
    pub(super) wave: usize,
    exec: u64,
    offset: u64,
    transfers: Vec<Transfer>,
    scalar: Vec<(u64, u64)>,
}

impl<'d> Trace<'d> {
    /// The state before the first instruction.
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

    /// Begins an instruction.
    pub(super) fn begin(&mut self, offset: u64, exec: u64) {
        self.offset = offset;
        self.exec = exec;
        self.transfers.clear();
        self.scalar.clear();
    }

    /// Ends an instruction and reports it. The wave continues at `next`.
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

    /// Adds a read through the scalar cache to the current instruction.
    pub(super) fn scalar(&mut self, address: u64, bytes: u64) {
        self.scalar.push((address, bytes));
    }

    /// Adds accesses to LDS to the current instruction.
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

    /// Adds accesses to host addresses to the current instruction. `own`: scratch and LDS of the workgroup.
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

/// Mask of those of `lanes` whose addresses are in an extent.
fn inside(extent: &Extent, addresses: &Lanes64, lanes: u64) -> u64 {
    // Most instructions access neither scratch nor LDS, which this finds out without a test for each lane.
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
