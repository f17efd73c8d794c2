//! Writes a recording in one format.

use std::path::PathBuf;

use anyhow::Result;
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::Session;
use rpd_core::stats::SessionStats;
use rpd_formats::Output;
use rpd_formats::registry::{self, StatisticsUse};
use rpd_summary::Statistics;

use crate::isolation::isolated;

/// Writes a session in one format and returns the files. Statistics are computed for a format that always shows them. A panic in a
/// writer is an error of that format.
pub(crate) fn write(
    format: Format,
    session: &Session,
    stats: Option<&SessionStats<'_>>,
    options: &Options,
    target: &Target,
) -> Result<Vec<PathBuf>> {
    isolated(&format!("output {}", format.word()), || {
        let computed = match (registry::entry(format).statistics, stats) {
            (StatisticsUse::Always, None) => {
                Some(Statistics::new(session, options.kernel_names)?.session_stats()?)
            }
            _ => None,
        };
        let output = Output {
            session,
            stats: stats.or(computed.as_ref()),
            options,
            target,
        };
        let files = rpd_formats::write(format, &output)?;
        if format == Format::Rocpd {
            for line in rpd_formats::rocpd::without_place(session, options) {
                crate::print_message(&format!("rpd: {line}\n"));
            }
        }
        Ok(files)
    })
}
