//! `rpd idle` and `rpd attach`: programs that are recorded while they run.

use std::fs;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::{Outcome, Rpd, Running, command, skipped, tool_for};
use rpd_tests::{install, workloads};

/// Options of recordings that have all that the server does.
const ALL: [&str; 6] = [
    "--hip-runtime-trace",
    "--kernel-trace",
    "--memory-copy-trace",
    "--marker-trace",
    "-o",
    "x",
];

/// Waits until `holds`, for as long as a test may take on a busy machine.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(90), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The workload `server`, which waits to be attached to.
struct Server {
    running: Running,
    input: std::io::PipeWriter,
    units: PathBuf,
}

impl Server {
    fn start() -> Server {
        Server::start_by(|| Rpd::plain(["idle", "--backend", "sim"]))
    }

    fn start_by(rpd: impl FnOnce() -> Rpd) -> Server {
        let rpd = rpd();
        let (reader, input) = std::io::pipe().expect("a pipe");
        let units = rpd.directory().join("units");
        let rpd = rpd.input(fs::File::from(OwnedFd::from(reader)));
        let running = rpd.start_workload("server", [units.as_os_str(), "4".as_ref()]);
        let server = Server {
            running,
            input,
            units,
        };
        wait_until("the server works", || server.units() > 0);
        server
    }

    /// Units of work so far.
    fn units(&self) -> u64 {
        let bytes = fs::read(&self.units).unwrap_or_default();
        bytes.try_into().map_or(0, u64::from_le_bytes)
    }

    /// Waits until all threads have gone on.
    fn goes_on(&self) {
        let before = self.units();
        wait_until("the server goes on", || self.units() > before + 8);
    }

    /// The process of the server, a child of the rpd that started it.
    fn pid(&self) -> u32 {
        let rpd = self.running.child.id();
        let children = fs::read_to_string(format!("/proc/{rpd}/task/{rpd}/children"));
        let children = children.expect("procfs");
        let first = children.split_whitespace().next();
        first.and_then(|pid| pid.parse().ok()).expect("a child")
    }

    fn attach(&self, options: &[&str]) -> Rpd {
        let pid = self.pid().to_string();
        Rpd::plain(["attach", &pid, "-d", "out"]).option(options)
    }

    /// Whether the server is recorded: its recording has a page for requests.
    fn is_attached(&self) -> bool {
        let map = fs::read_to_string(format!("/proc/{}/maps", self.pid())).expect("it runs");
        map.lines().any(|line| line.ends_with("/control"))
    }

    /// Ends the server, which must have done all its work right.
    fn finish(self) {
        drop(self.input);
        let outcome = self.running.finish().success();
        assert!(outcome.stdout.ends_with(" units\n"), "{}", outcome.stdout);
        assert_eq!(outcome.stderr, "");
    }
}

/// Attaches until the server has done some work.
fn for_a_while(server: &Server, options: &[&str]) -> Outcome {
    let attached = server.attach(options).start();
    wait_until("rpd is attached", || server.is_attached());
    server.goes_on();
    attached.signal(libc::SIGINT);
    let outcome = attached.finish().success();
    server.goes_on();
    outcome
}

fn database(outcome: &Outcome) -> Database {
    Database::open(&outcome.out().join("x_results.db"))
}

/// Number of threads of the server.
const THREADS: i64 = 4;

#[test]
fn attach_records_a_running_program_again_and_again() {
    let server = Server::start();
    for _ in 0..2 {
        let outcome = for_a_while(&server, &ALL);
        let found = database(&outcome);
        let kernels = found.number("SELECT count(*) FROM kernels WHERE name LIKE 'fill_kernel%'");
        let launches = found.number("SELECT count(*) FROM regions WHERE name = 'hipLaunchKernel'");
        assert!(kernels > 0, "{}", outcome.stderr);
        // Each thread may be within a launch at either end.
        assert!(
            (kernels - launches).abs() <= 2 * THREADS,
            "{kernels} of {launches}"
        );
        assert_eq!(found.number("SELECT count(*) FROM kernels") - kernels, 0);
        assert!(found.number("SELECT count(*) FROM memory_copies") > 0);
        let ranges = found.number("SELECT count(*) FROM regions WHERE name = 'roctxThreadRangeA'");
        assert!(
            (kernels - ranges).abs() <= 2 * THREADS,
            "{kernels} in {ranges}"
        );
        let threads = "SELECT count(DISTINCT tid) FROM regions WHERE name = 'hipLaunchKernel'";
        assert!((1..=THREADS).contains(&found.number(threads)));
        assert!(
            outcome.stderr.contains("rpd attached"),
            "{}",
            outcome.stderr
        );
        assert!(
            outcome.stderr.contains("prepared by rpd idle"),
            "{}",
            outcome.stderr
        );
    }
    let light = for_a_while(&server, &["--light", "-f", "csv", "-o", "x"]);
    assert!(
        !light.files_ending("kernel_trace.csv").is_empty(),
        "{:?}",
        light.files()
    );
    let stacks = [
        "--hip-runtime-trace",
        "--stacks",
        "native",
        "--stacks-symbolize",
        "off",
        "-o",
        "x",
    ];
    let stacks = for_a_while(&server, &stacks);
    assert!(
        stacks.files_ending("x_results.db").len() == 1,
        "{}",
        stacks.stderr
    );
    let kernels = for_a_while(&server, &["--kernel-trace", "-f", "csv", "-o", "x"]);
    let table = Table::read(&kernels.out().join("x_kernel_trace.csv"));
    assert!(
        table
            .column("Kernel_Name")
            .iter()
            .all(|name| name.starts_with("fill_kernel"))
    );
    server.finish();
}

#[test]
fn attach_ends_at_a_line_of_input_and_at_a_signal() {
    let server = Server::start();
    let (reader, mut keys) = std::io::pipe().expect("a pipe");
    let input = fs::File::from(OwnedFd::from(reader));
    let attached = server.attach(&ALL).input(input).start();
    wait_until("rpd is attached", || server.is_attached());
    server.goes_on();
    writeln!(keys).expect("rpd reads");
    let by_key = attached.finish().success();
    assert!(database(&by_key).number("SELECT count(*) FROM kernels") > 0);
    let attached = server.attach(&ALL).start();
    wait_until("rpd is attached", || server.is_attached());
    server.goes_on();
    attached.signal(libc::SIGINT);
    let by_signal = attached.finish().success();
    assert!(database(&by_signal).number("SELECT count(*) FROM kernels") > 0);
    server.finish();
}

#[test]
fn second_attach_is_refused_while_the_first_records() {
    let server = Server::start();
    let first = server.attach(&ALL).start();
    wait_until("rpd is attached", || server.is_attached());
    let second = server.attach(&ALL).run().expect_code(1);
    let named = format!(
        "rpd (process {}) is attached to it already",
        first.child.id()
    );
    assert!(second.stderr.contains(&named), "{}", second.stderr);
    assert_eq!(second.stderr.lines().count(), 1, "{}", second.stderr);
    first.signal(libc::SIGTERM);
    let _ = first.finish().success();
    server.finish();
}

#[test]
fn attach_writes_what_a_killed_program_had_recorded() {
    let server = Server::start();
    let attached = server.attach(&ALL).start();
    wait_until("rpd is attached", || server.is_attached());
    server.goes_on();
    let pid = server.pid().to_string();
    let _ = command(Path::new("/bin/kill"), ["-KILL", &pid]).success();
    let outcome = attached.finish().success();
    assert!(
        outcome.stderr.contains(&format!("process {pid} has ended")),
        "{}",
        outcome.stderr
    );
    assert!(database(&outcome).number("SELECT count(*) FROM kernels") > 0);
    let _ = server.running.finish().expect_code(137);
}

#[test]
fn program_ends_in_good_order_while_it_is_attached_to() {
    let server = Server::start();
    let attached = server.attach(&ALL).start();
    wait_until("rpd is attached", || server.is_attached());
    server.goes_on();
    server.finish();
    let outcome = attached.finish().success();
    assert!(database(&outcome).number("SELECT count(*) FROM kernels") > 0);
}

#[test]
fn killed_rpd_leaves_a_program_that_can_be_attached_to() {
    let server = Server::start();
    let killed = server.attach(&ALL).start();
    wait_until("rpd is attached", || server.is_attached());
    killed.signal(libc::SIGKILL);
    let _ = killed.finish();
    server.goes_on();
    let outcome = for_a_while(&server, &ALL);
    assert!(database(&outcome).number("SELECT count(*) FROM kernels") > 0);
    server.finish();
}

#[test]
fn attach_refuses_what_it_cannot_do_before_it_touches_the_program() {
    let server = Server::start();
    let refused = |options: &[&str], what: &str| {
        let outcome = server.attach(options).run().expect_code(1);
        assert!(outcome.stderr.contains(what), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        assert!(!server.is_attached());
    };
    refused(&["--pmc", "SQ_WAVES"], "--pmc: ");
    refused(&["--scratch-memory-trace"], "--scratch-memory-trace: ");
    refused(&["--kernel-trace", "--kokkos-trace"], "--kokkos-trace: ");
    refused(
        &["--kernel-trace", "-d", "/proc/nowhere"],
        "/proc/nowhere cannot be written",
    );
    server.goes_on();
    server.finish();
}

#[test]
fn attach_refuses_programs_that_were_not_prepared() {
    let outcome = Rpd::plain(["attach", "4194304", "-s"]).run().expect_code(1);
    assert!(
        outcome.stderr.contains("no such process"),
        "{}",
        outcome.stderr
    );
    let mut sleeps = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .expect("it starts");
    let pid = sleeps.id().to_string();
    for words in [
        ["attach", &pid],
        ["--attach", &pid],
        ["-p", &pid],
        ["--pid", &pid],
    ] {
        let outcome = Rpd::plain(words).option(["-s"]).run().expect_code(1);
        let what = format!("process {pid}: it was not started to be attached to");
        assert!(outcome.stderr.contains(&what), "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("rpd idle -- PROGRAM"),
            "{}",
            outcome.stderr
        );
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
    sleeps.kill().expect("it runs");
    sleeps.wait().expect("it ends");
}

#[test]
fn children_of_the_process_are_attached_to() {
    let server = Server::start();
    // The rpd that started the server is not prepared itself.
    let rpd = server.running.child.id().to_string();
    let options = ["--kernel-trace", "-o", "x", "--attach-duration-msec", "300"];
    let by_parent = Rpd::plain(["attach", &rpd, "-d", "out"]).option(options);
    let outcome = by_parent.run().success();
    assert!(database(&outcome).number("SELECT count(*) FROM kernels") > 0);
    let alone = Rpd::plain(["attach", &rpd, "-d", "out", "--attach-children", "off"]);
    let outcome = alone.option(options).run().expect_code(1);
    assert!(
        outcome.stderr.contains("was not started to be attached to"),
        "{}",
        outcome.stderr
    );
    server.finish();
}

/// A program that another launcher prepares with variables of the environment.
#[test]
fn program_is_prepared_by_variables_of_its_environment() {
    let register = install::register();
    let (reader, input) = std::io::pipe().expect("a pipe");
    let rpd = Rpd::plain(["idle", "--help"]);
    let units = rpd.directory().join("units");
    let mut child = std::process::Command::new(workloads::path("server"))
        .arg(&units)
        .arg("2")
        .env("RPD_IDLE", "1")
        .env("LD_PRELOAD", &register)
        .env("ROCPROFILER_REGISTER_LIBRARY", &register)
        .env("LD_LIBRARY_PATH", rpd_tests::run::simulator_path())
        .stdin(fs::File::from(OwnedFd::from(reader)))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("the server works", || {
        fs::read(&units).is_ok_and(|bytes| bytes.iter().any(|byte| *byte != 0))
    });
    let pid = child.id().to_string();
    let attach = Rpd::plain(["attach", &pid, "-d", "out"]).option(ALL);
    let outcome = attach
        .option(["--attach-duration-msec", "300"])
        .run()
        .success();
    assert!(database(&outcome).number("SELECT count(*) FROM kernels") > 0);
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

/// A program that sees other files, as in a container: the directory of the outputs is not where it looks.
#[test]
fn attach_records_a_program_in_another_mount_and_pid_namespace() {
    const CHECK: &str = "attaching across namespaces";
    let Some(unshare) = tool_for(CHECK, "unshare") else {
        return;
    };
    if command(&unshare, ["--mount", "--pid", "--fork", "true"]).code() != 0 {
        return skipped(CHECK, "no right to make namespaces");
    }
    let (reader, input) = std::io::pipe().expect("a pipe");
    let outputs = Rpd::plain(["attach"]);
    let hidden = outputs.directory().to_owned();
    let script = format!(
        "mount -t tmpfs none {} && exec {} idle --backend sim -- {} /dev/shm/rpd-units-$$ 2",
        hidden.display(),
        install::rpd().display(),
        workloads::path("server").display()
    );
    let mut child = std::process::Command::new(&unshare)
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            &script,
        ])
        .stdin(fs::File::from(OwnedFd::from(reader)))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let pid = child.id().to_string();
    let mut last = String::new();
    wait_until("the program can be attached to", || {
        let attach = Rpd::plain(["attach", &pid, "-d"]).option([hidden.join("out")]);
        let outcome = attach
            .option(["--kernel-trace", "-o", "x", "--attach-duration-msec", "300"])
            .run();
        last.clone_from(&outcome.stderr);
        outcome.code() == 0
    });
    let found = Database::open(&hidden.join("out/x_results.db"));
    assert!(found.number("SELECT count(*) FROM kernels") > 0, "{last}");
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn find_lists_programs_that_can_be_attached_to() {
    let server = Server::start();
    let found = command(&install::rpd(), ["attach", "--find", "-f", "csv"]).success();
    let line = found
        .stdout
        .lines()
        .find(|line| line.starts_with(&format!("{},", server.pid())));
    let line = line.expect("the server is listed");
    assert!(
        line.contains("rpd idle") && line.contains("waits"),
        "{line}"
    );
    server.finish();
    let (reader, input) = std::io::pipe().expect("a pipe");
    let bare = Rpd::plain(["idle"]);
    let file = bare.directory().join("units");
    let mut child = std::process::Command::new(workloads::path("server"))
        .arg(&file)
        .arg("1")
        .env("LD_LIBRARY_PATH", rpd_tests::run::simulator_path())
        .stdin(fs::File::from(OwnedFd::from(reader)))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("the server works", || file.exists());
    wait_until("it is listed", || {
        let found = command(&install::rpd(), ["attach", "--find", "-f", "csv"]).success();
        let line = format!("{},", child.id());
        let line = found.stdout.lines().find(|found| found.starts_with(&line));
        line.is_some_and(|line| line.contains("rpd idle -- PROGRAM"))
    });
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn idle_program_has_its_own_status_and_output() {
    for (command, status) in [("exit 3", 3), ("kill -TERM $$", 143)] {
        let outcome = Rpd::plain(["idle", "--backend", "sim", "--", "sh", "-c", command]);
        let outcome = outcome.run().expect_code(status);
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    }
    let outcome = Rpd::plain(["idle", "--backend", "sim", "--", "/nowhere/program"]);
    let _ = outcome.run().expect_code(127);
}
