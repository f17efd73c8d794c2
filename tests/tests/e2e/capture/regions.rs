//! Parts of runs that begin late: between markers of the program, and while it has arrays, textures and surfaces.

use std::path::{Path, PathBuf};

use rpd_tests::run::{Outcome, Rpd};

use crate::capture::captures::{capture_of, captured, database, replayed};
use crate::capture::excerpts::{capsule_of, packed};

/// Plays a part at the addresses of the capture and at others; all of its results must be there and be equal.
fn plays(capture: &Path, results: u32) {
    for addresses in ["same", "remap"] {
        let played = replayed(capture, &["--va", addresses, "--verify", "exact"]).success();
        let equal = format!("; {results} of {results} results are equal");
        assert!(played.stderr.contains(&equal), "{}", played.stderr);
    }
}

fn region(choice: &str) -> Outcome {
    captured(&["--region", choice], "capture-region", &[])
}

/// Checks capture-49: streams, events, modules with their variables, memory, an array, a surface and a texture are older
/// than the region.
#[test]
fn marked_regions_replay_with_older_objects() {
    let whole = captured(&[], "capture-region", &[]).success();
    let all = database(&capture_of(&whole));
    for (choice, note, launches, calls) in [
        ("roctx", None, "6|7|8|9|10", "calls 43 to 55, "),
        (
            "roctx:step",
            Some("the program has 3 such parts; the one that is kept is roctx:step#1"),
            "1|2|3|4|5",
            "calls 30 to 42, ",
        ),
        (
            "roctx:step#3",
            Some("the program has 3 such parts; the one that is kept is roctx:step#3"),
            "11|12|13|14|15",
            "calls 56 to 68, ",
        ),
        (
            "roctx:last part #1#1",
            None,
            "11|12|13|14|15",
            "calls 56 to 68, ",
        ),
    ] {
        let run = region(choice).success();
        assert_eq!(run.stdout, "ok\n");
        assert!(run.stderr.contains(calls), "{}", run.stderr);
        match note {
            Some(note) => assert!(run.stderr.contains(note), "{}", run.stderr),
            None => assert!(!run.stderr.contains("such parts"), "{}", run.stderr),
        }
        let part = database(&capture_of(&run));
        let kept: Vec<String> = part
            .rows("SELECT seq FROM launch ORDER BY seq")
            .into_iter()
            .flatten()
            .collect();
        let places: Vec<&str> = launches.split('|').collect();
        let wanted: Vec<String> = places
            .iter()
            .map(|place| {
                let sql = format!("SELECT seq FROM launch ORDER BY seq LIMIT 1 OFFSET {place} - 1");
                all.number(&sql).to_string()
            })
            .collect();
        assert_eq!(kept, wanted, "{choice}");
        plays(&capture_of(&run), 2);
    }
}

#[test]
fn capture_reports_a_region_that_the_program_does_not_mark() {
    for (choice, why) in [
        (
            "roctx:none",
            "--region roctx:none#1: the program has no ROCTx range \"none\"; capture has all calls",
        ),
        (
            "roctx:step#4",
            "--region roctx:step#4: the program has 3 such parts; capture has all calls",
        ),
        (
            "roctx#2",
            "--region roctx#2: the program has one region between roctxProfilerResume and roctxProfilerPause; ",
        ),
    ] {
        let run = region(choice).expect_code(1);
        assert!(run.stderr.contains(why), "{}", run.stderr);
        assert_eq!(run.stdout, "ok\n");
        plays(&capture_of(&run), 6);
    }
    // The first pause ends a region, however many resumes have begun it.
    let nested = captured(&["--region", "roctx#2"], "regions", &[]).success();
    let waves = database(&capture_of(&nested)).rows("SELECT gx FROM launch ORDER BY seq");
    assert_eq!(waves, [["4"], ["5"]]);
}

#[test]
fn a_pattern_chooses_the_kernel_of_a_region() {
    let run = captured(
        &["--region", "kernel:s(tore|ample)_2d$#4"],
        "capture-region",
        &[],
    )
    .success();
    assert!(
        run.stderr.contains("launch sample_2d#4 ("),
        "{}",
        run.stderr
    );
    plays(&capture_of(&run), 1);
}

/// A replay of the workload with regions, of the kernel that a pattern chooses, twice.
fn played_twice(pattern: &str) -> Outcome {
    let whole = captured(&[], "capture-region", &[]).success();
    replayed(
        &capture_of(&whole),
        &["--kernel", pattern, "--iterations", "2"],
    )
}

#[test]
fn a_pattern_chooses_the_kernel_of_a_replay() {
    let second = played_twice("^w.*gh_#2").success();
    assert!(
        second.stderr.contains("weigh_kernel: 2 runs"),
        "{}",
        second.stderr
    );
}

#[test]
fn replay_refuses_a_pattern_that_matches_no_kernel() {
    let none = played_twice("^eigh").expect_code(1);
    assert!(
        none.stderr
            .contains("--kernel ^eigh: the capture launches no such kernel (it launches "),
        "{}",
        none.stderr
    );
}

#[test]
fn replay_refuses_an_invalid_pattern() {
    let wrong = played_twice("weigh(").expect_code(1);
    assert!(
        wrong.stderr.contains("; as a pattern it is wrong: "),
        "{}",
        wrong.stderr
    );
}

#[test]
fn a_pattern_chooses_the_launch_of_a_capsule() {
    let whole = captured(&[], "capture-region", &[]).success();
    let whole = capture_of(&whole);
    // The table of the module has addresses of its other variable.
    let capsule = packed(&whole, "^weigh_kernel$#3").success();
    plays(&capsule_of(&capsule), 1);
}

/// Every other beginning of a part while there are arrays, in programs that read, write and add to them.
#[test]
fn trimmed_captures_restore_arrays_textures_and_surfaces() {
    for mode in ["arrays", "textures", "reference", "surfaces", "atomics"] {
        let run = captured(&[], "capture-images", &[mode]).success();
        let whole = capture_of(&run);
        let last_result = database(&whole).number("SELECT max(seq) FROM output");
        for from in (2..=last_result).step_by(4) {
            let part: PathBuf = run.directory.path().join(format!("part-{from}"));
            let _ = Rpd::plain(["capture", "trim", "--backend", "sim", "--from"])
                .option([from.to_string().as_ref(), whole.as_os_str(), "-o".as_ref()])
                .option([&part])
                .run()
                .success();
            for addresses in ["same", "remap"] {
                let played = replayed(&part, &["--va", addresses]).success();
                assert!(
                    played.stderr.contains(" results are equal"),
                    "{mode} from call {from}: {}",
                    played.stderr
                );
            }
        }
    }
}

/// What a kernel adds to an array is undone before each run of it, and reported when it differs.
#[test]
fn repeated_kernels_find_arrays_restored() {
    let run = captured(&[], "capture-images", &["atomics"]).success();
    let whole = capture_of(&run);
    let last = database(&whole)
        .number("SELECT max(seq) FROM call")
        .to_string();
    let options = [
        "--kernel",
        "atomic_add_2d#2",
        "--iterations",
        "5",
        "--until",
        &last,
    ];
    let many = replayed(&whole, &options).success();
    // The sums, and 16 bytes for each element with its value before.
    assert!(
        many.stderr.contains("; 4800 bytes of ")
            && many.stderr.contains("; 1 of 1 results are equal"),
        "{}",
        many.stderr
    );
    let capsule = packed(&whole, "atomic_add_2d#2").success();
    let capsule = capsule_of(&capsule);
    plays(&capsule, 2);
    let shown = Rpd::plain(["capture", "show"])
        .option([&capsule])
        .option([second_launch(&whole)])
        .run()
        .success();
    for expected in ["array        960 bytes at ", "array after  960 bytes at "] {
        assert!(shown.stdout.contains(expected), "{}", shown.stdout);
    }
}

/// The call of the second launch.
fn second_launch(capture: &Path) -> String {
    database(capture)
        .number("SELECT seq FROM launch ORDER BY seq LIMIT 1 OFFSET 1")
        .to_string()
}
