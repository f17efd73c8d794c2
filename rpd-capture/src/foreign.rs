//! Databases of HIPTracer, which are recognised to explain how they are opened.

use std::path::Path;

use rpd_formats::rocpd::Guarded;

use crate::CaptureError;

/// A database of HIPTracer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignDatabase {
    /// Names of the tables, with their numbers of rows.
    pub tables: Vec<(String, u64)>,
}

/// Recognises a database of HIPTracer; `None` for any other file.
///
/// # Errors
/// When it is one and cannot be read.
pub fn foreign(path: &Path) -> Result<Option<ForeignDatabase>, CaptureError> {
    // The database of a capture may be reachable under another name.
    let is_capture = std::fs::canonicalize(path)
        .is_ok_and(|path| path.file_name().is_some_and(|name| name == crate::DATABASE));
    if !path.is_file() || is_capture {
        return Ok(None);
    }
    let Ok(database) = Guarded::read(path) else {
        return Ok(None);
    };
    let failed = |error| match database.guard_problem(&error) {
        Some(problem) => CaptureError::damaged(path, problem.to_string()),
        None => CaptureError::database(path)(error),
    };
    let Ok(mut statement) =
        database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    else {
        return Ok(None);
    };
    let names: Vec<String> = statement
        .query_map([], |row| row.get(0))
        .and_then(Iterator::collect)
        .map_err(failed)?;
    // Files of other programs may have any names; these three tables are in every database of HIPTracer.
    if !["Events", "EventMalloc", "EventLaunch"]
        .iter()
        .all(|wanted| names.iter().any(|name| name == wanted))
    {
        return Ok(None);
    }
    let tables = names
        .into_iter()
        .map(|name| {
            let sql = format!("SELECT count(*) FROM \"{}\"", name.replace('"', "\"\""));
            let rows: i64 = database.query_row(&sql, [], |row| row.get(0))?;
            Ok((name, rows as u64))
        })
        .collect::<rusqlite::Result<_>>()
        .map_err(failed)?;
    Ok(Some(ForeignDatabase { tables }))
}
