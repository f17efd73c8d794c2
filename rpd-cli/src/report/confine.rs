//! Restricts the paths to which `rpd recover` writes: a run's directory may hold forged options.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_core::naming::Target;
use rpd_core::options::Options;

use super::tables;
use crate::failure::Failure;

/// A directory that outputs must not leave.
#[derive(Debug)]
pub(crate) struct ConfinedDirectory {
    root: PathBuf,
}

impl ConfinedDirectory {
    /// Confines outputs to this directory, which must exist.
    pub(crate) fn to(root: &Path) -> Result<ConfinedDirectory> {
        let root = std::fs::canonicalize(root).with_context(|| root.display().to_string())?;
        Ok(ConfinedDirectory { root })
    }

    /// The directory, without symbolic links.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Refuses a target whose files would be outside the directory.
    pub(super) fn check(&self, target: &Target, options: &Options) -> Result<()> {
        let mut directories = vec![target.parent()];
        if let Some(file) = tables::file(options, target) {
            directories.push(file.parent().unwrap_or(Path::new("/")).to_owned());
        }
        for directory in directories {
            if !resolved(&directory).is_some_and(|path| path.starts_with(&self.root)) {
                return Err(Failure::failed(format!(
                    "its files would go to {}, which is outside of {}; `rpd recover --output-directory DIR` writes them \
                     to a directory of your choice",
                    directory.display(),
                    self.root.display()
                ))
                .into());
            }
        }
        Ok(())
    }
}

/// The path without symbolic links, whose last components need not exist. None if it cannot be resolved.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut existing = path;
    while std::fs::symlink_metadata(existing).is_err() {
        existing = existing.parent()?;
    }
    let rest = path.strip_prefix(existing).ok()?;
    // Components after a directory that does not exist yet can only lead downwards.
    let down = rest
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let existing = if existing.as_os_str().is_empty() {
        Path::new(".")
    } else {
        existing
    };
    if down {
        Some(std::fs::canonicalize(existing).ok()?.join(rest))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn confined_outputs_stay_inside_the_directory() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path().join("out");
        std::fs::create_dir_all(root.join("sub")).expect("made");
        std::fs::create_dir(place.path().join("else")).expect("made");
        symlink("../else", root.join("leads-out")).expect("a link");
        symlink("sub", root.join("leads-in")).expect("a link");
        symlink("nowhere", root.join("dangling")).expect("a link");
        let confined = ConfinedDirectory::to(&root).expect("it exists");
        let accepts = |directory: &Path, prefix: &str, output: &str| {
            let target = Target {
                directory: directory.to_owned(),
                prefix: prefix.to_owned(),
            };
            let mut options = Options::default();
            options.summary.output = output.to_owned();
            confined.check(&target, &options).is_ok()
        };
        for (prefix, output, expected) in [
            ("x", "", true),
            ("new/deep/x", "stdout", true),
            ("sub/../x", "file", true),
            ("leads-in/x", "", true),
            ("leads-out/x", "", false),
            ("dangling/x", "", false),
            ("../x", "", false),
            ("new/../../x", "", false),
            ("/etc/x", "", false),
            ("x", "/../../etc/y", false),
        ] {
            assert_eq!(
                accepts(&root, prefix, output),
                expected,
                "{prefix} {output}"
            );
        }
        assert!(!accepts(place.path(), "x", ""));
        let error = confined.check(
            &Target {
                directory: "/etc".into(),
                prefix: "x".to_owned(),
            },
            &Options::default(),
        );
        assert_eq!(
            error.expect_err("outside").to_string(),
            format!(
                "its files would go to /etc, which is outside of {}; `rpd recover --output-directory DIR` writes them to a \
                 directory of your choice",
                confined.root().display()
            )
        );
    }
}
