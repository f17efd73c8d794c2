//! ROCTx ranges whose end is not in the record of their start: those that any thread may start and stop, whose two
//! records are joined by their correlation id, and those that were not ended.

use std::io;

use zerocopy::{Immutable, IntoBytes};

use super::super::ArgsRef;
use crate::ids::{Nanoseconds, OperationId, StringId};
use crate::spool::format::{self, StackRef};
use crate::spool::reader::Record;
use crate::storage::column::Storage;
use crate::storage::sorted::{Keyed, Sorter};

/// The start of a range.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
pub(super) struct StartedRange {
    pub(super) correlation: u64,
    pub(super) start: u64,
    pub(super) ancestor: u64,
    pub(super) stack: StackRef,
    pub(super) operation: OperationId,
    pub(super) message: StringId,
    /// Linux thread id, in 64 bits: rows have no padding.
    pub(super) thread: u64,
    /// What is known beyond the message.
    pub(super) args: ArgsRef,
}

/// The end of a range.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct StoppedRange {
    correlation: u64,
    end: u64,
}

impl Keyed for StartedRange {
    type Key = u64;

    fn key(&self) -> u64 {
        self.correlation
    }
}

impl Keyed for StoppedRange {
    type Key = u64;

    fn key(&self) -> u64 {
        self.correlation
    }
}

/// Starts and stops of ranges, in files when there are many.
pub(super) struct Ranges {
    started: Sorter<StartedRange>,
    stopped: Sorter<StoppedRange>,
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
        self.started.push(range)
    }

    /// Start of the range that was started last.
    pub(super) fn last_start(&self) -> Nanoseconds {
        Nanoseconds(self.last_start)
    }

    /// Takes a record that stops a range; `None` when the record is too short. The inner error is that of the file,
    /// as in [`Ranges::start`].
    pub(super) fn load_end(&mut self, record: &Record<'_>) -> Option<io::Result<()>> {
        let (range, _) = record.parse::<format::RangeEnd>()?;
        Some(self.stopped.push(StoppedRange {
            correlation: range.correlation,
            end: range.end,
        }))
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
        let mut last: Option<StoppedRange> = None;
        for range in self.started.finish()? {
            while let Some(stop) = stopped.next_if(|stop| stop.correlation <= range.correlation) {
                last = Some(stop);
            }
            let end = last.filter(|stop| stop.correlation == range.correlation);
            found(range, end.map(|stop| stop.end))?;
        }
        Ok(())
    }
}
