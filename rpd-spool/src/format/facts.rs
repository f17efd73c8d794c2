//! Facts that records refer to: names, agents, code objects, kernels, regions.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Which name space a kind number is from, in [`Name::space`].
pub mod space {
    /// Kinds of the callback service: those that records refer to.
    pub const CALLBACK: u32 = 0;
    /// Kinds of the buffer service, which outputs number their records by.
    pub const BUFFER: u32 = 1;
}

/// The name of a kind, or the names of operations of a kind with consecutive numbers. Tail: the name, or the names with a
/// NUL between them.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Name {
    /// Record head.
    pub header: RecordHeader,
    /// One of [`space`].
    pub space: u32,
    /// The provider's kind number.
    pub kind: u32,
    /// The provider's number of the first operation; `u32::MAX` in a kind name.
    pub operation: u32,
    /// Bytes of text in the tail.
    pub text_len: u32,
}

/// An agent. The tail holds, each as a `u32` byte count followed by the bytes: the agent struct as the provider
/// gave it (as many bytes as its `size`), its memory banks, caches, links (arrays as in the ABI), name,
/// vendor name, product name, model name.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AgentRecord {
    /// Record head.
    pub header: RecordHeader,
    /// The provider's handle.
    pub handle: u64,
}

/// A code object was loaded. Tail: URI.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CodeObject {
    /// Record head. aux: 1 loaded, 2 unloaded.
    pub header: RecordHeader,
    /// The provider's code object id.
    pub id: u64,
    /// Agent handle.
    pub agent: u64,
    /// Load address.
    pub load_base: u64,
    /// Bytes at the load address.
    pub load_size: u64,
    /// Difference between load address and ELF address.
    pub load_delta: i64,
    /// 1 file, 2 memory.
    pub storage_type: u32,
    /// Bytes of URI in the tail.
    pub uri_len: u32,
    /// Address of the ELF image in memory; 0 for files.
    pub memory_base: u64,
    /// Size of the ELF image in memory, in bytes.
    pub memory_size: u64,
    /// Payload size as the provider reports it.
    pub size: u64,
    /// Time, in ns of `CLOCK_BOOTTIME`.
    pub time: u64,
}

/// A kernel symbol was registered. Tail: name.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct KernelSymbol {
    /// Record head.
    pub header: RecordHeader,
    /// Kernel id, from 1.
    pub id: u64,
    /// Id of the code object that has the kernel.
    pub code_object: u64,
    /// Kernel object (descriptor) address.
    pub kernel_object: u64,
    /// Bytes of kernel arguments.
    pub kernarg_size: u32,
    /// Their alignment.
    pub kernarg_align: u32,
    /// Static LDS bytes.
    pub group_size: u32,
    /// Static scratch bytes per work item.
    pub private_size: u32,
    /// Number of SGPRs of a wave.
    pub sgpr_count: u32,
    /// Architected VGPRs.
    pub arch_vgpr_count: u32,
    /// Accumulation VGPRs.
    pub accum_vgpr_count: u32,
    /// Bytes of name in the tail.
    pub name_len: u32,
    /// Offset from descriptor to code.
    pub entry_offset: i64,
    /// Address of the code.
    pub kernel_address: u64,
    /// Payload size as the provider reports it.
    pub size: u64,
}

/// A host stub of a kernel is known. Tail: name.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct HostFunction {
    /// Record head.
    pub header: RecordHeader,
    /// Host function id, from 1.
    pub id: u64,
    /// Kernel id.
    pub kernel: u64,
    /// Code object id.
    pub code_object: u64,
    /// Address of the stub.
    pub address: u64,
    /// Address of the module table that the program registered the stub with.
    pub modules: u64,
    /// Bytes of name in the tail.
    pub name_len: u32,
    /// Limit of threads that the program registered; `u32::MAX` for none.
    pub thread_limit: u32,
}

/// A name given through ROCTx. Tail: name.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct NamedResource {
    /// Record head. aux: 1 OS thread, 2 HIP device, 3 HIP stream, 4 HSA agent.
    pub header: RecordHeader,
    /// Thread id, device number, stream pointer or agent handle.
    pub resource: u64,
    /// Time, in ns of `CLOCK_BOOTTIME`.
    pub time: u64,
    /// Bytes of name in the tail.
    pub name_len: u32,
    /// Thread that gave the name.
    pub tid: u32,
}

/// A push range whose message renames kernels. Tail: message.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Region {
    /// Record head.
    pub header: RecordHeader,
    /// Number used in [`super::Dispatch::region`], from 1.
    pub id: u32,
    /// Bytes of message in the tail.
    pub text_len: u32,
    /// Internal correlation id of the first range with this message.
    pub correlation: u64,
}
