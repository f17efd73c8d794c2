//! Writer of `<prefix>_removed.csv`: what the records add up to that were removed to keep the bound of a recording.

use std::path::PathBuf;

use rpd_core::options::Options;
use rpd_core::session::{RemovedTotal, Session};

use super::row::Row;
use super::write_records;
use crate::WriteError;
use crate::columns::columns;

/// What all removed records of one name add up to.
struct NamedRemoved<'a> {
    name: &'a str,
    total: &'a RemovedTotal,
}

columns!(NamedRemoved<'_> => Row<'r>, |named|
    "Domain": text(named.total.domain.label()),
    "Name": free_text(named.name),
    "Count": number(named.total.count),
    "TotalDurationNs": number(named.total.total),
    "MinNs": number(named.total.min),
    "MaxNs": number(named.total.max),
    "Bytes": number(named.total.bytes),
    "First_Timestamp": number(named.total.first.0),
    "Last_Timestamp": number(named.total.last.0),
);

/// Writes `path` with a row for each sum, and returns its name.
pub(super) fn write(
    session: &Session,
    options: &Options,
    path: PathBuf,
) -> Result<PathBuf, WriteError> {
    let removed = session.named_removed(options.kernel_names);
    let rows = removed
        .iter()
        .map(|(name, total)| NamedRemoved { name, total });
    write_records(path, rows, options.csv_safe)
}
