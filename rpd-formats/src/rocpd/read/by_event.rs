//! Facts about events, found by the event's id.

use std::cell::Cell;
use std::io;

use rpd_core::column::{BATCH, Column, Storage};

/// Rows that begin with an event's id, in the order of these ids. Records are read in about the same order, so that a row is
/// mostly found where the last one was, and the memory of rows in files is given back in between.
#[derive(Debug, Default)]
pub(super) struct ByEvent<const N: usize> {
    rows: Column<[u64; N]>,
    place: Place,
}

impl<const N: usize> ByEvent<N> {
    /// Adds a row behind the others; `row[0]` holds the bits of the event's id.
    pub(super) fn push(&mut self, storage: &Storage, row: [u64; N]) -> io::Result<()> {
        self.rows.append(Some(storage), row)
    }

    /// Makes the rows readable.
    pub(super) fn seal(&mut self, storage: &Storage) -> io::Result<()> {
        self.rows.seal(storage)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The first row of an event.
    pub(super) fn find(&self, event: i64) -> Option<[u64; N]> {
        if self.place.is_due() {
            self.rows.release();
        }
        let rows: &[[u64; N]] = &self.rows;
        let index = self
            .place
            .find(event, rows.len(), |index| rows[index][0].cast_signed())?;
        Some(rows[index])
    }
}

/// Where an ordered column was read the last time.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The first index whose key is not below the one that was looked for.
    index: Cell<usize>,
    reads: Cell<usize>,
}

impl Place {
    /// Whether the memory of the column should be given back. To be called before each reading.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        let reads = self.reads.get() + 1;
        self.reads.set(reads);
        reads.is_multiple_of(BATCH)
    }

    /// The first index at which the ascending keys are `key`.
    #[inline]
    pub(super) fn find(&self, key: i64, len: usize, at: impl Fn(usize) -> i64) -> Option<usize> {
        let last = self.index.get();
        let is_lower_bound = |index: usize| {
            (index == len || at(index) >= key) && (index == 0 || at(index - 1) < key)
        };
        let index = match () {
            () if last <= len && is_lower_bound(last) => last,
            () if last < len && is_lower_bound(last + 1) => last + 1,
            () => {
                let (mut low, mut high) = (0, len);
                while low < high {
                    let middle = low + (high - low) / 2;
                    match at(middle) < key {
                        true => low = middle + 1,
                        false => high = middle,
                    }
                }
                low
            }
        };
        self.index.set(index);
        (index < len && at(index) == key).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_in_any_order() {
        let directory = tempfile::tempdir().expect("a directory");
        for part in [1, 3, 100] {
            let storage = Storage::new(directory.path()).with_rows(part);
            let mut rows = ByEvent::<2>::default();
            let keys = [-5_i64, 2, 3, 3, 7, 100];
            for (number, key) in (0..).zip(keys) {
                rows.push(&storage, [key.cast_unsigned(), number])
                    .expect("written");
            }
            rows.seal(&storage).expect("mapped");
            let found = |key| rows.find(key).map(|row| row[1]);
            for _ in 0..2 {
                assert_eq!(found(-5), Some(0));
                assert_eq!(found(2), Some(1));
                assert_eq!(found(3), Some(2));
                assert_eq!(found(4), None);
                assert_eq!(found(7), Some(4));
                assert_eq!(found(100), Some(5));
                assert_eq!(found(101), None);
                assert_eq!(found(-6), None);
                assert_eq!(found(7), Some(4));
            }
        }
        assert_eq!(ByEvent::<1>::default().find(0), None);
    }
}
