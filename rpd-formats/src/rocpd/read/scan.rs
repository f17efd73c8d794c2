//! Scans a view in the order of its ids, by several threads when it is large. Memory does not grow with the view.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::mpsc::sync_channel;

use rusqlite::types::ValueRef;
use rusqlite::{Result, Row};

use super::super::connection::Guarded;
use super::super::error::Problem;
use super::super::sql::literal;

/// Number of rows from which on a second thread pays.
const ROWS_PER_THREAD: i64 = 100_000;
/// Most threads that scan a view: more threads wait for the disk.
const MAX_THREADS: usize = 8;
/// Number of ids that a thread reads before it waits for its turn again.
const STRETCH: i128 = 1 << 16;
/// Most stretches that the ids of a view are divided into.
const MAX_STRETCHES: i128 = 1 << 12;
/// Most rows of a piece.
const PIECE: usize = 1 << 14;
/// Bytes of texts after which a piece ends.
const PIECE_TEXTS: usize = 256 << 10;
/// Number of pieces that a thread may be ahead.
const PIECES_WAITING: usize = 2;

/// The recording of one process in a database.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) connection: &'a Guarded,
    /// Identifier of the recording; `None` when it is the only one in the database.
    pub(super) guid: Option<&'a str>,
    /// First problem of a connection of another thread.
    pub(super) problem: RefCell<Option<Problem>>,
}

impl Source<'_> {
    /// The rest of a statement's condition. A guid is written out, so that SQLite can determine which parts of a view over
    /// several processes cannot match.
    pub(super) fn condition(&self) -> String {
        match self.guid {
            Some(guid) => format!("guid = {}", literal(guid)),
            None => "1".to_owned(),
        }
    }

    /// Calls `take` with each row of a small view.
    pub(super) fn each(
        &self,
        columns: &str,
        view: &str,
        take: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        self.each_by("id", columns, view, take)
    }

    /// Calls `take` with each row of a view, ordered by the column `order`.
    pub(super) fn each_by(
        &self,
        order: &str,
        columns: &str,
        view: &str,
        mut take: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let sql = format!(
            "SELECT {columns} FROM {view} WHERE {} ORDER BY {order}",
            self.condition()
        );
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    }

    /// Calls `take` with each tag of the metadata and its value. Several recordings in one file share them.
    pub(super) fn each_tag(&self, mut take: impl FnMut(&str, &str)) -> Result<()> {
        let sql = "SELECT tag, value FROM rocpd_metadata";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            take(&text(row, 0), &text(row, 1));
        }
        Ok(())
    }

    /// Whether the database has a view or table of this name.
    pub(super) fn has(&self, view: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?1)";
        self.connection.query_row(sql, [view], |row| row.get(0))
    }

    /// Reads a view in pieces, in the order of its ids. `read` adds a row to a piece, on threads of its own when the view
    /// is large; `take` is called with one piece after the other on the calling thread. Only a few pieces exist at a time.
    pub(super) fn pieces<T: Default + Send>(
        &self,
        columns: &str,
        view: &str,
        read: impl Fn(&mut T, &Row<'_>) + Sync,
        take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let read = |piece: &mut T, row: &Row<'_>| {
            read(piece, row);
            0
        };
        self.pieces_with_texts(columns, view, read, take)
    }

    /// Reads rows with texts in pieces, several at a time; `read` returns how many bytes of text it added to its piece.
    pub(super) fn pieces_with_texts<T: Default + Send>(
        &self,
        columns: &str,
        view: &str,
        read: impl Fn(&mut T, &Row<'_>) -> usize + Sync,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let condition = self.condition();
        let bound = |what: &str| -> Result<Option<i64>> {
            let sql = format!("SELECT {what}(id) FROM {view} WHERE {condition}");
            self.connection.query_row(&sql, [], |row| row.get(0))
        };
        let (Some(first), Some(last)) = (bound("min")?, bound("max")?) else {
            return Ok(());
        };
        let range = i128::from(last) - i128::from(first) + 1;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let useful = usize::try_from(range / i128::from(ROWS_PER_THREAD)).unwrap_or(MAX_THREADS);
        let threads = threads.min(MAX_THREADS).min(useful).max(1);
        // A stretch of ids may have any number of rows. It is read in pieces of limited size all the same.
        let stretches = match threads {
            1 => 1,
            _ => (range / STRETCH).clamp(threads as i128, MAX_STRETCHES),
        };
        // Reads a stretch until `give` returns false.
        let run = |connection: &Guarded, stretch: i128, give: &mut dyn FnMut(T) -> bool| {
            // Neither bound leaves the range of ids.
            let at = |stretch: i128| i128::from(first) + range * stretch / stretches;
            let sql = format!(
                "SELECT {columns} FROM {view} WHERE {condition} AND id >= {} AND id <= {} ORDER BY id",
                at(stretch),
                at(stretch + 1) - 1
            );
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            let (mut piece, mut length, mut texts) = (T::default(), 0, 0);
            while let Some(row) = rows.next()? {
                texts += read(&mut piece, row);
                length += 1;
                if length == PIECE || texts >= PIECE_TEXTS {
                    (length, texts) = (0, 0);
                    if !give(std::mem::take(&mut piece)) {
                        return Ok(());
                    }
                }
            }
            if length > 0 {
                give(piece);
            }
            Ok(())
        };
        if threads == 1 {
            let mut taken = Ok(());
            run(self.connection, 0, &mut |piece| {
                taken = take(piece);
                taken.is_ok()
            })?;
            return taken;
        }
        std::thread::scope(|scope| {
            let path = self.path;
            let run = &run;
            // Thread n reads the stretches n, n + threads and so on. An end of a stretch is sent as `None`.
            let workers: Vec<_> = (0..threads)
                .map(|number| {
                    let (sender, receiver) = sync_channel(PIECES_WAITING);
                    let work = move || -> std::result::Result<(), Problem> {
                        let connection = Guarded::read(path)?;
                        for stretch in (number as i128..stretches).step_by(threads) {
                            run(&connection, stretch, &mut |piece| {
                                sender.send(Some(piece)).is_ok()
                            })
                            .map_err(|error| connection.meaning(&error))?;
                            if sender.send(None).is_err() {
                                break;
                            }
                        }
                        Ok(())
                    };
                    (scope.spawn(work), receiver)
                })
                .collect();
            'stretches: for stretch in 0..stretches {
                let (_, receiver) = &workers[(stretch % threads as i128) as usize];
                loop {
                    match receiver.recv() {
                        Ok(Some(piece)) => take(piece)?,
                        Ok(None) => break,
                        // The thread failed.
                        Err(_) => break 'stretches,
                    }
                }
            }
            for (worker, receiver) in workers {
                drop(receiver);
                match worker.join() {
                    Ok(Ok(())) => {}
                    Ok(Err(problem)) => return Err(self.fail(problem)),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(())
        })
    }

    /// The error of a statement that stands for `problem`.
    fn fail(&self, problem: Problem) -> rusqlite::Error {
        self.problem.replace(Some(problem));
        rusqlite::Error::InvalidQuery
    }

    /// Converts the result of writing records to files beside the database.
    pub(super) fn stored<T>(&self, result: io::Result<T>) -> Result<T> {
        result.map_err(|error| self.fail(Problem::Storage(error)))
    }
}

/// The integer in a column; 0 for anything else.
#[inline]
pub(super) fn integer(row: &Row<'_>, column: usize) -> i64 {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(value)) => value,
        _ => 0,
    }
}

/// The integer in a column, as its bits.
#[inline]
pub(super) fn bits(row: &Row<'_>, column: usize) -> u64 {
    integer(row, column).cast_unsigned()
}

/// The integer in a column that fits 32 bits in any sound database.
#[inline]
pub(super) fn word(row: &Row<'_>, column: usize) -> u32 {
    u32::try_from(integer(row, column)).unwrap_or(0)
}

/// The bytes of a column with a text or a blob; empty for anything else.
#[inline]
pub(super) fn bytes<'r>(row: &'r Row<'_>, column: usize) -> &'r [u8] {
    match row.get_ref(column) {
        Ok(ValueRef::Text(text) | ValueRef::Blob(text)) => text,
        _ => &[],
    }
}

/// The text in a column, with any bytes.
pub(super) fn text(row: &Row<'_>, column: usize) -> String {
    String::from_utf8_lossy(bytes(row, column)).into_owned()
}
