//! Files of the schema of RPD (ROCm/rocmProfileData), version 3, with call stacks as rows.

#![deny(clippy::wildcard_enum_match_arm)]

mod bulk;
mod frames;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use rpd_core::domain::Domain;
use rpd_core::ids::{AgentHandle, StreamId};
use rpd_core::options::KernelNames;
use rpd_core::session::shown::Expanded;
use rpd_core::session::{KernelLabels, Session};
use rpd_core::storage::lookup::Lookup;
use rpd_core::storage::sorted::{Keyed, Sorter};
use rpd_core::text::args::{for_each_argument, layout};
use rusqlite::{Connection, params};
use zerocopy::{Immutable, IntoBytes};

use crate::WriteError;
use crate::destination::Destination;
use crate::file::PendingFile;
use crate::rocpd::unstored;
use bulk::Bulk;

pub use frames::frame_lines;

const SCHEMA: &str = include_str!("schema.sql");
const VIEWS: &str = include_str!("views.sql");

/// Number of ids of a process: each process has its own range, as in files that RPD appends to.
const SESSION: i64 = 1 << 32;
/// Ids from here on are for calls whose correlation ids are not fit keys.
const UNFIT: i64 = 1 << 31;
/// The empty text in both tables of texts.
const EMPTY: i64 = 1;

/// A file in the making. It appears under its name when it is complete.
#[derive(Debug)]
pub struct RpdFile {
    file: PendingFile,
    connection: Connection,
    sessions: i64,
    texts: KnownTexts,
    next_frame: i64,
    next_op: i64,
}

/// Numbers of rows that were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of calls that were written.
    pub calls: u64,
    /// Number of kernels and copies that were written.
    pub operations: u64,
    /// Number of frames of stacks that were written.
    pub frames: u64,
}

impl RpdFile {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(destination: Destination) -> Result<RpdFile, WriteError> {
        let file = PendingFile::to(destination)?;
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(file.temporary_path())?;
            connection.execute_batch(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN",
            )?;
            connection.execute_batch(SCHEMA)?;
            Ok(connection)
        };
        let connection = open().map_err(|source| WriteError::Sqlite {
            path: file.path().to_owned(),
            source,
        })?;
        Ok(RpdFile {
            file,
            connection,
            sessions: 0,
            texts: KnownTexts {
                texts: HashMap::new(),
                bytes: 0,
                next: EMPTY + 1,
            },
            next_frame: 1,
            next_op: 1,
        })
    }

    /// The file's final name.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Adds a process. Its session has the arguments of calls.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(
        &mut self,
        session: &Session,
        names: KernelNames,
        expanded: &Expanded,
    ) -> Result<Counts, WriteError> {
        let added = self.add_session(session, names, expanded);
        added.map_err(|source| WriteError::Sqlite {
            path: self.file.path().to_owned(),
            source,
        })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// When it cannot be written; nothing is left under its name then.
    pub fn finish(self) -> Result<PathBuf, WriteError> {
        let RpdFile {
            file,
            connection,
            sessions,
            ..
        } = self;
        let complete = || -> rusqlite::Result<()> {
            connection.execute(
                "INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', ?1)",
                [sessions.to_string()],
            )?;
            connection.execute_batch(VIEWS)?;
            connection.execute_batch("COMMIT")?;
            connection.close().map_err(|(_, error)| error)
        };
        complete().map_err(|source| WriteError::Sqlite {
            path: file.path().to_owned(),
            source,
        })?;
        file.finish()
    }

    fn add_session(
        &mut self,
        session: &Session,
        names: KernelNames,
        expanded: &Expanded,
    ) -> rusqlite::Result<Counts> {
        let offset = self.sessions * SESSION;
        self.sessions += 1;
        let mut counts = Counts::default();
        // Texts are rows of a table, to which all others refer by id.
        let mut texts = Texts::new(&self.connection, &mut self.texts)?;
        let pid = session.process.pid.0;

        let mut call_rows = Bulk::new(
            &self.connection,
            "rocpd_api",
            &[
                "id",
                "pid",
                "tid",
                "start",
                "end",
                "apiName_id",
                "category_id",
                "domain_id",
                "args_id",
            ],
        )?;
        let mut frames = Bulk::new(
            &self.connection,
            "rocpd_stackframe",
            &["id", "api_ptr_id", "depth", "name_id"],
        )?;
        let calls = &session.calls;
        // Rows of operations refer to calls: a call's id follows from its correlation id.
        let ids = CallIds::new(session).map_err(unstored)?;
        let mut lines: HashMap<(u32, i64), Vec<i64>> = HashMap::new();
        let mut remembered = 0;
        for index in calls.indices() {
            let id = offset + ids.of(calls.correlation[index].0, index);
            let domain = session.call(index).kind.domain();
            let operation = session.operation_name(calls.operation[index]);
            let (name, arguments) = match domain {
                Domain::MarkerApi => {
                    let message = session.strings.get(session.call_label(index));
                    ("UserMarker", message.to_owned())
                }
                Domain::HipApi
                | Domain::HsaApi
                | Domain::RcclApi
                | Domain::RocdecodeApi
                | Domain::RocjpegApi
                | Domain::CudaApi
                | Domain::CudaDriverApi
                | Domain::RocshmemApi
                | Domain::HipfileApi
                | Domain::Ompt
                // Not calls.
                | Domain::Kfd
                | Domain::KernelDispatch
                | Domain::MemoryCopy
                | Domain::ScratchMemory
                | Domain::CounterCollection
                | Domain::MemoryAllocation => (operation, arguments(session, index)),
            };
            let name_id = texts.id(name)?;
            call_rows
                .integer(id)
                .integer(pid.into())
                .integer(calls.thread[index].0.into())
                .bits(calls.start[index].0)
                .bits(calls.end[index].0)
                .integer(name_id)
                .integer(EMPTY)
                .integer(texts.id(domain_name(domain))?)
                .integer(texts.unique(&arguments)?)
                .end_row()?;
            counts.calls += 1;
            let stack = calls.stack.get(index).map_or(0, |found| found.stack);
            if stack == 0 {
                continue;
            }
            // Calls of one function from one place have the same lines, which are texts that were written before.
            let known = match lines.entry((stack, name_id)) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(new) => {
                    let mut ids = Vec::new();
                    for line in frame_lines(session, expanded, stack, name) {
                        ids.push(texts.id(&line)?);
                    }
                    remembered += ids.len();
                    new.insert(ids)
                }
            };
            for (depth, &name) in (0..).zip(known.iter()) {
                frames
                    .integer(self.next_frame)
                    .integer(id)
                    .integer(depth)
                    .integer(name)
                    .end_row()?;
                self.next_frame += 1;
                counts.frames += 1;
            }
            // Beyond the limit all are forgotten: their texts are found again by content.
            if remembered > REMEMBERED_FRAMES {
                remembered = 0;
                lines.clear();
            }
        }
        call_rows.finish()?;
        frames.finish()?;

        let mut ops = Bulk::new(
            &self.connection,
            "rocpd_op",
            &[
                "id",
                "gpuId",
                "queueId",
                "sequenceId",
                "start",
                "end",
                "description_id",
                "opType_id",
            ],
        )?;
        let mut links = Bulk::new(&self.connection, "rocpd_api_ops", &["api_id", "op_id"])?;
        // A graph launch has one row for all its kernels.
        let mut launch = self.connection.prepare(
            "INSERT OR IGNORE INTO rocpd_kernelapi VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?;
        let labels = KernelLabels::new(session, names);
        let gpu = |agent: AgentHandle| {
            let found = session.agent(agent);
            found.map_or(0, |agent| i64::from(agent.logical_node_type_id))
        };
        let dispatches = &session.dispatches;
        for index in dispatches.indices() {
            let id = self.next_op;
            self.next_op += 1;
            let name = texts.id(labels.dispatch(index))?;
            ops.integer(id)
                .integer(gpu(dispatches.agent[index]))
                .bits(dispatches.queue[index].0)
                .integer(dispatches.stream[index].0.into())
                .bits(dispatches.start[index].0)
                .bits(dispatches.end[index].0)
                .integer(name)
                .integer(texts.id("KernelExecution")?)
                .end_row()?;
            counts.operations += 1;
            // Work whose call is not recorded has no rows that link it.
            if let Some(api) = ids.first(dispatches.correlation[index].0) {
                let api = offset + api;
                links.integer(api).integer(id).end_row()?;
                let (grid, group) = (dispatches.grid[index], dispatches.workgroup[index]);
                launch.execute(params![
                    api,
                    stream(dispatches.stream[index]),
                    grid[0],
                    grid[1],
                    grid[2],
                    group[0],
                    group[1],
                    group[2],
                    dispatches.group_size[index],
                    dispatches.private_size[index],
                    name,
                ])?;
            }
        }
        let mut copy = self.connection.prepare(
            "INSERT OR IGNORE INTO rocpd_copyapi VALUES (?1, ?2, ?3, 0, 0, ?4, ?5, ?6, ?7, ?8, ?9, 0)",
        )?;
        let copies = &session.copies;
        for index in copies.indices() {
            let id = self.next_op;
            self.next_op += 1;
            let (name, kind) = copy_kind(session.operation_name(copies.operation[index]));
            let (dst, src) = (gpu(copies.dst_agent[index]), gpu(copies.src_agent[index]));
            ops.integer(id)
                // A copy to the host is done by the GPU that it comes from.
                .integer(if kind == 2 { src } else { dst })
                .integer(0)
                .integer(copies.stream[index].0.into())
                .bits(copies.start[index].0)
                .bits(copies.end[index].0)
                .integer(EMPTY)
                .integer(texts.id(name)?)
                .end_row()?;
            counts.operations += 1;
            if let Some(api) = ids.first(copies.correlation[index].0) {
                let api = offset + api;
                links.integer(api).integer(id).end_row()?;
                copy.execute(params![
                    api,
                    stream(copies.stream[index]),
                    copies.bytes[index].cast_signed(),
                    kind,
                    format!("{:#x}", copies.dst_address[index]),
                    format!("{:#x}", copies.src_address[index]),
                    dst,
                    src,
                    // Whether the call waited is not recorded.
                    0,
                ])?;
            }
        }
        ops.finish()?;
        links.finish()?;
        texts.finish()?;
        Ok(counts)
    }
}

/// A call that is found by its correlation id.
#[derive(Debug, Clone, Copy, PartialEq, Immutable, IntoBytes)]
#[repr(C)]
struct CorrelatedCall {
    correlation: u64,
    index: u64,
}

impl Keyed for CorrelatedCall {
    type Key = u64;

    fn key(&self) -> u64 {
        self.correlation
    }
}

/// The ids of calls: their correlation ids where these are fit and no earlier call has them.
struct CallIds {
    /// The first call with each correlation id.
    first: Lookup<CorrelatedCall>,
}

impl CallIds {
    fn new(session: &Session) -> io::Result<CallIds> {
        let storage = session.storage.as_ref();
        let mut calls = Sorter::new(storage);
        for (index, correlation) in session.calls.correlation.iter().enumerate() {
            calls.push(CorrelatedCall {
                correlation: correlation.0,
                index: index as u64,
            })?;
        }
        let mut first = Lookup::default();
        let mut last = None;
        for call in calls.finish()? {
            if last != Some(call.correlation) {
                first.push(storage, call)?;
                last = Some(call.correlation);
            }
        }
        first.seal(storage)?;
        Ok(CallIds { first })
    }

    /// The id of a call.
    fn of(&self, correlation: u64, index: usize) -> i64 {
        let first = self.first.find(correlation);
        let is_first = first.is_some_and(|first| first.index == index as u64);
        match i64::try_from(correlation) {
            Ok(id) if is_first && id > 0 && id < UNFIT => id,
            _ => UNFIT + index as i64,
        }
    }

    /// The id of the first call with a correlation id.
    fn first(&self, correlation: u64) -> Option<i64> {
        let first = self.first.find(correlation)?;
        Some(self.of(correlation, first.index as usize))
    }
}

/// Texts of both tables. They share their ids, and all of them are in `rocpd_string`: the SQL of RPD's guide to stack
/// frames looks for arguments there.
struct Texts<'c, 'k> {
    strings: Bulk<'c>,
    arguments: Bulk<'c>,
    known: &'k mut KnownTexts,
}

/// Texts that are in the file.
#[derive(Debug)]
struct KnownTexts {
    texts: HashMap<String, KnownText>,
    /// Bytes that arguments take in `texts`.
    bytes: usize,
    next: i64,
}

#[derive(Debug, Clone, Copy)]
struct KnownText {
    id: i64,
    /// Whether the text is in the table of arguments as well.
    is_argument: bool,
}

impl KnownTexts {
    fn new_id(&mut self) -> i64 {
        let id = self.next;
        self.next += 1;
        id
    }
}

/// Greatest number of bytes of arguments that are remembered, so that other calls with the same ones refer to them.
/// Arguments beyond it are written for each call that has them.
const REMEMBERED: usize = 48 << 20;
/// Frames of stacks that are remembered, of 8 bytes each: the lines of further stacks are put together again.
const REMEMBERED_FRAMES: usize = 1 << 20;
/// Memory of a text besides its letters, in bytes.
const TEXT_OVERHEAD: usize = 64;

impl<'c, 'k> Texts<'c, 'k> {
    fn new(
        connection: &'c Connection,
        known: &'k mut KnownTexts,
    ) -> rusqlite::Result<Texts<'c, 'k>> {
        Ok(Texts {
            strings: Bulk::new(connection, "rocpd_string", &["id", "string"])?,
            arguments: Bulk::new(connection, "rocpd_ustring", &["id", "string"])?,
            known,
        })
    }

    /// The id of a name.
    fn id(&mut self, text: &str) -> rusqlite::Result<i64> {
        if text.is_empty() {
            return Ok(EMPTY);
        }
        if let Some(known) = self.known.texts.get(text) {
            return Ok(known.id);
        }
        let id = self.known.new_id();
        add(&mut self.strings, id, text)?;
        let is_argument = false;
        let known = KnownText { id, is_argument };
        self.known.texts.insert(text.to_owned(), known);
        Ok(id)
    }

    /// The id of the arguments of a call, of which there may be as many as calls.
    fn unique(&mut self, text: &str) -> rusqlite::Result<i64> {
        if text.is_empty() {
            return Ok(EMPTY);
        }
        if let Some(known) = self.known.texts.get_mut(text) {
            if !known.is_argument {
                known.is_argument = true;
                add(&mut self.arguments, known.id, text)?;
            }
            return Ok(known.id);
        }
        let id = self.known.new_id();
        add(&mut self.strings, id, text)?;
        add(&mut self.arguments, id, text)?;
        if self.known.bytes < REMEMBERED {
            self.known.bytes += text.len() + TEXT_OVERHEAD;
            let is_argument = true;
            let known = KnownText { id, is_argument };
            self.known.texts.insert(text.to_owned(), known);
        }
        Ok(id)
    }

    fn finish(self) -> rusqlite::Result<()> {
        self.strings.finish()?;
        self.arguments.finish()
    }
}

/// Adds a text to one of the tables.
fn add(table: &mut Bulk<'_>, id: i64, text: &str) -> rusqlite::Result<()> {
    table.integer(id).text(text).end_row()
}

/// Arguments of a call as RPD writes them; none of copies and launches, which have tables of their own.
fn arguments(session: &Session, index: usize) -> String {
    let calls = &session.calls;
    let operation = session.operation_name(calls.operation[index]);
    if operation.starts_with("hipMemcpy") || operation.contains("Launch") {
        return String::new();
    }
    let args = calls.args[index];
    let raw = usize::try_from(args.offset)
        .ok()
        .and_then(|from| calls.arena.get(from..)?.get(..args.len as usize))
        .unwrap_or_default();
    if raw.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let known = layout(session.call(index).kind, operation);
    for_each_argument(known, args.flags, raw, |_, ty, name, value| {
        if !text.is_empty() {
            text += " | ";
        }
        let size = value.parse::<u64>().ok();
        match size.filter(|_| ty == "unsigned long" && name.starts_with("size")) {
            Some(size) => text += &format!("{name}={size:#x}"),
            None => text += &format!("{name}={value}"),
        }
    });
    text
}

const fn domain_name(domain: Domain) -> &'static str {
    match domain {
        Domain::HipApi => "hip",
        Domain::HsaApi => "hsa",
        Domain::MarkerApi => "roctx",
        Domain::RcclApi => "rccl",
        Domain::RocdecodeApi => "rocdecode",
        Domain::RocjpegApi => "rocjpeg",
        Domain::CudaApi => "cuda",
        Domain::CudaDriverApi => "cuda_driver",
        Domain::RocshmemApi => "rocshmem",
        Domain::HipfileApi => "hipfile",
        Domain::Ompt => "ompt",
        // Not calls.
        Domain::Kfd
        | Domain::KernelDispatch
        | Domain::MemoryCopy
        | Domain::ScratchMemory
        | Domain::CounterCollection
        | Domain::MemoryAllocation => "",
    }
}

fn stream(stream: StreamId) -> String {
    format!("{:#x}", stream.0)
}

/// RPD's name of a copy, and HIP's number of its kind.
fn copy_kind(operation: &str) -> (&'static str, i64) {
    match operation.strip_prefix("MEMORY_COPY_").unwrap_or(operation) {
        "HOST_TO_HOST" => ("CopyHostToHost", 0),
        "HOST_TO_DEVICE" => ("CopyHostToDevice", 1),
        "DEVICE_TO_HOST" => ("CopyDeviceToHost", 2),
        "DEVICE_TO_DEVICE" => ("CopyDeviceToDevice", 3),
        _ => ("Copy", 4),
    }
}
