//! The files of captures: damage, other versions, and commands that read them.

use std::path::Path;

use rpd_tests::run::Rpd;

use crate::capture::captures::{capture_of, captured, database, replayed};

/// Checks capture-14.
#[test]
fn check_names_damaged_data_and_replay_refuses_it() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let pack = capture.join("blobs/pack-00001.rpdp");
    let mut bytes = std::fs::read(&pack).expect("a pack");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&pack, &bytes).expect("written");
    let checked = Rpd::plain(["capture", "check"])
        .option([&capture])
        .run()
        .expect_code(2);
    assert!(
        checked
            .stderr
            .contains("pack-00001.rpdp is damaged: chunk "),
        "{}",
        checked.stderr
    );
    let played = replayed(&capture, &[]).expect_code(2);
    assert!(
        played.stderr.contains("is damaged: chunk "),
        "{}",
        played.stderr
    );
    assert!(!played.stderr.contains("played"), "{}", played.stderr);
}

#[test]
fn replay_refuses_a_capture_of_a_newer_version() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let manifest = capture.join("capture.json");
    let text = std::fs::read_to_string(&manifest).expect("a description");
    std::fs::write(&manifest, text.replace("\"format\": 1", "\"format\": 99")).expect("written");
    let newer = replayed(&capture, &[]).expect_code(2);
    assert!(
        newer.stderr.contains("has format version 99"),
        "{}",
        newer.stderr
    );
}

#[test]
fn replay_refuses_a_capture_with_a_damaged_manifest() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    std::fs::write(capture.join("capture.json"), "{").expect("written");
    let _ = replayed(&capture, &[]).expect_code(2);
}

#[test]
fn replay_refuses_a_path_without_a_capture() {
    let none = replayed(Path::new("/proc/nonexistent"), &[]).expect_code(1);
    assert!(none.stderr.contains("is not a capture"), "{}", none.stderr);
}

/// Checks capture-61.
#[test]
fn capture_does_not_overwrite_a_capture_unless_told_to() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let again = Rpd::plain(["capture", "--backend", "sim", "-o"])
        .option([&capture])
        .workload("capture", ["add"])
        .expect_code(1);
    assert!(again.stderr.contains("--overwrite"), "{}", again.stderr);
}

/// Checks capture-62.
#[test]
fn a_capture_that_was_moved_replays() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let moved = run.directory.path().join("moved");
    std::fs::rename(&capture, &moved).expect("moved");
    let _ = replayed(&moved, &[]).success();
}

/// Checks capture-63.
#[test]
fn capture_info_ls_show_and_export_need_no_gpu() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let info = Rpd::plain(["capture", "info"])
        .option([&capture])
        .run()
        .success();
    assert!(
        info.stdout.contains("add_kernel (2 launches)"),
        "{}",
        info.stdout
    );
    let list = Rpd::plain(["capture", "ls"])
        .option([&capture])
        .run()
        .success();
    assert!(list.stdout.contains("hipLaunchKernel("), "{}", list.stdout);
    let lines = Rpd::plain(["capture", "export"])
        .option([&capture])
        .run()
        .success();
    for line in lines.stdout.lines() {
        let _: serde_json::Value = serde_json::from_str(line).expect("JSON");
    }
    let first = database(&capture)
        .number("SELECT min(seq) FROM launch")
        .to_string();
    let shown = Rpd::plain(["capture", "show"])
        .option([&capture])
        .option([first])
        .run()
        .success();
    assert!(
        shown.stdout.contains("kernel       add_kernel"),
        "{}",
        shown.stdout
    );
}

#[test]
fn captures_have_the_views_of_hiptracer() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let events = database(&capture);
    let rows = events.rows(
        "SELECT KernelName, NumX, DimX FROM EventLaunch JOIN Events USING (Id) WHERE EventType = 5 LIMIT 1",
    );
    assert_eq!(rows, [["add_kernel", "79", "64"]]);
    assert_eq!(events.number("SELECT count(*) FROM EventMalloc"), 3);
    assert_eq!(events.number("SELECT count(*) FROM EventFree"), 3);
    assert_eq!(
        events.number("SELECT count(*) FROM Events WHERE EventType = 3"),
        6
    );
}

/// Checks capture-57, on two captures.
#[test]
fn capture_diff_names_the_first_different_launch() {
    let good = captured(&[], "capture", &["add", "10"]).success();
    let bad = captured(&[], "capture", &["wrong", "4"]).success();
    let same = Rpd::plain(["capture", "diff"])
        .option([capture_of(&good), capture_of(&good)])
        .run()
        .success();
    assert_eq!(same.stdout, "no difference\n");
    let differs = Rpd::plain(["capture", "diff"])
        .option([capture_of(&good), capture_of(&bad)])
        .run()
        .expect_code(4);
    let launch =
        database(&capture_of(&good)).number("SELECT seq FROM launch ORDER BY seq LIMIT 1 OFFSET 4");
    assert!(
        differs.stdout.contains(&format!(
            "the last launch before it is call {launch}, add_kernel"
        )),
        "{}",
        differs.stdout
    );
}
