//! Writer of `<prefix>_device_totals.csv`: what all dispatches and copies of a light recording add up to.

use std::path::PathBuf;

use rpd_core::options::Options;
use rpd_core::session::{DeviceTotal, Session};

use super::row::Row;
use super::write_records;
use crate::WriteError;
use crate::columns::columns;

/// What all work of one name adds up to.
struct NamedTotal<'a> {
    name: &'a str,
    total: &'a DeviceTotal,
}

columns!(NamedTotal<'_> => Row<'r>, |named|
    "Domain": text(named.total.domain().label()),
    "Name": free_text(named.name),
    "Count": number(named.total.count),
    "TotalDurationNs": number(named.total.total),
    "AverageNs": duration(named.total.average()),
    "MinNs": number(named.total.min),
    "MedianNs": duration(named.total.quantile(0.5)),
    "P90Ns": duration(named.total.quantile(0.9)),
    "P99Ns": duration(named.total.quantile(0.99)),
    "MaxNs": number(named.total.max),
    "Bytes": number(named.total.bytes),
    "First_Timestamp": number(named.total.first.0),
    "Last_Timestamp": number(named.total.last.0),
);

/// Writes `path` with a row for each name, and returns its name.
pub(super) fn write(
    session: &Session,
    options: &Options,
    path: PathBuf,
) -> Result<PathBuf, WriteError> {
    let totals = session.named_totals(options.kernel_names);
    let rows = totals
        .iter()
        .map(|(name, total)| NamedTotal { name, total });
    write_records(path, rows, options.csv_safe)
}
