//! Parquet tables of trace records.

use std::collections::HashMap;

use rpd_core::domain::Kind;
use rpd_core::ids::{AgentHandle, KernelId, Nanoseconds, StreamId};
use rpd_core::session::{
    AllocationTable, CallTable, CopyTable, DispatchTable, GraphLaunchTable, HipEventTable,
    KernelSymbol, KfdEventTable, ScratchTable, Session,
};

use super::table::Rows;
use super::{Context, Table};
use crate::columns::{StoredColumns as _, columns};
use crate::kfd;

pub(super) const TABLES: [Table; 8] = [
    (
        "regions",
        |session| session.calls.len(),
        |context, rows| Regions::new(context).append_to(rows),
    ),
    (
        "kernels",
        |session| session.dispatches.len(),
        |context, rows| Kernels::new(context).append_to(rows),
    ),
    (
        "memory_copies",
        |session| session.copies.len(),
        |context, rows| Copies::new(context).append_to(rows),
    ),
    (
        "memory_allocations",
        |session| session.allocations.len(),
        |context, rows| Allocations::new(context).append_to(rows),
    ),
    (
        "scratch_memory",
        |session| session.scratch.len(),
        |context, rows| Scratch::new(context).append_to(rows),
    ),
    (
        "graph_launches",
        |session| session.graph_launches.len(),
        |context, rows| Launches::new(context).append_to(rows),
    ),
    (
        "hip_events",
        |session| session.hip_events.len(),
        |context, rows| HipEvents::new(context).append_to(rows),
    ),
    (
        "kfd_events",
        |session| session.kfd_events.len(),
        |context, rows| KfdEvents::new(context).append_to(rows),
    ),
];

impl Context<'_> {
    /// Dictionary id of the name of a kind.
    pub(super) fn category(&self, kind: Kind) -> u32 {
        self.categories[kind as usize]
    }

    /// The stream to show: none when records are grouped by queue.
    pub(super) fn stream(&self, stream: StreamId) -> u64 {
        // Records that are grouped by queue have no stream.
        if self.options.group_by_queue {
            0
        } else {
            stream.0.into()
        }
    }

    /// Dictionary id of the message of a region; `None` for the number that stands for none.
    pub(super) fn region(&self, number: u32) -> Option<u32> {
        // Numbers of regions count from 1; 0 is no region.
        let region = self.session.regions.get(number.checked_sub(1)? as usize)?;
        Some(region.message.0)
    }
}

/// Nanoseconds between two times; negative, in the bits of its complement, when they are in the wrong order.
pub(super) fn duration(start: Nanoseconds, end: Nanoseconds) -> u64 {
    end.0.wrapping_sub(start.0)
}

/// The symbols of a session by kernel.
pub(super) fn symbols(session: &Session) -> HashMap<KernelId, &KernelSymbol> {
    let symbols = session.kernel_symbols.iter();
    symbols.map(|symbol| (symbol.id, symbol)).collect()
}

/// Calls and markers.
struct Regions<'c> {
    context: &'c Context<'c>,
    table: &'c CallTable,
}

impl<'c> Regions<'c> {
    fn new(context: &'c Context<'c>) -> Regions<'c> {
        Regions {
            context,
            table: &context.session.calls,
        }
    }
}

columns!(Regions<'_> => Rows<'r> by column, |calls, row|
    "guid": texts(Some(calls.context.guid_text)),
    "category": texts(Some(calls.context.category(calls.context.session.call(row).kind))),
    "nid": integers(calls.context.node.id.cast_unsigned()),
    "pid": integers(calls.context.session.process.pid.0.into()),
    "tid": integers(calls.table.thread[row].0.into()),
    "start": integers(calls.table.start[row].0),
    "end": integers(calls.table.end[row].0),
    "duration": integers(duration(calls.table.start[row], calls.table.end[row])),
    "name": texts(Some(calls.context.operation(calls.table.operation[row]))),
    "message": texts(Some(calls.table.message[row].0).filter(|&message| message != 0)),
    "stack_id": integers(calls.table.correlation[row].0),
    "parent_stack_id": integers(calls.table.ancestor[row].0),
);

/// Kernel dispatches.
struct Kernels<'c> {
    context: &'c Context<'c>,
    table: &'c DispatchTable,
    symbols: HashMap<KernelId, &'c KernelSymbol>,
}

impl<'c> Kernels<'c> {
    fn new(context: &'c Context<'c>) -> Kernels<'c> {
        Kernels {
            context,
            table: &context.session.dispatches,
            symbols: symbols(context.session),
        }
    }

    /// A fact about the kernel of a dispatch; `None` for a kernel that was never registered.
    fn of_symbol(&self, row: usize, value: fn(&KernelSymbol) -> u64) -> Option<i64> {
        let symbol = self.symbols.get(&self.table.kernel[row]);
        symbol.map(|symbol| value(symbol).cast_signed())
    }
}

columns!(Kernels<'_> => Rows<'r> by column, |kernels, row|
    "guid": texts(Some(kernels.context.guid_text)),
    "category": texts(Some(kernels.context.category(Kind::KernelDispatch))),
    "nid": integers(kernels.context.node.id.cast_unsigned()),
    "pid": integers(kernels.context.session.process.pid.0.into()),
    "tid": integers(kernels.table.thread[row].0.into()),
    "start": integers(kernels.table.start[row].0),
    "end": integers(kernels.table.end[row].0),
    "duration": integers(duration(kernels.table.start[row], kernels.table.end[row])),
    "name": texts(Some(kernels.context.kernel(kernels.table, row))),
    "region": texts(kernels.context.region(kernels.table.region[row])),
    "agent_name": texts(kernels.context.agent(kernels.table.agent[row]).map(|known| known.name)),
    "agent_abs_index": optional_integers(kernels.context.agent(kernels.table.agent[row]).map(|known| known.agent.node_id.into())),
    "agent_log_index": optional_integers(kernels.context.agent(kernels.table.agent[row]).map(|known| known.agent.logical_node_id.into())),
    "agent_type_index": optional_integers(kernels.context.agent(kernels.table.agent[row]).map(|known| known.agent.logical_node_type_id.into())),
    "agent_type": texts(kernels.context.agent(kernels.table.agent[row]).map(|known| known.kind)),
    "code_object_id": optional_integers(kernels.of_symbol(row, |symbol| symbol.code_object.0)),
    "kernel_id": integers(kernels.table.kernel[row].0),
    "dispatch_id": integers(kernels.table.dispatch[row].0),
    "stream_id": integers(kernels.context.stream(kernels.table.stream[row])),
    "queue_id": integers(kernels.table.queue[row].0),
    "grid_x": integers(kernels.table.grid[row][0].into()),
    "grid_y": integers(kernels.table.grid[row][1].into()),
    "grid_z": integers(kernels.table.grid[row][2].into()),
    "workgroup_x": integers(kernels.table.workgroup[row][0].into()),
    "workgroup_y": integers(kernels.table.workgroup[row][1].into()),
    "workgroup_z": integers(kernels.table.workgroup[row][2].into()),
    "lds_size": integers(kernels.table.group_size[row].into()),
    "scratch_size": integers(kernels.table.private_size[row].into()),
    "vgpr_count": optional_integers(kernels.of_symbol(row, |symbol| symbol.arch_vgpr_count.into())),
    "accum_vgpr_count": optional_integers(kernels.of_symbol(row, |symbol| symbol.accum_vgpr_count.into())),
    "sgpr_count": optional_integers(kernels.of_symbol(row, |symbol| symbol.sgpr_count.into())),
    "static_lds_size": optional_integers(kernels.of_symbol(row, |symbol| symbol.group_size.into())),
    "static_scratch_size": optional_integers(kernels.of_symbol(row, |symbol| symbol.private_size.into())),
    "stack_id": integers(kernels.table.correlation[row].0),
    "graph_exec_id": integers(kernels.table.graph_of(row).exec.into()),
    "graph_node_id": integers(kernels.table.graph_of(row).node.into()),
);

/// Memory copies.
struct Copies<'c> {
    context: &'c Context<'c>,
    table: &'c CopyTable,
}

impl<'c> Copies<'c> {
    fn new(context: &'c Context<'c>) -> Copies<'c> {
        Copies {
            context,
            table: &context.session.copies,
        }
    }
}

columns!(Copies<'_> => Rows<'r> by column, |copies, row|
    "guid": texts(Some(copies.context.guid_text)),
    "category": texts(Some(copies.context.category(Kind::MemoryCopy))),
    "nid": integers(copies.context.node.id.cast_unsigned()),
    "pid": integers(copies.context.session.process.pid.0.into()),
    "tid": integers(copies.table.thread[row].0.into()),
    "start": integers(copies.table.start[row].0),
    "end": integers(copies.table.end[row].0),
    "duration": integers(duration(copies.table.start[row], copies.table.end[row])),
    "name": texts(Some(copies.context.operation(copies.table.operation[row]))),
    "region_name": texts(copies.context.region(copies.table.region[row])),
    "stream_id": integers(copies.context.stream(copies.table.stream[row])),
    "size": integers(copies.table.bytes[row]),
    "dst_device": texts(copies.context.agent(copies.table.dst_agent[row]).map(|known| known.name)),
    "dst_agent_abs_index": optional_integers(copies.context.agent(copies.table.dst_agent[row]).map(|known| known.agent.node_id.into())),
    "dst_agent_log_index": optional_integers(copies.context.agent(copies.table.dst_agent[row]).map(|known| known.agent.logical_node_id.into())),
    "dst_agent_type_index": optional_integers(copies.context.agent(copies.table.dst_agent[row]).map(|known| known.agent.logical_node_type_id.into())),
    "dst_agent_type": texts(copies.context.agent(copies.table.dst_agent[row]).map(|known| known.kind)),
    "dst_address": integers(copies.table.dst_address[row]),
    "src_device": texts(copies.context.agent(copies.table.src_agent[row]).map(|known| known.name)),
    "src_agent_abs_index": optional_integers(copies.context.agent(copies.table.src_agent[row]).map(|known| known.agent.node_id.into())),
    "src_agent_log_index": optional_integers(copies.context.agent(copies.table.src_agent[row]).map(|known| known.agent.logical_node_id.into())),
    "src_agent_type_index": optional_integers(copies.context.agent(copies.table.src_agent[row]).map(|known| known.agent.logical_node_type_id.into())),
    "src_agent_type": texts(copies.context.agent(copies.table.src_agent[row]).map(|known| known.kind)),
    "src_address": integers(copies.table.src_address[row]),
    "stack_id": integers(copies.table.correlation[row].0),
    "graph_exec_id": integers(copies.table.graph_of(row).exec.into()),
    "graph_node_id": integers(copies.table.graph_of(row).node.into()),
);

/// Allocations and frees.
struct Allocations<'c> {
    context: &'c Context<'c>,
    table: &'c AllocationTable,
}

impl<'c> Allocations<'c> {
    fn new(context: &'c Context<'c>) -> Allocations<'c> {
        Allocations {
            context,
            table: &context.session.allocations,
        }
    }
}

columns!(Allocations<'_> => Rows<'r> by column, |allocations, row|
    "guid": texts(Some(allocations.context.guid_text)),
    "category": texts(Some(allocations.context.category(Kind::MemoryAllocation))),
    "nid": integers(allocations.context.node.id.cast_unsigned()),
    "pid": integers(allocations.context.session.process.pid.0.into()),
    "tid": integers(allocations.table.thread[row].0.into()),
    "start": integers(allocations.table.start[row].0),
    "end": integers(allocations.table.end[row].0),
    "duration": integers(duration(allocations.table.start[row], allocations.table.end[row])),
    "type": texts(allocations.context.memory(allocations.table.operation[row]).0),
    "level": texts(allocations.context.memory(allocations.table.operation[row]).1),
    "agent_name": texts(allocations.context.agent(allocations.table.agent[row]).map(|known| known.name)),
    "agent_abs_index": optional_integers(allocations.context.agent(allocations.table.agent[row]).map(|known| known.agent.node_id.into())),
    "agent_log_index": optional_integers(allocations.context.agent(allocations.table.agent[row]).map(|known| known.agent.logical_node_id.into())),
    "agent_type_index": optional_integers(allocations.context.agent(allocations.table.agent[row]).map(|known| known.agent.logical_node_type_id.into())),
    "agent_type": texts(allocations.context.agent(allocations.table.agent[row]).map(|known| known.kind)),
    "address": integers(allocations.table.address[row]),
    "size": integers(allocations.table.bytes[row]),
    "stream_id": integers(allocations.context.stream(allocations.table.stream[row])),
    "stack_id": integers(allocations.table.correlation[row].0),
    "parent_stack_id": integers(allocations.table.ancestor[row].0),
);

/// Scratch operations.
struct Scratch<'c> {
    context: &'c Context<'c>,
    table: &'c ScratchTable,
}

impl<'c> Scratch<'c> {
    fn new(context: &'c Context<'c>) -> Scratch<'c> {
        Scratch {
            context,
            table: &context.session.scratch,
        }
    }
}

columns!(Scratch<'_> => Rows<'r> by column, |scratch, row|
    "guid": texts(Some(scratch.context.guid_text)),
    "category": texts(Some(scratch.context.category(Kind::ScratchMemory))),
    "nid": integers(scratch.context.node.id.cast_unsigned()),
    "pid": integers(scratch.context.session.process.pid.0.into()),
    "tid": integers(scratch.table.thread[row].0.into()),
    "start": integers(scratch.table.start[row].0),
    "end": integers(scratch.table.end[row].0),
    "duration": integers(duration(scratch.table.start[row], scratch.table.end[row])),
    "operation": texts(scratch.context.memory(scratch.table.operation[row]).0),
    "agent_name": texts(scratch.context.agent(scratch.table.agent[row]).map(|known| known.name)),
    "agent_abs_index": optional_integers(scratch.context.agent(scratch.table.agent[row]).map(|known| known.agent.node_id.into())),
    "agent_log_index": optional_integers(scratch.context.agent(scratch.table.agent[row]).map(|known| known.agent.logical_node_id.into())),
    "agent_type_index": optional_integers(scratch.context.agent(scratch.table.agent[row]).map(|known| known.agent.logical_node_type_id.into())),
    "agent_type": texts(scratch.context.agent(scratch.table.agent[row]).map(|known| known.kind)),
    "queue_id": integers(scratch.table.queue[row].0),
    "alloc_flags": integers(scratch.table.flags[row].into()),
    "size": integers(scratch.table.bytes[row]),
    "stack_id": integers(scratch.table.correlation[row].0),
    "parent_stack_id": integers(scratch.table.ancestor[row].0),
);

/// Launches of graphs.
struct Launches<'c> {
    context: &'c Context<'c>,
    table: &'c GraphLaunchTable,
}

impl<'c> Launches<'c> {
    fn new(context: &'c Context<'c>) -> Launches<'c> {
        Launches {
            context,
            table: &context.session.graph_launches,
        }
    }
}

columns!(Launches<'_> => Rows<'r> by column, |launches, row|
    "guid": texts(Some(launches.context.guid_text)),
    "nid": integers(launches.context.node.id.cast_unsigned()),
    "pid": integers(launches.context.session.process.pid.0.into()),
    "tid": integers(launches.table.thread[row].0.into()),
    "start": integers(launches.table.start[row].0),
    "end": integers(launches.table.end[row].0),
    "duration": integers(duration(launches.table.start[row], launches.table.end[row])),
    "agent_name": texts(launches.context.agent(launches.table.agent[row]).map(|known| known.name)),
    "agent_abs_index": optional_integers(launches.context.agent(launches.table.agent[row]).map(|known| known.agent.node_id.into())),
    "agent_log_index": optional_integers(launches.context.agent(launches.table.agent[row]).map(|known| known.agent.logical_node_id.into())),
    "agent_type_index": optional_integers(launches.context.agent(launches.table.agent[row]).map(|known| known.agent.logical_node_type_id.into())),
    "agent_type": texts(launches.context.agent(launches.table.agent[row]).map(|known| known.kind)),
    "graph_exec_id": integers(launches.table.exec[row].into()),
    "kernel_dispatch_count": integers(launches.table.dispatches[row]),
    "stack_id": integers(launches.table.correlation[row].0),
);

/// HIP events on the device.
struct HipEvents<'c> {
    context: &'c Context<'c>,
    table: &'c HipEventTable,
}

impl<'c> HipEvents<'c> {
    fn new(context: &'c Context<'c>) -> HipEvents<'c> {
        HipEvents {
            context,
            table: &context.session.hip_events,
        }
    }
}

columns!(HipEvents<'_> => Rows<'r> by column, |events, row|
    "guid": texts(Some(events.context.guid_text)),
    "nid": integers(events.context.node.id.cast_unsigned()),
    "pid": integers(events.context.session.process.pid.0.into()),
    "tid": integers(events.table.thread[row].0.into()),
    "start": integers(events.table.start[row].0),
    "end": integers(events.table.end[row].0),
    "duration": integers(duration(events.table.start[row], events.table.end[row])),
    "name": texts(Some(events.context.event_names[usize::from(events.table.operation[row]).min(2)])),
    "agent_name": texts(events.context.agent(events.table.agent[row]).map(|known| known.name)),
    "agent_abs_index": optional_integers(events.context.agent(events.table.agent[row]).map(|known| known.agent.node_id.into())),
    "agent_log_index": optional_integers(events.context.agent(events.table.agent[row]).map(|known| known.agent.logical_node_id.into())),
    "agent_type_index": optional_integers(events.context.agent(events.table.agent[row]).map(|known| known.agent.logical_node_type_id.into())),
    "agent_type": texts(events.context.agent(events.table.agent[row]).map(|known| known.kind)),
    "queue_id": integers(events.table.queue[row].0),
    "stream_id": integers(events.context.stream(events.table.stream[row])),
    "hip_event_handle": integers(events.table.event[row]),
    "source_queue_id": integers(events.table.source_queue[row].0),
    "stack_id": integers(events.table.correlation[row].0),
);

/// Events of the kernel driver.
struct KfdEvents<'c> {
    context: &'c Context<'c>,
    table: &'c KfdEventTable,
}

impl<'c> KfdEvents<'c> {
    fn new(context: &'c Context<'c>) -> KfdEvents<'c> {
        KfdEvents {
            context,
            table: &context.session.kfd_events,
        }
    }

    fn kind(&self, row: usize) -> Kind {
        self.context.session.operations[self.table.operation[row]].kind
    }

    /// Index of an agent; none for the handle that stands for none.
    fn agent(&self, handle: AgentHandle) -> Option<i64> {
        let known = self.context.agent(handle);
        known.map(|known| known.agent.node_id.into())
    }

    fn value(&self, row: usize) -> Option<i64> {
        let subject = kfd::subject(self.kind(row))?;
        Some(kfd::value(subject, &self.table.row(row)).cast_signed())
    }
}

columns!(KfdEvents<'_> => Rows<'r> by column, |events, row|
    "guid": texts(Some(events.context.guid_text)),
    "category": texts(Some(events.context.category(events.kind(row)))),
    "name": texts(Some(events.context.operation(events.table.operation[row]))),
    "nid": integers(events.context.node.id.cast_unsigned()),
    "pid": integers(events.context.session.process.pid.0.into()),
    "tid": integers(events.table.process[row].0.into()),
    "start": integers(events.table.start[row].0),
    "end": integers(events.table.end[row].0),
    "duration": integers(duration(events.table.start[row], events.table.end[row])),
    "agent_abs_index": optional_integers(events.agent(events.table.agent[row])),
    "dst_agent_abs_index": optional_integers(events.agent(events.table.dst_agent[row])),
    "prefetch_agent_abs_index": optional_integers(events.agent(events.table.prefetch_agent[row])),
    "preferred_agent_abs_index": optional_integers(events.agent(events.table.preferred_agent[row])),
    "start_address": integers(events.table.address[row]),
    "end_address": integers(events.table.end_address[row]),
    "error_code": integers(i64::from(events.table.error[row]).cast_unsigned()),
    "value": optional_integers(events.value(row)),
);
