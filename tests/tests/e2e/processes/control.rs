//! `rpd control`, and the C functions of RPD's tracer: recording starts and stops while the program runs.

use std::fs;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rpd_tests::install;
use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd, Running, command};

/// The workload `steps` under rpd, which does one thing after the other as the test tells it.
pub(super) struct Steps {
    pub(super) running: Running,
    words: std::io::PipeWriter,
    done: PathBuf,
    count: u64,
}

impl Steps {
    pub(super) fn start(rpd: Rpd) -> Steps {
        let (reader, words) = std::io::pipe().expect("a pipe");
        let done = rpd.directory().join("done");
        let rpd = rpd.input(fs::File::from(OwnedFd::from(reader)));
        let running = rpd.start_workload("steps", [&done]);
        Steps {
            running,
            words,
            done,
            count: 0,
        }
    }

    /// Has the program do what the words say, and waits until it has.
    pub(super) fn take(&mut self, words: &str) {
        writeln!(self.words, "{words}").expect("the program reads");
        self.count += words.split(' ').count() as u64;
        while fs::metadata(&self.done).map_or(0, |data| data.len()) < self.count {
            assert!(self.running.child.try_wait().is_ok_and(|end| end.is_none()));
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn control(&self, words: &[&str]) -> Outcome {
        let out = self.running.directory().join("out");
        let mut arguments = vec!["control".to_owned(), out.display().to_string()];
        arguments.extend(words.iter().map(|word| (*word).to_owned()));
        command(&install::rpd(), arguments)
    }

    pub(super) fn finish(self) -> Outcome {
        drop(self.words);
        self.running.finish().success()
    }
}

fn kernels(outcome: &Outcome) -> i64 {
    // Snapshots in directories beside it have files of the same name.
    let database = Database::open(&outcome.out().join("x_results.db"));
    database.number("SELECT count(*) FROM kernels")
}

#[test]
fn control_stops_and_starts_recording_with_each_provider() {
    for provider in ["sdk", "direct"] {
        let rpd = Rpd::new(["--sys-trace", "--provider", provider, "-o", "x"]);
        let mut steps = Steps::start(rpd);
        steps.take("launch launch");
        assert!(
            steps
                .control(&["status"])
                .success()
                .stdout
                .contains("recording")
        );
        let stopped = steps.control(&["stop"]).success();
        assert!(
            stopped.stdout.contains("has stopped recording"),
            "{}",
            stopped.stdout
        );
        assert!(
            steps
                .control(&["status"])
                .success()
                .stdout
                .contains("stopped")
        );
        steps.take("launch launch launch launch");
        let _ = steps.control(&["flush"]).success();
        let _ = steps.control(&["start"]).success();
        steps.take("launch");
        let outcome = steps.finish();
        assert_eq!(kernels(&outcome), 3, "{provider}");
        let paused = "4 dispatches";
        assert!(
            outcome.stderr.contains(paused),
            "{provider}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn snapshot_writes_all_outputs_while_the_program_runs_on() {
    let mut steps = Steps::start(Rpd::new([
        "--sys-trace",
        "-o",
        "x",
        "-f",
        "rocpd",
        "csv",
        "json",
    ]));
    steps.take("launch launch");
    for (number, launches) in [(1, 2), (2, 3)] {
        let _ = steps.control(&["snapshot"]).success();
        let directory = steps
            .running
            .directory()
            .join(format!("out/snapshot-{number}"));
        let database = Database::open(&directory.join("x_results.db"));
        assert_eq!(database.number("SELECT count(*) FROM kernels"), launches);
        assert!(directory.join("x_kernel_trace.csv").is_file());
        let json = fs::read_to_string(directory.join("x_results.json")).expect("a file");
        serde_json::from_str::<serde_json::Value>(&json).expect("JSON");
        steps.take("launch");
    }
    let outcome = steps.finish();
    assert_eq!(kernels(&outcome), 4);
}

#[test]
fn control_finds_the_run_by_a_process_id() {
    let mut steps = Steps::start(Rpd::new(["--sys-trace", "-o", "x"]));
    steps.take("launch");
    let rpd = steps.running.child.id().to_string();
    let by_rpd = command(&install::rpd(), ["control", &rpd, "status", "-f", "csv"]).success();
    let pid = by_rpd
        .stdout
        .lines()
        .nth(1)
        .and_then(|line| line.split(',').next());
    let pid = pid.expect("a process").to_owned();
    let _ = command(&install::rpd(), ["control", &pid, "stop"]).success();
    steps.take("launch");
    assert_eq!(kernels(&steps.finish()), 1);
}

#[test]
fn control_reports_what_it_cannot_reach_in_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("none").display().to_string();
    let empty = directory.path().display().to_string();
    let own = std::process::id().to_string();
    for (run, problem) in [
        (&missing, "No such directory"),
        (&empty, "no run in it is under way"),
        (&own, "was not started by rpd"),
    ] {
        let outcome = command(&install::rpd(), ["control", run, "stop"]).expect_code(1);
        assert!(outcome.stderr.contains(problem), "{}", outcome.stderr);
        assert_eq!(
            outcome.stderr.trim_end().lines().count(),
            1,
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn functions_of_the_rpd_tracer_start_stop_and_mark() {
    let mut steps = Steps::start(Rpd::new(["--sys-trace", "-o", "x"]));
    steps.take("push mark launch pop stop launch start launch flush");
    // Starts and stops are counted.
    steps.take("start stop launch stop launch stop start launch");
    let outcome = steps.finish();
    assert_eq!(kernels(&outcome), 4);
    let database = Database::open(&outcome.file("x_results.db"));
    let texts =
        "SELECT extdata FROM regions_and_samples WHERE category LIKE 'MARKER%' ORDER BY start";
    let texts = format!("{:?}", database.rows(texts));
    assert!(texts.contains("python: epoch(train.py:3)"), "{texts}");
    assert!(texts.contains("step"), "{texts}");
}
