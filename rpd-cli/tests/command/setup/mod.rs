//! rpd in its own directory. The libraries beside it are stand-ins that do nothing, so that only the front end is
//! tested.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A directory with rpd and its libraries, and a directory to work in.
pub(crate) struct Setup {
    directory: tempfile::TempDir,
}

impl Setup {
    pub(crate) fn new() -> Setup {
        let directory = tempfile::Builder::new()
            .prefix("launch")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .expect("a temporary directory");
        let bin = directory.path().join("bin");
        std::fs::create_dir_all(&bin).expect("a directory");
        std::fs::create_dir_all(directory.path().join("work")).expect("a directory");
        std::fs::hard_link(env!("CARGO_BIN_EXE_rpd"), bin.join("rpd")).expect("the same disk");
        let empty = directory.path().join("empty.c");
        std::fs::write(&empty, "").expect("writable");
        for name in ["librpd_collect.so", "librpd_register.so", "librpd_sim.so"] {
            let status = Command::new("cc")
                .args(["-shared", "-nostdlib", "-o"])
                .args([&bin.join(name), &empty])
                .status()
                .expect("a C compiler");
            assert!(status.success());
        }
        Setup { directory }
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.directory.path().join("bin")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.prepared(Command::new(self.bin().join("rpd")), arguments)
    }

    /// Prepares a command with the arguments in the directory to work in, without variables of the environment for
    /// profilers.
    fn prepared(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.args(arguments).current_dir(self.work());
        for (name, _) in std::env::vars() {
            if name.starts_with("ROC") || name.starts_with("LD_") {
                command.env_remove(name);
            }
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("rpd starts")
    }

    /// Runs rpd ([`Setup::run`]) until a limit of processor time, in seconds, which other programs do not make longer.
    pub(crate) fn run_within(&self, seconds: u32, arguments: &[&str]) -> Output {
        let mut shell = Command::new("/bin/sh");
        let script = format!("ulimit -t {seconds}; exec \"$0\" \"$@\"");
        shell.arg("-c").arg(script).arg(self.bin().join("rpd"));
        let mut rpd = self.prepared(shell, arguments);
        rpd.output().expect("rpd starts")
    }
}

/// Sends a signal to a child that was not waited for.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a process id");
    kill(Pid::from_raw(pid), signal).expect("a signal to a child");
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names of the entries of a directory.
pub(crate) fn entries(directory: &Path) -> Vec<String> {
    std::fs::read_dir(directory)
        .map(|entries| {
            entries
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect()
        })
        .unwrap_or_default()
}
