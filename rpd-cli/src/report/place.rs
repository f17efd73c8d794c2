//! Files of the command's own, under their final names only once they are complete.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use rpd_formats::file::PendingFile;

/// Writes a file; missing directories are made.
pub(super) fn file(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = PendingFile::create(path.to_owned())?;
    file.file()
        .write_all(content)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.finish()?;
    Ok(())
}
