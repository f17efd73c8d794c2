//! Parquet tables of trace records.

use std::collections::HashMap;

use polars::prelude::PolarsResult;
use rpd_core::domain::Kind;
use rpd_core::ids::{AgentHandle, KernelId, Nanoseconds, StreamId};
use rpd_core::session::KernelSymbol;

use super::table::Rows;
use super::{Context, Table};

pub(super) const TABLES: [Table; 5] = [
    ("regions", |session| session.api.len(), regions),
    ("kernels", |session| session.dispatches.len(), kernels),
    ("memory_copies", |session| session.copies.len(), copies),
    (
        "memory_allocations",
        |session| session.allocations.len(),
        allocations,
    ),
    ("scratch_memory", |session| session.scratch.len(), scratch),
];

pub(super) type Result<'p> = PolarsResult<Rows<'p>>;

impl Context<'_> {
    /// Columns that every table of records begins with.
    pub(super) fn head<'p>(&self, rows: Rows<'p>, category: impl Fn(usize) -> Kind) -> Result<'p> {
        Ok(rows
            .texts("guid", |_| Some(self.guid_text))?
            .texts("category", |row| {
                Some(self.categories[category(row) as usize])
            })?
            .constant("nid", self.node.id)
            .constant("pid", self.session.process.pid.0.into()))
    }

    pub(super) fn agent_columns<'p>(
        &self,
        rows: Rows<'p>,
        [name, prefix]: [&str; 2],
        handle: impl Fn(usize) -> AgentHandle,
    ) -> Result<'p> {
        let number = |row: usize, number: fn(&rpd_core::agent::Agent) -> i64| {
            self.agent(handle(row)).map(|known| number(known.agent))
        };
        rows.texts(name, |row| self.agent(handle(row)).map(|known| known.name))?
            .optional_integers(&format!("{prefix}agent_abs_index"), |row| {
                number(row, |agent| agent.node_id.into())
            })
            .optional_integers(&format!("{prefix}agent_log_index"), |row| {
                number(row, |agent| agent.logical_node_id.into())
            })
            .optional_integers(&format!("{prefix}agent_type_index"), |row| {
                number(row, |agent| agent.logical_node_type_id.into())
            })
            .texts(&format!("{prefix}agent_type"), |row| {
                self.agent(handle(row)).map(|known| known.kind)
            })
    }

    pub(super) fn stream(&self, stream: StreamId) -> u64 {
        // Records that are grouped by queue have no stream.
        if self.options.group_by_queue {
            0
        } else {
            stream.0.into()
        }
    }

    pub(super) fn region(&self, number: u32) -> Option<u32> {
        // Numbers of regions count from 1; 0 is no region.
        let region = self.session.regions.get(number.checked_sub(1)? as usize)?;
        Some(region.message.0)
    }
}

fn times<'p>(rows: Rows<'p>, start: &[Nanoseconds], end: &[Nanoseconds]) -> Rows<'p> {
    rows.integers("start", |row| start[row].0)
        .integers("end", |row| end[row].0)
        .integers("duration", |row| end[row].0.wrapping_sub(start[row].0))
}

fn regions<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let table = &context.session.api;
    let rows = context
        .head(rows, |row| context.session.call(row).kind)?
        .integers("tid", |row| table.thread[row].0.into());
    Ok(times(rows, &table.start, &table.end)
        .texts("name", |row| Some(context.operation(table.operation[row])))?
        .texts("message", |row| {
            Some(table.message[row].0).filter(|&message| message != 0)
        })?
        .integers("stack_id", |row| table.correlation[row].0)
        .integers("parent_stack_id", |row| table.ancestor[row].0))
}

fn kernels<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let table = &context.session.dispatches;
    let symbols: HashMap<KernelId, &KernelSymbol> = context
        .session
        .kernel_symbols
        .iter()
        .map(|symbol| (symbol.id, symbol))
        .collect();
    let of = |row: usize, value: fn(&KernelSymbol) -> u64| {
        let symbol = symbols.get(&table.kernel[row]);
        symbol.map(|symbol| value(symbol).cast_signed())
    };
    let rows = context
        .head(rows, |_| Kind::KernelDispatch)?
        .integers("tid", |row| table.thread[row].0.into());
    let rows = times(rows, &table.start, &table.end)
        .texts("name", |row| Some(context.kernel(table, row)))?
        .texts("region", |row| context.region(table.region[row]))?;
    let mut rows = context
        .agent_columns(rows, ["agent_name", ""], |row| table.agent[row])?
        .optional_integers("code_object_id", |row| {
            of(row, |symbol| symbol.code_object.0)
        })
        .integers("kernel_id", |row| table.kernel[row].0)
        .integers("dispatch_id", |row| table.dispatch[row].0)
        .integers("stream_id", |row| context.stream(table.stream[row]))
        .integers("queue_id", |row| table.queue[row].0);
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        rows = rows.integers(&format!("grid_{name}"), |row| table.grid[row][axis].into());
    }
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        rows = rows.integers(&format!("workgroup_{name}"), |row| {
            table.workgroup[row][axis].into()
        });
    }
    Ok(rows
        .integers("lds_size", |row| table.group_size[row].into())
        .integers("scratch_size", |row| table.private_size[row].into())
        .optional_integers("vgpr_count", |row| {
            of(row, |symbol| symbol.arch_vgpr_count.into())
        })
        .optional_integers("accum_vgpr_count", |row| {
            of(row, |symbol| symbol.accum_vgpr_count.into())
        })
        .optional_integers("sgpr_count", |row| {
            of(row, |symbol| symbol.sgpr_count.into())
        })
        .optional_integers("static_lds_size", |row| {
            of(row, |symbol| symbol.group_size.into())
        })
        .optional_integers("static_scratch_size", |row| {
            of(row, |symbol| symbol.private_size.into())
        })
        .integers("stack_id", |row| table.correlation[row].0))
}

fn copies<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let table = &context.session.copies;
    let rows = context
        .head(rows, |_| Kind::MemoryCopy)?
        .integers("tid", |row| table.thread[row].0.into());
    let rows = times(rows, &table.start, &table.end)
        .texts("name", |row| Some(context.operation(table.operation[row])))?
        .texts("region_name", |row| context.region(table.region[row]))?
        .integers("stream_id", |row| context.stream(table.stream[row]))
        .integers("size", |row| table.bytes[row]);
    let rows = context
        .agent_columns(rows, ["dst_device", "dst_"], |row| table.dst_agent[row])?
        .integers("dst_address", |row| table.dst_address[row]);
    let rows = context
        .agent_columns(rows, ["src_device", "src_"], |row| table.src_agent[row])?
        .integers("src_address", |row| table.src_address[row]);
    Ok(rows.integers("stack_id", |row| table.correlation[row].0))
}

fn allocations<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let table = &context.session.allocations;
    let rows = context
        .head(rows, |_| Kind::MemoryAllocation)?
        .integers("tid", |row| table.thread[row].0.into());
    let rows = times(rows, &table.start, &table.end)
        .texts("type", |row| {
            context.memory[table.operation[row].0 as usize].0
        })?
        .texts("level", |row| {
            context.memory[table.operation[row].0 as usize].1
        })?;
    Ok(context
        .agent_columns(rows, ["agent_name", ""], |row| table.agent[row])?
        .integers("address", |row| table.address[row])
        .integers("size", |row| table.bytes[row])
        .integers("stream_id", |row| context.stream(table.stream[row]))
        .integers("stack_id", |row| table.correlation[row].0)
        .integers("parent_stack_id", |row| table.ancestor[row].0))
}

fn scratch<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let table = &context.session.scratch;
    let rows = context
        .head(rows, |_| Kind::ScratchMemory)?
        .integers("tid", |row| table.thread[row].0.into());
    let rows = times(rows, &table.start, &table.end).texts("operation", |row| {
        context.memory[table.operation[row].0 as usize].0
    })?;
    Ok(context
        .agent_columns(rows, ["agent_name", ""], |row| table.agent[row])?
        .integers("queue_id", |row| table.queue[row].0)
        .integers("alloc_flags", |row| table.flags[row].into())
        .integers("size", |row| table.bytes[row])
        .integers("stack_id", |row| table.correlation[row].0)
        .integers("parent_stack_id", |row| table.ancestor[row].0))
}
