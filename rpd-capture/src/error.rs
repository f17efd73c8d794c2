//! Errors, and the class that decides the exit status.

use std::path::{Path, PathBuf};

use rpd_spool::regular_file::FileError;

/// Class of the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Something else: a file cannot be written, there is no space.
    Failed,
    /// The capture is incomplete, damaged or of another version.
    Damaged,
}

/// Reason why a capture cannot be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The directory is not a capture.
    #[error("{path} is not a capture: {reason}")]
    NoCapture {
        /// Path of the directory.
        path: PathBuf,
        /// The file or entry that is missing.
        reason: String,
    },
    /// Part of the capture is damaged.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem, with its place.
        reason: String,
    },
    /// Made by a newer version.
    #[error("{path} has format version {found}; this rpd reads up to {known}: use a newer rpd")]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Version of the format that the file has.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// SQLite cannot read or write the database.
    #[error("{path}: {}", in_one_line(source))]
    Database {
        /// Path of the database.
        path: PathBuf,
        /// Error that SQLite reported.
        source: rusqlite::Error,
    },
    /// No call of the excerpt can be played.
    #[error("{path}: none of the calls {} to {} can be played", calls.0, calls.1)]
    EmptyExcerpt {
        /// Path of the capture.
        path: PathBuf,
        /// The first and the last call that were requested.
        calls: (u64, u64),
    },
    /// The capture has no such call.
    #[error("{path} has no call {seq}; the last is {last}")]
    NoCall {
        /// Path of the capture.
        path: PathBuf,
        /// Number of the call that was requested.
        seq: u64,
        /// Number of the last call.
        last: u64,
    },
}

/// SQLite's message in one line, without the statement.
fn in_one_line(error: &rusqlite::Error) -> String {
    let message = match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    // Names in a damaged database may have any characters.
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl CaptureError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> CaptureError {
        let path = path.to_owned();
        move |source| CaptureError::Io { path, source }
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(FileError) -> CaptureError {
        let io = CaptureError::io(path);
        move |error| io(error.into())
    }

    pub(crate) fn database(path: &Path) -> impl FnOnce(rusqlite::Error) -> CaptureError {
        let path = path.to_owned();
        move |source| CaptureError::Database { path, source }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> CaptureError {
        CaptureError::Damaged {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    /// Class of the failure.
    pub fn class(&self) -> Class {
        match self {
            CaptureError::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::UnexpectedEof => Class::Damaged,
                _ => Class::Failed,
            },
            CaptureError::NoCapture { .. }
            | CaptureError::NoCall { .. }
            | CaptureError::EmptyExcerpt { .. } => Class::Failed,
            CaptureError::Database { source, .. }
                if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) =>
            {
                Class::Failed
            }
            CaptureError::Damaged { .. }
            | CaptureError::Newer { .. }
            | CaptureError::Database { .. } => Class::Damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_error_of_a_statement_of_several_lines_is_one_line() {
        let database = rusqlite::Connection::open_in_memory().expect("opened");
        let error = database.prepare("SELECT seq\nFROM call");
        let error = CaptureError::database(Path::new("c.sqlite"))(error.expect_err("no table"));
        assert_eq!(error.to_string(), "c.sqlite: no such table: call");
    }
}
