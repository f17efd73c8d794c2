//! What can be wrong with a database, in words that say what to do.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// A database that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The system does not let it be read.
    #[error("{0}")]
    Io(std::io::Error),
    /// It is a directory.
    #[error("is a directory; name the databases in it (they end in _results.db)")]
    Directory,
    /// Another kind of file.
    #[error("is no rocpd database: it is not an SQLite file; name one that ends in _results.db")]
    NotSqlite,
    /// Another kind of database.
    #[error(
        "is no rocpd database: it is an SQLite file without rocpd tables; name one that ends in _results.db"
    )]
    NotRocpd,
    /// Its end is missing.
    #[error("is truncated: {found} of {expected} bytes are there; copy it again or record again")]
    Truncated {
        /// Bytes that the header promises.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// Its inside makes no sense.
    #[error(
        "is damaged ({0}); copy it again, or save what is left of it with sqlite3's .recover command"
    )]
    Damaged(String),
    /// Another program keeps it locked.
    #[error("is locked by another program; wait until that is done with it and try again")]
    Locked,
    /// Another version of the schema.
    #[error("has schema version {0}, and this rpd reads version 3; use an rpd that knows {0}")]
    Schema(String),
    /// A view is missing.
    #[error(
        "has no view {0}, so it is incomplete; `rpd merge -o NEW.db FILE` makes the views again where the tables are \
         there, else record again"
    )]
    MissingView(&'static str),
    /// Anything else that SQLite says.
    #[error("cannot be read: {0}")]
    Sqlite(String),
}

impl Problem {
    /// What SQLite's error means.
    pub(in crate::rocpd) fn from_sqlite(error: &rusqlite::Error) -> Problem {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Problem::NotSqlite,
            Some(ErrorCode::DatabaseCorrupt) => Problem::Damaged(message(error)),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Problem::Locked,
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

    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> ReadError {
        ReadError::new(path, Problem::from_sqlite(error))
    }
}

/// SQLite's own words in one line.
fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    }
    .replace('\n', " ")
}

/// Looks at the file before SQLite does: SQLite reads an empty file as an empty database, and notices a missing end
/// only when it gets there.
pub(super) fn check_file(path: &Path) -> Result<(), Problem> {
    let mut file = File::open(path).map_err(Problem::Io)?;
    let metadata = file.metadata().map_err(Problem::Io)?;
    if metadata.is_dir() {
        return Err(Problem::Directory);
    }
    let mut header = [0; 100];
    let mut have = 0;
    while have < header.len() {
        match file.read(&mut header[have..]).map_err(Problem::Io)? {
            0 => break,
            read => have += read,
        }
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(Problem::NotSqlite);
    }
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let page_size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    // The page count counts only when the last writer kept it up to date.
    let expected = match word(24) == word(92) {
        true => page_size * u64::from(word(28)),
        false => 0,
    };
    let found = metadata.len();
    if have < header.len() || found < expected {
        let expected = expected.max(header.len() as u64);
        return Err(Problem::Truncated { expected, found });
    }
    Ok(())
}
