//! The files of a capture in a directory that may have others.

use std::io;
use std::path::{Path, PathBuf};

use crate::capsule::is_part;
use crate::{BLOBS, CODE, CaptureError, DATABASE, MANIFEST, REPORT};

/// The directories of a capture.
const DIRECTORIES: [&str; 2] = [BLOBS, CODE];

/// The names of the files of the capture in `directory`, the description first.
fn files(directory: &Path) -> Result<Vec<String>, CaptureError> {
    let mut names = vec![MANIFEST.to_owned(), DATABASE.to_owned(), REPORT.to_owned()];
    for name in DIRECTORIES {
        let path = directory.join(name);
        // A link leads to files that are not in this directory.
        if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        for entry in std::fs::read_dir(&path).map_err(CaptureError::io(&path))? {
            let entry = entry.map_err(CaptureError::io(&path))?;
            names.push(format!("{name}/{}", entry.file_name().to_string_lossy()));
        }
    }
    names.retain(|name| is_part(name));
    Ok(names)
}

/// Removes the files of the capture in `directory`, and directories of it that are empty then. Everything else stays.
///
/// # Errors
/// When a file cannot be removed.
pub fn remove_files(directory: &Path) -> Result<(), CaptureError> {
    for name in files(directory)? {
        let path = directory.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(CaptureError::io(&path)(error));
            }
            _ => {}
        }
    }
    for name in DIRECTORIES {
        // Other files may be there.
        let _ = std::fs::remove_dir(directory.join(name));
    }
    Ok(())
}

/// Moves the files of a capture from one directory to another of the same file system, `capture.json` last.
///
/// # Errors
/// When a file cannot be moved.
pub fn move_files(from: &Path, to: &Path) -> Result<(), CaptureError> {
    for directory in DIRECTORIES {
        let path = to.join(directory);
        std::fs::create_dir_all(&path).map_err(CaptureError::io(&path))?;
    }
    for name in files(from)?.into_iter().rev() {
        let (old, new): (PathBuf, PathBuf) = (from.join(&name), to.join(&name));
        match std::fs::rename(&old, &new) {
            // It was moved before by an rpd that was killed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && new.exists() => {}
            other => other.map_err(CaptureError::io(&new))?,
        }
    }
    for directory in DIRECTORIES {
        let _ = std::fs::remove_dir(from.join(directory));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(directory: &Path, names: &[&str]) {
        for name in names {
            let path = directory.join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, name).expect("written");
        }
    }

    #[test]
    fn move_and_remove_leave_files_alone_that_are_no_part_of_a_capture() {
        let directory = tempfile::tempdir().expect("a directory");
        let (old, new) = (directory.path().join("old"), directory.path().join("new"));
        let code = format!("code/{}.co", "a1".repeat(32));
        let parts = [
            "capture.json",
            "capture.sqlite",
            "report.txt",
            "blobs/pack-00001.rpdp",
            code.as_str(),
        ];
        make(&old, &parts);
        make(&old, &["notes.txt", "blobs/mine", "code/kernel.co"]);
        move_files(&old, &new).expect("moved");
        assert!(
            parts
                .iter()
                .all(|name| new.join(name).exists() && !old.join(name).exists())
        );
        assert!(!new.join("notes.txt").exists() && old.join("blobs/mine").exists());
        make(&new, &["notes.txt", "blobs/mine"]);
        remove_files(&new).expect("removed");
        assert!(parts.iter().all(|name| !new.join(name).exists()));
        assert!(new.join("notes.txt").exists() && new.join("blobs/mine").exists());
        assert!(!new.join("code").exists());
    }
}
