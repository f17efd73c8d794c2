//! ROCTx ranges whose end is not in the record of their start: those that any thread may start and stop, whose two
//! records are joined by their correlation id, and those that were not ended.

use std::io;

use crate::column::Storage;
use crate::ids::{Nanoseconds, OperationId, StringId};
use crate::sorted::Sorter;
use crate::spool::format::{self, StackRef};
use crate::spool::reader::Record;

/// The start of a range.
pub(super) struct StartedRange {
    pub(super) operation: OperationId,
    pub(super) message: StringId,
    pub(super) start: u64,
    pub(super) thread: u32,
    pub(super) correlation: u64,
    pub(super) ancestor: u64,
    pub(super) stack: StackRef,
}

impl StartedRange {
    fn to_row(&self) -> [u64; 6] {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        [
            self.correlation,
            self.start,
            self.ancestor,
            self.thread.into(),
            pair(self.operation.0, self.message.0),
            pair(self.stack.stack, self.stack.flags),
        ]
    }

    fn from_row([correlation, start, ancestor, thread, names, stack]: [u64; 6]) -> StartedRange {
        StartedRange {
            operation: OperationId((names >> 32) as u32),
            message: StringId(names as u32),
            start,
            thread: thread as u32,
            correlation,
            ancestor,
            stack: StackRef {
                stack: (stack >> 32) as u32,
                flags: stack as u32,
            },
        }
    }
}

/// Starts and stops of ranges, in files when there are many.
pub(super) struct Ranges {
    /// Starts, as rows of [`StartedRange::to_row`].
    started: Sorter<6, 1>,
    /// Stops, as correlation id and end time.
    stopped: Sorter<2, 1>,
    /// Latest start, in nanoseconds; 0 without a start.
    last_start: u64,
}

impl Ranges {
    pub(super) fn new(storage: &Storage) -> Ranges {
        Ranges {
            started: Sorter::new(Some(storage)),
            stopped: Sorter::new(Some(storage)),
            last_start: 0,
        }
    }

    /// Adds the start of a range.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub(super) fn start(&mut self, range: StartedRange) -> io::Result<()> {
        self.last_start = self.last_start.max(range.start);
        self.started.push(range.to_row())
    }

    /// Start of the range that was started last.
    pub(super) fn last_start(&self) -> Nanoseconds {
        Nanoseconds(self.last_start)
    }

    /// Takes a record that stops a range; `None` when the record is too short. The inner error is that of the file,
    /// as in [`Ranges::start`].
    pub(super) fn take_end(&mut self, record: &Record<'_>) -> Option<io::Result<()>> {
        let (range, _) = record.parse::<format::RangeEnd>()?;
        Some(self.stopped.push([range.correlation, range.end]))
    }

    /// Calls `found` for every started range, in the order of correlation ids, with its end. The end is that of the
    /// last stop with this correlation id, and `None` for a range that was not stopped.
    ///
    /// # Errors
    /// When `found` returns one, or the file cannot be read.
    pub(super) fn join(
        self,
        mut found: impl FnMut(StartedRange, Option<u64>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut stopped = self.stopped.finish()?.peekable();
        let mut last: Option<[u64; 2]> = None;
        for row in self.started.finish()? {
            let range = StartedRange::from_row(row);
            while let Some(stop) = stopped.next_if(|[stop, _]| *stop <= range.correlation) {
                last = Some(stop);
            }
            let end = last.filter(|[stop, _]| *stop == range.correlation);
            found(range, end.map(|[_, end]| end))?;
        }
        Ok(())
    }
}
