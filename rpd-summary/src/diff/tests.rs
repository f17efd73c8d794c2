//! Tests of the comparison.

use std::collections::HashMap;

use super::*;
use rpd_core::domain::Kind;
use rpd_core::ids::{CorrelationId, Nanoseconds, StringId, ThreadId};
use rpd_core::options::KernelNames;
use rpd_core::session::Session;
use rpd_core::session::{ArgsRef, CallRow};

fn session(calls: &[(&str, u64)]) -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    for &(name, duration) in calls {
        let operation = session.add_operation(Kind::HipRuntime, name);
        let calls = &mut session.calls;
        calls.push(CallRow {
            operation,
            message: StringId(0),
            start: Nanoseconds(1),
            end: Nanoseconds(1 + duration),
            thread: ThreadId(1),
            correlation: CorrelationId(1),
            ancestor: CorrelationId(0),
            args: ArgsRef::default(),
        });
    }
    session
}

type Runs<'a> = &'a [&'a [(&'a str, u64)]];

/// The differences between two sides of one run for each list.
fn differences(before: Runs<'_>, after: Runs<'_>) -> Result<Vec<Difference>, SummaryError> {
    let mut durations = Durations::default();
    for (side, runs) in [(SideOf::Before, before), (SideOf::After, after)] {
        for calls in runs {
            durations.begin_run(side)?;
            durations.add(&session(calls), KernelNames::default())?;
        }
    }
    Ok(durations.differences()?.iter().collect())
}

fn change(before: &[u64], after: &[u64]) -> Change {
    let calls = |values: &[u64]| -> Vec<[(&str, u64); 1]> {
        values.iter().map(|&value| [("a", value)]).collect()
    };
    let (before, after) = (calls(before), calls(after));
    let [before, after] = [&before, &after].map(|calls| {
        let runs = calls.iter().map(|call| &call[..]);
        runs.collect::<Vec<_>>()
    });
    let found = differences(&before, &after).expect("figures");
    found[0].change(Measure::Median).expect("on both sides")
}

#[test]
fn differences_are_ordered_by_their_effect() -> Result<(), SummaryError> {
    let before: Runs<'_> = &[&[("a", 100), ("a", 102), ("a", 98), ("b", 10), ("gone", 5)]];
    let after: Runs<'_> = &[&[("a", 200), ("a", 201), ("a", 199), ("b", 10), ("new", 7)]];
    let found = differences(before, after)?;
    let names: Vec<&str> = found.iter().map(|row| &*row.name).collect();
    assert_eq!(names, ["a", "new", "gone", "b"]);
    let a = &found[0];
    let change = a.change(Measure::Median).expect("on both sides");
    assert_eq!(change.percent(), Some(100.0));
    assert_eq!(
        change.is_beyond_chance(),
        None,
        "the spread of one run is unknown"
    );
    let before = a.before.as_ref().expect("it was there");
    assert_eq!((before.calls, before.total), (3, 300));
    assert!((before.share - 300.0 * 100.0 / 315.0).abs() < 1e-9);
    assert_eq!(found[1].change(Measure::Median), None);
    Ok(())
}

#[test]
fn differences_count_a_run_once_whatever_its_number_of_calls() -> Result<(), SummaryError> {
    let before: Runs<'_> = &[
        &[("a", 100); 9],
        &[("a", 110)],
        &[("a", 120), ("a", 1000), ("a", 10)],
    ];
    let after: Runs<'_> = &[&[("a", 110)], &[("a", 110)]];
    let found = differences(before, after)?;
    let medians = found[0].change(Measure::Median).expect("on both sides");
    assert_eq!((medians.before, medians.after), (110.0, 110.0));
    let totals = found[0].change(Measure::Total).expect("on both sides");
    assert_eq!((totals.before, totals.after), (900.0, 110.0));
    Ok(())
}

#[test]
fn change_is_beyond_chance_by_the_spread_of_runs() {
    let found = change(&[100, 101, 99], &[110, 111, 109]);
    // Both sides deviate by 1; four degrees of freedom.
    assert!(
        (found.spread.expect("three runs") - 1.437).abs() < 5e-3,
        "{found:?}"
    );
    assert_eq!(found.is_beyond_chance(), Some(true));
    assert_eq!(
        change(&[100, 101, 99], &[105, 106, 104]).is_beyond_chance(),
        Some(false)
    );
    assert_eq!(
        change(&[100, 130, 70], &[150, 200, 120]).is_beyond_chance(),
        Some(false)
    );
    assert_eq!(change(&[100], &[110, 111, 109]).is_beyond_chance(), None);
    assert_eq!(
        change(&[100, 100], &[101, 101]).is_beyond_chance(),
        Some(true)
    );
}

#[test]
fn difference_of_a_name_that_repeats_by_chance_has_the_spread_of_its_group()
-> Result<(), SummaryError> {
    let before: Runs<'_> = &[
        &[("still", 100), ("noisy", 100)],
        &[("still", 100), ("noisy", 150)],
    ];
    let after: Runs<'_> = &[
        &[("still", 110), ("noisy", 100)],
        &[("still", 110), ("noisy", 150)],
    ];
    for row in differences(before, after)? {
        let change = row.change(Measure::Median).expect("on both sides");
        assert_eq!(change.is_beyond_chance(), Some(false), "{}", row.name);
    }
    Ok(())
}

#[test]
fn typical_duration_is_not_changed_by_delayed_calls() -> Result<(), SummaryError> {
    let quiet = [
        ("a", 100),
        ("a", 101),
        ("a", 102),
        ("a", 103),
        ("a", 104),
        ("a", 105),
    ];
    let mut busy = quiet;
    for (_, duration) in &mut busy[3..] {
        *duration *= 9;
    }
    let found = differences(&[&quiet], &[&busy])?;
    let change = |measure| found[0].change(measure).expect("on both sides");
    let typical = change(Measure::Typical);
    assert_eq!((typical.before, typical.after), (101.0, 101.0));
    let median = change(Measure::Median);
    assert_eq!((median.before, median.after), (102.5, 514.5));
    let one = differences(&[&[("a", 7)]], &[&[("a", 7), ("a", 9)]])?;
    let typical = one[0].change(Measure::Typical).expect("on both sides");
    assert_eq!((typical.before, typical.after), (7.0, 7.0));
    Ok(())
}

#[test]
fn group_spread_of_many_names_is_less_uncertain() -> Result<(), SummaryError> {
    // Deviations of 1. Four kernels have four degrees of freedom each; ranges depend on one another.
    for (group, expected) in [(Group::Kernel, 1.163), (Group::Region, 1.437)] {
        let mut durations = Durations::default();
        for (side, runs) in [
            (SideOf::Before, [100, 101, 99]),
            (SideOf::After, [110, 111, 109]),
        ] {
            for duration in runs {
                durations.begin_run(side)?;
                for name in ["a", "b", "c", "d"] {
                    let key = durations.key(group, name);
                    durations.push(key, duration)?;
                }
            }
        }
        for row in durations.differences()?.iter() {
            let change = row.change(Measure::Typical).expect("on both sides");
            let spread = change.spread.expect("three runs");
            assert!((spread - expected).abs() < 5e-3, "{spread}");
        }
    }
    Ok(())
}

#[test]
fn share_of_copies_is_of_the_time_of_copies_and_kernels() -> Result<(), SummaryError> {
    let mut durations = Durations::default();
    durations.begin_run(SideOf::Before)?;
    for (group, name, duration) in [
        (Group::Kernel, "k", 60),
        (Group::Copy, "c", 20),
        (Group::Region, "r", 500),
        (Group::Kernel, "l", 20),
    ] {
        let key = durations.key(group, name);
        durations.push(key, duration)?;
    }
    let found: Vec<Difference> = durations.differences()?.iter().collect();
    let shares: HashMap<&str, f64> = found.iter().map(|row| (&*row.name, row.share())).collect();
    assert_eq!(
        [shares["k"], shares["c"], shares["l"], shares["r"]],
        [75.0, 20.0, 25.0, 100.0]
    );
    Ok(())
}

#[test]
fn uncertainty_is_greater_for_few_runs() {
    for (freedom, factor) in [(2.0, 1.86), (4.0, 1.44), (8.0, 1.256), (18.0, 1.147)] {
        assert!((uncertainty(freedom) - factor).abs() < 0.02, "{freedom}");
    }
}
