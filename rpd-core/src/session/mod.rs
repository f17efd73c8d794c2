//! A session: what one process of one pass recorded, as columns.
//!
//! Every writer and every statistic consumes this view. It is made from a spool ([`Session::open`]) or, later, from a
//! rocpd database. Tables are ordered by start ascending, end descending, then name.

pub mod code;
mod columns;
mod device_totals;
mod dispatch_kernels;
mod dispatch_places;
mod growth;
pub mod hot;
mod kernel_labels;
mod load;
mod operations;
mod order;
mod references;
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
pub use kernel_labels::KernelLabels;
pub use load::{LoadError, LoadOptions};
pub use operations::{
    MemoryAction, MemoryLevel, Operation, OperationClass, Operations, memory_operation,
};
pub use references::References;
pub use rpd_spool::record::Table;
pub use stacks::{StackRef, Stacks};
pub use strings::{ExtendedStrings, Strings};
pub use tables::{
    AllocationRow, AllocationTable, ApiTable, ArgsRef, CallRow, CopyRow, CopyTable, CountedTable,
    CounterValue, DispatchRow, DispatchTable, SampleRow, SampleTable, ScratchRow, ScratchTable,
    ValueRange,
};
pub use window::Window;

use crate::agent::Agent;
use crate::column::Storage;
use crate::domain::Kind;
use crate::ids::{
    AgentHandle, CodeObjectId, CorrelationId, CounterId, KernelId, Nanoseconds, OperationId,
    ProcessId, StringId, ThreadId,
};

/// Source of the events of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Provider {
    /// rocprofiler-sdk; also when there were no events.
    #[default]
    Sdk,
    /// The runtimes' own dispatch tables.
    Direct,
}

/// The process that was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: ProcessId,
    /// Process id of its parent.
    pub ppid: ProcessId,
    /// Id of its process group.
    pub pgid: ProcessId,
    /// Id of its session, see getsid(2).
    pub sid: ProcessId,
    /// Start time in clock ticks since boot: with `pid` this identifies a process until the next boot.
    pub start_ticks: u64,
    /// Time at which the collector was loaded.
    pub init_time: Nanoseconds,
    /// End of recording: as the collector wrote it, or the latest time in any record.
    pub fini_time: Nanoseconds,
    /// Unix time in ns at `init_time`.
    pub real_time: u64,
    /// Whether it was made by `fork`, without an `exec` after that.
    pub forked: bool,
    /// Number of children that its parent had when it started.
    pub psize: u32,
    /// Source of its events.
    pub provider: Provider,
    /// Its arguments, program first. These, the paths and values below are escaped text: [`crate::os_text`].
    pub command: Vec<String>,
    /// Working directory at the start.
    pub cwd: String,
    /// Path of the executable.
    pub executable: String,
    /// Environment at the start, in its order.
    pub environment: Vec<(String, String)>,
}

impl Process {
    /// The Unix time in nanoseconds at a moment of the recording.
    pub fn real_at(&self, time: Nanoseconds) -> u64 {
        (self.real_time.saturating_add(time.0)).saturating_sub(self.init_time.0)
    }
}

/// A loaded code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeObject {
    /// Id, from 1.
    pub id: CodeObjectId,
    /// The agent that it was loaded for.
    pub agent: AgentHandle,
    /// The URI of its bytes, as the provider reported it: a file or a part of memory.
    pub uri: String,
    /// Address at which it was loaded.
    pub load_base: u64,
    /// Bytes that it takes there.
    pub load_size: u64,
    /// Difference between load address and ELF address.
    pub load_delta: i64,
    /// Storage of its bytes: 1 is a file, 2 is memory.
    pub storage_type: u32,
    /// Address of the ELF image in memory.
    pub memory_base: u64,
    /// Bytes of the ELF image.
    pub memory_size: u64,
    /// Payload size the provider reported.
    pub size: u64,
}

impl CodeObject {
    /// Difference between the address in the file and the offset from the load address.
    pub fn address_bias(&self) -> u64 {
        self.load_base
            .wrapping_add_signed(self.load_delta.wrapping_neg())
    }
}

/// A kernel of a loaded code object, as the runtime registered it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelSymbol {
    /// Id, from 1.
    pub id: KernelId,
    /// Code object that has the kernel.
    pub code_object: CodeObjectId,
    /// Name as registered, normally ending in `.kd`.
    pub name: String,
    /// Descriptor address.
    pub kernel_object: u64,
    /// Size of its arguments in bytes.
    pub kernarg_size: u32,
    /// Alignment of its arguments in bytes.
    pub kernarg_align: u32,
    /// Static LDS of a workgroup in bytes.
    pub group_size: u32,
    /// Static scratch memory of a work item in bytes.
    pub private_size: u32,
    /// Scalar registers of a wave.
    pub sgpr_count: u32,
    /// Architected vector registers of a work item.
    pub arch_vgpr_count: u32,
    /// Accumulation vector registers of a work item.
    pub accum_vgpr_count: u32,
    /// Offset from the descriptor to the code in bytes.
    pub entry_offset: i64,
    /// Address of the code.
    pub kernel_address: u64,
    /// Payload size the provider reported.
    pub size: u64,
}

impl KernelSymbol {
    /// Static LDS in bytes as it is granted: in steps of 512.
    pub fn granted_lds(&self) -> u64 {
        u64::from(self.group_size).next_multiple_of(512)
    }
}

/// A host stub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFunction {
    /// Id, from 1.
    pub id: u64,
    /// The kernel that it launches.
    pub kernel: KernelId,
    /// The code object of that kernel.
    pub code_object: CodeObjectId,
    /// Address of the stub.
    pub address: u64,
    /// Address of the module table that the program registered the stub with.
    pub modules: u64,
    /// Limit of threads that the program registered; `u32::MAX` for none.
    pub thread_limit: u32,
    /// Name of the stub.
    pub name: String,
}

/// A dimension of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterDimension {
    /// The provider's id.
    pub id: u64,
    /// Number of positions along it.
    pub size: u64,
    /// Name, `DIMENSION_INSTANCE` or the like.
    pub name: String,
}

/// One of the values that a counter yields for a dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterInstance {
    /// The provider's id.
    pub id: u64,
    /// Position along each dimension, as ([`CounterDimension::id`], position). Empty when it is not known.
    pub positions: Vec<(u64, u64)>,
}

/// A counter on an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Id. Agents of one architecture may share it.
    pub id: CounterId,
    /// The agent that it is counted on.
    pub agent: AgentHandle,
    /// Name of the counter.
    pub name: String,
    /// Description of what the counter counts.
    pub description: String,
    /// Hardware block; empty for derived counters.
    pub block: String,
    /// Expression that computes it; empty for hardware counters.
    pub expression: String,
    /// Whether it is a property of the agent that does not change.
    pub is_constant: bool,
    /// Whether it is computed from other counters.
    pub is_derived: bool,
    /// The dimensions of its values.
    pub dimensions: Vec<CounterDimension>,
    /// The values it yields.
    pub instances: Vec<CounterInstance>,
}

/// A region that renames kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Message of its ranges.
    pub message: StringId,
    /// Correlation id of the first range with this message: the external id of the kernels it renames.
    pub correlation: CorrelationId,
}

/// Kind of resource that a ROCTx naming call named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// An OS thread.
    Thread,
    /// A HIP device.
    HipDevice,
    /// A HIP stream.
    HipStream,
    /// An HSA agent.
    HsaAgent,
}

/// A name that the program gave to a resource through ROCTx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceName {
    /// Kind of the named object.
    pub kind: ResourceKind,
    /// Thread id, device number, stream pointer or agent handle.
    pub resource: u64,
    /// Name that the program gave it.
    pub name: String,
}

/// A call that had not returned when recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// Name of the function; of a range its message.
    pub name: StringId,
    /// The calling thread.
    pub thread: ThreadId,
    /// Time at which the call began.
    pub start: Nanoseconds,
}

/// Losses of a recording, and other messages about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Records that the collector could not store.
    pub dropped: u64,
    /// Bytes of spool segments that could not be read, with the reason; empty when all was well.
    pub damage: Vec<String>,
    /// Whether recording ended normally: the collector wrote its last record.
    pub ended: bool,
    /// Notes of the collector for the user, one sentence each.
    pub notes: Vec<String>,
    /// Calls that had not returned, innermost last per thread.
    pub open_calls: Vec<OpenCall>,
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
    /// Number of forked children that could not open a recording of their own.
    pub lost_processes: u64,
    /// Number of records that these children lost.
    pub lost_records: u64,
    /// Number of PC samples that the provider marked as invalid.
    pub invalid_samples: u64,
    /// Number of PC samples that the provider dropped because its buffer was full.
    pub lost_samples: u64,
    /// Number of PC samples in a layout that the collector cannot read.
    pub unknown_samples: u64,
    /// Number of bytes of the records that were read.
    pub bytes: u64,
    /// Whether a runtime (HIP, HSA, ROCTx, ...) was initialised in this process.
    pub runtime_seen: bool,
}

/// Identity of a recording that was read from a database: a copy that is written of it keeps these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Id of the recording.
    pub guid: String,
    /// Id of the node in the database.
    pub node: i64,
    /// Hash of the machine id.
    pub node_hash: i64,
    /// Machine id, from `/etc/machine-id`.
    pub machine_id: String,
    /// Operating system.
    pub system_name: String,
    /// Name of the machine.
    pub hostname: String,
    /// Kernel release.
    pub release: String,
    /// Kernel version.
    pub version: String,
    /// Processor architecture.
    pub hardware_name: String,
    /// Domain of the machine.
    pub domain_name: String,
}

/// Recording of one process in one pass.
#[derive(Debug, Default)]
pub struct Session {
    /// Set when it was read from a database.
    pub origin: Option<Origin>,
    /// The recorded process.
    pub process: Process,
    /// Interned texts: names, messages, paths.
    pub strings: Strings,
    /// The operations that the records of calls, copies, allocations and scratch refer to.
    pub operations: Operations,
    /// Agents in the provider's order.
    pub agents: Vec<Agent>,
    /// Code objects by id.
    pub code_objects: Vec<CodeObject>,
    /// Kernel symbols by id.
    pub kernel_symbols: Vec<KernelSymbol>,
    /// Host stubs by id.
    pub host_functions: Vec<HostFunction>,
    /// Regions that rename kernels; `DispatchTable::region` minus 1 is the index.
    pub regions: Vec<Region>,
    /// Names given through ROCTx.
    pub resource_names: Vec<ResourceName>,
    /// Kind and operation names of the provider: callback kinds then buffer kinds, as (kind name, operation names).
    /// Positions, in either part and among the operations, are the provider's numbers; gaps are empty.
    pub provider_names: Vec<(String, Vec<String>)>,
    /// Number of [`Session::provider_names`] that are callback kinds.
    pub callback_kinds: usize,
    /// Calls and markers.
    pub api: ApiTable,
    /// Kernel dispatches.
    pub dispatches: DispatchTable,
    /// Memory copies.
    pub copies: CopyTable,
    /// Allocations and frees.
    pub allocations: AllocationTable,
    /// Scratch operations.
    pub scratch: ScratchTable,
    /// Sums of all dispatches and copies, where the tables hold only the latest; empty where they hold all.
    pub device_totals: Vec<DeviceTotal>,
    /// Counters that were requested, by id, then agent.
    pub counters: Vec<Counter>,
    /// Dispatches with values of counters.
    pub counted: CountedTable,
    /// Sampling configurations of agents.
    pub sampling: Vec<code::Sampling>,
    /// PC samples.
    pub samples: SampleTable,
    /// Thread traces.
    pub thread_traces: traces::ThreadTraces,
    /// Code objects' bytes, instructions and source lines, of kernels that were sampled or traced.
    pub code: code::Code,
    /// Call stacks of calls, markers and allocations.
    pub stacks: Stacks,
    /// Losses of the recording.
    pub ledger: Ledger,
    /// Storage of long tables; `None` keeps them in memory.
    pub storage: Option<Storage>,
}

impl Session {
    /// Number of records of all tables.
    pub fn len(&self) -> usize {
        Table::ALL.iter().map(|table| self.records(*table)).sum()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.thread_traces.is_empty() && self.device_totals.is_empty()
    }

    /// Label of record `index` of [`Session::api`] in files and statistics: the message of marks and ranges, else the
    /// function.
    pub fn api_label(&self, index: usize) -> StringId {
        let operation = &self.operations[self.api.operation[index]];
        match operation.class.has_message() {
            true => self.api.message[index],
            false => operation.name,
        }
    }

    /// The id of an operation, made when it is new.
    pub fn add_operation(&mut self, kind: Kind, name: &str) -> OperationId {
        let name = self.strings.intern(name);
        self.add_named_operation(kind, name)
    }

    /// As [`Session::add_operation`], with a name that is among the session's strings.
    pub fn add_named_operation(&mut self, kind: Kind, name: StringId) -> OperationId {
        self.operations.add(&self.strings, kind, name, None)
    }

    /// The provider's name of an operation.
    pub fn operation_name(&self, operation: OperationId) -> &str {
        self.strings.get(self.operations[operation].name)
    }

    /// The operation of call `index` of [`Session::api`].
    #[inline]
    pub fn call(&self, index: usize) -> &Operation {
        &self.operations[self.api.operation[index]]
    }

    /// Number of calls and markers whose operation `wanted` accepts.
    pub fn count_calls(&self, wanted: impl Fn(&Operation) -> bool) -> usize {
        let is_wanted = self.operations.select(wanted);
        let calls = self.api.operation.iter();
        calls.filter(|call| is_wanted[call.0 as usize]).count()
    }

    /// The agent with this handle.
    pub fn agent(&self, handle: AgentHandle) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.handle == handle)
    }

    /// The kernel symbol with this id.
    pub fn kernel_symbol(&self, id: KernelId) -> Option<&KernelSymbol> {
        // Ids are dense from 1 in practice; the search covers a provider that numbers otherwise.
        let guess = usize::try_from(id.0.checked_sub(1)?).ok()?;
        match self.kernel_symbols.get(guess) {
            Some(symbol) if symbol.id == id => Some(symbol),
            _ => self.kernel_symbols.iter().find(|symbol| symbol.id == id),
        }
    }
}
