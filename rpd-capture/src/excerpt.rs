//! Excerpts: captures of some calls of another one, with the state of memory before them.
//!
//! Calls keep their numbers. What the first call finds in memory, and what memory holds after the last one, are items of
//! these calls; a replay finds them when an excerpt is made.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use rpd_gfx::codeobj::CodeObject;
use rpd_spool::capture::{
    DataHeader, Group, HandleKind, NO_ARGUMENT, VariableItem, data_place, data_use, item, push_item,
};
use rusqlite::{Connection, params};
use zerocopy::IntoBytes as _;

use crate::dependencies::dependencies;
use crate::geometry::geometry;
use crate::manifest::ExcerptOf;
use crate::pack::{self, Hash, PackReader, PackWriter};
use crate::{
    BLOBS, CODE, Call, Capture, CaptureError, DATABASE, Manifest, REPORT, VERSION, database,
};

/// Level of zstd that data of excerpts are compressed with.
const LEVEL: i32 = 1;

/// Data of an excerpt.
struct Blob {
    id: i64,
    hash: Hash,
    size: u64,
    /// `None`: only the hash is kept.
    parts: Option<Vec<Hash>>,
}

/// Writes an excerpt of a capture into a directory.
pub struct ExcerptWriter {
    target: PathBuf,
    calls: (u64, u64),
    packs: PackWriter,
    blobs: Vec<Blob>,
    last_blob: i64,
    before: Vec<u8>,
    after: Vec<u8>,
    codes: BTreeSet<i64>,
    /// Arrays, textures and surfaces of the state before the first call.
    handles: Vec<(HandleKind, u64)>,
}

/// Contents of an excerpt.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExcerptSummary {
    /// Number of calls, including the earlier calls on which the requested ones depend.
    pub calls: u64,
    /// Bytes of different data, and bytes that they take.
    pub data: (u64, u64),
}

impl ExcerptWriter {
    /// Writes the calls `calls` (first and last) of `source` into the directory `target`, which exists and is empty.
    ///
    /// # Errors
    /// When the source cannot be read, or the directories of the target not be made.
    pub fn new(
        source: &Capture,
        calls: (u64, u64),
        target: &Path,
    ) -> Result<ExcerptWriter, CaptureError> {
        for directory in [BLOBS, CODE] {
            let path = target.join(directory);
            std::fs::create_dir_all(&path).map_err(CaptureError::io(&path))?;
        }
        let last_blob = source
            .database()
            .query_row("SELECT ifnull(max(id), 0) FROM blob", [], |row| row.get(0))
            .map_err(CaptureError::database(&source.path().join(DATABASE)))?;
        Ok(ExcerptWriter {
            target: target.to_owned(),
            calls,
            packs: PackWriter::new(target.join(BLOBS), Some(LEVEL)),
            blobs: Vec::new(),
            last_blob,
            before: Vec::new(),
            after: Vec::new(),
            codes: BTreeSet::new(),
            handles: Vec::new(),
        })
    }

    /// Stores data that are not in the source; their number. `keep`: not only their hash.
    fn store<E: From<CaptureError>>(
        &mut self,
        size: u64,
        keep: bool,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<i64, E> {
        let parts = self.packs.store_all(size, keep, None, read)?;
        self.last_blob += 1;
        self.blobs.push(Blob {
            id: self.last_blob,
            hash: pack::hash_of(&parts),
            size,
            parts: keep.then_some(parts),
        });
        Ok(self.last_blob)
    }

    /// Adds the content of memory at an address of the capture, or of an array: `purpose` is one of [`data_use`], and says whether
    /// it is that before the first call or after the last. `read` yields its parts.
    ///
    /// # Errors
    /// The errors of `read`, and when the data cannot be stored.
    pub fn memory<E: From<CaptureError>>(
        &mut self,
        address: u64,
        size: u64,
        purpose: u32,
        keep: bool,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let blob = self.store(size, keep, read)?;
        let data = DataHeader {
            address,
            size,
            offset: blob.cast_unsigned(),
            copy: 0,
            pitch: 0,
            width: size,
            slice_rows: 1,
            rows: 1,
            purpose,
            reserved: 0,
        };
        let into = match purpose {
            data_use::RESULT | data_use::ARRAY_RESULT => &mut self.after,
            _ => &mut self.before,
        };
        push_item(into, item::DATA, NO_ARGUMENT, data.as_bytes());
        Ok(())
    }

    /// Adds an array, texture or surface that is there before the first call, by its handle in the capture.
    pub fn handle(&mut self, kind: HandleKind, handle: u64) {
        self.handles.push((kind, handle));
    }

    /// Adds the content of a device variable before the first call.
    ///
    /// # Errors
    /// When the data cannot be stored.
    pub fn variable(
        &mut self,
        code: i64,
        device: i32,
        name: &[u8],
        content: &[u8],
    ) -> Result<(), CaptureError> {
        let item = self.variable_item(code, device, name, content, true)?;
        push_item(&mut self.before, item::VARIABLE, NO_ARGUMENT, &item);
        Ok(())
    }

    /// Adds the content of a device variable after the last call. `keep`: not only its hash.
    ///
    /// # Errors
    /// When the data cannot be stored.
    pub fn variable_result(
        &mut self,
        code: i64,
        device: i32,
        name: &[u8],
        content: &[u8],
        keep: bool,
    ) -> Result<(), CaptureError> {
        let item = self.variable_item(code, device, name, content, keep)?;
        push_item(&mut self.after, item::VARIABLE_RESULT, NO_ARGUMENT, &item);
        Ok(())
    }

    fn variable_item(
        &mut self,
        code: i64,
        device: i32,
        name: &[u8],
        content: &[u8],
        keep: bool,
    ) -> Result<Vec<u8>, CaptureError> {
        let data = self.store(content.len() as u64, keep, |at, part| {
            part.copy_from_slice(&content[at as usize..][..part.len()]);
            Ok::<(), CaptureError>(())
        })?;
        let head = VariableItem {
            code,
            data,
            device: i64::from(device),
        };
        self.codes.insert(code);
        Ok([head.as_bytes(), name].concat())
    }

    /// Writes the excerpt, complete with the earlier calls that it needs. `has_memory` is whether the memory or variable
    /// at an address of the capture is part of it; `launch` names the launch that it is about.
    ///
    /// # Errors
    /// When the source cannot be read or the target not be written.
    pub fn finish(
        mut self,
        source: &mut Capture,
        has_memory: &dyn Fn(u64) -> bool,
        launch: Option<String>,
    ) -> Result<ExcerptSummary, CaptureError> {
        // Only now are the handles of the state known, on which it depends which earlier calls are kept.
        let kept = dependencies(source, self.calls, &self.handles, has_memory)?;
        let path = self.target.join(DATABASE);
        let failed = |error| CaptureError::database(&path)(error);
        let database = Connection::open(&path).map_err(failed)?;
        self.copy_rows(source, &database, &kept)?;
        let summary = ExcerptSummary {
            calls: kept.len() as u64,
            data: self.packs.sums(),
        };
        database
            .close()
            .map_err(|(_, error)| CaptureError::database(&path)(error))?;
        // A capture without a report is taken for an unfinished one.
        let report = self.target.join(REPORT);
        crate::files::write(&report, "")?;
        // All fields about the recording are new; those about the program and the machine stay those of the source.
        let manifest = Manifest {
            format: VERSION,
            clean: true,
            ended: String::new(),
            calls: summary.calls,
            last: kept.last().copied().unwrap_or(0),
            excerpt: Some(ExcerptOf {
                calls: self.calls,
                all: source.manifest().calls,
                launch,
            }),
            database: database::hash(&path)?,
            data: summary.data.0,
            distinct: summary.data.0,
            stored: summary.data.1,
            stalled: (0, 0),
            ..source.manifest().clone()
        };
        manifest.write(&self.target)?;
        Ok(summary)
    }

    fn copy_rows(
        &mut self,
        source: &mut Capture,
        database: &Connection,
        kept: &BTreeSet<u64>,
    ) -> Result<(), CaptureError> {
        let path = self.target.join(DATABASE);
        let failed = |error| CaptureError::database(&path)(error);
        let of_source = source.path().join(DATABASE);
        let run = |sql: &str| database.execute_batch(sql).map_err(failed);
        database
            .execute("ATTACH DATABASE ? AS source", [of_source.to_string_lossy()])
            .map_err(failed)?;
        // Nobody needs half an excerpt: a failure leaves no file to be kept.
        run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
        run(&format!(
            "BEGIN; {} PRAGMA user_version = {VERSION}; CREATE TEMP TABLE kept (seq INTEGER PRIMARY KEY);",
            database::TABLES
        ))?;
        {
            let mut insert = database
                .prepare("INSERT INTO kept VALUES (?)")
                .map_err(failed)?;
            for seq in kept {
                insert.execute([*seq as i64]).map_err(failed)?;
            }
        }
        // Views and indices come last, when all rows are there.
        run(
            "INSERT INTO call SELECT * FROM source.call WHERE seq IN kept;
             INSERT INTO object SELECT * FROM source.object WHERE created IN kept;
             UPDATE object SET destroyed = NULL WHERE destroyed NOT IN kept;
             INSERT INTO alloc SELECT * FROM source.alloc WHERE created IN kept;
             UPDATE alloc SET destroyed = NULL WHERE destroyed NOT IN kept;
             INSERT INTO copy SELECT * FROM source.copy WHERE seq IN kept;
             INSERT INTO launch SELECT * FROM source.launch WHERE seq IN kept;
             INSERT INTO arg_ptr SELECT * FROM source.arg_ptr WHERE launch IN kept;
             INSERT INTO sync SELECT * FROM source.sync WHERE seq IN kept;
             INSERT INTO output SELECT * FROM source.output WHERE seq IN kept AND copy IN kept;
             INSERT INTO note SELECT * FROM source.note WHERE seq IN kept;
             INSERT INTO unsupported SELECT u.api, u.name, count(*) FROM source.unsupported u JOIN call c ON c.api = u.api WHERE c.rc = 0
                 GROUP BY u.api;",
        )?;
        if let Some(call) = source.substituted().filter(|call| kept.contains(&call.seq)) {
            write_launch(source, database, call)?;
        }
        // Before code and data, because items tell which of them the calls need.
        let blobs = self.rewrite_items(source, database, kept)?;
        // The calls that were rewritten tell which code objects the excerpt needs.
        let codes: Vec<String> = self.codes.iter().map(ToString::to_string).collect();
        let codes = codes.join(", ");
        run(&format!(
            "INSERT INTO code SELECT * FROM source.code WHERE id IN ({codes});
             INSERT INTO kernel SELECT * FROM source.kernel WHERE code IN ({codes});"
        ))?;
        self.copy_data(source, &blobs)?;
        self.copy_code(source)?;
        // Chunks have numbers when all data are stored; blobs refer to them.
        let numbers = database::insert_chunks(database, self.packs.chunks()).map_err(failed)?;
        for blob in &self.blobs {
            let parts = blob.parts.as_deref();
            database::insert_blob(database, blob.id, &blob.hash, blob.size, parts, &numbers)
                .map_err(failed)?;
        }
        run(&format!(
            "{} {} COMMIT; DROP TABLE kept; DETACH DATABASE source;",
            database::INDICES,
            database::VIEWS
        ))
    }

    /// Adds the state before and after the excerpt to its first and last call, and removes results of copies that are
    /// not part of the excerpt. Returns the numbers of the data that the calls refer to, and stores the code objects
    /// that they need.
    fn rewrite_items(
        &mut self,
        source: &Capture,
        database: &Connection,
        kept: &BTreeSet<u64>,
    ) -> Result<BTreeSet<i64>, CaptureError> {
        let path = self.target.join(DATABASE);
        let failed = |error| CaptureError::database(&path)(error);
        let all_codes = source.codes()?;
        let mut blobs = BTreeSet::new();
        let mut played: Vec<u64> = Vec::new();
        let update = |seq: u64, items: Vec<u8>| {
            database
                .prepare_cached("UPDATE call SET items = ? WHERE seq = ?")
                .and_then(|mut update| update.execute(params![items, seq as i64]))
                .map(|_| ())
                .map_err(failed)
        };
        for seq in kept {
            let call = source.call(*seq)?;
            // Failed calls have no effect, and calls that cannot be played have no state.
            let is_played = call.result == 0
                && call
                    .operation()
                    .is_some_and(|operation| operation.group != Group::Unsupported);
            if is_played && *seq >= self.calls.0 {
                played.push(*seq);
            }
            let codes = code_objects(&call).filter_map(|provider| {
                let mut rows = all_codes.iter().rev();
                rows.find(|row| row.provider_id == provider && row.load_seq <= *seq)
            });
            self.codes.extend(codes.map(|row| row.id));
            // A variable is named by its host address, and any code object may have it.
            if call.items().any(|item| item.kind == item::SYMBOL) {
                self.codes.extend(all_codes.iter().map(|row| row.id));
            }
            for item in call.items() {
                match item.kind {
                    item::DATA => {
                        let data = item.data().map_or(0, |(data, _)| data.offset);
                        if data != 0 && data != data_place::SKIPPED {
                            blobs.insert(data.cast_signed());
                        }
                    }
                    item::VARIABLE | item::VARIABLE_RESULT => {
                        if let Some((found, _)) = item.variable() {
                            blobs.insert(found.data);
                            self.codes.insert(found.code);
                        }
                    }
                    _ => {}
                }
            }
            let items = items_of(&call, kept);
            // Most calls keep their items; a write of each row would take most of the time.
            if items.len() < call.items.len() {
                update(*seq, items)?;
            }
        }
        let (Some(first), Some(last)) = (played.first().copied(), played.last().copied()) else {
            return Err(CaptureError::EmptyExcerpt {
                path: source.path().to_owned(),
                calls: self.calls,
            });
        };
        let items = items_of(&source.call(first)?, kept);
        update(first, [std::mem::take(&mut self.before), items].concat())?;
        // With one call, its items have been written above: they are read back, so that the state before stays in them.
        let before = if first == last {
            database
                .query_row(
                    "SELECT items FROM call WHERE seq = ?",
                    [last as i64],
                    |row| row.get(0),
                )
                .map_err(failed)?
        } else {
            items_of(&source.call(last)?, kept)
        };
        update(last, [before, std::mem::take(&mut self.after)].concat())?;
        let codes = all_codes.iter().filter(|row| self.codes.contains(&row.id));
        blobs.extend(codes.map(|row| row.blob));
        Ok(blobs)
    }

    /// Copies data of the source, each checked against its hash.
    fn copy_data(&mut self, source: &Capture, blobs: &BTreeSet<i64>) -> Result<(), CaptureError> {
        let mut reader = PackReader::new(&source.path().join(BLOBS));
        let mut bytes = Vec::new();
        for id in blobs {
            let data = source.data(*id)?;
            let mut parts = Vec::new();
            for (hash, chunk) in source.chunks(*id)? {
                bytes.clear();
                reader.read(&hash, &chunk, &mut bytes)?;
                parts.push(self.packs.store(&bytes)?);
            }
            self.blobs.push(Blob {
                id: *id,
                hash: data.hash,
                size: data.size,
                parts: data.kept.then_some(parts),
            });
        }
        Ok(())
    }

    /// Writes the files of code objects.
    fn copy_code(&mut self, source: &mut Capture) -> Result<(), CaptureError> {
        let mut done = HashSet::new();
        for row in source.codes()? {
            if self.codes.contains(&row.id) && done.insert(row.blob) {
                let bytes = source.bytes(row.blob)?;
                let name = pack::hex(&pack::hash_bytes(&bytes));
                let path = self.target.join(CODE).join(format!("{name}.co"));
                crate::files::write(&path, &bytes)?;
            }
        }
        Ok(())
    }
}

/// Writes the rows of a launch in place of those of the call with its number.
fn write_launch(source: &Capture, database: &Connection, call: &Call) -> Result<(), CaptureError> {
    let path = source.path().join(DATABASE);
    let failed = CaptureError::database(&path);
    let Some(operation) = call.operation() else {
        return Ok(());
    };
    let seq = call.seq as i64;
    let (grid, block, lds) = geometry(operation, &call.arguments, &call.items);
    let payload = |kind| {
        call.items()
            .find(|item| item.kind == kind)
            .map(|item| item.payload)
    };
    let kernel = payload(item::KERNEL).unwrap_or_default();
    let name = String::from_utf8_lossy(kernel.get(8..).unwrap_or_default());
    let provider = kernel
        .first_chunk()
        .map_or(0, |word| i64::from_le_bytes(*word));
    let packed = payload(item::KERNEL_ARGUMENTS).unwrap_or_default();
    let write = || -> rusqlite::Result<()> {
        database.execute(
            "UPDATE call SET dev = ?, stream = ?, api = ?, name = ?, flags = ?, args = ?, items = ? WHERE seq = ?",
            params![
                call.device,
                call.argument("stream") as i64,
                call.api,
                operation.name(),
                call.flags,
                call.arguments,
                call.items,
                seq
            ],
        )?;
        database.execute("DELETE FROM launch WHERE seq = ?", [seq])?;
        database.execute("DELETE FROM arg_ptr WHERE launch = ?", [seq])?;
        let kernel = "SELECT k.id FROM source.kernel k JOIN source.code c ON c.id = k.code
             WHERE k.name = ? AND c.provider_id = ? AND c.load_seq <= ? ORDER BY c.id DESC LIMIT 1";
        database.execute(
            &format!("INSERT INTO launch VALUES (?, ({kernel}), ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)"),
            params![
                seq, name, provider, seq, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                lds as i64, call.flags, packed
            ],
        )?;
        Ok(())
    };
    write().map_err(failed)
}

/// The items of a call without results of copies that are not kept.
fn items_of(call: &Call, kept: &BTreeSet<u64>) -> Vec<u8> {
    let mut items = Vec::new();
    for item in call.items() {
        let copy = match item.kind {
            item::DATA => item.data().map_or(0, |(data, _)| data.copy),
            _ => 0,
        };
        if copy == 0 || kept.contains(&copy) {
            push_item(&mut items, item.kind, item.argument, item.payload);
        }
    }
    items
}

/// The provider's numbers of the code objects that a call loads or launches from.
pub fn code_objects(call: &Call) -> impl Iterator<Item = u64> + '_ {
    call.items().flat_map(|item| {
        let words = item.payload.as_chunks::<8>().0;
        let words = match item.kind {
            item::KERNEL => &words[..words.len().min(1)],
            item::CODE => words,
            _ => &words[..0],
        };
        words.iter().map(|word| u64::from_le_bytes(*word))
    })
}

/// The device variables of a code object: their names, and their places after its load address.
///
/// # Errors
/// When its bytes are damaged or not a code object.
pub fn variables(source: &mut Capture, blob: i64) -> Result<Vec<(String, u64)>, CaptureError> {
    let bytes = source.bytes(blob)?;
    let object = CodeObject::parse(&bytes)
        .map_err(|error| CaptureError::damaged(source.path(), format!("a code object: {error}")))?;
    let variables = object.variables();
    Ok(variables
        .map(|one| (one.name.to_owned(), one.value))
        .collect())
}
