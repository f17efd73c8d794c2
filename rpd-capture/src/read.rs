//! Reading a capture: its calls, objects and data.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rpd_formats::rocpd::{Guarded, Problem};
use rpd_spool::capture::{AllocationItem, DataHeader, Items, Operation, item, operation};
use rusqlite::Connection;
use zerocopy::FromBytes as _;

use crate::pack::{Chunk, Codec, Hash, PackReader};
use crate::{BLOBS, CaptureError, DATABASE, Manifest, bounds};

/// A call of a capture.
#[derive(Debug, Clone)]
pub struct Call {
    /// Number of the call, from 1, in the order of the replay.
    pub seq: u64,
    /// Id of the thread that made the call.
    pub tid: u32,
    /// The current device of the thread.
    pub device: i32,
    /// Number of the operation.
    pub api: u32,
    /// The status that the call returned.
    pub result: i32,
    /// Begin and end, `CLOCK_BOOTTIME` ns.
    pub time: (u64, u64),
    /// Properties of the call: bits of [`rpd_spool::capture::call_flag`].
    pub flags: u32,
    /// Bytes of the argument struct.
    pub arguments: Vec<u8>,
    /// Items of the call. In data, the offset is the number of the data in this capture, 0 when they are not there, and
    /// the copy is the number of a call, 0 for this one.
    pub items: Vec<u8>,
}

impl Call {
    /// The function that was called; `None` for a function that is not in this version's table.
    pub fn operation(&self) -> Option<&'static Operation> {
        operation(self.api)
    }

    /// The value of the argument called `name`, 0 when there is none.
    pub fn argument(&self, name: &str) -> u64 {
        self.operation()
            .and_then(|operation| operation.argument(name))
            .map_or(0, |argument| argument.value(&self.arguments))
    }

    /// The items recorded with the call.
    pub fn items(&self) -> Items<'_> {
        Items(&self.items)
    }

    /// The data that the call read or wrote.
    pub fn data(&self) -> impl Iterator<Item = DataHeader> + '_ {
        self.items()
            .filter(|item| item.kind == item::DATA)
            .filter_map(|item| Some(item.data()?.0))
    }

    /// The memory that the call allocated.
    pub fn allocation(&self) -> Option<AllocationItem> {
        self.items()
            .find(|item| item.kind == item::ALLOCATION)
            .and_then(|item| Some(AllocationItem::read_from_prefix(item.payload).ok()?.0))
    }
}

/// Memory that was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Number of the memory in the capture.
    pub number: i64,
    /// Kind of the memory: one of [`rpd_spool::capture::memory_kind`].
    pub kind: u32,
    /// The device that was current.
    pub device: i32,
    /// First address of the memory.
    pub base: u64,
    /// Size of the memory in bytes.
    pub size: u64,
    /// Flags of the call that allocated the memory.
    pub flags: u32,
    /// Numbers of the call that allocated the memory, and of the one that freed it.
    pub life: (u64, Option<u64>),
}

/// A code object of the capture.
#[derive(Debug, Clone)]
pub struct CodeRow {
    /// Number of the code object in the capture.
    pub id: i64,
    /// Number by which calls name the code object.
    pub provider_id: u64,
    /// The provider's handle of the device.
    pub agent: u64,
    /// Number of the data that are its image.
    pub blob: i64,
    /// Target triple with processor and features.
    pub triple: String,
    /// Size of the ELF image in bytes.
    pub size: u64,
    /// Number of the last call before the code object was loaded; 0 for none.
    pub load_seq: u64,
    /// Load address, and size in bytes.
    pub load: (u64, u64),
}

/// A kernel with its launches in a capture.
#[derive(Debug, Clone)]
pub struct KernelRow {
    /// Number of the kernel in the capture.
    pub id: i64,
    /// Number of its code object.
    pub code: i64,
    /// Mangled name of the kernel.
    pub name: String,
    /// Number of launches of the kernel in the capture.
    pub launches: u64,
}

/// Data of a capture.
#[derive(Debug, Clone)]
pub struct Data {
    /// Hash of all bytes.
    pub hash: Hash,
    /// Size of the data in bytes.
    pub size: u64,
    /// Whether the content is in the capture; otherwise only the hash is.
    pub kept: bool,
}

/// A capture that is open.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    manifest: Manifest,
    database: Guarded,
    packs: PackReader,
    last: u64,
    /// A call that is given out in place of the one with its number.
    substitute: Option<Call>,
}

/// Number of calls that are read at once.
const CALLS: usize = 256;
/// Bytes of calls after which no more are read at once.
const CALL_BYTES: usize = 1 << 20;

impl Capture {
    /// Opens the capture in `path`.
    ///
    /// # Errors
    /// When it is none, is damaged, or of a newer version.
    pub fn open(path: &Path) -> Result<Capture, CaptureError> {
        let manifest = Manifest::read(path)?;
        let file = path.join(DATABASE);
        if !file.is_file() {
            return Err(CaptureError::NoCapture {
                path: path.to_owned(),
                reason: format!("it has no {DATABASE}"),
            });
        }
        let database = Guarded::read(&file).map_err(|problem| unreadable(&file, &problem))?;
        if let Some(reason) = no_tables(&database).map_err(CaptureError::database(&file))? {
            return Err(CaptureError::damaged(&file, reason));
        }
        let last: i64 = database
            .query_row("SELECT ifnull(max(seq), 0) FROM call", [], |row| row.get(0))
            .map_err(CaptureError::database(&file))?;
        if last as u64 != manifest.last_call() {
            return Err(CaptureError::damaged(
                &file,
                format!(
                    "its last call is {last}, and {} should be there",
                    manifest.last_call()
                ),
            ));
        }
        Ok(Capture {
            path: path.to_owned(),
            manifest,
            database,
            packs: PackReader::new(&path.join(BLOBS)),
            last: last as u64,
            substitute: None,
        })
    }

    /// Path of the capture.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The description of the program and the recording.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The database, for a query that is made at once.
    pub fn database(&self) -> &Connection {
        self.database.begin();
        &self.database
    }

    /// Number of the last call.
    pub fn last(&self) -> u64 {
        self.last
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> CaptureError + '_ {
        |error| {
            let path = self.path.join(DATABASE);
            match self.database.guard_problem(&error) {
                Some(problem) => unreadable(&path, &problem),
                None => CaptureError::database(&path)(error),
            }
        }
    }

    /// Gives the calls from `first` to `last`, both included, to `take`, until that returns false.
    ///
    /// # Errors
    /// The errors of `take`, and when the database cannot be read.
    pub fn calls<E: From<CaptureError>>(
        &self,
        first: u64,
        last: u64,
        take: impl FnMut(Call) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.ordered("ASC", first, last, take)
    }

    /// Gives the calls from `first` to `last`, both included, to `take`, the last one first, until that returns false.
    ///
    /// # Errors
    /// The errors of `take`, and when the database cannot be read.
    pub fn calls_backwards<E: From<CaptureError>>(
        &self,
        first: u64,
        last: u64,
        take: impl FnMut(Call) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.ordered("DESC", first, last, take)
    }

    fn ordered<E: From<CaptureError>>(
        &self,
        order: &str,
        first: u64,
        last: u64,
        mut take: impl FnMut(Call) -> Result<bool, E>,
    ) -> Result<(), E> {
        let failed = |error| E::from(self.failed()(error));
        let mut statement = self
            .database()
            .prepare_cached(&format!(
                "SELECT seq, tid, dev, api, rc, t0, t1, flags, args, items FROM call
                 WHERE seq BETWEEN ? AND ? ORDER BY seq {order}"
            ))
            .map_err(failed)?;
        let mut rows = statement
            .query([first as i64, i64::try_from(last).unwrap_or(i64::MAX)])
            .map_err(failed)?;
        loop {
            // Not one by one: the time that playing a call takes is not that of reading.
            self.database.begin();
            let (mut calls, mut bytes) = (Vec::new(), 0);
            while calls.len() < CALLS && bytes < CALL_BYTES {
                let Some(row) = rows.next().map_err(failed)? else {
                    break;
                };
                let mut call = call(row).map_err(failed)?;
                if let Some(other) = self.substitute.as_ref().filter(|one| one.seq == call.seq) {
                    call = other.clone();
                }
                bytes += call.items.len() + call.arguments.len();
                calls.push(call);
            }
            if calls.is_empty() {
                return Ok(());
            }
            for call in calls {
                bounds::call(&call)
                    .map_err(|reason| CaptureError::damaged(&self.path.join(DATABASE), reason))?;
                if !take(call)? {
                    return Ok(());
                }
            }
        }
    }

    /// From now on `call` is given out in place of the call with its number, and excerpts have it.
    pub fn substitute(&mut self, call: Call) {
        self.substitute = Some(call);
    }

    pub(crate) fn substituted(&self) -> Option<&Call> {
        self.substitute.as_ref()
    }

    /// Reads one call by its number.
    ///
    /// # Errors
    /// When there is none with this number, or it cannot be read.
    pub fn call(&self, seq: u64) -> Result<Call, CaptureError> {
        let mut found = None;
        self.calls(seq, seq, |call| {
            found = Some(call);
            Ok::<bool, CaptureError>(false)
        })?;
        found.ok_or_else(|| CaptureError::NoCall {
            path: self.path.clone(),
            seq,
            last: self.last,
        })
    }

    /// Every row that `sql` selects, through `row`.
    fn all<T>(
        &self,
        sql: &str,
        row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, CaptureError> {
        let mut statement = self.database().prepare(sql).map_err(self.failed())?;
        let rows = statement.query_map([], row).map_err(self.failed())?;
        rows.collect::<rusqlite::Result<_>>().map_err(self.failed())
    }

    /// All memory of the capture, in the order of allocation.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn memory(&self) -> Result<Vec<Memory>, CaptureError> {
        let memory = self.all(
            "SELECT num, kind, dev, va, size, flags, created, destroyed FROM alloc ORDER BY num",
            |row| {
                Ok(Memory {
                    number: row.get(0)?,
                    kind: row.get(1)?,
                    device: row.get(2)?,
                    base: row.get::<_, i64>(3)? as u64,
                    size: row.get::<_, i64>(4)? as u64,
                    flags: row.get(5)?,
                    life: (
                        row.get::<_, i64>(6)? as u64,
                        row.get::<_, Option<i64>>(7)?.map(|seq| seq as u64),
                    ),
                })
            },
        )?;
        for one in &memory {
            bounds::range(one.base, one.size).map_err(|reason| {
                let reason = format!("memory {}: {reason}", one.number);
                CaptureError::damaged(&self.path.join(DATABASE), reason)
            })?;
        }
        Ok(memory)
    }

    /// All code objects of the capture, in the order of loading.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn codes(&self) -> Result<Vec<CodeRow>, CaptureError> {
        self.all(
            "SELECT id, provider_id, agent, blob, triple, size, load_seq, load_base, load_size FROM code ORDER BY id",
            |row| {
                Ok(CodeRow {
                    id: row.get(0)?,
                    provider_id: row.get::<_, i64>(1)? as u64,
                    agent: row.get::<_, i64>(2)? as u64,
                    blob: row.get(3)?,
                    triple: row.get(4)?,
                    size: row.get::<_, i64>(5)? as u64,
                    load_seq: row.get::<_, i64>(6)? as u64,
                    load: (row.get::<_, i64>(7)? as u64, row.get::<_, i64>(8)? as u64),
                })
            },
        )
    }

    /// The hashes of all code objects.
    pub(crate) fn code_hashes(&self) -> Result<Vec<Vec<u8>>, CaptureError> {
        self.all("SELECT DISTINCT hash FROM code ORDER BY hash", |row| {
            row.get(0)
        })
    }

    /// All kernels of the capture, with their launches.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn kernels(&self) -> Result<Vec<KernelRow>, CaptureError> {
        self.all(
            "SELECT k.id, k.code, k.name, (SELECT count(*) FROM launch l WHERE l.kernel = k.id) FROM kernel k ORDER BY k.id",
            |row| {
                Ok(KernelRow {
                    id: row.get(0)?,
                    code: row.get(1)?,
                    name: row.get(2)?,
                    launches: row.get::<_, i64>(3)? as u64,
                })
            },
        )
    }

    /// Launches of kernels: number of the call, name of the kernel, number of the launch among those of the kernel.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn launches(&self) -> Result<Vec<(u64, String, u64)>, CaptureError> {
        self.all(
            "SELECT l.seq, k.name, l.number FROM launch l JOIN kernel k ON k.id = l.kernel ORDER BY l.seq",
            |row| {
                Ok((
                    row.get::<_, i64>(0)? as u64,
                    row.get(1)?,
                    row.get::<_, i64>(2)? as u64,
                ))
            },
        )
    }

    /// The last launch before a call, as number of the call and name of the kernel.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn launch_before(&self, seq: u64) -> Result<Option<(u64, String)>, CaptureError> {
        let sql = format!(
            "SELECT l.seq, k.name FROM launch l JOIN kernel k ON k.id = l.kernel WHERE l.seq < {seq} ORDER BY l.seq DESC LIMIT 1"
        );
        let found = self.all(&sql, |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)))?;
        Ok(found.into_iter().next())
    }

    /// The first call up to `last` that maps physical memory which was mapped elsewhere before, if there is one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn mapped_again(&self, last: u64) -> Result<Option<u64>, CaptureError> {
        let sql = format!(
            "SELECT seq FROM call WHERE flags & {} AND seq <= {} ORDER BY seq LIMIT 1",
            rpd_spool::capture::call_flag::MAPPED_AGAIN,
            i64::try_from(last).unwrap_or(i64::MAX)
        );
        let found = self.all(&sql, |row| Ok(row.get::<_, i64>(0)? as u64))?;
        Ok(found.into_iter().next())
    }

    /// Calls that cannot be replayed: name and count.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn unsupported(&self) -> Result<Vec<(String, u64)>, CaptureError> {
        self.all("SELECT name, count FROM unsupported ORDER BY api", |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
        })
    }

    /// Notes: number of the call, severity, text.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn notes(&self) -> Result<Vec<(u64, String, String)>, CaptureError> {
        self.all(
            "SELECT seq, severity, text FROM note ORDER BY rowid",
            |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?)),
        )
    }

    /// Hash and size of data.
    ///
    /// # Errors
    /// When there are no data with this number.
    pub fn data(&self, blob: i64) -> Result<Data, CaptureError> {
        self.database()
            .prepare_cached("SELECT hash, size, kept FROM blob WHERE id = ?")
            .and_then(|mut statement| {
                statement.query_row([blob], |row| {
                    Ok(Data {
                        hash: row.get(0)?,
                        size: row.get::<_, i64>(1)? as u64,
                        kept: row.get(2)?,
                    })
                })
            })
            .map_err(|error| match error {
                rusqlite::Error::QueryReturnedNoRows => CaptureError::damaged(
                    &self.path.join(DATABASE),
                    format!("it lacks data {blob}"),
                ),
                other => self.failed()(other),
            })
    }

    /// The chunks of data, in order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn chunks(&self, blob: i64) -> Result<Vec<(Hash, Chunk)>, CaptureError> {
        let mut statement = self
            .database()
            .prepare_cached(
                "SELECT c.hash, c.pack, c.offset, c.size, c.stored, c.codec FROM blob_part p JOIN chunk c ON c.id = p.chunk
                 WHERE p.blob = ? ORDER BY p.idx",
            )
            .map_err(self.failed())?;
        let rows = statement
            .query_map([blob], |row| {
                let codec = Codec::from_number(row.get(5)?);
                let chunk = Chunk {
                    pack: row.get(1)?,
                    offset: row.get::<_, i64>(2)? as u64,
                    size: row.get(3)?,
                    stored: row.get(4)?,
                    codec: codec.ok_or(rusqlite::Error::IntegralValueOutOfRange(5, 0))?,
                };
                Ok((row.get::<_, Hash>(0)?, chunk))
            })
            .map_err(self.failed())?;
        rows.collect::<rusqlite::Result<_>>().map_err(self.failed())
    }

    /// The content of the data of a call, checked.
    ///
    /// # Errors
    /// When the data are missing or damaged, as in [`Capture::bytes`], or have not the size that the call says.
    pub fn data_bytes(&mut self, header: &DataHeader) -> Result<Vec<u8>, CaptureError> {
        self.bytes_of(header.offset.cast_signed(), Some(header.size))
    }

    /// The content of data, checked: of a code object, or a device variable.
    ///
    /// # Errors
    /// When it is not in the capture, is damaged, or larger than such data are.
    pub fn bytes(&mut self, blob: i64) -> Result<Vec<u8>, CaptureError> {
        self.bytes_of(blob, None)
    }

    fn bytes_of(&mut self, blob: i64, size: Option<u64>) -> Result<Vec<u8>, CaptureError> {
        let data = self.data(blob)?;
        let wrong = match size {
            Some(size) => data.size != size,
            None => data.size > LARGEST_OBJECT,
        };
        if wrong {
            let wanted = match size {
                Some(size) => format!("and {size} should be there"),
                None => format!("and such data have {LARGEST_OBJECT} at most"),
            };
            return Err(CaptureError::damaged(
                &self.path.join(DATABASE),
                format!("data {blob} have {} bytes, {wanted}", data.size),
            ));
        }
        if !data.kept {
            return Err(CaptureError::damaged(
                &self.path,
                format!("the content of data {blob} was not kept"),
            ));
        }
        let chunks = self.chunks(blob)?;
        let mut bytes = Vec::new();
        let room = usize::try_from(data.size).unwrap_or(usize::MAX);
        // The size is the database's: a damaged one must not end the process.
        if bytes.try_reserve_exact(room).is_err() {
            return Err(CaptureError::Io {
                path: self.path.join(DATABASE),
                source: std::io::Error::other(format!(
                    "there is no memory for the {room} bytes of data {blob}"
                )),
            });
        }
        for (hash, chunk) in &chunks {
            self.packs.read(hash, chunk, &mut bytes)?;
            // More than the size is damage; further chunks would only fill memory.
            if bytes.len() as u64 > data.size {
                break;
            }
        }
        if bytes.len() as u64 != data.size {
            return Err(CaptureError::damaged(
                &self.path.join(DATABASE),
                format!("data {blob} have {} bytes of {}", bytes.len(), data.size),
            ));
        }
        Ok(bytes)
    }

    /// All chunks of the capture, in the order of the packs.
    pub(crate) fn all_chunks(&self) -> Result<Vec<(Hash, Chunk)>, CaptureError> {
        let sql = "SELECT hash, pack, offset, size, stored, codec FROM chunk ORDER BY pack, offset";
        self.all(sql, |row| {
            let codec = Codec::from_number(row.get(5)?);
            let chunk = Chunk {
                pack: row.get(1)?,
                offset: row.get::<_, i64>(2)? as u64,
                size: row.get(3)?,
                stored: row.get(4)?,
                codec: codec.ok_or(rusqlite::Error::IntegralValueOutOfRange(5, 0))?,
            };
            Ok((row.get(0)?, chunk))
        })
    }

    /// Sums over all data that are kept: number, size, chunks, bytes of the chunks.
    pub(crate) fn blob_sums(&self) -> Result<Vec<(i64, u64, u64, u64)>, CaptureError> {
        let sql = "SELECT b.id, b.size, count(p.idx), ifnull(sum(c.size), 0) FROM blob b
             LEFT JOIN blob_part p ON p.blob = b.id LEFT JOIN chunk c ON c.id = p.chunk WHERE b.kept GROUP BY b.id";
        self.all(sql, |row| {
            Ok((
                row.get(0)?,
                row.get::<_, i64>(1)? as u64,
                row.get::<_, i64>(2)? as u64,
                row.get::<_, i64>(3)? as u64,
            ))
        })
    }

    /// Numbers of the calls by which each captured copy became complete, by number of the copy.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn outputs(&self) -> Result<HashMap<u64, u64>, CaptureError> {
        let rows = self.all("SELECT copy, seq FROM output", |row| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
        })?;
        Ok(rows.into_iter().collect())
    }
}

/// Largest code object or device variable that is read, bytes.
const LARGEST_OBJECT: u64 = 2 << 30;

/// A database that is not read.
fn unreadable(path: &Path, problem: &Problem) -> CaptureError {
    let reason = match problem {
        Problem::Io(error) => {
            let error = std::io::Error::new(error.kind(), error.to_string());
            return CaptureError::io(path)(error);
        }
        Problem::NotSqlite => "it is not an SQLite file".to_owned(),
        Problem::NotRegular => "it is not a regular file".to_owned(),
        Problem::TooLong(seconds) => {
            format!("reading it took more than {seconds} s of processor time")
        }
        Problem::TooMuch(mib) => format!("reading it took more than {mib} MiB of memory"),
        Problem::Refused(what) => format!("its schema uses {what}"),
        other => other.to_string(),
    };
    CaptureError::damaged(path, reason)
}

/// Whether a table with this definition has columns that are computed when they are read.
fn is_computed(sql: &str) -> bool {
    let mut words = sql.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.any(|word| word.eq_ignore_ascii_case("as"))
}

/// Reason why the tables are not plain tables, if that is so: a view or a computed column would be a program.
fn no_tables(database: &Connection) -> rusqlite::Result<Option<String>> {
    let mut statement = database.prepare(
        "SELECT name, type, ifnull(sql, '') FROM sqlite_master WHERE type IN ('table', 'view')",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let found: Vec<(String, String, String)> = rows.collect::<rusqlite::Result<_>>()?;
    for name in crate::database::table_names() {
        let mut rows = found
            .iter()
            .filter(|(known, ..)| known.eq_ignore_ascii_case(name));
        let reason = match rows.next() {
            None => format!("it has no table {name}"),
            Some((_, kind, _)) if kind != "table" => {
                format!("{name} is a {kind} and should be a table")
            }
            Some((.., sql)) if is_computed(sql) => format!("the table {name} has computed columns"),
            Some(_) => continue,
        };
        return Ok(Some(reason));
    }
    Ok(None)
}

fn call(row: &rusqlite::Row<'_>) -> rusqlite::Result<Call> {
    Ok(Call {
        seq: row.get::<_, i64>(0)? as u64,
        tid: row.get(1)?,
        device: row.get(2)?,
        api: row.get(3)?,
        result: row.get(4)?,
        time: (row.get::<_, i64>(5)? as u64, row.get::<_, i64>(6)? as u64),
        flags: row.get(7)?,
        arguments: row.get(8)?,
        items: row.get(9)?,
    })
}
