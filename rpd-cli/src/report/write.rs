//! The one place that knows which module writes which format.

use std::path::PathBuf;

use anyhow::{Result, bail};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::Session;
use rpd_core::stats::SessionStats;

/// Formats that this build writes, as options name them.
pub(crate) const FORMATS: &[(&str, Format)] = &[
    ("csv", Format::Csv),
    ("json", Format::Json),
    ("pftrace", Format::Pftrace),
    ("rocpd", Format::Rocpd),
];

/// Whether this build writes the format.
pub(crate) fn can_write(format: Format) -> bool {
    FORMATS.iter().any(|(_, known)| *known == format)
}

/// Writes a session in one format; the files.
pub(crate) fn write(
    format: Format,
    session: &Session,
    stats: Option<&SessionStats>,
    options: &Options,
    target: &Target,
) -> Result<Vec<PathBuf>> {
    let file = match format {
        Format::Csv => return Ok(rpd_formats::csv::write(session, stats, options, target)?),
        Format::Rocpd => rpd_formats::rocpd::write(session, options, target)?,
        Format::Json => rpd_formats::results_json::write(session, stats, options, target)?,
        Format::Pftrace => rpd_formats::perfetto::write(session, options, target)?,
        other => bail!("{other:?} cannot be written by this build"),
    };
    Ok(file.into_iter().collect())
}
