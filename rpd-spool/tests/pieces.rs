//! Recordings with a bound, and recordings that are cut into pieces while they are written.

#![cfg(not(miri))]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rpd_spool::cut::{Cutter, Piece};
use rpd_spool::follow::Follower;
use rpd_spool::format::record::RecordKind;
use rpd_spool::format::{
    CallRecord, CountedDispatch, ProcessTotals, REMOVING, RangeBegin, RangeEnd, RecordHeader,
    RemovedTotal, Selected, TimedText, stream,
};
use rpd_spool::reader::ProcessSpool;
use rpd_spool::removed::{Removed, Sort, records};
use rpd_spool::writer::{OpenRecord, SMALLEST_LIMIT, SpoolDirectory, StreamWriter};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// A bound in bytes, and what counts the segments that go.
type Limit = (u64, fn(&[u8]));

/// A run's directory with a recording whose writers take note of readers.
fn recording(limit: Option<Limit>) -> (tempfile::TempDir, Arc<SpoolDirectory>) {
    let run = tempfile::tempdir().expect("a directory");
    let directory = SpoolDirectory::create(run.path()).expect("a spool");
    directory.set_taken_live();
    if let Some((bytes, count)) = limit {
        directory.set_limit(bytes, count);
    }
    (run, directory)
}

fn thread(directory: &Arc<SpoolDirectory>, tid: u32) -> StreamWriter {
    StreamWriter::new(directory, format!("t{tid}"), stream::THREAD, tid).removable()
}

fn call(writer: &mut StreamWriter, correlation: u64, end: u64) -> OpenRecord {
    let mut call = CallRecord::new_zeroed();
    call.header = RecordKind::Call.head(0).with_aux(3);
    (call.operation, call.start, call.end) = (9, 100, end);
    call.correlation = correlation;
    writer.append_open(size_of::<CallRecord>(), |bytes| {
        bytes.copy_from_slice(call.as_bytes());
    })
}

fn append<T: IntoBytes + zerocopy::Immutable>(writer: &mut StreamWriter, record: &T) {
    assert!(writer.append(size_of::<T>(), |bytes| {
        bytes.copy_from_slice(record.as_bytes())
    }));
}

/// The records of a recording: tag, bytes, thread.
fn all(directory: &Path) -> Vec<(u16, Vec<u8>, u32)> {
    let mut found = Vec::new();
    for stream in &ProcessSpool::open(directory).expect("a recording").streams {
        let mut records = stream.records();
        while let Some(record) = records.next() {
            found.push((record.header.tag, record.bytes.to_vec(), stream.tid));
        }
        assert!(records.damage().is_empty(), "{:?}", records.damage());
    }
    found
}

/// Correlation ids of calls, each with the number of times that it is there.
fn calls(directory: &Path, into: &mut BTreeMap<u64, u64>) {
    for (tag, bytes, _) in all(directory) {
        if tag == RecordKind::Call.tag() {
            let (call, _) = CallRecord::read_from_prefix(&bytes).expect("a call");
            *into.entry(call.correlation).or_default() += 1;
        }
    }
}

fn cut(cutter: &mut Cutter, from: &SpoolDirectory, last: bool) -> (tempfile::TempDir, Piece) {
    let into = tempfile::tempdir().expect("a directory");
    let piece = cutter.cut(from.path(), into.path(), last).expect("cut");
    (into, piece)
}

fn bytes_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("a directory").flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len())
        .sum()
}

#[test]
fn pieces_have_each_call_once_and_open_calls_when_they_have_returned() {
    let (_run, directory) = recording(None);
    let mut writer = thread(&directory, 7);
    let mut cutter = Cutter::default();
    let mut found = BTreeMap::new();
    let long = call(&mut writer, 1, 0);
    let never = call(&mut writer, 2, 0);
    assert_ne!(never, OpenRecord::default());
    let mut number = 3;
    for round in 0..4 {
        for _ in 0..40_000 {
            call(&mut writer, number, 200);
            number += 1;
        }
        if round == 2 {
            writer.close(long, 5, 900);
        }
        let (piece, summary) = cut(&mut cutter, &directory, false);
        let before = found.len();
        calls(piece.path(), &mut found);
        assert_eq!(summary.rows, (found.len() - before) as u64);
        assert_eq!(
            found.contains_key(&1),
            round >= 2,
            "in the piece of its end"
        );
        // What is written out is given back.
        assert!(bytes_of(directory.path()) <= 2 << 20);
        assert_eq!(
            cut(&mut cutter, &directory, false).1.rows,
            0,
            "nothing twice"
        );
    }
    assert!(!found.contains_key(&2));
    drop(writer);
    let (piece, summary) = cut(&mut cutter, &directory, true);
    calls(piece.path(), &mut found);
    assert_eq!(summary.rows, 1, "the call that never returned");
    assert_eq!(found.len() as u64, number - 1);
    assert!(found.values().all(|&count| count == 1));
    assert_eq!(bytes_of(directory.path()), 0);
}

#[test]
fn pieces_have_ranges_and_counted_dispatches_when_both_halves_are_there() {
    let (_run, directory) = recording(None);
    let mut meta = StreamWriter::new(&directory, "meta".to_owned(), stream::META, 0);
    let (mut one, mut other) = (thread(&directory, 7), thread(&directory, 8));
    let mut cutter = Cutter::default();
    let mut note = TimedText::new_zeroed();
    note.header = RecordKind::Note.head(0);
    append(&mut meta, &note);
    let mut totals = ProcessTotals::new_zeroed();
    totals.header = RecordKind::ProcessTotals.head(0);
    (totals.dispatches_begun, totals.dispatches_ended) = (10, 8);
    append(&mut meta, &totals);
    for correlation in [1, 2] {
        let mut begin = RangeBegin::new_zeroed();
        begin.header = RecordKind::RangeBegin.head(0);
        begin.correlation = correlation;
        append(&mut one, &begin);
        let mut selected = Selected::new_zeroed();
        selected.header = RecordKind::Selected.head(0);
        selected.dispatch = correlation;
        append(&mut one, &selected);
    }
    let (first, summary) = cut(&mut cutter, &directory, false);
    let tags = |records: &[(u16, Vec<u8>, u32)]| -> Vec<u16> {
        records.iter().map(|(tag, ..)| *tag).collect()
    };
    let kinds =
        |kinds: &[RecordKind]| -> Vec<u16> { kinds.iter().map(|kind| kind.tag()).collect() };
    let found = all(first.path());
    assert_eq!(
        tags(&found),
        kinds(&[RecordKind::Note, RecordKind::ProcessTotals])
    );
    let (first_totals, _) = ProcessTotals::read_from_prefix(&found[1].1).expect("sums");
    assert_eq!(
        (first_totals.dispatches_begun, first_totals.dispatches_ended),
        (8, 8)
    );
    assert_eq!(summary.rows, 0);

    append(
        &mut other,
        &RangeEnd {
            header: RecordKind::RangeEnd.head(0),
            correlation: 2,
            end: 70,
        },
    );
    let mut counted = CountedDispatch::new_zeroed();
    counted.dispatch.header = RecordKind::Counted.head(0);
    counted.dispatch.dispatch = 1;
    append(&mut other, &counted);
    let (second, summary) = cut(&mut cutter, &directory, false);
    let found = all(second.path());
    let wanted = [
        RecordKind::ProcessTotals,
        RecordKind::Selected,
        RecordKind::RangeBegin,
        RecordKind::Counted,
        RecordKind::RangeEnd,
    ];
    let mut found_tags = tags(&found);
    found_tags.sort_unstable();
    let mut wanted_tags = kinds(&wanted);
    wanted_tags.sort_unstable();
    assert_eq!(found_tags, wanted_tags, "the note is in the first piece");
    let begin = found
        .iter()
        .find(|one| one.0 == RecordKind::RangeBegin.tag());
    assert_eq!(begin.expect("the begin").2, 7, "with its own thread");
    assert_eq!(summary.rows, 2);

    let (last, _) = cut(&mut cutter, &directory, true);
    let found = tags(&all(last.path()));
    assert!(found.contains(&RecordKind::RangeBegin.tag()));
    assert!(found.contains(&RecordKind::Selected.tag()));
    let found = all(last.path());
    let totals = found
        .iter()
        .find(|one| one.0 == RecordKind::ProcessTotals.tag());
    let (_, bytes, _) = totals.expect("sums");
    let (totals, _) = ProcessTotals::read_from_prefix(bytes).expect("sums");
    assert_eq!((totals.dispatches_begun, totals.dispatches_ended), (2, 0));
}

/// Calls that the writers removed in the next test.
static REMOVED_CALLS: AtomicU64 = AtomicU64::new(0);

fn count_removed(bytes: &[u8]) {
    let found =
        records(bytes).filter(|(header, bytes)| Removed::from_record(*header, bytes).is_some());
    REMOVED_CALLS.fetch_add(found.count() as u64, Ordering::Relaxed);
}

#[test]
fn bound_is_kept_and_each_call_is_in_a_piece_or_counted() {
    const LIMIT: u64 = 4 * SMALLEST_LIMIT;
    const THREADS: u64 = 3;
    const CALLS: u64 = 200_000;
    let (_run, directory) = recording(Some((LIMIT, count_removed)));
    let ended = AtomicBool::new(false);
    let (mut taken, mut largest) = (BTreeMap::new(), 0);
    let mut cutter = Cutter::default();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|number| {
                let directory = &directory;
                scope.spawn(move || {
                    let mut writer = thread(directory, number as u32 + 1);
                    for at in 0..CALLS {
                        let open = call(&mut writer, number * CALLS + at, 0);
                        writer.close(open, 0, 200);
                    }
                })
            })
            .collect();
        let watched = scope.spawn(|| {
            let mut largest = 0;
            while !ended.load(Ordering::Relaxed) {
                largest = largest.max(bytes_of(directory.path()));
            }
            largest
        });
        let spare = scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                directory.make_spares();
                std::thread::yield_now();
            }
        });
        while writers.iter().any(|writer| !writer.is_finished()) {
            calls(cut(&mut cutter, &directory, false).0.path(), &mut taken);
        }
        ended.store(true, Ordering::Relaxed);
        largest = watched.join().expect("it ends");
        spare.join().expect("it ends");
        for writer in writers {
            writer.join().expect("it ends");
        }
    });
    calls(cut(&mut cutter, &directory, true).0.path(), &mut taken);
    let removed = REMOVED_CALLS.load(Ordering::Relaxed);
    assert!(taken.values().all(|&count| count == 1), "twice in pieces");
    assert_eq!(
        taken.len() as u64 + removed + directory.dropped(),
        THREADS * CALLS
    );
    assert_eq!(directory.dropped(), 0, "there was room");
    assert!(removed > 0, "the bound was reached");
    assert!(largest <= LIMIT, "{largest}");
}

#[test]
fn segment_whose_removal_was_cut_off_is_read_and_taken() {
    let (_run, directory) = recording(None);
    let mut writer = thread(&directory, 7);
    for number in 0..10 {
        call(&mut writer, number, 200);
    }
    let segment = std::fs::read_dir(directory.path()).expect("a directory");
    let path = segment.flatten().next().expect("a segment").path();
    let mut bytes = std::fs::read(&path).expect("readable");
    // As a process leaves it that ends while it counts.
    bytes[60..64].copy_from_slice(&REMOVING.to_le_bytes());
    drop(writer);
    std::fs::write(&path, &bytes).expect("written");
    let mut found = BTreeMap::new();
    calls(directory.path(), &mut found);
    assert_eq!(found.len(), 10);
    let mut cutter = Cutter::default();
    assert_eq!(
        cut(&mut cutter, &directory, false).1.rows,
        0,
        "it may be counting"
    );
    assert_eq!(cut(&mut cutter, &directory, true).1.rows, 10);
}

#[test]
fn bound_leaves_the_latest_calls() {
    fn none(_: &[u8]) {}
    let (_run, directory) = recording(Some((SMALLEST_LIMIT, none)));
    let mut writer = thread(&directory, 1);
    const CALLS: u64 = 100_000;
    for number in 0..CALLS {
        call(&mut writer, number, 200);
    }
    let mut kept = BTreeMap::new();
    calls(directory.path(), &mut kept);
    let first = *kept.keys().next().expect("some");
    assert!(first > 0 && kept.len() as u64 == CALLS - first);
    assert!(kept.len() as u64 * 56 > SMALLEST_LIMIT / 2);
}

#[test]
fn follower_hands_out_each_record_once_and_calls_when_they_return() {
    let (_run, directory) = recording(None);
    let mut writer = thread(&directory, 7);
    let mut follower = Follower::default();
    let mut seen = Vec::new();
    let mut read = |follower: &mut Follower| {
        let take = |header: RecordHeader, bytes: &[u8], tid: u32| {
            assert_eq!((header.tag, tid), (RecordKind::Call.tag(), 7));
            let (call, _) = CallRecord::read_from_prefix(bytes).expect("a call");
            assert_ne!(call.end, 0);
            seen.push(call.correlation);
        };
        follower.read(directory.path(), take).expect("read");
        std::mem::take(&mut seen)
    };
    let open = call(&mut writer, 1, 0);
    call(&mut writer, 2, 50);
    assert_eq!(read(&mut follower), [2]);
    for number in 3..30_000 {
        call(&mut writer, number, 50);
    }
    writer.close(open, 0, 60);
    let found = read(&mut follower);
    assert_eq!(found.len(), 29_998);
    assert_eq!(found[0], 1);
    assert!(read(&mut follower).is_empty());
}

#[test]
fn removed_total_is_known_by_its_sort() {
    let sort = Sort {
        tag: 64,
        subject: 5,
    };
    let total = sort.empty_total();
    let (read, _) = RemovedTotal::read_from_prefix(total.as_bytes()).expect("a sum");
    assert_eq!(Sort::from_total(&read), sort);
}
