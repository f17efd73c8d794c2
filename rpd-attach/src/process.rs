//! Facts about a process, from `/proc`. Nothing here stops or changes it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::status::{Error, Status};

/// What tells a file from others, by whatever path it is reached: device and number. `None` when there is no such file.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// A process, by its number in this PID namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pub(crate) pid: i32,
}

/// What the kernel says of a process or thread in `status`.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// Letter of the state: `R`, `S`, `T`, `Z`, ...
    pub(crate) letter: char,
    /// Effective user.
    pub(crate) user: u32,
    /// Process that traces it; 0 for none.
    pub(crate) tracer: i32,
    /// Whether returns are checked against a shadow stack.
    pub(crate) shadow_stack: bool,
}

/// A range of memory with the file that is mapped there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) offset: u64,
    pub(crate) path: PathBuf,
    /// Whether the file has no name any more.
    pub(crate) deleted: bool,
}

/// Most links that lead to one file.
const MOST_LINKS: usize = 40;

impl Process {
    /// The process of a number.
    pub(crate) fn new(pid: i32) -> Process {
        Process { pid }
    }

    fn file(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    /// The failure for something of this process that cannot be read.
    fn unreadable(self, what: &str, error: &io::Error) -> Error {
        let pid = self.pid;
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => Error::new(
                Status::ProcessNotFound,
                format!("process {pid} does not exist"),
            ),
            Some(libc::EACCES | libc::EPERM) => Error::new(
                Status::NotPermitted,
                format!(
                    "process {pid}: {what} may not be read; attach as the user to whom it belongs, or as root"
                ),
            ),
            _ => Error::new(Status::Error, format!("process {pid}: {what}: {error}")),
        }
    }

    fn read(self, name: &str) -> Result<Vec<u8>, Error> {
        fs::read(self.file(name)).map_err(|error| self.unreadable(name, &error))
    }

    /// The state of the process, or of one of its threads.
    pub(crate) fn state(self, thread: Option<i32>) -> Result<State, Error> {
        let name = match thread {
            Some(thread) => format!("task/{thread}/status"),
            None => "status".to_owned(),
        };
        let text = self.read(&name)?;
        let text = String::from_utf8_lossy(&text);
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.trim_start_matches(':').trim())
        };
        let user = value("Uid").and_then(|ids| ids.split_whitespace().nth(1));
        Ok(State {
            letter: value("State")
                .and_then(|state| state.chars().next())
                .unwrap_or('?'),
            user: user.and_then(|user| user.parse().ok()).unwrap_or(0),
            tracer: value("TracerPid")
                .and_then(|pid| pid.parse().ok())
                .unwrap_or(0),
            shadow_stack: value("x86_Thread_features")
                .is_some_and(|features| features.split_whitespace().any(|it| it == "shstk")),
        })
    }

    /// The threads, each with its name.
    pub(crate) fn threads(self) -> Result<Vec<(i32, String)>, Error> {
        let tasks = fs::read_dir(self.file("task"))
            .map_err(|error| self.unreadable("its threads", &error))?;
        let thread = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.parse().ok()?;
            // A thread that has ended meanwhile is none.
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            Some((number, name.trim_end_matches('\n').to_owned()))
        };
        Ok(tasks.filter_map(thread).collect())
    }

    /// Files in the memory of the process, each with its lowest mapping first.
    pub(crate) fn mappings(self) -> Result<Vec<Mapping>, Error> {
        let text = self.read("maps")?;
        // Files are named as this process sees them where it sees them at all: below the root directory of the process.
        let root = fs::read_link(self.file("root")).unwrap_or_default();
        let own = |mut mapping: Mapping| {
            if let Ok(below) = mapping.path.strip_prefix(&root) {
                mapping.path = Path::new("/").join(below);
            }
            mapping
        };
        let lines = text.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(mapping).map(own).collect())
    }

    /// The environment with which the program was started.
    pub(crate) fn environment(self) -> Result<Vec<(OsString, OsString)>, Error> {
        let bytes = self.read("environ")?;
        let pair = |entry: &[u8]| {
            let end = entry.iter().position(|byte| *byte == b'=')?;
            let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Some((part(&entry[..end]), part(&entry[end + 1..])))
        };
        Ok(bytes.split(|byte| *byte == 0).filter_map(pair).collect())
    }

    /// Address of the program's first instruction.
    pub(crate) fn entry(self) -> Result<u64, Error> {
        let bytes = self.read("auxv")?;
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
        bytes
            .chunks_exact(16)
            .find(|pair| word(&pair[..8]) == libc::AT_ENTRY)
            .map(|pair| word(&pair[8..]))
            .ok_or_else(|| {
                let text = format!("process {}: its program has no first instruction", self.pid);
                Error::new(Status::NotSupported, text)
            })
    }

    /// Whether a namespace of the process is another one than that of this process. `None` when it may not be known.
    pub(crate) fn other_namespace(self, name: &str) -> Option<bool> {
        let of = |path: PathBuf| fs::read_link(path).ok();
        let own = of(PathBuf::from(format!("/proc/self/ns/{name}")))?;
        Some(of(self.file(&format!("ns/{name}")))? != own)
    }

    /// Whether the root directory of the process is another one than that of this process.
    pub(crate) fn other_root(self) -> Option<bool> {
        Some(identity(&self.file("root"))? != identity(Path::new("/"))?)
    }

    /// Where a file of the process is for this process. Links are followed as the process itself follows them: below its
    /// root.
    pub(crate) fn seen(self, path: &Path) -> io::Result<PathBuf> {
        let root = self.file("root");
        let mut left: Vec<OsString> = components(path).rev().collect();
        let mut at = root.clone();
        let mut depth = 0;
        let mut links = 0;
        while let Some(part) = left.pop() {
            if part == ".." {
                if depth > 0 {
                    at.pop();
                    depth -= 1;
                }
                continue;
            }
            let next = at.join(&part);
            match fs::read_link(&next) {
                Ok(target) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(io::Error::from_raw_os_error(libc::ELOOP));
                    }
                    if target.is_absolute() {
                        at.clone_from(&root);
                        depth = 0;
                    }
                    left.extend(components(&target).collect::<Vec<_>>().into_iter().rev());
                }
                // No link.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    at = next;
                    depth += 1;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(at)
    }

    /// The name by which the process knows a file that [`Process::seen`] found.
    pub(crate) fn own_name(self, seen: &Path) -> PathBuf {
        let below = seen.strip_prefix(self.file("root")).unwrap_or(seen);
        Path::new("/").join(below)
    }

    /// Whether this process may trace it: opening its memory is allowed exactly then.
    pub(crate) fn may_be_traced(self) -> io::Result<()> {
        fs::File::open(self.file("mem")).map(drop)
    }
}

/// Names in a path, and `..`.
fn components(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// A line of `maps`, if a file is mapped there.
fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    // Range, rights, offset, device, number of the file; then spaces, and the path to the end of the line.
    let mut field = || {
        let end = rest.iter().position(|byte| *byte == b' ')?;
        let field = std::str::from_utf8(&rest[..end]).ok()?;
        rest = rest[end..].trim_ascii_start();
        Some(field)
    };
    let (range, _rights, offset) = (field()?, field()?, field()?);
    let (_device, _number) = (field()?, field()?);
    let start = u64::from_str_radix(range.split_once('-')?.0, 16).ok()?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    const DELETED: &[u8] = b" (deleted)";
    let (path, deleted) = match rest.strip_suffix(DELETED) {
        Some(path) => (path, true),
        None => (rest, false),
    };
    path.starts_with(b"/").then(|| Mapping {
        start,
        offset,
        path: PathBuf::from(OsStr::from_bytes(path)),
        deleted,
    })
}

/// The children of a process; empty when it has ended, or the kernel does not list them.
pub fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = Process::new(pid).threads() else {
        return Vec::new();
    };
    let of_thread = |(thread, _): (i32, String)| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"));
        text.unwrap_or_default()
    };
    let lists = threads.into_iter().map(of_thread);
    let mut found: Vec<i32> = lists
        .flat_map(|list| {
            let numbers = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            numbers.collect::<Vec<i32>>()
        })
        .collect();
    found.sort_unstable();
    found
}

/// The children of a process, then theirs, and so on. Processes that begin meanwhile may be missing.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        for child in children(parent) {
            // A number that was given to another process meanwhile would lead in a circle.
            if child != pid && !found.contains(&child) {
                found.push(child);
            }
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this() -> Process {
        Process::new(std::process::id().cast_signed())
    }

    #[test]
    fn mapping_reads_the_files_of_a_line() {
        let line = b"7f00a000-7f00b000 r-xp 00002000 08:01 1234       /a b/lib c.so";
        let expected = Mapping {
            start: 0x7f00_a000,
            offset: 0x2000,
            path: PathBuf::from("/a b/lib c.so"),
            deleted: false,
        };
        assert_eq!(mapping(line), Some(expected));
        let gone = mapping(b"1-2 r--p 0 0:0 1 /x (deleted)").expect("a file");
        assert_eq!((gone.path, gone.deleted), (PathBuf::from("/x"), true));
        for line in [
            &b"1-2 r--p 0 0:0 0"[..],
            b"1-2 r--p 0 0:0 0  [heap]",
            b"",
            b"x",
        ] {
            assert_eq!(mapping(line), None);
        }
    }

    #[test]
    fn process_knows_its_own_threads_entry_and_state() {
        let process = this();
        assert!(!process.threads().expect("threads").is_empty());
        assert!(process.entry().expect("an entry") > 0);
        assert_eq!(process.state(None).expect("a state").tracer, 0);
        assert_eq!(process.other_root(), Some(false));
        assert_eq!(process.other_namespace("pid"), Some(false));
        assert!(!process.mappings().expect("files").is_empty());
    }

    #[test]
    fn seen_follows_links_below_the_root_of_the_process() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("d")).expect("made");
        fs::write(at("d/file"), "").expect("written");
        let links = [("relative", "d/../d/file"), ("loop", "loop")];
        for (name, target) in links {
            std::os::unix::fs::symlink(target, at(name)).expect("linked");
        }
        std::os::unix::fs::symlink(at("d"), at("absolute")).expect("linked");
        let real = fs::canonicalize(at("d/file")).expect("there");
        for name in ["relative", "absolute/file", "d/./file"] {
            let seen = this().seen(&at(name)).expect(name);
            assert_eq!(this().own_name(&seen), real, "{name}");
            assert!(seen.is_file(), "{name}");
        }
        assert!(this().seen(&at("loop")).is_err());
        assert!(this().seen(&at("missing")).is_err());
    }

    #[test]
    fn process_that_does_not_exist_is_not_found() {
        let error = Process::new(i32::MAX)
            .state(None)
            .expect_err("no such process");
        assert_eq!(error.status, Status::ProcessNotFound);
        assert!(children(i32::MAX).is_empty());
    }
}
