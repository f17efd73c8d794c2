//! `rpd hot` in the formats of flame graphs: all that `rpd flame` writes, from one list.

use std::path::Path;

use rpd_tests::run::Rpd;

/// Options that sample program counters by the clock of the host.
const HOST_TRAP: [&str; 7] = [
    "--pc-sampling-beta-enabled",
    "--pc-sampling-method",
    "host_trap",
    "--pc-sampling-unit",
    "time",
    "--pc-sampling-interval",
    "1",
];

#[test]
fn hot_writes_every_format_of_flame_graphs_with_the_same_samples() {
    let outcome = Rpd::new(HOST_TRAP)
        .workload("inside", ["two_phases", "300"])
        .success();
    let database = outcome.file("results.db");
    let database = database.to_str().expect("text");
    let write = |format: &str| {
        let run = Rpd::plain(["hot", database, "-f", format, "-o", "graph"]).run();
        let run = run.success();
        std::fs::read(run.directory.path().join("graph")).expect("written")
    };
    let folded = String::from_utf8(write("folded")).expect("text");
    assert_eq!(write("collapsed"), folded.as_bytes());
    let weight = |line: &str| -> u64 {
        let (_, weight) = line.rsplit_once(' ').expect("a weight");
        weight.parse().expect("a number")
    };
    let samples: u64 = folded.lines().map(weight).sum();
    assert!(samples > 0, "{folded}");
    let json =
        |format| -> serde_json::Value { serde_json::from_slice(&write(format)).expect("JSON") };
    assert_eq!(json("speedscope")["profiles"][0]["endValue"], samples);
    let weights = &json("firefox")["threads"][0]["samples"]["weight"];
    let weights = weights.as_array().expect("weights").iter();
    let sum: f64 = weights.filter_map(serde_json::Value::as_f64).sum();
    assert_eq!(sum, samples as f64);
    assert_eq!(write("pprof")[..2], [0x1f, 0x8b], "gzip");
    let page = String::from_utf8(write("html")).expect("text");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("two_phases"));
    assert_eq!(write("flame"), page.as_bytes());
}

#[test]
fn hot_refuses_differences_in_formats_without_them_before_it_reads() {
    for format in ["speedscope", "pprof", "firefox"] {
        assert!(!Path::new("nothing.db").exists());
        let arguments = [
            "hot",
            "nothing.db",
            "--diff",
            "nothing.db",
            "-f",
            format,
            "-o",
            "x",
        ];
        let refused = Rpd::plain(arguments).run().expect_code(2);
        assert!(
            refused
                .stderr
                .contains("hot: --diff can be written as html and as folded"),
            "{}",
            refused.stderr
        );
    }
}
