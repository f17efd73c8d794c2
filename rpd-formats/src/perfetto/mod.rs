//! `<prefix>_results.pftrace`: a Perfetto trace, streamed.
//!
//! All packets are of one sequence. Records of a track are written in their order, each as begin and end; readers sort
//! packets by time and keep the order of the file among equals, which nests them as they were.

mod counters;
mod pmc;
mod proto;
mod slices;
mod trace;
mod tracks;

use std::path::PathBuf;

use rpd_core::naming::Target;
use rpd_core::options::Options;
use rpd_core::session::Session;

use crate::WriteError;
use crate::file::TextFile;
use trace::Trace;
use tracks::Tracks;

/// Writes `<prefix>_results.pftrace`; `None` for a session without records, or with fewer bytes of them than asked for.
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub fn write(
    session: &Session,
    options: &Options,
    target: &Target,
) -> Result<Option<PathBuf>, WriteError> {
    let bytes = crate::csv::record_bytes(session);
    if bytes == 0 || bytes < options.minimum_output_bytes {
        return Ok(None);
    }
    let file = TextFile::create(target.file("results.pftrace"))?;
    let mut trace = Trace::new(file, session);
    let mut tracks = Tracks::new(&mut trace, session, options);
    slices::write(&mut trace, &mut tracks, session, options)?;
    counters::write(&mut trace, &mut tracks, session)?;
    pmc::write(&mut trace, &mut tracks, session)?;
    trace.file.finish().map(Some)
}
