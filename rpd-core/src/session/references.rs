//! Columns by which the records of a table refer to threads, agents, queues, streams and regions.

#![deny(clippy::wildcard_enum_match_arm)]

use super::{DispatchTable, Session, Table};
use crate::ids::{AgentHandle, QueueId, StreamId, ThreadId};
use crate::storage::column::Column;

/// The columns of a table that refer to threads, agents, queues and streams. Those that the table does not have are
/// `None` or empty.
#[derive(Debug, Clone)]
pub struct References<'a> {
    /// Thread of each record.
    pub threads: Option<&'a Column<ThreadId>>,
    /// Agents of each record; a copy has two.
    pub agents: Vec<&'a Column<AgentHandle>>,
    /// Whether an agent handle of 0 means that the record has no agent.
    pub zero_is_no_agent: bool,
    /// Queue of each record.
    pub queues: Option<&'a Column<QueueId>>,
    /// HIP stream of each record.
    pub streams: Option<&'a Column<StreamId>>,
}

fn of_dispatches(dispatches: &DispatchTable) -> References<'_> {
    References {
        threads: Some(&dispatches.thread),
        agents: vec![&dispatches.agent],
        zero_is_no_agent: false,
        queues: Some(&dispatches.queue),
        streams: Some(&dispatches.stream),
    }
}

impl Session {
    /// The columns by which the records of a table refer to other things.
    pub fn references(&self, table: Table) -> References<'_> {
        match table {
            Table::Calls => References {
                threads: Some(&self.calls.thread),
                agents: Vec::new(),
                zero_is_no_agent: false,
                queues: None,
                streams: None,
            },
            Table::Dispatches => of_dispatches(&self.dispatches),
            Table::Counted => of_dispatches(&self.counted.dispatches),
            Table::Copies => References {
                threads: Some(&self.copies.thread),
                agents: vec![&self.copies.dst_agent, &self.copies.src_agent],
                zero_is_no_agent: false,
                queues: None,
                streams: Some(&self.copies.stream),
            },
            Table::Allocations => References {
                threads: Some(&self.allocations.thread),
                agents: vec![&self.allocations.agent],
                zero_is_no_agent: true,
                queues: None,
                streams: Some(&self.allocations.stream),
            },
            Table::Scratch => References {
                threads: Some(&self.scratch.thread),
                agents: vec![&self.scratch.agent],
                zero_is_no_agent: true,
                queues: Some(&self.scratch.queue),
                streams: None,
            },
            Table::GraphLaunches => References {
                threads: Some(&self.graph_launches.thread),
                agents: vec![&self.graph_launches.agent],
                zero_is_no_agent: true,
                queues: None,
                streams: None,
            },
            Table::HipEvents => References {
                threads: Some(&self.hip_events.thread),
                agents: vec![&self.hip_events.agent],
                zero_is_no_agent: true,
                queues: Some(&self.hip_events.queue),
                streams: Some(&self.hip_events.stream),
            },
            Table::KfdEvents => {
                let events = &self.kfd_events;
                References {
                    threads: Some(&events.process),
                    agents: vec![
                        &events.agent,
                        &events.dst_agent,
                        &events.prefetch_agent,
                        &events.preferred_agent,
                    ],
                    zero_is_no_agent: true,
                    queues: None,
                    streams: None,
                }
            }
            // Samples refer to code objects and dispatches only.
            Table::Samples => References {
                threads: None,
                agents: Vec::new(),
                zero_is_no_agent: false,
                queues: None,
                streams: None,
            },
        }
    }

    /// The column of regions of a table, to be changed; `None` if its records have none.
    pub(super) fn regions_mut(&mut self, table: Table) -> Option<&mut Column<u32>> {
        match table {
            Table::Dispatches => Some(&mut self.dispatches.region),
            Table::Copies => Some(&mut self.copies.region),
            Table::Counted => Some(&mut self.counted.dispatches.region),
            Table::Samples => Some(&mut self.samples.region),
            Table::Calls
            | Table::Allocations
            | Table::Scratch
            | Table::GraphLaunches
            | Table::HipEvents
            | Table::KfdEvents => None,
        }
    }
}
