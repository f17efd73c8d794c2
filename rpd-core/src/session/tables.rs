//! The columns. Index `i` of every vector of a table belongs to record `i`.

#![deny(clippy::wildcard_enum_match_arm)]

use super::Session;
use crate::domain::{Domain, Kind};
use crate::ids::{
    AgentHandle, CorrelationId, DispatchId, KernelId, Nanoseconds, QueueId, StreamId, StringId,
    ThreadId,
};
use crate::spool::format::CountedValue;
use crate::spool::record::Table;

/// Where the raw arguments of a call lie in [`ApiTable::arena`]; length 0 means none were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArgsRef {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Flags of the spool record ([`crate::spool::format::api_flag`]).
    pub flags: u32,
}

/// What all tables have.
pub trait Columns {
    /// Begins.
    fn starts(&self) -> &[Nanoseconds];

    /// Ends.
    fn ends(&self) -> &[Nanoseconds];

    /// Puts every column in the order given, or cuts records out: `order[i]` is the old index of the new record `i`.
    fn reorder(&mut self, order: &[u32]);
}

impl Session {
    /// The columns of a table.
    pub fn columns(&self, table: Table) -> &dyn Columns {
        match table {
            Table::Calls => &self.api,
            Table::Dispatches => &self.dispatches,
            Table::Copies => &self.copies,
            Table::Allocations => &self.allocations,
            Table::Scratch => &self.scratch,
            Table::Counted => &self.counted,
        }
    }

    /// The columns of a table, to be changed.
    pub fn columns_mut(&mut self, table: Table) -> &mut dyn Columns {
        match table {
            Table::Calls => &mut self.api,
            Table::Dispatches => &mut self.dispatches,
            Table::Copies => &mut self.copies,
            Table::Allocations => &mut self.allocations,
            Table::Scratch => &mut self.scratch,
            Table::Counted => &mut self.counted,
        }
    }

    /// Number of records in a table.
    pub fn records(&self, table: Table) -> usize {
        self.columns(table).starts().len()
    }

    /// Bytes of all records, as `--minimum-output-data` counts them: their fixed parts in the spool, and the values of
    /// counters. A dispatch without values does not count as counted.
    pub fn record_bytes(&self) -> u64 {
        Table::ALL
            .iter()
            .map(|table| self.table_bytes(*table))
            .sum()
    }

    /// As [`Session::record_bytes`], for the records of one domain.
    pub fn domain_bytes(&self, domain: Domain) -> u64 {
        let table = domain.table();
        match table {
            Table::Calls => {
                // By number of kind: this runs over every call.
                let mut is_wanted = [false; 1 << u8::BITS];
                for kind in Kind::all() {
                    is_wanted[kind as usize] = kind.domain() == domain;
                }
                let kinds = self.api.kind.iter();
                let calls = kinds.filter(|kind| is_wanted[**kind as usize]).count();
                (calls * table.record_len()) as u64
            }
            // The only domain of its table.
            Table::Dispatches
            | Table::Copies
            | Table::Allocations
            | Table::Scratch
            | Table::Counted => self.table_bytes(table),
        }
    }

    fn table_bytes(&self, table: Table) -> u64 {
        let (records, values) = match table {
            Table::Counted => {
                let counts = self.counted.ranges.iter().map(|(_, count)| *count as usize);
                let counts = counts.filter(|count| *count > 0);
                counts.fold((0, 0), |(records, values), count| {
                    (records + 1, values + count)
                })
            }
            Table::Calls
            | Table::Dispatches
            | Table::Copies
            | Table::Allocations
            | Table::Scratch => (self.records(table), 0),
        };
        (records * table.record_len() + values * size_of::<CountedValue>()) as u64
    }
}

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } $({ $($(#[$extra_doc:meta])* $extra:ident: $extra_type:ty,)* })?
        $(where present { $($(#[$optional_doc:meta])* $optional:ident: $optional_type:ty,)* })?) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: Vec<$type>,)*
            $($($(#[$extra_doc])* pub $extra: $extra_type,)*)?
            $($($(#[$optional_doc])* pub $optional: Vec<$optional_type>,)*)?
        }

        impl $name {
            /// Number of records.
            pub fn len(&self) -> usize {
                self.start.len()
            }

            /// Whether there is none.
            pub fn is_empty(&self) -> bool {
                self.start.is_empty()
            }

            /// As [`Columns::reorder`].
            pub fn reorder(&mut self, order: &[u32]) {
                $(self.$field = order.iter().map(|&old| self.$field[old as usize]).collect();)*
                $($(if !self.$optional.is_empty() {
                    self.$optional = order.iter().map(|&old| self.$optional[old as usize]).collect();
                })*)?
            }
        }

        impl Columns for $name {
            fn starts(&self) -> &[Nanoseconds] {
                &self.start
            }

            fn ends(&self) -> &[Nanoseconds] {
                &self.end
            }

            fn reorder(&mut self, order: &[u32]) {
                self.reorder(order);
            }
        }
    };
}

table! {
    /// Calls and markers.
    ApiTable {
        /// Kind.
        kind: Kind,
        /// Function name; for markers the operation (`roctxThreadRangeA`).
        operation: StringId,
        /// Message of a marker; 0 for calls.
        message: StringId,
        /// Begin.
        start: Nanoseconds,
        /// End.
        end: Nanoseconds,
        /// Thread.
        thread: ThreadId,
        /// Internal correlation id.
        correlation: CorrelationId,
        /// Correlation id of the enclosing call; 0 is none.
        ancestor: CorrelationId,
        /// Raw arguments.
        args: ArgsRef,
    } {
        /// Bytes of all recorded arguments; empty unless [`super::LoadOptions::args`] asked for them.
        arena: Vec<u8>,
    } where present {
        /// First 8 bytes of the return value. Empty (not one per record) unless [`super::LoadOptions::args`] asked for
        /// them.
        retval: u64,
    }
}

table! {
    /// Kernel dispatches.
    DispatchTable {
        /// Begin on the device.
        start: Nanoseconds,
        /// End on the device.
        end: Nanoseconds,
        /// Submitting thread.
        thread: ThreadId,
        /// Correlation id of the submitting call.
        correlation: CorrelationId,
        /// Agent.
        agent: AgentHandle,
        /// Queue.
        queue: QueueId,
        /// Stream.
        stream: StreamId,
        /// Index plus 1 into [`super::Session::regions`]; 0 is none.
        region: u32,
        /// Kernel.
        kernel: KernelId,
        /// Dispatch.
        dispatch: DispatchId,
        /// Scratch bytes of the packet.
        private_size: u32,
        /// LDS bytes of the packet.
        group_size: u32,
        /// Work items per workgroup.
        workgroup: [u32; 3],
        /// Work items of the grid.
        grid: [u32; 3],
    }
}

table! {
    /// Copies.
    CopyTable {
        /// Operation name, `MEMORY_COPY_HOST_TO_DEVICE` and so on.
        operation: StringId,
        /// Begin.
        start: Nanoseconds,
        /// End.
        end: Nanoseconds,
        /// Submitting thread.
        thread: ThreadId,
        /// Correlation id of the submitting call.
        correlation: CorrelationId,
        /// Agent written to.
        dst_agent: AgentHandle,
        /// Agent read from.
        src_agent: AgentHandle,
        /// Bytes.
        bytes: u64,
        /// Address written to.
        dst_address: u64,
        /// Address read from.
        src_address: u64,
        /// Stream.
        stream: StreamId,
        /// Index plus 1 into [`super::Session::regions`]; 0 is none.
        region: u32,
    }
}

table! {
    /// Allocations and frees.
    AllocationTable {
        /// Operation name, `MEMORY_ALLOCATION_ALLOCATE` and so on.
        operation: StringId,
        /// Begin.
        start: Nanoseconds,
        /// End.
        end: Nanoseconds,
        /// Thread.
        thread: ThreadId,
        /// Correlation id of the call.
        correlation: CorrelationId,
        /// Correlation id of the enclosing call.
        ancestor: CorrelationId,
        /// Agent; 0 for frees.
        agent: AgentHandle,
        /// Address.
        address: u64,
        /// Bytes; 0 for frees.
        bytes: u64,
        /// Stream.
        stream: StreamId,
    }
}

table! {
    /// Scratch operations.
    ScratchTable {
        /// Operation name, `SCRATCH_MEMORY_ALLOC` and so on.
        operation: StringId,
        /// Begin.
        start: Nanoseconds,
        /// End.
        end: Nanoseconds,
        /// Thread.
        thread: ThreadId,
        /// Correlation id.
        correlation: CorrelationId,
        /// Correlation id of the enclosing call.
        ancestor: CorrelationId,
        /// Agent.
        agent: AgentHandle,
        /// Queue.
        queue: QueueId,
        /// Bytes; 0 for frees.
        bytes: u64,
        /// Provider flags: 1 use-once, 2 alternate.
        flags: u32,
    }
}

/// One counted value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterValue {
    /// Index into [`super::Session::counters`].
    pub counter: u32,
    /// Index into [`super::Counter::instances`].
    pub instance: u32,
    /// The value.
    pub value: f64,
}

/// What was counted, by dispatch.
#[derive(Debug, Default)]
pub struct CountedTable {
    /// The dispatches that were counted.
    pub dispatches: DispatchTable,
    /// First value of each dispatch in [`CountedTable::values`], and how many there are.
    pub ranges: Vec<(u64, u32)>,
    /// The values. Those of a dispatch lie together, ordered by counter id, then instance.
    pub values: Vec<CounterValue>,
}

impl CountedTable {
    /// Number of dispatches.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The values of dispatch `index`.
    pub fn values_of(&self, index: usize) -> &[CounterValue] {
        let (first, count) = self.ranges.get(index).copied().unwrap_or_default();
        let first = first as usize;
        self.values
            .get(first..first + count as usize)
            .unwrap_or_default()
    }

    /// Sums over the instances of each counter in dispatch `index`, as (index into [`super::Session::counters`], sum), in
    /// the order of counter ids.
    pub fn sums(&self, index: usize) -> impl Iterator<Item = (u32, f64)> {
        self.values_of(index)
            .chunk_by(|a, b| a.counter == b.counter)
            .map(|chunk| {
                // Not `sum()`, which begins with -0.
                let add = |sum, value: &CounterValue| sum + value.value;
                (chunk[0].counter, chunk.iter().fold(0.0, add))
            })
    }

    /// As [`Columns::reorder`].
    pub fn reorder(&mut self, order: &[u32]) {
        self.dispatches.reorder(order);
        self.ranges = order.iter().map(|&old| self.ranges[old as usize]).collect();
    }
}

impl Columns for CountedTable {
    fn starts(&self) -> &[Nanoseconds] {
        &self.dispatches.start
    }

    fn ends(&self) -> &[Nanoseconds] {
        &self.dispatches.end
    }

    fn reorder(&mut self, order: &[u32]) {
        self.reorder(order);
    }
}
