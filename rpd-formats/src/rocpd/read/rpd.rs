//! Call stacks in files of RPD (ROCm/rocmProfileData), written by RPD or by `rpd export --rpd`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rpd_core::session::{LONGEST_DURATION, LoadOptions};
use rpd_core::storage::sorted::{Keyed, Sorted, Sorter};
use rusqlite::Statement;
use zerocopy::{Immutable, IntoBytes};

use super::super::unstored;
use super::scan::{integer, text};
use super::{Guarded, Problem, ReadError};

/// Calls of a file in the order of their ids.
const CALLS: &str = "SELECT id, apiName_id, \"end\" - start FROM rocpd_api ORDER BY id";
/// Frames of calls, from the innermost on when they are sorted.
const FRAMES: &str = "SELECT api_ptr_id, depth, name_id FROM rocpd_stackframe";
const TEXT: &str = "SELECT string FROM rocpd_string WHERE id = ?1";
/// Time of the work that calls requested.
const WORK: &str = "SELECT x.api_id, sum(o.\"end\" - o.start) FROM rocpd_api_ops x JOIN rocpd_op o ON o.id = x.op_id
    WHERE o.\"end\" - o.start BETWEEN 0 AND 315360000000000000 GROUP BY x.api_id";
/// Bytes that calls copied.
const BYTES: &str = "SELECT api_ptr_id, size FROM rocpd_copyapi";

/// A file of RPD with call stacks.
#[derive(Debug)]
pub struct RpdStacks {
    path: PathBuf,
    connection: Guarded,
}

/// Calls in such a file that have the same function and the same frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RpdCalls {
    /// Name of the called function.
    pub function: String,
    /// Number of calls.
    pub calls: u64,
    /// Sum of their durations in nanoseconds.
    pub duration: u64,
    /// Time of the work that they requested, in nanoseconds.
    pub gpu: u64,
    /// Bytes that they copied.
    pub bytes: u64,
    /// Texts of their frames, the call itself first; none when they have no stack.
    pub frames: Vec<String>,
}

/// A frame of a call.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct Frame {
    /// Id of the call.
    call: i64,
    /// 0 for the innermost frame.
    depth: i64,
    /// Id of the frame's text.
    text: i64,
}

impl Keyed for Frame {
    type Key = (i64, i64);

    fn key(&self) -> (i64, i64) {
        (self.call, self.depth)
    }
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

    /// Calls `take` with all calls, those of a function with the same frames at once, in the order of the first of them.
    ///
    /// # Errors
    /// When SQLite finds the file damaged, locked or incomplete, or rows cannot be put in order beside it.
    pub fn each_stack(&self, take: impl FnMut(&RpdCalls)) -> Result<(), ReadError> {
        self.connection.begin();
        self.read(take).map_err(|error| {
            let problem: Problem = self.connection.meaning(&error);
            ReadError::new(&self.path, problem)
        })
    }

    fn read(&self, mut take: impl FnMut(&RpdCalls)) -> rusqlite::Result<()> {
        let (work, bytes) = (self.numbers(WORK)?, self.numbers(BYTES)?);
        let mut frames = self.frames()?.peekable();
        // A program has few different stacks, whose texts are read once.
        let mut known: HashMap<(i64, Vec<i64>), usize> = HashMap::new();
        let mut stacks: Vec<RpdCalls> = Vec::new();
        let mut statement = self.connection.prepare(CALLS)?;
        let mut rows = statement.query([])?;
        let mut of_call = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, function) = (integer(row, 0), integer(row, 1));
            of_call.clear();
            // Those before are frames of no call.
            while let Some(frame) = frames.next_if(|frame| frame.call <= id) {
                if frame.call == id {
                    of_call.push(frame.text);
                }
            }
            let stack = (function, std::mem::take(&mut of_call));
            let place = *known.entry(stack).or_insert_with(|| {
                stacks.push(RpdCalls::default());
                stacks.len() - 1
            });
            let number = |numbers: &HashMap<i64, u64>| numbers.get(&id).copied().unwrap_or(0);
            let calls = &mut stacks[place];
            calls.calls += 1;
            let duration = u64::try_from(integer(row, 2)).ok();
            let duration = duration.filter(|duration| *duration <= LONGEST_DURATION);
            let duration = duration.unwrap_or(0);
            calls.duration = calls.duration.saturating_add(duration);
            calls.gpu = calls.gpu.saturating_add(number(&work));
            calls.bytes = calls.bytes.saturating_add(number(&bytes));
        }
        let mut texts = Texts {
            find: self.connection.prepare(TEXT)?,
            known: HashMap::new(),
        };
        for ((function, frames), place) in known {
            let calls = &mut stacks[place];
            calls.function = texts.get(function)?;
            for frame in frames {
                let text = texts.get(frame)?;
                if !text.is_empty() {
                    calls.frames.push(text);
                }
            }
        }
        stacks.iter().for_each(&mut take);
        Ok(())
    }

    /// The frames of all calls.
    fn frames(&self) -> rusqlite::Result<Sorted<Frame>> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let storage = LoadOptions::default().storage(directory);
        let mut frames = Sorter::new(Some(&storage));
        let mut statement = self.connection.prepare(FRAMES)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let frame = Frame {
                call: integer(row, 0),
                depth: integer(row, 1),
                text: integer(row, 2),
            };
            frames.push(frame).map_err(unstored)?;
        }
        frames.finish().map_err(unstored)
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

/// Texts by their ids.
struct Texts<'a> {
    find: Statement<'a>,
    known: HashMap<i64, String>,
}

impl Texts<'_> {
    /// Empty for an id that no text has.
    fn get(&mut self, id: i64) -> rusqlite::Result<String> {
        if let Some(known) = self.known.get(&id) {
            return Ok(known.clone());
        }
        let mut rows = self.find.query([id])?;
        let found = rows.next()?.map_or_else(String::new, |row| text(row, 0));
        self.known.insert(id, found.clone());
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_leave_out_what_statistics_leave_out() {
        let longest = LONGEST_DURATION.to_string();
        for sql in [
            WORK,
            include_str!("../views.sql"),
            include_str!("../stacks_answers.sql"),
        ] {
            let mut limits = sql.split("BETWEEN 0 AND ").skip(1).peekable();
            assert!(limits.peek().is_some(), "{sql}");
            assert!(limits.all(|rest| rest.starts_with(&longest)), "{sql}");
        }
    }
}
