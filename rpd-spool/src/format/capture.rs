//! Spool format of captures of GPU calls: which calls are captured, the layout of a call's record, and the files
//! through which host data reaches the front end.
//!
//! A record of a call ([`CaptureCall`]) is written when the call has returned. Its tail is the argument struct,
//! padded to a multiple of eight bytes, then *items*: each an [`ItemHeader`] and a payload, padded likewise. Bytes of
//! host memory are an item of kind [`item::DATA`]. Short ones are in the record itself, longer ones in the staging
//! file of the process, from which the front end reads them while the program runs. [`StageControl`] holds the
//! position of each side in that file.

pub mod element;
mod stage;
pub mod structs;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::format::RecordHeader;

// Also part of the parser of the table of arguments, from which the build script makes this crate's table.
#[path = "../../../rpd-data/src/roles.rs"]
mod roles;

pub use roles::{HandleKind, Role};
pub use stage::{StageControl, compared, ended};

/// Name of the staging file in the directory of a process.
pub const STAGE_FILE: &str = "capture-data";

/// Name of the file in the directory of a process that is mapped as [`StageControl`].
pub const CONTROL_FILE: &str = "capture-control";

/// Size of [`CONTROL_FILE`] in bytes.
pub const CONTROL_BYTES: usize = 4096;

/// Greatest size in bytes of host data that are stored in the record itself.
pub const INLINE_BYTES: usize = 1024;

impl HandleKind {
    /// Word for the kind in reports and messages.
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
    /// Size in bytes of the struct that the argument points to; `None` when it points to none, or to one of variable
    /// size.
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

/// Subject of a call, by which a replay treats calls alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Launches kernels or graphs.
    Launch,
    /// Loads modules; looks up functions and variables.
    Code,
    /// Allocates or frees memory, or changes memory pools.
    Memory,
    /// Makes or destroys arrays, textures or surfaces.
    Image,
    /// Copies or fills memory.
    Transfer,
    /// Orders work: streams, events, synchronisation.
    Order,
    /// Builds or changes graphs, or captures a stream into one.
    Graph,
    /// Sets the current device, or attributes of devices and functions.
    Context,
    /// Only returns information: neither recorded nor replayed.
    Query,
    /// Recorded, but cannot be replayed.
    Unsupported,
}

impl Group {
    /// Word for the group in reports.
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

/// An argument of a captured call.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    name: u16,
    name_len: u8,
    /// Offset in the argument struct, in bytes.
    pub offset: u16,
    /// Size in the argument struct, in bytes.
    pub size: u16,
    /// Treatment of the argument in a replay.
    pub role: Role,
}

impl Argument {
    /// Name of the argument in the function's declaration.
    pub fn name(&self) -> &'static str {
        text(self.name, self.name_len)
    }

    /// Value of the argument in an argument struct, zero-extended, of a longer argument the first eight bytes; 0
    /// where the struct is too short.
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

    /// Stores the lowest bytes of `value` as the argument in an argument struct. Does nothing where the struct is too
    /// short.
    pub fn put(&self, arguments: &mut [u8], value: u64) {
        let start = usize::from(self.offset);
        let len = usize::from(self.size).min(8);
        if let Some(place) = arguments.get_mut(start..start + len) {
            place.copy_from_slice(&value.to_le_bytes()[..len]);
        }
    }
}

/// A function of the HIP runtime whose calls are captured.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    name: u16,
    name_len: u8,
    /// Subject of the function, by which a replay treats calls alike.
    pub group: Group,
    /// Size of the function's argument struct, in bytes.
    pub size: u16,
    first: u16,
    count: u8,
}

impl Operation {
    /// Name of the function, such as `hipMalloc`.
    pub fn name(&self) -> &'static str {
        text(self.name, self.name_len)
    }

    /// Arguments of the function, in the order of its declaration.
    #[inline]
    pub fn arguments(&self) -> &'static [Argument] {
        let first = usize::from(self.first);
        ARGUMENTS
            .get(first..first + usize::from(self.count))
            .unwrap_or_default()
    }

    /// The argument with this name; `None` when the function has none.
    pub fn argument(&self, name: &str) -> Option<&'static Argument> {
        self.arguments().iter().find(|one| one.name() == name)
    }

    /// The first argument with this role; `None` when the function has none.
    #[inline]
    pub fn with_role(&self, role: Role) -> Option<&'static Argument> {
        self.arguments().iter().find(|one| one.role == role)
    }
}

include!(concat!(env!("OUT_DIR"), "/capture_calls.rs"));

/// Numbers of the functions in [`operations`], by name.
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

/// All functions; the index is the number in [`CaptureCall::operation`].
#[inline]
pub fn operations() -> &'static [Operation] {
    &OPERATIONS
}

/// The function with this number; `None` for a number of a newer collector.
#[inline]
pub fn operation(number: u32) -> Option<&'static Operation> {
    OPERATIONS.get(number as usize)
}

/// A captured call. Tail: the argument struct of the call, padded, then items ([`Items`]).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CaptureCall {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Number of the function: see [`operation`].
    pub operation: u32,
    /// Properties of the call: bits of [`call_flag`].
    pub flags: u32,
    /// Position of the call's begin in the order of all begins and ends of calls of the process.
    pub entry: u64,
    /// Position of the call's end in the order of all begins and ends of calls of the process.
    pub exit: u64,
    /// Time at which the call began, ns of `CLOCK_BOOTTIME`.
    pub start: u64,
    /// Time at which the call returned, ns of `CLOCK_BOOTTIME`.
    pub end: u64,
    /// The `hipError_t` that the call returned.
    pub result: i32,
    /// Number of the thread's current HIP device.
    pub device: i32,
}

/// Bits of [`CaptureCall::flags`].
pub mod call_flag {
    /// A part of the data for a replay could not be captured. An item [`super::item::MISSING`] states which.
    pub const INCOMPLETE: u32 = 1;
    /// The call was made while its stream was being captured into a graph.
    pub const IN_STREAM_CAPTURE: u32 = 2;
    /// The call mapped physical memory that had been mapped at another address before. A replay has the old content
    /// only if it maps the memory there as well.
    pub const MAPPED_AGAIN: u32 = 4;
}

/// A code object was loaded onto a device. Tail: one item [`item::DATA`] with its ELF image.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CaptureCode {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// The provider's id of the code object.
    pub id: u64,
    /// The provider's handle of the agent.
    pub agent: u64,
    /// Lowest address of the loaded code object in device memory.
    pub load_base: u64,
    /// Size in device memory, in bytes.
    pub load_size: u64,
    /// Position in the order of all begins and ends of calls of the process.
    pub entry: u64,
}

/// A marker that the program set between captured calls. Tail: the message.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CaptureMarker {
    /// Head of the record. `aux`: one of the values of [`marker`].
    pub header: RecordHeader,
    /// Position in the order of all begins and ends of calls of the process.
    pub entry: u64,
    /// Id of the range that begins or ends; 0 for other markers.
    pub range: u64,
    /// Length of the message in the tail, in bytes.
    pub text_len: u64,
}

/// Values of `aux` in a [`CaptureMarker`].
pub mod marker {
    /// The program resumes recording (`roctxProfilerResume`).
    pub const RESUME: u16 = 1;
    /// The program pauses recording (`roctxProfilerPause`).
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
    /// Kind of the payload: one of the values of [`item`].
    pub kind: u16,
    /// Index of the argument that the item belongs to; [`NO_ARGUMENT`] when it belongs to none.
    pub argument: u16,
    /// Length of the payload in bytes, without padding.
    pub len: u32,
}

/// [`ItemHeader::argument`] of an item that belongs to no argument.
pub const NO_ARGUMENT: u16 = u16::MAX;

/// Values of [`ItemHeader::kind`].
pub mod item {
    /// Values that the call stored through the argument: handles and addresses (eight bytes each), structs, nodes.
    pub const OUT: u16 = 1;
    /// Values that the call read through the argument: structs, arrays, texts.
    pub const IN: u16 = 2;
    /// Bytes of host memory: a [`super::DataHeader`], then the bytes if they are stored in the record.
    pub const DATA: u16 = 3;
    /// The launched kernel: the id of its code object (eight bytes; 0 when it is not known), then its name.
    pub const KERNEL: u16 = 4;
    /// The argument block of the launched kernel, without hidden arguments.
    pub const KERNEL_ARGUMENTS: u16 = 5;
    /// Ids of the code objects that were loaded during the call, eight bytes each.
    pub const CODE: u16 = 6;
    /// Memory that the call allocated: a [`super::AllocationItem`].
    pub const ALLOCATION: u16 = 7;
    /// Name of the device variable that the call uses; for an allocation, of the managed variable whose memory it is.
    pub const SYMBOL: u16 = 8;
    /// Data that could not be captured: a text for the user.
    pub const MISSING: u16 = 9;
    /// Content of a device variable before the call, in excerpts of captures: a [`super::VariableItem`], then the
    /// name.
    pub const VARIABLE: u16 = 10;
    /// The host changed memory that an asynchronous copy reads, after the call of the copy and before the program had
    /// waited for it. Eight bytes: [`CaptureCall::entry`](super::CaptureCall) of the copy.
    pub const CHANGED: u16 = 11;
    /// Id of the code object that has the device variable: eight bytes.
    pub const SYMBOL_CODE: u16 = 12;
    /// A launch may read host-visible memory that was not captured, because only device memory points to it. Eight
    /// bytes: the first address of one such allocation.
    pub const BEHIND_DEVICE: u16 = 13;
    /// The content of a device variable ([`VARIABLE`]) when the call and all work before it are complete: a result.
    pub const VARIABLE_RESULT: u16 = 14;
}

/// Values of [`DataHeader::purpose`]: what a call does with host memory.
pub mod data_use {
    /// The call reads the data.
    pub const SOURCE: u32 = 0;
    /// Content of host-visible memory before the call, which device work that the call submits may read.
    pub const UPDATE: u32 = 1;
    /// The call, a copy, wrote the data. They are complete when the call that has the item returned.
    pub const OUTPUT: u32 = 2;
    /// ELF image of a code object.
    pub const CODE: u32 = 3;
    /// Content of device memory before the call, in excerpts of captures.
    pub const MEMORY: u32 = 4;
    /// Content of device memory when the call and all work before it are complete, in excerpts of captures.
    pub const RESULT: u32 = 5;
    /// Content that the device read in an earlier copy. It replaces the data of that call.
    pub const DEVICE_READ: u32 = 6;
    /// Content of an array before the call, in excerpts of captures: rows without gaps.
    /// [`super::DataHeader::address`] is the handle of the array.
    pub const ARRAY: u32 = 7;
    /// Content of an array when the call and all work before it are complete, in excerpts of captures.
    pub const ARRAY_RESULT: u32 = 8;
}

/// Values of [`DataHeader::offset`] for data that are not in the staging file.
pub mod data_place {
    /// The data are in the record, behind the header.
    pub const INLINE: u64 = u64::MAX;
    /// The data are nowhere: the capture is made without data.
    pub const SKIPPED: u64 = u64::MAX - 1;
}

/// Describes bytes of host memory: a range, or the rows of a rectangle or box.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DataHeader {
    /// Address of the first byte in the program's memory.
    pub address: u64,
    /// Number of stored bytes. Rows are stored without gaps.
    pub size: u64,
    /// Offset of the bytes in the staging file, or one of the values of [`data_place`].
    pub offset: u64,
    /// [`CaptureCall::entry`] of the copy that wrote the bytes; 0 when it is the call that has this item.
    pub copy: u64,
    /// Distance between the starts of two rows in the program's memory, in bytes; 0 for a single row.
    pub pitch: u64,
    /// Length of a row in bytes.
    pub width: u64,
    /// Number of rows from the start of one slice to the start of the next, in the program's memory.
    pub slice_rows: u64,
    /// Number of stored rows of each slice.
    pub rows: u64,
    /// Use of the data in the call: one of the values of [`data_use`].
    pub purpose: u32,
    /// Not used: 0.
    pub reserved: u32,
}

/// Describes memory that a call allocated.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AllocationItem {
    /// First address.
    pub base: u64,
    /// Number of bytes that the program requested.
    pub size: u64,
    /// Kind of the memory: one of the values of [`memory_kind`].
    pub kind: u32,
    /// Flags that the program gave to the call.
    pub flags: u32,
}

/// Refers to the content of a device variable, by numbers of the tables of the capture file.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct VariableItem {
    /// Number of the code object that has the variable.
    pub code: i64,
    /// Number of the data with the content.
    pub data: i64,
    /// Number of the device that the variable is on.
    pub device: i64,
}

/// Values of [`AllocationItem::kind`].
pub mod memory_kind {
    /// Device memory, `hipMalloc` and the like.
    pub const DEVICE: u32 = 0;
    /// Device memory that is allocated from a pool in the order of a stream, `hipMallocAsync` and the like.
    pub const POOLED: u32 = 1;
    /// Pinned host memory that the runtime allocated, `hipHostMalloc` and the like.
    pub const HOST: u32 = 2;
    /// Host memory of the program that was pinned, `hipHostRegister`.
    pub const REGISTERED: u32 = 3;
    /// Managed memory, `hipMallocManaged` and the like.
    pub const MANAGED: u32 = 4;

    /// Whether the host can read and write memory of this kind.
    pub const fn is_host_visible(kind: u32) -> bool {
        matches!(kind, HOST | REGISTERED | MANAGED)
    }
}

/// An item in the tail of a record.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Kind of the payload: one of the values of [`item`].
    pub kind: u16,
    /// Index of the argument that the item belongs to; [`NO_ARGUMENT`] when it belongs to none.
    pub argument: u16,
    /// The payload, without padding.
    pub payload: &'a [u8],
}

impl<'a> Item<'a> {
    /// The payload of an item of kind [`item::DATA`]: the header and the bytes behind it. `None` when it is too
    /// short.
    pub fn data(&self) -> Option<(DataHeader, &'a [u8])> {
        DataHeader::read_from_prefix(self.payload).ok()
    }

    /// The payload of an item of kind [`item::VARIABLE`] or [`item::VARIABLE_RESULT`]: the struct and the name. `None` when it is too short.
    pub fn variable(&self) -> Option<(VariableItem, &'a [u8])> {
        VariableItem::read_from_prefix(self.payload).ok()
    }

    /// The first eight bytes of the payload as a number; `None` when it is shorter.
    pub fn word(&self) -> Option<u64> {
        Some(u64::read_from_prefix(self.payload).ok()?.0)
    }
}

/// Appends an item, padded to a multiple of eight bytes, to a tail.
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

/// Iterates over the items in the tail of a record, after the argument struct. Ends at the first item that is cut
/// off.
#[derive(Debug, Clone, Copy)]
pub struct Items<'a>(
    /// Bytes that have not been read yet.
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
    fn capture_operation_is_found_by_number_with_its_arguments() {
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
    fn items_end_at_the_first_item_that_is_cut_off() {
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
