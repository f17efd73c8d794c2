//! Sub-commands about call stacks: which lines of code made the calls of a recording.

pub(crate) mod export;
pub(crate) mod flame;
mod sources;
pub(crate) mod symbolize;
mod table;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use rpd_core::session::shown::{Expanded, expand};
use rpd_core::session::stacks::ShownFrames;
use rpd_core::session::{LoadOptions, Session};
use rpd_formats::rocpd::read::Settings;
use rpd_spool::stacks::{is_glob, picks};
use rpd_symbols::analysis::Weight;
use rpd_symbols::{Search, Symbolizer, is_looked_up, look_up};

pub(crate) use table::run;

use super::each_recording;
use crate::failure::Failure;
use sources::Sources;

/// Which frames are shown, and where their symbols are from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Frames")]
struct FrameOptions {
    /// Show frames of the GPU runtime below each call
    #[arg(long)]
    runtime_frames: bool,
    /// Show native frames of the Python interpreter
    #[arg(long)]
    interpreter_frames: bool,
    /// Directory with debug information or copies of programs and libraries; may be given several times
    #[arg(long = "debug-dir", value_name = "DIR")]
    debug_dirs: Vec<PathBuf>,
}

impl FrameOptions {
    fn symbolizer(&self) -> Result<Symbolizer> {
        for dir in &self.debug_dirs {
            if !dir.is_dir() {
                return Err(Failure::usage(format!(
                    "--debug-dir {}: no such directory",
                    dir.display()
                ))
                .into());
            }
        }
        Ok(Symbolizer::new(Search::with_dirs(&self.debug_dirs)))
    }

    /// The frames that are shown: those that options request and those that the database shows.
    fn shown(&self, stored: ShownFrames) -> ShownFrames {
        ShownFrames {
            runtime: self.runtime_frames || stored.runtime,
            interpreter: self.interpreter_frames || stored.interpreter,
        }
    }
}

/// Weight of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WeightName {
    /// Calls
    Calls,
    /// Time in calls
    Cpu,
    /// Time of the kernels and copies that calls requested
    Gpu,
    /// Bytes that were copied or allocated
    Bytes,
}

impl From<WeightName> for Weight {
    fn from(name: WeightName) -> Weight {
        match name {
            WeightName::Calls => Weight::Calls,
            WeightName::Cpu => Weight::Cpu,
            WeightName::Gpu => Weight::Gpu,
            WeightName::Bytes => Weight::Bytes,
        }
    }
}

/// A pattern of function names, as options give it.
fn glob(text: &str) -> Result<String, String> {
    if is_glob(text) {
        Ok(text.to_owned())
    } else {
        Err(
            "expected a name with * for any text and ? for any character, such as hipMemcpy*"
                .to_owned(),
        )
    }
}

/// Whether a function matches a pattern; without patterns every function does.
fn matches_globs(globs: &[String], name: &str) -> bool {
    globs.is_empty() || picks(globs, name)
}

/// Calls `take` with each recording of the databases that has call stacks. With `sites` the innermost frames count: frames of
/// the GPU runtime are shown if an option requests them, not because the database shows them.
fn each_stacked(
    name: &str,
    sources: &Sources,
    frames: &FrameOptions,
    sites: bool,
    mut take: impl FnMut(&Path, &Session, &Settings, &Expanded) -> Result<()>,
) -> Result<()> {
    let mut symbolizer = frames.symbolizer()?;
    let load = LoadOptions {
        args: false,
        ..LoadOptions::default()
    };
    let mut count = 0;
    let (paths, window) = (&*sources.databases, sources.window.as_ref());
    each_recording(paths, load, window, |path, _, mut session, settings| {
        if session.stacks.is_empty() {
            return Ok(());
        }
        count += 1;
        if !is_looked_up(&session) {
            look_up(&mut session, &mut symbolizer);
            eprintln!(
                "rpd: {}: has no symbols yet: they are looked up for this answer; rpd symbolize keeps them",
                path.display()
            );
        }
        let stored = ShownFrames {
            runtime: settings.shown_frames.runtime && !sites,
            ..settings.shown_frames
        };
        let expanded = expand(&session, frames.shown(stored));
        take(path, &session, &settings, &expanded)
    })?;
    for note in symbolizer.notes() {
        eprintln!("rpd: {name}: {note}");
    }
    match (count, paths) {
        (_, []) => Ok(()),
        (0, [path]) => Err(Failure::failed(format!(
            "{name}: {} holds no call stacks; record with --stacks native, python or merged, and with calls that --stacks-apis \
             and --stacks-min-duration select",
            path.display()
        ))
        .into()),
        (0, _) => Err(Failure::failed(format!(
            "{name}: none of the databases holds call stacks; record with --stacks native, python or merged, and with calls that \
             --stacks-apis and --stacks-min-duration select"
        ))
        .into()),
        _ => Ok(()),
    }
}
