//! `rpd diff`: what got slower or faster between two sets of recordings.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use rpd_core::session::LoadOptions;
use rpd_formats::table::{Cell, Look, Printer};
use rpd_summary::diff::{Difference, Durations, Group, Side, differences, group};

use super::{Form, Naming, each_recording, expand, is_closed_pipe, parse, spread, write_file};
use crate::failure::Failure;

const NAME: &str = "diff";
/// Status when something got slower than allowed.
const SLOWER: u8 = 3;
/// Rows of the table on a terminal.
const ROWS: usize = 30;

/// Compares durations of two sets of recordings, name by name
#[derive(Debug, Parser)]
#[command(
    after_help = "Rows are ordered by how much they changed the total time. +/- is half the 95 % confidence interval \
    of the mean; a change is marked when chance does not explain it (Welch's test).\n\nExit status: 0, or 3 when \
    --fail-above finds something slower than allowed."
)]
struct Arguments {
    /// The database before and the one after
    #[arg(value_name = "A B")]
    databases: Vec<PathBuf>,
    /// Databases before, instead of A
    #[arg(short = 'a', long, value_name = "DB", num_args = 1..)]
    before: Vec<PathBuf>,
    /// Databases after, instead of B
    #[arg(short = 'b', long, value_name = "DB", num_args = 1..)]
    after: Vec<PathBuf>,
    /// What to compare: kernel, api, region, copy [default: all]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = what)]
    of: Vec<Group>,
    /// End with status 3 when the mean or the total of something grew by more than this many percent, beyond chance
    #[arg(long, value_name = "PCT", value_parser = percentage)]
    fail_above: Option<f64>,
    /// Rows to show; 0 shows all [default: 30 in tables, else all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How the result looks
    #[arg(short = 'f', long, value_enum, default_value = "table")]
    format: Form,
    /// Write to this file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    naming: Naming,
}

fn what(text: &str) -> Result<Group, String> {
    group(text).ok_or_else(|| "choose from kernel, api, region, copy".to_owned())
}

fn percentage(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => Err("expected a percentage such as 5".to_owned()),
    }
}

/// Runs the sub-command.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let words = spread(arguments, &["--of"], |word| what(word).is_ok());
    let Some(given) = parse::<Arguments>(NAME, &words)? else {
        return Ok(0);
    };
    let mut rest = given.databases.iter();
    let mut side = |named: &Vec<PathBuf>| -> Option<Vec<PathBuf>> {
        match named.is_empty() {
            true => rest.next().map(|path| vec![path.clone()]),
            false => Some(named.clone()),
        }
    };
    let sides = (side(&given.before), side(&given.after), rest.next());
    let (Some(before), Some(after), None) = sides else {
        return Err(Failure::usage(
            "diff: expected two databases A and B, or several per side: --before A1 A2 --after B1 B2",
        )
        .into());
    };
    let found = differences(
        durations(&before, &given.naming)?,
        durations(&after, &given.naming)?,
    )?;
    let rows: Vec<&Difference> = found
        .iter()
        .filter(|row| given.of.is_empty() || given.of.contains(&row.group))
        .collect();
    let slower: Vec<&&Difference> = match given.fail_above {
        Some(limit) => rows.iter().filter(|row| is_slower(row, limit)).collect(),
        None => Vec::new(),
    };
    let look = given.format.look();
    let limit = match (given.limit, look) {
        (Some(0), _) => usize::MAX,
        (Some(limit), _) => limit,
        (None, Look::Console) => ROWS,
        (None, _) => usize::MAX,
    };
    let shown = &rows[..rows.len().min(limit)];
    match &given.output_file {
        Some(path) => write_file(path, |out| print(shown, look, out))?,
        None => match print(shown, look, &mut std::io::stdout().lock()) {
            Err(error) if is_closed_pipe(&error) => {}
            other => other?,
        },
    }
    if shown.len() < rows.len() && look == Look::Console {
        eprintln!(
            "rpd: {} more rows; --limit 0 shows all",
            rows.len() - shown.len()
        );
    }
    if rows.is_empty() {
        eprintln!("rpd: diff: neither side has records to compare");
    }
    for row in &slower {
        let percent =
            |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:+.1} %"));
        eprintln!(
            "rpd: slower: {} {}: mean {}, total {}",
            row.group.label(),
            row.name,
            percent(row.mean_change()),
            percent(row.total_change())
        );
    }
    Ok(if slower.is_empty() { 0 } else { SLOWER })
}

fn durations(paths: &[PathBuf], naming: &Naming) -> Result<Durations> {
    let paths = expand(&paths.iter().collect::<Vec<_>>())?;
    let mut durations = Durations::default();
    let load = LoadOptions { args: false };
    each_recording(&paths, load, None, |_, _, session, settings| {
        durations.add(&session, naming.over(&settings));
        Ok(())
    })?;
    Ok(durations)
}

/// Whether it got slower by more than `limit` percent and not by chance. Where there are too few records to tell, the
/// change alone decides; a total counts only when the number of calls explains what the mean does not.
fn is_slower(row: &Difference, limit: f64) -> bool {
    let beyond = |change: Option<f64>| change.is_some_and(|change| change > limit);
    let by_mean = beyond(row.mean_change()) && row.is_significant() != Some(false);
    let more_calls = match (row.before, row.after) {
        (Some(before), Some(after)) => after.calls > before.calls,
        _ => false,
    };
    by_mean || (more_calls && beyond(row.total_change()))
}

fn print(rows: &[&Difference], look: Look, out: &mut dyn std::io::Write) -> Result<()> {
    let columns = [
        "Kind",
        "Name",
        "Calls A",
        "Calls B",
        "Total A (nsec)",
        "Total B (nsec)",
        "Total %",
        "Mean A (nsec)",
        "+/- A",
        "Mean B (nsec)",
        "+/- B",
        "Mean %",
        "Beyond chance",
        "P50 A",
        "P50 B",
        "P95 A",
        "P95 B",
    ];
    let mut printer = Printer::new(look, columns.map(str::to_owned).to_vec(), out)?;
    for row in rows {
        let integer = |side: Option<Side>, get: fn(Side) -> u64| {
            side.map_or(Cell::Null, |side| get(side).into())
        };
        let float = |value: Option<f64>| {
            // A tenth of a nanosecond or of a percent is more than clocks tell.
            value.map_or(Cell::Null, |value| {
                Cell::Float((value * 10.0).round() / 10.0)
            })
        };
        let (a, b) = (row.before, row.after);
        let mean = |side: Option<Side>| float(side.map(|side| side.mean));
        let margin = |side: Option<Side>| float(side.and_then(|side| side.margin));
        printer.row(vec![
            row.group.label().into(),
            Cell::from(&*row.name),
            integer(a, |side| side.calls),
            integer(b, |side| side.calls),
            integer(a, |side| side.total),
            integer(b, |side| side.total),
            float(row.total_change()),
            mean(a),
            margin(a),
            mean(b),
            margin(b),
            float(row.mean_change()),
            match row.is_significant() {
                Some(true) => "yes".into(),
                Some(false) => "no".into(),
                None => "".into(),
            },
            float(a.map(|side| side.p50)),
            float(b.map(|side| side.p50)),
            float(a.map(|side| side.p95)),
            float(b.map(|side| side.p95)),
        ])?;
    }
    Ok(printer.finish()?)
}
