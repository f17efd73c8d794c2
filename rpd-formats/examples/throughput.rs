//! Measures the writers: `throughput [RECORDS] [DIRECTORY]` writes that many synthetic records with each and prints one
//! line per writer: name, records per second, bytes per record.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rpd_core::domain::Kind;
use rpd_core::ids::{
    AgentHandle, CorrelationId, DispatchId, KernelId, Nanoseconds, ProcessId, QueueId, StreamId,
    ThreadId,
};
use rpd_core::naming::Target;
use rpd_core::options::Options;
use rpd_core::session::{ArgsRef, KernelSymbol, Session};
use rpd_core::spool::format::api_flag;
use rpd_formats::{WriteError, csv, html, otf2, parquet, perfetto, results_json, rocpd};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    let parent = arguments.next().map_or(std::env::temp_dir(), PathBuf::from);
    let directory = tempfile::tempdir_in(parent)?;

    let calls = session(records, false, false);
    measure("csv", &calls, directory.path(), csv_files)?;
    measure("rocpd", &calls, directory.path(), rocpd_file)?;
    measure("json", &calls, directory.path(), json_file)?;
    measure("pftrace", &calls, directory.path(), perfetto_file)?;
    measure("otf2", &calls, directory.path(), otf2_file)?;
    measure("parquet", &calls, directory.path(), parquet_files)?;
    measure("html", &calls, directory.path(), html_file)?;
    drop(calls);
    let with_arguments = session(records, true, false);
    measure(
        "rocpd, arguments",
        &with_arguments,
        directory.path(),
        rocpd_file,
    )?;
    measure(
        "json, arguments",
        &with_arguments,
        directory.path(),
        json_file,
    )?;
    measure(
        "pftrace, arguments",
        &with_arguments,
        directory.path(),
        perfetto_file,
    )?;
    drop(with_arguments);
    let mixed = session(records, false, true);
    measure("csv, mixed", &mixed, directory.path(), csv_files)?;
    measure("rocpd, mixed", &mixed, directory.path(), rocpd_file)?;
    measure("json, mixed", &mixed, directory.path(), json_file)?;
    measure("pftrace, mixed", &mixed, directory.path(), perfetto_file)?;
    measure("otf2, mixed", &mixed, directory.path(), otf2_file)?;
    measure("parquet, mixed", &mixed, directory.path(), parquet_files)?;
    measure("html, mixed", &mixed, directory.path(), html_file)?;
    Ok(())
}

fn csv_files(session: &Session, target: &Target) -> Result<Vec<PathBuf>, WriteError> {
    csv::write(session, None, &Options::default(), target)
}

fn rocpd_file(session: &Session, target: &Target) -> Result<Vec<PathBuf>, WriteError> {
    let file = rocpd::write(session, &Options::default(), target)?;
    Ok(file.into_iter().collect())
}

fn json_file(session: &Session, target: &Target) -> Result<Vec<PathBuf>, WriteError> {
    let file = results_json::write(session, None, &Options::default(), target)?;
    Ok(file.into_iter().collect())
}

fn perfetto_file(session: &Session, target: &Target) -> Result<Vec<PathBuf>, WriteError> {
    let file = perfetto::write(session, &Options::default(), target)?;
    Ok(file.into_iter().collect())
}

/// All parts of an archive, for their sizes.
fn otf2_file(session: &Session, target: &Target) -> Result<Vec<PathBuf>, WriteError> {
    let Some(anchor) = otf2::write(session, &Options::default(), target)? else {
        return Ok(Vec::new());
    };
    let events = std::fs::read_dir(anchor.with_extension("")).into_iter();
    let events = events.flatten().flatten().map(|entry| entry.path());
    Ok([anchor.with_extension("def"), anchor]
        .into_iter()
        .chain(events)
        .collect())
}

fn parquet_files(session: &Session, target: &Target) -> Result<Vec<PathBuf>, WriteError> {
    parquet::write(session, &Options::default(), target)
}

/// Without statistics, which are not computed here.
fn html_file(session: &Session, target: &Target) -> Result<Vec<PathBuf>, WriteError> {
    let stats = rpd_core::stats::SessionStats::default();
    let file = html::write(session, &stats, &Options::default(), target)?;
    Ok(file.into_iter().collect())
}

fn measure(
    name: &str,
    session: &Session,
    directory: &Path,
    write: impl Fn(&Session, &Target) -> Result<Vec<PathBuf>, WriteError>,
) -> Result<(), Box<dyn std::error::Error>> {
    let target = Target {
        directory: directory.to_owned(),
        prefix: "throughput".to_owned(),
    };
    let (begin, begin_on_cpu) = (Instant::now(), seconds_on_cpu());
    let files = write(session, &target)?;
    let seconds = begin.elapsed().as_secs_f64();
    let seconds_on_cpu = seconds_on_cpu() - begin_on_cpu;
    let mut bytes = 0;
    for file in files {
        bytes += std::fs::metadata(&file)?.len();
        std::fs::remove_file(file)?;
    }
    let records = session.len() as f64;
    println!(
        "{name}: {:.2} M records/s, {:.2} in processor time, {:.0} bytes a record",
        records / seconds / 1e6,
        records / seconds_on_cpu / 1e6,
        bytes as f64 / records
    );
    Ok(())
}

/// What the scheduler gave this thread: says on a busy machine what would be on an idle one.
fn seconds_on_cpu() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .unwrap_or_default()
        / 1e9
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
        kernel_object: 0,
        kernarg_size: 0,
        kernarg_align: 0,
        group_size: 0,
        private_size: 0,
        sgpr_count: 16,
        arch_vgpr_count: 8,
        accum_vgpr_count: 0,
        entry_offset: 0,
        kernel_address: 0,
        size: 88,
    });
    let names = [
        "hipMemcpyAsync",
        "hipLaunchKernel",
        "hipStreamSynchronize",
        "hipMallocAsync",
    ];
    let operations = names.map(|name| session.strings.intern(name));
    let sizes = [40_u32, 56, 8, 24];
    for index in 0..records {
        let start = Nanoseconds(5_761_000_000_000 + 700 * index);
        let end = Nanoseconds(start.0 + 400);
        let thread = ThreadId(4711 + (index % 2) as u32);
        let correlation = CorrelationId(index + 1);
        if mixed && index % 4 == 3 {
            let table = &mut session.dispatches;
            table.start.push(start);
            table.end.push(end);
            table.thread.push(thread);
            table.correlation.push(correlation);
            table.agent.push(AgentHandle(11280));
            table.queue.push(QueueId(1 + index % 4));
            table.stream.push(StreamId((index % 3) as u32));
            table.region.push(0);
            table.kernel.push(KernelId(1));
            table.dispatch.push(DispatchId(index / 4 + 1));
            table.private_size.push(0);
            table.group_size.push(0);
            table.workgroup.push([64, 1, 1]);
            table.grid.push([65536, 1, 1]);
            continue;
        }
        let which = (index % 4) as usize;
        let api = &mut session.api;
        api.kind.push(Kind::HipRuntime);
        api.operation.push(operations[which]);
        api.message.push(Default::default());
        api.start.push(start);
        api.end.push(end);
        api.thread.push(thread);
        api.correlation.push(correlation);
        api.ancestor.push(CorrelationId(0));
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
        api.args.push(args);
    }
    session
}
