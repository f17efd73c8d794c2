//! Looking up the symbols of a database.

use std::path::Path;

use rpd_formats::rocpd::call_stacks::{ShownFrames, StackDatabase};
use rpd_formats::rocpd::read::ReadError;

use crate::expand::{Report, symbols};
use crate::native::Symbolizer;

/// Looks up the symbols of all stacks in a database and writes them into it, in the place of those that were there.
/// Without `shown`, the same frames are shown as before.
///
/// # Errors
/// When the database cannot be read or written. It is as before then.
pub fn symbolize(
    path: &Path,
    symbolizer: &mut Symbolizer,
    shown: Option<ShownFrames>,
) -> Result<Report, ReadError> {
    let mut database = StackDatabase::open_for_symbols(path)?;
    let shown = shown
        .or_else(|| database.recordings().first().map(|first| first.shown))
        .unwrap_or_default();
    let mut report = Report::default();
    let mut all = Vec::new();
    for recording in database.recordings() {
        let tables = database.tables(recording)?;
        let stacks = database.stacks(recording)?;
        let (found, of_this) = symbols(&tables, &stacks, shown, symbolizer);
        report.add(of_this);
        all.push((recording.clone(), found));
    }
    database.replace(&all, shown)?;
    Ok(report)
}
