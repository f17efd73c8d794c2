//! Memory of processes, for examples and tests that measure it.

use std::fs::read_to_string;

/// Greatest resident memory of this process so far in KiB, its own pages and those of mapped files: `VmHWM`. 0 where the kernel
/// does not report it.
#[must_use]
pub fn peak() -> u64 {
    read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
