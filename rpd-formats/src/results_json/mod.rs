//! `<prefix>_results.json`: everything of one process in one document, streamed.

mod counters;
mod head;
mod records;
mod samples;
mod stacks;
mod summary;

use std::path::PathBuf;

use crate::file::TextFile;
use crate::operations::OperationNumbers;
use crate::{Output, WriteError};

/// File name after the prefix.
pub(crate) const FILE: &str = "results.json";

/// Writes `<prefix>_results.json`.
/// The summary is empty without `stats`.
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub(crate) fn write(output: &Output<'_>) -> Result<Vec<PathBuf>, WriteError> {
    let &Output {
        session,
        stats,
        options,
        target,
    } = output;
    let mut file = TextFile::create(target.file(FILE))?;
    let operations = OperationNumbers::new(session);
    file.buffer
        .extend_from_slice(b"{\"rocprofiler-sdk-tool\":[{");
    let mut instructions = samples::Instructions::from_session(session);
    head::write(
        &mut file,
        session,
        stats,
        options,
        target,
        &operations,
        &instructions,
    )?;
    counters::write(&mut file, session, options)?;
    records::write(&mut file, session, options, &operations, &mut instructions)?;
    stacks::write(&mut file, session, options)?;
    file.buffer.extend_from_slice(b"}]}");
    Ok(vec![file.finish()?])
}
