//! A session: what one process of one pass recorded, as columns.
//!
//! Every writer and every statistic reads this. It is made from a spool ([`Session::open`]), from a rocpd database, or
//! from records of another source ([`Session::new`]).
//! Tables are ordered by start ascending, end descending, then name.

pub mod code;
mod columns;
mod device_totals;
mod dispatch_kernels;
mod dispatch_places;
mod growth;
pub mod hot;
mod kernels;
mod load;
mod operations;
mod order;
mod plausible;
mod references;
mod removed_totals;
mod replays;
pub mod samples;
pub mod shown;
pub mod stacks;
mod strings;
mod tables;
pub mod totals;
pub mod traces;
mod window;

pub use columns::{Batches, Columns, Indices};
pub use device_totals::{DeviceTotal, OTHER_KERNELS, TotalOf};
pub use dispatch_kernels::DispatchKernels;
pub use dispatch_places::DispatchPlaces;
pub use growth::Growth;
pub use kernels::{KernelLabels, Kernels};
pub use load::{LoadError, LoadOptions};
pub use operations::{
    MemoryAction, MemoryLevel, Operation, OperationClass, Operations, memory_operation,
};
pub use plausible::{LONGEST_DURATION, PlausibleTimes};
pub use references::References;
pub use removed_totals::{RemovedOf, RemovedTotal};
pub use replays::FirstPasses;
pub use rpd_spool::record::Table;
pub use stacks::{StackRef, Stacks};
pub use strings::{ExtendedStrings, Strings};
pub use tables::{
    AllocationRow, AllocationTable, ArgsRef, CallRow, CallTable, CopyRow, CopyTable, CountedTable,
    CounterValue, DispatchRow, DispatchTable, GraphLaunchRow, GraphLaunchTable, HipEventRow,
    HipEventTable, KfdEventRow, KfdEventTable, SampleRow, SampleTable, ScratchRow, ScratchTable,
    ValueRange, event_operation_name, event_operation_of,
};
pub use window::Window;

use std::collections::HashMap;

use crate::agent::Agent;
use crate::domain::Kind;
use crate::ids::{
    AgentHandle, CodeObjectId, CorrelationId, CounterId, KernelId, Nanoseconds, OperationId,
    ProcessId, StringId, ThreadId,
};
use crate::launcher::{self, Place};
use crate::spool::format::GraphNode;
use crate::storage::column::Storage;

/// The library through which the collector received the events of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Provider {
    /// rocprofiler-sdk. Also the value when the process had no events.
    #[default]
    Sdk,
    /// No library: the collector wrapped the functions of the runtimes' dispatch tables itself (`--provider direct`).
    Direct,
    /// CUPTI, in a process without HIP or HSA.
    Cuda,
}

/// One moment on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockAnchor {
    /// The clock of the recording.
    pub time: Nanoseconds,
    /// `CLOCK_REALTIME`, in nanoseconds since the Unix epoch.
    pub real_time: u64,
}

/// The process that was recorded, as the collector found it when it was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id, in the process's own PID namespace.
    pub pid: ProcessId,
    /// Process id of the parent when the collector was loaded.
    pub ppid: ProcessId,
    /// Process group, see getpgid(2).
    pub pgid: ProcessId,
    /// Session, see getsid(2).
    pub sid: ProcessId,
    /// Start time in clock ticks since boot, field 22 of `/proc/<pid>/stat`. Together with `pid` this identifies a
    /// process until the next boot.
    pub start_ticks: u64,
    /// Time at which the collector was loaded; in a forked child, time of the fork.
    pub init_time: Nanoseconds,
    /// End of recording: as the collector wrote it, or the latest time in any record.
    pub fini_time: Nanoseconds,
    /// `CLOCK_REALTIME` at `init_time`, in nanoseconds since the Unix epoch; 0 when it is not known.
    pub real_time: u64,
    /// The two clocks when recording ended; `None` when the process was killed, and in recordings that do not have it.
    pub last_anchor: Option<ClockAnchor>,
    /// Place that a database has for the process. [`Process::launched`] is the place of any process.
    pub place: Place,
    /// Whether the process was made by `fork` and has not called `exec` since.
    pub forked: bool,
    /// Number of children that the parent had when the collector was loaded.
    pub psize: u32,
    /// Source of the process's events.
    pub provider: Provider,
    /// Command line, program first. This, the paths and the environment are escaped text: [`crate::text::os_text`].
    pub command: Vec<String>,
    /// Working directory when the collector was loaded.
    pub cwd: String,
    /// Target of `/proc/self/exe`.
    pub executable: String,
    /// Environment variables at the start of the program as (name, value), in the order of `/proc/self/environ`;
    /// without those that the options exclude.
    pub environment: Vec<(String, String)>,
}

impl Process {
    /// Converts a time of the recording to Unix time in nanoseconds.
    pub fn real_at(&self, time: Nanoseconds) -> u64 {
        (self.real_time.saturating_add(time.0)).saturating_sub(self.init_time.0)
    }

    /// The place that the process's launcher gave it: what was stored with the recording, or else what the variables of the
    /// process tell.
    pub fn launched(&self) -> Place {
        if self.place.rank.is_some() {
            return self.place.clone();
        }
        launcher::place(|name| {
            let mut variables = self.environment.iter();
            let found = variables.find(|(key, _)| key == name);
            found.map(|(_, value)| value.as_str())
        })
    }

    /// The moments of which both clocks are known, in their order: up to two.
    pub fn anchors(&self) -> impl Iterator<Item = ClockAnchor> {
        let first = (self.real_time != 0).then_some(ClockAnchor {
            time: self.init_time,
            real_time: self.real_time,
        });
        first.into_iter().chain(self.last_anchor)
    }
}

/// A code object that was loaded onto an agent; kept after it was unloaded, because dispatches refer to its kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeObject {
    /// Number that the provider gave it, from 1.
    pub id: CodeObjectId,
    /// Agent that it was loaded onto.
    pub agent: AgentHandle,
    /// URI of the ELF image as the provider reported it: a file, or a range of the process's memory.
    pub uri: String,
    /// Lowest address of the loaded code object in device memory.
    pub load_base: u64,
    /// Size in device memory, in bytes.
    pub load_size: u64,
    /// Loaded address minus address in the ELF file, in bytes.
    pub load_delta: i64,
    /// Where the ELF image is: 1 for a file, 2 for host memory (`rocprofiler_code_object_storage_type_t`).
    pub storage_type: u32,
    /// Address of the ELF image in host memory; 0 when it is in a file.
    pub memory_base: u64,
    /// Size of the ELF image in host memory, in bytes; 0 when it is in a file.
    pub memory_size: u64,
    /// Size that the provider reported for its own struct, in bytes. Results files repeat it.
    pub size: u64,
}

impl CodeObject {
    /// Address in the ELF file of the byte at the load address. Added to an offset from the load address, it gives an
    /// address in the file.
    pub fn address_bias(&self) -> u64 {
        self.load_base
            .wrapping_add_signed(self.load_delta.wrapping_neg())
    }
}

/// A kernel of a loaded code object, as the runtime registered it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelSymbol {
    /// Number that the provider gave it, from 1. Dispatches refer to it.
    pub id: KernelId,
    /// Code object that has the kernel.
    pub code_object: CodeObjectId,
    /// Name as registered, normally ending in `.kd`.
    pub name: String,
    /// Address of the kernel descriptor, as dispatch packets hold it.
    pub kernel_object: u64,
    /// Size of the kernel argument block, in bytes.
    pub kernarg_size: u32,
    /// Alignment of the kernel argument block, in bytes.
    pub kernarg_align: u32,
    /// Static LDS of a workgroup, in bytes.
    pub group_size: u32,
    /// Static scratch memory of a work item, in bytes.
    pub private_size: u32,
    /// Number of scalar registers of a wave.
    pub sgpr_count: u32,
    /// Number of architected vector registers of a work item.
    pub arch_vgpr_count: u32,
    /// Number of accumulation vector registers of a work item; 0 where the hardware has none.
    pub accum_vgpr_count: u32,
    /// Distance from the descriptor to the first instruction, in bytes.
    pub entry_offset: i64,
    /// Address of the first instruction.
    pub kernel_address: u64,
    /// Size that the provider reported for its own struct, in bytes. Results files repeat it.
    pub size: u64,
}

impl KernelSymbol {
    /// Static LDS of a workgroup as the hardware grants it, in bytes: rounded up to a multiple of 512.
    pub fn granted_lds(&self) -> u64 {
        u64::from(self.group_size).next_multiple_of(512)
    }
}

/// A host stub: the function of the program whose address `hipLaunchKernel` takes to launch a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFunction {
    /// Number that the provider gave it, from 1.
    pub id: u64,
    /// Kernel that it launches.
    pub kernel: KernelId,
    /// Code object that has this kernel.
    pub code_object: CodeObjectId,
    /// Address of the stub in the process.
    pub address: u64,
    /// Handle that `__hipRegisterFatBinary` returned for the binary with the kernel.
    pub modules: u64,
    /// Argument `threadLimit` of `__hipRegisterFunction`; `u32::MAX` for no limit.
    pub thread_limit: u32,
    /// Mangled name of the kernel, as `__hipRegisterFunction` was given it.
    pub name: String,
}

/// A dimension along which a counter has several values: shader engine, XCC, instance of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterDimension {
    /// Number that the provider gave the dimension.
    pub id: u64,
    /// Number of positions along the dimension.
    pub size: u64,
    /// The provider's name for it, such as `DIMENSION_SHADER_ENGINE`.
    pub name: String,
}

/// One of the values that a counter yields for a dispatch: the counter at one position of its dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterInstance {
    /// Number that the provider gave this value.
    pub id: u64,
    /// Position along each dimension, as ([`CounterDimension::id`], position). Empty when it is not known.
    pub positions: Vec<(u64, u64)>,
}

/// A counter as it exists on one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Number that the provider gave the counter. Agents of one architecture may share it.
    pub id: CounterId,
    /// Agent that counts it.
    pub agent: AgentHandle,
    /// Name in the counter definitions, such as `SQ_WAVES`.
    pub name: String,
    /// Meaning of the counter's value in words: the text of the counter definitions.
    pub description: String,
    /// Hardware block that counts, such as `SQ`; empty for derived counters.
    pub block: String,
    /// Expression over other counters that yields the value; empty for hardware counters.
    pub expression: String,
    /// Whether the counter is a property of the agent, which is the same for every dispatch.
    pub is_constant: bool,
    /// Whether the counter is computed from other counters.
    pub is_derived: bool,
    /// Dimensions along which it has several values.
    pub dimensions: Vec<CounterDimension>,
    /// The values that it yields for each dispatch.
    pub instances: Vec<CounterInstance>,
}

/// A region of the program whose kernels are named after its message (`--kernel-rename`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Message of its ROCTx ranges.
    pub message: StringId,
    /// Correlation id of the first range with this message. Kernels that the region renames have it as external
    /// correlation id.
    pub correlation: CorrelationId,
}

/// Kind of resource that a ROCTx naming call named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// A thread of the operating system.
    Thread,
    /// A device of HIP, by its number.
    HipDevice,
    /// A stream of HIP.
    HipStream,
    /// An agent of HSA.
    HsaAgent,
    /// A stream, by its number in records.
    Stream,
}

/// A name that the program gave to a resource through ROCTx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceName {
    /// Kind of the resource that was named.
    pub kind: ResourceKind,
    /// Thread id, device number, address of the HIP stream, handle of the agent or number of the stream, by `kind`.
    pub resource: u64,
    /// Name that the program gave to the resource.
    pub name: String,
}

/// A call that had not returned when recording ended, or a range that had not been ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// Name of the function; for a range its message, if it has one.
    pub name: StringId,
    /// Thread that made the call.
    pub thread: ThreadId,
    /// Time at which the call began.
    pub start: Nanoseconds,
}

/// ROCTx ranges that had not been ended when recording ended. They are rows of the table of calls, which last until then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenRanges {
    /// Number of ranges that had not been ended.
    pub count: u64,
    /// Some of the ranges that had not been ended, by correlation id; all when there are few.
    pub first: Vec<OpenCall>,
}

/// List of the gaps of a recording, and other messages about it. `rpd` reports it after the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Number of records that the collector could not store.
    pub dropped: u64,
    /// Parts of the spool that could not be read, one sentence each with the reason; empty when everything was read.
    pub damage: Vec<String>,
    /// Whether the collector wrote its last record. It did not when the process was killed.
    pub ended: bool,
    /// Messages of the collector for the user, one sentence each.
    pub notes: Vec<String>,
    /// Calls that had not returned, the innermost of each thread last.
    pub open_calls: Vec<OpenCall>,
    /// Ranges that had not been ended.
    pub open_ranges: OpenRanges,
    /// Number of calls with an argument or a message that the collector cut off because of its length.
    pub cut_calls: u64,
    /// Number of dispatches that were to be counted and for which the provider reported no values.
    pub uncounted: u64,
    /// Number of dispatches that were submitted to be recorded and whose completion was not reported.
    pub unfinished_dispatches: u64,
    /// Number of copies that were submitted to be recorded and whose completion was not reported.
    pub unfinished_copies: u64,
    /// Number of dispatches that are not recorded because the program had paused recording.
    pub paused_dispatches: u64,
    /// Number of forked children that could not open a spool of their own.
    pub lost_processes: u64,
    /// Number of records that forked children without a spool of their own could not store.
    pub lost_records: u64,
    /// Number of PC samples that the provider marked as invalid.
    pub invalid_samples: u64,
    /// Number of PC samples that the provider dropped because its buffer was full.
    pub lost_samples: u64,
    /// Number of PC samples in a layout that the collector cannot read.
    pub unknown_samples: u64,
    /// Size of all records that were read, in bytes.
    pub bytes: u64,
    /// Whether a runtime (HIP, HSA, ROCTx, ...) was initialised in this process.
    pub runtime_seen: bool,
}

/// Identity of a recording that was read from a database. A database that is written from it has the same identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Id of the recording, part of the names of the database's tables.
    pub guid: String,
    /// Id of the node in the table of nodes.
    pub node: i64,
    /// Hash of the machine id, as the database has it.
    pub node_hash: i64,
    /// Machine id, from `/etc/machine-id`.
    pub machine_id: String,
    /// Name of the operating system, from uname(2).
    pub system_name: String,
    /// Host name, from uname(2).
    pub hostname: String,
    /// Kernel release, from uname(2).
    pub release: String,
    /// Kernel version, from uname(2).
    pub version: String,
    /// Whether dispatches of the database have columns of graphs.
    pub has_graphs: bool,
    /// Processor architecture, from uname(2).
    pub hardware_name: String,
    /// NIS domain of the machine, from uname(2).
    pub domain_name: String,
}

/// The recording of one process in one pass.
#[derive(Debug, Default)]
pub struct Session {
    /// Identity of the database that the session was read from; `None` for a session that was loaded from a spool.
    pub origin: Option<Origin>,
    /// The process that was recorded.
    pub process: Process,
    /// Interned texts, to which the [`StringId`]s in this session refer.
    pub strings: Strings,
    /// The operations that the records of calls, copies, allocations and scratch refer to.
    pub operations: Operations,
    /// Agents of the machine, in the order in which the provider listed them.
    pub agents: Vec<Agent>,
    /// Code objects, ordered by id.
    pub code_objects: Vec<CodeObject>,
    /// Kernel symbols, ordered by id.
    pub kernel_symbols: Vec<KernelSymbol>,
    /// Host stubs, ordered by id.
    pub host_functions: Vec<HostFunction>,
    /// Regions that rename kernels; `DispatchTable::region` minus 1 is the index.
    pub regions: Vec<Region>,
    /// Names that the program gave to threads, devices, streams and agents through ROCTx.
    pub resource_names: Vec<ResourceName>,
    /// Kind and operation names of the provider: callback kinds then buffer kinds, as (kind name, operation names).
    /// Positions, in either part and among the operations, are the provider's numbers; gaps are empty.
    pub provider_names: Vec<(String, Vec<String>)>,
    /// Number of [`Session::provider_names`] that are callback kinds.
    pub callback_kinds: usize,
    /// Calls of traced functions, and markers.
    pub calls: CallTable,
    /// Kernel dispatches.
    pub dispatches: DispatchTable,
    /// Memory copies.
    pub copies: CopyTable,
    /// Allocations and frees.
    pub allocations: AllocationTable,
    /// Allocations and frees of scratch memory.
    pub scratch: ScratchTable,
    /// Launches of graphs.
    pub graph_launches: GraphLaunchTable,
    /// HIP events on devices.
    pub hip_events: HipEventTable,
    /// Events of the kernel driver.
    pub kfd_events: KfdEventTable,
    /// Sums over all dispatches and copies, for a recording whose tables hold only the latest of them; empty when the
    /// tables hold all.
    pub device_totals: Vec<DeviceTotal>,
    /// Sums over records that the tables do not hold, because they were removed to keep the bound of the recording.
    pub removed: Vec<RemovedTotal>,
    /// Counters that were requested, ordered by id, then agent.
    pub counters: Vec<Counter>,
    /// Dispatches that were counted, with their counter values.
    pub counted: CountedTable,
    /// Settings of PC sampling, one entry for each sampled agent; empty without PC sampling.
    pub sampling: Vec<code::Sampling>,
    /// PC samples.
    pub samples: SampleTable,
    /// PC samples that the provider has added up, which are not in [`Session::samples`].
    pub sample_counts: totals::SampleCounts,
    /// Thread traces of shader engines, and what decoding them yielded.
    pub thread_traces: traces::ThreadTraces,
    /// Correlation ids of the calls that added nodes to graphs, by graph and node; those that are known.
    pub captured: HashMap<(u32, u32), CorrelationId>,
    /// Bytes, instructions and source lines of the code objects whose kernels were sampled or traced.
    pub code: code::Code,
    /// Call stacks of calls, markers and allocations.
    pub stacks: Stacks,
    /// Gaps of the recording, and messages about it.
    pub ledger: Ledger,
    /// Storage of columns that grow long; `None` keeps them in memory.
    pub storage: Option<Storage>,
}

impl Session {
    /// A session without records, to be filled with those of another source: records are pushed to the tables, and
    /// [`Session::sort`] puts them in the order that writers rely on. Ids that records refer to are those in the lists of
    /// the session; texts come from [`Strings::intern`], and operations from [`Session::add_operation`].
    ///
    /// ```
    /// use rpd_core::domain::Kind;
    /// use rpd_core::ids::{CorrelationId, Nanoseconds, ThreadId};
    /// use rpd_core::session::{CallRow, Session};
    ///
    /// let mut session = Session::new();
    /// let operation = session.add_operation(Kind::HipRuntime, "hipMalloc");
    /// for (number, [start, end]) in (1..).zip([[500, 700], [100, 150]]) {
    ///     session.calls.push(CallRow {
    ///         operation,
    ///         start: Nanoseconds(start),
    ///         end: Nanoseconds(end),
    ///         thread: ThreadId(7),
    ///         correlation: CorrelationId(number),
    ///         ..CallRow::default()
    ///     });
    /// }
    /// session.sort();
    /// assert_eq!(session.calls.start[0], Nanoseconds(100));
    /// assert_eq!(session.operation_name(session.calls.operation[0]), "hipMalloc");
    /// ```
    pub fn new() -> Session {
        Session {
            // Text 0 is the empty one, which records without a message refer to.
            strings: Strings::new(),
            ..Session::default()
        }
    }

    /// Number of records of all tables together.
    pub fn len(&self) -> usize {
        Table::ALL.iter().map(|table| self.records(*table)).sum()
    }

    /// Whether nothing was recorded: no record, no thread trace, no sum.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
            && self.sample_counts.is_empty()
            && self.thread_traces.is_empty()
            && self.device_totals.is_empty()
            && self.removed.is_empty()
    }

    /// Names that the program gave to streams, by the numbers that records have.
    pub fn stream_names(&self) -> HashMap<u32, &str> {
        let names = self.resource_names.iter();
        names
            .filter(|named| named.kind == ResourceKind::Stream)
            .filter_map(|named| Some((u32::try_from(named.resource).ok()?, &*named.name)))
            .collect()
    }

    /// Whether there are PC samples, one by one or added up.
    pub fn has_samples(&self) -> bool {
        !self.samples.is_empty() || !self.sample_counts.is_empty()
    }

    /// The call whose stack is that of a dispatch or copy: for a node of a graph the call that added it, where that is
    /// known, otherwise the call that submitted the work.
    pub fn requester(&self, graph: GraphNode, correlation: CorrelationId) -> CorrelationId {
        let captured = self.captured.get(&(graph.exec, graph.node));
        captured.copied().unwrap_or(correlation)
    }

    /// Label of record `index` of [`Session::calls`] in files and statistics: the message of marks and ranges, else the
    /// function.
    pub fn call_label(&self, index: usize) -> StringId {
        let operation = &self.operations[self.calls.operation[index]];
        if operation.class.has_message() {
            self.calls.message[index]
        } else {
            operation.name
        }
    }

    /// The id of the operation with this kind and name. It is added if the session does not have it.
    pub fn add_operation(&mut self, kind: Kind, name: &str) -> OperationId {
        let name = self.strings.intern(name);
        self.add_named_operation(kind, name)
    }

    /// As [`Session::add_operation`], with a name that is already one of the session's strings.
    pub fn add_named_operation(&mut self, kind: Kind, name: StringId) -> OperationId {
        self.operations.add(&self.strings, kind, name, None)
    }

    /// The name of an operation: the provider's, see [`Operation::name`].
    pub fn operation_name(&self, operation: OperationId) -> &str {
        self.strings.get(self.operations[operation].name)
    }

    /// The operation of call `index` of [`Session::calls`].
    #[inline]
    pub fn call(&self, index: usize) -> &Operation {
        &self.operations[self.calls.operation[index]]
    }

    /// Number of calls and markers whose operation `wanted` accepts.
    pub fn count_calls(&self, wanted: impl Fn(&Operation) -> bool) -> usize {
        let is_wanted = self.operations.select(wanted);
        let calls = self.calls.operation.iter();
        calls.filter(|call| is_wanted[call.0 as usize]).count()
    }

    /// The agent with this handle; `None` when the recording does not describe it.
    pub fn agent(&self, handle: AgentHandle) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.handle == handle)
    }

    /// The kernel symbol with this id; `None` when it was not registered.
    pub fn kernel_symbol(&self, id: KernelId) -> Option<&KernelSymbol> {
        // Ids are dense from 1 in practice; the search covers a provider that numbers otherwise.
        let guess = usize::try_from(id.0.checked_sub(1)?).ok()?;
        match self.kernel_symbols.get(guess) {
            Some(symbol) if symbol.id == id => Some(symbol),
            _ => self.kernel_symbols.iter().find(|symbol| symbol.id == id),
        }
    }
}
