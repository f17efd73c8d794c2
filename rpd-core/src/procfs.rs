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
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
pub fn own_status(field: &str) -> Option<String> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_zombies_do_not() {
        let own = stat(std::process::id()).expect("procfs");
        assert!(own.runs && own.start > 0);
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
