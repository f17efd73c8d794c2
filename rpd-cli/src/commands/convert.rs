//! `rpd convert`: writes the outputs of a run from its database.

mod dataset;
mod joint;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Parser};
use rpd_core::compat::{Compat, Difference};
use rpd_core::naming::{self, Facts, Namer, Target};
use rpd_core::options::{AgentIndex, Format, Layout, Options, RocpdSchema};
use rpd_core::session::{LoadOptions, Session};
use rpd_core::text::os_text;
use rpd_formats::registry;
use rpd_formats::rocpd::read::{Database, Settings};
use rpd_summary::Statistics;

use super::window::WindowOptions;
use super::{
    Inputs, Naming, ROCPD_DIRECTORY, ROCPD_FILE, each_recording, each_recording_of, inherited,
    note_left_out, parse, spread,
};
use crate::exit_status;
use crate::failure::Failure;
use crate::report::write::write;
use crate::report::{Progress, records};

const NAME: &str = "convert";
/// Suffix of the names of databases.
const SUFFIX: &str = "_results";

/// Write the outputs of a run again, from its database
#[derive(Debug, Parser)]
#[command(
    after_help = "Files are named after the database: trace_results.db gives trace_kernel_trace.csv and so on."
)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    #[arg(short = 'f', long = "output-format", help = format!("Formats to write: {}", registry::list()), alias = "format", value_name = "FORMAT", required = true,
        value_delimiter = ',', value_parser = format)]
    formats: Vec<Format>,
    /// Prefix of the output files; may hold placeholders such as %pid% [default: that of the database]
    #[arg(short = 'o', long, value_name = "PREFIX")]
    output_file: Option<OsString>,
    /// Directory of the output files; may hold placeholders [default: the current directory]
    #[arg(
        short = 'd',
        long = "output-path",
        alias = "output-directory",
        value_name = "DIR"
    )]
    output_path: Option<OsString>,
    /// rpd: files per process as a run writes them; original: named as rocpd convert names them, one set of CSV files for all,
    /// and databases with the columns of the original in its order [default: rpd]
    #[arg(long, value_name = "WHICH", value_parser = layout_of_word)]
    layout: Option<Layout>,
    /// Version of the schema of databases, for -f rocpd: 3, 3.0.1, 3.0.2, 3.0.3 or 3.0.4. What it has no place for is left out, and a
    /// line says so [default: the first that has a place for all of the recording]
    #[arg(long, value_name = "VERSION", value_parser = schema_of_word)]
    rocpd_schema: Option<RocpdSchema>,
    #[command(flatten)]
    naming: Naming,
    /// How agents are numbered: absolute, relative or type-relative
    #[arg(short = 'A', long = "agent-index-value", alias = "agent-index", value_name = "HOW", default_value = "relative",
        value_parser = agent_index)]
    agent_index: AgentIndex,
    /// Attribute work to hardware queues instead of HIP streams
    #[arg(long)]
    group_by_queue: bool,
    /// Write the statistics files too
    #[arg(long)]
    stats: bool,
    /// Begin CSV fields that a spreadsheet would take for a formula (=, +, -, @) with an apostrophe
    #[arg(long)]
    csv_safe: bool,
    /// Write one file with the time line of all recordings, for pftrace, json and html: by host, rank and GPU, with the clocks
    /// of hosts aligned
    #[arg(long)]
    one_timeline: bool,
    /// Message of ROCTx ranges in which all ranks wait for one another, for --one-timeline; may be given several times
    /// [default: MPI_Barrier]
    #[arg(long, value_name = "MESSAGE")]
    barrier: Vec<String>,
    /// Add the recordings to the data set in this directory, for parquet: partitioned by host, rank and kind of record. A
    /// recording that is there already is replaced
    #[arg(long, value_name = "DIR", conflicts_with = "one_timeline")]
    dataset: Option<PathBuf>,
    /// File of libotf2, for -f otf2 [default: the one that the loader finds]
    #[arg(long, value_name = "PATH")]
    otf2_library: Option<PathBuf>,
    #[command(flatten)]
    window: WindowOptions,
    #[command(flatten)]
    perfetto: Perfetto,
}

/// Settings of a tracing service that rpd does without.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Perfetto (accepted without effect: there is no buffer that could be full)"
)]
struct Perfetto {
    /// inprocess or system
    #[arg(long, value_name = "BACKEND", value_parser = ["inprocess", "system"])]
    perfetto_backend: Option<String>,
    /// discard or ring_buffer
    #[arg(long, value_name = "POLICY", value_parser = ["discard", "ring_buffer"])]
    perfetto_buffer_fill_policy: Option<String>,
    /// Size of the buffer
    #[arg(long, value_name = "KIB")]
    perfetto_buffer_size: Option<u64>,
    /// Hint for shared memory
    #[arg(long, value_name = "KIB")]
    perfetto_shmem_size_hint: Option<u64>,
}

fn format(text: &str) -> Result<Format, String> {
    let text = text.to_ascii_lowercase();
    let text = if text == "perfetto" { "pftrace" } else { &text };
    Format::from_word(text).ok_or_else(|| format!("choose from {}", Format::WORDS.join(", ")))
}

fn layout_of_word(text: &str) -> Result<Layout, String> {
    Layout::from_word(text).ok_or_else(|| format!("choose from {}", Layout::WORDS.join(", ")))
}

fn schema_of_word(text: &str) -> Result<RocpdSchema, String> {
    RocpdSchema::from_word(text)
        .ok_or_else(|| format!("choose from {}", RocpdSchema::WORDS.join(", ")))
}

fn agent_index(text: &str) -> Result<AgentIndex, String> {
    match text {
        "absolute" => Ok(AgentIndex::Absolute),
        "relative" => Ok(AgentIndex::Relative),
        "type-relative" => Ok(AgentIndex::TypeRelative),
        _ => Err("choose from absolute, relative, type-relative".to_owned()),
    }
}

/// The definition of the command's options, for the test that compares them with those of a run.
#[cfg(test)]
pub(crate) fn command() -> clap::Command {
    super::with_quiet(<Arguments as clap::CommandFactory>::command())
}

/// Runs `rpd convert`; returns the exit status.
pub(crate) fn run(arguments: &[OsString], compat: Compat) -> Result<u8> {
    let is_format = |word: &str| word.split(',').all(|part| format(part).is_ok());
    let words = spread(arguments, &["-f", "--output-format", "--format"], is_format);
    let Some(mut given) = parse::<Arguments>(NAME, &words)? else {
        return Ok(0);
    };
    // As rocprofv3's tools do.
    given.output_file = given.output_file.or_else(|| inherited("ROCPD_OUTPUT_NAME"));
    given.output_path = given.output_path.or_else(|| inherited("ROCPD_OUTPUT_PATH"));
    // A format that is given twice would be written twice under one name.
    let mut seen = Vec::new();
    given.formats.retain(|format| {
        let is_new = !seen.contains(format);
        seen.push(*format);
        is_new
    });
    let layout = given
        .layout
        .unwrap_or(if compat.has(Difference::RocpdLayout) {
            Layout::Original
        } else {
            Layout::Rpd
        });
    given.layout = Some(layout);
    // The original's names, which scripts look for.
    if layout == Layout::Original {
        given.output_file = given.output_file.or_else(|| Some(ROCPD_FILE.into()));
        given.output_path = given.output_path.or_else(|| Some(ROCPD_DIRECTORY.into()));
    }
    let paths = given.inputs.paths(NAME)?;
    let window = given.window.resolve(NAME, &paths)?;
    if let Some(directory) = &given.dataset {
        if given.formats != [Format::Parquet] {
            let text = format!("{NAME}: --dataset is for -f parquet and no other format");
            return Err(Failure::usage(text).into());
        }
        dataset::add(&given, directory, &paths, window.as_ref())?;
        return Ok(exit_status::SUCCESS);
    }
    if given.one_timeline {
        joint::timeline(&given, &paths, window.as_ref(), compat)?;
        return Ok(exit_status::SUCCESS);
    }
    let load = LoadOptions {
        args: given
            .formats
            .iter()
            .any(|format| registry::entry(*format).arguments),
        rows: None,
    };
    if compat.has(Difference::RocpdWords) {
        for format in &given.formats {
            let format = format!("{format:?}").to_lowercase();
            crate::print(&format!("Converting database(s) to {format} format:\n"))?;
        }
    }
    // Databases are read again for CSV files that are one set for all.
    let is_combined = layout == Layout::Original && given.formats.contains(&Format::Csv);
    let sizes = paths.iter().map(|path| size(path));
    let steps = given.formats.len() as u64 + 1 + u64::from(is_combined);
    let progress = Progress::new(sizes.sum::<u64>().saturating_mul(steps));
    if is_combined {
        let mut sessions = Vec::new();
        let mut settings = Settings::default();
        let mut weight = 0;
        for path in &paths {
            weight += size(path);
            progress.step("reading", size(path), 0);
            let paths = std::slice::from_ref(path);
            each_recording(paths, load, window.as_ref(), |_, _, session, own| {
                sessions.push(session);
                settings = own;
                Ok(())
            })?;
        }
        progress.step("writing csv", weight, sessions.iter().map(records).sum());
        let files = combined(&given, &sessions, &settings)?;
        progress.aside(|| report(&files, compat));
        // CSV is done; the other formats are made of one recording each.
        given.formats.retain(|format| *format != Format::Csv);
        if given.formats.is_empty() {
            return Ok(0);
        }
    }
    let mut namer = Namer::default();
    let mut complete = true;
    for path in &paths {
        let database = Database::open(path)?;
        // Of several recordings in a file each counts as much.
        let weight = size(path) / database.recordings().len().max(1) as u64;
        let step = |label: &str, expected: u64| progress.step(label, weight, expected);
        step("reading", 0);
        each_recording_of(
            &database,
            load,
            window.as_ref(),
            |index, session, settings| {
                let recording = DatabaseRecording {
                    path,
                    index,
                    session: &session,
                    settings: &settings,
                };
                let files = convert_recording(&given, &paths, &recording, &mut namer, &step)?;
                complete &= files.is_complete;
                progress.aside(|| report(&files.written, compat));
                step("reading", 0);
                Ok(())
            },
        )?;
    }
    Ok(exit_status::from_complete(complete))
}

impl Arguments {
    /// The formats to write, and their destination: `file` is an escaped prefix (see [`os_text`]).
    fn options(&self, settings: &Settings, file: String, directory: &OsStr) -> Result<Options> {
        let pattern = os_text::escape(directory);
        for pattern in [&file, &pattern] {
            naming::check(pattern)
                .map_err(|error| Failure::usage(format!("{NAME}: {error} in '{pattern}'")))?;
        }
        let directory = if naming::starts_with_placeholder(&pattern) {
            pattern
        } else {
            os_text::escape(std::path::absolute(directory)?.as_os_str())
        };
        Ok(Options {
            formats: self.formats.clone(),
            layout: self.layout.unwrap_or_default(),
            rocpd_schema: self.rocpd_schema,
            output_directory: directory,
            output_file: file,
            stats: self.stats,
            csv_safe: self.csv_safe,
            otf2_library: match &self.otf2_library {
                Some(path) => Some(std::path::absolute(path)?),
                None => None,
            },
            kernel_names: self.naming.over(settings),
            agent_index: self.agent_index,
            group_by_queue: self.group_by_queue || settings.group_by_queue,
            launch_environment: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .filter(|(name, _)| naming::is_naming_variable(name))
                .map(|(name, value)| (name, os_text::escape(&value)))
                .collect(),
            ..Options::default()
        })
    }
}

/// The prefix that a database was written under.
fn prefix(path: &Path) -> String {
    let stem = os_text::escape(path.file_stem().unwrap_or_default());
    match stem.strip_suffix(SUFFIX) {
        Some(prefix) if !prefix.is_empty() => prefix.to_owned(),
        _ => stem,
    }
}

fn target(session: &Session, options: &Options, namer: &mut Namer, index: usize) -> Target {
    let origin = session.origin.as_ref();
    let facts = Facts {
        process: &session.process,
        options,
        hostname: origin.map_or("", |origin| &origin.hostname),
    };
    let target = namer.target(&facts, index > 0);
    for remark in namer.take_remarks() {
        eprintln!("rpd: names of outputs: {remark}");
    }
    target
}

/// The result for one recording.
#[derive(Debug)]
struct Files {
    written: Vec<PathBuf>,
    /// Whether every file was written.
    is_complete: bool,
}

/// A recording in a database.
struct DatabaseRecording<'a> {
    path: &'a Path,
    /// Number of the recording in the database, from 0.
    index: usize,
    session: &'a Session,
    settings: &'a Settings,
}

/// Writes the files of one recording. `step` gets what is done next, and the records that it writes.
fn convert_recording(
    given: &Arguments,
    inputs: &[PathBuf],
    recording: &DatabaseRecording<'_>,
    namer: &mut Namer,
    step: &dyn Fn(&str, u64),
) -> Result<Files> {
    let &DatabaseRecording {
        path,
        index,
        session,
        settings,
    } = recording;
    let file = match &given.output_file {
        Some(file) => os_text::escape(file),
        None => prefix(path),
    };
    let directory = given.output_path.as_deref().unwrap_or(OsStr::new("."));
    let options = given.options(settings, file, directory)?;
    let target = target(session, &options, namer, index);
    let names = options
        .formats
        .iter()
        .filter_map(|format| registry::entry(*format).file);
    // Checked before anything is written: the input would be lost.
    for file in names.map(|name| target.file(name)) {
        let written = file.canonicalize();
        let is_input =
            |input: &PathBuf| input.canonicalize().ok() == written.as_ref().ok().cloned();
        if written.is_ok() && inputs.iter().any(is_input) {
            return Err(Failure::failed(format!(
                "convert: {} is an input too; choose another name with -o or another directory with -d",
                file.display()
            ))
            .into());
        }
    }
    // Told, because a file with nothing in it looks like a failure.
    if session.is_empty() {
        eprintln!("rpd: {}: no records to write", path.display());
        return Ok(Files {
            written: Vec::new(),
            is_complete: true,
        });
    }
    let stats = if options.stats {
        Some(Statistics::new(session, options.kernel_names)?.session_stats()?)
    } else {
        None
    };
    note_left_out(path, stats.as_ref().map_or(0, |stats| stats.left_out));
    let mut files = Files {
        written: Vec::new(),
        is_complete: true,
    };
    for format in &options.formats {
        step(&format!("writing {}", format.word()), records(session));
        // A format that fails does not keep the others from being written.
        match write(*format, session, stats.as_ref(), &options, &target) {
            Ok(written) => files.written.extend(written),
            Err(error) => {
                eprintln!("rpd: {}", crate::failure::line(&error));
                files.is_complete = false;
            }
        }
    }
    Ok(files)
}

/// Writes the CSV files that are one set for all recordings.
fn combined(given: &Arguments, sessions: &[Session], settings: &Settings) -> Result<Vec<PathBuf>> {
    let file = given.output_file.clone().unwrap_or_default();
    let file = os_text::escape(&file);
    let directory = given.output_path.as_deref().unwrap_or_default();
    let options = given.options(settings, file, directory)?;
    let Some(first) = sessions.first() else {
        eprintln!("rpd: no records to write");
        return Ok(Vec::new());
    };
    let target = target(first, &options, &mut Namer::default(), 0);
    Ok(rpd_formats::csv::write_combined(
        sessions, &options, &target,
    )?)
}

/// The size of a file in bytes, by which its part of the progress is reckoned; 0 when it is not known.
fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

fn report(files: &[PathBuf], compat: Compat) {
    for file in files {
        if compat.has(Difference::ResultFiles) {
            eprintln!("Opened result file: {}", file.display())
        } else {
            notice!("rpd: wrote {}", crate::report::shown(file))
        }
    }
}
