//! Fills the tables of a session in bounded memory. A table that grows long is written to files in parts, each of
//! which is sorted; the parts are merged at the end.

use std::io;

use super::columns::span_of;
use super::{Session, Table, order};
use crate::ids::Nanoseconds;
use crate::storage::column::Storage;

/// Number of records between two checks of the lengths of the tables.
const CHECK_INTERVAL: usize = 1024;

/// Size in bytes of the arguments that are kept in memory.
const ARENA: usize = 8 << 20;

/// The parts of a session's tables that are in files. Code that fills the tables calls [`Growth::taken`] after each
/// record, and at the end [`Growth::finish`] and [`Growth::sort`].
#[derive(Debug)]
pub struct Growth {
    storage: Storage,
    /// Index of the first row of each part in files, by number of the table.
    parts: [Vec<usize>; Table::ALL.len()],
    /// Whether all rows of a table have been added and are sorted, by number of the table.
    is_complete: [bool; Table::ALL.len()],
    until_check: usize,
    /// Last end of the rows in files.
    last_end: Nanoseconds,
}

impl Growth {
    /// Long columns will be written to files in `storage`.
    pub fn new(storage: Storage) -> Growth {
        Growth {
            storage,
            parts: Default::default(),
            is_complete: Default::default(),
            until_check: 0,
            last_end: Nanoseconds::default(),
        }
    }

    /// Storage of long columns.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Writes tables that have become long to files. To be called after each record.
    ///
    /// # Errors
    /// When a file cannot be made or written.
    #[inline]
    pub fn taken(&mut self, session: &mut Session) -> io::Result<()> {
        if self.until_check > 0 {
            self.until_check -= 1;
            return Ok(());
        }
        self.check(session)
    }

    #[cold]
    fn check(&mut self, session: &mut Session) -> io::Result<()> {
        self.until_check = CHECK_INTERVAL.min(self.storage.rows()) - 1;
        for table in self.incomplete() {
            let rows = session.columns(*table).starts().len();
            let is_long = rows >= self.storage.rows()
                || *table == Table::Calls && session.calls.arena.len() >= ARENA;
            if is_long {
                self.spill(session, *table)?;
            }
        }
        Ok(())
    }

    fn incomplete(&self) -> impl Iterator<Item = &'static Table> + use<> {
        let is_complete = self.is_complete;
        let tables = Table::ALL.iter();
        tables.filter(move |table| !is_complete[**table as usize])
    }

    fn spill(&mut self, session: &mut Session, table: Table) -> io::Result<()> {
        self.last_end = self.last_end.max(last_end(session, table));
        order::sort_rows(session, table);
        let parts = &mut self.parts[table as usize];
        parts.push(session.columns(table).total() - session.columns(table).starts().len());
        session.columns_mut(table).spill(&self.storage)
    }

    /// Last end of all rows so far, those in files included; 0 without rows.
    pub fn last_end(&self, session: &Session) -> Nanoseconds {
        let tables = Table::ALL.iter().map(|table| last_end(session, *table));
        tables.max().unwrap_or_default().max(self.last_end)
    }

    /// Makes all rows readable. They are sorted within each part only.
    ///
    /// # Errors
    /// When a file cannot be written or mapped.
    pub fn finish(&mut self, session: &mut Session) -> io::Result<()> {
        for table in self.incomplete() {
            self.finish_table(session, *table)?;
        }
        Ok(())
    }

    fn finish_table(&mut self, session: &mut Session, table: Table) -> io::Result<()> {
        if !self.parts[table as usize].is_empty() {
            self.spill(session, table)?;
            session.columns_mut(table).seal(&self.storage)?;
        }
        Ok(())
    }

    /// Merges the parts, so that every table is in the order that writers rely on, and gives the storage to the
    /// session.
    ///
    /// # Errors
    /// When a file cannot be made, written or mapped.
    pub fn sort(self, session: &mut Session) -> io::Result<()> {
        for table in self.incomplete() {
            self.merge_table(session, *table)?;
        }
        session.storage = Some(self.storage);
        Ok(())
    }

    fn merge_table(&self, session: &mut Session, table: Table) -> io::Result<()> {
        let parts = &self.parts[table as usize];
        if parts.is_empty() {
            order::sort_rows(session, table);
        }
        let mut parts = parts.clone();
        while !parts.is_empty()
            && let Some(merged) = order::merged(session, table, &parts, &self.storage)?
        {
            session
                .columns_mut(table)
                .rebuild(&self.storage, &merged.order)?;
            parts = merged.parts;
        }
        session.columns(table).release();
        Ok(())
    }

    /// Finishes one table and puts it in order, as [`Growth::finish`] and [`Growth::sort`] do with all. No rows
    /// may be added to it afterwards.
    ///
    /// # Errors
    /// When a file cannot be made, written or mapped.
    pub fn complete(&mut self, session: &mut Session, table: Table) -> io::Result<()> {
        self.finish_table(session, table)?;
        self.merge_table(session, table)?;
        self.parts[table as usize].clear();
        self.is_complete[table as usize] = true;
        Ok(())
    }
}

/// Last end of the rows of a table that can be read.
fn last_end(session: &Session, table: Table) -> Nanoseconds {
    span_of(session.columns(table)).map_or(Nanoseconds::default(), |(_, end)| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables that are complete were sorted again after every thousand records of other tables.
    #[test]
    fn growth_does_not_sort_completed_tables_again() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let mut growth = Growth::new(Storage::new(directory.path()).with_rows(4));
        let mut session = Session::default();
        let push = |growth: &mut Growth, session: &mut Session, table: Table| {
            for time in (1..=12).map(Nanoseconds) {
                let (starts, ends) = match table {
                    Table::Copies => (&mut session.copies.start, &mut session.copies.end),
                    _ => (&mut session.scratch.start, &mut session.scratch.end),
                };
                starts.push(time);
                ends.push(time);
                growth.taken(session)?;
            }
            io::Result::Ok(())
        };
        push(&mut growth, &mut session, Table::Copies)?;
        growth.complete(&mut session, Table::Copies)?;
        push(&mut growth, &mut session, Table::Scratch)?;
        assert!(growth.parts[Table::Copies as usize].is_empty());
        assert!(!growth.parts[Table::Scratch as usize].is_empty());
        growth.finish(&mut session)?;
        growth.sort(&mut session)?;
        for starts in [&session.copies.start, &session.scratch.start] {
            assert_eq!(*starts, Vec::from_iter((1..=12).map(Nanoseconds)));
        }
        Ok(())
    }
}
