//! Computes durations of waves in quad-cycles, in which each SIMD issues one instruction of each kind.

use super::tally::{PORTS, Port};
use std::collections::VecDeque;

/// The clock of a wave, as if it had the compute unit for itself.
#[derive(Debug, Default)]
pub(super) struct WaveClock {
    /// Quad-cycles since the wave started.
    pub(super) clock: u64,
    /// Quad-cycles in which the wave issued an instruction, by port.
    pub(super) ports: [u64; PORTS],
    /// SIMD of the compute unit that the wave is on.
    pub(super) simd: usize,
    /// Whether the wave waits for the other waves of its workgroup.
    pub(super) at_barrier: bool,
    /// The part of the code that the wave fetched last.
    pub(super) window: Option<u64>,
    /// Times at which the outstanding vector memory operations complete, in order.
    vector: VecDeque<u64>,
    /// Times at which the outstanding LDS and scalar operations complete, in order.
    scalar: VecDeque<u64>,
}

impl WaveClock {
    /// A wave that starts on a SIMD.
    pub(super) fn new(simd: usize) -> Self {
        Self {
            simd,
            ..Self::default()
        }
    }

    /// Issues an instruction, which occupies the port for `quads`.
    pub(super) fn issue(&mut self, port: Port, quads: u64) {
        self.clock += quads;
        self.ports[port as usize] += quads;
    }

    /// Begins a vector memory operation that takes this many cycles.
    pub(super) fn start_vector(&mut self, cycles: u64) {
        start(&mut self.vector, self.clock, cycles);
    }

    /// Begins an LDS or scalar operation that takes this many cycles.
    pub(super) fn start_scalar(&mut self, cycles: u64) {
        start(&mut self.scalar, self.clock, cycles);
    }

    /// Waits until at most so many operations of each kind are outstanding.
    pub(super) fn wait(&mut self, vector: u32, scalar: u32) {
        for (queue, most) in [(&mut self.vector, vector), (&mut self.scalar, scalar)] {
            while queue.len() > most as usize
                && let Some(end) = queue.pop_front()
            {
                self.clock = self.clock.max(end);
            }
        }
    }

    /// Lets this many cycles pass.
    pub(super) fn stall(&mut self, cycles: u64) {
        self.clock += cycles.div_ceil(4);
    }

    fn active(&self) -> u64 {
        self.ports.iter().sum()
    }
}

fn start(queue: &mut VecDeque<u64>, now: u64, cycles: u64) {
    // An operation that has completed need not be waited for, but it stays counted until the wave waits.
    let last = queue.back().copied().unwrap_or(0);
    queue.push_back(last.max(now + cycles.div_ceil(4)));
    // The hardware's counters of outstanding operations have no greater values.
    if queue.len() > 64 {
        queue.pop_front();
    }
}

/// Workgroups that are on a compute unit at the same time.
#[derive(Debug)]
pub(super) struct Batch {
    /// Number of workgroups that have ended.
    pub(super) ended: u64,
    /// For each wave, its duration in quad-cycles if it were alone, and the number of quad-cycles in which it issued an
    /// instruction.
    waves: Vec<(u64, u64)>,
    /// Quad-cycles in which each port of each SIMD was busy.
    ports: Vec<[u64; PORTS]>,
    address_cycles: u64,
    lds_cycles: u64,
}

/// Durations of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BatchCycles {
    /// Quad-cycles in which the compute unit had waves.
    pub(super) quads: u64,
    /// Durations of the waves added up, in quad-cycles.
    pub(super) waves: u64,
    /// Quad-cycles of the waves in which they waited for data, barriers and instruction fetches.
    pub(super) waiting: u64,
    /// Quad-cycles of the waves in which they waited because other waves issued instructions.
    pub(super) contention: u64,
    /// Quad-cycles of the waves in which they waited for LDS, where LDS was the bottleneck.
    pub(super) lds: u64,
}

impl Batch {
    /// An empty batch on a compute unit with this many SIMDs.
    pub(super) fn new(simds: usize) -> Self {
        Self {
            ended: 0,
            waves: Vec::new(),
            ports: vec![[0; PORTS]; simds],
            address_cycles: 0,
            lds_cycles: 0,
        }
    }

    /// Adds a workgroup that has ended.
    pub(super) fn add(&mut self, waves: &[WaveClock], address_cycles: u64, lds_cycles: u64) {
        self.ended += 1;
        self.address_cycles += address_cycles;
        self.lds_cycles += lds_cycles;
        for wave in waves {
            self.waves.push((wave.clock, wave.active()));
            for (sum, part) in self.ports[wave.simd].iter_mut().zip(wave.ports) {
                *sum += part;
            }
        }
    }

    /// Computes the durations. The batch lasts as long as its longest wave alone, or as long as its busiest shared
    /// unit is occupied, whichever is longer. The durations of the waves are stretched in proportion.
    pub(super) fn take(&self) -> BatchCycles {
        let longest = self
            .waves
            .iter()
            .map(|wave| wave.0)
            .max()
            .unwrap_or(0)
            .max(1);
        let port = |port: usize| self.ports.iter().map(|simd| simd[port]).max().unwrap_or(0);
        let issue = (0..PORTS).map(port).max().unwrap_or(0);
        let lds = self.lds_cycles.div_ceil(4).max(port(Port::Lds as usize));
        let quads = longest
            .max(issue)
            .max(self.address_cycles.div_ceil(4))
            .max(lds);
        let mut taken = BatchCycles {
            quads,
            ..BatchCycles::default()
        };
        for &(alone, active) in &self.waves {
            let time = (u128::from(alone) * u128::from(quads) / u128::from(longest)) as u64;
            taken.waves += time;
            taken.waiting += alone - active;
            taken.contention += time - alone;
        }
        if quads > longest && quads == lds {
            taken.lds = taken.contention;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wave_clock_waits_for_accesses_in_flight() {
        let mut wave = WaveClock::default();
        wave.issue(Port::Vmem, 1);
        wave.start_vector(400);
        wave.issue(Port::Vmem, 1);
        wave.start_vector(400);
        wave.wait(1, 15);
        assert_eq!(wave.clock, 101);
        wave.wait(0, 15);
        assert_eq!(wave.clock, 102);
        wave.wait(0, 0);
        assert_eq!((wave.clock, wave.active()), (102, 2));
    }

    #[test]
    fn waves_on_one_simd_share_its_issue_cycles() {
        let waves: Vec<WaveClock> = (0..8)
            .map(|_| {
                let mut wave = WaveClock::default();
                wave.issue(Port::Valu, 10);
                wave.stall(40);
                wave
            })
            .collect();
        let mut batch = Batch::new(4);
        batch.add(&waves, 0, 0);
        let taken = batch.take();
        // 80 quad-cycles of instructions on the SIMD, where each wave alone would take 20.
        let expected = BatchCycles {
            quads: 80,
            waves: 640,
            waiting: 80,
            contention: 480,
            lds: 0,
        };
        assert_eq!(taken, expected);
    }
}
