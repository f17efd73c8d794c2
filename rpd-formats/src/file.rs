//! Files that appear under their final name only when they are complete.

use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rpd_core::storage::temporary::{TemporaryDirectory, TemporaryFile, new_file_mode};

use crate::destination::Destination;
use crate::{WriteError, progress};

/// Bytes collected before they are written.
const BUFFER: usize = 256 << 10;

/// A file in the making, under a temporary name beside the final one.
#[derive(Debug)]
pub struct PendingFile {
    /// The name that errors give.
    path: PathBuf,
    end: End,
    file: TemporaryFile,
}

/// Destination of a complete file.
#[derive(Debug)]
enum End {
    /// The file gets this name.
    Name(PathBuf),
    /// The bytes of the file are written to this device or pipe.
    Stream(Destination),
}

impl PendingFile {
    /// Begins a file of an output directory; missing directories are made. An existing file or symbolic link of that name is
    /// replaced in the end. The one file of a command, whose path the user wrote, is made with [`PendingFile::to`].
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: PathBuf) -> Result<PendingFile, WriteError> {
        match beside(&path) {
            Ok(file) => Ok(PendingFile {
                end: End::Name(path.clone()),
                path,
                file,
            }),
            Err(source) => Err(WriteError::Io { path, source }),
        }
    }

    /// Begins the one file of a command.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn to(destination: Destination) -> Result<PendingFile, WriteError> {
        let path = destination.path().to_owned();
        let name = destination.file().map(Path::to_owned);
        let file = match &name {
            Some(name) => beside(name),
            // Its writer moves in it, which is not possible in a stream.
            None => TemporaryFile::new(),
        };
        let file = match file {
            Ok(file) => file,
            Err(source) => return Err(WriteError::Io { path, source }),
        };
        Ok(match name {
            Some(name) => PendingFile {
                path,
                end: End::Name(name),
                file,
            },
            // A disk that is full meanwhile is that of the temporary file.
            None => PendingFile {
                path: file.path().to_owned(),
                end: End::Stream(destination),
                file,
            },
        })
    }

    /// Path of the bytes until the file is finished.
    pub(crate) fn temporary_path(&self) -> &Path {
        self.file.path()
    }

    /// The name that errors of writing it give: the final one, or that of the temporary file when its bytes go to a stream.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, still under its temporary name.
    pub fn file(&mut self) -> &mut File {
        self.file.file()
    }

    /// Renames the file to its final name, or writes it to the stream that is its destination. Returns that as it was named.
    ///
    /// # Errors
    /// When that is not possible; the file is removed then.
    pub fn finish(self) -> Result<PathBuf, WriteError> {
        let PendingFile {
            path,
            end,
            mut file,
        } = self;
        match end {
            End::Name(name) => {
                let renamed = final_mode(&name).and_then(|mode| file.persist(&name, mode));
                match renamed {
                    Ok(()) => Ok(path),
                    Err(source) => Err(WriteError::Io { path, source }),
                }
            }
            End::Stream(destination) => {
                let read = |source| WriteError::Io {
                    path: path.clone(),
                    source,
                };
                let named = destination.path().to_owned();
                file.file().rewind().map_err(read)?;
                destination.write(|out| match io::copy(file.file(), out) {
                    Ok(_) => Ok(()),
                    Err(source) => Err(read(source)),
                })?;
                Ok(named)
            }
        }
    }
}

/// The mode of a complete file: that of the file which it replaces, or that of a new file.
fn final_mode(name: &Path) -> io::Result<u32> {
    match std::fs::symlink_metadata(name) {
        Ok(found) if found.is_file() => Ok(found.permissions().mode() & 0o777),
        Ok(found) if found.is_symlink() => Ok(new_file_mode()),
        Ok(_) => Err(io::Error::other(
            "there is something of that name that is no regular file, which is not replaced",
        )),
        Err(_) => Ok(new_file_mode()),
    }
}

/// A temporary file beside `path`; missing directories are made.
fn beside(path: &Path) -> io::Result<TemporaryFile> {
    let directory = parent(path);
    std::fs::create_dir_all(directory)?;
    TemporaryFile::in_directory(directory)
}

/// A temporary directory beside `path`; missing directories are made.
pub(crate) fn pending_directory(path: &Path) -> io::Result<TemporaryDirectory> {
    let directory = parent(path);
    std::fs::create_dir_all(directory)?;
    TemporaryDirectory::in_directory(directory)
}

/// The directory that holds a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
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
    fn new_file_replaces_a_link_and_does_not_follow_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
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

    #[test]
    fn new_file_replaces_nothing_but_regular_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.csv");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let file = PendingFile::create(path.clone()).expect("made");
        let error = file.finish().expect_err("refused").to_string();
        assert!(
            error.contains("x.csv") && error.contains("not replaced"),
            "{error}"
        );
        let left = std::fs::read_dir(directory.path()).expect("read").count();
        assert_eq!(left, 1, "{}", path.display());
    }

    #[test]
    fn new_file_keeps_the_mode_of_the_replaced_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.csv");
        let mode = || {
            std::fs::metadata(&path)
                .expect("there")
                .permissions()
                .mode()
                & 0o7777
        };
        let make = || PendingFile::create(path.clone()).and_then(PendingFile::finish);
        make().expect("made");
        assert_eq!(mode(), new_file_mode());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
        make().expect("made");
        assert_eq!(mode(), 0o600);
    }
}
