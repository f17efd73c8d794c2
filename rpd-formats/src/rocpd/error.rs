//! Problems of databases. Messages name the remedy.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::guard::LARGEST_VALUE;

/// A database that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ReadError {
    /// Path of the file.
    pub path: PathBuf,
    /// Description of the problem.
    pub problem: Problem,
}

/// Problem of a database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The system does not let it be read.
    #[error("{0}")]
    Io(std::io::Error),
    /// The path is a directory.
    #[error("is a directory; name the databases in it (they end in _results.db)")]
    Directory,
    /// The path leads to a pipe, a device or a socket.
    #[error(
        "is not a regular file (a pipe, a device or a socket); name a database, which ends in _results.db"
    )]
    NotRegular,
    /// A file that belongs to the database is not a regular one.
    #[error("cannot be read: {}, which belongs to it, is not a regular file; remove that file", .0.display())]
    Companion(PathBuf),
    /// A program that wrote into the database was stopped and left a journal.
    #[error(
        "has an incomplete transaction ({} is still there); roll it back with `sqlite3 FILE .schema`, which \
         may write to the file, or record again", .0.display()
    )]
    Unfinished(PathBuf),
    /// The database's write-ahead log cannot be read where it is.
    #[error(
        "keeps changes in {}, which cannot be used in this directory; copy both files to one that you can write to, \
         and name the copy", .0.display()
    )]
    Wal(PathBuf),
    /// The database has a virtual table, whose content a module makes.
    #[error(
        "is not read, because it has the virtual table {0}, which recordings do not have; record again"
    )]
    VirtualTable(String),
    /// A view uses an action that views of recordings do not use.
    #[error(
        "is not read, because a view or table in it uses {0}, which recordings do not need; record again"
    )]
    Refused(String),
    /// Reading the database takes too much processor time.
    #[error(
        "cannot be read: a view took more than {0} s of processor time, which no recording of this size needs; \
         record again"
    )]
    TooLong(u64),
    /// Reading the database takes too much memory.
    #[error(
        "cannot be read: a view took more than {0} MiB of memory, which no recording of this size needs; \
         record again"
    )]
    TooMuch(u64),
    /// A value in the database is too large.
    #[error("holds a value of more than {0} MiB, which no recording has; record again")]
    TooBig(i32),
    /// The file is no SQLite file.
    #[error("is not a rocpd database: it is not an SQLite file; name one that ends in _results.db")]
    NotSqlite,
    /// The file is an SQLite file without tables of rocpd.
    #[error(
        "is not a rocpd database: it is an SQLite file without rocpd tables; name one that ends in _results.db"
    )]
    NotRocpd,
    /// The end of the file is missing.
    #[error("is truncated: {found} of {expected} bytes are there; copy it again or record again")]
    Truncated {
        /// Bytes that the header promises.
        expected: u64,
        /// Size of the file.
        found: u64,
    },
    /// The content of the file makes no sense.
    #[error(
        "is damaged ({0}); copy it again, or save what is left of it with sqlite3's .recover command"
    )]
    Damaged(String),
    /// Another program keeps the database locked.
    #[error("is locked by another program; wait until that is done with it and try again")]
    Locked,
    /// The database has a version of the schema that is not read.
    #[error(
        "has schema version {0}, and this rpd reads version 3; use an rpd that reads version {0}"
    )]
    Schema(String),
    /// The database does not say which version of the schema it has.
    #[error(
        "has no schema version (tag schema_version in rocpd_metadata), so that it is not known how to read it; record again"
    )]
    NoSchema,
    /// The database has several versions of the schema.
    #[error(
        "has the schema versions {0} in one file, which no reader can read both; merge again from databases of one version"
    )]
    SeveralSchemas(String),
    /// The database lacks a view that recordings have.
    #[error(
        "has no view {0}, so it is incomplete; `rpd merge -o NEW.db FILE` makes the views again where the tables are \
         there, else record again"
    )]
    MissingView(&'static str),
    /// The database has no call stacks.
    #[error("holds no call stacks; record with --stacks native, python or merged")]
    NoStacks,
    /// The database can be read, but not written.
    #[error(
        "cannot be written ({0}), and symbols are written into it; make it writable, or name a copy"
    )]
    NotWritable(std::io::Error),
    /// Records that are too many for memory cannot be stored.
    #[error(
        "has more records than are kept in memory, and they cannot be stored in temporary files ({0}); make space beside it, \
         or name a directory with space in TMPDIR"
    )]
    Storage(std::io::Error),
    /// An error of SQLite that no other variant stands for.
    #[error("cannot be read: {0}")]
    Sqlite(String),
}

impl Problem {
    /// Converts an error of SQLite.
    pub(in crate::rocpd) fn from_sqlite(error: &rusqlite::Error) -> Problem {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Problem::NotSqlite,
            Some(ErrorCode::DatabaseCorrupt) => Problem::Damaged(message(error)),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Problem::Locked,
            Some(ErrorCode::TooBig) => Problem::TooBig(LARGEST_VALUE >> 20),
            Some(ErrorCode::OutOfMemory) => Problem::Sqlite("it takes too much memory".to_owned()),
            _ => Problem::Sqlite(message(error)),
        }
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Problem {
        Problem::from_sqlite(&error)
    }
}

impl ReadError {
    pub(crate) fn new(path: &Path, problem: Problem) -> ReadError {
        ReadError {
            path: path.to_owned(),
            problem,
        }
    }
}

/// SQLite's description of an error, in one line.
fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    }
    .replace('\n', " ")
}
