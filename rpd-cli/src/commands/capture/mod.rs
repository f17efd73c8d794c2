//! `rpd capture`: records a program's GPU calls with their data, and works on what was recorded.

mod accesses;
mod choices;
mod directory;
mod excerpt;
mod hiptracer;
mod inspect;
mod processes;
mod progress;
mod recover;
pub(crate) mod replay;
mod run;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rpd_capture::{Capture, CaptureError, Class};
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_formats::destination::Destination;

use crate::exit_status::{DAMAGED, FAILED};
use crate::failure::Failure;

pub(crate) use hiptracer::run as hiptracer;
pub(crate) use recover::recover;
pub(crate) use run::parse_backend;

/// Name of the sub-command.
const NAME: &str = "capture";

/// Names of the actions on captures; without one, a program is captured.
pub(crate) const ACTIONS: [&str; 8] = [
    "info", "ls", "show", "check", "diff", "export", "trim", "pack",
];

/// Runs `rpd capture`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let word = arguments.first().and_then(|word| word.to_str());
    if let Some(action) = word.and_then(|word| inspect::action(word).or(excerpt::action(word))) {
        return action(&arguments[1..]);
    }
    run::run(arguments)
}

/// A capture that the user named: a directory, or a capsule, which is unpacked until this is dropped.
pub(crate) struct Opened {
    path: PathBuf,
    _unpacked: Option<TemporaryDirectory>,
}

/// The destination that an option of the action `name` gives, which is not in the capture that the user named; standard output
/// without one.
fn output(name: &str, given: Option<&Path>, capture: &Path) -> Result<Destination, Failure> {
    super::destination(name, given, [rpd_capture::resolve(capture)])
}

/// Refuses a range of calls that ends before it begins.
pub(crate) fn check_range(name: &str, from: u64, until: Option<u64>) -> Result<(), Failure> {
    match until {
        Some(until) if until < from => Err(Failure::usage(format!(
            "{name}: --until {until} is before --from {from}"
        ))),
        _ => Ok(()),
    }
}

impl Opened {
    /// The directory of the capture that `given` names.
    pub(crate) fn new(given: &Path) -> Result<Opened> {
        let path = rpd_capture::resolve(given);
        if !path.is_file() {
            return Ok(Opened {
                path,
                _unpacked: None,
            });
        }
        let directory = TemporaryDirectory::new()?;
        // The name of the capsule, for messages about its files.
        let path = directory.path().join(given.file_name().unwrap_or_default());
        std::fs::create_dir(&path)?;
        rpd_capture::unpack_capsule(given, &path).map_err(failure)?;
        Ok(Opened {
            path,
            _unpacked: Some(directory),
        })
    }

    /// Path of the capture's directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn capture(&self) -> Result<Capture> {
        Ok(Capture::open(&self.path).map_err(failure)?)
    }
}

/// An error of a capture, with its exit status.
pub(crate) fn failure(error: CaptureError) -> Failure {
    let status = match error.class() {
        Class::Damaged => DAMAGED,
        Class::Failed => FAILED,
    };
    let mut message = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        let text = cause.to_string();
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    Failure::new(status, message)
}
