//! Comma-separated values: one trace file and one statistics file per domain, agents, statistics of domains.

mod agents;
mod combined;
mod counters;
mod passes;
mod row;
mod trace;

use std::path::PathBuf;

use rpd_core::domain::Domain;
use rpd_core::naming::Target;
use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_core::stats::{SessionStats, StatRow};

use crate::WriteError;
use crate::file::TextFile;
use combined::Begin;
pub use combined::write_combined;
pub use passes::{PassRow, write_passes};
use row::Row;
pub(crate) use row::{quote, scientific};

/// Writes the CSV files of a session and returns their names. Domains without records have no file, and a session
/// without records has none at all. Statistics files are written when `stats` is given.
///
/// # Errors
/// When a file cannot be written; files finished before that stay.
pub fn write(
    session: &Session,
    stats: Option<&SessionStats>,
    options: &Options,
    target: &Target,
) -> Result<Vec<PathBuf>, WriteError> {
    let sizes: Vec<(Domain, u64)> = Domain::ALL
        .into_iter()
        .map(|domain| (domain, trace::bytes(session, domain)))
        .filter(|(_, bytes)| *bytes > 0)
        .collect();
    let mut files = Vec::new();
    let total: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    if total == 0 || total < options.minimum_output_bytes {
        return Ok(files);
    }
    for (domain, bytes) in sizes {
        if bytes < options.minimum_output_bytes {
            continue;
        }
        let table = stats.and_then(|stats| {
            let tables = &stats.domains;
            tables
                .iter()
                .find(|(of, table)| *of == domain && !table.rows.is_empty())
        });
        if let Some((_, table)) = table {
            let name = format!("{}_stats.csv", domain.stem());
            files.push(write_statistics(
                target.file(&name),
                &table.rows,
                options.csv_safe,
            )?);
        }
        let path = target.file(&format!("{}.csv", domain.trace_file()));
        files.push(trace::write(session, domain, options, path)?);
    }
    files.push(agents::write(session, target.file("agent_info.csv"))?);
    if let Some(stats) = stats
        && stats.overall.iter().any(|row| row.calls > 0)
    {
        files.push(write_statistics(
            target.file("domain_stats.csv"),
            &stats.overall,
            options.csv_safe,
        )?);
    }
    Ok(files)
}

/// Bytes of all records of a session, as `--minimum-output-data` counts them.
pub fn record_bytes(session: &Session) -> u64 {
    let domains = Domain::ALL.into_iter();
    domains.map(|domain| trace::bytes(session, domain)).sum()
}

fn write_header(file: &mut TextFile, begin: &Begin, columns: &[&str]) {
    if begin.header {
        let first = begin.column();
        first
            .iter()
            .chain(columns)
            .fold(Row::new(&mut file.buffer, b""), |row, column| {
                row.text(column)
            })
            .end();
    }
}

fn write_statistics(path: PathBuf, rows: &[StatRow], safe: bool) -> Result<PathBuf, WriteError> {
    let mut file = TextFile::create(path)?;
    write_header(
        &mut file,
        &Begin::run(),
        &[
            "Name",
            "Calls",
            "TotalDurationNs",
            "AverageNs",
            "Percentage",
            "MinNs",
            "MaxNs",
            "StdDev",
        ],
    );
    for row in rows {
        Row::new(&mut file.buffer, b"").statistics(row, safe).end();
        file.flush_if_full()?;
    }
    file.finish()
}
