//! Looking up the symbols of a database.

use std::path::Path;

use rpd_core::session::LoadOptions;
use rpd_core::session::shown::expand;
use rpd_core::session::stacks::ShownFrames;
use rpd_formats::rocpd::read::{Database, Problem, ReadError};
use rpd_formats::rocpd::symbols::{SymbolWriter, Symbols};

use crate::look_up::{Report, look_up};
use crate::native::Symbolizer;

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
    // All recordings are read before anything is written: a failure leaves the file as it was.
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
    // The writer needs the file for itself.
    drop(database);
    let writer = SymbolWriter::begin(path)?;
    for (guid, session, shown) in &sessions {
        // One transaction for all recordings: a reader sees all new symbols or none.
        let expanded = expand(session, *shown);
        writer.replace(guid, &Symbols::from_session(session, &expanded), *shown)?;
    }
    writer.commit()?;
    Ok(report)
}
