//! A session: what one process of one pass recorded, as columns.
//!
//! Every writer and every statistic consumes this view. It is made from a spool ([`Session::open`]) or, later, from a
//! rocpd database. Tables are ordered by start ascending, end descending, then name.

pub mod code;
mod growth;
pub mod hot;
mod load;
mod operations;
mod order;
pub mod samples;
pub mod shown;
pub mod stacks;
mod tables;
pub mod totals;
pub mod traces;
mod window;

pub use growth::Growth;
pub use load::{LoadError, LoadOptions};
pub use operations::{
    MemoryAction, MemoryLevel, Operation, OperationClass, Operations, memory_operation,
};
pub use rpd_spool::record::Table;
pub use stacks::{StackRef, Stacks};
pub use tables::{
    AllocationTable, ApiTable, ArgsRef, Batches, Columns, CopyTable, CountedTable, CounterValue,
    DispatchTable, Indices, SampleTable, ScratchTable, ValueRange,
};
pub use window::Window;

use crate::agent::Agent;
use crate::column::Storage;
use crate::domain::Kind;
use crate::ids::{
    AgentHandle, CodeObjectId, CorrelationId, CounterId, KernelId, Nanoseconds, OperationId,
    ProcessId, StringId, ThreadId,
};

/// Interned text. Id 0 is the empty string.
#[derive(Debug, Default, Clone)]
pub struct Strings {
    texts: Vec<Box<str>>,
    index: std::collections::HashMap<Box<str>, u32>,
}

impl Strings {
    /// An empty table: only the empty string.
    pub fn new() -> Strings {
        let mut strings = Strings {
            texts: Vec::new(),
            index: std::collections::HashMap::new(),
        };
        strings.intern("");
        strings
    }

    /// The id of `text`, made when it is new.
    pub fn intern(&mut self, text: &str) -> StringId {
        if let Some(&id) = self.index.get(text) {
            return StringId(id);
        }
        let id = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.into());
        self.index.insert(text.into(), id);
        StringId(id)
    }

    /// The text of `id`; empty for an id that was never given out.
    pub fn get(&self, id: StringId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// How many texts there are, the empty one included.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is no text but the empty one.
    pub fn is_empty(&self) -> bool {
        self.texts.len() <= 1
    }

    /// All texts in id order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}

/// Where the events of a process are from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Provider {
    /// rocprofiler-sdk, or nowhere: there were none.
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
    /// Parent.
    pub ppid: ProcessId,
    /// Process group.
    pub pgid: ProcessId,
    /// Session.
    pub sid: ProcessId,
    /// Kernel start ticks; with `pid` it names a process for ever.
    pub start_ticks: u64,
    /// When the collector was loaded.
    pub init_time: Nanoseconds,
    /// End of recording: as the collector said, or the latest time in any record.
    pub fini_time: Nanoseconds,
    /// Unix time in ns at `init_time`.
    pub real_time: u64,
    /// Fork without exec made it.
    pub forked: bool,
    /// Children of its parent when it started.
    pub psize: u32,
    /// Where its events are from.
    pub provider: Provider,
    /// Its arguments, program first. These, the paths and values below are escaped text: [`crate::os_text`].
    pub command: Vec<String>,
    /// Working directory at the start.
    pub cwd: String,
    /// Its program file.
    pub executable: String,
    /// Environment at the start, in its order.
    pub environment: Vec<(String, String)>,
}

/// A loaded code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeObject {
    /// Id, from 1.
    pub id: CodeObjectId,
    /// Agent it was loaded for.
    pub agent: AgentHandle,
    /// Where it came from.
    pub uri: String,
    /// Load address.
    pub load_base: u64,
    /// Bytes at the load address.
    pub load_size: u64,
    /// Difference between load address and ELF address.
    pub load_delta: i64,
    /// 1 file, 2 memory.
    pub storage_type: u32,
    /// Address of the ELF image in memory.
    pub memory_base: u64,
    /// Bytes of the ELF image.
    pub memory_size: u64,
    /// Payload size the provider reported.
    pub size: u64,
}

impl CodeObject {
    /// What has to be added to an offset from the load address for the address in the file.
    pub fn address_bias(&self) -> u64 {
        self.load_base
            .wrapping_add_signed(self.load_delta.wrapping_neg())
    }
}

/// A kernel symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSymbol {
    /// Id, from 1.
    pub id: KernelId,
    /// Its code object.
    pub code_object: CodeObjectId,
    /// Name as registered, normally ending in `.kd`.
    pub name: String,
    /// Descriptor address.
    pub kernel_object: u64,
    /// Bytes of arguments.
    pub kernarg_size: u32,
    /// Their alignment.
    pub kernarg_align: u32,
    /// Static LDS bytes.
    pub group_size: u32,
    /// Static scratch bytes per work item.
    pub private_size: u32,
    /// SGPRs.
    pub sgpr_count: u32,
    /// Architected VGPRs.
    pub arch_vgpr_count: u32,
    /// Accumulation VGPRs.
    pub accum_vgpr_count: u32,
    /// Offset from descriptor to code.
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
    /// Its kernel.
    pub kernel: KernelId,
    /// Its code object.
    pub code_object: CodeObjectId,
    /// Address of the stub.
    pub address: u64,
    /// Name.
    pub name: String,
}

/// A dimension of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterDimension {
    /// The provider's id.
    pub id: u64,
    /// Positions along it.
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
    /// Agent.
    pub agent: AgentHandle,
    /// Name.
    pub name: String,
    /// What it counts.
    pub description: String,
    /// Hardware block; empty for derived counters.
    pub block: String,
    /// How it is computed; empty for what the hardware counts.
    pub expression: String,
    /// A property of the agent.
    pub is_constant: bool,
    /// Computed from others.
    pub is_derived: bool,
    /// Dimensions.
    pub dimensions: Vec<CounterDimension>,
    /// The values it yields.
    pub instances: Vec<CounterInstance>,
}

/// A region that renames kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Message.
    pub message: StringId,
    /// Correlation id of the first range with this message: the external id of the kernels it renames.
    pub correlation: CorrelationId,
}

/// What kind of thing a ROCTx naming call named.
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

/// A name given through ROCTx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceName {
    /// What was named.
    pub kind: ResourceKind,
    /// Thread id, device number, stream pointer or agent handle.
    pub resource: u64,
    /// The name.
    pub name: String,
}

/// A call that had not returned when recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// Function.
    pub name: StringId,
    /// Thread.
    pub thread: ThreadId,
    /// Begin.
    pub start: Nanoseconds,
}

/// What is known about how complete the recording is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Records that the collector could not store.
    pub dropped: u64,
    /// Bytes of spool segments that could not be read, with the reason; empty when all was well.
    pub damage: Vec<String>,
    /// Recording ended in good order.
    pub ended: bool,
    /// Texts from the collector for the user.
    pub notes: Vec<String>,
    /// Calls that had not returned, innermost last per thread.
    pub open_calls: Vec<OpenCall>,
    /// Calls with an argument or a message that was longer than the collector keeps: its beginning is there.
    pub cut_calls: u64,
    /// Dispatches that were to be counted and whose values never came.
    pub uncounted: u64,
    /// Dispatches that were submitted to be recorded and that the provider never called complete.
    pub unfinished_dispatches: u64,
    /// Copies that were submitted to be recorded and that the provider never called complete.
    pub unfinished_copies: u64,
    /// Dispatches that are not recorded because the program had paused recording.
    pub paused_dispatches: u64,
    /// Processes forked off by this one that could not open a recording of their own.
    pub lost_processes: u64,
    /// Records of those processes.
    pub lost_records: u64,
    /// PC samples that the provider called unusable.
    pub invalid_samples: u64,
    /// PC samples that the provider had no room for.
    pub lost_samples: u64,
    /// PC samples of a layout that the collector does not know.
    pub unknown_samples: u64,
    /// Bytes of records read.
    pub bytes: u64,
    /// A runtime (HIP, HSA, ROCTx, ...) was initialised in this process.
    pub runtime_seen: bool,
}

/// Where a session came from that was read from a database: what keeps it the same recording when it is written again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Id of the recording.
    pub guid: String,
    /// Id of the node in the database.
    pub node: i64,
    /// Hash of the machine id.
    pub node_hash: i64,
    /// Machine id.
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

/// What one process of one pass recorded.
#[derive(Debug, Default)]
pub struct Session {
    /// Set when it was read from a database.
    pub origin: Option<Origin>,
    /// The process.
    pub process: Process,
    /// Texts.
    pub strings: Strings,
    /// What the records of calls, copies, allocations and scratch are records of.
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
    /// How many of [`Session::provider_names`] are callback kinds.
    pub callback_kinds: usize,
    /// Calls and markers.
    pub api: ApiTable,
    /// Kernel dispatches.
    pub dispatches: DispatchTable,
    /// Copies.
    pub copies: CopyTable,
    /// Allocations.
    pub allocations: AllocationTable,
    /// Scratch operations.
    pub scratch: ScratchTable,
    /// Counters that were asked for, by id, then agent.
    pub counters: Vec<Counter>,
    /// What was counted.
    pub counted: CountedTable,
    /// How agents were sampled.
    pub sampling: Vec<code::Sampling>,
    /// PC samples.
    pub samples: SampleTable,
    /// Thread traces.
    pub thread_traces: traces::ThreadTraces,
    /// Code of the GPU.
    pub code: code::Code,
    /// Call stacks of calls, markers and allocations.
    pub stacks: Stacks,
    /// How complete it is.
    pub ledger: Ledger,
    /// Where long tables have their files; `None` keeps them in memory.
    pub storage: Option<Storage>,
}

impl Session {
    /// Number of records of all tables.
    pub fn len(&self) -> usize {
        Table::ALL.iter().map(|table| self.records(*table)).sum()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.thread_traces.is_empty()
    }

    /// What files and statistics call record `index` of [`Session::api`]: the message of marks and ranges, else the
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

    /// What call `index` of [`Session::api`] is a record of.
    #[inline]
    pub fn call(&self, index: usize) -> &Operation {
        &self.operations[self.api.operation[index]]
    }

    /// Number of calls and markers whose operation is one that `wanted` says yes to.
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
