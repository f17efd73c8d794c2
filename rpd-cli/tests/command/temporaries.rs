//! Temporary files: for their owner alone, removed at signals, and after a kill by the next run.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::Pid;

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../rpd-formats/testdata/trace_results.db"
);

/// A merge into a pipe, which makes its database in a temporary file and then waits for the reader.
struct Merge {
    directory: tempfile::TempDir,
    temporary: PathBuf,
}

impl Merge {
    fn new() -> Merge {
        let directory = tempfile::tempdir().expect("a directory");
        let temporary = directory.path().join("tmp");
        std::fs::create_dir(&temporary).expect("made");
        nix::unistd::mkfifo(&directory.path().join("pipe"), Mode::S_IRWXU).expect("a pipe");
        Merge {
            directory,
            temporary,
        }
    }

    /// Starts rpd through a shell that executes `before` first.
    fn start(&self, before: &str) -> Child {
        // A background shell or nohup ignores some of these, and what is ignored stays so in all descendants.
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            // SAFETY: the default disposition runs no code.
            unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) }.expect("set");
        }
        let script = format!("{before} exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_rpd")]);
        command.args(["merge", GOLDEN, "-o", "pipe"]);
        command
            .current_dir(self.directory.path())
            .env("TMPDIR", &self.temporary)
            .stderr(Stdio::null())
            .spawn()
            .expect("sh runs")
    }

    /// Waits until there is a temporary file.
    fn made(&self) -> PathBuf {
        wait(|| entries(&self.temporary).pop())
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

fn wait<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("an id"));
    kill(pid, signal).expect("sent");
}

#[test]
fn temporary_files_are_removed_at_signals_that_end_rpd() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let merge = Merge::new();
        let mut child = merge.start("");
        let made = merge.made();
        let mode = std::fs::metadata(&made).expect("there").mode();
        assert_eq!(mode & 0o777, 0o600);
        send(&child, signal);
        let status = child.wait().expect("it ended");
        assert_eq!(status.signal(), Some(signal as i32), "{status}");
        assert_eq!(entries(&merge.temporary), Vec::<PathBuf>::new(), "{signal}");
    }
}

#[test]
fn temporary_files_of_a_killed_rpd_are_removed_by_the_next() {
    let merge = Merge::new();
    let mut child = merge.start("");
    let left = merge.made();
    send(&child, Signal::SIGKILL);
    child.wait().expect("it ended");
    assert!(left.exists());
    let mut child = merge.start("");
    wait(|| (!left.exists()).then_some(()));
    let database = std::fs::read(merge.directory.path().join("pipe")).expect("read");
    assert!(database.starts_with(b"SQLite format 3\0"));
    assert!(child.wait().expect("it ended").success());
    assert_eq!(entries(&merge.temporary), Vec::<PathBuf>::new());
}

#[test]
fn signal_that_was_ignored_stays_ignored() {
    let merge = Merge::new();
    let mut child = merge.start("trap '' HUP;");
    merge.made();
    send(&child, Signal::SIGHUP);
    let database = std::fs::read(merge.directory.path().join("pipe")).expect("read");
    assert!(database.starts_with(b"SQLite format 3\0"));
    assert!(child.wait().expect("it ended").success());
}
