//! The spool: what is written comes back, and no damage to a file does more than lose records.

use std::io::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rpd_spool::format::{CallRecord, SegmentHeader, TimedText, stream};
use rpd_spool::reader::{DamageKind, MAX_RECORD, ProcessSpool, Stream, processes};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::{FIRST_SEGMENT, SMALLEST_BOUND, SpoolDirectory, StreamWriter};
use zerocopy::IntoBytes;

fn call(correlation: u64, len: usize) -> CallRecord {
    CallRecord {
        header: RecordKind::Call.head(len - size_of::<CallRecord>()),
        operation: 7,
        flags: 0,
        start: 100 + correlation,
        end: 0,
        correlation,
        ancestor: 0,
        retval: 0,
    }
}

fn put(writer: &mut StreamWriter, correlation: u64) -> bool {
    writer.append(56, |bytes| {
        bytes.copy_from_slice(call(correlation, 56).as_bytes())
    })
}

fn correlations(stream: &Stream) -> (Vec<u64>, Vec<String>) {
    let mut records = stream.records();
    let mut found = Vec::new();
    while let Some(record) = records.next() {
        let (call, _) = record.parse::<CallRecord>().expect("a whole record");
        found.push(call.correlation);
    }
    let damage = records.damage().iter().map(ToString::to_string).collect();
    (found, damage)
}

fn one_stream(directory: &Path) -> Stream {
    let mut spool = ProcessSpool::open(directory).expect("readable");
    assert_eq!(spool.streams.len(), 1);
    spool.streams.remove(0)
}

/// A stream of several segments with `count` records.
fn written(count: u64) -> (tempfile::TempDir, PathBuf) {
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    let mut writer = StreamWriter::new(&directory, "t1".to_owned(), stream::THREAD, 1);
    for correlation in 0..count {
        assert!(put(&mut writer, correlation));
    }
    let path = directory.path().to_owned();
    (run, path)
}

#[test]
fn reader_returns_records_in_order_across_segments() {
    let (run, path) = written(20_000);
    assert_eq!(
        processes(run.path()).expect("listed"),
        std::slice::from_ref(&path)
    );
    let stream = one_stream(&path);
    assert!(stream.paths().count() > 2);
    assert_eq!((stream.kind, stream.tid), (stream::THREAD, 1));
    let (found, damage) = correlations(&stream);
    assert!(found.iter().copied().eq(0..20_000));
    assert!(damage.is_empty(), "{damage:?}");
}

/// Number of files in a directory whose names begin with `prefix`.
fn files_named(directory: &Path, prefix: &str) -> usize {
    let entries = std::fs::read_dir(directory).expect("listed");
    entries
        .filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            name.to_string_lossy().starts_with(prefix)
        })
        .count()
}

#[test]
fn writer_uses_segments_made_ahead_in_order_and_removes_the_rest() {
    static REQUESTS: AtomicU32 = AtomicU32::new(0);
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    directory.on_request_for_spares(|| {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
    });
    directory.make_spares();
    assert_eq!(files_named(directory.path(), "spare-"), 0, "none is wanted");
    let mut writers: Vec<StreamWriter> = (1..=2)
        .map(|tid| StreamWriter::new(&directory, format!("t{tid}"), stream::THREAD, tid))
        .collect();
    // Segments of 64 KiB, 256 KiB and then 1 MiB.
    let mut made = 0;
    for correlation in 0..100_000 {
        for writer in &mut writers {
            assert!(put(writer, correlation));
        }
        let requests = REQUESTS.load(Ordering::Relaxed);
        // Every second request is too late: the stream makes its segment itself.
        if requests > made && requests.is_multiple_of(2) {
            directory.make_spares();
            assert!((1..=2).contains(&files_named(directory.path(), "spare-")));
        }
        made = requests;
    }
    assert!(made > 8, "{made} requests");
    directory.remove_spares();
    directory.make_spares();
    assert_eq!(files_named(directory.path(), "spare-"), 0);
    let path = directory.path().to_owned();
    drop((writers, directory));
    let process = ProcessSpool::open(&path).expect("it opens");
    assert_eq!(process.streams.len(), 2);
    for stream in &process.streams {
        let (found, damage) = correlations(stream);
        assert!(found.iter().copied().eq(0..100_000));
        assert!(damage.is_empty(), "{damage:?}");
    }
}

#[test]
fn reader_ignores_a_spare_segment_of_a_killed_process() {
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    directory.on_request_for_spares(|| {});
    let mut writer = StreamWriter::new(&directory, "t1".to_owned(), stream::THREAD, 1);
    for correlation in 0..3_000 {
        assert!(put(&mut writer, correlation));
    }
    directory.make_spares();
    assert_eq!(files_named(directory.path(), "spare-"), 1);
    let (found, damage) = correlations(&one_stream(directory.path()));
    assert!(found.iter().copied().eq(0..3_000));
    assert!(damage.is_empty(), "{damage:?}");
}

#[test]
fn writer_closes_open_records_in_full_segments() {
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    let mut writer = StreamWriter::new(&directory, "t1".to_owned(), stream::THREAD, 1);
    let outer = writer.append_open(56, |bytes| bytes.copy_from_slice(call(1, 56).as_bytes()));
    for correlation in 2..5000 {
        put(&mut writer, correlation);
    }
    let inner = writer.append_open(56, |bytes| bytes.copy_from_slice(call(5000, 56).as_bytes()));
    writer.close(inner, 3, 900);
    writer.close(outer, 4, 901);
    // Neither closing twice nor an address of something else does harm.
    writer.close(outer, 5, 999);
    writer.close(Default::default(), 5, 999);
    let stream = one_stream(directory.path());
    let mut records = stream.records();
    let mut closed = Vec::new();
    while let Some(record) = records.next() {
        let (call, _) = record.parse::<CallRecord>().expect("a whole record");
        if call.end != 0 {
            closed.push((call.correlation, call.retval, call.end));
        }
    }
    assert_eq!(closed, [(1, 4, 901), (5000, 3, 900)]);
}

/// Reads only when the writers are gone, so that Miri can run it.
#[test]
fn reader_returns_records_of_two_threads_with_spare_segments() {
    const LEN: usize = 4096;
    const RECORDS: u64 = 400;
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    directory.on_request_for_spares(|| {});
    let record = |tid| {
        let mut writer = StreamWriter::new(&directory, format!("t{tid}"), stream::THREAD, tid);
        let fill = |correlation| {
            move |bytes: &mut [u8]| bytes[..56].copy_from_slice(call(correlation, LEN).as_bytes())
        };
        let outer = writer.append_open(LEN, fill(0));
        for correlation in 1..RECORDS {
            assert!(writer.append(LEN, fill(correlation)));
        }
        // Its segment has been left behind by then.
        writer.patch(outer, offset_of!(CallRecord, flags), 5);
        assert_eq!(writer.open_call(outer).map(|call| call.flags), Some(5));
        writer.close(outer, 3, 900 + u64::from(tid));
        assert!(writer.open_call(outer).is_none());
    };
    std::thread::scope(|scope| {
        let record = &record;
        let threads = [1, 2].map(|tid| scope.spawn(move || record(tid)));
        while !threads.iter().all(|thread| thread.is_finished()) {
            directory.make_spares();
            std::thread::yield_now();
        }
    });
    directory.remove_spares();
    assert_eq!(files_named(directory.path(), "spare-"), 0);
    let spool = ProcessSpool::open(directory.path()).expect("readable");
    assert_eq!(spool.streams.len(), 2);
    for stream in &spool.streams {
        assert!(stream.paths().count() > 2);
        let (found, damage) = correlations(stream);
        assert!(found.iter().copied().eq(0..RECORDS));
        assert!(damage.is_empty(), "{damage:?}");
        let mut records = stream.records();
        let first = records.next().expect("a record");
        let (outer, _) = first.parse::<CallRecord>().expect("a whole record");
        let end = 900 + u64::from(stream.tid);
        assert_eq!((outer.flags, outer.retval, outer.end), (5, 3, end));
    }
}

#[test]
fn writer_drops_records_when_its_directory_is_gone() {
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    let mut writer = StreamWriter::new(&directory, "t1".to_owned(), stream::THREAD, 1);
    let mut unstored = StreamWriter::new(&directory, "t2".to_owned(), stream::THREAD, 2);
    assert!(put(&mut writer, 0));
    std::fs::rename(directory.path(), run.path().join("moved")).expect("renamed");
    let stored = (1..5000).filter(|&n| put(&mut writer, n)).count();
    assert!(!put(&mut unstored, 1) && !put(&mut unstored, 2));
    assert_eq!(directory.dropped(), 2);
    let stream = one_stream(&run.path().join("moved"));
    let mut records = stream.records();
    let mut read = 0;
    while records.next().is_some() {
        read += 1;
    }
    assert_eq!(read, 1 + stored);
    assert_eq!(records.dropped() as usize, 4999 - stored);
    assert!(stored < 4999 && records.damage().is_empty());
}

#[test]
fn writer_keeps_the_latest_records_of_a_bounded_stream() {
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    let mut writer = StreamWriter::new(&directory, "recent".to_owned(), stream::RECENT, 0)
        .bounded(SMALLEST_BOUND);
    for number in 0..100_000 {
        assert!(put(&mut writer, number));
        if number % 1000 == 0 {
            let sizes = std::fs::read_dir(directory.path()).expect("listed");
            let sizes = sizes.map(|entry| entry.and_then(|it| it.metadata()).expect("file").len());
            assert!(sizes.sum::<u64>() <= SMALLEST_BOUND, "{number}");
        }
    }
    let (found, damage) = correlations(&one_stream(directory.path()));
    assert!(damage.is_empty(), "{damage:?}");
    let first = 100_000 - found.len() as u64;
    assert!(found.iter().copied().eq(first..100_000));
    // Three full segments at least.
    assert!(
        found.len() * 56 >= 3 * (FIRST_SEGMENT - 120),
        "{}",
        found.len()
    );
    // One that is missing among those that are kept is damage.
    let mut paths: Vec<_> = one_stream(directory.path())
        .paths()
        .map(Path::to_owned)
        .collect();
    std::fs::remove_file(paths.remove(1)).expect("removed");
    let (_, damage) = correlations(&one_stream(directory.path()));
    assert_eq!(damage.len(), 1, "{damage:?}");
}

#[test]
fn reader_counts_dropped_records_of_other_streams_once() {
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    let mut writer = StreamWriter::new(&directory, "meta".to_owned(), stream::META, 0);
    for number in 0..10_000 {
        assert!(put(&mut writer, number));
        writer.publish_dropped(number / 1000);
    }
    let stream = one_stream(directory.path());
    let mut records = stream.records();
    while records.next().is_some() {}
    assert_eq!(records.dropped(), 9);
}

#[test]
fn writer_gives_a_long_record_its_own_segment_and_refuses_one_beyond_the_limit() {
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    let mut writer =
        StreamWriter::new(&directory, "meta".to_owned(), stream::META, 0).first_segment(4096);
    let text = vec![b'x'; 5 * FIRST_SEGMENT];
    let note = TimedText {
        header: RecordKind::Note.head(text.len()),
        time: 1,
        value: 2,
        text_len: text.len() as u32,
        tid: 3,
    };
    assert!(writer.append_parts(note.as_bytes(), &[&text]));
    assert!(!writer.append(MAX_RECORD + 8, |_| {}));
    let stream = one_stream(directory.path());
    let mut records = stream.records();
    let record = records.next().expect("one record");
    let (_, read) = record
        .parse_text::<TimedText>(|note| note.text_len)
        .expect("a note");
    assert!(read.as_bytes() == text);
    assert!(records.next().is_none());
    assert!(records.damage().is_empty());
}

#[test]
fn writer_gives_a_second_thread_with_the_same_id_its_own_stream() {
    let run = tempfile::tempdir().expect("temporary directory");
    let directory = SpoolDirectory::create(run.path()).expect("directory");
    for round in 0..3 {
        let mut writer = StreamWriter::new(&directory, "t9".to_owned(), stream::THREAD, 9);
        for number in 0..3000 {
            assert!(put(&mut writer, round * 3000 + number));
        }
    }
    let spool = ProcessSpool::open(directory.path()).expect("readable");
    assert_eq!(spool.streams.len(), 3);
    let all: Vec<u64> = spool
        .streams
        .iter()
        .flat_map(|s| correlations(s).0)
        .collect();
    assert!(all.iter().copied().eq(0..9000));
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("readable");
    change(&mut bytes);
    std::fs::File::create(path)
        .and_then(|mut file| file.write_all(&bytes))
        .expect("written");
}

#[test]
fn reader_returns_the_records_before_a_truncation() {
    let (_run, path) = written(1000);
    edit(&path.join("t1-0.seg"), |bytes| {
        bytes.truncate(64 + 56 * 10 + 20)
    });
    let (found, damage) = correlations(&one_stream(&path));
    assert!(found.iter().copied().eq(0..10));
    assert!(
        damage
            .iter()
            .any(|text| text.contains("before its last committed record"))
    );
}

#[test]
fn reader_loses_only_the_rest_of_a_segment_behind_a_bad_length() {
    for len in [0u32, 4, 12, 63, u32::MAX, 0x8000_0000, 1 << 24] {
        let (_run, path) = written(20_000);
        let first = ((FIRST_SEGMENT - 64) / 56) as u64;
        edit(&path.join("t1-0.seg"), |bytes| {
            bytes[64 + 56 * 5..][..4].copy_from_slice(&len.to_le_bytes());
        });
        let (found, damage) = correlations(&one_stream(&path));
        assert!(
            found.iter().copied().eq((0..5).chain(first..20_000)),
            "{len}"
        );
        assert_eq!(damage.len(), 1, "{damage:?}");
    }
}

#[test]
fn reader_describes_wrong_segment_heads() {
    let cases: [(usize, &[u8], &str); 4] = [
        (0, b"NOTSPOOL", "does not begin like a spool segment"),
        (8, &99u32.to_le_bytes(), "has layout version 99"),
        (
            24,
            &7u32.to_le_bytes(),
            "has segment number 7 in its header",
        ),
        (
            32,
            &u64::MAX.to_le_bytes(),
            "before its last committed record",
        ),
    ];
    for (offset, value, text) in cases {
        let (_run, path) = written(20_000);
        edit(&path.join("t1-1.seg"), |bytes| {
            bytes[offset..offset + value.len()].copy_from_slice(value);
        });
        let (found, damage) = correlations(&one_stream(&path));
        assert!(
            damage.iter().any(|found| found.contains(text)),
            "{damage:?}"
        );
        assert!(found.len() > 10_000 || found.starts_with(&[0, 1, 2]));
        assert_eq!(found.last(), Some(&19_999));
    }
}

#[test]
fn reader_reports_gaps_and_files_that_are_no_segments_and_goes_on() {
    let (_run, path) = written(20_000);
    std::fs::remove_file(path.join("t1-1.seg")).expect("removed");
    std::fs::write(path.join("t1-9.seg"), [0u8; 4096]).expect("written");
    std::fs::write(path.join("t2-0.seg"), b"short").expect("written");
    std::fs::write(path.join("README-x.seg"), b"no number").expect("written");
    std::fs::create_dir(path.join("t3-0.seg")).expect("made");
    std::os::unix::fs::symlink("/dev/zero", path.join("t4-0.seg")).expect("linked");
    let spool = ProcessSpool::open(&path).expect("readable");
    assert_eq!(spool.streams.len(), 4);
    let stream = spool.streams.iter().find(|s| s.name == "t1").expect("t1");
    let mut records = stream.records();
    let mut read = 0;
    while records.next().is_some() {
        read += 1;
    }
    assert!(read > 10_000);
    assert!(
        records
            .damage()
            .iter()
            .any(|damage| matches!(damage.kind, DamageKind::MissingSegments { from: 1, to: 1 }))
    );
    for stream in spool.streams.iter().filter(|stream| stream.name != "t1") {
        let mut records = stream.records();
        assert!(records.next().is_none());
        assert_eq!(records.damage().len(), 1, "{}", stream.name);
    }
}

/// Random changes to random places: reading ends, without a panic, and never yields more than was written.
#[test]
fn reader_survives_randomly_mutated_segments() {
    let (_run, path) = written(3000);
    let names = ["t1-0.seg", "t1-1.seg"];
    let originals = names.map(|name| std::fs::read(path.join(name)).expect("readable"));
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..300 {
        for (name, original) in names.iter().zip(&originals) {
            let mut bytes = original.clone();
            for _ in 0..random() % 8 {
                // Half of the hits go to the head and the first records.
                let range = if random() % 2 == 0 { 512 } else { bytes.len() };
                let at = random() as usize % range.min(bytes.len());
                bytes[at] ^= 1 << (random() % 8);
            }
            if random() % 4 == 0 {
                bytes.truncate(random() as usize % original.len());
            }
            std::fs::write(path.join(name), &bytes).expect("written");
        }
        let total: u64 = originals.iter().map(|bytes| bytes.len() as u64).sum();
        for stream in &ProcessSpool::open(&path).expect("readable").streams {
            let mut records = stream.records();
            while let Some(record) = records.next() {
                assert_eq!(record.bytes.len(), record.header.len as usize);
            }
            assert!(records.bytes() <= total);
        }
    }
    assert_eq!(size_of::<SegmentHeader>(), 64);
}
