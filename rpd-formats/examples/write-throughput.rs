//! Measures the writers: `write-throughput [RECORDS] [DIRECTORY] [FORMAT...]` writes that many synthetic records with each format,
//! or with those named, and prints one line per writer: name, records per second, bytes per record.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rpd_core::domain::Kind;
use rpd_core::ids::{
    AgentHandle, CorrelationId, DispatchId, KernelId, Nanoseconds, ProcessId, QueueId, StreamId,
    ThreadId,
};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{ArgsRef, CallRow, DispatchRow, KernelSymbol, Session};
use rpd_core::spool::format::api_flag;
use rpd_formats::{Output, registry};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    let parent = arguments.next().map_or(std::env::temp_dir(), PathBuf::from);
    let directory = tempfile::tempdir_in(parent)?;

    let wanted: Vec<String> = arguments.collect();
    let formats = || {
        let formats = Format::ALL.iter().copied();
        formats
            .filter(|format| wanted.is_empty() || wanted.iter().any(|word| word == format.word()))
    };
    let calls = session(records, false, false);
    for format in formats() {
        measure(format, "", &calls, directory.path())?;
    }
    drop(calls);
    let with_arguments = session(records, true, false);
    for format in formats().filter(|format| registry::entry(*format).arguments) {
        measure(format, ", arguments", &with_arguments, directory.path())?;
    }
    drop(with_arguments);
    let mixed = session(records, false, true);
    for format in formats() {
        measure(format, ", mixed", &mixed, directory.path())?;
    }
    Ok(())
}

/// The files, for their sizes: those of an OTF2 archive that belong to its anchor, too.
fn with_parts(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let parts = |file: PathBuf| {
        let events = std::fs::read_dir(file.with_extension("")).into_iter();
        let events = events.flatten().flatten().map(|entry| entry.path());
        let definitions = Some(file.with_extension("def")).filter(|path| path.exists());
        definitions
            .into_iter()
            .chain(events)
            .chain([file])
            .collect::<Vec<_>>()
    };
    files.into_iter().flat_map(parts).collect()
}

/// Without statistics, which are not computed here.
fn measure(
    format: Format,
    what: &str,
    session: &Session,
    directory: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let target = Target {
        directory: directory.to_owned(),
        prefix: "throughput".to_owned(),
    };
    let (begin, begin_on_cpu) = (Instant::now(), seconds_on_cpu());
    let output = Output {
        session,
        stats: None,
        options: &Options::default(),
        target: &target,
    };
    let files = rpd_formats::write(format, &output)?;
    let seconds = begin.elapsed().as_secs_f64();
    let seconds_on_cpu = seconds_on_cpu() - begin_on_cpu;
    let mut bytes = 0;
    for file in with_parts(files) {
        bytes += std::fs::metadata(&file)?.len();
        std::fs::remove_file(file)?;
    }
    let records = session.len() as f64;
    println!(
        "{}{what}: {:.2} M records/s, {:.2} in processor time, {:.0} bytes a record",
        format.word(),
        records / seconds / 1e6,
        records / seconds_on_cpu / 1e6,
        bytes as f64 / records
    );
    Ok(())
}

/// Processor time of all threads: on a busy machine about the time that an idle core would take.
fn seconds_on_cpu() -> f64 {
    /// Ticks a second of what the kernel reports.
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold spaces. User and system time are fields 14 and 15.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let times = fields.split_whitespace().skip(11).take(2);
    times
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS
}

/// Calls of two threads; when mixed, every fourth record is a dispatch.
fn session(records: u64, with_arguments: bool, mixed: bool) -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(4711);
    session.process.init_time = Nanoseconds(5_760_000_000_000);
    session.kernel_symbols.push(KernelSymbol {
        id: KernelId(1),
        code_object: rpd_core::ids::CodeObjectId(1),
        name: "_Z15addition_kernelIfEvPT_PKS0_S3_ii.kd".to_owned(),
        sgpr_count: 16,
        arch_vgpr_count: 8,
        size: 88,
        ..Default::default()
    });
    let names = [
        "hipMemcpyAsync",
        "hipLaunchKernel",
        "hipStreamSynchronize",
        "hipMallocAsync",
    ];
    let operations = names.map(|name| session.add_operation(Kind::HipRuntime, name));
    let sizes = [40_u32, 56, 8, 24];
    for index in 0..records {
        let start = Nanoseconds(5_761_000_000_000 + 700 * index);
        let end = Nanoseconds(start.0 + 400);
        let thread = ThreadId(4711 + (index % 2) as u32);
        let correlation = CorrelationId(index + 1);
        if mixed && index % 4 == 3 {
            let table = &mut session.dispatches;
            table.push(DispatchRow {
                start,
                end,
                thread,
                correlation,
                agent: AgentHandle(11280),
                queue: QueueId(1 + index % 4),
                stream: StreamId((index % 3) as u32),
                region: 0,
                kernel: KernelId(1),
                dispatch: DispatchId(index / 4 + 1),
                private_size: 0,
                group_size: 0,
                workgroup: [64, 1, 1],
                grid: [65536, 1, 1],
            });
            continue;
        }
        let which = (index % 4) as usize;
        let api = &mut session.api;
        let mut args = ArgsRef::default();
        if with_arguments {
            args = ArgsRef {
                offset: api.arena.len() as u64,
                len: sizes[which],
                flags: api_flag::ARGUMENTS,
            };
            for word in 0..u64::from(sizes[which]) / 8 {
                let value = 0x7f2b_e200_0000 + word * 4096 + index;
                api.arena.extend(value.to_le_bytes());
            }
        }
        api.push(CallRow {
            operation: operations[which],
            start,
            end,
            thread,
            correlation,
            args,
            ..CallRow::default()
        });
    }
    session
}
