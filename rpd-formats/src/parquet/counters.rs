//! Tables of what was counted: per dispatch and counter, and every single value.

use std::collections::{BTreeMap, HashMap};

use rpd_core::domain::Kind;
use rpd_core::ids::KernelId;
use rpd_core::session::{Counter, CounterValue, DispatchTable, KernelSymbol, Session};

use super::records::Result;
use super::table::Rows;
use super::{Context, Table};

pub(super) const TABLES: [Table; 2] = [
    ("counters_collection", number_of_sums, sums),
    ("pmc_events", number_of_values, values),
];

/// The rows of both tables.
pub(super) struct Lists {
    /// Index of the dispatch, index of the counter, sum over the instances.
    sums: Vec<(u32, u32, f64)>,
    /// Index of the dispatch, and the value.
    values: Vec<(u32, CounterValue)>,
}

impl Lists {
    pub(super) fn new(session: &Session) -> Lists {
        let counted = &session.counted;
        let dispatches = || 0..counted.len() as u32;
        Lists {
            sums: dispatches()
                .flat_map(|dispatch| {
                    let sums = counted.sums(dispatch as usize);
                    sums.map(move |(counter, sum)| (dispatch, counter, sum))
                })
                .collect(),
            values: dispatches()
                .flat_map(|dispatch| {
                    let values = counted.values_of(dispatch as usize);
                    values.iter().map(move |value| (dispatch, *value))
                })
                .collect(),
        }
    }
}

fn number_of_sums(session: &Session) -> usize {
    let counted = &session.counted;
    let dispatches = 0..counted.len();
    dispatches.map(|index| counted.sums(index).count()).sum()
}

fn number_of_values(session: &Session) -> usize {
    let ranges = session.counted.ranges.iter();
    ranges.map(|&(_, count)| count as usize).sum()
}

fn counter(session: &Session, index: u32) -> Option<&Counter> {
    session.counters.get(index as usize)
}

/// Columns that both tables begin with. `at` has the dispatch and the counter of each row.
fn head<'p>(
    context: &Context<'_>,
    rows: Rows<'p>,
    at: impl Fn(usize) -> (usize, u32) + Copy,
) -> Result<'p> {
    let table = &context.session.counted.dispatches;
    let of = |row: usize| at(row).0;
    let name = |row: usize| context.counter_names.get(at(row).1 as usize).copied();
    context
        .head(rows, |_| Kind::KernelDispatch)?
        .integers("tid", |row| table.thread[of(row)].0.into())
        .integers("start", |row| table.start[of(row)].0)
        .integers("end", |row| table.end[of(row)].0)
        .integers("duration", |row| {
            let (start, end) = (table.start[of(row)].0, table.end[of(row)].0);
            end.wrapping_sub(start)
        })
        .integers("dispatch_id", |row| table.dispatch[of(row)].0)
        .optional_integers("counter_id", |row| {
            counter(context.session, at(row).1).map(|counter| counter.id.0.cast_signed())
        })
        .texts("counter_name", name)
}

fn sums<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let list = &context.counters.sums;
    let table: &DispatchTable = &context.session.counted.dispatches;
    let of = |row: usize| list[row].0 as usize;
    let symbols: HashMap<KernelId, &KernelSymbol> = context
        .session
        .kernel_symbols
        .iter()
        .map(|symbol| (symbol.id, symbol))
        .collect();
    let symbol = |row: usize, value: fn(&KernelSymbol) -> u32| {
        let symbol = symbols.get(&table.kernel[of(row)]);
        symbol.map(|symbol| i64::from(value(symbol)))
    };
    let product = |sizes: [u32; 3]| sizes.into_iter().map(u64::from).fold(1, u64::wrapping_mul);
    let rows = head(context, rows, |row| (of(row), list[row].1))?
        .floats("value", |row| list[row].2)
        .texts("kernel_name", |row| {
            Some(context.kernel(&context.session.counted.dispatches, of(row)))
        })?
        .texts("kernel_region", |row| context.region(table.region[of(row)]))?;
    Ok(context
        .agent_columns(rows, ["agent_name", ""], |row| table.agent[of(row)])?
        .integers("queue_id", |row| table.queue[of(row)].0)
        .integers("stream_id", |row| context.stream(table.stream[of(row)]))
        .integers("kernel_id", |row| table.kernel[of(row)].0)
        .integers("grid_size", |row| product(table.grid[of(row)]))
        .integers("workgroup_size", |row| product(table.workgroup[of(row)]))
        .integers("lds_block_size", |row| table.group_size[of(row)].into())
        .integers("scratch_size", |row| table.private_size[of(row)].into())
        .optional_integers("vgpr_count", |row| {
            symbol(row, |kernel| kernel.arch_vgpr_count)
        })
        .optional_integers("accum_vgpr_count", |row| {
            symbol(row, |kernel| kernel.accum_vgpr_count)
        })
        .optional_integers("sgpr_count", |row| symbol(row, |kernel| kernel.sgpr_count))
        .integers("stack_id", |row| table.correlation[of(row)].0))
}

/// A column for each dimension that any counter has, under its name in small letters, `dimension_shader_engine` or the
/// like; empty where the counter lacks it.
fn values<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let list = &context.counters.values;
    let session = context.session;
    let mut rows = head(context, rows, |row| {
        (list[row].0 as usize, list[row].1.counter)
    })?
    .texts("name", |row| {
        Some(context.kernel(&context.session.counted.dispatches, list[row].0 as usize))
    })?
    .floats("counter_value", |row| list[row].1.value)
    .integers("instance", |row| list[row].1.instance.into());
    let dimensions: BTreeMap<u64, &str> = session
        .counters
        .iter()
        .flat_map(|counter| &counter.dimensions)
        .map(|dimension| (dimension.id, &*dimension.name))
        .collect();
    for (id, name) in dimensions {
        rows = rows.optional_integers(&name.to_ascii_lowercase(), |row| {
            let value = &list[row].1;
            let counter = counter(session, value.counter)?;
            let instance = counter.instances.get(value.instance as usize)?;
            let found = instance.positions.iter().find(|(of, _)| *of == id)?;
            Some(found.1.cast_signed())
        });
    }
    Ok(rows)
}
