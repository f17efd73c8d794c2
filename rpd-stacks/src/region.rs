//! Fixed ranges of zeroed memory, taken from the kernel and not from the allocator.

use std::ptr::NonNull;

/// Size of a page in bytes.
const PAGE: usize = 4096;

/// Types of which all-zero bytes are a valid value.
///
/// # Safety
///
/// Zeroed memory is a valid value of the type, and dropping it needs nothing.
pub(crate) unsafe trait Zeroed {}

// SAFETY: integers, and atomics of the same layout.
unsafe impl Zeroed for u8 {}
// SAFETY: as above.
unsafe impl Zeroed for u32 {}
// SAFETY: as above.
unsafe impl Zeroed for u64 {}
// SAFETY: as above.
unsafe impl Zeroed for std::sync::atomic::AtomicU8 {}
// SAFETY: as above.
unsafe impl Zeroed for std::sync::atomic::AtomicU32 {}
// SAFETY: as above.
unsafe impl Zeroed for std::sync::atomic::AtomicU64 {}

/// A range of `len` values. Pages that were never written take no memory.
pub(crate) struct Region<T: Zeroed> {
    base: NonNull<T>,
    len: usize,
}

// SAFETY: a region owns its memory; sharing it is sharing values of T.
unsafe impl<T: Zeroed + Send> Send for Region<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed + Sync> Sync for Region<T> {}

impl<T: Zeroed> Region<T> {
    /// Reserves room for `len` values; a region of length 0 if the kernel refuses.
    pub(crate) fn reserve(len: usize) -> Region<T> {
        let bytes = len * size_of::<T>();
        // SAFETY: a new private mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Region {
                base: NonNull::dangling(),
                len: 0,
            };
        }
        // Sparse use of a huge page would take all of it.
        // SAFETY: the range was mapped above.
        unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
        match NonNull::new(base.cast()) {
            Some(base) => Region { base, len },
            None => Region {
                base: NonNull::dangling(),
                len: 0,
            },
        }
    }

    /// Number of values in the region.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes the kernel provide the pages of a range of values now, in one go instead of one fault at a time later.
    pub(crate) fn populate(&self, range: std::ops::Range<usize>) {
        if range.start >= range.end || range.end > self.len {
            return;
        }
        let start = (range.start * size_of::<T>()) & !(PAGE - 1);
        let bytes = range.end * size_of::<T>() - start;
        // SAFETY: the range is ours. Before Linux 5.14 the advice is unknown, and pages come when they are used.
        unsafe {
            let start = self.base.as_ptr().byte_add(start).cast();
            libc::madvise(start, bytes, libc::MADV_POPULATE_WRITE)
        };
    }

    /// The first `N` values, as an array, whose length is a constant.
    ///
    /// # Panics
    ///
    /// If the region is shorter: it was refused, and `len` is 0.
    #[inline(always)]
    pub(crate) fn first<const N: usize>(&self) -> &[T; N] {
        assert!(self.len >= N);
        // SAFETY: at least `N` values are mapped.
        unsafe { &*self.base.as_ptr().cast() }
    }

    /// As [`Region::first`], to be changed.
    ///
    /// # Panics
    ///
    /// As [`Region::first`].
    #[inline(always)]
    pub(crate) fn first_mut<const N: usize>(&mut self) -> &mut [T; N] {
        assert!(self.len >= N);
        // SAFETY: at least `N` values are mapped, and the region is borrowed exclusively.
        unsafe { &mut *self.base.as_ptr().cast() }
    }

    /// Makes all values zero again and gives their memory back. No other thread may use the region meanwhile.
    pub(crate) fn discard(&self) {
        if self.len > 0 {
            // SAFETY: the range is ours, private and anonymous: its pages read as zeros afterwards.
            unsafe {
                libc::madvise(
                    self.base.as_ptr().cast(),
                    self.len * size_of::<T>(),
                    libc::MADV_DONTNEED,
                )
            };
        }
    }
}

impl<T: Zeroed> std::ops::Deref for Region<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values are mapped, and zeroed or written since.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl<T: Zeroed> std::ops::DerefMut for Region<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the region is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl<T: Zeroed> Drop for Region<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: mapped by `reserve`, and nothing borrows it any more.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.len * size_of::<T>()) };
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn region_reads_as_zeros_after_discard() {
        let mut region = Region::<u64>::reserve(1000);
        assert!(region.iter().all(|&value| value == 0));
        region[999] = 7;
        region.discard();
        assert_eq!(region[999], 0);
    }

    #[test]
    fn region_is_empty_when_the_kernel_refuses() {
        assert_eq!(Region::<u64>::reserve(1 << 55).len(), 0);
    }
}
