//! Arguments of calls, as texts.

use std::io;

use rpd_core::session::ArgsRef;
use rpd_core::spool::format::call_flag;
use rpd_core::storage::column::{BATCH, Column, Storage};
use rpd_core::storage::lookup::Lookup;
use rpd_core::storage::sorted::{Keyed, Sorter};
use rusqlite::Result;
use zerocopy::{Immutable, IntoBytes};

use super::scan::{Source, bytes, integer};

/// Bytes of arguments that are kept in memory for each row of a table.
const BYTES_PER_ROW: usize = 16;

/// Arguments as one thread reads them.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    /// Event of each argument, and where its bytes end.
    ends: Vec<(i64, usize)>,
}

/// The arguments of all calls by their events.
#[derive(Default)]
pub(super) struct Arguments {
    /// Per argument, type, name and value: each a `u32` byte count and the bytes.
    arena: Column<u8>,
    places: Lookup<ArgumentsPlace>,
}

/// Where arguments of an event lie in the arena.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct ArgumentsPlace {
    event: i64,
    /// Index of the first byte.
    offset: u64,
    /// Number of bytes.
    length: u64,
}

impl Keyed for ArgumentsPlace {
    type Key = i64;

    fn key(&self) -> i64 {
        self.event
    }
}

impl Arguments {
    pub(super) fn read(source: &Source<'_>, storage: &Storage) -> Result<Arguments> {
        let mut collected = Collected {
            storage,
            arena: Column::new(),
            parts: Sorter::new(Some(storage)),
            last: None,
        };
        source.pieces_with_texts(
            "event_id, type, name, value",
            "rocpd_arg",
            |piece: &mut Piece, row| {
                let before = piece.bytes.len();
                for column in 1..4 {
                    let part = bytes(row, column);
                    let length = u32::try_from(part.len()).unwrap_or(0);
                    piece.bytes.extend(length.to_le_bytes());
                    piece.bytes.extend(&part[..length as usize]);
                }
                piece.ends.push((integer(row, 0), piece.bytes.len()));
                piece.bytes.len() - before
            },
            |piece| source.stored(collected.append(&piece)),
        )?;
        source.stored(collected.finish())
    }

    /// The place of a call's arguments in the arena.
    pub(super) fn of(&self, event: i64) -> ArgsRef {
        match self.places.find(event) {
            Some(place) => ArgsRef {
                offset: place.offset,
                len: u32::try_from(place.length).unwrap_or(u32::MAX),
                flags: call_flag::ARGUMENT_TEXTS,
            },
            None => ArgsRef::default(),
        }
    }

    /// The bytes that [`Arguments::of`] refers to.
    pub(super) fn into_arena(self) -> Column<u8> {
        self.arena
    }
}

/// Arguments in the order of their rows.
struct Collected<'a> {
    storage: &'a Storage,
    arena: Column<u8>,
    /// Arguments whose rows follow each other.
    parts: Sorter<ArgumentsPlace>,
    last: Option<ArgumentsPlace>,
}

impl Collected<'_> {
    fn append(&mut self, piece: &Piece) -> io::Result<()> {
        let base = self.arena.total();
        let mut begin = 0;
        for &(event, end) in &piece.ends {
            match &mut self.last {
                Some(last) if last.event == event => last.length += (end - begin) as u64,
                last => {
                    let part = ArgumentsPlace {
                        event,
                        offset: (base + begin) as u64,
                        length: (end - begin) as u64,
                    };
                    if let Some(complete) = last.replace(part) {
                        self.parts.push(complete)?;
                    }
                }
            }
            begin = end;
        }
        self.arena.extend_from_slice(&piece.bytes);
        if self.arena.len() >= BYTES_PER_ROW * self.storage.rows() {
            self.arena.spill(self.storage)?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Arguments> {
        if let Some(last) = self.last {
            self.parts.push(last)?;
        }
        let storage = self.storage;
        self.arena.seal(storage)?;
        let mut parts = Column::new();
        let mut is_scattered = false;
        let mut last = None;
        for part in self.parts.finish()? {
            is_scattered |= last == Some(part.event);
            last = Some(part.event);
            parts.append(Some(storage), part)?;
        }
        parts.seal(storage)?;
        let mut arguments = Arguments::default();
        if is_scattered {
            // rpd and rocprofv3 write the rows of a call one after the other. Those of other tools are put together.
            parts = gather(&self.arena, &parts, storage, &mut arguments.arena)?;
        } else {
            arguments.arena = self.arena;
        }
        for &part in &parts {
            arguments.places.push(Some(storage), part)?;
        }
        arguments.places.seal(Some(storage))?;
        Ok(arguments)
    }
}

/// Copies arguments so that those of an event lie together; their places.
fn gather(
    arena: &Column<u8>,
    parts: &Column<ArgumentsPlace>,
    storage: &Storage,
    into: &mut Column<u8>,
) -> io::Result<Column<ArgumentsPlace>> {
    let mut gathered = Column::new();
    let mut last: Option<ArgumentsPlace> = None;
    for (number, &part) in parts.iter().enumerate() {
        let offset = into.total() as u64;
        into.extend_from_slice(&arena[part.offset as usize..][..part.length as usize]);
        if into.len() >= BYTES_PER_ROW * storage.rows() {
            into.spill(storage)?;
        }
        if number.is_multiple_of(BATCH) {
            arena.release();
        }
        match &mut last {
            Some(last) if last.event == part.event => last.length += part.length,
            last => {
                if let Some(complete) = last.replace(ArgumentsPlace { offset, ..part }) {
                    gathered.append(Some(storage), complete)?;
                }
            }
        }
    }
    if let Some(last) = last {
        gathered.append(Some(storage), last)?;
    }
    gathered.seal(storage)?;
    into.seal(storage)?;
    Ok(gathered)
}
