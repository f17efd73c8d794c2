//! Names of outputs that several processes of rpd resolve to at the same time: those of MPI ranks with one `-o`, for example.
//!
//! A name is taken while another rpd holds its claim, a locked file beside the outputs, and for good if files of that name were
//! made since this run began. Files that are older are those of an earlier run, and are replaced.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_formats::registry;

/// Name of the claim's file; the prefix stands before it.
const CLAIM: &str = "claim";

/// A name that no other rpd uses until this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    _locked: File,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Still locked: whoever opened the file before sees that it is gone, and makes a new one.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The result of asking for a name.
#[derive(Debug)]
pub(super) enum Taken {
    /// Nobody else has it. Without a claim where none can be made: writing the outputs says why.
    Free(Option<Claim>),
    /// Another rpd writes, or wrote during this run, files of this name.
    ByAnother,
}

impl Claim {
    /// Asks for the name of a process's outputs.
    pub(super) fn take(target: &Target, options: &Options) -> Taken {
        let path = hidden(&target.file(CLAIM));
        let Some(parent) = path.parent() else {
            return Taken::Free(None);
        };
        if std::fs::create_dir_all(parent).is_err() {
            return Taken::Free(None);
        }
        loop {
            let Ok(file) = open(&path, true) else {
                return Taken::Free(None);
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Taken::ByAnother,
                // A file system without locks.
                Err(TryLockError::Error(_)) => return Taken::Free(None),
            }
            // The one who had it before has removed it.
            if !is_same(&file, &path) {
                continue;
            }
            let claim = Claim {
                path,
                _locked: file,
            };
            return if made_meanwhile(target, options) {
                Taken::ByAnother
            } else {
                Taken::Free(Some(claim))
            };
        }
    }

    /// The claim that an attempt which was killed has left for this name, to be removed with this value.
    pub(super) fn left_behind(target: &Target) -> Option<Claim> {
        let path = hidden(&target.file(CLAIM));
        let file = open(&path, false).ok()?;
        file.try_lock().ok()?;
        is_same(&file, &path).then_some(())?;
        Some(Claim {
            path,
            _locked: file,
        })
    }
}

/// Opens the file of a claim, which is made where `create` says so.
fn open(path: &Path, create: bool) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(create)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)
}

/// The path with a dot before its last component.
fn hidden(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

fn is_same(file: &File, path: &Path) -> bool {
    let key = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let named = std::fs::symlink_metadata(path).map(key);
    let opened = file.metadata().map(key);
    matches!((named, opened), (Ok(named), Ok(opened)) if named == opened)
}

/// Whether a file that the formats make has been written since this run began.
fn made_meanwhile(target: &Target, options: &Options) -> bool {
    let names = options.formats.iter().map(|format| {
        // These have a file for each table; one of them is always there.
        let of_tables = match format {
            Format::Parquet => "processes.parquet",
            Format::Csv
            | Format::Json
            | Format::Pftrace
            | Format::Otf2
            | Format::Rocpd
            | Format::Html => "agent_info.csv",
        };
        registry::entry(*format).file.unwrap_or(of_tables)
    });
    names.map(|name| target.file(name)).any(|path| {
        let written = std::fs::symlink_metadata(path).and_then(|found| found.modified());
        let since = written
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let since = since.map_or(0, |since| {
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        });
        options.launch_time != 0 && since >= options.launch_time
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(directory: &Path) -> Target {
        Target {
            directory: directory.to_owned(),
            prefix: "x".to_owned(),
        }
    }

    fn options(launch_time: u64) -> Options {
        Options {
            launch_time,
            formats: vec![Format::Rocpd],
            ..Options::default()
        }
    }

    #[test]
    fn claimed_name_is_taken_until_the_claim_is_dropped() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = target(directory.path());
        let Taken::Free(Some(claim)) = Claim::take(&target, &options(1)) else {
            panic!("nobody has the name");
        };
        assert!(matches!(
            Claim::take(&target, &options(1)),
            Taken::ByAnother
        ));
        drop(claim);
        assert!(matches!(
            Claim::take(&target, &options(1)),
            Taken::Free(Some(_))
        ));
        let left = std::fs::read_dir(directory.path()).expect("read").count();
        assert_eq!(left, 0, "claims leave nothing behind");
    }

    #[test]
    fn name_is_taken_by_files_of_this_run_and_not_by_older_ones() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = target(directory.path());
        std::fs::write(target.file("results.db"), "").expect("written");
        assert!(matches!(
            Claim::take(&target, &options(1)),
            Taken::ByAnother
        ));
        let later = options(u64::MAX);
        assert!(matches!(Claim::take(&target, &later), Taken::Free(Some(_))));
    }

    #[test]
    fn claim_does_not_follow_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = target(directory.path());
        let link = hidden(&target.file(CLAIM));
        std::os::unix::fs::symlink("elsewhere", &link).expect("a link");
        assert!(matches!(
            Claim::take(&target, &options(1)),
            Taken::Free(None)
        ));
        assert!(!directory.path().join("elsewhere").exists());
    }
}
