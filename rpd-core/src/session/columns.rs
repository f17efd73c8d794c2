//! The interface that all tables of a session share, and iteration in bounded memory.

use std::io;

use crate::column::{BATCH, Column, Storage};
use crate::ids::Nanoseconds;

/// Interface of all tables.
pub trait Columns {
    /// Start times of the rows in memory.
    fn starts(&self) -> &[Nanoseconds];

    /// End times of the rows in memory.
    fn ends(&self) -> &[Nanoseconds];

    /// Number of rows, those included that [`Columns::spill`] has written.
    fn total(&self) -> usize {
        self.starts().len()
    }

    /// Rows after which memory is given back when going through the table; a power of two.
    fn batch(&self) -> usize {
        BATCH
    }

    /// Puts every column in the order given, or cuts records out: `order[i]` is the old index of the new record `i`. The
    /// columns are in memory then.
    fn reorder(&mut self, order: &[u32]);

    /// Writes the rows in memory to files, after those that are there. Until [`Columns::seal`] only rows that have come
    /// since can be read.
    ///
    /// # Errors
    /// When a file cannot be made or written.
    fn spill(&mut self, storage: &Storage) -> io::Result<()>;

    /// Ends what [`Columns::spill`] began: all rows can be read then.
    ///
    /// # Errors
    /// When a file cannot be written or mapped.
    fn seal(&mut self, storage: &Storage) -> io::Result<()>;

    /// Gives back the memory of rows that were read from files. They are read again when they are needed.
    fn release(&self);

    /// As [`Columns::reorder`], from files to files.
    ///
    /// # Errors
    /// When a file cannot be written or mapped.
    fn rebuild(&mut self, storage: &Storage, order: &Column<u32>) -> io::Result<()>;
}

/// Start of the first and end of the last record of a table; `None` without any.
pub(super) fn span_of(columns: &dyn Columns) -> Option<(Nanoseconds, Nanoseconds)> {
    let (starts, ends) = (columns.starts(), columns.ends());
    let spans = Batches::new(columns).filter_map(|batch| {
        let start = starts[batch.clone()].iter().min()?;
        Some((*start, *ends[batch].iter().max()?))
    });
    spans.reduce(|(first, last), (start, end)| (first.min(start), last.max(end)))
}

/// The places of a table from the first to the last, in batches. The memory of a batch is given back when the next begins, so
/// going through a table this way takes little memory however long it is.
pub struct Batches<'a> {
    table: &'a dyn Columns,
    next: usize,
}

impl<'a> Batches<'a> {
    /// The batches of a table.
    pub fn new(table: &'a dyn Columns) -> Batches<'a> {
        Batches { table, next: 0 }
    }
}

impl Iterator for Batches<'_> {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.table.starts().len();
        if self.next > 0 {
            self.table.release();
        }
        let begin = self.next;
        self.next = rows.min(begin + self.table.batch());
        (begin < rows).then_some(begin..self.next)
    }
}

/// The places of a table from the first to the last, one after the other. Memory is given back as by [`Batches`].
pub struct Indices<'a> {
    table: &'a dyn Columns,
    next: usize,
    rows: usize,
    /// [`Columns::batch`] minus 1.
    mask: usize,
}

impl<'a> Indices<'a> {
    /// The places of a table.
    pub fn new(table: &'a dyn Columns) -> Indices<'a> {
        Indices {
            table,
            next: 0,
            rows: table.starts().len(),
            mask: table.batch() - 1,
        }
    }

    #[cold]
    fn release(&self) {
        self.table.release();
    }
}

impl Iterator for Indices<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let index = self.next;
        if index & self.mask == 0 && index > 0 {
            self.release();
        }
        if index >= self.rows {
            return None;
        }
        self.next += 1;
        Some(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rows - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Indices<'_> {}
