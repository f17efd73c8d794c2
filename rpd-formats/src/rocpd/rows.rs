//! Rows of records. Events are numbered through all tables in the order in which these are written.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;

use rpd_core::args::{ArgLayout, for_each_argument, layout};
use rpd_core::column::{self, Column, Storage};
use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{CorrelationId, OperationId, StreamId};
use rpd_core::options::Options;
use rpd_core::session::{Columns as _, MemoryAction, Operation, Session, Table};
use rpd_core::sorted::{Keyed, Sorter};
use rusqlite::{Connection, Result};
use zerocopy::{Immutable, IntoBytes};

use super::bulk::Bulk;
use super::info::Ids;
use super::names::Names;
use super::{dispatches, stacks};
use crate::json::Object;
use crate::progress;

/// `extdata` of a row without further data.
pub(super) const NO_DATA: &str = "{}";

/// Events between two updates of the progress.
pub(super) const BATCH: i64 = 8192;

/// The domains of calls in the order of their events.
const CALLS: [Domain; Domain::CALLS] = [
    Domain::HipApi,
    Domain::HsaApi,
    Domain::MarkerApi,
    Domain::RcclApi,
    Domain::RocdecodeApi,
    Domain::RocjpegApi,
];

/// Writes all records.
pub(super) fn write(
    connection: &Connection,
    names: &Names,
    ids: &Ids,
    session: &Session,
    options: &Options,
) -> Result<()> {
    let mut writer = Writer {
        connection,
        names,
        ids,
        session,
        options,
        events: Bulk::new(
            connection,
            &names.table("rocpd_event"),
            &[
                "id",
                "category_id",
                "stack_id",
                "parent_stack_id",
                "correlation_id",
                "extdata",
            ],
        )?,
        next_event: 1,
        stacks: stacks::Records::new(connection, names, session, options)?,
    };
    for table in Table::ALL {
        match table {
            Table::Calls => writer.calls()?,
            // With what was counted in them.
            Table::Dispatches => dispatches::write(&mut writer)?,
            Table::Copies => writer.copies()?,
            // With scratch, which goes into the same table of the database.
            Table::Allocations => writer.allocations()?,
            // Samples are not events: `samples` writes them.
            Table::Counted | Table::Scratch | Table::Samples => {}
        }
    }
    writer.stacks.finish()?;
    writer.events.finish()
}

pub(super) struct Writer<'a> {
    pub(super) connection: &'a Connection,
    names: &'a Names,
    pub(super) ids: &'a Ids,
    pub(super) session: &'a Session,
    options: &'a Options,
    events: Bulk<'a>,
    next_event: i64,
    stacks: stacks::Records<'a>,
}

impl Writer<'_> {
    pub(super) fn bulk(&self, table: &str, columns: &[&str]) -> Result<Bulk<'_>> {
        Bulk::new(self.connection, &self.names.table(table), columns)
    }

    /// Writes an event and returns its id.
    #[inline]
    pub(super) fn event(
        &mut self,
        category: i64,
        correlation: CorrelationId,
        ancestor: CorrelationId,
        external: CorrelationId,
        extdata: Option<&str>,
    ) -> Result<i64> {
        let id = self.next_event;
        self.next_event += 1;
        if id % BATCH == 0 {
            progress::advance(BATCH.unsigned_abs());
        }
        self.events
            .integer(id)
            .integer(category)
            .bits(correlation.0)
            .bits(ancestor.0)
            .bits(external.0)
            .text(extdata.unwrap_or(NO_DATA))
            .end_row()?;
        Ok(id)
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

    fn calls(&mut self) -> Result<()> {
        let api = &self.session.api;
        let storage = self.session.storage.as_ref();
        let mut arguments = Arguments::new(self.connection, self.names)?;
        // Event ids count by domain; rows are written in the order of their own ids. Both ways B-trees only grow at
        // their end.
        let mut events: [i64; 32] = [0; 32];
        let operations = &self.session.operations;
        let mut counts = vec![0_i64; operations.len()];
        for operation in &api.operation {
            counts[operation.0 as usize] += 1;
        }
        let mut in_domain = vec![0_usize; operations.len()];
        let mut next = self.next_event;
        for (number, domain) in CALLS.into_iter().enumerate() {
            let wanted = operations.select(|operation| operation.domain() == domain);
            let mut count = 0;
            for operation in (0..wanted.len()).filter(|operation| wanted[*operation]) {
                in_domain[operation] = number;
                count += counts[operation];
            }
            events[number] = next;
            next += count;
            if count > 0 {
                for index in api.indices() {
                    if wanted[api.operation[index].0 as usize] {
                        self.call_event(index, &mut arguments)?;
                    }
                }
            }
        }
        arguments.bulk.finish()?;

        let mut regions = Sorter::new(storage);
        let mut samples = Sorter::new(storage);
        for index in api.indices() {
            let event = &mut events[in_domain[api.operation[index].0 as usize]];
            let row = RowById {
                id: api.correlation[index].0,
                index: index as u64,
                event: *event,
            };
            *event += 1;
            let rows = match api.start[index] == api.end[index] {
                true => &mut samples,
                false => &mut regions,
            };
            rows.push(row).map_err(unstored)?;
        }

        let mut bulk = self.bulk(
            "rocpd_region",
            &["id", "tid", "start", "end", "name_id", "event_id"],
        )?;
        in_order_of_ids(
            self.session.storage.as_ref(),
            || api.release(),
            regions,
            |index, event, id| {
                bulk.integer(id)
                    .integer(api.thread[index].0.into())
                    .bits(api.start[index].0)
                    .bits(api.end[index].0)
                    .integer(self.ids.string(operations[api.operation[index]].name))
                    .integer(event)
                    .end_row()
            },
        )?;
        bulk.finish()?;

        let mut tracks = HashMap::new();
        let mut track_rows = self.bulk("rocpd_track", &["id", "tid", "name_id"])?;
        let mut bulk = self.bulk("rocpd_sample", &["id", "track_id", "timestamp", "event_id"])?;
        in_order_of_ids(
            self.session.storage.as_ref(),
            || api.release(),
            samples,
            |index, event, id| {
                let next = tracks.len() as i64 + 1;
                let (thread, kind) = (api.thread[index], operations[api.operation[index]].kind);
                let track = *tracks.entry((thread, kind)).or_insert(next);
                if track == next {
                    track_rows
                        .integer(track)
                        .integer(thread.0.into())
                        .integer(self.ids.kind(kind))
                        .end_row()?;
                }
                bulk.integer(id)
                    .integer(track)
                    .bits(api.start[index].0)
                    .integer(event)
                    .end_row()
            },
        )?;
        track_rows.finish()?;
        bulk.finish()
    }

    #[inline]
    fn call_event(&mut self, index: usize, arguments: &mut Arguments<'_>) -> Result<i64> {
        let session = self.session;
        let api = &session.api;
        let kind = session.call(index).kind;
        let is_marker = kind.domain() == Domain::MarkerApi;
        let message = is_marker.then(|| session.strings.get(session.api_label(index)));
        let extdata = message.map(|text| Object::new().text("message", text).end());
        let event = self.event(
            self.ids.kind(kind),
            api.correlation[index],
            api.ancestor[index],
            CorrelationId(0),
            extdata.as_deref(),
        )?;
        self.stacks.add(event, api.stack.get(index))?;
        if api.args[index].len > 0 {
            arguments.call(session, index, event)?;
        } else if let Some(message) = message
            && self.options.collector.annotate_args
        {
            arguments.message(session, index, event, message)?;
        }
        Ok(event)
    }

    fn copies(&mut self) -> Result<()> {
        let table = &self.session.copies;
        let category = self.ids.kind(Kind::MemoryCopy);
        let mut bulk = Bulk::new(
            self.connection,
            &self.names.table("rocpd_memory_copy"),
            &[
                "id",
                "tid",
                "start",
                "end",
                "name_id",
                "dst_agent_id",
                "dst_address",
                "src_agent_id",
                "src_address",
                "size",
                "stream_id",
                "region_name_id",
                "event_id",
            ],
        )?;
        for index in table.indices() {
            let correlation = table.correlation[index];
            let (region, external) = self.region(table.region[index]);
            let event = self.event(category, correlation, correlation, external, None)?;
            bulk.integer(index as i64 + 1)
                .integer(table.thread[index].0.into())
                .bits(table.start[index].0)
                .bits(table.end[index].0)
                .integer(
                    self.ids
                        .string(self.session.operations[table.operation[index]].name),
                )
                .optional(self.ids.agent(table.dst_agent[index]))
                .bits(table.dst_address[index])
                .optional(self.ids.agent(table.src_agent[index]))
                .bits(table.src_address[index])
                .bits(table.bytes[index])
                .integer(self.stream(table.stream[index]))
                .optional(region)
                .integer(event)
                .end_row()?;
        }
        bulk.finish()
    }

    /// Allocations, then scratch, in one table.
    fn allocations(&mut self) -> Result<()> {
        let mut bulk = Bulk::new(
            self.connection,
            &self.names.table("rocpd_memory_allocate"),
            &[
                "tid",
                "agent_id",
                "type",
                "level",
                "start",
                "end",
                "address",
                "size",
                "queue_id",
                "stream_id",
                "event_id",
                "extdata",
            ],
        )?;
        let none = CorrelationId(0);
        let table = &self.session.allocations;
        let category = self.ids.kind(Kind::MemoryAllocation);
        for index in table.indices() {
            let (correlation, ancestor) = (table.correlation[index], table.ancestor[index]);
            let event = self.event(category, correlation, ancestor, none, None)?;
            self.stacks.add(event, table.stack.get(index))?;
            let (kind, level) = memory_labels(&self.session.operations[table.operation[index]]);
            bulk.integer(table.thread[index].0.into())
                .optional(self.ids.agent(table.agent[index]))
                .optional_text(kind)
                .text(level)
                .bits(table.start[index].0)
                .bits(table.end[index].0)
                .bits(table.address[index])
                .bits(table.bytes[index])
                .integer(0)
                .integer(self.stream(table.stream[index]))
                .integer(event)
                .text(NO_DATA)
                .end_row()?;
        }
        let table = &self.session.scratch;
        let category = self.ids.kind(Kind::ScratchMemory);
        for index in table.indices() {
            let (correlation, ancestor) = (table.correlation[index], table.ancestor[index]);
            let event = self.event(category, correlation, ancestor, none, None)?;
            let (kind, level) = memory_labels(&self.session.operations[table.operation[index]]);
            let flags = table.flags[index].to_string();
            bulk.integer(table.thread[index].0.into())
                .optional(self.ids.agent(table.agent[index]))
                .optional_text(kind)
                .text(level)
                .bits(table.start[index].0)
                .bits(table.end[index].0)
                .integer(0)
                .bits(table.bytes[index])
                .bits(table.queue[index].0)
                .integer(0)
                .integer(event)
                .text(&Object::new().text("flags", &flags).end())
                .end_row()?;
        }
        bulk.finish()
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
    mut insert: impl FnMut(usize, i64, i64) -> Result<()>,
) -> Result<()> {
    let mut last = 0;
    let mut unfit = Column::new();
    for (number, row) in rows.finish().map_err(unstored)?.enumerate() {
        if number.is_multiple_of(column::BATCH) {
            release();
        }
        match i64::try_from(row.id) {
            // Half of the range is left for those after it.
            Ok(key) if key > last && key < i64::MAX / 2 => {
                insert(row.index as usize, row.event, key)?;
                last = key;
            }
            _ => unfit.append(storage, row).map_err(unstored)?,
        }
    }
    if let Some(storage) = storage {
        unfit.seal(storage).map_err(unstored)?;
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

/// Rows that could not be stored while they were put in order.
pub(crate) fn unstored(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// Rows of arguments.
struct Arguments<'c> {
    bulk: Bulk<'c>,
    layouts: HashMap<OperationId, Option<&'static ArgLayout>>,
}

impl<'c> Arguments<'c> {
    fn new(connection: &'c Connection, names: &Names) -> Result<Arguments<'c>> {
        let columns = ["event_id", "position", "type", "name", "value"];
        Ok(Arguments {
            bulk: Bulk::new(connection, &names.table("rocpd_arg"), &columns)?,
            layouts: HashMap::new(),
        })
    }

    /// The argument layout of the function that call `index` is one of.
    fn layout(&mut self, session: &Session, index: usize) -> Option<&'static ArgLayout> {
        let operation = session.api.operation[index];
        *self.layouts.entry(operation).or_insert_with(|| {
            let kind = session.operations[operation].kind;
            layout(kind, session.operation_name(operation))
        })
    }

    /// The arguments of call `index`.
    fn call(&mut self, session: &Session, index: usize, event: i64) -> Result<()> {
        let args = session.api.args[index];
        let raw = usize::try_from(args.offset)
            .ok()
            .and_then(|from| session.api.arena.get(from..)?.get(..args.len as usize))
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
    ) -> Result<()> {
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
    ) -> Result<()> {
        self.bulk
            .integer(event)
            .integer(position as i64)
            .text(ty)
            .text(name)
            .text(value)
            .end_row()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfit_ids_go_behind_the_others() -> Result<()> {
        let mut rows = Sorter::new(None);
        for (index, id) in [5, 0, 2, 5, u64::MAX].into_iter().enumerate() {
            let index = index as u64;
            let event = 100 + index.cast_signed();
            rows.push(RowById { id, index, event }).map_err(unstored)?;
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
