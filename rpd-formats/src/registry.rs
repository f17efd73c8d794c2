//! The registry of output formats: the properties of each, and the function that writes it.
//!
//! [`Format`] lists the formats and their words. [`entry`] has an arm for each, without which it does not compile. The
//! command line, `rpd convert`, reports and the measurement of writers read both.

#![deny(clippy::wildcard_enum_match_arm)]

use std::path::PathBuf;

use rpd_core::options::{Format, Options};

use crate::otf2::LibraryMissing;
pub use crate::output::Output;
use crate::{WriteError, csv, html, otf2, perfetto, results_json, rocpd};

/// Writes a recording in one format and returns the names of the files that it made. It is not called for a recording
/// without records.
pub type Writer = fn(&Output<'_>) -> Result<Vec<PathBuf>, WriteError>;

/// Checks that the library of a format can be loaded.
pub type LibraryCheck = fn(&Options) -> Result<(), LibraryMissing>;

/// Use of statistics by a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatisticsUse {
    /// The format has no statistics.
    Unused,
    /// Files of their own for statistics, written with `--stats` only.
    OnRequest,
    /// Shows statistics if they were computed for another purpose.
    WhenComputed,
    /// Always shows statistics: they are computed for the format.
    Always,
}

/// Properties of a format.
#[derive(Debug, Clone, Copy)]
pub struct FormatEntry {
    /// A note for help texts; may be empty.
    pub note: &'static str,
    /// Name, behind the prefix, of the one file that the format makes, or to which its other files belong; `None` for a
    /// format with a file per domain or table.
    pub file: Option<&'static str>,
    /// Whether the format shows arguments of calls, so that they are recorded.
    pub arguments: bool,
    /// The format's use of statistics.
    pub statistics: StatisticsUse,
    /// For an archive that a library of the system writes: checks that it can be loaded, before there is anything to write.
    pub library: Option<LibraryCheck>,
    /// The function that writes the format. [`write()`] calls it.
    writer: Writer,
}

/// The registry entry of a format.
pub const fn entry(format: Format) -> FormatEntry {
    // No `_`: a new format states each of its properties here, or does not compile.
    match format {
        Format::Csv => FormatEntry {
            note: "",
            file: None,
            arguments: false,
            statistics: StatisticsUse::OnRequest,
            library: None,
            writer: csv::write,
        },
        Format::Json => FormatEntry {
            note: "",
            file: Some(results_json::FILE),
            arguments: true,
            statistics: StatisticsUse::WhenComputed,
            library: None,
            writer: results_json::write,
        },
        Format::Pftrace => FormatEntry {
            note: "Perfetto",
            file: Some(perfetto::FILE),
            arguments: true,
            statistics: StatisticsUse::Unused,
            library: None,
            writer: perfetto::write,
        },
        Format::Otf2 => FormatEntry {
            note: "",
            file: Some(otf2::FILE),
            arguments: false,
            statistics: StatisticsUse::Unused,
            library: Some(otf2::check),
            writer: otf2::write,
        },
        Format::Rocpd => FormatEntry {
            note: "",
            file: Some(rocpd::FILE),
            arguments: true,
            statistics: StatisticsUse::Unused,
            library: None,
            writer: rocpd::write,
        },
        Format::Parquet => FormatEntry {
            note: "",
            file: None,
            arguments: false,
            statistics: StatisticsUse::Unused,
            library: None,
            writer: crate::parquet::write,
        },
        Format::Html => FormatEntry {
            note: "a page to look at",
            file: Some(html::FILE),
            arguments: false,
            statistics: StatisticsUse::Always,
            library: None,
            writer: html::write,
        },
    }
}

/// Writes a recording in a format and returns the names of the files: none for a recording without records, or with fewer
/// bytes of them than `--minimum-output-data` requests.
///
/// # Errors
/// When a file cannot be written; files finished before that stay.
pub fn write(format: Format, output: &Output<'_>) -> Result<Vec<PathBuf>, WriteError> {
    let bytes = output.session.record_bytes();
    if bytes == 0 || bytes < output.options.minimum_output_bytes {
        return Ok(Vec::new());
    }
    let entry = entry(format);
    let stats = match entry.statistics {
        StatisticsUse::Unused => None,
        StatisticsUse::OnRequest => output.stats.filter(|_| output.options.stats),
        StatisticsUse::WhenComputed | StatisticsUse::Always => output.stats,
    };
    (entry.writer)(&Output { stats, ..*output })
}

/// The words of all formats with their notes, for help texts.
pub fn list() -> String {
    let formats = Format::ALL.iter();
    let words = formats.map(|format| match entry(*format).note {
        "" => format.word().to_owned(),
        note => format!("{} ({note})", format.word()),
    });
    words.collect::<Vec<_>>().join(", ")
}
