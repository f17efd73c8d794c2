//! Layout of the spool files. Little endian, every record a multiple of 8 bytes.
//!
//! A segment is one file of fixed size: [`SegmentHeader`], then records up to `committed`. A record starts
//! with [`RecordHeader`]; its fixed part is the struct that the table of kinds ([`crate::record`]) names; a variable tail
//! may follow. Readers count what has a tag they do not know.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of every segment.
pub const MAGIC: [u8; 8] = *b"RPDSPOOL";

/// Version of this layout. A reader refuses other versions.
pub const VERSION: u32 = 1;

/// Kinds of stream, in [`SegmentHeader::stream_kind`].
pub mod stream {
    /// Process, names, agents, code objects and other rare facts: one per process, file `meta`.
    pub const META: u16 = 1;
    /// Calls and markers of one thread, and what the provider told on it about finished work, which names the thread
    /// that submitted it itself. File `t<tid>`.
    pub const THREAD: u16 = 2;
}

/// Head of a segment file, 64 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SegmentHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// One of [`stream`].
    pub stream_kind: u16,
    /// Zero.
    pub flags: u16,
    /// Process that writes.
    pub pid: u32,
    /// Thread the stream belongs to; 0 when none.
    pub tid: u32,
    /// Number of this segment in its stream, from 0.
    pub segment: u32,
    /// Number of the stream in its process.
    pub stream_id: u32,
    /// Bytes of records that are complete. Stored with release ordering after the bytes. At byte 32.
    pub committed: u64,
    /// Records of this stream that could not be stored from this segment on. At byte 40.
    pub dropped: u64,
    /// When the segment was made, `CLOCK_BOOTTIME` ns.
    pub created: u64,
    /// Size of the file in bytes, this header included.
    pub capacity: u64,
}

/// Head of a record, 8 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RecordHeader {
    /// Bytes of the whole record, this header and padding included.
    pub len: u32,
    /// One of [`tag`].
    pub tag: u16,
    /// Depends on the tag; zero where not stated.
    pub aux: u16,
}

pub use crate::record::tag;

/// Which name space a kind number is from, in [`Name::space`].
pub mod space {
    /// Kinds of the callback service: those that records refer to.
    pub const CALLBACK: u32 = 0;
    /// Kinds of the buffer service, which outputs number their records by.
    pub const BUFFER: u32 = 1;
}

/// The process, known when the collector was loaded. The tail holds, each as a `u32` byte count followed by
/// the bytes: command line (NUL-separated, as `/proc/self/cmdline`), working directory, executable path,
/// environment (NUL-separated).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Process {
    /// Record head.
    pub header: RecordHeader,
    /// Process id.
    pub pid: u32,
    /// Parent process id.
    pub ppid: u32,
    /// Process group.
    pub pgid: u32,
    /// Session.
    pub sid: u32,
    /// Field 22 of `/proc/self/stat`: with `pid` it names a process for ever.
    pub start_ticks: u64,
    /// When the collector was loaded, or the fork that made the process, `CLOCK_BOOTTIME` ns.
    pub init_time: u64,
    /// `CLOCK_REALTIME` ns at `init_time`.
    pub real_time: u64,
    /// 1 when the process came from fork without exec.
    pub forked: u32,
    /// Provider version as `10000*major + 100*minor + patch`; 0 while none was met.
    pub provider_version: u32,
    /// Number of children of the parent process when it was loaded.
    pub psize: u32,
    /// 1 when calls may have stacks, 0 when none has.
    pub stacks: u32,
}

/// Sums over the life of a process. The collector adds to them in place, each with one atomic addition.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Totals {
    /// Record head.
    pub header: RecordHeader,
    /// Dispatches that were submitted and will be recorded when they are complete.
    pub dispatches_begun: u64,
    /// Those of them that the provider called complete.
    pub dispatches_ended: u64,
    /// Asynchronous copies that were submitted and will be recorded when they are complete.
    pub copies_begun: u64,
    /// Those of them that the provider called complete.
    pub copies_ended: u64,
    /// Dispatches that were submitted to be counted.
    pub counted_begun: u64,
    /// Those of them whose values the provider has handed over.
    pub counted_ended: u64,
    /// Dispatches that were submitted while the program had paused recording, and are not recorded for that reason.
    pub dispatches_paused: u64,
    /// Processes forked off by this one, or by its forked children, that could not open a recording of their own.
    pub lost_processes: u64,
    /// Records of those processes.
    pub lost_records: u64,
}

/// A kind or operation name. Tail: the text.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Name {
    /// Record head.
    pub header: RecordHeader,
    /// One of [`space`].
    pub space: u32,
    /// The provider's kind number.
    pub kind: u32,
    /// The provider's operation number; `u32::MAX` in a kind name.
    pub operation: u32,
    /// Bytes of text in the tail.
    pub text_len: u32,
}

/// An agent. The tail holds, each as a `u32` byte count followed by the bytes: the agent struct as the provider
/// gave it (as many bytes as its `size` says), its memory banks, caches, links (arrays as in the ABI), name,
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
    /// Its size.
    pub memory_size: u64,
    /// Payload size as the provider reports it.
    pub size: u64,
    /// When, `CLOCK_BOOTTIME` ns.
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
    /// Its code object.
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
    /// SGPRs.
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
    /// Bytes of name in the tail.
    pub name_len: u32,
    /// Zero.
    pub reserved: u32,
}

/// A name given through ROCTx. Tail: name.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct NamedResource {
    /// Record head. aux: 1 OS thread, 2 HIP device, 3 HIP stream, 4 HSA agent.
    pub header: RecordHeader,
    /// Thread id, device number, stream pointer or agent handle.
    pub resource: u64,
    /// When, `CLOCK_BOOTTIME` ns.
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
    /// Number used in [`Dispatch::region`], from 1.
    pub id: u32,
    /// Bytes of message in the tail.
    pub text_len: u32,
    /// Internal correlation id of the first range with this message.
    pub correlation: u64,
}

/// A runtime handed its tables to the provider.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RuntimeInit {
    /// Record head.
    pub header: RecordHeader,
    /// The provider's operation number in its RUNTIME_INITIALIZATION callback kind.
    pub operation: u32,
    /// Zero.
    pub reserved: u32,
    /// Version as the runtime numbers it.
    pub version: u64,
    /// Instance.
    pub instance: u64,
    /// When, `CLOCK_BOOTTIME` ns.
    pub time: u64,
}

/// The end of a process, or a note: a time and, for a note, a text in the tail.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TimedText {
    /// Record head.
    pub header: RecordHeader,
    /// When, `CLOCK_BOOTTIME` ns.
    pub time: u64,
    /// Zero.
    pub value: u64,
    /// Bytes of text in the tail.
    pub text_len: u32,
    /// Thread.
    pub tid: u32,
}

/// Flags of [`ApiCall`].
pub mod api_flag {
    /// The tail starts with the bytes of the argument struct, then per captured text (in argument order) a `u32` byte
    /// count (`u32::MAX` for a null pointer) and the bytes.
    pub const ARGUMENTS: u32 = 1;
    /// The tail is the provider's own argument texts: per argument `u32` count and bytes of type (as the provider
    /// gave it), name, value. For operations whose argument struct rpd does not know.
    pub const ARGUMENT_TEXTS: u32 = 2;
    /// The tail is a marker's message: `u32` byte count (`u32::MAX` for a null pointer) and the bytes.
    pub const MESSAGE: u32 = 4;
    /// The marker's message was a null pointer.
    pub const NULL_MESSAGE: u32 = 8;
    /// Some text was longer than the collector keeps; what is there is its beginning.
    pub const TRUNCATED: u32 = 16;
    /// The tail starts with a [`super::StackRef`]; what the other flags describe follows it.
    pub const STACK: u32 = 32;
}

/// What a call has of its stack: 8 bytes at the start of the tail of [`ApiCall`] and [`RangeBegin`] with
/// [`api_flag::STACK`], and all of the tail of an [`Allocation`] that has one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct StackRef {
    /// [`StackNode::id`] of the innermost frame; 0 when none was taken.
    pub stack: u32,
    /// [`stack_flag`]s.
    pub flags: u32,
}

/// Flags of [`StackRef`]. The lower 16 are those of a capture.
pub mod stack_flag {
    /// The walk ended before the outermost frame.
    pub const TRUNCATED: u32 = 1;
    /// The thread was on a stack that is not its own: a fiber's or a signal's.
    pub const FOREIGN: u32 = 2;
    /// Frames in the middle were left out, since there are more than the limit.
    pub const GAP: u32 = 4;
    /// It has Python frames whose place among the native frames is not known.
    pub const UNPLACED: u32 = 8;
    /// There is no stack because something that it refers to could not be stored.
    pub const LOST: u32 = 16;
    /// The thread runs Python, but its Python frames could not be read.
    pub const PYTHON_UNREADABLE: u32 = 32;
    /// Taken of one call in several.
    pub const SAMPLED: u32 = 1 << 16;
}

/// Kinds of [`StackLocation`], in its `aux`.
pub mod location_kind {
    /// An instruction in a file.
    pub const NATIVE: u16 = 1;
    /// An instruction of a Python code object.
    pub const PYTHON: u16 = 2;
    /// An instruction in memory that belongs to no file.
    pub const JIT: u16 = 3;
    /// The entry of a traced function.
    pub const API: u16 = 4;
    /// TorchScript.
    pub const SCRIPT: u16 = 5;
    /// What generated Python code was made from.
    pub const INDUCTOR: u16 = 6;
    /// The frames further in could not be placed among the frames further out.
    pub const UNPLACED_MARKER: u16 = 7;
    /// The walk ended here, before the outermost frame.
    pub const TRUNCATED_MARKER: u16 = 8;
    /// Frames are left out here.
    pub const GAP_MARKER: u16 = 9;
}

/// A file with code that is mapped into the process. Tail: path, build id. One that is told later and overlaps it has
/// replaced it.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackModule {
    /// Record head.
    pub header: RecordHeader,
    /// Number in its process, from 1. A file that is loaded again gets another.
    pub id: u32,
    /// Bytes of path in the tail.
    pub path_len: u32,
    /// Bytes of build id in the tail.
    pub build_id_len: u32,
    /// Zero.
    pub reserved: u32,
    /// Address minus address in the file.
    pub base: u64,
    /// First mapped address.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// When it was first met, `CLOCK_BOOTTIME` ns.
    pub time: u64,
}

/// A Python code object. Tail: file, name, qualified name, line table.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackCode {
    /// Record head.
    pub header: RecordHeader,
    /// Number in its process, from 1.
    pub id: u32,
    /// Line that the function begins at.
    pub first_line: i32,
    /// Version of the interpreter, as `PY_VERSION_HEX`.
    pub version: u32,
    /// Bytes of file name in the tail.
    pub file_len: u32,
    /// Bytes of name in the tail.
    pub name_len: u32,
    /// Bytes of qualified name in the tail; 0 when the version has none.
    pub qualname_len: u32,
    /// Bytes of the line table in the tail, as the interpreter encodes it.
    pub lines_len: u32,
    /// Zero.
    pub reserved: u32,
}

/// A place in code.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackLocation {
    /// Record head. aux: [`location_kind`].
    pub header: RecordHeader,
    /// Number in its process, from 1.
    pub id: u32,
    /// [`StackModule::id`] or [`StackCode::id`]; 0 when there is none.
    pub owner: u32,
    /// Native: address in the file, or in memory when there is no module. Python: offset of the instruction, as the
    /// interpreter keeps it.
    pub offset: u64,
}

/// A node of the call tree: a frame, called from that of its parent.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackNode {
    /// Record head.
    pub header: RecordHeader,
    /// Number in its process, from 1.
    pub id: u32,
    /// Node of the calling frame; 0 for the outermost.
    pub parent: u32,
    /// [`StackLocation::id`].
    pub location: u32,
    /// Frames outside of it.
    pub depth: u32,
}

/// What lines of a generated Python file were made from, as the program says through the Python package `rpd`. Tail: the
/// file's name, then for each source frame, innermost first, its line, the bytes of its function's name and of its file's
/// name (numbers of 32 bits), and those names. In the meta stream.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackSource {
    /// Record head.
    pub header: RecordHeader,
    /// First line.
    pub first: u32,
    /// Last line.
    pub last: u32,
    /// Bytes of the file's name in the tail.
    pub file_len: u32,
    /// Bytes of the frames in the tail.
    pub frames_len: u32,
}

/// A call, written when it begins; `end` is stored when it returns. 56 bytes without tail.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ApiCall {
    /// Record head. aux: the provider's callback kind.
    pub header: RecordHeader,
    /// The provider's operation number.
    pub operation: u32,
    /// [`api_flag`]s.
    pub flags: u32,
    /// Begin, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End; 0 while the call has not returned. At byte 24.
    pub end: u64,
    /// Internal correlation id.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call, 0 if none.
    pub ancestor: u64,
    /// First 8 bytes of the return value union, stored with `end`. At byte 48.
    pub retval: u64,
}

/// A process range was started. Tail: message, as [`api_flag::MESSAGE`] says.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RangeBegin {
    /// Record head. aux: the provider's callback kind.
    pub header: RecordHeader,
    /// The provider's operation number.
    pub operation: u32,
    /// [`api_flag`]s.
    pub flags: u32,
    /// When, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// Internal correlation id; [`RangeEnd`] has the same.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call, 0 if none.
    pub ancestor: u64,
}

/// A process range was stopped.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RangeEnd {
    /// Record head.
    pub header: RecordHeader,
    /// Internal correlation id of its [`RangeBegin`].
    pub correlation: u64,
    /// When, `CLOCK_BOOTTIME` ns.
    pub end: u64,
}

/// A counter on an agent. The tail holds, each as a `u32` byte count followed by the bytes: name, description, block,
/// expression; then for every dimension its id and its extent (two `u64`) and its name.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Counter {
    /// Record head. aux: bit 0 a constant of the agent, bit 1 derived from other counters.
    pub header: RecordHeader,
    /// The provider's id of the counter. Agents of one architecture may share it.
    pub id: u64,
    /// Agent handle.
    pub agent: u64,
}

/// One of the values that a counter yields for a dispatch. The tail holds `count` times a dimension's id and the
/// position along it (two `u64`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CounterInstance {
    /// Record head.
    pub header: RecordHeader,
    /// The provider's id of the value, used in [`CountedValue::instance`].
    pub id: u64,
    /// [`Counter::id`].
    pub counter: u64,
    /// Pairs in the tail.
    pub count: u32,
    /// Zero.
    pub reserved: u32,
}

/// What was counted in a dispatch. The tail holds `count` times [`CountedValue`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CountedDispatch {
    /// The dispatch; its header is the record's.
    pub dispatch: Dispatch,
    /// Values in the tail.
    pub count: u32,
    /// Zero.
    pub reserved: u32,
}

/// A dispatch was selected for counting when it was submitted: [`CountedDispatch`] follows when it is complete and the provider
/// hands the values over.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Selected {
    /// Record head.
    pub header: RecordHeader,
    /// Dispatch id.
    pub dispatch: u64,
}

/// One counted value.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CountedValue {
    /// [`CounterInstance::id`].
    pub instance: u64,
    /// The value.
    pub value: f64,
}

/// A kernel ran.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Dispatch {
    /// Record head.
    pub header: RecordHeader,
    /// Thread that submitted it.
    pub thread: u64,
    /// Internal correlation id of the call that submitted it.
    pub correlation: u64,
    /// Begin on the device, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End on the device.
    pub end: u64,
    /// Agent handle.
    pub agent: u64,
    /// Queue handle.
    pub queue: u64,
    /// Kernel id.
    pub kernel: u64,
    /// Dispatch id.
    pub dispatch: u64,
    /// HIP stream id; 0 when none is known.
    pub stream: u32,
    /// [`Region::id`]; 0 when none.
    pub region: u32,
    /// Scratch bytes of the packet.
    pub private_size: u32,
    /// LDS bytes of the packet.
    pub group_size: u32,
    /// Work items per workgroup: x, y, z.
    pub workgroup: [u32; 3],
    /// Work items of the grid: x, y, z.
    pub grid: [u32; 3],
}

/// An asynchronous copy ran.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Copy {
    /// Record head.
    pub header: RecordHeader,
    /// Thread that submitted it.
    pub thread: u64,
    /// Internal correlation id of the call that submitted it.
    pub correlation: u64,
    /// Begin, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Agent written to.
    pub dst_agent: u64,
    /// Agent read from.
    pub src_agent: u64,
    /// Bytes.
    pub bytes: u64,
    /// Address written to; 0 when the provider does not tell.
    pub dst_address: u64,
    /// Address read from; 0 when the provider does not tell.
    pub src_address: u64,
    /// The provider's operation number in its MEMORY_COPY callback kind.
    pub operation: u32,
    /// HIP stream id.
    pub stream: u32,
    /// [`Region::id`]; 0 when none.
    pub region: u32,
    /// Zero.
    pub reserved: u32,
}

/// Memory was allocated or freed. Tail: nothing, or a [`StackRef`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Allocation {
    /// Record head.
    pub header: RecordHeader,
    /// Thread.
    pub thread: u64,
    /// Internal correlation id of the call that did it.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call.
    pub ancestor: u64,
    /// Begin, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Agent handle; 0 for frees.
    pub agent: u64,
    /// Address (or memory handle).
    pub address: u64,
    /// Bytes; 0 for frees.
    pub bytes: u64,
    /// The provider's operation number in its MEMORY_ALLOCATION callback kind.
    pub operation: u32,
    /// HIP stream id.
    pub stream: u32,
}

/// Scratch memory changed.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Scratch {
    /// Record head.
    pub header: RecordHeader,
    /// Thread.
    pub thread: u64,
    /// Internal correlation id.
    pub correlation: u64,
    /// Correlation id of the enclosing traced call.
    pub ancestor: u64,
    /// Begin, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Agent handle.
    pub agent: u64,
    /// Queue handle.
    pub queue: u64,
    /// Bytes; 0 for frees.
    pub bytes: u64,
    /// The provider's operation number in its SCRATCH_MEMORY callback kind.
    pub operation: u32,
    /// Provider flags: 1 use-once, 2 alternate.
    pub flags: u32,
}

const _: () = {
    assert!(size_of::<SegmentHeader>() == 64);
    assert!(std::mem::offset_of!(SegmentHeader, committed) == 32);
    assert!(size_of::<RecordHeader>() == 8);
    assert!(size_of::<ApiCall>() == 56);
    assert!(size_of::<StackRef>() == 8);
    assert!(size_of::<StackNode>() == 24);
    assert!(std::mem::offset_of!(ApiCall, end) == 24);
    assert!(std::mem::offset_of!(ApiCall, retval) == 48);
};
