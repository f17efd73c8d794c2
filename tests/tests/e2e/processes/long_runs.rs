//! Programs that run for long: recordings with a bound, outputs that are written meanwhile, estimates, and the disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::{Outcome, Rpd};

use super::control::Steps;
use super::sudden_ends::on_small_disk;

/// Calls of `api-loop N`: those that it measures, and those before.
const fn calls(count: u64) -> u64 {
    count + count / 10
}

/// Bytes of all segments below a directory; those that are removed meanwhile count as none.
fn segment_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => segment_bytes(&entry.path()),
            _ if entry.path().extension().is_some_and(|end| end == "seg") => {
                entry.metadata().map_or(0, |metadata| metadata.len())
            }
            _ => 0,
        })
        .sum()
}

/// The directories of pieces.
fn pieces(out: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("piece-") && path.is_dir()
        })
        .collect()
}

/// The sum of a column over the rows of a name.
fn sum(table: &Table, column: &str, name_column: &str, name: &str) -> u64 {
    let names = table.column(name_column);
    let rows = names.iter().zip(table.numbers(column));
    rows.filter(|(found, _)| **found == name)
        .map(|(_, number)| number)
        .sum()
}

/// The calls of `hipGetLastError` in the outputs of one process: rows, those that went, and those of the statistics.
fn counted(directory: &Path) -> [u64; 3] {
    const NAME: &str = "hipGetLastError";
    let file = |name: &str| directory.join(format!("x_{name}"));
    let database = Database::open(&file("results.db"));
    let rows = database.number(&format!(
        "SELECT count(*) FROM regions WHERE name = '{NAME}'"
    )) as u64;
    let removed = file("removed.csv");
    let gone = if removed.exists() {
        sum(&Table::read(&removed), "Count", "Name", NAME)
    } else {
        0
    };
    let statistics = Table::read(&file("hip_api_stats.csv"));
    [rows, gone, sum(&statistics, "Calls", "Name", NAME)]
}

#[test]
fn recording_with_a_bound_loses_rows_and_no_sums() {
    const COUNT: u64 = 300_000;
    const BOUND: u64 = 2 << 20;
    let options = ["--hip-trace", "--stats", "--spool-limit", "2M", "-o", "x"];
    let running = Rpd::new(options)
        .option(["-f", "csv", "rocpd"])
        .start_workload("api-loop", [COUNT.to_string()]);
    let spool = running.directory().join("out/.rpd");
    let mut largest = 0;
    while !running.directory().join("out/x_results.db").exists() {
        largest = largest.max(segment_bytes(&spool));
        if largest > BOUND {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let outcome = running.finish().success();
    assert!(largest <= BOUND, "{largest}");
    let [rows, gone, statistics] = counted(&outcome.out());
    assert_eq!(statistics, calls(COUNT), "{}", outcome.stderr);
    assert_eq!(rows + gone, calls(COUNT));
    assert!(gone > 0 && rows > BOUND / 128, "{rows} rows, {gone} gone");
    let says = |text: &str| outcome.stderr.contains(text);
    assert!(says("the files have the last "), "{}", outcome.stderr);
    assert!(
        says("the others went to keep --spool-limit"),
        "{}",
        outcome.stderr
    );
    let database = Database::open(&outcome.file("x_results.db"));
    let tags = "SELECT count(*) FROM rocpd_metadata WHERE tag = 'rpd_removed'";
    assert!(database.number(tags) > 0);
}

/// A day in a few seconds: calls as fast as they can be made, a bound, and pieces.
#[test]
fn pieces_of_a_long_run_keep_the_bound_and_add_up_to_its_calls() {
    // A few pieces on the fastest machine, too: 3.3 million calls take it more than a second.
    const COUNT: u64 = 3_000_000;
    const BOUND: u64 = 8 << 20;
    let options = [
        "--hip-trace",
        "--stats",
        "--spool-limit",
        "8M",
        "--rotate",
        "200ms",
        "-o",
        "x",
    ];
    let running = Rpd::new(options)
        .option(["-f", "csv", "rocpd"])
        .start_workload("api-loop", [COUNT.to_string()]);
    let out = running.directory().join("out");
    let mut running = running;
    let mut largest = 0;
    while running.child.try_wait().is_ok_and(|end| end.is_none()) {
        largest = largest.max(segment_bytes(&out));
        std::thread::sleep(Duration::from_millis(1));
    }
    let outcome = running.finish().success();
    assert!(largest <= BOUND, "{largest}");
    let directories = pieces(&outcome.out());
    assert!(directories.len() > 1, "{}", outcome.stderr);
    let mut all = [0; 3];
    for directory in &directories {
        let file = directory.join("x_results.db");
        assert!(file.exists(), "{:?}\n{}", outcome.files(), outcome.stderr);
        // Each piece reads by itself.
        let found = counted(directory);
        for (sum, number) in all.iter_mut().zip(found) {
            *sum += number;
        }
        assert_eq!(found[0] + found[1], found[2], "{}", directory.display());
    }
    let [rows, gone, statistics] = all;
    assert_eq!(rows + gone, calls(COUNT), "{rows} rows, {gone} gone");
    assert_eq!(statistics, calls(COUNT));
    assert!(!outcome.out().join(".rpd").exists(), "{}", outcome.stderr);
}

#[test]
fn piece_has_a_range_when_it_has_ended_and_each_call_once() {
    let options = ["--sys-trace", "--rotate", "150ms", "-o", "x", "-f", "rocpd"];
    let mut steps = Steps::start(Rpd::new(options));
    let out = steps.running.directory().join("out");
    let wait_for = |count: usize| {
        let end = Instant::now() + Duration::from_secs(120);
        let written = || {
            let written = |path: &PathBuf| path.join("x_results.db").exists();
            pieces(&out).iter().filter(|path| written(path)).count()
        };
        while written() < count {
            assert!(Instant::now() < end, "{count} pieces");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    steps.take("push launch");
    wait_for(1);
    steps.take("launch launch");
    wait_for(2);
    steps.take("pop launch");
    let outcome = steps.finish();
    let (mut kernels, mut ranges, mut launches) = (0, Vec::new(), Vec::new());
    for directory in pieces(&outcome.out()) {
        let database = Database::open(&directory.join("x_results.db"));
        kernels += database.number("SELECT count(*) FROM kernels");
        let range = "SELECT duration FROM regions WHERE category LIKE 'MARKER%'";
        ranges.extend(database.rows(range));
        let launch = "SELECT id, start FROM regions WHERE name = 'hipLaunchKernel'";
        launches.extend(database.rows(launch).into_iter().map(|row| row[1].clone()));
    }
    assert_eq!(kernels, 4);
    let different: BTreeSet<_> = launches.iter().collect();
    assert_eq!((launches.len(), different.len()), (4, 4), "{launches:?}");
    let [range] = ranges.as_slice() else {
        panic!("one range, in the piece of its end: {ranges:?}");
    };
    let duration: u64 = range[0].parse().expect("a number");
    assert!(duration > 150_000_000, "{duration}");
}

#[test]
fn rotation_by_size_makes_a_piece_when_so_much_is_recorded() {
    // Long enough for rpd to look at it several times.
    const COUNT: u64 = 2_000_000;
    let options = ["--hip-trace", "--stats", "--rotate", "4M", "-o", "x"];
    let outcome = Rpd::new(options)
        .option(["-f", "csv", "rocpd"])
        .workload("api-loop", [COUNT.to_string()])
        .success();
    let directories = pieces(&outcome.out());
    assert!(directories.len() > 1, "{}", outcome.stderr);
    let all = directories.iter().map(|directory| counted(directory)[0]);
    assert_eq!(all.sum::<u64>(), calls(COUNT));
}

#[test]
fn options_of_long_runs_are_refused_where_they_have_no_meaning() {
    for (options, problem) in [
        (&["--spool-limit", "10"][..], "at least 1M is needed"),
        (&["--spool-limit", "x"], "expected a number of bytes"),
        (&["--rotate", "10"], "is neither a time such as"),
        (&["--rotate", "1m"], "is neither a time such as"),
        (
            &["--light", "--spool-limit", "9M"],
            "has a bound of its own",
        ),
        (
            &["--spool-limit", "1M", "--rotate", "1s"],
            "at least 2M is needed",
        ),
    ] {
        let traced = Rpd::new(["--kernel-trace"]).option(options);
        let outcome = traced.workload("no-gpu", [""; 0]);
        assert_ne!(outcome.code(), 0, "{options:?}");
        assert!(outcome.stderr.contains(problem), "{}", outcome.stderr);
        assert_eq!(
            outcome.stderr.trim_end().lines().count(),
            1,
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn estimate_shows_what_a_recording_takes_and_ends_the_program() {
    let estimate = |options: &[&str], program: &str, count: &str| -> Outcome {
        Rpd::plain(["estimate", "--backend", "sim"])
            .option(options)
            .workload(program, [count])
    };
    let outcome = estimate(&["--json", "-s"], "vector-ops", "2").success();
    // Behind what the program prints.
    let object = outcome.stdout.lines().last().unwrap_or_default();
    let found: serde_json::Value = serde_json::from_str(object).expect("JSON");
    let kinds = found["kinds"].as_array().expect("kinds");
    let records = |kind: &str| {
        let found = kinds.iter().find(|row| row["kind"] == kind);
        found.and_then(|row| row["records"].as_u64()).unwrap_or(0)
    };
    assert!(
        records("HIP calls") > 0 && records("kernel dispatches") > 0,
        "{found}"
    );
    assert!(found["bytes_per_minute"].as_f64() > Some(0.0));
    let smaller = found["smaller"].to_string();
    assert!(smaller.contains("--light"), "{smaller}");
    // A program that runs on is ended.
    let begin = Instant::now();
    let options = ["--seconds", "0.3", "--hip-trace"];
    let outcome = estimate(&options, "api-loop", "1000000000").success();
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert!(outcome.stdout.contains("HIP calls"), "{}", outcome.stdout);
    assert!(
        outcome.stdout.contains("--spool-limit SIZE"),
        "{}",
        outcome.stdout
    );
    let outcome = estimate(&["-s"], "no-gpu", "").expect_code(1);
    assert!(
        outcome.stderr.contains("nothing was recorded"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn line_is_printed_before_the_disk_is_full() {
    // A machine that fills the disk between two looks at it has no time for a warning.
    let script =
        "\"$1\" -d full --backend sim --hip-trace -f csv -- \"$2\"/api-loop 6000000; exit 0";
    let Some(outcome) = on_small_disk(384 << 10, script) else {
        return;
    };
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let found = lines
        .iter()
        .filter(|line| line.contains("--spool-limit SIZE keeps the latest"));
    assert_eq!(found.count(), 1, "{}", outcome.stderr);
    let at = |text: &str| lines.iter().position(|line| line.contains(text));
    let full = at("DROPPED").or(at("No space left")).unwrap_or(usize::MAX);
    assert!(
        at("WARNING: ").is_some_and(|line| line < full),
        "{}",
        outcome.stderr
    );
}
