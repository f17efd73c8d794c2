//! Outputs of a session with records that the golden run lacks: renamed kernels, scratch memory, odd texts, unknown
//! agents and kernels, failures.

use crate::support::write as written;

use std::path::Path;

use rpd_core::domain::Kind;
use rpd_core::ids::{
    AgentHandle, CodeObjectId, CorrelationId, CounterId, DispatchId, KernelId, Nanoseconds,
    ProcessId, QueueId, StreamId, ThreadId,
};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{
    ArgsRef, CallRow, Counter, CounterInstance, CounterValue, DispatchRow, KernelSymbol,
    LoadOptions, Region, ResourceKind, ResourceName, ScratchRow, Session, ValueRange,
};
use rpd_core::spool::format::call_flag;
use rpd_formats::WriteError;
use rpd_formats::rocpd::read::Database;
use rusqlite::Connection;
use written::{lacks_library, write, write_one};

const ODD: &str = "quote\" 'single' ; comma, newline\n tab\t \u{fffd} π \\";

fn symbol(id: u64, name: &str) -> KernelSymbol {
    KernelSymbol {
        id: KernelId(id),
        code_object: CodeObjectId(7),
        name: name.to_owned(),
        kernel_object: u64::MAX,
        kernarg_size: 16,
        kernarg_align: 8,
        group_size: 513,
        private_size: 0,
        sgpr_count: 16,
        arch_vgpr_count: 8,
        accum_vgpr_count: 4,
        entry_offset: -64,
        kernel_address: 1,
        size: 88,
    }
}

fn call(
    session: &mut Session,
    kind: Kind,
    operation: &str,
    message: &str,
    times: (u64, u64),
    id: u64,
) {
    let operation = session.add_operation(kind, operation);
    let message = session.strings.intern(message);
    let calls = &mut session.calls;
    calls.push(CallRow {
        operation,
        message,
        start: Nanoseconds(times.0),
        end: Nanoseconds(times.1),
        thread: ThreadId(42),
        correlation: CorrelationId(id),
        ancestor: CorrelationId(0),
        args: ArgsRef::default(),
    });
}

fn dispatch(session: &mut Session, kernel: u64, region: u32, id: u64) {
    let table = &mut session.dispatches;
    table.push(DispatchRow {
        start: Nanoseconds(100 + id),
        end: Nanoseconds(200 + id),
        thread: ThreadId(42),
        correlation: CorrelationId(5),
        agent: AgentHandle(99),
        queue: QueueId(3),
        stream: StreamId(2),
        region,
        kernel: KernelId(kernel),
        dispatch: DispatchId(id),
        private_size: 0,
        group_size: 0,
        workgroup: [64, 1, 1],
        grid: [u32::MAX, u32::MAX, 1],
    });
}

fn session() -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(42);
    session.process.command = vec!["./app".to_owned(), ODD.to_owned()];
    session.process.environment = [
        ("HIP_VISIBLE_DEVICES", ODD),
        ("HIP_VISIBLE_DEVICES", "twice"),
        ("GITHUB_TOKEN", "secret"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    session.kernel_symbols = vec![symbol(1, "_Z1kPf.kd"), symbol(2, ODD)];
    let message = session.strings.intern("region \"one\"");
    session.regions.push(Region {
        message,
        correlation: CorrelationId(77),
    });
    session.resource_names.push(ResourceName {
        kind: ResourceKind::Thread,
        resource: 42,
        name: "main\nthread".to_owned(),
    });
    call(&mut session, Kind::HipRuntime, "hipFree", "", (10, 20), 5);
    // One id too many and one that is none; both are rows all the same.
    call(&mut session, Kind::HsaCore, "hsa_init", "", (11, 19), 5);
    call(
        &mut session,
        Kind::Rocjpeg,
        "rocJpegCreate",
        "",
        (12, 13),
        0,
    );
    call(
        &mut session,
        Kind::MarkerCoreRange,
        "roctxMarkA",
        ODD,
        (14, 14),
        6,
    );
    call(
        &mut session,
        Kind::MarkerCoreRange,
        "roctxThreadRangeA",
        "",
        (15, 16),
        7,
    );
    call(
        &mut session,
        Kind::MarkerCoreRange,
        "roctxGetThreadId",
        "",
        (17, 18),
        8,
    );
    call(
        &mut session,
        Kind::MarkerControl,
        "roctxProfilerPause",
        "",
        (18, 19),
        9,
    );
    session.calls.arena = vec![0; 8].into();
    session.calls.args[0] = ArgsRef {
        offset: 0,
        len: 8,
        flags: call_flag::ARGUMENTS,
    };
    // A reference to bytes beyond the end of the arguments.
    session.calls.args[1] = ArgsRef {
        offset: u64::MAX,
        len: u32::MAX,
        flags: call_flag::ARGUMENTS,
    };
    dispatch(&mut session, 1, 1, 2);
    dispatch(&mut session, 2, 0, 1);
    dispatch(&mut session, 1234, 9, 1);
    for (operation, bytes) in [("ALLOC", 4096), ("FREE", 0), ("ASYNC_RECLAIM", 0)] {
        let operation = format!("SCRATCH_MEMORY_{operation}");
        let operation = session.add_operation(Kind::ScratchMemory, &operation);
        let table = &mut session.scratch;
        table.push(ScratchRow {
            operation,
            start: Nanoseconds(300),
            end: Nanoseconds(310),
            thread: ThreadId(43),
            correlation: CorrelationId(1),
            ancestor: CorrelationId(0),
            agent: AgentHandle(99),
            queue: QueueId(3),
            bytes,
            flags: 1,
        });
    }
    session
}

fn counter(id: u64, name: &str) -> Counter {
    Counter {
        id: CounterId(id),
        agent: AgentHandle(99),
        name: name.to_owned(),
        description: ODD.to_owned(),
        block: String::new(),
        expression: ODD.to_owned(),
        is_constant: true,
        is_derived: true,
        dimensions: Vec::new(),
        instances: vec![CounterInstance {
            id: u64::MAX,
            positions: vec![(9, u64::MAX)],
        }],
    }
}

/// Counters whose ids are unfit to be keys, on dispatches that are in the trace once, twice and never.
fn counting() -> Session {
    let mut session = session();
    dispatch(&mut session, 1234, 9, 77);
    let order: Vec<u32> = vec![0, 2, 3];
    let mut counted = std::mem::take(&mut session.dispatches);
    counted.reorder(&order);
    session.counted.dispatches = counted;
    let traced = self::session().dispatches;
    session.dispatches = traced;
    session.counters = vec![counter(0, "first"), counter(u64::MAX, ODD)];
    for (index, value) in [1.5, f64::NAN, f64::INFINITY].into_iter().enumerate() {
        session.counted.ranges.push(ValueRange {
            first: 2 * index as u64,
            count: 2,
        });
        for counter in 0..2 {
            session.counted.values.push(CounterValue {
                counter,
                instance: 0,
                value,
            });
        }
    }
    session
}

fn target(directory: &Path) -> Target {
    Target {
        directory: directory.join("new/directory"),
        prefix: "p".to_owned(),
    }
}

fn database(options: &Options) -> (tempfile::TempDir, Connection) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = write_one(
        Format::Rocpd,
        &session(),
        None,
        options,
        &target(directory.path()),
    )
    .expect("written")
    .expect("a file");
    let connection = Connection::open(path).expect("a database");
    (directory, connection)
}

fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection
        .prepare(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = statement.query_map([], |row| row.get(0)).expect(sql);
    rows.collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[test]
fn csv_has_odd_values_in_full() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    let mut options = Options::default();
    options.kernel_names.rename = true;
    write(Format::Csv, &session(), None, &options, &target).expect("written");
    let read = |name: &str| std::fs::read_to_string(target.file(name)).expect(name);

    let kernels = read("kernel_trace.csv");
    let start = "\"KERNEL_DISPATCH\",\"\",3,2,42,";
    assert!(kernels.contains(&format!(
        "{start}2,1,\"region \"\"one\"\"\",5,102,202,1024,0,8,4,16,64,1,1,4294967295,"
    )));
    assert!(kernels.contains(&format!("{start}1,2,\"{}\",5,", ODD.replace('"', "\"\""))));
    assert!(kernels.contains(&format!(
        "{start}1,1234,\"kernel 1234 (no symbol)\",5,101,201,0,0,0,0,0,"
    )));

    let markers = read("marker_api_trace.csv");
    assert!(markers.contains(&format!(
        "\"MARKER_CORE_RANGE_API\",\"{}\",42,42,6,14,14\n",
        ODD.replace('"', "\"\"")
    )));
    assert!(markers.contains("\"MARKER_CORE_RANGE_API\",\"\",42,42,7,15,16\n"));
    assert!(markers.contains("\"MARKER_CORE_RANGE_API\",\"roctxGetThreadId\",42,42,8,17,18\n"));
    assert!(markers.contains("\"MARKER_CONTROL_API\",\"roctxProfilerPause\",42,42,9,18,19\n"));

    let scratch = read("scratch_memory_trace.csv");
    let header = "\"Kind\",\"Operation\",\"Agent_Id\",\"Queue_Id\",\"Thread_Id\",\"Alloc_Flags\",\"Start_Timestamp\",\"End_Timestamp\",\"Allocation_Size\"\n";
    assert!(scratch.starts_with(header));
    assert!(
        scratch.contains("\"SCRATCH_MEMORY\",\"SCRATCH_MEMORY_ALLOC\",\"\",3,43,1,300,310,4096\n")
    );
    assert!(!target.file("memory_copy_trace.csv").exists());
}

#[test]
fn database_views_show_every_record() {
    let (_directory, connection) = database(&Options::default());
    let count = |view: &str| {
        texts(
            &connection,
            &format!("SELECT CAST(count(*) AS TEXT) FROM {view}"),
        )
        .remove(0)
    };
    assert_eq!(count("regions"), "6");
    assert_eq!(count("samples"), "1");
    assert_eq!(count("regions_and_samples"), "7");
    assert_eq!(count("kernels"), "3");
    assert_eq!(count("scratch_memory"), "3");
    assert_eq!(count("memory_allocations"), "3");
    let names = texts(
        &connection,
        "SELECT name FROM kernels ORDER BY dispatch_id, name",
    );
    assert_eq!(names, ["kernel 1234 (no symbol)", ODD, "k(float*)"]);
    // Ids of dispatches are theirs, where these are fit to be keys.
    let ids = texts(
        &connection,
        "SELECT id || ' ' || dispatch_id FROM kernels ORDER BY id",
    );
    assert_eq!(ids, ["1 1", "2 2", "3 1"]);
    let ids = texts(
        &connection,
        "SELECT id || ' ' || stack_id FROM regions ORDER BY id",
    );
    // Those of calls are the ids of their events, whatever their correlation ids are. A mark is between the third and the fourth.
    assert_eq!(ids, ["1 5", "2 5", "3 0", "5 7", "6 8", "7 9"]);
    let suffixed = texts(
        &connection,
        "SELECT value FROM rocpd_metadata WHERE tag = 'uuid'",
    );
    for table in ["rocpd_region", "rocpd_sample"] {
        let others = format!("SELECT id FROM {table}{} WHERE event_id <> id", suffixed[0]);
        assert!(texts(&connection, &others).is_empty(), "{table}");
    }
    assert_eq!(
        texts(
            &connection,
            "SELECT operation FROM scratch_memory ORDER BY id"
        ),
        ["ALLOC", "FREE", "RECLAIM"]
    );
    assert_eq!(
        texts(
            &connection,
            "SELECT DISTINCT alloc_flags FROM scratch_memory"
        ),
        ["1"]
    );
    assert_eq!(
        texts(
            &connection,
            "SELECT DISTINCT agent_name FROM scratch_memory"
        ),
        ["unknown agent 99"]
    );
    assert_eq!(texts(&connection, "PRAGMA integrity_check"), ["ok"]);
    assert!(
        !connection
            .prepare("PRAGMA foreign_key_check")
            .expect("a check")
            .exists([])
            .expect("a check")
    );
}

#[test]
fn csv_of_counters_has_odd_values_in_full() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    let mut options = Options::default();
    options.kernel_names.rename = true;
    let session = counting();
    write(Format::Csv, &session, None, &options, &target).expect("written");
    let rows = std::fs::read_to_string(target.file("counter_collection.csv")).expect("a file");
    let quoted = ODD.replace('"', "\"\"");
    for row in [
        "5,2,\"\",3,42,42,18446744065119617025,1,\"region \"\"one\"\"\",64,1024,0,8,4,16,\"first\",1.500000,102,202",
        &format!("1234,\"kernel 1234 (no symbol)\",64,0,0,0,0,0,\"{quoted}\",nan,101,201"),
        "5,77,\"\",3,42,42,18446744065119617025,1234,\"kernel 1234 (no symbol)\",64,0,0,0,0,0,\"first\",inf,177,277",
    ] {
        assert!(rows.contains(row), "{row}\n{rows}");
    }

    let path = write_one(Format::Rocpd, &session, None, &options, &target)
        .expect("written")
        .expect("a file");
    let connection = Connection::open(&path).expect("a database");
    let values = "SELECT dispatch_id || ' ' || counter_id || ' ' || coalesce(value, 'NULL') || ' ' || kernel_name
        FROM counters_collection ORDER BY dispatch_id, counter_id";
    assert_eq!(
        texts(&connection, values),
        [
            "1 1 NULL kernel 1234 (no symbol)",
            "1 2 NULL kernel 1234 (no symbol)",
            "2 1 1.5 k(float*)",
            "2 2 1.5 k(float*)",
            "77 1 Inf kernel 1234 (no symbol)",
            "77 2 Inf kernel 1234 (no symbol)"
        ]
    );
    assert_eq!(texts(&connection, "PRAGMA integrity_check"), ["ok"]);
    let dangling = "SELECT \"table\" FROM pragma_foreign_key_check";
    assert!(texts(&connection, dangling).is_empty());
    drop(connection);
    let database = Database::open(&path).expect("a database");
    let (read, _) = database
        .session(
            &database.recordings()[0],
            LoadOptions {
                args: false,
                ..LoadOptions::default()
            },
        )
        .expect("a session");
    let names: Vec<(u64, &str)> = read
        .counters
        .iter()
        .map(|counter| (counter.id.0, &*counter.name))
        .collect();
    assert_eq!(names, [(0, "first"), (u64::MAX, ODD)]);
    assert_eq!((read.dispatches.len(), read.counted.len()), (4, 3));

    let json = write_one(Format::Json, &read, None, &options, &target)
        .expect("written")
        .expect("a file");
    let json = std::fs::read(json).expect("a file");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let process = &json["rocprofiler-sdk-tool"][0];
    assert_eq!(process["counters"][1]["name"], ODD);
    let records = &process["callback_records"]["counter_collection"][0]["records"];
    assert!(records[0]["value"].is_null());
    write_one(Format::Pftrace, &session, None, &options, &target)
        .expect("written")
        .expect("a file");
    assert!(
        lacks_library(Format::Parquet)
            || !write(Format::Parquet, &session, None, &options, &target)
                .expect("written")
                .is_empty()
    );
}

#[test]
fn database_keeps_odd_texts_and_leaves_out_secrets() {
    let (_directory, connection) = database(&Options::default());
    assert_eq!(
        texts(
            &connection,
            "SELECT json_extract(extdata, '$.message') FROM samples"
        ),
        [ODD]
    );
    assert_eq!(
        texts(&connection, "SELECT command FROM processes"),
        [format!("./app {ODD}")]
    );
    assert_eq!(
        texts(
            &connection,
            "SELECT environment ->> 'HIP_VISIBLE_DEVICES' FROM rocpd_info_process"
        ),
        [ODD]
    );
    let environment = texts(&connection, "SELECT environment FROM rocpd_info_process").remove(0);
    assert!(!environment.contains("secret"), "{environment}");
    assert_eq!(
        texts(&connection, "SELECT name FROM threads WHERE tid = 42"),
        ["main\nthread"]
    );
    let region = "SELECT region || '|' || corr_id FROM kernels ORDER BY dispatch_id, kernel_id";
    assert_eq!(
        texts(&connection, region),
        ["|0", "|0", "region \"one\"|77"]
    );
    assert_eq!(
        texts(&connection, "SELECT string FROM rocpd_string WHERE id = 1"),
        [""]
    );
}

#[test]
fn database_has_messages_of_marks_as_arguments_on_request() {
    let (_directory, connection) = database(&Options::default());
    let arguments = "SELECT arg_position || ' ' || arg_type || ' ' || arg_name || ' ' || arg_value FROM events_args";
    assert_eq!(texts(&connection, arguments), ["0 void* ptr 0"]);

    let mut options = Options::default();
    options.collector.annotate_args = true;
    let (_directory, connection) = database(&options);
    let marker =
        "SELECT name || ' ' || value FROM rocpd_arg WHERE type = 'char const*' ORDER BY id";
    assert_eq!(
        texts(&connection, marker),
        [format!("message {ODD}"), "message ".to_owned()]
    );
}

#[test]
fn failed_write_names_the_file_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    // A directory has the name that the file is to get.
    std::fs::create_dir_all(target.file("results.db").join("full")).expect("a directory");
    let error = write_one(
        Format::Rocpd,
        &session(),
        None,
        &Options::default(),
        &target,
    )
    .expect_err("refused");
    assert!(
        matches!(&error, WriteError::Io { path, .. } if *path == target.file("results.db")),
        "{error}"
    );
    let names: Vec<_> = std::fs::read_dir(&target.directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["p_results.db"]);

    let blocked = Target {
        directory: directory.path().join("file"),
        prefix: "p".to_owned(),
    };
    std::fs::write(&blocked.directory, "").expect("a file");
    let error =
        write(Format::Csv, &session(), None, &Options::default(), &blocked).expect_err("refused");
    assert!(error.to_string().contains("hsa_api_trace.csv"), "{error}");
}
