//! Rows that are found by a key, in files when there are many.

use std::cell::Cell;
use std::cmp::Ordering;
use std::io;

use crate::column::{BATCH, Column, Storage};

/// Rows in ascending order of their first number, the key. A look-up is fast when its key is near that of the one before; the
/// memory of rows in files is given back in between.
#[derive(Debug, Default)]
pub struct Lookup<const N: usize> {
    rows: Column<[u64; N]>,
    place: Place,
}

impl<const N: usize> Lookup<N> {
    /// Adds a row, whose key is not below that of the last one.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub fn push(&mut self, storage: Option<&Storage>, row: [u64; N]) -> io::Result<()> {
        self.rows.append(storage, row)
    }

    /// Makes the rows readable. To be called after the last [`Lookup::push`].
    ///
    /// # Errors
    /// When the file cannot be written or mapped.
    pub fn seal(&mut self, storage: Option<&Storage>) -> io::Result<()> {
        storage.map_or(Ok(()), |storage| self.rows.seal(storage))
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The first row with this key.
    pub fn find(&self, key: u64) -> Option<[u64; N]> {
        self.find_all(key).next()
    }

    /// The rows with this key.
    pub fn find_all(&self, key: u64) -> impl Iterator<Item = [u64; N]> + '_ {
        if self.place.is_due() {
            self.rows.release();
        }
        let rows: &[[u64; N]] = &self.rows;
        let first = self
            .place
            .find(rows.len(), |index| rows[index][0].cmp(&key));
        let rows = first.map_or(&rows[..0], |first| &rows[first..]);
        rows.iter().copied().take_while(move |row| row[0] == key)
    }
}

/// Position of the last read in an ordered column.
#[derive(Debug, Default)]
pub struct Place {
    /// Result of the last search: the first index whose key is not below the one searched for.
    index: Cell<usize>,
    /// Number of reads since memory was given back. A read far from the last one counts [`FAR`].
    reads: Cell<usize>,
}

/// Rows that are near one another: when one is read, the kernel maps about as many.
const NEAR: usize = 1 << 12;

/// Number of reads as which a read far from the last one counts, and a search by key.
const FAR: usize = BATCH / 256;
const SEARCH: usize = BATCH / 64;

impl Place {
    /// Whether the memory of the column should be given back. To be called before each reading.
    #[inline]
    pub fn is_due(&self) -> bool {
        let reads = self.reads.get() + 1;
        let is_due = reads >= BATCH;
        self.reads.set(if is_due { 0 } else { reads });
        is_due
    }

    /// Notes that the row at `index` is read, which was not found by [`Place::find`].
    #[inline]
    pub fn visit(&self, index: usize) {
        if self.index.replace(index) / NEAR != index / NEAR {
            self.reads.set(self.reads.get() + FAR);
        }
    }

    /// The first of `len` ascending keys that is equal to the key searched for. `compare` compares the key at an index
    /// with the key searched for.
    #[inline]
    pub fn find(&self, len: usize, compare: impl Fn(usize) -> Ordering) -> Option<usize> {
        let last = self.index.get();
        let is_below = |index: usize| compare(index) == Ordering::Less;
        let is_first = |index: usize| {
            (index == len || !is_below(index)) && (index == 0 || is_below(index - 1))
        };
        // Tables are mostly read in the order of their keys, so the last result or the one behind it is tried before a
        // search, which would read pages all over the column.
        let index = match () {
            () if last <= len && is_first(last) => last,
            () if last < len && is_first(last + 1) => last + 1,
            () => {
                let (mut low, mut high) = (0, len);
                while low < high {
                    let middle = low + (high - low) / 2;
                    match is_below(middle) {
                        true => low = middle + 1,
                        false => high = middle,
                    }
                }
                // A search that ends far away has touched pages that nothing else uses, and counts towards giving
                // memory back.
                if low / NEAR != last / NEAR {
                    self.reads.set(self.reads.get() + SEARCH);
                }
                low
            }
        };
        self.index.set(index);
        (index < len && compare(index) == Ordering::Equal).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_in_any_order() {
        let directory = tempfile::tempdir().expect("a directory");
        for part in [None, Some(1), Some(3), Some(100)] {
            let storage = part.map(|rows| Storage::new(directory.path()).with_rows(rows));
            let mut rows = Lookup::<2>::default();
            for (number, key) in (0..).zip([2, 3, 3, 7, u64::MAX]) {
                rows.push(storage.as_ref(), [key, number]).expect("written");
            }
            rows.seal(storage.as_ref()).expect("mapped");
            let found = |key| rows.find(key).map(|row| row[1]);
            for _ in 0..2 {
                assert_eq!(found(2), Some(0));
                assert_eq!(found(3), Some(1));
                assert_eq!(found(4), None);
                assert_eq!(found(7), Some(3));
                assert_eq!(found(u64::MAX), Some(4));
                assert_eq!(found(8), None);
                assert_eq!(found(0), None);
                assert_eq!(found(7), Some(3));
                assert_eq!(
                    rows.find_all(3).map(|row| row[1]).collect::<Vec<_>>(),
                    [1, 2]
                );
                assert_eq!(rows.find_all(4).count(), 0);
            }
        }
        assert_eq!(Lookup::<1>::default().find(0), None);
    }
    #[test]
    fn place_gives_memory_back_sooner_when_rows_are_far_apart() {
        let due = |rows: &dyn Fn(usize) -> usize, is_search: bool| {
            let place = Place::default();
            let reads = (0..2 * BATCH).filter(|read| {
                let is_due = place.is_due();
                let row = rows(*read);
                match is_search {
                    true => assert!(place.find(usize::MAX, |index| index.cmp(&row)).is_some()),
                    false => place.visit(row),
                }
                is_due
            });
            reads.count()
        };
        for is_search in [false, true] {
            assert!(due(&|read| read, is_search) < 40);
        }
        let far = |read| (read % 2) * 10 * NEAR;
        assert!(due(&far, false) > 400);
        assert!(due(&far, true) > 1600);
    }
}
