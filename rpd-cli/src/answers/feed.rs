//! Records for answers, from the recordings in databases.

mod evidence;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rpd_analysis::classes::{Class, of_kernel};
use rpd_analysis::records::{
    Allocation, Call, Counted, Each, Facts, Gpu, Launch, NONE, Op, Process, Range, Records,
    Resources, Sampled, Style, Thread,
};
use rpd_core::agent::{Agent, AgentType};
use rpd_core::domain::Domain;
use rpd_core::ids::{AgentHandle, Nanoseconds, QueueId, ThreadId};
use rpd_core::session::hot::HotBuilder;
use rpd_core::session::shown::{Expanded, expand};
use rpd_core::session::totals::InstructionTotals;
use rpd_core::session::{
    Columns as _, DispatchTable, KernelLabels, LoadOptions, MemoryAction, MemoryLevel,
    OperationClass, PlausibleTimes, Session,
};
use rpd_core::storage::by_id::ById;
use rpd_formats::rocpd::read::{Database, Settings};
use rpd_symbols::analysis::{StackedFunction, Texts};

use crate::commands::Naming;

/// Greatest number of calls within one another; more is a circle.
const DEEPEST: usize = 64;
/// Operations after which memory of calls that were looked up is given back; a power of two.
const RELEASE: usize = 65_536;

/// The recordings of some databases.
pub(crate) struct Loaded {
    facts: Facts,
    parts: Vec<Part>,
    sampled: Vec<Sampled>,
    /// Records whose times cannot be; they are left out.
    pub(super) implausible: u64,
}

/// What an operation of a session is for an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Call,
    Range(Style),
    Other,
}

/// A recorded process.
struct Part {
    session: Session,
    settings: Settings,
    process: u32,
    /// Whether only its counters and samples are of interest: see [`evidence::are_evidence`].
    is_evidence: bool,
    /// Names of the session's counters.
    counters: Vec<u32>,
    times: PlausibleTimes,
    gpus: HashMap<AgentHandle, u32>,
    /// Kind and name of each operation of the session, and whether it launches a graph.
    operations: Vec<(What, u32, bool)>,
    /// Name, class and resources of kernels, by what their names depend on.
    kernels: HashMap<(u64, u32), (u32, Class, u32)>,
    queues: HashMap<QueueId, u32>,
    threads: HashMap<ThreadId, u32>,
    messages: HashMap<u32, u32>,
    calls: ByCorrelation,
    /// Indices of markers among the calls, in their order.
    markers: Vec<u32>,
    /// Number of the first of them.
    first_marker: u32,
    expanded: OnceCell<Expanded>,
}

/// Places of calls by their correlation ids: the index plus 1.
enum ByCorrelation {
    /// Ids without large gaps, which is the usual case.
    Dense(ById<u32>),
    Sparse(HashMap<u64, u32>),
}

impl ByCorrelation {
    fn new(session: &Session) -> ByCorrelation {
        let calls = &session.calls;
        let ids = || {
            calls
                .indices()
                .map(|index| (index, calls.correlation[index].0))
        };
        let greatest = ids().map(|id| id.1).max().unwrap_or(0);
        let most = 16 * calls.len() as u64 + 65_536;
        if greatest < most.min(u32::MAX.into()) {
            let mut places = ById::zeros(greatest as usize + 1, session.storage.as_ref());
            for (index, id) in ids() {
                if let Some(place) = places.get_mut(id as u32) {
                    *place = index as u32 + 1;
                }
            }
            ByCorrelation::Dense(places)
        } else {
            ByCorrelation::Sparse(ids().map(|(index, id)| (id, index as u32 + 1)).collect())
        }
    }

    fn get(&self, id: u64) -> Option<usize> {
        let place = match self {
            ByCorrelation::Dense(places) => places.get(u32::try_from(id).ok()?),
            ByCorrelation::Sparse(places) => places.get(&id).copied().unwrap_or(0),
        };
        (id != 0)
            .then_some(place as usize)
            .and_then(|place| place.checked_sub(1))
    }
}

/// Texts that have numbers.
#[derive(Default)]
struct Names {
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

impl Loaded {
    /// Reads databases.
    pub(crate) fn read(paths: &[PathBuf], naming: &Naming) -> Result<Loaded> {
        let mut loaded = Loaded {
            facts: Facts::default(),
            parts: Vec::new(),
            sampled: Vec::new(),
            implausible: 0,
        };
        let mut names = Names::default();
        let load = LoadOptions {
            args: false,
            ..LoadOptions::default()
        };
        let mut sessions = Vec::new();
        for path in paths {
            let database = Database::open(path)?;
            for recording in database.recordings() {
                let (session, settings) = database.session(recording, load)?;
                sessions.push((path, session, settings));
            }
        }
        let evidence = evidence::are_evidence(sessions.iter().map(|read| &read.1));
        let mut hot = HotBuilder::default();
        // Programs at their own speed come first, so that their GPUs are those of the rest.
        let mut sessions: Vec<_> = sessions.into_iter().zip(evidence).collect();
        sessions.sort_by_key(|read| read.1);
        for ((path, session, settings), is_evidence) in sessions {
            if !session.sampling.is_empty() {
                let totals = InstructionTotals::from_session(&session);
                hot.add(&session, &totals, naming.over(&settings), |_| true);
            }
            loaded.add(path, session, settings, is_evidence, naming, &mut names);
        }
        loaded.sampled = evidence::sampled(hot);
        loaded.facts.names = names.texts;
        Ok(loaded)
    }

    fn add(
        &mut self,
        path: &Path,
        session: Session,
        settings: Settings,
        is_evidence: bool,
        naming: &Naming,
        names: &mut Names,
    ) {
        let facts = &mut self.facts;
        let process = facts.processes.len() as u32;
        let origin = session.origin.clone().unwrap_or_default();
        facts.processes.push(Process {
            pid: session.process.pid.0,
            guid: origin.guid.split('-').next().unwrap_or_default().to_owned(),
            host: origin.hostname.clone(),
            rank: rank(&session),
            path: path.display().to_string(),
            command: session.process.command.clone(),
            is_evidence,
            has_evidence: !session.counted.is_empty() || !session.sampling.is_empty(),
        });
        let gpus = session
            .agents
            .iter()
            .filter(|agent| agent.agent_type == AgentType::Gpu);
        let gpus = gpus.map(|agent| {
            let gpu = gpu(agent, &origin.hostname, session.process.pid.0);
            // Simulated GPUs of another run of the program stand for the same ones.
            let is_same_device = |known: &Gpu| {
                is_evidence
                    && known.is_simulated
                    && (known.number, &known.arch) == (gpu.number, &gpu.arch)
            };
            let same = |known: &Gpu| {
                known.node == gpu.node && (known.id == gpu.id || is_same_device(known))
            };
            let index = facts.gpus.iter().position(same).unwrap_or_else(|| {
                facts.gpus.push(gpu);
                facts.gpus.len() - 1
            });
            (agent.handle, index as u32)
        });
        let gpus: HashMap<AgentHandle, u32> = gpus.collect();
        let operations = session.operations.iter().map(|operation| {
            let what = match (operation.class, operation.domain()) {
                (OperationClass::Mark, _) => What::Range(Style::Mark),
                (OperationClass::Range, _) => {
                    // The provider's name tells ranges of a thread from those between threads.
                    let name = session.strings.get(operation.name);
                    What::Range(if name.contains("Process") || name.contains("Start") {
                        Style::Across
                    } else {
                        Style::Nested
                    })
                }
                (_, Domain::MarkerApi) => What::Other,
                _ if operation.kind.is_call() => What::Call,
                _ => What::Other,
            };
            let name = session.strings.get(operation.name);
            (what, names.number(name), name.starts_with("hipGraphLaunch"))
        });
        let operations: Vec<(What, u32, bool)> = operations.collect();
        let counters = session.counters.iter();
        let counters = counters.map(|counter| names.number(&counter.name));
        let counters = counters.collect();
        let mut part = Part {
            is_evidence,
            counters,
            times: PlausibleTimes::from_session(&session),
            process,
            gpus,
            operations,
            kernels: HashMap::new(),
            queues: HashMap::new(),
            threads: HashMap::new(),
            messages: HashMap::new(),
            calls: ByCorrelation::new(&session),
            markers: Vec::new(),
            first_marker: self
                .parts
                .last()
                .map_or(0, |part| part.first_marker + part.markers.len() as u32),
            expanded: OnceCell::new(),
            session,
            settings,
        };
        if !is_evidence {
            part.note_calls(&mut self.facts, names);
        }
        self.implausible += part.note_ops(&mut self.facts, naming, names);
        part.note_recorded(&mut self.facts);
        self.parts.push(part);
    }
}

/// The rank of a process by the variables that launchers set.
fn rank(session: &Session) -> Option<u32> {
    const VARIABLES: [&str; 5] = [
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "PMIX_RANK",
        "SLURM_PROCID",
        "RANK",
    ];
    VARIABLES.iter().find_map(|variable| {
        let environment = &session.process.environment;
        let found = environment.iter().find(|(name, _)| name == variable)?;
        found.1.parse().ok()
    })
}

fn gpu(agent: &Agent, host: &str, pid: u32) -> Gpu {
    let devices = rpd_gfx::device::DEVICES;
    let is_simulated = devices
        .iter()
        .any(|device| device.product == agent.product_name);
    let has_uuid = agent.uuid.iter().any(|byte| *byte != 0);
    let mut id: String = if has_uuid {
        agent
            .uuid
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    } else {
        format!("{}:{}:{}", agent.domain, agent.location_id, agent.node_id)
    };
    if is_simulated {
        // Each process has simulated GPUs of its own, whose descriptions are the same.
        id = format!("{id}:{}@{pid}", agent.logical_node_type_id);
    }
    // Other banks are apertures of the same memory.
    let bank = agent.mem_banks.iter().max_by_key(|bank| bank.width);
    Gpu {
        node: host.to_owned(),
        id,
        number: u32::try_from(agent.logical_node_type_id).unwrap_or(agent.node_id),
        arch: agent.name.clone(),
        name: agent.product_name.clone(),
        is_simulated,
        units: agent.cu_count,
        wave_size: agent.wave_front_size,
        dies: agent.num_xcc,
        shader_mhz: agent.max_engine_clk_fcompute,
        memory_mhz: bank.map_or(0, |bank| bank.mem_clk_max),
        memory_bits: bank.map_or(0, |bank| bank.width),
    }
}

impl Part {
    /// Notes threads, messages and markers.
    fn note_calls(&mut self, facts: &mut Facts, names: &mut Names) {
        let calls = &self.session.calls;
        for index in calls.indices() {
            let thread = calls.thread[index];
            let process = self.process;
            self.threads.entry(thread).or_insert_with(|| {
                let tid = thread.0;
                facts.threads.push(Thread { process, tid });
                facts.threads.len() as u32 - 1
            });
            if let What::Range(_) = self.operations[calls.operation[index].0 as usize].0 {
                self.markers.push(index as u32);
                let message = calls.message[index];
                let strings = &self.session.strings;
                let number = || names.number(strings.get(message));
                self.messages.entry(message.0).or_insert_with(number);
            }
        }
    }

    /// Notes kernels and queues; the number of operations whose times cannot be.
    fn note_ops(&mut self, facts: &mut Facts, naming: &Naming, names: &mut Names) -> u64 {
        let labels = KernelLabels::new(&self.session, naming.over(&self.settings));
        let table = self.session.kernel_dispatches();
        let mut implausible = 0;
        for index in table.indices() {
            implausible += u64::from(!is_plausible(
                self.times,
                table.start[index],
                table.end[index],
            ));
            let (kernel, region) = labels.key(table, index);
            self.kernels.entry((kernel.0, region)).or_insert_with(|| {
                let name = labels.of(table, index);
                let resources = self.session.kernel_symbol(kernel).map_or(NONE, |symbol| {
                    facts.kernels.push(Resources {
                        vgprs: symbol.arch_vgpr_count + symbol.accum_vgpr_count,
                        sgprs: symbol.sgpr_count,
                        lds: symbol.group_size,
                        scratch: symbol.private_size,
                    });
                    facts.kernels.len() as u32 - 1
                });
                (names.number(name), of_kernel(name), resources)
            });
            let number = self.queues.len() as u32;
            self.queues.entry(table.queue[index]).or_insert(number);
        }
        let copies = &self.session.copies;
        for index in copies.indices() {
            implausible += u64::from(!is_plausible(
                self.times,
                copies.start[index],
                copies.end[index],
            ));
        }
        implausible
    }

    fn note_recorded(&self, facts: &mut Facts) {
        let session = &self.session;
        let has = |wanted: fn(What) -> bool| {
            session.count_calls(|operation| {
                let at = session
                    .operations
                    .iter()
                    .position(|known| known == operation);
                at.is_some_and(|at| wanted(self.operations[at].0))
            }) > 0
        };
        let recorded = &mut facts.recorded;
        recorded.counters |= !session.counted.is_empty();
        recorded.samples |= !session.sampling.is_empty();
        recorded.lost += session.ledger.dropped + session.ledger.lost_records;
        if self.is_evidence {
            return;
        }
        recorded.calls |= has(|what| what == What::Call);
        recorded.markers |= has(|what| matches!(what, What::Range(_)));
        recorded.copies |= !session.copies.is_empty();
        recorded.allocations |= !session.allocations.is_empty();
        recorded.stacks |= !session.stacks.is_empty();
        recorded.is_light |= !session.device_totals.is_empty();
        recorded.is_counted |= !session.counted.is_empty();
    }

    fn thread(&self, thread: ThreadId) -> u32 {
        self.threads.get(&thread).copied().unwrap_or(NONE)
    }

    /// The number of a marker, by the index of its call.
    fn marker(&self, index: usize) -> u32 {
        let place = self.markers.binary_search(&(index as u32));
        place.map_or(NONE, |place| self.first_marker + place as u32)
    }

    /// Index of the call that requested an operation, the outermost one before a marker, and the number of that marker.
    fn outermost_call(&self, correlation: u64) -> Option<(usize, u32)> {
        let calls = &self.session.calls;
        let mut outermost = None;
        let mut range = NONE;
        let mut at = correlation;
        for _ in 0..DEEPEST {
            let Some(index) = self.calls.get(at) else {
                break;
            };
            match self.operations[calls.operation[index].0 as usize].0 {
                What::Range(_) => {
                    range = self.marker(index);
                    break;
                }
                What::Call => outermost = Some(index),
                What::Other => {}
            }
            let ancestor = calls.ancestor[index].0;
            if ancestor == at {
                break;
            }
            at = ancestor;
        }
        Some((outermost?, range))
    }

    /// The call that requested an operation.
    fn launch(&self, correlation: u64) -> Option<Launch> {
        let (index, range) = self.outermost_call(correlation)?;
        let calls = &self.session.calls;
        let operation = calls.operation[index];
        let (_, name, is_graph) = self.operations[operation.0 as usize];
        Some(Launch {
            begin: calls.start[index].0,
            end: calls.end[index].0,
            thread: self.thread(calls.thread[index]),
            name,
            call: calls.correlation[index].0,
            is_graph,
            range,
        })
    }

    fn dispatches(&self) -> impl Iterator<Item = Op> + '_ {
        let table = self.session.kernel_dispatches();
        table.indices().filter_map(move |index| {
            if index & (RELEASE - 1) == 0 {
                self.session.calls.release();
            }
            // The program runs a dispatch once, however often it is replayed.
            if table.is_repeated(index) {
                return None;
            }
            self.dispatch(table, index)
        })
    }

    /// Name, class and resources of a dispatch's kernel.
    fn kernel(&self, table: &DispatchTable, index: usize) -> Option<(u32, Class, u32)> {
        let kernel = table.kernel[index].0;
        // A kernel that no region renames has the key with 0.
        let known = self.kernels.get(&(kernel, table.region[index]));
        known.or_else(|| self.kernels.get(&(kernel, 0))).copied()
    }

    fn dispatch(&self, table: &DispatchTable, index: usize) -> Option<Op> {
        if !is_plausible(self.times, table.start[index], table.end[index]) {
            return None;
        }
        let gpu = *self.gpus.get(&table.agent[index])?;
        let (name, class, resources) = self.kernel(table, index)?;
        Some(Op {
            id: table.dispatch[index].0,
            is_kernel: true,
            is_second: false,
            start: table.start[index].0,
            end: table.end[index].0,
            gpu,
            process: self.process,
            queue: self
                .queues
                .get(&table.queue[index])
                .copied()
                .unwrap_or(NONE),
            stream: table.stream[index].0,
            name,
            class,
            kernel: resources,
            bytes: 0,
            host_address: 0,
            grid: table.grid[index],
            group: table.workgroup[index],
            lds: table.group_size[index],
            scratch: table.private_size[index],
            launch: self.launch(table.correlation[index].0),
        })
    }

    fn copies(&self) -> impl Iterator<Item = Op> + '_ {
        let table = &self.session.copies;
        table.indices().flat_map(move |index| {
            let plausible = is_plausible(self.times, table.start[index], table.end[index]);
            let gpu = |agent| self.gpus.get(agent).copied().filter(|_| plausible);
            let (to, from) = (gpu(&table.dst_agent[index]), gpu(&table.src_agent[index]));
            let second = from.filter(|from| Some(*from) != to);
            let op = |gpu: u32, is_second: bool| Op {
                id: index as u64 + 1,
                is_kernel: false,
                is_second,
                start: table.start[index].0,
                end: table.end[index].0,
                gpu,
                process: self.process,
                queue: NONE,
                stream: table.stream[index].0,
                name: self.operations[table.operation[index].0 as usize].1,
                class: Class::Copy,
                kernel: NONE,
                bytes: table.bytes[index],
                host_address: match (to, from) {
                    (None, _) => table.dst_address[index],
                    (_, None) => table.src_address[index],
                    _ => 0,
                },
                grid: [0; 3],
                group: [0; 3],
                lds: 0,
                scratch: 0,
                launch: self.launch(table.correlation[index].0),
            };
            let first = to.map(|gpu| op(gpu, false));
            let second = second.map(|gpu| op(gpu, to.is_some()));
            first.into_iter().chain(second)
        })
    }

    /// Calls that no other call of their thread is around, each with the marker around it.
    fn outermost(&self) -> impl Iterator<Item = Call> + '_ {
        #[derive(Default)]
        struct OnThread {
            end: u64,
            ranges: Vec<(u64, u32)>,
        }
        let calls = &self.session.calls;
        let mut threads: HashMap<ThreadId, OnThread> = HashMap::new();
        let mut marker = self.first_marker;
        calls.indices().filter_map(move |index| {
            let operation = calls.operation[index].0 as usize;
            let (what, name, _) = self.operations[operation];
            let (start, end) = (calls.start[index].0, calls.end[index].0);
            match what {
                What::Range(style) => {
                    let id = marker;
                    marker += 1;
                    if style == Style::Nested {
                        let thread = threads.entry(calls.thread[index]).or_default();
                        thread.ranges.retain(|range| range.0 > start);
                        thread.ranges.push((end, id));
                    }
                    None
                }
                What::Other => None,
                What::Call => {
                    let thread = threads.entry(calls.thread[index]).or_default();
                    if start < thread.end
                        || !is_plausible(self.times, Nanoseconds(start), Nanoseconds(end))
                    {
                        return None;
                    }
                    thread.end = end;
                    while thread.ranges.last().is_some_and(|range| range.0 <= start) {
                        thread.ranges.pop();
                    }
                    Some(Call {
                        start,
                        end,
                        thread: self.thread(calls.thread[index]),
                        name,
                        id: calls.correlation[index].0,
                        range: thread.ranges.last().map_or(NONE, |range| range.1),
                    })
                }
            }
        })
    }

    /// All calls, those within others too; without markers.
    fn nested(&self) -> impl Iterator<Item = Call> + '_ {
        let calls = &self.session.calls;
        calls.indices().filter_map(move |index| {
            if index.is_multiple_of(RELEASE) {
                calls.release();
            }
            let (what, name, _) = self.operations[calls.operation[index].0 as usize];
            let (start, end) = (calls.start[index], calls.end[index]);
            let is_call = what == What::Call && is_plausible(self.times, start, end);
            is_call.then(|| Call {
                start: start.0,
                end: end.0,
                thread: self.thread(calls.thread[index]),
                name,
                id: calls.correlation[index].0,
                range: NONE,
            })
        })
    }

    fn markers(&self) -> impl Iterator<Item = Range> + '_ {
        let calls = &self.session.calls;
        let markers = (self.first_marker..).zip(&self.markers);
        markers.map(move |(id, index)| {
            if (id as usize).is_multiple_of(RELEASE) {
                calls.release();
            }
            let index = *index as usize;
            let style = match self.operations[calls.operation[index].0 as usize].0 {
                What::Range(style) => style,
                What::Call | What::Other => Style::Mark,
            };
            Range {
                id,
                start: calls.start[index].0,
                end: calls.end[index].0,
                thread: self.thread(calls.thread[index]),
                name: self
                    .messages
                    .get(&calls.message[index].0)
                    .copied()
                    .unwrap_or(NONE),
                style,
            }
        })
    }

    fn allocations(&self) -> impl Iterator<Item = Allocation> + '_ {
        let table = &self.session.allocations;
        table.indices().filter_map(move |index| {
            let class = self.session.operations[table.operation[index]].class;
            let is_free = match class {
                OperationClass::Memory(MemoryLevel::Real, Some(MemoryAction::Allocate)) => false,
                OperationClass::Memory(MemoryLevel::Real, Some(MemoryAction::Free)) => true,
                _ => return None,
            };
            let agent = self.session.agent(table.agent[index]);
            let is_host = agent.is_some_and(|agent| agent.agent_type == AgentType::Cpu);
            let requested = self.outermost_call(table.correlation[index].0);
            // Calls of HIP for memory of the host say so in their names.
            let is_of_runtime = is_host
                && requested.is_some_and(|(call, _)| {
                    let operation = self.session.calls.operation[call];
                    let name = self.session.operations[operation].name;
                    let name = self.session.strings.get(name);
                    name.starts_with("hip") && !name.contains("Host") && !name.contains("Managed")
                });
            Some(Allocation {
                start: table.start[index].0,
                end: table.end[index].0,
                process: self.process,
                address: table.address[index],
                bytes: table.bytes[index],
                is_free,
                is_host,
                is_of_runtime,
            })
        })
    }

    fn site(&self, call: u64) -> Option<String> {
        let index = self.calls.get(call)?;
        let calls = &self.session.calls;
        let stack = calls.stack.get(index)?.stack;
        if stack == 0 {
            return None;
        }
        let shown = self.settings.shown_frames;
        let expanded = self.expanded.get_or_init(|| expand(&self.session, shown));
        let texts = Texts::new(&self.session, expanded);
        Some(texts.site(StackedFunction {
            stack,
            function: self.session.call(index).name,
        }))
    }
}

fn is_plausible(times: PlausibleTimes, start: Nanoseconds, end: Nanoseconds) -> bool {
    // One that ends before its start is known as such by answers.
    end <= start && start.0 > 0 || times.duration(start, end).is_some()
}

/// Several series in the order of starts, as one.
struct Merged<'a, T> {
    series: Vec<std::iter::Peekable<Each<'a, T>>>,
    start: fn(&T) -> u64,
}

impl<T> Iterator for Merged<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let start = self.start;
        let ahead = self.series.iter_mut().enumerate();
        let ahead = ahead.filter_map(|(index, series)| Some((start(series.peek()?), index)));
        let (_, index) = ahead.min()?;
        self.series[index].next()
    }
}

fn merged<'a, T: 'a>(series: Vec<Each<'a, T>>, start: fn(&T) -> u64) -> Each<'a, T> {
    let mut series: Vec<_> = series.into_iter().map(Iterator::peekable).collect();
    series.retain_mut(|series| series.peek().is_some());
    match series.len() {
        1 => Box::new(series.remove(0)),
        _ => Box::new(Merged { series, start }),
    }
}

impl Loaded {
    /// Recordings whose operations count.
    fn timed(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| !part.is_evidence)
    }
}

impl Records for Loaded {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn ops(&self) -> Each<'_, Op> {
        let series = self.timed().flat_map(|part| {
            let both: [Each<'_, Op>; 2] = [Box::new(part.dispatches()), Box::new(part.copies())];
            both
        });
        merged(series.collect(), |op| op.start)
    }

    fn calls(&self) -> Each<'_, Call> {
        let each = |part| -> Each<'_, Call> { Box::new(Part::outermost(part)) };
        merged(self.timed().map(each).collect(), |call| call.start)
    }

    fn nested_calls(&self) -> Each<'_, Call> {
        let each = |part| -> Each<'_, Call> { Box::new(Part::nested(part)) };
        merged(self.timed().map(each).collect(), |call| call.start)
    }

    fn ranges(&self) -> Each<'_, Range> {
        let each = |part| -> Each<'_, Range> { Box::new(Part::markers(part)) };
        merged(self.timed().map(each).collect(), |range| range.start)
    }

    fn allocations(&self) -> Each<'_, Allocation> {
        let each = |part| -> Each<'_, Allocation> { Box::new(Part::allocations(part)) };
        merged(self.timed().map(each).collect(), |change| change.start)
    }

    fn counted(&self) -> Each<'_, Counted> {
        Box::new(self.parts.iter().flat_map(Part::counted))
    }

    fn sampled(&self) -> &[Sampled] {
        &self.sampled
    }

    fn site(&self, process: u32, call: u64) -> Option<String> {
        self.parts.get(process as usize)?.site(call)
    }
}
