//! Processes that wait to be attached to: where their control page is, and how both sides find it.
//!
//! A process that was started by `rpd idle`, or with [`IDLE_VARIABLE`] and rpd's libraries preloaded, makes a control page
//! ([`crate::control`]) when its first GPU runtime comes up. The page's file lies in a directory of the process's user; whoever
//! wants to attach finds its path in the process's memory map. The attached rpd holds a lock on the file: a second one is
//! refused, and the process notices when the first one is gone.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::control::{ControlServer, Controller};
use super::image::{ProcessImage, pid_namespace};
use super::regular_file::{self, FileError, Links};
use super::writer::now;

/// Environment variable that makes a process wait to be attached to: `1`, or the absolute path of a directory for its control
/// page. Without effect in a process that is recorded from its start.
pub const IDLE_VARIABLE: &str = "RPD_IDLE";

/// Name of the file in a run's directory with the options of the collector, for a process that was attached to.
pub const ATTACH_FILE: &str = "collector-options";

/// Largest size of that file, in bytes.
const LARGEST_OPTIONS: u64 = 1 << 20;

/// Begin of the name of the directory of a user's control pages; the user's number follows.
const DIRECTORY: &str = "rpd-idle-";
/// Begin of the name of a control page; what tells the process image apart follows, as in the name of its recording.
const FILE: &str = "idle-";

/// Directories in which the directory of control pages may be, in the order in which they are tried.
fn places() -> impl Iterator<Item = PathBuf> {
    let given = std::env::var_os(IDLE_VARIABLE).map(PathBuf::from);
    let given = given.filter(|path| path.is_absolute());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute());
    let usual = ["/dev/shm", "/tmp"].into_iter().map(PathBuf::from);
    given.into_iter().chain(runtime).chain(usual)
}

/// The directory of this user's control pages in `place`, made if it is not there. Only one of this user alone is used: in
/// a directory that all may write to, another may have made one of the same name.
fn directory(place: &Path) -> io::Result<PathBuf> {
    // SAFETY: the call has no arguments.
    let user = unsafe { libc::geteuid() };
    let path = place.join(format!("{DIRECTORY}{user}"));
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(&path)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(path)
}

/// The name of a process image's control page.
fn file_name(image: &ProcessImage) -> String {
    let name = image.directory();
    let rest = name.strip_prefix(super::image::PROCESS_PREFIX);
    format!("{FILE}{}", rest.unwrap_or(&name))
}

/// Whether a file in a directory of control pages was left by a process of this PID namespace that has ended.
fn is_left_over(name: &str, own: Option<u64>) -> bool {
    let image = name.strip_prefix(FILE).and_then(|rest| {
        ProcessImage::from_directory(&format!("{}{rest}", super::image::PROCESS_PREFIX))
    });
    image.is_some_and(|image| {
        image.namespace == own
            && own.is_some()
            && !Path::new(&format!("/proc/{}", image.pid)).exists()
    })
}

/// The control page of this process.
#[derive(Debug)]
pub struct IdlePage {
    /// The page.
    pub server: ControlServer,
    path: CString,
    pid: u32,
}

impl IdlePage {
    /// Makes the page of this process, and removes those of processes that have ended.
    ///
    /// # Errors
    /// No directory can be used; the error is that of the last one.
    pub fn create() -> io::Result<IdlePage> {
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for place in places() {
            match directory(&place).and_then(|directory| IdlePage::create_in(&directory)) {
                Ok(page) => return Ok(page),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn create_in(directory: &Path) -> io::Result<IdlePage> {
        let image = ProcessImage {
            pid: std::process::id(),
            loaded: now(),
            namespace: pid_namespace("self"),
        };
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name
                .to_str()
                .is_some_and(|name| is_left_over(name, image.namespace))
            {
                // Another process may have removed it.
                let _ = fs::remove_file(entry.path());
            }
        }
        let path = directory.join(file_name(&image));
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true);
        let file = options
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)?;
        let made = ControlServer::from_file(&file);
        if made.is_err() {
            let _ = fs::remove_file(&path);
        }
        Ok(IdlePage {
            server: made?,
            path: CString::new(path.into_os_string().into_vec())?,
            pid: image.pid,
        })
    }

    fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.as_bytes()))
    }

    /// Whether the rpd that attached still has the page locked. True where that cannot be found out.
    pub fn is_held(&self) -> bool {
        let opened = regular_file::open_writable(self.path(), Links::Refuse);
        match opened.map(|(file, _)| file.try_lock_shared()) {
            Ok(Ok(())) => false,
            Ok(Err(_)) | Err(_) => true,
        }
    }

    /// Whether this is the process that made the page, and not a child that was forked from it.
    pub fn is_own(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Removes the file: the process ends.
    pub fn remove(&self) {
        if self.is_own() {
            // SAFETY: the path is NUL-terminated.
            unsafe { libc::unlink(self.path.as_ptr()) };
        }
    }
}

/// The options in a run's directory for a process that is attached to, as text.
///
/// # Errors
/// When the file cannot be read.
pub fn read_options(run: &Path) -> io::Result<String> {
    let text = regular_file::read(&run.join(ATTACH_FILE), Links::Refuse, LARGEST_OPTIONS)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The path of the control page in a memory map (`/proc/PID/maps`), as the process sees it.
pub fn page_in_map(map: &[u8]) -> Option<PathBuf> {
    map.split(|byte| *byte == b'\n').find_map(|line| {
        let begin = line.iter().position(|byte| *byte == b'/')?;
        let path = Path::new(OsStr::from_bytes(&line[begin..]));
        let name = path.file_name()?.to_str()?;
        let parent = path.parent()?.file_name()?.to_str()?;
        let user = parent.strip_prefix(DIRECTORY)?;
        let is_page = name.starts_with(FILE) && user.bytes().all(|byte| byte.is_ascii_digit());
        is_page.then(|| path.to_owned())
    })
}

/// The control page of another process, locked for this one as long as the value lives.
#[derive(Debug)]
pub struct AttachedPage {
    /// The page.
    pub controller: Controller,
    /// Holds the lock.
    _file: File,
}

/// Reason why a control page cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// Another rpd is attached: its process id, as it knows it itself, if it has said so.
    #[error("another rpd is attached")]
    Held(Option<u32>),
    /// The page belongs to another user than the process does.
    #[error("its control page belongs to user {owner}, not to the process's user {user}")]
    Foreign {
        /// The user that the file belongs to.
        owner: u32,
        /// The user of the process.
        user: u32,
    },
    /// The page cannot be opened.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl AttachedPage {
    /// Opens and locks the page of a process of `user`. `path` is that of the file as seen from here.
    ///
    /// # Errors
    /// It cannot be opened, is not what it should be, or another rpd has it locked.
    pub fn open(path: &Path, user: u32) -> Result<AttachedPage, PageError> {
        let (file, metadata) = regular_file::open_writable(path, Links::Refuse)
            .map_err(|error: FileError| PageError::Io(error.into()))?;
        let owner = metadata.uid();
        if owner != user {
            return Err(PageError::Foreign { owner, user });
        }
        let locked = file.try_lock();
        let controller = Controller::from_file(&file, metadata.len())?;
        let controller = controller.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(PageError::Held(controller.holder())),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        controller.set_holder(Some(std::process::id()));
        Ok(AttachedPage {
            controller,
            _file: file,
        })
    }
}

impl Drop for AttachedPage {
    fn drop(&mut self) {
        self.controller.set_holder(None);
    }
}

/// Whether a process is attached to, and the rpd that is, as it knows itself. `path` is that of the control page as seen
/// from here.
///
/// # Errors
/// The page cannot be opened, or is none.
pub fn look(path: &Path) -> io::Result<(bool, Option<u32>)> {
    let (file, metadata) = regular_file::open_writable(path, Links::Refuse)?;
    let controller = Controller::from_file(&file, metadata.len())?;
    let controller = controller.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok((controller.state().is_on(), controller.holder()))
}

/// A path below the root directory that a process sees, as a path of this process.
pub fn seen_from_here(pid: u32, path: &Path) -> PathBuf {
    let below = path.strip_prefix("/").unwrap_or(path);
    let mut root = OsString::from(format!("/proc/{pid}/root/"));
    root.push(below);
    PathBuf::from(root)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn page_is_found_in_the_memory_map_that_has_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = self::directory(directory.path()).expect("made");
        assert_eq!(page_in_map(b"00-10 rw-s 00 00:01 7 /tmp/other\n"), None);
        let page = IdlePage::create_in(&place).expect("a page");
        let map = fs::read("/proc/self/maps").expect("procfs");
        assert_eq!(page_in_map(&map).as_deref(), Some(page.path()));
        let here = seen_from_here(std::process::id(), page.path());
        assert!(here.exists());
        page.remove();
        assert!(!here.exists());
    }

    #[test]
    fn page_is_locked_for_one_rpd_at_a_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = self::directory(directory.path()).expect("made");
        let page = IdlePage::create_in(&place).expect("a page");
        // SAFETY: the call has no arguments.
        let user = unsafe { libc::geteuid() };
        assert!(!page.is_held());
        let first = AttachedPage::open(page.path(), user).expect("opened");
        assert!(page.is_held());
        let own = std::process::id();
        let second = AttachedPage::open(page.path(), user);
        assert!(matches!(second, Err(PageError::Held(Some(pid))) if pid == own));
        drop(first);
        assert!(!page.is_held());
        let foreign = AttachedPage::open(page.path(), user + 1);
        assert!(matches!(foreign, Err(PageError::Foreign { .. })));
        assert!(AttachedPage::open(page.path(), user).is_ok());
    }

    #[test]
    fn pages_of_ended_processes_are_removed_by_the_next() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = self::directory(directory.path()).expect("made");
        let namespace = pid_namespace("self");
        let image = |pid| ProcessImage {
            pid,
            loaded: 1,
            namespace,
        };
        let files =
            [image(u32::MAX), image(std::process::id())].map(|it| place.join(file_name(&it)));
        for file in &files {
            fs::write(file, "").expect("written");
        }
        let _page = IdlePage::create_in(&place).expect("a page");
        assert_eq!(files.map(|file| file.exists()), [false, true]);
    }

    #[test]
    fn directory_that_others_may_write_to_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().expect("a directory");
        let made = directory(place.path()).expect("made");
        fs::set_permissions(&made, fs::Permissions::from_mode(0o777)).expect("changed");
        assert!(directory(place.path()).is_err());
    }
}
