//! Every table of a session is in the files of every format, or listed here as one that a format leaves out.

use std::path::Path;

use rpd_core::agent::{Agent, AgentType};
use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{
    AgentHandle, CodeObjectId, CorrelationId, CounterId, DispatchId, KernelId, Nanoseconds,
    OperationId, ProcessId, QueueId, StreamId, ThreadId,
};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{
    AllocationRow, ArgsRef, CallRow, CopyRow, Counter, CounterInstance, CounterValue, DispatchRow,
    DispatchTable, ExtendedStrings, GraphLaunchRow, HipEventRow, KernelSymbol, KfdEventRow,
    LoadOptions, SampleRow, ScratchRow, Session, Table, ValueRange,
};
use rpd_core::spool::format::{GraphNode, sample_flag};
use rpd_core::stats::{SessionStats, StatRow, StatTable};
use rpd_formats::registry::{StatisticsUse, entry};
use rpd_formats::rocpd::read::Database;
use rusqlite::Connection;

use crate::support::write::{lacks_library, write};

/// Whether a format leaves the rows of a table out.
pub(crate) fn leaves_out(format: Format, table: Table) -> bool {
    match format {
        Format::Rocpd | Format::Parquet => false,
        // The original's has no events of the driver either.
        Format::Json => table == Table::KfdEvents,
        // Files of a conversion have them: see `later_schemas.rs`.
        Format::Csv => matches!(table, Table::GraphLaunches | Table::HipEvents),
        // Launches are calls as well, and the graph stands at kernels and copies.
        Format::Pftrace => matches!(table, Table::GraphLaunches | Table::HipEvents),
        Format::Otf2 => matches!(
            table,
            Table::Scratch
                | Table::Counted
                | Table::Samples
                | Table::GraphLaunches
                | Table::HipEvents
                | Table::KfdEvents
        ),
        // It shows allocations and scratch in statistics, and samples beside the code they are in. Here there is neither.
        Format::Html => matches!(
            table,
            Table::Allocations
                | Table::Scratch
                | Table::Samples
                | Table::GraphLaunches
                | Table::HipEvents
                | Table::KfdEvents
        ),
    }
}

/// Whether a format leaves the statistics of a domain out.
fn leaves_statistics_out(format: Format, domain: Domain) -> bool {
    match entry(format).statistics {
        StatisticsUse::Unused => true,
        StatisticsUse::OnRequest | StatisticsUse::WhenComputed => false,
        // Copies and counters have tables of their own in the page.
        StatisticsUse::Always => {
            matches!(domain, Domain::MemoryCopy | Domain::CounterCollection)
        }
    }
}

/// Adds a dispatch that ends at `end`.
fn add_dispatch(dispatches: &mut DispatchTable, end: u64) {
    dispatches.push(DispatchRow {
        start: Nanoseconds(100),
        end: Nanoseconds(end),
        thread: ThreadId(51),
        correlation: CorrelationId(2),
        agent: AgentHandle(2),
        queue: QueueId(3),
        stream: StreamId(4),
        region: 0,
        kernel: KernelId(1),
        dispatch: DispatchId(1),
        private_size: 8,
        group_size: 512,
        workgroup: [64, 1, 1],
        grid: [64, 1, 1],
    });
}

/// Adds a call of a kind. As [`add_row`].
fn add_call(session: &mut Session, kind: Kind, figure: u64) {
    let operation = session.add_operation(kind, "some_call");
    session.calls.push(CallRow {
        operation,
        start: Nanoseconds(100),
        end: Nanoseconds(figure),
        thread: ThreadId(50),
        correlation: CorrelationId(2),
        ancestor: CorrelationId(1),
        ..CallRow::default()
    });
}

/// Adds a row to a table. Rows with another `figure` have another end and other figures; ids that no other table has make
/// missing descriptions of threads, queues and agents show.
pub(crate) fn add_row(session: &mut Session, table: Table, figure: u64) {
    let (start, end) = (Nanoseconds(100), Nanoseconds(figure));
    match table {
        Table::Calls => add_call(session, Kind::HsaCore, figure),
        Table::Dispatches => add_dispatch(&mut session.dispatches, figure),
        Table::Copies => {
            let operation = session.add_operation(Kind::MemoryCopy, "MEMORY_COPY_HOST_TO_DEVICE");
            let copies = &mut session.copies;
            copies.push(CopyRow {
                operation,
                start,
                end,
                thread: ThreadId(52),
                correlation: CorrelationId(2),
                dst_agent: AgentHandle(12),
                src_agent: AgentHandle(22),
                bytes: figure,
                dst_address: 4096,
                src_address: 8192,
                stream: StreamId(5),
                region: 0,
            });
        }
        Table::Allocations => {
            let operation =
                session.add_operation(Kind::MemoryAllocation, "MEMORY_ALLOCATION_ALLOCATE");
            let allocations = &mut session.allocations;
            allocations.push(AllocationRow {
                operation,
                start,
                end,
                thread: ThreadId(53),
                correlation: CorrelationId(2),
                ancestor: CorrelationId(1),
                agent: AgentHandle(13),
                address: 4096,
                bytes: figure,
                stream: StreamId(6),
            });
        }
        Table::Scratch => {
            let operation = session.add_operation(Kind::ScratchMemory, "SCRATCH_MEMORY_ALLOC");
            let scratch = &mut session.scratch;
            scratch.push(ScratchRow {
                operation,
                start,
                end,
                thread: ThreadId(54),
                correlation: CorrelationId(2),
                ancestor: CorrelationId(1),
                agent: AgentHandle(14),
                queue: QueueId(7),
                bytes: figure,
                flags: 1,
            });
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
            samples.push(SampleRow {
                start: end,
                end,
                object: CodeObjectId(7),
                offset: figure,
                exec: figure,
                dispatch: DispatchId(1),
                correlation: CorrelationId(2),
                region: 0,
                hardware: 3,
                workgroup: [4, 5, 6],
                wave: 7,
                flags: sample_flag::STOCHASTIC | sample_flag::MEMORY,
                class: 2,
                waves: 8,
                snapshot: 9,
                memory: 10,
            });
        }
        Table::GraphLaunches => session.graph_launches.push(GraphLaunchRow {
            start,
            end,
            thread: ThreadId(55),
            correlation: CorrelationId(2),
            agent: AgentHandle(15),
            exec: 3,
            dispatches: figure,
        }),
        Table::HipEvents => session.hip_events.push(HipEventRow {
            start,
            end,
            thread: ThreadId(56),
            correlation: CorrelationId(2),
            agent: AgentHandle(16),
            queue: QueueId(8),
            stream: StreamId(7),
            event: figure,
            source_queue: QueueId(9),
            operation: 2,
        }),
        Table::KfdEvents => {
            let name = "KFD_PAGE_MIGRATE_PREFETCH";
            let operation = session.add_operation(Kind::KfdPageMigrate, name);
            session.kfd_events.push(KfdEventRow {
                operation,
                start,
                end,
                process: ThreadId(57),
                agent: AgentHandle(17),
                dst_agent: AgentHandle(18),
                prefetch_agent: AgentHandle(19),
                preferred_agent: AgentHandle(20),
                address: 4096,
                end_address: 4096 + figure,
                error: -12,
                count: 0,
            });
        }
    }
}

/// A session with a call from the first to the last moment, and a row of `table`.
fn session(table: Table, figure: u64) -> Session {
    session_with(|session| add_row(session, table, figure))
}

/// A session with a call from the first to the last moment, and the records that `add` adds.
pub(crate) fn session_with(add: impl FnOnce(&mut Session)) -> Session {
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
    let calls = &mut session.calls;
    calls.push(CallRow {
        operation,
        message: rpd_core::ids::StringId(0),
        start: Nanoseconds(1),
        end: Nanoseconds(1_000_000),
        thread: ThreadId(42),
        correlation: CorrelationId(1),
        ancestor: CorrelationId(0),
        args: ArgsRef::default(),
    });
    add(&mut session);
    session.sort();
    session
}

/// The rows of a table, with names in place of ids of texts.
fn rows(session: &Session, table: Table) -> Vec<String> {
    let none = OperationId::default();
    let name = |operation| session.operation_name(operation);
    macro_rules! rows {
        ($table:expr, $index:ident => $row:expr) => {
            $table.indices().map(|$index| format!("{:?}", $row)).collect()
        };
        (of operations $table:expr) => {
            rows!($table, index => {
                let mut row = $table.row(index);
                (name(std::mem::replace(&mut row.operation, none)), row)
            })
        };
    }
    match table {
        Table::Calls => rows!(of operations session.calls),
        Table::Dispatches => rows!(session.dispatches, index => {
            (session.dispatches.row(index), session.dispatches.graph_of(index))
        }),
        Table::Copies => rows!(session.copies, index => {
            let mut row = session.copies.row(index);
            let operation = std::mem::replace(&mut row.operation, none);
            (name(operation), row, session.copies.graph_of(index))
        }),
        Table::Allocations => rows!(of operations session.allocations),
        Table::Scratch => rows!(of operations session.scratch),
        Table::Counted => rows!(session.counted, index => {
            (session.counted.dispatches.row(index), session.counted.values_of(index))
        }),
        Table::Samples => rows!(session.samples, index => session.samples.row(index)),
        Table::GraphLaunches => {
            rows!(session.graph_launches, index => session.graph_launches.row(index))
        }
        Table::HipEvents => rows!(session.hip_events, index => session.hip_events.row(index)),
        Table::KfdEvents => rows!(of operations session.kfd_events),
    }
}

/// The files of a session, with their names. The anchors of OTF2 archives are left out: libotf2 writes a random number into
/// them.
fn files(
    format: Format,
    session: &Session,
    stats: Option<&SessionStats<'_>>,
    options: &Options,
    directory: &Path,
) -> Vec<(String, Vec<u8>)> {
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
    write(format, session, stats, options, &target).expect("written");
    let mut found = Vec::new();
    read(directory, &mut found);
    found
}

pub(crate) fn target(directory: &Path) -> Target {
    Target {
        directory: directory.to_owned(),
        prefix: "p".to_owned(),
    }
}

/// Calls `check` with every format that can be written here, and a function that returns the files of a session.
pub(crate) fn with_every_format(
    options: &Options,
    check: impl Fn(Format, &dyn Fn(&Session) -> Vec<(String, Vec<u8>)>),
) {
    // Files may name their directory.
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("files");
    for &format in Format::ALL {
        if lacks_library(format) {
            continue;
        }
        check(format, &|session| {
            let found = files(format, session, None, options, &directory);
            std::fs::remove_dir_all(&directory).expect("removed");
            found
        });
    }
}

#[test]
fn every_format_has_every_table() {
    with_every_format(&Options::default(), |format, files| {
        for &table in Table::ALL {
            let first = files(&session(table, 200));
            assert!(
                first == files(&session(table, 200)),
                "{format:?}: the same session has other files"
            );
            assert_eq!(
                first == files(&session(table, 300)),
                leaves_out(format, table),
                "{format:?}, {table:?}: not as `leaves_out` states"
            );
        }
    });
}

fn kind_of(domain: Domain) -> Kind {
    let kind = Kind::all().find(|kind| kind.domain() == domain);
    kind.expect("a kind of the domain")
}

#[test]
fn every_format_has_the_calls_of_every_domain() {
    let domains = Domain::ALL.into_iter();
    for domain in domains.filter(|domain| domain.table() == Table::Calls) {
        let kind = kind_of(domain);
        let session = |figure| session_with(|session| add_call(session, kind, figure));
        with_every_format(&Options::default(), |format, files| {
            assert!(
                files(&session(200)) != files(&session(300)),
                "{format:?} leaves {domain:?} out"
            );
        });
    }
}

/// Statistics of one domain, with one row that has this total.
fn stats(session: &Session, domain: Domain, total: u64) -> SessionStats<'_> {
    let mut names = ExtendedStrings::new(&session.strings);
    let name = match domain.table() {
        Table::Dispatches | Table::Counted => "kernel",
        _ => {
            let operation = session.operations.iter().last().expect("an operation");
            session.strings.get(operation.name)
        }
    };
    let row = |name| StatRow {
        name,
        domain,
        calls: 1,
        total,
        average: total as f64,
        percentage: 100.0,
        min: total,
        max: total,
        std_dev: 0.0,
    };
    let rows = vec![row(names.intern(name))].into();
    let overall = vec![row(names.intern(domain.label()))];
    let title = domain.label().to_owned();
    SessionStats {
        names: names.into(),
        domains: vec![(domain, StatTable { title, rows })],
        overall,
        left_out: 0,
    }
}

#[test]
fn every_format_with_statistics_has_those_of_every_domain() {
    let options = Options {
        stats: true,
        ..Options::default()
    };
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("files");
    for domain in Domain::ALL {
        let session = session_with(|session| match domain.table() {
            Table::Calls => add_call(session, kind_of(domain), 200),
            table => add_row(session, table, 200),
        });
        let formats = Format::ALL.iter().copied();
        for format in formats.filter(|format| entry(*format).statistics != StatisticsUse::Unused) {
            let files = |total| {
                let stats = stats(&session, domain, total);
                let files = files(format, &session, Some(&stats), &options, &directory);
                std::fs::remove_dir_all(&directory).expect("removed");
                files
            };
            let found = files(100);
            assert_eq!(
                found == files(300),
                leaves_statistics_out(format, domain),
                "{format:?}, {domain:?}: not as `leaves_statistics_out` states"
            );
            // The JSON file has a figure that the writer adds up from the records.
            if format == Format::Json && domain != Domain::CounterCollection {
                let text = String::from_utf8_lossy(&found[0].1);
                assert!(text.contains("\"sqr\":10000,"), "{domain:?}");
            }
        }
    }
}

/// The reader finds the records that the writer wrote, and no row refers to another that is not there.
#[test]
fn database_keeps_every_table() {
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
                rows(&read, other),
                rows(&written, other),
                "{table:?}: {other:?}"
            );
        }
    }
}

/// Graph and node of dispatches and copies are in every format that shows more of them than their times, and survive in a database.
#[test]
fn every_format_with_annotations_has_graphs_of_work() {
    let node = GraphNode { exec: 5, node: 2 };
    let with = |node: GraphNode| {
        session_with(|session| {
            add_row(session, Table::Dispatches, 200);
            session.dispatches.set_graph(node);
            add_row(session, Table::Copies, 200);
            session.copies.set_graph(node);
        })
    };
    with_every_format(&Options::default(), |format, files| {
        let leaves_out = matches!(format, Format::Csv | Format::Otf2 | Format::Html);
        let other = GraphNode { exec: 6, node: 2 };
        assert_eq!(
            files(&with(node)) == files(&with(other)),
            leaves_out,
            "{format:?}"
        );
    });
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    let files = write(
        Format::Rocpd,
        &with(node),
        None,
        &Options::default(),
        &target,
    );
    let database = Database::open(&files.expect("written")[0]).expect("a database");
    let read = database.session(&database.recordings()[0], LoadOptions::default());
    let (read, _) = read.expect("a session");
    assert_eq!(read.dispatches.graph_of(0), node);
    assert_eq!(read.copies.graph_of(0), node);
}
