//! `rpd stats`: listing views, with the names and columns that scripts know from other tools.

use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;
use rpd_analysis::stats::{self, FORM, Options, REPORTS, Report, USUAL};
use rpd_core::compat::Compat;

use super::{AnswerOptions, answer, help};
use crate::commands::parse;
use crate::failure::Failure;

/// List sums and traces of kernels, copies, calls and markers
#[derive(Debug, Parser)]
#[command(
    after_long_help = help(&FORM),
    after_help = "Reports of Nsight Systems have the same names, with or without cuda_, gpu_ and nvtx_ in front. rpd stats --help lists \
    all reports with their columns."
)]
struct Arguments {
    /// Report to show; may be repeated [default: api_sum, kern_sum, copy_time_sum, copy_size_sum, marker_sum]
    #[arg(short = 'r', long, value_name = "REPORT", value_delimiter = ',')]
    report: Vec<String>,
    /// Number of kernels in a sequence of seq_sum
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=32))]
    sequence: u8,
    #[command(flatten)]
    options: AnswerOptions,
}

fn find(name: &str) -> Result<&'static Report, Failure> {
    stats::report(name).ok_or_else(|| {
        let names = REPORTS.iter().map(|report| report.name);
        let near = rpd_core::text::near::nearest(name, names.clone());
        let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        let names: Vec<&str> = names.collect();
        Failure::usage(format!(
            "stats: '{name}' is no report (known: {}){hint}",
            names.join(", ")
        ))
    })
}

/// Runs `rpd stats`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    // A word that is a report and no file stands for one, as in `rpd stats DB kern_sum`.
    let words = words.iter().flat_map(|word| {
        let text = word.to_str().filter(|text| stats::report(text).is_some());
        let is_report = text.is_some() && !std::path::Path::new(word).exists();
        if is_report {
            vec![OsString::from("--report"), word.clone()]
        } else {
            vec![word.clone()]
        }
    });
    let mut given_flag = false;
    let words: Vec<OsString> = words
        .filter(|word| {
            // The flag may stand before the word already.
            let is_flag = word == "--report" || word == "-r";
            let is_repeated = is_flag && given_flag;
            given_flag = is_flag;
            !is_repeated
        })
        .collect();
    let Some(given) = parse::<Arguments>(FORM.command, &words)? else {
        return Ok(0);
    };
    let names: Vec<&str> = if given.report.is_empty() {
        USUAL.to_vec()
    } else {
        given.report.iter().map(String::as_str).collect()
    };
    let reports = names
        .into_iter()
        .map(find)
        .collect::<Result<Vec<_>, Failure>>()?;
    answer(FORM.command, &given.options, compat, |question| {
        let options = Options {
            window: question.window,
            sequence: given.sequence.into(),
            limit: None,
        };
        Ok(stats::answer(question.records, &reports, &options))
    })
}
