//! Files of a capture that is being made, in a directory that is not known as a capture yet.
#![expect(
    clippy::disallowed_methods,
    reason = "a capture is complete when its description is there"
)]

use std::fs::File;
use std::path::Path;

use crate::CaptureError;

/// Writes a file of a capture.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CaptureError> {
    std::fs::write(path, bytes).map_err(CaptureError::io(path))
}

/// Makes an empty file; an earlier one of that name loses its content.
pub(crate) fn create(path: &Path) -> Result<File, CaptureError> {
    File::create(path).map_err(CaptureError::io(path))
}

/// Makes a file of which there is none yet.
pub(crate) fn create_new(path: &Path) -> Result<File, CaptureError> {
    File::create_new(path).map_err(CaptureError::io(path))
}
