//! The trace files.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;
use std::path::PathBuf;

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{AgentHandle, KernelId, StreamId, StringId};
use rpd_core::kernel_name::KernelLabels;
use rpd_core::options::Options;
use rpd_core::session::{DispatchTable, KernelSymbol, Session, Table};
use rpd_core::spool::format::CountedValue;

use super::combined::Begin;
use super::row::quote;
use super::{Row, counters, write_header};
use crate::WriteError;
use crate::file::TextFile;

/// Bytes of the records of a domain, for `--minimum-output-data`: what they take in the spool without tails.
pub(super) fn bytes(session: &Session, domain: Domain) -> u64 {
    let table = domain.table();
    let records = match table {
        Table::Calls => {
            let is_wanted = wanted(domain);
            let kinds = session.api.kind.iter();
            kinds.filter(|kind| is_wanted[**kind as usize]).count()
        }
        Table::Counted => {
            let counted = session.counted.ranges.iter();
            let (dispatches, values) = counted
                .filter(|(_, count)| *count > 0)
                .fold((0, 0), |(dispatches, values), (_, count)| {
                    (dispatches + 1, values + u64::from(*count))
                });
            return dispatches * table.record_len() as u64
                + values * size_of::<CountedValue>() as u64;
        }
        Table::Dispatches | Table::Copies | Table::Allocations | Table::Scratch => {
            session.records(table)
        }
    };
    (records * table.record_len()) as u64
}

/// Which kinds belong to a domain, by number of kind.
fn wanted(domain: Domain) -> [bool; 32] {
    let mut wanted = [false; 32];
    for kind in Kind::all() {
        wanted[kind as usize] = kind.domain() == domain;
    }
    wanted
}

/// Writes the trace file of a domain.
pub(super) fn write(
    session: &Session,
    domain: Domain,
    options: &Options,
    path: PathBuf,
) -> Result<PathBuf, WriteError> {
    let mut file = TextFile::create(path)?;
    write_rows(&mut file, session, domain, options, &Begin::run())?;
    file.finish()
}

/// Writes header and rows of a domain.
pub(super) fn write_rows(
    file: &mut TextFile,
    session: &Session,
    domain: Domain,
    options: &Options,
    begin: &Begin,
) -> Result<(), WriteError> {
    match domain.table() {
        Table::Calls => write_calls(file, session, domain, begin),
        Table::Dispatches => write_kernels(file, session, options, begin),
        Table::Copies => write_copies(file, session, options, begin),
        Table::Allocations => write_allocations(file, session, options, begin),
        Table::Scratch => write_scratch(file, session, options, begin),
        Table::Counted => counters::write_rows(file, session, options, begin),
    }
}

/// Texts in quotes, made once per text.
struct Quoted<'a> {
    session: &'a Session,
    texts: Vec<Option<Box<[u8]>>>,
}

impl<'a> Quoted<'a> {
    fn new(session: &'a Session) -> Quoted<'a> {
        Quoted {
            session,
            texts: vec![None; session.strings.len()],
        }
    }

    #[inline]
    fn get(&mut self, id: StringId) -> &[u8] {
        match self.texts.get_mut(id.0 as usize) {
            Some(text) => text.get_or_insert_with(|| {
                let mut quoted = Vec::new();
                quote(&mut quoted, self.session.strings.get(id));
                quoted.into()
            }),
            None => b"\"\"",
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

fn write_calls(
    file: &mut TextFile,
    session: &Session,
    domain: Domain,
    begin: &Begin,
) -> Result<(), WriteError> {
    write_header(
        file,
        begin,
        &[
            "Domain",
            "Function",
            "Process_Id",
            "Thread_Id",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
        ],
    );
    // By number of kind: its name in quotes when it belongs to the domain.
    let mut kinds: [Option<Vec<u8>>; 32] = [const { None }; 32];
    for kind in Kind::all().filter(|kind| kind.domain() == domain) {
        quote(kinds[kind as usize].insert(Vec::new()), kind.file_name());
    }
    let mut quoted = Quoted::new(session);
    let api = &session.api;
    let pid = session.process.pid.0;
    for index in api.indices() {
        let kind = api.kind[index];
        let Some(name) = &kinds[kind as usize] else {
            continue;
        };
        Row::new(&mut file.buffer, &begin.row)
            .quoted(name)
            .quoted(quoted.get(session.api_label(index)))
            .number(pid)
            .number(api.thread[index].0)
            .number(api.correlation[index].0)
            .number(api.start[index].0)
            .number(api.end[index].0)
            .end();
        file.flush_if_full()?;
    }
    Ok(())
}

/// The stream to show: none when records are grouped by queue.
fn stream(id: StreamId, options: &Options) -> u32 {
    if options.group_by_queue { 0 } else { id.0 }
}

/// What kernels use, in the order of the columns from `LDS_Block_Size` to `SGPR_Count`.
pub(super) struct Resources<'a> {
    symbols: HashMap<KernelId, &'a KernelSymbol>,
    /// Databases do not say what the hardware rounds up to.
    combined: bool,
}

impl<'a> Resources<'a> {
    pub(super) fn new(session: &'a Session, begin: &Begin) -> Resources<'a> {
        let symbols = session.kernel_symbols.iter();
        Resources {
            symbols: symbols.map(|symbol| (symbol.id, symbol)).collect(),
            combined: begin.combined,
        }
    }

    pub(super) fn of(&self, table: &DispatchTable, index: usize) -> [u64; 5] {
        let symbol = self.symbols.get(&table.kernel[index]);
        let of_symbol =
            |number: fn(&KernelSymbol) -> u32| symbol.map_or(0, |symbol| u64::from(number(symbol)));
        let lds = match self.combined {
            true => table.group_size[index].into(),
            false => symbol.map_or(0, |symbol| symbol.granted_lds()),
        };
        [
            lds,
            table.private_size[index].into(),
            of_symbol(|symbol| symbol.arch_vgpr_count),
            of_symbol(|symbol| symbol.accum_vgpr_count),
            of_symbol(|symbol| symbol.sgpr_count),
        ]
    }
}

fn write_kernels(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    begin: &Begin,
) -> Result<(), WriteError> {
    write_header(
        file,
        begin,
        &[
            "Kind",
            "Agent_Id",
            "Queue_Id",
            "Stream_Id",
            "Thread_Id",
            "Dispatch_Id",
            "Kernel_Id",
            "Kernel_Name",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
            "LDS_Block_Size",
            "Scratch_Size",
            "VGPR_Count",
            "Accum_VGPR_Count",
            "SGPR_Count",
            "Workgroup_Size_X",
            "Workgroup_Size_Y",
            "Workgroup_Size_Z",
            "Grid_Size_X",
            "Grid_Size_Y",
            "Grid_Size_Z",
        ],
    );
    let agents = AgentNames::new(session, options);
    let labels = KernelLabels::new(session, options.kernel_names);
    let resources = Resources::new(session, begin);
    let table = &session.dispatches;
    for index in table.indices() {
        let row = Row::new(&mut file.buffer, &begin.row)
            .text(Kind::KernelDispatch.file_name())
            .quoted(agents.get(table.agent[index]))
            .number(table.queue[index].0)
            .number(stream(table.stream[index], options))
            .number(table.thread[index].0)
            .number(table.dispatch[index].0)
            .number(table.kernel[index].0)
            .text(labels.dispatch(index))
            .number(table.correlation[index].0)
            .number(table.start[index].0)
            .number(table.end[index].0);
        resources
            .of(table, index)
            .into_iter()
            .chain(table.workgroup[index].map(u64::from))
            .chain(table.grid[index].map(u64::from))
            .fold(row, Row::number)
            .end();
        file.flush_if_full()?;
    }
    Ok(())
}

fn write_copies(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    begin: &Begin,
) -> Result<(), WriteError> {
    write_header(
        file,
        begin,
        &[
            "Kind",
            "Direction",
            "Stream_Id",
            "Source_Agent_Id",
            "Destination_Agent_Id",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
        ],
    );
    let agents = AgentNames::new(session, options);
    let mut quoted = Quoted::new(session);
    let table = &session.copies;
    for index in table.indices() {
        Row::new(&mut file.buffer, &begin.row)
            .text(Kind::MemoryCopy.file_name())
            .quoted(quoted.get(table.operation[index]))
            .number(stream(table.stream[index], options))
            .quoted(agents.get(table.src_agent[index]))
            .quoted(agents.get(table.dst_agent[index]))
            .number(table.correlation[index].0)
            .number(table.start[index].0)
            .number(table.end[index].0)
            .end();
        file.flush_if_full()?;
    }
    Ok(())
}

fn write_allocations(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    begin: &Begin,
) -> Result<(), WriteError> {
    write_header(
        file,
        begin,
        &[
            "Kind",
            "Operation",
            "Agent_Id",
            "Allocation_Size",
            "Address",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
        ],
    );
    let agents = AgentNames::new(session, options);
    let mut quoted = Quoted::new(session);
    let table = &session.allocations;
    for index in table.indices() {
        Row::new(&mut file.buffer, &begin.row)
            .text(Kind::MemoryAllocation.file_name())
            .quoted(quoted.get(table.operation[index]))
            .quoted(match table.agent[index] {
                AgentHandle(0) => begin.no_agent(Kind::MemoryAllocation),
                handle => agents.get(handle),
            })
            .number(table.bytes[index])
            .address(table.address[index])
            .number(table.correlation[index].0)
            .number(table.start[index].0)
            .number(table.end[index].0)
            .end();
        file.flush_if_full()?;
    }
    Ok(())
}

fn write_scratch(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    begin: &Begin,
) -> Result<(), WriteError> {
    write_header(
        file,
        begin,
        &[
            "Kind",
            "Operation",
            "Agent_Id",
            "Queue_Id",
            "Thread_Id",
            "Alloc_Flags",
            "Start_Timestamp",
            "End_Timestamp",
            "Allocation_Size",
        ][..if begin.combined { 8 } else { 9 }],
    );
    let agents = AgentNames::new(session, options);
    let mut quoted = Quoted::new(session);
    let table = &session.scratch;
    for index in table.indices() {
        let row = Row::new(&mut file.buffer, &begin.row)
            .text(Kind::ScratchMemory.file_name())
            .quoted(quoted.get(table.operation[index]))
            .quoted(agents.get(table.agent[index]))
            .number(table.queue[index].0)
            .number(table.thread[index].0)
            .number(table.flags[index])
            .number(table.start[index].0)
            .number(table.end[index].0);
        match begin.combined {
            true => row.end(),
            false => row.number(table.bytes[index]).end(),
        }
        file.flush_if_full()?;
    }
    Ok(())
}
