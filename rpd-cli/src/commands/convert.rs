//! `rpd convert`: outputs of a run again, from its database.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_core::naming::{self, Facts, Namer, Target};
use rpd_core::options::{AgentIndex, Format, Options};
use rpd_core::session::{LoadOptions, Session};
use rpd_formats::rocpd::read::Settings;
use rpd_summary::Statistics;

use super::window::WindowOptions;
use super::{Inputs, Naming, each_recording, parse, spread};
use crate::failure::Failure;
use crate::report::write::{FORMATS, write};

const NAME: &str = "convert";
/// What the original's converter calls files and their directory when it is told nothing.
const ROCPD_FILE: &str = "out";
const ROCPD_DIRECTORY: &str = "rocpd-output-data";
/// How the name of a database ends.
const SUFFIX: &str = "_results";

/// Writes the outputs of a run again, from its database
#[derive(Debug, Parser)]
#[command(
    after_help = "Files are named after the database: trace_results.db gives trace_kernel_trace.csv and so on."
)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Formats to write
    #[arg(short = 'f', long = "output-format", alias = "format", value_name = "FORMAT", required = true,
        value_delimiter = ',', value_parser = format)]
    formats: Vec<Format>,
    /// Prefix of the output files; may hold placeholders such as %pid% [default: that of the database]
    #[arg(short = 'o', long, value_name = "PREFIX")]
    output_file: Option<String>,
    /// Directory of the output files; may hold placeholders [default: the current directory]
    #[arg(
        short = 'd',
        long = "output-path",
        alias = "output-directory",
        value_name = "DIR"
    )]
    output_path: Option<String>,
    /// run: files per process as a run writes them; rocpd: one set for all, as rocpd convert writes it (csv only)
    #[arg(long, value_enum, default_value = "run")]
    layout: Layout,
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
    #[command(flatten)]
    window: WindowOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layout {
    Run,
    Rocpd,
}

fn format(text: &str) -> Result<Format, String> {
    let text = text.to_ascii_lowercase();
    let text = if text == "perfetto" { "pftrace" } else { &text };
    let known = FORMATS.iter().find(|(name, _)| *name == text);
    known.map(|(_, format)| *format).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
        format!("choose from {}", names.join(", "))
    })
}

fn agent_index(text: &str) -> Result<AgentIndex, String> {
    match text {
        "absolute" => Ok(AgentIndex::Absolute),
        "relative" => Ok(AgentIndex::Relative),
        "type-relative" => Ok(AgentIndex::TypeRelative),
        _ => Err("choose from absolute, relative, type-relative".to_owned()),
    }
}

/// Runs the sub-command.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let is_format = |word: &str| word.split(',').all(|part| format(part).is_ok());
    let words = spread(arguments, &["-f", "--output-format", "--format"], is_format);
    let Some(mut given) = parse::<Arguments>(NAME, &words)? else {
        return Ok(0);
    };
    // As the original's tools have it.
    let inherited = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    given.output_file = given.output_file.or_else(|| inherited("ROCPD_OUTPUT_NAME"));
    given.output_path = given.output_path.or_else(|| inherited("ROCPD_OUTPUT_PATH"));
    let mut seen = Vec::new();
    given.formats.retain(|format| {
        let is_new = !seen.contains(format);
        seen.push(*format);
        is_new
    });
    let paths = given.inputs.paths(NAME)?;
    let window = given.window.resolve(NAME, &paths)?;
    let load = LoadOptions {
        args: given
            .formats
            .iter()
            .any(|format| matches!(format, Format::Json | Format::Pftrace | Format::Rocpd)),
    };
    if given.layout == Layout::Rocpd {
        if given.formats != [Format::Csv] {
            return Err(Failure::usage(
                "convert: argument --layout: the rocpd layout is one of csv only; give -f csv alone with it",
            )
            .into());
        }
        let mut sessions = Vec::new();
        let mut settings = Settings::default();
        each_recording(&paths, load, window.as_ref(), |_, _, session, own| {
            sessions.push(session);
            settings = own;
            Ok(())
        })?;
        return combined(&given, &sessions, &settings);
    }
    let mut namer = Namer::default();
    let mut complete = true;
    each_recording(
        &paths,
        load,
        window.as_ref(),
        |path, index, session, settings| {
            complete &= one(&given, &paths, path, index, &session, &settings, &mut namer)?;
            Ok(())
        },
    )?;
    Ok(if complete { 0 } else { 1 })
}

impl Arguments {
    fn options(&self, settings: &Settings, file: String, directory: &str) -> Result<Options> {
        for pattern in [&file, directory] {
            naming::check(pattern)
                .map_err(|error| Failure::usage(format!("{NAME}: {error} in '{pattern}'")))?;
        }
        let directory = match naming::starts_with_placeholder(directory) {
            true => directory.to_owned(),
            false => std::path::absolute(directory)?
                .to_string_lossy()
                .into_owned(),
        };
        Ok(Options {
            formats: self.formats.clone(),
            output_directory: directory,
            output_file: file,
            stats: self.stats,
            kernel_names: self.naming.over(settings),
            agent_index: self.agent_index,
            group_by_queue: self.group_by_queue || settings.group_by_queue,
            launch_environment: std::env::vars()
                .filter(|(name, _)| naming::is_naming_variable(name))
                .collect(),
            ..Options::default()
        })
    }
}

/// The prefix that a database was written under.
fn prefix(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match stem.strip_suffix(SUFFIX) {
        Some(prefix) if !prefix.is_empty() => prefix.to_owned(),
        _ => stem.into_owned(),
    }
}

fn target(session: &Session, options: &Options, namer: &mut Namer, index: usize) -> Target {
    let origin = session.origin.as_ref();
    let facts = Facts {
        process: &session.process,
        options,
        hostname: origin.map_or("", |origin| &origin.hostname),
    };
    namer.target(&facts, index > 0)
}

/// Writes the files of one recording; false when one could not be written.
fn one(
    given: &Arguments,
    inputs: &[PathBuf],
    path: &Path,
    index: usize,
    session: &Session,
    settings: &Settings,
    namer: &mut Namer,
) -> Result<bool> {
    let file = given.output_file.clone().unwrap_or_else(|| prefix(path));
    let directory = given.output_path.as_deref().unwrap_or(".");
    let options = given.options(settings, file, directory)?;
    let target = target(session, &options, namer, index);
    if given.formats.contains(&Format::Rocpd) {
        let database = target.file("results.db").canonicalize();
        let is_input =
            |input: &PathBuf| input.canonicalize().ok() == database.as_ref().ok().cloned();
        if database.is_ok() && inputs.iter().any(is_input) {
            return Err(Failure::failed(format!(
                "convert: {} is an input too; choose another name with -o or another directory with -d",
                target.file("results.db").display()
            ))
            .into());
        }
    }
    if session.is_empty() {
        eprintln!("rpd: {}: no records to write", path.display());
        return Ok(true);
    }
    let stats = match options.stats {
        true => Some(Statistics::new(session, options.kernel_names)?.session_stats()?),
        false => None,
    };
    let mut complete = true;
    for format in &options.formats {
        match write(*format, session, stats.as_ref(), &options, &target) {
            Ok(files) => report(&files),
            Err(error) => {
                eprintln!("rpd: {}", crate::failure::line(&error));
                complete = false;
            }
        }
    }
    Ok(complete)
}

fn combined(given: &Arguments, sessions: &[Session], settings: &Settings) -> Result<u8> {
    let file = given
        .output_file
        .clone()
        .unwrap_or_else(|| ROCPD_FILE.to_owned());
    let directory = given.output_path.as_deref().unwrap_or(ROCPD_DIRECTORY);
    let options = given.options(settings, file, directory)?;
    let Some(first) = sessions.first() else {
        eprintln!("rpd: no records to write");
        return Ok(0);
    };
    let target = target(first, &options, &mut Namer::default(), 0);
    report(&rpd_formats::csv::write_combined(
        sessions, &options, &target,
    )?);
    Ok(0)
}

fn report(files: &[PathBuf]) {
    for file in files {
        eprintln!("rpd: wrote {}", crate::report::shown(file));
    }
}
