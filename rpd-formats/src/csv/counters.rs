//! The counter file: one row per dispatch and counter, its instances added up.

use rpd_core::ids::Nanoseconds;
use rpd_core::options::Options;
use rpd_core::session::{DispatchTable, KernelLabels, Session};

use super::combined::Shape;
use super::row::{Row, quote_free};
use super::trace::{AgentNames, Resources};
use super::{Records as _, write_header};
use crate::WriteError;
use crate::columns::{Columns as _, columns};
use crate::file::TextFile;

/// Work items, or workgroups, of all three directions.
pub(super) fn product(sizes: [u32; 3]) -> u64 {
    sizes
        .into_iter()
        .fold(1, |product, size| product.saturating_mul(size.into()))
}

/// The fields of a dispatch's rows in front of the counter.
struct Dispatches<'a> {
    session: &'a Session,
    table: &'a DispatchTable,
    agents: AgentNames,
    labels: KernelLabels<'a>,
    resources: Resources<'a>,
    index: usize,
}

columns!(Dispatches<'_> => Row<'r>, |counted|
    "Correlation_Id": number(counted.table.correlation[counted.index].0),
    "Dispatch_Id": number(counted.table.dispatch[counted.index].0),
);

/// The run of a dispatch that was replayed, from 0; empty for others.
struct ReplayPass(Option<u32>);

columns!(ReplayPass => Row<'r>, |counted|
    "Replay_Pass": optional_number(counted.0),
);

/// The fields behind [`ReplayPass`].
struct Details<'a>(&'a Dispatches<'a>);

columns!(Details<'_> => Row<'r>, |details|
    "Agent_Id": quoted(details.0.agents.get(details.0.table.agent[details.0.index])),
    "Queue_Id": number(details.0.table.queue[details.0.index].0),
    "Process_Id": number(details.0.session.process.pid.0),
    "Thread_Id": number(details.0.table.thread[details.0.index].0),
    "Grid_Size": number(product(details.0.table.grid[details.0.index])),
    "Kernel_Id": number(details.0.table.kernel[details.0.index].0),
    "Kernel_Name": free_text(details.0.labels.counted(details.0.index)),
    "Workgroup_Size": number(product(details.0.table.workgroup[details.0.index])),
    "LDS_Block_Size": number(details.0.resources.lds()),
    "Scratch_Size": number(details.0.table.private_size[details.0.index]),
    "VGPR_Count": number(details.0.resources.arch_vgprs()),
    "Accum_VGPR_Count": number(details.0.resources.accum_vgprs()),
    "SGPR_Count": number(details.0.resources.sgprs()),
);

/// A counter in a dispatch.
struct Value<'a> {
    /// Name of the counter, in quotes.
    name: &'a [u8],
    value: f64,
    start: Nanoseconds,
    end: Nanoseconds,
}

columns!(Value<'_> => Row<'r>, |counted|
    "Counter_Name": quoted(counted.name),
    "Counter_Value": value(counted.value),
    "Start_Timestamp": number(counted.start.0),
    "End_Timestamp": number(counted.end.0),
);

/// Writes header and rows.
pub(super) fn write_rows(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    shape: &Shape,
) -> Result<(), WriteError> {
    let replays: &[&str] = if shape.replays {
        ReplayPass::COLUMNS
    } else {
        &[]
    };
    let names = Dispatches::COLUMNS.iter().chain(replays);
    let names = names.chain(Details::COLUMNS).chain(Value::COLUMNS);
    write_header(file, shape, names.copied());
    let names: Vec<Vec<u8>> = session
        .counters
        .iter()
        .map(|counter| {
            let mut quoted = Vec::new();
            quote_free(&mut quoted, &counter.name, options.csv_safe);
            quoted
        })
        .collect();
    let table = &session.counted.dispatches;
    let mut dispatches = Dispatches {
        session,
        table,
        agents: AgentNames::new(session, options),
        labels: KernelLabels::new(session, options.kernel_names),
        resources: Resources::new(session, table, shape),
        index: 0,
    };
    let mut front = Vec::new();
    for index in session.counted.indices() {
        dispatches.index = index;
        dispatches.resources.select(index);
        front.clear();
        let mut row = Row::new(&mut front, &shape.row, shape);
        dispatches.append_to(&mut row);
        if shape.replays {
            ReplayPass(table.replay_pass(index)).append_to(&mut row);
        }
        Details(&dispatches).append_to(&mut row);
        row.open();
        for (counter, value) in session.counted.sums(index) {
            let mut value = Value {
                name: names.get(counter as usize).map_or(b"\"\"", Vec::as_slice),
                value,
                start: table.start[index],
                end: table.end[index],
            };
            let mut row = Row::new(&mut file.buffer, &front, shape);
            value.append_to(&mut row);
            row.end();
            file.flush_if_full()?;
        }
    }
    Ok(())
}
