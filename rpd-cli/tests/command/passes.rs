//! Several passes, and the queries before them, through the real binary: targets that need no GPU.

use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::setup::{Setup, entries, signal, text};

const JOBS: &str =
    "jobs:\n  - hip_trace: true\n  - kernel_trace: true\n  - memory_copy_trace: true\n";

fn with_jobs() -> Setup {
    let setup = Setup::new();
    std::fs::write(setup.work().join("jobs.yaml"), JOBS).expect("writable");
    setup
}

fn passes<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut words = vec!["--backend", "sim", "-i", "jobs.yaml", "-d", "out"];
    words.extend(options);
    words.extend(["--", "sh", "-c", script]);
    words
}

/// Checks command-line-210, command-line-217 and command-line-D5.
#[test]
fn passes_end_at_the_first_that_fails() {
    let setup = with_jobs();
    let output = setup.run(&passes(&[], "echo ran"));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "ran\nran\nran\n");
    let plan: Vec<String> = text(&output.stderr)
        .lines()
        .take(3)
        .map(str::to_owned)
        .collect();
    assert_eq!(
        plan,
        [
            "rpd: pass 1/3: no counters",
            "rpd: pass 2/3: no counters",
            "rpd: pass 3/3: no counters"
        ]
    );
    let once = "echo ran; test -e mark && exit 3; touch mark";
    let output = setup.run(&passes(&[], once));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "ran\nran\n");
    let error = text(&output.stderr);
    let last = error.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "rpd: pass 2/3: sh returned non-zero exit status 3; pass 3 was not run (--continue-on-error goes on)"
    );
    let output = setup.run(&passes(&["--continue-on-error"], once));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "ran\nran\nran\n");
    let error = text(&output.stderr);
    let last = error.lines().last().unwrap_or_default();
    assert_eq!(last, "rpd: 3 of 3 passes failed: passes 1, 2, 3");
}

/// Checks command-line-D4: what stands in the way of a later pass is found before the first.
#[test]
fn passes_do_not_start_when_a_later_one_cannot() {
    let setup = with_jobs();
    std::fs::create_dir(setup.work().join("out")).expect("a directory");
    std::fs::write(setup.work().join("out/pass_3"), "").expect("writable");
    let output = setup.run(&passes(&[], "echo ran"));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    assert!(
        text(&output.stderr).contains("pass_3"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(entries(&setup.work().join("out")), ["pass_3"]);
}

/// After an interrupted pass there is no further one, even if the target exits with status 0.
#[test]
fn passes_end_at_an_interrupt() {
    let setup = with_jobs();
    for options in [&[][..], &["--continue-on-error"]] {
        let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
        let mut child = setup
            .command(&passes(options, script))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("rpd starts");
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut ready)
            .expect("the target is ready");
        signal(&child, Signal::SIGTERM);
        let output = child.wait_with_output().expect("rpd ends");
        assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
        assert!(
            text(&output.stderr).contains("interrupted by SIGTERM; passes 2 to 3 were not run"),
            "{}",
            text(&output.stderr)
        );
    }
}

/// A provider that is none is one line, and nothing has run or been made by then.
#[test]
fn passes_start_only_when_all_counters_are_checked() {
    let setup = Setup::new();
    let output = setup.run(&[
        "--backend",
        "sim",
        "--pmc",
        "A",
        "-d",
        "out",
        "--",
        "touch",
        "ran",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.starts_with("rpd: asking the GPU provider (")
            && error.trim_end().ends_with(
                "failed while loading it and looking for GPUs: the library has no function `rocprofiler_get_version`"
            ),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
    assert!(entries(&setup.work()).is_empty());
    // --echo runs nothing, so the provider is not queried.
    let output = setup.run(&["--backend", "sim", "--pmc", "A", "--echo", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Checks command-line-286, command-line-292 and command-line-293: what is wrong with the words needs no provider.
#[test]
fn avail_answers_its_words_with_the_right_status() {
    let setup = Setup::new();
    for (words, status, fragment) in [
        (&["avail", "bogus"][..], 2, "bogus"),
        (&["avail", "pmc-check"], 1, "Provide counter"),
        (&["avail", "pmc-check", "A:b:c"], 1, "Invalid format"),
        (
            &["avail", "pmc-check", "A:foo=1"],
            1,
            "Incorrect input format",
        ),
        (
            &["avail", "-E", "none.yaml"],
            1,
            "--extra-counters none.yaml",
        ),
    ] {
        let output = setup.run(words);
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        let error = text(&output.stderr);
        assert!(
            error.starts_with("rpd: ") && error.contains(fragment),
            "{error}"
        );
    }
    let help = setup.run(&["avail", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("pmc-check"));
}
