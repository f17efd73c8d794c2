//! The directory that a capture is written to, and captures that a killed rpd has left there.
//!
//! A capture that replaces another one is made in a directory in that one's directory, and takes its place when it is complete.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_capture::{MANIFEST, Manifest, UNFINISHED};
use rpd_spool::access_trace::DIRECTORY as ACCESSES;
use rpd_spool::regular_file::{self, Links};
use serde::{Deserialize, Serialize};

use super::failure;
use crate::failure::Failure;

/// Name of the directory to which the processes record.
const SPOOL: &str = ".spool";
/// Largest description of how a capture is made that is read, in bytes: it holds the environment of the program.
const LARGEST_NOTE: u64 = 64 << 20;
/// Beginning of the name of the directory of a process' capture while it is made.
pub(super) const PROCESS: &str = ".proc-";
/// Beginning of the name of the directory in which a capture is made that replaces another one.
const REPLACING: &str = ".new-";

/// The directory of a capture while it is made.
#[derive(Debug, Clone)]
pub(super) struct CaptureDirectory {
    /// The directory that the user named.
    pub(super) output: PathBuf,
    /// Directory in which the capture is made: `output`, or a directory in it.
    pub(super) work: PathBuf,
}

/// Settings of a capture that another rpd needs to finish it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Making {
    /// Description of the capture, without the figures that are known at the end.
    pub(super) manifest: Manifest,
    /// Level of zstd; none: data are not compressed.
    pub(super) level: Option<i32>,
    /// Whether the content of results is kept, not only their hash.
    pub(super) keep_outputs: bool,
    /// Whether processes that the program starts are captured as well.
    pub(super) children: bool,
}

impl CaptureDirectory {
    /// Makes the directory. With `overwrite` it may hold a capture, which stays until the new one is complete.
    pub(super) fn make(output: &Path, overwrite: bool) -> Result<CaptureDirectory, Failure> {
        let shown = output.display();
        let failed =
            |error: std::io::Error| Failure::failed(format!("{shown} cannot be made: {error}"));
        if !output.exists() {
            // A bare name has an empty parent, which is no directory to make.
            let parent = output
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            parent
                .map_or(Ok(()), std::fs::create_dir_all)
                .map_err(failed)?;
            std::fs::create_dir(output).map_err(failed)?;
            return Ok(CaptureDirectory {
                output: output.to_owned(),
                work: output.to_owned(),
            });
        }
        // Replacing it would lose a recording that can still be finished.
        if output.join(UNFINISHED).exists() {
            return Err(Failure::failed(format!(
                "{shown} holds a capture whose rpd was killed: `rpd recover {shown}` finishes it; -o names another directory"
            )));
        }
        if !overwrite {
            return Err(Failure::failed(format!(
                "{shown} exists; --overwrite replaces a capture, -o names another directory"
            )));
        }
        // A wrong -o must not delete anything but a capture.
        let ours = Manifest::read(output).and_then(|manifest| manifest.check_origin(output));
        if let Err(error) = ours {
            return Err(Failure::failed(format!(
                "{shown} exists and is not replaced: {error}; -o names another directory"
            )));
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "it stays when rpd is killed, for `rpd recover`"
        )]
        let work = tempfile::Builder::new()
            .prefix(REPLACING)
            .tempdir_in(output)
            .map_err(failed)?;
        Ok(CaptureDirectory {
            output: output.to_owned(),
            work: work.keep(),
        })
    }

    /// The directory to which the processes record.
    pub(super) fn spool(&self) -> PathBuf {
        self.work.join(SPOOL)
    }

    /// The directories of the captures of processes that are not in their place.
    pub(super) fn processes(&self) -> impl Iterator<Item = PathBuf> {
        let entries = std::fs::read_dir(&self.work)
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter(|entry| is_named(&entry.file_name(), PROCESS))
            .map(|entry| entry.path())
    }

    /// Notes how the capture is made, for the case that this process is killed.
    pub(super) fn begin(&self, making: &Making) -> Result<()> {
        let path = self.work.join(UNFINISHED);
        let text = serde_json::to_vec_pretty(making).context("cannot describe the capture")?;
        #[expect(
            clippy::disallowed_methods,
            reason = "a file in the directory of a capture that is being made"
        )]
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// Removes files that were needed while the capture was made: it is complete and in its place.
    pub(super) fn complete(&self) {
        let _ = std::fs::remove_dir_all(self.spool());
        let _ = std::fs::remove_file(self.work.join(UNFINISHED));
        if self.work != self.output {
            let _ = std::fs::remove_dir(&self.work);
        }
    }

    /// Puts the complete capture where the user wants it, in the place of another one. Where that fails or is interrupted, it can be
    /// tried again.
    pub(super) fn replace(&self) -> Result<()> {
        // It is not needed any more, and without it nothing is recorded a second time.
        let _ = std::fs::remove_dir_all(self.spool());
        if self.work == self.output {
            return Ok(());
        }
        let accesses = self.output.join(ACCESSES);
        // The description of the old capture is removed first, that of the new one is moved last.
        let has_both = [&self.work, &self.output].map(|place| place.join(MANIFEST).exists());
        if has_both == [true, true] {
            rpd_capture::remove_files(&self.output).map_err(failure)?;
            super::accesses::remove(&accesses)?;
        }
        let fresh = self.work.join(ACCESSES);
        if fresh.is_dir() {
            std::fs::create_dir_all(&accesses)
                .with_context(|| format!("{} cannot be made", accesses.display()))?;
            for entry in std::fs::read_dir(&fresh)? {
                let entry = entry?;
                let to = accesses.join(entry.file_name());
                std::fs::rename(entry.path(), &to)
                    .with_context(|| format!("{} cannot be made", to.display()))?;
            }
            let _ = std::fs::remove_dir(&fresh);
        }
        Ok(rpd_capture::move_files(&self.work, &self.output).map_err(failure)?)
    }

    /// Removes the files of a capture that was not made. Other files in the directory stay.
    pub(super) fn discard(&self) {
        for directory in self.processes() {
            let _ = std::fs::remove_dir_all(directory);
        }
        let _ = rpd_capture::remove_files(&self.work);
        let _ = super::accesses::remove(&self.work.join(ACCESSES));
        self.complete();
        let _ = std::fs::remove_dir(&self.work);
    }
}

fn is_named(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes().starts_with(prefix.as_bytes())
}

/// A capture that is not complete.
pub(super) struct Unfinished {
    pub(super) directory: CaptureDirectory,
    pub(super) making: Making,
}

/// The unfinished captures in `directory`, those included that were to replace one there: their rpd was killed.
pub(super) fn unfinished(directory: &Path) -> Result<Vec<Unfinished>> {
    let mut places = vec![directory.to_owned()];
    let inside = std::fs::read_dir(directory).into_iter().flatten().flatten();
    places.extend(
        inside
            .filter(|entry| is_named(&entry.file_name(), REPLACING))
            .map(|entry| entry.path()),
    );
    let mut found = Vec::new();
    for work in places {
        let path = work.join(UNFINISHED);
        if !path.is_file() {
            continue;
        }
        let owner = std::fs::symlink_metadata(&path)?.uid();
        if owner != nix::unistd::geteuid().as_raw() {
            return Err(Failure::failed(format!(
                "{}: belongs to another user, who alone can recover the capture",
                work.display()
            ))
            .into());
        }
        let name = work.file_name().unwrap_or_default();
        let output = if is_named(name, REPLACING) {
            work.parent().unwrap_or(&work).to_owned()
        } else {
            work.clone()
        };
        let text = regular_file::read(&path, Links::Refuse, LARGEST_NOTE)
            .with_context(|| path.display().to_string())?;
        let making = serde_json::from_slice(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        let directory = CaptureDirectory { output, work };
        found.push(Unfinished { directory, making });
    }
    Ok(found)
}

/// The process that still works on the recording of a process, in words; `None` when there is none.
pub(super) fn in_use(process: &Path) -> Option<String> {
    if rpd_capture::is_taken(process) {
        return Some("its rpd still runs and will finish it".to_owned());
    }
    let control = process.join(rpd_spool::capture::CONTROL_FILE);
    let (_, file) = regular_file::open(&control, Links::Refuse).ok()?;
    // Some file systems show other numbers of devices there; in other mount namespaces paths differ.
    let path = std::fs::canonicalize(&control).ok()?.display().to_string();
    let mapped = format!(
        " {:02x}:{:02x} {} ",
        nix::sys::stat::major(file.dev()),
        nix::sys::stat::minor(file.dev()),
        file.ino()
    );
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes.into_iter().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        #[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
        let maps = std::fs::read_to_string(entry.path().join("maps")).ok()?;
        (maps.contains(&mapped) || maps.contains(&path))
            .then(|| format!("process {pid}, which it captures, still runs"))
    })
}
