//! The tables of schema 3, in either layout, and the views over them; their columns are in `schema.sql`.

use rpd_core::options::Layout;

use super::names::Names;

const SCHEMA: &str = include_str!("schema.sql");
/// Ends the line of a column that has the same value in every row.
const CONSTANT: &str = " -- constant";
/// Ends the line of a column that has the id of its row.
const ID: &str = " -- id";
/// Stands in front of such a column in a view.
pub(super) const ROW_ID: &str = "id AS ";

/// A table of `schema.sql`, with the columns of the original in its order.
struct Table {
    /// Name of the table before the suffix.
    base: &'static str,
    columns: Vec<Column>,
}

struct Column {
    /// The name in the schema, in quotes where it needs them.
    name: &'static str,
    definition: &'static str,
    is_constant: bool,
    is_id: bool,
}

impl Table {
    /// Parses a statement that makes a table, without comments in front; `None` for any other statement.
    fn parse(statement: &'static str) -> Option<Table> {
        let (base, rest) = statement
            .strip_prefix("CREATE TABLE ")?
            .split_once("%suffix% (\n")?;
        let lines = rest.lines().map(str::trim).take_while(|line| *line != ")");
        let columns = lines.map(|line| {
            let (is_constant, is_id) = (line.ends_with(CONSTANT), line.ends_with(ID));
            let line = line.trim_end_matches(CONSTANT).trim_end_matches(ID);
            let definition = line.strip_suffix(',').unwrap_or(line);
            Column {
                name: definition.split(' ').next().unwrap_or_default(),
                definition,
                is_constant,
                is_id,
            }
        });
        Some(Table {
            base,
            columns: columns.collect(),
        })
    }

    fn create(&self, layout: Layout) -> String {
        let mut columns: Vec<&Column> = self.columns.iter().collect();
        if layout == Layout::Rpd {
            // At the end of a row they take no space: SQLite keeps a key of integers beside the row.
            columns.sort_by_key(|column| {
                column.is_constant || column.definition.ends_with("INTEGER NOT NULL PRIMARY KEY")
            });
        }
        let columns: Vec<&str> = columns.iter().map(|column| column.definition).collect();
        let (base, columns) = (self.base, columns.join(",\n    "));
        format!("CREATE TABLE {base}%suffix% (\n    {columns}\n);\n")
    }

    fn view(&self) -> String {
        let shown = |column: &Column| {
            if column.is_id {
                format!("{ROW_ID}{}", column.name)
            } else {
                column.name.to_owned()
            }
        };
        let columns: Vec<String> = self.columns.iter().map(shown).collect();
        let (base, columns) = (self.base, columns.join(", "));
        format!("CREATE VIEW {base} AS\n    SELECT {columns} FROM {base}%suffix%")
    }
}

fn tables() -> impl Iterator<Item = Table> {
    SCHEMA
        .split(";\n")
        .map(Names::without_comments)
        .filter_map(Table::parse)
}

/// The columns that schema 3.0.0 has in a table; `None` for a table that it lacks.
pub(super) fn columns_of(base: &str) -> Option<Vec<&'static str>> {
    let table = tables().find(|table| table.base == base)?;
    let names = table
        .columns
        .iter()
        .map(|column| column.name.trim_matches('"'));
    Some(names.collect())
}

/// Statements that make the tables.
pub(super) fn create(layout: Layout) -> String {
    tables().map(|table| table.create(layout)).collect()
}

/// Statements that make the views by whose names readers find the tables: their columns stand in the order of the original.
pub(super) fn views() -> impl Iterator<Item = String> {
    tables().map(|table| table.view())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    const TABLES: usize = 20;

    fn names() -> Names {
        Names {
            guid: "0000-1".to_owned(),
            suffix: "_0000_1".to_owned(),
            nid: 5,
            pid: 7,
        }
    }

    /// A database without foreign keys, as writers open it: SQLite refuses columns that refer to others otherwise.
    fn connection() -> Connection {
        let connection = Connection::open_in_memory().expect("a connection");
        let without_keys = connection.execute_batch("PRAGMA foreign_keys = OFF");
        without_keys.expect("a setting");
        connection
    }

    /// Columns of a table or view with their types.
    fn columns(connection: &Connection, table: &str) -> Vec<(String, String)> {
        let mut statement = connection
            .prepare(&format!("PRAGMA table_info({table})"))
            .expect("a statement");
        let rows = statement.query_map([], |row| Ok((row.get(1)?, row.get(2)?)));
        let rows = rows.expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    }

    #[test]
    fn each_table_of_the_schema_is_parsed() {
        assert_eq!(SCHEMA.matches("CREATE TABLE ").count(), TABLES);
        assert_eq!(tables().count(), TABLES);
        let constants = tables().flat_map(|table| table.columns);
        let constants = constants.filter(|column| column.is_constant).count();
        assert_eq!(SCHEMA.matches(&format!("{CONSTANT}\n")).count(), constants);
    }

    #[test]
    fn both_layouts_have_the_same_columns_and_equal_views() {
        let [rpd, original] = [Layout::Rpd, Layout::Original].map(|layout| {
            let connection = connection();
            let views: String = views().map(|view| view + ";\n").collect();
            let all = create(layout) + &views;
            connection
                .execute_batch(&names().fill_in(&all))
                .expect("the statements are valid");
            connection
        });
        for table in tables() {
            let name = format!("{}_0000_1", table.base);
            let (mut ours, mut originals) = (columns(&rpd, &name), columns(&original, &name));
            assert_eq!(columns(&rpd, table.base), originals, "{name}");
            assert_eq!(columns(&original, table.base), originals, "{name}");
            ours.sort();
            originals.sort();
            assert_eq!(ours, originals, "{name}");
        }
    }

    #[test]
    fn rows_of_events_are_found_by_views_without_an_index() {
        let connection = connection();
        let names = names();
        let run = |sql: &str| connection.execute_batch(&names.fill_in(sql)).expect(sql);
        run(&create(Layout::Rpd));
        views().for_each(|view| run(&view));
        for table in ["rocpd_region", "rocpd_sample"] {
            let sql = format!("EXPLAIN QUERY PLAN SELECT * FROM {table} WHERE event_id = 5");
            let plan: String = connection
                .query_row(&sql, [], |row| row.get("detail"))
                .expect("a plan");
            assert!(plan.contains("INTEGER PRIMARY KEY (rowid=?)"), "{plan}");
        }
    }
}
