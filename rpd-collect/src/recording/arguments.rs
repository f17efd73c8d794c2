//! Where the arguments of a call are: a table that the build script makes from the argument tables.

use std::ops::Range;

include!(concat!(env!("OUT_DIR"), "/layouts.rs"));

/// The argument struct of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Where in [`NAMES`] the operation's name begins.
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

/// The layouts of the calls of a kind, which goes by the provider's name, ordered by name; empty for a kind that the
/// tables do not know.
pub(crate) fn of_kind(kind: &str) -> &'static [Layout] {
    KINDS
        .iter()
        .find(|(name, _)| *name == kind)
        .and_then(|(_, range)| LAYOUTS.get(range.clone()))
        .unwrap_or_default()
}

/// The layout of one of the calls of a kind; `None` for operations that the tables do not know (a newer runtime's).
pub(crate) fn find<'a>(layouts: &'a [Layout], operation: &str) -> Option<&'a Layout> {
    layouts
        .binary_search_by_key(&operation, |layout| layout.operation())
        .ok()
        .map(|index| &layouts[index])
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
