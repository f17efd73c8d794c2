//! The provider that wraps the runtimes' functions itself records what the SDK's does.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd};

/// Everything that both providers have.
const TRACES: [&str; 8] = [
    "--hip-trace",
    "--hsa-trace",
    "--kernel-trace",
    "--memory-copy-trace",
    "--memory-allocation-trace",
    "--marker-trace",
    "--annotate-args",
    "--provider",
];

fn recorded(provider: &str, options: &[&str], name: &str, arguments: &[&str]) -> Outcome {
    Rpd::new(TRACES)
        .option([provider, "-f", "rocpd"])
        .option(options)
        .workload(name, arguments)
}

/// A value without what differs from run to run: addresses, handles, and other large numbers.
fn normalized(value: &str) -> String {
    let is_number = |c: char| c.is_ascii_hexdigit() || c == 'x';
    let mut out = String::new();
    let mut rest = value;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let large = word.len() >= 7 && word.starts_with(|c: char| c.is_ascii_digit());
        out.push_str(if large { "#" } else { word });
        let next = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    out
}

/// Functions of HSA that HIP calls, or calls with other arguments, as the times of work happen to be.
const BY_TIMING: &str = "r.category LIKE 'HSA%' AND (r.name LIKE 'hsa\\_signal%' ESCAPE '\\' OR r.name LIKE 'hsa\\_queue%' ESCAPE '\\'
    OR r.name LIKE 'hsa\\_amd\\_memory%' ESCAPE '\\' OR r.name LIKE 'hsa\\_amd\\_profiling%' ESCAPE '\\')";

/// Which calls of HSA are compared.
#[derive(Clone, Copy, PartialEq)]
enum Hsa {
    /// Every call.
    All,
    /// Calls that do not depend on the times of work.
    Steady,
    /// No calls: which thread makes them depends on which of several threads is first.
    None,
}

/// Content of a database, without what differs from run to run.
fn contents(path: &Path, hsa: Hsa) -> BTreeMap<&'static str, Vec<String>> {
    let database = Database::open(path);
    let lines = |query: &str| -> Vec<String> {
        let rows = database.rows(query);
        rows.iter()
            .map(|row| normalized(&row.join(" | ")))
            .collect()
    };
    let sorted = |query: &str| {
        let mut found = lines(query);
        found.sort();
        found
    };
    let parent = "(SELECT p.name FROM regions_and_samples p WHERE p.stack_id = r.parent_stack_id)";
    let call = "(SELECT p.name FROM regions_and_samples p WHERE p.stack_id = r.stack_id)";
    let condition = match hsa {
        Hsa::All => "1".to_owned(),
        Hsa::Steady => format!("NOT ({BY_TIMING})"),
        Hsa::None => "r.category NOT LIKE 'HSA%'".to_owned(),
    };
    // The calls of a thread in their order, as one line, so that threads can be compared as a set.
    let calls = database.rows(&format!(
        "SELECT r.tid, r.category, r.name, {parent},
            (SELECT group_concat(arg_type || ' ' || arg_name || '=' || arg_value, ', ')
                FROM (SELECT * FROM events_args a WHERE a.event_id = r.event_id ORDER BY arg_position))
         FROM regions_and_samples r WHERE {condition} ORDER BY r.tid, r.start, r.\"end\" DESC"
    ));
    let mut threads: BTreeMap<&str, String> = BTreeMap::new();
    for row in &calls {
        let line = threads.entry(&row[0]).or_default();
        line.push_str(&normalized(&row[1..].join(" | ")));
        line.push('\n');
    }
    let mut threads: Vec<String> = threads.into_values().collect();
    threads.sort();
    BTreeMap::from([
        ("calls", threads),
        (
            "dispatches",
            sorted(&format!(
                "SELECT name, region, {call}, grid_x, grid_y, grid_z, workgroup_x, workgroup_y, workgroup_z,
                    agent_type_index, lds_size, scratch_size, vgpr_count, accum_vgpr_count, sgpr_count FROM kernels r"
            )),
        ),
        (
            "numbers of dispatches",
            sorted("SELECT dispatch_id FROM kernels"),
        ),
        (
            "copies",
            sorted(&format!(
                "SELECT name, size, {call}, dst_agent_abs_index, src_agent_abs_index FROM memory_copies r"
            )),
        ),
        (
            "allocations",
            sorted("SELECT type, level, agent_abs_index, size FROM memory_allocations"),
        ),
        (
            "symbols",
            sorted(
                "SELECT kernel_name, kernarg_segment_size, kernarg_segment_alignment, group_segment_size,
                    private_segment_size, sgpr_count, arch_vgpr_count, accum_vgpr_count,
                    kernel_code_entry_byte_offset FROM kernel_symbols",
            ),
        ),
        (
            "code objects",
            sorted("SELECT load_size, load_delta != 0, storage_type, memory_size FROM code_objects"),
        ),
        (
            "streams and queues",
            sorted("SELECT DISTINCT queue, stream FROM kernels")
                .into_iter()
                .take(if hsa == Hsa::All { usize::MAX } else { 0 })
                .collect(),
        ),
    ])
}

/// The contents of all databases of a run, in an order that does not depend on process ids.
fn all_contents(outcome: &Outcome, hsa: Hsa) -> Vec<BTreeMap<&'static str, Vec<String>>> {
    let files = outcome.files_ending(".db");
    let mut found: Vec<_> = files.iter().map(|file| contents(file, hsa)).collect();
    found.sort();
    found
}

/// Compares what both providers record of a workload.
fn compare_providers(options: &[&str], name: &str, arguments: &[&str], hsa: Hsa) {
    let sdk = recorded("sdk", options, name, arguments);
    let direct = recorded("direct", options, name, arguments);
    assert_eq!(sdk.code(), direct.code(), "{name}: {}", direct.stderr);
    assert!(
        direct.stderr.contains("; provider direct; wrote"),
        "{name}: {}",
        direct.stderr
    );
    assert!(!direct.stderr.contains("note:"), "{}", direct.stderr);
    let (expected, found) = (all_contents(&sdk, hsa), all_contents(&direct, hsa));
    assert_eq!(expected.len(), found.len(), "{name}: processes");
    for (expected, found) in expected.iter().zip(&found) {
        for (what, expected) in expected {
            let found = &found[what];
            let differing = expected
                .iter()
                .zip(found)
                .find(|(expected, found)| expected != found);
            assert_eq!(differing, None, "{name}: {what}");
            assert_eq!(expected.len(), found.len(), "{name}: {what}");
        }
    }
}

#[test]
fn providers_record_equal_calls_and_work_of_hip_programs() {
    compare_providers(&[], "vector-ops", &["2", "2"], Hsa::None);
    compare_providers(&[], "transpose", &["2"], Hsa::Steady);
    compare_providers(&[], "copies", &[], Hsa::Steady);
    compare_providers(&[], "module-load", &[], Hsa::Steady);
    compare_providers(&[], "launch-loop", &["100"], Hsa::Steady);
}

#[test]
fn providers_record_equal_calls_and_work_of_an_hsa_program() {
    compare_providers(&[], "hsa-direct", &[], Hsa::All);
}

#[test]
fn providers_record_equal_threads_and_processes() {
    compare_providers(&[], "many-threads", &["12", "4"], Hsa::None);
    compare_providers(&[], "fork-exec", &[], Hsa::Steady);
    compare_providers(&[], "fork-exec", &["late"], Hsa::Steady);
    compare_providers(&[], "fork-exec", &["replace"], Hsa::Steady);
}

/// Work that is complete when a program replaces itself is recorded, by whichever function that is, and the function gets its
/// arguments.
#[test]
fn the_direct_provider_records_work_before_every_kind_of_exec() {
    for function in [
        "execv", "execvp", "execvpe", "execve", "execl", "execlp", "execle", "fexecve", "execveat",
    ] {
        let outcome = Rpd::new(["--kernel-trace", "--provider", "direct", "-f", "rocpd"])
            .workload("fork-exec", ["replace", function])
            .success();
        assert_eq!(outcome.stdout, "first image ok\nexec ok\n", "{function}");
        let files = outcome.files_ending(".db");
        let kernels = |file| Database::open(file).number("SELECT count(*) FROM kernels");
        let mut found: Vec<_> = files.iter().map(|file| kernels(file)).collect();
        found.sort_unstable();
        assert_eq!(found, [1, 3], "{function}: {}", outcome.stderr);
    }
}

#[test]
fn providers_record_equal_pauses_regions_and_renamed_kernels() {
    compare_providers(&[], "regions", &[], Hsa::Steady);
    compare_providers(&["--selected-regions"], "regions", &[], Hsa::Steady);
    compare_providers(&["--kernel-rename"], "vector-ops", &["2", "2"], Hsa::None);
    compare_providers(
        &["--kernel-rename", "--compat", "rocprofv3"],
        "vector-ops",
        &["2", "2"],
        Hsa::None,
    );
}

#[test]
fn providers_record_equal_aborts_and_exits() {
    compare_providers(&[], "abort-midway", &["5"], Hsa::Steady);
    compare_providers(&[], "exit-midway", &["5"], Hsa::Steady);
}

/// Completion signals of the program in every role: their values are right, and each piece of work is recorded once.
#[test]
fn the_direct_provider_keeps_completion_signals_of_the_program() {
    for mode in [
        "plain",
        "signals",
        "counting",
        "batch",
        "renew",
        "cooperative",
        "copies",
        "pairs",
    ] {
        let outcome = Rpd::new(["--kernel-trace", "--memory-copy-trace", "--provider"])
            .option(["direct", "-f", "rocpd"])
            .workload("hsa-queues", [mode, "320"])
            .success();
        let database = Database::open(&outcome.file("results.db"));
        let times = "\"end\" > start AND start > 0";
        let dispatches = database.number(&format!("SELECT count(*) FROM kernels WHERE {times}"));
        let copies = database.number(&format!("SELECT count(*) FROM memory_copies WHERE {times}"));
        let expected = match mode {
            "copies" => (0, 320),
            "pairs" => (0, 640),
            _ => (320, 0),
        };
        assert_eq!((dispatches, copies), expected, "{mode}: {}", outcome.stderr);
        let distinct = database.number("SELECT count(DISTINCT dispatch_id) FROM kernels");
        assert_eq!(distinct, expected.0, "{mode}");
    }
}

/// A queue that is destroyed with work under way delays neither the program nor its end.
#[test]
fn a_queue_destroyed_with_work_under_way_delays_nothing() {
    let begin = std::time::Instant::now();
    let outcome = Rpd::new(["--kernel-trace", "--provider", "direct"])
        .workload("hsa-queues", ["busy", "256"])
        .success();
    assert!(
        begin.elapsed() < Duration::from_secs(4),
        "{:?}",
        begin.elapsed()
    );
    assert!(!outcome.stderr.contains("note:"), "{}", outcome.stderr);
}

/// Everything that was complete a quarter of a second before a program is killed is recorded.
#[test]
fn the_direct_provider_keeps_older_records_of_a_killed_program() {
    let running = Rpd::new(["--hip-trace", "--kernel-trace", "--provider"])
        .option(["direct", "-f", "rocpd"])
        .start_workload("spin", ["progress"]);
    let [.., pid] = crate::processes::sudden_ends::spinning(&running, 3);
    std::thread::sleep(Duration::from_millis(600));
    let pid = i32::try_from(pid).expect("a process id");
    // SAFETY: takes no pointers; the process was started by this test and runs until it is killed.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let outcome = running.finish().expect_code(137);
    let database = Database::open(&outcome.file("results.db"));
    let launches = "SELECT count(*) FROM regions WHERE name = 'hipLaunchKernel' AND \"end\" < (SELECT max(start) FROM regions) \
         - 250000000";
    let old = database.number(launches);
    let dispatches = database.number("SELECT count(*) FROM kernels");
    assert!(old > 0 && dispatches >= old, "{dispatches} of {old}");
}

/// A tool that needs the SDK works as without rpd, which then records through the SDK as well.
#[test]
fn a_tool_that_needs_the_sdk_works_beside_the_direct_provider() {
    let tool = rpd_tests::workloads::path("empty-tool.so");
    let outcome = Rpd::new(["--hip-trace", "--provider", "direct", "-f", "rocpd"])
        .env("ROCP_TOOL_LIBRARIES", tool)
        .workload("api-loop", ["20"])
        .success();
    assert!(
        outcome.stderr.contains(
            "note: --provider direct is not used: the process has an SDK or a tool for it, which needs the runtimes' \
             tables; the SDK is used"
        ),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("; provider sdk; wrote"),
        "{}",
        outcome.stderr
    );
    let calls = Database::open(&outcome.file("results.db")).number("SELECT count(*) FROM regions");
    assert!(calls > 20, "{calls}");
}
