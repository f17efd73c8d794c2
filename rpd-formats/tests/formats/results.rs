//! `results.json` and `results.pftrace`, read by others: Python's JSON, and Perfetto's published descriptors.

mod odd_session;

use crate::support::write as written;

use crate::support;

use crate::support::python as script;

use std::path::{Path, PathBuf};

use odd_session::{arguments, call, dispatch, odd_session};
use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{ProcessId, StreamId};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{ExtendedStrings, Session};
use rpd_core::spool::format::call_flag;
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

/// Checks both files of a session against each other. Returns the findings of the check of the trace.
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
fn json_of_a_trace_equals_that_of_the_original() {
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
fn perfetto_trace_has_the_records_of_the_json() {
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
            "STREAM [1]",
            "STREAM [2]",
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
    assert!(copied.iter().any(|point| point[1] == 256 << 10));
    assert_eq!(copied[0][0], 5_761_157_136_882_u64);
}

#[test]
fn json_of_odd_texts_is_valid() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = odd_session();
    let mut options = Options::default();
    options.kernel_names.rename = true;
    let process = parsed(&write_json(&session, &options, directory.path()));
    let strings = &process["strings"];
    assert_eq!(strings["marker_api"][2]["value"], ODD);
    assert_eq!(strings["correlation_id"]["external"][0]["value"], ODD);
    assert_eq!(process["metadata"]["command"][1], ODD);
    // Ids are positions: 0, which is none, and 1 have no symbol.
    let symbols = &process["kernel_symbols"];
    assert_eq!(symbols[0]["formatted_kernel_name"], "0");
    assert_eq!(symbols[1]["formatted_kernel_name"], "kernel 1 (no symbol)");
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
fn perfetto_slices_never_cross_and_tracks_follow_the_grouping() {
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
    assert_eq!(names.iter().filter(|name| *name == "STREAM [3]").count(), 3);
    let scratch = &found["counters"]["SCRATCH MEMORY on UNK [77] (UNK)"];
    let points: Vec<u64> = scratch
        .as_array()
        .expect("points")
        .iter()
        .map(|point| point[1].as_u64().expect("a value"))
        .collect();
    assert_eq!(points, [0, 8192, 8192, 8192, 8192, 0, 0, 0]);
    let allocated = &found["counters"]["ALLOCATE BYTES on UNK [77] (UNK)"];
    let most = (4 + (1_u64 << 30)) << 10;
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
fn perfetto_trace_shows_work_without_the_hip_runtime_by_queue() {
    let mut session = odd_session();
    session.calls = Default::default();
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
fn json_calls_find_their_stream_by_its_address() {
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(42);
    let with_stream =
        |session: &mut Session, name: &str, offset: usize, size: usize, at: u64, address: u64| {
            call(session, Kind::HipRuntime, name, "", (at, at + 5));
            let mut raw = vec![0; size];
            raw[offset..offset + 8].copy_from_slice(&address.to_le_bytes());
            arguments(session, call_flag::ARGUMENTS, &raw);
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
fn json_summary_has_the_figures_of_the_original() {
    let session = golden_session();
    let mut names = ExtendedStrings::new(&session.strings);
    let mut row = |name: &str, calls, total, average, min, max, std_dev| StatRow {
        name: names.intern(name),
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
    let mut from = |name: &str, value: &Value| {
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
    let overall = vec![from("MEMORY_COPY", &expected["stats"])];
    let stats = SessionStats {
        names: names.into(),
        domains: vec![(
            Domain::MemoryCopy,
            StatTable {
                title: String::new(),
                rows,
            },
        )],
        overall,
        left_out: 0,
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
fn json_and_perfetto_of_an_empty_session_are_not_written() {
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
