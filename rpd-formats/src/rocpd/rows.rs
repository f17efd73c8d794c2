//! Rows of records. Events are numbered through all tables, in the order of their records.

#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::io;

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{CorrelationId, Nanoseconds, OperationId, QueueId, StreamId, ThreadId};
use rpd_core::options::{Options, RocpdSchema};
use rpd_core::session::{
    CopyRow, GraphLaunchRow, HipEventRow, MemoryAction, Operation, Session, event_operation_name,
};
use rpd_core::storage::column::{self, Column, Storage};
use rpd_core::storage::sorted::{Keyed, Sorter};
use rpd_core::text::args::{ArgLayout, for_each_argument, layout};
use zerocopy::{Immutable, IntoBytes};

use super::dispatches::{self, Dispatches, GraphColumns, graph_columns};
use super::info::{EVENT_CATEGORY, GRAPH_CATEGORY, Ids};
use super::names::Names;
use super::pages::{PageFile, RowWriter, Tables};
use super::tables::schema_version;
use super::{device_totals, kfd, samples, stacks, traces};
use crate::columns::{Columns, columns};
use crate::json::Object;
use crate::progress;

/// `extdata` of a row without further data.
pub(super) const NO_DATA: &str = "{}";

/// Events between two updates of the progress.
pub(super) const BATCH: u64 = 8192;

/// What rows are written from and into.
#[derive(Clone, Copy)]
pub(super) struct Writer<'a> {
    pub(super) file: &'a PageFile,
    pub(super) tables: &'a Tables,
    pub(super) names: &'a Names,
    pub(super) ids: &'a Ids<'a>,
    pub(super) session: &'a Session,
    pub(super) options: &'a Options,
}

/// Writes all rows that are not made by statements. Tables are written one after the other, so that the same recording gives the
/// same file.
///
/// # Errors
/// When the file, or a temporary one, cannot be written.
pub(super) fn write(writer: Writer<'_>) -> io::Result<()> {
    let (dispatches, row_of) = Dispatches::new(writer.session)?;
    let version = schema_version(writer.session, writer.options);
    let events = Events::new(writer.session, dispatches.len(), version);
    writer.ids.write_strings(&writer)?;
    writer.events(&events, &dispatches)?;
    writer.arguments(&events)?;
    writer.calls(&events)?;
    dispatches::write(&writer, &events, &dispatches)?;
    dispatches::write_values(&writer, &events, &row_of)?;
    writer.copies(&events)?;
    writer.allocations(&events)?;
    writer.graph_launches(&events)?;
    writer.hip_events(&events)?;
    if stacks::has_tables(writer.session, writer.options) {
        stacks::write(&writer, &events)?;
    }
    device_totals::write(&writer)?;
    let places = samples::write(&writer)?;
    traces::write(&writer, &places)
}

/// The events of each table: those of a record follow from its place.
pub(super) struct Events {
    calls: i64,
    pub(super) dispatches: i64,
    copies: i64,
    allocations: i64,
    scratch: i64,
    graph_launches: i64,
    hip_events: i64,
    driver: i64,
}

impl Events {
    fn new(session: &Session, dispatches: usize, version: RocpdSchema) -> Events {
        // An older schema has no tables for these, and so no events of them.
        let later = |since: RocpdSchema, records: usize| match version.cmp(&since) {
            Ordering::Less => 0,
            Ordering::Equal | Ordering::Greater => records as i64,
        };
        // Calls come first, so that the row of a call has the id of its event.
        let calls = 1;
        let dispatches_at = calls + session.calls.len() as i64;
        let copies = dispatches_at + dispatches as i64;
        let allocations = copies + session.copies.len() as i64;
        let scratch = allocations + session.allocations.len() as i64;
        let graph_launches = scratch + session.scratch.len() as i64;
        let hip_events = graph_launches + later(RocpdSchema::Graphs, session.graph_launches.len());
        Events {
            calls,
            dispatches: dispatches_at,
            copies,
            allocations,
            scratch,
            graph_launches,
            hip_events,
            driver: hip_events + later(RocpdSchema::Events, session.hip_events.len()),
        }
    }

    /// The event of call `index`.
    #[inline]
    pub(super) fn call(&self, index: usize) -> i64 {
        self.calls + index as i64
    }

    /// The event of event `index` of the kernel driver.
    pub(super) fn of_driver(&self, index: usize) -> i64 {
        self.driver + index as i64
    }

    /// The event of allocation `index`.
    pub(super) fn allocation(&self, index: usize) -> i64 {
        self.allocations + index as i64
    }
}

impl<'a> Writer<'a> {
    /// Writes into a table.
    pub(super) fn rows(&self, table: &str, columns: &[&str]) -> io::Result<RowWriter<'a>> {
        let table = self.names.table_name(table);
        let storage = self.session.storage.as_ref();
        RowWriter::new(self.file, self.tables, &table, columns, storage)
    }

    /// Writes into a table rows of this kind.
    pub(super) fn rows_of<R: Columns<RowWriter<'a>>>(
        &self,
        table: &str,
    ) -> io::Result<RowWriter<'a>> {
        self.rows(table, R::NAMES)
    }

    pub(super) fn stream(&self, stream: StreamId) -> i64 {
        if self.options.group_by_queue {
            0
        } else {
            stream.0.into()
        }
    }

    /// Message and first correlation id of a region number; empty and 0 when there is none.
    pub(super) fn region(&self, region: u32) -> (Option<i64>, CorrelationId) {
        let found = region
            .checked_sub(1)
            .and_then(|index| self.session.regions.get(index as usize));
        match found {
            Some(region) => (Some(self.ids.string(region.message)), region.correlation),
            None => (None, CorrelationId(0)),
        }
    }

    /// A value for each operation.
    fn by_operation<T>(&self, of: impl Fn(&Operation) -> T) -> Vec<T> {
        self.session.operations.iter().map(of).collect()
    }

    fn events(&self, events: &Events, dispatches: &Dispatches<'_>) -> io::Result<()> {
        let session = self.session;
        let none = CorrelationId(0);
        let mut rows = EventRows {
            rows: self.rows_of::<Event<'_>>("rocpd_event")?,
            next: events.calls,
        };
        let categories = self.by_operation(|operation| self.ids.kind(operation.kind));
        let is_marker = self.by_operation(|operation| operation.domain() == Domain::MarkerApi);
        let calls = &session.calls;
        for index in calls.indices() {
            let operation = calls.operation[index].0 as usize;
            let message = is_marker[operation].then(|| {
                let text = session.strings.get(session.call_label(index));
                Object::new().text("message", text).end()
            });
            let (correlation, ancestor) = (calls.correlation[index], calls.ancestor[index]);
            let message = message.as_deref();
            rows.add(categories[operation], correlation, ancestor, none, message)?;
        }
        let category = self.ids.kind(Kind::KernelDispatch);
        for row in dispatches.rows() {
            let (table, index) = dispatches.place(row);
            let correlation = table.correlation[index];
            let (_, external) = self.region(table.region[index]);
            rows.add(category, correlation, correlation, external, None)?;
        }
        let category = self.ids.kind(Kind::MemoryCopy);
        let table = &session.copies;
        for index in table.indices() {
            let correlation = table.correlation[index];
            let (_, external) = self.region(table.region[index]);
            rows.add(category, correlation, correlation, external, None)?;
        }
        let category = self.ids.kind(Kind::MemoryAllocation);
        let table = &session.allocations;
        for index in table.indices() {
            let (correlation, ancestor) = (table.correlation[index], table.ancestor[index]);
            rows.add(category, correlation, ancestor, none, None)?;
        }
        let category = self.ids.kind(Kind::ScratchMemory);
        let table = &session.scratch;
        for index in table.indices() {
            let (correlation, ancestor) = (table.correlation[index], table.ancestor[index]);
            rows.add(category, correlation, ancestor, none, None)?;
        }
        let category = self.ids.text(GRAPH_CATEGORY);
        let table = &session.graph_launches;
        let version = schema_version(session, self.options);
        for index in table.indices().filter(|_| version >= RocpdSchema::Graphs) {
            let correlation = table.correlation[index];
            rows.add(category, correlation, correlation, none, None)?;
        }
        let category = self.ids.text(EVENT_CATEGORY);
        let table = &session.hip_events;
        for index in table.indices().filter(|_| version >= RocpdSchema::Events) {
            let correlation = table.correlation[index];
            rows.add(category, correlation, correlation, none, None)?;
        }
        let table = &session.kfd_events;
        for index in table.indices() {
            let event = table.row(index);
            let category = categories[event.operation.0 as usize];
            let extdata = kfd::extdata(self, &event);
            rows.add(category, none, none, none, Some(&extdata))?;
        }
        rows.rows.finish()
    }

    /// Calls that take time are regions, the others samples. Events of the kernel driver are regions in either case. All have the ids of their events: views find the row of an event
    /// without an index then.
    fn calls(&self, events: &Events) -> io::Result<()> {
        let calls = &self.session.calls;
        let names = self.by_operation(|operation| self.ids.string(operation.name));
        let kinds = self.by_operation(|operation| operation.kind);
        let mut regions = self.rows_of::<RegionRow>("rocpd_region")?;
        let only_calls = self.session.kfd_events.is_empty();
        if only_calls
            && calls
                .indices()
                .is_sorted_by_key(|index| calls.start[index].0.cast_signed())
        {
            regions = regions.ordered();
        }
        let mut tracks = HashMap::new();
        let mut track_rows = self.rows("rocpd_track", &["id", "tid", "name_id"])?;
        let mut samples = self.rows_of::<SampleRow>("rocpd_sample")?;
        for index in calls.indices() {
            let event = events.call(index);
            let operation = calls.operation[index].0 as usize;
            let (start, end) = (calls.start[index], calls.end[index]);
            if start != end {
                let mut region = RegionRow {
                    event,
                    thread: calls.thread[index],
                    start,
                    end,
                    name: names[operation],
                };
                region.append_to(&mut regions);
                regions.end_row()?;
                continue;
            }
            let next = tracks.len() as i64 + 1;
            let (thread, kind) = (calls.thread[index], kinds[operation]);
            let track = *tracks.entry((thread, kind)).or_insert(next);
            if track == next {
                track_rows
                    .integer(track)
                    .integer(thread.0.into())
                    .integer(self.ids.kind(kind))
                    .end_row()?;
            }
            let mut sample = SampleRow {
                event,
                track,
                time: start,
            };
            sample.append_to(&mut samples);
            samples.end_row()?;
        }
        let table = &self.session.kfd_events;
        for index in table.indices() {
            let mut region = RegionRow {
                event: events.of_driver(index),
                thread: table.process[index],
                start: table.start[index],
                end: table.end[index],
                name: names[table.operation[index].0 as usize],
            };
            region.append_to(&mut regions);
            regions.end_row()?;
        }
        track_rows.finish()?;
        samples.finish()?;
        regions.finish()
    }

    fn arguments(&self, events: &Events) -> io::Result<()> {
        let session = self.session;
        let calls = &session.calls;
        let is_marker = self.by_operation(|operation| operation.domain() == Domain::MarkerApi);
        let mut arguments = Arguments::new(self)?;
        for index in calls.indices() {
            let event = events.call(index);
            if calls.args[index].len > 0 {
                arguments.call(session, index, event)?;
            } else if is_marker[calls.operation[index].0 as usize]
                && self.options.collector.annotate_args
            {
                let message = session.strings.get(session.call_label(index));
                arguments.message(session, index, event, message)?;
            }
        }
        arguments.rows.finish()
    }

    fn copies(&self, events: &Events) -> io::Result<()> {
        let table = &self.session.copies;
        let with_graphs = schema_version(self.session, self.options) >= RocpdSchema::Graphs;
        let columns = [
            <CopyRecord<'_> as Columns<RowWriter<'_>>>::NAMES,
            graph_columns(with_graphs),
            <CopyEnd<'_> as Columns<RowWriter<'_>>>::NAMES,
        ]
        .concat();
        let mut rows = self.rows("rocpd_memory_copy", &columns)?;
        for index in table.indices() {
            let mut copy = CopyRecord {
                writer: self,
                index,
                row: table.row(index),
                event: events.copies + index as i64,
            };
            copy.append_to(&mut rows);
            if with_graphs {
                GraphColumns(table.graph_of(index)).append_to(&mut rows);
            }
            CopyEnd(&copy).append_to(&mut rows);
            rows.end_row()?;
        }
        rows.finish()
    }

    fn graph_launches(&self, events: &Events) -> io::Result<()> {
        let table = &self.session.graph_launches;
        let version = schema_version(self.session, self.options);
        if table.is_empty() || version < RocpdSchema::Graphs {
            return Ok(());
        }
        let mut rows = self.rows_of::<LaunchRecord>("rocpd_graph_launch")?;
        for index in table.indices() {
            let row = table.row(index);
            let mut launch = LaunchRecord {
                row,
                agent: self.ids.agent(row.agent),
                event: events.graph_launches + index as i64,
            };
            launch.append_to(&mut rows);
            rows.end_row()?;
        }
        rows.finish()
    }

    fn hip_events(&self, events: &Events) -> io::Result<()> {
        let table = &self.session.hip_events;
        let version = schema_version(self.session, self.options);
        if table.is_empty() || version < RocpdSchema::Events {
            return Ok(());
        }
        let mut rows = self.rows_of::<HipEventRecord>("rocpd_hip_event")?;
        for index in table.indices() {
            let row = table.row(index);
            let mut record = HipEventRecord {
                row,
                name: self.ids.text(event_operation_name(row.operation)),
                agent: self.ids.agent(row.agent),
                stream: self.stream(row.stream),
                event: events.hip_events + index as i64,
            };
            record.append_to(&mut rows);
            rows.end_row()?;
        }
        rows.finish()
    }

    /// Allocations, then scratch, in one table.
    fn allocations(&self, events: &Events) -> io::Result<()> {
        let mut rows = self.rows_of::<MemoryRow>("rocpd_memory_allocate")?;
        let operations = &self.session.operations;
        let table = &self.session.allocations;
        for index in table.indices() {
            let (kind, level) = memory_labels(&operations[table.operation[index]]);
            let mut memory = MemoryRow {
                thread: table.thread[index],
                agent: self.ids.agent(table.agent[index]),
                kind,
                level,
                start: table.start[index],
                end: table.end[index],
                address: table.address[index],
                bytes: table.bytes[index],
                queue: QueueId(0),
                stream: self.stream(table.stream[index]),
                event: events.allocation(index),
                flags: None,
            };
            memory.append_to(&mut rows);
            rows.end_row()?;
        }
        let table = &self.session.scratch;
        for index in table.indices() {
            let (kind, level) = memory_labels(&operations[table.operation[index]]);
            let mut memory = MemoryRow {
                thread: table.thread[index],
                agent: self.ids.agent(table.agent[index]),
                kind,
                level,
                start: table.start[index],
                end: table.end[index],
                address: 0,
                bytes: table.bytes[index],
                queue: table.queue[index],
                stream: 0,
                event: events.scratch + index as i64,
                flags: Some(table.flags[index]),
            };
            memory.append_to(&mut rows);
            rows.end_row()?;
        }
        rows.finish()
    }
}

struct CopyRecord<'a> {
    writer: &'a Writer<'a>,
    index: usize,
    row: CopyRow,
    event: i64,
}

columns!(CopyRecord<'_> => RowWriter<'f>, |copy|
    "id": integer(copy.index as i64 + 1),
    "tid": integer(copy.row.thread.0.into()),
    "start": bits(copy.row.start.0),
    "end": bits(copy.row.end.0),
    "name_id": integer(copy.writer.ids.string(copy.writer.session.operations[copy.row.operation].name)),
    "dst_agent_id": optional(copy.writer.ids.agent(copy.row.dst_agent)),
    "dst_address": bits(copy.row.dst_address),
    "src_agent_id": optional(copy.writer.ids.agent(copy.row.src_agent)),
    "src_address": bits(copy.row.src_address),
    "size": bits(copy.row.bytes),
    "stream_id": integer(copy.writer.stream(copy.row.stream)),
);

/// The columns of a copy behind those of graphs.
struct CopyEnd<'a>(&'a CopyRecord<'a>);

columns!(CopyEnd<'_> => RowWriter<'f>, |copy|
    "region_name_id": optional(copy.0.writer.region(copy.0.row.region).0),
    "event_id": integer(copy.0.event),
);

/// A launch of a graph.
struct LaunchRecord {
    row: GraphLaunchRow,
    agent: Option<i64>,
    event: i64,
}

columns!(LaunchRecord => RowWriter<'f>, |launch|
    "tid": integer(launch.row.thread.0.into()),
    "agent_id": optional(launch.agent),
    "start": bits(launch.row.start.0),
    "end": bits(launch.row.end.0),
    "graph_exec_id": integer(launch.row.exec.into()),
    "kernel_dispatch_count": bits(launch.row.dispatches),
    "event_id": integer(launch.event),
);

/// Work for a HIP event.
struct HipEventRecord {
    row: HipEventRow,
    name: i64,
    agent: Option<i64>,
    stream: i64,
    event: i64,
}

columns!(HipEventRecord => RowWriter<'f>, |record|
    "tid": integer(record.row.thread.0.into()),
    "start": bits(record.row.start.0),
    "end": bits(record.row.end.0),
    "name_id": integer(record.name),
    "agent_id": optional(record.agent),
    "queue_id": bits(record.row.queue.0),
    "stream_id": integer(record.stream),
    "hip_event_handle": bits(record.row.event),
    "source_queue_id": bits(record.row.source_queue.0),
    "event_id": integer(record.event),
);

/// An allocation, or an operation on scratch memory.
struct MemoryRow {
    thread: ThreadId,
    agent: Option<i64>,
    kind: Option<&'static str>,
    level: &'static str,
    start: Nanoseconds,
    end: Nanoseconds,
    address: u64,
    bytes: u64,
    queue: QueueId,
    stream: i64,
    event: i64,
    /// Of scratch memory.
    flags: Option<u32>,
}

columns!(MemoryRow => RowWriter<'f>, |memory|
    "tid": integer(memory.thread.0.into()),
    "agent_id": optional(memory.agent),
    "type": optional_text(memory.kind),
    "level": text(memory.level),
    "start": bits(memory.start.0),
    "end": bits(memory.end.0),
    "address": bits(memory.address),
    "size": bits(memory.bytes),
    "queue_id": bits(memory.queue.0),
    "stream_id": integer(memory.stream),
    "event_id": integer(memory.event),
    "extdata": text(&memory.extdata()),
);

impl MemoryRow {
    fn extdata(&self) -> Cow<'static, str> {
        match self.flags {
            None => NO_DATA.into(),
            Some(flags) => Object::new().text("flags", &flags.to_string()).end().into(),
        }
    }
}

struct RegionRow {
    event: i64,
    thread: ThreadId,
    start: Nanoseconds,
    end: Nanoseconds,
    /// Row of its name.
    name: i64,
}

columns!(RegionRow => RowWriter<'f>, |region|
    "id": integer(region.event),
    "tid": integer(region.thread.0.into()),
    "start": bits(region.start.0),
    "end": bits(region.end.0),
    "name_id": integer(region.name),
    "event_id": integer(region.event),
);

struct SampleRow {
    event: i64,
    track: i64,
    time: Nanoseconds,
}

columns!(SampleRow => RowWriter<'f>, |sample|
    "id": integer(sample.event),
    "track_id": integer(sample.track),
    "timestamp": bits(sample.time.0),
    "event_id": integer(sample.event),
);

struct Event<'a> {
    id: i64,
    category: i64,
    correlation: CorrelationId,
    ancestor: CorrelationId,
    external: CorrelationId,
    extdata: &'a str,
}

columns!(Event<'_> => RowWriter<'f>, |event|
    "id": integer(event.id),
    "category_id": integer(event.category),
    "stack_id": bits(event.correlation.0),
    "parent_stack_id": bits(event.ancestor.0),
    "correlation_id": bits(event.external.0),
    "extdata": text(event.extdata),
);

/// Rows of events.
struct EventRows<'a> {
    rows: RowWriter<'a>,
    next: i64,
}

impl EventRows<'_> {
    #[inline]
    fn add(
        &mut self,
        category: i64,
        correlation: CorrelationId,
        ancestor: CorrelationId,
        external: CorrelationId,
        extdata: Option<&str>,
    ) -> io::Result<()> {
        let id = self.next;
        self.next += 1;
        if id.cast_unsigned().is_multiple_of(BATCH) {
            progress::advance(BATCH);
        }
        let mut event = Event {
            id,
            category,
            correlation,
            ancestor,
            external,
            extdata: extdata.unwrap_or(NO_DATA),
        };
        event.append_to(&mut self.rows);
        self.rows.end_row()
    }
}

/// `type` and `level` of an operation on memory.
fn memory_labels(operation: &Operation) -> (Option<&'static str>, &'static str) {
    match operation.class.memory() {
        Some((level, action)) => (action.map(MemoryAction::label), level.label()),
        None => (None, ""),
    }
}

/// A row of a table in a database, which wants an id.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
pub(super) struct RowById {
    /// The id that the row keeps if that can be a key.
    pub(super) id: u64,
    /// Index of the record.
    pub(super) index: u64,
    /// Id of its event; 0 for a row without one.
    pub(super) event: i64,
}

impl Keyed for RowById {
    type Key = u64;

    fn key(&self) -> u64 {
        self.id
    }
}

/// The rows of a table in a database, in the order of their ids.
pub(super) type RowsById = Sorter<RowById>;

/// Calls `insert` with the index, the event and the id of each row, ids ascending. Rows keep their own id where it can be a key;
/// the others (id 0, or an id in use) get free ids after these. `release` gives back the memory of rows.
pub(super) fn in_order_of_ids(
    storage: Option<&Storage>,
    release: impl Fn(),
    rows: RowsById,
    mut insert: impl FnMut(usize, i64, i64) -> io::Result<()>,
) -> io::Result<()> {
    let mut last = 0;
    let mut unfit = Column::new();
    for (number, row) in rows.finish()?.enumerate() {
        if number.is_multiple_of(column::BATCH) {
            release();
        }
        match i64::try_from(row.id) {
            // Half of the range is left for those after it.
            Ok(key) if key > last && key < i64::MAX / 2 => {
                insert(row.index as usize, row.event, key)?;
                last = key;
            }
            _ => unfit.append(storage, row)?,
        }
    }
    if let Some(storage) = storage {
        unfit.seal(storage)?;
    }
    for (number, row) in unfit.iter().enumerate() {
        if number.is_multiple_of(column::BATCH) {
            release();
        }
        last = last.saturating_add(1);
        insert(row.index as usize, row.event, last)?;
    }
    Ok(())
}

struct Argument<'a> {
    event: i64,
    position: usize,
    ty: &'a str,
    name: &'a str,
    value: &'a str,
}

columns!(Argument<'_> => RowWriter<'f>, |argument|
    "event_id": integer(argument.event),
    "position": integer(argument.position as i64),
    "type": text(argument.ty),
    "name": text(argument.name),
    "value": text(argument.value),
);

/// Rows of arguments.
struct Arguments<'a> {
    rows: RowWriter<'a>,
    layouts: HashMap<OperationId, Option<&'static ArgLayout>>,
}

impl<'a> Arguments<'a> {
    fn new(writer: &Writer<'a>) -> io::Result<Arguments<'a>> {
        Ok(Arguments {
            // Calls come in the order of their events.
            rows: writer.rows_of::<Argument<'_>>("rocpd_arg")?.ordered(),
            layouts: HashMap::new(),
        })
    }

    /// The argument layout of the function that call `index` is one of.
    fn layout(&mut self, session: &Session, index: usize) -> Option<&'static ArgLayout> {
        let operation = session.calls.operation[index];
        *self.layouts.entry(operation).or_insert_with(|| {
            let kind = session.operations[operation].kind;
            layout(kind, session.operation_name(operation))
        })
    }

    /// The arguments of call `index`.
    fn call(&mut self, session: &Session, index: usize, event: i64) -> io::Result<()> {
        let args = session.calls.args[index];
        let raw = usize::try_from(args.offset)
            .ok()
            .and_then(|from| session.calls.arena.get(from..)?.get(..args.len as usize))
            .unwrap_or_default();
        let layout = self.layout(session, index);
        let mut result = Ok(());
        for_each_argument(layout, args.flags, raw, |position, ty, name, value| {
            if result.is_ok() {
                result = self.argument(event, position, ty, name, value);
            }
        });
        result
    }

    /// The message of a marker as its argument.
    fn message(
        &mut self,
        session: &Session,
        index: usize,
        event: i64,
        message: &str,
    ) -> io::Result<()> {
        let text = self.layout(session, index).and_then(|layout| {
            let is_text = |name: &&str| *name == "char const*";
            let mut arguments = layout.arguments.iter().enumerate();
            arguments.find(|(_, argument)| is_text(&argument.resolved))
        });
        match text {
            Some((position, argument)) => {
                self.argument(event, position, argument.resolved, argument.name, message)
            }
            None => Ok(()),
        }
    }

    fn argument(
        &mut self,
        event: i64,
        position: usize,
        ty: &str,
        name: &str,
        value: &str,
    ) -> io::Result<()> {
        let mut argument = Argument {
            event,
            position,
            ty,
            name,
            value,
        };
        argument.append_to(&mut self.rows);
        self.rows.end_row()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_of_ids_puts_unfit_ids_behind_the_others() -> io::Result<()> {
        let mut rows = Sorter::new(None);
        for (index, id) in [5, 0, 2, 5, u64::MAX].into_iter().enumerate() {
            let index = index as u64;
            let event = 100 + index as i64;
            rows.push(RowById { id, index, event })?;
        }
        let mut found = Vec::new();
        in_order_of_ids(
            None,
            || (),
            rows,
            |index, event, id| {
                found.push((index, event, id));
                Ok(())
            },
        )?;
        assert_eq!(
            found,
            [
                (2, 102, 2),
                (0, 100, 5),
                (1, 101, 6),
                (3, 103, 7),
                (4, 104, 8)
            ]
        );
        Ok(())
    }
}
