//! Writes files that get their final names only when they are complete.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use rpd_formats::file::PendingFile;

/// Writes a file, creating missing directories.
pub(super) fn file(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = PendingFile::create(path.to_owned())?;
    file.file()
        .write_all(content)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.finish()?;
    Ok(())
}
