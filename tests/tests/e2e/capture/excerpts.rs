//! Parts of captures: trimmed ones, and capsules.

use std::path::{Path, PathBuf};

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd};

use crate::capture::captures::{capture_of, captured, database, replayed};

/// Packs a launch into `capsule.rpdk` in the directory of the outcome.
pub(crate) fn packed(capture: &Path, kernel: &str) -> Outcome {
    Rpd::plain(["capture", "pack", "--backend", "sim", "-o", "capsule.rpdk"])
        .option(["--kernel", kernel])
        .option([capture])
        .run()
}

pub(crate) fn capsule_of(outcome: &Outcome) -> PathBuf {
    outcome.directory.path().join("capsule.rpdk")
}

fn size_of(path: &Path) -> u64 {
    let found = std::fs::metadata(path).expect("a file");
    if !found.is_dir() {
        return found.len();
    }
    let entries = std::fs::read_dir(path).expect("a directory");
    entries
        .map(|entry| size_of(&entry.expect("an entry").path()))
        .sum()
}

/// Numbers of the launches of a capture.
fn launches(capture: &Path) -> Vec<String> {
    let rows = database(capture).rows("SELECT seq FROM launch ORDER BY seq");
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}

#[test]
fn a_packed_launch_replays_from_its_capsule() {
    let run = captured(&[], "capture", &["add", "3"]).success();
    let capture = capture_of(&run);
    let launch = launches(&capture)[1].clone();
    let pack = packed(&capture, "add_kernel#2").success();
    for expected in [
        &format!("launch add_kernel#2 (call {launch}), "),
        "3 pieces of memory with 58.6 KiB",
        "it has data of the program",
    ] {
        assert!(
            pack.stderr.contains(expected),
            "{expected}: {}",
            pack.stderr
        );
    }
    std::fs::remove_dir_all(&capture).expect("removed");
    let capsule = capsule_of(&pack);
    for options in [["--va", "same"], ["--va", "remap"]] {
        let played = replayed(&capsule, &options).success();
        let equal = "rpd: played 4 calls with 1 launch in ";
        assert!(played.stderr.contains(equal), "{}", played.stderr);
        // Twenty thousand bytes in whole pages are what the kernel writes.
        assert!(
            played.stderr.contains("; 1 of 1 results are equal"),
            "{}",
            played.stderr
        );
    }
    let many = replayed(&capsule, &["--kernel", "add_kernel", "--iterations", "5"]).success();
    assert!(
        many.stderr.contains("add_kernel: 5 runs"),
        "{}",
        many.stderr
    );
    let read = |action: &str, more: &[&str]| {
        Rpd::plain(["capture", action])
            .option([&capsule])
            .option(more)
            .run()
            .success()
    };
    let info = read("info", &[]).stdout;
    assert!(
        info.contains(&format!(
            "excerpt of   launch add_kernel#2 (call {launch} of "
        )),
        "{info}"
    );
    assert!(info.contains("with the program's data in memory"), "{info}");
    let shown = read("show", &[&launch]).stdout;
    assert!(shown.contains("kernel       add_kernel"), "{shown}");
    assert!(shown.contains("memory       20000 bytes at "), "{shown}");
    let _ = read("check", &[]);
    assert_eq!(read("ls", &[]).stdout.lines().count(), 4);
}

/// What a launch can reach is packed with it, and nothing else: pointers in structures, in device memory, and variables.
#[test]
fn a_capsule_contains_only_memory_that_its_launch_reaches() {
    let run = captured(&[], "capture", &["pointers"]).success();
    let table = packed(&capture_of(&run), "table_kernel").success();
    assert!(
        table.stderr.contains("5 pieces of memory"),
        "{}",
        table.stderr
    );
    let _ = replayed(&capsule_of(&table), &["--va", "same"]).success();
    let _ = replayed(&capsule_of(&table), &["--va", "remap", "--deep"]).success();
    let inner = packed(&capture_of(&run), "struct_kernel").success();
    assert!(
        inner.stderr.contains("2 pieces of memory"),
        "{}",
        inner.stderr
    );
    let _ = replayed(&capsule_of(&inner), &["--va", "remap"]).success();
    let run = captured(&[], "capture", &["hidden"]).success();
    let variable = packed(&capture_of(&run), "sizes_kernel#2").success();
    let _ = replayed(&capsule_of(&variable), &[]).success();
    let run = captured(&[], "capture", &["managed"]).success();
    let managed = packed(&capture_of(&run), "struct_kernel#2").success();
    let _ = replayed(&capsule_of(&managed), &[]).success();
}

/// Checks capture-56.
#[test]
fn replay_reports_a_capsule_with_a_changed_result() {
    let run = captured(&[], "capture", &["add", "3"]).success();
    let pack = packed(&capture_of(&run), "add_kernel#2").success();
    let unpacked = pack.directory.path().join("unpacked");
    std::fs::create_dir(&unpacked).expect("a directory");
    let tar = std::process::Command::new("tar")
        .args(["xf", "../capsule.rpdk"])
        .current_dir(&unpacked)
        .status()
        .expect("tar");
    assert!(tar.success());
    let _ = replayed(&unpacked, &[]).success();
    // Another input in the same memory: the data of the first array take the place of those of the second.
    let edited = rusqlite::Connection::open(unpacked.join("capture.sqlite")).expect("a database");
    let blobs: Vec<i64> = edited
        .prepare("SELECT id FROM blob WHERE size = 20000 ORDER BY id")
        .and_then(|mut rows| rows.query_map([], |row| row.get(0))?.collect())
        .expect("blobs");
    let sql =
        "UPDATE blob_part SET chunk = (SELECT chunk FROM blob_part WHERE blob = ?) WHERE blob = ?";
    edited
        .execute(sql, [blobs[0], blobs[1]])
        .expect("an update");
    drop(edited);
    let changed = replayed(&unpacked, &[]).expect_code(2);
    assert!(
        changed
            .stderr
            .contains("capture.sqlite is damaged: it does not have the content that was written"),
        "{}",
        changed.stderr
    );
    // Without the hash of the database the replay itself finds it (capture-56).
    let manifest = unpacked.join("capture.json");
    let text = std::fs::read_to_string(&manifest).expect("a description");
    let mut description: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    description["database"] = "".into();
    std::fs::write(&manifest, description.to_string()).expect("written");
    let differs = replayed(&unpacked, &[]).expect_code(4);
    for expected in [
        "20000 bytes at ",
        " differ from the capture, first at byte ",
        " 32-bit elements in all, as floats by at most ",
        "0 of 1 results are equal",
    ] {
        assert!(
            differs.stderr.contains(expected),
            "{expected}: {}",
            differs.stderr
        );
    }
}

#[test]
fn replay_refuses_hostile_capsules_in_one_line() {
    let run = captured(&[], "capture", &["add"]).success();
    let pack = packed(&capture_of(&run), "add_kernel").success();
    let good = std::fs::read(capsule_of(&pack)).expect("a capsule");
    let file = pack.directory.path().join("bad.rpdk");
    let refused = |bytes: &[u8], status: i32| {
        std::fs::write(&file, bytes).expect("written");
        let played = replayed(&file, &[]).expect_code(status);
        assert_eq!(played.stderr.lines().count(), 1, "{}", played.stderr);
        assert!(played.stderr.contains("bad.rpdk"), "{}", played.stderr);
        assert!(!played.stderr.contains("panicked"), "{}", played.stderr);
    };
    refused(b"", 1);
    refused(b"no capsule at all", 1);
    for len in [600, good.len() / 2, good.len() - 1024] {
        refused(&good[..len], 2);
    }
    for part in 1..40 {
        let mut bytes = good.clone();
        bytes[good.len() / 40 * part] ^= 0x10;
        std::fs::write(&file, &bytes).expect("written");
        let played = replayed(&file, &[]);
        // Padding, and names of the command line, may change without harm.
        assert!(
            matches!(played.code(), 0..=2),
            "byte {}: {}",
            good.len() / 40 * part,
            played.stderr
        );
        assert!(!played.stderr.contains("panicked"), "{}", played.stderr);
    }
}

#[test]
fn pack_refuses_a_kernel_that_is_not_launched() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let none = packed(&capture, "nothing").expect_code(1);
    assert!(
        none.stderr
            .contains("--kernel nothing: the capture launches no such kernel"),
        "{}",
        none.stderr
    );
    assert!(!capsule_of(&none).exists());
}

#[test]
fn pack_refuses_a_malformed_launch_number() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let odd = packed(&capture, "add_kernel#x").expect_code(2);
    assert!(
        odd.stderr
            .contains("capture pack: --kernel: expected a name"),
        "{}",
        odd.stderr
    );
}

#[test]
fn pack_refuses_a_launch_number_beyond_the_last() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let far = packed(&capture, "add_kernel#3").expect_code(1);
    assert!(
        far.stderr
            .contains("--kernel add_kernel#3: the capture has 2 launches of this kernel"),
        "{}",
        far.stderr
    );
}

/// Trims a capture to the calls around some of its launches, and plays what remains.
fn trimmed(mode: &[&str], from: usize, until: usize) -> (u64, u64) {
    let run = captured(&[], "capture", mode).success();
    let whole = capture_of(&run);
    let launches = launches(&whole);
    let out = run.directory.path().join("part");
    let trim = Rpd::plain(["capture", "trim", "--backend", "sim", "--from"])
        .option([&launches[from], "--until", &launches[until]])
        .option([whole.as_os_str(), "-o".as_ref(), out.as_os_str()])
        .run()
        .success();
    assert!(trim.stderr.contains("wrote "), "{}", trim.stderr);
    let checked = Rpd::plain(["capture", "check"]).option([&out]).run();
    let _ = checked.success();
    for options in [["--va", "same"], ["--va", "remap"]] {
        let played = replayed(&out, &options).success();
        assert!(
            played.stderr.contains("results are equal"),
            "{mode:?} {options:?}: {}",
            played.stderr
        );
    }
    // Calls keep their numbers.
    let part: Vec<Vec<String>> =
        Database::open(&out.join("capture.sqlite")).rows("SELECT seq FROM launch ORDER BY seq");
    let expected = &launches[from..=until];
    assert!(
        part.iter()
            .map(|row| &row[0])
            .rev()
            .zip(expected.iter().rev())
            .all(|(a, b)| a == b),
        "{mode:?}: {part:?} {expected:?}"
    );
    (size_of(&whole), size_of(&out))
}

/// Checks capture-49 and capture-50.
#[test]
fn trimmed_captures_replay_alone() {
    let (whole, part) = trimmed(&["add", "40"], 19, 20);
    assert!(part < whole / 2, "{part} of {whole} bytes");
    let _ = trimmed(&["streams", "4"], 2, 3);
    let _ = trimmed(&["managed", "4"], 1, 3);
    let _ = trimmed(&["graph"], 2, 3);
    let _ = trimmed(&["strided"], 1, 2);
    let _ = trimmed(&["hidden"], 1, 1);
}

/// Checks that no temporary directory stays beside a capture.
fn assert_nothing_temporary(run: &Outcome) {
    let left: Vec<_> = std::fs::read_dir(run.directory.path())
        .expect("a directory")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(".rpd-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn trim_refuses_ranges_outside_the_capture() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let last = database(&capture).number("SELECT max(seq) FROM call");
    let out = run.directory.path().join("part");
    let beyond = (last + 1).to_string();
    let refused = Rpd::plain(["capture", "trim", "--backend", "sim", "--until", &beyond])
        .option([capture.as_os_str(), "-o".as_ref(), out.as_os_str()])
        .run()
        .expect_code(1);
    let text = format!("its calls are 1 to {last}, not 1 to {beyond}");
    assert!(refused.stderr.contains(&text), "{}", refused.stderr);
    assert!(!out.exists());
    assert_nothing_temporary(&run);
}

#[test]
fn trim_refuses_to_write_over_its_capture() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let over = Rpd::plain(["capture", "trim", "--backend", "sim"])
        .option([capture.as_os_str(), "-o".as_ref(), capture.as_os_str()])
        .run()
        .expect_code(1);
    assert!(
        over.stderr.contains("-o names another directory"),
        "{}",
        over.stderr
    );
    assert_nothing_temporary(&run);
}

/// A region of `rpd capture` is what `trim` and `pack` make of the whole.
#[test]
fn captured_regions_equal_trimmed_captures() {
    let one = ["--region", "kernel:strided_kernel#2"];
    let one = captured(&one, "capture", &["strided"]).success();
    let launch = capture_of(&one);
    assert_eq!(launches(&launch).len(), 1);
    let run = captured(&[], "capture", &["strided"]).success();
    let whole = capture_of(&run);
    let all = launches(&whole);
    let [first, second, ..] = &all[..] else {
        panic!("launches: {all:?}");
    };
    let range = format!("{first}..{second}");
    let calls = captured(&["--region", &range], "capture", &["strided"]).success();
    assert!(
        calls
            .stderr
            .contains(&format!("calls {first} to {second}, ")),
        "{}",
        calls.stderr
    );
    let part = capture_of(&calls);
    assert_eq!(launches(&part), [first.as_str(), second]);
    for capture in [&launch, &part] {
        let played = replayed(capture, &["--verify", "exact"]).success();
        assert!(
            !played.stderr.contains("no result was compared"),
            "{}",
            played.stderr
        );
    }
}

#[test]
fn a_region_that_never_occurs_leaves_the_whole_capture() {
    let run = captured(&["--region", "kernel:nothing"], "capture", &["strided"]).expect_code(1);
    assert!(
        run.stderr
            .contains("the capture launches no such kernel (it launches strided_kernel); capture has all calls"),
        "{}",
        run.stderr
    );
    assert_eq!(run.stdout, "ok\n");
    let _ = replayed(&capture_of(&run), &[]).success();
}

#[test]
fn capture_refuses_malformed_regions() {
    for wrong in [
        "roctxx",
        "roctx:",
        "roctx#0",
        "5..2",
        "0..2",
        "kernel:",
        "kernel:a#0",
    ] {
        let refused = captured(&["--region", wrong], "capture", &["strided"]).expect_code(2);
        assert!(
            refused
                .stderr
                .contains("kernel:NAME[#N], roctx[#N] or roctx:MESSAGE[#N]"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn capture_refuses_a_region_with_children() {
    let both = captured(&["--region", "1..2", "--children"], "capture", &["strided"]);
    assert!(
        both.expect_code(2)
            .stderr
            .contains("--region cannot be combined with --children")
    );
}
