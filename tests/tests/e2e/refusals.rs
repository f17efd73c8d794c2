//! Options that are refused before anything starts: one line, the right status, nothing written.

use std::fs;
use std::path::Path;

use rpd_tests::run::{Outcome, Rpd, skipped};

/// Runs `rpd <options> -- sh -c 'touch started'` and expects a refusal with `code`.
fn refused(options: &[&str], code: i32) -> Outcome {
    let outcome = Rpd::plain(options)
        .target(["/bin/sh", "-c", "touch started"])
        .expect_code(code);
    refusal(&outcome, options);
    outcome
}

fn refusal(outcome: &Outcome, what: &[&str]) {
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert!(
        lines.len() == 1 && lines[0].starts_with("rpd: "),
        "{what:?}: {lines:?}"
    );
    assert_eq!(outcome.stdout, "", "{what:?}");
    let left: Vec<_> = fs::read_dir(outcome.directory.path())
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert!(left.is_empty(), "{what:?}: {left:?}");
}

#[test]
fn unknown_and_abbreviated_options_are_refused() {
    let outcome = refused(&["--kernel-tracing"], 2);
    assert!(
        outcome.stderr.contains("--kernel-trace"),
        "{}",
        outcome.stderr
    );
    refused(&["--kernel-tr"], 2);
    refused(&["-f", "cvs"], 2);
    refused(&["--backend", "opencl", "--sys-trace"], 2);
    refused(&["-A", "sideways", "--kernel-trace"], 2);
    refused(&["-s", "-o", "%nonsense%"], 2);
    refused(&["-s", "-o", "{nonsense}"], 2);
    refused(&["-s", "-d", "%nonsense%"], 2);
    refused(&["--sys-trace", "perhaps"], 1);
}

#[test]
fn wrong_values_of_stack_options_are_refused() {
    for (option, value, words) in [
        ("--stacks", "on", "'on'"),
        (
            "--stacks-apis",
            "hip+",
            "'hip+' is not the name of a function",
        ),
        ("--stacks-depth", "-1", "--stacks-depth"),
        ("--stacks-every", "0", "--stacks-every"),
        ("--stacks-min-duration", "50", "'50' has no unit"),
        ("--stacks-symbolize", "later", "'later'"),
        ("--stacks-symbolize-limit", "soon", "'soon' is not a time"),
    ] {
        let value = format!("{option}={value}");
        let outcome = refused(&["--hip-trace", &value], 2);
        assert!(
            outcome.stderr.contains(words),
            "{value}: {}",
            outcome.stderr
        );
    }
    // As for all options that are true or false.
    refused(&["--hip-trace", "--stacks-runtime-frames=perhaps"], 1);
    refused(&["--hip-trace", "--stacks-interpreter-frames=perhaps"], 1);
}

#[test]
fn a_program_without_separator_is_refused_with_a_hint() {
    let outcome = Rpd::plain(["--sys-trace", "/bin/true"])
        .run()
        .expect_code(1);
    refusal(&outcome, &["forgotten --"]);
    assert!(outcome.stderr.contains("--"), "{}", outcome.stderr);
}

#[test]
fn a_missing_preload_library_is_refused() {
    refused(&["--sys-trace", "--preload", "no/such.so"], 1);
}

#[test]
fn a_rocm_root_that_is_no_directory_is_refused() {
    let outcome = refused(&["--backend", "rocm", "--rocm-root", "/no/rocm", "-s"], 1);
    assert!(
        outcome
            .stderr
            .contains("--rocm-root: /no/rocm is no directory"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_missing_program_ends_with_status_127() {
    let missing = Rpd::new(["-s"]).target(["./missing"]).expect_code(127);
    refusal(&missing, &["./missing"]);
    let missing = Rpd::new(["-s"])
        .target(["no-such-program-anywhere"])
        .expect_code(127);
    refusal(&missing, &["no-such-program-anywhere"]);
}

#[test]
fn a_program_that_cannot_be_executed_ends_with_status_126() {
    let directory = Rpd::new(["-s"]).target(["/usr"]).expect_code(126);
    refusal(&directory, &["/usr"]);
    let data = Rpd::new(["-s"]).target(["/etc/passwd"]).expect_code(126);
    refusal(&data, &["/etc/passwd"]);
}

#[test]
fn output_directories_that_cannot_be_written_are_refused() {
    let places = tempfile::tempdir().expect("a directory");
    let pipe = places.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let file = places.path().join("file");
    fs::write(&file, "in the way").expect("a file");
    let below = file.join("below");
    // None of these yields to root.
    let of_the_kernel = ["/proc/rpd", "/proc/1", "/proc/sys/kernel"].map(Path::new);
    for directory in of_the_kernel.into_iter().chain([&*pipe, &*below]) {
        let directory = directory.to_str().expect("text");
        refused(&["--sys-trace", "-d", directory], 1);
    }
    let rpd = Rpd::new(["--sys-trace"]);
    fs::write(rpd.directory().join("out"), "in the way").expect("a file");
    let outcome = rpd
        .target(["/bin/sh", "-c", "touch started"])
        .expect_code(1);
    assert!(outcome.stderr.starts_with("rpd: "), "{}", outcome.stderr);
    assert!(!outcome.directory.path().join("started").exists());
    assert_eq!(
        fs::read_to_string(outcome.directory.path().join("out")).expect("the file"),
        "in the way"
    );
}

#[test]
fn a_read_only_output_directory_is_refused() {
    let Some(unshare) = rpd_tests::run::tool("unshare") else {
        return skipped("a read-only mount", "no unshare");
    };
    let script = "mkdir ro && mount -t tmpfs -o ro none ro || exit 77
        \"$1\" --backend sim -s -d ro -- /bin/touch started; code=$?
        [ ! -e started ] || exit 78
        exit $code";
    let rpd = rpd_tests::install::rpd();
    let outcome = rpd_tests::run::command(
        &unshare,
        [
            "-m".as_ref(),
            "/bin/sh".as_ref(),
            "-c".as_ref(),
            script.as_ref(),
            "sh".as_ref(),
            rpd.as_os_str(),
        ],
    );
    if outcome.code() == 77 || outcome.stderr.contains("unshare") {
        return skipped("a read-only mount", "mounts are not allowed here");
    }
    let outcome = outcome.expect_code(1);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
}

#[test]
fn help_and_version_are_printed() {
    let help = Rpd::plain(["--help"]).run().success();
    for option in [
        "--sys-trace",
        "--output-directory",
        "--stats",
        "--annotate-args",
        "--backend",
    ] {
        assert!(help.stdout.contains(option), "{option}");
    }
    for flag in ["--version", "-v"] {
        let version = Rpd::plain([flag]).run().success();
        assert!(version.stdout.contains("version"), "{}", version.stdout);
    }
}
