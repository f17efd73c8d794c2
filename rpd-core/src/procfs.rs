//! Reads the state of another process from `/proc`.

/// Fields of `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Whether the process runs; a zombie does not.
    pub runs: bool,
    /// Start time in clock ticks since boot.
    pub start: u64,
}

/// Reads `/proc/<pid>/stat`; `None` when the process does not exist.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
pub fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name, in parentheses, may hold anything.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    Some(Stat {
        runs: !matches!(state, "Z" | "X"),
        start: fields.nth(18)?.parse().ok()?,
    })
}

/// The value of a field of `/proc/self/status`, such as `Umask`; `None` when the kernel has no such field.
pub fn own_status(field: &str) -> Option<String> {
    status("self", field)
}

/// The number that a process has in its own PID namespace; `None` when it does not exist or the kernel does not say.
/// `pid` is its number in `/proc`.
pub fn innermost_pid(pid: u32) -> Option<u32> {
    let numbers = status(&pid.to_string(), "NSpid")?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Whether `/proc` has the numbers of this process's PID namespace, and not those of one around it.
pub fn is_own() -> bool {
    let own = std::process::id().to_string();
    std::fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == own.as_str())
}

/// The value of a field of a process's `status`; `None` when there is no such process or field.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
fn status(process: &str, field: &str) -> Option<String> {
    let text = std::fs::read(format!("/proc/{process}/status")).ok()?;
    // The name of the program, in another line, may hold any bytes.
    let mut lines = text.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| {
        line.strip_prefix(field.as_bytes())?
            .strip_prefix(b":".as_slice())
    })?;
    Some(str::from_utf8(value).ok()?.trim().to_owned())
}

/// Numbers of the processes that `/proc` shows.
pub fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_says_that_this_process_runs_and_that_a_zombie_does_not() {
        let own = stat(std::process::id()).expect("procfs");
        assert!(own.runs && own.start > 0);
        assert_eq!(innermost_pid(std::process::id()), Some(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().expect("starts");
        let zombie = loop {
            let found = stat(child.id()).expect("not waited for");
            if !found.runs {
                break found;
            }
            std::thread::yield_now();
        };
        assert!(zombie.start >= own.start);
        child.wait().expect("it ended");
        assert_eq!(stat(u32::MAX), None);
    }
}
