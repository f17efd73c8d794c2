//! Rows that describe counters.

use std::collections::HashMap;

use rpd_core::agent::AgentType;
use rpd_core::ids::AgentHandle;
use rpd_core::session::Session;
use rusqlite::{Connection, Result, params};

use super::names::Names;
use super::rows::{RowById, RowsById, in_order_of_ids};
use super::unstored;
use crate::describe;

/// Writes a row for each counter and returns their ids. What the schema has no columns for, dimensions and instances,
/// goes into the JSON that describes the agent, under `rpd_counter`.
pub(super) fn write(
    connection: &Connection,
    names: &Names,
    session: &Session,
    agents: &HashMap<AgentHandle, i64>,
) -> Result<Vec<i64>> {
    let mut described: HashMap<AgentHandle, (Option<&str>, String)> = HashMap::new();
    let mut gpus = 0;
    for agent in &session.agents {
        let is_gpu = agent.agent_type == AgentType::Gpu;
        let gpu_index = if is_gpu { gpus } else { -1 };
        gpus += i64::from(is_gpu);
        let kind = (agent.agent_type != AgentType::Unknown).then(|| agent.agent_type.label());
        described.insert(agent.handle, (kind, describe::agent(agent, gpu_index)));
    }
    let nobody = (None, "{}".to_owned());
    let mut insert = connection.prepare(&format!(
        "INSERT INTO {} (id, agent_id, target_arch, name, symbol, description, component, value_type, block,
            expression, is_constant, is_derived, extdata)
            VALUES (?, ?, ?, ?, ?, ?, 'rocm', 'ABS', ?, ?, ?, ?, ?)",
        names.table("rocpd_info_pmc")
    ))?;
    let counters = &session.counters;
    let mut ids = vec![0; counters.len()];
    let mut by_id = RowsById::new(None);
    for (index, counter) in (0..).zip(counters) {
        let row = RowById {
            id: counter.id.0,
            index,
            event: 0,
        };
        by_id.push(row).map_err(unstored)?;
    }
    let mut numbered = Vec::new();
    let in_order = in_order_of_ids(
        None,
        || (),
        by_id,
        |index, _, id| {
            numbered.push((index, id));
            Ok(())
        },
    );
    in_order.map_err(unstored)?;
    for (index, id) in numbered {
        let counter = &counters[index];
        let (kind, agent) = described.get(&counter.agent).unwrap_or(&nobody);
        ids[index] = id;
        insert.execute(params![
            id,
            agents.get(&counter.agent),
            kind,
            counter.name,
            counter.name,
            counter.description,
            counter.block,
            counter.expression,
            counter.is_constant,
            counter.is_derived,
            with_counter(agent, &describe::counter(counter)),
        ])?;
    }
    Ok(ids)
}

/// Adds a key to a JSON object.
fn with_counter(object: &str, counter: &str) -> String {
    let rest = object.strip_suffix('}').unwrap_or(object);
    let comma = if rest.len() > 1 { "," } else { "" };
    format!("{rest}{comma}\"rpd_counter\":{counter}}}")
}
