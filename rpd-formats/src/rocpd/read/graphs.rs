//! Launches of graphs, graphs of dispatches and copies, and HIP events, which databases of later schemas have.

use std::collections::HashMap;

use rpd_core::ids::{AgentHandle, CorrelationId, Nanoseconds, QueueId, StreamId, ThreadId};
use rpd_core::session::{
    GraphLaunchRow, GraphLaunchTable, Growth, HipEventRow, HipEventTable, event_operation_of,
};
use rpd_core::spool::format::{GraphNode, event_operation};
use rusqlite::types::ValueRef;
use rusqlite::{Result, Row};

use super::super::tables::{REPLAY_PASS, has_graph_columns, has_replay_column};
use super::counters;
use super::events::Events;
use super::info::Info;
use super::records::agent_id;
use super::scan::{Source, bits, text, word};

/// The columns of a table of dispatches or copies that [`node`] reads: constants where the table has none.
pub(super) fn columns(source: &Source<'_>, table: &str) -> Result<&'static str> {
    let found = counters::columns(source, table)?;
    Ok(if has_graph_columns(&found) {
        "graph_exec_id, graph_node_id"
    } else {
        "0, 0"
    })
}

/// Graph and node of a row, in two columns from `first` on.
pub(super) fn node(row: &Row<'_>, first: usize) -> GraphNode {
    match word(row, first) {
        0 => GraphNode::default(),
        exec => GraphNode {
            exec,
            node: word(row, first + 1),
        },
    }
}

/// The column that [`replay_pass`] reads: a constant where dispatches have none.
pub(super) fn replay_column(source: &Source<'_>) -> Result<&'static str> {
    let found = counters::columns(source, "rocpd_kernel_dispatch")?;
    Ok(if has_replay_column(&found) {
        REPLAY_PASS
    } else {
        "NULL"
    })
}

/// The run of a dispatch that was replayed, from 0; `None` for others.
pub(super) fn replay_pass(row: &Row<'_>, column: usize) -> Option<u32> {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(pass)) => u32::try_from(pass).ok(),
        _ => None,
    }
}

/// The columns of a table of a later schema, with NULL for those that it lacks; `None` without such a table.
fn select(source: &Source<'_>, table: &str, wanted: &[&str]) -> Result<Option<String>> {
    if !source.has(table)? {
        return Ok(None);
    }
    let found = counters::columns(source, table)?;
    let columns = wanted.iter().map(|wanted| {
        let is_there = found.iter().any(|column| column == wanted);
        if is_there {
            format!("\"{wanted}\"")
        } else {
            "NULL".to_owned()
        }
    });
    Ok(Some(columns.collect::<Vec<_>>().join(", ")))
}

/// Reads the launches of graphs.
pub(super) fn launches(
    source: &Source<'_>,
    info: &mut Info,
    growth: &mut Growth,
    events: &Events,
) -> Result<()> {
    let wanted = [
        "event_id",
        "start",
        "end",
        "tid",
        "agent_id",
        "graph_exec_id",
        "kernel_dispatch_count",
    ];
    let Some(columns) = select(source, "rocpd_graph_launch", &wanted)? else {
        return Ok(());
    };
    // The event stands in `correlation`, the agent's id in `agent`.
    let read = |table: &mut GraphLaunchTable, row: &Row<'_>| {
        table.push(GraphLaunchRow {
            correlation: CorrelationId(bits(row, 0)),
            start: Nanoseconds(bits(row, 1)),
            end: Nanoseconds(bits(row, 2)),
            thread: ThreadId(word(row, 3)),
            agent: agent_id(row, 4),
            exec: word(row, 5),
            dispatches: bits(row, 6),
        });
    };
    let mut append = |piece: GraphLaunchTable| {
        for index in 0..piece.len() {
            let row = piece.row(index);
            let agent = agent(info, row.agent);
            info.session.graph_launches.push(GraphLaunchRow {
                correlation: events.get(row.correlation.0.cast_signed()).1,
                agent,
                ..row
            });
            growth.taken(&mut info.session)?;
        }
        Ok(())
    };
    source.pieces(&columns, "rocpd_graph_launch", read, |piece| {
        source.stored(append(piece))
    })
}

/// The agent with an id of the database; 0 for NULL.
fn agent(info: &mut Info, id: AgentHandle) -> AgentHandle {
    match id {
        AgentHandle(u64::MAX) => AgentHandle(0),
        AgentHandle(id) => info.agent(id.cast_signed()),
    }
}

/// Reads the work for HIP events.
pub(super) fn hip_events(
    source: &Source<'_>,
    info: &mut Info,
    growth: &mut Growth,
    events: &Events,
) -> Result<()> {
    let wanted = [
        "event_id",
        "start",
        "end",
        "tid",
        "agent_id",
        "queue_id",
        "stream_id",
        "hip_event_handle",
        "source_queue_id",
        "name_id",
    ];
    let Some(columns) = select(source, "rocpd_hip_event", &wanted)? else {
        return Ok(());
    };
    let mut operations: HashMap<u32, u16> = HashMap::new();
    source.each("id, string", "rocpd_string", |row| {
        // Names of other writers contain the operation.
        let name = text(row, 1);
        let operation = match event_operation_of(&name) {
            0 if name.contains("HIP_EVENT_RECORD") => event_operation::RECORD,
            known => known,
        };
        if operation != 0 {
            operations.insert(word(row, 0), operation);
        }
        Ok(())
    })?;
    let read = |table: &mut HipEventTable, row: &Row<'_>| {
        let operation = operations.get(&word(row, 9)).copied();
        table.push(HipEventRow {
            correlation: CorrelationId(bits(row, 0)),
            start: Nanoseconds(bits(row, 1)),
            end: Nanoseconds(bits(row, 2)),
            thread: ThreadId(word(row, 3)),
            agent: agent_id(row, 4),
            queue: QueueId(bits(row, 5)),
            stream: StreamId(word(row, 6)),
            event: bits(row, 7),
            source_queue: QueueId(bits(row, 8)),
            operation: operation.unwrap_or(event_operation::WAIT),
        });
    };
    let mut append = |piece: HipEventTable| {
        for index in 0..piece.len() {
            let row = piece.row(index);
            let agent = agent(info, row.agent);
            info.session.hip_events.push(HipEventRow {
                correlation: events.get(row.correlation.0.cast_signed()).1,
                agent,
                ..row
            });
            growth.taken(&mut info.session)?;
        }
        Ok(())
    };
    source.pieces(&columns, "rocpd_hip_event", read, |piece| {
        source.stored(append(piece))
    })
}
