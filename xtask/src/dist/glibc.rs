//! The version of the C library that programs need, and builds for an old one.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_tests::install;

use crate::shell;

/// The C library of the oldest system that is supported (RHEL 8).
pub(super) const OLDEST: Version = Version(2, 28);

/// Builds against an older C library than that of this machine: it has the symbols of each.
const OLD_BUILDER: &str = "cargo-zigbuild";

/// A version of the C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(u32, u32);

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.0, self.1)
    }
}

/// Builds what is shipped in release, for the oldest C library where the tool for that is installed, and returns the directory
/// it is in.
pub(super) fn build() -> Result<PathBuf> {
    if shell::tool(OLD_BUILDER).is_none() {
        eprintln!(
            "{OLD_BUILDER} is not installed (`pip install {OLD_BUILDER}`): the build is for the C library of this machine"
        );
        return shell::build(true);
    }
    let triple = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let mut build = shell::cargo();
    build.args(["zigbuild", "--release", "--target"]);
    build.arg(format!("{triple}.{OLDEST}"));
    shell::revision(&mut build);
    for package in install::PACKAGES {
        build.args(["--package", package]);
    }
    shell::run(&mut build)?;
    Ok(install::target_dir().join(triple).join("release"))
}

/// The C library that the programs and libraries need, which is printed. An error where that is newer than a build for an old one
/// may need.
pub(super) fn needed(files: &[PathBuf]) -> Result<Version> {
    let mut needed = Version(0, 0);
    for file in files {
        needed = needed.max(of_file(file)?);
    }
    println!("needs glibc {needed}");
    if needed > OLDEST && shell::tool(OLD_BUILDER).is_some() {
        bail!("a symbol of glibc {needed} is used, and {OLDEST} is the oldest that is supported");
    }
    Ok(needed)
}

/// The highest version that the names of a file's symbols have: such as `GLIBC_2.28`, which stand in its table of texts.
fn of_file(file: &Path) -> Result<Version> {
    const PREFIX: &[u8] = b"GLIBC_";
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    let versions = bytes
        .windows(PREFIX.len())
        .enumerate()
        .filter(|(_, window)| *window == PREFIX)
        .filter_map(|(at, _)| version(&bytes[at + PREFIX.len()..]));
    Ok(versions.max().unwrap_or(Version(0, 0)))
}

/// The version that a text begins with, up to its NUL; none in `GLIBC_PRIVATE`.
fn version(text: &[u8]) -> Option<Version> {
    let end = text.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    let mut numbers = text.split('.').map(str::parse);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(Version(major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_a_file_is_the_highest_of_its_symbols() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text =
            b"\x7fELF\0GLIBC_2.9\0GLIBC_PRIVATE\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_ABI_DT_RELR\0";
        fs::write(file.path(), text).expect("written");
        assert_eq!(of_file(file.path()).expect("read"), Version(2, 17));
    }
}
