//! `rpd symbolize`: looks up functions, files and lines of call stacks.

use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;
use rpd_symbols::{NoFile, Report, symbolize};

use super::super::{Inputs, parse};
use super::FrameOptions;

const NAME: &str = "symbolize";
/// Number of modules without files that are named one by one.
const NAMED: usize = 10;

/// Look up functions, files and lines of call stacks, and write them into the databases
#[derive(Debug, Parser)]
#[command(
    after_help = "The command may be repeated, for example after debug packages were installed, and on another machine: earlier results \
    are replaced. Files are found by their path, in --debug-dir and in /usr/lib/debug by build id, by .gnu_debuglink, \
    and on the servers in DEBUGINFOD_URLS; a file with another build id is not used."
)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    frames: FrameOptions,
    /// Leave out the frames that --runtime-frames and --interpreter-frames showed before
    #[arg(long, conflicts_with_all = ["runtime_frames", "interpreter_frames"])]
    usual_frames: bool,
}

/// Runs `rpd symbolize` with its arguments; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    let paths = given.inputs.paths(NAME)?;
    let frames = &given.frames;
    let shown = if frames.runtime_frames || frames.interpreter_frames || given.usual_frames {
        Some(frames.shown(rpd_core::session::stacks::ShownFrames::default()))
    } else {
        None
    };
    let mut symbolizer = frames.symbolizer()?;
    for path in &paths {
        let report = symbolize(path, &mut symbolizer, shown)?;
        eprintln!("rpd: {}: {}", path.display(), described(&report));
        let problems = &report.problems;
        for (module, problem) in problems.iter().take(NAMED) {
            eprintln!("rpd: {}: {module}: {}", path.display(), explained(*problem));
        }
        if problems.len() > NAMED {
            eprintln!(
                "rpd: {}: {} more files could not be used",
                path.display(),
                problems.len() - NAMED
            );
        }
    }
    for note in symbolizer.notes() {
        eprintln!("rpd: {NAME}: {note}");
    }
    Ok(0)
}

/// Summary of a report on symbols, in one line.
pub(crate) fn described(report: &Report) -> String {
    format!(
        "{} addresses: {} with lines, {} with names only, {} unknown; {} places in Python code",
        report.addresses,
        report.with_lines,
        report.with_names,
        report.addresses - report.with_lines - report.with_names,
        report.python
    )
}

/// Reason why a file was not used, and the remedy.
fn explained(problem: NoFile) -> &'static str {
    match problem {
        NoFile::Missing => {
            "is gone; name a directory with a copy of it, or of its debug information, with --debug-dir"
        }
        NoFile::Unreadable => "cannot be read; name a copy of it with --debug-dir",
        NoFile::NotElf => "is no ELF file; name a copy of it with --debug-dir",
        NoFile::OtherBuild => {
            "is not the file that was loaded: its build id is another one; name a copy of that with --debug-dir"
        }
    }
}
