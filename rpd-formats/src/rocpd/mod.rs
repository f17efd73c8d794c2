//! rocpd: the SQLite database.

use std::path::PathBuf;

use rpd_core::naming::Target;
use rpd_core::options::Options;
use rpd_core::session::Session;

use crate::WriteError;

/// Writes `<prefix>_results.db`; `None` for a session without records, or with fewer bytes of them than asked for.
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub fn write(
    _session: &Session,
    _options: &Options,
    target: &Target,
) -> Result<Option<PathBuf>, WriteError> {
    Err(WriteError::Io {
        path: target.file("results.db"),
        source: std::io::Error::from(std::io::ErrorKind::Unsupported),
    })
}
