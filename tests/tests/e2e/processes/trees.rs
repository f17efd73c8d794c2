//! Processes that are hard to follow: of many rpd at once, in other PID namespaces, of other users, and with environments of
//! their own.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::time::{Duration, Instant};

use rpd_tests::outputs::Table;
use rpd_tests::run::{self, Outcome, Rpd, Running, skipped};
use rpd_tests::{install, workloads};

const CSV: [&str; 3] = ["--kernel-trace", "-f", "csv"];
/// A user that is not this one.
const NOBODY: &str = "65534";
/// Status of `starts namespace` where the system refuses one.
const REFUSED: i32 = 77;

/// The numbers of dispatches in the files of the run, ascending.
fn dispatches(outcome: &Outcome) -> Vec<usize> {
    let mut counts: Vec<usize> = outcome
        .files_ending("kernel_trace.csv")
        .iter()
        .map(|file| Table::read(file).rows.len())
        .collect();
    counts.sort_unstable();
    counts
}

fn starts(arguments: &[&OsStr]) -> Outcome {
    Rpd::new(CSV).workload("starts", arguments)
}

fn is_root(test: &str) -> bool {
    // SAFETY: takes nothing, cannot fail.
    let is_root = unsafe { libc::geteuid() == 0 };
    if !is_root {
        skipped(test, "only root can become another user");
    }
    is_root
}

#[test]
fn many_rpd_processes_share_an_output_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = workloads::path("no-gpu");
    for round in 0..5 {
        let out = directory.path().join(format!("{round}/out"));
        let start = |_| {
            Rpd::plain(["--backend", "sim", "-f", "csv", "-d"])
                .option([out.as_os_str()])
                .option(["--pmc", "SQ_WAVES", "--pmc", "GRBM_COUNT", "--"])
                .option([program.as_os_str()])
                .start()
        };
        let started: Vec<Running> = (0..8).map(start).collect();
        for running in started {
            let outcome = running.finish().success();
            assert_eq!(outcome.stdout, "ok\nok\n");
        }
    }
}

#[test]
fn programs_with_a_cleared_environment_are_recorded() {
    let program = workloads::path("vector-ops");
    for function in [
        "execve",
        "execv",
        "execvp",
        "execvpe",
        "execl",
        "execle",
        "execlp",
        "fexecve",
        "execveat",
        "posix_spawn",
        "posix_spawnp",
        "vfork",
        "system",
        "popen",
    ] {
        let arguments = ["cleared", function].map(OsStr::new);
        let program = [program.as_os_str(), "1".as_ref(), "1".as_ref()];
        let outcome = starts(&[&arguments[..], &program].concat()).success();
        assert_eq!(outcome.stdout, "ok\n", "{function}");
        assert_eq!(dispatches(&outcome), [4], "{function}: {}", outcome.stderr);
    }
}

#[test]
fn programs_without_ld_preload_are_recorded() {
    let program = workloads::path("vector-ops");
    let arguments = ["unset", "LD_PRELOAD"].map(OsStr::new);
    let program = [program.as_os_str(), "1".as_ref(), "1".as_ref()];
    let outcome = starts(&[&arguments[..], &program].concat()).success();
    assert_eq!(outcome.stdout, "ok\n");
    assert_eq!(dispatches(&outcome), [4], "{}", outcome.stderr);
}

#[test]
fn programs_of_another_user_are_reported_as_not_recorded() {
    if !is_root("programs_of_another_user_are_reported_as_not_recorded") {
        return;
    }
    for (mode, line) in [
        ("user", "note: a process that it started ran"),
        ("become", "note: from then on this process ran"),
    ] {
        let outcome = starts(&[mode, NOBODY, "/bin/sh", "-c", "exit 3"].map(OsStr::new));
        let outcome = outcome.expect_code(3);
        let expected = format!(
            "]: {line} /bin/sh without rpd: its user may not write in the directory of this run\n"
        );
        assert!(outcome.stderr.contains(&expected), "{}", outcome.stderr);
    }
}

#[test]
fn programs_with_rights_of_others_are_reported_as_not_recorded() {
    if !is_root("programs_with_rights_of_others_are_reported_as_not_recorded") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("program");
    fs::copy(workloads::path("no-gpu"), &program).expect("copied");
    chown(&program, Some(54_321), None).expect("root may");
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("changed");
    let program = program.as_os_str();
    let outcome = starts(&["unset".as_ref(), "NONE".as_ref(), program]).success();
    let expected = format!(
        "]: note: from then on this process ran {} without rpd: it is a set-user-id program\n",
        program.display()
    );
    assert!(outcome.stderr.contains(&expected), "{}", outcome.stderr);
}

/// A 64-bit ELF program that needs no loader and exits with 3.
fn static_program() -> Vec<u8> {
    let mut bytes = vec![0; 120];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, b"\x7fELF\x02\x01\x01");
    // An executable file for x86-64, which begins behind its headers.
    put(16, &[2, 0, 62, 0, 1]);
    put(24, &0x40_0078_u64.to_le_bytes());
    put(32, &64_u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, 1]);
    // One segment: the file, to be read and executed.
    put(64, &[1, 0, 0, 0, 5]);
    put(80, &0x40_0000_u64.to_le_bytes());
    put(88, &0x40_0000_u64.to_le_bytes());
    put(96, &132_u64.to_le_bytes());
    put(104, &132_u64.to_le_bytes());
    put(112, &0x1000_u64.to_le_bytes());
    // mov edi, 3; mov eax, SYS_exit; syscall
    bytes.extend_from_slice(&[0xbf, 3, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]);
    bytes
}

#[test]
fn programs_without_a_loader_are_reported_as_not_recorded() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("program");
    fs::write(&program, static_program()).expect("written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("changed");
    let program = program.as_os_str();
    let outcome = starts(&["unset".as_ref(), "NONE".as_ref(), program]).expect_code(3);
    let expected = format!(
        "]: note: from then on this process ran {} without rpd: it is statically linked\n",
        program.display()
    );
    assert!(outcome.stderr.contains(&expected), "{}", outcome.stderr);
    // The loader is no such program: it loads what it is given.
    let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
    if loader.exists() {
        let loaded = workloads::path("vector-ops");
        let ran = [
            "unset".as_ref(),
            "NONE".as_ref(),
            loader.as_os_str(),
            loaded.as_os_str(),
            "1".as_ref(),
            "1".as_ref(),
        ];
        let outcome = starts(&ran).success();
        assert_eq!(dispatches(&outcome), [4], "{}", outcome.stderr);
        assert!(
            !outcome.stderr.contains("without rpd"),
            "{}",
            outcome.stderr
        );
    }
}

/// Waits until `spin` works, which counts in this file; false when the system refuses a namespace.
fn spins(running: &mut Running, counts: &Path) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while !fs::metadata(counts).is_ok_and(|file| file.len() > 0) {
        if let Some(status) = running.child.try_wait().expect("a child") {
            assert_eq!(status.code(), Some(REFUSED), "{status}");
            skipped("PID namespaces", "the system refuses them");
            return false;
        }
        assert!(Instant::now() < end, "spin does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn recover(options: &[&str], directory: &Path) -> Outcome {
    Rpd::plain(["recover"])
        .option(options)
        .option([directory])
        .run()
}

/// `rpd -- starts namespace - spin`, whose rpd is killed when spin works. None where the system refuses a namespace.
fn killed_around_a_namespace() -> Option<Running> {
    let rpd = Rpd::new(CSV);
    let counts = rpd.directory().join("counts");
    let spin = workloads::path("spin");
    let mut running = rpd.start_workload(
        "starts",
        [
            "namespace".as_ref(),
            "-".as_ref(),
            spin.as_os_str(),
            counts.as_os_str(),
        ],
    );
    spins(&mut running, &counts).then(|| {
        running.signal(libc::SIGKILL);
        running
    })
}

#[test]
fn a_process_of_a_pid_namespace_is_recovered_once_it_has_ended() {
    let Some(running) = killed_around_a_namespace() else {
        return;
    };
    let out = running.directory().join("out");
    // The kill takes its time.
    let end = Instant::now() + Duration::from_secs(30);
    let early = loop {
        let early = recover(&[], &out).success();
        if !early.stderr.contains("its rpd (process") || Instant::now() > end {
            break early;
        }
    };
    assert!(
        early.stderr.contains("spin[1] (process "),
        "{}",
        early.stderr
    );
    assert!(
        early.stderr.contains(" here) still runs"),
        "{}",
        early.stderr
    );
    running.signal_group(libc::SIGKILL);
    let outcome = running.finish().expect_code(137);
    let recovered = recover(&[], &out).success();
    assert!(
        recovered.stderr.contains("spin[1]: "),
        "{}",
        recovered.stderr
    );
    assert_eq!(dispatches(&outcome).len(), 1, "{}", recovered.stderr);
    assert!(!out.join(".rpd").exists(), "{}", recovered.stderr);
}

#[test]
fn recover_force_treats_a_running_process_as_ended() {
    let Some(running) = killed_around_a_namespace() else {
        return;
    };
    let out = running.directory().join("out");
    let recovered = recover(&["--force"], &out).success();
    assert!(
        recovered.stderr.contains("spin[1]: "),
        "{}",
        recovered.stderr
    );
    running.signal_group(libc::SIGKILL);
    let outcome = running.finish().expect_code(137);
    assert_eq!(dispatches(&outcome).len(), 1, "{}", recovered.stderr);
    assert!(!out.join(".rpd").exists(), "{}", recovered.stderr);
}

#[test]
fn a_run_inside_a_pid_namespace_is_recovered_from_outside() {
    let directory = tempfile::tempdir().expect("a directory");
    let (out, counts) = (
        directory.path().join("out"),
        directory.path().join("counts"),
    );
    let (rpd, spin) = (install::rpd(), workloads::path("spin"));
    let mut arguments = vec!["namespace".as_ref(), "-".as_ref(), rpd.as_os_str()];
    arguments.extend(["--backend", "sim"].map(OsStr::new));
    arguments.extend(CSV.map(OsStr::new));
    arguments.extend(["-d".as_ref(), out.as_os_str(), "--".as_ref()]);
    arguments.extend([spin.as_os_str(), counts.as_os_str()]);
    let mut running = run::start_simulated([], "starts", arguments);
    if !spins(&mut running, &counts) {
        return;
    }
    let early = recover(&[], &out).success();
    assert!(
        early.stderr.contains("another rpd still runs"),
        "{}",
        early.stderr
    );
    running.signal_group(libc::SIGKILL);
    let _ = running.finish().expect_code(137);
    // The namespace's processes end with its first one, soon.
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let recovered = recover(&[], &out).success();
        if !out.join(".rpd").exists() {
            assert!(recovered.stderr.contains("spin["), "{}", recovered.stderr);
            break;
        }
        assert!(Instant::now() < end, "{}", recovered.stderr);
    }
}

/// Runs `vector-ops` without rpd, with the collector preloaded and a variable that names the output `x`.
fn preloaded(variable: &str) -> Outcome {
    let collector = install::collector();
    let variables = [
        ("LD_PRELOAD", collector.as_os_str()),
        (variable, OsStr::new("x")),
    ];
    run::simulated_with(variables, "vector-ops", ["1", "1"])
}

#[test]
fn variables_of_hiptracer_start_a_capture() {
    let outcome = preloaded("HIPTRACER_EVENTDB").success();
    assert_eq!(outcome.stdout, "ok\n");
    let directory = outcome.directory.path();
    assert!(directory.join("x").exists(), "{}", outcome.stderr);
    let capture = directory.join("x.capture");
    let shown = Rpd::plain(["capture", "info"]).option([&capture]).run();
    assert!(shown.success().stdout.contains("vector-ops"));
}

#[test]
fn variables_of_rpd_start_a_recording_into_its_file() {
    let outcome = preloaded("RPDT_FILENAME").success();
    assert_eq!(outcome.stdout, "ok\n");
    let directory = outcome.directory.path();
    let file = directory.join("x");
    assert!(file.is_file(), "{}", outcome.stderr);
    assert!(
        !directory.join("x.recording").exists(),
        "{}",
        outcome.stderr
    );
    let connection = rusqlite::Connection::open(file).expect("a database");
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        connection
            .query_row(&sql, [], |row| row.get(0))
            .expect("the table")
    };
    assert_eq!(count("rocpd_kernelapi"), 4);
    assert!(count("rocpd_api") > 4);
    // Other programs with the library preloaded run as they are.
    let collector = install::collector();
    let plain = [("LD_PRELOAD", collector.as_os_str())];
    let outcome = run::simulated_with(plain, "vector-ops", ["1", "1"]).success();
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("ok\n", "")
    );
}

#[test]
fn a_too_low_limit_on_open_files_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = "ulimit -n 5; exec \"$0\" -d \"$1\" --backend sim -s -- \"$2\"";
    let (rpd, out) = (install::rpd(), directory.path().join("out"));
    let program = workloads::path("no-gpu");
    let arguments = [
        "-c".as_ref(),
        script.as_ref(),
        rpd.as_os_str(),
        out.as_os_str(),
        program.as_os_str(),
    ];
    let outcome = run::command(Path::new("/bin/sh"), arguments).expect_code(1);
    assert_eq!(
        outcome.stderr,
        "rpd: the limit on open files is too low for rpd, which needs 48 (ulimit -n shows and raises it)\n"
    );
    assert_eq!(outcome.stdout, "");
    assert!(!out.exists());
}

#[test]
fn a_program_with_a_memory_limit_ends_as_without_rpd() {
    for kibibytes in ["200000", "100000", "60000"] {
        let script = "ulimit -v \"$1\"; exec \"$0\"";
        let program = workloads::path("no-gpu");
        let words = [
            "-c".as_ref(),
            script.as_ref(),
            program.as_os_str(),
            kibibytes.as_ref(),
        ];
        let alone = run::command(Path::new("/bin/sh"), words);
        let target = ["/bin/sh".as_ref()].into_iter().chain(words);
        let outcome = Rpd::new(CSV).target(target).expect_code(alone.code());
        assert_eq!(
            outcome.stdout, alone.stdout,
            "{kibibytes}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn the_direct_provider_needs_no_sdk() {
    let root = tempfile::tempdir().expect("a directory");
    let lib = root.path().join("lib");
    fs::create_dir(&lib).expect("made");
    // The simulator under the names of the runtimes is an installation without an SDK.
    let runtime = lib.join("runtimes.so");
    fs::copy(install::bin_dir().join("librpd_sim.so"), &runtime).expect("copied");
    for name in install::sonames().expect("a list") {
        if !name.starts_with("librocprofiler-sdk.so") {
            std::os::unix::fs::symlink(&runtime, lib.join(name)).expect("a link");
        }
    }
    let with = |provider: &str| {
        Rpd::plain([
            "--backend",
            "rocm",
            "-d",
            "out",
            "-f",
            "csv",
            "--kernel-trace",
        ])
        .option(["--provider", provider, "--rocm-root"])
        .option([root.path()])
        .env("LD_LIBRARY_PATH", &lib)
        .workload("vector-ops", ["1", "1"])
    };
    let outcome = with("direct").success();
    assert_eq!(dispatches(&outcome), [4], "{}", outcome.stderr);
    let refused = with("sdk").expect_code(1);
    assert!(
        refused.stderr.contains("no librocprofiler-sdk.so"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_missing_rocm_root_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let none = directory.path().join("none");
    let outcome = Rpd::plain(["-d", "out", "-s", "--rocm-root"])
        .option([&none])
        .workload("no-gpu", [""; 0])
        .expect_code(1);
    let expected = format!("rpd: --rocm-root: {} is no directory", none.display());
    assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
}

#[test]
fn a_fault_in_a_thread_loses_no_record_of_the_direct_provider() {
    // In the thread that launches, and in another one.
    for program in ["segv-midway", "segv-thread"] {
        for _ in 0..10 {
            let outcome = Rpd::new(CSV)
                .option(["--provider", "direct"])
                .workload(program, ["40"])
                .expect_code(128 + libc::SIGSEGV);
            assert_eq!(dispatches(&outcome), [40], "{program}: {}", outcome.stderr);
        }
    }
}
