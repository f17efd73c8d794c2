//! Running workloads, alone or under `rpd`, each in its own temporary directory and with a time limit.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use tempfile::TempDir;

pub use crate::skips::{lacks, skipped, tool, tool_for};
use crate::{install, workloads};

/// Exit status and output of a finished command.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status of the program.
    pub status: ExitStatus,
    /// Text on standard output.
    pub stdout: String,
    /// Text on standard error.
    pub stderr: String,
    /// The directory it ran in; removed when this value goes.
    pub directory: TempDir,
}

impl Outcome {
    /// The exit status as a shell gives it: 128 + n when signal n ended the process.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .or_else(|| self.status.signal().map(|signal| 128 + signal))
            .unwrap_or(-1)
    }

    /// The outcome itself, of a command that ended with status 0.
    ///
    /// # Panics
    /// With everything the command wrote, if it was not.
    #[must_use]
    pub fn success(self) -> Self {
        self.expect_code(0)
    }

    /// Returns `self` if the status (as of [`Outcome::code`]) was `code`.
    ///
    /// # Panics
    /// With everything the command wrote, if it was not.
    #[must_use]
    pub fn expect_code(self, code: i32) -> Self {
        assert!(
            self.code() == code,
            "status {} instead of {code}\n--- stdout\n{}\n--- stderr\n{}",
            self.code(),
            self.stdout,
            self.stderr
        );
        self
    }

    /// The directory that [`Rpd`] has rpd write to (`-d out`).
    #[must_use]
    pub fn out(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    /// The paths of all files below [`Outcome::out`], relative to it and sorted, hidden ones included.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let root = self.out();
        let mut directories = vec![root.clone()];
        let mut files = Vec::new();
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    directories.push(path);
                } else if let Ok(relative) = path.strip_prefix(&root) {
                    files.push(relative.to_string_lossy().into_owned());
                }
            }
        }
        files.sort();
        files
    }

    /// The only file below [`Outcome::out`] whose name ends with `suffix`.
    ///
    /// # Panics
    /// When there is none, or more than one.
    #[must_use]
    pub fn file(&self, suffix: &str) -> PathBuf {
        let found = self.files_ending(suffix);
        assert!(
            found.len() == 1,
            "{} files end with {suffix} of {:?}\n--- stderr\n{}",
            found.len(),
            self.files(),
            self.stderr
        );
        found.into_iter().next().expect("one, as was just checked")
    }

    /// All files below [`Outcome::out`] whose names end with `suffix`, sorted.
    #[must_use]
    pub fn files_ending(&self, suffix: &str) -> Vec<PathBuf> {
        self.files()
            .iter()
            .filter(|name| name.ends_with(suffix))
            .map(|name| self.out().join(name))
            .collect()
    }
}

/// A command line of `rpd`, run in a temporary directory with `-d out`, on the backend that
/// `RPD_TEST_BACKEND` names.
#[derive(Debug)]
pub struct Rpd {
    command: Command,
    directory: TempDir,
    limit: Duration,
}

impl Rpd {
    /// `rpd -d out --backend <backend> <options>`
    ///
    /// # Panics
    /// When no temporary directory can be made.
    #[must_use]
    pub fn new<A: AsRef<OsStr>>(options: impl IntoIterator<Item = A>) -> Self {
        let backend = env::var_os("RPD_TEST_BACKEND").unwrap_or_else(|| "sim".into());
        let mut this = Self::plain(["-d", "out", "--backend"]);
        this.command.arg(backend).args(options);
        this
    }

    /// `<name> -d out --backend <backend> <options>`, through a link to `rpd` with this name.
    ///
    /// # Panics
    /// When no temporary directory or link can be made.
    #[must_use]
    pub fn called<A: AsRef<OsStr>>(name: &str, options: impl IntoIterator<Item = A>) -> Self {
        let backend = env::var_os("RPD_TEST_BACKEND").unwrap_or_else(|| "sim".into());
        let mut this = Self::bare(name, ["-d", "out", "--backend"]);
        this.command.arg(backend).args(options);
        this
    }

    /// `<name> <arguments>` and nothing else, through a link to `rpd` with this name.
    ///
    /// # Panics
    /// When no temporary directory or link can be made.
    #[must_use]
    pub fn bare<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        let directory = temporary_directory();
        let link = directory.path().join(name);
        std::os::unix::fs::symlink(install::rpd(), &link).expect("a link");
        let mut command = clean_command(&link);
        command.args(arguments);
        Self {
            command,
            directory,
            limit: LIMIT,
        }
    }

    /// Adds options after those that are there.
    #[must_use]
    pub fn option<A: AsRef<OsStr>>(mut self, options: impl IntoIterator<Item = A>) -> Self {
        self.command.args(options);
        self
    }

    /// `rpd <arguments>` and nothing else, for sub-commands and for command lines under test.
    ///
    /// # Panics
    /// When no temporary directory can be made.
    #[must_use]
    pub fn plain<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = clean_command(&install::rpd());
        command.args(arguments);
        Self {
            command,
            directory: temporary_directory(),
            limit: LIMIT,
        }
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Uses `file` as standard input; without it standard input is empty.
    #[must_use]
    pub fn input(mut self, file: fs::File) -> Self {
        self.command.stdin(file);
        self
    }

    /// Sets the time after which the command is killed; two minutes unless set.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The directory it will run in, to put input files there.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Adds `-- <workload> <arguments>` and runs to the end.
    #[must_use]
    pub fn workload<A: AsRef<OsStr>>(
        self,
        name: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Outcome {
        let mut target = vec![workloads::path(name).into_os_string()];
        target.extend(
            arguments
                .into_iter()
                .map(|argument| argument.as_ref().to_owned()),
        );
        self.target(target)
    }

    /// Adds `-- <target>` and runs to the end.
    #[must_use]
    pub fn target<A: AsRef<OsStr>>(mut self, target: impl IntoIterator<Item = A>) -> Outcome {
        self.command.arg("--").args(target);
        self.run()
    }

    /// Runs the command line as it is to the end.
    #[must_use]
    pub fn run(self) -> Outcome {
        finish(self.start())
    }

    /// Starts the command; what follows `--` is set already. For tests that send signals or look while it runs.
    ///
    /// # Panics
    /// When the program cannot be started.
    #[must_use]
    pub fn start(mut self) -> Running {
        self.command.current_dir(self.directory.path());
        Running::start(&mut self.command, self.directory, self.limit)
    }

    /// Adds `-- <workload> <arguments>` and starts it.
    #[must_use]
    pub fn start_workload<A: AsRef<OsStr>>(
        mut self,
        name: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Running {
        self.command
            .arg("--")
            .arg(workloads::path(name))
            .args(arguments);
        self.start()
    }
}

/// A command that has been started.
#[derive(Debug)]
pub struct Running {
    /// The process; it leads its own process group.
    pub child: Child,
    output: [Option<thread::JoinHandle<String>>; 2],
    directory: TempDir,
    deadline: Instant,
}

impl Running {
    fn start(command: &mut Command, directory: TempDir, limit: Duration) -> Self {
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // A background shell or nohup ignores some of these, and what is ignored stays so in all descendants.
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
            // SAFETY: the default disposition runs no code of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let output = [
            child.stdout.take().map(collect),
            child.stderr.take().map(collect),
        ];
        Self {
            child,
            output,
            directory,
            deadline: Instant::now() + limit,
        }
    }

    /// The directory it runs in.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Sends `signal` to the process alone.
    pub fn signal(&self, signal: i32) {
        // SAFETY: kill takes no pointers, and the process is an unreaped child of this one.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// Sends `signal` to the process and its descendants that kept its group, as a terminal does.
    pub fn signal_group(&self, signal: i32) {
        // SAFETY: as in `signal`; the negative number names the group the process leads.
        unsafe { libc::kill(-self.pid(), signal) };
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When the time limit passes first; the whole process group is killed then.
    #[must_use]
    pub fn finish(self) -> Outcome {
        finish(self)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process ids are positive 31-bit numbers")
    }
}

/// Runs a workload on the simulator without `rpd`.
#[must_use]
pub fn simulated<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>) -> Outcome {
    simulated_with([], name, arguments)
}

/// Runs a workload on the simulator without `rpd`, with additional environment variables.
#[must_use]
pub fn simulated_with<'a, A: AsRef<OsStr>>(
    variables: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Outcome {
    finish(start_simulated(variables, name, arguments))
}

/// Starts a workload on the simulator without `rpd`.
#[must_use]
pub fn start_simulated<'a, A: AsRef<OsStr>>(
    variables: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Running {
    let mut command = clean_command(&workloads::path(name));
    let directory = temporary_directory();
    command.args(arguments).envs(variables);
    command
        .env("LD_LIBRARY_PATH", simulator_path())
        .current_dir(directory.path());
    Running::start(&mut command, directory, LIMIT)
}

/// Runs any program in a temporary directory, as the workloads are run.
#[must_use]
pub fn command<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Outcome {
    command_within(LIMIT, program, arguments)
}

/// Runs any program in a temporary directory ([`command`]) with another time limit than two minutes.
#[must_use]
pub fn command_within<A: AsRef<OsStr>>(
    limit: Duration,
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Outcome {
    let mut command = clean_command(program);
    let directory = temporary_directory();
    command.args(arguments).current_dir(directory.path());
    finish(Running::start(&mut command, directory, limit))
}

/// `LD_LIBRARY_PATH` with the simulator in front.
#[must_use]
pub fn simulator_path() -> OsString {
    let mut path = install::simulator_dir().as_os_str().to_owned();
    if let Some(inherited) = env::var_os("LD_LIBRARY_PATH").filter(|value| !value.is_empty()) {
        path.push(":");
        path.push(inherited);
    }
    path
}

/// Whether `rpd` finds the library with which it writes OTF2 archives; the check is skipped where it does not.
///
/// # Panics
/// When `rpd` does not run.
#[must_use]
pub fn has_otf2(check: &str) -> bool {
    let outcome = Rpd::new(["-f", "otf2"]).target(["true"]);
    let has = !outcome.stderr.contains("no archive can be written");
    if !has {
        skipped(check, "no libotf2");
    }
    has
}

/// Long enough for any single command on a slow, loaded machine.
const LIMIT: Duration = Duration::from_secs(120);

/// A command without what the surrounding session may have set for profilers.
fn clean_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let ours =
            text.starts_with("RPD_") || text.starts_with("ROCPROF_") || text.starts_with("ROCP_");
        if ours || text == "LD_PRELOAD" {
            command.env_remove(&name);
        }
    }
    command
}

fn temporary_directory() -> TempDir {
    TempDir::with_prefix("rpd-test-").expect("a temporary directory")
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn finish(mut running: Running) -> Outcome {
    let mut timed_out = false;
    let status = loop {
        match running
            .child
            .try_wait()
            .expect("the child can be waited for")
        {
            Some(status) => break status,
            None if Instant::now() >= running.deadline => {
                timed_out = true;
                running.signal_group(libc::SIGKILL);
                break running.child.wait().expect("the child can be waited for");
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    let [stdout, stderr] = running.output.map(|thread| {
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    });
    assert!(
        !timed_out,
        "no end within the time limit\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
    );
    Outcome {
        status,
        stdout,
        stderr,
        directory: running.directory,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Running {
        let mut command = clean_command(Path::new("/bin/sh"));
        command.args(["-c", script]);
        Running::start(&mut command, temporary_directory(), limit)
    }

    #[test]
    fn a_command_keeps_its_output_and_status() {
        let outcome = finish(shell("echo out; echo err >&2; exit 7", LIMIT));
        assert_eq!(
            (
                outcome.code(),
                outcome.stdout.as_str(),
                outcome.stderr.as_str()
            ),
            (7, "out\n", "err\n")
        );
    }

    #[test]
    fn a_signal_gives_the_status_of_a_shell() {
        let running = shell("sleep 60", LIMIT);
        running.signal_group(libc::SIGTERM);
        assert_eq!(running.finish().code(), 128 + libc::SIGTERM);
    }

    #[test]
    #[should_panic(expected = "no end within the time limit")]
    fn an_endless_command_is_killed_at_its_limit() {
        let _ = finish(shell(
            "echo started; sleep 60 & sleep 60",
            Duration::from_millis(50),
        ));
    }

    #[test]
    fn files_are_listed_below_the_output_directory() {
        let mut command = clean_command(Path::new("/bin/sh"));
        let directory = temporary_directory();
        command
            .args([
                "-c",
                "mkdir -p out/.hidden && touch out/b.csv out/.hidden/a.db",
            ])
            .current_dir(directory.path());
        let outcome = finish(Running::start(&mut command, directory, LIMIT)).success();
        assert_eq!(outcome.files(), [".hidden/a.db", "b.csv"]);
        assert_eq!(outcome.file("b.csv"), outcome.out().join("b.csv"));
    }
}
