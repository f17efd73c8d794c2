//! `rpd kernel`: what a recording says about one kernel.

use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;
use rpd_analysis::kernel::{self, FORM};
use rpd_core::compat::Compat;

use super::{AnswerOptions, answer, expression, help};
use crate::commands::parse;

/// Show what a recording says about one kernel: launches, geometry, resources, occupancy and where it is launched
#[derive(Debug, Parser)]
#[command(after_long_help = help(&FORM))]
struct Arguments {
    /// Regular expression of the kernel's name; of several that match the one with the most time is shown
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    options: AnswerOptions,
}

/// Runs `rpd kernel`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(FORM.command, words)? else {
        return Ok(0);
    };
    let wanted = expression(FORM.command, "NAME", &given.name)?;
    answer(FORM.command, &given.options, compat, |question| {
        Ok(kernel::answer(
            question.records,
            |name| wanted.is_match(name),
            question.window,
        ))
    })
}
