//! `rpd recover DIR`: finishes runs whose front end was killed.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use rpd_core::naming::Namer;

use crate::failure::{Failure, line};
use crate::report;
use crate::run_directory::{RunDirectory, find_runs};

const USAGE: &str = "Finishes what a killed rpd left behind\n\n\
    Usage: rpd recover DIR...\n\n\
    DIR is an output directory (with the pass_N below it), its .rpd folder, or one run-* folder in there. Processes\n\
    that still run are named and left alone.\n";

/// Runs the sub-command.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let mut folders = Vec::new();
    for argument in arguments {
        match argument.to_str() {
            Some("-h" | "--help") => return crate::print(USAGE),
            Some("--") => {}
            Some(word) if word.starts_with('-') => {
                return Err(
                    Failure::usage(format!("recover: unrecognized arguments: {word}")).into(),
                );
            }
            _ => folders.push(Path::new(argument)),
        }
    }
    if folders.is_empty() {
        return Err(Failure::usage(
            "recover: expected at least one argument: the output directory of the run",
        )
        .into());
    }
    let mut runs = Vec::new();
    for folder in folders {
        let found = find_runs(folder);
        if found.is_empty() {
            let problem = match folder.is_dir() {
                true => "holds no unfinished run",
                false => "No such directory",
            };
            return Err(Failure::failed(format!("{}: {problem}", folder.display())).into());
        }
        runs.extend(found);
    }
    let mut status = 0;
    for run in runs {
        match finish(&run) {
            Ok(true) => {}
            Ok(false) => status = 1,
            Err(error) => {
                eprintln!("rpd: {}", line(&error));
                status = 1;
            }
        }
    }
    Ok(status)
}

fn finish(run: &RunDirectory) -> Result<bool> {
    if let Some(pid) = run.front_end() {
        eprintln!(
            "rpd: {}: its rpd (process {pid}) still runs and will finish it",
            run.path().display()
        );
        return Ok(true);
    }
    let options = run.options()?;
    report::finish(run, &options, None, None, &mut Namer::default())
}
