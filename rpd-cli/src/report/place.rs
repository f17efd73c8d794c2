//! Writes files that get their final names only when they are complete.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use rpd_formats::file::PendingFile;

/// Writes a file, creating missing directories.
pub(super) fn file(path: &Path, content: &[u8]) -> Result<()> {
    file_of(path, |file| Ok(file.write_all(content)?))
}

/// Writes a file with the content that `write` writes, creating missing directories.
pub(super) fn file_of(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let mut file = PendingFile::create(path.to_owned())?;
    write(file.file()).with_context(|| format!("cannot write {}", path.display()))?;
    file.finish()?;
    Ok(())
}
