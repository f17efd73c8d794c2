//! Parquet tables that describe process, agents and code.

use rpd_core::agent::{Agent, AgentType};
use rpd_core::kernel_name;
use rpd_core::session::{CodeObject, Counter, KernelSymbol};

use super::table::Rows;
use super::{Context, Table};
use crate::columns::{StoredColumns as _, columns};
use crate::describe;

pub(super) const TABLES: [Table; 5] = [
    (
        "processes",
        |_| 1,
        |context, rows| Process(context).append_to(rows),
    ),
    (
        "agents",
        |session| session.agents.len(),
        |context, rows| Agents(context).append_to(rows),
    ),
    (
        "code_objects",
        |session| session.code_objects.len(),
        |context, rows| CodeObjects(context).append_to(rows),
    ),
    (
        "kernel_symbols",
        |session| session.kernel_symbols.len(),
        |context, rows| KernelSymbols(context).append_to(rows),
    ),
    (
        "pmc_info",
        |session| session.counters.len(),
        |context, rows| Counters(context).append_to(rows),
    ),
];

/// The process.
struct Process<'c>(&'c Context<'c>);

columns!(Process<'_> => Rows<'r> by column, |process, row|
    "guid": texts(Some(process.0.guid_text)),
    "nid": integers(process.0.node.id.cast_unsigned()),
    "pid": integers(process.0.session.process.pid.0.into()),
    "ppid": integers(process.0.session.process.ppid.0.into()),
    "machine_id": own_texts(process.0.node.machine_id.clone()),
    "system_name": own_texts(process.0.node.system_name.clone()),
    "hostname": own_texts(process.0.node.hostname.clone()),
    "system_release": own_texts(process.0.node.release.clone()),
    "system_version": own_texts(process.0.node.version.clone()),
    "init": integers(process.0.session.process.init_time.0),
    "fini": integers(process.0.session.process.fini_time.0),
    "command": own_texts(process.0.session.process.command.join(" ")),
);

/// The agents.
struct Agents<'c>(&'c Context<'c>);

impl Agents<'_> {
    fn of(&self, row: usize) -> &Agent {
        &self.0.session.agents[row]
    }

    /// Number of the GPU among those of the session; -1 for what is no GPU.
    fn gpu_index(&self, row: usize) -> i64 {
        let is_gpu = |agent: &&Agent| agent.agent_type == AgentType::Gpu;
        if is_gpu(&self.of(row)) {
            self.0.session.agents[..row].iter().filter(is_gpu).count() as i64
        } else {
            -1
        }
    }
}

columns!(Agents<'_> => Rows<'r> by column, |agents, row|
    "guid": texts(Some(agents.0.guid_text)),
    "nid": integers(agents.0.node.id.cast_unsigned()),
    "pid": integers(agents.0.session.process.pid.0.into()),
    "id": integers(agents.of(row).node_id.into()),
    "type": own_texts(agents.of(row).agent_type.label().to_owned()),
    "absolute_index": integers(agents.of(row).node_id.into()),
    "logical_index": optional_integers(Some(agents.of(row).logical_node_id.into())),
    "type_index": optional_integers(Some(agents.of(row).logical_node_type_id.into())),
    "name": own_texts(agents.of(row).name.clone()),
    "model_name": own_texts(agents.of(row).model_name.clone()),
    "vendor_name": own_texts(agents.of(row).vendor_name.clone()),
    "product_name": own_texts(agents.of(row).product_name.clone()),
    "cu_count": integers(agents.of(row).cu_count.into()),
    "wave_front_size": integers(agents.of(row).wave_front_size.into()),
    "extdata": own_texts(describe::agent(agents.of(row), agents.gpu_index(row))),
);

/// Code objects.
struct CodeObjects<'c>(&'c Context<'c>);

impl CodeObjects<'_> {
    fn of(&self, row: usize) -> &CodeObject {
        &self.0.session.code_objects[row]
    }
}

columns!(CodeObjects<'_> => Rows<'r> by column, |objects, row|
    "guid": texts(Some(objects.0.guid_text)),
    "nid": integers(objects.0.node.id.cast_unsigned()),
    "pid": integers(objects.0.session.process.pid.0.into()),
    "id": integers(objects.of(row).id.0),
    "agent_abs_index": optional_integers(objects.0.agent(objects.of(row).agent).map(|known| known.agent.node_id.into())),
    "uri": own_texts(objects.of(row).uri.clone()),
    "load_base": integers(objects.of(row).load_base),
    "load_size": integers(objects.of(row).load_size),
    "load_delta": integers(objects.of(row).load_delta.cast_unsigned()),
    "storage_type": integers(objects.of(row).storage_type.into()),
    "memory_base": integers(objects.of(row).memory_base),
    "memory_size": integers(objects.of(row).memory_size),
);

/// Kernel symbols.
struct KernelSymbols<'c>(&'c Context<'c>);

impl KernelSymbols<'_> {
    fn of(&self, row: usize) -> &KernelSymbol {
        &self.0.session.kernel_symbols[row]
    }
}

columns!(KernelSymbols<'_> => Rows<'r> by column, |symbols, row|
    "guid": texts(Some(symbols.0.guid_text)),
    "nid": integers(symbols.0.node.id.cast_unsigned()),
    "pid": integers(symbols.0.session.process.pid.0.into()),
    "id": integers(symbols.of(row).id.0),
    "code_object_id": integers(symbols.of(row).code_object.0),
    "kernel_name": own_texts(symbols.of(row).name.clone()),
    "display_name": own_texts(kernel_name::formatted(&symbols.of(row).name, symbols.0.options.kernel_names).into_owned()),
    "truncated_kernel_name": own_texts(kernel_name::spellings(&symbols.of(row).name, symbols.0.options.kernel_names).truncated),
    "kernel_object": integers(symbols.of(row).kernel_object),
    "kernarg_segment_size": integers(symbols.of(row).kernarg_size.into()),
    "kernarg_segment_alignment": integers(symbols.of(row).kernarg_align.into()),
    "group_segment_size": integers(symbols.of(row).group_size.into()),
    "private_segment_size": integers(symbols.of(row).private_size.into()),
    "sgpr_count": integers(symbols.of(row).sgpr_count.into()),
    "arch_vgpr_count": integers(symbols.of(row).arch_vgpr_count.into()),
    "accum_vgpr_count": integers(symbols.of(row).accum_vgpr_count.into()),
    "kernel_address": integers(symbols.of(row).kernel_address),
);

/// Counters.
struct Counters<'c>(&'c Context<'c>);

impl Counters<'_> {
    fn of(&self, row: usize) -> &Counter {
        &self.0.session.counters[row]
    }
}

columns!(Counters<'_> => Rows<'r> by column, |counters, row|
    "guid": texts(Some(counters.0.guid_text)),
    "nid": integers(counters.0.node.id.cast_unsigned()),
    "pid": integers(counters.0.session.process.pid.0.into()),
    "id": integers(counters.of(row).id.0),
    "agent_abs_index": optional_integers(counters.0.agent(counters.of(row).agent).map(|known| known.agent.node_id.into())),
    "is_constant": integers(counters.of(row).is_constant.into()),
    "is_derived": integers(counters.of(row).is_derived.into()),
    "name": own_texts(counters.of(row).name.clone()),
    "description": own_texts(counters.of(row).description.clone()),
    "block": own_texts(counters.of(row).block.clone()),
    "expression": own_texts(counters.of(row).expression.clone()),
    "extdata": own_texts(describe::counter(counters.of(row))),
);
