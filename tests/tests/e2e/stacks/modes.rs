//! Call stacks: what is recorded of real programs, and where it ends up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use rpd_tests::outputs::Database;
use rpd_tests::run::{self, Outcome, Rpd, skipped, tool, tool_for};
use rpd_tests::workloads;
use serde_json::Value;

/// Functions of a program: address, end and name, as `nm` lists them.
struct Functions(Vec<(u64, u64, String)>);

impl Functions {
    fn from_program(program: &Path) -> Functions {
        let nm = tool("nm").expect("nm comes with the C compiler");
        let output = Command::new(nm)
            .args(["-S", "--defined-only"])
            .arg(program)
            .output()
            .expect("nm starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let functions = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let &[start, size, kind, name] = words.as_slice() else {
                return None;
            };
            let (start, size) = (hex(start)?, hex(size)?);
            matches!(kind, "t" | "T").then(|| (start, start + size, name.to_owned()))
        });
        let functions: Vec<_> = functions.collect();
        assert!(!functions.is_empty(), "{}", program.display());
        Functions(functions)
    }

    fn at(&self, address: u64) -> &str {
        let found = self
            .0
            .iter()
            .find(|(start, end, _)| (*start..*end).contains(&address));
        found.map_or("?", |(.., name)| name)
    }
}

/// A frame as it stands in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    kind: String,
    /// File name of the module, or the Python function.
    owner: String,
    offset: u64,
}

/// The stacks of a database: function and frames (innermost first) of every call that has one, in the order of calls.
fn stacks(database: &Database) -> Vec<(String, Vec<Frame>)> {
    let mut frames: BTreeMap<String, (String, Frame)> = BTreeMap::new();
    for row in database.rows(
        "SELECT s.id, s.parent_id, l.kind, coalesce(p.string, n.string, ''), coalesce(l.rel_pc, l.lasti, 0)
            FROM rpd_stack s JOIN rpd_location l ON l.id = s.location_id
            LEFT JOIN rpd_module m ON m.id = l.module_id LEFT JOIN rocpd_string p ON p.id = m.path_id
            LEFT JOIN rpd_pycode c ON c.id = l.pycode_id LEFT JOIN rocpd_string n ON n.id = c.name_id",
    ) {
        let [id, parent, kind, owner, offset] = row.try_into().expect("five columns");
        let owner = owner.rsplit('/').next().unwrap_or_default().to_owned();
        let offset = offset.parse().expect("an offset");
        frames.insert(id, (parent, Frame { kind, owner, offset }));
    }
    let mut stacks = Vec::new();
    for row in database.rows(
        "SELECT n.string, a.stack_id FROM rpd_api_stack a
            JOIN (SELECT event_id, name_id FROM rocpd_region UNION ALL
                SELECT m.event_id, e.category_id FROM rocpd_sample m JOIN rocpd_event e ON e.id = m.event_id UNION ALL
                SELECT m.event_id, e.category_id FROM rocpd_memory_allocate m JOIN rocpd_event e ON e.id = m.event_id) r
                ON r.event_id = a.api_id
            JOIN rocpd_string n ON n.id = r.name_id ORDER BY a.api_id",
    ) {
        let [function, mut node] = row.try_into().expect("two columns");
        let mut stack = Vec::new();
        while let Some((parent, frame)) = frames.get(&node) {
            stack.push(frame.clone());
            node = parent.clone();
        }
        assert_eq!(node, "NULL", "the stack of {function} ends in the middle");
        stacks.push((function, stack));
    }
    stacks
}

/// The functions of `program` in a stack, innermost first.
fn own<'a>(stack: &[Frame], program: &str, functions: &'a Functions) -> Vec<&'a str> {
    let frames = stack.iter().filter(|frame| frame.owner == program);
    frames.map(|frame| functions.at(frame.offset)).collect()
}

/// The functions of the workload that each call of `api` was made in.
fn callers(database: &Database, api: &str) -> Vec<String> {
    let functions = Functions::from_program(&workloads::path("stacks"));
    let found = stacks(database);
    let of_api = found.iter().filter(|(function, _)| function == api);
    of_api
        .map(|(_, stack)| own(stack, "stacks", &functions).join(" "))
        .collect()
}

const CALL: &str = "hipGetLastError";

fn check(database: &Database) {
    assert_eq!(
        database.number("SELECT count(*) FROM pragma_foreign_key_check"),
        0
    );
    assert_eq!(database.rows("PRAGMA integrity_check"), [["ok"]]);
}

fn has_stacks(database: &Database) -> bool {
    let tables = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'rpd\\_stack%' ESCAPE '\\'";
    database.number(tables) > 0 && database.number("SELECT count(*) FROM rpd_stack") > 0
}

#[test]
fn stacks_have_the_functions_of_the_program() {
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native"])
        .workload("stacks", ["tree", "12", "3", "4"])
        .success();
    let database = outcome.database();
    check(&database);
    // The ways differ by the last two turns.
    let ways: Vec<String> = callers(&database, CALL);
    assert_eq!(ways.len(), 12);
    let expected = [
        "innermost left left left left make_tree main",
        "innermost left right left left make_tree main",
        "innermost right left left left make_tree main",
        "innermost right right left left make_tree main",
    ];
    for (call, way) in ways.iter().enumerate() {
        assert!(
            way.starts_with(expected[call % 4]),
            "call {call}: {way}, not {}",
            expected[call % 4]
        );
    }
    // One node for each distinct place, one row for each call.
    assert_eq!(
        database.number(&format!(
            "SELECT count(DISTINCT stack_id) FROM rpd_api_stack a JOIN rocpd_region r ON r.event_id = a.api_id
                JOIN rocpd_string n ON n.id = r.name_id WHERE n.string = '{CALL}'"
        )),
        4
    );
    let calls = database.number("SELECT count(*) FROM rocpd_region");
    assert_eq!(
        database.number("SELECT count(*) FROM rpd_api_stack"),
        calls,
        "every HIP call has a stack"
    );
    // Innermost is the collector, outermost where the loader starts programs.
    for (function, stack) in stacks(&database) {
        assert!(
            stack[0].owner.starts_with("librpd_collect"),
            "{function}: {stack:?}"
        );
        assert!(
            stack
                .iter()
                .any(|frame| frame.owner.starts_with("libamdhip64"))
        );
    }
    assert!(
        database.number("SELECT count(*) FROM rpd_module WHERE length(build_id) >= 16") > 0,
        "build ids are recorded"
    );
}

#[test]
fn stacks_are_stored_only_on_request() {
    let outcome = Rpd::new(["--hip-trace", "-f", "rocpd", "json"])
        .workload("stacks", ["tree", "12", "3", "4"])
        .success();
    assert!(!has_stacks(&outcome.database()));
    let json = std::fs::read_to_string(outcome.file("_results.json")).expect("a document");
    assert!(!json.contains("stack_id") && !json.contains("call_stacks"));
}

/// A run of the workload with one call of each kind, with stacks of what `globs` choose.
fn with_globs(globs: &str) -> Outcome {
    Rpd::new(["--sys-trace", "--stacks", "native", "--stacks-apis", globs])
        .workload("stacks", ["kinds"])
        .success()
}

/// The program's innermost function of each stack, by call.
fn innermost_by_call(outcome: &Outcome) -> BTreeMap<String, Vec<String>> {
    let functions = Functions::from_program(&workloads::path("stacks"));
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (function, stack) in stacks(&outcome.database()) {
        let own = own(&stack, "stacks", &functions);
        let first = own.first().copied().unwrap_or_default().to_owned();
        found.entry(function).or_default().push(first);
    }
    found
}

/// Checks stacks-52.
#[test]
fn stack_globs_choose_calls() {
    let outcome = with_globs("*Malloc,hipFree");
    let found = innermost_by_call(&outcome);
    assert_eq!(found["hipMalloc"], ["allocate"]);
    assert_eq!(found["hipFree"], ["release"]);
    assert_eq!(found.len(), 2, "{found:?}");
}

/// Checks stacks-51.
#[test]
fn stack_globs_choose_markers() {
    let outcome = with_globs("roctx*");
    let found = innermost_by_call(&outcome);
    // A mark has the name of its kind, ranges those of their operations.
    assert_eq!(found["MARKER_CORE_RANGE_API"], ["mark"]);
    assert_eq!(found["roctxThreadRangeA"], ["range"]);
    assert_eq!(found["roctxProcessRangeA"], ["process_range"]);
}

#[test]
fn stack_globs_choose_allocations() {
    let outcome = with_globs("MEMORY_ALLOCATION_*,hsa_amd_memory_pool_*");
    let found = innermost_by_call(&outcome);
    assert!(
        found["MEMORY_ALLOCATION"].contains(&"allocate".to_owned()),
        "{found:?}"
    );
    assert!(
        found
            .get("hsa_amd_memory_pool_allocate")
            .is_some_and(|calls| calls.contains(&"allocate".to_owned())),
        "{found:?}"
    );
    assert!(!found.contains_key("hipMalloc"));
}

#[test]
fn stack_globs_exclude_calls_and_report_names_that_match_nothing() {
    let outcome = with_globs("hip*,!hipMalloc,hipMaloc*");
    assert!(!innermost_by_call(&outcome).contains_key("hipMalloc"));
    assert!(
        outcome
            .stderr
            .contains("--stacks-apis hipMaloc*: this provider has no operation of such a name"),
        "{}",
        outcome.stderr
    );
}

/// Checks stacks-53.
#[test]
fn stacks_are_taken_of_one_call_in_n_or_of_long_calls() {
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native", "--stacks-every", "10"])
        .workload("stacks", ["tree", "95", "3", "1"])
        .success();
    let database = outcome.database();
    assert_eq!(callers(&database, CALL).len(), 10);
    assert_eq!(
        database.number("SELECT count(*) FROM rpd_api_stack WHERE flags & 65536 = 0"),
        0
    );
    let with = |least: &str| {
        let options = ["--hip-trace", "--stacks", "native", "--stacks-min-duration"];
        Rpd::new(options)
            .option([least])
            .workload("stacks", ["tree", "7", "3", "1"])
            .success()
            .database()
    };
    assert_eq!(callers(&with("1ns"), CALL).len(), 7);
    assert!(callers(&with("1ns"), CALL)[0].starts_with("innermost left"));
    assert!(!has_stacks(&with("1000s")));
}

#[test]
fn deep_stacks_leave_out_frames_in_the_middle() {
    let depth = |options: &[&str]| {
        let outcome = Rpd::new(["--hip-trace", "--stacks", "native"])
            .option(options)
            .workload("stacks", ["tree", "2", "2000", "1"])
            .success();
        let database = outcome.database();
        let found = stacks(&database);
        let (_, stack) = found
            .iter()
            .find(|(function, _)| function == CALL)
            .expect("the call");
        let gaps = stack.iter().filter(|frame| frame.kind == "gap-marker");
        let flagged = database.number("SELECT count(*) FROM rpd_api_stack WHERE flags & 4 <> 0");
        (stack.len(), gaps.count(), flagged)
    };
    // The frames of the profiler and of the runtime below the call are recorded, and are not counted.
    const HIDDEN: usize = 10;
    for (options, shown) in [(&[][..], 512), (&["--stacks-depth", "40"], 40)] {
        let (frames, gaps, flagged) = depth(options);
        assert!(
            (shown + 1..=shown + 1 + HIDDEN).contains(&frames),
            "{frames}"
        );
        assert_eq!((gaps, flagged), (1, 2));
    }
    let (frames, gaps, flagged) = depth(&["--stacks-depth", "0"]);
    assert!(frames > 2000, "{frames}");
    assert_eq!((gaps, flagged), (0, 0));
}

/// The databases of a run, each with the functions that its calls were made in.
fn databases(outcome: &Outcome) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for path in outcome.files_ending(".db") {
        let database = Database::open(&path);
        check(&database);
        found.push(callers(&database, CALL));
    }
    found.sort();
    found
}

/// Checks stacks-42.
#[test]
fn a_forked_child_has_stacks_of_its_own() {
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native"])
        .workload("stacks", ["fork"])
        .success();
    let found = databases(&outcome);
    let [child, parent] = found.as_slice() else {
        panic!("two processes: {found:?}");
    };
    assert_eq!(child.len(), 1);
    assert!(child[0].starts_with("innermost in_child main"), "{child:?}");
    assert_eq!(parent.len(), 2);
    for call in parent {
        assert!(call.starts_with("innermost in_parent main"), "{parent:?}");
    }
}

/// Checks stacks-44.
#[test]
fn a_program_executed_in_place_has_stacks_of_its_own() {
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native"])
        .workload("stacks", ["replace"])
        .success();
    let found = databases(&outcome);
    let [before, after] = found.as_slice() else {
        panic!("two images: {found:?}");
    };
    assert_eq!(before.len() + after.len(), 4, "{found:?}");
    assert!(
        found
            .concat()
            .iter()
            .filter(|call| call.starts_with("innermost main"))
            .count()
            == 1,
        "{found:?}"
    );
    assert!(
        found
            .concat()
            .iter()
            .filter(|call| call.contains("make_tree main"))
            .count()
            == 3,
        "{found:?}"
    );
}

/// Checks stacks-98.
#[test]
fn a_killed_program_loses_no_stack() {
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native"])
        .workload("stacks", ["kill", "5000", "20", "64"])
        .expect_code(128 + libc::SIGKILL);
    let database = outcome.database();
    check(&database);
    let calls = callers(&database, CALL);
    assert_eq!(calls.len(), 5000);
    for call in calls {
        assert!(call.starts_with("innermost "), "{call}");
        assert!(call.contains(" make_tree main"), "{call}");
    }
}

#[test]
fn stacks_add_little_to_the_size_of_the_database() {
    let size = |options: &[&str]| {
        let outcome = Rpd::new(["--hip-trace"])
            .option(options)
            .workload("stacks", ["tree", "40000", "60", "300"])
            .success();
        let size = std::fs::metadata(outcome.file(".db")).expect("a database");
        (size.len(), outcome)
    };
    let (without, _) = size(&[]);
    let (with, outcome) = size(&["--stacks", "native", "--stacks-symbolize", "off"]);
    let database = outcome.database();
    assert_eq!(
        database.number("SELECT count(DISTINCT stack_id) FROM rpd_api_stack") / 100,
        3
    );
    // 60 MB for 2 M calls are 30 bytes each, tree included.
    let each = (with - without) as f64 / 40_000.0;
    assert!(each <= 30.0, "{each:.1} bytes for each call");
}

/// A recording of stacks of the workload in this mode.
fn with_stacks(mode: &str) -> Outcome {
    Rpd::new(["--hip-trace", "--stacks", "native", "-f", "rocpd", "json"])
        .workload("stacks", [mode, "6", "4", "2"])
        .success()
}

/// Runs `rpd` on these files.
fn with_files(arguments: &[&str], paths: &[PathBuf]) -> Outcome {
    let mut command = Rpd::plain(arguments);
    for path in paths {
        command = command.option([path]);
    }
    command.run().success()
}

/// Checks stacks-45. A recording without stacks is merged as well.
#[test]
fn merge_keeps_stacks_of_all_recordings() {
    let (one, other) = (with_stacks("tree"), with_stacks("kinds"));
    let plain = Rpd::new(["--hip-trace"])
        .workload("stacks", ["tree", "3", "2", "1"])
        .success();
    let directory = tempfile::tempdir().expect("a directory");
    let inputs = [one.file(".db"), other.file(".db"), plain.file(".db")];
    let merged = directory.path().join("merged.db");
    let output = merged.to_str().expect("text");
    with_files(&["merge", "-o", output], &inputs);
    let whole = Database::open(&merged);
    let rows = |database: &Database| database.number("SELECT count(*) FROM rpd_api_stack");
    let sum = rows(&one.database()) + rows(&other.database());
    assert_eq!(rows(&whole), sum);
    assert_eq!(
        whole.number(
            "SELECT count(*) FROM rpd_api_stack a JOIN rpd_stack s ON s.id = a.stack_id AND s.guid = a.guid
                JOIN rpd_location l ON l.id = s.location_id AND l.guid = s.guid"
        ),
        sum
    );
}

#[test]
fn query_of_two_databases_finds_the_stacks_of_both() {
    let (one, other) = (with_stacks("tree"), with_stacks("kinds"));
    let inputs = [one.file(".db"), other.file(".db")];
    let rows = |database: &Database| database.number("SELECT count(*) FROM rpd_api_stack");
    let sum = rows(&one.database()) + rows(&other.database());
    let count = [
        "query",
        "--query",
        "SELECT count(*) AS n FROM rpd_api_stack",
    ];
    let asked = with_files(&count, &inputs);
    assert!(asked.stdout.contains(&sum.to_string()), "{}", asked.stdout);
}

/// Checks stacks-45: what is made of a database is what was made of the recording.
#[test]
fn convert_keeps_stacks() {
    let one = with_stacks("tree");
    let directory = tempfile::tempdir().expect("a directory");
    let converted = directory.path().join("converted");
    let out = converted.to_str().expect("text");
    with_files(
        &["convert", "-f", "json", "rocpd", "-d", out, "-o", "again"],
        &[one.file(".db")],
    );
    let recorded = stacks_in_json(&one.file("_results.json"));
    assert!(recorded.len() >= 6, "{recorded:?}");
    assert_eq!(
        recorded,
        stacks_in_json(&converted.join("again_results.json"))
    );
    let again = Database::open(&converted.join("again_results.db"));
    check(&again);
    assert_eq!(stacks(&again), stacks(&one.database()));
}

/// The frames of each HIP call with a stack in a JSON file, in the file's order.
fn stacks_in_json(file: &Path) -> Vec<Vec<Value>> {
    let text = std::fs::read(file).expect("readable");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    let tool = &document["rocprofiler-sdk-tool"][0];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let stacks: BTreeMap<i64, Vec<Value>> = list(&tool["call_stacks"]["stacks"])
        .iter()
        .map(|stack| (stack["id"].as_i64().expect("an id"), list(&stack["frames"])))
        .collect();
    let calls = list(&tool["buffer_records"]["hip_api"]);
    let ids = calls.iter().filter_map(|call| call["stack_id"].as_i64());
    let frame = |index: &Value| {
        let index = index.as_u64().expect("an index") as usize;
        tool["call_stacks"]["frames"][index].clone()
    };
    ids.map(|id| stacks[&id].iter().map(frame).collect())
        .collect()
}

/// A script that holds the call stacks of slices against the schema that Perfetto publishes.
const PERFETTO: &str = r#"
import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
trace = pb.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
tables = {name: {} for name in ("event_names", "function_names", "source_paths", "mapping_paths", "build_ids", "mappings", "frames", "callstacks")}
for packet in trace.packet:
    for name, table in tables.items():
        for entry in getattr(packet.interned_data, name):
            assert entry.iid and table.setdefault(entry.iid, entry) == entry
    event = packet.track_event
    if event.type != pb.TrackEvent.TYPE_SLICE_BEGIN:
        continue
    name = tables["event_names"][event.name_iid].name
    words = []
    if event.HasField("callstack_iid"):
        for iid in tables["callstacks"][event.callstack_iid].frame_ids:
            frame = tables["frames"][iid]
            words.append(tables["function_names"][frame.function_name_id].str.decode())
            if frame.mapping_id:
                mapping = tables["mappings"][frame.mapping_id]
                assert all(part in tables["mapping_paths"] for part in mapping.path_string_ids)
    print(name + ":", " ".join(words))
"#;

/// Checks stacks-96.
#[test]
fn perfetto_slices_have_callstacks() {
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native", "-f", "pftrace"])
        .workload("stacks", ["tree", "3", "2", "1"])
        .success();
    let Some(python) = tool_for("callstacks in Perfetto traces", "python3") else {
        return;
    };
    let has = run::command(&python, ["-c", "import perfetto.protos"]);
    if has.code() != 0 {
        return skipped("callstacks in Perfetto traces", "no package `perfetto`");
    }
    let file = outcome.file(".pftrace");
    let listed = run::command(
        &python,
        ["-c".as_ref(), PERFETTO.as_ref(), file.as_os_str()],
    )
    .success();
    let calls: Vec<&str> = listed
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("hipGetLastError: "))
        .collect();
    assert_eq!(calls.len(), 3);
    for call in calls {
        // Outermost first; the call itself is last.
        assert!(
            call.ends_with("main make_tree left left left innermost hipGetLastError"),
            "{call}"
        );
    }
}

#[test]
fn the_html_report_shows_the_stack_of_a_call() {
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native", "-f", "html"])
        .workload("stacks", ["tree", "3", "2", "1"])
        .success();
    let page = std::fs::read_to_string(outcome.file(".html")).expect("a page");
    let data = page.split_once("<script type=\"application/json\" id=\"data\">");
    let data = data.and_then(|(_, data)| data.split_once("</script>"));
    let data: Value = serde_json::from_str(data.expect("data").0).expect("JSON");
    let text = |table: &str, index: &Value| {
        let index = index.as_u64().expect("an index") as usize;
        data[table][index].as_str().expect("a text").to_owned()
    };
    let mut calls = Vec::new();
    for track in data["tracks"].as_array().expect("tracks") {
        for (call, stack) in track["stacks"].as_array().into_iter().flatten().enumerate() {
            let name = text("names", &track["slices"][4 * call + 2]);
            let frames = data["stacks"][stack.to_string()].as_array();
            let functions = frames.expect("a stack").iter().map(|frame| {
                let frame = text("frames", frame);
                frame.split(" at ").next().unwrap_or_default().to_owned()
            });
            let functions = functions.collect::<Vec<_>>().join(" < ");
            calls.push(format!("{name}: {functions}"));
        }
    }
    calls.retain(|call| call.starts_with("hipGetLastError: "));
    assert_eq!(calls.len(), 3, "{calls:?}");
    for call in calls {
        assert!(
            call.starts_with("hipGetLastError: hipGetLastError < innermost < left < left < left < make_tree < main <"),
            "{call}"
        );
    }
}

#[test]
fn merged_stacks_have_python_frames_among_native_ones() {
    let Some(python) = tool("python3") else {
        return skipped("stacks of a Python program", "no python3");
    };
    let script = workloads::path("ctypes-hip.py");
    let outcome = Rpd::new(["--hip-trace", "--stacks", "merged"])
        .target([python.as_os_str(), script.as_os_str(), "1".as_ref()])
        .success();
    let database = outcome.database();
    check(&database);
    let found = stacks(&database);
    let (_, stack) = found
        .iter()
        .find(|(function, _)| function == "hipMalloc")
        .expect("a call of hipMalloc");
    let python: Vec<&Frame> = stack
        .iter()
        .filter(|frame| frame.kind == "python")
        .collect();
    assert_eq!(
        python.last().map(|frame| &*frame.owner),
        Some("<module>"),
        "{stack:?}"
    );
    let first = stack.iter().position(|frame| frame.kind == "python");
    let ctypes = stack
        .iter()
        .position(|frame| frame.owner.starts_with("_ctypes"));
    assert!(ctypes.is_some() && ctypes < first, "{stack:?}");
    assert_eq!(
        database.number("SELECT count(*) FROM rpd_api_stack WHERE flags & (8 | 32) <> 0"),
        0
    );
}
