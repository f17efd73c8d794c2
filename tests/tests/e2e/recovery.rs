//! `rpd recover`: after kills at every moment, in directories of other users, and in hostile ones.

mod hostile;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rpd_tests::run::{Outcome, Rpd};
use rpd_tests::workloads;

/// The content of the files below a directory but for what is in `.rpd`, by their names.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).expect("a directory").flatten() {
            let path = entry.path();
            if entry.file_name() == ".rpd" {
                continue;
            }
            if entry.file_type().expect("a type").is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("below").to_owned();
                found.insert(name, fs::read(&path).expect("readable"));
            }
        }
    }
    found
}

/// Replaces a directory by a copy of another.
fn restore(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).expect("removed");
    }
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(status.expect("cp").success());
}

/// The only directory in `directory` whose name begins so.
fn only(directory: &Path, begin: &str) -> PathBuf {
    let found: Vec<PathBuf> = fs::read_dir(directory)
        .expect("a directory")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(begin))
        .map(|entry| entry.path())
        .collect();
    assert_eq!(found.len(), 1, "{begin}: {found:?}");
    found.into_iter().next().expect("one")
}

fn recover(directory: &Path) -> Outcome {
    Rpd::plain(["recover".as_ref(), directory.as_os_str()]).run()
}

/// Runs `rpd recover` until the `at`th change that it makes; None if it makes fewer.
fn killed_recovery(directory: &Path, at: u32) -> Option<()> {
    let outcome = killing(
        Rpd::plain(["recover".as_ref(), directory.as_os_str()]),
        at,
        None,
    )
    .run();
    match outcome.code() {
        137 => Some(()),
        0 => None,
        other => panic!("status {other} before change {at}: {}", outcome.stderr),
    }
}

fn killing(rpd: Rpd, at: u32, after: Option<&str>) -> Rpd {
    let rpd = rpd
        .env("LD_PRELOAD", workloads::path("kill-at.so"))
        .env("KILL_NAME", "rpd")
        .env("KILL_AT", at.to_string());
    match after {
        Some(after) => rpd.env("KILL_AFTER", after),
        None => rpd,
    }
}

/// A run whose rpd was killed before it removed the first recording, without its outputs.
fn killed_run(options: &[&str], mode: &str) -> Outcome {
    let rpd = killing(Rpd::new(options), 1, Some("proc-"));
    let outcome = rpd.workload("fork-exec", [mode]).expect_code(137);
    for entry in fs::read_dir(outcome.out()).expect("a directory").flatten() {
        if entry.file_name() == ".rpd" {
            continue;
        }
        if entry.path().is_dir() {
            fs::remove_dir_all(entry.path()).expect("removed")
        } else {
            fs::remove_file(entry.path()).expect("removed")
        }
    }
    outcome
}

#[test]
fn recovered_call_stacks_have_symbols() {
    let options = ["--hip-trace", "--stacks", "native", "-f", "rocpd"];
    let rpd = killing(Rpd::new(options), 1, Some("proc-"));
    let outcome = rpd
        .workload("stacks", ["tree", "1", "1", "1"])
        .expect_code(137);
    for file in outcome.files_ending("_results.db") {
        fs::remove_file(file).expect("removed");
    }
    let _ = recover(&outcome.out()).success();
    let found = outcome.database().rows(
        "SELECT DISTINCT s.string FROM rpd_frame f JOIN rocpd_string s ON s.id = f.function_id
            WHERE s.string IN ('main', 'make_tree') AND f.inline_depth >= 0 ORDER BY 1",
    );
    assert_eq!(found, [["main"], ["make_tree"]]);
}

const OPTIONS: [&str; 7] = [
    "-s",
    "--stats",
    "--output-config",
    "-f",
    "csv",
    "json",
    "rocpd",
];

#[test]
fn kills_during_a_recovery_lose_no_record() {
    let outcome = killed_run(&OPTIONS, "tree");
    let (out, saved) = (outcome.out(), outcome.directory.path().join("saved"));
    fs::rename(&out, &saved).expect("renamed");
    restore(&saved, &out);
    let _ = recover(&out).success();
    let expected = contents(&out);
    assert!(expected.len() > 9, "{:?}", expected.keys());
    assert!(!out.join(".rpd").exists());
    let mut kills = 0;
    for at in 1.. {
        restore(&saved, &out);
        if killed_recovery(&out, at).is_none() {
            break;
        }
        kills += 1;
        let left = out.join(".rpd").exists();
        let second = recover(&out).expect_code(if left { 0 } else { 1 });
        assert!(
            !second.stderr.contains("DROPPED") && !second.stderr.contains("holds no recording"),
            "change {at}: {}",
            second.stderr
        );
        let found = contents(&out);
        let names = |of: &BTreeMap<PathBuf, _>| of.keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            names(&found),
            names(&expected),
            "change {at}: {}",
            second.stderr
        );
        for (name, content) in &expected {
            assert!(found[name] == *content, "change {at}: {}", name.display());
        }
        assert!(!out.join(".rpd").exists(), "change {at}");
    }
    println!("{kills} kills");
    assert!(kills > 30, "{kills} kills");
}

#[test]
fn kills_during_the_cleanup_of_a_run_lose_no_record() {
    let mut kills = 0;
    for at in 1.. {
        // What is counted begins when the first recording is marked as reported.
        let rpd = killing(Rpd::new(["-s", "-f", "csv"]), at, Some("proc-"));
        let outcome = rpd.workload("fork-exec", ["child"]);
        if outcome.code() == 0 {
            break;
        }
        let outcome = outcome.expect_code(137);
        kills += 1;
        let complete = contents(&outcome.out());
        assert_eq!(outcome.csv("kernel_trace").rows.len(), 3);
        if outcome.out().join(".rpd").exists() {
            let _ = recover(&outcome.out()).success();
        }
        assert!(contents(&outcome.out()) == complete, "change {at}");
        assert!(!outcome.out().join(".rpd").exists(), "change {at}");
    }
    println!("{kills} kills");
    assert!(kills > 5, "{kills} kills");
}

#[test]
fn recover_handles_a_process_that_ended_before_its_first_record() {
    let outcome = killed_run(&["-s", "-f", "csv"], "child");
    let out = outcome.out();
    let run = only(&out.join(".rpd"), "run-");
    let names = |begin: &str| -> Vec<String> {
        let entries = fs::read_dir(&run).expect("a directory").flatten();
        let names = entries.map(|entry| entry.file_name().into_string().expect("text"));
        names.filter(|name| name.starts_with(begin)).collect()
    };
    let recordings = names("proc-");
    fs::create_dir(run.join(format!("proc-{}-1", u32::MAX))).expect("a directory");
    let recovered = recover(&out).success();
    let early = format!(
        "rpd: process {}: nothing was recorded: it ended before it wrote a record\n",
        u32::MAX
    );
    assert!(recovered.stderr.contains(&early), "{}", recovered.stderr);
    assert!(!out.join(".rpd").exists(), "{}", recovered.stderr);
    let traces = contents(&out)
        .into_keys()
        .filter(|name| name.to_string_lossy().ends_with("kernel_trace.csv"))
        .count();
    assert_eq!((recordings.len(), traces), (1, 1));
}

#[test]
fn recover_keeps_recordings_of_running_processes_through_kills() {
    let outcome = killed_run(&["-s", "-f", "csv"], "late");
    let (out, saved) = (outcome.out(), outcome.directory.path().join("saved"));
    let run = only(&out.join(".rpd"), "run-");
    let mut names: Vec<_> = fs::read_dir(&run)
        .expect("a directory")
        .flatten()
        .map(|entry| entry.file_name().into_string().expect("text"))
        .filter(|name| name.starts_with("proc-"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    // The last process is represented by this test's own process.
    let ended = names.pop().expect("three");
    let alive = format!("proc-{}-{}", std::process::id(), u64::MAX);
    fs::rename(run.join(&ended), run.join(&alive)).expect("renamed");
    fs::rename(&out, &saved).expect("renamed");
    for at in 1.. {
        restore(&saved, &out);
        let killed = killed_recovery(&out, at);
        let second = recover(&out).success();
        assert!(second.stderr.contains("still runs"), "{}", second.stderr);
        let before = contents(&out);
        assert!(run.join(&alive).is_dir(), "change {at}");
        fs::rename(run.join(&alive), run.join(&ended)).expect("renamed");
        let _ = recover(&out).success();
        let after = contents(&out);
        for (name, content) in &before {
            assert!(after[name] == *content, "change {at}: {}", name.display());
        }
        let traces = |of: &BTreeMap<PathBuf, Vec<u8>>| {
            let names = of.keys().map(|name| name.to_string_lossy());
            names
                .filter(|name| name.ends_with("kernel_trace.csv"))
                .count()
        };
        assert_eq!((traces(&before), traces(&after)), (2, 3), "change {at}");
        assert!(!out.join(".rpd").exists(), "change {at}");
        if killed.is_none() {
            break;
        }
    }
}

#[test]
fn recover_removes_temporary_files_of_killed_runs() {
    let parts = |outcome: &Outcome| -> Vec<String> {
        let names = outcome.files();
        names
            .into_iter()
            .filter(|name| name.contains(".part"))
            .collect()
    };
    // Killed right before it makes its third temporary file; the first two are still there or complete.
    let mut left = None;
    for at in 1..20 {
        let rpd = killing(Rpd::new(["-s", "-f", "csv", "rocpd"]), at, Some(".part"));
        let outcome = rpd.workload("fork-exec", ["child"]);
        if outcome.code() == 137 && !parts(&outcome).is_empty() {
            left = Some(outcome);
            break;
        }
    }
    let outcome = left.expect("a kill in the middle of writing");
    let _ = recover(&outcome.out()).success();
    assert_eq!(parts(&outcome), Vec::<String>::new());
    assert_eq!(outcome.csv("kernel_trace").rows.len(), 3);
}

#[test]
fn recover_writes_into_the_output_directory_or_the_named_one() {
    let outcome = killed_run(&["-s", "-f", "csv", "-o", "x"], "child");
    let out = outcome.out();
    let run = only(&out.join(".rpd"), "run-");
    let options = run.join("options.json");
    let text = fs::read_to_string(&options).expect("readable");
    // Its path of the first attempt is not used either, although it is inside.
    fs::remove_file(run.join("report.json")).expect("removed");
    let away = outcome.directory.path().join("away");
    let here = fs::canonicalize(&out).expect("it exists");
    for (from, to) in [
        (
            "\"output_file\": \"x\"".to_owned(),
            format!("\"output_file\": \"{}/x\"", away.display()),
        ),
        (
            "\"output_file\": \"x\"".to_owned(),
            "\"output_file\": \"../away/x\"".to_owned(),
        ),
    ] {
        assert!(text.contains(&from), "{text}");
        fs::write(&options, text.replace(&from, &to)).expect("written");
        let refused = recover(&out).expect_code(1);
        assert!(
            refused.stderr.contains(&format!(
                "which is outside of {}; `rpd recover --output-directory DIR`",
                here.display()
            )),
            "{}",
            refused.stderr
        );
        assert!(!away.exists() && run.is_dir());
    }
    let chosen = outcome.directory.path().join("chosen");
    let recovered = Rpd::plain([
        "recover".as_ref(),
        "--output-directory".as_ref(),
        chosen.as_os_str(),
        out.as_os_str(),
    ])
    .run()
    .success();
    let chosen = fs::canonicalize(&chosen).expect("made");
    assert!(
        recovered
            .stderr
            .contains(&format!("files are written to {}\n", chosen.display())),
        "{}",
        recovered.stderr
    );
    assert!(chosen.join("x_kernel_trace.csv").is_file());
    assert!(!away.exists() && !out.join(".rpd").exists());
}

/// Whether a directory, or one in it, has a name that begins so.
fn directories_named(directory: &Path, begin: &str) -> bool {
    fs::read_dir(directory)
        .expect("a directory")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .any(|entry| {
            entry.file_name().to_string_lossy().starts_with(begin)
                || directories_named(&entry.path(), begin)
        })
}

/// Kills at moments that nothing in rpd decides, from the first complete output to the end of rpd. An experiment, because
/// it takes minutes: RPD_KILLS is the number of kills (300).
#[test]
#[ignore = "an experiment of some minutes"]
fn kills_at_random_moments_lose_no_record() {
    const THREADS: usize = 24;
    let rounds = std::env::var("RPD_KILLS").ok();
    let rounds: u64 = rounds.and_then(|text| text.parse().ok()).unwrap_or(300);
    let rpd = || Rpd::new(["-s", "--stats", "-f", "csv", "json", "-o", "x"]);
    let target = ("many-threads", [THREADS.to_string(), "4".to_owned()]);
    let whole = rpd().workload(target.0, &target.1).success();
    let expected: Vec<PathBuf> = contents(&whole.out()).into_keys().collect();
    let rows = whole.csv("kernel_trace").rows.len();
    let calls = whole.csv("hip_api_trace").rows.len();
    let (mut writing, mut cleaning, mut late) = (0, 0, 0);
    let mut random = 1u64;
    for round in 0..rounds {
        let running = rpd().start_workload(target.0, &target.1);
        let out = running.directory().join("out");
        let begun = Instant::now();
        while !out.join("x_kernel_trace.csv").exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no output");
            std::thread::yield_now();
        }
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let moment = Instant::now() + Duration::from_micros((random >> 33) % 60_000);
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        running.signal(libc::SIGKILL);
        let outcome = running.finish();
        let before = contents(&out);
        if out.join(".rpd").exists() {
            let is_reported = directories_named(&out.join(".rpd"), "done-");
            if is_reported {
                cleaning += 1
            } else {
                writing += 1
            }
            let recovered = recover(&out).success();
            assert!(
                !recovered.stderr.contains("DROPPED"),
                "round {round}: {}",
                recovered.stderr
            );
        } else {
            late += 1;
        }
        let after = contents(&out);
        let names: Vec<PathBuf> = after.keys().cloned().collect();
        assert_eq!(names, expected, "round {round}");
        for (name, content) in &before {
            let is_temporary = name.extension().is_some_and(|ending| ending == "part");
            assert!(
                is_temporary || after[name] == *content,
                "round {round}: {}",
                name.display()
            );
        }
        assert_eq!(
            outcome.csv("kernel_trace").rows.len(),
            rows,
            "round {round}"
        );
        assert_eq!(
            outcome.csv("hip_api_trace").rows.len(),
            calls,
            "round {round}"
        );
        assert!(!out.join(".rpd").exists(), "round {round}");
    }
    println!(
        "{rounds} kills: {writing} while outputs were written, {cleaning} while the recording was removed, {late} after that"
    );
    assert!(cleaning > 0);
}

#[test]
fn a_missing_otf2_library_is_named_and_the_recording_is_kept() {
    let options = [
        "-s",
        "-f",
        "csv",
        "otf2",
        "--otf2-library",
        "/proc/nonexistent/libotf2.so",
    ];
    let target = "echo the target ran >&2; exec \"$0\" 1";
    let program = workloads::path("api-loop");
    let words: [&std::ffi::OsStr; 4] = [
        "/bin/sh".as_ref(),
        "-c".as_ref(),
        target.as_ref(),
        program.as_ref(),
    ];
    let outcome = Rpd::new(options).target(words).expect_code(1);
    let said = |text: &str| {
        outcome
            .stderr
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {}", outcome.stderr))
    };
    assert!(said("-f otf2: no archive can be written") < said("the target ran"));
    assert!(said("the target ran") < said("cannot write "));
    assert_eq!(outcome.files_ending("hip_api_trace.csv").len(), 1);
    let kept = only(&outcome.out().join(".rpd"), "run-");
    // `rpd recover` loads no library that a recording names: the archive is written where the system has libotf2.
    let recovered = recover(&outcome.out());
    if recovered.code() == 0 {
        assert_eq!(outcome.files_ending("results.otf2").len(), 1);
        assert!(!kept.exists());
    } else {
        assert!(recovered.stderr.contains("OTF2 needs libotf2"));
        assert!(kept.exists());
    }
}
