//! `results.json` and `results.pftrace`, read by others: Python's JSON, and Perfetto's published descriptors.

use crate::support::write as written;

use crate::support;

use crate::support::python as script;

use std::path::{Path, PathBuf};

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{
    AgentHandle, CodeObjectId, CorrelationId, DispatchId, KernelId, Nanoseconds, ProcessId,
    QueueId, StreamId, ThreadId,
};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{ArgsRef, KernelSymbol, Region, ResourceKind, ResourceName, Session};
use rpd_core::spool::format::api_flag;
use rpd_core::stats::{SessionStats, StatRow, StatTable};
use rusqlite::{Connection, OpenFlags};
use script::python;
use serde_json::Value;
use written::write_one;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");
const ODD: &str = "quote\" back\\slash \n\u{1}\u{7f} π \u{fffd} \u{2028}";

fn golden_session() -> Session {
    // Immutable: the reader must not try to make side files beside it.
    let path = format!("file:{TESTDATA}/trace_results.db?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    support::session(&Connection::open_with_flags(path, flags).expect("the golden database"))
}

fn target(directory: &Path) -> Target {
    Target {
        directory: directory.to_owned(),
        prefix: "trace".to_owned(),
    }
}

fn write_json(session: &Session, options: &Options, directory: &Path) -> PathBuf {
    write_one(Format::Json, session, None, options, &target(directory))
        .expect("written")
        .expect("a file")
}

fn write_trace(session: &Session, options: &Options, directory: &Path) -> PathBuf {
    write_one(Format::Pftrace, session, None, options, &target(directory))
        .expect("written")
        .expect("a file")
}

/// Both files of a session, held against each other; what the check of the trace found.
fn checked(session: &Session, options: &Options) -> Option<Value> {
    let directory = tempfile::tempdir().expect("a directory");
    let json = write_json(session, options, directory.path());
    let trace = write_trace(session, options, directory.path());
    let files = std::fs::read_dir(directory.path()).expect("a directory");
    assert_eq!(files.count(), 2);
    let found = python(
        "perfetto, google.protobuf",
        "perfetto_check.py",
        &[&trace, &json],
    )?;
    Some(serde_json::from_str(&found).expect("JSON"))
}

fn parsed(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("UTF-8");
    let root: Value = serde_json::from_str(&text).expect("JSON");
    root["rocprofiler-sdk-tool"][0].clone()
}

#[test]
fn json_is_that_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = write_json(&golden_session(), &Options::default(), directory.path());
    assert_eq!(path, directory.path().join("trace_results.json"));
    let golden = PathBuf::from(TESTDATA).join("trace_results.json");
    if let Some(found) = python("json", "json_check.py", &[&path, &golden]) {
        assert_eq!(found.trim(), "ok 1472");
    }
    let process = parsed(&path);
    assert_eq!(process["metadata"]["pid"], 4333);
    let arguments = &process["buffer_records"]["hip_api"][0]["args"][0];
    assert_eq!(arguments["type"], "void const*");
}

#[test]
fn a_trace_has_the_records_of_the_json() {
    let Some(found) = checked(&golden_session(), &Options::default()) else {
        return;
    };
    let categories = &found["categories"];
    assert_eq!(categories["hsa_api"], 1292);
    assert_eq!(categories["kernel_dispatch"], 16);
    let texts = |key: &str| -> Vec<String> {
        let list = found[key].as_array().expect("a list");
        list.iter()
            .map(|text| text.as_str().expect("a text").to_owned())
            .collect()
    };
    assert_eq!(
        texts("tracks"),
        [
            "./vector-ops",
            "vector-ops",
            "THREAD 1 (4345)",
            "THREAD 2 (4346)",
            "STREAM [\" 1 \"] ",
            "STREAM [\" 2 \"] ",
            "COPY BYTES to Agent [1] (GPU)",
            "COPY BYTES to Agent [0] (CPU)",
            "ALLOCATE BYTES on Agent [0] (CPU)",
            "ALLOCATE BYTES on Agent [1] (GPU)",
        ]
    );
    let names: Vec<&String> = found["annotations"]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    for name in [
        "begin_ns",
        "end_ns",
        "delta_ns",
        "tid",
        "kind",
        "operation",
        "corr_id",
        "ancestor_id",
        "stream_ID",
        "data",
    ] {
        assert!(names.contains(&&name.to_owned()), "{name}: {names:?}");
    }
    // Four copies of 256 KiB from each of the threads; two of them overlap.
    let copied = found["counters"]["COPY BYTES to Agent [1] (GPU)"]
        .as_array()
        .expect("points");
    assert!(copied.iter().any(|point| point[1] == 256));
    assert_eq!(copied[0][0], 5_761_157_136_882_u64);
}

fn call(session: &mut Session, kind: Kind, name: &str, message: &str, (start, end): (u64, u64)) {
    let operation = session.add_operation(kind, name);
    let message = session.strings.intern(message);
    let api = &mut session.api;
    let correlation = api.start.len() as u64 + 1;
    api.operation.push(operation);
    api.message.push(message);
    api.start.push(Nanoseconds(start));
    api.end.push(Nanoseconds(end));
    api.thread.push(ThreadId(42));
    api.correlation.push(CorrelationId(correlation));
    api.ancestor.push(CorrelationId(0));
    api.args.push(ArgsRef::default());
    api.retval.push(u64::MAX);
}

fn arguments(session: &mut Session, flags: u32, bytes: &[u8]) {
    let api = &mut session.api;
    let offset = api.arena.len() as u64;
    api.arena.extend(bytes);
    *api.args.last_mut().expect("a call") = ArgsRef {
        offset,
        len: bytes.len() as u32,
        flags,
    };
}

fn dispatch(session: &mut Session, (start, end): (u64, u64), correlation: u64, region: u32) {
    let table = &mut session.dispatches;
    table.start.push(Nanoseconds(start));
    table.end.push(Nanoseconds(end));
    table.thread.push(ThreadId(43));
    table.correlation.push(CorrelationId(correlation));
    table.agent.push(AgentHandle(77));
    table.queue.push(QueueId(9));
    table.stream.push(StreamId(3));
    table.region.push(region);
    table.kernel.push(KernelId(start % 2 + 1));
    table.dispatch.push(DispatchId(start));
    table.private_size.push(0);
    table.group_size.push(u32::MAX);
    table.workgroup.push([u32::MAX; 3]);
    table.grid.push([1, 2, 3]);
}

fn copy(session: &mut Session, (start, end): (u64, u64)) {
    let operation = session.add_operation(Kind::MemoryCopy, "MEMORY_COPY_HOST_TO_DEVICE");
    let table = &mut session.copies;
    table.operation.push(operation);
    table.start.push(Nanoseconds(start));
    table.end.push(Nanoseconds(end));
    table.thread.push(ThreadId(43));
    table.correlation.push(CorrelationId(0));
    table.dst_agent.push(AgentHandle(77));
    table.src_agent.push(AgentHandle(78));
    table.bytes.push(1 << 20);
    table.dst_address.push(0);
    table.src_address.push(0);
    table.stream.push(StreamId(3));
    table.region.push(0);
}

fn allocation(session: &mut Session, operation: &str, at: u64, address: u64, bytes: u64) {
    let operation = session.add_operation(Kind::MemoryAllocation, operation);
    let table = &mut session.allocations;
    table.operation.push(operation);
    table.start.push(Nanoseconds(at));
    table.end.push(Nanoseconds(at + 10));
    table.thread.push(ThreadId(42));
    table.correlation.push(CorrelationId(0));
    table.ancestor.push(CorrelationId(0));
    table
        .agent
        .push(AgentHandle(if bytes == 0 { 0 } else { 77 }));
    table.address.push(address);
    table.bytes.push(bytes);
    table.stream.push(StreamId(0));
}

/// Crossing ranges, overlapping work, odd texts, unknown agents, scratch, no provider's names.
fn odd_session() -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(42);
    session.process.init_time = Nanoseconds(1_000_000);
    session.process.real_time = 1_700_000_000_000_000_000;
    session.process.command = vec!["/bin/odd one".to_owned(), ODD.to_owned()];
    session.kernel_symbols.push(KernelSymbol {
        id: KernelId(2),
        code_object: CodeObjectId(7),
        name: ODD.to_owned(),
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
    });
    session.resource_names.push(ResourceName {
        kind: ResourceKind::Thread,
        resource: 43,
        name: "worker".to_owned(),
    });
    let range = Kind::MarkerCoreRange;
    call(
        &mut session,
        range,
        "roctxProcessRangeA",
        "outer",
        (1_000_100, 1_000_300),
    );
    call(
        &mut session,
        range,
        "roctxProcessRangeA",
        "crossing",
        (1_000_200, 1_000_400),
    );
    call(
        &mut session,
        range,
        "roctxMarkA",
        ODD,
        (1_000_300, 1_000_300),
    );
    call(
        &mut session,
        Kind::HipRuntime,
        "hipModuleLaunchKernel",
        "",
        (1_000_300, 1_000_350),
    );
    call(
        &mut session,
        Kind::HipRuntime,
        "hipFromTheFuture",
        "",
        (1_000_350, 1_000_400),
    );
    let mut texts = Vec::new();
    // Longer than lengths of two bytes can say, and named as an annotation of ours.
    for text in ["i", "kind", &"x".repeat(40_000), "PKc", ODD, ODD] {
        texts.extend((text.len() as u32).to_le_bytes());
        texts.extend(text.as_bytes());
    }
    arguments(&mut session, api_flag::ARGUMENT_TEXTS, &texts);
    call(
        &mut session,
        Kind::HipRuntime,
        "hipFree",
        "",
        (1_000_400, 1_000_400),
    );
    arguments(&mut session, api_flag::ARGUMENTS, &0x1000_u64.to_le_bytes());
    let message = session.strings.intern(ODD);
    session.regions.push(Region {
        message,
        correlation: CorrelationId(3),
    });
    dispatch(&mut session, (1_000_500, 1_000_600), 4, 0);
    dispatch(&mut session, (1_000_501, 1_000_550), 5, 1);
    copy(&mut session, (1_000_540, 1_000_700));
    copy(&mut session, (1_000_600, 1_000_650));
    allocation(
        &mut session,
        "MEMORY_ALLOCATION_ALLOCATE",
        1_000_100,
        1,
        4096,
    );
    allocation(
        &mut session,
        "MEMORY_ALLOCATION_VMEM_ALLOCATE",
        1_000_200,
        2,
        1 << 40,
    );
    allocation(&mut session, "MEMORY_ALLOCATION_FREE", 1_000_300, 3, 0);
    allocation(&mut session, "MEMORY_ALLOCATION_FREE", 1_000_400, 1, 0);
    for (at, operation, bytes) in [
        (1_000_500, "SCRATCH_MEMORY_ALLOC", 8192),
        (1_000_600, "SCRATCH_MEMORY_ASYNC_RECLAIM", 0),
        (1_000_700, "SCRATCH_MEMORY_FREE", 0),
    ] {
        let operation = session.add_operation(Kind::ScratchMemory, operation);
        let table = &mut session.scratch;
        table.operation.push(operation);
        table.start.push(Nanoseconds(at));
        table.end.push(Nanoseconds(at + 10));
        table.thread.push(ThreadId(42));
        table.correlation.push(CorrelationId(0));
        table.ancestor.push(CorrelationId(0));
        table.agent.push(AgentHandle(77));
        table.queue.push(QueueId(9));
        table.bytes.push(bytes);
        table.flags.push(2);
    }
    session
}

#[test]
fn odd_texts_are_valid_json() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = odd_session();
    let mut options = Options::default();
    options.kernel_names.rename = true;
    let process = parsed(&write_json(&session, &options, directory.path()));
    let strings = &process["strings"];
    assert_eq!(strings["marker_api"][2]["value"], ODD);
    assert_eq!(strings["correlation_id"]["external"][0]["value"], ODD);
    assert_eq!(process["metadata"]["command"][1], ODD);
    // Ids are positions: 0 and 1 are blank.
    assert_eq!(process["kernel_symbols"][1]["formatted_kernel_name"], "1");
    assert_eq!(process["kernel_symbols"][2]["kernel_name"], ODD);
    let records = &process["buffer_records"];
    let dispatch = &records["kernel_dispatch"][1];
    assert_eq!(dispatch["correlation_id"]["external"], 3);
    let future = &records["hip_api"][1];
    assert_eq!(future["args"][0]["value"], "x".repeat(40_000));
    assert_eq!(future["args"][1]["name"], ODD);
    assert_eq!(future["retval"]["uint64_t_retval"], u64::MAX);
    assert_eq!(
        records["memory_allocation"][1]["address"],
        "0x0000000000000002"
    );
    let name = |record: &Value| {
        let at = |key: &str| record[key].as_u64().expect("a number") as usize;
        let kind = &strings["buffer_records"][at("kind")];
        (
            kind["kind"].clone(),
            kind["operations"][at("operation")].clone(),
        )
    };
    assert_eq!(
        name(future),
        ("HIP_RUNTIME_API_EXT".into(), "hipFromTheFuture".into())
    );
    assert_eq!(
        name(&records["scratch_memory"][1]),
        (
            "SCRATCH_MEMORY".into(),
            "SCRATCH_MEMORY_ASYNC_RECLAIM".into()
        )
    );
}

#[test]
fn slices_never_cross_and_tracks_follow_the_grouping() {
    let session = odd_session();
    let mut options = Options::default();
    let Some(found) = checked(&session, &options) else {
        return;
    };
    let of = |found: &Value, track: &str| -> Vec<(String, u64)> {
        let slices = found["slices"].as_array().expect("slices").clone();
        slices
            .iter()
            .filter(|slice| slice[0] == track)
            .map(|slice| {
                let name = slice[1].as_str().expect("a name").to_owned();
                (name, slice[4].as_u64().expect("a depth"))
            })
            .collect()
    };
    let tracks = |found: &Value| -> Vec<String> {
        let tracks = found["tracks"].as_array().expect("tracks").clone();
        tracks
            .iter()
            .map(|track| track.as_str().expect("a name").to_owned())
            .collect()
    };
    // Both lanes of the main thread.
    let names = tracks(&found);
    assert_eq!(names.iter().filter(|name| *name == "odd one").count(), 2);
    assert_eq!(
        found["threads"],
        serde_json::json!([[42, "odd one"], [43, "worker"]])
    );
    let main = of(&found, "odd one");
    assert_eq!(main.len(), 6);
    assert!(
        main.iter().all(|(_, depth)| *depth == 0 || *depth == 1),
        "{main:?}"
    );
    // Two dispatches and two copies at a time: never one within the other.
    assert_eq!(
        names
            .iter()
            .filter(|name| *name == "STREAM [\" 3 \"] ")
            .count(),
        3
    );
    let scratch = &found["counters"]["SCRATCH MEMORY on UNK [77] (UNK)"];
    let points: Vec<u64> = scratch
        .as_array()
        .expect("points")
        .iter()
        .map(|point| point[1].as_u64().expect("a value"))
        .collect();
    assert_eq!(points, [0, 8, 8, 8, 8, 0, 0, 0]);
    let allocated = &found["counters"]["ALLOCATE BYTES on UNK [77] (UNK)"];
    let most = 4 + (1_u64 << 30);
    assert!(
        allocated
            .as_array()
            .expect("points")
            .iter()
            .any(|point| point[1] == most)
    );

    options.group_by_queue = true;
    options.kernel_names.rename = true;
    let found = checked(&session, &options).expect("as before");
    let names = tracks(&found);
    let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
    assert_eq!(count("COMPUTE UNK [77] QUEUE [0] UNK"), 2);
    assert_eq!(count("COPY to AGENT [77] THREAD [1] (UNK)"), 2);
    assert!(of(&found, "COMPUTE UNK [77] QUEUE [0] UNK").contains(&(ODD.to_owned(), 0)));
}

#[test]
fn work_without_the_hip_runtime_is_shown_by_queue() {
    let mut session = odd_session();
    session.api = Default::default();
    session.dispatches.stream.fill(StreamId(0));
    session.copies.stream.fill(StreamId(0));
    let Some(found) = checked(&session, &Options::default()) else {
        return;
    };
    let tracks = found["tracks"].to_string();
    assert!(
        tracks.contains("COMPUTE UNK [77] QUEUE [0] UNK"),
        "{tracks}"
    );
    assert!(!tracks.contains("STREAM"), "{tracks}");
}

#[test]
fn calls_know_their_stream_by_its_address() {
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(42);
    let with_stream =
        |session: &mut Session, name: &str, offset: usize, size: usize, at: u64, address: u64| {
            call(session, Kind::HipRuntime, name, "", (at, at + 5));
            let mut raw = vec![0; size];
            raw[offset..offset + 8].copy_from_slice(&address.to_le_bytes());
            arguments(session, api_flag::ARGUMENTS, &raw);
        };
    // The address is used again after the first stream is gone.
    with_stream(&mut session, "hipStreamSynchronize", 0, 8, 10, 0xabc);
    with_stream(&mut session, "hipLaunchKernel", 48, 56, 20, 0xabc);
    with_stream(&mut session, "hipStreamDestroy", 0, 8, 30, 0xabc);
    with_stream(&mut session, "hipStreamSynchronize", 0, 8, 40, 0xabc);
    with_stream(&mut session, "hipLaunchKernel", 48, 56, 50, 0xabc);
    with_stream(&mut session, "hipStreamSynchronize", 0, 8, 60, 0xdef);
    for (at, correlation, stream) in [(25, 2, 1), (55, 5, 2)] {
        dispatch(&mut session, (at, at + 1), correlation, 0);
        *session.dispatches.stream.last_mut().expect("one") = StreamId(stream);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let process = parsed(&write_json(&session, &Options::default(), directory.path()));
    let calls = process["buffer_records"]["hip_api"]
        .as_array()
        .expect("calls")
        .clone();
    let streams: Vec<&Value> = calls
        .iter()
        .map(|call| &call["stream_id"]["handle"])
        .collect();
    assert_eq!(streams, [1, 1, 0, 2, 2, 0]);
    let options = Options {
        group_by_queue: true,
        ..Options::default()
    };
    let text = std::fs::read_to_string(write_json(&session, &options, directory.path()));
    assert!(!text.expect("text").contains("\"stream_id\":{\"handle\":2}"));
}

#[test]
fn the_summary_has_the_figures_of_the_original() {
    let session = golden_session();
    let row = |name: &str, calls, total, average, min, max, std_dev| StatRow {
        name: name.to_owned(),
        domain: Domain::MemoryCopy,
        calls,
        total,
        average,
        percentage: 100.0,
        min,
        max,
        std_dev,
    };
    let golden = parsed(&PathBuf::from(TESTDATA).join("trace_results.json"));
    let golden = golden["summary"].as_array().expect("a summary").clone();
    let expected = golden
        .iter()
        .find(|element| element["domain"] == "MEMORY_COPY")
        .expect("copies");
    let from = |name: &str, value: &Value| {
        let integer = |key: &str| value[key].as_u64().expect("an integer");
        let float = |key: &str| value[key].as_f64().expect("a number");
        row(
            name,
            integer("count"),
            integer("sum"),
            float("mean"),
            integer("min"),
            integer("max"),
            float("stddev"),
        )
    };
    let operations = expected["stats"]["operations"].as_array().expect("a list");
    let rows = operations
        .iter()
        .map(|element| from(element["key"].as_str().expect("a name"), &element["value"]))
        .rev()
        .collect();
    let stats = SessionStats {
        domains: vec![(
            Domain::MemoryCopy,
            StatTable {
                title: String::new(),
                rows,
            },
        )],
        overall: vec![from("MEMORY_COPY", &expected["stats"])],
    };
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    let path = write_one(
        Format::Json,
        &session,
        Some(&stats),
        &Options::default(),
        &target,
    );
    let ours = parsed(&path.expect("written").expect("a file"));
    let ours = &ours["summary"][0];
    assert_eq!(ours["domain"], "MEMORY_COPY");
    for key in ["count", "sum", "sqr", "min", "max", "mean", "stddev"] {
        assert_eq!(ours["stats"][key], expected["stats"][key], "{key}");
        assert_eq!(
            ours["stats"]["operations"][1]["value"][key], operations[1]["value"][key],
            "{key}"
        );
    }
    assert_eq!(ours["stats"]["operations"][0]["key"], operations[0]["key"]);
}

#[test]
fn nothing_is_written_for_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (empty, options) = (Session::default(), Options::default());
    let target = target(directory.path());
    assert_eq!(
        write_one(Format::Json, &empty, None, &options, &target).expect("nothing"),
        None
    );
    assert_eq!(
        write_one(Format::Pftrace, &empty, None, &options, &target).expect("nothing"),
        None
    );
    let options = Options {
        minimum_output_bytes: 1 << 40,
        ..options
    };
    let session = odd_session();
    assert_eq!(
        write_one(Format::Json, &session, None, &options, &target).expect("nothing"),
        None
    );
    assert_eq!(
        write_one(Format::Pftrace, &session, None, &options, &target).expect("nothing"),
        None
    );
    let target = Target {
        directory: "/proc/nowhere".into(),
        ..target
    };
    let error = write_one(
        Format::Pftrace,
        &session,
        None,
        &Options::default(),
        &target,
    )
    .expect_err("no such place");
    assert!(
        error.to_string().starts_with("cannot write /proc/nowhere/"),
        "{error}"
    );
}
