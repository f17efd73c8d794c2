//! Facts that captured stacks refer to, as reported to the recorder.
//!
//! Ids are numbers from 1 upwards, per kind and per process; 0 stands for "none". In the child of a fork they start again.

use crate::copy;

/// A loaded object: the program, a shared library, the vDSO.
#[derive(Clone, Copy, Debug)]
pub struct Module<'a> {
    /// Id of the object. An object that is loaded again after it was unloaded gets another one.
    pub id: u32,
    /// Path of the object in the loader's list (the program's own path is resolved); bytes, not necessarily UTF-8.
    pub path: &'a [u8],
    /// GNU build id of the object, empty if it has none.
    pub build_id: &'a [u8],
    /// Load bias: run-time address minus address in the file (0 for a program at a fixed address).
    pub bias: u64,
    /// First address that is mapped.
    pub start: u64,
    /// Address after the last that is mapped. A module that is reported later and overlaps this range has replaced it.
    pub end: u64,
}

/// A Python code object, by content.
#[derive(Clone, Copy, Debug)]
pub struct PythonCode<'a> {
    /// Id of the code object.
    pub id: u32,
    /// File name of the code (`co_filename`), UTF-8.
    pub file: &'a [u8],
    /// Name of the code (`co_name`), UTF-8.
    pub name: &'a [u8],
    /// `co_qualname`, UTF-8; empty before Python 3.11.
    pub qualname: &'a [u8],
    /// First line of the code (`co_firstlineno`).
    pub first_line: i32,
    /// Version of the interpreter as in `PY_VERSION_HEX`; decides how the line table is encoded.
    pub version: u32,
    /// Bytes of the line table (`co_lnotab` before 3.10, `co_linetable` from then on).
    pub line_table: &'a [u8],
}

/// An ELF object in memory that the program registered with debuggers, as the description of code that is in no file.
#[derive(Clone, Copy, Debug)]
pub struct JitObject {
    /// Id of the object. An object that is registered in the place of another gets another one.
    pub id: u32,
    /// `e_type` of its header.
    pub kind: u16,
    /// Address and length of its section headers, of its symbols and of their names.
    pub(crate) parts: [(u64, u64); 3],
}

impl JitObject {
    /// Bytes of its section headers, of its symbols and of their names.
    pub fn lens(&self) -> [u32; 3] {
        self.parts.map(|(_, len)| len as u32)
    }

    /// Copies the headers, symbols and names, one behind the other. Bytes that are not there any more read as zeros.
    ///
    /// # Panics
    ///
    /// If there is less room than [`JitObject::lens`] return.
    pub fn copy_to(&self, mut bytes: &mut [u8]) {
        for (address, len) in self.parts {
            let (part, rest) = bytes.split_at_mut(len as usize);
            if !copy::checked(address, part) {
                part.fill(0);
            }
            bytes = rest;
        }
    }
}

/// Kind of a node of the call tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LocationKind {
    /// Code of a loaded object: the program, a library or the vDSO. A copy of such code that is known as one, a stub of
    /// Python's `-X perf`, is at the place that it is a copy of.
    Native = 1,
    /// Code of Python, which the interpreter runs.
    Python = 2,
    /// Code in executable memory that belongs to no loaded object.
    Jit = 3,
    /// The traced call itself.
    Api = 4,
    /// A TorchScript frame.
    Script = 5,
    /// Source of generated Python code.
    Generated = 6,
    /// Marker: the frames further in could not be placed among the frames further out.
    Unplaced = 7,
    /// Marker: the walk ended here, before the outermost frame.
    Truncated = 8,
    /// Marker: frames were left out here because of [`Options::depth`](crate::Options::depth).
    Gap = 9,
    /// Code of a loaded object, whose frame was found by following the frame pointer through code without unwind
    /// information.
    Guessed = 10,
}

/// A place in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Id of the location.
    pub id: u32,
    /// Kind of code at the location.
    pub kind: LocationKind,
    /// The [`Module`] of a native or guessed location, else 0.
    pub module: u32,
    /// The [`PythonCode`] of a Python location, else 0.
    pub code: u32,
    /// The [`JitObject`] that describes the code of a JIT location; 0 for others, and where none is registered.
    pub object: u32,
    /// Native: the address as in the file (run-time address minus [`Module::bias`]). JIT: the run-time address. In both
    /// it is a byte of the instruction that was being executed: the return address minus one, or the interrupted
    /// instruction below a signal frame. Python: `lasti` in bytes. Markers: 0.
    pub offset: u64,
}

/// A node of the call tree: a location, and the node of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Id of the node; that of an innermost frame is the id of the stack.
    pub id: u32,
    /// The caller's node, 0 for an outermost frame.
    pub parent: u32,
    /// Id of the [`Location`].
    pub location: u32,
    /// Number of nodes between the node and the root: 0 for an outermost frame.
    pub depth: u32,
}

/// Receives the facts to which captured stacks refer.
///
/// Each fact is reported before an id that refers to it is returned to any caller on any thread, by the thread that found it
/// first. When two threads find the same fact at the same moment both report it, under two ids; one of the ids is never
/// referred to.
///
/// Every function returns whether the fact was stored. If it was not, nothing refers to it: the capture ends without a
/// stack and with [`flags::LOST`](crate::flags::LOST), and the fact is reported again when it is seen again.
pub trait Sink {
    /// A module whose code is on a stack.
    fn module(&mut self, module: &Module<'_>) -> bool;
    /// A Python code object that is on a stack.
    fn code(&mut self, code: &PythonCode<'_>) -> bool;
    /// An object that describes code on a stack.
    fn object(&mut self, object: &JitObject) -> bool;
    /// A location; its module, code or object has been reported.
    fn location(&mut self, location: &Location) -> bool;
    /// A node; its parent and location have been reported.
    fn node(&mut self, node: &Node) -> bool;
}
