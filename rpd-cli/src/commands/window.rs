//! The time window of commands that read databases.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rpd_core::ids::Nanoseconds;
use rpd_core::session::Window;
use rpd_formats::rocpd::query::Combined;

use super::file_of_rpd_is_whole;
use crate::failure::Failure;

/// Options that set the window.
#[derive(Debug, Args)]
#[command(next_help_heading = "Time window")]
pub(crate) struct WindowOptions {
    /// Begin: nanoseconds as in the database, or a share of its span such as 25%
    #[arg(long, value_name = "T", conflicts_with = "start_marker")]
    start: Option<String>,
    /// Begin where the ROCTx marker with this message begins
    #[arg(long, value_name = "MESSAGE")]
    start_marker: Option<String>,
    /// End: nanoseconds as in the database, or a share of its span such as 75%
    #[arg(long, value_name = "T", conflicts_with = "end_marker")]
    end: Option<String>,
    /// End where the ROCTx marker with this message ends
    #[arg(long, value_name = "MESSAGE")]
    end_marker: Option<String>,
    /// true: keep what lies entirely inside the window; false: keep all that overlaps it
    #[arg(long, value_name = "BOOL", default_value = "true", value_parser = boolean, action = clap::ArgAction::Set)]
    inclusive: bool,
}

fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Ok(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

impl WindowOptions {
    /// Whether an option sets one.
    pub(super) fn is_given(&self) -> bool {
        [&self.start, &self.start_marker, &self.end, &self.end_marker]
            .iter()
            .any(|side| side.is_some())
    }

    /// The window over all databases together; `None` when no option sets one. Files of RPD are refused.
    pub(crate) fn resolve(&self, name: &str, paths: &[PathBuf]) -> Result<Option<Window>> {
        if !self.is_given() {
            return Ok(None);
        }
        let mut span: Option<(u64, u64)> = None;
        let (mut begins, mut ends) = (Vec::new(), Vec::new());
        // All inputs have one time line, so that the window is the same in each.
        for path in paths {
            let database = Combined::open(std::slice::from_ref(path))?;
            // Such a file has no markers as databases have, and is converted as a whole.
            if database.rpd_file().is_some() {
                return Err(file_of_rpd_is_whole(name, path));
            }
            if let Some((first, last)) = database.span()? {
                let (a, b) = span.unwrap_or((first, last));
                span = Some((a.min(first), b.max(last)));
            }
            if let Some(message) = &self.start_marker {
                begins.extend(database.markers(message)?);
            }
            if let Some(message) = &self.end_marker {
                ends.extend(database.markers(message)?);
            }
        }
        let Some((first, last)) = span else {
            return Err(Failure::failed(format!(
                "{name}: there are no records, so no window can be selected"
            ))
            .into());
        };
        let start = match (&self.start, &self.start_marker) {
            (Some(text), _) => time(name, "--start", text, first, last)?,
            (_, Some(message)) => only_marker(name, message, &begins)?.0,
            _ => first,
        };
        let end = match (&self.end, &self.end_marker) {
            (Some(text), _) => time(name, "--end", text, first, last)?,
            (_, Some(message)) => only_marker(name, message, &ends)?.1,
            _ => last,
        };
        if end <= start {
            return Err(Failure::failed(format!(
                "{name}: the window ends ({end}) before it begins ({start}); records lie between {first} and {last}"
            ))
            .into());
        }
        // The original prints these lines, and scripts read them.
        let (whole, cut) = (last.saturating_sub(first), end - start);
        let reduced = 100.0 * (1.0 - cut as f64 / whole.max(1) as f64);
        eprintln!("#  Initial time bounds: {first} : {last} nsec (delta={whole} nsec)");
        eprintln!("# Windowed time bounds: {start} : {end} nsec (delta={cut} nsec)");
        eprintln!("# Time windowing reduced the duration by {reduced:6.2}%");
        Ok(Some(Window {
            start: Nanoseconds(start),
            end: Nanoseconds(end),
            inside: self.inclusive,
        }))
    }
}

fn time(name: &str, option: &str, text: &str, first: u64, last: u64) -> Result<u64> {
    let refuse = |what: &str| -> anyhow::Error {
        Failure::usage(format!("{name}: argument {option}: {what}: '{text}'")).into()
    };
    match text.strip_suffix('%') {
        Some(number) => {
            let share: f64 = number
                .trim()
                .parse()
                .map_err(|_| refuse("expected a percentage"))?;
            if !(0.0..=100.0).contains(&share) {
                return Err(refuse("a percentage lies between 0% and 100%"));
            }
            let offset = (last.saturating_sub(first) as f64 * share / 100.0).round() as u64;
            Ok(first.saturating_add(offset))
        }
        None => text
            .parse()
            .map_err(|_| refuse("expected nanoseconds or a percentage such as 25%")),
    }
}

fn only_marker(name: &str, message: &str, found: &[(u64, u64)]) -> Result<(u64, u64)> {
    match found {
        [only] => Ok(*only),
        [] => Err(Failure::failed(format!(
            "{name}: no ROCTx marker has the message \"{message}\"; `rpd query DB \"SELECT DISTINCT extdata FROM \
             regions_and_samples WHERE category LIKE 'MARKER%'\"` lists them"
        ))
        .into()),
        several => Err(Failure::failed(format!(
            "{name}: {} ROCTx markers have the message \"{message}\", the first at {} and the last at {}; give a time \
             instead",
            several.len(),
            several[0].0,
            several[several.len() - 1].0
        ))
        .into()),
    }
}
