//! Iterations of the worked examples.

use super::sequence::period;
use super::*;
use crate::examples::Example;

const W1: [f64; 10] = [
    150.0, 120.0, 101.0, 100.0, 99.0, 100.0, 102.0, 100.0, 140.0, 100.0,
];

// answers-24 and answers-27
#[test]
fn warm_up_of_w1_is_two_iterations_and_four_have_none() {
    assert_eq!(warm_up(&W1), 2);
    let mut rest = W1[2..].to_vec();
    assert_eq!(rest.iter().sum::<f64>() / 8.0, 105.25);
    assert_eq!(median(&mut rest), Some(100.0));
    assert_eq!(warm_up(&[150.0, 120.0, 100.0, 100.0]), 0);
}

fn numbers(text: &str) -> Vec<u32> {
    text.split(' ')
        .map(|name| u32::from(name.as_bytes()[0]))
        .collect()
}

// answers-25
#[test]
fn sequence_of_i1_has_a_period_of_three() {
    let run = period(&numbers("I A B C A B C A B C A B C F"), false).expect("a period");
    assert_eq!((run.period, run.first, run.length), (3, 1, 12));
    assert!((run.confidence - 0.857).abs() < 0.001);
}

// answers-26
#[test]
fn random_names_have_no_period() {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u32 % 13
    };
    let names: Vec<u32> = (0..500).map(|_| next()).collect();
    assert_eq!(period(&names, false), None);
    assert_eq!(period(&[1; 100], false), None);
    assert_eq!(period(&[1; 100], true).map(|run| run.period), Some(1));
}

#[test]
fn sequence_may_differ_in_a_tenth() {
    let mut names: Vec<u32> = (0..400).map(|at| at % 4).collect();
    for at in (50..400).step_by(90) {
        names[at] = 77;
    }
    let run = period(&names, false).expect("a period");
    assert_eq!(run.period, 4);
    assert!(run.confidence > 0.9 && run.confidence < 1.0);
}

// answers-30
#[test]
fn messages_that_differ_in_digits_are_one() {
    assert_eq!(joined("step 12 of 300"), "step # of #");
    let mut example = Example::new();
    for number in 0..6 {
        example.range(&format!("step {number}"), number * 100, number * 100 + 90);
        let call = example.call("hipLaunchKernel", number * 100 + 5, number * 100 + 7);
        let launch = example.launch(call);
        example.op("K", number * 100 + 20, number * 100 + 60).launch = Some(launch);
    }
    let found = find(&example.done(), &Options::default()).expect("iterations");
    assert_eq!(found.found, Found::Markers("step #".to_owned()));
    assert_eq!(found.all.len(), 6);
    assert_eq!(
        (found.all[0].pace, found.all[0].gpu, found.all[0].kernels),
        (Some(100_000), 40_000, 1)
    );
    assert_eq!(found.all[5].pace, None);
}

#[test]
fn iterations_without_markers_begin_behind_the_longest_gap() {
    let mut example = Example::new();
    for number in 0..8 {
        let begin = number * 100;
        // The gap before B is the longest.
        for (name, at) in [("A", 50), ("B", 0), ("C", 20)] {
            let at = begin + at;
            example.launched("hipLaunchKernel", (at, at + 1), name, at + 5, at + 15);
        }
    }
    let memory = example.done();
    let found = find(&memory, &Options::default()).expect("iterations");
    assert!(matches!(found.found, Found::Sequence { period: 3, .. }));
    let paces = found.paces();
    assert!(paces.iter().all(|pace| *pace == 100_000.0), "{paces:?}");
    assert!(found.all.iter().all(|iteration| iteration.kernels == 3));
}

// answers-34
#[test]
fn drift_is_told_from_noise() {
    let noise = [3.0, -2.0, 1.0, 0.0, -3.0, 2.0, -1.0];
    let steady: Vec<f64> = (0..50).map(|at| 100.0 + noise[at % 7]).collect();
    let rising: Vec<f64> = steady
        .iter()
        .enumerate()
        .map(|(at, pace)| pace + at as f64 * 0.2)
        .collect();
    assert!(!drifts(&steady, trend(&steady)));
    assert!(drifts(&rising, trend(&rising)));
    assert!((trend(&rising) - 20.0).abs() < 2.0);
}
