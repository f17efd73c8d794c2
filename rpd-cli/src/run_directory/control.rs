//! Requests to the processes of a run, through their control pages.

use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rpd_core::procfs;
use rpd_spool::control::{Controller, Request};

use super::{ImageState, Recording, RunDirectory};
use crate::failure::Failure;

impl RunDirectory {
    /// Opens the control page of a recording. `None` where its process has none yet.
    pub(crate) fn controller(&self, recording: &Recording) -> Result<Option<Controller>> {
        let directory = self.open_recording(recording)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        Controller::open(&path).with_context(|| {
            let path = self.path_of(recording);
            format!("{} has no usable control page", path.display())
        })
    }

    /// Has the process of a recording write what its provider holds back. One that does not answer within `limit` has
    /// written the rest itself.
    pub(crate) fn flush(&self, recording: &Recording, limit: Duration) {
        if let Ok(Some(page)) = self.controller(recording) {
            page.request(Request::Flush, limit, || recording.runs_on());
        }
    }
}

impl Recording {
    /// Whether the process runs now, as far as it can be seen from here.
    pub(crate) fn runs_on(&self) -> bool {
        match self.state {
            ImageState::Runs(Some(pid)) => procfs::stat(pid.0).is_some_and(|stat| stat.runs),
            ImageState::Runs(None) | ImageState::Unknown => true,
            ImageState::Ended => false,
        }
    }
}

/// Makes the first of the directories `<name>-1`, `<name>-2` and so on that does not exist.
pub(crate) fn next_directory(output: &Path, name: &str) -> Result<PathBuf> {
    for number in 1_u32.. {
        let directory = output.join(format!("{name}-{number}"));
        match std::fs::create_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            made => {
                let context = || format!("{} cannot be made", directory.display());
                return made.map(|()| directory.clone()).with_context(context);
            }
        }
    }
    let text = format!("{} has too many directories of this name", output.display());
    Err(Failure::failed(text).into())
}
