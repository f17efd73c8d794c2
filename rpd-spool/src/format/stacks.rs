//! Call stacks: the reference that a record has, and the call tree that it refers to.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Stack of a call: 8 bytes at the start of the tail of [`super::ApiCall`] and [`super::RangeBegin`] with
/// [`super::api_flag::STACK`], and all of the tail of an [`super::Allocation`] that has one.
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
    /// Origin of generated Python code.
    pub const INDUCTOR: u16 = 6;
    /// The frames further in could not be placed among the frames further out.
    pub const UNPLACED_MARKER: u16 = 7;
    /// The walk ended here, before the outermost frame.
    pub const TRUNCATED_MARKER: u16 = 8;
    /// Frames are left out here.
    pub const GAP_MARKER: u16 = 9;
}

/// A file with code that is mapped into the process. Tail: path, build id. A later record whose addresses overlap it
/// replaces it.
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
    /// Not used; 0.
    pub reserved: u32,
    /// Address minus address in the file.
    pub base: u64,
    /// First mapped address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Time at which it was first seen, `CLOCK_BOOTTIME` ns.
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
    /// Not used; 0.
    pub reserved: u32,
}

/// An ELF object that the program registered with debuggers (GDB's interface for code that is made at run time). Tail: its
/// section headers, its symbols and their names, as they are in the object.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackObject {
    /// Record head. aux: `e_type` of the object.
    pub header: RecordHeader,
    /// Number in its process, from 1. What is registered in its place later gets another.
    pub id: u32,
    /// Bytes of section headers in the tail.
    pub sections_len: u32,
    /// Bytes of symbols in the tail.
    pub symbols_len: u32,
    /// Bytes of names in the tail.
    pub names_len: u32,
}

/// A place in code.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StackLocation {
    /// Record head. aux: [`location_kind`].
    pub header: RecordHeader,
    /// Number in its process, from 1.
    pub id: u32,
    /// [`StackModule::id`], [`StackCode::id`] or, of JIT code, [`StackObject::id`]; 0 when there is none.
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
    /// Number of frames between this one and the root.
    pub depth: u32,
}

const _: () = {
    assert!(size_of::<StackRef>() == 8);
    assert!(size_of::<StackNode>() == 24);
};

/// Sources of lines of a generated Python file, registered by the program through the Python package `rpd`. Tail: the
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
