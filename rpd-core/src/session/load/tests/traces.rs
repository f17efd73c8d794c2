use super::*;
use crate::spool::format::trace_flag;

/// A part of chunk `chunk`, which has `size` bytes, from `offset` on.
fn part(writer: &mut StreamWriter, chunk: u64, size: u64, offset: u64, flags: u32, bytes: &[u8]) {
    put!(
        writer,
        TRACE_PART,
        0,
        TracePart {
            agent: 7,
            trace: 3,
            chunk: chunk,
            offset: offset,
            size: size,
            flags: flags,
            len: bytes.len() as u32
        },
        bytes
    );
}

fn tracing(meta: &mut StreamWriter, capacity: u64) {
    let names = b"SQ_WAVES SQ_INSTS";
    put!(
        meta,
        THREAD_TRACING,
        0,
        ThreadTracing {
            agent: 7,
            capacity: capacity,
            len: names.len() as u32
        },
        names
    );
    put!(
        meta,
        TRACED_DISPATCH,
        0,
        TracedDispatch {
            agent: 7,
            dispatch: 3,
            kernel: 9
        },
        &[]
    );
}

/// The bytes of the one stream, whether it is full, and whether it is incomplete.
fn stream_of(directory: &Path) -> (Vec<u8>, bool, bool) {
    let session = Session::open(directory, LoadOptions::default()).expect("a session");
    let traces = &session.thread_traces;
    assert!(!session.is_empty());
    assert_eq!(traces.tracing[0].counters, ["SQ_WAVES", "SQ_INSTS"]);
    assert_eq!(traces.kernel(traces.streams[0].agent, 3).0, 9);
    let [stream] = traces.streams.as_slice() else {
        panic!("{} streams", traces.streams.len());
    };
    (stream.bytes.to_vec(), stream.full, stream.incomplete)
}

/// Checks thread-trace-57: chunks arrive in any order, on several threads.
#[test]
fn parts_of_a_stream_are_put_together() {
    let run = tempfile::tempdir().expect("a directory");
    let (directory, mut meta) = spool(run.path());
    tracing(&mut meta, 1 << 20);
    let mut one = thread(&directory, 1);
    let mut two = thread(&directory, 2);
    part(&mut one, 2, 4, 0, trace_flag::END, b"ghij");
    part(&mut two, 0, 3, 2, 0, b"c");
    part(&mut one, 1, 3, 0, 0, b"def");
    part(&mut two, 0, 3, 0, 0, b"ab");
    let found = stream_of(directory.path());
    assert_eq!(found, (b"abcdefghij".to_vec(), false, false));
}

#[test]
fn loading_leaves_out_trace_data_behind_a_gap() {
    for (name, parts, expected) in [
        ("no end", vec![(0, 3, 0, 0, &b"abc"[..])], &b"abc"[..]),
        (
            "half a chunk",
            vec![(0, 3, 0, trace_flag::END, &b"ab"[..])],
            b"ab",
        ),
        (
            "a chunk is missing",
            vec![(0, 2, 0, 0, &b"ab"[..]), (2, 2, 0, trace_flag::END, b"ef")],
            b"ab",
        ),
        (
            "a part is missing",
            vec![(0, 5, 0, 0, &b"ab"[..]), (0, 5, 4, trace_flag::END, b"e")],
            b"ab",
        ),
        (
            "an empty chunk",
            vec![(0, 0, 0, 0, &b""[..]), (1, 2, 0, 0, b"cd")],
            b"cd",
        ),
        (
            "the first one is missing",
            vec![(1, 2, 0, trace_flag::END, &b"cd"[..])],
            b"",
        ),
    ] {
        let run = tempfile::tempdir().expect("a directory");
        let (directory, mut meta) = spool(run.path());
        tracing(&mut meta, 1 << 20);
        for (chunk, size, offset, flags, bytes) in parts {
            part(&mut meta, chunk, size, offset, flags, bytes);
        }
        let (bytes, _, incomplete) = stream_of(directory.path());
        assert_eq!((bytes.as_slice(), incomplete), (expected, true), "{name}");
    }
}

#[test]
fn loading_marks_a_trace_stream_as_long_as_its_buffer_as_full() {
    for (flags, capacity, full) in [
        (0, 1 << 20, false),
        (0, 64, true),
        (trace_flag::FULL, 1 << 20, true),
    ] {
        let run = tempfile::tempdir().expect("a directory");
        let (directory, mut meta) = spool(run.path());
        tracing(&mut meta, capacity);
        part(&mut meta, 0, 60, 0, flags | trace_flag::END, &[1; 60]);
        let (bytes, found, incomplete) = stream_of(directory.path());
        assert_eq!((bytes.len(), found, incomplete), (60, full, false));
    }
}
