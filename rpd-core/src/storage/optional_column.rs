//! A column that a table has only if some row has a value for it.

use std::io;
use std::ops::{Deref, DerefMut};

use zerocopy::{FromZeros, Immutable, IntoBytes};

use crate::storage::column::{Column, Iter, Storage};

/// A column that is empty while no row of its table has a value, and as long as the table from the first value on:
/// rows without a value have zeros. It is used like a slice.
///
/// Values cannot be appended, so that it cannot end before or after the other columns: the table adds a row, and
/// [`OptionalColumn::set_last`] gives that row a value.
pub struct OptionalColumn<T> {
    values: Column<T>,
    is_present: bool,
    /// Rows of the table that are in memory, or, when the table has been sealed, all of them.
    rows: usize,
    /// Rows that the table wrote to files while the column was empty.
    empty_rows: usize,
}

impl<T> OptionalColumn<T> {
    /// Iterates over the values. Memory of values in a file is released during the iteration.
    pub fn iter(&self) -> Iter<'_, T> {
        self.values.iter()
    }

    /// Releases the memory of values that were read from a file; they are read again when they are needed.
    pub fn release(&self) {
        self.values.release();
    }
}

impl<T: Copy + FromZeros + IntoBytes + Immutable> OptionalColumn<T> {
    /// The table has one row more.
    #[inline]
    pub(crate) fn add_row(&mut self) {
        self.rows += 1;
        if self.is_present {
            self.values.push(T::new_zeroed());
        }
    }

    /// Gives the row that was added last a value. Nothing for a table without rows in memory.
    #[inline]
    pub fn set_last(&mut self, value: T) {
        if !self.is_present {
            self.make();
        }
        if let Some(last) = self.values.to_memory().last_mut() {
            *last = value;
        }
    }

    #[cold]
    fn make(&mut self) {
        self.is_present = self.rows > 0;
        self.values.resize(self.rows, T::new_zeroed());
    }

    /// Replaces every value.
    ///
    /// # Errors
    /// When a file cannot be written or mapped.
    pub fn rewrite(&mut self, storage: &Storage, change: impl Fn(T) -> T) -> io::Result<()> {
        self.values.rewrite(storage, change)
    }

    /// Puts the rows in this order ([`Column::reorder`]).
    pub(crate) fn reorder(&mut self, order: &[u32]) {
        if self.is_present {
            self.values.reorder(order);
        }
        self.rows = order.len();
    }

    /// Writes the rows in memory to a file ([`Column::spill`]).
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub(crate) fn spill(&mut self, storage: &Storage) -> io::Result<()> {
        if self.is_present {
            self.begin_file(storage)?;
            self.values.spill(storage)?;
        } else {
            self.empty_rows += self.rows;
        }
        self.rows = 0;
        Ok(())
    }

    /// The rows that were written without this column have zeros in its file.
    fn begin_file(&mut self, storage: &Storage) -> io::Result<()> {
        match std::mem::take(&mut self.empty_rows) {
            0 => Ok(()),
            rows => self.values.begin_with_zeros(storage, rows),
        }
    }

    /// Ends the growth of the column ([`Column::seal`]).
    ///
    /// # Errors
    /// When the file cannot be written or mapped.
    pub(crate) fn seal(&mut self, storage: &Storage) -> io::Result<()> {
        if self.is_present {
            self.begin_file(storage)?;
            self.values.seal(storage)?;
            self.rows = self.values.len();
        } else {
            self.rows += std::mem::take(&mut self.empty_rows);
        }
        Ok(())
    }

    /// Keeps the rows with these numbers ([`Column::pick`]).
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub(crate) fn pick(
        &self,
        storage: &Storage,
        places: &[u32],
        into: &mut OptionalColumn<T>,
    ) -> io::Result<()> {
        into.is_present = self.is_present;
        if self.is_present {
            self.values.pick(storage, places, &mut into.values)?
        } else {
            into.empty_rows += places.len()
        }
        Ok(())
    }
}

impl<T> Deref for OptionalColumn<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values
    }
}

/// Values can be changed; those in a file are brought into memory.
impl<T: Copy> DerefMut for OptionalColumn<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

impl<T> Default for OptionalColumn<T> {
    fn default() -> OptionalColumn<T> {
        OptionalColumn {
            values: Column::new(),
            is_present: false,
            rows: 0,
            empty_rows: 0,
        }
    }
}

impl<'a, T> IntoIterator for &'a OptionalColumn<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for OptionalColumn<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.values.fmt(f)
    }
}

impl<T: PartialEq, R: AsRef<[T]> + ?Sized> PartialEq<R> for OptionalColumn<T> {
    fn eq(&self, other: &R) -> bool {
        **self == *other.as_ref()
    }
}

impl<T> AsRef<[T]> for OptionalColumn<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_column_has_zeros_for_rows_before_the_first_value() {
        let mut column = OptionalColumn::<u64>::default();
        column.set_last(1);
        assert!(column.is_empty(), "there is no row");
        for _ in 0..3 {
            column.add_row();
        }
        assert!(column.is_empty());
        column.set_last(7);
        column.add_row();
        assert_eq!(column, [0, 0, 7, 0]);
        column.reorder(&[2, 0]);
        assert_eq!(column, [7, 0]);
    }

    #[test]
    fn optional_column_has_zeros_for_spilled_rows_before_the_first_value() {
        let directory = tempfile::tempdir().expect("a directory");
        let storage = Storage::new(directory.path());
        let mut column = OptionalColumn::<u64>::default();
        let add = |column: &mut OptionalColumn<u64>, values: &[u64]| {
            for value in values {
                column.add_row();
                if *value != 0 {
                    column.set_last(*value);
                }
            }
        };
        for values in [[0, 0].as_slice(), &[0], &[0, 5, 0], &[6]] {
            add(&mut column, values);
            column.spill(&storage).expect("written");
        }
        add(&mut column, &[0, 8]);
        column.seal(&storage).expect("mapped");
        assert_eq!(column, [0, 0, 0, 0, 5, 0, 6, 0, 8]);

        let mut picked = OptionalColumn::default();
        for places in [[8, 4].as_slice(), &[0]] {
            column.pick(&storage, places, &mut picked).expect("written");
        }
        picked.seal(&storage).expect("mapped");
        add(&mut picked, &[9]);
        assert_eq!(picked, [8, 5, 0, 9]);
    }

    #[test]
    fn optional_column_without_values_stays_empty_when_spilled_and_picked() {
        let directory = tempfile::tempdir().expect("a directory");
        let storage = Storage::new(directory.path());
        let mut column = OptionalColumn::<u64>::default();
        column.add_row();
        column.spill(&storage).expect("nothing to write");
        column.add_row();
        column.seal(&storage).expect("nothing to map");
        let mut picked = OptionalColumn::default();
        column
            .pick(&storage, &[1, 0], &mut picked)
            .expect("nothing");
        picked.seal(&storage).expect("nothing to map");
        assert!(column.is_empty() && picked.is_empty());
        picked.add_row();
        picked.set_last(4);
        assert_eq!(picked, [0, 0, 4]);
    }
}
