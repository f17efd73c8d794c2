//! Writer of `<prefix>_device_totals.csv`: what all dispatches and copies of a light recording add up to.

use std::path::PathBuf;

use rpd_core::options::Options;
use rpd_core::session::{DeviceTotal, Session};

use super::columns::{self, Columns as _, columns};
use super::combined::Shape;
use super::{Row, write_header};
use crate::WriteError;
use crate::file::TextFile;

columns!(&(String, DeviceTotal), |row, of, shape|
    "Domain" => row.text(of.1.domain().label()),
    "Name" => row.free_text(&of.0, shape.safe),
    "Count" => row.number(of.1.count),
    "TotalDurationNs" => row.number(of.1.total),
    "AverageNs" => row.duration(of.1.average()),
    "MinNs" => row.number(of.1.min),
    "MedianNs" => row.duration(of.1.quantile(0.5)),
    "P90Ns" => row.duration(of.1.quantile(0.9)),
    "P99Ns" => row.duration(of.1.quantile(0.99)),
    "MaxNs" => row.number(of.1.max),
    "Bytes" => row.number(of.1.bytes),
    "First_Timestamp" => row.number(of.1.first.0),
    "Last_Timestamp" => row.number(of.1.last.0),
);

/// Writes `path` with a row for each name, and returns its name.
pub(super) fn write(
    session: &Session,
    options: &Options,
    path: PathBuf,
) -> Result<PathBuf, WriteError> {
    let mut file = TextFile::create(path)?;
    let shape = Shape::run(options.csv_safe);
    write_header(
        &mut file,
        &shape,
        columns::names::<&(String, DeviceTotal)>(&shape),
    );
    for mut row in &session.named_totals(options.kernel_names) {
        let fields = Row::new(&mut file.buffer, b"");
        row.fields(fields, &shape).end();
        file.flush_if_full()?;
    }
    file.finish()
}
