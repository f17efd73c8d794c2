//! Cooperative launches on the simulator, on one device and over several. The workload checks every sum.

use std::ffi::OsStr;

use rpd_tests::run::{Outcome, Rpd, simulated_with};

fn simulated(gpu: &str, mode: &str) -> Outcome {
    let variables = [("RPD_SIM_GPU", gpu), ("RPD_SIM_GPUS", "3")];
    let variables = variables.map(|(name, value)| (name, OsStr::new(value)));
    let outcome = simulated_with(variables, "grids", [mode, "3"]).success();
    assert_eq!(outcome.stderr, "", "{gpu} {mode}");
    outcome
}

/// The workgroups of a gfx90a synchronise through global wave sync, those of a gfx942 through counters in memory.
#[test]
fn grid_barriers_synchronise_within_and_between_devices() {
    for gpu in ["gfx90a", "gfx942"] {
        for mode in ["one", "devices", "module"] {
            let said = simulated(gpu, mode).stdout;
            assert_eq!(said, "ok, 3 devices, 12 workgroups\n", "{gpu} {mode}");
        }
    }
}

#[test]
fn cooperative_launches_report_misuse_by_status() {
    let said = simulated("gfx90a", "errors").stdout;
    let expected = "no list: hipErrorInvalidValue\n\
                    no launches: hipErrorInvalidValue\n\
                    unknown flag: hipErrorInvalidValue\n\
                    more launches than devices: hipErrorInvalidValue\n\
                    a device twice: hipErrorInvalidDevice\n\
                    the null stream: hipErrorInvalidHandle\n\
                    too large: hipErrorCooperativeLaunchTooLarge\n";
    assert_eq!(said, expected);
}

/// One call of the program makes a dispatch on each device.
#[test]
fn a_multi_device_launch_is_traced_on_each_device() {
    let outcome = Rpd::new(["--hip-runtime-trace", "--kernel-trace", "-f", "csv"])
        .env("RPD_SIM_GPUS", "3")
        .workload("grids", ["devices", "3"])
        .success();
    let calls = outcome.csv("hip_api_trace");
    let launches = calls.count("Function", "hipLaunchCooperativeKernelMultiDevice");
    assert_eq!(launches, 2);
    let dispatches = outcome.csv("kernel_trace");
    assert_eq!(dispatches.count("Kernel_Name", "sum_over_grids"), 6);
    let agents = dispatches.column("Agent_Id");
    let names = dispatches.column("Kernel_Name");
    let mut used: Vec<&str> = agents
        .into_iter()
        .zip(names)
        .filter_map(|(agent, name)| (name == "sum_over_grids").then_some(agent))
        .collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), 3);
}
