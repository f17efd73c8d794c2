//! Links by which other programs find the build's files under their usual names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

/// Name by which tools look for a trace decoder.
pub(crate) const DECODER: &str = "librocprof-trace-decoder.so";

/// Names of the original's programs.
const PROGRAMS: [&str; 7] = [
    "rocprofv3",
    "rocprofv3-avail",
    "rocpd",
    "rocpd2csv",
    "rocpd2otf2",
    "rocpd2pftrace",
    "rocpd2summary",
];

/// Makes links with the names of the original's programs to rpd, in a directory of their own: users put it on their path by
/// choice.
pub(crate) fn compat(directory: &Path, rpd: &str) -> Result<()> {
    fs::create_dir_all(directory)?;
    for name in PROGRAMS {
        link(rpd, &directory.join(name))?;
    }
    Ok(())
}

/// Makes the links to the files in a profile's directory by which others look for them.
pub(crate) fn name_built(built: &Path) -> Result<()> {
    link("librpd_att.so", &built.join(DECODER))?;
    compat(&built.join("compat/bin"), "../../rpd")
}

/// Makes a link, which replaces an older one.
fn link(to: &str, path: &Path) -> Result<()> {
    if fs::read_link(path).is_ok_and(|there| there == Path::new(to)) {
        return Ok(());
    }
    // Also a link that leads nowhere, which does not count as existing.
    if path.symlink_metadata().is_ok() {
        fs::remove_file(path)?;
    }
    symlink(to, path).with_context(|| format!("linking {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_with_names_of_the_original_lead_to_the_build() {
        let tree = tempfile::tempdir().expect("a directory");
        fs::write(tree.path().join("rpd"), "the binary").expect("written");
        fs::write(tree.path().join("librpd_att.so"), "the decoder").expect("written");
        // The second time over the first.
        for _ in 0..2 {
            name_built(tree.path()).expect("links");
        }
        for name in PROGRAMS {
            let link = tree.path().join("compat/bin").join(name);
            assert_eq!(fs::read_to_string(link).expect(name), "the binary");
        }
        let decoder = fs::read_to_string(tree.path().join(DECODER));
        assert_eq!(decoder.expect("a decoder"), "the decoder");
    }
}
