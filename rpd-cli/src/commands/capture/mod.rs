//! `rpd capture`: records a program's GPU calls with their data, and works on what was recorded.

mod accesses;
mod hiptracer;
mod inspect;
mod progress;
mod run;

use std::ffi::OsString;

use anyhow::Result;
use rpd_capture::{CaptureError, Class};

use crate::exit_status::{DAMAGED, FAILED};
use crate::failure::Failure;

pub(crate) use hiptracer::run as hiptracer;
pub(crate) use run::parse_backend;

/// Name of the sub-command.
const NAME: &str = "capture";

/// Runs `rpd capture`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let word = arguments.first().and_then(|word| word.to_str());
    if let Some(action) = word.and_then(inspect::action) {
        return action(&arguments[1..]);
    }
    run::run(arguments)
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
