//! Costs of stacks: calls, processor time, GPU time and bytes of each stack, and the memory that was allocated with it.

use std::collections::{BTreeMap, HashMap};

use rpd_core::ids::StringId;
use rpd_core::options::KernelNames;
use rpd_core::session::shown::{Expanded, FrameKind, ShownFrame};
use rpd_core::session::stacks::LocationKind;
use rpd_core::session::{
    KernelLabels, MemoryAction, MemoryLevel, OperationClass, PlausibleTimes, Session,
};

use rpd_formats::flame;
use rpd_spool::kernel_name::truncated;

/// Costs of a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of calls.
    pub calls: u64,
    /// Time in the calls, in nanoseconds.
    pub cpu: u64,
    /// Time of the kernels and copies that the calls requested, in nanoseconds.
    pub gpu: u64,
    /// Bytes that were copied or allocated for the calls.
    pub bytes: u64,
}

impl Cost {
    /// Adds the calls, times and bytes of `other`.
    pub fn add(&mut self, other: Cost) {
        self.calls += other.calls;
        self.cpu += other.cpu;
        self.gpu += other.gpu;
        self.bytes += other.bytes;
    }

    /// The part that is requested.
    pub const fn of(&self, weight: Weight) -> u64 {
        match weight {
            Weight::Calls => self.calls,
            Weight::Cpu => self.cpu,
            Weight::Gpu => self.gpu,
            Weight::Bytes => self.bytes,
        }
    }
}

/// A part of [`Cost`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Number of calls.
    Calls,
    /// Processor time in calls.
    Cpu,
    /// Time of kernels and copies on GPUs.
    Gpu,
    /// Bytes that were copied or allocated.
    Bytes,
}

impl Weight {
    /// All parts.
    pub const ALL: [Weight; 4] = [Weight::Calls, Weight::Cpu, Weight::Gpu, Weight::Bytes];

    /// Name of the kind of cost in titles.
    pub const fn name(self) -> &'static str {
        match self {
            Weight::Calls => "calls",
            Weight::Cpu => "CPU time",
            Weight::Gpu => "GPU time",
            Weight::Bytes => "bytes",
        }
    }

    /// The unit of the weight.
    pub const fn unit(self) -> flame::Unit {
        match self {
            Weight::Calls => flame::Unit::Count,
            Weight::Cpu | Weight::Gpu => flame::Unit::Nanoseconds,
            Weight::Bytes => flame::Unit::Bytes,
        }
    }
}

/// A function that was called with a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackedFunction {
    /// Number of the stack.
    pub stack: u32,
    /// The function, or the operation of an allocation without a traced call.
    pub function: StringId,
}

/// Kernels that were launched with a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Launches {
    /// Number of dispatches of the kernel.
    pub count: u64,
    /// Durations of the dispatches added up, in nanoseconds.
    pub time: u64,
}

/// Memory that was taken with a stack and not given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldMemory {
    /// Number of bytes that are held.
    pub bytes: u64,
    /// Number of allocations that are held.
    pub count: u64,
}

/// A change of the memory that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryChange {
    /// Time of the change, in nanoseconds.
    pub time: u64,
    /// Stack that allocated the memory; `None` when it is unknown.
    pub taken_by: Option<StackedFunction>,
    /// Bytes allocated, or freed when negative.
    pub bytes: i64,
}

/// Costs of the stacks of one session.
#[derive(Debug, Default)]
pub struct Costs {
    /// Costs by stack and function.
    pub uses: BTreeMap<StackedFunction, Cost>,
    /// Kernels by name, stack and function.
    pub kernels: BTreeMap<(String, StackedFunction), Launches>,
    /// Memory that was not given back, by device's name, stack and function; 0 is a stack that is not known.
    pub held: BTreeMap<(String, StackedFunction), HeldMemory>,
    /// Changes of the memory in use, in the order of time.
    pub changes: Vec<MemoryChange>,
    /// Calls without a stack.
    pub calls_without: u64,
    /// Time of kernels and copies whose call has no stack, in nanoseconds.
    pub gpu_without: u64,
    /// Calls, kernels and copies whose times cannot be. They are counted, with no time.
    pub without_time: u64,
}

/// Calls by correlation id, for finding the call that requested work.
struct Calls(HashMap<u64, Call>);

#[derive(Clone, Copy)]
struct Call {
    used: StackedFunction,
    ancestor: u64,
}

/// Greatest number of calls within one another; more is a circle.
const DEEPEST: usize = 32;

impl Calls {
    fn from_session(session: &Session) -> Calls {
        let calls = &session.calls;
        let mut by_correlation = HashMap::with_capacity(calls.len());
        for index in calls.indices() {
            let stack = calls.stack.get(index).map_or(0, |found| found.stack);
            let call = Call {
                used: StackedFunction {
                    stack,
                    function: session.call(index).name,
                },
                ancestor: calls.ancestor[index].0,
            };
            by_correlation.insert(calls.correlation[index].0, call);
        }
        Calls(by_correlation)
    }

    /// The innermost call with a stack that this correlation id belongs to.
    fn find(&self, correlation: u64, ancestor: u64) -> Option<StackedFunction> {
        self.up(correlation).or_else(|| self.up(ancestor))
    }

    fn up(&self, mut correlation: u64) -> Option<StackedFunction> {
        for _ in 0..DEEPEST {
            let call = self.0.get(&correlation)?;
            if call.used.stack != 0 {
                return Some(call.used);
            }
            if call.ancestor == correlation {
                return None;
            }
            correlation = call.ancestor;
        }
        None
    }
}

/// Adds up the costs of the calls whose function `is_wanted`.
pub fn costs(session: &Session, names: KernelNames, is_wanted: impl Fn(&str) -> bool) -> Costs {
    let requesters = Calls::from_session(session);
    let mut costs = Costs::default();
    // The expression is tested once a function: there are few functions and many calls.
    let mut wanted: HashMap<StringId, bool> = HashMap::new();
    let mut wants = |function: StringId| {
        *wanted
            .entry(function)
            .or_insert_with(|| is_wanted(session.strings.get(function)))
    };
    let times = PlausibleTimes::from_session(session);
    let mut without_time = 0;
    let mut duration = |start, end| {
        times.duration(start, end).unwrap_or_else(|| {
            without_time += 1;
            0
        })
    };
    let calls = &session.calls;
    for index in calls.indices() {
        if !wants(session.call(index).name) {
            continue;
        }
        let stack = calls.stack.get(index).map_or(0, |found| found.stack);
        if stack == 0 {
            costs.calls_without += 1;
            // Without a stack there is no place in the program; the report gives the number.
            continue;
        }
        let used = StackedFunction {
            stack,
            function: session.call(index).name,
        };
        let cost = costs.uses.entry(used).or_default();
        cost.calls += 1;
        cost.cpu += duration(calls.start[index], calls.end[index]);
    }
    let labels = KernelLabels::new(session, names);
    let dispatches = &session.dispatches;
    for index in dispatches.indices() {
        let time = duration(dispatches.start[index], dispatches.end[index]);
        // Work counts for the call with a stack in which it was submitted, however deep the runtime nested its own.
        // A kernel of a graph counts for the line that captured it.
        let requester =
            session.requester(dispatches.graph_of(index), dispatches.correlation[index]);
        match requesters.find(requester.0, 0) {
            Some(used) if wants(used.function) => {
                costs.uses.entry(used).or_default().gpu += time;
                let key = (labels.dispatch(index).to_owned(), used);
                let launches = costs.kernels.entry(key).or_default();
                launches.count += 1;
                launches.time += time;
            }
            Some(_) => {}
            None => costs.gpu_without += time,
        }
    }
    let copies = &session.copies;
    for index in copies.indices() {
        let time = duration(copies.start[index], copies.end[index]);
        let requester = session.requester(copies.graph_of(index), copies.correlation[index]);
        match requesters.find(requester.0, 0) {
            Some(used) if wants(used.function) => {
                let cost = costs.uses.entry(used).or_default();
                cost.gpu += time;
                cost.bytes += copies.bytes[index];
            }
            Some(_) => {}
            None => costs.gpu_without += time,
        }
    }
    costs.without_time = without_time;
    memory(session, &requesters, &mut costs, &mut wants);
    costs
}

/// An allocation that is in use.
struct Live {
    bytes: u64,
    device: String,
    used: Option<StackedFunction>,
}

fn memory(
    session: &Session,
    calls: &Calls,
    costs: &mut Costs,
    wants: &mut impl FnMut(StringId) -> bool,
) {
    let table = &session.allocations;
    // Memory is there when the call returns, and gone when it begins.
    let does = |index: usize, action| {
        let class = session.operations[table.operation[index]].class;
        class == OperationClass::Memory(MemoryLevel::Real, Some(action))
    };
    let is_free = |index: usize| does(index, MemoryAction::Free);
    let time = |index: usize| {
        if is_free(index) {
            table.start[index].0
        } else {
            table.end[index].0
        }
    };
    // Rows are ordered by start, and memory changes at ends, too.
    let mut order: Vec<usize> = table.indices().collect();
    order.sort_by_key(|&index| time(index));
    let mut live: HashMap<u64, Live> = HashMap::new();
    for index in order {
        // Reserved addresses are not memory.
        if !is_free(index) && !does(index, MemoryAction::Allocate) {
            continue;
        }
        let address = table.address[index];
        if is_free(index) {
            if let Some(gone) = live.remove(&address) {
                costs.changes.push(MemoryChange {
                    time: time(index),
                    taken_by: gone.used,
                    bytes: -gone.bytes.cast_signed(),
                });
            }
            continue;
        }
        // The call's stack where it was traced, else the allocation's own: both lead to the program's line.
        let own = table.stack.get(index).filter(|found| found.stack != 0);
        let used = calls
            .find(table.correlation[index].0, table.ancestor[index].0)
            .or_else(|| {
                own.map(|found| StackedFunction {
                    stack: found.stack,
                    function: session.operations[table.operation[index]].name,
                })
            });
        // Its free is left out as well, since the memory is never in `live`.
        if used.is_some_and(|used| !wants(used.function)) {
            continue;
        }
        let bytes = table.bytes[index];
        if let Some(used) = used {
            costs.uses.entry(used).or_default().bytes += bytes;
        }
        let agent = session.agent(table.agent[index]);
        let device = agent.map_or_else(String::new, |agent| agent.name.clone());
        costs.changes.push(MemoryChange {
            time: time(index),
            taken_by: used,
            bytes: bytes.cast_signed(),
        });
        live.insert(
            address,
            Live {
                bytes,
                device,
                used,
            },
        );
    }
    // Memory that is in use at the end of the recording was never given back in it.
    for (_, left) in live {
        let used = left.used.unwrap_or(StackedFunction {
            stack: 0,
            function: StringId(0),
        });
        let held = costs.held.entry((left.device, used)).or_default();
        held.bytes += left.bytes;
        held.count += 1;
    }
}

/// Selection of the frames of a stack that are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// All frames.
    #[default]
    All,
    /// The call and Python frames.
    Python,
    /// The call and native frames.
    Native,
}

impl Part {
    /// Whether frames of this kind are shown.
    pub fn has(self, kind: flame::Kind) -> bool {
        match (self, kind) {
            (Part::All, _) | (_, flame::Kind::Call) => true,
            (Part::Python, kind) => kind == flame::Kind::Python,
            (Part::Native, kind) => kind == flame::Kind::Native,
        }
    }
}

/// Beginning of the names of the functions that hipcc and nvcc make for `kernel<<<...>>>(...)`. Their line is that of the kernel.
const STUB: &str = "__device_stub__";

/// The place that a `call` of this name was made at: the innermost frame of the program. Functions of the runtime's headers are none,
/// and neither are the called function of a runtime that is linked into the program, and the host stubs of kernels. `frames` are
/// innermost first and without the call itself.
pub fn site(frames: &[flame::Frame], call: &str) -> String {
    let in_headers = |frame: &flame::Frame| frame.file.contains("/include/hip/");
    let mut own = frames.iter().filter(|frame| !in_headers(frame)).peekable();
    // nvcc links CUDA's runtime into programs, where it is a part of them.
    own.next_if(|frame| frame.name == call && call.starts_with("cuda"));
    let stub = own.next_if(|frame| truncated(&frame.name).starts_with(STUB));
    // nvcc puts a function with the kernel's name and parameters around its stub, whose name ends with the mangled name.
    if let Some(stub) = stub {
        own.next_if(|frame| stub.name.contains(&mangled_part(&frame.name)));
    }
    match own.next().or(frames.first()) {
        Some(frame) => place(frame),
        None => "(no frames)".to_owned(),
    }
}

/// The name of a function as it stands in mangled names, behind its length: `3add` for `void add<float>(float*)`.
fn mangled_part(name: &str) -> String {
    let name = truncated(name);
    format!("{}{name}", name.len())
}

/// Text with all places of a stack, in the order of the frames.
pub fn stack(frames: &[flame::Frame]) -> String {
    let places: Vec<String> = frames.iter().map(place).collect();
    places.join(" <- ")
}

/// `function at file:line`, as far as that is known.
fn place(frame: &flame::Frame) -> String {
    let flame::Frame {
        name, file, line, ..
    } = frame;
    match (file.is_empty(), line) {
        (true, _) => name.clone(),
        (false, 0) => format!("{name} at {file}"),
        (false, line) => format!("{name} at {file}:{line}"),
    }
}

/// Texts of a session's stacks.
#[derive(Debug)]
pub struct Texts<'a> {
    session: &'a Session,
    expanded: &'a Expanded,
}

impl<'a> Texts<'a> {
    /// Texts of a session.
    pub fn new(session: &'a Session, expanded: &'a Expanded) -> Texts<'a> {
        Texts { session, expanded }
    }

    /// The name of the called function.
    pub fn function(&self, used: StackedFunction) -> &'a str {
        self.session.strings.get(used.function)
    }

    fn frames(&self, stack: u32) -> impl DoubleEndedIterator<Item = &'a ShownFrame> {
        let numbers = self.expanded.stacks.get(&stack);
        let numbers = numbers.map_or(&[][..], Vec::as_slice);
        numbers
            .iter()
            .filter_map(|&number| self.expanded.frames.get(number as usize))
    }

    /// The place that a call was made at.
    pub fn site(&self, used: StackedFunction) -> String {
        site(&self.below_call(used), self.function(used))
    }

    /// Text with all places of a stack, innermost first, without the call itself.
    pub fn stack(&self, used: StackedFunction) -> String {
        stack(&self.below_call(used))
    }

    /// The frames of a stack, innermost first, without the call itself.
    fn below_call(&self, used: StackedFunction) -> Vec<flame::Frame> {
        self.frames(used.stack)
            .filter(|frame| !matches!(frame.kind, FrameKind::Call { .. }))
            .map(|frame| self.frame(frame, None))
            .collect()
    }

    /// The frames of a stack for a flame graph, outermost first.
    pub fn flame(&self, used: StackedFunction, part: Part) -> Vec<flame::Frame> {
        let frames = self.frames(used.stack).rev();
        frames
            .map(|frame| self.frame(frame, Some(used.function)))
            .filter(|frame| part.has(frame.kind))
            .collect()
    }

    fn frame(&self, frame: &ShownFrame, function: Option<StringId>) -> flame::Frame {
        let stacks = &self.session.stacks;
        let text = |id| self.session.strings.get(id);
        let location = stacks.location(frame.location);
        let kind = location.map(|location| location.kind);
        let module = location.and_then(|location| stacks.module_of(location));
        let mut found = flame::Frame {
            kind: match (frame.kind, kind) {
                (FrameKind::Call { .. }, _) => flame::Kind::Call,
                (_, Some(LocationKind::Python | LocationKind::Script | LocationKind::Inductor)) => {
                    flame::Kind::Python
                }
                (_, Some(kind)) if kind.marker().is_some() => flame::Kind::Note,
                _ => flame::Kind::Native,
            },
            name: text(frame.function).to_owned(),
            file: text(frame.file).to_owned(),
            line: frame.line,
        };
        if let (flame::Kind::Call, Some(function)) = (found.kind, function) {
            found.name = text(function).to_owned();
            // The entry point of the runtime is not a place in the program.
            found.file.clear();
            found.line = 0;
        } else if let Some(marker) = kind.and_then(LocationKind::marker) {
            found.name = marker.to_owned();
        // Without symbols, module and offset are all there is; address and name keep frames apart.
        } else if found.name.is_empty() {
            let path = module.map_or("[anon]", |module| text(module.path));
            let name = path.rsplit('/').next().unwrap_or(path);
            let offset = location.map_or(0, |location| location.offset);
            found.name = format!("{name}+{offset:#x}");
        }
        if found.file.is_empty()
            && found.kind == flame::Kind::Native
            && let Some(module) = module
        {
            found.file = text(module.path).to_owned();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, file: &str, line: u32) -> flame::Frame {
        flame::Frame {
            kind: flame::Kind::Native,
            name: name.to_owned(),
            file: file.to_owned(),
            line,
        }
    }

    #[test]
    fn the_site_of_a_launch_is_the_caller_of_its_stub() {
        let main = frame("main", "app.hip", 40);
        let header = frame(
            "hipLaunchKernel<void (float*)>(...)",
            "/opt/rocm/include/hip/hip_runtime.h",
            9,
        );
        for stub in [
            "__device_stub__scale",
            "__device_stub__scale(float*)",
            "void math::__device_stub__add<float>(float*, int)",
        ] {
            let stub = frame(stub, "app.hip", 3);
            let frames = [header.clone(), stub, main.clone()];
            assert_eq!(site(&frames, "hipLaunchKernel"), "main at app.hip:40");
        }
        // The wrapper of nvcc is left out with its stub, and nothing else is.
        let stub = frame("__device_stub__Z3addIfEvPT_i(float*, int)", "app.cu", 3);
        let wrapper = frame("void add<float>(float*, int)", "app.cu", 3);
        // So is the launch function of a runtime that is linked into the program.
        let launch = frame("cudaLaunchKernel", "/home/me/app", 0);
        let site = |frames: &[&flame::Frame]| {
            let frames: Vec<flame::Frame> = frames.iter().map(|frame| (*frame).clone()).collect();
            super::site(&frames, "cudaLaunchKernel")
        };
        let place = "main at app.hip:40";
        assert_eq!(site(&[&stub, &wrapper, &main]), place);
        assert_eq!(site(&[&launch, &stub, &wrapper, &main]), place);
        assert_eq!(site(&[&stub, &main]), place);
        assert_eq!(
            site(&[&wrapper, &main]),
            "void add<float>(float*, int) at app.cu:3"
        );
    }

    #[test]
    fn a_stack_of_a_stub_alone_has_the_stub_as_its_site() {
        let stub = frame("__device_stub__scale(float*)", "app.hip", 3);
        let place = "__device_stub__scale(float*) at app.hip:3";
        assert_eq!(site(&[stub], "hipLaunchKernel"), place);
    }
}
