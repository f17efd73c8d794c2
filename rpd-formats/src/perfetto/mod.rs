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

use crate::file::TextFile;
use crate::{Output, WriteError};
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
    let mut trace = Trace::new(file, session);
    let mut tracks = Tracks::new(&mut trace, session, options);
    slices::write(&mut trace, &mut tracks, session, options)?;
    counters::write(&mut trace, &mut tracks, session)?;
    pmc::write(&mut trace, &mut tracks, session)?;
    samples::write(&mut trace, &mut tracks, session)?;
    Ok(vec![trace.file.finish()?])
}
