//! Measures [`Session::open`]: `open-throughput [RECORDS [THREADS]]` makes a spool of that many calls and opens it.

use std::time::Instant;

use rpd_core::session::{LoadOptions, Session};
use rpd_spool::format::{self, space, stream};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::{SpoolDirectory, StreamWriter};
use zerocopy::{FromZeros, IntoBytes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let records = arguments.next().unwrap_or(Ok(10_000_000))?;
    let threads = arguments.next().unwrap_or(Ok(4))?.max(1);

    let run = tempfile::tempdir_in(".")?;
    let directory = SpoolDirectory::create(run.path())?;
    let mut meta = StreamWriter::new(&directory, "meta".to_owned(), stream::META, 0);
    let mut process = format::Process::new_zeroed();
    process.header = RecordKind::Process.head(0);
    process.pid = 1;
    meta.append_parts(process.as_bytes(), &[]);
    name(&mut meta, u32::MAX, "HIP_RUNTIME_API");
    for operation in 0..400 {
        name(&mut meta, operation, &format!("hipCall{operation}"));
    }
    for thread in 0..threads {
        let mut writer = StreamWriter::new(
            &directory,
            format!("t{thread}"),
            stream::THREAD,
            1 + thread as u32,
        );
        let mut call = format::CallRecord::new_zeroed();
        for index in 0..records / threads {
            call.header = RecordKind::Call.head(0).with_aux(1);
            call.operation = (index % 400) as u32;
            call.start = 1000 * index + 100 * thread;
            call.end = call.start + 500;
            call.correlation = index * threads + thread + 1;
            writer.append_parts(call.as_bytes(), &[]);
        }
    }
    drop(meta);

    let before = rpd_tests::memory::peak();
    let begin = Instant::now();
    let session = Session::open(directory.path(), LoadOptions::default())?;
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{} records in {seconds:.3} s ({:.1} M/s), peak {} MiB ({} before)",
        session.len(),
        session.len() as f64 / seconds / 1e6,
        rpd_tests::memory::peak() / 1024,
        before / 1024,
    );
    Ok(())
}

fn name(writer: &mut StreamWriter, operation: u32, text: &str) {
    let mut name = format::Name::new_zeroed();
    let kind = if operation == u32::MAX {
        RecordKind::KindName
    } else {
        RecordKind::OperationName
    };
    name.header = kind.head(text.len());
    name.space = space::CALLBACK;
    name.kind = 1;
    name.operation = operation;
    name.text_len = text.len() as u32;
    writer.append_parts(name.as_bytes(), &[text.as_bytes()]);
}
