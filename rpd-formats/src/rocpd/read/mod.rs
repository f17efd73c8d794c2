//! Reading databases, ours and those of the original tools: only the `rocpd_*` views are used.
//!
//! The record tables are scanned one by one in the order of their ids, large ones by several threads, and joined here:
//! much faster than the views for people, which join in SQLite row by row.

mod agent;
mod arguments;
mod beyond;
mod counters;
mod device_totals;
mod events;
mod graphs;
mod info;
mod kfd;
mod records;
mod rpd;
mod rpd_sums;
mod samples;
mod scan;
mod stacks;
mod traces;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::connection::Guarded;
use super::sql::identifier;
use rpd_core::options::KernelNames;
use rpd_core::session::stacks::ShownFrames;
use rpd_core::session::totals::InstructionTotals;
use rpd_core::session::{LoadOptions, Session};
use rpd_core::storage::column::Storage;

pub use super::error::{Problem, ReadError};
pub use rpd::{RpdCalls, RpdStacks};
pub use rpd_sums::{RpdFile, RpdSums};

/// Views without which a database cannot be read.
const VIEWS: [&str; 18] = [
    "rocpd_metadata",
    "rocpd_string",
    "rocpd_info_node",
    "rocpd_info_process",
    "rocpd_info_thread",
    "rocpd_info_agent",
    "rocpd_info_queue",
    "rocpd_info_stream",
    "rocpd_info_code_object",
    "rocpd_info_kernel_symbol",
    "rocpd_track",
    "rocpd_event",
    "rocpd_arg",
    "rocpd_region",
    "rocpd_sample",
    "rocpd_kernel_dispatch",
    "rocpd_memory_copy",
    "rocpd_memory_allocate",
];

/// A process in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Id of the recording, unique among databases.
    pub guid: String,
    /// Id of its row, normally the process id.
    id: i64,
}

/// An open database.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    connection: Guarded,
    recordings: Vec<Recording>,
}

/// Output settings of the run, as far as the database has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    /// Form of kernel names in it.
    pub kernel_names: KernelNames,
    /// Work was shown by queue.
    pub group_by_queue: bool,
    /// Which of the usually hidden frames call stacks show.
    pub shown_frames: ShownFrames,
}

/// A file that commands sum up and query.
#[derive(Debug)]
pub enum InputFile {
    /// A database, ours or one of the original tools.
    Database(Database),
    /// A file of RPD.
    Rpd(RpdFile),
}

impl InputFile {
    /// Opens a file for reading and checks that it can be read. What is no file of RPD has to be a database.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open(path: &Path) -> Result<InputFile, ReadError> {
        let fail = |problem| ReadError::new(path, problem);
        let connection = Guarded::read(path).map_err(fail)?;
        if RpdFile::is_on(&connection).map_err(fail)? {
            Ok(InputFile::Rpd(RpdFile::new(path, connection)))
        } else {
            Database::on(path, connection).map(InputFile::Database)
        }
    }
}

impl Database {
    /// Opens a database for reading and checks that it can be read.
    ///
    /// # Errors
    /// When it cannot, with what is wrong and what to do.
    pub fn open(path: &Path) -> Result<Database, ReadError> {
        let connection = Guarded::read(path).map_err(|problem| ReadError::new(path, problem))?;
        Database::on(path, connection)
    }

    /// The database that was opened on a connection.
    fn on(path: &Path, connection: Guarded) -> Result<Database, ReadError> {
        let fail = |problem| ReadError::new(path, problem);
        let database = Database {
            path: path.to_owned(),
            connection,
            recordings: Vec::new(),
        };
        database.check().map_err(fail)?;
        let listed = database.list();
        let recordings = listed.map_err(|error| fail(database.connection.meaning(&error)))?;
        Ok(Database {
            recordings,
            ..database
        })
    }

    /// Path of the database.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The processes in it.
    pub fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// Reads one process.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn session(
        &self,
        recording: &Recording,
        options: LoadOptions,
    ) -> Result<(Session, Settings), ReadError> {
        let read = self.read(recording, options, |source, info, storage| {
            records::read(source, info, options, storage)?;
            beyond::note(source, recording, info)
        });
        read.map(|(session, settings, ())| (session, settings))
    }

    /// Reads what is known of one process. The session has no records.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn process(&self, recording: &Recording) -> Result<(Session, Settings), ReadError> {
        let read = self.read(recording, LoadOptions::default(), |_, _, _| Ok(()));
        read.map(|(session, settings, ())| (session, settings))
    }

    /// Reads what a process refers to, and then what `read` does.
    fn read<T>(
        &self,
        recording: &Recording,
        options: LoadOptions,
        read: impl FnOnce(&scan::Source<'_>, &mut info::Info, &Storage) -> rusqlite::Result<T>,
    ) -> Result<(Session, Settings, T), ReadError> {
        let source = scan::Source {
            path: &self.path,
            connection: &self.connection,
            // Rows are filtered by the recording's id only where there are several recordings, because comparing a
            // text in each row takes time.
            guid: (self.recordings.len() > 1).then_some(&*recording.guid),
            problem: RefCell::default(),
        };
        let path = self.path.canonicalize();
        let directory = path.iter().find_map(|path| path.parent());
        let storage = options.storage(directory.unwrap_or(Path::new(".")));
        self.connection.begin();
        let found = info::read(&source, recording, &storage).and_then(|(mut info, settings)| {
            let more = read(&source, &mut info, &storage)?;
            Ok((info.session, settings, more))
        });
        found.map_err(|error| {
            let problem = source.problem.take();
            let problem = problem.unwrap_or_else(|| self.connection.meaning(&error));
            ReadError::new(&self.path, problem)
        })
    }

    /// Reads what is known of the code of one process, and the sums of its PC samples. The session has no records.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn samples(
        &self,
        recording: &Recording,
    ) -> Result<(Session, Settings, InstructionTotals), ReadError> {
        self.read(recording, LoadOptions::default(), |source, info, _| {
            samples::totals(source, info)
        })
    }

    fn check(&self) -> Result<(), Problem> {
        let found = self
            .connection
            .texts("SELECT name FROM sqlite_master WHERE type IN ('view', 'table')")?;
        if !found.iter().any(|name| name.starts_with("rocpd_")) {
            return Err(Problem::NotRocpd);
        }
        let has = |view: &str| found.iter().any(|name| name == view);
        if has("rocpd_metadata") {
            let versions = self
                .connection
                .texts("SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'")?;
            // Without a view of processes, which is reported below, there is one recording.
            let recordings = self.list().map_or(1, |list| list.len());
            check_schemas(versions, recordings)?;
        }
        match VIEWS.into_iter().find(|view| !has(view)) {
            Some(view) => Err(Problem::MissingView(view)),
            None => Ok(()),
        }
    }

    fn list(&self) -> rusqlite::Result<Vec<Recording>> {
        let mut statement = self
            .connection
            .prepare("SELECT guid, id FROM rocpd_info_process ORDER BY init, id")?;
        let rows = statement.query_map([], |row| {
            Ok(Recording {
                guid: row.get(0)?,
                id: row.get(1)?,
            })
        })?;
        rows.collect()
    }
}

/// Checks the versions of the recordings of a database. A later version 3 adds tables and columns only, so that recordings of
/// several of them may be in one database.
fn check_schemas(mut versions: Vec<String>, recordings: usize) -> Result<(), Problem> {
    versions.sort();
    versions.dedup();
    if versions.len() > recordings.max(1) {
        return Err(Problem::SeveralSchemas(versions.join(" and ")));
    }
    if versions.is_empty() {
        return Err(Problem::NoSchema);
    }
    let is_known = |version: &String| version == "3" || version.starts_with("3.");
    match versions.into_iter().find(|version| !is_known(version)) {
        Some(version) => Err(Problem::Schema(version)),
        None => Ok(()),
    }
}

/// Recordings of a database whose views may be missing.
pub(super) fn list_recordings(path: &Path) -> Result<Vec<String>, ReadError> {
    let read = || -> Result<Vec<String>, Problem> {
        let connection = Guarded::read(path)?;
        let tables = connection
            .texts("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'")?;
        let (mut versions, mut guids) = (Vec::new(), Vec::new());
        for table in tables {
            let name = identifier(&table);
            if table.starts_with("rocpd_metadata") {
                let sql = format!("SELECT value FROM {name} WHERE tag = 'schema_version'");
                versions.extend(connection.texts(&sql)?);
            } else if table.starts_with("rocpd_info_process") {
                guids.extend(connection.texts(&format!("SELECT guid FROM {name}"))?);
            }
        }
        if guids.is_empty() && versions.is_empty() {
            return Err(Problem::NotRocpd);
        }
        check_schemas(versions, guids.len())?;
        Ok(guids)
    };
    read().map_err(|problem| ReadError::new(path, problem))
}
