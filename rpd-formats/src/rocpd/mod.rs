//! rocpd: the SQLite database, schema 3.
//!
//! What repeats in every row of a record table is the default of a column at its end (`schema.sql` marks it), unless the layout of
//! the original is requested. SQLite makes the schema and short tables; the rows of long ones and the entries of their indices are
//! written as pages behind what SQLite made (the module `pages`). The file is built under another name with
//! SQLite's safety nets off: until it has its final name, losing it costs nothing.

mod connection;
mod counters;
mod device_totals;
mod dispatches;
mod error;
mod guard;
pub(crate) mod identity;
mod info;
mod kfd;
mod merge;
mod names;
mod pages;
pub mod query;
pub mod read;
mod rows;
mod samples;
mod sql;
mod stack_views;
mod stacks;
pub mod symbols;
mod tables;
mod traces;

use std::io;
use std::path::{Path, PathBuf};

use crate::file::PendingFile;
use crate::{Output, WriteError};
pub use connection::Guarded;
pub use error::Problem;
use identity::Node;
pub use merge::{MergeError, merge};
use names::Names;
use pages::{PageFile, Tables};
use rpd_core::agent::AgentType;
use rpd_core::naming::Target;
use rpd_core::options::{Options, RocpdSchema};
use rpd_core::session::{DispatchTable, Session};
use rpd_core::spool::format::GraphNode;
use rpd_core::storage::optional_column::OptionalColumn;
use rusqlite::Connection;
pub(crate) use sql::identifier;
use tables::schema_version;

/// File name of the database after the prefix.
pub(crate) const FILE: &str = "results.db";

const VIEWS: &str = include_str!("views.sql");
/// Begins a line of [`VIEWS`] that only databases with graphs have.
const GRAPHS: &str = "    -- graphs: ";
/// Stands before what views have of replayed dispatches.
const REPLAYS: &str = "    -- replays: ";
const GRAPH_VIEWS: &str = include_str!("graphs_data_views.sql");
const EVENT_VIEWS: &str = include_str!("events_data_views.sql");
const INDICES: &str = include_str!("indices.sql");

/// Without a journal and without waiting for the disk; 32 MiB of pages are kept in memory. The name of the database matters: without
/// it databases that are attached later would be locked exclusively, too.
const PRAGMAS: &str =
    "PRAGMA main.journal_mode = OFF; PRAGMA main.synchronous = OFF; PRAGMA main.locking_mode = EXCLUSIVE;
    PRAGMA foreign_keys = OFF; PRAGMA main.cache_size = -32768;";

/// Writes `<prefix>_results.db`.
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub(crate) fn write(output: &Output<'_>) -> Result<Vec<PathBuf>, WriteError> {
    let &Output {
        session,
        options,
        target,
        ..
    } = output;
    let file = PendingFile::create(target.file(FILE))?;
    if let Err(error) = fill(&file, session, options, target) {
        let path = file.path().to_owned();
        return Err(match error {
            FillError::Io(source) => WriteError::Io { path, source },
            FillError::Sqlite(source) => WriteError::Sqlite { path, source },
        });
    }
    Ok(vec![file.finish()?])
}

/// Why a database could not be filled.
enum FillError {
    Io(io::Error),
    Sqlite(rusqlite::Error),
}

impl From<io::Error> for FillError {
    fn from(error: io::Error) -> FillError {
        FillError::Io(error)
    }
}

impl From<rusqlite::Error> for FillError {
    fn from(error: rusqlite::Error) -> FillError {
        FillError::Sqlite(error)
    }
}

/// An error of storing rows in a temporary file, for functions that report those of SQLite.
pub(crate) fn unstored(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// Makes the schema and short tables by statements, then the long tables as pages, then by statements again what looks for rows
/// that are there.
fn fill(
    file: &PendingFile,
    session: &Session,
    options: &Options,
    target: &Target,
) -> Result<(), FillError> {
    let path = file.temporary_path();
    let connection = open(path)?;
    let node = Node::from_session(session);
    let names = Names::new(session, &node);
    create(&connection, &names, session, options)?;
    let ids = info::write(&connection, &names, &node, session, options, target)?;
    let tables = Tables::read(&connection)?;
    close(connection)?;

    let file = PageFile::open(path)?;
    rows::write(rows::Writer {
        file: &file,
        tables: &tables,
        names: &names,
        ids: &ids,
        session,
        options,
    })?;
    file.finish()?;

    if stacks::has_tables(session, options) && !session.stacks.frames.is_empty() {
        let connection = open(path)?;
        stacks::write_symbols(&connection, &names, session, options)?;
        close(connection)?;
    }
    Ok(())
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connection::create(path)?;
    connection.execute_batch(PRAGMAS)?;
    connection.execute_batch("BEGIN")?;
    Ok(connection)
}

fn close(connection: Connection) -> rusqlite::Result<()> {
    connection.execute_batch("COMMIT")?;
    connection.close().map_err(|(_, error)| error)
}

/// Makes tables, indices and views.
fn create(
    connection: &Connection,
    names: &Names,
    session: &Session,
    options: &Options,
) -> rusqlite::Result<()> {
    let version = schema_version(session, options);
    connection.execute_batch(&names.fill_in(&tables::create(options.layout, version)))?;
    connection.execute_batch(&names.fill_in(INDICES))?;
    stacks::create(connection, names, session, options)?;
    device_totals::create(connection, names, session)?;
    samples::create(connection, names, session)?;
    traces::create(connection, names, session)?;
    for view in tables::views(version) {
        connection.execute_batch(&names.fill_in(&view))?;
    }
    connection.execute_batch(&views(version.into()))?;
    if version >= RocpdSchema::Graphs {
        connection.execute_batch(GRAPH_VIEWS)?;
    }
    if version >= RocpdSchema::Events {
        connection.execute_batch(EVENT_VIEWS)?;
    }
    if session.has_samples() {
        connection.execute_batch(samples::DATA_VIEWS)?;
    }
    if !session.thread_traces.summaries.is_empty() {
        connection.execute_batch(traces::DATA_VIEWS)?;
    }
    if stacks::has_tables(session, options) {
        connection.execute_batch(&stack_views::statements(names))?;
        connection.execute_batch(stacks::ANSWERS)?;
    }
    Ok(())
}

/// What a recording has that the schema of its database has no place for: a line for each sort.
pub fn without_place(session: &Session, options: &Options) -> Vec<String> {
    let Some(wanted) = options.rocpd_schema else {
        return Vec::new();
    };
    let with_graphs = |graph: &OptionalColumn<GraphNode>| {
        let nodes = graph.iter();
        nodes.filter(|node| node.exec != 0).count()
    };
    let with_replays = |table: &DispatchTable| table.replay.iter().filter(|run| **run != 0).count();
    let adapters = session.agents.iter();
    let adapters = adapters.filter(|agent| agent.agent_type == AgentType::Nic);
    let sorts = [
        (
            RocpdSchema::Adapters,
            adapters.count(),
            "types of network adapters",
        ),
        (
            RocpdSchema::Graphs,
            session.graph_launches.len(),
            "launches of graphs",
        ),
        (
            RocpdSchema::Graphs,
            with_graphs(&session.dispatches.graph) + with_graphs(&session.copies.graph),
            "graphs of dispatches and copies",
        ),
        (RocpdSchema::Events, session.hip_events.len(), "HIP events"),
        (
            RocpdSchema::Replays,
            with_replays(&session.dispatches) + with_replays(&session.counted.dispatches),
            "numbers of the runs of dispatches",
        ),
    ];
    let missing = sorts
        .into_iter()
        .filter(|(since, count, _)| *since > wanted && *count > 0);
    let line = |(since, count, what): (RocpdSchema, usize, &str)| {
        format!(
            "{count} {what} are left out of the database: --rocpd-schema {} has no place for them, {} has",
            wanted.word(),
            since.word()
        )
    };
    missing.map(line).collect()
}

/// Columns that only some databases have, for the views over them.
#[derive(Debug, Clone, Copy)]
struct LaterColumns {
    /// Dispatches and copies have those of graphs.
    graphs: bool,
    /// Dispatches have that of replays.
    replays: bool,
}

impl From<RocpdSchema> for LaterColumns {
    fn from(version: RocpdSchema) -> Self {
        Self {
            graphs: version >= RocpdSchema::Graphs,
            replays: version >= RocpdSchema::Replays,
        }
    }
}

/// The statements of [`VIEWS`] over these columns.
fn views(columns: LaterColumns) -> String {
    let marked = [(GRAPHS, columns.graphs), (REPLAYS, columns.replays)];
    let mut statements = String::new();
    for line in VIEWS.lines() {
        let part = marked
            .iter()
            .find_map(|(mark, is_there)| Some((line.strip_prefix(mark)?, *is_there)));
        match part {
            Some((rest, true)) => statements.extend(["        ", rest, "\n"]),
            Some((_, false)) => {}
            None => statements.extend([line, "\n"]),
        }
    }
    statements
}

/// Statements that make the views by whose names readers find tables.
fn table_views() -> impl Iterator<Item = String> {
    let of_rpd = [
        stacks::VIEWS,
        samples::VIEWS,
        traces::VIEWS,
        device_totals::VIEWS,
    ];
    let of_rpd = of_rpd.into_iter().flat_map(|views| views.split(";\n"));
    tables::views(RocpdSchema::Replays)
        .chain(of_rpd.map(|view| Names::without_comments(view).to_owned()))
}

/// Whether readers use a table or view of this name: one of schema 3, or one of call stacks, PC samples, thread traces or sums
/// of device work.
fn is_known_view(name: &str) -> bool {
    let is_of_rpd = || table_views().any(|statement| names::view_name(&statement) == Some(name));
    name.starts_with("rocpd_") || name.starts_with("rpd_") && is_of_rpd()
}
