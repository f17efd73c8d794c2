//! Arguments of calls: layouts from the argument table, and the texts that files carry.
//!
//! The collector copies the bytes of an argument struct; which offsets hold text to be copied too, and what the bytes
//! mean, is looked up here by kind and operation name, in tables that the build script makes from `data/`.

mod text;

pub use text::{ValueType, for_each_argument};

use crate::domain::Kind;

/// Conversion of an argument's bytes to text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Unsigned integer, decimal.
    Unsigned,
    /// Signed integer, decimal.
    Signed,
    /// `float` or `double`.
    Float,
    /// `true` or `false`.
    Bool,
    /// Enumerator: its short name where the table has one for its type, else decimal.
    Enum,
    /// Pointer to an object: `0x..`, `(null)`.
    Pointer,
    /// Pointer whose target has no known layout (`void*`, forward-declared structs): `0x..`, and `0` for null.
    Opaque,
    /// Pointer to a function: `0x..`, `(null)`.
    Function,
    /// Text that the collector copied: as it is, `(null)`.
    Text,
    /// Three 32-bit numbers: `{z=.., y=.., x=..}`.
    Dim3,
    /// Three sizes: `{depth=.., height=.., width=..}`.
    Extent,
    /// Pitched pointer: `{ysize=.., xsize=.., pitch=.., ptr=..}`.
    Pitched,
    /// Handle: `handle=..`.
    Handle,
    /// Handle: `{handle=..}`.
    BracedHandle,
    /// Control directives of the finalizer.
    Directives,
    /// Opaque bytes, hexadecimal.
    Bytes,
}

/// An argument of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Name of the parameter in the function's declaration.
    pub name: &'static str,
    /// Type as the header declares it.
    pub declared: &'static str,
    /// Type with typedefs resolved, as a C++ demangler spells it.
    pub resolved: &'static str,
    /// The resolved type as C++ compilers encode it in names.
    pub mangled: &'static str,
    /// Offset in the argument struct, bytes.
    pub offset: u32,
    /// Size of the value in bytes.
    pub size: u32,
    /// Conversion of the value to text.
    pub form: Form,
    /// The value that the call stores where the argument points; `None` unless it is an output.
    pub output: Option<Pointee>,
}

/// The value that an output argument points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointee {
    /// Type as the header declares it.
    pub declared: &'static str,
    /// Type with typedefs resolved, as a C++ demangler spells it.
    pub resolved: &'static str,
    /// The resolved type as C++ compilers encode it in names.
    pub mangled: &'static str,
    /// Size of the value in bytes.
    pub size: u32,
    /// Conversion of the value to text.
    pub form: Form,
}

/// The argument struct of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgLayout {
    /// Bytes of the struct, 0 for a call without arguments.
    pub size: u32,
    /// The arguments in order.
    pub arguments: &'static [Argument],
}

/// The layout of the argument struct of an operation; `None` for operations that are not in the table (a newer
/// runtime's), whose arguments are recorded as the provider's own texts.
pub fn layout(kind: Kind, operation: &str) -> Option<&'static ArgLayout> {
    let (_, operations) = LAYOUTS
        .iter()
        .find(|(name, _)| *name == kind.provider_name())?;
    operations
        .binary_search_by_key(&operation, |(name, _)| name)
        .ok()
        .map(|index| &operations[index].1)
}

include!(concat!(env!("OUT_DIR"), "/layouts.rs"));
include!(concat!(env!("OUT_DIR"), "/enumerators.rs"));

/// The short name of an enumerator of type `declared`, which has the form `enum`; `Unknown` for a value that the type lacks.
fn enumerator(declared: &str, value: i32) -> &'static str {
    let named = ENUMERATORS.iter().find(|(name, _)| *name == declared);
    let found = named.and_then(|(_, names)| names.iter().find(|(other, _)| *other == value));
    found.map_or("Unknown", |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_table_has_every_call_of_the_recorded_kinds() {
        for expected in rpd_data::layouts().expect("the tables") {
            let Some(kind) = Kind::from_name(expected.kind) else {
                assert_eq!(expected.kind, "MARKER_CORE_API");
                continue;
            };
            let found = layout(kind, expected.operation);
            let found = found.unwrap_or_else(|| panic!("{expected:?} has no layout"));
            assert_eq!(found.size, expected.size);
            let names = found.arguments.iter().map(|argument| argument.name);
            let expected = expected.arguments.iter().map(|argument| argument.name);
            assert!(names.eq(expected), "{found:?}");
        }
        assert!(layout(Kind::HipRuntime, "hipFromTheFuture").is_none());
    }
}
