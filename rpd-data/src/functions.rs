//! The functions of the runtimes' dispatch tables: parameters and results by the way they are passed.

use std::{collections::HashMap, error::Error};

use crate::abi;

/// A parameter of a call.
#[derive(Debug)]
pub struct Param {
    /// Name as the argument unions have it.
    pub name: String,
    /// C type as the argument unions have it.
    pub c_type: String,
    /// ABI of the parameter.
    pub abi: abi::Abi,
}

/// A call of an API; its index in the domain is operation id and table slot at once.
#[derive(Debug)]
pub struct Function {
    /// Exported name.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// ABI of the result, `None` for `void`.
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
pub(crate) const DOMAINS: [&str; 12] = [
    "HIP_RUNTIME_API",
    "HIP_COMPILER_API",
    "HSA_CORE_API",
    "HSA_AMD_EXT_API",
    "HSA_IMAGE_EXT_API",
    "HSA_FINALIZE_EXT_API",
    "MARKER_CORE_API",
    "MARKER_CONTROL_API",
    "MARKER_NAME_API",
    "RCCL_API",
    "ROCDECODE_API",
    "ROCJPEG_API",
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
            abi: abi::from_c_type(c_type)
                .ok_or_else(|| format!("no ABI known for C type `{c_type}`"))?,
        });
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
            ret: match operation.result {
                "void" => None,
                c_type => Some(
                    abi::from_c_type(c_type)
                        .ok_or_else(|| format!("no ABI known for C type `{c_type}`"))?,
                ),
            },
        });
    }
    Ok(domains)
}

/// Effect of a call on its HIP stream, with the position of the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamRole {
    /// The call makes the stream that this parameter points to.
    Create(usize),
    /// The call destroys the stream that this parameter is.
    Destroy(usize),
    /// The call works on the stream that this parameter is.
    Set(usize),
}

impl Param {
    /// The parameter's name as a Rust identifier.
    pub fn ident(&self) -> String {
        match self.name.as_str() {
            "fn" | "type" => format!("r#{}", self.name),
            name => name.to_owned(),
        }
    }
}

impl Function {
    /// Parameters and result in Rust: `(a: u32, b: *mut c_void) -> u32`.
    pub fn signature(&self) -> String {
        let params: Vec<String> = self
            .params
            .iter()
            .map(|param| format!("{}: {}", param.ident(), param.abi.rust()))
            .collect();
        let ret = self.ret.map_or("()", abi::Abi::rust);
        format!("({}) -> {ret}", params.join(", "))
    }

    /// The HIP stream that a call of this function concerns.
    pub fn stream(&self) -> Option<StreamRole> {
        let of = |declared: &str| -> Vec<usize> {
            let params = self.params.iter().enumerate();
            let found = params.filter(|(_, param)| param.c_type == declared);
            found.map(|(position, _)| position).collect()
        };
        let creates =
            self.name.starts_with("hipStreamCreate") || self.name.starts_with("hipExtStreamCreate");
        match (of("hipStream_t").as_slice(), of("hipStream_t*").as_slice()) {
            (_, &[param]) if creates => Some(StreamRole::Create(param)),
            (&[param], _) if self.name == "hipStreamDestroy" => Some(StreamRole::Destroy(param)),
            (&[param], _) => Some(StreamRole::Set(param)),
            _ => None,
        }
    }
}

/// Rust source that describes every function to macros of the including file: for each domain, by slot,
/// `api_fn!(KIND, slot, name, (parameter: type, ...) -> result);`, then `api_domain!(KIND, count, [name, ...]);`.
pub fn macro_calls(domains: &[Domain]) -> String {
    let mut out = String::new();
    for Domain { name, functions } in domains {
        for (slot, function) in functions.iter().enumerate() {
            let (called, signature) = (&function.name, function.signature());
            out.push_str(&format!(
                "api_fn!({name}, {slot}, {called}, {signature});\n"
            ));
        }
        let names: Vec<&str> = functions
            .iter()
            .map(|function| function.name.as_str())
            .collect();
        let (count, names) = (names.len(), names.join(", "));
        out.push_str(&format!("api_domain!({name}, {count}, [{names}]);\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(kind: &str, name: &str) -> Function {
        let domains = functions().expect("the tables");
        let domain = domains.into_iter().find(|domain| domain.name == kind);
        let functions = domain.expect("the kind").functions;
        let found = functions.into_iter().find(|function| function.name == name);
        found.expect("the function")
    }

    #[test]
    fn signatures_equal_those_of_the_headers() {
        assert_eq!(
            function("HIP_RUNTIME_API", "hipLaunchKernel").signature(),
            "(function_address: *mut c_void, numBlocks: Dim3, dimBlocks: Dim3, args: *mut c_void, \
             sharedMemBytes: usize, stream: *mut c_void) -> u32"
        );
        assert_eq!(
            function("RCCL_API", "ncclCommInitRank").signature(),
            "(newcomm: *mut c_void, nranks: i32, commId: UniqueId, myrank: i32) -> u32"
        );
        let text = function("ROCJPEG_API", "rocJpegGetErrorName");
        assert_eq!(text.ret, Some(abi::Abi::Ptr));
    }

    #[test]
    fn parameters_have_the_sizes_of_the_argument_layouts() {
        let layouts = crate::layouts().expect("the tables");
        for domain in functions().expect("the tables") {
            for function in &domain.functions {
                let layout = layouts.iter().find(|layout| {
                    (layout.kind, layout.operation) == (domain.name, function.name.as_str())
                });
                let layout = layout.expect("a layout for each function");
                assert_eq!(layout.arguments.len(), function.params.len());
                for (argument, param) in layout.arguments.iter().zip(&function.params) {
                    assert_eq!(argument.size as usize, param.abi.layout().0, "{param:?}");
                }
            }
        }
    }

    #[test]
    fn stream_parameters_have_the_role_that_the_function_gives_them() {
        let role = |name: &str| function("HIP_RUNTIME_API", name).stream();
        assert_eq!(role("hipLaunchKernel"), Some(StreamRole::Set(5)));
        assert_eq!(role("hipStreamCreate"), Some(StreamRole::Create(0)));
        assert_eq!(role("hipStreamDestroy"), Some(StreamRole::Destroy(0)));
        assert_eq!(role("hipMalloc"), None);
    }
}
