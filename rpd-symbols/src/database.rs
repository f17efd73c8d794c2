//! Looking up the symbols of a database.

use std::path::Path;

use rpd_core::session::stacks::ShownFrames;
use rpd_core::session::{LoadOptions, Session};
use rpd_formats::rocpd::read::{Database, Problem, ReadError};
use rpd_formats::rocpd::symbols::{FrameRow, SymbolWriter, Symbols};

use crate::expand::{Expanded, FrameKind, expand};
use crate::look_up::{Report, look_up};
use crate::native::Symbolizer;

/// What the frame that stands for a call is from.
const CALL: &str = "api";

/// Looks up the symbols of all stacks in a database and writes them into it, in the place of those that were there.
/// Without `shown`, the same frames are shown as before.
///
/// # Errors
/// When the database cannot be read or written, or holds no call stacks. It is as before then.
pub fn symbolize(
    path: &Path,
    symbolizer: &mut Symbolizer,
    shown: Option<ShownFrames>,
) -> Result<Report, ReadError> {
    let database = Database::open(path)?;
    let mut report = Report::default();
    let mut sessions = Vec::new();
    let load = LoadOptions {
        args: false,
        ..LoadOptions::default()
    };
    for recording in database.recordings() {
        let (mut session, settings) = database.session(recording, load)?;
        if session.stacks.is_empty() {
            continue;
        }
        report.add(look_up(&mut session, symbolizer));
        let shown = shown.unwrap_or(settings.shown_frames);
        sessions.push((recording.guid.clone(), session, shown));
    }
    if sessions.is_empty() {
        return Err(ReadError {
            path: path.to_owned(),
            problem: Problem::NoStacks,
        });
    }
    drop(database);
    let writer = SymbolWriter::begin(path)?;
    for (guid, session, shown) in &sessions {
        let expanded = expand(session, *shown);
        writer.replace(guid, &rows(session, &expanded), *shown)?;
    }
    writer.commit()?;
    Ok(report)
}

/// The rows of a database: all frames that were found, those that no stack shows too, and those of calls.
fn rows<'a>(session: &'a Session, expanded: &Expanded) -> Symbols<'a> {
    let text = |id| session.strings.get(id);
    let stored = &session.stacks.frames;
    let mut symbols = Symbols::default();
    for frame in stored {
        symbols.frames.push(FrameRow {
            location: frame.location,
            inline_depth: frame.inline_depth.into(),
            function: text(frame.function),
            file: text(frame.file),
            line: frame.line,
            column: frame.column,
            evidence: &frame.evidence,
        });
    }
    // Where each shown frame is among the rows.
    let mut index_of = Vec::with_capacity(expanded.frames.len());
    for frame in &expanded.frames {
        let found = match frame.kind {
            FrameKind::Call { .. } => None,
            FrameKind::Physical | FrameKind::Inlined => stored
                .binary_search_by_key(&(frame.location, frame.inline_depth), |stored| {
                    (stored.location, stored.inline_depth)
                })
                .ok(),
        };
        index_of.push(found.unwrap_or(symbols.frames.len()) as u32);
        if found.is_none() {
            let (inline_depth, evidence) = match frame.kind {
                FrameKind::Call { has_address: true } => (-1, CALL),
                FrameKind::Call { has_address: false } => (-2, CALL),
                FrameKind::Physical | FrameKind::Inlined => (0, ""),
            };
            symbols.frames.push(FrameRow {
                location: frame.location,
                inline_depth,
                function: text(frame.function),
                file: text(frame.file),
                line: frame.line,
                column: frame.column,
                evidence,
            });
        }
    }
    symbols.stacks = expanded
        .stacks
        .iter()
        .map(|(&stack, frames)| {
            let frames = frames.iter().map(|&frame| index_of[frame as usize]);
            (stack, frames.collect())
        })
        .collect();
    symbols.stacks.sort_unstable_by_key(|(stack, _)| *stack);
    symbols
}
