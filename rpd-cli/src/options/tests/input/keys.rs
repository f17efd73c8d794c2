//! The keys of input files, and the values that each takes.

use rpd_core::options::Options;
use serde_json::json;

use super::super::{counted, traced, with_file};
use super::{job, refused, yaml};

#[test]
fn job_keys_are_known_in_every_spelling() {
    let warned = |content: &str| {
        let plan =
            with_file("f.yaml", content, "-- a", &[]).unwrap_or_else(|failure| panic!("{failure}"));
        (
            plan.warnings,
            plan.passes.into_iter().next().expect("a pass").options,
        )
    };
    // command-line-D3: reported, with its place and the key that may have been meant.
    let (warnings, options) =
        warned("jobs:\n  - hip_trace: true\n    bogus_key: 1\n    kernal_trace: yes\n");
    assert_eq!(
        warnings,
        [
            "f.yaml:3:5: unknown key 'bogus_key' is ignored",
            "f.yaml:4:5: unknown key 'kernal_trace' is ignored; did you mean kernel_trace?",
        ],
        "command-line-172"
    );
    assert_eq!(
        traced(&options),
        ["hip_compiler", "hip_event", "hip_graph", "hip_runtime"],
        "command-line-172"
    );
    let (warnings, _) =
        warned("jobs:\n  - {hip_trace: true, x1y: 1}\n  - {hip_trace: true, x1y: 1}\n");
    assert_eq!(
        warnings,
        ["f.yaml:2:23: unknown key 'x1y' is ignored (2 times)"]
    );
    let (warnings, _) = warned("else: 1\njobs: [{hip_trace: on}]\n");
    assert_eq!(warnings, ["f.yaml:1:1: unknown key 'else' is ignored"]);
    // Of a key that occurs twice the last counts, and a warning names it.
    let (warnings, options) = warned(
        "jobs:\n  - hip_trace: no\njobs:\n  - hip-trace: no\n    hip_trace: yes\n    kernel_trace: no\n",
    );
    assert_eq!(
        warnings,
        [
            "f.yaml:3:1: 'jobs' is repeated; its earlier value is ignored",
            "f.yaml:5:5: 'hip_trace' is repeated; its earlier value is ignored",
        ]
    );
    assert_eq!(
        traced(&options),
        ["hip_compiler", "hip_event", "hip_graph", "hip_runtime"]
    );
    for name in ["input", "version", "sub_directory"] {
        let (warnings, _) = warned(&format!("jobs: [{{hip_trace: on, {name}: x}}]"));
        assert!(
            warnings[0].contains(&format!("unknown key '{name}'")),
            "{warnings:?}"
        );
    }
    // command-line-D3: dashes are underscores.
    let dashes = job(r#"{"minimum-output-data":5,"hip_trace":true}"#);
    assert_eq!(dashes.minimum_output_bytes, 5120, "command-line-173");
    assert!(
        job(r#"{"disable-signal-handlers":true,"hip_trace":true}"#)
            .collector
            .disable_signal_handlers
    );
    assert_eq!(
        traced(&job(r#"{"hsa_finalize_trace":true}"#)),
        ["hsa_finalizer"]
    );
    let list = with_file("f.json", r#"{"jobs":[{"list_metrics":true}]}"#, "", &[]).expect("a plan");
    assert!(list.list_avail, "the schema's name");
}

/// Checks thread-trace-8.
#[test]
fn job_values_are_read_by_the_type_of_their_option() {
    // command-line-D3: truth words are truth values, and one word is a list of one.
    assert_eq!(
        traced(&job(r#"{"hip_trace":"no","kernel_trace":true}"#)),
        ["kernel"],
        "command-line-174"
    );
    assert_eq!(
        counted(&job(r#"{"pmc":"SQ_WAVES"}"#)),
        "SQ_WAVES",
        "command-line-175"
    );
    assert_eq!(
        json!(job(r#"{"output_format":"csv","hip_trace":1}"#).formats),
        json!(["csv"]),
        "command-line-176"
    );
    assert_eq!(
        job(r#"{"summary_groups":"A|B","hip_trace":true}"#)
            .summary
            .groups,
        ["A|B"],
        "command-line-198"
    );
    let ranges = |options: &Options| -> Vec<(u64, u64)> {
        let ranges = options.collector.counters.iterations.iter();
        ranges.map(|range| (range.first, range.last)).collect()
    };
    for (case, value) in [
        ("command-line-177", r#""[1-2],[3-4]""#),
        ("command-line-178", r#"["[1-2]","[3-4]"]"#),
        ("unnumbered", r#"[["1-2"],["3-4"]]"#),
    ] {
        let options = job(&format!(
            r#"{{"pmc":["A"],"kernel_iteration_range":{value}}}"#
        ));
        assert_eq!(ranges(&options), [(1, 2), (3, 4)], "{case}");
    }
    let one = |content: &str| yaml(content, "-- a").map(|mut passes| passes.remove(0));
    let range = one("jobs: [{pmc: [A], kernel_iteration_range: [1-2]}]").expect("a plan");
    assert_eq!(ranges(&range), [(1, 2)], "command-line-179");
    let range = one("jobs: [{pmc: [A], kernel_iteration_range: [1, 3, [8-12]]}]").expect("a plan");
    assert_eq!(
        ranges(&range),
        [(1, 1), (3, 3), (8, 12)],
        "command-line-273, without quotes"
    );
    let words = one("jobs: [{hip_trace: yes, hsa_trace: off}]").expect("a plan");
    assert_eq!(
        traced(&words),
        ["hip_compiler", "hip_event", "hip_graph", "hip_runtime"],
        "command-line-180"
    );
    // Words for truth values and numbers to base 60: command-line-D18.
    let failure = one("jobs:\n  - hip_trace: yes\n    collection_period: [10:10:1]\n")
        .expect_err("command-line-181");
    assert_eq!(failure.status, 1, "command-line-181");
    assert!(
        failure
            .message
            .starts_with("f.yaml:3:24: collection_period"),
        "command-line-181: {failure}"
    );
    assert!(
        failure.message.contains("write \"10:10:1\""),
        "command-line-181: {failure}"
    );
    let hexadecimal = one("jobs: [{hip_trace: yes, minimum_output_data: 0x11}]").expect("a plan");
    assert_eq!(
        hexadecimal.minimum_output_bytes,
        17 * 1024,
        "command-line-D18"
    );
    let second = 1_000_000_000;
    for (case, value) in [
        ("command-line-182", "[\"1:1:1\"]"),
        ("command-line-183", "\"1:1:1\""),
        ("command-line-183", "!!str 1:1:1"),
    ] {
        // The original refuses a single text (command-line-183); rpd reads it as a list of one (command-line-D3).
        let options = one(&format!(
            "jobs: [{{hip_trace: yes, collection_period: {value}}}]"
        ));
        let periods = options.expect("a plan").collector.periods;
        assert_eq!((periods.len(), periods[0].delay), (1, second), "{case}");
    }
    let null = one("jobs: [{hip_trace: yes, output_file: ~, hsa_trace: , output_format: null}]");
    assert_eq!(null.expect("a plan").output_file, "%hostname%/%pid%");
    let raw = one("jobs: [{hip_trace: yes, output_file: 0012}]").expect("a plan");
    assert_eq!(raw.output_file, "0012", "a text is what was written");
}

/// Checks command-line-113.
#[test]
fn job_values_of_a_wrong_type_are_refused() {
    for (case, content, fragment) in [
        (
            "command-line-197",
            r#"{"perfetto_buffer_size":true,"hip_trace":true}"#,
            "perfetto_buffer_size: invalid int value: 'true'",
        ),
        (
            "command-line-33",
            r#"{"perfetto_buffer_size":0,"hip_trace":true}"#,
            "less than 1",
        ),
        (
            "command-line-33",
            r#"{"perfetto_buffer_size":4194304,"hip_trace":true}"#,
            "more than 4194303",
        ),
        (
            "command-line-D20",
            r#"{"output_format":["cvs"],"hip_trace":true}"#,
            "invalid choice: 'cvs'",
        ),
        (
            "command-line-D20",
            r#"{"output_format":["pftrac"],"hip_trace":true}"#,
            "did you mean pftrace?",
        ),
        (
            "command-line-D20",
            r#"{"summary_units":"SEC","hip_trace":true,"summary":true}"#,
            "invalid choice: 'SEC'",
        ),
        (
            "command-line-113",
            r#"{"pc_sampling_unit":"bogus"}"#,
            "invalid choice: 'bogus'",
        ),
        (
            "command-line-129",
            r#"{"att_resource_mode":"invalid"}"#,
            "invalid choice: 'invalid'",
        ),
        (
            "command-line-D3",
            r#"{"hip_trace":"maybe"}"#,
            "f.json:1:23: hip_trace: invalid truth value 'maybe'",
        ),
        (
            "command-line-D3",
            r#"{"hip_trace":2}"#,
            "invalid truth value '2'",
        ),
        (
            "command-line-D3",
            r#"{"hip_trace":[]}"#,
            "expected one value",
        ),
        ("command-line-D3", r#"{"hip_trace":{}}"#, "not a mapping"),
        (
            "command-line-D3",
            r#"{"output_format":[],"hip_trace":true}"#,
            "at least one value",
        ),
        ("command-line-D3", r#"{"pmc":[["A"],["B"]]}"#, "pmc_groups"),
        (
            "command-line-D3",
            r#"{"pmc":["A:device=x"]}"#,
            "pmc: 'A:device=x'",
        ),
        (
            "unnumbered",
            r#"{"pmc_groups":[["A"],[]]}"#,
            "Empty counter group, number 2",
        ),
        (
            "unnumbered",
            r#"{"pmc_groups":[["A"],["B"]],"pmc_group_interval":-1}"#,
            "less than 0",
        ),
        (
            "command-line-196",
            r#"{"pmc":["A"],"pmc_groups":[["B"]]}"#,
            "Cannot specify both",
        ),
        (
            "unnumbered",
            r#"{"pmc_raw":["SQ,0,4"]}"#,
            "pmc_raw: this build of rpd lacks",
        ),
        (
            "command-line-D19",
            r#"{"pmc":["A"],"kernel_include_regex":"("}"#,
            "f.json:1:46: kernel_include_regex",
        ),
        (
            "unnumbered",
            r#"{"hip_trace":true,"output_file":"%nothing%"}"#,
            "output_file",
        ),
    ] {
        let message = refused(content, "-- a", &[]);
        assert!(message.contains(fragment), "{case}: {message}");
    }
    for (case, mode, fragment) in [
        ("command-line-147", "kernel", "lacks kernel replay"),
        ("command-line-150", "dispatch", "invalid choice"),
    ] {
        let content = format!("job_replay_mode: {mode}\njobs: [{{pmc: [A]}}]");
        let failure = yaml(&content, "-- a").expect_err(mode);
        assert_eq!(failure.status, 1, "{case}");
        assert!(failure.message.contains(fragment), "{case}: {failure}");
    }
    assert!(
        yaml("job_replay_mode: application\njobs: [{pmc: [A]}]", "-- a").is_ok(),
        "command-line-150"
    );
}
