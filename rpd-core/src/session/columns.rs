//! The interface that all tables of a session share, and iteration over them in bounded memory.

use std::io;

use crate::ids::Nanoseconds;
use crate::storage::column::{BATCH, Column, Storage};

/// Interface of tables for code that treats all tables alike: the times of the rows, sorting, and moving rows to files.
pub trait Columns {
    /// Start times of the rows that can be read.
    fn starts(&self) -> &[Nanoseconds];

    /// End times of the rows that can be read.
    fn ends(&self) -> &[Nanoseconds];

    /// Number of rows, including those that [`Columns::spill`] has written to files.
    fn total(&self) -> usize {
        self.starts().len()
    }

    /// Number of rows after which an iteration over the table gives memory back; a power of two.
    fn batch(&self) -> usize {
        BATCH
    }

    /// Reorders every column, or removes rows: row `i` becomes the one that had index `order[i]`. All columns are in
    /// memory afterwards.
    fn reorder(&mut self, order: &[u32]);

    /// Appends the rows in memory to the table's files. From then until [`Columns::seal`] only rows that are added
    /// later can be read.
    ///
    /// # Errors
    /// When a file cannot be made or written.
    fn spill(&mut self, storage: &Storage) -> io::Result<()>;

    /// Completes the files of [`Columns::spill`] and maps them, so that all rows can be read.
    ///
    /// # Errors
    /// When a file cannot be written or mapped.
    fn seal(&mut self, storage: &Storage) -> io::Result<()>;

    /// Gives back the memory of rows that were read from files. The kernel reads them again when they are used.
    fn release(&self);

    /// As [`Columns::reorder`], with rows in files before and after.
    ///
    /// # Errors
    /// When a file cannot be written or mapped.
    fn rebuild(&mut self, storage: &Storage, order: &Column<u32>) -> io::Result<()>;
}

/// Start of the first and end of the last record of a table; `None` for an empty table.
pub(super) fn span_of(columns: &dyn Columns) -> Option<(Nanoseconds, Nanoseconds)> {
    let (starts, ends) = (columns.starts(), columns.ends());
    let spans = Batches::new(columns).filter_map(|batch| {
        let start = starts[batch.clone()].iter().min()?;
        Some((*start, *ends[batch].iter().max()?))
    });
    spans.reduce(|(first, last), (start, end)| (first.min(start), last.max(end)))
}

/// Ranges of indices that cover a table from the first row to the last. The memory of a range is given back when the
/// next is requested, so that an iteration takes little memory however long the table is.
pub struct Batches<'a> {
    table: &'a dyn Columns,
    next: usize,
}

impl<'a> Batches<'a> {
    /// Begins at the first row of `table`.
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

/// The indices of a table from the first row to the last. Memory is given back as by [`Batches`].
pub struct Indices<'a> {
    table: &'a dyn Columns,
    next: usize,
    rows: usize,
    /// [`Columns::batch`] minus 1.
    mask: usize,
}

impl<'a> Indices<'a> {
    /// Begins at the first row of `table`.
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
