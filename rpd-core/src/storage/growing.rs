//! A list of numbers that can be changed at any place, and that moves from memory to a file when it gets long.
//!
//! The values of a [`crate::storage::column::Column`], in contrast, can be read only when all of them have been written.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::storage::column::{Storage, unwritten};

/// Bytes by which a file grows.
const STEP: usize = 16 << 20;

/// Values in memory, or in a file without a name that is mapped.
#[derive(Debug)]
pub struct Growing<T> {
    memory: Vec<T>,
    file: Option<Mapping<T>>,
}

impl<T> Default for Growing<T> {
    fn default() -> Growing<T> {
        Growing {
            memory: Vec::new(),
            file: None,
        }
    }
}

impl<T: Copy + FromBytes + IntoBytes + Immutable> Growing<T> {
    /// `len` zeros in memory.
    pub fn zeros(len: usize) -> Growing<T> {
        Growing {
            memory: vec![T::new_zeroed(); len],
            file: None,
        }
    }

    /// `len` zeros in a file.
    ///
    /// # Errors
    /// When the file cannot be made or has no space.
    pub fn zeros_in_file(len: usize, storage: &Storage) -> io::Result<Growing<T>> {
        let mut file = Mapping::new(storage.file()?, len)?;
        file.len = len;
        Ok(Growing {
            memory: Vec::new(),
            file: Some(file),
        })
    }

    /// Moves the values to a file, where they stay.
    ///
    /// # Errors
    /// When the file cannot be made or has no space; the values stay in memory then.
    pub fn move_to_file(&mut self, storage: &Storage) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let mut file = Mapping::new(storage.file()?, self.memory.len())?;
        for part in self.memory.chunks(STEP / size_of::<T>()) {
            file.append(part)?;
            file.release();
        }
        self.memory = Vec::new();
        self.file = Some(file);
        Ok(())
    }

    /// Moves the values to memory.
    pub fn move_to_memory(&mut self) {
        if let Some(file) = self.file.take() {
            self.memory = file.values().to_vec();
        }
    }

    /// Appends values. When the file has no space for them they are in memory afterwards.
    pub fn append(&mut self, values: &[T]) {
        if let Some(file) = &mut self.file {
            if file.append(values).is_ok() {
                return;
            }
            self.move_to_memory();
        }
        self.memory.extend_from_slice(values);
    }
}

impl<T> Growing<T> {
    /// Releases the memory of values in the file; they are read again when they are needed.
    pub fn release(&self) {
        if let Some(file) = &self.file {
            file.release();
        }
    }

    /// Whether the values are in a file.
    pub fn is_in_file(&self) -> bool {
        self.file.is_some()
    }
}

impl<T> Deref for Growing<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.file {
            Some(file) => file.values(),
            None => &self.memory,
        }
    }
}

impl<T> DerefMut for Growing<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.file {
            Some(file) => file.values_mut(),
            None => &mut self.memory,
        }
    }
}

/// A file mapped for reading and writing. Its blocks are allocated before they are mapped: writing to a mapped page that a
/// full disk has no block for would end the process.
#[derive(Debug)]
struct Mapping<T> {
    file: File,
    begin: NonNull<T>,
    /// Number of values in use.
    len: usize,
    /// Number of values that the mapping has room for.
    capacity: usize,
}

// SAFETY: the mapping is private to its owner, which hands it out as slices by the rules of borrowing.
unsafe impl<T: Send> Send for Mapping<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Mapping<T> {}

impl<T: Copy + FromBytes + IntoBytes + Immutable> Mapping<T> {
    fn new(file: File, capacity: usize) -> io::Result<Mapping<T>> {
        let bytes = file_size::<T>(capacity);
        allocate(&file, bytes)?;
        // SAFETY: a new mapping at an address that the kernel chooses. The file has no name and only this value has its
        // descriptor, so nothing else can cut it short or write to it.
        let begin = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        Ok(Mapping {
            file,
            begin: mapped(begin)?,
            len: 0,
            capacity: bytes / size_of::<T>(),
        })
    }

    /// Makes room for `len` values in all.
    fn reserve(&mut self, len: usize) -> io::Result<()> {
        if len <= self.capacity {
            return Ok(());
        }
        let bytes = file_size::<T>(len);
        allocate(&self.file, bytes)?;
        // SAFETY: this value's own mapping, of which nothing is borrowed (`&mut self`); the file has that many bytes.
        let begin = unsafe {
            libc::mremap(
                self.begin.as_ptr().cast(),
                self.capacity * size_of::<T>(),
                bytes,
                libc::MREMAP_MAYMOVE,
            )
        };
        self.begin = mapped(begin)?;
        self.capacity = bytes / size_of::<T>();
        Ok(())
    }

    fn append(&mut self, values: &[T]) -> io::Result<()> {
        let end = self.len + values.len();
        self.reserve(end)?;
        let begin = std::mem::replace(&mut self.len, end);
        self.values_mut()[begin..].copy_from_slice(values);
        Ok(())
    }
}

impl<T> Mapping<T> {
    #[inline]
    fn values(&self) -> &[T] {
        // SAFETY: at least `len` values are mapped, zeros or written as values of this type, for which any bytes are a value
        // (`FromBytes` where a mapping is made); pages begin at any alignment that a value needs.
        unsafe { std::slice::from_raw_parts(self.begin.as_ptr(), self.len) }
    }

    #[inline]
    fn values_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `values`; `&mut self` is the only borrow.
        unsafe { std::slice::from_raw_parts_mut(self.begin.as_ptr(), self.len) }
    }

    fn release(&self) {
        // SAFETY: the mapping is shared and of a file, so its pages come back with the same content.
        unsafe {
            libc::madvise(
                self.begin.as_ptr().cast(),
                self.capacity * size_of::<T>(),
                libc::MADV_DONTNEED,
            );
        }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: this mapping is of this value, and nothing borrows from it any more.
        unsafe {
            libc::munmap(self.begin.as_ptr().cast(), self.capacity * size_of::<T>());
        }
    }
}

/// Bytes of a file for `len` values: a multiple of [`STEP`], at least one.
fn file_size<T>(len: usize) -> usize {
    (len * size_of::<T>()).max(1).next_multiple_of(STEP)
}

fn allocate(file: &File, bytes: usize) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } {
        0 => Ok(()),
        error => Err(unwritten(file, io::Error::from_raw_os_error(error))),
    }
}

fn mapped<T>(address: *mut libc::c_void) -> io::Result<NonNull<T>> {
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_list_has_the_same_values_in_memory_and_in_a_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let storage = Storage::new(directory.path());
        let mut list = Growing::default();
        list.append(&[1_u64, 2, 3]);
        list.move_to_file(&storage).expect("a file");
        let many: Vec<u64> = (4..3_000_000).collect();
        list.append(&many);
        list[1] = 20;
        list.release();
        assert!(list.is_in_file());
        assert_eq!(list.len(), 2_999_999);
        assert_eq!((list[0], list[1], list[2_999_998]), (1, 20, 2_999_999));
        list.move_to_memory();
        assert!(!list.is_in_file());
        assert_eq!((list[1], list[2_999_998]), (20, 2_999_999));
        let left = std::fs::read_dir(directory.path()).expect("listed").count();
        assert_eq!(left, 0, "the file has no name");
    }

    #[test]
    fn growing_list_of_zeros_can_be_changed_in_memory_and_in_a_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let storage = Storage::new(directory.path());
        let in_file = Growing::zeros_in_file(5_000_000, &storage).expect("there is space");
        for mut zeros in [Growing::<u64>::zeros(5_000_000), in_file] {
            assert_eq!(zeros.len(), 5_000_000);
            zeros[4_999_999] = 7;
            zeros.release();
            assert_eq!((zeros[0], zeros[4_999_999]), (0, 7));
        }
    }
}
