//! Measures opening and writing of large recordings: `large-recordings [--texts] [RECORDS [DIRECTORY [STEP...]]]` makes a
//! recording in a temporary folder of the directory and carries out every step (or those named) in its own process, from
//! the recording and from the database that is made of it; commands from the database only. One line per step: records per
//! second and peak memory. With `--texts` each marker has a message of its own, of 1 KiB.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use rpd_core::memory;
use rpd_core::naming::Target;
use rpd_core::options::{Format, KernelNames, Options};
use rpd_core::session::shown::expand;
use rpd_core::session::{LoadOptions, Session};
use rpd_core::spool::format::{self, RecordHeader, api_flag, space, stream, tag};
use rpd_core::spool::writer::{SpoolDirectory, StreamWriter, record_len};
use rpd_formats::rocpd::read::Database;
use rpd_formats::rpd_file::RpdFile;
use rpd_formats::{Output, registry};
use rpd_summary::Statistics;
use zerocopy::{FromZeros, Immutable, IntoBytes};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const OPEN: &str = "open";
const STATISTICS: &str = "statistics";
const EXPORT: &str = "export";

/// The name by which a process of this program is the command.
const COMMAND: &str = "rpd";

/// Commands that read a database, and their words; `DB` stands for it and `OUT` for the folder of outputs.
const COMMANDS: [(&str, &[&str]); 5] = [
    (
        "query",
        &[
            "query",
            "DB",
            "SELECT name, COUNT(*), SUM(duration) FROM regions GROUP BY name",
        ],
    ),
    (
        "query, all rows",
        &[
            "query",
            "DB",
            "SELECT * FROM regions",
            "-f",
            "csv",
            "-d",
            "OUT",
            "-o",
            "regions",
        ],
    ),
    ("summary", &["summary", "DB"]),
    ("diff", &["diff", "DB", "DB"]),
    ("merge", &["merge", "-o", "OUT/merged.db", "DB"]),
];

fn main() -> ExitCode {
    if std::env::args().next().as_deref() == Some(COMMAND) {
        let status = rpd_cli::main();
        eprintln!("{PEAK}{}", peak_memory());
        return status;
    }
    memory::return_large_buffers();
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("large-recordings: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What stands before the peak memory of a command, in KiB.
const PEAK: &str = "peak memory in KiB: ";

/// Runs a command in its own process. Returns its peak memory in KiB.
fn run_command(words: &[&str], database: &Path, outputs: &Path) -> Outcome<u64> {
    let place = |text: &str| -> Outcome<String> {
        let outputs = outputs.to_str().ok_or("the path of outputs is not text")?;
        let database = database
            .to_str()
            .ok_or("the path of the database is not text")?;
        Ok(match text {
            "DB" => database.to_owned(),
            other => other.replacen("OUT", outputs, usize::from(other.starts_with("OUT"))),
        })
    };
    let words: Vec<String> = words
        .iter()
        .map(|word| place(word))
        .collect::<Outcome<_>>()?;
    let output = Command::new(std::env::current_exe()?)
        .arg0(COMMAND)
        .args(words)
        .stdout(Stdio::null())
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    match errors.lines().find_map(|line| line.strip_prefix(PEAK)) {
        Some(peak) if output.status.success() => Ok(peak.parse()?),
        _ => Err(one_line(&errors).into()),
    }
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}

fn measure() -> Outcome {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, step, source, directory] = arguments.as_slice()
        && flag == "--step"
    {
        return carry_out(step, Path::new(source), Path::new(directory));
    }
    let has_texts = arguments.first().is_some_and(|word| word == "--texts");
    if has_texts {
        arguments.remove(0);
    }
    let mut arguments = arguments.into_iter();
    let records: u64 = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    let parent = arguments.next().map_or(".".into(), PathBuf::from);
    let wanted: Vec<String> = arguments.collect();
    let directory = tempfile::tempdir_in(parent)?;
    let outputs = directory.path().join("outputs");
    std::fs::create_dir(&outputs)?;
    let spool = SpoolDirectory::create(directory.path())?;
    record(&spool, records, has_texts);

    let database = directory.path().join("recording.db");
    for source in [spool.path(), &database] {
        let name = if source == database {
            "database"
        } else {
            "recording"
        };
        let formats = Format::ALL.iter().map(|format| format.word());
        for step in formats.chain([OPEN, STATISTICS, EXPORT]) {
            // The database is made of the recording.
            let is_needed = source != database && step == Format::Rocpd.word();
            let is_wanted = wanted.is_empty() || wanted.iter().any(|word| word == step);
            if !is_needed && !is_wanted {
                continue;
            }
            let output = Command::new(std::env::current_exe()?)
                .args(["--step", step])
                .args([source, &outputs])
                .output()?;
            print!(
                "{name}, {step}: {}",
                String::from_utf8_lossy(&output.stdout)
            );
            if !output.status.success() {
                println!(
                    "failed: {}",
                    one_line(&String::from_utf8_lossy(&output.stderr))
                );
            }
            if is_needed {
                std::fs::rename(outputs.join("large_results.db"), &database)?;
            }
            std::fs::remove_dir_all(&outputs)?;
            std::fs::create_dir(&outputs)?;
        }
    }
    for (name, words) in COMMANDS {
        if !wanted.is_empty() && !wanted.iter().any(|word| word == name) {
            continue;
        }
        let begin = Instant::now();
        match run_command(words, &database, &outputs) {
            Ok(peak) => print_figures(&format!("database, {name}: "), records, begin, peak),
            Err(error) => println!("database, {name}: failed: {error}"),
        }
        std::fs::remove_dir_all(&outputs)?;
        std::fs::create_dir(&outputs)?;
    }
    Ok(())
}

/// Prints a line of the output: records per second since `begin`, and `peak` in KiB.
fn print_figures(name: &str, records: u64, begin: Instant, peak: u64) {
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{name}{:.2} M records/s, peak {} MiB",
        records as f64 / seconds / 1e6,
        peak / 1024
    );
}

fn carry_out(step: &str, source: &Path, directory: &Path) -> Outcome {
    let begin = Instant::now();
    let format = Format::from_word(step);
    let load = LoadOptions {
        args: step == EXPORT || format.is_some_and(|format| registry::entry(format).arguments),
        ..LoadOptions::default()
    };
    let session = match source.is_dir() {
        true => Session::open(source, load)?,
        false => {
            let database = Database::open(source)?;
            database.session(&database.recordings()[0], load)?.0
        }
    };
    let names = KernelNames::default();
    let statistics = || Statistics::new(&session, names)?.session_stats();
    match format {
        Some(format) => {
            let needs = registry::entry(format).statistics != registry::StatisticsUse::Unused;
            let stats = needs.then(statistics).transpose()?;
            let output = Output {
                session: &session,
                stats: stats.as_ref(),
                options: &Options::default(),
                target: &Target {
                    directory: directory.to_owned(),
                    prefix: "large".to_owned(),
                },
            };
            rpd_formats::write(format, &output)?;
        }
        None if step == STATISTICS => drop(statistics()?),
        None if step == EXPORT => {
            let mut file = RpdFile::create(directory.join("large.rpd"))?;
            file.add(&session, names, &expand(&session, Default::default()))?;
            file.finish()?;
        }
        None => {}
    }
    print_figures("", session.len() as u64, begin, peak_memory());
    Ok(())
}

/// `VmHWM` in KiB.
fn peak_memory() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

const THREADS: u64 = 4;
const CALLS: u16 = 1;
const MARKERS: u16 = 2;
const COPIES: u32 = 3;
const HOST_TO_DEVICE: u32 = 2;
const AGENT: u64 = 7;
const FIRST_INSTANCE: u64 = 100;
const INSTANCES: u64 = 4;

/// Writes a recording of four threads: of 16 records 11 are calls, two of them with arguments, one is a marker, two are
/// dispatches, one is a copy and one a dispatch with four counted values. With `has_texts` no two markers have the same
/// message.
fn record(directory: &std::sync::Arc<SpoolDirectory>, records: u64, has_texts: bool) {
    let mut meta = StreamWriter::new(directory, "meta".to_owned(), stream::META, 0);
    let mut process = format::Process::new_zeroed();
    process.pid = 1;
    append(&mut meta, tag::PROCESS, 0, process, &[]);
    name(&mut meta, CALLS.into(), u32::MAX, "HIP_RUNTIME_API");
    for operation in 0..400 {
        name(
            &mut meta,
            CALLS.into(),
            operation,
            &format!("hipCall{operation}"),
        );
    }
    name(&mut meta, MARKERS.into(), u32::MAX, "MARKER_CORE_RANGE_API");
    name(&mut meta, MARKERS.into(), 0, "roctxThreadRangeA");
    name(&mut meta, COPIES, u32::MAX, "MEMORY_COPY");
    name(
        &mut meta,
        COPIES,
        HOST_TO_DEVICE,
        "MEMORY_COPY_HOST_TO_DEVICE",
    );
    for id in 1..=8 {
        let text = format!("_Z6kernel{id}Pf.kd");
        let mut symbol = format::KernelSymbol::new_zeroed();
        symbol.id = id;
        symbol.code_object = 1;
        symbol.name_len = text.len() as u32;
        append(&mut meta, tag::KERNEL_SYMBOL, 0, symbol, &[text.as_bytes()]);
    }
    let mut counter = format::Counter::new_zeroed();
    (counter.id, counter.agent) = (1, AGENT);
    let texts = ["SQ_WAVES", "", "SQ", ""].map(counted_text).concat();
    append(&mut meta, tag::COUNTER, 0, counter, &[&texts]);
    for number in 0..INSTANCES {
        let mut instance = format::CounterInstance::new_zeroed();
        (instance.id, instance.counter) = (FIRST_INSTANCE + number, 1);
        append(&mut meta, tag::COUNTER_INSTANCE, 0, instance, &[]);
    }
    for thread in 0..THREADS {
        let tid = 1 + thread as u32;
        let mut writer = StreamWriter::new(directory, format!("t{tid}"), stream::THREAD, tid);
        for index in 0..records / THREADS {
            let number = index * THREADS + thread + 1;
            let start = 1_000_000 + 1000 * index + 100 * thread;
            match index % 16 {
                0..11 => {
                    let mut call = format::ApiCall::new_zeroed();
                    call.operation = (index % 400) as u32;
                    (call.start, call.end) = (start, start + 500);
                    call.correlation = number;
                    let mut arguments = Vec::new();
                    if index % 16 < 2 {
                        call.flags = api_flag::ARGUMENT_TEXTS;
                        let pointer = format!("{:#x}", 4096 * number);
                        arguments = ["void*", "pointer", &pointer].map(counted_text).concat();
                    }
                    append(&mut writer, tag::API, CALLS, call, &[&arguments]);
                }
                11 => {
                    let mut marker = format::ApiCall::new_zeroed();
                    marker.flags = api_flag::MESSAGE;
                    (marker.start, marker.end) = (start, start + 500);
                    marker.correlation = number;
                    let message = match has_texts {
                        true => format!("{number:>1024}"),
                        false => format!("step {}", index % 1000),
                    };
                    append(
                        &mut writer,
                        tag::API,
                        MARKERS,
                        marker,
                        &[&counted_text(&message)],
                    );
                }
                12..14 => append(
                    &mut writer,
                    tag::DISPATCH,
                    0,
                    dispatch(number, start, tid),
                    &[],
                ),
                14 => {
                    let mut copy = format::Copy::new_zeroed();
                    (copy.thread, copy.correlation) = (tid.into(), number);
                    (copy.start, copy.end) = (start, start + 900);
                    (copy.dst_agent, copy.bytes) = (AGENT, 4096);
                    copy.operation = HOST_TO_DEVICE;
                    append(&mut writer, tag::COPY, 0, copy, &[]);
                }
                _ => {
                    let mut counted = format::CountedDispatch::new_zeroed();
                    counted.dispatch = dispatch(number, start, tid);
                    counted.count = INSTANCES as u32;
                    let values: Vec<u8> = (0..INSTANCES)
                        .flat_map(|instance| {
                            let value = (number % 1000 + instance) as f64;
                            [FIRST_INSTANCE + instance, value.to_bits()]
                        })
                        .flat_map(u64::to_le_bytes)
                        .collect();
                    append(&mut writer, tag::COUNTED, 0, counted, &[&values]);
                }
            }
        }
    }
}

fn dispatch(number: u64, start: u64, tid: u32) -> format::Dispatch {
    let mut dispatch = format::Dispatch::new_zeroed();
    (dispatch.thread, dispatch.correlation) = (tid.into(), number);
    (dispatch.start, dispatch.end) = (start + 200, start + 700);
    (dispatch.agent, dispatch.queue) = (AGENT, tid.into());
    (dispatch.kernel, dispatch.dispatch) = (1 + number % 8, number);
    dispatch.stream = tid;
    (dispatch.workgroup, dispatch.grid) = ([64, 1, 1], [1024, 1, 1]);
    dispatch
}

/// A `u32` byte count and the text.
fn counted_text(text: &str) -> Vec<u8> {
    let count = (text.len() as u32).to_le_bytes();
    [&count, text.as_bytes()].concat()
}

fn name(meta: &mut StreamWriter, kind: u32, operation: u32, text: &str) {
    let mut name = format::Name::new_zeroed();
    name.space = space::CALLBACK;
    (name.kind, name.operation) = (kind, operation);
    name.text_len = text.len() as u32;
    let tag = match operation {
        u32::MAX => tag::KIND_NAME,
        _ => tag::OPERATION_NAME,
    };
    append(meta, tag, 0, name, &[text.as_bytes()]);
}

/// Appends a record, whose first field is its head.
fn append<T: IntoBytes + Immutable>(
    writer: &mut StreamWriter,
    tag: u16,
    aux: u16,
    fixed: T,
    tail: &[&[u8]],
) {
    let head = RecordHeader {
        // A few hundred bytes.
        len: record_len(size_of::<T>(), tail.iter().map(|part| part.len()).sum()) as u32,
        tag,
        aux,
    };
    let mut bytes = fixed.as_bytes().to_vec();
    bytes[..size_of::<RecordHeader>()].copy_from_slice(head.as_bytes());
    assert!(
        writer.append_parts(&bytes, tail),
        "there is space for records"
    );
}
