//! Attaching by ROCm's protocol to programs on the simulator that were started with `ROCP_TOOL_ATTACH=1`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rpd_attach::{Environment, Error, Session, Status, inspect};
use rpd_spool::{ATTACHED_COLLECT_VARIABLE, ATTACHED_SPOOL_VARIABLE};
use rpd_tests::outputs::Database;
use rpd_tests::run::Rpd;
use rpd_tests::{install, workloads};

/// Longest time that anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(120);
/// What is recorded.
const OPTIONS: &str = "hip_runtime,kernel,memory_copy";

/// An unfinished run of rpd, in whose directory attached processes are recorded.
struct Run {
    rpd: rpd_tests::run::Running,
    directory: PathBuf,
}

impl Run {
    fn new() -> Run {
        let rpd = Rpd::new(["--hip-trace", "--kernel-trace", "-o", "x"])
            .option(["--", "sleep", "600"])
            .start();
        let runs = rpd.directory().join("out/.rpd");
        let end = Instant::now() + LONG;
        let directory = loop {
            let entries = fs::read_dir(&runs).into_iter().flatten().flatten();
            let run = entries.map(|entry| entry.path()).find(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("run-") && path.join("options.json").is_file()
            });
            if let Some(run) = run {
                break run;
            }
            assert!(Instant::now() < end, "rpd makes a run");
            std::thread::sleep(Duration::from_millis(5));
        };
        rpd.signal_group(libc::SIGKILL);
        Run { rpd, directory }
    }

    fn environment(&self) -> Environment {
        Environment::new()
            .with(ATTACHED_SPOOL_VARIABLE, &self.directory)
            .with(ATTACHED_COLLECT_VARIABLE, OPTIONS)
    }

    /// Makes the outputs of what was recorded; the only database, and what was said.
    fn outputs(&self) -> (Database, String) {
        let out = self.rpd.directory().join("out");
        let said = Rpd::plain(["recover".as_ref(), out.as_os_str()])
            .run()
            .success();
        // The name has the number of the process where `sleep` was recorded as the run's program.
        let files = fs::read_dir(&out).expect("outputs").flatten();
        let database = files
            .map(|file| file.path())
            .find(|path| path.to_string_lossy().ends_with("_results.db"))
            .unwrap_or_else(|| panic!("no database: {}", said.stderr));
        (Database::open(&database), said.stderr)
    }
}

/// The workload `steps` without rpd, which does one thing after the other as the test tells it.
struct Target {
    child: Child,
    words: Option<ChildStdin>,
    directory: tempfile::TempDir,
    count: u64,
}

impl Target {
    fn start(set: impl FnOnce(&mut Command)) -> Target {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(workloads::path("steps"));
        command
            .arg(directory.path().join("done"))
            .env("LD_LIBRARY_PATH", install::simulator_dir())
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::piped());
        set(&mut command);
        let mut child = command.spawn().expect("it starts");
        let words = child.stdin.take();
        let mut target = Target {
            child,
            words,
            directory,
            count: 0,
        };
        target.take("launch");
        target
    }

    fn prepared() -> Target {
        Target::start(|command| {
            command.env("ROCP_TOOL_ATTACH", "1");
        })
    }

    fn take(&mut self, words: &str) {
        let input = self.words.as_mut().expect("it runs");
        writeln!(input, "{words}").expect("the program reads");
        self.count += words.split(' ').count() as u64;
        let done = self.directory.path().join("done");
        let end = Instant::now() + LONG;
        while fs::metadata(&done).map_or(0, |data| data.len()) < self.count {
            assert!(
                self.child.try_wait().is_ok_and(|end| end.is_none()),
                "it runs"
            );
            assert!(Instant::now() < end, "it does {words}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    fn attach(&self, environment: &Environment) -> Result<Session, Error> {
        Session::attach(self.pid(), &install::collector(), environment)
    }

    /// Lets the program end as it does by itself.
    fn end(mut self) {
        drop(self.words.take());
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Either may fail when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kernels(database: &Database) -> i64 {
    database.number("SELECT count(*) FROM kernels")
}

#[test]
fn attach_records_the_kernels_of_its_windows_with_their_names() {
    let run = Run::new();
    let mut target = Target::prepared();
    target.take("launch launch");
    for _ in 0..3 {
        let session = target.attach(&run.environment()).expect("attached");
        target.take("launch launch launch");
        session.detach().expect("detached");
        target.take("launch");
    }
    let found = inspect(target.pid()).expect("it may be read");
    let recording = found.recording.expect("it is recorded");
    assert_eq!(recording.parent(), Some(run.directory.as_path()));
    let elsewhere = run.environment().with(ATTACHED_SPOOL_VARIABLE, "/tmp");
    let error = target.attach(&elsewhere).expect_err("it is recorded here");
    assert_eq!(error.status, Status::InvalidArgument, "{error}");
    assert!(error.text.contains("name that run"), "{error}");
    target.end();
    let (database, said) = run.outputs();
    assert_eq!(kernels(&database), 9, "{said}");
    let named = "SELECT count(*) FROM kernels WHERE name LIKE 'empty_kernel%'";
    assert_eq!(database.number(named), 9, "loaded before the first window");
    assert!(
        said.contains("attached itself while this process ran"),
        "{said}"
    );
}

/// Whether a process is recorded and a thread of it has a stream.
fn records_calls(pid: i32) -> bool {
    let recording = inspect(pid).ok().and_then(|found| found.recording);
    let files = recording.into_iter().flat_map(fs::read_dir).flatten();
    let names = files.flatten().map(|file| file.file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .any(|name| name.ends_with(".seg") && !name.starts_with("meta"))
}

#[test]
fn command_attaches_once_and_makes_outputs_like_those_of_a_run() {
    let mut target = Target::prepared();
    let pid = target.pid().to_string();
    let attach = || {
        Rpd::plain(["attach", &pid, "-d", "out", "-o", "x"])
            .option(["--hip-trace", "--kernel-trace"])
    };
    let rpd = attach().start();
    let end = Instant::now() + LONG;
    // Until a call is in the recording: it begins shortly after its directory is made.
    while !records_calls(target.pid()) {
        assert!(Instant::now() < end, "it is attached to");
        target.take("launch");
        std::thread::sleep(Duration::from_millis(5));
    }
    // A launch while rpd attaches may be a call without a dispatch; these come after.
    target.take("launch launch");
    rpd.signal(libc::SIGINT);
    let outcome = rpd.finish().success();
    assert!(
        outcome.stderr.contains("prepared by ROCP_TOOL_ATTACH=1"),
        "{}",
        outcome.stderr
    );
    let database = Database::open(&outcome.out().join("x_results.db"));
    assert!(kernels(&database) > 0, "{}", outcome.stderr);
    let again = attach().run().expect_code(1);
    assert!(
        again.stderr.contains("attached to before"),
        "{}",
        again.stderr
    );
    assert_eq!(again.stderr.lines().count(), 1, "{}", again.stderr);
    assert!(again.files().is_empty(), "{:?}", again.files());
    target.take("launch");
    target.end();
}

#[test]
fn attach_leaves_a_recording_when_the_target_is_killed() {
    let run = Run::new();
    let mut target = Target::prepared();
    let session = target.attach(&run.environment()).expect("attached");
    target.take("launch launch");
    target.child.kill().expect("killed");
    assert!(session.wait_for_end(LONG));
    assert_eq!(
        session.detach().expect_err("it has ended").status,
        Status::ProcessNotFound
    );
    let (database, _) = run.outputs();
    assert_eq!(kernels(&database), 2);
}

#[test]
fn recording_ends_with_the_program_when_the_attacher_has_gone() {
    let run = Run::new();
    let mut target = Target::prepared();
    drop(target.attach(&run.environment()).expect("attached"));
    target.take("launch launch");
    target.end();
    let (database, _) = run.outputs();
    assert_eq!(kernels(&database), 2);
}

#[test]
fn program_on_the_simulator_that_was_not_prepared_is_refused() {
    let target = Target::start(|_| {});
    let error = target
        .attach(&Environment::new())
        .expect_err("it is refused");
    assert_eq!(error.status, Status::Error);
    assert!(!error.text.contains('\n'), "{error}");
    target.end();
}

#[test]
fn other_tool_than_the_first_is_refused_and_the_program_goes_on() {
    let run = Run::new();
    let mut target = Target::prepared();
    let session = target.attach(&run.environment()).expect("attached");
    session.detach().expect("detached");
    let copy = target.directory.path().join("other.so");
    fs::copy(install::collector(), &copy).expect("copied");
    let error = Session::attach(target.pid(), &copy, &run.environment()).expect_err("refused");
    assert_eq!(error.status, Status::Error);
    assert!(
        error.text.contains("another tool was attached before"),
        "{error}"
    );
    target.take("launch");
    target.end();
}

#[test]
fn simulator_without_its_registration_library_runs_and_says_so() {
    let links = tempfile::tempdir().expect("a directory");
    for name in install::sonames().expect("a list") {
        let library = install::bin_dir().join("librpd_sim.so");
        std::os::unix::fs::symlink(library, links.path().join(name)).expect("linked");
    }
    let said = links.path().join("said");
    let file = fs::File::create(&said).expect("made");
    let target = Target::start(|command| {
        command
            .env("ROCP_TOOL_ATTACH", "1")
            .env("LD_LIBRARY_PATH", links.path())
            .stderr(file);
    });
    let error = target
        .attach(&Environment::new())
        .expect_err("it is refused");
    assert_eq!(error.status, Status::Error);
    target.end();
    let said = fs::read_to_string(Path::new(&said)).expect("read");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("librocprofiler-register.so.0 was not found"),
        "{said}"
    );
}
