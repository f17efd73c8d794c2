//! What a running process is like, and the way to attach to it: read from `/proc`, before the process is touched.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rpd_core::procfs;
use rpd_spool::idle::{IDLE_VARIABLE, page_in_map, seen_from_here};

use crate::run_directory::run_of;

/// The thread of ROCm's registration library that takes requests to attach.
const UPSTREAM_THREAD: &str = "rocp-bg-attach";

/// How a process can be attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// The process waits for rpd, with this control page.
    Ours(Page),
    /// ROCm's registration library takes requests in it (`ROCP_TOOL_ATTACH=1`).
    Upstream,
    /// The process cannot be attached to.
    Refused(Reason),
}

/// The control page of a process that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// Path of the page as the process sees it.
    pub(crate) inside: PathBuf,
    /// Path of the page as seen from here.
    pub(crate) here: PathBuf,
}

/// Why a process cannot be attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    Missing,
    /// The memory map cannot be read: the user that the process belongs to.
    Foreign(u32),
    /// The process is recorded from its start.
    Recorded,
    /// The process was started to wait and has no page.
    NoPage,
    Cuda,
    /// The process was not started to be attached to; `gpu`: it has a GPU runtime that rpd knows.
    Unprepared {
        gpu: bool,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Missing => f.write_str("no such process"),
            Reason::Foreign(user) => write!(
                f,
                "it belongs to user {user}, or has rights of its own, and its memory map cannot be read; run rpd as that \
                 user or as root"
            ),
            Reason::Recorded => f.write_str(
                "rpd records it from its start already; see rpd control",
            ),
            Reason::NoPage => f.write_str(
                "it was started to be attached to, but has not used the GPU yet, or its program has a profiler of its \
                 own; attach when it uses the GPU",
            ),
            Reason::Cuda => f.write_str("it uses CUDA, and rpd cannot attach to such programs"),
            Reason::Unprepared { .. } => f.write_str(
                "it was not started to be attached to; start the program with: rpd idle -- PROGRAM",
            ),
        }
    }
}

/// The user of a process.
pub(crate) fn user_of(pid: u32) -> Option<u32> {
    let found = std::fs::metadata(format!("/proc/{pid}")).ok()?;
    Some(found.uid())
}

/// The way to attach to a process.
#[expect(clippy::disallowed_methods, reason = "files of the kernel")]
pub(crate) fn way(pid: u32) -> Way {
    if procfs::stat(pid).is_none_or(|stat| !stat.runs) {
        return Way::Refused(Reason::Missing);
    }
    let map = match std::fs::read(format!("/proc/{pid}/maps")) {
        Ok(map) => map,
        Err(_) if procfs::stat(pid).is_none() => return Way::Refused(Reason::Missing),
        Err(_) => return Way::Refused(Reason::Foreign(user_of(pid).unwrap_or(0))),
    };
    if let Some(inside) = page_in_map(&map) {
        let here = seen_from_here(pid, &inside);
        return Way::Ours(Page { inside, here });
    }
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let mut names = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    if names.any(|name| name.trim_end() == UPSTREAM_THREAD) {
        return Way::Upstream;
    }
    let has = |name: &str| {
        map.windows(name.len())
            .any(|window| window == name.as_bytes())
    };
    Way::Refused(if run_of(pid).is_some() && has("librpd_collect.so") {
        Reason::Recorded
    } else if has("librpd_register.so") && waits(pid) {
        Reason::NoPage
    } else if has("libcuda.so") {
        Reason::Cuda
    } else {
        let libraries = ["libamdhip64.so", "libhsa-runtime64.so", "librpd_sim.so"];
        Reason::Unprepared {
            gpu: libraries.into_iter().any(has),
        }
    })
}

/// Whether a process was started to wait until somebody attaches.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
fn waits(pid: u32) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| {
        entry
            .strip_prefix(IDLE_VARIABLE.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"="))
    })
}

/// The descendants of a process, parents before their children.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in procfs::processes() {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        // The command name, in parentheses, may hold anything.
        let parent = text
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(pid) = next.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(child);
            next.push(child);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_of_a_process_that_was_not_prepared_says_what_to_start_it_with() {
        let Way::Refused(reason) = way(std::process::id()) else {
            panic!("this test is not prepared");
        };
        assert_eq!(reason, Reason::Unprepared { gpu: false });
        assert!(reason.to_string().contains("rpd idle -- PROGRAM"));
        assert_eq!(way(u32::MAX), Way::Refused(Reason::Missing));
    }

    #[test]
    fn descendants_are_found_below_their_parent() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep starts");
        assert!(descendants(std::process::id()).contains(&child.id()));
        assert!(!descendants(child.id()).contains(&child.id()));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
}
