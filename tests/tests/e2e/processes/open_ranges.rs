//! ROCTx ranges that were not ended when the program ended.

use rpd_tests::run::{Outcome, Rpd};

const TRACES: [&str; 4] = [
    "--hip-trace",
    "--marker-trace",
    "--kernel-trace",
    "--memory-copy-trace",
];

/// Messages of the ranges that the program does not end.
const OPEN: [&str; 4] = [
    "inner",
    "of a thread that has ended",
    "of the process",
    "outer",
];

/// Checks that every open range is recorded to the last time of the recording, and the others to their own ends.
fn check(outcome: &Outcome, provider: &str) {
    let database = outcome.database();
    let ranges = database.rows(
        "SELECT json_extract(e.extdata, '$.message') AS message, r.start, r.end FROM rocpd_region r
         JOIN rocpd_event e ON e.id = r.event_id WHERE message IS NOT NULL ORDER BY message",
    );
    let last = database.number("SELECT max(\"end\") FROM rocpd_region");
    let ends = |row: &Vec<String>| row[2].parse::<i64>().expect("a time");
    let open = ranges.iter().filter(|row| ends(row) == last);
    let open: Vec<&str> = open.map(|row| row[0].as_str()).collect();
    assert_eq!(open, OPEN, "{provider}: {ranges:?}");
    let closed = ranges.iter().filter(|row| ends(row) < last);
    let closed: Vec<&str> = closed.map(|row| row[0].as_str()).collect();
    assert_eq!(closed, ["ended", "stopped"], "{provider}: {ranges:?}");
    let line = outcome
        .stderr
        .lines()
        .find(|line| line.contains("4 ROCTx ranges had not been ended"));
    let line = line.unwrap_or_else(|| panic!("{provider}: {}", outcome.stderr));
    for message in OPEN {
        assert!(line.contains(message), "{provider}: {line}");
    }
}

#[test]
fn open_marker_ranges_last_until_the_program_ends() {
    for provider in ["sdk", "direct"] {
        let outcome = Rpd::new(TRACES)
            .option([
                "--provider",
                provider,
                "-f",
                "rocpd",
                "csv",
                "json",
                "pftrace",
            ])
            .workload("open-ranges", [""; 0])
            .success();
        check(&outcome, provider);
        let table = outcome.csv("marker_api_trace");
        for message in OPEN {
            assert_eq!(table.count("Function", message), 1, "{provider}: {message}");
        }
        let json = std::fs::read_to_string(outcome.file("_results.json")).expect("JSON");
        let trace = std::fs::read(outcome.file("_results.pftrace")).expect("a trace");
        for message in OPEN {
            assert!(json.contains(message), "{provider}: {message}");
            let found = trace
                .windows(message.len())
                .any(|part| part == message.as_bytes());
            assert!(found, "{provider}: {message}");
        }
    }
}

#[test]
fn open_marker_ranges_of_a_killed_program_end_with_its_last_record() {
    for provider in ["sdk", "direct"] {
        let outcome = Rpd::new(TRACES)
            .option(["--provider", provider, "-f", "rocpd"])
            .workload("open-ranges", ["kill"]);
        check(&outcome.expect_code(137), provider);
    }
}
