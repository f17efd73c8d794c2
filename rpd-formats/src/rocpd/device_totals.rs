//! Rows of what all device work adds up to, in light recordings; the statements of their tables are in `device_totals.sql`.

use std::io;

use rpd_core::session::{Session, TotalOf};
use rpd_core::spool::durations;
use rusqlite::Connection;

use super::names::Names;
use super::rows::Writer;

const TABLES: &str = include_str!("device_totals.sql");
pub(super) const VIEWS: &str = include_str!("device_totals_views.sql");
/// The view that only databases of light recordings have.
pub(super) const TOTAL: &str = "rpd_device_total";

/// Makes the tables, if there are sums.
pub(super) fn create(
    connection: &Connection,
    names: &Names,
    session: &Session,
) -> rusqlite::Result<()> {
    if session.device_totals.is_empty() {
        return Ok(());
    }
    connection.execute_batch(&names.fill_in(TABLES))?;
    connection.execute_batch(&names.fill_in(VIEWS))
}

/// Writes the sums, if there are any.
pub(super) fn write(writer: &Writer<'_>) -> io::Result<()> {
    let session = writer.session;
    if session.device_totals.is_empty() {
        return Ok(());
    }
    let columns = [
        "id",
        "kernel_id",
        "operation_id",
        "count",
        "total",
        "min",
        "max",
        "spread",
        "bytes",
        "first",
        "last",
    ];
    let mut totals = writer.rows(TOTAL, &columns)?;
    for (id, total) in (1..).zip(&session.device_totals) {
        let (kernel, operation) = match total.of {
            TotalOf::Kernel(kernel) => (Some(kernel.0.cast_signed()), None),
            TotalOf::OtherKernels => (None, None),
            TotalOf::Copy(operation) => {
                let name = session.operations[operation].name;
                (None, Some(writer.ids.string(name)))
            }
        };
        totals
            .integer(id)
            .optional(kernel)
            .optional(operation)
            .bits(total.count)
            .bits(total.total)
            .bits(total.min)
            .bits(total.max)
            .real(total.spread)
            .bits(total.bytes)
            .bits(total.first.0)
            .bits(total.last.0)
            .end_row()?;
    }
    totals.finish()?;
    let mut buckets = writer.rows(
        "rpd_device_duration",
        &["total_id", "bucket", "duration", "count"],
    )?;
    for (id, total) in (1..).zip(&session.device_totals) {
        // Most buckets are empty, and have no row.
        for (bucket, &count) in (0_u64..)
            .zip(&total.durations)
            .filter(|(_, count)| **count > 0)
        {
            buckets
                .integer(id)
                .bits(bucket)
                .bits(durations::shortest(bucket, durations::TOTAL_BITS))
                .bits(count)
                .end_row()?;
        }
    }
    buckets.finish()
}
