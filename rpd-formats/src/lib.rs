//! Writers of rpd output formats.
//!
//! Each module is a format: from a session (and statistics handed in as values) to files called
//! `<directory>/<prefix>_<name>`. A file gets its final name once it is complete; an error leaves none behind.

pub mod csv;
mod describe;
pub mod file;
pub mod html;
mod json;
mod operations;
pub mod otf2;
pub mod parquet;
pub mod perfetto;
pub mod progress;
pub mod registry;
pub mod results_json;
pub mod rocpd;
pub mod rpd_file;
pub mod settings;
mod streams;
pub mod table;
mod texts;

use std::path::PathBuf;

pub use registry::{Output, write};

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
    /// libotf2 cannot be loaded.
    #[error(
        "cannot write {path}: OTF2 needs libotf2 3 (package libopen-trace-format2-10u of Debian 13 and later, libopen-trace-format2-10 before; \
         --otf2-library names a file): {reason}"
    )]
    Otf2Missing {
        /// The file.
        path: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// libotf2 refused.
    #[error("cannot write {path}: {function}: {reason}")]
    Otf2 {
        /// The file.
        path: PathBuf,
        /// Its function.
        function: &'static str,
        /// What it said.
        reason: String,
    },
    /// The writer of Parquet files refused.
    #[error("cannot write {path}: {source}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: polars::error::PolarsError,
    },
}
