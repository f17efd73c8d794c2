//! Reading the files that `rpd` wrote.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::run::Outcome;

/// A CSV file, parsed.
#[derive(Debug)]
pub struct Table {
    /// The names in its first line.
    pub columns: Vec<String>,
    /// The lines below the first one, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads and parses a CSV file.
    ///
    /// # Panics
    /// When it is missing or no well-formed CSV.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let mut reader = csv::Reader::from_path(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let texts =
            |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
        let columns = texts(
            reader
                .headers()
                .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        );
        let rows = reader
            .records()
            .map(|row| texts(&row.unwrap_or_else(|error| panic!("{}: {error}", path.display()))))
            .collect();
        Self { columns, rows }
    }

    /// The values of a column, from top to bottom.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn column(&self, name: &str) -> Vec<&str> {
        let index = self.columns.iter().position(|column| column == name);
        let index = index.unwrap_or_else(|| panic!("no column {name} in {:?}", self.columns));
        self.rows.iter().map(|row| row[index].as_str()).collect()
    }

    /// The values of a column as numbers.
    ///
    /// # Panics
    /// When there is no such column, or a value is no whole number.
    #[must_use]
    pub fn numbers(&self, name: &str) -> Vec<u64> {
        let parse = |value: &str| {
            value
                .parse()
                .unwrap_or_else(|_| panic!("`{value}` in column {name} is not a number"))
        };
        self.column(name).into_iter().map(parse).collect()
    }

    /// The number of rows that have `value` in column `name`.
    #[must_use]
    pub fn count(&self, name: &str, value: &str) -> usize {
        self.column(name)
            .into_iter()
            .filter(|found| *found == value)
            .count()
    }
}

impl Outcome {
    /// The only CSV file of the run whose name ends with `<kind>.csv`, such as `kernel_trace`.
    #[must_use]
    pub fn csv(&self, kind: &str) -> Table {
        Table::read(&self.file(&format!("{kind}.csv")))
    }

    /// The only database of the run, read-only.
    #[must_use]
    pub fn database(&self) -> Database {
        Database::open(&self.file(".db"))
    }
}

/// A rocpd database.
#[derive(Debug)]
pub struct Database(pub Connection);

impl Database {
    /// Opens a database for reading.
    ///
    /// # Panics
    /// When it is missing or no database.
    #[must_use]
    pub fn open(path: &Path) -> Self {
        let open = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        Self(open.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// Runs SQL statements on a database, which is made if it is missing. Foreign keys are not enforced, so that a test can make
    /// databases that contradict themselves.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn change(path: &Path, sql: &str) {
        let connection = Connection::open(path);
        let changed = connection.and_then(|connection| {
            connection.pragma_update(None, "foreign_keys", false)?;
            connection.execute_batch(sql)
        });
        changed.unwrap_or_else(|error| panic!("{}: {error}: {sql}", path.display()));
    }

    /// The single number that a query gives, such as a count.
    ///
    /// # Panics
    /// When the query fails.
    #[must_use]
    pub fn number(&self, query: &str) -> i64 {
        self.0
            .query_row(query, [], |row| row.get(0))
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// The rows that a query gives, every value as text (`NULL` for none).
    ///
    /// # Panics
    /// When the query fails.
    #[must_use]
    pub fn rows(&self, query: &str) -> Vec<Vec<String>> {
        use rusqlite::types::ValueRef;
        let mut statement = self
            .0
            .prepare(query)
            .unwrap_or_else(|error| panic!("{query}: {error}"));
        let width = statement.column_count();
        let text = |value: ValueRef<'_>| match value {
            ValueRef::Null => "NULL".to_owned(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
        };
        let rows = statement.query_map([], |row| {
            (0..width)
                .map(|index| row.get_ref(index).map(text))
                .collect()
        });
        rows.and_then(Iterator::collect)
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_by_column() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(
            file.path(),
            "\"Name\",\"Calls\"\n\"f(int, int)\",3\n\"g\",4\n",
        )
        .expect("a write");
        let table = Table::read(file.path());
        assert_eq!(table.column("Name"), ["f(int, int)", "g"]);
        assert_eq!(table.numbers("Calls"), [3, 4]);
        assert_eq!(table.count("Name", "g"), 1);
    }

    #[test]
    fn databases_answer_queries() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        Database::change(
            file.path(),
            "CREATE TABLE t (n INTEGER, s TEXT); INSERT INTO t VALUES (1, 'one'), (2, NULL)",
        );
        let database = Database::open(file.path());
        assert_eq!(database.number("SELECT sum(n) FROM t"), 3);
        assert_eq!(
            database.rows("SELECT n, s FROM t ORDER BY n"),
            [["1", "one"], ["2", "NULL"]]
        );
    }
}
