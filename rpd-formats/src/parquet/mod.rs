//! Parquet: one file per table, for engines that read columns. Names of columns are those of the views of the rocpd
//! database; marks are rows of the regions, and scratch operations have a file of their own.

mod cells;
mod counters;
mod dataset;
mod info;
mod records;
mod samples;
mod table;
mod traces;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use rpd_core::agent::Agent;
use rpd_core::domain::Kind;
use rpd_core::ids::{AgentHandle, KernelId, OperationId};
use rpd_core::options::Options;
use rpd_core::session::{
    DispatchTable, ExtendedStrings, KernelLabels, Session, Table as Records, event_operation_name,
};

use crate::file::PendingFile;
use crate::rocpd::identity::{self, Node};
use crate::{Output, WriteError};

pub use cells::write_cells;
pub use dataset::{Added, Dataset};

/// Writes `<prefix>_<table>.parquet` for every table that has rows, and returns their names: `regions`, `kernels`,
/// `memory_copies`, `memory_allocations`, `scratch_memory`, `pc_samples`, `thread_trace_instructions`, `thread_trace_waves`, and what describes them: `processes`, `agents`,
/// `code_objects`, `kernel_symbols`.
///
/// # Errors
/// When a file cannot be written; files finished before that stay.
pub(crate) fn write(output: &Output<'_>) -> Result<Vec<PathBuf>, WriteError> {
    let &Output {
        session,
        options,
        target,
        ..
    } = output;
    let context = Context::new(session, options).map_err(|source| WriteError::Io {
        path: target.file("counters_collection.parquet"),
        source,
    })?;
    let mut files = Vec::new();
    let tables = records::TABLES
        .iter()
        .chain(&counters::TABLES)
        .chain(&samples::TABLES)
        .chain(&traces::TABLES)
        .chain(&info::TABLES);
    for &(name, rows, columns) in tables {
        let height = rows(session);
        if height > 0 {
            let path = target.file(&format!("{name}.parquet"));
            let file = PendingFile::create(path)?;
            files.push(table::write(file, height, &context.texts, |rows| {
                context.release();
                columns(&context, rows);
            })?);
        }
    }
    Ok(files)
}

/// A table: its name, number of rows, and columns.
type Table = (
    &'static str,
    fn(&Session) -> usize,
    fn(&Context<'_>, &mut table::Rows<'_>),
);

/// Lookup tables that all writers of tables use.
struct Context<'a> {
    session: &'a Session,
    options: &'a Options,
    node: Node,
    /// All texts of the columns. Strings of the session keep their numbers.
    texts: ExtendedStrings<'a>,
    guid_text: u32,
    /// Dictionary ids of the names of categories, by kind.
    categories: [u32; 32],
    /// Dictionary ids of the names of operations on HIP events, by operation.
    event_names: [u32; 3],
    /// Names of kernels, by kernel and region.
    kernels: HashMap<(KernelId, u32), u32>,
    counters: counters::Lists,
    /// Dictionary ids of the names of counters, by counter.
    counter_names: Vec<u32>,
    agents: HashMap<AgentHandle, AgentTexts<'a>>,
    /// Types and levels of operations on memory, by id of the operation.
    memory: Vec<(Option<u32>, Option<u32>)>,
    samples: samples::SampleTexts,
}

struct AgentTexts<'a> {
    agent: &'a Agent,
    name: u32,
    kind: u32,
}

impl<'a> Context<'a> {
    fn new(session: &'a Session, options: &'a Options) -> io::Result<Context<'a>> {
        let node = Node::from_session(session);
        // A recording that was read from a database keeps its guid.
        let guid = match &session.origin {
            Some(origin) => origin.guid.clone(),
            None => identity::guid(&session.process, &node),
        };
        let mut texts = ExtendedStrings::new(&session.strings);
        let mut categories = [0; 32];
        for kind in Kind::all() {
            categories[kind as usize] = texts.intern(kind.file_name()).0;
        }
        let event_names =
            [0, 1, 2].map(|operation| texts.intern(event_operation_name(operation)).0);
        let labels = KernelLabels::new(session, options.kernel_names);
        // A kernel's name is the same in all of its dispatches within a region: it is made once.
        let mut known = HashMap::new();
        for table in [&session.dispatches, &session.counted.dispatches] {
            for index in table.indices() {
                known
                    .entry((table.kernel[index], table.region[index]))
                    .or_insert_with(|| texts.intern(labels.of(table, index)).0);
            }
        }
        let counter_names = session.counters.iter();
        let counter_names = counter_names
            .map(|counter| texts.intern(&counter.name).0)
            .collect();
        let agents = session
            .agents
            .iter()
            .map(|agent| {
                let known = AgentTexts {
                    agent,
                    name: texts.intern(&agent.name).0,
                    kind: texts.intern(agent.agent_type.label()).0,
                };
                (agent.handle, known)
            })
            .collect();
        let operations = session.operations.iter();
        let memory = operations.map(|operation| match operation.class.memory() {
            Some((level, action)) => (
                action.map(|action| texts.intern(action.label()).0),
                Some(texts.intern(level.label()).0),
            ),
            None => (None, None),
        });
        let memory = memory.collect();
        let guid_text = texts.intern(&guid).0;
        let samples = samples::SampleTexts::new(session, &mut texts);
        Ok(Context {
            session,
            options,
            node,
            texts,
            guid_text,
            categories,
            event_names,
            kernels: known,
            counters: counters::Lists::new(session)?,
            counter_names,
            agents,
            memory,
            samples,
        })
    }

    /// The dictionary id of a dispatch's name.
    fn kernel(&self, table: &DispatchTable, index: usize) -> u32 {
        let key = (table.kernel[index], table.region[index]);
        self.kernels.get(&key).copied().unwrap_or_default()
    }

    /// Releases the memory of records in files.
    fn release(&self) {
        for table in Records::ALL {
            self.session.columns(*table).release();
        }
        self.counters.release();
    }

    /// Type and level of an operation on memory.
    fn memory(&self, operation: OperationId) -> (Option<u32>, Option<u32>) {
        self.memory[operation.0 as usize]
    }

    /// The dictionary id of an operation's name.
    fn operation(&self, operation: OperationId) -> u32 {
        self.session.operations[operation].name.0
    }

    fn agent(&self, handle: AgentHandle) -> Option<&AgentTexts<'a>> {
        self.agents.get(&handle)
    }
}
