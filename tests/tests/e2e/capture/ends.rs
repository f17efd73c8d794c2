//! Captures that are replaced, whose rpd is killed, or whose replay is ended by the GPU.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rpd_tests::run::{Outcome, Rpd};

use crate::capture::captures::{capture_of, captured, database, replayed};
use crate::processes::sudden_ends::on_small_disk;

/// Captures a workload into an existing directory.
fn captured_over(capture: &Path, workload: &str, arguments: &[&str]) -> Outcome {
    Rpd::plain(["capture", "--backend", "sim", "--overwrite", "-o"])
        .option([capture])
        .workload(workload, arguments)
}

#[test]
fn overwriting_a_capture_keeps_foreign_files() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let others = ["notes.txt", "blobs/mine", "code/kernel.co", "more/data"];
    fs::create_dir(capture.join("more")).expect("a directory");
    for name in others {
        fs::write(capture.join(name), name).expect("written");
    }
    let again = captured_over(&capture, "capture", &["strided"]).success();
    assert!(again.stderr.contains("rpd: wrote "), "{}", again.stderr);
    for name in others {
        assert_eq!(fs::read_to_string(capture.join(name)).expect(name), name);
    }
    let kernels = database(&capture)
        .rows("SELECT DISTINCT name FROM kernel k JOIN launch l ON l.kernel = k.id");
    assert_eq!(kernels, [["strided_kernel"]]);
    let _ = replayed(&capture, &[]).success();
    let left: Vec<_> = fs::read_dir(&capture)
        .expect("a directory")
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.as_encoded_bytes().starts_with(b"."))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_empty_capture_does_not_replace_an_existing_one() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let nothing = captured_over(&capture, "no-gpu", &[]).expect_code(1);
    assert!(
        nothing
            .stderr
            .contains("the capture that was there before stays"),
        "{}",
        nothing.stderr
    );
    let _ = replayed(&capture, &[]).success();
}

#[test]
fn capture_refuses_a_directory_with_a_foreign_manifest() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("videos");
    fs::create_dir(&directory).expect("a directory");
    for manifest in ["{\"camera\": 1}", "{\"format\": 1, \"rpd\": \"\"}"] {
        fs::write(directory.join("capture.json"), manifest).expect("written");
        fs::write(directory.join("film"), "kept").expect("written");
        let refused = captured_over(&directory, "capture", &["add"]).expect_code(1);
        assert!(
            refused.stderr.contains("is not replaced"),
            "{}",
            refused.stderr
        );
        assert!(directory.join("film").exists() && directory.join("capture.json").exists());
    }
}

/// Whether rpd has taken data of a process in `directory`.
fn has_taken(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else {
        return false;
    };
    entries.flatten().any(|entry| match entry.metadata() {
        Ok(kind) if kind.is_dir() => has_taken(&entry.path()),
        Ok(kind) => entry.file_name() == ".taken" && kind.len() > 2000,
        Err(_) => false,
    })
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn recover_completes_a_capture_whose_rpd_was_killed() {
    // The program goes on alone: its calls do not wait for an rpd that takes the data.
    let running = Rpd::plain(["capture", "--backend", "sim", "-o", "capture"])
        .option(["--staging", "1G"])
        .start_workload("capture", ["upload", "96", "6"]);
    let capture = running.directory().join("capture");
    wait_until("nothing is taken", || has_taken(&capture));
    running.signal(libc::SIGKILL);
    let run = running.finish();
    assert_eq!(run.code(), 137);
    let again = Rpd::plain(["capture", "--backend", "sim", "-o"])
        .option([&capture])
        .workload("capture", ["add"])
        .expect_code(1);
    assert!(again.stderr.contains("rpd recover"), "{}", again.stderr);
    let info = Rpd::plain(["capture", "info"]).option([&capture]).run();
    let info = info.expect_code(1);
    assert!(info.stderr.contains("rpd recover"), "{}", info.stderr);
    // Recovery leaves the capture alone while the program runs.
    wait_until("not recovered", || {
        let recovered = Rpd::plain(["recover"]).option([&capture]).run().success();
        recovered.stderr.contains("rpd: wrote ")
    });
    let checked = Rpd::plain(["capture", "check"]).option([&capture]).run();
    let _ = checked.success();
    let played = replayed(&capture, &["--allow-no-results"]).success();
    assert!(played.stderr.contains("rpd: played "), "{}", played.stderr);
    assert!(database(&capture).number("SELECT count(*) FROM copy") > 1);
    let left: Vec<_> = fs::read_dir(&capture)
        .expect("a directory")
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.as_encoded_bytes().starts_with(b"."))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The results of a kernel that writes nothing but a device variable are compared.
#[test]
fn replay_compares_device_variables() {
    let run = captured(&[], "capture-limits", &["counting"]).success();
    let capture = capture_of(&run);
    let capsule = run.directory.path().join("counting.rpdk");
    let _ = Rpd::plain([
        "capture",
        "pack",
        "--backend",
        "sim",
        "--kernel",
        "counting_kernel#2",
    ])
    .option([&capture])
    .option([Path::new("-o"), &capsule])
    .run()
    .success();
    let played = replayed(&capsule, &[]).success();
    assert!(
        played.stderr.contains("results are equal"),
        "{}",
        played.stderr
    );
    let shown = Rpd::plain(["capture", "export"])
        .option([&capsule])
        .run()
        .success();
    assert!(shown.stdout.contains("hipLaunchKernel"), "{}", shown.stdout);
}

#[test]
fn replay_without_results_fails_unless_allowed() {
    let run = captured(&["--outputs", "none"], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let played = replayed(&capture, &[]).expect_code(1);
    assert!(
        played.stderr.contains("there is no result to compare"),
        "{}",
        played.stderr
    );
    let _ = replayed(&capture, &["--allow-no-results"]).success();
    let _ = replayed(&capture, &["--verify", "off"]).success();
}

fn changed(capture: &Path, sql: &str) {
    let path = capture.join("capture.sqlite");
    let database = rusqlite::Connection::open(&path).expect("a database");
    database.execute_batch(sql).expect("changed");
    drop(database);
    // As one who means harm would: the hash of the database is that of the changed one.
    let manifest = capture.join("capture.json");
    let text = fs::read(&manifest).expect("a description");
    let mut value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    value["database"] = "".into();
    fs::write(&manifest, value.to_string()).expect("written");
}

#[test]
fn captures_with_views_in_place_of_tables_are_refused() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    changed(
        &capture,
        "ALTER TABLE note RENAME TO real_note;
         CREATE VIEW note AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n AS seq, 'x' AS severity,
         'y' AS text FROM c;",
    );
    for words in [
        &["capture", "info"][..],
        &["capture", "check"],
        &["replay", "--backend", "sim"],
    ] {
        let refused = Rpd::plain(words).option([&capture]).run().expect_code(2);
        assert!(
            refused
                .stderr
                .contains("note is a view and should be a table"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn replay_refuses_data_larger_than_their_use() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    // All data of a copy are one chunk, twenty thousand times.
    changed(
        &capture,
        "CREATE TABLE n (i INTEGER PRIMARY KEY);
         INSERT INTO n SELECT value FROM json_each('[0,1,2,3,4,5,6,7,8,9]');
         DELETE FROM blob_part WHERE blob = (SELECT blob FROM copy WHERE blob > 0 LIMIT 1);
         INSERT INTO blob_part SELECT (SELECT blob FROM copy WHERE blob > 0 LIMIT 1),
             a.i + 10 * b.i + 100 * c.i + 1000 * d.i, (SELECT min(id) FROM chunk) FROM n a, n b, n c, n d;
         UPDATE blob SET size = 10000 * (SELECT size FROM chunk ORDER BY id LIMIT 1)
             WHERE id = (SELECT blob FROM copy WHERE blob > 0 LIMIT 1);
         DROP TABLE n;",
    );
    let refused = replayed(&capture, &[]).expect_code(2);
    assert!(
        refused.stderr.contains("should be there"),
        "{}",
        refused.stderr
    );
}

#[test]
fn replay_refuses_impossible_allocation_sizes() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    changed(&capture, "UPDATE alloc SET size = 1 << 62 WHERE num = 1");
    let refused = replayed(&capture, &[]).expect_code(2);
    assert!(
        refused.stderr.contains("cannot be memory"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_gpu_fault_ends_a_replay_with_status_3() {
    let store = "_ZN6faults5storeIfEEvPT_l";
    // The fault may end the program before the call that launches the kernel has returned: such a capture lacks the launch.
    let mut attempts = (0..50).map(|_| {
        let run = captured(&[], "faults", &[store, "6", "null"]);
        replayed(&capture_of(&run), &[])
    });
    let played = attempts
        .find(|played| !played.stderr.contains("with 0 launches"))
        .expect("a capture with the launch");
    let played = played.expect_code(3);
    assert!(
        played.stderr.contains("rpd: call ") && played.stderr.contains("a fault of the GPU"),
        "{}",
        played.stderr
    );
}

/// Where the disk has no room for the first record, the capture names it and does not say that the program made no call.
#[test]
fn a_disk_that_is_full_from_the_start_is_named() {
    for kib in [4, 12, 24, 40, 64, 100] {
        let Some(outcome) = on_small_disk(
            kib,
            "\"$1\" capture --backend sim -o full/capture -- \"$2/capture\" add 3",
        ) else {
            return;
        };
        assert_eq!(outcome.code(), 1, "{kib} KiB: {}", outcome.stderr);
        let said = &outcome.stderr;
        assert!(
            said.contains("full/capture")
                && (said.contains("No space left on device") || said.contains("disk is full")),
            "{kib} KiB: {said}"
        );
        assert!(!said.contains("made no call"), "{kib} KiB: {said}");
        assert!(outcome.stdout.is_empty() || outcome.stdout == "ok\n");
    }
}
