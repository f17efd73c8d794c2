//! Errors that end a replay.

use rpd_capture::{CaptureError, Class};

/// The kind of failure, which decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The replay failed for any other reason.
    Failed,
    /// The capture is incomplete or damaged.
    Damaged,
    /// A call of the runtime failed.
    Api,
    /// A result differs from the capture.
    Differs,
    /// No GPU here runs the code.
    Incompatible,
    /// The capture has calls that cannot be replayed.
    Unsupported,
}

/// An error of a replay: one line, and its kind.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ReplayError {
    /// Message: problem, place, and remedy.
    pub message: String,
    /// Exit status that the error leads to.
    pub status: Status,
}

impl ReplayError {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> ReplayError {
        ReplayError {
            message: message.into(),
            status,
        }
    }

    pub(crate) fn failed(message: impl Into<String>) -> ReplayError {
        ReplayError::new(Status::Failed, message)
    }

    pub(crate) fn damaged(message: impl Into<String>) -> ReplayError {
        ReplayError::new(Status::Damaged, message)
    }
}

impl From<CaptureError> for ReplayError {
    fn from(error: CaptureError) -> ReplayError {
        let status = match error.class() {
            Class::Damaged => Status::Damaged,
            Class::Failed => Status::Failed,
        };
        ReplayError::new(status, error.to_string())
    }
}
