//! `rpd advise`: what to look at first.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use rpd_analysis::advise::{self, FORM, Options, Rules};
use rpd_core::compat::Compat;
use rpd_spool::regular_file;

use super::{AnswerOptions, answer, help, show};
use crate::commands::parse;
use crate::failure::Failure;

/// Greatest size of a file of rules.
const LARGEST: u64 = 4 << 20;

/// Say what to look at first: rules are judged, each with its evidence
#[derive(Debug, Parser)]
#[command(after_long_help = help(&FORM))]
struct Arguments {
    /// List the rules instead
    #[arg(long)]
    rules: bool,
    /// List the figures that rules may use instead
    #[arg(long, conflicts_with = "rules")]
    metrics: bool,
    /// File with rules to add; one with the id of another replaces it
    #[arg(long, value_name = "FILE")]
    rules_file: Option<PathBuf>,
    /// Rules to judge [default: all]
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    rule: Vec<String>,
    /// Rules to leave out
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    skip: Vec<String>,
    /// Threshold to change, such as tail.tail_loss=0.3
    #[arg(long, value_name = "ID.NAME=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    options: AnswerOptions,
}

fn rules(given: &Arguments) -> Result<Rules> {
    let mut rules = Rules::built_in();
    if let Some(path) = &given.rules_file {
        let text = regular_file::read_text(path, LARGEST)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        rules
            .add(&text)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    }
    let usage = |option: &str, error: advise::RuleError| {
        Failure::usage(format!("advise: {option}: {error}"))
    };
    rules
        .choose(&given.rule, &given.skip)
        .map_err(|error| usage("--rule, --skip", error))?;
    for text in &given.set {
        rules.set(text).map_err(|error| usage("--set", error))?;
    }
    Ok(rules)
}

/// Runs `rpd advise`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(FORM.command, words)? else {
        return Ok(0);
    };
    let rules = rules(&given)?;
    if given.rules {
        return show(
            FORM.command,
            &given.options,
            compat,
            &advise::list_rules(&rules),
        );
    }
    if given.metrics {
        return show(
            FORM.command,
            &given.options,
            compat,
            &advise::list_metrics(),
        );
    }
    answer(FORM.command, &given.options, compat, |question| {
        let options = Options {
            window: question.window,
        };
        Ok(advise::answer(question.records, &rules, &options))
    })
}
