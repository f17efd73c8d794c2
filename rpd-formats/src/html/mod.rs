//! A page to look at: one file that needs nothing else, with a timeline and tables. What it shows is summed up here, so
//! that a page over millions of records is as quick as one over a thousand.

mod code;
mod joint;
mod samples;
mod tables;
mod timeline;
mod traces;
mod tracks;

use std::path::PathBuf;

use rpd_core::domain::Domain;
use rpd_core::naming;
use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_core::stats::SessionStats;

use crate::file::TextFile;
use crate::json::{Object, quote};
use crate::{Output, WriteError};

/// File name after the prefix.
pub(crate) const FILE: &str = "report.html";

pub(crate) use joint::JointPage;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("../../../rpd-view/src/page/units.js"),
    include_str!("page.js"),
    include_str!("view.js"),
    include_str!("timeline.js"),
    include_str!("traces.js"),
    "})();\n"
);

/// Open calls that are named.
const OPEN_CALLS: usize = 5;

/// Writes `<prefix>_report.html`. Without statistics its tables of durations are empty.
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub(crate) fn write(output: &Output<'_>) -> Result<Vec<PathBuf>, WriteError> {
    let &Output {
        session,
        stats,
        options,
        target,
    } = output;
    let path = target.file(FILE);
    let none = SessionStats::default();
    let timeline = timeline::Timeline::new(session, options).map_err(|source| WriteError::Io {
        path: path.clone(),
        source,
    })?;
    let mut file = TextFile::create(path)?;
    let title = format!("rpd: {}", program(session));
    let rest = begin(&mut file, &title);
    write_data(
        &mut Data(&mut file),
        &timeline,
        stats.unwrap_or(&none),
        options,
    )?;
    end(&mut file, rest);
    Ok(vec![file.finish()?])
}

/// Writes the page up to its data; returns what follows these.
fn begin(file: &mut TextFile, title: &str) -> &'static str {
    // In the order of the page; what is put in is not looked through again.
    let rest = put(file, PAGE, "%title%", &escape_html(title));
    let rest = put(file, rest, "%style%", STYLE);
    put(file, rest, "%data%", "")
}

/// Writes the page behind its data.
fn end(file: &mut TextFile, rest: &str) {
    let rest = put(file, rest, "%script%", SCRIPT);
    file.buffer.extend_from_slice(rest.as_bytes());
}

/// Writes the template up to `mark`, and `text` in its place; returns what follows.
fn put<'p>(file: &mut TextFile, page: &'p str, mark: &str, text: &str) -> &'p str {
    // A test checks that the template has each mark.
    let (before, after) = page.split_once(mark).unwrap_or((page, ""));
    file.buffer.extend_from_slice(before.as_bytes());
    file.buffer.extend_from_slice(text.as_bytes());
    after
}

/// The file name of the program.
fn program(session: &Session) -> &str {
    let process = &session.process;
    let path = process.command.first().unwrap_or(&process.executable);
    path.rsplit('/').next().unwrap_or(path)
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The data of the page in the making: an object whose text must not end the element that it stands in.
struct Data<'f>(&'f mut TextFile);

impl Data<'_> {
    fn append(&mut self, json: &str) -> Result<(), WriteError> {
        for (number, piece) in json.split('<').enumerate() {
            if number > 0 {
                self.0.buffer.extend_from_slice(b"\\u003c");
            }
            self.0.buffer.extend_from_slice(piece.as_bytes());
        }
        self.0.make_room()
    }

    /// A further key, whose values are JSON already.
    fn array(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = String>,
    ) -> Result<(), WriteError> {
        self.append(&format!(",{}:[", quoted(key)))?;
        let mut separator = "";
        for value in values {
            self.append(separator)?;
            self.append(&value)?;
            separator = ",";
        }
        self.append("]")
    }
}

/// Writes the data that the page's script shows.
fn write_data(
    out: &mut Data<'_>,
    timeline: &timeline::Timeline<'_>,
    stats: &SessionStats<'_>,
    options: &Options,
) -> Result<(), WriteError> {
    let session = timeline.session();
    let process = &session.process;
    // The page of a recording that was read from a database names the machine of that recording.
    let host = match &session.origin {
        Some(origin) => origin.hostname.clone(),
        None => naming::hostname(),
    };
    let about = format!(
        "{} · process {} on {host}",
        process.command.join(" "),
        process.pid
    );
    let head = Object::new()
        .text("program", program(session))
        .text("about", &about)
        .array("notes", notes(session).iter().map(|note| quoted(note)))
        .array("cards", cards(session, stats, timeline))
        .number("length", timeline.length())
        .text("detail", &timeline.detail());
    out.append(&head.open())?;
    out.array("names", timeline.names().map(|name| quoted(&name)))?;
    out.array("tracks", timeline.tracks())?;
    let (frames, stacks) = timeline.stacks(options);
    out.array("frames", frames.iter().map(|frame| quoted(frame)))?;
    out.append(",\"stacks\":")?;
    out.append(&stacks)?;
    out.array("tables", tables::all(session, stats, options, timeline))?;
    out.array("code", code::all(session, options))?;
    out.array("traces", traces::all(session, options))?;
    out.array("units", samples::all(session, options))?;
    out.append("}")
}

/// The text as a JSON string, with quotes.
fn quoted(text: &str) -> String {
    let mut json = String::new();
    quote(&mut json, text);
    json
}

/// Warnings about the recording, which the page shows first.
fn notes(session: &Session) -> Vec<String> {
    let ledger = &session.ledger;
    let mut notes = Vec::new();
    if ledger.dropped > 0 {
        notes.push(format!("{} records could not be stored.", ledger.dropped));
    }
    notes.extend(ledger.damage.iter().cloned());
    notes.extend(ledger.notes.iter().cloned());
    let open = &ledger.open_calls;
    for call in open.iter().take(OPEN_CALLS) {
        notes.push(format!(
            "{} of thread {} had not returned when recording ended.",
            session.strings.get(call.name),
            call.thread
        ));
    }
    if open.len() > OPEN_CALLS {
        let more = open.len() - OPEN_CALLS;
        notes.push(format!("{more} more calls had not returned."));
    }
    if ledger.open_ranges.count > 0 {
        notes.push(format!(
            "Ranges that had not been ended, and last until recording ended: {}.",
            ledger.open_ranges.count
        ));
    }
    notes
}

/// Figures: label, value, unit.
fn cards(
    session: &Session,
    stats: &SessionStats<'_>,
    timeline: &timeline::Timeline<'_>,
) -> Vec<String> {
    let card = |label: &str, value: f64, unit: &str| {
        format!("[{},{value},{}]", quoted(label), quoted(unit))
    };
    let of = |domain: Domain| stats.overall.iter().find(|row| row.domain == domain);
    let mut cards = Vec::new();
    let records = session.len();
    // With thread traces alone there is none.
    if records != 0 {
        let length = timeline.length() as f64;
        cards.push(card("from first to last record", length, "ns"));
        cards.push(card("records", records as f64, "count"));
    }
    for (name, busy) in timeline.busy() {
        let share = 100.0 * *busy as f64 / timeline.length().max(1) as f64;
        cards.push(card(&format!("{name} busy"), share, "share"));
    }
    if let Some(row) = of(Domain::KernelDispatch) {
        cards.push(card("kernel dispatches", row.calls as f64, "count"));
        cards.push(card("in kernels", row.total as f64, "ns"));
    }
    if !session.copies.is_empty() {
        let bytes: u64 = session.copies.bytes.iter().sum();
        cards.push(card("copied", bytes as f64, "bytes"));
    }
    for (domain, label) in [
        (Domain::HipApi, "HIP calls"),
        (Domain::HsaApi, "HSA calls"),
        (Domain::RcclApi, "RCCL calls"),
    ] {
        if let Some(row) = of(domain) {
            cards.push(card(label, row.calls as f64, "count"));
        }
    }
    cards
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_template_has_each_mark_once_and_loads_nothing() {
        for mark in ["%title%", "%style%", "%data%", "%script%"] {
            assert_eq!(PAGE.matches(mark).count(), 1, "{mark}");
        }
        for text in [PAGE, STYLE, SCRIPT] {
            assert!(
                !text.contains("http:") && !text.contains("https:") && !text.contains("innerHTML")
            );
        }
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }
}
