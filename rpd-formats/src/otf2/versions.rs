//! File names under which libotf2 is searched, including later versions.

use std::path::PathBuf;

/// File names of libotf2: in the source distribution, in Debian 13, and in earlier Debian.
pub(super) const NAMES: [&str; 3] = [
    "libotf2.so.10",
    "libopen_trace_format2.so.10",
    "libopen-trace-format2.so.10",
];
/// Prefixes of the file names of later versions of libotf2.
const STEMS: [&str; 2] = ["libotf2.so.", "libopen_trace_format2.so."];
const FIRST_VERSION: u32 = 10;
/// Directories that the loader searches, besides `LD_LIBRARY_PATH` and its cache.
const DIRECTORIES: [&str; 7] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Files of later versions of the library, the oldest first: what is in use was tried with the first one.
pub(super) fn later_versions() -> Vec<PathBuf> {
    let inherited = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let directories =
        std::env::split_paths(&inherited).chain(DIRECTORIES.iter().map(PathBuf::from));
    versions_in(directories)
}

fn versions_in(directories: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for directory in directories.filter(|directory| directory.is_absolute()) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| {
                let version = STEMS.iter().find_map(|stem| name.strip_prefix(stem))?;
                version.parse().ok()
            });
            if let Some(version) = version.filter(|version| *version >= FIRST_VERSION) {
                found.push((version, entry.path()));
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files that are there before")]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn versions_in_finds_the_latest_version_in_each_directory() {
        let (one, two) = (tempfile::tempdir(), tempfile::tempdir());
        let (one, two) = (one.expect("a directory"), two.expect("a directory"));
        for name in [
            "libotf2.so.11",
            "libotf2.so.9",
            "libotf2.so",
            "libotf2.so.10.1",
            "libother.so.12",
        ] {
            std::fs::write(one.path().join(name), "").expect("written");
        }
        let other = two.path().join("libopen_trace_format2.so.10");
        std::fs::write(&other, "").expect("written");
        let directories = [one.path(), two.path(), Path::new("relative")];
        assert_eq!(
            versions_in(directories.into_iter().map(Path::to_owned)),
            [other, one.path().join("libotf2.so.11")]
        );
    }
}
