//! Many rows in few statements.

use rusqlite::{Connection, Statement};

use crate::rocpd::identifier;

/// Parameters of one statement: more gain little, and SQLite's time to prepare grows.
const PARAMETERS: usize = 480;

#[derive(Clone, Copy)]
enum Cell {
    Integer(i64),
    /// Range in the collected texts.
    Text(usize, usize),
}

/// Inserts rows into one table, many with each statement.
pub(super) struct Bulk<'c> {
    connection: &'c Connection,
    /// `INSERT INTO ... VALUES `, for the rest.
    head: String,
    columns: usize,
    rows: usize,
    statement: Statement<'c>,
    cells: Vec<Cell>,
    texts: String,
}

impl<'c> Bulk<'c> {
    /// Inserts into `table`, an identifier in quotes.
    pub(super) fn new(
        connection: &'c Connection,
        table: &str,
        columns: &[&str],
    ) -> rusqlite::Result<Bulk<'c>> {
        let columns_text: Vec<String> = columns.iter().map(|name| identifier(name)).collect();
        let head = format!("INSERT INTO {table} ({}) VALUES ", columns_text.join(","));
        let rows = PARAMETERS / columns.len();
        let statement = connection.prepare(&statement_text(&head, columns.len(), rows))?;
        Ok(Bulk {
            connection,
            head,
            columns: columns.len(),
            rows,
            statement,
            cells: Vec::with_capacity(PARAMETERS),
            texts: String::new(),
        })
    }

    #[inline]
    pub(super) fn integer(&mut self, value: i64) -> &mut Self {
        self.cells.push(Cell::Integer(value));
        self
    }

    /// A number as its bits: addresses and handles may use all 64.
    #[inline]
    pub(super) fn bits(&mut self, value: u64) -> &mut Self {
        self.integer(value.cast_signed())
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        let from = self.texts.len();
        self.texts.push_str(text);
        self.cells.push(Cell::Text(from, self.texts.len()));
        self
    }

    /// Ends a row of as many values as there are columns.
    #[inline]
    pub(super) fn end_row(&mut self) -> rusqlite::Result<()> {
        debug_assert_eq!(self.cells.len() % self.columns, 0);
        if self.cells.len() >= self.rows * self.columns {
            bind(&mut self.statement, &self.cells, &self.texts)?;
            self.statement.raw_execute()?;
            self.cells.clear();
            self.texts.clear();
        }
        Ok(())
    }

    /// Inserts what is left over.
    pub(super) fn finish(self) -> rusqlite::Result<()> {
        let rows = self.cells.len() / self.columns;
        if rows > 0 {
            let text = statement_text(&self.head, self.columns, rows);
            let mut statement = self.connection.prepare(&text)?;
            bind(&mut statement, &self.cells, &self.texts)?;
            statement.raw_execute()?;
        }
        Ok(())
    }
}

fn statement_text(head: &str, columns: usize, rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(","));
    format!("{head}{}", vec![row; rows].join(","))
}

fn bind(statement: &mut Statement<'_>, cells: &[Cell], texts: &str) -> rusqlite::Result<()> {
    for (index, cell) in (1..).zip(cells) {
        match *cell {
            Cell::Integer(value) => statement.raw_bind_parameter(index, value)?,
            Cell::Text(from, to) => statement.raw_bind_parameter(index, &texts[from..to])?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_inserts_every_row() -> rusqlite::Result<()> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")?;
        for count in [0, 1, 239, 240, 241, 1000_i64] {
            connection.execute("DELETE FROM t", [])?;
            let mut bulk = Bulk::new(&connection, "t", &["a", "b"])?;
            for index in 1..=count {
                bulk.integer(index)
                    .text(&format!("te'x\"t\n{index}"))
                    .end_row()?;
            }
            bulk.finish()?;
            let found: (i64, i64) = connection.query_row(
                "SELECT count(*), coalesce(sum(b = 'te''x\"t' || char(10) || a), 0) FROM t",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            assert_eq!(found, (count, count));
        }
        Ok(())
    }
}
