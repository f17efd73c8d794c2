//! Records of sums over dispatches and copies, in recordings that keep only the latest of them.

use super::super::{DeviceTotal, Session, TotalOf};
use super::meta::Meta;
use crate::domain::Kind;
use crate::ids::{KernelId, Nanoseconds};
use crate::spool::format::{self, total_of};
use crate::spool::reader::Record;

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
