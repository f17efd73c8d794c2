//! The arguments of a call: where they are, by a table that the build script makes from the argument tables, and how they
//! are recorded.

use std::ffi::c_char;
use std::ops::Range;

use rpd_spool::format::call_flag;
use rpd_spool::writer::OpenRecord;

use super::call::{self, Call};
use super::text;

/// Bytes kept of a text argument.
pub(crate) const TEXT: usize = 4096;

include!(concat!(env!("OUT_DIR"), "/layouts.rs"));

/// The argument struct of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Offset of the operation's name in [`NAMES`].
    name: u32,
    name_len: u8,
    /// Bytes of the struct.
    pub(crate) size: u16,
    texts: [u16; TEXTS],
    count: u8,
    /// Index in [`OUTPUTS`] of the first.
    first_output: u16,
    outputs: u8,
    /// Bytes of all values that the call stores through output arguments.
    results: u16,
}

/// An argument that points to where the call stores a value.
#[derive(Debug, Clone, Copy)]
struct Output {
    /// Offset in the struct of the pointer.
    pointer: u16,
    /// Bytes of the value.
    size: u16,
}

/// Bytes of the word that says which values are there.
const MASK: usize = size_of::<u32>();

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

    fn outputs(&self) -> &'static [Output] {
        let first = usize::from(self.first_output);
        OUTPUTS
            .get(first..first + usize::from(self.outputs))
            .unwrap_or_default()
    }

    /// Whether the values that the call stores through its arguments are recorded.
    #[inline]
    pub(crate) fn has_results(&self) -> bool {
        self.outputs > 0
    }

    /// The layout; with `wanted` false, what the call stores through arguments is not recorded.
    pub(crate) fn with_results(mut self, wanted: bool) -> Layout {
        if !wanted {
            (self.outputs, self.results) = (0, 0);
        }
        self
    }

    /// Bytes that a record has for results.
    fn room(&self) -> usize {
        if self.has_results() {
            MASK + usize::from(self.results)
        } else {
            0
        }
    }

    fn operation(&self) -> &'static str {
        let start = self.name as usize;
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
    let mut flags = call_flag::ARGUMENTS;
    if layout.has_results() {
        flags |= call_flag::RESULTS;
    }
    let fixed = size + layout.room();
    // Most calls have no texts; their arguments are copied without a look for any.
    if offsets.is_empty() {
        return call.begin(flags, fixed, |rest| {
            rest[..size].copy_from_slice(arguments);
        });
    }
    // Lengths first: the record is as long as its texts, and cannot grow once it is begun.
    let mut texts: [Option<&[u8]>; Layout::TEXTS] = [None; Layout::TEXTS];
    let mut tail = fixed;
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
                flags |= call_flag::TRUNCATED;
            }
        }
    }
    tail += 4 * offsets.len();
    call.begin(flags, tail, |rest| {
        rest[..size].copy_from_slice(arguments);
        let mut at = fixed;
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

/// Completes the record of a call that returned the status `retval` at `returned`: with what its output arguments point
/// to, if it has succeeded.
///
/// # Safety
///
/// `arguments` is the argument struct of the call that `layout` describes and that `record` began with. Where the status
/// is 0, the call has written to what its output arguments point to, unless they are null.
#[inline]
pub(crate) unsafe fn end(
    record: OpenRecord,
    layout: &Layout,
    arguments: &[u8],
    retval: u64,
    returned: u64,
) {
    // A status has 32 bits.
    let has_results = layout.has_results() && retval as u32 == 0;
    if !has_results || record == OpenRecord::default() {
        return call::end(record, retval, returned);
    }
    let mut bytes = [0; MASK + MOST_RESULTS];
    // SAFETY: as this function demands.
    let bytes = unsafe { results(layout, arguments, &mut bytes) };
    call::end_with(record, retval, returned, arguments.len(), bytes);
}

/// The values of output arguments, in the form of the record.
///
/// # Safety
///
/// The call has succeeded, and the pointers among its arguments may be read, as [`end`] demands.
unsafe fn results<'a>(
    layout: &Layout,
    arguments: &[u8],
    bytes: &'a mut [u8; MASK + MOST_RESULTS],
) -> &'a [u8] {
    let mut found: u32 = 0;
    let mut at = MASK;
    for (index, output) in layout.outputs().iter().enumerate() {
        let (pointer, size) = (usize::from(output.pointer), usize::from(output.size));
        let place = arguments.get(pointer..).and_then(|rest| rest.first_chunk());
        let place = place.map_or(0, |address| usize::from_ne_bytes(*address)) as *const u8;
        if !place.is_null() {
            // SAFETY: as this function demands; the table has the size of what the argument points to, and the room is that
            // of the call with the most results.
            unsafe {
                std::ptr::copy_nonoverlapping(place, bytes[at..at + size].as_mut_ptr(), size)
            };
            found |= 1 << index;
        }
        at += size;
    }
    bytes[..MASK].copy_from_slice(&found.to_le_bytes());
    &bytes[..at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_layouts_of_every_call_are_found_with_their_texts() {
        for expected in rpd_data::layouts().expect("the tables") {
            let found = find(of_kind(expected.kind), expected.operation);
            let found = found.unwrap_or_else(|| panic!("{expected:?}"));
            assert_eq!(u32::from(found.size), expected.size, "{expected:?}");
            let texts = found.texts().iter().map(|&offset| u32::from(offset));
            assert!(texts.eq(expected.texts()), "{expected:?}");
            let outputs = found.outputs().iter();
            let outputs = outputs.map(|output| (output.pointer.into(), output.size.into()));
            assert!(outputs.eq(expected.outputs()), "{expected:?}");
        }
        assert!(find(of_kind("HIP_RUNTIME_API"), "hipFromTheFuture").is_none());
        assert!(of_kind("FROM_THE_FUTURE_API").is_empty());
    }

    #[test]
    fn argument_results_are_the_values_at_output_pointers() {
        let layout = find(of_kind("HIP_RUNTIME_API"), "hipMallocPitch").expect("in the tables");
        let (memory, pitch) = (0x7f34_0000_1000_u64, 512_u64);
        let arguments = |first: *const u64, second: *const u64| {
            let mut bytes = vec![0_u8; layout.size.into()];
            bytes[..8].copy_from_slice(&(first as u64).to_ne_bytes());
            bytes[8..16].copy_from_slice(&(second as u64).to_ne_bytes());
            bytes
        };
        let expected = |mask: u32, first: u64, second: u64| {
            let mut bytes = mask.to_le_bytes().to_vec();
            bytes.extend(first.to_ne_bytes());
            bytes.extend(second.to_ne_bytes());
            bytes
        };
        let none = std::ptr::null();
        for (first, second, bytes) in [
            (
                &raw const memory,
                &raw const pitch,
                expected(3, memory, pitch),
            ),
            (none, &raw const pitch, expected(2, 0, pitch)),
            (none, none, expected(0, 0, 0)),
        ] {
            let mut room = [0; MASK + MOST_RESULTS];
            // SAFETY: the pointers are null, or to variables of that size.
            let found = unsafe { results(layout, &arguments(first, second), &mut room) };
            assert_eq!(found, bytes);
            assert_eq!(found.len(), layout.room());
        }
        assert_eq!(layout.with_results(false).room(), 0);
    }
}
