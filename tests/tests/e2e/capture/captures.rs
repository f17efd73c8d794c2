//! Captures of GPU calls and their replay, on real programs and files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rpd_tests::run::{self, Outcome, Rpd};
use rpd_tests::{outputs::Database, workloads};

/// Captures a workload into `capture` in a new directory.
pub(crate) fn captured(options: &[&str], workload: &str, arguments: &[&str]) -> Outcome {
    Rpd::plain(["capture", "--backend", "sim", "-o", "capture"])
        .option(options)
        .workload(workload, arguments)
}

pub(crate) fn capture_of(outcome: &Outcome) -> PathBuf {
    outcome.directory.path().join("capture")
}

/// Plays a capture in a fresh process, in another directory.
pub(crate) fn replayed(capture: &Path, options: &[&str]) -> Outcome {
    Rpd::plain(["replay", "--backend", "sim"])
        .option([capture])
        .option(options)
        .run()
}

pub(crate) fn database(capture: &Path) -> Database {
    Database::open(&capture.join("capture.sqlite"))
}

/// Captures, then plays at the addresses of the capture and at others; results must be equal.
pub(crate) fn round_trip(workload: &str, arguments: &[&str], deep: bool) {
    let run = captured(&[], workload, arguments).success();
    let capture = capture_of(&run);
    let same = replayed(&capture, &["--va", "same", "--verify", "exact"]).success();
    assert!(
        same.stderr.contains("at the addresses of the capture; "),
        "{}",
        same.stderr
    );
    assert!(
        !same.stderr.contains("no result was compared"),
        "{}",
        same.stderr
    );
    let options: &[&str] = if deep {
        &["--va", "remap", "--deep"]
    } else {
        &["--va", "remap"]
    };
    let other = replayed(&capture, options).success();
    assert!(
        other.stderr.contains("at other addresses; "),
        "{}",
        other.stderr
    );
}

/// Checks capture-1.
#[test]
fn replay_of_a_vector_addition_has_equal_results() {
    round_trip("capture", &["add"], false);
}

/// Checks capture-8, capture-35 and capture-36.
#[test]
fn replay_keeps_the_order_of_streams_events_and_pools() {
    round_trip("capture", &["streams"], false);
    let run = captured(&[], "capture", &["streams"]).success();
    let serial = replayed(&capture_of(&run), &["--streams", "serial"]).success();
    assert!(
        serial.stderr.contains("results are equal"),
        "{}",
        serial.stderr
    );
}

#[test]
fn replay_of_strided_accesses_has_equal_results() {
    round_trip("capture", &["strided"], false);
}

#[test]
fn replay_of_reductions_has_equal_results() {
    round_trip("capture", &["reduce"], false);
}

/// Checks capture-15, capture-17 and capture-43.
#[test]
fn replay_has_hidden_arguments_and_device_variables() {
    round_trip("capture", &["hidden"], false);
    let run = captured(&[], "capture", &["hidden"]).success();
    let database = database(&capture_of(&run));
    let sizes = "SELECT explicit_size, kernarg_size FROM kernel WHERE name = 'sizes_kernel'";
    // A pointer and a number are explicit; 256 bytes of hidden arguments follow.
    assert_eq!(database.rows(sizes), [["12", "272"]]);
    let stored = database.number(
        "SELECT DISTINCT length(l.args) FROM launch l JOIN kernel k ON k.id = l.kernel WHERE k.name = 'sizes_kernel'",
    );
    assert_eq!(stored, 12);
}

/// Checks capture-25, capture-26, capture-27 and, with pointers that are not followed, capture-33.
#[test]
fn replay_translates_pointers_in_structures_and_memory() {
    round_trip("capture", &["pointers"], true);
    let run = captured(&[], "capture", &["pointers"]).success();
    let capture = capture_of(&run);
    let how = database(&capture).rows(
        "SELECT how, count(*) FROM arg_ptr p JOIN launch l ON l.seq = p.launch JOIN kernel k ON k.id = l.kernel
         WHERE k.name = 'struct_kernel' GROUP BY how",
    );
    assert_eq!(how, [["probable", "2"]]);
    // Without --deep the pointers in memory are the old ones, and a note says so.
    let shallow = replayed(&capture, &["--va", "remap"]);
    assert_ne!(shallow.code(), 0);
    // capture-32: what is not declared a pointer is left alone.
    let guessed = replayed(&capture, &["--va", "remap", "--deep", "--no-guess"]);
    assert_ne!(guessed.code(), 0);
}

/// Checks capture-44.
#[test]
fn replay_has_managed_and_mapped_memory() {
    round_trip("capture", &["managed"], false);
}

/// Checks capture-39 and capture-40.
#[test]
fn replay_gives_each_graph_launch_its_data() {
    round_trip("capture", &["graph"], false);
}

/// Checks capture-16, capture-20, capture-21 and capture-41: both argument forms, compressed bundles and code object V4.
#[test]
fn replay_runs_kernels_of_modules() {
    round_trip("module-load", &[], false);
}

#[test]
fn replay_of_example_programs_has_equal_results() {
    round_trip("vector-ops", &["3", "5"], false);
    round_trip("transpose", &[], false);
    round_trip("copies", &[], false);
}

/// Checks capture-2 and capture-59.
#[test]
fn capture_changes_neither_output_nor_status() {
    let run = captured(&[], "exit-midway", &["5"]);
    let bare = run::simulated("exit-midway", ["5"]);
    assert_eq!(run.code(), bare.code());
    assert_eq!(run.stdout, bare.stdout);
    let launches = database(&capture_of(&run)).number("SELECT count(*) FROM launch");
    assert_eq!(launches, 5);
    // No control characters where standard error is no terminal: capture-60.
    assert!(
        !run.stderr.contains('\x1b') && !run.stderr.contains('\r'),
        "{:?}",
        run.stderr
    );
}

/// Checks capture-4.
#[test]
fn capture_has_all_calls_of_many_threads_in_order() {
    let run = captured(&[], "many-threads", &["8", "100"]).success();
    let database = database(&capture_of(&run));
    assert_eq!(database.number("SELECT count(*) FROM launch"), 800);
    assert_eq!(database.number("SELECT max(seq) - count(*) FROM call"), 0);
    // Numbers follow the order of each thread.
    let disorder = "SELECT count(*) FROM call a JOIN call b ON a.tid = b.tid AND a.seq < b.seq AND a.entry > b.entry";
    assert_eq!(database.number(disorder), 0);
}

/// Checks capture-5.
#[test]
fn calls_wait_when_the_staging_space_is_small() {
    let run = captured(&["--staging", "300K"], "vector-ops", &["1", "20"]).success();
    let capture = capture_of(&run);
    let _ = replayed(&capture, &[]).success();
    let calls = database(&capture).number("SELECT count(*) FROM launch");
    assert_eq!(calls, 80);
}

/// Whether a process has staged data in a directory below `directory`.
fn has_staged(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    entries.flatten().any(|entry| match entry.metadata() {
        Ok(kind) if kind.is_dir() => has_staged(&entry.path()),
        Ok(kind) => entry.file_name() == "capture-data" && kind.len() > 0,
        Err(_) => false,
    })
}

/// Checks that calls of a run waited for room, and that its capture is whole nevertheless.
pub(crate) fn check_that_calls_waited(run: &Outcome) {
    assert!(!run.stderr.contains("ended"), "{}", run.stderr);
    assert!(
        run.stderr
            .contains(" ms in all for data to be taken (--staging)"),
        "{}",
        run.stderr
    );
    let _ = replayed(&capture_of(run), &["--allow-no-results"]).success();
}

/// Callers wait for staging space as long as rpd runs, also when rpd takes very long to make some.
#[test]
fn calls_wait_while_rpd_takes_no_data() {
    let running = Rpd::plain(["capture", "--backend", "sim", "-o", "capture"])
        .option(["--staging", "4M"])
        .start_workload("capture", ["upload", "128", "64"]);
    let begin = Instant::now();
    while !has_staged(running.directory()) {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "nothing is staged"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(12));
    running.signal(libc::SIGCONT);
    let run = running.finish().success();
    check_that_calls_waited(&run);
}

/// Checks capture-12, and the size of captures.
#[test]
fn capture_stores_repeated_data_once() {
    let run = captured(&[], "vector-ops", &["4", "50"]).success();
    let database = database(&capture_of(&run));
    let distinct = database.number("SELECT sum(size) FROM chunk");
    let each = database.number("SELECT sum(b.size) FROM copy c JOIN blob b ON b.id = c.blob");
    assert!(each > 5 * distinct, "{each} {distinct}");
    let mut size = 0;
    let mut directories = vec![capture_of(&run)];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let entry = entry.expect("an entry");
            let kind = entry.metadata().expect("a file");
            if kind.is_dir() {
                directories.push(entry.path())
            } else {
                size += kind.len()
            }
        }
    }
    assert!(size < 2 * distinct as u64, "{size} bytes for {distinct}");
}

/// Checks capture-3: what a killed program left opens and plays.
#[test]
fn captures_of_killed_programs_replay() {
    for milliseconds in [120, 260, 430] {
        killed_after(milliseconds, "add 1000000");
    }
    killed_at_random(5);
}

#[test]
#[ignore = "takes minutes: cargo xtask ci --long runs it"]
fn captures_of_fifty_killed_programs_replay() {
    killed_at_random(50);
}

/// A program with four threads, killed at this many moments.
fn killed_at_random(times: u32) {
    let mut random = 12345u64;
    for _ in 0..times {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        killed_after(50 + (random >> 33) % 700, "busy");
    }
}

fn killed_after(milliseconds: u64, mode: &str) {
    let script = format!(
        "\"$0\" {mode} & pid=$!; sleep {}.{:03}; kill -9 $pid; wait $pid; exit 0",
        milliseconds / 1000,
        milliseconds % 1000
    );
    let program = workloads::path("capture");
    let run = Rpd::plain(["capture", "--backend", "sim", "-o", "capture"])
        .option(["--", "sh", "-c", &script])
        .option([program])
        .run();
    let capture = capture_of(&run);
    if !capture.exists() {
        assert!(
            run.stderr.contains("nothing was captured"),
            "{}",
            run.stderr
        );
        return;
    }
    let info = Rpd::plain(["capture", "info"])
        .option([&capture])
        .run()
        .success();
    assert!(info.stdout.contains("unclean"), "{}", info.stdout);
    // Nothing may have been copied to the host before.
    let played = replayed(&capture, &["--verify", "exact", "--allow-no-results"]).success();
    assert!(
        played.stderr.contains("the capture is unclean"),
        "{}",
        played.stderr
    );
}

/// Checks capture-51 and capture-52.
#[test]
fn replay_repeats_one_launch_with_restored_memory() {
    let run = captured(&[], "capture", &["strided"]).success();
    let played = replayed(
        &capture_of(&run),
        &[
            "--kernel",
            "strided_kernel#2",
            "--iterations",
            "10",
            "--json",
            "report.json",
            "--until",
            "100000",
        ],
    )
    .success();
    assert!(played.stderr.contains("10 runs"), "{}", played.stderr);
    // The last run stands for the launch itself: with memory restored wrongly the results that follow would differ.
    assert!(
        played.stderr.contains("1 of 1 results are equal"),
        "{}",
        played.stderr
    );
    let report = std::fs::read(played.directory.path().join("report.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let kernel = &report["kernel"];
    assert_eq!(kernel["milliseconds"].as_array().map(Vec::len), Some(10));
}

#[test]
fn replay_refuses_a_kernel_that_is_not_launched() {
    let run = captured(&[], "capture", &["strided"]).success();
    let unknown = replayed(&capture_of(&run), &["--kernel", "nothing"]).expect_code(1);
    assert!(
        unknown.stderr.contains("launches no such kernel"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn max_bytes_ends_the_capture_and_not_the_program() {
    let run = captured(&["--max-bytes", "100K"], "capture", &["add", "20"]).expect_code(1);
    assert_eq!(run.stdout, "ok\n");
    assert!(
        run.stderr.contains("the limit of --max-bytes was reached"),
        "{}",
        run.stderr
    );
    let info = Rpd::plain(["capture", "info"])
        .option([capture_of(&run)])
        .run()
        .success();
    assert!(
        info.stdout.contains("ended before the program"),
        "{}",
        info.stdout
    );
}

/// One command replays a capture and counts.
#[test]
fn counters_can_be_collected_in_a_replay() {
    let captured = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&captured);
    let counted = Rpd::new(["--pmc", "SQ_WAVES", "--kernel-trace", "-f", "csv"])
        .target([
            rpd_tests::install::rpd().into_os_string(),
            "replay".into(),
            "--quiet".into(),
            capture.into(),
        ])
        .success();
    let table = counted.csv("counter_collection");
    assert_eq!(table.count("Kernel_Name", "add_kernel"), 2);
}

/// `rpd replay --step` has a prompt that shows calls and memory.
#[test]
fn replay_step_shows_calls_and_memory() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let address =
        database(&capture).rows("SELECT printf('%x', va) FROM alloc ORDER BY num LIMIT 1");
    let script = run.directory.path().join("commands");
    std::fs::write(
        &script,
        format!(
            "k add\ns\nm {0} 16\nm {0} x\nm {0} 9999\nwhat\nq\n",
            address[0][0]
        ),
    )
    .expect("written");
    let played = Rpd::plain(["replay", "--backend", "sim", "--step"])
        .option([&capture])
        .input(std::fs::File::open(script).expect("commands"))
        .run()
        .success();
    for expected in [
        "hipLaunchKernel(",
        "kernel       add_kernel",
        "00 00 00 00 00 00 80 3f",
        "end the replay here",
    ] {
        assert!(
            played.stdout.contains(expected),
            "{expected}: {}",
            played.stdout
        );
    }
    let refused = played
        .stdout
        .matches("expected a number of bytes from 1 to 4096");
    assert_eq!(refused.count(), 2, "{}", played.stdout);
}

/// Pointers in data are wrong when memory has other addresses, and the runtime ends the process then.
#[test]
fn an_aborted_replay_names_the_missing_option() {
    let run = captured(&[], "capture", &["pointers"]).success();
    let replay = replayed(&capture_of(&run), &["--va", "remap"]);
    assert!(!replay.status.success());
    assert!(
        replay
            .stderr
            .contains("words of its data look like addresses; --deep translates them"),
        "{}",
        replay.stderr
    );
}

#[test]
fn replay_and_trim_refuse_a_range_that_ends_before_it_begins() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    for (action, name) in [
        (&["replay"][..], "replay"),
        (&["capture", "trim", "-o", "part"], "capture trim"),
    ] {
        let refused = Rpd::plain(action)
            .option(["--backend", "sim", "--from", "12", "--until", "5"])
            .option([&capture])
            .run()
            .expect_code(2);
        assert_eq!(
            refused.stderr,
            format!("rpd: {name}: --until 5 is before --from 12\n")
        );
    }
}
