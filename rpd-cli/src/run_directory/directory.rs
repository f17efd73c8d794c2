//! A directory that is accessed through an open descriptor and that only its owner can change.
//!
//! All operations use the descriptor, so that a directory or symbolic link that another user puts at its path
//! is never used.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use rpd_spool::regular_file::{self, FileError, Links};

use crate::failure::Failure;

const PRIVATE: Mode = Mode::S_IRWXU;
const OTHERS_WRITE: u32 = 0o022;

/// An open directory, which stays the same when its name is given to another.
#[derive(Debug)]
pub(crate) struct Directory {
    fd: OwnedFd,
    /// The path, for messages.
    path: PathBuf,
}

impl Directory {
    /// Opens a directory named by the user.
    pub(crate) fn open(path: &Path) -> io::Result<Directory> {
        let fd = open(path, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Directory {
            fd,
            path: path.to_owned(),
        })
    }

    /// The path by which the directory was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the directory again, with a descriptor of its own.
    pub(crate) fn reopen(&self) -> io::Result<Directory> {
        Ok(Directory {
            fd: self.descriptor()?,
            path: self.path.clone(),
        })
    }

    /// Duplicates the descriptor of the directory.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    /// Locks the directory for this process, as long as it is open. False when another process has it locked.
    ///
    /// # Errors
    /// The file system has no locks.
    pub(crate) fn try_lock(&self) -> io::Result<bool> {
        // The lock belongs to both descriptors.
        match File::from(self.descriptor()?).try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// A path to an entry that stays valid when the directory is moved. For this process only.
    pub(crate) fn inside(&self, name: impl AsRef<Path>) -> PathBuf {
        Path::new(&format!("/proc/self/fd/{}", self.fd.as_raw_fd())).join(name)
    }

    /// Opens a subdirectory that must belong to this user alone.
    ///
    /// # Errors
    /// The directory does not exist, is a symbolic link, belongs to another user, or is writable for others.
    pub(crate) fn directory(&self, name: &str) -> Result<Directory> {
        let directory = self.own(name)?;
        let mode = directory.mode()?;
        if mode & OTHERS_WRITE != 0 {
            return Err(Failure::failed(format!(
                "{}: others may write to it (mode {:o}), so what it holds cannot be trusted; if you know its content, take \
                 the permission away: chmod go-w",
                directory.path.display(),
                mode & 0o7777
            ))
            .into());
        }
        Ok(directory)
    }

    /// Opens the subdirectory `name` for this user alone, and creates it if it does not exist. Permissions of others are
    /// removed.
    pub(crate) fn make_or_open(&self, name: &str) -> Result<Directory> {
        match mkdirat(&self.fd, name, PRIVATE) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(self.failed("cannot make", name, error.into())),
        }
        let directory = self.own(name)?;
        if directory.mode()? & OTHERS_WRITE != 0 {
            // File systems without modes return an error or ignore the change.
            let _ = fchmod(&directory.fd, PRIVATE);
        }
        Ok(directory)
    }

    /// Creates a new subdirectory for this user alone.
    pub(crate) fn make(&self, name: &str) -> io::Result<Directory> {
        mkdirat(&self.fd, name, PRIVATE)?;
        self.descend(name)
    }

    fn descend(&self, name: &str) -> io::Result<Directory> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(Directory {
            fd: openat(&self.fd, name, flags, Mode::empty())?,
            path: self.path.join(name),
        })
    }

    /// Opens a subdirectory that must belong to this user.
    ///
    /// # Errors
    /// The directory does not exist, is a symbolic link or belongs to another user.
    pub(crate) fn own(&self, name: &str) -> Result<Directory> {
        let directory = self.descend(name).map_err(|error| {
            let path = self.path.join(name);
            let path = path.display();
            let link = std::fs::symlink_metadata(self.inside(name))
                .is_ok_and(|found| found.file_type().is_symlink());
            let text = match error.raw_os_error() {
                _ if link => format!(
                    "{path} is a symbolic link; rpd uses only a directory here: remove the link"
                ),
                Some(libc::ENOTDIR) => {
                    format!("{path} is not a directory; rpd needs a directory here: remove it")
                }
                // The error's kind shows callers that another rpd may have removed the directory.
                Some(libc::ENOENT) => {
                    let text = format!("{path}: No such directory");
                    return io::Error::new(io::ErrorKind::NotFound, text).into();
                }
                _ => format!("{path} cannot be opened: {error}"),
            };
            anyhow::Error::from(Failure::failed(text))
        })?;
        directory.check_owner()?;
        Ok(directory)
    }

    /// Whether the entry of this name is that directory.
    pub(crate) fn is_at(&self, name: &str, directory: &Directory) -> bool {
        let here = fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let (Ok(here), Ok(there)) = (here, fstat(&directory.fd)) else {
            return false;
        };
        (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
    }

    /// Whether there is an entry of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    fn mode(&self) -> Result<u32> {
        let found = fstat(&self.fd).with_context(|| self.path.display().to_string())?;
        Ok(found.st_mode)
    }

    /// Returns an error for a directory of another user.
    fn check_owner(&self) -> Result<()> {
        let context = || self.path.display().to_string();
        let owner = fstat(&self.fd).with_context(context)?.st_uid;
        let own = geteuid().as_raw();
        if owner == own || self.owner_of_new_files() == Some(owner) {
            return Ok(());
        }
        Err(Failure::failed(format!(
            "{} belongs to user {owner}, not to you (user {own}); choose an output directory of your own, or run rpd as its \
             owner",
            self.path.display()
        ))
        .into())
    }

    /// The owner of files that this process creates here: on some network file systems not the process's user.
    fn owner_of_new_files(&self) -> Option<u32> {
        let file = tempfile::tempfile_in(self.inside("")).ok()?;
        fstat(file.as_fd()).ok().map(|found| found.st_uid)
    }

    /// Names of the directory's entries.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let context = || format!("{} cannot be read", self.path.display());
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.inside("")).with_context(context)? {
            // Names that are not UTF-8 were not made by rpd.
            if let Ok(name) = entry.with_context(context)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Reads a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>, FileError> {
        regular_file::read(&self.inside(name), Links::Refuse, limit)
    }

    /// Writes a file, replacing an existing one by a rename.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let fresh = format!(".{name}.{}-{number}", std::process::id());
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let attempt = || -> io::Result<()> {
            let create = || {
                openat(
                    &self.fd,
                    fresh.as_str(),
                    flags,
                    Mode::S_IRUSR | Mode::S_IWUSR,
                )
            };
            let file = match create() {
                // Left over by a killed process with the same id.
                Err(Errno::EEXIST) => {
                    unlinkat(&self.fd, fresh.as_str(), UnlinkatFlags::NoRemoveDir)?;
                    create()
                }
                other => other,
            }?;
            let written = File::from(file)
                .write_all(content)
                .and_then(|()| Ok(renameat(&self.fd, fresh.as_str(), &self.fd, name)?));
            if written.is_err() {
                let _ = unlinkat(&self.fd, fresh.as_str(), UnlinkatFlags::NoRemoveDir);
            }
            written
        };
        attempt().map_err(|error| self.failed("cannot write", name, error))
    }

    /// Renames an entry of the directory.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Removes a subdirectory with its content. Symbolic links are removed, not followed.
    pub(crate) fn remove_all(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        std::fs::remove_dir_all(self.inside(Path::new(name.as_ref())))
    }

    /// Removes an empty subdirectory.
    pub(crate) fn remove_empty(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, UnlinkatFlags::RemoveDir)?)
    }

    fn failed(&self, what: &str, name: &str, error: io::Error) -> anyhow::Error {
        let path = self.path.join(name);
        Failure::failed(format!("{what} {}: {error}", path.display())).into()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.expect_err("refused").to_string()
    }

    #[test]
    fn directory_open_refuses_links_and_files() {
        let place = tempfile::tempdir().expect("a directory");
        let outer = Directory::open(place.path()).expect("opened");
        std::fs::create_dir(place.path().join("real")).expect("made");
        symlink("real", place.path().join("link")).expect("a link");
        symlink("none", place.path().join("dangling")).expect("a link");
        std::fs::write(place.path().join("file"), "").expect("written");
        for (name, part) in [
            ("link", "is a symbolic link"),
            ("dangling", "is a symbolic link"),
            ("file", "is not a directory"),
        ] {
            assert!(message(outer.make_or_open(name)).contains(part), "{name}");
            assert!(message(outer.directory(name)).contains(part), "{name}");
        }
        assert!(message(outer.directory("none")).ends_with("none: No such directory"));
        outer.directory("real").expect("a directory");
    }

    #[test]
    fn directory_check_refuses_directories_that_others_can_change() {
        let place = tempfile::tempdir().expect("a directory");
        let outer = Directory::open(place.path()).expect("opened");
        let path = place.path().join("open");
        std::fs::create_dir(&path).expect("made");
        std::fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("changed");
        assert!(message(outer.directory("open")).contains("others may write to it (mode 777)"));
        // For a new run the permission is removed.
        outer.make_or_open("open").expect("usable");
        outer.directory("open").expect("private by now");
    }

    #[test]
    fn directory_check_refuses_directories_of_other_users() {
        if !geteuid().is_root() {
            return rpd_tests::skips::skipped(
                "directories of another user",
                "only root can make them",
            );
        }
        let place = tempfile::tempdir().expect("a directory");
        let outer = Directory::open(place.path()).expect("opened");
        let path = place.path().join("theirs");
        std::fs::create_dir(&path).expect("made");
        chown(&path, Some(54_321), None).expect("root may");
        for refused in [outer.directory("theirs"), outer.make_or_open("theirs")] {
            let text = message(refused);
            assert!(
                text.contains("theirs belongs to user 54321, not to you (user 0)"),
                "{text}"
            );
        }
    }

    #[test]
    fn directory_stays_the_opened_one_when_its_name_is_replaced() {
        let place = tempfile::tempdir().expect("a directory");
        let outer = Directory::open(place.path()).expect("opened");
        let directory = outer.make("mine").expect("made");
        let path = |name: &str| place.path().join(name);
        std::fs::rename(path("mine"), path("moved")).expect("moved");
        std::fs::create_dir(path("mine")).expect("made");
        let victim = path("victim");
        std::fs::write(&victim, "precious").expect("written");
        symlink(&victim, path("mine/state")).expect("a link");
        symlink(&victim, path("moved/state")).expect("a link");
        directory.write("state", b"fresh").expect("written");
        assert_eq!(std::fs::read_to_string(&victim).expect("there"), "precious");
        assert_eq!(directory.read("state", 10).expect("read"), b"fresh");
        assert_eq!(
            std::fs::read_to_string(path("moved/state")).expect("there"),
            "fresh"
        );
        assert!(path("mine/state").is_symlink());
        assert_eq!(directory.names().expect("listed"), ["state"]);
    }
}
