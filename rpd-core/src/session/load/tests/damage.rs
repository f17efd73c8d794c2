//! Records that are damaged, unknown or missing.

use super::*;

#[test]
fn loading_fails_without_a_process_and_reports_unknown_records() {
    let run = tempfile::tempdir().expect("a directory");
    assert!(matches!(
        Session::open(run.path(), LoadOptions::default()),
        Err(LoadError::NothingRecorded { .. })
    ));
    assert!(matches!(
        Session::open(&run.path().join("none"), LoadOptions::default()),
        Err(LoadError::Unreadable { .. })
    ));
    let (directory, mut meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    call(&mut one, 99, 1, 1, 2, 1);
    call(&mut one, 7, 1000, 1, 2, 2);
    put!(one, API, 7, TimedText { time: 1 }, &[]);
    put!(meta, NOTE, 0, TimedText { text_len: 2 }, b"hm");
    let session = open(&directory);
    assert_eq!(session.calls.len(), 1);
    assert_eq!(
        session.operation_name(session.calls.operation[0]),
        "HIP_RUNTIME_API_1000"
    );
    assert_eq!(session.call(0).number, Some(1000));
    assert_eq!(session.ledger.notes, ["hm"]);
    let damage = session.ledger.damage.join("; ");
    assert!(damage.contains("1 records are too short"), "{damage}");
    assert!(
        damage.contains("1 calls are of an unknown kind"),
        "{damage}"
    );
}

/// A record without anything but its head's tag and zeros.
fn blank(kind: RecordKind, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut header = kind.head(0).with_aux(7);
    header.len = len as u32;
    bytes[..size_of::<RecordHeader>()].copy_from_slice(header.as_bytes());
    bytes
}

#[test]
fn loading_treats_each_record_kind_by_its_role_in_the_table() {
    for kind in RecordKind::ALL {
        let run = tempfile::tempdir().expect("a directory");
        let (directory, _meta) = spool(run.path());
        let mut one = thread(&directory, 1);
        // Zeros after the fixed part are empty texts: as many as a counter has in front of its dimensions.
        let mut record = blank(*kind, kind.fixed_len() + 16);
        if *kind == RecordKind::Call {
            let end = std::mem::offset_of!(format::CallRecord, end);
            record[end] = 1;
        }
        if *kind == RecordKind::PcSampling {
            for place in [
                std::mem::offset_of!(format::PcSampling, method),
                std::mem::offset_of!(format::PcSampling, unit),
            ] {
                record[place] = 1;
            }
        }
        assert!(one.append_parts(&record, &[]));
        let session = open(&directory);
        // Of bytes and names of code objects, either is damage without the other.
        let paired = matches!(kind, RecordKind::CodeBytes | RecordKind::CodeContent);
        assert!(paired || session.ledger.damage.is_empty(), "{kind:?}");
        for table in Table::ALL {
            // A range that is started and not stopped is a row, too.
            let starts = *kind == RecordKind::RangeBegin && *table == Table::Calls;
            let rows = usize::from(starts || kind.role() == RecordRole::Row(*table));
            assert_eq!(session.records(*table), rows, "{kind:?} {table:?}");
        }

        assert!(one.append_parts(&blank(*kind, size_of::<RecordHeader>()), &[]));
        let damage = format!("1 records are too short to be {kind:?}");
        let found = open(&directory).ledger.damage;
        assert!(
            found.contains(&damage) && (paired || found.len() == 1),
            "{found:?}"
        );
    }
}

#[test]
fn loading_counts_records_of_unknown_kinds() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    call(&mut one, 7, 1, 1, 2, 1);
    for tag in [999_u16, 998] {
        let mut record = blank(RecordKind::End, 24);
        record[4..6].copy_from_slice(&tag.to_le_bytes());
        assert!(one.append_parts(&record, &[]));
    }
    call(&mut one, 7, 1, 3, 4, 2);
    let session = open(&directory);
    assert_eq!(session.calls.len(), 2);
    assert_eq!(
        session.ledger.damage,
        ["2 records of unknown kinds are left out (tag 999): use the rpd that recorded them"]
    );
}

#[test]
fn loading_counts_calls_whose_texts_were_cut() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    for (end, flags) in [(1, call_flag::TRUNCATED), (2, 0), (3, call_flag::TRUNCATED)] {
        put!(
            one,
            API,
            7,
            CallRecord {
                operation: 1,
                end: end,
                flags: flags
            },
            &[]
        );
    }
    assert_eq!(open(&directory).ledger.cut_calls, 2);
}

/// Spoils every byte of a small spool in turn, and cuts it at many lengths: never a panic.
#[test]
fn loading_a_damaged_spool_never_panics() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, mut meta) = spool(run.path());
    put!(
        meta,
        KERNEL_SYMBOL,
        0,
        KernelSymbol { id: 1, name_len: 4 },
        b"k.kd"
    );
    let mut one = thread(&directory, 1);
    let message = counted(&["message"]);
    put!(
        one,
        API,
        8,
        CallRecord {
            operation: 1,
            flags: call_flag::MESSAGE,
            start: 1,
            end: 2
        },
        &message
    );
    put!(
        one,
        RANGE_BEGIN,
        8,
        RangeBegin {
            operation: 2,
            flags: call_flag::MESSAGE,
            start: 5
        },
        &message
    );
    put!(one, RANGE_END, 8, RangeEnd { end: 6 }, &[]);
    put!(
        one,
        DISPATCH,
        0,
        Dispatch {
            kernel: 1,
            start: 5,
            end: 6
        },
        &[]
    );
    let segments: Vec<_> = std::fs::read_dir(directory.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert_eq!(segments.len(), 2);
    for path in segments {
        let good = std::fs::read(&path).expect("a segment");
        let committed = u64::from_le_bytes(good[32..40].try_into().expect("8 bytes")) as usize + 64;
        for at in 0..committed {
            let mut bad = good[..committed].to_vec();
            bad[at] ^= if at % 2 == 0 { 0xff } else { 0x80 };
            std::fs::write(&path, &bad).expect("written");
            let _ = Session::open(
                directory.path(),
                LoadOptions {
                    args: true,
                    ..LoadOptions::default()
                },
            );
            if at % 8 == 3 {
                std::fs::write(&path, &good[..at]).expect("written");
                let _ = Session::open(
                    directory.path(),
                    LoadOptions {
                        args: true,
                        ..LoadOptions::default()
                    },
                );
            }
        }
        std::fs::write(&path, &good).expect("written");
    }
}

/// Whether calls have stacks is in the record of the process, which a damaged spool may have behind calls.
#[test]
fn loading_gives_columns_the_same_length_when_the_process_is_described_late() {
    for rows in [None, Some(1)] {
        let run = tempfile::tempdir().expect("a directory");
        let directory = SpoolDirectory::create(run.path()).expect("a directory");
        let mut meta = StreamWriter::new(&directory, "meta".to_owned(), stream::META, 0);
        name(&mut meta, space::CALLBACK, 3, u32::MAX, "MEMORY_ALLOCATION");
        let allocation = |writer: &mut StreamWriter, start| {
            put!(
                writer,
                ALLOCATION,
                0,
                Allocation {
                    start: start,
                    end: start + 1,
                    operation: 1
                },
                &[]
            );
        };
        for start in [1, 2, 3] {
            allocation(&mut meta, start);
        }
        let tail = counted(&["app", "/", "/app", ""]);
        put!(meta, PROCESS, 0, Process { pid: 42, stacks: 1 }, &tail);
        name(&mut meta, space::CALLBACK, 7, u32::MAX, "HIP_RUNTIME_API");
        let mut one = thread(&directory, 1);
        for start in [5, 4] {
            call(&mut one, 7, 3, start, 9, start);
            allocation(&mut one, start);
        }
        let options = LoadOptions { args: true, rows };
        let session = Session::open(directory.path(), options).expect("a session");
        assert_eq!((session.calls.len(), session.allocations.len()), (2, 5));
        assert_eq!(session.calls.stack.len(), 2);
        assert_eq!(session.calls.retval.len(), 2);
        assert_eq!(session.allocations.stack.len(), 5);
    }
}
