//! Facts that records refer to: names, agents, code objects, kernels, regions. All are in the meta stream.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Values of [`Name::space`]: the services of the SDK number their kinds independently.
pub mod space {
    /// Kinds of the callback service. Records hold numbers of this space.
    pub const CALLBACK: u32 = 0;
    /// Kinds of the buffer service. Outputs number their records by these.
    pub const BUFFER: u32 = 1;
}

/// The name of a kind, or the names of consecutive operations of a kind. Tail: the name, or the names with a NUL
/// between them.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Name {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Service whose number `kind` is: one of the values of [`space`].
    pub space: u32,
    /// Number of the kind in the space.
    pub kind: u32,
    /// Number of the first named operation; `u32::MAX` for the name of the kind itself.
    pub operation: u32,
    /// Length of the text in the tail.
    pub text_len: u32,
}

/// An agent. Tail: the struct `rocprofiler_agent_v0_t` as the provider gave it (as many bytes as its `size`), the
/// arrays of its memory banks, caches and links, then its name, vendor name, product name and model name; each as a
/// `u32` length and the bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AgentRecord {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Handle of the agent (`rocprofiler_agent_id_t`).
    pub handle: u64,
}

/// A code object was loaded or is about to be unloaded (`rocprofiler_callback_tracing_code_object_load_data_t`).
/// Tail: the URI.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CodeObject {
    /// Head of the record. `aux`: 1 loaded, 2 unloaded.
    pub header: RecordHeader,
    /// Id of the code object, from 1.
    pub id: u64,
    /// Handle of the agent that it is loaded on.
    pub agent: u64,
    /// Lowest address of the loaded code object in device memory.
    pub load_base: u64,
    /// Size of the code object in device memory, in bytes.
    pub load_size: u64,
    /// Loaded address minus address in the ELF file, in bytes.
    pub load_delta: i64,
    /// Place of the ELF image (`rocprofiler_code_object_storage_type_t`): 1 file, 2 host memory.
    pub storage_type: u32,
    /// Length of the URI in the tail.
    pub uri_len: u32,
    /// Address of the ELF image in host memory; 0 when it is in a file.
    pub memory_base: u64,
    /// Size of the ELF image in host memory; 0 when it is in a file.
    pub memory_size: u64,
    /// Value of `size` in the provider's struct. Results files repeat it.
    pub size: u64,
    /// Time at which the code object was loaded or unloaded.
    pub time: u64,
}

/// A kernel symbol was registered (`rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t`). Tail:
/// the mangled name, normally with the suffix `.kd`.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct KernelSymbol {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the kernel, from 1.
    pub id: u64,
    /// Id of the code object that has the kernel.
    pub code_object: u64,
    /// Address of the kernel descriptor, as dispatch packets hold it.
    pub kernel_object: u64,
    /// Size of the kernel argument block.
    pub kernarg_size: u32,
    /// Alignment of the kernel argument block.
    pub kernarg_align: u32,
    /// Static LDS of a workgroup.
    pub group_size: u32,
    /// Static scratch memory of a work item.
    pub private_size: u32,
    /// Number of scalar registers of a wave.
    pub sgpr_count: u32,
    /// Number of architected vector registers of a work item.
    pub arch_vgpr_count: u32,
    /// Number of accumulation vector registers of a work item; 0 where the hardware has none.
    pub accum_vgpr_count: u32,
    /// Length of the name in the tail.
    pub name_len: u32,
    /// Distance from the descriptor to the first instruction.
    pub entry_offset: i64,
    /// Address of the first instruction.
    pub kernel_address: u64,
    /// Value of `size` in the provider's struct. Results files repeat it.
    pub size: u64,
}

/// The host stub of a kernel was registered
/// (`rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t`). Tail: the mangled name of the
/// kernel.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct HostFunction {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the host stub, from 1.
    pub id: u64,
    /// Id of the kernel that the stub launches.
    pub kernel: u64,
    /// Id of the code object that has the kernel.
    pub code_object: u64,
    /// Address of the stub, which the program passes to `hipLaunchKernel`.
    pub address: u64,
    /// Handle that `__hipRegisterFatBinary` returned for the binary with the kernel.
    pub modules: u64,
    /// Length of the name in the tail.
    pub name_len: u32,
    /// Argument `threadLimit` of `__hipRegisterFunction`; `u32::MAX` for no limit.
    pub thread_limit: u32,
}

/// The program named a thread, device, stream or agent through ROCTx. Tail: the name.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct NamedResource {
    /// Head of the record. `aux`: 1 thread of the operating system, 2 HIP device, 3 HIP stream, 4 HSA agent,
    /// 5 stream by its number in records.
    pub header: RecordHeader,
    /// Thread id, device number, address of the HIP stream, handle of the agent or number of the stream, by `aux`.
    pub resource: u64,
    /// Time at which the name was given.
    pub time: u64,
    /// Length of the name in the tail.
    pub name_len: u32,
    /// Id of the thread that gave the name.
    pub tid: u32,
}

/// A ROCTx push range whose message renames the kernels that are launched in it. Tail: the message.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Region {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the region, from 1. [`super::Dispatch::region`] refers to it.
    pub id: u32,
    /// Length of the message in the tail.
    pub text_len: u32,
    /// Correlation id of the first range with this message.
    pub correlation: u64,
}
