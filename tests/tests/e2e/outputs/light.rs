//! Light recordings: sums of everything, and the latest dispatches and copies, within a bound.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::Rpd;

/// Bytes on disk of all files of a kind below a directory; those that are removed meanwhile count as none.
fn bytes_below(directory: &Path, is_counted: fn(&str) -> bool) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => bytes_below(&entry.path(), is_counted),
            _ if is_counted(&entry.file_name().to_string_lossy()) => {
                entry.metadata().map_or(0, |metadata| metadata.len())
            }
            _ => 0,
        })
        .sum()
}

fn sum(table: &Table, column: &str) -> u64 {
    table.numbers(column).iter().sum()
}

/// A long run stays within its bound, its sums are of all dispatches, and every output states which part of them it has.
#[test]
fn a_light_recording_of_a_long_run_stays_within_its_bound() {
    const LAUNCHES: u64 = 30_000;
    // One to warm up, one of them checked, and its copy.
    const DISPATCHES: u64 = LAUNCHES + 65;
    const BOUND: u64 = 256 << 10;
    let running = Rpd::new(["--light", "--light-keep", "256K", "--stats", "-o", "x"])
        .option(["-f", "rocpd", "csv", "json"])
        .start_workload("launch-loop", [LAUNCHES.to_string()]);
    let spool = running.directory().join("out/.rpd");
    let mut largest = 0;
    let mut looks = 0;
    while bytes_below(&running.directory().join("out"), |name| {
        name.ends_with(".db")
    }) == 0
        && looks < 60_000
    {
        largest = largest.max(bytes_below(&spool, |name| name.starts_with("recent")));
        looks += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    let outcome = running.finish().success();
    assert!(largest > BOUND / 2 && largest <= BOUND, "{largest}");

    let database = Database::open(&outcome.file("x_results.db"));
    let kept = database.number("SELECT count(*) FROM kernels");
    let most = (BOUND / 112) as i64;
    assert!(kept > most / 2 && kept <= most, "{kept}");
    let totals = "SELECT sum(count) FROM rpd_device_total WHERE kernel_id IS NOT NULL";
    assert_eq!(database.number(totals), DISPATCHES as i64);
    let copies =
        "SELECT sum(t.count) FROM rpd_device_total t JOIN rocpd_string s ON s.id = t.operation_id
        WHERE s.string = 'MEMORY_COPY_DEVICE_TO_HOST'";
    assert_eq!(database.number(copies), 1);
    let buckets = "SELECT (SELECT sum(count) FROM rpd_device_total) = (SELECT sum(count) FROM rpd_device_duration)";
    assert_eq!(database.number(buckets), 1);
    // The last dispatches are kept, each once.
    let last = "SELECT max(dispatch_id) - min(dispatch_id) + 1 = count(*) AND max(dispatch_id) = 30065 FROM kernels";
    assert_eq!(database.number(last), 1, "{kept}");

    let statistics = Table::read(&outcome.file("x_kernel_stats.csv"));
    assert_eq!(sum(&statistics, "Calls"), DISPATCHES);
    let totals = Table::read(&outcome.file("x_device_totals.csv"));
    assert_eq!(sum(&totals, "Count"), DISPATCHES + 1);
    assert_eq!(totals.count("Name", "empty_kernel"), 1);
    for column in ["Calls", "TotalDurationNs", "MinNs", "MaxNs"] {
        let of_totals = if column == "Calls" { "Count" } else { column };
        let mut mine = statistics.numbers(column);
        let names = totals.column("Domain");
        let theirs = totals.numbers(of_totals);
        let mut theirs: Vec<u64> = (names.iter().zip(theirs))
            .filter(|(domain, _)| **domain == "KERNEL_DISPATCH")
            .map(|(_, number)| number)
            .collect();
        mine.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(mine, theirs, "{column}");
    }
    let figures = |column| -> Vec<f64> {
        let texts = totals.column(column).into_iter();
        texts.map(|text| text.parse().expect("a number")).collect()
    };
    let columns = ["MinNs", "MedianNs", "P90Ns", "P99Ns", "MaxNs"].map(figures);
    for at in 0..columns[0].len() {
        assert!(
            columns.each_ref().map(|column| column[at]).is_sorted(),
            "{columns:?}"
        );
    }
    let json = fs::read_to_string(outcome.file("x_results.json")).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let light = &json["rocprofiler-sdk-tool"][0]["metadata"]["config"]["light"];
    assert_eq!(light["dispatches"], DISPATCHES, "{light}");
    assert_eq!(light["dispatches_kept"], kept);
    assert!(
        outcome
            .stderr
            .contains("30065 dispatches, 1 copy, 0 dropped"),
        "{}",
        outcome.stderr
    );
    let text = format!("one by one, the files have the last {kept} of 30066, from 20");
    assert!(outcome.stderr.contains(&text), "{}", outcome.stderr);

    // Reports made of the database are of everything as well, and so is what is converted.
    let path = outcome.file("x_results.db");
    let path = path.to_str().expect("text");
    let summary = Rpd::plain(["summary", path]).run().success();
    assert!(summary.stdout.contains("30064"), "{}", summary.stdout);
    let converted = Rpd::plain([
        "convert", path, "-f", "csv", "rocpd", "--stats", "-d", "out", "-o", "y",
    ])
    .run()
    .success();
    let again = Table::read(&converted.file("y_device_totals.csv"));
    for column in ["Count", "TotalDurationNs", "MedianNs", "P99Ns"] {
        assert_eq!(again.column(column), totals.column(column), "{column}");
    }
    let again = Database::open(&converted.file("y_results.db"));
    assert_eq!(
        again.number("SELECT sum(count) FROM rpd_device_total"),
        30_066
    );
}

/// The sums can be looked at while the program runs, and a killed program keeps them.
#[test]
fn light_sums_are_readable_during_the_run_and_after_a_kill() {
    let running =
        Rpd::new(["--light", "-f", "csv", "--stats"]).start_workload("spin", ["progress"]);
    let out = running.directory().join("out");
    let look = || {
        let live = Rpd::plain(["live", "--format", "csv"])
            .option([&out])
            .run()
            .success();
        let file = live.directory.path().join("live.csv");
        fs::write(&file, &live.stdout).expect("written");
        let table = Table::read(&file);
        assert!(
            table
                .column("Process")
                .iter()
                .all(|name| name.starts_with("spin["))
        );
        let counts = table.numbers("Count");
        let names = table.column("Name");
        let found = names.iter().position(|name| *name == "empty_kernel");
        found.map_or(0, |at| counts[at])
    };
    let before = crate::processes::sudden_ends::spinning(&running, 3);
    std::thread::sleep(Duration::from_millis(300));
    let first = look();
    assert!(first >= before[1], "{first} of {before:?}");
    let [.., pid] = crate::processes::sudden_ends::spinning(&running, first + 3);
    std::thread::sleep(Duration::from_millis(300));
    let second = look();
    assert!(second >= first + 3, "{second} after {first}");
    let pid = i32::try_from(pid).expect("a process id");
    // SAFETY: takes no pointers; the process was started by this test and runs until it is killed.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let outcome = running.finish().expect_code(137);
    let totals = Table::read(&outcome.file("device_totals.csv"));
    assert!(sum(&totals, "Count") >= second, "{}", outcome.stderr);
    let statistics = Table::read(&outcome.file("kernel_stats.csv"));
    assert!(sum(&statistics, "Calls") >= second);
    assert!(!outcome.stderr.contains("damaged"), "{}", outcome.stderr);
}

#[test]
fn live_without_a_light_recording_is_refused() {
    let running = Rpd::new(["--kernel-trace"]).start_workload("spin", ["progress"]);
    let [.., pid] = crate::processes::sudden_ends::spinning(&running, 1);
    let out = running.directory().join("out");
    let live = Rpd::plain(["live"]).option([&out]).run().expect_code(1);
    let text = format!(
        "rpd: {}: no run in it is a light recording (rpd --light); a run that has all dispatches one by one has no sums\n",
        out.display()
    );
    assert_eq!(live.stderr, text);
    let pid = i32::try_from(pid).expect("a process id");
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGTERM) };
    let directory = running.finish().expect_code(143).directory;
    let live = Rpd::plain(["live"])
        .option([directory.path()])
        .run()
        .expect_code(1);
    let text = format!(
        "rpd: {}: holds no run that is not finished\n",
        directory.path().display()
    );
    assert_eq!(live.stderr, text);
}

/// Each process of a light recording has sums of its own.
#[test]
fn forked_processes_have_their_own_light_sums() {
    let outcome = Rpd::new(["--light", "-f", "csv"])
        .workload("fork-exec", ["late"])
        .success();
    let files = outcome.files_ending("device_totals.csv");
    let mut counts: Vec<u64> = files
        .iter()
        .map(|file| sum(&Table::read(file), "Count"))
        .collect();
    counts.sort_unstable();
    // Launches, and a copy for each.
    assert_eq!(counts, [2, 4, 6], "{}", outcome.stderr);
}
