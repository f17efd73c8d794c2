//! Data of the argument iterators: names and types of arguments, and their values as text.

use core::ffi::CStr;

/// Format of the value behind an argument's pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Pointee without a type.
    Void,
    /// Pointee that is code, or whose type the SDK has no definition of.
    Opaque,
    /// `char`, text behind a pointer.
    Text,
    /// `bool`.
    Bool,
    /// Integer or floating-point number; the variant names its kind and size in bits.
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
    /// A struct that is neither shown field by field nor a handle.
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
