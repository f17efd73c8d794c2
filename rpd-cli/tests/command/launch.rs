//! Running targets that need no GPU, through the real binary. The collector and the simulator are stand-ins
//! that do nothing, so that only the front end is looked at.

use std::process::Command;

use nix::sys::signal::Signal;

use crate::setup::{self, Setup, entries, text};

/// Checks command-line-220 to command-line-222, with rpd's statuses.
#[test]
fn exit_status_is_that_of_the_target() {
    let setup = Setup::new();
    std::fs::write(setup.work().join("plain"), "text").expect("writable");
    for (arguments, status) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "exit 255"], 255),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["sh", "-c", "kill -SEGV $$"], 139),
        (&["/proc/nonexistent"], 127),
        (&["no-such-program-anywhere"], 127),
        (&["./plain"], 126),
        (&["/"], 126),
    ] {
        let mut all = vec!["-d", "out", "--hip-trace", "--"];
        all.extend(arguments);
        let output = setup.run(&all);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        assert!(!setup.work().join("out/.rpd").exists(), "{arguments:?}");
        if status == 127 || status == 126 {
            assert_eq!(
                text(&output.stderr).lines().count(),
                1,
                "{}",
                text(&output.stderr)
            );
            assert!(text(&output.stderr).starts_with("rpd: "));
        }
    }
}

#[test]
fn command_line_mistakes_start_and_write_nothing() {
    let setup = Setup::new();
    std::fs::write(setup.work().join("taken"), "").expect("writable");
    for (arguments, status) in [
        (&["--hip-tra", "--", "touch", "started"][..], 2),
        (&["-f", "xml", "--", "touch", "started"], 2),
        (&["-d", "out/%x%", "-s", "--", "touch", "started"], 2),
        (&["--hip-trace=maybe", "--", "touch", "started"], 1),
        (&["-d", "taken", "-s", "--", "touch", "started"], 1),
        (&["-d", "/proc/none", "-s", "--", "touch", "started"], 1),
        (&["-o", "taken/x", "-s", "--", "touch", "started"], 1),
        (
            &[
                "--backend",
                "rocm",
                "--rocm-root",
                "/proc/nonexistent",
                "-s",
                "--",
                "touch",
                "started",
            ],
            1,
        ),
        (
            &["--summary-groups", "(", "-s", "--", "touch", "started"],
            1,
        ),
        (&["-S", "--", "touch", "started"], 1),
        (&["--pmc", "SQ_WAVES", "--", "touch", "started"], 1),
        (&["-i", "none.yaml", "--", "touch", "started"], 1),
        (&["./app"], 2),
        (&["recover"], 2),
        (&["recover", "none"], 1),
    ] {
        let output = setup.run(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        assert!(error.starts_with("rpd: "), "{arguments:?}: {error}");
        assert_eq!(entries(&setup.work()), ["taken"], "{arguments:?}");
    }
    let output = setup.run(&[
        "--backend",
        "rocm",
        "--rocm-root",
        "/proc/nonexistent",
        "-s",
        "--",
        "true",
    ]);
    let error = text(&output.stderr);
    assert!(
        error.contains("--rocm-root: /proc/nonexistent is no directory"),
        "command-line-223: {error}"
    );
}

#[test]
fn target_environment_names_the_libraries_of_rpd() {
    let setup = Setup::new();
    let script = "echo $LD_PRELOAD; echo $ROCPROFILER_REGISTER_LIBRARY; echo $RPD_SDK; echo $LD_LIBRARY_PATH; echo $RPD_COLLECT; \
        test -f $RPD_SPOOL/options.json && echo spool; echo ${ROCP_TOOL_LIBRARIES-none} ${ROCPROFILER_LIBRARY_CTOR-none}";
    let output = setup
        .command(&[
            "--backend",
            "sim",
            "--marker-trace",
            "--",
            "sh",
            "-c",
            script,
        ])
        .env("LD_LIBRARY_PATH", "/somewhere")
        .env("ROCPROFILER_LIBRARY_CTOR", "1")
        .output()
        .expect("rpd starts");
    let bin = setup.bin().canonicalize().expect("there");
    let bin = bin.display();
    let directory = format!("{bin}/rpd-sim-lib");
    assert_eq!(
        text(&output.stdout).lines().collect::<Vec<_>>(),
        [
            format!("{bin}/librpd_register.so:{directory}/librocprofiler-sdk-roctx.so.1").as_str(),
            format!("{bin}/librpd_register.so").as_str(),
            format!("{directory}/librocprofiler-sdk.so.1").as_str(),
            format!("{directory}:/somewhere").as_str(),
            "marker=1,argument_results=1,streams=1,variables=FLUX_JOB_SIZE+FLUX_TASK_RANK+LOCAL_RANK+RANK+WORLD_SIZE",
            "spool",
            "none none"
        ],
        "{}",
        text(&output.stderr)
    );
    for soname in [
        "libamdhip64.so.6",
        "libhsa-runtime64.so.1",
        "librocprofiler-sdk.so.1",
    ] {
        assert!(
            setup.bin().join("rpd-sim-lib").join(soname).is_file(),
            "{soname}"
        );
    }
}

#[test]
fn backend_rocm_needs_no_device() {
    let setup = Setup::new();
    let lib = setup.work().join("rocm/lib");
    std::fs::create_dir_all(&lib).expect("a directory");
    for name in ["librocprofiler-sdk.so.1", "librocprofiler-sdk-roctx.so.1"] {
        std::fs::copy(setup.bin().join("librpd_collect.so"), lib.join(name)).expect("a copy");
    }
    let script = "echo $LD_PRELOAD; echo $LD_LIBRARY_PATH";
    let output = setup.run(&[
        "--backend",
        "rocm",
        "--rocm-root",
        "rocm",
        "-s",
        "--",
        "sh",
        "-c",
        script,
    ]);
    let bin = setup.bin().canonicalize().expect("there");
    let lib = lib.display();
    assert_eq!(
        text(&output.stdout).lines().collect::<Vec<_>>(),
        [
            format!(
                "{}/librpd_register.so:{lib}/librocprofiler-sdk-roctx.so.1",
                bin.display()
            ),
            format!("{lib}")
        ],
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn echo_prints_the_resolved_options_and_starts_nothing() {
    let setup = Setup::new();
    let output = setup.run(&["--hip-trace", "-d", "x", "--echo", "--", "touch", "started"]);
    let value: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(value["command"], serde_json::json!(["touch", "started"]));
    assert_eq!(value["collector"]["traces"]["hip_compiler"], true);
    assert!(entries(&setup.work()).is_empty());
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn version_and_help_are_printed_without_a_target() {
    let setup = Setup::new();
    let version = setup.run(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(text(&version.stdout).lines().count(), 9, "command-line-3");
    let help = setup.run(&[]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("--sys-trace"), "command-line-1");
}

/// A signal for rpd reaches the target; rpd outlives it.
#[test]
fn signals_are_passed_on_to_the_target() {
    // A shell starts background jobs with SIGINT ignored, and what is ignored stays so in all descendants.
    // SAFETY: the default disposition runs no code of ours.
    unsafe {
        nix::sys::signal::signal(
            nix::sys::signal::Signal::SIGINT,
            nix::sys::signal::SigHandler::SigDfl,
        )
    }
    .expect("a disposition that exists");
    let setup = Setup::new();
    for (signal, script, status) in [
        (
            Signal::SIGTERM,
            "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done",
            5,
        ),
        (Signal::SIGINT, "echo ready; exec sleep 20", 130),
    ] {
        let mut child = setup
            .command(&["-d", "out", "-s", "--", "sh", "-c", script])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("rpd starts");
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut ready)
            .expect("the target is ready");
        setup::signal(&child, signal);
        let output = child.wait_with_output().expect("rpd ends");
        assert_eq!(
            output.status.code(),
            Some(status),
            "{signal}: {}",
            text(&output.stderr)
        );
    }
    assert!(!setup.work().join("out/.rpd").exists());
}

/// Files that are not files, or far too large, and words that are far too long, get an answer at once.
#[test]
fn hostile_files_and_words_are_refused_at_once() {
    let setup = Setup::new();
    let path = |name: &str| setup.work().join(name);
    for name in ["large.yaml", "large.json", "large.txt", "large.sql"] {
        let file = std::fs::File::create(path(name)).expect("made");
        file.set_len(100 << 20).expect("sparse");
    }
    // Many small jobs, and many different keys.
    let of_size = |head: &str, line: &str| {
        let mut text = head.to_owned();
        while text.len() < (4 << 20) - 64 {
            text += line;
        }
        text
    };
    let jobs = format!("jobs:\n{}", "  - no_such_option: [A]\n".repeat(20_000));
    std::fs::write(path("jobs.yaml"), jobs).expect("written");
    for (name, head, line) in [
        ("lists.yaml", "jobs:\n", "  - no_such_option: [A]\n"),
        ("flow.yaml", "jobs: [", "{},"),
        ("values.yaml", "jobs: [{pmc: [", "A,"),
        ("anchors.yaml", "jobs:\n", "- &a A\n"),
        ("empty.yaml", "jobs:\n", "? \n"),
    ] {
        std::fs::write(path(name), of_size(head, line)).expect("written");
    }
    std::fs::write(path("jobs.txt"), of_size("", "pmc: A\n")).expect("written");
    let mut keys = "jobs:\n  - kernel_trace: maybe\n".to_owned();
    for number in 0..90_000 {
        keys += &format!("    k{number}: 1\n");
    }
    let merged = keys.replace("jobs:\n  - ", "base: &base\n    ") + "jobs:\n  - <<: *base\n";
    std::fs::write(path("merged.yaml"), merged).expect("written");
    // Read to the end, and then refused for its last key.
    let keys = keys.replacen("maybe", "true", 1) + "    hip_trace: maybe\n";
    std::fs::write(path("keys.yaml"), keys).expect("written");
    for name in ["pipe.yaml", "pipe"] {
        let made = Command::new("mkfifo").arg(path(name)).status();
        assert!(made.expect("mkfifo").success());
    }
    std::os::unix::fs::symlink("/dev/zero", path("zero.json")).expect("a link");
    let word = format!("--{}", "x".repeat(100 << 10));
    let too_large =
        "is too large: it has more than 4194304 bytes, the most that is read; name a smaller file";
    let too_many =
        "too many keys, values, lists and mappings: a file may have 200000; use several files";
    let pipe = "is a pipe, not a regular file; write its content to a file and name that";
    let device = "is a device, not a regular file; write its content to a file and name that";
    for (arguments, expected) in [
        (&["-i", "large.yaml", "--", "true"][..], too_large),
        (&["-i", "large.json", "--", "true"], too_large),
        (&["-i", "large.txt", "--", "true"], too_large),
        (&["-i", "pipe.yaml", "--", "true"], pipe),
        (&["-i", "zero.json", "--", "true"], device),
        (
            &["-i", "jobs.yaml", "--", "true"],
            "too many jobs: a file may have 16384",
        ),
        (
            &["-i", "jobs.txt", "--", "true"],
            "too many jobs: a file may have 16384",
        ),
        (&["-i", "lists.yaml", "--", "true"], too_many),
        (&["-i", "flow.yaml", "--", "true"], too_many),
        (&["-i", "values.yaml", "--", "true"], too_many),
        (&["-i", "anchors.yaml", "--", "true"], too_many),
        (&["-i", "empty.yaml", "--", "true"], too_many),
        (
            &["-i", "keys.yaml", "--", "true"],
            "hip_trace: invalid truth value 'maybe'",
        ),
        (
            &["-i", "merged.yaml", "--", "true"],
            "kernel_trace: invalid truth value 'maybe'",
        ),
        (&["-E", "pipe", "--pmc", "A", "--", "true"], pipe),
        (&["-E", "/dev/zero", "--pmc", "A", "--", "true"], device),
        (
            &["-E", "large.sql", "--pmc", "A", "--", "true"],
            "is too large",
        ),
        (&["avail", "-E", "/dev/zero"], device),
        (&["query", "x.db", "--file", "pipe"], pipe),
        (&["query", "x.db", "--file", "large.sql"], "is too large"),
        (&[&word, "--", "true"], "unrecognized arguments"),
        (&["-f", &word[2..], "--", "true"], "invalid choice"),
        (&[&word[2..]], "unrecognized arguments"),
        (&["query", &word], "query: "),
    ] {
        // A release build takes less than a second.
        let output = setup.run_within(20, arguments);
        let shown: String = arguments.join(" ").chars().take(60).collect();
        assert!(!output.status.success(), "{shown}");
        let said = text(&output.stderr);
        let head: String = said.chars().take(300).collect();
        assert!(said.contains(expected), "{shown}: {head}");
    }
}
