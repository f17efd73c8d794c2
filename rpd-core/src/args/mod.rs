//! Arguments of calls: layouts from the argument table, and the texts that files carry.
//!
//! The collector copies the bytes of an argument struct; which offsets hold text to be copied too, and what the bytes
//! mean, is looked up here by kind and operation name. Three tables under `data/` hold the facts: which arguments a
//! call has, what each C type is (size, alignment, form, resolved C++ name), and the short names of enumerators.

mod text;

pub use text::for_each_argument;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::domain::Kind;

/// How the bytes of an argument become text.
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

impl Form {
    fn from_name(name: &str) -> Option<Form> {
        Some(match name {
            "uint" => Form::Unsigned,
            "int" => Form::Signed,
            "float" => Form::Float,
            "bool" => Form::Bool,
            "enum" => Form::Enum,
            "pointer" => Form::Pointer,
            "opaque" => Form::Opaque,
            "function" => Form::Function,
            "text" => Form::Text,
            "dim3" => Form::Dim3,
            "extent" => Form::Extent,
            "pitched" => Form::Pitched,
            "handle" => Form::Handle,
            "braced" => Form::BracedHandle,
            "directives" => Form::Directives,
            "bytes" => Form::Bytes,
            _ => return None,
        })
    }
}

/// One argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Parameter name.
    pub name: &'static str,
    /// Type as the header declares it.
    pub declared: &'static str,
    /// Type with typedefs resolved, as a C++ demangler spells it.
    pub resolved: &'static str,
    /// Offset in the argument struct, bytes.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// How it becomes text.
    pub form: Form,
}

/// The argument struct of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArgLayout {
    /// Bytes of the struct, 0 for a call without arguments.
    pub size: u32,
    /// The arguments in order.
    pub arguments: Vec<Argument>,
}

impl ArgLayout {
    /// Offsets in the struct of the `char` pointers whose text the collector copies, in argument order: inputs only.
    pub fn texts(&self) -> impl Iterator<Item = u32> + '_ {
        self.arguments
            .iter()
            .filter(|argument| argument.form == Form::Text)
            .map(|argument| argument.offset)
    }
}

/// The layout of the argument struct of an operation; `None` for operations that the table does not know (a newer
/// runtime's), whose arguments are recorded as the provider's own texts.
pub fn layout(kind: Kind, operation: &str) -> Option<&'static ArgLayout> {
    layouts().get(&kind)?.get(operation)
}

type Layouts = HashMap<Kind, HashMap<&'static str, ArgLayout>>;

fn layouts() -> &'static Layouts {
    static LAYOUTS: OnceLock<Layouts> = OnceLock::new();
    LAYOUTS.get_or_init(read_layouts)
}

const OPERATIONS: &str = include_str!("../../../data/operations.csv");
const ARGUMENTS: [&str; 2] = [
    include_str!("../../../data/api-args.csv"),
    include_str!("../../../data/api-args-media.csv"),
];
const TYPES: &str = include_str!("../../../data/arg-types.csv");
const ENUMS: &str = include_str!("../../../data/arg-enums.csv");

struct Type {
    size: u32,
    align: u32,
    form: Form,
    resolved: &'static str,
}

fn read_layouts() -> Layouts {
    let types: HashMap<&str, Type> = rows(TYPES)
        .filter_map(|row| {
            let [name, size, align, form, resolved] = row;
            Some((
                name,
                Type {
                    size: size.parse().ok()?,
                    align: align.parse().ok()?,
                    form: Form::from_name(form)?,
                    resolved,
                },
            ))
        })
        .collect();

    let mut layouts = Layouts::new();
    // Calls without arguments occur in the operation table only.
    for [domain, _, operation] in rows(OPERATIONS) {
        if let Some(kind) = Kind::from_name(domain).filter(|kind| kind.is_api()) {
            layouts
                .entry(kind)
                .or_default()
                .insert(operation, ArgLayout::default());
        }
    }
    for [domain, operation, _, name, declared] in ARGUMENTS.into_iter().flat_map(rows) {
        let Some(kind) = Kind::from_name(domain) else {
            continue;
        };
        let (Some(ty), Some(layout)) = (
            types.get(declared),
            layouts
                .get_mut(&kind)
                .and_then(|operations| operations.get_mut(operation)),
        ) else {
            // An unknown type leaves every later offset unknown: the operation counts as unknown.
            if let Some(operations) = layouts.get_mut(&kind) {
                operations.remove(operation);
            }
            continue;
        };
        let offset = layout
            .arguments
            .last()
            .map_or(0, |last| last.offset + last.size)
            .next_multiple_of(ty.align);
        // `char*` is where a call writes to, and its text is not there yet when the call begins. This one is read.
        let form = match ty.form {
            Form::Text
                if declared == "const char*"
                    || (operation == "__hipRegisterFunction" && name == "deviceFunction") =>
            {
                Form::Text
            }
            Form::Text => Form::Pointer,
            other => other,
        };
        layout.arguments.push(Argument {
            name,
            declared,
            resolved: ty.resolved,
            offset,
            size: ty.size,
            form,
        });
    }
    for layout in layouts.values_mut().flat_map(HashMap::values_mut) {
        let align = layout
            .arguments
            .iter()
            .map(|argument| types[argument.declared].align)
            .max()
            .unwrap_or(1);
        layout.size = layout
            .arguments
            .last()
            .map_or(0, |last| last.offset + last.size)
            .next_multiple_of(align);
    }
    layouts
}

/// The short name of an enumerator of type `declared`. `Some("Unknown")` for a value that a named type lacks, `None`
/// for types whose values are written as numbers.
fn enumerator(declared: &str, value: i32) -> Option<&'static str> {
    static NAMES: OnceLock<HashMap<&'static str, HashMap<i32, &'static str>>> = OnceLock::new();
    let names = NAMES
        .get_or_init(|| {
            let mut names: HashMap<_, HashMap<_, _>> = HashMap::new();
            for [declared, value, text] in rows(ENUMS) {
                if let Ok(value) = value.parse() {
                    names.entry(declared).or_default().insert(value, text);
                }
            }
            names
        })
        .get(declared)?;
    Some(names.get(&value).copied().unwrap_or("Unknown"))
}

/// The rows of one of our tables, header left out. Fields with commas are quoted; quotes never occur inside.
fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.lines().skip(1).filter_map(|line| {
        let mut fields = [""; N];
        let mut rest = line;
        for field in &mut fields {
            if let Some(quoted) = rest.strip_prefix('"') {
                let (text, after) = quoted.split_once('"')?;
                *field = text;
                rest = after.strip_prefix(',').unwrap_or(after);
            } else {
                let (text, after) = rest.split_once(',').unwrap_or((rest, ""));
                *field = text;
                rest = after;
            }
        }
        rest.is_empty().then_some(fields)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_tables_is_understood() {
        let mut arguments = 0;
        for [domain, operation, index, name, declared] in ARGUMENTS.into_iter().flat_map(rows) {
            let Some(kind) = Kind::from_name(domain) else {
                assert_eq!(domain, "MARKER_CORE_API");
                continue;
            };
            let layout = layout(kind, operation)
                .unwrap_or_else(|| panic!("{domain} {operation} ({declared}) has no layout"));
            let argument = &layout.arguments[index.parse::<usize>().expect("a number")];
            assert_eq!((argument.name, argument.declared), (name, declared));
            arguments += 1;
        }
        assert!(arguments > 2400, "{arguments}");
        let lines = TYPES.lines().count() - 1;
        assert_eq!(rows::<5>(TYPES).count(), lines);
    }

    #[test]
    fn offsets_follow_the_c_rules() {
        let launch = layout(Kind::HipRuntime, "hipLaunchKernel").expect("in the table");
        let offsets: Vec<u32> = launch.arguments.iter().map(|a| a.offset).collect();
        assert_eq!(offsets, [0, 8, 20, 32, 40, 48]);
        assert_eq!(launch.size, 56);
        let init = layout(Kind::Rccl, "ncclCommInitRank").expect("in the table");
        let offsets: Vec<u32> = init.arguments.iter().map(|a| a.offset).collect();
        assert_eq!(offsets, [0, 8, 12, 140]);
        assert_eq!(init.size, 144);
        let none = layout(Kind::HipRuntime, "hipDeviceSynchronize").expect("in the table");
        assert_eq!((none.size, none.arguments.len()), (0, 0));
        assert!(layout(Kind::HipRuntime, "hipFromTheFuture").is_none());
    }

    #[test]
    fn argument_structs_fit_the_unions() {
        for (kind, operations) in layouts() {
            let union = match kind {
                Kind::HipRuntime | Kind::HipCompiler => 88,
                Kind::HsaCore | Kind::HsaAmdExt | Kind::HsaImageExt | Kind::HsaFinalizeExt => 192,
                Kind::Rccl => 152,
                Kind::Rocdecode => 40,
                Kind::Rocjpeg => 48,
                _ => 16,
            };
            let largest = operations.values().map(|layout| layout.size).max();
            assert!(largest <= Some(union), "{kind:?}: {largest:?}");
        }
    }

    #[test]
    fn texts_are_inputs_only() {
        let texts = |kind, operation| -> Vec<u32> {
            layout(kind, operation)
                .expect("in the table")
                .texts()
                .collect()
        };
        assert_eq!(texts(Kind::HipCompiler, "__hipRegisterFunction"), [16, 24]);
        assert_eq!(texts(Kind::HipRuntime, "hipModuleGetFunction"), [16]);
        assert!(texts(Kind::HipRuntime, "hipDeviceGetName").is_empty());
    }
}
