//! After the target: from recordings to files, tables and the ledger.

use anyhow::Result;
use rpd_core::options::{Format, Options};

use crate::launch::spawn::Ending;
use crate::run_directory::RunDirectory;

/// Whether this build writes the format.
pub(crate) fn can_write(format: Format) -> bool {
    matches!(format, Format::Csv | Format::Rocpd)
}

/// Finishes what is there of a run. False when an output could not be written.
pub(crate) fn finish(
    run: &RunDirectory,
    _options: &Options,
    _ending: Option<Ending>,
) -> Result<bool> {
    run.remove_if_done()?;
    Ok(true)
}
