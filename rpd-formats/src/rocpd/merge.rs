//! Several databases put into one: every table is copied as it is, the views are made over all of them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Result};

use super::query::data_views;
use super::read::{Problem, ReadError, list_recordings};
use super::{Names, PRAGMAS, VIEWS};
use crate::WriteError;
use crate::file::PendingFile;

/// Why databases were not merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A database cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Two of them hold the same recording.
    #[error("{} and {} both hold the recording {guid}; name each recording once", first.display(), second.display())]
    SharedGuid {
        /// The recording.
        guid: String,
        /// A file that holds it.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// Their schema versions differ.
    #[error("{} has schema version {found}, the others have {expected}; only equal versions can be merged", path.display())]
    Versions {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// That of the first.
        expected: String,
    },
    /// The output is one of the inputs.
    #[error("{} is an input too; give the output another name", .0.display())]
    IntoItself(PathBuf),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes the databases `inputs` into `output`, which appears when it is complete.
///
/// # Errors
/// When one cannot be read, two hold the same recording, or the output cannot be written.
pub fn merge(inputs: &[PathBuf], output: &Path) -> std::result::Result<PathBuf, MergeError> {
    let canonical = output.canonicalize().ok();
    let mut holders: HashMap<String, &PathBuf> = HashMap::new();
    let mut version: Option<String> = None;
    for path in inputs {
        if canonical.is_some() && path.canonicalize().ok() == canonical {
            return Err(MergeError::IntoItself(output.to_owned()));
        }
        let (found, guids) = list_recordings(path)?;
        let expected = version.get_or_insert_with(|| found.clone());
        if *expected != found {
            return Err(MergeError::Versions {
                path: path.clone(),
                found,
                expected: expected.clone(),
            });
        }
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
    let file = PendingFile::create(output.to_owned())?;
    let refused = |source| WriteError::Sqlite {
        path: output.to_owned(),
        source,
    };
    let connection = Connection::open(file.temporary_path()).map_err(refused)?;
    connection.execute_batch(PRAGMAS).map_err(refused)?;
    let mut views = Views::default();
    for path in inputs {
        copy(&connection, path, &mut views).map_err(|error| match error {
            Failed::Input(problem) => MergeError::from(ReadError::new(path, problem)),
            Failed::Output(source) => refused(source).into(),
        })?;
    }
    let finish = || -> Result<()> {
        for (base, selects) in &views.0 {
            let all = selects.join(" UNION ALL ");
            connection.execute_batch(&format!("CREATE VIEW \"{base}\" AS {all}"))?;
        }
        for statement in data_views() {
            connection.execute_batch(statement)?;
        }
        Ok(())
    };
    finish().map_err(refused)?;
    connection
        .close()
        .map_err(|(_, error)| MergeError::from(refused(error)))?;
    Ok(file.finish()?)
}

/// Selects of the `rocpd_*` views by their names.
#[derive(Default)]
struct Views(BTreeMap<String, Vec<String>>);

enum Failed {
    Input(Problem),
    Output(rusqlite::Error),
}

/// An error while rows go from one to the other: a damaged input shows as such, the rest is the output's.
impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Failed {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase};
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseCorrupt | DatabaseLocked | NotADatabase) => {
                Failed::Input(Problem::from_sqlite(&error))
            }
            _ => Failed::Output(error),
        }
    }
}

fn copy(
    connection: &Connection,
    path: &Path,
    views: &mut Views,
) -> std::result::Result<(), Failed> {
    connection.execute(
        "ATTACH DATABASE ?1 AS input",
        [format!("file:{}?mode=ro", super::query::encoded(path))],
    )?;
    let master = |kind: &str| -> Result<Vec<(String, String)>> {
        let mut statement = connection.prepare(
            "SELECT name, sql FROM input.sqlite_master WHERE type = ?1 AND sql IS NOT NULL
                AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid",
        )?;
        let rows = statement.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    let tables = master("table")?;
    connection.execute_batch("BEGIN")?;
    for (name, sql) in &tables {
        connection.execute_batch(sql)?;
        connection.execute_batch(&format!(
            "INSERT INTO main.\"{name}\" SELECT * FROM input.\"{name}\""
        ))?;
    }
    for kind in ["index", "trigger"] {
        for (_, sql) in master(kind)? {
            connection.execute_batch(&sql)?;
        }
    }
    let found = master("view")?;
    let suffixes: Vec<String> = tables
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("rocpd_metadata"))
        .map(str::to_owned)
        .collect();
    let mut bases: Vec<String> = found
        .iter()
        .map(|(name, _)| name.clone())
        .filter(|name| name.starts_with("rocpd_"))
        .collect();
    // Views that got lost are made again where their tables are there.
    for (name, _) in &tables {
        for suffix in suffixes.iter().filter(|suffix| !suffix.is_empty()) {
            if let Some(base) = name.strip_suffix(&**suffix)
                && base.starts_with("rocpd_")
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
            Some(select) => selects.push(select.to_owned()),
            None => {
                for suffix in &suffixes {
                    if tables
                        .iter()
                        .any(|(name, _)| *name == format!("{base}{suffix}"))
                    {
                        selects.push(lost_view(connection, &base, suffix)?);
                    }
                }
            }
        }
    }
    connection.execute_batch("COMMIT; DETACH DATABASE input")?;
    Ok(())
}

/// What a view selects.
fn select_of(sql: &str) -> Option<&str> {
    let mut from = 0;
    for word in sql.split_ascii_whitespace() {
        let at = from + sql[from..].find(word)?;
        from = at + word.len();
        if word.eq_ignore_ascii_case("as") {
            return Some(sql[from..].trim().trim_end_matches(';'));
        }
    }
    None
}

/// The select of a pass-through view: ours where the table is stored compactly, else all of the table.
fn lost_view(connection: &Connection, base: &str, suffix: &str) -> Result<String> {
    let table = format!("{base}{suffix}");
    let columns: Vec<String> = connection
        .prepare(&format!("PRAGMA main.table_info(\"{table}\")"))?
        .query_map([], |row| row.get(1))?
        .collect::<Result<_>>()?;
    let all = format!("SELECT * FROM \"{table}\"");
    if base == "rocpd_metadata" || columns.iter().any(|column| column == "guid") {
        return Ok(all);
    }
    let process = format!("SELECT guid, nid, id FROM \"rocpd_info_process{suffix}\" LIMIT 1");
    let names = connection.query_row(&process, [], |row| {
        Ok(Names {
            guid: row.get(0)?,
            suffix: suffix.to_owned(),
            nid: row.get(1)?,
            pid: row.get(2)?,
        })
    })?;
    let ours = VIEWS
        .split(";\n")
        .map(Names::without_comments)
        .find(|statement| super::query::view_name(statement) == Some(base));
    Ok(ours
        .and_then(select_of)
        .map_or(all, |select| names.fill_in(select)))
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
        assert_eq!(select_of("CREATE TABLE t (a)"), None);
    }
}
