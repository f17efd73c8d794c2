//! `rpd regions`: which parts of a program take the time, and whether its iterations are even.

use std::ffi::OsString;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_analysis::iterations;
use rpd_analysis::regions::{self, FORM, Options};
use rpd_core::compat::Compat;

use super::{AnswerOptions, answer, expression, help};
use crate::commands::parse;

/// Show which parts of a program, by its markers, take the time of the host and of GPUs
#[derive(Debug, Parser)]
#[command(after_long_help = help(&FORM))]
struct Arguments {
    /// Keep messages apart that differ in digits
    #[arg(long)]
    exact: bool,
    /// Give ranges between threads the operations that their own thread launched in them
    #[arg(long)]
    cross_threads: bool,
    /// Show iterations instead
    #[arg(long)]
    iterations: bool,
    /// Regular expression of the messages of markers that are iterations [default: found]
    #[arg(long, value_name = "REGEX", requires = "iterations")]
    iteration: Option<String>,
    /// Let a kernel alone be an iteration
    #[arg(long, requires = "iterations")]
    iteration_kernel: bool,
    /// With --iterations, add what differs between them
    #[arg(long, value_enum, requires = "iterations")]
    by: Option<ByName>,
    #[command(flatten)]
    options: AnswerOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ByName {
    /// Kernels, by how their time differs
    Kernel,
}

/// Runs `rpd regions`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(FORM.command, words)? else {
        return Ok(0);
    };
    answer(FORM.command, &given.options, compat, |question| {
        if !given.iterations {
            let options = Options {
                exact: given.exact,
                cross_threads: given.cross_threads,
                window: question.window,
            };
            return Ok(regions::answer(question.records, &options));
        }
        let markers = given.iteration.as_deref();
        let options = iterations::Options {
            markers: markers
                .map(|text| expression(FORM.command, "--iteration", text))
                .transpose()?,
            one_kernel: given.iteration_kernel,
        };
        let found = iterations::find(question.records, &options);
        Ok(regions::iterations_answer(
            question.records,
            found.as_ref(),
            given.by.is_some(),
        ))
    })
}
