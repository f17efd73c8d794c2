//! Archives as `otf2-print` reads them, the reader of the original.

use crate::support::write as written;

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rpd_core::domain::Kind;
use rpd_core::ids::{CorrelationId, Nanoseconds, ProcessId, ThreadId};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{ArgsRef, CallRow, LoadOptions, Session};
use rpd_formats::rocpd::read::Database;
use rpd_formats::{WriteError, otf2};
use rpd_tests::skips::{skipped, tool_for};
use rusqlite::{Connection, OpenFlags};
use written::write_one;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");

fn target(directory: &Path) -> Target {
    Target {
        directory: directory.to_owned(),
        prefix: "sub/trace".to_owned(),
    }
}

/// Whether library and reader are installed; the checks are skipped when not.
fn can_run() -> bool {
    if let Err(error) = otf2::check(&Options::default()) {
        let text = error.to_string();
        assert!(text.contains("libopen-trace-format2-10"), "{text}");
        skipped("archives in the eyes of otf2-print", &text);
        return false;
    }
    tool_for("archives in the eyes of otf2-print", "otf2-print").is_some()
}

fn print(anchor: &Path, arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new("otf2-print")
        .args(arguments)
        .arg(anchor)
        .output()
        .expect("otf2-print");
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success() && stderr.is_empty(), "{stderr}");
    String::from_utf8(stdout).expect("text")
}

/// `(text before, text in quotes, text after)` of the first quoted text that a reference follows.
fn name(line: &str) -> (&str, &str) {
    let begin = line.find("Name: \"").expect("a name") + 7;
    let end = line.find("\" <").expect("a reference");
    (&line[begin..end], &line[end..])
}

fn field<'a>(text: &'a str, key: &str) -> &'a str {
    let begin = text.find(key).expect(key) + key.len();
    text[begin..].split(',').next().expect("text").trim()
}

/// Definitions in the form of `testdata/trace_otf2.txt`, sorted.
fn definitions(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let word = line.split(' ').next()?;
            match word {
                "REGION" => {
                    let (name, rest) = name(line);
                    let (role, paradigm) = (field(rest, "Role: "), field(rest, "Paradigm: "));
                    Some(format!("region\t{name}\t{role}\t{paradigm}"))
                }
                "LOCATION" => {
                    let (name, rest) = name(line);
                    let (kind, events) = (field(rest, "Type: "), field(rest, "# Events: "));
                    let group = field(rest, "Group: ").split('"').nth(1)?;
                    Some(format!("location\t{name}\t{kind}\t{events}\t{group}"))
                }
                "LOCATION_GROUP" => {
                    let (name, rest) = name(line);
                    Some(format!("group\t{name}\t{}", field(rest, "Type: ")))
                }
                _ => None,
            }
        })
        .collect();
    lines.sort_unstable();
    lines
}

/// Slices by category, after a check of the rules for every location: times ascend, regions nest.
fn slices(text: &str) -> BTreeMap<String, Vec<(u64, u64, String)>> {
    let mut open: BTreeMap<&str, Vec<(u64, &str, String)>> = BTreeMap::new();
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let mut result: BTreeMap<String, Vec<(u64, u64, String)>> = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut words = line.split_whitespace();
        let (Some(event @ ("ENTER" | "LEAVE")), Some(location), Some(time)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let time: u64 = time.parse().expect("a time");
        let region = line.split_once("Region: \"").expect("a region").1;
        let region = region.rsplit_once("\" <").expect("a reference").0;
        assert!(last.insert(location, time).is_none_or(|last| last <= time));
        let stack = open.entry(location).or_default();
        if event == "ENTER" {
            let attribute = lines.next().expect("attributes");
            assert!(
                attribute.contains("(\"category\" <0>; STRING; "),
                "{attribute}"
            );
            let category = attribute.rsplit('"').nth(1).expect("a category");
            stack.push((time, region, category.to_owned()));
        } else {
            let (start, entered, category) = stack.pop().expect("entered");
            assert_eq!(entered, region);
            let slices = result.entry(category).or_default();
            slices.push((start, time, region.to_owned()));
        }
    }
    assert!(open.values().all(Vec::is_empty));
    result.values_mut().for_each(|slices| slices.sort());
    result
}

#[test]
fn otf2_archive_has_the_definitions_of_the_original_and_every_record() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    if !can_run() {
        return;
    }
    let path = format!("file:{TESTDATA}/trace_results.db?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let database = Connection::open_with_flags(path, flags).expect("the golden database");
    let session = support::session(&database);
    // Twice: the second replaces the first.
    for _ in 0..2 {
        let file =
            write_one(Format::Otf2, &session, None, &Options::default(), &target).expect("written");
        assert_eq!(file, Some(target.file("results.otf2")));
    }
    let mut names: Vec<_> = fs::read_dir(target.parent())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "trace_results",
            "trace_results.def",
            "trace_results.marker",
            "trace_results.otf2"
        ]
    );

    let anchor = target.file("results.otf2");
    let golden = fs::read_to_string(format!("{TESTDATA}/trace_otf2.txt")).expect("testdata");
    let text = print(&anchor, &["-G"]);
    assert_eq!(
        definitions(&text),
        golden.lines().collect::<Vec<_>>(),
        "{text}"
    );
    let clock = text
        .lines()
        .find(|line| line.starts_with("CLOCK_PROPERTIES"))
        .expect("a clock");
    assert!(
        clock.contains(
            "Ticks per Seconds: 1000000000, Global Offset: 5760439747740, Length: 726967433"
        ),
        "{clock}"
    );

    let slices = slices(&print(&anchor, &[]));
    let mut expected: BTreeMap<String, Vec<(u64, u64, String)>> = BTreeMap::new();
    let mut add = |category: &str, start: Nanoseconds, end: Nanoseconds, name: &str| {
        let slices = expected.entry(category.to_owned()).or_default();
        slices.push((start.0, end.0, name.to_owned()));
    };
    let calls = &session.calls;
    for index in 0..calls.len() {
        if session.operation_name(calls.operation[index]) != "roctxMarkA" {
            let name = session.strings.get(session.call_label(index));
            let category = session.call(index).domain().stem();
            add(category, calls.start[index], calls.end[index], name);
        }
    }
    let labels = rpd_core::session::KernelLabels::new(&session, Default::default());
    let table = &session.dispatches;
    for index in 0..table.len() {
        let name = labels.dispatch(index);
        add(
            "kernel_dispatch",
            table.start[index],
            table.end[index],
            name,
        );
    }
    let table = &session.copies;
    for index in 0..table.len() {
        let name = session.operation_name(table.operation[index]);
        add("memory_copy", table.start[index], table.end[index], name);
    }
    let table = &session.allocations;
    for index in 0..table.len() {
        let name = session.operation_name(table.operation[index]);
        add(
            "memory_allocation",
            table.start[index],
            table.end[index],
            name,
        );
    }
    expected.values_mut().for_each(|slices| slices.sort());
    assert_eq!(slices, expected);
}

fn call(session: &mut Session, name: &str, start: u64, end: u64, thread: u32) {
    let operation = session.add_operation(Kind::HipRuntime, name);
    let calls = &mut session.calls;
    calls.push(CallRow {
        operation,
        message: Default::default(),
        start: Nanoseconds(start),
        end: Nanoseconds(end),
        thread: ThreadId(thread),
        correlation: CorrelationId(start),
        ancestor: CorrelationId(0),
        args: ArgsRef::default(),
    });
}

#[test]
fn otf2_archive_separates_crossing_calls_and_keeps_their_times() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    if !can_run() {
        return;
    }
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(7);
    session.process.command = vec!["an \"odd\" name".to_owned()];
    let calls = [
        ("outer", 10, 30),
        ("crossing", 20, 40),
        ("inner", 20, 30),
        ("empty", 25, 25),
        ("at once", 40, 50),
        ("schön <b>", 50, 60),
    ];
    for (name, start, end) in calls {
        call(&mut session, name, start, end, 7);
    }
    write_one(Format::Otf2, &session, None, &Options::default(), &target).expect("written");
    let anchor = target.file("results.otf2");
    let text = print(&anchor, &["-G"]);
    let locations: Vec<_> = definitions(&text)
        .into_iter()
        .filter(|line| line.starts_with("location"))
        .collect();
    assert_eq!(
        locations,
        [
            "location\tThread 7\tCPU_THREAD\t10\tan ",
            "location\tThread 7\tCPU_THREAD\t2\tan ",
        ]
    );
    let found: Vec<_> = slices(&print(&anchor, &[]))
        .remove("hip_api")
        .expect("slices")
        .into_iter()
        .map(|(start, end, _)| (start, end))
        .collect();
    assert_eq!(
        found,
        [(10, 30), (20, 30), (20, 40), (25, 25), (40, 50), (50, 60)]
    );
}

#[test]
fn failed_otf2_archive_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    if !can_run() {
        return;
    }
    let mut session = Session::default();
    session.strings.intern("");
    assert_eq!(
        write_one(Format::Otf2, &session, None, &Options::default(), &target)
            .expect("nothing to write"),
        None
    );
    call(&mut session, "a", 1, 2, 3);
    // A file that belongs to no archive is at the place of the archive's directory.
    let taken = target.file("results");
    fs::create_dir_all(&taken).expect("a directory");
    fs::write(taken.join("notes.txt"), "mine").expect("a file");
    fs::write(taken.join("1.evt"), "old").expect("a file");
    let Err(WriteError::Io { path, .. }) =
        write_one(Format::Otf2, &session, None, &Options::default(), &target)
    else {
        panic!("written over the user's directory");
    };
    assert_eq!(path, taken);
    let left: Vec<_> = fs::read_dir(target.parent())
        .expect("a directory")
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(taken.join("notes.txt").exists());
}

#[test]
fn otf2_archive_of_counters_alone_has_no_events() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    if !can_run() {
        return;
    }
    let path = Path::new(TESTDATA).join("counters/trace_results.db");
    let database = Database::open(&path).expect("the golden database");
    let (mut session, _) = database
        .session(&database.recordings()[0], LoadOptions::default())
        .expect("a session");
    session.dispatches = Default::default();
    let anchor = write_one(Format::Otf2, &session, None, &Options::default(), &target)
        .expect("written")
        .expect("an archive");
    // Nothing happened anywhere: there is no location either, which the reader notes with the original's archives too.
    let output = Command::new("otf2-print").arg("-G").arg(&anchor).output();
    let text = String::from_utf8(output.expect("otf2-print").stdout).expect("text");
    assert!(text.contains("CLOCK_PROPERTIES"), "{text}");
    assert!(text.contains("LOCATION_GROUP"), "{text}");
}

#[test]
fn otf2_archive_has_marks_as_markers_of_their_thread() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    if !can_run() {
        return;
    }
    let mut session = Session::default();
    session.strings.intern("");
    call(&mut session, "hipInit", 10, 20, 7);
    for (text, at, thread) in [("begin", 12, 7), ("schön <b>", 30, 8)] {
        let operation = session.add_operation(Kind::MarkerCoreRange, "roctxMarkA");
        let message = session.strings.intern(text);
        session.calls.push(CallRow {
            operation,
            message,
            start: Nanoseconds(at),
            end: Nanoseconds(at),
            thread: ThreadId(thread),
            ..CallRow::default()
        });
    }
    let anchor = write_one(Format::Otf2, &session, None, &Options::default(), &target)
        .expect("written")
        .expect("an archive");
    assert!(anchor.with_extension("marker").exists());
    let Ok(output) = Command::new("otf2-marker").arg(&anchor).output() else {
        eprintln!("skipped: there is no otf2-marker (package otf2-tools)");
        return;
    };
    let text = String::from_utf8(output.stdout).expect("text");
    for (line, location) in [("begin", 1), ("schön <b>", 2)] {
        let found = text.lines().find(|found| found.contains(line));
        let found = found.unwrap_or_else(|| panic!("{line}: {text}"));
        assert!(found.contains(&format!("LOCATION:{location}")), "{found}");
    }
    // An archive without marks has no markers, also where another had some.
    let mut session = Session::default();
    session.strings.intern("");
    call(&mut session, "hipInit", 10, 20, 7);
    write_one(Format::Otf2, &session, None, &Options::default(), &target).expect("written");
    assert!(!anchor.with_extension("marker").exists());
}
