//! `rpd compare`: why kernels take another time than before.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use rpd_analysis::compare::{self, FORM, Run};
use rpd_analysis::records::{Facts, Records as _};
use rpd_core::compat::Compat;

use super::feed::Loaded;
use super::{AnswerOptions, echo_filters, finish, help, reported, with_selected};
use crate::commands::{Inputs, parse};
use crate::failure::Failure;

/// Say why kernels became faster or slower between two sets of runs
///
/// A run is one of the words that name databases; a directory is one run, with all its processes and passes. Several runs a side tell
/// changes from chance. A gate is `--fail-above slower=0.05`: status 3 when a kernel is slower by more than 5 %, beyond chance.
#[derive(Debug, Parser)]
#[command(after_long_help = help(&FORM), override_usage = "rpd compare [options] A B\n       rpd compare [options] --before A... --after B...")]
struct Arguments {
    /// Runs before, instead of A
    #[arg(long, value_name = "DB", num_args = 1..)]
    before: Vec<PathBuf>,
    /// Runs after, instead of B
    #[arg(long, value_name = "DB", num_args = 1..)]
    after: Vec<PathBuf>,
    /// Change of kernels' names before they are joined: what REGEX finds becomes TEXT
    #[arg(long, value_name = "REGEX=TEXT")]
    rename: Vec<String>,
    /// Compare times of different GPUs as well
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    options: AnswerOptions,
}

/// Runs `rpd compare`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(FORM.command, words)? else {
        return Ok(0);
    };
    reported(FORM.command, &given.options, || {
        compare_sides(&given, compat)
    })
}

fn compare_sides(given: &Arguments, compat: Compat) -> Result<u8> {
    let renames = renames(&given.rename)?;
    let renamed = |name: &str| {
        renames
            .iter()
            .fold(name.to_owned(), |name, (pattern, text)| {
                pattern.replace_all(&name, text.as_str()).into_owned()
            })
    };
    let mut facts = Facts::default();
    let mut read = |paths: &[PathBuf]| -> Result<Vec<Run>> {
        let mut runs = Vec::new();
        for path in paths {
            let paths = Inputs::from_path(path.clone()).paths(FORM.command)?;
            let window = given.options.window.resolve(FORM.command, &paths)?;
            let window = window.map(|window| (window.start.0, window.end.0));
            let loaded = Loaded::read(&paths, &given.options.naming)?;
            runs.push(with_selected(
                FORM.command,
                &given.options,
                &loaded,
                |records| Run::new(records, window, renamed),
            )?);
            facts
                .processes
                .extend(loaded.facts().processes.iter().cloned());
            facts.gpus.extend(loaded.facts().gpus.iter().cloned());
        }
        Ok(runs)
    };
    let (before, after) = sides(given)?;
    let (a, b) = (read(&before)?, read(&after)?);
    let mut answer = compare::answer(&a, &b, given.force);
    echo_filters(&given.options, &mut answer);
    let inputs: Vec<PathBuf> = before.into_iter().chain(after).collect();
    finish(
        FORM.command,
        &given.options,
        compat,
        &answer,
        &facts,
        &inputs,
    )
}

/// The runs of both sides, as they were named.
fn sides(given: &Arguments) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let mut rest = given.options.inputs.given().into_iter();
    let mut side = |named: &[PathBuf]| match named {
        [] => rest.next().map(|path| vec![path]),
        named => Some(named.to_vec()),
    };
    match (side(&given.before), side(&given.after), rest.next()) {
        (Some(before), Some(after), None) => Ok((before, after)),
        _ => Err(Failure::usage(
            "compare: expected two runs A and B, or several per side: --before A1 A2 --after B1 B2",
        )
        .into()),
    }
}

fn renames(given: &[String]) -> Result<Vec<(regex::Regex, String)>> {
    let rename = |text: &String| {
        let (pattern, new) = text.split_once('=').ok_or_else(|| {
            Failure::usage(format!("compare: --rename '{text}': expected REGEX=TEXT"))
        })?;
        let pattern = super::expression(FORM.command, "--rename", pattern)?;
        Ok((pattern, new.to_owned()))
    };
    given.iter().map(rename).collect()
}
