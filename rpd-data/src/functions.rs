//! The functions of the runtimes' dispatch tables: parameters and results by the way they are passed.

use std::{collections::HashMap, error::Error};

use crate::abi;
use crate::table::rows;

const RETURNS: &str = include_str!("../../data/api-returns.csv");

/// A parameter of a call.
#[derive(Debug)]
pub struct Param {
    /// Name as the argument unions have it.
    pub name: String,
    /// C type as the argument unions have it.
    pub c_type: String,
    /// How it is passed.
    pub abi: abi::Abi,
}

/// A call of an API; its index in the domain is operation id and table slot at once.
#[derive(Debug)]
pub struct Function {
    /// Exported name.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// How the result is passed, `None` for `void`.
    pub ret: Option<abi::Abi>,
}

/// A traced domain whose calls have slots in a dispatch table.
#[derive(Debug)]
pub struct Domain {
    /// Suffix of the kind enumerators.
    pub name: &'static str,
    /// Calls by operation id.
    pub functions: Vec<Function>,
}

/// Kinds whose functions have slots in a dispatch table of a runtime.
const DOMAINS: [&str; 9] = [
    "HIP_RUNTIME_API",
    "HIP_COMPILER_API",
    "HSA_CORE_API",
    "HSA_AMD_EXT_API",
    "HSA_IMAGE_EXT_API",
    "HSA_FINALIZE_EXT_API",
    "MARKER_CORE_API",
    "MARKER_CONTROL_API",
    "MARKER_NAME_API",
];

/// The functions of all dispatch tables, in the order of their slots.
///
/// # Errors
/// The row that is not understood, or a text that names the type or operation that a table lacks.
pub fn functions() -> Result<Vec<Domain>, Box<dyn Error>> {
    let mut params: HashMap<(&str, &str), Vec<Param>> = HashMap::new();
    for parameter in crate::parameters()? {
        if !DOMAINS.contains(&parameter.kind) {
            continue;
        }
        let list = params
            .entry((parameter.kind, parameter.operation))
            .or_default();
        let c_type = parameter.declared;
        list.push(Param {
            name: parameter.name.to_owned(),
            c_type: c_type.to_owned(),
            abi: abi::of(c_type).ok_or_else(|| format!("no ABI known for C type `{c_type}`"))?,
        });
    }
    let mut rets: HashMap<&str, Option<abi::Abi>> = HashMap::new();
    for row in rows("api-returns.csv", RETURNS) {
        let [name, c_type] = row?.fields;
        let ret = match c_type {
            "void" => None,
            t => Some(abi::of(t).ok_or_else(|| format!("no ABI known for C type `{t}`"))?),
        };
        rets.insert(name, ret);
    }
    let mut domains: Vec<Domain> = DOMAINS
        .iter()
        .map(|name| Domain {
            name,
            functions: Vec::new(),
        })
        .collect();
    for operation in crate::operations()? {
        let Some(d) = domains.iter_mut().find(|d| d.name == operation.kind) else {
            continue;
        };
        // The number is a slot of the dispatch table.
        if d.functions.len() != operation.number as usize {
            return Err(format!("operations.csv: {} does not begin at 0", operation.kind).into());
        }
        let name = operation.name;
        d.functions.push(Function {
            name: name.to_owned(),
            params: params.remove(&(operation.kind, name)).unwrap_or_default(),
            ret: rets.remove(name).unwrap_or(Some(abi::Abi::U32)),
        });
    }
    match rets.keys().next() {
        Some(name) => Err(format!("api-returns.csv: `{name}` is no operation").into()),
        None => Ok(domains),
    }
}
