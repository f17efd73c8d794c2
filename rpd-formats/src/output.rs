//! The input of a writer, and why it fails.

use std::path::PathBuf;

use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
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
    /// This build has no writer for the format.
    #[error(
        "cannot write {}: this program was built without the feature `{}` of rpd-formats; build it with that feature",
        format.word(),
        format.word()
    )]
    NotBuilt {
        /// The format, whose word is also the name of the feature.
        format: Format,
    },
    /// The writer of Parquet files refused.
    #[cfg(feature = "parquet")]
    #[error("cannot write {path}: {source}")]
    Parquet {
        /// Path of the file.
        path: PathBuf,
        /// Error that polars reported.
        source: polars::error::PolarsError,
    },
}
