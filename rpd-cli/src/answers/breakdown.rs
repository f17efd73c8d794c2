//! `rpd breakdown`: what the time of GPUs goes to.

use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;
use rpd_analysis::answer::Answer;
use rpd_analysis::breakdown::{self, By, FORM, Options};
use rpd_core::compat::Compat;

use super::{AnswerOptions, answer, help};
use crate::commands::parse;

/// Show what the time of GPUs goes to
#[derive(Debug, Parser)]
#[command(after_long_help = help(&FORM))]
struct Arguments {
    /// Parts of the window with rows of their own: chunk:N for N parts of equal length
    #[arg(long, value_name = "WHAT", value_parser = by)]
    by: Option<By>,
    #[command(flatten)]
    options: AnswerOptions,
}

fn by(text: &str) -> Result<By, String> {
    let chunks = match text {
        "chunk" => Some(30),
        _ => text
            .strip_prefix("chunk:")
            .and_then(|number| number.parse().ok()),
    };
    match chunks {
        Some(count @ 1..=100_000) => Ok(By::Chunks(count)),
        _ => Err("expected chunk or chunk:N, with N from 1 to 100000".to_owned()),
    }
}

/// Runs `rpd breakdown`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(FORM.command, words)? else {
        return Ok(0);
    };
    answer(FORM.command, &given.options, compat, |question| {
        let options = Options {
            window: question.window,
            by: given.by.clone().unwrap_or_default(),
            ..Options::default()
        };
        let measured = breakdown::measure(question.records, &options);
        Ok(match measured {
            Some(measured) => measured.answer(question.records),
            None => Answer::without_ops(FORM.command),
        })
    })
}
