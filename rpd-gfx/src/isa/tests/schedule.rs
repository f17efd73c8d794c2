//! The order in which waves and workgroups execute, with the kernels of `testdata/schedule.hip`.

use super::*;
use crate::perf::{Model, PageMemory};
use std::collections::BTreeSet;

static SCHEDULE: &[u8] = include_bytes!("../../../testdata/schedule.co");

/// Runs a kernel with a seed and returns its output.
fn seeded(
    seed: Option<u64>,
    name: &str,
    grid: u32,
    workgroup: u16,
    args: &[&[u8]],
) -> Result<Stats, Fault> {
    let module = Module::load(SCHEDULE);
    let (grid, workgroup) = ([grid, 1, 1], [workgroup, 1, 1]);
    module.dispatch(name, grid, workgroup, 0, args, |dispatch| {
        let stop = AtomicBool::new(false);
        let control = Control {
            // With a seed, one thread executes the dispatch.
            threads: 4,
            stop: &stop,
            seed,
        };
        run_dispatch(dispatch, &Everything, &control).map(|executed| executed.stats)
    })
}

/// Result of 50 unsynchronised additions of each of 4 waves.
fn updates(seed: Option<u64>) -> (u32, Stats) {
    let mut place = vec![0u32];
    let args: [&[u8]; 2] = [&pointer(&mut place), &50u32.to_le_bytes()];
    let stats = seeded(seed, "lost_updates", 256, 256, &args).unwrap();
    (place[0], stats)
}

/// The order in which 10 workgroups of 3 waves each execute.
fn order(seed: u64) -> Vec<u32> {
    let (mut order, mut next) = (vec![u32::MAX; 30], vec![0u32]);
    let args: [&[u8]; 2] = [&pointer(&mut order), &pointer(&mut next)];
    seeded(Some(seed), "arrivals", 1920, 192, &args).unwrap();
    assert_eq!(
        order.iter().copied().collect::<BTreeSet<_>>(),
        (0..30).collect()
    );
    order
}

#[test]
fn schedules_with_the_same_seed_are_the_same() {
    for seed in [0, 1, 2, u64::MAX] {
        assert_eq!(updates(Some(seed)), updates(Some(seed)));
        assert_eq!(order(seed), order(seed));
    }
}

#[test]
fn schedules_with_other_seeds_have_other_outcomes_of_a_race() {
    let outcomes: BTreeSet<u32> = (0..20).map(|seed| updates(Some(seed)).0).collect();
    assert!(outcomes.len() >= 10, "{outcomes:?}");
    assert!(
        outcomes.iter().all(|left| (2..200).contains(left)),
        "{outcomes:?}"
    );
    let orders: BTreeSet<Vec<u32>> = (0..20).map(order).collect();
    assert_eq!(orders.len(), 20);
    // Neither waves nor workgroups arrive in the order of their numbers.
    let mixed = orders
        .iter()
        .filter(|order| !order.is_sorted_by_key(|wave| wave / 3));
    assert!(mixed.count() >= 18);
}

/// Waves are interleaved without a seed as well, so a race has an effect: if 4 waves ran one after the other, they
/// would add 200.
#[test]
fn waves_interleave_without_a_seed() {
    let (left, _) = updates(None);
    assert!((50..200).contains(&left), "{left}");
}

/// A missing barrier has an effect: waves do not simply run one after the other.
#[test]
fn a_missing_barrier_changes_results() {
    let wrong = |seed: Option<u64>| {
        let mut out = vec![u32::MAX; 512];
        seeded(seed, "missing_barrier", 512, 256, &[&pointer(&mut out)]).unwrap();
        (0..512)
            .filter(|&i| out[i] != (i / 256 * 256 + (i % 256 + 64) % 256) as u32 + 1)
            .count()
    };
    let runs: Vec<usize> = (0..200).map(|seed| wrong(Some(seed))).collect();
    assert!(
        runs.contains(&0) && runs.iter().any(|&wrong| wrong != 0),
        "{runs:?}"
    );
}

/// With a seed, counts and clocks are the same in every run, with and without a probe.
#[test]
fn the_seed_determines_counts_and_clocks() {
    #[repr(align(4096))]
    struct Clocks([u64; 3 * 128]);
    let module = Module::load(SCHEDULE);
    let run = |seed: u64, watched: bool| {
        let mut out = Box::new(Clocks([0; 3 * 128]));
        let args: [&[u8]; 1] = [&pointer(&mut out.0)];
        let (stats, counts) = module.dispatch("clocks", [128, 1, 1], [128, 1, 1], 0, &args, |d| {
            let stop = AtomicBool::new(false);
            let control = Control {
                threads: 1,
                stop: &stop,
                seed: Some(seed),
            };
            if watched {
                let local = |_| PageMemory::LOCAL;
                let mut model = Model::new(d, &local);
                let executed = watch_dispatch(d, &Everything, &control, &mut model).unwrap();
                (executed.stats, Some(format!("{:?}", model.finish())))
            } else {
                let executed = run_dispatch(d, &Everything, &control).unwrap();
                (executed.stats, None)
            }
        });
        (stats, counts, out.0.to_vec())
    };
    let first = run(3, true);
    assert!(first == run(3, true), "another run has other counts");
    let (stats, _, clocks) = run(3, false);
    assert_eq!((stats, &clocks), (first.0, &first.2));
    assert_ne!(clocks, run(4, false).2);
    for lane in clocks.chunks(3) {
        let (begin, end, wall) = (lane[0], lane[1], lane[2]);
        assert!(end > begin + 100 * 4 && wall <= end / 17 + 1, "{lane:?}");
    }
}
