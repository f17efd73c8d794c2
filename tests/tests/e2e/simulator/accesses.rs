//! Memory accesses in captures, of kernels whose patterns are known.

use std::path::Path;

use rpd_tests::run::{Outcome, Rpd};

/// Captures the workload with its accesses, into `capture`.
fn traced(options: &[&str], arguments: &[&str]) -> Outcome {
    Rpd::plain(["capture", "--backend", "sim", "-o", "capture", "--trace"])
        .option(options)
        .workload("accesses", arguments)
}

fn shown(outcome: &Outcome, options: &[&str]) -> Outcome {
    Rpd::plain(["capture", "show"])
        .option([outcome.directory.path().join("capture")])
        .option(options)
        .run()
}

/// The row of a line of the source and an access, from `space` on.
fn row(outcome: &Outcome, line: u32, access: &str) -> String {
    let csv = shown(outcome, &["-f", "csv"]).success().stdout;
    let place = format!(",tests/workloads/kernels/accesses.hip,{line},");
    let found = csv.lines().find_map(|row| {
        let (_, rest) = row.split_once(&place)?;
        rest.starts_with(access).then(|| rest.to_owned())
    });
    found.unwrap_or_else(|| panic!("no {access} in line {line}:\n{csv}"))
}

#[test]
fn mem_trace_counts_lanes_bytes_and_cache_lines_of_each_pattern() {
    // Space, access, instructions, executions, lanes, bytes, cache lines, ideal ones, distinct ones, coalescing, cycles of LDS, those of
    // conflicts, stride, its share. 4 waves of 64 lanes.
    let cases: [(&[&str], u32, &str); 8] = [
        (
            &["coalesced", "0"],
            7,
            "global,load,1,4,256,1024,16,16,16,1.0,,,4,1.0",
        ),
        (
            &["coalesced", "0"],
            7,
            "global,store,1,4,256,1024,16,16,16,1.0,,,4,1.0",
        ),
        (
            &["strided", "32"],
            13,
            "global,load,1,4,256,1024,256,16,256,0.0625,,,128,1.0",
        ),
        (
            &["strided", "2"],
            13,
            "global,load,1,4,256,1024,32,16,32,0.5,,,8,1.0",
        ),
        (
            &["broadcast", "0"],
            20,
            "global,load,1,4,256,1024,4,4,1,1.0,,,0,1.0",
        ),
        (&["banks", "1"], 28, "lds,store,1,4,256,1024,,,,,8,0,4,1.0"),
        (
            &["banks", "32"],
            28,
            "lds,store,1,4,256,1024,,,,,256,248,128,1.0",
        ),
        (
            &["banks", "33"],
            28,
            "lds,store,1,4,256,1024,,,,,8,0,132,1.0",
        ),
    ];
    for (arguments, line, expected) in cases {
        let outcome = traced(&["mem"], arguments).success();
        assert_eq!(outcome.stdout, "ended\n");
        let access: Vec<&str> = expected.splitn(3, ',').take(2).collect();
        assert_eq!(
            row(&outcome, line, &access.join(",")),
            expected,
            "{arguments:?}"
        );
    }
}

#[test]
fn mem_table_shows_kernels_lines_and_shares() {
    let outcome = traced(&["mem"], &["strided", "32", "3"]).success();
    assert!(
        outcome.stderr.contains("rpd: recorded memory accesses, "),
        "{}",
        outcome.stderr
    );
    let table = shown(&outcome, &[]).success().stdout;
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(table.lines().next(), Some("strided: 3 dispatches"));
    assert_eq!(
        lines[2].join(" "),
        "tests/workloads/kernels/accesses.hip:13 global load 12 768 3072 768 256 6.2 % - 128 bytes (100.0 %)"
    );
    assert_eq!(
        lines[3].join(" "),
        "tests/workloads/kernels/accesses.hip:14 global store 12 768 3072 48 16 100.0 % - 4 bytes (100.0 %)"
    );
}

#[test]
fn mem_trace_of_one_dispatch_has_that_dispatch_alone() {
    let outcome = traced(&["mem", "--kernel", "strided#2"], &["strided", "1", "3"]).success();
    let first = shown(&outcome, &[]).success().stdout;
    assert!(first.starts_with("strided: 1 dispatch\n"), "{first}");
    let chosen = shown(&outcome, &["--kernel", "strided#2"]).success().stdout;
    assert_eq!(chosen, first);
    let other = shown(&outcome, &["--kernel", "strided#1"]).expect_code(1);
    assert!(
        other.stderr.contains("no accesses of such kernels"),
        "{}",
        other.stderr
    );
    // The runtime's own kernels are recorded when they are named.
    let fill = traced(&["mem", "--kernel", "fillBuffer"], &["strided", "1"]).success();
    let table = shown(&fill, &[]).success().stdout;
    assert!(
        table.starts_with("__amd_rocclr_fillBufferAligned: 2 dispatches\n"),
        "{table}"
    );
}

#[test]
fn inst_trace_counts_every_instruction() {
    let outcome = traced(&["inst"], &["coalesced", "0"]).success();
    let csv = shown(&outcome, &["-f", "csv"]).success().stdout;
    let plain = csv.lines().filter(|row| row.contains(".hip,7,,,")).count();
    assert_eq!(plain, 1, "{csv}");
    assert!(row(&outcome, 7, "global,load").starts_with("global,load,1,4,256,"));
}

#[test]
fn mem_trace_of_a_killed_program_keeps_its_dispatches() {
    let outcome = traced(&["mem"], &["coalesced", "0", "5", "9"]).expect_code(137);
    let table = shown(&outcome, &[]).success().stdout;
    assert!(table.starts_with("coalesced: 5 dispatches\n"), "{table}");
}

#[test]
fn max_bytes_ends_a_mem_trace_with_a_message() {
    let outcome = traced(&["mem", "--max-bytes", "2K"], &["strided", "1", "200"]);
    let shown = shown(&outcome, &[]).success();
    assert!(
        shown
            .stderr
            .contains(" is not recorded to its end: there was no more room"),
        "{}",
        shown.stderr
    );
}

#[test]
fn mem_table_is_written_as_csv_and_parquet() {
    let outcome = traced(&["mem"], &["coalesced", "0"]).success();
    let file = |name: &str| outcome.directory.path().join(name);
    let (csv, parquet) = (file("table.csv"), file("table.parquet"));
    let path = |path: &Path| path.display().to_string();
    let options = ["-f", "csv", "-o", &path(&csv), "--parquet", &path(&parquet)];
    let printed = shown(&outcome, &options).success();
    assert_eq!(printed.stdout, "");
    let text = std::fs::read_to_string(csv).expect("a table");
    assert_eq!(text, shown(&outcome, &["-f", "csv"]).success().stdout);
    let bytes = std::fs::read(parquet).expect("a table");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn mem_trace_of_a_replay_shows_accesses_of_the_program() {
    let capture = Rpd::plain(["capture", "--backend", "sim", "-o", "capture"])
        .workload("accesses", ["strided", "32"])
        .success();
    let path = capture
        .directory
        .path()
        .join("capture")
        .display()
        .to_string();
    let replay = [
        "replay",
        &path,
        "--backend",
        "sim",
        "--va",
        "remap",
        "--kernel",
        "strided",
    ];
    let mut words = vec![rpd_tests::install::rpd().display().to_string()];
    words.extend(replay.map(str::to_owned));
    let outcome = Rpd::plain([
        "capture",
        "--backend",
        "sim",
        "-o",
        "capture",
        "--trace",
        "mem",
    ])
    .target(words)
    .success();
    let table = shown(&outcome, &["--kernel", "strided#1"]).success().stdout;
    assert!(table.contains("accesses.hip:13  global load"), "{table}");
}

#[test]
fn capture_trace_refuses_wrong_words_and_kernels() {
    let refused = |arguments: &[&str], status: i32, message: &str| {
        let outcome = Rpd::plain(arguments).run().expect_code(status);
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    };
    refused(
        &["capture", "--trace", "all", "--", "true"],
        2,
        "expected mem or inst",
    );
    refused(&["capture", "--kernel", "k", "--", "true"], 2, "--trace");
    refused(
        &["capture", "--trace", "mem", "--kernel", "k#0", "--", "true"],
        2,
        "expected a name, or a name and the number of a dispatch such as scale#3",
    );
}

#[test]
fn show_refuses_a_capture_without_recorded_accesses() {
    let outcome = Rpd::plain(["capture", "--backend", "sim", "-o", "capture"])
        .workload("accesses", ["coalesced", "0"])
        .success();
    let none = shown(&outcome, &[]).expect_code(1);
    assert!(
        none.stderr.contains(
            "no memory accesses were recorded (rpd capture --trace mem); a number shows a call"
        ),
        "{}",
        none.stderr
    );
}

#[test]
fn show_refuses_a_damaged_recording_of_accesses() {
    let traced = traced(&["mem"], &["coalesced", "0"]).success();
    let file = traced
        .directory
        .path()
        .join("capture/accesses/accesses.bin");
    let mut bytes = std::fs::read(&file).expect("a recording");
    bytes[8] = 77;
    std::fs::write(&file, bytes).expect("written");
    let damaged = shown(&traced, &[]).expect_code(2);
    assert!(
        damaged.stderr.contains("accesses.bin: not a recording of memory accesses, or damaged at byte 8: a block of unknown kind"),
        "{}",
        damaged.stderr
    );
}
