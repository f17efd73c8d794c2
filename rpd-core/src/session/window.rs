//! Operations on whole sessions: sorting the tables, and removing what lies outside a period of time.

use std::io;

use super::columns::span_of;
use super::order::sort;
use super::{Batches, Session, Table};
use crate::ids::Nanoseconds;
use crate::storage::column::Column;

/// A period of the recording's clock, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First time that belongs to it.
    pub start: Nanoseconds,
    /// Last time that belongs to it.
    pub end: Nanoseconds,
    /// Whether only records are kept that lie entirely inside. Otherwise records that overlap the period are kept.
    pub inside: bool,
}

impl Window {
    /// Whether a record with the given start and end is kept.
    pub fn keeps(&self, start: Nanoseconds, end: Nanoseconds) -> bool {
        if self.inside {
            start >= self.start && end <= self.end
        } else {
            start <= self.end && end >= self.start
        }
    }
}

impl Session {
    /// Sorts every table into the order that writers rely on: start ascending, end descending, then name.
    pub fn sort(&mut self) {
        sort(self);
    }

    /// Start of the first and end of the last record of all tables; `None` when all are empty.
    pub fn span(&self) -> Option<(Nanoseconds, Nanoseconds)> {
        let mut span: Option<(Nanoseconds, Nanoseconds)> = None;
        for table in Table::ALL {
            if let Some((start, end)) = span_of(self.columns(*table)) {
                let (first, last) = span.unwrap_or((start, end));
                span = Some((first.min(start), last.max(end)));
            }
        }
        span
    }

    /// Removes the records that `window` does not keep. Removes [`Session::device_totals`] and
    /// [`Session::removed`] as well.
    ///
    /// # Errors
    /// When the records of a long table cannot be stored.
    pub fn retain(&mut self, window: &Window) -> io::Result<()> {
        for table in Table::ALL {
            let columns = self.columns(*table);
            let (starts, ends) = (columns.starts(), columns.ends());
            let storage = self.storage.clone();
            let mut kept = Column::new();
            for batch in Batches::new(columns) {
                for index in batch {
                    if window.keeps(starts[index], ends[index]) {
                        kept.append(storage.as_ref(), index as u32)?;
                    }
                }
            }
            // A table that is kept whole needs no new files.
            if kept.total() == starts.len() {
                continue;
            }
            // A long table is rebuilt from file to file; bringing it into memory to reorder it would take gigabytes.
            match &storage {
                Some(storage) if starts.len() > storage.rows() => {
                    kept.seal(storage)?;
                    self.columns_mut(*table).rebuild(storage, &kept)?;
                }
                _ => {
                    if let Some(storage) = &storage {
                        kept.seal(storage)?;
                    }
                    self.columns_mut(*table).reorder(&kept);
                }
            }
        }
        // They are sums over the whole recording.
        self.device_totals.clear();
        self.removed.clear();
        self.drop_unused_stacks();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::CallRow;
    use super::*;
    use crate::domain::Kind;
    use crate::ids::{CorrelationId, ThreadId};
    use crate::session::ArgsRef;

    fn session(times: &[(u64, u64)]) -> Session {
        let mut session = Session::default();
        for &(start, end) in times {
            let operation = session.add_operation(Kind::HipRuntime, "hipMalloc");
            let calls = &mut session.calls;
            calls.push(CallRow {
                operation,
                message: Default::default(),
                start: Nanoseconds(start),
                end: Nanoseconds(end),
                thread: ThreadId(1),
                correlation: CorrelationId(start),
                ancestor: CorrelationId(0),
                args: ArgsRef::default(),
            });
        }
        session
    }

    #[test]
    fn retain_keeps_records_inside_or_overlapping_the_window() {
        let times = [(1, 4), (5, 9), (9, 12), (13, 14), (10, 10)];
        let cut = |inside| {
            let mut session = session(&times);
            assert_eq!(session.span(), Some((Nanoseconds(1), Nanoseconds(14))));
            session
                .retain(&Window {
                    start: Nanoseconds(4),
                    end: Nanoseconds(10),
                    inside,
                })
                .expect("in memory");
            session.sort();
            let starts: Vec<u64> = session.calls.start.iter().map(|start| start.0).collect();
            starts
        };
        assert_eq!(cut(true), [5, 10]);
        assert_eq!(cut(false), [1, 5, 9, 10]);
        assert_eq!(session(&[]).span(), None);
    }
}
