//! The file of `--extra-counters`.

use std::path::Path;

use rpd_spool::regular_file::{self, FileError};

/// Largest size of a file of definitions, in bytes. ROCm's own definitions for all GPUs take half a megabyte.
const LARGEST: u64 = 4 << 20;

/// The text of a file of counter definitions.
///
/// # Errors
/// When it is no regular file, too large, or cannot be read.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    regular_file::read_text(path, LARGEST)
}
