//! `<prefix>_results.pftrace`: a Perfetto trace, streamed.
//!
//! All packets are of one sequence. Records of a track are written in their order, each as start and end; readers sort
//! packets by time and keep the order of the file among equals, which nests them as they were.

mod callstacks;
mod counters;
mod pmc;
mod proto;
mod samples;
mod slices;
mod trace;
mod tracks;
mod waves;

/// Protocol buffers, for other writers.
pub mod protobuf {
    pub use super::proto::{nested, text, uint};
}

pub use waves::{WavePlace, WaveSpan, WaveTrace};

use std::path::PathBuf;

use rpd_core::options::Options;
use rpd_core::session::Session;

use crate::file::TextFile;
use crate::{Output, Placed, WriteError};
use trace::Trace;
use tracks::Tracks;

/// File name after the prefix.
pub(crate) const FILE: &str = "results.pftrace";

/// Writes `<prefix>_results.pftrace`.
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub(crate) fn write(output: &Output<'_>) -> Result<Vec<PathBuf>, WriteError> {
    let &Output {
        session,
        options,
        target,
        ..
    } = output;
    let file = TextFile::create(target.file(FILE))?;
    let trace = fill(Trace::new(file, session, None), session, options)?;
    Ok(vec![trace.file.finish()?])
}

/// Writes the recording of a trace that was begun.
fn fill(mut trace: Trace, session: &Session, options: &Options) -> Result<Trace, WriteError> {
    let mut tracks = Tracks::new(&mut trace, session, options);
    slices::write(&mut trace, &mut tracks, session, options)?;
    counters::write(&mut trace, &mut tracks, session)?;
    pmc::write(&mut trace, &mut tracks, session)?;
    samples::write(&mut trace, &mut tracks, session)?;
    Ok(trace)
}

/// A trace of several recordings in the making: each is a sequence of packets of its own.
pub(crate) struct JointTrace(TextFile);

impl JointTrace {
    /// Begins the file.
    pub(crate) fn create(path: PathBuf) -> Result<JointTrace, WriteError> {
        TextFile::create(path).map(JointTrace)
    }

    /// Adds a recording.
    pub(crate) fn with(self, placed: &Placed<'_>) -> Result<JointTrace, WriteError> {
        let trace = Trace::new(self.0, placed.session, Some(placed));
        let trace = fill(trace, placed.session, placed.options)?;
        Ok(JointTrace(trace.file))
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<PathBuf, WriteError> {
        self.0.finish()
    }
}
