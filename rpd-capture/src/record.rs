//! Makes a capture from the spool of a process: data while the program runs, the database when it has ended.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rpd_gfx::codeobj::CodeObject;
use rpd_spool::capture::{
    self as spool, AllocationItem, CaptureCall, CaptureCode, DataHeader, Group, HandleKind, Item,
    ItemHeader, Items, NO_ARGUMENT, Operation, Role, STAGE_FILE, StageControl, call_flag,
    data_place, data_use, ended, item, memory_kind, number, operation,
};
use rpd_spool::reader::{ProcessSpool, Record, Records};
use rpd_spool::record::RecordKind;
use rusqlite::{Connection, params};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::live::LiveReader;
use crate::objects::Intervals;
use crate::pack::{self, CHUNK, Hash, PackWriter};
use crate::{BLOBS, CODE, CaptureError, DATABASE, Manifest, REPORT, VERSION, database};

/// Data begin at multiples of this in the staging file.
const ALIGN: u64 = 64;

/// What a capture holds.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Calls.
    pub calls: u64,
    /// Launches of kernels and graphs.
    pub launches: u64,
    /// Bytes of data, each time counted.
    pub data: u64,
    /// Bytes of different data.
    pub distinct: u64,
    /// Bytes that these take.
    pub stored: u64,
    /// Nanoseconds that calls waited, and how many waited.
    pub stalled: (u64, u64),
    /// Calls that cannot be replayed: name and count.
    pub unsupported: Vec<(String, u64)>,
    /// What a replay lacks, and what is damaged.
    pub notes: Vec<String>,
    /// Why the capture ended before the program; empty: it did not.
    pub ended: String,
    /// Recording ended in good order.
    pub clean: bool,
}

/// Data in the packs.
#[derive(Debug, Clone)]
struct Blob {
    size: u64,
    parts: Vec<Hash>,
    /// False: only the hash is kept.
    kept: bool,
}

/// Makes a capture of one process.
pub struct Recorder {
    spool: PathBuf,
    capture: PathBuf,
    live: LiveReader,
    stage: Option<File>,
    control: Option<File>,
    consumed: u64,
    packs: PackWriter,
    /// Whether the content of what copies wrote is kept, not only its hash.
    keep_outputs: bool,
    blobs: Vec<Blob>,
    by_hash: HashMap<(Hash, bool), i64>,
    staged: HashMap<u64, i64>,
    data: u64,
    /// Why data cannot be stored any more.
    failed: Option<CaptureError>,
    buffer: Vec<u8>,
}

impl Recorder {
    /// Makes the capture `capture`, a directory that exists and is empty, from the directory `spool` of a process.
    ///
    /// # Errors
    /// When the folders of the capture cannot be made.
    pub fn new(
        spool: &Path,
        capture: &Path,
        level: Option<i32>,
        keep_outputs: bool,
    ) -> Result<Recorder, CaptureError> {
        for folder in [BLOBS, CODE] {
            let path = capture.join(folder);
            std::fs::create_dir_all(&path).map_err(CaptureError::io(&path))?;
        }
        Ok(Recorder {
            spool: spool.to_owned(),
            capture: capture.to_owned(),
            live: LiveReader::new(spool),
            stage: None,
            control: None,
            consumed: 0,
            packs: PackWriter::new(capture.join(BLOBS), level),
            keep_outputs,
            blobs: Vec::new(),
            by_hash: HashMap::new(),
            staged: HashMap::new(),
            data: 0,
            failed: None,
            buffer: Vec::new(),
        })
    }

    /// Takes the data that the program has staged since the last call.
    ///
    /// # Errors
    /// When the spool cannot be read. A full disk is none: the capture ends there, and [`Recorder::finish`] says so.
    pub fn poll(&mut self) -> Result<(), CaptureError> {
        if self.control.is_none() {
            self.control = File::options()
                .read(true)
                .write(true)
                .open(self.spool.join(spool::CONTROL_FILE))
                .ok();
        }
        if self.stage.is_none() {
            self.stage = File::options()
                .read(true)
                .write(true)
                .open(self.spool.join(STAGE_FILE))
                .ok();
        }
        let directory = self.spool.clone();
        let mut live = std::mem::replace(&mut self.live, LiveReader::new(&directory));
        let polled = live.poll(|record| -> io::Result<()> {
            for item in items(record).unwrap_or(Items(&[])) {
                if let Some((data, _)) = data_of(&item)
                    && data.offset < data_place::SKIPPED
                {
                    self.take(&data);
                }
            }
            Ok(())
        });
        self.live = live;
        polled.map_err(CaptureError::io(&directory))
    }

    /// Whether the outputs of data of this purpose are kept.
    fn keeps(&self, purpose: u32) -> bool {
        purpose != data_use::OUTPUT || self.keep_outputs
    }

    /// Takes data out of the staging file.
    fn take(&mut self, data: &DataHeader) {
        if self.staged.contains_key(&data.offset) {
            return;
        }
        let Some(stage) = &self.stage else { return };
        let Ok(stage) = stage.try_clone() else { return };
        if self.failed.is_none() {
            let stored = self.store(data.size, self.keeps(data.purpose), |at, bytes| {
                stage.read_exact_at(bytes, data.offset + at)
            });
            match stored {
                Ok(blob) => {
                    self.staged.insert(data.offset, blob);
                }
                Err(error) => self.failed = Some(error),
            }
        }
        let room = data.size.next_multiple_of(ALIGN);
        punch(&stage, data.offset, room);
        self.consumed += room;
        if let Some(control) = &self.control {
            let offset = offset_of!(StageControl, consumed) as u64;
            // Nobody else writes these eight bytes; the target only compares them.
            let _ = control.write_all_at(&self.consumed.to_le_bytes(), offset);
        }
    }

    /// Stores data that `read` yields in parts; the number of the blob.
    fn store(
        &mut self,
        size: u64,
        keep: bool,
        mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    ) -> Result<i64, CaptureError> {
        let mut parts = Vec::new();
        let mut at = 0;
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut done = Ok(());
        while at < size || size == 0 && parts.is_empty() {
            let len = (size - at).min(CHUNK as u64) as usize;
            buffer.resize(len, 0);
            let part = read(at, &mut buffer)
                .map_err(CaptureError::io(&self.spool.join(STAGE_FILE)))
                .and_then(|()| match keep {
                    true => self.packs.store(&buffer),
                    false => Ok(*blake3::hash(&buffer).as_bytes()),
                });
            match part {
                Ok(hash) => parts.push(hash),
                Err(error) => {
                    done = Err(error);
                    break;
                }
            }
            at += len as u64;
        }
        self.buffer = buffer;
        done?;
        self.data += size;
        let hash = pack::hash_of(&parts);
        if let Some(known) = self.by_hash.get(&(hash, keep)) {
            return Ok(*known);
        }
        self.blobs.push(Blob {
            size,
            parts,
            kept: keep,
        });
        let blob = self.blobs.len() as i64;
        self.by_hash.insert((hash, keep), blob);
        Ok(blob)
    }

    fn control_word(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        let read = self
            .control
            .as_ref()
            .is_some_and(|control| control.read_exact_at(&mut bytes, offset as u64).is_ok());
        if read { u64::from_le_bytes(bytes) } else { 0 }
    }

    /// Bytes of data so far, and bytes that wait in the staging file.
    pub fn progress(&self) -> (u64, u64, u64) {
        let calls = self.control_word(offset_of!(StageControl, calls));
        let reserved = self.control_word(offset_of!(StageControl, reserved));
        let abandoned = self.control_word(offset_of!(StageControl, abandoned));
        (
            calls,
            self.data,
            reserved.saturating_sub(self.consumed + abandoned),
        )
    }

    /// Whether the process has captured a call.
    pub fn has_calls(&self) -> bool {
        self.control_word(offset_of!(StageControl, calls)) > 0
    }

    /// Writes the database and the description. The program has ended.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(mut self, mut manifest: Manifest) -> Result<Summary, CaptureError> {
        self.poll()?;
        let path = self.capture.join(DATABASE);
        let fresh = self.capture.join(format!(".{DATABASE}"));
        let _ = std::fs::remove_file(&fresh);
        let failed = CaptureError::database(&path);
        let database = Connection::open(&fresh).map_err(CaptureError::database(&path))?;
        let mut summary = Summary::default();
        Writer::write(&mut self, &database, &mut summary).map_err(|error| match error {
            WriteError::Database(source) => failed(source),
            WriteError::Capture(error) => error,
        })?;
        database
            .close()
            .map_err(|(_, error)| CaptureError::database(&path)(error))?;
        std::fs::rename(&fresh, &path).map_err(CaptureError::io(&path))?;
        summary.stalled = (
            self.control_word(offset_of!(StageControl, stalled)),
            self.control_word(offset_of!(StageControl, stalls)),
        );
        let ended = self.control_word(offset_of!(StageControl, ended)) as u32;
        summary.ended = match (&self.failed, ended) {
            (Some(error), _) => error.to_string(),
            (None, ended::NOT) => String::new(),
            (None, ended::NO_SPACE) => "there was no space left for what was captured".to_owned(),
            (None, ended::LIMIT) => "the limit of --max-bytes was reached".to_owned(),
            (None, _) => "rpd did not take the data in time".to_owned(),
        };
        let unknown = self.control_word(offset_of!(StageControl, unknown_functions));
        if unknown > 0 {
            summary.notes.push(format!(
                "the runtime has {unknown} functions that this rpd does not know; calls of them are not captured"
            ));
        }
        let kept: Vec<_> = self.packs.chunks().values().collect();
        summary.distinct = kept.iter().map(|chunk| u64::from(chunk.size)).sum();
        summary.stored = kept.iter().map(|chunk| u64::from(chunk.stored)).sum();
        summary.data = self.data;
        manifest.format = VERSION;
        manifest.clean = summary.clean && summary.ended.is_empty();
        manifest.ended = summary.ended.clone();
        manifest.calls = summary.calls;
        manifest.data = summary.data;
        manifest.distinct = summary.distinct;
        manifest.stored = summary.stored;
        manifest.stalled = summary.stalled;
        let mut report = String::new();
        for (name, count) in &summary.unsupported {
            report += &format!("{name}: called {count} times, cannot be replayed\n");
        }
        for note in &summary.notes {
            report += note;
            report.push('\n');
        }
        if !summary.ended.is_empty() {
            report += &format!("the capture ended before the program: {}\n", summary.ended);
        }
        let path = self.capture.join(REPORT);
        std::fs::write(&path, report).map_err(CaptureError::io(&path))?;
        manifest.write(&self.capture)?;
        Ok(summary)
    }
}

/// Gives the blocks of a part of the file back.
fn punch(file: &File, offset: u64, len: u64) {
    // Only whole blocks are freed; a neighbour's part of a block stays.
    let flags = nix::fcntl::FallocateFlags::FALLOC_FL_PUNCH_HOLE
        | nix::fcntl::FallocateFlags::FALLOC_FL_KEEP_SIZE;
    if len >= 4096 {
        let _ = file.as_raw_fd();
        let _ = nix::fcntl::fallocate(file, flags, offset as libc::off_t, len as libc::off_t);
    }
}

/// The items of a record of a capture.
fn items<'a>(record: &Record<'a>) -> Option<Items<'a>> {
    match RecordKind::from_tag(record.header.tag)? {
        RecordKind::CaptureCall => {
            let (call, tail) = record.parse::<CaptureCall>()?;
            let size = operation(call.operation).map_or(0, |found| usize::from(found.size));
            Some(Items(tail.get(size.next_multiple_of(8)..)?))
        }
        RecordKind::CaptureCode => Some(Items(record.parse::<CaptureCode>()?.1)),
        _ => None,
    }
}

fn data_of<'a>(item: &Item<'a>) -> Option<(DataHeader, &'a [u8])> {
    match item.kind {
        item::DATA => item.data(),
        _ => None,
    }
}

enum WriteError {
    Database(rusqlite::Error),
    Capture(CaptureError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> WriteError {
        WriteError::Database(error)
    }
}

impl From<CaptureError> for WriteError {
    fn from(error: CaptureError) -> WriteError {
        WriteError::Capture(error)
    }
}

/// The place of a call in the order of the replay. Calls that add work take the place at which they began; those that wait
/// or make something, the one at which they returned.
pub(crate) fn place(operation: &Operation, entry: u64, exit: u64) -> u64 {
    let name = operation.name();
    let waits = name.contains("Synchronize") || name.contains("Query");
    let blocks = operation.group == Group::Transfer
        && name.starts_with("hipMemcpy")
        && !name.contains("Async");
    let makes = operation.arguments().iter().any(|argument| {
        matches!(
            argument.role,
            Role::HandleOut(_) | Role::AddressOut | Role::StructOut(_)
        )
    });
    match waits || blocks || makes {
        true => exit,
        false => entry,
    }
}

/// A stream of records and the record that comes next.
struct Source<'a> {
    records: Records<'a>,
    tid: u32,
    next: Option<(u64, Vec<u8>)>,
}

impl Source<'_> {
    fn advance(&mut self, clean: &mut bool) {
        self.next = None;
        while let Some(record) = self.records.next() {
            let place = match RecordKind::from_tag(record.header.tag) {
                Some(RecordKind::CaptureCall) => record.parse::<CaptureCall>().map(|(call, _)| {
                    let found = operation(call.operation);
                    found.map_or(call.entry, |found| place(found, call.entry, call.exit))
                }),
                Some(RecordKind::CaptureCode) => {
                    record.parse::<CaptureCode>().map(|(code, _)| code.entry)
                }
                Some(RecordKind::End) => {
                    *clean = true;
                    None
                }
                _ => None,
            };
            if let Some(place) = place {
                let mut bytes = self.next.take().map(|(_, bytes)| bytes).unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(record.bytes);
                self.next = Some((place, bytes));
                return;
            }
        }
    }
}

struct Kernel {
    id: i64,
    /// Offset, size and whether it is a pointer for certain.
    arguments: Vec<(u32, u32, bool)>,
    launches: i64,
}

/// Fills the database.
struct Writer<'a> {
    recorder: &'a mut Recorder,
    database: &'a Connection,
    summary: &'a mut Summary,
    objects: HashMap<(HandleKind, u64), i64>,
    last_object: i64,
    memory: Intervals,
    last_memory: i64,
    codes: HashMap<u64, i64>,
    last_code: i64,
    kernels: HashMap<(i64, Vec<u8>), Kernel>,
    last_kernel: i64,
    /// Rows by begin of the call.
    seq_of: HashMap<u64, i64>,
    unsupported: BTreeMap<u32, u64>,
    seq: i64,
    pid: u32,
}

impl Writer<'_> {
    fn write(
        recorder: &mut Recorder,
        database: &Connection,
        summary: &mut Summary,
    ) -> Result<(), WriteError> {
        database.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 4096; PRAGMA cache_size = -65536;",
        )?;
        database.execute_batch(&format!("BEGIN; {}", database::TABLES))?;
        database.execute_batch(&format!("PRAGMA user_version = {VERSION};"))?;
        let directory = recorder.spool.clone();
        let spool = ProcessSpool::open(&directory).map_err(CaptureError::io(&directory))?;
        let mut clean = false;
        let mut sources: Vec<Source<'_>> = spool
            .streams
            .iter()
            .map(|stream| Source {
                records: stream.records(),
                tid: stream.tid,
                next: None,
            })
            .collect();
        for source in &mut sources {
            source.advance(&mut clean);
        }
        let pid = spool.streams.first().map_or(0, |stream| stream.pid);
        let mut writer = Writer {
            recorder,
            database,
            summary,
            objects: HashMap::new(),
            last_object: 0,
            memory: Intervals::default(),
            last_memory: 0,
            codes: HashMap::new(),
            last_code: 0,
            kernels: HashMap::new(),
            last_kernel: 0,
            seq_of: HashMap::new(),
            unsupported: BTreeMap::new(),
            seq: 0,
            pid,
        };
        loop {
            let first = sources
                .iter_mut()
                .filter(|source| source.next.is_some())
                .min_by_key(|source| source.next.as_ref().map(|(place, _)| *place));
            let Some(source) = first else { break };
            let Some((_, bytes)) = source.next.take() else {
                break;
            };
            let tid = source.tid;
            source.advance(&mut clean);
            writer.record(tid, &bytes)?;
        }
        let mut dropped = 0;
        for source in sources {
            dropped += source.records.dropped();
            for damage in source.records.into_damage() {
                writer.summary.notes.push(damage.to_string());
            }
        }
        if dropped > 0 {
            let text = format!("{dropped} records could not be stored");
            writer.summary.notes.push(text);
        }
        writer.summary.clean = clean && dropped == 0;
        writer.tables()?;
        database.execute_batch(&format!(
            "{} {} COMMIT;",
            database::INDICES,
            database::VIEWS
        ))?;
        Ok(())
    }

    fn note(&mut self, severity: &str, text: &str) -> Result<(), WriteError> {
        self.database
            .prepare_cached("INSERT INTO note VALUES (?, ?, ?)")?
            .execute(params![self.seq, severity, text])?;
        Ok(())
    }

    fn record(&mut self, tid: u32, bytes: &[u8]) -> Result<(), WriteError> {
        let Ok((header, _)) = rpd_spool::format::RecordHeader::read_from_prefix(bytes) else {
            return Ok(());
        };
        let record = Record { header, bytes };
        match RecordKind::from_tag(header.tag) {
            Some(RecordKind::CaptureCall) => self.call(tid, &record),
            Some(RecordKind::CaptureCode) => self.code(&record),
            _ => Ok(()),
        }
    }

    /// The number of the blob with these data; 0 when they were not kept or are lost.
    fn blob(&mut self, data: &DataHeader, inline: &[u8]) -> Result<i64, WriteError> {
        Ok(match data.offset {
            data_place::SKIPPED => 0,
            data_place::INLINE => {
                let keep = self.recorder.keeps(data.purpose);
                let Some(bytes) = inline.get(..data.size as usize) else {
                    return Ok(0);
                };
                self.recorder.store(data.size, keep, |at, into| {
                    into.copy_from_slice(&bytes[at as usize..][..into.len()]);
                    Ok(())
                })?
            }
            offset => self.recorder.staged.get(&offset).copied().unwrap_or(0),
        })
    }

    fn code(&mut self, record: &Record<'_>) -> Result<(), WriteError> {
        let Some((code, tail)) = record.parse::<CaptureCode>() else {
            return Ok(());
        };
        let Some((data, inline)) = Items(tail).find_map(|item| data_of(&item)) else {
            return Ok(());
        };
        let blob = self.blob(&data, inline)?;
        self.last_code += 1;
        let id = self.last_code;
        self.codes.insert(code.id, id);
        let Some(found) = usize::try_from(blob - 1)
            .ok()
            .and_then(|index| self.recorder.blobs.get(index))
        else {
            self.note("error", "the bytes of a code object were lost")?;
            return Ok(());
        };
        let hash = pack::hash_of(&found.parts);
        let (size, parts) = (found.size, found.parts.clone());
        let bytes = self.bytes_of(&parts)?;
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{CODE}/{hex}.co");
        let path = self.recorder.capture.join(&name);
        if !path.exists() {
            std::fs::write(&path, &bytes).map_err(CaptureError::io(&path))?;
        }
        let parsed = CodeObject::parse(&bytes);
        let (triple, error) = match &parsed {
            Ok(object) => (object.target().to_string(), None),
            Err(error) => (String::new(), Some(error.to_string())),
        };
        self.database
            .prepare_cached("INSERT INTO code VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?
            .execute(params![
                id,
                code.id as i64,
                code.agent as i64,
                hash,
                blob,
                triple,
                size as i64,
                self.seq,
                code.load_base as i64,
                code.load_size as i64,
                name,
                error,
            ])?;
        if let Ok(object) = parsed {
            for kernel in object.kernels() {
                self.last_kernel += 1;
                let explicit: Vec<_> = kernel.explicit_args().collect();
                let explicit_size = explicit.iter().map(|one| one.offset + one.size).max();
                let arguments: Vec<serde_json::Value> = kernel
                    .args
                    .iter()
                    .map(|argument| {
                        serde_json::json!({
                            "offset": argument.offset,
                            "size": argument.size,
                            "kind": format!("{:?}", argument.kind),
                            "hidden": argument.kind.is_hidden(),
                            "name": argument.name,
                            "address_space": argument.address_space,
                        })
                    })
                    .collect();
                self.database
                    .prepare_cached("INSERT INTO kernel VALUES (?, ?, ?, ?, ?, ?, ?)")?
                    .execute(params![
                        self.last_kernel,
                        id,
                        kernel.name,
                        kernel.symbol,
                        kernel.kernarg_bytes(),
                        explicit_size.unwrap_or(0),
                        serde_json::Value::from(arguments).to_string(),
                    ])?;
                let arguments = explicit
                    .iter()
                    .map(|one| {
                        let certain = one.kind == rpd_gfx::codeobj::ArgKind::GlobalBuffer;
                        (one.offset, one.size, certain)
                    })
                    .collect();
                let known = Kernel {
                    id: self.last_kernel,
                    arguments,
                    launches: 0,
                };
                self.kernels
                    .insert((id, kernel.name.clone().into_bytes()), known);
            }
        }
        Ok(())
    }

    fn bytes_of(&self, parts: &[Hash]) -> Result<Vec<u8>, CaptureError> {
        let mut reader = pack::PackReader::new(&self.recorder.capture.join(BLOBS));
        let mut bytes = Vec::new();
        for part in parts {
            if let Some(chunk) = self.recorder.packs.chunks().get(part) {
                reader.read(part, chunk, &mut bytes)?;
            }
        }
        Ok(bytes)
    }

    fn object(&mut self, kind: HandleKind, raw: u64, props: &str) -> Result<i64, WriteError> {
        self.last_object += 1;
        self.objects.insert((kind, raw), self.last_object);
        self.database
            .prepare_cached("INSERT INTO object VALUES (?, ?, ?, NULL, ?, ?)")?
            .execute(params![
                self.last_object,
                kind.name(),
                self.seq,
                raw as i64,
                props
            ])?;
        Ok(self.last_object)
    }

    fn destroyed(&mut self, kind: HandleKind, raw: u64) -> Result<(), WriteError> {
        if let Some(number) = self.objects.remove(&(kind, raw)) {
            self.database
                .prepare_cached("UPDATE object SET destroyed = ? WHERE num = ?")?
                .execute(params![self.seq, number])?;
        }
        Ok(())
    }

    fn call(&mut self, tid: u32, record: &Record<'_>) -> Result<(), WriteError> {
        let Some((call, tail)) = record.parse::<CaptureCall>() else {
            return Ok(());
        };
        let Some(operation) = operation(call.operation) else {
            self.summary
                .notes
                .push(format!("a call has the unknown number {}", call.operation));
            return Ok(());
        };
        let size = usize::from(operation.size);
        let (Some(arguments), Some(rest)) =
            (tail.get(..size), tail.get(size.next_multiple_of(8)..))
        else {
            return Ok(());
        };
        self.seq += 1;
        self.seq_of.insert(call.entry, self.seq);
        self.summary.calls += 1;
        let mut rewritten = Vec::new();
        let mut add = |kind: u16, argument: u16, payload: &[u8]| {
            let header = ItemHeader {
                kind,
                argument,
                len: payload.len() as u32,
            };
            rewritten.extend_from_slice(header.as_bytes());
            rewritten.extend_from_slice(payload);
            rewritten.resize(rewritten.len().next_multiple_of(8), 0);
        };
        let mut source_blob = None;
        let mut output_blob = None;
        let mut lost = false;
        for item in Items(rest) {
            let Some((mut data, inline)) = data_of(&item) else {
                if item.kind == item::MISSING {
                    let text = String::from_utf8_lossy(item.payload).into_owned();
                    self.note("error", &format!("{}: {text}", operation.name()))?;
                }
                add(item.kind, item.argument, item.payload);
                continue;
            };
            let blob = self.blob(&data, inline)?;
            lost |= blob == 0 && data.offset != data_place::SKIPPED;
            data.offset = blob as u64;
            // From here on the copy is named by its number, and 0 is this call.
            let copy = self.seq_of.get(&data.copy).copied().unwrap_or(0);
            data.copy = copy as u64;
            match data.purpose {
                data_use::SOURCE => source_blob = Some(blob),
                data_use::OUTPUT => {
                    if copy == 0 {
                        output_blob = Some(blob);
                    }
                    self.database
                        .prepare_cached("INSERT INTO output VALUES (?, ?, ?, ?, ?)")?
                        .execute(params![
                            self.seq,
                            if copy == 0 { self.seq } else { copy },
                            data.address as i64,
                            data.size as i64,
                            blob
                        ])?;
                }
                _ => {}
            }
            add(item::DATA, NO_ARGUMENT, data.as_bytes());
        }
        if lost {
            self.note(
                "error",
                &format!("{}: data of the call are lost", operation.name()),
            )?;
        }
        let stream = operation
            .with_role(Role::Handle(HandleKind::Stream))
            .map_or(0, |argument| argument.value(arguments));
        self.database
            .prepare_cached(
                "INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                self.seq,
                call.entry as i64,
                call.exit as i64,
                tid,
                self.pid,
                call.device,
                stream as i64,
                call.operation,
                operation.name(),
                call.result,
                call.start as i64,
                call.end as i64,
                call.flags | if lost { call_flag::INCOMPLETE } else { 0 },
                arguments,
                rewritten,
            ])?;
        if operation.group == Group::Unsupported {
            *self.unsupported.entry(call.operation).or_default() += 1;
            return Ok(());
        }
        if call.result != 0 {
            return Ok(());
        }
        self.effects(
            &call,
            operation,
            arguments,
            rest,
            (source_blob, output_blob),
        )
    }

    fn effects(
        &mut self,
        call: &CaptureCall,
        operation: &'static Operation,
        arguments: &[u8],
        rest: &[u8],
        (source_blob, output_blob): (Option<i64>, Option<i64>),
    ) -> Result<(), WriteError> {
        let named = |name: &str| operation.argument(name).map(|one| one.value(arguments));
        for item in Items(rest) {
            if item.kind == item::OUT
                && let Some(argument) = operation.arguments().get(usize::from(item.argument))
                && let Role::HandleOut(kind) = argument.role
                && let Some(raw) = item.word()
            {
                let props: serde_json::Map<String, serde_json::Value> = operation
                    .arguments()
                    .iter()
                    .filter(|one| one.role == Role::Value && one.size <= 8)
                    .map(|one| (one.name().to_owned(), one.value(arguments).into()))
                    .collect();
                self.object(kind, raw, &serde_json::Value::from(props).to_string())?;
            }
            if item.kind == item::ALLOCATION
                && let Ok((made, _)) = AllocationItem::read_from_prefix(item.payload)
            {
                self.last_memory += 1;
                self.memory.insert(made.base, made.size, self.last_memory);
                self.database
                    .prepare_cached("INSERT INTO alloc VALUES (?, ?, ?, ?, ?, ?, ?, NULL)")?
                    .execute(params![
                        self.last_memory,
                        made.kind,
                        call.device,
                        made.base as i64,
                        made.size as i64,
                        made.flags,
                        self.seq
                    ])?;
            }
        }
        match call.operation {
            number::hipFree
            | number::hipFreeAsync
            | number::hipHostFree
            | number::hipFreeHost
            | number::hipHostUnregister => {
                let base = operation
                    .with_role(Role::Address)
                    .map_or(0, |argument| argument.value(arguments));
                if let Some(number) = self.memory.remove(base) {
                    self.database
                        .prepare_cached("UPDATE alloc SET destroyed = ? WHERE num = ?")?
                        .execute(params![self.seq, number])?;
                }
            }
            number::hipStreamDestroy => {
                self.destroyed(HandleKind::Stream, named("stream").unwrap_or(0))?
            }
            number::hipEventDestroy => {
                self.destroyed(HandleKind::Event, named("event").unwrap_or(0))?
            }
            number::hipModuleUnload => {
                self.destroyed(HandleKind::Module, named("module").unwrap_or(0))?
            }
            number::hipGraphDestroy => {
                self.destroyed(HandleKind::Graph, named("graph").unwrap_or(0))?
            }
            number::hipGraphExecDestroy => {
                self.destroyed(HandleKind::GraphExec, named("graphExec").unwrap_or(0))?;
            }
            _ => {}
        }
        let name = operation.name();
        if name.contains("Synchronize") || name.contains("Query") {
            let object = named("stream").or_else(|| named("event"));
            self.database
                .prepare_cached("INSERT INTO sync VALUES (?, ?, ?, ?)")?
                .execute(params![
                    self.seq,
                    name,
                    object.map(|raw| raw as i64),
                    call.result
                ])?;
        }
        if operation.group == Group::Transfer {
            let destination = named("dst").or_else(|| named("dest"));
            let source = named("src");
            let size = named("sizeBytes").or_else(|| Some(named("width")? * named("height")?));
            let place = |memory: &Intervals, address: Option<u64>| {
                address.and_then(|address| memory.find(address)).unzip()
            };
            let (to, to_offset) = place(&self.memory, destination);
            let (from, from_offset) = place(&self.memory, source);
            self.database
                .prepare_cached("INSERT INTO copy VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?
                .execute(params![
                    self.seq,
                    named("kind").map(|kind| kind as i64),
                    destination.map(|address| address as i64),
                    to,
                    to_offset.map(|offset| offset as i64),
                    source.map(|address| address as i64),
                    from,
                    from_offset.map(|offset| offset as i64),
                    size.map(|size| size as i64),
                    source_blob,
                    output_blob,
                    None::<i64>,
                ])?;
        }
        if operation.group == Group::Launch {
            self.launch(call, operation, arguments, rest)?;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        call: &CaptureCall,
        operation: &'static Operation,
        arguments: &[u8],
        rest: &[u8],
    ) -> Result<(), WriteError> {
        self.summary.launches += 1;
        let kernel = Items(rest).find(|item| item.kind == item::KERNEL);
        let packed = Items(rest)
            .find(|item| item.kind == item::KERNEL_ARGUMENTS)
            .map_or(&[][..], |item| item.payload);
        let mut found = None;
        if let Some(item) = kernel
            && let Some(provider) = item.word()
        {
            let code = self.codes.get(&provider).copied().unwrap_or(0);
            let name = item.payload.get(8..).unwrap_or_default().to_vec();
            if let Some(kernel) = self.kernels.get_mut(&(code, name)) {
                kernel.launches += 1;
                found = Some((kernel.id, kernel.launches, kernel.arguments.clone()));
            }
        }
        let (grid, block, lds) = geometry(operation, arguments, rest);
        let (id, launch_number) = match &found {
            Some((id, number, _)) => (Some(*id), Some(*number)),
            None => (None, None),
        };
        self.database
            .prepare_cached("INSERT INTO launch VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?
            .execute(params![
                self.seq,
                id,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                lds as i64,
                call.flags,
                launch_number,
                packed
            ])?;
        for (offset, size, certain) in found.iter().flat_map(|(_, _, arguments)| arguments) {
            for at in (*offset..offset + size / 8 * 8).step_by(8) {
                let bytes = packed.get(at as usize..at as usize + 8);
                let Some(word) = bytes.and_then(|bytes| bytes.try_into().ok()) else {
                    continue;
                };
                if let Some((memory, inside)) = self.memory.find(u64::from_le_bytes(word)) {
                    self.database
                        .prepare_cached("INSERT INTO arg_ptr VALUES (?, ?, ?, ?, ?)")?
                        .execute(params![
                            self.seq,
                            at,
                            memory,
                            inside as i64,
                            if *certain { "pointer" } else { "probable" }
                        ])?;
                }
            }
        }
        Ok(())
    }

    /// The tables of data.
    fn tables(&mut self) -> Result<(), WriteError> {
        for (api, count) in &self.unsupported {
            let name = operation(*api).map_or("", Operation::name);
            self.database
                .prepare_cached("INSERT INTO unsupported VALUES (?, ?, ?)")?
                .execute(params![api, name, *count as i64])?;
            self.summary.unsupported.push((name.to_owned(), *count));
        }
        let mut numbers: HashMap<Hash, i64> = HashMap::new();
        let chunks = self.recorder.packs.chunks();
        for (hash, chunk) in chunks {
            let number = numbers.len() as i64 + 1;
            numbers.insert(*hash, number);
            self.database
                .prepare_cached("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)")?
                .execute(params![
                    number,
                    hash,
                    chunk.pack,
                    chunk.offset as i64,
                    chunk.size,
                    chunk.stored,
                    chunk.codec as i64
                ])?;
        }
        for (index, blob) in self.recorder.blobs.iter().enumerate() {
            let id = index as i64 + 1;
            self.database
                .prepare_cached("INSERT INTO blob VALUES (?, ?, ?, ?)")?
                .execute(params![
                    id,
                    pack::hash_of(&blob.parts),
                    blob.size as i64,
                    blob.kept
                ])?;
            for (index, part) in blob.parts.iter().enumerate().filter(|_| blob.kept) {
                self.database
                    .prepare_cached("INSERT INTO blob_part VALUES (?, ?, ?)")?
                    .execute(params![id, index as i64, numbers.get(part)])?;
            }
        }
        Ok(())
    }
}

/// Grid in blocks, block, and dynamic local memory in bytes, of a launch with these arguments and items.
pub fn geometry(
    operation: &Operation,
    arguments: &[u8],
    items: &[u8],
) -> ([u32; 3], [u32; 3], u64) {
    let named = |name: &str| operation.argument(name).map(|one| one.value(arguments));
    let dim3 = |name: &str| {
        operation.argument(name).map(|one| {
            let at = usize::from(one.offset);
            let part = |index: usize| {
                let bytes = arguments.get(at + 4 * index..at + 4 * index + 4);
                bytes.map_or(0, |bytes| {
                    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
                })
            };
            [part(0), part(1), part(2)]
        })
    };
    let three = |prefix: &str| {
        let part = |axis: &str| named(&format!("{prefix}{axis}")).map(|value| value as u32);
        Some([part("X")?, part("Y")?, part("Z")?])
    };
    let lds = named("sharedMemBytes").unwrap_or(0);
    if let Some(item) = Items(items).find(|item| item.kind == item::IN)
        && operation
            .arguments()
            .iter()
            .any(|one| one.role == Role::Struct(56))
    {
        // `hipLaunchConfig_t`.
        let word = |at: usize| {
            let bytes = item.payload.get(at..at + 4);
            bytes.map_or(0, |bytes| {
                u32::from_le_bytes(bytes.try_into().unwrap_or_default())
            })
        };
        let grid = [word(0), word(4), word(8)];
        return (grid, [word(12), word(16), word(20)], u64::from(word(24)));
    }
    let block = dim3("dimBlocks")
        .or_else(|| dim3("blockDimX").filter(|_| named("gridDim").is_some()))
        .or_else(|| dim3("blockDim"))
        .or_else(|| three("blockDim"))
        .or_else(|| three("localWorkSize"))
        .unwrap_or_default();
    let grid = dim3("numBlocks")
        .or_else(|| dim3("gridDim"))
        .or_else(|| three("gridDim"))
        .or_else(|| {
            // In work-items.
            let global = three("globalWorkSize")?;
            let blocks = |axis: usize| global[axis].div_ceil(block[axis].max(1));
            Some([blocks(0), blocks(1), blocks(2)])
        })
        .unwrap_or_default();
    (grid, block, lds)
}

/// Kinds of memory in outputs.
pub(crate) fn memory_name(kind: u32) -> &'static str {
    match kind {
        memory_kind::DEVICE => "device",
        memory_kind::POOLED => "pool",
        memory_kind::HOST => "host",
        memory_kind::REGISTERED => "registered",
        memory_kind::MANAGED => "managed",
        _ => "unknown",
    }
}
