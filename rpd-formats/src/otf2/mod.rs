//! OTF2: an archive of an anchor file, global definitions and a directory of events, written by the system's libotf2.

#![deny(clippy::wildcard_enum_match_arm)]

mod library;
mod tracks;
mod versions;

use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{AgentHandle, Nanoseconds, OperationId, QueueId, ThreadId};
use rpd_core::naming;
use rpd_core::options::Options;
use rpd_core::session::{
    Batches, Columns, KernelLabels, Operation, OperationClass, Session, Strings, Table,
};
use rpd_core::storage::by_id::ById;
use rpd_core::storage::column::Column;
use rpd_core::storage::sorted::{Keyed, Sorter};
use rpd_core::storage::temporary::TemporaryDirectory;
use zerocopy::{Immutable, IntoBytes};

use crate::{Output, WriteError, progress};
use library::{Archive, Definitions, Failure, GroupType, Library, LocationType, Paradigm, Role};
use tracks::{Description, Location, Slice};

/// Suffix of the anchor file, after the prefix.
pub(crate) const FILE: &str = "results.otf2";

/// Labels of calls, by their ids, whose regions are kept at hand; those of others are looked up by their text.
const KNOWN_REGIONS: usize = 1 << 16;

/// Group 0 is the process; those of agents follow in the order of agents.
const PROCESS_GROUP: u32 = 0;

/// Writes `<prefix>_results.otf2`, `<prefix>_results.def`, the directory `<prefix>_results` and, of a recording with marks,
/// `<prefix>_results.marker`, and returns the name of the first.
///
/// # Errors
/// When libotf2 cannot be loaded, or the archive cannot be written; nothing is left under its name then.
pub(crate) fn write(output: &Output<'_>) -> Result<Vec<PathBuf>, WriteError> {
    let &Output {
        session,
        options,
        target,
        ..
    } = output;
    let anchor = target.file(FILE);
    let failed = |failure| match failure {
        Failure::Missing(reason) => WriteError::Otf2Missing {
            path: anchor.clone(),
            source: LibraryMissing(reason),
        },
        Failure::Refused(function, reason) => WriteError::Otf2 {
            path: anchor.clone(),
            function,
            reason,
        },
    };
    let library = Library::load(options.otf2_library.as_deref()).map_err(failed)?;
    let parts = Parts::create(&anchor)?;
    fill(&library, &parts, session, options).map_err(failed)?;
    parts.finish()?;
    Ok(vec![anchor])
}

/// libotf2 cannot be loaded; has the message of the dynamic loader.
#[derive(Debug, thiserror::Error)]
#[error(
    "OTF2 needs libotf2 3 (package libopen-trace-format2-10u of Debian 13 and later, libopen-trace-format2-10 before; \
     --otf2-library names a file): {0}"
)]
pub struct LibraryMissing(String);

/// Checks that archives can be written on this machine, before there is anything to write.
///
/// # Errors
/// libotf2 cannot be loaded; the message names its package.
pub fn check(options: &Options) -> Result<(), LibraryMissing> {
    check_library(options.otf2_library.as_deref())
}

/// Checks that libotf2 can be opened: the named file, or the one that is found by its usual names.
///
/// # Errors
/// It cannot be loaded; the message names its package.
pub fn check_library(named: Option<&Path>) -> Result<(), LibraryMissing> {
    match Library::load(named) {
        Ok(_) => Ok(()),
        Err(Failure::Missing(reason) | Failure::Refused(_, reason)) => Err(LibraryMissing(reason)),
    }
}

/// An archive that is written in a temporary directory until it is complete.
struct Parts {
    directory: TemporaryDirectory,
    /// Final path of the anchor file.
    anchor: PathBuf,
    /// Name of the archive: that of the anchor without its extension.
    name: String,
}

impl Parts {
    fn create(anchor: &Path) -> Result<Parts, WriteError> {
        let failed = |source| WriteError::Io {
            path: anchor.to_owned(),
            source,
        };
        let directory = crate::file::pending_directory(anchor).map_err(failed)?;
        let name = anchor.file_stem().unwrap_or_default();
        Ok(Parts {
            directory,
            anchor: anchor.to_owned(),
            name: name.to_string_lossy().into_owned(),
        })
    }

    /// Renames the parts to their final names, the anchor last: an archive with an anchor is complete.
    fn finish(self) -> Result<(), WriteError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| WriteError::Io { path, source }
        };
        let definitions = self.anchor.with_extension("def");
        let events = self.anchor.with_extension("");
        match std::fs::remove_file(&self.anchor) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(&self.anchor)(error));
            }
            _ => {}
        }
        remove_events(&events).map_err(failed(&events))?;
        let made = self.directory.path();
        let rename = |from: PathBuf, to: &Path| std::fs::rename(from, to).map_err(failed(to));
        rename(made.join(&self.name), &events)?;
        rename(made.join(format!("{}.def", self.name)), &definitions)?;
        let (made_markers, markers) = (
            made.join(format!("{}.marker", self.name)),
            self.anchor.with_extension("marker"),
        );
        if made_markers.exists() {
            rename(made_markers, &markers)?
        } else {
            // Those of an archive that is replaced.
            match std::fs::remove_file(&markers) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed(&markers)(error));
                }
                _ => {}
            }
        }
        rename(made.join(format!("{}.otf2", self.name)), &self.anchor)
    }
}

/// Removes the event files of an earlier archive from its directory. Other files stay, so that removing the directory fails.
fn remove_events(directory: &Path) -> std::io::Result<()> {
    if directory.is_symlink() {
        return std::fs::remove_file(directory);
    }
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str());
        let extension = path.extension().and_then(|extension| extension.to_str());
        if number.is_some_and(|stem| stem.parse::<u64>().is_ok())
            && matches!(extension, Some("evt" | "def" | "snap"))
        {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn fill(
    library: &Library,
    parts: &Parts,
    session: &Session,
    options: &Options,
) -> Result<(), Failure> {
    let archive = Archive::create(library, parts.directory.path(), &parts.name)?;
    let mut trace = Trace::new(&archive, session, options);
    trace.write_threads()?;
    trace.write_copies()?;
    trace.write_allocations()?;
    trace.write_dispatches()?;
    archive.end_events(1..=trace.locations.len() as u64)?;
    trace.define(&archive.definitions()?)?;
    trace.write_marks()?;
    drop(trace);
    archive.close()
}

struct Trace<'a> {
    archive: &'a Archive<'a>,
    session: &'a Session,
    options: &'a Options,
    /// All texts except names of regions; an id is the reference of the string.
    texts: Strings,
    /// Names of regions; an id is the region. Their strings are defined after `texts`.
    region_names: Strings,
    /// Place of each region's role and paradigm among `descriptions`, by region.
    regions: ById<u8>,
    descriptions: Vec<(Role, Paradigm)>,
    groups: HashMap<AgentHandle, u32>,
    locations: Vec<Location>,
    /// The number of the first location of each thread.
    threads: HashMap<ThreadId, u64>,
    /// First and last time of any event.
    first: u64,
    last: u64,
}

/// Columns of records that have an operation, on behalf of a thread, at an agent.
struct AgentWork<'a> {
    table: &'a dyn Columns,
    threads: &'a Column<ThreadId>,
    agents: &'a Column<AgentHandle>,
    operations: &'a Column<OperationId>,
    /// Begin and end times of the records.
    times: (&'a [Nanoseconds], &'a [Nanoseconds]),
}

impl<'a> Trace<'a> {
    fn new(archive: &'a Archive<'a>, session: &'a Session, options: &'a Options) -> Trace<'a> {
        let groups = (1..).zip(&session.agents);
        let mut region_names = Strings::default();
        if let Some(storage) = &session.storage {
            // Most are texts of the session, which has some of them in memory.
            region_names.spill_to(&storage.clone().with_rows(storage.rows() / 8));
        }
        Trace {
            archive,
            session,
            options,
            texts: Strings::new(),
            region_names,
            regions: ById::zeros(0, session.storage.as_ref()),
            descriptions: Vec::new(),
            groups: groups.map(|(id, agent)| (agent.handle, id)).collect(),
            locations: Vec::new(),
            threads: HashMap::new(),
            // 0 is not known.
            first: match session.process.init_time.0 {
                0 => u64::MAX,
                time => time,
            },
            last: session.process.fini_time.0,
        }
    }

    /// The region called `name`. The first caller's description is used.
    fn region(&mut self, name: &str, role: Role, paradigm: Paradigm) -> u32 {
        let region = self.region_names.intern(name).0;
        if region as usize == self.regions.len() {
            let known = &mut self.descriptions;
            let found = known.iter().position(|of| *of == (role, paradigm));
            let place = found.unwrap_or_else(|| {
                known.push((role, paradigm));
                known.len() - 1
            });
            self.regions.grow(region as usize + 1);
            if let Some(of_region) = self.regions.get_mut(region) {
                // There are a few roles, and two paradigms.
                *of_region = place as u8;
            }
        }
        region
    }

    /// `<TYPE> <agent>` and group of an agent.
    fn agent(&self, handle: AgentHandle) -> (String, u32) {
        let group = self.groups.get(&handle);
        match (self.session.agent(handle), group) {
            (Some(agent), Some(&group)) => {
                let (label, number) = agent.label(self.options.agent_index);
                let text = format!("{} {label}-{number}", agent.agent_type.label());
                (text, group)
            }
            _ => ("UNK 0".to_owned(), PROCESS_GROUP),
        }
    }

    fn track(
        &mut self,
        name: &str,
        kind: LocationType,
        group: u32,
        slices: impl Iterator<Item = Slice>,
    ) -> Result<(), Failure> {
        let name = self.texts.intern(name).0;
        let description = Description { name, kind, group };
        let (mut first, mut last, mut count) = (self.first, self.last, 0);
        let slices = slices.inspect(|slice| {
            first = first.min(slice.start.0);
            last = last.max(slice.end.0);
            count += 1;
        });
        let result = tracks::write(self.archive, &mut self.locations, description, slices);
        (self.first, self.last) = (first, last);
        progress::advance(count);
        result
    }

    /// Calls, on a location for each thread that is named in any record.
    fn write_threads(&mut self) -> Result<(), Failure> {
        let session = self.session;
        let calls = &session.calls;
        let mut categories = [0; 32];
        for kind in Kind::all().filter(|kind| kind.is_call()) {
            categories[kind as usize] = self.texts.intern(category(kind.domain())).0;
        }
        // Names repeat in nearly every call; a definition of each is made once.
        let mut regions = vec![None; session.strings.len().min(KNOWN_REGIONS)];
        let mut groups = Groups::new(session);
        for index in calls.indices() {
            let Operation { kind, class, .. } = *session.call(index);
            let group = groups.number(calls.thread[index]);
            // Marks have no duration: `write_marks` writes them.
            if class == OperationClass::Mark {
                let time = calls.start[index].0;
                (self.first, self.last) = (self.first.min(time), self.last.max(time));
                continue;
            }
            let label = session.call_label(index);
            let known = regions.get(label.0 as usize).copied().flatten();
            let region = known.unwrap_or_else(|| {
                let paradigm = match kind.domain() {
                    Domain::MarkerApi | Domain::RocdecodeApi | Domain::Ompt => Paradigm::User,
                    Domain::HsaApi
                    | Domain::HipApi
                    | Domain::KernelDispatch
                    | Domain::MemoryCopy
                    | Domain::ScratchMemory
                    | Domain::CounterCollection
                    | Domain::RcclApi
                    | Domain::MemoryAllocation
                    | Domain::RocjpegApi
                    | Domain::RocshmemApi
                    | Domain::HipfileApi
                    | Domain::Kfd => Paradigm::Hip,
                    Domain::CudaApi | Domain::CudaDriverApi => Paradigm::Cuda,
                };
                let id = self.region(session.strings.get(label), Role::Function, paradigm);
                // Regions beyond the known ones are looked up by name each time, so that memory does not grow with
                // texts.
                if let Some(slot) = regions.get_mut(label.0 as usize) {
                    *slot = Some(id);
                }
                id
            });
            let category = categories[kind as usize];
            let slice = Slice {
                start: calls.start[index],
                end: calls.end[index],
                region,
                category,
            };
            groups.push(group, slice)?;
        }
        // Threads that only submitted work have a location as well: the work's attributes refer to it.
        for table in Table::ALL {
            let is_written = match table {
                Table::Dispatches | Table::Copies | Table::Allocations | Table::Scratch => true,
                // Calls are there already. The others are not written.
                Table::Calls
                | Table::Counted
                | Table::Samples
                | Table::GraphLaunches
                | Table::HipEvents
                | Table::KfdEvents => false,
            };
            let threads = session.references(*table).threads;
            for &thread in threads.into_iter().filter(|_| is_written).flatten() {
                groups.number(thread);
            }
        }
        groups.each(|thread, slices| {
            let name = format!("Thread {thread}");
            let location = self.locations.len() as u64 + 1;
            self.threads.insert(thread, location);
            self.track(&name, LocationType::CpuThread, PROCESS_GROUP, slices)
        })?;
        Ok(())
    }

    fn write_copies(&mut self) -> Result<(), Failure> {
        let table = &self.session.copies;
        let work = AgentWork {
            table,
            threads: &table.thread,
            agents: &table.dst_agent,
            operations: &table.operation,
            times: (&table.start, &table.end),
        };
        self.write_work(&work, Domain::MemoryCopy, Role::DataTransfer, "Copy to")
    }

    fn write_allocations(&mut self) -> Result<(), Failure> {
        let table = &self.session.allocations;
        let work = AgentWork {
            table,
            threads: &table.thread,
            agents: &table.agent,
            operations: &table.operation,
            times: (&table.start, &table.end),
        };
        let what = "Memory Operation at";
        self.write_work(&work, Domain::MemoryAllocation, Role::Allocate, what)
    }

    /// A track for each thread and agent; `what` stands in its name before the agent.
    fn write_work(
        &mut self,
        work: &AgentWork<'_>,
        domain: Domain,
        role: Role,
        what: &str,
    ) -> Result<(), Failure> {
        let category = self.texts.intern(category(domain)).0;
        let regions = self.operations(work.operations, role);
        let mut groups = Groups::new(self.session);
        for index in Batches::new(work.table).flatten() {
            let group = groups.number((work.threads[index], work.agents[index]));
            let slice = Slice {
                start: work.times.0[index],
                end: work.times.1[index],
                region: regions[&work.operations[index]],
                category,
            };
            groups.push(group, slice)?;
        }
        groups.each(|(thread, agent), slices| {
            let (agent, group) = self.agent(agent);
            let name = format!("Thread {thread}, {what} {agent}");
            self.track(&name, LocationType::AcceleratorStream, group, slices)
        })?;
        Ok(())
    }

    /// The regions of operation names.
    fn operations(
        &mut self,
        operations: &Column<OperationId>,
        role: Role,
    ) -> HashMap<OperationId, u32> {
        let session = self.session;
        let mut regions = HashMap::new();
        for &operation in operations {
            regions.entry(operation).or_insert_with(|| {
                self.region(session.operation_name(operation), role, Paradigm::Hip)
            });
        }
        regions
    }

    fn write_dispatches(&mut self) -> Result<(), Failure> {
        let session = self.session;
        let table = &session.dispatches;
        let category = self.texts.intern(category(Domain::KernelDispatch)).0;
        let labels = KernelLabels::new(session, self.options.kernel_names);
        // The region of a kernel is looked up by name once, not for each dispatch.
        let mut known = HashMap::new();
        let mut groups = Groups::new(session);
        for index in table.indices() {
            let region = *known
                .entry((table.kernel[index], table.region[index]))
                .or_insert_with(|| {
                    self.region(labels.dispatch(index), Role::Function, Paradigm::Hip)
                });
            let key = (table.thread[index], table.agent[index], table.queue[index]);
            let group = groups.number(key);
            let slice = Slice {
                start: table.start[index],
                end: table.end[index],
                region,
                category,
            };
            groups.push(group, slice)?;
        }
        // Queues are named by their ranks: their handles differ from run to run.
        let ranks = queue_ranks(session);
        groups.each(|(thread, agent, queue), slices| {
            let (agent, group) = self.agent(agent);
            let name = format!(
                "Thread {thread}, Compute on {agent}, Queue {}",
                ranks[&queue]
            );
            self.track(&name, LocationType::AcceleratorStream, group, slices)
        })?;
        Ok(())
    }

    /// Marks, as markers on the location of their thread.
    fn write_marks(&self) -> Result<(), Failure> {
        let session = self.session;
        let calls = &session.calls;
        let is_mark = |operation: &Operation| operation.class == OperationClass::Mark;
        if session.count_calls(is_mark) == 0 {
            return Ok(());
        }
        let mut markers = self.archive.markers("ROCTx", "mark")?;
        for index in calls.indices() {
            if is_mark(session.call(index)) {
                let location = self.threads.get(&calls.thread[index]);
                let text = session.strings.get(session.call_label(index));
                let location = location.copied().unwrap_or_default();
                markers.mark(calls.start[index].0, location, text)?;
            }
        }
        markers.close()
    }

    fn define(&mut self, definitions: &Definitions<'_>) -> Result<(), Failure> {
        let process = &self.session.process;
        let attribute = self.texts.intern("category").0;
        let description = self.texts.intern("tracing category").0;
        let executable = match process.command.first() {
            Some(argument) => argument,
            None => &process.executable,
        };
        let executable = self.texts.intern(executable).0;
        let host = match &self.session.origin {
            Some(origin) => self.texts.intern(&origin.hostname).0,
            None => self.texts.intern(&naming::hostname()).0,
        };
        let agents = &self.session.agents;
        let agents: Vec<u32> = agents
            .iter()
            .map(|agent| self.texts.intern(&agent.name).0)
            .collect();

        let first = self.first.min(self.last);
        let real_time = match process.real_time {
            // The library's "undefined".
            0 => u64::MAX,
            // Wrapping: the difference may be negative.
            real_time => real_time.wrapping_sub(process.init_time.0.wrapping_sub(first)),
        };
        definitions.clock(first, self.last - first, real_time)?;
        let names = self.region_names.iter();
        for (id, text) in (0..).zip(self.texts.iter().chain(names)) {
            definitions.string(id, text)?;
        }
        definitions.category(attribute, description)?;
        let first_name = self.texts.len() as u32;
        for (id, place) in (0..).zip(self.regions.iter()) {
            let (role, paradigm) = self.descriptions[usize::from(place)];
            definitions.region(id, first_name + id, role, paradigm)?;
        }
        definitions.node(executable, host)?;
        definitions.group(PROCESS_GROUP, executable, GroupType::Process)?;
        for (id, name) in (1..).zip(agents) {
            definitions.group(id, name, GroupType::Accelerator)?;
        }
        for (id, location) in (1..).zip(&self.locations) {
            let Description { name, kind, group } = location.description;
            definitions.location(id, name, kind, location.events, group)?;
        }
        Ok(())
    }
}

/// The value of the category attribute.
fn category(domain: Domain) -> &'static str {
    match domain {
        Domain::KernelDispatch => "kernel_dispatch",
        Domain::HsaApi
        | Domain::HipApi
        | Domain::MarkerApi
        | Domain::MemoryCopy
        | Domain::ScratchMemory
        | Domain::CounterCollection
        | Domain::RcclApi
        | Domain::MemoryAllocation
        | Domain::RocdecodeApi
        | Domain::RocjpegApi
        | Domain::CudaApi
        | Domain::CudaDriverApi
        | Domain::RocshmemApi
        | Domain::HipfileApi
        | Domain::Ompt
        | Domain::Kfd => domain.stem(),
    }
}

/// Queues numbered from 0 in the order of their handles.
fn queue_ranks(session: &Session) -> HashMap<QueueId, usize> {
    let queues = session.dispatches.queue.iter();
    let mut queues: Vec<QueueId> = queues
        .chain(&session.scratch.queue)
        .copied()
        .collect::<std::collections::HashSet<_>>()
        .into_iter()
        .collect();
    queues.sort_unstable();
    queues.into_iter().zip(0..).collect()
}

/// Slices by key, keys in the order in which they come first. A track's events lie together then, and only one location
/// has buffers and a file open at a time.
struct Groups<K> {
    keys: Vec<K>,
    positions: HashMap<K, usize>,
    last: usize,
    slices: Sorter<GroupedSlice>,
}

/// A slice and the number of the key that it belongs to.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct GroupedSlice {
    group: u64,
    slice: Slice,
}

impl Keyed for GroupedSlice {
    type Key = u64;

    fn key(&self) -> u64 {
        self.group
    }
}

impl<K: Copy + Eq + Hash> Groups<K> {
    fn new(session: &Session) -> Groups<K> {
        Groups {
            keys: Vec::new(),
            positions: HashMap::new(),
            last: 0,
            slices: Sorter::new(session.storage.as_ref()),
        }
    }

    /// The number of a key.
    #[inline]
    fn number(&mut self, key: K) -> usize {
        // Records of one thread often come in a row.
        if self.keys.get(self.last) != Some(&key) {
            self.last = *self.positions.entry(key).or_insert_with(|| {
                self.keys.push(key);
                self.keys.len() - 1
            });
        }
        self.last
    }

    /// Adds a slice of the key with this number; those of a key are in order of start.
    #[inline]
    fn push(&mut self, group: usize, slice: Slice) -> Result<(), Failure> {
        let group = group as u64;
        self.slices
            .push(GroupedSlice { group, slice })
            .map_err(unstored)
    }

    /// Calls `take` with each key and its slices.
    fn each(
        self,
        mut take: impl FnMut(K, &mut dyn Iterator<Item = Slice>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut rows = self.slices.finish().map_err(unstored)?.peekable();
        for (group, key) in (0..).zip(self.keys) {
            let mut slices = std::iter::from_fn(|| {
                let row = rows.next_if(|row| row.group == group)?;
                Some(row.slice)
            });
            take(key, &mut slices)?;
        }
        Ok(())
    }
}

/// Slices that could not be stored while they were put in order.
fn unstored(error: std::io::Error) -> Failure {
    Failure::Refused("storing events", error.to_string())
}
