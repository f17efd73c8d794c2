//! Parquet tables that describe process, agents and code.

use polars::prelude::PolarsResult;
use rpd_core::agent::{Agent, AgentType};
use rpd_core::kernel_name;
use rpd_core::session::{CodeObject, Counter, KernelSymbol};

use super::table::Rows;
use super::{Context, Table};
use crate::describe;

pub(super) const TABLES: [Table; 5] = [
    ("processes", |_| 1, process),
    ("agents", |session| session.agents.len(), agents),
    (
        "code_objects",
        |session| session.code_objects.len(),
        code_objects,
    ),
    (
        "kernel_symbols",
        |session| session.kernel_symbols.len(),
        kernel_symbols,
    ),
    ("pmc_info", |session| session.counters.len(), counters),
];

type Result<'p> = PolarsResult<Rows<'p>>;

fn head<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    Ok(rows
        .texts("guid", |_| Some(context.guid_text))?
        .constant("nid", context.node.id)
        .constant("pid", context.session.process.pid.0.into()))
}

fn process<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let process = &context.session.process;
    let node = &context.node;
    Ok(head(context, rows)?
        .constant("ppid", process.ppid.0.into())
        .own_texts("machine_id", |_| node.machine_id.clone())
        .own_texts("system_name", |_| node.system_name.clone())
        .own_texts("hostname", |_| node.hostname.clone())
        .own_texts("system_release", |_| node.release.clone())
        .own_texts("system_version", |_| node.version.clone())
        .integers("init", |_| process.init_time.0)
        .integers("fini", |_| process.fini_time.0)
        .own_texts("command", |_| process.command.join(" ")))
}

fn agents<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let agents = &context.session.agents;
    let is_gpu = |agent: &&Agent| agent.agent_type == AgentType::Gpu;
    let of = |row: usize| -> &Agent { &agents[row] };
    Ok(head(context, rows)?
        .integers("id", |row| of(row).node_id.into())
        .own_texts("type", |row| of(row).agent_type.label().to_owned())
        .integers("absolute_index", |row| of(row).node_id.into())
        .optional_integers("logical_index", |row| Some(of(row).logical_node_id.into()))
        .optional_integers("type_index", |row| {
            Some(of(row).logical_node_type_id.into())
        })
        .own_texts("name", |row| of(row).name.clone())
        .own_texts("model_name", |row| of(row).model_name.clone())
        .own_texts("vendor_name", |row| of(row).vendor_name.clone())
        .own_texts("product_name", |row| of(row).product_name.clone())
        .integers("cu_count", |row| of(row).cu_count.into())
        .integers("wave_front_size", |row| of(row).wave_front_size.into())
        .own_texts("extdata", |row| {
            let gpus = agents[..row].iter().filter(is_gpu).count();
            let agent = of(row);
            describe::agent(agent, if is_gpu(&agent) { gpus as i64 } else { -1 })
        }))
}

fn code_objects<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let table = &context.session.code_objects;
    let of = |row: usize| -> &CodeObject { &table[row] };
    Ok(head(context, rows)?
        .integers("id", |row| of(row).id.0)
        .optional_integers("agent_abs_index", |row| {
            let known = context.agent(of(row).agent);
            known.map(|known| known.agent.node_id.into())
        })
        .own_texts("uri", |row| of(row).uri.clone())
        .integers("load_base", |row| of(row).load_base)
        .integers("load_size", |row| of(row).load_size)
        .integers("load_delta", |row| of(row).load_delta.cast_unsigned())
        .integers("storage_type", |row| of(row).storage_type.into())
        .integers("memory_base", |row| of(row).memory_base)
        .integers("memory_size", |row| of(row).memory_size))
}

fn kernel_symbols<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let table = &context.session.kernel_symbols;
    let of = |row: usize| -> &KernelSymbol { &table[row] };
    let names = context.options.kernel_names;
    Ok(head(context, rows)?
        .integers("id", |row| of(row).id.0)
        .integers("code_object_id", |row| of(row).code_object.0)
        .own_texts("kernel_name", |row| of(row).name.clone())
        .own_texts("display_name", |row| {
            kernel_name::formatted(&of(row).name, names).into_owned()
        })
        .own_texts("truncated_kernel_name", |row| {
            kernel_name::spellings(&of(row).name, names).truncated
        })
        .integers("kernel_object", |row| of(row).kernel_object)
        .integers("kernarg_segment_size", |row| of(row).kernarg_size.into())
        .integers("kernarg_segment_alignment", |row| {
            of(row).kernarg_align.into()
        })
        .integers("group_segment_size", |row| of(row).group_size.into())
        .integers("private_segment_size", |row| of(row).private_size.into())
        .integers("sgpr_count", |row| of(row).sgpr_count.into())
        .integers("arch_vgpr_count", |row| of(row).arch_vgpr_count.into())
        .integers("accum_vgpr_count", |row| of(row).accum_vgpr_count.into())
        .integers("kernel_address", |row| of(row).kernel_address))
}

fn counters<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let table = &context.session.counters;
    let of = |row: usize| -> &Counter { &table[row] };
    Ok(head(context, rows)?
        .integers("id", |row| of(row).id.0)
        .optional_integers("agent_abs_index", |row| {
            let known = context.agent(of(row).agent);
            known.map(|known| known.agent.node_id.into())
        })
        .integers("is_constant", |row| of(row).is_constant.into())
        .integers("is_derived", |row| of(row).is_derived.into())
        .own_texts("name", |row| of(row).name.clone())
        .own_texts("description", |row| of(row).description.clone())
        .own_texts("block", |row| of(row).block.clone())
        .own_texts("expression", |row| of(row).expression.clone())
        .own_texts("extdata", |row| describe::counter(of(row))))
}
