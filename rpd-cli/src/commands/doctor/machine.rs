//! What checks look at: files below a root, variables, the user, and the few things that only a system call or another
//! process can tell. Tests put their own in place of each.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rpd_spool::regular_file;

/// Longest file of the kernel or of an installation that a check reads.
const LONGEST: u64 = 1 << 20;

/// The machine as checks see it.
pub(super) struct Machine {
    /// What stands in front of absolute paths: `/`, or a directory of a test.
    pub(super) root: PathBuf,
    pub(super) variables: BTreeMap<OsString, OsString>,
    pub(super) user: User,
    /// The ROCm installation that is inspected.
    pub(super) rocm: Rocm,
    /// The directory that outputs would go to.
    pub(super) output: PathBuf,
    pub(super) probes: Probes,
}

/// The user whom rpd runs as.
pub(super) struct User {
    pub(super) id: u32,
    /// The name in the user database; empty when it has none.
    pub(super) name: String,
    /// Ids of the groups of this process.
    pub(super) groups: Vec<u32>,
}

/// A ROCm installation, and why this one is inspected.
pub(super) struct Rocm {
    /// `None` when there is none.
    pub(super) root: Option<PathBuf>,
    /// What named it: an option, a variable, or the place where installations lie.
    pub(super) source: String,
}

/// The id of a group, and its members as the user database lists them.
pub(super) type GroupEntry = (u32, Vec<String>);

/// What cannot be read from a file.
pub(super) struct Probes {
    /// Whether this process may read and write a file.
    pub(super) can_use: fn(&Path) -> bool,
    /// The id and the members of a group; `None` when the machine has no group of this name.
    pub(super) group: fn(&str) -> Option<GroupEntry>,
    /// Bytes that are free for this user where a file would lie.
    pub(super) free_bytes: fn(&Path) -> Option<u64>,
    /// Whether a new file can be made in a directory; the error's text when not.
    pub(super) can_create: fn(&Path) -> Result<(), String>,
    /// Whether the loader opens a library, with a directory in front of its search path; what it said when not.
    pub(super) loads: fn(&Path, &Path) -> Result<(), String>,
    /// The path of a library in the loader's cache.
    pub(super) in_loader_cache: fn(&str) -> Option<PathBuf>,
    /// Whether libotf2 can be opened; the reason when not.
    pub(super) otf2: fn() -> Result<(), String>,
    /// The path of a library that is installed with rpd; the reason when it is not.
    pub(super) own_library: fn(&str) -> Result<PathBuf, String>,
    /// Records the self-test program with these options of rpd; what was recorded, or what went wrong.
    pub(super) self_test: fn(&[&str]) -> Result<SelfTest, String>,
}

/// What a recording of the self-test program has.
#[derive(Debug, Clone, Default)]
pub(super) struct SelfTest {
    /// Calls of the HIP runtime.
    pub(super) calls: usize,
    /// Rows of counters, and how many of them are not zero.
    pub(super) counters: (usize, usize),
}

impl Machine {
    /// Where a path of the machine is for this process.
    pub(super) fn path(&self, absolute: &str) -> PathBuf {
        self.below(Path::new(absolute))
    }

    /// Where a path that was found on the machine is for this process.
    pub(super) fn below(&self, absolute: &Path) -> PathBuf {
        self.root
            .join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    pub(super) fn exists(&self, absolute: &str) -> bool {
        self.path(absolute).exists()
    }

    /// The text of a file without white space around it; `None` when it cannot be read.
    pub(super) fn text(&self, absolute: &str) -> Option<String> {
        let bytes = regular_file::read(&self.path(absolute), regular_file::Links::Follow, LONGEST);
        Some(String::from_utf8_lossy(&bytes.ok()?).trim().to_owned())
    }

    /// Names in a directory that begin so, in order; empty when it cannot be read.
    pub(super) fn names(&self, directory: &str, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(directory))
            .into_iter()
            .flatten();
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(prefix))
            .collect();
        names.sort();
        names
    }

    /// A variable that is set to something.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(OsStr::new(name))?;
        Some(value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// Whether the machine has an AMD GPU's driver.
    pub(super) fn has_kfd(&self) -> bool {
        self.exists("/dev/kfd")
    }

    /// Whether the machine has NVIDIA's driver.
    pub(super) fn has_nvidia(&self) -> bool {
        self.exists("/dev/nvidiactl") || self.exists("/proc/driver/nvidia/version")
    }
}
