//! Runs the small program under the collector and reads the spool.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;

use rpd_spool::format::{
    Allocation, CallRecord, Copy, Dispatch, Process, ProcessTotals, Region, Scratch, TimedText, tag,
};
use rpd_spool::reader::{ProcessSpool, Record, processes};
use rpd_spool::{COLLECT_VARIABLE, SPOOL_VARIABLE};
use tempfile::TempDir;

/// Path of the built program that is its own provider.
pub(crate) fn provider() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("provider", &[]))
}

/// The program as a provider that cannot count.
pub(crate) fn provider_without_counting() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("provider-without-counting", &["-DWITHOUT_COUNTING"]))
}

/// The program as a provider that has no thread traces.
pub(crate) fn provider_without_tracing() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("provider-without-tracing", &["-DWITHOUT_TRACING"]))
}

/// The program as a provider that has kinds of newer SDKs.
pub(crate) fn newer_provider() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("provider-newer", &["-DNEWER"]))
}

fn build(name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/provider.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-rdynamic"])
        .args(["-pthread", "-o"])
        .arg(&program)
        .args(flags)
        .arg(source)
        .status()
        .expect("a C compiler");
    assert!(status.success());
    program
}

/// The built library: beside the directory of the test programs.
pub(crate) fn collector() -> PathBuf {
    let mut path = std::env::current_exe().expect("the test's own path");
    path.pop();
    let beside = path.join("librpd_collect.so");
    path.pop();
    let uplifted = path.join("librpd_collect.so");
    [beside, uplifted]
        .into_iter()
        .filter(|path| path.exists())
        .max_by_key(|path| path.metadata().and_then(|found| found.modified()).ok())
        .expect("cargo builds the library before its tests")
}

/// Content of one record of a thread stream.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) operation: u32,
    pub(crate) flags: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) correlation: u64,
    pub(crate) ancestor: u64,
    pub(crate) retval: u64,
    pub(crate) tail: Vec<u8>,
}

/// The records of one process.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) process: Option<Process>,
    pub(crate) totals: Option<ProcessTotals>,
    pub(crate) calls: Vec<Call>,
    pub(crate) dispatches: Vec<Dispatch>,
    pub(crate) copies: Vec<Copy>,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) scratch: Vec<Scratch>,
    pub(crate) regions: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) tags: Vec<u16>,
    pub(crate) dropped: u64,
    pub(crate) streams: usize,
}

fn read(directory: &Path) -> Recorded {
    let mut found = Recorded::default();
    let spool = ProcessSpool::open(directory).expect("readable");
    found.streams = spool.streams.len();
    for stream in &spool.streams {
        let mut records = stream.records();
        while let Some(record) = records.next() {
            found.tags.push(record.header.tag);
            match record.header.tag {
                tag::PROCESS => found.process = record.parse::<Process>().map(|found| found.0),
                tag::TOTALS => found.totals = record.parse::<ProcessTotals>().map(|found| found.0),
                tag::API => {
                    let (call, tail) = record.parse::<CallRecord>().expect("whole");
                    found.calls.push(Call {
                        operation: call.operation,
                        flags: call.flags,
                        start: call.start,
                        end: call.end,
                        correlation: call.correlation,
                        ancestor: call.ancestor,
                        retval: call.retval,
                        tail: tail.to_vec(),
                    });
                }
                tag::DISPATCH => {
                    found
                        .dispatches
                        .push(record.parse::<Dispatch>().expect("whole").0);
                }
                tag::COPY => found.copies.push(record.parse::<Copy>().expect("whole").0),
                tag::ALLOCATION => {
                    let (allocation, _) = record.parse::<Allocation>().expect("whole");
                    found.allocations.push(allocation);
                }
                tag::SCRATCH => found
                    .scratch
                    .push(record.parse::<Scratch>().expect("whole").0),
                tag::REGION => {
                    let (_, text) = record.parse_text::<Region>(|r| r.text_len).expect("whole");
                    found.regions.push(text.into_owned());
                }
                tag::NOTE => found.notes.extend(note_text(&record)),
                _ => {}
            }
        }
        assert!(records.damage().is_empty(), "{:?}", records.damage());
        found.dropped += records.dropped();
    }
    found
}

/// Runs `program` under the collector with `files` in the run's directory: its status, what it printed, and the
/// directory.
pub(crate) fn launch(
    program: &Path,
    options: &str,
    arguments: &[&str],
    files: &[(&str, Vec<u8>)],
) -> (ExitStatus, String, TempDir) {
    let run = tempfile::tempdir().expect("temporary directory");
    for (name, content) in files {
        std::fs::write(run.path().join(name), content).expect("written");
    }
    let output = Command::new(program)
        .args(arguments)
        .env(SPOOL_VARIABLE, run.path())
        .env(COLLECT_VARIABLE, options)
        .env("LD_PRELOAD", collector())
        .output()
        .expect("runs");
    assert!(
        output.stderr.is_empty(),
        "the collector must not print: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status, printed, run)
}

/// Runs a scenario; its status, what it printed, and what every process recorded, oldest first.
pub(crate) fn run(options: &str, arguments: &[&str]) -> (ExitStatus, String, Vec<Recorded>) {
    let (status, printed, run) = launch(provider(), options, arguments, &[]);
    let recorded = processes(run.path())
        .expect("listed")
        .iter()
        .map(|directory| read(directory))
        .collect();
    (status, printed, recorded)
}

/// Hands every record that the processes below `run` left to `take`.
pub(crate) fn each_record(run: &Path, mut take: impl FnMut(&Record<'_>)) {
    for directory in processes(run).expect("listed") {
        let spool = ProcessSpool::open(&directory).expect("readable");
        for stream in &spool.streams {
            let mut records = stream.records();
            while let Some(record) = records.next() {
                take(&record);
            }
        }
    }
}

/// The text of a note; `None` for the place of one that no forked child has left.
pub(crate) fn note_text(record: &Record<'_>) -> Option<String> {
    let note = record.parse_text(|note: &TimedText| note.text_len);
    let text = note.expect("whole").1.into_owned();
    (!text.is_empty()).then_some(text)
}

/// As [`run`], for scenarios of one process that end well.
pub(crate) fn run_one(options: &str, arguments: &[&str]) -> Recorded {
    let (status, _, mut recorded) = run(options, arguments);
    assert!(status.success(), "{status}");
    assert_eq!(recorded.len(), 1);
    recorded.remove(0)
}
