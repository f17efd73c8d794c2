//! State of a run's reports, stored in the run directory.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use rpd_core::ids::ProcessId;
use rpd_core::naming::{Namer, Target};
use rpd_spool::image::ProcessImage;
use rpd_spool::regular_file::FileError;
use serde::{Deserialize, Serialize};

use super::directory::Directory;

const STATE_FILE: &str = "report.json";
/// Largest size of the file in bytes: it has a few hundred bytes for each process image.
const LARGEST: u64 = 256 << 20;

/// Files that a run's reports have written, so that a later report does not overwrite them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunState {
    /// Process id of the target.
    pub(crate) root: Option<ProcessId>,
    /// Number of the target's PID namespace, if it is known.
    pub(crate) root_namespace: Option<u64>,
    /// Output names that are in use.
    pub(crate) names: Namer,
    /// Names given to recordings, by their directory: a second attempt writes the same files.
    pub(crate) targets: BTreeMap<String, Target>,
}

impl RunState {
    /// Whether the image is one of the target itself, and not of a process that it started.
    pub(crate) fn is_root(&self, image: &ProcessImage) -> bool {
        self.root == Some(ProcessId(image.pid)) && self.root_namespace == image.namespace
    }

    /// Notes the target, if it is not known yet.
    pub(crate) fn set_root(&mut self, image: &ProcessImage) {
        if self.root.is_none() {
            self.root = Some(ProcessId(image.pid));
            self.root_namespace = image.namespace;
        }
    }

    /// Reads the state from a run's directory; empty if there is no file.
    pub(super) fn read(run: &Directory) -> Result<RunState> {
        let path = run.path().join(STATE_FILE);
        match run.read(STATE_FILE, LARGEST) {
            Ok(text) => serde_json::from_slice(&text)
                .with_context(|| format!("{} is damaged", path.display())),
            Err(FileError::Missing) => Ok(RunState::default()),
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    /// Writes the state to a run's directory.
    pub(super) fn write(&self, run: &Directory) -> Result<()> {
        run.write(STATE_FILE, &serde_json::to_vec(self)?)
    }
}
