//! The arguments of a call: where they are, by a table that the build script makes from the argument tables, and how they
//! are recorded.

use std::ffi::c_char;
use std::ops::Range;

use rpd_spool::format::api_flag;
use rpd_spool::writer::OpenRecord;

use super::call::Call;
use super::text;

/// Bytes kept of a text argument.
pub(crate) const TEXT: usize = 4096;

include!(concat!(env!("OUT_DIR"), "/layouts.rs"));

/// The argument struct of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Offset of the operation's name in [`NAMES`].
    name: u16,
    name_len: u8,
    /// Bytes of the struct.
    pub(crate) size: u16,
    texts: [u16; TEXTS],
    count: u8,
}

impl Layout {
    /// Most texts that a call has.
    pub(crate) const TEXTS: usize = TEXTS;

    /// Offsets in the struct of the `char` pointers whose text is copied, in argument order: inputs only.
    #[inline]
    pub(crate) fn texts(&self) -> &[u16] {
        self.texts
            .get(..usize::from(self.count))
            .unwrap_or_default()
    }

    fn operation(&self) -> &'static str {
        let start = usize::from(self.name);
        NAMES
            .get(start..start + usize::from(self.name_len))
            .unwrap_or_default()
    }
}

/// The layouts of the calls of a kind, which goes by the provider's name, ordered by name; empty for a kind that is
/// not in the tables.
pub(crate) fn of_kind(kind: &str) -> &'static [Layout] {
    KINDS
        .iter()
        .find(|(name, _)| *name == kind)
        .and_then(|(_, range)| LAYOUTS.get(range.clone()))
        .unwrap_or_default()
}

/// The layout of one of the calls of a kind; `None` for operations that are not in the tables (a newer runtime's).
pub(crate) fn find<'a>(layouts: &'a [Layout], operation: &str) -> Option<&'a Layout> {
    layouts
        .binary_search_by_key(&operation, |layout| layout.operation())
        .ok()
        .map(|index| &layouts[index])
}

/// Begins a call that is recorded with its arguments: the bytes of the struct, and the texts behind pointers in it.
///
/// # Safety
///
/// `arguments` is the argument struct of the call that `layout` describes, as the caller passed it: texts in it are null or
/// NUL-terminated, as the call itself expects them.
#[inline]
pub(crate) unsafe fn begin(call: &Call, layout: &Layout, arguments: &[u8]) -> OpenRecord {
    let (size, offsets) = (arguments.len(), layout.texts());
    if offsets.is_empty() {
        return call.begin(api_flag::ARGUMENTS, size, |rest| {
            rest[..size].copy_from_slice(arguments);
        });
    }
    let mut texts: [Option<&[u8]>; Layout::TEXTS] = [None; Layout::TEXTS];
    let mut flags = api_flag::ARGUMENTS;
    let mut tail = size;
    for (text, offset) in texts.iter_mut().zip(offsets) {
        let offset = usize::from(*offset);
        let Some(bytes) = arguments.get(offset..offset + 8) else {
            continue;
        };
        let mut address = [0; 8];
        address.copy_from_slice(bytes);
        let pointer = usize::from_ne_bytes(address) as *const c_char;
        // SAFETY: as this function demands; the caller keeps the text alive through the call.
        if let Some((found, cut)) = unsafe { text::capped(pointer, TEXT) } {
            *text = Some(found);
            tail += found.len();
            if cut {
                flags |= api_flag::TRUNCATED;
            }
        }
    }
    tail += 4 * offsets.len();
    call.begin(flags, tail, |rest| {
        rest[..size].copy_from_slice(arguments);
        let mut at = size;
        for text in &texts[..offsets.len()] {
            let count = text.map_or(u32::MAX, |text| text.len() as u32);
            rest[at..at + 4].copy_from_slice(&count.to_le_bytes());
            at += 4;
            let text = text.unwrap_or_default();
            rest[at..at + text.len()].copy_from_slice(text);
            at += text.len();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_the_tables_is_found_with_its_texts() {
        for expected in rpd_data::layouts().expect("the tables") {
            let found = find(of_kind(expected.kind), expected.operation);
            let found = found.unwrap_or_else(|| panic!("{expected:?}"));
            assert_eq!(u32::from(found.size), expected.size, "{expected:?}");
            let texts = found.texts().iter().map(|&offset| u32::from(offset));
            assert!(texts.eq(expected.texts()), "{expected:?}");
        }
        assert!(find(of_kind("HIP_RUNTIME_API"), "hipFromTheFuture").is_none());
        assert!(of_kind("FROM_THE_FUTURE_API").is_empty());
    }
}
