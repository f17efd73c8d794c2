//! What programs did on a real H200, replayed by the stand-in: names, numbers, streams, calls and nesting as they were there.

use std::collections::BTreeMap;
use std::path::Path;

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::Outcome;

use super::{counts, rpd, table};

/// A recording, in the tree.
fn recording(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda/recordings");
    directory.join(name).to_str().expect("text").to_owned()
}

/// The lines of a recording of one kind.
fn lines(name: &str, kind: &str) -> Vec<String> {
    let text = std::fs::read_to_string(recording(name)).expect("a recording");
    let lines = text.lines().filter_map(|line| {
        let (first, _) = line.split_once(' ')?;
        (first == kind).then(|| line.to_owned())
    });
    lines.collect()
}

/// The value of a key in a line.
fn value<'a>(line: &'a str, key: &str) -> &'a str {
    let start = format!(" {key}=");
    let rest = line.split_once(&start).map_or("", |(_, rest)| rest);
    rest.split(' ').next().unwrap_or_default()
}

fn tally<'a>(lines: &'a [String], key: &str) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        *counts.entry(value(line, key)).or_default() += 1;
    }
    counts
}

fn replayed(name: &str, options: &[&str]) -> Outcome {
    let step = format!("replay={}", recording(name));
    rpd(options).workload("cuda", [step]).success()
}

/// Names of calls by correlation id.
fn called(calls: &Table) -> BTreeMap<u64, String> {
    let names = calls.column("Function");
    let ids = calls.numbers("Correlation_Id");
    (ids.into_iter().zip(names))
        .map(|(id, name)| (id, name.to_owned()))
        .collect()
}

#[test]
fn replayed_program_has_the_kernels_copies_and_waits_of_the_real_gpu() {
    let options = ["--runtime-trace", "--cuda-api", "all", "-f", "csv", "rocpd"];
    let outcome = replayed("plain.txt", &options);
    let kernels = table(&outcome, "kernel_trace");
    let recorded = lines("plain.txt", "KERNEL");
    assert_eq!(counts(&kernels, "Stream_Id"), tally(&recorded, "stream"));
    assert_eq!(kernels.rows.len(), 10);
    assert_eq!(kernels.count("Kernel_Name", "scale"), 5);
    let calls = table(&outcome, "cuda_api_trace");
    let by_id = called(&calls);
    let mut launched: BTreeMap<&str, usize> = BTreeMap::new();
    for id in kernels.numbers("Correlation_Id") {
        *launched.entry(&by_id[&id]).or_default() += 1;
    }
    assert_eq!(
        launched,
        BTreeMap::from([("cudaLaunchKernel", 6), ("cudaGraphLaunch", 4)])
    );
    let copies = table(&outcome, "memory_copy_trace");
    let moved = lines("plain.txt", "MEMCPY").len() + lines("plain.txt", "MEMSET").len();
    assert_eq!(copies.rows.len(), moved);
    // Those of the driver are inside of them.
    assert_eq!(calls.rows.len(), lines("plain.txt", "CBR").len());
    let failed: Vec<&String> = by_id
        .values()
        .filter(|name| *name == "cudaMemcpy")
        .collect();
    assert_eq!(failed.len(), 4);
    let database = Database::open(&outcome.file(".db"));
    let waits = database.rows("SELECT name, count(*) FROM hip_events GROUP BY 1 ORDER BY 1");
    let mut expected: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &lines("plain.txt", "SYNC") {
        let name = match value(line, "type") {
            // Of cudaEventQuery.
            "1" => "CUDA_EVENT_SYNCHRONIZE",
            "2" => "HIP_EVENT_WAIT",
            "3" => "CUDA_STREAM_SYNCHRONIZE",
            _ => "CUDA_CONTEXT_SYNCHRONIZE",
        };
        *expected.entry(name).or_default() += 1;
    }
    let waits: BTreeMap<&str, usize> = waits
        .iter()
        .map(|row| (&*row[0], row[1].parse().expect("a number")))
        .collect();
    assert_eq!(waits, expected);
    assert!(outcome.stderr.contains("0 dropped"), "{}", outcome.stderr);
}

#[test]
fn replayed_driver_program_has_its_own_calls_and_all_nested_ones_on_request() {
    let options = [
        "--cuda-trace",
        "--kernel-trace",
        "--memory-copy-trace",
        "-f",
        "csv",
    ];
    let outcome = replayed("driver.txt", &options);
    let kernels = table(&outcome, "kernel_trace");
    assert_eq!(
        counts(&kernels, "Kernel_Name"),
        BTreeMap::from([("scale", 4)])
    );
    let by_id = called(&table(&outcome, "cuda_driver_api_trace"));
    for id in kernels.numbers("Correlation_Id") {
        assert_eq!(by_id[&id], "cuLaunchKernel");
    }
    assert_eq!(table(&outcome, "memory_copy_trace").rows.len(), 5);
    let all = [
        "--cuda-trace",
        "--cuda-driver-trace",
        "--cuda-api",
        "all",
        "-f",
        "csv",
    ];
    let outcome = replayed("plain.txt", &all);
    let driver = table(&outcome, "cuda_driver_api_trace").rows.len();
    // One more: the program that replays initialises the driver.
    assert_eq!(driver, lines("plain.txt", "CBD").len() + 1);
}
