//! PC samples added up by kernel, instruction and state of the issue logic, with the statistical error of the sums.
//!
//! Samples of one tick are not independent: the waves of a compute unit execute in step. The bootstrap therefore
//! resamples whole ticks, not samples: in each of [`REPLICATES`] replicates, a tick counts as often as a Poisson
//! distribution with mean 1 says. Replicates of a sum are sums of replicates, so they can be added up by line,
//! function and kernel afterwards. The spread of a share over the replicates is its error.

use std::collections::{BTreeMap, HashMap};

use super::samples::Issue;
use super::{DispatchKernels, Session};
use crate::ids::{AgentHandle, CodeObjectId, DispatchId, KernelId, StringId};
use crate::spool::options::SamplingUnit;
use crate::storage::number_map::NumberMap;

/// Number of bootstrap replicates.
pub const REPLICATES: usize = 64;

/// Number of samples in each replicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicates(pub [u32; REPLICATES]);

impl Default for Replicates {
    fn default() -> Replicates {
        Replicates([0; REPLICATES])
    }
}

impl Replicates {
    /// Adds the replicates of another sum.
    #[inline]
    pub fn add(&mut self, other: &Replicates) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// Adds a sample that was taken at a tick with these weights.
    #[inline]
    fn add_weights(&mut self, weights: &[u8; REPLICATES]) {
        for (sum, weight) in self.0.iter_mut().zip(weights) {
            *sum = sum.wrapping_add(u32::from(*weight));
        }
    }

    /// Half the width of the 95 % interval of the share that this sum has of `whole`, 0 to 1. `None` without
    /// replicates, as for thread traces.
    pub fn error_of_share(&self, whole: &Replicates) -> Option<f64> {
        let shares = self.0.iter().zip(&whole.0).filter(|(_, whole)| **whole > 0);
        let shares: Vec<f64> = shares
            .map(|(part, whole)| f64::from(*part) / f64::from(*whole))
            .collect();
        if shares.len() < 2 {
            return None;
        }
        let count = shares.len() as f64;
        let mean = shares.iter().sum::<f64>() / count;
        let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
        Some(1.96 * (squares / (count - 1.0)).sqrt())
    }
}

/// Number of times that a tick counts in each replicate. The weights follow from the tick's number, so every run
/// computes the same ones.
fn weights(tick: u64) -> [u8; REPLICATES] {
    // Of 65536: how many numbers are below 1, 2, ... events of a Poisson distribution with mean 1.
    const BELOW: [u16; 8] = [24109, 48219, 60273, 64292, 65296, 65497, 65531, 65535];
    let mut weights = [0; REPLICATES];
    let mut state = tick;
    for four in weights.chunks_exact_mut(4) {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = state;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^= number >> 31;
        for (weight, part) in four.iter_mut().zip(0..4) {
            let drawn = (number >> (16 * part)) as u16;
            *weight = BELOW.iter().map(|below| u8::from(drawn >= *below)).sum();
        }
    }
    weights
}

/// The instruction that samples were taken at, and the kernel that executed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Place {
    /// The kernel that ran; 0 when it is not known.
    pub kernel: KernelId,
    /// Code object; 0 when the provider found none for the address.
    pub object: CodeObjectId,
    /// Offset from the load address of the code object; an address when there is none.
    pub offset: u64,
}

/// Sums over the samples at a place with the same state of the issue logic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Number of samples; for thread traces number of cycles.
    pub samples: u64,
    /// Lanes that were enabled, added up over the samples.
    pub lanes: u64,
    /// Waves that were active on the compute unit, added up over the samples; 0 for host trap samples.
    pub waves: u64,
}

impl Count {
    /// Adds another sum, over other samples.
    pub fn add(&mut self, other: Count) {
        self.samples += other.samples;
        self.lanes += other.lanes;
        self.waves += other.waves;
    }
}

/// Sums over the samples at one place.
#[derive(Debug, Clone, Default)]
pub struct PlaceTotals {
    /// Sums by state of the issue logic, ordered by it.
    pub counts: Vec<(Issue, Count)>,
    /// Number of samples in each replicate.
    pub replicates: Replicates,
}

/// Samples that the provider has added up by place, with nothing known of each: they have no time, dispatch or wave.
#[derive(Debug, Clone, Default)]
pub struct SampleCounts(BTreeMap<(Place, Issue), u64>);

impl SampleCounts {
    /// Adds samples at a place with the same state.
    pub fn add(&mut self, place: Place, issue: Issue, samples: u64) {
        let sum = self.0.entry((place, issue)).or_default();
        *sum = sum.saturating_add(samples);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of places and states with samples.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Number of samples in all.
    pub fn total(&self) -> u64 {
        self.0
            .values()
            .fold(0, |sum, more| sum.saturating_add(*more))
    }

    /// Places with states and numbers of samples, ordered.
    pub fn iter(&self) -> impl Iterator<Item = (Place, Issue, u64)> {
        self.0
            .iter()
            .map(|((place, issue), samples)| (*place, *issue, *samples))
    }
}

/// Unit of counts: samples or cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    /// PC samples.
    #[default]
    Samples,
    /// Cycles that traced instructions took.
    Cycles,
}

impl Measure {
    /// The unit in the plural, for reports.
    pub fn plural(self) -> &'static str {
        match self {
            Measure::Samples => "samples",
            Measure::Cycles => "cycles",
        }
    }

    /// A number with the unit, for reports: `1 sample`, `2 cycles`.
    pub fn counted(self, number: u64) -> String {
        match number {
            1 => format!("1 {}", self.plural().trim_end_matches('s')),
            number => format!("{number} {}", self.plural()),
        }
    }
}

/// PC samples, or cycles of thread traces, added up.
#[derive(Debug, Clone, Default)]
pub struct InstructionTotals {
    /// Unit of the counts: samples or cycles.
    pub measure: Measure,
    /// Sums by place: instruction and kernel.
    pub places: HashMap<Place, PlaceTotals>,
}

/// Clock rate that is assumed for a GPU whose description has none: 1 GHz.
const CYCLES_PER_US: u64 = 1000;

impl InstructionTotals {
    /// Adds up the samples of a session. Those that the provider has added up have no replicates: their times are not
    /// known.
    pub fn from_session(session: &Session) -> InstructionTotals {
        let samples = &session.samples;
        let mut totals = InstructionTotals::default();
        // Ordered by place and state, as readers rely on.
        for (place, issue, samples) in session.sample_counts.iter() {
            let count = Count {
                samples,
                ..Count::default()
            };
            let sum = totals.places.entry(place).or_default();
            sum.counts.push((issue, count));
        }
        if samples.is_empty() {
            return totals;
        }
        let kernels = Kernels::new(session);
        let ticks = Ticks::new(session);
        // Samples are ordered by time, so the next one is most often of the same dispatch and tick.
        let mut of_dispatch = Latest::<DispatchId, Option<KernelId>>::default();
        let mut clock = Latest::<CodeObjectId, TickClock>::default();
        let mut drawn = Latest::<u64, [u8; REPLICATES]>::default();
        // By kernel of the dispatch (if it is known), code object and offset.
        let mut known: NumberMap<(Option<KernelId>, CodeObjectId, u64), usize> =
            NumberMap::default();
        let mut slots: NumberMap<Place, usize> = NumberMap::default();
        let mut found: Vec<(Place, PlaceTotals)> = Vec::new();
        for index in samples.indices() {
            let object = samples.object[index];
            let offset = samples.offset[index];
            let dispatch = samples.dispatch[index];
            let kernel = *of_dispatch.get(dispatch, || kernels.of_dispatch.get(dispatch));
            let slot = *known.entry((kernel, object, offset)).or_insert_with(|| {
                let kernel = kernel.unwrap_or_else(|| kernels.at(session, object, offset));
                let place = Place {
                    kernel,
                    object,
                    offset,
                };
                *slots.entry(place).or_insert_with(|| {
                    found.push((place, PlaceTotals::default()));
                    found.len() - 1
                })
            });
            let sum = &mut found[slot].1;
            let clock = clock.get(object, || ticks.clock(session, object));
            // Samples of one tick are drawn together: they are not independent, see the head of this file.
            let tick = clock.tick(samples.start[index].0);
            sum.replicates
                .add_weights(drawn.get(tick, || weights(tick)));
            let issue = Issue::from_flags(samples.flags[index], samples.snapshot[index]);
            let one = Count {
                samples: 1,
                lanes: samples.exec[index].count_ones().into(),
                waves: samples.waves[index].into(),
            };
            match sum.counts.iter_mut().find(|(known, _)| *known == issue) {
                Some((_, count)) => count.add(one),
                None => sum.counts.push((issue, one)),
            }
        }
        for (place, mut sum) in found {
            // Counts came in the order of samples; readers rely on the order of states.
            sum.counts.sort_by_key(|(issue, _)| *issue);
            totals.places.insert(place, sum);
        }
        totals
    }
}

impl InstructionTotals {
    /// Adds up the cycles of the instructions in a session's thread traces. They are exact, so there are no
    /// replicates. Traces do not show which lanes were enabled.
    pub fn from_traces(session: &Session) -> InstructionTotals {
        let mut totals = InstructionTotals {
            measure: Measure::Cycles,
            ..InstructionTotals::default()
        };
        if session.thread_traces.lines.is_empty() {
            return totals;
        }
        let kernels = Kernels::new(session);
        for line in &session.thread_traces.lines {
            // Traces of a whole agent do not say which kernel a wave ran: the code tells.
            let kernel = match line.kernel {
                KernelId(0) => kernels.at(session, line.object, line.offset),
                known => known,
            };
            let place = Place {
                kernel,
                object: line.object,
                offset: line.offset,
            };
            let sum = totals.places.entry(place).or_default();
            // Cycles that are no stall are those in which the instruction issued and executed.
            let issued = (Issue::ISSUED, line.latency.saturating_sub(line.stall()));
            for (issue, cycles) in line.stalls.iter().copied().chain([issued]) {
                let count = Count {
                    samples: cycles,
                    ..Count::default()
                };
                match sum.counts.binary_search_by_key(&issue, |(known, _)| *known) {
                    Ok(found) => sum.counts[found].1.add(count),
                    Err(place) => sum.counts.insert(place, (issue, count)),
                }
            }
        }
        totals
    }

    /// [`InstructionTotals::from_session`] if the session has samples, else [`InstructionTotals::from_traces`].
    pub fn from_any(session: &Session) -> InstructionTotals {
        if !session.has_samples() {
            InstructionTotals::from_traces(session)
        } else {
            InstructionTotals::from_session(session)
        }
    }
}

/// Finds the kernel that a sample belongs to.
struct Kernels {
    of_dispatch: DispatchKernels,
    /// Kernels by code object and symbol name.
    of_symbol: HashMap<(CodeObjectId, String), KernelId>,
}

impl Kernels {
    fn new(session: &Session) -> Kernels {
        let symbols = session.kernel_symbols.iter();
        Kernels {
            of_dispatch: DispatchKernels::new(session),
            of_symbol: symbols
                .map(|symbol| {
                    let name = symbol.name.trim_end_matches(".kd").to_owned();
                    ((symbol.code_object, name), symbol.id)
                })
                .collect(),
        }
    }

    /// The kernel whose own code has the instruction at `offset`; 0 when the instruction is in a function that
    /// kernels call, or not decoded.
    fn at(&self, session: &Session, object: CodeObjectId, offset: u64) -> KernelId {
        let Some(instruction) = session.code.find(object, offset) else {
            return KernelId(0);
        };
        let function = session.code.instructions[instruction].function;
        if function == StringId(0) {
            return KernelId(0);
        }
        let name = session.strings.get(function).to_owned();
        let found = self.of_symbol.get(&(object, name));
        found.copied().unwrap_or(KernelId(0))
    }
}

/// Lengths of the ticks at which the agents were sampled.
struct Ticks {
    /// Nanoseconds between two ticks, by agent.
    lengths: HashMap<AgentHandle, u64>,
    agents: HashMap<CodeObjectId, AgentHandle>,
}

impl Ticks {
    fn new(session: &Session) -> Ticks {
        let length = |sampling: &super::code::Sampling| match sampling.unit {
            SamplingUnit::Time => sampling.interval.saturating_mul(1000),
            SamplingUnit::Cycles | SamplingUnit::Instructions => {
                let clock = session
                    .agent(sampling.agent)
                    .map(|agent| u64::from(agent.max_engine_clk_fcompute));
                let clock = clock.filter(|clock| *clock > 0).unwrap_or(CYCLES_PER_US);
                sampling.interval.saturating_mul(1000) / clock
            }
        };
        let sampling = session.sampling.iter();
        let objects = session.code_objects.iter();
        Ticks {
            lengths: sampling
                .map(|sampling| (sampling.agent, length(sampling).max(1)))
                .collect(),
            agents: objects.map(|object| (object.id, object.agent)).collect(),
        }
    }

    /// The ticks of the agent that a code object is loaded on.
    fn clock(&self, session: &Session, object: CodeObjectId) -> TickClock {
        let first = session.sampling.first().map(|sampling| sampling.agent);
        let agent = self
            .agents
            .get(&object)
            .copied()
            .or(first)
            .unwrap_or_default();
        let length = self.lengths.get(&agent).copied().unwrap_or(1_000_000);
        TickClock { agent, length }
    }
}

/// The ticks at which a GPU was sampled.
struct TickClock {
    agent: AgentHandle,
    /// Nanoseconds between two ticks.
    length: u64,
}

impl TickClock {
    /// Number of the tick that a time belongs to.
    #[inline]
    fn tick(&self, time: u64) -> u64 {
        // The GPU's handle is mixed in: ticks of different GPUs are resampled independently.
        (time / self.length) ^ self.agent.0.rotate_left(40)
    }
}

/// A cache of the latest query and its result, because the same query often follows at once.
struct Latest<K, V>(Option<(K, V)>);

impl<K, V> Default for Latest<K, V> {
    fn default() -> Self {
        Latest(None)
    }
}

impl<K: PartialEq, V> Latest<K, V> {
    /// The result for `key`: the cached one, or what `find` returns.
    #[inline]
    fn get(&mut self, key: K, find: impl FnOnce() -> V) -> &V {
        if self.0.as_ref().is_some_and(|(latest, _)| *latest != key) {
            self.0 = None;
        }
        &self.0.get_or_insert_with(|| (key, find())).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bootstrap_weights_have_a_poisson_distribution() {
        let mut counts = [0_u32; 10];
        let ticks = 2000;
        for tick in 0..ticks {
            for weight in weights(tick) {
                counts[usize::from(weight)] += 1;
            }
        }
        let all = (ticks as f64) * REPLICATES as f64;
        for (weight, share) in [0.3679, 0.3679, 0.1839, 0.0613].iter().enumerate() {
            let found = f64::from(counts[weight]) / all;
            assert!((found - share).abs() < 0.01, "{weight}: {found}");
        }
        assert_eq!(weights(7), weights(7));
        assert_ne!(weights(7), weights(8));
    }

    #[test]
    fn share_error_grows_with_the_samples_of_a_tick() {
        // A share of one half: of independent samples, and of ticks that have 50 equal samples each.
        let error = |of_tick: u64| {
            let (mut part, mut whole) = (Replicates::default(), Replicates::default());
            for sample in 0..10_000_u64 {
                let tick = sample / of_tick;
                let weights = weights(tick);
                whole.add_weights(&weights);
                if weights_of_half(tick) {
                    part.add_weights(&weights);
                }
            }
            part.error_of_share(&whole).expect("replicates")
        };
        // 1.96 * sqrt(0.25 / 10000), and 1.96 * sqrt(0.25 / 200).
        assert!((error(1) - 0.0098).abs() < 0.003, "{}", error(1));
        assert!((error(50) - 0.0693).abs() < 0.02, "{}", error(50));
        let none = Replicates::default();
        assert_eq!(none.error_of_share(&none), None);
    }

    fn weights_of_half(tick: u64) -> bool {
        tick.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0
    }
}
