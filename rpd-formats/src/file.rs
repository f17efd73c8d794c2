//! Files that appear under their final name only when they are complete.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{WriteError, progress};

/// Bytes collected before they are written.
const BUFFER: usize = 256 << 10;

/// A file in the making.
pub(crate) struct PendingFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl PendingFile {
    /// A temporary file beside `path`; missing directories are made.
    pub(crate) fn create(path: PathBuf) -> Result<PendingFile, WriteError> {
        match Self::temporary(&path) {
            Ok(file) => Ok(PendingFile { path, file }),
            Err(source) => Err(WriteError::Io { path, source }),
        }
    }

    fn temporary(path: &Path) -> io::Result<NamedTempFile> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(directory)?;
        tempfile::Builder::new()
            .prefix(".rpd-")
            .suffix(".part")
            // The mode of any other new file: what the umask leaves of it.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
    }

    /// Where its bytes are until it is finished.
    pub(crate) fn temporary_path(&self) -> &Path {
        self.file.path()
    }

    /// The name it will have.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself.
    pub(crate) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives it its name.
    pub(crate) fn finish(self) -> Result<PathBuf, WriteError> {
        match self.file.persist(&self.path) {
            Ok(_) => Ok(self.path),
            Err(error) => Err(WriteError::Io {
                path: self.path,
                source: error.error,
            }),
        }
    }
}

/// A file of text, buffered in a vector that callers append to.
pub(crate) struct TextFile {
    pending: PendingFile,
    /// Not yet written.
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
            Err(source) => Err(WriteError::Io {
                path: self.pending.path.clone(),
                source,
            }),
        }
    }

    pub(crate) fn finish(mut self) -> Result<PathBuf, WriteError> {
        self.flush()?;
        self.pending.finish()
    }
}
