//! Layout of a call's arguments in the provider's argument struct.

use std::collections::{BTreeSet, HashMap};

use crate::table::{MalformedRow, rows};
use crate::{Parameter, TYPES, operations, parameters};

macro_rules! forms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Conversion of an argument's bytes to text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Form {
            $($(#[$doc])* $variant,)*
        }

        impl Form {
            /// The form that the table of types calls `name`.
            fn from_name(name: &str) -> Option<Form> {
                match name {
                    $($name => Some(Form::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

forms! {
    /// Unsigned integer, decimal.
    Unsigned = "uint",
    /// Signed integer, decimal. Also an enum whose values are shown as numbers.
    Signed = "int",
    /// `float` or `double`.
    Float = "float",
    /// `true` or `false`.
    Bool = "bool",
    /// Enumerator, whose text `arg-enums.csv` has.
    Enum = "enum",
    /// Pointer to an object.
    Pointer = "pointer",
    /// Pointer whose target has no known layout.
    Opaque = "opaque",
    /// Pointer to a function.
    Function = "function",
    /// Text that the call reads: the collector copies it.
    Text = "text",
    /// Three 32-bit numbers.
    Dim3 = "dim3",
    /// Three sizes.
    Extent = "extent",
    /// Pitched pointer.
    Pitched = "pitched",
    /// Handle.
    Handle = "handle",
    /// Handle in braces.
    BracedHandle = "braced",
    /// Control directives of the finalizer.
    Directives = "directives",
    /// Opaque bytes.
    Bytes = "bytes",
}

/// One argument of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// Parameter name.
    pub name: &'static str,
    /// Type as the header declares it.
    pub declared: &'static str,
    /// Type with typedefs resolved, as a C++ demangler spells it.
    pub resolved: &'static str,
    /// Resolved type as C++ compilers encode it in names.
    pub mangled: &'static str,
    /// Offset in the argument struct, bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Conversion of the value to text.
    pub form: Form,
    /// The value that the call writes to where it points; `None` unless it is an output.
    pub output: Option<Pointee>,
}

/// The value that an output points to, once the call has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointee {
    /// Type as the header declares it.
    pub declared: &'static str,
    /// Type with typedefs resolved, as a C++ demangler spells it.
    pub resolved: &'static str,
    /// Resolved type as C++ compilers encode it in names.
    pub mangled: &'static str,
    /// Size in bytes.
    pub size: u32,
    /// Conversion of the value to text.
    pub form: Form,
}

/// The argument struct of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Kind of the operation.
    pub kind: &'static str,
    /// Name of the operation.
    pub operation: &'static str,
    /// Bytes of the struct, 0 for a call without arguments.
    pub size: u32,
    /// The arguments in order.
    pub arguments: Vec<Argument>,
}

impl Layout {
    /// Offsets in the struct of the `char` pointers whose text the collector copies, in argument order: inputs only.
    pub fn texts(&self) -> impl Iterator<Item = u32> + '_ {
        self.arguments
            .iter()
            .filter(|argument| argument.form == Form::Text)
            .map(|argument| argument.offset)
    }

    /// Offsets in the struct of the pointers to values that the call writes, with the sizes of these values, in
    /// argument order.
    pub fn outputs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.arguments
            .iter()
            .filter_map(|argument| Some((argument.offset, argument.output?.size)))
    }
}

/// C types of results that are 0 when the call has succeeded; only then are outputs written.
const STATUSES: [&str; 7] = [
    "CUresult",
    "cudaError_t",
    "hipError_t",
    "hsa_status_t",
    "ncclResult_t",
    "rocDecStatus",
    "RocJpegStatus",
];

/// The value that an output parameter points to; `None` for parameters that are inputs.
fn pointee(
    parameter: &Parameter,
    types: &HashMap<&'static str, Type>,
    results: &HashMap<(&str, &str), &str>,
) -> Result<Pointee, String> {
    let Parameter {
        kind,
        operation,
        name,
        declared,
        ..
    } = *parameter;
    if !results
        .get(&(kind, operation))
        .is_some_and(|result| STATUSES.contains(result))
    {
        return Err(format!(
            "api-args: `{name}` of {operation} is an output, but the function returns no status that says whether it \
             was written"
        ));
    }
    let missing =
        || format!("arg-types.csv lacks what `{declared}` points to, an output of {operation}");
    let declared = declared.strip_suffix('*').ok_or_else(missing)?;
    let ty = types.get(declared).ok_or_else(missing)?;
    Ok(Pointee {
        declared,
        resolved: ty.resolved,
        mangled: ty.mangled,
        size: ty.size,
        form: match ty.form {
            // The text itself is not recorded.
            Form::Text => Form::Pointer,
            form => form,
        },
    })
}

struct Type {
    size: u32,
    align: u32,
    form: Form,
    resolved: &'static str,
    mangled: &'static str,
}

fn types() -> Result<HashMap<&'static str, Type>, MalformedRow> {
    TYPES
        .into_iter()
        .flat_map(|(table, text)| rows(table, text))
        .map(|row| {
            let row = row?;
            let [name, size, align, form, resolved, mangled] = row.fields;
            let form = Form::from_name(form)
                .ok_or_else(|| row.malformed(format!("`{form}` is not a form")))?;
            let ty = Type {
                size: row.number(size)?,
                align: row.number(align)?,
                form,
                resolved,
                mangled,
            };
            Ok((name, ty))
        })
        .collect()
}

/// The C types with the form [`Form::Enum`].
pub(crate) fn enums() -> Result<BTreeSet<&'static str>, MalformedRow> {
    let types = types()?.into_iter();
    Ok(types
        .filter(|(_, ty)| ty.form == Form::Enum)
        .map(|(name, _)| name)
        .collect())
}

/// The layouts of the calls of all kinds of calls (`*_API`), ordered by kind, then by name.
///
/// # Errors
/// The row that is not understood, or a text that names the argument whose type or operation no table has.
pub fn layouts() -> Result<Vec<Layout>, Box<dyn std::error::Error>> {
    let types = types()?;
    let operations = operations()?;
    let results: HashMap<(&str, &str), &str> = operations
        .iter()
        .map(|operation| ((operation.kind, operation.name), operation.result))
        .collect();
    // Calls without arguments have no parameter below.
    let mut layouts: Vec<Layout> = operations
        .iter()
        .filter(|operation| operation.kind.ends_with("_API"))
        .map(|operation| Layout {
            kind: operation.kind,
            operation: operation.name,
            size: 0,
            arguments: Vec::new(),
        })
        .collect();
    layouts.sort_by_key(|layout| (layout.kind, layout.operation));
    // Versions of a function of CUDA have one name, and the same arguments.
    layouts.dedup_by_key(|layout| (layout.kind, layout.operation));
    for parameter in parameters()? {
        let (kind, operation) = (parameter.kind, parameter.operation);
        let layout = layouts
            .binary_search_by_key(&(kind, operation), |layout| (layout.kind, layout.operation))
            .map_err(|_| format!("api-args: `{operation}` is not an operation of {kind}"))?;
        let layout = &mut layouts[layout];
        let declared = parameter.declared;
        let ty = types
            .get(declared)
            .ok_or_else(|| format!("arg-types.csv lacks `{declared}`, a type of {operation}"))?;
        // `char*` is where a call writes to, and its text is not there yet when the call begins. This one is read.
        let read = declared == "const char*"
            || (operation == "__hipRegisterFunction" && parameter.name == "deviceFunction");
        let output = if parameter.is_output {
            Some(pointee(&parameter, &types, &results)?)
        } else {
            None
        };
        layout.arguments.push(Argument {
            name: parameter.name,
            declared,
            resolved: ty.resolved,
            mangled: ty.mangled,
            // The provider's structs are laid out by the C compiler: each member at a multiple of its alignment.
            offset: end(&layout.arguments).next_multiple_of(ty.align),
            size: ty.size,
            form: match ty.form {
                Form::Text if !read => Form::Pointer,
                form => form,
            },
            output,
        });
    }
    for layout in &mut layouts {
        let aligns = layout.arguments.iter().map(|a| types[a.declared].align);
        layout.size = end(&layout.arguments).next_multiple_of(aligns.max().unwrap_or(1));
    }
    Ok(layouts)
}

/// First byte after the last of `arguments`.
fn end(arguments: &[Argument]) -> u32 {
    arguments.last().map_or(0, |last| last.offset + last.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(kind: &str, operation: &str) -> Layout {
        let layouts = layouts().expect("the tables");
        let mut found = layouts
            .into_iter()
            .filter(|layout| (layout.kind, layout.operation) == (kind, operation));
        found.next().expect("in the table")
    }

    #[test]
    fn layouts_have_an_argument_for_every_parameter() {
        let parameters = parameters().expect("the tables");
        assert!(parameters.len() > 2400, "{}", parameters.len());
        let layouts = layouts().expect("the tables");
        let arguments: usize = layouts.iter().map(|layout| layout.arguments.len()).sum();
        assert_eq!(arguments, parameters.len());
    }

    #[test]
    fn argument_offsets_follow_the_rules_of_c() {
        let launch = layout("HIP_RUNTIME_API", "hipLaunchKernel");
        let offsets: Vec<u32> = launch.arguments.iter().map(|a| a.offset).collect();
        assert_eq!(offsets, [0, 8, 20, 32, 40, 48]);
        assert_eq!(launch.size, 56);
        let init = layout("RCCL_API", "ncclCommInitRank");
        let offsets: Vec<u32> = init.arguments.iter().map(|a| a.offset).collect();
        assert_eq!(offsets, [0, 8, 12, 140]);
        assert_eq!(init.size, 144);
        let none = layout("HIP_RUNTIME_API", "hipDeviceSynchronize");
        assert_eq!((none.size, none.arguments.len()), (0, 0));
    }

    #[test]
    fn argument_structs_fit_into_the_providers_unions() {
        for layout in layouts().expect("the tables") {
            let union = match layout.kind {
                "HIP_RUNTIME_API" | "HIP_COMPILER_API" => 88,
                kind if kind.starts_with("HSA_") => 192,
                "CUDA_API" | "CUDA_DRIVER_API" => 88,
                "RCCL_API" => 152,
                "ROCDECODE_API" => 40,
                "ROCJPEG_API" => 48,
                _ => 16,
            };
            assert!(layout.size <= union, "{layout:?}");
        }
    }

    #[test]
    fn outputs_lists_the_pointers_that_calls_write_through() {
        let outputs =
            |kind, operation| -> Vec<(u32, u32)> { layout(kind, operation).outputs().collect() };
        assert_eq!(outputs("HIP_RUNTIME_API", "hipMalloc"), [(0, 8)]);
        assert_eq!(
            outputs("HIP_RUNTIME_API", "hipMallocPitch"),
            [(0, 8), (8, 8)]
        );
        assert_eq!(outputs("HIP_RUNTIME_API", "hipMalloc3D"), [(0, 32)]);
        assert_eq!(outputs("HIP_RUNTIME_API", "hipGetDevice"), [(0, 4)]);
        assert_eq!(
            outputs("HSA_AMD_EXT_API", "hsa_amd_memory_pool_allocate"),
            [(24, 8)]
        );
        // Arrays, and what the call reads.
        for operation in ["hipLaunchKernel", "hipFree", "hipMemcpy"] {
            assert_eq!(outputs("HIP_RUNTIME_API", operation), [], "{operation}");
        }
        assert_eq!(outputs("HIP_RUNTIME_API", "hipGraphGetNodes"), [(16, 8)]);
        let malloc = layout("HIP_RUNTIME_API", "hipMalloc");
        let pointee = malloc.arguments[0].output.expect("an output");
        assert_eq!((pointee.declared, pointee.form), ("void*", Form::Opaque));
    }

    #[test]
    fn texts_leaves_out_texts_that_calls_write() {
        let texts = |kind, operation| -> Vec<u32> { layout(kind, operation).texts().collect() };
        assert_eq!(texts("HIP_COMPILER_API", "__hipRegisterFunction"), [16, 24]);
        assert_eq!(texts("HIP_RUNTIME_API", "hipModuleGetFunction"), [16]);
        assert!(texts("HIP_RUNTIME_API", "hipDeviceGetName").is_empty());
    }
}
