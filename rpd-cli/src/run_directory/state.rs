//! What has been reported of a run so far.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use rpd_core::ids::ProcessId;
use rpd_core::naming::{Namer, Target};
use rpd_spool::regular_file::FileError;
use serde::{Deserialize, Serialize};

use super::folder::Folder;

const STATE_FILE: &str = "report.json";
/// Bytes of the largest file of this kind: it has a few hundred bytes for each process image.
const LARGEST: u64 = 256 << 20;

/// What has been reported of a run so far, so that a later report of the rest overwrites nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// The process that rpd started.
    pub(crate) root: Option<ProcessId>,
    /// Names that are taken.
    pub(crate) names: Namer,
    /// Names given to recordings, by their folder: a second attempt writes the same files.
    pub(crate) targets: BTreeMap<String, Target>,
}

impl State {
    /// Reads it from a run's directory; nothing has been reported where there is none.
    pub(super) fn read(run: &Folder) -> Result<State> {
        let path = run.path().join(STATE_FILE);
        match run.read(STATE_FILE, LARGEST) {
            Ok(text) => serde_json::from_slice(&text)
                .with_context(|| format!("{} is damaged", path.display())),
            Err(FileError::Missing) => Ok(State::default()),
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    /// Writes it to a run's directory.
    pub(super) fn write(&self, run: &Folder) -> Result<()> {
        run.write(STATE_FILE, &serde_json::to_vec(self)?)
    }
}
