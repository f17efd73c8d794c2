//! State of the processes of a run, read from `/proc` and from their recordings.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rpd_core::ids::ProcessId;
use rpd_core::procfs;
use rpd_spool::SPOOL_VARIABLE;
use rpd_spool::image::{ProcessImage, pid_namespace};
use rpd_spool::mapped::is_mapped;
use rpd_spool::regular_file::{self, Links};

use super::directory::Directory;

/// The first segment of the collector's meta stream, which a process has mapped from its first record until it ends.
const META_SEGMENT: &str = "meta-0.seg";

/// Number of the PID namespace of the whole machine (`PROC_PID_INIT_INO` of Linux), from which all processes are seen.
const INITIAL_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Whether a process image still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageState {
    /// The image has ended, or was replaced by another one of the same process.
    Ended,
    /// The image runs. Its number in `/proc`; `None` for a process of another PID namespace, which `/proc` does not have.
    Runs(Option<ProcessId>),
    /// The image ran in a PID namespace that is not seen from here, and the file system does not tell either.
    Unknown,
}

/// The process id of the rpd that made a run called `<pid>-<time>`, if it is still running.
pub(super) fn front_end(name: &str) -> Option<u32> {
    let pid: u32 = name.split('-').next()?.parse().ok()?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let own = std::env::current_exe().ok()?;
    (pid != std::process::id() && program.file_name() == own.file_name()).then_some(pid)
}

/// A process that can record to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attached {
    /// Number of the process in `/proc`.
    pub(crate) seen: ProcessId,
    /// Number of the process as it knows it itself, if that differs from its number in `/proc`.
    pub(crate) own: Option<ProcessId>,
}

/// The run directory in the environment of a process, as it sees it. `None` for a process that was not started to record,
/// whose environment is not readable, or that is a zombie, which has none.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
pub(crate) fn run_of(pid: u32) -> Option<PathBuf> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| {
        let rest = variable.strip_prefix(SPOOL_VARIABLE.as_bytes())?;
        rest.strip_prefix(b"=")
    })?;
    Some(PathBuf::from(OsStr::from_bytes(value)))
}

/// Running processes that were started with this run directory to record to.
pub(super) fn attached(run: &Path) -> Vec<Attached> {
    let path = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
    let has_it = |pid: u32| run_of(pid).is_some_and(|named| named.as_os_str() == path.as_os_str());
    procfs::processes()
        .filter(|pid| *pid != std::process::id() && has_it(*pid))
        .map(|pid| Attached {
            seen: ProcessId(pid),
            own: procfs::innermost_pid(pid).map(ProcessId),
        })
        .collect()
}

/// The state of a process image with this recording.
pub(super) fn state(image: &ProcessImage, recording: &Directory) -> ImageState {
    let own = pid_namespace("self");
    let namespace = image.namespace.or(own);
    let is_listed_by_its_pid = namespace == own && procfs::is_own();
    let found = if is_listed_by_its_pid {
        Some(image.pid).filter(|pid| is_of(*pid, image, namespace))
    } else {
        procfs::processes().find(|pid| is_of(*pid, image, namespace))
    };
    if let Some(pid) = found {
        return ImageState::Runs(Some(ProcessId(pid)));
    }
    if namespace == own || own == Some(INITIAL_NAMESPACE) {
        return ImageState::Ended;
    }
    let meta = regular_file::open(&recording.inside(META_SEGMENT), Links::Refuse);
    match meta.map(|(file, _)| is_mapped(&file, &recording.inside(""))) {
        Ok(Some(true)) => ImageState::Runs(None),
        Ok(Some(false)) => ImageState::Ended,
        Ok(None) | Err(_) => ImageState::Unknown,
    }
}

/// Whether the process with this number in `/proc` is the one of the image, and runs; a zombie does not.
fn is_of(pid: u32, image: &ProcessImage, namespace: Option<u64>) -> bool {
    let Some(stat) = procfs::stat(pid) else {
        return false;
    };
    let ticks_per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .and_then(|ticks| u64::try_from(ticks).ok())
        .unwrap_or(100);
    let started = stat
        .start
        .saturating_mul(1_000_000_000 / ticks_per_second.max(1));
    let innermost = procfs::innermost_pid(pid);
    // A process with the same id that started after the recording is another one.
    stat.runs
        && started <= image.loaded
        && innermost.is_none_or(|own| own == image.pid)
        && match pid_namespace(&pid.to_string()) {
            Some(found) => Some(found) == namespace,
            // Some processes, of other users for instance, do not show it. One of this rpd's namespace knows itself by the
            // number that is listed.
            None => namespace == pid_namespace("self") || innermost != Some(pid),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_state_tells_this_process_from_its_successors() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = Directory::open(place.path()).expect("opened");
        let pid = std::process::id();
        let image = |pid, loaded, namespace| ProcessImage {
            pid,
            loaded,
            namespace,
        };
        let own = pid_namespace("self");
        let seen = ImageState::Runs(Some(ProcessId(pid)));
        assert_eq!(state(&image(pid, u64::MAX, own), &directory), seen);
        assert_eq!(state(&image(pid, u64::MAX, None), &directory), seen);
        let later = state(&image(pid, 0, own), &directory);
        assert_eq!(later, ImageState::Ended, "started after the recording");
        let none = state(&image(u32::MAX, u64::MAX, own), &directory);
        assert_eq!(none, ImageState::Ended);
        let elsewhere = state(&image(pid, u64::MAX, Some(1)), &directory);
        assert_ne!(elsewhere, seen, "a process of another PID namespace");
    }
}
