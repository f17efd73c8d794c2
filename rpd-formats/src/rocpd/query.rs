//! SQL statements over one or several databases.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rpd_core::session::Window;
use rusqlite::Batch;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;

use super::connection::Guarded;
use super::error::{Problem, ReadError};
use super::guard::Trust;
use super::names::{Names, view_name};
use super::read::InputFile;
use super::sql::identifier;
use super::stack_views::COMPATIBLE;
use super::stacks;
use super::tables::{has_graph_columns, has_replay_column};
use super::{EVENT_VIEWS, GRAPH_VIEWS, LaterColumns, is_known_view, samples, traces, views};
use crate::table::Cell;

/// Databases that SQLite attaches at once.
const MAX_DATABASES: usize = 10;

/// Reason why a query has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A database cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// More databases were given than SQLite opens at once.
    #[error(
        "{0} databases are more than the {MAX_DATABASES} that SQLite opens at once; put them into one with `rpd merge` first"
    )]
    TooMany(usize),
    /// A file of RPD was given along with other files.
    #[error("{} is a file of RPD: query it alone, without other files", .0.display())]
    NotAlone(PathBuf),
    /// A time window was requested of a file of RPD.
    #[error("{} is a file of RPD, which --start, --end and markers do not apply to; limit the time with a WHERE clause in the SQL", .0.display())]
    NoWindow(PathBuf),
    /// SQLite does not accept the statement.
    #[error("{message}{}", position.as_ref().map(|at| format!(" at {at}")).unwrap_or_default())]
    Sql {
        /// Message of SQLite.
        message: String,
        /// Position of the error in the SQL: line, column, and the text there. `None` when SQLite does not tell it.
        position: Option<String>,
    },
    /// The result could not be written.
    #[error(transparent)]
    Output(#[from] std::io::Error),
}

/// Databases seen as one.
#[derive(Debug)]
pub struct Combined {
    connection: Guarded,
    /// Bases of tables, with the columns that all databases together have.
    tables: Vec<(String, Vec<String>)>,
    databases: Vec<Vec<(String, Vec<String>)>>,
    limit: Limit,
    /// The file of RPD that is queried; its tables and views are unchanged.
    rpd_file: Option<PathBuf>,
}

/// Processor time that SQL of the user may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Limit {
    /// A minute, and ten seconds for each MiB of the databases.
    #[default]
    BySize,
    /// Limit in seconds of processor time.
    Seconds(NonZeroU64),
    /// No limit of processor time.
    None,
}

impl Combined {
    /// Attaches the databases to one connection, or one file of RPD. None is changed.
    ///
    /// # Errors
    /// When a database cannot be read, or there are too many.
    pub fn open(paths: &[PathBuf]) -> Result<Combined, QueryError> {
        if paths.len() > MAX_DATABASES {
            return Err(QueryError::TooMany(paths.len()));
        }
        let mut rpd_file = None;
        for path in paths {
            if let InputFile::Rpd(_) = InputFile::open(path)? {
                rpd_file = Some(path.clone());
            }
        }
        let connection = Guarded::memory().map_err(|error| failed(&error, ""))?;
        let mut combined = Combined {
            connection,
            tables: Vec::new(),
            databases: Vec::new(),
            limit: Limit::default(),
            rpd_file,
        };
        // A file of RPD has other tables, over which the views of recordings cannot be made.
        if let Some(path) = &combined.rpd_file {
            if paths.len() > 1 {
                return Err(QueryError::NotAlone(path.clone()));
            }
            let attached = combined.connection.attach(path, "db0");
            attached.map_err(|problem| ReadError::new(path, problem))?;
            return Ok(combined);
        }
        for (index, path) in paths.iter().enumerate() {
            combined
                .attach(index, path, paths.len() == 1)
                .map_err(|problem| ReadError::new(path, problem))?;
        }
        combined.make_views(None)?;
        Ok(combined)
    }

    /// The file of RPD that is queried, if the input is one and not a database.
    pub fn rpd_file(&self) -> Option<&Path> {
        self.rpd_file.as_deref()
    }

    /// Sets the processor time that [`Combined::query`] and [`Combined::run`] may take, each.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn attach(&mut self, index: usize, path: &Path, is_alone: bool) -> Result<(), Problem> {
        let connection = &self.connection;
        let name = format!("db{index}");
        connection.attach(path, &name)?;
        let found = connection.texts(&format!(
            "SELECT name FROM {name}.sqlite_master WHERE type IN ('view', 'table')
                AND (name LIKE 'rocpd\\_%' ESCAPE '\\' OR name LIKE 'rpd\\_%' ESCAPE '\\')"
        ))?;
        let uuids = connection.texts(&format!(
            "SELECT value FROM {name}.rocpd_metadata WHERE tag = 'uuid'"
        ))?;
        let mut tables = Vec::new();
        for view in found {
            let is_of_one = |uuid: &String| !uuid.is_empty() && view.ends_with(uuid.as_str());
            if uuids.iter().any(is_of_one) || !is_known_view(&view) {
                continue;
            }
            // Their ids are distinct in one recording only.
            if !is_alone && COMPATIBLE.contains(&&*view) {
                continue;
            }
            // Compiling it gives the columns, and shows whether it does what no view of a recording does.
            let sql = format!("SELECT * FROM {name}.{}", identifier(&view));
            let columns: Vec<String> = match connection.prepare(&sql) {
                Ok(statement) => statement.column_names().map(str::to_owned).collect(),
                Err(error) => return Err(connection.meaning(&error)),
            };
            match self.tables.iter_mut().find(|(base, _)| *base == view) {
                Some((_, all)) => {
                    for column in &columns {
                        if !all.contains(column) {
                            all.push(column.clone());
                        }
                    }
                }
                None => self.tables.push((view.clone(), columns.clone())),
            }
            tables.push((view, columns));
        }
        self.databases.push(tables);
        Ok(())
    }

    /// Puts temporary views of the well-known names over all databases, with `window` cut out of the records.
    fn make_views(&self, window: Option<&Window>) -> Result<(), QueryError> {
        let mut sql = String::new();
        for (base, columns) in &self.tables {
            let mut selects = Vec::new();
            for (index, tables) in self.databases.iter().enumerate() {
                let Some((_, own)) = tables.iter().find(|(name, _)| name == base) else {
                    continue;
                };
                let list: Vec<String> = columns
                    .iter()
                    .map(|column| {
                        if own.contains(column) {
                            identifier(column)
                        } else {
                            // The column is from a later minor version of the schema.
                            format!("NULL AS {}", identifier(column))
                        }
                    })
                    .collect();
                let condition = window.map_or_else(String::new, |window| condition(base, window));
                selects.push(format!(
                    "SELECT {} FROM db{index}.{}{condition}",
                    list.join(", "),
                    identifier(base)
                ));
            }
            sql += &format!(
                "DROP VIEW IF EXISTS temp.{name}; CREATE TEMPORARY VIEW {name} AS {};\n",
                selects.join(" UNION ALL "),
                name = identifier(base)
            );
        }
        let has = |name: &str| self.tables.iter().any(|(base, _)| base == name);
        let all_have = |bases: &[&str], have: fn(&[String]) -> bool| {
            bases.iter().all(|base| {
                let mut tables = self.tables.iter();
                let found = tables.find(|(name, _)| name == base);
                found.is_some_and(|(_, columns)| have(columns))
            })
        };
        let columns = LaterColumns {
            graphs: all_have(
                &["rocpd_kernel_dispatch", "rocpd_memory_copy"],
                has_graph_columns,
            ),
            replays: all_have(&["rocpd_kernel_dispatch"], has_replay_column),
        };
        for statement in data_views(has, columns) {
            let name = identifier(view_name(&statement).unwrap_or_default());
            sql += &format!(
                "DROP VIEW IF EXISTS temp.{name}; {};\n",
                statement.replacen("CREATE VIEW", "CREATE TEMPORARY VIEW", 1)
            );
        }
        self.connection.set_trust(Trust::Own);
        let made = self.connection.execute_batch(&sql);
        made.map_err(|error| failed(&error, ""))
    }

    /// Converts an error of a statement of rpd or of the user.
    fn failed(&self, error: &rusqlite::Error, sql: &str) -> QueryError {
        use Problem::{Refused, TooLong, TooMuch};
        let message = match self.connection.guard_problem(error) {
            Some(Refused(what)) => format!(
                "{what} is refused: databases are only read, and other files are not touched; temporary tables and \
                 views are allowed"
            ),
            Some(TooLong(seconds)) => format!(
                "it took more than {seconds} s of processor time and was stopped; --time-limit SECONDS allows more"
            ),
            Some(TooMuch(mib)) => {
                format!(
                    "it took more than {mib} MiB of memory and was stopped; select less at once"
                )
            }
            _ => return failed(error, sql),
        };
        QueryError::Sql {
            message,
            position: None,
        }
    }

    /// Leaves only the records that `window` keeps in all views.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn set_window(&self, window: &Window) -> Result<(), QueryError> {
        self.can_be_cut()?;
        self.make_views(Some(window))
    }

    /// First start and last end of all records.
    ///
    /// # Errors
    /// When a database is damaged.
    pub fn span(&self) -> Result<Option<(u64, u64)>, QueryError> {
        self.can_be_cut()?;
        let sql = "SELECT min(a), max(b) FROM (
            SELECT min(start) a, max(\"end\") b FROM rocpd_region
            UNION ALL SELECT min(timestamp), max(timestamp) FROM rocpd_sample
            UNION ALL SELECT min(start), max(\"end\") FROM rocpd_kernel_dispatch
            UNION ALL SELECT min(start), max(\"end\") FROM rocpd_memory_copy
            UNION ALL SELECT min(start), max(\"end\") FROM rocpd_memory_allocate)";
        self.begin_reading();
        self.connection
            .query_row(sql, [], |row| {
                let (first, last): (Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?);
                Ok(first
                    .zip(last)
                    .map(|(a, b)| (a.cast_unsigned(), b.cast_unsigned())))
            })
            .map_err(|error| self.failed(&error, sql))
    }

    /// Times of the markers with this message.
    ///
    /// # Errors
    /// When a database is damaged.
    pub fn markers(&self, message: &str) -> Result<Vec<(u64, u64)>, QueryError> {
        self.can_be_cut()?;
        let sql = "SELECT start, \"end\" FROM regions_and_samples WHERE category LIKE 'MARKER%'
            AND json_extract(extdata, '$.message') = ?1 ORDER BY start";
        let read = || -> rusqlite::Result<Vec<(u64, u64)>> {
            let mut statement = self.connection.prepare(sql)?;
            let rows = statement.query_map([message], |row| {
                let (start, end): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok((start.cast_unsigned(), end.cast_unsigned()))
            })?;
            rows.collect()
        };
        self.begin_reading();
        read().map_err(|error| self.failed(&error, sql))
    }

    fn can_be_cut(&self) -> Result<(), QueryError> {
        match &self.rpd_file {
            Some(path) => Err(QueryError::NoWindow(path.clone())),
            None => Ok(()),
        }
    }

    /// Prepares the connection for rpd's own statements.
    fn begin_reading(&self) {
        self.connection.set_trust(Trust::Views);
        self.connection.begin();
    }

    /// Runs statements that have no result of interest.
    ///
    /// # Errors
    /// When SQLite refuses one.
    pub fn run(&self, sql: &str) -> Result<(), QueryError> {
        self.query(sql, |_| Ok(()), |_| Ok(()))
    }

    /// Runs statements. `columns` gets the names of the first one's result that has one, `row` each of its rows.
    ///
    /// # Errors
    /// When SQLite refuses one; when the result cannot be taken.
    pub fn query(
        &self,
        sql: &str,
        mut columns: impl FnMut(Vec<String>) -> std::io::Result<()>,
        mut row: impl FnMut(Vec<Cell>) -> std::io::Result<()>,
    ) -> Result<(), QueryError> {
        self.connection.set_trust(Trust::User);
        match self.limit {
            Limit::BySize => self.connection.begin_for_user(),
            Limit::Seconds(seconds) => {
                let allowed = Duration::from_secs(seconds.get());
                self.connection.begin_within(Some(allowed));
            }
            Limit::None => self.connection.begin_within(None),
        }
        let failed = |error: &rusqlite::Error| self.failed(error, sql);
        let mut batch = Batch::new(&self.connection, sql);
        let mut has_result = false;
        while let Some(mut statement) = batch.next().map_err(|error| failed(&error))? {
            let count = statement.column_count();
            // The first result is shown. Statements that follow run for their effects.
            let is_wanted = count > 0 && !has_result;
            if is_wanted {
                has_result = true;
                columns(statement.column_names().map(str::to_owned).collect())?;
            }
            let mut rows = statement.query([]).map_err(|error| failed(&error))?;
            while let Some(found) = rows.next().map_err(|error| failed(&error))? {
                if is_wanted {
                    let cells = (0..count).map(|index| match found.get_ref(index) {
                        Ok(ValueRef::Integer(value)) => Cell::Integer(value),
                        Ok(ValueRef::Real(value)) => Cell::Float(value),
                        Ok(ValueRef::Text(text)) => {
                            Cell::Text(String::from_utf8_lossy(text).into_owned())
                        }
                        Ok(ValueRef::Blob(bytes)) => {
                            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
                            Cell::Text(digits.collect())
                        }
                        _ => Cell::Null,
                    });
                    row(cells.collect())?;
                }
            }
        }
        Ok(())
    }
}

/// The condition that cuts a window out of a table; empty for tables without times.
fn condition(base: &str, window: &Window) -> String {
    let (from, to) = (window.start.0, window.end.0);
    match base {
        "rocpd_region"
        | "rocpd_kernel_dispatch"
        | "rocpd_memory_copy"
        | "rocpd_memory_allocate" => {
            if window.inside {
                format!(" WHERE start >= {from} AND \"end\" <= {to}")
            } else {
                format!(" WHERE start <= {to} AND \"end\" >= {from}")
            }
        }
        "rocpd_sample" => format!(" WHERE timestamp BETWEEN {from} AND {to}"),
        _ => String::new(),
    }
}

/// The view that only databases with call stacks have.
const STACKED: &str = "rpd_api_stack";

/// The statements that make the views that join tables: those of call stacks, PC samples, thread traces, graphs and HIP events if
/// the databases have such tables, over the columns that they have.
pub(super) fn data_views(has: impl Fn(&str) -> bool, columns: LaterColumns) -> Vec<String> {
    let common = views(columns);
    let further = [
        (STACKED, stacks::ANSWERS),
        (samples::SAMPLE, samples::DATA_VIEWS),
        (traces::STREAM, traces::DATA_VIEWS),
        ("rocpd_graph_launch", GRAPH_VIEWS),
        ("rocpd_hip_event", EVENT_VIEWS),
    ];
    let further = further.iter().filter(|(table, _)| has(table));
    std::iter::once(&*common)
        .chain(further.map(|(_, views)| *views))
        .flat_map(|views| views.split(";\n"))
        .map(Names::without_comments)
        .filter(|statement| view_name(statement).is_some())
        .map(str::to_owned)
        .collect()
}

fn failed(error: &rusqlite::Error, sql: &str) -> QueryError {
    if let Some(code) = error.sqlite_error_code() {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DatabaseLocked};
        if matches!(code, DatabaseBusy | DatabaseCorrupt | DatabaseLocked) {
            return QueryError::Sql {
                message: format!("a database {}", Problem::from_sqlite(error)),
                position: None,
            };
        }
    }
    match error {
        rusqlite::Error::SqlInputError {
            msg,
            sql: part,
            offset,
            ..
        } => QueryError::Sql {
            message: msg.clone(),
            position: usize::try_from(*offset)
                .ok()
                .and_then(|offset| position(sql, part, offset)),
        },
        other => QueryError::Sql {
            message: match other {
                rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
                other => other.to_string(),
            },
            position: None,
        },
    }
}

/// Line, column and text at byte `offset` of `part`, which is the rest of `sql` from some statement on.
fn position(sql: &str, part: &str, offset: usize) -> Option<String> {
    let from = sql
        .len()
        .checked_sub(part.len())
        .filter(|&from| sql.get(from..) == Some(part));
    let at = from.or_else(|| sql.find(part))? + offset;
    let (before, rest) = (sql.get(..at)?, sql.get(at..)?);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next()?.chars().count() + 1;
    let near: String = rest
        .chars()
        .take_while(|letter| *letter != '\n')
        .take(30)
        .collect();
    Some(if near.is_empty() {
        format!("line {line}, column {column}")
    } else {
        format!("line {line}, column {column}: {near}")
    })
}
