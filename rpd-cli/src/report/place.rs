//! Files of the command's own, under their final names only once they are complete.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Writes a file; missing directories are made.
pub(super) fn file(path: &Path, content: &[u8]) -> Result<()> {
    let attempt = || -> Result<()> {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(parent)?;
        let mut file = tempfile::Builder::new()
            .prefix(".rpd-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(parent)?;
        file.write_all(content)?;
        file.persist(path)?;
        Ok(())
    };
    attempt().with_context(|| format!("cannot write {}", path.display()))
}
