//! Code objects: their fields, and whether the object at an address is still the one that was there at the last capture.

use super::layout::Layout;
use super::memory::{Memory, plausible};
use super::runtime::Runtime;
use crate::facts::PythonCode;
use crate::region::Region;

/// Bytes of one text that are kept; what is longer ends with a mark.
const LONGEST_TEXT: usize = 16 << 10;
/// Bytes of a line table that are kept; a longer one is left out.
const LONGEST_TABLE: usize = 4 << 20;
/// Stands at the end of a text that was cut.
const CUT: &str = "…";

/// Room for texts that have to be converted.
pub(super) struct Scratch {
    bytes: Region<u8>,
    used: usize,
}

impl Scratch {
    pub(super) fn reserve() -> Scratch {
        Scratch {
            bytes: Region::reserve(4 * (LONGEST_TEXT + 8)),
            used: 0,
        }
    }

    pub(super) fn usable(&self) -> bool {
        !self.bytes.is_empty()
    }
}

/// The content of a code object, as it lies in the interpreter's memory where it can be used as it is.
pub(super) struct Content<'a> {
    file: &'a [u8],
    name: &'a [u8],
    qualname: &'a [u8],
    first_line: i32,
    line_table: &'a [u8],
}

impl<'a> Content<'a> {
    /// Reads the code object at `code`.
    ///
    /// # Safety
    ///
    /// `code` is a code object that stays alive during `'a`.
    pub(super) unsafe fn read<M: Memory>(
        memory: &M,
        runtime: &Runtime,
        layout: &Layout,
        code: usize,
        scratch: &'a mut Scratch,
    ) -> Option<Content<'a>> {
        if !plausible(code) || memory.word(code + layout.object_type)? != runtime.code_type {
            return None;
        }
        scratch.used = 0;
        let field = |offset| memory.word(code + offset);
        let mut text = |offset| {
            // SAFETY: the code object owns the text.
            unsafe { text(memory, runtime, layout, field(offset)?, scratch) }
        };
        let file = text(layout.code_file)?;
        let name = text(layout.code_name)?;
        let qualname = match layout.code_qualname {
            0 => Text::Here(&[]),
            offset => text(offset)?,
        };
        let table = field(layout.code_line_table)?;
        // SAFETY: the code object owns the table.
        let line_table = unsafe { bytes(memory, runtime, layout, table)? };
        let first_line = memory.half(code + layout.code_first_line)? as i32;
        let converted: &'a [u8] = &scratch.bytes;
        let resolve = |text| match text {
            Text::Here(text) => text,
            Text::Converted(from, to) => &converted[from..to],
        };
        Some(Content {
            file: resolve(file),
            name: resolve(name),
            qualname: resolve(qualname),
            first_line,
            line_table,
        })
    }

    /// Content from texts that the interpreter's public interface gave; the line is computed per frame.
    pub(super) fn from_texts(
        file: &'a [u8],
        name: &'a [u8],
        qualname: &'a [u8],
        first_line: i32,
    ) -> Content<'a> {
        Content {
            file: cut(file),
            name: cut(name),
            qualname: cut(qualname),
            first_line,
            line_table: &[],
        }
    }

    /// A number that only equal contents have.
    pub(super) fn key(&self, version: u32) -> [u64; 2] {
        let mut low = Mix::new(1);
        let mut high = Mix::new(2);
        for mix in [&mut low, &mut high] {
            for part in [self.file, self.name, self.qualname, self.line_table] {
                mix.word(part.len() as u64);
                mix.bytes(part);
            }
            mix.word(u64::from(self.first_line as u32) << 32 | u64::from(version));
        }
        [low.finish(), high.finish()]
    }

    /// The fact for the sink.
    pub(super) fn fact(&self, id: u32, version: u32) -> PythonCode<'_> {
        PythonCode {
            id,
            file: self.file,
            name: self.name,
            qualname: self.qualname,
            first_line: self.first_line,
            version,
            line_table: self.line_table,
        }
    }
}

enum Text<'a> {
    Here(&'a [u8]),
    Converted(usize, usize),
}

/// The beginning of a text, at most [`LONGEST_TEXT`] bytes, cut between characters.
fn cut(text: &[u8]) -> &[u8] {
    let mut end = text.len().min(LONGEST_TEXT);
    while end < text.len() && end > 0 && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &text[..end]
}

/// The UTF-8 form of a `str`.
///
/// # Safety
///
/// The object stays alive during `'a`.
unsafe fn text<'a, M: Memory>(
    memory: &M,
    runtime: &Runtime,
    layout: &Layout,
    object: usize,
    scratch: &mut Scratch,
) -> Option<Text<'a>> {
    if !plausible(object) || memory.word(object + layout.object_type)? != runtime.text_type {
        return None;
    }
    let length = memory.word(object + layout.text_length)?;
    let state = memory.half(object + layout.text_state)? >> layout.text_kind_shift;
    let (kind, compact, ascii) = (state & 7, state & 8 != 0, state & 16 != 0);
    if length > 1 << 30 || !matches!(kind, 1 | 2 | 4) {
        return None;
    }
    let data = match (compact, ascii) {
        (true, true) => object + layout.text_ascii,
        (true, false) => object + layout.text_compact,
        (false, _) => memory.word(object + layout.text_compact)?,
    };
    if ascii && length <= LONGEST_TEXT {
        // SAFETY: the characters of an ASCII text are its bytes, and stay as long as the object.
        return Some(Text::Here(unsafe {
            std::slice::from_raw_parts(data as *const u8, length)
        }));
    }
    let begin = scratch.used;
    for index in 0..length {
        if scratch.used - begin >= LONGEST_TEXT {
            append(scratch, CUT)?;
            break;
        }
        // SAFETY: `length` characters of `kind` bytes lie at `data`.
        let character = unsafe {
            match kind {
                1 => u32::from(*(data as *const u8).add(index)),
                2 => u32::from(*(data as *const u16).add(index)),
                _ => *(data as *const u32).add(index),
            }
        };
        // A lone surrogate stands for a byte of a file name that is not UTF-8.
        let character = char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER);
        append(scratch, character.encode_utf8(&mut [0; 4]))?;
    }
    Some(Text::Converted(begin, scratch.used))
}

fn append(scratch: &mut Scratch, text: &str) -> Option<()> {
    let end = scratch.used + text.len();
    scratch
        .bytes
        .get_mut(scratch.used..end)?
        .copy_from_slice(text.as_bytes());
    scratch.used = end;
    Some(())
}

/// The bytes of a `bytes` object.
///
/// # Safety
///
/// The object stays alive during `'a`.
unsafe fn bytes<'a, M: Memory>(
    memory: &M,
    runtime: &Runtime,
    layout: &Layout,
    object: usize,
) -> Option<&'a [u8]> {
    if !plausible(object) || memory.word(object + layout.object_type)? != runtime.bytes_type {
        return None;
    }
    let length = memory.word(object + layout.bytes_length)?;
    if length > LONGEST_TABLE {
        return Some(&[]);
    }
    // SAFETY: `length` bytes lie there, and stay as long as the object.
    Some(unsafe { std::slice::from_raw_parts((object + layout.bytes_data) as *const u8, length) })
}

/// Recognises whether the code object at an address is the one that was there before.
pub(super) struct Identities {
    /// The file name that was hashed last: code objects of one stack share few.
    file: (usize, u64),
    last: (usize, u64),
}

impl Identities {
    #[inline(always)]
    pub(super) fn new() -> Identities {
        Identities {
            file: (0, 0),
            last: (0, 0),
        }
    }

    /// A number that differs between two code objects that were at `code` at different times and differ in content.
    #[inline(always)]
    pub(super) fn of<M: Memory>(
        &mut self,
        memory: &M,
        layout: &Layout,
        code: usize,
    ) -> Option<u64> {
        if layout.code_version != 0 {
            // Given once to each code object, until the interpreter runs out of numbers.
            let version = memory.half(code + layout.code_version)?;
            if version != 0 {
                // Interpreters of one process count separately.
                let table = memory.word(code + layout.code_line_table)? as u64;
                return Some(u64::from(version) | table << 32 & !(1 << 63));
            }
        }
        if self.last.0 != code {
            self.last = (code, self.of_content(memory, layout, code)?);
        }
        Some(self.last.1)
    }

    /// Identity from all that is ever shown of a code object, and from the addresses of its parts.
    fn of_content<M: Memory>(&mut self, memory: &M, layout: &Layout, code: usize) -> Option<u64> {
        let code = memory.object(code)?;
        let file = code.word(layout.code_file)?;
        // Frames of one stack mostly share a file, whose name is long.
        if self.file.0 != file {
            self.file = (file, characters(memory, layout, file)?);
        }
        let name = code.word(layout.code_name)?;
        let name_hash = hash_of(memory, layout, name)?;
        let (qualname, qualname_hash) = match layout.code_qualname {
            0 => (0, 0),
            // Functions outside classes have one object for both names.
            offset => match code.word(offset)? {
                qualname if qualname == name => (name, name_hash),
                qualname => (qualname, hash_of(memory, layout, qualname)?),
            },
        };
        let address = code.word(layout.code_line_table)?;
        let table = memory.object(address)?;
        let length = table.word(layout.bytes_length)?;
        let first_line = code.half(layout.code_first_line)?;
        let fields = [
            self.file.1,
            first_line.into(),
            name as u64,
            name_hash,
            qualname as u64,
            qualname_hash,
            address as u64,
            length as u64,
        ];
        // A table beyond the limit is not recorded either, so that it need not tell objects apart.
        let content = if length <= LONGEST_TABLE {
            // SAFETY: the code object at `code` is alive and owns the table.
            unsafe {
                std::slice::from_raw_parts((address + layout.bytes_data) as *const u8, length)
            }
        } else {
            &[]
        };
        let mut mix = Mix::new(3);
        mix.fields_and_bytes(fields, content);
        // The top bit tells an identity of content from one that is the interpreter's own version number.
        Some(mix.finish() | 1 << 63)
    }
}

/// The hash that the interpreter keeps of a text; names have one. Hashed here if it has none yet.
fn hash_of<M: Memory>(memory: &M, layout: &Layout, object: usize) -> Option<u64> {
    if !plausible(object) {
        return None;
    }
    match memory.word(object + layout.text_hash)? {
        usize::MAX => characters(memory, layout, object),
        hash => Some(hash as u64),
    }
}

/// A hash of the characters of a text.
fn characters<M: Memory>(memory: &M, layout: &Layout, object: usize) -> Option<u64> {
    if !plausible(object) {
        return None;
    }
    let length = memory.word(object + layout.text_length)?;
    let state = memory.half(object + layout.text_state)? >> layout.text_kind_shift;
    let data = match (state & 8 != 0, state & 16 != 0) {
        (true, true) => object + layout.text_ascii,
        (true, false) => object + layout.text_compact,
        (false, _) => memory.word(object + layout.text_compact)?,
    };
    let size = length * (state & 7) as usize;
    if size > 1 << 30 {
        return None;
    }
    let mut mix = Mix::new(4);
    mix.word(length as u64);
    // SAFETY: the text at `object` is alive, and has `length` characters of this size.
    mix.bytes(unsafe { std::slice::from_raw_parts(data as *const u8, size) });
    Some(mix.finish())
}

/// Words of a code object that are hashed beside its line table.
const FIELDS: usize = 8;
/// Numbers without a pattern, added to words before they are multiplied; the first are for fields.
const FACTORS: [u64; FIELDS + 64] = {
    let mut factors = [0; FIELDS + 64];
    let mut state = 0x243f_6a88_85a3_08d3_u64;
    let mut index = 0;
    while index < factors.len() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        factors[index] = mixed ^ mixed >> 31;
        index += 1;
    }
    factors
};

/// A hash of 64 bits, by multiplication of words to 128 bits.
struct Mix(u64);

impl Mix {
    #[inline(always)]
    fn new(seed: u64) -> Mix {
        Mix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    #[inline(always)]
    fn word(&mut self, word: u64) {
        let product =
            u128::from(self.0 ^ 0xa076_1d64_78bd_642f) * u128::from(word ^ 0xe703_7ed1_a0b4_28db);
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(word.rotate_left(23));
    }

    /// Appends bytes to the hash. The caller appends their length.
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        self.fields_and_bytes([0; FIELDS], bytes);
    }

    /// Words, and bytes whose length is among the words. Products of pairs of words are added up, which do not wait for one
    /// another: of two contents that differ the sums are equal with a probability of 2^-64.
    #[inline(always)]
    fn fields_and_bytes(&mut self, fields: [u64; FIELDS], bytes: &[u8]) {
        let product = |words: &[u64; 2], factors: &[u64; 2]| {
            let factor = |index: usize| u128::from(words[index].wrapping_add(factors[index]));
            factor(0) * factor(1)
        };
        let words = |bytes: &[u8; 16]| {
            let (words, _) = bytes.as_chunks::<8>();
            [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
        };
        let (of_fields, of_bytes) = FACTORS.split_at(FIELDS);
        let mut sum = 0u128;
        for (pair, factors) in fields.as_chunks().0.iter().zip(of_fields.as_chunks().0) {
            sum = sum.wrapping_add(product(pair, factors));
        }
        let (first, further) = bytes.split_at(bytes.len().min(8 * of_bytes.len()));
        for block in std::iter::once(first).chain(further.chunks(8 * of_bytes.len())) {
            let (pairs, rest) = block.as_chunks();
            let mut factors = of_bytes.as_chunks().0.iter();
            for (pair, factors) in pairs.iter().zip(factors.by_ref()) {
                sum = sum.wrapping_add(product(&words(pair), factors));
            }
            if let (false, Some(factors)) = (rest.is_empty(), factors.next()) {
                // Bytes are read twice rather than copied: the length distinguishes contents whose words are equal.
                let last = block.last_chunk().map_or_else(|| few(rest), words);
                sum = sum.wrapping_add(product(&last, factors));
            }
            self.word(sum as u64);
            self.word((sum >> 64) as u64);
            sum = 0;
        }
    }

    #[inline(always)]
    fn finish(mut self) -> u64 {
        self.word(0x8ebc_6af0_9c88_c6e3);
        self.0
    }
}

/// Less than 16 bytes as words, of which only equal bytes of one length have equal ones.
#[inline(always)]
fn few(bytes: &[u8]) -> [u64; 2] {
    let byte = |index: usize| bytes.get(index).copied().map_or(0, u64::from);
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => [u64::from_le_bytes(*first), u64::from_le_bytes(*last)],
        _ => match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => [
                u32::from_le_bytes(*first).into(),
                u32::from_le_bytes(*last).into(),
            ],
            _ => [byte(0) | byte(1) << 8 | byte(2) << 16, 0],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_gives_texts_that_differ_in_one_byte_different_hashes() {
        let hash = |bytes: &[u8]| {
            let mut mix = Mix::new(bytes.len() as u64);
            mix.bytes(bytes);
            mix.finish()
        };
        let mut found = std::collections::HashSet::new();
        let mut count = 0;
        for length in (0..40).chain([511, 512, 513, 527, 528, 1040]) {
            let base = vec![7; length];
            count += usize::from(found.insert(hash(&base)));
            for place in 0..length {
                let mut other = base.clone();
                other[place] = 0;
                assert!(found.insert(hash(&other)), "byte {place} of {length}");
                count += 1;
            }
            // Blocks are not interchangeable.
            if length > 1024 {
                let swapped = [&[vec![1; 512], vec![2; 512]].concat()[..], &base[1024..]].concat();
                let other = [&[vec![2; 512], vec![1; 512]].concat()[..], &base[1024..]].concat();
                assert_ne!(hash(&swapped), hash(&other));
            }
        }
        assert_eq!(found.len(), count);
    }

    #[test]
    fn code_content_that_differs_in_one_part_has_another_key() {
        let base = Content::from_texts(b"file.py", b"name", b"C.name", 3);
        let key = base.key(0x030b_07f0);
        for other in [
            Content::from_texts(b"file.p", b"yname", b"C.name", 3),
            Content::from_texts(b"file.py", b"nama", b"C.name", 3),
            Content::from_texts(b"file.py", b"name", b"C.nam", 3),
            Content::from_texts(b"file.py", b"name", b"C.name", 4),
            Content {
                line_table: b"\0",
                ..Content::from_texts(b"file.py", b"name", b"C.name", 3)
            },
        ] {
            let other = other.key(0x030b_07f0);
            assert!(other[0] != key[0] && other[1] != key[1]);
        }
        assert_ne!(base.key(0x030c_07f0), key);
        assert_eq!(base.key(0x030b_07f0), key);
    }

    #[test]
    fn cut_ends_long_texts_between_characters() {
        let text = "é".repeat(LONGEST_TEXT);
        let cut = cut(text.as_bytes());
        assert!(cut.len() <= LONGEST_TEXT && std::str::from_utf8(cut).is_ok());
    }
}
