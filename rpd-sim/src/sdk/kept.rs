//! Texts that live as long as the process. Tools keep pointers to names that payloads carry and read them when they
//! finalise, after the code object has gone.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::Mutex;

static TEXTS: Mutex<Option<HashSet<&'static CStr>>> = Mutex::new(None);

/// Keeps `text` up to its first zero byte; equal texts have the same address.
pub(crate) fn keep(text: &str) -> &'static CStr {
    let end = text.find('\0').unwrap_or(text.len());
    keep_c(&CString::new(&text[..end]).unwrap_or_default())
}

/// Keeps `text`; equal texts have the same address.
pub(crate) fn keep_c(text: &CStr) -> &'static CStr {
    let mut texts = TEXTS.lock().unwrap_or_else(|e| e.into_inner());
    let texts = texts.get_or_insert_default();
    if let Some(kept) = texts.get(text) {
        return kept;
    }
    let kept: &'static CStr = Box::leak(text.to_owned().into_boxed_c_str());
    texts.insert(kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_returns_one_address_for_equal_texts() {
        let first = keep("one");
        assert_eq!(first.to_bytes(), b"one");
        assert_eq!(keep("one").as_ptr(), first.as_ptr());
        assert_eq!(keep_c(c"one").as_ptr(), first.as_ptr());
        assert_ne!(keep("two").as_ptr(), first.as_ptr());
        assert_eq!(keep("a\0b"), c"a");
    }
}
