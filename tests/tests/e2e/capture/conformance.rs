//! Captures of programs with zeros, kernels without arguments, many streams, polling, host functions, replaced kernels and
//! children.

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd};
use rpd_tests::{install, workloads};

use crate::capture::captures::{capture_of, captured, database, replayed, round_trip};
use crate::processes::sudden_ends::on_small_disk;

/// Checks capture-13, with less memory.
#[test]
fn capture_stores_zeros_in_little_space() {
    let run = captured(&[], "capture", &["upload", "64", "1"]).success();
    let noise = database(&capture_of(&run)).number("SELECT sum(stored) FROM chunk");
    assert!(noise >= 16 << 20, "{noise}");
    let run = captured(&[], "capture", &["calls", "10"]).success();
    assert_eq!(
        database(&capture_of(&run))
            .number("SELECT count(*) FROM chunk WHERE codec <> 2 AND stored > 1 << 20"),
        0
    );
}

/// Checks capture-18.
#[test]
fn replay_runs_kernels_without_arguments() {
    let run = captured(&[], "launch-loop", &["50"]).success();
    let capture = capture_of(&run);
    let lengths = database(&capture).rows(
        "SELECT DISTINCT length(l.args) FROM launch l JOIN kernel k ON k.id = l.kernel WHERE k.explicit_size = 0",
    );
    assert_eq!(lengths, [["0"]]);
    let _ = replayed(&capture, &[]).success();
}

/// Checks capture-7, capture-9 and capture-34: handles beyond 32 bits, streams of threads, memory that is freed and
/// allocated again.
#[test]
fn replay_keeps_default_streams_of_threads_apart() {
    round_trip("capture", &["perthread"], false);
    let run = captured(&[], "capture", &["streams", "5"]).success();
    let database = database(&capture_of(&run));
    assert!(database.number("SELECT min(raw) FROM object WHERE kind = 'stream'") > 1 << 32);
    assert!(database.number("SELECT count(*) - count(DISTINCT va) FROM alloc") > 0);
}

/// Checks capture-10.
#[test]
fn replay_has_pageable_data_that_was_overwritten_after_the_call() {
    round_trip("capture", &["overwrite"], false);
}

/// Checks capture-37.
#[test]
fn replay_waits_once_for_an_event_that_was_polled() {
    round_trip("capture", &["poll"], false);
    let run = captured(&[], "capture", &["poll"]).success();
    let asked = database(&capture_of(&run))
        .number("SELECT count(*) FROM call WHERE name = 'hipEventQuery'");
    assert_eq!(asked, 3);
}

/// Checks capture-38.
#[test]
fn replay_does_not_call_host_functions() {
    round_trip("capture", &["callback"], false);
}

#[test]
fn replay_restores_variables_of_modules() {
    round_trip("capture", &["module"], false);
}

/// Checks capture-23.
#[test]
fn replay_refuses_code_for_another_gpu() {
    let run = captured(&[], "capture", &["add"]).success();
    let refused = Rpd::plain(["replay", "--backend", "sim"])
        .env("RPD_SIM_GPU", "gfx942")
        .option([capture_of(&run)])
        .run()
        .expect_code(5);
    assert!(
        refused.stderr.contains(
            "code for gfx90a does not run on GPU 0 here; the capture has code for gfx90a"
        ),
        "{}",
        refused.stderr
    );
}

/// Checks capture-46.
#[test]
fn capture_names_calls_that_cannot_be_replayed() {
    let run = captured(&[], "capture", &["shared"]).success();
    assert!(
        run.stderr
            .contains("rpd: hipIpcGetMemHandle was called 1 time and cannot be replayed"),
        "{}",
        run.stderr
    );
    let capture = capture_of(&run);
    let info = Rpd::plain(["capture", "info"])
        .option([&capture])
        .run()
        .success();
    for name in ["hipIpcGetEventHandle", "hipIpcGetMemHandle"] {
        let row = format!("unsupported  {name}: 1 call, which a replay leaves out (--force)");
        assert!(info.stdout.contains(&row), "{}", info.stdout);
    }
    let refused = replayed(&capture, &[]).expect_code(6);
    assert!(
        refused.stderr.contains(
            "hipIpcGetEventHandle (called 1 times) and 1 other functions cannot be replayed"
        ),
        "{}",
        refused.stderr
    );
    let _ = replayed(&capture, &["--force"]).success();
}

/// A replay of a vector addition with the kernel of this name taken from one of the workloads' bundles.
fn replayed_with(name: &str, bundle: &str) -> Outcome {
    let run = captured(&[], "capture", &["add"]).success();
    let bundle = workloads::path("kernels").join(bundle);
    let text = format!("{name}={}", bundle.display());
    replayed(&capture_of(&run), &["--replace", &text])
}

#[test]
fn replay_replaces_a_kernel_with_another_build() {
    let _ = replayed_with("add_kernel", "capture.hipfb").success();
}

/// Checks capture-54.
#[test]
fn replay_refuses_a_replacement_without_the_kernel() {
    let refused = replayed_with("add_kernel", "module.hipfb").expect_code(1);
    assert!(
        refused
            .stderr
            .contains("module.hipfb: it has no kernel of this name"),
        "{}",
        refused.stderr
    );
}

/// Checks capture-58.
#[test]
fn capture_includes_children_only_on_request() {
    let captures = |options: &[&str]| {
        let run = captured(options, "fork-exec", &["tree"]).success();
        let entries = std::fs::read_dir(run.directory.path())
            .expect("a directory")
            .flatten();
        entries
            .filter(|entry| entry.path().join("capture.json").exists())
            .count()
    };
    assert_eq!(captures(&[]), 1);
    assert!(captures(&["--children"]) > 1);
}

/// A replay under `rpd` with these options of the second launch of a strided kernel, twenty times.
fn replayed_under(options: &[&str]) -> Outcome {
    let captured = captured(&[], "capture", &["strided"]).success();
    let capture = capture_of(&captured);
    Rpd::new(options)
        .target([
            install::rpd().into_os_string(),
            "replay".into(),
            "--quiet".into(),
            capture.into(),
            "--kernel".into(),
            "strided_kernel#2".into(),
            "--iterations".into(),
            "20".into(),
            "--warmup".into(),
            "0".into(),
        ])
        .success()
}

#[test]
fn a_launch_that_is_replayed_many_times_can_be_counted() {
    let counted = replayed_under(&["--pmc", "SQ_WAVES", "SQ_INSTS_VALU", "-f", "csv"]);
    let table = counted.csv("counter_collection");
    // Two counters of the launch before it, of one that shows what is written, of twenty, and of the launch in its place. What
    // puts memory back between them is counted as well, where the runtime copies with kernels.
    assert_eq!(table.count("Kernel_Name", "strided_kernel"), 2 * 23);
}

#[test]
fn a_launch_that_is_replayed_many_times_can_be_sampled() {
    let sampled = replayed_under(&[
        "--pc-sampling-beta-enabled",
        "--pc-sampling-method",
        "host_trap",
        "--pc-sampling-unit",
        "time",
        "--pc-sampling-interval",
        "10",
        "-f",
        "csv",
    ]);
    let samples = sampled.csv("pc_sampling_host_trap");
    assert!(!samples.rows.is_empty());
}

#[test]
fn a_launch_that_is_replayed_many_times_can_be_traced() {
    let traced = replayed_under(&["--att", "--kernel-include-regex", "strided", "-f", "csv"]);
    assert!(
        traced.stderr.contains("1 thread trace, 0 dropped"),
        "{}",
        traced.stderr
    );
    let statistics = traced.files_ending(".csv");
    let mut statistics = statistics.iter().filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("stats_ui_output_agent_")
    });
    assert!(statistics.next().is_some(), "{:?}", traced.files());
}

/// A full disk stands here as a small file system of its own.
#[test]
fn a_full_disk_ends_the_capture_and_not_the_program() {
    for kib in [300, 1500, 4000] {
        let Some(outcome) = on_small_disk(
            kib,
            "\"$1\" capture --backend sim -o full/capture -- \"$2/capture\" upload 64 4; code=$?
             mkdir out; cp -r full/. out/; exit $code",
        ) else {
            return;
        };
        assert!(
            outcome.stdout.ends_with("ok\n"),
            "{kib} KiB: {}",
            outcome.stderr
        );
        assert_eq!(outcome.code(), 1, "{kib} KiB: {}", outcome.stderr);
        let said = outcome.stderr.to_lowercase();
        assert!(
            said.contains("space") || said.contains("full"),
            "{kib} KiB: {said}"
        );
        assert!(!said.contains("panicked"), "{kib} KiB: {said}");
        // What is there under its name is whole.
        let database = outcome.out().join("capture/capture.sqlite");
        if database.exists() {
            let database = Database::open(&database);
            assert_eq!(database.rows("PRAGMA integrity_check"), [["ok"]]);
        }
    }
}

/// Code objects lie beside the packs, for people and their tools.
#[test]
fn replay_names_missing_and_changed_code_objects() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let code = std::fs::read_dir(capture.join("code")).expect("a directory");
    let path = code.flatten().next().expect("a code object").path();
    let mut bytes = std::fs::read(&path).expect("a code object");
    bytes[100] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    let expected = format!(
        "{} is damaged: it does not have the content that was stored",
        path.display()
    );
    let refused = replayed(&capture, &[]).expect_code(2);
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    std::fs::remove_file(&path).expect("removed");
    let refused = replayed(&capture, &[]).expect_code(2);
    let expected = format!("{}: No such file", path.display());
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
}

/// What an option names is looked for before anything is played.
#[test]
fn replay_names_missing_devices_and_replacements_before_it_starts() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    for (options, expected) in [
        (
            ["--device", "0=7"],
            "rpd: GPU 0 of the capture is GPU 7 of the replay, and there are 1 here: --device 0=NUMBER chooses another\n",
        ),
        (
            ["--replace", "other=/proc/version"],
            "rpd: --replace other=/proc/version: the capture has no such kernel\n",
        ),
        (
            ["--replace", "add_kernel=/missing"],
            "rpd: --replace add_kernel=/missing: No such file\n",
        ),
    ] {
        assert_eq!(replayed(&capture, &options).expect_code(1).stderr, expected);
    }
}
