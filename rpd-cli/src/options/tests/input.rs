//! Input files and how they merge with the command line: cases 151 to 198.

use rpd_core::options::Options;
use serde_json::json;

use super::{Got, counted, run_with, traced, with_file};
use crate::failure::Failure;

fn yaml(content: &str, line: &str) -> Result<Vec<Options>, Failure> {
    let plan = with_file("f.yaml", content, line, &[])?;
    Ok(plan.passes.into_iter().map(|pass| pass.options).collect())
}

/// The one job of a file.
fn job(content: &str) -> Options {
    match with_file("f.json", &format!(r#"{{"jobs":[{content}]}}"#), "-- a", &[]) {
        Ok(mut plan) => plan.passes.remove(0).options,
        Err(failure) => panic!("{content}: {failure}"),
    }
}

fn refused(content: &str, line: &str, environment: &[(&str, &str)]) -> String {
    let content = format!(r#"{{"jobs":[{content}]}}"#);
    let failure = with_file("f.json", &content, line, environment).expect_err(&content);
    assert_eq!(failure.status, 1, "{failure}");
    assert!(!failure.message.contains('\n'), "{failure}");
    failure.message
}

#[test]
fn files_that_cannot_be_used() {
    for (case, name, content, fragment) in [
        (151, "foo.toml", "", "recognized extension"),
        (152, "foo.TXT", "pmc: A", "recognized extension"),
        (152, "txt", "pmc: A", "recognized extension"),
        (155, "f.json", r#"{"jobs":["#, "f.json:1:9: EOF"),
        (155, "f.json", "{\"jobs\":[{}\n,]}", "f.json:2:2"),
        (156, "f.json", r#"{"job":[]}"#, "'jobs'"),
        (
            157,
            "f.json",
            r#"{"jobs":["x"]}"#,
            "f.json:1:10: a job must be",
        ),
        (
            157,
            "f.json",
            r#"{"jobs":{"a":{}}}"#,
            "f.json:1:9: 'jobs' must be a list",
        ),
        (158, "f.yaml", "jobs: [a", "f.yaml:2:1: "),
        (158, "f.yaml", "jobs:\n\t- pmc: [A]\n", "f.yaml:2:"),
        (159, "f.yaml", "job: []", "'jobs'"),
        (159, "f.yaml", "", "f.yaml"),
        (159, "f.yaml", "# nothing\n", "f.yaml"),
        (159, "f.yaml", "jobs:", "must be a list"),
        // D7: neither silence nor a crash.
        (160, "f.json", r#"{"jobs":[]}"#, "no job"),
        (160, "f.yaml", "jobs: []", "no job"),
        (164, "f.txt", "# pmc: A\n", "no job"),
        (169, "f.txt", "PMC: A\n", "no job"),
        (170, "f.txt", "gpu: 0\nkernel: x\n", "no job"),
        (
            0,
            "f.yaml",
            "--- {jobs: [{pmc: [A]}]}\n--- {}\n",
            "f.yaml:2:1: a second document",
        ),
        (0, "f.yaml", "jobs: &a [*a]\n", "alias"),
    ] {
        let failure = with_file(name, content, "--hip-trace -- true", &[]).expect_err(content);
        assert_eq!(failure.status, 1, "case {case}: {failure}");
        assert!(failure.message.contains(fragment), "case {case}: {failure}");
        assert!(!failure.message.contains('\n'), "case {case}: {failure}");
    }
    for name in ["missing.json", "missing.txt", "missing.yaml"] {
        match run_with(&format!("-i {name} -- true"), &[]) {
            Got::Failure(failure) => {
                assert_eq!(failure.status, 1, "case 154");
                assert!(
                    failure.message.contains("No such file"),
                    "case 154: {failure}"
                );
            }
            _ => panic!("case 154: {name}"),
        }
    }
}

#[test]
fn jobs_of_text_files() {
    let groups = |name: &str, content: &str| -> Vec<String> {
        let plan =
            with_file(name, content, "-- a", &[]).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(plan.warnings[0].contains("deprecated"), "case 171");
        plan.passes
            .iter()
            .map(|pass| counted(&pass.options))
            .collect()
    };
    for (case, name, content, expected) in [
        (153, "f.text", "pmc: A\n", &["A"][..]),
        (163, "f.txt", "pmc: A B\npmc: C\n", &["A B", "C"]),
        (164, "f.txt", "# pmc: A\npmc: B\n", &["B"]),
        (165, "f.txt", "pmc: B # C\n", &["B"]),
        (166, "f.txt", "pmc:\tD  E\n", &["D E"]),
        (167, "f.txt", "  pmc:F,G\n", &["F G"]),
        (168, "f.txt", "pmc: \\\nH\npmc: A", &["", "A"]),
        (169, "f.txt", "PMC: A\npmc: B\n", &["B"]),
        (0, "f.txt", "A pmc: B pmc: C\r\n", &["A B C"]),
        (0, "f.txt", "\u{feff}pmc: A\n", &["A"]),
    ] {
        assert_eq!(groups(name, content), expected, "case {case}: {content:?}");
    }
    let plan = with_file("f.txt", "pmc: \\\nH\n", "-- a", &[]).expect("a plan");
    assert!(
        plan.warnings[1].contains("f.txt:1: no counter is named"),
        "case 168: {:?}",
        plan.warnings
    );
}

#[test]
fn jobs_of_documents() {
    let three = [
        (
            "f.json",
            r#"{"jobs":[{"pmc":["A"]},{"pmc":["B","C"]},{"pmc":["D"]}]}"#,
        ),
        (
            "f.yaml",
            "jobs:\n  - pmc: [A]\n  - pmc:\n    - B\n    - C\n  - pmc: D\n",
        ),
        (
            "f.yml",
            "---\njobs: [{pmc: [A]}, {pmc: [B, C]}, {pmc: [D]}]\n...\n",
        ),
    ];
    for (name, content) in three {
        let plan =
            with_file(name, content, "-- a", &[]).unwrap_or_else(|failure| panic!("{failure}"));
        let groups: Vec<String> = plan
            .passes
            .iter()
            .map(|pass| counted(&pass.options))
            .collect();
        assert_eq!(groups, ["A", "B C", "D"], "cases 161, 162: {name}");
        assert_eq!(plan.warnings, [""; 0], "cases 161, 162: {name}");
    }
    // Anchors, aliases and merge keys; escapes and long lines of JSON.
    let merged = "jobs:\n  - &a {output_file: x, pmc: [A]}\n  - <<: *a\n    pmc: [B]\n";
    let passes = yaml(merged, "-- a").expect("a plan");
    assert_eq!(
        (counted(&passes[1]).as_str(), passes[1].output_file.as_str()),
        ("B", "x")
    );
    assert_eq!(
        job("{\"output_file\":\"\\u00e4\\\"\\ud83d\\ude00\",\"hip_trace\":true}").output_file,
        "ä\"😀"
    );
}

#[test]
fn keys() {
    let warned = |content: &str| {
        let plan =
            with_file("f.yaml", content, "-- a", &[]).unwrap_or_else(|failure| panic!("{failure}"));
        (
            plan.warnings,
            plan.passes.into_iter().next().expect("a pass").options,
        )
    };
    // D3: said, with place and what may have been meant.
    let (warnings, options) =
        warned("jobs:\n  - hip_trace: true\n    bogus_key: 1\n    kernal_trace: yes\n");
    assert_eq!(
        warnings,
        [
            "f.yaml:3:5: unknown key 'bogus_key' is ignored",
            "f.yaml:4:5: unknown key 'kernal_trace' is ignored; did you mean kernel_trace?",
        ],
        "case 172"
    );
    assert_eq!(
        traced(&options),
        ["hip_compiler", "hip_runtime"],
        "case 172"
    );
    let (warnings, _) =
        warned("jobs:\n  - {hip_trace: true, x1y: 1}\n  - {hip_trace: true, x1y: 1}\n");
    assert_eq!(
        warnings,
        ["f.yaml:2:23: unknown key 'x1y' is ignored (2 times)"]
    );
    let (warnings, _) = warned("else: 1\njobs: [{hip_trace: on}]\n");
    assert_eq!(warnings, ["f.yaml:1:1: unknown key 'else' is ignored"]);
    // A key that stands twice counts once, the last time, and that is said.
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
    assert_eq!(traced(&options), ["hip_compiler", "hip_runtime"]);
    for name in ["input", "version", "sub_directory"] {
        let (warnings, _) = warned(&format!("jobs: [{{hip_trace: on, {name}: x}}]"));
        assert!(
            warnings[0].contains(&format!("unknown key '{name}'")),
            "{warnings:?}"
        );
    }
    // D3: dashes are underscores.
    let dashes = job(r#"{"minimum-output-data":5,"hip_trace":true}"#);
    assert_eq!(dashes.minimum_output_bytes, 5120, "case 173");
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

#[test]
fn values() {
    // D3: truth words are truth values, and one word is a list of one.
    assert_eq!(
        traced(&job(r#"{"hip_trace":"no","kernel_trace":true}"#)),
        ["kernel"],
        "case 174"
    );
    assert_eq!(
        counted(&job(r#"{"pmc":"SQ_WAVES"}"#)),
        "SQ_WAVES",
        "case 175"
    );
    assert_eq!(
        json!(job(r#"{"output_format":"csv","hip_trace":1}"#).formats),
        json!(["csv"]),
        "case 176"
    );
    assert_eq!(
        job(r#"{"summary_groups":"A|B","hip_trace":true}"#)
            .summary
            .groups,
        ["A|B"],
        "case 198"
    );
    let ranges = |options: &Options| -> Vec<(u64, u64)> {
        let ranges = options.collector.counters.iterations.iter();
        ranges.map(|range| (range.first, range.last)).collect()
    };
    for (case, value) in [
        (177, r#""[1-2],[3-4]""#),
        (178, r#"["[1-2]","[3-4]"]"#),
        (0, r#"[["1-2"],["3-4"]]"#),
    ] {
        let options = job(&format!(
            r#"{{"pmc":["A"],"kernel_iteration_range":{value}}}"#
        ));
        assert_eq!(ranges(&options), [(1, 2), (3, 4)], "case {case}");
    }
    let one = |content: &str| yaml(content, "-- a").map(|mut passes| passes.remove(0));
    let range = one("jobs: [{pmc: [A], kernel_iteration_range: [1-2]}]").expect("a plan");
    assert_eq!(ranges(&range), [(1, 2)], "case 179");
    let range = one("jobs: [{pmc: [A], kernel_iteration_range: [1, 3, [8-12]]}]").expect("a plan");
    assert_eq!(
        ranges(&range),
        [(1, 1), (3, 3), (8, 12)],
        "case 273, without quotes"
    );
    let words = one("jobs: [{hip_trace: yes, hsa_trace: off}]").expect("a plan");
    assert_eq!(traced(&words), ["hip_compiler", "hip_runtime"], "case 180");
    // D18
    let failure =
        one("jobs:\n  - hip_trace: yes\n    collection_period: [10:10:1]\n").expect_err("case 181");
    assert_eq!(failure.status, 1, "case 181");
    assert!(
        failure
            .message
            .starts_with("f.yaml:3:24: collection_period"),
        "case 181: {failure}"
    );
    assert!(
        failure.message.contains("write \"10:10:1\""),
        "case 181: {failure}"
    );
    let hexadecimal = one("jobs: [{hip_trace: yes, minimum_output_data: 0x11}]").expect("a plan");
    assert_eq!(hexadecimal.minimum_output_bytes, 17 * 1024, "D18");
    let second = 1_000_000_000;
    for (case, value) in [
        (182, "[\"1:1:1\"]"),
        (183, "\"1:1:1\""),
        (183, "!!str 1:1:1"),
    ] {
        // Case 183 is an error of the original; D3 makes a list of the word.
        let options = one(&format!(
            "jobs: [{{hip_trace: yes, collection_period: {value}}}]"
        ));
        let periods = options.expect("a plan").collector.periods;
        assert_eq!(
            (periods.len(), periods[0].delay),
            (1, second),
            "case {case}"
        );
    }
    let null = one("jobs: [{hip_trace: yes, output_file: ~, hsa_trace: , output_format: null}]");
    assert_eq!(null.expect("a plan").output_file, "%hostname%/%pid%");
    let raw = one("jobs: [{hip_trace: yes, output_file: 0012}]").expect("a plan");
    assert_eq!(raw.output_file, "0012", "a text is what was written");
}

#[test]
fn values_that_a_key_cannot_have() {
    for (case, content, fragment) in [
        (
            "197",
            r#"{"perfetto_buffer_size":true,"hip_trace":true}"#,
            "perfetto_buffer_size: invalid int value: 'true'",
        ),
        (
            "33",
            r#"{"perfetto_buffer_size":0,"hip_trace":true}"#,
            "less than 1",
        ),
        (
            "33",
            r#"{"perfetto_buffer_size":4194304,"hip_trace":true}"#,
            "more than 4194303",
        ),
        (
            "D20",
            r#"{"output_format":["cvs"],"hip_trace":true}"#,
            "invalid choice: 'cvs'",
        ),
        (
            "D20",
            r#"{"output_format":["pftrac"],"hip_trace":true}"#,
            "did you mean pftrace?",
        ),
        (
            "D20",
            r#"{"summary_units":"SEC","hip_trace":true,"summary":true}"#,
            "invalid choice: 'SEC'",
        ),
        (
            "113",
            r#"{"pc_sampling_unit":"bogus"}"#,
            "invalid choice: 'bogus'",
        ),
        (
            "129",
            r#"{"att_resource_mode":"invalid"}"#,
            "invalid choice: 'invalid'",
        ),
        (
            "D3",
            r#"{"hip_trace":"maybe"}"#,
            "f.json:1:23: hip_trace: invalid truth value 'maybe'",
        ),
        ("D3", r#"{"hip_trace":2}"#, "invalid truth value '2'"),
        ("D3", r#"{"hip_trace":[]}"#, "expected one value"),
        ("D3", r#"{"hip_trace":{}}"#, "not a mapping"),
        (
            "D3",
            r#"{"output_format":[],"hip_trace":true}"#,
            "at least one value",
        ),
        ("D3", r#"{"pmc":[["A"],["B"]]}"#, "pmc_groups"),
        ("D3", r#"{"pmc":["A:device=x"]}"#, "pmc: 'A:device=x'"),
        (
            "1.7",
            r#"{"pmc_groups":[["A"],[]]}"#,
            "Empty counter group, number 2",
        ),
        (
            "1.7",
            r#"{"pmc_groups":[["A"],["B"]],"pmc_group_interval":-1}"#,
            "less than 0",
        ),
        (
            "196",
            r#"{"pmc":["A"],"pmc_groups":[["B"]]}"#,
            "Cannot specify both",
        ),
        (
            "2.4",
            r#"{"pmc_raw":["SQ,0,4"]}"#,
            "pmc_raw: this build of rpd lacks",
        ),
        (
            "D19",
            r#"{"pmc":["A"],"kernel_include_regex":"("}"#,
            "f.json:1:46: kernel_include_regex",
        ),
        (
            "3.2",
            r#"{"hip_trace":true,"output_file":"%nothing%"}"#,
            "output_file",
        ),
    ] {
        let message = refused(content, "-- a", &[]);
        assert!(message.contains(fragment), "case {case}: {message}");
    }
    for (case, mode, fragment) in [
        (147, "kernel", "lacks kernel replay"),
        (150, "dispatch", "invalid choice"),
    ] {
        let content = format!("job_replay_mode: {mode}\njobs: [{{pmc: [A]}}]");
        let failure = yaml(&content, "-- a").expect_err(mode);
        assert_eq!(failure.status, 1, "case {case}");
        assert!(failure.message.contains(fragment), "case {case}: {failure}");
    }
    assert!(
        yaml("job_replay_mode: application\njobs: [{pmc: [A]}]", "-- a").is_ok(),
        "case 150"
    );
}

#[test]
fn defaults_of_the_command_line_are_unset() {
    // D2: in the original these four contradict defaults that nobody gave.
    for unit in [r#""msec""#, r#"["msec"]"#] {
        let content = format!(
            r#"{{"hip_trace":true,"collection_period":["1:1:1"],"collection_period_unit":{unit}}}"#
        );
        assert_eq!(
            job(&content).collector.periods[0].delay,
            1_000_000,
            "case 184"
        );
    }
    let seconds =
        job(r#"{"hip_trace":true,"collection_period":["1:1:1"],"collection_period_unit":["sec"]}"#);
    assert_eq!(
        seconds.collector.periods[0].delay, 1_000_000_000,
        "case 185"
    );
    let preload = job(r#"{"hip_trace":true,"preload":["/x.so"]}"#).preload;
    assert_eq!(preload, [std::path::PathBuf::from("/x.so")], "case 186");
    let content = r#"{"jobs":[{"hip_trace":true,"preload":["/x.so"]}]}"#;
    let plan =
        with_file("f.json", content, "-- a", &[("ROCPROF_PRELOAD", "/y.so")]).expect("a plan");
    assert_eq!(
        plan.passes[0].options.preload, preload,
        "case 186, with the variable"
    );
    // Case 187 is a defect of the original: the switch has no default that a job could conflict with.
    let content = r#"{"advanced_thread_trace":true,"att_serialize_all":true,"att_target_cu":0,"att_simd_select":0,"att_gpu_index":[0,1]}"#;
    let traced = job(content).collector.thread_trace;
    let traced = traced.expect("a thread trace");
    assert!(traced.serialize_all);
    // An integer 0 is a value.
    assert_eq!((traced.target_cu, traced.simds), (0, 0));
    assert_eq!(traced.gpus, [0, 1]);
}

#[test]
fn command_line_and_job() {
    let formats = r#"{"hip_trace":true,"output_format":["csv"]}"#;
    let content = format!(r#"{{"jobs":[{formats}]}}"#);
    assert!(
        with_file("f.json", &content, "-f csv -- a", &[]).is_ok(),
        "case 188"
    );
    let message = refused(formats, "-f json -- a", &[]);
    assert_eq!(
        message,
        "f.json:1:44: conflicting values for output_format: [csv] here, [json] by -f/--output-format",
        "case 189"
    );
    let message = refused(r#"{"hip_trace":true}"#, "--hip-trace=no -- a", &[]);
    assert!(
        message.contains("conflicting values for hip_trace: true here, false by --hip-trace"),
        "case 190: {message}"
    );
    // D3: the word is the truth value that the command line gives, too.
    let word = r#"{"jobs":[{"hip_trace":"yes"}]}"#;
    assert!(
        with_file("f.json", word, "--hip-trace -- a", &[]).is_ok(),
        "case 191"
    );
    let variable = [("ROCPROF_OUTPUT_PATH", "zzz")];
    let message = refused(
        r#"{"hip_trace":true,"output_directory":"a"}"#,
        "-- a",
        &variable,
    );
    assert!(
        message.contains("'a' here, 'zzz' by ROCPROF_OUTPUT_PATH"),
        "case 192: {message}"
    );
    let content = r#"{"jobs":[{"hip_trace":true,"output_directory":"/a"}]}"#;
    let plan = with_file("f.json", content, "-d /a -- a", &variable)
        .expect("the variable is not looked at");
    assert_eq!(plan.passes[0].options.output_directory, "/a");
    // D4: a conflict in a later job is found before the first pass runs.
    let message = refused(
        &format!(r#"{{"pmc":["A"]}},{formats}"#),
        "-f json -- a",
        &[],
    );
    assert!(message.contains("conflicting values"), "{message}");

    let plan = |content: &str, line: &str| {
        let content = format!(r#"{{"jobs":[{content}]}}"#);
        with_file("f.json", &content, line, &[]).unwrap_or_else(|failure| panic!("{failure}"))
    };
    assert!(
        plan(r#"{"echo":true,"hip_trace":true}"#, "").echo,
        "case 193"
    );
    assert!(plan(r#"{"list_avail":true}"#, "").list_avail, "case 194");
    assert!(plan(r#"{"continue_on_error":true,"pmc":["A"]}"#, "-- a").continue_on_error);
    let turns = plan(
        r#"{"pmc_groups":[["A","B"],["C"]],"pmc_group_interval":4}"#,
        "-- a",
    );
    assert_eq!(counted(&turns.passes[0].options), "A B | C", "case 195");
    assert_eq!(
        turns.passes[0].options.collector.counters.group_interval, 4,
        "case 195"
    );
    let message = refused(r#"{"pmc_groups":[["B"]]}"#, "--pmc A -- a", &[]);
    assert!(
        message.contains("Cannot specify both"),
        "case 196, by both: {message}"
    );
    // Aggregates of the command line leave what a job says about their members.
    let options = plan(r#"{"hsa_trace":false}"#, "-s -- a")
        .passes
        .remove(0)
        .options;
    assert!(options.collector.traces.hip_runtime && !options.collector.traces.hsa_core);
}

#[test]
fn the_samples_of_the_guide() {
    let traces = "jobs:
  - output_directory: \"@CMAKE_CURRENT_BINARY_DIR@/%env{ARBITRARY_ENV_VARIABLE}%\"
    output_file: out
    output_format: [pftrace, json, otf2]
    log_level: env
    runtime_trace: true
    kernel_rename: true
    summary: true
    summary_per_domain: true
    summary_groups: [\"KERNEL_DISPATCH|MEMORY_COPY\"]
    summary_output_file: \"summary\"
";
    let traces = yaml(traces, "-- a").expect("a plan").remove(0);
    assert_eq!(json!(traces.formats), json!(["pftrace", "json", "otf2"]));
    assert!(
        traces
            .output_directory
            .ends_with("/@CMAKE_CURRENT_BINARY_DIR@/%env{ARBITRARY_ENV_VARIABLE}%")
    );
    assert!(traces.summary.overall && traces.summary.per_domain && traces.kernel_names.rename);
    assert_eq!(traces.summary.output, "summary");
    let counters = "jobs:
  - pmc: [\"SQ_WAVES\", \"GRBM_COUNT\", \"GRBM_GUI_ACTIVE\"]
  - pmc: [\"SQ_WAVE_CYCLES\", \"WRITE_SIZE\"]
    kernel_include_regex: \".*_kernel\"
    kernel_exclude_regex: \"multiply\"
    kernel_iteration_range: \"[1-2],[3-4]\"
    output_file: \"out\"
    output_format:
      - \"csv\"
      - \"json\"
    truncate_kernels: true
";
    let passes = yaml(counters, "-- a").expect("a plan");
    assert_eq!(counted(&passes[0]), "GRBM_COUNT GRBM_GUI_ACTIVE SQ_WAVES");
    assert_eq!(counted(&passes[1]), "SQ_WAVE_CYCLES WRITE_SIZE");
    assert!(passes[1].collector.counters.truncate && !passes[0].collector.counters.truncate);
    let text = with_file(
        "f.txt",
        "pmc: GPUBusy SQ_WAVES\npmc: GRBM_GUI_ACTIVE\n",
        "-- a",
        &[],
    );
    assert_eq!(text.expect("a plan").passes.len(), 2);
    // What ends the original after its first pass is found before it: the second job says csv and json.
    let failure = yaml(counters, "-f csv -- a").expect_err("a conflict");
    assert!(
        failure
            .message
            .starts_with("f.yaml:9:7: conflicting values for output_format"),
        "{failure}"
    );
}

#[test]
fn ten_thousand_jobs() {
    let mut content = "jobs:\n".to_owned();
    for number in 0..10_000 {
        content += &format!(
            "  - pmc: [SQ_WAVES, GRBM_COUNT]\n    kernel_include_regex: \".*_kernel\"\n    \
             kernel_iteration_range: \"[1-2],[3-4]\"\n    output_file: \"out{number}\"\n    \
             output_format: [\"csv\", \"json\"]\n    truncate_kernels: true\n    bogus: 1\n"
        );
    }
    let before = std::time::Instant::now();
    let plan = with_file("f.yaml", &content, "-- a", &[]).expect("a plan");
    assert_eq!(plan.passes.len(), 10_000);
    assert_eq!(plan.warnings.len(), 1, "said once");
    // A second is the goal of a release build; this one may be ten times as slow and its machine busy.
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
}
