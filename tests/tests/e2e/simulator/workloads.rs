//! The workloads on the simulator, without `rpd`: they check their own results.

use rpd_tests::run::{self, simulated, skipped, tool};
use rpd_tests::workloads;

/// Runs a workload that is to end with 0, print `stdout`, and give the simulator nothing to complain about.
fn passes(name: &str, arguments: &[&str], stdout: &str) {
    let outcome = simulated(name, arguments).success();
    assert_eq!(outcome.stdout, stdout);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn simulated_sonames_include_all_that_programs_need() {
    let Some(readelf) = tool("readelf") else {
        return skipped("needed libraries", "no readelf");
    };
    let output = std::process::Command::new(readelf)
        .arg("-d")
        .arg(workloads::path("vector-ops"))
        .output()
        .expect("readelf runs");
    let dynamic = String::from_utf8_lossy(&output.stdout);
    assert!(dynamic.contains("[libamdhip64.so.6]"), "{dynamic}");
    assert!(
        dynamic.contains("[librocprofiler-sdk-roctx.so.1]"),
        "{dynamic}"
    );
    assert!(
        !dynamic.contains("RPATH") && !dynamic.contains("RUNPATH"),
        "{dynamic}"
    );
}

#[test]
fn vector_ops_succeeds_on_the_simulator() {
    passes("vector-ops", &["2", "2"], "ok\n");
    let one_after_the_other = [
        ("AMD_SERIALIZE_KERNEL", "3".as_ref()),
        ("AMD_SERIALIZE_COPY", "3".as_ref()),
        ("GPU_MAX_HW_QUEUES", "1".as_ref()),
    ];
    let outcome = run::simulated_with(one_after_the_other, "vector-ops", ["2", "2"]).success();
    assert_eq!(outcome.stdout, "ok\n");
}

/// Programs whose fat binaries have code for it run on the other device, and what is no device is named.
#[test]
fn workloads_succeed_on_a_simulated_gfx942() {
    for (name, arguments, stdout) in [
        ("vector-ops", &["2", "2"][..], "ok\n"),
        ("transpose", &["2"], "ok\n"),
        ("copies", &[], "ok, 160 copies\n"),
    ] {
        let outcome = run::simulated_with([("RPD_SIM_GPU", "gfx942".as_ref())], name, arguments);
        let outcome = outcome.success();
        assert_eq!(
            (outcome.stdout.as_str(), outcome.stderr.as_str()),
            (stdout, ""),
            "{name}"
        );
    }
    let variables = [("RPD_SIM_GPU", "gfx900".as_ref())];
    let outcome = run::simulated_with(variables, "devices", [""; 0]).success();
    assert_eq!(
        outcome.stderr,
        "rpd-sim: RPD_SIM_GPU=gfx900: there is no such device, only gfx90a, gfx942; simulating gfx90a\n"
    );
}

#[test]
fn transpose_succeeds_on_the_simulator() {
    passes("transpose", &["2"], "ok\n");
}

#[test]
fn copies_succeeds_on_the_simulator() {
    passes("copies", &[], "ok, 160 copies\n");
}

#[test]
fn regions_succeeds_on_the_simulator() {
    passes("regions", &[], "ok\n");
}

#[test]
fn devices_sees_the_visible_simulated_gpus() {
    passes("devices", &[], "ok, 1 devices\n");
    let variables = [("RPD_SIM_GPUS", "3".as_ref())];
    let outcome = run::simulated_with(variables, "devices", [""; 0]).success();
    assert_eq!(outcome.stdout, "ok, 3 devices\n");
    for (name, list, expected) in [
        ("HIP_VISIBLE_DEVICES", "2,0", "ok, 2 devices\n"),
        ("ROCR_VISIBLE_DEVICES", "1", "ok, 1 devices\n"),
    ] {
        let variables = [("RPD_SIM_GPUS", "3".as_ref()), (name, list.as_ref())];
        let outcome = run::simulated_with(variables, "devices", [""; 0]).success();
        assert_eq!(outcome.stdout, expected, "{name}={list}");
    }
}

#[test]
fn module_load_succeeds_on_the_simulator() {
    passes("module-load", &[], "ok, 6 modules\n");
}

/// The kernels of `device-calls` print the same in both ways, and `more`.
fn kernels_print_with(way: &str, launches: usize, more: &[&str]) {
    let outcome = simulated("device-calls", [way]).success();
    assert_eq!(outcome.stderr, "");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    // The program's own lines are around those of its kernel.
    assert_eq!((lines[0], lines[lines.len() - 1]), ("before", "after"));
    let values = "values: 100% of -5, 7, 0x10000000000, x, 2.50,   42, [ab    ], 0x10";
    let mut expected = Vec::new();
    for _ in 0..launches {
        expected.push(values.to_owned());
        expected.extend(more.iter().map(|line| (*line).to_owned()));
        for block in 0..8 {
            for lane in [0, 1, 2, 64, 65, 66] {
                expected.push(format!("block {block} lane {lane}"));
            }
        }
    }
    let mut printed = lines[1..lines.len() - 1].to_vec();
    printed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(printed, expected);
}

#[test]
fn kernels_print_to_standard_output() {
    kernels_print_with("print", 1, &[]);
}

#[test]
fn kernels_print_formats_from_a_buffer() {
    kernels_print_with("buffer", 2, &["and 3 with its format"]);
}

#[test]
fn a_failing_kernel_assertion_aborts_the_program() {
    let outcome = simulated("device-calls", ["assert"]).expect_code(134);
    assert_eq!(outcome.stdout, "");
    let message = "hostcall.hip:13: assert_kernel: Device-side assertion `value < limit' failed.\n";
    assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
}

#[test]
fn kernels_allocate_device_memory() {
    passes("device-calls", &["memory"], "ok, 8 blocks had memory\n");
}

#[test]
fn hsa_programs_succeed_on_the_simulator() {
    passes("hsa-direct", &[], "ok\n");
    passes("hsa-images", &[], "ok\n");
}

#[test]
fn many_threads_succeeds_on_the_simulator() {
    passes("many-threads", &["40", "5"], "ok\n");
}

#[test]
fn forked_and_executed_processes_succeed_on_the_simulator() {
    passes("fork-exec", &[], "fork ok\nexec ok\nparent ok\n");
    passes("fork-exec", &["late"], "parent ok\nfork ok\nexec ok\n");
    passes("fork-exec", &["replace"], "first image ok\nexec ok\n");
}

#[test]
fn programs_without_gpu_succeed_on_the_simulator() {
    passes("no-gpu", &[], "ok\n");
    passes("no-gpu-linked", &[], "ok\n");
}

#[test]
fn sudden_ends_have_their_status_on_the_simulator() {
    for (name, code) in [
        ("abort-midway", 134),
        ("segv-midway", 139),
        ("exit-midway", 3),
    ] {
        let outcome = simulated(name, ["3"]).expect_code(code);
        assert_eq!(outcome.stdout, "ending\n", "{name}");
    }
}

#[test]
fn loops_print_the_time_for_each_call() {
    for name in ["api-loop", "launch-loop"] {
        let outcome = simulated(name, ["200"]).success();
        assert!(
            outcome.stdout.ends_with(" ns per call, 200 calls\n"),
            "{name}: {}",
            outcome.stdout
        );
    }
}

#[test]
fn spin_makes_a_thousand_calls_a_second() {
    let spin = run::start_simulated([], "spin", ["progress"]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    spin.signal(libc::SIGKILL);
    let outcome = spin.finish().expect_code(137);
    let progress =
        std::fs::read(outcome.directory.path().join("progress")).expect("the progress file");
    let calls = u64::from_ne_bytes(progress[..8].try_into().expect("eight bytes"));
    assert!(calls > 2000, "{calls} calls in two seconds");
}

#[test]
fn a_python_program_succeeds_on_the_simulator() {
    let Some(python) = tool("python3") else {
        return skipped("HIP from Python", "no python3");
    };
    let output = std::process::Command::new(python)
        .arg(workloads::path("ctypes-hip.py"))
        .env("LD_LIBRARY_PATH", run::simulator_path())
        .output()
        .expect("python starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n");
}
