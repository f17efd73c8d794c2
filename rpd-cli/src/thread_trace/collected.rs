//! The thread traces of a run that is over: saves streams and code objects, decodes them, and puts what was found into the
//! session, where writers of files find it.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_att::{Library, Listing, OccupancySums, Wave};
use rpd_core::compat::Difference;
use rpd_core::ids::{AgentHandle, CodeObjectId, DispatchId};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::Session;
use rpd_core::session::samples::Issue;
use rpd_core::session::traces::{
    OccupiedTime, OccupiedUnit, ThreadTraces, TraceSummary, TracedLine, TracedWave,
};
use rpd_formats::file::PendingFile;

use super::decode::{Decoded, Decoding, RequestedFiles, decode_dispatch, directory_name};
use super::files::{TraceKey, Traces};
use crate::failure::line;
use crate::wording::count;

/// Bytes that are written at once.
const PIECE: usize = 1 << 20;

/// The directories for the viewer that were made in the directory of the outputs, where processes have no directories of their own.
#[derive(Debug, Default)]
pub(crate) struct Directories(HashSet<PathBuf>);

impl Directories {
    /// The directory for the decoded files of a trace: as the original, that of the outputs, unless another process of
    /// the run has a trace of this name there.
    fn place(&mut self, target: &Target, name: &str, problems: &mut Vec<String>) -> PathBuf {
        let shared = target.directory.join(name);
        if self.0.insert(shared.clone()) {
            return target.directory.clone();
        }
        let own = target.parent();
        problems.push(format!(
            "{} is of another process: the decoded trace of this name is in {}",
            shared.display(),
            own.display()
        ));
        own
    }
}

/// Saves and decodes the traces of a session. Returns the files; what is wrong with traces is in
/// `session.thread_traces.problems`. `sources`: source files may be read. `directories`: those of the processes before.
///
/// # Errors
/// When a file cannot be written, or the decoder library cannot be used.
pub(crate) fn process(
    session: &mut Session,
    options: &Options,
    target: &Target,
    sources: bool,
    directories: &mut Directories,
) -> Result<Vec<PathBuf>> {
    if session.thread_traces.streams.is_empty() {
        return Ok(Vec::new());
    }
    // Saved before decoding: the trace files can be decoded again, whatever comes of it here.
    let mut files = save(session, target)?;
    let library = match &options.thread_trace_library {
        Some(path) => Some(Library::open(path).context("--att-library-path")?),
        None => None,
    };
    let drop_in = options.compat.has(Difference::TraceDirectories);
    let has = |format| options.formats.contains(&format);
    let wanted = RequestedFiles {
        csv: has(Format::Csv) || drop_in,
        json: has(Format::Json) || drop_in,
        pftrace: has(Format::Pftrace),
        sources,
    };
    let traces = Traces::find(&files)?;
    for key in traces.traces.keys() {
        // Names of files have agents as numbers, and a foreign file may have anything there.
        let agent = AgentHandle(key.agent.parse().unwrap_or(0));
        let tracing = session.thread_traces.tracing.iter();
        let counters: Vec<String> = (tracing.filter(|tracing| tracing.agent == agent))
            .flat_map(|tracing| tracing.counters.iter().cloned())
            .collect();
        let first = session.thread_traces.summaries.len() as u32;
        let mut waves = Waves::default();
        let mut decoding = Decoding {
            wanted,
            counters: &counters,
            library: library.as_ref(),
            wave: &mut |engine, wave| waves.take(engine, wave),
        };
        let into = if drop_in {
            let problems = &mut session.thread_traces.problems;
            directories.place(target, &directory_name(key), problems)
        } else {
            target.parent()
        };
        match decode_dispatch(&traces, key, &into, &mut decoding) {
            Ok(decoded) => {
                add(session, key, agent, &decoded);
                waves.finish(&decoded, first, &mut session.thread_traces);
                files.extend(decoded.written);
            }
            // A trace that cannot be decoded does not keep the others from being decoded.
            Err(error) => session.thread_traces.problems.push(line(&error)),
        }
    }
    Ok(files)
}

/// Notes dispatches that were chosen and whose streams never came.
pub(crate) fn note_missing(traces: &mut ThreadTraces) {
    let arrived = |agent: AgentHandle, dispatch: DispatchId| {
        let mut streams = traces.streams.iter();
        streams.any(|stream| stream.agent == agent && stream.trace == dispatch.0)
    };
    let missing = traces.chosen.iter();
    let missing = missing
        .filter(|chosen| !arrived(chosen.agent, chosen.dispatch))
        .count();
    if missing > 0 {
        let chosen = count(traces.chosen.len(), "dispatch");
        traces.problems.push(format!(
            "the thread traces of {missing} of {chosen} are missing: the program ended before the GPU delivered them"
        ));
    }
    for stream in traces.streams.iter().filter(|stream| stream.incomplete) {
        traces.problems.push(format!(
            "the thread trace {} of shader engine {} is incomplete: {} bytes of it were recorded",
            stream.trace,
            stream.engine,
            stream.bytes.len()
        ));
    }
}

/// Writes streams and the code objects of their agents.
fn save(session: &mut Session, target: &Target) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let (mut stream_files, mut code_files) = (Vec::new(), Vec::new());
    let traces = &session.thread_traces;
    let parent = target.parent();
    std::fs::create_dir_all(&parent)
        .with_context(|| format!("cannot make the directory {}", parent.display()))?;
    for stream in &traces.streams {
        let name = format!(
            "{}_shader_engine_{}_{}.att",
            stream.agent.0, stream.engine, stream.trace
        );
        let path = target.file(&name);
        write_whole(&path, &stream.bytes)?;
        // Streams may be larger than memory: pages that were written are given back.
        stream.bytes.release();
        stream_files.push(file_name(&path));
        files.push(path);
    }
    for object in &session.code_objects {
        // Decoders need the code of traced agents only.
        let is_traced = traces
            .streams
            .iter()
            .any(|stream| stream.agent == object.agent);
        let Some(image) = session.code.image(object.id).filter(|_| is_traced) else {
            continue;
        };
        let agent = session.agent(object.agent);
        let processor = agent.map_or("gpu", |agent| agent.name.as_str());
        let path = target.file(&format!("{processor}_code_object_id_{}.out", object.id));
        write_whole(&path, &image.bytes)?;
        image.bytes.release();
        code_files.push(file_name(&path));
        files.push(path);
    }
    session.thread_traces.stream_files = stream_files;
    session.thread_traces.code_files = code_files;
    Ok(files)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Writes a file that has its name only when it is complete.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut pending = PendingFile::create(path.to_owned())?;
    for piece in bytes.chunks(PIECE) {
        pending
            .file()
            .write_all(piece)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    pending.finish()?;
    Ok(())
}

/// Adds the results of decoding the traces of a dispatch.
fn add(session: &mut Session, key: &TraceKey, agent: AgentHandle, decoded: &Decoded) {
    let trace = key.dispatch;
    let kernel = session.thread_traces.kernel(agent, trace);
    let capacity = (session.thread_traces.tracing.iter())
        .find(|tracing| tracing.agent == agent)
        .map_or(0, |tracing| tracing.capacity);
    for engine in &decoded.engines {
        let found = &engine.diagnosis;
        let full = (session.thread_traces.streams.iter()).any(|stream| {
            stream.full
                && (stream.agent, stream.trace, stream.engine) == (agent, trace, engine.engine)
        });
        if full {
            session.thread_traces.problems.push(format!(
                "the buffer of shader engine {} was full in trace {trace}: {} of {capacity} bytes are used and the rest of the \
                 trace is lost; a larger --att-buffer-size, fewer shader engines (--att-shader-engine-mask), SIMDs or counters \
                 help",
                engine.engine, found.bytes
            ));
        }
        session.thread_traces.summaries.push(TraceSummary {
            agent,
            trace,
            kernel,
            engine: engine.engine,
            bytes: found.bytes,
            capacity,
            full,
            started: engine.occupancy.started(),
            waves: found.waves,
            instructions: found.instructions,
            unmatched: found.unmatched + found.without_code,
            lost: found.lost,
            incomplete_waves: found.incomplete_waves,
        });
        add_occupancy(&mut session.thread_traces, &engine.occupancy);
    }
    let lines = lines(session, &decoded.listing, |object, offset| TracedLine {
        kernel,
        agent,
        trace,
        object,
        offset,
        hits: 0,
        latency: 0,
        idle: 0,
        stalls: Vec::new(),
    });
    session.thread_traces.lines.extend(lines);
    session
        .thread_traces
        .problems
        .extend(decoded.notes.iter().cloned());
}

/// Adds the waves of the shader engine whose summary is the last one.
fn add_occupancy(traces: &mut ThreadTraces, sums: &OccupancySums) {
    let stream = traces.summaries.len() as u32 - 1;
    let times = sums.times().map(|(begin, end, wave_cycles)| OccupiedTime {
        stream,
        begin,
        end,
        wave_cycles,
    });
    traces.occupied_times.extend(times);
    let units = sums.units().map(|(cu, unit)| OccupiedUnit {
        stream,
        cu,
        waves: unit.waves,
        wave_cycles: unit.cycles,
    });
    traces.occupied_units.extend(units);
}

/// The lines that waves executed.
fn lines(
    session: &Session,
    listing: &Listing,
    at: impl Fn(CodeObjectId, u64) -> TracedLine,
) -> Vec<TracedLine> {
    let executed = listing.lines().iter().filter(|line| line.hits > 0);
    let lines = executed.map(|line| {
        let object = CodeObjectId(line.pc.code_object);
        let known = session.code_objects.iter().find(|known| known.id == object);
        // Decoders give addresses in the ELF file, sessions have offsets from the load address.
        let bias = known.map_or(0, |known| known.address_bias());
        let stalls = line.stalls.iter();
        TracedLine {
            hits: line.hits,
            latency: line.latency,
            idle: line.idle,
            stalls: stalls
                .map(|(reason, cycles)| (Issue(reason as u8), cycles))
                .collect(),
            ..at(object, line.pc.address.wrapping_sub(bias))
        }
    });
    lines.collect()
}

/// Waves of the traces of a dispatch.
#[derive(Default)]
struct Waves(Vec<(u32, TracedWave)>);

impl Waves {
    fn take(&mut self, engine: u32, wave: &Wave<'_>) {
        let place = (wave.cu, wave.simd, wave.slot);
        let is_same = |(of, known): &&mut (u32, TracedWave)| {
            *of == engine && (known.cu, known.simd, known.slot) == place
        };
        // A long wave comes in parts: later ones belong to the wave that began last in the same slot.
        let begun = match wave.part {
            0 => None,
            _ => self.0.iter_mut().rev().find(is_same),
        };
        let known = match begun {
            Some((_, known)) => known,
            None => {
                let wave = TracedWave {
                    stream: 0,
                    cu: wave.cu,
                    simd: wave.simd,
                    slot: wave.slot,
                    begin: wave.begin,
                    end: wave.end,
                    instructions: 0,
                    latency: 0,
                    stall: 0,
                    complete: false,
                };
                self.0.push((engine, wave));
                match self.0.last_mut() {
                    Some((_, known)) => known,
                    None => return,
                }
            }
        };
        known.end = wave.end;
        known.complete = wave.complete;
        known.instructions += wave.instructions.len() as u64;
        for instruction in wave.instructions {
            known.latency += u64::from(instruction.duration.max(0).unsigned_abs());
            known.stall += u64::from(instruction.stall);
        }
    }

    /// Adds the waves to the session; `first` is the index of the first summary of the dispatch.
    fn finish(self, decoded: &Decoded, first: u32, traces: &mut ThreadTraces) {
        let stream = |engine: u32| {
            let place = decoded
                .engines
                .iter()
                .position(|found| found.engine == engine);
            place.map(|place| first + place as u32)
        };
        let waves = self.0.into_iter();
        traces.waves.extend(waves.filter_map(|(engine, wave)| {
            Some(TracedWave {
                stream: stream(engine)?,
                ..wave
            })
        }));
    }
}
