//! `rpd annotate`: source and instructions of a kernel side by side, with what was sampled.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_core::compat::Compat;
use rpd_core::session::Session;
use rpd_core::session::hot::{HotPlace, Listing, listings};
use rpd_formats::table::{Cell, Printer, TableFormat};

use super::show::issue_text;
use super::{each_sampled, expand, parse, write_output};
use crate::failure::Failure;

const NAME: &str = "annotate";

/// Columns that source text gets.
const SOURCE_WIDTH: usize = 60;

/// Prints source and instructions of a kernel side by side, with what was sampled
#[derive(Debug, Parser)]
struct Arguments {
    /// Database of a run with PC sampling, or a directory that holds some
    #[arg(value_name = "DB")]
    input: PathBuf,
    /// Kernel: a part of its name. Without it the hottest one
    #[arg(value_name = "KERNEL")]
    kernel: Option<String>,
    /// How the result looks
    #[arg(short = 'f', long, value_enum, default_value = "text")]
    format: FormatName,
    /// Write to this file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    naming: super::super::Naming,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// For people
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

/// Runs the sub-command.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    let paths = expand(&[&given.input])?;
    let mut found: Vec<(Listing, Sources)> = Vec::new();
    let mut kernels: Vec<String> = Vec::new();
    each_sampled(NAME, &paths, |_, session, settings, totals| {
        let names = given.naming.over(settings);
        let all = listings(session, totals, names, |_| true);
        for listing in all {
            if !kernels.contains(&listing.kernel) {
                kernels.push(listing.kernel.clone());
            }
            let sources = sources(session, &listing);
            found.push((listing, sources));
        }
        Ok(())
    })?;
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
        let near = rpd_core::near::nearest(part, kernels.iter().map(String::as_str));
        let hint = match near {
            Some(near) => format!("; did you mean {near}?"),
            None if kernels.is_empty() => "; no sampled instruction could be decoded".to_owned(),
            None => format!(": {}", kernels.join(", ")),
        };
        return Err(Failure::failed(format!(
            "annotate: no kernel with samples has '{part}' in its name{hint}"
        ))
        .into());
    }
    let write = |out: &mut dyn Write| -> Result<()> {
        match given.format {
            FormatName::Text => text(&found, out)?,
            FormatName::Csv => table(&found, TableFormat::Csv, out)?,
            FormatName::Json => table(&found, TableFormat::Json, out)?,
            FormatName::Markdown => table(&found, TableFormat::Markdown, out)?,
        }
        Ok(())
    };
    write_output(given.output_file.as_deref(), Compat::None, write)?;
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

/// At most `width` characters, padded.
fn fitted(text: &str, width: usize) -> String {
    let count = text.chars().count();
    match count > width {
        true => {
            let cut: String = text.chars().take(width - 1).collect();
            format!("{cut}…")
        }
        false => format!("{text}{}", " ".repeat(width - count)),
    }
}

fn text(found: &[(Listing, Sources)], out: &mut dyn Write) -> std::io::Result<()> {
    for (number, (listing, sources)) in found.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        write!(out, "{}", listing.kernel)?;
        if listing.function != listing.kernel {
            write!(out, ", in {}", listing.function)?;
        }
        writeln!(
            out,
            " (code object {}): {} samples",
            listing.object, listing.tally.samples
        )?;
        let mut file = "";
        let mut last: &[HotPlace] = &[];
        for instruction in &listing.instructions {
            let is_new = instruction.chain != last;
            let own = instruction.chain.first();
            if let Some(own) = own
                && own.file != file
            {
                file = &own.file;
                writeln!(out, "{file}:")?;
            }
            let left = match own {
                Some(own) if is_new => {
                    let mut text = format!("{:>5}  {}", own.line, source_text(sources, own));
                    if let Some(caller) = instruction.chain.get(1) {
                        text = format!(
                            "{:>5}  [from {}] {}",
                            own.line,
                            caller.line,
                            source_text(sources, own)
                        );
                    }
                    text
                }
                _ => String::new(),
            };
            last = &instruction.chain;
            let tally = &instruction.tally;
            let shown = match tally.samples {
                0 => " ".repeat(17),
                samples => {
                    let error = tally.error(&listing.tally);
                    let error =
                        error.map_or(String::new(), |error| format!("± {:.1}", error * 100.0));
                    format!(
                        "{samples:>7} {:>5.1}% {error:<6}",
                        tally.share(&listing.tally) * 100.0
                    )
                }
            };
            let issue = issue_text(tally, 2);
            let lanes = match tally.samples {
                0 => String::new(),
                _ => format!("{:.1} lanes", tally.mean_lanes()),
            };
            let details: Vec<&str> = [issue.as_str(), lanes.as_str()]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect();
            let row = format!(
                "{} | {:<21} {:#06x}  {:<48} {}",
                fitted(&left, SOURCE_WIDTH),
                shown,
                instruction.offset,
                instruction.text,
                details.join("; ")
            );
            writeln!(out, "{}", row.trim_end())?;
        }
    }
    Ok(())
}

fn table(
    found: &[(Listing, Sources)],
    format: TableFormat,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let columns = [
        "Kernel",
        "Function",
        "Code_Object",
        "Offset",
        "Instruction",
        "File",
        "Line",
        "Source",
        "Samples",
        "Percent",
        "Percent_Error",
        "Issued",
        "Stalled",
        "Stall_Reasons",
        "Lanes",
    ];
    let mut printer = Printer::new(format, columns.map(str::to_owned).to_vec(), out)?;
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
            printer.row(vec![
                listing.kernel.as_str().into(),
                listing.function.as_str().into(),
                listing.object.0.into(),
                instruction.offset.into(),
                instruction.text.as_str().into(),
                own.map_or(Cell::Null, |own| own.file.as_str().into()),
                own.map_or(Cell::Null, |own| u64::from(own.line).into()),
                own.map_or(Cell::Null, |own| source_text(sources, own).trim().into()),
                tally.samples.into(),
                sampled(tally.share(&listing.tally) * 100.0),
                tally
                    .error(&listing.tally)
                    .map_or(Cell::Null, |error| sampled(error * 100.0)),
                known(tally.issued),
                known(tally.stalled()),
                Cell::Text(reasons.join(" ")),
                sampled(tally.mean_lanes()),
            ])?;
        }
    }
    printer.finish()?;
    Ok(())
}
