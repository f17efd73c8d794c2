//! The one place that knows which module writes which format.

use std::path::PathBuf;

use anyhow::Result;
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::Session;
use rpd_core::stats::SessionStats;
use rpd_summary::Statistics;

use crate::isolation::isolated;

/// Formats that this build writes, as options name them.
pub(crate) const FORMATS: &[(&str, Format)] = &[
    ("csv", Format::Csv),
    ("json", Format::Json),
    ("pftrace", Format::Pftrace),
    ("otf2", Format::Otf2),
    ("rocpd", Format::Rocpd),
    ("parquet", Format::Parquet),
    ("html", Format::Html),
];

/// Writes a session in one format; the files. Statistics, where there are some, go into documents that hold them; files of
/// their own are for `--stats` alone. A panic in a writer is an error of that format.
pub(crate) fn write(
    format: Format,
    session: &Session,
    stats: Option<&SessionStats>,
    options: &Options,
    target: &Target,
) -> Result<Vec<PathBuf>> {
    let name = FORMATS.iter().find(|(_, known)| *known == format);
    let name = name.map_or("output", |(name, _)| *name);
    isolated(&format!("output {name}"), || {
        files(format, session, stats, options, target)
    })
}

fn files(
    format: Format,
    session: &Session,
    stats: Option<&SessionStats>,
    options: &Options,
    target: &Target,
) -> Result<Vec<PathBuf>> {
    let file = match format {
        Format::Csv => {
            let stats = stats.filter(|_| options.stats);
            return Ok(rpd_formats::csv::write(session, stats, options, target)?);
        }
        Format::Rocpd => rpd_formats::rocpd::write(session, options, target)?,
        Format::Json => rpd_formats::results_json::write(session, stats, options, target)?,
        Format::Pftrace => rpd_formats::perfetto::write(session, options, target)?,
        Format::Otf2 => rpd_formats::otf2::write(session, options, target)?,
        Format::Parquet => return Ok(rpd_formats::parquet::write(session, options, target)?),
        Format::Html => match stats {
            Some(stats) => rpd_formats::html::write(session, stats, options, target)?,
            // The page has statistics, asked for or not.
            None => {
                let stats = Statistics::new(session, options.kernel_names)?.session_stats()?;
                rpd_formats::html::write(session, &stats, options, target)?
            }
        },
    };
    Ok(file.into_iter().collect())
}
