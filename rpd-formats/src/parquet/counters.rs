//! Parquet tables of counters: sums per dispatch and counter, and single values.

use std::collections::{BTreeMap, HashMap};
use std::io;

use rpd_core::domain::Kind;
use rpd_core::ids::KernelId;
use rpd_core::session::{Counter, DispatchTable, KernelSymbol, Session};
use rpd_core::storage::column::Column;
use zerocopy::{Immutable, IntoBytes};

use super::records::{duration, symbols};
use super::table::Rows;
use super::{Context, Table};
use crate::columns::{StoredColumns as _, columns};

pub(super) const TABLES: [Table; 2] = [
    ("counters_collection", number_of_sums, |context, rows| {
        Sums::new(context).append_to(rows);
    }),
    ("pmc_events", number_of_values, |context, rows| {
        let values = Values::new(context);
        values.append_to(rows);
        values.append_dimensions(rows);
    }),
];

/// Rows of the tables of sums and of single values.
pub(super) struct Lists {
    sums: Column<Sum>,
    values: Column<Value>,
}

/// A counter in a dispatch.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct Sum {
    /// Index of the dispatch.
    dispatch: u64,
    /// Index of the counter.
    counter: u64,
    /// Sum over its instances.
    sum: f64,
}

/// A value that an instance of a counter has in a dispatch.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct Value {
    /// Index of the dispatch.
    dispatch: u64,
    /// Index of the counter.
    counter: u32,
    instance: u32,
    value: f64,
}

impl Lists {
    pub(super) fn new(session: &Session) -> io::Result<Lists> {
        let counted = &session.counted;
        let storage = session.storage.as_ref();
        let (mut sums, mut values) = (Column::new(), Column::new());
        for dispatch in counted.indices() {
            for (counter, sum) in counted.sums(dispatch) {
                let row = Sum {
                    dispatch: dispatch as u64,
                    counter: counter.into(),
                    sum,
                };
                sums.append(storage, row)?;
            }
            for value in counted.values_of(dispatch) {
                let row = Value {
                    dispatch: dispatch as u64,
                    counter: value.counter,
                    instance: value.instance,
                    value: value.value,
                };
                values.append(storage, row)?;
            }
        }
        if let Some(storage) = storage {
            sums.seal(storage)?;
            values.seal(storage)?;
        }
        Ok(Lists { sums, values })
    }

    /// Gives back the memory of lists in files.
    pub(super) fn release(&self) {
        self.sums.release();
        self.values.release();
    }
}

fn number_of_sums(session: &Session) -> usize {
    let counted = &session.counted;
    let sums = counted.indices().map(|index| counted.sums(index).count());
    sums.sum()
}

fn number_of_values(session: &Session) -> usize {
    let ranges = session.counted.ranges.iter();
    ranges.map(|range| range.count as usize).sum()
}

fn counter(session: &Session, index: u32) -> Option<&Counter> {
    session.counters.get(index as usize)
}

/// A row for each dispatch and counter.
struct Sums<'c> {
    context: &'c Context<'c>,
    table: &'c DispatchTable,
    list: &'c Column<Sum>,
    symbols: HashMap<KernelId, &'c KernelSymbol>,
}

impl<'c> Sums<'c> {
    fn new(context: &'c Context<'c>) -> Sums<'c> {
        Sums {
            context,
            table: &context.session.counted.dispatches,
            list: &context.counters.sums,
            symbols: symbols(context.session),
        }
    }

    fn dispatch(&self, row: usize) -> usize {
        self.list[row].dispatch as usize
    }

    fn counter(&self, row: usize) -> Option<&Counter> {
        counter(self.context.session, self.list[row].counter as u32)
    }

    fn counter_name(&self, row: usize) -> Option<u32> {
        let names = &self.context.counter_names;
        names.get(self.list[row].counter as usize).copied()
    }

    /// A fact about the kernel of a dispatch; `None` for a kernel that was never registered.
    fn of_symbol(&self, row: usize, value: fn(&KernelSymbol) -> u32) -> Option<i64> {
        let symbol = self.symbols.get(&self.table.kernel[self.dispatch(row)]);
        symbol.map(|symbol| value(symbol).into())
    }
}

fn product(sizes: [u32; 3]) -> u64 {
    sizes.into_iter().map(u64::from).fold(1, u64::wrapping_mul)
}

columns!(Sums<'_> => Rows<'r> by column, |sums, row|
    "guid": texts(Some(sums.context.guid_text)),
    "category": texts(Some(sums.context.category(Kind::KernelDispatch))),
    "nid": integers(sums.context.node.id.cast_unsigned()),
    "pid": integers(sums.context.session.process.pid.0.into()),
    "tid": integers(sums.table.thread[sums.dispatch(row)].0.into()),
    "start": integers(sums.table.start[sums.dispatch(row)].0),
    "end": integers(sums.table.end[sums.dispatch(row)].0),
    "duration": integers(duration(sums.table.start[sums.dispatch(row)], sums.table.end[sums.dispatch(row)])),
    "dispatch_id": integers(sums.table.dispatch[sums.dispatch(row)].0),
    "counter_id": optional_integers(sums.counter(row).map(|counter| counter.id.0.cast_signed())),
    "counter_name": texts(sums.counter_name(row)),
    "value": floats(sums.list[row].sum),
    "kernel_name": texts(Some(sums.context.kernel(sums.table, sums.dispatch(row)))),
    "kernel_region": texts(sums.context.region(sums.table.region[sums.dispatch(row)])),
    "agent_name": texts(sums.context.agent(sums.table.agent[sums.dispatch(row)]).map(|known| known.name)),
    "agent_abs_index": optional_integers(sums.context.agent(sums.table.agent[sums.dispatch(row)]).map(|known| known.agent.node_id.into())),
    "agent_log_index": optional_integers(sums.context.agent(sums.table.agent[sums.dispatch(row)]).map(|known| known.agent.logical_node_id.into())),
    "agent_type_index": optional_integers(sums.context.agent(sums.table.agent[sums.dispatch(row)]).map(|known| known.agent.logical_node_type_id.into())),
    "agent_type": texts(sums.context.agent(sums.table.agent[sums.dispatch(row)]).map(|known| known.kind)),
    "queue_id": integers(sums.table.queue[sums.dispatch(row)].0),
    "stream_id": integers(sums.context.stream(sums.table.stream[sums.dispatch(row)])),
    "kernel_id": integers(sums.table.kernel[sums.dispatch(row)].0),
    "grid_size": integers(product(sums.table.grid[sums.dispatch(row)])),
    "workgroup_size": integers(product(sums.table.workgroup[sums.dispatch(row)])),
    "lds_block_size": integers(sums.table.group_size[sums.dispatch(row)].into()),
    "scratch_size": integers(sums.table.private_size[sums.dispatch(row)].into()),
    "vgpr_count": optional_integers(sums.of_symbol(row, |symbol| symbol.arch_vgpr_count)),
    "accum_vgpr_count": optional_integers(sums.of_symbol(row, |symbol| symbol.accum_vgpr_count)),
    "sgpr_count": optional_integers(sums.of_symbol(row, |symbol| symbol.sgpr_count)),
    "stack_id": integers(sums.table.correlation[sums.dispatch(row)].0),
);

/// A row for each value.
struct Values<'c> {
    context: &'c Context<'c>,
    table: &'c DispatchTable,
    list: &'c Column<Value>,
}

impl<'c> Values<'c> {
    fn new(context: &'c Context<'c>) -> Values<'c> {
        Values {
            context,
            table: &context.session.counted.dispatches,
            list: &context.counters.values,
        }
    }

    fn dispatch(&self, row: usize) -> usize {
        self.list[row].dispatch as usize
    }

    fn counter(&self, row: usize) -> Option<&Counter> {
        counter(self.context.session, self.list[row].counter)
    }

    fn counter_name(&self, row: usize) -> Option<u32> {
        let names = &self.context.counter_names;
        names.get(self.list[row].counter as usize).copied()
    }

    /// A column for each dimension that any counter has, under its name in small letters, `dimension_shader_engine` or
    /// the like; empty where the counter lacks it.
    fn append_dimensions(&self, rows: &mut Rows<'_>) {
        let counters = self.context.session.counters.iter();
        let dimensions: BTreeMap<u64, &str> = counters
            .flat_map(|counter| &counter.dimensions)
            .map(|dimension| (dimension.id, &*dimension.name))
            .collect();
        for (id, name) in dimensions {
            rows.optional_integers(&name.to_ascii_lowercase(), |row| {
                let instance = self.list[row].instance as usize;
                let instance = self.counter(row)?.instances.get(instance)?;
                let found = instance.positions.iter().find(|(of, _)| *of == id)?;
                Some(found.1.cast_signed())
            });
        }
    }
}

columns!(Values<'_> => Rows<'r> by column, |values, row|
    "guid": texts(Some(values.context.guid_text)),
    "category": texts(Some(values.context.category(Kind::KernelDispatch))),
    "nid": integers(values.context.node.id.cast_unsigned()),
    "pid": integers(values.context.session.process.pid.0.into()),
    "tid": integers(values.table.thread[values.dispatch(row)].0.into()),
    "start": integers(values.table.start[values.dispatch(row)].0),
    "end": integers(values.table.end[values.dispatch(row)].0),
    "duration": integers(duration(values.table.start[values.dispatch(row)], values.table.end[values.dispatch(row)])),
    "dispatch_id": integers(values.table.dispatch[values.dispatch(row)].0),
    "counter_id": optional_integers(values.counter(row).map(|counter| counter.id.0.cast_signed())),
    "counter_name": texts(values.counter_name(row)),
    "name": texts(Some(values.context.kernel(values.table, values.dispatch(row)))),
    "counter_value": floats(values.list[row].value),
    "instance": integers(values.list[row].instance.into()),
);
