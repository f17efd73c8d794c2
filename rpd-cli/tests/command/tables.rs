//! Tables on terminals and elsewhere: the options that all commands with tables have, and what a narrow terminal shows.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../rpd-formats/testdata/trace_results.db"
);

/// Commands with tables of the golden database, whose first words select one.
const COMMANDS: [&[&str]; 3] = [
    &["summary", GOLDEN],
    &["diff", GOLDEN, GOLDEN],
    &["query", GOLDEN, "SELECT name, duration FROM kernels"],
];

fn command(words: &[&str], options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rpd"));
    command
        .args(words)
        .args(options)
        .stdin(Stdio::null())
        .env_remove("COLUMNS")
        .env_remove("ROCPD_OUTPUT_NAME")
        .env_remove("ROCPD_OUTPUT_PATH");
    command
}

fn piped(words: &[&str], options: &[&str]) -> Output {
    command(words, options).output().expect("rpd runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a command that must succeed, and writes it to a pipe.
fn good(words: &[&str], options: &[&str]) -> String {
    let output = piped(words, options);
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{words:?} {options:?}: {stderr}");
    text(&output.stdout)
}

/// A terminal of this width; what is written to it can be read from the other end.
fn terminal(columns: u16) -> (File, OwnedFd) {
    let (mut own, mut other) = (-1, -1);
    let null = std::ptr::null_mut();
    let size = libc::winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the places and the size are valid, the other arguments may be null.
    let status = unsafe { libc::openpty(&mut own, &mut other, null, null.cast(), &raw const size) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call has just opened both, and nothing else owns them.
    unsafe { (File::from_raw_fd(own), OwnedFd::from_raw_fd(other)) }
}

/// What a command that must succeed shows on a terminal of this width, and its standard error.
fn shown(mut command: Command, columns: u16) -> (Vec<String>, String) {
    let (mut own, other) = terminal(columns);
    let child = command.stdout(other).stderr(Stdio::piped()).spawn();
    // It has a copy of the terminal.
    drop(command);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // The end of a terminal is an error.
        let _ = own.read_to_end(&mut bytes);
        text(&bytes)
    });
    let output = child
        .expect("rpd starts")
        .wait_with_output()
        .expect("ended");
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let shown = reader.join().expect("read");
    (shown.lines().map(str::to_owned).collect(), stderr)
}

fn width(line: &str) -> usize {
    line.chars().count()
}

/// A statement whose result is one row: a long name of a kernel, and a number.
const LONG: &str = "SELECT 'void begin<' || replace(hex(zeroblob(120)), '0', 'x') || '>(finish)' AS name, \
    1234567890123456 AS total";

#[test]
fn a_terminal_shows_the_ends_of_long_names_and_whole_numbers() {
    let words = ["query", GOLDEN, LONG];
    for columns in [40, 60, 80, 200] {
        let (lines, stderr) = shown(command(&words, &[]), columns);
        let row = lines.last().expect("a row");
        assert_eq!(width(row), usize::from(columns), "{lines:?}");
        let (name, number) = row.rsplit_once(' ').expect("two cells");
        assert!(name.trim_start().starts_with("void beg"), "{row}");
        assert!(name.ends_with("finish)"), "{row}");
        assert_eq!(name.matches('…').count(), 1, "{row}");
        assert_eq!(number, "1234567890123456");
        assert_eq!(stderr, "");
    }
    // A terminal that is wide enough leaves the name alone.
    let (lines, _) = shown(command(&words, &[]), 400);
    assert!(!lines.concat().contains('…'), "{lines:?}");
}

#[test]
fn wide_tables_pipes_and_files_have_whole_names() {
    let words = ["query", GOLDEN, LONG];
    let whole = good(&words, &[]);
    assert!(whole.contains(&"x".repeat(240)), "{whole}");
    let (lines, _) = shown(command(&words, &["--wide"]), 60);
    assert_eq!(lines, whole.lines().collect::<Vec<_>>());
    // The width of a terminal is not that of a pipe.
    let mut narrow = command(&words, &[]);
    narrow.env("COLUMNS", "40");
    assert_eq!(text(&narrow.output().expect("rpd runs").stdout), whole);
    let directory = tempfile::tempdir().expect("a directory");
    let mut to_file = command(&words, &["-o", "out"]);
    to_file.current_dir(directory.path());
    shown(to_file, 60);
    let file = std::fs::read_to_string(directory.path().join("out.txt"));
    assert_eq!(file.expect("written"), whole);
}

#[test]
fn the_variable_columns_goes_before_the_width_of_the_terminal() {
    let mut narrow = command(&["query", GOLDEN, LONG], &[]);
    narrow.env("COLUMNS", "50");
    let (lines, _) = shown(narrow, 120);
    assert!(lines.iter().all(|line| width(line) <= 50), "{lines:?}");
}

/// The values of a column in CSV whose fields have no quotes behind it.
fn last_fields(csv: &str, from_end: usize) -> Vec<String> {
    let rows = csv.lines().skip(1);
    rows.map(|row| row.rsplit(',').nth(from_end).expect("a field").to_owned())
        .collect()
}

#[test]
fn summary_and_diff_fit_terminals_and_keep_their_numbers() {
    for columns in [80, 100, 160] {
        let (lines, _) = shown(command(&["summary", GOLDEN], &[]), columns);
        let widest = lines.iter().map(|line| width(line)).max();
        assert!(widest <= Some(columns.into()), "{columns}: {lines:?}");
        let words: Vec<&str> = lines.iter().flat_map(|line| line.split(' ')).collect();
        let directory = tempfile::tempdir().expect("a directory");
        let mut tables = command(&["summary", GOLDEN], &["-f", "csv"]);
        let status = tables.current_dir(directory.path()).output();
        assert!(status.expect("rpd runs").status.success());
        for table in std::fs::read_dir(directory.path()).expect("tables") {
            let csv = std::fs::read_to_string(table.expect("a file").path());
            // DURATION (nsec)
            for number in last_fields(&csv.expect("text"), 5) {
                assert!(words.contains(&&*number), "{columns}: {number}: {lines:?}");
            }
        }
        let (lines, stderr) = shown(command(&["diff", GOLDEN, GOLDEN], &[]), columns);
        let widest = lines.iter().map(|line| width(line)).max();
        assert!(widest <= Some(columns.into()), "{columns}: {lines:?}");
        assert!(
            lines[1].contains("Typical") || lines[0].contains("Typical"),
            "{lines:?}"
        );
        assert!(
            stderr.contains("the terminal has no room for ")
                && stderr.contains(", P95 B (nsec)")
                && stderr.contains("; --wide shows all columns"),
            "{stderr}"
        );
        assert!(
            stderr.contains(" more rows; --limit 0 shows all"),
            "{stderr}"
        );
    }
}

#[test]
fn an_unknown_column_is_refused_with_the_columns_that_there_are() {
    for (words, columns) in COMMANDS.iter().zip([
        "Name, Calls, DURATION (nsec)",
        "Kind, Name, Share %",
        "name, duration",
    ]) {
        let output = piped(words, &["--sort", "nothing"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let expected = format!(
            "{}: --sort 'nothing': the table has no such column; choose from {columns}",
            words[0]
        );
        assert!(stderr.contains(&expected), "{stderr}");
    }
}

#[test]
fn sort_and_limit_choose_the_rows_of_every_command() {
    let numbers = |csv: &str, from_end: usize| -> Vec<f64> {
        let fields = last_fields(csv, from_end);
        fields
            .iter()
            .map(|field| field.parse().expect("a number"))
            .collect()
    };
    let query = good(COMMANDS[2], &["-f", "csv", "--sort", "duration"]);
    let sorted = numbers(&query, 0);
    assert!(
        sorted.len() > 3 && sorted.is_sorted_by(|a, b| a >= b),
        "{query}"
    );
    let first = good(COMMANDS[2], &["-f", "csv", "--sort", "dur", "--limit", "2"]);
    assert_eq!(numbers(&first, 0), sorted[..2]);
    let names = good(COMMANDS[2], &["-f", "csv", "--sort", "name"]);
    let names = names.lines().skip(1);
    let names: Vec<&str> = names
        .map(|row| row.rsplit_once(',').expect("two fields").0)
        .collect();
    assert!(names.is_sorted(), "{names:?}");
    let diff = good(
        COMMANDS[1],
        &["-f", "csv", "--sort", "p95-b", "--limit", "5"],
    );
    let p95 = numbers(&diff, 0);
    assert!(p95.len() == 5 && p95.is_sorted_by(|a, b| a >= b), "{diff}");
    let all = good(COMMANDS[1], &["-f", "csv"]);
    assert_eq!(all, good(COMMANDS[1], &["-f", "csv", "--limit", "0"]));
}

#[test]
fn units_change_times_and_their_titles_alone() {
    let of = |options: &[&str]| {
        let words = ["-f", "csv", "--limit", "3"];
        good(COMMANDS[1], &[&words[..], options].concat())
    };
    let (nsec, usec) = (of(&[]), of(&["--units", "usec"]));
    let title = nsec.lines().next().expect("a title");
    assert_eq!(
        usec.lines().next(),
        Some(&*title.replace("(nsec)", "(usec)"))
    );
    let fields = last_fields(&nsec, 0).into_iter().zip(last_fields(&usec, 0));
    for (nanoseconds, microseconds) in fields {
        let [a, b] = [nanoseconds, microseconds].map(|text| text.parse::<f64>().expect("a number"));
        assert!((a / 1000.0 - b).abs() < 1e-9, "{a} {b}");
    }
    // Calls
    assert_eq!(last_fields(&nsec, 17), last_fields(&usec, 17));
    let refused = piped(COMMANDS[1], &["--units", "hours"]);
    assert_eq!(refused.status.code(), Some(2));
    let stderr = text(&refused.stderr);
    assert!(
        stderr.contains("nsec") && stderr.contains("hours"),
        "{stderr}"
    );
}

#[test]
fn every_command_with_tables_has_the_same_options() {
    for (words, has_times) in [
        (&["summary"][..], true),
        (&["diff"], true),
        (&["stacks"], true),
        (&["live"], true),
        (&["query"], false),
        (&["hot"], false),
        (&["att", "decode"], false),
        (&["capture", "show"], false),
    ] {
        let help = good(words, &["--help"]);
        for option in ["--sort <COLUMN>", "--limit <N>", "--wide"] {
            assert!(help.contains(option), "{words:?} {option}: {help}");
        }
        assert_eq!(
            help.contains("--units <UNIT>"),
            has_times,
            "{words:?}: {help}"
        );
    }
}

#[test]
fn tables_by_rank_name_the_process_in_each_row() {
    let table = good(&["summary", GOLDEN], &["--summary-by-rank"]);
    let part = table
        .split_once("Summary files by rank:")
        .expect("the part")
        .1;
    let header = part.lines().find(|line| line.contains("Calls"));
    let header: Vec<&str> = header.expect("a header").split_whitespace().collect();
    assert_eq!(header[..3], ["ProcessID", "Hostname", "Name"]);
    assert!(Path::new(GOLDEN).is_file());
}
