//! Takes PC samples of dispatches, from the timelines of their compute units.
//!
//! Samples are taken at intervals of the time in which the device was busy. The timelines of a dispatch are stretched
//! to its measured duration: a relative position in one is the same relative position in the other.

use super::record::spread;
use super::timeline::{Issued, Pipe, Reason, Timeline, WaveTimeline};
use crate::device::Device;
use crate::isa::Kind;

/// Nanoseconds after a trap in which no other trap is taken.
const PENDING: f64 = 10_000.0;

/// Limits of the number of instructions of a dispatch that are recorded for samples: at short intervals, and at long
/// ones.
const EFFORT: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 17;
/// Product of the number of recorded instructions and the sampling interval in nanoseconds, between the limits of
/// [`EFFORT`].
const EFFORT_TIME: f64 = (1u64 << 31) as f64;

/// Number of samples that are put in order at once.
const AT_ONCE: u64 = 1 << 16;

/// Sampling method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Host trap: samples one wave slot of all compute units at a time, slot after slot. The interval is in
    /// nanoseconds.
    HostTrap,
    /// Stochastic: samples one of the waves of each compute unit. The interval is in cycles in which the unit was
    /// busy.
    Stochastic,
}

/// A PC sample of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since the start of the dispatch.
    pub time: u64,
    /// Number of the compute unit in the device.
    pub unit: usize,
    /// SIMD of the wave.
    pub simd: u8,
    /// Slot of the wave on the SIMD.
    pub slot: u8,
    /// Number of the workgroup in the dispatch.
    pub group: u64,
    /// Slot of the workgroup on the compute unit.
    pub group_slot: u32,
    /// Number of the wave in the workgroup.
    pub number: u32,
    /// Number of waves on the compute unit.
    pub waves: u32,
    /// Offset of the instruction in the program in bytes.
    pub offset: u32,
    /// Lanes that were active, one bit for each.
    pub exec: u64,
    /// Reason for which the instruction was not issued; `None` when it was.
    pub stalled: Option<Reason>,
    /// Kind of the instruction.
    pub kind: Kind,
    /// Pipe that executes the instruction.
    pub pipe: Pipe,
    /// Whether the instruction is a taken branch.
    pub taken: bool,
    /// Whether the instruction is a branch to an address in registers.
    pub indirect: bool,
    /// Pipes for which the arbiter of the SIMD chose a wave: one bit for each, by the number of the pipe.
    pub chosen: u8,
    /// Pipes of `chosen` that were full; one bit for each.
    pub full: u8,
}

/// A dispatch whose samples are taken.
struct Dispatched<'t> {
    timelines: &'t [Timeline],
    /// Timelines that have recorded instructions.
    with_waves: &'t [&'t Timeline],
    /// Duration in nanoseconds.
    duration: u64,
    /// Duration in the unit of the clocks.
    length: f64,
    /// Quads of the unit that was busy for longest.
    all: f64,
    /// Time between two samples in the unit of the clocks.
    step: f64,
}

/// Takes samples of the dispatches of a device, in their order.
#[derive(Debug)]
pub struct Sampler {
    method: Method,
    interval: f64,
    seed: u64,
    /// Time of the device in nanoseconds; for stochastic sampling, busy cycles of each compute unit.
    clocks: Vec<f64>,
    /// Time of the next sample on each clock.
    next: Vec<f64>,
    /// Number of samples that were taken on each clock.
    taken: Vec<u64>,
}

impl Sampler {
    /// A sampler with an interval in nanoseconds or cycles, by method. The same seed yields the same samples.
    pub fn new(method: Method, interval: u64, device: &Device, seed: u64) -> Self {
        let interval = interval.max(1) as f64;
        let layout = &device.layout;
        let places = match method {
            Method::HostTrap => 1,
            Method::Stochastic => layout.unit_slots() as usize,
        };
        let per_die = (places / layout.dies.max(1) as usize).max(1);
        let fraction = |n: u64| (spread(seed ^ spread(n)) >> 11) as f64 / (1u64 << 53) as f64;
        Self {
            method,
            interval,
            seed,
            clocks: vec![0.0; places],
            next: (0..places)
                .map(|place| interval * fraction((place / per_die) as u64))
                .collect(),
            taken: (0..places as u64)
                .map(|place| spread(seed ^ !place) % 32)
                .collect(),
        }
    }

    /// Whether a dispatch with this duration in nanoseconds may contain a sample.
    pub fn may_hit(&self, device: &Device, duration: f64) -> bool {
        let length = self.length(device, duration);
        self.clocks
            .iter()
            .zip(&self.next)
            .any(|(clock, next)| clock + length >= *next)
    }

    /// Number of instructions of a dispatch that should be recorded, for
    /// [`Selection::samples`](super::Selection::samples): the rarer samples are, the fewer are needed.
    pub fn effort(&self, device: &Device) -> u64 {
        let nanoseconds = self.interval / self.length(device, 1.0);
        ((EFFORT_TIME / nanoseconds) as u64).clamp(*EFFORT.start(), *EFFORT.end())
    }

    /// Converts a duration in nanoseconds to the unit of the clocks.
    fn length(&self, device: &Device, duration: f64) -> f64 {
        match self.method {
            Method::HostTrap => duration,
            Method::Stochastic => duration * f64::from(device.clocks.shader_mhz) / 1000.0,
        }
    }

    /// Takes the samples of a dispatch that took `duration` nanoseconds, and passes them on in the order of their times.
    /// Without timelines, the clocks advance and no samples are taken.
    pub fn dispatch(
        &mut self,
        timelines: &[Timeline],
        device: &Device,
        duration: u64,
        take: &mut dyn FnMut(&Sample),
    ) {
        let length = self.length(device, duration as f64);
        let all = timelines.iter().map(|t| t.busy).fold(1.0, f64::max);
        let with_waves: Vec<&Timeline> = timelines.iter().filter(|t| is_known(t)).collect();
        let pending = self.length(device, PENDING);
        let dispatched = Dispatched {
            timelines,
            with_waves: &with_waves,
            duration,
            length,
            all,
            step: (pending / self.interval).ceil().max(1.0) * self.interval,
        };
        match self.method {
            Method::HostTrap => self.trap(&dispatched, device, take),
            Method::Stochastic => self.pick(&dispatched, take),
        }
    }

    /// Takes the samples of host traps.
    fn trap(&mut self, of: &Dispatched<'_>, device: &Device, take: &mut dyn FnMut(&Sample)) {
        let end = self.clocks[0] + of.length;
        while self.next[0] < end {
            let part = (self.next[0] - self.clocks[0]) / of.length;
            let nth = self.taken[0];
            let per_simd = u64::from(device.layout.waves_per_simd);
            let simd = nth / per_simd % u64::from(device.layout.simds_per_unit);
            let place = (simd as u8, (nth % per_simd) as u8);
            let quad = part * of.all;
            for timeline in of.timelines.iter().filter(|t| quad < t.busy) {
                let Some((timeline, at)) = self.look(timeline, of.with_waves, quad, nth) else {
                    continue;
                };
                let wave = timeline
                    .waves
                    .iter()
                    .find(|w| (w.simd, w.slot) == place && (w.start..w.end).contains(&at));
                if let Some(sample) = wave.and_then(|w| sample(timeline, w, at, part, of.duration))
                {
                    take(&sample);
                }
            }
            self.taken[0] += 1;
            self.next[0] += of.step;
        }
        self.clocks[0] = end;
    }

    /// Takes the samples that compute units pick. The time of the dispatch is divided so that few samples have to be
    /// put in order at once.
    fn pick(&mut self, of: &Dispatched<'_>, take: &mut dyn FnMut(&Sample)) {
        let expected = of.length / of.step * of.timelines.len() as f64;
        let pieces = (expected / AT_ONCE as f64).ceil().max(1.0) as u64;
        let mut samples = Vec::new();
        for piece in 1..=pieces {
            for timeline in of.timelines {
                let unit = timeline.unit;
                // The clock of a unit stops while it has no wave.
                let busy = of.length * timeline.busy / of.all;
                let until = busy.min(of.length * piece as f64 / pieces as f64);
                while self.next[unit] < self.clocks[unit] + until {
                    let part = (self.next[unit] - self.clocks[unit]) / of.length;
                    let nth = self.taken[unit];
                    samples.extend(self.picked(of, timeline, part, nth));
                    self.taken[unit] += 1;
                    self.next[unit] += of.step;
                }
            }
            samples.sort_by_key(|sample: &Sample| (sample.time, sample.unit));
            samples.iter().for_each(&mut *take);
            samples.clear();
        }
        for timeline in of.timelines {
            self.clocks[timeline.unit] += of.length * timeline.busy / of.all;
        }
    }

    /// The sample of the `nth` wave of a unit, in turn, at a part of the duration of a dispatch.
    fn picked(&self, of: &Dispatched<'_>, unit: &Timeline, part: f64, nth: u64) -> Option<Sample> {
        let (timeline, at) = self.look(unit, of.with_waves, part * of.all, nth)?;
        let here = |w: &&WaveTimeline| (w.start..w.end).contains(&at);
        let waves = || timeline.waves.iter().filter(here);
        let count = waves().count() as u64;
        let wave = waves().nth(nth.checked_rem(count)? as usize)?;
        sample(timeline, wave, at, part, of.duration)
    }

    /// The timeline and the quad in which the state of a unit at a time is looked up. A unit that was not recorded
    /// uses another's timeline at another time, because units are not in step.
    fn look<'t>(
        &self,
        own: &'t Timeline,
        others: &[&'t Timeline],
        quad: f64,
        nth: u64,
    ) -> Option<(&'t Timeline, u64)> {
        let chance = spread(self.seed ^ spread(nth).wrapping_add(own.unit as u64));
        let timeline = if is_known(own) {
            own
        } else {
            *others.get((chance % others.len().max(1) as u64) as usize)?
        };
        let apart = chance % (timeline.end / 64).clamp(1, 2048);
        let batch = (quad * own.batches as f64 / own.busy).fract();
        let at = (batch * timeline.end as f64) as u64 + apart;
        Some((timeline, at % timeline.end))
    }
}

fn is_known(timeline: &Timeline) -> bool {
    timeline.end != 0 && timeline.waves.iter().any(|wave| !wave.issued.is_empty())
}

/// The sample of a wave at a time.
fn sample(
    timeline: &Timeline,
    wave: &WaveTimeline,
    at: u64,
    part: f64,
    duration: u64,
) -> Option<Sample> {
    let issued = wave.at(at)?;
    let here = |w: &&WaveTimeline| (w.start..w.end).contains(&at);
    let heads = timeline.waves.iter().filter(here);
    let on_simd = heads.clone().filter(|other| other.simd == wave.simd);
    let arbiter = Arbiter::from_heads(on_simd.filter_map(|other| other.at(at)), at);
    let waves = heads.count() as u32;
    Some(Sample {
        time: ((part * duration as f64) as u64).min(duration.saturating_sub(1)),
        unit: timeline.unit,
        simd: wave.simd,
        slot: wave.slot,
        group: wave.group,
        group_slot: wave.group_slot,
        number: wave.number,
        waves,
        offset: issued.offset,
        exec: issued.exec,
        stalled: arbiter.answer(issued, at),
        kind: issued.kind,
        pipe: issued.pipe,
        taken: issued.taken,
        indirect: issued.indirect,
        chosen: arbiter.chosen,
        full: arbiter.full,
    })
}

/// Decision of the arbiter of a SIMD in a quad. Masks have one bit for each pipe, by its number.
#[derive(Debug, Clone, Copy, Default)]
struct Arbiter {
    /// Pipes for which the arbiter chose a wave.
    chosen: u8,
    /// Pipes of `chosen` that did not take the instruction.
    full: u8,
}

impl Arbiter {
    /// The decision about the instructions at the heads of the waves of a SIMD.
    fn from_heads<'i>(heads: impl Iterator<Item = &'i Issued>, at: u64) -> Self {
        let (mut issues, mut held) = (0, 0);
        for head in heads.filter(|head| head.pipe != Pipe::Internal) {
            let pipe = 1 << head.pipe as u8;
            if at == head.issue {
                issues |= pipe;
            } else if competes(head, at) {
                held |= pipe;
            }
        }
        // For a pipe that takes an instruction the others of the pipe were not chosen.
        Self {
            chosen: issues | held,
            full: held & !issues,
        }
    }

    /// Reason for which the instruction at the head of one of the SIMD's waves was not issued; `None` when it was.
    fn answer(self, head: &Issued, at: u64) -> Option<Reason> {
        if !competes(head, at) {
            let reason = head.waits(at)?;
            // Behind the end of the program there is no instruction.
            let ends = reason == Reason::Internal && head.kind == Kind::End;
            return Some(if ends { Reason::Fetch } else { reason });
        }
        Some(if self.full >> head.pipe as u8 & 1 != 0 {
            Reason::PipeFull
        } else {
            Reason::NotChosen
        })
    }
}

/// Whether an instruction that is not issued wants its pipe. Vector and matrix arithmetic takes part in the arbitration
/// while the pipe has to wait for a result that it needs.
fn competes(head: &Issued, at: u64) -> bool {
    match head.waits(at) {
        Some(Reason::NotChosen | Reason::PipeFull) => true,
        Some(Reason::Dependency) => matches!(head.pipe, Pipe::Valu | Pipe::Matrix),
        Some(Reason::Fetch | Reason::Counter | Reason::Internal | Reason::Barrier) | None => false,
    }
}
