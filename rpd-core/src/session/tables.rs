//! The columns. Index `i` of every vector of a table belongs to record `i`.

#![deny(clippy::wildcard_enum_match_arm)]

use std::io;

use zerocopy::{Immutable, IntoBytes};

use super::Session;
use super::columns::{Batches, Columns, Indices, span_of};
use crate::column::{BATCH, Column, Storage};
use crate::domain::Domain;
use crate::ids::{
    AgentHandle, CodeObjectId, CorrelationId, DispatchId, KernelId, Nanoseconds, OperationId,
    QueueId, StreamId, StringId, ThreadId,
};
use crate::spool::format::{CountedValue, StackRef};
use crate::spool::record::Table;

/// Location of a call's raw arguments in [`ApiTable::arena`]; length 0 means none were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Immutable, IntoBytes)]
#[repr(C)]
pub struct ArgsRef {
    /// First byte.
    pub offset: u64,
    /// Size in bytes.
    pub len: u32,
    /// Flags of the spool record ([`crate::spool::format::api_flag`]).
    pub flags: u32,
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
            Table::Samples => &self.samples,
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
            Table::Samples => &mut self.samples,
        }
    }

    /// Number of records in a table.
    pub fn records(&self, table: Table) -> usize {
        self.columns(table).starts().len()
    }

    /// Bytes of all records, as `--minimum-output-data` counts them: their fixed parts in the spool, and the values of
    /// counters, and thread traces. A dispatch without values does not count as counted.
    pub fn record_bytes(&self) -> u64 {
        let tables = Table::ALL.iter().map(|table| self.table_bytes(*table));
        let traces = self.thread_traces.summaries.iter().map(|trace| trace.bytes);
        tables.chain(traces).sum()
    }

    /// As [`Session::record_bytes`], for the records of one domain.
    pub fn domain_bytes(&self, domain: Domain) -> u64 {
        let table = domain.table();
        match table {
            Table::Calls => {
                let calls = self.count_calls(|operation| operation.domain() == domain);
                (calls * table.record_len()) as u64
            }
            // The only domain of its table.
            Table::Dispatches
            | Table::Copies
            | Table::Allocations
            | Table::Scratch
            | Table::Counted
            | Table::Samples => self.table_bytes(table),
        }
    }

    /// As [`Session::record_bytes`], for the records of one table.
    pub fn table_bytes(&self, table: Table) -> u64 {
        let (records, values) = match table {
            Table::Counted => {
                let counts = self.counted.ranges.iter().map(|range| range.count as usize);
                let counts = counts.filter(|count| *count > 0);
                counts.fold((0, 0), |(records, values), count| {
                    (records + 1, values + count)
                })
            }
            Table::Calls
            | Table::Dispatches
            | Table::Copies
            | Table::Allocations
            | Table::Scratch
            | Table::Samples => (self.records(table), 0),
        };
        (records * table.record_len() + values * size_of::<CountedValue>()) as u64
    }
}

macro_rules! table {
    ($(#[$doc:meta])* $name:ident of $row:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } $({ $($(#[$extra_doc:meta])* $extra:ident: $extra_type:ty,)* })?
        $(where present { $($(#[$optional_doc:meta])* $optional:ident: $optional_type:ty,)* })?) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: Column<$type>,)*
            $($($(#[$extra_doc])* pub $extra: Column<$extra_type>,)*)?
            $($($(#[$optional_doc])* pub $optional: Column<$optional_type>,)*)?
        }

        #[doc = concat!("A record of [`", stringify!($name), "`], without the columns that are not always there.")]
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct $row {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $name {
            /// Adds a record.
            #[inline]
            pub fn push(&mut self, row: $row) {
                $(self.$field.push(row.$field);)*
            }

            /// Record `index`.
            ///
            /// # Panics
            /// When there is none.
            #[inline]
            pub fn row(&self, index: usize) -> $row {
                $row { $($field: self.$field[index],)* }
            }

            /// Number of records.
            pub fn len(&self) -> usize {
                self.start.len()
            }

            /// Whether there is none.
            pub fn is_empty(&self) -> bool {
                self.start.is_empty()
            }

            /// Its places, to go through the table.
            pub fn indices(&self) -> Indices<'_> {
                Indices::new(self)
            }

            /// Its places in batches, to go through the table.
            pub fn batches(&self) -> Batches<'_> {
                Batches::new(self)
            }

            /// Start of the first and end of the last record; `None` without any.
            pub fn span(&self) -> Option<(Nanoseconds, Nanoseconds)> {
                span_of(self)
            }

            /// Orders the rows as [`Columns::reorder`] does.
            pub fn reorder(&mut self, order: &[u32]) {
                $(self.$field.reorder(order);)*
                $($(if !self.$optional.is_empty() {
                    self.$optional.reorder(order);
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

            fn total(&self) -> usize {
                self.start.total()
            }

            fn spill(&mut self, storage: &Storage) -> io::Result<()> {
                $(self.$field.spill(storage)?;)*
                $($(self.$extra.spill(storage)?;)*)?
                $($(self.$optional.spill(storage)?;)*)?
                Ok(())
            }

            fn seal(&mut self, storage: &Storage) -> io::Result<()> {
                $(self.$field.seal(storage)?;)*
                $($(self.$extra.seal(storage)?;)*)?
                $($(self.$optional.seal(storage)?;)*)?
                Ok(())
            }

            fn release(&self) {
                $(self.$field.release();)*
                $($(self.$extra.release();)*)?
                $($(self.$optional.release();)*)?
            }

            fn rebuild(&mut self, storage: &Storage, order: &Column<u32>) -> io::Result<()> {
                let mut new = $name::default();
                for places in order.chunks(BATCH) {
                    $(self.$field.pick(storage, places, &mut new.$field)?;)*
                    $($(if !self.$optional.is_empty() {
                        self.$optional.pick(storage, places, &mut new.$optional)?;
                    })*)?
                    order.release();
                }
                $(new.$field.seal(storage)?;)*
                $($(new.$extra = std::mem::take(&mut self.$extra);)*)?
                $($(new.$optional.seal(storage)?;)*)?
                *self = new;
                Ok(())
            }
        }
    };
}

table! {
    /// Calls and markers.
    ApiTable of CallRow {
        /// Kind and function.
        operation: OperationId,
        /// Message of a marker; 0 for calls.
        message: StringId,
        /// Time at which it began.
        start: Nanoseconds,
        /// Time at which the call returned.
        end: Nanoseconds,
        /// Thread that made the call.
        thread: ThreadId,
        /// Internal correlation id.
        correlation: CorrelationId,
        /// Correlation id of the enclosing call; 0 is none.
        ancestor: CorrelationId,
        /// Raw arguments.
        args: ArgsRef,
    } {
        /// Bytes of all recorded arguments; empty unless [`super::LoadOptions::args`] requested them.
        arena: u8,
    } where present {
        /// First 8 bytes of the return value. Empty (not one per record) unless [`super::LoadOptions::args`] requested
        /// them.
        retval: u64,
        /// Its stack. Empty (not one per record) unless stacks were taken.
        stack: StackRef,
    }
}

table! {
    /// Kernel dispatches.
    DispatchTable of DispatchRow {
        /// Begin on the device.
        start: Nanoseconds,
        /// End on the device.
        end: Nanoseconds,
        /// Submitting thread.
        thread: ThreadId,
        /// Correlation id of the submitting call.
        correlation: CorrelationId,
        /// Agent that the kernel ran on.
        agent: AgentHandle,
        /// Queue that it was submitted to.
        queue: QueueId,
        /// HIP stream that it belongs to.
        stream: StreamId,
        /// Index plus 1 into [`super::Session::regions`]; 0 is none.
        region: u32,
        /// Kernel that ran.
        kernel: KernelId,
        /// Id of the dispatch.
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
    CopyTable of CopyRow {
        /// `MEMORY_COPY_HOST_TO_DEVICE` and so on.
        operation: OperationId,
        /// Time at which it began.
        start: Nanoseconds,
        /// Time at which the copy ended.
        end: Nanoseconds,
        /// Submitting thread.
        thread: ThreadId,
        /// Correlation id of the submitting call.
        correlation: CorrelationId,
        /// Agent written to.
        dst_agent: AgentHandle,
        /// Agent read from.
        src_agent: AgentHandle,
        /// Number of bytes that were copied.
        bytes: u64,
        /// Address written to.
        dst_address: u64,
        /// Address read from.
        src_address: u64,
        /// HIP stream that it belongs to.
        stream: StreamId,
        /// Index plus 1 into [`super::Session::regions`]; 0 is none.
        region: u32,
    }
}

table! {
    /// Allocations and frees.
    AllocationTable of AllocationRow {
        /// `MEMORY_ALLOCATION_ALLOCATE` and so on.
        operation: OperationId,
        /// Time at which it began.
        start: Nanoseconds,
        /// Time at which the operation ended.
        end: Nanoseconds,
        /// Thread that made the call.
        thread: ThreadId,
        /// Correlation id of the call.
        correlation: CorrelationId,
        /// Correlation id of the enclosing call.
        ancestor: CorrelationId,
        /// Agent; 0 for frees.
        agent: AgentHandle,
        /// Address of the memory.
        address: u64,
        /// Bytes; 0 for frees.
        bytes: u64,
        /// HIP stream that it belongs to.
        stream: StreamId,
    } where present {
        /// Its stack. Empty (not one per record) unless stacks were taken.
        stack: StackRef,
    }
}

table! {
    /// Scratch operations.
    ScratchTable of ScratchRow {
        /// `SCRATCH_MEMORY_ALLOC` and so on.
        operation: OperationId,
        /// Time at which it began.
        start: Nanoseconds,
        /// Time at which the operation ended.
        end: Nanoseconds,
        /// Thread that reported it.
        thread: ThreadId,
        /// Correlation id.
        correlation: CorrelationId,
        /// Correlation id of the enclosing call.
        ancestor: CorrelationId,
        /// Agent whose scratch memory changed.
        agent: AgentHandle,
        /// Queue whose scratch memory changed.
        queue: QueueId,
        /// Bytes; 0 for frees.
        bytes: u64,
        /// Provider flags: 1 use-once, 2 alternate.
        flags: u32,
    }
}

table! {
    /// PC samples.
    SampleTable of SampleRow {
        /// Time at which the sample was taken.
        start: Nanoseconds,
        /// The same: a sample has no duration.
        end: Nanoseconds,
        /// Code object; 0 when the provider found none for the address.
        object: CodeObjectId,
        /// Offset from the load address of the code object; an address when there is none.
        offset: u64,
        /// Lanes that were enabled.
        exec: u64,
        /// Dispatch; 0 when the provider does not report it.
        dispatch: DispatchId,
        /// Correlation id of the submitting call.
        correlation: CorrelationId,
        /// Index plus 1 into [`super::Session::regions`]; 0 is none.
        region: u32,
        /// Location of the wave: [`super::samples::HARDWARE`].
        hardware: u64,
        /// Position of the workgroup in the grid.
        workgroup: [u32; 3],
        /// Number of the wave in its workgroup.
        wave: u8,
        /// [`crate::spool::format::sample_flag`]s.
        flags: u8,
        /// Class of the instruction: [`super::samples::class`].
        class: u8,
        /// Waves that were active on the compute unit.
        waves: u32,
        /// State of the issue logic: [`super::samples::STALL_REASON`] and the fields beside it.
        snapshot: u32,
        /// Outstanding memory operations, as the provider packs them.
        memory: u32,
    }
}

/// One counted value.
#[derive(Debug, Clone, Copy, PartialEq, IntoBytes, Immutable)]
#[repr(C)]
pub struct CounterValue {
    /// Index into [`super::Session::counters`].
    pub counter: u32,
    /// Index into [`super::Counter::instances`].
    pub instance: u32,
    /// The counted or computed value.
    pub value: f64,
}

/// The values of one dispatch in [`CountedTable::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoBytes, Immutable)]
#[repr(C)]
pub struct ValueRange {
    /// Index of the first.
    pub first: u64,
    /// Number of values.
    pub count: u64,
}

/// Counter values, by dispatch.
#[derive(Debug, Default)]
pub struct CountedTable {
    /// The dispatches that were counted.
    pub dispatches: DispatchTable,
    /// The values of each dispatch.
    pub ranges: Column<ValueRange>,
    /// The values. Those of a dispatch lie together, ordered by counter id, then instance.
    pub values: Column<CounterValue>,
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

    /// The places of its dispatches, to go through the table.
    pub fn indices(&self) -> Indices<'_> {
        Indices::new(self)
    }

    /// The values of dispatch `index`.
    pub fn values_of(&self, index: usize) -> &[CounterValue] {
        let range = self.ranges.get(index).copied().unwrap_or_default();
        let first = range.first as usize;
        self.values
            .get(first..first + range.count as usize)
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

    /// Orders the rows as [`Columns::reorder`] does.
    pub fn reorder(&mut self, order: &[u32]) {
        self.dispatches.reorder(order);
        self.ranges.reorder(order);
    }
}

/// Rows are dispatches with the places of their values. The values are written and read as a column of their own.
impl Columns for CountedTable {
    fn starts(&self) -> &[Nanoseconds] {
        &self.dispatches.start
    }

    fn ends(&self) -> &[Nanoseconds] {
        &self.dispatches.end
    }

    fn total(&self) -> usize {
        self.dispatches.total()
    }

    fn batch(&self) -> usize {
        let values_per_row = self.values.len() / self.ranges.len().max(1);
        (BATCH / values_per_row.max(1).next_power_of_two()).max(1)
    }

    fn reorder(&mut self, order: &[u32]) {
        self.reorder(order);
    }

    fn spill(&mut self, storage: &Storage) -> io::Result<()> {
        self.dispatches.spill(storage)?;
        self.ranges.spill(storage)
    }

    fn seal(&mut self, storage: &Storage) -> io::Result<()> {
        self.dispatches.seal(storage)?;
        self.ranges.seal(storage)
    }

    fn release(&self) {
        self.dispatches.release();
        self.ranges.release();
        self.values.release();
    }

    fn rebuild(&mut self, storage: &Storage, order: &Column<u32>) -> io::Result<()> {
        self.dispatches.rebuild(storage, order)?;
        let mut ranges = Column::new();
        for places in order.chunks(BATCH) {
            self.ranges.pick(storage, places, &mut ranges)?;
            order.release();
        }
        ranges.seal(storage)?;
        self.ranges = ranges;
        Ok(())
    }
}
