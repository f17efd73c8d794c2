//! Facts of the machine that explain figures.

use crate::commands::doctor::check::{Check, Finding, Severity};
use crate::commands::doctor::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    Check::new("system.numa", "memory nodes", Severity::Info, numa),
    Check::new(
        "system.locked-memory",
        "memory that may be locked",
        Severity::Warning,
        locked,
    ),
];

fn numa(machine: &Machine) -> Finding {
    let nodes = machine.names("/sys/devices/system/node", "node");
    let balancing = machine.text("/proc/sys/kernel/numa_balancing");
    if nodes.len() > 1 && balancing.as_deref() == Some("1") {
        return Finding::warn(
            format!(
                "{} nodes, and the kernel moves pages between them",
                nodes.len()
            ),
            "sudo sysctl kernel.numa_balancing=0, which AMD recommends for GPUs",
        );
    }
    Finding::pass(format!("{}", nodes.len().max(1)))
}

fn locked(machine: &Machine) -> Finding {
    let limits = machine.text("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max locked memory"));
    let soft = line.and_then(|line| line["Max locked memory".len()..].split_whitespace().next());
    match soft.and_then(|soft| soft.parse::<u64>().ok()) {
        // The usual default: HSA pins more for its queues on large machines.
        Some(bytes) if bytes <= 64 << 10 && machine.user.id != 0 => Finding::warn(
            format!("{} KiB", bytes >> 10),
            "ulimit -l unlimited, or memlock in /etc/security/limits.conf",
        ),
        _ => Finding::pass("enough"),
    }
}
