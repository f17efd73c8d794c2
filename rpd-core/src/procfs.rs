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
