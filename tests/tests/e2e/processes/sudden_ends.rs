//! Sudden ends of the target and of rpd itself, and full disks: nothing recorded is lost, nothing half-written
//! stands under a final name.

use std::fs;
use std::time::{Duration, Instant};

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::{self, Rpd, Running, skipped};
use rpd_tests::{install, workloads};

const CSV: [&str; 3] = ["--sys-trace", "-f", "csv"];
const KERNELS: [&str; 3] = ["--kernel-trace", "-f", "csv"];

/// Calls, launches and process id as `spin` has noted them, once it has made `launches`.
pub(crate) fn spinning(running: &Running, launches: u64) -> [u64; 3] {
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
        let progress = [number(0), number(8), number(16)];
        if progress[1] >= launches {
            return progress;
        }
        assert!(Instant::now() < deadline, "spin does not get going");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn signals_end_the_program_and_rpd_reports_its_records() {
    for (signal, group) in [
        (libc::SIGINT, true),
        (libc::SIGINT, false),
        (libc::SIGTERM, false),
        (libc::SIGHUP, false),
        (libc::SIGQUIT, true),
    ] {
        let running = Rpd::new(CSV).start_workload("spin", ["progress"]);
        let [calls, launches, _] = spinning(&running, 2);
        // What the target did a moment before is on record whatever ends it.
        std::thread::sleep(Duration::from_millis(300));
        if group {
            running.signal_group(signal);
        } else {
            running.signal(signal);
        }
        let outcome = running.finish().expect_code(128 + signal);
        let found = outcome
            .csv("hip_api_trace")
            .count("Function", "hipGetDevice") as u64;
        assert!(found >= calls, "{signal}: {found} of at least {calls}");
        let found = outcome.csv("kernel_trace").rows.len() as u64;
        assert!(
            found >= launches,
            "{signal}: {found} of at least {launches}"
        );
    }
}

/// Starts `in-flight` under rpd with `options`, sends it `signals` with the pauses (ms) before them once its kernel is on its
/// way, and returns its outputs and the time from the first signal to its end.
fn in_flight(
    options: &[&str],
    arguments: [&str; 2],
    signals: &[(u64, i32)],
) -> (run::Outcome, Duration) {
    let running = Rpd::new(options).start_workload("in-flight", arguments);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !running.directory().join("launched").exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut begin = Instant::now();
    for (index, (pause, signal)) in signals.iter().enumerate() {
        std::thread::sleep(Duration::from_millis(*pause));
        if index == 0 {
            begin = Instant::now();
        }
        running.signal(*signal);
    }
    let outcome = running.finish();
    (outcome, begin.elapsed())
}

/// What is said of the one kernel whose completion was not waited for.
const LOST: &str = "]: WARNING: no completion was recorded for 1 dispatch: recording ended first\n";

/// Has a signal, or the program itself, end `in-flight` with its kernel on its way, and expects that the kernel is complete in
/// the recording, unless it took longer than the second that is waited for, as on a busy machine. Then a shorter one is tried.
fn completes(ending: &str, signals: &[(u64, i32)], code: i32) {
    for milliseconds in ["200", "100", "50", "25", "10"] {
        let (outcome, took) = in_flight(&KERNELS, [milliseconds, ending], signals);
        let outcome = outcome.expect_code(code);
        if !outcome.stderr.contains("WARNING") {
            assert!(kernels(&outcome) > 2);
            return;
        }
        assert!(
            outcome.stderr.contains(LOST) && took >= Duration::from_secs(1),
            "{ending} {signals:?} after {took:?}: {}",
            outcome.stderr
        );
    }
    panic!("{ending} {signals:?}: no kernel is complete within a second");
}

/// Whether one of some attempts succeeds: on a busy machine a process may be later than the times that an attempt counts on.
fn once(mut attempt: impl FnMut() -> bool) -> bool {
    (0..8).any(|_| attempt())
}

/// Dispatches in the CSV file.
fn kernels(outcome: &run::Outcome) -> usize {
    outcome.csv("kernel_trace").rows.len()
}

/// Checks thread-trace-62: the dispatch that runs when the signal comes has its trace as well.
#[test]
fn thread_traces_under_way_are_complete_after_a_signal() {
    let options = ["--att", "--att-target-cu", "0", "-f", "json", "rocpd"];
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let (outcome, _) = in_flight(&options, ["200", "sleep"], &[(20, signal)]);
        let outcome = outcome.expect_code(128 + signal);
        let database = Database::open(&outcome.file("results.db"));
        let traces = database.number("SELECT count(DISTINCT trace) FROM thread_traces");
        assert_eq!(outcome.files_ending(".att").len() as i64, traces);
        let incomplete = database.number("SELECT sum(incomplete_waves) FROM thread_traces");
        assert!(traces > 0 && incomplete == 0, "{}", outcome.stderr);
        let decoded = Rpd::plain(["att", "decode", outcome.out().to_str().expect("text")]).run();
        assert!(decoded.status.success(), "{}", decoded.stderr);
    }
}

/// Checks thread-trace-62: traces that go on until they are stopped have what had run by then.
#[test]
fn thread_traces_of_whole_gpus_are_delivered_after_a_signal() {
    for options in [
        &["--att", "--att-target-cu", "0", "--att-no-intercept"][..],
        &[
            "--att",
            "--att-target-cu",
            "0",
            "--att-consecutive-kernels",
            "1000",
        ],
    ] {
        for signal in [libc::SIGINT, libc::SIGTERM] {
            let (outcome, _) = in_flight(options, ["200", "sleep"], &[(20, signal)]);
            let outcome = outcome.expect_code(128 + signal);
            assert!(
                !outcome.stderr.contains("nothing was traced"),
                "{}",
                outcome.stderr
            );
            assert_eq!(outcome.files_ending(".att").len(), 1, "{}", outcome.stderr);
            let database = Database::open(&outcome.file("results.db"));
            let waves = database.number("SELECT count(*) FROM thread_trace_waves");
            assert!(waves > 0, "{}", outcome.stderr);
            let decoded =
                Rpd::plain(["att", "decode", outcome.out().to_str().expect("text")]).run();
            assert!(decoded.status.success(), "{}", decoded.stderr);
        }
    }
}

/// A trace that a signal prevented is reported as missing, beside other traces and where nothing else was recorded.
#[test]
fn a_thread_trace_missing_after_a_signal_is_reported() {
    let missing = "the thread traces of 1 of ";
    let options = ["--att", "--kernel-iteration-range", "3-1000"];
    let (outcome, _) = in_flight(&options, ["20000", "sleep"], &[(20, libc::SIGTERM)]);
    let outcome = outcome.expect_code(143);
    assert!(outcome.stderr.contains(missing), "{}", outcome.stderr);
    // Nothing says when the only kernel of this program has begun.
    let said = [1, 4, 12].into_iter().find_map(|seconds| {
        let running = Rpd::new(["--att"]).start_workload("inside", ["matrix_chain", "1000000"]);
        std::thread::sleep(Duration::from_secs(seconds));
        running.signal(libc::SIGTERM);
        let outcome = running.finish().expect_code(143);
        let is_said = outcome.stderr.contains(missing);
        assert!(!is_said || outcome.files().is_empty(), "{}", outcome.stderr);
        is_said.then_some(outcome)
    });
    assert!(said.is_some());
}

/// Samples that the provider still holds are delivered before a signal ends the program.
#[test]
fn pc_samples_are_delivered_after_a_signal() {
    let options = [
        "--pc-sampling-beta-enabled",
        "--pc-sampling-method",
        "host_trap",
        "--pc-sampling-unit",
        "time",
        "--pc-sampling-interval",
        "20",
        "--kernel-trace",
    ];
    let (outcome, _) = in_flight(&options, ["150", "sleep"], &[(20, libc::SIGINT)]);
    let outcome = outcome.expect_code(128 + libc::SIGINT);
    let database = Database::open(&outcome.file("results.db"));
    // The kernel that was under way, too: it is the last one.
    let of_last = "SELECT count(*) FROM pc_samples WHERE dispatch_id = (SELECT max(dispatch_id) FROM kernels)";
    assert!(database.number(of_last) > 0, "{}", outcome.stderr);
}

#[test]
fn gpu_work_under_way_is_awaited_after_a_signal() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT] {
        completes("sleep", &[(20, signal)], 128 + signal);
    }
    completes("abort", &[], 134);
    completes("default", &[(20, libc::SIGTERM)], 143);
    // A signal to the process and one to its group are one, if they come one right after the other.
    let twice = [(20, libc::SIGTERM), (1, libc::SIGTERM)];
    assert!(once(|| {
        let outcome = in_flight(&KERNELS, ["200", "sleep"], &twice).0;
        !outcome.expect_code(143).stderr.contains("WARNING")
    }));

    // Not longer than a second, not at all after a second signal, and not where that is switched off.
    let (outcome, took) = in_flight(&KERNELS, ["20000", "sleep"], &[(20, libc::SIGTERM)]);
    let outcome = outcome.expect_code(143);
    assert!(outcome.stderr.contains(LOST), "{}", outcome.stderr);
    assert!((1.0..15.0).contains(&took.as_secs_f64()), "{took:?}");
    // The second one ends the program, unless it comes when the second is over.
    let twice = [(20, libc::SIGTERM), (300, libc::SIGINT)];
    assert!(once(|| {
        let (outcome, took) = in_flight(&KERNELS, ["20000", "sleep"], &twice);
        assert!(outcome.stderr.contains(LOST), "{}", outcome.stderr);
        assert!(outcome.code() == 130 || took >= Duration::from_secs(1));
        outcome.code() == 130
    }));
    let without = ["--kernel-trace", "-f", "csv", "--disable-signal-handlers"];
    assert!(once(|| {
        let (outcome, took) = in_flight(&without, ["20000", "sleep"], &[(20, libc::SIGTERM)]);
        assert!(outcome.expect_code(143).stderr.contains(LOST));
        took.as_secs_f64() < 0.95
    }));

    // Handlers that the program installs replace those of the collector.
    let (outcome, _) = in_flight(&KERNELS, ["20000", "catch"], &[(20, libc::SIGTERM)]);
    assert!(outcome.expect_code(5).stderr.contains(LOST));
    let outcome = in_flight(&KERNELS, ["10", "ignore"], &[]).0.expect_code(3);
    assert!(!outcome.stderr.contains("WARNING"), "{}", outcome.stderr);
    let outcome = in_flight(&KERNELS, ["100", "child"], &[]).0;
    assert!(!outcome.expect_code(143).stderr.contains("WARNING"));
}

#[test]
fn recover_completes_a_run_whose_rpd_was_killed() {
    let rpd = Rpd::new(["--sys-trace", "--stats", "-f", "csv", "rocpd"]);
    let running = rpd.start_workload("spin", ["progress"]);
    let [calls, launches, pid] = spinning(&running, 2);
    running.signal(libc::SIGKILL);
    std::thread::sleep(Duration::from_millis(300));
    let pid = i32::try_from(pid).expect("a process id");
    // SAFETY: takes no pointers; the process was started by this test and runs until it is killed.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let outcome = running.finish().expect_code(137);
    assert!(
        outcome.files_ending(".csv").is_empty(),
        "{:?}",
        outcome.files()
    );
    assert!(outcome.out().join(".rpd").is_dir());
    // The process stays visible until its parent has reaped it.
    let deadline = Instant::now() + Duration::from_secs(30);
    let recover = loop {
        let recover = Rpd::plain(["recover".as_ref(), outcome.out().as_os_str()]).run();
        if !outcome.out().join(".rpd").exists() || Instant::now() > deadline {
            break recover.success();
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let trace = outcome.csv("hip_api_trace");
    let found = trace.count("Function", "hipGetDevice") as u64;
    assert!(
        found >= calls,
        "{found} of at least {calls}\n{}",
        recover.stderr
    );
    let kernels = outcome.csv("kernel_trace").rows.len();
    assert!(
        kernels as u64 >= launches,
        "{kernels} of at least {launches}"
    );
    let database: Database = outcome.database();
    assert_eq!(
        database.number("SELECT count(*) FROM kernels"),
        kernels as i64
    );
    assert_eq!(
        database.number("SELECT count(*) FROM regions WHERE category LIKE 'HIP%'"),
        trace.rows.len() as i64
    );
    assert!(
        recover.stderr.contains("RPD HIP_API SUMMARY"),
        "{}",
        recover.stderr
    );
    assert_eq!(
        outcome
            .csv("kernel_stats")
            .numbers("Calls")
            .iter()
            .sum::<u64>(),
        kernels as u64
    );
}

/// Runs a script in a mount namespace of its own; `None`, with a line `skipped:`, where that is not allowed. In the script `$1` is
/// rpd, `$2` the directory of workloads, and ./full a file system of `kib` KiB.
pub(crate) fn on_small_disk(kib: u32, script: &str) -> Option<run::Outcome> {
    let unshare = run::tool("unshare").or_else(|| {
        skipped("a full disk", "no unshare");
        None
    })?;
    let script =
        format!("mkdir full && mount -t tmpfs -o size={kib}k none full || exit 77\n{script}");
    let (rpd, programs) = (install::rpd(), workloads::build());
    let outcome = run::command(
        &unshare,
        [
            "-m".as_ref(),
            "/bin/sh".as_ref(),
            "-c".as_ref(),
            script.as_ref(),
            "sh".as_ref(),
            rpd.as_os_str(),
            programs.as_os_str(),
        ],
    );
    if outcome.code() == 77 || outcome.stderr.contains("unshare") {
        skipped("a full disk", "mounts are not allowed here");
        return None;
    }
    Some(outcome)
}

#[test]
fn a_full_disk_is_reported_and_the_program_goes_on() {
    for kib in [256, 600, 1200] {
        let Some(outcome) = on_small_disk(
            kib,
            "\"$1\" --backend sim -s -f csv rocpd -d full -- \"$2/vector-ops\" 2 40; code=$?
             mkdir out; cp -r full/. out/; exit $code",
        ) else {
            return;
        };
        assert_eq!(outcome.stdout, "ok\n", "{kib} KiB: {}", outcome.stderr);
        assert_eq!(outcome.code(), 1, "{kib} KiB: {}", outcome.stderr);
        let said = outcome.stderr.contains("DROPPED") || outcome.stderr.contains("No space left");
        assert!(said, "{kib} KiB: {}", outcome.stderr);
        for file in outcome.files() {
            if file.contains(".rpd/") {
                continue;
            }
            let path = outcome.out().join(&file);
            if file.ends_with(".db") {
                let database = Database::open(&path);
                assert_eq!(database.rows("PRAGMA integrity_check"), [["ok"]], "{file}");
            } else if file.ends_with(".csv") {
                let table = Table::read(&path);
                assert!(!table.columns.is_empty(), "{file}");
            } else {
                panic!("{kib} KiB: {file} is left over");
            }
        }
    }
}

#[test]
fn recover_writes_outputs_that_had_no_room() {
    // Room for the recording, not for the outputs.
    let Some(outcome) = on_small_disk(
        24 * 1024,
        "mkdir out
         \"$1\" --backend sim -s -f csv -d full -o x -- /bin/sh -c \"'$2/fork-exec' child
             cat /dev/zero >full/filler 2>/dev/null; exit 0\"; code=$?
         ls full/*.csv full/*/*.csv >&2 && exit 70
         rm full/filler
         \"$1\" recover full || exit 71
         cp -r full/. out/
         exit $code",
    ) else {
        return;
    };
    let outcome = outcome.expect_code(1);
    assert!(outcome.stderr.contains("recover"), "{}", outcome.stderr);
    assert_eq!(
        outcome
            .csv("hip_api_trace")
            .count("Function", "hipLaunchKernel"),
        3
    );
    assert!(!outcome.out().join(".rpd").exists());
}
