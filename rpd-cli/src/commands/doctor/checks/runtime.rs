//! Whether the libraries of the installation can be opened, and what can be counted.

use crate::commands::doctor::check::{Check, Finding, Severity};
use crate::commands::doctor::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "runtime.libraries-load",
        "libraries of ROCm can be opened",
        Severity::Error,
        libraries,
    )
    .after(&[
        "install.rocm-root",
        "install.sdk-library",
        "install.hip-runtime",
    ]),
    Check::new(
        "counters.cap-perfmon",
        "capabilities",
        Severity::Info,
        capabilities,
    )
    .after(&["driver.kfd-readable"]),
    Check::new(
        "counters.no-profiler-lock",
        "other profilers that run",
        Severity::Warning,
        other_profilers,
    )
    .after(&["driver.kfd-readable"]),
    Check::new(
        "smoke.recording",
        "a recording on the GPU",
        Severity::Error,
        recording,
    )
    .after(&["driver.kfd-readable", "runtime.libraries-load"])
    .slow(),
    Check::new(
        "smoke.counters",
        "counters of a small kernel are not all zero",
        Severity::Warning,
        counters,
    )
    .after(&["driver.kfd-readable", "runtime.libraries-load"])
    .slow(),
];

/// Libraries that a profiled program opens.
const OPENED: [&str; 4] = [
    "libhsa-runtime64.so.1",
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "librocprofiler-sdk.so.1",
];

fn libraries(machine: &Machine) -> Finding {
    let Some(root) = &machine.rocm.root else {
        return Finding::skip("no installation");
    };
    let mut opened = Vec::new();
    for directory in ["lib", "lib64"] {
        let directory = machine.below(&root.join(directory));
        for name in OPENED {
            let path = directory.join(name);
            if !path.exists() {
                continue;
            }
            if let Err(reason) = (machine.probes.loads)(&path, &directory) {
                return Finding::fail(
                    reason,
                    "install the package that has the missing library, or the same version of all packages of ROCm",
                );
            }
            opened.push(name);
        }
    }
    Finding::pass(opened.join(", "))
}

fn capabilities(machine: &Machine) -> Finding {
    const SYS_ADMIN: u32 = 21;
    const PERFMON: u32 = 38;
    let status = machine.text("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let has = |bit: u32| mask & (1 << bit) != 0;
    Finding::pass(if has(PERFMON) {
        "CAP_PERFMON"
    } else if has(SYS_ADMIN) {
        "CAP_SYS_ADMIN"
    } else {
        "neither CAP_PERFMON nor CAP_SYS_ADMIN; some drivers count device-wide for these only"
    })
}

const PROFILERS: [&str; 6] = [
    "rocprof",
    "rocprofv2",
    "rocprofv3",
    "roctracer",
    "rocprofiler",
    "omniperf",
];

fn other_profilers(machine: &Machine) -> Finding {
    for process in machine.names("/proc", "") {
        if process.parse::<u32>().is_err() {
            continue;
        }
        let Some(line) = machine.text(&format!("/proc/{process}/cmdline")) else {
            continue;
        };
        let mut words = line.split('\0');
        let is_profiler = |word: &str| {
            let name = word.rsplit('/').next().unwrap_or(word);
            PROFILERS
                .iter()
                .any(|profiler| name == *profiler || name == format!("{profiler}.py"))
        };
        // The first words: the interpreter, the program.
        if words.clone().any(|word| word == "--doctor") {
            continue;
        }
        if let Some(word) = words.find(|word| is_profiler(word)) {
            return Finding::warn(
                format!("process {process} is {word}"),
                "wait for it or end it: counters of a GPU have one user at a time",
            );
        }
    }
    Finding::pass("none")
}

fn recording(machine: &Machine) -> Finding {
    match (machine.probes.self_test)(&["--backend", "rocm", "--hip-trace"]) {
        Ok(recorded) if recorded.calls > 0 => Finding::pass(format!(
            "{} calls of a small program were recorded",
            recorded.calls
        )),
        Ok(_) => Finding::fail(
            "the program ran, and none of its calls was recorded",
            "look at the checks of group install: the HIP runtime has to find the registration library",
        ),
        Err(reason) => Finding::fail(
            reason,
            "run `rpd --backend rocm --hip-trace -- PROGRAM` to see all messages",
        ),
    }
}

fn counters(machine: &Machine) -> Finding {
    match (machine.probes.self_test)(&["--backend", "rocm", "--pmc", "SQ_WAVES", "GRBM_GUI_ACTIVE"])
    {
        Ok(recorded) => match recorded.counters {
            (0, _) => Finding::warn(
                "no dispatch of the program was counted",
                "the fill of memory may not be a kernel in this runtime: try `rpd --pmc SQ_WAVES -- PROGRAM`",
            ),
            (rows, 0) => Finding::warn(
                format!("all {rows} values are zero"),
                "wake the GPU (driver.power-state), end other profilers, and in a container of a virtual GPU count on the host",
            ),
            (rows, nonzero) => Finding::pass(format!("{nonzero} of {rows} values are not zero")),
        },
        Err(reason) => Finding::warn(
            reason,
            "run `rpd --pmc SQ_WAVES -- PROGRAM` to see all messages",
        ),
    }
}
