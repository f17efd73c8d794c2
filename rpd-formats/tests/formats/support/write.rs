//! Writing through the registry of formats.

use std::path::{Path, PathBuf};

use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::Session;
use rpd_core::stats::SessionStats;
use rpd_formats::destination::Destination;
use rpd_formats::registry::entry;
use rpd_formats::{Output, WriteError};
use rpd_tests::skips::skipped;

/// Writes a session in one format; its files.
pub(crate) fn write(
    format: Format,
    session: &Session,
    stats: Option<&SessionStats<'_>>,
    options: &Options,
    target: &Target,
) -> Result<Vec<PathBuf>, WriteError> {
    let output = Output {
        session,
        stats,
        options,
        target,
    };
    rpd_formats::write(format, &output)
}

/// The destination of a file that is no input.
pub(crate) fn destination(path: &Path) -> Destination {
    let no_inputs: [&Path; 0] = [];
    Destination::named(path, no_inputs).expect("accepted")
}

/// As [`write`], for a format with one file at most.
pub(crate) fn write_one(
    format: Format,
    session: &Session,
    stats: Option<&SessionStats<'_>>,
    options: &Options,
    target: &Target,
) -> Result<Option<PathBuf>, WriteError> {
    let files = write(format, session, stats, options, target)?;
    assert!(files.len() <= 1, "{files:?}");
    Ok(files.into_iter().next())
}

/// Whether the library that a format needs is not installed; the check is skipped then.
pub(crate) fn lacks_library(format: Format) -> bool {
    let check = entry(format).library;
    let missing = check.and_then(|check| check(&Options::default()).err());
    if let Some(missing) = &missing {
        skipped(&format!("-f {}", format.word()), &missing.to_string());
    }
    missing.is_some()
}
