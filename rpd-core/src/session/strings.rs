//! Interned texts. They are moved to files when there are many.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;

use crate::ids::StringId;
use crate::storage::by_id::{ById, Windows};
use crate::storage::column::{BATCH, Column, Storage};
use crate::storage::growing::Growing;

/// Bytes that [`limit`] allows for each row that a table may have in memory: 32 MiB with the default number of rows.
const BYTES_PER_ROW: usize = 128;

/// Number of slots that are copied to a longer hash table before the memory of both is given back.
const MOVED: usize = 256;

/// Interned texts. Each text is stored once and has one id; id 0 is the empty string.
///
/// The texts are in memory. When there are many and [`Strings::spill_to`] was called, they are in files.
#[derive(Debug, Default)]
pub struct Strings {
    /// All texts, concatenated.
    bytes: Growing<u8>,
    /// End of each text in `bytes`, by id.
    ends: Growing<u64>,
    /// A hash table with linear probing, at most half full. A slot holds the id plus 1 in the lower half and the hash
    /// in the upper half, or 0 when it is free. The number of slots is a power of two.
    slots: Growing<u64>,
    hasher: RandomState,
    storage: Option<Storage>,
    /// Mapped parts of `bytes` and `slots` that were used since their memory was given back.
    windows: Windows,
}

impl Strings {
    /// A table with the empty string only.
    pub fn new() -> Strings {
        let mut strings = Strings::default();
        strings.intern("");
        strings
    }

    /// Many texts will be written to files in `storage`. If that fails they stay in memory.
    pub fn spill_to(&mut self, storage: &Storage) {
        self.storage = Some(storage.clone());
    }

    /// Whether texts are in files.
    pub fn is_spilled(&self) -> bool {
        self.bytes.is_in_file()
    }

    /// The id of `text`. The text is added if it is new.
    pub fn intern(&mut self, text: &str) -> StringId {
        let hash = self.hash(text);
        match self.position(hash, text) {
            Ok(id) => id,
            Err(_) => self.insert(hash, text),
        }
    }

    /// The id of `text`; `None` when it was not interned.
    pub fn find(&self, text: &str) -> Option<StringId> {
        self.position(self.hash(text), text).ok()
    }

    fn hash(&self, text: &str) -> u32 {
        self.hasher.hash_one(text) as u32
    }

    /// The id of the text with this hash, or the slot where it belongs.
    fn position(&self, hash: u32, text: &str) -> Result<StringId, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        if self.slots.is_in_file() {
            self.visit(place * size_of::<u64>());
        }
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                return Err(place);
            }
            let id = StringId(slot as u32 - 1);
            if (slot >> 32) as u32 == hash && self.get(id) == text {
                return Ok(id);
            }
            place = (place + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, hash: u32, text: &str) -> StringId {
        if 2 * (self.len() + 1) > self.slots.len() {
            self.double_slots();
        }
        let Err(place) = self.position(hash, text) else {
            unreachable!("the text is new");
        };
        let id = u32::try_from(self.len()).unwrap_or(u32::MAX - 1);
        self.slots[place] = u64::from(hash) << 32 | u64::from(id + 1);
        self.visit(self.bytes.len());
        self.bytes.append(text.as_bytes());
        self.ends.append(&[self.bytes.len() as u64]);
        self.spill_if_long();
        StringId(id)
    }

    /// Doubles the number of slots.
    fn double_slots(&mut self) {
        const FEWEST: usize = 64;
        let len = FEWEST.max(2 * self.slots.len());
        let is_long = |storage: &&Storage| 2 * len * size_of::<u64>() >= limit(storage);
        let storage = self.storage.as_ref().filter(is_long);
        let mut slots = storage
            .and_then(|storage| Growing::zeros_in_file(len, storage).ok())
            .unwrap_or_else(|| Growing::zeros(len));
        for (place, &slot) in self.slots.iter().enumerate() {
            if slot == 0 {
                continue;
            }
            let mut new = (slot >> 32) as usize & (len - 1);
            while slots[new] != 0 {
                new = (new + 1) & (len - 1);
            }
            slots[new] = slot;
            if place.is_multiple_of(MOVED) {
                slots.release();
                self.slots.release();
            }
        }
        self.slots = slots;
    }

    /// Moves the texts to files when they are longer than [`limit`].
    fn spill_if_long(&mut self) {
        let Some(storage) = self.storage.as_ref().filter(|_| !self.is_spilled()) else {
            return;
        };
        let bytes = self.bytes.len() + size_of::<u64>() * (self.ends.len() + self.slots.len());
        if bytes < limit(storage) {
            return;
        }
        let moved = self.ends.move_to_file(storage);
        if moved
            .and_then(|()| self.bytes.move_to_file(storage))
            .is_err()
        {
            self.ends.move_to_memory();
            self.storage = None;
        }
    }

    /// The text with this id; empty for an id that no text has.
    pub fn get(&self, id: StringId) -> &str {
        let id = id.0 as usize;
        let Some(&end) = self.ends.get(id) else {
            return "";
        };
        let begin = match id {
            0 => 0,
            _ => self.ends[id - 1] as usize,
        };
        self.visit(begin);
        // SAFETY: these bytes were appended as one text.
        unsafe { std::str::from_utf8_unchecked(&self.bytes[begin..end as usize]) }
    }

    /// Gives back the memory of files after much of it was used.
    #[inline]
    fn visit(&self, place: usize) {
        if self.is_spilled() && self.windows.are_full(place) {
            self.bytes.release();
            self.ends.release();
            self.slots.release();
        }
    }

    /// Number of texts, including the empty one.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no texts other than the empty one.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// All texts in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|id| self.get(StringId(id)))
    }
}

/// Interned texts in addition to those of a session. The texts of the session keep their ids; the ids of the others
/// follow.
#[derive(Debug, Default)]
pub struct ExtendedStrings<'a> {
    strings: Option<&'a Strings>,
    more: Strings,
}

impl<'a> ExtendedStrings<'a> {
    /// Begins with the texts of a session.
    pub fn new(strings: &'a Strings) -> ExtendedStrings<'a> {
        ExtendedStrings {
            strings: Some(strings),
            more: Strings::default(),
        }
    }

    /// Many additional texts will be written to files in `storage`. If that fails they stay in memory.
    pub fn spill_to(&mut self, storage: &Storage) {
        self.more.spill_to(storage);
    }

    /// Id of the first additional text, which is the number of texts of the session.
    fn first_own(&self) -> u32 {
        self.strings.map_or(0, Strings::len) as u32
    }

    /// The id of `text`. The text is added if it is new.
    pub fn intern(&mut self, text: &str) -> StringId {
        let known = self.strings.and_then(|strings| strings.find(text));
        known.unwrap_or_else(|| StringId(self.more.intern(text).0 + self.first_own()))
    }

    /// The id of `text`; `None` when there is no such text.
    pub fn find(&self, text: &str) -> Option<StringId> {
        let known = self.strings.and_then(|strings| strings.find(text));
        known.or_else(|| Some(StringId(self.more.find(text)?.0 + self.first_own())))
    }

    /// The text with this id; empty for an id that no text has.
    pub fn get(&self, id: StringId) -> &str {
        match (id.0.checked_sub(self.first_own()), self.strings) {
            (None, Some(strings)) => strings.get(id),
            (own, _) => self.more.get(StringId(own.unwrap_or(id.0))),
        }
    }

    /// Number of texts, those of the session included.
    pub fn len(&self) -> usize {
        self.first_own() as usize + self.more.len()
    }

    /// Whether there are no texts at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All texts in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|id| self.get(StringId(id)))
    }

    /// All ids, sorted by the bytes of their texts.
    ///
    /// # Errors
    /// When there are many texts and the sorted ids cannot be stored.
    pub fn in_order(&self) -> io::Result<Column<StringId>> {
        self.sorted((0..self.len() as u32).map(StringId))
    }

    /// For each id, the position of its text when the texts of `ids` are sorted by their bytes; 0 for texts that are
    /// not among `ids`.
    ///
    /// # Errors
    /// As [`ExtendedStrings::in_order`].
    pub fn places(&self, ids: impl IntoIterator<Item = StringId>) -> io::Result<ById<u32>> {
        let sorted = self.sorted(ids)?;
        let mut places = ById::zeros(self.len(), self.storage());
        for (place, id) in (0..).zip(&sorted) {
            if let Some(of_id) = places.get_mut(id.0) {
                *of_id = place;
            }
        }
        Ok(places)
    }

    /// Storage of columns with an entry for each text; `None` keeps them in memory.
    pub fn storage(&self) -> Option<&Storage> {
        let own = self.more.storage.as_ref();
        own.or(self.strings.and_then(|strings| strings.storage.as_ref()))
    }

    /// Sorts ids by the bytes of their texts. Texts in files are sorted in parts, which are merged: each text is then
    /// read a few times, mostly next to the one read before.
    fn sorted(&self, ids: impl IntoIterator<Item = StringId>) -> io::Result<Column<StringId>> {
        let is_spilled = self.strings.is_some_and(Strings::is_spilled) || self.more.is_spilled();
        let storage = self.storage().filter(|_| is_spilled);
        let mut ids = ids.into_iter();
        let mut sorted = Column::new();
        // Index of the first id of each part.
        let mut parts = Vec::new();
        loop {
            let taken = ids
                .by_ref()
                // Parts of limited length are sorted in memory and merged from files: the ids of a long run do not fit.
                .take(storage.map_or(usize::MAX, |storage| storage.rows().min(PART)));
            let mut part: Vec<StringId> = taken.collect();
            if part.is_empty() {
                break;
            }
            part.sort_by(|a, b| self.get(*a).cmp(self.get(*b)));
            parts.push(sorted.total());
            for id in part {
                sorted.append(storage, id)?;
            }
        }
        let Some(storage) = storage else {
            return Ok(sorted);
        };
        sorted.seal(storage)?;
        while parts.len() > 1 {
            let mut merged = Column::new();
            let mut of_merged = Vec::new();
            // So many parts at once that a page of each fits in memory; several rounds where there are more.
            for (number, begins) in parts.chunks(MERGED).enumerate() {
                of_merged.push(merged.total());
                let next = parts.get((number + 1) * MERGED);
                let end = next.copied().unwrap_or(sorted.len());
                self.merge(&sorted, begins, end, |id| merged.append(Some(storage), id))?;
            }
            merged.seal(storage)?;
            (sorted, parts) = (merged, of_merged);
        }
        Ok(sorted)
    }

    /// Passes the ids of consecutive sorted parts to `take`, in sorted order.
    fn merge(
        &self,
        ids: &Column<StringId>,
        begins: &[usize],
        end: usize,
        mut take: impl FnMut(StringId) -> io::Result<()>,
    ) -> io::Result<()> {
        let ends = begins.iter().skip(1).copied().chain([end]);
        let mut rest: Vec<_> = begins
            .iter()
            .zip(ends)
            .map(|(begin, end)| *begin..end)
            .collect();
        let first = |rest: &mut std::ops::Range<usize>, part: usize| {
            let id = ids[rest.next()?];
            Some(Reverse((self.get(id).to_owned(), part, id)))
        };
        let mut heads: BinaryHeap<_> = (0..)
            .zip(&mut rest)
            .filter_map(|(part, rest)| first(rest, part))
            .collect();
        let mut taken = 0_usize;
        while let Some(Reverse((_, part, id))) = heads.pop() {
            take(id)?;
            heads.extend(first(&mut rest[part], part));
            taken += 1;
            if taken.is_multiple_of(BATCH) {
                ids.release();
            }
        }
        Ok(())
    }
}

/// Number of texts in a part that is sorted at once, for texts in files.
const PART: usize = 1 << 14;

/// Number of parts that are merged at once. One text of each is in memory.
const MERGED: usize = 256;

/// Size in bytes up to which texts and their hash table are kept in memory.
fn limit(storage: &Storage) -> usize {
    BYTES_PER_ROW.saturating_mul(storage.rows())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids do not depend on where texts are, and nothing is lost when they move.
    #[test]
    fn strings_give_each_text_one_id() {
        let directory = tempfile::tempdir().expect("a directory");
        // 2 KiB of texts in memory.
        let storage = Storage::new(directory.path()).with_rows(16);
        let text = |number: u32| "x".repeat((number % 50) as usize) + &number.to_string();
        for storage in [None, Some(&storage)] {
            let mut strings = Strings::new();
            if let Some(storage) = storage {
                strings.spill_to(storage);
            }
            for round in 0..2 {
                for number in 0..20_000 {
                    let id = strings.intern(&text(number));
                    assert_eq!(id, StringId(number + 1), "round {round}");
                }
            }
            assert_eq!(strings.is_spilled(), storage.is_some());
            assert_eq!(strings.len(), 20_001);
            assert_eq!(strings.intern(""), StringId(0));
            for (number, kept) in (0..).zip(strings.iter().skip(1)) {
                assert_eq!(kept, text(number));
            }
            assert_eq!(strings.find(&text(777)), Some(StringId(778)));
            assert_eq!(strings.find("another"), None);
            assert_eq!(strings.get(StringId(20_001)), "");

            let mut extended = ExtendedStrings::new(&strings);
            assert_eq!(extended.intern(&text(777)), StringId(778));
            assert_eq!(extended.intern("another"), StringId(20_001));
            assert_eq!(extended.find("another"), Some(StringId(20_001)));
            assert_eq!(extended.get(StringId(20_001)), "another");
            assert_eq!(extended.iter().last(), Some("another"));
            let ids = ["b", "a"].map(|text| extended.intern(text));
            let places = extended.places(ids).expect("in order");
            assert_eq!([20_002, 20_003].map(|id| places.get(id)), [1, 0]);
            let sorted = extended.in_order().expect("in order");
            assert_eq!(sorted.len(), 20_004);
            let texts = sorted.iter().map(|id| extended.get(*id));
            assert!(texts.is_sorted_by(|a, b| a < b));
        }
    }
}
