//! Durations of waves. The unit is the quad-cycle, in which each SIMD issues an instruction of each kind.

use super::tally::{PORTS, Port};
use std::collections::VecDeque;

/// A wave's clock, as if it were alone.
#[derive(Debug, Default)]
pub(super) struct WaveClock {
    /// Quad-cycles since it started.
    pub(super) clock: u64,
    /// Of these, issuing instructions, by port.
    pub(super) ports: [u64; PORTS],
    /// SIMD of its compute unit.
    pub(super) simd: usize,
    /// Whether it waits for the other waves of its workgroup.
    pub(super) at_barrier: bool,
    /// The instruction bytes it fetched last.
    pub(super) window: Option<u64>,
    /// Ends of the vector memory operations in flight; they end in order.
    vector: VecDeque<u64>,
    /// The same of LDS and scalar ones.
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

    /// Issues an instruction.
    pub(super) fn issue(&mut self, port: Port, quads: u64) {
        self.clock += quads;
        self.ports[port as usize] += quads;
    }

    /// A vector memory operation takes this many cycles from now on.
    pub(super) fn start_vector(&mut self, cycles: u64) {
        start(&mut self.vector, self.clock, cycles);
    }

    /// An LDS or scalar operation does.
    pub(super) fn start_scalar(&mut self, cycles: u64) {
        start(&mut self.scalar, self.clock, cycles);
    }

    /// Waits until no more than this many are in flight.
    pub(super) fn wait(&mut self, vector: u32, scalar: u32) {
        for (queue, most) in [(&mut self.vector, vector), (&mut self.scalar, scalar)] {
            while queue.len() > most as usize
                && let Some(end) = queue.pop_front()
            {
                self.clock = self.clock.max(end);
            }
        }
    }

    /// Does nothing for this many cycles.
    pub(super) fn stall(&mut self, cycles: u64) {
        self.clock += cycles.div_ceil(4);
    }

    fn active(&self) -> u64 {
        self.ports.iter().sum()
    }
}

fn start(queue: &mut VecDeque<u64>, now: u64, cycles: u64) {
    // A completed access needs no wait, but counts until it is waited for.
    let last = queue.back().copied().unwrap_or(0);
    queue.push_back(last.max(now + cycles.div_ceil(4)));
    // Counters of instructions in flight do not reach further.
    if queue.len() > 64 {
        queue.pop_front();
    }
}

/// Workgroups that share a compute unit from their start to the end of the last.
#[derive(Debug)]
pub(super) struct Batch {
    /// Workgroups that have ended.
    pub(super) ended: u64,
    /// Quad-cycles of each wave alone, and of these issuing.
    waves: Vec<(u64, u64)>,
    /// Quad-cycles of each port of each SIMD.
    ports: Vec<[u64; PORTS]>,
    address_cycles: u64,
    lds_cycles: u64,
}

/// Cycles of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BatchCycles {
    /// Quad-cycles of the compute unit.
    pub(super) quads: u64,
    /// Quad-cycles of its waves.
    pub(super) waves: u64,
    /// Of these, waiting for data, barriers and instruction fetches.
    pub(super) waiting: u64,
    /// Of these, waiting for other waves' instructions.
    pub(super) contention: u64,
    /// Of these, because LDS was what all waited for.
    pub(super) lds: u64,
}

impl Batch {
    /// On a compute unit with this many SIMDs.
    pub(super) fn new(simds: usize) -> Self {
        Self {
            ended: 0,
            waves: Vec::new(),
            ports: vec![[0; PORTS]; simds],
            address_cycles: 0,
            lds_cycles: 0,
        }
    }

    /// A workgroup has ended.
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

    /// The batch lasts as long as its longest wave would alone, or as what its waves share is busy, whichever is
    /// longer; the waves' times are stretched alike.
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
    fn a_wave_waits_for_what_is_in_flight() {
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
    fn waves_on_one_simd_share_its_issue() {
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
