//! `summary`: statistics by domain and by name, written row by row.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;
use std::io;

use rpd_core::domain::Domain;
use rpd_core::ids::{Nanoseconds, StringId};
use rpd_core::session::{KernelLabels, PlausibleTimes, Session, Table};
use rpd_core::stats::{SessionStats, StatRow, StatTable};
use rpd_core::storage::by_id::ById;
use rpd_core::storage::sorted::{Keyed, Sorter};
use zerocopy::{Immutable, IntoBytes};

use super::head::raw;
use crate::WriteError;
use crate::file::TextFile;
use crate::json::Object;

/// Order of the summary.
const SUMMARY: [Domain; Domain::ALL.len()] = [
    Domain::KernelDispatch,
    Domain::HsaApi,
    Domain::HipApi,
    Domain::MemoryCopy,
    Domain::MemoryAllocation,
    Domain::MarkerApi,
    Domain::RcclApi,
    Domain::CounterCollection,
    Domain::ScratchMemory,
    Domain::RocdecodeApi,
    Domain::RocjpegApi,
    Domain::CudaApi,
    Domain::CudaDriverApi,
    Domain::RocshmemApi,
    Domain::HipfileApi,
    Domain::Ompt,
    Domain::Kfd,
];

/// Writes the key and its array, which is empty without `stats`.
pub(super) fn write(
    file: &mut TextFile,
    session: &Session,
    stats: Option<&SessionStats<'_>>,
    labels: &KernelLabels<'_>,
) -> Result<(), WriteError> {
    raw(file, ",\"summary\":[");
    let mut separator = "";
    let domains = stats
        .into_iter()
        .flat_map(|stats| SUMMARY.map(|domain| (stats, domain)));
    for (stats, domain) in domains {
        let table = stats.domains.iter().find(|(of, _)| *of == domain);
        let overall = stats.overall.iter().find(|row| row.domain == domain);
        if let (Some((_, table)), Some(overall)) = (table, overall) {
            raw(file, separator);
            separator = ",";
            write_domain(file, session, stats, labels, (domain, overall, table))?;
        }
    }
    raw(file, "]");
    Ok(())
}

fn write_domain(
    file: &mut TextFile,
    session: &Session,
    stats: &SessionStats<'_>,
    labels: &KernelLabels<'_>,
    (domain, overall, table): (Domain, &StatRow, &StatTable),
) -> Result<(), WriteError> {
    let squares = squares(session, domain, stats, labels);
    let total = squares.iter().fold(0, u64::wrapping_add);
    raw(file, "{\"domain\":");
    crate::json::quote_bytes(&mut file.buffer, domain.label());
    raw(file, ",\"stats\":");
    raw(file, &figures(overall, total).open());
    raw(file, ",\"operations\":[");
    let in_order = by_name(session, stats, table).map_err(|error| file.failed(error))?;
    let mut separator = "";
    for row in in_order {
        let square = squares.get(row.name.0);
        let text = Object::new()
            .text("key", stats.names.get(row.name))
            .json("value", &figures(&row, square).end())
            .end();
        raw(file, separator);
        raw(file, &text);
        separator = ",";
        file.flush_if_full()?;
    }
    raw(file, "]}}");
    Ok(())
}

/// A row of statistics in the order of names.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct PlacedRow {
    /// Place of the name in alphabetical order.
    place: u64,
    row: StatRow,
}

impl Keyed for PlacedRow {
    type Key = u64;

    fn key(&self) -> u64 {
        self.place
    }
}

/// The rows of the table of a domain in the order of their names.
fn by_name(
    session: &Session,
    stats: &SessionStats<'_>,
    table: &StatTable,
) -> io::Result<impl Iterator<Item = StatRow> + use<>> {
    // Rows are sorted by the places of their names: rows may be in files, and texts take more memory than numbers.
    let places = stats.names.places(table.rows.iter().map(|row| row.name))?;
    let mut sorter = Sorter::new(session.storage.as_ref());
    for &row in &table.rows {
        let place = places.get(row.name.0).into();
        sorter.push(PlacedRow { place, row })?;
    }
    Ok(sorter.finish()?.map(|placed| placed.row))
}

fn float(value: f64) -> String {
    if value.is_finite() {
        format!("{value:?}")
    } else {
        "0.0".to_owned()
    }
}

fn figures(row: &StatRow, squares: u64) -> Object {
    Object::new()
        .number("count", row.calls)
        .number("sum", row.total)
        .number("sqr", squares)
        .number("min", row.min)
        .number("max", row.max)
        .json("mean", &float(row.average))
        .json("stddev", &float(row.std_dev))
        .json("variance", &float(row.std_dev * row.std_dev))
}

/// Sums of squared durations, modulo 2^64 as the original has them, by id of the name.
fn squares(
    session: &Session,
    domain: Domain,
    stats: &SessionStats<'_>,
    labels: &KernelLabels<'_>,
) -> ById<u64> {
    let mut sums = ById::<u64>::zeros(stats.names.len(), session.storage.as_ref());
    let times = PlausibleTimes::from_session(session);
    let mut add = |name: StringId, start: Nanoseconds, end: Nanoseconds| {
        let Some(duration) = times.duration(start, end) else {
            return;
        };
        if let Some(sum) = sums.get_mut(name.0) {
            *sum = sum.wrapping_add(duration.wrapping_mul(duration));
        }
    };
    macro_rules! by_operation {
        ($table:expr) => {
            for index in $table.indices() {
                let name = session.operations[$table.operation[index]].name;
                add(name, $table.start[index], $table.end[index]);
            }
        };
    }
    match domain.table() {
        Table::Dispatches => {
            let table = &session.dispatches;
            let mut named = HashMap::new();
            for index in table.indices() {
                let name = *named
                    .entry((table.kernel[index], table.region[index]))
                    .or_insert_with(|| {
                        let name = stats.names.find(labels.dispatch(index));
                        name.unwrap_or_default()
                    });
                add(name, table.start[index], table.end[index]);
            }
        }
        Table::Copies => by_operation!(session.copies),
        Table::Allocations => by_operation!(session.allocations),
        Table::Scratch => by_operation!(session.scratch),
        Table::KfdEvents => by_operation!(session.kfd_events),
        // These statistics are about durations.
        Table::Counted | Table::Samples | Table::GraphLaunches | Table::HipEvents => {}
        Table::Calls => {
            let calls = &session.calls;
            for index in calls.indices() {
                if session.call(index).domain() == domain {
                    add(
                        session.call_label(index),
                        calls.start[index],
                        calls.end[index],
                    );
                }
            }
        }
    }
    sums
}
