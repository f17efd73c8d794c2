use std::path::Path;
use std::sync::Arc;

use zerocopy::{FromZeros, IntoBytes};

use super::*;
use crate::domain::Kind;
use crate::ids::{CorrelationId, ProcessId};
use crate::spool::format::{self, RecordHeader, api_flag, space, stream};
use crate::spool::record::{RecordKind, Role};
use crate::spool::writer::{SpoolDirectory, StreamWriter, record_len};

fn counted(parts: &[&str]) -> Vec<u8> {
    let mut tail = Vec::new();
    for part in parts {
        tail.extend((part.len() as u32).to_le_bytes());
        tail.extend(part.as_bytes());
    }
    tail
}

/// Appends a record: a struct of the format whose header this fills in.
macro_rules! put {
    ($writer:expr, $tag:ident, $aux:expr, $type:ident { $($field:ident: $value:expr),* $(,)? }, $tail:expr) => {{
        let tail: &[u8] = $tail;
        let mut fixed = format::$type::new_zeroed();
        $(fixed.$field = $value;)*
        fixed.header = RecordHeader {
            len: record_len(size_of::<format::$type>(), tail.len()) as u32,
            tag: format::tag::$tag,
            aux: $aux,
        };
        assert!($writer.append_parts(fixed.as_bytes(), &[tail]));
    }};
}

fn name(writer: &mut StreamWriter, space: u32, kind: u32, operation: u32, text: &str) {
    let is_kind = operation == u32::MAX;
    if is_kind {
        put!(
            writer,
            KIND_NAME,
            0,
            Name {
                space: space,
                kind: kind,
                operation: operation,
                text_len: text.len() as u32
            },
            text.as_bytes()
        );
    } else {
        put!(
            writer,
            OPERATION_NAME,
            0,
            Name {
                space: space,
                kind: kind,
                operation: operation,
                text_len: text.len() as u32
            },
            text.as_bytes()
        );
    }
}

fn call(
    writer: &mut StreamWriter,
    kind: u16,
    operation: u32,
    start: u64,
    end: u64,
    correlation: u64,
) {
    put!(
        writer,
        API,
        kind,
        ApiCall {
            operation: operation,
            start: start,
            end: end,
            correlation: correlation
        },
        &[]
    );
}

/// A spool with a meta stream that names a HIP kind (number 7), a marker kind (8) and copies (3, and another number in the buffer service).
fn spool(run: &Path) -> (Arc<SpoolDirectory>, StreamWriter) {
    let directory = SpoolDirectory::create(run).expect("a directory");
    let mut meta = StreamWriter::new(&directory, "meta".to_owned(), stream::META, 0);
    let tail = counted(&[
        "./app\0two words\0",
        "/tmp",
        "/bin/app",
        "A=1\0B=x=y\0odd\0",
    ]);
    put!(
        meta,
        PROCESS,
        0,
        Process {
            pid: 42,
            ppid: 7,
            init_time: 100,
            real_time: 5,
            forked: 1
        },
        &tail
    );
    name(&mut meta, space::CALLBACK, 7, u32::MAX, "HIP_RUNTIME_API");
    name(&mut meta, space::CALLBACK, 7, 3, "hipMalloc");
    name(&mut meta, space::CALLBACK, 7, 4, "hipFree");
    name(
        &mut meta,
        space::CALLBACK,
        8,
        u32::MAX,
        "MARKER_CORE_RANGE_API",
    );
    name(&mut meta, space::CALLBACK, 8, 1, "roctxThreadRangeA");
    name(&mut meta, space::CALLBACK, 8, 2, "roctxProcessRangeA");
    name(&mut meta, space::CALLBACK, 3, u32::MAX, "MEMORY_COPY");
    name(
        &mut meta,
        space::CALLBACK,
        3,
        2,
        "MEMORY_COPY_HOST_TO_DEVICE",
    );
    name(&mut meta, space::BUFFER, 5, u32::MAX, "MEMORY_COPY");
    name(
        &mut meta,
        space::BUFFER,
        5,
        2,
        "MEMORY_COPY_OF_ANOTHER_NUMBER",
    );
    (directory, meta)
}

fn thread(directory: &Arc<SpoolDirectory>, tid: u32) -> StreamWriter {
    StreamWriter::new(directory, format!("t{tid}"), stream::THREAD, tid)
}

fn open(directory: &SpoolDirectory) -> Session {
    Session::open(
        directory.path(),
        LoadOptions {
            args: true,
            ..LoadOptions::default()
        },
    )
    .expect("a session")
}

#[test]
fn threads_are_merged_in_order_and_open_calls_are_listed() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, mut meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    let mut two = thread(&directory, 2);
    call(&mut one, 7, 3, 10, 90, 1);
    call(&mut one, 7, 4, 20, 30, 2);
    call(&mut one, 7, 4, 95, 0, 9);
    call(&mut two, 7, 4, 5, 6, 3);
    call(&mut two, 7, 3, 20, 30, 4);
    call(&mut two, 7, 4, 20, 80, 5);
    put!(meta, END, 0, Moment { time: 500 }, &[]);
    let session = open(&directory);

    let order: Vec<u64> = session.api.correlation.iter().map(|id| id.0).collect();
    // 5 lasts longer than 2 and 4; of those, hipFree comes before hipMalloc.
    assert_eq!(order, [3, 1, 5, 2, 4]);
    assert_eq!(
        session.api.thread.iter().map(|id| id.0).collect::<Vec<_>>(),
        [2, 1, 2, 1, 2]
    );
    let open = &session.ledger.open_calls;
    assert_eq!(open.len(), 1);
    assert_eq!(
        (session.strings.get(open[0].name), open[0].start.0),
        ("hipFree", 95)
    );
    assert!(session.ledger.ended && session.ledger.damage.is_empty());
    assert_eq!(session.process.fini_time.0, 500);
}

#[test]
fn the_process_is_described() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let process = open(&directory).process;
    assert_eq!((process.pid, process.ppid), (ProcessId(42), ProcessId(7)));
    assert_eq!(process.command, ["./app", "two words"]);
    assert_eq!((&*process.cwd, &*process.executable), ("/tmp", "/bin/app"));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(process.environment, [pair("A", "1"), pair("B", "x=y")]);
    assert!(process.forked);
}

#[test]
fn ranges_are_joined_over_threads() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    let mut two = thread(&directory, 2);
    // The stop is read before the start.
    put!(
        one,
        RANGE_END,
        8,
        RangeEnd {
            correlation: 77,
            end: 60
        },
        &[]
    );
    let begin = |writer: &mut StreamWriter, correlation, text: &str| {
        let tail = counted(&[text]);
        put!(
            writer,
            RANGE_BEGIN,
            8,
            RangeBegin {
                operation: 2,
                flags: api_flag::MESSAGE,
                start: 50,
                correlation: correlation
            },
            &tail
        );
    };
    begin(&mut two, 77, "all \"of\" it");
    begin(&mut two, 78, "never stopped");
    let tail = counted(&["inner"]);
    put!(
        two,
        API,
        8,
        ApiCall {
            operation: 1,
            flags: api_flag::MESSAGE,
            start: 51,
            end: 52,
            correlation: 79
        },
        &tail
    );
    let session = open(&directory);
    assert_eq!(session.api.len(), 2);
    let labels: Vec<&str> = (0..2)
        .map(|index| session.strings.get(session.api_label(index)))
        .collect();
    assert_eq!(labels, ["all \"of\" it", "inner"]);
    assert_eq!((session.api.end[0].0, session.api.thread[0].0), (60, 2));
    let kinds = [0, 1].map(|index| session.call(index).kind);
    assert_eq!(kinds, [Kind::MarkerCoreRange; 2]);
    assert_eq!(
        session.strings.get(session.ledger.open_calls[0].name),
        "never stopped"
    );
}

#[test]
fn arguments_are_kept_when_asked_for() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    put!(
        one,
        API,
        7,
        ApiCall {
            operation: 4,
            flags: api_flag::ARGUMENTS,
            start: 1,
            end: 2,
            correlation: 1,
            retval: 77
        },
        &[9; 8]
    );
    let session = open(&directory);
    let args = session.api.args[0];
    assert_eq!(
        (args.offset, args.len, args.flags),
        (0, 8, api_flag::ARGUMENTS)
    );
    assert_eq!(session.api.arena, [9; 8]);
    assert_eq!(session.api.retval, [77]);
    let without = Session::open(directory.path(), LoadOptions::default()).expect("a session");
    assert!(without.api.arena.is_empty() && without.api.retval.is_empty());
    assert_eq!(without.api.args[0].len, 0);
}

#[test]
fn names_stand_at_the_providers_numbers() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let session = open(&directory);
    let names = &session.provider_names;
    assert_eq!((session.callback_kinds, names.len()), (9, 9 + 6));
    assert_eq!(names[7].0, "HIP_RUNTIME_API");
    assert_eq!(names[7].1, ["", "", "", "hipMalloc", "hipFree"]);
    assert_eq!(names[6], Default::default());
    assert_eq!(names[9 + 5].1[2], "MEMORY_COPY_OF_ANOTHER_NUMBER");
}

#[test]
fn devices_work_is_read() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, mut meta) = spool(run.path());
    let mut buffer = thread(&directory, 99);
    put!(
        meta,
        REGION,
        0,
        Region {
            id: 5,
            text_len: 4,
            correlation: 33
        },
        b"step"
    );
    put!(
        meta,
        KERNEL_SYMBOL,
        0,
        KernelSymbol { id: 2, name_len: 4 },
        b"k.kd"
    );
    put!(
        meta,
        KERNEL_SYMBOL,
        0,
        KernelSymbol {
            id: 1,
            name_len: u32::MAX
        },
        b"lies.kd"
    );
    put!(meta, CODE_OBJECT, 2, CodeObject { id: 1 }, &[]);
    put!(
        buffer,
        DISPATCH,
        0,
        Dispatch {
            start: 9,
            end: 8,
            kernel: 2,
            dispatch: 1,
            region: 5,
            grid: [64, 1, 1]
        },
        &[]
    );
    put!(
        buffer,
        DISPATCH,
        0,
        Dispatch {
            start: 7,
            end: 8,
            kernel: 1,
            dispatch: 2,
            region: 6
        },
        &[]
    );
    put!(
        buffer,
        COPY,
        0,
        Copy {
            start: 1,
            end: 3,
            bytes: 16,
            operation: 2
        },
        &[]
    );
    put!(
        buffer,
        COPY,
        0,
        Copy {
            start: 2,
            end: 4,
            operation: 77
        },
        &[]
    );
    let session = open(&directory);
    assert_eq!(
        session
            .dispatches
            .dispatch
            .iter()
            .map(|id| id.0)
            .collect::<Vec<_>>(),
        [2, 1]
    );
    // A region that nobody described is none; an end before the start is moved to it.
    assert_eq!(session.dispatches.region, [0, 1]);
    assert_eq!(session.dispatches.end[1].0, 9);
    assert_eq!(session.regions[0].correlation, CorrelationId(33));
    assert_eq!(session.strings.get(session.regions[0].message), "step");
    assert_eq!(
        session.kernel_symbols[0].name.trim_end_matches('\0'),
        "lies.kd"
    );
    assert!(session.code_objects.is_empty());
    let operations: Vec<&str> = session
        .copies
        .operation
        .iter()
        .map(|id| session.operation_name(*id))
        .collect();
    assert_eq!(operations, ["MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_77"]);
    assert_eq!(session.process.fini_time.0, 100);
}

#[test]
fn no_process_is_an_error_and_unknown_things_are_reported() {
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
    put!(one, API, 7, Moment { time: 1 }, &[]);
    put!(meta, NOTE, 0, Moment { text_len: 2 }, b"hm");
    let session = open(&directory);
    assert_eq!(session.api.len(), 1);
    assert_eq!(
        session.operation_name(session.api.operation[0]),
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
    let header = RecordHeader {
        len: len as u32,
        tag: kind.tag(),
        aux: 7,
    };
    bytes[..size_of::<RecordHeader>()].copy_from_slice(header.as_bytes());
    bytes
}

#[test]
fn every_kind_of_record_goes_where_the_table_says() {
    for kind in RecordKind::ALL {
        let run = tempfile::tempdir().expect("a directory");
        let (directory, _meta) = spool(run.path());
        let mut one = thread(&directory, 1);
        // Zeros behind the fixed part are empty texts: as many as a counter has in front of its dimensions.
        let mut record = blank(*kind, kind.fixed_len() + 16);
        if *kind == RecordKind::Call {
            let end = std::mem::offset_of!(format::ApiCall, end);
            record[end] = 1;
        }
        assert!(one.append_parts(&record, &[]));
        let session = open(&directory);
        // Nodes, unlike others, refer to another fact whatever they hold.
        let damage: &[&str] = match *kind == RecordKind::StackNode {
            true => &["1 parts of stacks are left out: what they refer to is not in the recording"],
            false => &[],
        };
        assert_eq!(session.ledger.damage, damage, "{kind:?}");
        for table in Table::ALL {
            let rows = usize::from(kind.role() == Role::Row(*table));
            assert_eq!(session.records(*table), rows, "{kind:?} {table:?}");
        }

        assert!(one.append_parts(&blank(*kind, size_of::<RecordHeader>()), &[]));
        let short = format!("1 records are too short to be {kind:?}");
        let damage = [&[short.as_str()], damage].concat();
        assert_eq!(open(&directory).ledger.damage, damage);
    }
}

#[test]
fn records_of_unknown_kinds_are_counted() {
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
    assert_eq!(session.api.len(), 2);
    assert_eq!(
        session.ledger.damage,
        ["2 records of unknown kinds are left out (tag 999): use the rpd that recorded them"]
    );
}

#[test]
fn calls_with_texts_that_were_cut_are_counted() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    for (end, flags) in [(1, api_flag::TRUNCATED), (2, 0), (3, api_flag::TRUNCATED)] {
        put!(
            one,
            API,
            7,
            ApiCall {
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
fn hostile_spools_never_panic() {
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
        ApiCall {
            operation: 1,
            flags: api_flag::MESSAGE,
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
            flags: api_flag::MESSAGE,
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

#[test]
fn counters_and_their_values_find_each_other_in_any_order() {
    let run = tempfile::tempdir().expect("a directory");
    let directory = SpoolDirectory::create(run.path()).expect("a spool");
    let mut meta = StreamWriter::new(&directory, "meta".into(), stream::META, 0);
    put!(
        meta,
        PROCESS,
        0,
        Process { pid: 7 },
        &counted(&["app", "/", "/app", ""])
    );
    let mut values = StreamWriter::new(&directory, "t7".into(), stream::THREAD, 7);
    for (dispatch, agent, start, counts) in [
        (
            2,
            5,
            500,
            [(0x21, 3.0), (0x10, 1.0), (0x20, 4.0)].as_slice(),
        ),
        (1, 5, 400, [(0x20, 9.0), (0x99, 1.0)].as_slice()),
        // A GPU of the same architecture, whose counters have the same ids.
        (3, 6, 600, [(0x20, 8.0)].as_slice()),
    ] {
        let mut fixed = format::Counted::new_zeroed();
        fixed.dispatch.dispatch = dispatch;
        fixed.dispatch.agent = agent;
        fixed.dispatch.start = start;
        fixed.dispatch.end = start + 10;
        fixed.count = counts.len() as u32;
        let tail: Vec<u8> = counts
            .iter()
            .flat_map(|&(instance, value)| {
                format::CountedValue { instance, value }.as_bytes().to_vec()
            })
            .collect();
        fixed.dispatch.header = RecordHeader {
            len: record_len(size_of::<format::Counted>(), tail.len()) as u32,
            tag: format::tag::COUNTED,
            aux: 0,
        };
        assert!(values.append_parts(fixed.as_bytes(), &[&tail]));
    }
    for id in [1, 2, 3, 4] {
        put!(values, SELECTED, 0, Selected { dispatch: id }, &[]);
    }
    let mut tail = counted(&["SQ_WAVES", "waves", "SQ", ""]);
    tail.extend(16u32.to_le_bytes());
    tail.extend([3u64, 2].as_bytes());
    tail.extend(counted(&["DIMENSION_SHADER_ENGINE"]));
    for agent in [6, 5] {
        put!(
            meta,
            COUNTER,
            0,
            Counter {
                id: 2,
                agent: agent
            },
            &tail
        );
    }
    put!(
        meta,
        COUNTER,
        2,
        Counter { id: 1, agent: 5 },
        &counted(&["Ratio", "", "", "A/B"])
    );
    for (id, counter, position) in [(0x21u64, 2u64, 1u64), (0x20, 2, 0), (0x10, 1, 0)] {
        let pair = [3, position];
        put!(
            meta,
            COUNTER_INSTANCE,
            0,
            CounterInstance {
                id: id,
                counter: counter,
                count: 1
            },
            pair.as_bytes()
        );
    }
    drop((meta, values));
    let session = Session::open(directory.path(), LoadOptions::default()).expect("a session");
    let names: Vec<&str> = session
        .counters
        .iter()
        .map(|counter| &*counter.name)
        .collect();
    assert_eq!(names, ["Ratio", "SQ_WAVES", "SQ_WAVES"]);
    assert!(session.counters[0].is_derived && session.counters[0].dimensions.is_empty());
    assert_eq!(session.counters[1].dimensions[0].size, 2);
    assert_eq!(session.counters[1].instances[1].positions, [(3, 1)]);
    let counted = &session.counted;
    assert_eq!(counted.dispatches.dispatch[0].0, 1, "ordered by start");
    assert_eq!(counted.sums(0).collect::<Vec<_>>(), [(1, 9.0)]);
    assert_eq!(counted.sums(1).collect::<Vec<_>>(), [(0, 1.0), (1, 7.0)]);
    assert_eq!(counted.sums(2).collect::<Vec<_>>(), [(2, 8.0)]);
    assert_eq!(session.counters[2].agent.0, 6);
    let damage = &session.ledger.damage;
    assert!(
        damage.len() == 1 && damage[0].starts_with("1 counted value"),
        "{damage:?}"
    );
    assert_eq!(session.ledger.uncounted, 1);
    assert_eq!(session.process.fini_time.0, 610);
}

/// A spool whose threads interleave, with times that are equal, and whose dispatches and copies come in the order of their
/// ends.
fn interleaved(run: &Path) -> Arc<SpoolDirectory> {
    let (directory, mut meta) = spool(run);
    let message = b"region";
    put!(
        meta,
        REGION,
        0,
        Region {
            id: 5,
            correlation: 1,
            text_len: message.len() as u32
        },
        message
    );
    for tid in 1..=5_u32 {
        let mut writer = thread(&directory, tid);
        for index in 0..u64::from(40 * tid) {
            let start = 100 + index / 3 * 10;
            let correlation = index * 8 + u64::from(tid);
            call(
                &mut writer,
                7,
                3 + (index % 2) as u32,
                start,
                start + 30 - index % 3 * 10,
                correlation,
            );
            if index.is_multiple_of(3) {
                put!(
                    writer,
                    API,
                    7,
                    ApiCall {
                        operation: 3,
                        start: start,
                        end: start + 5,
                        correlation: correlation + 1_000_000,
                        flags: format::api_flag::ARGUMENTS,
                        retval: index
                    },
                    &correlation.to_ne_bytes()
                );
            }
            let end = 1000 + index * 4;
            put!(
                writer,
                DISPATCH,
                0,
                Dispatch {
                    start: end - 1 - (index * 7919 + u64::from(tid) * 31) % 500,
                    end: end,
                    dispatch: correlation,
                    kernel: index % 3,
                    region: (index % 2) as u32 * 5
                },
                &[]
            );
            put!(
                writer,
                COPY,
                0,
                Copy {
                    operation: 2,
                    start: end - 1 - index * 13 % 90,
                    end: end,
                    bytes: correlation
                },
                &[]
            );
        }
    }
    directory
}

#[test]
fn long_tables_are_the_same_in_files() {
    let run = tempfile::tempdir().expect("a directory");
    let directory = interleaved(run.path());
    let whole = open(&directory);
    assert!(!whole.api.start.is_mapped());
    let texts = |session: &Session| {
        let rows = Table::ALL.iter().map(|table| {
            let (starts, ends) = (
                session.columns(*table).starts(),
                session.columns(*table).ends(),
            );
            format!("{starts:?} {ends:?}")
        });
        rows.chain([
            format!("{:?}", session.api),
            format!("{:?}", session.dispatches),
            format!("{:?}", session.copies),
            format!("{:?}", session.process),
        ])
        .collect::<Vec<_>>()
    };
    for rows in [1, 7, 64, 599] {
        let mut session = Session::open(
            directory.path(),
            LoadOptions {
                args: true,
                rows: Some(rows),
            },
        )
        .expect("a session");
        assert!(session.api.start.is_mapped(), "{rows}");
        assert_eq!(texts(&session), texts(&whole), "{rows}");
        assert_eq!(session.span(), whole.span());
        let window = crate::session::Window {
            start: Nanoseconds(300),
            end: Nanoseconds(900),
            inside: false,
        };
        let mut cut = open(&directory);
        cut.retain(&window).expect("in memory");
        session.retain(&window).expect("written");
        assert!(cut.len() < whole.len());
        assert_eq!(texts(&session), texts(&cut), "{rows}");
    }
}

/// A module, a location in it, and nodes of the locations given.
fn tree(writer: &mut StreamWriter, nodes: &[(u32, u32, u32, u32)]) {
    let path = b"/lib/\xffx.so";
    let tail = [&path[..], &[0xab, 0xcd]].concat();
    put!(
        writer,
        STACK_MODULE,
        0,
        StackModule {
            id: 1,
            path_len: path.len() as u32,
            build_id_len: 2,
            base: 0x1000,
            start: 0x1000,
            end: 0x9000,
            time: 5
        },
        &tail
    );
    let names = b"a.pyff.g\x01\x02\x03";
    put!(
        writer,
        STACK_CODE,
        0,
        StackCode {
            id: 1,
            first_line: 7,
            version: 0x030b_02f0,
            file_len: 4,
            name_len: 1,
            qualname_len: 3,
            lines_len: 3
        },
        names
    );
    for (id, kind) in [(1, 1), (2, 2)] {
        put!(
            writer,
            STACK_LOCATION,
            kind,
            StackLocation {
                id: id,
                owner: 1,
                offset: 0x40
            },
            &[]
        );
    }
    for &(id, parent, location, depth) in nodes {
        put!(
            writer,
            STACK_NODE,
            0,
            StackNode {
                id: id,
                parent: parent,
                location: location,
                depth: depth
            },
            &[]
        );
    }
}

/// The PROCESS record of a spool says whether calls may have stacks.
fn with_stacks(run: &Path) -> Arc<SpoolDirectory> {
    let directory = SpoolDirectory::create(run).expect("a directory");
    let mut meta = StreamWriter::new(&directory, "meta".to_owned(), stream::META, 0);
    let tail = counted(&["./app\0", "/", "/app", ""]);
    put!(meta, PROCESS, 0, Process { pid: 42, stacks: 1 }, &tail);
    name(&mut meta, space::CALLBACK, 7, u32::MAX, "HIP_RUNTIME_API");
    name(&mut meta, space::CALLBACK, 7, 3, "hipMalloc");
    let memory = "MEMORY_ALLOCATION";
    name(&mut meta, space::CALLBACK, 9, u32::MAX, memory);
    name(
        &mut meta,
        space::CALLBACK,
        9,
        1,
        "MEMORY_ALLOCATION_ALLOCATE",
    );
    directory
}

fn call_with(writer: &mut StreamWriter, start: u64, stack: Option<(u32, u32)>) {
    let tail = stack.map(|(stack, flags)| format::StackRef { stack, flags });
    let flags = tail.map_or(0, |_| api_flag::STACK);
    let tail = tail.map_or(Vec::new(), |tail| tail.as_bytes().to_vec());
    put!(
        writer,
        API,
        7,
        ApiCall {
            operation: 3,
            flags: flags,
            start: start,
            end: start + 1,
            correlation: start
        },
        &tail
    );
}

#[test]
fn calls_and_allocations_have_stacks() {
    let run = tempfile::tempdir().expect("a folder");
    let directory = with_stacks(run.path());
    let mut one = thread(&directory, 1);
    // What the other thread's calls refer to is in this stream, and read first or last.
    tree(&mut one, &[(1, 0, 1, 0), (2, 1, 2, 1), (3, 1, 1, 1)]);
    call_with(&mut one, 10, Some((2, 4)));
    let mut other = thread(&directory, 2);
    call_with(&mut other, 20, None);
    call_with(&mut other, 30, Some((2, 0)));
    let own = format::StackRef { stack: 1, flags: 0 };
    put!(
        other,
        ALLOCATION,
        0,
        Allocation {
            start: 40,
            end: 41,
            operation: 1
        },
        own.as_bytes()
    );
    put!(
        other,
        ALLOCATION,
        0,
        Allocation {
            start: 50,
            end: 51,
            operation: 1
        },
        &[]
    );
    drop((one, other));
    let session = open(&directory);
    let stacks = |column: &[crate::session::StackRef]| -> Vec<(u32, u32)> {
        column.iter().map(|own| (own.stack, own.flags)).collect()
    };
    assert_eq!(stacks(&session.api.stack), [(2, 4), (0, 0), (2, 0)]);
    assert_eq!(stacks(&session.allocations.stack), [(1, 0), (0, 0)]);
    let found = &session.stacks;
    // The third node is of no record.
    assert_eq!(found.nodes.len(), 2);
    assert_eq!(found.modules[0].build_id, "abcd");
    assert_eq!(session.strings.get(found.modules[0].path), "/lib/\\xffx.so");
    let code = &found.code[0];
    assert_eq!(session.strings.get(code.file), "a.py");
    assert_eq!(session.strings.get(code.qualname), "f.g");
    assert_eq!((code.first_line, &*code.lines), (7, &[1, 2, 3][..]));
    assert!(
        session.ledger.damage.is_empty(),
        "{:?}",
        session.ledger.damage
    );
}

#[test]
fn stacks_that_are_not_in_the_recording_are_reported() {
    let run = tempfile::tempdir().expect("a folder");
    let directory = with_stacks(run.path());
    let mut one = thread(&directory, 1);
    tree(&mut one, &[(1, 0, 1, 0), (5, 4, 1, 2)]);
    call_with(&mut one, 10, Some((1, 0)));
    call_with(&mut one, 20, Some((5, 0)));
    call_with(&mut one, 30, Some((9, 0)));
    call_with(&mut one, 40, Some((0, format::stack_flag::LOST)));
    drop(one);
    let session = open(&directory);
    let stacks: Vec<u32> = session.api.stack.iter().map(|own| own.stack).collect();
    assert_eq!(stacks, [1, 0, 0, 0]);
    assert_eq!(
        session.ledger.damage,
        [
            "2 calls have stacks that are not in the recording: they are shown without",
            "1 parts of stacks are left out: what they refer to is not in the recording",
            "1 stacks could not be stored by the collector",
        ]
    );
}

#[test]
fn stacks_of_long_tables_stay_with_their_calls() {
    let run = tempfile::tempdir().expect("a folder");
    let directory = with_stacks(run.path());
    let mut one = thread(&directory, 1);
    let mut other = thread(&directory, 2);
    tree(&mut other, &[(1, 0, 1, 0), (2, 1, 2, 1)]);
    for step in 0..50 {
        call_with(&mut one, 10 + 4 * step, Some((1, 0)));
        call_with(&mut other, 12 + 4 * step, Some((2, 0)));
    }
    drop((one, other));
    for rows in [None, Some(16)] {
        let options = LoadOptions { args: true, rows };
        let mut session = Session::open(directory.path(), options).expect("a session");
        let stacks: Vec<u32> = session.api.stack.iter().map(|own| own.stack).collect();
        assert_eq!(stacks, [1, 2].repeat(50), "{rows:?}");
        // Without the other thread's calls their stack is gone as well.
        let window = crate::session::Window {
            start: Nanoseconds(10),
            end: Nanoseconds(11),
            inside: true,
        };
        session.retain(&window).expect("room");
        assert_eq!(session.api.len(), 1);
        assert_eq!(session.stacks.nodes.len(), 1);
        assert!(session.stacks.code.is_empty());
    }
}
