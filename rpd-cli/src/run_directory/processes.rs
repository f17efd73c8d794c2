//! State of the processes of a run, read from `/proc`.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rpd_core::ids::ProcessId;
use rpd_core::procfs;
use rpd_spool::SPOOL_VARIABLE;

/// The process id of the rpd that made a run called `<pid>-<time>`, if it is still running.
pub(super) fn front_end(name: &str) -> Option<u32> {
    let pid: u32 = name.split('-').next()?.parse().ok()?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let own = std::env::current_exe().ok()?;
    (pid != std::process::id() && program.file_name() == own.file_name()).then_some(pid)
}

/// Running processes that were started with this run directory to record to.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
pub(super) fn attached(run: &Path) -> Vec<ProcessId> {
    let path = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
    let mut variable = SPOOL_VARIABLE.as_bytes().to_vec();
    variable.push(b'=');
    variable.extend(path.as_os_str().as_bytes());
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            // The environment of a zombie is empty.
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let ours = environment
                .split(|byte| *byte == 0)
                .any(|one| one == variable);
            (ours && pid != std::process::id()).then_some(ProcessId(pid))
        })
        .collect()
}

/// Whether the process image that was loaded at this time is still running; a zombie is not.
pub(super) fn is_alive(pid: ProcessId, loaded: u64) -> bool {
    let Some(stat) = procfs::stat(pid.0) else {
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
    // A process with the same id that started after the recording is another one.
    stat.runs && started <= loaded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_successors_are_not() {
        let pid = ProcessId(std::process::id());
        assert!(is_alive(pid, u64::MAX));
        assert!(!is_alive(pid, 0), "started after the recording");
        assert!(!is_alive(ProcessId(u32::MAX), u64::MAX));
    }
}
