//! Timelines of compute units: when each instruction of their waves was issued, and why not earlier.
//!
//! The unit of time is the quad-cycle: four cycles, in which a SIMD issues at most one instruction to each pipe, of
//! different waves. An instruction is at the *head* of its wave from the quad after the issue of the one before. It
//! is *ready* when nothing in its own wave holds it back, and *issued* when the pipe accepts it. The figures are in
//! `docs/simulator-timing.md`.

use std::collections::BTreeMap;

use super::compute_unit::{FactsCache, Machine};
use super::record::Record;
use crate::device::Device;
use crate::isa::{Kind, Program};

/// Number of cycles in a quad.
pub const QUAD: u64 = 4;
/// Number of recorded instructions of a unit below which the duration of the others is not extrapolated from them.
const FEW: u64 = 1024;

/// Pipe that executes an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipe {
    /// Vector arithmetic.
    Valu,
    /// Matrix arithmetic, which is issued through the port of vector arithmetic.
    Matrix,
    /// Scalar arithmetic and memory.
    Scalar,
    /// Vector memory other than flat.
    Vmem,
    /// Flat, global and scratch memory.
    Flat,
    /// LDS.
    Lds,
    /// Branches, messages and barriers.
    Misc,
    /// No pipe: the sequencer executes it.
    Internal,
}

/// Number of ports of a SIMD. Matrix instructions share the port of vector arithmetic, flat ones that of vector
/// memory.
pub(super) const PORTS: usize = 5;

impl Pipe {
    pub(super) fn from_kind(kind: Kind) -> Self {
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

/// Reason for which an instruction at the head of a wave was not issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The instruction had not been fetched.
    Fetch,
    /// The instruction needed the result of an arithmetic instruction.
    Dependency,
    /// The wave waited for memory or LDS at an `s_waitcnt`.
    Counter,
    /// The sequencer was executing the instruction: a no-op, a sleep, or an `s_waitcnt` that had nothing to wait for.
    Internal,
    /// Other waves had not reached the barrier.
    Barrier,
    /// The arbiter chose another wave for the pipe.
    NotChosen,
    /// The arbiter chose the wave, but the pipe was full.
    PipeFull,
}

/// An executed instruction with its times, in quads from the start of the dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    /// Time at which the instruction came to the head of its wave.
    pub head: u64,
    /// Time from which on nothing in its own wave held the instruction back.
    pub ready: u64,
    /// Time at which the arbiter first chose the instruction while the pipe was full; equal to `issue` when the pipe
    /// was not full.
    pub chosen: u64,
    /// Time at which the instruction was issued. After a barrier, the wave waits until the next instruction comes to
    /// the head.
    pub issue: u64,
    /// Offset in the program in bytes.
    pub offset: u32,
    /// Reason for which the instruction was not ready before `ready`.
    pub reason: Reason,
    /// Pipe that executed the instruction.
    pub pipe: Pipe,
    /// Whether the instruction is a taken branch.
    pub taken: bool,
    /// Whether the instruction is a branch to an address in registers.
    pub indirect: bool,
    /// Whether the instruction is vector arithmetic on 64-bit elements.
    pub wide: bool,
    /// Whether the instruction reads the clock (`s_memtime`).
    pub clock: bool,
    /// Kind of the instruction.
    pub kind: Kind,
    /// Lanes that were active, one bit for each.
    pub exec: u64,
}

/// The instructions of a wave, with their times.
#[derive(Debug, Clone)]
pub struct WaveTimeline {
    /// Number of the workgroup in the dispatch.
    pub group: u64,
    /// Slot of the workgroup among those that the compute unit holds.
    pub group_slot: u32,
    /// Number of the wave in the workgroup.
    pub number: u32,
    /// SIMD that runs the wave.
    pub simd: u8,
    /// Slot of the wave on the SIMD.
    pub slot: u8,
    /// Time at which the wave started, in quads.
    pub start: u64,
    /// Time at which the wave ended, in quads.
    pub end: u64,
    /// The recorded instructions, in the order of execution.
    pub issued: Vec<Issued>,
}

impl WaveTimeline {
    /// The instruction that is at the head at a time; `None` before the start and after the end of the wave.
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
    /// Reason for which the instruction, which is at the head at this time, is not issued; `None` when it is.
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

/// Execution of a compute unit, from the start of its first wave to the end of its last.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Number of the compute unit in the device.
    pub unit: usize,
    /// Quads in which the unit was busy, extrapolated to the instructions that were not recorded.
    pub busy: f64,
    /// Number of times that the unit executed as many workgroups as these.
    pub batches: u64,
    /// Time at which the last recorded wave ended, in quads.
    pub end: u64,
    /// The waves, ordered by start.
    pub waves: Vec<WaveTimeline>,
}

impl Timeline {
    /// Computes the timelines of all recorded compute units.
    pub fn all(record: &Record, device: &Device, program: &Program) -> Vec<Self> {
        let mut facts = FactsCache::new(program);
        let mut timelines: Vec<Self> = record
            .units
            .iter()
            .map(|(unit, recorded)| {
                Machine::new(device, record.resident).run(*unit, recorded, &mut facts)
            })
            .collect();
        // The time of the recorded instructions is extrapolated to all. A unit with few recorded instructions is
        // assumed to have taken as long as units with as many waves.
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
