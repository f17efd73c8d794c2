//! Calls of the HIP runtime in captures: which are recorded, and how a replay repeats them.

use std::error::Error;

use crate::layout::{Argument, Form, layouts};
use crate::operations;
pub use crate::roles::{HandleKind, Role};
use crate::table::rows;

const CALLS: &str = include_str!("../data/capture-calls.csv");

/// A call of the HIP runtime.
#[derive(Debug, Clone)]
pub struct CaptureCall {
    /// Name of the function.
    pub operation: &'static str,
    /// `launch`, `code`, `memory`, `image`, `transfer`, `order`, `graph`, `context`, `query` (neither recorded nor
    /// replayed) or `unsupported` (recorded, and not replayed).
    pub group: &'static str,
    /// Arguments of the call: position in the argument struct, and role.
    pub arguments: Vec<(Argument, Role)>,
}

/// Kinds of handles, by C type.
const HANDLES: [(&str, HandleKind); 13] = [
    ("hipStream_t", HandleKind::Stream),
    ("hipEvent_t", HandleKind::Event),
    ("hipModule_t", HandleKind::Module),
    ("hipFunction_t", HandleKind::Function),
    ("hipGraph_t", HandleKind::Graph),
    ("hipGraphNode_t", HandleKind::Node),
    ("hipGraphExec_t", HandleKind::GraphExec),
    ("hipMemPool_t", HandleKind::Pool),
    ("hipArray_t", HandleKind::Array),
    ("hipArray_const_t", HandleKind::Array),
    ("hipTextureObject_t", HandleKind::Texture),
    ("hipSurfaceObject_t", HandleKind::Surface),
    ("hipMemGenericAllocationHandle_t", HandleKind::Physical),
];

/// C types of addresses of memory.
const ADDRESSES: [&str; 3] = ["void*", "hipDeviceptr_t", "textureReference*"];

fn usual(argument: &Argument) -> Role {
    let ty = argument.declared;
    let handle = |ty: &str| {
        let found = HANDLES.iter().find(|(known, _)| *known == ty);
        found.map(|(_, kind)| *kind)
    };
    if let Some(kind) = handle(ty) {
        return Role::Handle(kind);
    }
    // A call that creates a handle has a pointer to where it writes it.
    if let Some(kind) = ty.strip_suffix('*').and_then(handle) {
        return Role::HandleOut(kind);
    }
    if argument
        .output
        .is_some_and(|output| ADDRESSES.contains(&output.declared))
    {
        return Role::AddressOut;
    }
    match argument.form {
        Form::Text => Role::Text,
        Form::Pointer | Form::Opaque | Form::Function => {
            // Other pointers may be to memory of the host: the table says so where they are not.
            if ty == "hipDeviceptr_t" {
                Role::Address
            } else {
                Role::Scratch
            }
        }
        _ => Role::Value,
    }
}

fn role(text: &str, arguments: &[Argument]) -> Option<Role> {
    // Some roles have a size, a factor or the name of another argument behind a colon.
    let (word, value) = text.split_once(':').unwrap_or((text, ""));
    let position = |name: &str| {
        let found = arguments.iter().position(|one| one.name == name)?;
        u32::try_from(found).ok()
    };
    Some(match word {
        "address" => Role::Address,
        "symbol" => Role::Symbol,
        "kernel" => Role::Kernel,
        "function" => Role::Handle(HandleKind::Function),
        "arguments" => Role::Arguments,
        "extra" => Role::Extra,
        "text" => Role::Text,
        "struct" => Role::Struct(value.parse().ok()?),
        "resource" => Role::Resource(value.parse().ok()?),
        "struct_out" => Role::StructOut(value.parse().ok()?),
        "array" => {
            let (count, unit) = value.split_once('*')?;
            Role::Array(position(count)?, unit.parse().ok()?)
        }
        "memory_operations" => Role::MemoryOperations(position(value)?),
        "memory_operations_node" => Role::MemoryOperationsNode,
        "launch_config" => Role::LaunchConfig,
        "any_node" => Role::AnyNode,
        "node_list_out" => Role::NodeListOut,
        "texture_reference" => Role::TextureReference,
        "context" => Role::Context,
        "copy2d" => Role::Copy2d,
        "copy3d" => Role::Copy3d,
        "driver_copy3d" => Role::DriverCopy3d,
        "kernel_node" => Role::KernelNode,
        "memset_node" => Role::MemsetNode,
        "pitched" => Role::Pitched,
        "nodes_out" => Role::NodesOut,
        "count" => Role::Count,
        "ignored" => Role::Ignored,
        "scratch" => Role::Scratch,
        _ => return None,
    })
}

/// The calls of the HIP runtime, by number of the operation.
///
/// # Errors
/// The row that is not understood, or a text that names the operation that is missing.
pub fn capture_calls() -> Result<Vec<CaptureCall>, Box<dyn Error>> {
    let layouts = layouts()?;
    let mut calls = Vec::new();
    for row in rows("capture-calls.csv", CALLS) {
        let row = row?;
        let [operation, group, roles] = row.fields;
        let layout = layouts
            .iter()
            .find(|layout| layout.kind == "HIP_RUNTIME_API" && layout.operation == operation)
            .ok_or_else(|| row.malformed("is not an operation of HIP_RUNTIME_API"))?;
        let mut arguments: Vec<(Argument, Role)> = layout
            .arguments
            .iter()
            .map(|argument| (*argument, usual(argument)))
            .collect();
        // Only roles that do not follow from the argument's type are listed.
        for pair in roles.split_whitespace() {
            let found = pair.split_once('=').and_then(|(name, text)| {
                let position = layout.arguments.iter().position(|one| one.name == name)?;
                Some((position, role(text, &layout.arguments)?))
            });
            let (position, role) = found
                .ok_or_else(|| row.malformed(format!("`{pair}` is not an argument with a role")))?;
            arguments[position].1 = role;
        }
        calls.push(CaptureCall {
            operation,
            group,
            arguments,
        });
    }
    // Captures name calls by the number of the operation, so that no row may be missing or out of place.
    let known = operations()?;
    let known = known.iter().filter(|one| one.kind == "HIP_RUNTIME_API");
    if !known
        .map(|one| one.name)
        .eq(calls.iter().map(|call| call.operation))
    {
        return Err(
            "capture-calls.csv: the operations are those of HIP_RUNTIME_API, in order".into(),
        );
    }
    Ok(calls)
}
