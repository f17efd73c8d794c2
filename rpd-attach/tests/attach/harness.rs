//! Programs and libraries for the tests, and attachers that are processes of their own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rpd_attach::{Environment, Error, Session};

/// Longest time that anything may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A directory with the libraries and the program.
#[derive(Debug)]
pub(crate) struct Built {
    directory: tempfile::TempDir,
}

/// The libraries: part of the source, file, and what it is linked with.
const LIBRARIES: [(&str, &str); 6] = [
    ("REGISTER", "librocprofiler-register.so.0.6.0"),
    ("ATTACH", "librocprofiler-sdk-attach.so.1"),
    ("SDK", "librocprofiler-sdk.so.1.3.0"),
    ("TOOL", "libtool.so"),
    ("TOOL", "libother.so"),
    ("HIP", "libamdhip64.so.7"),
];

impl Built {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn tool(&self) -> PathBuf {
        self.path("libtool.so")
    }
}

fn compile(part: &str, to: &Path, more: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attach/target.c");
    let status = Command::new("cc")
        .args(["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"])
        .arg(format!("-DPART_{part}"))
        .arg("-o")
        .arg(to)
        .arg(source)
        .args(more)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{part}");
}

/// What all tests use, built once.
pub(crate) fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(build)
}

/// Builds the libraries in a directory of their own.
pub(crate) fn build() -> Built {
    let directory = tempfile::tempdir().expect("a directory");
    let built = Built { directory };
    for (part, name) in LIBRARIES {
        compile(part, &built.path(name), &["-shared", "-fPIC"]);
    }
    let links = [("librocprofiler-sdk.so", "librocprofiler-sdk.so.1.3.0")];
    for (link, to) in links {
        std::os::unix::fs::symlink(to, built.path(link)).expect("linked");
    }
    compile("PROGRAM", &built.path("bare"), &[]);
    let place = format!("-L{}", built.directory.path().display());
    let path = format!("-Wl,-rpath,{}", built.directory.path().display());
    let libraries = [
        "-Wl,--no-as-needed",
        "-l:librocprofiler-register.so.0.6.0",
        "-l:librocprofiler-sdk-attach.so.1",
        "-l:libamdhip64.so.7",
    ];
    let more = [&[place.as_str(), path.as_str()], &libraries[..]].concat();
    compile("PROGRAM", &built.path("program"), &more);
    built
}

/// A target.
#[derive(Debug)]
pub(crate) struct Target {
    child: Child,
    /// Closing it ends the target.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Target {
    /// Starts a program, and waits until it runs.
    pub(crate) fn start(program: &Path, set: impl FnOnce(&mut Command)) -> Target {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        fs::write(&log, "").expect("written");
        let mut command = Command::new(program);
        command
            .env("TEST_LOG", &log)
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        set(&mut command);
        let mut child = command.spawn().expect("it starts");
        let output = child.stdout.take().expect("its output");
        let mut target = Target {
            input: child.stdin.take(),
            output: BufReader::new(output),
            child,
            log,
            _directory: directory,
        };
        let line = target.line();
        assert!(line == "ready" || line.starts_with("started "), "{line}");
        target
    }

    /// A target that a tool can be attached to.
    pub(crate) fn prepared() -> Target {
        Target::start(&built().path("program"), |command| {
            command.env("ROCP_TOOL_ATTACH", "1");
        })
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub(crate) fn signal(&self, number: i32) {
        // SAFETY: the call takes numbers.
        assert_eq!(unsafe { libc::kill(self.pid(), number) }, 0);
    }

    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.log).expect("a log");
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the log has a line.
    pub(crate) fn wait_for(&self, line: &str) {
        let end = Instant::now() + LONG;
        while !self.log().iter().any(|it| it == line) {
            assert!(Instant::now() < end, "no {line}: {:?}", self.log());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the target, which must not have noticed anything but these signals.
    pub(crate) fn ends_unchanged(self, signals: u32) {
        assert_eq!(self.ends_with_signals(), signals);
    }

    /// Ends the target, which must not have noticed anything but signals; their number.
    pub(crate) fn ends_with_signals(mut self) -> u32 {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("its output");
        assert_eq!(
            self.child.wait().expect("it ends").code(),
            Some(7),
            "{rest}"
        );
        let signals = rest.strip_prefix("signals ");
        let signals = signals.and_then(|rest| rest.strip_suffix(" changes 0\n"));
        let signals = signals.and_then(|number| number.parse().ok());
        signals.unwrap_or_else(|| panic!("{rest}"))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Either may fail when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Attaches the tool of the tests.
pub(crate) fn attach(target: &Target, environment: &Environment) -> Result<Session, Error> {
    Session::attach(target.pid(), &built().tool(), environment)
}

/// Variables that tell this program, run again, what to attach to: process, tool, milliseconds.
const PID: &str = "RPD_ATTACH_TEST_PID";
const TOOL: &str = "RPD_ATTACH_TEST_TOOL";
const HOLD: &str = "RPD_ATTACH_TEST_HOLD";

/// An attacher in a process of its own: it prints `attached` or an error, holds the session for a time and detaches.
pub(crate) fn attacher(pid: i32, tool: &Path, hold: Duration) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command
        .args(["--exact", "harness::attacher_process", "--nocapture"])
        .env(PID, pid.to_string())
        .env(TOOL, tool)
        .env(HOLD, hold.as_millis().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// Not a test by itself: the process that [`attacher`] starts.
#[test]
fn attacher_process() {
    let value = |name: &str| std::env::var(name).ok();
    let (Some(pid), Some(tool), Some(hold)) = (value(PID), value(TOOL), value(HOLD)) else {
        return;
    };
    let pid = pid.parse().expect("a number");
    let hold = Duration::from_millis(hold.parse().expect("a number"));
    match Session::attach(pid, Path::new(&tool), &Environment::inherited()) {
        Ok(session) => {
            println!("attached");
            session.wait_for_end(hold);
            println!(
                "detach {:?}",
                session.detach().map_err(|error| error.status)
            );
        }
        Err(error) => println!("refused {} {error}", error.status.code()),
    }
}
