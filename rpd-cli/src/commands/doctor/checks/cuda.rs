//! NVIDIA's driver, and what recording CUDA programs needs.

use std::path::PathBuf;

use crate::commands::doctor::check::{Check, Finding, Severity};
use crate::commands::doctor::machine::Machine;

const DRIVER: &[&str] = &["cuda.driver"];

pub(super) const CHECKS: &[Check] = &[
    Check::new("cuda.driver", "NVIDIA's driver", Severity::Info, driver),
    Check::new(
        "cuda.devices",
        "NVIDIA's device files",
        Severity::Error,
        devices,
    )
    .after(DRIVER),
    Check::new("cuda.cupti-library", "CUPTI", Severity::Warning, cupti).after(DRIVER),
    Check::new(
        "cuda.counter-rights",
        "counters and samples for every user",
        Severity::Warning,
        counter_rights,
    )
    .after(DRIVER),
    Check::new(
        "cuda.injection",
        "variables of other tools",
        Severity::Warning,
        injection,
    ),
];

fn driver(machine: &Machine) -> Finding {
    if !machine.has_nvidia() {
        return Finding::skip("no NVIDIA GPU here");
    }
    let version = machine.text("/proc/driver/nvidia/version");
    let line = version.as_deref().and_then(|text| text.lines().next());
    Finding::pass(line.unwrap_or("there").trim())
}

fn devices(machine: &Machine) -> Finding {
    let is_gpu = |name: &String| {
        let number = name.strip_prefix("nvidia").unwrap_or_default();
        number.parse::<u32>().is_ok()
    };
    let gpus: Vec<String> = machine
        .names("/dev", "nvidia")
        .into_iter()
        .filter(is_gpu)
        .collect();
    if gpus.is_empty() {
        return Finding::fail(
            "no /dev/nvidia0",
            "pass the GPUs into the container (--gpus all)",
        );
    }
    let usable = |name: &&String| (machine.probes.can_use)(&machine.path(&format!("/dev/{name}")));
    match gpus.iter().find(|name| !usable(name)) {
        None => Finding::pass(gpus.join(", ")),
        Some(name) => Finding::fail(
            format!("this user may not open /dev/{name}"),
            "ask the administrator for rights on it",
        ),
    }
}

/// Names that CUPTI has had.
const CUPTI: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"];
/// Directories of an installation of CUDA.
const DIRECTORIES: [&str; 3] = ["lib64", "extras/CUPTI/lib64", "targets/x86_64-linux/lib"];

fn cupti(machine: &Machine) -> Finding {
    let roots = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(|name| machine.variable(name).map(PathBuf::from))
        .chain([PathBuf::from("/usr/local/cuda")]);
    let in_installation = roots
        .flat_map(|root| DIRECTORIES.map(|directory| root.join(directory)))
        .flat_map(|directory| CUPTI.map(|name| directory.join(name)))
        .find(|path| machine.below(path).exists());
    let cached = || {
        CUPTI
            .iter()
            .find_map(|name| (machine.probes.in_loader_cache)(name))
    };
    match in_installation.or_else(cached) {
        Some(path) => Finding::pass(path.display().to_string()),
        None => Finding::warn(
            "neither in the loader's cache nor in /usr/local/cuda",
            "install CUDA's package cuda-cupti; programs with PyTorch bring one of their own",
        ),
    }
}

fn counter_rights(machine: &Machine) -> Finding {
    let parameters = machine
        .text("/proc/driver/nvidia/params")
        .unwrap_or_default();
    let restricted = parameters
        .lines()
        .any(|line| line.trim() == "RmProfilingAdminOnly: 1");
    if !restricted || machine.user.id == 0 {
        return Finding::pass("allowed");
    }
    Finding::warn(
        "for the administrator only; calls, kernels and copies are recorded all the same",
        "run as root, give the program CAP_SYS_ADMIN, or set the module's option NVreg_RestrictProfilingToAdminUsers=0",
    )
}

fn injection(machine: &Machine) -> Finding {
    for name in ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"] {
        if let Some(value) = machine.variable(name) {
            return Finding::warn(
                format!("{name} is {}", value.to_string_lossy()),
                format!("unset {name}: CUDA takes one tool at a time"),
            );
        }
    }
    Finding::pass("none")
}
