//! Measures data sets of many ranks: `dataset-throughput [RANKS] [RECORDS] [DIRECTORY]` adds that many synthetic ranks with so many
//! records each, from two threads, and prints records per second and bytes per record. The data set stays if a directory is given.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rpd_core::domain::Kind;
use rpd_core::ids::{
    AgentHandle, CodeObjectId, CorrelationId, KernelId, Nanoseconds, ProcessId, QueueId, StreamId,
    ThreadId,
};
use rpd_core::launcher::Place;
use rpd_core::options::Options;
use rpd_core::session::{CallRow, CopyRow, DispatchRow, KernelSymbol, Origin, Session};
use rpd_formats::parquet::Dataset;

/// Ranks of a host.
const OF_HOST: usize = 8;
/// Threads that write.
const THREADS: usize = 2;
/// Kernels of the program.
const KERNELS: u64 = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let ranks: usize = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let records: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let given = arguments.next().map(PathBuf::from);
    let temporary = tempfile::tempdir()?;
    let directory = given.as_deref().unwrap_or(temporary.path());
    let set = Dataset::open(directory)?;
    let next = AtomicUsize::new(0);
    // Each thread has a session of its own, which becomes the next rank: making records is not what is measured.
    let mut sessions: Vec<Session> = (0..THREADS).map(|_| session(records)).collect();
    let begin = Instant::now();
    let written: Result<Vec<usize>, String> = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .iter_mut()
            .map(|session| {
                let (set, next) = (&set, &next);
                scope.spawn(move || {
                    let mut written = 0;
                    loop {
                        let rank = next.fetch_add(1, Ordering::Relaxed);
                        if rank >= ranks {
                            return Ok(written);
                        }
                        become_rank(session, rank, ranks);
                        let added = set.add(session, &Options::default());
                        written += added.map_err(|error| error.to_string())?.records;
                    }
                })
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended
            .map(|end| end.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    let seconds = begin.elapsed().as_secs_f64();
    let written: usize = written?.iter().sum();
    println!(
        "dataset, {ranks} ranks: {:.2} M records/s, {:.1} bytes a record",
        written as f64 / seconds / 1e6,
        size(directory)? as f64 / written.max(1) as f64
    );
    Ok(())
}

/// Bytes of all files below a directory.
fn size(directory: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() {
            size(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(bytes)
}

fn become_rank(session: &mut Session, rank: usize, ranks: usize) {
    let process = &mut session.process;
    process.pid = ProcessId(10_000 + rank as u32);
    process.place = Place {
        rank: Some(rank as u64),
        size: Some(ranks as u64),
        launcher: "Slurm".to_owned(),
    };
    session.origin = Some(Origin {
        guid: format!("00000000-0000-7000-8000-{rank:012}"),
        hostname: format!("node{:04}", rank / OF_HOST),
        ..Origin::default()
    });
}

/// Five calls, four dispatches and a copy, over and over.
fn session(records: u64) -> Session {
    let mut session = Session::new();
    session.process.init_time = Nanoseconds(5_760_000_000_000);
    session.process.real_time = 1_700_000_000_000_000_000;
    session.ledger.ended = true;
    for id in 1..=KERNELS {
        session.kernel_symbols.push(KernelSymbol {
            id: KernelId(id),
            code_object: CodeObjectId(1),
            name: format!("_Z7kernel{id:02}PfPKfi.kd"),
            ..KernelSymbol::default()
        });
    }
    let names = [
        "hipLaunchKernel",
        "hipMemcpyAsync",
        "hipStreamSynchronize",
        "hipEventRecord",
        "hipMallocAsync",
    ];
    let operations = names.map(|name| session.add_operation(Kind::HipRuntime, name));
    let copy = session.add_operation(Kind::MemoryCopy, "MEMORY_COPY_HOST_TO_DEVICE");
    // The durations of a program, which differ.
    let length = |index: u64| 2_000 + index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 3_000;
    for index in 0..records {
        let start = Nanoseconds(5_761_000_000_000 + 5_100 * index);
        let end = Nanoseconds(start.0 + length(index));
        let correlation = CorrelationId(index + 1);
        let thread = ThreadId(4711 + (index % 2) as u32);
        match index % 10 {
            kind @ 0..5 => session.calls.push(CallRow {
                operation: operations[kind as usize],
                start,
                end,
                thread,
                correlation,
                ..CallRow::default()
            }),
            5..9 => session.dispatches.push(DispatchRow {
                start,
                end,
                thread,
                correlation,
                agent: AgentHandle(11_280),
                queue: QueueId(1 + index % 4),
                stream: StreamId(1),
                kernel: KernelId(1 + index % KERNELS),
                workgroup: [256, 1, 1],
                grid: [65_536, 1, 1],
                ..DispatchRow::default()
            }),
            _ => session.copies.push(CopyRow {
                operation: copy,
                start,
                end,
                thread,
                correlation,
                bytes: 1 << (index % 20),
                ..CopyRow::default()
            }),
        }
    }
    session
}
