//! Scans of one view in the order of its ids, by several threads when it is large.

use std::cell::RefCell;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Result, Row, Rows};

use super::super::connection::Guarded;
use super::super::error::Problem;
use super::super::sql::literal;

/// Rows from which on a second thread pays.
const ROWS_PER_THREAD: i64 = 100_000;
/// More threads than this wait for the disk.
const MAX_THREADS: usize = 8;

/// One process in a database.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) connection: &'a Guarded,
    /// Set when the database holds several.
    pub(super) guid: Option<&'a str>,
    /// What went wrong on a connection other than this one.
    pub(super) problem: RefCell<Option<Problem>>,
}

impl Source<'_> {
    /// The rest of a statement's condition. A guid is written out, so that SQLite sees which parts of a view over
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

    /// The same, ordered by another column.
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

    /// Whether there is such a view or table.
    pub(super) fn has(&self, view: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?1)";
        self.connection.query_row(sql, [view], |row| row.get(0))
    }

    /// Reads a view in pieces, in the order of its ids. `read` turns the rows of a piece into a value.
    pub(super) fn pieces<T: Send>(
        &self,
        columns: &str,
        view: &str,
        read: impl Fn(&mut Rows<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let condition = self.condition();
        let bound = |what: &str| -> Result<Option<i64>> {
            let sql = format!("SELECT {what}(id) FROM {view} WHERE {condition}");
            self.connection.query_row(&sql, [], |row| row.get(0))
        };
        let (Some(first), Some(last)) = (bound("min")?, bound("max")?) else {
            return Ok(Vec::new());
        };
        let range = i128::from(last) - i128::from(first) + 1;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let useful = usize::try_from(range / i128::from(ROWS_PER_THREAD)).unwrap_or(MAX_THREADS);
        let threads = threads.min(MAX_THREADS).min(useful).max(1);
        let sql = |piece: usize| {
            // Neither bound leaves the range of ids.
            let at = |piece: usize| first as i128 + range * piece as i128 / threads as i128;
            format!(
                "SELECT {columns} FROM {view} WHERE {condition} AND id >= {} AND id <= {} ORDER BY id",
                at(piece),
                at(piece + 1) - 1
            )
        };
        let run = |connection: &Guarded, piece: usize| -> Result<T> {
            let mut statement = connection.prepare(&sql(piece))?;
            let mut rows = statement.query([])?;
            read(&mut rows)
        };
        if threads == 1 {
            return Ok(vec![run(self.connection, 0)?]);
        }
        std::thread::scope(|scope| {
            let path = self.path;
            let workers: Vec<_> = (1..threads)
                .map(|piece| {
                    let run = &run;
                    scope.spawn(move || {
                        let connection = Guarded::read(path)?;
                        run(&connection, piece).map_err(|error| connection.meaning(&error))
                    })
                })
                .collect();
            let mut pieces = vec![run(self.connection, 0)?];
            for worker in workers {
                match worker.join() {
                    Ok(Ok(piece)) => pieces.push(piece),
                    Ok(Err(problem)) => {
                        self.problem.replace(Some(problem));
                        return Err(rusqlite::Error::InvalidQuery);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(pieces)
        })
    }
}

/// An integer column; 0 for anything else.
#[inline]
pub(super) fn integer(row: &Row<'_>, column: usize) -> i64 {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(value)) => value,
        _ => 0,
    }
}

/// An integer column as its bits.
#[inline]
pub(super) fn bits(row: &Row<'_>, column: usize) -> u64 {
    integer(row, column).cast_unsigned()
}

/// An integer column that fits 32 bits in any sound database.
#[inline]
pub(super) fn word(row: &Row<'_>, column: usize) -> u32 {
    u32::try_from(integer(row, column)).unwrap_or(0)
}

/// The bytes of a text column; empty for anything else.
#[inline]
pub(super) fn bytes<'r>(row: &'r Row<'_>, column: usize) -> &'r [u8] {
    match row.get_ref(column) {
        Ok(ValueRef::Text(text) | ValueRef::Blob(text)) => text,
        _ => &[],
    }
}

/// A text column, whatever bytes it holds.
pub(super) fn text(row: &Row<'_>, column: usize) -> String {
    String::from_utf8_lossy(bytes(row, column)).into_owned()
}
