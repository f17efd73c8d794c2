//! Every table of a session is in the files of every format, or listed here as one that a format leaves out.

use std::path::Path;

use rpd_core::agent::{Agent, AgentType};
use rpd_core::domain::Kind;
use rpd_core::ids::{
    AgentHandle, CodeObjectId, CorrelationId, CounterId, DispatchId, KernelId, Nanoseconds,
    ProcessId, QueueId, StreamId, ThreadId,
};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{
    ArgsRef, Counter, CounterInstance, CounterValue, DispatchTable, KernelSymbol, LoadOptions,
    Session, Table, ValueRange,
};
use rpd_formats::otf2;
use rpd_formats::rocpd::read::Database;
use rusqlite::Connection;

use crate::support::write::write;

/// Whether a format leaves the rows of a table out.
fn leaves_out(format: Format, table: Table) -> bool {
    match format {
        Format::Csv | Format::Json | Format::Rocpd | Format::Parquet | Format::Pftrace => false,
        Format::Otf2 => matches!(table, Table::Scratch | Table::Counted | Table::Samples),
        // It shows allocations and scratch in statistics, and samples beside the code they are in. Here there is neither.
        Format::Html => matches!(table, Table::Allocations | Table::Scratch | Table::Samples),
    }
}

/// Adds a dispatch that ends at `end`.
fn add_dispatch(dispatches: &mut DispatchTable, end: u64) {
    dispatches.start.push(Nanoseconds(100));
    dispatches.end.push(Nanoseconds(end));
    dispatches.thread.push(ThreadId(51));
    dispatches.correlation.push(CorrelationId(2));
    dispatches.agent.push(AgentHandle(2));
    dispatches.queue.push(QueueId(3));
    dispatches.stream.push(StreamId(4));
    dispatches.region.push(0);
    dispatches.kernel.push(KernelId(1));
    dispatches.dispatch.push(DispatchId(1));
    dispatches.private_size.push(0);
    dispatches.group_size.push(0);
    dispatches.workgroup.push([64, 1, 1]);
    dispatches.grid.push([64, 1, 1]);
}

/// Adds a row to a table. Rows with another `figure` have another end and other figures; ids that no other table has make
/// missing descriptions of threads, queues and agents show.
fn add_row(session: &mut Session, table: Table, figure: u64) {
    let (start, end) = (Nanoseconds(100), Nanoseconds(figure));
    match table {
        Table::Calls => {
            let operation = session.add_operation(Kind::HsaCore, "hsa_init");
            let calls = &mut session.api;
            calls.operation.push(operation);
            calls.message.push(rpd_core::ids::StringId(0));
            calls.start.push(start);
            calls.end.push(end);
            calls.thread.push(ThreadId(50));
            calls.correlation.push(CorrelationId(2));
            calls.ancestor.push(CorrelationId(0));
            calls.args.push(ArgsRef::default());
        }
        Table::Dispatches => add_dispatch(&mut session.dispatches, figure),
        Table::Copies => {
            let operation = session.add_operation(Kind::MemoryCopy, "MEMORY_COPY_HOST_TO_DEVICE");
            let copies = &mut session.copies;
            copies.operation.push(operation);
            copies.start.push(start);
            copies.end.push(end);
            copies.thread.push(ThreadId(52));
            copies.correlation.push(CorrelationId(2));
            copies.dst_agent.push(AgentHandle(12));
            copies.src_agent.push(AgentHandle(22));
            copies.bytes.push(figure);
            copies.dst_address.push(4096);
            copies.src_address.push(8192);
            copies.stream.push(StreamId(5));
            copies.region.push(0);
        }
        Table::Allocations => {
            let operation =
                session.add_operation(Kind::MemoryAllocation, "MEMORY_ALLOCATION_ALLOCATE");
            let allocations = &mut session.allocations;
            allocations.operation.push(operation);
            allocations.start.push(start);
            allocations.end.push(end);
            allocations.thread.push(ThreadId(53));
            allocations.correlation.push(CorrelationId(2));
            allocations.ancestor.push(CorrelationId(0));
            allocations.agent.push(AgentHandle(13));
            allocations.address.push(4096);
            allocations.bytes.push(figure);
            allocations.stream.push(StreamId(6));
        }
        Table::Scratch => {
            let operation = session.add_operation(Kind::ScratchMemory, "SCRATCH_MEMORY_ALLOC");
            let scratch = &mut session.scratch;
            scratch.operation.push(operation);
            scratch.start.push(start);
            scratch.end.push(end);
            scratch.thread.push(ThreadId(54));
            scratch.correlation.push(CorrelationId(2));
            scratch.ancestor.push(CorrelationId(0));
            scratch.agent.push(AgentHandle(14));
            scratch.queue.push(QueueId(7));
            scratch.bytes.push(figure);
            scratch.flags.push(1);
        }
        Table::Counted => {
            add_dispatch(&mut session.counted.dispatches, 200);
            session
                .counted
                .ranges
                .push(ValueRange { first: 0, count: 1 });
            session.counted.values.push(CounterValue {
                counter: 0,
                instance: 0,
                value: figure as f64,
            });
        }
        Table::Samples => {
            let samples = &mut session.samples;
            samples.start.push(end);
            samples.end.push(end);
            samples.object.push(CodeObjectId(7));
            samples.offset.push(figure);
            samples.exec.push(figure);
            samples.dispatch.push(DispatchId(1));
            samples.correlation.push(CorrelationId(2));
            samples.region.push(0);
            samples.hardware.push(0);
            samples.workgroup.push([0; 3]);
            samples.wave.push(0);
            samples.flags.push(0);
            samples.class.push(0);
            samples.waves.push(0);
            samples.snapshot.push(0);
            samples.memory.push(0);
        }
    }
}

/// A session with a call from the first to the last moment, and a row of `table`.
fn session(table: Table, figure: u64) -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(42);
    session.agents.push(Agent {
        handle: AgentHandle(2),
        agent_type: AgentType::Gpu,
        name: "gfx90a".to_owned(),
        ..Agent::default()
    });
    session.kernel_symbols.push(KernelSymbol {
        id: KernelId(1),
        code_object: CodeObjectId(7),
        name: "kernel.kd".to_owned(),
        size: 88,
        ..KernelSymbol::default()
    });
    session.counters.push(Counter {
        id: CounterId(1),
        agent: AgentHandle(2),
        name: "SQ_WAVES".to_owned(),
        description: String::new(),
        block: "SQ".to_owned(),
        expression: String::new(),
        is_constant: false,
        is_derived: false,
        dimensions: Vec::new(),
        instances: vec![CounterInstance {
            id: 1,
            positions: Vec::new(),
        }],
    });
    let operation = session.add_operation(Kind::HipRuntime, "hipInit");
    let calls = &mut session.api;
    calls.operation.push(operation);
    calls.message.push(rpd_core::ids::StringId(0));
    calls.start.push(Nanoseconds(1));
    calls.end.push(Nanoseconds(1_000_000));
    calls.thread.push(ThreadId(42));
    calls.correlation.push(CorrelationId(1));
    calls.ancestor.push(CorrelationId(0));
    calls.args.push(ArgsRef::default());
    add_row(&mut session, table, figure);
    session.put_in_order();
    session
}

/// The files of a session, with their names. The anchors of OTF2 archives are left out: libotf2 writes a random number into
/// them.
fn files(format: Format, session: &Session, directory: &Path) -> Vec<(String, Vec<u8>)> {
    fn read(path: &Path, files: &mut Vec<(String, Vec<u8>)>) {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).expect("a directory");
            let mut paths: Vec<_> = entries
                .map(|entry| entry.expect("an entry").path())
                .collect();
            paths.sort();
            paths.iter().for_each(|path| read(path, files));
        } else if path.extension().is_none_or(|extension| extension != "otf2") {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files.push((name.into_owned(), std::fs::read(path).expect("a file")));
        }
    }
    let target = target(directory);
    write(format, session, None, &Options::default(), &target).expect("written");
    let mut found = Vec::new();
    read(directory, &mut found);
    found
}

fn target(directory: &Path) -> Target {
    Target {
        directory: directory.to_owned(),
        prefix: "p".to_owned(),
    }
}

#[test]
fn every_table_is_in_every_format() {
    let mut wrong = Vec::new();
    // Files may name their directory.
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("files");
    for &format in Format::ALL {
        let target = target(&directory);
        if format == Format::Otf2 && otf2::check(&Options::default(), &target).is_err() {
            eprintln!("skipped: libotf2 is not installed");
            continue;
        }
        let files = |figure, table| {
            let found = files(format, &session(table, figure), &directory);
            std::fs::remove_dir_all(&directory).expect("removed");
            found
        };
        for &table in Table::ALL {
            let first = files(200, table);
            assert!(
                first == files(200, table),
                "{format:?}: the same session has other files"
            );
            if (first == files(300, table)) != leaves_out(format, table) {
                wrong.push((format, table));
            }
        }
    }
    assert!(wrong.is_empty(), "not as `leaves_out` states: {wrong:?}");
}

/// The reader finds what the writer wrote, and the rows refer to nothing that is not there.
#[test]
fn every_table_survives_in_a_database() {
    for &table in Table::ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let (written, options) = (session(table, 200), Options::default());
        let target = target(directory.path());
        let files = write(Format::Rocpd, &written, None, &options, &target).expect("written");
        let connection = Connection::open(&files[0]).expect("a database");
        let mut statement = connection.prepare("PRAGMA foreign_key_check").expect("SQL");
        let missing = statement.query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(2)?))
        });
        let missing: Vec<_> = missing
            .expect("rows")
            .map(|row| row.expect("a row"))
            .collect();
        assert!(missing.is_empty(), "{table:?}: {missing:?}");
        let database = Database::open(&files[0]).expect("a database");
        let (read, _) = database
            .session(&database.recordings()[0], LoadOptions::default())
            .expect("a session");
        for &other in Table::ALL {
            assert_eq!(
                read.records(other),
                written.records(other),
                "{table:?}: {other:?}"
            );
        }
    }
}
