//! Writers of the CSV trace files.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;
use std::path::PathBuf;

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{AgentHandle, KernelId, StreamId, StringId};
use rpd_core::options::Options;
use rpd_core::session::{
    AllocationTable, CopyTable, DispatchTable, KernelLabels, KernelSymbol, Operations,
    ScratchTable, Session, Table,
};
use rpd_core::spool::format::GraphNode;

use super::combined::Shape;
use super::row::{Row, quote, quote_free};
use super::{Records as _, counters, kfd, write_header};
use crate::WriteError;
use crate::columns::{Columns as _, columns};
use crate::file::TextFile;

/// Writes the trace file of a domain.
pub(super) fn write(
    session: &Session,
    domain: Domain,
    options: &Options,
    path: PathBuf,
) -> Result<PathBuf, WriteError> {
    let mut file = TextFile::create(path)?;
    let shape = Shape {
        graphs: has_graphs(session),
        // Files of a run have the columns of the original's.
        replays: session.origin.is_some() && !session.counted.dispatches.replay.is_empty(),
        ..Shape::run(options.csv_safe)
    };
    write_rows(&mut file, session, domain, options, &shape)?;
    file.finish()
}

/// Writes header and rows of a domain.
pub(super) fn write_rows(
    file: &mut TextFile,
    session: &Session,
    domain: Domain,
    options: &Options,
    shape: &Shape,
) -> Result<(), WriteError> {
    match domain.table() {
        Table::Calls => write_calls(file, session, domain, shape),
        Table::Dispatches => write_kernels(file, session, options, shape),
        Table::Copies => write_copies(file, session, options, shape),
        Table::Allocations => write_allocations(file, session, options, shape),
        Table::Scratch => write_scratch(file, session, options, shape),
        Table::Counted => counters::write_rows(file, session, options, shape),
        // Of no domain: `samples` and `graphs` have their files.
        Table::Samples | Table::GraphLaunches | Table::HipEvents => Ok(()),
        Table::KfdEvents => kfd::write_rows(file, session, options, shape),
    }
}

/// Greatest number of quoted texts that are cached, and their greatest total size in bytes.
const KEPT_TEXTS: usize = 1 << 16;
const KEPT_BYTES: usize = 4 << 20;

/// Texts in quotes: the first of the session are made once, those that there is no room for whenever they are needed.
struct Quoted<'a> {
    session: &'a Session,
    safe: bool,
    /// By id, those that were needed so far.
    texts: Vec<Option<Box<[u8]>>>,
    /// Bytes that further ones may have.
    left: usize,
    /// A text that is not kept.
    other: Vec<u8>,
}

impl<'a> Quoted<'a> {
    fn new(session: &'a Session, shape: &Shape) -> Quoted<'a> {
        Quoted {
            session,
            safe: shape.safe,
            texts: vec![None; session.strings.len().min(KEPT_TEXTS)],
            left: KEPT_BYTES,
            other: Vec::new(),
        }
    }

    #[inline]
    fn get(&mut self, id: StringId) -> &[u8] {
        let place = id.0 as usize;
        if !matches!(self.texts.get(place), Some(Some(_))) {
            self.make(id);
        }
        match self.texts.get(place) {
            Some(Some(text)) => text,
            _ => &self.other,
        }
    }

    /// Puts a text into `texts`, or into `other` when there is no room.
    #[cold]
    fn make(&mut self, id: StringId) {
        self.other.clear();
        quote_free(&mut self.other, self.session.strings.get(id), self.safe);
        if let Some(place) = self.texts.get_mut(id.0 as usize)
            && let Some(left) = self.left.checked_sub(self.other.len())
        {
            self.left = left;
            *place = Some(self.other.as_slice().into());
        }
    }
}

/// Names of agents in quotes; empty for handles that name none.
pub(super) struct AgentNames(HashMap<AgentHandle, Vec<u8>>);

impl AgentNames {
    pub(super) fn new(session: &Session, options: &Options) -> AgentNames {
        AgentNames(
            session
                .agents
                .iter()
                .map(|agent| {
                    let (label, number) = agent.label(options.agent_index);
                    let mut quoted = Vec::new();
                    quote(&mut quoted, &format!("{label} {number}"));
                    (agent.handle, quoted)
                })
                .collect(),
        )
    }

    pub(super) fn get(&self, handle: AgentHandle) -> &[u8] {
        self.0.get(&handle).map_or(b"\"\"", Vec::as_slice)
    }
}

/// Calls of a domain.
struct Calls<'a> {
    session: &'a Session,
    texts: Quoted<'a>,
    /// By number of kind: its name in quotes when it belongs to the domain.
    kinds: [Option<Vec<u8>>; 1 << u8::BITS],
    index: usize,
}

columns!(Calls<'_> => Row<'r>, |call|
    "Domain": quoted(call.kind().unwrap_or_default()),
    "Function": quoted(call.texts.get(call.session.call_label(call.index))),
    "Process_Id": number(call.session.process.pid.0),
    "Thread_Id": number(call.session.calls.thread[call.index].0),
    "Correlation_Id": number(call.session.calls.correlation[call.index].0),
    "Start_Timestamp": number(call.session.calls.start[call.index].0),
    "End_Timestamp": number(call.session.calls.end[call.index].0),
);

impl Calls<'_> {
    #[inline]
    fn kind(&self) -> Option<&[u8]> {
        self.kinds[self.session.call(self.index).kind as usize].as_deref()
    }
}

fn write_calls(
    file: &mut TextFile,
    session: &Session,
    domain: Domain,
    shape: &Shape,
) -> Result<(), WriteError> {
    let mut kinds = [const { None }; 1 << u8::BITS];
    let is_wanted = session
        .operations
        .select(|operation| operation.domain() == domain);
    for kind in Kind::all().filter(|kind| kind.domain() == domain) {
        quote(kinds[kind as usize].insert(Vec::new()), kind.file_name());
    }
    let mut rows = Calls {
        session,
        texts: Quoted::new(session, shape),
        kinds,
        index: 0,
    };
    let calls = &session.calls;
    let selected = calls.indices();
    let selected = selected.filter(|&index| is_wanted[calls.operation[index].0 as usize]);
    super::write_rows(file, shape, &mut rows, selected, |rows, index| {
        rows.index = index;
    })
}

/// The stream to show: none when records are grouped by queue.
pub(super) fn stream(id: StreamId, options: &Options) -> u32 {
    if options.group_by_queue { 0 } else { id.0 }
}

/// Registers and memory of the kernels of dispatches.
pub(super) struct Resources<'a> {
    symbols: HashMap<KernelId, &'a KernelSymbol>,
    table: &'a DispatchTable,
    shape: &'a Shape,
    /// Index of the selected dispatch.
    index: usize,
    symbol: Option<&'a KernelSymbol>,
}

impl<'a> Resources<'a> {
    pub(super) fn new(
        session: &'a Session,
        table: &'a DispatchTable,
        shape: &'a Shape,
    ) -> Resources<'a> {
        let symbols = session.kernel_symbols.iter();
        Resources {
            symbols: symbols.map(|symbol| (symbol.id, symbol)).collect(),
            table,
            shape,
            index: 0,
            symbol: None,
        }
    }

    #[inline]
    pub(super) fn select(&mut self, index: usize) {
        self.index = index;
        self.symbol = self.symbols.get(&self.table.kernel[index]).copied();
    }

    /// Bytes of local memory: what the hardware grants. Databases lack that, so the converter's shape has what the dispatch
    /// requested.
    pub(super) fn lds(&self) -> u64 {
        if self.shape.combined {
            self.table.group_size[self.index].into()
        } else {
            self.symbol.map_or(0, |symbol| symbol.granted_lds())
        }
    }

    pub(super) fn arch_vgprs(&self) -> u32 {
        self.symbol.map_or(0, |symbol| symbol.arch_vgpr_count)
    }

    pub(super) fn accum_vgprs(&self) -> u32 {
        self.symbol.map_or(0, |symbol| symbol.accum_vgpr_count)
    }

    pub(super) fn sgprs(&self) -> u32 {
        self.symbol.map_or(0, |symbol| symbol.sgpr_count)
    }
}

/// Kernel dispatches.
struct Kernels<'a> {
    table: &'a DispatchTable,
    options: &'a Options,
    agents: AgentNames,
    labels: KernelLabels<'a>,
    resources: Resources<'a>,
    index: usize,
}

columns!(Kernels<'_> => Row<'r>, |kernel|
    "Kind": text(Kind::KernelDispatch.file_name()),
    "Agent_Id": quoted(kernel.agents.get(kernel.table.agent[kernel.index])),
    "Queue_Id": number(kernel.table.queue[kernel.index].0),
    "Stream_Id": number(stream(kernel.table.stream[kernel.index], kernel.options)),
);

/// The columns of graphs, in files made of databases that have them.
struct GraphColumns(GraphNode);

columns!(GraphColumns => Row<'r>, |graph|
    "Graph_Exec_Id": number(graph.0.exec),
    "Graph_Node_Id": number(graph.0.node),
);

/// Whether files that are made of this session have the columns of graphs. Runs leave them to the conversion of databases, as
/// the original's tool does.
pub(super) fn has_graphs(session: &Session) -> bool {
    let has_nodes = !session.dispatches.graph.is_empty() || !session.copies.graph.is_empty();
    let origin = session.origin.as_ref();
    origin.is_some_and(|origin| origin.has_graphs || has_nodes)
}

/// Writes the header of a file whose columns of graphs stand between others.
fn write_header_with_graphs(
    file: &mut TextFile,
    shape: &Shape,
    before: &[&'static str],
    behind: &[&'static str],
) {
    let graphs = if shape.graphs {
        GraphColumns::COLUMNS
    } else {
        &[]
    };
    let names = before.iter().chain(graphs).chain(behind);
    write_header(file, shape, names.copied());
}

/// The columns of a dispatch behind those of graphs.
struct KernelEnd<'k, 'a>(&'k mut Kernels<'a>);

columns!(KernelEnd<'_, '_> => Row<'r>, |kernel|
    "Thread_Id": number(kernel.0.table.thread[kernel.0.index].0),
    "Dispatch_Id": number(kernel.0.table.dispatch[kernel.0.index].0),
    "Kernel_Id": number(kernel.0.table.kernel[kernel.0.index].0),
    "Kernel_Name": free_text(kernel.0.labels.dispatch(kernel.0.index)),
    "Correlation_Id": number(kernel.0.table.correlation[kernel.0.index].0),
    "Start_Timestamp": number(kernel.0.table.start[kernel.0.index].0),
    "End_Timestamp": number(kernel.0.table.end[kernel.0.index].0),
    "LDS_Block_Size": number(kernel.0.resources.lds()),
    "Scratch_Size": number(kernel.0.table.private_size[kernel.0.index]),
    "VGPR_Count": number(kernel.0.resources.arch_vgprs()),
    "Accum_VGPR_Count": number(kernel.0.resources.accum_vgprs()),
    "SGPR_Count": number(kernel.0.resources.sgprs()),
    "Workgroup_Size_X": number(kernel.0.table.workgroup[kernel.0.index][0]),
    "Workgroup_Size_Y": number(kernel.0.table.workgroup[kernel.0.index][1]),
    "Workgroup_Size_Z": number(kernel.0.table.workgroup[kernel.0.index][2]),
    "Grid_Size_X": number(kernel.0.table.grid[kernel.0.index][0]),
    "Grid_Size_Y": number(kernel.0.table.grid[kernel.0.index][1]),
    "Grid_Size_Z": number(kernel.0.table.grid[kernel.0.index][2]),
);

fn write_kernels(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    shape: &Shape,
) -> Result<(), WriteError> {
    let table = &session.dispatches;
    let mut kernels = Kernels {
        table,
        options,
        agents: AgentNames::new(session, options),
        labels: KernelLabels::new(session, options.kernel_names),
        resources: Resources::new(session, table, shape),
        index: 0,
    };
    write_header_with_graphs(file, shape, Kernels::COLUMNS, KernelEnd::COLUMNS);
    for index in table.indices() {
        kernels.index = index;
        kernels.resources.select(index);
        let mut row = Row::new(&mut file.buffer, &shape.row, shape);
        kernels.append_to(&mut row);
        if shape.graphs {
            GraphColumns(table.graph_of(index)).append_to(&mut row);
        }
        KernelEnd(&mut kernels).append_to(&mut row);
        row.end();
        file.flush_if_full()?;
    }
    Ok(())
}

/// Memory copies.
struct Copies<'a> {
    table: &'a CopyTable,
    operations: &'a Operations,
    options: &'a Options,
    agents: AgentNames,
    texts: Quoted<'a>,
    index: usize,
}

columns!(Copies<'_> => Row<'r>, |copy|
    "Kind": text(Kind::MemoryCopy.file_name()),
    "Direction": quoted(copy.texts.get(copy.operations[copy.table.operation[copy.index]].name)),
    "Stream_Id": number(stream(copy.table.stream[copy.index], copy.options)),
);

/// The columns of a copy behind those of graphs.
struct CopyEnd<'c, 'a>(&'c Copies<'a>);

columns!(CopyEnd<'_, '_> => Row<'r>, |copy|
    "Source_Agent_Id": quoted(copy.0.agents.get(copy.0.table.src_agent[copy.0.index])),
    "Destination_Agent_Id": quoted(copy.0.agents.get(copy.0.table.dst_agent[copy.0.index])),
    "Correlation_Id": number(copy.0.table.correlation[copy.0.index].0),
    "Start_Timestamp": number(copy.0.table.start[copy.0.index].0),
    "End_Timestamp": number(copy.0.table.end[copy.0.index].0),
);

fn write_copies(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    shape: &Shape,
) -> Result<(), WriteError> {
    let table = &session.copies;
    let mut copies = Copies {
        table,
        operations: &session.operations,
        options,
        agents: AgentNames::new(session, options),
        texts: Quoted::new(session, shape),
        index: 0,
    };
    write_header_with_graphs(file, shape, Copies::COLUMNS, CopyEnd::COLUMNS);
    for index in table.indices() {
        copies.index = index;
        let mut row = Row::new(&mut file.buffer, &shape.row, shape);
        copies.append_to(&mut row);
        if shape.graphs {
            GraphColumns(table.graph_of(index)).append_to(&mut row);
        }
        CopyEnd(&copies).append_to(&mut row);
        row.end();
        file.flush_if_full()?;
    }
    Ok(())
}

/// Allocations and frees.
struct Allocations<'a> {
    table: &'a AllocationTable,
    shape: &'a Shape,
    operations: &'a Operations,
    agents: AgentNames,
    texts: Quoted<'a>,
    index: usize,
}

columns!(Allocations<'_> => Row<'r>, |allocation|
    "Kind": text(Kind::MemoryAllocation.file_name()),
    "Operation": quoted(allocation.texts.get(allocation.operations[allocation.table.operation[allocation.index]].name)),
    "Agent_Id": quoted(match allocation.table.agent[allocation.index] {
        AgentHandle(0) => allocation.shape.no_agent(),
        handle => allocation.agents.get(handle),
    }),
    "Allocation_Size": number(allocation.table.bytes[allocation.index]),
    "Address": address(allocation.table.address[allocation.index]),
    "Correlation_Id": number(allocation.table.correlation[allocation.index].0),
    "Start_Timestamp": number(allocation.table.start[allocation.index].0),
    "End_Timestamp": number(allocation.table.end[allocation.index].0),
);

fn write_allocations(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    shape: &Shape,
) -> Result<(), WriteError> {
    let table = &session.allocations;
    let mut allocations = Allocations {
        table,
        shape,
        operations: &session.operations,
        agents: AgentNames::new(session, options),
        texts: Quoted::new(session, shape),
        index: 0,
    };
    let selected = table.indices();
    super::write_rows(file, shape, &mut allocations, selected, |records, index| {
        records.index = index;
    })
}

/// Scratch operations.
struct Scratch<'a> {
    table: &'a ScratchTable,
    operations: &'a Operations,
    agents: AgentNames,
    texts: Quoted<'a>,
    index: usize,
}

columns!(Scratch<'_> => Row<'r>, |scratch|
    "Kind": text(Kind::ScratchMemory.file_name()),
    "Operation": quoted(scratch.texts.get(scratch.operations[scratch.table.operation[scratch.index]].name)),
    "Agent_Id": quoted(scratch.agents.get(scratch.table.agent[scratch.index])),
    "Queue_Id": number(scratch.table.queue[scratch.index].0),
    "Thread_Id": number(scratch.table.thread[scratch.index].0),
    "Alloc_Flags": number(scratch.table.flags[scratch.index]),
    "Start_Timestamp": number(scratch.table.start[scratch.index].0),
    "End_Timestamp": number(scratch.table.end[scratch.index].0),
);

/// The last column of scratch operations, which files in the converter's shape lack.
struct ScratchSize(u64);

columns!(ScratchSize => Row<'r>, |size|
    "Allocation_Size": number(size.0),
);

fn write_scratch(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    shape: &Shape,
) -> Result<(), WriteError> {
    let table = &session.scratch;
    let mut scratch = Scratch {
        table,
        operations: &session.operations,
        agents: AgentNames::new(session, options),
        texts: Quoted::new(session, shape),
        index: 0,
    };
    let more = if shape.combined {
        &[]
    } else {
        ScratchSize::COLUMNS
    };
    let names = Scratch::COLUMNS.iter().chain(more);
    write_header(file, shape, names.copied());
    for index in table.indices() {
        scratch.index = index;
        let mut row = Row::new(&mut file.buffer, &shape.row, shape);
        scratch.append_to(&mut row);
        if !shape.combined {
            ScratchSize(table.bytes[index]).append_to(&mut row);
        }
        row.end();
        file.flush_if_full()?;
    }
    Ok(())
}
