//! What answers are computed from: operations of GPUs, calls and marker ranges of threads, in the order of time.

use crate::classes::Class;

/// A number that stands for nothing, where one is optional.
pub const NONE: u32 = u32::MAX;

/// A GPU. Processes that use the same one share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gpu {
    /// Host that it is in.
    pub node: String,
    /// What identifies it on its host: UUID or place on the bus.
    pub id: String,
    /// Number shown to people.
    pub number: u32,
    /// Name of the processor in compilers, such as `gfx90a`.
    pub arch: String,
    /// Name of the product.
    pub name: String,
    /// Whether it is the simulator's.
    pub is_simulated: bool,
    /// Number of compute units; 0 when it is not known.
    pub units: u32,
    /// Lanes of a wave; 0 when it is not known.
    pub wave_size: u32,
    /// Number of dies with compute units; 0 when it is not known.
    pub dies: u32,
    /// Greatest clock of the compute units in MHz; 0 when it is not known.
    pub shader_mhz: u32,
    /// Greatest clock of the memory in MHz, as the driver reports it; 0 when it is not known.
    pub memory_mhz: u32,
    /// Width of the memory's bus in bits; 0 when it is not known.
    pub memory_bits: u32,
}

/// A process of the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Id of its recording, unique among recordings.
    pub guid: String,
    /// Host.
    pub host: String,
    /// Rank in a parallel program; `None` when it is not known.
    pub rank: Option<u32>,
    /// Database that it was read from.
    pub path: String,
    /// Command line, program first.
    pub command: Vec<String>,
    /// Whether only its counters and samples count, because another run of the program stands for its times.
    pub is_evidence: bool,
    /// Whether it has values of counters, or samples.
    pub has_evidence: bool,
}

/// A thread of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thread {
    /// Index of its process.
    pub process: u32,
    /// Thread id.
    pub tid: u32,
}

/// A kernel's needs, as its code object and launches state them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// Architected and accumulation vector registers together.
    pub vgprs: u32,
    /// Scalar registers.
    pub sgprs: u32,
    /// Static LDS of a workgroup in bytes.
    pub lds: u32,
    /// Static scratch of a work item in bytes.
    pub scratch: u32,
}

/// Whether something was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Calls that launch work.
    pub calls: bool,
    /// Memory copies.
    pub copies: bool,
    /// Markers.
    pub markers: bool,
    /// Allocations.
    pub allocations: bool,
    /// Call stacks.
    pub stacks: bool,
    /// Whether only the latest rows of operations were kept.
    pub is_light: bool,
    /// Records that were lost.
    pub lost: u64,
    /// Whether counting made kernels run alone.
    pub is_counted: bool,
    /// Counters of kernels.
    pub counters: bool,
    /// PC samples.
    pub samples: bool,
}

/// What records refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// GPUs, in the order in which tables show them.
    pub gpus: Vec<Gpu>,
    /// Processes.
    pub processes: Vec<Process>,
    /// Threads of all processes.
    pub threads: Vec<Thread>,
    /// Texts: names of kernels, functions, copies and markers.
    pub names: Vec<String>,
    /// Resources of kernels, by [`Op::kernel`].
    pub kernels: Vec<Resources>,
    /// What was recorded.
    pub recorded: Recorded,
}

impl Facts {
    /// The text with this number; empty when there is none.
    pub fn name(&self, name: u32) -> &str {
        self.names.get(name as usize).map_or("", String::as_str)
    }

    /// The thread with this index; the first process and no id when there is none.
    pub fn thread(&self, thread: u32) -> Thread {
        self.threads
            .get(thread as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Id of the process with this index; `None` when there is none.
    pub fn pid(&self, process: u32) -> Option<u32> {
        let process = self.processes.get(process as usize);
        process.map(|process| process.pid)
    }

    /// Guid of the recording of the process with this index; empty when there is none.
    pub fn guid(&self, process: u32) -> &str {
        let process = self.processes.get(process as usize);
        process.map_or("", |process| &process.guid)
    }

    /// The number of a pass, from 1: of the recording among those with counters or samples, or of all where none has them.
    pub fn pass(&self, process: u32) -> usize {
        let has_evidence = |process: &&Process| process.has_evidence;
        let before = self.processes.iter().take(process as usize + 1);
        if self.processes.iter().any(|process| process.has_evidence) {
            before.filter(has_evidence).count()
        } else {
            before.count()
        }
    }
}

/// The call that requested an operation: the outermost one of an API around its submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Begin of the call.
    pub begin: u64,
    /// End of the call.
    pub end: u64,
    /// Index of the thread.
    pub thread: u32,
    /// Name of the function.
    pub name: u32,
    /// Number of the call in its process.
    pub call: u64,
    /// Whether it launches a graph.
    pub is_graph: bool,
    /// [`Range::id`] of the innermost marker range around the call; [`NONE`] when there is none.
    pub range: u32,
}

/// An operation of a GPU: a kernel or a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Number in its process and among operations of its kind.
    pub id: u64,
    /// Whether it is a kernel dispatch; otherwise it is a copy.
    pub is_kernel: bool,
    /// Whether this is a copy's second appearance, on the other GPU that it concerns.
    pub is_second: bool,
    /// Begin on the device.
    pub start: u64,
    /// End on the device. It may lie before the start in a damaged recording.
    pub end: u64,
    /// Index of the GPU.
    pub gpu: u32,
    /// Index of the process.
    pub process: u32,
    /// Number of the queue; [`NONE`] for copies.
    pub queue: u32,
    /// Number of the stream.
    pub stream: u32,
    /// Name of the kernel, or direction of the copy.
    pub name: u32,
    /// What it counts as.
    pub class: Class,
    /// Index into [`Facts::kernels`]; [`NONE`] for copies and unknown kernels.
    pub kernel: u32,
    /// Bytes copied; 0 for kernels.
    pub bytes: u64,
    /// Address on the host that a copy reads or writes; 0 when there is none or it is not known.
    pub host_address: u64,
    /// Work items of the grid.
    pub grid: [u32; 3],
    /// Work items of a workgroup.
    pub group: [u32; 3],
    /// LDS of a workgroup, static and dynamic, in bytes.
    pub lds: u32,
    /// Scratch of a work item in bytes.
    pub scratch: u32,
    /// The call that requested it; `None` when it is not recorded.
    pub launch: Option<Launch>,
}

impl Op {
    /// Length; 0 when the end is not after the start.
    pub fn length(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Number of workgroups; 0 when the geometry is not known.
    pub fn groups(&self) -> u64 {
        let along = |axis: usize| match self.group[axis] {
            0 => 0,
            group => u64::from(self.grid[axis].div_ceil(group)),
        };
        along(0).saturating_mul(along(1)).saturating_mul(along(2))
    }
}

/// A call of an API that no other recorded call of one is around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Index of the thread.
    pub thread: u32,
    /// Name of the function.
    pub name: u32,
    /// Number of the call in its process.
    pub id: u64,
    /// [`Range::id`] of the innermost marker range around it on its thread; [`NONE`] when there is none.
    pub range: u32,
}

/// A marker: a range of a thread, a range between threads, or a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Number of the marker, from 0 and without gaps.
    pub id: u32,
    /// Begin.
    pub start: u64,
    /// End; the start for a mark.
    pub end: u64,
    /// Index of the thread that began it.
    pub thread: u32,
    /// Message.
    pub name: u32,
    /// What it is.
    pub style: Style,
}

/// Kinds of markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Pushed and popped on one thread.
    Nested,
    /// Started and stopped, possibly on different threads.
    Across,
    /// A point in time.
    Mark,
}

/// An allocation or a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Begin of the operation.
    pub start: u64,
    /// End of the operation.
    pub end: u64,
    /// Index of the process.
    pub process: u32,
    /// First address.
    pub address: u64,
    /// Bytes; 0 for a free.
    pub bytes: u64,
    /// Whether it frees.
    pub is_free: bool,
    /// Whether the memory is the host's.
    pub is_host: bool,
    /// Whether the runtime made it for itself, such as a buffer through which it copies memory that is not pinned.
    pub is_of_runtime: bool,
}

/// The value of a counter for a dispatch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Name of the kernel, as [`Op::name`].
    pub name: u32,
    /// Index of the GPU.
    pub gpu: u32,
    /// Index of the process, each of which is one pass of one rank.
    pub process: u32,
    /// Number of the dispatch in its process.
    pub dispatch: u64,
    /// Length of the counted dispatch.
    pub length: u64,
    /// Work items of the grid.
    pub grid: [u32; 3],
    /// Work items of a workgroup.
    pub group: [u32; 3],
    /// Name of the counter in [`Facts::names`].
    pub counter: u32,
    /// Sum over all instances of the counter.
    pub sum: f64,
    /// The greatest of its instances.
    pub greatest: f64,
}

/// A line of code with its PC samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// Name of the kernel that was running.
    pub kernel: String,
    /// File and line, or else the address of the hottest instruction.
    pub place: String,
    /// Hottest instruction of the line; empty when it could not be decoded.
    pub instruction: String,
    /// Samples at the line.
    pub samples: u64,
    /// Samples of the kernel.
    pub of_kernel: u64,
    /// Half of the 95 % confidence interval of the line's share of the kernel; `None` without one.
    pub error: Option<f64>,
    /// Samples of the line, by why its waves did not issue an instruction, most frequent first; empty where samples do not tell.
    pub reasons: Vec<(&'static str, u64)>,
}

/// An iterator over records.
pub type Each<'a, T> = Box<dyn Iterator<Item = T> + 'a>;

/// The records of one or more processes. Every iteration begins anew, in the order of starts; of two ranges that start together
/// the one that ends later comes first.
pub trait Records {
    /// What records refer to.
    fn facts(&self) -> &Facts;

    /// Operations of GPUs. A copy between two GPUs comes once for each.
    fn ops(&self) -> Each<'_, Op>;

    /// Calls.
    fn calls(&self) -> Each<'_, Call>;

    /// Calls, and those that others are around, of which [`Call::range`] may be unknown.
    fn nested_calls(&self) -> Each<'_, Call> {
        self.calls()
    }

    /// Markers.
    fn ranges(&self) -> Each<'_, Range>;

    /// Allocations and frees.
    fn allocations(&self) -> Each<'_, Allocation>;

    /// Values of counters, those of a dispatch together.
    fn counted(&self) -> Each<'_, Counted> {
        Box::new(std::iter::empty())
    }

    /// Lines of code with PC samples, the hottest kernel and its hottest line first.
    fn sampled(&self) -> &[Sampled] {
        &[]
    }

    /// The place in the program's source from which a call was made; `None` without a recorded stack.
    fn site(&self, process: u32, call: u64) -> Option<String> {
        let _ = (process, call);
        None
    }
}

/// Records in memory.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// What records refer to.
    pub facts: Facts,
    /// Operations, in the order of starts.
    pub ops: Vec<Op>,
    /// Calls, in the order of starts.
    pub calls: Vec<Call>,
    /// Markers, in the order of starts.
    pub ranges: Vec<Range>,
    /// Allocations and frees, in the order of starts.
    pub allocations: Vec<Allocation>,
    /// Values of counters.
    pub counted: Vec<Counted>,
    /// Lines with PC samples.
    pub sampled: Vec<Sampled>,
}

impl Records for Memory {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn ops(&self) -> Each<'_, Op> {
        Box::new(self.ops.iter().copied())
    }

    fn calls(&self) -> Each<'_, Call> {
        Box::new(self.calls.iter().copied())
    }

    fn ranges(&self) -> Each<'_, Range> {
        Box::new(self.ranges.iter().copied())
    }

    fn allocations(&self) -> Each<'_, Allocation> {
        Box::new(self.allocations.iter().copied())
    }

    fn counted(&self) -> Each<'_, Counted> {
        Box::new(self.counted.iter().copied())
    }

    fn sampled(&self) -> &[Sampled] {
        &self.sampled
    }
}

/// Records of which operations are chosen: by GPU, process, kernel and stream.
pub struct Selected<'a> {
    records: &'a dyn Records,
    wants: Box<dyn Fn(&Op) -> bool + 'a>,
}

impl<'a> Selected<'a> {
    /// The records with the operations that `wants` accepts, and all calls and markers.
    pub fn new(records: &'a dyn Records, wants: impl Fn(&Op) -> bool + 'a) -> Selected<'a> {
        Selected {
            records,
            wants: Box::new(wants),
        }
    }
}

impl Records for Selected<'_> {
    fn facts(&self) -> &Facts {
        self.records.facts()
    }

    fn ops(&self) -> Each<'_, Op> {
        Box::new(self.records.ops().filter(|op| (self.wants)(op)))
    }

    fn calls(&self) -> Each<'_, Call> {
        self.records.calls()
    }

    fn ranges(&self) -> Each<'_, Range> {
        self.records.ranges()
    }

    fn allocations(&self) -> Each<'_, Allocation> {
        self.records.allocations()
    }

    fn counted(&self) -> Each<'_, Counted> {
        self.records.counted()
    }

    fn sampled(&self) -> &[Sampled] {
        self.records.sampled()
    }

    fn site(&self, process: u32, call: u64) -> Option<String> {
        self.records.site(process, call)
    }
}
