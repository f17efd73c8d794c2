//! The source tree, for tests that read it.

use std::fs::read_dir;
use std::path::{Path, PathBuf};

use crate::install::source_root;

/// The files below a directory with one of these extensions.
///
/// # Panics
/// When a directory cannot be read.
#[must_use]
pub fn files_below(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(files_below(&path, extensions));
        } else if path
            .extension()
            .is_some_and(|found| extensions.iter().any(|extension| found == *extension))
        {
            files.push(path);
        }
    }
    files
}

/// The files of the workspace with one of these extensions, without what was built or is hidden.
///
/// # Panics
/// When a directory cannot be read.
#[must_use]
pub fn workspace_files(extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in read_dir(source_root()).expect("the workspace") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files.extend(files_below(&path, extensions));
        } else if path.is_file()
            && extensions
                .iter()
                .any(|end| path.extension().is_some_and(|found| found == *end))
        {
            files.push(path);
        }
    }
    files
}

/// Whether a path leads to tests: through a directory `tests`, or to a file `tests.rs`.
#[must_use]
pub fn is_test(path: &Path) -> bool {
    path.iter()
        .any(|part| part == "tests" || part == "tests.rs")
}
