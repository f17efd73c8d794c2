//! Call stacks.

use super::*;

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

/// The PROCESS record of a spool states whether calls may have stacks.
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
    let flags = tail.map_or(0, |_| call_flag::STACK);
    let tail = tail.map_or(Vec::new(), |tail| tail.as_bytes().to_vec());
    put!(
        writer,
        API,
        7,
        CallRecord {
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
fn loading_gives_calls_and_allocations_their_stacks() {
    let run = tempfile::tempdir().expect("a directory");
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
    assert_eq!(stacks(&session.calls.stack), [(2, 4), (0, 0), (2, 0)]);
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
fn loading_reports_stacks_that_are_not_in_the_recording() {
    let run = tempfile::tempdir().expect("a directory");
    let directory = with_stacks(run.path());
    let mut one = thread(&directory, 1);
    tree(&mut one, &[(1, 0, 1, 0), (5, 4, 1, 2)]);
    call_with(&mut one, 10, Some((1, 0)));
    call_with(&mut one, 20, Some((5, 0)));
    call_with(&mut one, 30, Some((9, 0)));
    call_with(&mut one, 40, Some((0, format::stack_flag::LOST)));
    drop(one);
    let session = open(&directory);
    let stacks: Vec<u32> = session.calls.stack.iter().map(|own| own.stack).collect();
    assert_eq!(stacks, [1, 0, 0, 0]);
    assert_eq!(
        session.ledger.damage,
        [
            "2 calls refer to stacks that are not in the recording; they are shown without stacks",
            "1 stacks could not be stored by the collector",
        ]
    );
}

#[test]
fn loading_keeps_stacks_with_their_calls_in_long_tables() {
    let run = tempfile::tempdir().expect("a directory");
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
        let stacks: Vec<u32> = session.calls.stack.iter().map(|own| own.stack).collect();
        assert_eq!(stacks, [1, 2].repeat(50), "{rows:?}");
        // Without the other thread's calls their stack is gone as well.
        let window = crate::session::Window {
            start: Nanoseconds(10),
            end: Nanoseconds(11),
            inside: true,
        };
        session.retain(&window).expect("room");
        assert_eq!(session.calls.len(), 1);
        assert_eq!(session.stacks.nodes.len(), 1);
        assert!(session.stacks.code.is_empty());
    }
}
