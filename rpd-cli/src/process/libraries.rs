//! Search for rpd's own shared libraries and for those of a ROCm installation.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// The path of one of rpd's libraries: beside the program, in `../lib/rpd`, or in cargo's target directory.
pub(crate) fn own(name: &str) -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .map_err(|error| Failure::failed(format!("cannot find the path of rpd itself: {error}")))?;
    let directory = program.parent().unwrap_or(Path::new("/"));
    let mut directories = vec![directory.to_owned(), directory.join("deps")];
    if let Some(parent) = directory.parent() {
        directories.push(parent.join("lib/rpd"));
        if directory.file_name() == Some(OsStr::new("deps")) {
            directories.push(parent.to_owned());
        }
    }
    match first_with(&directories, &[name.to_owned()]) {
        Some(found) => Ok(found),
        None => Err(Failure::failed(format!(
            "{name} is not installed with rpd (looked in {})",
            list(&directories)
        ))),
    }
}

/// The first `directory/name` that is a file; directories are tried in order, names within a directory.
pub(crate) fn first_with(directories: &[PathBuf], names: &[String]) -> Option<PathBuf> {
    directories
        .iter()
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)))
        .find(|path| path.is_file())
}

/// Directories of a search path such as `LD_LIBRARY_PATH`, empty entries left out.
pub(crate) fn directories(path: Option<&OsStr>) -> Vec<PathBuf> {
    path.map(std::env::split_paths)
        .into_iter()
        .flatten()
        .filter(|directory| !directory.as_os_str().is_empty())
        .collect()
}

/// Paths that the loader's cache has for the name.
pub(crate) fn in_loader_cache(name: &str) -> Option<PathBuf> {
    for tool in ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"] {
        let Ok(output) = Command::new(tool).arg("-p").output() else {
            continue;
        };
        return String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| line.trim().split_once(" => "))
            .find(|(entry, _)| entry.split(' ').next() == Some(name) && entry.contains("x86-64"))
            .map(|(_, path)| PathBuf::from(path));
    }
    None
}

/// A list of directories for a message.
pub(crate) fn list(directories: &[PathBuf]) -> String {
    let texts: Vec<String> = directories
        .iter()
        .map(|directory| directory.display().to_string())
        .collect();
    texts.join(", ")
}
