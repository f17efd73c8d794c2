//! Captures and files: outputs of the actions on captures never lie in them, and capsules are unpacked for their owner alone.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rpd_tests::run::Rpd;

use crate::capture::captures::{capture_of, captured};
use crate::capture::excerpts::{capsule_of, packed};

/// All files below a directory with their content.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in below(directory) {
        if path.is_file() {
            let bytes = std::fs::read(&path).expect("readable");
            found.insert(path, bytes);
        }
    }
    found
}

/// The paths below a directory.
fn below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            found.push(entry.path());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn outputs_inside_their_own_capture_are_refused() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let pack = packed(&capture, "add_kernel").success();
    let capsule = capsule_of(&pack);
    let before = (
        content(&capture),
        std::fs::read(&capsule).expect("readable"),
    );
    let inside = |name: &str| {
        capture
            .join(name)
            .into_os_string()
            .into_string()
            .expect("text")
    };
    let (database, fresh) = (inside("capture.sqlite"), inside("new"));
    let named = capture.to_str().expect("text");
    let capsule_text = capsule.to_str().expect("text");
    for arguments in [
        &["capture", "export", named, "-o", &database][..],
        &["capture", "export", named, "-o", &fresh],
        &["capture", "export", &database, "-o", &fresh],
        &[
            "capture",
            "pack",
            named,
            "--kernel",
            "add_kernel",
            "-o",
            &database,
        ],
        &[
            "capture",
            "pack",
            named,
            "--kernel",
            "add_kernel",
            "-o",
            &fresh,
        ],
        &["capture", "trim", named, "--until", "2", "-o", &fresh],
        &["replay", named, "--backend", "sim", "--json", &database],
        &["replay", named, "--backend", "sim", "--json", &fresh],
        &["capture", "show", named, "--parquet", &fresh],
    ] {
        let refused = Rpd::plain(arguments).run().expect_code(2);
        let said = refused.stderr;
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        assert!(said.contains("is an input"), "{arguments:?}: {said}");
    }
    for arguments in [
        &["capture", "export", capsule_text, "-o", capsule_text][..],
        &[
            "replay",
            capsule_text,
            "--backend",
            "sim",
            "--json",
            capsule_text,
        ],
    ] {
        let refused = Rpd::plain(arguments).run().expect_code(2);
        assert!(
            refused.stderr.contains("is an input too"),
            "{}",
            refused.stderr
        );
    }
    assert!(content(&capture) == before.0, "the capture was changed");
    assert!(
        std::fs::read(&capsule).expect("readable") == before.1,
        "the capsule was changed"
    );
}

#[test]
fn an_unpacked_capsule_is_private_and_removed_after_a_signal() {
    let run = captured(&[], "capture", &["add"]).success();
    let pack = packed(&capture_of(&run), "add_kernel").success();
    let capsule = capsule_of(&pack);
    let directory = tempfile::tempdir().expect("a directory");
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGKILL] {
        let (input, writer) = std::io::pipe().expect("a pipe");
        let running = Rpd::plain(["replay", "--backend", "sim", "--step"])
            .option([&capsule])
            .env("TMPDIR", directory.path())
            .input(std::fs::File::from(std::os::fd::OwnedFd::from(input)))
            .start();
        // The capsule is being unpacked until the replay asks before its first call.
        let begin = Instant::now();
        let unpacked = loop {
            let found = below(directory.path());
            if found.iter().any(|path| path.ends_with("capture.sqlite")) {
                break found;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{found:?}");
            std::thread::sleep(Duration::from_millis(10));
        };
        for path in unpacked {
            let found = std::fs::symlink_metadata(&path).expect("there");
            let is_inside = path.parent() != Some(directory.path());
            let private = found.is_symlink() || found.mode() & 0o077 == 0;
            assert!(private || is_inside && found.is_dir(), "{}", path.display());
            if !is_inside {
                assert_eq!(found.mode() & 0o777, 0o700, "{}", path.display());
            }
        }
        running.signal(signal);
        let ended = running.finish();
        assert_eq!(ended.code(), 128 + signal, "{}", ended.stderr);
        drop(writer);
        match signal {
            libc::SIGKILL => assert!(!below(directory.path()).is_empty()),
            _ => assert_eq!(
                below(directory.path()),
                Vec::<PathBuf>::new(),
                "signal {signal}"
            ),
        }
    }
    // The next one removes what the killed one left.
    let _ = Rpd::plain(["capture", "info"])
        .option([&capsule])
        .env("TMPDIR", directory.path())
        .run()
        .success();
    assert_eq!(below(directory.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_pipe_in_place_of_a_pack_is_refused_by_name() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let pack = capture.join("blobs/pack-00001.rpdp");
    std::fs::remove_file(&pack).expect("removed");
    let path = std::ffi::CString::new(pack.to_str().expect("text")).expect("no NUL");
    // SAFETY: the path ends with a NUL byte.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    for arguments in [&["capture", "check"][..], &["replay", "--backend", "sim"]] {
        let refused = Rpd::plain(arguments)
            .option([&capture])
            .limit(Duration::from_secs(60))
            .run();
        assert_ne!(refused.code(), 0, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("pack-00001.rpdp"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains("is a pipe"), "{}", refused.stderr);
    }
    let replaced = format!("add_kernel={}", pack.display());
    let run = captured(&[], "capture", &["add"]).success();
    let refused = Rpd::plain(["replay", "--backend", "sim", "--replace", &replaced])
        .option([&capture_of(&run)])
        .limit(Duration::from_secs(60))
        .run()
        .expect_code(1);
    assert!(refused.stderr.contains("is a pipe"), "{}", refused.stderr);
}

#[test]
fn control_characters_in_captured_names_are_escaped() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let path = capture.join("capture.json");
    let text = std::fs::read_to_string(&path).expect("readable");
    let mut description: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    description["command"] = serde_json::json!(["\u{1b}[2Jname", "two\nlines\u{9b}31m"]);
    description["host"] = "\u{1b}]0;title\u{7}".into();
    std::fs::write(&path, description.to_string()).expect("written");
    let shown = Rpd::plain(["capture", "info"])
        .option([&capture])
        .run()
        .success();
    let is_raw = |letter: char| letter.is_control() && letter != '\n';
    assert!(!shown.stdout.contains(is_raw), "{:?}", shown.stdout);
    let program = shown.stdout.lines().find(|line| line.contains("program"));
    assert_eq!(
        program.map(str::trim_start),
        Some("program      \\u{1b}[2Jname two\\nlines\\u{9b}31m")
    );
}

/// A limit of the size of files stands for a full disk.
#[test]
fn export_to_a_full_disk_names_the_output_file() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 4; exec \"$@\"", "sh"])
        .arg(rpd_tests::install::rpd())
        .args(["capture", "export"])
        .arg(&capture)
        .args(["-o", "calls.json"])
        .current_dir(run.directory.path())
        .stdout(Stdio::null())
        .output()
        .expect("sh runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot write calls.json: "), "{text}");
    assert!(!run.directory.path().join("calls.json").exists());
}
