//! The program under rpd behaves as without: output, input, status, environment, signals.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::time::{Duration, Instant};

use rpd_tests::run::{self, Rpd, Running};
use rpd_tests::workloads;

const CSV: [&str; 3] = ["--sys-trace", "-f", "csv"];

#[test]
fn recording_keeps_output_and_status_of_the_program() {
    for (name, arguments) in [
        ("vector-ops", vec!["1", "1"]),
        ("fork-exec", vec!["tree"]),
        ("fork-exec", vec!["wrong"]),
        ("exit-midway", vec!["2"]),
        ("abort-midway", vec!["2"]),
        ("no-gpu", vec![]),
    ] {
        let bare = run::simulated(name, &arguments);
        let traced = Rpd::new(CSV).workload(name, &arguments);
        assert_eq!(traced.code(), bare.code(), "{name} {arguments:?}");
        assert_eq!(traced.stdout, bare.stdout, "{name} {arguments:?}");
        let own: String = traced
            .stderr
            .lines()
            .filter(|line| !line.starts_with("rpd: "))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(own, bare.stderr, "{name} {arguments:?}");
    }
    let outcome = Rpd::new(CSV)
        .target(["/bin/sh", "-c", "exit 42"])
        .expect_code(42);
    assert_eq!(outcome.stdout, "");
    let _ = Rpd::new(CSV)
        .target(["/bin/sh", "-c", "kill -USR1 $$"])
        .expect_code(128 + libc::SIGUSR1);
}

#[test]
fn recording_passes_standard_input_through() {
    let rpd = Rpd::new(CSV);
    let path = rpd.directory().join("input");
    let text = "some\nlines\0and bytes\n".repeat(5000);
    fs::write(&path, &text).expect("a file");
    let outcome = rpd
        .input(File::open(&path).expect("the file"))
        .workload("odd", ["stdin"])
        .success();
    assert_eq!(outcome.stdout, text);
    assert!(
        outcome.stderr.contains("end of input\n"),
        "{}",
        outcome.stderr
    );
}

fn environment(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .collect()
}

#[test]
fn recording_adds_few_variables_to_the_environment() {
    let script = "/usr/bin/env";
    let bare = run::command(script.as_ref(), [""; 0]).success();
    let traced = Rpd::new(CSV).target([script]).success();
    let (bare, traced) = (environment(&bare.stdout), environment(&traced.stdout));
    let changed: Vec<&str> = traced
        .iter()
        .filter(|(name, value)| bare.get(*name) != Some(value) && **name != "PWD")
        .map(|(name, _)| *name)
        .collect();
    for name in &changed {
        let known = name.starts_with("RPD_")
            || name.starts_with("ROCP")
            || ["LD_PRELOAD", "LD_LIBRARY_PATH", "ASAN_OPTIONS"].contains(name)
            // CUDA and NVTX open the collector by these.
            || ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"].contains(name)
            || name.starts_with("HSA_");
        assert!(known, "{name} = {}", traced[name]);
    }
    for name in bare.keys().filter(|name| **name != "PWD") {
        assert!(traced.contains_key(name), "{name} is gone");
    }
}

#[test]
fn an_inherited_preload_stays_first() {
    let other = workloads::path("empty-tool.so");
    let other = other.to_str().expect("text");
    let outcome = Rpd::new(CSV)
        .env("LD_PRELOAD", other)
        .target(["/usr/bin/env"])
        .success();
    let preload = environment(&outcome.stdout)["LD_PRELOAD"];
    let parts: Vec<&str> = preload.split(':').collect();
    assert_eq!(parts[0], other, "{preload}");
    assert!(
        parts[1..]
            .iter()
            .any(|part| part.ends_with("librpd_register.so")),
        "{preload}"
    );
}

/// The process id of the target of `running`, once it has printed that it is ready.
fn target_of(running: &Running) -> i32 {
    let pid = running.child.id();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
            let mask = |label: &str| -> u64 {
                status
                    .lines()
                    .find_map(|line| line.strip_prefix(label))
                    .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
                    .unwrap_or(0)
            };
            let own = status.contains("\todd\n") || status.contains("\tspin\n");
            // Handlers of, or indifference to, SIGTERM are set up last.
            let term = 1 << (libc::SIGTERM - 1);
            let usr1 = 1 << (libc::SIGUSR1 - 1);
            let ready = mask("SigIgn:") & term != 0 && mask("SigCgt:") & usr1 != 0
                || mask("SigCgt:") & term != 0;
            if own && ready {
                // Its handlers may still be rpd's: `odd` then prints so after this.
                std::thread::sleep(Duration::from_millis(300));
                return child.parse().expect("a process id");
            }
        }
        assert!(Instant::now() < deadline, "the target does not start");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn signal_handlers_of_the_program_keep_working() {
    for (signal, group) in [
        (libc::SIGINT, true),
        (libc::SIGINT, false),
        (libc::SIGTERM, false),
        (libc::SIGTERM, true),
    ] {
        let running = Rpd::new(CSV).start_workload("odd", ["catch"]);
        target_of(&running);
        if group {
            running.signal_group(signal);
        } else {
            running.signal(signal);
        }
        let outcome = running.finish().expect_code(5);
        assert_eq!(outcome.stdout, format!("ready\nok\ncaught {signal}\n"));
        assert_eq!(
            outcome.csv("kernel_trace").rows.len(),
            5,
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn signals_ignored_by_the_program_stay_ignored() {
    let running = Rpd::new(CSV).start_workload("odd", ["ignore"]);
    let pid = target_of(&running);
    running.signal_group(libc::SIGINT);
    running.signal(libc::SIGTERM);
    std::thread::sleep(Duration::from_millis(200));
    // SAFETY: takes no pointers; the process is the target of a test that still runs.
    unsafe { libc::kill(pid, libc::SIGUSR1) };
    let outcome = running.finish().success();
    assert_eq!(
        outcome.csv("kernel_trace").rows.len(),
        5,
        "{}",
        outcome.stderr
    );
}
