//! Rows of kernel dispatches, and of what was counted in them.

use std::io;

use rpd_core::column::{self, Column};
use rpd_core::domain::Kind;
use rpd_core::session::{Columns as _, DispatchPlaces, DispatchTable, Session};
use rusqlite::Result;

use super::rows::{BATCH, NO_DATA, RowById, RowsById, Writer, in_order_of_ids, unstored};
use crate::progress;

/// Dispatches by number: first those that were traced, then those that were only counted.
struct Rows<'a> {
    session: &'a Session,
    /// Numbers in the table of what was counted.
    only_counted: Column<u32>,
}

impl<'a> Rows<'a> {
    /// Numbers the dispatches of a session. The second result is the row of each counted dispatch.
    fn new(session: &'a Session) -> io::Result<(Rows<'a>, Column<u32>)> {
        let storage = session.storage.as_ref();
        let traced = &session.dispatches;
        let counted = &session.counted.dispatches;
        let mut rows = Rows {
            session,
            only_counted: Column::new(),
        };
        let mut row_of = Column::new();
        // Rows of the counted dispatches that were traced as well.
        let places = match counted.is_empty() {
            true => DispatchPlaces::default(),
            false => DispatchPlaces::new(traced, storage)?,
        };
        for index in counted.indices() {
            let row = match places.find(counted.dispatch[index], counted.kernel[index]) {
                Some(row) => row,
                None => {
                    rows.only_counted.append(storage, index as u32)?;
                    traced.len() + rows.only_counted.total() - 1
                }
            };
            row_of.append(storage, row as u32)?;
        }
        if let Some(storage) = storage {
            rows.only_counted.seal(storage)?;
            row_of.seal(storage)?;
        }
        Ok((rows, row_of))
    }

    fn len(&self) -> usize {
        self.session.dispatches.len() + self.only_counted.len()
    }

    /// Releases the memory of rows in files.
    fn release(&self) {
        self.session.dispatches.release();
        self.session.counted.dispatches.release();
        self.only_counted.release();
    }

    /// The table that holds a row, and where.
    #[inline]
    fn place(&self, row: usize) -> (&'a DispatchTable, usize) {
        let session = self.session;
        match row.checked_sub(session.dispatches.len()) {
            None => (&session.dispatches, row),
            Some(behind) => (
                &session.counted.dispatches,
                self.only_counted[behind] as usize,
            ),
        }
    }
}

/// Writes dispatches, then the values counted in them.
pub(super) fn write(writer: &mut Writer<'_>) -> Result<()> {
    let session = writer.session;
    let (rows, row_of) = Rows::new(session).map_err(unstored)?;
    let category = writer.ids.kind(Kind::KernelDispatch);
    let storage = session.storage.as_ref();
    let mut by_id = RowsById::new(storage);
    // Events of rows follow one another.
    let mut first_event = None;
    for row in 0..rows.len() {
        if row.is_multiple_of(column::BATCH) {
            rows.release();
        }
        let (table, index) = rows.place(row);
        let correlation = table.correlation[index];
        let (_, external) = writer.region(table.region[index]);
        let event = writer.event(category, correlation, correlation, external, None)?;
        first_event.get_or_insert(event);
        let row = RowById {
            id: table.dispatch[index].0,
            index: row as u64,
            event,
        };
        by_id.push(row).map_err(unstored)?;
    }
    let mut bulk = writer.bulk(
        "rocpd_kernel_dispatch",
        &[
            "id",
            "tid",
            "agent_id",
            "kernel_id",
            "dispatch_id",
            "queue_id",
            "stream_id",
            "start",
            "end",
            "private_segment_size",
            "group_segment_size",
            "workgroup_size_x",
            "workgroup_size_y",
            "workgroup_size_z",
            "grid_size_x",
            "grid_size_y",
            "grid_size_z",
            "region_name_id",
            "event_id",
        ],
    )?;
    in_order_of_ids(
        storage,
        || rows.release(),
        by_id,
        |row, event, id| {
            let (table, index) = rows.place(row);
            let (region, _) = writer.region(table.region[index]);
            bulk.integer(id)
                .integer(table.thread[index].0.into())
                .optional(writer.ids.agent(table.agent[index]))
                .bits(table.kernel[index].0)
                .bits(table.dispatch[index].0)
                .bits(table.queue[index].0)
                .integer(writer.stream(table.stream[index]))
                .bits(table.start[index].0)
                .bits(table.end[index].0)
                .integer(table.private_size[index].into())
                .integer(table.group_size[index].into());
            for size in table.workgroup[index].into_iter().chain(table.grid[index]) {
                bulk.integer(size.into());
            }
            bulk.integer(region.unwrap_or(writer.ids.empty))
                .integer(event)
                .end_row()
        },
    )?;
    bulk.finish()?;
    let first_event = first_event.unwrap_or_default();
    write_values(writer, |counted| {
        if counted.is_multiple_of(column::BATCH) {
            row_of.release();
        }
        first_event + i64::from(row_of[counted])
    })
}

/// Writes one row per value. `event_of` has the event of each counted dispatch.
fn write_values(writer: &Writer<'_>, event_of: impl Fn(usize) -> i64) -> Result<()> {
    let counted = &writer.session.counted;
    if counted.is_empty() {
        return Ok(());
    }
    let mut bulk = writer.bulk(
        "rocpd_pmc_event",
        &["id", "event_id", "pmc_id", "value", "extdata"],
    )?;
    let mut id = 0;
    for index in counted.indices() {
        let event = event_of(index);
        let (mut counter, mut next) = (u32::MAX, 0);
        for value in counted.values_of(index) {
            if value.counter != counter {
                (counter, next) = (value.counter, 0);
            }
            id += 1;
            bulk.integer(id)
                .integer(event)
                .integer(writer.ids.counter(counter))
                .real(value.value);
            // The rows of a counter are its instances in their order: the number is there only where that is not so.
            match value.instance == next {
                true => bulk.text(NO_DATA),
                false => bulk.text(&format!("{{\"rpd_instance\":{}}}", value.instance)),
            }
            .end_row()?;
            next = value.instance.saturating_add(1);
            if id % BATCH == 0 {
                progress::advance(BATCH.unsigned_abs());
            }
        }
    }
    bulk.finish()
}
