//! One file with the time line of several recordings.

use std::path::PathBuf;

use rpd_core::options::Format;

use crate::WriteError;
use crate::html::JointPage;
use crate::output::{Placed, Together};
use crate::perfetto::JointTrace;
use crate::trace_events::TraceEvents;

/// Name behind the prefix, without its ending.
const NAME: &str = "timeline";

/// A file in the making, to which recordings are added one after the other.
pub struct JointTimeline(Writer);

enum Writer {
    Perfetto(JointTrace),
    TraceEvents(TraceEvents),
    Page(Box<JointPage>),
}

impl JointTimeline {
    /// The ending of the file in this format; `None` for a format that has no time line of several recordings.
    pub fn ending(format: Format) -> Option<&'static str> {
        match format {
            Format::Pftrace => Some("pftrace"),
            Format::Json => Some("json"),
            Format::Html => Some("html"),
            Format::Csv | Format::Otf2 | Format::Rocpd | Format::Parquet => None,
        }
    }

    /// The name of the file in this format behind the prefix; `None` as of [`JointTimeline::ending`].
    pub fn file(format: Format) -> Option<String> {
        Some(format!("{NAME}.{}", JointTimeline::ending(format)?))
    }

    /// Begins the file `path`; `None` as of [`JointTimeline::ending`].
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(
        format: Format,
        path: PathBuf,
        together: &Together,
    ) -> Result<Option<JointTimeline>, WriteError> {
        let writer = match format {
            Format::Pftrace => Writer::Perfetto(JointTrace::create(path)?),
            Format::Json => Writer::TraceEvents(TraceEvents::create(path, together)?),
            Format::Html => Writer::Page(Box::new(JointPage::create(path, together)?)),
            Format::Csv | Format::Otf2 | Format::Rocpd | Format::Parquet => return Ok(None),
        };
        Ok(Some(JointTimeline(writer)))
    }

    /// Adds a recording, whose records lie within the time of the [`Together`] that the file was begun with.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn with(self, placed: &Placed<'_>) -> Result<JointTimeline, WriteError> {
        Ok(JointTimeline(match self.0 {
            Writer::Perfetto(trace) => Writer::Perfetto(trace.with(placed)?),
            Writer::TraceEvents(mut events) => {
                events.add(placed)?;
                Writer::TraceEvents(events)
            }
            Writer::Page(mut page) => {
                page.add(placed)?;
                Writer::Page(page)
            }
        }))
    }

    /// Ends the file, which has its name from then on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<PathBuf, WriteError> {
        match self.0 {
            Writer::Perfetto(trace) => trace.finish(),
            Writer::TraceEvents(events) => events.finish(),
            Writer::Page(page) => page.finish(),
        }
    }
}
