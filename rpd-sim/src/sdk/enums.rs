//! Short names of enumerators, as the iterators show values.

use core::ffi::CStr;

// By type, value and name without the type's prefix.
include!(concat!(env!("OUT_DIR"), "/enums.rs"));

/// The short name of a value; `None` where the type or the value is not known.
pub(crate) fn short_name(name: &CStr, value: i32) -> Option<&'static str> {
    NAMES
        .iter()
        .find(|(n, v, _)| *n == name && *v == value)
        .map(|(_, _, text)| *text)
}
