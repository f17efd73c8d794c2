//! The tables of schema 3, in either layout, and the views over them; their columns are in `schema.sql`.

use rpd_core::options::{Layout, Options, RocpdSchema};
use rpd_core::session::Session;

use super::names::Names;

const SCHEMA: &str = include_str!("schema.sql");
/// Ends the line of a column that has the same value in every row.
const CONSTANT: &str = " -- constant";
/// Ends the line of a column that has the id of its row.
const ID: &str = " -- id";
/// Stands before the version from which on there is a table or a column.
const SINCE: &str = " -- since ";
/// Stands in front of a column marked [`ID`] in a view.
pub(super) const ROW_ID: &str = "id AS ";

/// Column of the runs of replayed dispatches.
pub(super) const REPLAY_PASS: &str = "replay_pass";

/// The version of the schema that a database has: that of the options, or the first that has a place for all records of the session,
/// so that readers of older versions read what they can. Later versions add tables and columns to the first.
pub(super) fn schema_version(session: &Session, options: &Options) -> RocpdSchema {
    if let Some(version) = options.rocpd_schema {
        return version;
    }
    let dispatches = [&session.dispatches, &session.counted.dispatches];
    let has_graphs = !session.graph_launches.is_empty()
        || dispatches.iter().any(|table| !table.graph.is_empty())
        || !session.copies.graph.is_empty();
    if dispatches.iter().any(|table| !table.replay.is_empty()) {
        RocpdSchema::Replays
    } else if !session.hip_events.is_empty() {
        RocpdSchema::Events
    } else if has_graphs {
        RocpdSchema::Graphs
    } else {
        RocpdSchema::First
    }
}

/// The version that a line of `schema.sql` is marked with.
fn version_of_line(line: &str) -> RocpdSchema {
    match line.split_once(SINCE) {
        None => RocpdSchema::First,
        Some((_, since)) => {
            RocpdSchema::from_word(since).expect("`schema.sql` names versions of the list")
        }
    }
}

/// A table of `schema.sql`, with the columns of the original in its order.
struct Table {
    /// Name of the table before the suffix.
    base: &'static str,
    since: RocpdSchema,
    columns: Vec<Column>,
}

struct Column {
    /// The name in the schema, in quotes where it needs them.
    name: &'static str,
    definition: &'static str,
    since: RocpdSchema,
    is_constant: bool,
    is_id: bool,
}

impl Table {
    /// Parses a statement that makes a table, without comments in front; `None` for any other statement.
    fn parse(statement: &'static str) -> Option<Table> {
        let (base, rest) = statement
            .strip_prefix("CREATE TABLE ")?
            .split_once("%suffix% (")?;
        let (first, rest) = rest.split_once('\n')?;
        let lines = rest.lines().map(str::trim).take_while(|line| *line != ")");
        let columns = lines.map(|line| {
            let since = version_of_line(line);
            let line = line.split_once(SINCE).map_or(line, |(line, _)| line);
            let (is_constant, is_id) = (line.ends_with(CONSTANT), line.ends_with(ID));
            let line = line.trim_end_matches(CONSTANT).trim_end_matches(ID);
            let definition = line.strip_suffix(',').unwrap_or(line);
            Column {
                name: definition.split(' ').next().unwrap_or_default(),
                definition,
                since,
                is_constant,
                is_id,
            }
        });
        Some(Table {
            base,
            since: version_of_line(first),
            columns: columns.collect(),
        })
    }

    /// The columns that the table has in a version.
    fn columns(&self, version: RocpdSchema) -> impl Iterator<Item = &Column> {
        let columns = self.columns.iter();
        columns.filter(move |column| column.since <= version)
    }

    fn create(&self, layout: Layout, version: RocpdSchema) -> String {
        let mut columns: Vec<&Column> = self.columns(version).collect();
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

    fn view(&self, version: RocpdSchema) -> String {
        let shown = |column: &Column| {
            if column.is_id {
                format!("{ROW_ID}{}", column.name)
            } else {
                column.name.to_owned()
            }
        };
        let columns: Vec<String> = self.columns(version).map(shown).collect();
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

/// The columns of a table that are read; `None` for a table that is not read.
pub(super) fn columns_of(base: &str) -> Option<Vec<&'static str>> {
    let table = tables().find(|table| table.base == base)?;
    let read = table.columns.iter();
    let names = read
        .filter(|column| column.since != RocpdSchema::Sampled)
        .map(|column| column.name.trim_matches('"'));
    Some(names.collect())
}

/// Whether a table or view with these columns has those of graphs.
pub(super) fn has_graph_columns(columns: &[String]) -> bool {
    ["graph_exec_id", "graph_node_id"]
        .iter()
        .all(|name| columns.iter().any(|column| column == name))
}

/// Whether a table or view of dispatches with these columns has that of replays.
pub(super) fn has_replay_column(columns: &[String]) -> bool {
    columns.iter().any(|column| column == REPLAY_PASS)
}

/// Statements that make the tables of a version.
pub(super) fn create(layout: Layout, version: RocpdSchema) -> String {
    tables()
        .filter(|table| table.since <= version)
        .map(|table| table.create(layout, version))
        .collect()
}

/// Statements that make the views by whose names readers find the tables: their columns stand in the order of the original.
pub(super) fn views(version: RocpdSchema) -> impl Iterator<Item = String> {
    tables()
        .filter(move |table| table.since <= version)
        .map(move |table| table.view(version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    const TABLES: usize = 22;

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
        for version in [
            RocpdSchema::First,
            RocpdSchema::Graphs,
            RocpdSchema::Sampled,
            RocpdSchema::Events,
            RocpdSchema::Replays,
        ] {
            check_layouts(version);
        }
    }

    fn check_layouts(version: RocpdSchema) {
        let [rpd, original] = [Layout::Rpd, Layout::Original].map(|layout| {
            let connection = connection();
            let views: String = views(version).map(|view| view + ";\n").collect();
            let all = create(layout, version) + &views;
            connection
                .execute_batch(&names().fill_in(&all))
                .expect("the statements are valid");
            connection
        });
        for table in tables().filter(|table| table.since <= version) {
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
    fn first_version_has_nothing_of_later_ones() {
        let first = create(Layout::Original, RocpdSchema::First);
        for later in [
            "graph_exec_id",
            "rocpd_graph_launch",
            "rocpd_hip_event",
            "xcc",
            "replay_pass",
        ] {
            assert!(!first.contains(later), "{later}");
            assert!(create(Layout::Original, RocpdSchema::Replays).contains(later));
        }
        assert!(!create(Layout::Original, RocpdSchema::Graphs).contains("rocpd_hip_event"));
    }

    #[test]
    fn rows_of_events_are_found_by_views_without_an_index() {
        let connection = connection();
        let names = names();
        let run = |sql: &str| connection.execute_batch(&names.fill_in(sql)).expect(sql);
        run(&create(Layout::Rpd, RocpdSchema::First));
        views(RocpdSchema::First).for_each(|view| run(&view));
        for table in ["rocpd_region", "rocpd_sample"] {
            let sql = format!("EXPLAIN QUERY PLAN SELECT * FROM {table} WHERE event_id = 5");
            let plan: String = connection
                .query_row(&sql, [], |row| row.get("detail"))
                .expect("a plan");
            assert!(plan.contains("INTEGER PRIMARY KEY (rowid=?)"), "{plan}");
        }
    }
}
