//! Comma-separated values: one trace file and one statistics file per domain, agents, statistics of domains.

mod agents;
mod combined;
mod counters;
mod device_totals;
mod graphs;
mod kfd;
mod passes;
mod removed;
mod row;
mod samples;
mod thread_trace;
mod trace;

use std::path::PathBuf;

use rpd_core::domain::Domain;
use rpd_core::options::Options;
use rpd_core::session::{Session, Table};
use rpd_core::stats::{SessionStats, StatRow};

use crate::columns::{Columns, columns};
use crate::file::TextFile;
use crate::{Output, WriteError};
use combined::Shape;
pub use combined::write_combined;
pub use passes::{PassRow, write_passes};
use row::Row;
pub(crate) use row::{quote, scientific};
pub use thread_trace::{TracedLine, write_traced_lines};

/// Whether a file of so many bytes of records is written.
fn is_enough(bytes: u64, options: &Options) -> bool {
    bytes > 0 && bytes >= options.minimum_output_bytes
}

/// The files that [`Options::minimum_output_bytes`] leaves out, though there are records for them: their names behind the prefix.
pub fn left_out(session: &Session, options: &Options) -> Vec<String> {
    let is_left_out = |bytes: u64| bytes > 0 && !is_enough(bytes, options);
    let domains = Domain::ALL.into_iter();
    let domains = domains.filter(|domain| is_left_out(session.domain_bytes(*domain)));
    let mut files: Vec<String> = domains.map(Domain::trace_file).collect();
    if is_left_out(session.table_bytes(Table::Samples)) {
        files.push("pc_sampling".to_owned());
    }
    files
}

/// Writes the CSV files of a session and returns their names. Domains without records, or with fewer bytes of them than
/// requested, have no file. Statistics files are written when there are statistics.
///
/// # Errors
/// When a file cannot be written; files finished before that stay.
pub(crate) fn write(output: &Output<'_>) -> Result<Vec<PathBuf>, WriteError> {
    let &Output {
        session,
        stats,
        options,
        target,
    } = output;
    let mut files = Vec::new();
    for domain in Domain::ALL {
        let bytes = session.domain_bytes(domain);
        let has_rows = is_enough(bytes, options);
        // Statistics of recordings with a bound are of more than their rows.
        let without_rows = session.total_count(domain).unwrap_or(0) + session.removed_count(domain);
        if !has_rows && without_rows == 0 {
            continue;
        }
        let table = stats.and_then(|stats| {
            let tables = &stats.domains;
            tables
                .iter()
                .find(|(of, table)| *of == domain && !table.rows.is_empty())
        });
        if let (Some((_, table)), Some(stats)) = (table, stats) {
            let name = format!("{}_stats.csv", domain.stem());
            files.push(write_statistics(
                target.file(&name),
                stats,
                table.rows.iter(),
                options.csv_safe,
            )?);
        }
        if has_rows {
            let path = target.file(&format!("{}.csv", domain.trace_file()));
            files.push(trace::write(session, domain, options, path)?);
        }
    }
    // Runs leave these to the conversion of databases, as the original's tool does.
    if session.origin.is_some() {
        for file in graphs::FILES {
            if (file.rows)(session) > 0 {
                let mut out = TextFile::create(target.file(file.name))?;
                let shape = Shape::run(options.csv_safe);
                (file.write)(&mut out, session, options, &shape)?;
                files.push(out.finish()?);
            }
        }
    }
    if !session.device_totals.is_empty() {
        files.push(device_totals::write(
            session,
            options,
            target.file("device_totals.csv"),
        )?);
    }
    if !session.removed.is_empty() {
        files.push(removed::write(
            session,
            options,
            target.file("removed.csv"),
        )?);
    }
    if is_enough(session.table_bytes(Table::Samples), options) {
        for (name, stochastic) in [
            ("pc_sampling_host_trap.csv", false),
            ("pc_sampling_stochastic.csv", true),
        ] {
            files.extend(samples::write(
                session,
                stochastic,
                options,
                target.file(name),
            )?);
        }
    }
    files.extend(samples::write_counts(
        session,
        options,
        target.file("pc_sampling_counts.csv"),
    )?);
    files.push(agents::write(session, target.file("agent_info.csv"))?);
    if let Some(stats) = stats
        && stats.overall.iter().any(|row| row.calls > 0)
    {
        files.push(write_statistics(
            target.file("domain_stats.csv"),
            stats,
            stats.overall.iter(),
            options.csv_safe,
        )?);
    }
    Ok(files)
}

/// Records that are the rows of a file, one of them selected.
trait Records: for<'r> Columns<Row<'r>> {
    /// Names of the columns, behind those that the shape begins with.
    const COLUMNS: &'static [&'static str] = <Self as Columns<Row<'static>>>::NAMES;

    /// Writes the row of the selected record.
    #[inline]
    fn write(&mut self, file: &mut TextFile, shape: &Shape) -> Result<(), WriteError> {
        let mut row = Row::new(&mut file.buffer, &shape.row, shape);
        self.append_to(&mut row);
        row.end();
        file.flush_if_full()
    }
}

impl<T: for<'r> Columns<Row<'r>>> Records for T {}

/// Writes the header, if the file has one, with columns of these names.
fn write_header<'a>(file: &mut TextFile, shape: &Shape, names: impl IntoIterator<Item = &'a str>) {
    if shape.header {
        let mut row = Row::new(&mut file.buffer, b"", shape);
        for name in shape.column().into_iter().chain(names) {
            row.text(name);
        }
        row.end();
    }
}

/// Writes the header and a row for each of `selected`, which `select` makes the selected record.
#[inline]
fn write_rows<T: Records>(
    file: &mut TextFile,
    shape: &Shape,
    records: &mut T,
    selected: impl Iterator<Item = usize>,
    select: impl Fn(&mut T, usize),
) -> Result<(), WriteError> {
    write_header(file, shape, T::COLUMNS.iter().copied());
    for index in selected {
        select(records, index);
        records.write(file, shape)?;
    }
    Ok(())
}

/// Writes a file with the header and a row for each of `records`, and returns its name. `safe` is [`Options::csv_safe`].
fn write_records<T: Records>(
    path: PathBuf,
    records: impl IntoIterator<Item = T>,
    safe: bool,
) -> Result<PathBuf, WriteError> {
    let mut file = TextFile::create(path)?;
    let shape = Shape::run(safe);
    write_header(&mut file, &shape, T::COLUMNS.iter().copied());
    for mut record in records {
        record.write(&mut file, &shape)?;
    }
    file.finish()
}

/// A row of statistics.
struct NamedRow<'a> {
    name: &'a str,
    of: &'a StatRow,
}

columns!(NamedRow<'_> => Row<'r>, |named|
    "Name": free_text(named.name),
    "Calls": number(named.of.calls),
    "TotalDurationNs": number(named.of.total),
    "AverageNs": duration(named.of.average),
    "Percentage": percentage(named.of.percentage),
    "MinNs": number(named.of.min),
    "MaxNs": number(named.of.max),
    "StdDev": duration(named.of.std_dev),
);

fn write_statistics<'a>(
    path: PathBuf,
    stats: &SessionStats<'_>,
    rows: impl Iterator<Item = &'a StatRow>,
    safe: bool,
) -> Result<PathBuf, WriteError> {
    let named = rows.map(|of| NamedRow {
        name: stats.names.get(of.name),
        of,
    });
    write_records(path, named, safe)
}
