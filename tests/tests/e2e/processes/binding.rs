//! Loading of the collector into the SDK of the target, beside tools of the user.

use std::fs;

use rpd_tests::run::{self, Rpd};
use rpd_tests::workloads;

/// Lines of the HIP trace, its head left out.
fn calls(outcome: &run::Outcome) -> usize {
    let trace = fs::read_to_string(outcome.file("_hip_api_trace.csv")).expect("the HIP trace");
    trace.lines().skip(1).count()
}

const HIP: [&str; 3] = ["--hip-trace", "-f", "csv"];

#[test]
fn recording_exports_no_tool_symbols_into_the_target() {
    if run::tool("python3").is_none() {
        return;
    }
    let script = "import ctypes, os\n\
        hip = ctypes.CDLL('libamdhip64.so.6', mode=ctypes.RTLD_GLOBAL)\n\
        count = ctypes.c_int()\n\
        assert hip.hipGetDeviceCount(ctypes.byref(count)) == 0\n\
        print(hasattr(ctypes.CDLL(None), 'rocprofiler_configure'), os.environ.get('ROCP_TOOL_LIBRARIES'))";
    let outcome = Rpd::new(HIP).target(["python3", "-c", script]).success();
    assert_eq!(outcome.stdout, "False None\n", "{}", outcome.stderr);
    assert!(calls(&outcome) >= 1, "and yet it is recorded");
}

#[test]
fn user_tools_receive_events_beside_the_recording() {
    let alone = Rpd::new(HIP).workload("vector-ops", ["1", "1"]).success();
    let tool = workloads::path("event-log.so");
    let both = Rpd::new(HIP)
        .env("ROCP_TOOL_LIBRARIES", &tool)
        .env("RPD_EVENT_LOG", "events")
        .workload("vector-ops", ["1", "1"])
        .success();
    assert_eq!(calls(&both), calls(&alone));
    let events = fs::read_to_string(both.directory.path().join("events")).expect("the tool's log");
    assert!(events.contains("hipLaunchKernel"), "{events}");
}

#[test]
fn an_sdk_set_to_start_early_waits_for_the_collector() {
    let outcome = Rpd::new(HIP)
        .env("ROCPROFILER_LIBRARY_CTOR", "1")
        .workload("vector-ops", ["1", "1"])
        .success();
    assert!(calls(&outcome) > 10);
    // A target that sets the variable by itself gets a message about the missing recording.
    let program = workloads::path("vector-ops");
    let script = format!(
        "ROCPROFILER_LIBRARY_CTOR=1 exec '{}' 1 1",
        program.display()
    );
    let outcome = Rpd::new(HIP).target(["/bin/sh", "-c", &script]);
    let note = "nothing is recorded: another tool had initialised the SDK before the first runtime came up";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
}
