//! Columns by which the records of a table refer to threads, agents, queues, streams and regions.

#![deny(clippy::wildcard_enum_match_arm)]

use super::{DispatchTable, Session, Table};
use crate::column::Column;
use crate::ids::{AgentHandle, QueueId, StreamId, ThreadId};

/// The references of a table; `None` and empty for what its records do not refer to.
#[derive(Debug, Clone)]
pub struct References<'a> {
    /// Column of threads, if the table has one.
    pub threads: Option<&'a Column<ThreadId>>,
    /// Columns of agents.
    pub agents: Vec<&'a Column<AgentHandle>>,
    /// Whether agent 0 stands for none.
    pub zero_is_no_agent: bool,
    /// Column of queues, if the table has one.
    pub queues: Option<&'a Column<QueueId>>,
    /// Column of streams, if the table has one.
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
    /// The references of the records of a table.
    pub fn references(&self, table: Table) -> References<'_> {
        match table {
            Table::Calls => References {
                threads: Some(&self.api.thread),
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
            // They refer to code and to dispatches, which have the rest.
            Table::Samples => References {
                threads: None,
                agents: Vec::new(),
                zero_is_no_agent: false,
                queues: None,
                streams: None,
            },
        }
    }

    /// The region column of a table; `None` if its records have no region.
    pub(super) fn regions_mut(&mut self, table: Table) -> Option<&mut Column<u32>> {
        match table {
            Table::Dispatches => Some(&mut self.dispatches.region),
            Table::Copies => Some(&mut self.copies.region),
            Table::Counted => Some(&mut self.counted.dispatches.region),
            Table::Samples => Some(&mut self.samples.region),
            Table::Calls | Table::Allocations | Table::Scratch => None,
        }
    }
}
