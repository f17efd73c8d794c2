//! Collection periods, on `spin`, which calls all the time and launches now and then.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rpd_tests::run::{Outcome, Rpd};

use super::rows;

const MS: u64 = 1_000_000;

/// Runs `spin` until `after` its first call, by its own count.
fn spin(options: &[&str], after: Duration) -> Outcome {
    let always = [
        "--pmc",
        "SQ_WAVES",
        "--hip-runtime-trace",
        "--kernel-trace",
        "-f",
        "csv",
        "--collection-period-unit",
        "msec",
    ];
    let running = Rpd::new(always.iter().chain(options)).start_workload("spin", ["progress"]);
    let progress = running.directory().join("progress");
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read(&progress).map_or(true, |bytes| bytes.iter().take(8).all(|byte| *byte == 0)) {
        assert!(Instant::now() < deadline, "spin does not get going");
        sleep(Duration::from_millis(5));
    }
    sleep(after);
    running.signal(libc::SIGTERM);
    running.finish().expect_code(128 + libc::SIGTERM)
}

/// First and last start of a call in each stretch of recording. A delay is a gap between two calls that is at least as
/// long; within a stretch calls are about a millisecond apart.
fn stretches(outcome: &Outcome, delay: u64) -> Vec<(u64, u64)> {
    let mut starts = outcome.csv("hip_api_trace").numbers("Start_Timestamp");
    starts.sort_unstable();
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    for start in starts {
        match stretches.last_mut() {
            Some((_, last)) if start - *last < delay => *last = start,
            _ => stretches.push((start, start)),
        }
    }
    stretches
}

/// Every counted dispatch began in one of the stretches, or a moment after one of its last calls; so did every traced one.
fn assert_within(outcome: &Outcome, stretches: &[(u64, u64)]) {
    let within = |start: u64| {
        stretches.iter().any(|(first, last)| {
            (first.saturating_sub(100 * MS)..=last + 100 * MS).contains(&start)
        })
    };
    let rows = rows(outcome);
    assert!(
        rows.iter().all(|row| within(row.start)),
        "{rows:?} {stretches:?}"
    );
    let traced = outcome.csv("kernel_trace").numbers("Start_Timestamp");
    assert!(traced.iter().all(|start| within(*start)), "{traced:?}");
    let counted: Vec<u64> = rows.iter().map(|row| row.start).collect();
    // The signal may have come between the end of a dispatch and its values.
    let missing = traced.len().saturating_sub(counted.len());
    assert!(
        traced.starts_with(&counted) && missing <= 1,
        "counters and traces are gated alike: {counted:?} {traced:?}"
    );
    assert!(!counted.is_empty());
}

#[test]
fn a_collection_period_repeats_as_often_as_requested() {
    let outcome = spin(&["-P", "400:300:2"], Duration::from_millis(2100));
    let stretches = stretches(&outcome, 400 * MS);
    assert_eq!(stretches.len(), 2, "{stretches:?}");
    assert_within(&outcome, &stretches);
}

/// Checks command-line-283.
#[test]
fn collection_periods_run_in_order_and_the_last_is_endless() {
    let options = ["-P", "0:200:1", "400:200:2", "300:200:0"];
    let outcome = spin(&options, Duration::from_millis(3200));
    let stretches = stretches(&outcome, 300 * MS);
    assert!(stretches.len() >= 4, "the last goes on: {stretches:?}");
    assert_within(&outcome, &stretches);
}
