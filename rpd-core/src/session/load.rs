//! From a spool to a session.

use std::path::Path;

use super::Session;

/// What to load besides the columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions {
    /// Keep the raw arguments of calls.
    pub args: bool,
}

/// Why a spool could not be read at all. Damage to single segments is no error: see [`super::Ledger::damage`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The directory holds no readable process description.
    #[error("{path} holds no recording of a process: {reason}")]
    NotASpool {
        /// The directory.
        path: std::path::PathBuf,
        /// What was wrong with it.
        reason: String,
    },
}

impl Session {
    /// Opens the spool directory of one process image.
    ///
    /// # Errors
    /// When there is no process description in it.
    pub fn open(directory: &Path, _options: LoadOptions) -> Result<Session, LoadError> {
        Err(LoadError::NotASpool {
            path: directory.to_owned(),
            reason: "no segments".to_owned(),
        })
    }
}
