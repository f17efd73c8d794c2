//! Reading what the provider and the target point at.

use std::ffi::{CStr, c_char, c_void};

/// The text at `text`; empty for a null pointer.
///
/// # Safety
///
/// `text` is null or points to a NUL-terminated string that lives as long as the result.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: as this function demands.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// At most `most` bytes of the text at `text`, and whether that cut it; `None` for a null pointer.
///
/// # Safety
///
/// `text` is null or points to a NUL-terminated string that lives as long as the result.
#[inline]
pub(crate) unsafe fn capped<'a>(text: *const c_char, most: usize) -> Option<(&'a [u8], bool)> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as this function demands; strnlen reads at most up to the NUL.
    unsafe {
        let len = libc::strnlen(text, most + 1);
        let kept = len.min(most);
        Some((
            std::slice::from_raw_parts(text.cast::<u8>(), kept),
            len > most,
        ))
    }
}

/// A struct of the ABI whose first eight bytes say how many of its bytes are meaningful. Fields beyond them are zero.
///
/// # Safety
///
/// `from` is null or points to such a struct, `T` is a plain struct of the ABI for which all-zero bytes are valid and
/// which begins like it.
#[inline]
pub(crate) unsafe fn sized<T: Default + Copy>(from: *const c_void) -> Option<T> {
    if from.is_null() {
        return None;
    }
    let mut value = T::default();
    // SAFETY: the struct begins with its size; no more than that and no more than `T` holds is copied.
    unsafe {
        let size = from.cast::<u64>().read_unaligned() as usize;
        std::ptr::copy_nonoverlapping(
            from.cast::<u8>(),
            (&raw mut value).cast::<u8>(),
            size.min(size_of::<T>()),
        );
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_size_covers_is_read() {
        let short: [u64; 3] = [16, 7, 9];
        // SAFETY: an array of numbers that starts with a size within it.
        let read: [u64; 3] = unsafe { sized(short.as_ptr().cast()) }.expect("not null");
        assert_eq!(read, [16, 7, 0]);
        let long: [u64; 3] = [4096, 7, 9];
        // SAFETY: as above; the result's own size bounds the copy.
        let read: [u64; 2] = unsafe { sized(long.as_ptr().cast()) }.expect("not null");
        assert_eq!(read, [4096, 7]);
    }

    #[test]
    fn texts_are_cut() {
        // SAFETY: C string literals.
        unsafe {
            assert_eq!(capped(c"abcdef".as_ptr(), 6), Some((&b"abcdef"[..], false)));
            assert_eq!(capped(c"abcdef".as_ptr(), 5), Some((&b"abcde"[..], true)));
            assert_eq!(capped(std::ptr::null(), 5), None);
            assert_eq!(text(std::ptr::null()), b"");
        }
    }
}
