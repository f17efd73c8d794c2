//! Histograms of samples of kernels whose distribution is known exactly.

use super::sample_tests::{Numbers, device, shares, simple, take, timelines};
use super::*;
use crate::isa::{Kind, Valu};
use std::collections::BTreeMap;

/// The value of chi-squared that one in 10,000 random experiments exceeds, for some degrees of freedom: the approximation of Wilson
/// and Hilferty.
fn limit(freedom: usize) -> f64 {
    let part = 2.0 / (9.0 * freedom as f64);
    freedom as f64 * (1.0 - part + 3.719 * part.sqrt()).powi(3)
}

/// Chi-squared of these counts against equal ones.
fn against_equal(counts: &[usize]) -> f64 {
    let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    let part = |&count: &usize| (count as f64 - expected).powi(2) / expected;
    counts.iter().map(part).sum()
}

/// Chi-squared of two histograms against their common distribution, and its degrees of freedom.
fn against_each_other<K: Ord + Copy>(a: &BTreeMap<K, f64>, b: &BTreeMap<K, f64>) -> (f64, usize) {
    let (all_a, all_b): (f64, f64) = (a.values().sum(), b.values().sum());
    let keys: std::collections::BTreeSet<K> = a.keys().chain(b.keys()).copied().collect();
    let count = |of: &BTreeMap<K, f64>, key| of.get(key).copied().unwrap_or(0.0);
    let mut sum = 0.0;
    for key in &keys {
        let share = (count(a, key) + count(b, key)) / (all_a + all_b);
        for (of, all) in [(a, all_a), (b, all_b)] {
            sum += (count(of, key) - share * all).powi(2) / (share * all);
        }
    }
    (sum, keys.len() - 1)
}

fn is_fma(kind: Kind) -> bool {
    kind == Kind::Valu(Valu::FmaF32)
}

/// Offsets of the multiply-adds of a chain that take the same time at each execution.
fn of_equal_cost(timelines: &[Timeline]) -> Vec<u32> {
    let mut quads: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for issued in timelines.iter().flat_map(|t| &t.waves).map(|w| &w.issued) {
        for pair in issued.windows(2).filter(|pair| is_fma(pair[0].kind)) {
            let taken = pair[1].head - pair[0].head;
            quads.entry(pair[0].offset).or_default().push(taken);
        }
    }
    quads.retain(|_, taken| taken.iter().all(|&quads| quads == 2));
    quads.into_keys().collect()
}

/// Checks sampling-13.
#[test]
fn straight_code_of_equal_cost_has_equal_shares() {
    for method in [Method::HostTrap, Method::Stochastic] {
        let timelines = simple("dependent_chain", 4, 64, 200);
        let places = of_equal_cost(&timelines);
        assert!(places.len() >= 20, "{places:?}");
        for seed in 1..=5 {
            let mut counts: BTreeMap<u32, usize> = places.iter().map(|&place| (place, 0)).collect();
            for sample in take(&timelines, method, seed) {
                if let Some(count) = counts.get_mut(&sample.offset) {
                    *count += 1;
                }
            }
            let counts: Vec<usize> = counts.into_values().collect();
            assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
            let squares = against_equal(&counts);
            assert!(
                squares < limit(counts.len() - 1),
                "{method:?}: {squares} of {counts:?}"
            );
        }
    }
}

#[test]
fn the_chi_squared_limit_equals_that_of_tables() {
    for (freedom, value) in [(10, 35.564), (30, 67.633)] {
        assert!(
            (limit(freedom) / value - 1.0).abs() < 0.02,
            "{freedom}: {}",
            limit(freedom)
        );
    }
    // Samples of only the first of two instructions are not equal shares.
    assert!(against_equal(&[100, 0]) > limit(1));
}

/// The shares of reasons are equal at one interval and at half of it.
/// Checks sampling-19.
#[test]
fn shares_of_stall_reasons_do_not_depend_on_the_interval() {
    let timelines = simple("independent_chains", 208, 256, 20);
    for method in [Method::HostTrap, Method::Stochastic] {
        let take = |interval, seed| {
            let mut sampler = Sampler::new(method, interval, device(), seed);
            let mut samples = Vec::new();
            sampler.dispatch(&timelines, device(), 100_000_000, &mut |sample| {
                samples.push(*sample);
            });
            let count = samples.len() as f64;
            let shares = shares(&samples).into_iter();
            shares
                .map(|(reason, share)| (reason, share * count))
                .collect()
        };
        let (often, seldom): (BTreeMap<_, f64>, BTreeMap<_, f64>) =
            (take(1 << 16, 9), take(1 << 17, 10));
        let (squares, freedom) = against_each_other(&often, &seldom);
        assert!(
            squares < limit(freedom),
            "{method:?}: {squares}, {often:?}, {seldom:?}"
        );
    }
}

/// Kernel `k` enables the first `k` lanes. Where a branch diverges, each side executes with its lanes only.
/// Checks sampling-5.
#[test]
fn samples_have_the_execution_mask_of_their_kernel() {
    for active in 1..=64 {
        let mut out = Numbers::new(256);
        let args: [&[u8]; 3] = [
            &out.pointer(),
            &i32::to_le_bytes(active),
            &100i32.to_le_bytes(),
        ];
        let samples = take(&timelines("lane_mask", 1, 256, &args), Method::HostTrap, 8);
        let masks: Vec<u64> = (samples.iter().filter(|s| is_fma(s.kind)))
            .map(|sample| sample.exec)
            .collect();
        assert!(masks.len() > 50);
        let expected = u64::MAX >> (64 - active);
        assert!(masks.iter().all(|&mask| mask == expected), "{active}");
    }
    let timelines = simple("divergent_branch", 4, 256, 20);
    for method in [Method::HostTrap, Method::Stochastic] {
        let (mut odd, mut even) = (0, 0);
        for sample in take(&timelines, method, 9) {
            match sample.exec {
                0xAAAA_AAAA_AAAA_AAAA => odd += 1,
                0x5555_5555_5555_5555 => even += 1,
                mask => assert_eq!(mask, u64::MAX),
            }
        }
        assert!(odd > 100 && even > 100, "{odd} and {even}");
    }
}
