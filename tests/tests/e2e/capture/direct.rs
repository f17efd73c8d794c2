//! Captures through the runtimes' own tables, with no SDK.

use std::fs;

use rpd_tests::install;
use rpd_tests::run::Rpd;

use crate::capture::captures::{capture_of, captured, database, replayed};

/// Names of the calls of a capture, in order.
fn calls(capture: &std::path::Path) -> Vec<Vec<String>> {
    database(capture).rows("SELECT name, dev, rc, length(args) FROM call ORDER BY seq")
}

#[test]
fn captures_of_the_direct_provider_have_the_same_calls_and_play() {
    for (workload, arguments) in [
        ("capture", &["add", "3"][..]),
        ("capture", &["pointers"]),
        ("capture", &["hidden"]),
        ("capture", &["managed"]),
        ("capture", &["graph"]),
        ("capture", &["module"]),
        ("capture-images", &["references"]),
    ] {
        let sdk = captured(&["--provider", "sdk"], workload, arguments).success();
        let direct = captured(&["--provider", "direct"], workload, arguments).success();
        assert_eq!(direct.stdout, sdk.stdout);
        let (sdk, direct) = (capture_of(&sdk), capture_of(&direct));
        assert_eq!(calls(&direct), calls(&sdk), "{workload} {arguments:?}");
        for addresses in ["same", "remap"] {
            let played = replayed(&direct, &["--va", addresses, "--deep"]).success();
            assert!(
                played.stderr.contains("results are equal"),
                "{workload} {arguments:?}: {}",
                played.stderr
            );
        }
    }
}

#[test]
fn regions_are_found_by_the_direct_provider() {
    for region in ["roctx", "roctx:step#3"] {
        let [sdk, direct] = ["sdk", "direct"].map(|provider| {
            let options = ["--provider", provider, "--region", region];
            let run = captured(&options, "capture-region", &[]).success();
            calls(&capture_of(&run))
        });
        assert_eq!(direct, sdk, "{region}");
    }
}

#[test]
fn a_capture_needs_no_sdk() {
    let root = tempfile::tempdir().expect("a directory");
    let lib = root.path().join("lib");
    fs::create_dir(&lib).expect("made");
    let runtime = lib.join("runtimes.so");
    fs::copy(install::bin_dir().join("librpd_sim.so"), &runtime).expect("copied");
    for name in install::sonames().expect("a list") {
        if !name.starts_with("librocprofiler-sdk.so") {
            std::os::unix::fs::symlink(&runtime, lib.join(name)).expect("a link");
        }
    }
    let with = |options: &[&str]| {
        Rpd::plain(["capture", "--backend", "rocm", "-o", "capture"])
            .option(options)
            .env("ROCM_PATH", root.path())
            .env("LD_LIBRARY_PATH", &lib)
            .workload("capture", ["add", "3"])
    };
    let run = with(&[]).success();
    let launches = database(&capture_of(&run)).number("SELECT count(*) FROM launch");
    assert_eq!(launches, 3, "{}", run.stderr);
    let refused = with(&["--provider", "sdk"]).expect_code(1);
    assert!(
        refused.stderr.contains("no librocprofiler-sdk.so"),
        "{}",
        refused.stderr
    );
}

#[test]
fn accesses_are_not_recorded_by_the_direct_provider() {
    let run = captured(
        &["--provider", "direct", "--trace", "mem"],
        "capture",
        &["add"],
    );
    let run = run.expect_code(2);
    assert!(
        run.stderr
            .contains("--trace cannot be combined with --provider direct"),
        "{}",
        run.stderr
    );
}
