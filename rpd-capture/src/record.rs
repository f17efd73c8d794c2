//! Makes a capture from the spool of a process: data while the program runs, the database when it has ended.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rpd_spool::capture::{
    self as spool, CaptureCall, CaptureCode, DataHeader, Item, Items, StageControl, data_place,
    data_use, ended, item, operation,
};
use rpd_spool::reader::Record;
use rpd_spool::record::{CapturePart, RecordKind, RecordRole};
use rusqlite::Connection;

use crate::journal::{self, Journal};
use crate::live::LiveReader;
use crate::markers::Marker;
use crate::pack::{self, Hash, PackWriter};
use crate::staging::{self, StagingFile};
use crate::writer::{WriteError, Writer};
use crate::{BLOBS, CODE, CaptureError, DATABASE, Manifest, REPORT, VERSION, database, files};

/// Name of a file that keeps room for the database: data may fill the disk before it is written.
const ROOM: &str = ".room";
/// Bytes of that file.
const ROOM_BYTES: libc::off_t = 1 << 20;

/// Texts for the reasons of [`spool::compared`], for any number of pieces of memory.
const COMPARED: [&str; spool::compared::REASONS] = [
    "because the kernel cannot protect pages asynchronously (Linux 6.7 can)",
    "because userfaultfd or /proc/self/pagemap is forbidden here",
    "shared with other processes or with a file",
    "of a kind that the kernel does not protect",
    "replaced by the program with other memory",
    "of which nearly all pages are always touched and few change",
];

/// Contents of a capture.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Number of captured calls.
    pub calls: u64,
    /// Launches of kernels and graphs.
    pub launches: u64,
    /// Bytes of data, each time counted.
    pub data: u64,
    /// Bytes of different data.
    pub distinct: u64,
    /// Bytes that the different data take in the packs.
    pub stored: u64,
    /// Nanoseconds that calls waited, and how many waited.
    pub stalled: (u64, u64),
    /// Calls that cannot be replayed: name and count.
    pub unsupported: Vec<(String, u64)>,
    /// Data that a replay lacks, and damage.
    pub notes: Vec<String>,
    /// Reason why the capture ended before the program; empty when it did not.
    pub ended: String,
    /// Whether recording ended in good order.
    pub clean: bool,
    /// Markers of the program, in order, where they were recorded.
    pub markers: Vec<Marker>,
}

/// Data that were stored in packs.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) size: u64,
    pub(crate) parts: Vec<Hash>,
    /// False: only the hash is kept.
    pub(crate) kept: bool,
}

/// Makes a capture of one process.
pub struct Recorder {
    pub(crate) spool: PathBuf,
    pub(crate) capture: PathBuf,
    live: LiveReader,
    stage: Option<StagingFile>,
    control: Option<File>,
    consumed: u64,
    pub(crate) packs: PackWriter,
    journal: Journal,
    /// Whether the content of data that copies wrote is kept, not only its hash.
    keep_outputs: bool,
    pub(crate) blobs: Vec<Blob>,
    by_hash: HashMap<(Hash, bool), i64>,
    pub(crate) staged: HashMap<u64, i64>,
    data: u64,
    /// Reason why data cannot be stored any more.
    failed: Option<CaptureError>,
    /// Whether the journal says so.
    is_stop_noted: bool,
}

impl Recorder {
    /// Makes the capture `capture`, a directory that exists and is empty, from the directory `spool` of a process.
    ///
    /// # Errors
    /// When the directories of the capture cannot be made.
    pub fn new(
        spool: &Path,
        capture: &Path,
        level: Option<i32>,
        keep_outputs: bool,
    ) -> Result<Recorder, CaptureError> {
        for directory in [BLOBS, CODE] {
            let path = capture.join(directory);
            std::fs::create_dir_all(&path).map_err(CaptureError::io(&path))?;
        }
        let room = capture.join(ROOM);
        let file = files::create(&room)?;
        let flags = nix::fcntl::FallocateFlags::empty();
        if nix::fcntl::fallocate(&file, flags, 0, ROOM_BYTES).is_err() {
            // The disk is nearly full now, but may not be later.
            let _ = std::fs::remove_file(&room);
        }
        Ok(Recorder {
            spool: spool.to_owned(),
            capture: capture.to_owned(),
            live: LiveReader::new(spool),
            stage: None,
            control: None,
            consumed: 0,
            packs: PackWriter::new(capture.join(BLOBS), level),
            journal: Journal::open(capture)?,
            keep_outputs,
            blobs: Vec::new(),
            by_hash: HashMap::new(),
            staged: HashMap::new(),
            data: 0,
            failed: None,
            is_stop_noted: false,
        })
    }

    /// Goes on with a capture whose recorder was killed, and whose process has ended.
    ///
    /// # Errors
    /// When the spool cannot be read or the capture cannot be written, as in [`Recorder::new`], or what was taken before cannot be read.
    pub fn resume(
        spool: &Path,
        capture: &Path,
        level: Option<i32>,
        keep_outputs: bool,
    ) -> Result<Recorder, CaptureError> {
        let taken = journal::read(capture)?;
        // Code objects are written as a whole when the capture is finished; the last one may be incomplete.
        let code = capture.join(CODE);
        match std::fs::remove_dir_all(&code) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(CaptureError::io(&code)(error));
            }
            _ => {}
        }
        let mut recorder = Recorder::new(spool, capture, level, keep_outputs)?;
        let bytes = taken.data.iter().map(|data| data.size).sum();
        recorder.packs.resume(taken.chunks);
        let kept = recorder.packs.staged();
        let kept = kept.iter().map(|(_, chunk)| u64::from(chunk.size)).sum();
        recorder.stage = StagingFile::resume(spool, kept, bytes);
        for data in taken.data {
            let blob = recorder.add(data.size, data.parts, data.kept);
            recorder.staged.insert(data.offset, blob);
        }
        if let Some(reason) = taken.stopped {
            recorder.failed = Some(CaptureError::Io {
                path: capture.to_owned(),
                source: io::Error::other(reason),
            });
        }
        Ok(recorder)
    }

    /// Takes the data that the program has staged since the last call.
    ///
    /// # Errors
    /// When the spool cannot be read. A full disk is not an error: the capture ends there, and [`Recorder::finish`] reports it.
    pub fn poll(&mut self) -> Result<(), CaptureError> {
        if self.control.is_none() {
            self.control = File::options()
                .read(true)
                .write(true)
                .open(self.spool.join(spool::CONTROL_FILE))
                .ok();
        }
        if self.stage.is_none() {
            self.stage = StagingFile::open(&self.spool);
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
    pub(crate) fn keeps(&self, purpose: u32) -> bool {
        purpose != data_use::OUTPUT || self.keep_outputs
    }

    /// Takes data out of the staging file.
    fn take(&mut self, data: &DataHeader) {
        if self.staged.contains_key(&data.offset) {
            // The same bytes as in an earlier call: the program did not stage them again.
            self.data = self.data.saturating_add(data.size);
            return;
        }
        let keep = self.keeps(data.purpose);
        let Some(stage) = &mut self.stage else { return };
        if self.failed.is_some() {
            stage.discard(data);
        } else {
            match stage.take(&mut self.packs, &mut self.journal, data, keep) {
                Ok(parts) => {
                    let blob = self.add(data.size, parts, keep);
                    self.staged.insert(data.offset, blob);
                }
                Err(error) => self.failed = Some(error),
            }
        }
        if let Some(error) = &self.failed
            && !self.is_stop_noted
        {
            self.is_stop_noted = self.journal.stop(&error.to_string());
        }
        self.consumed = self.consumed.saturating_add(staging::room_of(data));
        if let Some(control) = &self.control {
            let offset = offset_of!(StageControl, consumed) as u64;
            // Only this process writes these eight bytes; the target compares them.
            let _ = control.write_all_at(&self.consumed.to_le_bytes(), offset);
        }
    }

    /// Stores data that lie in a record; the number of the blob.
    pub(crate) fn store(&mut self, bytes: &[u8], keep: bool) -> Result<i64, CaptureError> {
        let size = bytes.len() as u64;
        let parts = self.packs.store_all(size, keep, None, |at, into| {
            into.copy_from_slice(&bytes[at as usize..][..into.len()]);
            Ok::<(), CaptureError>(())
        })?;
        Ok(self.add(size, parts, keep))
    }

    /// Adds data with these chunks, and returns their number.
    fn add(&mut self, size: u64, parts: Vec<Hash>, keep: bool) -> i64 {
        self.data = self.data.saturating_add(size);
        let hash = pack::hash_of(&parts);
        if let Some(known) = self.by_hash.get(&(hash, keep)) {
            return *known;
        }
        self.blobs.push(Blob {
            size,
            parts,
            kept: keep,
        });
        let blob = self.blobs.len() as i64;
        self.by_hash.insert((hash, keep), blob);
        blob
    }

    fn control_word(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        let read = self
            .control
            .as_ref()
            .is_some_and(|control| control.read_exact_at(&mut bytes, offset as u64).is_ok());
        if read { u64::from_le_bytes(bytes) } else { 0 }
    }

    /// Reports the host-visible memory that was compared as a whole although written pages were requested.
    fn compared(&self) -> Option<String> {
        let first = offset_of!(StageControl, compared);
        let reasons: Vec<String> = COMPARED
            .iter()
            .enumerate()
            .map(|(index, why)| (self.control_word(first + 8 * index), why))
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{count} {why}"))
            .collect();
        let followed = self.control_word(offset_of!(StageControl, followed));
        (!reasons.is_empty()).then(|| {
            format!(
                "--memory pageguard: of {followed} pieces of host-visible memory these were compared as a whole: {}",
                reasons.join("; ")
            )
        })
    }

    /// Bytes of data so far, and bytes that wait in the staging file.
    pub fn progress(&self) -> (u64, u64, u64) {
        let calls = self.control_word(offset_of!(StageControl, calls));
        let reserved = self.control_word(offset_of!(StageControl, reserved));
        let abandoned = self.control_word(offset_of!(StageControl, abandoned));
        (
            calls,
            self.data,
            reserved.saturating_sub(self.consumed.saturating_add(abandoned)),
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
        // Data that the program staged last, after which it has ended.
        self.poll()?;
        // The room that was kept for the database is free from here on.
        let _ = std::fs::remove_file(self.capture.join(ROOM));
        if let Some(stage) = self.stage.take() {
            let has_ended = !Path::new(&format!("/proc/{}", manifest.pid)).exists();
            stage.finish(&mut self.packs, &mut self.journal, has_ended)?;
        }
        let path = self.capture.join(DATABASE);
        // Under another name until it is complete: a capture with half a database is taken for a damaged one.
        let fresh = self.capture.join(format!(".{DATABASE}"));
        let _ = std::fs::remove_file(&fresh);
        let failed = CaptureError::database(&path);
        let database = Connection::open(&fresh).map_err(CaptureError::database(&path))?;
        let mut summary = Summary::default();
        Writer::write(&mut self, &database, &mut summary).map_err(|error| match error {
            WriteError::Database(source) => failed(source),
            WriteError::Capture(error) => error,
        })?;
        if let Some(note) = self.compared() {
            database
                .execute("INSERT INTO note VALUES (0, 'note', ?)", [&note])
                .map_err(CaptureError::database(&path))?;
            summary.notes.push(note);
        }
        database
            .close()
            .map_err(|(_, error)| CaptureError::database(&path)(error))?;
        std::fs::rename(&fresh, &path).map_err(CaptureError::io(&path))?;
        manifest.database = database::hash(&path)?;
        // The counts are in memory that the program shares, and final now.
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
                "the runtime has {unknown} functions that are not in this rpd's table; calls of them are not captured"
            ));
        }
        (summary.distinct, summary.stored) = self.packs.sums();
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
        // The report before the description: a capture counts as complete when its description is there.
        let path = self.capture.join(REPORT);
        files::write(&path, report)?;
        manifest.write(&self.capture)?;
        // Nothing can be resumed any more.
        self.journal.remove();
        Ok(summary)
    }
}

/// The items of a record of a capture.
fn items<'a>(record: &Record<'a>) -> Option<Items<'a>> {
    let RecordRole::Capture(part) = RecordKind::from_tag(record.header.tag)?.role() else {
        return None;
    };
    match part {
        CapturePart::Call => {
            let (call, tail) = record.parse::<CaptureCall>()?;
            let size = operation(call.operation).map_or(0, |found| usize::from(found.size));
            Some(Items(tail.get(size.next_multiple_of(8)..)?))
        }
        CapturePart::Code => Some(Items(record.parse::<CaptureCode>()?.1)),
        CapturePart::Marker => None,
    }
}

pub(crate) fn data_of<'a>(item: &Item<'a>) -> Option<(DataHeader, &'a [u8])> {
    match item.kind {
        item::DATA => item.data(),
        _ => None,
    }
}
