//! AMD's driver: the device files, who may open them, and what the kernel says about the GPUs.

use crate::commands::doctor::check::{Check, Finding, Severity};
use crate::commands::doctor::machine::Machine;

const KFD: &[&str] = &["driver.kfd-device"];
const TOPOLOGY: &[&str] = &["driver.gpu-topology"];

pub(super) const CHECKS: &[Check] = &[
    Check::new("driver.kfd-device", "/dev/kfd", Severity::Error, device),
    Check::new(
        "driver.kfd-readable",
        "rights on /dev/kfd",
        Severity::Error,
        readable,
    )
    .after(KFD),
    Check::new(
        "driver.dri-devices",
        "/dev/dri/renderD*",
        Severity::Warning,
        render_nodes,
    )
    .after(KFD),
    Check::new(
        "driver.render-group",
        "group render",
        Severity::Warning,
        |machine| group(machine, "render"),
    )
    .after(KFD),
    Check::new(
        "driver.video-group",
        "group video",
        Severity::Warning,
        |machine| group(machine, "video"),
    )
    .after(KFD),
    Check::new(
        "driver.amdgpu-module",
        "module amdgpu",
        Severity::Error,
        module,
    )
    .after(KFD),
    Check::new(
        "driver.gpu-topology",
        "GPUs that the driver lists",
        Severity::Error,
        topology,
    )
    .after(KFD),
    Check::new(
        "driver.power-state",
        "power state",
        Severity::Warning,
        power,
    )
    .after(TOPOLOGY),
    Check::new("driver.clocks", "clocks", Severity::Info, clocks).after(TOPOLOGY),
];

fn device(machine: &Machine) -> Finding {
    if machine.has_kfd() {
        return Finding::pass("there");
    }
    if machine.has_nvidia() {
        return Finding::skip("absent, and the GPU here is NVIDIA's");
    }
    Finding::fail(
        "absent",
        "load the module amdgpu, or pass the device into the container (--device /dev/kfd --device /dev/dri); `--backend sim` records without it",
    )
}

fn readable(machine: &Machine) -> Finding {
    if (machine.probes.can_use)(&machine.path("/dev/kfd")) {
        Finding::pass("this user may open it")
    } else {
        Finding::fail(
            format!("{} may not read and write it", user(machine)),
            "add the user to the group that owns it, usually `render`, and log in again",
        )
    }
}

/// The user in a sentence.
fn user(machine: &Machine) -> String {
    if machine.user.name.is_empty() {
        format!("user {}", machine.user.id)
    } else {
        machine.user.name.clone()
    }
}

fn render_nodes(machine: &Machine) -> Finding {
    let nodes = machine.names("/dev/dri", "renderD");
    if nodes.is_empty() {
        return Finding::warn(
            "none",
            "pass /dev/dri into the container, or load the module amdgpu",
        );
    }
    let usable =
        |node: &&String| (machine.probes.can_use)(&machine.path(&format!("/dev/dri/{node}")));
    match nodes.iter().find(|node| !usable(node)) {
        None => Finding::pass(nodes.join(", ")),
        Some(node) => Finding::warn(
            format!("{} may not open {node}", user(machine)),
            "add the user to the group that owns it, usually `render`, and log in again",
        ),
    }
}

fn group(machine: &Machine, name: &str) -> Finding {
    if machine.user.id == 0 {
        return Finding::pass("root needs none");
    }
    let Some((id, members)) = (machine.probes.group)(name) else {
        return Finding::warn(
            "the machine has no such group",
            "the driver's package makes it",
        );
    };
    if machine.user.groups.contains(&id) {
        return Finding::pass(format!("{} is in it", user(machine)));
    }
    if members.contains(&machine.user.name) {
        return Finding::warn(
            format!("{} was added to it after this session began", user(machine)),
            "log in again: groups take effect in a new session",
        );
    }
    Finding::warn(
        format!("{} is not in it", user(machine)),
        format!(
            "sudo usermod -a -G {name} {}, and log in again",
            user(machine)
        ),
    )
}

fn module(machine: &Machine) -> Finding {
    if !machine.exists("/sys/module/amdgpu") {
        return Finding::fail("not loaded", "sudo modprobe amdgpu");
    }
    let version = machine.text("/sys/module/amdgpu/version");
    Finding::pass(match version {
        Some(version) => format!("version {version}"),
        None => "the kernel's own".to_owned(),
    })
}

const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// The value of a property of a node.
fn property(text: &str, name: &str) -> u64 {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

fn topology(machine: &Machine) -> Finding {
    let gpus: Vec<String> = machine
        .names(NODES, "")
        .iter()
        .filter_map(|node| {
            let text = machine.text(&format!("{NODES}/{node}/properties"))?;
            let version = property(&text, "gfx_target_version");
            // Decimal digits: two for minor and two for stepping, which names have as one hexadecimal digit each.
            let name = format!(
                "gfx{}{:x}{:x}",
                version / 10_000,
                version / 100 % 100,
                version % 100
            );
            (property(&text, "simd_count") > 0).then_some(name)
        })
        .collect();
    if gpus.is_empty() {
        return Finding::fail(
            "none",
            "look for errors of amdgpu in `dmesg`; in a container the nodes of its devices only are listed",
        );
    }
    Finding::pass(gpus.join(", "))
}

/// Directories of the GPUs in sysfs.
fn cards(machine: &Machine) -> Vec<String> {
    let names = machine.names("/sys/class/drm", "card").into_iter();
    names
        .filter(|name| {
            name["card".len()..]
                .bytes()
                .all(|letter| letter.is_ascii_digit())
        })
        .map(|name| format!("/sys/class/drm/{name}/device"))
        .collect()
}

fn power(machine: &Machine) -> Finding {
    let cards = cards(machine);
    let read = |card: &String, file: &str| machine.text(&format!("{card}/{file}"));
    for card in &cards {
        let level = read(card, "power_dpm_force_performance_level");
        if level.as_deref() == Some("low") {
            return Finding::warn(
                format!("{card} is held at its lowest clocks"),
                "sudo rocm-smi --setperflevel auto",
            );
        }
        if read(card, "power/runtime_status").as_deref() == Some("suspended") {
            return Finding::warn(
                format!("{card} sleeps, and counters of a GPU that sleeps read zero"),
                format!("echo on | sudo tee {card}/power/control"),
            );
        }
    }
    Finding::pass("no GPU is held back or asleep")
}

fn clocks(machine: &Machine) -> Finding {
    // The line of the clock in use ends with an asterisk.
    let current = |text: String| {
        let line = text.lines().find(|line| line.ends_with('*'))?.to_owned();
        Some(line.split_whitespace().nth(1)?.to_owned())
    };
    let found: Vec<String> = cards(machine)
        .iter()
        .filter_map(|card| {
            machine
                .text(&format!("{card}/pp_dpm_sclk"))
                .and_then(current)
        })
        .collect();
    Finding::pass(if found.is_empty() {
        "not shown by this driver".to_owned()
    } else {
        format!("now {}", found.join(", "))
    })
}
