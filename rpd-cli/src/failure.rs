//! Errors that end rpd: one line and an exit status.

use std::fmt;

use crate::exit_status::{FAILED, USAGE};

/// An error with its exit status. Errors without one in their chain have status 1.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(status: u8, message: impl Into<String>) -> Failure {
        Failure {
            status,
            message: message.into(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(USAGE, message)
    }

    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure::new(FAILED, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The exit status for an error.
pub(crate) fn status(error: &anyhow::Error) -> u8 {
    error
        .downcast_ref::<Failure>()
        .map_or(FAILED, |failure| failure.status)
}

/// The error and its causes in one line without line breaks and control characters. A cause whose text is part of an error's
/// text is not repeated.
pub(crate) fn line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string().replace('\n', " ");
        if line.is_empty() {
            line = text;
        } else if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
    }
    rpd_core::text::foreign::shown(&line).into_owned()
}
