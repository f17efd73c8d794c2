//! Timelines of compute units: when the instructions of their waves were issued, and why not earlier.
//!
//! The unit of time is the quad-cycle: four cycles, in which a SIMD issues one instruction of each pipe, of different waves. A
//! wave's instruction is at its *head* from the quad after the issue of the one before, *ready* when nothing of its own holds
//! it back, and *issued* when the pipe took it. The figures are in `docs/simulator.md`.

use std::collections::BTreeMap;

use super::compute_unit::{FactsCache, Machine};
use super::record::Record;
use crate::device::Device;
use crate::isa::{Kind, Program};

/// Cycles of a quad.
pub const QUAD: u64 = 4;
/// With fewer recorded instructions of a wave the time of the others cannot be estimated.
const FEW: u64 = 1024;

/// Pipe that executes an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipe {
    /// Vector arithmetic.
    Valu,
    /// Matrix arithmetic, issued where vector arithmetic is.
    Matrix,
    /// Scalar arithmetic and memory.
    Scalar,
    /// Vector memory other than flat.
    Vmem,
    /// Generic, global and scratch memory.
    Flat,
    /// LDS.
    Lds,
    /// Branches, messages and barriers.
    Misc,
    /// None: the sequencer itself executes it.
    Internal,
}

/// Ports of a SIMD: matrix instructions share the one of vector arithmetic, flat ones that of vector memory.
pub(super) const PORTS: usize = 5;

impl Pipe {
    pub(super) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Valu(_) => Self::Valu,
            Kind::Matrix(_) => Self::Matrix,
            Kind::Salu | Kind::Smem(_) => Self::Scalar,
            Kind::Vmem(vmem) if vmem.flat => Self::Flat,
            Kind::Vmem(_) => Self::Vmem,
            Kind::Lds | Kind::Gds => Self::Lds,
            Kind::Branch | Kind::Message | Kind::Barrier => Self::Misc,
            Kind::End
            | Kind::Wait(..)
            | Kind::Sleep(_)
            | Kind::Invalidate
            | Kind::WriteBack
            | Kind::Other => Self::Internal,
        }
    }

    pub(super) fn port(self) -> usize {
        match self {
            Self::Valu | Self::Matrix => 0,
            Self::Scalar => 1,
            Self::Vmem | Self::Flat => 2,
            Self::Lds => 3,
            Self::Misc | Self::Internal => 4,
        }
    }
}

/// Why an instruction at the head of a wave is not issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The instruction has not been fetched.
    Fetch,
    /// The instruction needs the result of arithmetic.
    Dependency,
    /// The wave waits for memory or LDS: `s_waitcnt`.
    Counter,
    /// The sequencer executes it: no-ops, sleep, `s_waitcnt` that need not wait.
    Internal,
    /// Other waves have not reached the barrier.
    Barrier,
    /// Another wave was chosen for the pipe.
    NotChosen,
    /// The wave was chosen, and the pipe was full.
    PipeFull,
}

/// An instruction that a wave executed, with its times in quads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    /// Quad at which it came to the head of its wave.
    pub head: u64,
    /// Quad at which its wave was ready to issue it.
    pub ready: u64,
    /// Quad from which on the arbiter had chosen it and its pipe was full; `issue` where the pipe was not full.
    pub chosen: u64,
    /// Quad of issue. After a barrier the wave waits until the next instruction comes to the head.
    pub issue: u64,
    /// Offset in the program in bytes.
    pub offset: u32,
    /// Cause of the wait before it was ready.
    pub reason: Reason,
    /// Pipe that executed it.
    pub pipe: Pipe,
    /// Whether it is a branch that was taken.
    pub taken: bool,
    /// Whether it is a branch to an address in registers.
    pub indirect: bool,
    /// Whether it is vector arithmetic of 64-bit elements.
    pub wide: bool,
    /// Whether it is `s_memtime`.
    pub clock: bool,
    /// Kind of the instruction.
    pub kind: Kind,
    /// Lanes that were active.
    pub exec: u64,
}

/// A wave on a compute unit.
#[derive(Debug, Clone)]
pub struct WaveTimeline {
    /// Number of its workgroup in the dispatch.
    pub group: u64,
    /// Place of the workgroup among those that run together.
    pub group_slot: u32,
    /// Number of the wave in the workgroup.
    pub number: u32,
    /// SIMD that runs the wave.
    pub simd: u8,
    /// Slot of the wave on the SIMD.
    pub slot: u8,
    /// Start in quads.
    pub start: u64,
    /// End in quads.
    pub end: u64,
    /// The executed instructions with their times.
    pub issued: Vec<Issued>,
}

impl WaveTimeline {
    /// The instruction at the head at a time, if the wave is there and any is.
    pub fn at(&self, quad: u64) -> Option<&Issued> {
        if quad < self.start || quad >= self.end {
            return None;
        }
        let behind = self.issued.partition_point(|issued| issued.head <= quad);
        behind
            .checked_sub(1)
            .map(|at| &self.issued[at])
            .or_else(|| self.issued.first())
    }
}

impl Issued {
    /// Why it is not issued at a time when it is at the head; `None` if it is.
    pub fn waits(&self, quad: u64) -> Option<Reason> {
        if quad < self.ready {
            Some(self.reason)
        } else if quad < self.issue {
            Some(if quad < self.chosen {
                Reason::NotChosen
            } else {
                Reason::PipeFull
            })
        } else if self.pipe == Pipe::Internal {
            Some(match self.kind {
                Kind::Wait(..) => Reason::Counter,
                _ => Reason::Internal,
            })
        } else if quad == self.issue {
            None
        } else if self.kind == Kind::Barrier {
            Some(Reason::Barrier)
        } else {
            Some(Reason::Internal)
        }
    }
}

/// Timeline of a compute unit, from the start of its first wave to the end of its last.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The compute unit: its number in the device.
    pub unit: usize,
    /// Quads for which the unit was busy, with what was not recorded.
    pub busy: f64,
    /// Times that the unit executed as many workgroups as these.
    pub batches: u64,
    /// End of the last recorded wave, in quads.
    pub end: u64,
    /// Its waves, in the order of their start.
    pub waves: Vec<WaveTimeline>,
}

impl Timeline {
    /// Timelines of all recorded compute units.
    pub fn all(record: &Record, device: &Device, program: &Program) -> Vec<Self> {
        let mut facts = FactsCache::new(program);
        let mut timelines: Vec<Self> = record
            .units
            .iter()
            .map(|(unit, recorded)| {
                Machine::new(device, record.resident).run(*unit, recorded, &mut facts)
            })
            .collect();
        // A part of the instructions took a part of the time. Where few were recorded, they took as long as on other units with as
        // many waves.
        let counts: Vec<_> = record
            .units
            .iter()
            .map(|unit| unit.1.instructions())
            .collect();
        let mut paces: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (timeline, &(_, recorded)) in timelines.iter().zip(&counts) {
            let (quads, instructions) = paces.entry(timeline.waves.len()).or_default();
            *quads += timeline.end as f64;
            *instructions += recorded as f64;
        }
        for (timeline, (executed, recorded)) in timelines.iter_mut().zip(counts) {
            let waves = timeline.waves.len();
            let is_part = recorded < executed;
            let once = if is_part && recorded < FEW * waves as u64 {
                let (quads, instructions) = paces.get(&waves).copied().unwrap_or_default();
                executed as f64 * quads / f64::max(instructions, 1.0)
            } else {
                timeline.end as f64 * (executed as f64 / recorded.max(1) as f64).max(1.0)
            };
            timeline.busy = once * timeline.batches as f64;
        }
        timelines
    }
}
