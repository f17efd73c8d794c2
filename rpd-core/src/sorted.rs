//! Putting any number of rows in order in little memory: parts are sorted, kept in a file when there are many, and merged.

use std::cmp::Ordering;
use std::io;

use crate::column::{BATCH, Column, Storage};

/// Collects rows of `N` numbers, to be had again in the order of their first `K`; rows that are equal there stay in the order
/// in which they came.
#[derive(Debug)]
pub struct Sorter<const N: usize, const K: usize> {
    storage: Option<Storage>,
    rows: Column<[u64; N]>,
    /// First rows of the parts in the file.
    parts: Vec<usize>,
}

impl<const N: usize, const K: usize> Sorter<N, K> {
    /// A sorter that keeps its rows in memory when there is no storage.
    pub fn new(storage: Option<&Storage>) -> Self {
        Sorter {
            storage: storage.cloned(),
            rows: Column::new(),
            parts: vec![0],
        }
    }

    /// Takes a row.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    #[inline]
    pub fn push(&mut self, row: [u64; N]) -> io::Result<()> {
        self.rows.push(row);
        match &self.storage {
            Some(storage) if self.rows.len() >= storage.rows() => self.spill(),
            _ => Ok(()),
        }
    }

    fn sort(&mut self) {
        let rows = self.rows.to_memory();
        if !rows.is_sorted_by(|a, b| a[..K] <= b[..K]) {
            rows.sort_by(|a, b| a[..K].cmp(&b[..K]));
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
    pub fn finish(mut self) -> io::Result<Sorted<N, K>> {
        self.sort();
        if let Some(storage) = &self.storage {
            self.rows.seal(storage)?;
        }
        let mut sorted = Sorted::new(self.rows, &self.parts);
        // Parts in memory are one run.
        while let Some(storage) = self
            .storage
            .as_ref()
            .filter(|_| sorted.heads.len() > MERGED)
        {
            sorted = sorted.merged(storage)?;
        }
        make_heap(&mut sorted.heads, &precedes::<N, K>(&sorted.rows));
        Ok(sorted)
    }
}

/// The rows of a [`Sorter`], first to last.
#[derive(Debug)]
pub struct Sorted<const N: usize, const K: usize> {
    rows: Column<[u64; N]>,
    heads: Vec<Run>,
    given: usize,
}

impl<const N: usize, const K: usize> Sorted<N, K> {
    /// Rows of which these parts are in order, with their runs as they come.
    fn new(rows: Column<[u64; N]>, parts: &[usize]) -> Self {
        let heads = runs(parts, rows.len(), |a, b| {
            rows[a as usize][..K].cmp(&rows[b as usize][..K])
        });
        Sorted {
            heads,
            rows,
            given: 0,
        }
    }

    /// The same rows in fewer and longer runs.
    fn merged(mut self, storage: &Storage) -> io::Result<Self> {
        let (mut rows, mut parts) = (Column::new(), Vec::new());
        let runs = std::mem::take(&mut self.heads);
        for runs in runs.chunks(MERGED) {
            parts.push(rows.total());
            self.heads = runs.to_vec();
            make_heap(&mut self.heads, &precedes::<N, K>(&self.rows));
            for row in self.by_ref() {
                rows.append(Some(storage), row)?;
            }
        }
        rows.seal(storage)?;
        Ok(Sorted::new(rows, &parts))
    }
}

fn precedes<const N: usize, const K: usize>(rows: &[[u64; N]]) -> impl Fn(&Run, &Run) -> bool {
    |a, b| {
        let (x, y) = (&rows[a.row as usize], &rows[b.row as usize]);
        x[..K].cmp(&y[..K]).then(a.row.cmp(&b.row)).is_lt()
    }
}

impl<const N: usize, const K: usize> Iterator for Sorted<N, K> {
    type Item = [u64; N];

    #[inline]
    fn next(&mut self) -> Option<[u64; N]> {
        let row = take_first(&mut self.heads, precedes::<N, K>(&self.rows))?;
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

    #[test]
    fn rows_come_in_order_and_equal_ones_as_they_came() {
        let directory = tempfile::tempdir().expect("a directory");
        let rows: Vec<[u64; 2]> = (0..1000).map(|index| [index * 7919 % 50, index]).collect();
        let mut expected = rows.clone();
        expected.sort_by_key(|row| row[0]);
        for part in [1, 3, 64, 1000, 5000] {
            let storage = Storage::new(directory.path()).with_rows(part);
            for storage in [None, Some(&storage)] {
                let mut sorter = Sorter::<2, 1>::new(storage);
                for row in &rows {
                    sorter.push(*row).expect("written");
                }
                let sorted: Vec<[u64; 2]> = sorter.finish().expect("mapped").collect();
                assert_eq!(sorted, expected, "{part}");
            }
        }
        let none = Sorter::<2, 1>::new(None).finish().expect("in memory");
        assert_eq!(none.count(), 0);
    }
}
