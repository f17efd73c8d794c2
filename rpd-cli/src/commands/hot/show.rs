//! Text of hot lines and instructions.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use anyhow::Result;
use rpd_core::session::hot::{Hot, HotInstruction, HotKernel, HotLine, HotPlace, Tally};
use rpd_core::session::totals::Measure;
use rpd_core::text::foreign::shown;
use rpd_formats::table::{Cell, Column, ColumnKind, View, shortened};

use super::super::tables::{note, printer};
use super::{Facts, Level, NAME, by_line};

/// Limits of the rows that are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) kernels: usize,
    pub(super) lines: usize,
    pub(super) instructions: usize,
}

/// A line of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineKey {
    pub(super) kernel: String,
    pub(super) called: String,
    pub(super) chain: Vec<HotPlace>,
}

/// Letters that a name in a line keeps, however narrow the terminal is.
const NAME_LEAST: usize = 16;
/// Placeholder for an unknown line.
const NO_LINE: &str = "(no line)";
/// Placeholder for an instruction that could not be decoded.
const NO_TEXT: &str = "(not decoded)";

/// `12.3 % ± 0.4`.
fn share(part: &Tally, whole: &Tally) -> String {
    let percent = part.share(whole) * 100.0;
    match part.error(whole) {
        Some(error) => format!("{percent:5.1} % ± {:.1}", error * 100.0),
        None => format!("{percent:5.1} %"),
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// `issued 12.1 %, WAITCNT 80.0 %, ...`: what the issue logic did; empty for host trap samples.
pub(super) fn issue_text(tally: &Tally, most: usize) -> String {
    if tally.stochastic == 0 {
        return String::new();
    }
    let mut parts = vec![format!(
        "issued {:.1} %",
        percent(tally.issued, tally.stochastic)
    )];
    for (reason, samples) in tally.reasons().into_iter().take(most) {
        parts.push(format!(
            "{reason} {:.1} %",
            percent(samples, tally.stochastic)
        ));
    }
    parts.join(", ")
}

/// `file:line`.
pub(super) fn place_text(place: &HotPlace) -> String {
    match place.line {
        0 => format!("{} {NO_LINE}", place.file),
        line => format!("{}:{line}", place.file),
    }
}

/// `file:line`, where it was inlined, and in which function it is where that is not the kernel.
fn line_text(called: &str, chain: &[HotPlace]) -> String {
    let mut text = match chain.split_first() {
        None => NO_LINE.to_owned(),
        Some((own, callers)) => {
            let mut text = place_text(own);
            if !callers.is_empty() && !own.function.is_empty() {
                text += &format!(" in {}", own.function);
            }
            for place in callers {
                text += &format!(", inlined at {}:{}", place.file, place.line);
            }
            text
        }
    };
    if !called.is_empty() {
        text += &format!(" in {called}");
    }
    shown(&text).into_owned()
}

/// A line of `width` letters: where it is longer, the middle of the name in it is left out.
fn fitted(before: &str, name: &str, after: &str, width: usize) -> String {
    let others = before.chars().count() + after.chars().count();
    let name = shortened(name, width.saturating_sub(others).max(NAME_LEAST));
    format!("{before}{name}{after}")
}

fn left_out(left: usize, what: &str, out: &mut dyn Write, indent: &str) -> io::Result<()> {
    match left {
        0 => Ok(()),
        1 => writeln!(out, "{indent}... and 1 more {what}"),
        left => writeln!(out, "{indent}... and {left} more {what}s"),
    }
}

/// Kernels, their lines, and the instructions of these.
pub(super) fn tree(
    hot: &Hot,
    facts: &Facts,
    limits: Limits,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let how: BTreeSet<String> = facts
        .sampling
        .iter()
        .map(|sampling| {
            format!(
                "{}, every {} {}",
                sampling.method.word(),
                sampling.interval,
                sampling.unit.noun()
            )
        })
        .collect();
    let how: Vec<String> = how.into_iter().collect();
    let recordings = match facts.recordings {
        1 => String::new(),
        number => format!(" of {number} processes"),
    };
    let how = match hot.measure {
        Measure::Samples => how.join("; "),
        Measure::Cycles => "thread traces".to_owned(),
    };
    let counted = |tally: &Tally| hot.measure.counted(tally.samples);
    writeln!(out, "{}{recordings} ({how})", counted(&hot.tally))?;
    for kernel in hot.kernels.iter().take(limits.kernels) {
        writeln!(out)?;
        writeln!(out, "{}", shortened(&shown(&kernel.name), width))?;
        writeln!(
            out,
            "{}  {}{}",
            share(&kernel.tally, &hot.tally),
            counted(&kernel.tally),
            details(&kernel.tally, 3)
        )?;
        for line in kernel.lines.iter().take(limits.lines) {
            let figures = format!("  {}  ", share(&line.tally, &hot.tally));
            let place = line_text(&line.called, &line.chain);
            let row = fitted(&figures, &place, &details(&line.tally, 3), width);
            writeln!(out, "{row}")?;
            for instruction in line.instructions.iter().take(limits.instructions) {
                writeln!(
                    out,
                    "      {}  {:#06x}  {}{}",
                    share(&instruction.tally, &hot.tally),
                    instruction.offset,
                    text_of(instruction),
                    details(&instruction.tally, 2)
                )?;
            }
            let left = line.instructions.len().saturating_sub(limits.instructions);
            left_out(left, "instruction", out, "      ")?;
        }
        let left = kernel.lines.len().saturating_sub(limits.lines);
        left_out(left, "line", out, "  ")?;
    }
    let left = hot.kernels.len().saturating_sub(limits.kernels);
    if left > 0 {
        writeln!(out)?;
    }
    left_out(left, "kernel", out, "")
}

fn text_of(instruction: &HotInstruction) -> Cow<'_, str> {
    if instruction.text.is_empty() {
        Cow::Borrowed(NO_TEXT)
    } else {
        shown(&instruction.text)
    }
}

/// Details at the end of a row: `  [issued ..., ...; 32.0 lanes; 7.5 waves]`.
fn details(tally: &Tally, reasons: usize) -> String {
    let mut parts = vec![];
    let issue = issue_text(tally, reasons);
    if !issue.is_empty() {
        parts.push(issue);
    }
    if let Some(lanes) = tally.mean_lanes() {
        parts.push(format!("{lanes:.1} lanes"));
    }
    if let Some(waves) = tally.mean_waves() {
        parts.push(format!("{waves:.1} waves"));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("  [{}]", parts.join("; "))
    }
}

/// The word for what is counted in the names of columns.
pub(super) fn column(measure: Measure) -> &'static str {
    match measure {
        Measure::Samples => "Samples",
        Measure::Cycles => "Cycles",
    }
}

/// The columns of the table.
fn columns(measure: Measure) -> Vec<Column> {
    use ColumnKind::{Name, Number, Word};
    [
        (Word, "Level", 1),
        (Name, "Kernel", 0),
        (Name, "File", 0),
        (Number, "Line", 0),
        (Name, "Function", 3),
        (Name, "Inlined_At", 4),
        (Number, "Code_Object", 6),
        (Number, "Offset", 3),
        (Name, "Instruction", 0),
        (Number, column(measure), 0),
        (Number, "Percent", 0),
        (Number, "Percent_Error", 2),
        (Number, "Issued", 5),
        (Number, "Stalled", 5),
        (Name, "Stall_Reasons", 2),
        (Number, "Lanes", 6),
        (Number, "Waves", 6),
    ]
    .map(|(kind, name, level)| Column::new(kind, name).detail(level))
    .to_vec()
}

/// One row per kernel, line or instruction.
pub(super) fn table(
    hot: &Hot,
    by: Option<Level>,
    limits: Limits,
    view: &View,
    out: &mut dyn Write,
) -> Result<()> {
    let mut printer = printer(NAME, view, columns(hot.measure), out)?;
    let has = |level: Level| by.is_none_or(|by| by == level);
    for kernel in hot.kernels.iter().take(limits.kernels) {
        if has(Level::Kernel) {
            printer.row(row("kernel", hot, kernel, None, None))?;
        }
        for line in kernel.lines.iter().take(limits.lines) {
            if has(Level::Line) {
                printer.row(row("line", hot, kernel, Some(line), None))?;
            }
            if has(Level::Instruction) {
                for instruction in line.instructions.iter().take(limits.instructions) {
                    printer.row(row(
                        "instruction",
                        hot,
                        kernel,
                        Some(line),
                        Some(instruction),
                    ))?;
                }
            }
        }
    }
    note(NAME, view.format, &printer.finish()?);
    Ok(())
}

fn row(
    level: &str,
    hot: &Hot,
    kernel: &HotKernel,
    line: Option<&HotLine>,
    instruction: Option<&HotInstruction>,
) -> Vec<Cell> {
    let tally = instruction
        .map(|instruction| &instruction.tally)
        .or(line.map(|line| &line.tally))
        .unwrap_or(&kernel.tally);
    let own = line.and_then(|line| line.chain.first());
    let text = |text: Option<String>| text.map_or(Cell::Null, Cell::Text);
    let callers = line.map(|line| {
        let callers = line.chain.iter().skip(1);
        let callers: Vec<String> = callers
            .map(|place| format!("{}:{}", place.file, place.line))
            .collect();
        callers.join(" <- ")
    });
    let is_stochastic = tally.stochastic > 0;
    let known = |number: u64| {
        if is_stochastic {
            Cell::from(number)
        } else {
            Cell::Null
        }
    };
    let reasons: Vec<String> = tally
        .reasons()
        .into_iter()
        .map(|(reason, samples)| format!("{reason}={samples}"))
        .collect();
    vec![
        level.into(),
        kernel.name.as_str().into(),
        text(own.map(|place| place.file.clone())),
        own.map_or(Cell::Null, |place| u64::from(place.line).into()),
        text(own.map(|place| place.function.clone())),
        text(callers),
        instruction.map_or(Cell::Null, |instruction| instruction.object.0.into()),
        instruction.map_or(Cell::Null, |instruction| instruction.offset.into()),
        text(instruction.map(|instruction| instruction.text.clone())),
        tally.samples.into(),
        rounded(tally.share(&hot.tally) * 100.0).into(),
        tally
            .error(&hot.tally)
            .map_or(Cell::Null, |error| rounded(error * 100.0).into()),
        known(tally.issued),
        known(tally.stalled()),
        text(is_stochastic.then(|| reasons.join(" "))),
        tally
            .mean_lanes()
            .map_or(Cell::Null, |lanes| rounded(lanes).into()),
        tally
            .mean_waves()
            .map_or(Cell::Null, |waves| rounded(waves).into()),
    ]
}

/// No more digits than the number of samples supports.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// A line in two runs.
struct Change<'a> {
    key: &'a LineKey,
    shares: [f64; 2],
    samples: [u64; 2],
    /// Half the width of the interval of the difference.
    error: f64,
}

impl Change<'_> {
    fn difference(&self) -> f64 {
        self.shares[1] - self.shares[0]
    }

    /// Whether the difference is larger than its error.
    fn is_significant(&self) -> bool {
        self.difference().abs() > self.error
    }
}

/// Lines of both runs, the greatest difference first.
fn changes<'a>(keys: &'a BTreeSet<LineKey>, hot: &Hot, before: &Hot) -> Vec<Change<'a>> {
    let (new, old) = (by_line(hot), by_line(before));
    let nothing = Tally::default();
    let mut changes: Vec<Change<'a>> = keys
        .iter()
        .map(|key| {
            let tallies =
                [old.get(key), new.get(key)].map(|found| found.copied().unwrap_or(&nothing));
            let wholes = [&before.tally, &hot.tally];
            let error = |run: usize| tallies[run].error(wholes[run]).unwrap_or(0.0);
            Change {
                key,
                shares: [0, 1].map(|run| tallies[run].share(wholes[run])),
                samples: tallies.map(|tally| tally.samples),
                error: error(0).hypot(error(1)),
            }
        })
        .collect();
    changes.sort_by(|a, b| {
        let key = |change: &Change<'_>| change.difference().abs();
        key(b).total_cmp(&key(a)).then_with(|| a.key.cmp(b.key))
    });
    changes
}

fn keys(hot: &Hot, before: &Hot) -> BTreeSet<LineKey> {
    let new = by_line(hot).into_keys();
    new.chain(by_line(before).into_keys()).collect()
}

/// Shows how the shares of lines changed.
pub(super) fn difference(
    hot: &Hot,
    before: &Hot,
    limits: Limits,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "{} before, {} now; shares of each, differences that are larger than their error are marked *",
        before.measure.counted(before.tally.samples),
        hot.measure.counted(hot.tally.samples)
    )?;
    let keys = keys(hot, before);
    let changes = changes(&keys, hot, before);
    let most = limits.lines.saturating_mul(2);
    for change in changes.iter().take(most) {
        let figures = format!(
            "{} {:+6.1} % ± {:.1}  {:5.1} % -> {:5.1} %  {}  ",
            if change.is_significant() { '*' } else { ' ' },
            change.difference() * 100.0,
            change.error * 100.0,
            change.shares[0] * 100.0,
            change.shares[1] * 100.0,
            line_text(&change.key.called, &change.key.chain),
        );
        writeln!(
            out,
            "{}",
            fitted(&figures, &shown(&change.key.kernel), "", width)
        )?;
    }
    left_out(changes.len().saturating_sub(most), "line", out, "")
}

/// Writes the difference of two recordings as a table.
pub(super) fn difference_table(
    hot: &Hot,
    before: &Hot,
    limits: Limits,
    view: &View,
    out: &mut dyn Write,
) -> Result<()> {
    use ColumnKind::{Name, Number};
    let before_column = format!("{}_Before", column(before.measure));
    let columns = [
        (Name, "Kernel"),
        (Name, "File"),
        (Number, "Line"),
        (Name, "Inlined_At"),
        (Number, before_column.as_str()),
        (Number, column(hot.measure)),
        (Number, "Percent_Before"),
        (Number, "Percent"),
        (Number, "Difference"),
        (Number, "Difference_Error"),
        (Number, "Significant"),
    ];
    let columns = columns.map(|(kind, name)| Column::new(kind, name)).to_vec();
    let mut printer = printer(NAME, view, columns, out)?;
    let keys = keys(hot, before);
    for change in changes(&keys, hot, before).iter().take(limits.lines) {
        let LineKey { kernel, chain, .. } = change.key;
        let own = chain.first();
        let callers: Vec<String> = chain
            .iter()
            .skip(1)
            .map(|place| format!("{}:{}", place.file, place.line))
            .collect();
        printer.row(vec![
            kernel.as_str().into(),
            own.map_or(Cell::Null, |place| place.file.as_str().into()),
            own.map_or(Cell::Null, |place| u64::from(place.line).into()),
            callers.join(" <- ").as_str().into(),
            change.samples[0].into(),
            change.samples[1].into(),
            rounded(change.shares[0] * 100.0).into(),
            rounded(change.shares[1] * 100.0).into(),
            rounded(change.difference() * 100.0).into(),
            rounded(change.error * 100.0).into(),
            u64::from(change.is_significant()).into(),
        ])?;
    }
    note(NAME, view.format, &printer.finish()?);
    Ok(())
}
