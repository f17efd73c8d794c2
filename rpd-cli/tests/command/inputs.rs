//! Named input files that are pipes, devices or made to take long: every command answers with one line, and waits for nobody.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;

/// Longest time of a command, longer than any takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs rpd, which must end by itself.
fn rpd(directory: &Path, arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rpd"))
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rpd runs");
    let begin = Instant::now();
    while child.try_wait().expect("waited").is_none() {
        if begin.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("{arguments:?} runs for longer than {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("its output")
}

/// Runs rpd, which must fail with one line that says `expected`.
fn refused(directory: &Path, arguments: &[&str], expected: &str) {
    let output = rpd(directory, arguments);
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{arguments:?}");
    assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
    assert!(line.contains(expected), "{arguments:?}: {line}");
}

fn pipe(path: &Path) {
    nix::unistd::mkfifo(path, Mode::S_IRWXU).expect("a pipe");
}

#[test]
fn capture_with_pipes_and_devices_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["pipe", "device"] {
        std::fs::create_dir(directory.path().join(name)).expect("made");
    }
    pipe(&directory.path().join("pipe/capture.json"));
    let device = directory.path().join("device/capture.json");
    std::os::unix::fs::symlink("/dev/zero", device).expect("a link");
    for (name, what) in [("pipe", "is a pipe"), ("device", "is a device")] {
        for arguments in [
            &["capture", "info", name][..],
            &["capture", "ls", name],
            &["capture", "show", name, "1"],
            &["capture", "check", name],
            &["capture", "export", name],
            &["capture", "diff", name, name],
            &["capture", "pack", name, "--kernel", "x", "-o", "x.rpdk"],
            &["capture", "trim", name, "-o", "part", "--until", "2"],
            &["replay", name],
        ] {
            refused(directory.path(), arguments, what);
        }
    }
    // In the place of a capsule.
    pipe(&directory.path().join("x.rpdk"));
    for file in ["x.rpdk", "/dev/zero"] {
        refused(
            directory.path(),
            &["capture", "info", file],
            "not a capture",
        );
        refused(directory.path(), &["replay", file], "not a capture");
    }
}

#[test]
fn traces_that_are_pipes_or_devices_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let trace = "1_2_shader_engine_0_1.att";
    let code = "1_gfx90a_code_object_id_1.out";
    pipe(&path(trace));
    for arguments in [
        &["att", "decode", trace][..],
        &["att", "decode", "."],
        &["att", "diff", ".", "--att-library-path", "."],
    ] {
        let output = rpd(directory.path(), arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}: {text}");
    }
    std::fs::remove_file(path(trace)).expect("removed");
    std::fs::write(path(trace), "").expect("written");
    std::os::unix::fs::symlink("/dev/zero", path(code)).expect("a link");
    let output = rpd(directory.path(), &["att", "decode", "."]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("is a device, not a regular file"), "{text}");
}

#[test]
fn program_or_library_that_is_a_pipe_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    pipe(&directory.path().join("program"));
    refused(
        directory.path(),
        &["--hip-trace", "--backend", "sim", "--", "./program"],
        "program",
    );
    pipe(&directory.path().join("libotf2.so"));
    let arguments = [
        "--hip-trace",
        "-f",
        "otf2",
        "--otf2-library",
        "./libotf2.so",
        "--",
        "true",
    ];
    let output = rpd(directory.path(), &arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("is a pipe"), "{text}");
}

/// A file of counter definitions.
fn definitions(counters: impl IntoIterator<Item = (String, String)>) -> String {
    let mut text = "rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n".to_owned();
    for (name, expression) in counters {
        writeln!(
            text,
            "  - {{name: {name}, description: d, properties: [], definitions: [{{architectures: [gfx90a], expression: \"{expression}\"}}]}}"
        )
        .expect("memory");
    }
    text
}

#[test]
fn counter_definitions_beyond_the_limits_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("written");
    };
    write("deep.yaml", &"[".repeat(100_000));
    write(
        "deeper.yaml",
        &format!("a: 1\nb: {}", "{c: ".repeat(30_000)),
    );
    let doubled = (1..30).map(|step| (format!("M{step}"), format!("M{0}+M{0}", step - 1)));
    let first = [("M0".to_owned(), "SQ_WAVES+SQ_WAVES".to_owned())];
    write(
        "doubled.yaml",
        &definitions(first.into_iter().chain(doubled)),
    );
    let chain = (1..1_000).map(|step| (format!("M{step}"), format!("M{}+1", step - 1)));
    let first = [("M0".to_owned(), "SQ_WAVES+1".to_owned())];
    write("chain.yaml", &definitions(first.into_iter().chain(chain)));
    write(
        "cycle.yaml",
        &definitions([
            ("A".to_owned(), "B+1".to_owned()),
            ("B".to_owned(), "A*2".to_owned()),
        ]),
    );
    for (name, expected) in [
        ("deep.yaml", "nested too deeply"),
        ("deeper.yaml", "nested too deeply"),
        ("doubled.yaml", "has more than 65536 parts"),
        (
            "chain.yaml",
            "uses counters that use counters, more than 32",
        ),
        ("cycle.yaml", "A is defined by itself: A uses B uses A"),
    ] {
        for arguments in [
            &[
                "-E",
                name,
                "--pmc",
                "SQ_WAVES",
                "--backend",
                "sim",
                "--",
                "true",
            ][..],
            &["avail", "-E", name, "--backend", "sim"],
        ] {
            let output = rpd(directory.path(), arguments);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{arguments:?}: {text}");
            assert!(text.contains(expected), "{arguments:?}: {text}");
        }
    }
}
