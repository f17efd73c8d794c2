//! Facts about the traced interfaces, from the tables in `data/` of this crate: which operations a kind has, which arguments an
//! operation has, what each C type is, and the short names of enumerators.
//!
//! A build dependency: build scripts turn what they need into Rust source, so that nothing parses
//! tables at run time, least of all in the target. A table that is not understood fails the build.

use std::collections::BTreeSet;
use std::error::Error;

pub mod abi;
mod capture;
mod functions;
mod layout;
mod roles;
mod table;

pub use capture::{CaptureCall, HandleKind, Role, capture_calls};
pub use functions::{Domain, Function, Param, StreamRole, functions, macro_calls};
pub use layout::{Argument, Form, Layout, Pointee, layouts};
pub use table::{MalformedRow, rows};

const OPERATIONS: [(&str, &str); 2] = [
    ("operations.csv", include_str!("../data/operations.csv")),
    (
        "operations-cuda.csv",
        include_str!("../data/operations-cuda.csv"),
    ),
];
const ARGUMENTS: [(&str, &str); 3] = [
    ("api-args.csv", include_str!("../data/api-args.csv")),
    (
        "api-args-media.csv",
        include_str!("../data/api-args-media.csv"),
    ),
    (
        "api-args-cuda.csv",
        include_str!("../data/api-args-cuda.csv"),
    ),
];
const TYPES: [(&str, &str); 2] = [
    ("arg-types.csv", include_str!("../data/arg-types.csv")),
    (
        "arg-types-cuda.csv",
        include_str!("../data/arg-types-cuda.csv"),
    ),
];
const ENUMERATORS: &str = include_str!("../data/arg-enums.csv");

/// Kinds of functions whose calls CUPTI reports, in the order of their domains: they have no dispatch table of ours, and are
/// numbered as CUPTI numbers them.
pub const CALLBACK_KINDS: [&str; 2] = ["CUDA_API", "CUDA_DRIVER_API"];

/// An operation of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Name of the kind, without the enumerator's prefix: `HIP_RUNTIME_API`.
    pub kind: &'static str,
    /// Number of the operation in its kind, in this version of the provider.
    pub number: u32,
    /// Name of the operation: a function's, or `MEMORY_COPY_HOST_TO_DEVICE`. Operations of CUDA that differ in their version or
    /// in the meaning of the null stream have one name.
    pub name: &'static str,
    /// C type of the function's result; empty for an operation that is no function.
    pub result: &'static str,
}

/// Every operation, those of a kind together and ordered by number.
///
/// # Errors
/// The row that is not understood.
pub fn operations() -> Result<Vec<Operation>, MalformedRow> {
    let mut operations: Vec<Operation> = Vec::new();
    for row in OPERATIONS
        .into_iter()
        .flat_map(|(table, text)| rows(table, text))
    {
        let row = row?;
        let [kind, number, name, result] = row.fields;
        let number = row.number(number)?;
        let follows = match operations.last() {
            Some(last) if last.kind == kind => number == last.number + 1,
            _ => operations.iter().all(|other| other.kind != kind),
        };
        if !follows {
            return Err(row.malformed("numbers of a kind follow one another"));
        }
        let is_function = functions::DOMAINS.contains(&kind) || CALLBACK_KINDS.contains(&kind);
        if result.is_empty() == is_function {
            return Err(row
                .malformed("a function has a result (`void` is one), another operation has none"));
        }
        operations.push(Operation {
            kind,
            number,
            name,
            result,
        });
    }
    Ok(operations)
}

/// A parameter of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Kind of the operation.
    pub kind: &'static str,
    /// Name of the operation.
    pub operation: &'static str,
    /// Position in the call, from 0.
    pub position: u32,
    /// Name, as the provider's argument unions have it.
    pub name: &'static str,
    /// C type, as the provider's argument unions have it.
    pub declared: &'static str,
    /// Whether the parameter points to one value that a call has written when it succeeds.
    pub is_output: bool,
}

/// Every parameter, those of a call together and in order.
///
/// # Errors
/// The row that is not understood, or a text that names the function without a row.
pub fn parameters() -> Result<Vec<Parameter>, Box<dyn Error>> {
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut functions = BTreeSet::new();
    const ORDER: &str =
        "arguments of a call follow one another, and a call without arguments has one row";
    for (table, text) in ARGUMENTS {
        for row in rows(table, text) {
            let row = row?;
            let [kind, operation, position, name, declared, output] = row.fields;
            let is_first = functions.insert((kind, operation));
            // A row without a parameter stands for a call without arguments.
            if (position, name, declared, output) == ("", "", "", "") && is_first {
                continue;
            }
            let position = row.number(position)?;
            let expected = match parameters.last() {
                Some(last) if (last.kind, last.operation) == (kind, operation) => last.position + 1,
                _ if is_first => 0,
                _ => return Err(row.malformed(ORDER).into()),
            };
            if position != expected {
                return Err(row.malformed(ORDER).into());
            }
            let is_output = match output {
                "" => false,
                "out" => true,
                _ => return Err(row.malformed("the last field is `out` or empty").into()),
            };
            parameters.push(Parameter {
                kind,
                operation,
                position,
                name,
                declared,
                is_output,
            });
        }
    }
    let missing = operations()?.into_iter().find(|operation| {
        !operation.result.is_empty() && !functions.contains(&(operation.kind, operation.name))
    });
    match missing {
        Some(Operation { kind, name, .. }) => Err(format!(
            "api-args.csv: {name} of {kind} has no row: list its arguments, or `{kind},{name},,,,` if it has none"
        )
        .into()),
        None => Ok(parameters),
    }
}

/// An enumerator of a C type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enumerator {
    /// Name of the C enum.
    pub declared: &'static str,
    /// The enumerator's value.
    pub value: i32,
    /// Name of the enumerator without the prefix of its type.
    pub text: &'static str,
}

/// Every enumerator of the types with the form `enum`, those of a type together.
///
/// # Errors
/// The row that is not understood, or a text that names the type whose enumerators are not listed.
pub fn enumerators() -> Result<Vec<Enumerator>, Box<dyn Error>> {
    let enums = layout::enums()?;
    let enumerators = enumerators_of(ENUMERATORS, &enums)?;
    for name in enums {
        if enumerators.iter().all(|known| known.declared != name) {
            return Err(format!(
                "arg-enums.csv lacks the enumerators of `{name}`: list them, or give it the form `int` in arg-types.csv, \
                 which shows its values as numbers"
            )
            .into());
        }
    }
    Ok(enumerators)
}

/// The enumerators that `table` lists, all of them of types in `enums`.
fn enumerators_of(
    table: &'static str,
    enums: &BTreeSet<&str>,
) -> Result<Vec<Enumerator>, MalformedRow> {
    let mut enumerators: Vec<Enumerator> = Vec::new();
    for row in rows("arg-enums.csv", table) {
        let row = row?;
        let [declared, value, text] = row.fields;
        if !enums.contains(declared) {
            return Err(row.malformed(format!("`{declared}` has no form `enum` in arg-types.csv")));
        }
        let is_same = |other: &Enumerator| other.declared == declared;
        if enumerators.last().is_some_and(|last| !is_same(last)) && enumerators.iter().any(is_same)
        {
            return Err(row.malformed("enumerators of a type follow one another"));
        }
        enumerators.push(Enumerator {
            declared,
            value: row.number(value)?,
            text,
        });
    }
    Ok(enumerators)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_enum_has_its_enumerators_and_no_other_type_has() {
        assert!(enumerators().is_ok_and(|found| found.len() > 10));
        let enums = layout::enums().expect("types");
        let error = |table| {
            enumerators_of(table, &enums)
                .expect_err("refused")
                .to_string()
        };
        assert_eq!(
            error("arg_type,value,text\nint,0,Zero"),
            "arg-enums.csv:2: `int,0,Zero`: `int` has no form `enum` in arg-types.csv"
        );
        assert_eq!(
            error(
                "arg_type,value,text\nhipMemcpyKind,0,a\nhsa_access_permission_t,0,b\nhipMemcpyKind,1,c"
            ),
            "arg-enums.csv:4: `hipMemcpyKind,1,c`: enumerators of a type follow one another"
        );
    }
}
