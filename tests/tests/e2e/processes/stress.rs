//! The direct provider beside programs that do everything at once.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::{Outcome, Rpd};

/// What is recorded of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Recording {
    /// Calls, dispatches and copies, one by one.
    Full,
    /// Sums, and one by one only the latest dispatches and copies, in 256 KiB.
    Light,
}

impl Recording {
    fn options(self) -> &'static [&'static str] {
        match self {
            Recording::Full => &[
                "--hip-trace",
                "--kernel-trace",
                "--memory-copy-trace",
                "--provider",
                "direct",
                "-f",
                "rocpd",
            ],
            Recording::Light => &["--light", "--light-keep", "256K", "-f", "rocpd", "csv"],
        }
    }

    /// Dispatches and copies in what a run has written.
    fn counts(self, outcome: &Outcome) -> [u64; 2] {
        let path = outcome.file("results.db");
        let database = Database::open(&path);
        let number = |query: &str| u64::try_from(database.number(query)).expect("a count");
        match self {
            Recording::Full => {
                let twice = number("SELECT count(*) - count(DISTINCT dispatch_id) FROM kernels");
                assert_eq!(twice, 0, "{}", outcome.stderr);
                let wrong = "SELECT count(*) FROM kernels WHERE \"end\" < start OR start = 0";
                assert_eq!(number(wrong), 0, "{}", outcome.stderr);
                [
                    number("SELECT count(*) FROM kernels"),
                    number("SELECT count(*) FROM memory_copies"),
                ]
            }
            Recording::Light => {
                let sum = |condition: &str| {
                    number(&format!(
                        "SELECT coalesce(sum(count), 0) FROM rpd_device_total WHERE {condition}"
                    ))
                };
                let totals = Table::read(&outcome.file("device_totals.csv"));
                let counts = [sum("operation_id IS NULL"), sum("operation_id IS NOT NULL")];
                assert_eq!(
                    totals.numbers("Count").iter().sum::<u64>(),
                    counts.iter().sum::<u64>()
                );
                counts
            }
        }
    }
}

/// The numbers that the program printed.
fn printed(stdout: &str) -> [u64; 2] {
    let words: Vec<&str> = stdout.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
    match (number(0), number(2)) {
        (Some(launches), Some(copies)) => [launches, copies],
        _ => panic!("the program printed: {stdout}"),
    }
}

/// What had been waited for a quarter of a second before `killed`, a time on `CLOCK_BOOTTIME` in nanoseconds.
fn done_before(progress: &Path, killed: u64) -> [u64; 2] {
    let text = fs::read_to_string(progress).unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let mut numbers = line.split(' ').map(|word| word.parse::<u64>().ok());
        Some([numbers.next()??, numbers.next()??, numbers.next()??])
    });
    let old = lines.take_while(|[time, ..]| time + 250_000_000 <= killed);
    old.last()
        .map_or([0; 2], |[_, launches, copies]| [launches, copies])
}

fn boot_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is valid for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// A run of `seconds` that ends by itself: every launch and copy is recorded, once.
fn whole_round(recording: Recording, seconds: u64, threads: u64, seed: u64, more: &[&str]) {
    let [seconds, threads, seed] = [seconds, threads, seed].map(|number| number.to_string());
    let arguments = [&[seconds.as_str(), &threads, &seed], more].concat();
    let outcome = Rpd::new(recording.options())
        .limit(Duration::from_secs(300))
        .workload("stress", &arguments)
        .success();
    assert_eq!(
        recording.counts(&outcome),
        printed(&outcome.stdout),
        "{arguments:?}: {}",
        outcome.stderr
    );
    assert!(!outcome.stderr.contains("WARNING"), "{}", outcome.stderr);
    println!("{recording:?} {arguments:?}: {}", outcome.stdout.trim());
}

/// A run that is killed after `time`: everything that was complete a quarter of a second before is recorded.
fn killed_round(recording: Recording, time: Duration, threads: u64, seed: u64) {
    let [threads, seed] = [threads, seed].map(|number| number.to_string());
    let running = Rpd::new(recording.options())
        .limit(Duration::from_secs(300))
        .start_workload("stress", ["600", &threads, &seed, "progress", "progress"]);
    let progress = running.directory().join("progress");
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::metadata(&progress).map_or(0, |file| file.len()) == 0 {
        assert!(Instant::now() < deadline, "the program does not get going");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(time);
    // The child of rpd: the program.
    let rpd = running.child.id();
    let children = fs::read_to_string(format!("/proc/{rpd}/task/{rpd}/children")).expect("procfs");
    let program: i32 = children
        .split_whitespace()
        .next()
        .and_then(|pid| pid.parse().ok())
        .expect("a child");
    let killed = boot_time();
    // SAFETY: takes no pointers; the process was started for this test and runs until it is killed.
    unsafe { libc::kill(program, libc::SIGKILL) };
    let outcome = running.finish().expect_code(137);
    let done = done_before(&outcome.directory.path().join("progress"), killed);
    let recorded = recording.counts(&outcome);
    assert!(
        recorded[0] >= done[0] && recorded[1] >= done[1],
        "{recorded:?} of {done:?}: {}",
        outcome.stderr
    );
    println!("{recording:?}, killed after {time:?}: {recorded:?} of {done:?}");
}

#[test]
fn work_under_stress_is_recorded_once() {
    whole_round(Recording::Full, 1, 8, 1, &[]);
    whole_round(Recording::Light, 1, 8, 2, &[]);
    killed_round(Recording::Light, Duration::from_millis(700), 8, 3);
}

/// For ten minutes, or `RPD_STRESS_SECONDS` seconds.
#[test]
#[ignore = "takes ten minutes: cargo xtask ci --long"]
fn the_direct_provider_under_long_stress_records_work_once() {
    let seconds = std::env::var("RPD_STRESS_SECONDS").ok();
    let seconds = seconds.map_or(600, |text| text.parse().expect("a number of seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut round = 0;
    while Instant::now() < end {
        round += 1;
        let threads = [2, 16, 64, 200][round as usize % 4];
        whole_round(Recording::Full, 3, threads, round, &[]);
        whole_round(Recording::Light, 6, threads, round, &[]);
        whole_round(Recording::Light, 4, threads.min(16), round, &["reset"]);
        whole_round(Recording::Full, 3, threads.min(16), round, &["reset"]);
        let time = Duration::from_millis(300 + round * 377 % 2500);
        killed_round(Recording::Full, time, threads, round);
        killed_round(Recording::Light, time, threads, round);
    }
}
