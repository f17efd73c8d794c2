//! Single kernels of graphs: packed, run many times, and replaced.

use std::path::Path;

use rpd_tests::outputs::Database;

use crate::capture::captures::{capture_of, captured, database, replayed};
use crate::capture::excerpts::{capsule_of, packed};

/// Hash of the 16 KiB of memory that the launch of a capsule finds, and of what it leaves there where it writes all of it.
fn before_and_after(capture: &Path, launch: u32) -> (String, Option<String>) {
    let pack = packed(capture, &format!("increment_kernel#{launch}")).success();
    let capsule = capsule_of(&pack);
    for options in [["--va", "same"], ["--va", "remap"]] {
        let played = replayed(&capsule, &options).success();
        assert!(
            played.stderr.contains("; 1 of 1 results are equal"),
            "launch {launch}: {}",
            played.stderr
        );
    }
    let tar = std::process::Command::new("tar")
        .args(["xf", "capsule.rpdk", "capture.sqlite"])
        .current_dir(pack.directory.path())
        .status()
        .expect("tar");
    assert!(tar.success());
    let content = Database::open(&pack.directory.path().join("capture.sqlite"));
    let hashes = content.rows("SELECT hex(hash) FROM blob WHERE size = 16384 ORDER BY id");
    let mut hashes = hashes.into_iter().flatten();
    let before = hashes.next().expect("the memory before");
    (before, hashes.next())
}

/// The memory in a capsule is that at the launch of the kernel, not at that of its graph: what one kernel leaves the next one finds.
#[test]
fn a_kernel_of_a_graph_is_packed_with_the_memory_at_its_launch() {
    let run = captured(&[], "capture-graphs", &["chain"]).success();
    let capture = capture_of(&run);
    // Launches of increments of the same memory, by graph: nodes, nodes of which one was changed, captured streams twice.
    for chain in [[1, 3, 4], [5, 6, 7], [8, 10, 11], [12, 14, 15]] {
        let found = chain.map(|launch| before_and_after(&capture, launch));
        for pair in found.windows(2) {
            let ((before, after), (next, _)) = (&pair[0], &pair[1]);
            assert_ne!(before, next, "{chain:?}: {found:?}");
            // The changed kernel writes one half.
            match after {
                Some(after) => assert_eq!(after, next, "{chain:?}: {found:?}"),
                None => assert_eq!(chain, [5, 6, 7]),
            }
        }
    }
    let far = packed(&capture, "increment_kernel#16").expect_code(1);
    assert!(
        far.stderr
            .contains("the capture has 15 launches of this kernel"),
        "{}",
        far.stderr
    );
}

#[test]
fn a_kernel_of_a_graph_runs_many_times_and_the_rest_of_the_replay_is_right() {
    let run = captured(&[], "capture-graphs", &["chain"]).success();
    let capture = capture_of(&run);
    let last = database(&capture).number("SELECT max(seq) FROM call");
    let until = last.to_string();
    let code = std::fs::read_dir(capture.join("code"))
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|ending| ending == "co"))
        .expect("a code object");
    let replace = format!("increment_kernel={}", code.display());
    for launch in [
        "increment_kernel#3",
        "increment_kernel#6",
        "increment_kernel#14",
    ] {
        let options = ["--kernel", launch, "--iterations", "3", "--until", &until];
        for more in [&[][..], &["--streams", "serial"], &["--replace", &replace]] {
            let runs = replayed(&capture, &[&options[..], more].concat()).success();
            assert!(
                runs.stderr.contains("increment_kernel: 3 runs"),
                "{launch}: {}",
                runs.stderr
            );
            assert!(
                runs.stderr.contains("4 of 4 results are equal"),
                "{launch} {more:?}: {}",
                runs.stderr
            );
        }
    }
}

#[test]
fn a_kernel_of_a_graph_in_a_graph_is_refused_with_the_reason() {
    let run = captured(&[], "capture-graphs", &["nested"]).success();
    let refused = packed(&capture_of(&run), "increment_kernel").expect_code(1);
    for expected in [
        "--kernel increment_kernel#1: call ",
        " launches it with a graph, in which it belongs to another graph, which call ",
        "`rpd capture trim --from ",
    ] {
        assert!(
            refused.stderr.contains(expected),
            "{expected}: {}",
            refused.stderr
        );
    }
}
