//! Merges several databases into one: every table is copied as it is, the views are made over all of them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use rusqlite::Result;

use super::connection::Guarded;
use super::error::{Problem, ReadError};
use super::guard::Trust;
use super::query::data_views;
use super::read::list_recordings;
use super::sql::identifier;
use super::stack_views::{self, COMPATIBLE, without_made_up};
use super::tables::{ROW_ID, has_graph_columns, has_replay_column};
use super::{LaterColumns, Names, PRAGMAS, is_known_view, table_views};
use crate::WriteError;
use crate::destination::Destination;
use crate::file::PendingFile;

/// Reason why databases were not merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A database cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Two databases hold the same recording.
    #[error("{} and {} both hold the recording {guid}; name each recording once", first.display(), second.display())]
    SharedGuid {
        /// Identifier of the recording.
        guid: String,
        /// Path of a database that holds the recording.
        first: PathBuf,
        /// Path of the other database that holds the recording.
        second: PathBuf,
    },
    /// The merged database cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes the databases `inputs` into `output`, which appears when it is complete.
///
/// # Errors
/// When one cannot be read, two hold the same recording, or the output cannot be written.
pub fn merge(inputs: &[PathBuf], output: Destination) -> std::result::Result<PathBuf, MergeError> {
    // All inputs are checked before the output is begun, so that a refusal leaves nothing behind.
    let mut holders: HashMap<String, &PathBuf> = HashMap::new();
    for path in inputs {
        let guids = list_recordings(path)?;
        for guid in guids {
            if let Some(first) = holders.insert(guid.clone(), path) {
                return Err(MergeError::SharedGuid {
                    guid,
                    first: first.clone(),
                    second: path.clone(),
                });
            }
        }
    }
    let file = PendingFile::to(output)?;
    let path = file.path().to_owned();
    let refused = |source| WriteError::Sqlite {
        path: path.clone(),
        source,
    };
    // Schemas of the inputs are carried out on this connection, and anybody may have made them.
    let connection = Guarded::create_guarded(file.temporary_path()).map_err(refused)?;
    connection.execute_batch(PRAGMAS).map_err(refused)?;
    let mut views = Views::default();
    let mut found = Recordings::default();
    for path in inputs {
        copy(&connection, path, &mut views, &mut found).map_err(|error| match error {
            Failed::Input(problem) => MergeError::from(ReadError::new(path, problem)),
            Failed::Output(source) => refused(source).into(),
        })?;
    }
    connection.set_trust(Trust::Schema);
    let (further, strings) = found.stack_views();
    let mut later = LaterColumns {
        graphs: true,
        replays: false,
    };
    for (base, selects) in &views.0 {
        let (all, columns) = padded(&connection, selects);
        if matches!(&**base, "rocpd_kernel_dispatch" | "rocpd_memory_copy") {
            later.graphs &= has_graph_columns(&columns);
        }
        if base == "rocpd_kernel_dispatch" {
            later.replays = has_replay_column(&columns);
        }
        let made_up = match base.as_str() {
            "rocpd_string" => &*strings,
            _ => "",
        };
        // A comment at the end of one must not hide the next.
        let sql = format!(
            "CREATE VIEW {} AS {}\n{made_up}",
            identifier(base),
            all.join("\nUNION ALL ")
        );
        make(&connection, "view", base, &sql).map_err(|error| match (error, selects.first()) {
            (Failed::Input(problem), Some((path, _))) => ReadError::new(path, problem).into(),
            (Failed::Input(_), None) => refused(rusqlite::Error::InvalidQuery).into(),
            (Failed::Output(source), _) => MergeError::from(refused(source)),
        })?;
    }
    connection.set_trust(Trust::Schema);
    for statement in data_views(|name| views.0.contains_key(name), later) {
        connection.execute(&statement, []).map_err(refused)?;
    }
    connection.set_trust(Trust::Own);
    for statement in &further {
        connection.execute_batch(statement).map_err(refused)?;
    }
    connection
        .close()
        .map_err(|error| MergeError::from(refused(error)))?;
    Ok(file.finish()?)
}

/// The selects of a view over all inputs, with one list of columns, and these. Schemas of a later version have columns that others
/// lack; rows of those have NULL there. A select that cannot be compiled is left as it is, for SQLite to refuse.
fn padded(connection: &Guarded, selects: &[(PathBuf, String)]) -> (Vec<String>, Vec<String>) {
    let columns_of = |select: &String| -> Option<Vec<String>> {
        let statement = connection.prepare(select).ok()?;
        Some(statement.column_names().map(str::to_owned).collect())
    };
    let lists: Vec<Option<Vec<String>>> = selects
        .iter()
        .map(|(_, select)| columns_of(select))
        .collect();
    let mut all: Vec<String> = Vec::new();
    for column in lists.iter().flatten().flatten() {
        if !all.contains(column) {
            all.push(column.clone());
        }
    }
    let texts = selects.iter().zip(&lists).map(|((_, select), own)| {
        let Some(own) = own.as_ref().filter(|own| **own != all) else {
            return select.clone();
        };
        let list: Vec<String> = all
            .iter()
            .map(|column| {
                if own.contains(column) {
                    identifier(column)
                } else {
                    format!("NULL AS {}", identifier(column))
                }
            })
            .collect();
        format!("SELECT {} FROM ({select}\n)", list.join(", "))
    });
    (texts.collect(), all)
}

/// Selects of the `rocpd_*` views by the names of the views, each with the file that it is from.
#[derive(Default)]
struct Views(BTreeMap<String, Vec<(PathBuf, String)>>);

/// The recordings of all inputs.
#[derive(Default)]
struct Recordings {
    count: usize,
    /// Recordings that rpd wrote with call stacks.
    with_stacks: Vec<Names>,
}

impl Recordings {
    /// Statements that make the views with RPD's names, and the end of the view `rocpd_string`.
    fn stack_views(&self) -> (Vec<String>, String) {
        match (self.count, &*self.with_stacks) {
            (1, [alone]) => (vec![stack_views::statements(alone)], String::new()),
            (_, recordings) => {
                let merged = stack_views::merged(recordings);
                (merged.statements, merged.strings)
            }
        }
    }
}

enum Failed {
    Input(Problem),
    Output(rusqlite::Error),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Failed {
        Failed::Input(problem)
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Failed {
        Failed::Output(error)
    }
}

/// The tables or indices of the input: the name of each, and the statement that makes it.
fn schema(connection: &Guarded, kind: &str) -> std::result::Result<Vec<(String, String)>, Problem> {
    let read = || -> Result<Vec<(String, String)>> {
        let mut statement = connection.prepare(
            "SELECT name, sql FROM input.sqlite_master WHERE type = ?1 AND sql IS NOT NULL
                AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid",
        )?;
        let rows = statement.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    read().map_err(|error| connection.meaning(&error))
}

/// Runs a statement of an input's schema: one statement, which makes the named table or index and does nothing else.
fn make(
    connection: &Guarded,
    kind: &str,
    name: &str,
    sql: &str,
) -> std::result::Result<(), Failed> {
    connection.set_trust(Trust::Schema);
    // This takes one statement and no more.
    let done = connection.execute(sql, []);
    let refused = done
        .as_ref()
        .err()
        .and_then(|error| connection.guard_problem(error));
    connection.set_trust(Trust::Own);
    if let Some(problem) = refused {
        return Err(problem.into());
    }
    match done {
        Err(error) if is_of_output(&error) => return Err(error.into()),
        Err(error) => return Err(Problem::from_sqlite(&error).into()),
        Ok(_) => {}
    }
    let made: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = ?1 AND name = ?2)",
        [kind, name],
        |row| row.get(0),
    )?;
    if made {
        Ok(())
    } else {
        let words = format!("the statement of {kind} {name} makes another one");
        Err(Problem::Damaged(words).into())
    }
}

/// Whether an error can only be about the file that is written.
fn is_of_output(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DiskFull, ReadOnly};
    matches!(error.sqlite_error_code(), Some(DiskFull | ReadOnly))
}

/// Copies the rows of a table.
fn copy_rows(connection: &Guarded, name: &str) -> std::result::Result<(), Failed> {
    let name = identifier(name);
    let error = match connection.execute(
        &format!("INSERT INTO main.{name} SELECT * FROM input.{name}"),
        [],
    ) {
        Ok(_) => return Ok(()),
        Err(error) if is_of_output(&error) => return Err(error.into()),
        Err(error) => error,
    };
    if let Some(problem) = connection.guard_problem(&error) {
        return Err(problem.into());
    }
    // One statement reads and writes. Whether reading alone fails shows which of the two failed.
    let read = || -> Result<()> {
        let mut statement = connection.prepare(&format!("SELECT * FROM input.{name}"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    };
    match read() {
        Err(error) => Err(connection.meaning(&error).into()),
        Ok(())
            if matches!(
                error.sqlite_error_code(),
                Some(rusqlite::ErrorCode::ConstraintViolation)
            ) =>
        {
            Err(Problem::from_sqlite(&error).into())
        }
        Ok(()) => Err(error.into()),
    }
}

fn copy(
    connection: &Guarded,
    path: &Path,
    views: &mut Views,
    recordings: &mut Recordings,
) -> std::result::Result<(), Failed> {
    connection.attach(path, "input")?;
    let tables = schema(connection, "table")?;
    connection.set_trust(Trust::Own);
    connection.execute_batch("BEGIN")?;
    for (name, sql) in &tables {
        make(connection, "table", name, sql)?;
    }
    // Before the rows: SQLite copies the entries of equal indices as they are, and would sort them again otherwise.
    for (name, sql) in schema(connection, "index")? {
        make(connection, "index", &name, &sql)?;
    }
    for (name, _) in &tables {
        copy_rows(connection, name)?;
    }
    let found = schema(connection, "view")?;
    // Every recording of an input has tables of its own, with its suffix; one of them is enough to find it.
    let suffixes: Vec<String> = tables
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("rocpd_metadata"))
        .map(str::to_owned)
        .collect();
    for suffix in &suffixes {
        recordings.count += 1;
        let needed = ["rpd_api_stack", "rpd_stack_frame", "rocpd_stackframe"];
        let has = |base: &str| (tables.iter()).any(|(name, _)| *name == format!("{base}{suffix}"));
        if is_plain(suffix) && needed.into_iter().all(has) {
            recordings.with_stacks.push(names_of(connection, suffix)?);
        }
    }
    let mut bases: Vec<String> = found
        .iter()
        .map(|(name, _)| name.clone())
        .filter(|name| is_known_view(name) && !COMPATIBLE.contains(&&**name))
        .collect();
    // Views that got lost are made again where their tables are there.
    for (name, _) in &tables {
        for suffix in suffixes.iter().filter(|suffix| !suffix.is_empty()) {
            if let Some(base) = name.strip_suffix(&**suffix)
                && is_known_view(base)
                && !COMPATIBLE.contains(&base)
                && !bases.iter().any(|known| known == base)
            {
                bases.push(base.to_owned());
            }
        }
    }
    for base in bases {
        let sql = found.iter().find(|(name, _)| *name == base);
        let selects = views.0.entry(base.clone()).or_default();
        match sql.and_then(|(_, sql)| select_of(sql)) {
            // Ids that the views of one recording generate are not distinct over several.
            Some(select) => selects.push((path.to_owned(), without_made_up(select).to_owned())),
            None => {
                for suffix in &suffixes {
                    if tables
                        .iter()
                        .any(|(name, _)| *name == format!("{base}{suffix}"))
                    {
                        selects.push((path.to_owned(), lost_view(connection, &base, suffix)?));
                    }
                }
            }
        }
    }
    connection.execute_batch("COMMIT; DETACH DATABASE input")?;
    Ok(())
}

/// The query of a view: the text after the first AS outside of names and comments.
fn select_of(sql: &str) -> Option<&str> {
    let mut rest = sql;
    loop {
        let first = rest.chars().next()?;
        let end = match first {
            '"' | '`' | '\'' => rest[1..].find(first)? + 2,
            '[' => rest.find(']')? + 1,
            '-' if rest.starts_with("--") => rest.find('\n')? + 1,
            '/' if rest.starts_with("/*") => rest.find("*/")? + 2,
            _ if is_of_word(first) => rest.find(|letter| !is_of_word(letter))?,
            _ => first.len_utf8(),
        };
        let (word, behind) = rest.split_at(end);
        if word.eq_ignore_ascii_case("as") {
            return Some(behind.trim().trim_end_matches(';'));
        }
        rest = behind;
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$')
}

/// The select of a view over one table: ours, which has the columns of the schema in its order, where the table has them, else all
/// of the table.
fn lost_view(connection: &Guarded, base: &str, suffix: &str) -> Result<String> {
    let table = identifier(&format!("{base}{suffix}"));
    let all = format!("SELECT * FROM {table}");
    let ours = table_views().find(|statement| super::names::view_name(statement) == Some(base));
    let Some(ours) = ours.as_deref().and_then(select_of) else {
        return Ok(all);
    };
    if base == "rocpd_metadata" || !is_plain(suffix) {
        return Ok(all);
    }
    let mut ours = names_of(connection, suffix)?.fill_in(ours);
    // Other writers give rows and their events different ids.
    let other = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE event_id IS NOT id)");
    if ours.contains(ROW_ID)
        && connection
            .query_row(&other, [], |row| row.get(0))
            .unwrap_or(true)
    {
        ours = ours.replace(ROW_ID, "");
    }
    Ok(match connection.prepare(&ours) {
        Ok(_) => ours,
        Err(_) => all,
    })
}

/// The constants of a recording that was copied.
fn names_of(connection: &Guarded, suffix: &str) -> Result<Names> {
    let process = identifier(&format!("rocpd_info_process{suffix}"));
    let process = format!("SELECT guid, nid, id FROM {process} LIMIT 1");
    connection.query_row(&process, [], |row| {
        Ok(Names {
            guid: row.get(0)?,
            suffix: suffix.to_owned(),
            nid: row.get(1)?,
            pid: row.get(2)?,
        })
    })
}

/// Whether our statements can name the tables with this suffix: they take it as it is.
fn is_plain(suffix: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    suffix.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_of_views() {
        assert_eq!(
            select_of("CREATE VIEW `rocpd_asas` AS\nSELECT\n  *\nFROM\n `x`;"),
            Some("SELECT\n  *\nFROM\n `x`")
        );
        assert_eq!(
            select_of("CREATE VIEW IF NOT EXISTS v as SELECT 1 AS a"),
            Some("SELECT 1 AS a")
        );
        assert_eq!(
            select_of("CREATE VIEW \"a\"\" AS b\" -- AS c\n/* AS d */AS SELECT 1"),
            Some("SELECT 1")
        );
        assert_eq!(
            select_of("CREATE VIEW [x AS y] AS SELECT 1"),
            Some("SELECT 1")
        );
        assert_eq!(select_of("CREATE TABLE t (a)"), None);
    }
}
