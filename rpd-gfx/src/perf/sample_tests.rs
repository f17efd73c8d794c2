//! Samples and timelines of kernels for which the time of each part is known.

#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

use super::*;
use crate::codeobj::bundle::pick;
use crate::device::Device;
use crate::isa::tests::{Everything, Module};
use crate::isa::{Control, Dispatch, Kind, Valu, follow_dispatch};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

const INSIDE: &[u8] = include_bytes!("../../../tests/workloads/kernels/prebuilt/inside.hipfb");

pub(super) fn device() -> &'static Device {
    Device::find("gfx90a").unwrap()
}

fn samples_everything() -> Selection {
    Selection {
        samples: Some(1 << 17),
        ..Selection::default()
    }
}

fn record(dispatch: &Dispatch<'_>, selection: &Selection, threads: usize) -> Vec<Timeline> {
    let stop = AtomicBool::new(false);
    let control = Control {
        threads,
        stop: &stop,
        seed: None,
    };
    let mut recorders = Recorder::for_threads(dispatch, selection, threads);
    follow_dispatch(dispatch, &Everything, &control, &mut recorders).unwrap();
    Timeline::all(&Recorder::merge(recorders), device(), dispatch.program)
}

pub(super) fn timelines(kernel: &str, groups: u32, items: u16, args: &[&[u8]]) -> Vec<Timeline> {
    recorded(kernel, groups, items, args, &samples_everything())
}

fn recorded(
    kernel: &str,
    groups: u32,
    items: u16,
    args: &[&[u8]],
    selection: &Selection,
) -> Vec<Timeline> {
    let module = Module::load(&pick(INSIDE, &device().target()).unwrap());
    let grid = [groups * u32::from(items), 1, 1];
    module.dispatch(kernel, grid, [items, 1, 1], 0, args, |dispatch| {
        record(dispatch, selection, 1)
    })
}

/// Memory that a kernel writes.
pub(super) struct Numbers(Vec<f32>);

impl Numbers {
    pub(super) fn new(count: u32) -> Self {
        Self(vec![0.0; count as usize])
    }

    pub(super) fn pointer(&mut self) -> [u8; 8] {
        (self.0.as_mut_ptr() as u64).to_le_bytes()
    }
}

/// Timelines of a kernel whose arguments are an array of numbers and a number of rounds.
pub(super) fn simple(kernel: &str, groups: u32, items: u16, rounds: i32) -> Vec<Timeline> {
    let mut out = Numbers::new(groups * 256);
    timelines(
        kernel,
        groups,
        items,
        &[&out.pointer(), &rounds.to_le_bytes()],
    )
}

/// The recording of a kernel whose arguments are an array of numbers and a number of rounds.
pub(super) fn simple_recorded(
    kernel: &str,
    groups: u32,
    items: u16,
    rounds: i32,
    selection: &Selection,
) -> Vec<Timeline> {
    let mut out = Numbers::new(groups * 256);
    let args: [&[u8]; 2] = [&out.pointer(), &rounds.to_le_bytes()];
    recorded(kernel, groups, items, &args, selection)
}

/// The samples of a dispatch that took a second.
fn of_a_second(sampler: &mut Sampler, timelines: &[Timeline]) -> Vec<Sample> {
    let mut samples = Vec::new();
    sampler.dispatch(timelines, device(), 1_000_000_000, &mut |sample| {
        samples.push(*sample);
    });
    samples
}

pub(super) fn take(timelines: &[Timeline], method: Method, seed: u64) -> Vec<Sample> {
    let interval = match method {
        Method::HostTrap => 20_000,
        Method::Stochastic => 1 << 17,
    };
    let mut sampler = Sampler::new(method, interval, device(), seed);
    let samples = of_a_second(&mut sampler, timelines);
    assert!(samples.windows(2).all(|pair| pair[0].time <= pair[1].time));
    for sample in &samples {
        assert!(sample.time < 1_000_000_000 && sample.waves > 0);
        assert_eq!(sample.full & !sample.chosen, 0, "{sample:?}");
        let own = 1 << sample.pipe as u8;
        match sample.stalled {
            None => assert_eq!(
                (sample.chosen & own, sample.full & own),
                (own, 0),
                "{sample:?}"
            ),
            Some(Reason::PipeFull) => assert_eq!(sample.full & own, own),
            // Another wave won.
            Some(Reason::NotChosen) => assert_eq!(
                (sample.chosen & own, sample.full & own),
                (own, 0),
                "{sample:?}"
            ),
            Some(reason) => assert!(
                reason != Reason::Dependency || !matches!(sample.pipe, Pipe::Valu | Pipe::Matrix),
                "{sample:?}"
            ),
        }
    }
    samples
}

/// Shares of the samples by reason; `None` for issued ones.
pub(super) fn shares(samples: &[Sample]) -> BTreeMap<Option<Reason>, f64> {
    let mut shares = BTreeMap::new();
    for sample in samples {
        *shares.entry(sample.stalled).or_insert(0.0) += 1.0 / samples.len() as f64;
    }
    shares
}

fn share(samples: &[Sample], of: impl Fn(&Sample) -> bool) -> f64 {
    samples.iter().filter(|sample| of(sample)).count() as f64 / samples.len() as f64
}

/// Checks sampling-11.
#[test]
fn a_dependent_chain_is_sampled_as_waiting_for_results() {
    let timelines = simple("dependent_chain", 1, 64, 200);
    let shares = shares(&take(&timelines, Method::Stochastic, 1));
    assert!(shares[&None] > 0.45, "{shares:?}");
    // The arbiter chooses the only wave, and the pipe waits for the result.
    assert!(shares[&Some(Reason::PipeFull)] > 0.40, "{shares:?}");
    assert!(!shares.contains_key(&Some(Reason::NotChosen)), "{shares:?}");
}

/// Checks sampling-10.
#[test]
fn independent_chains_of_many_waves_are_sampled_as_waiting_for_the_arbiter() {
    // 8 workgroups of four waves on each unit: eight waves on each SIMD.
    let timelines = simple("independent_chains", 8 * 104, 256, 20);
    assert_eq!(timelines.len(), 104);
    let samples = take(&timelines, Method::Stochastic, 2);
    let shares = shares(&samples);
    assert!((0.11..0.15).contains(&shares[&None]), "{shares:?}");
    assert!(shares[&Some(Reason::NotChosen)] > 0.75, "{shares:?}");
    assert!(samples.iter().filter(|s| s.waves == 32).count() * 10 > samples.len() * 9);
}

/// Checks sampling-12.
#[test]
fn matrix_instructions_are_sampled_as_waiting_for_their_unit() {
    let samples = take(&simple("matrix_chain", 8, 256, 50), Method::Stochastic, 3);
    let matrix = |sample: &Sample| matches!(sample.kind, Kind::Matrix(_));
    let found = shares(
        &samples
            .iter()
            .filter(|s| matrix(s))
            .copied()
            .collect::<Vec<_>>(),
    );
    assert!(share(&samples, matrix) > 0.9, "{:?}", shares(&samples));
    assert!(found[&None] < 0.10, "{found:?}");
    assert!(found[&Some(Reason::PipeFull)] > 0.85, "{found:?}");
}

/// Checks sampling-7.
#[test]
fn a_pointer_chase_is_sampled_at_one_waiting_instruction() {
    let mut out = Numbers::new(64);
    // Each pointer is in its own cache line, and together they exceed the caches.
    let mut list = vec![0u64; 1 << 22];
    let base = list.as_mut_ptr() as u64;
    for n in 0..1 << 18 {
        let next = (n * 5 + 4099) % (1 << 18);
        list[16 * n] = base + 128 * next as u64;
    }
    let pointer = base.to_le_bytes();
    let args: [&[u8]; 3] = [&out.pointer(), &pointer, &500i32.to_le_bytes()];
    let samples = take(
        &timelines("pointer_chase", 1, 64, &args),
        Method::Stochastic,
        4,
    );
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    for sample in samples
        .iter()
        .filter(|s| s.stalled == Some(Reason::Counter))
    {
        *places.entry(sample.offset).or_default() += 1;
        assert!(matches!(sample.kind, Kind::Wait(..)));
    }
    let most = places.values().max().unwrap();
    assert!(
        *most as f64 > 0.95 * samples.len() as f64,
        "{places:?} of {}",
        samples.len()
    );
}

/// Checks sampling-8.
#[test]
fn waves_are_sampled_as_waiting_for_a_slow_one_at_the_barrier() {
    waits_at_the_barrier(50);
    // A number of rounds beyond which there are gaps in the recording.
    waits_at_the_barrier(2000);
}

fn waits_at_the_barrier(rounds: i32) {
    let mut out = Numbers::new(256);
    let args: [&[u8]; 3] = [&out.pointer(), &rounds.to_le_bytes(), &32i32.to_le_bytes()];
    let samples = take(
        &timelines("barrier_imbalance", 1, 256, &args),
        Method::HostTrap,
        5,
    );
    let waits = |s: &Sample| s.stalled == Some(Reason::Barrier);
    for wave in 0..4 {
        let own: Vec<_> = samples
            .iter()
            .filter(|s| s.number == wave)
            .copied()
            .collect();
        let waiting = share(&own, waits);
        // The first works four times as long as the others.
        let expected = if wave == 0 { 0.0..0.03 } else { 0.70..0.78 };
        assert!(expected.contains(&waiting), "wave {wave}: {waiting}");
    }
}

/// Checks sampling-9.
#[test]
fn sleeping_waves_are_sampled_at_an_internal_instruction() {
    let samples = take(&simple("sleeper", 1, 64, 100), Method::Stochastic, 6);
    // 128 quads of sleep and a loop around it.
    let asleep = share(&samples, |s| s.stalled == Some(Reason::Internal));
    assert!(asleep > 0.9, "{asleep}");
}

#[test]
fn bank_conflicts_keep_the_lds_busy_for_longer() {
    let waits = |stride: i32| {
        let mut out = Numbers::new(8 * 256);
        let args: [&[u8]; 3] = [
            &out.pointer(),
            &2000i32.to_le_bytes(),
            &stride.to_le_bytes(),
        ];
        let timelines = timelines("bank_conflicts", 8, 256, &args);
        timelines.iter().map(|t| t.busy).fold(0.0, f64::max)
    };
    let (all, none) = (waits(32), waits(1));
    assert!(all > 2.0 * none, "{all} {none}");
}

/// Checks sampling-14.
#[test]
fn phases_of_a_kernel_have_samples_in_proportion_to_their_cycles() {
    let mut out = Numbers::new(8 * 256);
    let args: [&[u8]; 3] = [&out.pointer(), &300i32.to_le_bytes(), &900i32.to_le_bytes()];
    let timelines = timelines("two_phases", 1, 256, &args);
    let samples = take(&timelines, Method::Stochastic, 7);
    // The first phase is a function behind the kernel's code.
    let issued = &timelines[0].waves[0].issued;
    let call = issued.iter().position(|i| i.indirect).unwrap();
    let function = issued[call + 1].offset;
    let fma = |s: &Sample| s.kind == Kind::Valu(Valu::FmaF32);
    let first = samples
        .iter()
        .filter(|s| fma(s) && s.offset >= function)
        .count() as f64;
    let second = samples
        .iter()
        .filter(|s| fma(s) && s.offset < function)
        .count() as f64;
    let n = first + second;
    let deviation = (n * 0.25 * 0.75).sqrt();
    assert!(
        (first - n / 4.0).abs() < 3.0 * deviation + 0.01 * n,
        "{first} to {second}"
    );
}

/// Checks sampling-19.
#[test]
fn half_the_sampling_interval_gives_twice_the_samples() {
    let timelines = simple("independent_chains", 208, 256, 20);
    for method in [Method::HostTrap, Method::Stochastic] {
        let take = |interval| {
            let mut sampler = Sampler::new(method, interval, device(), 9);
            of_a_second(&mut sampler, &timelines).len() as f64
        };
        let (many, few) = (take(1 << 17), take(1 << 18));
        assert!(
            (many - 2.0 * few).abs() < 3.0 * (many + 4.0 * few).sqrt(),
            "{many} {few}"
        );
    }
    // All 32 wave slots of 104 units are occupied, and a part of the waves is recorded.
    for rounds in [5, 60] {
        let timelines = simple("independent_chains", 8 * 104, 256, rounds);
        let mut sampler = Sampler::new(Method::HostTrap, 1_000_000, device(), 9);
        let trapped = of_a_second(&mut sampler, &timelines).len();
        assert!((94_000..=104_000).contains(&trapped), "{trapped}");
    }
}

/// Two waves that sleep at the same time take as long as one.
#[test]
fn waves_that_sleep_at_the_same_time_keep_a_unit_busy_once() {
    let selection = Selection {
        samples: Some(1 << 12),
        ..Selection::default()
    };
    // 104 units, half of which have a second workgroup.
    let timelines = simple_recorded("sleeper", 156, 64, 5000, &selection);
    assert_eq!(timelines.len(), 104);
    let most = timelines.iter().map(|t| t.busy).fold(0.0, f64::max);
    let least = timelines.iter().map(|t| t.busy).fold(f64::MAX, f64::min);
    assert!(least > 0.97 * most, "{least} to {most}");
}

/// Checks sampling-17.
#[test]
fn a_seed_determines_samples() {
    let take = |seed| {
        take(
            &simple("divergent_branch", 16, 256, 20),
            Method::Stochastic,
            seed,
        )
    };
    assert_eq!(take(1), take(1));
    assert_ne!(take(1), take(2));
}

#[test]
fn the_measured_part_of_a_long_dispatch_is_sampled_for_all_of_it() {
    let length = |rounds| {
        let timelines = simple("dependent_chain", 4, 64, rounds);
        let recorded: usize = timelines
            .iter()
            .flat_map(|t| &t.waves)
            .map(|w| w.issued.len())
            .sum();
        let quads = timelines.iter().map(|t| t.busy).fold(0.0, f64::max);
        (recorded, quads)
    };
    let ((few, short), (many, long)) = (length(100), length(20_000));
    assert!(few > 4 * 3200 && many < 200_000, "{few} {many}");
    let ratio = long / short;
    assert!((180.0..220.0).contains(&ratio), "{ratio}");
}

#[test]
fn a_short_dispatch_has_samples_at_any_effort() {
    for rounds in 1..40 {
        let selection = Selection {
            samples: Some(1),
            ..Selection::default()
        };
        let few = simple_recorded("independent_chains", 8, 256, rounds, &selection);
        let recorded = few.iter().flat_map(|t| &t.waves).map(|w| w.issued.len());
        assert!(recorded.sum::<usize>() > 0, "{rounds} rounds");
    }
}

#[test]
fn timelines_of_traced_units_have_every_instruction_of_every_wave() {
    let module = Module::load(&pick(INSIDE, &device().target()).unwrap());
    let mut out = Numbers::new(416 * 256);
    let selection = Selection {
        engines: 1 << 2,
        target: Some(1),
        samples: None,
    };
    let args: [&[u8]; 2] = [&out.pointer(), &i32::to_le_bytes(3)];
    let timelines = module.dispatch(
        "independent_chains",
        [416 * 256, 1, 1],
        [256, 1, 1],
        0,
        &args,
        |dispatch| record(dispatch, &selection, 2),
    );
    let units: Vec<_> = timelines.iter().map(|t| t.unit).collect();
    assert_eq!(units, (26..39).collect::<Vec<_>>());
    for timeline in &timelines {
        assert_eq!(timeline.waves.len(), 16);
        for wave in &timeline.waves {
            let last = wave.issued.last().unwrap();
            assert_eq!(last.kind, Kind::End);
            assert_eq!(last.issue + 1, wave.end);
            assert!(
                wave.issued
                    .windows(2)
                    .all(|pair| pair[0].issue < pair[1].head)
            );
            assert!(
                wave.issued
                    .iter()
                    .all(|i| i.head <= i.ready && i.ready <= i.issue)
            );
        }
    }
}
