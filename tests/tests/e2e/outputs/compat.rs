//! rpd under the original's names, and what both modes have in common with the original's files.

use std::fs;

use rpd_tests::run::{Outcome, Rpd};
use serde_json::Value;

fn document(outcome: &Outcome, suffix: &str) -> Value {
    let text = fs::read_to_string(outcome.file(suffix)).expect("readable");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    document["rocprofiler-sdk-tool"][0].clone()
}

#[test]
fn summaries_of_rocprofv3_have_its_titles_on_standard_output() {
    let options = ["--hip-trace", "--kernel-trace", "--stats", "-f", "csv"];
    let outcome = Rpd::called("rocprofv3", options.iter().chain(&["-S", "-D"]))
        .workload("vector-ops", ["1", "2"])
        .success();
    for title in [
        "\n    ROCPROFV3 HIP_API SUMMARY:\n\n    | ",
        "\n    ROCPROFV3 KERNEL_DISPATCH SUMMARY:\n\n    | ",
        "\n    ROCPROFV3 SUMMARY:\n\n    | ",
    ] {
        assert!(outcome.stdout.contains(title), "{}", outcome.stdout);
    }
    assert!(!outcome.stderr.contains("SUMMARY"), "{}", outcome.stderr);
    for file in outcome.files() {
        let line = format!(
            "Opened result file: {}\n",
            outcome.out().join(file).display()
        );
        assert!(outcome.stderr.contains(&line), "{line}{}", outcome.stderr);
    }
}

#[test]
fn stats_of_rocprofv3_are_written_and_not_printed() {
    let options = ["--hip-trace", "--kernel-trace", "--stats", "-f", "csv"];
    let outcome = Rpd::called("rocprofv3", options)
        .workload("vector-ops", ["1", "2"])
        .success();
    let said = outcome.stdout.clone() + &outcome.stderr;
    assert!(!said.contains("SUMMARY"), "{said}");
    let files = outcome.files();
    assert!(
        files
            .iter()
            .any(|file| file.ends_with("_hip_api_stats.csv")),
        "{files:?}"
    );
}

#[test]
fn stats_of_rpd_are_printed_on_standard_error() {
    let options = ["--hip-trace", "--kernel-trace", "--stats", "-f", "csv"];
    let outcome = Rpd::new(options)
        .workload("vector-ops", ["1", "2"])
        .success();
    assert!(
        outcome.stderr.contains("RPD HIP_API SUMMARY:"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn json_has_statistics_for_every_summary_option() {
    for (option, is_summary) in [
        (&["--stats"][..], false),
        (&["--summary"], true),
        (&["-D"], true),
        (&["--summary-groups", "KERNEL_DISPATCH|HIP_API"], true),
    ] {
        let outcome = Rpd::new(["--hip-trace", "--kernel-trace", "-f", "json", "csv"])
            .option(option)
            .workload("vector-ops", ["1", "2"])
            .success();
        let document = document(&outcome, "_results.json");
        let summary = document["summary"].as_array().expect("a list");
        let domains: Vec<&str> = summary
            .iter()
            .filter_map(|entry| entry["domain"].as_str())
            .collect();
        assert_eq!(domains, ["KERNEL_DISPATCH", "HIP_API"], "{option:?}");
        let config = &document["metadata"]["config"];
        assert_eq!(config["summary_output"], is_summary, "{option:?}");
        let has_files = !outcome.files_ending("_stats.csv").is_empty();
        assert_eq!(has_files, !is_summary, "{option:?}: {:?}", outcome.files());
    }
}

#[test]
fn config_json_has_every_key_of_rocprofv3() {
    let outcome = Rpd::new(["--hip-trace", "--output-config", "--summary", "-f", "json"])
        .env("OMPI_COMM_WORLD_RANK", "2")
        .env("OMPI_COMM_WORLD_SIZE", "4")
        .workload("vector-ops", ["1", "2"])
        .success();
    let file = document(&outcome, "_config.json");
    let profile = serde_json::json!({"threads": 0, "contexts": 0});
    assert_eq!(file["metadata"]["profile"], profile);
    let file = &file["metadata"]["config"];
    for (key, value) in [
        ("mpi_rank", Value::from(2)),
        ("mpi_size", Value::from(4)),
        ("pc_sampling_method", Value::from("none")),
        ("pc_sampling_interval", Value::from(1)),
        ("att_param_buffer_size", Value::from(0x1000_0000)),
        ("att_param_perfcounters", Value::Array(Vec::new())),
        ("summary_output", Value::from(true)),
    ] {
        assert_eq!(file[key], value, "{key}");
    }
    let results = document(&outcome, "_results.json");
    let head = results["metadata"]["config"]
        .as_object()
        .expect("an object");
    for (key, value) in head {
        assert_eq!(&file[key], value, "{key}");
    }
}

#[test]
fn compat_mode_writes_argument_types_of_rocprofv3() {
    let types_of = |name: &str| -> Vec<String> {
        let outcome = Rpd::called(name, ["--hip-runtime-trace", "-f", "json"])
            .workload("vector-ops", ["1", "1"])
            .success();
        let document = document(&outcome, "_results.json");
        let calls = document["buffer_records"]["hip_api"]
            .as_array()
            .expect("a list");
        let copy = calls
            .iter()
            .map(|call| call["args"].as_array().expect("a list"))
            .find(|arguments| {
                arguments
                    .iter()
                    .any(|argument| argument["name"] == "sizeBytes")
            })
            .expect("a copy");
        copy.iter()
            .map(|argument| argument["type"].as_str().expect("a text").to_owned())
            .collect()
    };
    assert_eq!(
        types_of("rocprofv3"),
        ["Pv", "PKv", "m", "13hipMemcpyKind", "P12ihipStream_t"]
    );
    assert_eq!(
        types_of("rpd"),
        [
            "void*",
            "void const*",
            "unsigned long",
            "hipMemcpyKind",
            "ihipStream_t*"
        ]
    );
}

#[test]
fn rocprofv3_avail_prints_listings_of_the_original() {
    let list = |name: &str, words: &[&str]| Rpd::bare(name, words).run().success().stdout;
    let original = list("rocprofv3-avail", &["list", "--backend", "sim"]);
    assert!(!original.contains("Not available"), "{original}");
    assert!(original.contains("SQ_WAVES"), "{original}");
    // Names may be cut short, as the original's parser allows it.
    let words = ["--dev", "0", "info", "--pm", "SQ_WAVES", "--backend", "sim"];
    let described = list("rocprofv3-avail", &words);
    assert!(
        described.contains("Counter_Name        :\tSQ_WAVES\n"),
        "{described}"
    );
    let words = ["info", "--pmc", "NO_SUCH", "--backend", "sim"];
    let nothing = list("rocprofv3-avail", &words);
    assert!(nothing.starts_with("GPU:0\nName:"), "{nothing}");
    assert_eq!(nothing.lines().count(), 2, "{nothing}");
    let agents = list("rocprofv3-avail", &["list", "--agent", "--backend", "sim"]);
    assert!(
        agents.contains("GPU:0\n") && !agents.contains("CPU:"),
        "{agents}"
    );
}
