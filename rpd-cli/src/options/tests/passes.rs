//! Passes and their directories: command-line-199 to command-line-219, as far as a plan shows them.

use super::{layout, plan_with, with_file};
use crate::options::plan::{DirectoryStem, Plan};

/// The passes of a file beside a command line.
fn passes(name: &str, content: &str, line: &str) -> Vec<String> {
    match with_file(name, content, &format!("-d /D {line}"), &[]) {
        Ok(plan) => layout(plan),
        Err(failure) => panic!("{content}: {failure}"),
    }
}

#[test]
fn each_pmc_option_becomes_a_pass_with_its_directory() {
    for (case, line, expected) in [
        ("command-line-199", "--pmc A -d /D -- a", &["/D: A"][..]),
        ("command-line-199", "--pmc A B -d /D -- a", &["/D: A B"]),
        (
            "command-line-200",
            "--pmc A --pmc B -d /D -- a",
            &["/D/pass_1: A", "/D/pass_2: B"],
        ),
        (
            "command-line-200",
            "--pmc A --pmc B -d / -- a",
            &["/pass_1: A", "/pass_2: B"],
        ),
        (
            "command-line-200",
            "--pmc A --pmc B -d %tag% -- a",
            &["%tag%/pass_1: A", "%tag%/pass_2: B"],
        ),
    ] {
        assert_eq!(layout(plan_with(line, &[])), expected, "{case}: {line}");
    }
    let numbers = |mut plan: Plan| -> Vec<Option<u32>> {
        plan.number();
        plan.passes.iter().map(|pass| pass.options.pass).collect()
    };
    assert_eq!(numbers(plan_with("--pmc A -- a", &[])), [None]);
    assert_eq!(
        numbers(plan_with("--pmc A --pmc B -- a", &[])),
        [Some(1), Some(2)]
    );
}

#[test]
fn each_job_becomes_a_pass_with_its_directory() {
    const TWO_LINES: &str = "pmc: F S\npmc: G\n";
    for (case, name, content, line, expected) in [
        (
            "command-line-201",
            "f.json",
            r#"{"jobs":[{"pmc":["A"]}]}"#,
            "-- a",
            &["/D/pass_1: A"][..],
        ),
        (
            "command-line-201",
            "f.yaml",
            "jobs: [{pmc: [A]}]",
            "-- a",
            &["/D/pass_1: A"],
        ),
        (
            "command-line-202",
            "f.txt",
            "pmc: A\n",
            "-- a",
            &["/D/pmc_1: A"],
        ),
        (
            "command-line-203",
            "f.txt",
            TWO_LINES,
            "-- a",
            &["/D/pmc_1: F S", "/D/pmc_2: G"],
        ),
        (
            "command-line-204",
            "f.yaml",
            "jobs:\n  - pmc: [A]\n  - pmc: [B]\n",
            "-- a",
            &["/D/pass_1: A", "/D/pass_2: B"],
        ),
        (
            "command-line-205",
            "f.json",
            r#"{"jobs":[{"pmc":["A"]}]}"#,
            "--pmc A -- a",
            &["/D/pass_1: A", "/D/pass_2: A"],
        ),
        (
            "command-line-206",
            "f.json",
            r#"{"jobs":[{"pmc":["A"]}]}"#,
            "--pmc B -- a",
            &["/D/pass_1: B", "/D/pass_2: A"],
        ),
        // command-line-D6: the names are those of the guide, not pmc_3 and pmc_4.
        (
            "command-line-207",
            "f.txt",
            TWO_LINES,
            "--pmc X --pmc Y -- a",
            &[
                "/D/pass_1: X",
                "/D/pass_2: Y",
                "/D/pass_3: F S",
                "/D/pass_4: G",
            ],
        ),
        (
            "command-line-208",
            "f.json",
            r#"{"jobs":[{"hip_trace":true}]}"#,
            "--pmc A -- a",
            &["/D/pass_1: A"],
        ),
        // command-line-D5: every job runs, counters or not.
        (
            "command-line-210",
            "f.json",
            r#"{"jobs":[{"hip_trace":true},{"kernel_trace":true}]}"#,
            "-- a",
            &["/D/pass_1: ", "/D/pass_2: "],
        ),
        (
            "command-line-211",
            "f.json",
            r#"{"jobs":[{"hip_trace":true},{"pmc":["A"]}]}"#,
            "-- a",
            &["/D/pass_1: ", "/D/pass_2: A"],
        ),
        (
            "command-line-211",
            "f.json",
            r#"{"jobs":[{"hip_trace":true},{"pmc":["A"]}]}"#,
            "--pmc X -- a",
            &["/D/pass_1: X", "/D/pass_2: ", "/D/pass_3: A"],
        ),
        // The rest of the table of directories.
        (
            "unnumbered",
            "f.json",
            r#"{"jobs":[{"hip_trace":true}]}"#,
            "-- a",
            &["/D: "],
        ),
        (
            "unnumbered",
            "f.json",
            r#"{"jobs":[{"pmc":[],"hip_trace":true}]}"#,
            "-- a",
            &["/D: "],
        ),
        (
            "command-line-195",
            "f.json",
            r#"{"jobs":[{"pmc_groups":[["A","B"],["C"]]}]}"#,
            "-- a",
            &["/D: A B | C"],
        ),
        (
            "unnumbered",
            "f.json",
            r#"{"jobs":[{"hip_trace":true}]}"#,
            "--pmc A --pmc B -- a",
            &["/D/pass_1: A", "/D/pass_2: B"],
        ),
        (
            "unnumbered",
            "f.json",
            r#"{"jobs":[{"pmc_groups":[["A"],["C"]]},{"pmc":["B"]}]}"#,
            "-- a",
            &["/D/pass_1: A | C", "/D/pass_2: B"],
        ),
    ] {
        assert_eq!(
            passes(name, content, line),
            expected,
            "{case}: {content} {line}"
        );
    }
}

#[test]
fn passes_have_the_settings_of_their_job() {
    let options = |content: &str, line: &str| {
        let plan =
            with_file("f.yaml", content, line, &[]).unwrap_or_else(|failure| panic!("{failure}"));
        let passes = plan.passes.into_iter().map(|pass| pass.options);
        passes.collect::<Vec<_>>()
    };
    let first = options(
        "jobs:\n  - pmc: [A]\n    kernel_include_regex: x\n    output_format: [csv]\n",
        "--pmc X -- a",
    );
    assert_eq!(first[0].kernel_include, "x", "command-line-209");
    assert_eq!(first[0].formats, first[1].formats, "command-line-209");
    assert!(
        options("jobs: [{hip_trace: true}]", "--pmc A -- a")[0]
            .collector
            .traces
            .hip_runtime,
        "command-line-208"
    );

    let four = options(
        "jobs:
  - {pmc: [A], kernel_include_regex: a, output_directory: /1}
  - {pmc: [A], kernel_exclude_regex: b, output_directory: /2}
  - {pmc: [A], kernel_iteration_range: '[2]', output_directory: /3}
  - {pmc: [A], output_directory: /4}
",
        "-- a",
    );
    let shown: Vec<_> = four
        .iter()
        .map(|options| {
            (
                options.kernel_include.as_str(),
                options.kernel_exclude.as_str(),
                options.collector.counters.iterations.len(),
                options.output_directory.as_str(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("a", "", 0, "/1"),
            ("", "b", 0, "/2"),
            ("", "", 1, "/3"),
            ("", "", 0, "/4")
        ],
        "command-line-219"
    );
}

#[test]
fn options_that_exclude_several_passes_are_refused() {
    const TWO: &str = r#"{"jobs":[{"pmc":["A"]},{"pmc":["B"]}]}"#;
    const ONE: &str = r#"{"jobs":[{"pmc":["A"]}]}"#;
    for (case, content, line, fragment) in [
        (
            "command-line-212",
            TWO,
            "--pid 12345 -- a",
            "(multiple input-file jobs) is not compatible with attach mode",
        ),
        (
            "command-line-213",
            TWO,
            "--collection-period 0:100:1 -- a",
            "is not compatible with --collection-period",
        ),
        (
            "command-line-214",
            r#"{"jobs":[{"pmc":["A"]},{"pmc":["B"],"collection_period":["0:100:1"]}]}"#,
            "-- a",
            "(multiple input-file jobs) is not compatible with --collection-period",
        ),
        (
            "command-line-214",
            r#"{"jobs":[{"pmc":["A"]},{"pmc":["B"],"pid":12345}]}"#,
            "-- a",
            "(multiple input-file jobs) is not compatible with attach mode",
        ),
        (
            "command-line-215",
            ONE,
            "--pmc X --pid 12345 -- a",
            "(--pmc combined with input-file pmc)",
        ),
        (
            "command-line-215",
            ONE,
            "--pmc X -P 1:1:1 -- a",
            "(--pmc combined with input-file pmc)",
        ),
        (
            "command-line-216",
            TWO,
            "--pmc X --pmc Y -P 1:1:1 -- a",
            "(multiple --pmc flags)",
        ),
        (
            "command-line-216",
            ONE,
            "--pmc auto:X,Y -P 1:1:1 -- a",
            "input-file pmc",
        ),
    ] {
        let failure = with_file("f.json", content, line, &[]).expect_err(line);
        assert_eq!(failure.status, 1, "{case}");
        assert!(failure.message.contains(fragment), "{case}: {failure}");
    }
    assert!(with_file("f.json", ONE, "-P 1:1:1 -- a", &[]).is_ok());
    let traces = r#"{"jobs":[{"hip_trace":true},{"kernel_trace":true}]}"#;
    assert!(
        with_file("f.json", traces, "-P 1:1:1 -- a", &[]).is_ok(),
        "runs that count nothing are not one measurement"
    );
    assert_eq!(plan_with("--pmc A -P 1:1:1 -- a", &[]).passes.len(), 1);
}

#[test]
fn echo_keeps_every_pass() {
    let plan = plan_with("--pmc A --pmc B --echo -- true", &[]);
    assert!(plan.echo && plan.passes.len() == 2, "command-line-218");
}

#[test]
fn auto_groups_are_spread_over_numbered_passes() {
    let plan = plan_with("-d /D --pmc auto:C,B,A --pmc D -- a", &[]);
    assert_eq!(
        plan.passes.iter().map(|pass| pass.auto).collect::<Vec<_>>(),
        [true, false]
    );
    // As many groups as names, or as few as one.
    let spread = |mut plan: Plan, size: usize| {
        plan.spread(|pass| {
            let names = &pass.options.collector.counters.groups[0];
            Ok::<_, ()>(names.chunks(size).map(<[_]>::to_vec).collect())
        })
        .expect("it does not fail");
        assert!(plan.passes.iter().all(|pass| !pass.auto));
        layout(plan)
    };
    assert_eq!(
        spread(plan.clone(), 2),
        ["/D/pass_1: A B", "/D/pass_2: C", "/D/pass_3: D"]
    );
    let one = plan_with("-d /D --pmc auto:A,B -- a", &[]);
    assert_eq!(
        spread(one.clone(), 2),
        ["/D: A B"],
        "one pass alone has no directory"
    );
    assert_eq!(spread(one, 1), ["/D/pass_1: A", "/D/pass_2: B"]);
    let job = with_file("f.txt", "pmc: auto:A,B\n", "-d /D -- a", &[]).expect("a plan");
    assert_eq!(job.stem, Some(DirectoryStem::Pmc));
    assert_eq!(spread(job, 1), ["/D/pmc_1: A", "/D/pmc_2: B"]);
    let mut failing = plan;
    assert_eq!(failing.spread(|_| Err("no device")), Err("no device"));
}
