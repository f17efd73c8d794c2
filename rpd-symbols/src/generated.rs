//! Generated Python files: their texts are kept, since the files may be gone when the stacks are read.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use rpd_core::ids::StringId;
use rpd_core::session::Session;
use rpd_core::session::stacks::GeneratedFile;
use rpd_spool::regular_file::{self, Links};

/// Bytes of one file that is kept; a longer one is left out.
const LONGEST: u64 = 1 << 20;
/// Bytes of all files of a session.
const ALL: u64 = 64 << 20;

/// Beginning of the names of the directories that PyTorch's Inductor writes to.
const INDUCTOR: &str = "torchinductor_";

/// Reads the generated Python files that stacks have code of into `session.stacks.generated_files`: those that Inductor wrote
/// (`cache_dir` is its directory, if the user gave it one), and those whose sources the program registered. Returns how
/// many could not be kept: files that are gone, and long ones.
pub fn keep_files(session: &mut Session, cache_dir: Option<&Path>) -> usize {
    let registered: BTreeSet<StringId> = session
        .stacks
        .generated
        .iter()
        .map(|range| range.file)
        .collect();
    let files: BTreeSet<StringId> = session.stacks.code.iter().map(|code| code.file).collect();
    let mut left_out = 0;
    let mut room = ALL;
    for file in files {
        let path = Path::new(session.strings.get(file));
        if !path.is_absolute() || !(registered.contains(&file) || is_generated(path, cache_dir)) {
            continue;
        }
        match read(path, LONGEST.min(room)) {
            Some(text) => {
                room -= text.len() as u64;
                let own = GeneratedFile { file, text };
                session.stacks.generated_files.push(own);
            }
            None => left_out += 1,
        }
    }
    left_out
}

fn is_generated(path: &Path, cache_dir: Option<&Path>) -> bool {
    let is_inductors = |part: Component<'_>| {
        part.as_os_str()
            .to_str()
            .is_some_and(|name| name.starts_with(INDUCTOR))
    };
    path.components().any(is_inductors) || cache_dir.is_some_and(|dir| path.starts_with(dir))
}

/// The text of a regular file of at most `most` bytes, not through a symbolic link.
fn read(path: &Path, most: u64) -> Option<String> {
    let bytes = regular_file::read(path, Links::Refuse, most).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_those_of_inductor() {
        let dir = Path::new("/srv/cache");
        for (path, expected) in [
            ("/tmp/torchinductor_me/ab/cabc.py", true),
            ("/srv/cache/ab/cabc.py", true),
            ("/srv/cached/cabc.py", false),
            ("/home/me/train.py", false),
        ] {
            assert_eq!(is_generated(Path::new(path), Some(dir)), expected, "{path}");
        }
    }

    #[test]
    fn read_refuses_special_files_and_long_ones() {
        assert_eq!(read(Path::new("/dev/zero"), 100), None);
        assert_eq!(read(Path::new("/tmp"), 100), None);
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(read(Path::new(own), 1 << 20).is_some_and(|text| text.contains("rpd-symbols")));
        assert_eq!(read(Path::new(own), 10), None);
    }
}
