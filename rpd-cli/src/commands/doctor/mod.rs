//! `rpd doctor`: what this machine has, what of rpd works on it, and how to mend the rest.

mod check;
mod checks;
mod machine;
mod probes;
mod report;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_core::compat::Compat;
use rpd_spool::stacks::matches_glob;

use self::check::{Check, Finding, Status};
use self::machine::Machine;
use self::report::{Outcome, Report};
use super::{destination, inherited, write_output};
use crate::exit_status::{FAILED, SUCCESS};
use crate::failure::Failure;

const NAME: &str = "doctor";

/// The option of the recording command that stands for this sub-command.
const OPTION: &str = "--doctor";

/// First command-line argument of the program that is recorded to see whether recording works.
pub(crate) const SELF_TEST: &str = "__self-test";

/// Names of the HIP runtime, of which the self-test opens the first that is there.
const RUNTIMES: [&str; 3] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"];

/// Show what this machine has, what of rpd works on it, and how to mend the rest
///
/// Exit status: 0 when no check has failed, 1 when one has, 2 after a mistake in the command line.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
struct Arguments {
    /// Form of the report
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Print one JSON document: --format json
    #[arg(long)]
    json: bool,
    /// Run these checks and what they depend on: an id or a group, with `*` for any letters
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Leave these checks out
    #[arg(long, value_name = "PATTERN")]
    skip: Vec<String>,
    /// List the checks without running them
    #[arg(long)]
    list_checks: bool,
    /// Run the checks that record a small program on the GPU as well
    #[arg(long)]
    run_smoke_test: bool,
    /// The installation of ROCm to look at
    #[arg(long, value_name = "DIR")]
    rocm_root: Option<PathBuf>,
    /// Show what was seen by each check
    #[arg(short, long)]
    verbose: bool,
    /// Show only what is to be mended, and the sums
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Accepted for scripts: reports have no colours
    #[arg(long, hide = true)]
    no_color: bool,
    /// File for the report instead of standard output; it appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Lines for people
    Text,
    /// One JSON document
    Json,
}

/// The words for `rpd doctor` of a command line that has `--doctor` before the program; `None` without it.
pub(crate) fn forwarded(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let own: Vec<&OsString> = arguments.iter().take_while(|word| *word != "--").collect();
    if !own.iter().any(|word| *word == OPTION) {
        return None;
    }
    let rest = own.into_iter().filter(|word| *word != OPTION);
    Some(rest.cloned().collect())
}

/// Runs `rpd doctor [options]`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = super::parse::<Arguments>(NAME, arguments)? else {
        return Ok(SUCCESS);
    };
    let checks: Vec<&Check> = checks::all().collect();
    if given.list_checks {
        return crate::print(&report::list(&checks));
    }
    let chosen = choose(&checks, &given)?;
    let output = destination(NAME, given.output.as_deref(), std::iter::empty::<&Path>())?;
    let directory = inherited("ROCPROF_OUTPUT_PATH").map_or_else(|| ".".into(), PathBuf::from);
    let machine = probes::this_machine(given.rocm_root.as_deref(), directory);
    let report = Report::new(&machine, examine(&chosen, &machine));
    let text = if given.json || given.format == Form::Json {
        report.json()?
    } else {
        report.text(report::Look {
            verbose: given.verbose,
            quiet: given.quiet,
        })
    };
    write_output(output, Compat::None, |out| {
        Ok(out.write_all(text.as_bytes())?)
    })?;
    Ok(if report.count(Status::Fail) == 0 {
        SUCCESS
    } else {
        FAILED
    })
}

/// The checks that the options select, and those that these depend on, in the order of the list.
fn choose(checks: &[&'static Check], given: &Arguments) -> Result<Vec<&'static Check>, Failure> {
    let matches = |patterns: &[String], check: &Check| {
        patterns
            .iter()
            .any(|pattern| matches_glob(pattern, check.id) || matches_glob(pattern, check.group()))
    };
    for pattern in given.only.iter().chain(&given.skip) {
        if !checks
            .iter()
            .any(|check| matches(std::slice::from_ref(pattern), check))
        {
            return Err(Failure::usage(format!(
                "{NAME}: {pattern} is no check and no group of checks; rpd {NAME} --list-checks lists them"
            )));
        }
    }
    let mut needed: Vec<&str> = Vec::new();
    let mut chosen: Vec<&'static Check> = Vec::new();
    // Checks stand after those they depend on.
    for check in checks.iter().rev() {
        let selected = if given.only.is_empty() {
            !check.is_slow || given.run_smoke_test
        } else {
            matches(&given.only, check)
        };
        if (selected || needed.contains(&check.id)) && !matches(&given.skip, check) {
            needed.extend(check.depends);
            chosen.push(check);
        }
    }
    chosen.reverse();
    Ok(chosen)
}

/// Runs the checks one after the other. One whose dependency has not succeeded is skipped.
fn examine(checks: &[&'static Check], machine: &Machine) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(checks.len());
    for check in checks {
        let missing = check.depends.iter().find(|id| {
            let before = outcomes.iter().find(|outcome| outcome.check.id == **id);
            before.is_some_and(|outcome| {
                matches!(outcome.finding.status, Status::Fail | Status::Skip)
            })
        });
        let finding = match missing {
            Some(id) => Finding::skip(format!("needs {id}")),
            None => (check.run)(machine),
        };
        outcomes.push(Outcome { check, finding });
    }
    outcomes
}

/// The program of the self-test: a few calls of the HIP runtime that is found first.
pub(crate) fn self_test() -> Result<u8> {
    let mut problem = None;
    for name in RUNTIMES {
        match rpd_replay::self_test(Path::new(name)) {
            Ok(devices) => {
                crate::print(&format!("{devices} devices\n"))?;
                return Ok(SUCCESS);
            }
            // That of the newest runtime: the others are usually not installed.
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.map_or_else(|| anyhow::anyhow!("no runtime"), Into::into))
}
