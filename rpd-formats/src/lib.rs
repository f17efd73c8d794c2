//! Writers of rpd output formats.
//!
//! Each module is a format: from a session (and statistics handed in as values) to files called
//! `<directory>/<prefix>_<name>`. A file gets its final name once it is complete; an error leaves none behind.

pub mod csv;
mod describe;
mod environment;
mod file;
mod json;
mod operations;
pub mod perfetto;
pub mod results_json;
pub mod rocpd;
mod streams;
pub mod table;

use std::path::PathBuf;

/// Why an output could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file system refused.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot write {path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}
