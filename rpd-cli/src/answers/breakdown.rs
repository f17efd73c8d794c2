//! `rpd breakdown`: what the time of GPUs goes to.

use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;
use rpd_analysis::answer::Answer;
use rpd_analysis::breakdown::{self, By, FORM, Options};
use rpd_analysis::iterations;
use rpd_analysis::records::Records;
use rpd_core::compat::Compat;

use super::{AnswerOptions, answer, help};
use crate::commands::parse;

/// Show what the time of GPUs goes to
#[derive(Debug, Parser)]
#[command(after_long_help = help(&FORM))]
struct Arguments {
    /// Parts of the window with rows of their own: chunk:N for N parts of equal length, or iteration
    #[arg(long, value_name = "WHAT", value_parser = by)]
    by: Option<Part>,
    #[command(flatten)]
    options: AnswerOptions,
}

/// Parts that an option names.
#[derive(Debug, Clone, Copy)]
enum Part {
    Chunks(u32),
    Iteration,
}

fn by(text: &str) -> Result<Part, String> {
    let chunks = match text {
        "iteration" => return Ok(Part::Iteration),
        "chunk" => Some(30),
        _ => text
            .strip_prefix("chunk:")
            .and_then(|number| number.parse().ok()),
    };
    match chunks {
        Some(count @ 1..=100_000) => Ok(Part::Chunks(count)),
        _ => Err("expected iteration, chunk or chunk:N, with N from 1 to 100000".to_owned()),
    }
}

/// The iterations of the first thread that has some, each up to the next.
fn iterations(records: &dyn Records) -> By {
    let found = iterations::find(records, &iterations::Options::default());
    let all = found.map_or(Vec::new(), |found| found.all);
    let thread = all.first().map(|iteration| iteration.thread);
    let own = all.iter().enumerate();
    let own = own.filter(|(_, iteration)| Some(iteration.thread) == thread);
    let times = own.map(|(number, iteration)| (iteration.begin, iteration.end, number.to_string()));
    By::Times(times.collect())
}

/// Runs `rpd breakdown`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(FORM.command, words)? else {
        return Ok(0);
    };
    answer(FORM.command, &given.options, compat, |question| {
        let by = match given.by {
            None => By::Window,
            Some(Part::Chunks(count)) => By::Chunks(count),
            Some(Part::Iteration) => iterations(question.records),
        };
        let has_none = matches!(&by, By::Times(times) if times.is_empty());
        let options = Options {
            window: question.window,
            by,
            ..Options::default()
        };
        let measured = breakdown::measure(question.records, &options);
        let mut answer = match measured {
            Some(measured) => measured.answer(question.records),
            None => return Ok(Answer::without_ops(FORM.command)),
        };
        if has_none {
            let because = "no marker repeats, and the sequence of kernels has no period";
            answer.lacks("iterations", &["part"], because, "");
        }
        Ok(answer)
    })
}
