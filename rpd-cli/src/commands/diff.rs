//! `rpd diff`: compares the durations of two sets of recordings.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use rpd_core::compat::Compat;
use rpd_core::session::LoadOptions;
use rpd_formats::table::{Cell, Column, ColumnKind};
use rpd_summary::diff::{
    Change, Difference, Durations, Group, Measure, QUANTILE_ERROR, SideFigures, SideOf, group,
};

use super::tables::{TableOptions, TimeOptions, note, printer};
use super::{
    Form, Naming, destination, each_recording, expand, note_left_out, parse, spread, write_output,
};
use crate::exit_status;
use crate::failure::Failure;

const NAME: &str = "diff";
/// Rows of the table on a terminal.
const ROWS: u64 = 30;

/// The kinds of records that gates check unless --of is given.
const JUDGED: [Group; 3] = [Group::Kernel, Group::Copy, Group::Region];

/// Compare durations of two sets of runs, name by name
#[derive(Debug, Parser)]
#[command(
    after_help = "A run is one of the words that name databases; a directory is one run, with all its processes. Rows are \
    ordered by how much they changed the total time. Typical is the mean of the faster half of a run's calls, in the \
    median run; Spread is by how much it differs between runs of the same side, and a change is beyond chance when it \
    is more than four times the spread. Of runs with more than 65,536 records, medians, typical durations and 95th \
    percentiles are within 0.4 % of the exact figures: durations are counted in buckets of that width. Means and totals \
    are exact.\n\n\
    Exit status: 0, or 3 when something is slower than --fail-above, --fail-mean-above or --fail-total-above allows."
)]
struct Arguments {
    /// Run before and run after
    #[arg(value_name = "A B")]
    databases: Vec<PathBuf>,
    /// Runs before, instead of A; three or more tell changes from chance
    #[arg(short = 'a', long, value_name = "DB", num_args = 1..)]
    before: Vec<PathBuf>,
    /// Runs after, instead of B
    #[arg(short = 'b', long, value_name = "DB", num_args = 1..)]
    after: Vec<PathBuf>,
    /// Records to compare: kernel, api, region, copy [default: all; --fail-* checks kernel, copy and region]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = what)]
    of: Vec<Group>,
    /// Growth of a typical duration, in percent and beyond chance, above which the exit status is 3
    #[arg(long, value_name = "PCT", value_parser = percentage)]
    fail_above: Option<f64>,
    /// As --fail-above, for the mean duration in a run
    #[arg(long, value_name = "PCT", value_parser = percentage)]
    fail_mean_above: Option<f64>,
    /// As --fail-above, for the total duration in a run, which also grows with the number of calls
    #[arg(long, value_name = "PCT", value_parser = percentage)]
    fail_total_above: Option<f64>,
    /// Gates look at names with at least this share of the time of their kind (copies: of that of copies and kernels)
    #[arg(long, value_name = "PCT", value_parser = percentage, default_value = "1")]
    min_share: f64,
    /// Apply --fail-* to single runs, too, although their spread is unknown
    #[arg(long)]
    fail_on_single: bool,
    /// Output format of the result
    #[arg(short = 'f', long, value_enum, default_value = "table")]
    format: Form,
    /// File to write instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    tables: TableOptions,
    #[command(flatten)]
    times: TimeOptions,
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

/// Runs `rpd diff`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let words = spread(arguments, &["--of"], |word| what(word).is_ok());
    let Some(given) = parse::<Arguments>(NAME, &words)? else {
        return Ok(0);
    };
    let mut rest = given.databases.iter();
    let mut side = |named: &Vec<PathBuf>| -> Option<Vec<PathBuf>> {
        if named.is_empty() {
            rest.next().map(|path| vec![path.clone()])
        } else {
            Some(named.clone())
        }
    };
    let sides = (side(&given.before), side(&given.after), rest.next());
    let (Some(before), Some(after), None) = sides else {
        return Err(Failure::usage(
            "diff: expected two databases A and B, or several per side: --before A1 A2 --after B1 B2",
        )
        .into());
    };
    let inputs = expand(&before.iter().chain(&after).collect::<Vec<_>>())?;
    let output = destination(NAME, given.output_file.as_deref(), &inputs)?;
    let mut durations = Durations::default();
    add(&mut durations, SideOf::Before, &before, &given.naming)?;
    add(&mut durations, SideOf::After, &after, &given.naming)?;
    let found = durations.differences()?;
    let look = given.format.table_format();
    let units = given.times.units;
    let view = (given.tables).view(look, units, Compat::None, &output, Some(ROWS));
    let chosen = || {
        let is_chosen = |row: &Difference| given.of.is_empty() || given.of.contains(&row.group);
        found.iter().filter(is_chosen)
    };
    let mut verdict = GateResult::default();
    let (mut rows, mut is_approximate) = (0, false);
    for row in chosen() {
        given.judge(&row, &mut verdict);
        rows += 1;
        let mut sides = [&row.before, &row.after].into_iter().flatten();
        is_approximate |= sides.any(|side| side.is_approximate);
    }
    write_output(output, Compat::None, |out| {
        let mut printer = printer(NAME, &view, columns(), out)?;
        for row in chosen() {
            printer.row(cells(&row))?;
        }
        note(NAME, look, &printer.finish()?);
        Ok(())
    })?;
    if rows == 0 {
        eprintln!("rpd: diff: neither side has records to compare");
    }
    if is_approximate {
        eprintln!(
            "rpd: diff: medians, typical durations and 95th percentiles are within {:.1} % of the exact figures",
            QUANTILE_ERROR * 100.0
        );
    }
    verdict.print();
    Ok(if verdict.slower.is_empty() {
        exit_status::SUCCESS
    } else {
        exit_status::SLOWER
    })
}

/// The result of the gates.
#[derive(Default)]
struct GateResult {
    /// Messages about figures above the limit.
    slower: Vec<String>,
    /// Number of figures with a gate.
    judged: usize,
    /// Number of figures with a gate that have a single run on a side.
    unknown: usize,
    /// Number of changes above the limit that were not judged because a side has a single run.
    ignored: usize,
    /// Number of figures with a known spread that hides a change as small as the limit.
    noisy: usize,
    /// The largest change in percent that the spread of a noisy row can hide.
    blind: f64,
}

impl Arguments {
    /// Adds what the gates find of a row.
    fn judge(&self, row: &Difference, verdict: &mut GateResult) {
        let gates = [
            (Measure::Typical, self.fail_above),
            (Measure::Mean, self.fail_mean_above),
            (Measure::Total, self.fail_total_above),
        ];
        // With --of the rows are those that were requested.
        let is_judged = !self.of.is_empty() || JUDGED.contains(&row.group);
        if !is_judged || row.share() < self.min_share {
            return;
        }
        for (measure, limit) in gates {
            if let (Some(limit), Some(change)) = (limit, row.change(measure)) {
                verdict.add(row, measure, change, limit, self.fail_on_single);
            }
        }
    }
}

impl GateResult {
    fn add(
        &mut self,
        row: &Difference,
        measure: Measure,
        change: Change,
        limit: f64,
        fail_on_single: bool,
    ) {
        self.judged += 1;
        let percent = change.percent().unwrap_or(0.0);
        let chance = match (change.spread, change.detectable()) {
            (Some(spread), Some(detectable)) => {
                if detectable > limit {
                    self.noisy += 1;
                    self.blind = self.blind.max(detectable);
                }
                format!("runs differ by {spread:.1} %")
            }
            _ => {
                self.unknown += 1;
                "one run a side: perhaps chance".to_owned()
            }
        };
        if percent <= limit {
            return;
        }
        match change.is_beyond_chance() {
            Some(true) => {}
            Some(false) => return,
            None if fail_on_single => {}
            None => {
                self.ignored += 1;
                return;
            }
        }
        self.slower.push(format!(
            "{} {}: {} {:.0} -> {:.0} nsec ({percent:+.1} %, {chance})",
            row.group.label(),
            row.name,
            measure.label(),
            change.before,
            change.after
        ));
    }

    fn print(&self) {
        for line in &self.slower {
            eprintln!("rpd: slower: {line}");
        }
        if self.ignored > 0 || (self.unknown > 0 && self.unknown == self.judged) {
            let ignored = match self.ignored {
                0 => String::new(),
                count => format!(", and {count} above the limit did not count"),
            };
            eprintln!(
                "rpd: diff: with one run on a side the spread is unknown{ignored}; name several runs a side \
                 (--before A1 A2 A3 --after B1 B2 B3), or give --fail-on-single"
            );
        }
        if self.noisy > 0 {
            eprintln!(
                "rpd: diff: {} of {} figures differ so much from run to run that a change as small as the limit cannot \
                 be told from chance (the largest needs {:.0} %); record on a quieter machine, or longer runs",
                self.noisy, self.judged, self.blind
            );
        }
    }
}

/// Adds the runs of one side; each path is a run.
fn add(durations: &mut Durations, side: SideOf, paths: &[PathBuf], naming: &Naming) -> Result<()> {
    let load = LoadOptions {
        args: false,
        ..LoadOptions::default()
    };
    for path in paths {
        durations.begin_run(side)?;
        let databases = expand(&[path])?;
        each_recording(&databases, load, None, |path, _, session, settings| {
            note_left_out(path, durations.add(&session, naming.over(&settings))?);
            Ok(())
        })?;
    }
    Ok(())
}

/// The columns. Where a terminal is narrow, the change of typical durations is what stays.
fn columns() -> Vec<Column> {
    use ColumnKind::{Name, Number, Percent, Time, Word};
    [
        (Word, "Kind", 0),
        (Name, "Name", 0),
        (Percent, "Share", 3),
        (Number, "Runs A", 6),
        (Number, "Runs B", 6),
        (Number, "Calls A", 4),
        (Number, "Calls B", 4),
        (Time, "Total A", 3),
        (Time, "Total B", 3),
        (Percent, "Total", 1),
        (Time, "Mean A", 5),
        (Time, "Mean B", 5),
        (Percent, "Mean", 5),
        (Time, "Median A", 5),
        (Time, "Median B", 5),
        (Percent, "Median", 5),
        (Time, "Typical A", 0),
        (Time, "Typical B", 0),
        (Percent, "Typical", 0),
        (Percent, "Spread", 2),
        (Word, "Beyond chance", 0),
        (Time, "P95 A", 6),
        (Time, "P95 B", 6),
    ]
    .map(|(kind, name, level)| Column::new(kind, name).detail(level))
    .to_vec()
}

/// The cells of a row.
fn cells(row: &Difference) -> Vec<Cell> {
    let (a, b) = (row.before.as_ref(), row.after.as_ref());
    let integer = |side: Option<&SideFigures>, get: fn(&SideFigures) -> u64| {
        side.map_or(Cell::Null, |side| get(side).into())
    };
    let float = |value: Option<f64>| {
        // Clocks do not resolve a tenth of a nanosecond or of a percent.
        value.map_or(Cell::Null, |value| {
            Cell::Float((value * 10.0).round() / 10.0)
        })
    };
    let runs = |side: Option<&SideFigures>| integer(side, |side| side.runs.len() as u64);
    let typical = row.change(Measure::Typical);
    let percent = |measure| float(row.change(measure).and_then(|change| change.percent()));
    vec![
        row.group.label().into(),
        Cell::from(&*row.name),
        float(Some(row.share())),
        runs(a),
        runs(b),
        integer(a, |side| side.calls),
        integer(b, |side| side.calls),
        integer(a, |side| side.total),
        integer(b, |side| side.total),
        percent(Measure::Total),
        float(a.map(|side| side.mean)),
        float(b.map(|side| side.mean)),
        percent(Measure::Mean),
        float(a.and_then(|side| side.middle(Measure::Median))),
        float(b.and_then(|side| side.middle(Measure::Median))),
        percent(Measure::Median),
        float(a.and_then(|side| side.middle(Measure::Typical))),
        float(b.and_then(|side| side.middle(Measure::Typical))),
        percent(Measure::Typical),
        float(typical.and_then(|change| change.spread)),
        match typical.and_then(|change| change.is_beyond_chance()) {
            Some(true) => "yes".into(),
            Some(false) => "no".into(),
            None => "".into(),
        },
        float(a.map(|side| side.p95)),
        float(b.map(|side| side.p95)),
    ]
}
