//! `<prefix>_results.json`: everything of one process in one document, streamed.

mod counters;
mod head;
mod records;

use std::path::PathBuf;

use rpd_core::kernel_name::KernelLabels;
use rpd_core::naming::Target;
use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_core::stats::SessionStats;

use crate::WriteError;
use crate::file::TextFile;
use crate::operations::Operations;

/// Writes `<prefix>_results.json`; `None` for a session without records, or with fewer bytes of them than asked for.
/// The summary is empty without `stats`.
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub fn write(
    session: &Session,
    stats: Option<&SessionStats>,
    options: &Options,
    target: &Target,
) -> Result<Option<PathBuf>, WriteError> {
    let bytes = crate::csv::record_bytes(session);
    if bytes == 0 || bytes < options.minimum_output_bytes {
        return Ok(None);
    }
    let mut file = TextFile::create(target.file("results.json"))?;
    let operations = Operations::new(session);
    let labels = KernelLabels::new(session, options.kernel_names);
    file.buffer
        .extend_from_slice(b"{\"rocprofiler-sdk-tool\":[{");
    head::write(
        &mut file,
        session,
        stats,
        options,
        target,
        &operations,
        &labels,
    )?;
    counters::write(&mut file, session, options)?;
    records::write(&mut file, session, options, &operations)?;
    file.buffer.extend_from_slice(b"}]}");
    file.finish().map(Some)
}
