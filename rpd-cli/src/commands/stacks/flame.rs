//! `rpd flame`: flame graphs.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_core::compat::Compat;
use rpd_formats::flame::{Frame, Kind, Profile};
use rpd_symbols::analysis::{Cost, Part, Texts, Weight, costs};
use rpd_symbols::each_rpd_stack;

use super::super::flame_format::FlameFormat;
use super::super::window::WindowOptions;
use super::super::{Inputs, Naming, destination, expand as expand_paths, parse, write_output};
use super::sources::Sources;
use super::{FrameOptions, WeightName, each_stacked, glob, matches_globs};
use crate::failure::Failure;

const NAME: &str = "flame";

/// Write a flame graph of the call stacks
#[derive(Debug, Parser)]
#[command(
    after_help = "Files of RPD (ROCm/rocmProfileData) with stack frames are read as well; their frames are shown as recorded."
)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Meaning of the widths; pages, pprof, speedscope and Firefox files have the others as well
    #[arg(long, value_enum, default_value = "calls")]
    weight: WeightName,
    /// Functions whose calls are shown: names with * and ?; !NAME leaves a function out [default: all]
    #[arg(long, value_name = "GLOB", value_delimiter = ',', value_parser = glob)]
    api: Vec<String>,
    /// Show Python frames only, and the calls
    #[arg(long, conflicts_with = "native_only")]
    python_only: bool,
    /// Show native frames only, and the calls
    #[arg(long)]
    native_only: bool,
    /// Put the calls at the root, and their callers above them
    #[arg(long)]
    invert: bool,
    /// What is one box in pages and speedscope files: a function, or each of its lines that make calls
    #[arg(long, value_enum, default_value = "function")]
    by: Grouping,
    /// Earlier recordings to compare with: a database, or a directory that holds some
    #[arg(long, value_name = "OTHER")]
    diff: Option<PathBuf>,
    /// Output format
    #[arg(short = 'f', long, value_enum, default_value = "html")]
    format: FlameFormat,
    /// File to write instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    frames: FrameOptions,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    window: WindowOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Grouping {
    Function,
    Line,
}

/// Runs the sub-command.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    let has_file = given.output_file.is_some();
    (given.format).refuse_unusable(NAME, given.diff.is_some(), has_file)?;
    let paths = given.inputs.paths(NAME)?;
    let title = given.title(&paths);
    let others = match &given.diff {
        Some(path) => expand_paths(&[path])?,
        None => Vec::new(),
    };
    let inputs = paths.iter().chain(&others);
    let output = destination(NAME, given.output_file.as_deref(), inputs)?;
    let sources = Sources::open(NAME, paths, Some(&given.window))?;
    // The viewers of the other formats merge lines themselves.
    let merges = matches!(given.format, FlameFormat::Html | FlameFormat::Speedscope);
    let is_merged = given.by == Grouping::Function && merges;
    let grouped = |profile: Profile| {
        if is_merged {
            profile.by_function()
        } else {
            profile
        }
    };
    let profile = grouped(given.profile(&sources)?);
    let before = match &given.diff {
        Some(_) => Some(grouped(given.profile(&Sources::open(NAME, others, None)?)?)),
        None => None,
    };
    if profile.is_empty() && before.as_ref().is_none_or(Profile::is_empty) {
        return Err(Failure::failed(format!(
            "flame: no stack has {}; choose another --weight or --api",
            Weight::from(given.weight).name()
        ))
        .into());
    }
    write_output(output, Compat::None, |out| {
        Ok(profile.write(given.format.into(), &title, before.as_ref(), out)?)
    })?;
    Ok(0)
}

impl Arguments {
    fn profile(&self, sources: &Sources) -> Result<Profile> {
        let first = Weight::from(self.weight);
        let others = Weight::ALL.into_iter().filter(|weight| *weight != first);
        let weights: Vec<Weight> = std::iter::once(first).chain(others).collect();
        let values = |cost: &Cost| weights.iter().map(|&weight| cost.of(weight)).collect();
        let part = match (self.python_only, self.native_only) {
            (true, _) => Part::Python,
            (_, true) => Part::Native,
            _ => Part::All,
        };
        let kinds = weights.iter().map(|weight| (weight.name(), weight.unit()));
        let mut profile = Profile::new(&kinds.collect::<Vec<_>>());
        for file in &sources.rpd_files {
            each_rpd_stack(file, |function, cost, frames| {
                let Some(frames) = frames.filter(|_| matches_globs(&self.api, function)) else {
                    return;
                };
                let call = Frame {
                    kind: Kind::Call,
                    name: function.to_owned(),
                    file: String::new(),
                    line: 0,
                };
                let outwards = std::iter::once(&call).chain(frames);
                let shown: Vec<Frame> = outwards
                    .filter(|frame| part.has(frame.kind))
                    .cloned()
                    .collect();
                let values: Vec<u64> = values(&cost);
                profile.add(shown.into_iter().rev(), &values);
            })?;
        }
        each_stacked(
            NAME,
            sources,
            &self.frames,
            false,
            |path, session, settings, expanded| {
                let names = self.naming.over(settings);
                let costs = costs(session, names, |name| matches_globs(&self.api, name));
                crate::commands::note_left_out(path, costs.without_time);
                let texts = Texts::new(session, expanded);
                for (used, cost) in &costs.uses {
                    let values: Vec<u64> = values(cost);
                    profile.add(texts.flame(*used, part), &values);
                }
                Ok(())
            },
        )?;
        Ok(if self.invert {
            profile.inverted()
        } else {
            profile
        })
    }

    fn title(&self, paths: &[PathBuf]) -> String {
        let mut title = match paths {
            [only] => {
                let name = only.file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            }
            several => format!("{} databases", several.len()),
        };
        if let Some(other) = &self.diff {
            title += &format!(" against {}", other.display());
        }
        title
    }
}
