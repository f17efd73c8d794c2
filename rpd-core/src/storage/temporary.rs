//! Temporary files and directories: the one place that makes them.
//!
//! Temporary files are for this user alone (mode 0600 and 0700). Their names hold the process that made them. They are removed when they are
//! dropped, by the signals that end a process and can be caught, and, after a process that was killed, by the next one of this user
//! that makes one in the same directory.

use std::collections::{BTreeSet, HashSet};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, SystemTime};

use nix::sys::signal::{SigSet, SigmaskHow};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::{NamedTempFile, TempDir};

use crate::procfs;

const PREFIX: &str = ".rpd-";
const SUFFIX: &str = ".part";
/// Ends of the names of files that SQLite makes beside a database.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];
/// Age of the last change after which files of another machine or container are assumed to be abandoned.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
/// The signals that end a process unless it handles them, and at which temporary files are removed.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Absolute paths of the files and directories that this process has to remove.
static ALIVE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn alive() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The listing of one path in [`ALIVE`].
#[derive(Debug)]
struct Listing(PathBuf);

impl Listing {
    /// Makes something and lists its path. A signal in between waits.
    fn of<T>(
        make: impl FnOnce() -> io::Result<T>,
        path: impl FnOnce(&T) -> &Path,
    ) -> io::Result<(T, Listing)> {
        remove_at_signals();
        let mut alive = alive();
        let made = make()?;
        let path = std::path::absolute(path(&made))?;
        alive.insert(path.clone());
        Ok((made, Listing(path)))
    }

    /// Renames the listed file or directory by calling `rename`. It is no longer on the list then, so that it stays
    /// under its new name.
    fn rename(self, rename: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut alive = alive();
        let renamed = rename();
        if renamed.is_ok() {
            alive.remove(&self.0);
        }
        drop(alive);
        renamed
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        alive().remove(&self.0);
    }
}

/// A file that is removed unless it gets a final name.
#[derive(Debug)]
pub struct TemporaryFile {
    file: NamedTempFile,
    listing: Listing,
}

impl TemporaryFile {
    /// Makes an empty file, which this process can read and write, in a directory.
    ///
    /// # Errors
    /// When it cannot be made.
    #[expect(clippy::disallowed_methods, reason = "the one place")]
    pub fn in_directory(directory: &Path) -> io::Result<TemporaryFile> {
        let make = || {
            tempfile::Builder::new()
                .prefix(&prefix())
                .suffix(SUFFIX)
                .tempfile_in(directory)
        };
        let (file, listing) = Listing::of(make, NamedTempFile::path)?;
        sweep_once(directory, file.as_file().metadata());
        Ok(TemporaryFile { file, listing })
    }

    /// Makes an empty file in the directory for temporary files (`TMPDIR`, or `/tmp`).
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> io::Result<TemporaryFile> {
        TemporaryFile::in_directory(&std::env::temp_dir())
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The open file.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives the file its final name and mode; a file of that name is replaced.
    ///
    /// # Errors
    /// When it cannot be renamed; it is removed then.
    pub fn persist(self, path: &Path, mode: u32) -> io::Result<()> {
        let TemporaryFile { file, listing } = self;
        file.as_file()
            .set_permissions(Permissions::from_mode(mode))?;
        listing.rename(|| match file.persist(path) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.error),
        })
    }
}

/// A directory that is removed with all in it unless it gets a final name.
#[derive(Debug)]
pub struct TemporaryDirectory {
    directory: TempDir,
    listing: Listing,
}

impl TemporaryDirectory {
    /// Makes an empty temporary directory in `directory`.
    ///
    /// # Errors
    /// When it cannot be made.
    #[expect(clippy::disallowed_methods, reason = "the one place")]
    pub fn in_directory(directory: &Path) -> io::Result<TemporaryDirectory> {
        let make = || {
            tempfile::Builder::new()
                .prefix(&prefix())
                .suffix(SUFFIX)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(directory)
        };
        let (made, listing) = Listing::of(make, TempDir::path)?;
        sweep_once(directory, std::fs::symlink_metadata(made.path()));
        Ok(TemporaryDirectory {
            directory: made,
            listing,
        })
    }

    /// Makes an empty directory in that for temporary files (`TMPDIR`, or `/tmp`).
    ///
    /// # Errors
    /// When it cannot be made; the message names the place and `TMPDIR`.
    pub fn new() -> io::Result<TemporaryDirectory> {
        let place = std::env::temp_dir();
        TemporaryDirectory::in_directory(&place).map_err(|error| {
            let text = format!(
                "cannot make a temporary directory in {}: {error}; set TMPDIR to a place where that is possible",
                place.display()
            );
            io::Error::new(error.kind(), text)
        })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Gives the directory its final name, and the mode of a new directory of the user.
    ///
    /// # Errors
    /// When it cannot be renamed; it is removed then.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        let TemporaryDirectory { directory, listing } = self;
        let made = directory.path();
        std::fs::set_permissions(made, Permissions::from_mode(new_directory_mode()))?;
        listing.rename(|| std::fs::rename(made, path))?;
        // Its name is gone, so that there is nothing to remove.
        let _ = directory.keep();
        Ok(())
    }
}

/// Mode of a new file of this user: 0666 less the file mode creation mask.
pub fn new_file_mode() -> u32 {
    0o666 & !*CREATION_MASK
}

/// Mode of a new directory of this user: 0777 less the file mode creation mask.
pub fn new_directory_mode() -> u32 {
    0o777 & !*CREATION_MASK
}

/// The file mode creation mask that the process was started with. Where it cannot be read files are for their owner alone.
static CREATION_MASK: LazyLock<u32> = LazyLock::new(|| {
    let field = procfs::own_status("Umask").and_then(|mask| u32::from_str_radix(&mask, 8).ok());
    field.unwrap_or(0o077)
});

/// Removes the temporary files and directories of this process, before the process ends in another way than by
/// returning from `main`. A thread that makes one afterwards waits for ever.
pub fn remove_all() {
    let alive = alive();
    for path in &*alive {
        // Another thread may be making files in it.
        for _ in 0..3 {
            match remove(path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                _ => break,
            }
        }
    }
    std::mem::forget(alive);
}

/// Removes a directory with all in it, or a file, and what belongs to it where it is a database. Nothing follows symbolic links.
fn remove(path: &Path) -> io::Result<()> {
    for ending in COMPANIONS {
        let mut companion = path.as_os_str().to_owned();
        companion.push(ending);
        let _ = std::fs::remove_file(companion);
    }
    if std::fs::symlink_metadata(path)?.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    }
}

/// Installs handlers, so that the signals that end this process remove its temporary files first. A signal that was
/// ignored when the process was started is still ignored, and a blocked one is left to the thread that blocks it.
fn remove_at_signals() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let ignored = procfs::own_status("SigIgn")
            .and_then(|mask| u64::from_str_radix(&mask, 16).ok())
            .unwrap_or(0);
        let is_ignored = |signal: i32| ignored & (1 << (signal - 1)) != 0;
        let handled: Vec<i32> = ENDING
            .into_iter()
            .filter(|signal| !is_ignored(*signal))
            .collect();
        // In the new thread all signals are blocked: those that the other threads block have to stay pending.
        let Ok(mask) = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK) else {
            return;
        };
        let started = Signals::new(&handled).and_then(|mut signals| {
            let thread = std::thread::Builder::new().name("rpd-signals".to_owned());
            thread.spawn(move || {
                for signal in signals.forever() {
                    remove_all();
                    // Ends the process.
                    let _ = emulate_default_handler(signal);
                }
            })
        });
        let _ = mask.thread_set_mask();
        if started.is_err() {
            // A signal that was to be handled by the thread would be lost.
            for signal in handled {
                let _ = register_conditional_default(signal, Arc::new(AtomicBool::new(true)));
            }
        }
    });
}

/// Identifies the machine since its boot, and the PID namespace.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
fn system() -> u32 {
    static SYSTEM: LazyLock<u32> = LazyLock::new(|| {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let namespace = namespace.as_os_str().as_encoded_bytes();
        // FNV-1a: the same in all versions of rpd.
        let bytes = boot.iter().chain(namespace);
        bytes.fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        })
    });
    *SYSTEM
}

/// Prefix of this process's temporary names: machine, process id and start time.
fn prefix() -> String {
    let pid = std::process::id();
    let start = procfs::stat(pid).map_or(0, |stat| stat.start);
    format!("{PREFIX}{:08x}-{pid}-{start}-", system())
}

/// Whether the process that made the temporary file of this name still runs. `None` for other names.
fn is_in_use(name: &str, age: Option<Duration>) -> Option<bool> {
    let of_database = |ending| name.strip_suffix(ending);
    let name = COMPANIONS.into_iter().find_map(of_database).unwrap_or(name);
    let inner = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let mut parts = inner.splitn(4, '-');
    let place = u32::from_str_radix(parts.next()?, 16).ok()?;
    let pid: u32 = parts.next()?.parse().ok()?;
    let start: u64 = parts.next()?.parse().ok()?;
    parts.next()?;
    Some(if place == system() {
        procfs::stat(pid).is_some_and(|stat| stat.runs && stat.start == start)
    } else {
        age.is_none_or(|age| age < ABANDONED)
    })
}

/// Removes files that killed processes left in a directory, when this process first makes something there. `own` is the
/// metadata of a file that this process made.
fn sweep_once(directory: &Path, own: io::Result<Metadata>) {
    static SWEPT: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let fresh = SWEPT
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .insert(directory.to_owned());
    if fresh && let Ok(own) = own {
        sweep(directory, own.uid());
    }
}

/// Removes files that dead processes of a user left in a directory. Files that cannot be removed stay.
fn sweep(directory: &Path, user: u32) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
            continue;
        };
        let path = entry.path();
        let Ok(found) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        let age = found
            .modified()
            .ok()
            .and_then(|time| SystemTime::now().duration_since(time).ok());
        if found.uid() == user && is_in_use(name, age) == Some(false) {
            let _ = remove(&path);
        }
    }
}

/// Removes files that killed processes of this user left in a directory.
pub fn remove_abandoned(directory: &Path) {
    // Owner of the files that this process makes there: on some network file systems not the process's user.
    if let Ok(own) = tempfile::tempfile_in(directory).and_then(|file| file.metadata()) {
        sweep(directory, own.uid());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweep_removes_temporary_files_of_dead_processes() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let own = prefix();
        let dead = format!("{PREFIX}{:08x}-{}-1-", system(), std::process::id());
        let elsewhere = format!("{PREFIX}{:08x}-{}-1-", system() ^ 1, std::process::id());
        let gone = [
            format!("{dead}AbC.part"),
            format!("{dead}dir.part"),
            format!("{elsewhere}old.part"),
            format!("{dead}alone.part-journal"),
        ];
        let kept = [
            format!("{own}AbC.part"),
            format!("{own}AbC.part-journal"),
            format!("{elsewhere}new.part"),
            format!("{dead}AbC.db"),
            ".rpd-mine.part".to_owned(),
            "x.part".to_owned(),
        ];
        for name in gone.iter().chain(&kept) {
            if name.contains("dir") {
                std::fs::create_dir(path(name)).expect("made")
            } else {
                std::fs::write(path(name), "").expect("written")
            }
        }
        std::fs::write(path(&gone[1]).join("file"), "").expect("written");
        let old = SystemTime::now() - ABANDONED - Duration::from_secs(60);
        let file = File::options().write(true).open(path(&gone[2]));
        file.and_then(|file| file.set_modified(old)).expect("set");
        // The file belongs to another user.
        sweep(directory.path(), u32::MAX);
        assert!(gone.iter().all(|name| path(name).exists()));
        drop(TemporaryDirectory::in_directory(directory.path()).expect("made"));
        for name in &gone {
            assert!(!path(name).exists(), "{name}");
        }
        for name in &kept {
            assert!(path(name).exists(), "{name}");
        }
    }

    #[test]
    fn temporary_file_is_readable_by_its_owner_only_until_it_is_renamed() {
        let place = tempfile::tempdir().expect("a directory");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").mode() & 0o7777;
        let file = TemporaryFile::in_directory(place.path()).expect("made");
        let directory = TemporaryDirectory::in_directory(place.path()).expect("made");
        assert_eq!((mode(file.path()), mode(directory.path())), (0o600, 0o700));
        let left = TemporaryFile::in_directory(place.path()).expect("made");
        let left_path = left.path().to_owned();
        drop(left);
        assert!(!left_path.exists());
        let (file_path, directory_path) = (place.path().join("x"), place.path().join("d"));
        file.persist(&file_path, 0o640).expect("renamed");
        directory.persist(&directory_path).expect("renamed");
        assert_eq!(mode(&file_path), 0o640);
        assert_eq!(mode(&directory_path), new_directory_mode());
        let listed = alive();
        assert!(!listed.iter().any(|path| path.starts_with(place.path())));
    }
}
