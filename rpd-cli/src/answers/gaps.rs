//! `rpd gaps`: when a GPU does not compute, and why.

use std::ffi::OsString;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_analysis::gaps::{self, By, FORM, Of, Options, Scope};
use rpd_core::compat::Compat;

use super::{AnswerOptions, answer, help, length};
use crate::commands::parse;

/// Show when GPUs do not compute, and why
#[derive(Debug, Parser)]
#[command(after_long_help = help(&FORM), after_help = "rpd gaps --help lists the columns.")]
struct Arguments {
    /// Shortest gap that is listed; shorter ones are added up
    #[arg(long, value_name = "TIME", default_value = "5us", value_parser = length)]
    min: u64,
    /// Operations whose absence is a gap
    #[arg(long, value_enum, default_value = "kernels")]
    of: OfName,
    /// Operations that are taken together
    #[arg(long, value_enum, default_value = "gpu")]
    scope: ScopeName,
    /// Count the times before the first and after the last operation of a given window
    #[arg(long)]
    edges: bool,
    /// Add gaps up instead of listing them
    #[arg(long, value_enum)]
    by: Option<ByName>,
    #[command(flatten)]
    options: AnswerOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OfName {
    /// Kernels
    Kernels,
    /// Any operation
    Any,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    /// All operations of a GPU
    Gpu,
    /// Operations of one queue
    Queue,
    /// Operations of one stream
    Stream,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ByName {
    /// Causes
    Cause,
    /// Operations that end the gaps
    Opener,
    /// Places, or functions, that launch these
    Caller,
    /// Single gaps
    None,
}

/// Runs `rpd gaps`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(FORM.command, words)? else {
        return Ok(0);
    };
    answer(FORM.command, &given.options, compat, |question| {
        let options = Options {
            min: given.min,
            of: match given.of {
                OfName::Kernels => Of::Kernels,
                OfName::Any => Of::Any,
            },
            scope: match given.scope {
                ScopeName::Gpu => Scope::Gpu,
                ScopeName::Queue => Scope::Queue,
                ScopeName::Stream => Scope::Stream,
            },
            edges: given.edges,
            window: question.window,
            limit: question.limit,
            by: match given.by {
                Some(ByName::Cause) => Some(By::Cause),
                Some(ByName::Opener) => Some(By::Opener),
                Some(ByName::Caller) => Some(By::Caller),
                Some(ByName::None) | None => None,
            },
        };
        Ok(gaps::find(question.records, &options).answer(question.records))
    })
}
