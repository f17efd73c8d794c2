//! The process image that a recording is of: its number, what tells it apart from others with that number, and the name of
//! its directory.

use std::os::unix::fs::MetadataExt as _;

/// Prefix of the names of recordings whose outputs are not complete.
pub const PROCESS_PREFIX: &str = "proc-";

/// Beginning of the names of directories of runs and recordings whose outputs are complete.
pub const DONE_PREFIX: &str = "done-";

/// A process image. Ids of processes are unique within a PID namespace only, and only while the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessImage {
    /// The process id, as the process itself knows it.
    pub pid: u32,
    /// Time at which the image was loaded or forked, `CLOCK_BOOTTIME` ns.
    pub loaded: u64,
    /// Number of the PID namespace (its inode); `None` where the process could not find it out.
    pub namespace: Option<u64>,
}

impl ProcessImage {
    /// The name of its directory: `proc-<pid>-<time>-<namespace>`.
    #[must_use]
    pub fn directory(&self) -> String {
        let ProcessImage {
            pid,
            loaded,
            namespace,
        } = self;
        match namespace {
            Some(namespace) => format!("{PROCESS_PREFIX}{pid}-{loaded}-{namespace}"),
            None => format!("{PROCESS_PREFIX}{pid}-{loaded}"),
        }
    }

    /// The image that a directory of this name is of; `None` for other names.
    #[must_use]
    pub fn from_directory(name: &str) -> Option<ProcessImage> {
        let mut parts = name.strip_prefix(PROCESS_PREFIX)?.split('-');
        let image = ProcessImage {
            pid: parts.next()?.parse().ok()?,
            loaded: parts.next()?.parse().ok()?,
            namespace: match parts.next() {
                Some(part) => Some(part.parse().ok()?),
                None => None,
            },
        };
        parts.next().is_none().then_some(image)
    }

    /// Whether both are images of one process, of which the later one has replaced the other.
    #[must_use]
    pub fn is_of_same_process(&self, other: &ProcessImage) -> bool {
        (self.pid, self.namespace) == (other.pid, other.namespace)
    }
}

/// Number of the PID namespace of a process, of which `pid` is its name in `/proc`; `None` when there is none of this name,
/// or this process may not ask.
#[must_use]
pub fn pid_namespace(pid: &str) -> Option<u64> {
    let link = std::fs::metadata(format!("/proc/{pid}/ns/pid")).ok()?;
    Some(link.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_image_is_restored_from_its_directory_name() {
        let image = |namespace| ProcessImage {
            pid: 1,
            loaded: 2,
            namespace,
        };
        for (namespace, name) in [(Some(3), "proc-1-2-3"), (None, "proc-1-2")] {
            assert_eq!(image(namespace).directory(), name);
            assert_eq!(ProcessImage::from_directory(name), Some(image(namespace)));
        }
        for other in [
            "proc-1",
            "proc-1-2-",
            "proc-1-2-3-4",
            "done-1-2",
            "proc-x-2",
        ] {
            assert_eq!(ProcessImage::from_directory(other), None, "{other}");
        }
        assert!(!image(Some(3)).is_of_same_process(&image(Some(4))));
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads /proc")]
    fn pid_namespace_is_found_for_this_process_only() {
        let own = pid_namespace("self");
        assert!(own.is_some());
        assert_eq!(own, pid_namespace(&std::process::id().to_string()));
        assert_eq!(pid_namespace("0"), None);
    }
}
