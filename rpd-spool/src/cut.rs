//! Cuts the recording of a process that goes on into pieces, each a recording of its own.
//!
//! A piece has all facts (names, agents, kernels, stacks), and the rows that were written since the cut before: each row is in
//! exactly one piece. A call that has not returned, a range that was not stopped and a dispatch whose counters are not there
//! yet are carried until they are complete; the last cut writes them as they are. Sums that the collector keeps in place are
//! those since the cut before. The segments of which everything is written are removed: that gives the disk back.
//!
//! The writer knows nothing of it, but for [`SegmentHeader::taken`]: where it removes a segment to keep its bound, that says
//! which records it has to count.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use zerocopy::{FromBytes, FromZeros as _, IntoBytes};

use super::format::record::{RecordKind, RecordRole};
use super::format::{
    self, CallRecord, DeviceTotal, MAGIC, ProcessTotals, REMOVING, RecordHeader, RemovedTotal,
    SegmentHeader, VERSION, stream,
};
use super::live::{self, HEAD, SharedHead};
use super::reader::{ProcessSpool, Segment, Stream};
use super::removed::{self, Sort};

/// What a cut has put into a piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Piece {
    /// Rows of tables: calls, ranges, dispatches and so on.
    pub rows: u64,
    /// Rows that the writer has removed since the cut before, to keep its bound.
    pub removed: u64,
    /// Bytes of all records.
    pub bytes: u64,
}

/// A stream as the heads of its segments describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StreamFacts {
    name: String,
    kind: u16,
    id: u32,
    pid: u32,
    tid: u32,
}

impl StreamFacts {
    fn new(stream: &Stream) -> StreamFacts {
        StreamFacts {
            name: stream.name.clone(),
            kind: stream.kind,
            id: stream.id,
            pid: stream.pid,
            tid: stream.tid,
        }
    }
}

/// Calls of a segment that had not returned. The file may have no name any more; their ends are stored in it all the same.
#[derive(Debug)]
struct CarriedCalls {
    stream: StreamFacts,
    file: File,
    /// Places of the records behind the head.
    offsets: Vec<u64>,
}

/// The start of a range that was not stopped.
#[derive(Debug)]
struct CarriedRange {
    stream: StreamFacts,
    record: Vec<u8>,
}

/// Cuts the recording of one process. It remembers what is in the pieces so far, so it is to be kept between cuts.
#[derive(Debug, Default)]
pub struct Cutter {
    calls: Vec<CarriedCalls>,
    /// By correlation id.
    ranges: HashMap<u64, CarriedRange>,
    /// Records of dispatches that are going to be counted, by dispatch.
    selected: HashMap<u64, Vec<u8>>,
    /// Facts that are in streams of threads: every piece has them.
    facts: Vec<(StreamFacts, Vec<u8>)>,
    /// Notes that a piece has.
    notes: HashSet<u64>,
    hasher: RandomState,
    process_totals: Option<ProcessTotals>,
    device_totals: HashMap<(u16, u64), DeviceTotal>,
    removed_totals: HashMap<Sort, RemovedTotal>,
    dropped: u64,
}

/// The file of a stream of a piece.
struct PieceStream {
    file: BufWriter<File>,
    stream: StreamFacts,
    committed: u64,
}

impl PieceStream {
    fn make(into: &Path, stream: &StreamFacts) -> io::Result<PieceStream> {
        let path = into.join(format!("{}-0.seg", stream.name));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let mut file = BufWriter::with_capacity(1 << 18, file);
        file.write_all(&[0; HEAD])?;
        Ok(PieceStream {
            file,
            stream: stream.clone(),
            committed: 0,
        })
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_all(record)?;
        self.committed += record.len() as u64;
        Ok(())
    }

    /// Drops what was appended behind `committed`.
    fn rewind(&mut self, committed: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(HEAD as u64 + committed))?;
        self.file.get_ref().set_len(HEAD as u64 + committed)?;
        self.committed = committed;
        Ok(())
    }

    fn finish(mut self, dropped: u64) -> io::Result<u64> {
        self.file.flush()?;
        let head = SegmentHeader {
            magic: MAGIC,
            version: VERSION,
            stream_kind: self.stream.kind,
            flags: 0,
            pid: self.stream.pid,
            tid: self.stream.tid,
            segment: 0,
            stream_id: self.stream.id,
            committed: self.committed,
            dropped,
            created: super::writer::now(),
            capacity: 0,
            taken: 0,
        };
        self.file.get_ref().write_all_at(head.as_bytes(), 0)?;
        Ok(self.committed)
    }
}

/// The streams of a piece that is being made.
struct PieceWriter<'a> {
    into: &'a Path,
    streams: BTreeMap<u32, PieceStream>,
}

impl PieceWriter<'_> {
    fn stream(&mut self, stream: &StreamFacts) -> io::Result<&mut PieceStream> {
        let place = self.streams.entry(stream.id);
        Ok(match place {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(PieceStream::make(self.into, stream)?)
            }
        })
    }

    fn append(&mut self, stream: &StreamFacts, record: &[u8]) -> io::Result<()> {
        self.stream(stream)?.append(record)
    }
}

/// What a segment held that is not simply copied.
#[derive(Default)]
struct Found {
    open: Vec<u64>,
    begun: Vec<(u64, Vec<u8>)>,
    stopped: Vec<(u64, Vec<u8>)>,
    selected: Vec<(u64, Vec<u8>)>,
    counted: Vec<u64>,
    facts: Vec<Vec<u8>>,
    rows: u64,
}

impl Cutter {
    /// Cuts the recording in `from`: writes what was recorded since the cut before into the directory `into`, which is empty. With
    /// `last`, also what is not complete; nothing is recorded any more then.
    ///
    /// # Errors
    /// When the recording cannot be read, or the piece cannot be written. What the piece has then is in no other one.
    pub fn cut(&mut self, from: &Path, into: &Path, last: bool) -> io::Result<Piece> {
        let spool = ProcessSpool::open(from)?;
        let mut writer = PieceWriter {
            into,
            streams: BTreeMap::new(),
        };
        let mut done = Vec::new();
        let mut meta = (None, 0);
        let cut = self.rows(&spool, &mut writer, last, &mut done);
        // Listed again after the rows: what they refer to is written before them, and may be in a newer segment.
        let cut = cut.and_then(|mut piece| {
            for stream in &ProcessSpool::open(from)?.streams {
                match stream.kind {
                    stream::META => {
                        let (removed, dropped) = self.meta(stream, &mut writer, last)?;
                        piece.removed += removed;
                        meta = (Some(stream.id), dropped);
                    }
                    stream::FACTS => {
                        let facts = StreamFacts::new(stream);
                        let mut records = stream.records();
                        while let Some(record) = records.next() {
                            writer.append(&facts, record.bytes)?;
                        }
                    }
                    _ => {}
                }
            }
            for (stream, record) in &self.facts {
                writer.append(stream, record)?;
            }
            Ok(piece)
        });
        // Heads are written whatever happened: what was taken is in this piece or nowhere.
        let mut finished = Ok(());
        let mut bytes = 0;
        for (id, stream) in writer.streams {
            let dropped = if meta.0 == Some(id) { meta.1 } else { 0 };
            match stream.finish(dropped) {
                Ok(committed) => bytes += committed,
                Err(error) => finished = Err(error),
            }
        }
        let mut piece = cut?;
        finished?;
        piece.bytes = bytes;
        for path in done {
            match std::fs::remove_file(&path) {
                // The writer may have removed it to keep its bound.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(piece)
    }

    /// Copies the rows of all streams. Segments that are not needed any more are added to `done`.
    fn rows(
        &mut self,
        spool: &ProcessSpool,
        writer: &mut PieceWriter<'_>,
        last: bool,
        done: &mut Vec<PathBuf>,
    ) -> io::Result<Piece> {
        let mut piece = Piece::default();
        self.carried_calls(writer, last, &mut piece)?;
        let mut stopped = Vec::new();
        let mut counted = Vec::new();
        for stream in &spool.streams {
            if !matches!(stream.kind, stream::THREAD | stream::RECENT) {
                continue;
            }
            let facts = StreamFacts::new(stream);
            for segment in stream.segments() {
                let Some(found) = self.segment(&facts, segment, writer, last, done)? else {
                    continue;
                };
                piece.rows += found.rows;
                self.selected.extend(found.selected);
                counted.extend(found.counted);
                let facts_of = |record| (facts.clone(), record);
                self.facts.extend(found.facts.into_iter().map(facts_of));
                self.ranges
                    .extend(found.begun.into_iter().map(|(id, record)| {
                        let stream = facts.clone();
                        (id, CarriedRange { stream, record })
                    }));
                let of_stream = |(id, record)| (facts.clone(), id, record);
                stopped.extend(found.stopped.into_iter().map(of_stream));
            }
        }
        // When all streams are read: a range may be stopped by another thread, whose stream was read before.
        for (stream, id, record) in stopped {
            if let Some(begun) = self.ranges.remove(&id) {
                writer.append(&begun.stream, &begun.record)?;
                piece.rows += 1;
            }
            writer.append(&stream, &record)?;
        }
        let place = spool.streams.iter().find(|one| one.kind == stream::META);
        if let Some(place) = place.map(StreamFacts::new) {
            for dispatch in counted {
                if let Some(record) = self.selected.remove(&dispatch) {
                    writer.append(&place, &record)?;
                }
            }
            if last {
                for record in std::mem::take(&mut self.selected).values() {
                    writer.append(&place, record)?;
                }
            }
        }
        if last {
            for (_, range) in std::mem::take(&mut self.ranges) {
                writer.append(&range.stream, &range.record)?;
                piece.rows += 1;
            }
        }
        Ok(piece)
    }

    /// Copies the calls of earlier cuts that have returned since.
    fn carried_calls(
        &mut self,
        writer: &mut PieceWriter<'_>,
        last: bool,
        piece: &mut Piece,
    ) -> io::Result<()> {
        for carried in &mut self.calls {
            let mut open = Vec::new();
            for &offset in &carried.offsets {
                let Some(record) = live::record_at(&carried.file, offset)? else {
                    continue;
                };
                if last || !is_open(&record) {
                    writer.append(&carried.stream, &record)?;
                    piece.rows += 1;
                } else {
                    open.push(offset);
                }
            }
            carried.offsets = open;
        }
        self.calls.retain(|carried| !carried.offsets.is_empty());
        Ok(())
    }

    /// Copies the rows of a segment that no cut has taken. `None` when it is gone or has nothing new.
    fn segment(
        &mut self,
        stream: &StreamFacts,
        segment: &Segment,
        writer: &mut PieceWriter<'_>,
        last: bool,
        done: &mut Vec<PathBuf>,
    ) -> io::Result<Option<Found>> {
        let Some((file, _, size)) = live::open(&segment.path, true)? else {
            return Ok(None);
        };
        let head = SharedHead::map(&file)?;
        let Some(taken) = head.taken_bytes(last) else {
            return Ok(None);
        };
        let (committed, is_closed) = head.committed();
        let end = committed
            .min(size - HEAD as u64)
            .min(u64::from(REMOVING - 8)) as u32;
        if end <= taken {
            if is_closed || last {
                done.push(segment.path.clone());
            }
            return Ok(None);
        }
        let mut bytes = vec![0; (end - taken) as usize];
        file.read_exact_at(&mut bytes, HEAD as u64 + u64::from(taken))?;
        let own = writer.stream(stream)?;
        let before = own.committed;
        let found = copy(&bytes, u64::from(taken), last, own)?;
        if !head.take(taken, end) {
            // The writer has removed it meanwhile, and counted these rows.
            own.rewind(before)?;
            return Ok(None);
        }
        if !found.open.is_empty() {
            self.calls.push(CarriedCalls {
                stream: stream.clone(),
                file,
                offsets: found.open.clone(),
            });
        }
        if is_closed || last {
            done.push(segment.path.clone());
        }
        Ok(Some(found))
    }

    /// Copies the meta stream, with sums since the cut before. Returns the number of rows that the writer has removed since, and
    /// that of records that it could not store.
    fn meta(
        &mut self,
        stream: &Stream,
        writer: &mut PieceWriter<'_>,
        last: bool,
    ) -> io::Result<(u64, u64)> {
        let facts = StreamFacts::new(stream);
        let mut removed_rows = 0;
        let mut records = stream.records();
        while let Some(record) = records.next() {
            match RecordKind::from_tag(record.header.tag) {
                Some(RecordKind::ProcessTotals) => {
                    let Some((now, _)) = record.parse::<ProcessTotals>() else {
                        continue;
                    };
                    let since = process_totals_since(self.process_totals.as_ref(), &now, last);
                    self.process_totals = Some(now);
                    writer.append(&facts, since.as_bytes())?;
                }
                Some(RecordKind::DeviceTotal) => {
                    let Some((now, _)) = record.parse::<DeviceTotal>() else {
                        continue;
                    };
                    let key = (now.header.aux, now.subject);
                    let since = device_total_since(self.device_totals.get(&key), &now);
                    self.device_totals.insert(key, now);
                    writer.append(&facts, since.as_bytes())?;
                }
                Some(RecordKind::RemovedTotal) => {
                    let Some((now, _)) = record.parse::<RemovedTotal>() else {
                        continue;
                    };
                    let sort = Sort::from_total(&now);
                    let before = self.removed_totals.insert(sort, now);
                    let since = match &before {
                        Some(before) => removed::since(before, &now),
                        None => now,
                    };
                    removed_rows += since.count;
                    if since.count > 0 {
                        writer.append(&facts, since.as_bytes())?;
                    }
                }
                Some(RecordKind::Note) => {
                    if self.notes.insert(self.hasher.hash_one(record.bytes)) {
                        writer.append(&facts, record.bytes)?;
                    }
                }
                _ => writer.append(&facts, record.bytes)?,
            }
        }
        let dropped = records.dropped();
        let since = dropped.saturating_sub(self.dropped);
        self.dropped = dropped;
        Ok((removed_rows, since))
    }
}

/// Whether a record is a call that has not returned.
fn is_open(record: &[u8]) -> bool {
    let is_call = |head: RecordHeader| head.tag == RecordKind::Call.tag();
    RecordHeader::read_from_prefix(record).is_ok_and(|(head, _)| is_call(head))
        && CallRecord::read_from_prefix(record).is_ok_and(|(call, _)| call.end == 0)
}

/// Copies the complete rows among the records in `bytes`, which begin `offset` bytes behind the head of their segment.
fn copy(bytes: &[u8], offset: u64, last: bool, into: &mut PieceStream) -> io::Result<Found> {
    let mut found = Found::default();
    let mut at = 0;
    for (header, record) in removed::records(bytes) {
        let place = offset + at as u64;
        at += record.len();
        let kind = RecordKind::from_tag(header.tag);
        match kind {
            Some(RecordKind::Call) if !last && is_open(record) => {
                found.open.push(place);
                continue;
            }
            Some(RecordKind::RangeBegin) => {
                if let Ok((begin, _)) = format::RangeBegin::read_from_prefix(record) {
                    found.begun.push((begin.correlation, record.to_vec()));
                }
                continue;
            }
            Some(RecordKind::RangeEnd) => {
                if let Ok((end, _)) = format::RangeEnd::read_from_prefix(record) {
                    found.stopped.push((end.correlation, record.to_vec()));
                }
                continue;
            }
            Some(RecordKind::Selected) => {
                if let Ok((selected, _)) = format::Selected::read_from_prefix(record) {
                    found.selected.push((selected.dispatch, record.to_vec()));
                }
                continue;
            }
            Some(RecordKind::Counted) => {
                if let Ok((counted, _)) = format::CountedDispatch::read_from_prefix(record) {
                    found.counted.push(counted.dispatch.dispatch);
                }
            }
            _ => {}
        }
        match kind.map(RecordKind::role) {
            Some(RecordRole::Fact | RecordRole::Completeness) => {
                found.facts.push(record.to_vec());
                continue;
            }
            Some(RecordRole::Row(_) | RecordRole::HalfRow(_)) => found.rows += 1,
            // Readers count what they do not know.
            Some(RecordRole::Capture(_)) | None => {}
        }
        into.append(record)?;
    }
    // What is damaged is copied as it is, so that the piece's reader says so.
    into.append(&bytes[at..])?;
    Ok(found)
}

/// Sums over the life of a process since they were `before`. Work that is not complete yet will be in another piece, unless
/// this is the last one.
fn process_totals_since(
    before: Option<&ProcessTotals>,
    now: &ProcessTotals,
    last: bool,
) -> ProcessTotals {
    let zero = ProcessTotals::new_zeroed();
    let before = before.unwrap_or(&zero);
    let part = |field: fn(&ProcessTotals) -> u64| field(now).saturating_sub(field(before));
    let begun = |begun: u64, ended: u64, ended_before: u64| {
        let until = if last { begun } else { ended };
        until.saturating_sub(ended_before)
    };
    let (dispatches, copies, counted) = (
        part(|totals| totals.dispatches_ended),
        part(|totals| totals.copies_ended),
        part(|totals| totals.counted_ended),
    );
    ProcessTotals {
        header: now.header,
        dispatches_begun: begun(
            now.dispatches_begun,
            now.dispatches_ended,
            before.dispatches_ended,
        ),
        dispatches_ended: dispatches,
        copies_begun: begun(now.copies_begun, now.copies_ended, before.copies_ended),
        copies_ended: copies,
        counted_begun: begun(now.counted_begun, now.counted_ended, before.counted_ended),
        counted_ended: counted,
        dispatches_paused: part(|totals| totals.dispatches_paused),
        lost_processes: part(|totals| totals.lost_processes),
        lost_records: part(|totals| totals.lost_records),
        invalid_samples: part(|totals| totals.invalid_samples),
        lost_samples: part(|totals| totals.lost_samples),
        unknown_samples: part(|totals| totals.unknown_samples),
    }
}

/// What was added to a sum of device work since it was `before`; shortest and longest are those of the whole sum.
fn device_total_since(before: Option<&DeviceTotal>, now: &DeviceTotal) -> DeviceTotal {
    let Some(before) = before else { return *now };
    let of = |total: &DeviceTotal| RemovedTotal {
        header: total.header,
        subject: total.subject,
        count: total.count,
        total: total.total,
        min: total.min,
        max: total.max,
        spread: total.spread,
        bytes: total.bytes,
        first: total.first,
        last: total.last,
    };
    let since = removed::since(&of(before), &of(now));
    let mut durations = now.durations;
    for (count, earlier) in durations.iter_mut().zip(before.durations) {
        *count = count.saturating_sub(earlier);
    }
    DeviceTotal {
        count: since.count,
        total: since.total,
        spread: since.spread,
        bytes: since.bytes,
        first: since.first,
        durations,
        ..*now
    }
}
