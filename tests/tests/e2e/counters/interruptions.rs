//! Signals to rpd itself while it counts in several passes, and recovery after its own end.

use std::fs;
use std::time::{Duration, Instant};

use rpd_tests::run::{Rpd, Running};

use super::{counters_in, layout, rows};

/// Waits until `spin` has made `launches`, and a little longer; its process id.
fn spinning(running: &Running, launches: u64) -> i32 {
    let file = running.directory().join("progress");
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let bytes = fs::read(&file).unwrap_or_default();
        let number = |at: usize| {
            let eight = bytes
                .get(at..at + 8)
                .and_then(|eight| eight.try_into().ok());
            eight.map_or(0, u64::from_ne_bytes)
        };
        if number(8) >= launches {
            std::thread::sleep(Duration::from_millis(300));
            return i32::try_from(number(16)).expect("a process id");
        }
        assert!(Instant::now() < deadline, "spin does not get going");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const TWO_PASSES: [&str; 8] = [
    "--pmc",
    "SQ_WAVES",
    "--pmc",
    "GRBM_COUNT",
    "-f",
    "csv",
    "-o",
    "x",
];

#[test]
fn a_signal_ends_the_pass_and_all_later_passes() {
    for options in [&[][..], &["--continue-on-error"]] {
        let running =
            Rpd::new(TWO_PASSES.iter().chain(options)).start_workload("spin", ["progress"]);
        spinning(&running, 2);
        running.signal_group(libc::SIGINT);
        let outcome = running.finish().expect_code(128 + libc::SIGINT);
        assert_eq!(
            outcome.stdout, "spinning\n",
            "the second pass is not run: {options:?}"
        );
        let files = outcome.files_ending("x_counter_collection.csv");
        assert_eq!(files.len(), 1, "{:?}", outcome.files());
        assert!(files[0].ends_with("pass_1/x_counter_collection.csv"));
        assert_eq!(counters_in(&files[0]), ["SQ_WAVES"]);
    }
}

#[test]
fn recover_restores_counters_after_rpd_was_killed() {
    let running = Rpd::new(TWO_PASSES).start_workload("spin", ["progress"]);
    let pid = spinning(&running, 2);
    running.signal(libc::SIGKILL);
    std::thread::sleep(Duration::from_millis(300));
    // SAFETY: takes no pointers; the process was started by this test and runs until it is killed.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let outcome = running.finish().expect_code(137);
    assert!(outcome.files_ending(".csv").is_empty());
    // The process stays visible until its parent has reaped it.
    let deadline = Instant::now() + Duration::from_secs(30);
    let recovered = loop {
        let recover = Rpd::plain(["recover".as_ref(), outcome.out().as_os_str()]).run();
        let csv = outcome.files_ending("x_counter_collection.csv");
        if !csv.is_empty() || Instant::now() > deadline {
            break recover;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(
        layout(&outcome),
        ["pass_1/x_agent_info.csv", "pass_1/x_counter_collection.csv"],
        "{}",
        recovered.stderr
    );
    let rows = rows(&outcome);
    assert!(rows.len() >= 3, "{rows:?}");
    assert!(
        rows.iter()
            .all(|row| row.counter == "SQ_WAVES" && row.value >= 1.0)
    );
}
