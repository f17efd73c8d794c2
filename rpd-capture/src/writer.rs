//! Fills the database of a capture from the spool of a process that has ended.

use std::collections::{BTreeMap, HashMap};

use rpd_gfx::codeobj::CodeObject;
use rpd_spool::capture::{
    CaptureCall, CaptureCode, DataHeader, Group, HandleKind, Items, NO_ARGUMENT, Operation, Role,
    call_flag, data_place, data_use, item, operation, push_item,
};
use rpd_spool::reader::{ProcessSpool, Record};
use rpd_spool::record::RecordKind;
use rusqlite::{Connection, params};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::markers::Marker;
use crate::merge::Merge;
use crate::objects::Intervals;
use crate::pack::{self, Hash};
use crate::record::{Recorder, Summary, data_of};
use crate::{BLOBS, CODE, CaptureError, VERSION, database};

/// Note about copies whose source was changed.
const CHANGED: &str = "the host changed the source after the call and before it had waited for the copy; the data are those of the call (--pinned exact takes what the device reads)";

/// Note about launches that may read host-visible memory
const BEHIND: &str = "only memory of the device points to host-visible memory that the launch may read; its content was not taken (--memory snapshot or pageguard takes it)";

pub(crate) enum WriteError {
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

pub(crate) struct Kernel {
    pub(crate) id: i64,
    /// Explicit arguments: offset, size and whether it is a pointer for certain.
    pub(crate) arguments: Vec<(u32, u32, bool)>,
    pub(crate) launches: i64,
}

/// Writer of the rows of a capture's database.
pub(crate) struct Writer<'a> {
    pub(crate) recorder: &'a mut Recorder,
    pub(crate) database: &'a Connection,
    pub(crate) summary: &'a mut Summary,
    pub(crate) objects: HashMap<(HandleKind, u64), i64>,
    pub(crate) last_object: i64,
    pub(crate) memory: Intervals,
    pub(crate) last_memory: i64,
    pub(crate) codes: HashMap<u64, i64>,
    pub(crate) last_code: i64,
    pub(crate) kernels: HashMap<(i64, Vec<u8>), Kernel>,
    pub(crate) last_kernel: i64,
    /// Numbers of calls by the position of their begin.
    pub(crate) seq_of: HashMap<u64, i64>,
    pub(crate) unsupported: BTreeMap<u32, u64>,
    /// Number of copies whose source the host changed before it had waited for them.
    pub(crate) changed: u64,
    /// Number of launches that may read host-visible memory which was not taken for them.
    pub(crate) behind: u64,
    pub(crate) seq: i64,
    pub(crate) pid: u32,
}

impl Writer<'_> {
    pub(crate) fn write(
        recorder: &mut Recorder,
        database: &Connection,
        summary: &mut Summary,
    ) -> Result<(), WriteError> {
        database.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 4096; PRAGMA cache_size = -65536;",
        )?;
        // One transaction without a journal: the file has a temporary name until it is complete.
        database.execute_batch(&format!("BEGIN; {}", database::TABLES))?;
        database.execute_batch(&format!("PRAGMA user_version = {VERSION};"))?;
        let directory = recorder.spool.clone();
        let spool = ProcessSpool::open(&directory).map_err(CaptureError::io(&directory))?;
        let mut merge = Merge::new(&spool);
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
            changed: 0,
            behind: 0,
            seq: 0,
            pid,
        };
        // Rows refer to earlier rows by number, so that records are written in the order of the replay.
        while let Some((tid, bytes)) = merge.next() {
            writer.record(tid, &bytes)?;
        }
        let ending = merge.end();
        writer.summary.notes.extend(ending.notes);
        writer.summary.clean = ending.clean;
        writer.tables()?;
        database.execute_batch(&format!(
            "{} {} COMMIT;",
            database::INDICES,
            database::VIEWS
        ))?;
        Ok(())
    }

    pub(crate) fn note(&mut self, severity: &str, text: &str) -> Result<(), WriteError> {
        self.note_call(self.seq, severity, text)
    }

    fn note_call(&mut self, seq: i64, severity: &str, text: &str) -> Result<(), WriteError> {
        self.database
            .prepare_cached("INSERT INTO note VALUES (?, ?, ?)")?
            .execute(params![seq, severity, text])?;
        Ok(())
    }

    /// Makes the data `blob` those that the copy `seq` read, in place of those that were there at its call.
    fn replace_source(&mut self, seq: i64, blob: i64) -> Result<(), WriteError> {
        let items: Vec<u8> = self
            .database
            .prepare_cached("SELECT items FROM call WHERE seq = ?")?
            .query_row([seq], |row| row.get(0))?;
        let mut rewritten = Vec::new();
        for item in Items(&items) {
            match data_of(&item) {
                Some((mut data, _)) if data.purpose == data_use::SOURCE => {
                    data.offset = blob as u64;
                    push_item(&mut rewritten, item.kind, item.argument, data.as_bytes());
                }
                _ => push_item(&mut rewritten, item.kind, item.argument, item.payload),
            }
        }
        self.database
            .prepare_cached("UPDATE call SET items = ? WHERE seq = ?")?
            .execute(params![rewritten, seq])?;
        self.database
            .prepare_cached("UPDATE copy SET blob = ? WHERE seq = ?")?
            .execute(params![blob, seq])?;
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
            Some(RecordKind::CaptureMarker) => {
                let marker = Marker::from_record(&record, self.seq as u64);
                self.summary.markers.extend(marker);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The number of the blob with the data of a header; 0 when they were not kept or are lost.
    fn blob(&mut self, data: &DataHeader, inline: &[u8]) -> Result<i64, WriteError> {
        Ok(match data.offset {
            data_place::SKIPPED => 0,
            data_place::INLINE => {
                let keep = self.recorder.keeps(data.purpose);
                let Some(bytes) = inline.get(..data.size as usize) else {
                    return Ok(0);
                };
                self.recorder.store(bytes, keep)?
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
        // Without its bytes the code object has no kernels; calls that name it are kept.
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
        let name = format!("{CODE}/{}.co", pack::hex(&hash));
        let path = self.recorder.capture.join(&name);
        // Two loads of the same code share the file.
        if !path.exists() {
            crate::files::write(&path, &bytes)?;
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
        // Kernels are rows of their own: launches, dispatches and reports refer to them.
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
        // Numbers follow the order of the replay, from 1.
        self.seq += 1;
        // Later records name this call by its begin, which is all that the collector knows.
        self.seq_of.insert(call.entry, self.seq);
        self.summary.calls += 1;
        let mut rewritten = Vec::new();
        let mut source_blob = None;
        let mut output_blob = None;
        let mut lost = false;
        // Items are rewritten, because positions in the staging file mean nothing once it is gone.
        for item in Items(rest) {
            let Some((mut data, inline)) = data_of(&item) else {
                match item.kind {
                    item::MISSING => {
                        let text = String::from_utf8_lossy(item.payload).into_owned();
                        self.note("error", &format!("{}: {text}", operation.name()))?;
                    }
                    item::BEHIND_DEVICE => {
                        self.behind += 1;
                        self.note("warning", BEHIND)?;
                        continue;
                    }
                    item::CHANGED => {
                        let copy = item.word().and_then(|entry| self.seq_of.get(&entry));
                        if let Some(&copy) = copy {
                            self.changed += 1;
                            self.note_call(copy, "warning", CHANGED)?;
                        }
                        continue;
                    }
                    _ => {}
                }
                push_item(&mut rewritten, item.kind, item.argument, item.payload);
                continue;
            };
            // From here on the copy is named by its number, and 0 is this call.
            let copy = match data.copy {
                0 => 0,
                entry => match self.seq_of.get(&entry) {
                    Some(seq) => *seq,
                    // The program was killed before the thread that made the copy had written it, and another thread had
                    // waited for it already: a replay does not make the copy.
                    None => continue,
                },
            };
            let blob = self.blob(&data, inline)?;
            // Not data of this call: they correct those of an earlier one.
            if data.purpose == data_use::DEVICE_READ {
                if copy != 0 && blob != 0 {
                    self.replace_source(copy, blob)?;
                }
                continue;
            }
            lost |= blob == 0 && data.offset != data_place::SKIPPED;
            data.offset = blob as u64;
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
            push_item(&mut rewritten, item::DATA, NO_ARGUMENT, data.as_bytes());
        }
        // A replay needs to know, as the call cannot be played right.
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
        // What failed has changed nothing: a replay lacks nothing without it.
        if call.result != 0 {
            return Ok(());
        }
        if operation.group == Group::Unsupported {
            *self.unsupported.entry(call.operation).or_default() += 1;
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

    /// The tables of data.
    fn tables(&mut self) -> Result<(), WriteError> {
        if self.changed > 0 {
            self.summary.notes.push(format!(
                "{} copies from pinned memory: {CHANGED}",
                self.changed
            ));
        }
        if self.behind > 0 {
            self.summary
                .notes
                .push(format!("{} launches: {BEHIND}", self.behind));
        }
        for (api, count) in &self.unsupported {
            let name = operation(*api).map_or("", Operation::name);
            self.database
                .prepare_cached("INSERT INTO unsupported VALUES (?, ?, ?)")?
                .execute(params![api, name, *count as i64])?;
            self.summary.unsupported.push((name.to_owned(), *count));
        }
        let numbers = database::insert_chunks(self.database, self.recorder.packs.chunks())?;
        for (index, blob) in self.recorder.blobs.iter().enumerate() {
            let parts = Some(&blob.parts[..]).filter(|_| blob.kept);
            let hash = pack::hash_of(&blob.parts);
            database::insert_blob(
                self.database,
                index as i64 + 1,
                &hash,
                blob.size,
                parts,
                &numbers,
            )?;
        }
        Ok(())
    }
}
