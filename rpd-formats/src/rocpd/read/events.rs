//! Events of a database: what each record says of its kind, its correlation ids and its message.

use std::collections::HashMap;

use rpd_core::ids::{CorrelationId, StringId};
use rusqlite::{Result, Row};
use serde::Deserialize;

use super::info::Info;
use super::scan::{Source, bits, bytes, integer, word};

/// The events by position. Columns, and little per event: there is one for each record.
#[derive(Default)]
pub(super) struct Events {
    /// Ids; empty when they count up from `first` without gaps.
    ids: Vec<i64>,
    first: i64,
    category: Vec<u32>,
    correlation: Vec<u64>,
    ancestor: Vec<u64>,
    /// Messages of those that have one, ordered by event.
    messages: Vec<(i64, StringId)>,
    /// External correlation ids of those that have one, ordered by event.
    externals: Vec<(i64, u64)>,
}

/// Events as one thread reads them.
#[derive(Default)]
struct EventPiece {
    ids: Vec<i64>,
    category: Vec<u32>,
    correlation: Vec<u64>,
    ancestor: Vec<u64>,
    texts: HashMap<Box<str>, u32>,
    messages: Vec<(i64, u32)>,
    externals: Vec<(i64, u64)>,
}

#[derive(Deserialize)]
struct Extdata {
    message: Option<String>,
}

impl EventPiece {
    fn add(&mut self, row: &Row<'_>) {
        let id = integer(row, 0);
        self.ids.push(id);
        self.category.push(word(row, 1));
        self.correlation.push(bits(row, 2));
        self.ancestor.push(bits(row, 3));
        let external = bits(row, 4);
        if external != 0 {
            self.externals.push((id, external));
        }
        let extdata = bytes(row, 5);
        if extdata.len() > 2
            && let Ok(Extdata {
                message: Some(message),
            }) = serde_json::from_str(&String::from_utf8_lossy(extdata))
        {
            let next = self.texts.len() as u32;
            let text = *self.texts.entry(message.into()).or_insert(next);
            self.messages.push((id, text));
        }
    }
}

/// Whether these ascending ids have no gaps.
fn dense(pieces: &[EventPiece]) -> bool {
    let count: usize = pieces.iter().map(|piece| piece.ids.len()).sum();
    let first = pieces.iter().find_map(|piece| piece.ids.first());
    let last = pieces.iter().rev().find_map(|piece| piece.ids.last());
    match (first, last) {
        (Some(first), Some(last)) => i128::from(*last) - i128::from(*first) + 1 == count as i128,
        _ => true,
    }
}

impl Events {
    pub(super) fn read(source: &Source<'_>, info: &mut Info) -> Result<Events> {
        let columns = "id, category_id, stack_id, parent_stack_id, correlation_id, extdata";
        let pieces = source.pieces(columns, "rocpd_event", |rows| {
            let mut piece = EventPiece::default();
            while let Some(row) = rows.next()? {
                piece.add(row);
            }
            Ok(piece)
        })?;
        let dense = dense(&pieces);
        let mut events = Events::default();
        let first = pieces.iter().find_map(|piece| piece.ids.first());
        events.first = first.copied().unwrap_or_default();
        for mut piece in pieces {
            if !dense {
                take(&mut events.ids, &mut piece.ids);
            }
            take(&mut events.category, &mut piece.category);
            take(&mut events.correlation, &mut piece.correlation);
            take(&mut events.ancestor, &mut piece.ancestor);
            take(&mut events.externals, &mut piece.externals);
            let mut texts = vec![StringId(0); piece.texts.len()];
            for (text, index) in piece.texts {
                texts[index as usize] = info.session.strings.intern(&text);
            }
            let messages = piece.messages.into_iter();
            events
                .messages
                .extend(messages.map(|(event, text)| (event, texts[text as usize])));
        }
        Ok(events)
    }

    #[inline]
    fn find(&self, id: i64) -> Option<usize> {
        let index = if self.ids.is_empty() {
            usize::try_from(id.checked_sub(self.first)?).ok()?
        } else {
            self.ids.binary_search(&id).ok()?
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
        let found = self.messages.binary_search_by_key(&id, |(event, _)| *event);
        found.map_or(StringId(0), |index| self.messages[index].1)
    }

    pub(super) fn external(&self, id: i64) -> CorrelationId {
        let found = self
            .externals
            .binary_search_by_key(&id, |(event, _)| *event);
        CorrelationId(found.map_or(0, |index| self.externals[index].1))
    }
}

/// Moves a column over. The first is taken as it is: with one piece nothing is copied.
pub(super) fn take<T>(into: &mut Vec<T>, from: &mut Vec<T>) {
    if into.is_empty() {
        *into = std::mem::take(from);
    } else {
        into.append(from);
    }
    from.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_with_gaps_are_found_too() {
        let piece = |ids: &[i64]| EventPiece {
            ids: ids.to_vec(),
            ..EventPiece::default()
        };
        assert!(dense(&[piece(&[3, 4]), piece(&[]), piece(&[5])]));
        assert!(!dense(&[piece(&[3, 4]), piece(&[6])]));
        let events = Events {
            ids: vec![3, 7],
            category: vec![1, 2],
            correlation: vec![30, 70],
            ancestor: vec![0, 0],
            ..Events::default()
        };
        assert_eq!(events.get(7).1, CorrelationId(70));
        assert_eq!(events.get(4).1, CorrelationId(0));
        assert_eq!(events.get(i64::MIN).1, CorrelationId(0));
    }
}
