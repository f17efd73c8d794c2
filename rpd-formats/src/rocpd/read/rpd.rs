//! Call stacks in files of RPD (ROCm/rocmProfileData), written by RPD or by `rpd export --rpd`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::scan::{integer, text};
use super::{Guarded, Problem, ReadError};

/// Calls of a file in the order of their ids, each with its frames from the innermost on.
const CALLS: &str = "SELECT a.id, n.string, a.\"end\" - a.start, t.string
    FROM rocpd_api a
        LEFT JOIN rocpd_string n ON n.id = a.apiName_id
        LEFT JOIN rocpd_stackframe f ON f.api_ptr_id = a.id
        LEFT JOIN rocpd_string t ON t.id = f.name_id
    ORDER BY a.id, f.depth";
/// Time of the work that calls requested.
const WORK: &str = "SELECT x.api_id, sum(o.\"end\" - o.start) FROM rocpd_api_ops x JOIN rocpd_op o ON o.id = x.op_id
    GROUP BY x.api_id";
/// Bytes that calls copied.
const BYTES: &str = "SELECT api_ptr_id, size FROM rocpd_copyapi";

/// A file of RPD with call stacks.
#[derive(Debug)]
pub struct RpdStacks {
    path: PathBuf,
    connection: Guarded,
}

/// A call in such a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RpdCall {
    /// Name of the called function.
    pub function: String,
    /// Duration in nanoseconds.
    pub duration: u64,
    /// Time of the work that it requested, in nanoseconds.
    pub gpu: u64,
    /// Bytes that it copied.
    pub bytes: u64,
    /// Texts of its frames, the call itself first; none when it has no stack.
    pub frames: Vec<String>,
}

/// Whether a file has these tables. In databases of rpd, what has names of RPD is a view.
pub(super) fn has_tables(connection: &Guarded, names: &[&str]) -> Result<bool, Problem> {
    let tables = connection.texts("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let has = |name: &&str| tables.iter().any(|table| table == *name);
    Ok(names.iter().all(has))
}

impl RpdStacks {
    /// Opens a file; `None` when it is not a file of RPD with a table of frames.
    ///
    /// # Errors
    /// When it cannot be read, with what is wrong and what to do.
    pub fn open(path: &Path) -> Result<Option<RpdStacks>, ReadError> {
        let fail = |problem| ReadError::new(path, problem);
        let connection = Guarded::read(path).map_err(fail)?;
        let has_stacks = has_tables(&connection, &["rocpd_api", "rocpd_stackframe"]);
        Ok(has_stacks.map_err(fail)?.then(|| RpdStacks {
            path: path.to_owned(),
            connection,
        }))
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `take` with each call.
    ///
    /// # Errors
    /// When SQLite finds the file damaged, locked or incomplete.
    pub fn each_call(&self, take: impl FnMut(&RpdCall)) -> Result<(), ReadError> {
        self.connection.begin();
        self.read(take).map_err(|error| {
            let problem: Problem = self.connection.meaning(&error);
            ReadError::new(&self.path, problem)
        })
    }

    fn read(&self, mut take: impl FnMut(&RpdCall)) -> rusqlite::Result<()> {
        let (work, bytes) = (self.numbers(WORK)?, self.numbers(BYTES)?);
        let mut statement = self.connection.prepare(CALLS)?;
        let mut rows = statement.query([])?;
        let mut call = RpdCall::default();
        let mut current = None;
        while let Some(row) = rows.next()? {
            let id = integer(row, 0);
            if current != Some(id) {
                if current.is_some() {
                    take(&call);
                }
                current = Some(id);
                let number = |numbers: &HashMap<i64, u64>| numbers.get(&id).copied().unwrap_or(0);
                call = RpdCall {
                    function: text(row, 1),
                    duration: u64::try_from(integer(row, 2)).unwrap_or(0),
                    gpu: number(&work),
                    bytes: number(&bytes),
                    frames: Vec::new(),
                };
            }
            let frame = text(row, 3);
            if !frame.is_empty() {
                call.frames.push(frame);
            }
        }
        if current.is_some() {
            take(&call);
        }
        Ok(())
    }

    /// Numbers of calls by their ids.
    fn numbers(&self, sql: &str) -> rusqlite::Result<HashMap<i64, u64>> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut numbers = HashMap::new();
        while let Some(row) = rows.next()? {
            let number = u64::try_from(integer(row, 1)).unwrap_or(0);
            numbers.insert(integer(row, 0), number);
        }
        Ok(numbers)
    }
}
