//! Data of the argument iterators: names and types of arguments, and their values as text.

use core::ffi::CStr;

/// Format of the value behind an argument's pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Pointee without a type.
    Void,
    /// Pointee the SDK has no definition of, or code.
    Opaque,
    /// `char`, text behind a pointer.
    Text,
    /// `bool`.
    Bool,
    /// Numbers of the size named.
    U8,
    U16,
    I32,
    U32,
    U64,
    I64,
    F32,
    /// Structs shown field by field.
    Dim3,
    Extent,
    PitchedPtr,
    /// A struct of one 64-bit handle.
    Handle,
    /// An enum, by type name.
    Enum(&'static CStr),
    /// Any other struct.
    Struct,
}

/// An argument of a function.
#[derive(Debug)]
pub(crate) struct Arg {
    /// Name in the argument union.
    pub(crate) name: &'static CStr,
    /// Mangled C++ type.
    pub(crate) mangled: &'static CStr,
    /// Byte offset in the argument union.
    pub(crate) offset: usize,
    /// Levels of indirection.
    pub(crate) pointers: u32,
    /// The type behind the levels of indirection.
    pub(crate) kind: Kind,
}

include!(concat!(env!("OUT_DIR"), "/api_args.rs"));
