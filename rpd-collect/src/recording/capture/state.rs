//! State of the program: its memory, streams, graphs and kernels.

use std::cell::UnsafeCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rpd_spool::capture::{AllocationItem, memory_kind};

use super::content::{Content, Staged};
use super::graphs::Graphs;
use super::images::Images;
use super::metadata::Kernel;
use super::options;
use super::order::{Order, covers};
use super::pages::Pages;
use super::pinned::Uploads;
use super::ranges::Range;
use super::values::Values;
use super::watch::Hole;
use crate::recording::fork::ForkHook;

/// The state, behind its lock.
pub(super) struct SharedCapture {
    state: UnsafeCell<Option<CaptureState>>,
}

// SAFETY: the state is only touched with the lock held.
unsafe impl Sync for SharedCapture {}

/// The state of this process.
pub(super) static STATE: SharedCapture = SharedCapture {
    state: UnsafeCell::new(None),
};

/// Hook whose lock guards [`STATE`]. A child that is forked is not captured.
pub(super) static FORK: ForkHook = ForkHook::new().in_child(super::forget_parent);

impl SharedCapture {
    /// Runs `act` with the lock held. `None` when this thread holds it: a signal handler interrupted the holder.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut CaptureState) -> T) -> Option<T> {
        let _guard = FORK.lock()?;
        // SAFETY: the lock is held.
        let state = unsafe { &mut *self.state.get() };
        Some(act(state.get_or_insert_with(CaptureState::default)))
    }
}

/// Live memory of the program: an allocation.
pub(super) struct Memory {
    /// Number of the allocation, from 1.
    pub(super) number: u64,
    size: u64,
    pub(super) kind: u32,
    /// Number of the device that was current when it was allocated.
    pub(super) device: i32,
    /// Why a replay of a kernel by the provider does not put it back; `None` if it does.
    pub(super) hole: Option<Hole>,
    /// Content of the memory when it was taken last.
    taken: Option<Content>,
    /// Content of the memory's pages when they were taken last, where changes are found by pages.
    pages: Option<Pages>,
    /// Bases of other host-visible memory to which the memory points.
    leads_to: Vec<u64>,
    /// The last launch that may use the memory now.
    pub(super) used_by: Option<Use>,
}

/// A launch that may use host-visible memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    /// Sequence number of the launch's begin.
    pub(super) launch: u64,
    stream: u64,
    /// The number of the work; `None` until it is submitted to the runtime.
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
    /// Address at which the code object is loaded, and its size in bytes.
    load: (u64, u64),
    kernels: HashMap<Vec<u8>, Arc<Kernel>>,
}

/// State of the program, as its calls have left it.
#[derive(Default)]
pub(super) struct CaptureState {
    pub(super) order: Order,
    pub(super) staged: Staged,
    pub(super) uploads: Uploads,
    pub(super) values: Values,
    pub(super) memory: BTreeMap<u64, Memory>,
    last_memory: u64,
    /// The lowest and the highest address of host-visible memory so far.
    pub(super) visible: Option<(u64, u64)>,
    /// Base and number of the host-visible memory to which memory of the device points.
    pub(super) behind: Vec<(u64, u64)>,
    /// Bases of the memory of managed variables.
    managed: Vec<u64>,
    /// Bases of the memory that launches may use.
    in_use: Vec<u64>,
    /// Device addresses of host memory, where they differ.
    aliases: BTreeMap<u64, u64>,
    codes: Vec<Code>,
    /// Kernels by host function, and device variables by host address.
    hosts: HashMap<u64, Registered>,
    variables: HashMap<u64, Registered>,
    /// Numbers of the code objects that are known to come from a fat binary.
    binaries: HashMap<u64, Vec<u64>>,
    /// Numbers of the code objects that have variables, by host address and device.
    variable_codes: HashMap<(u64, i32), u64>,
    /// Kernels by host function or function handle.
    launchable: HashMap<u64, Launchable>,
    modules: HashMap<u64, Vec<u64>>,
    pub(super) graphs: Graphs,
    pub(super) images: Images,
    /// Address at which physical memory was mapped first, by its handle.
    mapped: HashMap<u64, u64>,
}

/// A host function or variable that the program has registered: the handle of its fat binary, and its name in the code
/// objects.
#[derive(Debug, Clone)]
struct Registered {
    binary: u64,
    name: Arc<[u8]>,
}

/// A host function that launches a kernel of a fat binary was registered. Done also before anything is captured.
pub(crate) fn register_function(binary: u64, host: u64, name: &[u8]) {
    let name = name.into();
    STATE.with(|state| state.hosts.insert(host, Registered { binary, name }));
}

/// The host address of a device variable of a fat binary was registered.
pub(crate) fn register_variable(binary: u64, host: u64, name: &[u8]) {
    let name = name.into();
    STATE.with(|state| state.variables.insert(host, Registered { binary, name }));
}

impl CaptureState {
    pub(super) fn allocated(&mut self, made: AllocationItem) {
        self.last_memory += 1;
        let memory = Memory {
            number: self.last_memory,
            size: made.size,
            kind: made.kind,
            device: super::DEVICE.get(),
            hole: Hole::from_kind(made.kind),
            taken: None,
            pages: None,
            leads_to: Vec::new(),
            used_by: None,
        };
        self.memory.insert(made.base, memory);
        if memory_kind::is_host_visible(made.kind) {
            let (start, end) = (made.base, made.base + made.size);
            let (low, high) = self.visible.unwrap_or((start, end));
            self.visible = Some((low.min(start), high.max(end)));
        }
    }

    /// Notes why a replay does not put the memory at `base` back.
    pub(super) fn set_hole(&mut self, base: u64, hole: Hole) {
        if let Some(memory) = self.memory.get_mut(&base) {
            memory.hole = Some(hole);
        }
    }

    /// Whether an address is that of code or variables that were loaded.
    pub(super) fn is_in_code(&self, address: u64) -> bool {
        let mut codes = self.codes.iter();
        codes.any(|code| address.wrapping_sub(code.load.0) < code.load.1)
    }

    /// The address that the host has for memory that a device names by `address`.
    pub(super) fn host_address(&self, address: u64) -> u64 {
        self.aliases.get(&address).copied().unwrap_or(address)
    }

    /// Whether the kernels of a code object may use a managed variable. One whose code is not known may be any's.
    pub(super) fn has_managed(&self, code: u64) -> bool {
        self.managed.iter().any(|base| {
            let codes = (self.variables.get(base))
                .and_then(|variable| self.binaries.get(&variable.binary))
                .filter(|codes| !codes.is_empty());
            codes.is_none_or(|codes| codes.contains(&code))
        })
    }

    /// Adds the memory of a managed variable, which the runtime has allocated and every launch may use.
    pub(super) fn managed_variable(&mut self, made: AllocationItem) {
        self.allocated(made);
        self.managed.push(made.base);
    }

    /// The number of the allocation at `base`, for [`CaptureState::freed`]; 0 when there is none.
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

    /// Removes all memory in a range that was unmapped.
    pub(super) fn unmapped(&mut self, base: u64, size: u64) {
        let end = base.saturating_add(size);
        self.memory.retain(|at, _| !(base..end).contains(at));
    }

    /// Notes that physical memory was made: its handle may be that of an older one.
    pub(super) fn new_physical(&mut self, handle: u64) {
        self.mapped.remove(&handle);
    }

    /// Notes that physical memory was mapped. True if it had been before, at another address.
    pub(super) fn is_mapped_again(&mut self, handle: u64, base: u64) -> bool {
        *self.mapped.entry(handle).or_insert(base) != base
    }

    /// Notes that the program has the handle of the physical memory at an address.
    pub(super) fn physical_found(&mut self, handle: u64, address: u64) {
        if let Some((base, _)) = self.memory_at(address) {
            self.mapped.entry(handle).or_insert(base);
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

    pub(super) fn memory_at(&mut self, address: u64) -> Option<(u64, &mut Memory)> {
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
        let found = self.variables.get(&host)?;
        Some(Arc::clone(&found.name))
    }

    /// Notes the texture reference `name` of a module, which the runtime has given out for the current device of the
    /// thread.
    pub(super) fn reference_found(&mut self, at: u64, module: u64, name: &[u8], device: i32) {
        let code = self.modules.get(&module).and_then(|codes| codes.last());
        match code {
            Some(code) => drop(self.variable_codes.insert((at, device), *code)),
            None => drop(self.variable_codes.remove(&(at, device))),
        }
        let (binary, name) = (0, name.into());
        self.variables.insert(at, Registered { binary, name });
    }

    /// The code object that has a device variable on a device, as far as that is known.
    pub(super) fn code_of_variable(&self, host: u64, device: i32) -> Option<u64> {
        self.variable_codes.get(&(host, device)).copied()
    }

    /// Notes that a device variable lies at `address`. Returns the code object that is loaded there.
    pub(super) fn variable_found(&mut self, host: u64, device: i32, address: u64) -> Option<u64> {
        let mut codes = self.codes.iter().rev();
        let found = codes.find(|code| address.wrapping_sub(code.load.0) < code.load.1)?;
        let code = found.id;
        self.variable_codes.insert((host, device), code);
        if let Some(variable) = self.variables.get(&host) {
            self.binaries.entry(variable.binary).or_default().push(code);
        }
        Some(code)
    }

    pub(super) fn code_loaded(&mut self, id: u64, load: (u64, u64), kernels: Vec<Kernel>) {
        let kernels = kernels
            .into_iter()
            .map(|kernel| (kernel.name.clone(), Arc::new(kernel)))
            .collect();
        self.codes.push(Code { id, load, kernels });
    }

    pub(super) fn code_unloaded(&mut self, id: u64) {
        self.codes.retain(|code| code.id != id);
        self.launchable.retain(|_, found| found.code != id);
        self.variable_codes.retain(|_, found| *found != id);
        for codes in self.binaries.values_mut() {
            codes.retain(|code| *code != id);
        }
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

    /// The kernel called `name`, which the program launches by a handle.
    pub(super) fn function_named(&mut self, function: u64, name: &[u8]) -> Option<Launchable> {
        let found = self.kernel(&[], name)?;
        self.launchable.insert(function, found.clone());
        Some(found)
    }

    pub(super) fn function_of_host(&mut self, function: u64, host: u64) -> Option<Launchable> {
        let found = self.launch(host, &[])?;
        self.launchable.insert(function, found.clone());
        Some(found)
    }

    /// Kernel of a host function or function handle, if its code object is known.
    pub(super) fn known_launch(&mut self, function: u64) -> Option<Launchable> {
        if let Some(found) = self.launchable.get(&function) {
            return Some(found.clone());
        }
        let Registered { binary, name } = self.hosts.get(&function)?.clone();
        // Kernels of several fat binaries may have one name.
        let codes = self.binaries.get(&binary)?;
        if codes.is_empty() {
            return None;
        }
        let found = self.kernel(codes, &name)?;
        self.launchable.insert(function, found.clone());
        Some(found)
    }

    /// Kernel of a host function, once its code is loaded; `loaded`: code objects that were just loaded for it.
    pub(super) fn launch(&mut self, function: u64, loaded: &[u64]) -> Option<Launchable> {
        let Registered { binary, name } = self.hosts.get(&function)?.clone();
        if !loaded.is_empty() {
            let codes = self.binaries.entry(binary).or_default();
            codes.extend_from_slice(loaded);
        }
        if let Some(found) = self.known_launch(function) {
            return Some(found);
        }
        let found = self.kernel(&[], &name)?;
        self.launchable.insert(function, found.clone());
        Some(found)
    }

    /// Whether the kernel is known that the function launches, now or once its code object is loaded.
    pub(super) fn is_registered(&self, function: u64) -> bool {
        self.hosts.contains_key(&function)
    }

    /// The host-visible memory that a launch may read, because it is of managed variables, because `words` point into it, or because
    /// such memory points to it, and that has changed since it was taken. What a launch uses already is left alone: the host does
    /// not write it then.
    pub(super) fn visible(
        &mut self,
        words: impl Iterator<Item = u64>,
        launch: u64,
        stream: u64,
    ) -> Vec<Range> {
        let mut changed = Vec::new();
        for index in 0..self.managed.len() {
            self.use_memory(self.managed[index], launch, stream, &mut changed);
        }
        for word in words {
            let alias = self.aliases.get(&word).copied().unwrap_or(word);
            self.use_memory(alias, launch, stream, &mut changed);
        }
        changed
    }

    /// The words that point into host-visible memory.
    pub(super) fn host_words(&mut self, mut words: Vec<u64>) -> Vec<u64> {
        words.retain(|word| self.pointed_to(*word).is_some());
        words
    }

    /// The host-visible memory that a word points into.
    pub(super) fn pointed_to(&mut self, word: u64) -> Option<Range> {
        let address = self.aliases.get(&word).copied().unwrap_or(word);
        let (base, memory) = self.memory_at(address)?;
        memory_kind::is_host_visible(memory.kind).then(|| Range::flat(base, memory.size))
    }

    /// The call of launch `launch` has returned. The memory that the launch may access is in use until its work is
    /// complete; if the call has `failed`, until the work that the stream had before is complete.
    pub(super) fn launched(&mut self, launch: u64, stream: u64, failed: bool) {
        let work = if failed {
            self.order.work(stream)
        } else {
            self.order.enqueue(stream)
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
        let mut waiting = Vec::new();
        let mut next = Some(address);
        while let Some(address) = next {
            if let Some((base, memory)) = self.memory_at(address)
                && memory_kind::is_host_visible(memory.kind)
                && memory.used_by.is_none_or(|used| used.launch != launch)
            {
                let begins = memory.used_by.is_none();
                memory.used_by = Some(Use {
                    launch,
                    stream,
                    work: None,
                });
                if begins {
                    self.in_use.push(base);
                    changed.extend(self.take(base, false));
                }
                if let Some(memory) = self.memory.get(&base) {
                    waiting.extend_from_slice(&memory.leads_to);
                }
            }
            next = waiting.pop();
        }
    }

    /// A copy writes a range. If the host writes the former content back, that has to be captured, although it equals
    /// what was captured last.
    pub(super) fn copy_writes(&mut self, range: &Range) {
        if let Some((_, memory)) = self.memory_at(range.address) {
            memory.taken = None;
            if let Some(pages) = &mut memory.pages {
                pages.forget(range);
            }
        }
    }

    /// Adds the ranges of host-visible memory that no launch uses and that have changed since they were taken.
    pub(super) fn look_at_others(&mut self, changed: &mut Vec<Range>) {
        let by_pages = options().is_some_and(|options| options.pageguard);
        let unused = self.memory.iter().filter(|(base, memory)| {
            let range = Range::flat(**base, memory.size);
            memory_kind::is_host_visible(memory.kind)
                && memory.used_by.is_none()
                // Half of what a copy under way has written is of no use; pages can be left out.
                && (by_pages || self.order.written_in(&range).is_empty())
        });
        let bases: Vec<u64> = unused.map(|(base, _)| *base).collect();
        for base in bases {
            changed.extend(self.take(base, false));
        }
    }

    /// Looks at memory that no launch uses; all of it, if it has changed since it was taken, or the pages that have.
    /// `written_by_device`: a launch has used it.
    fn take(&mut self, base: u64, written_by_device: bool) -> Vec<Range> {
        let options = options().copied().unwrap_or_default();
        let Some(memory) = self.memory.get_mut(&base) else {
            return Vec::new();
        };
        let size = memory.size;
        if options.pageguard {
            let busy = self.order.written_in(&Range::flat(base, size));
            let changed = match &mut memory.pages {
                Some(pages) => {
                    // What the device wrote is of interest as a result only.
                    let is_unseen = written_by_device && !options.device_writes_seen;
                    let changed = pages.changed_ranges(is_unseen && options.outputs, &busy);
                    if is_unseen && !options.outputs {
                        pages.forget(&Range::flat(base, size));
                    }
                    changed
                }
                None => {
                    // SAFETY: live memory of the host, until this entry is removed.
                    memory.pages = Some(unsafe { Pages::new(base, size) });
                    vec![Range::flat(base, size)]
                }
            };
            // Pointers that are there no more make a launch use more memory than it does.
            for range in &changed {
                let found = self.pointers_in(range.address, range.bytes(), base);
                if let Some(memory) = self.memory.get_mut(&base) {
                    memory.leads_to.extend_from_slice(&found);
                    memory.leads_to.sort_unstable();
                    memory.leads_to.dedup();
                }
            }
            return changed;
        }
        let whole = Range::flat(base, size);
        let busy = self.order.surely_written_in(&whole);
        if !busy.is_empty() {
            // What a copy under way writes is not of the host, and is there in a replay in the order of the streams.
            memory.taken = None;
            let rest = whole.without(&busy);
            let found = rest
                .iter()
                .flat_map(|range| self.pointers_in(range.address, range.bytes(), base));
            let leads_to = found.collect();
            if let Some(memory) = self.memory.get_mut(&base) {
                memory.leads_to = leads_to;
            }
            return rest;
        }
        // SAFETY: live memory of the host that nothing else uses now.
        let content = Some(unsafe { Content::from_address(base, size) });
        if memory.taken == content {
            return Vec::new();
        }
        memory.taken = content;
        let leads_to = self.pointers_in(base, size, base);
        if let Some(memory) = self.memory.get_mut(&base) {
            memory.leads_to = leads_to;
        }
        vec![Range::flat(base, size)]
    }

    /// Bases of other host-visible memory than that at `own` to which words of this memory point.
    fn pointers_in(&self, base: u64, size: u64, own: u64) -> Vec<u64> {
        let Some((low, high)) = self.visible else {
            return Vec::new();
        };
        let mut found = Vec::new();
        // Memory of the runtime begins at multiples of much more, registered memory need not.
        for at in (base.next_multiple_of(8)..(base + size) / 8 * 8).step_by(8) {
            // SAFETY: live memory of the host.
            let word = unsafe { (at as *const u64).read_volatile() };
            if word.wrapping_sub(low) < high - low
                && let Some((&other, memory)) = self.memory.range(..=word).next_back()
                && word - other < memory.size
                && other != own
                && memory_kind::is_host_visible(memory.kind)
                && found.last() != Some(&other)
            {
                found.push(other);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The managed memory at an address, if the host has changed it since it was taken and no launch uses it.
    pub(super) fn changed(&mut self, address: u64) -> Vec<Range> {
        match self.memory_at(address) {
            Some((base, memory))
                if memory.kind == memory_kind::MANAGED && memory.used_by.is_none() =>
            {
                self.take(base, false)
            }
            _ => Vec::new(),
        }
    }

    /// The memory whose use is complete, with the launches that used it.
    pub(super) fn take_complete_uses(&mut self, covered: &[(u64, u64)]) -> Vec<(u64, Range)> {
        let mut done = Vec::new();
        let memory = &mut self.memory;
        self.in_use.retain(|base| {
            let Some(memory) = memory.get_mut(base) else {
                return false;
            };
            let Some(used) = memory.used_by else {
                return false;
            };
            let is_done = used
                .work
                .is_some_and(|work| covers(covered, used.stream, work));
            if is_done {
                memory.used_by = None;
                done.push((used.launch, *base, memory.size));
            }
            !is_done
        });
        let by_pages = options().is_some_and(|options| options.pageguard);
        let mut results = Vec::new();
        for (launch, base, size) in done {
            let changed = self.take(base, true);
            let written = if by_pages {
                changed
            } else {
                vec![Range::flat(base, size)]
            };
            results.extend(written.into_iter().map(|range| (launch, range)));
        }
        results
    }
}
