//! Replays of programs whose work has an order that a replay has to keep: launches in each kind of stream, and memory of the
//! host that the device reads while the program goes on.

use rpd_tests::run::Rpd;

use crate::capture::captures::{capture_of, captured, replayed};

/// Kinds of streams of `capture-order kinds`, in the order of its launches.
const KINDS: [&str; 5] = ["null", "blocking", "non-blocking", "per-thread", "priority"];
const RUNS: usize = 5;

/// Durations of the dispatches of a replay of the launch with this number, in ns, in order.
fn durations(table: &str) -> Vec<f64> {
    let mut lines = table.lines();
    let heads: Vec<&str> = lines.next().expect("heads").split(',').collect();
    let column = |name: &str| {
        let wanted = format!("\"{name}\"");
        heads.iter().position(|head| *head == wanted).expect(name)
    };
    let (start, end) = (column("Start_Timestamp"), column("End_Timestamp"));
    let mut times: Vec<(f64, f64)> = lines
        .filter(|line| line.contains("increment_kernel"))
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let time = |column: usize| cells[column].trim_matches('"').parse().expect("a time");
            (time(start), time(end))
        })
        .collect();
    times.sort_by(|one, other| one.0.total_cmp(&other.0));
    times.iter().map(|(start, end)| end - start).collect()
}

#[test]
fn replay_times_equal_traced_dispatches_in_every_kind_of_stream() {
    let run = captured(&[], "capture-order", &["kinds"]).success();
    let capture = capture_of(&run);
    for (index, kind) in KINDS.iter().enumerate() {
        let kernel = format!("increment_kernel#{}", index + 1);
        let played = Rpd::new(["--kernel-trace", "-f", "csv", "-o", "t"])
            .option(["--", &rpd_tests::install::rpd().display().to_string()])
            .option(["replay", "--backend", "sim", "--warmup", "0"])
            .option(["--iterations", &RUNS.to_string(), "--kernel", &kernel])
            .option(["--json", "report.json"])
            .option([&capture])
            .run()
            .success();
        let report = std::fs::read(played.directory.path().join("report.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
        let events = report["kernel"]["milliseconds"].as_array().expect("times");
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let events: Vec<f64> = events
            .iter()
            .map(|time| time.as_f64().expect("a time") * 1e6)
            .collect();
        let table = std::fs::read_to_string(played.file("t_kernel_trace.csv")).expect("a table");
        let all = durations(&table);
        // Launches before, the run that shows what is written, the measured ones, and the launch itself.
        assert_eq!(all.len(), index + RUNS + 2, "{kind}: {table}");
        let dispatches = &all[index + 1..index + 1 + RUNS];
        let (events, dispatches) = (mean(&events), mean(dispatches));
        // Between two events in a stream there is what the launch takes on the host, too.
        assert!(
            events >= 0.9 * dispatches && events <= 3.0 * dispatches + 20e6,
            "{kind}: {events} ns by events, {dispatches} ns by dispatches"
        );
    }
}

/// Repeated replays of one capture have the results of the program, with all ways of taking memory of the host.
fn replays_are_equal(mode: &str, options: &[&str]) {
    for memory in ["assisted", "snapshot", "pageguard"] {
        let options = [&["--memory", memory], options].concat();
        let run = captured(&options, "capture-order", &[mode, "8"]).success();
        let capture = capture_of(&run);
        for _ in 0..10 {
            let played = replayed(&capture, &[]).success();
            assert!(
                played.stderr.contains("results are equal"),
                "{memory}: {}",
                played.stderr
            );
        }
        let _ = replayed(&capture, &["--va", "remap"]).success();
    }
}

#[test]
fn replay_does_not_write_memory_that_a_running_copy_reads() {
    replays_are_equal("polled", &[]);
}

#[test]
fn replay_leaves_memory_that_only_the_device_writes() {
    replays_are_equal("chained", &[]);
}

#[test]
fn replay_with_exact_pinned_data_does_not_write_memory_that_a_running_copy_reads() {
    replays_are_equal("polled", &["--pinned", "exact"]);
}
