//! State of the program: its memory, streams, graphs and kernels.

use std::cell::UnsafeCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rpd_spool::capture::{AllocationItem, memory_kind};
use rpd_spool::writer::ForkLock;

use super::content::{Content, Staged};
use super::metadata::Kernel;
use super::order::{Order, covers};
use super::pinned::Uploads;
use super::ranges::Range;
use crate::recording::fork::ForkHook;

/// The state, behind its lock.
pub(super) struct Shared {
    lock: ForkLock,
    state: UnsafeCell<Option<State>>,
}

// SAFETY: the state is only touched with the lock held.
unsafe impl Sync for Shared {}

/// The state of this process.
pub(super) static STATE: Shared = Shared {
    lock: ForkLock::new(),
    state: UnsafeCell::new(None),
};

/// A child that is forked is not captured.
pub(super) static FORK: ForkHook = ForkHook::new()
    .lock(&STATE.lock)
    .in_child(super::forget_parent);

impl Shared {
    /// Runs `act` with the lock held. `None` when this thread holds it: a signal handler interrupted the holder.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> Option<T> {
        let _guard = self.lock.lock()?;
        // SAFETY: the lock is held.
        let state = unsafe { &mut *self.state.get() };
        Some(act(state.get_or_insert_with(State::default)))
    }
}

/// Live memory.
struct Memory {
    /// Number of the allocation, from 1.
    number: u64,
    size: u64,
    kind: u32,
    /// Its content when it was taken last.
    taken: Option<Content>,
    /// The last launch that may use it now.
    used_by: Option<Use>,
}

/// A launch that may use host-visible memory.
#[derive(Debug, Clone, Copy)]
struct Use {
    /// The start of the launch.
    launch: u64,
    stream: u64,
    /// The number of the work; `None` until the runtime has it.
    work: Option<u64>,
}

/// A kernel that can be launched.
#[derive(Debug, Clone)]
pub(super) struct Launchable {
    /// Number of its code object; 0 when that is not known.
    pub(super) code: u64,
    pub(super) kernel: Arc<Kernel>,
}

struct Code {
    id: u64,
    kernels: HashMap<Vec<u8>, Arc<Kernel>>,
}

#[derive(Debug, Default, Clone)]
struct HostRanges {
    sources: Vec<Range>,
    destinations: Vec<Range>,
}

impl HostRanges {
    fn add(&mut self, source: Option<Range>, destination: Option<Range>) {
        for (list, range) in [
            (&mut self.sources, source),
            (&mut self.destinations, destination),
        ] {
            if let Some(range) = range
                && !list.contains(&range)
            {
                list.push(range);
            }
        }
    }
}

/// State of the program, as its calls have left it.
#[derive(Default)]
pub(super) struct State {
    pub(super) order: Order,
    pub(super) staged: Staged,
    pub(super) uploads: Uploads,
    memory: BTreeMap<u64, Memory>,
    last_memory: u64,
    /// Bases of the memory that launches may use.
    in_use: Vec<u64>,
    /// Device addresses of host memory, where they differ.
    aliases: BTreeMap<u64, u64>,
    codes: Vec<Code>,
    /// Names of kernels by host function.
    hosts: HashMap<u64, Arc<[u8]>>,
    variables: HashMap<u64, Arc<[u8]>>,
    /// Kernels by host function or function handle.
    launchable: HashMap<u64, Launchable>,
    modules: HashMap<u64, Vec<u64>>,
    /// Numbers of stream captures by stream and by event.
    capturing: HashMap<u64, u64>,
    capturing_events: HashMap<u64, u64>,
    captures: HashMap<u64, HostRanges>,
    last_capture: u64,
    /// Host memory that graphs and executable graphs copy from and to.
    graphs: HashMap<u64, HostRanges>,
}

/// A host function that launches a kernel was registered. Done also before anything is captured.
pub(crate) fn register_function(host: u64, name: &[u8]) {
    STATE.with(|state| state.hosts.insert(host, name.into()));
}

/// The host address of a device variable was registered.
pub(crate) fn register_variable(host: u64, name: &[u8]) {
    STATE.with(|state| state.variables.insert(host, name.into()));
}

impl State {
    pub(super) fn allocated(&mut self, made: AllocationItem) {
        self.last_memory += 1;
        let memory = Memory {
            number: self.last_memory,
            size: made.size,
            kind: made.kind,
            taken: None,
            used_by: None,
        };
        self.memory.insert(made.base, memory);
    }

    /// The number of the allocation at `base`, for [`State::freed`]; 0 when there is none.
    pub(super) fn allocation(&self, base: u64) -> u64 {
        self.memory.get(&base).map_or(0, |memory| memory.number)
    }

    /// The allocation `number` at `base` was freed. When the call that frees it has returned, another thread may have the address
    /// again already.
    pub(super) fn freed(&mut self, base: u64, number: u64) {
        if self.allocation(base) == number {
            self.memory.remove(&base);
        }
    }

    pub(super) fn forget_memory(&mut self) {
        self.memory.clear();
        self.aliases.clear();
        self.uploads = Uploads::default();
    }

    pub(super) fn alias(&mut self, device: u64, host: u64) {
        if device != host {
            self.aliases.insert(device, host);
        }
    }

    fn memory_at(&mut self, address: u64) -> Option<(u64, &mut Memory)> {
        let (&base, memory) = self.memory.range_mut(..=address).next_back()?;
        (address - base < memory.size).then_some((base, memory))
    }

    /// Whether an address of a copy is one of the host.
    pub(super) fn is_host(&mut self, address: u64) -> bool {
        self.memory_at(address).is_none_or(|(_, memory)| {
            matches!(memory.kind, memory_kind::HOST | memory_kind::REGISTERED)
        })
    }

    /// Whether all of this is memory of the host that the program has pinned.
    pub(super) fn is_pinned(&mut self, address: u64, size: u64) -> bool {
        self.memory_at(address).is_some_and(|(base, memory)| {
            matches!(memory.kind, memory_kind::HOST | memory_kind::REGISTERED)
                && size <= memory.size - (address - base)
        })
    }

    pub(super) fn variable(&self, host: u64) -> Option<Arc<[u8]>> {
        self.variables.get(&host).cloned()
    }

    pub(super) fn code_loaded(&mut self, id: u64, _agent: u64, kernels: Vec<Kernel>) {
        let kernels = kernels
            .into_iter()
            .map(|kernel| (kernel.name.clone(), Arc::new(kernel)))
            .collect();
        self.codes.push(Code { id, kernels });
    }

    pub(super) fn code_unloaded(&mut self, id: u64) {
        self.codes.retain(|code| code.id != id);
        self.launchable.retain(|_, found| found.code != id);
    }

    pub(super) fn module_loaded(&mut self, module: u64, codes: &[u64]) {
        self.modules.insert(module, codes.to_vec());
    }

    /// A kernel called `name` in one of the code objects `codes`, the last first; in any when there are none.
    fn kernel(&self, codes: &[u64], name: &[u8]) -> Option<Launchable> {
        let found = self
            .codes
            .iter()
            .rev()
            .filter(|code| codes.is_empty() || codes.contains(&code.id));
        found
            .filter_map(|code| Some((code.id, code.kernels.get(name)?)))
            .map(|(code, kernel)| Launchable {
                code,
                kernel: Arc::clone(kernel),
            })
            .next()
    }

    pub(super) fn function_found(&mut self, function: u64, module: u64, name: &[u8]) {
        let codes = self.modules.get(&module).cloned().unwrap_or_default();
        match self.kernel(&codes, name) {
            Some(found) => self.launchable.insert(function, found),
            None => self.launchable.remove(&function),
        };
    }

    pub(super) fn function_of_host(&mut self, function: u64, host: u64) -> Option<Launchable> {
        let found = self.launch(host, &[])?;
        self.launchable.insert(function, found.clone());
        Some(found)
    }

    /// Kernel of a host function or function handle. `loaded`: code objects that were just loaded for it.
    pub(super) fn launch(&mut self, function: u64, loaded: &[u64]) -> Option<Launchable> {
        if let Some(found) = self.launchable.get(&function) {
            return Some(found.clone());
        }
        let name = Arc::clone(self.hosts.get(&function)?);
        let found = Some(loaded)
            .filter(|loaded| !loaded.is_empty())
            .and_then(|loaded| self.kernel(loaded, &name))
            .or_else(|| self.kernel(&[], &name))?;
        self.launchable.insert(function, found.clone());
        Some(found)
    }

    /// Whether it is known what the function launches, now or once its code object is loaded.
    pub(super) fn is_registered(&self, function: u64) -> bool {
        self.hosts.contains_key(&function)
    }

    /// The host-visible memory that a launch may read, because `words` point into it, and that has changed since it was
    /// taken. What a launch uses already is left alone: the host does not write it then.
    pub(super) fn visible(
        &mut self,
        words: impl Iterator<Item = u64>,
        launch: u64,
        stream: u64,
    ) -> Vec<Range> {
        let mut changed = Vec::new();
        for word in words {
            let alias = self.aliases.get(&word).copied().unwrap_or(word);
            self.use_memory(alias, launch, stream, &mut changed);
        }
        changed
    }

    /// As [`State::visible`], for all host-visible memory.
    pub(super) fn all_visible(&mut self, launch: u64, stream: u64) -> Vec<Range> {
        let bases: Vec<u64> = self.memory.keys().copied().collect();
        let mut changed = Vec::new();
        for base in bases {
            self.use_memory(base, launch, stream, &mut changed);
        }
        changed
    }

    /// The call of a launch has returned: what it may use is in use until that work is complete, or, when it has `failed`,
    /// the work that the stream had before.
    pub(super) fn launched(&mut self, launch: u64, stream: u64, failed: bool) {
        let work = match failed {
            true => self.order.work(stream),
            false => self.order.enqueue(stream),
        };
        for base in &self.in_use {
            let used = self
                .memory
                .get_mut(base)
                .and_then(|memory| memory.used_by.as_mut());
            if let Some(used) = used.filter(|used| used.launch == launch) {
                used.work = Some(work);
            }
        }
    }

    fn use_memory(&mut self, address: u64, launch: u64, stream: u64, changed: &mut Vec<Range>) {
        let Some((base, memory)) = self.memory_at(address) else {
            return;
        };
        let mut begins = false;
        if !memory_kind::is_host_visible(memory.kind) {
            return;
        }
        if memory.used_by.is_none() {
            begins = true;
            // SAFETY: live memory of the host that nothing else uses now.
            let content = Some(unsafe { Content::of(base, memory.size) });
            if content != memory.taken {
                memory.taken = content;
                changed.push(Range::flat(base, memory.size));
            }
        }
        memory.used_by = Some(Use {
            launch,
            stream,
            work: None,
        });
        if begins {
            self.in_use.push(base);
        }
    }

    /// The managed memory at an address, if the host has changed it since it was taken and no launch uses it.
    pub(super) fn changed(&mut self, address: u64) -> Option<Range> {
        let (base, memory) = self.memory_at(address)?;
        if memory.kind != memory_kind::MANAGED || memory.used_by.is_some() {
            return None;
        }
        // SAFETY: live memory of the host that nothing else uses now.
        let content = Some(unsafe { Content::of(base, memory.size) });
        let is_new = content != memory.taken;
        memory.taken = content;
        is_new.then(|| Range::flat(base, memory.size))
    }

    /// The memory whose use is complete, with the launches that used it.
    pub(super) fn settle(&mut self, covered: &[(u64, u64)]) -> Vec<(u64, Range)> {
        let mut changed = Vec::new();
        self.in_use.retain(|base| {
            let Some(memory) = self.memory.get_mut(base) else {
                return false;
            };
            let Some(used) = memory.used_by else {
                return false;
            };
            let is_done = used
                .work
                .is_some_and(|work| covers(covered, used.stream, work));
            if !is_done {
                return true;
            }
            memory.used_by = None;
            // SAFETY: live memory of the host.
            memory.taken = Some(unsafe { Content::of(*base, memory.size) });
            changed.push((used.launch, Range::flat(*base, memory.size)));
            false
        });
        changed
    }

    pub(super) fn capture_begins(&mut self, stream: u64) {
        self.last_capture += 1;
        self.capturing.insert(stream, self.last_capture);
    }

    pub(super) fn capturing(&self, stream: u64) -> Option<u64> {
        self.capturing.get(&stream).copied()
    }

    pub(super) fn event_recorded(&mut self, event: u64, stream: u64) {
        match self.capturing(stream) {
            Some(capture) => self.capturing_events.insert(event, capture),
            None => self.capturing_events.remove(&event),
        };
    }

    pub(super) fn stream_waits(&mut self, stream: u64, event: u64) {
        if let Some(capture) = self.capturing_events.get(&event) {
            self.capturing.insert(stream, *capture);
        }
    }

    pub(super) fn capture_ranges(
        &mut self,
        capture: u64,
        source: Option<Range>,
        destination: Option<Range>,
    ) {
        self.captures
            .entry(capture)
            .or_default()
            .add(source, destination);
    }

    pub(super) fn capture_ends(&mut self, stream: u64, graph: u64) {
        let Some(capture) = self.capturing(stream) else {
            return;
        };
        self.capturing.retain(|_, known| *known != capture);
        self.capturing_events.retain(|_, known| *known != capture);
        let ranges = self.captures.remove(&capture).unwrap_or_default();
        self.graphs.insert(graph, ranges);
    }

    pub(super) fn graph_ranges(
        &mut self,
        graph: u64,
        source: Option<Range>,
        destination: Option<Range>,
    ) {
        self.graphs
            .entry(graph)
            .or_default()
            .add(source, destination);
    }

    /// The graph was made; its handle may be that of an older one.
    pub(super) fn new_graph(&mut self, graph: u64) {
        self.graphs.remove(&graph);
    }

    /// Adds the copies of graph `from` to graph `to`.
    pub(super) fn add_graph(&mut self, from: u64, to: u64) {
        let ranges = self.graphs.get(&from).cloned().unwrap_or_default();
        let into = self.graphs.entry(to).or_default();
        for range in ranges.sources {
            into.add(Some(range), None);
        }
        for range in ranges.destinations {
            into.add(None, Some(range));
        }
    }

    /// `to` copies what `from` does, and nothing else.
    pub(super) fn copy_graph(&mut self, from: u64, to: u64) {
        let ranges = self.graphs.get(&from).cloned().unwrap_or_default();
        self.graphs.insert(to, ranges);
    }

    /// The host memory that a graph reads and writes.
    pub(super) fn graph(&self, graph: u64) -> (Vec<Range>, Vec<Range>) {
        let found = self.graphs.get(&graph).cloned().unwrap_or_default();
        (found.sources, found.destinations)
    }
}
