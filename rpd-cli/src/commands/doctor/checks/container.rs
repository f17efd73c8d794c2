//! Containers and their limits.

use crate::commands::doctor::check::{Check, Finding, Severity};
use crate::commands::doctor::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    Check::new("container.detected", "container", Severity::Info, detected),
    Check::new(
        "container.device-passthrough",
        "GPUs inside the container",
        Severity::Warning,
        devices,
    ),
    Check::new(
        "container.limits",
        "limits of the control group",
        Severity::Warning,
        limits,
    ),
];

/// What kind of container this is.
fn kind(machine: &Machine) -> Option<&'static str> {
    if machine.exists("/run/.containerenv") {
        return Some("Podman");
    }
    if machine.exists("/.dockerenv") {
        return Some("Docker");
    }
    if machine.variable("KUBERNETES_SERVICE_HOST").is_some() {
        return Some("Kubernetes");
    }
    let apptainer = ["APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"];
    apptainer
        .iter()
        .any(|name| machine.variable(name).is_some())
        .then_some("Apptainer")
}

fn detected(machine: &Machine) -> Finding {
    Finding::pass(kind(machine).unwrap_or("none"))
}

fn devices(machine: &Machine) -> Finding {
    match kind(machine) {
        None => Finding::pass("not in a container"),
        Some(_) if machine.has_kfd() || machine.has_nvidia() => Finding::pass("there"),
        Some(kind) => Finding::warn(
            format!("this {kind} container has no GPU"),
            "start it with --device /dev/kfd --device /dev/dri (AMD) or --gpus all (NVIDIA)",
        ),
    }
}

/// Memory below which a recording and its outputs can be short of it.
const LEAST_MEMORY: u64 = 512 << 20;

fn limits(machine: &Machine) -> Finding {
    let memory = machine.text("/sys/fs/cgroup/memory.max");
    let bytes = memory.as_deref().and_then(|text| text.parse::<u64>().ok());
    match bytes {
        Some(bytes) if bytes < LEAST_MEMORY => Finding::warn(
            format!("memory is limited to {} MiB", bytes >> 20),
            "give the container 512 MiB more than the program needs: rpd makes its outputs in the same group",
        ),
        Some(bytes) => Finding::pass(format!("memory up to {} MiB", bytes >> 20)),
        None => Finding::pass("no limit of memory"),
    }
}
