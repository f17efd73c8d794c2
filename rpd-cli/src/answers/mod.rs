//! Answers about recordings: what every command that gives one has in common.
//!
//! `rpd-analysis` computes them, [`feed`] gives it the records of databases, and [`print`] shows any answer in any form, from the
//! one description of its columns.

pub(crate) mod advise;
pub(crate) mod breakdown;
pub(crate) mod compare;
pub(crate) mod explain;
mod feed;
pub(crate) mod gaps;
pub(crate) mod guide;
pub(crate) mod kernel;
mod print;
pub(crate) mod regions;
pub(crate) mod schema;
pub(crate) mod stats;
pub(crate) mod view;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rpd_analysis::answer::{Answer, Level};
use rpd_analysis::records::{Facts, Records, Selected};
use rpd_core::compat::Compat;
use rpd_spool::kernel_filter::{Matcher, compile};

use crate::commands::tables::TableOptions;
use crate::commands::window::WindowOptions;
use crate::commands::{Inputs, Naming, destination, write_output};
use crate::exit_status::{NOTHING_TO_ANSWER, SLOWER, SUCCESS};
use crate::failure::Failure;
use feed::Loaded;
use print::Form;

/// Options of every answer.
#[derive(Debug, Args)]
pub(crate) struct AnswerOptions {
    #[command(flatten)]
    inputs: Inputs,
    /// Form of the answer
    #[arg(short = 'f', long, value_enum, default_value = "table")]
    format: Form,
    /// File to write instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    /// Section to show alone [default: all; in CSV the main one]
    #[arg(long, value_name = "NAME")]
    section: Option<String>,
    /// Columns to show, by their names in JSON [default: those that fit]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// Unit of times in tables for people: auto, ns, us, ms, s
    #[arg(long, value_name = "UNIT", default_value = "auto", value_parser = ["auto", "ns", "us", "ms", "s"])]
    units: String,
    /// GPUs to look at, by their numbers [default: all]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    gpu: Vec<u32>,
    /// Processes to look at, by their ids [default: all]
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    process: Vec<u32>,
    /// Streams to look at, by their numbers [default: all]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    stream: Vec<u32>,
    /// Regular expression of the kernels to look at, searched for in their names [default: all]
    #[arg(long, value_name = "REGEX")]
    kernel: Option<String>,
    /// End with status 3 when a value of this column is greater; columns have the names of JSON
    #[arg(long, value_name = "COLUMN=VALUE")]
    fail_above: Vec<String>,
    /// End with status 7 when something is missing that could be recorded, or figures need caution
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    window: WindowOptions,
    #[command(flatten)]
    tables: TableOptions,
}

/// What a command computes its answer from.
pub(crate) struct Question<'a> {
    /// The chosen records.
    pub(crate) records: &'a dyn Records,
    /// First instant and end of the window that options give.
    pub(crate) window: Option<(u64, u64)>,
    /// Rows that are shown at most, where their order is the command's own; `None` for all.
    pub(crate) limit: Option<usize>,
}

/// Answers a question: reads the inputs, has `make` compute, prints, and returns the exit status.
pub(crate) fn answer(
    name: &'static str,
    options: &AnswerOptions,
    compat: Compat,
    make: impl FnOnce(&Question<'_>) -> Result<Answer>,
) -> Result<u8> {
    reported(name, options, || {
        let (answer, loaded) = compute(name, options, make)?;
        let paths = options.inputs.paths(name)?;
        let status = finish(name, options, compat, &answer, loaded.facts(), &paths)?;
        if loaded.implausible > 0 {
            eprintln!(
                "rpd: {} operations have times that cannot be; they are left out",
                loaded.implausible
            );
        }
        Ok(status)
    })
}

/// Runs `work`; its error is an object as well where the form is one of objects.
fn reported(name: &str, options: &AnswerOptions, work: impl FnOnce() -> Result<u8>) -> Result<u8> {
    work().inspect_err(|error| {
        if matches!(options.format, Form::Json | Form::Ndjson) {
            // The error itself is reported as of every command.
            let _ = crate::print(&print::error(name, error));
        }
    })
}

/// Prints an answer and returns the exit status.
fn finish(
    name: &'static str,
    options: &AnswerOptions,
    compat: Compat,
    answer: &Answer,
    facts: &Facts,
    inputs: &[PathBuf],
) -> Result<u8> {
    let gate = gate(name, options, answer)?;
    let output = destination(name, options.output_file.as_deref(), inputs)?;
    let shown = print::Shown::new(name, options, answer, facts, &output)?;
    write_output(output, compat, |out| shown.write(out))?;
    shown.notes();
    if gate {
        return Ok(SLOWER);
    }
    let lacks = answer
        .missing
        .iter()
        .any(|missing| !missing.record.is_empty());
    let caution = answer
        .warnings
        .iter()
        .any(|warning| warning.level == Level::Caution);
    Ok(if answer.is_empty || options.strict && (lacks || caution) {
        NOTHING_TO_ANSWER
    } else {
        SUCCESS
    })
}

fn compute(
    name: &'static str,
    options: &AnswerOptions,
    make: impl FnOnce(&Question<'_>) -> Result<Answer>,
) -> Result<(Answer, Loaded)> {
    let paths = options.inputs.paths(name)?;
    let window = options.window.resolve(name, &paths)?;
    // Both ends belong to the window that options give.
    let window = window.map(|window| (window.start.0, window.end.0));
    let loaded = Loaded::read(&paths, &options.naming)?;
    let limit = options.tables.limit_or(Some(20));
    // Rows in another order may come from anywhere.
    let limit = limit
        .filter(|_| options.tables.sort().is_none() && options.fail_above.is_empty())
        .map(|limit| limit as usize);
    let mut answer = with_selected(name, options, &loaded, |records| {
        make(&Question {
            records,
            window,
            limit,
        })
    })??;
    echo_filters(options, &mut answer);
    Ok((answer, loaded))
}

/// Calls `take` with the records that the filters choose.
fn with_selected<T>(
    name: &str,
    options: &AnswerOptions,
    loaded: &Loaded,
    take: impl FnOnce(&dyn Records) -> T,
) -> Result<T> {
    let wanted = wanted_names(name, options, loaded)?;
    let facts = loaded.facts();
    let listed = |list: &[u32], value: u32| list.is_empty() || list.contains(&value);
    let is_all = wanted.is_empty()
        && [&options.gpu, &options.process, &options.stream]
            .iter()
            .all(|list| list.is_empty());
    if is_all {
        return Ok(take(loaded));
    }
    Ok(take(&Selected::new(loaded, |op| {
        listed(&options.gpu, facts.gpus[op.gpu as usize].number)
            && listed(&options.process, facts.processes[op.process as usize].pid)
            && listed(&options.stream, op.stream)
            && (!op.is_kernel || wanted.get(op.name as usize).copied().unwrap_or(true))
    })))
}

/// Shows an answer that is not about a recording.
pub(crate) fn show(
    name: &'static str,
    options: &AnswerOptions,
    compat: Compat,
    answer: &Answer,
) -> Result<u8> {
    let facts = Facts::default();
    let output = destination(name, options.output_file.as_deref(), [""; 0])?;
    let shown = print::Shown::new(name, options, answer, &facts, &output)?;
    write_output(output, compat, |out| shown.write(out))?;
    Ok(SUCCESS)
}

/// A regular expression that an option gives.
pub(crate) fn expression(name: &str, option: &str, text: &str) -> Result<regex::Regex> {
    regex::Regex::new(text).map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default();
        Failure::usage(format!(
            "{name}: {option}: the expression is not regular: {reason}"
        ))
        .into()
    })
}

/// Whether each name is one of the kernels that are looked at; empty when all are.
fn wanted_names(name: &str, options: &AnswerOptions, loaded: &Loaded) -> Result<Vec<bool>> {
    let Some(pattern) = &options.kernel else {
        return Ok(Vec::new());
    };
    let table = compile(pattern)
        .map_err(|error| Failure::usage(format!("{name}: --kernel '{pattern}': {error}")))?;
    let matcher = Matcher::from_bytes(table);
    let is_wanted = |text: &String| {
        matcher
            .as_ref()
            .is_none_or(|matcher| matcher.is_match(text))
    };
    Ok(loaded.facts().names.iter().map(is_wanted).collect())
}

/// Filters and the limit are parameters of the answer.
fn echo_filters(options: &AnswerOptions, answer: &mut Answer) {
    let list = |values: &[u32]| {
        let texts: Vec<String> = values.iter().map(u32::to_string).collect();
        texts.join(",")
    };
    for (name, values) in [
        ("gpu", &options.gpu),
        ("process", &options.process),
        ("stream", &options.stream),
    ] {
        if !values.is_empty() {
            answer.parameters.push((name, list(values).into()));
        }
    }
    if let Some(kernel) = &options.kernel {
        answer.parameters.push(("kernel", kernel.as_str().into()));
    }
    let limit = options.tables.limit_or(Some(20));
    answer.parameters.push(("limit", limit.unwrap_or(0).into()));
}

/// Whether a value is above a limit that an option sets.
fn gate(name: &str, options: &AnswerOptions, answer: &Answer) -> Result<bool> {
    let mut fires = false;
    for text in &options.fail_above {
        let wrong = |what: &str| Failure::usage(format!("{name}: --fail-above '{text}': {what}"));
        let (column, limit) = text
            .split_once('=')
            .ok_or_else(|| wrong("expected COLUMN=VALUE, such as gap_share=0.2"))?;
        let limit: f64 = limit.parse().map_err(|_| wrong("the value is no number"))?;
        let mut is_known = false;
        for section in &answer.sections {
            let Some(index) = section
                .columns
                .iter()
                .position(|known| known.name == column)
            else {
                continue;
            };
            is_known = true;
            for row in &section.rows {
                let Some(value) = row[index].number().filter(|value| *value > limit) else {
                    continue;
                };
                fires = true;
                let key = section.columns.iter().position(|known| known.name == "key");
                let key = key.and_then(|key| row[key].text()).unwrap_or_default();
                eprintln!(
                    "rpd: {name}: {column} of {} is {value}, above {limit}",
                    rpd_core::text::foreign::shown(key)
                );
            }
        }
        if !is_known {
            let all = answer.sections.iter().flat_map(|section| section.columns);
            let names: Vec<&str> = all.map(|known| known.name).collect();
            let near = rpd_core::text::near::nearest(column, names);
            let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            return Err(wrong(&format!("the answer has no such column{hint}")).into());
        }
    }
    Ok(fires)
}

/// The last part of a command's help: its sections and columns.
pub(crate) fn help(form: &rpd_analysis::answer::Form) -> String {
    let mut text = format!("{}\n", form.question);
    for (name, what, columns) in form.sections {
        text.push_str(&format!("\nSection {name}: {what}\n"));
        for column in *columns {
            let unit = column
                .unit
                .label()
                .map_or(String::new(), |unit| format!(" [{unit}]"));
            text.push_str(&format!("  {}{unit}: {}\n", column.name, column.meaning));
        }
    }
    text
}

/// A length of time: a number with `ns`, `us`, `ms` or `s`; without one nanoseconds.
pub(crate) fn length(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let found = UNITS
        .iter()
        .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let (number, size) = found.unwrap_or((text, &1.0));
    let value: f64 = number
        .trim()
        .parse()
        .map_err(|_| "expected a time such as 5us, 1.5ms or 800".to_owned())?;
    if (0.0..=1e18).contains(&(value * size)) {
        Ok((value * size).round() as u64)
    } else {
        Err("expected a time from 0 to 1e9 seconds".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_units() {
        for (text, value) in [
            ("5us", 5_000),
            ("1.5ms", 1_500_000),
            ("800", 800),
            ("2s", 2_000_000_000),
            ("7 ns", 7),
        ] {
            assert_eq!(length(text), Ok(value), "{text}");
        }
        for text in ["", "us", "-1us", "1h", "nan", "1e30s"] {
            assert!(length(text).is_err(), "{text}");
        }
    }
}
