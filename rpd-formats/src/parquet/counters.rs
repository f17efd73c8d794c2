//! Parquet tables of counters: sums per dispatch and counter, and single values.

use std::collections::{BTreeMap, HashMap};
use std::io;

use rpd_core::column::Column;
use rpd_core::domain::Kind;
use rpd_core::ids::KernelId;
use rpd_core::session::{Counter, DispatchTable, KernelSymbol, Session};

use super::records::Result;
use super::table::Rows;
use super::{Context, Table};

pub(super) const TABLES: [Table; 2] = [
    ("counters_collection", number_of_sums, sums),
    ("pmc_events", number_of_values, values),
];

/// Rows of the tables of sums and of single values.
pub(super) struct Lists {
    sums: Column<Sum>,
    values: Column<Value>,
}

/// Index of the dispatch and that of the counter, and the bits of the sum over the instances.
type Sum = [u64; 3];

/// Index of the dispatch, those of the counter and (in the upper half) its instance, and the bits of the value.
type Value = [u64; 3];

impl Lists {
    pub(super) fn new(session: &Session) -> io::Result<Lists> {
        let counted = &session.counted;
        let storage = session.storage.as_ref();
        let (mut sums, mut values) = (Column::new(), Column::new());
        for dispatch in counted.indices() {
            for (counter, sum) in counted.sums(dispatch) {
                let sum = [dispatch as u64, counter.into(), sum.to_bits()];
                sums.append(storage, sum)?;
            }
            for value in counted.values_of(dispatch) {
                let at = u64::from(value.instance) << 32 | u64::from(value.counter);
                values.append(storage, [dispatch as u64, at, value.value.to_bits()])?;
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

const fn instance(value: &Value) -> u32 {
    (value[1] >> 32) as u32
}

const fn counter_of_value(value: &Value) -> u32 {
    value[1] as u32
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
    let of = |row: usize| list[row][0] as usize;
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
    let rows = head(context, rows, |row| (of(row), list[row][1] as u32))?
        .floats("value", |row| f64::from_bits(list[row][2]))
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
        (list[row][0] as usize, counter_of_value(&list[row]))
    })?
    .texts("name", |row| {
        Some(context.kernel(&context.session.counted.dispatches, list[row][0] as usize))
    })?
    .floats("counter_value", |row| f64::from_bits(list[row][2]))
    .integers("instance", |row| instance(&list[row]).into());
    let dimensions: BTreeMap<u64, &str> = session
        .counters
        .iter()
        .flat_map(|counter| &counter.dimensions)
        .map(|dimension| (dimension.id, &*dimension.name))
        .collect();
    for (id, name) in dimensions {
        rows = rows.optional_integers(&name.to_ascii_lowercase(), |row| {
            let value = &list[row];
            let counter = counter(session, counter_of_value(value))?;
            let instance = counter.instances.get(instance(value) as usize)?;
            let found = instance.positions.iter().find(|(of, _)| *of == id)?;
            Some(found.1.cast_signed())
        });
    }
    Ok(rows)
}
