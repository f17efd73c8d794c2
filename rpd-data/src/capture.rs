//! What a capture keeps of a call of the HIP runtime, and how a replay makes the call again.

use std::error::Error;

use crate::layout::{Argument, Form, layouts};
use crate::operations;
use crate::table::rows;

const CALLS: &str = include_str!("../../data/capture-calls.csv");

/// What an argument is for a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Passed as it is.
    Value,
    /// A handle of the runtime, of the kind named.
    Handle(&'static str),
    /// Where the call stores a new handle of the kind named.
    HandleOut(&'static str),
    /// Text that the call reads.
    Text,
    /// An address of device or host memory.
    Address,
    /// Where the call stores an address of memory.
    AddressOut,
    /// The host address of a device variable.
    Symbol,
    /// A host function or function handle of a kernel.
    Kernel,
    /// The array of pointers to the arguments of a kernel.
    Arguments,
    /// The list with the packed arguments of a kernel.
    Extra,
    /// A struct of so many bytes that the call reads.
    Struct(u32),
    /// A struct of so many bytes that the call writes, with an address first.
    StructOut(u32),
    /// An array that the call reads: position of the argument that counts its elements, bytes of an element.
    Array(u32, u32),
    /// `hip_Memcpy2D`.
    Copy2d,
    /// `hipMemcpy3DParms`.
    Copy3d,
    /// `hipKernelNodeParams`.
    KernelNode,
    /// `hipMemsetParams`.
    MemsetNode,
    /// `hipPitchedPtr` by value.
    Pitched,
    /// An array of graph nodes that the call writes; the argument behind it counts them.
    NodesOut,
    /// The number of elements of the array before, in and out.
    Count,
    /// Passed as null.
    Ignored,
    /// Memory that the call writes, whose content a replay does not need.
    Scratch,
}

/// A call of the HIP runtime.
#[derive(Debug, Clone)]
pub struct CaptureCall {
    /// Its name.
    pub operation: &'static str,
    /// `launch`, `code`, `memory`, `transfer`, `order`, `graph`, `context`, `query` (neither recorded nor
    /// replayed) or `unsupported` (recorded, and not replayed).
    pub group: &'static str,
    /// Its arguments: places in the argument struct, and roles.
    pub arguments: Vec<(Argument, Role)>,
}

/// Kinds of handles, by C type.
const HANDLES: [(&str, &str); 10] = [
    ("hipStream_t", "Stream"),
    ("hipEvent_t", "Event"),
    ("hipModule_t", "Module"),
    ("hipFunction_t", "Function"),
    ("hipGraph_t", "Graph"),
    ("hipGraphNode_t", "Node"),
    ("hipGraphExec_t", "GraphExec"),
    ("hipMemPool_t", "Pool"),
    ("hipDeviceptr_t", ""),
    ("hipArray_t", ""),
];

fn usual(argument: &Argument) -> Role {
    let ty = argument.declared;
    let handle = |ty: &str| {
        let found = HANDLES.iter().find(|(known, _)| *known == ty);
        found.map(|(_, kind)| *kind).filter(|kind| !kind.is_empty())
    };
    if let Some(kind) = handle(ty) {
        return Role::Handle(kind);
    }
    if let Some(kind) = ty.strip_suffix('*').and_then(handle) {
        return Role::HandleOut(kind);
    }
    match argument.form {
        Form::Text => Role::Text,
        Form::Pointer | Form::Opaque | Form::Function => {
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
    let (word, value) = text.split_once(':').unwrap_or((text, ""));
    Some(match word {
        "address" => Role::Address,
        "address_out" => Role::AddressOut,
        "symbol" => Role::Symbol,
        "kernel" => Role::Kernel,
        "function" => Role::Handle("Function"),
        "arguments" => Role::Arguments,
        "extra" => Role::Extra,
        "text" => Role::Text,
        "struct" => Role::Struct(value.parse().ok()?),
        "struct_out" => Role::StructOut(value.parse().ok()?),
        "array" => {
            let (count, unit) = value.split_once('*')?;
            let position = arguments.iter().position(|one| one.name == count)?;
            Role::Array(u32::try_from(position).ok()?, unit.parse().ok()?)
        }
        "copy2d" => Role::Copy2d,
        "copy3d" => Role::Copy3d,
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
            .ok_or_else(|| row.malformed("is no operation of HIP_RUNTIME_API"))?;
        let mut arguments: Vec<(Argument, Role)> = layout
            .arguments
            .iter()
            .map(|argument| (*argument, usual(argument)))
            .collect();
        for pair in roles.split_whitespace() {
            let found = pair.split_once('=').and_then(|(name, text)| {
                let position = layout.arguments.iter().position(|one| one.name == name)?;
                Some((position, role(text, &layout.arguments)?))
            });
            let (position, role) = found
                .ok_or_else(|| row.malformed(format!("`{pair}` is no argument with a role")))?;
            arguments[position].1 = role;
        }
        calls.push(CaptureCall {
            operation,
            group,
            arguments,
        });
    }
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
