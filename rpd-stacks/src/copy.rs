//! Copies of the process's own memory, which other threads may free meanwhile.

/// Types for which all bytes are a value.
///
/// # Safety
///
/// That is so, and the type has no padding.
pub(crate) unsafe trait Copied: Copy + Default {}

// SAFETY: an integer.
unsafe impl Copied for u32 {}
// SAFETY: an integer.
unsafe impl Copied for u64 {}

/// A way of copying memory; it returns `false` if all of it cannot be read.
pub(crate) type Copier = fn(u64, &mut [u8]) -> bool;

/// Copies through the kernel, which refuses addresses that are not readable.
pub(crate) fn checked(address: u64, into: &mut [u8]) -> bool {
    let range = (address, into.len() as u64);
    all_checked(std::iter::once(range), into)
}

/// Copies ranges of memory (address and length, of which up to [`MOST_RANGES`] count), one behind the other, in one
/// call of the kernel. `false` if not all are readable, or do not fill `into`.
pub(crate) fn all_checked(ranges: impl Iterator<Item = (u64, u64)>, into: &mut [u8]) -> bool {
    let empty = libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    };
    let mut remote = [empty; MOST_RANGES];
    let (mut count, mut total) = (0, 0);
    for (part, (address, len)) in remote.iter_mut().zip(ranges) {
        part.iov_base = address as *mut _;
        part.iov_len = len as usize;
        count += 1;
        total += len;
    }
    if total != into.len() as u64 {
        return false;
    }
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    // SAFETY: the kernel writes into `into` alone, checks what it reads, and leaves errno for us to restore.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let copied = libc::process_vm_readv(libc::getpid(), &local, 1, remote.as_ptr(), count, 0);
        *errno = before;
        usize::try_from(copied) == Ok(into.len())
    }
}

/// Greatest number of ranges that one call copies.
pub(crate) const MOST_RANGES: usize = 32;

/// Copies memory that is readable for certain.
///
/// # Safety
///
/// The memory is readable until the function returns.
pub(crate) unsafe fn unchecked(address: u64, into: &mut [u8]) {
    // SAFETY: passed on to our caller; nothing else refers to `into`.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len()) };
}

/// The value at an address.
pub(crate) fn value<T: Copied>(address: u64, copy: Copier) -> Option<T> {
    let mut value = T::default();
    // SAFETY: any bytes are a value of the type.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut((&raw mut value).cast::<u8>(), size_of::<T>()) };
    copy(address, bytes).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_refuses_unreadable_memory_and_keeps_errno() {
        let words = [1_u64, 2, 3];
        let at = |index: usize| &raw const words[index] as u64;
        // SAFETY: errno of this thread.
        unsafe { *libc::__errno_location() = 77 };
        assert_eq!(value::<u64>(at(1), checked), Some(2));
        assert_eq!(value::<u64>(8, checked), None);
        let mut both = [0; 16];
        assert!(all_checked([(at(2), 8), (at(0), 8)].into_iter(), &mut both));
        assert_eq!(u128::from_le_bytes(both), 1 << 64 | 3);
        assert!(!all_checked([(at(2), 8), (8, 8)].into_iter(), &mut both));
        assert!(!all_checked([(at(2), 8)].into_iter(), &mut both));
        // SAFETY: errno of this thread.
        assert_eq!(unsafe { *libc::__errno_location() }, 77);
    }
}
