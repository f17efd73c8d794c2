//! ROCTx ranges that were not ended.

use super::*;

/// A range that its thread has pushed and not popped, or with an end.
fn pushed(writer: &mut StreamWriter, correlation: u64, (start, end): (u64, u64), text: &str) {
    put!(
        writer,
        API,
        8,
        CallRecord {
            operation: 1,
            flags: call_flag::MESSAGE,
            start: start,
            end: end,
            correlation: correlation
        },
        &counted(&[text])
    );
}

fn started(writer: &mut StreamWriter, correlation: u64, start: u64, text: &str) {
    put!(
        writer,
        RANGE_BEGIN,
        8,
        RangeBegin {
            operation: 2,
            flags: call_flag::MESSAGE,
            start: start,
            correlation: correlation
        },
        &counted(&[text])
    );
}

/// Label, thread, start and end of every row.
fn rows(session: &Session) -> Vec<(&str, u32, u64, u64)> {
    let calls = &session.calls;
    let row = |index: usize| {
        let label = session.strings.get(session.call_label(index));
        let times = (calls.start[index].0, calls.end[index].0);
        (label, calls.thread[index].0, times.0, times.1)
    };
    calls.indices().map(row).collect()
}

fn open_names(session: &Session) -> Vec<&str> {
    let open = session.ledger.open_ranges.first.iter();
    open.map(|range| session.strings.get(range.name)).collect()
}

#[test]
fn loading_ends_open_ranges_at_the_end_of_the_recording() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, mut meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    let mut two = thread(&directory, 2);
    pushed(&mut one, 1, (10, 0), "epoch");
    pushed(&mut one, 2, (11, 0), "step");
    pushed(&mut one, 3, (12, 13), "inner");
    started(&mut two, 4, 20, "request");
    call(&mut two, 7, 3, 21, 30, 5);
    put!(meta, END, 0, TimedText { time: 500 }, &[]);
    let session = open(&directory);
    assert_eq!(
        rows(&session),
        [
            ("epoch", 1, 10, 500),
            ("step", 1, 11, 500),
            ("inner", 1, 12, 13),
            ("request", 2, 20, 500),
            ("hipMalloc", 2, 21, 30),
        ]
    );
    assert_eq!(open_names(&session), ["epoch", "step", "request"]);
    assert_eq!(session.ledger.open_ranges.count, 3);
    assert!(session.ledger.open_calls.is_empty());
    assert_eq!(session.process.fini_time.0, 500);
}

#[test]
fn loading_ends_open_ranges_of_a_killed_process_at_its_last_time() {
    // The last time is in turn the end of a copy, the begin of an open call, and that of an open range.
    for (copy, call_start, range, expected) in
        [(90, 40, 50, 90), (30, 140, 50, 140), (30, 40, 150, 150)]
    {
        let run = tempfile::tempdir().expect("a directory");
        let (directory, _meta) = spool(run.path());
        let mut one = thread(&directory, 1);
        pushed(&mut one, 1, (10, 0), "epoch");
        started(&mut one, 2, range, "request");
        call(&mut one, 7, 3, call_start, 0, 3);
        put!(
            one,
            COPY,
            0,
            Copy {
                start: 20,
                end: copy,
                operation: 2
            },
            &[]
        );
        for rows_in_memory in [None, Some(1)] {
            let options = LoadOptions {
                rows: rows_in_memory,
                ..LoadOptions::default()
            };
            let session = Session::open(directory.path(), options).expect("a session");
            let expected = expected.max(100);
            assert_eq!(
                rows(&session),
                [("epoch", 1, 10, expected), ("request", 1, range, expected)]
            );
            assert_eq!(session.process.fini_time.0, expected);
            let open = &session.ledger.open_calls;
            assert_eq!(session.strings.get(open[0].name), "hipMalloc");
            assert!(!session.ledger.ended);
        }
    }
}

#[test]
fn ledger_names_an_open_range_without_message_by_its_function() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    put!(
        one,
        API,
        8,
        CallRecord {
            operation: 1,
            flags: call_flag::MESSAGE | call_flag::NULL_MESSAGE,
            start: 200,
            correlation: 1
        },
        &u32::MAX.to_le_bytes()
    );
    let session = open(&directory);
    assert_eq!(rows(&session), [("", 1, 200, 200)]);
    assert_eq!(open_names(&session), ["roctxThreadRangeA"]);
}

#[test]
fn the_ledger_lists_some_of_many_open_ranges_and_counts_all() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    for correlation in 1..=1000 {
        started(&mut one, correlation, 10 + correlation, "leak");
    }
    let session = open(&directory);
    assert_eq!(session.calls.len(), 1000);
    assert_eq!(session.ledger.open_ranges.count, 1000);
    assert_eq!(session.ledger.open_ranges.first.len(), 100);
}
