//! The files that the original's converter makes from databases: one set for all processes together, each row with the
//! id of its recording.

#![deny(clippy::wildcard_enum_match_arm)]

use std::path::PathBuf;

use rpd_core::domain::Domain;
use rpd_core::naming::Target;
use rpd_core::options::Options;
use rpd_core::session::{Session, Table};

use super::{agents, graphs, trace};
use crate::WriteError;
use crate::file::TextFile;

/// Writes them and returns their names; domains without records have no file. The shape is the original's with its
/// oddities where readers depend on them: LDS bytes of the dispatch, not rounded; an agent of frees that reads `"`;
/// scratch rows without recording id and size, counter rows with the process id in its place and values as short as
/// they can be. Its mistakes are not: virtual operations keep their names, scratch rows
/// do not repeat among allocations, and all processes' rows are kept.
///
/// # Errors
/// When a file cannot be written; files finished before that stay.
pub fn write_combined(
    sessions: &[Session],
    options: &Options,
    target: &Target,
) -> Result<Vec<PathBuf>, WriteError> {
    let mut files = Vec::new();
    // All rows of a file have the same columns.
    let with_graphs = sessions.iter().any(trace::has_graphs);
    let with_replays = sessions
        .iter()
        .any(|session| !session.counted.dispatches.replay.is_empty());
    for domain in Domain::ALL {
        if sessions
            .iter()
            .all(|session| session.domain_bytes(domain) == 0)
        {
            continue;
        }
        let mut file = TextFile::create(target.file(&format!("{}.csv", domain.trace_file())))?;
        for (index, session) in sessions.iter().enumerate() {
            let mut shape = Shape::new(session, domain, options, index == 0);
            shape.graphs = with_graphs;
            shape.replays = with_replays;
            trace::write_rows(&mut file, session, domain, options, &shape)?;
        }
        files.push(file.finish()?);
    }
    for file in graphs::FILES {
        if sessions.iter().all(|session| (file.rows)(session) == 0) {
            continue;
        }
        let mut out = TextFile::create(target.file(file.name))?;
        for (index, session) in sessions.iter().enumerate() {
            let shape = Shape::from_session(session, options, index == 0);
            (file.write)(&mut out, session, options, &shape)?;
        }
        files.push(out.finish()?);
    }
    if !sessions.iter().all(|session| session.agents.is_empty()) {
        let mut file = TextFile::create(target.file("agent_info.csv"))?;
        for (index, session) in sessions.iter().enumerate() {
            agents::write_rows(
                &mut file,
                session,
                &Shape::from_session(session, options, index == 0),
            )?;
        }
        files.push(file.finish()?);
    }
    Ok(files)
}

/// Which of the two shapes of CSV files is written: that of a run, or that of the converter, whose rows begin with the recording.
pub(super) struct Shape {
    /// `"guid",`, or `pid,` in front of what was counted; empty in the shape of a run.
    pub(super) row: Vec<u8>,
    /// The value is the process id.
    pub(super) is_pid: bool,
    /// Write the header line.
    pub(super) header: bool,
    /// This is the converter's shape.
    pub(super) combined: bool,
    /// [`Options::csv_safe`].
    pub(super) safe: bool,
    /// Dispatches and copies have the columns of graphs.
    pub(super) graphs: bool,
    /// What was counted has the column of the runs of replayed dispatches.
    pub(super) replays: bool,
}

impl Shape {
    /// The shape of a run. `safe` is [`Options::csv_safe`].
    pub(super) fn run(safe: bool) -> Shape {
        Shape {
            row: Vec::new(),
            is_pid: false,
            header: true,
            combined: false,
            safe,
            graphs: false,
            replays: false,
        }
    }

    fn from_session(session: &Session, options: &Options, header: bool) -> Shape {
        let guid = session.origin.as_ref().map_or("", |origin| &origin.guid);
        let mut row = Vec::new();
        super::row::quote(&mut row, guid);
        row.push(b',');
        Shape {
            row,
            is_pid: false,
            header,
            combined: true,
            safe: options.csv_safe,
            graphs: false,
            replays: false,
        }
    }

    fn new(session: &Session, domain: Domain, options: &Options, header: bool) -> Shape {
        let mut shape = Shape::from_session(session, options, header);
        match domain.table() {
            Table::Scratch => shape.row.clear(),
            Table::Counted => {
                shape.row = format!("{},", session.process.pid).into_bytes();
                shape.is_pid = true;
            }
            Table::Calls
            | Table::Dispatches
            | Table::Copies
            | Table::Allocations
            | Table::Samples
            | Table::GraphLaunches
            | Table::HipEvents
            | Table::KfdEvents => {}
        }
        shape
    }

    /// The name of the column in front, when there is one.
    pub(super) fn column(&self) -> Option<&'static str> {
        let name = if self.is_pid { "Pid" } else { "Guid" };
        (!self.row.is_empty()).then_some(name)
    }

    /// The agent of an allocation that has none, in quotes. The original's converter writes a quote there.
    pub(super) fn no_agent(&self) -> &'static [u8] {
        if self.combined { b"\"\"\"\"" } else { b"\"\"" }
    }
}
