//! `rpd avail` and `--list-avail`.

use std::collections::BTreeSet;

use rpd_tests::run::{Outcome, Rpd};
use serde_json::Value;

/// `rpd avail --backend sim <words>`
fn avail(words: &[&str]) -> Outcome {
    Rpd::plain(["avail", "--backend", "sim"].iter().chain(words)).run()
}

/// The simulated device's counters, as the original lists those of the device it imitates.
const COUNTERS: &str = include_str!("../../../golden/gfx90a-counter-names.txt");

#[test]
fn avail_lists_every_counter_of_gfx90a() {
    let golden: BTreeSet<&str> = COUNTERS.lines().collect();
    for words in [&["list"][..], &["list", "--pmc"]] {
        let outcome = avail(words).success();
        let listed: BTreeSet<&str> = outcome.stdout.split_whitespace().collect();
        let missing: Vec<_> = golden.difference(&listed).collect();
        assert!(missing.is_empty(), "{words:?}: {missing:?}");
        assert_eq!(outcome.stderr, "", "{words:?}");
    }
}

#[test]
fn avail_info_describes_a_counter() {
    let info = |name: &str| {
        let outcome = avail(&["info", "--pmc", name]).success();
        let positional = avail(&["info", name]).success();
        assert_eq!(outcome.stdout, positional.stdout, "with and without --pmc");
        outcome.stdout
    };
    insta::assert_snapshot!("info_sq_waves", info("SQ_WAVES"));
    insta::assert_snapshot!("info_fetch_size", info("FETCH_SIZE"));
    insta::assert_snapshot!("info_tcp_total_accesses", info("TCP_TOTAL_ACCESSES"));
    let unknown = avail(&["info", "SQ_WAVE"]).expect_code(1);
    assert!(unknown.stderr.contains("SQ_WAVES"), "{}", unknown.stderr);
}

#[test]
fn avail_lists_properties_of_agents() {
    let outcome = avail(&["list", "--agent"]).success();
    for label in [
        "GPU:0",
        "cu_count",
        "wave_front_size",
        "gfx_target_version",
        "gfx90a",
    ] {
        assert!(
            outcome.stdout.contains(label),
            "{label}\n{}",
            outcome.stdout
        );
    }
}

/// Checks command-line-287 and command-line-288.
#[test]
fn pmc_check_names_the_gpus_on_which_counters_fit() {
    let outcome = avail(&["-d", "0", "pmc-check", "SQ_WAVES", "GRBM_COUNT", "TCC_HIT"]).success();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for word in ["GPU:0", "SQ_WAVES", "GRBM_COUNT", "TCC_HIT"] {
        assert!(lines[0].contains(word), "{word}: {lines:?}");
    }
    let words = ["pmc-check", "SQ_WAVES", "GRBM_COUNT", "TCC_HIT:device=0"];
    let outcome = Rpd::plain(["avail", "--backend", "sim"].iter().chain(&words))
        .env("RPD_SIM_GPUS", "2")
        .run()
        .success();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].contains("GPU:0") && lines[0].contains("TCC_HIT"),
        "{lines:?}"
    );
    assert!(
        lines[1].contains("GPU:1") && !lines[1].contains("TCC_HIT"),
        "{lines:?}"
    );
}

/// Checks command-line-289.
#[test]
fn pmc_check_takes_the_device_before_or_after_the_request() {
    let before = avail(&["-d", "0", "pmc-check", "SQ_WAVES"]).success();
    for words in [
        ["pmc-check", "-d", "0", "SQ_WAVES"],
        ["pmc-check", "SQ_WAVES", "-d", "0"],
        ["pmc-check", "SQ_WAVES", "--device", "0"],
    ] {
        assert_eq!(avail(&words).success().stdout, before.stdout, "{words:?}");
    }
}

/// Checks command-line-290 to command-line-293.
#[test]
fn pmc_check_refuses_counters_that_do_not_fit() {
    let all: Vec<&str> = ["pmc-check"].into_iter().chain(COUNTERS.lines()).collect();
    for (words, says) in [
        (&all[..], "gfx90a"),
        (&["pmc-check", "NOPE"], "NOPE"),
        (&["pmc-check"], "counter"),
        (&["pmc-check", "SQ_WAVES:b:c"], "SQ_WAVES:b:c"),
        (&["pmc-check", "SQ_WAVES:foo=1"], "SQ_WAVES:foo=1"),
        (&["pmc-check", "SQ_WAVES:device=9"], "9"),
        (&["-d", "9", "pmc-check", "SQ_WAVES"], "9"),
        (
            &["pmc-check", "GRBM_COUNT", "GRBM_GUI_ACTIVE", "GRBM_CP_BUSY"],
            "GRBM",
        ),
    ] {
        let outcome = avail(words).expect_code(1);
        assert_eq!(outcome.stdout, "", "{words:?}");
        assert!(
            outcome.stderr.contains(says),
            "{words:?}: {}",
            outcome.stderr
        );
    }
    let unknown = avail(&["bogus"]).expect_code(2);
    assert_eq!(unknown.stdout, "");
}

#[test]
fn avail_json_lists_counters_for_programs() {
    let parsed = |words: &[&str]| -> Value {
        let outcome = avail(&[words, &["--json"]].concat()).success();
        serde_json::from_str(&outcome.stdout)
            .unwrap_or_else(|error| panic!("{words:?}: {error}\n{}", outcome.stdout))
    };
    let list = parsed(&["list"]).to_string();
    for name in COUNTERS.lines() {
        assert!(list.contains(&format!("\"{name}\"")), "{name}");
    }
    let info = parsed(&["info", "FETCH_SIZE"]).to_string();
    assert!(info.contains("TCC_EA_RDREQ_32B_sum*32"), "{info}");
    assert!(parsed(&["list", "--agent"]).to_string().contains("gfx90a"));
    parsed(&["info", "--pc-sampling"]);
    parsed(&["pmc-check", "SQ_WAVES"]);
}

/// Checks command-line-295 and command-line-296.
#[test]
fn list_avail_prints_the_list_before_a_run() {
    let outcome = Rpd::plain(["--backend", "sim", "--list-avail"])
        .run()
        .success();
    assert!(outcome.stdout.contains("SQ_WAVES") && outcome.stdout.contains("FETCH_SIZE"));
    let outcome = Rpd::new(["--list-avail", "--kernel-trace", "-f", "csv"])
        .workload("vector-ops", ["1", "1"])
        .success();
    assert!(outcome.stdout.contains("SQ_WAVES"), "{}", outcome.stdout);
    assert!(outcome.stdout.ends_with("ok\n"), "then the program runs");
    assert_eq!(outcome.csv("kernel_trace").rows.len(), 4);
}

/// Checks command-line-285.
#[test]
fn avail_without_a_request_succeeds() {
    // The original prints nothing.
    assert_eq!(
        avail(&[]).success().stdout,
        avail(&["list"]).success().stdout
    );
}

#[test]
fn avail_filter_lists_only_counters_with_that_text() {
    let listed = avail(&["--filter", "lds_bank", "list"]).success().stdout;
    assert!(listed.contains("SQ_LDS_BANK_CONFLICT"), "{listed}");
    assert!(!listed.contains("SQ_WAVES"), "{listed}");
}

#[test]
fn avail_lists_only_the_requested_device() {
    let gpus = |words: &[&str]| {
        let outcome = Rpd::plain(["avail", "--backend", "sim"].iter().chain(words))
            .env("RPD_SIM_GPUS", "2")
            .run()
            .success();
        let lines = outcome.stdout.lines();
        let lines = lines.filter(|line| line.starts_with("GPU "));
        lines
            .map(|line| line.replace([' ', '\t'], ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(gpus(&["list"]), ["GPU:0", "GPU:1"]);
    assert_eq!(gpus(&["list", "-d", "1"]), ["GPU:1"]);
}

#[test]
fn avail_without_rocm_names_the_missing_packages() {
    let empty = tempfile::tempdir().expect("a directory");
    let root = empty.path().to_str().expect("text");
    let outcome = Rpd::plain(["avail", "--backend", "rocm", "--rocm-root", root, "list"])
        .run()
        .expect_code(1);
    assert!(outcome.stderr.starts_with("rpd: "), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(root), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("--backend sim"),
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.stdout, "");
}
