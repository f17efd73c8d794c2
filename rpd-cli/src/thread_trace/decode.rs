//! Decodes the traces of a dispatch and writes the results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_att::{
    CodeObjects, Diagnosis, Directory, Info, Library, Listing, OccupancySums, Pc, Record, Wave,
};
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_formats::csv::{TracedLine, write_traced_lines};
use rpd_formats::perfetto::{WavePlace, WaveSpan, WaveTrace};
use rpd_gfx::disasm::Disassembler;
use rpd_spool::demangle::demangle_any;
use rpd_spool::regular_file::{self, LARGEST_CODE, Links};
use rpd_symbols::code::DebugInfo;

use super::files::{TraceFile, TraceKey, Traces};

/// The outputs that are made of traces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestedFiles {
    /// Whether `stats_*.csv` is written.
    pub(crate) csv: bool,
    /// The directory of JSON files.
    pub(crate) json: bool,
    /// A Perfetto trace of the waves.
    pub(crate) pftrace: bool,
    /// Source files are read and copied where they can be.
    pub(crate) sources: bool,
}

/// Settings and destinations of decoding.
pub(crate) struct Decoding<'a> {
    /// The outputs to make.
    pub(crate) wanted: RequestedFiles,
    /// Names of the counters in the trace.
    pub(crate) counters: &'a [String],
    /// A decoder to use in place of rpd's own.
    pub(crate) library: Option<&'a Library>,
    /// Gets each wave, or part of one, with the number of its shader engine.
    pub(crate) wave: &'a mut dyn FnMut(u32, &Wave<'_>),
}

/// Destinations of decoded waves.
struct Outputs {
    directory: Option<Directory>,
    trace: Option<WaveTrace>,
}

impl Outputs {
    /// Adds a wave, whose lines are in `listing`.
    fn wave(
        &mut self,
        engine: u32,
        wave: &Wave<'_>,
        listing: &Listing,
        code: &CodeObjects,
    ) -> Result<()> {
        if let Some(directory) = &mut self.directory {
            directory
                .wave(engine, wave, listing)
                .context("cannot write a wave")?;
        }
        let Some(trace) = &mut self.trace else {
            return Ok(());
        };
        let place = WavePlace {
            engine,
            cu: wave.cu,
            simd: wave.simd,
            slot: wave.slot,
        };
        let cycle = |time: i64| u64::try_from(time).unwrap_or(0);
        let kernel = code.function(wave.entry);
        // A wave whose code was not recorded is shown without the name of its kernel.
        let kernel = kernel.map_or("wave".into(), |found| demangle_any(&found.name));
        let whole = WaveSpan {
            name: &kernel,
            begin: cycle(wave.begin),
            end: cycle(wave.end),
        };
        let instructions = wave.instructions.iter().map(|instruction| {
            let line = listing.line(instruction.pc);
            WaveSpan {
                name: line.map_or(instruction.category.name(), |line| line.text.as_str()),
                begin: cycle(instruction.time),
                end: cycle(instruction.time + i64::from(instruction.duration)),
            }
        });
        Ok(trace.wave(place, whole, instructions)?)
    }
}

/// Decoding results of a shader engine.
#[derive(Debug)]
pub(crate) struct EngineReport {
    /// Number of the shader engine.
    pub(crate) engine: u32,
    /// Sizes, numbers of waves, and defects of the trace.
    pub(crate) diagnosis: Diagnosis,
    /// Waves on all of its compute units.
    pub(crate) occupancy: OccupancySums,
    /// The hardware's major version; 0 when the trace could not be read.
    pub(crate) gfx: u32,
}

/// Decoding results of a dispatch.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// Report about each shader engine.
    pub(crate) engines: Vec<EngineReport>,
    /// Lines of code of the dispatch.
    pub(crate) listing: Listing,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// Files and directories that were written.
    pub(crate) written: Vec<PathBuf>,
}

/// The name of a dispatch's directory.
pub(crate) fn directory_name(key: &TraceKey) -> String {
    format!("ui_output_agent_{}_dispatch_{}", key.agent, key.dispatch)
}

/// Bytes of code objects by their ids.
pub(crate) type Images = BTreeMap<u64, Vec<u8>>;

/// Reads the code objects of a trace.
pub(crate) fn images(traces: &Traces, key: &TraceKey) -> Result<Images> {
    let read = |path: &Path| {
        regular_file::read(path, Links::Follow, LARGEST_CODE)
            .with_context(|| format!("cannot read {}", path.display()))
    };
    let files = traces.code(key).into_iter();
    files.map(|file| Ok((file.id, read(&file.path)?))).collect()
}

/// Makes code of the bytes; what is wrong with them is noted.
pub(crate) fn code_objects(images: &Images, notes: &mut Vec<String>) -> CodeObjects {
    let mut code = CodeObjects::default();
    for (id, bytes) in images {
        if let Err(error) = code.add(*id, bytes) {
            notes.push(format!("code object {id}: {error}; it is left out"));
        }
    }
    for (id, processor) in code.unreadable() {
        let why = match Disassembler::llvm_since(processor) {
            Some(since) => format!(
                "which LLVM's library (libLLVM.so.{since}.1 or newer) would disassemble, and it is not installed"
            ),
            None => "which is not disassembled here".to_owned(),
        };
        notes.push(format!(
            "code object {id} is for {processor}, {why}: its instructions have a kind and no address"
        ));
    }
    if code.ids().next().is_none() {
        notes.push(
            "no code objects (*_code_object_id_*.out) beside the trace: instructions have a kind and no address".to_owned(),
        );
    }
    code
}

/// Source lines of code objects.
struct SourceLines<'a>(BTreeMap<u64, DebugInfo<'a>>);

impl<'a> SourceLines<'a> {
    fn from_images(images: &'a Images, notes: &mut Vec<String>) -> Self {
        let mut lines = BTreeMap::new();
        for (id, bytes) in images {
            if let Ok(code) = DebugInfo::parse(bytes) {
                if let Some(problem) = code.problem() {
                    notes.push(format!("code object {id}: {problem}"));
                }
                lines.insert(*id, code);
            }
        }
        Self(lines)
    }

    /// `file:line` of an instruction, and of the calls that were inlined there, innermost first.
    fn places(&self, pc: Pc) -> String {
        let places = self
            .0
            .get(&pc.code_object)
            .map(|code| code.places(pc.address));
        let places = places.unwrap_or_default();
        let texts = places
            .iter()
            .map(|place| format!("{}:{}", place.file, place.line));
        texts.collect::<Vec<_>>().join(" -> ")
    }
}

/// Decodes one shader engine's trace.
fn decode_engine(
    file: &TraceFile,
    code: &CodeObjects,
    listing: &mut Listing,
    outputs: &mut Outputs,
    decoding: &mut Decoding<'_>,
) -> Result<EngineReport> {
    let library = decoding.library;
    let (stream, _) = regular_file::open(&file.path, Links::Follow)
        .with_context(|| format!("cannot open {}", file.path.display()))?;
    let (mut waves, mut instructions, mut bytes) = (0, 0, 0);
    let engine = file.engine;
    let mut gfx = 0;
    let mut occupancy = OccupancySums::default();
    let mut failed = None;
    let mut infos = Vec::new();
    let mut sink = |record: Record<'_>| match record {
        Record::Gfx(major) => {
            gfx = major;
            if let Some(directory) = &mut outputs.directory {
                directory.gfx(major);
            }
        }
        Record::Occupancy(records) => {
            occupancy.add(records);
            if let Some(directory) = &mut outputs.directory {
                directory.occupancy(engine, records);
            }
        }
        Record::Wave(wave) => {
            waves += u64::from(wave.part == 0);
            instructions += wave.instructions.len() as u64;
            listing.add(&wave, code);
            (decoding.wave)(engine, &wave);
            // Decoding goes on after a file failed: the counts are those of the whole trace.
            if failed.is_none() {
                failed = outputs.wave(engine, &wave, listing, code).err();
            }
        }
        Record::Perf(records) => {
            if let Some(directory) = &mut outputs.directory {
                directory.perf(engine, records);
            }
        }
        Record::Realtime(records) => {
            if let Some(directory) = &mut outputs.directory {
                directory.realtime(engine, records);
            }
        }
        Record::RealtimeFrequency(hertz) => {
            if let Some(directory) = &mut outputs.directory {
                directory.frequency(hertz);
            }
        }
        Record::OtherSimd(records) => {
            if let Some(directory) = &mut outputs.directory {
                directory.other_simd(engine, records);
            }
        }
        Record::ShaderData(records) => {
            if let Some(directory) = &mut outputs.directory {
                directory.shader_data(engine, records);
            }
        }
        Record::Info(info) => infos.push(info),
        // No file of the viewer's has them.
        Record::Events(_) | Record::Dispatches(_) => {}
    };
    let fail = || format!("cannot decode {}", file.path.display());
    // Decoding takes the code objects mutably, and the sink has them already.
    let mut code = code;
    let diagnosis = match library {
        None => rpd_att::decode(stream, &mut code, &mut sink).with_context(fail)?,
        Some(library) => {
            let mut stream = super::files::read_trace(&file.path).with_context(fail)?;
            bytes += stream.len() as u64;
            library
                .decode(&mut stream, code, &mut sink)
                .with_context(fail)?;
            Diagnosis::default()
        }
    };
    let diagnosis = match library {
        None => diagnosis,
        // A library returns less: counts are those of its records.
        Some(_) => Diagnosis {
            bytes,
            waves,
            instructions,
            lost: u64::from(infos.contains(&Info::DataLost)),
            unmatched: u64::from(infos.contains(&Info::StitchIncomplete)),
            incomplete_waves: u64::from(infos.contains(&Info::WaveIncomplete)),
            ..diagnosis
        },
    };
    if let Some(error) = failed {
        return Err(error);
    }
    occupancy.finish();
    Ok(EngineReport {
        engine,
        diagnosis,
        occupancy,
        gfx,
    })
}

/// Decodes the traces of a dispatch, and writes their results below `into`.
///
/// A trace that cannot be decoded is reported in the notes; the others are decoded.
///
/// # Errors
/// When files cannot be read or written.
pub(crate) fn decode_dispatch(
    traces: &Traces,
    key: &TraceKey,
    into: &Path,
    decoding: &mut Decoding<'_>,
) -> Result<Decoded> {
    let wanted = decoding.wanted;
    let mut notes = Vec::new();
    let images = images(traces, key)?;
    let code = code_objects(&images, &mut notes);
    let lines = SourceLines::from_images(&images, &mut notes);
    let source = |pc: Pc| lines.places(pc);
    let name = directory_name(key);
    std::fs::create_dir_all(into)
        .with_context(|| format!("cannot make the directory {}", into.display()))?;
    // A directory gets its final name when it is complete.
    let pending = if wanted.json {
        Some(
            TemporaryDirectory::in_directory(into)
                .with_context(|| format!("cannot write to {}", into.display()))?,
        )
    } else {
        None
    };
    let mut outputs = Outputs {
        directory: pending.as_ref().map(|pending| {
            let mut directory = Directory::new(pending.path().to_owned());
            directory.copy_sources(wanted.sources);
            directory
        }),
        trace: if wanted.pftrace {
            Some(WaveTrace::create(into.join(format!("{name}.pftrace")))?)
        } else {
            None
        },
    };
    let mut listing = Listing::default();
    let mut engines = Vec::new();
    for file in traces.traces.get(key).into_iter().flatten() {
        match decode_engine(file, &code, &mut listing, &mut outputs, decoding) {
            Ok(report) => {
                for line in report.diagnosis.to_string().lines() {
                    notes.push(format!("{}: {line}", file.path.display()));
                }
                engines.push(report);
            }
            // A damaged trace of one engine leaves those of the others.
            Err(error) => notes.push(crate::failure::line(&error)),
        }
    }
    if !engines.is_empty() && engines.iter().all(|engine| engine.diagnosis.waves == 0) {
        let started: u64 = engines
            .iter()
            .map(|engine| engine.occupancy.started())
            .sum();
        notes.push(format!(
            "thread trace {} of agent {}: no wave ran on the traced compute unit ({} ran on others of the traced shader engines), \
             so it has occupancy but no instructions; try another --att-target-cu, more bits of --att-shader-engine-mask, a \
             larger grid or HSA_CU_MASK",
            key.dispatch,
            key.agent,
            crate::wording::count(started, "wave"),
        ));
    }
    // The label has the name already; the original leaves the place empty where that is all there is.
    let demangled = |name: &str| match demangle_any(name) {
        text if text == name => String::new(),
        text => text.into_owned(),
    };
    let mut written = Vec::new();
    if let (Some(directory), Some(pending)) = (outputs.directory, pending) {
        directory
            .finish(&listing, &code, decoding.counters, &source, &demangled)
            .with_context(|| format!("cannot write {name}"))?;
        written.push(replace(pending, &into.join(&name))?);
    }
    if let Some(trace) = outputs.trace {
        written.push(trace.finish()?);
    }
    if wanted.csv {
        let path = into.join(format!("stats_{name}.csv"));
        written.push(write_lines(path, &listing, &source, &demangled)?);
    }
    Ok(Decoded {
        engines,
        listing,
        notes,
        written,
    })
}

/// Gives a complete directory its name; one of that name is replaced.
fn replace(pending: TemporaryDirectory, path: &Path) -> Result<PathBuf> {
    let fail = || format!("cannot write {}", path.display());
    if path.exists() {
        std::fs::remove_dir_all(path).with_context(fail)?;
    }
    pending.persist(path).with_context(fail)?;
    Ok(path.to_owned())
}

fn write_lines(
    path: PathBuf,
    listing: &Listing,
    source: &dyn Fn(Pc) -> String,
    demangle: &dyn Fn(&str) -> String,
) -> Result<PathBuf> {
    let mut lines: Vec<_> = listing.lines().iter().collect();
    lines.sort_by_key(|line| (line.pc.code_object, line.pc.address));
    let mut rows = Vec::new();
    for line in lines {
        if let Some(label) = listing.label(line.pc) {
            let label = (format!("; {label}"), demangle(label));
            rows.push((line, Some(label), String::new()));
        }
        rows.push((line, None, source(line.pc)));
    }
    let traced = rows.iter().map(|(line, label, source)| match label {
        Some((name, demangled)) => TracedLine {
            code_object: line.pc.code_object,
            address: line.pc.address,
            instruction: name,
            hits: 0,
            latency: 0,
            stall: 0,
            idle: 0,
            source: demangled,
        },
        None => TracedLine {
            code_object: line.pc.code_object,
            address: line.pc.address,
            instruction: &line.text,
            hits: line.hits,
            latency: line.latency,
            stall: line.stall,
            idle: line.idle,
            source,
        },
    });
    Ok(write_traced_lines(path, traced, false)?)
}
