use std::path::Path;
use std::sync::Arc;

use zerocopy::{FromZeros, IntoBytes};

use super::*;
use crate::domain::Kind;
use crate::ids::{CorrelationId, ProcessId};
use crate::spool::format::{self, RecordHeader, call_flag, space, stream};
use crate::spool::record::{RecordKind, RecordRole};
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
        let kind = RecordKind::from_tag(format::tag::$tag).expect("a kind of record");
        fixed.header = kind.head(tail.len()).with_aux($aux);
        // Damaged recordings have structs of other kinds.
        fixed.header.len = record_len(size_of::<format::$type>(), tail.len()) as u32;
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
        CallRecord {
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
    name(&mut meta, space::CALLBACK, 7, 3, "hipMalloc\0hipFree");
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
fn loading_merges_threads_in_order_and_lists_open_calls() {
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
    put!(meta, END, 0, TimedText { time: 500 }, &[]);
    let session = open(&directory);

    let order: Vec<u64> = session.calls.correlation.iter().map(|id| id.0).collect();
    // 5 lasts longer than 2 and 4; of those, hipFree comes before hipMalloc.
    assert_eq!(order, [3, 1, 5, 2, 4]);
    assert_eq!(
        session
            .calls
            .thread
            .iter()
            .map(|id| id.0)
            .collect::<Vec<_>>(),
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
fn loading_reads_the_description_of_the_process() {
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
fn loading_joins_range_starts_and_stops_of_different_threads() {
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
                flags: call_flag::MESSAGE,
                start: 50,
                correlation: correlation
            },
            &tail
        );
    };
    begin(&mut two, 77, "all \"of\" it");
    let tail = counted(&["inner"]);
    put!(
        two,
        API,
        8,
        CallRecord {
            operation: 1,
            flags: call_flag::MESSAGE,
            start: 51,
            end: 52,
            correlation: 79
        },
        &tail
    );
    let session = open(&directory);
    assert_eq!(session.calls.len(), 2);
    let labels: Vec<&str> = (0..2)
        .map(|index| session.strings.get(session.call_label(index)))
        .collect();
    assert_eq!(labels, ["all \"of\" it", "inner"]);
    assert_eq!((session.calls.end[0].0, session.calls.thread[0].0), (60, 2));
    let kinds = [0, 1].map(|index| session.call(index).kind);
    assert_eq!(kinds, [Kind::MarkerCoreRange; 2]);
}

#[test]
fn loading_keeps_arguments_when_requested() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, _meta) = spool(run.path());
    let mut one = thread(&directory, 1);
    put!(
        one,
        API,
        7,
        CallRecord {
            operation: 4,
            flags: call_flag::ARGUMENTS,
            start: 1,
            end: 2,
            correlation: 1,
            retval: 77
        },
        &[9; 8]
    );
    let session = open(&directory);
    let args = session.calls.args[0];
    assert_eq!(
        (args.offset, args.len, args.flags),
        (0, 8, call_flag::ARGUMENTS)
    );
    assert_eq!(session.calls.arena, [9; 8]);
    assert_eq!(session.calls.retval, [77]);
    let without = Session::open(directory.path(), LoadOptions::default()).expect("a session");
    assert!(without.calls.arena.is_empty() && without.calls.retval.is_empty());
    assert_eq!(without.calls.args[0].len, 0);
}

#[test]
fn loading_puts_names_at_the_providers_numbers() {
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
fn loading_reads_dispatches_copies_allocations_and_regions() {
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
    // A region without a description is none; an end before the start is moved to it.
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

mod counters;
mod damage;
mod long;
mod open_ranges;
mod stacks;
mod traces;
