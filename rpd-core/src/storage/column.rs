//! Columns that are in memory while they are short and in a mapped file when they are long.
//!
//! A table that grows beyond a limit writes its rows to files without a name ([`Column::spill`]) and reads them through
//! a mapping ([`Column::seal`]). Mapped pages count as memory of the process until they are released, so a loop over a
//! table releases them as it proceeds ([`Column::release`]; [`crate::session::CallTable::indices`] and those of the other tables do it).

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use zerocopy::{Immutable, IntoBytes};

/// Bytes written to a file at once. The kernel keeps what was written at once as one piece of the page cache, of 2 MiB at most,
/// and maps it as a whole: where many sorted runs are merged, that is too much for each.
const PIECE: usize = 64 << 10;

/// Rows of a batch: after that many, pages of mapped columns are given back.
pub const BATCH: usize = 1 << 16;

/// Rows of a table that are kept in memory before they are written to files. More make loading faster; all tables together
/// take at most 110 MiB with this many, which leaves writers the rest of 256 MiB.
const ROWS: usize = 1 << 18;

/// The directory for files of long columns, and the length from which a column is written to one.
#[derive(Debug, Clone)]
pub struct Storage {
    /// The directory, kept open so that it stays the same one when its name is given to another.
    directory: Option<Arc<File>>,
    rows: usize,
}

impl Storage {
    /// Files in `directory`. Where that cannot be written to, in the current directory, else in the one that `TMPDIR` names.
    pub fn new(directory: &Path) -> Storage {
        Storage {
            directory: File::options()
                .read(true)
                .custom_flags(libc::O_DIRECTORY)
                .open(directory)
                .ok()
                .map(Arc::new),
            rows: ROWS,
        }
    }

    /// Rows of a table that are kept in memory; at least 1. For tests and measurements.
    pub fn with_rows(mut self, rows: usize) -> Storage {
        self.rows = rows.max(1);
        self
    }

    /// Rows of a table that are kept in memory.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A new file without a name: the kernel deletes it when it is closed, also at a crash.
    pub(crate) fn file(&self) -> io::Result<File> {
        let made = match &self.directory {
            Some(directory) => {
                let number = directory.as_raw_fd();
                nameless(&PathBuf::from(format!("/proc/self/fd/{number}")))
            }
            None => Err(io::ErrorKind::NotFound.into()),
        };
        // Not /tmp unless the user requests it: it is small on many machines, and in memory on some.
        let named = || std::env::var_os("TMPDIR").filter(|name| !name.is_empty());
        made.or_else(|error| {
            nameless(Path::new("."))
                .or_else(|_| nameless(Path::new(&named().ok_or(io::ErrorKind::NotFound)?)))
                .map_err(|_| error)
        })
    }
}

/// A file without a name in `directory`. File systems that have none get one with a name that is removed at once.
fn nameless(directory: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    let made = options
        .clone()
        .custom_flags(libc::O_TMPFILE)
        .open(directory);
    if let Ok(file) = made {
        return Ok(file);
    }
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = directory.join(format!(".rpd-column-{}-{number}", std::process::id()));
    let file = options.create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// An error of writing a file without a name, which says where it lies: what is full is the file system of that directory.
pub(crate) fn unwritten(file: &File, error: io::Error) -> io::Error {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    match path.as_deref().ok().and_then(Path::parent) {
        Some(directory) => {
            let text = format!("a temporary file in {}: {error}", directory.display());
            io::Error::new(error.kind(), text)
        }
        None => error,
    }
}

/// Values of one type, in memory or in a file.
///
/// It is used like a slice. While [`Column::spill`] has written values and [`Column::seal`] has not been called, the
/// slice is what has not been written yet.
pub struct Column<T> {
    tail: Vec<T>,
    file: Option<Spilled>,
    map: Option<Map<T>>,
}

/// The values that were written so far.
struct Spilled {
    file: File,
    values: usize,
}

impl<T> Column<T> {
    /// Creates an empty column in memory.
    pub const fn new() -> Column<T> {
        Column {
            tail: Vec::new(),
            file: None,
            map: None,
        }
    }

    /// Number of values, those in a file included.
    pub fn total(&self) -> usize {
        self.file.as_ref().map_or(0, |file| file.values) + self.len()
    }

    /// Whether the values are in a file.
    pub fn is_mapped(&self) -> bool {
        self.map.is_some()
    }

    /// Releases the memory of values that were read from a file; they are read again when they are needed.
    pub fn release(&self) {
        if let Some(map) = &self.map {
            map.release();
        }
    }
}

impl<T> Column<T> {
    /// Iterates over the values. Memory of values in a file is released during the iteration.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            column: self,
            batch: [].iter(),
            rest: self,
        }
    }
}

/// Iterator over the values of a column; see [`Column::iter`].
#[derive(Debug)]
pub struct Iter<'a, T> {
    column: &'a Column<T>,
    batch: std::slice::Iter<'a, T>,
    rest: &'a [T],
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Iter {
            column: self.column,
            batch: self.batch.clone(),
            rest: self.rest,
        }
    }
}

impl<'a, T> Iter<'a, T> {
    #[cold]
    fn next_batch(&mut self) -> Option<&'a T> {
        self.column.release();
        let (batch, rest) = self.rest.split_at(self.rest.len().min(BATCH));
        (self.batch, self.rest) = (batch.iter(), rest);
        self.batch.next()
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        match self.batch.next() {
            None => self.next_batch(),
            value => value,
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.batch.len() + self.rest.len();
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

impl<T: Copy> Column<T> {
    /// The values in memory, to be changed. Those in a file are brought into memory.
    pub fn to_memory(&mut self) -> &mut Vec<T> {
        if let Some(map) = self.map.take() {
            self.tail = map.values().to_vec();
        }
        &mut self.tail
    }

    /// Reorders the values, or removes some: `order[i]` is the old index of the new value `i`.
    pub fn reorder(&mut self, order: &[u32]) {
        let old = std::mem::take(self.to_memory());
        self.tail = order.iter().map(|&place| old[place as usize]).collect();
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.map.is_some() {
            self.to_memory();
        }
        self.tail.push(value);
    }

    /// Makes it `len` values long; new ones are `value`.
    pub fn resize(&mut self, len: usize, value: T) {
        self.to_memory().resize(len, value);
    }

    /// Appends values.
    pub fn extend_from_slice(&mut self, values: &[T]) {
        self.to_memory().extend_from_slice(values);
    }
}

impl<T: Copy + IntoBytes + Immutable> Column<T> {
    /// Writes the values in memory to the column's file.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub fn spill(&mut self, storage: &Storage) -> io::Result<()> {
        if self.map.is_some() {
            return Ok(());
        }
        if self.file.is_none() {
            let file = storage.file()?;
            self.file = Some(Spilled { file, values: 0 });
        }
        let Some(Spilled { file, values }) = &mut self.file else {
            return Ok(());
        };
        let bytes = self.tail.as_slice().as_bytes();
        let offset = (*values * size_of::<T>()) as u64;
        if bytes.iter().all(|&byte| byte == 0) {
            // A hole: reads as zeros and takes no space.
            let len = offset + bytes.len() as u64;
            file.set_len(len).map_err(|error| unwritten(file, error))?;
        } else {
            // Small pieces, so that the kernel maps few bytes around each row that is read later.
            for (piece, place) in bytes.chunks(PIECE).zip((offset..).step_by(PIECE)) {
                let written = file.write_all_at(piece, place);
                written.map_err(|error| unwritten(file, error))?;
            }
        }
        *values += self.tail.len();
        self.tail.clear();
        Ok(())
    }

    /// Makes the column's file, which begins with `count` zeros, before any of the values in memory.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(crate) fn begin_with_zeros(&mut self, storage: &Storage, count: usize) -> io::Result<()> {
        let file = storage.file()?;
        // A hole: reads as zeros and takes no space.
        file.set_len((count * size_of::<T>()) as u64)?;
        self.file = Some(Spilled {
            file,
            values: count,
        });
        Ok(())
    }

    /// Appends a value, and writes what is in memory to the column's file when it is long. Without storage the column
    /// stays in memory.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    #[inline]
    pub fn append(&mut self, storage: Option<&Storage>, value: T) -> io::Result<()> {
        self.tail.push(value);
        match storage {
            Some(storage) if self.tail.len() >= storage.rows => self.spill(storage),
            _ => Ok(()),
        }
    }

    /// Ends what [`Column::spill`] began: all values can be read then. Nothing is done for a column in memory.
    ///
    /// # Errors
    /// When the file cannot be written or mapped.
    pub fn seal(&mut self, storage: &Storage) -> io::Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        self.spill(storage)?;
        if let Some(Spilled { file, values }) = self.file.take() {
            self.map = Map::new(&file, values)?;
        }
        self.tail = Vec::new();
        Ok(())
    }

    /// Appends the values at `places` to `into`, which is being written to a file.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub fn pick(&self, storage: &Storage, places: &[u32], into: &mut Column<T>) -> io::Result<()> {
        let values: &[T] = self;
        into.tail
            .extend(places.iter().map(|&place| values[place as usize]));
        into.spill(storage)?;
        self.release();
        Ok(())
    }

    /// Replaces every value.
    ///
    /// # Errors
    /// When a file cannot be written or mapped.
    pub fn rewrite(&mut self, storage: &Storage, change: impl Fn(T) -> T) -> io::Result<()> {
        if self.map.is_none() {
            self.tail
                .iter_mut()
                .for_each(|value| *value = change(*value));
            return Ok(());
        }
        let mut changed = Column::new();
        for batch in self.chunks(BATCH) {
            changed
                .tail
                .extend(batch.iter().map(|&value| change(value)));
            changed.spill(storage)?;
            self.release();
        }
        changed.seal(storage)?;
        *self = changed;
        Ok(())
    }
}

impl<T> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.map {
            Some(map) => map.values(),
            None => &self.tail,
        }
    }
}

impl<T: Copy> DerefMut for Column<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.to_memory()
    }
}

impl<T> AsRef<[T]> for Column<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> Default for Column<T> {
    fn default() -> Column<T> {
        Column::new()
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(tail: Vec<T>) -> Column<T> {
        Column {
            tail,
            ..Column::new()
        }
    }
}

impl<T> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Column<T> {
        Column::from(Vec::from_iter(values))
    }
}

impl<T: Copy> Extend<T> for Column<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        self.to_memory().extend(values);
    }
}

impl<'a, T: Copy + 'a> Extend<&'a T> for Column<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, values: I) {
        self.to_memory().extend(values);
    }
}

impl<'a, T> IntoIterator for &'a Column<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Copy> IntoIterator for &'a mut Column<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: PartialEq, R: AsRef<[T]> + ?Sized> PartialEq<R> for Column<T> {
    fn eq(&self, other: &R) -> bool {
        **self == *other.as_ref()
    }
}

/// A mapped file of values.
struct Map<T> {
    begin: NonNull<T>,
    values: usize,
    of: PhantomData<T>,
}

// SAFETY: the mapping is read only and private to its owner; it is as shareable as a slice of its values.
unsafe impl<T: Send> Send for Map<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Map<T> {}

impl<T: Copy + IntoBytes + Immutable> Map<T> {
    /// Maps `values` values that were written to `file` as `T`. `None` for none.
    fn new(file: &File, values: usize) -> io::Result<Option<Map<T>>> {
        let bytes = values * size_of::<T>();
        if bytes == 0 {
            return Ok(None);
        }
        // SAFETY: a new mapping at an address that the kernel chooses. The file has no name and its descriptor is closed
        // after this, so no other process can cut it short or write to it.
        let begin = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(NonNull::new(begin.cast()).map(|begin| Map {
            begin,
            values,
            of: PhantomData,
        }))
    }
}

impl<T> Map<T> {
    #[inline]
    fn values(&self) -> &[T] {
        // SAFETY: the mapping has that many values, which `Column::spill` wrote as values of this type; pages begin at any
        // alignment that a value needs. It lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.begin.as_ptr(), self.values) }
    }

    fn release(&self) {
        // SAFETY: the mapping is shared and of a file, so its pages come back with the same content.
        unsafe {
            libc::madvise(
                self.begin.as_ptr().cast(),
                self.values * size_of::<T>(),
                libc::MADV_DONTNEED,
            );
        }
    }
}

impl<T> Drop for Map<T> {
    fn drop(&mut self) {
        // SAFETY: this mapping is of this value, and nothing borrows from it any more.
        unsafe {
            libc::munmap(self.begin.as_ptr().cast(), self.values * size_of::<T>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage() -> (tempfile::TempDir, Storage) {
        let directory = tempfile::tempdir().expect("a directory");
        let storage = Storage::new(directory.path());
        (directory, storage)
    }

    #[test]
    fn column_returns_spilled_values_from_its_file() {
        let (directory, storage) = storage();
        let mut column = Column::new();
        for part in [vec![1_u64, 2, 3], vec![0; 5], vec![9]] {
            column.extend_from_slice(&part);
            column.spill(&storage).expect("written");
            assert!(column.is_empty());
        }
        column.push(10);
        assert_eq!(column.total(), 10);
        column.seal(&storage).expect("mapped");
        assert!(column.is_mapped());
        column.release();
        assert_eq!(*column, [1, 2, 3, 0, 0, 0, 0, 0, 9, 10]);
        column
            .rewrite(&storage, |value| value + 1)
            .expect("written");
        assert_eq!(*column, [2, 3, 4, 1, 1, 1, 1, 1, 10, 11]);
        let left = std::fs::read_dir(directory.path()).expect("listed").count();
        assert_eq!(left, 0, "the file has no name");
        column.push(5);
        assert!(!column.is_mapped());
        assert_eq!(column.len(), 11);
    }

    #[test]
    fn column_without_values_can_be_spilled_and_sealed() {
        let (_directory, storage) = storage();
        let mut column = Column::<u32>::new();
        column.spill(&storage).expect("written");
        column.seal(&storage).expect("mapped");
        assert!(column.is_empty());
    }

    #[test]
    fn storage_uses_another_directory_when_its_own_is_gone() {
        let storage = Storage::new(Path::new("/proc/nonexistent"));
        let mut column = Column::from(vec![7_u8]);
        column.spill(&storage).expect("written");
        column.seal(&storage).expect("mapped");
        assert_eq!(*column, [7]);
    }
}
