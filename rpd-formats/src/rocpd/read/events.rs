//! Events of a database: kind, correlation ids and message of each record.

use std::io;

use rpd_core::ids::{CorrelationId, StringId};
use rpd_core::storage::column::{Column, Storage};
use rpd_core::storage::lookup::{Lookup, Place};
use rpd_core::storage::sorted::Keyed;
use rusqlite::{Result, Row};
use serde::Deserialize;
use zerocopy::{Immutable, IntoBytes};

use super::info::Info;
use super::scan::{Source, bits, bytes, integer, word};

/// The events by position, in files when there are many: there is one for each record.
#[derive(Default)]
pub(super) struct Events {
    /// Ids; empty when they count up from `first` without gaps.
    ids: Column<i64>,
    first: i64,
    category: Column<u32>,
    correlation: Column<u64>,
    ancestor: Column<u64>,
    place: Place,
    /// Messages of those that have one.
    messages: Lookup<Message>,
    /// External correlation ids of those that have one.
    externals: Lookup<External>,
}

/// The message of an event.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct Message {
    event: i64,
    /// [`StringId`], in 64 bits: rows have no padding.
    text: u64,
}

/// The external correlation id of an event.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct External {
    event: i64,
    correlation: CorrelationId,
}

impl Keyed for Message {
    type Key = i64;

    fn key(&self) -> i64 {
        self.event
    }
}

impl Keyed for External {
    type Key = i64;

    fn key(&self) -> i64 {
        self.event
    }
}

/// Events as one thread reads them.
#[derive(Default)]
struct EventPiece {
    ids: Vec<i64>,
    category: Vec<u32>,
    correlation: Vec<u64>,
    ancestor: Vec<u64>,
    /// Messages, one after the other.
    texts: String,
    /// Events that have a message, and where it ends in `texts`.
    messages: Vec<(i64, usize)>,
    externals: Vec<External>,
}

#[derive(Deserialize)]
struct Extdata {
    message: Option<String>,
}

impl EventPiece {
    /// Adds an event. Returns the bytes of its message.
    fn add(&mut self, row: &Row<'_>) -> usize {
        let before = self.texts.len();
        let id = integer(row, 0);
        self.ids.push(id);
        self.category.push(word(row, 1));
        self.correlation.push(bits(row, 2));
        self.ancestor.push(bits(row, 3));
        let correlation = CorrelationId(bits(row, 4));
        if correlation.0 != 0 {
            self.externals.push(External {
                event: id,
                correlation,
            });
        }
        let extdata = bytes(row, 5);
        if extdata.len() > 2
            && let Ok(Extdata {
                message: Some(message),
            }) = serde_json::from_str(&String::from_utf8_lossy(extdata))
        {
            self.texts.push_str(&message);
            self.messages.push((id, self.texts.len()));
        }
        self.texts.len() - before
    }
}

impl Events {
    pub(super) fn read(source: &Source<'_>, info: &mut Info, storage: &Storage) -> Result<Events> {
        let columns = "id, category_id, stack_id, parent_stack_id, correlation_id, extdata";
        let mut events = Events::default();
        source.pieces_with_texts(columns, "rocpd_event", EventPiece::add, |piece| {
            source.stored(events.append(piece, info, storage))
        })?;
        source.stored(events.seal(storage))?;
        Ok(events)
    }

    fn append(&mut self, piece: EventPiece, info: &mut Info, storage: &Storage) -> io::Result<()> {
        self.append_ids(&piece.ids, storage)?;
        for category in piece.category {
            self.category.append(Some(storage), category)?;
        }
        for correlation in piece.correlation {
            self.correlation.append(Some(storage), correlation)?;
        }
        for ancestor in piece.ancestor {
            self.ancestor.append(Some(storage), ancestor)?;
        }
        for external in piece.externals {
            self.externals.push(Some(storage), external)?;
        }
        let mut begin = 0;
        for (event, end) in piece.messages {
            let text = info.session.strings.intern(&piece.texts[begin..end]);
            let text = text.0.into();
            self.messages.push(Some(storage), Message { event, text })?;
            begin = end;
        }
        Ok(())
    }

    /// Stores the ids of events after those in `correlation`, unless all of them count up.
    fn append_ids(&mut self, ids: &[i64], storage: &Storage) -> io::Result<()> {
        let before = self.correlation.total();
        if before == 0
            && let Some(&first) = ids.first()
        {
            self.first = first;
        }
        if self.ids.total() == 0 {
            let expected = |index: usize| self.first.checked_add_unsigned((before + index) as u64);
            let mut numbered = ids.iter().enumerate();
            if numbered.all(|(index, id)| Some(*id) == expected(index)) {
                return Ok(());
            }
            for index in 0..before as u64 {
                let id = self.first.wrapping_add_unsigned(index);
                self.ids.append(Some(storage), id)?;
            }
        }
        for &id in ids {
            self.ids.append(Some(storage), id)?;
        }
        Ok(())
    }

    fn seal(&mut self, storage: &Storage) -> io::Result<()> {
        self.ids.seal(storage)?;
        self.category.seal(storage)?;
        self.correlation.seal(storage)?;
        self.ancestor.seal(storage)?;
        self.messages.seal(Some(storage))?;
        self.externals.seal(Some(storage))
    }

    #[inline]
    fn find(&self, id: i64) -> Option<usize> {
        if self.place.is_due() {
            self.ids.release();
            self.category.release();
            self.correlation.release();
            self.ancestor.release();
        }
        let index = if self.ids.is_empty() {
            let index = usize::try_from(id.checked_sub(self.first)?).ok()?;
            self.place.visit(index);
            index
        } else {
            let ids: &[i64] = &self.ids;
            self.place.find(ids.len(), |index| ids[index].cmp(&id))?
        };
        (index < self.correlation.len()).then_some(index)
    }

    /// Category, correlation id, that of the enclosing call.
    #[inline]
    pub(super) fn get(&self, id: i64) -> (u32, CorrelationId, CorrelationId) {
        match self.find(id) {
            Some(index) => (
                self.category[index],
                CorrelationId(self.correlation[index]),
                CorrelationId(self.ancestor[index]),
            ),
            None => Default::default(),
        }
    }

    pub(super) fn message(&self, id: i64) -> StringId {
        let found = self.messages.find(id);
        StringId(found.map_or(0, |message| message.text as u32))
    }

    pub(super) fn external(&self, id: i64) -> CorrelationId {
        let found = self.externals.find(id);
        found.map_or(CorrelationId(0), |external| external.correlation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_whether_or_not_their_ids_have_gaps() {
        let directory = tempfile::tempdir().expect("a directory");
        let storage = Storage::new(directory.path()).with_rows(2);
        let mut info = Info::default();
        for (pieces, is_dense) in [
            (&[&[3, 4][..], &[], &[5]][..], true),
            (&[&[3, 4], &[6]], false),
            (&[&[3, 7], &[8, 9]], false),
            (&[&[-4, -3, -2]], true),
        ] {
            let mut events = Events::default();
            for ids in pieces {
                let piece = EventPiece {
                    ids: ids.to_vec(),
                    category: vec![1; ids.len()],
                    correlation: ids.iter().map(|id| (100 + id).cast_unsigned()).collect(),
                    ancestor: vec![0; ids.len()],
                    ..EventPiece::default()
                };
                events.append(piece, &mut info, &storage).expect("written");
            }
            events.seal(&storage).expect("mapped");
            assert_eq!(events.ids.is_empty(), is_dense, "{pieces:?}");
            let ids: Vec<i64> = pieces.concat();
            for id in (-10..20).chain([i64::MIN, i64::MAX]) {
                let expected = if ids.contains(&id) {
                    CorrelationId((100 + id).cast_unsigned())
                } else {
                    CorrelationId(0)
                };
                assert_eq!(events.get(id).1, expected, "{id} in {pieces:?}");
            }
        }
    }
}
