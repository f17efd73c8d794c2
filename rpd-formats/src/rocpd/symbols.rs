//! Writes symbols into a database: the only change that is made to an existing database.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rpd_core::session::Session;
use rpd_core::session::shown::{Expanded, FrameKind};
use rpd_core::session::stacks::ShownFrames;
use rusqlite::{Connection, params};

use super::connection::Guarded;
use super::error::{Problem, ReadError};
use super::guard::Trust;
use super::names::suffix;
use super::sql::identifier;

/// Metadata tag: whether frames of GPU runtimes are shown.
pub(super) const RUNTIME_FRAMES: &str = "stacks_runtime_frames";
/// Metadata tag: whether frames of interpreters are shown.
pub(super) const INTERPRETER_FRAMES: &str = "stacks_interpreter_frames";

/// Value of the column `evidence` for the frame that represents a call.
const CALL: &str = "api";

/// A row of `rpd_frame`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameRow<'a> {
    /// Row id of the frame's location in code.
    pub location: u32,
    /// 0 for the innermost of the functions that were inlined there; -1 for the traced call at that address, -2 for a
    /// traced call without an address.
    pub inline_depth: i64,
    /// Name of the function; empty when it is not known.
    pub function: &'a str,
    /// Path of the source file; empty when it is not known.
    pub file: &'a str,
    /// Line in the source file; 0 when it is not known.
    pub line: u32,
    /// Column in the line; 0 when it is not known.
    pub column: u32,
    /// Source of the information about the frame.
    pub evidence: &'a str,
}

/// Symbols of one recording.
#[derive(Debug, Clone, Default)]
pub struct Symbols<'a> {
    /// Frames; their ids are their places in this list, from 1.
    pub frames: Vec<FrameRow<'a>>,
    /// Stacks, each with the indices of its frames in `frames`, innermost first.
    pub stacks: Vec<(u32, Vec<u32>)>,
}

impl<'a> Symbols<'a> {
    /// The rows of a session: all frames that were found, those that no stack shows too, and those of calls.
    pub fn from_session(session: &'a Session, expanded: &Expanded) -> Symbols<'a> {
        let text = |id| session.strings.get(id);
        let stored = &session.stacks.frames;
        let mut symbols = Symbols::default();
        for frame in stored {
            symbols.frames.push(FrameRow {
                location: frame.location,
                inline_depth: frame.inline_depth.into(),
                function: text(frame.function),
                file: text(frame.file),
                line: frame.line,
                column: frame.column,
                evidence: &frame.evidence,
            });
        }
        // Row index of each shown frame.
        let mut index_of = Vec::with_capacity(expanded.frames.len());
        for frame in &expanded.frames {
            let found = match frame.kind {
                FrameKind::Call { .. } => None,
                FrameKind::Physical | FrameKind::Inlined | FrameKind::Source => stored
                    .binary_search_by_key(&(frame.location, frame.inline_depth), |stored| {
                        (stored.location, stored.inline_depth)
                    })
                    .ok(),
            };
            index_of.push(found.unwrap_or(symbols.frames.len()) as u32);
            if found.is_none() {
                let (inline_depth, evidence) = match frame.kind {
                    FrameKind::Call { has_address: true } => (-1, CALL),
                    FrameKind::Call { has_address: false } => (-2, CALL),
                    FrameKind::Physical | FrameKind::Inlined | FrameKind::Source => (0, ""),
                };
                symbols.frames.push(FrameRow {
                    location: frame.location,
                    inline_depth,
                    function: text(frame.function),
                    file: text(frame.file),
                    line: frame.line,
                    column: frame.column,
                    evidence,
                });
            }
        }
        symbols.stacks = expanded
            .stacks
            .iter()
            .map(|(&stack, frames)| {
                let frames = frames.iter().map(|&frame| index_of[frame as usize]);
                (stack, frames.collect())
            })
            .collect();
        symbols.stacks.sort_unstable_by_key(|(stack, _)| *stack);
        symbols
    }
}

/// A database that symbols are written into, all at once.
#[derive(Debug)]
pub struct SymbolWriter {
    path: PathBuf,
    connection: Guarded,
}

impl SymbolWriter {
    /// Opens a database and begins a change, which [`SymbolWriter::commit`] ends. Dropped before that, it leaves the
    /// database as it was.
    ///
    /// # Errors
    /// When it cannot be read or written, or another program has locked it.
    pub fn begin(path: &Path) -> Result<SymbolWriter, ReadError> {
        let fail = |problem| ReadError::new(path, problem);
        let connection = Guarded::write_symbols(path).map_err(fail)?;
        connection.begin_within(None);
        connection.set_trust(Trust::Symbols);
        let begun = connection.execute_batch("BEGIN IMMEDIATE");
        begun.map_err(|error| fail(connection.meaning(&error)))?;
        Ok(SymbolWriter {
            path: path.to_owned(),
            connection,
        })
    }

    /// Replaces the symbols of one recording, and notes which frames its stacks show.
    ///
    /// # Errors
    /// When the database cannot be written, or the recording has no tables of stacks.
    pub fn replace(
        &self,
        guid: &str,
        symbols: &Symbols<'_>,
        shown: ShownFrames,
    ) -> Result<(), ReadError> {
        let written = self.write(&suffix(guid), symbols, shown);
        written.map_err(|error| self.problem(&error))
    }

    /// Commits the change.
    ///
    /// # Errors
    /// When the change cannot be written; nothing is changed then.
    pub fn commit(self) -> Result<(), ReadError> {
        let done = self.connection.execute_batch("COMMIT");
        done.map_err(|error| self.problem(&error))?;
        let Self { path, connection } = self;
        let closed = connection.close();
        closed.map_err(|error| ReadError::new(&path, Problem::from_sqlite(&error)))
    }

    fn problem(&self, error: &rusqlite::Error) -> ReadError {
        let problem = match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::DiskFull) => {
                Problem::NotWritable(std::io::Error::other(error.to_string()))
            }
            _ => self.connection.meaning(error),
        };
        ReadError::new(&self.path, problem)
    }

    fn write(
        &self,
        suffix: &str,
        symbols: &Symbols<'_>,
        shown: ShownFrames,
    ) -> rusqlite::Result<()> {
        let connection = &self.connection;
        let table = |base: &str| identifier(&format!("{base}{suffix}"));
        let (frames, stacks) = (table("rpd_frame"), table("rpd_stack_frame"));
        connection.execute(&format!("DELETE FROM {stacks}"), [])?;
        connection.execute(&format!("DELETE FROM {frames}"), [])?;
        insert(connection, suffix, symbols)?;
        let metadata = table("rocpd_metadata");
        for (tag, is_set) in [
            (RUNTIME_FRAMES, shown.runtime),
            (INTERPRETER_FRAMES, shown.interpreter),
        ] {
            connection.execute(&format!("DELETE FROM {metadata} WHERE tag = ?1"), [tag])?;
            connection.execute(
                &format!("INSERT INTO {metadata} (tag, value) VALUES (?1, ?2)"),
                params![tag, if is_set { "1" } else { "0" }],
            )?;
        }
        Ok(())
    }
}

/// Writes symbols into the tables of a recording, which have none.
pub(super) fn insert(
    connection: &Connection,
    suffix: &str,
    symbols: &Symbols<'_>,
) -> rusqlite::Result<()> {
    let table = |base: &str| identifier(&format!("{base}{suffix}"));
    let (frames, stacks) = (table("rpd_frame"), table("rpd_stack_frame"));
    let mut texts = Texts::from_connection(connection, &table("rocpd_string"))?;
    let mut insert = connection.prepare(&format!(
        "INSERT INTO {frames} (id, location_id, inline_depth, function_id, file_id, line, col, evidence)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    ))?;
    let known = |number: u32| (number != 0).then_some(number);
    for (id, frame) in (1_i64..).zip(&symbols.frames) {
        insert.execute(params![
            id,
            frame.location,
            frame.inline_depth,
            texts.id(frame.function)?,
            texts.id(frame.file)?,
            known(frame.line),
            known(frame.column),
            Some(frame.evidence).filter(|evidence| !evidence.is_empty()),
        ])?;
    }
    let mut insert = connection.prepare(&format!(
        "INSERT INTO {stacks} (stack_id, depth, frame_id) VALUES (?1, ?2, ?3)"
    ))?;
    for (stack, frames) in &symbols.stacks {
        for (depth, frame) in (0_i64..).zip(frames) {
            insert.execute(params![stack, depth, i64::from(*frame) + 1])?;
        }
    }
    Ok(())
}

/// Texts that are added to the texts of a recording.
struct Texts<'a> {
    find: rusqlite::Statement<'a>,
    insert: rusqlite::Statement<'a>,
    known: HashMap<String, i64>,
    next: i64,
}

impl<'a> Texts<'a> {
    fn from_connection(connection: &'a Connection, table: &str) -> rusqlite::Result<Texts<'a>> {
        let next = format!("SELECT coalesce(max(id), 0) + 1 FROM {table}");
        Ok(Texts {
            next: connection.query_row(&next, [], |row| row.get(0))?,
            find: connection.prepare(&format!("SELECT id FROM {table} WHERE string = ?1"))?,
            insert: connection
                .prepare(&format!("INSERT INTO {table} (id, string) VALUES (?1, ?2)"))?,
            known: HashMap::new(),
        })
    }

    /// The id of a text; `None` for an empty one.
    fn id(&mut self, text: &str) -> rusqlite::Result<Option<i64>> {
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(&known) = self.known.get(text) {
            return Ok(Some(known));
        }
        let mut rows = self.find.query([text])?;
        let found: Option<i64> = match rows.next()? {
            Some(row) => Some(row.get(0)?),
            None => None,
        };
        drop(rows);
        let id = match found {
            Some(id) => id,
            None => {
                let id = self.next;
                self.insert.execute(params![id, text])?;
                self.next += 1;
                id
            }
        };
        self.known.insert(text.to_owned(), id);
        Ok(Some(id))
    }
}
