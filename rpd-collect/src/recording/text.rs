//! Reading texts that the target and the provider point at.

use std::ffi::{CStr, c_char};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capped_cuts_long_texts() {
        // SAFETY: C string literals.
        unsafe {
            assert_eq!(capped(c"abcdef".as_ptr(), 6), Some((&b"abcdef"[..], false)));
            assert_eq!(capped(c"abcdef".as_ptr(), 5), Some((&b"abcde"[..], true)));
            assert_eq!(capped(std::ptr::null(), 5), None);
            assert_eq!(text(std::ptr::null()), b"");
        }
    }
}
