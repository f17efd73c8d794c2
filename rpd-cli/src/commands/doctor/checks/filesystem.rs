//! Where outputs go.

use std::path::PathBuf;

use crate::commands::doctor::check::{Check, Finding, Severity};
use crate::commands::doctor::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "filesystem.output-dir-writable",
        "output directory",
        Severity::Error,
        output,
    ),
    Check::new(
        "filesystem.output-disk-space",
        "free disk",
        Severity::Warning,
        space,
    )
    .after(&["filesystem.output-dir-writable"]),
    Check::new(
        "filesystem.tmp-writable",
        "directory for temporary files",
        Severity::Warning,
        temporary,
    ),
];

fn output(machine: &Machine) -> Finding {
    let shown = machine.output.display();
    let metadata = std::fs::metadata(&machine.output);
    match metadata {
        Err(_) => Finding::warn(format!("{shown} does not exist"), "a recording makes it"),
        Ok(metadata) if !metadata.is_dir() => Finding::fail(
            format!("{shown} is no directory"),
            "correct ROCPROF_OUTPUT_PATH, or give -d",
        ),
        Ok(_) => match (machine.probes.can_create)(&machine.output) {
            Ok(()) => Finding::pass(shown.to_string()),
            Err(reason) => Finding::fail(
                format!("{shown}: {reason}"),
                "change to a directory where this user may write, or give -d",
            ),
        },
    }
}

/// Free space below which a recording of minutes fills the disk.
const LITTLE: u64 = 1 << 30;
/// Free space below which nothing of use is recorded.
const NOTHING: u64 = 64 << 20;

fn space(machine: &Machine) -> Finding {
    let Some(free) = (machine.probes.free_bytes)(&machine.output) else {
        return Finding::pass("unknown");
    };
    let detail = format!("{} MiB free", free >> 20);
    if free < NOTHING {
        Finding::fail(
            detail,
            "free some, or give -d with a directory on another disk",
        )
    } else if free < LITTLE {
        Finding::warn(
            detail,
            "a recording takes up to 60 bytes a call: free some, or give -d",
        )
    } else {
        Finding::pass(detail)
    }
}

fn temporary(machine: &Machine) -> Finding {
    let named = machine.variable("TMPDIR").map(PathBuf::from);
    let directory = machine.below(&named.unwrap_or_else(|| PathBuf::from("/tmp")));
    match (machine.probes.can_create)(&directory) {
        Ok(()) => Finding::pass(directory.display().to_string()),
        Err(reason) => Finding::warn(
            format!("{}: {reason}", directory.display()),
            "set TMPDIR to a directory where this user may write",
        ),
    }
}
