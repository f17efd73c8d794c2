//! Makes a file of tiles: records are divided among tracks here, and workers make tiles of them at the same time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use flate2::{Compress, Compression, FlushCompress};
use rpd_analysis::records::{Facts, Records};
use serde_json::json;

use super::bins::{LEVELS, Level};
use super::tile::{Index, RECORDS, Tile, key};
use super::{Entry, Error, HEAD, Key, MAGIC, Part};
use crate::tracks::{InUse, Kind, Place, Slice, Tracks, labels, op_details, range_details};

/// Records that go to a worker at a time.
const BATCH: usize = 512;
/// Batches that wait for a worker.
const WAITING: usize = 64;
/// Greatest number of workers.
const MOST_WORKERS: usize = 8;
/// Bytes of a tile of an index, before they are deflated.
const INDEX_BYTES: usize = 1 << 20;
/// Longest time that the numbers of a page tell exactly.
const LONGEST: u64 = 1 << 53;
/// Bytes of a name, beyond which it is cut off.
const LONGEST_NAME: usize = 16 << 10;
/// Names and bytes of names of a tile.
const NAMES: usize = 4096;
const NAME_BYTES: usize = 256 << 10;

/// What was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Built {
    /// Records that are shown.
    pub records: u64,
    /// Tracks.
    pub tracks: usize,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The file while it is made.
struct Store {
    file: File,
    path: PathBuf,
    end: AtomicU64,
}

impl Store {
    fn error(&self, source: io::Error) -> Error {
        Error::Io {
            path: self.path.clone(),
            source,
        }
    }

    /// Appends a tile.
    fn append(&self, key: Key, bytes: &[u8]) -> Result<Entry, Error> {
        let length = bytes.len() as u64;
        let offset = self.end.fetch_add(length, Ordering::Relaxed);
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|source| self.error(source))?;
        Ok(Entry {
            key,
            offset,
            length: length as u32,
        })
    }
}

/// Deflates bytes, with the head and the checksum of zlib.
#[derive(Debug)]
pub(crate) struct Deflate(Compress);

impl Deflate {
    pub(crate) fn new() -> Deflate {
        Deflate(Compress::new(Compression::fast(), true))
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.0.reset();
        // Stored blocks and the frame take less.
        let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 100 + 1024);
        loop {
            let taken = self.0.total_in() as usize;
            let done = self
                .0
                .compress_vec(&bytes[taken..], &mut out, FlushCompress::Finish);
            match done.expect("any bytes can be deflated") {
                flate2::Status::StreamEnd => return out,
                flate2::Status::Ok | flate2::Status::BufError => {
                    out.reserve(bytes.len() / 2 + 1024);
                }
            }
        }
    }
}

/// Deflates bytes.
pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    Deflate::new().bytes(bytes)
}

/// Records of a track on their way to a worker.
struct Batch {
    track: u32,
    kind: Kind,
    slices: Vec<Slice>,
    details: Vec<u64>,
}

/// What is known of a track when it is complete.
#[derive(Debug, Default, Clone)]
struct Summary {
    count: u64,
    first: u64,
    last: u64,
    busy: u64,
    peak: u64,
    tiles: u64,
    /// Tiles of the index.
    indices: u64,
    /// Levels that have bins.
    levels: Vec<u8>,
}

/// A track of a worker.
struct Work {
    track: u32,
    tile: Tile,
    index: Index,
    number: u64,
    levels: Vec<Level>,
    summary: Summary,
}

impl Work {
    fn new(track: u32, kind: Kind) -> Work {
        Work {
            track,
            tile: Tile::new(kind.details()),
            index: Index::default(),
            number: 0,
            levels: (0..LEVELS).map(Level::new).collect(),
            summary: Summary::default(),
        }
    }
}

/// What a worker has made of its tracks.
#[derive(Default)]
struct Made {
    entries: Vec<Entry>,
    tracks: Vec<(u32, Summary)>,
}

struct Worker<'a> {
    store: &'a Store,
    origin: u64,
    deflate: Deflate,
    tracks: Vec<Option<Box<Work>>>,
    /// Workers there are: the tracks of this one are a part of all.
    workers: usize,
    made: Made,
}

impl Worker<'_> {
    fn store(&mut self, key: Key, bytes: &[u8]) -> Result<(), Error> {
        let bytes = self.deflate.bytes(bytes);
        self.made.entries.push(self.store.append(key, &bytes)?);
        Ok(())
    }

    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        let place = batch.track as usize / self.workers;
        if self.tracks.len() <= place {
            self.tracks.resize_with(place + 1, || None);
        }
        let new = || Box::new(Work::new(batch.track, batch.kind));
        let mut work = self.tracks[place].take().unwrap_or_else(new);
        let width = batch.kind.details();
        for (at, slice) in batch.slices.iter().enumerate() {
            let start = slice.start - self.origin;
            let details = &batch.details[at * width..(at + 1) * width];
            work.tile.add(start, slice, details);
            work.index.add(start, slice);
            let summary = &mut work.summary;
            if summary.count == 0 {
                summary.first = start;
            }
            summary.count += 1;
            summary.last = summary.last.max(start + slice.length);
            summary.peak = summary.peak.max(slice.weight);
            if work.tile.len() == RECORDS {
                self.end_tile(batch.track, &mut work)?;
            }
        }
        for level in &mut work.levels {
            level.add_all(&batch.slices, self.origin);
        }
        self.end_bins(batch.track, &mut work)?;
        self.tracks[place] = Some(work);
        Ok(())
    }

    fn end_tile(&mut self, track: u32, work: &mut Work) -> Result<(), Error> {
        if work.tile.len() == 0 {
            return Ok(());
        }
        let number = work.number;
        let records = work.tile.records();
        self.store(key(Part::Records, track, 0, number), &records)?;
        if let Some(details) = work.tile.details() {
            self.store(key(Part::Details, track, 0, number), &details)?;
        }
        work.summary.busy += work.index.end_tile();
        work.number += 1;
        Ok(())
    }

    fn end_bins(&mut self, track: u32, work: &mut Work) -> Result<(), Error> {
        for level in 0..LEVELS {
            for (number, bytes) in work.levels[usize::from(level)].take() {
                self.store(key(Part::Bins, track, level, number), &bytes)?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Made, Error> {
        for mut work in std::mem::take(&mut self.tracks).into_iter().flatten() {
            let track = work.track;
            self.end_tile(track, &mut work)?;
            work.levels.iter_mut().for_each(Level::finish);
            self.end_bins(track, &mut work)?;
            let index = std::mem::take(&mut work.index);
            let (tiles, bytes) = index.finish();
            let mut summary = work.summary;
            summary.tiles = tiles;
            let levels = (0..LEVELS).filter(|level| {
                let level = &work.levels[usize::from(*level)];
                !level.is_left_out()
            });
            summary.levels = levels.collect();
            for (number, part) in bytes.chunks(INDEX_BYTES).enumerate() {
                self.store(key(Part::Index, track, 0, number as u64), part)?;
            }
            summary.indices = bytes.len().div_ceil(INDEX_BYTES) as u64;
            self.made.tracks.push((track, summary));
        }
        Ok(self.made)
    }

    fn run(mut self, batches: &Receiver<Batch>) -> Result<Made, Error> {
        while let Ok(batch) = batches.recv() {
            self.take(&batch)?;
        }
        self.finish()
    }
}

/// Divides records among workers.
struct Divider<'a> {
    facts: &'a Facts,
    tracks: Tracks,
    window: (u64, u64),
    waiting: Vec<Batch>,
    workers: &'a [SyncSender<Batch>],
    /// End of the records so far, and the one that a timeline can show.
    last: u64,
    most: u64,
    /// Whether a worker has ended early, or the records last too long.
    is_stopped: bool,
}

impl Divider<'_> {
    #[inline]
    fn add(&mut self, track: u32, slice: Slice, details: &[u64]) {
        if slice.start >= self.window.1 || slice.end() < self.window.0 {
            return;
        }
        self.last = self.last.max(slice.end());
        self.is_stopped |= self.last >= self.most;
        while self.waiting.len() <= track as usize {
            let track = self.waiting.len() as u32;
            self.waiting.push(Batch {
                track,
                kind: self.tracks.list[track as usize].place.kind,
                slices: Vec::new(),
                details: Vec::new(),
            });
        }
        let batch = &mut self.waiting[track as usize];
        batch.slices.push(slice);
        batch.details.extend_from_slice(details);
        if batch.slices.len() == BATCH {
            self.send(track);
        }
    }

    fn send(&mut self, track: u32) {
        let waiting = &mut self.waiting[track as usize];
        let batch = Batch {
            track,
            kind: waiting.kind,
            slices: std::mem::replace(&mut waiting.slices, Vec::with_capacity(BATCH)),
            details: std::mem::take(&mut waiting.details),
        };
        let worker = &self.workers[track as usize % self.workers.len()];
        self.is_stopped |= worker.send(batch).is_err();
    }

    fn all(&mut self, records: &dyn Records) {
        let facts = self.facts;
        for op in records.ops() {
            let (track, slice) = self.tracks.op(&op);
            self.add(track, slice, &op_details(&op));
            if self.is_stopped {
                return;
            }
        }
        for call in records.nested_calls() {
            let (track, slice) = self.tracks.call(facts, &call);
            self.add(track, slice, &[call.id]);
            if self.is_stopped {
                return;
            }
        }
        for range in records.ranges() {
            let (track, slice) = self.tracks.range(facts, &range);
            self.add(track, slice, &range_details(&range));
            if self.is_stopped {
                return;
            }
        }
        let mut used = InUse::default();
        for change in records.allocations() {
            if let Some((track, slice)) = used.change(&mut self.tracks, &change) {
                self.add(track, slice, &[]);
            }
        }
        for (track, slice) in used.finish(&mut self.tracks, self.last) {
            self.add(track, slice, &[]);
        }
        for track in 0..self.waiting.len() as u32 {
            self.send(track);
        }
    }
}

/// The first instant of all records.
fn first(records: &dyn Records) -> Option<u64> {
    let firsts = [
        records.ops().next().map(|op| op.start),
        records.calls().next().map(|call| call.start),
        records.ranges().next().map(|range| range.start),
        records.allocations().next().map(|change| change.start),
    ];
    firsts.into_iter().flatten().min()
}

/// Makes the file `path` of the records that overlap `window`, and are in no order of tracks. `identity` is kept with it, and tells
/// later whether it still is of the same recordings. It has its final name when it is complete.
///
/// # Errors
/// There are no records, or the file cannot be written.
pub fn build(
    records: &dyn Records,
    window: Option<(u64, u64)>,
    identity: &str,
    path: &Path,
) -> Result<Built, Error> {
    let io = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let origin = first(records).ok_or(Error::Empty)?;
    let window = window.unwrap_or((0, u64::MAX));
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let mut named = tempfile::Builder::new();
    let named = named.prefix(".rpdview-").suffix(".part");
    let file = named
        .tempfile_in(directory.unwrap_or(Path::new(".")))
        .map_err(io)?;
    let store = Store {
        file: file.as_file().try_clone().map_err(io)?,
        path: path.to_owned(),
        end: AtomicU64::new(HEAD as u64),
    };
    let (tracks, last, made) = make(records, window, origin, &store)?;
    let span = (origin, last);
    let built = complete(records.facts(), &tracks, made, span, identity, &store)?;
    file.persist(path).map_err(|error| io(error.error))?;
    Ok(built)
}

/// Runs the workers, and divides the records among them.
fn make(
    records: &dyn Records,
    window: (u64, u64),
    origin: u64,
    store: &Store,
) -> Result<(Tracks, u64, Made), Error> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Reading records takes less than making tiles of them.
    let workers = cores.clamp(1, MOST_WORKERS);
    std::thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut running = Vec::new();
        for _ in 0..workers {
            let (send, receive) = sync_channel(WAITING);
            senders.push(send);
            running.push(scope.spawn(move || {
                let worker = Worker {
                    store,
                    origin,
                    deflate: Deflate::new(),
                    tracks: Vec::new(),
                    workers,
                    made: Made::default(),
                };
                worker.run(&receive)
            }));
        }
        let mut divider = Divider {
            facts: records.facts(),
            tracks: Tracks::default(),
            window,
            waiting: Vec::new(),
            workers: &senders,
            last: origin,
            most: origin.saturating_add(LONGEST),
            is_stopped: false,
        };
        divider.all(records);
        let (tracks, last) = (divider.tracks, divider.last);
        drop(senders);
        let mut made = Made::default();
        for worker in running {
            let part = worker.join();
            let part = part.map_err(|_| Error::Worker("a thread has ended early".to_owned()))??;
            made.entries.extend(part.entries);
            made.tracks.extend(part.tracks);
        }
        match last - origin {
            LONGEST.. => Err(Error::TooLong(last - origin)),
            _ => Ok((tracks, last, made)),
        }
    })
}

/// Writes what there is, names, and the directory.
fn complete(
    facts: &Facts,
    tracks: &Tracks,
    made: Made,
    (origin, last): (u64, u64),
    identity: &str,
    store: &Store,
) -> Result<Built, Error> {
    let mut deflate = Deflate::new();
    let mut summaries = vec![Summary::default(); tracks.list.len()];
    for (track, summary) in made.tracks {
        summaries[track as usize] = summary;
    }
    let mut entries = made.entries;
    // Tiles of levels that were left out in the end.
    entries.retain(|entry| {
        let levels = &summaries[entry.key.track as usize].levels;
        entry.key.part != Part::Bins || levels.contains(&entry.key.level)
    });
    let names = write_names(facts, store, &mut deflate, &mut entries)?;
    let records: u64 = summaries.iter().map(|summary| summary.count).sum();
    if records == 0 {
        return Err(Error::Empty);
    }
    let mut order: Vec<usize> = (0..summaries.len()).collect();
    order.retain(|track| summaries[*track].count > 0);
    order.sort_by_key(|track| tracks.list[*track].place);
    let list = order
        .iter()
        .map(|number| track_json(facts, *number, &tracks.list[*number], &summaries[*number]));
    let meta = json!({
        "version": 1,
        "origin": origin.to_string(),
        "length": last - origin,
        "records": records,
        "simulated": facts.gpus.iter().any(|gpu| gpu.is_simulated),
        "lost": facts.recorded.lost,
        "light": facts.recorded.is_light,
        "stacks": facts.recorded.stacks,
        "names": names,
        "tracks": list.collect::<Vec<_>>(),
        "processes": facts.processes.iter().map(|process| json!({
            "pid": process.pid, "host": process.host, "rank": process.rank, "guid": process.guid,
            "command": process.command.join(" "), "path": process.path,
        })).collect::<Vec<_>>(),
        "gpus": facts.gpus.iter().map(|gpu| json!({
            "number": gpu.number, "arch": gpu.arch, "name": gpu.name, "simulated": gpu.is_simulated,
        })).collect::<Vec<_>>(),
        "threads": facts.threads.iter().map(|thread| json!([thread.process, thread.tid])).collect::<Vec<_>>(),
        "kernels": facts.kernels.iter().map(|kernel| json!([kernel.vgprs, kernel.sgprs, kernel.lds, kernel.scratch])).collect::<Vec<_>>(),
    });
    let meta = deflate.bytes(meta.to_string().as_bytes());
    entries.push(store.append(key(Part::Meta, 0, 0, 0), &meta)?);
    entries.sort_unstable_by_key(|entry| entry.key);
    let directory = store.end.load(Ordering::Relaxed);
    let mut bytes: Vec<u8> = entries.iter().flat_map(Entry::bytes).collect();
    bytes.extend_from_slice(identity.as_bytes());
    let written = store.file.write_all_at(&bytes, directory);
    written.map_err(|source| store.error(source))?;
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..16].copy_from_slice(&directory.to_le_bytes());
    head[16..24].copy_from_slice(&(entries.len() as u64).to_le_bytes());
    head[24..].copy_from_slice(&(identity.len() as u64).to_le_bytes());
    let written = store.file.write_all_at(&head, 0);
    written.map_err(|source| store.error(source))?;
    Ok(Built {
        records,
        tracks: order.len(),
        bytes: directory + bytes.len() as u64,
    })
}

fn track_json(
    facts: &Facts,
    number: usize,
    track: &crate::tracks::Track,
    summary: &Summary,
) -> serde_json::Value {
    let Place {
        process,
        kind,
        of,
        stream,
        is_second,
        ..
    } = track.place;
    let (owner, label) = labels(facts, &track.place);
    json!({
        "id": number, "kind": kind, "owner": owner, "label": label, "process": process, "of": of, "stream": stream,
        "second": is_second, "lanes": track.lanes(), "count": summary.count, "first": summary.first, "last": summary.last,
        "busy": summary.busy, "peak": summary.peak, "tiles": summary.tiles, "indices": summary.indices,
        "levels": summary.levels,
    })
}

/// Writes tiles of names; the number of the first name of each.
fn write_names(
    facts: &Facts,
    store: &Store,
    deflate: &mut Deflate,
    entries: &mut Vec<Entry>,
) -> Result<Vec<usize>, Error> {
    let mut firsts = Vec::new();
    let mut part: Vec<&str> = Vec::new();
    let mut bytes = 0;
    let mut write = |part: &mut Vec<&str>, before: usize| {
        let text = json!(part).to_string();
        let number = firsts.len() as u64;
        firsts.push(before - part.len());
        part.clear();
        let bytes = deflate.bytes(text.as_bytes());
        let entry = store.append(key(Part::Names, 0, 0, number), &bytes);
        entry.map(|entry| entries.push(entry))
    };
    for (at, name) in facts.names.iter().enumerate() {
        let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
        if part.len() == NAMES || bytes + name.len() > NAME_BYTES {
            write(&mut part, at)?;
            bytes = 0;
        }
        part.push(name);
        bytes += name.len();
    }
    write(&mut part, facts.names.len())?;
    Ok(firsts)
}

#[cfg(test)]
mod tests {
    use rpd_analysis::classes::Class;
    use rpd_analysis::records::{Call, Gpu, Memory, NONE, Op, Process, Thread};

    use super::super::Pyramid;
    use super::super::tile::Numbers;
    use super::*;

    fn op(id: u64, start: u64, end: u64, queue: u32) -> Op {
        Op {
            id,
            is_kernel: true,
            is_second: false,
            start,
            end,
            gpu: 0,
            process: 0,
            queue,
            stream: queue,
            name: 0,
            class: Class::Compute,
            kernel: NONE,
            bytes: 0,
            host_address: 0,
            grid: [64, 1, 1],
            group: [64, 1, 1],
            lds: 0,
            scratch: 0,
            launch: None,
        }
    }

    fn memory(ops: Vec<Op>) -> Memory {
        let mut memory = Memory {
            ops,
            ..Memory::default()
        };
        memory.facts.names = vec!["kernel".to_owned(), "call".to_owned()];
        memory.facts.gpus = vec![Gpu::default()];
        memory.facts.processes = vec![Process::default()];
        memory.facts.threads = vec![Thread::default()];
        memory
    }

    fn built(memory: &Memory, window: Option<(u64, u64)>) -> Result<(Built, Pyramid), Error> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.rpdview");
        let built = build(memory, window, "of this", &path)?;
        let files = std::fs::read_dir(directory.path()).expect("read").count();
        assert_eq!(files, 1);
        let pyramid = Pyramid::open(&path)?;
        assert_eq!(pyramid.identity(), "of this");
        Ok((built, pyramid))
    }

    fn take(pyramid: &Pyramid, part: Part, number: u64) -> Vec<u8> {
        let tile = pyramid.tile(key(part, 0, 0, number)).expect("read");
        tile.expect("a tile")
    }

    #[test]
    fn tiles_have_every_record_and_what_they_add_up_to() {
        let count = 3 * RECORDS as u64 + 17;
        let ops = (0..count).map(|number| {
            let start = 5_000 + number * 100;
            op(number, start, start + [30, 250, 0][number as usize % 3], 0)
        });
        let (made, pyramid) = built(&memory(ops.collect()), None).expect("made");
        assert_eq!((made.records, made.tracks), (count, 1));
        let mut index_bytes = Vec::new();
        index_bytes.extend(take(&pyramid, Part::Index, 0));
        let mut index = Numbers(&index_bytes);
        assert_eq!(index.take(), 4);
        let (mut busy, mut records, mut first, mut number) = (0, 0, 0, 0);
        for tile in 0..4 {
            let bytes = take(&pyramid, Part::Records, tile);
            let mut numbers = Numbers(&bytes);
            let in_tile = numbers.take();
            let mut start = 0;
            for _ in 0..in_tile {
                start += numbers.take();
                assert_eq!(start, number * 100);
                number += 1;
            }
            first += index.take();
            assert_eq!(first, tile * RECORDS as u64 * 100);
            index.take();
            assert_eq!(index.take(), in_tile);
            records += in_tile;
            busy += index.take();
            assert_eq!((index.take(), index.take()), (0, 1));
            let name: Vec<u64> = (0..6).map(|_| index.take()).collect();
            assert_eq!((name[0], name[1], name[3]), (1, in_tile, 0));
            assert!(
                pyramid
                    .stored(key(Part::Details, 0, 0, tile))
                    .expect("read")
                    .is_some()
            );
        }
        assert_eq!(records, count);
        // Of each three: 30 alone, then 250 over the begin of the next one of 30.
        let mut covered = 0;
        let expected: u64 = (0..count)
            .map(|number| {
                let end = number * 100 + [30, 250, 0][number as usize % 3];
                let added = end.saturating_sub(covered.max(number * 100));
                covered = covered.max(end);
                added
            })
            .sum();
        assert_eq!(busy, expected);
        assert_eq!(pyramid.meta().expect("read")["tracks"][0]["busy"], expected);
    }

    #[test]
    fn window_keeps_records_that_overlap_it() {
        let ops = (0..10).map(|number| op(number, number * 100, number * 100 + 50, 0));
        let memory = memory(ops.collect());
        assert_eq!(built(&memory, Some((250, 400))).expect("made").0.records, 2);
        assert!(matches!(
            built(&memory, Some((5_000, 6_000))),
            Err(Error::Empty)
        ));
    }

    #[test]
    fn nothing_and_too_much_time_are_refused() {
        assert!(matches!(
            built(&memory(Vec::new()), None),
            Err(Error::Empty)
        ));
        let far = memory(vec![op(1, 0, 10, 0), op(2, LONGEST, LONGEST + 10, 0)]);
        assert!(matches!(built(&far, None), Err(Error::TooLong(_))));
    }

    #[test]
    fn damaged_ends_give_lengths_of_nothing() {
        let mut memory = memory(vec![op(1, 500, 100, 0), op(2, 600, 700, 3)]);
        memory.calls.push(Call {
            start: 400,
            end: 300,
            thread: NONE,
            name: 1,
            id: 9,
            range: NONE,
        });
        let (made, pyramid) = built(&memory, None).expect("made");
        assert_eq!((made.records, made.tracks), (3, 3));
        assert_eq!(pyramid.meta().expect("read")["length"], 300);
    }

    #[test]
    fn kept_records_have_their_own_details() {
        let ops = (0..10).map(|number| op(number + 70, number * 100, number * 101, 2));
        let (_, pyramid) = built(&memory(ops.collect()), None).expect("made");
        let (records, details) = (
            take(&pyramid, Part::Records, 0),
            take(&pyramid, Part::Details, 0),
        );
        let (records, details) = super::super::keep(&records, Some(&details), 7);
        assert_eq!(super::super::lengths(&records), [7, 8, 9]);
        let details = details.expect("details");
        let mut numbers = Numbers(&details);
        assert_eq!(numbers.take(), 3);
        numbers.take();
        let first = numbers.take();
        // The first of a column is the difference to 0, doubled.
        assert_eq!(first, 2 * 77);
    }
}
