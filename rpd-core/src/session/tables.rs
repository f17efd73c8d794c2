//! The tables, stored by column: index `i` of every column of a table belongs to record `i`.

#![deny(clippy::wildcard_enum_match_arm)]

use std::io;

use zerocopy::{Immutable, IntoBytes};

use super::Session;
use super::columns::{Batches, Columns, Indices, span_of};
use crate::domain::Domain;
use crate::ids::{
    AgentHandle, CodeObjectId, CorrelationId, DispatchId, KernelId, Nanoseconds, OperationId,
    QueueId, StreamId, StringId, ThreadId,
};
use crate::spool::format::{CountedValue, GraphNode, StackRef};
use crate::spool::record::{RecordKind, Table};
use crate::storage::column::{BATCH, Column, Storage};
use crate::storage::optional_column::OptionalColumn;

/// Place of a call's raw arguments in [`CallTable::arena`]. Length 0: none were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Immutable, IntoBytes)]
#[repr(C)]
pub struct ArgsRef {
    /// Index of the first byte in the arena.
    pub offset: u64,
    /// Length of the arguments in bytes.
    pub len: u32,
    /// Layout of the bytes: flags of the spool record ([`crate::spool::format::call_flag`]).
    pub flags: u32,
}

impl Session {
    /// The columns of a table, for code that treats all tables alike.
    pub fn columns(&self, table: Table) -> &dyn Columns {
        match table {
            Table::Calls => &self.calls,
            Table::Dispatches => &self.dispatches,
            Table::Copies => &self.copies,
            Table::Allocations => &self.allocations,
            Table::Scratch => &self.scratch,
            Table::Counted => &self.counted,
            Table::Samples => &self.samples,
            Table::GraphLaunches => &self.graph_launches,
            Table::HipEvents => &self.hip_events,
            Table::KfdEvents => &self.kfd_events,
        }
    }

    /// The table as [`Columns`], to be changed.
    pub fn columns_mut(&mut self, table: Table) -> &mut dyn Columns {
        match table {
            Table::Calls => &mut self.calls,
            Table::Dispatches => &mut self.dispatches,
            Table::Copies => &mut self.copies,
            Table::Allocations => &mut self.allocations,
            Table::Scratch => &mut self.scratch,
            Table::Counted => &mut self.counted,
            Table::Samples => &mut self.samples,
            Table::GraphLaunches => &mut self.graph_launches,
            Table::HipEvents => &mut self.hip_events,
            Table::KfdEvents => &mut self.kfd_events,
        }
    }

    /// Number of records in a table.
    pub fn records(&self, table: Table) -> usize {
        self.columns(table).starts().len()
    }

    /// Size of all records in bytes, as `--minimum-output-data` counts them: the fixed parts of the spool records,
    /// the values of counters, and thread traces. Dispatches without counter values do not count as counted.
    pub fn record_bytes(&self) -> u64 {
        let tables = Table::ALL.iter().map(|table| self.table_bytes(*table));
        let traces = self.thread_traces.summaries.iter().map(|trace| trace.bytes);
        let counts = self.sample_counts.len() * RecordKind::PcCount.fixed_len();
        tables.chain(traces).sum::<u64>() + counts as u64
    }

    /// As [`Session::record_bytes`], for the records of one domain.
    pub fn domain_bytes(&self, domain: Domain) -> u64 {
        let table = domain.table();
        match table {
            Table::Calls => {
                let calls = self.count_calls(|operation| operation.domain() == domain);
                (calls * table.record_len()) as u64
            }
            // These tables have records of one domain only.
            Table::Dispatches
            | Table::Copies
            | Table::Allocations
            | Table::Scratch
            | Table::Counted
            | Table::Samples
            | Table::GraphLaunches
            | Table::HipEvents
            | Table::KfdEvents => self.table_bytes(table),
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
            | Table::Samples
            | Table::GraphLaunches
            | Table::HipEvents
            | Table::KfdEvents => (self.records(table), 0),
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
            $($($(#[$optional_doc])* pub $optional: OptionalColumn<$optional_type>,)*)?
        }

        #[doc = concat!("A record of [`", stringify!($name), "`], without the columns that are not always there.")]
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct $row {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $name {
            /// Adds a record after the last. Columns that are not always there can be given its values with
            /// [`OptionalColumn::set_last`].
            #[inline]
            pub fn push(&mut self, row: $row) {
                $(self.$field.push(row.$field);)*
                $($(self.$optional.add_row();)*)?
            }

            /// Copies record `index` out of the columns.
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

            /// Whether the table has no record.
            pub fn is_empty(&self) -> bool {
                self.start.is_empty()
            }

            /// Iterates over the indices of all records; memory of records behind the iterator is given back.
            pub fn indices(&self) -> Indices<'_> {
                Indices::new(self)
            }

            /// Iterates over the indices of all records in ranges; memory is given back after each range.
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
                $($(self.$optional.reorder(order);)*)?
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
                    $($(self.$optional.pick(storage, places, &mut new.$optional)?;)*)?
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
    CallTable of CallRow {
        /// The traced function; its kind is part of the operation.
        operation: OperationId,
        /// Message of a marker; 0 for calls, and for a null pointer.
        message: StringId,
        /// Time at which the call, mark or range began.
        start: Nanoseconds,
        /// Time at which the call returned or the range was stopped.
        end: Nanoseconds,
        /// Thread that made the call or started the range.
        thread: ThreadId,
        /// Correlation id that the provider gave the call.
        correlation: CorrelationId,
        /// Correlation id of the enclosing traced call; 0 when there is none.
        ancestor: CorrelationId,
        /// Raw arguments; empty unless [`super::LoadOptions::args`] requested them.
        args: ArgsRef,
    } {
        /// Arguments of all calls, one after the other; empty unless [`super::LoadOptions::args`] requested them.
        arena: u8,
    } where present {
        /// First 8 bytes of the return value. Empty (not one per record) unless [`super::LoadOptions::args`] requested
        /// them.
        retval: u64,
        /// Call stack at the call. Empty (not one per record) unless stacks were recorded.
        stack: StackRef,
    }
}

table! {
    /// Kernel dispatches.
    DispatchTable of DispatchRow {
        /// Begin on the device, on the clock of the host.
        start: Nanoseconds,
        /// End on the device, on the clock of the host.
        end: Nanoseconds,
        /// Thread that submitted the dispatch.
        thread: ThreadId,
        /// Correlation id of the call that submitted the dispatch; 0 when there is none.
        correlation: CorrelationId,
        /// GPU that the kernel ran on.
        agent: AgentHandle,
        /// HSA queue that the dispatch was submitted to.
        queue: QueueId,
        /// HIP stream that the dispatch belongs to; 0 for the null stream and when none is known.
        stream: StreamId,
        /// Index plus 1 into [`super::Session::regions`]; 0 when the kernel is not renamed.
        region: u32,
        /// The kernel; 0 when it is not known.
        kernel: KernelId,
        /// Number of the dispatch in its process, from 1.
        dispatch: DispatchId,
        /// Scratch memory of a work item in bytes, from the dispatch packet.
        private_size: u32,
        /// LDS of a workgroup in bytes, static and dynamic, from the dispatch packet.
        group_size: u32,
        /// Work items of a workgroup: x, y, z.
        workgroup: [u32; 3],
        /// Work items of the grid: x, y, z.
        grid: [u32; 3],
    } where present {
        /// Graph and node of the dispatch. Empty (not one per record) unless a dispatch belongs to a graph.
        graph: GraphNode,
        /// Number of the run, from 1, of a dispatch that the provider ran several times on the same input; 0 for others. Empty
        /// (not one per record) unless there are such. [`DispatchTable::replay_pass`] counts from 0.
        replay: u32,
    }
}

table! {
    /// Asynchronous memory copies.
    CopyTable of CopyRow {
        /// Direction, such as `MEMORY_COPY_HOST_TO_DEVICE`.
        operation: OperationId,
        /// Time at which the copy began.
        start: Nanoseconds,
        /// Time at which the copy ended.
        end: Nanoseconds,
        /// Thread that submitted the copy.
        thread: ThreadId,
        /// Correlation id of the call that submitted the copy; 0 when there is none.
        correlation: CorrelationId,
        /// Agent whose memory was written.
        dst_agent: AgentHandle,
        /// Agent whose memory was read.
        src_agent: AgentHandle,
        /// Number of bytes that were copied.
        bytes: u64,
        /// First address written; 0 when the provider does not report it.
        dst_address: u64,
        /// First address read; 0 when the provider does not report it.
        src_address: u64,
        /// HIP stream that the copy belongs to; 0 for the null stream and when none is known.
        stream: StreamId,
        /// Index plus 1 into [`super::Session::regions`]; 0 when there is none.
        region: u32,
    } where present {
        /// Graph and node of the copy. Empty (not one per record) unless a copy belongs to a graph.
        graph: GraphNode,
    }
}

table! {
    /// Launches of graphs that succeeded.
    GraphLaunchTable of GraphLaunchRow {
        /// Time at which the call began, on the host.
        start: Nanoseconds,
        /// Time at which the call returned, on the host.
        end: Nanoseconds,
        /// Thread that launched the graph.
        thread: ThreadId,
        /// Correlation id of the call that launched the graph; 0 when it was not traced.
        correlation: CorrelationId,
        /// GPU that the graph runs on; 0 when it is not known.
        agent: AgentHandle,
        /// Number of the executable graph in its process, from 1.
        exec: u32,
        /// Number of kernels that the call submitted.
        dispatches: u64,
    }
}

table! {
    /// Work of devices for HIP events.
    HipEventTable of HipEventRow {
        /// Begin on the device, on the clock of the host.
        start: Nanoseconds,
        /// End on the device, on the clock of the host.
        end: Nanoseconds,
        /// Thread that made the call.
        thread: ThreadId,
        /// Correlation id of the call that recorded the event or waits for it.
        correlation: CorrelationId,
        /// GPU of the queue.
        agent: AgentHandle,
        /// Queue that recorded the event, or that waited for it.
        queue: QueueId,
        /// HIP stream of the queue; 0 for the null stream and when none is known.
        stream: StreamId,
        /// The program's handle of the event.
        event: u64,
        /// Queue that the event was recorded on.
        source_queue: QueueId,
        /// Operation: one of [`crate::spool::format::event_operation`].
        operation: u16,
    }
}

table! {
    /// Events of the kernel driver. Fields that the kind of an event lacks are 0.
    KfdEventTable of KfdEventRow {
        /// Operation, whose kind says which fields the event has.
        operation: OperationId,
        /// Begin of what takes time, or time of a single point.
        start: Nanoseconds,
        /// End of what takes time; the start of a single point.
        end: Nanoseconds,
        /// Process that the driver reports the event for, which databases have as a thread.
        process: ThreadId,
        /// Agent; of a migration that whose memory the pages leave. 0 for none.
        agent: AgentHandle,
        /// Agent whose memory pages go to; 0 for none.
        dst_agent: AgentHandle,
        /// Agent that pages are prefetched to; 0 for none.
        prefetch_agent: AgentHandle,
        /// Agent that is the preferred place of pages; 0 for none.
        preferred_agent: AgentHandle,
        /// First address of the range, or the address of the access that faulted.
        address: u64,
        /// Address after the last byte of the range.
        end_address: u64,
        /// Error of the driver as `errno`, negative; 0 for success.
        error: i32,
        /// Number of events that the driver dropped.
        count: u32,
    }
}

table! {
    /// Allocations and frees.
    AllocationTable of AllocationRow {
        /// Operation, such as `MEMORY_ALLOCATION_ALLOCATE`.
        operation: OperationId,
        /// Time at which the operation began.
        start: Nanoseconds,
        /// Time at which the operation ended.
        end: Nanoseconds,
        /// Thread that made the call.
        thread: ThreadId,
        /// Correlation id of the call that allocated or freed.
        correlation: CorrelationId,
        /// Correlation id of the traced call around that call; 0 when there is none.
        ancestor: CorrelationId,
        /// Agent that the memory belongs to; 0 for frees.
        agent: AgentHandle,
        /// First address of the memory, or the handle of physical memory.
        address: u64,
        /// Number of bytes that were allocated; 0 for frees.
        bytes: u64,
        /// HIP stream that the operation belongs to; 0 for the null stream and when none is known.
        stream: StreamId,
    } where present {
        /// Call stack at the operation. Empty (not one per record) unless stacks were recorded.
        stack: StackRef,
    }
}

table! {
    /// Changes of the scratch memory of queues.
    ScratchTable of ScratchRow {
        /// Operation, such as `SCRATCH_MEMORY_ALLOC`.
        operation: OperationId,
        /// Time at which the operation began.
        start: Nanoseconds,
        /// Time at which the operation ended.
        end: Nanoseconds,
        /// Thread on which the provider reported it.
        thread: ThreadId,
        /// Correlation id that the provider gave the operation.
        correlation: CorrelationId,
        /// Correlation id of the enclosing traced call; 0 when there is none.
        ancestor: CorrelationId,
        /// Agent whose scratch memory changed.
        agent: AgentHandle,
        /// Queue whose scratch memory changed.
        queue: QueueId,
        /// Number of bytes that were allocated; 0 for frees.
        bytes: u64,
        /// Flags of the provider (`rocprofiler_scratch_alloc_flag_t`): 1 released after one dispatch, 2 of the
        /// alternative area.
        flags: u32,
    }
}

table! {
    /// PC samples.
    SampleTable of SampleRow {
        /// Time at which the sample was taken.
        start: Nanoseconds,
        /// Time at which the sample was taken; equal to `start`, because a sample has no duration.
        end: Nanoseconds,
        /// Code object; 0 when the provider found none for the address.
        object: CodeObjectId,
        /// Offset from the load address of the code object; an address when there is none.
        offset: u64,
        /// Lanes that were enabled: one bit for each, lane 0 in bit 0.
        exec: u64,
        /// Number of the dispatch; 0 when the provider does not report it.
        dispatch: DispatchId,
        /// Correlation id of the call that submitted the dispatch; 0 when there is none.
        correlation: CorrelationId,
        /// Index plus 1 into [`super::Session::regions`]; 0 when there is none.
        region: u32,
        /// Hardware unit on which the wave ran: packed fields [`super::samples::HARDWARE`].
        hardware: u64,
        /// Position of the workgroup in the grid: x, y, z.
        workgroup: [u32; 3],
        /// Number of the wave in its workgroup, from 0.
        wave: u8,
        /// Method of the sample and which fields are valid: bits of [`crate::spool::format::sample_flag`].
        flags: u8,
        /// Class of the instruction: [`super::samples::class`].
        class: u8,
        /// Number of waves that were active on the compute unit; stochastic samples only.
        waves: u32,
        /// State of the issue logic, stochastic samples only: [`super::samples::STALL_REASON`] and the fields next to
        /// it.
        snapshot: u32,
        /// Outstanding memory operations, packed as `rocprofiler_pc_sampling_memory_counters_t`; valid with
        /// [`crate::spool::format::sample_flag::MEMORY`].
        memory: u32,
    }
}

/// A value of one instance of a counter for a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, IntoBytes, Immutable)]
#[repr(C)]
pub struct CounterValue {
    /// Index into [`super::Session::counters`].
    pub counter: u32,
    /// Index into [`super::Counter::instances`].
    pub instance: u32,
    /// Value that was counted or computed from counted values; the unit is the counter's.
    pub value: f64,
}

/// Place of a dispatch's values in [`CountedTable::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoBytes, Immutable)]
#[repr(C)]
pub struct ValueRange {
    /// Index of the first value.
    pub first: u64,
    /// Number of values.
    pub count: u64,
}

/// Dispatches that were counted, and their counter values.
#[derive(Debug, Default)]
pub struct CountedTable {
    /// The counted dispatches. They have ids in common with [`super::Session::dispatches`] when both were requested.
    pub dispatches: DispatchTable,
    /// Place of each dispatch's values; as long as the columns of `dispatches`.
    pub ranges: Column<ValueRange>,
    /// Values of all dispatches. Those of a dispatch are consecutive, ordered by counter id, then instance.
    pub values: Column<CounterValue>,
}

impl CountedTable {
    /// Number of counted dispatches.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether no dispatch was counted.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Iterates over the indices of the dispatches; memory of dispatches behind the iterator is given back.
    pub fn indices(&self) -> Indices<'_> {
        Indices::new(self)
    }

    /// The values of dispatch `index`, ordered by counter id, then instance.
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
                // Not `sum()`, which begins with -0.0.
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

/// The rows are the dispatches with their ranges. The values are a column that is written and read separately.
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

/// Graph and node of row `index` of a table whose column of them is `graph`; all 0 outside of graphs.
#[inline]
fn graph_of(graph: &OptionalColumn<GraphNode>, index: usize) -> GraphNode {
    graph.get(index).copied().unwrap_or_default()
}

impl DispatchTable {
    /// Graph and node of dispatch `index`; all 0 outside of graphs.
    #[inline]
    pub fn graph_of(&self, index: usize) -> GraphNode {
        graph_of(&self.graph, index)
    }

    /// Which of the runs of a dispatch that was replayed row `index` is, from 0; `None` for a dispatch that ran once.
    #[inline]
    pub fn replay_pass(&self, index: usize) -> Option<u32> {
        self.replay.get(index).copied().unwrap_or(0).checked_sub(1)
    }

    /// Whether row `index` is a later run of a dispatch whose first run is a row of its own. The program knows of one run.
    #[inline]
    pub fn is_repeated(&self, index: usize) -> bool {
        self.replay_pass(index).is_some_and(|pass| pass > 0)
    }

    /// Number of rows for which [`DispatchTable::is_repeated`] holds.
    pub fn repeated(&self) -> usize {
        let runs = self.replay.iter().filter(|run| **run > 1);
        runs.count()
    }

    /// Sets which run of a replayed dispatch the last row is, from 0.
    #[inline]
    pub fn set_replay_pass(&mut self, pass: Option<u32>) {
        if let Some(pass) = pass {
            self.replay.set_last(pass.saturating_add(1));
        }
    }

    /// Sets graph and node of the last dispatch.
    #[inline]
    pub fn set_graph(&mut self, graph: GraphNode) {
        if graph != GraphNode::default() {
            self.graph.set_last(graph);
        }
    }
}

impl CopyTable {
    /// Graph and node of copy `index`; all 0 outside of graphs.
    #[inline]
    pub fn graph_of(&self, index: usize) -> GraphNode {
        graph_of(&self.graph, index)
    }

    /// Sets graph and node of the last copy.
    #[inline]
    pub fn set_graph(&mut self, graph: GraphNode) {
        if graph != GraphNode::default() {
            self.graph.set_last(graph);
        }
    }
}

/// Names of the operations of [`HipEventTable`], as the provider has them: that of a value of
/// [`crate::spool::format::event_operation`].
pub fn event_operation_name(operation: u16) -> &'static str {
    match operation {
        crate::spool::format::event_operation::RECORD => "HIP_EVENT_RECORD",
        crate::spool::format::event_operation::WAIT => "HIP_EVENT_WAIT",
        crate::spool::format::event_operation::HOST_WAITS_FOR_EVENT => "CUDA_EVENT_SYNCHRONIZE",
        crate::spool::format::event_operation::HOST_WAITS_FOR_STREAM => "CUDA_STREAM_SYNCHRONIZE",
        crate::spool::format::event_operation::HOST_WAITS_FOR_CONTEXT => "CUDA_CONTEXT_SYNCHRONIZE",
        _ => "HIP_EVENT_NONE",
    }
}

/// The operation of [`HipEventTable`] with this name; 0 for a name that none has.
pub fn event_operation_of(name: &str) -> u16 {
    (1..=crate::spool::format::event_operation::HOST_WAITS_FOR_CONTEXT)
        .find(|operation| event_operation_name(*operation) == name)
        .unwrap_or(0)
}
