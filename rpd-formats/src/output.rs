//! The input of a writer, and why it fails.

use std::path::PathBuf;

use rpd_core::naming::Target;
use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_core::stats::SessionStats;

/// The input of a writer.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// The recording to write.
    pub session: &'a Session,
    /// Statistics of the recording, if they were computed.
    pub stats: Option<&'a SessionStats<'a>>,
    /// The options of the run.
    pub options: &'a Options,
    /// Directory and prefix of the files.
    pub target: &'a Target,
}

/// A recording among several on one time line.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// The recording.
    pub session: &'a Session,
    /// The options of the run.
    pub options: &'a Options,
    /// What readers call the process, such as `node1 · rank 3 · train`.
    pub label: &'a str,
    /// Nanoseconds to add to its times.
    pub shift: i64,
    /// Number of the recording among those on the time line, from 0.
    pub number: usize,
    /// Number to add to process and thread ids, so that those of several machines differ.
    pub first_id: u64,
}

/// The time that several recordings cover together, and what is said of them.
#[derive(Debug, Clone, Default)]
pub struct Together {
    /// Title, such as `64 ranks`.
    pub title: String,
    /// Sentences about the recordings.
    pub notes: Vec<String>,
    /// Start of the first record in nanoseconds, with its recording's shift.
    pub first: u64,
    /// End of the last record, with its recording's shift.
    pub last: u64,
    /// Number of records.
    pub records: usize,
    /// Number of recordings.
    pub recordings: usize,
}

/// Calls, dispatches and copies of a recording: how many, and the time from the first to the last, in nanoseconds; `None`
/// without any.
pub fn shown_span(session: &Session) -> Option<(usize, u64, u64)> {
    let dispatches = session.kernel_dispatches();
    let spans = [
        session.calls.span(),
        dispatches.span(),
        session.copies.span(),
    ];
    let repeated = dispatches.repeated();
    let count = session.calls.len() + dispatches.len() - repeated + session.copies.len();
    let all = spans.into_iter().flatten();
    all.map(|(first, last)| (first.0, last.0))
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        .map(|(first, last)| (count, first, last))
}

/// Reason why an output could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file system refused.
    #[error("cannot write {path}: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// SQLite cannot write the database.
    #[error("cannot write {path}: {source}")]
    Sqlite {
        /// Path of the database.
        path: PathBuf,
        /// Error that SQLite reported.
        source: rusqlite::Error,
    },
    /// libotf2 cannot be loaded.
    #[error("cannot write {path}: {source}")]
    Otf2Missing {
        /// Path of the file.
        path: PathBuf,
        /// The library that is missing, and the places where it was searched.
        source: crate::otf2::LibraryMissing,
    },
    /// libotf2 cannot write the archive.
    #[error("cannot write {path}: {function}: {reason}")]
    Otf2 {
        /// Path of the file.
        path: PathBuf,
        /// Function of the library that failed.
        function: &'static str,
        /// The library's text for the error.
        reason: String,
    },
    /// The writer of Parquet files refused.
    #[error("cannot write {path}: {source}")]
    Parquet {
        /// Path of the file.
        path: PathBuf,
        /// Error of the writer or of the file below it.
        source: parquet::errors::ParquetError,
    },
}
