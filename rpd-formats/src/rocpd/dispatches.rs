//! Rows of kernel dispatches, and of what was counted in them.

use std::io;

use rpd_core::column::{self, Column};
use rpd_core::session::{Columns as _, DispatchPlaces, DispatchTable, Session};

use super::rows::{BATCH, Events, NO_DATA, RowsById, Writer, in_order_of_ids};
use crate::progress;

/// Dispatches by number: first those that were traced, then those that were only counted.
pub(super) struct Dispatches<'a> {
    session: &'a Session,
    /// Numbers in the table of what was counted.
    only_counted: Column<u32>,
}

impl<'a> Dispatches<'a> {
    /// Also the row of each counted dispatch.
    pub(super) fn new(session: &'a Session) -> io::Result<(Dispatches<'a>, Column<u32>)> {
        let storage = session.storage.as_ref();
        let traced = &session.dispatches;
        let counted = &session.counted.dispatches;
        let mut rows = Dispatches {
            session,
            only_counted: Column::new(),
        };
        let mut row_of = Column::new();
        // Rows of the counted dispatches that were traced as well.
        let places = if counted.is_empty() {
            DispatchPlaces::default()
        } else {
            DispatchPlaces::new(traced, storage)?
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

    pub(super) fn len(&self) -> usize {
        self.session.dispatches.len() + self.only_counted.len()
    }

    /// All numbers. Memory is given back after each batch.
    pub(super) fn rows(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).inspect(|row| {
            if row.is_multiple_of(column::BATCH) {
                self.release();
            }
        })
    }

    /// Releases the memory of rows in files.
    fn release(&self) {
        self.session.dispatches.release();
        self.session.counted.dispatches.release();
        self.only_counted.release();
    }

    /// The table that holds a row, and where.
    #[inline]
    pub(super) fn place(&self, row: usize) -> (&'a DispatchTable, usize) {
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

/// Writes dispatches. Those that have the id of an earlier one get another.
pub(super) fn write(
    writer: &Writer<'_>,
    events: &Events,
    dispatches: &Dispatches<'_>,
) -> io::Result<()> {
    let storage = writer.session.storage.as_ref();
    let mut by_id = RowsById::new(storage);
    for row in dispatches.rows() {
        let (table, index) = dispatches.place(row);
        let event = events.dispatches + row as i64;
        by_id.push([table.dispatch[index].0, row as u64, event.cast_unsigned()])?;
    }
    let mut rows = writer.rows(
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
        || dispatches.release(),
        by_id,
        |row, event, id| {
            let (table, index) = dispatches.place(row);
            let (region, _) = writer.region(table.region[index]);
            rows.integer(id)
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
                rows.integer(size.into());
            }
            rows.integer(region.unwrap_or(writer.ids.empty))
                .integer(event)
                .end_row()
        },
    )?;
    rows.finish()
}

/// Writes one row per value counted in a dispatch. `row_of` has the row of each counted dispatch.
pub(super) fn write_values(
    writer: &Writer<'_>,
    events: &Events,
    row_of: &Column<u32>,
) -> io::Result<()> {
    let counted = &writer.session.counted;
    let mut rows = writer.rows(
        "rocpd_pmc_event",
        &["id", "event_id", "pmc_id", "value", "extdata"],
    )?;
    let mut id = 0_i64;
    for index in counted.indices() {
        if index.is_multiple_of(column::BATCH) {
            row_of.release();
        }
        let event = events.dispatches + i64::from(row_of[index]);
        let (mut counter, mut next) = (u32::MAX, 0);
        for value in counted.values_of(index) {
            if value.counter != counter {
                (counter, next) = (value.counter, 0);
            }
            id += 1;
            rows.integer(id)
                .integer(event)
                .integer(writer.ids.counter(counter))
                .real(value.value);
            // The rows of a counter are its instances in their order: the number is there only where that is not so.
            if value.instance == next {
                rows.text(NO_DATA)
            } else {
                rows.text(&format!("{{\"rpd_instance\":{}}}", value.instance))
            }
            .end_row()?;
            next = value.instance.saturating_add(1);
            if id.cast_unsigned().is_multiple_of(BATCH) {
                progress::advance(BATCH);
            }
        }
    }
    rows.finish()
}
