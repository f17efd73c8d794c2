//! Opens databases, to be read and to be written; nothing else in rpd does.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::error::Problem;
use super::guard::{Exhausted, Guard, Trust};
use super::sql::identifier;

/// Longest time to wait for a lock on a database.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most bytes of a file that a file system which compresses stores in one byte.
const COMPRESSION: u64 = 16;

/// A connection to a database that anybody may have made: what its schema runs is limited in what it does, in processor time and
/// in memory.
#[derive(Debug)]
pub struct Guarded {
    connection: Connection,
    guard: Arc<Guard>,
}

impl Deref for Guarded {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Guarded {
    /// Opens a database for reading its views.
    ///
    /// # Errors
    /// When it cannot be read, or its schema has something in it that no recording has.
    pub fn read(path: &Path) -> Result<Guarded, Problem> {
        let source = Source::from_path(path)?;
        let guarded = Guarded::new(
            Connection::open_with_flags(
                &source.uri,
                OpenFlags::SQLITE_OPEN_READ_ONLY
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX
                    | OpenFlags::SQLITE_OPEN_URI,
            )
            .map_err(|error| source.problem(&error))?,
        )?;
        // Sorting in a view counts as memory, and writes no files.
        guarded.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA query_only = ON")?;
        guarded.guard.add_bytes(source.bytes);
        guarded.set_trust(Trust::Views);
        guarded.begin();
        check_schema(&guarded, "main").map_err(|error| guarded.problem(&source, error))?;
        Ok(guarded)
    }

    /// Opens a database of ours for writing symbols into it. Nothing of its schema is run: triggers are off, and what is
    /// written goes into the tables of symbols.
    ///
    /// # Errors
    /// When the database cannot be read or written, or its schema has something in it that no recording has.
    pub(super) fn write_symbols(path: &Path) -> Result<Guarded, Problem> {
        let source = Source::from_path(path)?;
        // SQLite would open it for reading only, and report an error when the work is done.
        OpenOptions::new()
            .write(true)
            .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
            .open(&source.path)
            .map_err(Problem::NotWritable)?;
        let guarded = Guarded::new(
            Connection::open_with_flags(
                uri(&source.path, "rw"),
                OpenFlags::SQLITE_OPEN_READ_WRITE
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX
                    | OpenFlags::SQLITE_OPEN_URI,
            )
            .map_err(|error| source.problem(&error))?,
        )?;
        guarded.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        guarded.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF")?;
        guarded.guard.add_bytes(source.bytes);
        guarded.set_trust(Trust::Views);
        guarded.begin();
        check_schema(&guarded, "main").map_err(|error| guarded.problem(&source, error))?;
        Ok(guarded)
    }

    /// Opens a connection with nothing but a database in memory, to which others are attached.
    pub(super) fn memory() -> rusqlite::Result<Guarded> {
        Guarded::new(Connection::open_in_memory()?)
    }

    /// Opens a database that is made from others, whose schemas are carried out under guard.
    pub(super) fn create_guarded(path: &Path) -> rusqlite::Result<Guarded> {
        Guarded::new(create(path)?)
    }

    fn new(mut connection: Connection) -> rusqlite::Result<Guarded> {
        connection.busy_timeout(PATIENCE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        let guard = Guard::watch(&mut connection)?;
        Ok(Guarded { connection, guard })
    }

    /// Attaches a database for reading.
    ///
    /// # Errors
    /// When the database cannot be read, or its schema has something in it that no recording has.
    pub(super) fn attach(&self, path: &Path, name: &str) -> Result<(), Problem> {
        let source = Source::from_path(path)?;
        self.set_trust(Trust::Own);
        self.execute(
            &format!("ATTACH DATABASE ?1 AS {}", identifier(name)),
            [&source.uri],
        )
        .map_err(|error| source.problem(&error))?;
        self.guard.add_bytes(source.bytes);
        self.set_trust(Trust::Views);
        self.begin();
        check_schema(self, name).map_err(|error| self.problem(&source, error))
    }

    /// Closes the connection.
    pub(super) fn close(self) -> rusqlite::Result<()> {
        self.connection.close().map_err(|(_, error)| error)
    }

    /// Sets the source of the statements that follow.
    pub(super) fn set_trust(&self, trust: Trust) {
        self.guard.set_trust(trust);
    }

    /// Starts the clock for the next statements of this thread, with the limits of reading.
    pub fn begin(&self) {
        self.guard.begin();
    }

    /// Starts the clock for SQL of the user.
    pub(super) fn begin_for_user(&self) {
        self.guard.begin_for_user();
    }

    /// Starts the clock with another limit of processor time, or with none.
    pub(super) fn begin_within(&self, allowed: Option<Duration>) {
        self.guard.begin_within(allowed);
    }

    /// Converts an error that the guard caused.
    pub fn guard_problem(&self, error: &rusqlite::Error) -> Option<Problem> {
        // Checked first, because SQLite reports a refused function and other refused actions with different error codes.
        if let Some(what) = self.guard.take_refused() {
            return Some(Problem::Refused(what));
        }
        if error.sqlite_error_code() != Some(rusqlite::ErrorCode::OperationInterrupted) {
            return None;
        }
        self.guard.exhausted().map(|limit| match limit {
            Exhausted::Time(seconds) => Problem::TooLong(seconds),
            Exhausted::Memory(bytes) => Problem::TooMuch(bytes >> 20),
        })
    }

    /// Converts an error of a reading statement.
    pub fn meaning(&self, error: &rusqlite::Error) -> Problem {
        self.guard_problem(error)
            .unwrap_or_else(|| Problem::from_sqlite(error))
    }

    /// The texts in the first column of a statement's result.
    pub(super) fn texts(&self, sql: &str) -> Result<Vec<String>, Problem> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.prepare(sql)?;
            let values = statement.query_map([], |row| row.get(0))?;
            values.collect()
        };
        read().map_err(|error| self.meaning(&error))
    }

    fn problem(&self, source: &Source, problem: SchemaProblem) -> Problem {
        match problem {
            SchemaProblem::Problem(problem) => problem,
            SchemaProblem::Sqlite(error) => self
                .guard_problem(&error)
                .unwrap_or_else(|| source.problem(&error)),
        }
    }
}

/// Opens a file for writing a database into it.
pub(super) fn create(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open(uri(path, "rwc"))
}

/// A database file to be read.
struct Source {
    uri: String,
    /// Size of the file in bytes, as far as limits depend on it: what is only a hole does not count.
    bytes: u64,
    path: PathBuf,
    is_wal: bool,
}

impl Source {
    /// Looks at the file before SQLite does: SQLite waits for the other end of a pipe, reads an empty file as an empty
    /// database, and notices a missing end only when it gets there.
    fn from_path(path: &Path) -> Result<Source, Problem> {
        let metadata = std::fs::metadata(path).map_err(Problem::Io)?;
        if metadata.is_dir() {
            return Err(Problem::Directory);
        }
        if !metadata.is_file() {
            return Err(Problem::NotRegular);
        }
        // SQLite looks for companions beside the file that a link leads to.
        let path = path.canonicalize().map_err(Problem::Io)?;
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
            .open(&path)
            .map_err(Problem::Io)?;
        let metadata = file.metadata().map_err(Problem::Io)?;
        if !metadata.is_file() {
            return Err(Problem::NotRegular);
        }
        let header = header(&mut file)?;
        let is_wal = header.get(18..20) == Some(&[2, 2][..]);
        let wal = companion(&path, "-wal")?;
        let shm = companion(&path, "-shm")?;
        companion(&path, "-journal")?;
        let is_pending = is_wal && wal.is_some_and(|bytes| bytes > 0);
        if !is_pending {
            check_length(&header, metadata.len())?;
        }
        // Without these files no program has the database open and all of it is in the one file. SQLite would make
        // them, which a directory that cannot be written does not let it.
        let is_still = is_wal && !is_pending && shm.is_none();
        let mode = if is_still { "ro&immutable=1" } else { "ro" };
        Ok(Source {
            uri: uri(&path, mode),
            bytes: metadata
                .len()
                .min(metadata.blocks().saturating_mul(512 * COMPRESSION)),
            path,
            is_wal,
        })
    }

    /// Converts an error of SQLite about this file.
    fn problem(&self, error: &rusqlite::Error) -> Problem {
        use rusqlite::ffi;
        let extended = error.sqlite_error().map(|error| error.extended_code);
        let primary = extended.map(|code| code & 0xff);
        if extended == Some(ffi::SQLITE_READONLY_ROLLBACK) {
            return Problem::Unfinished(beside(&self.path, "-journal"));
        }
        if self.is_wal
            && matches!(
                primary,
                Some(ffi::SQLITE_CANTOPEN | ffi::SQLITE_READONLY | ffi::SQLITE_IOERR)
            )
        {
            return Problem::Wal(beside(&self.path, "-wal"));
        }
        Problem::from_sqlite(error)
    }
}

/// The path of a file that belongs to a database: `ending` follows the database's name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The size of a file that belongs to a database; `None` when there is none.
fn companion(path: &Path, ending: &str) -> Result<Option<u64>, Problem> {
    let path = beside(path, ending);
    match std::fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
        // SQLite would wait for the other end of a pipe.
        Ok(_) => Err(Problem::Companion(path)),
        Err(_) => Ok(None),
    }
}

/// The first bytes of an SQLite file; fewer than 100 when it ends there.
fn header(file: &mut File) -> Result<Vec<u8>, Problem> {
    let mut header = Vec::new();
    file.take(100)
        .read_to_end(&mut header)
        .map_err(Problem::Io)?;
    if header.starts_with(b"SQLite format 3\0") {
        Ok(header)
    } else {
        Err(Problem::NotSqlite)
    }
}

fn check_length(header: &[u8], found: u64) -> Result<(), Problem> {
    let bytes = |at: usize| header.get(at..at + 4)?.try_into().ok();
    let word = |at: usize| bytes(at).map(u32::from_be_bytes).map(u64::from);
    let page_size = match header.get(16..18) {
        Some([0, 1]) => 65_536,
        Some(&[high, low]) => u64::from(u16::from_be_bytes([high, low])),
        _ => 0,
    };
    // The page count counts only when the last writer kept it up to date.
    let expected = match (word(24), word(28), word(92)) {
        (Some(changes), Some(pages), Some(valid_for)) if changes == valid_for => page_size * pages,
        _ => 0,
    };
    let expected = expected.max(100);
    if found < expected {
        Err(Problem::Truncated { expected, found })
    } else {
        Ok(())
    }
}

/// A file name as SQLite takes it with a mode.
fn uri(path: &Path, mode: &str) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut text = String::from("file:");
    for &byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'_' | b'-' => text.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => text.push(byte.into()),
            _ => text += &format!("%{byte:02x}"),
        }
    }
    text += "?mode=";
    text + mode
}

enum SchemaProblem {
    Problem(Problem),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for SchemaProblem {
    fn from(error: rusqlite::Error) -> SchemaProblem {
        SchemaProblem::Sqlite(error)
    }
}

/// Refuses schemas that no recording has: virtual tables, which run other code, and names that are not text.
fn check_schema(connection: &Connection, database: &str) -> Result<(), SchemaProblem> {
    let sql = format!(
        "SELECT name, tbl_name, sql, rootpage, type FROM {}.sqlite_master",
        identifier(database)
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut texts = [""; 3];
        for (column, text) in texts.iter_mut().enumerate() {
            *text = match row.get_ref(column)? {
                ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_err(|_| {
                    let words = "its schema holds bytes that are not text".to_owned();
                    SchemaProblem::Problem(Problem::Damaged(words))
                })?,
                _ => "",
            };
        }
        let is_table = matches!(row.get_ref(4)?, ValueRef::Text(b"table"));
        if is_table && !matches!(row.get_ref(3)?, ValueRef::Integer(page) if page > 0) {
            let name = texts[0].to_owned();
            return Err(SchemaProblem::Problem(Problem::VirtualTable(name)));
        }
    }
    Ok(())
}
