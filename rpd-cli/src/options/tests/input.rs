//! Input files and how they merge with the command line: command-line-151 to command-line-198.

mod keys;

use rpd_core::options::Options;
use serde_json::json;

use super::{Got, counted, run_with, with_file};
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
fn unusable_input_files_are_refused() {
    for (case, name, content, fragment) in [
        ("command-line-151", "foo.toml", "", "recognized extension"),
        (
            "command-line-152",
            "foo.TXT",
            "pmc: A",
            "recognized extension",
        ),
        ("command-line-152", "txt", "pmc: A", "recognized extension"),
        (
            "command-line-155",
            "f.json",
            r#"{"jobs":["#,
            "f.json:1:9: EOF",
        ),
        (
            "command-line-155",
            "f.json",
            "{\"jobs\":[{}\n,]}",
            "f.json:2:2",
        ),
        ("command-line-156", "f.json", r#"{"job":[]}"#, "'jobs'"),
        (
            "command-line-157",
            "f.json",
            r#"{"jobs":["x"]}"#,
            "f.json:1:10: a job must be",
        ),
        (
            "command-line-157",
            "f.json",
            r#"{"jobs":{"a":{}}}"#,
            "f.json:1:9: 'jobs' must be a list",
        ),
        ("command-line-158", "f.yaml", "jobs: [a", "f.yaml:2:1: "),
        (
            "command-line-158",
            "f.yaml",
            "jobs:\n\t- pmc: [A]\n",
            "f.yaml:2:",
        ),
        ("command-line-159", "f.yaml", "job: []", "'jobs'"),
        ("command-line-159", "f.yaml", "", "f.yaml"),
        ("command-line-159", "f.yaml", "# nothing\n", "f.yaml"),
        ("command-line-159", "f.yaml", "jobs:", "must be a list"),
        // command-line-D7: an error, where the original crashes or does nothing.
        ("command-line-160", "f.json", r#"{"jobs":[]}"#, "no job"),
        ("command-line-160", "f.yaml", "jobs: []", "no job"),
        ("command-line-164", "f.txt", "# pmc: A\n", "no job"),
        ("command-line-169", "f.txt", "PMC: A\n", "no job"),
        ("command-line-170", "f.txt", "gpu: 0\nkernel: x\n", "no job"),
        (
            "unnumbered",
            "f.yaml",
            "--- {jobs: [{pmc: [A]}]}\n--- {}\n",
            "f.yaml:2:1: a second document",
        ),
        ("unnumbered", "f.yaml", "jobs: &a [*a]\n", "alias"),
    ] {
        let failure = with_file(name, content, "--hip-trace -- true", &[]).expect_err(content);
        assert_eq!(failure.status, 1, "{case}: {failure}");
        assert!(failure.message.contains(fragment), "{case}: {failure}");
        assert!(!failure.message.contains('\n'), "{case}: {failure}");
    }
    for name in ["missing.json", "missing.txt", "missing.yaml"] {
        match run_with(&format!("-i {name} -- true"), &[]) {
            Got::Failure(failure) => {
                assert_eq!(failure.status, 1, "command-line-154");
                assert!(
                    failure.message.contains("No such file"),
                    "command-line-154: {failure}"
                );
            }
            _ => panic!("command-line-154: {name}"),
        }
    }
}

#[test]
fn text_file_has_a_job_for_each_pmc_line() {
    let groups = |name: &str, content: &str| -> Vec<String> {
        let plan =
            with_file(name, content, "-- a", &[]).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(plan.warnings[0].contains("deprecated"), "command-line-171");
        plan.passes
            .iter()
            .map(|pass| counted(&pass.options))
            .collect()
    };
    for (case, name, content, expected) in [
        ("command-line-153", "f.text", "pmc: A\n", &["A"][..]),
        (
            "command-line-163",
            "f.txt",
            "pmc: A B\npmc: C\n",
            &["A B", "C"],
        ),
        ("command-line-164", "f.txt", "# pmc: A\npmc: B\n", &["B"]),
        ("command-line-165", "f.txt", "pmc: B # C\n", &["B"]),
        ("command-line-166", "f.txt", "pmc:\tD  E\n", &["D E"]),
        ("command-line-167", "f.txt", "  pmc:F,G\n", &["F G"]),
        (
            "command-line-168",
            "f.txt",
            "pmc: \\\nH\npmc: A",
            &["", "A"],
        ),
        ("command-line-169", "f.txt", "PMC: A\npmc: B\n", &["B"]),
        ("unnumbered", "f.txt", "A pmc: B pmc: C\r\n", &["A B C"]),
        ("unnumbered", "f.txt", "\u{feff}pmc: A\n", &["A"]),
    ] {
        assert_eq!(groups(name, content), expected, "{case}: {content:?}");
    }
    let plan = with_file("f.txt", "pmc: \\\nH\n", "-- a", &[]).expect("a plan");
    assert!(
        plan.warnings[1].contains("f.txt:1: no counter is named"),
        "command-line-168: {:?}",
        plan.warnings
    );
}

#[test]
fn documents_have_a_job_for_each_item() {
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
        assert_eq!(
            groups,
            ["A", "B C", "D"],
            "command-line-161, command-line-162: {name}"
        );
        assert_eq!(
            plan.warnings, [""; 0],
            "command-line-161, command-line-162: {name}"
        );
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
fn jobs_may_differ_from_defaults_that_nobody_gave() {
    // command-line-D2: in the original these four contradict defaults that no one gave.
    for unit in [r#""msec""#, r#"["msec"]"#] {
        let content = format!(
            r#"{{"hip_trace":true,"collection_period":["1:1:1"],"collection_period_unit":{unit}}}"#
        );
        assert_eq!(
            job(&content).collector.periods[0].delay,
            1_000_000,
            "command-line-184"
        );
    }
    let seconds =
        job(r#"{"hip_trace":true,"collection_period":["1:1:1"],"collection_period_unit":["sec"]}"#);
    assert_eq!(
        seconds.collector.periods[0].delay, 1_000_000_000,
        "command-line-185"
    );
    let preload = job(r#"{"hip_trace":true,"preload":["/x.so"]}"#).preload;
    assert_eq!(
        preload,
        [std::path::PathBuf::from("/x.so")],
        "command-line-186"
    );
    let content = r#"{"jobs":[{"hip_trace":true,"preload":["/x.so"]}]}"#;
    let plan =
        with_file("f.json", content, "-- a", &[("ROCPROF_PRELOAD", "/y.so")]).expect("a plan");
    assert_eq!(
        plan.passes[0].options.preload, preload,
        "command-line-186, with the variable"
    );
    // In the original this switch has a default that contradicts a job (command-line-187).
    let content = r#"{"advanced_thread_trace":true,"att_serialize_all":true,"att_target_cu":0,"att_simd_select":0,"att_gpu_index":[0,1]}"#;
    let traced = job(content).collector.thread_trace;
    let traced = traced.expect("a thread trace");
    assert!(traced.serialize_all);
    // An integer 0 is a value.
    assert_eq!((traced.target_cu, traced.simds), (0, 0));
    assert_eq!(traced.gpus, [0, 1]);
}

#[test]
fn command_line_and_job_merge_unless_they_conflict() {
    let formats = r#"{"hip_trace":true,"output_format":["csv"]}"#;
    let content = format!(r#"{{"jobs":[{formats}]}}"#);
    assert!(
        with_file("f.json", &content, "-f csv -- a", &[]).is_ok(),
        "command-line-188"
    );
    let message = refused(formats, "-f json -- a", &[]);
    assert_eq!(
        message,
        "f.json:1:44: conflicting values for output_format: [csv] here, [json] by -f/--output-format",
        "command-line-189"
    );
    let message = refused(r#"{"hip_trace":true}"#, "--hip-trace=no -- a", &[]);
    assert!(
        message.contains("conflicting values for hip_trace: true here, false by --hip-trace"),
        "command-line-190: {message}"
    );
    // command-line-D3: the word is the truth value that the command line gives, too.
    let word = r#"{"jobs":[{"hip_trace":"yes"}]}"#;
    assert!(
        with_file("f.json", word, "--hip-trace -- a", &[]).is_ok(),
        "command-line-191"
    );
    let variable = [("ROCPROF_OUTPUT_PATH", "zzz")];
    let message = refused(
        r#"{"hip_trace":true,"output_directory":"a"}"#,
        "-- a",
        &variable,
    );
    assert!(
        message.contains("'a' here, 'zzz' by ROCPROF_OUTPUT_PATH"),
        "command-line-192: {message}"
    );
    let content = r#"{"jobs":[{"hip_trace":true,"output_directory":"/a"}]}"#;
    let plan = with_file("f.json", content, "-d /a -- a", &variable)
        .expect("the variable is not looked at");
    assert_eq!(plan.passes[0].options.output_directory, "/a");
    // command-line-D4: a conflict in a later job is found before the first pass runs.
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
        "command-line-193"
    );
    assert!(
        plan(r#"{"list_avail":true}"#, "").list_avail,
        "command-line-194"
    );
    assert!(plan(r#"{"continue_on_error":true,"pmc":["A"]}"#, "-- a").continue_on_error);
    let turns = plan(
        r#"{"pmc_groups":[["A","B"],["C"]],"pmc_group_interval":4}"#,
        "-- a",
    );
    assert_eq!(
        counted(&turns.passes[0].options),
        "A B | C",
        "command-line-195"
    );
    assert_eq!(
        turns.passes[0].options.collector.counters.group_interval, 4,
        "command-line-195"
    );
    let message = refused(r#"{"pmc_groups":[["B"]]}"#, "--pmc A -- a", &[]);
    assert!(
        message.contains("Cannot specify both"),
        "command-line-196, by both: {message}"
    );
    // Aggregates of the command line do not change members that a job sets.
    let options = plan(r#"{"hsa_trace":false}"#, "-s -- a")
        .passes
        .remove(0)
        .options;
    assert!(options.collector.traces.hip_runtime && !options.collector.traces.hsa_core);
}

#[test]
fn samples_of_the_guide_become_their_passes() {
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
    // What ends the original after its first pass is refused before it: the second job requests csv and json.
    let failure = yaml(counters, "-f csv -- a").expect_err("a conflict");
    assert!(
        failure
            .message
            .starts_with("f.yaml:9:7: conflicting values for output_format"),
        "{failure}"
    );
}

#[test]
fn ten_thousand_jobs_are_resolved_within_the_time_limit() {
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
