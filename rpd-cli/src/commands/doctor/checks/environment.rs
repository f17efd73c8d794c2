//! Variables, rights and limits that a profiled program inherits.

use std::ffi::OsStr;
use std::path::Path;

use crate::commands::doctor::check::{Check, Finding, Severity};
use crate::commands::doctor::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "environ.run-as-user",
        "the user rpd runs as",
        Severity::Warning,
        as_user,
    ),
    Check::new(
        "environ.ld-preload-conflict",
        "LD_PRELOAD",
        Severity::Warning,
        preload,
    ),
    Check::new(
        "environ.hsa-tools-lib",
        "HSA_TOOLS_LIB",
        Severity::Warning,
        hsa_tools,
    ),
    Check::new(
        "environ.rocp-tool-libraries",
        "ROCP_TOOL_LIBRARIES",
        Severity::Info,
        tools,
    ),
    Check::new(
        "environ.gpu-visibility",
        "GPUs that are hidden",
        Severity::Warning,
        visibility,
    ),
    Check::new(
        "environ.ptrace-scope",
        "attaching by ptrace",
        Severity::Info,
        ptrace,
    ),
    Check::new(
        "environ.kernel-lockdown",
        "lockdown of the kernel",
        Severity::Info,
        lockdown,
    ),
];

fn as_user(machine: &Machine) -> Finding {
    if machine.user.id == 0
        && let Some(name) = machine.variable("SUDO_USER")
    {
        return Finding::warn(
            format!("root, on behalf of {}", name.to_string_lossy()),
            "run rpd as that user: files of root are in the way later",
        );
    }
    Finding::pass(if machine.user.name.is_empty() {
        format!("user {}", machine.user.id)
    } else {
        machine.user.name.clone()
    })
}

/// Words of a variable, which blanks or colons separate.
fn words(value: &OsStr) -> Vec<String> {
    let text = value.to_string_lossy().into_owned();
    let words = text.split([' ', ':']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Profilers of earlier generations, which take the runtimes' tables for themselves.
const CONFLICTS: [&str; 4] = [
    "libroctracer64",
    "librocprofiler64",
    "librocprofiler64v2",
    "librocprof",
];

fn preload(machine: &Machine) -> Finding {
    let Some(value) = machine.variable("LD_PRELOAD") else {
        return Finding::pass("not set");
    };
    let libraries = words(value);
    let conflict = libraries.iter().find(|library| {
        let name = library.rsplit('/').next().unwrap_or(library);
        CONFLICTS.contains(&name.split(".so").next().unwrap_or(name))
    });
    match conflict {
        Some(library) => Finding::fail(
            format!("{library} is another profiler"),
            "unset LD_PRELOAD before rpd is started",
        ),
        None => Finding::pass(format!("{}, which stay in place", libraries.join(", "))),
    }
}

fn hsa_tools(machine: &Machine) -> Finding {
    match machine.variable("HSA_TOOLS_LIB") {
        Some(value) if !value.to_string_lossy().contains("librocprofiler-sdk") => Finding::warn(
            value.to_string_lossy(),
            "unset HSA_TOOLS_LIB: that tool takes the runtime's table as well",
        ),
        Some(value) => Finding::pass(value.to_string_lossy()),
        None => Finding::pass("not set"),
    }
}

fn tools(machine: &Machine) -> Finding {
    let Some(value) = machine.variable("ROCP_TOOL_LIBRARIES") else {
        return Finding::pass("not set");
    };
    let libraries = words(value);
    let is_missing =
        |path: &&String| path.contains('/') && !machine.below(Path::new(path)).exists();
    match libraries.iter().find(is_missing) {
        Some(path) => Finding::warn(
            format!("{path} does not exist"),
            "correct ROCP_TOOL_LIBRARIES: the SDK ends a program whose tool it cannot open",
        ),
        None => Finding::pass(libraries.join(", ")),
    }
}

fn visibility(machine: &Machine) -> Finding {
    for name in [
        "ROCR_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "CUDA_VISIBLE_DEVICES",
    ] {
        let Some(value) = machine.variables.get(OsStr::new(name)) else {
            continue;
        };
        if value.is_empty() {
            return Finding::warn(
                format!("{name} is set to nothing, which hides every GPU"),
                format!("unset {name}, or name the GPUs"),
            );
        }
        return Finding::warn(
            format!(
                "{name} is {}: programs see these GPUs only",
                value.to_string_lossy()
            ),
            format!("unset {name} to see all"),
        );
    }
    Finding::pass("none by a variable")
}

fn ptrace(machine: &Machine) -> Finding {
    let scope = machine.text("/proc/sys/kernel/yama/ptrace_scope");
    match scope.as_deref() {
        None | Some("0") => Finding::pass("allowed for processes of the same user"),
        Some(_) if machine.user.id == 0 => Finding::pass("allowed for root"),
        Some(scope) => Finding::warn(
            format!("ptrace_scope is {scope}"),
            "programs that were started with `rpd idle` need no ptrace; for others: sudo sysctl kernel.yama.ptrace_scope=0",
        ),
    }
}

fn lockdown(machine: &Machine) -> Finding {
    // The mode in use stands in brackets.
    let text = machine
        .text("/sys/kernel/security/lockdown")
        .unwrap_or_default();
    let mode = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    match mode {
        Some((mode, _)) if mode != "none" => Finding::warn(
            format!("the kernel is locked down ({mode})"),
            "drivers may refuse device-wide counters; boot without lockdown to have them",
        ),
        _ => Finding::pass("none"),
    }
}
