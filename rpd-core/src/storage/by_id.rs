//! A value for each of many numbers, in a file when there are many.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::storage::column::Storage;
use crate::storage::growing::Growing;

/// Size in bytes of a window: the kernel maps about as many bytes when one of them is read.
const WINDOW: usize = 64 << 10;

/// Windows of files that are read or written before their memory is given back: 16 MiB.
const WINDOWS: u32 = 256;

/// Tells when the memory of a mapped file that is read or written at any place is to be given back.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// The window that was read or written last, plus 1.
    last: AtomicUsize,
    /// Windows read and written since memory was given back.
    count: AtomicU32,
}

impl Windows {
    /// Whether the memory of the file is to be given back before a byte of it is read or written at `byte`. To be
    /// called before each access.
    #[inline]
    pub(crate) fn are_full(&self, byte: usize) -> bool {
        let window = byte / WINDOW + 1;
        // Not exchanged: at worst threads count a window twice.
        if self.last.load(Ordering::Relaxed) == window {
            return false;
        }
        self.last.store(window, Ordering::Relaxed);
        let is_full = self.count.fetch_add(1, Ordering::Relaxed) >= WINDOWS;
        if is_full {
            self.count.store(0, Ordering::Relaxed);
        }
        is_full
    }
}

/// Bytes of values for each row that a table may have in memory: 4 MiB with the usual number of rows.
const BYTES_PER_ROW: usize = 16;

/// A value for each number below a length, zero at first. Values are in a file when there are many; reading and writing them at
/// any place takes little memory then.
#[derive(Debug)]
pub struct ById<T> {
    values: Growing<T>,
    windows: Windows,
    storage: Option<Storage>,
}

impl<T> Default for ById<T> {
    fn default() -> ById<T> {
        ById {
            values: Growing::default(),
            windows: Windows::default(),
            storage: None,
        }
    }
}

impl<T: Copy + FromBytes + IntoBytes + Immutable> ById<T> {
    /// Zeros for the numbers below `len`. They go to a file in `storage` when there are many; if that fails, or without
    /// storage, they stay in memory.
    pub fn zeros(len: usize, storage: Option<&Storage>) -> ById<T> {
        let mut values = ById {
            storage: storage.cloned(),
            ..ById::default()
        };
        let in_file = values
            .storage_of(len)
            .and_then(|storage| Growing::zeros_in_file(len, storage).ok());
        values.values = in_file.unwrap_or_else(|| Growing::zeros(len));
        values
    }

    /// The storage, if this many values go to a file.
    fn storage_of(&self, len: usize) -> Option<&Storage> {
        let is_long = |storage: &&Storage| {
            len.saturating_mul(size_of::<T>()) > BYTES_PER_ROW.saturating_mul(storage.rows())
        };
        self.storage.as_ref().filter(is_long)
    }

    /// Adds zeros, so that there are values for the numbers below `len`.
    pub fn grow(&mut self, len: usize) {
        let new = len.saturating_sub(self.values.len());
        if new == 0 {
            return;
        }
        let storage = self.storage_of(len).cloned();
        if let Some(storage) = storage.filter(|_| !self.values.is_in_file())
            && self.values.move_to_file(&storage).is_err()
        {
            self.storage = None;
        }
        self.visit(self.values.len());
        self.values.append(&vec![T::new_zeroed(); new]);
    }

    /// One more than the greatest number with a value.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    #[inline]
    fn visit(&self, number: usize) {
        if self.values.is_in_file() && self.windows.are_full(number * size_of::<T>()) {
            self.values.release();
        }
    }

    /// The value of a number; zero for one without a value.
    #[inline]
    pub fn get(&self, number: u32) -> T {
        let number = number as usize;
        self.visit(number);
        self.values
            .get(number)
            .copied()
            .unwrap_or_else(T::new_zeroed)
    }

    /// The value of a number, to be changed; `None` for one without a value.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let number = number as usize;
        self.visit(number);
        self.values.get_mut(number)
    }

    /// The values in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        // No table of texts or records has more than 2^32 rows.
        (0..self.values.len() as u32).map(|number| self.get(number))
    }

    /// Whether the values are in a file.
    pub fn is_in_file(&self) -> bool {
        self.values.is_in_file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_id_returns_the_values_that_were_set() {
        const LEN: usize = 5_000_000;
        let directory = tempfile::tempdir().expect("a directory");
        let storage = Storage::new(directory.path());
        for (storage, is_in_file) in [(None, false), (Some(&storage), true)] {
            let mut grown = ById::<u64>::zeros(1, storage);
            (1..=50).for_each(|part| grown.grow(part * LEN / 50));
            for mut values in [ById::zeros(LEN, storage), grown] {
                assert_eq!((values.is_in_file(), values.len()), (is_in_file, LEN));
                // Consecutive accesses are in different windows.
                let places = || (0..4096_u32).map(|index| index * 2741 % 4096 * 1220);
                for number in places() {
                    *values.get_mut(number).expect("a value") += u64::from(number) + 1;
                }
                assert!(places().all(|number| values.get(number) == u64::from(number) + 1));
                assert_eq!(values.get(LEN as u32), 0);
                assert!(values.get_mut(LEN as u32).is_none());
                assert_eq!(values.iter().filter(|value| *value != 0).count(), 4096);
            }
        }
    }

    #[test]
    fn windows_are_full_after_the_limit_of_different_windows() {
        let windows = Windows::default();
        let due = |byte: usize| windows.are_full(byte);
        let given_back = (0..4 * WINDOWS as usize).filter(|window| due(window * WINDOW));
        assert_eq!(given_back.count(), 3);
        // A window that is read again and again counts once.
        assert!((0..4 * WINDOWS as usize).all(|_| !due(0)));
    }
}
