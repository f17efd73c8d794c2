//! The counter file: one row per dispatch and counter, its instances added up.

use rpd_core::kernel_name::KernelLabels;
use rpd_core::options::Options;
use rpd_core::session::Session;

use super::combined::Begin;
use super::row::quote;
use super::trace::{AgentNames, Resources};
use super::{Row, write_header};
use crate::WriteError;
use crate::file::TextFile;

/// Work items, or workgroups, of all three directions.
pub(super) fn product(sizes: [u32; 3]) -> u64 {
    sizes
        .into_iter()
        .fold(1, |product, size| product.saturating_mul(size.into()))
}

/// Writes header and rows.
pub(super) fn write_rows(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    begin: &Begin,
) -> Result<(), WriteError> {
    write_header(
        file,
        begin,
        &[
            "Correlation_Id",
            "Dispatch_Id",
            "Agent_Id",
            "Queue_Id",
            "Process_Id",
            "Thread_Id",
            "Grid_Size",
            "Kernel_Id",
            "Kernel_Name",
            "Workgroup_Size",
            "LDS_Block_Size",
            "Scratch_Size",
            "VGPR_Count",
            "Accum_VGPR_Count",
            "SGPR_Count",
            "Counter_Name",
            "Counter_Value",
            "Start_Timestamp",
            "End_Timestamp",
        ],
    );
    let agents = AgentNames::new(session, options);
    let labels = KernelLabels::new(session, options.kernel_names);
    let resources = Resources::new(session, begin);
    let names: Vec<Vec<u8>> = session
        .counters
        .iter()
        .map(|counter| {
            let mut quoted = Vec::new();
            quote(&mut quoted, &counter.name);
            quoted
        })
        .collect();
    let table = &session.counted.dispatches;
    // What rows of a dispatch have in common before and behind the counter.
    let mut front = Vec::new();
    for index in session.counted.indices() {
        front.clear();
        let row = Row::new(&mut front, &begin.row)
            .number(table.correlation[index].0)
            .number(table.dispatch[index].0)
            .quoted(agents.get(table.agent[index]))
            .number(table.queue[index].0)
            .number(session.process.pid.0)
            .number(table.thread[index].0)
            .number(product(table.grid[index]))
            .number(table.kernel[index].0)
            .text(labels.counted(index))
            .number(product(table.workgroup[index]));
        resources
            .of(table, index)
            .into_iter()
            .fold(row, Row::number)
            .open();
        for (counter, value) in session.counted.sums(index) {
            let row = Row::new(&mut file.buffer, &front)
                .quoted(names.get(counter as usize).map_or(b"\"\"", Vec::as_slice));
            match begin.combined {
                true => row.shortest(value),
                false => row.value(value),
            }
            .number(table.start[index].0)
            .number(table.end[index].0)
            .end();
            file.flush_if_full()?;
        }
    }
    Ok(())
}
