//! Records of the meta stream: process, names, agents, code objects, notes.

use std::collections::BTreeMap;
use std::io;

use super::super::{
    ClockAnchor, CodeObject, HostFunction, KernelSymbol, Process, Provider, Region, ResourceKind,
    ResourceName, Session, Table,
};
use crate::agent::Agent;
use crate::domain::{Domain, Kind};
use crate::ids::{
    AgentHandle, CodeObjectId, CorrelationId, KernelId, Nanoseconds, OperationId, ProcessId,
    StringId,
};
use crate::launcher::Place;
use crate::spool::format::{self, space};
use crate::spool::reader::{ByteStrings, Record};
use crate::storage::column::Storage;
use crate::text::os_text;

/// Greatest numbers of kinds and operations plus 1. Names with greater numbers are ignored: they are damage.
const MAX_KINDS: u32 = 256;
const MAX_OPERATIONS: u32 = 1 << 13;
/// Value of [`RecordHeader::aux`](format::RecordHeader::aux) for a code object that was loaded.
const LOADED: u16 = 1;
/// Number of notes that are kept. Further ones are dropped.
const MAX_NOTES: usize = 200;

/// Names of a kind and its operations, by the provider's numbers.
#[derive(Debug, Default)]
struct KindNames {
    name: String,
    operations: BTreeMap<u32, String>,
}

/// A kind of the provider that rpd knows, with its operations by the provider's numbers.
#[derive(Debug)]
struct Resolved {
    kind: Kind,
    is_call: bool,
    /// Names of the operations; 0 for a number that has none.
    names: Vec<StringId>,
    /// Operations of the session; `None` for a number that no record has had yet.
    operations: Vec<Option<OperationId>>,
}

/// Facts of the meta stream about numbers in other records.
#[derive(Debug, Default)]
pub(super) struct Meta {
    pub(super) has_process: bool,
    /// Whether records of calls can have stacks.
    pub(super) has_stacks: bool,
    /// End of recording in nanoseconds, as the collector wrote it; 0 when it did not, because the process was killed.
    pub(super) end_time: u64,
    names: BTreeMap<(u32, u32), KindNames>,
    /// By the numbers of the callback service; kinds that only buffers have follow from [`MAX_KINDS`] on.
    callbacks: Vec<Option<Resolved>>,
    regions: BTreeMap<u32, Region>,
    dirty: bool,
}

impl Meta {
    pub(super) fn load_process(
        &mut self,
        record: &Record<'_>,
        session: &mut Session,
    ) -> Option<()> {
        let (fixed, tail) = record.parse::<format::Process>()?;
        if !self.has_process {
            session.process = process(&fixed, tail);
            self.has_process = true;
            self.has_stacks = fixed.stacks != 0;
        }
        Some(())
    }

    pub(super) fn load_kind_name(&mut self, record: &Record<'_>) -> Option<()> {
        let (_, kind, text) = self.name(record)?;
        if let Some(kind) = kind {
            kind.name = text;
        }
        Some(())
    }

    pub(super) fn load_operation_name(&mut self, record: &Record<'_>) -> Option<()> {
        let (first, kind, text) = self.name(record)?;
        if let Some(kind) = kind {
            let names = text.split('\0').map(str::to_owned);
            kind.operations.extend((first..MAX_OPERATIONS).zip(names));
        }
        Some(())
    }

    /// Number of the first operation, names of its kind (`None` when the kind's number is out of range), and the
    /// text.
    fn name(&mut self, record: &Record<'_>) -> Option<(u32, Option<&mut KindNames>, String)> {
        let (fixed, text) = record.parse_text::<format::Name>(|name| name.text_len)?;
        let key = (fixed.space, fixed.kind);
        let kind = (fixed.kind < MAX_KINDS).then(|| {
            self.dirty = true;
            self.names.entry(key).or_default()
        });
        Some((fixed.operation, kind, text.into_owned()))
    }

    pub(super) fn load_region(&mut self, record: &Record<'_>, session: &mut Session) -> Option<()> {
        let (fixed, message) = record.parse_text::<format::Region>(|region| region.text_len)?;
        let region = Region {
            message: session.strings.intern(&message),
            correlation: CorrelationId(fixed.correlation),
        };
        self.regions.entry(fixed.id).or_insert(region);
        Some(())
    }

    pub(super) fn load_end(&mut self, record: &Record<'_>, session: &mut Session) -> Option<()> {
        let (fixed, _) = record.parse::<format::TimedText>()?;
        self.end_time = self.end_time.max(fixed.time);
        if fixed.value != 0 {
            session.process.last_anchor = Some(ClockAnchor {
                time: Nanoseconds(fixed.time),
                real_time: fixed.value,
            });
        }
        session.ledger.ended = true;
        Some(())
    }

    /// Prepares the lookup of kinds and operations by number. To be called when the meta stream has been read.
    pub(super) fn resolve(&mut self, session: &mut Session) {
        self.dirty = false;
        for ((space, number), names) in &self.names {
            let table = &mut self.callbacks;
            let Some(kind) = Kind::from_name(&names.name) else {
                continue;
            };
            // Records have numbers of the callback service, but for events of the driver, which it does not have: their kinds
            // stand behind its. Names of the other kinds are kept for outputs only.
            let number = match *space {
                space::CALLBACK => *number as usize,
                space::BUFFER if kind.domain() == Domain::Kfd => (MAX_KINDS + number) as usize,
                _ => continue,
            };
            if table.len() <= number {
                table.resize_with(number + 1, || None);
            }
            let last = names.operations.keys().next_back();
            // Provider's numbers of operations have gaps. Id 0 marks them.
            let mut ids = vec![StringId(0); last.map_or(0, |&last| last as usize + 1)];
            for (&operation, name) in &names.operations {
                ids[operation as usize] = session.strings.intern(name);
            }
            table[number] = Some(Resolved {
                kind,
                is_call: kind.is_call(),
                names: ids,
                operations: Vec::new(),
            });
        }
    }

    /// The operation of a call by the provider's numbers; `None` when the kind is unknown or not one of functions.
    #[inline]
    pub(super) fn call(
        &mut self,
        kind: u16,
        number: u32,
        session: &mut Session,
    ) -> Option<OperationId> {
        let kind = usize::from(kind);
        let resolved = self.callbacks.get(kind)?.as_ref()?;
        if !resolved.is_call {
            return None;
        }
        match resolved.operations.get(number as usize) {
            Some(Some(known)) => Some(*known),
            _ => Some(self.add_operation(resolved.kind, Some(kind), number, session)),
        }
    }

    /// The operation of a kind whose records do not hold the kind's number.
    pub(super) fn operation(
        &mut self,
        kind: Kind,
        number: u32,
        session: &mut Session,
    ) -> OperationId {
        let is_it = |known: &Option<Resolved>| known.as_ref().is_some_and(|it| it.kind == kind);
        let place = self.callbacks.iter().position(is_it);
        let resolved = place.and_then(|place| self.callbacks[place].as_ref());
        let known = resolved.and_then(|resolved| resolved.operations.get(number as usize));
        match known {
            Some(Some(known)) => *known,
            _ => self.add_operation(kind, place, number, session),
        }
    }

    /// Adds an operation to the session. Without a name it gets one that contains its number.
    #[cold]
    fn add_operation(
        &mut self,
        kind: Kind,
        place: Option<usize>,
        number: u32,
        session: &mut Session,
    ) -> OperationId {
        let mut resolved = place.and_then(|place| self.callbacks[place].as_mut());
        let names = resolved.as_ref().map(|resolved| &resolved.names);
        // A newer provider has operations without a recorded name. A name made of the number keeps them apart.
        let name = match names.and_then(|names| names.get(number as usize)) {
            Some(&name) if name.0 != 0 => name,
            _ => {
                let made = format!("{}_{number}", kind.provider_name());
                session.strings.intern(&made)
            }
        };
        let operations = &mut session.operations;
        let id = operations.add(&session.strings, kind, name, Some(number));
        // The limit keeps a damaged number from making a table of gigabytes.
        if let Some(resolved) = &mut resolved
            && number < MAX_OPERATIONS
        {
            let number = number as usize;
            if resolved.operations.len() <= number {
                resolved.operations.resize(number + 1, None);
            }
            resolved.operations[number] = Some(id);
        }
        id
    }

    /// Whether names were read after [`Meta::resolve`].
    pub(super) fn is_stale(&self) -> bool {
        self.dirty
    }

    /// Moves the facts to the session, ordered by id, each id once.
    pub(super) fn finish(self, session: &mut Session, storage: &Storage) -> io::Result<()> {
        let numbers: BTreeMap<u32, u32> = self.regions.keys().copied().zip(1..).collect();
        let number = |region| numbers.get(&region).copied().unwrap_or(0);
        for table in Table::ALL {
            if let Some(column) = session.regions_mut(*table) {
                column.rewrite(storage, number)?;
            }
        }
        session.regions = self.regions.into_values().collect();
        session.code_objects.sort_by_key(|code| code.id);
        session.code_objects.dedup_by_key(|code| code.id);
        session.kernel_symbols.sort_by_key(|symbol| symbol.id);
        session.kernel_symbols.dedup_by_key(|symbol| symbol.id);
        session.host_functions.sort_by_key(|function| function.id);
        session.host_functions.dedup_by_key(|function| function.id);
        session.provider_names = numbered(&self.names, space::CALLBACK);
        session.callback_kinds = session.provider_names.len();
        session
            .provider_names
            .extend(numbered(&self.names, space::BUFFER));
        Ok(())
    }
}

pub(super) fn load_agent(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, tail) = record.parse::<format::AgentRecord>()?;
    session
        .agents
        .push(Agent::parse(AgentHandle(fixed.handle), tail));
    Some(())
}

pub(super) fn load_code_object(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, uri) = record.parse_text::<format::CodeObject>(|code| code.uri_len)?;
    // Code objects that were unloaded are kept, because dispatches refer to their kernels.
    if record.header.aux != LOADED {
        return Some(());
    }
    session.code_objects.push(CodeObject {
        id: CodeObjectId(fixed.id),
        agent: AgentHandle(fixed.agent),
        uri: uri.into_owned(),
        load_base: fixed.load_base,
        load_size: fixed.load_size,
        load_delta: fixed.load_delta,
        storage_type: fixed.storage_type,
        memory_base: fixed.memory_base,
        memory_size: fixed.memory_size,
        size: fixed.size,
    });
    Some(())
}

pub(super) fn load_kernel_symbol(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, name) = record.parse_text::<format::KernelSymbol>(|symbol| symbol.name_len)?;
    session.kernel_symbols.push(KernelSymbol {
        id: KernelId(fixed.id),
        code_object: CodeObjectId(fixed.code_object),
        name: name.into_owned(),
        kernel_object: fixed.kernel_object,
        kernarg_size: fixed.kernarg_size,
        kernarg_align: fixed.kernarg_align,
        group_size: fixed.group_size,
        private_size: fixed.private_size,
        sgpr_count: fixed.sgpr_count,
        arch_vgpr_count: fixed.arch_vgpr_count,
        accum_vgpr_count: fixed.accum_vgpr_count,
        entry_offset: fixed.entry_offset,
        kernel_address: fixed.kernel_address,
        size: fixed.size,
    });
    Some(())
}

pub(super) fn load_host_function(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, name) = record.parse_text::<format::HostFunction>(|function| function.name_len)?;
    session.host_functions.push(HostFunction {
        id: fixed.id,
        kernel: KernelId(fixed.kernel),
        code_object: CodeObjectId(fixed.code_object),
        address: fixed.address,
        modules: fixed.modules,
        thread_limit: fixed.thread_limit,
        name: name.into_owned(),
    });
    Some(())
}

pub(super) fn load_resource_name(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, name) = record.parse_text::<format::NamedResource>(|resource| resource.name_len)?;
    let kind = match record.header.aux {
        1 => ResourceKind::Thread,
        2 => ResourceKind::HipDevice,
        3 => ResourceKind::HipStream,
        4 => ResourceKind::HsaAgent,
        5 => ResourceKind::Stream,
        _ => return Some(()),
    };
    session.resource_names.push(ResourceName {
        kind,
        resource: fixed.resource,
        name: name.into_owned(),
    });
    Some(())
}

/// A runtime handed its tables over, so the process used a GPU.
pub(super) fn load_runtime(record: &Record<'_>, session: &mut Session) -> Option<()> {
    record.parse::<format::RuntimeInit>()?;
    session.ledger.runtime_seen = true;
    Some(())
}

pub(super) fn load_note(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (moment, text) = record.parse_text::<format::TimedText>(|moment| moment.text_len)?;
    // A place for a note that no one wrote.
    if text.is_empty() {
        return Some(());
    }
    let text = match moment.value {
        0 | 1 => text,
        more => format!("{text} (and {} more of this kind)", more - 1).into(),
    };
    let notes = &mut session.ledger.notes;
    if notes.len() < MAX_NOTES && !notes.iter().any(|note| *note == text) {
        notes.push(text.into_owned());
    }
    Some(())
}

pub(super) fn load_totals(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (totals, _) = record.parse::<format::ProcessTotals>()?;
    let ledger = &mut session.ledger;
    let left = |begun: u64, ended: u64| begun.saturating_sub(ended);
    ledger.unfinished_dispatches = left(totals.dispatches_begun, totals.dispatches_ended);
    ledger.unfinished_copies = left(totals.copies_begun, totals.copies_ended);
    ledger.paused_dispatches = totals.dispatches_paused;
    ledger.lost_processes = totals.lost_processes;
    ledger.lost_records = totals.lost_records;
    ledger.invalid_samples = totals.invalid_samples;
    ledger.lost_samples = totals.lost_samples;
    ledger.unknown_samples = totals.unknown_samples;
    Some(())
}

/// The kinds of a name space with their operations, each at the index that is the provider's number.
fn numbered(names: &BTreeMap<(u32, u32), KindNames>, space: u32) -> Vec<(String, Vec<String>)> {
    let mut kinds = Vec::new();
    for (&(_, number), kind) in names.range((space, 0)..=(space, MAX_KINDS)) {
        kinds.resize(number as usize, Default::default());
        let mut operations = Vec::new();
        for (&operation, name) in &kind.operations {
            operations.resize(operation as usize, String::new());
            operations.push(name.clone());
        }
        kinds.push((kind.name.clone(), operations));
    }
    kinds
}

fn process(fixed: &format::Process, tail: &[u8]) -> Process {
    // The texts are in the order in which the collector writes them: command, directory, executable, environment.
    let mut parts = ByteStrings(tail).map(Option::unwrap_or_default);
    let mut part = || parts.next().unwrap_or_default();
    let command = nul_separated(part());
    let mut text = || os_text::escape_bytes(part());
    let (cwd, executable) = (text(), text());
    Process {
        pid: ProcessId(fixed.pid),
        ppid: ProcessId(fixed.ppid),
        pgid: ProcessId(fixed.pgid),
        sid: ProcessId(fixed.sid),
        start_ticks: fixed.start_ticks,
        init_time: Nanoseconds(fixed.init_time),
        fini_time: Nanoseconds(0),
        real_time: fixed.real_time,
        last_anchor: None,
        place: Place::default(),
        forked: fixed.forked != 0,
        psize: fixed.psize,
        provider: match fixed.provider_version {
            version if version & format::PROVIDER_DIRECT != 0 => Provider::Direct,
            version if version & format::PROVIDER_CUDA != 0 => Provider::Cuda,
            _ => Provider::Sdk,
        },
        command: command.collect(),
        cwd,
        executable,
        environment: nul_separated(part())
            .filter_map(|pair| {
                // A variable without `=` cannot be restored, and tells nothing.
                let (name, value) = pair.split_once('=')?;
                Some((name.to_owned(), value.to_owned()))
            })
            .collect(),
    }
}

/// The texts in a NUL-separated block of `/proc`, escaped. A NUL at the end does not start another text.
fn nul_separated(block: &[u8]) -> impl Iterator<Item = String> {
    let block = block.strip_suffix(&[0]).unwrap_or(block);
    let is_empty = block.is_empty();
    block
        .split(|&byte| byte == 0)
        .filter(move |_| !is_empty)
        .map(os_text::escape_bytes)
}
