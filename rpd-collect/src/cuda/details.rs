//! What NVTX marks and ranges say beyond their messages: payload, category and color.

use std::cell::UnsafeCell;
use std::collections::HashMap;

use cupti_sys::nvtx::{COLOR_ARGB, EventAttributes, payload_type};

use crate::recording::fork::ForkHook;

/// Names of categories by domain (0 for none) and number.
struct Names(UnsafeCell<Option<HashMap<(usize, u32), String>>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for Names {}

static NAMES: Names = Names(UnsafeCell::new(None));
/// A child has the names of its parent.
static FORK: ForkHook = ForkHook::new();

/// The program names a category.
pub(super) fn name_category(domain: usize, number: u32, name: &str) {
    let Some(_guard) = FORK.lock() else { return };
    // SAFETY: the lock is held.
    let names = unsafe { &mut *NAMES.0.get() }.get_or_insert_default();
    names.insert((domain, number), name.to_owned());
}

/// The name of a category, or its number where it has none.
fn category(domain: usize, number: u32) -> String {
    let named = FORK.lock().and_then(|_guard| {
        // SAFETY: the lock is held.
        unsafe { &*NAMES.0.get() }
            .as_ref()?
            .get(&(domain, number))
            .cloned()
    });
    named.unwrap_or_else(|| number.to_string())
}

/// Type and value of a payload; `None` without one, and for types that are not known.
fn payload(kind: i32, bits: u64) -> Option<(&'static str, String)> {
    let low = bits as u32;
    Some(match kind {
        payload_type::UNSIGNED_64 => ("uint64_t", bits.to_string()),
        payload_type::SIGNED_64 => ("int64_t", bits.cast_signed().to_string()),
        payload_type::DOUBLE => ("double", f64::from_bits(bits).to_string()),
        payload_type::UNSIGNED_32 => ("uint32_t", low.to_string()),
        payload_type::SIGNED_32 => ("int32_t", low.cast_signed().to_string()),
        payload_type::FLOAT => ("float", f32::from_bits(low).to_string()),
        _ => return None,
    })
}

/// What the attributes of a mark or range say: for each its type, name and value, as
/// [`rpd_spool::format::call_flag::ARGUMENT_TEXTS`] has them. Empty when they say nothing.
pub(super) fn encode(given: &EventAttributes, domain: usize) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut add = |texts: [&str; 3]| {
        for text in texts {
            encoded.extend_from_slice(&(text.len() as u32).to_le_bytes());
            encoded.extend_from_slice(text.as_bytes());
        }
    };
    if let Some((kind, value)) = payload(given.payload_type, given.payload) {
        add([kind, "payload", &value]);
    }
    if given.category != 0 {
        add(["category", "category", &category(domain, given.category)]);
    }
    if given.color_type == COLOR_ARGB {
        add(["argb", "color", &format!("#{:08x}", given.color)]);
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_the_types_of_nvtx() {
        let value = |kind, bits| payload(kind, bits).map(|(_, value)| value);
        assert_eq!(value(0, 7), None);
        assert_eq!(value(1, u64::MAX), Some("18446744073709551615".to_owned()));
        assert_eq!(value(2, u64::MAX), Some("-1".to_owned()));
        assert_eq!(value(3, 2.5_f64.to_bits()), Some("2.5".to_owned()));
        // The upper half is not a part of it.
        assert_eq!(value(4, 0xffff_ffff_0000_0005), Some("5".to_owned()));
        assert_eq!(value(5, 0xffff_fffe), Some("-2".to_owned()));
        assert_eq!(value(6, 0.5_f32.to_bits().into()), Some("0.5".to_owned()));
        assert_eq!(value(99, 1), None);
    }
}
