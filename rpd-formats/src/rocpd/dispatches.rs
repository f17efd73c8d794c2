//! Rows of kernel dispatches, and of what was counted in them.

use std::io;

use rpd_core::options::RocpdSchema;
use rpd_core::session::{Columns as _, DispatchPlaces, DispatchRow, DispatchTable, Session};
use rpd_core::spool::format::GraphNode;
use rpd_core::storage::column::{self, Column};

use super::kfd;
use super::pages::RowWriter;
use super::rows::{BATCH, Events, NO_DATA, RowById, RowsById, Writer, in_order_of_ids};
use super::tables::schema_version;
use crate::columns::{Columns, columns};
use crate::progress;

/// Dispatches by number: first those that were traced, then those that were only counted.
pub(super) struct Dispatches<'a> {
    session: &'a Session,
    /// Numbers in the table of what was counted.
    only_counted: Column<u32>,
}

impl<'a> Dispatches<'a> {
    /// Numbers the dispatches of a session. The second result is the row of each counted dispatch.
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
            // Of the runs of a replayed dispatch, the first one is traced.
            let traced_row = if counted.is_repeated(index) {
                None
            } else {
                places.find(counted.dispatch[index], counted.kernel[index])
            };
            let row = match traced_row {
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
        by_id.push(RowById {
            id: table.dispatch[index].0,
            index: row as u64,
            event,
        })?;
    }
    let version = schema_version(writer.session, writer.options);
    let (with_graphs, with_replays) = (
        version >= RocpdSchema::Graphs,
        version >= RocpdSchema::Replays,
    );
    let columns = [
        <Record<'_> as Columns<RowWriter<'_>>>::NAMES,
        graph_columns(with_graphs),
        <RecordEnd<'_> as Columns<RowWriter<'_>>>::NAMES,
        if with_replays {
            <ReplayColumn as Columns<RowWriter<'_>>>::NAMES
        } else {
            &[]
        },
    ]
    .concat();
    let mut rows = writer.rows("rocpd_kernel_dispatch", &columns)?;
    in_order_of_ids(
        storage,
        || dispatches.release(),
        by_id,
        |row, event, id| {
            let (table, index) = dispatches.place(row);
            let mut record = Record {
                writer,
                id,
                event,
                row: table.row(index),
            };
            record.append_to(&mut rows);
            if with_graphs {
                GraphColumns(table.graph_of(index)).append_to(&mut rows);
            }
            RecordEnd(&record).append_to(&mut rows);
            if with_replays {
                ReplayColumn(table.replay_pass(index)).append_to(&mut rows);
            }
            rows.end_row()
        },
    )?;
    rows.finish()
}

struct Record<'a> {
    writer: &'a Writer<'a>,
    id: i64,
    event: i64,
    row: DispatchRow,
}

columns!(Record<'_> => RowWriter<'f>, |record|
    "id": integer(record.id),
    "tid": integer(record.row.thread.0.into()),
    "agent_id": optional(record.writer.ids.agent(record.row.agent)),
    "kernel_id": bits(record.row.kernel.0),
    "dispatch_id": bits(record.row.dispatch.0),
    "queue_id": bits(record.row.queue.0),
    "stream_id": integer(record.writer.stream(record.row.stream)),
    "start": bits(record.row.start.0),
    "end": bits(record.row.end.0),
    "private_segment_size": integer(record.row.private_size.into()),
    "group_segment_size": integer(record.row.group_size.into()),
    "workgroup_size_x": integer(record.row.workgroup[0].into()),
    "workgroup_size_y": integer(record.row.workgroup[1].into()),
    "workgroup_size_z": integer(record.row.workgroup[2].into()),
    "grid_size_x": integer(record.row.grid[0].into()),
    "grid_size_y": integer(record.row.grid[1].into()),
    "grid_size_z": integer(record.row.grid[2].into()),
);

/// The columns behind those of graphs.
struct RecordEnd<'a>(&'a Record<'a>);

columns!(RecordEnd<'_> => RowWriter<'f>, |record|
    "region_name_id": integer(record.0.region_name()),
    "event_id": integer(record.0.event),
);

/// The run of a replayed dispatch, from 0, which later versions of the schema have.
struct ReplayColumn(Option<u32>);

columns!(ReplayColumn => RowWriter<'f>, |run|
    "replay_pass": optional(run.0.map(i64::from)),
);

/// The columns of graphs, which later versions of the schema have.
pub(super) struct GraphColumns(pub(super) GraphNode);

columns!(GraphColumns => RowWriter<'f>, |graph|
    "graph_exec_id": integer(graph.0.exec.into()),
    "graph_node_id": integer(graph.0.node.into()),
);

/// Names of the columns of graphs, in databases `with_graphs`.
pub(super) fn graph_columns(with_graphs: bool) -> &'static [&'static str] {
    if with_graphs {
        <GraphColumns as Columns<RowWriter<'_>>>::NAMES
    } else {
        &[]
    }
}

impl Record<'_> {
    fn region_name(&self) -> i64 {
        let (region, _) = self.writer.region(self.row.region);
        region.unwrap_or(self.writer.ids.empty)
    }
}

/// Writes one row per value counted in a dispatch, and one per event of the kernel driver. `row_of` has the row of each counted dispatch.
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
    kfd::each_value(writer.session, |index, counter, value| {
        id += 1;
        let rows = rows
            .integer(id)
            .integer(events.of_driver(index))
            .integer(counter);
        rows.real(value).text(NO_DATA).end_row()
    })?;
    rows.finish()
}
