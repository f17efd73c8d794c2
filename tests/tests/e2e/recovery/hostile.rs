//! `rpd recover` in directories that others may have changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rpd_tests::run::{Rpd, skipped};

use super::{contents, killed_run, only, recover, restore};

#[test]
fn recover_loads_no_library_that_a_recording_names() {
    let outcome = killed_run(&["-s", "-f", "csv", "-o", "x"], "child");
    let out = outcome.out();
    let directory = outcome.directory.path();
    let (source, library, loaded) = (
        directory.join("library.c"),
        directory.join("library.so"),
        directory.join("loaded"),
    );
    let text = format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fopen(\"{}\", \"w\"); }}\n",
        loaded.display()
    );
    fs::write(&source, text).expect("written");
    let compiled = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(compiled.expect("a C compiler").success());
    let options = only(&out.join(".rpd"), "run-").join("options.json");
    let text = fs::read_to_string(&options).expect("readable");
    let named = format!("\"otf2_library\": \"{}\"", library.display());
    let with_library = text.replace("\"otf2_library\": null", &named);
    assert_ne!(with_library, text);
    // Not in the command line, with which a run on a machine without libotf2 ends in another way.
    let hostile = with_library.replacen("\"csv\"", "\"csv\", \"otf2\"", 1);
    assert_ne!(hostile, with_library);
    fs::write(&options, hostile).expect("written");
    // Without libotf2 on the machine the archive is missing, which is status 1.
    let recovered = recover(&out);
    assert!(!loaded.exists(), "{}", recovered.stderr);
    assert!(out.join("x_kernel_trace.csv").is_file());
}

#[test]
fn recover_neither_hangs_nor_leaves_a_hostile_directory() {
    let outcome = killed_run(&["-s", "-f", "csv", "-o", "x"], "child");
    let (out, saved) = (outcome.out(), outcome.directory.path().join("saved"));
    fs::rename(&out, &saved).expect("renamed");
    let victim = outcome.directory.path().join("victim");
    let fifo = |path: &Path| {
        let status = Command::new("mkfifo").arg(path).status();
        assert!(status.expect("mkfifo").success());
    };
    type Change<'a> = (&'a str, Box<dyn Fn(&Path, &Path) + 'a>);
    let cases: [Change<'_>; 8] = [
        (
            "options.json is a pipe, not a regular file",
            Box::new(|run, _| {
                fs::remove_file(run.join("options.json")).expect("removed");
                fifo(&run.join("options.json"));
            }),
        ),
        (
            "options.json cannot be read: is a symbolic link",
            Box::new(|run, _| {
                fs::remove_file(run.join("options.json")).expect("removed");
                symlink("/dev/zero", run.join("options.json")).expect("a link");
            }),
        ),
        (
            "options.json cannot be read: is too large",
            Box::new(|run, _| {
                let file = fs::File::create(run.join("options.json")).expect("made");
                file.set_len(1 << 40).expect("sparse");
            }),
        ),
        (
            "report.json cannot be read: is a symbolic link",
            Box::new(|run, _| {
                let _ = fs::remove_file(run.join("report.json"));
                symlink(&victim, run.join("report.json")).expect("a link");
            }),
        ),
        (
            "is a symbolic link",
            Box::new(|run, process| {
                fs::rename(process, run.join("elsewhere")).expect("renamed");
                symlink("elsewhere", process).expect("a link");
            }),
        ),
        (
            "is a pipe",
            Box::new(|_, process| {
                fs::remove_dir_all(process).expect("removed");
                fs::create_dir(process).expect("made");
                fifo(&process.join("meta-0.seg"));
            }),
        ),
        (
            "is a symbolic link",
            Box::new(|run, _| {
                let spool = run.parent().expect("in .rpd");
                let moved = spool.with_file_name("moved");
                fs::rename(spool, &moved).expect("renamed");
                symlink(&moved, spool).expect("a link");
            }),
        ),
        (
            "others may write to it (mode 777)",
            Box::new(|run, _| {
                fs::set_permissions(run, fs::Permissions::from_mode(0o777)).expect("changed");
            }),
        ),
    ];
    for (expected, change) in cases {
        restore(&saved, &out);
        fs::write(&victim, "precious").expect("written");
        let run = only(&out.join(".rpd"), "run-");
        change(&run, &only(&run, "proc-"));
        let begin = Instant::now();
        let refused = recover(&out).expect_code(1);
        assert!(
            refused
                .stderr
                .contains(expected.trim_start_matches("options.json ")),
            "{expected}: {}",
            refused.stderr
        );
        assert!(begin.elapsed() < Duration::from_secs(20), "{expected}");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "precious");
        assert!(
            contents(&out).is_empty() || out.join("moved").exists(),
            "{expected}"
        );
    }
}

/// Whether this is root: only root can create directories of other users.
fn is_root(check: &str) -> bool {
    // SAFETY: takes and changes nothing.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        skipped(check, "only root can make directories of other users");
    }
    root
}

#[test]
fn recover_refuses_directories_of_other_users() {
    if !is_root("directories of other users") {
        return;
    }
    let outcome = killed_run(&["-s", "-f", "csv", "-o", "x"], "child");
    let out = outcome.out();
    let run = only(&out.join(".rpd"), "run-");
    let process = only(&run, "proc-");
    for directory in [&process, &run, &out.join(".rpd")] {
        chown(directory, Some(54_321), None).expect("root may");
        let refused = recover(&out).expect_code(1);
        assert!(
            refused.stderr.contains(&format!(
                "{} belongs to user 54321, not to you (user 0)",
                directory.strip_prefix(&out).expect("below").display()
            )),
            "{}",
            refused.stderr
        );
        assert!(contents(&out).is_empty());
        chown(directory, Some(0), None).expect("root may");
    }
    let _ = recover(&out).success();
    assert!(out.join("x_kernel_trace.csv").is_file());

    // A run does not begin in such a directory.
    for link in [false, true] {
        let rpd = Rpd::new(["-s", "-f", "csv", "-o", "x"]);
        let out = rpd.directory().join("out");
        fs::create_dir(&out).expect("made");
        if link {
            let theirs = rpd.directory().join("theirs");
            fs::create_dir(&theirs).expect("made");
            symlink(&theirs, out.join(".rpd")).expect("a link");
        } else {
            fs::create_dir(out.join(".rpd")).expect("made");
            chown(out.join(".rpd"), Some(54_321), None).expect("root may");
        }
        let refused = rpd.workload("fork-exec", ["child"]).expect_code(1);
        let expected = if link {
            "out/.rpd is a symbolic link; rpd uses only a directory here: remove the link\n"
        } else {
            "out/.rpd belongs to user 54321, not to you (user 0); choose an output directory of your own, or run \
                      rpd as its owner\n"
        };
        assert!(refused.stderr.ends_with(expected), "{}", refused.stderr);
        assert_eq!(refused.stdout, "", "the target was not started");
    }
}
