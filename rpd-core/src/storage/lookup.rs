//! Rows that are found by a key, in files when there are many.

use std::cell::Cell;
use std::cmp::Ordering;
use std::io;

use crate::storage::column::{BATCH, Column, Storage};
use crate::storage::sorted::{Keyed, Sorter};

/// Rows in ascending order of their keys. A look-up is fast when its key is near that of the one before; the memory of
/// rows in files is given back in between.
#[derive(Debug)]
pub struct Lookup<R> {
    rows: Column<R>,
    place: Place,
}

impl<R> Default for Lookup<R> {
    fn default() -> Lookup<R> {
        Lookup {
            rows: Column::new(),
            place: Place::default(),
        }
    }
}

impl<R: Keyed> Lookup<R> {
    /// Puts rows in order and makes them readable.
    ///
    /// # Errors
    /// When a file cannot be made, written or mapped.
    pub fn sorted(rows: Sorter<R>) -> io::Result<Lookup<R>> {
        let storage = rows.storage().cloned();
        let mut lookup = Lookup::default();
        for row in rows.finish()? {
            lookup.push(storage.as_ref(), row)?;
        }
        lookup.seal(storage.as_ref())?;
        Ok(lookup)
    }

    /// Adds a row, whose key is not below that of the last one.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub fn push(&mut self, storage: Option<&Storage>, row: R) -> io::Result<()> {
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
    pub fn find(&self, key: R::Key) -> Option<R> {
        self.find_all(key).next()
    }

    /// The rows with this key.
    pub fn find_all(&self, key: R::Key) -> impl Iterator<Item = R> + '_ {
        if self.place.is_due() {
            self.rows.release();
        }
        let rows: &[R] = &self.rows;
        let first = self
            .place
            .find(rows.len(), |index| rows[index].key().cmp(&key));
        let rows = first.map_or(&rows[..0], |first| &rows[first..]);
        rows.iter().copied().take_while(move |row| row.key() == key)
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
                    if is_below(middle) {
                        low = middle + 1
                    } else {
                        high = middle
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
    use zerocopy::{Immutable, IntoBytes};

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Immutable, IntoBytes)]
    #[repr(C)]
    struct Row {
        id: u64,
        number: u64,
    }

    impl Keyed for Row {
        type Key = u64;

        fn key(&self) -> u64 {
            self.id
        }
    }

    #[test]
    fn lookup_finds_rows_in_any_order() {
        let directory = tempfile::tempdir().expect("a directory");
        for part in [None, Some(1), Some(3), Some(100)] {
            let storage = part.map(|rows| Storage::new(directory.path()).with_rows(rows));
            let mut rows = Sorter::new(storage.as_ref());
            for (number, id) in (0..).zip([2, 3, 3, 7, u64::MAX]) {
                rows.push(Row { id, number }).expect("written");
            }
            let rows = Lookup::sorted(rows).expect("mapped");
            let found = |key| rows.find(key).map(|row| row.number);
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
                    rows.find_all(3).map(|row| row.number).collect::<Vec<_>>(),
                    [1, 2]
                );
                assert_eq!(rows.find_all(4).count(), 0);
            }
        }
        assert_eq!(Lookup::<Row>::default().find(0), None);
    }

    #[test]
    fn place_gives_memory_back_sooner_when_rows_are_far_apart() {
        let due = |rows: &dyn Fn(usize) -> usize, is_search: bool| {
            let place = Place::default();
            let reads = (0..2 * BATCH).filter(|read| {
                let is_due = place.is_due();
                let row = rows(*read);
                if is_search {
                    assert!(place.find(usize::MAX, |index| index.cmp(&row)).is_some())
                } else {
                    place.visit(row)
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
