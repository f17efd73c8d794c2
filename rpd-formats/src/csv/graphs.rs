//! Launches of graphs and HIP events.

use rpd_core::options::Options;
use rpd_core::session::{GraphLaunchTable, HipEventTable, Session, event_operation_name};

use super::combined::Shape;
use super::row::Row;
use super::trace::{AgentNames, stream};
use crate::WriteError;
use crate::columns::columns;
use crate::file::TextFile;

/// A file that is made of databases only.
pub(super) struct ConvertedFile {
    /// Name of the file, behind the prefix.
    pub(super) name: &'static str,
    /// Number of rows of a session.
    pub(super) rows: fn(&Session) -> usize,
    /// Writes the header, where the shape has one, and the rows.
    pub(super) write: fn(&mut TextFile, &Session, &Options, &Shape) -> Result<(), WriteError>,
}

/// The files of this module.
pub(super) const FILES: [ConvertedFile; 2] = [
    ConvertedFile {
        name: "graph_launch_trace.csv",
        rows: |session| session.graph_launches.len(),
        write: write_launches,
    },
    ConvertedFile {
        name: "hip_event_trace.csv",
        rows: |session| session.hip_events.len(),
        write: write_events,
    },
];

struct Launches<'a> {
    table: &'a GraphLaunchTable,
    agents: AgentNames,
    index: usize,
}

columns!(Launches<'_> => Row<'r>, |launch|
    "Kind": text("Graph Launch"),
    "Agent_Id": quoted(launch.agents.get(launch.table.agent[launch.index])),
    "Queue_Id": number(0),
    "Thread_Id": number(launch.table.thread[launch.index].0),
    "Correlation_Id": number(launch.table.correlation[launch.index].0),
    "Start_Timestamp": number(launch.table.start[launch.index].0),
    "End_Timestamp": number(launch.table.end[launch.index].0),
    "Duration": number(launch.table.end[launch.index].0.saturating_sub(launch.table.start[launch.index].0)),
    "Graph_Exec_Id": number(launch.table.exec[launch.index]),
    "Kernel_Dispatch_Count": number(launch.table.dispatches[launch.index]),
);

fn write_launches(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    shape: &Shape,
) -> Result<(), WriteError> {
    let table = &session.graph_launches;
    let mut launches = Launches {
        table,
        agents: AgentNames::new(session, options),
        index: 0,
    };
    let rows = table.indices();
    super::write_rows(file, shape, &mut launches, rows, |launches, index| {
        launches.index = index;
    })
}

struct Events<'a> {
    table: &'a HipEventTable,
    agents: AgentNames,
    options: &'a Options,
    index: usize,
}

columns!(Events<'_> => Row<'r>, |event|
    "Kind": text("HIP_EVENT"),
    "Operation": text(event_operation_name(event.table.operation[event.index])),
    "Agent_Id": quoted(event.agents.get(event.table.agent[event.index])),
    "Queue_Id": number(event.table.queue[event.index].0),
    "Stream_Id": number(stream(event.table.stream[event.index], event.options)),
    "Thread_Id": number(event.table.thread[event.index].0),
    "Event_Handle": number(event.table.event[event.index]),
    "Source_Queue_Id": number(event.table.source_queue[event.index].0),
    "Correlation_Id": number(event.table.correlation[event.index].0),
    "Start_Timestamp": number(event.table.start[event.index].0),
    "End_Timestamp": number(event.table.end[event.index].0),
    "Duration": number(event.table.end[event.index].0.saturating_sub(event.table.start[event.index].0)),
);

fn write_events(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    shape: &Shape,
) -> Result<(), WriteError> {
    let table = &session.hip_events;
    let mut events = Events {
        table,
        agents: AgentNames::new(session, options),
        options,
        index: 0,
    };
    let rows = table.indices();
    super::write_rows(file, shape, &mut events, rows, |events, index| {
        events.index = index;
    })
}
