//! Rows that describe: strings, node, process, threads, agents, queues, streams, code.

use std::collections::{BTreeSet, HashMap};
use std::io;

use rpd_core::agent::AgentType;
use rpd_core::domain::Kind;
use rpd_core::ids::{AgentHandle, KernelId, QueueId, StreamId, StringId, ThreadId};
use rpd_core::kernel_name::{KernelSpellings, spellings, without_symbol};
use rpd_core::naming::Target;
use rpd_core::options::{KernelNames, Options, RocpdSchema};
use rpd_core::session::{ExtendedStrings, ResourceKind, Session, Table, event_operation_name};
use rpd_core::storage::by_id::ById;
use rpd_core::storage::column::Column;
use rusqlite::{Connection, params};

use super::identity::Node;
use super::names::Names;
use super::rows::Writer;
use super::tables::schema_version;
use super::unstored;
use super::{counters, kfd};
use crate::json::Object;
use crate::{describe, settings};

/// Categories and names of records of later versions of the schema.
const LATER_TEXTS: [(RocpdSchema, &str); 4] = [
    (RocpdSchema::Graphs, GRAPH_CATEGORY),
    (RocpdSchema::Events, EVENT_CATEGORY),
    (RocpdSchema::Events, "HIP_EVENT_RECORD"),
    (RocpdSchema::Events, "HIP_EVENT_WAIT"),
];

/// Category of the events of graph launches.
pub(super) const GRAPH_CATEGORY: &str = "HIP_GRAPH";
/// Category of the events of HIP events.
pub(super) const EVENT_CATEGORY: &str = "HIP_EVENT";

/// Ids of described things in the database.
pub(super) struct Ids<'a> {
    texts: Texts<'a>,
    kinds: HashMap<Kind, i64>,
    agents: HashMap<AgentHandle, i64>,
    /// By index of the counter.
    counters: Vec<i64>,
    /// Id of the empty string.
    pub(super) empty: i64,
}

impl Ids<'_> {
    #[inline]
    pub(super) fn string(&self, id: StringId) -> i64 {
        match self.texts.rows.get(id.0) {
            0 => self.empty,
            row => row.into(),
        }
    }

    /// Id of the name of a kind.
    pub(super) fn kind(&self, kind: Kind) -> i64 {
        self.kinds.get(&kind).copied().unwrap_or(self.empty)
    }

    /// Id of a text that [`LATER_TEXTS`] has.
    pub(super) fn text(&self, text: &str) -> i64 {
        let id = self.texts.texts.find(text);
        id.map_or(self.empty, |id| self.texts.rows.get(id.0).into())
    }

    /// Id of the counter with this index; 0, which is none, for others.
    #[inline]
    pub(super) fn counter(&self, index: u32) -> i64 {
        self.counters.get(index as usize).copied().unwrap_or(0)
    }

    /// Writes the texts.
    pub(super) fn write_strings(&self, writer: &Writer<'_>) -> io::Result<()> {
        let mut rows = writer.rows("rocpd_string", &["id", "string"])?;
        for (row, id) in (1..).zip(&self.texts.sorted) {
            rows.integer(row)
                .text(self.texts.texts.get(*id))
                .end_row()?;
        }
        rows.finish()
    }

    /// Row id of an agent; `None` for the handle that stands for no agent.
    pub(super) fn agent(&self, handle: AgentHandle) -> Option<i64> {
        self.agents.get(&handle).copied()
    }
}

/// Writes the information tables.
pub(super) fn write<'a>(
    connection: &Connection,
    names: &Names,
    node: &Node,
    session: &'a Session,
    options: &Options,
    target: &Target,
) -> rusqlite::Result<Ids<'a>> {
    let mut insert = connection.prepare(&format!(
        "INSERT INTO {} (tag, value) VALUES (?, ?)",
        names.table("rocpd_metadata")
    ))?;
    let version = schema_version(session, options);
    insert.execute(params!["schema_version", version.word()])?;
    insert.execute(params!["uuid", names.suffix])?;
    insert.execute(params!["guid", names.guid])?;
    // The tables of the schema have no place for sums.
    for (name, total) in session.named_removed(options.kernel_names) {
        let (domain, count, duration) = (total.domain.label(), total.count, total.total);
        let value = format!("{domain}\t{name}\t{count}\t{duration}");
        insert.execute(params!["rpd_removed", value])?;
    }

    let kernels: Vec<KernelSpellings> = session
        .kernel_symbols
        .iter()
        .map(|symbol| spellings(&symbol.name, options.kernel_names))
        .collect();
    let texts = Texts::new(session, &kernels, version).map_err(unstored)?;
    write_node_and_process(connection, names, node, session, options, target)?;
    write_threads(connection, names, session)?;
    write_queues_and_streams(connection, names, session, options)?;
    let agents = write_agents(connection, names, session, options)?;
    let counters = counters::write(connection, names, session, &agents)?;
    kfd::write_counters(connection, names, session)?;
    write_code(
        connection,
        names,
        session,
        options.kernel_names,
        &kernels,
        &agents,
    )?;
    Ok(Ids {
        kinds: texts.kinds(),
        texts,
        agents,
        counters,
        empty: 1,
    })
}

/// The texts of the database: byte-sorted, each once, ids from 1: so the empty string always has id 1.
struct Texts<'a> {
    texts: ExtendedStrings<'a>,
    sorted: Column<StringId>,
    /// Row ids, by [`StringId`].
    rows: ById<u32>,
}

impl<'a> Texts<'a> {
    fn new(
        session: &'a Session,
        kernels: &[KernelSpellings],
        of_database: RocpdSchema,
    ) -> io::Result<Texts<'a>> {
        let mut texts = ExtendedStrings::new(&session.strings);
        let mut add = |text: &str| {
            texts.intern(text);
        };
        add("");
        Kind::all().for_each(|kind| add(kind.file_name()));
        for (version, text) in LATER_TEXTS {
            if version <= of_database {
                add(text);
            }
        }
        // Those that only CUDA has.
        let waits = &session.hip_events;
        let operations: BTreeSet<u16> = waits.indices().map(|at| waits.operation[at]).collect();
        for operation in operations {
            add(event_operation_name(operation));
        }
        for (kind, operations) in &session.provider_names {
            add(kind);
            operations.iter().for_each(|operation| add(operation));
        }
        for agent in &session.agents {
            add(&agent.name);
            add(&agent.vendor_name);
            add(&agent.product_name);
            add(&agent.model_name);
        }
        for counter in &session.counters {
            add(&counter.name);
            counter.dimensions.iter().for_each(|of| add(&of.name));
        }
        session.code_objects.iter().for_each(|code| add(&code.uri));
        for (symbol, names) in session.kernel_symbols.iter().zip(kernels) {
            add(&symbol.name);
            add(&names.formatted);
            add(&names.demangled);
            add(&names.truncated);
        }
        let sorted = texts.in_order()?;
        let mut rows = ById::<u32>::zeros(texts.len(), session.storage.as_ref());
        for (row, id) in (1..).zip(&sorted) {
            if let Some(of_text) = rows.get_mut(id.0) {
                *of_text = row;
            }
        }
        Ok(Texts {
            texts,
            sorted,
            rows,
        })
    }

    /// The rows of the names of kinds.
    fn kinds(&self) -> HashMap<Kind, i64> {
        let row = |kind: Kind| {
            let id = self.texts.find(kind.file_name());
            id.map_or(1, |id| self.rows.get(id.0)).into()
        };
        Kind::all().map(|kind| (kind, row(kind))).collect()
    }
}

/// Required texts are NULL when there is none.
fn required(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn write_node_and_process(
    connection: &Connection,
    names: &Names,
    node: &Node,
    session: &Session,
    options: &Options,
    target: &Target,
) -> rusqlite::Result<()> {
    connection.execute(
        &format!(
            "INSERT INTO {} (id, hash, machine_id, system_name, hostname, release, version, hardware_name,
                domain_name) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            names.table("rocpd_info_node")
        ),
        params![
            node.id,
            node.hash,
            node.machine_id,
            node.system_name,
            node.hostname,
            node.release,
            node.version,
            node.hardware_name,
            node.domain_name,
        ],
    )?;
    let process = &session.process;
    let environment = process
        .environment
        .iter()
        .filter(|(name, _)| options.output_environment.keeps(name))
        // Of a name that is set twice the first counts, as for `getenv`; a JSON object has each key once.
        .scan(BTreeSet::new(), |seen, (name, value)| {
            Some(seen.insert(name).then_some((name, value)))
        })
        .flatten()
        .fold(Object::new(), |object, (name, value)| {
            object.text(name, value)
        })
        .end();
    let (init, fini) = (
        process.init_time.0.cast_signed(),
        process.fini_time.0.cast_signed(),
    );
    connection.execute(
        &format!(
            "INSERT INTO {} (id, nid, ppid, pid, init, fini, start, \"end\", command, environment, extdata)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            names.table("rocpd_info_process")
        ),
        params![
            names.pid,
            names.nid,
            process.ppid.0,
            names.pid,
            init,
            fini,
            init,
            fini,
            process.command.join(" "),
            environment,
            settings::of_database(session, options, target).to_string(),
        ],
    )?;
    Ok(())
}

fn write_threads(
    connection: &Connection,
    names: &Names,
    session: &Session,
) -> rusqlite::Result<()> {
    let mut threads: BTreeSet<ThreadId> = BTreeSet::new();
    let columns = Table::ALL
        .iter()
        .filter_map(|table| session.references(*table).threads);
    for column in columns {
        let mut last = None;
        for &thread in column {
            if last != Some(thread) {
                threads.insert(thread);
                last = Some(thread);
            }
        }
    }
    let given: HashMap<u64, &str> = session
        .resource_names
        .iter()
        .filter(|resource| resource.kind == ResourceKind::Thread)
        .map(|resource| (resource.resource, &*resource.name))
        .collect();
    let table = names.table("rocpd_info_thread");
    let mut insert = connection.prepare(&format!(
        "INSERT INTO {table} (id, ppid, tid, name) VALUES (?, ?, ?, ?)"
    ))?;
    for ThreadId(thread) in threads {
        let name = given.get(&u64::from(thread));
        insert.execute(params![thread, session.process.ppid.0, thread, name])?;
    }
    Ok(())
}

fn write_queues_and_streams(
    connection: &Connection,
    names: &Names,
    session: &Session,
    options: &Options,
) -> rusqlite::Result<()> {
    let references = || Table::ALL.iter().map(|table| session.references(*table));
    let queues = references().filter_map(|references| references.queues);
    let queues = queues.flatten().map(|&QueueId(id)| id.cast_signed());
    write_numbered(
        connection,
        &names.table("rocpd_info_queue"),
        "Queue",
        queues,
        &HashMap::new(),
    )?;
    let streams = references()
        .filter_map(|references| references.streams)
        .flatten()
        .filter(|_| !options.group_by_queue)
        .map(|&StreamId(id)| i64::from(id));
    write_numbered(
        connection,
        &names.table("rocpd_info_stream"),
        "Stream",
        streams,
        &session.stream_names(),
    )
}

/// `Default <what>` for 0, which is always there; the others are numbered from 0 in the order of their ids, so that
/// names do not depend on which of them was used first. A name of the program's takes the place of such a name.
fn write_numbered(
    connection: &Connection,
    table: &str,
    what: &str,
    ids: impl Iterator<Item = i64>,
    given: &HashMap<u32, &str>,
) -> rusqlite::Result<()> {
    let mut seen = BTreeSet::new();
    let mut last = 0;
    for id in ids {
        if id != last {
            seen.insert(id);
            last = id;
        }
    }
    seen.remove(&0);
    let mut insert =
        connection.prepare(&format!("INSERT INTO {table} (id, name) VALUES (?, ?)"))?;
    insert.execute(params![0, format!("Default {what}")])?;
    for (number, id) in seen.into_iter().enumerate() {
        let own = u32::try_from(id).ok().and_then(|id| given.get(&id));
        let name = own.map_or_else(|| format!("{what} {number}"), |&name| name.to_owned());
        insert.execute(params![id, name])?;
    }
    Ok(())
}

fn write_agents(
    connection: &Connection,
    names: &Names,
    session: &Session,
    options: &Options,
) -> rusqlite::Result<HashMap<AgentHandle, i64>> {
    let table = names.table("rocpd_info_agent");
    let mut insert = connection.prepare(&format!(
        "INSERT OR IGNORE INTO {table} (id, type, absolute_index, logical_index, type_index, uuid, name, model_name,
            vendor_name, product_name, user_name, extdata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ))?;
    let mut ids = HashMap::new();
    let mut gpus = 0;
    for agent in &session.agents {
        let is_gpu = agent.agent_type == AgentType::Gpu;
        let gpu_index = if is_gpu { gpus } else { -1 };
        gpus += i64::from(is_gpu);
        let has_type = match agent.agent_type {
            AgentType::Unknown => false,
            AgentType::Nic => options.rocpd_schema != Some(RocpdSchema::First),
            AgentType::Cpu | AgentType::Gpu => true,
        };
        let kind = has_type.then(|| agent.agent_type.label());
        insert.execute(params![
            agent.node_id,
            kind,
            agent.node_id,
            agent.logical_node_id,
            agent.logical_node_type_id,
            agent.device_id,
            required(&agent.name),
            agent.model_name,
            agent.vendor_name,
            agent.product_name,
            agent.product_name,
            describe::agent(agent, gpu_index),
        ])?;
        ids.insert(agent.handle, i64::from(agent.node_id));
    }
    // An agent without a description needs a row, or the views leave its records out.
    let mut next = ids.values().max().map_or(0, |id| id + 1);
    let used = |table: Table| {
        let references = session.references(table);
        let skips_zero = references.zero_is_no_agent;
        let agents = references.agents.into_iter().flatten();
        agents.filter(move |agent| !skips_zero || agent.0 != 0)
    };
    let dispatches = [Table::Dispatches, Table::Counted];
    let others = Table::ALL.iter().copied();
    let others = others.filter(|table| !dispatches.contains(table));
    let counters = session.counters.iter().map(|counter| &counter.agent);
    let handles = dispatches.into_iter().flat_map(used);
    for &handle in handles.chain(counters).chain(others.flat_map(used)) {
        if let std::collections::hash_map::Entry::Vacant(entry) = ids.entry(handle) {
            connection.execute(
                &format!("INSERT INTO {table} (id, name) VALUES (?, ?)"),
                params![next, format!("unknown agent {handle}")],
            )?;
            entry.insert(next);
            next += 1;
        }
    }
    Ok(ids)
}

fn write_code(
    connection: &Connection,
    names: &Names,
    session: &Session,
    how: KernelNames,
    kernels: &[KernelSpellings],
    agents: &HashMap<AgentHandle, i64>,
) -> rusqlite::Result<()> {
    let code_table = names.table("rocpd_info_code_object");
    let mut insert = connection.prepare(&format!(
        "INSERT INTO {code_table} (id, agent_id, uri, load_base, load_size, load_delta, extdata)
            VALUES (?, ?, ?, ?, ?, ?, ?)",
    ))?;
    let mut known_code = BTreeSet::new();
    for code in &session.code_objects {
        known_code.insert(code.id);
        insert.execute(params![
            code.id.0.cast_signed(),
            agents.get(&code.agent),
            required(&code.uri),
            code.load_base.cast_signed(),
            code.load_size.cast_signed(),
            code.load_delta,
            describe::code_object(code),
        ])?;
    }
    let mut insert = connection.prepare(&format!(
        "INSERT INTO {} (id, code_object_id, kernel_name, display_name, kernel_object, kernarg_segment_size,
            kernarg_segment_alignment, group_segment_size, private_segment_size, sgpr_count, arch_vgpr_count,
            accum_vgpr_count, extdata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        names.table("rocpd_info_kernel_symbol")
    ))?;
    let mut known: BTreeSet<KernelId> = BTreeSet::new();
    for (symbol, spellings) in session.kernel_symbols.iter().zip(kernels) {
        known.insert(symbol.id);
        if known_code.insert(symbol.code_object) {
            let id = symbol.code_object.0.cast_signed();
            connection.execute(&format!("INSERT INTO {code_table} (id) VALUES (?)"), [id])?;
        }
        insert.execute(params![
            symbol.id.0.cast_signed(),
            symbol.code_object.0.cast_signed(),
            required(&symbol.name),
            required(&spellings.formatted),
            symbol.kernel_object.cast_signed(),
            symbol.kernarg_size,
            symbol.kernarg_align,
            symbol.group_size,
            symbol.private_size,
            symbol.sgpr_count,
            symbol.arch_vgpr_count,
            symbol.accum_vgpr_count,
            describe::kernel_symbol(symbol, spellings),
        ])?;
    }
    // Likewise kernels that were not registered.
    let counted = &session.counted.dispatches.kernel;
    for &kernel in session.dispatches.kernel.iter().chain(counted) {
        if known.insert(kernel) {
            connection.execute(
                &format!("INSERT OR IGNORE INTO {code_table} (id) VALUES (0)"),
                [],
            )?;
            insert.execute(params![
                kernel.0.cast_signed(),
                0,
                kernel.to_string(),
                without_symbol(kernel.0, how),
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                "{}"
            ])?;
        }
    }
    Ok(())
}
