//! `rpd annotate`: source and instructions of a kernel side by side, with what was sampled.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_core::compat::Compat;
use rpd_core::session::Session;
use rpd_core::session::hot::{HotPlace, Listing, Tally, listings};
use rpd_core::session::totals::Measure;
use rpd_core::text::foreign::shown;
use rpd_formats::table::{Cell, Column, ColumnKind, Printer, TableFormat, View};

use super::show::{column, issue_text};
use super::{
    MeasureSource, destination, different_measures, each_measured, expand, other_kernels, parse,
    write_output,
};
use crate::failure::Failure;

const NAME: &str = "annotate";

/// Columns that source text gets.
const SOURCE_WIDTH: usize = 60;

/// Print source and instructions of a kernel side by side, with the samples or traced cycles of each
#[derive(Debug, Parser)]
struct Arguments {
    /// Database of a run with PC sampling or thread traces, or a directory that holds some
    #[arg(value_name = "DB")]
    input: PathBuf,
    /// Part of the kernel's name [default: the kernel with the most samples or cycles]
    #[arg(value_name = "KERNEL")]
    kernel: Option<String>,
    /// Database to compare with, line by line
    #[arg(long, value_name = "DB")]
    diff: Option<PathBuf>,
    #[command(flatten)]
    source: MeasureSource,
    /// Output format of the result
    #[arg(short = 'f', long, value_enum, default_value = "text")]
    format: FormatName,
    /// File to write instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    naming: super::super::Naming,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// Text with headings and indentation
    Text,
    /// Comma-separated values
    Csv,
    /// An array of objects
    Json,
    /// A markdown table
    #[value(alias = "md")]
    Markdown,
}

/// Lines of the source files that a listing refers to.
type Sources = HashMap<String, Vec<String>>;

/// Counts of the lines of kernels, over all functions and processes of a run.
#[derive(Default)]
struct KernelLines(HashMap<String, (Tally, HashMap<Vec<HotPlace>, Tally>)>);

impl KernelLines {
    /// Adds the listings of one recording.
    fn add<'a>(&mut self, listings: impl IntoIterator<Item = &'a Listing>) {
        let mut seen: HashSet<&str> = HashSet::new();
        for listing in listings {
            let (whole, lines) = self.0.entry(listing.kernel.clone()).or_default();
            if seen.insert(&listing.kernel) {
                whole.add(&listing.kernel_tally);
            }
            for instruction in &listing.instructions {
                let line = lines.entry(instruction.chain.clone()).or_default();
                line.add(&instruction.tally);
            }
        }
    }

    /// Reads the samples of another run. `measure`: the measure of the run that is compared with it.
    fn read(paths: &[PathBuf], given: &Arguments, measure: Measure) -> Result<Self> {
        let mut all = Self::default();
        each_measured(
            NAME,
            paths,
            &given.source,
            |_, session, settings, totals| {
                if totals.measure != measure {
                    return Err(different_measures(NAME).into());
                }
                all.add(&listings(
                    session,
                    totals,
                    given.naming.over(settings),
                    |_| true,
                ));
                Ok(())
            },
        )?;
        Ok(all)
    }

    /// Share of a line in its kernel, in percent.
    fn percent(&self, kernel: &str, chain: &[HotPlace]) -> f64 {
        let found = self.0.get(kernel);
        let line = found.and_then(|(whole, lines)| Some(lines.get(chain)?.share(whole)));
        line.unwrap_or(0.0) * 100.0
    }
}

/// Compares the lines of two runs.
struct Comparison {
    before: KernelLines,
    now: KernelLines,
}

impl Comparison {
    /// Shares of a line before and now, in percent.
    fn percent(&self, kernel: &str, chain: &[HotPlace]) -> [f64; 2] {
        [&self.before, &self.now].map(|run| run.percent(kernel, chain))
    }
}

/// Runs the sub-command.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    let paths = expand(&[&given.input])?;
    let others = match &given.diff {
        Some(path) => expand(&[path])?,
        None => Vec::new(),
    };
    let inputs = paths.iter().chain(&others);
    let output = destination(NAME, given.output_file.as_deref(), inputs)?;
    let mut found: Vec<(Listing, Sources)> = Vec::new();
    let mut kernels: Vec<String> = Vec::new();
    let mut measure = Measure::default();
    let mut now = KernelLines::default();
    each_measured(
        NAME,
        &paths,
        &given.source,
        |_, session, settings, totals| {
            measure = totals.measure;
            let names = given.naming.over(settings);
            let all = listings(session, totals, names, |_| true);
            if given.diff.is_some() {
                now.add(&all);
            }
            for listing in all {
                if !kernels.contains(&listing.kernel) {
                    kernels.push(listing.kernel.clone());
                }
                let sources = sources(session, &listing);
                found.push((listing, sources));
            }
            Ok(())
        },
    )?;
    let hottest = found
        .iter()
        .max_by_key(|(listing, _)| listing.tally.samples)
        .map(|(listing, _)| listing.kernel.clone());
    let wanted = |name: &str| match &given.kernel {
        Some(part) => name.contains(part.as_str()),
        None => Some(name) == hottest.as_deref(),
    };
    found.retain(|(listing, _)| wanted(&listing.kernel));
    if found.is_empty() {
        let part = given.kernel.as_deref().unwrap_or_default();
        let names: Vec<&str> = kernels.iter().map(String::as_str).collect();
        return Err(Failure::failed(if names.is_empty() {
            format!(
                "{NAME}: no instruction with {} could be decoded",
                measure.plural()
            )
        } else {
            format!(
                "{NAME}: no kernel with {} has '{part}' in its name{}",
                measure.plural(),
                other_kernels(part, &names)
            )
        })
        .into());
    }
    let comparison = match &given.diff {
        Some(_) => {
            let before = KernelLines::read(&others, &given, found[0].0.measure)?;
            Some(Comparison { before, now })
        }
        None => None,
    };
    let comparison = comparison.as_ref();
    let write = |out: &mut dyn Write| -> Result<()> {
        match given.format {
            FormatName::Text => text(&found, comparison, out)?,
            FormatName::Csv => table(&found, comparison, TableFormat::Csv, out)?,
            FormatName::Json => table(&found, comparison, TableFormat::Json, out)?,
            FormatName::Markdown => table(&found, comparison, TableFormat::Markdown, out)?,
        }
        Ok(())
    };
    write_output(output, Compat::None, write)?;
    Ok(0)
}

/// Lines of the files that the listing's own lines are in.
fn sources(session: &Session, listing: &Listing) -> Sources {
    let mut sources = Sources::new();
    for instruction in &listing.instructions {
        if let Some(place) = instruction.chain.first()
            && !sources.contains_key(&place.file)
        {
            let stored = session.code.sources.iter();
            let stored = stored
                .filter(|source| session.strings.get(source.path) == place.file)
                .map(|source| source.text.lines().map(str::to_owned).collect())
                .next();
            sources.insert(place.file.clone(), stored.unwrap_or_default());
        }
    }
    sources
}

fn source_text(sources: &Sources, place: &HotPlace) -> String {
    let line = (place.line as usize).checked_sub(1);
    let text = sources
        .get(&place.file)
        .zip(line)
        .and_then(|(lines, line)| lines.get(line));
    text.map_or(String::new(), |text| text.trim_end().replace('\t', "    "))
}

/// The text in `width` characters: cut off with an ellipsis, or padded with blanks.
fn fitted(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count > width {
        let cut: String = text.chars().take(width - 1).collect();
        format!("{cut}…")
    } else {
        format!("{text}{}", " ".repeat(width - count))
    }
}

fn text(
    found: &[(Listing, Sources)],
    comparison: Option<&Comparison>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    for (number, (listing, sources)) in found.iter().enumerate() {
        let mut compared: HashSet<&[HotPlace]> = HashSet::new();
        if number > 0 {
            writeln!(out)?;
        }
        write!(out, "{}", shown(&listing.kernel))?;
        if listing.function != listing.kernel {
            write!(out, ", in {}", shown(&listing.function))?;
        }
        let of_kernel = listing.kernel_tally.samples;
        let counted = if listing.tally.samples == of_kernel {
            listing.measure.counted(of_kernel)
        } else {
            format!(
                "{} of {}",
                listing.tally.samples,
                listing.measure.counted(of_kernel)
            )
        };
        writeln!(out, " (code object {}): {counted}", listing.object)?;
        let mut file = "";
        let mut last: &[HotPlace] = &[];
        for instruction in &listing.instructions {
            let is_new = instruction.chain != last;
            let own = instruction.chain.first();
            if let Some(own) = own
                && own.file != file
            {
                file = &own.file;
                writeln!(out, "{}:", shown(file))?;
            }
            let left = match own {
                Some(own) if is_new => {
                    let number = match own.line {
                        0 => "-".to_owned(),
                        line => line.to_string(),
                    };
                    let source = source_text(sources, own);
                    match instruction.chain.get(1) {
                        Some(caller) => format!("{number:>5}  [from {}] {source}", caller.line),
                        None => format!("{number:>5}  {source}"),
                    }
                }
                _ => String::new(),
            };
            last = &instruction.chain;
            let tally = &instruction.tally;
            let counted = match tally.samples {
                0 => " ".repeat(17),
                samples => {
                    let error = tally.error(&listing.kernel_tally);
                    let error =
                        error.map_or(String::new(), |error| format!("± {:.1}", error * 100.0));
                    format!(
                        "{samples:>7} {:>5.1}% {error:<6}",
                        tally.share(&listing.kernel_tally) * 100.0
                    )
                }
            };
            let issue = issue_text(tally, 2);
            let lanes = tally.mean_lanes();
            let lanes = lanes.map_or(String::new(), |lanes| format!("{lanes:.1} lanes"));
            let change = match comparison {
                Some(comparison) if compared.insert(&instruction.chain) => {
                    let [before, now] = comparison.percent(&listing.kernel, &instruction.chain);
                    format!("line {before:.1} % -> {now:.1} %")
                }
                _ => String::new(),
            };
            let details: Vec<&str> = [issue.as_str(), lanes.as_str(), change.as_str()]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect();
            let row = format!(
                "{} | {:<21} {:#06x}  {:<48} {}",
                fitted(&shown(&left), SOURCE_WIDTH),
                counted,
                instruction.offset,
                shown(&instruction.text),
                details.join("; ")
            );
            writeln!(out, "{}", row.trim_end())?;
        }
    }
    Ok(())
}

fn table(
    found: &[(Listing, Sources)],
    comparison: Option<&Comparison>,
    format: TableFormat,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let samples = found
        .first()
        .map_or("Samples", |(listing, _)| column(listing.measure));
    use ColumnKind::{Name, Number};
    let mut columns = vec![
        (Name, "Kernel"),
        (Name, "Function"),
        (Number, "Code_Object"),
        (Number, "Offset"),
        (Name, "Instruction"),
        (Name, "File"),
        (Number, "Line"),
        (Name, "Source"),
        (Number, samples),
        (Number, "Percent"),
        (Number, "Percent_Error"),
        (Number, "Issued"),
        (Number, "Stalled"),
        (Name, "Stall_Reasons"),
        (Number, "Lanes"),
    ];
    if comparison.is_some() {
        columns.extend([(Number, "Line_Percent_Before"), (Number, "Line_Percent")]);
    }
    let columns = columns.into_iter();
    let columns = columns.map(|(kind, name)| Column::new(kind, name));
    let mut printer = Printer::new(&View::from(format), columns.collect(), out)?;
    for (listing, sources) in found {
        for instruction in &listing.instructions {
            let tally = &instruction.tally;
            let own = instruction.chain.first();
            let reasons: Vec<String> = tally
                .reasons()
                .into_iter()
                .map(|(reason, samples)| format!("{reason}={samples}"))
                .collect();
            let known = |number: u64| match tally.stochastic {
                0 => Cell::Null,
                _ => Cell::from(number),
            };
            let sampled = |value: f64| match tally.samples {
                0 => Cell::Null,
                _ => Cell::from((value * 100.0).round() / 100.0),
            };
            let mut row = vec![
                listing.kernel.as_str().into(),
                listing.function.as_str().into(),
                listing.object.0.into(),
                instruction.offset.into(),
                instruction.text.as_str().into(),
                own.map_or(Cell::Null, |own| own.file.as_str().into()),
                own.map_or(Cell::Null, |own| u64::from(own.line).into()),
                own.map_or(Cell::Null, |own| source_text(sources, own).trim().into()),
                tally.samples.into(),
                sampled(tally.share(&listing.kernel_tally) * 100.0),
                tally
                    .error(&listing.kernel_tally)
                    .map_or(Cell::Null, |error| sampled(error * 100.0)),
                known(tally.issued),
                known(tally.stalled()),
                Cell::Text(reasons.join(" ")),
                tally.mean_lanes().map_or(Cell::Null, sampled),
            ];
            if let Some(comparison) = comparison {
                let rounded = |percent: f64| Cell::from((percent * 100.0).round() / 100.0);
                let shares = comparison.percent(&listing.kernel, &instruction.chain);
                row.extend(shares.map(rounded));
            }
            printer.row(row)?;
        }
    }
    printer.finish()?;
    Ok(())
}
