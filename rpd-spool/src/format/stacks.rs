//! Records of call stacks: the reference that another record holds, and the call tree that it refers to.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Reference to the call stack of a call: at the start of the tail of an [`super::CallRecord`] or [`super::RangeBegin`]
/// with [`super::call_flag::STACK`], and the whole tail of an [`super::Allocation`] that has a stack.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct StackRef {
    /// Id of the innermost frame's node: [`StackNode::id`]; 0 when no stack was recorded.
    pub stack: u32,
    /// Properties of the stack: bits of [`stack_flag`].
    pub flags: u32,
}

/// Bits of [`StackRef::flags`]. The lower 16 describe what the stack walk found.
pub mod stack_flag {
    /// The stack walk ended before the outermost frame.
    pub const TRUNCATED: u32 = 1;
    /// The thread was on a stack that is not its own: that of a fiber or of a signal handler.
    pub const FOREIGN: u32 = 2;
    /// Frames in the middle were left out, because there are more than the limit.
    pub const GAP: u32 = 4;
    /// The stack has Python frames that could not be placed among the native frames.
    pub const UNPLACED: u32 = 8;
    /// The call has no stack, because a part of it could not be stored.
    pub const LOST: u32 = 16;
    /// The thread executes Python code, but its Python frames could not be read.
    pub const PYTHON_UNREADABLE: u32 = 32;
    /// Frames were found by following the frame pointer through code without unwind information: these have locations of
    /// the kind [`location_kind::GUESSED`](super::location_kind::GUESSED), and some may be missing before them.
    pub const GUESSED: u32 = 64;
    /// Only one call in several has a stack, and the flagged call is one of them.
    pub const SAMPLED: u32 = 1 << 16;
}

/// Values of `aux` in a [`StackLocation`]: what code it is in.
pub mod location_kind {
    /// A machine instruction in a mapped file.
    pub const NATIVE: u16 = 1;
    /// An instruction of a Python code object.
    pub const PYTHON: u16 = 2;
    /// A machine instruction in generated code, which no file contains.
    pub const JIT: u16 = 3;
    /// The entry of a traced function.
    pub const API: u16 = 4;
    /// A frame of TorchScript.
    pub const SCRIPT: u16 = 5;
    /// Source from which TorchInductor generated Python code.
    pub const INDUCTOR: u16 = 6;
    /// Not code: the Python frames that follow could not be placed among the native frames.
    pub const UNPLACED_MARKER: u16 = 7;
    /// Not code: the stack walk ended here, before the outermost frame.
    pub const TRUNCATED_MARKER: u16 = 8;
    /// Not code: frames were left out here.
    pub const GAP_MARKER: u16 = 9;
    /// A machine instruction in a mapped file, whose frame was found by following the frame pointer through code without
    /// unwind information.
    pub const GUESSED: u16 = 10;
}

/// A file with machine code that is mapped into the process. Tail: its path and its GNU build id. A later record with
/// overlapping addresses replaces it.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackModule {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id in the process, from 1. A file that is unloaded and loaded again gets a second one.
    pub id: u32,
    /// Length of the path in the tail.
    pub path_len: u32,
    /// Length of the build id in the tail; 0 when the file has none.
    pub build_id_len: u32,
    /// Not used: 0.
    pub reserved: u32,
    /// Address in memory minus address in the ELF file (load bias).
    pub base: u64,
    /// Lowest mapped address of the module.
    pub start: u64,
    /// End of the mapped addresses, exclusive.
    pub end: u64,
    /// Time at which it was first found on a stack.
    pub time: u64,
}

/// A Python code object. Tail: path of its source file, name, qualified name, line table.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackCode {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id in the process, from 1.
    pub id: u32,
    /// Line of the source file at which the function begins.
    pub first_line: i32,
    /// Version of the interpreter in the form of `PY_VERSION_HEX`.
    pub version: u32,
    /// Length of the path in the tail.
    pub file_len: u32,
    /// Length of the name in the tail.
    pub name_len: u32,
    /// Length of the qualified name in the tail; 0 for interpreters that have none.
    pub qualname_len: u32,
    /// Length of the line table in the tail. Its encoding is the interpreter's.
    pub lines_len: u32,
    /// Not used: 0.
    pub reserved: u32,
}

/// An ELF object that the program registered with GDB's JIT interface to describe code that it generated. Tail:
/// section headers, symbol table and string table, as in the object.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackObject {
    /// Head of the record. `aux`: type of the ELF file, `e_type`.
    pub header: RecordHeader,
    /// Id in the process, from 1. An object that is registered later at the same address gets another.
    pub id: u32,
    /// Length of the section headers in the tail.
    pub sections_len: u32,
    /// Length of the symbol table in the tail.
    pub symbols_len: u32,
    /// Length of the string table in the tail.
    pub names_len: u32,
}

/// A code location that nodes of the call tree refer to.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackLocation {
    /// Head of the record. `aux`: one of the values of [`location_kind`].
    pub header: RecordHeader,
    /// Id in the process, from 1.
    pub id: u32,
    /// [`StackModule::id`], [`StackCode::id`] or [`StackObject::id`], by `aux`; 0 when there is none.
    pub owner: u32,
    /// Native: address in the ELF file; without a module, address in memory. Python: offset of the instruction in the
    /// code object.
    pub offset: u64,
}

/// A node of the call tree: a frame with all its callers.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackNode {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id in the process, from 1.
    pub id: u32,
    /// Id of the calling frame's node; 0 for the outermost frame.
    pub parent: u32,
    /// Id of the frame's location: [`StackLocation::id`].
    pub location: u32,
    /// Number of nodes between this one and the outermost frame: 0 for the outermost.
    pub depth: u32,
}

const _: () = {
    assert!(size_of::<StackRef>() == 8);
    assert!(size_of::<StackNode>() == 24);
};

/// Source lines from which lines of a generated Python file were made, as the program told the Python package `rpd`.
/// Tail: name of the generated file; then for each source frame, innermost first, three `u32` (line, length of the
/// function's name, length of the source file's name) and the two names. In the meta stream.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackSource {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// First line of the range in the generated file, from 1.
    pub first: u32,
    /// Last line of the range.
    pub last: u32,
    /// Length of the generated file's name in the tail.
    pub file_len: u32,
    /// Length of the source frames in the tail.
    pub frames_len: u32,
}
