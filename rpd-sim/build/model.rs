//! The tables of API facts as values.

use std::{collections::HashMap, error::Error};

use crate::abi;

/// A parameter of a call.
pub(crate) struct Param {
    /// Name as the argument unions have it.
    pub name: String,
    /// C type as the argument unions have it.
    pub c_type: String,
    /// How it is passed.
    pub abi: abi::Abi,
}

/// A call of an API; its index in the domain is operation id and table slot at once.
pub(crate) struct Function {
    /// Exported name.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// How the result is passed, `None` for `void`.
    pub ret: Option<abi::Abi>,
}

/// A traced domain whose calls have slots in a dispatch table.
pub(crate) struct Domain {
    /// Suffix of the kind enumerators.
    pub name: &'static str,
    /// Calls by operation id.
    pub functions: Vec<Function>,
}

/// Domains that programs call through tables of this library.
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

/// Splits a CSV line; fields may be quoted, quotes inside fields do not occur.
pub(crate) fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => {
                if let Some(last) = out.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    out
}

/// Reads the three tables.
pub(crate) fn load(
    operations: &str,
    args: &str,
    returns: &str,
) -> Result<Vec<Domain>, Box<dyn Error>> {
    let mut params: HashMap<(String, String), Vec<Param>> = HashMap::new();
    for line in args.lines().skip(1) {
        let f = fields(line);
        let [domain, function, index, name, c_type] = f.as_slice() else {
            return Err(format!("api-args.csv: bad line `{line}`").into());
        };
        if !DOMAINS.contains(&domain.as_str()) {
            continue;
        }
        let list = params
            .entry((domain.clone(), function.clone()))
            .or_default();
        if list.len() != index.parse::<usize>()? {
            return Err(format!("api-args.csv: arguments out of order at `{line}`").into());
        }
        list.push(Param {
            name: name.clone(),
            c_type: c_type.clone(),
            abi: abi::of(c_type).ok_or_else(|| format!("no ABI known for C type `{c_type}`"))?,
        });
    }
    let mut rets: HashMap<String, Option<abi::Abi>> = HashMap::new();
    for line in returns.lines().skip(1) {
        let f = fields(line);
        let [name, c_type] = f.as_slice() else {
            return Err(format!("api-returns.csv: bad line `{line}`").into());
        };
        let ret = match c_type.as_str() {
            "void" => None,
            t => Some(abi::of(t).ok_or_else(|| format!("no ABI known for C type `{t}`"))?),
        };
        rets.insert(name.clone(), ret);
    }
    let mut domains: Vec<Domain> = DOMAINS
        .iter()
        .map(|name| Domain {
            name,
            functions: Vec::new(),
        })
        .collect();
    for line in operations.lines().skip(1) {
        let f = fields(line);
        let [domain, id, name] = f.as_slice() else {
            return Err(format!("operations.csv: bad line `{line}`").into());
        };
        let Some(d) = domains.iter_mut().find(|d| d.name == domain) else {
            continue;
        };
        if d.functions.len() != id.parse::<usize>()? {
            return Err(format!("operations.csv: ids out of order at `{line}`").into());
        }
        let ret = match rets.remove(name) {
            Some(r) => r,
            None => Some(abi::Abi::U32),
        };
        let params = params
            .remove(&(domain.clone(), name.clone()))
            .unwrap_or_default();
        d.functions.push(Function {
            name: name.clone(),
            params,
            ret,
        });
    }
    match rets.keys().next() {
        Some(name) => Err(format!("api-returns.csv: `{name}` is no operation").into()),
        None => Ok(domains),
    }
}
