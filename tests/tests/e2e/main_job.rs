//! `rpd --sys-trace` on whole programs: the files against what the programs did.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

const CSV: [&str; 3] = ["--sys-trace", "-f", "csv"];

/// Number of occurrences of each value of a column.
fn counts<'a>(table: &'a Table, column: &str) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for value in table.column(column) {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

/// The HIP calls that `vector-ops` makes, by name (see `workloads/README.md`). The registration's
/// undoing at exit, and the synchronisation within, are traced or not, as the runtime ends.
fn vector_ops_calls(
    threads: usize,
    iterations: usize,
    with_exit: bool,
) -> BTreeMap<&'static str, usize> {
    let rounds = threads * iterations;
    let exit = usize::from(with_exit);
    let mut calls = BTreeMap::from([
        ("__hipRegisterFatBinary", 1),
        ("__hipRegisterFunction", 4),
        ("__hipPushCallConfiguration", 4 * rounds),
        ("__hipPopCallConfiguration", 4 * rounds),
        ("hipGetDeviceCount", 1),
        ("hipSetDevice", 1),
        ("hipDeviceSynchronize", 1 + exit),
        ("hipStreamCreateWithFlags", threads),
        ("hipHostMalloc", 3 * threads),
        ("hipMallocAsync", 3 * threads),
        ("hipFree", 3 * threads),
        ("hipHostFree", 3 * threads),
        ("hipStreamDestroy", threads),
        ("hipMemcpyAsync", 3 * rounds),
        ("hipLaunchKernel", 4 * rounds),
        ("hipGetLastError", rounds),
        ("hipStreamSynchronize", rounds),
    ]);
    if with_exit {
        calls.insert("__hipUnregisterFatBinary", 1);
    }
    calls
}

fn assert_vector_ops(outcome: &Outcome, threads: usize, iterations: usize) {
    let rounds = threads * iterations;
    let hip = outcome.csv("hip_api_trace");
    let calls = counts(&hip, "Function");
    let with_exit = calls.contains_key("__hipUnregisterFatBinary");
    assert_eq!(calls, vector_ops_calls(threads, iterations, with_exit));

    let kernels = outcome.csv("kernel_trace");
    let of_each = [
        "void addition_kernel<float>(float*, float const*, float const*, int, int)",
        "divide_kernel(float*, float const*, float const*, int, int)",
        "multiply_kernel(float*, float const*, float const*, int, int)",
        "subtract_kernel(float*, float const*, float const*, int, int)",
    ];
    assert_eq!(
        counts(&kernels, "Kernel_Name"),
        of_each.map(|name| (name, rounds)).into()
    );
    assert_eq!(kernels.count("Grid_Size_X", "65536"), 4 * rounds);
    assert_eq!(kernels.count("Workgroup_Size_X", "64"), 4 * rounds);
    assert_eq!(
        counts(&kernels, "Stream_Id").len(),
        threads,
        "a stream for each thread"
    );
    let mut dispatches = kernels.numbers("Dispatch_Id");
    dispatches.sort_unstable();
    assert!(
        dispatches.iter().copied().eq(1..=4 * rounds as u64),
        "each dispatch once"
    );

    let copies = outcome.csv("memory_copy_trace");
    let directions = [
        ("MEMORY_COPY_DEVICE_TO_HOST", rounds),
        ("MEMORY_COPY_HOST_TO_DEVICE", 2 * rounds),
    ];
    assert_eq!(counts(&copies, "Direction"), directions.into());

    let markers = outcome.csv("marker_api_trace");
    let messages = counts(&markers, "Function");
    assert_eq!(markers.rows.len(), 1 + threads + 2 * rounds);
    assert_eq!(
        (messages["all"], messages["iteration"], messages["tick"]),
        (1, rounds, rounds)
    );
    for worker in 0..threads {
        assert_eq!(messages[format!("worker {worker}").as_str()], 1);
    }

    let mut calls = calls_by_id(&hip);
    calls.extend(calls_by_id(&outcome.csv("hsa_api_trace")));
    for table in [&kernels, &copies] {
        assert_made_by(table, &calls, None);
    }
}

/// Names and starts of calls by their correlation ids.
fn calls_by_id(table: &Table) -> HashMap<u64, (String, u64)> {
    let names = table.column("Function").into_iter().map(str::to_owned);
    let calls = names.zip(table.numbers("Start_Timestamp"));
    table
        .numbers("Correlation_Id")
        .into_iter()
        .zip(calls)
        .collect()
}

/// Every dispatch or copy has the correlation id of a call (named `name`) that started before it.
fn assert_made_by(table: &Table, calls: &HashMap<u64, (String, u64)>, name: Option<&str>) {
    for (id, start) in table
        .numbers("Correlation_Id")
        .into_iter()
        .zip(table.numbers("Start_Timestamp"))
    {
        let (call, called) = calls
            .get(&id)
            .unwrap_or_else(|| panic!("no call has correlation id {id}"));
        assert!(name.is_none_or(|name| name == call), "{id} is {call}");
        assert!(
            *called <= start,
            "{call} {id} was called at {called}, its work began at {start}"
        );
    }
}

#[test]
fn without_hsa_tracing_gpu_work_belongs_to_hip_calls() {
    let options = [
        "--hip-trace",
        "--kernel-trace",
        "--memory-copy-trace",
        "-f",
        "csv",
    ];
    let outcome = Rpd::new(options)
        .workload("vector-ops", ["2", "3"])
        .success();
    let calls = calls_by_id(&outcome.csv("hip_api_trace"));
    let (kernels, copies) = (
        outcome.csv("kernel_trace"),
        outcome.csv("memory_copy_trace"),
    );
    assert_eq!((kernels.rows.len(), copies.rows.len()), (24, 18));
    assert_made_by(&kernels, &calls, Some("hipLaunchKernel"));
    assert_made_by(&copies, &calls, Some("hipMemcpyAsync"));
    assert!(
        outcome.files_ending("hsa_api_trace.csv").is_empty(),
        "{:?}",
        outcome.files()
    );
}

#[test]
fn every_call_dispatch_copy_and_marker_is_recorded_once() {
    let outcome = Rpd::new(CSV).workload("vector-ops", ["4", "50"]).success();
    assert_eq!(outcome.stdout, "ok\n");
    assert_vector_ops(&outcome, 4, 50);
}

#[test]
fn the_database_has_every_record_of_vector_ops() {
    let outcome = Rpd::new(["--sys-trace"])
        .workload("vector-ops", ["2", "2"])
        .success();
    let database = outcome.database();
    assert_eq!(database.number("SELECT count(*) FROM kernels"), 16);
    assert_eq!(database.number("SELECT count(*) FROM memory_copies"), 12);
    let markers =
        "SELECT count(*) FROM regions_and_samples WHERE category = 'MARKER_CORE_RANGE_API'";
    assert_eq!(database.number(markers), 11);
    let calls = "SELECT count(*) FROM regions WHERE category = 'HIP_RUNTIME_API_EXT' AND name = 'hipLaunchKernel'";
    assert_eq!(database.number(calls), 16);
    assert_eq!(database.rows("PRAGMA integrity_check"), [["ok"]]);
}

#[test]
fn statistics_are_printed_with_every_format() {
    let outcome = Rpd::new(["--sys-trace", "--stats"])
        .workload("vector-ops", ["1", "2"])
        .success();
    assert!(
        outcome.stderr.contains("RPD KERNEL_DISPATCH SUMMARY"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.files_ending("_stats.csv").is_empty(),
        "without CSV there are no CSV files"
    );
    let outcome = Rpd::new(["--sys-trace", "--stats", "-f", "csv"])
        .workload("vector-ops", ["1", "2"])
        .success();
    let stats = outcome.csv("kernel_stats");
    assert_eq!(stats.numbers("Calls"), [2, 2, 2, 2]);
}

#[test]
fn the_spool_is_removed_after_a_run() {
    let outcome = Rpd::new(CSV).workload("vector-ops", ["1", "1"]).success();
    assert!(
        !outcome.out().join(".rpd").exists(),
        "{:?}",
        outcome.files()
    );
}

#[test]
fn recording_a_program_without_gpu_succeeds() {
    for name in ["no-gpu", "no-gpu-linked"] {
        let outcome = Rpd::new(CSV).workload(name, [""; 0]).success();
        assert_eq!(outcome.stdout, "ok\n");
        assert!(
            outcome.stderr.contains("no GPU"),
            "{name}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn aborts_and_faults_of_the_program_lose_no_record() {
    for (name, code) in [
        ("abort-midway", 134),
        ("segv-midway", 139),
        ("exit-midway", 3),
    ] {
        let outcome = Rpd::new(CSV).workload(name, ["25"]).expect_code(code);
        assert_eq!(outcome.stdout, "ending\n", "{name}");
        let calls = outcome.csv("hip_api_trace");
        assert_eq!(calls.count("Function", "hipLaunchKernel"), 25, "{name}");
        assert_eq!(
            calls.count("Function", "hipStreamSynchronize"),
            25,
            "{name}"
        );
        assert_eq!(outcome.csv("kernel_trace").rows.len(), 25, "{name}");
        assert_eq!(outcome.csv("memory_copy_trace").rows.len(), 25, "{name}");
        let marks = outcome.csv("marker_api_trace");
        assert_eq!(marks.count("Function", "the end is near"), 1, "{name}");
    }
}

#[test]
fn a_killed_program_keeps_all_but_its_last_records() {
    let running = Rpd::new(CSV).start_workload("spin", ["progress"]);
    let file = running.directory().join("progress");
    let progress = || -> [u64; 3] {
        let bytes = fs::read(&file).unwrap_or_default();
        let number = |at: usize| {
            let eight = bytes
                .get(at..at + 8)
                .and_then(|eight| eight.try_into().ok());
            eight.map_or(0, u64::from_ne_bytes)
        };
        [number(0), number(8), number(16)]
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while progress()[1] < 3 {
        assert!(Instant::now() < deadline, "spin does not get going");
        thread::sleep(Duration::from_millis(20));
    }
    let [calls, launches, pid] = progress();
    thread::sleep(Duration::from_millis(250));
    let pid = i32::try_from(pid).expect("a process id");
    // SAFETY: kill takes no pointers; the process is the workload of this test, which rpd has not yet reaped.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let outcome = running.finish().expect_code(137);
    let recorded = outcome.csv("hip_api_trace");
    let found = recorded.count("Function", "hipGetDevice") as u64;
    assert!(found >= calls, "{found} calls recorded of at least {calls}");
    let found = outcome
        .csv("kernel_trace")
        .count("Kernel_Name", "empty_kernel") as u64;
    assert!(
        found >= launches,
        "{found} dispatches recorded of at least {launches}"
    );
}

#[test]
fn each_process_has_its_own_files() {
    for mode in ["tree", "late"] {
        let outcome = Rpd::new(CSV).workload("fork-exec", [mode]).success();
        let mut launches = Vec::new();
        for file in outcome.files_ending("kernel_trace.csv") {
            launches.push(Table::read(&file).count("Kernel_Name", "fill_kernel"));
        }
        launches.sort_unstable();
        assert_eq!(launches, [1, 2, 3], "{mode}: {:?}", outcome.files());
    }
    let outcome = Rpd::new(CSV).workload("fork-exec", ["replace"]).success();
    let mut launches = Vec::new();
    for file in outcome
        .files()
        .iter()
        .filter(|name| name.contains("kernel_trace"))
    {
        launches.push(Table::read(&outcome.out().join(file)).count("Kernel_Name", "fill_kernel"));
    }
    launches.sort_unstable();
    assert_eq!(launches, [1, 3], "{:?}", outcome.files());
}

#[test]
fn every_workload_succeeds_under_full_tracing() {
    for (name, arguments, stdout) in [
        ("transpose", [""; 0].as_slice(), "ok\n"),
        ("copies", &[], "ok, 160 copies\n"),
        ("module-load", &[], "ok, 6 modules\n"),
        ("hsa-direct", &[], "ok\n"),
        ("many-threads", &["40", "5"], "ok\n"),
    ] {
        let outcome = Rpd::new(CSV).workload(name, arguments).success();
        assert_eq!(outcome.stdout, stdout, "{name}");
    }
}

#[test]
fn calls_of_many_threads_are_all_recorded() {
    let outcome = Rpd::new(CSV)
        .workload("many-threads", ["40", "5"])
        .success();
    let calls = outcome.csv("hip_api_trace");
    assert_eq!(calls.count("Function", "hipGetDevice"), 40 * 50);
    assert_eq!(calls.count("Function", "hipLaunchKernel"), 40 * 5);
    assert_eq!(outcome.csv("kernel_trace").rows.len(), 40 * 5);
}
