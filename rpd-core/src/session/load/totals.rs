//! Records of sums: over dispatches and copies of light recordings, and over records that were removed to keep a bound.

use super::super::removed_totals::kind_of;
use super::super::{DeviceTotal, RemovedOf, RemovedTotal, Session, Table, TotalOf};
use super::meta::Meta;
use crate::domain::{Domain, KFD_KINDS, Kind};
use crate::ids::{KernelId, Nanoseconds};
use crate::spool::format::{self, total_of};
use crate::spool::reader::Record;
use crate::spool::record::{RecordKind, RecordRole};

/// The sums as they were read. Operations of copies have names only when the meta stream has been read.
#[derive(Debug, Default)]
pub(super) struct DeviceTotals(Vec<(u16, format::DeviceTotal)>);

impl DeviceTotals {
    pub(super) fn load(&mut self, record: &Record<'_>) -> Option<()> {
        let (total, _) = record.parse::<format::DeviceTotal>()?;
        // The collector writes the record before it adds the first dispatch or copy.
        if total.count > 0 {
            self.0.push((record.header.aux, total));
        }
        Some(())
    }

    pub(super) fn finish(self, meta: &mut Meta, session: &mut Session) {
        if self.0.is_empty() {
            return;
        }
        // Names are resolved when the second stream begins; a recording may have the meta stream only.
        meta.resolve(session);
        for (aux, total) in self.0 {
            let of = match (aux, total.subject) {
                (total_of::DISPATCHES, total_of::OTHERS) => TotalOf::OtherKernels,
                (total_of::DISPATCHES, kernel) => TotalOf::Kernel(KernelId(kernel)),
                (total_of::COPIES, number) => {
                    let number = u32::try_from(number).unwrap_or(u32::MAX);
                    TotalOf::Copy(meta.operation(Kind::MemoryCopy, number, session))
                }
                _ => continue,
            };
            session.device_totals.push(DeviceTotal {
                of,
                count: total.count,
                total: total.total,
                // In a damaged recording the values can contradict each other.
                min: total.min.min(total.max),
                max: total.max,
                spread: total.spread.max(0.0),
                bytes: total.bytes,
                first: Nanoseconds(total.first),
                last: Nanoseconds(total.last.max(total.first)),
                durations: total.durations.to_vec(),
            });
        }
    }
}

/// Sums over removed records as they were read.
#[derive(Debug, Default)]
pub(super) struct RemovedTotals(Vec<format::RemovedTotal>);

impl RemovedTotals {
    pub(super) fn load(&mut self, record: &Record<'_>) -> Option<()> {
        let (total, _) = record.parse::<format::RemovedTotal>()?;
        if total.count > 0 {
            self.0.push(total);
        }
        Some(())
    }

    pub(super) fn finish(self, meta: &mut Meta, session: &mut Session) {
        if self.0.is_empty() {
            return;
        }
        meta.resolve(session);
        for total in self.0 {
            let role = RecordKind::from_tag(total.header.aux).map(RecordKind::role);
            let Some(RecordRole::Row(table) | RecordRole::HalfRow(table)) = role else {
                continue;
            };
            let number = total.subject as u32;
            let of = match table {
                _ if total.subject == format::RemovedTotal::OTHERS => RemovedOf::Others,
                Table::Dispatches | Table::Counted => RemovedOf::Kernel(KernelId(total.subject)),
                Table::Samples | Table::GraphLaunches | Table::HipEvents => RemovedOf::Others,
                // A call of a kind that the recording does not name is damage, and no row either.
                Table::Calls => match meta.call((total.subject >> 32) as u16, number, session) {
                    Some(operation) => RemovedOf::Operation(operation),
                    None => RemovedOf::Others,
                },
                Table::KfdEvents => {
                    let kind = KFD_KINDS.get((total.subject >> 32) as usize);
                    match kind {
                        Some(&kind) => RemovedOf::Operation(meta.operation(kind, number, session)),
                        None => RemovedOf::Others,
                    }
                }
                Table::Copies | Table::Allocations | Table::Scratch => {
                    let Some(kind) = kind_of(table) else { continue };
                    RemovedOf::Operation(meta.operation(kind, number, session))
                }
            };
            let domain = match (of, table) {
                (RemovedOf::Operation(operation), _) => session.operations[operation].domain(),
                (_, Table::Dispatches) => Domain::KernelDispatch,
                (_, Table::Counted) => Domain::CounterCollection,
                (_, Table::Copies) => Domain::MemoryCopy,
                (_, Table::Allocations) => Domain::MemoryAllocation,
                (_, Table::Scratch) => Domain::ScratchMemory,
                (_, Table::KfdEvents) => Domain::Kfd,
                (_, Table::Calls | Table::Samples | Table::GraphLaunches | Table::HipEvents) => {
                    Domain::HipApi
                }
            };
            session.removed.push(RemovedTotal {
                table,
                of,
                domain,
                count: total.count,
                total: total.total,
                min: total.min.min(total.max),
                max: total.max,
                spread: total.spread.max(0.0),
                bytes: total.bytes,
                first: Nanoseconds(total.first.min(total.last)),
                last: Nanoseconds(total.last),
            });
        }
    }
}
