//! Spool format of captures of GPU calls: which calls are kept, the layout of a call's record, and the files
//! through which host data reaches the front end.
//!
//! A record of a call ([`CaptureCall`]) is written when the call has returned. Its tail is the argument struct, padded to
//! eight bytes, then *items*: each an [`ItemHeader`] and a payload padded to eight bytes. Bytes of host memory are an item
//! [`item::DATA`], short ones in the record itself, longer ones in the staging file of the process, from where the front
//! end takes them while the program runs. [`StageControl`] holds how far each side is.

pub mod element;
mod stage;
pub mod structs;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::format::RecordHeader;

// Shared with the parser of the table that they stand in, from which this crate's table is made.
#[path = "../../../rpd-data/src/roles.rs"]
mod roles;

pub use roles::{HandleKind, Role};
pub use stage::{StageControl, compared, ended};

/// Name of the staging file in a process' directory.
pub const STAGE_FILE: &str = "capture-data";

/// Name of the file in a process' directory that is mapped as [`StageControl`].
pub const CONTROL_FILE: &str = "capture-control";

/// Bytes of [`CONTROL_FILE`].
pub const CONTROL_BYTES: usize = 4096;

/// Data of at most this many bytes lie in the record itself.
pub const INLINE_BYTES: usize = 1024;

impl HandleKind {
    /// The kind's name in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            HandleKind::Stream => "stream",
            HandleKind::Event => "event",
            HandleKind::Module => "module",
            HandleKind::Function => "function",
            HandleKind::Graph => "graph",
            HandleKind::Node => "graph node",
            HandleKind::GraphExec => "executable graph",
            HandleKind::Pool => "memory pool",
            HandleKind::Array => "array",
            HandleKind::Texture => "texture",
            HandleKind::Surface => "surface",
            HandleKind::Physical => "physical memory",
        }
    }
}

impl Role {
    /// Bytes of the struct that the call reads behind this argument, if there is one of fixed size.
    pub const fn struct_bytes(self) -> Option<usize> {
        match self {
            Role::Struct(bytes) | Role::Resource(bytes) => Some(bytes as usize),
            Role::Copy2d => Some(128),
            Role::Copy3d => Some(160),
            Role::DriverCopy3d => Some(184),
            Role::LaunchConfig => Some(56),
            Role::KernelNode => Some(64),
            Role::MemsetNode => Some(48),
            Role::AnyNode => Some(256),
            Role::MemoryOperationsNode => Some(32),
            Role::TextureReference => Some(88),
            _ => None,
        }
    }
}

/// Subject of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Launches of kernels and graphs.
    Launch,
    /// Modules, functions, variables.
    Code,
    /// Allocations and pools.
    Memory,
    /// Arrays, textures and surfaces.
    Image,
    /// Copies and fills.
    Transfer,
    /// Streams, events, synchronisation.
    Order,
    /// Graphs and stream capture.
    Graph,
    /// The current device and settings of devices and functions.
    Context,
    /// Neither recorded nor replayed.
    Query,
    /// Recorded, and not replayed.
    Unsupported,
}

impl Group {
    /// The group's name in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Launch => "launch",
            Group::Code => "code",
            Group::Memory => "memory",
            Group::Image => "image",
            Group::Transfer => "transfer",
            Group::Order => "order",
            Group::Graph => "graph",
            Group::Context => "context",
            Group::Query => "query",
            Group::Unsupported => "unsupported",
        }
    }
}

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    name: u16,
    name_len: u8,
    /// Offset in the argument struct, bytes.
    pub offset: u16,
    /// Bytes in the argument struct.
    pub size: u16,
    /// Role of the argument in a replay.
    pub role: Role,
}

impl Argument {
    /// Name of the argument.
    pub fn name(&self) -> &'static str {
        text(self.name, self.name_len)
    }

    /// Its value in an argument struct, as far as eight bytes hold it; 0 where the struct is too short.
    #[inline]
    pub fn value(&self, arguments: &[u8]) -> u64 {
        let start = usize::from(self.offset);
        let len = usize::from(self.size).min(8);
        let mut bytes = [0; 8];
        if let Some(found) = arguments.get(start..start + len) {
            bytes[..len].copy_from_slice(found);
        }
        u64::from_le_bytes(bytes)
    }

    /// Puts its value, as far as it has bytes, into an argument struct; nothing where the struct is too short.
    pub fn put(&self, arguments: &mut [u8], value: u64) {
        let start = usize::from(self.offset);
        let len = usize::from(self.size).min(8);
        if let Some(place) = arguments.get_mut(start..start + len) {
            place.copy_from_slice(&value.to_le_bytes()[..len]);
        }
    }
}

/// A call of the HIP runtime.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    name: u16,
    name_len: u8,
    /// Group of functions that it belongs to.
    pub group: Group,
    /// Bytes of its argument struct.
    pub size: u16,
    first: u16,
    count: u8,
}

impl Operation {
    /// Name of the function.
    pub fn name(&self) -> &'static str {
        text(self.name, self.name_len)
    }

    /// Its arguments, in order.
    #[inline]
    pub fn arguments(&self) -> &'static [Argument] {
        let first = usize::from(self.first);
        ARGUMENTS
            .get(first..first + usize::from(self.count))
            .unwrap_or_default()
    }

    /// The argument of this name.
    pub fn argument(&self, name: &str) -> Option<&'static Argument> {
        self.arguments().iter().find(|one| one.name() == name)
    }

    /// The first argument with this role.
    #[inline]
    pub fn with_role(&self, role: Role) -> Option<&'static Argument> {
        self.arguments().iter().find(|one| one.role == role)
    }
}

include!(concat!(env!("OUT_DIR"), "/capture_calls.rs"));

/// Numbers of the calls, by name.
#[allow(missing_docs, non_upper_case_globals)]
pub mod number {
    include!(concat!(env!("OUT_DIR"), "/capture_numbers.rs"));
}

fn text(start: u16, len: u8) -> &'static str {
    let start = usize::from(start);
    NAMES
        .get(start..start + usize::from(len))
        .unwrap_or_default()
}

/// All calls, by number.
#[inline]
pub fn operations() -> &'static [Operation] {
    &OPERATIONS
}

/// The call with this number.
#[inline]
pub fn operation(number: u32) -> Option<&'static Operation> {
    OPERATIONS.get(number as usize)
}

/// A call that was captured. Tail: its argument struct, padded, then items.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CaptureCall {
    /// Record head.
    pub header: RecordHeader,
    /// Number of the call ([`operation`]).
    pub operation: u32,
    /// [`call_flag`].
    pub flags: u32,
    /// Place among all starts and ends of calls of the process at which it began.
    pub entry: u64,
    /// Place at which it ended.
    pub exit: u64,
    /// Begin, `CLOCK_BOOTTIME` ns.
    pub start: u64,
    /// End, `CLOCK_BOOTTIME` ns.
    pub end: u64,
    /// The status that the call returned.
    pub result: i32,
    /// The current device of the thread.
    pub device: i32,
}

/// Bits of [`CaptureCall::flags`].
pub mod call_flag {
    /// Part of what a replay needs could not be taken; an item states which.
    pub const INCOMPLETE: u32 = 1;
    /// Made while its stream was being captured into a graph.
    pub const IN_STREAM_CAPTURE: u32 = 2;
    /// Physical memory was mapped that had been mapped before, elsewhere: a replay has its content only where it maps it as well.
    pub const MAPPED_AGAIN: u32 = 4;
}

/// A code object was loaded for a device. Tail: one item [`item::DATA`] with its bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CaptureCode {
    /// Record head.
    pub header: RecordHeader,
    /// The provider's number of the code object.
    pub id: u64,
    /// The provider's handle of the device.
    pub agent: u64,
    /// Load address.
    pub load_base: u64,
    /// Size of the loaded code object in bytes.
    pub load_size: u64,
    /// Place among all starts and ends of calls.
    pub entry: u64,
}

/// A marker of the program between calls of a capture. Tail: the message.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CaptureMarker {
    /// Record head. aux: one of [`marker`].
    pub header: RecordHeader,
    /// Place among all starts and ends of calls.
    pub entry: u64,
    /// The range that begins or ends; 0 where it is none.
    pub range: u64,
    /// Bytes of the message.
    pub text_len: u64,
}

/// Markers of the program, in [`CaptureMarker`].
pub mod marker {
    /// The program resumes recording.
    pub const RESUME: u16 = 1;
    /// The program pauses recording.
    pub const PAUSE: u16 = 2;
    /// A range begins.
    pub const BEGIN: u16 = 3;
    /// A range ends.
    pub const END: u16 = 4;
}

/// Head of an item, 8 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ItemHeader {
    /// One of [`item`].
    pub kind: u16,
    /// Position of the argument it belongs to; [`NO_ARGUMENT`] when to none.
    pub argument: u16,
    /// Bytes of the payload, without padding.
    pub len: u32,
}

/// [`ItemHeader::argument`] of what belongs to no argument.
pub const NO_ARGUMENT: u16 = u16::MAX;

/// Kinds of items.
pub mod item {
    /// Data that the call stored behind the argument: handles and addresses (eight bytes), structs, nodes.
    pub const OUT: u16 = 1;
    /// Data that the call read behind the argument: structs, arrays, text.
    pub const IN: u16 = 2;
    /// Bytes of host memory: [`super::DataHeader`], then the bytes if they are in the record.
    pub const DATA: u16 = 3;
    /// The kernel: eight bytes, the number of its code object (0: not known), then its name.
    pub const KERNEL: u16 = 4;
    /// The explicit argument bytes of the kernel.
    pub const KERNEL_ARGUMENTS: u16 = 5;
    /// Numbers of the code objects that were loaded in the call, eight bytes each.
    pub const CODE: u16 = 6;
    /// Memory that the call allocated: [`super::AllocationItem`].
    pub const ALLOCATION: u16 = 7;
    /// The name of the device variable; of an allocation, that of the managed variable whose memory it is.
    pub const SYMBOL: u16 = 8;
    /// Description of data that could not be captured.
    pub const MISSING: u16 = 9;
    /// Content of a device variable before the call, in excerpts of captures: [`super::VariableItem`], then the name.
    pub const VARIABLE: u16 = 10;
    /// The host changed the memory that an asynchronous copy reads after its call and before it had waited for the copy:
    /// eight bytes, [`CaptureCall::entry`](super::CaptureCall) of the copy.
    pub const CHANGED: u16 = 11;
    /// The number of the code object that has the device variable: eight bytes.
    pub const SYMBOL_CODE: u16 = 12;
    /// A launch may read host-visible memory that was not taken, because only memory of the device points to it: eight bytes, the
    /// first address of one of these.
    pub const BEHIND_DEVICE: u16 = 13;
}

/// Uses of host memory by a call.
pub mod data_use {
    /// Data that the call reads.
    pub const SOURCE: u32 = 0;
    /// Content of host-visible memory before the call, which its device work may read.
    pub const UPDATE: u32 = 1;
    /// Data that a copy wrote; complete when the call that has the item returned.
    pub const OUTPUT: u32 = 2;
    /// Bytes of a code object.
    pub const CODE: u32 = 3;
    /// Content of device memory before the call, in excerpts of captures.
    pub const MEMORY: u32 = 4;
    /// Content of device memory when the call and all work before it are complete, in excerpts of captures.
    pub const RESULT: u32 = 5;
    /// Data that the device read in an earlier copy; replaces the data at its call.
    pub const DEVICE_READ: u32 = 6;
    /// Content of an array before the call, in excerpts of captures: rows without gaps. The address is the array's handle.
    pub const ARRAY: u32 = 7;
    /// Content of an array when the call and all work before it are complete.
    pub const ARRAY_RESULT: u32 = 8;
}

/// Values of [`DataHeader::offset`] that state where the bytes of an item [`item::DATA`] are.
pub mod data_place {
    /// Behind the header.
    pub const INLINE: u64 = u64::MAX;
    /// They were not taken, because the capture is without data.
    pub const SKIPPED: u64 = u64::MAX - 1;
}

/// Bytes of host memory.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DataHeader {
    /// Their address in the program's memory.
    pub address: u64,
    /// Number of bytes; rows of rectangles follow one another without gaps.
    pub size: u64,
    /// Their offset in the staging file, or one of [`data_place`].
    pub offset: u64,
    /// [`CaptureCall::entry`] of the copy that wrote them; 0 when that is this call.
    pub copy: u64,
    /// Bytes from one row to the next in the program's memory; 0: one row.
    pub pitch: u64,
    /// Bytes of a row.
    pub width: u64,
    /// Rows from one slice to the next in the program's memory.
    pub slice_rows: u64,
    /// Rows that are there, of each slice.
    pub rows: u64,
    /// One of [`data_use`].
    pub purpose: u32,
    /// Not used; 0.
    pub reserved: u32,
}

/// Memory that a call allocated.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AllocationItem {
    /// First byte.
    pub base: u64,
    /// Bytes that were requested.
    pub size: u64,
    /// One of [`memory_kind`].
    pub kind: u32,
    /// Flags of the call.
    pub flags: u32,
}

/// The content of a device variable, by numbers of the capture.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct VariableItem {
    /// The code object.
    pub code: i64,
    /// Number of the data.
    pub data: i64,
    /// Number of the device.
    pub device: i64,
}

/// Kinds of memory.
pub mod memory_kind {
    /// Device memory.
    pub const DEVICE: u32 = 0;
    /// Device memory in the order of a stream, from a pool.
    pub const POOLED: u32 = 1;
    /// Host memory of the runtime, pinned.
    pub const HOST: u32 = 2;
    /// Host memory of the program that was registered.
    pub const REGISTERED: u32 = 3;
    /// Managed memory.
    pub const MANAGED: u32 = 4;

    /// Whether the host reads and writes it.
    pub const fn is_host_visible(kind: u32) -> bool {
        matches!(kind, HOST | REGISTERED | MANAGED)
    }
}

/// An item of a record.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// One of [`item`].
    pub kind: u16,
    /// Position of the argument; [`NO_ARGUMENT`] when it belongs to none.
    pub argument: u16,
    /// Payload without padding.
    pub payload: &'a [u8],
}

impl<'a> Item<'a> {
    /// The payload of an item [`item::DATA`].
    pub fn data(&self) -> Option<(DataHeader, &'a [u8])> {
        DataHeader::read_from_prefix(self.payload).ok()
    }

    /// The payload of an item [`item::VARIABLE`] and the name.
    pub fn variable(&self) -> Option<(VariableItem, &'a [u8])> {
        VariableItem::read_from_prefix(self.payload).ok()
    }

    /// The first eight bytes of the payload.
    pub fn word(&self) -> Option<u64> {
        Some(u64::read_from_prefix(self.payload).ok()?.0)
    }
}

/// Appends an item with this payload.
pub fn push_item(into: &mut Vec<u8>, kind: u16, argument: u16, payload: &[u8]) {
    let header = ItemHeader {
        kind,
        argument,
        len: payload.len() as u32,
    };
    into.extend_from_slice(header.as_bytes());
    into.extend_from_slice(payload);
    into.resize(into.len().next_multiple_of(8), 0);
}

/// The items in the tail of a record, after the argument struct.
#[derive(Debug, Clone, Copy)]
pub struct Items<'a>(
    /// The remaining bytes.
    pub &'a [u8],
);

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        let (header, rest) = ItemHeader::read_from_prefix(self.0).ok()?;
        if header.kind == 0 {
            return None;
        }
        let len = header.len as usize;
        let payload = rest.get(..len)?;
        self.0 = rest.get(len.next_multiple_of(8)..).unwrap_or_default();
        Some(Item {
            kind: header.kind,
            argument: header.argument,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_number_with_their_arguments() {
        let malloc = operation(number::hipMalloc).expect("a call");
        assert_eq!(malloc.name(), "hipMalloc");
        assert_eq!(malloc.group, Group::Memory);
        let [pointer, size] = malloc.arguments() else {
            panic!("two arguments");
        };
        assert_eq!((pointer.name(), pointer.role), ("ptr", Role::AddressOut));
        assert_eq!((size.name(), size.role), ("size", Role::Value));
        let copy = operation(number::hipMemcpyAsync).expect("a call");
        let stream = copy.argument("stream").expect("a stream");
        assert_eq!(stream.role, Role::Handle(HandleKind::Stream));
        assert_eq!(operations().len(), OPERATIONS.len());
        assert!(operation(u32::MAX).is_none());
    }

    #[test]
    fn items_end_where_the_tail_does() {
        let mut tail = Vec::new();
        for (kind, payload) in [(item::OUT, &b"12345678"[..]), (item::SYMBOL, b"abc")] {
            push_item(&mut tail, kind, 1, payload);
        }
        let found: Vec<(u16, usize)> = Items(&tail)
            .map(|item| (item.kind, item.payload.len()))
            .collect();
        assert_eq!(found, [(item::OUT, 8), (item::SYMBOL, 3)]);
        assert_eq!(Items(&tail[..tail.len() - 8]).count(), 1, "cut");
    }
}
