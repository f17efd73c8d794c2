//! Files that appear under their final name only when they are complete.
//!
//! Until then they have a temporary name beside it that names the process, so that the files of a killed process
//! are recognised and removed.

use std::collections::HashSet;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rpd_core::procfs;
use tempfile::{NamedTempFile, TempDir};

use crate::{WriteError, progress};

/// Bytes collected before they are written.
const BUFFER: usize = 256 << 10;

const PREFIX: &str = ".rpd-";
const SUFFIX: &str = ".part";
/// Age of the last change after which a temporary file of another machine or container is assumed to be abandoned.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A file in the making.
#[derive(Debug)]
pub struct PendingFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl PendingFile {
    /// A temporary file beside `path`; missing directories are made.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: PathBuf) -> Result<PendingFile, WriteError> {
        match Self::temporary(&path) {
            Ok(file) => Ok(PendingFile { path, file }),
            Err(source) => Err(WriteError::Io { path, source }),
        }
    }

    fn temporary(path: &Path) -> io::Result<NamedTempFile> {
        let directory = parent(path);
        std::fs::create_dir_all(directory)?;
        let file = tempfile::Builder::new()
            .prefix(&prefix())
            .suffix(SUFFIX)
            // The mode of any other new file: 0666 less the umask.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)?;
        sweep_once(directory, file.as_file().metadata());
        Ok(file)
    }

    /// Path of the bytes until the file is finished.
    pub(crate) fn temporary_path(&self) -> &Path {
        self.file.path()
    }

    /// The name it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, still under its temporary name.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Renames the file to its final name. An existing file or symbolic link of that name is replaced.
    ///
    /// # Errors
    /// When it cannot be renamed; it is removed then.
    pub fn finish(self) -> Result<PathBuf, WriteError> {
        match self.file.persist(&self.path) {
            Ok(_) => Ok(self.path),
            Err(error) => Err(WriteError::Io {
                path: self.path,
                source: error.error,
            }),
        }
    }
}

/// A temporary directory beside `path`, for this user alone; missing directories are made.
pub(crate) fn pending_directory(path: &Path) -> io::Result<TempDir> {
    let directory = parent(path);
    std::fs::create_dir_all(directory)?;
    let made = tempfile::Builder::new()
        .prefix(&prefix())
        .suffix(SUFFIX)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(directory)?;
    sweep_once(directory, std::fs::symlink_metadata(made.path()));
    Ok(made)
}

/// The directory that holds a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Identifies the machine since its boot, and the PID namespace.
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

/// Whether the process that made the temporary file of this name still writes it. `None` for other names.
fn is_written(name: &str, age: Option<Duration>) -> Option<bool> {
    let inner = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let mut parts = inner.splitn(4, '-');
    let place = u32::from_str_radix(parts.next()?, 16).ok()?;
    let pid: u32 = parts.next()?.parse().ok()?;
    let start: u64 = parts.next()?.parse().ok()?;
    parts.next()?;
    Some(match place == system() {
        true => procfs::stat(pid).is_some_and(|stat| stat.runs && stat.start == start),
        false => age.is_none_or(|age| age < ABANDONED),
    })
}

/// Removes temporary files that killed processes left in a directory, when this process first makes one there. `own` is
/// what the operating system reports for that one.
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

/// Removes temporary files of a user's that dead processes left in a directory. What cannot be removed stays.
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
        if found.uid() != user || is_written(name, age) != Some(false) {
            continue;
        }
        // Neither follows symbolic links.
        let _ = match found.is_dir() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
    }
}

/// Removes temporary files that killed processes of this user left in a directory.
pub fn remove_abandoned(directory: &Path) {
    // Owner of the files that this process makes there: on some network file systems not the process's user.
    if let Ok(own) = tempfile::tempfile_in(directory).and_then(|file| file.metadata()) {
        sweep(directory, own.uid());
    }
}

/// A file of text, buffered in a vector that callers append to.
pub(crate) struct TextFile {
    pending: PendingFile,
    /// Bytes that are not yet written to the file.
    pub(crate) buffer: Vec<u8>,
    /// Rows in it, as far as they were announced.
    rows: u64,
}

impl TextFile {
    pub(crate) fn create(path: PathBuf) -> Result<TextFile, WriteError> {
        Ok(TextFile {
            pending: PendingFile::create(path)?,
            buffer: Vec::with_capacity(BUFFER + 4096),
            rows: 0,
        })
    }

    /// Writes the buffer out when there is enough in it; to be called after each row.
    #[inline]
    pub(crate) fn flush_if_full(&mut self) -> Result<(), WriteError> {
        self.rows += 1;
        self.make_room()
    }

    /// Writes the buffer out when there is enough in it; to be called after a piece that is no row.
    #[inline]
    pub(crate) fn make_room(&mut self) -> Result<(), WriteError> {
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    #[cold]
    fn flush(&mut self) -> Result<(), WriteError> {
        match self.pending.file().write_all(&self.buffer) {
            Ok(()) => {
                self.buffer.clear();
                progress::advance(std::mem::take(&mut self.rows));
                Ok(())
            }
            Err(source) => Err(self.failed(source)),
        }
    }

    /// An error of writing this file.
    pub(crate) fn failed(&self, source: io::Error) -> WriteError {
        WriteError::Io {
            path: self.pending.path.clone(),
            source,
        }
    }

    pub(crate) fn finish(mut self) -> Result<PathBuf, WriteError> {
        self.flush()?;
        self.pending.finish()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files that are there before")]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_dead_processes_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let own = prefix();
        let dead = format!("{PREFIX}{:08x}-{}-1-", system(), std::process::id());
        let elsewhere = format!("{PREFIX}{:08x}-{}-1-", system() ^ 1, std::process::id());
        let gone = [
            format!("{dead}AbC.part"),
            format!("{dead}dir.part"),
            format!("{elsewhere}old.part"),
        ];
        let kept = [
            format!("{own}AbC.part"),
            format!("{elsewhere}new.part"),
            format!("{dead}AbC.db"),
            ".rpd-mine.part".to_owned(),
            "x.part".to_owned(),
        ];
        for name in gone.iter().chain(&kept) {
            match name.contains("dir") {
                true => std::fs::create_dir(path(name)).expect("made"),
                false => std::fs::write(path(name), "").expect("written"),
            }
        }
        let old = SystemTime::now() - ABANDONED - Duration::from_secs(60);
        let file = File::options().write(true).open(path(&gone[2]));
        file.and_then(|file| file.set_modified(old)).expect("set");
        // The file belongs to another user.
        sweep(folder.path(), u32::MAX);
        assert!(gone.iter().all(|name| path(name).exists()));
        let pending = PendingFile::create(path("x.csv")).expect("made");
        for name in &gone {
            assert!(!path(name).exists(), "{name}");
        }
        for name in &kept {
            assert!(path(name).exists(), "{name}");
        }
        pending.finish().expect("renamed");
        assert!(path("x.csv").is_file());
    }

    #[test]
    fn outputs_replace_links_and_do_not_follow_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("victim"), "precious").expect("written");
        std::os::unix::fs::symlink("victim", path("x.csv")).expect("a link");
        let mut file = TextFile::create(path("x.csv")).expect("made");
        file.buffer.extend(b"fresh");
        file.finish().expect("written");
        let read = |name: &str| std::fs::read_to_string(path(name)).expect("there");
        assert_eq!(
            (read("victim"), read("x.csv")),
            ("precious".into(), "fresh".into())
        );
        assert!(!path("x.csv").is_symlink());
    }
}
