//! `rpd explain`: runs a program several times and says on one page why it is slow.

mod plan;
mod record;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_analysis::advise::Rules;
use rpd_analysis::explain::{self, FORM};
use rpd_core::compat::Compat;
use rpd_core::options::Backend;

use super::{AnswerOptions, answer, help};
use crate::commands::capture::parse_backend;
use crate::commands::{Inputs, parse};
use crate::exit_status::FAILED;
use crate::failure::Failure;
use plan::Platform;
use record::Manifest;

/// Say why a program is slow: run it several times, and print one page about its time and the kernels that matter
///
/// The first run is a trace and chooses the kernels that hold 80 % of the kernel time, at most ten. Further runs count and sample these.
/// All recordings go to one directory; with that directory in place of a program the page is printed again, and nothing runs. What the
/// program writes to standard output goes to standard error, since standard output has the page alone.
#[derive(Debug, Parser)]
#[command(
    override_usage = "rpd explain [options] -- PROGRAM [ARGUMENT...]\n       rpd explain [options] DIR",
    after_long_help = help(&FORM)
)]
struct Arguments {
    /// How much is recorded
    #[arg(long, value_enum, default_value = "standard")]
    level: Level,
    /// Print the runs that would be made, and make none
    #[arg(long)]
    plan: bool,
    /// Directory for the recordings, which must not exist
    #[arg(short = 'd', long, value_name = "DIR", default_value = "explain")]
    output_directory: PathBuf,
    /// Replace the recordings that rpd explain made there before
    #[arg(long)]
    overwrite: bool,
    /// Platform that the program runs on: rocm, sim or auto
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = parse_backend)]
    backend: Backend,
    /// GPU to simulate, gfx90a or gfx942
    #[arg(long, value_name = "GPU")]
    sim_gpu: Option<String>,
    #[command(flatten)]
    options: AnswerOptions,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Level {
    /// One run: a trace of calls, kernels, copies, markers and allocations
    Quick,
    /// The trace, counters and PC samples of the chosen kernels
    Standard,
    /// Accesses to memory as well, where the GPU is simulated, and a thread trace of the hottest kernel
    Full,
}

/// Runs `rpd explain`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    let Some(mut given) = parse::<Arguments>(FORM.command, words)? else {
        return Ok(0);
    };
    if given.command.is_empty() {
        if given.plan {
            return Err(usage(
                "--plan: expected a program: rpd explain --plan -- PROGRAM",
            ));
        }
        return page(&given.options, compat);
    }
    if !given.options.inputs.is_empty() {
        return Err(usage(
            "expected a directory or a program after --, and got both",
        ));
    }
    let platform = Platform {
        backend: given.backend,
        gpu: given.sim_gpu.clone(),
    };
    let plan = plan::Plan::new(given.level, &given.command, &platform);
    if given.plan {
        return crate::print(&plan.text(&given.output_directory, &given.command));
    }
    record::prepare(&given.output_directory, given.overwrite)?;
    let is_whole = record::record(&plan, &given.output_directory, &given.command)?;
    given.options.inputs = Inputs::from_path(given.output_directory.clone());
    let status = page(&given.options, compat)?;
    Ok(match (is_whole, status) {
        (false, 0) => FAILED,
        (_, status) => status,
    })
}

fn usage(text: &str) -> anyhow::Error {
    Failure::usage(format!("{}: {text} (see rpd explain --help)", FORM.command)).into()
}

/// Prints the page about recordings.
fn page(options: &AnswerOptions, compat: Compat) -> Result<u8> {
    let directory = options.inputs.single();
    let manifest = match directory {
        Some(directory) => Manifest::read(directory)?,
        None => None,
    };
    let about = about(directory, manifest);
    answer(FORM.command, options, compat, |question| {
        let options = explain::Options {
            window: question.window,
            ..about
        };
        Ok(explain::answer(
            question.records,
            &Rules::built_in(),
            &options,
        ))
    })
}

/// What the page needs to know of the runs.
fn about(directory: Option<&Path>, manifest: Option<Manifest>) -> explain::Options {
    let directory = directory.map_or_else(|| "DB".to_owned(), |path| path.display().to_string());
    let Some(manifest) = manifest else {
        return explain::Options {
            directory,
            ..explain::Options::default()
        };
    };
    let runs = manifest.runs.into_iter().map(|run| explain::Run {
        name: run.name,
        what: run.what,
        seconds: run.seconds,
        status: run.status,
        options: run.options,
    });
    explain::Options {
        window: None,
        runs: runs.collect(),
        kernels: manifest.kernels,
        dispatches: manifest.dispatches,
        directory,
    }
}
