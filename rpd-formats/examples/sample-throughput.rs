//! Measures PC samples: `sample-throughput [SAMPLES] [DIRECTORY]` writes that many synthetic samples to a database, adds them up by
//! instruction and by source line, and does the same with the sums of the database.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Instant;

use rpd_core::ids::{
    AgentHandle, CodeObjectId, CorrelationId, DispatchId, KernelId, Nanoseconds, StringId,
};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::code::{CodeLine, Instruction, Sampling};
use rpd_core::session::hot::listings;
use rpd_core::session::totals::InstructionTotals;
use rpd_core::session::{KernelSymbol, SampleRow, Session};
use rpd_core::spool::format::sample_flag;
use rpd_core::spool::options::{SamplingMethod, SamplingUnit};
use rpd_formats::Output;
use rpd_formats::rocpd::read::Database;

/// Number of instructions that are sampled, and number of them that a source line has.
const INSTRUCTIONS: u64 = 4096;
const OF_LINE: u64 = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let samples: u64 = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    let parent = arguments.next().map_or(std::env::temp_dir(), PathBuf::from);
    let directory = tempfile::tempdir_in(parent)?;
    let session = session(samples);
    let target = Target {
        directory: directory.path().to_owned(),
        prefix: "throughput".to_owned(),
    };
    let output = Output {
        session: &session,
        stats: None,
        options: &Options::default(),
        target: &target,
    };
    let (files, written) = timed(|| rpd_formats::write(Format::Rocpd, &output))?;
    println!("into a database: {}", rate(samples, written));
    let (of_recording, summed) =
        timed(|| Ok::<_, Infallible>(lines(&session, &InstructionTotals::from_session(&session))))?;
    println!("by line, of a recording: {}", rate(samples, summed));
    let (of_database, read) = timed(|| -> Result<_, Box<dyn std::error::Error>> {
        let database = Database::open(&files[0])?;
        let recordings = database.recordings();
        let recording = recordings.first().ok_or("the database has no recording")?;
        let (session, _, totals) = database.samples(recording)?;
        Ok(lines(&session, &totals))
    })?;
    println!("by line, of a database: {read:.3} s");
    if of_recording != of_database {
        return Err("the sums of the database are not those of the samples".into());
    }
    Ok(())
}

/// Seconds that the processor worked for this, and its result.
fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let (wall, begin) = (Instant::now(), seconds_on_cpu());
    let done = work()?;
    let seconds = match seconds_on_cpu() - begin {
        seconds if seconds > 0.0 => seconds,
        _ => wall.elapsed().as_secs_f64(),
    };
    Ok((done, seconds))
}

/// Processor time of this thread: on a busy machine about the time that an idle one would take.
fn seconds_on_cpu() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .unwrap_or_default()
        / 1e9
}

fn rate(samples: u64, seconds: f64) -> String {
    format!("{:.2} M samples/s", samples as f64 / seconds / 1e6)
}

/// Samples by source line, ascending.
fn lines(session: &Session, totals: &InstructionTotals) -> Vec<(u32, u64)> {
    let mut sums = std::collections::BTreeMap::new();
    for listing in listings(session, totals, Default::default(), |_| true) {
        for instruction in &listing.instructions {
            let line = instruction.chain.first().map_or(0, |place| place.line);
            *sums.entry(line).or_insert(0) += instruction.tally.samples;
        }
    }
    sums.into_iter().collect()
}

/// Stochastic samples of a kernel: 40 waves in each tick, at instructions near one another.
fn session(samples: u64) -> Session {
    let mut session = Session::default();
    // Id 0 has to be the empty text.
    session.strings.intern("");
    session.kernel_symbols.push(KernelSymbol {
        id: KernelId(1),
        code_object: CodeObjectId(1),
        name: "kernel.kd".to_owned(),
        ..Default::default()
    });
    session.sampling.push(Sampling {
        agent: AgentHandle(1),
        method: SamplingMethod::Stochastic,
        unit: SamplingUnit::Cycles,
        interval: 1 << 20,
    });
    let file = session.strings.intern("kernel.hip");
    let function = session.strings.intern("kernel");
    let text = session.strings.intern("v_fma_f32 v0, v1, v2, v0");
    for index in 0..INSTRUCTIONS {
        session.code.lines.push(CodeLine {
            function: StringId(0),
            file,
            line: 1 + (index / OF_LINE) as u32,
            column: 0,
        });
        session.code.instructions.push(Instruction {
            object: CodeObjectId(1),
            offset: 0x1000 + 8 * index,
            length: 8,
            text,
            function,
            first_line: index as u32,
            lines: 1,
        });
    }
    let table = &mut session.samples;
    for index in 0..samples {
        let tick = index / 40;
        // The bits of a product are as good as random, and the same in every run.
        let random = index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let instruction = (tick * 16 + random % 64) % INSTRUCTIONS;
        let time = Nanoseconds(5_761_000_000_000 + tick * 1_048_576);
        let issued = match random % 4 {
            0 => sample_flag::ISSUED,
            _ => 0,
        };
        table.push(SampleRow {
            start: time,
            end: time,
            object: CodeObjectId(1),
            offset: 0x1000 + 8 * instruction,
            exec: u64::MAX,
            dispatch: DispatchId(1),
            correlation: CorrelationId(1),
            hardware: index % 40,
            workgroup: [(index % 1000) as u32, 0, 0],
            wave: (index % 4) as u8,
            flags: sample_flag::STOCHASTIC | issued,
            class: 1,
            waves: 40,
            snapshot: (random % 8) as u32,
            ..SampleRow::default()
        });
    }
    session
}
