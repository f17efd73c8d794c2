//! Finds the program file by the shell's rules.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use rpd_core::options::Options;
use rpd_core::text::os_text;

use crate::exit_status::{NOT_EXECUTABLE, NOT_FOUND};
use crate::failure::Failure;

/// The file to execute for a pass.
pub(crate) fn of_pass(options: &Options) -> Result<PathBuf, Failure> {
    let name = options.command.first().map_or("", String::as_str);
    find(&os_text::unescape(name))
}

/// The file to execute, by the shell's rules.
pub(crate) fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    if name.as_bytes().contains(&b'/') {
        return check(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut unusable = None;
    if !name.is_empty() {
        for directory in std::env::split_paths(&path) {
            // An empty entry is the current directory.
            let directory = if directory.as_os_str().as_bytes().is_empty() {
                Path::new(".")
            } else {
                &directory
            };
            let candidate = directory.join(name);
            match check(&candidate) {
                Ok(found) => return Ok(found),
                Err(failure) if failure.status == NOT_EXECUTABLE => {
                    unusable.get_or_insert(failure);
                }
                Err(_) => {}
            }
        }
    }
    Err(unusable.unwrap_or_else(|| {
        Failure::new(
            NOT_FOUND,
            format!("{}: not found in PATH", os_text::escape(name)),
        )
    }))
}

fn check(path: &Path) -> Result<PathBuf, Failure> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(Failure::new(
            NOT_EXECUTABLE,
            format!("{shown}: cannot be executed: {error}"),
        )),
        Err(_) => Err(Failure::new(NOT_FOUND, format!("{shown}: No such file"))),
        Ok(metadata) if metadata.is_dir() => Err(Failure::new(
            NOT_EXECUTABLE,
            format!("{shown}: cannot be executed: is a directory"),
        )),
        Ok(_) if access(path, AccessFlags::X_OK).is_err() => Err(Failure::new(
            NOT_EXECUTABLE,
            format!("{shown}: cannot be executed: permission denied"),
        )),
        Ok(_) => Ok(path.to_owned()),
    }
}
