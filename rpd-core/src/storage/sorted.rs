//! Putting any number of rows in order in little memory: parts are sorted, kept in a file when there are many, and merged.

use std::cmp::Ordering;
use std::io;

use zerocopy::{Immutable, IntoBytes};

use crate::storage::column::{BATCH, Column, Storage};

/// A row that has a place among others, by its key. Its bytes go to files, so it is a struct with `#[repr(C)]` without
/// padding that derives the traits of `zerocopy`.
pub trait Keyed: Copy + Immutable + IntoBytes {
    /// What rows are ordered and found by: fields of the row, the most significant first.
    type Key: Ord;

    /// The key of this row.
    fn key(&self) -> Self::Key;
}

macro_rules! own_key {
    ($($number:ident)*) => {$(
        /// A number is its own key.
        impl Keyed for $number {
            type Key = $number;

            fn key(&self) -> $number {
                *self
            }
        }
    )*};
}
own_key!(u64 i64);

/// Collects rows, to be had again in the order of their keys; rows with equal keys stay in the order in which they came.
#[derive(Debug)]
pub struct Sorter<R> {
    storage: Option<Storage>,
    rows: Column<R>,
    /// First rows of the parts in the file.
    parts: Vec<usize>,
}

impl<R: Keyed> Sorter<R> {
    /// A sorter that keeps its rows in memory when there is no storage.
    pub fn new(storage: Option<&Storage>) -> Self {
        Sorter {
            storage: storage.cloned(),
            rows: Column::new(),
            parts: vec![0],
        }
    }

    /// Where rows are kept that are too many for memory.
    pub fn storage(&self) -> Option<&Storage> {
        self.storage.as_ref()
    }

    /// Takes a row.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    #[inline]
    pub fn push(&mut self, row: R) -> io::Result<()> {
        self.rows.push(row);
        match &self.storage {
            Some(storage) if self.rows.len() >= storage.rows() => self.spill(),
            _ => Ok(()),
        }
    }

    fn sort(&mut self) {
        let rows = self.rows.to_memory();
        if !rows.is_sorted_by_key(R::key) {
            rows.sort_by_key(R::key);
        }
    }

    #[cold]
    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        if let Some(storage) = &self.storage {
            self.rows.spill(storage)?;
        }
        self.parts.push(self.rows.total());
        Ok(())
    }

    /// The rows in order.
    ///
    /// # Errors
    /// When the file cannot be written or mapped.
    pub fn finish(mut self) -> io::Result<Sorted<R>> {
        self.sort();
        if let Some(storage) = &self.storage {
            self.rows.seal(storage)?;
        }
        let mut sorted = Sorted::new(self.rows, &self.parts);
        // Rows that are all in memory are one part.
        while let Some(storage) = self
            .storage
            .as_ref()
            .filter(|_| sorted.heads.len() > MERGED)
        {
            sorted = sorted.merged(storage)?;
        }
        make_heap(&mut sorted.heads, &precedes(&sorted.rows));
        Ok(sorted)
    }
}

/// The rows of a [`Sorter`], first to last.
#[derive(Debug)]
pub struct Sorted<R> {
    rows: Column<R>,
    heads: Vec<Run>,
    given: usize,
}

impl<R: Keyed> Sorted<R> {
    /// Rows of which the parts that begin at `parts` are in order; their runs are found as they come.
    fn new(rows: Column<R>, parts: &[usize]) -> Self {
        let heads = runs(parts, rows.len(), |a, b| {
            rows[a as usize].key().cmp(&rows[b as usize].key())
        });
        Sorted {
            heads,
            rows,
            given: 0,
        }
    }

    /// Merges runs, so that there are fewer and longer ones. The rows stay the same.
    fn merged(mut self, storage: &Storage) -> io::Result<Self> {
        let (mut rows, mut parts) = (Column::new(), Vec::new());
        let runs = std::mem::take(&mut self.heads);
        for runs in runs.chunks(MERGED) {
            parts.push(rows.total());
            self.heads = runs.to_vec();
            make_heap(&mut self.heads, &precedes(&self.rows));
            for row in self.by_ref() {
                rows.append(Some(storage), row)?;
            }
        }
        rows.seal(storage)?;
        Ok(Sorted::new(rows, &parts))
    }
}

fn precedes<R: Keyed>(rows: &[R]) -> impl Fn(&Run, &Run) -> bool {
    |a, b| {
        let key = |run: &Run| (rows[run.row as usize].key(), run.row);
        key(a) < key(b)
    }
}

impl<R: Keyed> Iterator for Sorted<R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        let row = take_first(&mut self.heads, precedes(&self.rows))?;
        self.given += 1;
        if self.given.is_multiple_of(BATCH) {
            self.rows.release();
        }
        Some(self.rows[row as usize])
    }
}

/// Runs that are merged at once: some pages of each are in memory.
pub(crate) const MERGED: usize = 256;

/// Rows in order that have not been taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// Number of the first row of the run.
    pub(crate) row: u32,
    /// One more than the number of the run's last row.
    pub(crate) end: u32,
}

/// The runs of `rows` rows whose `parts` (their first rows, ascending) are each in order. A part that begins where the one
/// before ends continues its run.
pub(crate) fn runs(
    parts: &[usize],
    rows: usize,
    compare: impl Fn(u32, u32) -> Ordering,
) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, &first) in parts.iter().enumerate() {
        let end = parts.get(index + 1).copied().unwrap_or(rows) as u32;
        let row = first as u32;
        if row == end {
            continue;
        }
        match runs.last_mut() {
            Some(last) if compare(row - 1, row) != Ordering::Greater => last.end = end,
            _ => runs.push(Run { row, end }),
        }
    }
    runs
}

/// Makes a heap of runs, with that on top whose first row precedes all others.
pub(crate) fn make_heap(runs: &mut [Run], precedes: &impl Fn(&Run, &Run) -> bool) {
    for at in (0..runs.len() / 2).rev() {
        sift(runs, at, precedes);
    }
}

/// Removes the first of all rows from a heap of runs.
#[inline]
pub(crate) fn take_first(
    runs: &mut Vec<Run>,
    precedes: impl Fn(&Run, &Run) -> bool,
) -> Option<u32> {
    let first = runs.first_mut()?;
    let row = first.row;
    first.row += 1;
    if first.row == first.end {
        runs.swap_remove(0);
    }
    sift(runs, 0, &precedes);
    Some(row)
}

/// Moves the run at `at` of a heap down to where it belongs.
#[inline]
fn sift(runs: &mut [Run], mut at: usize, precedes: &impl Fn(&Run, &Run) -> bool) {
    loop {
        let mut child = 2 * at + 1;
        if child >= runs.len() {
            return;
        }
        if child + 1 < runs.len() && precedes(&runs[child + 1], &runs[child]) {
            child += 1;
        }
        if !precedes(&runs[child], &runs[at]) {
            return;
        }
        runs.swap(child, at);
        at = child;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Immutable, IntoBytes)]
    #[repr(C)]
    struct Row {
        group: u64,
        number: u64,
    }

    impl Keyed for Row {
        type Key = u64;

        fn key(&self) -> u64 {
            self.group
        }
    }

    #[test]
    fn sorter_orders_rows_and_leaves_equal_ones_as_they_came() {
        let directory = tempfile::tempdir().expect("a directory");
        let rows = (0..1000).map(|number| Row {
            group: number * 7919 % 50,
            number,
        });
        let rows: Vec<Row> = rows.collect();
        let mut expected = rows.clone();
        expected.sort_by_key(|row| row.group);
        for part in [1, 3, 64, 1000, 5000] {
            let storage = Storage::new(directory.path()).with_rows(part);
            for storage in [None, Some(&storage)] {
                let mut sorter = Sorter::new(storage);
                for row in &rows {
                    sorter.push(*row).expect("written");
                }
                let sorted: Vec<Row> = sorter.finish().expect("mapped").collect();
                assert_eq!(sorted, expected, "{part}");
            }
        }
        let none = Sorter::<Row>::new(None).finish().expect("in memory");
        assert_eq!(none.count(), 0);
    }
}
