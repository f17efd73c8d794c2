//! Sorts of records that a recording with a bound removes, and their sums.

use zerocopy::FromBytes;

use super::format::record::RecordKind;
use super::format::{self, RecordHeader, RemovedTotal};

/// What the sums of removed records are by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sort {
    /// Tag of the records.
    pub tag: u16,
    /// For calls and ranges the number of the callback kind in the upper half and that of the operation in the lower; for
    /// dispatches the id of the kernel; for events of the kernel driver [`format::kfd_kind`] in the upper half and the number
    /// of the operation in the lower; for copies, allocations and scratch operations the number of the operation; 0 for PC
    /// samples.
    pub subject: u64,
}

impl Sort {
    /// The sort that a sum is of.
    pub fn from_total(total: &RemovedTotal) -> Sort {
        Sort {
            tag: total.header.aux,
            subject: total.subject,
        }
    }

    /// A sum without a record.
    pub fn empty_total(self) -> RemovedTotal {
        RemovedTotal {
            header: RecordKind::RemovedTotal.head(0).with_aux(self.tag),
            subject: self.subject,
            count: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
            spread: 0.0,
            bytes: 0,
            first: u64::MAX,
            last: 0,
        }
    }
}

/// What the sums have of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// The sort that the record is of.
    pub sort: Sort,
    /// Start of the call or the work.
    pub start: u64,
    /// End of the call or the work; 0 of a call that has not returned.
    pub end: u64,
    /// Bytes that were copied or allocated.
    pub bytes: u64,
}

impl Removed {
    /// What the sums have of a record; `None` for records that are no row of a table, or that are too short.
    pub fn from_record(header: RecordHeader, bytes: &[u8]) -> Option<Removed> {
        let kind = RecordKind::from_tag(header.tag)?;
        let row = |subject: u64, start: u64, end: u64, bytes: u64| {
            let tag = header.tag;
            Some(Removed {
                sort: Sort { tag, subject },
                start,
                end,
                bytes,
            })
        };
        let call = |operation: u32| u64::from(header.aux) << 32 | u64::from(operation);
        match kind {
            RecordKind::Call => {
                let (found, _) = format::CallRecord::read_from_prefix(bytes).ok()?;
                row(call(found.operation), found.start, found.end, 0)
            }
            // The end of a range is a record of its own, which may be anywhere.
            RecordKind::RangeBegin => {
                let (found, _) = format::RangeBegin::read_from_prefix(bytes).ok()?;
                row(call(found.operation), found.start, 0, 0)
            }
            RecordKind::Dispatch => {
                let (found, _) = format::Dispatch::read_from_prefix(bytes).ok()?;
                row(found.kernel, found.start, found.end, 0)
            }
            RecordKind::Counted => {
                let (found, _) = format::CountedDispatch::read_from_prefix(bytes).ok()?;
                let dispatch = found.dispatch;
                row(dispatch.kernel, dispatch.start, dispatch.end, 0)
            }
            RecordKind::Copy => {
                let (found, _) = format::Copy::read_from_prefix(bytes).ok()?;
                row(found.operation.into(), found.start, found.end, found.bytes)
            }
            RecordKind::Allocation => {
                let (found, _) = format::Allocation::read_from_prefix(bytes).ok()?;
                row(found.operation.into(), found.start, found.end, found.bytes)
            }
            RecordKind::Scratch => {
                let (found, _) = format::Scratch::read_from_prefix(bytes).ok()?;
                row(found.operation.into(), found.start, found.end, found.bytes)
            }
            RecordKind::PcSample => {
                let (found, _) = format::PcSample::read_from_prefix(bytes).ok()?;
                row(0, found.time, found.time, 0)
            }
            RecordKind::GraphLaunch => {
                let (found, _) = format::GraphLaunch::read_from_prefix(bytes).ok()?;
                row(found.exec.into(), found.start, found.end, 0)
            }
            RecordKind::HipEvent => {
                let (found, _) = format::HipEvent::read_from_prefix(bytes).ok()?;
                row(header.aux.into(), found.start, found.end, 0)
            }
            RecordKind::KfdEvent => {
                let (found, _) = format::KfdEvent::read_from_prefix(bytes).ok()?;
                row(call(found.operation), found.start, found.end, 0)
            }
            _ => None,
        }
    }

    /// Adds the record to the sum of its sort.
    pub fn add_to(&self, total: &mut RemovedTotal) {
        total.count += 1;
        total.bytes = total.bytes.saturating_add(self.bytes);
        total.first = total.first.min(self.start);
        total.last = total.last.max(self.end.max(self.start));
        if self.end == 0 {
            return;
        }
        let duration = self.end.saturating_sub(self.start);
        let mean = |total: u64, count: u64| total as f64 / count.max(1) as f64;
        let before = mean(total.total, total.count - 1);
        total.total = total.total.saturating_add(duration);
        if total.count > 1 {
            let duration = duration as f64;
            total.spread += (duration - before) * (duration - mean(total.total, total.count));
        }
        total.min = total.min.min(duration);
        total.max = total.max.max(duration);
    }
}

/// What was added to a sum since it was `before`. The shortest and the longest duration, and the times, are those of the whole
/// sum: of a part they are not known.
pub fn since(before: &RemovedTotal, now: &RemovedTotal) -> RemovedTotal {
    let (count, total) = (
        now.count.saturating_sub(before.count),
        now.total.saturating_sub(before.total),
    );
    let mean = |total: u64, count: u64| total as f64 / count.max(1) as f64;
    let between = mean(total, count) - mean(before.total, before.count);
    let weight = before.count as f64 * count as f64 / now.count.max(1) as f64;
    RemovedTotal {
        count,
        total,
        spread: (now.spread - before.spread - between * between * weight).max(0.0),
        bytes: now.bytes.saturating_sub(before.bytes),
        first: now.first.max(before.last),
        ..*now
    }
}

/// The records in the bytes behind the head of a segment, up to one that is damaged.
pub fn records(mut bytes: &[u8]) -> impl Iterator<Item = (RecordHeader, &[u8])> {
    std::iter::from_fn(move || {
        let (header, _) = RecordHeader::read_from_prefix(bytes).ok()?;
        let len = header.len as usize;
        if len < size_of::<RecordHeader>() || !len.is_multiple_of(8) || len > bytes.len() {
            return None;
        }
        let (record, rest) = bytes.split_at(len);
        bytes = rest;
        Some((header, record))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_two_parts_are_told_apart_again() {
        let sort = Sort {
            tag: 32,
            subject: 7,
        };
        let add = |total: &mut RemovedTotal, durations: &[u64]| {
            for &duration in durations {
                let removed = Removed {
                    sort,
                    start: 100,
                    end: 100 + duration,
                    bytes: 3,
                };
                removed.add_to(total);
            }
        };
        let (one, other) = ([5, 9, 100, 40_000], [7, 7, 2_000_000, 11]);
        let mut all = sort.empty_total();
        add(&mut all, &one);
        let before = all;
        add(&mut all, &other);
        let mut alone = sort.empty_total();
        add(&mut alone, &other);
        let found = since(&before, &all);
        assert_eq!((found.count, found.total, found.bytes), (4, 2_000_025, 12));
        assert_eq!(found.total, alone.total);
        assert!((found.spread / alone.spread - 1.0).abs() < 1e-9);
        assert_eq!(since(&all, &all).count, 0);
    }

    #[test]
    fn removed_calls_without_an_end_have_no_duration() {
        let mut total = Sort {
            tag: 32,
            subject: 7,
        }
        .empty_total();
        let call = Removed {
            sort: Sort::from_total(&total),
            start: 50,
            end: 0,
            bytes: 0,
        };
        call.add_to(&mut total);
        assert_eq!((total.count, total.total, total.min), (1, 0, u64::MAX));
        assert_eq!((total.first, total.last), (50, 50));
    }
}
