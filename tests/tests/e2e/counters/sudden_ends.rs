//! Sudden ends and several processes: what had been counted is there.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use rpd_tests::outputs::Table;
use rpd_tests::run::Outcome;

use super::{pmc, rows, rows_of};

#[test]
fn counters_survive_aborts_and_signals_of_the_program() {
    for (name, code) in [
        ("abort-midway", 134),
        ("segv-midway", 139),
        ("exit-midway", 3),
    ] {
        let outcome = pmc(["SQ_WAVES"]).workload(name, ["300"]).expect_code(code);
        let rows = rows(&outcome);
        // The provider delivers values on a thread of its own, whose queue holds 128 dispatches. On a busy machine
        // the last ones have not been delivered.
        let kept: BTreeSet<u64> = rows.iter().map(|row| row.dispatch).collect();
        assert_eq!(kept.len(), rows.len(), "{name}: none twice");
        // All missing dispatches are reported.
        let late = late(&outcome);
        assert!(kept.len() >= 170, "{name}: {} kept", kept.len());
        assert_eq!(kept.len() + late, 300, "{name}: {late} late");
        assert!(
            kept.iter().all(|dispatch| (1..=300).contains(dispatch)),
            "{name}"
        );
        // 1024 elements, 16 waves.
        assert!(rows.iter().all(|row| row.value == 16.0), "{name}: {rows:?}");
    }
}

/// Number of dispatches that were selected and not counted, according to the ledger.
fn late(outcome: &Outcome) -> usize {
    let line = outcome
        .stderr
        .split_once(" more dispatches were to be counted");
    let word = line.and_then(|(before, _)| before.rsplit(' ').next());
    word.map_or(0, |word| word.parse().expect("a number"))
}

#[test]
fn counters_of_a_killed_program_are_kept() {
    let running = pmc(["SQ_WAVES"]).start_workload("spin", ["progress"]);
    let file = running.directory().join("progress");
    let progress = |at: usize| {
        let bytes = fs::read(&file).unwrap_or_default();
        let eight = bytes
            .get(at..at + 8)
            .and_then(|eight| eight.try_into().ok());
        eight.map_or(0, u64::from_ne_bytes)
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while progress(8) < 3 {
        assert!(Instant::now() < deadline, "spin does not get going");
        std::thread::sleep(Duration::from_millis(20));
    }
    let launches = progress(8);
    let pid = i32::try_from(progress(16)).expect("a process id");
    std::thread::sleep(Duration::from_millis(300));
    // SAFETY: takes no pointers; the process is the workload of this test, which rpd has not yet reaped.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let outcome = running.finish().expect_code(137);
    let rows = rows(&outcome);
    let empty: Vec<f64> = rows
        .iter()
        .filter(|row| row.kernel == "empty_kernel")
        .map(|row| row.value)
        .collect();
    assert!(
        empty.len() as u64 >= launches,
        "{} of {launches}",
        empty.len()
    );
    assert!(empty.iter().all(|waves| *waves == 1.0), "{empty:?}");
}

#[test]
fn each_process_has_its_own_counters() {
    for (mode, expected) in [
        ("tree", &[1, 2, 3][..]),
        ("late", &[1, 2, 3]),
        ("replace", &[1, 3]),
    ] {
        let outcome = pmc(["SQ_WAVES"]).workload("fork-exec", [mode]).success();
        let mut counted = Vec::new();
        for file in outcome.files() {
            // A second image's files are named `..._2`.
            if file.contains("counter_collection") {
                let rows = rows_of(&Table::read(&outcome.out().join(&file)));
                assert!(rows.iter().all(|row| row.value == 16.0), "{mode}: {rows:?}");
                counted.push(rows.len());
            }
        }
        counted.sort_unstable();
        // An exec ends the first image as suddenly as a signal does.
        let sudden = mode == "replace" && counted == [3];
        assert!(
            counted == expected || sudden,
            "{mode}: {counted:?} in {:?}",
            outcome.files()
        );
    }
}

#[test]
fn dispatches_of_many_threads_are_counted_once() {
    let outcome = pmc(["SQ_WAVES"])
        .workload("many-threads", ["20", "5"])
        .success();
    let rows = rows(&outcome);
    let mut dispatches: Vec<u64> = rows.iter().map(|row| row.dispatch).collect();
    dispatches.sort_unstable();
    assert!(dispatches.into_iter().eq(1..=100), "{} rows", rows.len());
    assert!(rows.iter().all(|row| row.value == 16.0));
}
